//! The byte streams of flows: which are asked for, which are open, and what their end means.
//!
//! A flow over a transport of streams, such as TCP, has one of its own. The Creator draws a token
//! for it and says it in the ACCEPT; the Participant dials and shows it.
//!
//! ```text
//!   creator      Expect(transport, token) --.              .----- handle_stream_open
//!                                            > who drives the core
//!   participant  Dial(transport, remote, ..) '             '----- handle_stream_open
//!
//!   Opening --open--> Open --REPORT--> Close        closed before: the flow ends with a reason
//!      | 10 s           | ready, not ready
//!      v                v
//!   the flow ends    the flow is asked for packets while it is ready
//! ```
//!
//! Invariants: each stream that is asked for is closed or reported closed, once; a flow has at most
//! one stream in its life.

use super::{Core, CoreEvent, SessionId, Way};
use crate::error::{Code, Error};
use crate::flow::FlowOut;
use crate::flow::sender::DIRECT_HEAD_LEN;
use crate::peer::PeerId;
use crate::session::{Flow, FlowEnd};
use dacapo_base::Time;
use dacapo_lift::StreamParams;
use dacapo_wire::session::{Accept, FlowAnswer, STREAM_TOKEN_LEN};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::time::Duration;

/// How long a stream may take to open after the ACCEPT.
pub(crate) const OPEN_MAX: Duration = Duration::from_secs(10);

/// The stream of a flow, by a number that the core chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u64);

/// What a core asks of who drives it, about streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamAsk {
    /// Dial a stream to this address and show the token.
    Dial {
        /// The stream.
        stream: StreamId,
        /// The number of the transport whose stream it is.
        transport: u16,
        /// Whose stream it is: who answers must be the same.
        peer: PeerId,
        /// Where the peer listens.
        remote: SocketAddr,
        /// What the peer knows the stream by.
        token: [u8; STREAM_TOKEN_LEN],
        /// What its flow is like.
        terms: StreamParams,
    },
    /// Wait for a stream that shows this token.
    Expect {
        /// The stream.
        stream: StreamId,
        /// The number of the transport whose stream it is.
        transport: u16,
        /// What it is known by.
        token: [u8; STREAM_TOKEN_LEN],
        /// What its flow is like.
        terms: StreamParams,
    },
    /// Read by a stream no longer, because its flow's sink has no room, or again.
    Read {
        /// The stream.
        stream: StreamId,
        /// Again.
        is_reading: bool,
    },
    /// Keep a stream on which nothing is acknowledged so much longer than usual: while contact is
    /// lost.
    Wait {
        /// The stream.
        stream: StreamId,
        /// How much longer.
        longer: Duration,
    },
    /// End a stream, whatever its state; what was sent is still delivered if the network takes it.
    /// Nothing is to be reported about it any more.
    Close {
        /// The stream.
        stream: StreamId,
    },
}

/// The stream of a flow at this end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowStream {
    pub id: StreamId,
    pub state: StreamState,
    /// It is not read now, because the flow's sink has no room.
    pub is_held_up: bool,
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamState {
    /// It may open until then.
    Opening(Time),
    /// It takes datagrams, now or later.
    Open { ready: bool },
    /// It is over, or was given up.
    Closed,
}

/// Which end of a stream this is.
#[derive(Clone, Copy, Debug)]
enum StreamRole {
    Dials(PeerId, SocketAddr),
    Expects,
}

/// The streams of a core.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Where this end listens for the streams of a transport, where it is not the port of control.
    ports: BTreeMap<u16, NonZeroU16>,
    flows: BTreeMap<StreamId, (SessionId, usize)>,
    asks: VecDeque<StreamAsk>,
}

impl Streams {
    /// What nobody has been asked for yet is not asked for, so that the asks are bounded by the
    /// flows there are.
    fn close(&mut self, stream: StreamId) {
        self.flows.remove(&stream);
        let opens =
            |ask: &StreamAsk| matches!(ask, StreamAsk::Dial { .. } | StreamAsk::Expect { .. });
        let unasked = self.asks.iter().any(|ask| ask.stream() == stream && opens(ask));
        self.asks.retain(|ask| ask.stream() != stream);
        if !unasked {
            self.asks.push_back(StreamAsk::Close { stream });
        }
    }
}

impl StreamAsk {
    /// The stream that it is about.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        match *self {
            Self::Dial { stream, .. }
            | Self::Expect { stream, .. }
            | Self::Read { stream, .. }
            | Self::Wait { stream, .. }
            | Self::Close { stream } => stream,
        }
    }
}

