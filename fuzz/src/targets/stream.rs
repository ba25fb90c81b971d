//! Byte streams of flows: one end against a plain reading of its bytes, and a listener that many
//! come to.

use crate::input::Input;
use crate::oracle::{self, limit};
use dacapo_base::Time;
use dacapo_heap::measure;
use dacapo_packet::Pool;
use dacapo_transport::sim::{Config, Net, Wire};
use dacapo_transport::stream::{
    Ending, MAGIC, RECORD_LEN_MAX, ReadOutcome, StreamEnd, TOKEN_LEN, Token, UNCLAIMED_MAX,
};
use dacapo_transport::{DATA_LANES_MAX, Incoming, StreamTransport, Transport};
use std::io::{self, IoSliceMut, Read, Write};
use std::time::Duration;

/// What a pool gives is counted by the pool; its bodies are made before anything is measured.
pub(super) fn warm_pool() -> Pool {
    let mut pool = Pool::new(4 << 20);
    for len in [200, 2_000, 16_000, 60_000] {
        let packets: Vec<_> = (0..8).filter_map(|_| pool.alloc(0, len, 0).ok()).collect();
        packets.into_iter().for_each(|packet| pool.free(packet));
    }
    pool
}

/// The network: bytes in pieces, with nothing in between.
struct Pieces<'a> {
    rest: &'a [u8],
    step: usize,
    turn: usize,
    /// How many bytes have come.
    received: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(3) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let room: usize = into.iter().map(|part| part.len()).sum();
        assert!(room > 0, "a read without room says nothing");
        let len = (1 + self.turn * self.step % 257).min(room).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(len);
        into.iter_mut().flat_map(|part| part.iter_mut()).zip(piece).for_each(|(to, it)| *to = *it);
        self.rest = rest;
        self.received += len;
        Ok(len)
    }
}

/// How a stream ended, for comparison.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Closed,
    WithinRecord,
    WithinPreface,
    WrongPreface,
    TooLong(u32),
}

impl End {
    fn of(ending: &Ending) -> Self {
        match ending {
            Ending::Closed => Self::Closed,
            Ending::WithinRecord { .. } => Self::WithinRecord,
            Ending::WithinPreface => Self::WithinPreface,
            Ending::WrongPreface => Self::WrongPreface,
            Ending::RecordTooLong { len } => Self::TooLong(*len),
            other => panic!("no bytes end a stream like this: {other:?}"),
        }
    }
}

/// The model: datagrams and the end, read plainly.
fn plainly(bytes: &[u8], is_listener: bool) -> (Vec<Vec<u8>>, End) {
    let preface_len = if is_listener { MAGIC.len() + TOKEN_LEN } else { MAGIC.len() };
    if bytes.iter().zip(&MAGIC).any(|(have, want)| have != want) {
        return (Vec::new(), End::WrongPreface);
    }
    let Some(mut rest) = bytes.get(preface_len..) else {
        return (Vec::new(), End::WithinPreface);
    };
    let mut datagrams = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let len = u32::from_be_bytes(*len);
        if len as usize > RECORD_LEN_MAX {
            return (datagrams, End::TooLong(len));
        }
        let Some((datagram, after)) = after.split_at_checked(len as usize) else {
            return (datagrams, End::WithinRecord);
        };
        datagrams.push(datagram.to_vec());
        rest = after;
    }
    (datagrams, if rest.is_empty() { End::Closed } else { End::WithinRecord })
}

