//! A link with active queue management: what holds of it whatever its law is.

use crate::config::LinkConfig;
use crate::engine::Link;
use crate::fate::{Delivery, DropReason, Passage};
use crate::flows::Packet;
use dacapo_base::Ecn;
use dacapo_base::{Random, Time};
use std::time::Duration;

const LAWS: [&str; 2] = ["codel", "dualpi2"];
/// Those that act soon.
const EAGER: [&str; 2] = ["codel,aqm-target=3ms,aqm-interval=10ms", "dualpi2,aqm-target=3ms"];

fn config(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn link(text: &str, seed: u64) -> Link<Packet> {
    Link::new(config(text), Random::from_number(seed)).unwrap()
}

fn packet(number: u64, ecn: Ecn) -> Packet {
    Packet { flow: 0, number, len: 1_250, ecn }
}

const fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn arrivals(link: &mut Link<Packet>, now: Time) -> Vec<Delivery<Packet>> {
    std::iter::from_fn(|| link.poll_deliver(now)).collect()
}

fn random_ecn(random: &mut Random) -> Ecn {
    Ecn::from_bits(random.below(4) as u8)
}

const EVERYTHING: &str = "loss=5%,burst=4,delay=20ms,jitter=15ms,keep-order=no,dup=10%,reorder=10%,\
    corrupt=3%,corrupt-undetected=3%,queue=200,mtu=1300,partition=300ms..400ms";

/// Everything that a link does with 1,000 packets, as text.
fn run(text: &str, seed: u64) -> Vec<String> {
    let mut link = link(text, seed);
    let mut inputs = Random::from_number(seed ^ 0xABCD);
    let (mut now, mut lines) = (Time::ZERO, Vec::new());
    for number in 0..1_000 {
        now += Duration::from_micros(inputs.below(1_400));
        let packet = packet(number, random_ecn(&mut inputs));
        lines.push(format!("{:?}", link.handle_send(now, packet)));
        lines.extend(arrivals(&mut link, now).iter().map(|delivery| format!("{delivery:?}")));
    }
    lines.extend(arrivals(&mut link, Time::NEVER).iter().map(|delivery| format!("{delivery:?}")));
    lines.push(format!("{:?}", link.stats()));
    lines
}

#[test]
fn the_same_seed_gives_the_same_sequence() {
    for law in EAGER {
        let text = format!("{EVERYTHING},rate=10Mbit/s,aqm={law}");
        for seed in 0..10 {
            let lines = run(&text, seed);
            assert_eq!(lines, run(&text, seed), "{law}, seed {seed}");
            assert_ne!(lines, run(&text, seed + 1), "{law}, seed {seed}");
        }
    }
}

#[test]
fn how_often_it_is_polled_changes_nothing() {
    for law in EAGER {
        for seed in 0..20 {
            let text = format!("{EVERYTHING},rate=10Mbit/s,aqm={law}");
            let mut links = [link(&text, seed), link(&text, seed)];
            let mut inputs = Random::from_number(seed);
            let (mut now, mut arrived) = (Time::ZERO, [Vec::new(), Vec::new()]);
            for number in 0..800 {
                let before = now;
                now += Duration::from_micros(inputs.below(1_400));
                // One at each of its deadlines, the other now and then.
                while let Some(due) = links[0].next_deadline().filter(|due| *due <= now) {
                    assert!(due >= before, "{law}, seed {seed}: it was due before");
                    arrived[0].extend(arrivals(&mut links[0], due));
                }
                if inputs.chance(0.02) {
                    arrived[1].extend(arrivals(&mut links[1], now));
                }
                let packet = packet(number, random_ecn(&mut inputs));
                let fates = links.each_mut().map(|link| link.handle_send(now, packet));
                assert_eq!(fates[0], fates[1], "{law}, seed {seed}, packet {number}");
            }
            for (link, arrived) in links.iter_mut().zip(&mut arrived) {
                arrived.extend(arrivals(link, Time::NEVER));
                assert!(link.closes() && link.in_flight() == 0);
            }
            assert_eq!(arrived[0], arrived[1], "{law}, seed {seed}");
            assert_eq!(links[0].stats(), links[1].stats(), "{law}, seed {seed}");
            assert!(links[0].stats().dropped_aqm > 0, "{law}, seed {seed}: it does not act");
        }
    }
}

#[test]
fn where_it_has_nothing_to_do_a_managed_link_is_one_that_is_not() {
    // A packet takes 0.1 ms, and one comes every 0.7 on average.
    for law in LAWS {
        for seed in 0..20 {
            let text = format!("{EVERYTHING},rate=100Mbit/s");
            let mut links = [link(&text, seed), link(&format!("{text},aqm={law}"), seed)];
            let mut inputs = Random::from_number(seed);
            let (mut now, mut arrived) = (Time::ZERO, [Vec::new(), Vec::new()]);
            for number in 0..1_000 {
                now += Duration::from_micros(inputs.below(1_400));
                // Of one kind, so that no queue overtakes the other.
                let packet = packet(number, Ecn::Ect0);
                for (link, arrived) in links.iter_mut().zip(&mut arrived) {
                    let _ = link.handle_send(now, packet);
                    arrived.extend(arrivals(link, now));
                    assert!(link.closes(), "{law}, seed {seed}: {:?}", link.stats());
                }
            }
            for (link, arrived) in links.iter_mut().zip(&mut arrived) {
                arrived.extend(arrivals(link, Time::NEVER));
            }
            assert_eq!(arrived[0], arrived[1], "{law}, seed {seed}");
            assert_eq!(links[0].stats(), links[1].stats(), "{law}, seed {seed}");
        }
    }
}

#[test]
fn items_are_conserved_at_every_moment_through_changes_of_everything() {
    let texts = [
        "perfect",
        "rate=1Mbit/s,aqm=codel,queue=20",
        "rate=2Mbit/s,aqm=dualpi2",
        "rate=2Mbit/s,aqm=dualpi2,aqm-target=1us,in-flight=5",
        "rate=4Mbit/s,aqm=codel,aqm-target=1us,aqm-interval=1us,corrupt=20%,dup=20%",
        "rate=4Mbit/s,aqm=dualpi2,corrupt=20%,dup=20%,jitter=9ms,keep-order=no,reorder=20%",
        "trace=cellular:1,aqm=codel,delay=5ms",
        "trace=cellular:2,aqm=dualpi2,queue-bytes=20kB",
        "trace=cellular:3,queue=7,dup=50%",
        "rate=1Mbit/s,queue=9,ecn=clear",
        "rate=9Mbit/s,aqm=codel,ecn=clear,loss=10%",
    ]
    .map(config);
    let (mut marked, mut dropped) = (0, 0);
    for seed in 0..100 {
        let mut link = link("perfect", seed);
        let mut inputs = Random::from_number(seed);
        let (mut now, mut received) = (Time::ZERO, 0);
        for number in 0..800 {
            now += Duration::from_micros(inputs.below(3_000));
            if inputs.chance(0.03) {
                let config = &texts[inputs.below(texts.len() as u64) as usize];
                link.set_config(now, config.clone()).unwrap();
                assert!(link.closes(), "seed {seed}, packet {number}: {:?}", link.stats());
            }
            link.set_partitioned(inputs.chance(0.1));
            let len = 40 + inputs.below(3_000) as usize;
            let ecn = random_ecn(&mut inputs);
            let _ = link.handle_send(now, Packet { flow: 0, number, len, ecn });
            assert!(link.closes(), "seed {seed}, packet {number}: {:?}", link.stats());
            while inputs.chance(0.95)
                && let Some(arrived) = link.poll_deliver(now)
            {
                assert!(arrived.delivered <= now && link.closes(), "seed {seed}");
                received += 1;
            }
        }
        received += arrivals(&mut link, Time::NEVER).len() as u64;
        let stats = link.stats();
        assert_eq!((stats.sent, stats.delivered), (800, received), "seed {seed}");
        assert!(link.closes() && link.in_flight() == 0, "seed {seed}: {stats:?}");
        (marked, dropped) = (marked + stats.marked, dropped + stats.dropped_aqm);
    }
    assert!(marked > 1_000 && dropped > 1_000, "{marked} marked, {dropped} dropped");
}

#[test]
fn what_waits_is_in_flight_and_bounded_by_both_limits() {
    for law in LAWS {
        let mut link = link(&format!("rate=10Mbit/s,queue=3,aqm={law}"), 1);
        let fates: Vec<_> =
            (0..6).map(|n| link.handle_send(ms(0), packet(n, Ecn::NotEct)).item).collect();
        let waits = Passage::Waits { held_back: Duration::ZERO, corrupted: false };
        assert_eq!(fates[..4], [waits; 4], "one is sent, three wait");
        assert_eq!(fates[4..], [Passage::Dropped(DropReason::Queue); 2]);
        assert_eq!((link.in_flight(), link.next_deadline()), (4, Some(ms(1))), "{law}");
        let mut bytes = self::link(&format!("rate=10Mbit/s,queue-bytes=2500B,aqm={law}"), 1);
        let mut flight = self::link(&format!("rate=10Mbit/s,in-flight=3,aqm={law}"), 1);
        for number in 0..10 {
            let _ = bytes.handle_send(ms(0), packet(number, Ecn::Ect1));
            let _ = flight.handle_send(ms(0), packet(number, Ecn::Ect0));
        }
        assert_eq!((bytes.in_flight(), bytes.stats().dropped_queue), (3, 7), "{law}");
        assert_eq!((flight.in_flight(), flight.stats().overflow), (3, 7), "{law}");
    }
}

#[test]
fn what_waits_goes_on_when_the_management_or_the_rate_changes() {
    let sent = |link: &mut Link<Packet>| {
        for number in 0..4 {
            let ecn = if number % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
            let _ = link.handle_send(ms(0), packet(number, ecn));
        }
    };
    let due = |link: &mut Link<Packet>| -> Vec<(u64, u64)> {
        let all = arrivals(link, Time::NEVER);
        all.iter().map(|d| (d.item.number, d.delivered.as_nanos() / 1_000_000)).collect()
    };
    let half = Time::from_micros(500);
    // The one on the wire leaves at its old rate, and those that wait at the new one, as they came.
    let mut link = link("rate=10Mbit/s,aqm=dualpi2", 1);
    sent(&mut link);
    link.set_config(half, config("rate=1Mbit/s")).unwrap();
    let _ = link.handle_send(half, packet(4, Ecn::NotEct));
    link.set_config(ms(12), config("rate=10Mbit/s")).unwrap();
    assert_eq!(due(&mut link), [(0, 1), (1, 11), (2, 21), (3, 22), (4, 23)]);
    // Without a rate they leave with the one on the wire.
    let mut link = self::link("rate=10Mbit/s,aqm=codel", 1);
    sent(&mut link);
    link.set_config(half, config("perfect")).unwrap();
    assert_eq!(due(&mut link), [(0, 1), (1, 1), (2, 1), (3, 1)]);
    // Under another management they wait again, where they belong there.
    let mut link = self::link("rate=10Mbit/s,aqm=codel", 1);
    sent(&mut link);
    link.set_config(half, config("rate=1Mbit/s,aqm=dualpi2")).unwrap();
    assert_eq!(link.in_flight(), 4);
    assert_eq!(due(&mut link), [(0, 1), (1, 11), (2, 21), (3, 31)]);
    // What waits unmanaged is in flight already, and comes first.
    let mut link = self::link("rate=10Mbit/s", 1);
    sent(&mut link);
    link.set_config(half, config("rate=10Mbit/s,aqm=dualpi2")).unwrap();
    let _ = link.handle_send(half, packet(4, Ecn::Ect1));
    assert_eq!(due(&mut link), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
}

#[test]
fn the_low_latency_queue_overtakes_and_that_is_counted() {
    let mut link = link("rate=10Mbit/s,aqm=dualpi2", 1);
    for number in 0..20 {
        let ecn = if number < 10 { Ecn::NotEct } else { Ecn::Ect1 };
        let _ = link.handle_send(ms(0), packet(number, ecn));
    }
    let order: Vec<u64> = arrivals(&mut link, Time::NEVER).iter().map(|d| d.item.number).collect();
    // The first left at once; of the others one in ten is a classic one while both wait.
    assert_eq!(order[..12], [0, 10, 1, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    assert_eq!((order.len(), link.stats().reordered), (20, 9));
}

#[test]
fn a_corrupted_packet_that_never_arrives_takes_its_turn_and_is_counted_once() {
    for law in LAWS {
        let mut link = link(&format!("rate=10Mbit/s,corrupt=100%,aqm={law}"), 4);
        for number in 0..10 {
            let _ = link.handle_send(ms(0), packet(number, Ecn::NotEct));
        }
        assert_eq!((link.in_flight(), link.stats().corrupted_detected), (0, 10));
        link.set_config(ms(0), config(&format!("rate=10Mbit/s,aqm={law}"))).unwrap();
        let _ = link.handle_send(ms(0), packet(10, Ecn::NotEct));
        let arrived = arrivals(&mut link, Time::NEVER);
        assert_eq!(arrived.iter().map(|d| d.delivered).collect::<Vec<_>>(), [ms(11)], "{law}");
        assert!(link.closes());
    }
    // Also where the management drops it: it has its counter already.
    let text = "rate=1Mbit/s,corrupt=100%,aqm=codel,aqm-target=1us,aqm-interval=1us";
    let mut link = link(text, 4);
    for number in 0..100 {
        let _ = link.handle_send(ms(0), packet(number, Ecn::NotEct));
        let _ = arrivals(&mut link, ms(number));
    }
    let _ = arrivals(&mut link, Time::NEVER);
    assert_eq!((link.stats().corrupted_detected, link.stats().dropped_aqm), (100, 0));
    assert!(link.closes());
}

#[test]
fn a_link_that_clears_the_codepoint_hands_out_none_and_its_queue_drops() {
    let mut plain = link("ecn=clear,dup=100%", 1);
    for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
        let _ = plain.handle_send(ms(0), packet(0, ecn));
    }
    let arrived = arrivals(&mut plain, ms(0));
    assert_eq!(arrived.iter().filter(|d| d.item.ecn == Ecn::NotEct).count(), 8);
    for law in LAWS {
        let counts = ["", ",ecn=clear"].map(|more| {
            // One and a half times what it carries.
            let mut link = link(&format!("rate=10Mbit/s,aqm={law}{more}"), 1);
            for number in 0..1_500 {
                let at = Time::from_micros(667 * number);
                let _ = link.handle_send(at, packet(number, Ecn::Ect0));
                let _ = arrivals(&mut link, at);
            }
            (link.stats().marked > 0, link.stats().dropped_aqm > 0)
        });
        let overload = law == "dualpi2";
        assert_eq!(counts, [(true, overload), (false, true)], "{law}");
    }
}
