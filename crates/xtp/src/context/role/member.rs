//! [`Membership`]: how a member of a reliable group becomes one, and when it answers.
//!
//! ```text
//!   FIRST to all, or JCNTL with key 0 to the group and FIRST in answer
//!     -> JCNTL under the transmitter's key       <- JCNTL: an offer of another key
//!     -> JCNTL under the key that was offered    <- JCNTL: where the stream begins
//! ```
//!
//! Invariant: what went to all is answered within a slot, at a time of this member's own, so that
//! answers of many do not come at once.

use crate::serial::is_at_least;
use crate::wire::Header;
use std::net::SocketAddr;
use std::time::Duration;

/// How often is asked under a key that was offered, before the one that is known is tried again.
const ASKED_MAX: u32 = 3;

/// What a member keeps beyond what every context does.
#[derive(Debug)]
pub struct Membership {
    slot: Duration,
    salt: u32,
    /// The first request to join under the key that is known now.
    asked: Option<u32>,
    /// How many there were.
    asked_count: u32,
    /// Whom the transmitter has to be; `None`: whoever answers.
    transmitter: Option<SocketAddr>,
}

impl Membership {
    /// Nothing is asked yet; `salt` is any number, another for each member.
    pub const fn new(slot: Duration, salt: u32, transmitter: Option<SocketAddr>) -> Self {
        Self { slot, salt, asked: None, asked_count: 0, transmitter }
    }

    /// Whether an invitation from there is one that was asked for.
    pub fn admits(&self, from: SocketAddr) -> bool {
        self.transmitter.is_none_or(|known| known == from)
    }

    /// How long the answer to a packet waits: what went to all is answered later than what went to
    /// this member.
    pub fn delay(&self, header: &Header) -> Duration {
        if header.key.is_returned() {
            return Duration::ZERO;
        }
        let mixed = u64::from(self.salt ^ header.sync).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let nanos = (self.slot.as_nanos() * u128::from(mixed >> 32)) >> 32;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whether an echo answers a request under the key that is known now.
    pub fn is_answer(&self, echo: u32) -> bool {
        self.asked.is_some_and(|asked| is_at_least(echo, asked))
    }

    /// Whether an offer has been asked under so often that it may have been forgotten.
    pub const fn is_in_vain(&self) -> bool {
        self.asked_count >= ASKED_MAX
    }

    /// Another key is asked under from now on.
    pub fn handle_key(&mut self) {
        (self.asked, self.asked_count) = (None, 0);
    }

    /// The request `sync` to join is sent.
    pub fn handle_asked(&mut self, sync: u32) {
        self.asked.get_or_insert(sync);
        self.asked_count = self.asked_count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Format, Key};

    const SLOT: Duration = Duration::from_millis(1);

    /// Section "Reliable groups": answers are spread over the slot.
    #[test]
    fn what_went_to_all_is_answered_within_a_slot_at_ones_own_time() {
        let to_all = |sync| Header { sync, ..Header::new(Key::own(7), Format::Data) };
        let delays =
            |salt| (0..100).map(move |it| Membership::new(SLOT, salt, None).delay(&to_all(it)));
        assert!(delays(1).chain(delays(2)).all(|delay| delay < SLOT));
        let early = delays(1).filter(|delay| *delay < SLOT / 2).count();
        assert!((30..70).contains(&early), "{early}");
        assert!(delays(1).zip(delays(2)).filter(|(one, other)| one == other).count() < 5);
        let to_one = Header { key: Key::returned(7), ..to_all(3) };
        assert_eq!(Membership::new(SLOT, 1, None).delay(&to_one), Duration::ZERO);
    }

    /// JCNTL: only an answer to a request under the key that is known counts.
    #[test]
    fn answers_count_from_the_first_request_under_a_key_on() {
        let mut member = Membership::new(SLOT, 1, None);
        assert!(!member.is_answer(0));
        (5..8).for_each(|sync| member.handle_asked(sync));
        assert!(!member.is_answer(4) && member.is_answer(5) && member.is_answer(7));
        assert!(member.is_in_vain());
        member.handle_key();
        assert!(!member.is_in_vain() && !member.is_answer(7));
        member.handle_asked(8);
        assert!(!member.is_answer(7) && member.is_answer(8) && !member.is_in_vain());
    }

    #[test]
    fn a_transmitter_that_is_known_is_the_only_one() {
        let at = |end: u8| SocketAddr::from(([192, 0, 2, end], 1));
        assert!(Membership::new(SLOT, 1, None).admits(at(1)));
        let known = Membership::new(SLOT, 1, Some(at(1)));
        assert!(known.admits(at(1)) && !known.admits(at(2)));
    }
}