/// One byte chooses the side, one the pieces; the rest comes from the network.
pub fn end(data: &[u8]) {
    let mut input = Input(data);
    let (is_listener, step, bytes) =
        (input.u8().is_multiple_of(2), usize::from(input.u8()), input.rest());
    let token: Token = [7; TOKEN_LEN];
    let mut end = if is_listener { StreamEnd::listener() } else { StreamEnd::dialer(&token) };
    let mut net = Pieces { rest: bytes, step, turn: 0, received: 0 };
    let mut pool = warm_pool();
    let (mut datagrams, mut said) = (Vec::new(), Vec::new());
    let found = loop {
        let before = net.received;
        let (outcome, used) = measure(|| end.read(&mut net, &mut pool));
        oracle::check("a read of a stream", net.received - before, used);
        match outcome {
            ReadOutcome::Bytes { .. } | ReadOutcome::Unpolled => {
                let polled = poll(&mut end, &mut pool, &mut datagrams);
                if let Err(ending) = polled {
                    break End::of(&ending);
                }
                let most = (8 * net.received).max(256);
                assert!(pool.bytes_in_use() <= most, "{} > {most}", pool.bytes_in_use());
            }
            ReadOutcome::Nothing | ReadOutcome::Opened => {}
            ReadOutcome::PoolFull => panic!("the pool has room"),
            ReadOutcome::Claim(token) => {
                assert_eq!(bytes.get(MAGIC.len()..MAGIC.len() + TOKEN_LEN), Some(&token[..]));
                oracle::bounded("a token", TOKEN_LEN, || end.accept());
            }
            ReadOutcome::Ended(ending) => break End::of(&ending),
        }
        end.flush(&mut said).expect("a vector takes all");
    };
    let (wanted, model) = plainly(bytes, is_listener);
    assert_eq!(datagrams, wanted);
    // A length that is too long is seen with the byte after it, or never.
    let is_last = matches!(model, End::TooLong(len) if bytes.ends_with(&len.to_be_bytes()));
    assert!(found == model || (is_last && found == End::WithinRecord), "{found:?}, {model:?}");
    end.release(&mut pool);
    assert_eq!(pool.live_views(), 0, "a stream keeps views");
}

fn poll(end: &mut StreamEnd, pool: &mut Pool, datagrams: &mut Vec<Vec<u8>>) -> Result<(), Ending> {
    let now = Time::from_millis(1);
    while let Some(packet) =
        oracle::bounded("a datagram of a stream", 0, || end.poll_datagram(now, pool))?
    {
        for index in 0..packet.segment_count() {
            datagrams.push(pool.segment(&packet, index).to_vec());
        }
        pool.free(packet);
    }
    Ok(())
}

/// A connection costs its visitor more than it costs here: the bytes of a TCP handshake.
const HANDSHAKE_LEN: usize = 120;

/// What the fuzzer does to a listener.
struct Visitors {
    server: Box<dyn StreamTransport>,
    net: Net,
    remote: dacapo_base::Address,
    wires: Vec<Wire>,
    written: usize,
    /// What came and was not seen yet: bytes, and those of the handshakes of connections.
    fresh: usize,
    kept: i64,
    now: Time,
    pool: Pool,
}

impl Visitors {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() % 8 {
            0 => self.connect(),
            1 => self.write(input.u8(), &[&MAGIC[..], &[input.u8() % 4; TOKEN_LEN]].concat()),
            2 => {
                let bytes = input.piece();
                self.write(input.u8(), bytes);
            }
            3 => {
                let body = input.piece();
                let record = [&(body.len() as u32).to_be_bytes(), body].concat();
                self.write(input.u8(), &record);
            }
            4 => {
                let at = usize::from(input.u8()) % self.wires.len().max(1);
                if at < self.wires.len() {
                    self.wires.remove(at);
                }
            }
            5 => {
                let wait = Duration::from_millis(u64::from(input.u8()));
                let token = [input.u8() % 4; TOKEN_LEN];
                let until = self.now + wait * 20;
                self.call(0, |server, _| server.expect(token, until));
            }
            6 => self.now += Duration::from_millis(u64::from(input.u8()) * 8),
            _ => (0..input.u8()).for_each(|_| self.connect()),
        }
    }

    fn connect(&mut self) {
        self.wires.push(self.net.connect(self.remote));
        self.fresh += HANDSHAKE_LEN;
    }

    fn write(&mut self, at: u8, bytes: &[u8]) {
        let at = usize::from(at) % self.wires.len().max(1);
        // What a wire does not take is not said.
        let written = self.wires.get_mut(at).and_then(|wire| wire.write(bytes).ok());
        self.written += written.unwrap_or(0);
        self.fresh += written.unwrap_or(0);
    }

    /// Calls the listener, for which so many bytes have come.
    fn call<R>(
        &mut self,
        received: usize,
        body: impl FnOnce(&mut dyn StreamTransport, &mut Pool) -> R,
    ) -> R {
        let Self { server, pool, .. } = self;
        let (result, used) = measure(|| body(&mut **server, pool));
        oracle::check("a call of a listener", received, used);
        self.kept += used.live_bytes;
        result
    }

    /// Lets the listener do what it has to do. With more streams than one call reads it has always
    /// something left to look at, because nobody wakes it, so there are only so many calls.
    fn turn(&mut self) {
        let mut incoming = Vec::<Incoming>::with_capacity(1_024);
        for _ in 0..16 {
            let (now, fresh) = (self.now, std::mem::take(&mut self.fresh));
            let found = self.call(fresh, |server, pool| server.recv(now, pool, &mut incoming));
            incoming.drain(..).for_each(|it| self.pool.free(it.packet));
            while let Some(event) = self.call(0, |server, _| server.poll_stream()) {
                drop(event);
            }
            if !found.more {
                break;
            }
        }
    }
}

