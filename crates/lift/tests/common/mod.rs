//! Modules whose behaviour a test writes down in place.
#![allow(dead_code, reason = "each test file uses its part")]

use dacapo_base::{Random, Time};
use dacapo_lift::{
    Context, ControlError, Cx, Module, ModuleSpec, Runner, TimerId, Unread, Verdict,
};
use dacapo_packet::{Layout, Packet, Pool};
use std::sync::{Arc, Mutex};

/// A spec that promises nothing.
pub const fn spec(name: &'static str, id: u16, trains: bool) -> ModuleSpec {
    ModuleSpec {
        summary: "a test's",
        trains_down: trains,
        trains_up: trains,
        ..ModuleSpec::plain(name, id)
    }
}

pub static SINGLES: ModuleSpec = spec("singles", 0xF001, false);
pub static TRAINS: ModuleSpec = spec("trains", 0xF002, true);

type OnPacket = Box<dyn FnMut(&mut Cx<'_>, &mut Packet) -> Verdict + Send>;
type OnCall = Box<dyn FnMut(&mut Cx<'_>) + Send>;
type OnAnswer = Box<dyn FnMut(&mut Cx<'_>, Result<&[u8], &str>) + Send>;
type OnRoom = Box<dyn FnMut(&mut Cx<'_>, usize) + Send>;
type OnUnread = Box<dyn FnMut(&mut Cx<'_>, Unread) + Send>;
type OnTimer = Box<dyn FnMut(&mut Cx<'_>, TimerId) + Send>;

/// A module of closures; it forwards where nothing else is said.
pub struct Scripted {
    pub spec: &'static ModuleSpec,
    pub down: OnPacket,
    pub up: OnPacket,
    pub timeout: OnTimer,
    pub room: OnRoom,
    pub unread: OnUnread,
    pub drain: OnCall,
    pub flush: OnCall,
    pub control: OnCall,
    pub answered: OnAnswer,
    pub credit: Arc<Mutex<usize>>,
}

impl Scripted {
    pub fn new(spec: &'static ModuleSpec) -> Self {
        Self {
            spec,
            down: Box::new(|_, _| Verdict::Forward),
            up: Box::new(|_, _| Verdict::Forward),
            timeout: Box::new(|_, _| {}),
            room: Box::new(|_, _| {}),
            unread: Box::new(|_, _| {}),
            drain: Box::new(|_| {}),
            flush: Box::new(|_| {}),
            control: Box::new(|_| {}),
            answered: Box::new(|_, _| {}),
            credit: Arc::new(Mutex::new(usize::MAX)),
        }
    }

    pub fn down(
        mut self,
        body: impl FnMut(&mut Cx<'_>, &mut Packet) -> Verdict + Send + 'static,
    ) -> Self {
        self.down = Box::new(body);
        self
    }

    pub fn up(
        mut self,
        body: impl FnMut(&mut Cx<'_>, &mut Packet) -> Verdict + Send + 'static,
    ) -> Self {
        self.up = Box::new(body);
        self
    }

    pub fn timeout(mut self, body: impl FnMut(&mut Cx<'_>, TimerId) + Send + 'static) -> Self {
        self.timeout = Box::new(body);
        self
    }

    pub fn room(mut self, body: impl FnMut(&mut Cx<'_>, usize) + Send + 'static) -> Self {
        self.room = Box::new(body);
        self
    }

    pub fn unread(mut self, body: impl FnMut(&mut Cx<'_>, Unread) + Send + 'static) -> Self {
        self.unread = Box::new(body);
        self
    }

    pub fn drain(mut self, body: impl FnMut(&mut Cx<'_>) + Send + 'static) -> Self {
        self.drain = Box::new(body);
        self
    }

    pub fn flush(mut self, body: impl FnMut(&mut Cx<'_>) + Send + 'static) -> Self {
        self.flush = Box::new(body);
        self
    }

    pub fn control(mut self, body: impl FnMut(&mut Cx<'_>) + Send + 'static) -> Self {
        self.control = Box::new(body);
        self
    }

    pub fn answered(
        mut self,
        body: impl FnMut(&mut Cx<'_>, Result<&[u8], &str>) + Send + 'static,
    ) -> Self {
        self.answered = Box::new(body);
        self
    }

    pub fn boxed(self) -> Box<dyn Module> {
        Box::new(self)
    }
}

impl Module for Scripted {
    fn spec(&self) -> &'static ModuleSpec {
        self.spec
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        (self.down)(cx, slot)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        (self.up)(cx, slot)
    }

    fn handle_room(&mut self, cx: &mut Cx<'_>, bytes: usize) {
        (self.room)(cx, bytes);
    }

    fn handle_unread(&mut self, cx: &mut Cx<'_>, unread: Unread) {
        (self.unread)(cx, unread);
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        (self.timeout)(cx, timer);
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        (self.drain)(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        (self.flush)(cx);
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        (self.control)(cx);
        Ok(message.to_vec())
    }

    fn answered(&mut self, cx: &mut Cx<'_>, answer: Result<&[u8], &str>) {
        (self.answered)(cx, answer);
    }

    fn credit(&self) -> usize {
        *self.credit.lock().unwrap()
    }
}

/// A runner and what it lives on.
pub struct Bench {
    pub runner: Runner,
    pub pool: Pool,
    pub random: Random,
    pub now: Time,
}

impl Bench {
    pub fn new(modules: Vec<Scripted>) -> Self {
        Self {
            runner: Runner::new(modules.into_iter().map(Scripted::boxed).collect()),
            pool: Pool::new(64 << 20),
            random: Random::from_number(1),
            now: Time::from_millis(1),
        }
    }

    pub fn with<R>(&mut self, body: impl FnOnce(&mut Runner, &mut Context<'_>) -> R) -> R {
        let mut around = Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
        body(&mut self.runner, &mut around)
    }

    /// A packet of one segment that carries this text.
    pub fn packet(&mut self, text: &str) -> Packet {
        packet(&mut self.pool, text)
    }

    /// A train of segments of ten bytes, each with its place in it.
    pub fn train(&mut self, count: usize) -> Packet {
        let layout = Layout { head: 8, tail: 4, segment: 10, segmented: true };
        let packet = self.pool.alloc_train(&layout, count * 10).unwrap();
        for at in 0..count {
            self.pool.write_payload(&packet, at * 10, &[at as u8; 10]);
        }
        packet
    }

    pub fn feed(&mut self, text: &str) {
        let packet = self.packet(text);
        self.with(|runner, around| runner.feed(around, packet));
    }

    pub fn handle_up(&mut self, text: &str) {
        let packet = self.packet(text);
        self.with(|runner, around| runner.handle_up(around, packet));
    }

    pub fn run(&mut self) {
        self.with(Runner::run);
    }

    /// The texts of what goes to the network.
    pub fn taken_down(&mut self) -> Vec<String> {
        let packets: Vec<Packet> = self.runner.take_down().drain().collect();
        self.texts(packets)
    }

    /// The texts of what goes to the application.
    pub fn taken_up(&mut self) -> Vec<String> {
        let packets: Vec<Packet> = self.runner.take_up().drain().collect();
        self.texts(packets)
    }

    fn texts(&mut self, packets: Vec<Packet>) -> Vec<String> {
        let text = |packet: Packet| {
            let text = text(&self.pool, &packet);
            self.pool.free(packet);
            text
        };
        packets.into_iter().map(text).collect()
    }

    /// Flushes; how many packets lay in lanes and outputs. No view may be left.
    pub fn flush(&mut self) -> usize {
        let count = self.with(Runner::flush);
        assert_eq!(self.pool.live_views(), 0, "views are left");
        count
    }
}

pub fn packet(pool: &mut Pool, text: &str) -> Packet {
    pool.packet_from(8, text.as_bytes(), 4).unwrap()
}

pub fn text(pool: &Pool, packet: &Packet) -> String {
    let mut bytes = Vec::new();
    pool.read_payload(packet, &mut bytes);
    String::from_utf8(bytes).unwrap()
}

/// Notes in the order in which things happen.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
