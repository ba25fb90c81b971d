//! Behaviour of the link, in virtual time.

use super::*;
use crate::config::{Mtu, QueueLimit, Window};

fn config(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A link that carries bytes.
fn link(text: &str, seed: u64) -> Link<Vec<u8>> {
    Link::new(config(text), Random::from_number(seed)).unwrap()
}

const fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// An item of 1,250 bytes (1 ms at 10 Mbit/s) that says its number.
fn numbered(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 1_250];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(item: &[u8]) -> u64 {
    u64::from_be_bytes(item[..8].try_into().unwrap())
}

fn arrivals(link: &mut Link<Vec<u8>>, now: Time) -> Vec<Delivery<Vec<u8>>> {
    std::iter::from_fn(|| link.poll_deliver(now)).collect()
}

/// Number and due time in ms of everything on the way.
fn due_ms(link: &mut Link<Vec<u8>>) -> Vec<(u64, u64)> {
    let all = arrivals(link, Time::NEVER);
    all.iter().map(|d| (number(&d.item), d.delivered.as_nanos() / 1_000_000)).collect()
}

fn send(link: &mut Link<Vec<u8>>, now: Time, range: std::ops::Range<u64>) -> Vec<Fate> {
    range.map(|n| link.handle_send(now, numbered(n))).collect()
}

const EVERYTHING: &str = "loss=5%,burst=4,delay=20ms,jitter=15ms,keep-order=no,dup=10%,reorder=10%,\
    corrupt=3%,corrupt-undetected=3%,rate=10Mbit/s,queue=12,mtu=1300,partition=300ms..400ms";

/// Sends `count` items at irregular times; every fate and delivery as text.
fn trace(text: &str, seed: u64, count: u64) -> Vec<String> {
    let mut link = link(text, seed);
    let mut inputs = Random::from_number(seed ^ 0xABCD);
    let (mut now, mut lines) = (Time::ZERO, Vec::new());
    for n in 0..count {
        now += Duration::from_micros(inputs.below(2_500));
        lines.push(format!("{:?}", link.handle_send(now, numbered(n))));
        lines.extend(arrivals(&mut link, now).iter().map(|delivery| format!("{delivery:?}")));
    }
    lines.extend(arrivals(&mut link, Time::NEVER).iter().map(|delivery| format!("{delivery:?}")));
    lines
}

#[test]
fn the_same_seed_gives_the_same_sequence() {
    for seed in 0..20 {
        assert_eq!(trace(EVERYTHING, seed, 500), trace(EVERYTHING, seed, 500), "seed {seed}");
        assert_ne!(trace(EVERYTHING, seed, 500), trace(EVERYTHING, seed + 1, 500), "seed {seed}");
    }
}

/// What a seed means is part of the interface: recorded failures are seeds. When this fails, an
/// effect draws otherwise than before.
#[test]
fn a_seed_means_the_same_on_every_machine_and_in_every_release() {
    let mut link = link(&format!("{EVERYTHING},shape=normal"), 1998);
    let mut digest = 0xCBF2_9CE4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    };
    for n in 0..2_000 {
        let _ = link.handle_send(Time::from_micros(1_100 * n), numbered(n));
    }
    for delivery in arrivals(&mut link, Time::NEVER) {
        add(&delivery.delivered.as_nanos().to_be_bytes());
        add(&[u8::from(delivery.copy), u8::from(delivery.corrupted)]);
        add(&delivery.item);
    }
    assert_eq!(format!("{digest:016x}"), "5ff5d867fba6c94d");
}

#[test]
fn a_perfect_link_delivers_at_once_and_in_order() {
    let mut link = link("perfect", 1);
    for n in 0..1_000 {
        let _ = link.handle_send(ms(n / 10), numbered(n));
    }
    let order: Vec<u64> = due_ms(&mut link).into_iter().map(|(number, _)| number).collect();
    assert_eq!(order, (0..1_000).collect::<Vec<_>>());
    assert_eq!((link.stats().delivered, link.stats().dropped()), (1_000, 0));
    assert_eq!(link.stats().delay.max(), Some(Duration::ZERO));
    assert_eq!(link.next_deadline(), None);
}

