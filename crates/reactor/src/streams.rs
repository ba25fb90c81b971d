//! The streams of a [`super::Reactor`]: which transport carries which, and what waits for one.
//!
//! ```text
//!   StreamAsk --> Streams: stream <-> token <-> (transport, remote) --> StreamTransport
//!     says the number of a transport: its listeners, or its dialer
//!   core <------- open, ready, closed, datagrams <------------------------'
//! ```
//!
//! Invariants: a stream that takes no more keeps one transmit waiting and holds nothing else up; a
//! token is known from the ask to the end of its stream; a transport that was dialed goes when its
//! stream has; one that says what cannot be ends its own stream only.

mod fallback;
mod honesty;

use super::{RECV_ROUNDS, RETRY, key_of};
use dacapo_base::{Address, Time, earlier};
use dacapo_core::{
    ChannelEvent, Core, HostLookup, ListenerId, StreamAsk, StreamId, StreamWriter, Transmit,
};
use dacapo_lift::{BelowSeen, StreamParams};
use dacapo_sys::poll::{Event, Interest, Poller};
use dacapo_transport::entry::StreamCarrier;
use dacapo_transport::stream::{PATIENCE, Token};
use dacapo_transport::{
    Incoming, Outgoing, SendError, Sent, StatsByKind, StreamEvent, StreamTransport, TrafficClass,
};
use fallback::{Call, Fallbacks};
use honesty::{Honesty, lie_in};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// How long a stream is waited for at a listener: as long as the core waits.
const EXPECT_MAX: Duration = Duration::from_secs(10);

/// Events that a transport is asked for in a turn; the rest is for the next.
const EVENTS_MAX: usize = 64;

struct Attached {
    transport: Box<dyn StreamTransport>,
    /// Its number on the wire.
    number: u16,
    /// It was dialed for one stream, and goes with it.
    dialed: bool,
    honesty: Honesty,
}

struct Stream {
    token: Token,
    /// The number of the transport that was agreed.
    number: u16,
    /// How it was dialed, while another transport may stand in.
    call: Option<Call>,
    /// The transport that dials it, or that it came by.
    transport: Option<u64>,
    /// Its other end, once it is open.
    remote: Option<Address>,
    /// What it did not take, and how much of it it did.
    waiting: Option<(Transmit, usize)>,
}

/// The streams, and the transports that carry them.
#[derive(Default)]
pub(super) struct Streams {
    transports: BTreeMap<u64, Attached>,
    streams: BTreeMap<StreamId, Stream>,
    by_token: BTreeMap<Token, StreamId>,
    /// What dials, and looks for a peer on this host, by the number of the transport.
    pub carriers: BTreeMap<u16, Box<dyn StreamCarrier>>,
    /// The transports that others open, and by which.
    pub opened_by: BTreeMap<u16, u16>,
    /// What stands in for a transport that could not open a stream.
    pub fallbacks: Fallbacks,
    incoming: Vec<Incoming>,
    /// All transports are asked then, ready or not: something was asked of them or not taken, or
    /// they have more, and what they hold themselves no event tells of.
    due_at: Option<Time>,
    /// Bytes that have come since somebody asked.
    received: u64,
}

impl Streams {
    /// Takes a transport in; `key` is its token at the poller.
    pub fn attach(
        &mut self,
        poller: &mut Poller,
        key: u64,
        (number, transport): (u16, Box<dyn StreamTransport>),
        dialed: bool,
    ) -> io::Result<()> {
        if let Some(fd) = transport.fd() {
            poller.registry(key).add(fd, 0, Interest::Read)?;
        }
        let honesty = Honesty::default();
        self.transports.insert(key, Attached { transport, number, dialed, honesty });
        self.due_at = Some(Time::ZERO);
        Ok(())
    }

