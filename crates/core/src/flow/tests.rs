//! What the tests of flows share: a pool and a clock, graphs, sources and sinks that do as told.

use crate::flow::{Context, FlowEvent, FlowOut, FlowParams};
use crate::graphs::Graphs;
use crate::ledger::Ledger;
use crate::port::{CommandError, Ending, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter};
use crate::queues::Queues;
use crate::shared::Shared;
use dacapo_base::{Random, Time};
use dacapo_lift::{
    Built, Catalogue, Cost, Cx, Figures, Module, ModuleSpec, Property, Setting, TimerId,
    TransportProfile, TransportSpec, Unread, Verdict,
};
use dacapo_packet::{Layout, Packet, Pool};
use dacapo_path::controllers::reserved;
use dacapo_wire::message::Message;
use dacapo_wire::{data, unit};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const PARAMS: FlowParams = FlowParams { id: 3, unit_len_max: 1_000, digest: true };

/// The longest piece of a unit in a datagram.
pub(crate) const SEGMENT: usize = 200;

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// Datagrams with nothing to say for themselves, of which tests make the transport they need.
pub(crate) const PLAIN_TRANSPORT: TransportSpec = TransportSpec {
    name: "bytes",
    id: 3,
    summary: "",
    scheme: dacapo_base::IP,
    properties: &[],
    datagram_len: 1_000,
    any_path: true,
    lanes: false,
    streams: false,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: None,
    profile: &Free,
};

#[derive(Debug)]
struct Free;

impl TransportProfile for Free {
    fn figures(&self, _: &Setting) -> Figures {
        Figures { loss_ppb: 0, loss_runs_ppb: 0, delay_ns: 0, jitter_ns: 0, rate_bps: 0 }
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }
}

/// What a call into a flow is given.
pub(crate) struct Bench {
    pub pool: Pool,
    pub random: Random,
    pub now: Time,
}

impl Bench {
    pub fn new() -> Self {
        Self { pool: Pool::new(1 << 20), random: Random::from_number(1), now: at(1_000) }
    }

    pub fn cx(&mut self) -> Context<'_> {
        Context { now: self.now, pool: &mut self.pool, random: &mut self.random }
    }

    pub fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// A packet that has come, label taken off, with this unit at this place.
    pub fn unit(&mut self, place: u64, bytes: &[u8]) -> Packet {
        self.packet(unit::Header::new(unit::Kind::Data, place), bytes)
    }

    /// The same with a mark.
    pub fn mark(&mut self, kind: unit::Kind, epoch: u64, number: u64) -> Packet {
        let whole = unit::Mark { epoch, number }.emit(unit::Header::new(kind, number));
        self.raw(&whole)
    }

    fn packet(&mut self, header: unit::Header, bytes: &[u8]) -> Packet {
        self.raw(&[&header.emit()[..], bytes].concat())
    }

    pub fn raw(&mut self, bytes: &[u8]) -> Packet {
        let mut packet = self.pool.packet_from(0, bytes, 0).unwrap();
        packet.time = self.now;
        packet
    }
}

/// What the owners of a core share, where these transports are known and no modules.
pub(crate) fn shared(transports: Vec<&'static TransportSpec>) -> Shared {
    let catalogue = Catalogue::new(Vec::new()).with_transports(transports);
    let (pool, random) = (Pool::new(1 << 20), Random::from_number(1));
    Shared::new(
        pool,
        random,
        Graphs::new(catalogue, None),
        Queues::default(),
        reserved::entry().into(),
    )
}

pub(crate) fn layout(segmented: bool) -> Layout {
    Layout { head: data::LEN, tail: 0, segment: SEGMENT, segmented }
}

/// A graph without modules, which takes a unit per packet.
pub(crate) fn empty_graph() -> Built {
    Built::new(Vec::new(), layout(false))
}

/// A graph of one module that keeps packets until its timer, or a drain, and passes feedback down.
pub(crate) fn slow_graph(after: Duration, credit: usize) -> Built {
    let slow = Slow { after, credit, kept: Vec::new() };
    Built::new(vec![Box::new(slow)], layout(false))
}

/// What a module was told that waits for the application, and how often.
pub(crate) type ToldUnread = Arc<Mutex<Vec<(u64, u64)>>>;

