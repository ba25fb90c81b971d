//! A module that panics, wherever it is called: its graph is over, the caller goes on, no view of
//! the pool is left.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Bench, SINGLES, Scripted, TRAINS};
use dacapo_lift::{
    ControlError, Cx, DirectionCounters, DropReason, Module, ModuleSpec, Runner, Verdict,
};
use dacapo_packet::{Layout, Packet, Pool};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Forwards, and keeps every second packet on its way up until it is flushed.
fn keeps() -> Scripted {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (given, mut count) = (kept.clone(), 0_u32);
    let up = move |_: &mut Cx<'_>, slot: &mut Packet| {
        count += 1;
        if !count.is_multiple_of(2) {
            return Verdict::Forward;
        }
        kept.lock().unwrap().push(slot.take());
        Verdict::Held
    };
    Scripted::new(&TRAINS).up(up).flush(move |cx| {
        given.lock().unwrap().drain(..).for_each(|packet| cx.pool.free(packet));
    })
}

/// It is over: it says which module and what, gives everything back, and lets nothing pass.
fn check_over(mut bench: Bench, words: &str, lost: u64) {
    let failure = format!("module \"singles\" panicked: {words}");
    assert_eq!(bench.runner.failure(), Some(failure.as_str()));
    assert!(bench.runner.has_told());
    assert_eq!(bench.runner.take_told().failure, Some(failure));
    assert_eq!(bench.runner.next_deadline(), None);
    for out in [bench.taken_down(), bench.taken_up()] {
        assert!(out.len() <= 1, "{out:?}");
    }
    assert_eq!((bench.pool.live_views(), bench.pool.stats().views_lost), (0, lost));
    bench.feed("down");
    bench.handle_up("up");
    bench.run();
    bench.now += Duration::from_secs(1);
    bench.with(Runner::handle_timeout);
    bench.with(Runner::drain);
    assert!(bench.taken_down().is_empty() && bench.taken_up().is_empty());
    let dropped = |it: &DirectionCounters| it.dropped[DropReason::Shutdown.index()];
    let counted: Vec<_> =
        bench.runner.modules().map(|(_, it)| dropped(&it.down) + dropped(&it.up)).collect();
    assert_eq!(counted.iter().sum::<u64>(), 2, "what comes is dropped and counted");
    assert!(!bench.runner.has_told(), "it is told once");
    bench.with(|runner, around| runner.flush(around));
    assert_eq!(bench.pool.live_views(), 0);
}

/// Three modules, of which the one in the middle is this.
fn bench(middle: Scripted) -> Bench {
    let mut bench = Bench::new(vec![keeps(), middle, keeps()]);
    for text in ["one", "two"] {
        bench.handle_up(text);
    }
    bench.run();
    assert_eq!(bench.taken_up(), ["one"], "and the other is kept");
    bench
}

#[test]
fn a_panic_on_the_way_down_or_up_ends_the_graph() {
    let middle = || Scripted::new(&SINGLES);
    let mut count = 0;
    let second = move |_: &mut Cx<'_>, _: &mut Packet| {
        count += 1;
        assert_ne!(count, 2, "the second");
        Verdict::Forward
    };
    let mut down = bench(middle().down(second));
    ["a", "b", "c"].into_iter().for_each(|text| down.feed(text));
    down.run();
    check_over(down, "assertion `left != right` failed: the second\n  left: 2\n right: 2", 0);

    let mut up = bench(middle().up(|_, slot| match slot.segment_len(0) {
        4 => panic!("four"),
        _ => Verdict::Forward,
    }));
    ["abcd", "abc", "abc"].into_iter().for_each(|text| up.handle_up(text));
    up.run();
    check_over(up, "four", 0);
}

#[test]
fn a_train_that_was_split_is_given_back() {
    let mut bench = bench(Scripted::new(&SINGLES).down(|_, _| panic!("a part")));
    let train = bench.train(9);
    bench.with(|runner, around| runner.feed(around, train));
    bench.run();
    check_over(bench, "a part", 0);
}

#[test]
fn views_that_the_panic_takes_along_are_counted() {
    let mut bench = bench(Scripted::new(&SINGLES).down(|cx, slot| {
        let (_taken, _copy) = (slot.take(), cx.pool.alloc(0, 10, 0).unwrap());
        panic!("with two views");
    }));
    bench.feed("lost");
    bench.run();
    let bodies = bench.pool.stats().bytes;
    check_over(bench, "with two views", 2);
    assert!(bodies > 0);
}

#[test]
fn what_was_emitted_before_the_panic_goes_back() {
    let mut bench = bench(Scripted::new(&SINGLES).down(|cx, _| {
        let packet = cx.pool.alloc(0, 10, 0).unwrap();
        cx.emit_up(packet).unwrap();
        cx.arm(3, cx.now());
        panic!("after an emission");
    }));
    bench.feed("a");
    bench.run();
    check_over(bench, "after an emission", 0);
}

