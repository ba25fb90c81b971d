//! `modules`: what a graph costs as modules grow in number: those that a flow over udp can have,
//! and equal ones in the runner without a network.

use super::own::Place;
use super::programs::UDP;
use super::table::{Cell, Table, bulk, curve, ping};
use crate::experiment::Site;
use crate::peers::{Dacapo, Which, words};

const fn over_udp(graph: &'static [&'static str; 4]) -> Dacapo {
    Dacapo::new(Which::Now, graph)
}

static GRAPHS: [Dacapo; 4] = [
    over_udp(&["--transport", "udp", "--graph", ""]),
    over_udp(&["--transport", "udp", "--graph", "segment"]),
    over_udp(&["--transport", "udp", "--graph", "segment,sequence"]),
    over_udp(&["--transport", "udp", "--graph", "segment,sequence,checksum"]),
];

/// A unit that is one datagram, whatever the graph.
const UNIT_LEN: usize = 1_200;

fn ours(modules: f64, cell: fn(&'static Dacapo) -> Cell) -> Cell {
    GRAPHS.get(modules as usize).map_or(Cell::Nothing, cell)
}

macro_rules! packet {
    ($($count:literal),*) => {
        &[$(&[("ns_per_packet", concat!("marginal[module=touch batch=32 called=counted].totals\
            [modules=", $count, "].per_packet.median_ns"))]),*]
    };
}

/// Of so many modules that touch the header, and that many there are.
static TOTALS: &[&[Place]] = packet!("0", "3", "5", "10", "20");
const COUNTS: [f64; 5] = [0.0, 3.0, 5.0, 10.0, 20.0];

fn runner(modules: f64) -> Cell {
    let of = |at: usize| Cell::Own(words(["lift", "--seconds", "1", "--json"]), TOTALS[at]);
    COUNTS.iter().position(|count| *count == modules).map_or(Cell::Nothing, of)
}

/// The experiment.
pub static MODULES: Table = Table {
    id: "modules",
    what: "what units of 1200 bytes cost by the number of modules, over veth and without",
    site: Site::Veth,
    axis: "modules",
    unit: "modules",
    points: &[0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0],
    curves: &[
        curve("udp", "plain UDP", "udp", |n| match n as u64 {
            0..4 => bulk(&UDP, UNIT_LEN, false),
            _ => Cell::Nothing,
        }),
        curve("ours", "dacapo over udp", "udp", |n| ours(n, |it| bulk(it, UNIT_LEN, false))),
        // Messages there and back need `segment`.
        curve("ours-64", "dacapo over udp", "", |n| match n as u64 {
            0 => Cell::Nothing,
            _ => ours(n, |it| ping(it)),
        }),
        curve("runner", "modules that touch the header, batches of 32", "", runner),
    ],
    controls: &[("udp-0", "gbit_per_s")],
    figures: &[
        ("gbit_per_s", "Gbit/s", true, true),
        ("cpu_us_per_unit", "CPU µs of each", false, true),
        ("ns_per_packet", "ns a packet", false, false),
        ("loss_percent", "lost %", false, false),
        ("memory_mib", "peak memory of both, MiB", false, false),
    ],
    goals: &[],
    link: None,
    rounds: 5,
    seconds: 1.0,
};
