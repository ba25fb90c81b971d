//! The exchange that sets a session up: what each message does.
//!
//! ```text
//!  participant                creator
//!    JOIN ------------------->  provider opens the access modules
//!    <------------------ OFFER  flows and graphs
//!    (application answers, data path is open)
//!    ANSWER ----------------->  labels of the participant
//!    <----------------- ACCEPT  labels of the creator, transcript
//! ```

use super::table::{Role, State, Step, step};
use super::{Awaited, Flow, Flows, Session, SessionCx};
use crate::config::{ANSWER_MAX, APPLICATION_MAX, GIVE_UP_AFTER};
use crate::effect::{Effect, Out};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::port::Port;
use crate::served::{Refusal, Served};
use dacapo_base::{Address, failpoint};
use dacapo_path::DATAGRAM_LEN_MIN;
use dacapo_wire::hub::Refuse;
use dacapo_wire::message::Message;
use dacapo_wire::session::{Accept, Answer, FlowAnswer, FlowOffer, Join, Offer};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::time::Duration;

impl Session {
    /// A record has come on its stream.
    pub fn handle_message(&mut self, cx: &mut SessionCx<'_>, message: Message, out: &mut Out) {
        match step(self.role, self.state, message.kind()) {
            Step::Ignore => {}
            Step::To(state) => {
                self.state = state;
                self.apply_message(cx, message, out);
            }
            Step::Violation => {
                let text = format!("{} in state {:?}", message.kind().name(), self.state);
                self.fail(cx, Error::new(Code::Violation, text), out);
            }
        }
    }

    fn apply_message(&mut self, cx: &mut SessionCx<'_>, message: Message, out: &mut Out) {
        match message {
            Message::Join(join) => self.handle_join(cx, join, out),
            Message::Offer(offer) => self.handle_offer(cx, offer, out),
            Message::Answer(answer) => self.handle_answer(cx, &answer, out),
            Message::Accept(accept) => self.handle_accept(cx, &accept, out),
            Message::Refuse(refuse) => {
                let error = Error::from_peer(refuse.code, &refuse.text);
                if let Some(port) = refuse.port {
                    out.event(CoreEvent::Redirected { session: self.id, port });
                }
                self.end(cx, Some(error), out);
            }
            Message::Activate(_)
            | Message::Activated(_)
            | Message::Deactivate(_)
            | Message::Deactivated(_)
            | Message::Control(_)
            | Message::ControlAnswer(_) => self.handle_running(cx, message, out),
            Message::End(_) | Message::Report(_) | Message::Close(_) | Message::Closed(_) => {
                self.handle_closing(cx, message, out);
            }
            other => self.flows.handle_change(cx, &self.modules, other, out),
        }
    }

    /// Refuses a session at set-up.
    fn refuse(&mut self, cx: &mut SessionCx<'_>, refusal: impl Into<Refusal>, out: &mut Out) {
        let Refusal { error, port } = refusal.into();
        let refuse = Refuse { code: error.code as u16, text: error.text.clone(), port };
        out.send(self.id, Message::Refuse(refuse));
        self.end(cx, Some(error), out);
    }

    fn handle_join(&mut self, cx: &mut SessionCx<'_>, join: Join, out: &mut Out) {
        drop(self.pending.clear());
        self.pending.add(cx.now + APPLICATION_MAX, Awaited::Answer);
        self.modules.clone_from(&join.modules);
        out.push(Effect::Serve(self.id, join));
    }

    /// What is served under the name that was asked for, or why there is nothing.
    pub fn handle_served(
        &mut self,
        cx: &mut SessionCx<'_>,
        served: Result<Served, Refusal>,
        out: &mut Out,
    ) {
        let Served { name, title, give_up_ms, further, flows, mut ports } = match served {
            Ok(served) => served,
            Err(refusal) => return self.refuse(cx, refusal, out),
        };
        self.name = name;
        if !further.is_empty() {
            out.push(Effect::OpenFurther(self.peer, Vec::new()));
        }
        let offer = Offer { session: self.id.0, title, give_up_ms, further, flows };
        self.give_up_after = give_up_after(&offer);
        self.flows = Flows::new(self.id, self.peer, self.role, &offer.flows);
        let offer = Message::Offer(offer);
        self.transcript = extend([0; 32], &offer);
        if let Err(error) = self.flows.enter_fan_outs(cx, &self.name, &mut ports) {
            return self.refuse(cx, error, out);
        }
        self.ports = Some(ports);
        out.send(self.id, offer);
        failpoint!("core.join");
    }

