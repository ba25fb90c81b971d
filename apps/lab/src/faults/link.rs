//! What a link does to single datagrams: it loses, doubles, reorders, alters, delays.

use super::trials::{DELAY, Tally, exact, ms, trials};
use crate::fault::{Fault, Scale, Seen};
use dacapo_base::Random;
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::trial::{Carrier, EachWay, Fault as Happens, Trial};
use std::time::Duration;

const TEST: &str = "cargo test -p dacapo-lab --test rows";
const RUNS: (u64, u64) = (4, 1_000);

const EXACT: &str = "the session completes, order is kept, nothing comes twice, and lost is \
                     exactly what the link took";

const LONG: &str = "as above; who closes while a burst has taken the contact is told so";

macro_rules! loss_rows {
    ($($id:literal $percent:literal)*) => {
        [$(Fault {
            id: $id,
            fault: concat!("random loss of ", $percent, " % both ways"),
            injector: "link: loss",
            expected: EXACT,
            test: TEST,
            bench: Some(concat!("dacapo-lab run ", $id)),
            run: |scale| random_loss(scale, $id, $percent),
        }),*]
    };
}

macro_rules! burst_rows {
    ($($id:literal $len:literal $expected:expr)*) => {
        [$(Fault {
            id: $id,
            fault: concat!("bursts of ", $len, " on average, 1 to 5 % lost, while flows run"),
            injector: "link: loss, burst (Gilbert-Elliott)",
            expected: $expected,
            test: TEST,
            bench: Some(concat!("dacapo-lab run ", $id)),
            run: |scale| bursts(scale, $id, $len),
        }),*]
    };
}

const LOSS: [Fault; 7] = loss_rows!(
    "loss-0" 0 "loss-1" 1 "loss-2" 2 "loss-5" 5 "loss-10" 10 "loss-20" 20 "loss-30" 30
);
const BURSTS: [Fault; 3] = burst_rows!("burst-3" 3 EXACT "burst-10" 10 EXACT "burst-50" 50 LONG);

/// The rows.
pub const ROWS: &[Fault] = &[
    LOSS[0],
    LOSS[1],
    LOSS[2],
    LOSS[3],
    LOSS[4],
    LOSS[5],
    LOSS[6],
    BURSTS[0],
    BURSTS[1],
    BURSTS[2],
    Fault {
        id: "stream-loss",
        fault: "random loss of 0 to 30 % both ways, flows both ways over byte streams",
        injector: "link: loss; simulated TCP",
        expected: "every unit is delivered, in order, once",
        test: TEST,
        bench: Some("dacapo-lab run stream-loss"),
        run: stream_loss,
    },
    Fault {
        id: "duplicate-50",
        fault: "10 to 50 % of datagrams come twice",
        injector: "link: dup",
        expected: "nothing is delivered twice; nothing is lost",
        test: TEST,
        bench: Some("dacapo-lab run duplicate-50"),
        run: duplicates,
    },
    Fault {
        id: "reorder-25",
        fault: "1 to 25 % of datagrams held back up to 30 ms, at 10,000 a second: 300 places",
        injector: "link: reorder, reorder-by",
        expected: "order is restored; nothing is lost",
        test: TEST,
        bench: Some("dacapo-lab run reorder-25"),
        run: reordering,
    },
    Fault {
        id: "reorder-5000",
        fault: "1 to 25 % of datagrams held back up to 100 ms, at 50,000 a second: 5,000 places",
        injector: "link: reorder, reorder-by",
        expected: "what comes later than `sequence` waits (40 ms) is reported lost, no more",
        test: TEST,
        bench: Some("dacapo-lab run reorder-5000"),
        run: far_reordering,
    },
    Fault {
        id: "corrupt-dropped",
        fault: "0.0001 to 30 % of datagrams altered, and dropped by a checksum below",
        injector: "link: corrupt",
        expected: EXACT,
        test: TEST,
        bench: Some("dacapo-lab run corrupt-dropped"),
        run: corrupt_dropped,
    },
    Fault {
        id: "corrupt-passed",
        fault: "0.0001 to 30 % of datagrams altered with a valid checksum below",
        injector: "link: corrupt-undetected",
        expected: "no altered unit is delivered; each altered packet is dropped and reported",
        test: TEST,
        bench: Some("dacapo-lab run corrupt-passed"),
        run: corrupt_passed,
    },
    Fault {
        id: "jitter-1000",
        fault: "jitter of up to 1,000 ms, each datagram by itself",
        injector: "link: delay, jitter, keep-order",
        expected: "the session stays; every unit is accounted for",
        test: TEST,
        bench: Some("dacapo-lab run jitter-1000"),
        run: jitter,
    },
    Fault {
        id: "delay-steps",
        fault: "the delay goes from 20 to 500 ms and back to 20 ms while flows run",
        injector: "link: delay, changed on the way",
        expected: "the session stays; nothing is lost",
        test: TEST,
        bench: Some("dacapo-lab run delay-steps"),
        run: delay_steps,
    },
    Fault {
        id: "change",
        fault: "five changes of epoch under loss to 15 %, duplicates, reordering, alteration, cuts",
        injector: "link; change to an equal graph",
        expected: "both ends run the same graph; lost is exactly what the link took",
        test: TEST,
        bench: Some("dacapo-lab run change"),
        run: changes,
    },
];

fn random_loss(scale: &Scale, id: &str, percent: u32) -> Result<Seen, String> {
    let loss = Loss::Random { p: f64::from(percent) / 100.0 };
    let tally = trials(scale, RUNS, id, |seed| exact(seed, |link| link.loss = loss))?;
    let slowest = tally.slowest.as_secs_f64();
    Ok(tally.seen(&format!("each one taken by the link; slowest set-up {slowest:.2} s")))
}

