//! [`Effects`]: what modules asked for during a call, applied by the runner after it.

use crate::{DropReason, TimerId, Verdict};
use dacapo_base::Time;
use dacapo_packet::Packet;
use std::collections::VecDeque;

/// The most packets that one batch call of one module may emit per direction: more than a window of
/// packets that wait for one.
pub const EMISSIONS_MAX: usize = 16_384;

/// The most events that wait for the holder of a runner; further ones are counted only.
pub(crate) const EVENTS_MAX: usize = 256;

/// A packet that a module made or released, and the slot during whose call it did.
#[derive(Debug)]
pub struct Emission {
    /// The slot of the call, which gives the place in the order.
    pub slot: usize,
    /// The packet.
    pub packet: Packet,
}

/// What a module tells the holder of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Packets that the module no longer waits for.
    PacketsLost {
        /// The place of the module in the graph.
        module: usize,
        /// How many.
        count: u64,
    },
    /// A message for the module at the same place of the peer's graph, out of band.
    ControlToPeer {
        /// The place of the module in the graph.
        module: usize,
        /// The message; at most 4 KiB.
        message: Vec<u8>,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// A call left something here: what is in the slots does not simply go on.
    pub is_touched: bool,
    pub down: Vec<Emission>,
    pub up: Vec<Emission>,
    /// Verdicts other than forward, and the slots that they are about.
    pub verdicts: Vec<(usize, Verdict)>,
    pub timers: Vec<(TimerId, Option<Time>)>,
    pub events: VecDeque<Event>,
    pub events_lost: u64,
    pub packets_lost: u64,
    pub discarded: Vec<(DropReason, u64)>,
}

impl Effects {
    pub fn event(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push_back(event);
        } else {
            self.events_lost += 1;
        }
    }
}