    fn handle_offer(&mut self, cx: &mut SessionCx<'_>, offer: Offer, out: &mut Out) {
        self.pending.take(Awaited::Offer);
        failpoint!("core.offer");
        self.pending.add(cx.now + APPLICATION_MAX, Awaited::Accept);
        self.transcript = extend([0; 32], &Message::Offer(offer.clone()));
        self.give_up_after = self.give_up_wish.unwrap_or_else(|| give_up_after(&offer));
        self.flows = Flows::new(self.id, self.peer, self.role, &offer.flows);
        match check_offered(cx, &offer) {
            Err(error) => self.refuse(cx, error, out),
            Ok(()) => {
                if !offer.further.is_empty() {
                    let further = offer.further.iter().copied().map(Address::from).collect();
                    out.push(Effect::OpenFurther(self.peer, further));
                }
                let (session, title, flows) = (self.id, offer.title, offer.flows);
                out.event(CoreEvent::Offered { session, title, flows });
            }
        }
    }

    /// Answers an offer with an access module for each flow that is wanted; the answer goes out
    /// when the data path is open.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when no offer waits; the number or kind of the ports is wrong.
    pub fn answer(
        &mut self,
        cx: &mut SessionCx<'_>,
        ports: Vec<Option<Port>>,
        out: &mut Out,
    ) -> Result<(), Error> {
        let waits = self.state == State::Answering && !self.is_answered;
        if !waits || ports.len() != self.flows().len() {
            return Err(Error::new(Code::NoSuchThing, "no offer with so many flows waits"));
        }
        for (flow, port) in self.flows.iter().zip(&ports) {
            check_port(&flow.offer, port.as_ref(), Role::Participant)?;
        }
        self.is_answered = true;
        self.pending.take(Awaited::Accept);
        self.pending.add(cx.now + ANSWER_MAX, Awaited::Accept);
        self.flows.ask_groups(cx, &ports);
        self.ports = Some(ports);
        self.answer_if_open(cx, out);
        Ok(())
    }

    /// Sends the ANSWER when the ports are here and the data path is open.
    pub fn answer_if_open(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        let len = cx.peer.and_then(|peer| peer.data().datagram_len(cx.now));
        let answering = self.role == Role::Participant && self.state == State::Answering;
        let ports = self.ports.as_deref().unwrap_or_default();
        let is_open = len.is_some() || !self.flows.needs_datagrams(&cx.shared.graphs, ports);
        if !answering || !is_open || self.flows.iter().any(Flow::waits_for_group) {
            return;
        }
        // No flow that was wanted goes by what the path takes, if that is not known.
        let len = len.unwrap_or(DATAGRAM_LEN_MIN);
        let Some(ports) = self.ports.take() else { return };
        let mut flows = Vec::new();
        for (index, port) in ports.into_iter().enumerate() {
            let Some(flow) = self.flows.get(index) else { break };
            let len = flow.datagram_len(&cx.shared.graphs, len);
            let accepted = match port {
                Some(_) if let Some(error) = flow.group_failure() => Err(error),
                port @ Some(_) => self.build(cx, index, port, len),
                None => Err(Error::new(Code::Refused, "the participant does not want this flow")),
            };
            flows.extend(self.flows.on(index, |flow| flow.answer(index, accepted, len)));
        }
        let answer = Message::Answer(Answer { flows });
        self.transcript = extend(self.transcript, &answer);
        out.send(self.id, answer);
        failpoint!("core.answer");
    }

    fn handle_answer(&mut self, cx: &mut SessionCx<'_>, answer: &Answer, out: &mut Out) {
        let ports = self.ports.take().unwrap_or_default();
        self.pending.take(Awaited::Answer);
        self.transcript = extend(self.transcript, &Message::Answer(answer.clone()));
        let transcript = self.transcript;
        if !names_each(&answer.flows, self.flows().len()) {
            let text = "ANSWER does not name each flow once, in order";
            return self.fail(cx, Error::new(Code::Violation, text), out);
        }
        let mut flows = Vec::new();
        for (index, (given, port)) in answer.flows.iter().zip(ports).enumerate() {
            let len = usize::from(given.datagram_len);
            let built = match &given.accepted {
                Ok(()) => self.build(cx, index, port, len),
                Err((code, text)) => Err(Error::from_peer(*code, text)),
            };
            let accepted = built.is_ok();
            let answer = self.flows.on(index, |flow| flow.answer(index, built, len));
            let Some(mut answer) = answer else { break };
            if accepted {
                self.flows.on(index, |flow| flow.end.set_label_tx(given.label));
                let expected = self.flows.on(index, |flow| flow.expect_channel(cx)).flatten();
                (answer.stream_token, answer.stream_port) =
                    expected.map_or((None, None), |(token, port)| (Some(token), port));
            }
            flows.push(answer);
        }
        out.send(self.id, Message::Accept(Accept { transcript, flows }));
        self.flows.end_members(cx, false, out);
        failpoint!("core.accept");
        self.tell_ready(out);
    }

    fn tell_ready(&mut self, out: &mut Out) {
        self.was_ready = true;
        // Bytes that both ends remember alike from the set-up on are what the changes of each flow
        // add to.
        let transcript = self.transcript;
        self.flows.for_each(|flow| flow.transcript = transcript);
        // The Creator's flows begin when the Participant says so.
        self.ready_waits = self.role == Role::Participant;
        if self.role == Role::Creator {
            out.event(CoreEvent::Ready { session: self.id });
        }
    }

