//! [`Peers`]: the peers of a core, whose each connection and stream is, and their probes.
//!
//! Peers that will be due soon are woken with the first that is: a process that sleeps is woken
//! once for all their probes, not for each.
//!
//! Invariants: two cores share one connection; at most [`TOGETHER_MAX`] peers are woken early at a
//! time; at most one look per peer and transport waits to be polled; a question that is due is
//! asked, however many are due with it, before any peer is asked twice.

use crate::ids::{PeerId, SessionId};
mod further;
mod hub;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use further::{control_origin, control_way};
pub(crate) use hub::Routed;

use super::further::{FURTHER_MAX, Towards};
use super::{DataPath, HostLookup, Peer};
use crate::control::{ConnId, Control};
use crate::effect::{Effect, Out, PeerNews};
use crate::flow::FlowSeen;
use crate::ready_table::{Due, ReadyTable};
use crate::shared::Shared;
use crate::transmit::{ListenerId, Way};
use dacapo_base::{Address, Ecn, Time};
use dacapo_path::EARLY_MAX;
use dacapo_wire::probe::Probe;
use further::FurtherPaths;
use quinn_proto::StreamId;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The most peers that are woken early with one that is due: a quarter of the probes that may wait.
const TOGETHER_MAX: usize = 64;

/// Which stream of a control connection carries what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    Hub(PeerId),
    Session(SessionId),
    /// A session that is over at this end; what still comes is passed over.
    Over,
}

/// Who this core says it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// Which start of its program.
    pub instance: [u8; 16],
    pub boot: [u8; 16],
    pub time_namespace: u64,
    pub versions: (u16, u16),
}

/// What a call into the peers is given.
pub(crate) struct PeerCx<'a> {
    pub now: Time,
    pub control: &'a mut Control,
    pub shared: &'a mut Shared,
    pub identity: Identity,
}

#[derive(Default)]
pub(crate) struct Peers {
    all: ReadyTable<PeerId, Peer>,
    /// Peers by what names their connection in probes, and the place of the path that it means.
    probed: BTreeMap<u64, (PeerId, usize)>,
    further: FurtherPaths,
    conns: BTreeMap<ConnId, PeerId>,
    streams: BTreeMap<(ConnId, StreamId), Carries>,
    /// Where a peer is to be looked for on this host.
    looks: VecDeque<HostLookup>,
    probes: VecDeque<WaitingProbe>,
    /// With which peer the room for questions came to its end: the next look begins there.
    unasked: Option<PeerId>,
}

/// A path to a peer, by its place among all.
type PathId = (PeerId, usize);

/// A probe that waits: of which path, from where and to where, and with which congestion codepoint.
type WaitingProbe = (PathId, Towards, Vec<u8>, Ecn);

/// A probe that leaves: how, from where, to where, and with which congestion codepoint.
pub(crate) type LeavingProbe = (Way, Option<ListenerId>, Address, Vec<u8>, Ecn);

/// Questions leave half of the room to answers: who asks much has to answer, too.
fn has_room_for_question(probes: &VecDeque<WaitingProbe>, cx: &PeerCx<'_>) -> bool {
    probes.len() < cx.shared.queues.probes_max.div_ceil(2)
}

/// Keeps a probe until it is polled, while there is room.
fn push_probe(probes: &mut VecDeque<WaitingProbe>, cx: &PeerCx<'_>, probe: WaitingProbe) {
    if probes.len() < cx.shared.queues.probes_max {
        probes.push_back(probe);
    }
}

/// Runs `body` over one path to a peer.
fn on_path<R>(
    all: &mut ReadyTable<PeerId, Peer>,
    (id, place): PathId,
    body: impl FnOnce(&mut DataPath) -> R,
) -> Option<R> {
    all.with(id, |peer| peer.path_mut(place).map(body)).flatten()
}

/// Asks the questions that are due on a path.
fn ask_by(
    all: &mut ReadyTable<PeerId, Peer>,
    probes: &mut VecDeque<WaitingProbe>,
    cx: &PeerCx<'_>,
    path: PathId,
) {
    let Some(towards) = all.get(path.0).and_then(|peer| peer.way_by(path.1)) else { return };
    while has_room_for_question(probes, cx)
        && let Some(question) = on_path(all, path, |it| it.poll_question(cx.now)).flatten()
        && let Some(it) = path_of(all, path)
    {
        let bytes = it.write_question(cx.now, question);
        push_probe(probes, cx, (path, towards, bytes, question.ecn));
    }
}

fn path_of(all: &ReadyTable<PeerId, Peer>, (id, place): PathId) -> Option<&DataPath> {
    all.get(id)?.path(place)
}

impl Peers {
    pub fn get(&self, id: PeerId) -> Option<&Peer> {
        self.all.get(id)
    }

    pub fn is_suspended(&self, id: PeerId) -> bool {
        self.get(id).is_some_and(Peer::is_suspended)
    }

