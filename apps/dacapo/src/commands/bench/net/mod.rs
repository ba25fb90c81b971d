//! `dacapo bench net`: what the network and this program carry, between two hosts or on this one.
//!
//! ```text
//!   near (`bench net HOST`)                     far (`bench net --listen`, or a process of ours)
//!     ask ---- control session, "bench-net" ----> publish a session under a fresh name
//!     join, run <== units of the run, counted where they arrive ==> run
//!     <---- what the far end counted ------------
//! ```
//!
//! What it is not: a measurement of less than the whole: units go through the public interface of
//! the library, from one application to the other.

mod ask;
mod echo;
mod far;
mod figures;
mod flow;
mod near;
mod run;
mod session;
mod show;

use super::child::Child;
use crate::cli::{BenchNetArgs, NetTransport, NetWhat};
use crate::edge::{config_from_env, interrupted};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use ask::{Ask, Run};
use dacapo::Plan;
use dacapo::host::HostConfig;
use dacapo::plan::Assumptions;
use dacapo_sys::signal::{Signal, Signals};
use figures::{Bulk, Delay};
use flow::Pulse;
use near::Near;
use show::{Measured, Round};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The longest measurement of delays when more is measured besides.
const ECHO_MAX: Duration = Duration::from_secs(2);

/// A far end on this host.
const FAR: [&str; 6] = ["bench", "net", "--listen", "127.0.0.1:0", "--until-eof", "--json"];

/// Runs the command.
pub fn run(args: &BenchNetArgs) -> Result<Exit, Failure> {
    if let Some(listen) = args.listen {
        return far::serve(args, listen.addr(dacapo::host::PORT));
    }
    let (ask, config) = (question(args)?, host_config(args)?);
    let mut progress = Progress::new(args.json);
    let far: Vec<&str> = FAR.into_iter().chain(args.without()).collect();
    let child = if args.host.is_none() { Some(Child::start("bench net", &far)?) } else { None };
    let host = match (&args.host, &child) {
        (Some(host), _) => host.clone(),
        (None, child) => child.as_ref().map(Child::address).unwrap_or_default(),
    };
    let near = Near::connect(&host, config)?;
    // Until here a signal just ends the command.
    let signals = Signals::catch(&Signal::ALL);
    let signals = signals.map_err(|error| Failure::run_time("bench net: signals", error))?;
    let mut bench = Bench { args, ask, near, child, signals, progress: &mut progress };
    let measured = bench.measure();
    let Bench { ask, near, child, .. } = bench;
    let remote = near.remote();
    near.leave();
    drop(child);
    progress.clear();
    let (flow, rounds) = measured?;
    let measured = Measured { args, ask: &ask, config, remote, flow, rounds };
    match args.json {
        true => output::json(&measured.to_json()),
        false => measured.print(),
    }
    Ok(Exit::Success)
}

/// What this end is: what the environment says, and the arguments.
fn host_config(args: &BenchNetArgs) -> Result<HostConfig, Failure> {
    let mut config = config_from_env()?;
    config.udp.gso &= !args.no_gso;
    config.udp.gro &= !args.no_gro;
    Ok(config)
}

/// What is asked for a measurement of throughput; a graph that cannot be is found here.
fn question(args: &BenchNetArgs) -> Result<Ask, Failure> {
    let wrong = |text: String| Failure::new(Exit::Invalid, "bench net --graph", text);
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
        };
        let file = ask.session_file("net")?;
        let assumptions =
            Assumptions { on_loopback: args.host.is_none(), ..Assumptions::default() };
        let plan = Plan::parse(&file, "graph", &assumptions);
        plan.map(|_| ask).map_err(|errors| session::problems(&errors))
    };
    match (&args.graph, args.transport) {
        (Some(graph), _) => ask(graph),
        (None, NetTransport::Udp | NetTransport::QuicDatagram) => ask("segment,sequence"),
        // What does not fit a record is cut.
        (None, NetTransport::Tcp | NetTransport::Shm | NetTransport::Quic) => {
            ask("").or_else(|_| ask("segment"))
        }
    }
    .map_err(wrong)
}

/// A near end at work.
struct Bench<'a> {
    args: &'a BenchNetArgs,
    ask: Ask,
    near: Near,
    child: Option<Child>,
    signals: Signals,
    progress: &'a mut Progress,
}

impl Bench<'_> {
    fn measure(&mut self) -> Result<(Option<dacapo::FlowInfo>, Vec<Round>), Failure> {
        let (mut flow, mut rounds) = (None, Vec::new());
        for number in 1..=self.args.rounds {
            let mut round = Round::default();
            if self.args.what != NetWhat::Latency {
                round.bulk = Some(self.bulk(number, &mut flow)?);
            }
            if self.args.what != NetWhat::Bulk {
                round.delay = Some(self.delay(number, &mut flow)?);
            }
            rounds.push(round);
        }
        Ok((flow, rounds))
    }

    fn bulk(&mut self, number: u32, flow: &mut Option<dacapo::FlowInfo>) -> Result<Bulk, Failure> {
        self.ask.id += 1;
        let ask = self.ask.clone();
        let (end, far, flows) = self.run(number, &ask)?;
        *flow = flows.into_iter().next();
        Bulk::of(&end, &far)
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
        let (end, far, flows) = self.run(number, &ask)?;
        flow.get_or_insert(
            flows
                .into_iter()
                .next()
                .ok_or_else(|| Failure::run_time("bench net latency", "a session without flows"))?,
        );
        Delay::of(&end, &far)
    }

    fn run(
        &mut self,
        number: u32,
        ask: &Ask,
    ) -> Result<(run::End, figures::Report, Vec<dacapo::FlowInfo>), Failure> {
        let Self { near, child, signals, progress, args, .. } = self;
        let (began, mut before) = (Instant::now(), (Instant::now(), 0));
        near.run(ask, |pulse| {
            if let Some(signal) = signals.poll() {
                return Err(interrupted(signal));
            }
            if child.as_mut().is_some_and(|child| !child.is_running()) {
                let text = "the far end, a second process, has ended before its time";
                return Err(Failure::run_time("bench net", text));
            }
            if progress.is_due() {
                let of = format!("round {number} of {}", args.rounds);
                progress.show(&format!("{of}: {}", so_far(ask, pulse, began, &mut before)));
            }
            Ok(())
        })
    }
}

/// How far a run is, in words; what went since the last look gives the rate.
fn so_far(ask: &Ask, pulse: &Pulse, began: Instant, before: &mut (Instant, u64)) -> String {
    let (sent, got) = (pulse.sent.load(Ordering::Relaxed), pulse.got.load(Ordering::Relaxed));
    let time =
        format!("{:.0} s of {:.0} s", began.elapsed().as_secs_f64(), ask.duration.as_secs_f64());
    if ask.run == Run::Echo {
        return format!("{time}, {got} units were there and back");
    }
    let (now, bytes) = (Instant::now(), sent.saturating_add(got));
    let seconds = now.duration_since(before.0).as_secs_f64().max(1e-9);
    let rate = bytes.saturating_sub(before.1) as f64 * 8.0 / seconds;
    *before = (now, bytes);
    format!("{time}, {:.3} Gbit/s", rate * 1e-9)
}
