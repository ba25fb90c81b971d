//! [`Table`]: an experiment that is programs by points: each program at each point of what grows.
//!
//! ```text
//!   curves x points -> rows NAME-POINT, a group for each point, curves in charts
//!   cell(point)     -> a pair of processes | a command of dacapo-eval and its figures | what lacks
//! ```

use super::own;
use crate::experiment::{Experiment, Goal, Point, Row, Sample, Site, Spec, figures};
use crate::peers::{self, Measure, Order, Peer, Several, Wait};
use crate::rig::Rig;
use crate::run::place::Place;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// What is measured: programs by points.
pub struct Table {
    /// Its name.
    pub id: &'static str,
    /// What it is, in one sentence.
    pub what: &'static str,
    /// Where its ends are.
    pub site: Site,
    /// What grows, with its unit.
    pub axis: &'static str,
    /// What stands behind a point in the name of its table; without it each curve has a table, and
    /// is compared with its own first point.
    pub unit: &'static str,
    /// How much of it there is.
    pub points: &'static [f64],
    /// The programs.
    pub curves: &'static [Curve],
    /// Rows and figures whose disturbance makes a round noisy.
    pub controls: &'static [(&'static str, &'static str)],
    /// Name, heading, more is better, compared; messages there and back have [`LATENCY`].
    pub figures: &'static [(&'static str, &'static str, bool, bool)],
    /// Row, figure, what it is, of the figure itself, at least, bound.
    pub goals: &'static [(&'static str, &'static str, &'static str, bool, bool, f64)],
    /// The link between them, if any.
    pub link: Option<Link>,
    /// How often and how long.
    pub rounds: u32,
    /// Of each row.
    pub seconds: f64,
}

/// A link at every point.
#[derive(Clone, Copy)]
pub struct Link {
    /// As on the command line of `dacapo link`.
    pub config: fn(f64) -> String,
    /// What the way back does, where that is something else.
    pub back: Option<fn(f64) -> String>,
    /// What it carries.
    pub mbit_per_s: f64,
}

impl Link {
    /// One that does the same both ways.
    pub const fn new(mbit_per_s: f64, config: fn(f64) -> String) -> Self {
        Self { config, back: None, mbit_per_s }
    }
}

