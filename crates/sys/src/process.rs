//! Facts about this process, whether it is a fork of another, and how it ends, stops or forks
//! itself for a test.
//!
//! ```text
//!   Birth::now() ... fork --> parent: is_here()     child: the generation is another, not here
//! ```

use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

/// How many times this process and those that it was forked from have become a child.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// In which process something was made: a fork of that has a copy of it, with descriptors that it
/// shares, locks that may be held, and without the threads. To ask costs one load.
///
/// A process that was made by `vfork`, `posix_spawn` or the system call alone is not told apart:
/// such a one is to start another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth(u32);

impl Birth {
    /// Here and now.
    #[must_use]
    pub fn now() -> Self {
        static IS_TOLD: Once = Once::new();
        extern "C" fn note_fork() {
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        IS_TOLD.call_once(|| {
            // SAFETY: the handler takes nothing, adds to a number and never unwinds, which a child
            // may do whatever its parent's threads were doing; it lives as long as the program.
            // Without memory for it forks stay unnoticed, as they are without it.
            unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
        });
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether this is the process, and no fork of it.
    #[must_use]
    #[inline]
    pub fn is_here(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }
}

impl Default for Birth {
    fn default() -> Self {
        Self::now()
    }
}

/// A fork of this process, which runs `body` and ends with what that gives, or with 101 where it
/// panics: for tests. Nothing else of this process goes on in it, and nothing is closed in order.
///
/// # Errors
/// What the system says.
pub fn fork(body: impl FnOnce() -> u8) -> io::Result<Fork> {
    // SAFETY: fork touches no memory of ours. The child has this thread only, whose stack and heap
    // are whole; the C library sees to its own locks, and `body` is told that others may be held.
    match unsafe { libc::fork() } {
        0 => {
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
            // SAFETY: _exit takes a number and does not come back; no destructor runs.
            unsafe { libc::_exit(i32::from(code)) }
        }
        pid if pid > 0 => Ok(Fork(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A child that [`fork`] has made.
#[derive(Debug)]
pub struct Fork(libc::pid_t);

impl Fork {
    /// Waits for its end: what it ended with, or `None` when a signal ended it. One that is not
    /// over after `most` is ended so.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait(self, most: Duration) -> io::Result<Option<u8>> {
        let end = Instant::now() + most;
        loop {
            let is_late = Instant::now() >= end;
            if is_late {
                // SAFETY: kill takes numbers; the child was not waited for, so the number is its.
                unsafe { libc::kill(self.0, libc::SIGKILL) };
            }
            let (mut status, options) = (0, if is_late { 0 } else { libc::WNOHANG });
            // SAFETY: waitpid writes one int where the pointer says, which is ours.
            match unsafe { libc::waitpid(self.0, &raw mut status, options) } {
                0 => std::thread::sleep(Duration::from_millis(1)),
                pid if pid > 0 => {
                    let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
                    return Ok(code.and_then(|code| u8::try_from(code).ok()));
                }
                _ => return Err(io::Error::last_os_error()),
            }
        }
    }
}

/// How many processors this process may use, as it was when that was asked first: it takes a dozen
/// of files to find out, of which the quota of a container is read.
#[must_use]
pub fn processors() -> NonZeroUsize {
    static COUNT: OnceLock<NonZeroUsize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

/// The effective user id of this process, which `SO_PEERCRED` shows to the other end of a socket.
#[must_use]
pub fn uid() -> u32 {
    // SAFETY: geteuid takes nothing, touches no memory and cannot fail.
    unsafe { libc::geteuid() }
}

/// The processor time that this process has used, in user and kernel together.
#[must_use]
pub fn cpu_time() -> Duration {
    usage(libc::RUSAGE_SELF).cpu
}

/// What processes took, as the kernel accounts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, in user and kernel together.
    pub cpu: Duration,
    /// How often they left a processor, to wait or as others were to run.
    pub switches: u64,
}

/// What the children of this process took, and theirs, as far as they were waited for.
#[must_use]
pub fn children_usage() -> Usage {
    usage(libc::RUSAGE_CHILDREN)
}

fn usage(who: libc::c_int) -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes one rusage where the pointer says, which is ours and large enough;
    // all zeros are a valid rusage, so it is initialised whatever the call does.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let number = |it: libc::c_long| u64::try_from(it).unwrap_or(0);
    let span = |time: libc::timeval| {
        Duration::from_secs(number(time.tv_sec)) + Duration::from_micros(number(time.tv_usec))
    };
    Usage {
        cpu: span(usage.ru_utime) + span(usage.ru_stime),
        switches: number(usage.ru_nvcsw) + number(usage.ru_nivcsw),
    }
}

/// Asks a child of this process to end in order (SIGINT). One that has ended and was not waited
/// for is asked in vain.
///
/// # Errors
/// It was waited for, or belongs to somebody else.
pub fn interrupt(child: &mut Child) -> io::Result<()> {
    if child.try_wait()?.is_some() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended"));
    }
    let id = i32::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: kill takes numbers and touches no memory; the child was not waited for, so the
    // number is no other process's.
    if unsafe { libc::kill(id, libc::SIGINT) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
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

    #[test]
    fn a_fork_knows_that_it_is_one_and_so_does_a_fork_of_it() {
        let birth = Birth::now();
        let child = fork(|| {
            let own = Birth::now();
            let grandchild = fork(|| u8::from(own.is_here() || birth.is_here())).unwrap();
            let answer = grandchild.wait(Duration::from_secs(10)).unwrap();
            u8::from(birth.is_here() || !own.is_here() || answer != Some(0))
        });
        assert_eq!(child.unwrap().wait(Duration::from_secs(20)).unwrap(), Some(0));
        assert!(birth.is_here() && Birth::default() == birth);
    }

    #[test]
    fn a_fork_that_does_not_end_is_ended() {
        let child = fork(|| {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        assert_eq!(child.unwrap().wait(Duration::from_millis(20)).unwrap(), None);
    }

    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_user_id_is_the_owner_of_this_process() {
        assert_eq!(uid(), std::fs::metadata("/proc/self").unwrap().uid());
    }
}
