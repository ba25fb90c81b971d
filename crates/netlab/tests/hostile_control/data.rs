//! Cases of data with a valid label: wrong bodies for every module, wrong times, wrong places.

use crate::Case;
use crate::Outcome::{GoesOn, Open};
use crate::arena::{Arena, At};
use crate::common::{graph, offer, offer_back};
use crate::{dialer, listener};
use dacapo_base::Random;
use dacapo_wire::session::{Close, Deactivate, End};

pub fn cases() -> Vec<Case> {
    [modules(), states(), places(), labels()].into_iter().flatten().collect()
}

/// Datagrams with a valid label and a body of noise, of every length, and with small changes to
/// headers that are nearly right.
fn noise(arena: &mut Arena, flow: usize, seed: u64) {
    let mut random = Random::from_number(seed);
    let label = arena.label(flow).to_be_bytes();
    for round in 0..1_500_usize {
        let mut body = vec![0; random.below(200) as usize];
        match round % 3 {
            0 => random.fill(&mut body),
            1 => body.iter_mut().for_each(|byte| *byte = (random.below(4) * 85) as u8),
            _ => {
                let at = random.below(24) as usize;
                if let Some(byte) = body.get_mut(at) {
                    *byte = random.next_u32() as u8;
                }
            }
        }
        let bytes = [&[0x80], &label[..], &body].concat();
        arena.send(&bytes);
        if round % 10 == 0 {
            arena.run(1);
        }
    }
    arena.run(50);
}

/// A session with a flow from the raw peer through these modules, and one to it.
fn through(arena: &mut Arena, modules: &[&str]) {
    let flows = vec![offer_back("up", modules), offer("down", modules)];
    arena.lab.publish("through", flows);
    arena.begin(At::Active, "through", Vec::new());
    arena.open_path();
    noise(arena, 0, modules.len() as u64);
    // What the receiver's modules would send back, for the core as sender.
    noise(arena, 1, 77);
    arena.say(End { flow: 0, units: 1 << 40, ..End::default() });
    arena.run(2_000);
    let ledger = arena.ledger(0).expect("the flow is accounted for");
    assert!(ledger.closes(), "{ledger:?}");
}

fn modules() -> Vec<Case> {
    let at = At::Greeted;
    vec![
        dialer("noise through no module", at, GoesOn, |arena| through(arena, &[])),
        dialer("noise through segment", at, GoesOn, |arena| through(arena, &["segment"])),
        dialer("noise through sequence", at, GoesOn, |arena| through(arena, &["sequence"])),
        dialer("noise through checksum", at, GoesOn, |arena| through(arena, &["checksum"])),
        dialer("noise through repeat", at, GoesOn, |arena| through(arena, &["repeat"])),
        dialer("noise through all modules", at, GoesOn, |arena| {
            through(arena, &["segment", "sequence", "repeat", "checksum"]);
        }),
        listener("a listener's noise", At::Active, GoesOn, |arena| {
            noise(arena, 0, 5);
            noise(arena, 1, 6);
            noise(arena, 2, 7);
        }),
    ]
}

fn states() -> Vec<Case> {
    vec![
        dialer("data before ANSWER, with labels of others", At::Offered, Open, |arena| {
            let label = [&[0x80][..], &0x1230_u32.to_be_bytes(), &[0; 40]].concat();
            (0..200).for_each(|_| arena.send(&label));
            arena.run(20);
            let counters = arena.lab.world.core(arena.core).counters();
            assert_eq!(counters.unknown_label, 200);
        }),
        dialer("data before ACTIVATE", At::Ready, GoesOn, |arena| {
            (0..200).for_each(|at| arena.unit(0, at, at));
            arena.run(20);
        }),
        dialer("data after DEACTIVATE", At::Active, GoesOn, |arena| {
            arena.say(Deactivate { request: 2 });
            arena.run(20);
            (0..200).for_each(|at| arena.unit(0, at, at));
            arena.run(20);
            arena.take_all();
        }),
        dialer("data after CLOSE", At::Active, Open, |arena| {
            arena.say(Close { code: 304, text: String::new() });
            arena.run(20);
            let before = arena.lab.world.core(arena.core).counters().old_label;
            (0..200).for_each(|at| arena.unit(0, at, at));
            arena.run(20);
            let after = arena.lab.world.core(arena.core).counters().old_label;
            assert_eq!(after - before, 200);
        }),
        listener("data of a listener before ACTIVATE", At::Ready, GoesOn, |arena| {
            (0..200).for_each(|at| arena.unit(1, at, at));
            arena.run(20);
        }),
    ]
}

/// The flow ends and its account closes.
fn expect_account(arena: &mut Arena, flow: usize, units: u64) {
    arena.say(End { flow: flow as u16, units, ..End::default() });
    arena.run(600);
    let ledger = arena.ledger(flow).expect("the flow is accounted for");
    assert!(ledger.closes(), "{ledger:?}");
}

