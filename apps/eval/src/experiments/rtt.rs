//! `rtt`: reliable flows and messages there and back over a link of 500 Mbit/s, by its round trip.

use super::programs::{OURS_TCP, OURS_UDP, QUINN, TCP, UDP};
use super::table::{Link, Table, bulk, curve, ping};
use crate::experiment::Site;
use crate::peers::{Which, Xtp};

static XTP: Xtp = Xtp { which: Which::Now, window: "64MiB", options: &["--rate", "479000kbit/s"] };

/// A queue of a round trip, and of 1.25 MB at least.
fn link(rtt_ms: f64) -> String {
    let bytes = (rtt_ms * 62_500.0).max(1_250_000.0);
    let (delay, packets) = (rtt_ms / 2.0, bytes / 500.0);
    format!("rate=500Mbit/s,delay={delay}ms,queue={packets:.0},queue-bytes={bytes:.0}B")
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
        curve("tcp", "kernel TCP, BBR", "tcp", |_| bulk(&TCP, 128 << 10, true))
            .over("bbr", 1_448.0),
        curve("ours-tcp", "dacapo over tcp, BBR", "tcp", |_| bulk(&OURS_TCP, 60 << 10, true))
            .over("bbr", 1_448.0),
        curve("quinn", "quinn, one stream (TLS), CUBIC", "tcp", |_| bulk(&QUINN, 60 << 10, true))
            .over("cubic", 1_424.0),
        curve("xtp", "XTP over udp, RATE of the link", "tcp", |_| bulk(&XTP, 64 << 10, true))
            .over("cubic", 1_440.0),
        curve("udp-64", "plain UDP", "udp-64", |_| ping(&UDP)),
        curve("ours-udp-64", "dacapo over udp", "udp-64", |_| ping(&OURS_UDP)),
    ],
    controls: &[],
    figures: &[
        ("mbit_per_s", "Mbit/s", true, true),
        ("of_link", "× link", true, false),
        ("cpu_us_per_unit", "CPU µs of each", false, false),
        ("memory_mib", "peak memory of both, MiB", false, false),
    ],
    goals: &[("xtp-200", "of_link", "of what its packets can carry", true, true, 0.97)],
    link: Some(Link::new(500.0, link)),
    rounds: 3,
    seconds: 8.0,
};
