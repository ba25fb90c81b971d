//! [`Messages`]: the unreliable mode, in which every datagram is a message of XTP.
//!
//! ```text
//!   tag, 8 bytes: kind, 7 zeros | message                     EOM
//!     1  bytes of the stream: the preface, and what it is answered
//!     2  a datagram
//!     3  an empty one: a byte that does not count
//! ```
//!
//! A message of XTP may go in two packets, when a window ends within it; the tag is in the first.
//! So what begins without a tag is the rest of a message whose front was lost, and what is not
//! ended when the next tag comes has lost its end: both are dropped and counted.
//!
//! Nothing is sent again, the preface neither. So the dialer says it again while it is not
//! answered, and the listener answers each time. Behind the first answer, which was lost, datagrams
//! may come: those do not keep the next one from being read.
//!
//! Decoder: any messages end as datagrams, bytes of the stream, or counted drops.
//!
//! Invariant: what waits is bounded by [`ARRIVALS_MAX`] and a message; what is kept, by twice that.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::config::DATAGRAM_LEN_MAX;
use crate::Drops;
use crate::stream::{MAGIC, TOKEN_LEN};
use std::collections::VecDeque;

/// Bytes from which on nothing more is taken out of the engine; before the answer has come,
/// datagrams are dropped from there on.
pub(super) const ARRIVALS_MAX: usize = 64 << 10;

/// The length of a whole preface.
const PREFACE_LEN: usize = MAGIC.len().saturating_add(TOKEN_LEN);

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes of the stream.
    Stream,
    /// A datagram.
    Datagram,
    /// An empty datagram.
    Empty,
}

impl Kind {
    /// The tag that says so.
    pub(super) const fn tag(self) -> [u8; 8] {
        let number = match self {
            Self::Stream => 1,
            Self::Datagram => 2,
            Self::Empty => 3,
        };
        [number, 0, 0, 0, 0, 0, 0, 0]
    }

    fn of(tag: [u8; 8]) -> Option<Self> {
        [Self::Stream, Self::Datagram, Self::Empty].into_iter().find(|kind| kind.tag() == tag)
    }
}

/// What a message that has come was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// What is expected.
    Something,
    /// The dialer has said its preface again: it lacks the answer.
    PrefaceAgain,
}

/// The messages that have come by one association.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The message that is not whole yet.
    open: Option<Kind>,
    /// Its bytes, as far as they have come.
    part: Vec<u8>,
    /// The rest of a message whose front was lost is under way.
    is_within_lost: bool,
    /// Datagrams that wait, one after the other.
    bytes: Vec<u8>,
    /// How many of those bytes are handed up.
    gone: usize,
    lens: VecDeque<usize>,
    /// Bytes of the stream that wait.
    stream: VecDeque<u8>,
    /// How many came in all.
    stream_len: usize,
    /// Datagrams of which a part has come and the rest was lost, or that are no datagrams of ours.
    broken: u64,
    /// Datagrams that came before the answer and found no room.
    overflow: u64,
}

impl Messages {
    /// True when no datagram waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// True while more is taken out of the engine: before the answer all, as it is behind what
    /// comes before it.
    pub(super) fn has_capacity(&self) -> bool {
        !self.has_answer() || !self.is_full()
    }

    /// True when no datagram has room.
    fn is_full(&self) -> bool {
        let waiting = self.bytes.len().saturating_sub(self.gone);
        waiting.saturating_add(self.stream.len()) >= ARRIVALS_MAX || self.lens.len() >= ARRIVALS_MAX
    }

    /// True when the whole preface, or the answer to it, has come.
    pub(super) fn has_answer(&self) -> bool {
        self.stream_len >= MAGIC.len()
    }

    /// Bytes were lost.
    pub(super) fn handle_hole(&mut self) {
        self.give_up();
        // Whether a message begins behind it, its tag says.
        self.is_within_lost = false;
    }

    /// Bytes of a message have come.
    pub(super) fn handle(&mut self, tag: Option<[u8; 8]>, bytes: &[u8], is_end: bool) -> Came {
        if let Some(tag) = tag {
            self.give_up();
            self.open = Kind::of(tag);
            self.is_within_lost = false;
        }
        if self.open.is_none() {
            // Counted with its first bytes.
            self.broken = self.broken.saturating_add(u64::from(!self.is_within_lost));
            self.is_within_lost = !is_end;
            return Came::Something;
        }
        if self.part.len().saturating_add(bytes.len()) > DATAGRAM_LEN_MAX {
            self.give_up();
            self.is_within_lost = !is_end;
            return Came::Something;
        }
        self.part.extend_from_slice(bytes);
        if is_end { self.take_whole() } else { Came::Something }
    }

