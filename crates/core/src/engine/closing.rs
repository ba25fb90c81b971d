//! The end of flows and sessions: END, REPORT, CLOSE, CLOSED, and the abnormal end.
//!
//! ```text
//!   closer                      other
//!     END per flow it sends -->
//!     CLOSE ------------------> ends its own flows: END …
//!     <------------------------ REPORT for each END, when all units are accounted for
//!     REPORT ------------------>
//!     <----------------- CLOSED when all flows of both directions are accounted for
//! ```
//!
//! Invariant: at the usual end every ledger closes with nothing unknown; at an abnormal end what is
//! not accounted for is booked unknown, at each end for itself.

use super::{ANSWER_MAX, Carries, Core, CoreEvent, SessionId, no_session};
use crate::error::{Code, Error};
use crate::flow::receiver::UNITS_MAX;
use crate::flow::{FlowEvent, FlowOut};
use crate::port::Ending;
use crate::session::table::State;
use crate::session::{Awaited, FlowEnd};
use dacapo_base::{Time, failpoint};
use dacapo_wire::message::Message;
use dacapo_wire::session::{Close, Closed, End, Report};

impl Core {
    /// Closes a session: what waits is not sent, what was sent is accounted for;
    /// [`CoreEvent::SessionEnded`] follows, within 10 s; at once while contact is lost, and then
    /// what was on its way is unknown.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when there is no such session.
    pub fn close(&mut self, now: Time, id: SessionId) -> Result<(), Error> {
        if self.is_suspended(id) {
            let text = "the session was closed while contact was lost";
            return self.close_because(now, id, Error::new(Code::ContactLost, text));
        }
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id))?;
        match session.state {
            State::Closing | State::Closed => return Ok(()),
            State::Idle | State::Offered | State::Joining | State::Answering => {
                self.send_close(now, id);
                self.end_session(now, id, None);
                return Ok(());
            }
            _ => session.state = State::Closing,
        }
        self.close_flows(now, id);
        self.send_close(now, id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.await_answer(now + ANSWER_MAX, Awaited::Closed);
        }
        Ok(())
    }

    /// Ends a session at once and tells the peer why; what is on its way is booked as unknown.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when there is no such session.
    pub fn close_because(&mut self, now: Time, id: SessionId, error: Error) -> Result<(), Error> {
        if !self.sessions.contains_key(&id) {
            return Err(no_session(id));
        }
        let peer = self.sessions.get(&id).map(|session| session.peer);
        self.break_session(now, id, error.clone());
        if let Some(peer) = peer.filter(|peer| self.is_without_contact(*peer)) {
            self.lose_peer_if_unused(now, peer, &error);
        }
        Ok(())
    }

    fn send_close(&mut self, now: Time, id: SessionId) {
        let close = Close { code: Code::Closed as u16, text: String::new() };
        self.send_on(now, id, &Message::Close(close));
    }

    /// Every flow that this end sends says END now; what it receives is waited for so much longer.
    fn close_flows(&mut self, now: Time, id: SessionId) {
        self.with_flows(now, id, |flow, around, out| match flow {
            FlowEnd::None | FlowEnd::Member(_) => {}
            FlowEnd::Sender(sender) => sender.close(around, out),
            FlowEnd::Receiver(receiver) => receiver.close_soon(around.now),
        });
        self.end_members(now, id, true);
    }

    /// Runs `body` over every flow and does what the flows tell.
    pub(super) fn with_flows(
        &mut self,
        now: Time,
        id: SessionId,
        mut body: impl FnMut(&mut FlowEnd, &mut crate::flow::Context<'_>, &mut FlowOut),
    ) {
        let outs = self.with_session(now, id, |session, around| {
            let mut outs = Vec::new();
            for (index, flow) in session.flows.iter_mut().enumerate() {
                let mut out = FlowOut::default();
                body(&mut flow.end, around, &mut out);
                outs.push((index, out));
            }
            outs
        });
        for (index, out) in outs.unwrap_or_default() {
            self.apply_out(now, id, index, out);
        }
    }

    /// Does what a flow tells.
    pub(super) fn apply_out(&mut self, now: Time, id: SessionId, index: usize, out: FlowOut) {
        if out.messages.is_empty() && out.events.is_empty() {
            return;
        }
        self.touch();
        if self.is_cast(id) {
            return self.apply_cast_out(now, id, out);
        }
        for message in out.messages {
            self.send_on(now, id, &message);
        }
        for event in out.events {
            match event {
                FlowEvent::Ended { ledger, hash } => {
                    self.close_stream(id, index);
                    self.leave_group(id, index);
                    self.event(CoreEvent::FlowEnded { session: id, flow: index, ledger, hash });
                }
                FlowEvent::Changed { epoch } => {
                    self.event(CoreEvent::Changed { session: id, flow: index, epoch });
                }
                FlowEvent::ChangeFailed(error) => {
                    self.event(CoreEvent::ChangeFailed { session: id, flow: index, error });
                }
                FlowEvent::Retire(label) => self.labels.retire(now, label),
                FlowEvent::Failed(error) => {
                    self.event(CoreEvent::FlowFailed { session: id, flow: index, error });
                }
            }
        }
        self.answer_closed_if_settled(now, id);
    }

    pub(super) fn handle_end(&mut self, now: Time, id: SessionId, end: End) {
        let Some(index) = self.sessions.get(&id).and_then(|it| it.flow_index(end.flow)) else {
            return self.break_session(now, id, Error::new(Code::Violation, "END of no flow"));
        };
        if end.units > UNITS_MAX {
            let text = format!("END after {} units", end.units);
            return self.break_session(now, id, Error::new(Code::Violation, text));
        }
        failpoint!("core.end");
        let times = self.times(id);
        let out = self.with_session(now, id, |session, around| {
            let mut out = FlowOut::default();
            match session.flows.get_mut(index).map(|flow| &mut flow.end) {
                Some(FlowEnd::Receiver(receiver)) => {
                    receiver.handle_end(around, end, times, &mut out);
                    Some(out)
                }
                _ => None,
            }
        });
        match out.flatten() {
            Some(out) => self.apply_out(now, id, index, out),
            None => {
                let error = Error::new(Code::Violation, "END of a flow that this end sends");
                self.break_session(now, id, error);
            }
        }
    }

    pub(super) fn handle_report(&mut self, now: Time, id: SessionId, report: &Report) {
        failpoint!("core.report");
        let index = self.sessions.get(&id).and_then(|it| it.flow_index(report.flow));
        let mut out = FlowOut::default();
        let done = self.with_session(now, id, |session, around| {
            let flow = index.and_then(|at| session.flows.get_mut(at)).map(|flow| &mut flow.end);
            match flow {
                Some(FlowEnd::Sender(sender)) if sender.awaits_report() => {
                    let adds_up = sender.handle_report(around, report, &mut out);
                    let sent = sender.sent();
                    if adds_up {
                        Ok(())
                    } else {
                        Err(format!("REPORT does not add up to the {sent} units"))
                    }
                }
                Some(FlowEnd::Member(member)) => member.handle_report(report, &mut out),
                _ => Err("REPORT that no END has asked for".into()),
            }
        });
        if let Some(Err(text)) = done {
            return self.break_session(now, id, Error::new(Code::Violation, text));
        }
        self.apply_out(now, id, index.unwrap_or(0), out);
    }

    /// The peer closes: our flows end too, and when all is accounted for we say so.
    pub(super) fn handle_close(&mut self, now: Time, id: SessionId, close: &Close) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        // Who closes while it sets up, or because of an error, does not wait for an answer.
        if !session.was_ready || close.code != Code::Closed as u16 {
            let error = Error::from_peer(close.code, &close.text);
            return self.end_session(now, id, Some(error));
        }
        if std::mem::replace(&mut session.close_asked_by_peer, true) {
            return;
        }
        session.await_answer(now + ANSWER_MAX, Awaited::Closed);
        failpoint!("core.close");
        self.close_flows(now, id);
        self.answer_closed_if_settled(now, id);
    }

    pub(super) fn answer_closed_if_settled(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.close_asked_by_peer && session.state == State::Closing && session.is_settled() {
            session.state = State::Closed;
            self.send_on(now, id, &Message::Closed(Closed));
            self.end_session(now, id, None);
        }
    }

    pub(super) fn handle_closed(&mut self, now: Time, id: SessionId) {
        let settled = self.sessions.get(&id).is_some_and(|session| session.is_settled());
        let early = || Error::new(Code::Violation, "CLOSED before the flows were accounted for");
        self.end_session(now, id, (!settled).then(early));
    }

    pub(super) fn handle_session_stream_ended(
        &mut self,
        now: Time,
        id: SessionId,
        error: Option<Error>,
    ) {
        let session = self.sessions.get(&id);
        // Who closes before it knows that the session is set up ends it at once.
        let usual = session.is_some_and(|it| it.close_asked_by_peer && it.is_idle());
        let closed = || Error::new(Code::Violation, "the peer closed the session's stream");
        let error = error.or_else(|| (!usual).then(closed));
        self.end_session(now, id, error);
    }

    /// The peer broke the protocol: it is told, and the session ends.
    pub(super) fn break_session(&mut self, now: Time, id: SessionId, error: Error) {
        let close = Close { code: error.code as u16, text: error.text.clone() };
        self.send_on(now, id, &Message::Close(close));
        self.end_session(now, id, Some(error));
    }

    /// The session is over at this end: flows that are not accounted for are given up, every view
    /// and label comes back, the application is told once.
    pub(super) fn end_session(&mut self, now: Time, id: SessionId, error: Option<Error>) {
        if !self.sessions.note_told(id) {
            return;
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.state = State::Closed;
        }
        let ending = match &error {
            Some(error) if error.code != Code::Closed => Ending::Abnormal(error.to_string()),
            _ => Ending::Closed,
        };
        self.with_flows(now, id, |flow, around, out| give_up(flow, around, &ending, out));
        self.give_up_members(now, id);
        self.leave_casts(now, id);
        self.ports.remove(&id);
        self.close_streams(id);
        self.leave_groups(id);
        if let Some(place) = self.stream_of(id) {
            // The stream stays known until the peer ends it too: what crosses begins no new
            // session.
            if let Some(carries) = self.streams.get_mut(&place) {
                *carries = Carries::Over;
            }
            self.control.finish(place.0, place.1);
        }
        self.fail_requests(id, error.as_ref());
        self.sessions.remove(&id);
        self.event(CoreEvent::SessionEnded { session: id, error });
    }

    /// Requests that wait get no answer any more.
    fn fail_requests(&mut self, id: SessionId, error: Option<&Error>) {
        let awaited = self.sessions.get_mut(&id).map(|it| std::mem::take(&mut it.awaited));
        let closed = || Error::new(Code::Closed, "the session ended before the answer");
        for (_, awaited) in awaited.unwrap_or_default() {
            if let Awaited::Control(request) = awaited {
                let answer = Err(error.cloned().unwrap_or_else(closed));
                self.event(CoreEvent::ControlAnswered { session: id, request, answer });
            }
        }
    }

    /// A flow that the Creator could not build is not there for the Participant either.
    pub(super) fn drop_flow(&mut self, now: Time, id: SessionId, index: usize, error: &Error) {
        let mut out = FlowOut::default();
        let ending = Ending::Abnormal(error.to_string());
        self.with_session(now, id, |session, around| {
            let Some(flow) = session.flows.get_mut(index) else { return };
            flow.refused = Some(error.clone());
            let mut end = std::mem::replace(&mut flow.end, FlowEnd::None);
            give_up(&mut end, around, &ending, &mut out);
        });
        self.apply_out(now, id, index, out);
    }
}

/// Gives up what a flow has not accounted for, and every view and label of it.
fn give_up(
    flow: &mut FlowEnd,
    around: &mut crate::flow::Context<'_>,
    ending: &Ending,
    out: &mut FlowOut,
) {
    match flow {
        // What it is owed the cast knows.
        FlowEnd::None | FlowEnd::Member(_) => {}
        FlowEnd::Sender(sender) => {
            sender.give_up(out);
            sender.flush(around);
            out.events.extend(sender.labels().into_iter().map(FlowEvent::Retire));
        }
        FlowEnd::Receiver(receiver) => {
            receiver.give_up(around, ending, out);
            receiver.flush(around);
            out.events.extend(receiver.labels().into_iter().map(FlowEvent::Retire));
        }
    }
}
