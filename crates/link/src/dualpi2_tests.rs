//! DualPI2 as RFC 9332 says it: the probabilities, one by one, and flows of both kinds.

use super::*;
use crate::dice::PassageThrow;
use crate::fifo::Ticket;
use crate::flows::{Control, Flow, LEN, Packet, World};

const TARGET: Duration = Duration::from_millis(15);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at_ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn entry(number: u64, ecn: Ecn, sent: Time) -> Entry<Packet> {
    let throw = PassageThrow { delay: Duration::ZERO, hold: None, corruption: None };
    let ticket = Ticket { throw, index: number, sent, copy: false };
    let item = Some(Packet { flow: 0, number, len: LEN, ecn });
    Entry { item, len: LEN, ecn, ticket }
}

/// One whose probability stays as it is.
fn fixed(base: f64) -> DualPi2 {
    let next_update = Time::NEVER;
    DualPi2 { base, next_update, ..DualPi2::new(TARGET, Time::ZERO) }
}

/// Lets 10,000 of one kind through that have waited for so long, each with another one behind it;
/// how many were marked, and dropped.
fn judged(base: f64, ecn: Ecn, wait: Duration) -> (u64, u64) {
    let mut dual = fixed(base);
    let (mut classic, mut low) = (Fifo::default(), Fifo::default());
    let mut stats = LinkStats::default();
    let mut left = 0;
    for number in 0..10_001 {
        let fifo = if ecn.is_l4s() { &mut low } else { &mut classic };
        fifo.push(entry(number, ecn, Time::ZERO));
    }
    while classic.len() + low.len() > 1 {
        let took = dual.take(Time::ZERO + wait, Time::ZERO, &mut classic, &mut low, &mut stats);
        left += u64::from(took.is_some());
    }
    let waiting = (classic.len() + low.len()) as u64;
    assert_eq!(left + stats.dropped_aqm + waiting, 10_001);
    (stats.marked, stats.dropped_aqm)
}

#[test]
fn marks_are_k_times_the_base_probability_and_classic_drops_its_square() {
    for base in [0.0, 0.001, 0.03, 0.1, 0.3, 0.49] {
        let near = |count: u64, share: f64| (count as f64 - 10_000.0 * share).abs() <= 1.5;
        let (marked, dropped) = judged(base, Ecn::Ect1, Duration::ZERO);
        assert!(near(marked, 2.0 * base) && dropped == 0, "{base}: {marked}, {dropped}");
        let (marked, dropped) = judged(base, Ecn::NotEct, Duration::ZERO);
        assert!(near(dropped, base * base) && marked == 0, "{base}: {marked}, {dropped}");
        let (marked, dropped) = judged(base, Ecn::Ect0, Duration::ZERO);
        assert!(near(marked, base * base) && dropped == 0, "{base}: {marked}, {dropped}");
    }
}

#[test]
fn above_a_millisecond_all_of_the_low_latency_queue_are_marked_but_for_the_last() {
    let step = ms(1);
    assert_eq!(judged(0.0, Ecn::Ect1, step), (0, 0));
    // The first adds up to 1 and no more.
    assert_eq!(judged(0.0, Ecn::Ect1, step + Duration::from_nanos(1)), (9_999, 0));
    assert_eq!(judged(0.0, Ecn::Ect0, ms(14)), (0, 0));
    let (mut dual, mut low) = (fixed(0.0), Fifo::default());
    let mut stats = LinkStats::default();
    for number in 0..10 {
        low.push(entry(number, Ecn::Ect1, Time::ZERO));
        assert!(
            dual.take(at_ms(50), Time::ZERO, &mut Fifo::default(), &mut low, &mut stats).is_some()
        );
    }
    assert_eq!(stats.marked, 0, "each was alone");
}

#[test]
fn overload_drops_whatever_can_be_marked_and_marks_the_rest_of_the_low_latency_queue() {
    for base in [0.5, 0.7, 1.0] {
        let near = |count: u64, share: f64| (count as f64 - 10_000.0 * share).abs() <= 1.5;
        let (marked, dropped) = judged(base, Ecn::Ect1, Duration::ZERO);
        assert!(near(dropped, base * base), "{base}: {dropped} dropped");
        assert!(near(marked, 1.0 - base * base), "{base}: {marked} marked");
        let (marked, dropped) = judged(base, Ecn::Ect0, Duration::ZERO);
        assert!(near(dropped, base * base) && marked == 0, "{base}: {marked}, {dropped}");
    }
}

#[test]
fn while_both_wait_the_classic_queue_gets_a_tenth() {
    let (mut dual, mut stats) = (fixed(0.0), LinkStats::default());
    let (mut classic, mut low) = (Fifo::default(), Fifo::default());
    for number in 0..10_000 {
        classic.push(entry(number, Ecn::NotEct, Time::ZERO));
        low.push(entry(number, Ecn::Ect1, Time::ZERO));
    }
    for _ in 0..10_000 {
        assert!(dual.take(Time::ZERO, Time::ZERO, &mut classic, &mut low, &mut stats).is_some());
    }
    assert!((9_000..=9_001).contains(&classic.len()), "{} are left", classic.len());
    while !low.is_empty() {
        assert!(dual.take(Time::ZERO, Time::ZERO, &mut classic, &mut low, &mut stats).is_some());
    }
    let left = classic.len();
    assert!(dual.take(Time::ZERO, Time::ZERO, &mut classic, &mut low, &mut stats).is_some());
    assert_eq!(classic.len(), left - 1, "alone it has everything");
}

