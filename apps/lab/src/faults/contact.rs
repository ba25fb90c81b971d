//! Contact that is lost for a while, on real sockets and between real processes.

use crate::fault::{Fault, Scale, Seen};
use crate::wire::cuts::{self, Cut, DELAY, Healed};
use crate::wire::rounds::{greatest, in_ms, ms_json, p50_max};
use crate::wire::stops::{self, Who};
use serde_json::{Value, json};
use std::time::Duration;

const TEST: &str = "cargo test -p dacapo-lab --test wire";

/// A cut that contact cannot outlive: it is lost after three seconds.
const SHORT: Duration = Duration::from_secs(4);

/// How long a process is stopped.
const STOPPED: Duration = Duration::from_secs(5);

/// The rows.
pub const ROWS: &[Fault] = &[
    Fault {
        id: "contact-udp",
        fault: "nothing gets through for 5 and 30 s, both ways and each way alone",
        injector: "the relay of the emulator, 20 ms each way",
        expected: "the first unit comes within 2 round trips and 500 ms; sent = delivered + lost \
                   at both ends",
        test: TEST,
        bench: Some("dacapo-lab run contact-udp"),
        run: |scale| contact(scale, false),
    },
    Fault {
        id: "contact-tcp",
        fault: "nothing gets through for 5 and 30 s, a flow over kernel TCP",
        injector: "the emulator between two network namespaces, 20 ms each way; needs root",
        expected: "the first unit comes within 1 s and a round trip, nothing is lost",
        test: TEST,
        bench: Some("dacapo-lab run contact-tcp"),
        run: |scale| contact(scale, true),
    },
    Fault {
        id: "contact-restart",
        fault: "the server is killed and started anew at the same port, at once or 10 s later",
        injector: "SIGKILL",
        expected: "the client is told that the peer was started anew",
        test: TEST,
        bench: Some("dacapo-lab run contact-restart"),
        run: restart,
    },
    Fault {
        id: "stop",
        fault: "the sending or the receiving process stands still for 5 s",
        injector: "SIGSTOP, SIGCONT",
        expected: "the session goes on, the account closes",
        test: TEST,
        bench: Some("dacapo-lab run stop"),
        run: stop,
    },
];

/// From healing to the first unit, at most.
fn limit(stream: bool) -> Duration {
    if stream { Duration::from_secs(1) + 2 * DELAY } else { 4 * DELAY + Duration::from_millis(500) }
}

fn contact(scale: &Scale, stream: bool) -> Result<Seen, String> {
    let rounds = scale.seeds(1, 5);
    let rounds = rounds.end - rounds.start;
    let lens: &[Duration] =
        if scale.is_full() { &[STOPPED, Duration::from_secs(30)] } else { &[SHORT] };
    let both = ("both ways", (true, true));
    let ways = [both, ("to the server", (true, false)), ("to the client", (false, true))];
    let ways = if stream { &ways[..1] } else { &ways[..] };
    let (mut said, mut table, mut slow) = (Vec::new(), Vec::new(), Vec::new());
    for &len in lens {
        let kinds = ways.iter().flat_map(|way| (0..rounds).map(move |_| *way));
        let kinds: Vec<_> = kinds.collect();
        let cuts: Vec<Cut> =
            kinds.iter().map(|(_, ways)| Cut { stream, ways: *ways, len }).collect();
        let healed = match cuts::run_all(&cuts)? {
            Ok(healed) => healed,
            Err(reason) => return Ok(skipped(&reason)),
        };
        for (name, _) in ways {
            let of = kinds.iter().zip(&healed).filter(|((kind, _), _)| kind == name);
            let of: Vec<&Healed> = of.map(|(_, healed)| healed).collect();
            let ms = in_ms(&of.iter().map(|healed| healed.first).collect::<Vec<_>>());
            if greatest(&ms) > limit(stream).as_secs_f64() * 1e3 {
                slow.push(format!("{} s, {name}", len.as_secs()));
            }
            said.push(format!("{} s {name}: {}", len.as_secs(), p50_max(&ms)));
            let (sent, lost) = of.iter().fold((0, 0), |sum, it| (sum.0 + it.sent, sum.1 + it.lost));
            table.push(json!({
                "cut_s": len.as_secs(), "ways": name, "first_unit": ms_json(&ms), "sent": sent,
                "lost": lost, "each_ms": ms,
            }));
        }
    }
    let rest = if stream { "nothing lost, same bytes" } else { "none unknown" };
    let figure = format!("healing to first unit: {}; {rest}", said.join("; "));
    if scale.is_full() && !slow.is_empty() {
        return Err(format!("{figure}; slower than {:?}: {slow:?}", limit(stream)));
    }
    Ok(Seen::new(figure, json!({ "cuts": table })))
}

fn skipped(reason: &str) -> Seen {
    Seen::new(format!("skipped: {reason}"), json!({ "skipped": reason }))
}

fn restart(scale: &Scale) -> Result<Seen, String> {
    let rounds = scale.seeds(1, 5);
    let later = Duration::from_secs(10);
    let pauses: &[Duration] =
        if scale.is_full() { &[Duration::ZERO, later] } else { &[Duration::ZERO] };
    let (mut said, mut table) = (Vec::new(), Vec::new());
    for &pause in pauses {
        let mut seen = Vec::new();
        for _ in rounds.clone() {
            seen.push(stops::restart(pause)?);
        }
        let ms = |times: Vec<Duration>| in_ms(&times);
        let from_kill = ms(seen.iter().map(|it| it.from_kill).collect());
        let from_start = ms(seen.iter().map(|it| it.from_start).collect());
        let after = pause.as_secs();
        said.push(format!("started {after} s later: {} from then", p50_max(&from_start)));
        table.push(json!({
            "started_after_s": after, "from_kill": ms_json(&from_kill),
            "from_start": ms_json(&from_start),
        }));
    }
    let figure = format!("told that the peer was started anew: {}", said.join("; "));
    Ok(Seen::new(figure, json!({ "restarts": table })))
}

fn stop(scale: &Scale) -> Result<Seen, String> {
    let rounds = scale.seeds(1, 5);
    let time = if scale.is_full() { STOPPED } else { SHORT };
    let (mut said, mut table) = (Vec::new(), Vec::new());
    for who in [Who::Client, Who::Server] {
        let mut all = Vec::new();
        for _ in rounds.clone() {
            all.push(stops::stop(who, time)?);
        }
        let ms = in_ms(&all.iter().map(|it| it.first).collect::<Vec<_>>());
        let (sent, lost) =
            all.iter().fold((0, 0), |sum, it| (sum.0 + it.units.0, sum.1 + it.units.1));
        let name = if who == Who::Client { "receiver" } else { "sender" };
        said.push(format!("{name}: next unit {}, {lost} of {sent} lost", p50_max(&ms)));
        let row: Value =
            json!({ "stopped": name, "next_unit": ms_json(&ms), "sent": sent, "lost": lost });
        table.push(row);
    }
    let seconds = time.as_secs();
    let figure = format!("{seconds} s each, every session went on: {}", said.join("; "));
    Ok(Seen::new(figure, json!({ "stops": table })))
}
