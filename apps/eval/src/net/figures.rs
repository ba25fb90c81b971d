//! What a run comes to: the far end's [`Report`], and the figures of both ends together.
//!
//! ```text
//!   far:  End -> Report --JSON--> near:  Report + End + account -> Bulk, Delay
//! ```
//!
//! Of what is sent once for several, each has its figures, to which the near end's processor time
//! is reckoned whole; and there is their sum.
//!
//! Invariants: goodput is what the receiver counted, by the receiver's clock; processor time is of
//! whole processes; a sum that does not close is an error, never a figure.

use super::echo::Echoes;
use super::flow::{Got, Sent};
use super::run::End;
use super::sums::{Sums, in_words};
use crate::exit::{Exit, Failure};
use crate::store::histogram::Histogram;
use dacapo::{Direction, SegmentCounts};
use serde_json::{Value, json};

/// What came at an end, of all flows that it received.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arrived {
    /// Units.
    pub units: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of those the ones that are in the rate, and how long they took to come.
    pub timed_units: u64,
    /// Their bytes.
    pub timed_bytes: u64,
    /// From the first unit to the last that was timed.
    pub seconds: f64,
    /// The mean over the flows, in µs.
    pub jitter_us: f64,
    /// Units that came after one that was sent later.
    pub reordered: u64,
    /// Units that nobody sent.
    pub foreign: u64,
    /// Packets that came to the graphs, per second; none when no module counts them.
    pub packets_per_s: Option<f64>,
}

/// What an end says of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Units that its application handed over.
    pub handed: u64,
    /// What it received.
    pub arrived: Arrived,
    /// Processor time of the process.
    pub cpu_seconds: f64,
    /// Turns of its loop.
    pub turns: u64,
    /// Calls that sent something, by how many datagrams each took.
    pub sends: SegmentCounts,
}

impl Report {
    /// What an end was.
    pub fn of(end: &End) -> Self {
        Self {
            handed: end.sent.iter().map(|Sent { units }| units).sum(),
            arrived: Arrived::of(end),
            cpu_seconds: end.cpu_seconds,
            turns: end.turns,
            sends: end.sends,
        }
    }

    /// As it is sent.
    pub fn to_json(self) -> Value {
        let it = self.arrived;
        json!({
            "handed": self.handed, "cpu_seconds": self.cpu_seconds, "turns": self.turns,
            "units": it.units, "bytes": it.bytes, "timed_units": it.timed_units,
            "timed_bytes": it.timed_bytes, "seconds": it.seconds, "jitter_us": it.jitter_us,
            "reordered": it.reordered, "foreign": it.foreign, "packets_per_s": it.packets_per_s,
            "sends": self.sends.0,
        })
    }

    /// What the far end has sent; nothing when something is missing.
    pub fn from_json(value: &Value) -> Option<Self> {
        let count = |key: &str| value.get(key)?.as_u64();
        // A figure of a peer is a figure, whatever it says.
        let figure = |key: &str| value.get(key)?.as_f64().filter(|it| it.is_finite() && *it >= 0.0);
        let arrived = Arrived {
            units: count("units")?,
            bytes: count("bytes")?,
            timed_units: count("timed_units")?,
            timed_bytes: count("timed_bytes")?,
            seconds: figure("seconds")?,
            jitter_us: figure("jitter_us")?,
            reordered: count("reordered")?,
            foreign: count("foreign")?,
            packets_per_s: figure("packets_per_s"),
        };
        let (cpu_seconds, turns) = (figure("cpu_seconds")?, count("turns")?);
        let mut sends = SegmentCounts::default();
        let calls = value.get("sends")?.as_array().filter(|it| it.len() == sends.0.len())?;
        for (count, calls) in sends.0.iter_mut().zip(calls) {
            // What one count may be at most, so that a sum of them is a number too.
            *count = calls.as_u64().filter(|it| *it <= u64::MAX >> 8)?;
        }
        Some(Self { handed: count("handed")?, arrived, cpu_seconds, turns, sends })
    }
}

