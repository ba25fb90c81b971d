//! [`Connection`]: one control connection and its streams of records.

use super::aliases::Aliases;
use super::config::{STREAMS_AHEAD, STREAMS_MAX};
use super::outbox::Outbox;
use super::{ConnId, ControlEvent, OUT_MAX};
use crate::error::Code;
use crate::ready_set::Idle;
use crate::transmit::ListenerId;
use dacapo_base::Time;
use dacapo_wire::Malformed;
use dacapo_wire::message::Message;
use dacapo_wire::record::{self, RecordError};
use quinn_proto::{
    ConnectionError, ConnectionHandle, Dir, Event, StreamEvent, StreamId, VarInt, WriteError,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

pub(super) struct Connection {
    pub handle: ConnectionHandle,
    pub inner: quinn_proto::Connection,
    /// Where it has come in; `None` for one that was dialed.
    pub local: Option<ListenerId>,
    /// When it began.
    pub since: Time,
    through: bool,
    /// Bytes that came and went before the address was proved.
    unproved: (u64, u64),
    /// False when it had nothing to send and nothing has happened since.
    pub may_send: bool,
    streams: BTreeMap<StreamId, Stream>,
    /// How many the peer may have open, once the connection is through, and how many it is to have
    /// from the next packet on.
    allowed: u32,
    to_allow: u32,
    /// Those that have something to be written, or to be ended.
    waiting: BTreeSet<StreamId>,
    /// Those that have brought more records than are read at a time, and how many may be read now.
    unread: BTreeSet<StreamId>,
    records_left: usize,
    /// That it is gone, to be told when all is read that came before.
    lost: Option<ControlEvent>,
    /// Bytes that wait to be written, and of half records, on all streams.
    unread_len: usize,
    half_len: usize,
    /// Streams of the peer that have not brought a whole record yet, and since when they are
    /// watched.
    unspoken: Vec<(StreamId, Option<Time>)>,
    /// When it is forgotten, once it is closed.
    kept_until: Option<Time>,
    /// Whether it is among those that are looked at.
    pub idle: Idle,
}

/// The longest that a closed connection answers what still comes for it.
const CLOSED_MAX: Duration = Duration::from_secs(10);

/// The most bytes of half records on all streams of a connection, and of records that the peer does
/// not read.
const HALF_RECORDS_MAX: usize = 1 << 20;
const UNREAD_MAX: usize = 1 << 20;

/// The most records that are read at a time, give or take those of a piece: each may be answered,
/// and a datagram has room for a hundred.
const RECORDS_MAX: usize = 16;
const PIECE_LEN: usize = 128;

/// A stream of the peer brings its first whole record by then.
const FIRST_RECORD_MAX: Duration = Duration::from_secs(10);

/// The longest datagram before the path is known.
const DATAGRAM_LEN: u64 = 1_200;

/// One on which nothing is under way has no buffers: a frame for a high number opens all streams
/// below it (RFC 9000, section 3.2).
#[derive(Default)]
struct Stream {
    buffers: Option<Box<Buffers>>,
    finishing: bool,
    finished: bool,
    ended: bool,
    has_spoken: bool,
}

#[derive(Default)]
struct Buffers {
    reader: record::Reader,
    out: Outbox,
}

impl Connection {
    pub fn new(
        since: Time,
        handle: ConnectionHandle,
        inner: quinn_proto::Connection,
        local: Option<ListenerId>,
    ) -> Self {
        let (may_send, through, streams) = (true, false, BTreeMap::new());
        let (unproved, unspoken) = ((0, 0), Vec::new());
        let (waiting, unread, records_left) = (BTreeSet::new(), BTreeSet::new(), RECORDS_MAX);
        let (unread_len, half_len, lost) = (0, 0, None);
        let kept_until = None;
        Self {
            handle,
            inner,
            local,
            since,
            through,
            unproved,
            may_send,
            streams,
            allowed: 0,
            to_allow: 0,
            waiting,
            unread,
            records_left,
            lost,
            unread_len,
            half_len,
            unspoken,
            kept_until,
            idle: Idle::default(),
        }
    }

    fn is_dialed(&self) -> bool {
        self.local.is_none()
    }

    /// Notes bytes that came, while the address is not proved.
    pub fn note_received(&mut self, len: usize) {
        self.unproved.0 = self.unproved.0.saturating_add(len as u64);
    }

    /// Notes bytes that went.
    pub fn note_sent(&mut self, len: usize) {
        self.unproved.1 = self.unproved.1.saturating_add(len as u64);
    }

    /// Whether a datagram may go: three times what came from an address that is not proved
    /// (RFC 9000, section 8.1), to the byte; quinn-proto lets a datagram begin below that.
    fn has_allowance(&self) -> bool {
        let (received, sent) = self.unproved;
        let proved = self.is_dialed() || self.through;
        proved || sent.saturating_add(DATAGRAM_LEN) <= received.saturating_mul(3)
    }

    /// Whether it may have something to send that may go.
    pub fn wants_to_send(&self) -> bool {
        self.may_send && self.has_allowance()
    }

    /// When a stream has to have brought its first record; one that was not watched is from now on.
    pub fn first_record_due(&mut self, now: Time) -> Option<Time> {
        let since = self.unspoken.iter_mut().map(|(_, since)| *since.get_or_insert(now));
        since.min().map(|at| at + FIRST_RECORD_MAX)
    }

    /// Breaks streams of the peer on which no record gets whole.
    pub fn watch_unspoken(&mut self, now: Time) {
        let streams = &self.streams;
        let waits = |stream: &StreamId| streams.get(stream).is_some_and(|it| !it.has_spoken);
        self.unspoken.retain(|(stream, _)| waits(stream));
        while self.first_record_due(now).is_some_and(|at| at <= now) {
            let (stream, _) = self.unspoken.remove(0);
            self.reset(stream, VarInt::from_u32(Code::NoAnswer as u32));
        }
    }

    /// Whether the peer keeps too much of what it has not ended.
    fn has_too_much(&self) -> bool {
        self.half_len > HALF_RECORDS_MAX
    }

    /// True for one that came in and is neither through nor closed.
    pub fn is_half_open(&self) -> bool {
        !self.is_dialed() && !self.through && !self.inner.is_closed()
    }

    /// True for one that came in and never got through, closed or not: it counts for what strangers
    /// may have.
    pub fn is_unproved(&self) -> bool {
        !self.is_dialed() && !self.through
    }

    /// Until when it is kept: one that is closed by this time at most, whatever its timers say, for
    /// they are as long as the round trips that it has measured, and a clock that has jumped makes
    /// hours of them.
    pub fn closed_until(&mut self, now: Time) -> Option<Time> {
        if self.inner.is_closed() {
            self.kept_until.get_or_insert(now + CLOSED_MAX);
        }
        self.kept_until
    }

    /// True for one that is closed, has nothing to send, and that no timer will end: its first
    /// packet closed it, and `quinn-proto` sets no timer then.
    pub fn is_stuck(&mut self) -> bool {
        !self.may_send && self.inner.is_closed() && self.inner.poll_timeout().is_none()
    }

    /// False for a datagram from elsewhere before the handshake is through: a copy with another
    /// source would count as received from the address that is not proved yet, and what may be sent
    /// to it is three times that (RFC 9000, section 8.1).
    pub fn may_come_from(&self, remote: SocketAddr) -> bool {
        !self.is_half_open() || self.remote() == remote
    }

    /// What `quinn-proto` calls the other end.
    pub fn remote(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// Reads the connection's events into `events`.
    pub fn poll(&mut self, id: ConnId, aliases: &Aliases, events: &mut VecDeque<ControlEvent>) {
        self.poll_inner(id, aliases, events);
        self.tell_lost(events);
    }

    /// There is room for as many records as are read at a time.
    pub fn may_read(&mut self) {
        self.records_left = RECORDS_MAX;
    }

    /// Reads on where records were left.
    pub fn read_on(&mut self, id: ConnId, events: &mut VecDeque<ControlEvent>) {
        self.may_read();
        let streams = std::mem::take(&mut self.unread);
        streams.into_iter().for_each(|stream| self.read(id, stream, events));
        self.tell_lost(events);
    }

    fn tell_lost(&mut self, events: &mut VecDeque<ControlEvent>) {
        if !self.has_unread() {
            events.extend(self.lost.take());
        }
    }

    /// Whether it has records that came and were not read yet.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// What is to be told of it when it is forgotten.
    pub fn take_lost(&mut self) -> Option<ControlEvent> {
        self.lost.take()
    }

    fn poll_inner(&mut self, id: ConnId, aliases: &Aliases, events: &mut VecDeque<ControlEvent>) {
        while let Some(event) = self.inner.poll() {
            self.may_send = true;
            match event {
                Event::Connected => {
                    self.through = true;
                    self.to_allow = STREAMS_AHEAD;
                    self.allow_streams();
                    let remote = aliases.address(self.remote());
                    events.push_back(ControlEvent::Connected {
                        conn: id,
                        remote,
                        dialed: self.is_dialed(),
                    });
                }
                Event::ConnectionLost { reason } => {
                    let said = said(&reason);
                    let reason = reason.to_string();
                    self.lost = Some(ControlEvent::Lost { conn: id, reason, said });
                }
                Event::Stream(event) => self.handle_stream_event(id, event, events),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                }
            }
        }
    }

    /// The peer may have as many streams open as it is to have. The tables of them grow here, and
    /// not with the frame that opens the last.
    pub fn allow_streams(&mut self) {
        if self.to_allow > self.allowed {
            self.allowed = self.to_allow;
            self.inner.set_max_concurrent_streams(Dir::Bi, VarInt::from_u32(self.allowed));
        }
    }

    /// When half of those that the peer may open besides are in use, it may open as many again: so
    /// one frame opens no more than [`STREAMS_AHEAD`].
    fn want_streams(&mut self) {
        let open = self.streams.len() as u32;
        if self.through && open + STREAMS_AHEAD / 2 > self.allowed {
            self.to_allow = self.to_allow.max((open + STREAMS_AHEAD).min(STREAMS_MAX));
        }
    }

    fn handle_stream_event(
        &mut self,
        id: ConnId,
        event: StreamEvent,
        events: &mut VecDeque<ControlEvent>,
    ) {
        match event {
            StreamEvent::Opened { dir: Dir::Bi } => {
                while let Some(stream) = self.inner.streams().accept(Dir::Bi) {
                    self.streams.insert(stream, Stream::default());
                    self.unspoken.push((stream, None));
                    self.read(id, stream, events);
                }
                self.want_streams();
            }
            StreamEvent::Readable { id: stream } => self.read(id, stream, events),
            StreamEvent::Stopped { id: stream, .. } => self.end(id, stream, None, events),
            StreamEvent::Opened { .. }
            | StreamEvent::Writable { .. }
            | StreamEvent::Finished { .. }
            | StreamEvent::Available { .. } => {}
        }
    }

    fn read(&mut self, id: ConnId, stream: StreamId, events: &mut VecDeque<ControlEvent>) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        if state.ended {
            return;
        }
        let (mut ended, half_len) = (None, state.half_len());
        let mut receiver = self.inner.recv_stream(stream);
        let Ok(mut chunks) = receiver.read(true) else { return };
        while ended.is_none() {
            if self.records_left == 0 {
                self.unread.insert(stream);
                break;
            }
            match chunks.next(PIECE_LEN) {
                Ok(Some(chunk)) => {
                    let before = events.len();
                    if let Err(error) = state.handle_bytes(id, stream, &chunk.bytes, events) {
                        ended = Some(Some(error));
                    }
                    let read = events.len() - before;
                    self.records_left = self.records_left.saturating_sub(read);
                }
                Ok(None) => ended = Some(None),
                Err(quinn_proto::ReadError::Blocked) => break,
                Err(quinn_proto::ReadError::Reset(_)) => ended = Some(None),
            }
        }
        let _ = chunks.finalize();
        state.tidy_up();
        self.half_len = self.half_len - half_len + state.half_len();
        if self.has_too_much() {
            // Nothing whole has come on it that was not told; the core hears that it ended.
            self.reset(stream, VarInt::from_u32(Code::TooMany as u32));
            events.push_back(ControlEvent::Ended { conn: id, stream, error: None });
            return;
        }
        if let Some(error) = ended {
            self.end(id, stream, error, events);
        }
    }

    fn end(
        &mut self,
        id: ConnId,
        stream: StreamId,
        error: Option<RecordError>,
        events: &mut VecDeque<ControlEvent>,
    ) {
        if let Some(state) = self.streams.get_mut(&stream)
            && !state.ended
        {
            state.ended = true;
            events.push_back(ControlEvent::Ended { conn: id, stream, error });
        }
        self.forget_if_over(stream);
    }

    pub fn open_stream(&mut self) -> Option<StreamId> {
        let stream = self.inner.streams().open(Dir::Bi)?;
        self.streams.insert(stream, Stream::default());
        Some(stream)
    }

    pub fn queue(&mut self, stream: StreamId, message: &Message) -> Result<(), Malformed> {
        let state = self.streams.get_mut(&stream).ok_or(Malformed)?;
        let mut bytes = Vec::new();
        message.encode(&mut bytes).map_err(|_| Malformed)?;
        if state.finishing || state.out_len() + bytes.len() > OUT_MAX {
            return Err(Malformed);
        }
        self.unread_len += bytes.len();
        state.buffers().out.push(bytes);
        self.waiting.insert(stream);
        if self.unread_len > UNREAD_MAX { Err(Malformed) } else { Ok(()) }
    }

    /// Gives the connection what waits, as far as its windows allow.
    pub fn write_all(&mut self) {
        let waiting: Vec<StreamId> = self.waiting.iter().copied().collect();
        for stream in waiting {
            self.write(stream);
        }
    }

    fn write(&mut self, stream: StreamId) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        let mut sender = self.inner.send_stream(stream);
        while let Some(out) = state.out() {
            match sender.write(out.front()) {
                Ok(written) => {
                    out.take(written);
                    self.unread_len -= written;
                    self.may_send = true;
                }
                Err(WriteError::Blocked) => return,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    self.unread_len -= out.len();
                    *out = Outbox::default();
                    state.finished = true;
                }
            }
        }
        state.tidy_up();
        self.waiting.remove(&stream);
        self.may_send = true;
        if state.finishing && !state.finished {
            state.finished = true;
            // A stream that the peer has stopped needs no end.
            let _ = sender.finish();
        }
        self.forget_if_over(stream);
    }

    pub fn finish(&mut self, stream: StreamId) {
        if let Some(state) = self.streams.get_mut(&stream) {
            state.finishing = true;
            self.waiting.insert(stream);
        }
    }

    pub fn reset(&mut self, stream: StreamId, code: VarInt) {
        if self.forget(stream) {
            // Either half may be over already.
            let _ = self.inner.send_stream(stream).reset(code);
            let _ = self.inner.recv_stream(stream).stop(code);
            self.may_send = true;
        }
    }

    /// A stream that has ended in both directions is forgotten.
    fn forget_if_over(&mut self, stream: StreamId) {
        if self.streams.get(&stream).is_some_and(|state| state.ended && state.finished) {
            self.forget(stream);
        }
    }

    fn forget(&mut self, stream: StreamId) -> bool {
        let Some(state) = self.streams.remove(&stream) else { return false };
        self.unread_len -= state.out_len();
        self.half_len -= state.half_len();
        self.waiting.remove(&stream);
        self.unread.remove(&stream);
        true
    }

    pub fn acked(&self) -> u64 {
        self.inner.stats().frame_rx.acks
    }

    /// The shortest round trip; none before anything was acknowledged.
    pub fn rtt_min(&self) -> Option<Duration> {
        (self.acked() > 0).then(|| self.inner.min_rtt())
    }

    pub fn heard(&self) -> u64 {
        let seen = self.inner.stats().frame_rx;
        seen.acks
            + seen.crypto
            + seen.stream
            + seen.ping
            + seen.max_data
            + seen.handshake_done as u64
    }
}

