//! [`Leaving`]: packets that were computed, as trains of sums that wait until they are due.
//!
//! ```text
//!   sums     s0 s1 s2             each behind its header, as long as the longest source
//!   waits    | h s0 | h s1 | h s2 |  due   ->  downwards
//! ```
//!
//! Invariant: at most [`WAITING_MAX`] trains wait, in the order in which they are due; more are
//! given up and counted.

use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason, Setup};
use dacapo_packet::{Kind, Layout, Packet};
use dacapo_wire::{parity, sliding};
use std::collections::VecDeque;

/// How many trains may wait to be sent: as many may be due in one call.
const WAITING_MAX: usize = 1_024;

/// How many bytes of a header stand before what is computed.
const CODED_AT: usize = sliding::CODED_AT;

const _: () = assert!(parity::CODED_AT == CODED_AT && parity::LEN == sliding::LEN);

#[derive(Debug)]
pub(crate) struct Leaving {
    /// When they are due, and the packets.
    waiting: VecDeque<(Time, Packet)>,
    /// The room that modules and path below need before and after a packet.
    head: usize,
    tail: usize,
}

impl Leaving {
    pub fn new(setup: &Setup) -> Self {
        let head = setup.head_below.saturating_sub(sliding::LEN);
        Self { waiting: VecDeque::new(), head, tail: setup.tail_below }
    }

    fn layout(&self, sum_len: usize) -> Layout {
        let segment = sum_len + CODED_AT;
        Layout { head: self.head, tail: self.tail, segment, segmented: true }
    }

    /// How many sums of this length make a train.
    pub fn most(&self, sum_len: usize) -> usize {
        self.layout(sum_len).segments_per_train()
    }

    /// Makes a train of sums, all as long as `len`, behind the beginnings of their headers; it is
    /// due at `due`, or when the one before it is.
    pub fn push<'a>(
        &mut self,
        cx: &mut Cx<'_>,
        (due, class): (Time, u8),
        len: usize,
        sums: impl ExactSizeIterator<Item = ([u8; sliding::LEN], &'a [u8])>,
    ) {
        let (layout, count) = (self.layout(len), sums.len());
        let Ok(mut packet) = cx.pool.alloc_train(&layout, count * layout.segment) else {
            return cx.not_made(count as u64, DropReason::NoMemory);
        };
        packet.set_kind(Kind::Parity);
        packet.set_unit_ends(true, true);
        (packet.class, packet.time) = (class, cx.now());
        for (at, (header, sum)) in sums.enumerate() {
            // The length is the beginning of the sum.
            let place = at * layout.segment;
            cx.pool.write_payload(&packet, place, header.get(..CODED_AT).unwrap_or_default());
            cx.pool.write_payload(&packet, place + CODED_AT, sum);
        }
        if self.waiting.len() < WAITING_MAX {
            let due = self.waiting.back().map_or(due, |(last, _)| due.max(*last));
            self.waiting.push_back((due, packet));
        } else {
            cx.discard(packet, DropReason::Overflow);
        }
    }

    /// When the next train is to be sent.
    pub fn due(&self) -> Option<Time> {
        self.waiting.front().map(|(due, _)| *due)
    }

    /// The next train, if it is due by `now`.
    pub fn poll(&mut self, now: Time) -> Option<Packet> {
        self.due().filter(|due| *due <= now)?;
        self.waiting.pop_front().map(|(_, packet)| packet)
    }

    /// Gives up all that waits.
    pub fn flush(&mut self, cx: &mut Cx<'_>) {
        for (_, packet) in self.waiting.drain(..) {
            cx.discard(packet, DropReason::Shutdown);
        }
    }
}