#[test]
fn deliveries_carry_their_due_time_however_late_the_poll() {
    let mut link = link("delay=20ms", 1);
    let _ = link.handle_send(ms(3), numbered(0));
    assert_eq!(link.next_deadline(), Some(ms(23)));
    assert!(link.poll_deliver(ms(23) - Duration::from_nanos(1)).is_none());
    let delivery = link.poll_deliver(ms(900)).unwrap();
    assert_eq!((delivery.sent, delivery.delivered), (ms(3), ms(23)));
    assert_eq!(link.stats().delay.p99(), Some(Duration::from_millis(20)));
}

#[test]
fn the_equation_of_counters_holds_at_every_step() {
    for seed in 0..50 {
        let mut link = link(EVERYTHING, seed);
        let mut inputs = Random::from_number(seed);
        let mut now = Time::ZERO;
        for n in 0..1_000 {
            now += Duration::from_micros(inputs.below(2_000));
            let len = 8 + inputs.below(1_400) as usize;
            let _ = link.handle_send(now, vec![n as u8; len]);
            assert!(link.closes(), "seed {seed}, item {n}: {:?}", link.stats());
            while inputs.chance(0.9) && link.poll_deliver(now).is_some() {
                assert!(link.closes(), "seed {seed}, item {n}: {:?}", link.stats());
            }
        }
        let arrived = arrivals(&mut link, Time::NEVER);
        assert!(link.closes() && link.in_flight() == 0, "seed {seed}");
        assert!(arrived.is_sorted_by_key(|delivery| delivery.delivered), "seed {seed}");
        let stats = link.stats();
        for (name, counter) in [
            ("lost_burst", stats.lost_burst),
            ("duplicated", stats.duplicated),
            ("held_back", stats.held_back),
            ("reordered", stats.reordered),
            ("corrupted_detected", stats.corrupted_detected),
            ("corrupted_undetected", stats.corrupted_undetected),
            ("dropped_mtu", stats.dropped_mtu),
            ("dropped_partition", stats.dropped_partition),
        ] {
            assert!(counter > 0, "seed {seed}: {name} never happened");
        }
    }
}

#[test]
fn random_configurations_conserve_items_through_changes() {
    let texts = [
        EVERYTHING,
        "perfect",
        "rate=1Mbit/s,queue=5,delay=5ms",
        "rate=100Mbit/s,jitter=30ms,dup=50%",
        "jitter=30ms,shape=normal,reorder=50%,in-flight=10",
        "rate=2Mbit/s,queue-bytes=4kB,corrupt=30%,keep-order=no,jitter=9ms",
        "rate=2Mbit/s,aqm=codel,queue=20,jitter=9ms,corrupt=10%",
        "rate=2Mbit/s,aqm=dualpi2,dup=30%,in-flight=50",
        "trace=cellular:4,queue=30,dup=10%",
        "loss=100%",
    ];
    for seed in 0..100 {
        let mut link = link("perfect", seed);
        let mut inputs = Random::from_number(seed);
        let (mut now, mut sent, mut received) = (Time::ZERO, 0, 0);
        for n in 0..600 {
            now += Duration::from_micros(inputs.below(3_000));
            if inputs.chance(0.05) {
                let text = texts[inputs.below(texts.len() as u64) as usize];
                link.set_config(now, config(text)).unwrap();
            }
            link.set_partitioned(inputs.chance(0.1));
            let _ = link.handle_send(now, numbered(n));
            sent += 1;
            received += arrivals(&mut link, now).len() as u64;
            assert!(link.next_deadline().is_none_or(|due| due > now), "seed {seed}, item {n}");
            assert!(link.closes(), "seed {seed}, item {n}: {:?}", link.stats());
        }
        received += arrivals(&mut link, Time::NEVER).len() as u64;
        assert_eq!((link.stats().sent, link.stats().delivered), (sent, received), "seed {seed}");
        assert!(link.closes(), "seed {seed}");
    }
}