/// A script of connections, bytes, tokens and time.
pub fn listener(data: &[u8]) {
    let config = Config { is_split: false, ..Config::default() };
    let net = Net::new(&config, 1);
    let server = Box::new(net.serve());
    let remote = server.local_addrs().first().copied().expect("it listens");
    let (wires, now, pool) = (Vec::new(), Time::from_millis(1), warm_pool());
    let (written, fresh, kept) = (0, 0, 0);
    let mut visitors = Visitors { server, net, remote, wires, written, fresh, kept, now, pool };
    let mut input = Input(data);
    while !input.is_empty() && visitors.wires.len() < 600 {
        visitors.step(&mut input);
        visitors.turn();
        let count = visitors.server.stream_count();
        assert!(count <= UNCLAIMED_MAX + 2 * DATA_LANES_MAX, "{count} streams");
    }
    let received = visitors.written + HANDSHAKE_LEN * visitors.wires.len() + data.len();
    let (kept, most) = (visitors.kept, limit(received));
    assert!(kept <= i64::try_from(most).unwrap_or(i64::MAX), "{kept} bytes for {received}");
    visitors.now += Duration::from_secs(60);
    visitors.turn();
    let Visitors { server, pool, .. } = &mut visitors;
    server.release(pool);
    assert_eq!(pool.live_views(), 0, "a listener keeps views");
}

fn preface() -> Vec<u8> {
    [&MAGIC[..], &[2; TOKEN_LEN]].concat()
}

fn records(lens: &[usize]) -> Vec<u8> {
    let record = |&len: &usize| [&(len as u32).to_be_bytes()[..], &vec![0xAB; len]].concat();
    lens.iter().flat_map(record).collect()
}

/// Streams of records, whole and cut, of both sides.
pub fn end_seeds() -> Vec<Vec<u8>> {
    let long = [preface(), records(&[0, 1, 40, 40, 40, 7]), records(&[900])].concat();
    let too_long = [preface(), records(&[3]), 65_536_u32.to_be_bytes().to_vec()].concat();
    let dialer = [&MAGIC[..], &records(&[20, 20, 19])].concat();
    vec![
        [&[0, 30], long.as_slice()].concat(),
        [&[0, 255], long.get(..600).unwrap_or_default()].concat(),
        [&[0, 1], too_long.as_slice()].concat(),
        [&[1, 77], dialer.as_slice()].concat(),
        [&[0, 9], &MAGIC[..5]].concat(),
        [&[1, 9], &b"HTTP/1.1 400"[..]].concat(),
    ]
}

/// One who is expected, one who is not, one who is late, and a flood.
pub fn listener_seeds() -> Vec<Vec<u8>> {
    let expected = [5, 250, 2, 0, 1, 0, 2, 3, 5, 1, 2, 3, 4, 5, 0];
    vec![
        expected.to_vec(),
        [&expected[..], &[2, 4, 0, 1, 0, 1, 0, 6, 255, 4, 0]].concat(),
        vec![0, 1, 0, 3, 6, 200, 7, 100, 6, 200],
        vec![5, 200, 1, 7, 90, 1, 5, 1, 6, 130, 6, 10],
    ]
}
