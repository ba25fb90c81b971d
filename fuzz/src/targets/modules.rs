//! Every graph of modules as hostile packets come up through it.
//!
//! What it is not: a judge of what units say; `modules_way` is, where the sender is honest.

use crate::input::Input;
use crate::{known, oracle};
use dacapo_base::{Random, Time};
use dacapo_heap::measure;
use dacapo_lift::{Graph, Node, Params, Runner, Surroundings};
use dacapo_packet::{Layout, Packet, Pool};
use std::time::Duration;

/// The graphs that are tried, from the application down.
pub(super) const GRAPHS: [&[&str]; 12] = [
    &[],
    &["segment"],
    &["sequence"],
    &["checksum"],
    &["repeat"],
    &["segment", "sequence"],
    &["segment", "checksum"],
    &["sequence", "repeat"],
    &["sequence", "checksum"],
    &["segment", "sequence", "checksum"],
    &["segment", "sequence", "repeat"],
    &["segment", "sequence", "repeat", "checksum"],
];

const PATH_HEAD: usize = 5;

/// The longest datagram of what is built here.
pub(super) const DATAGRAM_LEN: usize = 200;

/// The longest unit.
pub(super) const UNIT_LEN_MAX: usize = 4_000;

/// One end of a flow: a runner and what it lives on.
pub(super) struct End {
    pub runner: Runner,
    pub pool: Pool,
    pub random: Random,
    pub now: Time,
    pub layout: Layout,
    pub module_count: usize,
}

impl End {
    /// An end with these modules.
    pub fn new(names: &[&str]) -> Self {
        Self::try_new(names).expect("the graphs of GRAPHS can be built")
    }

    /// The same; none where these modules make no graph.
    pub fn try_new(names: &[&str]) -> Option<Self> {
        let catalogue = dacapo::catalogue();
        let node = |name: &&str| {
            let entry = catalogue.by_name(name)?;
            Some(Node { module: entry.spec.id, params: Params::new() })
        };
        let graph = Graph { nodes: names.iter().map(node).collect::<Option<_>>()? };
        let built = catalogue.build(&graph, PATH_HEAD, DATAGRAM_LEN, UNIT_LEN_MAX)?;
        Some(Self {
            runner: Runner::new(built.modules),
            pool: Pool::new(4 << 20),
            random: Random::from_number(1),
            now: Time::from_millis(1),
            layout: built.layout,
            module_count: names.len(),
        })
    }

    /// Calls the runner with its surroundings.
    pub fn with<R>(&mut self, body: impl FnOnce(&mut Runner, &mut Surroundings<'_>) -> R) -> R {
        let mut around =
            Surroundings { now: self.now, pool: &mut self.pool, random: &mut self.random };
        body(&mut self.runner, &mut around)
    }

    /// Feeds a unit, if there is credit and room.
    pub fn feed(&mut self, unit: &[u8]) -> bool {
        if self.runner.credit() == 0 || unit.is_empty() || self.layout_takes(unit.len()) {
            return false;
        }
        let Ok(mut packet) = self.pool.alloc_train(&self.layout, unit.len()) else { return false };
        self.pool.write_payload(&packet, 0, unit);
        packet.set_unit_ends(true, true);
        packet.time = self.now;
        self.with(|runner, around| {
            runner.feed(around, packet);
            runner.run(around);
        });
        true
    }

    fn layout_takes(&self, len: usize) -> bool {
        len > self.layout.segment && !self.layout.segmented
    }

    /// Takes a packet from the network.
    pub fn receive(&mut self, mut packet: Packet) {
        packet.time = self.now;
        self.with(|runner, around| {
            runner.handle_up(around, packet);
            runner.run(around);
        });
    }

    /// Takes a datagram from the network, if there is room.
    pub fn receive_bytes(&mut self, datagram: &[u8]) {
        if let Ok(packet) = self.pool.packet_from(0, datagram, 0) {
            self.receive(packet);
        }
    }

    /// Lets time pass; every timer fires at its time.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut rounds = 0;
        while let Some(at) = self.runner.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.with(Runner::handle_timeout);
            rounds += 1;
            assert!(rounds < 100_000, "timers without progress");
        }
        self.now = end;
    }

    /// The datagrams that went down.
    pub fn wire(&mut self) -> Vec<Vec<u8>> {
        let packets: Vec<Packet> = self.runner.take_down().drain().collect();
        let mut datagrams = Vec::new();
        for packet in packets {
            let segments = 0..packet.segment_count();
            datagrams.extend(segments.map(|at| self.pool.segment(&packet, at).to_vec()));
            self.pool.free(packet);
        }
        datagrams
    }

    /// The units that went up.
    pub fn units(&mut self) -> Vec<Vec<u8>> {
        let packets: Vec<Packet> = self.runner.take_up().drain().collect();
        let mut units: Vec<Vec<u8>> = Vec::new();
        for packet in packets {
            if packet.is_unit_first() || units.is_empty() {
                units.push(Vec::new());
            }
            if let Some(unit) = units.last_mut() {
                self.pool.read_payload(&packet, unit);
            }
            self.pool.free(packet);
        }
        units
    }

    /// Ends it: no view may be left.
    pub fn finish(mut self) {
        self.with(|runner, around| runner.flush(around));
        assert_eq!(self.pool.live_views(), 0, "views are kept after a flush");
    }
}

