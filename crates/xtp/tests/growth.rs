//! What a context keeps grows where the way is long, and nowhere else: a link of 100 Mbit/s on
//! which 500 KB are under way when it is full, and 64 KiB at first. In virtual time.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::flow::Flow;
use common::world::World;
use dacapo_base::Time;
use dacapo_link::{LinkConfig, Loss};
use dacapo_xtp::wire::Limits;
use dacapo_xtp::{Config, ContextId, Engine, Event, Listen, Message, Read, Status};
use std::time::Duration;

const FIRST_LEN: usize = 64 << 10;
const LEN_MAX: usize = 1 << 20;
const LINK_BYTES_PER_S: u64 = 12_500_000;

/// What grows, and what does not.
fn growing() -> Config {
    Config { buffer_len_max: LEN_MAX, growth_max: 4 * LEN_MAX, ..still() }
}

fn still() -> Config {
    Config { buffer_len: FIRST_LEN, ..Config::default() }
}

struct Way {
    world: World,
    flows: Vec<Flow>,
}

impl Way {
    /// So many streams over a link with this delay each way.
    fn new(config: Config, delay: Duration, loss: Loss, count: usize) -> Self {
        let rate_bits_per_s = Some(LINK_BYTES_PER_S * 8);
        let link = LinkConfig { delay, rate_bits_per_s, loss, ..LinkConfig::default() };
        let mut world = World::new(1, config, &link);
        world.ends[1].listen(Listen::on(7)).unwrap();
        let open = |_| Flow::open(&mut world, Limits::default());
        let flows = (0..count).map(open).collect();
        Self { world, flows }
    }

    /// What the first stream brings in a second, after three, as a share of the link.
    fn share(&mut self) -> f64 {
        let [flow] = self.flows.as_mut_slice() else { panic!("there is one stream") };
        let [from, to] = [3_000, 4_000].map(Time::from_millis);
        flow.read_between(&mut self.world, from, to) as f64 / LINK_BYTES_PER_S as f64
    }

    fn status(&self, end: usize, id: ContextId) -> Status {
        self.world.ends[end].status(id).unwrap()
    }

    /// What the first stream may keep: where it is sent, and where it comes.
    fn lens(&self) -> (usize, usize) {
        let far = self.flows[0].far.unwrap();
        (self.status(0, self.flows[0].id).tx_buffer_len, self.status(1, far).rx_buffer_len)
    }
}

#[test]
fn a_stream_fills_a_long_path_where_its_window_may_grow() {
    let mut way = Way::new(still(), Duration::from_millis(20), Loss::None, 1);
    let share = way.share();
    assert!((0.10..0.15).contains(&share), "64 KiB in 45 ms: {share}");
    assert_eq!(way.lens(), (FIRST_LEN, FIRST_LEN));

    let mut way = Way::new(growing(), Duration::from_millis(20), Loss::None, 1);
    let share = way.share();
    assert!((0.95..1.0).contains(&share), "{share}");
    let (tx, rx) = way.lens();
    assert!(tx.max(rx) <= LEN_MAX && tx.min(rx) > 500_000, "{tx}, {rx}");
}

/// 1 Gbit/s, 20 ms each way, as a transport of dacapo keeps things: 1 MiB at first, and a rate.
#[test]
fn a_stream_with_a_rate_fills_a_link_of_a_gigabit_whose_round_trip_takes_40_ms() {
    let (line, packet_len) = (125_000_000.0, 1_452_usize);
    let limits = Limits { out_rate: (0.96 * line) as u32, out_burst: 200_000, ..Limits::default() };
    let config = Config {
        packet_len_max: packet_len,
        buffer_len: 1 << 20,
        buffer_len_max: 16 << 20,
        growth_max: 64 << 20,
        ..Config::default()
    };
    let link = LinkConfig {
        delay: Duration::from_millis(20),
        rate_bits_per_s: Some(line as u64 * 8),
        ..LinkConfig::default()
    };
    let mut world = World::new(1, config, &link);
    world.ends[1].listen(Listen::on(7)).unwrap();
    let mut flow = Flow::open(&mut world, limits);
    let [from, to] = [2_000, 3_000].map(Time::from_millis);
    let share = flow.read_between(&mut world, from, to) as f64 / line;
    let status = world.ends[1].status(flow.far.unwrap()).unwrap();
    println!("{share:.4} of the line, {} bytes kept", status.rx_buffer_len);
    assert!(share > 0.95, "{share}");
    assert!(status.rx_buffer_len <= 16 << 20);
}