fn bursts(scale: &Scale, id: &str, len: u32) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, id, |seed| {
        let mean = 0.01 + 0.04 * Random::from_number(seed).unit();
        let loss = Loss::burst(mean, f64::from(len)).unwrap_or(Loss::Random { p: mean });
        let mut trial = exact(seed, |_| {});
        // From when flows run: so few datagrams set a session up that one burst can take them all.
        let link = LinkConfig { loss, delay: DELAY, ..LinkConfig::default() };
        let links = Happens::Links(Box::new(EachWay::both(link)));
        trial.from_running = vec![(Duration::ZERO, links)];
        // Fifty probes in a row are more than contact lasts.
        trial.must_complete = len < 50;
        trial
    })?;
    Ok(tally.seen("each one taken by the link"))
}

fn stream_loss(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "stream-loss", |seed| {
        let loss = Loss::Random { p: 0.3 * Random::from_number(seed).unit() };
        let mut trial = exact(seed, |link| link.loss = loss);
        trial.exact = false;
        let mut up = trial.flows[0].clone();
        up.direction = dacapo_wire::session::Direction::ToCreator;
        trial.flows.push(up);
        for flow in &mut trial.flows {
            (flow.carrier, flow.graphs) = (Carrier::Tcp, vec![vec!["segment"]]);
            flow.pattern.len_max = 5_000;
        }
        trial
    })?;
    Ok(tally.seen("none can be"))
}

fn duplicates(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "duplicate-50", |seed| {
        let duplicate = 0.1 + 0.4 * Random::from_number(seed).unit();
        exact(seed, |link| link.duplicate = duplicate)
    })?;
    let repeated = tally.repeated;
    Ok(tally.seen(&format!("{repeated} repetitions dropped, none delivered")))
}

/// A flow of `rate` units a second, of which some are held back.
fn held_back(seed: u64, rate: u32, by: Duration, count: u64) -> Trial {
    let reorder = 0.01 + 0.24 * Random::from_number(seed).unit();
    let mut trial = exact(seed, |link| (link.reorder, link.reorder_by) = (reorder, by));
    let pattern = &mut trial.flows[0].pattern;
    (pattern.count, pattern.every) = (count, Duration::from_secs(1) / rate);
    (pattern.len_min, pattern.len_max) = (16, 100);
    trial
}

fn reordering(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "reorder-25", |seed| held_back(seed, 10_000, ms(30), 2_000))?;
    let reordered = tally.reordered;
    Ok(tally.seen(&format!("{reordered} datagrams came out of order, every unit in order")))
}

fn far_reordering(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, (2, 200), "reorder-5000", |seed| Trial {
        exact: false,
        ..held_back(seed, 50_000, ms(100), 10_000)
    })?;
    let reordered = tally.reordered;
    Ok(tally.seen(&format!("{reordered} datagrams came out of order, every unit in order")))
}

/// A share from 1e-6 to 0.3, each power of ten as likely.
fn share(seed: u64) -> f64 {
    let exponent = Random::from_number(seed).unit() * (0.3_f64 / 1e-6).log10();
    1e-6 * 10_f64.powf(exponent)
}

fn corrupt_dropped(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "corrupt-dropped", |seed| {
        exact(seed, |link| link.corrupt = share(seed))
    })?;
    Ok(tally.seen("each one altered by the link"))
}

fn corrupt_passed(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "corrupt-passed", |seed| {
        exact(seed, |link| link.corrupt_undetected = share(seed))
    })?;
    let Tally { corrupted, altered, .. } = tally;
    Ok(tally.seen(&format!(
        "{corrupted} datagrams came altered, `checksum` dropped {altered}, 0 units altered"
    )))
}

fn jitter(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "jitter-1000", |seed| {
        let half = ms(1 + Random::from_number(seed).below(500));
        let trial = exact(seed, |link| {
            (link.delay, link.jitter, link.keep_order) = (half, half, seed.is_multiple_of(2));
        });
        Trial { exact: false, ..trial }
    })?;
    Ok(tally.seen("no contact lost"))
}

fn delay_steps(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "delay-steps", |seed| {
        let mut random = Random::from_number(seed);
        let mut trial = exact(seed, |link| link.delay = ms(20));
        let step = |delay| {
            let link = LinkConfig { delay: ms(delay), ..LinkConfig::default() };
            Happens::Links(Box::new(EachWay::both(link)))
        };
        trial.flows[0].pattern.count = 3_000;
        trial.from_running = vec![
            (ms(200 + random.below(600)), step(500)),
            (ms(1_500 + random.below(600)), step(20)),
        ];
        trial
    })?;
    Ok(tally.seen("no contact lost"))
}

fn changes(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "change", |seed| {
        let mut random = Random::from_number(seed ^ 0xC4A6E);
        let mut trial = exact(seed, |link| {
            link.loss = Loss::Random { p: random.unit() * 0.15 };
            link.duplicate = random.unit() * 0.1;
            link.reorder = random.unit() * 0.1;
            link.reorder_by = ms(1 + random.below(15));
            link.corrupt_undetected = random.unit() * 0.02;
        });
        let from = random.below(1_000);
        trial.flows[0].pattern.count = 1_500;
        trial.changes = 5;
        trial.from_running = vec![
            (ms(from), Happens::Cut(EachWay::both(true))),
            (ms(from + random.below(500)), Happens::Cut(EachWay::both(false))),
        ];
        trial
    })?;
    let changes = tally.changes;
    Ok(tally.seen(&format!("{changes} changes made, none left half done")))
}
