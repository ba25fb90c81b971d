//! [`Window`]: the packets that wait for the ones before them.
//!
//! A queue of slots from the next expected number on, some of them empty, and the memory of which
//! of the last numbers came.
//!
//! ```text
//!            next
//!             v
//!   …seen…  [ - ][ - ][ p ][ p ][ - ][ p ]      - missing   p waiting
//!   first is never waiting: it would have been released
//! ```
//!
//! A train waits in the slot of its first number, and fills those of the others.
//!
//! Invariant: at most [`WINDOW`] slots; the slot at the front is missing.

use dacapo_base::Time;
use dacapo_packet::Packet;
use std::collections::VecDeque;

/// How far ahead of the next expected number a packet may be.
pub(crate) const WINDOW: usize = 8_192;

/// How many numbers before the next one are remembered, to tell repeated from late packets.
const MEMORY_WORDS: usize = 128;

/// What a number means against the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the one that is waited for.
    Next,
    /// It is this far ahead.
    Ahead(usize),
    /// It came before.
    Repeated,
    /// It was given up before, or is too old to say.
    Late,
    /// It is further ahead than the window.
    Beyond,
}

/// The place of one number.
#[derive(Debug)]
enum Slot {
    Missing,
    /// The packet, or the train that begins here.
    Came(Packet),
    /// In a train that begins before.
    Within,
}

#[derive(Debug)]
pub(crate) struct Window {
    next: u64,
    waiting: VecDeque<Slot>,
    seen: [u64; MEMORY_WORDS],
    held: usize,
}

impl Window {
    pub fn new() -> Self {
        Self { next: 0, waiting: VecDeque::new(), seen: [0; MEMORY_WORDS], held: 0 }
    }

