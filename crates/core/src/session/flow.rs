//! [`Flow`]: one flow of a session at this end.

use super::Role;
use crate::agreement::Agreement;
use crate::channel::{Channel, Channels};
use crate::error::Error;
use crate::fanout::{FanOutMember, Part};
use crate::flow::receiver::Receiver;
use crate::flow::sender::Sender;
use crate::flow::{Context, FlowEvent, FlowOut, Lost, PathTimes};
use crate::graphs::Graphs;
use crate::groups::Joined;
use crate::ids::{FanOutId, PeerId, Place};
use crate::known::PathKnown;
use crate::peer::{PathSet, Peer};
use crate::port::Ending;
use crate::schedule::Rank;
use crate::shared::Shared;
use crate::status::{FlowStatus, ModuleStatus, PathStatus};
use crate::transmit::{Offered, StreamWriter, Way};
use dacapo_base::{Ecn, Time, earlier};
use dacapo_lift::{Runner, Spread};
use dacapo_packet::{Packet, Pool};
use dacapo_path::controllers::below;
use dacapo_path::{BelowSeen, ClockOffset, Path, Sent};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::{FlowAnswer, FlowOffer};
use std::time::Duration;

/// One flow of a session at this end.
pub(crate) struct Flow {
    /// Its session, and its place there.
    pub(super) place: Place,
    pub(super) peer: PeerId,
    pub offer: FlowOffer,
    pub end: FlowEnd,
    /// Why it was not taken at set-up, by this end or the other.
    pub refused: Option<Error>,
    /// Its stream, once the flow is accepted and its transport has streams.
    pub channel: Option<Channel>,
    /// What the transport of its stream has measured, once it was asked.
    pub below: Option<Box<Path>>,
    /// The fan-out that it takes part in, at the Creator, and what that was told last.
    pub fan_out: Option<(FanOutId, Option<Part>)>,
    /// How far it is with its group, at the Participant.
    pub joined: Joined,
    /// What this end of it is to flows beside it.
    pub rank: Rank,
    /// How its packets are spread over the paths to the peer, once it is built.
    pub spread: Option<Spread>,
    /// Our label.
    pub label_rx: u32,
    /// What each change of it is checked against, once it is built.
    pub agreement: Option<Agreement>,
    /// The transcript of the session's set-up and of the changes of this flow. Each flow has its
    /// own, because changes of flows in opposite directions cross.
    pub transcript: [u8; 32],
}

impl Flow {
    /// A flow that is offered.
    pub fn new(place: Place, peer: PeerId, role: Role, offer: FlowOffer) -> Self {
        let rank = Rank::of(&offer);
        let rank = if role.sends(offer.direction) { rank } else { rank.of_answers() };
        Self {
            place,
            peer,
            offer,
            end: FlowEnd::None,
            refused: None,
            channel: None,
            below: None,
            fan_out: None,
            joined: Joined::No,
            rank,
            spread: None,
            label_rx: 0,
            agreement: None,
            transcript: [0; 32],
        }
    }

    /// Whether the flow may send now, and how: `datagrams` says whether the peer's data port is
    /// known.
    pub fn way(&self, datagrams: bool) -> Option<Way> {
        match &self.channel {
            None => datagrams.then_some(Way::Data),
            Some(channel) => channel.way(),
        }
    }

    /// When it is due: `datagrams` as above, `opens` whether it counts that its stream opens.
    pub fn due(&self, now: Time, datagrams: bool, opens: bool, times: PathTimes) -> Option<Time> {
        let opening = self.channel.filter(|_| opens).and_then(|channel| channel.due());
        let own = match &self.end {
            FlowEnd::None | FlowEnd::Member(_) => None,
            FlowEnd::Sender(sender) => sender.next_deadline(now, self.way(datagrams).is_some()),
            FlowEnd::Receiver(receiver) => receiver.next_deadline(times),
        };
        earlier(opening, own)
    }

    /// Whether what was agreed of it lets it go on by this graph.
    ///
    /// # Errors
    /// See [`Agreement::admits`].
    pub fn admits(&self, graphs: &Graphs, graph: &GraphForm) -> Result<(), Error> {
        self.agreement.as_ref().map_or(Ok(()), |agreement| agreement.admits(graphs, graph))
    }

    /// Its stream, in words.
    pub fn channel_name(&self, graphs: &Graphs) -> String {
        let spec = graphs.transport(self.offer.transport).ok();
        format!("the {} stream of the flow", spec.map_or("byte", |spec| spec.name))
    }

