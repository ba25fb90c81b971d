//! The runner keeps its promises to modules: order of effects, credit, trains, counters, timers,
//! bounds.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Bench, Notes, SINGLES, Scripted, TRAINS, packet, text};
use dacapo_base::{Random, Time};
use dacapo_lift::{
    ControlError, DirectionCounters, DropReason, EMISSIONS_MAX, Meter, ModuleCounters, ModuleSpec,
    Note, OPEN_MAX, PathSeen, Runner, ToPeer, Unread, Verdict,
};
use dacapo_packet::Packet;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Emits two packets before each that it sees; what begins with `h` it holds, with `d` it drops.
fn chatty(cx: &mut dacapo_lift::Cx<'_>, slot: &mut Packet, up: bool) -> Verdict {
    let name = text(cx.pool, slot);
    for mark in ["<", ">"] {
        let extra = packet(cx.pool, &format!("{name}{mark}"));
        let emitted = if up { cx.emit_up(extra) } else { cx.emit_down(extra) };
        emitted.unwrap();
    }
    match name.as_bytes()[0] {
        b'h' => {
            let taken = slot.take();
            cx.pool.free(taken);
            Verdict::Held
        }
        b'd' => Verdict::Drop(DropReason::Injected),
        _ => Verdict::Forward,
    }
}

#[test]
fn what_is_emitted_goes_before_its_slot_and_slots_keep_their_order() {
    let expected = ["a<", "a>", "a", "h1<", "h1>", "b<", "b>", "b", "d1<", "d1>", "c<", "c>", "c"];
    let names = ["a", "h1", "b", "d1", "c"];
    let module = || {
        Scripted::new(&SINGLES)
            .down(|cx, slot| chatty(cx, slot, false))
            .up(|cx, slot| chatty(cx, slot, true))
    };
    let mut bench = Bench::new(vec![module()]);
    names.into_iter().for_each(|name| bench.feed(name));
    bench.run();
    assert_eq!(bench.taken_down(), expected);
    names.into_iter().for_each(|name| bench.handle_up(name));
    bench.run();
    assert_eq!(bench.taken_up(), expected);
    let seen = *bench.runner.modules().next().unwrap().1;
    for way in [seen.down, seen.up] {
        assert_eq!((way.packets, way.emitted, way.held), (5, 10, 1));
        assert_eq!(way.dropped[DropReason::Injected.index()], 1);
    }
    bench.flush();
}

#[test]
fn order_is_the_same_through_many_modules_and_many_batches() {
    let mut bench = Bench::new((0..5).map(|_| Scripted::new(&SINGLES)).collect());
    for _ in 0..3 {
        let names: Vec<String> = (0..100).map(|at| format!("n{at}")).collect();
        names.iter().for_each(|name| bench.feed(name));
        names.iter().for_each(|name| bench.handle_up(name));
        bench.run();
        assert_eq!(bench.taken_down(), names);
        assert_eq!(bench.taken_up(), names);
    }
    bench.flush();
}

#[test]
fn what_is_emitted_against_the_call_reaches_the_neighbour_there_in_order() {
    let notes = Notes::default();
    let (above, below) = (notes.clone(), notes.clone());
    let bench_modules = vec![
        Scripted::new(&SINGLES).up(move |cx, slot| {
            above.add(format!("above up {}", text(cx.pool, slot)));
            Verdict::Forward
        }),
        Scripted::new(&SINGLES)
            .down(|cx, slot| {
                let answer = packet(cx.pool, &format!("re {}", text(cx.pool, slot)));
                cx.emit_up(answer).unwrap();
                Verdict::Forward
            })
            .up(|cx, slot| {
                let answer = packet(cx.pool, &format!("ack {}", text(cx.pool, slot)));
                cx.emit_down(answer).unwrap();
                Verdict::Forward
            }),
        Scripted::new(&SINGLES).down(move |cx, slot| {
            below.add(format!("below down {}", text(cx.pool, slot)));
            Verdict::Forward
        }),
    ];
    let mut bench = Bench::new(bench_modules);
    ["1", "2"].into_iter().for_each(|name| bench.feed(name));
    bench.run();
    assert_eq!(bench.taken_down(), ["1", "2"]);
    assert_eq!(bench.taken_up(), ["re 1", "re 2"]);
    ["3", "4"].into_iter().for_each(|name| bench.handle_up(name));
    bench.run();
    assert_eq!(bench.taken_up(), ["3", "4"]);
    assert_eq!(bench.taken_down(), ["ack 3", "ack 4"]);
    assert_eq!(
        notes.take(),
        [
            "below down 1",
            "below down 2",
            "above up re 1",
            "above up re 2",
            "above up 3",
            "above up 4",
            "below down ack 3",
            "below down ack 4",
        ]
    );
    bench.flush();
}

