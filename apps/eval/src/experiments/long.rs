//! `long`: a flow over XTP on a link of 1 Gbit/s, by its round trip: whether the window grows to
//! what is under way.

use super::programs::TCP;
use super::table::{Link, Table, bulk, curve};
use crate::experiment::Site;
use crate::peers::{Dacapo, Which};

/// A flow, not the bare engine; its bound is what packets of 1,452 bytes carry, less what repairs
/// and bursts may take.
static XTP: Dacapo = Dacapo::new(Which::Now, &["--transport", "xtp", "--rate", "930 Mbit/s"]);

/// A queue of a round trip.
fn link(rtt_ms: f64) -> String {
    let (delay, bytes) = (rtt_ms / 2.0, rtt_ms * 125_000.0);
    let packets = bytes / 500.0;
    format!("rate=1Gbit/s,delay={delay}ms,queue={packets:.0},queue-bytes={bytes:.0}B")
}

/// The experiment.
pub static LONG: Table = Table {
    id: "long",
    what: "a flow over xtp on a link of 1 Gbit/s, by its round trip, beside kernel TCP",
    site: Site::Link,
    axis: "ms there and back",
    unit: "ms",
    points: &[10.0, 20.0, 40.0],
    curves: &[
        curve("tcp", "kernel TCP, BBR", "tcp", |_| bulk(&TCP, 128 << 10, true))
            .over("bbr", 1_448.0),
        curve("ours-xtp", "dacapo over xtp, bound of 930 Mbit/s", "tcp", |_| {
            bulk(&XTP, 60 << 10, true)
        })
        .over("cubic", 1_435.0),
    ],
    controls: &[],
    figures: &[
        ("mbit_per_s", "Mbit/s", true, true),
        ("of_link", "× link", true, false),
        ("cpu_s_per_gb", "CPU s/GB", false, true),
        ("memory_mib", "peak memory of both, MiB", false, false),
    ],
    goals: &[("ours-xtp-40", "of_link", "of what its packets can carry", true, true, 0.95)],
    link: Some(Link::new(1_000.0, link)),
    rounds: 5,
    seconds: 6.0,
};
