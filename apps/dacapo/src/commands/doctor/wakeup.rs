//! How late a wait ends: the kernel's timers, its scheduler, and what else runs.
//!
//! ```text
//!   wait 1 ms |------------------|·······| woken
//!                                 lateness: the median and the 99th of 100, over a few hundred
//! ```
//!
//! Source: proc_pid_timerslack_ns(5): by how much the kernel may delay a wait, to end several at
//! once.

use super::finding::Finding;
use dacapo_sys::clock;
use dacapo_sys::poll::Poller;
use std::io;
use std::time::Duration;

const WAIT: Duration = Duration::from_millis(1);
const WAITS: usize = 300;

/// The pace of a flow is kept in steps of this; whoever is woken later sends bursts.
const LATE_NS_MAX: u64 = 1_000_000;

/// The finding.
pub fn examine() -> Finding {
    match measure() {
        Ok(lateness) => judge(&lateness, slack_ns()),
        Err(error) => {
            let found = format!("waiting fails: {error}");
            Finding::fail("wake-up", found, "are there descriptors left (`ulimit -n`)?")
        }
    }
}

/// By how many nanoseconds each wait ended too late, in order.
fn measure() -> io::Result<Vec<u64>> {
    let mut poller = Poller::new()?;
    let mut events = Vec::new();
    let mut lateness = Vec::with_capacity(WAITS);
    for _ in 0..WAITS {
        let due = clock::now() + WAIT;
        poller.wait(Some(WAIT), &mut events)?;
        lateness.push(clock::now().as_nanos().saturating_sub(due.as_nanos()));
    }
    lateness.sort_unstable();
    Ok(lateness)
}

fn slack_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/self/timerslack_ns").ok()?.trim().parse().ok()
}

fn judge(lateness: &[u64], slack_ns: Option<u64>) -> Finding {
    let at = |percent: usize| lateness.get(lateness.len() * percent / 100).copied().unwrap_or(0);
    let (median, p99) = (at(50), at(99));
    let us = |ns: u64| format!("{:.0} µs", ns as f64 / 1e3);
    let slack = slack_ns.map_or_else(|| "not told".to_owned(), us);
    let found = format!(
        "a wait of 1 ms ends {} late (median), {} (p99 of {}); timer slack {slack}",
        us(median),
        us(p99),
        lateness.len(),
    );
    if p99 <= LATE_NS_MAX {
        return Finding::ok("wake-up", found);
    }
    let advice = "flows become bursts and sound needs a longer playout; try again when less \
                  runs here, or give dacapo a CPU of its own (taskset) or a real-time class \
                  (chrt -r 10)";
    Finding::warn("wake-up", found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    #[test]
    fn one_wait_in_a_hundred_may_be_late() {
        let lateness = |late: usize| {
            let mut lateness = vec![60_000; WAITS - late];
            lateness.resize(WAITS, 5_000_000);
            lateness
        };
        let finding = judge(&lateness(2), Some(50_000));
        assert_eq!(finding.state, State::Ok);
        assert_eq!(
            finding.found,
            "a wait of 1 ms ends 60 µs late (median), 60 µs (p99 of 300); timer slack 50 µs"
        );
        assert_eq!(judge(&lateness(4), None).state, State::Warn);
        assert_eq!(judge(&[], None).state, State::Ok);
    }
}
