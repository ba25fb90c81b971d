//! Who is gone, and who only seems to be: cuts, kills, silence.

use super::trials::{exact, ms, trials};
use crate::alarms::{Alarms, WINDOWS_PER_PATH, run_path};
use crate::fault::{Fault, Scale, Seen};
use crate::sweep::sweep;
use dacapo_base::Random;
use dacapo_netlab::trial::{Carrier, EachWay, End, Fault as Happens, Trial};
use serde_json::json;
use std::time::Duration;

const TEST: &str = "cargo test -p dacapo-lab --test rows";
const RUNS: (u64, u64) = (4, 1_000);

/// The loss at which a living peer must not be taken for lost.
const ALARM_LOSS: f64 = 0.3;

const HEALS: &str = "the session goes on without the application; what the cut took is reported, \
                     everything sent later arrives";

/// The rows.
pub const ROWS: &[Fault] = &[
    Fault {
        id: "cut-500ms",
        fault: "nothing gets through for 0.5 s, both ways",
        injector: "netlab: cut",
        expected: HEALS,
        test: TEST,
        bench: Some("dacapo-lab run cut-500ms"),
        run: |scale| cut(scale, "cut-500ms", 500, |_| EachWay::both(true)),
    },
    Fault {
        id: "cut-2s",
        fault: "nothing gets through for 2 s, both ways",
        injector: "netlab: cut",
        expected: HEALS,
        test: TEST,
        bench: Some("dacapo-lab run cut-2s"),
        run: |scale| cut(scale, "cut-2s", 2_000, |_| EachWay::both(true)),
    },
    Fault {
        id: "cut-5s",
        fault: "nothing gets through for 5 s, both ways",
        injector: "netlab: cut",
        expected: HEALS,
        test: TEST,
        bench: Some("dacapo-lab run cut-5s"),
        run: |scale| long_cut(scale, "cut-5s", 5_000, Carrier::Udp),
    },
    Fault {
        id: "cut-60s",
        fault: "nothing gets through for 60 s, both ways",
        injector: "netlab: cut",
        expected: HEALS,
        test: TEST,
        bench: Some("dacapo-lab run cut-60s"),
        run: |scale| long_cut(scale, "cut-60s", 60_000, Carrier::Udp),
    },
    Fault {
        id: "stream-cut-60s",
        fault: "nothing gets through for 60 s, both ways, the flow is on a byte stream",
        injector: "netlab: cut",
        expected: "every unit is delivered, in order, once",
        test: TEST,
        bench: Some("dacapo-lab run stream-cut-60s"),
        run: |scale| long_cut(scale, "stream-cut-60s", 60_000, Carrier::Tcp),
    },
    Fault {
        id: "cut-one-way",
        fault: "nothing gets through for 0.5 to 2 s one way",
        injector: "netlab: cut",
        expected: HEALS,
        test: TEST,
        bench: Some("dacapo-lab run cut-one-way"),
        run: |scale| cut(scale, "cut-one-way", 2_000, one_way),
    },
    Fault {
        id: "on-off",
        fault: "5 s on and 2 s off, five times",
        injector: "netlab: cut",
        expected: HEALS,
        test: TEST,
        bench: Some("dacapo-lab run on-off"),
        run: on_off,
    },
    Fault {
        id: "cut-setup",
        fault: "nothing gets through for up to 2 s during set-up",
        injector: "netlab: cut",
        expected: "the session is set up after all, and completes",
        test: TEST,
        bench: Some("dacapo-lab run cut-setup"),
        run: cut_setup,
    },
    Fault {
        id: "stream-held",
        fault: "byte streams stand still for up to 5 s, datagrams pass",
        injector: "netlab: streams held",
        expected: "every unit is delivered, in order, once",
        test: TEST,
        bench: Some("dacapo-lab run stream-held"),
        run: stream_held,
    },
    Fault {
        id: "killed",
        fault: "one end dies while flows run",
        injector: "netlab: kill",
        expected: "the other end is told once, keeps nothing, and closes its books",
        test: TEST,
        bench: Some("dacapo-lab run killed"),
        run: killed,
    },
    Fault {
        id: "false-alarms",
        fault: "random loss of 30 % each way, round trips of 1 to 300 ms, only probes show life",
        injector: "the prober alone, event by event",
        expected: "a living peer is not taken for lost: 0 alarms in 3,000,000 windows of 3 s",
        test: TEST,
        bench: Some("dacapo-lab run false-alarms"),
        run: false_alarms,
    },
];

fn one_way(seed: u64) -> EachWay<bool> {
    EachWay { to_participant: seed.is_multiple_of(2), to_creator: !seed.is_multiple_of(2) }
}

/// A cut of some ways while the flow runs, and a second and a half of units after it.
fn cut(
    scale: &Scale,
    id: &str,
    len_ms: u64,
    ways: fn(u64) -> EachWay<bool>,
) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, id, |seed| {
        let from = Random::from_number(seed).below(800);
        let mut trial = exact(seed, |_| {});
        trial.flows[0].pattern.count = from + len_ms + 2_500;
        trial.healed_after = Some(ms(from + len_ms));
        trial.from_running = vec![
            (ms(from), Happens::Cut(ways(seed))),
            (ms(from + len_ms), Happens::Cut(EachWay::both(false))),
        ];
        trial
    })?;
    Ok(tally.seen("each one taken by the cut; 1 s later every unit arrives"))
}