/// The items that a link with this configuration loses.
fn lost(text: &str, seed: u64) -> Vec<bool> {
    let mut link = link(text, seed);
    (0..2_000)
        .map(|n| {
            let fate = link.handle_send(ms(n * 200), numbered(n));
            let losses = [DropReason::LossRandom, DropReason::LossBurst].map(Passage::Dropped);
            losses.contains(&fate.item)
        })
        .collect()
}

#[test]
fn one_knob_does_not_shift_the_others() {
    for loss in ["loss=10%", "loss=10%,burst=5"] {
        let alone = lost(loss, 9);
        assert!(alone.iter().any(|&lost| lost));
        for more in [
            "dup=50%",
            "delay=20ms,jitter=10ms,shape=normal",
            "reorder=30%",
            "corrupt=5%,corrupt-undetected=50%",
            "rate=10Mbit/s,queue=3",
            "in-flight=100",
        ] {
            assert_eq!(lost(&format!("{loss},{more}"), 9), alone, "{loss} with {more}");
        }
    }
}

#[test]
fn what_is_dropped_early_does_not_shift_what_happens_later() {
    let fates = |text: &str| {
        let mut link = link(text, 5);
        let fates = (0..500).map(|n| link.handle_send(ms(100 * n), numbered(n)));
        fates.skip(100).collect::<Vec<_>>()
    };
    let base = "loss=10%,burst=5,dup=10%,delay=9ms,jitter=9ms,corrupt-undetected=10%,reorder=9%";
    let cut = fates(&format!("{base},partition=0s..10s"));
    assert_eq!(cut, fates(base));
}

#[test]
fn independent_and_burst_loss_have_their_own_counters() {
    let mut random = link("loss=20%", 3);
    let _ = send(&mut random, Time::ZERO, 0..1_000);
    assert!(random.stats().lost_random > 140 && random.stats().lost_burst == 0);
    let mut burst = link("loss=20%,burst=5", 3);
    let _ = send(&mut burst, Time::ZERO, 0..1_000);
    assert!(burst.stats().lost_burst > 60 && burst.stats().lost_random == 0);
}

#[test]
fn jitter_keeps_the_order_unless_told_otherwise() {
    let text = "delay=30ms,jitter=20ms,loss=10%,dup=20%";
    for (text, reorders) in [(text.to_owned(), false), (format!("{text},keep-order=no"), true)] {
        let mut link = link(&text, 6);
        for n in 0..1_000 {
            let _ = link.handle_send(ms(n), numbered(n));
        }
        let order = due_ms(&mut link);
        assert_eq!(!order.is_sorted(), reorders, "{text}");
        assert_eq!(link.stats().reordered > 0, reorders, "{text}");
    }
}

#[test]
fn a_held_item_is_overtaken_and_arrives_within_its_bound() {
    let mut link = link("reorder=5%,reorder-by=30ms,delay=10ms", 8);
    for n in 0..5_000 {
        let _ = link.handle_send(Time::from_micros(100 * n), numbered(n));
    }
    let all = arrivals(&mut link, Time::NEVER);
    let stats = link.stats();
    assert!((180..320).contains(&stats.held_back), "{}", stats.held_back);
    // Only a hold of less than the spacing goes unnoticed.
    assert!(stats.reordered > stats.held_back * 95 / 100 && stats.reordered <= stats.held_back);
    let delay = |delivery: &Delivery<Vec<u8>>| delivery.delivered.since(delivery.sent);
    assert!(all.iter().all(|d| (10..=40).contains(&delay(d).as_millis())));
    let on_time = all.iter().filter(|d| delay(d) == Duration::from_millis(10)).count() as u64;
    assert_eq!(on_time + stats.held_back, 5_000, "held items do not hold up the others");
}

#[test]
fn a_copy_is_equal_and_has_a_delay_of_its_own() {
    let mut link = link("dup=100%,delay=20ms,jitter=10ms,keep-order=no", 2);
    let fates = send(&mut link, Time::ZERO, 0..200);
    let all = arrivals(&mut link, Time::NEVER);
    assert_eq!(all.len(), 400);
    assert_eq!(all.iter().filter(|delivery| delivery.copy).count(), 200);
    assert!(fates.iter().all(|fate| fate.copy.is_some_and(|copy| copy != fate.item)));
    for n in 0..200 {
        assert_eq!(all.iter().filter(|delivery| delivery.item == numbered(n)).count(), 2);
    }
}

