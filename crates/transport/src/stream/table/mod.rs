//! [`Streams`]: all streams of one transport, whatever carries their bytes.
//!
//! ```text
//!   accepted --> unclaimed (64, 1 s) --token known--> open (256) --close_stream--> closing (5 s)
//!   dialed ----> opening (10 s) ------answered------> open           |
//!                     |                                 | end, fault v
//!                     +--------------> gone <-----------+------------+
//! ```
//!
//! A transport tells it which connections can be read and written, and asks it which it wants to
//! write.
//!
//! Invariants
//! - One open stream per remote address; at most [`DATA_LANES_MAX`] open and as many closing.
//! - A stream that holds packets of the pool leaves the table in [`Streams::recv`] or
//!   [`Streams::release`] only, where the pool is at hand.
//! - Every stream with a token ends in one [`StreamEvent::Closed`], unless it was closed here.

mod recv;
mod send;
#[cfg(test)]
mod tests;

pub(crate) use recv::Intake;

use super::UNCLAIMED_MAX;
use super::token_table::TokenTable;
use super::{CLOSE_WAIT, DIAL_WAIT, Ending, PREFACE_WAIT, StreamEnd, StreamEvent, Token};
use crate::{DATA_LANES_MAX, TransportStats};
use dacapo_base::{Address, Time};
use dacapo_io::SocketCounts;
use dacapo_lift::BelowSeen;
use dacapo_packet::Pool;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What carries the bytes of a stream. What is not possible now is `WouldBlock`.
pub trait Connection: Read + Write {
    /// A read that fills less than it was given has taken all there is.
    const SHORT_READ_IS_ALL: bool;

    /// True when a write takes something now, where nothing else tells.
    fn has_capacity(&self) -> bool {
        true
    }

    /// Nothing more will be written; what was written still arrives.
    fn end_writing(&mut self);

    /// Lives on for so long while nothing that was written is acknowledged.
    fn set_patience(&mut self, patience: Duration);

    /// What it has measured of its path; `None` where it has none to measure.
    fn estimates(&self) -> Option<BelowSeen> {
        None
    }
}

/// The streams of a transport.
#[derive(Debug)]
pub(crate) struct Streams<C> {
    slots: Vec<Option<Slot<C>>>,
    /// Streams with a token that were not closed here.
    by_remote: HashMap<Address, usize>,
    /// Streams without a whole preface, the oldest first.
    unclaimed: VecDeque<usize>,
    /// Streams that may have something to read, in turn.
    ready: VecDeque<usize>,
    /// Streams whose wish to write may have changed.
    changed: Vec<usize>,
    tokens: TokenTable,
    streams_max: usize,
    events: VecDeque<StreamEvent>,
    /// Nobody is late before this time.
    deadline: Time,
    /// The time of the last call that said one.
    now: Time,
    pub(crate) stats: TransportStats,
}

/// What a stream is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Nothing: it is not read now.
    Nothing,
    /// Something to read.
    Read,
    /// The same, or room to write.
    ReadWrite,
}

#[derive(Debug)]
struct Slot<C> {
    connection: C,
    local: Address,
    remote: Address,
    end: StreamEnd,
    token: Option<Token>,
    phase: Phase,
    /// When the phase has lasted too long; `None` until the time is known.
    until: Option<Time>,
    /// A send found it full.
    is_blocked: bool,
    /// What the transport watches it for.
    watched: Watch,
    /// It is not read until somebody says so.
    is_paused: bool,
    /// It stands in the queue of those that may have something to read.
    is_queued: bool,
    /// Writing failed; what came before that is still read.
    failure: Option<Ending>,
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It came, and its token is not known yet.
    Unclaimed,
    /// It was dialed and is not answered yet.
    Dialing,
    /// Datagrams go both ways.
    Open,
    /// It was closed here.
    Closing,
}

impl Phase {
    /// How long it may last.
    fn wait(self) -> Option<Duration> {
        match self {
            Self::Unclaimed => Some(PREFACE_WAIT),
            Self::Dialing => Some(DIAL_WAIT),
            Self::Open => None,
            Self::Closing => Some(CLOSE_WAIT),
        }
    }

