//! `dacapo bench link`: what the link emulator carries and what time it costs, beside the same
//! sockets without it.
//!
//! ```text
//!   round   plain, relay, tunnel: 100 and 1,400 bytes, one and 32 in a call; probes    round …
//!           medians over the rounds
//! ```

mod measure;

use crate::cli::BenchLinkArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Cell, Table, line};
use crate::progress::Progress;
use crate::stats::median_or_0;
use dacapo::emulator::LinkConfig;
use dacapo_sys::process;
use measure::{Between, Rate, Way};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Bytes of a datagram, and datagrams in a call.
const LOADS: [(u16, u16); 4] = [(100, 1), (100, 32), (1_400, 1), (1_400, 32)];

/// Probes of a measurement of delays.
const PROBES: u32 = 500;

/// The delay at which the timers are measured.
const DELAY: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(args: &BenchLinkArgs) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| Failure::run_time("bench link", error);
    let has_tunnel = process::uid() == 0 && Path::new(dacapo_sys::tun::PATH).exists();
    let all = [Between::Nothing, Between::Relay, Between::Tunnel];
    let ways = if has_tunnel { &all[..] } else { &all[..2] };
    let mut progress = Progress::new(args.json);
    let mut rounds = Vec::new();
    for number in 1..=args.rounds {
        let round = Round::measure(ways, args.seconds, &mut |what| {
            if progress.is_due() {
                progress.show(&format!("round {number} of {}: {what}", args.rounds));
            }
        });
        rounds.push(round.map_err(failed)?);
    }
    progress.clear();
    let all = Medians::of(ways, &rounds);
    match args.json {
        true => output::json(&all.to_json(args)),
        false => all.print(has_tunnel),
    }
    Ok(Exit::Success)
}

/// Delays of probes, median and 99th of 100, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    p50_us: f64,
    p99_us: f64,
}

impl Delays {
    fn of(sorted_ns: &[u64]) -> Self {
        let at = |percent: usize| sorted_ns.get(sorted_ns.len() * percent / 100).copied();
        let us = |percent| at(percent).map_or(f64::NAN, |ns| ns as f64 / 1e3);
        Self { p50_us: us(50), p99_us: us(99) }
    }
}

/// One way in a round.
struct Run {
    /// By load.
    rates: Vec<Rate>,
    /// With no delay.
    delays: Delays,
    /// How much longer than the delay it took, end to end; of an emulator only.
    error: Option<Delays>,
    /// How much later than due the emulator sent, by its own record.
    lateness: Option<Delays>,
}

/// All ways, one after the other.
struct Round(Vec<Run>);

impl Round {
    fn measure(
        ways: &[Between],
        span: Duration,
        tell: &mut dyn FnMut(&str),
    ) -> std::io::Result<Self> {
        let runs = ways.iter().map(|&between| {
            let mut way = Way::open(between, &LinkConfig::default())?;
            tell(&format!("{}, delay", between.name()));
            let delays = Delays::of(&measure::delays(&mut way, PROBES)?);
            let mut rates = Vec::new();
            for (len, train) in LOADS {
                tell(&format!("{}, {len} bytes, {train} in a call", between.name()));
                rates.push(measure::rate(&mut way, len, train, span)?);
            }
            drop(way);
            let (error, lateness) = match between {
                Between::Nothing => (None, None),
                _ => timing(between)?,
            };
            Ok(Run { rates, delays, error, lateness })
        });
        Ok(Self(runs.collect::<std::io::Result<_>>()?))
    }
}

/// How exact a delay is: end to end, and at the emulator.
fn timing(between: Between) -> std::io::Result<(Option<Delays>, Option<Delays>)> {
    let link = LinkConfig { delay: DELAY, ..LinkConfig::default() };
    let mut way = Way::open(between, &link)?;
    let delay_ns = u64::try_from(DELAY.as_nanos()).unwrap_or(0);
    let late = measure::delays(&mut way, PROBES)?;
    let late: Vec<u64> = late.iter().map(|ns| ns.saturating_sub(delay_ns)).collect();
    let us = |delay: Duration| delay.as_nanos() as f64 / 1e3;
    let own = way.lateness().map(|(p50, p99)| Delays { p50_us: us(p50), p99_us: us(p99) });
    Ok((Some(Delays::of(&late)), own))
}

/// The medians of one way.
struct Row {
    between: Between,
    rates: Vec<Rate>,
    delays: Delays,
    error: Option<Delays>,
    lateness: Option<Delays>,
}

/// The medians of all.
struct Medians(Vec<Row>);

