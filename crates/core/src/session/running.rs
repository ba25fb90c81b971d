//! A session that runs: flows go on and pause, and commands out of band.

use super::table::{Role, State};
use super::{Asker, Awaited, Session, SessionCx};
use crate::config::ANSWER_MAX;
use crate::effect::Out;
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::flow::ModuleMessage;
use dacapo_base::{Time, failpoint};
use dacapo_wire::limits::PAYLOAD_LEN_MAX;
use dacapo_wire::message::Message;
use dacapo_wire::session::{
    Activate, Activated, CODE_SUCCESS, Control, ControlAnswer, Deactivate, Deactivated,
    MODULE_ACCESS,
};

impl Session {
    /// Lets its flows run, or pause. Participant only.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when it is not set up or does not run, or this end is its Creator.
    pub fn set_active(&mut self, now: Time, active: bool, out: &mut Out) -> Result<(), Error> {
        let from = if active { State::Ready } else { State::Active };
        if self.state != from || self.role != Role::Participant {
            let text = format!("the session is {:?}, not {from:?}", self.state);
            return Err(Error::new(Code::NoSuchThing, text));
        }
        let request = self.pending.next_request();
        let (message, state, awaited) = if active {
            let activate = Message::Activate(Activate { request });
            (activate, State::Activating, Awaited::Activated(request))
        } else {
            let deactivate = Message::Deactivate(Deactivate { request });
            (deactivate, State::Deactivating, Awaited::Deactivated(request))
        };
        self.state = state;
        self.pending.add(now + ANSWER_MAX, awaited);
        out.send(self.id, message);
        Ok(())
    }

    /// Sends a command out of band to the peer's end; the number of the request.
    ///
    /// # Errors
    /// [`Code::NoSuchThing`] when it is not set up, or closes; [`Code::TooMany`] when the payload
    /// exceeds 4 KiB or too many requests wait.
    pub fn control(
        &mut self,
        now: Time,
        flow: u16,
        module: u16,
        payload: &[u8],
        out: &mut Out,
    ) -> Result<u32, Error> {
        if !self.state.is_running() {
            let text = format!("the session is {:?}", self.state);
            return Err(Error::new(Code::NoSuchThing, text));
        }
        let asker = Asker::Application;
        if payload.len() > PAYLOAD_LEN_MAX || self.pending.is_full(asker) {
            return Err(Error::new(Code::TooMany, "requests, or bytes in one (at most 4 KiB)"));
        }
        let to_module = module != MODULE_ACCESS;
        let epoch = to_module.then(|| self.flows.epoch_of(flow.into())).flatten().unwrap_or(0);
        let request = self.pending.ask(now + ANSWER_MAX, asker);
        let payload = payload.to_vec();
        out.send(self.id, Message::Control(Control { request, flow, epoch, module, payload }));
        Ok(request)
    }

    /// Modules have messages for those of the peer: each goes as a CONTROL, or is refused at once.
    pub(super) fn pass_asks(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        for (flow, ModuleMessage { epoch, place, payload }) in self.flows.take_asks() {
            let asker = Asker::Module { flow, epoch, place };
            if self.state.is_running() && !self.pending.is_full(asker) {
                let (flow, module) = (flow as u16, place as u16);
                let request = self.pending.ask(cx.now + ANSWER_MAX, asker);
                let control = Control { request, flow, epoch, module, payload };
                out.send(self.id, Message::Control(control));
            } else {
                let text = "the session has no place for another request";
                self.flows.pass_answer(cx, (flow, epoch, place), Err(text), out);
            }
        }
    }

    /// A message for a session that runs.
    pub(super) fn handle_running(
        &mut self,
        cx: &mut SessionCx<'_>,
        message: Message,
        out: &mut Out,
    ) {
        match message {
            Message::Activate(it) => {
                self.set_running(cx.now, true, out);
                failpoint!("core.activate");
                out.send(self.id, Message::Activated(Activated { request: it.request }));
            }
            Message::Deactivate(it) => {
                self.set_running(cx.now, false, out);
                out.send(self.id, Message::Deactivated(Deactivated { request: it.request }));
            }
            Message::Activated(it) => self.handle_done(cx, true, it.request, out),
            Message::Deactivated(it) => self.handle_done(cx, false, it.request, out),
            Message::Control(control) => self.handle_control(cx, &control, out),
            Message::ControlAnswer(answer) => self.handle_control_answer(cx, answer, out),
            _ => {}
        }
    }

    fn handle_done(&mut self, cx: &mut SessionCx<'_>, active: bool, request: u32, out: &mut Out) {
        let (name, awaited) = if active {
            ("ACTIVATED", Awaited::Activated(request))
        } else {
            ("DEACTIVATED", Awaited::Deactivated(request))
        };
        if !self.pending.take(awaited) {
            let text = format!("{name} {request} answers nothing");
            return self.fail(cx, Error::new(Code::Violation, text), out);
        }
        self.set_running(cx.now, active, out);
    }

    fn set_running(&mut self, now: Time, is_running: bool, out: &mut Out) {
        self.flows.for_each(|flow| flow.end.set_running(now, is_running));
        let session = self.id;
        out.event(if is_running {
            CoreEvent::Active { session }
        } else {
            CoreEvent::Inactive { session }
        });
    }

    fn handle_control(&mut self, cx: &mut SessionCx<'_>, control: &Control, out: &mut Out) {
        let result = if control.module == MODULE_ACCESS {
            self.flows.command(cx, control.flow, &control.payload)
        } else {
            self.flows.command_module(cx, control, out)
        };
        let (code, mut payload) = match result {
            Ok(payload) => (CODE_SUCCESS, payload),
            Err(error) => (error.code as u16, error.text.into_bytes()),
        };
        payload.truncate(PAYLOAD_LEN_MAX);
        let answer = ControlAnswer { request: control.request, code, payload };
        out.send(self.id, Message::ControlAnswer(answer));
    }

    fn handle_control_answer(
        &mut self,
        cx: &mut SessionCx<'_>,
        answer: ControlAnswer,
        out: &mut Out,
    ) {
        let Some(asker) = self.pending.take_control(answer.request) else { return };
        let result = if answer.code == CODE_SUCCESS {
            Ok(answer.payload)
        } else {
            Err(Error::from_peer(answer.code, &String::from_utf8_lossy(&answer.payload)))
        };
        self.pass_answer(cx, answer.request, asker, result, out);
    }

    /// Gives the answer to a CONTROL to who has asked.
    pub(super) fn pass_answer(
        &mut self,
        cx: &mut SessionCx<'_>,
        request: u32,
        asker: Asker,
        answer: Result<Vec<u8>, Error>,
        out: &mut Out,
    ) {
        match asker {
            Asker::Application => {
                out.event(CoreEvent::ControlAnswered { session: self.id, request, answer });
            }
            Asker::Module { flow, epoch, place } => {
                let text = answer.as_ref().err().map(Error::to_string).unwrap_or_default();
                let answer = answer.as_deref().map_err(|_| text.as_str());
                self.flows.pass_answer(cx, (flow, epoch, place), answer, out);
            }
        }
    }
}