impl Arrived {
    fn of(end: &End) -> Self {
        let got = &end.got;
        let sum = |pick: fn(&Got) -> u64| got.iter().map(pick).sum();
        let first = got.iter().filter_map(|it| it.first).min();
        let last = got.iter().filter_map(|it| it.last).max();
        let span = first.zip(last).map(|(first, last)| last.since(first).as_secs_f64());
        let jitter: f64 = got.iter().map(|it| it.jitter_ns).sum();
        let packets = end.packets.filter(|it| it.seconds > 0.0);
        Self {
            units: sum(|it| it.units),
            bytes: sum(|it| it.bytes),
            timed_units: sum(|it| it.timed_units),
            timed_bytes: sum(|it| it.timed_bytes),
            seconds: span.unwrap_or(0.0),
            jitter_us: jitter / 1e3 / got.len().max(1) as f64,
            reordered: sum(|it| it.reordered),
            foreign: sum(|it| it.foreign),
            packets_per_s: packets.map(|it| it.count as f64 / it.seconds),
        }
    }

    /// What came to several: the time is the longest.
    fn sum(all: &[Self]) -> Self {
        let sum = |pick: fn(&Self) -> u64| all.iter().map(pick).sum();
        let packets: Option<f64> = all.iter().map(|it| it.packets_per_s).sum();
        let jitter: f64 = all.iter().map(|it| it.jitter_us).sum();
        Self {
            units: sum(|it| it.units),
            bytes: sum(|it| it.bytes),
            timed_units: sum(|it| it.timed_units),
            timed_bytes: sum(|it| it.timed_bytes),
            seconds: all.iter().map(|it| it.seconds).fold(0.0, f64::max),
            jitter_us: jitter / all.len().max(1) as f64,
            reordered: sum(|it| it.reordered),
            foreign: sum(|it| it.foreign),
            packets_per_s: packets,
        }
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Goodput.
    pub fn gbit_per_s(&self) -> f64 {
        self.per_second(self.timed_bytes) * 8e-9
    }

    /// Units in a second.
    pub fn units_per_s(&self) -> f64 {
        self.per_second(self.timed_units)
    }
}

/// One way of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// `up` or `down`.
    pub name: &'static str,
    /// What the receiver counted.
    pub arrived: Arrived,
    /// What became of the units.
    pub sums: Sums,
    /// Calls of its sender that sent something, by how many datagrams each took.
    pub sends: SegmentCounts,
}

/// How much went through.
#[derive(Clone, Debug, PartialEq)]
pub struct Bulk {
    /// Each way that was used.
    pub ways: Vec<Way>,
    /// Processor seconds for each GB delivered, both ways together.
    pub near_cpu: f64,
    /// The same at the far end.
    pub far_cpu: f64,
    /// Units for each turn of the loop, at both ends.
    pub near_units_per_turn: f64,
    /// The same at the far end.
    pub far_units_per_turn: f64,
}

impl Bulk {
    /// The figures of the near end and the far end at this place; `to` says to whom, in errors.
    ///
    /// # Errors
    /// Nothing arrived, or the sums do not close.
    pub fn of(end: &End, at: usize, far: &Report, to: &str) -> Result<Self, Failure> {
        let near = Report::of(end);
        let account = end.accounts.get(at);
        let sums = |direction| account.map(|it| Sums::of(it, direction)).unwrap_or_default();
        let mut ways = Vec::new();
        if !end.sent.is_empty() {
            let sums = sums(Direction::Outgoing);
            ways.push(Way { name: "up", arrived: far.arrived, sums, sends: near.sends });
        }
        if !end.got.is_empty() {
            let sums = sums(Direction::Incoming);
            ways.push(Way { name: "down", arrived: near.arrived, sums, sends: far.sends });
        }
        ways.iter().try_for_each(|way| check(way, to))?;
        Ok(Self::new(&near, far, ways))
    }

