//! How long the packets of an association are, and when they become shorter.
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

use super::Context;
use crate::black_hole::ROUNDS_MAX;
use crate::sender::{Piece, Report};
use crate::wire::{HEADER_LEN, Span, TAG_LEN};

/// The least `data_len_max` that a peer can ask for, and the least to which a packet is cut, bytes:
/// less would cost more than it carries.
pub(super) const DATA_LEN_MIN: usize = 64;

impl Context {
    /// The longest packet, bytes.
    pub const fn packet_len_max(&self) -> usize {
        self.packet_len_max
    }

    /// The peer takes so much data in a packet, bytes.
    pub(super) fn limit_data(&mut self, len: u32) {
        let len = usize::try_from(len).unwrap_or(usize::MAX).max(DATA_LEN_MIN);
        self.data_len_max = len.min(self.packet_len_max.saturating_sub(HEADER_LEN));
    }

    /// Packets of more than `len` bytes do not get through: from now on none is longer, and the
    /// peer, whose way is mostly the same, is asked for as much.
    pub fn shorten(&mut self, len: usize) {
        let len = len.max(HEADER_LEN + DATA_LEN_MIN);
        if len >= self.packet_len_max {
            return;
        }
        self.packet_len_max = len;
        self.data_len_max = self.data_len_max.min(len.saturating_sub(HEADER_LEN));
        self.wants.is_traffic_due |= !self.is_quiet() && self.group.is_none();
    }

    /// A FIRST that is not answered, which may be too long, holds no more than one of base length.
    pub(super) fn shorten_unanswered(&mut self) {
        if self.requests.turns() > ROUNDS_MAX {
            self.shorten(self.packet_len_base);
        }
    }

    /// Data is on its way; `sync` is the number of the next request after it, or with it.
    pub(super) fn watch_length(&mut self, piece: &Piece, sync: u32) {
        let head_len = HEADER_LEN.saturating_add(piece.tag.map_or(0, |_| TAG_LEN));
        let is_long = head_len.saturating_add(piece.len) > self.packet_len_base;
        let right = piece.seq.saturating_add(piece.len as u64);
        // What has no room there is refused, which looks as if it had vanished; of what is not sent
        // again nobody says what has arrived.
        let is_telling = !self.mode.without_repair && self.sender.is_within_window(right);
        if is_long && is_telling && self.group.is_none() {
            self.black_hole.handle_sent(Span { left: piece.seq, right }, sync);
        }
    }

    /// The peer has said what has arrived, in answer to a request: who never heard one says nothing
    /// of what was sent before it.
    pub(super) fn judge_length(&mut self, report: &Report<'_>) {
        if report.asked_up_to.is_some() && self.black_hole.handle_report(report) {
            self.shorten(self.packet_len_base);
        }
    }
}
