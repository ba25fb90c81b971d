//! [`Length`]: how long the packets of an association are, and when they become shorter.
//!
//! ```text
//!   the peer's TCNTL -----.
//!   the user: so long ----+--> shorten --> cut anew: data again, FIRST again
//!   a black hole ---------'        '-----> TCNTL: the peer's packets become as short
//! ```
//!
//! Data is a stream of bytes: what goes again is cut as what is new is, so nothing that was sent in
//! longer packets is lost.
//!
//! Invariant: packets are as long as the engine's at most, and take [`DATA_LEN_MIN`] bytes of data
//! at least.

use crate::black_hole::{BlackHole, ROUNDS_MAX};
use crate::config::Config;
use crate::sender::{Piece, Report};
use crate::wire::{Control, HEADER_LEN, SPAN_LEN, Span, TAG_LEN};

/// The least `data_len_max` that a peer can ask for, and the least to which a packet is cut, bytes:
/// less would cost more than it carries.
pub const DATA_LEN_MIN: usize = 64;
/// `nspan` and the control segment before it.
pub const SPANS_AT: usize = HEADER_LEN + Control::LEN + 4;

/// The lengths of one association's packets, bytes.
#[derive(Debug)]
pub struct Length {
    packet_max: usize,
    /// What every path is taken to carry.
    base: usize,
    data_max: usize,
    /// The data of the FIRST that was sent last.
    first: usize,
    black_hole: BlackHole,
}

impl Length {
    /// As long as the engine allows.
    pub fn new(config: &Config) -> Self {
        Self {
            packet_max: config.packet_len_max,
            base: config.packet_len_base,
            data_max: config.packet_len_max.saturating_sub(HEADER_LEN),
            first: 0,
            black_hole: BlackHole::default(),
        }
    }

    /// The longest packet.
    pub const fn packet_max(&self) -> usize {
        self.packet_max
    }

    /// The most data of a packet, its tag included.
    pub const fn data_max(&self) -> usize {
        self.data_max
    }

    /// The most spans of a packet that is no longer than this end's, and than the peer asked for:
    /// over a path that takes no longer ones status would never arrive.
    pub fn spans_max(&self) -> usize {
        let len = self.packet_max.min(HEADER_LEN.saturating_add(self.data_max));
        len.saturating_sub(SPANS_AT) / SPAN_LEN
    }

    /// The peer takes so much data in a packet; 0 says nothing.
    pub fn handle_limit(&mut self, len: u32) {
        if len != 0 {
            let len = usize::try_from(len).unwrap_or(usize::MAX).max(DATA_LEN_MIN);
            self.data_max = len.min(self.packet_max.saturating_sub(HEADER_LEN));
        }
    }

    /// The peer complains of the size of packets: how much data it takes says the text, else half
    /// of what there was is tried. Returns the limit that holds.
    pub fn handle_complaint(&mut self, text: &[u8]) -> u32 {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let half = (self.data_max / 2) as u32;
        let len = text.trim().parse().unwrap_or(half).min(self.data_max as u32);
        self.handle_limit(len.max(1));
        len
    }

    /// Packets of more than `len` bytes do not get through: from now on none is longer. True where
    /// they were; the peer, whose way is mostly the same, is to be asked for as much.
    pub fn shorten(&mut self, len: usize) -> bool {
        let len = len.max(HEADER_LEN + DATA_LEN_MIN);
        let is_shorter = len < self.packet_max;
        if is_shorter {
            self.packet_max = len;
            self.data_max = self.data_max.min(len.saturating_sub(HEADER_LEN));
        }
        is_shorter
    }

    /// A FIRST that is not answered, which may be too long, holds no more than one of base length.
    pub fn shorten_unanswered(&mut self, turns: u32) -> bool {
        turns > ROUNDS_MAX && self.shorten(self.base)
    }

    /// The most data of a FIRST with so much before it; of one that goes again no more than it had.
    pub fn first_len_max(&self, head_len: usize, is_again: bool) -> usize {
        let len = self.packet_max.saturating_sub(head_len).min(self.data_max);
        if is_again { len.min(self.first) } else { len }
    }

    /// A FIRST has been sent, with so much data.
    pub fn handle_first(&mut self, len: usize) {
        self.first = len;
    }

    /// Data is on its way, of which the peer will say whether it has arrived; `sync` is the number
    /// of the next request after it, or with it.
    pub fn handle_sent(&mut self, piece: &Piece, sync: u32) {
        let head_len = HEADER_LEN.saturating_add(piece.tag.map_or(0, |_| TAG_LEN));
        if head_len.saturating_add(piece.len) > self.base {
            self.black_hole.handle_sent(Span { left: piece.seq, right: piece.end() }, sync);
        }
    }

