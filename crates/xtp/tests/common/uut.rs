//! A unit under test, and a peer that is played by hand.

use dacapo_base::{Random, Time};
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Control, Format, Frame, Header, Key, Limits, Options, Payload,
    Span, Spans, Traffic, TrafficControl, Writer,
};
use dacapo_xtp::{Config, ContextId, Engine, Event, Listen, Message, Open, Read};
use std::net::SocketAddr;
use std::time::Duration;

/// The peer's own key.
pub const KEY: u64 = 0x1122_3344_5566_7788;
/// The XTP port on which the unit listens.
pub const PORT: u16 = 5_000;

pub fn peer() -> SocketAddr {
    ([192, 0, 2, 1], 4_040).into()
}

/// A packet that the unit sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
}

impl Sent {
    pub fn header(&self) -> Header {
        Frame::open(&self.bytes).unwrap().header
    }

    pub fn body(&self) -> Body<'_> {
        Frame::open(&self.bytes).unwrap().body().unwrap()
    }

    pub fn format(&self) -> Format {
        self.header().format
    }

    pub fn has(&self, options: Options) -> bool {
        self.header().options.has(options)
    }

    /// The control segment.
    pub fn control(&self) -> Control {
        match self.body() {
            Body::Cntl(control) | Body::Ecntl(control, _) => control,
            Body::Tcntl(traffic, _) => traffic.control,
            other => panic!("no control packet: {other:?}"),
        }
    }

    pub fn spans(&self) -> Vec<(u64, u64)> {
        match self.body() {
            Body::Ecntl(_, spans) => spans.iter().map(|span| (span.left, span.right)).collect(),
            other => panic!("no ECNTL: {other:?}"),
        }
    }

    pub fn data(&self) -> &[u8] {
        match self.body() {
            Body::Data(payload) | Body::First(_, _, payload) => payload.data,
            other => panic!("no data: {other:?}"),
        }
    }

    /// Code and reason of a DIAG.
    pub fn diagnostic(&self) -> (u32, u32) {
        match self.body() {
            Body::Diag(diagnostic) => (diagnostic.code.0, diagnostic.reason.0),
            other => panic!("no DIAG: {other:?}"),
        }
    }
}

/// The unit, and what the peer knows.
pub struct Uut {
    pub engine: Engine,
    pub now: Time,
    pub events: Vec<Event>,
    pub id: Option<ContextId>,
    /// The unit's own key, once it was said.
    pub xkey: u64,
    pub sync: u32,
}

impl Uut {
    pub fn new(config: Config) -> Self {
        Self {
            engine: Engine::new(config, Random::from_number(1998)),
            now: Time::from_millis(1),
            events: Vec::new(),
            id: None,
            xkey: 0,
            sync: 1,
        }
    }

    /// A unit that listens.
    pub fn listening(listen: Listen) -> Self {
        Self::listening_in(Config::default(), listen)
    }

    fn listening_in(config: Config, listen: Listen) -> Self {
        let mut uut = Self::new(config);
        uut.engine.listen(Listen { port: PORT, ..listen }).unwrap();
        uut
    }

    /// A unit with whom the peer has opened a stream, and which has shown its address.
    pub fn opened(listen: Listen, limits: Option<Limits>) -> Self {
        Self::opened_in(Config::default(), listen, limits)
    }

    pub fn opened_in(config: Config, listen: Listen, limits: Option<Limits>) -> Self {
        let mut uut = Self::listening_in(config, listen);
        uut.give(first(4, limits, b"", Options::SREQ));
        let answers = uut.take();
        let Body::Tcntl(control, _) = answers[0].body() else { panic!("no TCNTL: {answers:?}") };
        uut.xkey = control.xkey;
        uut.id = uut.events.iter().find_map(|event| match event {
            Event::Incoming { id, .. } => Some(*id),
            _ => None,
        });
        // The first packet under the unit's own key shows that its answers arrive.
        let control = Control { rseq: 0, alloc: 1 << 20, echo: 0 };
        uut.control(Options::NONE, control);
        assert_eq!(uut.take().len(), 0);
        uut
    }

    /// A unit that has opened a stream with the peer, which has answered with this window.
    pub fn opening(open: &Open, alloc: u64) -> Self {
        Self::opening_in(Config::default(), open, alloc)
    }

    pub fn opening_in(config: Config, open: &Open, alloc: u64) -> Self {
        let mut uut = Self::new(config);
        uut.id = Some(uut.engine.open(uut.now, open).unwrap());
        let first = uut.take_one();
        uut.xkey = first.header().key.value();
        let control = Control { rseq: 0, alloc, echo: first.header().sync };
        uut.pass(Duration::from_millis(10));
        uut.traffic(control, Limits::default());
        uut
    }

    /// The peer sends any bytes.
    pub fn give(&mut self, bytes: Vec<u8>) {
        self.give_from(peer(), &bytes);
    }