    /// Runs `body` over a peer for what changes no deadline of it but that of its path, which says
    /// so.
    #[inline]
    pub fn adjust<R>(&mut self, id: PeerId, body: impl FnOnce(&mut Peer) -> R) -> Option<R> {
        let mut is_earlier = false;
        let result = self.all.adjust(id, |peer| {
            let result = body(peer);
            is_earlier = peer.poll_earlier();
            result
        });
        if is_earlier {
            self.all.wake(id);
        }
        result
    }

    /// Modules of flows with it have seen something of the path: whether packets that wait may
    /// leave now.
    pub fn handle_seen(&mut self, now: Time, id: PeerId, seen: &FlowSeen) -> bool {
        if seen.left.is_empty() {
            // What has come changes nothing of what leaves.
            self.all.adjust(id, |peer| peer.handle_seen(now, seen));
            return false;
        }
        let has_capacity = self.all.with(id, |peer| {
            peer.handle_seen(now, seen);
            peer.poll_room(now)
        });
        has_capacity == Some(true)
    }

    /// A session with a peer begins.
    pub fn note_session(&mut self, id: PeerId) {
        self.all.adjust(id, |peer| peer.sessions += 1);
    }

    /// A session with a peer is over; what came last on its stream is passed over, and begins no
    /// new one.
    pub fn end_session(&mut self, cx: &mut PeerCx<'_>, id: PeerId, stream: StreamId) {
        let conn = self.all.adjust(id, |peer| {
            peer.sessions = peer.sessions.saturating_sub(1);
            peer.conn()
        });
        let Some(conn) = conn.flatten() else { return };
        if let Some(carries) = self.streams.get_mut(&(conn, stream)) {
            *carries = Carries::Over;
        }
        cx.control.finish(conn, stream);
    }

    /// Opens a stream for a session with a peer; `None` when there are too many.
    pub fn open_stream(
        &mut self,
        cx: &mut PeerCx<'_>,
        conn: ConnId,
        session: SessionId,
    ) -> Option<StreamId> {
        let stream = cx.control.open_stream(conn)?;
        self.streams.insert((conn, stream), Carries::Session(session));
        Some(stream)
    }

    /// Something has come on a stream that carries this session from now on.
    pub fn carry(&mut self, conn: ConnId, stream: StreamId, session: SessionId) {
        self.streams.insert((conn, stream), Carries::Session(session));
    }

    /// Something is said to a peer, and is to arrive soon: the connection.
    pub fn speak(&mut self, now: Time, id: PeerId) -> Option<ConnId> {
        let conn = self.get(id)?.conn()?;
        self.all.with(id, |peer| peer.life.solicit_acks(now));
        Some(conn)
    }

    /// What is to be looked for on this host, one by one.
    pub fn poll_host_lookup(&mut self) -> Option<HostLookup> {
        self.looks.pop_front()
    }

    /// A peer is reached by a transport of one host.
    pub fn handle_found(&mut self, look: HostLookup) {
        self.all.with(look.peer, |peer| peer.same_host.push(look.transport));
    }

    /// The system or the network says that datagrams to an address are too long, and perhaps how
    /// long they may be. Anybody can say so; it is tried out.
    pub fn handle_too_large(&mut self, now: Time, remote: Address, len: Option<usize>) {
        let there =
            |peer: &Peer, place| peer.path(place).is_some_and(|path| path.remote() == Some(remote));
        let all = self.all.iter();
        let paths = all.flat_map(|(id, peer)| {
            (0..=FURTHER_MAX).filter(move |place| there(peer, *place)).map(move |place| (id, place))
        });
        let paths: Vec<PathId> = paths.collect();
        for path in paths {
            on_path(&mut self.all, path, |it| it.handle_too_large(now, len));
        }
    }

    /// A probe has come, at this place of this end; false for one that is nobody's, or answers
    /// nothing.
    pub fn handle_probe(
        &mut self,
        cx: &mut PeerCx<'_>,
        (local, remote): (ListenerId, Address),
        probe: Probe,
        len: usize,
        out: &mut Out,
    ) -> bool {
        let path = self.probed.get(&probe.connection).copied();
        let is_authentic = |path: &PathId| {
            path_of(&self.all, *path).is_some_and(|it| it.key().tag(&probe) == probe.tag)
        };
        let Some(path) = path.filter(is_authentic) else { return false };
        if probe.answer {
            return self.handle_answer(cx, path, (local, remote), &probe, out);
        }
        let (now, number) = (cx.now, probe.number);
        let asked = self.all.with(path.0, |peer| {
            let is_listener = !peer.is_dialed();
            peer.path_mut(path.1)?.handle_question(now, is_listener, remote, number, len)
        });
        // Where a further path is found is where it is answered from.
        let Some(peer) = self.get(path.0) else { return false };
        let towards = (if path.1 > 0 { Some(local) } else { peer.local() }, remote);
        let Some(it) = peer.path(path.1) else { return false };
        let asked = asked.flatten();
        let question = asked.map(|question| (it.write_question(now, question), question.ecn));
        let answer = (it.write_answer(now, probe, len), Ecn::NotEct);
        for (bytes, ecn) in question.into_iter().chain([answer]) {
            push_probe(&mut self.probes, cx, (path, towards, bytes, ecn));
        }
        true
    }

