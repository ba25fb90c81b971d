//! Packets of XTP as bytes, and what they do to an engine; its scripts are in `xtp_scripts.rs`.

pub use super::xtp_scripts::engine_seeds;

use crate::input::Input;
use crate::oracle;
use dacapo_base::{Random, Time};
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Code, Control, Diagnostic, Fault, Frame, HEADER_LEN, Header,
    Key, Limits, Options, PACKET_LEN_MAX, Payload, Reason, Span, Spans, Traffic, TrafficControl,
    Writer, checksum, sum,
};

use dacapo_xtp::{Config, ContextId, End, Engine, Event, GroupPolicy, Join, Listen, Message, Open};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// Reserved bits, which are ignored: bit 31 of the command word, and its octet.
const RESERVED: [(usize, u8); 2] = [(8, 0x80), (10, 0xFF)];

/// The first byte says whether length and checksum are mended; the rest is a packet.
pub fn packet(data: &[u8]) {
    let mut input = Input(data);
    let is_mended = input.u8() % 4 != 0;
    let mut bytes = input.rest().to_vec();
    if is_mended {
        mend(&mut bytes);
    }
    let read = oracle::bounded("a packet", bytes.len(), || {
        let frame = Frame::open(&bytes)?;
        let body = frame.body();
        if let Err(fault) = body {
            assert!(!fault.to_string().is_empty());
        }
        body.map(|body| (frame.header, body))
    });
    let is_first = |fault: Fault| matches!(fault, Fault::Short | Fault::Length | Fault::Checksum);
    match read {
        Ok((header, body)) => comes_back(&bytes, &header, &body),
        Err(fault) => assert!(!is_mended || bytes.len() < HEADER_LEN || !is_first(fault)),
    }
}

/// Sets `dlen` and `check` to what is right.
pub(super) fn mend(packet: &mut [u8]) {
    let len = packet.len().saturating_sub(HEADER_LEN) as u32;
    let mut put = |at: usize, field: &[u8]| {
        if let Some(place) = packet.get_mut(at..at + field.len()) {
            place.copy_from_slice(field);
        }
    };
    put(12, &len.to_be_bytes());
    put(16, &[0, 0]);
    let is_whole = packet.get(8).is_some_and(|byte| byte & 0x40 == 0);
    let covered = if is_whole { packet.len() } else { HEADER_LEN };
    let check = checksum(sum(&[packet.get(..covered).unwrap_or_default()]));
    if let Some(place) = packet.get_mut(16..18) {
        place.copy_from_slice(&check.to_be_bytes());
    }
}

