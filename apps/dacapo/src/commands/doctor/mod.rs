//! `dacapo doctor`: is this host fit?
//!
//! ```text
//!   ports     loopback  offload  clock  wakeup  limits  identity  programs
//!      \_________|_________|______|_______|_______|________|_________/
//!                               findings -> table or JSON -> exit code
//! ```
//!
//! Nothing on this host is changed. Figures are of this moment.
//!
//! Invariants: every check gives a finding, whatever this host lacks; every wait is bounded.

mod clock;
mod finding;
mod identity;
mod limits;
mod loopback;
mod offload;
mod ports;
mod programs;
mod wakeup;

use crate::cli::DoctorArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Cell, Table};
use crate::progress::Progress;
use finding::{Finding, State};
use serde_json::Value;

/// Runs the command.
pub fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    let findings = examine(args.port, &mut Progress::new(args.json));
    if args.json {
        output::json(&Value::Array(findings.iter().map(Finding::to_json).collect()));
    } else {
        print(&findings);
    }
    Ok(verdict(&findings))
}

fn examine(port: u16, progress: &mut Progress) -> Vec<Finding> {
    let mut findings = ports::examine(port, progress);
    findings.extend(loopback::examine());
    findings.extend(offload::examine());
    findings.extend(clock::examine());
    findings.push(wakeup::examine());
    findings.extend(limits::examine());
    findings.extend(identity::examine());
    findings.extend(programs::examine());
    findings
}

fn verdict(findings: &[Finding]) -> Exit {
    let fails = findings.iter().any(|finding| finding.state == State::Fail);
    if fails { Exit::Failure } else { Exit::Success }
}

fn print(findings: &[Finding]) {
    let mut table = Table::new(&["state", "check", "found"]);
    for finding in findings {
        let state = Cell::new(finding.state.name(), finding.state.ink());
        table.row(vec![state, finding.check.as_str().into(), finding.found.as_str().into()]);
    }
    table.print();
    let advised = findings.iter().filter_map(|it| Some((&it.check, it.advice.as_ref()?)));
    for (place, (check, advice)) in advised.enumerate() {
        if place == 0 {
            output::line("\nWhat to do:");
        }
        output::line(format_args!("  {check}: {advice}"));
    }
    output::line(format_args!("\n{}", summary(findings)));
}

fn summary(findings: &[Finding]) -> String {
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let (fails, warnings) = (count(State::Fail), count(State::Warn));
    let warnings = match warnings {
        0 => "nothing to warn of".to_owned(),
        1 => "1 warning".to_owned(),
        count => format!("{count} warnings"),
    };
    match fails {
        0 => format!("This host is fit: nothing fails, {warnings}."),
        1 => format!("This host is not fit yet: 1 check fails, {warnings}."),
        count => format!("This host is not fit yet: {count} checks fail, {warnings}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_check_makes_a_host_unfit() {
        let mut findings = vec![
            Finding::ok("a", "1"),
            Finding::info("b", "2"),
            Finding::warn("c", "3", "do this"),
        ];
        assert_eq!(verdict(&findings), Exit::Success);
        assert_eq!(summary(&findings), "This host is fit: nothing fails, 1 warning.");
        findings.push(Finding::fail("d", "4", "do that"));
        assert_eq!(verdict(&findings), Exit::Failure);
        assert_eq!(summary(&findings), "This host is not fit yet: 1 check fails, 1 warning.");
        assert_eq!(summary(&[]), "This host is fit: nothing fails, nothing to warn of.");
    }
}