    fn handle_answer(
        &mut self,
        cx: &PeerCx<'_>,
        path: PathId,
        (local, remote): (ListenerId, Address),
        probe: &Probe,
        out: &mut Out,
    ) -> bool {
        let (now, (id, place)) = (cx.now, path);
        let answered = self.all.with(id, |peer| {
            let answered = peer.path_mut(place)?.handle_answer(now, remote, probe)?;
            peer.handle_place(place, local);
            if answered.heard.is_back {
                // The path carries again: QUIC need not wait for its own timer to find out.
                peer.life.solicit_acks(now);
                peer.life.ping_now(now);
            }
            Some(answered)
        });
        let Some(answered) = answered.flatten() else { return false };
        if let Some(before) = answered.moved_from {
            before.into_iter().for_each(|before| out.push(Effect::CloseData(before)));
            if place > 0 {
                self.further.note_moved(id, before, remote);
            }
            out.peer(id, PeerNews::DataMoved);
        }
        self.further.settle(&mut self.all, now, id, out);
        if answered.heard.has_len && place == 0 {
            out.peer(id, PeerNews::DataOpen);
        }
        if let Some(held) = answered.heard.held {
            out.peer(id, PeerNews::Held(held));
        }
        if let Some(clock) = answered.heard.clock.filter(|_| place == 0) {
            out.peer(id, PeerNews::Clock(clock));
        }
        true
    }

    /// Asks the questions that are due on the paths to a peer.
    pub(super) fn ask(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let Some(peer) = self.get(id) else { return };
        let (further, is_reached) = (peer.further.iter().count(), peer.is_reached());
        // Who is looked at is awake then, so nobody is without need.
        if further == 0 && !is_reached {
            return;
        }
        for place in 0..=further {
            ask_by(&mut self.all, &mut self.probes, cx, (id, place));
        }
        while further > 0
            && let Some((place, towards, bytes)) =
                self.all.with(id, |peer| peer.further.poll_try(cx.now)).flatten()
        {
            push_probe(&mut self.probes, cx, ((id, place), towards, bytes, Ecn::NotEct));
        }
        if !has_room_for_question(&self.probes, cx) {
            self.unasked.get_or_insert(id);
        }
        if let Some((from, to)) = on_path(&mut self.all, (id, 0), DataPath::poll_len).flatten() {
            out.peer(id, PeerNews::PathLen { from, to });
        }
    }

    /// Opens paths to a peer besides the first: at the addresses that it has told, or, where it was
    /// not dialed, wherever its questions come from.
    pub fn open_further(&mut self, cx: &mut PeerCx<'_>, id: PeerId, told: &[Address]) {
        let (now, controllers) = (cx.now, &cx.shared.controllers);
        let made = self.all.with(id, |peer| peer.open_further(now, controllers, told));
        self.further.has_any = true;
        for (name, place) in made.into_iter().flatten() {
            self.probed.insert(name, (id, place));
        }
    }

    pub fn has_probes(&self) -> bool {
        !self.probes.is_empty()
    }

    /// The next probe, and how it goes. A socket of its own is for a data port that has answered.
    /// Who leaves before that, and an address from which somebody repeats a question, would leave
    /// theirs open for ever.
    pub fn poll_probe(&mut self) -> Option<LeavingProbe> {
        let (path, (local, remote), bytes, ecn) = self.probes.pop_front()?;
        let is_known = path_of(&self.all, path).is_some_and(|it| it.remote() == Some(remote));
        // Who dials has no other way to a further address.
        let is_told = path.1 > 0 && self.get(path.0).is_some_and(Peer::is_dialed);
        let way = if is_known || is_told { Way::Data } else { Way::Control };
        Some((way, local, remote, bytes, ecn))
    }

    /// When the first is due; `give_up_at` says of one when its first session waits for contact no
    /// longer that was lost then. Those with which there is contact go to rest.
    pub fn next_deadline(
        &mut self,
        now: Time,
        give_up_at: impl Fn(PeerId, Time) -> Option<Time>,
    ) -> Option<Time> {
        self.all.file(false, |id, peer| {
            let due = peer.due(now, |since| give_up_at(id, since));
            // While contact is lost what becomes of its sessions is looked at all the time.
            if peer.is_suspended() { Due::Now(due) } else { Due::resting(due) }
        })
    }

    /// Wakes those whose time has come, and with them some whose time will come soon.
    pub(super) fn wake_due(&mut self, now: Time) {
        if !self.all.wake_due(now) {
            return;
        }
        for _ in 0..TOGETHER_MAX {
            let Some(id) = self.all.first_due(now + EARLY_MAX) else { return };
            self.all.with(id, |peer| peer.data.ask_early(now));
        }
    }

    /// For tests: from now on who rests is not woken by time.
    pub fn forget_due(&mut self) {
        self.all.forget_due();
    }

    /// Wakes all, for tests.
    pub fn wake_all(&mut self) {
        self.all.wake_all();
    }

    /// This time does not count.
    pub fn shift(&mut self, now: Time, by: Duration) {
        let all: Vec<PeerId> = self.all.iter().map(|(id, _)| id).collect();
        for id in all {
            self.all.with(id, |peer| peer.shift(now, by));
        }
    }
}
