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

use super::table::{Role, State};
use super::{Asker, Awaited, FlowEnd, Session, SessionCx};
use crate::config::ANSWER_MAX;
use crate::effect::{Effect, Out, PeerNews};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::flow::receiver::UNITS_MAX;
use crate::flow::{Context, FlowEvent, FlowOut, Lost, ModulesTold};
use crate::port::Ending;
use dacapo_base::failpoint;
use dacapo_wire::message::Message;
use dacapo_wire::session::{Close, Closed, End, Report};

impl Session {
    /// Closes it: what waits is not sent, what was sent is accounted for; at once while contact is
    /// lost, and then what was on its way is unknown.
    pub fn close(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        if cx.is_suspended() {
            let text = "the session was closed while contact was lost";
            return self.fail(cx, Error::new(Code::ContactLost, text), out);
        }
        let close = Close { code: Code::Closed as u16, text: String::new() };
        match self.state {
            State::Closing | State::Closed => return,
            State::Idle | State::Offered | State::Joining | State::Answering => {
                out.send(self.id, Message::Close(close));
                return self.end(cx, None, out);
            }
            _ => self.state = State::Closing,
        }
        self.close_flows(cx, out);
        out.send(self.id, Message::Close(close));
        self.pending.add(cx.now + ANSWER_MAX, Awaited::Closed);
    }

    /// Every flow that this end sends says END now; what it receives is waited for so much longer.
    fn close_flows(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        self.with_flows(cx, out, FlowEnd::close);
        self.end_members(cx, true, out);
    }

