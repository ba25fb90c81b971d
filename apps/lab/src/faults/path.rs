//! What a path allows: sizes, rates, queues.

use super::trials::{DELAY, exact, ms, trials};
use crate::fault::{Fault, Scale, Seen};
use dacapo_base::Random;
use dacapo_link::{LinkConfig, Mtu, QueueLimit};
use dacapo_netlab::trial::{EachWay, Fault as Happens, Trial};
use std::time::Duration;

const TEST: &str = "cargo test -p dacapo-lab --test rows";
const RUNS: (u64, u64) = (4, 1_000);

/// How long a black hole stays unknown to a flow of some Mbit/s: `netlab/tests/mtu_midflow.rs`
/// derives it.
const FOUND: Duration = ms(1_500);

/// The rows.
pub const ROWS: &[Fault] = &[
    Fault {
        id: "mtu-setup",
        fault: "datagrams above 1,280 to 1,451 bytes vanish from the start, both ways or one way",
        injector: "link: mtu",
        expected: "found at set-up: shorter datagrams are used and nothing is lost",
        test: TEST,
        bench: Some("dacapo-lab run mtu-setup"),
        run: at_setup,
    },
    Fault {
        id: "mtu-midflow",
        fault: "datagrams above 1,280 bytes begin to vanish while flows run",
        injector: "link: mtu, changed on the way",
        expected: "contact stays; shorter units arrive; each one that vanishes is reported",
        test: TEST,
        bench: Some("dacapo-lab run mtu-midflow"),
        run: midflow,
    },
    Fault {
        id: "mtu-shrinks",
        fault: "datagrams above 1,200 to 1,451 bytes begin to vanish; the flow cuts units",
        injector: "link: mtu, changed on the way",
        expected: "found within 1.5 s; from then on units are cut shorter and none is lost",
        test: TEST,
        bench: Some("dacapo-lab run mtu-shrinks"),
        run: shrinks,
    },
    Fault {
        id: "queue-1",
        fault: "a transmitter of 100 to 900 kbit/s whose queue holds 1 to 4 datagrams",
        injector: "link: rate, queue",
        expected: "the session completes; lost is exactly what the queue took",
        test: TEST,
        bench: Some("dacapo-lab run queue-1"),
        run: queue,
    },
    Fault {
        id: "saturated",
        fault: "a flow asks for 4 to 20 times what the transmitter carries, deep queue",
        injector: "link: rate, queue",
        expected: "control gets through: the session ends as usual, nothing hangs",
        test: TEST,
        bench: Some("dacapo-lab run saturated"),
        run: saturated,
    },
];

fn at_setup(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "mtu-setup", |seed| {
        let mut random = Random::from_number(seed);
        let len_max = 1_280 + random.below(172) as usize;
        let mut trial = exact(seed, |_| {});
        let narrow = Some(Mtu::black_hole(len_max));
        let ways = random.below(3);
        trial.links.to_participant.mtu = if ways != 1 { narrow } else { None };
        trial.links.to_creator.mtu = if ways != 0 { narrow } else { None };
        trial.flows[0].pattern.len_max = 5_000;
        // Long enough that life must be shown by short datagrams, too.
        (trial.flows[0].pattern.count, trial.flows[0].pattern.every) = (1_200, ms(5));
        trial.exact = false;
        // From the first unit on everything arrives.
        trial.healed_after = Some(Duration::ZERO);
        trial
    })?;
    Ok(tally.seen("no unit is lost to the black hole once flows run"))
}

fn midflow(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "mtu-midflow", |seed| {
        let mut trial = exact(seed, |_| {});
        trial.flows[0].graphs = vec![vec!["sequence", "checksum"]];
        trial.flows[0].pattern.len_max = 1_400;
        let mtu = Some(Mtu::black_hole(1_280));
        let narrow = LinkConfig { delay: DELAY, mtu, ..LinkConfig::default() };
        let from = ms(Random::from_number(seed).below(900));
        trial.from_running = vec![(from, Happens::Links(Box::new(EachWay::both(narrow))))];
        trial
    })?;
    Ok(tally.seen("each one larger than the path carries"))
}

fn shrinks(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "mtu-shrinks", |seed| {
        let mut random = Random::from_number(seed);
        let mut trial = exact(seed, |_| {});
        let pattern = &mut trial.flows[0].pattern;
        (pattern.len_min, pattern.len_max) = (1_000, 5_000);
        (pattern.count, pattern.every) = (1_200, ms(5));
        let mtu = Some(Mtu::black_hole(1_200 + random.below(252) as usize));
        let narrow = LinkConfig { delay: DELAY, mtu, ..LinkConfig::default() };
        let from = ms(random.below(3_000));
        trial.from_running = vec![(from, Happens::Links(Box::new(EachWay::both(narrow))))];
        trial.exact = false;
        // A trial gives another second.
        trial.healed_after = Some(from + FOUND - ms(1_000));
        trial
    })?;
    Ok(tally.seen("none of those that were sent 1.5 s after the change or later"))
}

fn narrow(seed: u64, rate: u64, packets: usize) -> Trial {
    exact(seed, |link| {
        link.rate_bits_per_s = Some(rate);
        link.queue = QueueLimit { packets, bytes: 1_500_000 };
    })
}

fn queue(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, RUNS, "queue-1", |seed| {
        let mut random = Random::from_number(seed);
        narrow(seed, 100_000 + random.below(800_000), 1 + random.below(4) as usize)
    })?;
    Ok(tally.seen("each one dropped by the queue"))
}

fn saturated(scale: &Scale) -> Result<Seen, String> {
    let tally = trials(scale, (2, 300), "saturated", |seed| {
        let mut random = Random::from_number(seed);
        let rate = 1_000_000 + random.below(4_000_000);
        let mut trial = narrow(seed, rate, 50 + random.below(150) as usize);
        let pattern = &mut trial.flows[0].pattern;
        (pattern.len_min, pattern.len_max) = (1_000, 1_300);
        (pattern.count, pattern.every) = (10_000, Duration::from_micros(460));
        Trial { exact: false, ..trial }
    })?;
    Ok(tally.seen("control was never starved"))
}
