//! A session: flows between a Creator and a Participant, and the states of its stream.
//!
//! What both roles have in common.

mod set;
pub mod table;

pub(crate) use set::Sessions;

use crate::engine::{Cast, FlowStream, Joined, SessionId, StreamState, Way};
use crate::error::Error;
use crate::flow::Context;
use crate::flow::FlowOut;
use crate::flow::fanout_member::FanOutMember;
use crate::flow::receiver::Receiver;
use crate::flow::sender::Sender;
use crate::peer::PeerId;
use crate::ready_set::Idle;
use dacapo_base::Time;
use dacapo_packet::Packet;
use dacapo_wire::session::FlowOffer;
use quinn_proto::StreamId;
use std::net::SocketAddr;
use std::time::Duration;
use table::{Role, State};

/// The number of the attribute `priority`, and its greatest value.
const PRIORITY: u16 = 9;
pub(crate) const PRIORITY_MAX: u8 = 7;

/// One flow of a session at this end.
pub(crate) struct Flow {
    pub offer: FlowOffer,
    pub end: FlowEnd,
    /// Why it was not taken at set-up, by this end or the other.
    pub refused: Option<Error>,
    /// Its stream, once the flow is accepted and its transport has streams.
    pub stream: Option<FlowStream>,
    /// The cast that it takes part in, at the Creator.
    pub cast: Option<SessionId>,
    /// How far it is with its group, at the Participant.
    pub joined: Joined,
    /// Which flows go first: 0 to 7, 7 before all others.
    pub priority: u8,
    /// The peer's label, as far as it has come.
    pub label_tx: u32,
    /// Ours.
    pub label_rx: u32,
    /// The transcript of the session's set-up and of the changes of this flow. Each flow has its
    /// own, because changes of flows in opposite directions cross.
    pub transcript: [u8; 32],
}

impl Flow {
    /// A flow that is offered.
    pub fn new(offer: FlowOffer) -> Self {
        let priority = priority(&offer);
        let (label_tx, label_rx, transcript) = (0, 0, [0; 32]);
        Self {
            offer,
            end: FlowEnd::None,
            refused: None,
            stream: None,
            cast: None,
            joined: Joined::No,
            priority,
            label_tx,
            label_rx,
            transcript,
        }
    }

    /// Whether the flow may send now, and how: `datagrams` says whether the peer's data port is
    /// known.
    pub fn way(&self, datagrams: bool) -> Option<Way> {
        match self.stream {
            None => datagrams.then_some(Way::Data),
            Some(FlowStream { id, state: StreamState::Open { ready: true }, .. }) => {
                Some(Way::Stream(id))
            }
            Some(_) => None,
        }
    }
}

/// What is asked for with the attribute `priority`; nothing asked is 0.
pub(crate) fn priority(offer: &FlowOffer) -> u8 {
    let asked = offer.attributes.iter().filter(|attribute| attribute.key == PRIORITY);
    let asked = asked.filter_map(|attribute| attribute.min).max().unwrap_or(0);
    u8::try_from(asked.clamp(0, i64::from(PRIORITY_MAX))).unwrap_or(0)
}

/// Which end of a flow this is.
pub(crate) enum FlowEnd {
    /// Not set up yet, or declined.
    None,
    /// This end sends.
    Sender(Box<Sender>),
    /// This end receives.
    Receiver(Box<Receiver>),
    /// This end sends, to others too: the sender is that of a cast.
    Member(FanOutMember),
}

impl FlowEnd {
    /// This end did not run for so long: that does not count for what is waited for.
    pub fn shift(&mut self, by: Duration) {
        match self {
            Self::None | Self::Member(_) => {}
            Self::Sender(sender) => sender.shift(by),
            Self::Receiver(receiver) => receiver.shift(by),
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

    /// The next packet for the network, if there is one that may go now.
    pub fn poll_packet(&mut self, around: &mut Context<'_>, out: &mut FlowOut) -> Option<Packet> {
        match self {
            Self::None => None,
            Self::Sender(sender) => sender.poll_packet(around, out),
            Self::Receiver(receiver) => receiver.poll_packet(),
            Self::Member(member) => member.pop(),
        }
    }
}

/// A command that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// JOIN: the OFFER.
    Offer,
    /// OFFER: the ANSWER, which the peer's application gives.
    Answer,
    /// ANSWER: the ACCEPT.
    Accept,
    /// ACTIVATE.
    Activated(u32),
    /// DEACTIVATE.
    Deactivated(u32),
    /// CONTROL, with its number.
    Control(u32),
    /// CLOSE.
    Closed,
}

impl Awaited {
    /// The command that waits.
    pub fn name(self) -> &'static str {
        match self {
            Self::Offer => "JOIN",
            Self::Answer => "OFFER",
            Self::Accept => "ANSWER",
            Self::Activated(_) => "ACTIVATE",
            Self::Deactivated(_) => "DEACTIVATE",
            Self::Control(_) => "CONTROL",
            Self::Closed => "CLOSE",
        }
    }
}

