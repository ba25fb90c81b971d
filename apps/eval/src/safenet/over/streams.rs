//! The level of XTP: messages of its streams, without the message service.

use super::far::{Far, SLICE, Tally};
use super::near::{Near, PATIENCE, Talk, Trouble};
use super::place::Network;
use super::users::{DISCARD, ECHO};
use dacapo::xtp_net::{CallError, Host};
use dacapo::xtp_net::{ContextId, Event, Listen, Message, Mode, Open, Read};
use std::net::SocketAddr;
use std::time::Duration;

/// How much is written and read at a time, as the service does.
const PIECE_LEN: usize = 16 << 10;

/// How the near end talks.
pub struct Streams {
    host: Host,
    echo: ContextId,
    discard: ContextId,
    piece: Vec<u8>,
}

impl Streams {
    /// A near end with two streams to a far one.
    pub fn near(network: &Network) -> Result<Near, String> {
        let mode =
            Mode { fast_report: true, without_check: network.without_check, ..Mode::default() };
        let mut far = FarStreams::new(network, mode)?;
        let mut host = network.host(0, 0, None)?;
        let (peer, local) = (far.host.local(), host.local());
        let mut open = |port| {
            let at = |address: SocketAddr| SocketAddr::new(address.ip(), port);
            let open = Open { mode, ..Open::stream(peer, at(peer), at(local)) };
            host.open(&open).map_err(|error| error.to_string())
        };
        let (echo, discard) = (open(ECHO)?, open(DISCARD)?);
        let fars =
            vec![Far::start(move |tally| far.work(tally).map_err(|error| error.to_string()))?];
        Ok(Near::new(Self { host, echo, discard, piece: vec![0; PIECE_LEN] }, fars, true))
    }

    fn write(&mut self, id: ContextId, len: usize) -> Result<(), CallError> {
        let until = self.host.after(PATIENCE);
        write(&mut self.host, id, len, &self.piece, until)?;
        // A message leaves when it is sent, as users' do.
        Ok(self.host.turn(Duration::ZERO)?)
    }

    fn try_round_trip(&mut self, len: usize) -> Result<(), CallError> {
        self.write(self.echo, len)?;
        let until = self.host.after(PATIENCE);
        loop {
            let read = self.host.read(self.echo, &mut self.piece, until)?;
            if matches!(read, Read::Data { is_end: true, .. } | Read::Finished) {
                return Ok(());
            }
        }
    }
}

impl Talk for Streams {
    fn round_trip(&mut self, len: usize) -> Result<(), Trouble> {
        self.try_round_trip(len).map_err(trouble)
    }

    fn send(&mut self, len: usize) -> Result<(), Trouble> {
        self.write(self.discard, len).map_err(trouble)
    }

    fn turn(&mut self, most: Duration) -> Result<(), Trouble> {
        self.host.turn(most).map_err(|error| Trouble::Broken(error.to_string()))
    }
}

fn trouble(error: CallError) -> Trouble {
    match error {
        CallError::TimedOut => Trouble::Lost(error.to_string()),
        error => Trouble::Broken(error.to_string()),
    }
}

/// Writes a message piece by piece.
fn write(
    host: &mut Host,
    id: ContextId,
    len: usize,
    piece: &[u8],
    until: dacapo::Time,
) -> Result<(), CallError> {
    let mut left = len;
    while left > 0 {
        let data = piece.get(..left.min(piece.len())).unwrap_or_default();
        left -= data.len();
        host.write(id, &Message { is_end: left == 0, ..Message::part(data) }, until)?;
    }
    Ok(())
}

/// The far end.
struct FarStreams {
    host: Host,
    streams: Vec<(u16, ContextId, usize)>,
    piece: Vec<u8>,
    /// Messages that were counted.
    count: u64,
}

impl FarStreams {
    fn new(network: &Network, mode: Mode) -> Result<Self, String> {
        let mut host = network.host(1, 0, None)?;
        for port in [ECHO, DISCARD] {
            let listen = Listen { mode, ..Listen::on(port) };
            host.listen(listen).map_err(|error| error.to_string())?;
        }
        Ok(Self { host, streams: Vec::new(), piece: vec![0; PIECE_LEN], count: 0 })
    }

    fn work(&mut self, tally: &Tally) -> Result<(), CallError> {
        self.host.turn(SLICE)?;
        while let Some(event) = self.host.engine().poll_event() {
            if let Event::Incoming { port, id } = event {
                self.streams.push((port, id, 0));
            }
        }
        for number in 0..self.streams.len() {
            self.read(number, tally)?;
        }
        Ok(())
    }

    /// Reads what is there of a stream, and answers or counts what is whole.
    fn read(&mut self, number: usize, tally: &Tally) -> Result<(), CallError> {
        let Some((port, id, got)) = self.streams.get_mut(number) else { return Ok(()) };
        loop {
            let now = self.host.now();
            let read = self.host.engine().read(now, *id, &mut self.piece)?;
            let Read::Data { len, is_end, .. } = read else { return Ok(()) };
            *got += len;
            if !is_end {
                continue;
            }
            let whole = std::mem::take(got);
            if *port == DISCARD {
                tally.count(self.count);
                self.count += 1;
                continue;
            }
            let until = self.host.after(PATIENCE);
            write(&mut self.host, *id, whole, &self.piece, until)?;
            self.host.turn(Duration::ZERO)?;
        }
    }
}
