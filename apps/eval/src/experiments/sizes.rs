//! `sizes`: how goodput and cost go with the length of what is sent at once: a command, a packet of
//! sound, a datagram, a train, a picture.

use super::programs::{OURS_TCP, OURS_UDP, TCP, ZENOH_TCP, ZMQ};
use super::table::{Table, bulk, curve};
use crate::experiment::Site;

/// The experiment.
pub static SIZES: Table = Table {
    id: "sizes",
    what: "goodput and processor time by the length of what is sent at once, 16 B to 1 MiB",
    site: Site::Veth,
    axis: "bytes sent at once",
    unit: "B",
    points: &[16.0, 64.0, 512.0, 4_096.0, 32_768.0, 1_048_576.0],
    curves: &[
        curve("tcp", "kernel TCP, one write", "tcp", |x| bulk(&TCP, x as usize, true)),
        curve("ours-tcp", "dacapo over tcp, a unit", "tcp", |x| bulk(&OURS_TCP, x as usize, true)),
        curve("ours-udp", "dacapo udp {sequence, segment}, a unit", "tcp", |x| {
            bulk(&OURS_UDP, x as usize, false)
        }),
        curve("zmq", "ZeroMQ over tcp, a message", "tcp", |x| bulk(&ZMQ, x as usize, true)),
        curve("zenoh", "Zenoh over tcp, a message", "tcp", |x| bulk(&ZENOH_TCP, x as usize, true)),
    ],
    controls: &[("tcp-32768", "gbit_per_s")],
    figures: &[
        ("gbit_per_s", "Gbit/s", true, true),
        ("cpu_s_per_gb", "CPU s/GB", false, true),
        ("cpu_us_per_unit", "CPU µs of each", false, false),
        ("loss_percent", "lost %", false, false),
        ("calls_per_mib", "system calls a MiB on the wire", false, false),
        ("memory_mib", "peak memory of both, MiB", false, false),
    ],
    goals: &[],
    link: None,
    rounds: 5,
    seconds: 1.0,
};