    pub fn give_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.engine.handle_packet(self.now, from, bytes);
        while let Some(event) = self.engine.poll_event() {
            self.events.push(event);
        }
    }

    /// The key with which the peer's packets reach the context.
    fn key(&self) -> Key {
        if self.xkey == 0 { Key::own(KEY) } else { Key::returned(self.xkey) }
    }

    fn header(&self, format: Format, options: Options, seq: u64) -> Header {
        Header { options, sync: self.sync, seq, ..Header::new(self.key(), format) }
    }

    /// The peer sends data; with a request for status its number goes up.
    pub fn data(&mut self, options: Options, seq: u64, data: &[u8]) {
        if options.has_any(Options::SREQ | Options::DREQ) {
            self.sync = self.sync.wrapping_add(1);
        }
        let header = self.header(Format::Data, options, seq);
        let body = Body::Data(Payload { tag: None, data });
        self.give(packet(&header, &body));
    }

    /// The peer sends data that begins a message.
    pub fn tagged(&mut self, seq: u64, data: &[u8]) {
        let header = self.header(Format::Data, Options::BTAG, seq);
        let tag = Some(seq.to_be_bytes());
        self.give(packet(&header, &Body::Data(Payload { tag, data })));
    }

    /// The peer sends status.
    pub fn control(&mut self, options: Options, control: Control) {
        let header = self.header(Format::Cntl, options, 0);
        self.give(packet(&header, &Body::Cntl(control)));
    }

    /// The peer sends status with spans.
    pub fn error_control(&mut self, control: Control, spans: &[(u64, u64)]) {
        let spans: Vec<Span> = spans.iter().map(|&(left, right)| Span { left, right }).collect();
        let header = self.header(Format::Ecntl, Options::NONE, 0);
        self.give(packet(&header, &Body::Ecntl(control, Spans::List(&spans))));
    }

    /// The peer sends status with limits; it offers its own key.
    pub fn traffic(&mut self, control: Control, limits: Limits) {
        let header = self.header(Format::Tcntl, Options::NONE, 0);
        let traffic = Traffic { service: 4, limits: Some(limits) };
        let body = Body::Tcntl(TrafficControl { control, xkey: KEY }, traffic);
        self.give(packet(&header, &body));
    }

    /// Everything that the unit sends now.
    pub fn take(&mut self) -> Vec<Sent> {
        let (mut sent, mut bytes) = (Vec::new(), Vec::new());
        while let Some(to) = self.engine.poll_packet(self.now, &mut bytes) {
            sent.push(Sent { to, bytes: std::mem::take(&mut bytes) });
            assert!(sent.len() < 100_000, "the unit sends without end");
        }
        while let Some(event) = self.engine.poll_event() {
            self.events.push(event);
        }
        sent
    }

    /// The one packet that the unit sends now.
    pub fn take_one(&mut self) -> Sent {
        let mut sent = self.take();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// That the unit sends nothing now.
    pub fn silent(&mut self) {
        let sent = self.take();
        assert!(sent.is_empty(), "{sent:?}");
    }

    /// Time goes on by so much, at once.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        self.engine.handle_time(self.now);
    }

    /// Time goes on to when the unit has something to do.
    pub fn pass_to_deadline(&mut self) {
        self.now = self.now.max(self.engine.deadline());
        self.engine.handle_time(self.now);
    }

    pub fn id(&self) -> ContextId {
        self.id.unwrap()
    }

    pub fn write(&mut self, data: &[u8]) -> usize {
        self.engine.write(self.now, self.id(), &Message::part(data)).unwrap()
    }

    /// What the unit's user reads at once.
    pub fn read(&mut self) -> Read {
        self.engine.read(self.now, self.id(), &mut [0; 1 << 16]).unwrap()
    }

    pub fn read_bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 16];
        match self.engine.read(self.now, self.id(), &mut bytes).unwrap() {
            Read::Data { len, .. } => bytes.truncate(len),
            _ => bytes.clear(),
        }
        bytes
    }
}

pub fn packet(header: &Header, body: &Body<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::packet(header, body, &mut bytes).unwrap();
    bytes
}

/// The ends, as the peer names them: the unit, itself.
pub fn ends() -> (SocketAddr, SocketAddr) {
    (([192, 0, 2, 2], PORT).into(), ([192, 0, 2, 1], 4_000).into())
}

/// A FIRST of the peer.
pub fn first(service: u8, limits: Option<Limits>, data: &[u8], options: Options) -> Vec<u8> {
    let (destination, source) = ends();
    let segment = AddressSegment { domain: 0, address: Address::Internet { destination, source } };
    let header = Header { options, sync: 1, ..Header::new(Key::own(KEY), Format::First) };
    let traffic = Traffic { service, limits };
    packet(&header, &Body::First(segment, traffic, Payload { tag: None, data }))
}

/// A stream to the peer.
pub fn stream() -> Open {
    Open::stream(peer(), ([192, 0, 2, 1], 4_000).into(), ([192, 0, 2, 2], 5_000).into())
}

/// Bytes that differ from their neighbours.
pub fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place * 7 + place / 251) as u8).collect()
}