    /// What it means when it lasts longer.
    fn late(self) -> Ending {
        match self {
            Self::Unclaimed => Ending::Late,
            Self::Dialing => Ending::NoAnswer,
            Self::Open | Self::Closing => Ending::CloseTimedOut,
        }
    }
}

impl<C: Connection> Slot<C> {
    fn new(connection: C, [local, remote]: [Address; 2], token: Option<Token>) -> Self {
        let (end, phase) = match &token {
            Some(token) => (StreamEnd::dialer(token), Phase::Dialing),
            None => (StreamEnd::listener(), Phase::Unclaimed),
        };
        Self {
            connection,
            local,
            remote,
            end,
            token,
            phase,
            until: None,
            is_blocked: false,
            watched: Watch::Read,
            is_paused: false,
            is_queued: false,
            failure: None,
        }
    }

    fn wants_write(&self) -> bool {
        // Before the answer there may be room, but not yet for whoever is blocked.
        let is_awaited = self.is_blocked && self.phase == Phase::Open;
        self.failure.is_none() && (is_awaited || self.end.has_backlog())
    }

    fn watch(&self) -> Watch {
        match (self.is_paused, self.wants_write()) {
            (true, _) => Watch::Nothing,
            (false, false) => Watch::Read,
            (false, true) => Watch::ReadWrite,
        }
    }
}

impl<C: Connection> Streams<C> {
    /// No streams; at most `streams_max` with a token later.
    pub(crate) fn new(streams_max: usize) -> Self {
        Self {
            slots: Vec::new(),
            by_remote: HashMap::new(),
            unclaimed: VecDeque::new(),
            ready: VecDeque::new(),
            changed: Vec::new(),
            tokens: TokenTable::default(),
            streams_max: streams_max.min(DATA_LANES_MAX),
            events: VecDeque::new(),
            deadline: Time::NEVER,
            now: Time::ZERO,
            stats: TransportStats::default(),
        }
    }

    /// Takes a connection that somebody made to us; closes the oldest without a preface when there
    /// are too many. `ends` are the addresses here and there. Returns its place.
    pub(crate) fn accepted(&mut self, connection: C, ends: [Address; 2], now: Time) -> usize {
        self.stats.streams.accepted += 1;
        if self.unclaimed.len() >= UNCLAIMED_MAX {
            self.displace_oldest();
        }
        let mut slot = Slot::new(connection, ends, None);
        slot.until = Some(now + PREFACE_WAIT);
        self.deadline = self.deadline.min(now + PREFACE_WAIT);
        let index = self.put(slot);
        self.unclaimed.push_back(index);
        self.enqueue(index);
        index
    }

    /// How many streams have no whole preface.
    pub(crate) fn unclaimed_count(&self) -> usize {
        self.unclaimed.len()
    }

    /// A stream without a preface is late then, and not a second after it was taken.
    pub(crate) fn set_preface_due(&mut self, index: usize, at: Time) {
        if let Some(slot) = self.slot(index).filter(|slot| slot.phase == Phase::Unclaimed) {
            slot.until = Some(at);
            self.deadline = self.deadline.min(at);
        }
    }

    /// The stream to a remote, and how far it is.
    pub(crate) fn place_of(&self, remote: Address) -> Option<(usize, Phase)> {
        let index = *self.by_remote.get(&remote)?;
        Some((index, self.stage(index)?.0))
    }

    /// How far the stream at a place is, and its other end.
    pub(crate) fn stage(&self, index: usize) -> Option<(Phase, Address)> {
        let slot = self.slots.get(index)?.as_ref()?;
        Some((slot.phase, slot.remote))
    }

    /// Closes the oldest stream without a preface; false when there is none.
    pub(crate) fn displace_oldest(&mut self) -> bool {
        let Some(&oldest) = self.unclaimed.front() else {
            return false;
        };
        self.stats.streams.displaced += 1;
        // It holds nothing of the pool: it has no preface yet.
        self.take_out(oldest).is_some()
    }