    /// Why its group could not be joined.
    pub fn group_failure(&self) -> Option<Error> {
        match &self.joined {
            Joined::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Whether it comes from a sender that serves others too.
    pub fn is_in_group(&self, graphs: &Graphs) -> bool {
        matches!(self.end, FlowEnd::Receiver(_)) && graphs.is_shared(self.offer.transport)
    }

    /// Its longest datagram over a path that takes `path_len` bytes: a stream is not bound by the
    /// path.
    pub fn datagram_len(&self, graphs: &Graphs, path_len: usize) -> usize {
        let len = graphs.datagram_len(self.offer.transport, path_len);
        len.map_or(path_len, usize::from)
    }

    /// What is said of it in ANSWER or ACCEPT; why it is not taken is kept.
    pub fn answer(
        &mut self,
        index: usize,
        accepted: Result<(), Error>,
        datagram_len: usize,
    ) -> FlowAnswer {
        self.refused = accepted.as_ref().err().cloned().or(self.refused.take());
        FlowAnswer {
            flow: index as u16,
            accepted: accepted.map_err(|error| (error.code as u16, error.text)),
            label: self.label_rx,
            datagram_len: datagram_len.min(usize::from(self.offer.datagram_len)) as u16,
            stream_token: None,
            base: match &self.end {
                FlowEnd::Member(member) => Some(member.base()),
                _ => None,
            },
            stream_port: None,
        }
    }

    /// A sink without room holds its stream up, and lets it go on when it has.
    pub fn hold_up(&mut self, now: Time, channels: &mut Channels) {
        let (FlowEnd::Receiver(receiver), Some(channel)) = (&mut self.end, &mut self.channel)
        else {
            return;
        };
        let Some(is_reading) = channel.hold_up(!receiver.has_capacity()) else { return };
        if is_reading {
            receiver.go_on(now);
        }
        channels.read(channel.id(), is_reading);
    }

    /// The transport of its stream says what it has measured so far.
    pub fn handle_below(&mut self, now: Time, seen: &BelowSeen) {
        let new = || Box::new(Path::new(now, &below::entry()));
        self.below.get_or_insert_with(new).handle_below(seen);
    }

    /// A packet of an epoch has come; whether there may be something to send.
    pub fn handle_data(
        &mut self,
        now: Time,
        shared: &mut Shared,
        epoch: u64,
        packet: Packet,
        times: PathTimes,
        told: &mut FlowOut,
    ) -> bool {
        self.end.handle_packet(&mut shared.flow(now), epoch, packet, times, told);
        if self.channel.is_some() {
            self.hold_up(now, &mut shared.channels);
        }
        self.end.may_give(now)
    }

    /// The next packet, if it may send and has one: how it goes, and by which paths.
    pub fn poll_packet(
        &mut self,
        now: Time,
        shared: &mut Shared,
        peer: &mut Peer,
        told: &mut FlowOut,
    ) -> Option<(Way, PathSet, Option<Packet>)> {
        let way = self.way(peer.is_reached())?;
        // What carries a stream holds back by itself.
        let is_path = way == Way::Data;
        let mut by = peer.route(self.spread);
        // What modules report of copies is of all paths together, and says of none what it does.
        let is_acknowledged = self.spread != Some(Spread::Copies) && self.end.is_acknowledged();
        let allowed = if is_path { peer.allowance(now, by, is_acknowledged) } else { usize::MAX };
        let mut packet = self.end.poll_packet(&mut shared.flow(now), allowed, told);
        match &mut packet {
            Some(packet) if is_path => {
                packet.set_ecn(peer.ecn(by, is_acknowledged));
                let sent = Sent { is_acknowledged, ..self.end.sent(packet) };
                by = peer.note_sent(now, by, &sent);
            }
            None if told.is_held => peer.await_room(by, is_acknowledged),
            _ => {}
        }
        Some((way, by, packet))
    }

    /// Keeps a view for the stream of a member; false when too much waits already.
    pub fn push_copy(&mut self, pool: &mut Pool, packet: &mut Packet) -> bool {
        let FlowEnd::Member(member) = &mut self.end else { return true };
        if !member.runs() {
            return true;
        }
        let pushed = member.push(pool.share(packet));
        pushed.map_err(|view| pool.free(view)).is_ok()
    }

    /// Its source may have something again, or its sink room.
    pub fn wake(&mut self, now: Time, channels: &mut Channels) {
        self.hold_up(now, channels);
        match &mut self.end {
            FlowEnd::Sender(sender) => sender.wake(now),
            // No channel was held up: what is sent again has its time anew.
            FlowEnd::Receiver(receiver) if self.channel.is_none() => receiver.go_on(now),
            _ => {}
        }
    }

    /// Takes a unit that the application hands over, past its source.
    pub fn offer(
        &mut self,
        cx: &mut Context<'_>,
        unit: &[u8],
        writer: &mut dyn StreamWriter,
    ) -> Offered {
        let way = self.way(false);
        let FlowEnd::Sender(sender) = &mut self.end else { return Offered::NotNow };
        match way {
            Some(Way::Stream(stream)) => sender.offer(cx, unit, Some((stream, writer))),
            _ => sender.offer(cx, unit, None),
        }
    }

    /// Whether units wait that may be sent.
    pub fn has_backlog(&self) -> bool {
        matches!(&self.end, FlowEnd::Sender(sender) if sender.has_backlog())
    }

    /// What it is doing.
    pub fn status(&self) -> FlowStatus {
        let mut status = FlowStatus {
            offer: self.offer.clone(),
            epoch: 0,
            modules: Vec::new(),
            sent: 0,
            waiting: 0,
            ledger: None,
            refused: self.refused.clone(),
            stream: self.channel.map(|channel| channel.id()),
            path: self.below.as_deref().map(|path| PathStatus::of(path, PathKnown::of(path, None))),
        };
        match &self.end {
            FlowEnd::None | FlowEnd::Member(_) => {}
            FlowEnd::Sender(sender) => status.show_sender(sender),
            FlowEnd::Receiver(receiver) => status.show_receiver(receiver),
        }
        status
    }
}

/// Which end of a flow this is.
pub(crate) enum FlowEnd {
    /// Not set up yet, or declined.
    None,
    /// This end sends.
    Sender(Box<Sender>),
    /// This end receives.
    Receiver(Box<Receiver>),
    /// This end sends, to others too: the sender is that of a fan-out.
    Member(FanOutMember),
}

impl FlowEnd {
    /// The other end's label has come.
    pub fn set_label_tx(&mut self, label: u32) {
        match self {
            Self::Sender(sender) => sender.set_label_tx(label),
            Self::Receiver(receiver) => receiver.set_label_tx(label),
            Self::Member(_) | Self::None => {}
        }
    }

    /// What this end sends runs from now on, or pauses.
    pub fn set_running(&mut self, now: Time, is_running: bool) {
        match self {
            Self::Sender(sender) if is_running => sender.start(now),
            Self::Sender(sender) => sender.stop(now),
            _ => {}
        }
    }

    /// The clock of the peer is known better.
    pub fn handle_clock(&mut self, clock: ClockOffset) {
        if let Self::Receiver(receiver) = self {
            receiver.handle_clock(clock);
        }
    }

    /// This end did not run for so long: that does not count for what is waited for.
    pub fn shift(&mut self, by: Duration) {
        match self {
            Self::None | Self::Member(_) => {}
            Self::Sender(sender) => sender.shift(by),
            Self::Receiver(receiver) => receiver.shift(by),
        }
    }

    /// Contact is lost, or back.
    pub fn set_suspended(&mut self, now: Time, is_suspended: bool) {
        match self {
            Self::Sender(sender) => sender.set_suspended(now, is_suspended),
            Self::Receiver(receiver) if !is_suspended => receiver.go_on(now),
            Self::Receiver(_) | Self::Member(_) | Self::None => {}
        }
    }

    /// Whether it is worth asking for a packet.
    pub fn may_give(&self, now: Time) -> bool {
        match self {
            Self::None => false,
            Self::Sender(sender) => sender.may_give(now),
            Self::Receiver(receiver) => receiver.has_feedback(),
            Self::Member(member) => member.has_backlog(),
        }
    }

    /// Since when what it would give next has waited; `None` when it has nothing.
    pub fn waits_since(&self, now: Time) -> Option<Time> {
        if let Self::Sender(sender) = self {
            return sender.waits_since(now);
        }
        self.may_give(now).then_some(now)
    }

    /// The next packet for the network, if there is one that may go now; the path allows `allowed`
    /// bytes of what is sent, and all of what answers.
    pub fn poll_packet(
        &mut self,
        cx: &mut Context<'_>,
        allowed: usize,
        out: &mut FlowOut,
    ) -> Option<Packet> {
        match self {
            Self::None => None,
            Self::Sender(sender) => sender.poll_packet(cx, allowed, out),
            Self::Receiver(receiver) => receiver.poll_packet(),
            Self::Member(member) => member.pop(),
        }
    }

    /// What this packet of it is to the path.
    pub fn sent(&self, packet: &Packet) -> Sent {
        Sent {
            datagram_len: packet.segment_len(0),
            packets: packet.segment_count() as u64,
            bytes: packet.payload_len() as u64,
            is_acknowledged: self.is_acknowledged(),
            is_ecn_capable: packet.ecn() != Ecn::NotEct,
        }
    }

    /// Whether a module says what became of what it sends.
    fn is_acknowledged(&self) -> bool {
        matches!(self, Self::Sender(it) if it.current().is_acknowledged)
    }

    /// A packet of it has come.
    pub fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        epoch: u64,
        packet: Packet,
        times: PathTimes,
        out: &mut FlowOut,
    ) {
        match self {
            Self::Receiver(receiver) => receiver.handle_packet(cx, epoch, packet, times, out),
            Self::Sender(sender) => sender.handle_packet(cx, epoch, packet, out),
            Self::None | Self::Member(_) => cx.pool.free(packet),
        }
    }

    pub fn handle_timeout(&mut self, cx: &mut Context<'_>, times: PathTimes, out: &mut FlowOut) {
        match self {
            Self::Sender(sender) => sender.handle_timeout(cx, times.rtt, out),
            Self::Receiver(receiver) => receiver.handle_timeout(cx, times, out),
            Self::None | Self::Member(_) => {}
        }
    }

    /// This end closes: what it sends says END now; what it receives is waited for so much longer.
    pub fn close(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) {
        match self {
            Self::None | Self::Member(_) => {}
            Self::Sender(sender) => sender.close(cx, out),
            Self::Receiver(receiver) => receiver.close_soon(cx.now),
        }
    }

    /// Its stream is gone, or a graph.
    pub fn lose(&mut self, cx: &mut Context<'_>, what: Lost, error: &Error, out: &mut FlowOut) {
        match self {
            Self::Sender(sender) => sender.lose(cx, what, error, out),
            Self::Receiver(receiver) => receiver.lose(cx, what, error, out),
            Self::None | Self::Member(_) => {}
        }
    }

    /// Runs `body` over the graph of an epoch that lives; `None` when there is no such.
    pub fn with_epoch<R>(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        out: &mut FlowOut,
        body: impl FnOnce(&mut Runner, &mut Context<'_>) -> R,
    ) -> Option<R> {
        match self {
            Self::Sender(sender) => sender.with_epoch(cx, number, out, body),
            Self::Receiver(receiver) => receiver.with_epoch(cx, number, out, body),
            Self::Member(_) | Self::None => None,
        }
    }

    /// What its modules have done: those of the newest epoch.
    pub fn modules(&self) -> Vec<ModuleStatus> {
        let runner = match self {
            Self::Sender(sender) => Some(&sender.current().runner),
            Self::Receiver(receiver) => receiver.newest().map(|epoch| &epoch.runner),
            Self::Member(_) | Self::None => None,
        };
        runner.map(ModuleStatus::of).unwrap_or_default()
    }

    /// The epoch that it runs in.
    pub fn epoch(&self) -> Option<u64> {
        match self {
            Self::Sender(sender) => Some(sender.current().number),
            Self::Receiver(receiver) => Some(receiver.newest()?.number),
            Self::Member(_) => Some(0),
            Self::None => None,
        }
    }

    /// Gives up what it has not accounted for, and every view and label of it.
    pub fn give_up(&mut self, cx: &mut Context<'_>, ending: &Ending, out: &mut FlowOut) {
        match self {
            // What it is owed the fan-out knows.
            Self::None | Self::Member(_) => {}
            Self::Sender(sender) => {
                sender.give_up(out);
                sender.flush(cx);
                out.events.extend(sender.labels().into_iter().map(FlowEvent::Retire));
            }
            Self::Receiver(receiver) => {
                receiver.give_up(cx, ending, out);
                receiver.flush(cx);
                out.events.extend(receiver.labels().into_iter().map(FlowEvent::Retire));
            }
        }
    }

    /// True when an end without an account leaves nothing unknown.
    pub fn is_idle(&self) -> bool {
        match self {
            Self::None => true,
            Self::Sender(sender) => sender.is_reported() || sender.sent() == 0,
            Self::Receiver(receiver) => receiver.is_finished() || receiver.ledger().sent == 0,
            Self::Member(member) => member.is_reported(),
        }
    }

    /// True when something may still come or go by it.
    pub fn is_live(&self) -> bool {
        match self {
            Self::None => false,
            Self::Sender(sender) => sender.is_live(),
            Self::Receiver(receiver) => receiver.is_live(),
            Self::Member(member) => !member.is_reported(),
        }
    }

    /// True when nothing more comes of it unless something touches it, or time passes.
    pub fn may_rest(&self) -> bool {
        match self {
            Self::None => true,
            Self::Member(member) => !member.has_backlog(),
            Self::Sender(sender) => sender.may_rest(),
            Self::Receiver(receiver) => receiver.may_rest(),
        }
    }

    /// True when it is accounted for.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::None => true,
            Self::Sender(sender) => sender.is_reported(),
            Self::Receiver(receiver) => receiver.is_finished(),
            Self::Member(member) => member.is_reported(),
        }
    }
}
