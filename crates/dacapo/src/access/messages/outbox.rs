//! [`Outbox`]: messages that wait, and the unit that goes next.
//!
//! ```text
//!   accept -> (priority, order): bytes, offset, number once it has begun -> next_unit, advance
//! ```
//!
//! Invariants: the next unit is of the most urgent message, of equals of the oldest; but of at most
//! [`BEGUN_MAX`] messages only a part has gone, because the other end keeps so many apart. So a
//! message begins when nothing more urgent and no older equal is left, and its number, given then,
//! says so to the other end. Before a message at most [`MESSAGES_MAX`] messages and [`BYTES_MAX`]
//! bytes wait, which are as urgent as it or more; one before which nothing waits may be longer. So
//! what is urgent finds room however much of the rest waits, as long as all together are less than
//! [`ALL_MAX`] messages. Bytes are bounded before each message, not in all: each of many priorities
//! may have its own. Messages are cut where they lie; nothing is copied.

use super::head::{HEAD_LEN, Head};
use super::ticket::{Cause, Outcome, Sums, Ticket};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most messages that wait and are as urgent as one of them, or more.
pub const MESSAGES_MAX: usize = 1_024;

/// The most bytes of these, but for a message before which nothing waits.
pub const BYTES_MAX: usize = 1 << 20;

/// The most messages that wait.
pub const ALL_MAX: usize = 4_096;

/// Outboxes of this process so far, so that a ticket says which one it is of.
static OUTBOXES: AtomicU64 = AtomicU64::new(0);

/// The most bytes of a unit, its head included.
pub const UNIT_LEN_MAX: usize = 64 << 10;

/// The most messages of which a part has gone: half of what the other end keeps apart.
pub const BEGUN_MAX: usize = super::inbox::OPEN_MAX / 2;

/// A message that has not gone whole.
#[derive(Debug)]
struct Outgoing {
    data: Vec<u8>,
    offset: usize,
    /// Given when it begins.
    number: Option<u64>,
}

impl Outgoing {
    /// Its bytes in the unit that goes next.
    fn piece(&self, piece_len: usize) -> &[u8] {
        let rest = self.data.get(self.offset..).unwrap_or_default();
        rest.get(..piece_len).unwrap_or(rest)
    }
}

/// A unit as it goes: its head, if it is of a message, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    /// What stands before the bytes.
    pub head: Option<[u8; HEAD_LEN]>,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl Unit<'_> {
    /// Length in bytes, with the head.
    #[must_use]
    pub fn total_len(&self) -> usize {
        self.head.map_or(0, |head| head.len()) + self.bytes.len()
    }
}

/// How much waits of one priority.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    messages: usize,
    /// What has not gone.
    bytes: usize,
}

/// Messages that wait for their flow to take them.
#[derive(Debug)]
pub struct Outbox {
    /// Which of this process it is.
    id: u64,
    /// The most bytes of a message in a unit; at least one.
    piece_len: usize,
    waiting: BTreeMap<(u16, u64), Outgoing>,
    /// By priority, where there is something.
    loads: BTreeMap<u16, Load>,
    /// Of all that wait, those that have not gone.
    units: u64,
    /// Messages of which a part has gone.
    begun: usize,
    next_number: u64,
    sums: Sums,
    /// Those that ended with the flow.
    failed: BTreeMap<(u16, u64), Cause>,
}

impl Outbox {
    /// An empty one for a flow whose units are at most so long; `None` when a unit has no room for
    /// a byte behind its head.
    #[must_use]
    pub fn new(unit_len_max: usize) -> Option<Self> {
        let piece_len = unit_len_max.min(UNIT_LEN_MAX).checked_sub(HEAD_LEN)?;
        (piece_len > 0).then(|| Self {
            id: OUTBOXES.fetch_add(1, Ordering::Relaxed),
            piece_len,
            waiting: BTreeMap::new(),
            loads: BTreeMap::new(),
            units: 0,
            begun: 0,
            next_number: 0,
            sums: Sums::default(),
            failed: BTreeMap::new(),
        })
    }

    /// What has become of all messages.
    #[must_use]
    pub const fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Whether a message of `len` bytes is accepted now.
    #[must_use]
    pub fn has_capacity(&self, priority: u16, len: usize) -> bool {
        let before = self.loads.range(..=priority).map(|(_, load)| *load);
        let before = before.fold(Load::default(), |all, load| Load {
            messages: all.messages + load.messages,
            bytes: all.bytes.saturating_add(load.bytes),
        });
        let bytes = before.bytes.saturating_add(len);
        let is_fit = before.messages < MESSAGES_MAX && bytes <= BYTES_MAX;
        self.waiting.len() < ALL_MAX && (before.messages == 0 || is_fit)
    }

    /// The units in which a message of `len` bytes goes.
    #[must_use]
    pub fn units_of(&self, len: usize) -> u64 {
        len.div_ceil(self.piece_len).max(1) as u64
    }

