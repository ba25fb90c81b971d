//! An honest sender, a way that does what the fuzzer says, and a receiver: what a graph promises
//! holds whatever the way does.
//!
//! ```text
//!   units -> sender -> [ lost, repeated, moved, altered, late ] -> receiver -> units
//! ```

use super::modules::{GRAPHS, Step, end, handle};
use crate::input::Input;
use dacapo_lift::conformance::End;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

struct Way {
    sender: End,
    receiver: End,
    under_way: VecDeque<Vec<u8>>,
    sent: BTreeMap<Vec<u8>, usize>,
    came: Vec<Vec<u8>>,
    is_altered: bool,
}

impl Way {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() % 8 {
            0 => self.send(input.u8(), input.u8()),
            1 | 2 => {
                if let Some(datagram) = self.under_way.pop_front() {
                    handle(Step::Packet(datagram), &mut self.receiver, &["the receiver"]);
                }
            }
            3 => drop(self.under_way.pop_front()),
            4 => {
                if let Some(first) = self.under_way.front().cloned() {
                    self.under_way.push_back(first);
                }
            }
            5 => {
                let by = usize::from(input.u8()) % self.under_way.len().max(1);
                self.under_way.rotate_left(by);
            }
            6 => self.alter(input.u16(), input.u8()),
            _ => {
                let time = Duration::from_millis(u64::from(input.u8()));
                self.sender.pass(time);
                self.receiver.pass(time);
            }
        }
        self.collect();
    }

    /// Sends a unit that no other is like.
    fn send(&mut self, seed: u8, size: u8) {
        let number = self.sent.len();
        let len = 8 + usize::from(size) * usize::from(seed % 3);
        let mut unit = (number as u64).to_be_bytes().to_vec();
        unit.resize(len, seed);
        if self.sender.feed(&unit) {
            self.sent.insert(unit, number);
        }
    }

    fn alter(&mut self, at: u16, how: u8) {
        let Some(datagram) = self.under_way.front_mut() else { return };
        let at = usize::from(at) % datagram.len().max(1);
        if let Some(byte) = datagram.get_mut(at) {
            *byte ^= how.max(1);
            self.is_altered = true;
        }
    }

    fn collect(&mut self) {
        self.under_way.extend(self.sender.wire());
        self.came.extend(self.receiver.units());
        // What the receiver says back does not arrive.
        self.receiver.wire();
    }

    /// Checks what came against what the graph promises.
    fn check(&self, names: &[&str]) {
        let is_checked = names.contains(&"checksum");
        if self.is_altered && !is_checked {
            return;
        }
        let place = |unit: &Vec<u8>| self.sent.get(unit).copied();
        let places: Vec<usize> = self
            .came
            .iter()
            .map(|unit| place(unit).unwrap_or_else(|| panic!("{names:?}: nobody sent {unit:?}")))
            .collect();
        if names.contains(&"sequence") {
            let in_order = places.is_sorted_by(|a, b| a < b);
            assert!(in_order, "{names:?}: not in order, each once: {places:?}");
        }
    }
}

/// One byte chooses the graph; then what the way does.
pub fn way(data: &[u8]) {
    let mut input = Input(data);
    let names = GRAPHS.get(usize::from(input.u8()) % GRAPHS.len()).copied().unwrap_or_default();
    let (sender, receiver) = (end(names), end(names));
    let (under_way, sent) = (VecDeque::new(), BTreeMap::new());
    let (came, is_altered) = (Vec::new(), false);
    let mut way = Way { sender, receiver, under_way, sent, came, is_altered };
    while !input.is_empty() {
        way.step(&mut input);
    }
    way.check(names);
    // What is left arrives, and time passes: all that was not lost is there or was reported.
    while let Some(datagram) = way.under_way.pop_front() {
        handle(Step::Packet(datagram), &mut way.receiver, names);
        way.collect();
    }
    way.receiver.pass(Duration::from_secs(70));
    way.collect();
    way.check(names);
    way.sender.flush();
    way.receiver.flush();
}

/// A quiet way, and one that does everything, over each graph.
pub fn way_seeds() -> Vec<Vec<u8>> {
    let quiet = [0, 1, 90, 1, 0, 2, 200, 1, 1, 1, 7, 50];
    let rough = [
        [0, 1, 100, 0, 2, 250, 0, 0, 9, 4, 5, 2, 1, 6, 0, 40, 8, 1, 3, 1, 1, 7, 80],
        [0, 2, 90, 0, 2, 91, 0, 2, 92, 5, 1, 1, 4, 1, 5, 3, 1, 1, 1, 7, 200, 1, 1],
    ]
    .concat();
    let seed = |graph: usize| {
        let script = if graph.is_multiple_of(2) { &quiet[..] } else { rough.as_slice() };
        [&[graph as u8], script].concat()
    };
    (0..GRAPHS.len()).map(seed).collect()
}
