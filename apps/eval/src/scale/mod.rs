//! `dacapo bench scale`: what many sessions cost while nothing happens in them, and what opening
//! and closing leaves behind.
//!
//! ```text
//!   near (this process)                          far (a process of its own)
//!     one host                                     one host, which serves all; a port for each
//!                                                  connection, because two hosts share one
//!                                                  connection to a port
//!                                                  looks at itself when it is asked
//!     one connection, idle; then all
//!     opens and closes
//!     many sessions, idle; all closed
//!   or, with --send: many sessions, units in turns over all of them
//! ```

mod far;
mod flow;
mod load;
mod look;
mod near;
mod show;

use super::child::Child;
use crate::cli::BenchScaleArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use near::Near;
use show::{Idle, Measured};
use std::time::Instant;

/// A connection carries so many sessions at any time, and a peer so many labels, which are used
/// again two minutes after.
const SESSIONS_PER_CONNECTION: u64 = 770;
const OPENS_PER_CONNECTION: u64 = 32_000;

/// Runs the command.
pub fn run(args: &BenchScaleArgs) -> Result<Exit, Failure> {
    if let Some(ports) = args.far {
        return far::serve(ports, args);
    }
    let connections = u64::from(args.connections());
    let sessions = u64::from(args.sessions);
    let opens = if args.send.is_some() { 0 } else { warm_up(args) + u64::from(args.opens) };
    let wrong = |text: String| Err(Failure::new(Exit::Failure, "bench scale", text));
    if sessions > connections * SESSIONS_PER_CONNECTION {
        let text = format!("a connection has {SESSIONS_PER_CONNECTION} sessions at most");
        return wrong(format!("{text}: use --connections"));
    }
    if sessions + opens > connections * OPENS_PER_CONNECTION {
        let text = format!("{OPENS_PER_CONNECTION} sessions for a connection at most in all");
        return wrong(format!("{text}, because labels rest for two minutes: use --connections"));
    }
    let mut progress = Progress::new(args.json);
    let ports = connections.to_string();
    let (count, send) = (sessions.to_string(), args.send.map(|rate| rate.to_string()));
    let mut words = vec!["scale", "--far", &*ports, "--sessions", &*count];
    words.extend(send.iter().flat_map(|rate| ["--send", &**rate]));
    let mut child = Child::start("bench scale", &words)?;
    let mut near = Near::open(&mut child, &mut progress)?;
    let measured = match args.send {
        Some(_) => load::measure(args, &mut near).map(|it| Came::Sent(Box::new(it))),
        None => measure(args, &mut near).map(|it| Came::Idled(Box::new(it))),
    };
    near.leave();
    drop(child);
    progress.clear();
    match (measured?, args.json) {
        (Came::Sent(it), true) => output::json(&it.to_json()),
        (Came::Sent(it), false) => it.print(),
        (Came::Idled(it), true) => output::json(&it.to_json()),
        (Came::Idled(it), false) => it.print(),
    }
    Ok(Exit::Success)
}

/// What was measured.
enum Came {
    Idled(Box<Measured>),
    Sent(Box<load::Load>),
}

/// A connection keeps the memory of streams for the next ones: so many are opened and closed before
/// growth is measured that each has had as many as it keeps.
fn warm_up(args: &BenchScaleArgs) -> u64 {
    u64::from(args.opens / 4).max(u64::from(args.connections()) * 8)
}

fn measure(args: &BenchScaleArgs, near: &mut Near<'_>) -> Result<Measured, Failure> {
    let (sessions, opens) = (u64::from(args.sessions), u64::from(args.opens));
    let connections = u64::from(args.connections());
    near.connect(1)?;
    // What is made once, whatever comes, is made.
    near.churn(8)?;
    let one = idle(args, near)?;
    let before = near.look()?;
    near.connect(args.connections() as usize)?;
    let connected = near.look()?;
    near.churn(warm_up(args))?;
    let warm = near.look()?;
    let opens_in = near.churn(opens)?;
    let churned = near.look()?;
    let opened_in = near.hold(sessions)?;
    let held = near.look()?;
    let many = idle(args, near)?;
    let closed_in = near.close_all()?;
    let after = near.look()?;
    if after.near.sessions != 0 || after.far.sessions != 0 {
        let text = format!("{} and {}", after.near.sessions, after.far.sessions);
        let what = "bench scale: sessions that are closed and still there, near and far";
        return Err(Failure::run_time(what, text));
    }
    Ok(Measured {
        sessions,
        connections,
        opens,
        before,
        connected,
        warm,
        churned,
        held,
        after,
        one,
        many,
        opens_in,
        opened_in,
        closed_in,
    })
}

/// Both ends do nothing for a while.
fn idle(args: &BenchScaleArgs, near: &mut Near<'_>) -> Result<Idle, Failure> {
    let (from, began) = (near.look()?, Instant::now());
    near.rest(args.idle)?;
    Ok(Idle { from, to: near.look()?, time: began.elapsed() })
}
