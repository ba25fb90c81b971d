//! [`Link`]: one QUIC connection and its one stream, as bytes to read and write.
//!
//! ```text
//!   Streams (table)  --Read, Write-->  StreamOf --+
//!                                                 +-- Link: quinn-proto, one bidirectional stream
//!   Links (engine)   --events, packets, time------+         and the datagrams that have come
//! ```
//!
//! Two hold it: the table of streams while the stream is there, and the engine until the connection
//! is over. When the table lets go, the engine closes the connection.
//!
//! Decoder: what came is `quinn-proto`'s to judge; a connection that it ends is read to its last
//! byte, and then ends the stream with the reason.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::Config;
use super::watch::Watch;
use crate::stream::{Connection, PATIENCE};
use bytes::Bytes;
use dacapo_base::Time;
use dacapo_lift::BelowSeen;
use quinn_proto::{ConnectionError, ReadError, StreamId, VarInt, WriteError};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The other end has closed it.
    Closed,
    /// Nobody listens there.
    Refused,
    /// The other end does not know it (any more).
    Reset,
    /// Nothing was heard for as long as was to be waited.
    Silent,
    /// The protocol ended it: what QUIC or TLS says.
    Protocol(String),
}

impl Lost {
    pub(super) fn of(reason: ConnectionError) -> Self {
        match reason {
            ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed => Self::Closed,
            ConnectionError::Reset => Self::Reset,
            ConnectionError::TimedOut => Self::Silent,
            other => Self::Protocol(other.to_string()),
        }
    }

    /// What reading finds behind the last byte.
    fn end(&self) -> io::Result<usize> {
        match self {
            Self::Closed => Ok(0),
            Self::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
            Self::Reset => Err(io::ErrorKind::ConnectionReset.into()),
            Self::Silent => Err(io::ErrorKind::TimedOut.into()),
            Self::Protocol(text) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, format!("QUIC: {text}")))
            }
        }
    }
}

/// A connection.
pub(super) struct Link {
    pub(super) inner: quinn_proto::Connection,
    pub(super) stream: Option<StreamId>,
    pub(super) lost: Option<Lost>,
    /// Something has happened, so that there may be events or packets to fetch.
    pub(super) is_stirred: bool,
    /// The stream, or the queue of datagrams, takes no more; an event will say that it does.
    pub(super) is_full: bool,
    /// Somebody was told so.
    pub(super) is_awaited: bool,
    /// What has come is not handed up now.
    pub(super) is_paused: bool,
    /// The stream ends once no datagram waits to be sent: it must not overtake them.
    is_ending: bool,
    /// What the queue of datagrams has room for when none waits.
    departures_room: usize,
    /// Datagrams that have come.
    pub(super) arrivals: Arrivals,
    /// Bytes of them that may wait; 0 until the other end is known.
    arrivals_bytes_max: usize,
    pub(super) watch: Watch,
}

/// Datagrams that wait to be handed up.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    queue: VecDeque<Bytes>,
    bytes: usize,
    /// Datagrams that were taken out of `quinn-proto`.
    taken: u64,
}

/// What a datagram that waits costs besides its bytes.
const ARRIVAL_COST: usize = 64;

impl Arrivals {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Appends one where there is room; else it is dropped, and the answer is false.
    fn push(&mut self, datagram: Bytes, bytes_max: usize) -> bool {
        let bytes = self.bytes.saturating_add(datagram.len()).saturating_add(ARRIVAL_COST);
        if bytes > bytes_max {
            return false;
        }
        self.bytes = bytes;
        self.queue.push_back(datagram);
        true
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let datagram = self.queue.pop_front()?;
        self.bytes = self.bytes.saturating_sub(datagram.len().saturating_add(ARRIVAL_COST));
        Some(datagram)
    }

    /// The lengths of those that wait, the oldest first.
    pub(super) fn lens(&self) -> impl Iterator<Item = usize> {
        self.queue.iter().map(Bytes::len)
    }
}

impl Link {
    pub(super) fn new(mut inner: quinn_proto::Connection, now: Time) -> Self {
        Self {
            departures_room: inner.datagrams().send_buffer_space(),
            is_ending: false,
            inner,
            stream: None,
            lost: None,
            is_stirred: true,
            is_full: false,
            is_awaited: false,
            is_paused: false,
            arrivals: Arrivals::default(),
            arrivals_bytes_max: 0,
            watch: Watch::new(now, PATIENCE),
        }
    }

    /// Takes the datagrams that have come over from `quinn-proto`; returns how many were dropped,
    /// there or here, for want of room.
    pub(super) fn take_arrivals(&mut self) -> u64 {
        let (mut kept, bytes_max): (u64, usize) = (0, self.arrivals_bytes_max);
        while let Some(datagram) = self.inner.datagrams().recv() {
            kept = kept.saturating_add(u64::from(self.arrivals.push(datagram, bytes_max)));
        }
        let all = self.inner.stats().frame_rx.datagram;
        let new = all.saturating_sub(self.arrivals.taken);
        self.arrivals.taken = all;
        new.saturating_sub(kept)
    }