    /// Runs `body` over one flow and does what the flow tells.
    pub(super) fn with_flow(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        out: &mut Out,
        body: impl FnOnce(&mut FlowEnd, &mut Context<'_>, &mut FlowOut),
    ) {
        let mut told = FlowOut::default();
        if let Some(flow) = self.flows.get_mut(index) {
            body(&mut flow.end, &mut cx.flow(), &mut told);
        }
        self.apply(cx, index, told, out);
    }

    /// Runs `body` over every flow and does what the flows tell.
    fn with_flows(
        &mut self,
        cx: &mut SessionCx<'_>,
        out: &mut Out,
        body: impl Fn(&mut FlowEnd, &mut Context<'_>, &mut FlowOut),
    ) {
        for index in 0..self.flows.len() {
            self.with_flow(cx, index, out, &body);
        }
    }

    /// Does what a flow tells.
    pub fn apply(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        mut told: FlowOut,
        out: &mut Out,
    ) {
        if told.is_empty() {
            return;
        }
        while !told.is_empty() {
            told = self.apply_once(cx, index, told, out);
        }
        self.answer_closed_if_settled(cx, out);
    }

    /// Does what a flow tells; what its modules tell when they are refused.
    fn apply_once(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        told: FlowOut,
        out: &mut Out,
    ) -> FlowOut {
        told.messages.into_iter().for_each(|message| out.send(self.id, message));
        let (session, flow) = (self.id, index);
        for event in told.events {
            match event {
                FlowEvent::Ended { ledger, hash, failure } => {
                    self.close_channel(cx, index, out);
                    self.leave_group(cx, index);
                    let modules = self.flows.get(index).map(|it| it.end.modules());
                    let modules = modules.unwrap_or_default();
                    out.event(CoreEvent::FlowEnded {
                        session,
                        flow,
                        ledger,
                        hash,
                        failure,
                        modules,
                    });
                }
                FlowEvent::Changed { epoch } => {
                    out.event(CoreEvent::Changed { session, flow, epoch });
                }
                FlowEvent::ChangeFailed(error) => {
                    out.event(CoreEvent::ChangeFailed { session, flow, error });
                }
                FlowEvent::Retire(label) => cx.shared.labels.retire(cx.now, label),
                FlowEvent::Failed(error) => {
                    out.event(CoreEvent::FlowFailed { session, flow, error });
                }
            }
        }
        let mut next = FlowOut::default();
        if let Some(ModulesTold { asks, seen, failure }) = told.modules.map(|it| *it) {
            if !seen.is_empty() {
                out.peer(self.peer, PeerNews::Seen(Box::new(seen)));
            }
            asks.into_iter().for_each(|ask| self.ask_module(cx, index, ask, &mut next, out));
            if let (Some(said), Some(flow)) = (failure, self.flows.get_mut(index)) {
                let error = Error::new(Code::ModuleFailed, said);
                flow.end.lose(&mut cx.flow(), Lost::Graph, &error, &mut next);
            }
        }
        next
    }

    /// A message about the end.
    pub(super) fn handle_closing(
        &mut self,
        cx: &mut SessionCx<'_>,
        message: Message,
        out: &mut Out,
    ) {
        let taken = match message {
            Message::End(end) => self.handle_end(cx, end, out),
            Message::Report(report) => self.handle_report(cx, &report, out),
            Message::Close(close) => {
                self.handle_close(cx, &close, out);
                Ok(())
            }
            Message::Closed(_) => {
                let is_settled = self.flows.iter().all(|flow| flow.end.is_settled());
                let text = "CLOSED before the flows were accounted for";
                let early = || Error::new(Code::Violation, text);
                self.end(cx, (!is_settled).then(early), out);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(text) = taken {
            self.fail(cx, Error::new(Code::Violation, text), out);
        }
    }

    fn handle_end(
        &mut self,
        cx: &mut SessionCx<'_>,
        end: End,
        out: &mut Out,
    ) -> Result<(), String> {
        let index = self.index_of(end.flow).ok_or("END of no flow")?;
        if end.units > UNITS_MAX {
            return Err(format!("END after {} units", end.units));
        }
        failpoint!("core.end");
        let times = cx.times();
        let Some(FlowEnd::Receiver(_)) = self.flows.get(index).map(|flow| &flow.end) else {
            return Err("END of a flow that this end sends".into());
        };
        self.with_flow(cx, index, out, |flow, cx, told| {
            if let FlowEnd::Receiver(receiver) = flow {
                receiver.handle_end(cx, end, times, told);
            }
        });
        Ok(())
    }

    fn handle_report(
        &mut self,
        cx: &mut SessionCx<'_>,
        report: &Report,
        out: &mut Out,
    ) -> Result<(), String> {
        failpoint!("core.report");
        let mut told = FlowOut::default();
        let unasked = || Err("REPORT that no END has asked for".into());
        let Some(index) = self.index_of(report.flow) else { return unasked() };
        match self.flows.get_mut(index).map(|flow| &mut flow.end) {
            Some(FlowEnd::Sender(sender)) if sender.awaits_report() => {
                let adds_up = sender.handle_report(&mut cx.flow(), report, &mut told);
                if !adds_up {
                    return Err(format!("REPORT does not add up to the {} units", sender.sent()));
                }
            }
            Some(FlowEnd::Member(member)) => member.handle_report(report, &mut told)?,
            _ => return unasked(),
        }
        self.apply(cx, index, told, out);
        Ok(())
    }

    /// The peer closes: our flows end too, and when all is accounted for we say so.
    fn handle_close(&mut self, cx: &mut SessionCx<'_>, close: &Close, out: &mut Out) {
        // Who closes while it sets up, or because of an error, does not wait for an answer.
        if !self.was_ready || close.code != Code::Closed as u16 {
            let error = Error::from_peer(close.code, &close.text);
            return self.end(cx, Some(error), out);
        }
        if std::mem::replace(&mut self.close_asked_by_peer, true) {
            return;
        }
        self.pending.add(cx.now + ANSWER_MAX, Awaited::Closed);
        failpoint!("core.close");
        self.close_flows(cx, out);
        self.answer_closed_if_settled(cx, out);
    }

    pub(super) fn answer_closed_if_settled(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        let is_asked = self.close_asked_by_peer && self.state == State::Closing;
        if is_asked && self.flows.iter().all(|flow| flow.end.is_settled()) {
            self.state = State::Closed;
            out.send(self.id, Message::Closed(Closed));
            self.end(cx, None, out);
        }
    }

    /// Its stream has ended.
    pub fn handle_stream_ended(
        &mut self,
        cx: &mut SessionCx<'_>,
        error: Option<Error>,
        out: &mut Out,
    ) {
        // Who closes before it knows that the session is set up ends it at once.
        let is_idle = self.flows.iter().all(|flow| flow.end.is_idle());
        let usual = self.close_asked_by_peer && is_idle;
        let closed = || Error::new(Code::Violation, "the peer closed the session's stream");
        let error = error.or_else(|| (!usual).then(closed));
        self.end(cx, error, out);
    }

    /// Nobody has answered a command in time.
    pub(super) fn handle_no_answer(
        &mut self,
        cx: &mut SessionCx<'_>,
        awaited: Awaited,
        out: &mut Out,
    ) {
        let error = Error::new(Code::NoAnswer, awaited.name());
        match awaited {
            Awaited::Control(request, asker) => {
                self.pass_answer(cx, request, asker, Err(error), out);
            }
            Awaited::Accept if self.ports.is_some() => {
                // The ANSWER never went out: the data path did not open.
                let text = "probes from this host's data port are not answered; is UDP filtered?";
                self.fail(cx, Error::new(Code::NoDataPath, text), out);
            }
            _ if self.state == State::Closing => self.end(cx, Some(error), out),
            _ => self.fail(cx, error, out),
        }
    }

    /// Ends it at once and tells the peer why; what is on its way is booked as unknown.
    pub fn fail(&mut self, cx: &mut SessionCx<'_>, error: Error, out: &mut Out) {
        let close = Close { code: error.code as u16, text: error.text.clone() };
        out.send(self.id, Message::Close(close));
        self.end(cx, Some(error), out);
    }

    /// It is over at this end: flows that are not accounted for are given up, every view and label
    /// comes back, the application is told once.
    pub fn end(&mut self, cx: &mut SessionCx<'_>, error: Option<Error>, out: &mut Out) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        self.state = State::Closed;
        let ending = match &error {
            Some(error) if error.code != Code::Closed => Ending::Abnormal(error.to_string()),
            _ => Ending::Closed,
        };
        self.with_flows(cx, out, |flow, cx, told| flow.give_up(cx, &ending, told));
        self.leave_fan_outs(cx, out);
        self.ports = None;
        for index in 0..self.flows.len() {
            self.close_channel(cx, index, out);
            self.leave_group(cx, index);
        }
        self.fail_requests(error.as_ref(), out);
        if self.role == Role::Creator && !self.name.is_empty() {
            out.push(Effect::Left(self.name.clone()));
        }
        out.push(Effect::Over(self.id, error));
    }

    /// Requests that wait get no answer any more.
    fn fail_requests(&mut self, error: Option<&Error>, out: &mut Out) {
        let closed = || Error::new(Code::Closed, "the session ended before the answer");
        for awaited in self.pending.clear() {
            if let Awaited::Control(request, Asker::Application) = awaited {
                let answer = Err(error.cloned().unwrap_or_else(closed));
                out.event(CoreEvent::ControlAnswered { session: self.id, request, answer });
            }
        }
    }

    /// A flow that the Creator could not build is not there for the Participant either.
    pub(super) fn drop_flow(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        error: &Error,
        out: &mut Out,
    ) {
        let ending = Ending::Abnormal(error.to_string());
        if let Some(flow) = self.flows.get_mut(index) {
            flow.refused = Some(error.clone());
        }
        self.with_flow(cx, index, out, |flow, cx, told| {
            std::mem::replace(flow, FlowEnd::None).give_up(cx, &ending, told);
        });
    }
}
