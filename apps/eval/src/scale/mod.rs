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
//! ```

mod far;
mod flow;
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

/// A connection carries fewer streams than this, and a peer fewer labels: they are used again two
/// minutes after.
const SESSIONS_PER_CONNECTION: u64 = 800;
const OPENS_PER_CONNECTION: u64 = 32_000;

/// Runs the command.
pub fn run(args: &BenchScaleArgs) -> Result<Exit, Failure> {
    if let Some(ports) = args.far {
        return far::serve(ports);
    }
    let connections = u64::from(args.connections());
    let sessions = u64::from(args.sessions);
    let warm = warm_up(args);
    let wrong = |text: String| Err(Failure::new(Exit::Failure, "bench scale", text));
    if sessions > connections * SESSIONS_PER_CONNECTION {
        let text = format!("a connection has {SESSIONS_PER_CONNECTION} sessions at most");
        return wrong(format!("{text}: use --connections"));
    }
    if sessions + warm + u64::from(args.opens) > connections * OPENS_PER_CONNECTION {
        let text = format!("{OPENS_PER_CONNECTION} sessions for a connection at most in all");
        return wrong(format!("{text}, because labels rest for two minutes: use --connections"));
    }
    let mut progress = Progress::new(args.json);
    let ports = connections.to_string();
    let mut child = Child::start("bench scale", &["scale", "--far", &ports])?;
    let mut near = Near::open(&mut child, &mut progress)?;
    let measured = measure(args, &mut near);
    near.leave();
    drop(child);
    progress.clear();
    let measured = measured?;
    match args.json {
        true => output::json(&measured.to_json()),
        false => measured.print(),
    }
    Ok(Exit::Success)
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
