//! `wan-…`: reliable flows over what wide-area networks do beside losing: packets that overtake
//! each other, a way back that loses, long ways, and others that want the same link.

use super::programs::{QUINN, TCP};
use super::reliable::{ARQ, ARQ_BBR, CURVES, FIGURES, GRAPH, UNIT_LEN, bound};
use super::table::{Cell, Curve, Link, Table, at_point, bulk, curve, shared};
use crate::experiment::{Experiment, Site};
use crate::peers::{Dacapo, Several, several};

/// 500 Mbit/s, 10 ms each way, and two round trips of queue.
const ANCHOR: &str = "rate=500Mbit/s,delay=10ms,queue=5000,queue-bytes=2500kB";

static REORDERED: Table = Table {
    id: "wan-reordered",
    what: "reliable flows over 500 Mbit/s, 10 ms each way, whose packets overtake each other",
    site: Site::Link,
    axis: "per cent that others overtake, by 5 ms",
    unit: "% reordered",
    points: &[0.0, 5.0],
    curves: &CURVES,
    controls: &[],
    figures: &FIGURES,
    goals: &[
        ("arq-reserved-5", "of_link", "of what its packets can carry", true, true, 0.98),
        ("arq-bbr-5", "mbit_per_s", "goodput to kernel TCP, BBR", false, true, 1.0),
    ],
    link: Some(Link::new(500.0, |percent| format!("{ANCHOR},reorder={percent}%,reorder-by=5ms"))),
    rounds: 5,
    seconds: 5.0,
};

static BACK: Table = Table {
    id: "wan-back",
    what: "reliable flows over 500 Mbit/s, 10 ms each way, of which the way back loses",
    site: Site::Link,
    axis: "per cent lost on the way back",
    unit: "% lost on the way back",
    points: &[0.0, 10.0],
    curves: &CURVES,
    controls: &[],
    figures: &FIGURES,
    goals: &[
        ("arq-10", "of_link", "of what its packets can carry", true, true, 0.96),
        ("arq-bbr-10", "of_link", "of what its packets can carry", true, true, 0.96),
        ("arq-reserved-10", "of_link", "of what its packets can carry", true, true, 0.96),
    ],
    link: Some(Link {
        config: |_| ANCHOR.to_owned(),
        back: Some(|percent| format!("{ANCHOR},loss={percent}%")),
        mbit_per_s: 500.0,
    }),
    rounds: 5,
    seconds: 5.0,
};

/// Per cent lost over the long way.
const FAR_POINTS: [f64; 3] = [0.0, 0.1, 1.0];

/// As much more than what full datagrams carry as is lost before the queue.
static FAR_RESERVED: [Dacapo; FAR_POINTS.len()] = [
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "979000 kbit/s"]),
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "980000 kbit/s"]),
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "988900 kbit/s"]),
];

fn far_reserved(loss: f64) -> Cell {
    let peer = at_point(&FAR_POINTS, &FAR_RESERVED, loss);
    bulk(peer, UNIT_LEN, true)
}

const FAR_CURVES: [Curve; 6] = {
    let [tcp, tcp_bbr, quinn, quinn_bbr, _, _, bbr, kept] = CURVES;
    [tcp, tcp_bbr, quinn, quinn_bbr, bbr, Curve { cell: far_reserved, ..kept }]
};

static FAR: Table = Table {
    id: "wan-far",
    what: "reliable flows over 1 Gbit/s, 100 ms each way, with and without loss",
    site: Site::Link,
    axis: "per cent lost",
    unit: "% lost",
    points: &FAR_POINTS,
    curves: &FAR_CURVES,
    controls: &[],
    figures: &[
        ("mbit_per_s", "Mbit/s", true, true),
        ("of_link", "× link", true, false),
        ("cpu_s_per_gb", "CPU s/GB", false, true),
        ("memory_mib", "peak memory of both, MiB", false, false),
    ],
    goals: &[
        ("arq-reserved-0", "of_link", "of what its packets can carry", true, true, 0.97),
        ("arq-reserved-0_1", "of_link", "of what its packets can carry", true, true, 0.97),
        ("arq-reserved-1", "of_link", "of what its packets can carry", true, true, 0.95),
        ("arq-bbr-0", "mbit_per_s", "goodput to kernel TCP, BBR", false, true, 1.0),
        ("arq-bbr-0_1", "mbit_per_s", "goodput to kernel TCP, BBR", false, true, 1.0),
        ("arq-bbr-1", "mbit_per_s", "goodput to kernel TCP, BBR", false, true, 1.0),
        // 2.5 times 25 MB at each end.
        ("arq-reserved-0", "memory_mib", "memory of both ends", true, false, 119.2),
    ],
    link: Some(Link::new(1_000.0, |percent| {
        format!("rate=1Gbit/s,delay=100ms,queue=50000,queue-bytes=25MB,loss={percent}%")
    })),
    rounds: 3,
    seconds: 10.0,
};

/// Flows of one kind, and of two.
static TCP_2: [Several; 1] = [several(2, &TCP)];
static ARQ_2: [Several; 1] = [several(2, &ARQ)];
static ARQ_10: [Several; 1] = [several(10, &ARQ)];
static BBR_2: [Several; 1] = [several(2, &ARQ_BBR)];
static BBR_10: [Several; 1] = [several(10, &ARQ_BBR)];
static QUINN_TCP: [Several; 2] = [several(1, &QUINN), several(1, &TCP)];
static ARQ_TCP: [Several; 2] = [several(1, &ARQ), several(1, &TCP)];
static BBR_TCP: [Several; 2] = [several(1, &ARQ_BBR), several(1, &TCP)];

