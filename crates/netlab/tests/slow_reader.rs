//! A reader that is slower than its flow, over datagrams, where a module keeps what was sent:
//! nothing is lost, and only its own flow waits. With `credit` or `window` nothing is sent again
//! for want of room, either.
//!
//! A failure prints its seed and the command that repeats it alone. `DACAPO_SEEDS` sets how many
//! are run.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use common::places::with_places;
use common::{Joined, Lab, config, ms};
use dacapo_base::Random;
use dacapo_base::seeds::number;
use dacapo_netlab::scenario::raw_offer;
use dacapo_netlab::seeds::check_seeds;
use dacapo_netlab::traffic::Pattern;
use dacapo_path::controllers::cubic;
use dacapo_wire::graph::GraphForm;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const UNIT_LEN: usize = 1_300;

/// The numbers of the modules, with the room that a reader is given.
const ARQ_SR: (u16, Vec<(u16, u64)>) = (7, Vec::new());
const CHECKSUM: (u16, Vec<(u16, u64)>) = (3, Vec::new());
const WINDOW: u16 = 0x13;
const CREDIT: u16 = 0x14;

/// A flow whose reader has places when he is given some, and perhaps one beside it.
struct Rig {
    lab: Lab,
    joined: Joined,
    places: Arc<AtomicU64>,
}

impl Rig {
    fn new(seed: u64, link: &str, graphs: Vec<GraphForm>, pattern: Pattern, yields: bool) -> Self {
        let yielding = || {
            let mut config = config();
            if yields {
                config.controllers = cubic::entry().into();
            }
            config
        };
        let mut lab = Lab::with(seed, link, yielding(), yielding());
        lab.pattern = pattern;
        let longest = pattern.len_max as u32 + 100;
        let offers = graphs.into_iter().enumerate();
        let offers = offers
            .map(|(at, graph)| raw_offer(&format!("flow{at}"), graph, 40_000_000, longest))
            .collect();
        lab.publish("test", offers);
        let peer = lab.dial();
        let here = lab.join(peer, "test");
        let flows = lab.offered(here);
        let (mut ports, seen) = lab.ports(&flows);
        let places = with_places(&mut ports);
        let now = lab.now();
        lab.world.core(lab.participant).answer(now, here, ports).expect("an offer waits");
        let there = lab.ready(here, 0);
        lab.activate(here);
        Self { lab, joined: Joined { here, there, seen }, places }
    }

    /// The reader has so many places, and says so.
    fn give(&mut self, places: u64) {
        self.places.store(places, Ordering::Relaxed);
        let (now, here) = (self.lab.now(), self.joined.here);
        self.lab.world.core(self.lab.participant).wake(now, here, 0);
    }

    fn came(&self, flow: usize) -> u64 {
        self.joined.numbers(flow).len() as u64
    }

    /// How many units of the flow have entered its graph.
    fn fed(&mut self) -> u64 {
        self.lab.world.core(self.lab.creator).status(self.joined.there)[0].sent
    }

    /// Ends the session; nothing is left of it.
    fn end(mut self) {
        self.give(u64::MAX);
        self.lab.close(self.lab.participant, self.joined.here);
        self.lab.end_of(self.lab.participant, self.joined.here, ms(30_000));
        self.lab.check_empty();
    }

    /// How many datagrams have left for the reader.
    fn sent(&mut self) -> u64 {
        self.lab.world.link_stats(self.lab.creator, self.lab.participant).sent
    }
}

/// Units faster than anybody reads them.
fn fast() -> Pattern {
    let (len_min, len_max) = (UNIT_LEN, UNIT_LEN);
    Pattern { count: 10_000_000, every: Duration::from_micros(100), len_min, len_max, seed: 7 }
}

/// The graph of a flow that loses nothing, with this above.
fn graph(first: Option<(u16, u64)>) -> GraphForm {
    let first = first.map(|(id, room)| (id, vec![(0, room)]));
    GraphForm::line(first.into_iter().chain([ARQ_SR, CHECKSUM]))
}

/// What a flow of 40 Mbit/s costs whose reader takes a quarter of it, and then nothing for 5 s.
struct Figures {
    packets_per_unit: f64,
    /// That left while nobody read.
    packets_paused: u64,
    /// Until 2,000 units had come when he read again, which take 520 ms.
    ms_again: u128,
}

fn figures(first: Option<(u16, u64)>, yields: bool) -> Figures {
    let link = "rate=100Mbit/s,delay=20ms,queue=1000";
    let mut rig = Rig::new(1, link, vec![graph(first)], fast(), yields);
    let read = |rig: &mut Rig, tenths: u32| {
        for _ in 0..tenths {
            rig.give(96);
            rig.lab.run(ms(100));
        }
        (rig.sent(), rig.came(0))
    };
    let before = read(&mut rig, 30);
    let after = read(&mut rig, 100);
    assert_eq!(after.1 - before.1, 9_600, "the reader had to wait");
    rig.lab.run(ms(5_000));
    let packets_paused = rig.sent() - after.0;
    rig.give(u64::MAX);
    let (begin, seen) = (rig.lab.now(), rig.joined.clone());
    let has_come = |_: &mut Lab| seen.numbers(0).len() as u64 >= after.1 + 2_000;
    assert!(rig.lab.wait(ms(60_000), has_come), "2,000 units in a minute");
    let ms_again = rig.lab.now().since(begin).as_millis();
    let packets_per_unit = (after.0 - before.0) as f64 / 9_600.0;
    println!(
        "{first:?}, yields {yields}: {packets_per_unit:.3} packets a unit, {packets_paused} while \
         nobody reads, 2,000 units after {ms_again} ms"
    );
    rig.end();
    Figures { packets_per_unit, packets_paused, ms_again }
}

