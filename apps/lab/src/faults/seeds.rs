//! Everything at once: thousands of seeds of mixed faults.

use crate::fault::{Fault, Scale, Seen};
use crate::sweep::{Sum, sweep};
use dacapo_netlab::mixed::{Totals, draw};
use dacapo_netlab::trial::{check, run};
use serde_json::{Value, json};

/// The rows.
pub const ROWS: &[Fault] = &[Fault {
    id: "seeds",
    fault: "loss to 30 %, bursts, duplicates to 50 %, reordering, alteration, jitter to 1 s, cuts \
            to 2 s, black holes, short queues, drifting clocks, broken streams, changes of epoch, \
            drawn by seed",
    injector: "netlab: mixed",
    expected: "a session or a typed reason in time; every unit accounted for; nothing altered, \
               repeated, out of order or left over",
    test: "cargo test -p dacapo-netlab --test mixed",
    bench: Some("dacapo-lab run seeds"),
    run: mixed,
}];

/// The sum of many mixed seeds.
#[derive(Clone, Debug, Default)]
pub struct Mixed(pub Totals);

impl Sum for Mixed {
    fn merge(&mut self, other: Self) {
        self.0.merge(&other.0);
    }
}

/// Runs and checks one seed.
///
/// # Errors
/// What broke.
pub fn one(seed: u64, sum: &mut Mixed) -> Result<(), String> {
    let trial = draw(seed);
    let outcome = run(&trial);
    sum.0.add(&trial, &outcome);
    check(&trial, &outcome)
}

/// The sum for programs.
#[must_use]
pub fn json(totals: &Totals) -> Value {
    json!({
        "seeds": totals.trials,
        "set_up": totals.ready,
        "complete": totals.complete,
        "units": totals.units,
        "changes": totals.changes,
        "streams": totals.streams,
        "links": {
            "lost": totals.lost, "doubled": totals.duplicated, "reordered": totals.reordered,
            "altered": totals.altered, "refused": totals.dropped,
        },
        "setup_slowest_s": totals.slowest.as_secs_f64(),
    })
}

fn mixed(scale: &Scale) -> Result<Seen, String> {
    let sum = sweep(scale, scale.seeds(100, 10_000), "seeds", one)?;
    Ok(Seen::new(sum.0.to_string(), json(&sum.0)))
}