    /// Does what the core asks; `key` is free for a transport that is dialed.
    pub fn handle_ask(
        &mut self,
        now: Time,
        core: &mut Core,
        poller: &mut Poller,
        ask: StreamAsk,
        key: u64,
    ) {
        self.due_at = Some(now);
        match ask {
            StreamAsk::Expect { stream, transport, token, terms } => {
                let number = self.opened_by(transport);
                let failed = self.expect(now, stream, number, (token, terms)).err();
                failed
                    .into_iter()
                    .for_each(|why| core.handle_channel(now, stream, ChannelEvent::closed(why)));
            }
            StreamAsk::Dial { stream, transport, peer, remote, token, terms } => {
                let call = Call { peer, remote, terms };
                let number = self.opened_by(transport);
                self.add(stream, token, number, Some(call));
                if let Err(why) = self.dial(core, poller, (stream, number), call, key) {
                    self.handle_end(now, core, stream, &why);
                }
            }
            StreamAsk::Read { stream, is_reading } => {
                self.with_transport(stream, |it, remote| it.set_reading(remote, is_reading));
            }
            StreamAsk::Wait { stream, longer } => {
                let patience = PATIENCE.saturating_add(longer);
                self.with_transport(stream, |it, remote| it.set_patience(remote, patience));
            }
            StreamAsk::Close { stream } => self.close(core, stream),
        }
    }

    /// What the transport of a stream has measured of its path, if it measures.
    pub fn estimates(&mut self, id: StreamId) -> Option<BelowSeen> {
        let mut seen = None;
        self.with_transport(id, |it, remote| seen = it.estimates(remote));
        seen
    }

    /// The number of the transport that opens the streams of this one.
    fn opened_by(&self, transport: u16) -> u16 {
        self.opened_by.get(&transport).copied().unwrap_or(transport)
    }

    /// Runs `body` with the transport of a stream, once it is open.
    fn with_transport(
        &mut self,
        id: StreamId,
        body: impl FnOnce(&mut dyn StreamTransport, Address),
    ) {
        let way = self.streams.get(&id).and_then(|it| Some((it.transport?, it.remote?)));
        if let Some((key, remote)) = way
            && let Some(attached) = self.transports.get_mut(&key)
        {
            body(attached.transport.as_mut(), remote);
        }
    }

