//! Units that the application hands over itself, past the source.
//!
//! ```text
//!   source --poll--> splice --> graph --> queue --> the way
//!   push  -----------^                               ^
//!   direct: head and unit, from where they lie ------+
//! ```
//!
//! What it is not: the sending; who goes direct asks for the head, sends both, and says so.
//!
//! Invariant: nothing overtakes. A unit goes into the splice behind what waits there, and direct
//! only when nothing waits anywhere.

use super::{Change, SenderFlow};
use crate::flow::Around;
use crate::port::UnitWriter;
use dacapo_wire::data;
use dacapo_wire::unit::{self, Kind};

/// The length of what goes before a unit that leaves from where it lies.
pub(crate) const DIRECT_HEAD_LEN: usize = data::LEN + unit::LEN;

impl SenderFlow {
    /// Takes a unit that the application hands over, past the source, which must have none that
    /// waits. Nothing happens when it cannot be taken now: while the flow does not run, or while so
    /// much waits that the source would not be asked either.
    pub fn push(&mut self, around: &mut Around<'_>, bytes: &[u8]) -> bool {
        let has_room = self.splice.has_room() && self.splice.bytes() < self.queue_max;
        if !self.is_fed() || self.source_ended || !has_room {
            return false;
        }
        if !self.has_backlog() {
            // It goes at once and by itself: nothing is in a row with it.
            self.slab.end_row(around.pool);
        }
        let chain = self.splice.spare_chain();
        let layout = self.current.layout;
        let mut writer =
            UnitWriter::new(around.pool, &mut self.slab, layout, self.unit_len_max, chain);
        if writer.begin(bytes.len()).is_ok() {
            writer.write(bytes);
        }
        let (chain, len) = writer.finish();
        if chain.is_empty() {
            self.splice.give_chain_back(chain);
            return false;
        }
        self.splice.push(chain, len.unwrap_or(0), layout);
        if self.queue.is_empty() {
            // It goes through the graph at once, so that who asks for packets next finds it there.
            self.feed(around);
        }
        true
    }

    /// What goes before a unit of `len` bytes that leaves from where it lies: when there is nothing
    /// in the graph that must see it, nothing that hashes or paces it, and nothing waits.
    pub fn head_of_direct(&self, len: usize) -> Option<[u8; DIRECT_HEAD_LEN]> {
        let epoch = &self.current;
        let is_lean = epoch.runner.modules().next().is_none()
            && self.hash.is_none()
            && self.bucket.is_none()
            && matches!(self.change, Change::None);
        let fits = len <= self.unit_len_max && len + unit::LEN <= epoch.layout.segment;
        let is_next = self.is_fed() && !self.source_ended && !self.has_backlog();
        if !(is_lean && fits && is_next) {
            return None;
        }
        let mut head = [0; DIRECT_HEAD_LEN];
        let (label, number) = head.split_at_mut(data::LEN);
        label.copy_from_slice(&data::Header { label: epoch.label_tx }.emit());
        number.copy_from_slice(&unit::Header::new(Kind::Data, epoch.fed).emit());
        Some(head)
    }

    /// The unit has left.
    pub fn handle_direct(&mut self, len: usize) {
        self.current.fed += 1;
        self.sent += 1;
        self.sent_bytes += len as u64;
    }

    /// Units that were taken from the source and are not in the graph yet.
    pub fn waiting(&self) -> u64 {
        self.splice.len() as u64
    }

    /// Whether something of the flow waits that may be sent.
    pub fn has_backlog(&self) -> bool {
        !self.splice.is_empty() || !self.queue.is_empty()
    }
}
