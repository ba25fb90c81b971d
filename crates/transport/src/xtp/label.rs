//! Decoder: what stands before every packet of XTP between two cores, and who may send here.
//!
//! ```text
//!   0      1            5
//!   +------+------------+------------------+
//!   | 0x82 | label, u32 | a packet of XTP  |
//!   +------+------------+------------------+
//! ```
//!
//! The label is the front of the token that opens the stream, which the listening core draws and
//! says to the dialing one over the control connection. So nobody else gets a packet as far as the
//! engine of XTP, and what comes without a label that is expected, or that is a stream's, is
//! dropped and leaves nothing behind.
//!
//! Two tokens may have the same front: their flows share the label, and what is asked of XTP for it
//! is what does for both.
//!
//! Invariant: at most [`LABELS_MAX`] labels.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::DATA_LANES_MAX;
use crate::stream::{StreamParams, Token};
use dacapo_base::Time;
use std::collections::HashMap;

/// The first byte of a datagram that carries a packet of XTP.
pub const TYPE_XTP: u8 = 0x82;

/// The bytes before a packet.
pub const HEAD_LEN: usize = 5;

/// The most labels: of streams that are expected, that are there, and that are over and whose other
/// end may still ask.
const LABELS_MAX: usize = 4 * DATA_LANES_MAX;

/// The most streams that share a label: of tokens that are drawn hardly ever two do.
const SHARED_MAX: usize = 8;

/// The label of the stream that a token opens.
#[must_use]
pub fn label_of(token: &Token) -> u32 {
    token.first_chunk().map_or(0, |front| u32::from_be_bytes(*front))
}

/// What stands before a packet.
#[must_use]
pub fn head(label: u32) -> [u8; HEAD_LEN] {
    let [a, b, c, d] = label.to_be_bytes();
    [TYPE_XTP, a, b, c, d]
}

/// The label of a datagram, and the packet behind it.
pub(super) fn split(datagram: &[u8]) -> Option<(u32, &[u8])> {
    let (head, packet) = datagram.split_first_chunk::<HEAD_LEN>()?;
    let [kind, label @ ..] = *head;
    (kind == TYPE_XTP).then(|| (u32::from_be_bytes(label), packet))
}

/// A stream that may come with a label.
#[derive(Clone, Copy, Debug)]
struct Expected {
    token: Token,
    until: Time,
    /// What its flow is like; `None` before that was said.
    terms: Option<StreamParams>,
}

/// What is known of a label.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Streams that are expected with it, or have been.
    expected: Vec<Expected>,
    /// So many associations have come with it.
    count: usize,
    /// One that is over may be asked of up to then.
    lingers_until: Option<Time>,
}

impl Known {
    fn is_expected(&self, now: Time) -> bool {
        self.expected.iter().any(|one| one.until >= now)
    }

    /// True while something may come with it.
    fn is_good(&self, now: Time) -> bool {
        let lingers = self.lingers_until.is_some_and(|until| until >= now);
        self.count > 0 || lingers || self.is_expected(now)
    }
}

/// There are as many labels as there may be, or as many streams with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LabelsFull {
    /// How many that is.
    pub(super) limit: usize,
}

/// The labels with which something may come. All times are the caller's.
#[derive(Debug, Default)]
pub(super) struct Labels {
    known: HashMap<u32, Known>,
}

impl Labels {
    /// The stream of a token may come up to `until`. A label that only lingers makes room: who asks
    /// with it from then on is not answered.
    pub(super) fn expect(
        &mut self,
        token: &Token,
        until: Time,
        now: Time,
    ) -> Result<(), LabelsFull> {
        let label = label_of(token);
        if !self.known.contains_key(&label) {
            self.free_one(now)?;
        }
        let known = self.known.entry(label).or_default();
        if let Some(one) = known.expected.iter_mut().find(|one| one.token == *token) {
            one.until = until;
            return Ok(());
        }
        known.expected.retain(|one| known.count > 0 || one.until >= now);
        if known.expected.len() >= SHARED_MAX {
            return Err(LabelsFull { limit: SHARED_MAX });
        }
        known.expected.push(Expected { token: *token, until, terms: None });
        Ok(())
    }