    /// What is open will not be whole.
    fn give_up(&mut self) {
        self.broken = self.broken.saturating_add(u64::from(self.open.is_some()));
        self.open = None;
        self.part.clear();
    }

    fn take_whole(&mut self) -> Came {
        let mut came = Came::Something;
        match self.open.take() {
            Some(Kind::Datagram | Kind::Empty) if self.is_full() => {
                self.overflow = self.overflow.saturating_add(1);
            }
            Some(Kind::Datagram) => {
                self.bytes.extend_from_slice(&self.part);
                self.lens.push_back(self.part.len());
            }
            Some(Kind::Empty) => self.lens.push_back(0),
            Some(Kind::Stream) => came = self.take_stream(),
            None => {}
        }
        self.part.clear();
        came
    }

    /// Bytes of the stream, unless they are said again.
    fn take_stream(&mut self) -> Came {
        let says_magic = self.part.starts_with(&MAGIC);
        if says_magic && self.part.len() == PREFACE_LEN && self.stream_len >= PREFACE_LEN {
            return Came::PrefaceAgain;
        }
        if says_magic && self.part.len() == MAGIC.len() && self.stream_len >= MAGIC.len() {
            return Came::Something;
        }
        self.stream.extend(&self.part);
        self.stream_len = self.stream_len.saturating_add(self.part.len());
        Came::Something
    }

