//! Clocks, and what says whether two processes read the same one.
//!
//! The only reader of `CLOCK_MONOTONIC` in the workspace. Two processes with equal [`boot_id`] and
//! [`time_namespace`] read the same clock, so times compare exactly.
//!
//! Source: clock_gettime(2), time_namespaces(7), proc(5).

use dacapo_base::Time;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The present on `CLOCK_MONOTONIC`, in nanoseconds since the boot (suspend not counted).
#[must_use]
pub fn now() -> Time {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spec` is a valid timespec that outlives the call; the clock id is a constant that
    // every kernel knows, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut spec) };
    let secs = u64::try_from(spec.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(spec.tv_nsec).unwrap_or(0);
    Time::from_nanos(secs.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// Whole seconds since 1970 on the wall clock, for the stamps of a log only: it may jump.
#[must_use]
pub fn wall() -> u64 {
    wall_ns() / 1_000_000_000
}

/// The same in nanoseconds, for the stamps of a capture.
#[must_use]
pub fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// The identity of this boot of the kernel.
///
/// Where the kernel does not tell, 16 random bytes that stay for the life of the process: then no
/// other process is ever taken for one with the same clock.
#[must_use]
pub fn boot_id() -> [u8; 16] {
    static ID: OnceLock<[u8; 16]> = OnceLock::new();
    *ID.get_or_init(|| read_boot_id().unwrap_or_else(random_id))
}

fn read_boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    parse_uuid(text.trim())
}

fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    // Without entropy the process number still tells the processes of this host apart.
    let seed = crate::entropy().unwrap_or([0; 32]);
    id.copy_from_slice(&seed[..16]);
    if id == [0; 16] {
        id[..4].copy_from_slice(&std::process::id().to_be_bytes());
    }
    id
}

/// The 16 bytes of a UUID in its text form; `None` when it is not one.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let mut id = [0; 16];
    let mut digits = text.chars().filter(|&c| c != '-');
    for byte in &mut id {
        let high = digits.next()?.to_digit(16)?;
        let low = digits.next()?.to_digit(16)?;
        *byte = u8::try_from((high << 4) | low).ok()?;
    }
    digits.next().is_none().then_some(id)
}

/// The inode of this process's time namespace; 0 when the kernel has none.
#[must_use]
pub fn time_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/time").map_or(0, |about| about.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_never_goes_back() {
        let mut last = now();
        assert!(last > Time::ZERO);
        for _ in 0..1_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn the_boot_id_is_stable_and_the_one_that_the_kernel_shows() {
        let id = boot_id();
        assert_eq!(id, boot_id());
        assert_ne!(id, [0; 16]);
        if let Some(read) = read_boot_id() {
            assert_eq!(id, read);
        }
    }

    #[test]
    fn a_uuid_is_parsed_and_anything_else_is_refused() {
        let id = parse_uuid("00010203-0405-0607-0809-0a0b0c0d0eFF");
        assert_eq!(id, Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]));
        for bad in ["", "0001", "00010203-0405-0607-0809-0a0b0c0d0e", "x".repeat(32).as_str()] {
            assert_eq!(parse_uuid(bad), None, "{bad}");
        }
        assert_eq!(parse_uuid("00010203-0405-0607-0809-0a0b0c0d0eff00"), None);
    }

    #[test]
    fn the_wall_clock_is_past_the_day_this_was_written() {
        assert!(wall() > 1_700_000_000);
    }

    #[test]
    fn the_time_namespace_does_not_change_under_us() {
        assert_eq!(time_namespace(), time_namespace());
    }
}
