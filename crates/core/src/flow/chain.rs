//! [`Chain`]: the views of one unit that has come, in order.
//!
//! Invariant: a unit that came as one view, or as one train, costs no allocation.

use dacapo_base::Time;
use dacapo_packet::{Loan, Packet, Pool};
use dacapo_wire::unit;

#[derive(Debug)]
pub(crate) struct Chain {
    first: Packet,
    rest: Vec<Packet>,
}

impl Default for Chain {
    fn default() -> Self {
        Self { first: Packet::EMPTY, rest: Vec::new() }
    }
}

impl Chain {
    pub fn push(&mut self, packet: Packet) {
        if self.first.is_empty_slot() {
            self.first = packet;
        } else {
            self.rest.push(packet);
        }
    }

    pub fn first(&self) -> Option<&Packet> {
        (!self.first.is_empty_slot()).then_some(&self.first)
    }

    /// The view of a unit that came as one.
    pub fn only(&self) -> Option<&Packet> {
        self.first().filter(|_| self.rest.is_empty())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.first().into_iter().chain(&self.rest)
    }

    /// The length of the unit in bytes, without what says its place.
    pub fn unit_len(&self) -> usize {
        let all: usize = self.iter().map(Packet::payload_len).sum();
        all.saturating_sub(unit::LEN)
    }

    /// Until when the unit is of use.
    pub fn use_by(&self) -> Option<Time> {
        self.iter().filter_map(Packet::use_by).min()
    }

    /// Lends the unit but for its first `skip` bytes, and leaves no views; `None` when that cannot
    /// be, and nothing has changed.
    pub fn lend(&mut self, pool: &mut Pool, skip: usize) -> Option<Loan> {
        pool.lend(&mut self.first, &mut self.rest, skip)
    }

    /// Takes the views out, and leaves none.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Gives every view back.
    pub fn free(&mut self, pool: &mut Pool) {
        pool.free(self.first.take());
        self.rest.drain(..).for_each(|packet| pool.free(packet));
    }
}
