//! [`Window`]: the packets that wait for the ones before them.
//!
//! Slots by number in pages, of which only those are there in which something waits, and the memory
//! of which of the last numbers came.
//!
//! ```text
//!               next
//!                v
//!   …seen… | . . - - | none | - p p - | - p - - |      - missing   p waiting
//!            page      page   page      page
//! ```
//!
//! A train waits in the slot of its first number, and fills those of the others.
//!
//! Invariants: nothing waits before `next` or [`WINDOW`] from it; `next` is never waiting, for it
//! would have been released; a packet far ahead takes a page or two, and not all below it.

use crate::runs::up_or_drop;
use dacapo_base::Time;
use dacapo_lift::{Cx, Verdict};
use dacapo_packet::Packet;
use std::collections::VecDeque;

/// How far ahead of the next expected number a packet may be.
pub(crate) const WINDOW: usize = 8_192;

/// How many numbers a page has.
const PAGE: usize = 64;

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

type Page = [Slot; PAGE];

#[derive(Debug)]
pub(crate) struct Window {
    next: u64,
    /// From the page of `next` on.
    pages: VecDeque<Option<Box<Page>>>,
    /// An empty page for the next that is needed.
    spare: Option<Box<Page>>,
    seen: [u64; MEMORY_WORDS],
    held: usize,
}

impl Window {
    pub fn new() -> Self {
        let (pages, spare) = (VecDeque::new(), None);
        Self { next: 0, pages, spare, seen: [0; MEMORY_WORDS], held: 0 }
    }

    /// Begins anew with this number as the next; nothing may be waiting.
    pub fn begin_at(&mut self, number: u64) {
        self.pages.clear();
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
            Ok(ahead) if ahead >= WINDOW => Place::Beyond,
            Ok(ahead) if self.is_missing(number) => Place::Ahead(ahead),
            Ok(_) => Place::Repeated,
            Err(_) => Place::Beyond,
        }
    }

    /// The page of a number, counted from that of the next one, and the place in it.
    fn page_of(&self, number: u64) -> (usize, usize) {
        let page = number / PAGE as u64 - self.next / PAGE as u64;
        (page as usize, (number % PAGE as u64) as usize)
    }

    fn is_missing(&self, number: u64) -> bool {
        let (page, place) = self.page_of(number);
        let page = self.pages.get(page).and_then(Option::as_ref);
        page.is_none_or(|page| matches!(page[place], Slot::Missing))
    }

    /// The slot of a number whose page is there.
    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let (page, place) = self.page_of(number);
        self.pages.get_mut(page)?.as_mut().map(|page| &mut page[place])
    }

    /// Fills the slot of a number.
    fn fill(&mut self, number: u64, slot: Slot) {
        let (page, place) = self.page_of(number);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let empty = || Box::new([const { Slot::Missing }; PAGE]);
        let page = self.pages[page].get_or_insert_with(|| self.spare.take().unwrap_or_else(empty));
        page[place] = slot;
    }

    /// The next number is behind, and its page when it was the last of it.
    fn pass_next(&mut self) {
        if !self.pages.is_empty() {
            if let Some(slot) = self.slot(self.next) {
                *slot = Slot::Missing;
            }
            let is_last = self.next % PAGE as u64 == PAGE as u64 - 1;
            if is_last && let Some(Some(page)) = self.pages.pop_front() {
                self.spare = Some(page);
            }
        }
        self.next += 1;
    }

    /// The place of `count` numbers from this one on, when they are all missing and within the
    /// window.
    pub fn place_run(&self, number: u64, count: usize) -> Option<Place> {
        let ahead = usize::try_from(number.checked_sub(self.next)?).ok()?;
        let end = ahead.checked_add(count).filter(|end| *end <= WINDOW)?;
        let mut numbers = number..number + (end - ahead) as u64;
        let is_free = self.held == 0 || numbers.all(|number| self.is_missing(number));
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
        self.pass_next();
    }

    /// Keeps a packet or train whose first number is `ahead` of the next; all of it is missing and
    /// within [`WINDOW`].
    pub fn hold(&mut self, ahead: usize, packet: Packet) {
        let (first, count) = (self.next + ahead as u64, packet.segment_count());
        (first..first + count as u64).for_each(|number| self.fill(number, Slot::Within));
        self.fill(first, Slot::Came(packet));
        self.held += count;
    }

    /// Takes the packet or train that is next, when it waits already.
    pub fn release(&mut self) -> Option<Packet> {
        let Slot::Came(packet) = self.slot(self.next)? else { return None };
        let packet = packet.take();
        let count = packet.segment_count();
        self.held -= count;
        (0..count).for_each(|_| self.advance());
        Some(packet)
    }

    /// Passes on the packet or train that is next, and what waited for it.
    pub fn pass(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        (0..slot.segment_count()).for_each(|_| self.advance());
        if self.held == 0 {
            return Verdict::Forward;
        }
        // The effects of a call go before its slot, so the packet itself must be one of them.
        up_or_drop(cx, slot.take());
        self.release_all(cx);
        Verdict::Held
    }

    /// Passes on what waits and is next.
    pub fn release_all(&mut self, cx: &mut Cx<'_>) {
        while let Some(packet) = self.release() {
            up_or_drop(cx, packet);
        }
    }

    /// Keeps a packet or train as [`Window::hold`] does, with the time of its arrival, which it
    /// returns.
    pub fn keep(&mut self, cx: &mut Cx<'_>, ahead: usize, slot: &mut Packet) -> Time {
        let mut packet = slot.take();
        if packet.time == Time::ZERO {
            packet.time = cx.now();
        }
        // A small view must not pin the large body that a burst arrived in; without memory it does.
        let _ = cx.pool.settle(&mut packet);
        let came = packet.time;
        self.hold(ahead, packet);
        came
    }

    /// Gives up the missing numbers before the first waiting packet; returns how many.
    pub fn skip(&mut self) -> u64 {
        self.skip_before(u64::MAX)
    }

    /// The same, and none from `number` on.
    pub fn skip_before(&mut self, number: u64) -> u64 {
        let mut missing = 0;
        while self.held > 0 && self.next < number && self.is_missing(self.next) {
            self.give_up_next();
            missing += 1;
        }
        missing
    }

    /// Gives up everything before `number`; nothing may be waiting.
    pub fn jump(&mut self, number: u64) -> u64 {
        let missing = number.saturating_sub(self.next);
        self.pages.clear();
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
        self.pass_next();
    }

    /// The number and the arrival of the packet that has waited longest.
    pub fn oldest(&self) -> Option<(u64, Time)> {
        let numbers = (self.next / PAGE as u64..).map(|page| page * PAGE as u64);
        let pages =
            self.pages.iter().zip(numbers).filter_map(|(page, at)| Some((page.as_ref()?, at)));
        let came =
            pages.flat_map(|(page, at)| page.iter().zip(at..)).filter_map(|(slot, number)| {
                match slot {
                    Slot::Came(packet) => Some((number, packet.time)),
                    Slot::Missing | Slot::Within => None,
                }
            });
        came.min_by_key(|(_, time)| *time)
    }

    pub fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.held = 0;
        self.pages.drain(..).flatten().flat_map(|page| *page).filter_map(|slot| match slot {
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