    /// Begins anew with this number as the next; nothing may be waiting.
    pub fn begin_at(&mut self, number: u64) {
        self.waiting.clear();
        (self.next, self.seen) = (number, [0; MEMORY_WORDS]);
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    /// How many packets wait.
    pub fn held(&self) -> usize {
        self.held
    }

    pub fn place(&self, number: u64) -> Place {
        let Some(ahead) = number.checked_sub(self.next) else {
            return if self.was_seen(number) { Place::Repeated } else { Place::Late };
        };
        match usize::try_from(ahead) {
            Ok(0) => Place::Next,
            Ok(ahead) if ahead < WINDOW => match self.waiting.get(ahead) {
                None | Some(Slot::Missing) => Place::Ahead(ahead),
                Some(_) => Place::Repeated,
            },
            _ => Place::Beyond,
        }
    }

    /// The place of `count` numbers from this one on, when they are all missing and within the
    /// window.
    pub fn place_run(&self, number: u64, count: usize) -> Option<Place> {
        let ahead = usize::try_from(number.checked_sub(self.next)?).ok()?;
        let end = ahead.checked_add(count).filter(|end| *end <= WINDOW)?;
        let known = ahead.min(self.waiting.len())..end.min(self.waiting.len());
        let is_free = self.waiting.range(known).all(|slot| matches!(slot, Slot::Missing));
        let place = if ahead == 0 { Place::Next } else { Place::Ahead(ahead) };
        is_free.then_some(place)
    }

    fn bit(number: u64) -> (usize, u64) {
        ((number as usize / 64) % MEMORY_WORDS, 1 << (number % 64))
    }

    fn was_seen(&self, number: u64) -> bool {
        let (word, bit) = Self::bit(number);
        self.next - number < (MEMORY_WORDS as u64) * 64 && self.seen[word] & bit != 0
    }

    fn remember(&mut self, number: u64, came: bool) {
        let (word, bit) = Self::bit(number);
        self.seen[word] = if came { self.seen[word] | bit } else { self.seen[word] & !bit };
    }

    /// The next number came and goes up at once.
    pub fn advance(&mut self) {
        self.remember(self.next, true);
        self.next += 1;
        self.waiting.pop_front();
    }

    /// Keeps a packet or train whose first number is `ahead` of the next; all of it is missing and
    /// within [`WINDOW`].
    pub fn hold(&mut self, ahead: usize, packet: Packet) {
        let count = packet.segment_count();
        while self.waiting.len() < ahead + count {
            self.waiting.push_back(Slot::Missing);
        }
        self.waiting.range_mut(ahead..ahead + count).for_each(|slot| *slot = Slot::Within);
        self.waiting[ahead] = Slot::Came(packet);
        self.held += count;
    }

    /// Takes the packet or train that is next, when it waits already.
    pub fn release(&mut self) -> Option<Packet> {
        let Slot::Came(packet) = self.waiting.front_mut()? else { return None };
        let packet = packet.take();
        let count = packet.segment_count();
        self.held -= count;
        (0..count).for_each(|_| self.advance());
        Some(packet)
    }

    /// Gives up the missing numbers before the first waiting packet; returns how many.
    pub fn skip(&mut self) -> u64 {
        let mut missing = 0;
        while self.held > 0 && matches!(self.waiting.front(), Some(Slot::Missing)) {
            self.give_up_next();
            missing += 1;
        }
        missing
    }

    /// Gives up everything before `number`; nothing may be waiting.
    pub fn jump(&mut self, number: u64) -> u64 {
        let missing = number.saturating_sub(self.next);
        self.waiting.clear();
        if missing >= (MEMORY_WORDS as u64) * 64 {
            self.seen = [0; MEMORY_WORDS];
            self.next = number;
        }
        while self.next < number {
            self.give_up_next();
        }
        missing
    }

    fn give_up_next(&mut self) {
        self.remember(self.next, false);
        self.next += 1;
        self.waiting.pop_front();
    }

    /// The number and the arrival of the packet that has waited longest.
    pub fn oldest(&self) -> Option<(u64, Time)> {
        let came = self.waiting.iter().zip(self.next..).filter_map(|(slot, number)| match slot {
            Slot::Came(packet) => Some((number, packet.time)),
            Slot::Missing | Slot::Within => None,
        });
        came.min_by_key(|(_, time)| *time)
    }

    pub fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.held = 0;
        self.waiting.drain(..).filter_map(|slot| match slot {
            Slot::Came(packet) => Some(packet),
            Slot::Missing | Slot::Within => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_packet::{Layout, Pool};

    #[test]
    fn numbers_before_the_next_are_repeated_or_late() {
        let mut window = Window::new();
        window.advance();
        assert_eq!(window.jump(5), 4);
        assert_eq!(window.place(0), Place::Repeated);
        assert_eq!(window.place(3), Place::Late);
        assert_eq!(window.place(5), Place::Next);
        assert_eq!(window.place(7), Place::Ahead(2));
        assert_eq!(window.place(5 + WINDOW as u64), Place::Beyond);
    }

    #[test]
    fn skip_gives_up_only_what_is_missing_before_the_first() {
        let mut pool = Pool::new(1 << 16);
        let mut window = Window::new();
        window.hold(3, pool.packet_from(0, b"d", 0).unwrap());
        window.hold(5, pool.packet_from(0, b"f", 0).unwrap());
        assert_eq!(window.place(3), Place::Repeated);
        assert_eq!(window.skip(), 3);
        pool.free(window.release().unwrap());
        assert!(window.release().is_none());
        assert_eq!((window.next(), window.held(), window.skip()), (4, 1, 1));
        window.drain().for_each(|packet| pool.free(packet));
        assert_eq!(pool.live_views(), 0);
    }

    #[test]
    fn a_train_waits_as_one_and_takes_the_places_of_all_its_numbers() {
        let mut pool = Pool::new(1 << 20);
        let layout = Layout { head: 0, tail: 0, segment: 10, segmented: true };
        let mut window = Window::new();
        window.hold(6, pool.packet_from(0, b"g", 0).unwrap());
        assert_eq!(window.place_run(2, 4), Some(Place::Ahead(2)));
        assert_eq!(window.place_run(2, 5), None, "6 is there");
        assert_eq!(window.place_run(0, 6), Some(Place::Next));
        assert_eq!(window.place_run(WINDOW as u64 - 4, 5), None, "one is beyond");
        window.hold(2, pool.alloc_train(&layout, 35).unwrap());
        assert_eq!(window.held(), 5);
        for number in 2..6 {
            assert_eq!(window.place(number), Place::Repeated, "{number}");
        }
        assert_eq!(window.skip(), 2);
        let train = window.release().unwrap();
        assert_eq!((train.segment_count(), window.next(), window.held()), (4, 6, 1));
        let last = window.release().unwrap();
        assert_eq!((window.next(), window.held()), (7, 0));
        assert_eq!([2, 5, 6].map(|it| window.place(it)), [Place::Repeated; 3]);
        assert_eq!([0, 1].map(|it| window.place(it)), [Place::Late; 2]);
        [train, last].into_iter().for_each(|packet| pool.free(packet));
    }

    #[test]
    fn memory_is_cleared_by_a_far_jump() {
        let mut window = Window::new();
        window.advance();
        window.jump(1 << 40);
        assert_eq!(window.place((1 << 40) - 1), Place::Late);
        assert_eq!(window.place(0), Place::Late);
    }
}