impl Core {
    /// Says at which port this end listens for the streams of a transport, for every ACCEPT from
    /// now on; without it a peer dials the port of the control connection.
    pub fn set_stream_port(&mut self, transport: u16, port: NonZeroU16) {
        self.flow_streams.ports.insert(transport, port);
    }

    /// What is asked of who drives the core, one by one, in order.
    pub fn poll_stream(&mut self) -> Option<StreamAsk> {
        self.flow_streams.asks.pop_front()
    }

    /// Whether something is asked.
    #[must_use]
    pub fn asks_of_streams(&self) -> bool {
        !self.flow_streams.asks.is_empty()
    }

    /// A sink without room holds its stream up, and lets it go on when it has.
    pub(super) fn note_room(&mut self, now: Time, id: SessionId, index: usize) {
        let session = self.sessions.get_mut(&id);
        let Some(flow) = session.and_then(|session| session.flows.get_mut(index)) else { return };
        let (FlowEnd::Receiver(receiver), Some(known)) = (&mut flow.end, &mut flow.stream) else {
            return;
        };
        let is_held_up = !receiver.has_room();
        let is_open = matches!(known.state, StreamState::Open { .. });
        if !is_open || is_held_up == known.is_held_up {
            return;
        }
        known.is_held_up = is_held_up;
        if !is_held_up {
            receiver.go_on(now);
        }
        let (stream, is_reading) = (known.id, !is_held_up);
        let asks = &mut self.flow_streams.asks;
        // Only the newest counts.
        asks.retain(|ask| !matches!(ask, StreamAsk::Read { stream: it, .. } if *it == stream));
        asks.push_back(StreamAsk::Read { stream, is_reading });
    }

    /// From now on the streams of a session live so much longer than usual while nothing is
    /// acknowledged.
    pub(super) fn lengthen_stream_patience(&mut self, id: SessionId, longer: Duration) {
        let Some(session) = self.sessions.get(&id) else { return };
        let open = |flow: &Flow| {
            flow.stream.filter(|it| matches!(it.state, StreamState::Open { .. })).map(|it| it.id)
        };
        let asks = &mut self.flow_streams.asks;
        for stream in session.flows.iter().filter_map(open) {
            // Only the newest counts.
            asks.retain(|ask| !matches!(ask, StreamAsk::Wait { stream: it, .. } if *it == stream));
            asks.push_back(StreamAsk::Wait { stream, longer });
        }
    }

    /// A stream is open in both directions.
    pub fn handle_stream_open(&mut self, now: Time, stream: StreamId) {
        self.touch();
        let Some(&(id, index)) = self.flow_streams.flows.get(&stream) else { return };
        let Some(known) = self.flow_stream(id, index) else { return };
        if matches!(known.state, StreamState::Opening(_)) {
            known.state = StreamState::Open { ready: true };
        }
        self.tell_ready_if_open(id);
        self.drain_control(now);
    }

    /// A stream is dialed, or was, by the transport of this number, for a reason that the one that
    /// was agreed gave.
    pub fn handle_stand_in(&mut self, stream: StreamId, transport: u16, reason: &str) {
        if let Some(&(session, flow)) = self.flow_streams.flows.get(&stream) {
            let reason = reason.to_owned();
            self.event(CoreEvent::StoodIn { session, flow, transport, reason });
        }
    }

    /// A stream takes no more (`false`) or has room again; its flow sends while it has.
    pub fn handle_stream_ready(&mut self, _now: Time, stream: StreamId, ready: bool) {
        self.touch();
        let Some(&(id, index)) = self.flow_streams.flows.get(&stream) else { return };
        if let Some(FlowStream { state: StreamState::Open { ready: known }, .. }) =
            self.flow_stream(id, index)
        {
            *known = ready;
        }
    }

    /// A stream ended, or did not open, for this reason.
    pub fn handle_stream_closed(&mut self, now: Time, stream: StreamId, reason: &str) {
        self.touch();
        let Some((id, index)) = self.flow_streams.flows.remove(&stream) else { return };
        let name = self.stream_name(id, index);
        let Some(known) = self.flow_stream(id, index) else { return };
        let error = match std::mem::replace(&mut known.state, StreamState::Closed) {
            StreamState::Opening(_) => {
                Error::new(Code::NoDataPath, format!("{name} did not open: {reason}"))
            }
            _ => Error::new(Code::ContactLost, format!("{name} ended: {reason}")),
        };
        self.lose_stream(now, id, index, &error);
        self.end_if_nothing_waits(now, id, &error);
        self.drain_control(now);
    }