#[test]
fn reordering_is_counted_as_a_receiver_sees_it_without_copies() {
    for seed in 0..20 {
        let mut link = link("dup=50%,delay=20ms,jitter=10ms,keep-order=no", seed);
        for n in 0..500 {
            let _ = link.handle_send(ms(n), numbered(n));
        }
        let (mut late, mut latest) = (0, 0);
        for delivery in arrivals(&mut link, Time::NEVER) {
            let number = number(&delivery.item);
            late += u64::from(!delivery.copy && number < latest);
            latest = latest.max(number);
        }
        assert_eq!(link.stats().reordered, late, "seed {seed}");
    }
}

#[test]
fn undetected_corruption_arrives_and_detected_does_not() {
    let mut link = link("corrupt=20%,corrupt-undetected=30%,dup=50%", 4);
    let _ = send(&mut link, Time::ZERO, 0..2_000);
    let all = arrivals(&mut link, Time::NEVER);
    for delivery in &all {
        let original = (0..2_000).any(|n| delivery.item == numbered(n));
        assert_eq!(delivery.corrupted, !original);
        assert_eq!(delivery.item.len(), 1_250);
    }
    let altered = all.iter().filter(|delivery| delivery.corrupted).count() as u64;
    assert_eq!(altered, link.stats().corrupted_undetected);
    assert_eq!(link.stats().corrupted_detected + all.len() as u64, 2_000 + link.stats().duplicated);
}

/// Bytes with a checksum of their own: the last byte is the sum of the others.
struct Summed(Vec<u8>);

impl Carry for Summed {
    const CHECKED: bool = true;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn corrupt(&mut self, _: &mut Random, kind: Corruption) {
        self.0[0] ^= 1;
        if kind == Corruption::Undetected {
            self.0[1] ^= 1;
        }
    }

    fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }
}

#[test]
fn an_item_with_a_checksum_of_its_own_arrives_corrupted_and_is_no_drop_of_the_link() {
    let text = "corrupt=20%,corrupt-undetected=30%,rate=10Mbit/s,queue=3000,queue-bytes=9MB";
    let mut plain = link(text, 4);
    let mut link = Link::new(config(text), Random::from_number(4)).unwrap();
    for n in 0..2_000 {
        let checked = link.handle_send(Time::ZERO, Summed(vec![0; 1_250]));
        let fate = plain.handle_send(Time::ZERO, numbered(n));
        // The same seed corrupts the same items.
        let corrupted = |passage| matches!(passage, Passage::Arrives { corrupted: true, .. });
        let is_dropped = fate.item == Passage::Dropped(DropReason::Corrupted);
        assert_eq!(corrupted(checked.item), is_dropped || corrupted(fate.item), "item {n}");
    }
    let arrived: Vec<_> = std::iter::from_fn(|| link.poll_deliver(Time::NEVER)).collect();
    assert_eq!(arrived.len(), 2_000);
    let detected = arrived.iter().filter(|it| it.item.0[..2] == [1, 0]).count() as u64;
    let undetected = arrived.iter().filter(|it| it.item.0[..2] == [1, 1]).count() as u64;
    let stats = link.stats();
    assert_eq!((stats.corrupted_sent_on, stats.corrupted_undetected), (detected, undetected));
    assert_eq!((stats.corrupted_detected, stats.dropped()), (0, 0));
    assert_eq!(detected, plain.stats().corrupted_detected);
    assert!(link.closes() && detected > 300);
}

/// Nothing but a congestion codepoint.
struct Marked(Ecn);

impl Carry for Marked {
    fn len(&self) -> usize {
        1
    }

    fn corrupt(&mut self, _: &mut Random, _: Corruption) {}

    fn duplicate(&self) -> Self {
        Self(self.0)
    }

    fn ecn(&self) -> Ecn {
        self.0
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.0 = ecn;
    }
}

