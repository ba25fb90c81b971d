//! What this process may use: CPUs, descriptors, locked memory, capabilities.
//!
//! Source: proc_pid_limits(5), proc_pid_status(5), capabilities(7).

use super::finding::Finding;
use dacapo::text::format_size;

/// Every peer of a server has a socket, and every flow perhaps a file.
const FILES_MIN: u64 = 1_024;

/// Capabilities that transports on raw sockets and Ethernet need, with their bits.
const CAPABILITIES: [(&str, u32); 2] = [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13)];

/// The findings.
pub fn examine() -> Vec<Finding> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (limits, status) = (read("/proc/self/limits"), read("/proc/self/status"));
    let online = read("/sys/devices/system/cpu/online");
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        cpus(usable, count_of(online.trim())),
        open_files(limit(&limits, "Max open files")),
        locked_memory(limit(&limits, "Max locked memory")),
        capabilities(effective(&status)),
    ]
}

fn cpus(usable: usize, online: Option<usize>) -> Finding {
    let found = match online {
        Some(online) => format!("{usable} usable of {online}"),
        None => format!("{usable} usable"),
    };
    Finding::ok("cpus", found)
}

/// How many numbers a list such as `0-3,8` names.
fn count_of(list: &str) -> Option<usize> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').map(count).sum()
}

/// The soft and the hard value of a limit; `u64::MAX` is none.
fn limit(limits: &str, name: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let mut values = line.split_whitespace().map(|value| match value {
        "unlimited" => Some(u64::MAX),
        value => value.parse().ok(),
    });
    Some((values.next()??, values.next()??))
}

fn open_files(limit: Option<(u64, u64)>) -> Finding {
    let Some((soft, hard)) = limit else {
        return Finding::info("open-files", "the kernel does not tell");
    };
    let text = |value| if value == u64::MAX { "unlimited".to_owned() } else { format!("{value}") };
    let found = format!("{} (at most {})", text(soft), text(hard));
    if soft >= FILES_MIN {
        return Finding::ok("open-files", found);
    }
    let how = match hard >= FILES_MIN {
        true => format!("before `dacapo serve`: ulimit -n {FILES_MIN}"),
        false => format!("let root raise it to {FILES_MIN} (limits.conf(5), or LimitNOFILE=)"),
    };
    let advice = format!("every peer takes a descriptor; {how}");
    Finding::warn("open-files", found, advice)
}

/// Nothing locks memory yet, so no value is too small.
fn locked_memory(limit: Option<(u64, u64)>) -> Finding {
    let Some((soft, hard)) = limit else {
        return Finding::info("locked-memory", "the kernel does not tell");
    };
    let text = |value| if value == u64::MAX { "unlimited".to_owned() } else { format_size(value) };
    Finding::info("locked-memory", format!("{} (at most {}); not needed", text(soft), text(hard)))
}

/// The effective capabilities as bits.
fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn capabilities(effective: Option<u64>) -> Finding {
    let Some(bits) = effective else {
        return Finding::info("capabilities", "the kernel does not tell");
    };
    let has = |bit: u32| bits.checked_shr(bit).is_some_and(|bits| bits & 1 == 1);
    let words = CAPABILITIES.map(|(name, bit)| match has(bit) {
        true => format!("{name} held"),
        false => format!("{name} not held"),
    });
    Finding::info("capabilities", format!("{}; not needed for UDP", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max open files            256                  524288               files
Max locked memory         8388608              unlimited            bytes
";

    #[test]
    fn limits_are_read_by_name() {
        assert_eq!(limit(LIMITS, "Max open files"), Some((256, 524_288)));
        assert_eq!(limit(LIMITS, "Max locked memory"), Some((8 << 20, u64::MAX)));
        assert_eq!(limit(LIMITS, "Max processes"), None);
        assert_eq!(limit("Max open files many", "Max open files"), None);
    }

    #[test]
    fn few_descriptors_are_a_warning_and_an_unknown_number_is_none() {
        let few = open_files(Some((256, 524_288)));
        assert_eq!((few.state, few.found.as_str()), (State::Warn, "256 (at most 524288)"));
        assert!(few.advice.unwrap().ends_with("ulimit -n 1024"));
        assert!(open_files(Some((64, 64))).advice.unwrap().contains("let root raise it"));
        assert_eq!(open_files(Some((1_024, u64::MAX))).found, "1024 (at most unlimited)");
        assert_eq!(open_files(None).state, State::Info);
        let memory = locked_memory(limit(LIMITS, "Max locked memory"));
        assert_eq!(memory.found, "8 MiB (at most unlimited); not needed");
    }

    #[test]
    fn cpus_are_counted_in_lists() {
        assert_eq!(count_of("0-3,8"), Some(5));
        assert_eq!(count_of("0"), Some(1));
        assert_eq!((count_of(""), count_of("3-1"), count_of("a")), (None, None, None));
        assert_eq!(cpus(2, Some(4)).found, "2 usable of 4");
    }

    #[test]
    fn capabilities_are_bits() {
        let status = "Name:\tx\nCapEff:\t0000000000002000\n";
        assert_eq!(
            capabilities(effective(status)).found,
            "CAP_NET_ADMIN not held, CAP_NET_RAW held; not needed for UDP"
        );
        assert_eq!(effective("CapEff: zz"), None);
    }
}