    /// What went to several in all; they have sent nothing.
    pub fn sum(end: &End, fars: &[Report], all: &[Self]) -> Self {
        let near = Report::of(end);
        let ways: Vec<Way> = all.iter().flat_map(|bulk| bulk.ways.iter().copied()).collect();
        let arrived: Vec<Arrived> = ways.iter().map(|way| way.arrived).collect();
        let arrived = Arrived::sum(&arrived);
        let sums = ways.iter().map(|way| way.sums).fold(Sums::default(), Sums::plus);
        let far = Report {
            cpu_seconds: fars.iter().map(|far| far.cpu_seconds).sum(),
            turns: fars.iter().map(|far| far.turns).sum(),
            ..Report::default()
        };
        let way = Way { name: "up", arrived, sums, sends: near.sends };
        Self::new(&near, &far, vec![way])
    }

    fn new(near: &Report, far: &Report, ways: Vec<Way>) -> Self {
        let units = ways.iter().map(|way| way.arrived.units).sum::<u64>() as f64;
        let gb = ways.iter().map(|way| way.arrived.bytes).sum::<u64>() as f64 * 1e-9;
        Self {
            near_cpu: near.cpu_seconds / gb,
            far_cpu: far.cpu_seconds / gb,
            near_units_per_turn: units / near.turns.max(1) as f64,
            far_units_per_turn: units / far.turns.max(1) as f64,
            ways,
        }
    }
}

fn check(way: &Way, to: &str) -> Result<(), Failure> {
    let Way { name, arrived, sums, .. } = way;
    if arrived.timed_bytes == 0 || arrived.seconds <= 0.0 {
        let text = format!(
            "{} of {} units arrived, and a rate needs two: raise --bytes or --duration, or lower \
             --rate",
            arrived.units, sums.sent
        );
        return Err(Failure::run_time(&format!("bench net {name}{to}"), text));
    }
    if !sums.closes() || sums.delivered != arrived.units || arrived.foreign > 0 {
        let text = format!(
            "{}; the receiver counted {} units and {} foreign ones",
            in_words(sums),
            arrived.units,
            arrived.foreign
        );
        return Err(Failure::new(Exit::Mismatch, &format!("bench net {name}{to}"), text));
    }
    Ok(())
}

/// How long a small unit takes there and back.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// Units that came back, without those that warm up.
    pub count: u64,
    /// Those that did not.
    pub lost: u64,
    /// The shortest, in µs.
    pub min_us: f64,
    /// Half came back within this time.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1,000.
    pub p999_us: f64,
    /// All.
    pub max_us: f64,
    /// Processor time of both ends, for each unit there and back.
    pub cpu_us: f64,
    /// Those that took longer than 5 ms.
    pub over_5_ms: u64,
    /// One way, which is half of each, in µs.
    pub one_way_us: Histogram,
}