/// A module that takes trains, notes how many segments each call had, and uses up its credit.
fn metered(spec: &'static dacapo_lift::ModuleSpec, calls: &Notes) -> Scripted {
    let (calls, module) = (calls.clone(), Scripted::new(spec));
    let credit = module.credit.clone();
    module.down(move |_, slot| {
        let mut credit = credit.lock().unwrap();
        assert!(slot.segment_count() <= *credit, "offered more than the credit");
        *credit -= slot.segment_count();
        calls.add(slot.segment_count().to_string());
        Verdict::Forward
    })
}

#[test]
fn a_module_is_never_offered_more_than_its_credit_and_a_train_is_cut_there() {
    for (spec, first, rest) in
        [(&TRAINS, vec!["3"], vec!["5", "2"]), (&SINGLES, vec!["1"; 3], vec!["1"; 7])]
    {
        let calls = Notes::default();
        let module = metered(spec, &calls);
        let credit = module.credit.clone();
        *credit.lock().unwrap() = 3;
        let mut bench = Bench::new(vec![Scripted::new(&TRAINS), module]);
        assert_eq!(bench.runner.credit(), 3, "the least of all");
        for count in [8, 2] {
            let train = bench.train(count);
            bench.with(|runner, around| runner.feed(around, train));
        }
        bench.run();
        assert_eq!(calls.take(), first);
        assert_eq!(bench.runner.credit(), 0, "no credit, and packets wait");
        bench.run();
        assert!(calls.take().is_empty(), "nothing is offered without credit");
        *credit.lock().unwrap() = 7;
        assert_eq!(bench.runner.credit(), 0, "packets wait");
        bench.run();
        assert_eq!(calls.take(), rest);
        *credit.lock().unwrap() = 1;
        assert_eq!(bench.runner.credit(), 1);
        let segments: usize =
            bench.runner.take_down().packets().iter().map(Packet::segment_count).sum();
        assert_eq!(segments, 10, "what went through is whole");
        let bytes: Vec<Packet> = bench.runner.take_down().drain().collect();
        let mut payload = Vec::new();
        for packet in bytes {
            bench.pool.read_payload(&packet, &mut payload);
            bench.pool.free(packet);
        }
        let order: Vec<u8> = payload.iter().step_by(10).copied().collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        bench.flush();
    }
}

#[test]
fn credit_that_a_timer_frees_lets_the_rest_through() {
    let calls = Notes::default();
    let module = metered(&SINGLES, &calls);
    let (credit, freed) = (module.credit.clone(), module.credit.clone());
    *credit.lock().unwrap() = 1;
    let module = module.timeout(move |_, _| *freed.lock().unwrap() += 2).control(|cx| {
        let at = cx.now() + Duration::from_millis(5);
        cx.arm(0, at);
    });
    let mut bench = Bench::new(vec![module]);
    ["a", "b", "c", "d"].into_iter().for_each(|name| bench.feed(name));
    bench.with(|runner, around| runner.control(around, 0, b"arm")).unwrap();
    assert_eq!(bench.taken_down(), ["a"]);
    bench.now = bench.runner.next_deadline().unwrap();
    bench.with(Runner::handle_timeout);
    assert_eq!(bench.taken_down(), ["b", "c"]);
    assert_eq!(bench.flush(), 1, "the last one waited in the lane");
}

