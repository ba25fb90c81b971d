//! The conformance suite finds modules that break the contract, each by the rule that it breaks.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::spec;
use dacapo_base::Time;
use dacapo_lift::conformance::{Subject, suite};
use dacapo_lift::{
    ControlError, Cost, Cx, DropReason, Entry, Figures, Module, ModuleSpec, ParamSpec, ParamUnit,
    Params, Profile, Property, Service, Setting, Setup, TimerId, Verdict,
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
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        Honest.down(cx, slot)
    }

    fn down_batch(&mut self, cx: &mut Cx<'_>, slots: &mut [Packet]) {
        for (index, slot) in slots.iter_mut().enumerate() {
            cx.at_slot(index);
            let verdict = Honest.down(cx, slot);
            cx.pool.head_mut(slot, 0, 1).fill(1 + index as u8);
            cx.decide(verdict);
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

static HASTY: ModuleSpec = ModuleSpec { head: 1, ..spec("hasty", 0xF1FF, true) };

/// Takes trains upwards and looks at their first segment only.
struct Hasty;

module!(Hasty, HASTY, {
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.put_head(slot, |_| [7]) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::TooLarge),
        }
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if cx.pool.segment(slot, 0).first() != Some(&7) {
            return Verdict::Drop(DropReason::Malformed);
        }
        Honest.up(cx, slot)
    }
});

#[test]
fn a_module_that_judges_a_train_by_its_first_segment_is_found() {
    check_found(verdict(&HASTY, |_, _| Box::new(Hasty)), "trains upwards");
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

/// A number from 0 to 9 that message 1 sets.
const LEVEL: ParamSpec = ParamSpec {
    name: "level",
    unit: ParamUnit::Count,
    default: 3,
    min: 0,
    max: 9,
    summary: "",
    control: Some(1),
};

/// A spec that differs from the honest one in its name, profile and parameters.
const fn predicting(
    name: &'static str,
    id: u16,
    profile: &'static dyn Profile,
    params: &'static [ParamSpec],
) -> ModuleSpec {
    ModuleSpec { profile, params, head: 1, ..spec(name, id, false) }
}

/// Predicts more delay where there is more rate.
#[derive(Debug)]
struct Contrary;

impl Profile for Contrary {
    fn figures(&self, _: &Params, _: &Setting, below: &Service) -> Figures {
        let delay_ns = below.figures.delay_ns.saturating_add(below.figures.rate_bps / 1_000);
        Figures { delay_ns, ..below.figures }
    }
}

static CONTRARY: ModuleSpec = predicting("contrary", 0xF10B, &Contrary, &[]);

#[test]
fn a_module_whose_figures_fall_when_those_below_rise_is_found() {
    let found = verdict(&CONTRARY, |_, _| Box::new(Honest));
    check_found(found, "monotone: contrary: with Params");
}

/// Proposes the dear level where few packets are lost, and the cheap one elsewhere.
#[derive(Debug)]
struct Spendthrift;

impl Profile for Spendthrift {
    fn points(&self, _: &Setting, below: &Service) -> Vec<Params> {
        let mut params = Params::new();
        params.set(0, if below.figures.loss_ppb < 1_000_000 { 9 } else { 0 });
        vec![params]
    }

    fn cost(&self, params: &Params) -> Cost {
        Cost { packet_ps: params.value(&SPENDTHRIFT, "level"), ..Cost::ZERO }
    }
}

static SPENDTHRIFT: ModuleSpec = predicting("spendthrift", 0xF10C, &Spendthrift, &[LEVEL]);

#[test]
fn a_module_that_costs_more_over_a_better_service_is_found() {
    check_found(verdict(&SPENDTHRIFT, |_, _| Box::new(Honest)), "no point is as good as");
}

/// Proposes what its parameter does not allow.
#[derive(Debug)]
struct Boundless;

impl Profile for Boundless {
    fn points(&self, setting: &Setting, _: &Service) -> Vec<Params> {
        let mut params = Params::new();
        params.set(0, setting.path.loss_ppb);
        vec![params]
    }
}

static BOUNDLESS: ModuleSpec = predicting("boundless", 0xF10D, &Boundless, &[LEVEL]);

#[test]
fn a_module_that_proposes_an_illegal_value_is_found() {
    check_found(verdict(&BOUNDLESS, |_, _| Box::new(Honest)), "a point outside the bounds");
}

/// Predicts something else every time.
#[derive(Debug)]
struct Moody;

static MOODS: AtomicU64 = AtomicU64::new(0);

impl Profile for Moody {
    fn figures(&self, _: &Params, _: &Setting, below: &Service) -> Figures {
        let delay_ns = below.figures.delay_ns / (MOODS.fetch_add(1, Ordering::Relaxed) + 1);
        Figures { delay_ns, ..below.figures }
    }
}

static MOODY: ModuleSpec = predicting("moody", 0xF10E, &Moody, &[]);

#[test]
fn a_module_that_predicts_something_else_when_asked_again_is_found() {
    check_found(verdict(&MOODY, |_, _| Box::new(Honest)), "other figures when asked again");
}

static ECHO: ModuleSpec =
    ModuleSpec { takes: &[Property::Order, Property::NoDuplicates], ..spec("echo", 0xF10F, false) };
static REPEATER: ModuleSpec = ModuleSpec { profile: &Twice, ..spec("repeater", 0xF110, false) };

/// Two packets for each.
#[derive(Debug)]
struct Twice;

impl Profile for Twice {
    fn copies(&self, _: &Params) -> u64 {
        2
    }
}

/// Sends everything a second time, 5 ms later.
struct Echo(&'static ModuleSpec, Vec<Packet>);

impl Module for Echo {
    fn spec(&self) -> &'static ModuleSpec {
        self.0
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.1.push(cx.pool.share(slot));
        let at = cx.now() + Duration::from_millis(5);
        cx.arm(0, at);
        Verdict::Forward
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        for packet in self.1.drain(..) {
            if let Err(packet) = cx.emit_down(packet) {
                cx.discard(packet, DropReason::Overflow);
            }
        }
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.timeout(cx, 0);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        for packet in self.1.drain(..) {
            cx.discard(packet, DropReason::Shutdown);
        }
    }
}

#[test]
fn a_module_that_sends_more_than_its_profile_says_is_found() {
    let found = verdict(&ECHO, |_, _| Box::new(Echo(&ECHO, Vec::new())));
    check_found(found, "more than its profile says");
}

#[test]
fn a_module_that_repeats_without_taking_that_away_is_found() {
    let found = verdict(&REPEATER, |_, _| Box::new(Echo(&REPEATER, Vec::new())));
    check_found(found, "repeats and does not say so");
}

static LEVELLED: ModuleSpec = predicting("levelled", 0xF111, &dacapo_lift::Neutral, &[LEVEL]);

/// Writes its level into its byte. How it takes messages differs from test to test.
struct Levelled {
    level: u64,
    takes: fn(u64) -> Result<Option<u64>, ControlError>,
}

module!(Levelled, LEVELLED, {
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let verdict = Honest.down(cx, slot);
        cx.pool.head_mut(slot, 0, 1).fill(self.level as u8);
        verdict
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        Honest.up(cx, slot)
    }

    fn control(&mut self, _: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        let (&1, value) = message.split_first().ok_or(ControlError::Malformed)? else {
            return Err(ControlError::Unknown);
        };
        let value = value.try_into().map_err(|_| ControlError::Malformed)?;
        if let Some(level) = (self.takes)(u64::from_be_bytes(value))? {
            self.level = level;
        }
        Ok(Vec::new())
    }
});