#[test]
fn a_link_keeps_the_codepoint_of_what_it_carries_or_clears_it() {
    let all = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
    for (text, expected) in [("dup=100%", all), ("dup=100%,ecn=clear", [Ecn::NotEct; 4])] {
        let mut link = Link::new(config(text), Random::from_number(1)).unwrap();
        for ecn in all {
            let _ = link.handle_send(Time::ZERO, Marked(ecn));
        }
        let arrived = std::iter::from_fn(|| link.poll_deliver(Time::ZERO));
        let arrived: Vec<Ecn> = arrived.map(|delivery| delivery.item.0).collect();
        // Each with its copy.
        assert_eq!(arrived, expected.map(|ecn| [ecn; 2]).concat(), "{text}");
    }
    // Also from the next item on, and back.
    let mut link = Link::new(config("perfect"), Random::from_number(1)).unwrap();
    let arrived = ["ecn=clear", "perfect"].map(|text| {
        link.set_config(Time::ZERO, config(text)).unwrap();
        let _ = link.handle_send(Time::ZERO, Marked(Ecn::Ce));
        link.poll_deliver(Time::ZERO).map(|delivery| delivery.item.0)
    });
    assert_eq!(arrived, [Some(Ecn::NotEct), Some(Ecn::Ce)]);
}

#[test]
fn an_item_and_its_copy_are_corrupted_independently() {
    let mut link = link("dup=100%,corrupt=20%,corrupt-undetected=30%", 12);
    let fates = send(&mut link, Time::ZERO, 0..2_000);
    let kind = |passage: Passage| match passage {
        Passage::Arrives { corrupted: false, .. } => 0,
        Passage::Arrives { corrupted: true, .. } => 1,
        Passage::Dropped(_) => 2,
        Passage::Waits { .. } => panic!("nothing is managed here"),
    };
    let mut seen = [[0_u32; 3]; 3];
    for fate in &fates {
        seen[kind(fate.item)][kind(fate.copy.expect("a copy of each"))] += 1;
    }
    let share = [0.5_f64, 0.3, 0.2];
    for (row, first) in seen.iter().zip(share) {
        for (&cell, second) in row.iter().zip(share) {
            let (expected, p) = (2_000.0 * first * second, first * second);
            let tolerance = 5.0 * (expected * (1.0 - p)).sqrt();
            assert!((f64::from(cell) - expected).abs() < tolerance, "{seen:?}");
        }
    }
}

#[test]
fn an_empty_item_cannot_be_altered() {
    let mut link = link("corrupt-undetected=100%", 4);
    let _ = link.handle_send(Time::ZERO, Vec::new());
    assert!(link.poll_deliver(Time::ZERO).is_some_and(|delivery| !delivery.corrupted));
    assert_eq!(link.stats().corrupted_undetected, 0);
}

#[test]
fn corrupted_items_use_the_link_before_they_are_dropped() {
    let mut link = link("corrupt=100%,rate=10Mbit/s", 4);
    let _ = send(&mut link, Time::ZERO, 0..10);
    link.set_config(Time::ZERO, config("rate=10Mbit/s")).unwrap();
    let _ = send(&mut link, Time::ZERO, 10..11);
    assert_eq!(due_ms(&mut link), [(10, 11)]);
    assert_eq!(link.stats().corrupted_detected, 10);
}

#[test]
fn the_rate_spaces_items_and_the_full_queue_drops_the_tail() {
    let mut link = link("rate=10Mbit/s,queue=3,delay=20ms", 1);
    let fates = send(&mut link, Time::ZERO, 0..6);
    assert_eq!(fates[4].item, Passage::Dropped(DropReason::Queue));
    assert_eq!(due_ms(&mut link), [(0, 21), (1, 22), (2, 23), (3, 24)]);
    assert_eq!(link.stats().dropped_queue, 2);
    // After 2 ms two have been sent, so two places are free.
    let mut link = Link::new(link.config().clone(), Random::from_number(1)).unwrap();
    let _ = send(&mut link, Time::ZERO, 0..6);
    let _ = send(&mut link, ms(2), 6..10);
    assert_eq!(link.stats().dropped_queue, 2 + 2);
    assert_eq!(due_ms(&mut link).last(), Some(&(7, 26)));
}