impl Medians {
    fn of(ways: &[Between], rounds: &[Round]) -> Self {
        let rows = ways.iter().enumerate().map(|(at, &between)| {
            let runs: Vec<&Run> = rounds.iter().filter_map(|round| round.0.get(at)).collect();
            let of = |pick: &dyn Fn(&Run) -> Option<f64>| {
                median_or_0(&runs.iter().filter_map(|run| pick(run)).collect::<Vec<f64>>())
            };
            let rates = (0..LOADS.len()).map(|load| Rate {
                per_s: of(&|run| Some(run.rates.get(load)?.per_s)),
                cpu_us: of(&|run| Some(run.rates.get(load)?.cpu_us)),
                lost: runs.iter().filter_map(|run| Some(run.rates.get(load)?.lost)).sum(),
            });
            let delays = |pick: fn(&Run) -> Option<Delays>| {
                let is_there = runs.iter().any(|run| pick(run).is_some());
                is_there.then(|| Delays {
                    p50_us: of(&|run| Some(pick(run)?.p50_us)),
                    p99_us: of(&|run| Some(pick(run)?.p99_us)),
                })
            };
            Row {
                between,
                rates: rates.collect(),
                delays: delays(|run| Some(run.delays)).unwrap_or_default(),
                error: delays(|run| run.error),
                lateness: delays(|run| run.lateness),
            }
        });
        Self(rows.collect())
    }

    /// The way without an emulator, to which the others are compared.
    fn plain(&self) -> Option<&Row> {
        self.0.iter().find(|row| row.between == Between::Nothing)
    }

    fn print(&self, has_tunnel: bool) {
        let mut table = Table::new(&[
            "bytes",
            "in a call",
            "way",
            "datagrams/s",
            "Mbit/s",
            "CPU µs each",
            "beside plain",
            "lost",
        ]);
        for (load, (len, train)) in LOADS.into_iter().enumerate() {
            for row in &self.0 {
                let Some(rate) = row.rates.get(load) else { continue };
                let plain = self.plain().and_then(|plain| plain.rates.get(load));
                let share = plain.map_or(1.0, |plain| rate.per_s / plain.per_s.max(1e-9));
                table.row(vec![
                    len.into(),
                    train.into(),
                    row.between.name().into(),
                    format!("{:.0}", rate.per_s).into(),
                    format!("{:.0}", mbit_per_s(rate, len)).into(),
                    format!("{:.2}", rate.cpu_us).into(),
                    format!("{share:.2}").into(),
                    rate.lost.into(),
                ]);
            }
        }
        table.print();
        line("");
        self.print_delays();
        line("\nCPU: sender, emulator and receiver together, user and kernel.");
        if !has_tunnel {
            line("The tunnel is left out: it needs root and /dev/net/tun.");
        }
    }

    fn print_delays(&self) {
        let heading = ["way", "delay µs p50", "p99", "added p50", "p99"];
        let late = ["at 20 ms: late µs p50", "p99", "of that at the timer p50", "p99"];
        let mut table = Table::new(&[&heading[..], &late[..]].concat());
        for row in &self.0 {
            let pair = |delays: Option<Delays>| -> [Cell; 2] {
                let text = |us: f64| Cell::from(format!("{us:.0}"));
                delays.map_or(["-".into(), "-".into()], |it| [text(it.p50_us), text(it.p99_us)])
            };
            let mut cells = vec![Cell::from(row.between.name())];
            for delays in [Some(row.delays), self.added(row), row.error, row.lateness] {
                cells.extend(pair(delays));
            }
            table.row(cells);
        }
        table.print();
    }

    /// What an emulator without a delay adds to that of loopback.
    fn added(&self, row: &Row) -> Option<Delays> {
        let plain = self.plain().filter(|_| row.between != Between::Nothing)?;
        Some(Delays {
            p50_us: row.delays.p50_us - plain.delays.p50_us,
            p99_us: row.delays.p99_us - plain.delays.p99_us,
        })
    }

    fn to_json(&self, args: &BenchLinkArgs) -> Value {
        let delays = |delays: Option<Delays>| {
            delays.map(|it| json!({ "p50_us": it.p50_us, "p99_us": it.p99_us }))
        };
        let way = |row: &Row| {
            let rates = LOADS.iter().zip(&row.rates).map(|((len, train), rate)| {
                json!({
                    "bytes": len,
                    "in_a_call": train,
                    "datagrams_per_s": rate.per_s,
                    "mbit_per_s": mbit_per_s(rate, *len),
                    "cpu_us": rate.cpu_us,
                    "lost": rate.lost,
                })
            });
            json!({
                "way": row.between.name(),
                "rates": rates.collect::<Vec<Value>>(),
                "delay": delays(Some(row.delays)),
                "added_delay": delays(self.added(row)),
                "late_at_20ms": delays(row.error),
                "late_at_20ms_at_the_timer": delays(row.lateness),
            })
        };
        json!({
            "rounds": args.rounds,
            "seconds": args.seconds.as_secs_f64(),
            "ways": self.0.iter().map(way).collect::<Vec<Value>>(),
        })
    }
}

fn mbit_per_s(rate: &Rate, len: u16) -> f64 {
    rate.per_s * f64::from(len) * 8e-6
}
