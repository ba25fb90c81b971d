//! CPU time of this process, as the kernel accounts it.
//!
//! Work that the kernel does in threads of its own (`ksoftirqd`) is nobody's; work that it does on
//! the way out of a system call is the caller's.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Seconds of CPU that all threads of this process have used, user and system together.
#[must_use]
pub fn cpu_s() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0.0 };
    let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    us as f64 / 1e6
}
