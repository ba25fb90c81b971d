//! [`Receiving`]: what has come, waits for what is before it where packets are to be in order, and
//! what is said of it.
//!
//! ```text
//!   come    1 2 . . 5 6 . 8      up: 1 2     next = 3, ranges [5, 7) [8, 9)
//! ```
//!
//! What came lately is said first, in [`SAID_TIMES`] acknowledgements, for some of those are lost;
//! then what is newest.
//!
//! Invariants: numbers go up each once, and in order where they are to; all before the next one
//! have come; `holes` are the numbers from it to `high` that have not: of 8,192 at most every
//! other, for which [`Ranges`] has room.

use super::super::acknowledged::Receives;
use super::super::acknowledged::saying::Saying;
use crate::copying::Copier;
use crate::emitting::tell;
use crate::window::{Place, WINDOW, Window};
use dacapo_base::Ranges;
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::Packet;
use dacapo_wire::acknowledgement::{
    Header, Kind, LEN, RANGE_LEN, RANGES_MAX, Range as Said, STATE_LEN, extend,
};
use std::collections::VecDeque;
use std::ops::Range;

/// In how many acknowledgements a number is said that came out of order.
const SAID_TIMES: u8 = 3;

/// How many such numbers are remembered.
const RECENT_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Receiving {
    window: Window,
    /// Packets go up as they come: nothing waits in the window, and this is the next number.
    unordered: Option<u64>,
    /// The first number that is above all that has come.
    high: u64,
    holes: Ranges,
    /// Numbers that came out of order lately, and how often they are to be said yet.
    recent: VecDeque<(u64, u8)>,
    saying: Saying,
    ranges: Vec<Range<u64>>,
    bytes: Vec<u8>,
}

impl Receiving {
    /// Packets go up in order, or as they come.
    pub fn new(is_ordered: bool) -> Self {
        Self {
            window: Window::new(),
            unordered: (!is_ordered).then_some(0),
            high: 0,
            holes: Ranges::default(),
            recent: VecDeque::new(),
            saying: Saying::default(),
            ranges: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// The first number that has not come.
    fn next(&self) -> u64 {
        self.unordered.unwrap_or(self.window.next())
    }

    /// Where so many packets from this number on belong; `None` where they do not belong together.
    fn place(&self, number: u64, count: usize) -> Option<Place> {
        let Some(next) = self.unordered else {
            let one = || (count == 1).then(|| self.window.place(number));
            return self.window.place_run(number, count).or_else(one);
        };
        let range = number..number.saturating_add(count as u64);
        if range.end > next.saturating_add(WINDOW as u64) {
            return Some(Place::Beyond);
        }
        if number >= self.high || self.holes.covers(&range) {
            return Some(Place::Next);
        }
        (count == 1).then_some(Place::Repeated)
    }

    /// These have come.
    fn note(&mut self, range: &Range<u64>) {
        self.holes.remove(range.clone(), |_| ());
        if range.end > self.high {
            self.holes.insert(self.high..range.start.max(self.high));
            self.high = range.end;
        }
    }

    /// The packet or train that was waited for, and those that waited for it.
    fn pass(&mut self, cx: &mut Cx<'_>, number: u64, slot: &mut Packet) -> Verdict {
        let count = slot.segment_count() as u64;
        self.note(&(number..number + count));
        let Some(next) = self.unordered else { return self.window.pass(cx, slot) };
        if number > next {
            self.remember(number);
        }
        self.unordered = Some(self.holes.first().map_or(self.high, |hole| hole.start));
        Verdict::Forward
    }

    /// It came out of order, which is said a few times.
    fn remember(&mut self, number: u64) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((number, SAID_TIMES));
    }

    fn keep(&mut self, cx: &mut Cx<'_>, ahead: usize, slot: &mut Packet) -> Verdict {
        // One that is missing must find room, too; what is not taken is sent again.
        if cx.pool.is_scarce(slot.payload_len()) {
            return Verdict::Drop(DropReason::NoMemory);
        }
        let number = self.window.next() + ahead as u64;
        self.note(&(number..number + slot.segment_count() as u64));
        self.window.keep(cx, ahead, slot);
        self.remember(number);
        Verdict::Held
    }

    /// What has come behind the next number: first that of which something came lately.
    fn find_ranges(&mut self) {
        let (low, high) = (self.next(), self.high);
        self.ranges.clear();
        for (number, times) in self.recent.iter_mut().rev() {
            *times -= 1;
            if *number > low && self.ranges.len() < RANGES_MAX {
                let range = self.holes.between(*number, low, high);
                if !self.ranges.contains(&range) {
                    self.ranges.push(range);
                }
            }
        }
        self.recent.retain(|(number, times)| *times > 0 && *number > low);
        let mut end = high;
        for hole in self.holes.iter().rev() {
            if self.ranges.len() == RANGES_MAX {
                break;
            }
            let range = hole.end..end;
            if !range.is_empty() && !self.ranges.contains(&range) {
                self.ranges.push(range);
            }
            end = hole.start;
        }
    }
}

impl Receives for Receiving {
    fn take(
        &mut self,
        cx: &mut Cx<'_>,
        copier: &Copier,
        (low, attempt): (u32, u8),
        slot: &mut Packet,
    ) -> Option<Verdict> {
        let Some(number) = extend(low, self.next()) else {
            return Some(Verdict::Drop(DropReason::Malformed));
        };
        let count = slot.segment_count();
        let place = self.place(number, count)?;
        if cx.pool.pull_head(slot, LEN).is_err() || place == Place::Beyond {
            return Some(Verdict::Drop(DropReason::Malformed));
        }
        self.saying.note(cx.now(), (low, attempt), count);
        // What comes behind others is soon said, too: it is about to be taken for lost.
        let was_missing = !self.holes.is_empty();
        let verdict = match place {
            Place::Next => self.pass(cx, number, slot),
            Place::Ahead(ahead) => self.keep(cx, ahead, slot),
            _ => {
                self.saying.note_duplicate(cx.now());
                Verdict::Drop(DropReason::Duplicate)
            }
        };
        if self.saying.is_enough(cx.now(), was_missing || !self.holes.is_empty()) {
            self.acknowledge(cx, copier);
        }
        Some(verdict)
    }

    fn saying(&self) -> &Saying {
        &self.saying
    }

    fn acknowledge(&mut self, cx: &mut Cx<'_>, copier: &Copier) {
        let Some(state) = self.saying.say(cx.now()) else { return };
        self.find_ranges();
        self.bytes.clear();
        self.bytes.extend(state.emit());
        for range in &self.ranges {
            let count = u16::try_from(range.end - range.start).unwrap_or(u16::MAX);
            self.bytes.extend(Said { first: range.start as u32, count }.emit());
        }
        debug_assert!(self.bytes.len() <= STATE_LEN + RANGES_MAX * RANGE_LEN);
        let header = Header { number: self.next() as u32, kind: Kind::Acknowledged };
        tell(cx, copier, header.emit(), &self.bytes);
    }

    /// Gives up what waits, and tells what it waited for.
    fn flush(&mut self, cx: &mut Cx<'_>) {
        for packet in self.window.drain() {
            cx.discard(packet, DropReason::Shutdown);
        }
        let missing: u64 = self.holes.iter().map(|hole| hole.end - hole.start).sum();
        if missing > 0 {
            cx.report_lost(missing);
        }
        self.holes.clear();
        self.recent.clear();
        self.saying.rest();
        self.window.begin_at(self.high);
        self.unordered = self.unordered.map(|_| self.high);
    }
}
