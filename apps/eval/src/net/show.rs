//! What `bench net` prints for people, and medians over the rounds.

mod json;

use super::ask::Ask;
use super::figures::{Bulk, Delay, Way};
use super::sums::in_words;
use crate::cli::{BenchNetArgs, NetWait, net_word};
use crate::output::{Cell, Table, line};
use crate::run::machine;
use crate::stats::median_or_0;
use dacapo::host::HostConfig;
use dacapo::text::{format_rate, format_size};
use dacapo::{FlowInfo, SegmentCounts};
use dacapo_base::Address;

/// What was measured in a round.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// How much went through, to all.
    pub bulk: Option<Bulk>,
    /// The same to each, of what is sent once for several.
    pub receivers: Vec<Bulk>,
    /// How long a small unit took.
    pub delay: Option<Delay>,
}

/// Everything that was measured, and where.
pub struct Measured<'a> {
    /// What was asked for.
    pub args: &'a BenchNetArgs,
    /// What was run.
    pub ask: &'a Ask,
    /// What this end is.
    pub config: HostConfig,
    /// The far ends: as they were named, and their addresses.
    pub far_ends: Vec<(String, Address)>,
    /// A flow as it was agreed.
    pub flow: Option<FlowInfo>,
    /// The rounds.
    pub rounds: Vec<Round>,
}

/// Whose figures: those of one receiver of several, by its place, or of all.
type Whose = Option<usize>;

fn of(round: &Round, whose: Whose) -> Option<&Bulk> {
    whose.map_or(round.bulk.as_ref(), |at| round.receivers.get(at))
}