#[test]
fn what_has_no_room_is_sent_again_and_again_but_with_flow_control() {
    for yields in [false, true] {
        let without = figures(None, yields);
        for first in [(CREDIT, 512), (WINDOW, 1 << 20)] {
            let with = figures(Some(first), yields);
            assert!(with.packets_per_unit < 1.05, "{:.3}", with.packets_per_unit);
            // Room for a megabyte fills first; then a question every 2 s, and the path's own.
            assert!(with.packets_paused < 900, "{}", with.packets_paused);
            // Without, it depends on which probe was the last.
            assert!(with.ms_again < 1_000, "{} ms", with.ms_again);
            let is_held = yields || without.packets_per_unit > 2.0;
            assert!(is_held, "{:.3} without: the module is for nothing", without.packets_per_unit);
            assert!(without.packets_paused > with.packets_paused);
        }
    }
}

#[test]
fn a_reader_who_stops_holds_up_his_own_flow_and_no_other() {
    let mut pattern = fast();
    (pattern.count, pattern.every) = (10_000, ms(1));
    let graphs = vec![graph(Some((CREDIT, 64))), graph(Some((CREDIT, 64)))];
    let mut rig = Rig::new(1, "rate=100Mbit/s,delay=20ms,queue=1000", graphs, pattern, true);
    rig.lab.run(ms(5_000));
    let (stopped, other) = (rig.came(0), rig.came(1));
    assert_eq!(stopped, 0);
    assert!((4_900..=5_000).contains(&other), "{other} units in 5 s");
    rig.give(u64::MAX);
    for flow in 0..2 {
        let (here, there) = rig.lab.ledgers(&rig.joined, flow, ms(60_000));
        assert_eq!((here.delivered, there.delivered), (10_000, 10_000), "flow {flow}");
    }
    rig.end();
}

/// A flow and a link that a seed draws, whose reader has places now and then, until all has come;
/// the reason if that is not so.
fn broken(seed: u64) -> Option<String> {
    let mut random = Random::from_number(seed ^ 0xC0_2E_D1);
    let link = format!(
        "rate=50Mbit/s,delay={}ms,jitter={}ms,loss={}%,dup={}%,queue=500",
        1 + random.below(40),
        random.below(2),
        random.below(6),
        random.below(3),
    );
    let by_bytes = random.chance(0.5);
    let len_max = 16 + random.below(1_200) as usize;
    let pattern = Pattern {
        count: 300 + random.below(500),
        every: Duration::from_micros(200 + random.below(2_000)),
        len_min: 16,
        len_max,
        seed,
    };
    let room = if by_bytes { 2_000 + random.below(60_000) } else { 1 + random.below(200) };
    let module = if by_bytes { WINDOW } else { CREDIT };
    let graphs = vec![graph(Some((module, room)))];
    let mut rig = Rig::new(seed, &link, graphs, pattern, random.chance(0.5));
    let begin = rig.lab.now();
    while rig.came(0) < pattern.count {
        if rig.lab.now() > begin + Duration::from_secs(600) {
            return Some(format!("{} of {} units in ten minutes", rig.came(0), pattern.count));
        }
        rig.give(random.below(60));
        rig.lab.run(ms(random.below(100)));
        let ahead = rig.fed() - rig.came(0);
        if !by_bytes && ahead > room {
            return Some(format!("{ahead} units are ahead of a reader with room for {room}"));
        }
    }
    rig.give(u64::MAX);
    let (here, there) = rig.lab.ledgers(&rig.joined, 0, ms(60_000));
    let numbers = rig.joined.numbers(0);
    if !numbers.iter().copied().eq(0..pattern.count) {
        return Some("out of order, or not each once".into());
    }
    if here.delivered != pattern.count || !here.closes() || !there.closes() {
        return Some(format!("the accounts are not even: {here:?} {there:?}"));
    }
    rig.end();
    None
}

#[test]
fn two_hundred_seeds_lose_nothing_and_send_no_more_than_there_is_room_for() {
    check_seeds("slow_reader one_seed", number("DACAPO_SEEDS", 200), broken);
}

#[test]
#[ignore = "10,000 worlds, a quarter of an hour: make nightly"]
fn ten_thousand_seeds_lose_nothing_and_send_no_more_than_there_is_room_for() {
    check_seeds("slow_reader one_seed", number("DACAPO_SEEDS", 10_000), broken);
}

#[test]
fn one_seed() {
    assert_eq!(broken(number("DACAPO_SEED", 1998)), None);
}
