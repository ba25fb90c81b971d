//! Call by call; what it does in a bottleneck is in `tests/bottleneck`.

use super::*;

const MSS: u64 = 1_400;
const RTT: Duration = Duration::from_millis(40);

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A path of 10 Mbit/s, there and back in 40 ms, on which packets leave and come one by one.
struct Rig {
    it: Bbr,
    now: Time,
    in_flight: u64,
}

impl Rig {
    fn new() -> Self {
        Self { it: Bbr::new(ms(1_000), &Prior::default()), now: ms(1_000), in_flight: 0 }
    }

    fn cx(&self, is_limited: bool) -> ControllerCx {
        let (now, in_flight_bytes) = (self.now, self.in_flight);
        ControllerCx { now, in_flight_bytes, rtt: Some(RTT), is_limited }
    }

    fn send(&mut self) {
        self.in_flight += MSS;
        let sent = Sent {
            datagram_len: 1_400,
            packets: 1,
            bytes: MSS,
            is_acknowledged: true,
            ..Sent::default()
        };
        self.it.on_sent(&self.cx(true), &sent);
    }

    fn come(&mut self, is_limited: bool) {
        self.in_flight = self.in_flight.saturating_sub(MSS);
        let sent_at = Some(Time::from_nanos(self.now.as_nanos() - RTT.as_nanos() as u64));
        let delivered = Delivered { packets: 1, bytes: MSS, sent_at, rtt: Some(RTT) };
        self.it.on_delivered(&self.cx(is_limited), &delivered);
    }

    /// As many packets as the path takes in this time, 1.12 ms apart.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_micros(1_120);
            self.send();
            if self.now >= ms(1_000) + RTT {
                self.come(true);
            }
        }
    }

    fn lost(&mut self, packets: u64, is_silence: bool) {
        let bytes = packets * MSS;
        self.it.on_lost(&self.cx(true), &Lost { packets, bytes, sent_at: None, is_silence });
    }
}

#[test]
fn it_learns_what_the_path_delivers_and_leaves_the_startup() {
    let mut rig = Rig::new();
    assert_eq!((rig.it.phase, rig.it.window()), (Phase::Startup, 10 * MSS_MIN));
    rig.run(Duration::from_secs(1));
    assert_ne!(rig.it.phase, Phase::Startup);
    let rate = rig.it.rate() * 8;
    assert!((9_500_000..10_500_000).contains(&rate), "{rate} bit/s");
    let under_way = rig.it.under_way(100);
    assert!((48_000..52_000).contains(&under_way), "{under_way} bytes");
}

#[test]
fn it_asks_for_more_every_few_seconds_and_for_the_shortest_round_trip() {
    let mut rig = Rig::new();
    let mut seen = Vec::new();
    for _ in 0..2_000 {
        rig.run(Duration::from_millis(10));
        if seen.last() != Some(&rig.it.phase) {
            seen.push(rig.it.phase);
        }
    }
    let count = |phase: Phase| seen.iter().filter(|it| **it == phase).count();
    assert!((4..=12).contains(&count(Phase::Up)), "{} times in 20 s", count(Phase::Up));
    let gains: Vec<u64> = seen.iter().map(|phase| phase.pacing_gain()).collect();
    assert!(gains.contains(&125) && gains.contains(&90), "{gains:?}");
}

#[test]
fn silence_leaves_four_packets_and_what_was_learned() {
    let mut rig = Rig::new();
    rig.run(Duration::from_secs(2));
    let rate = rig.it.rate();
    rig.lost(30, true);
    assert_eq!((rig.it.window(), rig.it.rate()), (4 * MSS, rate));
    rig.run(Duration::from_secs(1));
    assert!(rig.it.window() > 20 * MSS, "{}", rig.it.window());
}

#[test]
fn a_pause_forgets_nothing() {
    let mut rig = Rig::new();
    rig.run(Duration::from_secs(2));
    let (rate, window) = (rig.it.rate(), rig.it.window());
    rig.now += Duration::from_secs(30);
    rig.in_flight = 0;
    rig.it.on_idle(&rig.cx(false));
    assert_eq!((rig.it.rate(), rig.it.window()), (rate, window));
}

#[test]
fn too_many_losses_while_it_asks_for_more_bound_what_is_in_flight() {
    let mut rig = Rig::new();
    rig.run(Duration::from_secs(1));
    while rig.it.phase != Phase::Up {
        rig.run(Duration::from_millis(5));
    }
    rig.lost(12, false);
    assert_eq!(rig.it.phase, Phase::Down);
    let most = rig.it.bound.max;
    assert!(most < u64::MAX && rig.it.window() <= most, "{most}");
    let before = rig.it.bound.with_headroom();
    assert!(before < most, "room is left for others");
}

#[test]
fn what_was_measured_is_paced_a_little_slower() {
    let mut rig = Rig::new();
    rig.run(Duration::from_secs(1));
    while rig.it.phase != Phase::Cruise {
        rig.run(Duration::from_millis(5));
    }
    let share = rig.it.rate_bps().unwrap() as f64 / (rig.it.rate() * 8) as f64;
    assert!((0.985..=0.995).contains(&share), "{share}");
}

#[test]
fn hostile_numbers_do_not_panic() {
    let mut rig = Rig::new();
    for bytes in [0, 1, u64::MAX] {
        let rtt = Some(Duration::MAX);
        let sent_at = Some(rig.now);
        let delivered = Delivered { packets: bytes, bytes, sent_at, rtt };
        rig.send();
        rig.in_flight = u64::MAX;
        rig.it.on_delivered(&rig.cx(true), &delivered);
        let lost = Lost { packets: bytes, bytes, sent_at: None, is_silence: false };
        rig.it.on_lost(&rig.cx(true), &lost);
        rig.it.on_marked(&rig.cx(true), &Marked { packets: bytes, left_after: None });
        assert!(rig.it.window() > 0 && rig.it.rate_bps().is_some_and(|rate| rate > 0));
        rig.in_flight = 0;
    }
}