    /// The peer has said what has arrived, in answer to a request: who never heard one says nothing
    /// of what was sent before it. True where packets have become shorter.
    pub fn handle_report(&mut self, report: &Report<'_>) -> bool {
        let is_answer = report.asked_up_to.is_some();
        is_answer && self.black_hole.handle_report(report) && self.shorten(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length() -> Length {
        Length::new(&Config { packet_len_max: 1_452, packet_len_base: 1_200, ..Config::default() })
    }

    fn piece(seq: u64, len: usize) -> Piece {
        Piece { seq, len, is_end: false, tag: None, is_again: false }
    }

    fn report(rseq: u64, echo: u32, asked_up_to: Option<u64>) -> Report<'static> {
        let control = Control { rseq, alloc: 1 << 20, echo };
        Report { control, spans: None, asked_up_to, may_resend: true }
    }

    /// Traffic segment: `maxdata`.
    #[test]
    fn a_limit_of_the_peer_holds_between_the_least_and_the_packet() {
        let mut length = length();
        for (said, data_max) in [(0, 1_420), (500, 500), (1, 64), (63, 64), (u32::MAX, 1_420)] {
            length.handle_limit(said);
            assert_eq!((length.data_max(), length.packet_max()), (data_max, 1_452), "{said}");
        }
    }

    /// DIAG: packet size.
    #[test]
    fn a_complaint_says_how_much_or_halves_and_never_lengthens() {
        let said = |text: &[u8]| {
            let mut length = length();
            (length.handle_complaint(text), length.data_max())
        };
        assert_eq!(said(b" 900\n"), (900, 900));
        assert_eq!(said(b"9000"), (1_420, 1_420));
        assert_eq!(said(b"7"), (7, DATA_LEN_MIN));
        assert_eq!(said(b"0"), (0, DATA_LEN_MIN));
        for text in [&b"no number"[..], b"", b"\xff", b"-1", b"99999999999"] {
            assert_eq!(said(text), (710, 710), "{text:?}");
        }
    }

    #[test]
    fn packets_become_shorter_and_never_longer_and_carry_something() {
        let mut length = length();
        assert!(!length.shorten(1_452) && !length.shorten(9_000));
        assert!(length.shorten(1_300) && !length.shorten(1_400));
        assert_eq!((length.packet_max(), length.data_max()), (1_300, 1_268));
        length.handle_limit(1_400);
        assert_eq!(length.data_max(), 1_268, "a peer cannot lengthen them");
        assert!(length.shorten(0) && !length.shorten(0));
        assert_eq!((length.packet_max(), length.data_max()), (96, 64));
    }

    #[test]
    fn spans_fit_the_shorter_of_packet_and_limit() {
        let mut length = length();
        assert_eq!(length.spans_max(), (1_452 - SPANS_AT) / SPAN_LEN);
        length.handle_limit(200);
        assert_eq!(length.spans_max(), (232 - SPANS_AT) / SPAN_LEN);
        length.shorten(0);
        assert_eq!(length.spans_max(), (96 - SPANS_AT) / SPAN_LEN);
    }

    /// FIRST goes again as it was, and shorter after the fourth turn.
    #[test]
    fn a_first_that_goes_again_holds_no_more_than_before() {
        let mut length = length();
        assert_eq!(length.first_len_max(80, false), 1_372);
        length.handle_first(1_000);
        assert_eq!(
            (length.first_len_max(80, true), length.first_len_max(80, false)),
            (1_000, 1_372)
        );
        assert!(!length.shorten_unanswered(ROUNDS_MAX));
        assert!(length.shorten_unanswered(ROUNDS_MAX + 1));
        assert!(!length.shorten_unanswered(ROUNDS_MAX + 2), "it is");
        assert_eq!((length.first_len_max(300, true), length.packet_max()), (900, 1_200));
    }

    #[test]
    fn only_answers_of_long_packets_that_vanish_shorten() {
        let rounds = |len, asked| {
            let mut length = length();
            (0..ROUNDS_MAX).any(|sync| {
                length.handle_sent(&piece(0, len), sync);
                length.handle_report(&report(0, sync, asked))
            })
        };
        assert!(rounds(1_400, Some(1_400)));
        assert!(!rounds(1_400, None), "no answer");
        assert!(rounds(1_169, Some(1_169)) && !rounds(1_168, Some(1_168)), "base length passes");
    }
}
