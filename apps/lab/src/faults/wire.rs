//! The hostile wire, on real sockets: junk, floods, churn.

use crate::fault::{Fault, Scale, Seen};
use crate::wire::churn::{self, Churned, What};
use crate::wire::flood;
use crate::wire::junk_run::{Aim, Extent, full_rate, measure};
use crate::wire::rounds::{greatest, median, ms_json, quantile};
use dacapo_security::Identity;
use serde_json::json;
use std::time::Duration;

const TEST: &str = "cargo test -p dacapo-lab --test wire";

/// The share of its goodput that a flow keeps.
const KEPT_MIN: f64 = 0.95;

/// What a flood may make a core keep, bytes; and in the short form, where only what grows with
/// every datagram is looked for.
const STATE_MAX: i64 = 4 << 20;
const STATE_MAX_SHORT: i64 = 16 << 20;

/// What a core may have more in the short form, where it is not warm after a tenth.
const GROWN_MAX_SHORT: i64 = 1 << 20;

/// Bytes out for a byte in, before an address is proved.
const AMPLIFICATION_MAX: f64 = 3.0;

/// The share of honest set-ups that get in.
const HONEST_MIN: f64 = 0.99;

/// The rows.
pub const ROWS: &[Fault] = &[
    Fault {
        id: "junk",
        fault: "50,000 datagrams a second that nobody asked for, to the port of a flow at half \
                load: random bytes, its label with another body, cut copies, QUIC's first ones",
        injector: "a thread with 200 addresses; as much to another port for comparison",
        expected: "95 % of the goodput is kept, the account closes, no unit is altered",
        test: TEST,
        bench: Some("dacapo-lab run junk"),
        run: junk,
    },
    Fault {
        id: "flood",
        fault: "50,000 first datagrams of QUIC a second from 10,000 addresses, 10,000 TCP \
                connections that are silent or slow",
        injector: "two threads",
        expected: "at most 4 MiB are kept, at most 3 bytes go out for one that came, who is honest \
                   gets in",
        test: TEST,
        bench: Some("dacapo-lab run flood"),
        run: flood_row,
    },
    Fault {
        id: "churn",
        fault: "100,000 sessions opened and closed",
        injector: "two cores over loopback",
        expected: "what is kept grows by at most 1 MiB; no descriptor, no thread more",
        test: TEST,
        bench: Some("dacapo-lab run churn"),
        run: |scale| churn_row(scale, What::Good, 1 << 20),
    },
    Fault {
        id: "churn-failed",
        fault: "100,000 set-ups that come to nothing: no such name, refused, gone in the middle",
        injector: "two cores over loopback, and those that are gone",
        expected: "what is kept grows by at most 256 KiB; no descriptor, no thread more",
        test: TEST,
        bench: Some("dacapo-lab run churn-failed"),
        run: |scale| churn_row(scale, What::Bad, 256 << 10),
    },
];

fn junk(scale: &Scale) -> Result<Seen, String> {
    let who = Identity::generate().map_err(|error| error.to_string())?;
    let mut extent = Extent::of(scale);
    let mut full = 0;
    if extent.bound_bps.is_none() {
        full = full_rate(&who, Duration::from_secs(3))?;
        extent.bound_bps = Some(full / 2);
    }
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    let (mut costs, mut rounds) = (Vec::new(), Vec::new());
    for round in 0..extent.rounds {
        let flow = measure(&who, &extent, Some(Aim::Flow), round)?;
        let elsewhere = measure(&who, &extent, Some(Aim::Elsewhere), round)?;
        let counters = flow.seen.counters;
        if flow.read == 0 || counters.reserved == 0 || flow.seen.module_drops == 0 {
            return Err(format!("the junk did not arrive: {:?}, {counters:?}", flow.junk));
        }
        ratios.push(flow.goodput / elsewhere.goodput.max(1.0));
        rates.push(flow.junk.1);
        costs.push((flow.cpu - elsewhere.cpu) * 1e6 / flow.read_per_s.max(1.0));
        rounds.push(json!({ "flow": flow.json(), "elsewhere": elsewhere.json() }));
    }
    let (kept, least) = (median(&ratios), quantile(&ratios, 0.0));
    let bound = extent.bound_bps.unwrap_or(0) as f64 / 1e6;
    let figure = format!(
        "{:.1} % of the goodput kept (median of {}, least {:.1} %), {:.0} junk datagrams/s, each \
         {:.1} us of the receiver's processor time, flow of {bound:.0} Mbit/s; no unit altered, \
         none unknown",
        kept * 100.0,
        ratios.len(),
        least * 100.0,
        median(&rates),
        median(&costs),
    );
    if scale.is_full() && kept < KEPT_MIN {
        return Err(figure);
    }
    let json = json!({
        "kept": kept, "least": least, "junk_per_s": median(&rates), "us_per_junk": median(&costs),
        "full_bps": full,
        "bound_bps": extent.bound_bps, "rounds": rounds,
    });
    Ok(Seen::new(figure, json))
}