    fn free_one(&mut self, now: Time) -> Result<(), LabelsFull> {
        if self.known.len() < LABELS_MAX {
            return Ok(());
        }
        self.known.retain(|_, known| known.is_good(now));
        if self.known.len() < LABELS_MAX {
            return Ok(());
        }
        let lingering = self.known.iter().filter(|(_, it)| it.count == 0 && !it.is_expected(now));
        let oldest = lingering.min_by_key(|(_, it)| it.lingers_until).map(|(label, _)| *label);
        self.known.remove(&oldest.ok_or(LabelsFull { limit: LABELS_MAX })?);
        Ok(())
    }

    /// The stream of a token is expected no longer; others with the same label are.
    pub(super) fn forget(&mut self, token: &Token) {
        let label = label_of(token);
        let Some(known) = self.known.get_mut(&label) else { return };
        known.expected.retain(|one| one.token != *token);
        if known.expected.is_empty() && known.count == 0 && known.lingers_until.is_none() {
            self.known.remove(&label);
        }
    }

    /// The flow of a token that is expected is like this.
    pub(super) fn set_terms(&mut self, token: &Token, terms: &StreamParams) {
        let known = self.known.get_mut(&label_of(token));
        let expected = known.into_iter().flat_map(|known| &mut known.expected);
        expected.filter(|one| one.token == *token).for_each(|one| one.terms = Some(*terms));
    }

    /// What the flow of a label is like; `None` when nothing may come with it.
    pub(super) fn terms(&self, label: u32, now: Time) -> Option<StreamParams> {
        let known = self.known.get(&label).filter(|known| known.is_good(now))?;
        let said = known.expected.iter().filter_map(|one| one.terms);
        Some(said.reduce(|one, other| for_both(&one, &other)).unwrap_or_default())
    }

    /// An association has come with a label.
    pub(super) fn join(&mut self, label: u32) {
        if let Some(known) = self.known.get_mut(&label) {
            known.count = known.count.saturating_add(1);
        }
    }

    /// An association is over; its other end may ask up to `until`.
    pub(super) fn leave(&mut self, label: u32, until: Time) {
        if let Some(known) = self.known.get_mut(&label) {
            known.count = known.count.saturating_sub(1);
            known.lingers_until = known.lingers_until.max(Some(until));
        }
    }
}

