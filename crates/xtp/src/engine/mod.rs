//! [`Engine`]: all associations of a host.
//!
//! ```text
//!   packet -> Frame -> key -> context? --table--> take | create | refuse | END again | drop
//!                               |                            listeners    limiter, counters
//!   user, time ---------> Associations: contexts, directory, turns, inactive, answers
//!
//!   poll_packet:  answers without a context, then contexts by priority      ranked.rs
//!   poll_event:   by priority too                              over: inactive.rs
//! ```
//!
//! Each part owns its fields; here is what a packet leads to, and a call for each thing that a user
//! may do.
//!
//! The order of calls: any number of inputs (`handle_*`, and what users do), then
//! [`Engine::poll_packet`] until `None` and [`Engine::poll_event`] until `None`, then wait until
//! [`Engine::deadline`].
//!
//! Invariants: contexts, contexts that are over, and answers without a context are bounded; a
//! packet whose source is not the association's peer changes nothing; diagnostics to one source are
//! at most ten in a second.

mod answers;
mod associations;
mod came;
mod contexts;
mod diagnostics;
mod directory;
mod error;
mod held;
mod inactive;
mod input;
mod keys;
mod listeners;
mod ranked;
mod status;
mod turns;
mod user;

use crate::config::Config;
use crate::event::Event;
use crate::wire::Fault;
use associations::Associations;
use dacapo_base::{Random, Time};
use diagnostics::Limiter;
use listeners::Listeners;
use std::net::SocketAddr;

pub use error::{ListenError, OpenError, UserError};
pub use status::Status;

/// What has become of packets that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that a context took.
    pub taken: u64,
    /// Packets that are none, by [`Fault::index`].
    pub faulty: [u64; Fault::COUNT],
    /// Packets for a context from another address than its peer's.
    pub misdirected: u64,
    /// Packets that mean nothing in the state of their context, or for which there is none.
    pub dropped: u64,
    /// Late packets of associations that are over.
    pub late: u64,
    /// Associations refused for want of a listener, of its service or of room.
    pub refused: u64,
    /// Diagnostics sent, outside associations.
    pub diagnostics: u64,
    /// Diagnostics not sent, because their source had had its share.
    pub withheld: u64,
    /// Packets that begin a message with a tag, are not sent again (NOERR), and for which a context
    /// had no room. Where such a message goes in two packets the rest may find room: it is read
    /// behind a [`crate::Read::Hole`], without a tag.
    pub no_capacity: u64,
}

/// All associations of a host.
#[derive(Debug)]
pub struct Engine {
    random: Random,
    associations: Associations,
    listeners: Listeners,
    limiter: Limiter,
    counters: Counters,
}

impl Engine {
    /// An engine without listeners and associations. `random` draws keys, which are all that keeps
    /// packets of others out: seed it from the system.
    #[must_use]
    pub fn new(config: Config, random: Random) -> Self {
        Self {
            random,
            associations: Associations::new(config),
            listeners: Listeners::default(),
            limiter: Limiter::default(),
            counters: Counters::default(),
        }
    }

    /// What has become of packets that came.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many contexts there are, those included that are over and not released.
    #[must_use]
    pub fn context_count(&self) -> usize {
        self.associations.contexts().count()
    }

    /// How many associations are over and still answer late packets.
    #[must_use]
    pub fn inactive_count(&self) -> usize {
        self.associations.inactive().len()
    }

    /// When [`Engine::handle_time`] has something to do; asked when [`Engine::poll_packet`] has
    /// nothing.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.associations.deadline()
    }

    /// Time goes on.
    pub fn handle_time(&mut self, now: Time) {
        self.associations.handle_time(now);
    }

    /// Appends the next packet to `into` and gives its destination.
    pub fn poll_packet(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
        self.associations.poll_packet(now, into)
    }

    /// Whether the network below has room for packets to this peer, as far as nothing is said it
    /// has: while it has none [`Engine::poll_packet`] gives none of associations with it, and
    /// others go on. What is no association's (an answer to a late packet) does not wait.
    pub fn set_capacity(&mut self, now: Time, peer: SocketAddr, has_capacity: bool) {
        self.associations.set_capacity(now, peer, has_capacity);
    }

    /// The next thing that a user may want to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.associations.poll_event()?;
        if let Event::Incoming { port, .. } = event {
            self.listeners.handle_taken(port);
        }
        Some(event)
    }
}
