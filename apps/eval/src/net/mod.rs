//! `dacapo bench net`: what the network and this program carry, between two hosts or on this one.
//!
//! ```text
//!   near (`bench net HOST`)                     far (`bench net --listen`, or a process of ours)
//!     ask ---- control session, "bench-net" ----> publish a session under a fresh name
//!     join, run <== units of the run, counted where they arrive ==> run
//!     <---- what the far end counted ------------
//! ```
//!
//! Of what is sent once for several far ends the near end publishes the session, and each far end
//! is asked to join it (`near`, `stage`).

mod ask;
mod asked;
mod echo;
mod far;
mod figures;
mod flow;
mod near;
mod run;
mod session;
mod show;
mod stage;
mod sums;

use super::child::Child;
use crate::app::{config_from_env, interrupted};
use crate::cli::{BenchNetArgs, NetWhat, or_usage};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use ask::{Ask, Run};
use dacapo::Plan;
use dacapo::Random;
use dacapo::host::HostConfig;
use dacapo::plan::Assumptions;
use dacapo::spec::Property;
use dacapo_sys::signal::{Signal, Signals};
use figures::{Bulk, Delay, Report};
use flow::Pulse;
use near::{Near, Ran};
use session::Audience;
pub use session::lossless_flow;
use show::{Measured, Round};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The longest measurement of delays when more is measured besides.
const ECHO_MAX: Duration = Duration::from_secs(2);

/// A far end on this host.
const FAR: [&str; 5] = ["net", "--listen", "127.0.0.1:0", "--until-eof", "--json"];

/// Runs the command.
pub fn run(args: &BenchNetArgs) -> Result<Exit, Failure> {
    or_usage(args.check().map_err(str::to_owned));
    if let Some(listen) = args.listen {
        return far::serve(args, listen.addr(dacapo::host::PORT));
    }
    let (ask, config) = (question(args)?, host_config(args)?);
    let mut progress = Progress::new(args.json);
    let children = start_far_ends(args)?;
    let here: Vec<String> = children.iter().map(Child::address).collect();
    let hosts = if here.is_empty() { &args.hosts } else { &here };
    let mut near = Near::connect(hosts, config, args.dial_wait)?;
    if args.transport.is_shared() {
        near.send_once(&ask, args.group)?;
    }
    // Until here a signal just ends the command.
    let signals = Signals::catch(&Signal::ALL);
    let signals = signals.map_err(|error| Failure::run_time("bench net: signals", error))?;
    let mut bench = Bench { args, ask, near, children, signals, progress: &mut progress };
    let measured = bench.measure();
    let Bench { ask, near, children, .. } = bench;
    let far_ends = near.far_ends();
    near.leave();
    drop(children);
    progress.clear();
    let (flow, rounds) = measured?;
    let measured = Measured { args, ask: &ask, config, far_ends, flow, rounds };
    match args.json {
        true => output::json(&measured.to_json()),
        false => measured.print(),
    }
    Ok(Exit::Success)
}

/// The far ends on this host, where no other was named.
fn start_far_ends(args: &BenchNetArgs) -> Result<Vec<Child>, Failure> {
    let count = if args.are_far_ends_here() { args.far_ends() } else { 0 };
    let words: Vec<&str> = FAR.into_iter().chain(args.without()).collect();
    (0..count).map(|_| Child::start("bench net", &words)).collect()
}

fn check_child(child: &mut Child) -> Result<(), Failure> {
    if child.is_running() {
        return Ok(());
    }
    let at = child.address();
    let text = format!("the far end at {at}, a process on this host, has ended before its time");
    Err(Failure::run_time("bench net", text))
}

/// Names of sessions, and groups, are drawn from it.
fn random() -> Result<Random, Failure> {
    let seed = dacapo_sys::entropy();
    seed.map(Random::from_seed).map_err(|error| Failure::run_time("bench net", error))
}

/// The name of a session that nobody can guess.
fn session_name(random: &mut Random) -> String {
    format!("net-{:016x}", random.next_u64())
}

/// What this end is: what the environment says, and the arguments.
fn host_config(args: &BenchNetArgs) -> Result<HostConfig, Failure> {
    let mut config = config_from_env()?;
    config.sockets.gso &= !args.no_gso;
    config.sockets.gro &= !args.no_gro;
    Ok(config)
}

/// What is asked for a measurement of throughput; a graph that cannot be is found here.
fn question(args: &BenchNetArgs) -> Result<Ask, Failure> {
    let wrong = |text: String| Failure::new(Exit::Invalid, "bench net --graph", text);
    let is_group = args.transport.has_group();
    // Which one does not matter yet: the one that is sent to is of the family of its source.
    let group = is_group.then_some(SocketAddr::from((Ipv4Addr::new(239, 255, 0, 1), 5_004)));
    let audience = Audience { participants: args.far_ends(), group };
    let ask = |graph: &str| {
        let ask = Ask {
            id: 0,
            run: Run::Bulk,
            transport: args.transport,
            graph: session::graph(graph)?,
            direction: args.direction,
            flows: args.flows,
            unit_len: args.unit_len,
            rate_bps: args.rate,
            duration: args.duration(),
            bytes: args.bytes,
            wait: args.wait,
            join: None,
        };
        let file = ask.session_file("net", &audience)?;
        let on_loopback = args.are_far_ends_here();
        let assumptions = Assumptions { on_loopback, ..Assumptions::default() };
        let plan = Plan::parse(&file, "graph", &assumptions);
        plan.map(|_| ask).map_err(|errors| session::problems(&errors))
    };
    // What cuts units, and with it what sorts what may overtake.
    let (cut, sort) = (by_function("segmentation"), by_function("ordering"));
    match &args.graph {
        Some(graph) => ask(graph),
        None if !args.transport.gives(Property::Order) => ask(&format!("{cut},{sort}")),
        None if !args.transport.gives(Property::NoLoss) => ask(cut),
        // What does not fit a record is cut.
        None => ask("").or_else(|_| ask(cut)),
    }
    .map_err(wrong)
}

