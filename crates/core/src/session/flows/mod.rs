//! [`Flows`]: the flows of a session at this end, and what becomes of what they tell.
//!
//! ```text
//!   messages, time, data --> with(index, |end, cx, told| ..) --> apply: messages, events, effects
//!     ways      streams, groups, fan-outs: what carries a flow besides datagrams
//!     changes   PREPARE READY SWITCHED DONE
//!   what its modules ask of those of the peer waits for the session to take it
//! ```
//!
//! Invariant: what a flow tells is done before the next is asked.

mod changes;
mod ways;

use super::flow::{Flow, FlowEnd};
use super::{Role, SessionCx};
use crate::effect::{Out, PeerNews};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::flow::receiver::UNITS_MAX;
use crate::flow::{Context, FlowEvent, FlowOut, Lost, ModuleMessage, ModulesTold, PathTimes};
use crate::ids::{PeerId, SessionId};
use crate::port::Ending;
use dacapo_base::{Time, earlier, failpoint};
use dacapo_wire::session::{Control, End, FLOW_ALL, FlowOffer, Report};

pub(crate) struct Flows {
    session: SessionId,
    peer: PeerId,
    all: Vec<Flow>,
    /// What modules have for those of the peer, with the flow of each.
    asks: Vec<(usize, ModuleMessage)>,
}

impl Flows {
    /// Those that are offered in a session.
    pub fn new(session: SessionId, peer: PeerId, role: Role, offers: &[FlowOffer]) -> Self {
        let offers = offers.iter().cloned().enumerate();
        let all = offers.map(|(index, offer)| Flow::new((session, index), peer, role, offer));
        let all = all.collect();
        Self { session, peer, all, asks: Vec::new() }
    }

    pub fn as_slice(&self) -> &[Flow] {
        &self.all
    }