fn places() -> Vec<Case> {
    let goes_on = |name, script| dialer(name, At::Active, GoesOn, script);
    vec![
        goes_on("a unit 2^27 places ahead", |arena| {
            arena.unit(2, 0, 1 << 27);
            arena.run(20);
            expect_account(arena, 2, (1 << 27) + 1);
        }),
        goes_on("units that jump as far as they can, 60 times", |arena| {
            let mut place = 0_u64;
            for _ in 0..60 {
                place += (1 << 27) - 1;
                arena.unit(2, 0, (place & 0x0FFF_FFFF) as u32);
                arena.run(2);
            }
            expect_account(arena, 2, 1 << 40);
        }),
        goes_on("units that go back by all they can", |arena| {
            for place in [0_u32, 0x0FFF_FFFF, 1, 0x0FFF_FFFE, 0x0800_0000, 2] {
                arena.unit(2, 0, place);
            }
            arena.run(20);
            expect_account(arena, 2, 1 << 40);
        }),
        goes_on("units of every kind that is none", |arena| {
            for kind in 1..16_u32 {
                (0..20).for_each(|place| arena.unit(2, 0, (kind << 28) | place));
            }
            arena.run(20);
            expect_account(arena, 2, 0);
        }),
        goes_on("one unit a thousand times", |arena| {
            (0..1_000).for_each(|number| arena.unit(0, number, 0));
            arena.run(20);
            expect_account(arena, 0, 1);
            let ledger = arena.ledger(0).unwrap();
            assert_eq!((ledger.delivered, ledger.duplicates), (1, 999), "{ledger:?}");
        }),
        goes_on("sequence numbers that jump by half of all", |arena| {
            for number in [0, 1 << 31, (1 << 31) - 1, u32::MAX, 0x4000_0000, 0xC000_0000] {
                arena.unit(0, number, 0);
                arena.run(50);
            }
            expect_account(arena, 0, 1 << 20);
        }),
        goes_on("units of 60,000 bytes", |arena| {
            let unit = arena.unit_bytes(0, 0, 0);
            let long = [&unit[..], &vec![1; 60_000]].concat();
            (0..20).for_each(|_| arena.send(&long));
            arena.run(20);
            expect_account(arena, 0, 1);
        }),
        goes_on("datagrams that end in their headers", |arena| {
            for flow in [0, 2] {
                let unit = arena.unit_bytes(flow, 0, 0);
                (0..unit.len()).for_each(|len| arena.send(&unit[..len]));
            }
            arena.run(60);
            expect_account(arena, 0, 100);
            expect_account(arena, 2, 100);
        }),
    ]
}

fn labels() -> Vec<Case> {
    vec![
        dialer(
            "data with a label of another session of the same peer",
            At::Active,
            GoesOn,
            |arena| {
                let other = arena.unit_bytes(0, 0, 0);
                let first = arena.stream;
                arena.begin(At::Active, "usual", Vec::new());
                (0..100).for_each(|_| arena.send(&other));
                arena.run(20);
                arena.raw.reset(first);
                arena.run(20);
                (0..100).for_each(|_| arena.send(&other));
                let before = arena.lab.world.core(arena.core).counters().old_label;
                assert_eq!(before, 100, "it is the label of nothing any more");
                arena.lab.log.retain(|(_, _, event)| {
                    !matches!(event, dacapo_core::CoreEvent::SessionEnded { .. })
                });
            },
        ),
        dialer("data with the core's label for feedback", At::Active, GoesOn, |arena| {
            noise(arena, 1, 9);
        }),
        dialer("data with labels one bit from a valid one", At::Active, GoesOn, |arena| {
            let unit = arena.unit_bytes(0, 0, 0);
            let before = arena.lab.world.core(arena.core).counters().unknown_label;
            for bit in 0..32 {
                let mut other = unit.clone();
                other[1 + bit / 8] ^= 1 << (bit % 8);
                arena.send(&other);
            }
            let after = arena.lab.world.core(arena.core).counters().unknown_label;
            assert!(after - before >= 31, "{} of 32", after - before);
            arena.run(20);
        }),
        dialer("data of an epoch that was taken back", At::Active, GoesOn, |arena| {
            let prepare =
                dacapo_wire::change::Prepare { epoch: 1, graph: graph(&[]), ..Default::default() };
            let transcript = crate::arena::extend(arena.transcript, &prepare.clone().into());
            arena.say(dacapo_wire::change::Prepare { transcript, ..prepare });
            arena.run(20);
            let Some(dacapo_wire::message::Message::Ready(ready)) = arena.take() else {
                panic!("no READY")
            };
            let unit = [&[0x80][..], &ready.label.to_be_bytes(), &[0; 20]].concat();
            (0..2_000).for_each(|_| arena.send(&unit));
            arena.say(dacapo_wire::change::Abort { flow: 0, epoch: 1 });
            arena.run(20);
            (0..100).for_each(|_| arena.send(&unit));
            assert_eq!(arena.lab.world.core(arena.core).counters().old_label, 100);
            expect_account(arena, 0, 0);
        }),
    ]
}
