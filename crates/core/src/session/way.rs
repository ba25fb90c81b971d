//! What carries a flow besides datagrams: a stream, a group, a part in a fan-out.
//!
//! ```text
//!   stream    expected or dialed --open--> the flow sends --ended--> the flow is lost
//!   group     asked for --joined--> ANSWER            ACCEPT: label, base
//!   fan-out   entered --ANSWER--> a member: END and REPORT of its own --> left
//! ```

use super::{Flow, FlowEnd, SessionCx};
use crate::channel::{Channel, StreamAsk};
use crate::error::{Code, Error};
use crate::fanout::{FanOutMember, Part};
use crate::flow::receiver::UNITS_MAX;
use crate::flow::{FlowEvent, FlowOut, Lost};
use crate::groups::Joined;
use crate::ids::{PeerId, StreamId};
use crate::labels::Target;
use crate::network::ChannelEvent;
use crate::peer::Peer;
use crate::port::Port;
use dacapo_base::Address;
use dacapo_lift::{Membership, StreamParams};
use dacapo_wire::session::STREAM_TOKEN_LEN;
use std::num::NonZeroU16;

/// Which end of a stream this is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Opens {
    Dials(PeerId, Address),
    Expects,
}

impl Flow {
    /// Something has happened to its stream; why that has ended, if it has.
    pub fn handle_channel(
        &mut self,
        cx: &mut SessionCx<'_>,
        stream: StreamId,
        event: ChannelEvent,
    ) -> Option<Error> {
        let channel = self.channel.as_mut();
        match event {
            ChannelEvent::Open => channel.into_iter().for_each(Channel::handle_open),
            ChannelEvent::Ready(ready) => {
                channel.into_iter().for_each(|channel| channel.handle_ready(ready));
            }
            ChannelEvent::Closed(reason) => {
                cx.shared.channels.handle_closed(stream);
                let what = channel.map(Channel::handle_closed)?;
                let code = if what == "ended" { Code::ContactLost } else { Code::NoDataPath };
                let name = self.channel_name(&cx.shared.graphs);
                return Some(Error::new(code, format!("{name} {what}: {reason}")));
            }
            ChannelEvent::Fallback { .. } | ChannelEvent::Estimates(_) => {}
        }
        None
    }

    /// Whether its stream is opening.
    #[inline]
    pub fn is_opening(&self) -> bool {
        self.channel.is_some_and(|channel| channel.due().is_some())
    }

    /// Gives its stream up if that did not open in time: why.
    pub fn expire_channel(&mut self, cx: &mut SessionCx<'_>) -> Option<Error> {
        let until = self.channel.as_ref().and_then(Channel::due)?;
        if until > cx.now {
            return None;
        }
        self.close_channel(cx);
        let name = self.channel_name(&cx.shared.graphs);
        let text = format!("{name} did not open in 10 s; is it filtered?");
        Some(Error::new(Code::NoDataPath, text))
    }

    /// Its stream is gone: it ends, unless it is over.
    pub fn lose_channel(&mut self, cx: &mut SessionCx<'_>, error: &Error, told: &mut FlowOut) {
        self.end.lose(&mut cx.flow(), Lost::Way, error, told);
        self.lose_member(cx, error, told);
    }

    /// Ends its stream; what is written already still goes out.
    pub fn close_channel(&mut self, cx: &mut SessionCx<'_>) {
        if let Some(channel) = &mut self.channel
            && channel.close()
        {
            cx.shared.channels.close(channel.id());
        }
    }

    /// Creator: waits for its stream, if it has one; the token of that, and the port where it has
    /// to be said.
    pub fn expect_channel(
        &mut self,
        cx: &mut SessionCx<'_>,
    ) -> Option<([u8; STREAM_TOKEN_LEN], Option<NonZeroU16>)> {
        let transport = self.offer.transport;
        if !cx.shared.graphs.is_stream(transport) {
            return None;
        }
        let mut token = [0; STREAM_TOKEN_LEN];
        cx.shared.random.fill(&mut token);
        self.begin_channel(cx, Opens::Expects, token);
        Some((token, cx.shared.channels.port(transport)))
    }

    /// Asks for its stream.
    pub(super) fn begin_channel(
        &mut self,
        cx: &mut SessionCx<'_>,
        opens: Opens,
        token: [u8; STREAM_TOKEN_LEN],
    ) {
        let stream = StreamId(cx.shared.fresh_id());
        let terms = stream_params(cx, self);
        let transport = self.offer.transport;
        self.channel = Some(Channel::new(cx.now, stream));
        cx.shared.channels.open(
            self.place,
            match opens {
                Opens::Dials(peer, remote) => {
                    StreamAsk::Dial { stream, transport, peer, remote, token, terms }
                }
                Opens::Expects => StreamAsk::Expect { stream, transport, token, terms },
            },
        );
    }

    /// Asks for its group, if it has one.
    pub fn ask_group(&mut self, cx: &mut SessionCx<'_>) {
        let source = cx.peer.and_then(|peer| peer.remote().ip());
        let (Some(group), Some(source)) = (self.offer.multicast, source) else { return };
        let source_specific = dacapo_lift::is_source_specific(group.ip());
        let membership = Membership { group, source, source_specific };
        self.joined = Joined::Asked(membership);
        cx.shared.groups.ask(self.place, membership);
    }

    /// Whether its group is to be joined still.
    pub fn waits_for_group(&self) -> bool {
        matches!(self.joined, Joined::Asked(_))
    }