#[test]
fn a_train_is_split_for_a_module_without_trains_and_joined_again_behind_it() {
    let sizes = Notes::default();
    let (seen, seen_up) = (sizes.clone(), sizes.clone());
    let single = Scripted::new(&SINGLES)
        .down(move |cx, slot| {
            seen.add(format!("down {}", slot.segment_count()));
            cx.pool.push_head(slot, 2).unwrap();
            cx.pool.head_mut(slot, 0, 2).copy_from_slice(&[77; 2]);
            Verdict::Forward
        })
        .up(move |_, slot| {
            seen_up.add(format!("up {}", slot.segment_count()));
            Verdict::Forward
        });
    let mut bench = Bench::new(vec![Scripted::new(&TRAINS), single, Scripted::new(&TRAINS)]);
    // More than a batch has slots: they are joined again over batches.
    let train = bench.train(70);
    bench.with(|runner, around| runner.feed(around, train));
    bench.run();
    assert_eq!(sizes.take(), vec!["down 1"; 70], "one segment at a time");
    let out: Vec<Packet> = bench.runner.take_down().drain().collect();
    let shape = out.iter().map(|packet| (packet.segment_count(), packet.segment_len(0)));
    let shape: Vec<_> = shape.collect();
    assert_eq!(shape, [(70, 12)], "one train again, each segment with its header");
    for at in 0..70 {
        assert_eq!(bench.pool.segment(&out[0], at)[..3], [77, 77, at as u8]);
    }
    for packet in out {
        bench.with(|runner, around| runner.handle_up(around, packet));
    }
    bench.run();
    assert_eq!(sizes.take(), vec!["up 1"; 70]);
    bench.flush();
}

#[test]
fn a_segment_that_is_dropped_leaves_two_trains_and_no_view() {
    let mut count = 0;
    let gap = Scripted::new(&SINGLES).down(move |_, _| {
        count += 1;
        if count == 4 { Verdict::Drop(DropReason::Injected) } else { Verdict::Forward }
    });
    let mut bench = Bench::new(vec![gap]);
    let train = bench.train(8);
    bench.with(|runner, around| runner.feed(around, train));
    bench.run();
    let sizes: Vec<usize> =
        bench.runner.take_down().packets().iter().map(Packet::segment_count).collect();
    assert_eq!(sizes, [3, 4]);
    assert_eq!(bench.flush(), 2);
}

#[test]
fn lanes_are_bounded_and_what_exceeds_them_is_freed_and_counted() {
    let module = Scripted::new(&SINGLES);
    *module.credit.lock().unwrap() = 0;
    let mut bench = Bench::new(vec![module]);
    for _ in 0..20_000 {
        bench.feed("x");
        bench.run();
    }
    let seen = *bench.runner.modules().next().unwrap().1;
    assert_eq!(seen.down.dropped[DropReason::Overflow.index()], 20_000 - 16_384);
    assert_eq!(bench.pool.live_views(), 16_384);
    assert_eq!(bench.flush(), 16_384);
}

