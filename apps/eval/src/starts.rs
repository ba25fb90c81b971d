//! `starts`: how long a process takes from its start to its end, again and again, one at a time.
//!
//! ```text
//!   COMMAND, COMMAND, … for so long --then COMMAND, which ends whom they talk to
//! ```
//!
//! Invariants: the first fifth of the time and the last command are in no figure; a command that
//! fails ends it.

use crate::cli::{StartsArgs, THEN, or_usage};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::setup::said_of;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs the command.
pub fn run(args: &StartsArgs) -> Result<Exit, Failure> {
    let failed = |text: String| Failure::new(Exit::Failure, "starts", text);
    let (again, last) = or_usage(commands(&args.commands));
    let (begin, warm_up) = (Instant::now(), args.duration / 5);
    let mut all = Vec::new();
    while begin.elapsed() < warm_up + args.duration {
        let took = one(again).map_err(failed)?;
        all.extend((begin.elapsed() > warm_up).then_some(took));
    }
    let elapsed = begin.elapsed().saturating_sub(warm_up);
    one(last).map_err(failed)?;
    output::json(&said_of(all.into_iter(), elapsed));
    Ok(Exit::Success)
}

/// What is started again and again, and what is started last.
fn commands(words: &[String]) -> Result<(&[String], &[String]), String> {
    let mut parts = words.split(|word| word == THEN);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(again), Some(last), None) => Ok((again, last)),
        _ => Err(format!("between two COMMANDs stands one `{THEN}`")),
    }
}

/// Starts it, and waits until it has ended.
fn one(words: &[String]) -> Result<Duration, String> {
    let (program, rest) = words.split_first().ok_or("a command is empty")?;
    let begin = Instant::now();
    let ran = Command::new(program).args(rest).output();
    let (ran, took) = (ran.map_err(|error| format!("{program}: {error}"))?, begin.elapsed());
    let said = String::from_utf8_lossy(&ran.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if ran.status.success() { Ok(took) } else { Err(format!("{program}: {}: {last}", ran.status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_process_takes_some_time_and_one_that_fails_says_why() {
        assert!(one(&words("true")).unwrap() > Duration::ZERO);
        let script = ["sh", "-c", "echo no such thing >&2; exit 3"].map(str::to_owned);
        let error = one(&script).unwrap_err();
        assert!(error.contains("exit status: 3: no such thing"), "{error}");
        assert!(one(&[]).is_err());
    }

    #[test]
    fn without_a_last_command_nothing_is_started() {
        assert!(commands(&words("true")).is_err());
        assert!(commands(&words("true --then true --then true")).is_err());
        let commands = words("true --then true");
        let args = StartsArgs { duration: Duration::from_millis(5), commands };
        assert!(run(&args).is_ok());
    }
}
