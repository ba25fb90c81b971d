//! [`Look`]: what a process uses, as the system and its core say.
//!
//! Sources: proc_pid_smaps(5), proc_pid_status(5), proc_pid_fd(5), getrusage(2).

use crate::exit::Failure;
use dacapo::engine::Core;
use serde_json::{Value, json};
use std::fs;

/// What a process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Memory that is no file's, in KiB: heap and stacks.
    pub memory_kib: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Processor time since its start, in microseconds, before it looked.
    pub cpu_us: u64,
    /// Processor time that looking took, in microseconds: the system sums up all its memory.
    pub look_us: u64,
    /// Sessions of its core.
    pub sessions: u64,
    /// Control connections of its core.
    pub connections: u64,
}

impl Look {
    /// Looks at this process with this core.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn at(core: &Core) -> Result<Self, Failure> {
        let cpu_us = || dacapo_sys::process::cpu_time().as_micros() as u64;
        let began_us = cpu_us();
        let memory = field("/proc/self/smaps_rollup", "Anonymous:")?;
        let threads = field("/proc/self/status", "Threads:")?;
        let failed = |error| Failure::run_time("bench scale: /proc/self/fd", error);
        // The list itself is one.
        let descriptors = fs::read_dir("/proc/self/fd").map_err(failed)?.count().saturating_sub(1);
        Ok(Self {
            memory_kib: memory,
            threads,
            descriptors: descriptors as u64,
            sessions: core.sessions().count() as u64,
            connections: core.connection_count() as u64,
            cpu_us: began_us,
            look_us: cpu_us() - began_us,
        })
    }

    /// As it is told to the near end, and printed.
    pub fn to_json(self) -> Value {
        json!({
            "memory_kib": self.memory_kib,
            "threads": self.threads,
            "descriptors": self.descriptors,
            "cpu_us": self.cpu_us,
            "look_us": self.look_us,
            "sessions": self.sessions,
            "connections": self.connections,
        })
    }

    /// What the far end has told.
    pub fn from_json(value: &Value) -> Option<Self> {
        let at = |key: &str| value.get(key).and_then(Value::as_u64);
        Some(Self {
            memory_kib: at("memory_kib")?,
            threads: at("threads")?,
            descriptors: at("descriptors")?,
            cpu_us: at("cpu_us")?,
            look_us: at("look_us")?,
            sessions: at("sessions")?,
            connections: at("connections")?,
        })
    }
}

/// A number behind a word in a file of the system.
fn field(path: &str, name: &str) -> Result<u64, Failure> {
    let failed = |text: String| Failure::run_time(&format!("bench scale: {path}"), text);
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| failed(format!("it has no {name}")))
}
