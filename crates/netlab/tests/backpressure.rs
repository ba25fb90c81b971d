//! A source that has more than the bound lets through is asked no further than the splice has room.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, ms, offer, pattern};
use dacapo_base::Time;
use dacapo_core::{Port, Source, SourcePoll, UnitWriter};
use dacapo_netlab::traffic::PatternSource;
use dacapo_wire::data::TYPE_DATA;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BOUND: u64 = 1_000_000;

/// Counts the units that a source was asked for.
struct Counting(PatternSource, Arc<AtomicU64>);

impl Source for Counting {
    fn start(&mut self, now: Time) {
        self.0.start(now);
    }

    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        let answer = self.0.poll_unit(now, unit);
        if answer == SourcePoll::Unit {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

#[test]
fn a_source_with_units_at_once_waits_for_the_bound() {
    for (len, unit_len_max, modules) in [
        (300, 400, &["sequence"][..]),
        (1_200, 1_400, &["sequence", "checksum"]),
        (20_000, 20_100, &["segment", "sequence", "checksum"]),
    ] {
        let mut lab = Lab::new("delay=20ms");
        lab.pattern = pattern(1_000_000);
        lab.pattern.every = Duration::ZERO;
        (lab.pattern.len_min, lab.pattern.len_max) = (len, len);
        let mut flow = offer("fast", modules);
        (flow.bound_bps, flow.unit_len_max) = (BOUND, unit_len_max);
        let (asked, pattern) = (Arc::new(AtomicU64::new(0)), lab.pattern);
        let count = asked.clone();
        lab.publish_with("test", vec![flow], move |_| {
            let source = PatternSource::new(pattern);
            Ok(Port::Source(Box::new(Counting(source, count.clone()))))
        });
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (seen, creator) = (sent.clone(), lab.creator);
        lab.world.observe(move |crossing| {
            if crossing.node == creator && crossing.bytes.first() == Some(&TYPE_DATA) {
                seen.lock().unwrap().push((crossing.now, crossing.bytes.len()));
            }
        });
        let peer = lab.dial();
        let joined = lab.set_up(peer, "test");
        lab.activate(joined.here);
        let per_unit = len as u64 * 8 * 1_000_000_000 / BOUND;
        for _ in 0..50 {
            lab.run(ms(100));
            let fed = lab.world.core(lab.creator).status(joined.there)[0].sent;
            let waiting = asked.load(Ordering::Relaxed) - fed;
            assert!(waiting <= 64, "{waiting} units of {len} bytes wait in the splice");
            let bytes = lab.world.core(lab.creator).pool().stats().bytes;
            assert!(bytes <= 8 << 20, "{bytes} bytes of packets for units of {len}");
        }
        let delivered = joined.numbers(0).len() as u64;
        assert!(delivered * per_unit > 4_500_000_000, "{delivered} units of {len} in 5 s");
        check_rate(&sent.lock().unwrap());
        lab.close(lab.participant, joined.here);
        lab.end_of(lab.participant, joined.here, ms(9_000));
        lab.check_empty();
    }
}

/// Over every span of time: at most the bound and what is saved of it, and twice the bound and what
/// goes out together; and one packet.
fn check_rate(sent: &[(Time, usize)]) {
    let (burst, saved) = (1_500 * 8, BOUND * 50 / 1_000);
    for window in [1, 10, 100, 1_000] {
        let mut bits = 0;
        let mut first = 0;
        for (at, len) in sent {
            bits += *len as u64 * 8;
            while at.since(sent[first].0) > ms(window) {
                bits -= sent[first].1 as u64 * 8;
                first += 1;
            }
            let bound = BOUND * window / 1_000;
            let most = (bound + saved).min(bound * 2 + burst) + 1_500 * 8;
            assert!(bits <= most, "{bits} bits in {window} ms, at most {most}");
        }
    }
}

#[test]
fn a_pool_that_is_full_blocks_the_source_and_nothing_else() {
    let mut small = common::config();
    small.pool_bytes_max = 256 * 1024;
    let mut lab = Lab::with(1, "delay=20ms", small, common::config());
    lab.pattern = pattern(500);
    lab.pattern.every = Duration::ZERO;
    (lab.pattern.len_min, lab.pattern.len_max) = (50_000, 60_000);
    let mut flow = offer("large", &["segment", "sequence", "checksum"]);
    (flow.bound_bps, flow.unit_len_max) = (50_000_000, 60_016);
    let joined = lab.start(vec![flow]);
    let (here, there) = lab.ledgers(&joined, 0, ms(20_000));
    assert_eq!((here.delivered, there.delivered), (500, 500));
    assert!(lab.world.core(lab.creator).pool().stats().bytes <= 256 * 1024);
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(2_000));
    lab.check_empty();
}