#[test]
fn the_queue_is_bounded_in_bytes_too() {
    let mut link = link("rate=10Mbit/s,queue-bytes=2500B", 1);
    let _ = send(&mut link, Time::ZERO, 0..10);
    assert_eq!(link.in_flight(), 1 + 2);
    assert_eq!(link.config().queue, QueueLimit { packets: 1_000, bytes: 2_500 });
}

#[test]
fn lost_items_take_no_room_in_the_queue() {
    let mut link = link("rate=10Mbit/s,loss=50%,queue=1000", 1);
    let _ = send(&mut link, Time::ZERO, 0..1_000);
    let last = due_ms(&mut link).last().unwrap().1;
    assert_eq!(last, link.stats().delivered, "1 ms for each that was not lost");
}

#[test]
fn a_change_of_rate_moves_what_waits() {
    let mut link = link("rate=10Mbit/s,delay=5ms", 1);
    let _ = send(&mut link, Time::ZERO, 0..4);
    link.set_config(Time::from_micros(500), config("rate=1Mbit/s,delay=50ms")).unwrap();
    let _ = send(&mut link, Time::from_micros(500), 4..5);
    assert_eq!(due_ms(&mut link), [(0, 6), (1, 16), (2, 26), (3, 36), (4, 91)]);
}

#[test]
fn a_faster_rate_keeps_the_order_under_jitter() {
    for seed in 0..50 {
        let mut link = link("rate=1Mbit/s,delay=30ms,jitter=25ms,corrupt=20%,dup=20%", seed);
        let _ = send(&mut link, Time::ZERO, 0..20);
        let text = "rate=100Mbit/s,delay=30ms,jitter=25ms,corrupt=20%,dup=20%";
        link.set_config(ms(25), config(text)).unwrap();
        let _ = send(&mut link, ms(25), 20..40);
        let order = due_ms(&mut link);
        assert!(order.is_sorted_by_key(|&(number, _)| number), "seed {seed}: {order:?}");
        assert!(order.last().is_some_and(|&(_, due)| due < 120), "seed {seed}: {order:?}");
        assert!(link.closes(), "seed {seed}");
    }
}

#[test]
fn without_a_rate_what_waited_leaves_with_the_item_on_the_wire() {
    let mut link = link("rate=1Mbit/s", 1);
    let _ = send(&mut link, Time::ZERO, 0..5);
    link.set_config(ms(12), config("perfect")).unwrap();
    let _ = send(&mut link, ms(12), 5..6);
    assert_eq!(due_ms(&mut link), [(0, 10), (1, 20), (2, 20), (3, 20), (4, 20), (5, 20)]);
}

#[test]
fn a_shorter_delay_does_not_reorder_a_link_that_keeps_order() {
    for (keep, expected) in [("yes", [(0, 500), (1, 500)]), ("no", [(1, 30), (0, 500)])] {
        let mut link = link(&format!("delay=500ms,keep-order={keep}"), 1);
        let _ = send(&mut link, Time::ZERO, 0..1);
        let text = format!("delay=20ms,keep-order={keep}");
        link.set_config(ms(10), config(&text)).unwrap();
        let _ = send(&mut link, ms(10), 1..2);
        assert_eq!(due_ms(&mut link), expected);
    }
}

#[test]
fn a_cut_link_takes_nothing_but_delivers_what_is_on_the_way() {
    let mut link = link("delay=20ms,partition=10ms..20ms", 1);
    for n in 0..30 {
        let _ = link.handle_send(ms(n), numbered(n));
    }
    link.set_partitioned(true);
    assert!(link.is_partitioned(ms(30)));
    let _ = link.handle_send(ms(30), numbered(30));
    link.set_partitioned(false);
    let _ = link.handle_send(ms(31), numbered(31));
    let arrived: Vec<u64> = due_ms(&mut link).into_iter().map(|(number, _)| number).collect();
    assert_eq!(arrived, (0..10).chain(20..30).chain(31..32).collect::<Vec<_>>());
    assert_eq!(link.stats().dropped_partition, 11);
}