/// What was read is written as the same bytes, and reads as the same.
fn comes_back(bytes: &[u8], header: &Header, body: &Body<'_>) {
    let mut again = Vec::new();
    if Writer::packet(header, body, &mut again).is_err() {
        return assert!(bytes.len() > PACKET_LEN_MAX);
    }
    assert_eq!(again.len(), bytes.len());
    let frame = Frame::open(&again).expect("what was written is a packet");
    assert_eq!((frame.header, frame.body()), (*header, Ok(*body)));
    let mut known = bytes.to_vec();
    for (at, bits) in RESERVED {
        if let Some(byte) = known.get_mut(at) {
            *byte &= !bits;
        }
    }
    // Segments have reserved bytes of their own; the header and the stream's data have none else.
    if let Body::Data(_) | Body::Cntl(_) | Body::Ecntl(..) | Body::Diag(_) = body {
        mend(&mut known);
        assert_eq!(again, known);
    }
    if let Body::Diag(diagnostic) = body {
        assert!(diagnostic.to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }
}

/// A packet of every format.
pub fn packet_seeds() -> Vec<Vec<u8>> {
    let control = Control { rseq: 11, alloc: 65_547, echo: 6 };
    let traffic_control = TrafficControl { control, xkey: 0x00AB_CDEF };
    let limits = Limits { data_len_max: 1_400, in_rate: 1_500_000, ..Limits::default() };
    let traffic = Traffic { service: 4, limits: Some(limits) };
    let bare = Traffic { service: 1, limits: None };
    let ends = |destination: ([u8; 4], u16), source: ([u8; 4], u16)| {
        let address = Address::Internet { destination: destination.into(), source: source.into() };
        AddressSegment { domain: 0, address }
    };
    let v4 = ends(([192, 0, 2, 2], 5_000), ([192, 0, 2, 1], 4_000));
    let null = AddressSegment { domain: 0, address: Address::Null };
    let data = Payload { tag: None, data: b"hello" };
    let tagged = Payload { tag: Some(*b"a tag ok"), data: b"hello" };
    let spans = [Span { left: 20, right: 30 }, Span { left: 40, right: 45 }];
    let diagnostic =
        Diagnostic { code: Code::PACKET_SIZE, reason: Reason::UNSPECIFIED, message: b"1400" };
    [
        (Options::SREQ | Options::EOM, Body::Data(data)),
        (Options::BTAG, Body::Data(tagged)),
        (Options::NOCHECK | Options::NOERR, Body::Data(data)),
        (Options::NONE, Body::Cntl(control)),
        (Options::SREQ | Options::EOM, Body::First(v4, traffic, data)),
        (Options::NONE, Body::First(null, bare, Payload::default())),
        (Options::FASTNAK, Body::Ecntl(control, Spans::List(&spans))),
        (Options::NONE, Body::Tcntl(traffic_control, traffic)),
        (Options::MULTI, Body::Jcntl(traffic_control, v4, traffic)),
        (Options::MULTI, Body::Join(b"any bytes")),
        (Options::END, Body::Diag(diagnostic)),
    ]
    .iter()
    .map(|(options, body)| {
        let header = Header { options: *options, ..Header::new(Key::own(7), body.format()) };
        let mut bytes = vec![0];
        Writer::packet(&header, body, &mut bytes).expect("a seed is short");
        bytes
    })
    .collect()
}

/// The most packets that one step can justify: a window of small ones, and answers.
const PACKETS_MAX: usize = 20_000;
const CONTEXTS_MAX: usize = 4;
pub(super) const PORT: u16 = 7;

/// An engine, its users, and a peer that has seen what the engine sent.
struct Stage {
    engine: Engine,
    now: Time,
    ids: Vec<ContextId>,
    /// Keys that the engine has shown: of its own contexts, in FIRST and as `xkey`.
    keys: Vec<u64>,
    sync: u32,
    /// What was sent and told.
    seen: BTreeSet<&'static str>,
}

/// The group, as XTP names it and where packets go.
pub(super) fn group() -> SocketAddr {
    ([239, 1, 2, 3], PORT).into()
}

fn host(number: u8) -> SocketAddr {
    ([192, 0, 2, number % 3], 4_040).into()
}

impl Stage {
    fn new() -> Self {
        let config = Config {
            contexts_max: CONTEXTS_MAX,
            inactive_max: CONTEXTS_MAX,
            buffer_len: 2_048,
            first_window: 1_000,
            ..Config::default()
        };
        let mut engine = Engine::new(config, Random::from_number(1));
        engine.listen(Listen::on(PORT)).expect("the port is free");
        engine.listen(Listen::on(0)).expect("the port is free");
        Self {
            engine,
            now: Time::from_millis(1),
            ids: Vec::new(),
            keys: vec![7],
            sync: 0,
            seen: BTreeSet::new(),
        }
    }

    fn id(&self, choice: u8) -> Option<ContextId> {
        self.ids.get(usize::from(choice) % self.ids.len().max(1)).copied()
    }

    /// One step of the script.
    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() {
            kind @ 0..=0x9F => self.peer(kind, input),
            0xA0..=0xBF => {
                self.now += Duration::from_millis(input.number().min(100_000));
                let Self { engine, now, .. } = self;
                oracle::bounded("time at an engine of XTP", 0, || engine.handle_time(*now));
            }
            0xC0..=0xC7 => {
                let ends = (SocketAddr::from(([192, 0, 2, 1], PORT)), host(0));
                let open = Open::stream(host(input.u8()), ends.0, ends.1);
                self.begin(|engine, now| engine.open(now, &open));
            }
            0xC8..=0xCB => {
                let open = Open::reliable_multicast(group(), PORT, host(0));
                let members_first = 1 + usize::from(input.u8() % 2);
                let policy =
                    GroupPolicy { members_first, members_max: 2, ..GroupPolicy::default() };
                self.begin(|engine, now| engine.open_group(now, &open, &policy));
            }
            0xCC..=0xCF => {
                let join = Join::group(group(), PORT, host(0));
                self.begin(|engine, now| engine.join(now, &join));
            }
            kind => self.user(kind, input),
        }
        self.check_members();
        self.poll();
    }

    /// An association begins from here, or does not.
    fn begin<E>(&mut self, body: impl FnOnce(&mut Engine, Time) -> Result<ContextId, E>) {
        let Self { engine, now, ids, .. } = self;
        ids.extend(oracle::bounded("a beginning at an engine of XTP", 0, || body(engine, *now)));
    }

    /// Groups have no more members than they may, and of nobody more than was sent.
    fn check_members(&self) {
        for id in &self.ids {
            let members = self.engine.members(*id).unwrap_or_default();
            assert!(members.len() <= 2, "{members:?}");
            assert!(members.iter().all(|it| it.start <= it.rseq && it.rseq <= it.alloc));
        }
    }

    /// A packet of any content, with a key that reaches a context, or not.
    fn peer(&mut self, kind: u8, input: &mut Input<'_>) {
        let (from, choice) = (host(input.u8()), usize::from(input.u8()));
        let mut bytes = input.piece().to_vec();
        let key = self.keys.get(choice % self.keys.len()).copied().unwrap_or(1);
        let key = if kind.is_multiple_of(4) { Key::own(choice as u64) } else { Key::returned(key) };
        if let (true, Some(place)) = (kind % 8 < 6, bytes.get_mut(..8)) {
            place.copy_from_slice(&key.bits().to_be_bytes());
        }
        // The echo of a request is at the same place in all control packets.
        if let (true, Some(place)) = (kind % 16 > 7, bytes.get_mut(48..52)) {
            place.copy_from_slice(&self.sync.to_be_bytes());
        }
        if bytes.len() >= HEADER_LEN {
            mend(&mut bytes);
        }
        let Self { engine, now, .. } = self;
        oracle::bounded("a packet at an engine of XTP", bytes.len(), || {
            engine.handle_packet(*now, from, &bytes);
        });
    }

    fn user(&mut self, kind: u8, input: &mut Input<'_>) {
        let Some(id) = self.id(input.u8()) else { return };
        let (engine, now) = (&mut self.engine, self.now);
        let given = match kind % 8 {
            0 | 1 => input.piece(),
            2 => &[1; 700],
            _ => &[],
        };
        let outcome =
            oracle::bounded("a call of an engine of XTP", given.len(), || match kind % 8 {
                0 | 1 => engine.write(now, id, &Message::whole(given)).map(|_| ()),
                2 => engine.write(now, id, &Message::part(given)).map(|_| ()),
                3 => engine.read(now, id, &mut [0; 512]).map(|_| ()),
                4 => engine.finish(now, id),
                5 => engine.stop_reading(now, id),
                6 => engine.abort(now, id),
                _ => engine.release(now, id),
            });
        if let Err(error) = outcome {
            assert!(!error.to_string().is_empty());
        }
    }

    /// Takes what the engine has: it comes to an end, and what it sends are packets.
    fn poll(&mut self) {
        let mut bytes = Vec::new();
        for count in 0.. {
            assert!(count < PACKETS_MAX, "an engine that sends without end");
            bytes.clear();
            if self.engine.poll_packet(self.now, &mut bytes).is_none() {
                break;
            }
            self.learn(&bytes);
        }
        for count in 0.. {
            assert!(count < 100, "an engine that tells without end");
            match self.engine.poll_event() {
                Some(event) => {
                    self.seen.insert(name(&event));
                    if let Event::Incoming { id, .. } = event {
                        self.ids.push(id);
                    }
                }
                None => break,
            }
        }
        self.ids.drain(..self.ids.len().saturating_sub(16));
        self.keys.drain(..self.keys.len().saturating_sub(16));
        let count = self.engine.context_count().max(self.engine.inactive_count());
        assert!(count <= CONTEXTS_MAX, "{count} contexts");
        assert!(self.engine.deadline() > self.now, "a deadline that is over");
    }

    fn learn(&mut self, bytes: &[u8]) {
        let frame = Frame::open(bytes).expect("an engine sends packets");
        let body = frame.body().expect("with their segments");
        self.sync = frame.header.sync;
        self.seen.insert(frame.header.format.name());
        match body {
            Body::First(..) => self.keys.push(frame.header.key.value()),
            Body::Tcntl(control, _) | Body::Jcntl(control, ..) => self.keys.push(control.xkey),
            _ => {}
        }
    }
}

/// A script: packets, time, users.
pub fn engine(data: &[u8]) {
    play(data);
}

/// Plays a script; what the engine sent and told.
pub fn play(data: &[u8]) -> BTreeSet<&'static str> {
    let (mut stage, mut input) = (Stage::new(), Input(data));
    while !input.is_empty() {
        stage.step(&mut input);
    }
    stage.seen
}

const fn name(event: &Event) -> &'static str {
    match event {
        Event::Incoming { .. } => "incoming",
        Event::Opened(_) => "opened",
        Event::Readable(_) => "readable",
        Event::Writable(_) => "writable",
        Event::Delivered(_) => "delivered",
        Event::Remark(..) => "remark",
        Event::Joined(..) => "joined",
        Event::Left(..) => "left",
        Event::Ended(_, End::Complete) => "complete",
        Event::Ended(_, End::Aborted) => "aborted",
        Event::Ended(_, End::TimedOut) => "timed out",
        Event::Ended(..) => "ended otherwise",
    }
}
