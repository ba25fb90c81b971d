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
//! What it is not: the proof that a stream is the one that was agreed, which is the whole token in
//! its preface; and no secret to who reads the way.
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
use crate::stream::{Terms, Token};
use dacapo_base::Time;
use std::collections::HashMap;

/// The first byte of a datagram that carries a packet of XTP.
pub const TYPE_XTP: u8 = 0x82;

/// The bytes before a packet.
pub const HEAD_LEN: usize = 5;

/// The most labels: of streams that are expected, that are there, and that are over and whose other
/// end may still ask.
const LABELS_MAX: usize = 4 * DATA_LANES_MAX;

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

/// What is known of a label.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Somebody may come with it up to then.
    until: Time,
    /// So many streams are expected with it, or have been.
    expected: usize,
    /// So many associations have come with it.
    count: usize,
    /// What its flows are like; `None` before that was said.
    terms: Option<Terms>,
}

/// The labels with which something may come.
#[derive(Debug, Default)]
pub(super) struct Labels {
    known: HashMap<u32, Known>,
}

impl Labels {
    /// Somebody may come with a label up to `until`.
    pub(super) fn expect(&mut self, label: u32, until: Time, now: Time) {
        if self.known.len() >= LABELS_MAX {
            self.known.retain(|_, known| known.count > 0 || known.until >= now);
        }
        let is_full = self.known.len() >= LABELS_MAX;
        match self.known.get_mut(&label) {
            Some(known) => {
                known.until = known.until.max(until);
                known.expected = known.expected.saturating_add(1);
            }
            // As many streams cannot be expected: the table of streams has refused this one.
            None if is_full => {}
            None => {
                self.known.insert(label, Known { until, expected: 1, count: 0, terms: None });
            }
        }
    }

    /// A stream is expected with a label no longer.
    pub(super) fn forget(&mut self, label: u32) {
        let Some(known) = self.known.get_mut(&label) else { return };
        known.expected = known.expected.saturating_sub(1);
        if known.expected == 0 && known.count == 0 {
            self.known.remove(&label);
        }
    }

    /// The flow of a label that was expected last is like this.
    pub(super) fn set_terms(&mut self, label: u32, terms: &Terms) {
        if let Some(known) = self.known.get_mut(&label) {
            let others = known.terms.filter(|_| known.expected > 1);
            known.terms = Some(others.map_or(*terms, |others| for_both(&others, terms)));
        }
    }

    /// What the flow of a label is like; `None` when nothing may come with it.
    pub(super) fn terms(&self, label: u32, now: Time) -> Option<Terms> {
        let known = self.known.get(&label)?;
        (known.count > 0 || known.until >= now).then(|| known.terms.unwrap_or_default())
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
            known.until = known.until.max(until);
        }
    }
}

/// What two flows with one label are like, together: nothing is left out that one of them needs.
fn for_both(one: &Terms, other: &Terms) -> Terms {
    let is_bound = one.bound_bps > 0 && other.bound_bps > 0;
    Terms {
        bound_bps: if is_bound { one.bound_bps.max(other.bound_bps) } else { 0 },
        is_checked: one.is_checked && other.is_checked,
        path_len: one.path_len.zip(other.path_len).map(|(one, other)| one.min(other)),
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

    #[test]
    fn a_label_is_good_while_it_is_expected_and_while_something_has_it() {
        let at = Time::from_millis;
        let mut labels = Labels::default();
        assert!(labels.terms(7, at(0)).is_none());
        labels.expect(7, at(10), at(0));
        assert!(labels.terms(7, at(10)).is_some() && labels.terms(7, at(11)).is_none());
        labels.join(7);
        assert!(labels.terms(7, at(99)).is_some());
        labels.forget(7);
        assert!(labels.terms(7, at(99)).is_some(), "something has it");
        labels.leave(7, at(120));
        assert!(labels.terms(7, at(120)).is_some() && labels.terms(7, at(121)).is_none());
        labels.forget(7);
        assert!(labels.terms(7, at(0)).is_none());
    }

    #[test]
    fn two_flows_share_a_label_until_both_are_forgotten() {
        let now = Time::ZERO;
        let mut labels = Labels::default();
        let first = Terms { bound_bps: 1_000, is_checked: false, path_len: Some(1_400) };
        let second = Terms { bound_bps: 9_000, is_checked: true, path_len: Some(1_300) };
        for terms in [&first, &second] {
            labels.expect(7, Time::NEVER, now);
            labels.set_terms(7, terms);
        }
        let both = Terms { bound_bps: 9_000, is_checked: false, path_len: Some(1_300) };
        assert_eq!(labels.terms(7, now), Some(both));
        labels.forget(7);
        assert_eq!(labels.terms(7, now), Some(both), "one is still expected");
        labels.forget(7);
        assert_eq!(labels.terms(7, now), None);
    }

    #[test]
    fn labels_are_bounded_and_those_that_are_over_make_room() {
        let at = Time::from_millis;
        let mut labels = Labels::default();
        for label in 0..LABELS_MAX as u32 {
            labels.expect(label, at(10 + u64::from(label % 2)), at(0));
        }
        labels.expect(99_999, at(50), at(5));
        assert!(labels.terms(99_999, at(5)).is_none());
        labels.expect(99_999, at(50), at(11));
        assert!(labels.terms(99_999, at(11)).is_some());
        assert_eq!(labels.known.len(), LABELS_MAX / 2 + 1);
    }
}
