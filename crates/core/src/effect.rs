//! [`Effect`]: what an owner wants of another, or of the world; the router sees to it.
//!
//! ```text
//!   input -> owner.handle_…(cx, input, out) -> out: effects, in order -> router -> further owners
//! ```
//!
//! Invariant: what one call asks for is done in the order in which it was asked.

use crate::error::Error;
use crate::events::CoreEvent;
use crate::flow::{FlowOut, FlowSeen};
use crate::ids::{FanOutId, PeerId, Place, SessionId};
use dacapo_base::Address;
use dacapo_path::{ClockOffset, Held};
use dacapo_wire::message::Message;
use dacapo_wire::session::Join;
use std::collections::VecDeque;
use std::time::Duration;

/// One thing to be done.
pub(crate) enum Effect {
    /// The application is to hear of it.
    Event(CoreEvent),
    /// A message is to go on the stream of a session.
    Send(SessionId, Message),
    /// A peer asks for a session under its name.
    Serve(SessionId, Join),
    /// A session is over at this end.
    Over(SessionId, Option<Error>),
    /// A participant of a session that is served here is gone.
    Left(String),
    /// A fan-out tells something, for all who take part.
    FanOut(FanOutId, FlowOut),
    /// A flow's part in a fan-out gets nothing that is fed from now on.
    EndMember(Place, Option<Error>),
    /// The same, and what waits for it is given up too.
    LoseMember(Place, Error),
    /// The hub of a peer asks what is served here.
    List(PeerId, u32),
    /// Something has happened to a peer.
    Peer(PeerId, PeerNews),
    /// Flows with this peer go by several paths: further ones are opened, at these addresses where
    /// it was dialed.
    OpenFurther(PeerId, Vec<Address>),
    /// Nothing goes to this address any more.
    CloseData(Address),
}

/// What has happened to a peer, for its sessions.
pub(crate) enum PeerNews {
    /// It is gone; so many listings were waited for.
    Lost { error: Error, lists: usize },
    /// No sign of life for too long.
    ContactLost(Error),
    /// Contact is back after this time.
    ContactRestored(Duration),
    /// Contact was back for a while.
    Calm,
    /// Contact is still lost, after this time.
    Waits(Duration),
    /// Where its data path goes was found out.
    DataMoved,
    /// Its data path may be open.
    DataOpen,
    /// The path takes datagrams of this length now, and took these before.
    PathLen { from: Option<usize>, to: usize },
    /// What no controller holds is held from now on, or no longer.
    Held(Held),
    /// How its clock relates to ours.
    Clock(ClockOffset),
    /// Modules of its flows have seen something of the path to it.
    Seen(Box<FlowSeen>),
    /// Packets may leave for it that had to wait.
    Room,
}

/// What a call wants done.
#[derive(Default)]
pub(crate) struct Out {
    effects: VecDeque<Effect>,
}

impl Out {
    pub fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    pub fn event(&mut self, event: CoreEvent) {
        self.push(Effect::Event(event));
    }

    pub fn send(&mut self, session: SessionId, message: Message) {
        self.push(Effect::Send(session, message));
    }

    pub fn peer(&mut self, peer: PeerId, news: PeerNews) {
        self.push(Effect::Peer(peer, news));
    }

    pub fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }
}
