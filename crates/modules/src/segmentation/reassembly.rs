//! [`Reassembly`]: the units of which some segments have come.
//!
//! What it is: segments by unit and index, and the memory of which units are finished. What it is
//! not: a clock or a counter; the module asks what is complete and what is too old.
//!
//! ```text
//!            floor                         newest
//!   finished   |  partial  finished  partial |
//!   …          [  a a - ]  [ x ]     [ b - ] ]     at most `units` in the window
//! ```
//!
//! Invariants: at most `UNITS_MAX` units in the window; at most `unit_len_max` bytes per unit; a
//! unit is passed up at most once.

use dacapo_base::Time;
use dacapo_packet::Packet;
use dacapo_wire::segment::Header;
use std::collections::{BTreeMap, VecDeque};

/// How many units may lie between the oldest unfinished and the newest.
pub(crate) const UNITS_MAX: usize = 256;

/// How far ahead of the newest unit a number may be before it is taken for junk.
const AHEAD_MAX: i16 = 16_384;

/// What became of a segment.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It waits for others of its unit.
    Kept,
    /// Its unit is whole: the segments in order.
    Whole(Vec<Packet>),
    /// It came before, or its unit is finished.
    Repeated(Packet),
    /// Its unit was given up.
    Late(Packet),
    /// It contradicts what came, or is far from every unit.
    Strange(Packet),
    /// Its unit exceeds the largest allowed; the unit is given up.
    TooLarge(Packet, Vec<Packet>),
}

#[derive(Debug)]
enum State {
    Partial(Partial),
    Finished,
    GivenUp,
}

#[derive(Debug, Default)]
struct Partial {
    /// By index: a segment far behind the others costs no more than one in front.
    segments: BTreeMap<usize, Packet>,
    count: Option<usize>,
    came: usize,
    len: usize,
    newest: Time,
}

#[derive(Debug)]
pub(crate) struct Reassembly {
    floor: u64,
    units: VecDeque<State>,
    unit_len_max: usize,
}

impl Reassembly {
    pub fn new(unit_len_max: usize) -> Self {
        Self { floor: 0, units: VecDeque::new(), unit_len_max }
    }

    /// Takes a segment. Units that fall out of the window to make room go to `given_up`.
    pub fn insert(
        &mut self,
        header: Header,
        packet: Packet,
        given_up: &mut Vec<Packet>,
    ) -> Outcome {
        let newest = self.floor + self.units.len() as u64;
        let ahead = header.unit.wrapping_sub(newest as u16).cast_signed();
        let Some(unit) = newest.checked_add_signed(i64::from(ahead)) else {
            return Outcome::Strange(packet);
        };
        if ahead > AHEAD_MAX {
            return Outcome::Strange(packet);
        }
        if unit < self.floor {
            return Outcome::Late(packet);
        }
        self.make_room(unit, given_up);
        let place = (unit - self.floor) as usize;
        let outcome = match &mut self.units[place] {
            State::Finished => Outcome::Repeated(packet),
            State::GivenUp => Outcome::Late(packet),
            State::Partial(partial) => partial.insert(header, packet, self.unit_len_max),
        };
        match outcome {
            Outcome::Whole(_) => self.units[place] = State::Finished,
            Outcome::TooLarge(..) => self.units[place] = State::GivenUp,
            _ => {}
        }
        self.raise_floor();
        outcome
    }

    fn make_room(&mut self, unit: u64, given_up: &mut Vec<Packet>) {
        let oldest = (unit + 1).saturating_sub(UNITS_MAX as u64);
        while self.floor < oldest {
            match self.units.pop_front() {
                Some(state) => {
                    self.floor += 1;
                    if let State::Partial(partial) = state {
                        given_up.extend(partial.into_packets());
                    }
                }
                // Nothing lies between: go there at once.
                None => self.floor = oldest,
            }
        }
        while self.floor + self.units.len() as u64 <= unit {
            self.units.push_back(State::Partial(Partial::default()));
        }
    }

    fn raise_floor(&mut self) {
        while let Some(State::Finished | State::GivenUp) = self.units.front() {
            if self.units.len() <= UNITS_MAX / 2 {
                // Keep the memory of the last units, so that a repeated segment is told from a late
                // one.
                break;
            }
            self.units.pop_front();
            self.floor += 1;
        }
    }

    /// When the unit that has waited longest got its last segment.
    pub fn oldest(&self) -> Option<Time> {
        let waiting = self.units.iter().filter_map(|state| match state {
            State::Partial(partial) if partial.came > 0 => Some(partial.newest),
            _ => None,
        });
        waiting.min()
    }

    /// Gives up every unit whose last segment came before `before`; their segments.
    pub fn give_up(&mut self, before: Time) -> Vec<Packet> {
        let mut packets = Vec::new();
        for state in &mut self.units {
            if let State::Partial(partial) = state
                && partial.came > 0
                && partial.newest <= before
            {
                packets.append(&mut std::mem::take(partial).into_packets());
                *state = State::GivenUp;
            }
        }
        self.raise_floor();
        packets
    }
}

impl Partial {
    fn insert(&mut self, header: Header, packet: Packet, unit_len_max: usize) -> Outcome {
        let index = usize::from(header.index);
        let known = self.count;
        let strange = known
            .is_some_and(|count| index >= count || (header.last && index + 1 != count))
            || (header.last && self.segments.keys().next_back().is_some_and(|last| *last > index));
        if strange {
            return Outcome::Strange(packet);
        }
        if self.segments.contains_key(&index) {
            return Outcome::Repeated(packet);
        }
        self.len += packet.payload_len();
        if self.len > unit_len_max || index > unit_len_max {
            return Outcome::TooLarge(packet, std::mem::take(self).into_packets());
        }
        if header.last {
            self.count = Some(index + 1);
        }
        self.newest = packet.time;
        self.segments.insert(index, packet);
        self.came += 1;
        if self.count == Some(self.came) {
            return Outcome::Whole(std::mem::take(self).into_packets());
        }
        Outcome::Kept
    }

    fn into_packets(self) -> Vec<Packet> {
        self.segments.into_values().collect()
    }
}
