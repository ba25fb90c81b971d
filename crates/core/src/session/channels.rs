//! What the flows of a session go through besides datagrams: streams, groups, fan-outs.
//!
//! ```text
//!   streams    expected or dialed --open--> all open: Ready is told --ended--> the flow ends
//!   groups     asked for --joined--> ANSWER            ACCEPT: label, base
//!   fan-outs   a member per flow: END and REPORT of its own
//! ```

use super::{Flow, FlowEnd, Session, SessionCx};
use crate::channel::{Channel, StreamAsk};
use crate::effect::Out;
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::flow::receiver::UNITS_MAX;
use crate::flow::{FlowOut, Lost};
use crate::groups::Joined;
use crate::ids::{FanOutId, PeerId, StreamId};
use crate::labels::Target;
use crate::network::ChannelEvent;
use crate::peer::Peer;
use dacapo_base::Address;
use dacapo_lift::{Membership, StreamParams};
use dacapo_wire::session::{Accept, FlowAnswer, STREAM_TOKEN_LEN};
use std::num::NonZeroU16;
use std::time::Duration;

/// Which end of a stream this is.
#[derive(Clone, Copy, Debug)]
enum Opens {
    Dials(PeerId, Address),
    Expects,
}

impl Session {
    /// Something has happened to the stream of a flow.
    pub fn handle_channel(
        &mut self,
        cx: &mut SessionCx<'_>,
        (index, stream): (usize, StreamId),
        event: ChannelEvent,
        out: &mut Out,
    ) {
        let channel = self.flows.get_mut(index).and_then(|it| it.channel.as_mut());
        match event {
            ChannelEvent::Open => {
                channel.into_iter().for_each(Channel::handle_open);
                self.tell_ready_if_open(out);
            }
            ChannelEvent::Ready(ready) => {
                channel.into_iter().for_each(|channel| channel.handle_ready(ready));
            }
            ChannelEvent::Closed(reason) => {
                cx.shared.channels.handle_closed(stream);
                self.handle_channel_closed(cx, index, &reason, out);
            }
            ChannelEvent::Fallback { .. } | ChannelEvent::Estimates(_) => {}
        }
    }