    /// The stream of a flow, in words.
    fn stream_name(&self, id: SessionId, index: usize) -> String {
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(index));
        let spec = flow.and_then(|flow| self.transport(flow.offer.transport).ok());
        format!("the {} stream of the flow", spec.map_or("byte", |spec| spec.name))
    }

    fn flow_stream(&mut self, id: SessionId, index: usize) -> Option<&mut FlowStream> {
        self.sessions.get_mut(&id)?.flows.get_mut(index)?.stream.as_mut()
    }

    /// Creator: waits for the stream of a flow that was accepted, if it has one; its token, and
    /// the port where that has to be said.
    pub(super) fn expect_stream(
        &mut self,
        now: Time,
        id: SessionId,
        index: usize,
    ) -> Option<([u8; STREAM_TOKEN_LEN], Option<NonZeroU16>)> {
        let flow = self.sessions.get(&id)?.flows.get(index)?;
        let transport = flow.offer.transport;
        if !self.is_stream(transport) {
            return None;
        }
        let mut token = [0; STREAM_TOKEN_LEN];
        self.random.fill(&mut token);
        self.begin_stream(now, id, index, StreamRole::Expects, token);
        Some((token, self.flow_streams.ports.get(&transport).copied()))
    }

    /// Participant: dials the streams of the flows that were accepted.
    ///
    /// # Errors
    /// [`Code::Violation`] when the ACCEPT names no token for one.
    pub(super) fn dial_streams(
        &mut self,
        now: Time,
        id: SessionId,
        accept: &Accept,
    ) -> Result<(), Error> {
        let session = self.sessions.get(&id);
        let remote = session.and_then(|session| self.peers.get(&session.peer));
        let Some((session, remote)) = session.zip(remote.map(|peer| peer.remote)) else {
            return Ok(());
        };
        let peer = session.peer;
        let on_stream = |(_, (flow, given)): &(usize, (&Flow, &FlowAnswer))| {
            // What the Participant itself has declined has no end here.
            let is_there = !matches!(flow.end, FlowEnd::None);
            is_there && given.accepted.is_ok() && self.is_stream(flow.offer.transport)
        };
        let flows = session.flows.iter().zip(&accept.flows).enumerate().filter(on_stream);
        let token = |(index, (_, given)): (usize, (&Flow, &FlowAnswer))| {
            let port = given.stream_port.map_or(remote.port(), NonZeroU16::get);
            // A link-local address is one by its interface, too.
            let mut remote = remote;
            remote.set_port(port);
            Some((index, given.stream_token?, remote))
        };
        let tokens: Option<Vec<_>> = flows.map(token).collect();
        let text = "ACCEPT has no token for a flow on a stream";
        let tokens = tokens.ok_or_else(|| Error::new(Code::Violation, text))?;
        for (index, token, remote) in tokens {
            self.begin_stream(now, id, index, StreamRole::Dials(peer, remote), token);
        }
        Ok(())
    }

    /// Asks for the stream of a flow.
    fn begin_stream(
        &mut self,
        now: Time,
        id: SessionId,
        index: usize,
        role: StreamRole,
        token: [u8; STREAM_TOKEN_LEN],
    ) {
        let stream = StreamId(self.fresh_id());
        let terms = self.terms_of(now, id, index);
        let Some(flow) = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index)) else {
            return;
        };
        let state = StreamState::Opening(now + OPEN_MAX);
        let transport = flow.offer.transport;
        flow.stream = Some(FlowStream { id: stream, state, is_held_up: false });
        self.flow_streams.flows.insert(stream, (id, index));
        self.flow_streams.asks.push_back(match role {
            StreamRole::Dials(peer, remote) => {
                StreamAsk::Dial { stream, transport, peer, remote, token, terms }
            }
            StreamRole::Expects => StreamAsk::Expect { stream, transport, token, terms },
        });
    }

    /// What the transport of a stream is told of its flow.
    fn terms_of(&self, now: Time, id: SessionId, index: usize) -> StreamParams {
        let session = self.sessions.get(&id);
        let found = session.and_then(|it| Some((it.flows.get(index)?, self.peers.get(&it.peer)?)));
        let Some((flow, peer)) = found else { return StreamParams::default() };
        let pace = self.pace(&flow.offer, peer.remote.ip().is_loopback());
        self.stream_params(&flow.offer, peer.datagram_len(now), pace)
    }

    /// The stream by which a unit of `len` bytes may leave from where it lies, and what goes before
    /// it; it goes past source and graph.
    #[must_use]
    pub fn direct(
        &self,
        id: SessionId,
        index: usize,
        len: usize,
    ) -> Option<(StreamId, [u8; DIRECT_HEAD_LEN])> {
        let flow = self.sessions.get(&id)?.flows.get(index)?;
        match (&flow.end, flow.way(false)?) {
            (FlowEnd::Sender(sender), Way::Stream(stream)) => {
                Some((stream, sender.head_of_direct(len)?))
            }
            _ => None,
        }
    }

    /// It has left.
    pub fn handle_direct(&mut self, id: SessionId, index: usize, len: usize) {
        let flow = self.sessions.get_mut(&id).and_then(|session| session.flows.get_mut(index));
        if let Some(FlowEnd::Sender(sender)) = flow.map(|flow| &mut flow.end) {
            sender.handle_direct(len);
        }
    }

    /// Ends the stream of a flow; what is written already still goes out.
    pub(super) fn close_stream(&mut self, id: SessionId, index: usize) {
        let Some(known) = self.flow_stream(id, index) else { return };
        let (stream, state) = (known.id, known.state);
        known.state = StreamState::Closed;
        if state != StreamState::Closed {
            self.flow_streams.close(stream);
            self.tell_ready_if_open(id);
        }
    }

    /// Ends the streams of all flows of a session.
    pub(super) fn close_streams(&mut self, id: SessionId) {
        let count = self.sessions.get(&id).map_or(0, |session| session.flows.len());
        (0..count).for_each(|index| self.close_stream(id, index));
    }

    /// The stream of a flow is gone: the flow ends, unless it is over.
    fn lose_stream(&mut self, now: Time, id: SessionId, index: usize, error: &Error) {
        let mut out = FlowOut::default();
        self.with_session(now, id, |session, around| {
            match session.flows.get_mut(index).map(|flow| &mut flow.end) {
                Some(FlowEnd::Sender(sender)) => sender.lose_way(around, error, &mut out),
                Some(FlowEnd::Receiver(receiver)) => receiver.lose_way(around, error, &mut out),
                Some(FlowEnd::None | FlowEnd::Member(_)) | None => {}
            }
        });
        self.apply_out(now, id, index, out);
        self.lose_member(now, id, index, error);
        self.tell_ready_if_open(id);
    }

    /// Gives streams up that did not open in time.
    pub(super) fn watch_streams(&mut self, now: Time, id: SessionId) {
        let count = self.sessions.get(&id).map_or(0, |session| session.flows.len());
        for index in 0..count {
            let Some(known) = self.flow_stream(id, index) else { continue };
            if matches!(known.state, StreamState::Opening(until) if until <= now) {
                self.close_stream(id, index);
                let name = self.stream_name(id, index);
                let text = format!("{name} did not open in 10 s; is it filtered?");
                self.lose_stream(now, id, index, &Error::new(Code::NoDataPath, text));
            }
        }
    }

    /// The session is set up; the Participant hears of it when every stream is open or given up, so
    /// that all flows begin together.
    pub(super) fn tell_ready_if_open(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let opening = session
            .flows
            .iter()
            .any(|flow| flow.stream.is_some_and(|it| matches!(it.state, StreamState::Opening(_))));
        if session.ready_waits && !opening {
            session.ready_waits = false;
            // Who has closed meanwhile is not told that it may begin.
            if session.state.is_running() {
                self.event(CoreEvent::Ready { session: id });
            }
        }
    }

    /// Whether a session waits for datagrams to get through before it is answered: flows on streams
    /// need none.
    pub(super) fn needs_datagrams(&self, id: SessionId) -> bool {
        let ports = self.ports.get(&id).map(Vec::as_slice).unwrap_or_default();
        let flows = self.sessions.get(&id).map(|it| it.flows.as_slice()).unwrap_or_default();
        let wanted = flows.iter().zip(ports).filter(|(_, port)| port.is_some());
        let mut wanted = wanted.peekable();
        wanted.peek().is_none() || wanted.any(|(flow, _)| !self.is_stream(flow.offer.transport))
    }
}