/// The code with which the peer's core closed the connection.
fn said(reason: &ConnectionError) -> Option<Code> {
    match reason {
        ConnectionError::ApplicationClosed(close) => {
            Code::from_number(u16::try_from(close.error_code.into_inner()).ok()?)
        }
        _ => None,
    }
}

impl Stream {
    fn buffers(&mut self) -> &mut Buffers {
        self.buffers.get_or_insert_default()
    }

    /// How many bytes it has of a record that is not whole.
    fn half_len(&self) -> usize {
        self.buffers.as_ref().map_or(0, |it| it.reader.len())
    }

    /// How many bytes wait to be written.
    fn out_len(&self) -> usize {
        self.buffers.as_ref().map_or(0, |it| it.out.len())
    }

    /// The bytes that wait to be written, if any.
    fn out(&mut self) -> Option<&mut Outbox> {
        self.buffers.as_mut().map(|it| &mut it.out).filter(|out| out.len() > 0)
    }

    /// A stream on which nothing is under way keeps no memory, unless it has brought something.
    fn tidy_up(&mut self) {
        if !self.has_spoken && self.half_len() == 0 && self.out_len() == 0 {
            self.buffers = None;
        }
    }

    fn handle_bytes(
        &mut self,
        conn: ConnId,
        stream: StreamId,
        mut bytes: &[u8],
        events: &mut VecDeque<ControlEvent>,
    ) -> Result<(), RecordError> {
        while !bytes.is_empty() {
            let reader = &mut self.buffers.get_or_insert_default().reader;
            let (now, rest) = bytes.split_at(bytes.len().min(reader.room().max(1)));
            reader.push(now)?;
            bytes = rest;
            while let Some(message) = reader.next()? {
                self.has_spoken = true;
                events.push_back(ControlEvent::Message { conn, stream, message });
            }
        }
        Ok(())
    }
}
