//! `media`: a film that is sent while it is shown, over a link that loses in runs.

use super::table::{Cell, Link, Table, at_point, bulk, curve};
use crate::experiment::Site;
use crate::peers::{Broadcast, By};

/// Milliseconds there and back.
const POINTS: [f64; 4] = [30.0, 60.0, 100.0, 240.0];

/// Everybody may hold a packet for so long beyond the way there, as SRT counts latency: 300 ms in
/// all where the way takes 120.
const fn of(by: By, round_trip_ms: u32, path: &'static str) -> Broadcast {
    let (delay_ms, hold_ms) = (round_trip_ms / 2, if round_trip_ms > 200 { 180 } else { 150 });
    Broadcast { by, hold_ms, delay_ms, path }
}

/// As the link is: three packets are 7.2 ms at this rate.
const PATHS: [&str; POINTS.len()] = [
    "internet,rate=20Mbit/s,delay=15ms,jitter=1ms,loss=5%,burst=3",
    "internet,rate=20Mbit/s,delay=30ms,jitter=1ms,loss=5%,burst=3",
    "internet,rate=20Mbit/s,delay=50ms,jitter=1ms,loss=5%,burst=3",
    "internet,rate=20Mbit/s,delay=120ms,jitter=1ms,loss=5%,burst=3",
];

const fn all(by: By) -> [Broadcast; POINTS.len()] {
    [of(by, 30, PATHS[0]), of(by, 60, PATHS[1]), of(by, 100, PATHS[2]), of(by, 240, PATHS[3])]
}

static OURS: [Broadcast; POINTS.len()] = all(By::Dacapo);
static SRT: [Broadcast; POINTS.len()] = all(By::Srt);
static FILTER: [Broadcast; POINTS.len()] = all(By::SrtFilter);

fn cell(all: &'static [Broadcast; POINTS.len()], round_trip_ms: f64) -> Cell {
    let peer = at_point(&POINTS, all, round_trip_ms);
    bulk(peer, 1_316, false)
}

fn link(round_trip_ms: f64) -> String {
    format!("rate=20Mbit/s,delay={}ms,loss=5%,burst=7.2ms", round_trip_ms / 2.0)
}

/// The experiment.
pub static MEDIA: Table = Table {
    id: "media",
    what: "a film of 4 Mbit/s while it is shown, over a link that loses 5 % in runs of 7.2 ms",
    site: Site::Link,
    axis: "ms there and back",
    unit: "ms there and back",
    points: &POINTS,
    curves: &[
        curve("srt", "srt-live-transmit", "srt", |x| cell(&SRT, x)),
        curve("srt-fec", "srt-live-transmit, packet filter 10 × 5", "srt", |x| cell(&FILTER, x)),
        curve("ours", "dacapo send --format mpegts --deadline", "srt", |x| cell(&OURS, x)),
    ],
    controls: &[],
    figures: &[
        ("damaged", "damaged pictures", false, true),
        ("damaged_percent", "% of all", false, false),
        ("wire_to_film", "bytes on the wire × film, both ways", false, false),
        ("cpu_s", "CPU s", false, true),
    ],
    goals: &[
        ("ours-30", "damaged", "damaged pictures to SRT's", false, false, 1.0),
        ("ours-60", "damaged", "damaged pictures to SRT's", false, false, 1.0),
        ("ours-100", "damaged", "damaged pictures to SRT's", false, false, 0.25),
        ("ours-240", "damaged", "damaged pictures to SRT's", false, false, 0.25),
    ],
    link: Some(Link { config: link, mbit_per_s: 20.0 }),
    rounds: 5,
    seconds: 20.0,
};
