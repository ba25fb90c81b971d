//! What comes behind a label: the T-module over XTP, which expects streams, and three addresses
//! that say anything.
//!
//! ```text
//!   script  mode | step | step | …
//!   step    a datagram, its label and packet mended or not   expect, forget   time passes
//!           a FIRST with a preface, data of a stream         send, pause, close
//! ```
//!
//! It runs over sockets of loopback, where a datagram is there as soon as it is sent, so an input
//! does the same each time.

use super::stream::warm_pool;
use super::xtp::mend;
use crate::input::Input;
use crate::oracle;
use dacapo_base::{Random, Time};
use dacapo_packet::Pool;
use dacapo_transport::stream::{MAGIC, TOKEN_LEN, Token};
use dacapo_transport::xtp::{Config, HEAD_LEN, Mode, Xtp, head, label_of};
use dacapo_transport::{Outgoing, StreamEvent, StreamTransport, TrafficClass, Transport};
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Frame, Header, Key, Options, Payload, Traffic, Writer,
};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

const SOURCES: usize = 3;
const STEPS_MAX: usize = 256;

/// The T-module and those who talk to it.
struct Stage {
    mode: Mode,
    server: Xtp,
    address: SocketAddr,
    sources: Vec<UdpSocket>,
    now: Time,
    pool: Pool,
    /// Keys that the T-module has shown.
    keys: Vec<u64>,
    /// Bytes that were sent to it since it last looked.
    fresh: usize,
    is_anybody_expected: bool,
    seen: BTreeSet<&'static str>,
}

fn here() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn token(number: u8) -> Token {
    [number % 4; TOKEN_LEN]
}

