//! [`BlackHole`]: whether long packets vanish on the way while short ones get through.
//!
//! ```text
//!   long packets       x x x      x x x      x x x      x x x     sent, and again
//!   request, answer    -> <-      -> <-      -> <-      -> <-     short: they pass
//!                      round 1    round 2    round 3    round 4:  a black hole
//! ```
//!
//! A path that becomes narrower at a router drops what is too long: by ICMP, which anybody can
//! forge, or without a word. Requests for status go on being answered, so nobody is given up, and
//! the stream would stand still for good.
//!
//! Invariants: what is watched is bounded, to the first packets of a round; one of them that
//! arrives ends the suspicion. Where each packet is lost with the probability p, loss alone looks
//! so from a given round on with p^4 at most, so sooner or later on a stream that has rounds
//! enough of a single long packet; it costs headers from then on, nothing else.
//!
//! Source: RFC 4821, section 7.7; RFC 8899, section 4.3.

use crate::pending::Pending;
use crate::sender::Report;
use crate::wire::Span;

/// The most packets of a round that are watched.
const WATCHED_MAX: usize = 64;
/// So many rounds in a row without a long packet that arrives. RFC 8899 has three probes at least
/// (`MAX_PROBES`); here a round may have one packet only.
pub const ROUNDS_MAX: u32 = 4;

/// The long packets of a stream.
#[derive(Debug, Default)]
pub struct BlackHole {
    /// Those whose fate is not known.
    watched: Pending<WATCHED_MAX>,
    rounds: u32,
}

impl BlackHole {
    /// A long packet has been sent; `sync` is the number of the next request after it, or with it.
    pub fn handle_sent(&mut self, span: Span, sync: u32) {
        self.watched.push(span, sync);
    }

    /// The peer answers a request with status that is sound. True when long packets vanish; asked
    /// anew it is false until they have vanished as often.
    pub fn handle_report(&mut self, report: &Report<'_>) -> bool {
        let (mut has_arrived, mut is_lost) = (false, false);
        while let Some(long) = self.watched.pop_answered(report.control.echo) {
            let is_there = report.has(long);
            has_arrived |= is_there;
            is_lost |= !is_there;
        }
        if has_arrived {
            self.rounds = 0;
        } else {
            self.rounds = self.rounds.saturating_add(u32::from(is_lost));
        }
        let is_one = self.rounds >= ROUNDS_MAX;
        if is_one {
            *self = Self::default();
        }
        is_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Control, Spans};

    const FRONT: Span = Span { left: 1_000, right: 2_400 };
    const BEHIND: Span = Span { left: 2_400, right: 3_800 };

    fn report(rseq: u64, echo: u32, spans: &[Span]) -> Report<'_> {
        let control = Control { rseq, alloc: 1 << 20, echo };
        let spans = (!spans.is_empty()).then_some(Spans::List(spans));
        Report { control, spans, asked_up_to: Some(3_800), may_resend: true }
    }

    /// Sends and judges so many rounds; how many are one too many.
    fn rounds(black_hole: &mut BlackHole, numbers: std::ops::Range<u32>, spans: &[Span]) -> usize {
        let is_one = |sync| {
            black_hole.handle_sent(FRONT, sync);
            black_hole.handle_report(&report(1_000, sync, spans))
        };
        numbers.map(is_one).filter(|is_one| *is_one).count()
    }

    #[test]
    fn long_packets_that_vanish_in_four_rounds_are_in_a_black_hole() {
        let mut black_hole = BlackHole::default();
        assert_eq!(rounds(&mut black_hole, 0..3, &[]), 0);
        assert_eq!(rounds(&mut black_hole, 3..4, &[]), 1);
        assert_eq!(rounds(&mut black_hole, 4..12, &[]), 2, "every fourth");
    }

    /// Spans that begin at `rseq` name what lacks.
    #[test]
    fn a_peer_that_names_gaps_says_so_too() {
        let mut black_hole = BlackHole::default();
        for gap in [FRONT, Span { left: 1_000, right: 1_001 }, Span { left: 1_000, right: 9_000 }] {
            assert_eq!(rounds(&mut black_hole, 0..3, &[gap]), 0);
            assert_eq!(rounds(&mut black_hole, 3..4, &[gap]), 1, "{gap:?}");
        }
        assert_eq!(rounds(&mut black_hole, 4..7, &[FRONT]), 0);
        black_hole.handle_sent(FRONT, 7);
        black_hole.handle_sent(BEHIND, 7);
        assert!(!black_hole.handle_report(&report(1_000, 7, &[FRONT])), "one has arrived");
        assert_eq!(rounds(&mut black_hole, 8..11, &[FRONT]), 0);
    }

    #[test]
    fn one_that_arrives_ends_the_suspicion() {
        for spans in [&[BEHIND][..], &[]] {
            let mut black_hole = BlackHole::default();
            assert_eq!(rounds(&mut black_hole, 0..3, &[]), 0);
            let rseq = if spans.is_empty() { 3_800 } else { 1_000 };
            black_hole.handle_sent(FRONT, 3);
            black_hole.handle_sent(BEHIND, 3);
            assert!(!black_hole.handle_report(&report(rseq, 3, spans)));
            assert_eq!(rounds(&mut black_hole, 4..7, &[]), 0);
        }
    }

    #[test]
    fn what_is_not_answered_yet_says_nothing_and_is_bounded() {
        let mut black_hole = BlackHole::default();
        for _ in 0..10 {
            (0..1_000).for_each(|_| black_hole.handle_sent(FRONT, 7));
            assert!(!black_hole.handle_report(&report(1_000, 6, &[])));
        }
        assert_eq!((black_hole.watched.after(6).count(), black_hole.rounds), (WATCHED_MAX, 0));
    }

    #[test]
    fn a_path_that_takes_nothing_is_none() {
        let mut black_hole = BlackHole::default();
        for echo in 0..100 {
            let is_one = black_hole.handle_report(&report(1_000, echo, &[]));
            assert!(!is_one, "only short packets are lost");
        }
    }
}
