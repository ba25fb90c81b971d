//! A core looks at what is ready only: a run in which everything is looked at besides is the same,
//! byte for byte and turn for turn.
//!
//! A world that looks at everything stops where a part of a core had something to do and was not
//! ready. Every world of this crate's tests does at each fifth step, those here at each; with
//! `DACAPO_VISIT_EVERY=1` all do.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, ms, offer, pattern};
use dacapo_base::seeds::{each_seed, number};
use dacapo_core::Forgets;
use dacapo_netlab::scenario::{Scenario, run};
use dacapo_wire::session::FlowOffer;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SEEDS: u64 = 1_000;

#[test]
fn who_looks_at_all_does_what_who_looks_at_the_ready_does() {
    let seeds = number("DACAPO_SEEDS", SEEDS);
    each_seed(0..seeds, |seed| {
        let mut scenario = Scenario::faulty(seed);
        scenario.pattern.count = 1_000;
        scenario.steps_per_visit = 1;
        let all = run(&scenario);
        scenario.steps_per_visit = 0;
        let ready = run(&scenario);
        assert_eq!(all.trace, ready.trace, "seed {seed}");
        assert_eq!(all.ledgers, ready.ledgers, "seed {seed}");
        assert_eq!(all.ended_at, ready.ended_at, "seed {seed}");
    });
}

/// What a world said when it stopped.
fn stopped(body: impl FnOnce()) -> Option<String> {
    let said = catch_unwind(AssertUnwindSafe(body)).err()?;
    said.downcast_ref::<String>().cloned()
}

#[test]
fn it_is_noticed_when_an_owner_does_not_say_what_is_due() {
    for forgets in [Forgets::Connections, Forgets::Peers, Forgets::Sessions] {
        let mut scenario = Scenario::faulty(1);
        scenario.steps_per_visit = 1;
        scenario.forgets = Some(forgets);
        let said = stopped(|| drop(run(&scenario))).unwrap_or_default();
        assert!(said.contains("was not ready"), "{forgets:?}: {said}");
    }
}

#[test]
fn it_is_noticed_when_a_fan_out_does_not_say_what_is_due() {
    let said = stopped(|| {
        let mut lab = Lab::new("delay=20ms");
        lab.world.set_steps_per_visit(1);
        lab.pattern = pattern(1_000);
        lab.publish("test", vec![FlowOffer { transport: 10, ..offer("all", &["sequence"]) }]);
        let peer = lab.dial();
        let session = lab.set_up(peer, "test");
        let creator = lab.creator;
        lab.world.core(creator).forget_due(Forgets::FanOuts);
        lab.activate(session.here);
        lab.run(ms(3_000));
    });
    assert!(said.as_deref().unwrap_or_default().contains("was not ready"), "{said:?}");
}
