//! [`Router`]: the owners of a core, the doors to them, and what becomes of the effects that come
//! out.
//!
//! ```text
//!   what comes -> door (with_session, with_peers) -> owner -> effects -> route -> further doors
//! ```
//!
//! Invariant: what is more than data comes to an owner through its door, after which its effects
//! are routed.

use crate::config::SESSIONS_MAX;
use crate::control::{Control, ControlEvent};
use crate::effect::{Effect, Out, PeerNews};
use crate::error::{Code, Error};
use crate::events::{CoreEvent, Events};
use crate::fanout::FanOuts;
use crate::flow::{FlowEvent, FlowOut};
use crate::ids::{FanOutId, PeerId, SessionId};
use crate::known::PathKnown;
use crate::peer::{Identity, PeerCx, Peers, Routed};
use crate::served::{self, Asking, JoinParams, Refusal, Served, ServedSessions};
use crate::session::table::Role;
use crate::session::{Session, SessionCx, Sessions, no_session};
use crate::shared::Shared;
use crate::status::CoreCounters;
use dacapo_base::{Address, Time};
use dacapo_path::Held;
use dacapo_wire::hub::Listing;
use dacapo_wire::message::Message;
use dacapo_wire::session::{CODE_SUCCESS, FlowOffer, Join};
use std::collections::VecDeque;
use std::time::Duration;

/// The owners of a core, and the way from one to another.
pub(super) struct Router {
    pub identity: Identity,
    pub shared: Shared,
    pub control: Control,
    pub peers: Peers,
    pub sessions: Sessions,
    pub fan_outs: FanOuts,
    pub served: ServedSessions,
    pub events: Events,
    pub counters: CoreCounters,
    /// Remotes whose data lane is no longer needed.
    pub closed_data: VecDeque<Address>,
    /// When all that was due was looked at last, if nothing but data has come since.
    pub watched_at: Option<Time>,
}

impl Router {
    /// Without peers and sessions yet.
    pub(super) fn new(identity: Identity, shared: Shared, control: Control) -> Self {
        Self {
            identity,
            shared,
            control,
            peers: Peers::default(),
            sessions: Sessions::default(),
            fan_outs: FanOuts::default(),
            served: ServedSessions::default(),
            events: Events::default(),
            counters: CoreCounters::default(),
            closed_data: VecDeque::new(),
            watched_at: None,
        }
    }

