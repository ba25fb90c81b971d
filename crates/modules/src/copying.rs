//! [`Copier`]: bytes of a read-only view in a body of their own, to be sent once more.

use dacapo_lift::Setup;
use dacapo_packet::{Layout, Packet, Pool, PoolFull};

/// Makes packets with the room that a module and what is below it need.
#[derive(Debug)]
pub(crate) struct Copier {
    head: usize,
    tail: usize,
    /// Where bytes are on their way from one body to another.
    bytes: Vec<u8>,
}

impl Copier {
    pub fn new(setup: &Setup) -> Self {
        Self { head: setup.head_below, tail: setup.tail_below, bytes: Vec::new() }
    }

    /// The packet or train that the view shows, with its kind, class, time and place in its unit.
    ///
    /// # Errors
    /// The pool is at its budget.
    pub fn copy(&mut self, pool: &mut Pool, view: &Packet) -> Result<Packet, PoolFull> {
        let segment = view.segment_len(0);
        let layout = Layout { head: self.head, tail: self.tail, segment, segmented: true };
        let mut packet = pool.alloc_train(&layout, view.payload_len())?;
        packet.copy_marks(view);
        self.bytes.clear();
        pool.read_payload(view, &mut self.bytes);
        pool.write_payload(&packet, 0, &self.bytes);
        Ok(packet)
    }

    /// A packet with these bytes behind the room.
    ///
    /// # Errors
    /// The pool is at its budget.
    pub fn make(&self, pool: &mut Pool, bytes: &[u8]) -> Result<Packet, PoolFull> {
        pool.packet_from(self.head, bytes, self.tail)
    }
}
