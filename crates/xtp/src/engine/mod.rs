//! [`Engine`]: all associations of a host.
//!
//! ```text
//!   packet -> Frame -> key -> context? --table--> take | create | refuse | END again | drop
//!                       |
//!          by_key   own key (RTN)            O(1), whoever the peer is; of a group one per member
//!          by_peer  address and its key      O(1)
//!
//!   poll_packet:  answers without a context, then contexts by priority      ranked.rs
//!   poll_event:   by priority too                              over: inactive.rs
//! ```
//!
//! The order of calls: any number of inputs (`handle_*`, and what users do), then
//! [`Engine::poll_packet`] until `None` and [`Engine::poll_event`] until `None`, then wait until
//! [`Engine::deadline`].
//!
//! Invariants: contexts, contexts that are over, and answers without a context are bounded; a
//! packet whose source is not the association's peer changes nothing; diagnostics to one source are
//! at most ten in a second.

mod diagnostics;
mod groups;
mod held;
mod inactive;
mod input;
mod keys;
mod ranked;
mod status;
mod user;

use crate::config::{Config, Listen};
use crate::context::Context;
use crate::event::{ContextId, End, Event, Events};
use crate::table::State;
use crate::wire::Fault;
use dacapo_base::{Random, Time};
use diagnostics::Limiter;
use held::Held;
use inactive::{Gone, Inactive};
use keys::ByKey;
use ranked::Ranked;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;

pub use status::Status;
pub use user::{ListenError, OpenError, UserError};

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
    pub no_room: u64,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    context: Option<Box<Context>>,
    deadline: Time,
    listener: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Listener {
    listen: Listen,
    waiting: usize,
}

/// All associations of a host.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    random: Random,
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_key: ByKey<u32>,
    by_peer: HashMap<(SocketAddr, u64), u32>,
    listeners: BTreeMap<u16, Listener>,
    /// Groups to which contexts here transmit reliably.
    groups: BTreeSet<(SocketAddr, u32)>,
    /// Groups that contexts here wait to join.
    joins: BTreeSet<(SocketAddr, u32)>,
    timers: BTreeSet<(Time, u32)>,
    ready: Ranked,
    held: Held,
    told: Ranked,
    inactive: Inactive,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    limiter: Limiter,
    counters: Counters,
}

impl Engine {
    /// An engine without listeners and associations. `random` draws keys, which are all that keeps
    /// packets of others out: seed it from the system.
    #[must_use]
    pub fn new(config: Config, random: Random) -> Self {
        Self {
            config,
            random,
            slots: Vec::new(),
            free: Vec::new(),
            by_key: ByKey::default(),
            by_peer: HashMap::new(),
            listeners: BTreeMap::new(),
            groups: BTreeSet::new(),
            joins: BTreeSet::new(),
            timers: BTreeSet::new(),
            ready: Ranked::default(),
            held: Held::default(),
            told: Ranked::default(),
            inactive: Inactive::new(config.inactive_max),
            answers: VecDeque::new(),
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
        self.slots.len().saturating_sub(self.free.len())
    }

    /// How many associations are over and still answer late packets.
    #[must_use]
    pub fn inactive_count(&self) -> usize {
        self.inactive.len()
    }

    /// When [`Engine::handle_time`] has something to do; asked when [`Engine::poll_packet`] has
    /// nothing.
    #[must_use]
    pub fn deadline(&self) -> Time {
        let next = self.timers.first().map_or(Time::NEVER, |(at, _)| *at);
        next.min(self.inactive.deadline())
    }

    /// Time goes on.
    pub fn handle_time(&mut self, now: Time) {
        self.inactive.handle_time(now);
        while let Some(&(at, slot)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.remove(&(at, slot));
            if let Some(place) = self.slots.get_mut(slot as usize) {
                place.deadline = Time::NEVER;
            }
            if let Some(context) = self.context_at(slot) {
                context.handle_time(now);
            }
            self.touch(now, slot);
        }
    }

    /// Appends the next packet to `into` and gives its destination.
    pub fn poll_packet(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((to, packet)) = self.answers.pop_front() {
            into.extend_from_slice(&packet);
            return Some(to);
        }
        while let Some(slot) = self.ready.turn() {
            if self.waits_for_room(slot) {
                self.ready.remove(slot);
                continue;
            }
            let to = self.context_at(slot).and_then(|context| context.poll(now, into));
            if to.is_some() {
                self.touch(now, slot);
                return to;
            }
            self.ready.remove(slot);
            self.settle(now, slot);
        }
        None
    }

    /// Whether the network below has room for packets to this peer, as far as nothing is said it
    /// has: while it has none [`Engine::poll_packet`] gives none of associations with it, and
    /// others go on. What is no association's (an answer to a late packet) does not wait.
    pub fn set_room(&mut self, now: Time, peer: SocketAddr, has_room: bool) {
        if has_room {
            self.held.release(peer).into_iter().for_each(|slot| self.touch(now, slot));
        } else {
            self.held.hold(peer);
        }
    }

    fn waits_for_room(&mut self, slot: u32) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let peer = self.context_ref(slot).map(|context| context.addressing().peer());
        peer.is_some_and(|peer| self.held.makes_wait(peer, slot))
    }

