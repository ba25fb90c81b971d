//! `media-LOSS-RUN`: a film that is sent while it is shown, over links that lose so many percent in
//! runs of so many packets on average.
//!
//! ```text
//!   media-2-1   media-2-3   media-2-10        each at 30, 60, 100 and 240 ms there and back:
//!   media-5-1   …                             36 links, a row for each program on each
//! ```

use super::table::{Cell, Curve, Link, Table, at_point, bulk, curve};
use crate::experiment::{Experiment, Site};
use crate::peers::{Broadcast, By};

/// Milliseconds there and back.
const POINTS: [f64; 4] = [30.0, 60.0, 100.0, 240.0];

/// How long a packet of 1,316 bytes takes at the rate of the film, in ms.
const PACKET_MS: f64 = 2.4;

/// Everybody may hold a packet for so long beyond the way there, as SRT counts latency: 300 ms in
/// all where the way takes 120.
const fn of<const LOSS: u32, const RUN: u32>(by: By, round_trip_ms: u32) -> Broadcast {
    let hold_ms = if round_trip_ms > 200 { 180 } else { 150 };
    Broadcast { by, hold_ms, delay_ms: round_trip_ms / 2, loss_percent: LOSS, run: RUN }
}

const fn each<const LOSS: u32, const RUN: u32>(by: By) -> [Broadcast; POINTS.len()] {
    [
        of::<LOSS, RUN>(by, 30),
        of::<LOSS, RUN>(by, 60),
        of::<LOSS, RUN>(by, 100),
        of::<LOSS, RUN>(by, 240),
    ]
}

/// Links of one kind.
struct Kind<const LOSS: u32, const RUN: u32>;

impl<const LOSS: u32, const RUN: u32> Kind<LOSS, RUN> {
    const OURS: [Broadcast; POINTS.len()] = each::<LOSS, RUN>(By::Dacapo);
    const SRT: [Broadcast; POINTS.len()] = each::<LOSS, RUN>(By::Srt);
    const FILTER: [Broadcast; POINTS.len()] = each::<LOSS, RUN>(By::SrtFilter);

    const RIST: [Broadcast; POINTS.len()] = each::<LOSS, RUN>(By::Rist);

    const CURVES: [Curve; 4] = [
        curve("srt", "srt-live-transmit", "srt", |x| cell(&Self::SRT, x)),
        curve("srt-fec", "srt-live-transmit, packet filter 10 × 5", "srt", |x| {
            cell(&Self::FILTER, x)
        }),
        curve("rist", "ristsender, ristreceiver", "srt", |x| cell(&Self::RIST, x)),
        curve("ours", "dacapo send --format mpegts --deadline", "srt", |x| cell(&Self::OURS, x)),
    ];

    /// As on the command line of `dacapo link`: runs in time, however much is sent.
    fn link(round_trip_ms: f64) -> String {
        let (delay, run) = (round_trip_ms / 2.0, f64::from(RUN) * PACKET_MS);
        format!("rate=20Mbit/s,delay={delay}ms,loss={LOSS}%,burst={run:.1}ms")
    }

    const fn table(id: &'static str, what: &'static str) -> Table {
        Table {
            id,
            what,
            site: Site::Link,
            axis: "ms there and back",
            unit: "ms there and back",
            points: &POINTS,
            curves: &Self::CURVES,
            controls: &[],
            figures: &FIGURES,
            goals: goals(LOSS, RUN),
            link: Some(Link::new(20.0, Self::link)),
            rounds: 5,
            seconds: 20.0,
        }
    }
}

fn cell(all: &'static [Broadcast; POINTS.len()], round_trip_ms: f64) -> Cell {
    let peer = at_point(&POINTS, all, round_trip_ms);
    bulk(peer, 1_316, false)
}

const FIGURES: [(&str, &str, bool, bool); 4] = [
    ("damaged", "damaged pictures", false, true),
    ("damaged_percent", "% of all", false, false),
    ("wire_to_film", "bytes on the wire × film, both ways", false, false),
    ("cpu_s", "CPU s", false, true),
];

/// A row, its figure, what it is, and its bound, as a table has them.
type Bound = (&'static str, &'static str, &'static str, bool, bool, f64);

const fn at_most(row: &'static str, ratio: f64) -> Bound {
    (row, "damaged", "damaged pictures to SRT's", false, false, ratio)
}

const fn bounds(far: f64) -> [Bound; 4] {
    [
        at_most("ours-30", 1.0),
        at_most("ours-60", 1.0),
        at_most("ours-100", far),
        at_most("ours-240", far),
    ]
}

static QUARTER: [Bound; 4] = bounds(0.25);
static HALF: [Bound; 4] = bounds(0.5);
static LONG_RUNS: [Bound; 4] = bounds(0.7);

/// Nowhere more; far away a quarter, half where a tenth is lost, 0.7 where runs are long.
const fn goals(loss: u32, run: u32) -> &'static [Bound] {
    match (loss, run) {
        (_, 10..) => &LONG_RUNS,
        (10.., _) => &HALF,
        _ => &QUARTER,
    }
}

macro_rules! tables {
    ($(($id:literal, $loss:literal, $run:literal)),*) => {
        [$(Kind::<$loss, $run>::table($id, concat!(
            "a film of 4 Mbit/s while it is shown, over a link that loses ", $loss,
            " % in runs of ", $run, " packets"
        ))),*]
    };
}

static TABLES: [Table; 9] = tables![
    ("media-2-1", 2, 1),
    ("media-2-3", 2, 3),
    ("media-2-10", 2, 10),
    ("media-5-1", 5, 1),
    ("media-5-3", 5, 3),
    ("media-5-10", 5, 10),
    ("media-10-1", 10, 1),
    ("media-10-3", 10, 3),
    ("media-10-10", 10, 10)
];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static dyn Experiment> {
    TABLES.iter().map(|it| it as &dyn Experiment)
}
