//! What the parts do by themselves: marks, delay, target, reference window.

use super::*;

const MSS: f64 = 1_200.0;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// One that is told what both ends count every 10 ms, at 50 ms there and back.
struct Bench {
    it: Scream,
    now: Time,
    in_flight: u64,
}

impl Bench {
    fn new() -> Self {
        let mut it =
            Self { it: Scream::new(at(1_000), &Prior::default()), now: at(1_000), in_flight: 0 };
        it.count(0, 0, 0, ms(0));
        it
    }

    fn cx(&self) -> ControllerCx {
        let rtt = Some(ms(50));
        ControllerCx { now: self.now, in_flight_bytes: self.in_flight, rtt, is_limited: true }
    }

    /// Ten milliseconds later so many packets have come, and what waits is so long.
    fn count(&mut self, packets: u64, lost: u64, marked: u64, waits: Duration) {
        let asked = self.now - ms(50);
        self.now += ms(10);
        let counts = Counts {
            left_after: asked,
            asked: asked + ms(10),
            packets,
            bytes: packets * MSS as u64,
            lost,
            marked,
            rtt: ms(50) + waits,
            one_way_ns: -7_000_000 + waits.as_nanos() as i64,
        };
        self.in_flight = self.it.reference.bytes as u64;
        self.it.on_counted(&self.cx(), &counts);
    }

    /// The same so often.
    fn run(&mut self, times: u32, packets: u64, marked: u64, waits: Duration) {
        (0..times).for_each(|_| self.count(packets, 0, marked, waits));
    }

    fn packets(&self) -> f64 {
        self.it.reference.bytes / MSS
    }
}

#[test]
fn it_begins_with_ten_packets_and_grows_while_nothing_waits() {
    let mut bench = Bench::new();
    assert_eq!((bench.packets(), bench.it.ecn()), (10.0, Ecn::Ect1));
    bench.run(100, 3, 0, ms(0));
    assert!((25.0..60.0).contains(&bench.packets()), "{}", bench.packets());
    let rate = bench.it.rate_bps().unwrap();
    let in_a_round = bench.it.reference.bytes * 8.0 / 0.05;
    assert!((0.9..=1.0).contains(&(rate as f64 / in_a_round)), "{rate} of {in_a_round}");
}

#[test]
fn a_loss_leaves_seven_tenths_once_in_a_round_trip() {
    let mut bench = Bench::new();
    bench.run(100, 3, 0, ms(0));
    let before = bench.packets();
    (0..4).for_each(|_| bench.count(3, 1, 0, ms(0)));
    assert!((0.68..0.75).contains(&(bench.packets() / before)), "{}", bench.packets() / before);
    bench.run(4, 3, 0, ms(0));
    let before = bench.packets();
    bench.count(3, 1, 0, ms(0));
    assert!((0.68..0.75).contains(&(bench.packets() / before)), "{}", bench.packets() / before);
}

#[test]
fn marks_take_by_their_share_and_few_take_little() {
    let left = |marked: u64| {
        let mut bench = Bench::new();
        bench.run(200, 10, 0, ms(0));
        let before = bench.packets();
        bench.run(40, 10, marked, ms(0));
        bench.packets() / before
    };
    let (none, few, all) = (left(0), left(1), left(10));
    assert!(none > 1.0 && few > 0.7 && few < none, "{none} {few}");
    assert!(all < 0.5, "{all}");
}

#[test]
fn what_waits_for_longer_than_half_of_the_target_takes_before_anything_is_lost() {
    for (waits, yields) in [(20, false), (55, true), (200, true)] {
        let mut bench = Bench::new();
        bench.run(100, 3, 0, ms(0));
        let before = bench.packets();
        bench.run(20, 3, 0, ms(waits));
        assert_eq!(bench.packets() < before, yields, "{waits} ms: {}", bench.packets() / before);
    }
}

#[test]
fn a_spike_of_one_answer_is_no_queue() {
    let mut bench = Bench::new();
    bench.run(100, 3, 0, ms(0));
    let before = bench.packets();
    bench.count(3, 0, 0, ms(90));
    bench.run(3, 3, 0, ms(0));
    assert!(bench.packets() >= before, "{} of {before}", bench.packets());
}

