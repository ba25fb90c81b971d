//! Reliable flows over links, which several experiments run: everybody's curve.

use super::programs::{QUINN, QUINN_BBR, SRT_FILE, TCP};
use super::table::{Curve, bulk, curve};
use crate::peers::{Dacapo, Which};

/// Bytes of a message of ours.
pub const UNIT_LEN: usize = 60 << 10;

/// Checked, and sent again until it has come.
pub const GRAPH: &str = "segment,arq-sr,checksum";

const OPTIONS: &[&str] = &["--transport", "udp", "--graph", GRAPH];

/// With one controller, and with the other.
pub static ARQ: Dacapo = Dacapo::new(Which::Now, OPTIONS).controlled("DACAPO_CONTROLLER=cubic");
pub static ARQ_BBR: Dacapo = Dacapo::new(Which::Now, OPTIONS).controlled("DACAPO_CONTROLLER=bbr");

/// Held to a bound; what does not yield.
pub const fn bound(options: &'static [&'static str; 6]) -> Dacapo {
    Dacapo::new(Which::Now, options).controlled("DACAPO_CONTROLLER=reserved")
}

/// Full datagrams (1452 of 1480 bytes) at 500 Mbit/s are 490.5 Mbit/s, and 0.2 % less.
static RESERVED: Dacapo =
    bound(&["--transport", "udp", "--graph", GRAPH, "--rate", "489500 kbit/s"]);

/// Everybody's, with the payload of their full packets; what keeps a bound has that of 500 Mbit/s.
pub const CURVES: [Curve; 8] = [
    curve("tcp", "kernel TCP, CUBIC", "tcp-bbr", |_| bulk(&TCP, 128 << 10, true))
        .over("cubic", 1_448.0),
    curve("tcp-bbr", "kernel TCP, BBR", "tcp-bbr", |_| bulk(&TCP, 128 << 10, true))
        .over("bbr", 1_448.0),
    curve("quinn", "quinn, one stream (TLS), CUBIC", "tcp-bbr", |_| bulk(&QUINN, UNIT_LEN, true))
        .over("cubic", 1_424.0),
    curve("quinn-bbr", "the same, BBR", "tcp-bbr", |_| bulk(&QUINN_BBR, UNIT_LEN, true))
        .over("cubic", 1_424.0),
    curve("srt-file", "SRT, file mode", "tcp-bbr", |_| bulk(&SRT_FILE, 1_456, true))
        .over("cubic", 1_456.0),
    curve("arq", "dacapo udp {checksum, arq-sr, segment}, cubic", "tcp-bbr", |_| {
        bulk(&ARQ, UNIT_LEN, true)
    })
    .over("cubic", 1_434.0),
    curve("arq-bbr", "the same, bbr", "tcp-bbr", |_| bulk(&ARQ_BBR, UNIT_LEN, true))
        .over("bbr", 1_434.0),
    curve("arq-reserved", "the same, reserved: bound of the link", "tcp-bbr", |_| {
        bulk(&RESERVED, UNIT_LEN, true)
    })
    .over("cubic", 1_434.0),
];

/// What is measured of them.
pub const FIGURES: [(&str, &str, bool, bool); 3] = [
    ("mbit_per_s", "Mbit/s", true, true),
    ("of_link", "× link", true, false),
    ("cpu_s_per_gb", "CPU s/GB", false, true),
];
