//! The engine: order of effects, credit, trains, directions, counters, timers, and modules that break
//! the contract.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_base::{Random, Time};
use dacapo_lift::conformance::{Subject, suite};
use dacapo_lift::{
    Cx, DropReason, Entry, Module, ModuleSpec, Params, Property, Runner, Stratum, Surroundings,
    TimerId, Verdict,
};
use dacapo_packet::{Layout, Packet, Pool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

static SPEC: ModuleSpec = ModuleSpec {
    name: "test",
    id: 0xF010,
    function: "test",
    summary: "",
    stratum: Stratum::Repair,
    head: 0,
    tail: 0,
    trains_down: false,
    trains_up: false,
    keeps_order: true,
    segments: false,
    requires: &[],
    provides: &[],
    params: &[],
};

/// A runner with what it lives on.
struct Bench {
    runner: Runner,
    pool: Pool,
    random: Random,
    now: Time,
}

impl Bench {
    fn new(modules: Vec<Box<dyn Module>>) -> Self {
        Self {
            runner: Runner::new(modules),
            pool: Pool::new(1 << 20),
            random: Random::from_number(1),
            now: Time::from_millis(1),
        }
    }

    fn with<R>(&mut self, body: impl FnOnce(&mut Runner, &mut Surroundings<'_>) -> R) -> R {
        let (now, pool, random) = (self.now, &mut self.pool, &mut self.random);
        body(&mut self.runner, &mut Surroundings { now, pool, random })
    }

    fn packet(&mut self, text: &str) -> Packet {
        self.pool.packet_from(16, text.as_bytes(), 16).unwrap()
    }

    /// Feeds all at once and returns what leaves towards the network.
    fn down(&mut self, texts: &[&str]) -> Vec<String> {
        for text in texts {
            let packet = self.packet(text);
            self.with(|runner, around| runner.feed(around, packet));
        }
        self.with(Runner::run);
        self.out(true)
    }

    fn out(&mut self, down: bool) -> Vec<String> {
        let batch = if down { self.runner.take_down() } else { self.runner.take_up() };
        let packets: Vec<Packet> = batch.drain().collect();
        let mut texts = Vec::new();
        for packet in packets {
            for index in 0..packet.segment_count() {
                let bytes = self.pool.segment(&packet, index).to_vec();
                texts.push(String::from_utf8(bytes).unwrap());
            }
            self.pool.free(packet);
        }
        texts
    }

    fn finish(mut self) {
        self.with(|runner, around| runner.flush(around));
        assert_eq!(self.pool.live_views(), 0);
    }
}

macro_rules! module {
    ($name:ident $(, $field:ident: $type:ty)*; $($method:tt)*) => {
        #[derive(Default)]
        struct $name { $($field: $type,)* }

        impl Module for $name {
            fn spec(&self) -> &'static ModuleSpec {
                &SPEC
            }

            $($method)*
        }
    };
}

module! { Echo;
    // Emits a copy before each packet down, and one up.
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let text = [cx.pool.segment(slot, 0), b"'"].concat();
        let before = cx.pool.packet_from(16, &text, 16).unwrap();
        let back = cx.pool.packet_from(0, &text, 0).unwrap();
        assert!(cx.emit_down(before).is_ok() && cx.emit_up(back).is_ok());
        Verdict::Forward
    }
}

#[test]
fn what_is_emitted_goes_before_its_slots_own_packet_in_slot_order() {
    let mut bench = Bench::new(vec![Box::new(Echo::default())]);
    assert_eq!(bench.down(&["a", "b", "c"]), ["a'", "a", "b'", "b", "c'", "c"]);
    assert_eq!(bench.out(false), ["a'", "b'", "c'"], "against the direction, in order too");
    bench.finish();
}

module! { Drops, seen: u32;
    // Drops every third packet.
    fn down(&mut self, _: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        self.seen += 1;
        if self.seen.is_multiple_of(3) { Verdict::Drop(DropReason::Injected) } else { Verdict::Forward }
    }
}

#[test]
fn counters_close_and_name_the_reason() {
    let mut bench = Bench::new(vec![Box::new(Drops::default())]);
    assert_eq!(bench.down(&["1", "2", "3", "4", "5", "6"]), ["1", "2", "4", "5"]);
    let (_, seen) = bench.runner.modules().next().unwrap();
    assert_eq!((seen.down.packets, seen.down.bytes), (6, 6));
    assert_eq!(seen.down.dropped[DropReason::Injected.index()], 2);
    assert_eq!(seen.down.dropped_count(), 2);
    bench.finish();
}

module! { Narrow, taken: usize, open: usize;
    fn down(&mut self, _: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        assert_eq!(slot.segment_count(), 1);
        self.taken += 1;
        assert!(self.taken <= self.open, "offered more than the credit");
        Verdict::Forward
    }

    fn control(
        &mut self,
        _: &mut Cx<'_>,
        message: &[u8],
    ) -> Result<Vec<u8>, dacapo_lift::ControlError> {
        self.open += message.len();
        Ok(Vec::new())
    }

    fn credit(&self) -> usize {
        self.open - self.taken
    }
}

#[test]
fn no_more_than_the_credit_is_offered_and_a_train_is_cut_where_it_ends() {
    let mut bench = Bench::new(vec![Box::new(Narrow { taken: 0, open: 3 })]);
    let layout = Layout { head: 0, tail: 0, segment: 1, segmented: true };
    let train = bench.pool.alloc_train(&layout, 5).unwrap();
    bench.pool.write_payload(&train, 0, b"abcde");
    bench.with(|runner, around| {
        runner.feed(around, train);
        runner.run(around);
    });
    assert_eq!(bench.out(true), ["a", "b", "c"]);
    assert_eq!(bench.runner.credit(), 0, "packets wait before the module");
    bench.with(|runner, around| runner.control(around, 0, &[0; 2]).unwrap());
    assert_eq!(bench.out(true), ["d", "e"]);
    bench.finish();
}

