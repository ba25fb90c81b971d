//! [`Effects`]: what modules asked for during a call, applied by the runner after it.

use crate::signals::Signals;
use crate::{DropReason, TimerId, Verdict};
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool};

/// The most packets that one batch call of one module may emit per direction: more than a window of
/// packets that wait for one.
pub const EMISSIONS_MAX: usize = 16_384;

/// A packet that a module made or released, and the slot during whose call it did.
#[derive(Debug)]
pub struct Emission {
    /// The slot of the call, which gives the place in the order.
    pub slot: usize,
    /// The packet.
    pub packet: Packet,
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
    pub packets_lost: u64,
    pub discarded: Vec<(DropReason, u64)>,
    /// Messages and notes that were refused.
    pub refused: u64,
    pub signals: Signals,
    /// A module has something of its own to send when the network takes it.
    pub wants_room: bool,
    /// A module wants to know what waits for the application.
    pub wants_unread: bool,
}

impl Effects {
    /// Forgets what a call has asked for; what modules have told before stays.
    pub fn forget(&mut self, pool: &mut Pool) {
        let emitted = self.down.drain(..).chain(self.up.drain(..));
        emitted.for_each(|emission| pool.free(emission.packet));
        let signals = std::mem::take(&mut self.signals);
        *self = Self { signals, ..Self::default() };
    }
}