/// What two flows with one label are like, together: nothing is left out that one of them needs.
fn for_both(one: &StreamParams, other: &StreamParams) -> StreamParams {
    let is_bound = one.bound_bps > 0 && other.bound_bps > 0;
    StreamParams {
        bound_bps: if is_bound { one.bound_bps.max(other.bound_bps) } else { 0 },
        is_checked: one.is_checked && other.is_checked,
        path_len: one.path_len.zip(other.path_len).map(|(one, other)| one.min(other)),
        priority: one.priority.max(other.priority),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_a_head_and_a_packet() {
        let token = [0xAB, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let label = label_of(&token);
        assert_eq!(label, 0xAB01_0203);
        let datagram = [head(label).as_slice(), b"packet"].concat();
        assert_eq!(split(&datagram), Some((label, &b"packet"[..])));
        for len in 0..HEAD_LEN {
            assert_eq!(split(&datagram[..len]), None);
        }
        assert_eq!(split(&[0x80, 0xAB, 1, 2, 3, 9]), None);
    }

    /// Tokens with the label 7, and with others.
    fn token(label: u32, number: u8) -> Token {
        let mut token = [number; 16];
        token[..4].copy_from_slice(&label.to_be_bytes());
        token
    }

    #[test]
    fn a_label_is_good_while_it_is_expected_and_while_something_has_it() {
        let at = Time::from_millis;
        let mut labels = Labels::default();
        assert!(labels.terms(7, at(0)).is_none());
        labels.expect(&token(7, 0), at(10), at(0)).unwrap();
        assert!(labels.terms(7, at(10)).is_some() && labels.terms(7, at(11)).is_none());
        labels.join(7);
        assert!(labels.terms(7, at(99)).is_some());
        labels.forget(&token(7, 0));
        assert!(labels.terms(7, at(99)).is_some(), "something has it");
        labels.leave(7, at(120));
        assert!(labels.terms(7, at(120)).is_some() && labels.terms(7, at(121)).is_none());
        labels.expect(&token(8, 0), at(10), at(0)).unwrap();
        labels.forget(&token(8, 0));
        assert!(labels.terms(8, at(0)).is_none());
    }

    #[test]
    fn two_flows_share_a_label_until_both_are_forgotten() {
        let now = Time::ZERO;
        let mut labels = Labels::default();
        let first =
            StreamParams { bound_bps: 1_000, path_len: Some(1_400), ..StreamParams::default() };
        let second =
            StreamParams { bound_bps: 9_000, is_checked: true, path_len: Some(1_300), priority: 3 };
        for (number, terms) in [(1, &first), (2, &second)] {
            labels.expect(&token(7, number), Time::NEVER, now).unwrap();
            labels.set_terms(&token(7, number), terms);
        }
        let both = StreamParams { is_checked: false, ..second };
        assert_eq!(labels.terms(7, now), Some(both));
        labels.forget(&token(7, 1));
        assert_eq!(labels.terms(7, now), Some(second), "the other is still expected");
        labels.forget(&token(7, 2));
        assert_eq!(labels.terms(7, now), None);
    }

    /// A token is forgotten at every listener, also where it was never expected.
    #[test]
    fn who_forgets_a_token_takes_no_others_expectation() {
        let mut labels = Labels::default();
        labels.expect(&token(7, 1), Time::NEVER, Time::ZERO).unwrap();
        labels.forget(&token(7, 2));
        labels.forget(&token(7, 2));
        assert!(labels.terms(7, Time::ZERO).is_some());
    }

    #[test]
    fn labels_are_bounded_and_those_that_are_over_make_room() {
        let at = Time::from_millis;
        let mut labels = Labels::default();
        for label in 0..LABELS_MAX as u32 {
            let until = at(10 + u64::from(label % 2));
            labels.expect(&token(label, 0), until, at(0)).unwrap();
        }
        let more = token(99_999, 0);
        assert_eq!(labels.expect(&more, at(50), at(5)), Err(LabelsFull { limit: LABELS_MAX }));
        assert!(labels.terms(99_999, at(5)).is_none());
        labels.expect(&more, at(50), at(11)).unwrap();
        assert!(labels.terms(99_999, at(11)).is_some());
        assert_eq!(labels.known.len(), LABELS_MAX / 2 + 1);
        for number in 0..SHARED_MAX as u8 {
            labels.expect(&token(5, number), at(50), at(11)).unwrap();
        }
        assert_eq!(
            labels.expect(&token(5, 99), at(50), at(11)),
            Err(LabelsFull { limit: SHARED_MAX })
        );
    }

    /// Streams that come and go fast leave as many labels behind as there may be.
    #[test]
    fn of_labels_that_only_linger_the_oldest_makes_room() {
        let at = Time::from_millis;
        let mut labels = Labels::default();
        for label in 0..3 * LABELS_MAX as u32 {
            let now = at(u64::from(label));
            labels.expect(&token(label, 0), now, now).unwrap();
            labels.join(label);
            labels.forget(&token(label, 0));
            labels.leave(label, now + std::time::Duration::from_secs(60));
        }
        let now = at(3 * LABELS_MAX as u64);
        assert_eq!(labels.known.len(), LABELS_MAX);
        assert!(labels.terms(2 * LABELS_MAX as u32 - 1, now).is_none());
        assert!(labels.terms(2 * LABELS_MAX as u32, now).is_some());
    }
}