/// A graph of one module that wants to know, of each packet that comes, what waits.
pub(crate) fn asking_graph(told: &ToldUnread) -> Built {
    Built::new(vec![Box::new(Asks(Arc::clone(told)))], layout(false))
}

struct Asks(ToldUnread);

impl Module for Asks {
    fn spec(&self) -> &'static ModuleSpec {
        static SPEC: ModuleSpec = ModuleSpec::plain("asks", 0xF00A);
        &SPEC
    }

    fn up(&mut self, cx: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        cx.want_unread();
        Verdict::Forward
    }

    fn handle_unread(&mut self, _: &mut Cx<'_>, unread: Unread) {
        self.0.lock().unwrap().push((unread.units, unread.bytes));
    }
}

/// A graph of one module that says that it loses nothing.
pub(crate) fn keeping_graph() -> Built {
    Built::new(vec![Box::new(Keeps)], layout(false))
}

static KEEPS: ModuleSpec =
    ModuleSpec { provides: &[Property::NoLoss], ..ModuleSpec::plain("keeps", 0xF002) };

struct Keeps;

impl Module for Keeps {
    fn spec(&self) -> &'static ModuleSpec {
        &KEEPS
    }
}

static SLOW: ModuleSpec = ModuleSpec::plain("slow", 0xF001);

struct Slow {
    after: Duration,
    credit: usize,
    kept: Vec<Packet>,
}

impl Slow {
    fn let_go(&mut self, cx: &mut Cx<'_>) {
        for packet in self.kept.drain(..) {
            let _ = cx.emit_down(packet);
        }
    }
}

impl Module for Slow {
    fn spec(&self) -> &'static ModuleSpec {
        &SLOW
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.kept.push(slot.take());
        cx.arm(1, cx.now() + self.after);
        Verdict::Held
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.let_go(cx);
    }

    fn control(
        &mut self,
        _: &mut Cx<'_>,
        message: &[u8],
    ) -> Result<Vec<u8>, dacapo_lift::ControlError> {
        if message.is_empty() {
            Err(dacapo_lift::ControlError::Malformed)
        } else {
            Ok(message.to_vec())
        }
    }

    fn credit(&self) -> usize {
        self.credit - self.kept.len().min(self.credit)
    }

    fn patience(&self) -> Duration {
        self.after
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.let_go(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        for packet in self.kept.drain(..) {
            cx.discard(packet, dacapo_lift::DropReason::Shutdown);
        }
    }
}

/// What a source is to answer.
pub(crate) enum Say {
    Unit(Vec<u8>),
    /// A unit of this length is begun and not written to its end.
    Half(usize),
    Poll(SourcePoll),
}

#[derive(Default)]
pub(crate) struct Script {
    says: VecDeque<Say>,
    pub log: Vec<String>,
    pub chooses_late: bool,
    /// What it has answered when nothing is left to say.
    pub then: Option<SourcePoll>,
}

/// A source that does as told, and notes what is done to it.
#[derive(Clone, Default)]
pub(crate) struct Scripted(Arc<Mutex<Script>>);

impl Scripted {
    pub fn new(says: impl IntoIterator<Item = Say>) -> Self {
        let it = Self::default();
        it.with(|script| script.says.extend(says));
        it
    }

    /// So many units, the bytes of each its number.
    pub fn units(count: u8) -> Self {
        Self::new((0..count).map(|number| Say::Unit(vec![number; 10])))
    }

    pub fn with<R>(&self, body: impl FnOnce(&mut Script) -> R) -> R {
        body(&mut self.0.lock().unwrap())
    }

    pub fn say(&self, say: Say) {
        self.with(|script| script.says.push_back(say));
    }

    pub fn log(&self) -> Vec<String> {
        self.with(|script| std::mem::take(&mut script.log))
    }

