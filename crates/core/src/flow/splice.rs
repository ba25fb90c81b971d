//! [`Splice`]: the one queue in which units of a flow wait.
//!
//! Units in the layout of an epoch, in order, between the source and the graph. It survives a
//! change: units that wait enter the new epoch, laid out anew if its headers differ.
//!
//! Invariants: at most `units_max` units and [`BYTES_MAX`] bytes wait, or one unit if it is larger;
//! its policy at the bound is to block the source.

use crate::flow::fitted;
use dacapo_base::Time;
use dacapo_packet::{Layout, Packet, Pool, PoolFull};
use std::collections::VecDeque;

/// The most bytes that wait, but for a single larger unit.
const BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct Waiting {
    pub chain: Vec<Packet>,
    pub len: usize,
    layout: Layout,
}

#[derive(Debug)]
pub(crate) struct Splice {
    units_max: usize,
    units: VecDeque<Waiting>,
    bytes: usize,
    /// Empty chains whose memory is used again.
    spare: Vec<Vec<Packet>>,
}

impl Splice {
    /// A splice in which at most so many units wait.
    pub fn new(units_max: usize) -> Self {
        Self { units_max, units: VecDeque::new(), bytes: 0, spare: Vec::new() }
    }

    pub fn has_capacity(&self) -> bool {
        self.units.len() < self.units_max && self.bytes < BYTES_MAX
    }

    /// Units that wait.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// When the unit in front was handed over.
    pub fn since(&self) -> Option<Time> {
        self.units.front()?.chain.first().map(|packet| packet.time)
    }

    /// An empty chain to write a unit into.
    pub fn spare_chain(&mut self) -> Vec<Packet> {
        self.spare.pop().unwrap_or_default()
    }

    pub fn give_chain_back(&mut self, chain: Vec<Packet>) {
        if self.spare.len() < self.units_max {
            self.spare.push(chain);
        }
    }

    /// Takes a unit that is handed over now.
    pub fn push(&mut self, now: Time, mut chain: Vec<Packet>, len: usize, layout: Layout) {
        chain.iter_mut().for_each(|packet| packet.time = now);
        self.bytes += len;
        self.units.push_back(Waiting { chain, len, layout });
    }

    /// Takes the next unit in the layout of the epoch that it enters.
    ///
    /// # Errors
    /// [`PoolFull`] when it must be laid out anew and there is no memory; it stays.
    pub fn pop(&mut self, pool: &mut Pool, layout: &Layout) -> Result<Option<Waiting>, PoolFull> {
        let Some(front) = self.units.front_mut() else { return Ok(None) };
        if front.layout != *layout {
            relay(pool, front, layout)?;
        }
        let unit = self.units.pop_front();
        self.bytes -= unit.as_ref().map_or(0, |unit| unit.len);
        Ok(unit)
    }

    /// Gives everything back; returns how many units that were.
    pub fn flush(&mut self, pool: &mut Pool) -> usize {
        let count = self.units.len();
        for unit in self.units.drain(..) {
            unit.chain.into_iter().for_each(|packet| pool.free(packet));
        }
        self.bytes = 0;
        count
    }
}

/// Copies a unit into another layout: only for units that waited while the graph changed to one
/// with other headers.
fn relay(pool: &mut Pool, unit: &mut Waiting, layout: &Layout) -> Result<(), PoolFull> {
    let mut bytes = Vec::new();
    unit.chain.iter().for_each(|packet| pool.read_payload(packet, &mut bytes));
    let time = unit.chain.first().map_or(Time::ZERO, |packet| packet.time);
    let mut chain = Vec::new();
    for piece in bytes.chunks(layout.payload_per_train().max(1)) {
        match pool.alloc_train(&fitted(layout, piece.len()), piece.len()) {
            Ok(mut packet) => {
                pool.write_payload(&packet, 0, piece);
                packet.time = time;
                chain.push(packet);
            }
            Err(full) => {
                chain.into_iter().for_each(|packet| pool.free(packet));
                return Err(full);
            }
        }
    }
    let old = std::mem::replace(&mut unit.chain, chain);
    old.into_iter().for_each(|packet| pool.free(packet));
    unit.layout = *layout;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_waits_is_laid_out_anew_for_another_graph() {
        let mut pool = Pool::new(1 << 20);
        let old = Layout { head: 9, tail: 0, segment: 100, segmented: true };
        let new = Layout { head: 17, tail: 4, segment: 90, segmented: true };
        let payload: Vec<u8> = (0..7_000).map(|i| i as u8).collect();
        let mut splice = Splice::new(64);
        let mut chain = Vec::new();
        for piece in payload.chunks(old.payload_per_train()) {
            let packet = pool.alloc_train(&old, piece.len()).unwrap();
            pool.write_payload(&packet, 0, piece);
            chain.push(packet);
        }
        splice.push(Time::from_millis(7), chain, payload.len(), old);
        let unit = splice.pop(&mut pool, &new).unwrap().unwrap();
        let mut got = Vec::new();
        for packet in unit.chain {
            assert_eq!((packet.head_room(), packet.tail_room()), (17, 4));
            pool.read_payload(&packet, &mut got);
            pool.free(packet);
        }
        assert_eq!(got, payload);
        assert_eq!(pool.live_views(), 0);
    }

    #[test]
    fn the_memory_of_a_chain_is_used_again_of_as_many_as_may_wait() {
        let mut splice = Splice::new(1);
        assert_eq!(splice.spare_chain().capacity(), 0);
        splice.give_chain_back(Vec::with_capacity(7));
        splice.give_chain_back(Vec::with_capacity(9));
        assert!((7..9).contains(&splice.spare_chain().capacity()));
        assert_eq!(splice.spare_chain().capacity(), 0);
    }
}
