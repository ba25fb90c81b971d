//! `rtt`: reliable flows and messages there and back over a link of 500 Mbit/s, by its round trip.

use super::table::{Cell, Curve, Link, Table, bulk, ping};
use crate::experiment::Site;
use crate::peers::{Dacapo, Listed, Which, Xtp};

static TCP: Listed = Listed { program: "peer-plain", kind: "tcp" };
static UDP: Listed = Listed { program: "peer-plain", kind: "udp" };
static QUINN: Listed = Listed { program: "peer-quinn", kind: "stream" };
static OURS_TCP: Dacapo = Dacapo { which: Which::Now, options: &["--transport", "tcp"] };
static OURS_UDP: Dacapo =
    Dacapo { which: Which::Now, options: &["--transport", "udp", "--graph", "segment,sequence"] };
static XTP: Xtp = Xtp { which: Which::Now, window: "64MiB", options: &["--rate", "479000kbit/s"] };

/// A queue of a round trip, and of 1.25 MB at least.
fn link(rtt_ms: f64) -> String {
    let bytes = (rtt_ms * 62_500.0).max(1_250_000.0);
    let (delay, packets) = (rtt_ms / 2.0, bytes / 500.0);
    format!("rate=500Mbit/s,delay={delay}ms,queue={packets:.0},queue-bytes={bytes:.0}B")
}

const fn over(
    name: &'static str,
    what: &'static str,
    beside: &'static str,
    cell: fn(f64) -> Cell,
    link: (&'static str, f64),
) -> Curve {
    Curve { name, what, beside: Some(beside), cell, link }
}

/// The experiment.
pub static RTT: Table = Table {
    id: "rtt",
    what: "reliable flows and messages over a link of 500 Mbit/s, by its round trip",
    site: Site::Link,
    axis: "ms there and back",
    unit: "ms",
    points: &[0.1, 1.0, 10.0, 40.0, 100.0, 200.0, 400.0],
    curves: &[
        over("tcp", "kernel TCP, BBR", "tcp", |_| bulk(&TCP, 128 << 10, true), ("bbr", 1_448.0)),
        over(
            "ours-tcp",
            "dacapo over tcp, BBR",
            "tcp",
            |_| bulk(&OURS_TCP, 60 << 10, true),
            ("bbr", 1_448.0),
        ),
        over(
            "quinn",
            "quinn, one stream (TLS), CUBIC",
            "tcp",
            |_| bulk(&QUINN, 60 << 10, true),
            ("cubic", 1_424.0),
        ),
        over(
            "xtp",
            "XTP over udp, RATE of the link",
            "tcp",
            |_| bulk(&XTP, 64 << 10, true),
            ("cubic", 1_440.0),
        ),
        over("udp-64", "plain UDP", "udp-64", |_| ping(&UDP), ("cubic", 1_500.0)),
        over("ours-udp-64", "dacapo over udp", "udp-64", |_| ping(&OURS_UDP), ("cubic", 1_500.0)),
    ],
    controls: &[],
    figures: &[
        ("mbit_per_s", "Mbit/s", true, true),
        ("of_link", "× link", true, false),
        ("cpu_us_per_unit", "CPU µs of each", false, false),
        ("memory_mib", "peak memory of both, MiB", false, false),
    ],
    goals: &[("xtp-200", "of_link", "of what its packets can carry", true, true, 0.97)],
    link: Some(Link { config: link, mbit_per_s: 500.0 }),
    rounds: 3,
    seconds: 8.0,
};
