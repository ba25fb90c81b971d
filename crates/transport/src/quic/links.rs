//! [`Links`]: the endpoint of QUIC and its connections, between sockets and streams.
//!
//! ```text
//!   sockets --datagram--> endpoint --+--> Link --events--> Stir { readable, writable, .. }
//!      ^                             '--> somebody new     what the transport tells its streams
//!      '------------- packets ------------ Link <--time
//! ```
//!
//! Invariants
//! - A connection that nobody holds any more is closed with a word to the other end and forgotten
//!   at once; what still comes for it is answered by a stateless reset.
//! - A call sends a bounded number of trains per connection; one that has more is stirred.

use super::link::{Link, Lost, StreamOf};
use super::marks::departure;
use super::watch::Due;
use dacapo_base::Time;
use dacapo_io::{SendOutcome, Sockets};
use dacapo_sys::udp::SEGMENTS_MAX;
use quinn_proto::{
    ConnectionHandle, Dir, Endpoint, EndpointEvent, Event, StreamEvent, Transmit, VarInt,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The most trains that one call sends for one connection.
const TRAINS_MAX: usize = 16;

/// The most bytes of one train.
const TRAIN_BYTES_MAX: usize = dacapo_sys::udp::TRAIN_BYTES_MAX;

/// A connection and where its stream is.
pub(super) struct Entry {
    pub(super) stream: StreamOf,
    /// Its place in the table of streams.
    pub(super) place: usize,
    /// Its socket.
    at: usize,
    /// When its timers are due.
    due_at: Option<Time>,
}

/// What has happened to a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stir {
    /// The handshake is through.
    pub(super) connected: bool,
    /// There is something to read, or the end.
    pub(super) readable: bool,
    /// There is room for what was not taken.
    pub(super) writable: bool,
    /// Datagrams that were dropped for want of room.
    pub(super) dropped: u64,
}

/// The connections of a transport.
pub(super) struct Links {
    pub(super) endpoint: Endpoint,
    entries: BTreeMap<usize, Entry>,
    origin: Instant,
    train: Vec<u8>,
}

impl Links {
    pub(super) fn new(endpoint: Endpoint, origin: Instant) -> Self {
        Self { endpoint, entries: BTreeMap::new(), origin, train: Vec::new() }
    }

    pub(super) fn instant(&self, now: Time) -> Instant {
        self.origin + Duration::from_nanos(now.as_nanos())
    }

    /// Takes a connection in; what is returned is for the table of streams.
    pub(super) fn adopt(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        at: usize,
    ) -> StreamOf {
        let stream = StreamOf::new(Link::new(inner, now));
        let entry = Entry { stream: stream.clone(), place: usize::MAX, at, due_at: None };
        self.entries.insert(handle.0, entry);
        stream
    }

    /// The place in the table of streams that a connection has got.
    pub(super) fn set_place(&mut self, handle: ConnectionHandle, place: usize) {
        if let Some(entry) = self.entries.get_mut(&handle.0) {
            entry.place = place;
        }
    }

    pub(super) fn handles(&self) -> Vec<usize> {
        self.entries.keys().copied().collect()
    }

    pub(super) fn entry(&self, handle: usize) -> Option<&Entry> {
        self.entries.get(&handle)
    }

    /// The connection whose stream has this place.
    pub(super) fn at_place(&self, place: usize) -> Option<usize> {
        self.entries.iter().find(|(_, entry)| entry.place == place).map(|(handle, _)| *handle)
    }

    /// An event for a connection.
    pub(super) fn handle_event(
        &mut self,
        handle: ConnectionHandle,
        event: quinn_proto::ConnectionEvent,
    ) {
        if let Some(entry) = self.entries.get(&handle.0) {
            let mut link = entry.stream.link();
            link.inner.handle_event(event);
            link.is_stirred = true;
        }
    }

    /// Nobody listens where a connection is being made to. One that is through is not ended by that
    /// word: anybody can say it.
    pub(super) fn handle_refused(&mut self) {
        for entry in self.entries.values() {
            let mut link = entry.stream.link();
            if link.inner.is_handshaking() && link.lost.is_none() {
                link.lost = Some(Lost::Refused);
                link.is_stirred = true;
            }
        }
    }

