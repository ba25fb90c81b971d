//! Congestion that is marked instead of losing packets (ECN; RFC 3168): a flow that fills a link
//! whose queue is managed loses nothing there, and a hop that clears the bits does no harm.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use common::{Joined, Lab, config, graph, ms};
use dacapo_core::CoreConfig;
use dacapo_netlab::scenario::raw_offer;
use dacapo_netlab::traffic::Pattern;
use dacapo_path::ControllerEntry;
use dacapo_path::controllers::{bbr, cubic, reserved, scream};
use std::time::Duration;

const UNIT_LEN: usize = 1_300;
const LINK_BPS: f64 = 20e6;

/// 40 ms there and back, and a queue that would hold 600 ms.
const LINK: &str = "rate=20Mbit/s,delay=20ms,queue=1200";

struct Measured {
    /// Of the link.
    share: f64,
    /// Of the packets that were sent in this time, how many the queue dropped.
    dropped: f64,
    /// How many it marked, from the beginning on, and of how many the sender heard.
    marked: u64,
    heard: u64,
    rtt: Duration,
}

fn controlled(controller: ControllerEntry) -> CoreConfig {
    let mut config = config();
    config.controllers = controller.into();
    config
}

/// What a flow of `rate_bps` does in ten seconds, after it has begun.
fn measure(controller: ControllerEntry, modules: &[&str], every: Duration, text: &str) -> Measured {
    let name = controller.spec.name;
    let mut lab = Lab::with(1, text, controlled(controller.clone()), controlled(controller));
    let (len_min, len_max) = (UNIT_LEN, UNIT_LEN);
    lab.pattern = Pattern { count: 10_000_000, every, len_min, len_max, seed: 7 };
    let joined = lab.start(vec![raw_offer("whole", graph(modules), 1_000_000_000, 1_400)]);
    lab.run(ms(8_000));
    let count = |joined: &Joined| joined.numbers(0).len() as f64;
    let (creator, participant) = (lab.creator, lab.participant);
    let (before, link) = (count(&joined), lab.world.link_stats(creator, participant));
    lab.run(ms(10_000));
    let (came, now) = (count(&joined) - before, lab.world.link_stats(creator, participant));
    let core = lab.world.core(creator);
    let path = core.path(core.sessions().next().unwrap().2).unwrap();
    let measured = Measured {
        share: came * UNIT_LEN as f64 * 8.0 / 10.0 / LINK_BPS,
        dropped: (now.dropped() - link.dropped()) as f64 / (now.sent - link.sent) as f64,
        marked: now.marked,
        heard: path.estimates.seen.marked_packets,
        rtt: path.rtt.unwrap(),
    };
    lab.close(creator, joined.there);
    let (here, there) = lab.ledgers(&joined, 0, ms(20_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    println!(
        "{name}, {text}: {:.3} of the link, {} dropped in the beginning, {:.3} % later, {} marked, \
         {} heard of, RTT {:?}",
        measured.share,
        link.dropped(),
        measured.dropped * 100.0,
        measured.marked,
        measured.heard,
        measured.rtt
    );
    measured
}

fn filling(controller: ControllerEntry, link: &str) -> Measured {
    measure(controller, &["arq-sr", "checksum"], Duration::from_micros(100), link)
}

#[test]
fn a_managed_queue_marks_and_nothing_is_lost() {
    for controller in [cubic::entry(), bbr::entry()] {
        for aqm in ["codel", "dualpi2"] {
            let it = filling(controller.clone(), &format!("{LINK},aqm={aqm}"));
            assert!(it.marked > 0 && it.heard > 0, "{aqm}: {} marked", it.marked);
            assert!(it.share > 0.9, "{aqm}: {:.3}", it.share);
            assert!(it.dropped < 1e-4, "{aqm}: {:.5}", it.dropped);
            assert!(it.rtt < ms(80), "{aqm}: {:?}", it.rtt);
        }
    }
}

#[test]
fn where_the_bits_are_cleared_losses_are_heard_of() {
    let it = filling(cubic::entry(), &format!("{LINK},aqm=codel,ecn=clear"));
    assert_eq!((it.marked, it.heard), (0, 0));
    assert!(it.dropped > 0.0 && it.share > 0.85, "{:.5}, {:.3}", it.dropped, it.share);
}

#[test]
fn what_does_not_yield_does_not_say_that_it_hears_marks() {
    let link = format!("{LINK},aqm=codel");
    let every = Duration::from_micros(500);
    for (controller, modules) in
        [(reserved::entry(), &["arq-sr"][..]), (cubic::entry(), &["checksum"][..])]
    {
        let it = measure(controller, modules, every, &link);
        assert_eq!((it.marked, it.heard), (0, 0), "{modules:?}");
        assert!(it.dropped > 0.0, "{modules:?}");
    }
}

/// No module of such a flow says what came: what both ends count is enough.
const MEDIA: &[&str] = &["checksum"];

#[test]
fn media_that_hear_of_marks_fill_a_link_with_hardly_a_queue() {
    for modules in [MEDIA, &["arq-sr", "checksum"]] {
        let link = format!("{LINK},aqm=dualpi2");
        let it = measure(scream::entry(), modules, Duration::from_micros(100), &link);
        assert!(it.marked > 0 && it.heard > 0, "{modules:?}: {} of {}", it.heard, it.marked);
        assert!(it.share > 0.9, "{modules:?}: {:.3}", it.share);
        assert!(it.dropped == 0.0, "{modules:?}: {:.5}", it.dropped);
        assert!(it.rtt < ms(45), "{modules:?}: {:?}", it.rtt);
    }
}

#[test]
fn media_yield_to_what_waits_where_nobody_marks() {
    let cleared = format!("{LINK},aqm=dualpi2,ecn=clear");
    for link in [LINK, cleared.as_str()] {
        let it = measure(scream::entry(), MEDIA, Duration::from_micros(100), link);
        assert_eq!((it.marked, it.heard), (0, 0));
        assert!(it.share > 0.85 && it.dropped < 0.005, "{:.3} {:.5}", it.share, it.dropped);
        assert!(it.rtt < ms(40 + 60), "{:?}", it.rtt);
    }
}

#[test]
fn media_that_fit_leave_as_they_are() {
    let every = Duration::from_millis(1);
    let it = measure(scream::entry(), MEDIA, every, LINK);
    let sent = UNIT_LEN as f64 * 8.0 / every.as_secs_f64() / LINK_BPS;
    assert!(it.share > 0.99 * sent && it.dropped == 0.0, "{:.4} of {sent:.4}", it.share);
    assert!(it.rtt < ms(45), "{:?}", it.rtt);
}