    /// Takes a connection that we made, to be opened with `token`. Returns its place.
    pub(crate) fn dialed(&mut self, connection: C, ends: [Address; 2], token: Token) -> usize {
        let index = self.put(Slot::new(connection, ends, Some(token)));
        self.by_remote.insert(ends[1], index);
        self.changed.push(index);
        // The time is not known here; the next receive sets it.
        self.deadline = Time::ZERO;
        index
    }

    /// Tells that a connection could not even be begun.
    pub(crate) fn not_dialed(&mut self, remote: Address, token: Token, ending: &Ending) {
        self.tell_closed(remote, token, ending);
    }

    fn put(&mut self, slot: Slot<C>) -> usize {
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or(self.slots.len());
        if index == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[index] = Some(slot);
        index
    }

    /// The connection at a place.
    pub(crate) fn connection(&self, index: usize) -> Option<&C> {
        self.slots.get(index)?.as_ref().map(|slot| &slot.connection)
    }

    fn slot(&mut self, index: usize) -> Option<&mut Slot<C>> {
        self.slots.get_mut(index)?.as_mut()
    }

    /// Takes a stream out of every list.
    fn take_out(&mut self, index: usize) -> Option<Slot<C>> {
        let slot = self.slots.get_mut(index)?.take()?;
        if self.by_remote.get(&slot.remote) == Some(&index) {
            self.by_remote.remove(&slot.remote);
        }
        self.unclaimed.retain(|&one| one != index);
        self.ready.retain(|&one| one != index);
        self.changed.retain(|&one| one != index);
        Some(slot)
    }

    /// Says that a stream may have something to read.
    pub(crate) fn enqueue(&mut self, index: usize) {
        let Some(slot) = self.slot(index).filter(|slot| !slot.is_paused) else { return };
        if !std::mem::replace(&mut slot.is_queued, true) {
            self.ready.push_back(index);
        }
    }

