//! Set-up on links that lose, and what is sent to addresses that nobody has proved.

use super::trials::trials;
use crate::fault::{Fault, Scale, Seen};
use crate::setup::{LIMIT, SetUps, Times, link, one};
use crate::stock;
use crate::sweep::{Sum, sweep};
use dacapo_base::Random;
use dacapo_link::{LinkConfig, Loss};
use dacapo_netlab::trial::{EachWay, Trial};
use serde_json::json;

const TEST: &str = "cargo test -p dacapo-lab --test rows";

/// How many set-ups the goal is about, and how many a test tries.
const SET_UPS: (u64, u64) = (500, 100_000);

/// The share that must be ready in 10 s, per cent: of few, and of many.
const SHARE_FEW: f64 = 99.0;
const SHARE: f64 = 99.99;

/// The loss of the goal.
const LOSS: Loss = Loss::Random { p: 0.3 };

/// The rows.
pub const ROWS: &[Fault] = &[
    Fault {
        id: "setup",
        fault: "random loss of 30 % both ways during set-up, round trips of 1 to 300 ms",
        injector: "link: loss",
        expected: "99.99 % of sessions are ready at both ends within 10 s of `connect`",
        test: TEST,
        bench: Some("dacapo-lab run setup"),
        run: |scale| set_ups(scale, "setup", SHARE, |seed| link(seed, LOSS)),
    },
    Fault {
        id: "setup-burst",
        fault: "30 % lost in bursts of 3 both ways during set-up, round trips of 1 to 300 ms",
        injector: "link: loss, burst",
        expected: "99.9 % of sessions are ready at both ends within 10 s of `connect`",
        test: TEST,
        bench: Some("dacapo-lab run setup-burst"),
        run: |scale| {
            let loss = Loss::burst(0.3, 3.0).unwrap_or(LOSS);
            set_ups(scale, "setup-burst", 99.9, |seed| link(seed, loss))
        },
    },
    Fault {
        id: "setup-corrupt",
        fault: "30 % of datagrams altered both ways during set-up, round trips of 1 to 300 ms",
        injector: "link: corrupt-undetected",
        expected: "99.9 % of sessions are ready at both ends within 10 s of `connect`",
        test: TEST,
        bench: Some("dacapo-lab run setup-corrupt"),
        run: |scale| {
            set_ups(scale, "setup-corrupt", 99.9, |seed| LinkConfig {
                corrupt_undetected: 0.3,
                ..link(seed, Loss::None)
            })
        },
    },
    Fault {
        id: "setup-stock",
        fault: "as `setup`, with QUIC as it comes: one attempt, the usual timers (for comparison)",
        injector: "link: loss",
        expected: "no promise: what staggered attempts and short timers are worth",
        test: TEST,
        bench: Some("dacapo-lab run setup-stock"),
        run: stock_set_ups,
    },
    Fault {
        id: "amplification",
        fault: "somebody connects and hears nothing of the answers, as from a forged address",
        injector: "link: all lost one way; loss and duplicates the other way",
        expected: "at most 3 bytes out per byte in; nothing is left when it gives up",
        test: TEST,
        bench: Some("dacapo-lab run amplification"),
        run: amplification,
    },
];

fn set_ups(
    scale: &Scale,
    id: &str,
    goal: f64,
    link: impl Fn(u64) -> LinkConfig + Sync,
) -> Result<Seen, String> {
    let seeds = scale.seeds(SET_UPS.0, SET_UPS.1);
    let few = seeds.end - seeds.start < 10_000;
    let mut all = sweep(scale, seeds, id, |seed, sum: &mut SetUps| {
        sum.add(&one(seed, link(seed)));
        Ok(())
    })?;
    all.seal();
    let (ready, open) = (&all.ready, &all.open);
    let share = ready.share(LIMIT);
    let figure = format!(
        "{} of {} ready in 10 s ({share:.3} %), {}; connection alone {:.3} %, {}; stages at \
         p99.99: offer {}, path and answer {}, accept {}",
        ready.within(LIMIT),
        ready.count(),
        ready.told(),
        open.share(LIMIT),
        open.told(),
        last(&all.offer),
        last(&all.answer),
        last(&all.accept),
    );
    let wanted = if few { SHARE_FEW.min(goal) } else { goal };
    if share < wanted {
        return Err(format!("{wanted} % are wanted: {figure}"));
    }
    Ok(Seen::new(figure, all.json()))
}

fn last(times: &Times) -> String {
    let time = times.quantile(0.9999);
    time.map_or_else(|| "never".to_owned(), |time| format!("{:.2} s", time.as_secs_f64()))
}

/// Stock QUIC: the connection, and three round trips on a stream of it, as a session needs.
#[derive(Clone, Debug, Default)]
struct Stock {
    open: Times,
    done: Times,
}

impl Sum for Stock {
    fn merge(&mut self, other: Self) {
        self.open.merge(other.open);
        self.done.merge(other.done);
    }
}

fn stock_set_ups(scale: &Scale) -> Result<Seen, String> {
    let seeds = scale.seeds(SET_UPS.0, SET_UPS.1);
    let mut all = sweep(scale, seeds, "setup-stock", |seed, sum: &mut Stock| {
        let times = stock::set_up(seed, &link(seed, LOSS));
        sum.open.add(times.open);
        sum.done.add(times.done);
        Ok(())
    })?;
    all.open.seal();
    all.done.seal();
    let (open, done) = (&all.open, &all.done);
    let figure = format!(
        "{} of {} done in 10 s ({:.3} %), {}; connection alone {:.3} %, {}",
        done.within(LIMIT),
        done.count(),
        done.share(LIMIT),
        done.told(),
        open.share(LIMIT),
        open.told(),
    );
    Ok(Seen::new(figure, json!({ "ready": done.json(), "open": open.json() })))
}

fn amplification(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, (20, 1_000), "amplification", |seed| {
        let mut random = Random::from_number(seed);
        let mut back = link(seed, Loss::Random { p: random.unit() * 0.5 });
        back.duplicate = random.unit() * 0.5;
        let there = LinkConfig { loss: Loss::Random { p: 1.0 }, ..link(seed, Loss::None) };
        let links = EachWay { to_participant: there, to_creator: back };
        Trial { must_complete: false, ..Trial::new(seed, links) }
    })?;
    let (trials, most) = (tally.trials, tally.amplification);
    let figure = format!("{most:.3} bytes out per byte in at most, in {trials} attempts of 10 s");
    Ok(Seen::new(figure, tally.json()))
}