#[test]
fn a_call_emits_so_much_and_no_more() {
    let refused = Arc::new(AtomicU64::new(0));
    let count = refused.clone();
    let flood = Scripted::new(&SINGLES).up(move |cx, _| {
        for _ in 0..EMISSIONS_MAX + 10 {
            let extra = packet(cx.pool, "e");
            if let Err(extra) = cx.emit_down(extra) {
                cx.pool.free(extra);
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        Verdict::Drop(DropReason::Injected)
    });
    let mut bench = Bench::new(vec![flood]);
    bench.handle_up("go");
    bench.run();
    assert_eq!(refused.load(Ordering::Relaxed), 10);
    assert_eq!(bench.taken_down().len(), EMISSIONS_MAX);
    bench.flush();
}

#[test]
fn counters_close_whatever_modules_do() {
    for seed in 0..100 {
        let mut random = Random::from_number(seed);
        let mut dice = random.fork();
        let held: Arc<Mutex<Vec<Packet>>> = Arc::default();
        let (kept, given) = (held.clone(), held.clone());
        let module = Scripted::new(if seed % 2 == 0 { &TRAINS } else { &SINGLES })
            .down(move |_, slot| match dice.below(3) {
                0 => Verdict::Forward,
                1 => Verdict::Drop(DropReason::Injected),
                _ => {
                    kept.lock().unwrap().push(slot.take());
                    Verdict::Held
                }
            })
            .flush(move |cx| given.lock().unwrap().drain(..).for_each(|it| cx.pool.free(it)));
        let mut bench = Bench::new(vec![module]);
        let mut fed = 0;
        for _ in 0..50 {
            let count = 1 + random.below(9) as usize;
            let train = bench.train(count);
            fed += count as u64;
            bench.with(|runner, around| runner.feed(around, train));
        }
        bench.run();
        let out: usize = bench.runner.take_down().packets().iter().map(Packet::segment_count).sum();
        let seen = bench.runner.modules().next().unwrap().1.down;
        assert_eq!(seen.packets, fed, "seed {seed}");
        assert_eq!(seen.bytes, fed * 10, "seed {seed}");
        let accounted = out as u64 + seen.held + seen.dropped_count();
        assert_eq!(accounted, fed, "seed {seed}: in = forwarded + held + dropped");
        bench.flush();
    }
}

/// A module that adds four bytes or one, sometimes holds, drops or emits, and counts for itself
/// what it is offered.
fn tallying(
    name: &'static str,
    seen: &Arc<Mutex<BTreeMap<&'static str, (u64, u64)>>>,
    seed: u64,
) -> Scripted {
    let (seen, seen_up) = (seen.clone(), seen.clone());
    let (mut dice, mut dice_up) = (Random::from_number(seed), Random::from_number(seed + 1));
    let spec: &'static ModuleSpec =
        if seed.is_multiple_of(2) { &FOUR_TRAINS } else { &ONE_SINGLES };
    let bytes = usize::from(spec.head);
    let note = |seen: &Mutex<BTreeMap<_, (u64, u64)>>, name, slot: &Packet| {
        let mut seen = seen.lock().unwrap();
        let entry = seen.entry(name).or_default();
        entry.0 += slot.segment_count() as u64;
        entry.1 += slot.payload_len() as u64;
    };
    Scripted::new(spec)
        .down(move |cx, slot| {
            note(&seen, name, slot);
            if dice.below(20) == 0 {
                return Verdict::Drop(DropReason::Injected);
            }
            if dice.below(20) == 0 {
                let extra = packet(cx.pool, "extra, of another length");
                cx.emit_down(extra).unwrap();
            }
            match cx.pool.push_head(slot, bytes) {
                Ok(()) => Verdict::Forward,
                Err(_) => Verdict::Drop(DropReason::TooLarge),
            }
        })
        .up(move |cx, slot| {
            note(&seen_up, name, slot);
            match cx.pool.pull_head(slot, bytes) {
                Ok(()) if dice_up.below(20) > 0 => Verdict::Forward,
                Ok(()) => Verdict::Drop(DropReason::Injected),
                Err(_) => Verdict::Drop(DropReason::Malformed),
            }
        })
}

static FOUR_TRAINS: ModuleSpec = ModuleSpec { head: 4, ..TRAINS };
static ONE_SINGLES: ModuleSpec = ModuleSpec { head: 1, ..SINGLES };

#[test]
fn what_is_reckoned_from_module_to_module_is_what_each_of_them_sees() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let seen = Arc::default();
        let modules = NAMES.map(|name| tallying(name, &seen, random.below(1_000)));
        let mut bench = Bench::new(modules.into());
        for _ in 0..30 {
            for _ in 0..random.below(40) {
                let count = 1 + random.below(40) as usize;
                let train = bench.train(if random.chance(0.5) { 1 } else { count });
                bench.with(|runner, around| runner.feed(around, train));
            }
            bench.run();
            let sent: Vec<Packet> = bench.runner.take_down().drain().collect();
            for packet in sent {
                bench.with(|runner, around| runner.handle_up(around, packet));
            }
            bench.run();
        }
        for ((_, counted), name) in bench.runner.modules().zip(NAMES) {
            let is = seen.lock().unwrap().get(name).copied().unwrap_or_default();
            let packets = counted.down.packets + counted.up.packets;
            let bytes = counted.down.bytes + counted.up.bytes;
            assert_eq!((packets, bytes), is, "seed {seed}: module {name}");
        }
        bench.flush();
    }
}