    /// The stream of a flow ended, or did not open, for this reason.
    fn handle_channel_closed(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        reason: &str,
        out: &mut Out,
    ) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        let name = flow.channel_name(&cx.shared.graphs);
        let Some(what) = flow.channel.as_mut().map(Channel::handle_closed) else { return };
        let code = if what == "ended" { Code::ContactLost } else { Code::NoDataPath };
        let error = Error::new(code, format!("{name} {what}: {reason}"));
        self.lose_channel(cx, index, &error, out);
        // While contact is lost nothing is waited for when the last way is gone too.
        if cx.is_suspended() && !self.flows.iter().any(|flow| flow.end.is_live()) {
            self.fail(cx, error, out);
        }
    }

    /// Gives streams up that did not open in time.
    pub(super) fn watch_channels(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        for index in 0..self.flows.len() {
            let Some(flow) = self.flows.get(index) else { break };
            let due = flow.channel.as_ref().and_then(Channel::due);
            if due.is_some_and(|until| until <= cx.now) {
                let name = flow.channel_name(&cx.shared.graphs);
                self.close_channel(cx, index, out);
                let text = format!("{name} did not open in 10 s; is it filtered?");
                self.lose_channel(cx, index, &Error::new(Code::NoDataPath, text), out);
            }
        }
    }

    /// The stream of a flow is gone: the flow ends, unless it is over.
    fn lose_channel(&mut self, cx: &mut SessionCx<'_>, index: usize, error: &Error, out: &mut Out) {
        self.with_flow(cx, index, out, |end, cx, told| end.lose(cx, Lost::Way, error, told));
        self.lose_member(cx, index, error, out);
        self.tell_ready_if_open(out);
    }

    /// Ends the stream of a flow; what is written already still goes out.
    pub fn close_channel(&mut self, cx: &mut SessionCx<'_>, index: usize, out: &mut Out) {
        let channel = self.flows.get_mut(index).and_then(|it| it.channel.as_mut());
        let Some(channel) = channel else { return };
        if channel.close() {
            cx.shared.channels.close(channel.id());
            self.tell_ready_if_open(out);
        }
    }

    /// The session is set up; the Participant hears of it when every stream is open or given up, so
    /// that all flows begin together.
    pub(super) fn tell_ready_if_open(&mut self, out: &mut Out) {
        let is_opening = |flow: &Flow| flow.channel.is_some_and(|it| it.due().is_some());
        if !self.ready_waits || self.flows.iter().any(is_opening) {
            return;
        }
        self.ready_waits = false;
        // Who has closed meanwhile is not told that it may begin.
        if self.state.is_running() {
            out.event(CoreEvent::Ready { session: self.id });
        }
    }

    /// From now on its streams live so much longer than usual while nothing is acknowledged.
    pub fn lengthen_patience(&mut self, cx: &mut SessionCx<'_>, longer: Duration) {
        let open = self.flows.iter().filter_map(|flow| flow.channel.filter(Channel::is_open));
        open.for_each(|channel| cx.shared.channels.wait(channel.id(), longer));
    }

    /// Whether it waits for datagrams to get through before it is answered: flows on streams need
    /// none.
    pub(super) fn needs_datagrams(&self, cx: &SessionCx<'_>) -> bool {
        let ports = self.ports.as_deref().unwrap_or_default();
        let wanted = self.flows.iter().zip(ports).filter(|(_, port)| port.is_some());
        let mut wanted = wanted.peekable();
        let graphs = &cx.shared.graphs;
        let is_none = wanted.peek().is_none();
        is_none || wanted.any(|(flow, _)| !graphs.is_stream(flow.offer.transport))
    }

    /// Creator: waits for the stream of a flow that was accepted, if it has one; its token, and
    /// the port where that has to be said.
    pub(super) fn expect_channel(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
    ) -> Option<([u8; STREAM_TOKEN_LEN], Option<NonZeroU16>)> {
        let transport = self.flows.get(index)?.offer.transport;
        if !cx.shared.graphs.is_stream(transport) {
            return None;
        }
        let mut token = [0; STREAM_TOKEN_LEN];
        cx.shared.random.fill(&mut token);
        self.begin_channel(cx, index, Opens::Expects, token);
        Some((token, cx.shared.channels.port(transport)))
    }

    /// Participant: dials the streams of the flows that were accepted.
    ///
    /// # Errors
    /// [`Code::Violation`] when the ACCEPT names no token for one.
    pub(super) fn dial_channels(
        &mut self,
        cx: &mut SessionCx<'_>,
        accept: &Accept,
    ) -> Result<(), Error> {
        let Some(remote) = cx.peer.map(Peer::remote) else { return Ok(()) };
        let graphs = &cx.shared.graphs;
        let on_stream = |(_, (flow, given)): &(usize, (&Flow, &FlowAnswer))| {
            // What the Participant itself has declined has no end here.
            let is_there = !matches!(flow.end, FlowEnd::None);
            is_there && given.accepted.is_ok() && graphs.is_stream(flow.offer.transport)
        };
        let flows = self.flows.iter().zip(&accept.flows).enumerate().filter(on_stream);
        let token = |(index, (_, given)): (usize, (&Flow, &FlowAnswer))| {
            let at = given.stream_port.map_or(remote, |port| remote.at_port(port.get()));
            Some((index, given.stream_token?, at))
        };
        let tokens: Option<Vec<_>> = flows.map(token).collect();
        let text = "ACCEPT has no token for a flow on a stream";
        let tokens = tokens.ok_or_else(|| Error::new(Code::Violation, text))?;
        for (index, token, remote) in tokens {
            self.begin_channel(cx, index, Opens::Dials(self.peer, remote), token);
        }
        Ok(())
    }

    /// Asks for the stream of a flow.
    fn begin_channel(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        opens: Opens,
        token: [u8; STREAM_TOKEN_LEN],
    ) {
        let stream = StreamId(cx.shared.fresh_id());
        let owner = (self.id, index);
        let Some(flow) = self.flows.get_mut(index) else { return };
        let terms = stream_params(cx, flow);
        let transport = flow.offer.transport;
        flow.channel = Some(Channel::new(cx.now, stream));
        cx.shared.channels.open(
            owner,
            match opens {
                Opens::Dials(peer, remote) => {
                    StreamAsk::Dial { stream, transport, peer, remote, token, terms }
                }
                Opens::Expects => StreamAsk::Expect { stream, transport, token, terms },
            },
        );
    }

    /// Asks for the groups of the flows that are wanted.
    pub(super) fn ask_groups(&mut self, cx: &mut SessionCx<'_>) {
        let Some(source) = cx.peer.and_then(|peer| peer.remote().ip()) else { return };
        let ports = self.ports.as_deref().unwrap_or_default();
        for (index, (flow, port)) in self.flows.iter_mut().zip(ports).enumerate() {
            let (Some(group), Some(_)) = (flow.offer.multicast, port) else { continue };
            let source_specific = dacapo_lift::is_source_specific(group.ip());
            let membership = Membership { group, source, source_specific };
            flow.joined = Joined::Asked(membership);
            cx.shared.groups.ask((self.id, index), membership);
        }
    }

    /// The group of a flow was joined, or could not be, for this reason.
    pub fn handle_joined(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        joined: &Membership,
        result: &Result<(), String>,
        out: &mut Out,
    ) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        if !matches!(flow.joined, Joined::Asked(_)) {
            return;
        }
        flow.joined = Joined::Yes(*joined);
        if let Err(why) = result {
            self.leave_group(cx, index);
            if let Some(flow) = self.flows.get_mut(index) {
                flow.joined = Joined::Failed(Error::new(Code::NoDataPath, why.as_str()));
            }
        }
        self.answer_if_open(cx, out);
    }

    /// Whether it waits for groups to be joined before it is answered.
    pub(super) fn waits_for_groups(&self) -> bool {
        self.flows.iter().any(|flow| matches!(flow.joined, Joined::Asked(_)))
    }

    /// Participant: a flow to a group was accepted; its packets have this label, and its units
    /// begin at `base`.
    ///
    /// # Errors
    /// [`Code::Violation`] without a base, or with one that cannot be.
    pub(super) fn begin_in_group(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        label: u32,
        base: Option<u64>,
        out: &mut Out,
    ) -> Result<(), Error> {
        let text = "ACCEPT has no base for a flow to a group";
        let base = base.ok_or_else(|| Error::new(Code::Violation, text))?;
        if base > UNITS_MAX {
            return Err(Error::new(Code::Violation, format!("a base of {base} units")));
        }
        if let Some(FlowEnd::Receiver(receiver)) = self.flows.get_mut(index).map(|it| &mut it.end) {
            receiver.join_at(base);
        }
        let target = Target { session: self.id.0, flow: index, epoch: 0 };
        let Some(source) = cx.peer.map(Peer::remote) else { return Ok(()) };
        let is_ours = cx.shared.labels.target(label).is_some();
        if is_ours || !cx.shared.groups.add_label(source, label, target) {
            let text = "the label of the flow to the group is in use here: join again";
            self.drop_flow(cx, index, &Error::new(Code::Internal, text), out);
        }
        Ok(())
    }

    /// A flow needs its group no longer.
    pub(super) fn leave_group(&mut self, cx: &mut SessionCx<'_>, index: usize) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        let membership = std::mem::take(&mut flow.joined).membership();
        cx.shared.groups.leave((self.id, index), membership);
    }

    /// Says END to the member of a flow, if it is one: it gets nothing that is fed from now on.
    pub fn end_member(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        failure: Option<&Error>,
        out: &mut Out,
    ) {
        let Some(FlowEnd::Member(member)) = self.flows.get_mut(index).map(|it| &mut it.end) else {
            return;
        };
        let Some((fed, _)) = cx.fan_outs.fed(member.fan_out()) else { return };
        let mut told = FlowOut::default();
        member.end(&fed, failure, &mut told);
        self.apply(cx, index, told, out);
    }

    /// Says END to its members: all of them, or those whose fan-out has ended.
    pub(super) fn end_members(&mut self, cx: &mut SessionCx<'_>, all: bool, out: &mut Out) {
        for (index, id) in self.fan_outs() {
            let has_ended = cx.fan_outs.get(id).is_some_and(|it| it.has_ended());
            if all || has_ended {
                self.end_member(cx, index, None, out);
            }
        }
    }

    /// The fan-outs in which it takes part.
    fn fan_outs(&self) -> Vec<(usize, FanOutId)> {
        let flows = self.flows.iter().enumerate();
        flows.filter_map(|(index, flow)| Some((index, flow.fan_out?.0))).collect()
    }

    /// The member of a flow gets nothing any more, for this reason.
    pub fn lose_member(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        error: &Error,
        out: &mut Out,
    ) {
        let Some(FlowEnd::Member(member)) = self.flows.get_mut(index).map(|it| &mut it.end) else {
            return;
        };
        member.flush(&mut cx.shared.pool);
        if member.runs() {
            let (session, flow, error) = (self.id, index, error.clone());
            out.event(CoreEvent::FlowFailed { session, flow, error });
        }
        self.end_member(cx, index, Some(error), out);
    }

    /// Takes part in its fan-outs no longer: what its members have not been accounted for is given
    /// up.
    pub(super) fn leave_fan_outs(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        for (index, id) in self.fan_outs() {
            let fed = cx.fan_outs.fed(id).map(|(fed, _)| fed).unwrap_or_default();
            let mut told = FlowOut::default();
            let Some(flow) = self.flows.get_mut(index) else { continue };
            flow.fan_out = None;
            if let FlowEnd::Member(member) = &mut flow.end {
                member.give_up(&fed, &mut told);
                member.flush(&mut cx.shared.pool);
            }
            self.apply(cx, index, told, out);
            cx.fan_outs.leave(cx.now, cx.shared, id, (self.id, index), out);
        }
    }
}

/// What the transport of a stream is told of its flow.
fn stream_params(cx: &SessionCx<'_>, flow: &Flow) -> StreamParams {
    let Some(peer) = cx.peer else { return StreamParams::default() };
    let pace = cx.shared.graphs.pace(&flow.offer, peer.remote().is_loopback());
    let path_len = peer.data().datagram_len(cx.now);
    cx.shared.graphs.stream_params(&flow.offer, path_len, pace)
}