    fn expect(
        &mut self,
        now: Time,
        id: StreamId,
        number: u16,
        (token, terms): (Token, StreamParams),
    ) -> Result<(), &'static str> {
        let mut listeners = self.listeners().filter(|it| it.number == number).peekable();
        if listeners.peek().is_none() {
            return Err("this host does not listen for them");
        }
        listeners.for_each(|it| {
            it.transport.expect(token, now + EXPECT_MAX);
            it.transport.set_terms(&token, &terms);
        });
        let fallback = self.fallbacks.of(number);
        let is_fallback = |it: &&mut Attached| Some(it.number) == fallback;
        let listeners = self.listeners().filter(is_fallback);
        listeners.for_each(|it| it.transport.expect(token, now + EXPECT_MAX));
        self.add(id, token, number, None);
        Ok(())
    }

    fn listeners(&mut self) -> impl Iterator<Item = &mut Attached> {
        self.transports.values_mut().filter(|attached| !attached.dialed)
    }

    /// Whether a peer is found by a transport of one host.
    pub fn finds(&mut self, look: &HostLookup) -> bool {
        self.carriers.get_mut(&look.transport).is_some_and(|carrier| carrier.find(look.remote))
    }

    fn add(&mut self, id: StreamId, token: Token, number: u16, call: Option<Call>) {
        self.by_token.insert(token, id);
        let stream = Stream { token, number, call, transport: None, remote: None, waiting: None };
        self.streams.insert(id, stream);
    }

    /// The core has done with a stream, whatever its state.
    fn close(&mut self, core: &mut Core, id: StreamId) {
        let Some(stream) = self.forget(core, id) else { return };
        match (stream.transport.and_then(|key| self.transports.get_mut(&key)), stream.remote) {
            (Some(attached), Some(remote)) => attached.transport.close_stream(remote),
            // Not open yet: nothing is written that could be lost.
            (Some(attached), None) => attached.transport.release(core.pool()),
            (None, _) => self.listeners().for_each(|it| it.transport.forget(&stream.token)),
        }
    }

    fn forget(&mut self, core: &mut Core, id: StreamId) -> Option<Stream> {
        let mut stream = self.streams.remove(&id)?;
        self.by_token.remove(&stream.token);
        if let Some((transmit, _)) = stream.waiting.take() {
            core.transmitted(transmit);
        }
        Some(stream)
    }

    /// Takes what has come, where something is ready, or late when the turn looks at everything
    /// (`is_whole`); true when there may be more.
    pub fn receive(&mut self, now: Time, core: &mut Core, ready: &[Event], is_whole: bool) -> bool {
        let all = self.due_at.take_if(|at| *at <= now).is_some();
        let is_due = |key: u64, it: &Attached| {
            let is_late = || is_whole && it.transport.next_deadline().is_some_and(|at| at <= now);
            all || ready.iter().any(|event| key_of(event) == key) || is_late()
        };
        let is_due = |key: u64, it: &Attached| !it.honesty.has_lied() && is_due(key, it);
        let due = self.transports.iter().filter(|(key, it)| is_due(**key, it));
        let keys: Vec<u64> = due.map(|(key, _)| *key).collect();
        let mut more = false;
        for key in keys {
            let received = self.received;
            let (may_come, has_capacity) = self.receive_from(now, core, key);
            more |= may_come;
            let told = self.handle_events(now, core, key);
            if has_capacity {
                self.send_waiting(now, core, key);
            }
            let has_moved = self.received != received || told != Ok(false) || has_capacity;
            if let Some(why) = told.err().or_else(|| self.note_look(now, key, has_moved)) {
                let id = self.stream_of(key).map(|(id, _)| id);
                self.disbelieve(now, core, (Some(key), id), why);
            }
        }
        more
    }

    /// The stream of a transport that was dialed.
    fn stream_of(&self, key: u64) -> Option<(StreamId, &Stream)> {
        let mut streams = self.streams.iter();
        streams.find(|(_, it)| it.transport == Some(key)).map(|(id, stream)| (*id, stream))
    }

    /// A transport was looked at, and has moved something or not; why it is not believed.
    fn note_look(&mut self, now: Time, key: u64, has_moved: bool) -> Option<&'static str> {
        let attached = self.transports.get_mut(&key).filter(|it| it.dialed)?;
        if has_moved {
            attached.honesty.note_progress();
            return None;
        }
        attached.honesty.note_vain(now)
    }

    /// Ends a stream whose transport said what cannot be, and a transport that was dialed for it.
    /// A listener, by which others come too, goes on.
    fn disbelieve(
        &mut self,
        now: Time,
        core: &mut Core,
        (key, id): (Option<u64>, Option<StreamId>),
        why: &str,
    ) {
        self.due_at = Some(now);
        let remote = id.and_then(|id| self.streams.get(&id)).and_then(|stream| stream.remote);
        if let Some(attached) = key.and_then(|key| self.transports.get_mut(&key)) {
            if attached.dialed {
                attached.honesty.note_lie();
            }
            remote.into_iter().for_each(|remote| attached.transport.close_stream(remote));
        }
        if let Some(id) = id {
            self.handle_end(now, core, id, &format!("its transport cannot be believed: {why}"));
        }
    }

    /// Whether more may come, and whether a stream that was full has room.
    fn receive_from(&mut self, now: Time, core: &mut Core, key: u64) -> (bool, bool) {
        let Some(attached) = self.transports.get_mut(&key) else { return (false, false) };
        let mut has_capacity = false;
        for _ in 0..RECV_ROUNDS {
            let outcome = attached.transport.recv(now, core.pool(), &mut self.incoming);
            self.received += outcome.bytes as u64;
            for Incoming { remote, packet, .. } in self.incoming.drain(..) {
                core.handle_datagram(now, ListenerId(key), remote, packet);
            }
            has_capacity |= outcome.writable;
            if !outcome.more || outcome.blocked {
                if outcome.blocked {
                    self.due_at = earlier(self.due_at, Some(now + RETRY));
                }
                return (false, has_capacity);
            }
            self.due_at = Some(now);
            if core.has_requests() {
                // Whoever has no room is not to get another round.
                return (true, has_capacity);
            }
        }
        (true, has_capacity)
    }

    /// Takes what a transport tells of its streams; whether it told something.
    ///
    /// # Errors
    /// Why it is not believed.
    fn handle_events(
        &mut self,
        now: Time,
        core: &mut Core,
        key: u64,
    ) -> Result<bool, &'static str> {
        let Some(attached) = self.transports.get_mut(&key) else { return Ok(false) };
        let is_dialed = attached.dialed;
        let events = std::iter::from_fn(|| attached.transport.poll_stream());
        let events: Vec<_> = events.take(EVENTS_MAX).collect();
        let has_told = !events.is_empty();
        if has_told {
            self.due_at = Some(now);
        }
        for event in events {
            let own = self.stream_of(key).map(|(_, it)| (&it.token, it.remote.is_some()));
            if let Some(lie) = lie_in(&event, own).filter(|_| is_dialed) {
                return Err(lie);
            }
            match event {
                StreamEvent::Open { token, remote } => {
                    let Some((id, fallback)) = self.note_open(key, token, remote) else { continue };
                    if let Some(number) = fallback {
                        let reason = "the other end could not open what was agreed".to_owned();
                        let event = ChannelEvent::Fallback { transport: number, reason };
                        core.handle_channel(now, id, event);
                    }
                    core.handle_channel(now, id, ChannelEvent::Open);
                }
                StreamEvent::Closed { token, reason, .. } => {
                    let Some(&id) = self.by_token.get(&token) else { continue };
                    if self.is_of(id, key) {
                        self.handle_end(now, core, id, &reason);
                    }
                }
            }
        }
        Ok(has_told)
    }

    /// A stream is open by a transport: which, and the transport's number where it is not what was
    /// agreed. `None` when nobody wants it, or it is open by another: then it is closed.
    fn note_open(
        &mut self,
        key: u64,
        token: Token,
        remote: Address,
    ) -> Option<(StreamId, Option<u16>)> {
        let id = self.by_token.get(&token).copied();
        let wanted = id.and_then(|id| self.streams.get_mut(&id)).filter(|it| it.remote.is_none());
        let Some((id, stream)) = id.zip(wanted) else {
            let attached = self.transports.get_mut(&key)?;
            attached.transport.close_stream(remote);
            return None;
        };
        let was_expected = stream.transport.is_none();
        (stream.transport, stream.remote, stream.call) = (Some(key), Some(remote), None);
        let agreed = stream.number;
        let others = self.transports.iter_mut().filter(|(other, _)| **other != key);
        others.for_each(|(_, attached)| attached.transport.forget(&token));
        let number = self.transports.get(&key).map(|it| it.number);
        Some((id, number.filter(|number| was_expected && *number != agreed)))
    }

    /// Sends by a stream; what it does not take waits for it.
    ///
    /// # Errors
    /// What the transport says; the transmit is gone then. `None`: there is no such stream.
    pub fn send(
        &mut self,
        now: Time,
        core: &mut Core,
        id: StreamId,
        transmit: Transmit,
        skip: usize,
    ) -> Result<(), Option<SendError>> {
        let stream = self.streams.get_mut(&id);
        let way = stream.and_then(|it| Some((it.transport?, it.remote?, it)));
        let way =
            way.and_then(|(key, remote, it)| Some((self.transports.get_mut(&key)?, remote, it)));
        let Some((attached, remote, stream)) = way else {
            core.transmitted(transmit);
            return Err(None);
        };
        let (bytes, segment_len) = core.bytes(&transmit);
        let bytes = bytes.get(skip..).unwrap_or_default();
        let outgoing = Outgoing::train(TrafficClass::Data, remote, bytes, segment_len);
        match attached.transport.send(&outgoing) {
            Ok(Sent::All) => {
                attached.honesty.note_progress();
                core.transmitted(transmit);
                Ok(())
            }
            Ok(Sent::Blocked { bytes_taken }) if bytes_taken > bytes.len() => {
                core.transmitted(transmit);
                let key = stream.transport;
                self.disbelieve(now, core, (key, Some(id)), "it took more than it was given");
                Ok(())
            }
            Ok(Sent::Blocked { bytes_taken }) => {
                stream.waiting = Some((transmit, skip + bytes_taken));
                core.handle_channel(now, id, ChannelEvent::Ready(false));
                Ok(())
            }
            Err(error) => {
                self.due_at = Some(now);
                core.transmitted(transmit);
                Err(Some(error))
            }
        }
    }

    /// Sends what waits for the streams of a transport that has room.
    fn send_waiting(&mut self, now: Time, core: &mut Core, key: u64) {
        let of_transport = self.streams.iter_mut().filter(|(_, it)| it.transport == Some(key));
        let waiting: Vec<_> =
            of_transport.filter_map(|(id, it)| Some((*id, it.waiting.take()?))).collect();
        for (id, (transmit, taken)) in waiting {
            // What ended a stream is told in an event of its own.
            let _ = self.send(now, core, id, transmit, taken);
            if self.streams.get(&id).is_some_and(|it| it.waiting.is_none()) {
                core.handle_channel(now, id, ChannelEvent::Ready(true));
            }
        }
    }

    /// How many bytes have come since the last call.
    pub fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    pub fn next_deadline(&self) -> Option<Time> {
        let honest = self.transports.values().filter(|it| !it.honesty.has_lied());
        let of_transports = honest.filter_map(|it| it.transport.next_deadline());
        earlier(self.due_at, of_transports.min())
    }

    /// Adds the counters of the transports that there are.
    pub fn add_stats(&self, stats: &mut StatsByKind) {
        self.transports.values().for_each(|attached| stats.add(&*attached.transport));
    }

    /// Lets dialed transports go whose stream is over.
    pub fn tidy(&mut self, core: &mut Core, poller: &mut Poller, gone: &mut StatsByKind) {
        // What became of its stream is told before it goes.
        let is_told = |key: u64| self.streams.values().all(|it| it.transport != Some(key));
        let is_done = |it: &Attached| it.honesty.has_lied() || it.transport.stream_count() == 0;
        let is_over = |key: u64, it: &Attached| it.dialed && is_done(it) && is_told(key);
        let over = self.transports.iter().filter(|(key, it)| is_over(**key, it));
        let over: Vec<u64> = over.map(|(key, _)| *key).collect();
        for key in over {
            let Some(mut attached) = self.transports.remove(&key) else { continue };
            gone.add(&*attached.transport);
            attached.transport.release(core.pool());
            if let Some(fd) = attached.transport.fd() {
                // It may be closed already, and then it is not watched.
                let _ = poller.remove(fd);
            }
        }
    }
}

impl StreamWriter for Streams {
    fn write_split(&mut self, now: Time, id: StreamId, head: &[u8], body: &[u8]) -> bool {
        let stream = self.streams.get(&id).filter(|it| it.waiting.is_none());
        let Some((key, remote)) = stream.and_then(|it| Some((it.transport?, it.remote?))) else {
            return false;
        };
        let Some(attached) = self.transports.get_mut(&key) else { return false };
        let sent = attached.transport.send_split(remote, head, body);
        let is_sent = matches!(sent, Ok(Sent::All));
        if is_sent {
            attached.honesty.note_progress();
        } else if sent.is_err() {
            // It has ended, and tells why when it is asked.
            self.due_at = Some(now);
        }
        is_sent
    }
}
