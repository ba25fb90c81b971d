//! What the kernel is told of the calling thread.
//!
//! Source: `PR_SET_TIMERSLACK` in prctl(2).

use std::io;
use std::time::Duration;

/// By how much the kernel may end this thread's waits too late, to end several at once: 50 us for a
/// new process, at least 1 ns. Threads that this one starts later begin with the same.
///
/// # Errors
/// None on Linux since 2.6.28, outside sandboxes.
pub fn set_timer_slack(slack: Duration) -> io::Result<()> {
    // 0 would mean the slack that the process began with.
    let slack = libc::c_ulong::try_from(slack.as_nanos()).unwrap_or(libc::c_ulong::MAX).max(1);
    let zero: libc::c_ulong = 0;
    // SAFETY: this request takes a number and touches no memory; the unused arguments are 0, as the
    // call asks.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack, zero, zero, zero) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_have_less_slack_than_its_process() {
        let set = std::thread::spawn(|| set_timer_slack(Duration::from_nanos(1)));
        set.join().unwrap().unwrap();
    }
}
