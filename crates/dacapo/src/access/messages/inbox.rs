//! Decoder: [`Inbox`], the messages of a flow: from units to parts that are given, the most urgent
//! first.
//!
//! ```text
//!   unit -> Head -> number: open?  yes ----------------> Assembly --parts--> ready --> get_message
//!                      | no: seen before? -> duplicate      ^                 ^ (priority, order)
//!                      '-> no: opens one -------------------'   given up: Broken
//! ```
//!
//! A message is given up when it cannot become whole any more, as far as can be told: more than
//! [`PASSED_MAX`] units have come that were sent after its last one (of messages that began later
//! and are not more urgent), a unit is too far ahead of what lacks, another one needs its place, or
//! the flow has ended. A flow that keeps units in order and loses none never comes to that.
//!
//! Who lies in heads harms the messages of this flow, which are the liar's.
//!
//! Invariants: at most [`OPEN_MAX`] messages are open, each with less than a part, and together at
//! most [`EARLY_MAX`] units and [`EARLY_BYTES_MAX`] bytes ahead of a gap; while [`READY_MAX`] parts
//! or [`READY_BYTES_MAX`] bytes wait nothing is taken in ([`Inbox::has_capacity`]). Every message
//! that begins is given or reported broken once.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::assembly::{Assembly, Placed};
use super::head::Head;
use super::seen::{Number, Seen};
use std::collections::BTreeMap;

/// The most messages that are open at a time: of which a part has come.
pub const OPEN_MAX: usize = 64;

/// The most bytes of a part; a longer message is given in parts of so many.
pub const PART_LEN_MAX: usize = 256 << 10;

/// So many units sent after a message's last may come before that one.
pub const PASSED_MAX: u32 = 64;

/// The most units that wait for others before them.
pub const EARLY_MAX: usize = 4_096;

/// The most bytes of these.
pub const EARLY_BYTES_MAX: usize = 4 << 20;

/// While so many parts wait to be taken nothing is taken in.
pub const READY_MAX: usize = 256;

/// While so many bytes wait to be taken nothing is taken in.
pub const READY_BYTES_MAX: usize = 1 << 20;

/// What follows a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Another part.
    More,
    /// Nothing: the message is whole.
    Last,
    /// Nothing: the rest will not come. Such a part is empty.
    Broken,
}

/// A message, or a part of one that is longer than [`PART_LEN_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The sender's priority; smaller is more urgent.
    pub priority: u16,
    /// The number of the message in its flow, from 0, in the order in which they began.
    pub number: u64,
    /// Length of the whole message in bytes, by the sender's word.
    pub len: u64,
    /// The place of the first byte in the message.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
    /// What follows.
    pub ending: Ending,
}

impl Part {
    /// Whether it is a whole message.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.offset == 0 && self.ending == Ending::Last
    }
}

/// What became of the messages that have begun to come: `begun` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedSums {
    /// Messages of which a unit has come.
    pub begun: u64,
    /// Those whose last part was taken.
    pub given: u64,
    /// Those that were taken as [`Ending::Broken`].
    pub broken: u64,
    /// The others.
    pub open: u64,
}

impl ReceivedSums {
    /// Whether every message is accounted for.
    #[must_use]
    pub const fn closes(&self) -> bool {
        let Self { begun, given, broken, open } = *self;
        begun as u128 == (given as u128).saturating_add(broken as u128).saturating_add(open as u128)
    }
}

/// What came besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units.
    pub units: u64,
    /// Units that are none of a message, contradict others, or have a number so far ahead of others
    /// that the next ones have to confirm it ([`super::JUMP_MAX`]); nothing of them is used.
    pub malformed: u64,
    /// Units that had come before, or came after their message had ended.
    pub duplicates: u64,
    /// Units of messages so old ([`super::SEEN_LEN`]) that nobody knows whether they had begun.
    pub old: u64,
    /// Messages of which nothing came, though earlier and later ones did. Those among the last
    /// [`super::SEEN_LEN`] are counted at the end.
    pub missed: u64,
}

