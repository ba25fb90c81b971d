//! `receivers`: what it costs to send the same to more and more receivers, to a group of addresses
//! and to a stream of each.

use super::own::Place;
use super::table::{Cell, Table, bulk, curve};
use crate::experiment::Site;
use crate::peers::{Listed, words};

static ZMQ: Listed = Listed { program: "peer-zmq", kind: "pub" };

const PLACES: &[Place] = &[
    ("gbit_per_s", "median.bulk.up.gbit_per_s"),
    ("cpu_s_per_gb", "median.bulk.cpu_s_per_gb.both"),
    ("near_cpu_s_per_gb", "median.bulk.cpu_s_per_gb.near"),
    ("loss", "median.bulk.up.loss"),
];

/// 50 Mbit/s to each of so many processes.
fn ours(receivers: f64, transport: &str) -> Cell {
    let receivers = receivers.to_string();
    let rest = ["--what", "bulk", "--duration", "2s", "--rate", "50 Mbit/s", "--json"];
    let begin = ["net", "--receivers", &*receivers, "--transport", transport];
    Cell::Own(words(begin.into_iter().chain(rest)), PLACES)
}

/// The experiment.
pub static RECEIVERS: Table = Table {
    id: "receivers",
    what: "50 Mbit/s to each of 1 to 64 receivers, by a group of addresses and by a stream to each",
    site: Site::Host,
    axis: "receivers",
    unit: "",
    points: &[1.0, 2.0, 4.0, 16.0, 64.0],
    curves: &[
        curve("multicast", "dacapo udp-multicast", "", |n| ours(n, "udp-multicast")),
        curve("fan-out", "dacapo tcp-multicast", "", |n| ours(n, "tcp-multicast")),
        curve("zmq", "ZeroMQ over tcp, PUB to SUB sockets of one process", "", |n| {
            bulk(&ZMQ, n as usize, true)
        }),
        curve("group-peer", "a peer that sends to a group", "", |n| match n as u64 {
            1 => Cell::Lacks("none of the peers here sends to a group; NORM or OpenPGM would"),
            _ => Cell::Nothing,
        }),
    ],
    controls: &[("multicast-1", "gbit_per_s")],
    figures: &[
        ("gbit_per_s", "Gbit/s in all", true, false),
        ("cpu_s_per_gb", "CPU s/GB", false, true),
        ("near_cpu_s_per_gb", "the sender's s/GB", false, true),
        ("loss", "lost, of 1", false, false),
    ],
    goals: &[],
    link: None,
    rounds: 5,
    seconds: 2.0,
};