    fn handle_accept(&mut self, cx: &mut SessionCx<'_>, accept: &Accept, out: &mut Out) {
        if let Err(error) = self.take_accept(cx, accept, out) {
            return self.fail(cx, error, out);
        }
        failpoint!("core.ready");
        self.tell_ready(out);
    }

    fn take_accept(
        &mut self,
        cx: &mut SessionCx<'_>,
        accept: &Accept,
        out: &mut Out,
    ) -> Result<(), Error> {
        let violation = |text: &str| Err(Error::new(Code::Violation, text));
        if !self.is_answered || self.ports.is_some() {
            return violation("ACCEPT before ANSWER");
        }
        self.pending.take(Awaited::Accept);
        if accept.transcript != self.transcript {
            return violation("the two ends do not remember the same offer and answer");
        }
        if !names_each(&accept.flows, self.flows().len()) {
            return violation("ACCEPT does not name each flow once, in order");
        }
        for (index, given) in accept.flows.iter().enumerate() {
            let graphs = &cx.shared.graphs;
            match &given.accepted {
                Ok(()) if self.flows.get(index).is_some_and(|it| it.is_in_group(graphs)) => {
                    self.flows.begin_in_group(cx, index, given.label, given.base, out)?;
                }
                Ok(()) => {
                    self.flows.on(index, |flow| flow.end.set_label_tx(given.label));
                }
                Err((code, text)) => {
                    self.flows.drop_one(cx, index, &Error::from_peer(*code, text), out);
                }
            }
        }
        self.flows.dial_channels(cx, accept)
    }

    /// Makes this end of a flow: a part in its fan-out, if it has one.
    fn build(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        port: Option<Port>,
        len: usize,
    ) -> Result<(), Error> {
        let role = self.role;
        let built = self.flows.on(index, |flow| match port {
            _ if flow.fan_out.is_some() => flow.begin_member(cx, len),
            Some(port) => flow.build(cx, role, port, len),
            None => Err(Error::new(Code::AccessFailed, "")),
        });
        built.unwrap_or_else(|| Err(Error::new(Code::NoSuchThing, "no such flow")))
    }
}

/// How long contact may be lost before a session that was offered so is given up.
fn give_up_after(offer: &Offer) -> Duration {
    offer.give_up_ms.map_or(GIVE_UP_AFTER, |ms| Duration::from_millis(ms.into()))
}

/// Whether an answer has something for each of so many flows, in order.
fn names_each(given: &[FlowAnswer], flows: usize) -> bool {
    let in_order = given.iter().enumerate().all(|(at, it)| usize::from(it.flow) == at);
    given.len() == flows && in_order
}

/// The kind of access module that a flow needs at an end.
pub(super) fn check_port(offer: &FlowOffer, port: Option<&Port>, role: Role) -> Result<(), Error> {
    let sends = role.sends(offer.direction);
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

/// An error with the name of the flow that it is about.
pub(crate) fn named(flow: &FlowOffer, error: &Error) -> Error {
    Error::new(error.code, format!("{}: {}", flow.name, error.text))
}

/// Flows are numbered in order, called differently, and have legal graphs; those that go by several
/// paths are told where these are.
fn check_offered(cx: &SessionCx<'_>, offer: &Offer) -> Result<(), Error> {
    let flows = &offer.flows;
    check_names(flows, Code::Violation)?;
    for (place, flow) in flows.iter().enumerate() {
        if usize::from(flow.flow) != place {
            return Err(Error::new(Code::Violation, "flows are not numbered in order"));
        }
        let legal = cx.shared.graphs.check(flow, usize::from(flow.datagram_len));
        legal.map_err(|error| named(flow, &error))?;
        if offer.further.is_empty() && cx.shared.graphs.spread(flow.transport).is_some() {
            let text = "it goes by several paths, and the creator tells one address only";
            return Err(named(flow, &Error::new(Code::Unsupported, text)));
        }
    }
    Ok(())
}

/// Applications know the flows of a session by their names: no two have the same.
pub(crate) fn check_names(flows: &[FlowOffer], code: Code) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    let twice = flows.iter().find(|flow| !names.insert(&flow.name));
    let error = |flow: &FlowOffer| Error::new(code, format!("two flows are called {}", flow.name));
    twice.map_or(Ok(()), |flow| Err(error(flow)))
}

/// The transcript with another message: what both ends must remember alike.
pub(super) fn extend(transcript: [u8; 32], message: &Message) -> [u8; 32] {
    let mut bytes = Vec::new();
    // What cannot be encoded cannot have been sent.
    let _ = message.encode(&mut bytes);
    Sha256::new().chain_update(transcript).chain_update(&bytes).finalize().into()
}
