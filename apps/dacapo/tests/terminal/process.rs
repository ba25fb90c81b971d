//! Other processes, as `/proc` shows them.
//!
//! Source: proc_pid_stat(5).

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What `/proc` counts processor time in.
const TICK: Duration = Duration::from_millis(10);

/// The processes in a session whose names begin so, by number.
pub fn in_session(session: u32, name: &str) -> Vec<u32> {
    let mut found: Vec<u32> = all_in_session(session)
        .into_iter()
        .filter(|(_, stat)| stat.name.starts_with(name) && !stat.is_over())
        .map(|(pid, _)| pid)
        .collect();
    found.sort_unstable();
    found
}

/// Ends every process of a session without a word.
pub fn kill_session(session: u32) {
    for (pid, _) in all_in_session(session) {
        signal(pid, "KILL");
    }
}

/// Sends a signal; who is gone needs none.
pub fn signal(pid: u32, name: &str) {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{name}"), &pid.to_string()]);
    let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// The processor time that a process has used, in user and kernel together; nothing when it is
/// gone.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    stat(pid).map(|stat| TICK * stat.ticks)
}

/// True when a process has ended, whether or not somebody has asked how.
pub fn is_gone(pid: u32) -> bool {
    stat(pid).is_none_or(|stat| stat.is_over())
}

/// True when a process of this host has a UDP port, in its network namespace.
pub fn has_udp_port(pid: u32, port: u16) -> bool {
    let wanted = format!(":{port:04X} ");
    ["udp", "udp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        text.lines().any(|line| {
            line.split_whitespace()
                .nth(1)
                .is_some_and(|local| format!("{local} ").ends_with(&wanted))
        })
    })
}

struct Stat {
    name: String,
    state: char,
    session: u32,
    ticks: u32,
}

impl Stat {
    fn is_over(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

fn all_in_session(session: u32) -> Vec<(u32, Stat)> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?))).filter(|(_, it)| it.session == session).collect()
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything.
    let (head, rest) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u32>().ok();
    let ticks = number(11)? + number(12)?;
    Some(Stat { name, state: fields.first()?.chars().next()?, session: number(3)?, ticks })
}
