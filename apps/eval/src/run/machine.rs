//! What a run was made on and with: commit, machine, versions, load.

use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What `command` prints, without the last line break; `None` when it fails.
pub fn output(command: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(command).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The first line of what `command` prints, wherever it prints it.
pub fn version(command: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(command).args(words).output().ok()?;
    let all = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&all).lines().find(|line| !line.trim().is_empty()).map(str::to_owned)
}

/// The load averages of this moment.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// How many wanted to run during the last minute, of what [`load`] gives.
pub fn last_minute(load: &str) -> Option<f64> {
    load.split_whitespace().next()?.parse().ok()
}

/// Whether `id` is the number of a process that is no more.
pub fn is_gone(id: &str) -> bool {
    id.parse::<u32>().is_ok() && !Path::new("/proc").join(id).exists()
}

/// Seconds of all processors since the machine began: working for anybody, and taken by the host
/// below this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// Working.
    pub busy_s: f64,
    /// Taken.
    pub stolen_s: f64,
}

/// A tick of `/proc/stat`: `USER_HZ` is 100 on every platform of Linux that this runs on.
const TICK_S: f64 = 0.01;

/// How busy the machine was so far.
pub fn busy() -> Busy {
    busy_of(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn busy_of(text: &str) -> Busy {
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|t| t.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0.0);
    // user nice system idle iowait irq softirq steal
    let busy_s = (at(0) + at(1) + at(2) + at(5) + at(6)) * TICK_S;
    Busy { busy_s, stolen_s: at(7) * TICK_S }
}

/// Which commit this is, and whether the tree is that commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// In short.
    pub commit: String,
    /// How many there are up to it.
    pub count: u64,
    /// Whether nothing was changed since.
    pub is_clean: bool,
}

/// The tree at `root`.
///
/// # Errors
/// Git knows none there.
pub fn tree(root: &Path) -> Result<Tree, String> {
    let root = root.to_string_lossy();
    let git = |words: &[&str]| output("git", &[&["-C", &root][..], words].concat());
    let commit = git(&["rev-parse", "--short=7", "HEAD"]);
    let count = git(&["rev-list", "--count", "HEAD"]).and_then(|text| text.parse().ok());
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
    match (commit, count, changes) {
        (Some(commit), Some(count), Some(changes)) => {
            Ok(Tree { commit, count, is_clean: changes.is_empty() })
        }
        _ => Err(format!("git knows no commit at {root}: run this in a checkout of dacapo")),
    }
}

/// The root of the checkout that this is called in.
///
/// # Errors
/// It is called elsewhere.
pub fn root() -> Result<std::path::PathBuf, String> {
    let text = "this needs a checkout of dacapo: call it there";
    let root = output("git", &["rev-parse", "--show-toplevel"]).ok_or(text)?;
    let root = std::path::PathBuf::from(root);
    if root.join("eval").is_dir() { Ok(root) } else { Err(text.to_owned()) }
}

/// Today, UTC.
pub fn today() -> String {
    output("date", &["-u", "+%Y-%m-%d"]).unwrap_or_else(|| "undated".to_owned())
}

/// The machine and the system.
pub fn describe() -> Value {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let setting = |name: &str| {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        let text = fs::read_to_string(path).ok();
        (name.to_owned(), text.map_or(Value::Null, |text| json!(text.trim())))
    };
    let names = ["net.core.rmem_max", "net.core.wmem_max", "net.core.default_qdisc"];
    let settings: Map<String, Value> = names.map(setting).into_iter().collect();
    json!({
        "processor": model.map(|(_, name)| name),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "system": output("uname", &["-srm"]),
        "rustc": output("rustc", &["--version"]),
        "settings": settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_of_the_last_minute_is_the_first() {
        assert_eq!((last_minute("0.21 3.40 5.00"), last_minute("")), (Some(0.21), None));
    }

    #[test]
    fn what_is_stolen_is_not_what_is_worked() {
        let busy = busy_of("cpu  100 10 50 9000 40 5 35 77 0 0\ncpu0 1 1\n");
        assert_eq!(busy, Busy { busy_s: 2.0, stolen_s: 0.77 });
        assert_eq!(busy_of(""), Busy::default());
    }
}