#[test]
fn a_packet_of_another_size_is_counted_anew_when_that_is_told() {
    let shrink = Scripted::new(&SINGLES).down(|cx, slot| {
        cx.pool.pull_head(slot, 3).unwrap();
        cx.resized();
        Verdict::Forward
    });
    let mut bench = Bench::new(vec![shrink, Scripted::new(&SINGLES)]);
    ["seven b", "three"].into_iter().for_each(|name| bench.feed(name));
    bench.run();
    let bytes: Vec<u64> = bench.runner.modules().map(|(_, seen)| seen.down.bytes).collect();
    assert_eq!(bytes, [12, 6]);
    assert_eq!(bench.taken_down(), ["en b", "ee"]);
    bench.flush();
}

#[test]
fn whole_units_stay_apart_inside_the_graph_though_they_lie_in_one_body() {
    let calls = Notes::default();
    let seen = calls.clone();
    let below = Scripted::new(&TRAINS).down(move |_, slot| {
        seen.add(format!("{}", slot.segment_count()));
        Verdict::Forward
    });
    let mut bench = Bench::new(vec![Scripted::new(&SINGLES), below]);
    let mut rest = bench.train(3);
    let mut units = Vec::new();
    while let Some(first) = bench.pool.split_first(&mut rest, 1) {
        units.push(first);
    }
    units.push(rest);
    for mut unit in units {
        unit.set_unit_ends(true, true);
        bench.with(|runner, around| runner.feed(around, unit));
    }
    bench.run();
    assert_eq!(calls.take(), ["1", "1", "1"]);
    bench.flush();
}

#[test]
fn timers_fire_in_order_once_and_can_be_moved_and_taken_back() {
    let notes = Notes::default();
    let module = |name: &'static str, notes: &Notes| {
        let notes = notes.clone();
        let mut calls = 0;
        Scripted::new(&SINGLES)
            .timeout(move |cx, timer| {
                notes.add(format!("{name}{timer} at {}", cx.now().as_nanos() / 1_000_000));
            })
            .control(move |cx| {
                calls += 1;
                let at = |ms| Time::from_millis(ms);
                match calls {
                    1 => {
                        cx.arm(1, at(30));
                        cx.arm(2, at(20));
                        cx.arm(3, at(10));
                        cx.arm(1, at(15));
                    }
                    _ => cx.disarm(2),
                }
            })
    };
    let mut bench = Bench::new(vec![module("a", &notes), module("b", &notes)]);
    for index in [1, 0] {
        bench.with(|runner, around| runner.control(around, index, b"")).unwrap();
    }
    bench.with(|runner, around| runner.control(around, 1, b"")).unwrap();
    assert_eq!(bench.runner.next_deadline(), Some(Time::from_millis(10)));
    bench.now = Time::from_millis(9);
    bench.with(Runner::handle_timeout);
    assert!(notes.take().is_empty(), "not before their time");
    bench.now = Time::from_millis(16);
    bench.with(Runner::handle_timeout);
    assert_eq!(notes.take(), ["a3 at 16", "b3 at 16", "a1 at 16", "b1 at 16"]);
    bench.now = Time::from_millis(100);
    bench.with(Runner::handle_timeout);
    assert_eq!(notes.take(), ["a2 at 100"], "that of b was taken back");
    assert_eq!(bench.runner.next_deadline(), None);
    let fired: Vec<u64> = bench.runner.modules().map(|(_, seen)| seen.timeouts).collect();
    assert_eq!(fired, [3, 2]);
}

