//! `sends`: XTP by what a sender gives at once, in the modes of a paper of 1995.

use super::own::Place;
use super::table::{Cell, Table, curve};
use crate::experiment::Site;
use crate::peers::words;

const PLACES: &[Place] =
    &[("mbit_per_s", "points[].mbit_per_s"), ("cpu_s_per_gb", "points[].cpu_s_per_gb.both")];

fn mode(mode: &'static str, len: f64) -> Cell {
    let len = len.to_string();
    let rest = ["--packet-len", "4096", "--bytes", "20MB", "--seconds", "0.5", "--json"];
    Cell::Own(words(["xtp", "--mode", mode, "--send-len", &*len].into_iter().chain(rest)), PLACES)
}

/// The experiment.
pub static SENDS: Table = Table {
    id: "sends",
    what: "XTP between two processes by what is sent at once, as Mapp measured SandiaXTP in 1995",
    site: Site::Host,
    axis: "bytes sent at once",
    unit: "B",
    points: &[512.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0],
    curves: &[
        curve("ack-rel", "reliable, each send waited for", "ack-rel", |n| mode("ack-rel", n)),
        curve("ack-un", "unreliable, each send waited for", "ack-rel", |n| mode("ack-un", n)),
        curve("blast", "unreliable, bursts of 1 MB", "ack-rel", |n| mode("blast", n)),
        curve("stream", "reliable, without waiting", "ack-rel", |n| mode("stream", n)),
    ],
    controls: &[],
    figures: &[("mbit_per_s", "Mbit/s", true, true), ("cpu_s_per_gb", "CPU s/GB", false, true)],
    goals: &[],
    link: None,
    rounds: 5,
    seconds: 0.5,
};