#[test]
fn a_panic_in_a_timer_ends_the_graph() {
    let arms = |cx: &mut Cx<'_>, _: &mut Packet| {
        cx.arm(1, cx.now());
        cx.arm(2, cx.now());
        Verdict::Forward
    };
    let mut timer =
        bench(Scripted::new(&SINGLES).down(arms).timeout(|_, timer| panic!("timer {timer}")));
    timer.feed("a");
    timer.run();
    assert_eq!(timer.taken_down(), ["a"]);
    timer.with(Runner::handle_timeout);
    check_over(timer, "timer 1", 0);
}

#[test]
fn a_panic_in_a_message_or_an_answer_ends_the_graph() {
    let mut control = bench(Scripted::new(&SINGLES).control(|_| panic!("control")));
    let answer = control.with(|runner, around| runner.control(around, 1, b"x"));
    let said = "module \"singles\" panicked: control".to_owned();
    assert_eq!(answer, Err(ControlError::Failed(said)));
    check_over(control, "control", 0);

    let asks = |cx: &mut Cx<'_>, _: &mut Packet| {
        assert!(cx.control_to_peer(b"x"));
        Verdict::Forward
    };
    let mut answered =
        bench(Scripted::new(&SINGLES).down(asks).answered(|_, _| panic!("answered")));
    answered.feed("a");
    answered.run();
    assert_eq!(answered.taken_down(), ["a"]);
    answered.with(|runner, around| runner.handle_answer(around, 1, Ok(b"y")));
    check_over(answered, "answered", 0);
}

#[test]
fn a_panic_while_it_drains_or_flushes_ends_the_graph() {
    let mut drain = bench(Scripted::new(&SINGLES).drain(|_| panic!("drain")));
    drain.with(Runner::drain);
    check_over(drain, "drain", 0);

    let mut flush = bench(Scripted::new(&SINGLES).flush(|_| panic!("flush")));
    flush.with(|runner, around| runner.flush(around));
    check_over(flush, "flush", 0);
}

#[test]
fn what_a_module_holds_whose_flush_panics_too_is_counted() {
    let mut held = Vec::new();
    let mut bench = bench(
        Scripted::new(&SINGLES)
            .down(move |_, slot| {
                held.push(slot.take());
                assert!(held.len() < 3, "three");
                Verdict::Held
            })
            .flush(|_| panic!("flush")),
    );
    for text in ["a", "b", "c"] {
        bench.feed(text);
        bench.run();
    }
    check_over(bench, "three", 3);
}

#[test]
fn a_panic_in_what_is_only_asked_ends_the_graph_with_the_next_run() {
    let middle = Scripted::new(&SINGLES);
    let credit = middle.credit.clone();
    let mut bench = bench(middle);
    // A lock that a panic has poisoned panics whoever takes it.
    _ = std::thread::spawn(move || {
        let _held = credit.lock().unwrap();
        panic!("it is poisoned");
    })
    .join();
    assert_eq!(bench.runner.credit(), usize::MAX);
    bench.feed("a");
    bench.run();
    let failure = bench.runner.failure().unwrap().to_owned();
    let words = failure.strip_prefix("module \"singles\" panicked: ").unwrap().to_owned();
    check_over(bench, &words, 0);
}

#[test]
fn memory_that_a_panic_took_along_is_used_again_when_nothing_is_out() {
    let middle = Scripted::new(&SINGLES).down(|_, slot| {
        let _lost = slot.take();
        panic!("with it");
    });
    let mut bench = Bench::new(vec![middle]);
    let layout = Layout { head: 0, tail: 0, segment: 60_000, segmented: false };
    bench.pool = Pool::new(100_000);
    let packet = bench.pool.alloc_train(&layout, 60_000).unwrap();
    bench.with(|runner, around| runner.feed(around, packet));
    bench.run();
    assert_eq!((bench.pool.live_views(), bench.pool.stats().views_lost), (0, 1));
    let again = bench.pool.alloc_train(&layout, 60_000).unwrap();
    assert!(bench.pool.alloc_train(&layout, 60_000).is_err(), "there is memory for one");
    bench.pool.free(again);
}

/// Panics where it is asked how long it waits, or told that it begins in the middle.
struct Asked;

impl Module for Asked {
    fn spec(&self) -> &'static ModuleSpec {
        &SINGLES
    }

    fn patience(&self) -> Duration {
        panic!("patience")
    }

    fn join(&mut self) {
        panic!("join")
    }
}

#[test]
fn a_panic_in_patience_or_join_ends_the_graph_with_the_next_run() {
    for (ask, words) in [(true, "patience"), (false, "join")] {
        let mut bench = Bench::new(Vec::new());
        bench.runner = Runner::new(vec![keeps().boxed(), Box::new(Asked), keeps().boxed()]);
        if ask {
            assert_eq!(bench.runner.patience(), Duration::ZERO);
        } else {
            bench.runner.join();
        }
        bench.feed("a");
        bench.run();
        check_over(bench, words, 0);
    }
}
