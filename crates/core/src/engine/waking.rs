//! What the network reports, and when who is looked at.

use super::{Core, Forgets, Out};
use crate::effect::Effect;
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::ids::{SessionId, StreamId};
use crate::network::{ChannelEvent, NetworkEvent};
use crate::session::{Flow, Session};
use crate::transmit::ListenerId;
use dacapo_base::{Address, Time, earlier};
use dacapo_lift::Membership;
use std::time::Duration;

/// While nothing but data comes, what is due need not be looked at more often.
const WATCH_EVERY: Duration = Duration::from_micros(50);

impl Core {
    /// The network says something besides datagrams.
    pub fn handle_network(&mut self, now: Time, event: NetworkEvent) {
        self.touch();
        match event {
            NetworkEvent::Refused(remote) => {
                self.with_peers(now, |peers, cx, out| peers.handle_refused(cx, remote, out));
            }
            NetworkEvent::TooLarge { remote, len } => {
                self.peers.handle_too_large(now, remote, len);
            }
            NetworkEvent::Found(look) => self.peers.handle_found(look),
            NetworkEvent::Joined(joined, result) => self.handle_joined(now, &joined, result),
            NetworkEvent::GroupClosed { local, group, reason } => {
                self.handle_group_closed(now, local, group, &reason);
            }
        }
    }

    fn handle_joined(&mut self, now: Time, joined: &Membership, result: Result<(), String>) {
        let mut out = Out::default();
        for (id, index) in self.shared.groups.users(joined) {
            self.with_session(now, id, &mut out, |it, cx, out| {
                it.handle_joined(cx, index, joined, &result, out);
            });
        }
        self.route(now, out);
        self.drain_control(now);
    }

    fn handle_group_closed(
        &mut self,
        now: Time,
        local: Option<ListenerId>,
        group: Address,
        why: &str,
    ) {
        let error = Error::new(Code::NoDataPath, format!("cannot send to group {group}: {why}"));
        let mut out = Out::default();
        let ids: Vec<_> = self.fan_outs.to_group(group).collect();
        for id in ids {
            match self.fan_outs.get(id).and_then(|it| it.close_origin(local)) {
                // The others are sent to still.
                Some(here) => here.into_iter().for_each(|place| {
                    out.push(Effect::LoseMember(place, error.clone()));
                }),
                None => {
                    let shared = &mut self.shared;
                    self.fan_outs.with(id, &mut out, |it, told| {
                        it.lose_way(&mut shared.flow(now), &error, told);
                    });
                }
            }
        }
        self.route(now, out);
        self.drain_control(now);
    }

    /// Something has happened to the stream of a flow.
    pub fn handle_channel(&mut self, now: Time, stream: StreamId, event: ChannelEvent) {
        let Some((session, flow)) = self.shared.channels.owner(stream) else { return self.touch() };
        if let ChannelEvent::Fallback { transport, reason } = event {
            return self.events.push(CoreEvent::Fallback { session, flow, transport, reason });
        }
        if let ChannelEvent::Estimates(seen) = event {
            let told = |flow: &mut Flow| flow.handle_below(now, &seen);
            self.sessions.adjust(session, |it| it.on_flow(flow, told));
            return;
        }
        self.touch();
        let is_room = matches!(event, ChannelEvent::Ready(_));
        let mut out = Out::default();
        self.with_session(now, session, &mut out, |it, cx, out| {
            it.handle_channel(cx, (flow, stream), event, out);
        });
        self.route(now, out);
        if !is_room {
            self.drain_control(now);
        }
    }

    /// Time has passed: everything that is due happens. To be called when [`Core::next_deadline`]
    /// has said, which is to be asked again after that: what is later was stopped, and no deadline
    /// passes meanwhile.
    pub fn handle_timeout(&mut self, now: Time) {
        self.note_stop(now);
        self.control.handle_timeout(now);
        self.drain_control(now);
        let (peers, sessions) = self.look_at_awake(now);
        self.counters.peers_watched += peers as u64;
        self.counters.sessions_watched += sessions as u64;
        self.drain_control(now);
        self.watch.watched_at = Some(now);
    }