fn flood_row(scale: &Scale) -> Result<Seen, String> {
    let extent = flood::Extent::of(scale);
    let seen = flood::run(&extent)?;
    let (times, failed) = &seen.honest;
    let share = times.len() as f64 / extent.honest.max(1) as f64;
    let amplification = seen.bytes.1 as f64 / seen.bytes.0.max(1) as f64;
    let figure = format!(
        "{} first datagrams ({:.0}/s, {} read) from {} addresses and {} TCP connections: {:.2} MiB \
         kept at most (packets {:.2} MiB), {:.1} KiB afterwards, {amplification:.2} bytes out per \
         byte in, {} of {} honest set-ups, p50 {:.0} ms, p99 {:.0} ms",
        seen.initials.0,
        seen.initials.1,
        seen.read,
        seen.sources,
        seen.knocks,
        seen.state_bytes as f64 / f64::from(1 << 20),
        seen.pool_bytes as f64 / f64::from(1 << 20),
        seen.left_bytes as f64 / 1_024.0,
        times.len(),
        extent.honest,
        median(times),
        quantile(times, 0.99),
    );
    let state_max = if scale.is_full() { STATE_MAX } else { STATE_MAX_SHORT };
    let is_held = amplification <= AMPLIFICATION_MAX && seen.state_bytes <= state_max;
    if !is_held || share < HONEST_MIN || seen.read == 0 || seen.knocks == 0 {
        return Err(format!("{figure}; {failed:?}"));
    }
    let json = json!({
        "initials": seen.initials.0, "initials_per_s": seen.initials.1, "read": seen.read,
        "addresses": seen.sources, "tcp_connections": seen.knocks,
        "state_bytes_max": seen.state_bytes, "packet_bytes": seen.pool_bytes,
        "left_bytes": seen.left_bytes,
        "amplification": amplification, "honest_share": share, "honest": ms_json(times),
    });
    Ok(Seen::new(figure, json))
}

fn churn_row(scale: &Scale, what: What, grown_max: i64) -> Result<Seen, String> {
    let seen = churn::run(scale, what)?;
    let Churned { count, vanished, early, late, rested, cost } = &seen;
    let grown_max = if scale.is_full() { grown_max } else { GROWN_MAX_SHORT };
    let grown = late.grown_since(early);
    let at_rest = rested.map_or(grown, |rested| rested.grown_since(early));
    let kib = |bytes: i64| bytes as f64 / 1_024.0;
    let more = (late.fds.saturating_sub(early.fds), late.threads.saturating_sub(early.threads));
    let rest = match rested {
        Some(_) => format!(" ({:.0} KiB when its labels are free again)", kib(at_rest)),
        None => String::new(),
    };
    let figure = format!(
        "{count} ({vanished} gone in the middle), from a tenth on: a core has {:+.0} KiB{rest} and \
         {:+.0} KiB of free packet memory, {:+} descriptors, {:+} threads; {:.0} us of processor \
         time each, both ends",
        kib(grown),
        kib(late.pool_grown_since(early)),
        more.0,
        more.1,
        cost.as_secs_f64() * 1e6,
    );
    // Other tests open descriptors and threads in the same process.
    let is_more = scale.is_full() && more != (0, 0);
    if at_rest > grown_max || is_more {
        return Err(figure);
    }
    let json = json!({
        "count": count, "vanished": vanished, "grown_bytes": grown, "at_rest_bytes": at_rest,
        "pool_grown_bytes": late.pool_grown_since(early),
        "bytes_each": grown as f64 / (*count as f64 * 0.9), "descriptors": more.0,
        "threads": more.1, "cpu_us_each": greatest(&[cost.as_secs_f64() * 1e6]),
    });
    Ok(Seen::new(figure, json))
}