#[test]
fn a_train_that_was_split_leaves_as_one() {
    let mut bench = Bench::new(vec![Box::new(Honest::default())]);
    let layout = Layout { head: 8, tail: 0, segment: 4, segmented: true };
    let train = bench.pool.alloc_train(&layout, 8).unwrap();
    bench.pool.write_payload(&train, 0, b"aaaabbbb");
    bench.with(|runner, around| {
        runner.feed(around, train);
        runner.run(around);
    });
    let packets: Vec<Packet> = bench.runner.take_down().drain().collect();
    assert_eq!(packets.iter().map(Packet::segment_count).collect::<Vec<_>>(), [2]);
    packets.into_iter().for_each(|packet| bench.pool.free(packet));
    bench.finish();
}

module! { Bounce;
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let packet = slot.take();
        cx.emit_up(packet).map_or_else(|packet| { *slot = packet; Verdict::Forward }, |()| Verdict::Held)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        let packet = slot.take();
        cx.emit_down(packet).map_or_else(|packet| { *slot = packet; Verdict::Forward }, |()| Verdict::Held)
    }
}

#[test]
fn modules_that_answer_each_other_without_end_do_not_hold_the_core() {
    let mut bench = Bench::new(vec![Box::new(Bounce::default()), Box::new(Bounce::default())]);
    let packet = bench.packet("ball");
    // Between the two it would go to and fro for ever.
    bench.with(|runner, around| {
        runner.handle_up(around, packet);
        runner.run(around);
    });
    bench.out(true);
    bench.out(false);
    bench.finish();
}

module! { Clock, fired: u32;
    fn down(&mut self, cx: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        cx.arm(1, cx.now() + Duration::from_millis(10));
        cx.arm(2, cx.now() + Duration::from_millis(5));
        cx.arm(2, cx.now() + Duration::from_millis(20));
        cx.arm(3, cx.now() + Duration::from_millis(1));
        cx.disarm(3);
        Verdict::Forward
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, timer: TimerId) {
        let text = format!("t{timer}");
        let packet = cx.pool.packet_from(0, text.as_bytes(), 0).unwrap();
        assert!(cx.emit_down(packet).is_ok());
        self.fired += 1;
    }
}

#[test]
fn timers_fire_once_in_order_and_can_be_replaced_and_taken_back() {
    let mut bench = Bench::new(vec![Box::new(Clock::default())]);
    bench.down(&["x"]);
    let start = bench.now;
    assert_eq!(bench.runner.next_deadline(), Some(start + Duration::from_millis(10)));
    bench.now = start + Duration::from_millis(30);
    bench.with(Runner::handle_timeout);
    assert_eq!(bench.out(true), ["t1", "t2"]);
    assert_eq!(bench.runner.next_deadline(), None);
    bench.finish();
}

// Modules that break the contract, each in one way, which the suite finds.

module! { Keeps, kept: Vec<Packet>;
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.kept.push(cx.pool.share(slot));
        Verdict::Forward
    }
}

module! { Adds;
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        match cx.pool.push_tail(slot, 1) {
            Ok(()) => Verdict::Forward,
            Err(_) => Verdict::Drop(DropReason::TooLarge),
        }
    }
}

module! { Swaps, waiting: Option<Packet>;
    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        // Sends every second packet before the one that came before it.
        let packet = slot.take();
        match self.waiting.take() {
            None => self.waiting = Some(packet),
            Some(first) => {
                assert!(cx.emit_down(packet).is_ok() && cx.emit_down(first).is_ok());
            }
        }
        Verdict::Held
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        if let Some(packet) = self.waiting.take() {
            cx.discard(packet, DropReason::Shutdown);
        }
    }
}

module! { Panics;
    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        // Trusts the peer's first byte.
        let bytes = cx.pool.segment(slot, 0);
        let first = bytes.first().copied().unwrap_or(0);
        assert!(first < 250, "bytes from a peer");
        Verdict::Forward
    }
}

static ORDERED: ModuleSpec = ModuleSpec { provides: &[Property::Order], ..SPEC };

/// Promises order and does nothing for it.
struct Promises;

impl Module for Promises {
    fn spec(&self) -> &'static ModuleSpec {
        &ORDERED
    }
}

fn passes(entry: Entry) -> bool {
    let subject = Subject { entry, params: Params::new() };
    catch_unwind(AssertUnwindSafe(|| suite(&subject))).is_ok()
}

module! { Honest; }

#[test]
fn the_conformance_suite_finds_each_broken_rule() {
    let entry = |build| Entry { spec: &SPEC, build };
    assert!(passes(entry(|_, _| Box::new(Honest::default()))), "the plainest module is right");
    assert!(!passes(entry(|_, _| Box::new(Keeps::default()))), "a view kept after flush");
    assert!(!passes(entry(|_, _| Box::new(Adds::default()))), "a byte too many");
    assert!(!passes(entry(|_, _| Box::new(Swaps::default()))), "order changed");
    assert!(!passes(entry(|_, _| Box::new(Panics::default()))), "a panic on a peer's bytes");
    let promises = Entry { spec: &ORDERED, build: |_, _| Box::new(Promises) };
    assert!(!passes(promises), "a promise that is not kept");
}
