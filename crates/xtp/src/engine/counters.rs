//! [`Counters`]: what has become of packets that came.

use crate::wire::Fault;

/// What has become of packets that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that a context took.
    pub taken: u64,
    /// Packets that are none, by [`Fault::index`].
    pub faulty: [u64; Fault::COUNT],
    /// Packets for a context from another address than its peer's.
    pub misdirected: u64,
    /// Packets that mean nothing in the state of their context, or for which there is none.
    pub dropped: u64,
    /// Late packets of associations that are over.
    pub late: u64,
    /// Associations refused for want of a listener, of its service or of room.
    pub refused: u64,
    /// Diagnostics sent, outside associations.
    pub diagnostics: u64,
    /// Diagnostics not sent, because their source had had its share.
    pub withheld: u64,
    /// Packets that begin a message with a tag, are not sent again (NOERR), and for which a context
    /// had no room. Where such a message goes in two packets the rest may find room: it is read
    /// behind a [`crate::Read::Hole`], without a tag.
    pub no_room: u64,
}

impl Counters {
    pub(super) fn count_fault(&mut self, fault: Fault) {
        if let Some(count) = self.faulty.get_mut(fault.index()) {
            add(count, 1);
        }
    }

    /// A context took one, and had no room for so many with a tag.
    pub(super) fn count_taken(&mut self, refused: u64) {
        add(&mut self.taken, 1);
        add(&mut self.no_room, refused);
    }

    pub(super) fn count_misdirected(&mut self) {
        add(&mut self.misdirected, 1);
    }

    pub(super) fn count_dropped(&mut self) {
        add(&mut self.dropped, 1);
    }

    pub(super) fn count_late(&mut self) {
        add(&mut self.late, 1);
    }

    pub(super) fn count_refused(&mut self) {
        add(&mut self.refused, 1);
    }

    pub(super) fn count_diagnostic(&mut self) {
        add(&mut self.diagnostics, 1);
    }

    pub(super) fn count_withheld(&mut self) {
        add(&mut self.withheld, 1);
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}