    /// The one door to a session: `body` is run over it, and what follows is seen to.
    pub(super) fn with_session<R>(
        &mut self,
        now: Time,
        id: SessionId,
        out: &mut Out,
        body: impl FnOnce(&mut Session, &mut SessionCx<'_>, &mut Out) -> R,
    ) -> Option<R> {
        let peer = self.peers.get(self.sessions.get(id)?.peer());
        let (shared, fan_outs) = (&mut self.shared, &mut self.fan_outs);
        self.sessions.with(id, |session| {
            let mut cx = SessionCx { now, shared, fan_outs, peer };
            session.enter(&mut cx, out, body)
        })
    }

    /// The one door to the peers: `body` is run over them, and what it wants is done.
    pub(super) fn with_peers<R>(
        &mut self,
        now: Time,
        body: impl FnOnce(&mut Peers, &mut PeerCx<'_>, &mut Out) -> R,
    ) -> R {
        let mut out = Out::default();
        let result = self.in_peers(now, &mut out, body);
        self.route(now, out);
        result
    }

    fn in_peers<R>(
        &mut self,
        now: Time,
        out: &mut Out,
        body: impl FnOnce(&mut Peers, &mut PeerCx<'_>, &mut Out) -> R,
    ) -> R {
        let (control, shared) = (&mut self.control, &mut self.shared);
        let mut cx = PeerCx { now, control, shared, identity: self.identity };
        body(&mut self.peers, &mut cx, out)
    }

    pub(super) fn ask<R>(
        &mut self,
        now: Time,
        id: SessionId,
        body: impl FnOnce(&mut Session, &mut SessionCx<'_>, &mut Out) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut out = Out::default();
        let result = self.with_session(now, id, &mut out, body);
        self.route(now, out);
        result.unwrap_or_else(|| Err(no_session(id)))
    }

    pub(super) fn join(
        &mut self,
        now: Time,
        peer: PeerId,
        name: &str,
        params: JoinParams,
    ) -> Result<SessionId, Error> {
        let no_peer = || Error::new(Code::NoSuchThing, "the peer is not open");
        let it = self.peers.get(peer).ok_or_else(no_peer)?;
        let (graphs, random) = (&self.shared.graphs, &mut self.shared.random);
        let join = served::introduce(graphs, random, it, name, params)?;
        let conn = it.open_conn()?;
        if self.session_count() >= SESSIONS_MAX {
            return Err(Error::new(Code::TooMany, "sessions"));
        }
        let id = SessionId(self.shared.fresh_id());
        let stream = self.with_peers(now, |peers, cx, _| peers.open_stream(cx, conn, id));
        let stream = stream.ok_or_else(|| Error::new(Code::TooMany, "sessions with this peer"))?;
        self.add_session(Session::joining(now, id, peer, stream, name));
        let mut out = Out::default();
        out.send(id, Message::Join(join));
        self.route(now, out);
        Ok(id)
    }

    fn add_session(&mut self, session: Session) {
        self.peers.note_session(session.peer());
        self.sessions.insert(session);
    }

    fn session_count(&self) -> usize {
        self.sessions.len() + self.fan_outs.len()
    }

    /// Something has happened that [`Core::handle_timeout`] is to see: all that is not data.
    pub(super) fn touch(&mut self) {
        self.watched_at = None;
    }

    /// Sees to what is wanted, and to what comes of that.
    pub(super) fn route(&mut self, now: Time, mut out: Out) {
        while let Some(effect) = out.pop() {
            self.touch();
            self.apply(now, effect, &mut out);
        }
    }

    fn apply(&mut self, now: Time, effect: Effect, out: &mut Out) {
        match effect {
            Effect::Event(event) => self.events.push(event),
            Effect::Send(id, message) => self.send(now, id, &message, out),
            Effect::Serve(id, join) => self.serve(now, id, join, out),
            Effect::Over(id, error) => self.end_session(now, id, error, out),
            Effect::Left(name) => self.served.leave(&name),
            Effect::FanOut(id, told) => self.apply_fan_out(now, id, told, out),
            Effect::EndMember((id, index), failure) => {
                _ = self.with_session(now, id, out, |it, cx, out| {
                    let failure = failure.as_ref();
                    it.with_flow(cx, index, out, |it, cx, told| it.end_member(cx, failure, told));
                })
            }
            Effect::LoseMember((id, index), error) => {
                _ = self.with_session(now, id, out, |it, cx, out| {
                    it.with_flow(cx, index, out, |it, cx, told| it.lose_member(cx, &error, told));
                })
            }
            Effect::List(id, request) => {
                let sessions = self.served.entries();
                let listing = Message::Listing(Listing { request, sessions });
                self.in_peers(now, out, |peers, cx, out| peers.send_hub(cx, id, &listing, out));
            }
            Effect::OpenFurther(id, told) => {
                self.in_peers(now, out, |peers, cx, _| peers.open_further(cx, id, &told));
            }
            Effect::CloseData(remote) => self.closed_data.push_back(remote),
            Effect::Peer(id, news) => self.apply_news(now, id, news, out),
        }
    }

    /// What happens to a peer, for its sessions.
    fn apply_news(&mut self, now: Time, id: PeerId, news: PeerNews, out: &mut Out) {
        match news {
            PeerNews::Lost { error, lists } => self.lose_peer(now, id, &error, lists, out),
            PeerNews::ContactLost(error) => self.lose_contact(now, id, &error, out),
            PeerNews::ContactRestored(after) => {
                self.for_sessions_with(now, id, out, |it, cx, out| {
                    it.restore_contact(cx.now, after);
                    out.event(CoreEvent::ContactRestored { session: it.id(), after });
                })
            }
            PeerNews::Calm => self.for_sessions_with(now, id, out, |it, cx, _| {
                it.on_flows(|flows| flows.lengthen_patience(cx, Duration::ZERO));
            }),
            PeerNews::Waits(waited) => self.give_up(now, id, waited, out),
            // They may send from now on.
            PeerNews::DataMoved | PeerNews::Room => self.sessions.wake_with(id),
            PeerNews::DataOpen => {
                for session in self.sessions.unanswered(id) {
                    self.with_session(now, session, out, |it, cx, out| it.answer_if_open(cx, out));
                }
            }
            PeerNews::PathLen { from, to } => {
                self.for_sessions_with(now, id, out, |it, cx, out| {
                    if let (true, Some(from)) = (it.handle_path_len(cx, to), from) {
                        out.event(CoreEvent::PathMtuChanged { session: it.id(), from, to });
                    }
                })
            }
            PeerNews::Held(Held { loss_ppm, rate_bps }) => {
                self.for_sessions_with(now, id, out, |it, _, out| {
                    out.event(CoreEvent::PathHeld { session: it.id(), loss_ppm, rate_bps });
                })
            }
            PeerNews::Seen(seen) => {
                if self.peers.handle_seen(now, id, &seen) {
                    self.sessions.wake_with(id);
                }
            }
            PeerNews::Clock(clock) => {
                let ids: Vec<SessionId> = self.sessions.with_peer(id).collect();
                for session in ids {
                    self.sessions.adjust(session, |it| {
                        it.on_flows(|flows| flows.for_each(|flow| flow.end.handle_clock(clock)))
                    });
                }
            }
        }
    }

    fn for_sessions_with(
        &mut self,
        now: Time,
        peer: PeerId,
        out: &mut Out,
        mut body: impl FnMut(&mut Session, &mut SessionCx<'_>, &mut Out),
    ) {
        let ids: Vec<SessionId> = self.sessions.with_peer(peer).collect();
        for id in ids {
            self.with_session(now, id, out, &mut body);
        }
    }

    /// Sends a message on a session's stream; when that cannot be, the session is over.
    fn send(&mut self, now: Time, id: SessionId, message: &Message, out: &mut Out) {
        let Some(session) = self.sessions.get(id) else { return };
        let (peer, stream) = (session.peer(), session.stream());
        let Some(conn) = self.peers.speak(now, peer) else { return };
        if self.control.send(conn, stream, message).is_err() {
            let text = format!("the peer does not read its control stream ({:?})", message.kind());
            let error = Error::new(Code::NoAnswer, text);
            self.with_session(now, id, out, |it, cx, out| it.end(cx, Some(error), out));
        }
    }

    /// A session is over at this end, and is forgotten.
    fn end_session(&mut self, now: Time, id: SessionId, error: Option<Error>, out: &mut Out) {
        let Some(session) = self.sessions.remove(id) else { return };
        let (peer, stream) = (session.peer(), session.stream());
        self.in_peers(now, out, |peers, cx, _| peers.end_session(cx, peer, stream));
        let given_up = error.clone();
        self.events.push(CoreEvent::SessionEnded { session: id, error });
        // A peer without contact is there as long as a session waits for it.
        let is_unused =
            self.peers.get(peer).filter(|peer| peer.is_suspended() && !peer.has_sessions());
        if let Some(remote) = is_unused.map(|peer| peer.remote()) {
            let no_reason = || Error::new(Code::GivenUp, remote.to_string());
            let error = given_up.unwrap_or_else(no_reason);
            self.in_peers(now, out, |peers, cx, out| peers.lose(cx, peer, &error, out));
        }
    }

    /// Makes the session that somebody asks for.
    fn serve(&mut self, now: Time, id: SessionId, join: Join, out: &mut Out) {
        let served = self.try_serve(now, id, join, out);
        if let Ok(served) = &served {
            self.served.enter(&served.name);
        }
        self.with_session(now, id, out, |it, cx, out| it.handle_served(cx, served, out));
    }

    fn try_serve(
        &mut self,
        now: Time,
        id: SessionId,
        join: Join,
        out: &mut Out,
    ) -> Result<Served, Refusal> {
        let joined = self.served.participants_of(&join.name);
        let mut has_place = !self.served.is_full(&join.name);
        // The one that has been without contact for longest makes place for another.
        if !has_place && let Some(lost) = longest_lost(&self.sessions, &self.peers, &join.name) {
            let error = Error::new(Code::GivenUp, "its place was needed for another participant");
            self.with_session(now, lost, out, |it, cx, out| it.fail(cx, error, out));
            has_place = true;
        }
        if !has_place || self.session_count() > SESSIONS_MAX {
            let text = format!("{} has {joined} participants already", join.name);
            return Err(Error::new(Code::TooMany, text).into());
        }
        let peer = self.sessions.get(id).map(Session::peer);
        let Some((peer, it)) = peer.and_then(|id| Some((id, self.peers.get(id)?))) else {
            return Err(Error::new(Code::Internal, "a session without a peer").into());
        };
        let asking = Asking {
            peer: it,
            path: self.path_known(peer).unwrap_or_default(),
            further: self.shared.further_for(it.local(), &it.remote()),
            is_only: self.sessions.with_peer(peer).nth(1).is_none(),
        };
        let name = join.name.clone();
        let is_running = |flow: &FlowOffer| {
            let is_shared = self.shared.graphs.is_shared(flow.transport);
            is_shared && self.fan_outs.running(&name, flow).is_some()
        };
        self.served.serve(&self.shared.graphs, join, &asking, is_running)
    }

    /// What is known of the path to a peer.
    pub fn path_known(&self, peer: PeerId) -> Option<PathKnown> {
        let it = self.peers.get(peer)?;
        let control = it.conn().and_then(|conn| self.control.rtt_min(conn));
        Some(PathKnown::of(it.data().path(), control))
    }

    /// A peer is gone: its sessions end abnormally.
    fn lose_peer(&mut self, now: Time, id: PeerId, error: &Error, lists: usize, out: &mut Out) {
        let mut ends = Out::default();
        self.for_sessions_with(now, id, &mut ends, |it, cx, out| {
            it.end(cx, Some(error.clone()), out);
        });
        self.route(now, ends);
        for _ in 0..lists {
            out.event(CoreEvent::Listing { peer: id, sessions: Err(error.clone()) });
        }
        out.event(CoreEvent::PeerLost { peer: id, error: error.clone() });
    }

    /// Contact is lost: sessions that are set up wait for it, the others end.
    fn lose_contact(&mut self, now: Time, id: PeerId, error: &Error, out: &mut Out) {
        self.for_sessions_with(now, id, out, |it, cx, out| {
            if it.lose_contact(cx) {
                out.event(CoreEvent::ContactLost { session: it.id() });
            } else {
                it.fail(cx, error.clone(), out);
            }
        });
        if self.peers.get(id).is_some_and(|peer| !peer.has_sessions()) {
            self.in_peers(now, out, |peers, cx, out| peers.lose(cx, id, error, out));
        }
    }

    /// Contact has been lost for so long: sessions that have waited long enough are given up.
    fn give_up(&mut self, now: Time, id: PeerId, waited: Duration, out: &mut Out) {
        let Some(remote) = self.peers.get(id).map(|peer| peer.remote()) else { return };
        let is_over =
            |it: &SessionId| self.sessions.get(*it).is_some_and(|it| waited >= it.give_up_after());
        let over: Vec<SessionId> = self.sessions.with_peer(id).filter(is_over).collect();
        for session in over {
            self.with_session(now, session, out, |it, cx, out| {
                let text = format!("{remote}: in {} s", it.give_up_after().as_secs_f64());
                it.fail(cx, Error::new(Code::GivenUp, text), out);
            });
        }
        if self.peers.get(id).is_some_and(|peer| !peer.has_sessions()) {
            let error = Error::new(Code::GivenUp, remote.to_string());
            self.in_peers(now, out, |peers, cx, out| peers.lose(cx, id, &error, out));
        }
    }

    /// Does what the sender of a fan-out tells: for every member.
    fn apply_fan_out(&mut self, now: Time, id: FanOutId, told: FlowOut, out: &mut Out) {
        let members: Vec<_> =
            self.fan_outs.get(id).into_iter().flat_map(|it| it.members()).collect();
        if let Some(modules) = told.modules {
            let shared = &mut self.shared;
            self.fan_outs.with(id, out, |it, more| {
                it.handle_told(&mut shared.flow(now), &modules, more);
            });
        }
        for event in told.events {
            match event {
                FlowEvent::Failed(error) => members.iter().for_each(|&(session, flow)| {
                    let error = error.clone();
                    out.event(CoreEvent::FlowFailed { session, flow, error });
                }),
                FlowEvent::Retire(label) => self.shared.labels.retire(now, label),
                // The accounts are the members'; a fan-out has no changes.
                FlowEvent::Ended { .. }
                | FlowEvent::Changed { .. }
                | FlowEvent::ChangeFailed(_) => {}
            }
        }
        for message in told.messages {
            let Message::End(end) = message else { continue };
            let failure = (end.code != CODE_SUCCESS).then(|| Error::from_peer(end.code, &end.text));
            let end = |place| Effect::EndMember(place, failure.clone());
            members.iter().for_each(|&place| out.push(end(place)));
        }
    }

    /// Does what the control connections report.
    pub(super) fn drain_control(&mut self, now: Time) {
        while let Some(event) = self.control.poll_event() {
            self.touch();
            let mut out = Out::default();
            self.handle_control(now, event, &mut out);
            self.route(now, out);
        }
    }

    fn handle_control(&mut self, now: Time, event: ControlEvent, out: &mut Out) {
        match event {
            ControlEvent::Connected { conn, remote, dialed } => {
                self.in_peers(now, out, |it, cx, out| {
                    it.handle_connected(cx, conn, remote, dialed, out);
                });
            }
            ControlEvent::Lost { conn, reason, said } => {
                self.in_peers(now, out, |it, cx, out| {
                    it.handle_lost(cx, conn, &reason, said, out);
                });
            }
            ControlEvent::Message { conn, stream, message } => {
                let routed = self.in_peers(now, out, |it, cx, out| {
                    it.handle_message(cx, conn, stream, message, out)
                });
                let (id, message) = match routed {
                    Routed::Nobody => return,
                    Routed::Session(id, message) => (id, message),
                    Routed::NewSession(peer, message) => {
                        let id = SessionId(self.shared.fresh_id());
                        self.add_session(Session::asked_for(now, id, peer, stream));
                        self.peers.carry(conn, stream, id);
                        (id, message)
                    }
                };
                self.with_session(now, id, out, |it, cx, out| it.handle_message(cx, message, out));
            }
            ControlEvent::Ended { conn, stream, error } => {
                let ended = self.in_peers(now, out, |it, cx, out| {
                    it.handle_stream_ended(cx, conn, stream, error, out)
                });
                if let Some((id, error)) = ended {
                    self.with_session(now, id, out, |it, cx, out| {
                        it.handle_stream_ended(cx, error, out);
                    });
                }
            }
        }
    }
}

/// Of the participants of a session that is served here, who has been without contact for longest.
fn longest_lost(sessions: &Sessions, peers: &Peers, name: &str) -> Option<SessionId> {
    let served = sessions.iter().filter(|(_, it)| it.role() == Role::Creator);
    let named = served.filter(|(_, it)| it.name() == name && !it.is_over());
    let lost = named.filter_map(|(id, it)| Some((peers.get(it.peer())?.lost_since()?, id)));
    lost.min().map(|(_, id)| id)
}