impl Stage {
    fn new(mode: Mode) -> Self {
        let config = Config { buffer_len: 4_096, streams_max: 8, ..Config::default() };
        let server = Xtp::serve(&[here()], mode, Random::from_number(1), &config);
        let server = server.expect("loopback has a port");
        let address =
            server.local_addrs().first().and_then(dacapo_base::Address::ip).expect("it listens");
        let source = |_| {
            let socket = UdpSocket::bind(here()).expect("loopback has a port");
            socket.set_nonblocking(true).expect("a socket may be asked without waiting");
            socket
        };
        Self {
            mode,
            server,
            address,
            sources: (0..SOURCES).map(source).collect(),
            now: Time::from_millis(1),
            pool: warm_pool(),
            keys: Vec::new(),
            fresh: 0,
            is_anybody_expected: false,
            seen: BTreeSet::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let kind = input.u8();
        match kind % 16 {
            0..=6 => self.anything(kind, input),
            7 => self.first(input),
            8 | 9 => self.data(input),
            10 => {
                let until = self.now + Duration::from_millis(u64::from(input.u8()) * 100);
                let token = token(input.u8());
                self.call(0, |server| server.expect(token, until));
                self.is_anybody_expected = true;
            }
            11 => {
                let token = token(input.u8());
                self.call(0, |server| server.forget(&token));
            }
            12 | 13 => self.now += Duration::from_millis(input.number().min(60_000)),
            _ => self.user(kind, input),
        }
    }

    /// A datagram of any content, which may have a label, and a packet that looks like one.
    fn anything(&mut self, kind: u8, input: &mut Input<'_>) {
        let (source, number, choice) = (input.u8(), input.u8(), usize::from(input.u8()));
        let mut packet = input.piece().to_vec();
        let known = self.keys.get(choice % self.keys.len().max(1)).copied();
        if let (Some(key), Some(place)) = (known.filter(|_| kind & 0x10 != 0), packet.get_mut(..8))
        {
            place.copy_from_slice(&Key::returned(key).bits().to_be_bytes());
        }
        if kind & 0x20 != 0 {
            mend(&mut packet);
        }
        let front = if kind & 0xC0 == 0 { Vec::new() } else { head_of(number) };
        self.send(source, &[front, packet].concat());
    }

    /// An association is opened, with a preface or the front of one.
    fn first(&mut self, input: &mut Input<'_>) {
        let (source, number, len) = (input.u8(), input.u8(), usize::from(input.u8()));
        let preface = [&MAGIC[..], &token(number)].concat();
        let data = preface.get(..len).unwrap_or(&preface);
        let address = AddressSegment { domain: 0, address: Address::Null };
        let payload = Payload { tag: self.tag(1), data };
        let body = Body::First(address, Traffic { service: 4, limits: None }, payload);
        self.say(source, number, Options::SREQ, 0, &body);
    }

    /// Data of a stream, or a message.
    fn data(&mut self, input: &mut Input<'_>) {
        let (source, number, kind) = (input.u8(), input.u8(), input.u8());
        let (seq, data) = (u64::from(input.u16()), input.piece());
        let body = Body::Data(Payload { tag: self.tag(kind % 5), data });
        self.say(source, number, Options::SREQ, seq, &body);
    }

    fn tag(&self, kind: u8) -> Option<[u8; 8]> {
        (self.mode == Mode::Datagrams && kind > 0).then_some([kind, 0, 0, 0, 0, 0, 0, 0])
    }

    fn say(&mut self, source: u8, number: u8, options: Options, seq: u64, body: &Body<'_>) {
        let mut options = options;
        if self.mode == Mode::Datagrams {
            options |= Options::NOERR | Options::EOM;
        }
        if let Body::First(.., payload) | Body::Data(payload) = body {
            options |= Options::BTAG.when(payload.tag.is_some());
        }
        let key = Key::own(7 + u64::from(source) % SOURCES as u64);
        let header = Header { options, seq, sync: 1, ..Header::new(key, body.format()) };
        let mut datagram = head_of(number);
        Writer::packet(&header, body, &mut datagram).expect("it is short");
        self.send(source, &datagram);
    }

    fn send(&mut self, source: u8, datagram: &[u8]) {
        if let Some(socket) = self.sources.get(usize::from(source) % SOURCES) {
            // What loopback does not take is not said.
            self.fresh += socket.send_to(datagram, self.address).unwrap_or(0);
        }
    }

    fn user(&mut self, kind: u8, input: &mut Input<'_>) {
        let source = self.sources.get(usize::from(input.u8()) % SOURCES);
        let Some(remote) =
            source.and_then(|socket| Some(dacapo_base::Address::Ip(socket.local_addr().ok()?)))
        else {
            return;
        };
        match kind / 16 % 4 {
            0 => self.call(0, |server| server.close_stream(remote)),
            1 => {
                let reads = input.u8().is_multiple_of(2);
                self.call(0, |server| server.set_reading(remote, reads));
            }
            _ => {
                let piece = input.piece();
                let outgoing = Outgoing::datagram(TrafficClass::Data, remote, piece);
                if self.call(piece.len(), |server| server.send(&outgoing)).is_ok() {
                    self.seen.insert("sent");
                }
            }
        }
    }

    /// Calls the T-module with so many bytes.
    fn call<R>(&mut self, len: usize, body: impl FnOnce(&mut Xtp) -> R) -> R {
        oracle::bounded("a call of the T-module over XTP", len, || body(&mut self.server))
    }

    /// Lets the T-module do what it has to do.
    fn turn(&mut self) {
        let mut incoming = Vec::with_capacity(1_024);
        for _ in 0..8 {
            let Self { server, pool, now, fresh, .. } = self;
            let received = std::mem::take(fresh);
            let outcome = oracle::bounded("the T-module over XTP", received, || {
                server.recv(*now, pool, &mut incoming)
            });
            for it in incoming.drain(..) {
                self.seen.insert("received");
                self.pool.free(it.packet);
            }
            while let Some(event) = self.server.poll_stream() {
                self.seen.insert(match event {
                    StreamEvent::Open { .. } => "opened",
                    StreamEvent::Closed { .. } => "closed",
                });
            }
            if !outcome.more {
                break;
            }
        }
        assert!(self.server.stream_count() <= SOURCES, "one stream for each address");
        if self.server.stats().drops.unlabelled > 0 {
            self.seen.insert("unlabelled");
        }
        self.hear();
    }

    /// What is answered: only with a label that somebody is expected with, and packets of XTP.
    fn hear(&mut self) {
        let mut buffer = [0; 20_000];
        for socket in &self.sources {
            while let Ok((len, _)) = socket.recv_from(&mut buffer) {
                let datagram = buffer.get(..len).unwrap_or_default();
                assert!(self.is_anybody_expected, "an answer to who knows no label");
                let (front, packet) = datagram.split_at(HEAD_LEN);
                let known = (0..4).any(|number| front == head_of(number));
                assert!(known, "an answer with another label");
                let frame = Frame::open(packet).expect("an engine sends packets");
                self.seen.insert("answered");
                if let Body::Tcntl(control, _) = frame.body().expect("with their segments") {
                    self.keys.push(control.xkey);
                }
            }
        }
        self.keys.drain(..self.keys.len().saturating_sub(16));
    }
}

fn head_of(number: u8) -> Vec<u8> {
    head(label_of(&token(number))).to_vec()
}

/// A script of datagrams, expectations and time.
pub fn label(data: &[u8]) {
    play(data);
}

/// Plays a script; what it led to.
pub fn play(data: &[u8]) -> BTreeSet<&'static str> {
    let mut input = Input(data);
    let mode = if input.u8().is_multiple_of(2) { Mode::Streams } else { Mode::Datagrams };
    let mut stage = Stage::new(mode);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        stage.step(&mut input);
        stage.turn();
    }
    let Stage { server, pool, .. } = &mut stage;
    server.release(pool);
    assert_eq!(pool.live_views(), 0, "a listener keeps views");
    stage.seen
}

/// A stream in each mode, from its label to its end; who knows no label; who has half a preface.
pub fn label_seeds() -> Vec<Vec<u8>> {
    const EXPECT: [u8; 3] = [10, 100, 2];
    const OPEN: [u8; 4] = [7, 0, 2, 24];
    const TIME: [u8; 2] = [12, 50];
    let records = [8, 0, 2, 2, 0, 24, 9, 0, 0, 0, 5, 1, 2, 3, 4, 5];
    let too_long = [8, 0, 2, 2, 0, 24, 5, 255, 255, 255, 255, 0];
    let message = [9, 0, 2, 2, 0, 24, 5, 1, 2, 3, 4, 5];
    let user = [46, 0, 3, 7, 7, 7, 30, 0, 1, 30, 0, 0, 14, 0];
    let late = [12, 0xD0, 0xFF, 0xFF];
    vec![
        [&[0][..], &EXPECT, &OPEN, &records, &TIME, &user, &TIME].concat(),
        [&[1][..], &EXPECT, &OPEN, &message, &TIME, &user, &TIME].concat(),
        [&[0][..], &OPEN, &[10, 5, 1], &OPEN, &late, &[7, 1, 1, 24]].concat(),
        [&[1][..], &EXPECT, &[7, 0, 2, 9], &late, &[7, 1, 2, 24, 11, 2], &TIME, &late].concat(),
        [&[0][..], &EXPECT, &OPEN, &too_long, &TIME].concat(),
        [&[1][..], &EXPECT, &OPEN, &[0x70, 0, 2, 0, 32], &[0; 32], &message].concat(),
    ]
}