    /// Units that wait.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Accepts a message for sending.
    ///
    /// # Errors
    /// The message, when there is no room for it.
    pub fn accept(&mut self, priority: u16, data: Vec<u8>) -> Result<Ticket, Vec<u8>> {
        if !self.has_capacity(priority, data.len()) {
            return Err(data);
        }
        let order = self.sums.accepted;
        self.sums.accepted += 1;
        self.sums.open += 1;
        let load = self.loads.entry(priority).or_default();
        load.messages += 1;
        load.bytes += data.len();
        self.units += self.units_of(data.len());
        self.waiting.insert((priority, order), Outgoing { data, offset: 0, number: None });
        Ok(Ticket { outbox: self.id, priority, order })
    }

    /// The message of which a unit goes next.
    fn turn(&self) -> Option<((u16, u64), &Outgoing)> {
        let may_begin = self.begun < BEGUN_MAX;
        let mut all = self.waiting.iter().map(|(key, message)| (*key, message));
        all.find(|(_, message)| may_begin || message.number.is_some())
    }

    /// The unit that goes next; until [`Outbox::advance`] it is the same, unless a more urgent one
    /// is accepted.
    #[must_use]
    pub fn next_unit(&self) -> Option<Unit<'_>> {
        let ((priority, _), message) = self.turn()?;
        let number = message.number.unwrap_or(self.next_number);
        let (len, offset) = (message.data.len() as u64, message.offset as u64);
        let head = Head { priority, number, len, offset }.emit();
        Some(Unit { head: Some(head), bytes: message.piece(self.piece_len) })
    }

    /// The unit that was next has been handed over.
    pub fn advance(&mut self) {
        let Some((key, message)) = self.turn() else { return };
        let len = message.piece(self.piece_len).len();
        let (is_first, is_last) =
            (message.number.is_none(), message.offset + len == message.data.len());
        self.lighten(key.0, len, is_last);
        self.units = self.units.saturating_sub(1);
        let number = self.next_number;
        self.next_number += u64::from(is_first);
        self.begun += usize::from(is_first);
        if is_last {
            self.waiting.remove(&key);
            self.begun -= 1;
            self.sums.sent += 1;
            self.sums.open -= 1;
        } else if let Some(message) = self.waiting.get_mut(&key) {
            message.offset += len;
            message.number.get_or_insert(number);
        }
    }

    /// So many bytes of this priority have gone, and with them a message or not.
    fn lighten(&mut self, priority: u16, len: usize, is_last: bool) {
        let Some(load) = self.loads.get_mut(&priority) else { return };
        load.messages -= usize::from(is_last);
        load.bytes -= len;
        if load.messages == 0 {
            self.loads.remove(&priority);
        }
    }

    /// The flow has ended: what waits comes to nothing.
    pub fn fail(&mut self) {
        for (key, message) in std::mem::take(&mut self.waiting) {
            let handed = message.offset as u64;
            let cause = match message.number {
                None => Cause::NotBegun,
                Some(_) => Cause::UnderWay { handed },
            };
            self.failed.insert(key, cause);
            self.sums.failed += 1;
            self.sums.open -= 1;
        }
        (self.units, self.begun) = (0, 0);
        self.loads.clear();
    }

    /// Whether a ticket is of a message that was accepted here.
    #[must_use]
    pub const fn has_given(&self, ticket: Ticket) -> bool {
        ticket.outbox == self.id && ticket.order < self.sums.accepted
    }

    /// How a message ended; `None` while it has not, or for a ticket of another sender.
    #[must_use]
    pub fn outcome(&self, ticket: Ticket) -> Option<Outcome> {
        let key = (ticket.priority, ticket.order);
        if !self.has_given(ticket) || self.waiting.contains_key(&key) {
            return None;
        }
        Some(self.failed.get(&key).map_or(Outcome::Sent, |cause| Outcome::Failed(*cause)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes units until none is left: priority, number, offset and bytes of each.
    fn drain(outbox: &mut Outbox) -> Vec<(u16, u64, u64, usize)> {
        let mut units = Vec::new();
        while let Some(unit) = outbox.next_unit() {
            let all = [&unit.head.unwrap()[..], unit.bytes].concat();
            assert_eq!(all.len(), unit.total_len());
            let (head, bytes) = Head::parse(&all).unwrap();
            units.push((head.priority, head.number, head.offset, bytes.len()));
            outbox.advance();
            assert!(outbox.sums().closes());
        }
        assert_eq!((outbox.loads.len(), outbox.units(), outbox.begun), (0, 0, 0));
        units
    }

    #[test]
    fn a_message_is_cut_to_units_and_one_without_bytes_is_a_unit_too() {
        let mut outbox = Outbox::new(HEAD_LEN + 10).unwrap();
        let long = outbox.accept(5, vec![1; 25]).unwrap();
        let empty = outbox.accept(5, Vec::new()).unwrap();
        assert_eq!((outbox.units(), outbox.outcome(long)), (4, None));
        let units = drain(&mut outbox);
        assert_eq!(units, [(5, 0, 0, 10), (5, 0, 10, 10), (5, 0, 20, 5), (5, 1, 0, 0)]);
        for ticket in [long, empty] {
            assert_eq!(outbox.outcome(ticket), Some(Outcome::Sent));
        }
        assert_eq!(*outbox.sums(), Sums { accepted: 2, sent: 2, failed: 0, open: 0 });
        assert!(Outbox::new(HEAD_LEN).is_none() && Outbox::new(0).is_none());
        let mut whole = Outbox::new(usize::MAX).unwrap();
        whole.accept(0, vec![0; UNIT_LEN_MAX]).unwrap();
        assert_eq!(whole.next_unit().unwrap().total_len(), UNIT_LEN_MAX);
    }

    #[test]
    fn the_more_urgent_overtakes_between_two_units_and_equals_keep_their_order() {
        let mut outbox = Outbox::new(HEAD_LEN + 10).unwrap();
        outbox.accept(9, vec![9; 20]).unwrap();
        outbox.accept(9, vec![8; 5]).unwrap();
        outbox.advance();
        outbox.accept(1, vec![1; 15]).unwrap();
        let units = drain(&mut outbox);
        assert_eq!(units, [(1, 1, 0, 10), (1, 1, 10, 5), (9, 0, 10, 10), (9, 2, 0, 5)]);
    }

    #[test]
    fn of_a_bounded_number_of_messages_only_a_part_has_gone() {
        let mut outbox = Outbox::new(HEAD_LEN + 1).unwrap();
        for priority in (0..2 * BEGUN_MAX as u16).rev() {
            outbox.accept(priority, vec![0; 2]).unwrap();
            outbox.advance();
            assert!(outbox.begun <= BEGUN_MAX);
        }
        let begun: Vec<_> = outbox.waiting.values().filter(|it| it.number.is_some()).collect();
        assert!(begun.len() <= BEGUN_MAX);
        drain(&mut outbox);
        assert_eq!(outbox.sums().sent, 2 * BEGUN_MAX as u64);
    }

    #[test]
    fn what_does_not_fit_is_given_back_and_a_longer_one_is_taken_before_which_nothing_waits() {
        let mut outbox = Outbox::new(1_000).unwrap();
        let long = outbox.accept(7, vec![7; BYTES_MAX + 1]).unwrap();
        assert_eq!(outbox.accept(7, vec![1]), Err(vec![1]));
        assert_eq!(outbox.accept(8, Vec::new()), Err(Vec::new()));
        outbox.advance();
        let room = 1_000 - HEAD_LEN - 1;
        assert!(
            outbox.has_capacity(7, room) && !outbox.has_capacity(7, room + 1),
            "it comes by units"
        );
        drain(&mut outbox);
        assert_eq!(outbox.outcome(long), Some(Outcome::Sent));
    }

    #[test]
    fn the_urgent_finds_room_however_much_of_the_rest_waits_and_all_are_bounded() {
        let mut outbox = Outbox::new(1_000).unwrap();
        outbox.accept(7, vec![7; 2 * BYTES_MAX]).unwrap();
        outbox.accept(6, vec![6; 2 * BYTES_MAX]).unwrap();
        assert!(!outbox.has_capacity(6, 0) && outbox.has_capacity(5, usize::MAX));
        for priority in (0..6).rev() {
            for _ in 0..MESSAGES_MAX.min(ALL_MAX - outbox.waiting.len()) {
                outbox.accept(priority, Vec::new()).unwrap();
            }
            assert!(!outbox.has_capacity(priority, 0));
        }
        assert_eq!(outbox.waiting.len(), ALL_MAX);
        assert!(!outbox.has_capacity(0, 0));
        drain(&mut outbox);
    }

    #[test]
    fn a_flow_that_ends_fails_what_waits_and_says_what_was_under_way() {
        let mut outbox = Outbox::new(HEAD_LEN + 10).unwrap();
        let tickets = [(3, 5), (4, 15), (5, 15)];
        let tickets = tickets.map(|(priority, len)| outbox.accept(priority, vec![0; len]).unwrap());
        outbox.advance();
        outbox.advance();
        outbox.fail();
        outbox.fail();
        let under_way = Outcome::Failed(Cause::UnderWay { handed: 10 });
        let outcomes = [Outcome::Sent, under_way, Outcome::Failed(Cause::NotBegun)];
        for (ticket, outcome) in tickets.into_iter().zip(outcomes) {
            assert_eq!(outbox.outcome(ticket), Some(outcome));
            assert!(!outcome.to_string().is_empty());
        }
        assert_eq!(*outbox.sums(), Sums { accepted: 3, sent: 1, failed: 2, open: 0 });
        assert!(outbox.sums().closes() && outbox.next_unit().is_none());
        let mut other = Outbox::new(HEAD_LEN + 10).unwrap();
        let ticket = other.accept(3, vec![0; 5]).unwrap();
        drain(&mut other);
        assert_eq!(other.outcome(ticket), Some(Outcome::Sent));
        assert_eq!(outbox.outcome(ticket), None, "it is of another sender");
    }
}