    /// Looks at those that are awake; in the others nothing can have happened. How many peers, and
    /// sessions and fan-outs, they are.
    fn look_at_awake(&mut self, now: Time) -> (usize, usize) {
        let peers = self.with_peers(now, |peers, cx, out| peers.handle_timeout(cx, out));
        let awake = self.sessions.take_awake(now);
        for &id in &awake {
            // Who is only looked at is not touched.
            let was_touched = self.sessions.take_touched(id);
            let mut out = Out::default();
            self.with_session(now, id, &mut out, Session::handle_timeout);
            self.route(now, out);
            self.sessions.set_touched(id, was_touched);
        }
        let mut out = Out::default();
        let fan_outs = self.fan_outs.handle_timeout(now, &mut self.shared, &mut out);
        self.route(now, out);
        (peers, awake.len() + fan_outs)
    }

    /// Moves every deadline by the time in which this end did not run.
    fn note_stop(&mut self, now: Time) {
        let Some(stopped) = self.watch.suspension.look(now) else { return };
        self.peers.shift(now, stopped);
        self.fan_outs.shift(stopped);
        let ids: Vec<SessionId> = self.sessions.iter().map(|(id, _)| id).collect();
        for id in ids {
            // Of one without contact they move when contact is back.
            let peer = self.sessions.get(id).map(Session::peer);
            if !peer.is_some_and(|peer| self.peers.is_suspended(peer)) {
                self.sessions.with(id, |session| session.shift(stopped));
            }
        }
    }

    /// For tests: looks at everything at once, due or not, and counts nothing. Nothing may come of
    /// what was not ready.
    #[doc(hidden)]
    pub fn visit_all(&mut self, now: Time) {
        self.control.visit_all(now);
        self.peers.wake_all();
        self.sessions.wake_all();
        self.fan_outs.wake_all();
        self.look_at_awake(now);
        self.drain_control(now);
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
        self.watch.suspension.tell(now, due);
        due
    }

    /// Files all by when they are due.
    fn find_deadline(&mut self, now: Time, keep: bool) -> Option<Time> {
        if self.peers.has_probes() || self.has_requests() {
            return Some(now);
        }
        let sessions = &self.sessions;
        let give_up_at = |peer, since| sessions.give_up_at(peer, since);
        let next = earlier(self.control.next_deadline(), self.peers.next_deadline(now, give_up_at));
        let next = earlier(next, self.sessions.next_deadline(now, keep, &self.peers));
        earlier(next, self.fan_outs.next_deadline(now, keep))
    }

    /// For tests: from now on those of one owner say that nothing is due before something comes.
    #[doc(hidden)]
    pub fn forget_due(&mut self, of: Forgets) {
        match of {
            Forgets::Connections => self.control.forget_due(),
            Forgets::Peers => self.peers.forget_due(),
            Forgets::Sessions => self.sessions.forget_due(),
            Forgets::FanOuts => self.fan_outs.forget_due(),
        }
    }

    /// Whether [`Core::handle_timeout`] may be left out now: it was called less than 50 µs ago, and
    /// since then nothing has come but data, of which flows take care at once. For who turns more
    /// often than that; nobody sleeps as exactly.
    #[must_use]
    pub fn is_watched(&self, now: Time) -> bool {
        self.watch.watched_at.is_some_and(|at| now.since(at) < WATCH_EVERY)
    }

    /// Whether something has happened since that [`Core::handle_timeout`] is to see.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.watch.watched_at.is_none()
    }

    /// Something has happened that [`Core::handle_timeout`] is to see: all that is not data.
    pub fn touch(&mut self) {
        self.watch.watched_at = None;
    }
}