    /// Lets time pass.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        let instant = self.instant(now);
        for entry in self.entries.values_mut() {
            if entry.due_at.is_none_or(|at| at > now) {
                continue;
            }
            let mut link = entry.stream.link();
            link.is_stirred = true;
            link.inner.handle_timeout(instant);
            if link.inner.is_handshaking() || link.lost.is_some() {
                continue;
            }
            match link.watch.poll(now) {
                Some(Due::Ping) => link.inner.ping(),
                Some(Due::Hurry) => hurry(&mut link, instant),
                Some(Due::GiveUp) => link.lost = Some(Lost::Silent),
                None => {}
            }
        }
    }

    /// When [`Links::handle_timeout`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.entries.values().filter_map(|entry| entry.due_at).min()
    }

    /// The events of a connection in which something has happened.
    pub(super) fn poll(&mut self, now: Time, handle: usize) -> Option<Stir> {
        let entry = self.entries.get(&handle)?;
        let mut link = entry.stream.link();
        if !link.is_stirred {
            return None;
        }
        while let Some(event) = link.inner.poll_endpoint_events() {
            let answer = self.endpoint.handle_event(ConnectionHandle(handle), event);
            answer.into_iter().for_each(|event| link.inner.handle_event(event));
        }
        let mut stir = Stir { readable: link.lost.is_some(), ..Stir::default() };
        while let Some(event) = link.inner.poll() {
            handle_connection_event(&mut link, event, &mut stir);
        }
        let heard = link.heard();
        link.watch.handle_heard(now, heard);
        Some(stir)
    }

    /// Sends what a connection has, as far as its socket takes it; false when there may be more.
    pub(super) fn transmit(&mut self, now: Time, handle: usize, sockets: &mut Sockets) -> bool {
        let instant = self.instant(now);
        let Some(entry) = self.entries.get_mut(&handle) else { return true };
        let mut link = entry.stream.link();
        if !std::mem::take(&mut link.is_stirred) {
            return true;
        }
        let mut is_done = false;
        for _ in 0..TRAINS_MAX {
            if !sockets.has_capacity(entry.at) {
                break;
            }
            link.end_when_due();
            let Some(transmit) = next_train(&mut link, instant, &mut self.train) else {
                is_done = !link.end_when_due();
                break;
            };
            link.watch.handle_sent(now);
            if sockets.send(entry.at, &departure(&transmit), &self.train) == SendOutcome::Refused
                && link.inner.is_handshaking()
            {
                link.lost = Some(Lost::Refused);
            }
        }
        link.is_stirred = !is_done;
        let timer = link.inner.poll_timeout().map(|at| time(self.origin, at));
        let watch = (!link.inner.is_handshaking()).then(|| link.watch.next_due());
        entry.due_at = timer.into_iter().chain(watch).min();
        is_done || !sockets.has_capacity(entry.at)
    }

    /// Closes and forgets connections that nobody holds any more; returns how many datagrams came
    /// by them that nobody will read.
    pub(super) fn close_left(&mut self, now: Time, sockets: &mut Sockets) -> u64 {
        let left = self.entries.iter().filter(|(_, entry)| entry.stream.is_alone());
        let left: Vec<usize> = left.map(|(handle, _)| *handle).collect();
        let mut unread = 0;
        for handle in left {
            unread += self.close(now, handle, sockets);
        }
        unread
    }

    fn close(&mut self, now: Time, handle: usize, sockets: &mut Sockets) -> u64 {
        let instant = self.instant(now);
        let Some(entry) = self.entries.remove(&handle) else { return 0 };
        let mut link = entry.stream.link();
        link.inner.close(instant, VarInt::from_u32(0), bytes::Bytes::new());
        if let Some(transmit) = next_train(&mut link, instant, &mut self.train)
            && sockets.has_capacity(entry.at)
        {
            sockets.send(entry.at, &departure(&transmit), &self.train);
        }
        self.endpoint.handle_event(ConnectionHandle(handle), EndpointEvent::drained());
        link.arrivals.len() as u64
    }
}

/// The next train of a connection, in `train`.
fn next_train(link: &mut Link, instant: Instant, train: &mut Vec<u8>) -> Option<Transmit> {
    train.clear();
    let segment_len = usize::from(link.inner.current_mtu()).max(1);
    let count = (TRAIN_BYTES_MAX / segment_len).clamp(1, SEGMENTS_MAX);
    link.inner.poll_transmit(instant, count, train)
}

/// Asks for a sign of life, and sends what may be lost once more: as if its timer, which doubles
/// each time, were due.
fn hurry(link: &mut Link, instant: Instant) {
    if let Some(at) = link.inner.poll_timeout() {
        link.inner.handle_timeout(at.max(instant));
    }
    link.inner.ping();
}

fn time(origin: Instant, instant: Instant) -> Time {
    Time::ZERO + instant.saturating_duration_since(origin)
}

fn handle_connection_event(link: &mut Link, event: Event, stir: &mut Stir) {
    match event {
        Event::Connected => {
            stir.connected = true;
            if link.inner.side().is_client() {
                link.stream = link.inner.streams().open(Dir::Bi);
                stir.writable = true;
            }
        }
        Event::ConnectionLost { reason } => {
            link.lost.get_or_insert(Lost::of(reason));
            stir.readable = true;
        }
        Event::Stream(StreamEvent::Opened { .. }) => {
            link.stream = link.inner.streams().accept(Dir::Bi).or(link.stream);
            stir.readable = true;
        }
        Event::Stream(StreamEvent::Readable { .. } | StreamEvent::Stopped { .. }) => {
            stir.readable = true;
        }
        Event::Stream(StreamEvent::Writable { .. }) | Event::DatagramsUnblocked => {
            link.is_full = false;
            stir.writable = true;
        }
        Event::DatagramReceived => stir.dropped += link.take_arrivals(),
        Event::Stream(StreamEvent::Finished { .. } | StreamEvent::Available { .. })
        | Event::HandshakeDataReady => {}
    }
}