    /// Copies bytes of the stream; returns how many there were.
    pub(super) fn read_stream(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.stream.len());
        into.iter_mut().zip(self.stream.drain(..count)).for_each(|(to, byte)| *to = byte);
        count
    }

    /// What was dropped since the last call is told.
    pub(super) fn take_drops(&mut self, into: &mut Drops) {
        let (broken, overflow) =
            (std::mem::take(&mut self.broken), std::mem::take(&mut self.overflow));
        into.incomplete = into.incomplete.saturating_add(broken);
        into.queue_full = into.queue_full.saturating_add(overflow);
    }

    /// The lengths of the datagrams that wait, the oldest first.
    pub(super) fn lens(&self) -> impl Iterator<Item = usize> {
        self.lens.iter().copied()
    }

    /// The bytes of the oldest datagrams, `len` in all.
    pub(super) fn front(&self, len: usize) -> &[u8] {
        self.bytes.get(self.gone..self.gone.saturating_add(len)).unwrap_or_default()
    }

    /// The oldest `count` datagrams are handed up.
    pub(super) fn pop(&mut self, count: usize) {
        let len = self.lens.drain(..count.min(self.lens.len())).sum::<usize>();
        self.gone = self.gone.saturating_add(len);
        // What is handed up goes at the latest when it is the greater part: a byte moves once.
        if self.gone > self.bytes.len() / 2 || self.lens.is_empty() {
            self.bytes.drain(..self.gone.min(self.bytes.len()));
            self.gone = 0;
        }
    }

    /// Drops every datagram that waits; returns how many.
    pub(super) fn clear(&mut self) -> u64 {
        let count = self.lens.len();
        self.pop(count);
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Option<[u8; 8]> = Some(Kind::Datagram.tag());

    fn all(messages: &mut Messages) -> Vec<Vec<u8>> {
        let lens: Vec<usize> = messages.lens().collect();
        lens.into_iter()
            .map(|len| {
                let bytes = messages.front(len).to_vec();
                messages.pop(1);
                bytes
            })
            .collect()
    }

    #[test]
    fn messages_are_datagrams_also_in_two_parts_and_empty() {
        let mut messages = Messages::default();
        messages.handle(DATA, b"one", true);
        messages.handle(DATA, b"tw", false);
        messages.handle(None, b"o", true);
        messages.handle(Some(Kind::Empty.tag()), &[0], true);
        assert_eq!(messages.lens.len(), 3);
        assert_eq!(all(&mut messages), [b"one".to_vec(), b"two".to_vec(), vec![]]);
        assert_eq!((messages.broken, messages.bytes.len()), (0, 0));
    }

    #[test]
    fn what_lacks_a_part_is_dropped_and_counted_once() {
        let mut messages = Messages::default();
        // The front is lost.
        messages.handle_hole();
        messages.handle(None, b"end", false);
        messages.handle(None, b"end", true);
        assert_eq!(messages.broken, 1);
        // The end is lost, with a hole and without.
        messages.handle(DATA, b"front", false);
        messages.handle_hole();
        messages.handle(DATA, b"front", false);
        messages.handle(DATA, b"whole", true);
        assert_eq!(messages.broken, 3);
        // Too long, and a tag that is none of ours.
        messages.handle(DATA, &[0; DATAGRAM_LEN_MAX], false);
        messages.handle(None, &[0], false);
        messages.handle(None, &[0], true);
        messages.handle(Some([9; 8]), b"what?", true);
        assert_eq!(messages.broken, 5);
        assert_eq!(all(&mut messages), [b"whole".to_vec()]);
    }

    #[test]
    fn bytes_of_the_stream_go_apart_and_what_is_said_again_is_known() {
        let stream = Some(Kind::Stream.tag());
        let preface = [&MAGIC[..], &[7; TOKEN_LEN]].concat();
        let mut listener = Messages::default();
        assert_eq!(listener.handle(stream, &preface, true), Came::Something);
        assert_eq!(listener.handle(stream, &preface, true), Came::PrefaceAgain);
        let mut read = [0; 64];
        assert_eq!(listener.read_stream(&mut read), PREFACE_LEN);
        assert_eq!(read[..PREFACE_LEN], preface);
        let mut dialer = Messages::default();
        assert!(!dialer.has_answer());
        dialer.handle(stream, &MAGIC, true);
        dialer.handle(stream, &MAGIC, true);
        assert!(dialer.has_answer());
        assert_eq!(dialer.read_stream(&mut read), MAGIC.len());
    }

    #[test]
    fn before_the_answer_all_is_taken_and_what_has_no_room_is_counted() {
        let mut dialer = Messages::default();
        for _ in 0..100 {
            assert!(dialer.has_capacity());
            dialer.handle(DATA, &[0; 1_000], true);
        }
        assert_eq!((dialer.lens.len(), dialer.overflow, dialer.broken), (66, 34, 0));
        dialer.handle(Some(Kind::Stream.tag()), &MAGIC, true);
        assert!(dialer.has_answer() && !dialer.has_capacity());
        assert_eq!(dialer.read_stream(&mut [0; 64]), MAGIC.len());
        dialer.pop(1);
        assert!(dialer.has_capacity());
    }

    #[test]
    fn what_is_handed_up_is_not_kept_while_a_datagram_waits() {
        let mut messages = Messages::default();
        messages.handle(DATA, &[0; 1_000], true);
        for number in 1..=1_000_u32 {
            messages.handle(DATA, &[number as u8; 1_000], true);
            messages.pop(1);
            assert_eq!(messages.front(1_000), [number as u8; 1_000]);
            assert!(messages.bytes.len() <= 2_000, "{}", messages.bytes.len());
        }
    }

    #[test]
    fn any_messages_are_bounded_and_add_up() {
        for seed in 0..500 {
            let mut random = dacapo_base::Random::from_number(seed);
            let mut messages = Messages::default();
            for _ in 0..200 {
                let tag = random.chance(0.6).then(|| [random.below(5) as u8, 0, 0, 0, 0, 0, 0, 0]);
                let bytes = vec![0; random.below(1_300) as usize];
                match random.chance(0.1) {
                    true => messages.handle_hole(),
                    false => drop(messages.handle(tag, &bytes, random.chance(0.7))),
                }
                assert!(messages.part.len() <= DATAGRAM_LEN_MAX, "seed {seed}");
                let waiting: usize = messages.lens().sum();
                assert_eq!(waiting, messages.bytes.len() - messages.gone, "seed {seed}");
                assert!(waiting < ARRIVALS_MAX + DATAGRAM_LEN_MAX, "seed {seed}");
                if random.chance(0.3) {
                    let count = random.below(3) as usize;
                    messages.pop(count);
                    assert!(messages.gone <= messages.bytes.len() / 2, "seed {seed}");
                }
            }
        }
    }
}
