//! The exchange that sets a session up and runs it: what each message does.
//!
//! ```text
//!  participant                creator
//!    JOIN ------------------->  publisher opens the access modules
//!    <------------------ OFFER  flows and graphs
//!    (application answers, data path is open)
//!    ANSWER ----------------->  labels of the participant
//!    <----------------- ACCEPT  labels of the creator, transcript
//!    ACTIVATE -------> … <----- ACTIVATED    flows run
//! ```

use super::serving::{Refusal, Served, Wishes, named};
use super::{
    ANSWER_MAX, APPLICATION_MAX, Carries, Core, CoreEvent, GIVE_UP_AFTER, SESSIONS_MAX, SessionId,
    no_session,
};
use crate::error::{Code, Error};
use crate::flow::FlowParams;
use crate::flow::epoch::{RxEpoch, TxEpoch};
use crate::flow::receiver::Receiver;
use crate::flow::sender::Sender;
use crate::labels::Target;
use crate::peer::PeerId;
use crate::port::Port;
use crate::ready_set::Idle;
use crate::session::table::{Role, State, Step, step};
use crate::session::{Awaited, Flow, FlowEnd, Session};
use dacapo_base::{Time, failpoint};
use dacapo_path::DATAGRAM_LEN_MIN;
use dacapo_wire::hub::Refuse;
use dacapo_wire::limits::JOIN_ATTRIBUTES_MAX;
use dacapo_wire::message::Message;
use dacapo_wire::session::{
    Accept, Answer, Control, ControlAnswer, Direction, FLOW_ALL, FlowAnswer, FlowOffer, Join,
    MODULE_ACCESS, Offer,
};
use quinn_proto::StreamId;
use sha2::{Digest, Sha256};
use std::time::Duration;

