//! [`Module`]: the contract of a C-module.

use crate::{Cx, ModuleSpec, Verdict};
use dacapo_packet::Packet;
use dacapo_path::ClockOffset;
use std::fmt;
use std::time::Duration;

/// The number of a timer within its module; a module chooses its own.
pub type TimerId = u16;

/// Why a module did not do what an out-of-band message asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlError {
    /// The module knows no such message.
    Unknown,
    /// The message is not of its form.
    Malformed,
    /// A value is outside the bounds; the text names them.
    OutOfRange(String),
    /// A module of the graph has panicked; the text says which, and what it said.
    Failed(String),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("the module knows no such control message"),
            Self::Malformed => f.write_str("the control message is malformed"),
            Self::OutOfRange(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ControlError {}

/// What has come up through a graph and waits for an application that has not taken it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// How many units that is.
    pub units: u64,
    /// How many bytes of them.
    pub bytes: u64,
}

/// One protocol mechanism, running in one epoch of one flow.
///
/// # Contract
/// Each rule has a test in [`crate::conformance`].
/// 1. Bounded work per call; no blocking.
/// 2. A view is in exactly one place: in = forwarded + held + dropped, and after [`Module::flush`]
///    a module keeps no view.
/// 3. Packets keep their order per direction unless [`ModuleSpec::keeps_order`] is false.
/// 4. Effects go through [`Cx`], apply after the call, and are merged in slot order: what was
///    emitted during a slot's call goes before the slot's own packet.
/// 5. `down` adds exactly `spec().head` and `spec().tail` bytes to every segment, and the peer's
///    `up` removes them; one of [`crate::Stratum::Compress`] may make fewer bytes and segments of a
///    unit, never more. What goes on with another size is told ([`Cx::resized`]): the runner counts
///    a batch once and reckons on from module to module.
/// 6. Time and randomness come from [`Cx`] only.
/// 7. Bytes from a peer never panic: they are a counted drop. A module that panics ends its graph
///    and so its flow ([`crate::Runner::failure`]): nothing of it is called any more but `flush`.
/// 8. [`Module::drain`] sends what can still be sent; [`Module::flush`] forgets. Both leave the
///    module usable.
/// 9. Everything has a default that forwards.
/// 10. [`Module::credit`] says how many packets `down` takes now; the runner never offers more.
/// 11. Who stores, joins or regenerates packets carries kind, class and time along
///     ([`Packet::copy_marks`]) and reports what it gives up ([`Cx::report_lost`]).
pub trait Module: Send {
    /// The static facts.
    fn spec(&self) -> &'static ModuleSpec;

    /// A packet on its way to the network, in its slot.
    fn down(&mut self, _cx: &mut Cx<'_>, _slot: &mut Packet) -> Verdict {
        Verdict::Forward
    }

    /// A packet on its way to the application, in its slot.
    fn up(&mut self, _cx: &mut Cx<'_>, _slot: &mut Packet) -> Verdict {
        Verdict::Forward
    }

    /// Several packets to the network; a single one goes to `down`. Override it only with a
    /// measurement that shows the need: say which slot is worked on ([`Cx::at_slot`]) and, where
    /// its packet does not go on, what becomes of it ([`Cx::decide`]).
    #[inline(never)]
    fn down_batch(&mut self, cx: &mut Cx<'_>, slots: &mut [Packet]) {
        for (index, slot) in slots.iter_mut().enumerate() {
            cx.at_slot(index);
            let verdict = self.down(cx, slot);
            cx.decide(verdict);
        }
    }

    /// Several packets to the application; see [`Module::down_batch`].
    #[inline(never)]
    fn up_batch(&mut self, cx: &mut Cx<'_>, slots: &mut [Packet]) {
        for (index, slot) in slots.iter_mut().enumerate() {
            cx.at_slot(index);
            let verdict = self.up(cx, slot);
            cx.decide(verdict);
        }
    }

    /// What the runner calls: a batch to the network, when the credit is enough for its segments;
    /// false, and nothing done, when it is not. No module has a reason to override it.
    fn offer_down(&mut self, cx: &mut Cx<'_>, slots: &mut [Packet], segments: usize) -> bool {
        if segments > self.credit() {
            return false;
        }
        match slots {
            [slot] => {
                let verdict = self.down(cx, slot);
                cx.decide(verdict);
            }
            _ => self.down_batch(cx, slots),
        }
        true
    }

    /// What the runner calls: a batch to the application. No module has a reason to override it.
    fn offer_up(&mut self, cx: &mut Cx<'_>, slots: &mut [Packet]) {
        match slots {
            [slot] => {
                let verdict = self.up(cx, slot);
                cx.decide(verdict);
            }
            _ => self.up_batch(cx, slots),
        }
    }

    /// A timer that was armed through [`Cx::arm`] is due.
    fn timeout(&mut self, _cx: &mut Cx<'_>, _timer: TimerId) {}

    /// The network takes `bytes` more now, or a packet at least: what the module wanted to send
    /// ([`Cx::want_room`]) may leave, before anything new.
    fn handle_room(&mut self, _cx: &mut Cx<'_>, _bytes: usize) {}

    /// So much waits above for the application ([`Cx::want_unread`]). What it has taken has no part
    /// in it, nor has what lies in modules.
    fn handle_unread(&mut self, _cx: &mut Cx<'_>, _unread: Unread) {}

    /// An out-of-band message from the module at the same place of the peer's graph
    /// ([`Cx::control_to_peer`]), or from the application; the answer goes back the same way and is
    /// at most 4 KiB.
    ///
    /// # Errors
    /// Why nothing was done.
    fn control(&mut self, _cx: &mut Cx<'_>, _message: &[u8]) -> Result<Vec<u8>, ControlError> {
        Err(ControlError::Unknown)
    }

    /// What the peer's module has answered to a message of [`Cx::control_to_peer`]; `Err` with a
    /// text when nothing was done, nobody answered, or too many of other modules are under way.
    fn answered(&mut self, _cx: &mut Cx<'_>, _answer: Result<&[u8], &str>) {}

    /// How many packets `down` takes now.
    fn credit(&self) -> usize {
        usize::MAX
    }

    /// How long `up` may keep a packet waiting for others: who waits for the last packets of an
    /// epoch waits at least as long.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Said once, before anything comes up: this end takes part from somewhere in the middle of the
    /// epoch, and the first packets that come say where. What came before them is nobody's loss;
    /// what was sent before them may still come after them, again.
    fn join(&mut self) {}

    /// How far the peer's clock is ahead: said before anything comes where it is known, and
    /// whenever it is known better.
    fn handle_clock(&mut self, _offset: ClockOffset) {}

    /// Of which of several receivers is what comes up from now on: a number that each has for as
    /// long as it takes part, and no other after it. Never said where there is one.
    fn handle_receiver(&mut self, _receiver: u32) {}

    /// Sends what can still be sent: no unit will follow in this epoch.
    fn drain(&mut self, _cx: &mut Cx<'_>) {}

    /// Forgets everything and gives every view back to the pool.
    fn flush(&mut self, _cx: &mut Cx<'_>) {}
}