    /// The places of all streams.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> + use<C> {
        let taken = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
        taken.map(|(index, _)| index).collect::<Vec<_>>().into_iter()
    }

    /// True when a stream has something to write or somebody waits to write to it.
    pub(crate) fn wants_write(&self, index: usize) -> bool {
        self.slots.get(index).and_then(Option::as_ref).is_some_and(Slot::wants_write)
    }

    /// The next connection that is to be watched otherwise: for what it is, and for what from now
    /// on.
    pub(crate) fn poll_watch(&mut self) -> Option<(usize, &C, [Watch; 2])> {
        while let Some(index) = self.changed.pop() {
            let Some(slot) = self.slot(index) else { continue };
            let now = slot.watch();
            let before = std::mem::replace(&mut slot.watched, now);
            if before != now {
                let watches = [before, now];
                return self.connection(index).map(|connection| (index, connection, watches));
            }
        }
        None
    }

    /// As [`super::StreamTransport::set_reading`].
    pub(crate) fn set_reading(&mut self, remote: Address, is_reading: bool) {
        let Some(&index) = self.by_remote.get(&remote) else { return };
        let Some(slot) = self.slot(index) else { return };
        slot.is_paused = !is_reading;
        self.changed.push(index);
        // Something may have come that no event tells of again.
        self.enqueue(index);
    }

    /// As [`super::StreamTransport::set_patience`].
    pub(crate) fn set_patience(&mut self, remote: Address, patience: Duration) {
        let Some(&index) = self.by_remote.get(&remote) else { return };
        if let Some(slot) = self.slot(index) {
            slot.connection.set_patience(patience);
        }
    }

    /// As [`super::StreamTransport::estimates`].
    pub(crate) fn estimates(&self, remote: Address) -> Option<BelowSeen> {
        let index = *self.by_remote.get(&remote)?;
        self.slots.get(index)?.as_ref()?.connection.estimates()
    }

    /// As [`super::StreamTransport::expect`]; false when it is refused, which is told.
    pub(crate) fn expect(&mut self, token: Token, until: Time) -> bool {
        let is_expected = self.tokens.expect(token, until, self.now).is_ok();
        if !is_expected {
            self.refuse(token, DATA_LANES_MAX);
        }
        is_expected
    }

    /// Tells that a token is one too many where there may be `limit`, and expects it no longer.
    pub(crate) fn refuse(&mut self, token: Token, limit: usize) {
        self.tokens.forget(&token);
        self.stats.streams.over_limit += 1;
        let nobody = Address::Ip(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
        self.tell_closed(nobody, token, &Ending::TooManyStreams { limit });
    }

    /// As [`super::StreamTransport::forget`].
    pub(crate) fn forget(&mut self, token: &Token) {
        self.tokens.forget(token);
    }

    /// As [`super::StreamTransport::poll_stream`].
    pub(crate) fn poll_stream(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// As [`super::StreamTransport::close_stream`].
    pub(crate) fn close_stream(&mut self, remote: Address) {
        let Some(index) = self.by_remote.remove(&remote) else { return };
        let Some(slot) = self.slot(index) else { return };
        if slot.phase == Phase::Dialing {
            // Nothing was sent by it and nothing came.
            self.take_out(index);
            return;
        }
        slot.phase = Phase::Closing;
        slot.until = None;
        slot.is_blocked = false;
        slot.is_paused = false;
        if !slot.end.has_backlog() {
            slot.connection.end_writing();
        }
        self.changed.push(index);
        self.deadline = Time::ZERO;
        self.enqueue(index);
        self.bound_closing();
    }

    /// Ends the waiting of the one that has been closing longest when there are too many.
    fn bound_closing(&mut self) {
        let closing = |slot: &&mut Slot<C>| slot.phase == Phase::Closing;
        if self.slots.iter_mut().flatten().filter(closing).count() > DATA_LANES_MAX {
            let oldest = self.slots.iter_mut().flatten().filter(closing);
            // Those whose time is not set yet are the newest.
            if let Some(slot) = oldest.min_by_key(|slot| slot.until.unwrap_or(Time::NEVER)) {
                slot.until = Some(Time::ZERO);
            }
        }
    }

    /// As [`super::StreamTransport::next_deadline`].
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        (self.deadline != Time::NEVER).then_some(self.deadline)
    }

    /// As [`super::StreamTransport::stream_count`], those without a token left out.
    pub(crate) fn stream_count(&self) -> usize {
        self.slots.iter().flatten().filter(|slot| slot.token.is_some()).count()
    }

    /// As [`super::StreamTransport::release`].
    pub(crate) fn release(&mut self, pool: &mut Pool) {
        for mut slot in self.slots.drain(..).flatten() {
            slot.end.release(pool);
        }
        self.by_remote.clear();
        self.unclaimed.clear();
        self.ready.clear();
        self.changed.clear();
        self.deadline = Time::NEVER;
    }

    /// As [`crate::Transport::stats`].
    pub(crate) fn stats(&self) -> TransportStats {
        self.stats
    }

    /// The same with what its sockets have counted.
    pub(crate) fn stats_with(&self, sockets: SocketCounts) -> TransportStats {
        let mut stats = self.stats;
        stats.refused += sockets.refused;
        stats.unreachable += sockets.unreachable;
        stats.errors += sockets.errors;
        stats
    }

    /// As [`crate::Transport::open_data`]: the address that the stream to `remote` has here.
    pub(crate) fn open_data(&self, remote: Address) -> io::Result<Address> {
        let slot = self.by_remote.get(&remote).and_then(|&index| self.slots.get(index)?.as_ref());
        let no_stream = || {
            io::Error::new(io::ErrorKind::NotConnected, format!("there is no stream to {remote}"))
        };
        slot.map(|slot| slot.local).ok_or_else(no_stream)
    }

    fn tell_closed(&mut self, remote: Address, token: Token, ending: &Ending) {
        self.stats.streams.closed += 1;
        self.events.push_back(StreamEvent::Closed { token, remote, reason: ending.to_string() });
    }
}
