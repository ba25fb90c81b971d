//! [`Cx`]: all that a module can reach during a call.
//!
//! The only clock, the only randomness, the pool, and a place to leave effects.

use crate::effects::{EMISSIONS_MAX, Effects, Emission};
use crate::signals::Note;
use crate::{Context, DropReason, TimerId, Verdict};
use dacapo_base::{Random, Time};
use dacapo_packet::{Packet, Pool};
use dacapo_path::PathSeen;
use std::time::Duration;

/// The surroundings of one call.
#[derive(Debug)]
pub struct Cx<'a> {
    now: Time,
    /// The memory of the core.
    pub pool: &'a mut Pool,
    /// The randomness of the core.
    pub random: &'a mut Random,
    pub(crate) effects: &'a mut Effects,
    pub(crate) module: usize,
    pub(crate) slot: usize,
}

impl<'a> Cx<'a> {
    #[inline]
    pub(crate) fn new(
        now: Time,
        pool: &'a mut Pool,
        random: &'a mut Random,
        effects: &'a mut Effects,
        module: usize,
    ) -> Self {
        Self { now, pool, random, effects, module, slot: 0 }
    }

    /// The time of this call.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Says which slot of the batch is worked on, so that effects keep its place in the order.
    /// Batch methods call it before each packet.
    #[inline]
    pub fn at_slot(&mut self, slot: usize) {
        self.slot = slot;
    }

    /// Says what becomes of the packet in the slot that is worked on. Batch methods call it after
    /// each packet; without it the packet goes on.
    #[inline]
    pub fn decide(&mut self, verdict: Verdict) {
        if verdict != Verdict::Forward {
            self.decide_otherwise(verdict);
        }
    }

    #[cold]
    fn decide_otherwise(&mut self, verdict: Verdict) {
        let slot = self.slot;
        self.touch().verdicts.push((slot, verdict));
    }

    /// Says that the packet in the slot goes on with another number of bytes or segments than rule
    /// 5 of the contract gives it, so that it is counted anew.
    pub fn resized(&mut self) {
        self.touch();
    }

    fn touch(&mut self) -> &mut Effects {
        self.effects.is_touched = true;
        self.effects
    }

    /// Sends a packet towards the network, before the slot's own packet.
    ///
    /// # Errors
    /// The packet back when this call has emitted [`EMISSIONS_MAX`] already.
    pub fn emit_down(&mut self, packet: Packet) -> Result<(), Packet> {
        let slot = self.slot;
        emit(&mut self.touch().down, slot, packet)
    }

    /// Sends a packet towards the application, before the slot's own packet.
    ///
    /// # Errors
    /// The packet back when this call has emitted [`EMISSIONS_MAX`] already.
    pub fn emit_up(&mut self, packet: Packet) -> Result<(), Packet> {
        let slot = self.slot;
        emit(&mut self.touch().up, slot, packet)
    }

    /// Says that the module has something of its own to send as soon as the network takes it:
    /// [`crate::Module::handle_room`] is called then, once.
    pub fn want_room(&mut self) {
        self.effects.wants_room = true;
    }

    /// Says that the module is to be told what waits above it for the application, once what it has
    /// let up is passed on, or the application has taken some: [`crate::Module::handle_unread`] is
    /// called then, once.
    pub fn want_unread(&mut self) {
        self.effects.wants_unread = true;
    }

    /// Gives a packet up that is not in the slot: it is freed, and counted for the reason.
    pub fn discard(&mut self, packet: Packet, reason: DropReason) {
        self.touch().discarded.push((reason, packet.segment_count() as u64));
        self.pool.free(packet);
    }

    /// Counts packets that the module was to make and could not.
    pub fn not_made(&mut self, count: u64, reason: DropReason) {
        self.touch().discarded.push((reason, count));
    }

    /// Asks for [`crate::Module::timeout`] at `at`; replaces what was asked for this timer before.
    pub fn arm(&mut self, timer: TimerId, at: Time) {
        self.touch().timers.push((timer, Some(at)));
    }

    /// Takes the request for a timer back.
    pub fn disarm(&mut self, timer: TimerId) {
        self.touch().timers.push((timer, None));
    }

