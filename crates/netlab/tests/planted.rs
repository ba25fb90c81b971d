//! A bug planted on purpose is found within 200 seeds.
//!
//! The bug: in `sequence`, a flag that should be cleared is not, so that once in eight duplicates
//! the packet that follows one is taken for a duplicate as well. Nothing crashes and every counter
//! of the module looks right; only the account of what the link took shows it.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_lift::{
    ControlError, Cx, DropReason, Entry, Module, ModuleSpec, Params, Setup, TimerId, Verdict,
};
use dacapo_link::LinkConfig;
use dacapo_modules::ordering::sequence;
use dacapo_netlab::scenario::{Scenario, run};
use dacapo_packet::Packet;
use std::time::Duration;

struct Planted {
    inner: Box<dyn Module>,
    duplicates: u32,
    confused: bool,
}

impl Module for Planted {
    fn spec(&self) -> &'static ModuleSpec {
        self.inner.spec()
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.inner.down(cx, slot)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let verdict = self.inner.up(cx, slot);
        if verdict == Verdict::Drop(DropReason::Duplicate) {
            self.duplicates += 1;
            self.confused = self.duplicates.is_multiple_of(8);
        } else if self.confused && verdict == Verdict::Forward {
            self.confused = false;
            return Verdict::Drop(DropReason::Duplicate);
        }
        verdict
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        self.inner.timeout(cx, timer);
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        self.inner.control(cx, message)
    }

    fn patience(&self) -> Duration {
        self.inner.patience()
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.inner.drain(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.inner.flush(cx);
    }
}

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let inner = (sequence::ENTRY.build)(params, setup);
    Box::new(Planted { inner, duplicates: 0, confused: false })
}

/// The first seed below 200 whose run loses a unit that the link did not take.
fn first_found(entries: Vec<Entry>) -> Option<u64> {
    let link: LinkConfig = "loss=1%,delay=10ms,dup=1%,jitter=1ms".parse().unwrap();
    (0..200).find(|&seed| {
        let mut scenario = Scenario::new(seed, link.clone());
        scenario.catalogue = dacapo_lift::Catalogue::new(entries.clone())
            .with_transports(dacapo_netlab::catalogue().transports().to_vec());
        let outcome = run(&scenario);
        let taken = outcome.units.values().filter(|unit| unit.arrives == 0).count();
        outcome.record.lost.len() != taken
    })
}

#[test]
fn a_packet_taken_for_a_duplicate_is_found_within_two_hundred_seeds() {
    let entries = || dacapo_modules::entries();
    assert_eq!(first_found(entries()), None, "without the bug nothing is found");
    let planted = Entry { spec: &sequence::SPEC, build };
    let with_bug = std::iter::once(planted).chain(entries()).collect();
    let found = first_found(with_bug);
    println!("found at seed {found:?}");
    assert!(found.is_some(), "the planted bug was not found");
}