    /// The next thing that a user may want to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some(slot) = self.told.pop() {
            let event = self.take_event(slot);
            self.tell(slot);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn take_event(&mut self, slot: u32) -> Option<Event> {
        let place = self.slots.get_mut(slot as usize)?;
        let id = ContextId { slot, generation: place.generation };
        let port = place.listener;
        let context = place.context.as_mut()?;
        Some(match context.take_event()? {
            Events::INCOMING => {
                place.listener = None;
                let port = port.unwrap_or(0);
                if let Some(listener) = self.listeners.get_mut(&port) {
                    listener.waiting = listener.waiting.saturating_sub(1);
                }
                Event::Incoming { port, id }
            }
            Events::OPENED => Event::Opened(id),
            Events::READABLE => Event::Readable(id),
            Events::WRITABLE => Event::Writable(id),
            Events::DELIVERED => Event::Delivered(id),
            Events::MEMBER => match context.pop_member_event()? {
                (member, None) => Event::Joined(id, member),
                (member, Some(how)) => Event::Left(id, member, how),
            },
            Events::REMARK => {
                let (code, reason) = context.lifecycle().remark()?;
                Event::Remark(id, code, reason)
            }
            _ => Event::Ended(id, context.lifecycle().end()?),
        })
    }

    fn context_at(&mut self, slot: u32) -> Option<&mut Context> {
        self.slots.get_mut(slot as usize)?.context.as_deref_mut()
    }

    fn context_ref(&self, slot: u32) -> Option<&Context> {
        self.slots.get(slot as usize)?.context.as_deref()
    }

    /// Something has happened to a context: it may have packets and events.
    fn touch(&mut self, now: Time, slot: u32) {
        let Some(context) = self.context_at(slot) else { return };
        context.check_over();
        self.bury_parted(now, slot);
        let Some(context) = self.context_at(slot) else { return };
        if context.lifecycle().state() == State::Inactive {
            return self.bury(now, slot);
        }
        let sort = context.terms().sort();
        self.ready.insert(slot, sort);
        self.tell(slot);
    }

    /// A context has nothing to send now: sets its timer, and has its events told.
    fn settle(&mut self, now: Time, slot: u32) {
        let Some(context) = self.context_at(slot) else { return };
        if context.lifecycle().state() == State::Inactive {
            return self.bury(now, slot);
        }
        let deadline = context.deadline();
        self.set_timer(slot, deadline);
        self.tell(slot);
    }

    fn tell(&mut self, slot: u32) {
        let Some(context) = self.context_at(slot) else { return };
        if context.lifecycle().has_events() {
            let sort = context.terms().sort();
            self.told.insert(slot, sort);
        }
    }

    fn set_timer(&mut self, slot: u32, deadline: Time) {
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        if place.deadline == deadline {
            return;
        }
        self.timers.remove(&(place.deadline, slot));
        place.deadline = deadline;
        if deadline != Time::NEVER {
            self.timers.insert((deadline, slot));
        }
    }

    /// The association is over: from now on only late packets are answered.
    fn bury(&mut self, now: Time, slot: u32) {
        self.bury_parted(now, slot);
        self.forget_group(slot);
        let Some(context) = self.context_at(slot) else { return };
        let (own_key, peer, known_as) = (
            context.addressing().own_key(),
            context.addressing().peer(),
            context.addressing().known_as(),
        );
        let (seq, rseq) = context.last_numbers();
        let (key, is_complete) =
            (context.addressing().peer_key(), context.lifecycle().end() == Some(End::Complete));
        let gone = Gone { peer, own_key, known_as, key, seq, rseq, is_complete };
        context.let_go();
        let config = self.config;
        let period = self.context_at(slot).map(|context| context.inactive_period(&config));
        if self.by_key.get(&own_key) == Some(&slot) {
            self.by_key.remove(&own_key);
            let alias = known_as.map(|key| (peer, key));
            if let Some(alias) = alias.filter(|alias| self.by_peer.get(alias) == Some(&slot)) {
                self.by_peer.remove(&alias);
            }
            self.inactive.insert(now + period.unwrap_or_default(), gone);
        }
        self.set_timer(slot, Time::NEVER);
        self.ready.remove(slot);
        self.tell(slot);
    }
}
