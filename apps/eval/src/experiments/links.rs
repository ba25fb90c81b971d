//! `links`: the reliable ones over the link emulator, without loss and with it.

use super::reliable::{CURVES, GRAPH, UNIT_LEN, bound};
use super::table::{Cell, Curve, Link, Table, at_point, bulk, curve};
use crate::experiment::Site;
use crate::peers::{Dacapo, Which, Xtp};

/// Per cent lost.
const POINTS: [f64; 5] = [0.0, 1.0, 5.0, 10.0, 30.0];

/// The payload of XTP's full packets (1440 of 1500 bytes) at 500 Mbit/s is 480 Mbit/s; it is told
/// to send as much more as is lost before the queue, and 0.2 % less.
static XTP: [Xtp; POINTS.len()] = [
    xtp_at("8MiB", &["--rate", "479000kbit/s"]),
    xtp_at("8MiB", &["--rate", "483800kbit/s"]),
    xtp_at("8MiB", &["--rate", "504200kbit/s"]),
    xtp_at("16MiB", &["--rate", "532200kbit/s"]),
    xtp_at("32MiB", &["--rate", "684200kbit/s"]),
];

const fn xtp_at(window: &'static str, options: &'static [&'static str; 2]) -> Xtp {
    Xtp { which: Which::Now, window, options }
}

fn xtp(loss: f64) -> Cell {
    let peer = at_point(&POINTS, &XTP, loss);
    bulk(peer, 64 << 10, true)
}

/// Full datagrams (1452 of 1480 bytes) at 500 Mbit/s are 490.5 Mbit/s; the bound is as much more as
/// is lost before the queue, and 0.2 % less.
static RESERVED: [Dacapo; POINTS.len()] = [
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "489500 kbit/s"]),
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "494400 kbit/s"]),
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "515200 kbit/s"]),
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "543900 kbit/s"]),
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "699300 kbit/s"]),
];

fn reserved(loss: f64) -> Cell {
    let peer = at_point(&POINTS, &RESERVED, loss);
    bulk(peer, UNIT_LEN, true)
}

/// What yields there is compared with what yields.
const ALL: [Curve; 9] = {
    let [tcp, tcp_bbr, quinn, quinn_bbr, srt, arq, bbr, kept] = CURVES;
    let xtp = curve("xtp", "XTP over udp, RATE of the link", "tcp-bbr", xtp);
    let kept = Curve { cell: reserved, ..kept };
    let arq = Curve { beside: Some("tcp"), ..arq };
    [tcp, tcp_bbr, quinn, quinn_bbr, srt, xtp.over("cubic", 1_440.0), arq, bbr, kept]
};

/// A round trip is 1.25 MB.
fn link(loss: f64) -> String {
    format!("rate=500Mbit/s,delay=10ms,queue=5000,queue-bytes=2500kB,loss={loss}%")
}

/// The experiment.
pub static LINKS: Table = Table {
    id: "links",
    what: "reliable flows over a link of 500 Mbit/s, 10 ms each way, with and without loss",
    site: Site::Link,
    axis: "per cent lost",
    unit: "% loss",
    points: &POINTS,
    curves: &ALL,
    controls: &[],
    figures: &[
        ("mbit_per_s", "Mbit/s", true, true),
        ("of_link", "× link", true, false),
        ("cpu_s_per_gb", "CPU s/GB", false, true),
        ("calls_per_mib", "system calls a MiB on the wire", false, true),
    ],
    goals: &[
        ("xtp-0", "of_link", "of what its packets can carry", true, true, 0.99),
        ("xtp-1", "of_link", "of what its packets can carry", true, true, 0.98),
        ("xtp-5", "of_link", "of what its packets can carry", true, true, 0.98),
        ("xtp-10", "of_link", "of what its packets can carry", true, true, 0.95),
        ("xtp-30", "of_link", "of what its packets can carry", true, true, 0.9),
        ("arq-0", "mbit_per_s", "goodput to kernel TCP, CUBIC", false, true, 1.0),
        ("arq-bbr-0", "mbit_per_s", "goodput to kernel TCP, BBR", false, true, 1.0),
        ("arq-bbr-1", "mbit_per_s", "goodput to kernel TCP, BBR", false, true, 1.0),
        ("arq-bbr-5", "mbit_per_s", "goodput to kernel TCP, BBR", false, true, 1.0),
        ("arq-bbr-10", "mbit_per_s", "goodput to kernel TCP, BBR", false, true, 1.0),
        ("arq-reserved-0", "of_link", "of what its packets can carry", true, true, 0.99),
        ("arq-reserved-1", "of_link", "of what its packets can carry", true, true, 0.98),
        ("arq-reserved-5", "of_link", "of what its packets can carry", true, true, 0.98),
        ("arq-reserved-10", "of_link", "of what its packets can carry", true, true, 0.95),
        ("arq-reserved-30", "of_link", "of what its packets can carry", true, true, 0.9),
        ("xtp-1", "cpu_s_per_gb", "processor time to TCP BBR", false, false, 2.0),
    ],
    link: Some(Link::new(500.0, link)),
    rounds: 5,
    seconds: 5.0,
};