impl Delay {
    /// The figures of both ends.
    ///
    /// # Errors
    /// Nothing came back.
    pub fn of(end: &End, far: &Report) -> Result<Self, Failure> {
        let echoes = end.echoes.clone().unwrap_or_default();
        let Echoes { rtt_ns, lost } = &echoes;
        if rtt_ns.is_empty() {
            let text = format!(
                "no unit came back in time ({lost} were lost): raise --duration; `dacapo ls HOST` \
                 shows whether the host answers"
            );
            return Err(Failure::run_time("bench net latency", text));
        }
        let round_trips = far.handed.max(1) as f64;
        Ok(Self {
            count: rtt_ns.len() as u64,
            lost: *lost,
            min_us: echoes.permille_us(0),
            p50_us: echoes.permille_us(500),
            p99_us: echoes.permille_us(990),
            p999_us: echoes.permille_us(999),
            max_us: echoes.permille_us(1_000),
            cpu_us: (end.cpu_seconds + far.cpu_seconds) * 1e6 / round_trips,
            over_5_ms: rtt_ns.iter().filter(|ns| **ns > 5_000_000).count() as u64,
            one_way_us: Histogram::of(
                &rtt_ns.iter().map(|ns| *ns as f64 / 2_000.0).collect::<Vec<_>>(),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo::Time;

    fn end() -> End {
        let got = |from: u64, to: u64| {
            let mut got = Got::default();
            (got.units, got.bytes) = (11, 11_000);
            (got.timed_units, got.timed_bytes) = (10, 10_000);
            got.first = Some(Time::from_millis(from));
            got.last = Some(Time::from_millis(to));
            got.jitter_ns = 2_000.0;
            got
        };
        let sends = SegmentCounts([1, 0, 0, 0, 0, 7, 0]);
        End { got: vec![got(0, 900), got(100, 1_000)], cpu_seconds: 0.5, sends, ..End::default() }
    }

    #[test]
    fn the_rate_of_several_flows_is_over_the_time_of_all() {
        let arrived = Report::of(&end()).arrived;
        assert_eq!((arrived.units, arrived.timed_bytes, arrived.seconds), (22, 20_000, 1.0));
        assert!((arrived.gbit_per_s() - 160e-6).abs() < 1e-12);
        assert_eq!((arrived.units_per_s(), arrived.jitter_us), (20.0, 2.0));
    }

    #[test]
    fn a_report_is_read_as_it_was_written_and_half_of_one_is_none() {
        let report = Report::of(&end());
        let json = report.to_json();
        assert_eq!(Report::from_json(&json), Some(report));
        for key in ["handed", "units", "seconds", "cpu_seconds"] {
            let mut half = json.clone();
            half[key] = json!("x");
            assert_eq!(Report::from_json(&half), None, "{key}");
        }
        let too_many = json!(SegmentCounts([u64::MAX; 7]).0);
        let wrongs = [("seconds", json!(-1.0)), ("sends", json!([1])), ("sends", too_many)];
        for (key, value) in wrongs {
            let mut wrong = json.clone();
            wrong[key] = value;
            assert_eq!(Report::from_json(&wrong), None, "{key}");
        }
    }

    #[test]
    fn what_went_to_several_is_the_sum_over_the_longest_time() {
        let near = End { got: Vec::new(), sent: vec![Sent { units: 30 }], ..end() };
        let arrived = Report::of(&end()).arrived;
        let bulk = |seconds, lost| {
            let arrived = Arrived { seconds, ..arrived };
            let sums = Sums { sent: 22 + lost, delivered: 22, lost, ..Sums::default() };
            let way = Way { name: "up", arrived, sums, sends: SegmentCounts::default() };
            Bulk::new(&Report::of(&near), &Report::of(&end()), vec![way])
        };
        let (each, fars) = ([bulk(1.0, 8), bulk(4.0, 0)], [Report::of(&end()); 2]);
        let all = Bulk::sum(&near, &fars, &each);
        let [way] = all.ways.as_slice() else { panic!("{all:?}") };
        assert_eq!((way.arrived.units, way.arrived.seconds), (44, 4.0));
        assert_eq!((way.sums.sent, way.sums.lost, way.sums.closes()), (52, 8, true));
        assert!((way.arrived.gbit_per_s() - 80e-6).abs() < 1e-12);
        // What the near end took is for both, what the far ends took is of each.
        assert!((all.near_cpu - each[0].near_cpu / 2.0).abs() < 1e-9, "{all:?}");
        assert!((all.far_cpu - each[0].far_cpu).abs() < 1e-9, "{all:?}");
        assert_eq!(way.sends, near.sends);
    }

    #[test]
    fn sums_that_do_not_close_and_counts_that_differ_are_no_figures() {
        let arrived = Report::of(&end()).arrived;
        let sums = Sums { sent: 30, delivered: 22, lost: 8, ..Sums::default() };
        let way = Way { name: "up", arrived, sums, sends: SegmentCounts::default() };
        assert!(check(&way, "").is_ok());
        assert!((sums.loss() - 8.0 / 30.0).abs() < 1e-12);
        let with = |change: fn(&mut Way)| {
            let mut way = way;
            change(&mut way);
            check(&way, "").unwrap_err().exit
        };
        assert_eq!(with(|way| way.sums.lost = 7), Exit::Mismatch);
        assert_eq!(with(|way| way.sums.is_open = true), Exit::Mismatch);
        assert_eq!(with(|way| way.arrived.units = 21), Exit::Mismatch);
        assert_eq!(with(|way| way.arrived.foreign = 1), Exit::Mismatch);
        assert_eq!(with(|way| way.arrived = Arrived::default()), Exit::Failure);
    }
}
