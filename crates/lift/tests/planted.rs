//! The conformance suite finds modules that break the contract, each by the rule that it breaks.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::spec;
use dacapo_base::Time;
use dacapo_lift::conformance::{Subject, suite};
use dacapo_lift::{
    Cx, DropReason, Entry, Module, ModuleSpec, Params, Property, Setup, TimerId, Verdict,
};
use dacapo_packet::Packet;
use std::collections::VecDeque;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Runs the suite on a module; what it says when it finds it broken.
fn verdict(
    spec: &'static ModuleSpec,
    build: fn(&Params, &Setup) -> Box<dyn Module>,
) -> Option<String> {
    let subject = Subject { entry: Entry { spec, build }, params: Params::new() };
    let outcome = catch_unwind(|| suite(&subject)).err()?;
    let text = outcome.downcast_ref::<String>().cloned();
    Some(text.or_else(|| outcome.downcast_ref::<&str>().map(|it| (*it).into())).unwrap_or_default())
}

fn check_found(found: Option<String>, rule: &str) {
    let found = found.unwrap_or_else(|| panic!("it was passed; expected: {rule}"));
    assert!(found.contains(rule), "found by another rule than {rule}: {found}");
}

macro_rules! module {
    ($name:ident, $spec:ident, { $($body:tt)* }) => {
        impl Module for $name {
            fn spec(&self) -> &'static ModuleSpec {
                &$spec
            }

            $($body)*
        }
    };
}

static HONEST: ModuleSpec = ModuleSpec { head: 1, ..spec("honest", 0xF100, false) };

struct Honest;

module!(Honest, HONEST, {
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if cx.pool.push_head(slot, 1).is_err() {
            return Verdict::Drop(DropReason::TooLarge);
        }
        cx.pool.head_mut(slot, 0, 1).fill(7);
        Verdict::Forward
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.pull_head(slot, 1) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::Malformed),
        }
    }
});

#[test]
fn a_module_that_keeps_the_contract_is_passed() {
    assert_eq!(verdict(&HONEST, |_, _| Box::new(Honest)), None);
}

static KEEPER: ModuleSpec = spec("keeper", 0xF101, false);

/// Keeps a second view of every packet and never gives it back.
struct Keeper(Vec<Packet>);

module!(Keeper, KEEPER, {
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.0.push(cx.pool.share(slot));
        Verdict::Forward
    }
});

#[test]
fn a_module_that_keeps_a_view_after_flush_is_found() {
    check_found(verdict(&KEEPER, |_, _| Box::new(Keeper(Vec::new()))), "rule 2");
}

static FAT: ModuleSpec = ModuleSpec { head: 1, ..spec("fat", 0xF102, false) };

/// Says one byte and adds two.
struct Fat;

module!(Fat, FAT, {
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.push_head(slot, 2) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::TooLarge),
        }
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.pull_head(slot, 2) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::Malformed),
        }
    }
});

#[test]
fn a_module_that_adds_one_byte_too_many_is_found() {
    check_found(verdict(&FAT, |_, _| Box::new(Fat)), "rule 5");
}

static THIN: ModuleSpec = ModuleSpec { head: 1, ..spec("thin", 0xF103, false) };

/// Adds its byte, and leaves it there on the way up.
struct Thin;

module!(Thin, THIN, {
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        Honest.down(cx, slot)
    }
});

#[test]
fn a_module_that_does_not_remove_what_its_peer_added_is_found() {
    check_found(verdict(&THIN, |_, _| Box::new(Thin)), "rule 3");
}

static LIAR: ModuleSpec =
    ModuleSpec { keeps_order: false, provides: &[Property::Order], ..spec("liar", 0xF104, false) };

/// Promises order and gives what comes as it comes.
struct Liar;

module!(Liar, LIAR, {});

#[test]
fn a_module_that_reorders_while_it_promises_order_is_found() {
    check_found(verdict(&LIAR, |_, _| Box::new(Liar)), "promised order");
}

static TWIN: ModuleSpec = ModuleSpec {
    keeps_order: false,
    provides: &[Property::NoDuplicates],
    takes: &[],
    beneath: &[],
    profile: &dacapo_lift::Neutral,
    ..spec("twin", 0xF105, false)
};

struct Twin;

module!(Twin, TWIN, {});