    /// A count that rises with everything authentic that comes.
    pub(super) fn heard(&self) -> u64 {
        let frames = self.inner.stats().frame_rx;
        let counts = [frames.acks, frames.stream, frames.datagram, frames.ping, frames.crypto];
        counts.into_iter().fold(0, u64::saturating_add)
    }

    /// The other end is who it should be: from now on it may send so many bytes of its stream, and
    /// so many of datagrams.
    pub(super) fn handle_known(&mut self, config: &Config) {
        if self.arrivals_bytes_max == 0 {
            self.arrivals_bytes_max = config.arrivals_bytes;
            self.inner.set_receive_window(VarInt::from_u32(config.recv_window));
            self.is_stirred = true;
        }
    }

    /// Ends the stream if that is due; true when it was.
    pub(super) fn end_when_due(&mut self) -> bool {
        let is_due =
            self.is_ending && self.inner.datagrams().send_buffer_space() >= self.departures_room;
        let Some(stream) = self.stream.filter(|_| is_due) else { return false };
        self.is_ending = false;
        // A stream that the other end has stopped needs no end.
        let _ = self.inner.send_stream(stream).finish();
        true
    }

    /// Reads into two places, one after the other.
    fn read(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let (mut count, mut is_over) = (0_usize, false);
        if let Some(stream) = self.stream {
            let mut receiver = self.inner.recv_stream(stream);
            let Ok(mut chunks) = receiver.read(true) else { return self.end() };
            for part in parts.iter_mut().filter(|part| !part.is_empty()) {
                let found = fill(&mut chunks, part)?;
                count = count.saturating_add(found.count);
                is_over = found.is_over;
                if found.count < part.len() {
                    break;
                }
            }
            self.is_stirred |= chunks.finalize().should_transmit();
        }
        match (count, is_over) {
            (0, true) => self.end(),
            (0, false) if self.lost.is_some() => self.end(),
            (0, false) => Err(io::ErrorKind::WouldBlock.into()),
            (count, _) => Ok(count),
        }
    }

    /// The end, once everything before it was handed up.
    fn end(&self) -> io::Result<usize> {
        if !self.arrivals.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.lost.as_ref().map_or(Ok(0), Lost::end)
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let would_block = || Err(io::ErrorKind::WouldBlock.into());
        let Some(stream) = self.stream.filter(|_| !self.is_full) else { return would_block() };
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        let mut chunks = [Bytes::from(bytes)];
        let mut count = 0_usize;
        let mut sender = self.inner.send_stream(stream);
        // Until it says that it is full, it tells nobody that there is room again.
        while chunks.iter().any(|chunk| !chunk.is_empty()) {
            match sender.write_chunks(&mut chunks) {
                Ok(written) => count = count.saturating_add(written.bytes),
                Err(WriteError::Blocked) => {
                    self.is_full = true;
                    break;
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            }
        }
        self.is_stirred |= count > 0;
        if count > 0 { Ok(count) } else { would_block() }
    }
}

/// What was copied out of a stream.
struct Filled {
    count: usize,
    is_over: bool,
}

/// Copies what has come into `part`, until one of both is at its end.
fn fill(chunks: &mut quinn_proto::Chunks<'_>, part: &mut [u8]) -> io::Result<Filled> {
    let mut count = 0_usize;
    while let Some(room) = part.get_mut(count..).filter(|room| !room.is_empty()) {
        match chunks.next(room.len()) {
            Ok(Some(chunk)) => {
                if let Some(to) = room.get_mut(..chunk.bytes.len()) {
                    to.copy_from_slice(&chunk.bytes);
                }
                count = count.saturating_add(chunk.bytes.len());
            }
            Ok(None) => return Ok(Filled { count, is_over: true }),
            Err(ReadError::Blocked) => break,
            Err(ReadError::Reset(_)) => return Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
    Ok(Filled { count, is_over: false })
}

/// A [`Link`] that two hold.
#[derive(Clone)]
pub(super) struct StreamOf(Arc<Mutex<Link>>);

impl StreamOf {
    pub(super) fn new(link: Link) -> Self {
        Self(Arc::new(Mutex::new(link)))
    }

    pub(super) fn link(&self) -> MutexGuard<'_, Link> {
        // A poisoned lock still holds a link.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when nobody else holds it any more.
    pub(super) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl Read for StreamOf {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.link().read(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.link().read(into)
    }
}

impl Write for StreamOf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.link().write(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.link().write(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for StreamOf {
    // The end may stand behind what was read, and no event tells of it again.
    const SHORT_READ_IS_ALL: bool = false;

    fn end_writing(&mut self) {
        let mut link = self.link();
        (link.is_ending, link.is_stirred) = (true, true);
    }

    fn set_patience(&mut self, patience: Duration) {
        self.link().watch.set_patience(patience);
    }

    fn estimates(&self) -> Option<BelowSeen> {
        let path = self.link().inner.stats().path;
        Some(BelowSeen {
            rtt: Some(path.rtt),
            delivery_rate_bps: None,
            window_bytes: Some(path.cwnd),
            sent_packets: path.sent_packets,
            lost_packets: path.lost_packets,
        })
    }
}