/// A session at this end.
pub(crate) struct Session {
    pub peer: PeerId,
    pub stream: StreamId,
    pub role: Role,
    pub state: State,
    pub name: String,
    pub flows: Vec<Flow>,
    /// The watchdog of every command: when it has waited long enough.
    pub awaited: Vec<(Time, Awaited)>,
    pub next_request: u32,
    /// The application has answered the offer.
    pub is_answered: bool,
    /// The set-up was completed.
    pub was_ready: bool,
    /// The application has not been told yet, because streams of flows are opening.
    pub ready_waits: bool,
    /// The application's wish to close is to be answered with CLOSED when all flows are accounted
    /// for.
    pub close_asked_by_peer: bool,
    /// The application has been told that the session is over.
    pub told: bool,
    /// Which of all events told last that the flows run or pause.
    pub activity_told: Option<u64>,
    /// How long this end's application waits for contact to come back, if it has said so.
    pub give_up_wish: Option<Duration>,
    /// How long contact may be lost before the session is given up.
    pub give_up_after: Duration,
    pub transcript: [u8; 32],
    /// It is among those that are looked at (see [`Sessions`]).
    pub idle: Idle,
    /// Something has happened to it since that was asked last.
    pub is_touched: bool,
    /// It has no peer: its one flow is sent for those of other sessions.
    pub cast: Option<Cast>,
}

impl Session {
    pub fn await_answer(&mut self, deadline: Time, awaited: Awaited) {
        self.awaited.push((deadline, awaited));
    }

    /// The answer to a command has come; false when none was waited for.
    pub fn take_awaited(&mut self, awaited: Awaited) -> bool {
        let before = self.awaited.len();
        self.awaited.retain(|(_, waiting)| *waiting != awaited);
        let is_taken = self.awaited.len() != before;
        if self.awaited.is_empty() {
            // Most sessions wait for nothing most of the time.
            self.awaited = Vec::new();
        }
        is_taken
    }

    pub fn flow_index(&self, id: u16) -> Option<usize> {
        self.flows.iter().position(|flow| flow.offer.flow == id)
    }

    /// Bytes that both ends remember alike from the set-up on are what the changes of each flow add
    /// to.
    pub fn seal_transcript(&mut self) {
        for flow in &mut self.flows {
            flow.transcript = self.transcript;
        }
    }

    /// True when an end without an account leaves nothing unknown.
    pub fn is_idle(&self) -> bool {
        self.flows.iter().all(|flow| match &flow.end {
            FlowEnd::None => true,
            FlowEnd::Sender(sender) => sender.is_reported() || sender.sent() == 0,
            FlowEnd::Receiver(receiver) => receiver.is_finished() || receiver.ledger().sent == 0,
            FlowEnd::Member(member) => member.is_reported(),
        })
    }

    /// True when there is a flow by which something may still come or go.
    pub fn has_live_flow(&self) -> bool {
        self.flows.iter().any(|flow| match &flow.end {
            FlowEnd::None => false,
            FlowEnd::Sender(sender) => sender.is_live(),
            FlowEnd::Receiver(receiver) => receiver.is_live(),
            FlowEnd::Member(member) => !member.is_reported(),
        })
    }

    /// True when nothing more comes of it unless something touches it, or time passes.
    pub fn may_rest(&self) -> bool {
        let flows = self.flows.iter().all(|flow| match &flow.end {
            FlowEnd::None => true,
            FlowEnd::Member(member) => !member.has_backlog(),
            FlowEnd::Sender(sender) => sender.may_rest(),
            FlowEnd::Receiver(receiver) => receiver.may_rest(),
        });
        flows && !matches!(self.state, State::Closing | State::Closed)
    }

    /// True when every flow of this end is accounted for.
    pub fn is_settled(&self) -> bool {
        self.flows.iter().all(|flow| match &flow.end {
            FlowEnd::None => true,
            FlowEnd::Sender(sender) => sender.is_reported(),
            FlowEnd::Receiver(receiver) => receiver.is_finished(),
            FlowEnd::Member(member) => member.is_reported(),
        })
    }

    /// Whether it sends to this group for others.
    pub fn is_cast_to(&self, group: SocketAddr) -> bool {
        self.cast.as_ref().is_some_and(|cast| cast.group == Some(group))
    }
}