impl Measured<'_> {
    /// Everybody who has figures: each of several, and all.
    fn everybody(&self) -> impl Iterator<Item = Whose> {
        let count = if self.are_several() { self.far_ends.len() } else { 0 };
        (0..count).map(Some).chain([None])
    }

    fn are_several(&self) -> bool {
        self.far_ends.len() > 1
    }

    /// What a way is called in a table.
    fn called(&self, way: &str, whose: Whose) -> String {
        match whose.and_then(|at| self.far_ends.get(at)) {
            Some((host, _)) => format!("{way} to {host}"),
            None if self.are_several() => format!("{way} to all"),
            None => way.to_owned(),
        }
    }

    fn median(&self, pick: impl Fn(&Round) -> Option<f64>) -> f64 {
        median_or_0(&self.rounds.iter().filter_map(pick).collect::<Vec<f64>>())
    }

    fn way(&self, whose: Whose, at: usize, pick: impl Fn(&Way) -> f64) -> f64 {
        self.median(|round| of(round, whose)?.ways.get(at).map(&pick))
    }

    /// Half of all calls to send, of all rounds together, took at least so many datagrams.
    fn calls_at_least(&self, at: usize) -> Option<u64> {
        let mut all = SegmentCounts::default();
        let ways = self.rounds.iter().filter_map(|round| round.bulk.as_ref()?.ways.get(at));
        ways.for_each(|way| all.add(&way.sends));
        all.median_at_least()
    }

    fn bulk(&self, whose: Whose, pick: impl Fn(&Bulk) -> f64) -> f64 {
        self.median(|round| of(round, whose).map(&pick))
    }

    fn delay(&self, pick: impl Fn(&Delay) -> f64) -> f64 {
        self.median(|round| round.delay.as_ref().map(&pick))
    }

    /// The ways that were used.
    fn ways(&self) -> Vec<&'static str> {
        let bulk = self.rounds.first().and_then(|round| round.bulk.as_ref());
        bulk.map(|bulk| bulk.ways.iter().map(|way| way.name).collect()).unwrap_or_default()
    }

    /// Prints everything for people.
    pub fn print(&self) {
        let is_here = self.args.are_far_ends_here();
        let far = if is_here { ", a second process on this host" } else { "" };
        for (_, remote) in &self.far_ends {
            line(format_args!("far end   {remote}{far}"));
        }
        line(format_args!("protocol  {}", self.protocol()));
        if self.rounds.iter().any(|round| round.bulk.is_some()) {
            line("");
            self.print_bulk();
        }
        if self.rounds.iter().any(|round| round.delay.is_some()) {
            line("");
            self.print_delay();
        }
        line(format_args!("\n{}", self.notes()));
    }

    fn graph(&self) -> String {
        let graph = self.flow.as_ref().map(|flow| flow.graph.clone()).unwrap_or_default();
        graph.replace(" ! ", ", ")
    }

    fn protocol(&self) -> String {
        let graph = match self.graph() {
            none if none.is_empty() => "no modules".to_owned(),
            graph => graph,
        };
        let transport = net_word(self.ask.transport);
        let bound = match (self.ask.bound_bps(), self.ask.rate_bps) {
            (Some(bound), Some(_)) => format!("at most {} each", format_rate(bound)),
            (Some(bound), None) => {
                format!("at most {} each, as no --rate was given", format_rate(bound))
            }
            (None, _) => "as fast as the transport takes it".to_owned(),
        };
        let units = format_size(self.ask.unit_len.into());
        let without = match (self.config.sockets.gso, self.config.sockets.gro) {
            (true, true) => "",
            (false, true) => " without GSO",
            (true, false) => " without GRO",
            (false, false) => " without GSO and GRO",
        };
        format!("{graph} over {transport}{without}; units of {units}; {}; {bound}", self.flows())
    }

    fn flows(&self) -> String {
        let way = match net_word(self.ask.direction).as_str() {
            "both" => "each way, at the same time".to_owned(),
            one if self.are_several() => {
                format!("{one}, sent once for {}", self.far_ends.len())
            }
            one => one.to_owned(),
        };
        match self.ask.flows {
            1 => format!("1 flow {way}"),
            flows => format!("{flows} flows {way}"),
        }
    }

    fn print_bulk(&self) {
        let mut table = Table::new(&[
            "round",
            "way",
            "Gbit/s",
            "units/s",
            "packets/s",
            "lost",
            "jitter µs",
            "near CPU s/GB",
            "far",
            "both",
        ]);
        for (at, round) in self.rounds.iter().enumerate() {
            for (whose, bulk) in self.figures(round) {
                for way in &bulk.ways {
                    let called = self.called(way.name, whose);
                    table.row(row(&(at + 1).to_string(), &called, way, bulk));
                }
            }
        }
        for whose in self.everybody().filter(|_| self.rounds.len() > 1) {
            let ways = self.ways();
            ways.iter().enumerate().for_each(|(at, it)| table.row(self.medians(whose, at, it)));
        }
        table.print();
        line("");
        for (at, round) in self.rounds.iter().enumerate() {
            for (whose, bulk) in self.figures(round) {
                for way in &bulk.ways {
                    let called = self.called(way.name, whose);
                    line(format_args!("{} {called}: {}", at + 1, in_words(&way.sums)));
                }
            }
            for way in round.bulk.iter().flat_map(|bulk| &bulk.ways) {
                line(format_args!("{} {}: {}", at + 1, way.name, calls_in_words(&way.sends)));
            }
        }
    }

    /// The figures of a round: of each, and of all.
    fn figures<'a>(&'a self, round: &'a Round) -> impl Iterator<Item = (Whose, &'a Bulk)> {
        self.everybody().filter_map(|whose| Some((whose, of(round, whose)?)))
    }

    fn medians(&self, whose: Whose, at: usize, name: &str) -> Vec<Cell> {
        let near = self.bulk(whose, |it| it.near_cpu);
        let far = self.bulk(whose, |it| it.far_cpu);
        vec![
            "median".into(),
            self.called(name, whose).into(),
            format!("{:.3}", self.way(whose, at, |it| it.arrived.gbit_per_s())).into(),
            format!("{:.0}", self.way(whose, at, |it| it.arrived.units_per_s())).into(),
            packets(self.packets(whose, at)).into(),
            format!("{:.3} %", 100.0 * self.way(whose, at, |it| it.sums.loss())).into(),
            format!("{:.1}", self.way(whose, at, |it| it.arrived.jitter_us)).into(),
            format!("{near:.3}").into(),
            format!("{far:.3}").into(),
            format!("{:.3}", self.bulk(whose, |it| it.near_cpu + it.far_cpu)).into(),
        ]
    }

    fn packets(&self, whose: Whose, at: usize) -> Option<f64> {
        let counted = |round: &Round| {
            of(round, whose).and_then(|bulk| bulk.ways.get(at)?.arrived.packets_per_s)
        };
        let is_counted = self.rounds.iter().any(|round| counted(round).is_some());
        is_counted.then(|| self.median(counted))
    }

    fn print_delay(&self) {
        let mut table = Table::new(&[
            "round",
            "there and back µs: p50",
            "p99",
            "p99.9",
            "max",
            "min",
            "n",
            "lost",
            "CPU µs, both ends",
        ]);
        for (at, round) in self.rounds.iter().enumerate() {
            let Some(it) = &round.delay else { continue };
            let figures = [it.p50_us, it.p99_us, it.p999_us, it.max_us, it.min_us];
            let mut cells: Vec<Cell> = vec![(at + 1).to_string().into()];
            cells.extend(figures.map(|us| format!("{us:.1}").into()));
            cells.extend([it.count.into(), it.lost.into(), format!("{:.1}", it.cpu_us).into()]);
            table.row(cells);
        }
        if self.rounds.len() > 1 {
            let picks: [fn(&Delay) -> f64; 5] =
                [|it| it.p50_us, |it| it.p99_us, |it| it.p999_us, |it| it.max_us, |it| it.min_us];
            let mut cells: Vec<Cell> = vec!["median".into()];
            cells.extend(picks.map(|pick| format!("{:.1}", self.delay(pick)).into()));
            let counts: [fn(&Delay) -> f64; 2] = [|it| it.count as f64, |it| it.lost as f64];
            cells.extend(counts.map(|pick| format!("{:.0}", self.delay(pick)).into()));
            cells.push(format!("{:.1}", self.delay(|it| it.cpu_us)).into());
            table.row(cells);
        }
        table.print();
    }

    fn notes(&self) -> String {
        let wait = match self.ask.wait {
            NetWait::Block => "Both ends block: they sleep until something comes.",
            NetWait::Adaptive => {
                "Both ends adapt: they sleep until something comes, and watch for 50 µs at most \
                 before, where the last wait was short and a processor is free."
            }
            NetWait::Spin => "Both ends spin: who receives looks again and again.",
        };
        let mut notes = vec![wait.to_owned()];
        if self.rounds.iter().any(|round| round.delay.is_some()) {
            notes.push(format!("Units of {} bytes go there and back.", super::ask::ECHO_LEN));
        }
        if self.rounds.iter().any(|round| round.bulk.is_some()) {
            notes.push(
                "Goodput, packets and\njitter (RFC 3550) are the receiver's; the processor time is \
                 that of each process, user and kernel,\nfor each GB of payload delivered."
                    .to_owned(),
            );
        }
        if self.are_several() {
            notes.push(
                "To each, the near end's\nprocessor time is reckoned whole; to all, for what all \
                 of them got, over the longest time."
                    .to_owned(),
            );
        }
        notes.extend(load_average().map(|load| {
            format!("The load of this host was {load:.2} on {} processors.", processors())
        }));
        notes.join(" ")
    }
}

