//! Facts about this process, and how it ends or stops itself for a test.

use std::mem::MaybeUninit;
use std::time::Duration;

/// The effective user id of this process, which `SO_PEERCRED` shows to the other end of a socket.
#[must_use]
pub fn uid() -> u32 {
    // SAFETY: geteuid takes nothing, touches no memory and cannot fail.
    unsafe { libc::geteuid() }
}

/// The processor time that this process has used, in user and kernel together.
#[must_use]
pub fn cpu_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes one rusage where the pointer says, which is ours and large enough;
    // all zeros are a valid rusage, so it is initialised whatever the call does.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let span = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::from_secs(seconds)
            + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    span(usage.ru_utime) + span(usage.ru_stime)
}

/// The longest file in bytes that this process may make (`ulimit -f`); `None` without a limit.
#[must_use]
pub fn file_size_max() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: getrlimit writes one rlimit where the pointer says, which is ours; the resource is a
    // constant that every kernel knows, so the call cannot fail.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Ends this process at once, as if somebody had sent it SIGKILL: nothing is closed in order.
pub fn kill() -> ! {
    send_self(libc::SIGKILL);
    // The signal is certain, and nothing runs after it.
    std::process::abort()
}

/// Stops this process until somebody sends it SIGCONT.
pub fn stop() {
    send_self(libc::SIGSTOP);
}

fn send_self(signal: i32) {
    // SAFETY: getpid and kill take numbers and touch no memory; the process may signal itself.
    unsafe { libc::kill(libc::getpid(), signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_only_grows() {
        let before = cpu_time();
        let work: u64 = (0..1_000_000_u64).map(std::hint::black_box).sum();
        assert!(cpu_time() >= before && work > 0);
    }
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_user_id_is_the_owner_of_this_process() {
        assert_eq!(uid(), std::fs::metadata("/proc/self").unwrap().uid());
    }
}