    /// Reports packets that the module gives up waiting for. Where several modules do, the path is
    /// told by the lowest: what those above miss is the same.
    pub fn report_lost(&mut self, count: u64) {
        self.see_lost(count, None);
    }

    /// Reports packets that are lost, of which the newest was sent then.
    pub fn report_lost_sent_at(&mut self, count: u64, sent_at: Option<Time>) {
        self.see_lost(count, sent_at);
    }

    fn see_lost(&mut self, count: u64, sent_at: Option<Time>) {
        let module = self.module;
        let effects = self.touch();
        effects.packets_lost += count;
        effects.signals.see_lost(module, count, sent_at);
    }

    /// Reports that so many packets in a row did not come the first time, and those around them
    /// did: by this the path knows how long runs of losses are.
    pub fn report_run(&mut self, packets: u64) {
        self.see(PathSeen { lost_runs: 1, lost_in_runs: packets, ..PathSeen::default() });
    }

    /// Reports packets that were reported lost and had come, or were only late.
    pub fn report_spurious(&mut self, packets: u64) {
        self.see(PathSeen { spurious_packets: packets, ..PathSeen::default() });
    }

    /// Reports packets that the other end has said it got, and when the newest was sent.
    pub fn report_delivered(&mut self, packets: u64, bytes: u64, sent_at: Time) {
        self.see(PathSeen {
            delivered_packets: packets,
            delivered_bytes: bytes,
            sent_at: Some(sent_at),
            ..PathSeen::default()
        });
    }

    /// Reports a round trip, of which the other end held what it answers for `held`.
    pub fn report_rtt(&mut self, sample: Duration, held: Duration) {
        let rtt = Some(sample.saturating_sub(held));
        self.see(PathSeen { rtt, ..PathSeen::default() });
    }

    /// Reports packets that came with a mark of congestion.
    pub fn report_marked(&mut self, packets: u64) {
        self.see(PathSeen { marked_packets: packets, ..PathSeen::default() });
    }

    fn see(&mut self, seen: PathSeen) {
        self.effects.signals.see(&seen);
    }

    /// Shows a figure of the module's own: the last value of each code is what a person sees.
    /// Beyond [`crate::NOTES_MAX`] codes in a graph it is counted as refused.
    pub fn note(&mut self, code: u16, value: i64) {
        let module = self.module;
        if !self.effects.signals.note(Note { module, code, value }) {
            self.touch().refused += 1;
        }
    }

    /// Sends a message out of band to the module at the same place of the peer's graph, whose
    /// [`crate::Module::control`] gets it; what that answers comes to [`crate::Module::answered`].
    /// It arrives, whatever packets are lost, as long as there is contact; when 24 of the session's
    /// modules are under way it is answered with an error at once.
    ///
    /// Returns false, and sends nothing, when the message is longer than 4 KiB, while
    /// [`crate::OPEN_MAX`] of this module wait for their answers, or after
    /// [`crate::MESSAGES_PER_SECOND`] in a second; that is counted.
    #[must_use]
    pub fn control_to_peer(&mut self, message: &[u8]) -> bool {
        let (now, module) = (self.now, self.module);
        let effects = self.touch();
        let is_sent = effects.signals.send(now, module, message);
        effects.refused += u64::from(!is_sent);
        is_sent
    }
}

fn emit(lane: &mut Vec<Emission>, slot: usize, packet: Packet) -> Result<(), Packet> {
    if lane.len() >= EMISSIONS_MAX {
        return Err(packet);
    }
    lane.push(Emission { slot, packet });
    Ok(())
}

/// Lends a context to modules that stand outside a [`crate::Runner`]: for measurements of what the
/// runner costs. What they leave in it goes nowhere.
#[derive(Debug, Default)]
pub struct Bare {
    effects: Effects,
}

impl Bare {
    /// Runs `body` with a context.
    #[inline]
    pub fn with<R>(&mut self, around: &mut Context<'_>, body: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        body(&mut Cx::new(around.now, around.pool, around.random, &mut self.effects, 0))
    }

    /// True when a module did something else than forward: a measurement of that is worth nothing.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.effects.is_touched
    }
}
