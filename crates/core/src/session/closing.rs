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
use super::{Asker, Awaited, Session, SessionCx};
use crate::config::ANSWER_MAX;
use crate::effect::{Effect, Out};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::port::Ending;
use dacapo_base::failpoint;
use dacapo_wire::message::Message;
use dacapo_wire::session::{Close, Closed};

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
        self.flows.close(cx, out);
        out.send(self.id, Message::Close(close));
        self.pending.add(cx.now + ANSWER_MAX, Awaited::Closed);
    }

    /// A message about the end.
    pub(super) fn handle_closing(
        &mut self,
        cx: &mut SessionCx<'_>,
        message: Message,
        out: &mut Out,
    ) {
        let taken = match message {
            Message::End(end) => self.flows.handle_end(cx, end, out),
            Message::Report(report) => self.flows.handle_report(cx, &report, out),
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
        self.flows.close(cx, out);
    }

    #[inline]
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
        self.ports = None;
        self.flows.give_up(cx, &ending, out);
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
}