#[test]
fn a_module_that_repeats_while_it_promises_not_to_is_found() {
    check_found(verdict(&TWIN, |_, _| Box::new(Twin)), "promised once");
}

static BATCHY: ModuleSpec = ModuleSpec { head: 1, ..spec("batchy", 0xF106, false) };

/// Writes the place in the batch into its byte.
struct Batchy;

module!(Batchy, BATCHY, {
    fn down_batch(&mut self, cx: &mut Cx<'_>, slots: &mut [Packet], verdicts: &mut Vec<Verdict>) {
        for (index, slot) in slots.iter_mut().enumerate() {
            cx.at_slot(index);
            let verdict = Honest.down(cx, slot);
            cx.pool.head_mut(slot, 0, 1).fill(index as u8);
            verdicts.push(verdict);
        }
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        Honest.up(cx, slot)
    }
});

#[test]
fn a_module_whose_packets_depend_on_the_batch_is_found() {
    check_found(verdict(&BATCHY, |_, _| Box::new(Batchy)), "rule 4");
}

static GLOBAL: ModuleSpec = ModuleSpec { head: 1, ..spec("global", 0xF107, false) };
static LIVES: AtomicU64 = AtomicU64::new(0);

/// Writes a number that goes on from one life to the next; in batches it looks the same, so that
/// only the comparison of two lives finds it.
struct Global(u8);

module!(Global, GLOBAL, {
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let verdict = Honest.down(cx, slot);
        cx.pool.head_mut(slot, 0, 1).fill(self.0);
        verdict
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        Honest.up(cx, slot)
    }
});

fn build_global(_: &Params, _: &Setup) -> Box<dyn Module> {
    // Of each seed the third and fourth life are compared as batches: they get the same number.
    let life = LIVES.fetch_add(1, Ordering::Relaxed);
    Box::new(Global(if life % 100 < 4 { 0 } else { life as u8 }))
}

#[test]
fn a_module_with_a_global_is_found() {
    let found = verdict(&GLOBAL, build_global).expect("it was passed");
    assert!(found.contains("rule 6"), "{found}");
}

static GULLIBLE: ModuleSpec = ModuleSpec { head: 1, ..spec("gullible", 0xF108, false) };

/// Believes that there is a byte.
struct Gullible;

module!(Gullible, GULLIBLE, {
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        Honest.down(cx, slot)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        assert_eq!(cx.pool.segment(slot, 0)[0], 7, "the peer writes a 7");
        Honest.up(cx, slot)
    }
});

#[test]
fn a_module_that_panics_on_bytes_of_a_peer_is_found() {
    let found = verdict(&GULLIBLE, |_, _| Box::new(Gullible)).expect("it was passed");
    assert!(found.contains("the peer writes a 7") || found.contains("index"), "{found}");
}

static HOARDER: ModuleSpec = ModuleSpec { keeps_order: false, ..spec("hoarder", 0xF109, false) };

/// Holds packets until a timer, and forgets them at a flush without giving them back.
#[derive(Default)]
struct Hoarder(VecDeque<Packet>);

module!(Hoarder, HOARDER, {
    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.0.push_back(slot.take());
        let at = cx.now() + Duration::from_millis(5);
        cx.arm(0, at);
        Verdict::Held
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        while let Some(packet) = self.0.pop_front() {
            if let Err(packet) = cx.emit_up(packet) {
                cx.discard(packet, DropReason::Overflow);
            }
        }
    }

    fn flush(&mut self, _: &mut Cx<'_>) {
        self.0.clear();
    }
});

#[test]
fn a_module_that_forgets_views_without_giving_them_back_is_found() {
    let found = verdict(&HOARDER, |_, _| Box::new(Hoarder::default())).expect("it was passed");
    assert!(found.contains("rule 2") || found.contains("rule 8"), "{found}");
}

static RESTLESS: ModuleSpec = spec("restless", 0xF10A, false);

/// Arms a timer for a time that is past, again and again.
struct Restless;

module!(Restless, RESTLESS, {
    fn up(&mut self, cx: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        cx.arm(0, Time::from_nanos(1));
        Verdict::Forward
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        cx.arm(0, Time::from_nanos(1));
    }
});

#[test]
fn a_module_with_timers_without_progress_is_found() {
    check_found(verdict(&RESTLESS, |_, _| Box::new(Restless)), "rule 1");
}