/// A program at every point.
pub struct Curve {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The curve that it is compared with at each point, if any.
    pub beside: Option<&'static str>,
    /// What runs at a point.
    pub cell: fn(f64) -> Cell,
    /// The congestion control of kernel TCP and the payload of full packets, over a link.
    pub link: (&'static str, f64),
}

/// What runs.
pub enum Cell {
    /// Two processes.
    Pair(&'static dyn Peer, Order),
    /// Several pairs of processes at once.
    Together(&'static [Several], Order),
    /// A command of this program with `--json`, and where in it figures are.
    Own(Vec<String>, &'static [own::Place]),
    /// Nothing: what is missing.
    Lacks(&'static str),
    /// Nothing that belongs there: there is no such row.
    Nothing,
}

/// What belongs to a point, of as many as there are points.
pub fn at_point<T, const N: usize>(points: &[f64; N], all: &'static [T; N], x: f64) -> &'static T {
    let at = points.iter().position(|point| point.total_cmp(&x).is_eq());
    &all[at.expect("rows are made of the points")]
}

/// A flow from one end to the other in messages of this size.
pub const fn bulk(peer: &'static dyn Peer, size: usize, is_reliable: bool) -> Cell {
    Cell::Pair(peer, Order { measure: Measure::Bulk, size, wait: Wait::Block, is_reliable })
}

/// Several such flows at once, none of which may lose.
pub const fn shared(all: &'static [Several], size: usize) -> Cell {
    let (measure, wait) = (Measure::Bulk, Wait::Block);
    Cell::Together(all, Order { measure, size, wait, is_reliable: true })
}

/// Messages of 64 bytes there and back, whose ends sleep.
pub const fn ping(peer: &'static dyn Peer) -> Cell {
    let (measure, wait) = (Measure::Latency, Wait::Block);
    Cell::Pair(peer, Order { measure, size: 64, wait, is_reliable: true })
}

/// A connection, and a message of so many bytes there and back, again and again.
pub const fn set_up(peer: &'static dyn Peer, size: usize) -> Cell {
    let (measure, wait) = (Measure::SetUp, Wait::Block);
    Cell::Pair(peer, Order { measure, size, wait, is_reliable: true })
}

/// A process, its connection, and a message of so many bytes there and back, again and again.
pub const fn start(peer: &'static dyn Peer, size: usize) -> Cell {
    let (measure, wait) = (Measure::Start, Wait::Block);
    Cell::Pair(peer, Order { measure, size, wait, is_reliable: true })
}

/// A curve that is compared with another, or with none where that is nothing.
pub const fn curve(
    name: &'static str,
    what: &'static str,
    beside: &'static str,
    cell: fn(f64) -> Cell,
) -> Curve {
    let beside = if beside.is_empty() { None } else { Some(beside) };
    Curve { name, what, beside, cell, link: ("cubic", 1_500.0) }
}

impl Curve {
    /// The same over a link: by which congestion control of kernel TCP, with how many bytes of the
    /// program's in a full packet.
    pub const fn over(mut self, control: &'static str, payload: f64) -> Self {
        self.link = (control, payload);
        self
    }
}

/// What messages there and back are measured by.
const LATENCY: [(&str, &str, bool, bool); 4] = [
    ("p50_us", "p50 µs", false, true),
    ("p99_us", "p99 µs", false, true),
    ("calls_per_message", "system calls a message", false, false),
    ("memory_mib", "peak memory of both, MiB", false, false),
];

/// How long a command of this program may take.
const PATIENCE: Duration = Duration::from_secs(600);

impl Table {
    fn cells(&self) -> impl Iterator<Item = (f64, &'static Curve)> {
        let all = self.points.iter().flat_map(|&x| self.curves.iter().map(move |it| (x, it)));
        all.filter(|(x, curve)| !matches!((curve.cell)(*x), Cell::Nothing))
    }

    fn find(&self, row: &Row) -> Option<(f64, &'static Curve)> {
        self.cells().find(|(x, curve)| name(curve.name, *x) == row.name)
    }

    fn peer(&self, row: &Row) -> Option<&'static dyn Peer> {
        let (x, curve) = self.find(row)?;
        match (curve.cell)(x) {
            Cell::Pair(peer, _) => Some(peer),
            Cell::Together(all, _) => all.first().map(|it| it.peer),
            Cell::Own(..) | Cell::Lacks(_) | Cell::Nothing => None,
        }
    }

    fn run(&self, x: f64, curve: &Curve, rig: &mut Rig) -> Result<Sample, String> {
        match (curve.cell)(x) {
            Cell::Pair(peer, order) => peers::run(peer, &order, rig),
            Cell::Together(all, order) => peers::together(all, &order, rig),
            Cell::Own(words, places) => {
                own::measure(&own::command(rig, words), places, PATIENCE, rig)
            }
            Cell::Lacks(what) => Err(what.to_owned()),
            Cell::Nothing => Err("no such row".to_owned()),
        }
    }

    /// Over a link that is made for this run of the row alone.
    fn over_link(&self, x: f64, curve: &Curve, rig: &mut Rig) -> Result<Sample, String> {
        let link = self.link.ok_or("no link is said")?;
        let (control, payload) = curve.link;
        let (config, back) = ((link.config)(x), link.back.map(|back| back(x)));
        rig.place = Place::link(&rig.dacapo, (&config, back.as_deref()), control, &rig.stop)?;
        let sample = self.run(x, curve, rig);
        let totals = rig.place.end_link();
        rig.place = Place::default();
        let (mut sample, totals) = (sample?, totals?);
        if !was_exact(&totals) {
            return Err("not counted: the emulator was late, or lost packets itself".to_owned());
        }
        if let Some(percent) = dropped_percent(&totals) {
            sample = sample.with("dropped_percent", percent);
        }
        sample.reports["emulator"] = totals;
        let Some(gbit) = sample.figures.get("gbit_per_s").copied() else { return Ok(sample) };
        let sample = sample.with("mbit_per_s", gbit * 1e3);
        Ok(sample.with("of_link", gbit * 1e3 / (link.mbit_per_s * payload / 1_500.0)))
    }
}

/// The 99th percentile of what the emulator may be late.
const LATE_MAX_US: f64 = 1_000.0;

/// Whether what came of a run is the link's doing and nobody else's.
fn was_exact(totals: &Value) -> bool {
    let none = |name: &str| totals[name].as_u64() == Some(0);
    let late = totals["lateness_us"]["p99"].as_f64().unwrap_or(f64::INFINITY);
    late <= LATE_MAX_US && ["kernel_drops", "unsent", "refused"].into_iter().all(none)
}

/// How much of what entered the queue on the way there it dropped.
fn dropped_percent(totals: &Value) -> Option<f64> {
    let way = totals.get("forward")?;
    let number = |name: &str| way.get(name).and_then(Value::as_f64);
    let (sent, dropped) = (number("sent")?, number("dropped_queue")?);
    (sent > 0.0).then(|| dropped / sent * 100.0)
}

fn name(curve: &str, x: f64) -> String {
    format!("{curve}-{x}").replace('.', "_")
}

impl Experiment for Table {
    fn id(&self) -> &'static str {
        self.id
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn site(&self) -> Site {
        self.site
    }

    fn spec(&self) -> Spec {
        let group = |(x, curve): (f64, &Curve)| match (curve.cell)(x) {
            Cell::Pair(_, Order { measure: Measure::Latency, .. }) => {
                format!("{x} {}, 64 B one way", self.unit)
            }
            _ if self.unit.is_empty() => curve.what.to_owned(),
            _ => format!("{x} {}", self.unit),
        };
        let control = |(x, curve): (f64, &Curve)| match self.unit {
            "" => self.cells().find(|it| it.1.name == curve.name).map(|it| name(it.1.name, it.0)),
            _ => curve.beside.map(|control| name(control, x)),
        };
        let row = |(x, curve): (f64, &Curve)| Row {
            name: name(curve.name, x),
            what: curve.what.to_owned(),
            group: group((x, curve)),
            control: control((x, curve)),
            point: Some(Point { curve: curve.name.to_owned(), x, axis: self.axis.to_owned() }),
        };
        let groups: BTreeSet<String> = self.cells().map(group).collect();
        let (pings, others): (Vec<&str>, Vec<&str>) =
            groups.iter().map(String::as_str).partition(|group| group.ends_with("one way"));
        let mut columns = figures(self.figures, &others);
        for figure in figures(&LATENCY, &pings).into_iter().filter(|_| !pings.is_empty()) {
            match columns.iter_mut().find(|it| it.name == figure.name) {
                Some(column) => column.groups.extend(figure.groups),
                None => columns.push(figure),
            }
        }
        let goal =
            |&(row, figure, what, is_absolute, is_least, bound): &(&str, &str, &str, _, _, _)| {
                let (row, figure, what) = (row.to_owned(), figure.to_owned(), what.to_owned());
                Goal { row, figure, what, is_absolute, is_least, bound }
            };
        let disturbed = |&(row, figure): &(&str, &str)| (row.to_owned(), figure.to_owned());
        Spec {
            what: self.what.to_owned(),
            rows: self.cells().map(row).collect(),
            figures: columns,
            controls: self.controls.iter().map(disturbed).collect(),
            goals: self.goals.iter().map(goal).collect(),
            rounds: self.rounds,
            loaded_rounds: 0,
            seconds: self.seconds,
        }
    }

    fn missing(&self, row: &Row, rig: &Rig) -> Option<String> {
        let (x, curve) = self.find(row)?;
        match (curve.cell)(x) {
            Cell::Pair(peer, _) => peer.missing(rig),
            Cell::Together(all, _) => all.iter().find_map(|it| it.peer.missing(rig)),
            Cell::Own(..) | Cell::Nothing => None,
            Cell::Lacks(what) => Some(what.to_owned()),
        }
    }

    fn version(&self, row: &Row, rig: &Rig) -> Option<String> {
        self.peer(row)?.version(rig)
    }

    fn round(&self, row: &Row, rig: &mut Rig) -> Result<Sample, String> {
        let (x, curve) = self.find(row).ok_or("no such row")?;
        match self.site {
            Site::Link => self.over_link(x, curve, rig),
            Site::Host | Site::Apart | Site::Veth => self.run(x, curve, rig),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_counts_when_the_emulator_was_exact() {
        let totals = |late: f64, drops: u64| {
            json!({ "lateness_us": { "p99": late }, "kernel_drops": drops, "unsent": 0,
                "refused": 0 })
        };
        assert!(was_exact(&totals(20.0, 0)));
        assert!(!was_exact(&totals(5_000.0, 0)) && !was_exact(&totals(20.0, 1)));
        assert!(!was_exact(&Value::Null), "nothing is exact without totals");
    }

    #[test]
    fn a_row_is_a_program_at_a_point_and_one_that_lacks_something_says_what() {
        static TABLE: Table = Table {
            id: "t",
            what: "what",
            site: Site::Host,
            axis: "things",
            unit: "ms",
            points: &[0.5, 2.0],
            curves: &[
                curve("a", "one", "a", |_| Cell::Lacks("a program")),
                curve("b", "two", "a", |x| Cell::Own(vec![x.to_string()], &[])),
            ],
            controls: &[],
            figures: &[("f", "F", true, true)],
            goals: &[],
            link: None,
            rounds: 1,
            seconds: 1.0,
        };
        let (table, mut rig) = (&TABLE, crate::rig::tests::rig());
        let spec = table.spec();
        let names: Vec<&str> = spec.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["a-0_5", "b-0_5", "a-2", "b-2"]);
        let last = &spec.rows[3];
        assert_eq!((last.group.as_str(), last.control.as_deref()), ("2 ms", Some("a-2")));
        assert_eq!(table.missing(&spec.rows[0], &rig).as_deref(), Some("a program"));
        assert_eq!(table.round(&spec.rows[2], &mut rig), Err("a program".to_owned()));
    }
}