/// The first module of a function.
fn by_function(function: &str) -> &'static str {
    let catalogue = dacapo::catalogue();
    let mut all = catalogue.entries().iter().map(|entry| entry.spec);
    all.find(|spec| spec.function == function).map_or("", |spec| spec.name)
}

/// A near end at work.
struct Bench<'a> {
    args: &'a BenchNetArgs,
    ask: Ask,
    near: Near,
    children: Vec<Child>,
    signals: Signals,
    progress: &'a mut Progress,
}

impl Bench<'_> {
    fn measure(&mut self) -> Result<(Option<dacapo::FlowInfo>, Vec<Round>), Failure> {
        let (mut flow, mut rounds) = (None, Vec::new());
        for number in 1..=self.args.rounds {
            let mut round = Round::default();
            if self.args.what != NetWhat::Latency {
                (round.bulk, round.receivers) = self.bulk(number, &mut flow)?;
            }
            if self.args.what != NetWhat::Bulk && !self.args.transport.is_shared() {
                round.delay = Some(self.delay(number, &mut flow)?);
            }
            rounds.push(round);
        }
        Ok((flow, rounds))
    }

    /// What went through in all, and to each of several.
    fn bulk(
        &mut self,
        number: u32,
        flow: &mut Option<dacapo::FlowInfo>,
    ) -> Result<(Option<Bulk>, Vec<Bulk>), Failure> {
        self.ask.id += 1;
        let ask = self.ask.clone();
        let Ran { end, reports, flows } = self.run(number, &ask)?;
        *flow = flows.into_iter().next();
        let is_shared = ask.transport.is_shared();
        let hosts = self.near.far_ends().into_iter().map(|(host, _)| host);
        let to = hosts.map(|host| if is_shared { format!(" to {host}") } else { String::new() });
        let each = reports.iter().zip(to).enumerate();
        let each = each.map(|(at, (far, to))| Bulk::of(&end, at, far, &to));
        let mut each = each.collect::<Result<Vec<Bulk>, Failure>>()?;
        match is_shared {
            true => Ok((Some(Bulk::sum(&end, &reports, &each)), each)),
            false => Ok((each.pop(), each)),
        }
    }

    fn delay(
        &mut self,
        number: u32,
        flow: &mut Option<dacapo::FlowInfo>,
    ) -> Result<Delay, Failure> {
        self.ask.id += 1;
        let most = if self.args.what == NetWhat::Latency { Duration::MAX } else { ECHO_MAX };
        let ask = Ask {
            run: Run::Echo,
            unit_len: ask::ECHO_LEN,
            flows: 1,
            duration: self.ask.duration.min(most),
            bytes: None,
            ..self.ask.clone()
        };
        let Ran { end, reports, flows } = self.run(number, &ask)?;
        flow.get_or_insert(
            flows
                .into_iter()
                .next()
                .ok_or_else(|| Failure::run_time("bench net latency", "a session without flows"))?,
        );
        Delay::of(&end, reports.first().unwrap_or(&Report::default()))
    }

    fn run(&mut self, number: u32, ask: &Ask) -> Result<Ran, Failure> {
        let Self { near, children, signals, progress, args, .. } = self;
        let (began, mut before) = (Instant::now(), (Instant::now(), 0));
        near.run(ask, |pulse| {
            if let Some(signal) = signals.poll() {
                return Err(interrupted(signal));
            }
            children.iter_mut().try_for_each(check_child)?;
            if progress.is_due() {
                let of = format!("round {number} of {}", args.rounds);
                let so_far = so_far((ask, args.far_ends()), pulse, began, &mut before);
                progress.show(&format!("{of}: {so_far}"));
            }
            Ok(())
        })
    }
}

/// How far a run is, in words; what went since the last look gives the rate.
fn so_far(
    (ask, far_ends): (&Ask, usize),
    pulse: &Pulse,
    began: Instant,
    before: &mut (Instant, u64),
) -> String {
    let (sent, got) = (pulse.sent.load(Ordering::Relaxed), pulse.got.load(Ordering::Relaxed));
    let time =
        format!("{:.0} s of {:.0} s", began.elapsed().as_secs_f64(), ask.duration.as_secs_f64());
    if ask.run == Run::Echo {
        return format!("{time}, {got} units were there and back");
    }
    let to = if far_ends > 1 { format!(" to each of {far_ends}") } else { String::new() };
    let (now, bytes) = (Instant::now(), sent.saturating_add(got));
    let seconds = now.duration_since(before.0).as_secs_f64().max(1e-9);
    let rate = bytes.saturating_sub(before.1) as f64 * 8.0 / seconds;
    *before = (now, bytes);
    format!("{time}, {:.3} Gbit/s{to}", rate * 1e-9)
}