#[test]
fn on_a_short_path_the_window_stays_as_it_was() {
    let mut way = Way::new(growing(), Duration::from_micros(100), Loss::None, 1);
    assert!(way.share() > 0.95);
    let (tx, rx) = way.lens();
    assert!(rx == FIRST_LEN && tx <= 2 * FIRST_LEN, "a step was tried: {rx}, {tx}");
}

#[test]
fn while_something_lacks_nothing_grows() {
    // Of each window of 45 packets a third.
    let mut way = Way::new(growing(), Duration::from_millis(20), Loss::Random { p: 0.3 }, 1);
    way.share();
    assert_eq!(way.lens(), (FIRST_LEN, FIRST_LEN));
}

/// Two streams of which there is always more, for a second; what each may keep where it comes.
fn two_grow(way: &mut Way) -> Vec<usize> {
    let piece = vec![7; FIRST_LEN];
    let mut fars: Vec<ContextId> = Vec::new();
    for _ in 0..1_000 {
        for id in way.flows.iter().map(|flow| flow.id).collect::<Vec<_>>() {
            while way.world.ends[0].write(way.world.now, id, &Message::part(&piece)).unwrap() > 0 {}
        }
        way.world.run_until(way.world.now + Duration::from_millis(1));
        fars.extend(way.world.events[1].drain(..).filter_map(|event| match event {
            Event::Incoming { id, .. } => Some(id),
            _ => None,
        }));
        for far in &fars {
            let read = |ends: &mut Engine, now| ends.read(now, *far, &mut [0; 4_096]).unwrap();
            while let Read::Data { .. } = read(&mut way.world.ends[1], way.world.now) {}
        }
    }
    fars.iter().map(|far| way.status(1, *far).rx_buffer_len).collect()
}

#[test]
fn all_together_grow_as_far_as_they_may() {
    let config = Config { growth_max: FIRST_LEN, ..growing() };
    let mut way = Way::new(config, Duration::from_millis(20), Loss::None, 2);
    let mut grown = two_grow(&mut way);
    grown.sort_unstable();
    assert_eq!(grown, [FIRST_LEN, 2 * FIRST_LEN], "one step is all there is");
}

#[test]
fn what_one_kept_others_may_keep_when_it_is_gone() {
    let config = Config { growth_max: FIRST_LEN, ..growing() };
    let mut way = Way::new(config, Duration::from_millis(20), Loss::None, 1);
    way.share();
    let far = way.flows[0].far.unwrap();
    assert_eq!(way.lens().1, 2 * FIRST_LEN);
    for (end, id) in [(0, way.flows[0].id), (1, far)] {
        way.world.ends[end].release(way.world.now, id).unwrap();
    }
    way.flows = vec![Flow::open(&mut way.world, Limits::default())];
    way.world.events[1].clear();
    assert_eq!(two_grow(&mut way), [2 * FIRST_LEN]);
}

#[test]
fn for_a_user_who_does_not_read_nothing_grows() {
    let mut way = Way::new(growing(), Duration::from_millis(20), Loss::None, 1);
    let World { now, .. } = way.world;
    let piece = vec![7; FIRST_LEN];
    let mut got = 0;
    for tick in 0..200_u64 {
        while way.world.ends[0]
            .write(way.world.now, way.flows[0].id, &Message::part(&piece))
            .unwrap()
            > 0
        {}
        way.world.run_until(now + Duration::from_millis(10) * tick as u32);
        way.flows[0].far = way.flows[0].far.or_else(|| way.world.incoming(1));
        // Less than the window brings in that time.
        if let Some(far) = way.flows[0].far
            && let Read::Data { len, .. } =
                way.world.ends[1].read(way.world.now, far, &mut [0; 4_000]).unwrap()
        {
            got += len;
        }
    }
    assert!(got > 500_000, "{got} bytes were read");
    assert_eq!(way.lens().1, FIRST_LEN);
}
