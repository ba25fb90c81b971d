//! What a core is given, and what it gives: the network, the clock, what goes out.

use super::{Core, Forgets};
use crate::control::Datagram;
use crate::ids::StreamId;
use crate::network::{ChannelEvent, NetworkEvent};
use crate::peer;
use crate::transmit::{ListenerId, Payload, Transmit};
use dacapo_base::{Address, Ecn, Time, earlier};
use dacapo_packet::Packet;
use std::time::Duration;

/// While nothing but data comes, what is due need not be looked at more often.
const WATCH_EVERY: Duration = Duration::from_micros(50);

impl Core {
    /// Takes a datagram from the network, or a train of equal ones, in this core's pool. `local` is
    /// where it came in, for who has several such places.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        local: ListenerId,
        remote: Address,
        packet: Packet,
    ) {
        self.router.handle_datagram(now, local, remote, packet);
    }

    /// The network says something besides datagrams.
    pub fn handle_network(&mut self, now: Time, event: NetworkEvent) {
        self.router.handle_network(now, event);
    }

    /// Something has happened to the stream of a flow.
    pub fn handle_channel(&mut self, now: Time, stream: StreamId, event: ChannelEvent) {
        self.router.handle_channel(now, stream, event);
    }

    /// Time has passed: everything that is due happens. To be called when [`Core::next_deadline`]
    /// has said, which is to be asked again after that: what is later was stopped, and no deadline
    /// passes meanwhile.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(stopped) = self.suspension.look(now) {
            self.router.shift(now, stopped);
        }
        self.router.control.handle_timeout(now);
        self.router.drain_control(now);
        let (peers, sessions) = self.router.look_at_awake(now);
        self.router.counters.peers_watched += peers as u64;
        self.router.counters.sessions_watched += sessions as u64;
        self.router.drain_control(now);
        self.router.watched_at = Some(now);
    }

    /// The next thing to send; `None` when nothing may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some(transmit) = self.poll_control(now) {
            return Some(transmit);
        }
        if let Some((way, local, remote, bytes, ecn)) = self.router.peers.poll_probe() {
            return Some(Transmit { way, local, remote, payload: Payload::Bytes(bytes), ecn });
        }
        let packet = self.outgoing.poll(now, &mut self.router);
        // What flows have to say, END above all, goes out with the last of them.
        if packet.is_none() && self.router.control.may_give() {
            return self.poll_control(now);
        }
        packet
    }

    fn poll_control(&mut self, now: Time) -> Option<Transmit> {
        let Datagram { local, remote, bytes } = self.router.control.poll_transmit(now)?;
        self.router.drain_control(now);
        let payload = Payload::Bytes(bytes);
        let (way, local, remote) = peer::control_way(&self.router.peers, local, remote);
        Some(Transmit { way, local, remote, payload, ecn: Ecn::NotEct })
    }

    /// The next packet of the flows: of the highest priority, in turn among equals. It is all that
    /// there can be while nothing but data has come since [`Core::poll_transmit`] gave nothing; see
    /// [`Core::is_watched`].
    pub fn poll_flows(&mut self, now: Time) -> Option<Transmit> {
        self.outgoing.poll(now, &mut self.router)
    }

    /// Whether [`Core::poll_flows`] has something to do although it gave nothing the last time, and
    /// no time has passed that was waited for.
    #[must_use]
    pub fn may_give(&self) -> bool {
        let may_give = self.router.sessions.may_give() || self.router.sessions.is_changed();
        let waits = self.outgoing.has_copies() || self.router.fan_outs.may_give();
        may_give || waits
    }

    /// When [`Core::handle_timeout`] or [`Core::poll_transmit`] has something to do next.
    pub fn next_deadline(&mut self, now: Time) -> Option<Time> {
        self.tell_deadline(now, false)
    }

    /// The same for who does not sleep, but looks again and again: a session for which data comes
    /// and goes would else go to rest, and wake, with every packet.
    pub fn next_deadline_awake(&mut self, now: Time) -> Option<Time> {
        self.tell_deadline(now, true)
    }

    fn tell_deadline(&mut self, now: Time, keep: bool) -> Option<Time> {
        let due = self.find_deadline(now, keep);
        self.suspension.tell(now, due);
        // The last that was sent has left flows to be asked once more; before that time they give
        // nothing, unless something happens.
        if due.is_none_or(|at| at > now) {
            self.router.sessions.set_may_give(false);
            self.router.fan_outs.set_may_give(false);
        }
        due
    }

    /// Files all by when they are due.
    fn find_deadline(&mut self, now: Time, keep: bool) -> Option<Time> {
        if self.router.peers.has_probes() || self.has_requests() {
            return Some(now);
        }
        let sessions = &self.router.sessions;
        let give_up_at = |peer, since| sessions.give_up_at(peer, since);
        let next = earlier(
            self.router.control.next_deadline(),
            self.router.peers.next_deadline(now, give_up_at),
        );
        let next = earlier(next, self.router.sessions.next_deadline(now, keep, &self.router.peers));
        earlier(next, self.router.fan_outs.next_deadline(now, keep))
    }

    /// Whether [`Core::handle_timeout`] may be left out now: it was called less than 50 µs ago, and
    /// since then nothing has come but data, of which flows take care at once. For who turns more
    /// often than that; nobody sleeps as exactly.
    #[must_use]
    pub fn is_watched(&self, now: Time) -> bool {
        self.router.watched_at.is_some_and(|at| now.since(at) < WATCH_EVERY)
    }

    /// Whether something has happened since that [`Core::handle_timeout`] is to see.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.router.watched_at.is_none()
    }

    /// Something has happened that [`Core::handle_timeout`] is to see: all that is not data.
    pub fn touch(&mut self) {
        self.router.touch();
    }

    /// For tests: looks at everything at once, due or not, and counts nothing. Nothing may come of
    /// what was not ready.
    #[doc(hidden)]
    pub fn visit_all(&mut self, now: Time) {
        self.router.control.visit_all(now);
        self.router.peers.wake_all();
        self.router.sessions.wake_all();
        self.router.fan_outs.wake_all();
        self.router.look_at_awake(now);
        self.router.drain_control(now);
    }

    /// For tests: from now on those of one owner say that nothing is due before something comes.
    #[doc(hidden)]
    pub fn forget_due(&mut self, of: Forgets) {
        match of {
            Forgets::Connections => self.router.control.forget_due(),
            Forgets::Peers => self.router.peers.forget_due(),
            Forgets::Sessions => self.router.sessions.forget_due(),
            Forgets::FanOuts => self.router.fan_outs.forget_due(),
        }
    }
}