    pub fn get(&self, index: usize) -> Option<&Flow> {
        self.all.get(index)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Flow> {
        self.all.iter()
    }

    /// Runs `body` over one; `None` when there is no such.
    pub fn on<R>(&mut self, index: usize, body: impl FnOnce(&mut Flow) -> R) -> Option<R> {
        self.all.get_mut(index).map(body)
    }

    /// Runs `body` over each.
    #[inline]
    pub fn for_each(&mut self, body: impl FnMut(&mut Flow)) {
        self.all.iter_mut().for_each(body);
    }

    /// Runs `body` over one and does what the flow tells.
    #[inline]
    pub fn with(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        out: &mut Out,
        body: impl FnOnce(&mut FlowEnd, &mut Context<'_>, &mut FlowOut),
    ) {
        self.with_flow(cx, index, out, |flow, cx, told| body(&mut flow.end, &mut cx.flow(), told));
    }

    /// The same over the flow, with all that a session is given.
    #[inline]
    pub fn with_flow(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        out: &mut Out,
        body: impl FnOnce(&mut Flow, &mut SessionCx<'_>, &mut FlowOut),
    ) {
        let mut told = FlowOut::default();
        if let Some(flow) = self.all.get_mut(index) {
            body(flow, cx, &mut told);
        }
        self.apply(cx, index, told, out);
    }

    /// The same over each.
    #[inline]
    fn with_all(
        &mut self,
        cx: &mut SessionCx<'_>,
        out: &mut Out,
        body: impl Fn(&mut FlowEnd, &mut Context<'_>, &mut FlowOut),
    ) {
        for index in 0..self.all.len() {
            self.with(cx, index, out, &body);
        }
    }

    /// Does what a flow tells.
    #[inline]
    pub fn apply(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        mut told: FlowOut,
        out: &mut Out,
    ) {
        while !told.is_empty() {
            told = self.apply_once(cx, index, told, out);
        }
    }

    /// Does what a flow tells; what it tells when a module of it has failed.
    fn apply_once(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        told: FlowOut,
        out: &mut Out,
    ) -> FlowOut {
        told.messages.into_iter().for_each(|message| out.send(self.session, message));
        let (session, flow) = (self.session, index);
        for event in told.events {
            match event {
                FlowEvent::Ended { ledger, hash, failure } => {
                    let over = self.on(index, |flow| {
                        flow.close_channel(cx);
                        flow.leave_group(cx);
                        flow.end.modules()
                    });
                    let modules = over.unwrap_or_default();
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
        if let Some(ModulesTold { asks, mut seen, failure }) = told.modules.map(|it| *it) {
            self.get(index).into_iter().for_each(|flow| seen.keep_of_paths(flow.spread));
            if !seen.is_empty() {
                out.peer(self.peer, PeerNews::Seen(Box::new(seen)));
            }
            self.asks.extend(asks.into_iter().map(|ask| (index, ask)));
            if let (Some(said), Some(flow)) = (failure, self.all.get_mut(index)) {
                let error = Error::new(Code::ModuleFailed, said);
                flow.end.lose(&mut cx.flow(), Lost::Graph, &error, &mut next);
            }
        }
        next
    }

    /// Whether modules have asked something since [`Flows::take_asks`].
    #[inline]
    pub fn has_asks(&self) -> bool {
        !self.asks.is_empty()
    }

    /// What modules have asked since the last call.
    pub fn take_asks(&mut self) -> Vec<(usize, ModuleMessage)> {
        std::mem::take(&mut self.asks)
    }

    /// When the first is due: `datagrams` says whether the peer's data port is known, `opens`
    /// whether it counts that streams open.
    #[inline]
    pub fn due(&self, now: Time, datagrams: bool, opens: bool, times: PathTimes) -> Option<Time> {
        let flows = self.all.iter().map(|it| it.due(now, datagrams, opens, times));
        flows.fold(None, earlier)
    }

    #[inline]
    pub fn handle_timeout(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        let times = cx.times();
        self.with_all(cx, out, |end, cx, told| end.handle_timeout(cx, times, told));
    }

    /// The path takes datagrams of another length; whether any flow goes by datagrams.
    pub fn handle_path_len(&mut self, cx: &mut SessionCx<'_>, len: usize) -> bool {
        let mut has_datagrams = false;
        for flow in &mut self.all {
            if cx.shared.graphs.is_stream(flow.offer.transport) {
                continue;
            }
            has_datagrams |= !matches!(flow.end, FlowEnd::None);
            let pool = &mut cx.shared.pool;
            match &mut flow.end {
                FlowEnd::Sender(sender) => sender.set_datagram_len(pool, len),
                FlowEnd::Member(member) => {
                    cx.fan_outs.set_len(pool, member.fan_out(), flow.place, len);
                }
                FlowEnd::None | FlowEnd::Receiver(_) => {}
            }
        }
        has_datagrams
    }

    /// Gives a command to the access modules of one flow or of all, at one instant.
    pub fn command(
        &mut self,
        cx: &mut SessionCx<'_>,
        flow: u16,
        payload: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let (mut answers, mut fan_outs) = (Vec::new(), Vec::new());
        for (index, at) in self.all.iter_mut().enumerate() {
            let meant = flow == FLOW_ALL || usize::from(flow) == index;
            match &mut at.end {
                FlowEnd::Sender(sender) if meant => answers.push(sender.command(cx.now, payload)),
                FlowEnd::Member(member) if meant => fan_outs.push(member.fan_out()),
                _ => {}
            }
        }
        let of_all = fan_outs.into_iter().map(|id| cx.fan_outs.command(cx.now, id, payload));
        answers.extend(of_all);
        // Every flow has got the command; the answer is the first that failed, else the first.
        let failed = answers.iter().position(Result::is_err).unwrap_or(0);
        let answer = answers.into_iter().nth(failed);
        answer.unwrap_or_else(|| Err(Error::new(Code::NoSuchThing, "this end sends no such flow")))
    }

    /// Gives a message of the peer's module to ours.
    pub fn command_module(
        &mut self,
        cx: &mut SessionCx<'_>,
        control: &Control,
        out: &mut Out,
    ) -> Result<Vec<u8>, Error> {
        let none = |text: String| Err(Error::new(Code::NoSuchThing, text));
        let (index, place) = (usize::from(control.flow), usize::from(control.module));
        let Some(runs) = self.epoch_of(index) else { return none("no such flow".into()) };
        let mut answer = None;
        self.with(cx, index, out, |end, cx, told| {
            answer = end.with_epoch(cx, control.epoch, told, |runner, cx| {
                runner.control(cx, place, &control.payload)
            });
        });
        match answer {
            Some(answer) => answer.map_err(|it| Error::new(Code::Refused, it.to_string())),
            None => none(format!("the flow runs in epoch {runs}")),
        }
    }

    /// The epoch that a flow runs in at this end.
    pub fn epoch_of(&self, index: usize) -> Option<u64> {
        self.all.get(index)?.end.epoch()
    }

    /// Gives the peer's answer to the module that has asked.
    pub fn pass_answer(
        &mut self,
        cx: &mut SessionCx<'_>,
        (flow, epoch, place): (usize, u64, usize),
        answer: Result<&[u8], &str>,
        out: &mut Out,
    ) {
        self.with(cx, flow, out, |end, cx, told| {
            end.with_epoch(cx, epoch, told, |runner, cx| {
                runner.handle_answer(cx, place, answer);
            });
        });
    }

    /// Each that this end sends says END now; what it receives is waited for so much longer.
    pub fn close(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        self.with_all(cx, out, FlowEnd::close);
        self.end_members(cx, true, out);
    }

    /// The peer has fed all that it will.
    ///
    /// # Errors
    /// How this breaks the protocol.
    pub fn handle_end(
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
        let Some(FlowEnd::Receiver(_)) = self.all.get(index).map(|flow| &flow.end) else {
            return Err("END of a flow that this end sends".into());
        };
        self.with(cx, index, out, |flow, cx, told| {
            if let FlowEnd::Receiver(receiver) = flow {
                receiver.handle_end(cx, end, times, told);
            }
        });
        Ok(())
    }

    /// The peer accounts for what came of a flow.
    ///
    /// # Errors
    /// How this breaks the protocol.
    pub fn handle_report(
        &mut self,
        cx: &mut SessionCx<'_>,
        report: &Report,
        out: &mut Out,
    ) -> Result<(), String> {
        failpoint!("core.report");
        let mut told = FlowOut::default();
        let unasked = || Err("REPORT that no END has asked for".into());
        let Some(index) = self.index_of(report.flow) else { return unasked() };
        match self.all.get_mut(index).map(|flow| &mut flow.end) {
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

    fn index_of(&self, flow: u16) -> Option<usize> {
        self.all.iter().position(|it| it.offer.flow == flow)
    }

    /// One that the Creator could not build is not there for the Participant either.
    pub fn drop_one(&mut self, cx: &mut SessionCx<'_>, index: usize, error: &Error, out: &mut Out) {
        let ending = Ending::Abnormal(error.to_string());
        self.on(index, |flow| flow.refused = Some(error.clone()));
        self.with(cx, index, out, |flow, cx, told| {
            std::mem::replace(flow, FlowEnd::None).give_up(cx, &ending, told);
        });
    }

    /// The session is over: what is not accounted for is given up, and everything comes back.
    pub fn give_up(&mut self, cx: &mut SessionCx<'_>, ending: &Ending, out: &mut Out) {
        self.with_all(cx, out, |flow, cx, told| flow.give_up(cx, ending, told));
        for index in 0..self.all.len() {
            let fan_out = self.get(index).and_then(|flow| flow.fan_out);
            self.with_flow(cx, index, out, |flow, cx, told| {
                flow.give_up_member(cx, told);
                flow.close_channel(cx);
                flow.leave_group(cx);
            });
            if let Some((id, _)) = fan_out {
                cx.fan_outs.leave(cx.now, cx.shared, id, (self.session, index), out);
            }
        }
    }
}
