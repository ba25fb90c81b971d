//! The clock: what it is made of, how fine it is, and what a look at it costs.
//!
//! Source: Documentation/timers/timekeeping.rst of Linux on clock sources; vdso(7): a source that a
//! program can read by itself makes a look at the clock cheap, any other needs a system call.

use super::finding::Finding;
use dacapo_sys::clock;

const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Sources that a program reads without a system call.
const FAST: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];
/// Sources that need one, and a slow device besides.
const SLOW: [&str; 4] = ["hpet", "acpi_pm", "pit", "jiffies"];

/// Looks at the clock that are timed together, and how often that is done.
const READS: u32 = 100;
const ROUNDS: usize = 501;

/// A look that takes longer is a system call, and the core looks often.
const READ_NS_MAX: u64 = 250;

/// A clock with larger steps cannot tell what the network did from what it did itself.
const STEP_NS_MAX: u64 = 1_000_000;

/// The findings.
pub fn examine() -> Vec<Finding> {
    let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
    vec![judge_source(source.trim()), judge_reads(cost_ns(), step_ns())]
}

fn judge_source(source: &str) -> Finding {
    if source.is_empty() {
        return Finding::info("clock-source", "the kernel does not tell");
    }
    if FAST.contains(&source) {
        return Finding::ok("clock-source", source);
    }
    if SLOW.contains(&source) {
        let advice = "the kernel found tsc unstable or was told not to use it; `journalctl -k -g \
                      clocksource` says why";
        return Finding::warn("clock-source", source, advice);
    }
    Finding::info("clock-source", source)
}

fn judge_reads(cost_ns: u64, step_ns: u64) -> Finding {
    let found = format!("a look takes {cost_ns} ns, the smallest step seen is {step_ns} ns");
    if step_ns > STEP_NS_MAX {
        let advice = "delays cannot be told on such a clock; choose another source in \
                      /sys/devices/system/clocksource/clocksource0";
        return Finding::warn("clock-monotonic", found, advice);
    }
    if cost_ns > READ_NS_MAX {
        let advice =
            "see clock-source; a tracer or a sandbox that watches system calls does it too";
        return Finding::warn("clock-monotonic", found, advice);
    }
    Finding::ok("clock-monotonic", found)
}

/// What a look at the clock costs, in nanoseconds: the median of many rounds.
fn cost_ns() -> u64 {
    let mut rounds: Vec<u64> = (0..ROUNDS).map(|_| round_ns()).collect();
    rounds.sort_unstable();
    rounds.get(ROUNDS / 2).copied().unwrap_or(0) / u64::from(READS)
}

fn round_ns() -> u64 {
    let began = clock::now();
    let last = (0..READS).fold(began, |_, _| std::hint::black_box(clock::now()));
    last.as_nanos().saturating_sub(began.as_nanos())
}

/// The smallest step between two looks that differ, in nanoseconds: the resolution, or a look.
fn step_ns() -> u64 {
    let mut last = clock::now().as_nanos();
    let mut smallest = u64::MAX;
    // A clock of 100 steps per second makes one within this many looks of 10 ns or more.
    for _ in 0..10_000_000_u32 {
        let now = clock::now().as_nanos();
        if now > last {
            smallest = smallest.min(now.saturating_sub(last));
            if smallest < READ_NS_MAX {
                break;
            }
        }
        last = now;
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    #[test]
    fn sources_are_fast_slow_or_unknown() {
        let state = |source| judge_source(source).state;
        assert_eq!((state("tsc"), state("kvm-clock")), (State::Ok, State::Ok));
        assert_eq!((state("hpet"), state("acpi_pm")), (State::Warn, State::Warn));
        assert_eq!((state(""), state("sundial")), (State::Info, State::Info));
    }

    #[test]
    fn a_clock_that_is_coarse_or_dear_is_a_warning() {
        assert_eq!(judge_reads(25, 20).state, State::Ok);
        assert_eq!(judge_reads(900, 900).state, State::Warn);
        assert_eq!(judge_reads(25, 4_000_000).state, State::Warn);
    }
}