fn row(name: &str, called: &str, way: &Way, bulk: &Bulk) -> Vec<Cell> {
    let arrived = &way.arrived;
    vec![
        name.into(),
        called.into(),
        format!("{:.3}", arrived.gbit_per_s()).into(),
        format!("{:.0}", arrived.units_per_s()).into(),
        packets(arrived.packets_per_s).into(),
        format!("{:.3} %", 100.0 * way.sums.loss()).into(),
        format!("{:.1}", arrived.jitter_us).into(),
        format!("{:.3}", bulk.near_cpu).into(),
        format!("{:.3}", bulk.far_cpu).into(),
        format!("{:.3}", bulk.near_cpu + bulk.far_cpu).into(),
    ]
}

fn packets(per_s: Option<f64>) -> String {
    per_s.map_or_else(|| "not counted".to_owned(), |per_s| format!("{per_s:.0}"))
}

/// How many datagrams the calls of a sender took, in words.
fn calls_in_words(sends: &SegmentCounts) -> String {
    let calls = sends.calls();
    match sends.median_at_least() {
        None => "no call of the system sent anything".to_owned(),
        Some(least) => {
            format!("the sender made {calls} calls to send; half took {least} datagrams or more")
        }
    }
}

/// How many wanted to run during the last minute.
fn load_average() -> Option<f64> {
    machine::last_minute(&machine::load())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