#[test]
fn the_probability_follows_the_wait_by_both_gains() {
    let mut dual = DualPi2::new(TARGET, Time::ZERO);
    dual.update(at_ms(15), Some(Time::ZERO));
    assert!(dual.base() == 0.0, "not yet");
    // At 16 ms it has waited for 16, at 32 for 32.
    dual.update(at_ms(32), Some(Time::ZERO));
    let expected = 0.16 * 0.001 + 3.2 * 0.016 + 0.16 * 0.017 + 3.2 * 0.016;
    assert!((dual.base() - expected).abs() < 1e-12, "{}", dual.base());
    // The older head counts, and at its target only the change does.
    let before = dual.base();
    dual.update(at_ms(48), Some(at_ms(33)));
    let expected = before + 3.2 * (0.015 - 0.032);
    assert!((dual.base() - expected).abs() < 1e-12, "{}", dual.base());
}

#[test]
fn updates_that_are_made_together_are_those_that_were_due_one_by_one() {
    for oldest in [None, Some(at_ms(3)), Some(at_ms(990))] {
        let start = DualPi2 {
            base: 0.3,
            wait_before_s: 0.02,
            next_update: at_ms(1_000),
            ..DualPi2::new(TARGET, Time::ZERO)
        };
        let (mut together, mut singly) = (start.clone(), start);
        together.update(at_ms(1_700), oldest);
        for ms in 1_000..=1_700 {
            singly.update(at_ms(ms), oldest);
        }
        assert!((together.base - singly.base).abs() < 1e-9, "{oldest:?}: {together:?} {singly:?}");
        assert_eq!(together.next_update, singly.next_update, "{oldest:?}");
        assert!((together.wait_before_s - singly.wait_before_s).abs() < 1e-9, "{oldest:?}");
    }
}

#[test]
fn the_longest_pause_takes_no_longer_than_a_short_one() {
    let mut dual = DualPi2 { base: 1.0, ..DualPi2::new(TARGET, Time::ZERO) };
    dual.update(Time::NEVER - ms(1), None);
    assert!(dual.base() == 0.0 && dual.next_update >= Time::NEVER - ms(16));
    for target in [TARGET, Duration::from_secs(60)] {
        let mut dual = DualPi2::new(target, Time::ZERO);
        dual.update(Time::NEVER, Some(Time::ZERO));
        assert!(dual.base() == 1.0, "{target:?}");
        dual.update(Time::NEVER, Some(Time::ZERO));
        assert!(dual.base() == 1.0, "{target:?}");
    }
}

/// What is expected: a Reno flow has a window of 1.22 / p', one by DCTCP's law 2 / (2 p'), and the
/// classic one waits for 15 ms on top of a round trip of 20 ms. So rates are as 35 / 20 / 1.22 to
/// 1, or 59 % beside 41 %; without the coupling the low latency queue takes nine tenths.
///
/// The limits: flows of each kind get two fifths of the link at least, which is used to 97 %; 99 %
/// of the packets of the scalable ones wait for at most 1.5 ms; of the classic ones half wait for
/// 10 to 20 ms, and 95 % for at most 25.
#[test]
fn scalable_and_classic_flows_share_the_link_and_the_former_hardly_wait() {
    for (classic, pairs) in [(Ecn::NotEct, 1), (Ecn::Ect0, 1), (Ecn::NotEct, 4), (Ecn::Ect0, 4)] {
        let back = ms(10);
        let reno = || Flow::new(Control::Reno, classic, back);
        let scalable = || Flow::new(Control::Scalable, Ecn::Ect1, back);
        let flows = (0..pairs).flat_map(|_| [reno(), scalable()]).collect();
        let mut world = World::new("rate=40Mbit/s,delay=10ms,aqm=dualpi2", flows);
        world.warm_up(ms(20_000));
        world.run(ms(60_000));
        let what = format!("{pairs} with {classic:?}");
        // A packet takes 0.3 ms.
        let share = |flow: &Flow| flow.delivered as f64 * 0.3 / 60_000.0;
        let shares =
            [0, 1].map(|kind| world.flows.iter().skip(kind).step_by(2).map(share).sum::<f64>());
        assert!(shares.iter().all(|share| *share >= 0.4), "{what}: {shares:?}");
        assert!(shares[0] + shares[1] > 0.97, "{what}: {shares:?}");
        let wait = |flow: &Flow, share| flow.delay(share) - ms(10) - Duration::from_micros(300);
        for pair in world.flows.chunks(2) {
            let low = wait(&pair[1], 0.99);
            assert!(low <= Duration::from_micros(1_500), "{what}: a scalable one {low:?}");
            let (middle, most) = (wait(&pair[0], 0.5), wait(&pair[0], 0.95));
            assert!((ms(10)..=ms(20)).contains(&middle), "{what}: a classic one {middle:?}");
            assert!(most <= ms(25), "{what}: a classic one {most:?}");
        }
        let stats = world.link.stats();
        assert_eq!(stats.dropped_aqm == 0, classic == Ecn::Ect0, "{what}: {stats:?}");
        assert!(stats.marked > 1_000 && stats.dropped_queue == 0, "{what}: {stats:?}");
    }
}

#[test]
fn what_does_not_answer_is_dropped_in_overload_and_the_wait_stays_bounded() {
    // Twice as much as the link carries, all of it ECN-capable.
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let flow = Flow::new(Control::None { apart: Duration::from_micros(150) }, ecn, ms(1));
        let mut world = World::new("rate=40Mbit/s,aqm=dualpi2", vec![flow]);
        world.warm_up(ms(5_000));
        world.run(ms(10_000));
        let stats = world.link.stats();
        let share = stats.dropped_aqm as f64 / stats.sent as f64;
        assert!((0.4..0.55).contains(&share) && stats.dropped_queue == 0, "{ecn:?}: {share}");
        let wait = world.flows[0].delay(0.99);
        assert!(wait < ms(45), "{ecn:?}: p99 {wait:?}");
    }
}
