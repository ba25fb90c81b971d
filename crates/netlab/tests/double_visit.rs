//! A core looks at what is ready only: a run in which everything is looked at besides is the same,
//! byte for byte and turn for turn.
//!
//! A world that looks at everything stops where a part of a core had something to do and was not
//! ready: those here do, and every other world with `DACAPO_VISIT_ALL=1`.

use dacapo_base::seeds::{each_seed, number};
use dacapo_netlab::scenario::{Scenario, run};

const SEEDS: u64 = 1_000;

#[test]
fn who_looks_at_all_does_what_who_looks_at_the_ready_does() {
    let seeds = number("DACAPO_SEEDS", SEEDS);
    each_seed(0..seeds, |seed| {
        let mut scenario = Scenario::faulty(seed);
        scenario.pattern.count = 1_000;
        scenario.visits_all = true;
        let all = run(&scenario);
        scenario.visits_all = false;
        let ready = run(&scenario);
        assert_eq!(all.trace, ready.trace, "seed {seed}");
        assert_eq!(all.ledgers, ready.ledgers, "seed {seed}");
        assert_eq!(all.ended_at, ready.ended_at, "seed {seed}");
    });
}
