//! What carries the flows of a session besides datagrams, together.
//!
//! ```text
//!   a stream, group or fan-out of one: Flow --> what that tells is applied here
//! ```

use super::Flows;
use crate::channel::Channel;
use crate::effect::Out;
use crate::error::{Code, Error};
use crate::graphs::Graphs;
use crate::ids::StreamId;
use crate::network::ChannelEvent;
use crate::peer::Peer;
use crate::port::Port;
use crate::session::way::Opens;
use crate::session::{Flow, FlowEnd, SessionCx};
use dacapo_wire::session::{Accept, FlowAnswer};
use std::time::Duration;

impl Flows {
    /// Something has happened to the stream of a flow; why the stream has ended, if it has.
    pub fn handle_channel(
        &mut self,
        cx: &mut SessionCx<'_>,
        (index, stream): (usize, StreamId),
        event: ChannelEvent,
        out: &mut Out,
    ) -> Option<Error> {
        let closed = self.on(index, |flow| flow.handle_channel(cx, stream, event)).flatten()?;
        self.with_flow(cx, index, out, |flow, cx, told| flow.lose_channel(cx, &closed, told));
        Some(closed)
    }

    /// Gives streams up that did not open in time.
    #[inline]
    pub fn watch_channels(&mut self, cx: &mut SessionCx<'_>, out: &mut Out) {
        if !self.all.iter().any(Flow::is_opening) {
            return;
        }
        for index in 0..self.all.len() {
            if let Some(error) = self.on(index, |flow| flow.expire_channel(cx)).flatten() {
                self.with_flow(cx, index, out, |flow, cx, told| {
                    flow.lose_channel(cx, &error, told);
                });
            }
        }
    }

    /// From now on its streams live so much longer than usual while nothing is acknowledged.
    pub fn lengthen_patience(&self, cx: &mut SessionCx<'_>, longer: Duration) {
        let open = self.all.iter().filter_map(|flow| flow.channel.filter(Channel::is_open));
        open.for_each(|channel| cx.shared.channels.wait(channel.id(), longer));
    }

    /// Whether those for which there are ports need datagrams to get through: flows on streams need
    /// none.
    pub fn needs_datagrams(&self, graphs: &Graphs, ports: &[Option<Port>]) -> bool {
        let wanted = self.all.iter().zip(ports).filter(|(_, port)| port.is_some());
        let mut wanted = wanted.peekable();
        let is_none = wanted.peek().is_none();
        is_none || wanted.any(|(flow, _)| !graphs.is_stream(flow.offer.transport))
    }

    /// Participant: dials the streams of the flows that were accepted.
    ///
    /// # Errors
    /// [`Code::Violation`] when the ACCEPT names no token for one.
    pub fn dial_channels(&mut self, cx: &mut SessionCx<'_>, accept: &Accept) -> Result<(), Error> {
        let Some(remote) = cx.peer.map(Peer::remote) else { return Ok(()) };
        let graphs = &cx.shared.graphs;
        let on_stream = |(_, (flow, given)): &(usize, (&Flow, &FlowAnswer))| {
            // What the Participant itself has declined has no end here.
            let is_there = !matches!(flow.end, FlowEnd::None);
            is_there && given.accepted.is_ok() && graphs.is_stream(flow.offer.transport)
        };
        let flows = self.all.iter().zip(&accept.flows).enumerate().filter(on_stream);
        let token = |(index, (_, given)): (usize, (&Flow, &FlowAnswer))| {
            let at = given.stream_port.map_or(remote, |port| remote.at_port(port.get()));
            Some((index, given.stream_token?, at))
        };
        let tokens: Option<Vec<_>> = flows.map(token).collect();
        let text = "ACCEPT has no token for a flow on a stream";
        let tokens = tokens.ok_or_else(|| Error::new(Code::Violation, text))?;
        for (index, token, remote) in tokens {
            let opens = Opens::Dials(self.peer, remote);
            self.on(index, |flow| flow.begin_channel(cx, opens, token));
        }
        Ok(())
    }

    /// Asks for the groups of those for which there are ports.
    pub fn ask_groups(&mut self, cx: &mut SessionCx<'_>, ports: &[Option<Port>]) {
        let wanted = self.all.iter_mut().zip(ports).filter(|(_, port)| port.is_some());
        wanted.for_each(|(flow, _)| flow.ask_group(cx));
    }

    /// Those that are sent once for several are those of fan-outs, which are begun where none runs.
    ///
    /// # Errors
    /// One has no source, or cannot be begun.
    pub fn enter_fan_outs(
        &mut self,
        cx: &mut SessionCx<'_>,
        session: &str,
        ports: &mut [Option<Port>],
    ) -> Result<(), Error> {
        let mut all = self.all.iter_mut().zip(ports);
        all.try_for_each(|(flow, port)| flow.enter_fan_out(cx, session, port))
    }

    /// Participant: a flow to a group was accepted; its packets have this label, and its units
    /// begin at `base`.
    ///
    /// # Errors
    /// [`Code::Violation`] without a base, or with one that cannot be.
    pub fn begin_in_group(
        &mut self,
        cx: &mut SessionCx<'_>,
        index: usize,
        label: u32,
        base: Option<u64>,
        out: &mut Out,
    ) -> Result<(), Error> {
        let begun = self.on(index, |flow| flow.begin_in_group(cx, label, base));
        if !begun.unwrap_or(Ok(true))? {
            let text = "the label of the flow to the group is in use here: join again";
            self.drop_one(cx, index, &Error::new(Code::Internal, text), out);
        }
        Ok(())
    }

    /// Says END to members of fan-outs: all of them, or those whose fan-out has ended.
    pub fn end_members(&mut self, cx: &mut SessionCx<'_>, all: bool, out: &mut Out) {
        for index in 0..self.all.len() {
            self.with_flow(cx, index, out, |flow, cx, told| {
                let fan_out = flow.fan_out.and_then(|(id, _)| cx.fan_outs.get(id));
                if all || fan_out.is_some_and(|it| it.has_ended()) {
                    flow.end_member(cx, None, told);
                }
            });
        }
    }
}