#[test]
fn what_a_module_wants_to_send_leaves_when_there_is_room_and_is_asked_for_once() {
    let left = Arc::new(Mutex::new(3));
    let (wanted, sending) = (Arc::clone(&left), Arc::clone(&left));
    let sender = Scripted::new(&SINGLES)
        .timeout(|cx, _| cx.want_room())
        .room(move |cx, bytes| {
            let mut left = sending.lock().unwrap();
            for _ in 0..bytes.min(*left) {
                let extra = packet(cx.pool, "again");
                cx.emit_down(extra).unwrap();
                *left -= 1;
            }
            if *left > 0 {
                cx.want_room();
            }
        })
        .down(|cx, _| {
            cx.arm(0, cx.now());
            Verdict::Forward
        });
    let below = Scripted::new(&TRAINS);
    let mut bench = Bench::new(vec![sender, below]);
    bench.feed("a");
    bench.run();
    assert!(!bench.runner.wants_room());
    bench.with(Runner::handle_timeout);
    assert_eq!((bench.runner.wants_room(), bench.taken_down()), (true, vec!["a".to_owned()]));
    bench.with(|runner, around| runner.handle_room(around, 2));
    assert_eq!((bench.runner.wants_room(), *wanted.lock().unwrap()), (true, 1));
    bench.with(|runner, around| runner.handle_room(around, 9));
    assert_eq!((bench.runner.wants_room(), bench.taken_down().len()), (false, 3));
    let seen: Vec<u64> = bench.runner.modules().map(|(_, seen)| seen.down.packets).collect();
    assert_eq!(seen[1], 4, "they pass the modules below");
}

#[test]
fn a_module_is_told_what_waits_for_the_application_once_each_time_it_asks() {
    let notes = Notes::default();
    let told = notes.clone();
    let asks = Scripted::new(&SINGLES)
        .up(|cx, _| {
            cx.want_unread();
            Verdict::Forward
        })
        .unread(move |cx, unread| {
            told.add(format!("{} units, {} bytes", unread.units, unread.bytes));
            if unread.units > 3 {
                cx.want_unread();
            }
            let answer = packet(cx.pool, "answer");
            cx.emit_down(answer).unwrap();
        });
    let mut bench = Bench::new(vec![asks, Scripted::new(&TRAINS)]);
    assert!(!bench.runner.wants_unread());
    let came = bench.packet("came");
    bench.with(|runner, around| {
        runner.handle_up(around, came);
        runner.run(around);
    });
    for (units, wants) in [(4, true), (3, false)] {
        assert!(bench.runner.wants_unread());
        let unread = Unread { units, bytes: 100 * units };
        bench.with(|runner, around| runner.handle_unread(around, unread));
        assert_eq!(bench.runner.wants_unread(), wants);
        assert_eq!(bench.taken_down(), ["answer"], "it passes the modules below");
    }
    assert_eq!(notes.take(), ["4 units, 400 bytes", "3 units, 300 bytes"]);
}

#[test]
fn drain_goes_from_the_application_down_and_what_it_frees_passes_the_modules_below() {
    let notes = Notes::default();
    let module = |name: &'static str| {
        let (seen, drained) = (notes.clone(), notes.clone());
        Scripted::new(&SINGLES)
            .down(move |cx, slot| {
                seen.add(format!("{name} sees {}", text(cx.pool, slot)));
                Verdict::Forward
            })
            .drain(move |cx| {
                drained.add(format!("{name} drains"));
                let rest = packet(cx.pool, &format!("rest of {name}"));
                cx.emit_down(rest).unwrap();
            })
    };
    let mut bench = Bench::new(vec![module("top"), module("bottom")]);
    bench.feed("last");
    bench.with(Runner::drain);
    assert_eq!(bench.taken_down(), ["last", "rest of top", "rest of bottom"]);
    assert_eq!(
        notes.take(),
        [
            "top sees last",
            "bottom sees last",
            "top drains",
            "bottom sees rest of top",
            "bottom drains",
        ]
    );
    bench.flush();
}