    /// Its group was joined, or could not be, for this reason.
    pub fn handle_joined(
        &mut self,
        cx: &mut SessionCx<'_>,
        joined: &Membership,
        result: &Result<(), String>,
    ) {
        if !self.waits_for_group() {
            return;
        }
        self.joined = Joined::Yes(*joined);
        if let Err(why) = result {
            self.leave_group(cx);
            self.joined = Joined::Failed(Error::new(Code::NoDataPath, why.as_str()));
        }
    }

    /// Participant: it was accepted, and comes from a group; its packets have this label, and its
    /// units begin at `base`. False when the label is in use here.
    ///
    /// # Errors
    /// [`Code::Violation`] without a base, or with one that cannot be.
    pub fn begin_in_group(
        &mut self,
        cx: &mut SessionCx<'_>,
        label: u32,
        base: Option<u64>,
    ) -> Result<bool, Error> {
        let text = "ACCEPT has no base for a flow to a group";
        let base = base.ok_or_else(|| Error::new(Code::Violation, text))?;
        if base > UNITS_MAX {
            return Err(Error::new(Code::Violation, format!("a base of {base} units")));
        }
        if let FlowEnd::Receiver(receiver) = &mut self.end {
            receiver.join_at(base);
            // What its modules send goes to the sender alone, who knows it by the same label.
            receiver.set_label_tx(label);
        }
        let target = Target { session: self.place.0.0, flow: self.place.1, epoch: 0 };
        let Some(source) = cx.peer.map(Peer::remote) else { return Ok(true) };
        let is_ours = cx.shared.labels.target(label).is_some();
        Ok(!is_ours && cx.shared.groups.add_label(source, label, target))
    }

    /// It needs its group no longer.
    pub fn leave_group(&mut self, cx: &mut SessionCx<'_>) {
        let membership = std::mem::take(&mut self.joined).membership();
        cx.shared.groups.leave(self.place, membership);
    }

    /// One that is sent once for several is that of a fan-out, which is begun where none runs.
    pub fn enter_fan_out(
        &mut self,
        cx: &mut SessionCx<'_>,
        session: &str,
        port: &mut Option<Port>,
    ) -> Result<(), Error> {
        if !cx.shared.graphs.is_shared(self.offer.transport) {
            return Ok(());
        }
        let id = match (cx.fan_outs.running(session, &self.offer), port.take()) {
            (Some(id), _) => id,
            (None, Some(Port::Source(source))) => {
                let (name, offer) = (session.to_owned(), self.offer.clone());
                cx.fan_outs.begin(cx.now, cx.shared, name, offer, source)?
            }
            (None, _) => {
                return Err(Error::new(Code::AccessFailed, "a flow to a group has no source"));
            }
        };
        cx.fan_outs.enter(id, self.place);
        self.fan_out = Some((id, None));
        Ok(())
    }

    /// The Participant takes part in its fan-out from now on.
    pub fn begin_member(&mut self, cx: &mut SessionCx<'_>, len: usize) -> Result<(), Error> {
        let gone = || Error::new(Code::Internal, "the flow to the group is gone");
        let (fan_out, _) = self.fan_out.ok_or_else(gone)?;
        let (fed, label) = cx.fan_outs.fed(fan_out).ok_or_else(gone)?;
        cx.fan_outs.set_len(&mut cx.shared.pool, fan_out, self.place, len);
        self.label_rx = label;
        self.end = FlowEnd::Member(FanOutMember::new(fan_out, self.offer.flow, fed));
        Ok(())
    }

    /// What its fan-out is to know of its part, when that has changed.
    #[inline]
    pub fn tell_fan_out(&mut self, cx: &mut SessionCx<'_>, is_running: bool) {
        let Some((id, told)) = &mut self.fan_out else { return };
        let is_sent_to = matches!(&self.end, FlowEnd::Member(member) if member.runs());
        let origin = cx.peer.and_then(Peer::local);
        let part = Part { is_running: is_running && is_sent_to, is_sent_to, origin };
        if told.replace(part) != Some(part) {
            cx.fan_outs.note(cx.now, *id, self.place, part);
        }
    }

    /// Says END to a member: it gets nothing that is fed from now on.
    pub fn end_member(
        &mut self,
        cx: &mut SessionCx<'_>,
        failure: Option<&Error>,
        told: &mut FlowOut,
    ) {
        if let FlowEnd::Member(member) = &mut self.end
            && let Some((fed, _)) = cx.fan_outs.fed(member.fan_out())
        {
            member.end(&fed, failure, told);
        }
    }

    /// A member gets nothing any more, for this reason.
    pub fn lose_member(&mut self, cx: &mut SessionCx<'_>, error: &Error, told: &mut FlowOut) {
        let FlowEnd::Member(member) = &mut self.end else { return };
        member.flush(&mut cx.shared.pool);
        if member.runs() {
            told.events.push(FlowEvent::Failed(error.clone()));
        }
        self.end_member(cx, Some(error), told);
    }

    /// Takes part in its fan-out no longer, which is not told of that here: what the member has not
    /// been accounted for is given up.
    pub fn give_up_member(&mut self, cx: &mut SessionCx<'_>, told: &mut FlowOut) {
        let Some((id, _)) = self.fan_out.take() else { return };
        let fed = cx.fan_outs.fed(id).map(|(fed, _)| fed).unwrap_or_default();
        if let FlowEnd::Member(member) = &mut self.end {
            member.give_up(&fed, told);
            member.flush(&mut cx.shared.pool);
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
