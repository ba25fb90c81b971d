//! What a run was made on and with, kept beside its figures.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// The versions that the programs in Rust were built with.
const LOCK: &str = include_str!("../../Cargo.lock");

/// The load, over a minute, of a machine that has something else to do.
const LOAD_MAX: f64 = 0.5;

/// What `command` prints, without the last line break; none if it fails.
pub fn output(command: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(command).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The load averages of this moment.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Whether `load` is that of a machine with nothing else to do.
pub fn is_idle(load: &str) -> bool {
    let recent = load.split_whitespace().next().and_then(|load| load.parse().ok());
    recent.is_some_and(|load: f64| load < LOAD_MAX)
}

/// Jiffies of all processors: working for anybody, and taken by the host under this machine.
pub fn busy() -> Value {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|t| t.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    // user nice system idle iowait irq softirq steal
    json!({ "ticks": at(0) + at(1) + at(2) + at(5) + at(6), "stolen_ticks": at(7) })
}

/// The commit of this repository, with a plus when something is not committed.
pub fn commit() -> String {
    let head = output("git", &["rev-parse", "--short", "HEAD"]);
    let is_changed = output("git", &["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|changes| !changes.is_empty());
    format!("{}{}", head.as_deref().unwrap_or("unknown"), if is_changed { "+" } else { "" })
}

/// The machine, the system and the versions.
pub fn machine() -> Value {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let setting = |name: &str| {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        (name.to_owned(), fs::read_to_string(path).ok().map(|text| json!(text.trim())).into())
    };
    let settings: serde_json::Map<String, Value> =
        ["net.core.rmem_max", "net.core.wmem_max", "net.core.default_qdisc"]
            .map(setting)
            .into_iter()
            .collect();
    json!({
        "processor": model.map(|(_, name)| name),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "system": output("uname", &["-srm"]),
        "settings": settings,
        "versions": {
            "quinn": locked("quinn"),
            "zenoh": locked("zenoh"),
            "srt": output("pkg-config", &["--modversion", "srt"]),
            "zeromq": output("pkg-config", &["--modversion", "libzmq"]),
            "java": output("java", &["--version"]).as_deref().and_then(|text| text.lines().next()),
            "rustc": output("rustc", &["--version"]),
        },
    })
}

/// The version of `package` in the lock file.
fn locked(package: &str) -> Option<&'static str> {
    let heading = format!("name = \"{package}\"\nversion = \"");
    let (_, rest) = LOCK.split_once(&heading)?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_idle_when_its_load_of_the_last_minute_is_small() {
        assert!(is_idle("0.21 3.40 5.00"));
        assert!(!is_idle("0.50 0.10 0.10") && !is_idle("7.73 7.93 7.43") && !is_idle(""));
    }

    #[test]
    fn versions_are_those_of_the_lock_file() {
        assert!(locked("quinn").is_some_and(|version| version.starts_with("0.11.")));
        assert_eq!(locked("no-such-package"), None);
    }
}
