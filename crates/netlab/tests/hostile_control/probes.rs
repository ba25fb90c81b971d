//! Cases of path probes with a valid tag: floods, numbers that go back, absurd times.

use crate::Case;
use crate::Outcome::GoesOn;
use crate::arena::{Arena, At};
use crate::common::raw::{question, tagged};
use crate::{dialer, listener};
use dacapo_wire::probe::Probe;
use std::net::SocketAddr;

pub fn cases() -> Vec<Case> {
    [questions(), answers()].into_iter().flatten().collect()
}

fn ask(arena: &mut Arena, number: u64, len: usize) {
    let probe = question(arena.lab.now(), number);
    let bytes = tagged(arena.token, probe, len);
    arena.send(&bytes);
}

/// Answers of the core that have come to the raw peer's data port.
fn answers_to(arena: &Arena) -> Vec<Probe> {
    let probes = arena.raw.datagrams.iter().filter_map(|it| Probe::parse(it).ok());
    probes.filter(|probe| probe.answer).collect()
}

fn questions() -> Vec<Case> {
    vec![
        dialer("10,000 valid questions at once", At::Active, GoesOn, |arena| {
            for _ in 0..10 {
                (0..1_000).for_each(|number| ask(arena, number, 52));
                arena.run(2);
            }
            let answers = answers_to(arena).len();
            assert!((1..=2_560).contains(&answers), "{answers} answers");
        }),
        dialer("10,000 valid questions over time", At::Active, GoesOn, |arena| {
            for number in 0..10_000 {
                ask(arena, number, 52);
                if number % 10 == 0 {
                    arena.run(1);
                }
            }
            arena.run(10);
            assert_eq!(answers_to(arena).len(), 10_000, "each is answered once");
        }),
        dialer("questions whose numbers go back", At::Active, GoesOn, |arena| {
            for number in (0..200).rev() {
                ask(arena, number, 52);
                arena.run(1);
            }
        }),
        dialer("a question with the greatest number", At::Active, GoesOn, |arena| {
            ask(arena, u64::MAX, 1_452);
            arena.run(10);
            ask(arena, 0, 1_452);
            arena.run(200);
        }),
        dialer("questions of every length", At::Active, GoesOn, |arena| {
            (0..1_400).for_each(|len| {
                ask(arena, len as u64, 52 + len);
                if len % 20 == 0 {
                    arena.run(1);
                }
            });
            arena.run(10);
            let longest = arena.raw.datagrams.iter().map(Vec::len).max().unwrap_or(0);
            assert!(longest <= 1_452, "an answer of {longest} bytes");
        }),
        dialer("old questions in the name of others", At::Active, GoesOn, |arena| {
            arena.open_path();
            let victim = SocketAddr::from(([198, 51, 100, 7], 40_000));
            let probe = question(arena.lab.now(), 0);
            let bytes = tagged(arena.token, probe, 400);
            arena.lab.world.keep_strays();
            for _ in 0..100 {
                arena.raw.inject(&mut arena.lab.world, arena.core, victim, &bytes);
            }
            arena.lab.run(crate::common::ms(20));
            let to_victim = arena.lab.world.take_strays().into_iter().filter(|it| it.to == victim);
            let sent: usize = to_victim.map(|it| it.bytes.len()).sum();
            assert!(sent <= 100 * bytes.len(), "{sent} bytes to a victim");
        }),
        dialer("1,000 questions with a wrong tag", At::Active, GoesOn, |arena| {
            for number in 0..1_000 {
                let mut probe = question(arena.lab.now(), number);
                probe.size = 77;
                let mut bytes = tagged(arena.token, probe, 52);
                bytes[51] ^= 1;
                arena.send(&bytes);
            }
            arena.run(20);
            assert_eq!(answers_to(arena).len(), 0);
        }),
        listener("5,000 valid questions of a listener", At::Active, GoesOn, |arena| {
            for number in 0..5_000 {
                ask(arena, number, 52);
                if number % 50 == 0 {
                    arena.run(1);
                }
            }
            arena.run(10);
            assert!(answers_to(arena).len() <= 5_000);
        }),
    ]
}

/// Answers everything that the core asks from here on, with these times.
fn answer_all(arena: &mut Arena, received_ns: u64, answered_ns: u64, times: usize) {
    arena.raw.answers_probes = None;
    arena.raw.datagrams.clear();
    for _ in 0..100 {
        arena.run(10);
        let asked: Vec<Probe> =
            arena.raw.datagrams.drain(..).filter_map(|it| Probe::parse(&it).ok()).collect();
        for probe in asked.into_iter().filter(|probe| !probe.answer) {
            let answer = Probe { answer: true, received_ns, answered_ns, ..probe };
            let bytes = tagged(arena.token, answer, 60);
            (0..times).for_each(|_| arena.send(&bytes));
        }
    }
}

fn answers() -> Vec<Case> {
    vec![
        dialer("answers to nothing", At::Active, GoesOn, |arena| {
            arena.open_path();
            for number in 0..2_000 {
                let probe = question(arena.lab.now(), number + 1_000_000);
                let answer = Probe { answer: true, ..probe };
                let bytes = tagged(arena.token, answer, 52);
                arena.send(&bytes);
            }
            arena.run(20);
            let counters = arena.lab.world.core(arena.core).counters();
            assert_eq!(counters.unknown_probe, 2_000);
        }),
        dialer("answers from the end of time", At::Active, GoesOn, |arena| {
            arena.open_path();
            answer_all(arena, u64::MAX, u64::MAX, 1);
        }),
        dialer("answers that were given before they were asked", At::Active, GoesOn, |arena| {
            arena.open_path();
            answer_all(arena, u64::MAX, 0, 1);
        }),
        dialer("answers that took all of time", At::Active, GoesOn, |arena| {
            arena.open_path();
            answer_all(arena, 0, u64::MAX, 1);
        }),
        dialer("ten answers to each question", At::Active, GoesOn, |arena| {
            arena.open_path();
            answer_all(arena, 5, 5, 10);
        }),
        listener("a listener's answers from the end of time", At::Active, GoesOn, |arena| {
            answer_all(arena, u64::MAX, u64::MAX, 1);
        }),
        listener("a listener's answers that took all of time", At::Active, GoesOn, |arena| {
            answer_all(arena, 0, u64::MAX, 1);
        }),
        listener(
            "a listener's answers that were given before they were asked",
            At::Active,
            GoesOn,
            |arena| {
                answer_all(arena, u64::MAX, 0, 3);
            },
        ),
    ]
}