    pub fn boxed(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

impl Source for Scripted {
    fn start(&mut self, _: Time) {
        self.with(|script| script.log.push("start".into()));
    }

    fn stop(&mut self, _: Time) {
        self.with(|script| script.log.push("stop".into()));
    }

    fn chooses_late(&self) -> bool {
        self.with(|script| script.chooses_late)
    }

    fn poll_unit(&mut self, _: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        self.with(|script| match script.says.pop_front() {
            None => script.then.clone().unwrap_or(SourcePoll::Idle),
            Some(Say::Poll(answer)) => answer,
            Some(Say::Unit(bytes)) => match unit.begin(bytes.len()) {
                Ok(()) => {
                    unit.write(&bytes);
                    SourcePoll::Unit
                }
                Err(error) => {
                    script.log.push(format!("{error:?}"));
                    SourcePoll::Blocked
                }
            },
            Some(Say::Half(len)) => {
                let _ = unit.begin(len);
                SourcePoll::Unit
            }
        })
    }

    fn command(&mut self, _: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        self.with(|script| script.log.push(format!("command {payload:?}")));
        match payload {
            [] => Err(CommandError("an empty command".into())),
            _ => Ok(payload.to_vec()),
        }
    }
}

pub(crate) struct Seen {
    pub units: Vec<(u64, Vec<u8>)>,
    pub lost: Vec<(u64, u64)>,
    pub asked: u32,
    pub ask_at: Option<Time>,
    pub takes: Taken,
    pub has_capacity: bool,
    pub end: Option<(Ending, Ledger)>,
}

/// A sink that keeps what it gets.
#[derive(Clone)]
pub(crate) struct Basket(Arc<Mutex<Seen>>);

impl Basket {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Seen {
            units: Vec::new(),
            lost: Vec::new(),
            asked: 0,
            ask_at: None,
            takes: Taken::Delivered,
            has_capacity: true,
            end: None,
        })))
    }

    pub fn with<R>(&self, body: impl FnOnce(&mut Seen) -> R) -> R {
        body(&mut self.0.lock().unwrap())
    }

    /// The numbers of the units that have come since the last call.
    pub fn numbers(&self) -> Vec<u64> {
        self.with(|seen| seen.units.drain(..).map(|(number, _)| number).collect())
    }

    pub fn lost(&self) -> Vec<(u64, u64)> {
        self.with(|seen| std::mem::take(&mut seen.lost))
    }

    pub fn ending(&self) -> Option<Ending> {
        self.with(|seen| seen.end.as_ref().map(|(ending, _)| ending.clone()))
    }

    pub fn boxed(&self) -> Box<dyn Sink> {
        Box::new(self.clone())
    }
}

impl Sink for Basket {
    fn handle_unit(&mut self, _: Time, unit: &UnitView<'_>) -> Taken {
        let mut bytes = Vec::new();
        unit.copy_to(&mut bytes);
        self.with(|seen| {
            seen.units.push((unit.number, bytes));
            seen.takes
        })
    }

    fn has_capacity(&self) -> bool {
        self.with(|seen| seen.has_capacity)
    }

    fn handle_lost(&mut self, _: Time, first: u64, count: u64) {
        self.with(|seen| seen.lost.push((first, count)));
    }

    fn handle_timeout(&mut self, _: Time) -> Option<Time> {
        self.with(|seen| {
            seen.asked += 1;
            seen.ask_at
        })
    }

    fn finish(&mut self, _: Time, ending: &Ending, ledger: &Ledger) {
        self.with(|seen| {
            assert!(seen.end.is_none(), "a sink is finished once");
            seen.end = Some((ending.clone(), ledger.clone()));
        });
    }
}

/// What was told since the last call, in words: messages first.
pub(crate) fn told(out: &mut FlowOut) -> Vec<String> {
    let messages = out.messages.drain(..).map(|message| match message {
        Message::End(end) => format!("END {} {} {}", end.units, end.bytes, end.code),
        Message::Abort(abort) => format!("ABORT {}", abort.epoch),
        Message::Done(done) => format!("DONE {} {} {}", done.epoch, done.delivered, done.lost),
        Message::Report(it) => {
            format!("REPORT {} {} {} {}", it.delivered, it.late, it.lost, it.unknown)
        }
        other => format!("{other:?}"),
    });
    let events = out.events.drain(..).map(|event| match event {
        FlowEvent::Ended { ledger, hash, failure: _ } => {
            format!("ended {} of {}, hash {hash:?}", ledger.delivered, ledger.sent)
        }
        FlowEvent::Changed { epoch } => format!("changed {epoch}"),
        FlowEvent::ChangeFailed(error) => format!("change failed {}", error.code as u16),
        FlowEvent::Retire(label) => format!("retire {label}"),
        FlowEvent::Failed(error) => format!("failed: {}", error.text),
    });
    messages.chain(events).collect()
}
