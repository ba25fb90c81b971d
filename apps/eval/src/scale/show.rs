//! [`Measured`]: what was measured, for people and for programs, beside the goals.

use super::look::Look;
use crate::output::{self, Cell, Ink, Table, line};
use serde_json::{Value, json};
use std::time::Duration;

/// Goals: of a connection and of a further session at each end, of threads beyond the processors,
/// of an idle process, and of what opening and closing leaves behind.
const CONNECTION_KIB: f64 = 48.0;
const SESSION_KIB: f64 = 8.0;
const THREADS: u64 = 8;
const IDLE_PERCENT: f64 = 0.1;
const GROWTH_KIB: f64 = 1_024.0;

/// Both ends at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Both {
    pub near: Look,
    pub far: Look,
}

/// Both ends before and after a time in which nothing was done.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    pub from: Both,
    pub to: Both,
    pub time: Duration,
}

impl Idle {
    /// Of one processor, in per cent: near and far.
    fn percent(&self) -> [f64; 2] {
        let of = |from: Look, to: Look| {
            // What the first look took is no part of the time between them.
            let us = to.cpu_us.saturating_sub(from.cpu_us + from.look_us) as f64;
            us / self.time.as_micros().max(1) as f64 * 100.0
        };
        [of(self.from.near, self.to.near), of(self.from.far, self.to.far)]
    }
}

/// All that was measured.
pub struct Measured {
    pub sessions: u64,
    pub connections: u64,
    pub opens: u64,
    /// With one connection, and with all.
    pub before: Both,
    pub connected: Both,
    /// After the first opens and closes, and after all.
    pub warm: Both,
    pub churned: Both,
    /// With all sessions, and after them.
    pub held: Both,
    pub after: Both,
    /// Idle with one connection and no session, and with all.
    pub one: Idle,
    pub many: Idle,
    pub opens_in: Duration,
    pub opened_in: Duration,
    pub closed_in: Duration,
}

/// A figure of both ends with its goal.
struct Row {
    key: &'static str,
    text: String,
    unit: &'static str,
    values: [f64; 2],
    most: Option<f64>,
}

impl Row {
    fn is_met(&self) -> Option<bool> {
        self.most.map(|most| self.values.iter().all(|value| *value <= most))
    }
}

impl Measured {
    fn rows(&self) -> Vec<Row> {
        let row = |key, text: &str, unit, values, most| {
            let text = text.to_owned();
            Row { key, text, unit, values, most }
        };
        let each = |from: Both, to: Both, count: u64| {
            let one = |from: Look, to: Look| {
                (to.memory_kib as f64 - from.memory_kib as f64) / count.max(1) as f64
            };
            [one(from.near, to.near), one(from.far, to.far)]
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let threads = [self.held.near.threads as f64, self.held.far.threads as f64];
        let connection = each(self.before, self.connected, self.connections - 1);
        let session = each(self.churned, self.held, self.sessions);
        let growth = each(self.warm, self.churned, 1);
        let many = format!("idle, {} sessions", self.sessions);
        let growth_text = format!("growth by {} opens and closes", self.opens);
        vec![
            row("connection_kib", "a connection", "KiB", connection, Some(CONNECTION_KIB)),
            row("session_kib", "a further session", "KiB", session, Some(SESSION_KIB)),
            row("threads", "threads", "", threads, Some((processors + THREADS) as f64)),
            row("idle_percent_one", "idle, 1 connection", "%", self.one.percent(), None),
            row("idle_percent", &many, "%", self.many.percent(), Some(IDLE_PERCENT)),
            row("growth_kib", &growth_text, "KiB", growth, Some(GROWTH_KIB)),
        ]
    }

    fn rates(&self) -> [(&'static str, &'static str, f64); 3] {
        let per_s = |count: u64, time: Duration| count as f64 / time.as_secs_f64().max(1e-9);
        [
            ("opened_per_s", "opened, all kept", per_s(self.sessions, self.opened_in)),
            ("closed_per_s", "closed", per_s(self.sessions, self.closed_in)),
            ("opens_and_closes_per_s", "opened and closed", per_s(self.opens, self.opens_in)),
        ]
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let mut figures = serde_json::Map::new();
        for row in self.rows() {
            let [near, far] = row.values;
            let figure = json!({ "near": near, "far": far, "goal": row.most, "met": row.is_met() });
            figures.insert(row.key.to_owned(), figure);
        }
        let rates = self.rates().map(|(key, _, rate)| (key.to_owned(), json!(rate)));
        let both = |it: &Both| json!({ "near": it.near.to_json(), "far": it.far.to_json() });
        json!({
            "sessions": self.sessions,
            "connections": self.connections,
            "opens": self.opens,
            "idle_seconds": self.many.time.as_secs_f64(),
            "figures": figures,
            "rates": rates.into_iter().collect::<serde_json::Map<_, _>>(),
            "looks": {
                "one_connection": both(&self.before),
                "connected": both(&self.connected),
                "warm": both(&self.warm),
                "churned": both(&self.churned),
                "held": both(&self.held),
                "after": both(&self.after),
            },
        })
    }

    /// For people.
    pub fn print(&self) {
        line(format_args!(
            "{} sessions over {} connections between two processes on this host",
            self.sessions, self.connections
        ));
        let mut table = Table::new(&["", "near", "far", "", "goal", ""]);
        for row in self.rows() {
            let number = |value: f64| match row.unit {
                "" => format!("{value:.0}"),
                "%" => format!("{value:.3}"),
                _ => format!("{value:.1}"),
            };
            let [near, far] = row.values;
            let goal = row.most.map_or_else(String::new, |most| format!("≤ {most}"));
            let verdict = match row.is_met() {
                Some(true) => Cell::new("met", Ink::Good),
                Some(false) => Cell::new("missed", Ink::Bad),
                None => "".into(),
            };
            let (near, far) = (number(near), number(far));
            table.row(vec![
                row.text.into(),
                near.into(),
                far.into(),
                row.unit.into(),
                goal.into(),
                verdict,
            ]);
        }
        table.print();
        for (_, text, rate) in self.rates() {
            output::line(format_args!("{text}: {rate:.0} sessions per second"));
        }
        line(format_args!(
            "after all: {} and {} sessions, {} and {} connections, {} and {} descriptors",
            self.after.near.sessions,
            self.after.far.sessions,
            self.after.near.connections,
            self.after.far.connections,
            self.after.near.descriptors,
            self.after.far.descriptors
        ));
        line(
            "Memory is what is no file's; the kernel's for sockets is not in it. % of a processor.",
        );
    }
}