/// One byte chooses the graph; then packets, trains, controls, units down, and time.
pub fn up(data: &[u8]) {
    let mut input = Input(data);
    let names = GRAPHS.get(usize::from(input.u8()) % GRAPHS.len()).copied().unwrap_or_default();
    let mut end = End::new(names);
    // Who sends can compute a checksum, too.
    let mut seal = End::new(&["checksum"]);
    let has_checksum = names.contains(&"checksum");
    let mut seals = move |bytes: &[u8]| {
        seal.feed(bytes);
        let sealed = seal.wire().concat();
        if has_checksum && !sealed.is_empty() { sealed } else { bytes.to_vec() }
    };
    let pool_before = end.pool.stats().bytes as u64;
    let mut allocated = 0;
    while !input.is_empty() {
        let step = Step::read(&mut input, &mut seals);
        let ((), used) = measure(|| step.apply(&mut end));
        allocated += used.allocated_bytes;
        end.wire();
        end.units();
        while end.runner.poll_event().is_some() {}
    }
    // Bodies are the pool's, which has a budget of its own.
    let bodies = end.pool.stats().bytes as u64 - pool_before;
    let most = oracle::limit(data.len()) + windows(names, data.len());
    let beside = allocated.saturating_sub(bodies);
    assert!(beside <= most, "{names:?}: {beside} bytes beside the pool for {}", data.len());
    assert!(end.pool.stats().bytes <= 4 << 20, "the pool exceeds its budget");
    end.finish();
}

/// What the windows of these modules may take, whatever comes: that of `sequence` once, as long as
/// it is; that of `segment` by the packets that came.
fn windows(names: &[&str], len: usize) -> u64 {
    const SEQUENCE_BYTES: u64 = 8_192 * 40;
    let units = len as u64 / 4;
    let sequence = u64::from(names.contains(&"sequence")) * SEQUENCE_BYTES;
    sequence + u64::from(names.contains(&"segment")) * known::SEGMENT_BYTES * units
}

/// Something that happens to a receiver.
enum Step<'a> {
    Packet(Vec<u8>),
    Train { segment: usize, bytes: &'a [u8] },
    Control { module: usize, message: &'a [u8] },
    Feed(&'a [u8]),
    Pass(Duration),
    Drain,
}

impl<'a> Step<'a> {
    fn read(input: &mut Input<'a>, seal: &mut impl FnMut(&[u8]) -> Vec<u8>) -> Self {
        match input.u8() % 8 {
            0 | 1 => Self::Packet(input.piece().to_vec()),
            2 | 3 => Self::Packet(seal(input.piece())),
            4 => Self::Train { segment: usize::from(input.u8()).max(1), bytes: input.piece() },
            5 => Self::Control { module: usize::from(input.u8()), message: input.piece() },
            6 => Self::Feed(input.piece()),
            _ => match input.u8() {
                255 => Self::Drain,
                time => Self::Pass(Duration::from_millis(u64::from(time) * 5)),
            },
        }
    }

    fn apply(self, end: &mut End) {
        match self {
            Self::Packet(bytes) => end.receive_bytes(&bytes),
            Self::Train { segment, bytes } => {
                let layout = Layout { head: 0, tail: 0, segment, segmented: true };
                if bytes.len().div_ceil(segment) > dacapo_packet::TRAIN_SEGMENTS_MAX {
                    return;
                }
                if let Ok(packet) = end.pool.alloc_train(&layout, bytes.len()) {
                    end.pool.write_payload(&packet, 0, bytes);
                    end.receive(packet);
                }
            }
            Self::Control { module, message } => {
                let answer = end.with(|runner, around| runner.control(around, module, message));
                assert!(module < end.module_count || answer.is_err(), "nobody answers");
                assert!(!answer.is_ok_and(|it| it.len() > 4_096), "a long answer");
            }
            Self::Feed(unit) => drop(end.feed(unit)),
            Self::Pass(time) => end.pass(time),
            Self::Drain => end.with(Runner::drain),
        }
    }
}

/// What an honest sender of each graph says, as packets of a script.
pub fn up_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, names) in GRAPHS.iter().enumerate() {
        let mut sender = End::new(names);
        let mut script = vec![number as u8];
        for len in [20, 60, 330] {
            sender.feed(&vec![len as u8; len]);
            for datagram in sender.wire() {
                script.extend_from_slice(&[0, datagram.len() as u8]);
                script.extend_from_slice(&datagram);
            }
            script.extend_from_slice(&[7, 9]);
        }
        script.extend_from_slice(&[5, 0, 9, 1, 0, 0, 0, 0, 0, 1, 0, 0, 7, 255]);
        seeds.push(script);
        sender.finish();
    }
    seeds
}