#[test]
fn a_queue_on_the_way_back_is_none_and_neither_is_a_clock_that_drifts() {
    let mut delay = Delay::default();
    let mut waits = |now: u64, rtt: u64, one_way: i64| {
        delay.handle(at(now), ms(rtt), Some(one_way * 1_000_000), ms(25));
        (delay.queue_s * 1_000.0).round() as i64
    };
    assert_eq!(waits(10_000, 50, -900), 0);
    assert_eq!(waits(10_100, 80, -890), 10, "20 of 30 wait on the way back");
    assert_eq!(waits(10_200, 50, -500), 0, "somebody has set the clock");
    // Half a millisecond a second, which is 150 in the end, and 20 ms of queue.
    for step in 0..3_000 {
        let waited = waits(20_000 + step * 100, 70, -880 - step as i64 / 20);
        assert!((9..=20).contains(&waited) || step < 300, "{step}: {waited}");
    }
}

#[test]
fn only_a_queue_that_stands_whatever_is_done_is_that_of_others() {
    // What waits at each step of 50 ms, and what is lost; it yields from the first second on.
    let bytes = |step| if step < 20 { 9.0 * MSS } else { 2.0 * MSS };
    let run = |waits: &dyn Fn(u64) -> f64, loses: bool| {
        let (mut it, mut most) = (Target::new(at(0)), 0.0_f64);
        for step in 1..1_000 {
            if loses && step % 50 == 0 {
                it.handle_lost();
            }
            it.handle(at(step * 50), waits(step), bytes(step), ms(100));
            most = most.max(it.target_s);
        }
        (most, it.poll_untrue(at(50_000), 2.0 * MSS))
    };
    let longer = |step| if step < 10 { 0.01 } else { 0.04 };
    assert_eq!(run(&longer, false), (0.06, true), "nothing varies, or is lost: the way is longer");
    let own = |step| if step % 60 < 40 { 0.2 } else { 0.01 };
    assert_eq!(run(&own, true), (0.06, false), "it goes when less is sent");
    let (most, is_untrue) = run(&|_| 0.2, true);
    assert!(most > 0.25 && !is_untrue, "{most}");
    assert_eq!(run(&|_| 3.0, true).0, 0.4, "it has an end");
}

#[test]
fn a_target_that_has_risen_falls_when_the_others_are_gone() {
    let mut it = Target::new(at(0));
    for step in 1..400 {
        it.handle_lost();
        it.handle(at(step * 50), 0.2, MSS, ms(100));
    }
    assert!(it.target_s > 0.2);
    (400..430).for_each(|step| it.handle(at(step * 50), 0.0, MSS, ms(100)));
    assert_eq!(it.target_s, 0.06);
}

#[test]
fn silence_leaves_two_packets_and_a_pause_ten() {
    let mut bench = Bench::new();
    bench.run(200, 10, 0, ms(0));
    assert!(bench.packets() > 20.0);
    let cx = bench.cx();
    bench.it.on_idle(&cx);
    assert_eq!(bench.packets(), 10.0);
    let lost = Lost { packets: 9, bytes: 9_000, sent_at: None, is_silence: true };
    bench.it.on_lost(&cx, &lost);
    assert_eq!(bench.packets(), 2.0);
}

#[test]
fn what_is_counted_may_be_anything() {
    for seed in 0..200 {
        let mut random = dacapo_base::Random::from_number(seed);
        let mut any = |most: u32| {
            let any = u64::from(random.next_u32()) << random.below(32);
            if random.chance(0.5) { any } else { u64::from(most.min(any as u32)) }
        };
        let mut bench = Bench::new();
        for _ in 0..200 {
            bench.now += Duration::from_nanos(any(20_000_000));
            let counts = Counts {
                left_after: Time::from_nanos(any(9)),
                asked: Time::from_nanos(any(9)),
                packets: any(100),
                bytes: any(100_000),
                lost: any(3),
                marked: any(100),
                rtt: Duration::from_nanos(any(100_000_000)),
                one_way_ns: any(100_000_000).cast_signed(),
            };
            bench.it.on_counted(&bench.cx(), &counts);
            let (window, bytes) = (bench.it.window(), bench.it.reference.bytes);
            assert!(bytes >= 2.0 * MSS && bytes.is_finite(), "seed {seed}: {bytes}");
            assert!(window >= 1_200 && bench.it.rate_bps() >= Some(50_000), "seed {seed}");
        }
    }
}
