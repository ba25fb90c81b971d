//! [`Streams`]: byte streams between the two ends, each with the transport's own engine.
//!
//! ```text
//!   transmit --> StreamEnd --bytes--> Wire (256 KiB) --bytes--> StreamEnd --> packets
//! ```

use crate::pair::address;
use dacapo_base::Time;
use dacapo_core::{ChannelEvent, Core, ListenerId, StreamAsk, StreamId, Transmit, Way};
use dacapo_transport::stream::{ReadOutcome, StreamEnd, Token};
use std::io::{self, IoSlice, Read, Write};

/// What a stream holds, each way.
const CAPACITY: usize = 256 * 1024;

/// The streams of a pair.
#[derive(Default)]
pub struct Streams {
    /// Asked for at one end: which, its number there, and the token.
    asked: Vec<(usize, StreamId, Token)>,
    streams: Vec<Stream>,
}

struct Stream {
    ends: [End; 2],
    /// From either end.
    wires: [Wire; 2],
}

struct End {
    id: StreamId,
    engine: StreamEnd,
    /// What was not taken, and how much of it was.
    waiting: Option<(Transmit, usize)>,
}

/// Bytes on their way.
#[derive(Default)]
struct Wire {
    bytes: Vec<u8>,
    read: usize,
}

impl Streams {
    /// Does what a core asks.
    pub fn handle_ask(&mut self, end: usize, ask: StreamAsk) {
        match ask {
            StreamAsk::Dial { stream, token, .. } => self.pair_up(end, stream, token, true),
            StreamAsk::Expect { stream, token, .. } => self.pair_up(end, stream, token, false),
            StreamAsk::Close { stream } => {
                self.streams.retain(|it| it.ends[end].id != stream);
            }
            // The sink takes all there is, and nothing is silent.
            StreamAsk::Read { .. } | StreamAsk::Wait { .. } => {}
        }
    }

    /// A stream is there once both ends have asked for it.
    fn pair_up(&mut self, end: usize, id: StreamId, token: Token, dials: bool) {
        let known = self.asked.iter().position(|(_, _, known)| *known == token);
        let Some((other, other_id, _)) = known.map(|at| self.asked.remove(at)) else {
            return self.asked.push((end, id, token));
        };
        assert_ne!(end, other, "one end asked twice");
        let make = |at: usize| {
            let is_dialer = (at == end) == dials;
            let id = if at == end { id } else { other_id };
            let engine = if is_dialer { StreamEnd::dialer(&token) } else { StreamEnd::listener() };
            End { id, engine, waiting: None }
        };
        self.streams.push(Stream { ends: [make(0), make(1)], wires: Default::default() });
    }

    /// Sends what a core gives for a stream.
    pub fn send(
        &mut self,
        now: Time,
        cores: &mut [Core; 2],
        end: usize,
        id: StreamId,
        transmit: Transmit,
    ) {
        let stream = self.streams.iter_mut().find(|it| it.ends[end].id == id);
        match stream {
            Some(stream) => stream.send(now, &mut cores[end], end, transmit, 0),
            None => cores[end].transmitted(transmit),
        }
    }

    /// Moves what can be moved; true when something was.
    pub fn step(&mut self, now: Time, cores: &mut [Core; 2]) -> bool {
        let mut moved = false;
        for stream in &mut self.streams {
            for end in [0, 1] {
                moved |= stream.step(now, &mut cores[end], end);
            }
        }
        moved
    }
}

impl Stream {
    fn send(&mut self, now: Time, core: &mut Core, end: usize, transmit: Transmit, skip: usize) {
        let (it, wire) = (&mut self.ends[end], &mut self.wires[end]);
        let (bytes, segment) = core.bytes(&transmit);
        let bytes = bytes.get(skip..).unwrap_or_default();
        let taken = it.engine.write(bytes, segment, wire).unwrap();
        if taken.bytes == bytes.len() {
            return core.transmitted(transmit);
        }
        it.waiting = Some((transmit, skip + taken.bytes));
        core.handle_channel(now, it.id, ChannelEvent::Ready(false));
    }

    /// Writes what waits at an end and reads what has come to it.
    fn step(&mut self, now: Time, core: &mut Core, end: usize) -> bool {
        let before = self.wires[end].len();
        self.ends[end].engine.flush(&mut self.wires[end]).unwrap();
        if let Some((transmit, taken)) = self.ends[end].waiting.take() {
            self.send(now, core, end, transmit, taken);
            if self.ends[end].waiting.is_none() {
                core.handle_channel(now, self.ends[end].id, ChannelEvent::Ready(true));
            }
        }
        let has_written = self.wires[end].len() > before;
        self.read(now, core, end) || has_written
    }

    fn read(&mut self, now: Time, core: &mut Core, end: usize) -> bool {
        let (it, wire) = (&mut self.ends[end], &mut self.wires[1 - end]);
        let from = address(1 - end, Way::Control);
        let mut has_read = false;
        loop {
            match it.engine.read(wire, core.pool()) {
                ReadOutcome::Nothing => return has_read,
                ReadOutcome::Bytes { .. } | ReadOutcome::Unpolled => {
                    while let Ok(Some(packet)) = it.engine.poll_datagram(now, core.pool()) {
                        core.handle_datagram(now, ListenerId::default(), from.into(), packet);
                    }
                }
                ReadOutcome::Claim(_) => {
                    it.engine.accept();
                    core.handle_channel(now, it.id, ChannelEvent::Open);
                }
                ReadOutcome::Opened => core.handle_channel(now, it.id, ChannelEvent::Open),
                outcome => panic!("a stream of this program failed: {outcome:?}"),
            }
            has_read = true;
        }
    }
}

impl Wire {
    fn len(&self) -> usize {
        self.bytes.len() - self.read
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let before = self.bytes.len();
        for part in parts {
            let room = CAPACITY - self.len();
            self.bytes.extend_from_slice(&part[..part.len().min(room)]);
        }
        match self.bytes.len() - before {
            0 if parts.iter().any(|part| !part.is_empty()) => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let waiting = &self.bytes[self.read..];
        if waiting.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = waiting.len().min(into.len());
        into[..count].copy_from_slice(&waiting[..count]);
        self.read += count;
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        }
        Ok(count)
    }
}