const fn beside(
    name: &'static str,
    what: &'static str,
    control: &'static str,
    cell: fn(f64) -> Cell,
) -> Curve {
    curve(name, what, "tcp-2", cell).over(control, 1_434.0)
}

static SHARED: Table = Table {
    id: "wan-shared",
    what: "reliable flows that share 100 Mbit/s, 10 ms each way, by its queue",
    site: Site::Link,
    axis: "round trips that fit the queue",
    unit: "round trips of queue",
    points: &[0.2, 1.0, 2.0],
    curves: &[
        beside("tcp-2", "two of kernel TCP, CUBIC", "cubic", |_| shared(&TCP_2, UNIT_LEN)),
        beside("tcp-bbr-2", "two of kernel TCP, BBR", "bbr", |_| shared(&TCP_2, UNIT_LEN)),
        beside("arq-2", "two of dacapo, cubic", "cubic", |_| shared(&ARQ_2, UNIT_LEN)),
        beside("arq-10", "ten of dacapo, cubic", "cubic", |_| shared(&ARQ_10, UNIT_LEN)),
        beside("arq-bbr-2", "two of dacapo, bbr", "cubic", |_| shared(&BBR_2, UNIT_LEN)),
        beside("arq-bbr-10", "ten of dacapo, bbr", "cubic", |_| shared(&BBR_10, UNIT_LEN)),
        beside("quinn-tcp", "quinn, CUBIC, beside kernel TCP, CUBIC", "cubic", |_| {
            shared(&QUINN_TCP, UNIT_LEN)
        }),
        beside("arq-tcp", "dacapo, cubic, beside kernel TCP, CUBIC", "cubic", |_| {
            shared(&ARQ_TCP, UNIT_LEN)
        }),
        beside("arq-bbr-tcp", "dacapo, bbr, beside kernel TCP, CUBIC", "cubic", |_| {
            shared(&BBR_TCP, UNIT_LEN)
        }),
        beside("arq-tcp-bbr", "dacapo, cubic, beside kernel TCP, BBR", "bbr", |_| {
            shared(&ARQ_TCP, UNIT_LEN)
        }),
        beside("arq-bbr-tcp-bbr", "dacapo, bbr, beside kernel TCP, BBR", "bbr", |_| {
            shared(&BBR_TCP, UNIT_LEN)
        }),
    ],
    controls: &[],
    figures: &[
        ("mbit_per_s", "Mbit/s in all", true, true),
        ("jain", "Jain's index", true, true),
        ("share", "share to the other's", true, false),
        ("dropped_percent", "% that the queue drops", false, true),
    ],
    goals: &SHARED_GOALS,
    link: Some(Link::new(100.0, |round_trips| {
        let (bytes, packets) = (round_trips * 250_000.0, round_trips * 500.0);
        format!("rate=100Mbit/s,delay=10ms,queue={packets:.0},queue-bytes={bytes:.0}B")
    })),
    rounds: 3,
    seconds: 15.0,
};

/// A row, its figure, what it is, of the figure itself, at least, and its bound.
type Bound = (&'static str, &'static str, &'static str, bool, bool, f64);

const fn fair(row: &'static str) -> Bound {
    (row, "jain", "Jain's index", true, true, 0.95)
}

const fn no_less(row: &'static str) -> Bound {
    (row, "share", "share to kernel TCP's", true, true, 0.5)
}

const fn no_more(row: &'static str) -> Bound {
    (row, "share", "share to kernel TCP's", true, false, 2.0)
}

const fn few_dropped(row: &'static str) -> Bound {
    (row, "dropped_percent", "% that the queue drops", true, false, 3.0)
}

static SHARED_GOALS: [Bound; 26] = [
    fair("arq-2-1"),
    fair("arq-2-2"),
    fair("arq-10-1"),
    fair("arq-10-2"),
    fair("arq-bbr-2-1"),
    fair("arq-bbr-2-2"),
    fair("arq-bbr-10-1"),
    fair("arq-bbr-10-2"),
    no_less("arq-tcp-1"),
    no_more("arq-tcp-1"),
    no_less("arq-tcp-2"),
    no_more("arq-tcp-2"),
    no_less("arq-bbr-tcp-1"),
    no_more("arq-bbr-tcp-1"),
    no_less("arq-bbr-tcp-2"),
    no_more("arq-bbr-tcp-2"),
    no_less("arq-tcp-bbr-1"),
    no_more("arq-tcp-bbr-1"),
    no_less("arq-tcp-bbr-2"),
    no_more("arq-tcp-bbr-2"),
    no_less("arq-bbr-tcp-bbr-1"),
    no_more("arq-bbr-tcp-bbr-1"),
    no_less("arq-bbr-tcp-bbr-2"),
    no_more("arq-bbr-tcp-bbr-2"),
    few_dropped("arq-2-0_2"),
    few_dropped("arq-bbr-2-0_2"),
];

/// All of them.
pub static ALL: [&dyn Experiment; 4] = [&REORDERED, &BACK, &FAR, &SHARED];
