//! [`UnitBuffer`]: where the units of a flow are written.
//!
//! Units that follow each other at once and fit one packet each lie one behind the other in one
//! body, so that they can leave as one train. Nothing is kept while nothing is sent; a unit by
//! itself gets a body of its own size.
//!
//! Invariant: the first unit of a row is written by itself, so a buffer is there only while a
//! source gives one unit after the other.

use crate::flow::fitted;
use dacapo_packet::{Layout, Packet, Pool, PoolFull};

#[derive(Debug)]
pub(crate) struct UnitBuffer {
    rest: Packet,
    is_row: bool,
}

impl Default for UnitBuffer {
    fn default() -> Self {
        Self { rest: Packet::EMPTY, is_row: false }
    }
}

impl UnitBuffer {
    /// A packet for `len` bytes of a unit.
    ///
    /// # Errors
    /// [`PoolFull`] when there is no memory.
    pub fn alloc(
        &mut self,
        pool: &mut Pool,
        layout: &Layout,
        len: usize,
    ) -> Result<Packet, PoolFull> {
        let fits = len <= layout.segment && len > 0;
        if std::mem::replace(&mut self.is_row, true) && fits {
            if let Some(packet) = pool.carve(&mut self.rest, layout, len) {
                return Ok(packet);
            }
            self.empty(pool);
            self.rest = pool.alloc_arrival()?;
            if let Some(packet) = pool.carve(&mut self.rest, layout, len) {
                return Ok(packet);
            }
        }
        pool.alloc_train(&fitted(layout, len), len)
    }

    /// The row is over: what is left is given back.
    pub fn end_row(&mut self, pool: &mut Pool) {
        self.is_row = false;
        self.empty(pool);
    }

    /// Whether the end of the row gives memory back.
    pub fn holds_memory(&self) -> bool {
        !self.rest.is_empty_slot()
    }

    fn empty(&mut self, pool: &mut Pool) {
        pool.free(self.rest.take());
    }
}
