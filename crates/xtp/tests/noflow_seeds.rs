//! Streams that heed no window (NOFLOW) and are repaired, over links that lose up to 5 %: each
//! comes to its end with every byte, whether the receiver keeps what comes behind a gap or not,
//! reports a gap at once or not, has less room than is sent, or reads late.
//!
//! A seed that fails prints the command that repeats it. `XTP_SEEDS` says how many there are.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::seeds::each_of;
use common::world::{World, address};
use dacapo_base::{Random, Time};
use dacapo_link::{LinkConfig, Loss, QueueLimit};
use dacapo_xtp::{Config, ContextId, End, Listen, Message, Mode, Open, Read, Retransmission};
use std::time::Duration;

/// Seeds of each kind.
const SEEDS: u64 = 1_000;
/// The slowest take half of that: over a link of 1 Mbit/s each gap has a whole buffer sent again.
const ENDS_BY: Time = Time::from_millis(60_000);

/// A link that loses nothing but what it is told to, however much waits before it.
fn link(random: &mut Random) -> LinkConfig {
    LinkConfig {
        delay: Duration::from_micros(100 + random.below(40_000)),
        loss: Loss::Random { p: random.unit() * 0.05 },
        rate_bits_per_s: random.chance(0.7).then(|| 1_000_000 << random.below(8)),
        queue: QueueLimit { packets: 1_000_000, bytes: 1 << 30 },
        ..LinkConfig::default()
    }
}

/// An engine at each end, whose buffers differ.
fn configs(random: &mut Random) -> [Config; 2] {
    let near = Config {
        packet_len_max: 300 + random.below(1_200) as usize,
        buffer_len: 8_192 << random.below(6),
        first_window: 2_000 + random.below(64_000),
        ..Config::default()
    };
    [near, Config { buffer_len: 8_192 << random.below(6), ..near }]
}

/// A stream from one end to the other.
struct Flow {
    near: ContextId,
    far: Option<ContextId>,
    data: Vec<u8>,
    written: usize,
    got: Vec<u8>,
    is_over: bool,
    /// How long the reader sleeps each time, and until when it does now.
    sleep: Duration,
    sleeps_until: Time,
}

impl Flow {
    fn work(&mut self, world: &mut World) {
        let piece = Message::part(&self.data[self.written..]);
        if !piece.data.is_empty() {
            self.written += world.ends[0].write(world.now, self.near, &piece).unwrap();
            if self.written == self.data.len() {
                world.ends[0].finish(world.now, self.near).unwrap();
            }
        }
        if self.far.is_none() {
            self.far = world.incoming(1);
            self.far.into_iter().for_each(|far| world.ends[1].finish(world.now, far).unwrap());
        }
        if let Some(far) = self.far.filter(|_| self.sleeps_until <= world.now) {
            self.read(world, far);
            self.sleeps_until = world.now + self.sleep;
        }
    }

    fn read(&mut self, world: &mut World, far: ContextId) {
        let mut piece = [0; 4_096];
        loop {
            match world.ends[1].read(world.now, far, &mut piece).unwrap() {
                Read::Data { len, .. } => self.got.extend_from_slice(&piece[..len]),
                Read::Hole { len } => panic!("a hole of {len} bytes"),
                Read::Nothing => return,
                Read::Finished => {
                    self.is_over = true;
                    return;
                }
            }
        }
    }

    /// When the reader is awake again, where it sleeps.
    fn wakes(&self, now: Time) -> Time {
        let sleeps = self.sleeps_until > now && !self.is_over;
        if sleeps { self.sleeps_until } else { Time::NEVER }
    }
}

/// Runs one seed; returns how many packets there were.
fn run(seed: u64, retransmission: Retransmission, fast_report: bool) -> u64 {
    let hint = format!(
        "{retransmission:?}, FASTNAK {fast_report}, seed {seed}: XTP_SEED={seed} cargo test -p \
         dacapo-xtp --test noflow_seeds"
    );
    let random = &mut Random::from_number(seed);
    let (link, configs) = (link(random), configs(random));
    let mut world = World::of(seed, configs, &link);
    let listen = Listen::on(7);
    let theirs = Mode { retransmission, ..listen.mode };
    world.ends[1].listen(Listen { mode: theirs, ..listen }).unwrap();
    let open = Open::stream(address(1), ([192, 0, 2, 2], 7).into(), address(0));
    let open = Open { mode: Mode { fast_report, without_window: true, ..open.mode }, ..open };
    let near = world.ends[0].open(world.now, &open).unwrap();
    let mut data = vec![0; 1 + random.below(300_000) as usize];
    random.fill(&mut data);
    let is_late = random.chance(0.3);
    let sleep = Duration::from_micros(if is_late { 1 + random.below(200_000) } else { 0 });
    let (far, got, sleeps_until) = (None, Vec::new(), Time::ZERO);
    let mut flow = Flow { near, far, data, written: 0, got, is_over: false, sleep, sleeps_until };
    while world.now < ENDS_BY {
        flow.work(&mut world);
        let wakes = flow.wakes(world.now);
        if !world.turn(wakes.min(ENDS_BY)) {
            world.now = wakes.min(ENDS_BY);
        }
    }
    assert!(flow.got == flow.data, "{hint}: {} of {} bytes", flow.got.len(), flow.data.len());
    let ids = [Some(near), flow.far];
    for (end, id) in ids.into_iter().enumerate() {
        assert_eq!(world.ended(end, id.unwrap()), Some(End::Complete), "{hint}: end {end}");
    }
    world.sent.len() as u64
}

#[test]
fn selective_repeat_with_reports_at_once_comes_to_its_end() {
    each_of(SEEDS, "selective, FASTNAK", |seed| run(seed, Retransmission::Selective, true));
}

#[test]
fn selective_repeat_with_reports_when_asked_comes_to_its_end() {
    each_of(SEEDS, "selective", |seed| run(seed, Retransmission::Selective, false));
}

#[test]
fn going_back_with_reports_at_once_comes_to_its_end() {
    each_of(SEEDS, "go-back-n, FASTNAK", |seed| run(seed, Retransmission::GoBackN, true));
}

#[test]
fn going_back_with_reports_when_asked_comes_to_its_end() {
    each_of(SEEDS, "go-back-n", |seed| run(seed, Retransmission::GoBackN, false));
}
