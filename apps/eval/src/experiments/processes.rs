//! `processes`: two processes of one host, through memory that they share, beside those that are
//! made for that.

use super::programs::{TCP, listed};
use super::table::{Cell, Table, bulk, curve};
use crate::experiment::Site;
use crate::peers::{Dacapo, Listed, Measure, Order, Peer, Wait, Which};

static AERON: Listed = listed("peer-aeron", "ipc");
static ICEORYX: Listed = listed("peer-iceoryx", "ipc");
static ICEORYX_SPIN: Listed = listed("peer-iceoryx", "spin");
static OURS: Dacapo = Dacapo::new(Which::Now, &["--transport", "shm"]);

/// Messages there and back, at the length of which that is asked.
const fn ping(peer: &'static dyn Peer, x: f64, wait: Wait) -> Cell {
    if x > 64.0 {
        return Cell::Nothing;
    }
    let measure = Measure::Latency;
    Cell::Pair(peer, Order { measure, size: 64, wait, is_reliable: true })
}

/// Whose ratio is to ours is better where it is less than 1.
pub static PROCESSES: Table = Table {
    id: "processes",
    what: "two processes of this host through shared memory, by the length of a message",
    site: Site::Apart,
    axis: "bytes of a message",
    unit: "B a message",
    points: &[64.0, 1_024.0, 8_192.0],
    curves: &[
        curve("tcp", "kernel TCP over loopback, one write", "tcp", |x| {
            bulk(&TCP, x as usize, true)
        }),
        curve("aeron", "Aeron, ipc", "aeron", |x| bulk(&AERON, x as usize, true)),
        curve("ours", "dacapo over shm, a unit", "aeron", |x| bulk(&OURS, x as usize, true)),
        curve("iceoryx", "iceoryx2, waits when a queue is full", "ours", |x| {
            bulk(&ICEORYX, x as usize, true)
        }),
        curve("iceoryx-spin", "iceoryx2, tries again when a queue is full", "ours", |x| {
            bulk(&ICEORYX_SPIN, x as usize, true)
        }),
        curve("aeron-spin", "Aeron, ipc, polling", "", |x| ping(&AERON, x, Wait::Spin)),
        curve("iceoryx-ping", "iceoryx2, polling", "", |x| ping(&ICEORYX, x, Wait::Spin)),
        curve("ours-spin", "dacapo over shm, polling", "aeron-spin", |x| {
            ping(&OURS, x, Wait::Spin)
        }),
        curve("ours-block", "dacapo over shm, asleep", "", |x| ping(&OURS, x, Wait::Block)),
    ],
    controls: &[("tcp-8192", "gbit_per_s")],
    figures: &[
        ("gbit_per_s", "Gbit/s", true, true),
        ("cpu_us_per_unit", "CPU µs of each", false, true),
        ("cpu_s_per_gb", "CPU s/GB", false, false),
        ("memory_mib", "peak memory of both, MiB", false, false),
    ],
    goals: &[
        ("ours-64", "gbit_per_s", "64 B, messages × Aeron", false, true, 1.0),
        ("ours-1024", "gbit_per_s", "1 KiB × Aeron", false, true, 1.5),
        ("iceoryx-1024", "gbit_per_s", "iceoryx2 × ours, 1 KiB", false, false, 0.5),
        ("iceoryx-8192", "gbit_per_s", "iceoryx2 × ours, 8 KiB", false, false, 0.833),
        ("iceoryx-spin-1024", "gbit_per_s", "the same, trying again, 1 KiB", false, false, 0.5),
        ("iceoryx-spin-8192", "gbit_per_s", "the same, 8 KiB", false, false, 0.833),
        ("ours-8192", "cpu_s_per_gb", "processor time at 8 KiB, s/GB", true, false, 0.2),
        ("ours-spin-64", "p50_us", "one way, polling, p50 µs", true, false, 0.25),
        ("ours-spin-64", "p99_us", "the same, p99 µs", true, false, 0.5),
        ("ours-block-64", "p50_us", "one way, asleep, p50 µs", true, false, 21.0),
    ],
    link: None,
    rounds: 5,
    seconds: 1.0,
};