/// A cut that is longer than contact lasts: flows are suspended, and go on.
fn long_cut(scale: &Scale, id: &str, len_ms: u64, carrier: Carrier) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, id, |seed| {
        let from = Random::from_number(seed).below(800);
        let mut trial = exact(seed, |_| {});
        trial.exact = carrier == Carrier::Udp;
        let flow = &mut trial.flows[0];
        flow.pattern.every = ms(10);
        flow.pattern.count = (from + len_ms) / 10 + 1_000;
        if carrier == Carrier::Tcp {
            (flow.carrier, flow.graphs) = (carrier, vec![vec!["segment"]]);
        }
        trial.healed_after = Some(ms(from + len_ms));
        trial.from_running = vec![
            (ms(from), Happens::Cut(EachWay::both(true))),
            (ms(from + len_ms), Happens::Cut(EachWay::both(false))),
        ];
        Trial { time_max: Duration::from_secs(180), ..trial }
    })?;
    Ok(tally.seen("each one taken by the cut; 1 s later every unit arrives"))
}

fn on_off(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "on-off", |seed| {
        let phase = Random::from_number(seed).below(3_000);
        let mut trial = exact(seed, |_| {});
        let pattern = &mut trial.flows[0].pattern;
        (pattern.count, pattern.every) = (4_000, ms(10));
        for round in 0..5 {
            let off = ms(phase + round * 7_000 + 2_000);
            trial.from_running.push((off, Happens::Cut(EachWay::both(true))));
            trial.from_running.push((off + ms(2_000), Happens::Cut(EachWay::both(false))));
        }
        trial.healed_after = Some(ms(phase + 32_000));
        trial.time_max = Duration::from_secs(90);
        trial
    })?;
    Ok(tally.seen("each one taken by a cut"))
}

fn cut_setup(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "cut-setup", |seed| {
        let mut random = Random::from_number(seed);
        let from = random.below(400);
        // Slow enough that every message of the set-up is hit.
        let mut trial = exact(seed, |link| link.delay = ms(60));
        let ways = if seed.is_multiple_of(3) { EachWay::both(true) } else { one_way(seed) };
        trial.from_start = vec![
            (ms(from), Happens::Cut(ways)),
            (ms(from + 1 + random.below(2_000)), Happens::Cut(EachWay::both(false))),
        ];
        trial
    })?;
    let slowest = tally.slowest.as_secs_f64();
    Ok(tally.seen(&format!("slowest set-up {slowest:.2} s")))
}

fn stream_held(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "stream-held", |seed| {
        let mut random = Random::from_number(seed);
        let from = random.below(800);
        let mut trial = exact(seed, |_| {});
        trial.exact = false;
        (trial.flows[0].carrier, trial.flows[0].graphs) = (Carrier::Tcp, vec![vec!["segment"]]);
        trial.from_running = vec![
            (ms(from), Happens::HoldStreams(true)),
            (ms(from + 1 + random.below(5_000)), Happens::HoldStreams(false)),
        ];
        trial
    })?;
    Ok(tally.seen("none can be"))
}

fn killed(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "killed", |seed| {
        let at = ms(Random::from_number(seed).below(900));
        let end = End::BOTH[(seed % 2) as usize];
        let mut trial = exact(seed, |_| {});
        let mut up = trial.flows[0].clone();
        up.direction = dacapo_wire::session::Direction::ToCreator;
        trial.flows.push(up);
        trial.from_running = vec![(at, Happens::Kill(end))];
        // Who is suspended is given up after five minutes.
        Trial { exact: false, must_complete: false, time_max: Duration::from_secs(400), ..trial }
    })?;
    let (trials, told) = (tally.trials, tally.told.as_secs_f64());
    let figure = format!(
        "{trials} kills: every survivor told once, the last one {told:.2} s after `connect`; 0 \
         views, sessions, connections or streams left"
    );
    Ok(Seen::new(figure, tally.json()))
}

fn false_alarms(scale: &Scale) -> Result<Seen, String> {
    let paths = scale.seeds(20, 3_000);
    let alarms = sweep(scale, paths, "false-alarms", |seed, sum: &mut Alarms| {
        let before = sum.alarms;
        run_path(seed, ALARM_LOSS, WINDOWS_PER_PATH, sum);
        match sum.alarms - before {
            0 => Ok(()),
            count => Err(format!("{count} alarms in {WINDOWS_PER_PATH} windows")),
        }
    })?;
    let Alarms { windows, questions, answers, silences, .. } = alarms;
    let longest = alarms.silence_max.as_secs_f64();
    let figure = format!(
        "0 alarms in {windows} windows of 3 s; {answers} of {questions} questions answered, \
         longest silence {longest:.3} s"
    );
    let json = json!({
        "windows": windows,
        "alarms": 0,
        "questions": questions,
        "answers": answers,
        "silence_max_s": longest,
        "silences": {
            "over_750_ms": silences[0], "over_1500_ms": silences[1], "over_2000_ms": silences[2],
            "over_2500_ms": silences[3], "over_2750_ms": silences[4],
        },
    });
    Ok(Seen::new(figure, json))
}