#[test]
fn flush_forgets_lanes_outputs_emissions_and_timers_and_leaves_the_runner_usable() {
    let module =
        Scripted::new(&SINGLES).control(|cx| cx.arm(1, Time::from_millis(50))).flush(|cx| {
            // What a module releases in its flush goes nowhere.
            let late = packet(cx.pool, "late");
            cx.emit_up(late).unwrap();
        });
    let credit = module.credit.clone();
    let mut bench = Bench::new(vec![Scripted::new(&SINGLES), module]);
    bench.feed("out");
    bench.handle_up("in");
    bench.run();
    bench.with(|runner, around| runner.control(around, 1, b"")).unwrap();
    *credit.lock().unwrap() = 0;
    bench.feed("waits");
    bench.run();
    assert_eq!(bench.flush(), 4, "out, in, what waits, and what was let go late");
    assert_eq!(bench.runner.next_deadline(), None);
    *credit.lock().unwrap() = usize::MAX;
    bench.feed("again");
    bench.run();
    assert_eq!(bench.taken_down(), ["again"]);
    bench.flush();
}

#[test]
fn modules_that_answer_each_other_forever_do_not_hold_the_core() {
    let calls = Arc::new(AtomicU64::new(0));
    let (upper, lower) = (calls.clone(), calls.clone());
    let above = Scripted::new(&SINGLES).up(move |cx, slot| {
        upper.fetch_add(1, Ordering::Relaxed);
        cx.emit_down(slot.take()).unwrap();
        Verdict::Held
    });
    let below = Scripted::new(&SINGLES).down(move |cx, slot| {
        lower.fetch_add(1, Ordering::Relaxed);
        cx.emit_up(slot.take()).unwrap();
        Verdict::Held
    });
    let mut bench = Bench::new(vec![above, below]);
    bench.feed("ball");
    bench.run();
    let first = calls.load(Ordering::Relaxed);
    assert!((100..=10_000).contains(&first), "{first} calls in one run");
    bench.run();
    assert!(calls.load(Ordering::Relaxed) > first, "the next run goes on");
    assert_eq!(bench.pool.live_views(), 1, "there is one ball");
    bench.flush();
}

#[test]
fn control_reaches_the_module_at_its_place_and_its_effects_are_applied() {
    let module = Scripted::new(&SINGLES).control(|cx| {
        let made = packet(cx.pool, "made");
        cx.emit_down(made).unwrap();
        cx.report_lost(3);
        assert!(cx.control_to_peer(&[7; 4_096]));
        assert!(!cx.control_to_peer(&[7; 4_097]), "4 KiB at most");
        let gone = packet(cx.pool, "gone");
        cx.discard(gone, DropReason::Stale);
    });
    let mut bench = Bench::new(vec![Scripted::new(&SINGLES), module]);
    let answer = bench.with(|runner, around| runner.control(around, 1, b"hello"));
    assert_eq!(answer, Ok(b"hello".to_vec()));
    assert_eq!(bench.taken_down(), ["made"]);
    let seen = PathSeen { lost_packets: 3, ..PathSeen::default() };
    let told = bench.runner.take_told();
    let message = vec![7; 4_096];
    assert_eq!((told.seen, told.messages), (seen, vec![ToPeer { module: 1, message }]));
    assert!(!bench.runner.has_told() && bench.runner.take_told().messages.is_empty());
    let seen: Vec<ModuleCounters> = bench.runner.modules().map(|(_, seen)| *seen).collect();
    assert_eq!((seen[1].lost, seen[0].lost, seen[1].refused), (3, 0, 1));
    assert_eq!(seen[1].up.dropped[DropReason::Stale.index()], 1);
    for place in [2, 100] {
        let nobody = bench.with(|runner, around| runner.control(around, place, b"hello"));
        assert_eq!(nobody, Err(ControlError::Unknown));
    }
    bench.flush();
}

