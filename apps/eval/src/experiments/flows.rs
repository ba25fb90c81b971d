//! `flows`: what a unit costs as flows grow in number, at the same 5,000 units of 1000 bytes a
//! second in all, in turns over all of them.

use super::own::Place;
use super::table::{Cell, Table, bulk, curve};
use crate::experiment::Site;
use crate::peers::{Listed, words};

static TCP: Listed = Listed { program: "peer-flows", kind: "tcp" };
static ZMQ: Listed = Listed { program: "peer-zmq", kind: "flows" };

const PLACES: &[Place] = &[
    ("units_per_s", "units_per_s"),
    ("cpu_us_per_unit", "cpu_us_per_unit.both"),
    ("p50_us", "delay_us.p50"),
    ("p99_us", "delay_us.p99"),
    ("memory_mib", "memory_mib.both"),
];

/// So many sessions with a flow each, over so many connections.
fn ours(flows: f64, connections: f64) -> Cell {
    let (flows, connections) = (flows.to_string(), connections.to_string());
    let send = ["--send", "5000", "--idle", "2s", "--json"];
    let rest = ["scale", "--sessions", &*flows, "--connections", &*connections];
    Cell::Own(words(rest.into_iter().chain(send)), PLACES)
}

/// The experiment.
pub static FLOWS: Table = Table {
    id: "flows",
    what: "what a unit costs from 1 to 10,000 flows, of one peer and of 1,000",
    site: Site::Host,
    axis: "flows",
    unit: "",
    points: &[1.0, 10.0, 100.0, 1_000.0, 10_000.0],
    curves: &[
        curve("tcp", "kernel TCP, a connection each", "", |n| bulk(&TCP, n as usize, true)),
        curve("zmq", "ZeroMQ over tcp, a PUSH socket each", "", |n| match n as u64 {
            10_000 => Cell::Lacks("ZeroMQ takes more descriptors for 10,000 sockets than 20,000"),
            n => bulk(&ZMQ, n as usize, true),
        }),
        // A connection carries 776 sessions at any time.
        curve("ours", "dacapo, a connection for 770", "", |n| ours(n, (n / 770.0).ceil())),
        curve("ours-peers", "dacapo, 1,000 connections", "", |n| match n as u64 {
            0..1_000 => Cell::Nothing,
            _ => ours(n, 1_000.0),
        }),
    ],
    controls: &[("tcp-1", "cpu_us_per_unit")],
    figures: &[
        ("units_per_s", "units a second", true, false),
        ("cpu_us_per_unit", "CPU µs of each", false, true),
        ("p50_us", "p50 µs", false, false),
        ("p99_us", "p99 µs", false, true),
        ("memory_mib", "memory of both, MiB", false, false),
    ],
    goals: &[("ours-10000", "cpu_us_per_unit", "processor time to one flow", false, false, 1.3)],
    link: None,
    rounds: 5,
    seconds: 2.0,
};
