//! The window of `sequence` against the plainest thing that does the same: a set.

use super::modules::{Step, end, handle};
use crate::input::Input;
use dacapo_lift::Runner;
use dacapo_lift::conformance::End;
use dacapo_wire::sequence::Header;
use std::collections::BTreeMap;

/// Below the length of the window, so that no number is beyond it.
const NUMBERS: u16 = 4_096;

/// The model: what is to go up next, and what waits.
#[derive(Default)]
struct Model {
    next: u16,
    waiting: BTreeMap<u16, u32>,
    up: Vec<u32>,
}

impl Model {
    fn handle(&mut self, number: u16, mark: u32) {
        if number < self.next {
            return;
        }
        // Who comes first counts.
        self.waiting.entry(number).or_insert(mark);
        while let Some(mark) = self.waiting.remove(&self.next) {
            self.up.push(mark);
            self.next += 1;
        }
    }

    fn drain(&mut self) {
        while let Some((number, mark)) = self.waiting.pop_first() {
            self.up.push(mark);
            self.next = number + 1;
        }
    }
}

/// The numbers of packets, two bytes each, in the order in which they come.
pub fn window(data: &[u8]) {
    let mut input = Input(data);
    let (mut end, mut model) = (end(&["sequence"]), Model::default());
    let mut up = Vec::new();
    for mark in 0_u32.. {
        if input.is_empty() {
            break;
        }
        let number = input.u16();
        if number == u16::MAX {
            end.with(Runner::drain);
            model.drain();
        } else {
            let number = number % NUMBERS;
            let header = Header { number: number.into() }.emit();
            let packet = [&header[..], &mark.to_be_bytes()].concat();
            handle(Step::Packet(packet), &mut end, &["sequence"]);
            model.handle(number, mark);
        }
        take(&mut end, &mut up);
    }
    end.with(Runner::drain);
    model.drain();
    take(&mut end, &mut up);
    assert_eq!(up, model.up, "the window and the set differ");
    end.flush();
}

fn take(end: &mut End, up: &mut Vec<u32>) {
    for packet in end.runner.take_up().drain().collect::<Vec<_>>() {
        let mark = end.pool.segment(&packet, 0).first_chunk().copied();
        up.extend(mark.map(u32::from_be_bytes));
        end.pool.free(packet);
    }
}

/// In order, backwards, with repetitions and gaps.
pub fn window_seeds() -> Vec<Vec<u8>> {
    let script = |numbers: &[u16]| numbers.iter().flat_map(|it| it.to_be_bytes()).collect();
    vec![
        script(&[0, 1, 2, 3, 4]),
        script(&[4, 3, 2, 1, 0]),
        script(&[0, 2, 2, 1, 5, u16::MAX, 3, 6, 7]),
        script(&[4_095, 0, 1, 4_094, u16::MAX, 4_095]),
    ]
}