#[test]
fn messages_that_nobody_answers_are_bounded_and_losses_add_up() {
    let module = Scripted::new(&SINGLES).control(|cx| {
        (0..1_000).for_each(|_| cx.report_lost(1));
        let sent = (0..1_000).filter(|_| cx.control_to_peer(b"again")).count();
        assert_eq!(sent, usize::from(OPEN_MAX));
    });
    let mut bench = Bench::new(vec![module]);
    bench.with(|runner, around| runner.control(around, 0, b"")).unwrap();
    let told = bench.runner.take_told();
    assert_eq!((told.messages.len(), told.seen.lost_packets), (8, 1_000));
    let seen = *bench.runner.modules().next().unwrap().1;
    assert_eq!((seen.lost, seen.refused), (1_000, 992));
}

#[test]
fn an_answer_comes_to_the_module_that_asked_once_and_its_effects_are_applied() {
    let module = Scripted::new(&SINGLES).control(|cx| assert!(cx.control_to_peer(b"ask")));
    let module = module.answered(|cx, answer| {
        let made = packet(cx.pool, answer.map_or("none", |it| std::str::from_utf8(it).unwrap()));
        cx.emit_down(made).unwrap();
        cx.note(7, -1);
    });
    let mut bench = Bench::new(vec![Scripted::new(&SINGLES), module]);
    (0..2).for_each(|_| {
        bench.with(|runner, around| runner.control(around, 1, b"")).unwrap();
    });
    for (index, answer) in [(0, Ok(&b"wrong"[..])), (1, Ok(b"good")), (1, Err("no")), (1, Ok(b"x"))]
    {
        bench.with(|runner, around| runner.handle_answer(around, index, answer));
    }
    assert_eq!(bench.taken_down(), ["good", "none"]);
    assert_eq!(bench.runner.notes(), [Note { module: 1, code: 7, value: -1 }]);
    bench.flush();
}

/// A meter that shows 5 more with each reading.
fn fives() -> Meter {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    Meter { read_ns: || TICKS.fetch_add(5, Ordering::Relaxed), cost_ns: 0, every: 1 }
}

#[test]
fn time_per_module_is_counted_with_the_meter_that_is_given() {
    let mut bench = Bench::new(vec![Scripted::new(&SINGLES), Scripted::new(&SINGLES)]);
    bench.runner.set_meter(Some(fives()));
    (0..3).for_each(|_| bench.feed("x"));
    bench.run();
    bench.handle_up("x");
    bench.run();
    let timed = |it: &DirectionCounters| (it.timed_packets, it.timed_ns);
    let all: Vec<_> =
        bench.runner.modules().map(|(_, seen)| (timed(&seen.down), timed(&seen.up))).collect();
    assert_eq!(all, [((3, 5), (1, 5)); 2], "one reading before and after each batch");
    bench.runner.set_meter(None);
    bench.feed("x");
    bench.run();
    let down = bench.runner.modules().next().unwrap().1.down;
    assert_eq!((timed(&down), down.packets), ((3, 5), 4));
    bench.flush();
}

#[test]
fn one_batch_in_some_is_timed_and_what_the_meter_costs_is_not_the_modules() {
    let mut bench = Bench::new(vec![Scripted::new(&SINGLES)]);
    bench.runner.set_meter(Some(Meter { every: 4, cost_ns: 2, ..fives() }));
    for _ in 0..9 {
        bench.feed("x");
        bench.run();
    }
    let down = bench.runner.modules().next().unwrap().1.down;
    assert_eq!((down.packets, down.timed_packets, down.timed_ns), (9, 3, 9));
    assert_eq!(down.ns_per_packet(), Some(3.0));
    assert!(Meter::new(fives().read_ns).cost_ns >= 5);
    bench.flush();
}

#[test]
fn a_graph_without_modules_carries_everything_through() {
    let mut bench = Bench::new(Vec::new());
    assert_eq!(bench.runner.credit(), usize::MAX);
    bench.feed("down");
    bench.handle_up("up");
    bench.run();
    assert_eq!((bench.taken_down(), bench.taken_up()), (vec!["down".into()], vec!["up".into()]));
    bench.with(Runner::drain);
    assert_eq!(bench.flush(), 0);
}