#[test]
fn large_items_vanish_from_a_moment_on() {
    let mut link = link("mtu=1280,mtu-from=5s", 1);
    for (now, len) in [(0, 1_500), (4_999, 1_500), (5_000, 1_500), (5_000, 1_281), (5_000, 1_280)] {
        let _ = link.handle_send(ms(now), vec![0; len]);
    }
    let lens: Vec<usize> =
        arrivals(&mut link, Time::NEVER).iter().map(|delivery| delivery.item.len()).collect();
    assert_eq!(lens, [1_500, 1_500, 1_280]);
    assert_eq!(link.stats().dropped_mtu, 2);
}

#[test]
fn items_in_flight_are_bounded() {
    let mut link = link("delay=1s,in-flight=100,dup=100%", 1);
    let _ = send(&mut link, Time::ZERO, 0..80);
    assert_eq!((link.in_flight(), link.stats().overflow), (100, 60));
    assert!(link.closes());
    let _ = arrivals(&mut link, ms(1_000));
    let fates = send(&mut link, ms(1_000), 80..81);
    assert!(matches!(fates[0].item, Passage::Arrives { .. }));
}

#[test]
fn a_corrupted_item_needs_no_place_in_flight() {
    let mut link = link("delay=1s,in-flight=1", 1);
    let _ = send(&mut link, Time::ZERO, 0..2);
    link.set_config(Time::ZERO, config("delay=1s,in-flight=1,corrupt=100%")).unwrap();
    let _ = send(&mut link, Time::ZERO, 2..3);
    assert_eq!((link.stats().overflow, link.stats().corrupted_detected), (1, 1));
}

#[test]
fn an_invalid_configuration_changes_nothing() {
    let mut link = link("delay=20ms", 1);
    let windows = vec![Window { from: ms(2), to: ms(1) }];
    let mtu = Some(Mtu::black_hole(1));
    let bad = LinkConfig { partitions: windows, mtu, ..LinkConfig::default() };
    assert!(link.set_config(Time::ZERO, bad.clone()).is_err());
    assert_eq!(link.config(), &config("delay=20ms"));
    assert!(Link::<Vec<u8>>::new(bad, Random::from_number(1)).is_err());
}

#[test]
fn burst_loss_goes_on_through_changes_of_other_figures() {
    for seed in 0..50 {
        let fates = |other: &str| {
            let mut link = link("loss=30%,burst=20", seed);
            let mut fates = send(&mut link, Time::ZERO, 0..50);
            link.set_config(Time::ZERO, config(&format!("loss=30%,burst=20{other}"))).unwrap();
            fates.extend(send(&mut link, Time::ZERO, 50..100));
            fates.iter().map(|fate| matches!(fate.item, Passage::Dropped(_))).collect::<Vec<_>>()
        };
        let mut unchanged = link("loss=30%,burst=20", seed);
        let losses = send(&mut unchanged, Time::ZERO, 0..100);
        let losses: Vec<_> =
            losses.iter().map(|fate| matches!(fate.item, Passage::Dropped(_))).collect();
        assert_eq!(fates(",delay=20ms,dup=5%"), losses, "seed {seed}");
    }
}

#[test]
fn a_new_loss_model_forgets_the_state_of_the_old_one() {
    let mut link = link("gilbert=100%:0%:0%:100%", 1);
    let _ = send(&mut link, Time::ZERO, 0..10);
    link.set_config(Time::ZERO, config("gilbert=0%:1%:0%:100%")).unwrap();
    let _ = send(&mut link, Time::ZERO, 10..20);
    assert_eq!((link.stats().lost_burst, link.in_flight()), (10, 10));
}

#[test]
fn time_that_runs_backwards_stands_still() {
    let mut link = link("delay=5ms,rate=10Mbit/s", 1);
    let _ = link.handle_send(ms(100), numbered(0));
    let _ = link.handle_send(ms(50), numbered(1));
    assert_eq!(due_ms(&mut link), [(0, 106), (1, 107)]);
    assert!(link.closes());
    let mut link = self::link("delay=5ms,keep-order=no", 1);
    let _ = link.handle_send(ms(100), numbered(0));
    let _ = link.handle_send(ms(50), numbered(1));
    assert_eq!(due_ms(&mut link), [(0, 105), (1, 105)]);
    assert_eq!(link.stats().delay.max(), Some(Duration::from_millis(5)));
}
