//! Clocks: those that drift, jump or stand, and the date.

use super::trials::{exact, ms, trials};
use crate::fault::{Fault, Scale, Seen};
use dacapo_base::Random;
use dacapo_netlab::trial::{EachWay, End, Fault as Happens, Trial};
use std::time::Duration;

const TEST: &str = "cargo test -p dacapo-lab --test rows";
const RUNS: (u64, u64) = (4, 1_000);
const HOUR: Duration = Duration::from_secs(3_600);

/// The rows.
pub const ROWS: &[Fault] = &[
    Fault {
        id: "clock-drift",
        fault: "the clocks of both ends run up to 500 ppm fast or slow",
        injector: "netlab: clock of a node",
        expected: "the session completes and nothing is lost",
        test: TEST,
        bench: Some("dacapo-lab run clock-drift"),
        run: drift,
    },
    Fault {
        id: "clock-jump",
        fault: "the clock of one end jumps forward by up to 1 h, as after a sleep",
        injector: "netlab: clock of a node",
        expected: "it goes on, or ends with contact lost, told once at each end; books close",
        test: TEST,
        bench: Some("dacapo-lab run clock-jump"),
        run: jump,
    },
    Fault {
        id: "clock-stands",
        fault: "one end is stopped for up to 1.5 s while flows run, and goes on",
        injector: "netlab: node frozen",
        expected: "the session goes on; what came meanwhile is reported lost, later units arrive",
        test: TEST,
        bench: Some("dacapo-lab run clock-stands"),
        run: stands,
    },
    Fault {
        id: "calendar",
        fault: "the date is set forward and back by up to 10 years, during set-up and flows",
        injector: "netlab: calendar",
        expected: "no session is lost, nothing is lost",
        test: TEST,
        bench: Some("dacapo-lab run calendar"),
        run: calendar,
    },
];

fn ppm(random: &mut Random) -> i32 {
    random.below(1_001) as i32 - 500
}

fn drift(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "clock-drift", |seed| {
        let mut random = Random::from_number(seed);
        let mut trial = exact(seed, |_| {});
        trial.flows[0].pattern.count = 5_000;
        for end in End::BOTH {
            let ppm = ppm(&mut random);
            trial.from_start.push((Duration::ZERO, Happens::Drift(end, ppm)));
        }
        trial
    })?;
    Ok(tally.seen("none can be"))
}

fn jump(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "clock-jump", |seed| {
        let mut random = Random::from_number(seed);
        let by = Duration::from_millis(random.below(HOUR.as_millis() as u64));
        // Half of them short enough to be nothing.
        let by = if seed % 4 < 2 { by / 10_000 } else { by };
        let end = End::BOTH[(seed % 2) as usize];
        let at = ms(random.below(900));
        let trial = exact(seed, |_| {});
        let from_running = vec![(at, Happens::Jump(end, by))];
        Trial { exact: false, must_complete: false, from_running, ..trial }
    })?;
    Ok(tally.seen("every end told once, nothing left"))
}

fn stands(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "clock-stands", |seed| {
        let mut random = Random::from_number(seed);
        let (from, len) = (random.below(800), 1 + random.below(1_500));
        let end = End::BOTH[(seed % 2) as usize];
        let mut trial = exact(seed, |_| {});
        trial.flows[0].pattern.count = from + len + 2_500;
        trial.healed_after = Some(ms(from + len));
        trial.from_running = vec![
            (ms(from), Happens::Freeze(end, true)),
            (ms(from + len), Happens::Freeze(end, false)),
        ];
        Trial { exact: false, ..trial }
    })?;
    Ok(tally.seen("1 s later every unit arrives"))
}

fn calendar(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "calendar", |seed| {
        let mut random = Random::from_number(seed);
        let mut trial = exact(seed, |_| {});
        let mut date = || Happens::Calendar(HOUR * (random.below(24 * 3_650)) as u32);
        trial.from_start = vec![(Duration::ZERO, date()), (ms(20), date())];
        trial.from_running = vec![(ms(100), date()), (ms(400), date())];
        trial.links = EachWay::both(trial.links.to_participant);
        trial
    })?;
    Ok(tally.seen("none can be"))
}