impl Core {
    /// Asks a peer for a session; [`CoreEvent::Offered`] or [`CoreEvent::SessionEnded`] follows.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when the peer is not open or the name is none; [`Code::ContactLost`]
    /// while it is; [`Code::TooMany`] sessions or wishes.
    pub fn join(
        &mut self,
        now: Time,
        peer: PeerId,
        name: &str,
        wishes: Wishes,
    ) -> Result<SessionId, Error> {
        dacapo_wire::name::check(name)
            .map_err(|error| Error::new(Code::NoSuchThing, format!("{name:?}: {error}")))?;
        if wishes.attributes.len() > JOIN_ATTRIBUTES_MAX {
            let text = format!("attributes in a wish; at most {JOIN_ATTRIBUTES_MAX}");
            return Err(Error::new(Code::TooMany, text));
        }
        let conn = self.open_conn(peer)?;
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(Error::new(Code::TooMany, "sessions"));
        }
        let stream = self.control.open_stream(conn);
        let stream = stream.ok_or_else(|| Error::new(Code::TooMany, "sessions with this peer"))?;
        let id = self.add_session(peer, stream, Role::Participant, State::Joining);
        self.streams.insert((conn, stream), Carries::Session(id));
        if let Some(session) = self.sessions.get_mut(&id) {
            session.name = name.to_owned();
            session.await_answer(now + ANSWER_MAX, Awaited::Offer);
        }
        let join = self.introduce(peer, name, wishes);
        self.send_on(now, id, &Message::Join(join));
        Ok(id)
    }

    pub(super) fn add_session(
        &mut self,
        peer: PeerId,
        stream: StreamId,
        role: Role,
        state: State,
    ) -> SessionId {
        let id = SessionId(self.fresh_id());
        self.sessions.insert(
            id,
            Session {
                peer,
                stream,
                role,
                state,
                name: String::new(),
                flows: Vec::new(),
                awaited: Vec::new(),
                next_request: 0,
                is_answered: false,
                was_ready: false,
                ready_waits: false,
                close_asked_by_peer: false,
                told: false,
                activity_told: None,
                give_up_wish: None,
                give_up_after: GIVE_UP_AFTER,
                transcript: [0; 32],
                idle: Idle::default(),
                is_touched: true,
                cast: None,
            },
        );
        id
    }

    /// A peer has opened a stream for a session.
    pub(super) fn open_served_session(
        &mut self,
        now: Time,
        peer: PeerId,
        stream: StreamId,
    ) -> SessionId {
        let id = self.add_session(peer, stream, Role::Creator, State::Idle);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.await_answer(now + ANSWER_MAX, Awaited::Answer);
        }
        id
    }

    /// A record has come on a session's stream.
    pub(super) fn handle_session(&mut self, now: Time, id: SessionId, message: Message) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match step(session.role, session.state, message.kind()) {
            Step::Ignore => {}
            Step::To(state) => {
                session.state = state;
                self.apply(now, id, message);
            }
            Step::Violation => {
                let text = format!("{} in state {:?}", message.kind().name(), session.state);
                self.break_session(now, id, Error::new(Code::Violation, text));
            }
        }
    }

    fn apply(&mut self, now: Time, id: SessionId, message: Message) {
        match message {
            Message::Join(join) => self.handle_join(now, id, join),
            Message::Offer(offer) => self.handle_offer(now, id, offer),
            Message::Answer(answer) => self.handle_answer(now, id, &answer),
            Message::Accept(accept) => self.handle_accept(now, id, &accept),
            Message::Refuse(refuse) => {
                let error = Error::from_peer(refuse.code, &refuse.text);
                if let Some(port) = refuse.port {
                    self.event(CoreEvent::Elsewhere { session: id, port });
                }
                self.end_session(now, id, Some(error));
            }
            Message::Activate(it) => self.handle_activate(now, id, it.request),
            Message::Activated(it) => self.handle_activated(now, id, it.request),
            Message::Deactivate(it) => self.handle_deactivate(now, id, it.request),
            Message::Deactivated(it) => self.handle_deactivated(now, id, it.request),
            Message::Control(control) => self.handle_control(now, id, &control),
            Message::ControlAnswer(answer) => self.handle_control_answer(id, answer),
            Message::End(end) => self.handle_end(now, id, end),
            Message::Report(report) => self.handle_report(now, id, &report),
            Message::Close(close) => self.handle_close(now, id, &close),
            Message::Closed(_) => self.handle_closed(now, id),
            other => self.handle_change(now, id, other),
        }
    }

    /// Refuses a session at set-up.
    fn refuse(&mut self, now: Time, id: SessionId, refusal: impl Into<Refusal>) {
        let Refusal { error, port } = refusal.into();
        let refuse = Refuse { code: error.code as u16, text: error.text.clone(), port };
        self.send_on(now, id, &Message::Refuse(refuse));
        self.end_session(now, id, Some(error));
    }

    fn handle_join(&mut self, now: Time, id: SessionId, join: Join) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.awaited.clear();
        session.await_answer(now + APPLICATION_MAX, Awaited::Answer);
        let name = join.name.clone();
        let (offer, mut ports) = match self.serve(now, id, join) {
            Ok(Served { title, give_up_ms, flows, ports }) => {
                (Offer { session: id.0, title, give_up_ms, flows }, ports)
            }
            Err(refusal) => return self.refuse(now, id, refusal),
        };
        self.sessions.note_joined(id, name);
        self.sessions.is_changed = true;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.give_up_after = give_up_after(&offer);
        session.flows = offer.flows.iter().cloned().map(Flow::new).collect();
        let offer = Message::Offer(offer);
        session.transcript = extend([0; 32], &offer);
        if let Err(error) = self.enter_casts(now, id, &mut ports) {
            return self.refuse(now, id, error);
        }
        self.ports.insert(id, ports);
        self.send_on(now, id, &offer);
        failpoint!("core.join");
    }

    fn handle_offer(&mut self, now: Time, id: SessionId, offer: Offer) {
        self.sessions.is_changed = true;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.take_awaited(Awaited::Offer);
        failpoint!("core.offer");
        session.await_answer(now + APPLICATION_MAX, Awaited::Accept);
        session.transcript = extend([0; 32], &Message::Offer(offer.clone()));
        session.give_up_after = session.give_up_wish.unwrap_or_else(|| give_up_after(&offer));
        session.flows = offer.flows.iter().cloned().map(Flow::new).collect();
        let illegal = offer.flows.iter().enumerate().find_map(|(place, flow)| {
            if usize::from(flow.flow) != place {
                return Some(Error::new(Code::Violation, "flows are not numbered in order"));
            }
            let legal = self.check_graph(flow, usize::from(flow.datagram_len));
            legal.map_err(|error| named(flow, &error)).err()
        });
        match illegal {
            Some(error) => self.refuse(now, id, error),
            None => {
                let (title, flows) = (offer.title, offer.flows);
                self.event(CoreEvent::Offered { session: id, title, flows });
            }
        }
    }

    /// Answers an offer: an access module for each flow that is wanted, a sink where the Creator
    /// sends, a source where the Participant does. [`CoreEvent::Ready`] follows; the answer goes
    /// out when the data path is open.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when no offer waits; the number or kind of the ports is wrong.
    pub fn answer(
        &mut self,
        now: Time,
        id: SessionId,
        ports: Vec<Option<Port>>,
    ) -> Result<(), Error> {
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id))?;
        let waits = session.state == State::Answering && !session.is_answered;
        if !waits || ports.len() != session.flows.len() {
            return Err(Error::new(Code::NoSuchThing, "no offer with so many flows waits"));
        }
        for (flow, port) in session.flows.iter().zip(&ports) {
            check_port(&flow.offer, port.as_ref(), Role::Participant)?;
        }
        session.is_answered = true;
        session.take_awaited(Awaited::Accept);
        session.await_answer(now + ANSWER_MAX, Awaited::Accept);
        self.ports.insert(id, ports);
        self.ask_groups(id);
        self.answer_if_open(now, id);
        Ok(())
    }

    /// Sends the ANSWER when the ports are here and the data path is open.
    pub(super) fn answer_if_open(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let len = self.peers.get(&session.peer).and_then(|peer| peer.datagram_len(now));
        let answering = session.role == Role::Participant && session.state == State::Answering;
        let is_open = len.is_some() || !self.needs_datagrams(id);
        if !answering || !is_open || self.waits_for_groups(id) {
            return;
        }
        // No flow that was wanted goes by what the path takes, if that is not known.
        let len = len.unwrap_or(DATAGRAM_LEN_MIN);
        let Some(ports) = self.ports.remove(&id) else { return };
        let mut flows = Vec::new();
        for (index, port) in ports.into_iter().enumerate() {
            let len = self.datagram_len_of(id, index, len);
            let accepted = match port {
                Some(_) if let Some(error) = self.group_failure(id, index) => Err(error),
                Some(port) => self.build_flow(now, id, index, port, len),
                None => Err(Error::new(Code::Refused, "the participant does not want this flow")),
            };
            self.note_refused(id, index, &accepted);
            flows.push(self.flow_answer(id, index, accepted, len));
        }
        let answer = Message::Answer(Answer { flows });
        if let Some(session) = self.sessions.get_mut(&id) {
            session.transcript = extend(session.transcript, &answer);
        }
        self.send_on(now, id, &answer);
        failpoint!("core.answer");
    }

    fn note_refused(&mut self, id: SessionId, index: usize, accepted: &Result<(), Error>) {
        let flow = self.sessions.get_mut(&id).and_then(|session| session.flows.get_mut(index));
        if let (Some(flow), Err(error)) = (flow, accepted) {
            flow.refused = Some(error.clone());
        }
    }

    /// The longest datagram of a flow over a path that takes `path_len` bytes: a stream is not
    /// bound by the path.
    fn datagram_len_of(&self, id: SessionId, index: usize, path_len: usize) -> usize {
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(index));
        let len = flow.and_then(|flow| self.datagram_len(flow.offer.transport, path_len).ok());
        len.map_or(path_len, usize::from)
    }

    fn flow_answer(
        &self,
        id: SessionId,
        index: usize,
        accepted: Result<(), Error>,
        datagram_len: usize,
    ) -> FlowAnswer {
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(index));
        let offered = flow.map_or(0, |flow| usize::from(flow.offer.datagram_len));
        FlowAnswer {
            flow: index as u16,
            accepted: accepted.map_err(|error| (error.code as u16, error.text)),
            label: flow.map_or(0, |flow| flow.label_rx),
            datagram_len: datagram_len.min(offered) as u16,
            stream_token: None,
            base: flow.and_then(|flow| match &flow.end {
                FlowEnd::Member(member) => Some(member.base()),
                _ => None,
            }),
            stream_port: None,
        }
    }

    fn handle_answer(&mut self, now: Time, id: SessionId, answer: &Answer) {
        let ports = self.ports.remove(&id).unwrap_or_default();
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.take_awaited(Awaited::Answer);
        session.transcript = extend(session.transcript, &Message::Answer(answer.clone()));
        let transcript = session.transcript;
        let in_order = answer.flows.iter().enumerate().all(|(at, it)| usize::from(it.flow) == at);
        if answer.flows.len() != session.flows.len() || !in_order {
            let text = "ANSWER does not name each flow once, in order";
            return self.break_session(now, id, Error::new(Code::Violation, text));
        }
        let mut flows = Vec::new();
        for (index, (given, port)) in answer.flows.iter().zip(ports).enumerate() {
            let len = usize::from(given.datagram_len);
            let built = match (&given.accepted, port) {
                (Ok(()), _) if self.has_cast(id, index) => self.begin_member(id, index, len),
                (Ok(()), Some(port)) => self.build_flow(now, id, index, port, len),
                (Err((code, text)), _) => Err(Error::from_peer(*code, text)),
                (Ok(()), None) => Err(Error::new(Code::AccessFailed, "")),
            };
            self.note_refused(id, index, &built);
            let accepted = built.is_ok();
            let mut answer = self.flow_answer(id, index, built, len);
            if accepted {
                self.set_label_tx(id, index, given.label);
                let expected = self.expect_stream(now, id, index);
                (answer.stream_token, answer.stream_port) =
                    expected.map_or((None, None), |(token, port)| (Some(token), port));
            }
            flows.push(answer);
        }
        self.send_on(now, id, &Message::Accept(Accept { transcript, flows }));
        self.end_members(now, id, false);
        failpoint!("core.accept");
        self.tell_ready(id);
    }

    fn tell_ready(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.was_ready = true;
        session.seal_transcript();
        session.ready_waits = true;
        // The Creator's flows begin when the Participant says so.
        if session.role == Role::Creator {
            session.ready_waits = false;
            self.event(CoreEvent::Ready { session: id });
        }
        self.tell_ready_if_open(id);
    }

    fn handle_accept(&mut self, now: Time, id: SessionId, accept: &Accept) {
        let waits = self.ports.contains_key(&id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if !session.is_answered || waits {
            let text = "ACCEPT before ANSWER";
            return self.break_session(now, id, Error::new(Code::Violation, text));
        }
        session.take_awaited(Awaited::Accept);
        if accept.transcript != session.transcript {
            let text = "the two ends do not remember the same offer and answer";
            return self.break_session(now, id, Error::new(Code::Violation, text));
        }
        let in_order = accept.flows.iter().enumerate().all(|(at, it)| usize::from(it.flow) == at);
        if accept.flows.len() != session.flows.len() || !in_order {
            let text = "ACCEPT does not name each flow once, in order";
            return self.break_session(now, id, Error::new(Code::Violation, text));
        }
        for (index, given) in accept.flows.iter().enumerate() {
            match &given.accepted {
                Ok(()) if self.is_in_group(id, index) => {
                    let begun = self.begin_in_group(now, id, index, given.label, given.base);
                    if let Err(error) = begun {
                        return self.break_session(now, id, error);
                    }
                }
                Ok(()) => self.set_label_tx(id, index, given.label),
                Err((code, text)) => {
                    self.drop_flow(now, id, index, &Error::from_peer(*code, text));
                }
            }
        }
        if let Err(error) = self.dial_streams(now, id, accept) {
            return self.break_session(now, id, error);
        }
        failpoint!("core.ready");
        self.tell_ready(id);
    }

    fn set_label_tx(&mut self, id: SessionId, index: usize, label: u32) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(flow) = session.flows.get_mut(index) else { return };
        flow.label_tx = label;
        match &mut flow.end {
            FlowEnd::Sender(sender) => sender.set_label_tx(label),
            FlowEnd::Receiver(receiver) => receiver.set_label_tx(label),
            FlowEnd::Member(_) | FlowEnd::None => {}
        }
    }

    /// Makes this end of a flow: its graph, its label, its access module.
    fn build_flow(
        &mut self,
        now: Time,
        id: SessionId,
        index: usize,
        port: Port,
        datagram_len: usize,
    ) -> Result<(), Error> {
        let session = self.sessions.get(&id).ok_or_else(|| no_session(id))?;
        let flow = session.flows.get(index).ok_or_else(|| no_session(id))?;
        let offer = flow.offer.clone();
        check_port(&offer, Some(&port), session.role)?;
        let len_max = usize::from(offer.datagram_len);
        let len = datagram_len.min(len_max);
        self.check_graph(&offer, len)?;
        // Who sends is ready for the path to take more later.
        let built_for = if matches!(port, Port::Source(_)) { len_max } else { len };
        let built = self.build_graph(&offer.graph, built_for, offer.unit_len_max as usize)?;
        let target = Target { session: id.0, flow: index, epoch: 0 };
        // The label of a group is its sender's.
        let is_group = self.is_shared(offer.transport);
        let label = if is_group { Some(0) } else { self.allot_label(now, id, target) };
        let label = label.ok_or_else(|| {
            Error::new(Code::TooMany, "labels, for flows with this peer or in all")
        })?;
        let ordered = self.gives_order(offer.transport, &offer.graph);
        let reliable = self.is_reliable(offer.transport);
        let peer = self.sessions.get(&id).and_then(|session| self.peers.get(&session.peer));
        let clock = peer.and_then(|peer| peer.prober.as_ref());
        let clock = clock.map(|prober| *prober.offset()).unwrap_or_default();
        // What this end has found out since, else what was agreed.
        let found = peer.and_then(|peer| peer.prober.as_ref()?.settled_len());
        let found = found.filter(|_| !self.is_stream(offer.transport)).unwrap_or(len);
        let queues = self.config.queues;
        let terms = FlowParams {
            id: index as u16,
            unit_len_max: offer.unit_len_max as usize,
            digest: offer.digest,
        };
        let end = match port {
            Port::Source(source) => {
                let epoch = TxEpoch::new(0, built, label);
                let local = peer.is_some_and(|peer| peer.remote.ip().is_loopback());
                let pace = self.pace(&offer, local);
                let mut flow = Sender::new(now, terms, source, epoch, pace, queues);
                flow.set_datagram_len(&mut self.pool, found);
                FlowEnd::Sender(Box::new(flow))
            }
            Port::Sink(mut sink) => {
                sink.handle_clock(clock);
                let epoch = RxEpoch::new(0, built, label, ordered);
                let flow = Receiver::new(terms, sink, epoch, reliable, now, queues);
                FlowEnd::Receiver(Box::new(flow))
            }
        };
        let flow = self.sessions.get_mut(&id).and_then(|session| session.flows.get_mut(index));
        if let Some(flow) = flow {
            (flow.end, flow.label_rx) = (end, label);
        }
        Ok(())
    }

    fn handle_activate(&mut self, now: Time, id: SessionId, request: u32) {
        self.start_sources(now, id);
        failpoint!("core.activate");
        let message = Message::Activated(dacapo_wire::session::Activated { request });
        self.send_on(now, id, &message);
        self.event(CoreEvent::Active { session: id });
    }

    fn handle_activated(&mut self, now: Time, id: SessionId, request: u32) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if !session.take_awaited(Awaited::Activated(request)) {
            let text = format!("ACTIVATED {request} answers nothing");
            return self.break_session(now, id, Error::new(Code::Violation, text));
        }
        self.start_sources(now, id);
        self.event(CoreEvent::Active { session: id });
    }

    fn start_sources(&mut self, now: Time, id: SessionId) {
        self.for_senders(id, |sender| sender.start(now));
        self.update_casts(now, id);
    }

    fn handle_deactivate(&mut self, now: Time, id: SessionId, request: u32) {
        self.for_senders(id, |sender| sender.stop(now));
        self.update_casts(now, id);
        let message = Message::Deactivated(dacapo_wire::session::Deactivated { request });
        self.send_on(now, id, &message);
        self.event(CoreEvent::Inactive { session: id });
    }

    fn handle_deactivated(&mut self, now: Time, id: SessionId, request: u32) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if !session.take_awaited(Awaited::Deactivated(request)) {
            let text = format!("DEACTIVATED {request} answers nothing");
            return self.break_session(now, id, Error::new(Code::Violation, text));
        }
        self.for_senders(id, |sender| sender.stop(now));
        self.event(CoreEvent::Inactive { session: id });
    }

    fn for_senders(&mut self, id: SessionId, mut body: impl FnMut(&mut Sender)) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        for flow in &mut session.flows {
            if let FlowEnd::Sender(sender) = &mut flow.end {
                body(sender);
            }
        }
    }

    fn handle_control(&mut self, now: Time, id: SessionId, control: &Control) {
        let result = if control.module == MODULE_ACCESS {
            self.command_access(now, id, control.flow, &control.payload)
        } else {
            self.command_module(now, id, control)
        };
        let (code, mut payload) = match result {
            Ok(payload) => (dacapo_wire::session::CODE_SUCCESS, payload),
            Err(error) => (error.code as u16, error.text.into_bytes()),
        };
        payload.truncate(dacapo_wire::limits::PAYLOAD_LEN_MAX);
        let answer = ControlAnswer { request: control.request, code, payload };
        self.send_on(now, id, &Message::ControlAnswer(answer));
    }

    /// Gives a command to the access modules of one flow or of all, at one instant.
    fn command_access(
        &mut self,
        now: Time,
        id: SessionId,
        flow: u16,
        payload: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let (mut answers, mut casts) = (Vec::new(), Vec::new());
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id))?;
        for (index, at) in session.flows.iter_mut().enumerate() {
            let meant = flow == FLOW_ALL || usize::from(flow) == index;
            match &mut at.end {
                FlowEnd::Sender(sender) if meant => answers.push(sender.command(now, payload)),
                FlowEnd::Member(member) if meant => casts.push(member.cast),
                _ => {}
            }
        }
        answers.extend(casts.into_iter().map(|cast| self.command_cast(now, cast, payload)));
        // Every flow has got the command; the answer is the first that failed, else the first.
        let failed = answers.iter().position(Result::is_err).unwrap_or(0);
        let answer = answers.into_iter().nth(failed);
        answer.unwrap_or_else(|| Err(Error::new(Code::NoSuchThing, "this end sends no such flow")))
    }

    /// The epoch that a flow runs in at this end.
    pub(super) fn epoch_of(&self, id: SessionId, flow: usize) -> Option<u64> {
        match &self.sessions.get(&id)?.flows.get(flow)?.end {
            FlowEnd::Sender(sender) => Some(sender.current().number),
            FlowEnd::Receiver(receiver) => Some(receiver.newest()?.number),
            FlowEnd::Member(_) => Some(0),
            FlowEnd::None => None,
        }
    }

    fn command_module(
        &mut self,
        now: Time,
        id: SessionId,
        control: &Control,
    ) -> Result<Vec<u8>, Error> {
        let (flow, module) = (usize::from(control.flow), usize::from(control.module));
        let runs = self.epoch_of(id, flow);
        if runs.is_some_and(|epoch| epoch != control.epoch) {
            let text = format!("the flow runs in epoch {}", runs.unwrap_or_default());
            return Err(Error::new(Code::NoSuchThing, text));
        }
        let answer = self.with_session(now, id, |session, around| {
            let flow = session.flows.get_mut(flow)?;
            match &mut flow.end {
                FlowEnd::Sender(it) => Some(it.control_module(around, module, &control.payload)),
                FlowEnd::Receiver(it) => {
                    let answer = it.control_module(around, module, &control.payload);
                    Some(answer.map_err(|error| Error::new(Code::Refused, error.to_string())))
                }
                FlowEnd::Member(_) | FlowEnd::None => None,
            }
        });
        answer.flatten().unwrap_or_else(|| Err(Error::new(Code::NoSuchThing, "no such flow")))
    }

    fn handle_control_answer(&mut self, id: SessionId, answer: ControlAnswer) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.take_awaited(Awaited::Control(answer.request)) {
            let result = if answer.code == dacapo_wire::session::CODE_SUCCESS {
                Ok(answer.payload)
            } else {
                let text = String::from_utf8_lossy(&answer.payload);
                Err(Error::from_peer(answer.code, &text))
            };
            let request = answer.request;
            self.event(CoreEvent::ControlAnswered { session: id, request, answer: result });
        }
    }
}

/// How long contact may be lost before a session that was offered so is given up.
fn give_up_after(offer: &Offer) -> Duration {
    offer.give_up_ms.map_or(GIVE_UP_AFTER, |ms| Duration::from_millis(ms.into()))
}

/// The kind of access module that a flow needs at an end.
fn check_port(offer: &FlowOffer, port: Option<&Port>, role: Role) -> Result<(), Error> {
    let sends = match offer.direction {
        Direction::ToParticipant => role == Role::Creator,
        Direction::ToCreator => role == Role::Participant,
    };
    match port {
        Some(Port::Source(_)) if !sends => {
            Err(Error::new(Code::NoSuchThing, format!("{}: this end receives", offer.name)))
        }
        Some(Port::Sink(_)) if sends => {
            Err(Error::new(Code::NoSuchThing, format!("{}: this end sends", offer.name)))
        }
        _ => Ok(()),
    }
}

/// The transcript with another message: what both ends must remember alike.
pub(super) fn extend(transcript: [u8; 32], message: &Message) -> [u8; 32] {
    let mut bytes = Vec::new();
    // What cannot be encoded cannot have been sent.
    let _ = message.encode(&mut bytes);
    Sha256::new().chain_update(transcript).chain_update(&bytes).finalize().into()
}