impl Levelled {
    fn boxed(
        params: &Params,
        takes: fn(u64) -> Result<Option<u64>, ControlError>,
    ) -> Box<dyn Module> {
        Box::new(Self { level: params.value(&LEVELLED, "level"), takes })
    }
}

fn within(value: u64) -> Result<u64, ControlError> {
    let outside = || ControlError::OutOfRange(format!("{value} is outside 0 to 9"));
    (value <= 9).then_some(value).ok_or_else(outside)
}

#[test]
fn a_module_that_takes_messages_as_it_says_is_passed() {
    let honest = |params: &Params, _: &Setup| Levelled::boxed(params, |it| within(it).map(Some));
    assert_eq!(verdict(&LEVELLED, honest), None);
}

#[test]
fn a_module_that_answers_a_message_and_does_nothing_is_found() {
    let deaf = |params: &Params, _: &Setup| Levelled::boxed(params, |it| within(it).map(|_| None));
    check_found(verdict(&LEVELLED, deaf), "a message to set 0 does not");
}

#[test]
fn a_module_that_takes_a_value_outside_is_found() {
    let lax = |params: &Params, _: &Setup| Levelled::boxed(params, |it| Ok(Some(it)));
    check_found(verdict(&LEVELLED, lax), "10 is outside and not refused");
}

static IDLE: ModuleSpec = ModuleSpec { params: &[LEVEL], ..spec("idle", 0xF112, false) };

/// Has a parameter that nothing depends on.
struct Idle;

module!(Idle, IDLE, {
    fn control(&mut self, _: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        let value = message.get(1..).unwrap_or_default().try_into();
        within(value.map(u64::from_be_bytes).map_err(|_| ControlError::Malformed)?)?;
        Ok(Vec::new())
    }
});

#[test]
fn a_module_with_a_parameter_that_nothing_depends_on_is_found() {
    check_found(verdict(&IDLE, |_, _| Box::new(Idle)), "no value changes anything");
}