/// The messages of a flow that is received.
#[derive(Debug, Default)]
pub struct Inbox {
    open: BTreeMap<u64, Assembly>,
    seen: Seen,
    ready: BTreeMap<(u16, u64), Part>,
    ready_bytes: usize,
    /// Parts that have become ready.
    order: u64,
    early: (usize, usize),
    sums: ReceivedSums,
    counters: Counters,
    is_finished: bool,
}

impl Inbox {
    /// What has become of all messages.
    #[must_use]
    pub const fn sums(&self) -> &ReceivedSums {
        &self.sums
    }

    /// What came besides.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { missed: self.seen.missed(), ..self.counters }
    }

    /// Whether units are taken in; where not, a part can be taken.
    #[must_use]
    pub fn has_capacity(&self) -> bool {
        self.ready.len() < READY_MAX && self.ready_bytes < READY_BYTES_MAX
    }

    /// Whether a part can be taken.
    #[must_use]
    pub fn has_part(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the next part of the most urgent message that has one; of equals in the order in which
    /// they became whole.
    pub fn get_message(&mut self) -> Option<Part> {
        let (_, part) = self.ready.pop_first()?;
        self.ready_bytes = self.ready_bytes.saturating_sub(part.data.len());
        let ended = match part.ending {
            Ending::More => return Some(part),
            Ending::Last => &mut self.sums.given,
            Ending::Broken => &mut self.sums.broken,
        };
        *ended = ended.saturating_add(1);
        self.sums.open = self.sums.open.saturating_sub(1);
        Some(part)
    }

    /// A unit has come; after [`Inbox::finish`] none does, and nothing of one is used.
    pub fn handle_unit(&mut self, unit: &[u8]) {
        if self.is_finished {
            return;
        }
        self.counters.units = self.counters.units.saturating_add(1);
        let Ok((head, bytes)) = Head::parse(unit) else { return self.count_malformed() };
        if self.open.contains_key(&head.number) {
            self.seen.go_on();
        } else {
            match self.seen.look_up(head.number) {
                Number::New => self.begin(&head),
                Number::Seen => return self.count_duplicate(),
                Number::Old => return self.count_old(),
                Number::Doubtful => return self.count_malformed(),
            }
        }
        let Some(message) = self.open.get_mut(&head.number) else { return };
        let before = message.early();
        let placed = message.place(&head, bytes);
        let after = message.early();
        if matches!(placed, Placed::Continues | Placed::Early) {
            message.touched = self.counters.units;
        }
        self.early.0 = self.early.0.saturating_sub(before.0).saturating_add(after.0);
        self.early.1 = self.early.1.saturating_sub(before.1).saturating_add(after.1);
        match placed {
            Placed::Duplicate => return self.count_duplicate(),
            Placed::Malformed => return self.count_malformed(),
            Placed::TooFar => self.give_up(head.number),
            Placed::Early if self.is_full_of_early() => self.give_up(head.number),
            Placed::Early => {}
            Placed::Continues => self.collect(head.number),
        }
        self.pass(&head);
    }

    /// The flow has ended: what is not whole will not be.
    pub fn finish(&mut self) {
        self.is_finished = true;
        self.seen.finish();
        while let Some((&number, _)) = self.open.first_key_value() {
            self.give_up(number);
        }
    }

    fn count_malformed(&mut self) {
        self.counters.malformed = self.counters.malformed.saturating_add(1);
    }

    fn count_duplicate(&mut self) {
        self.counters.duplicates = self.counters.duplicates.saturating_add(1);
    }

    fn count_old(&mut self) {
        self.counters.old = self.counters.old.saturating_add(1);
    }

    fn is_full_of_early(&self) -> bool {
        self.early.0 > EARLY_MAX || self.early.1 > EARLY_BYTES_MAX
    }

    /// Opens a message. The one of which nothing has come for the longest time makes room.
    fn begin(&mut self, head: &Head) {
        if self.open.len() >= OPEN_MAX {
            let oldest = self.open.iter().min_by_key(|(_, message)| message.touched);
            oldest.map(|(&number, _)| number).into_iter().for_each(|number| self.give_up(number));
        }
        self.sums.begun = self.sums.begun.saturating_add(1);
        self.sums.open = self.sums.open.saturating_add(1);
        self.open.insert(head.number, Assembly::new(head));
    }

    /// Takes the parts that are whole out of a message.
    fn collect(&mut self, number: u64) {
        let Some(message) = self.open.get_mut(&number) else { return };
        let (priority, len) = (message.priority, message.len);
        let mut parts = Vec::new();
        let mut is_over = false;
        while !is_over {
            let offset = message.given;
            let Some((data, is_last)) = message.take_part() else { break };
            is_over = is_last;
            let ending = if is_last { Ending::Last } else { Ending::More };
            parts.push(Part { priority, number, len, offset, data, ending });
        }
        parts.into_iter().for_each(|part| self.push_ready(part));
        if is_over {
            self.open.remove(&number);
        }
    }

    /// A message will not become whole.
    fn give_up(&mut self, number: u64) {
        let Some(message) = self.open.remove(&number) else { return };
        let (units, bytes) = message.early();
        self.early.0 = self.early.0.saturating_sub(units);
        self.early.1 = self.early.1.saturating_sub(bytes);
        let Assembly { priority, len, given: offset, .. } = message;
        let (data, ending) = (Vec::new(), Ending::Broken);
        self.push_ready(Part { priority, number, len, offset, data, ending });
    }

    fn push_ready(&mut self, part: Part) {
        self.ready_bytes = self.ready_bytes.saturating_add(part.data.len());
        self.ready.insert((part.priority, self.order), part);
        self.order = self.order.saturating_add(1);
    }

    /// A unit has come that was sent after all those of messages that began before its own and are
    /// as urgent at least: the sender begins none while one of these is left.
    fn pass(&mut self, head: &Head) {
        let mut late = Vec::new();
        for (&number, message) in self.open.range_mut(..head.number) {
            if message.priority <= head.priority {
                message.passed = message.passed.saturating_add(1);
                if message.passed > PASSED_MAX {
                    late.push(number);
                }
            }
        }
        late.into_iter().for_each(|number| self.give_up(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit of a message whose bytes are all its number.
    fn unit(priority: u16, number: u64, len: u64, offset: u64, bytes: usize) -> Vec<u8> {
        let head = Head { priority, number, len, offset }.emit();
        [&head[..], &vec![number as u8; bytes]].concat()
    }

    /// Takes all: number, bytes and ending of each part.
    fn taken(inbox: &mut Inbox) -> Vec<(u64, usize, Ending)> {
        let parts = std::iter::from_fn(|| inbox.get_message());
        let parts: Vec<_> = parts.map(|it| (it.number, it.data.len(), it.ending)).collect();
        assert!(inbox.sums().closes() && !inbox.has_part(), "{:?}", inbox.sums());
        parts
    }

    #[test]
    fn the_most_urgent_is_given_first_and_equals_as_they_became_whole() {
        let mut inbox = Inbox::default();
        for (priority, number) in [(5, 0), (5, 1), (1, 2), (9, 3), (1, 4)] {
            inbox.handle_unit(&unit(priority, number, 4, 0, 4));
        }
        let numbers: Vec<_> = taken(&mut inbox).into_iter().map(|(number, ..)| number).collect();
        assert_eq!(numbers, [2, 4, 0, 1, 3]);
        assert_eq!(*inbox.sums(), ReceivedSums { begun: 5, given: 5, broken: 0, open: 0 });
    }

    #[test]
    fn a_gap_breaks_one_message_and_what_came_of_it_is_reported() {
        let mut inbox = Inbox::default();
        let long = 3 * PART_LEN_MAX as u64;
        let step = PART_LEN_MAX / 8;
        for at in (0..24).filter(|at| *at != 10) {
            inbox.handle_unit(&unit(5, 0, long, (at * step) as u64, step));
        }
        for number in 1..=PASSED_MAX as u64 + 1 {
            inbox.handle_unit(&unit(5, number, 1, 0, 1));
        }
        let parts = taken(&mut inbox);
        assert_eq!(parts[0], (0, PART_LEN_MAX, Ending::More));
        assert_eq!(parts.iter().filter(|(.., ending)| *ending == Ending::Broken).count(), 1);
        assert_eq!(inbox.sums().given, PASSED_MAX as u64 + 1);
        assert_eq!(inbox.early, (0, 0));
        // The rest of it opens nothing anew.
        inbox.handle_unit(&unit(5, 0, long, (10 * step) as u64, step));
        assert!(!inbox.has_part() && inbox.sums().open == 0);
        assert!(inbox.counters().duplicates > 0);
    }

    #[test]
    fn who_is_overtaken_by_the_more_urgent_is_waited_for() {
        let mut inbox = Inbox::default();
        inbox.handle_unit(&unit(5, 0, 2, 0, 1));
        for number in 1..1_000 {
            inbox.handle_unit(&unit(4, number, 1, 0, 1));
            taken(&mut inbox);
        }
        inbox.handle_unit(&unit(5, 0, 2, 1, 1));
        assert_eq!(taken(&mut inbox), [(0, 2, Ending::Last)]);
    }

    #[test]
    fn of_more_open_messages_than_are_kept_the_one_that_rested_longest_breaks() {
        let mut inbox = Inbox::default();
        for number in 0..OPEN_MAX as u64 {
            inbox.handle_unit(&unit(500 - number as u16, number, 9, 0, 1));
        }
        inbox.handle_unit(&unit(500, 0, 9, 1, 1));
        inbox.handle_unit(&unit(0, 99, 9, 0, 1));
        assert_eq!(taken(&mut inbox), [(1, 0, Ending::Broken)]);
        assert_eq!((inbox.open.len(), inbox.sums().open), (OPEN_MAX, OPEN_MAX as u64));
        inbox.finish();
        assert_eq!(taken(&mut inbox).len(), OPEN_MAX);
        assert_eq!(inbox.sums().broken, OPEN_MAX as u64 + 1);
        inbox.handle_unit(&unit(0, 2_000, 1, 0, 1));
        assert!(!inbox.has_part() && inbox.sums().open == 0, "it is over");
        assert_eq!(inbox.counters().missed, 99 - OPEN_MAX as u64);
    }

    #[test]
    fn nothing_is_kept_by_a_length_that_a_head_says() {
        let mut inbox = Inbox::default();
        for number in 0..OPEN_MAX as u64 {
            inbox.handle_unit(&unit(number as u16, number, u64::MAX, 0, 1));
            inbox.handle_unit(&unit(number as u16, number, u64::MAX, u64::MAX - 1, 1));
        }
        let broken = taken(&mut inbox);
        assert_eq!(broken.len(), OPEN_MAX, "a byte so far ahead has no hope");
        for at in 0..=EARLY_MAX as u64 {
            inbox.handle_unit(&unit(0, 100, u64::MAX, 2 + 2 * at, 1));
        }
        assert_eq!(taken(&mut inbox), [(100, 0, Ending::Broken)]);
        assert_eq!(inbox.early, (0, 0));
        inbox.handle_unit(b"no unit");
        assert_eq!(inbox.counters().malformed, 1);
    }

    #[test]
    fn a_user_that_takes_nothing_stops_it_and_a_part_makes_room() {
        let mut inbox = Inbox::default();
        let mut number = 0;
        while inbox.has_capacity() {
            inbox.handle_unit(&unit(5, number, 60_000, 0, 60_000));
            number += 1;
        }
        assert!(inbox.ready_bytes < READY_BYTES_MAX + 60_000);
        assert!(inbox.get_message().is_some() && inbox.has_capacity());
        let mut inbox = Inbox::default();
        for number in 0..READY_MAX as u64 {
            assert!(inbox.has_capacity());
            inbox.handle_unit(&unit(5, number, 0, 0, 0));
        }
        assert!(!inbox.has_capacity());
    }
}
