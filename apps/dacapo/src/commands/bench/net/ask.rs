//! [`Ask`]: what the near end asks of the far end, and the session that comes of it.
//!
//! ```text
//!   near --{"dacapo_net":1,"id":7,"what":"bulk",…}--> far: bounded, checked, published
//!        <--{"id":7,"ok":true,"session":"net-…"}--
//!        <--{"id":7,"ok":true,"result":{…}}--          when the run is over
//! ```
//!
//! What it is not: the run itself (`bulk`, `echo`).
//!
//! Invariants: what is asked has bounds, whoever asks; no text of a peer gets into a session file
//! but the graph, which is one line of printable characters, and of what comes out of it every flow
//! is one of bytes: a peer never names a file of this host.

use crate::cli::{NetDirection, NetTransport, NetWait, net_word};
use clap::ValueEnum;
use dacapo_qos::{SessionFile, Source};
use serde_json::{Value, json};
use std::time::Duration;

/// The session in which is asked.
pub const CONTROL: &str = "bench-net";

/// The longest question and answer.
pub const MESSAGE_LEN_MAX: usize = 64 * 1024;

/// The version of the questions.
const VERSION: u64 = 1;

/// Bytes of a unit in a measurement of delays.
pub const ECHO_LEN: u32 = 64;

/// What a flow over UDP sends at most when nothing is said.
const UDP_BPS: u64 = 100_000_000_000;

/// What is asked at most.
const FLOWS_MAX: u64 = 16;
const UNIT_LENS: std::ops::RangeInclusive<u64> = 16..=1 << 20;
const RATES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;
const DURATION_MAX: Duration = Duration::from_secs(3_600);
const GRAPH_LEN_MAX: usize = 1_024;

/// The session in which the near end asks.
pub fn control_file() -> String {
    let flow = |name: &str, from: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nsource = {{ raw = true }}\n\
             unit_max = \"{MESSAGE_LEN_MAX} B\"\n\
             attributes = {{ loss = 0, order = \"ordered\", integrity = \"checked\" }}\n"
        )
    };
    let (ask, answer) = (flow("ask", "participant"), flow("answer", "creator"));
    let title = "Measurements of the network: dacapo bench net HOST";
    format!(
        "[session]\nname = \"{CONTROL}\"\ntitle = \"{title}\"\ngive_up = \"5 s\"\n{ask}{answer}"
    )
}

/// What is measured in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// How much goes through.
    Bulk,
    /// How long a small unit takes there and back.
    Echo,
}

/// What the near end asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Answers have it too.
    pub id: u64,
    /// What is measured.
    pub run: Run,
    /// What is below the graph.
    pub transport: NetTransport,
    /// The modules, in the words of a session file.
    pub graph: String,
    /// Who sends.
    pub direction: NetDirection,
    /// Flows each way.
    pub flows: u16,
    /// Bytes of a unit.
    pub unit_len: u32,
    /// What a flow sends at most, in bit/s; none is as fast as it goes.
    pub rate_bps: Option<u64>,
    /// How long is sent at most.
    pub duration: Duration,
    /// How many bytes are sent each way at most.
    pub bytes: Option<u64>,
    /// How both ends wait.
    pub wait: NetWait,
}

impl Ask {
    /// The bound of each flow, in bit/s; none where the transport keeps the pace.
    pub fn bound_bps(&self) -> Option<u64> {
        match self.transport {
            NetTransport::Udp => Some(self.rate_bps.unwrap_or(UDP_BPS)),
            NetTransport::Tcp
            | NetTransport::Shm
            | NetTransport::Quic
            | NetTransport::QuicDatagram => self.rate_bps,
        }
    }

    /// The names of the flows that the near end sends, and of those that it receives.
    pub fn flow_names(&self) -> (Vec<String>, Vec<String>) {
        let names = |name: &str| (0..self.flows).map(|at| format!("{name}{at}")).collect();
        match (self.run, self.direction) {
            (Run::Echo, _) => (vec!["ping".to_owned()], vec!["pong".to_owned()]),
            (Run::Bulk, NetDirection::Up) => (names("up"), Vec::new()),
            (Run::Bulk, NetDirection::Down) => (Vec::new(), names("down")),
            (Run::Bulk, NetDirection::Both) => (names("up"), names("down")),
        }
    }

    /// Units that each flow sends at most.
    pub fn units_max(&self) -> u64 {
        let share = self.bytes.map(|bytes| bytes.div_ceil(u64::from(self.flows.max(1))));
        share.map_or(u64::MAX, |bytes| bytes.div_ceil(u64::from(self.unit_len)).max(1))
    }

    /// The session of the run.
    ///
    /// # Errors
    /// What is wrong with the graph.
    pub fn session_file(&self, name: &str) -> Result<String, String> {
        let graph = graph(&self.graph)?;
        let (up, down) = self.flow_names();
        let bound = self.bound_bps().map(|bps| format!("bound = \"{bps} bit/s\"\n"));
        let (bound, len) = (bound.unwrap_or_default(), self.unit_len);
        let transport = net_word(self.transport);
        let flow = |name: &String, from: &str| {
            format!(
                "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nsource = {{ raw = true }}\n\
                 unit_max = \"{len} B\"\n{bound}transport = \"{transport}\"\n\
                 attributes = {{ receivers = {{ max = 1 }} }}\ngraph = {graph}\n"
            )
        };
        let up: String = up.iter().map(|name| flow(name, "participant")).collect();
        let down: String = down.iter().map(|name| flow(name, "creator")).collect();
        let text = format!("[session]\nname = \"{name}\"\ngive_up = \"5 s\"\n{up}{down}");
        let file = SessionFile::parse(&text, "graph").map_err(|errors| problems(&errors))?;
        let is_bytes = file.flows.iter().all(|flow| *flow.source == Source::Raw);
        if is_bytes { Ok(text) } else { Err("the graph is more than a graph".to_owned()) }
    }

    /// As it is sent.
    pub fn to_json(&self) -> Value {
        json!({
            "dacapo_net": VERSION,
            "id": self.id,
            "what": match self.run { Run::Bulk => "bulk", Run::Echo => "echo" },
            "transport": net_word(self.transport),
            "graph": self.graph,
            "direction": net_word(self.direction),
            "flows": self.flows,
            "unit_len": self.unit_len,
            "rate_bps": self.rate_bps,
            "duration_ms": self.duration.as_millis() as u64,
            "bytes": self.bytes,
            "wait": net_word(self.wait),
        })
    }

    /// What a peer has sent.
    ///
    /// # Errors
    /// What is wrong with it, for the peer.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        if value.get("dacapo_net").and_then(Value::as_u64) != Some(VERSION) {
            return Err(format!(
                "not a question of `dacapo bench net`, or of another version than {VERSION}: use \
                 the same version at both ends"
            ));
        }
        let run = match text(value, "what")? {
            "bulk" => Run::Bulk,
            "echo" => Run::Echo,
            other => return Err(format!("{other:?} cannot be measured here")),
        };
        let (flows, unit_len) = (number(value, "flows")?, number(value, "unit_len")?);
        let duration = Duration::from_millis(number(value, "duration_ms")?);
        let rate_bps = optional(value, "rate_bps")?;
        check(1..=FLOWS_MAX, flows, "flows")?;
        check(UNIT_LENS, unit_len, "bytes of a unit")?;
        check(RATES, rate_bps.unwrap_or(UDP_BPS), "bit/s")?;
        if duration > DURATION_MAX || duration.is_zero() {
            return Err(format!("{duration:?} is not within an hour"));
        }
        Ok(Self {
            id: number(value, "id")?,
            run,
            transport: choice(value, "transport")?,
            graph: graph(text(value, "graph")?)?,
            direction: choice(value, "direction")?,
            flows: flows as u16,
            unit_len: unit_len as u32,
            rate_bps,
            duration,
            bytes: optional(value, "bytes")?.map(|bytes| bytes.max(1)),
            wait: choice(value, "wait")?,
        })
    }
}

/// What is wrong with a graph, without the lines of a file that nobody has written, and once for
/// all flows.
pub fn problems(errors: &dacapo_qos::Errors) -> String {
    let text = errors.to_string();
    let lines = text.lines().filter_map(|line| match line.split_once(": flow[") {
        Some((_, of)) => of.strip_prefix("0].").map(str::to_owned),
        None => Some(line.to_owned()),
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// A graph in the words of a session file, from those of the command line.
///
/// # Errors
/// What is wrong with it.
pub fn graph(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.len() > GRAPH_LEN_MAX {
        return Err(format!("a graph of more than {GRAPH_LEN_MAX} bytes"));
    }
    // One line that cannot become two, or a part of the next.
    let is_plain = |c: char| (c.is_ascii_graphic() && c != '\\' && c != '#') || c == ' ';
    if !text.chars().all(is_plain) || text.contains("'''") || text.contains("\"\"\"") {
        return Err("a graph of other characters than those of a session file".to_owned());
    }
    if text.starts_with('[') {
        return Ok(text.to_owned());
    }
    let names: Vec<&str> = text.split([',', '!']).map(str::trim).collect();
    if names == [""] {
        return Ok("[]".to_owned());
    }
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(format!("{name:?} is no name of a module; see `dacapo modules`")),
        None => Ok(format!("[\"{}\"]", names.join("\", \""))),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value.get(key).and_then(Value::as_str).ok_or_else(|| format!("no {key}"))
}

fn number(value: &Value, key: &str) -> Result<u64, String> {
    value.get(key).and_then(Value::as_u64).ok_or_else(|| format!("no {key}"))
}

fn optional(value: &Value, key: &str) -> Result<Option<u64>, String> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(number) => number.as_u64().map(Some).ok_or_else(|| format!("no {key}")),
    }
}

fn choice<T: ValueEnum>(value: &Value, key: &str) -> Result<T, String> {
    let word = text(value, key)?;
    T::from_str(word, false).map_err(|_| format!("{key}: there is no {word:?}"))
}

fn check(allowed: std::ops::RangeInclusive<u64>, found: u64, what: &str) -> Result<(), String> {
    if allowed.contains(&found) {
        return Ok(());
    }
    Err(format!("{found} {what}: {} to {} are allowed", allowed.start(), allowed.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        Ask {
            id: 7,
            run: Run::Bulk,
            transport: NetTransport::Udp,
            graph: graph("segment,sequence").unwrap(),
            direction: NetDirection::Both,
            flows: 2,
            unit_len: 1_400,
            rate_bps: None,
            duration: Duration::from_secs(5),
            bytes: Some(10_000),
            wait: NetWait::Block,
        }
    }

    #[test]
    fn a_question_is_read_as_it_was_written() {
        let asked = ask();
        assert_eq!(Ask::from_json(&asked.to_json()), Ok(asked));
    }

    #[test]
    fn what_is_asked_has_bounds() {
        let wrong = [
            ("dacapo_net", json!(2)),
            ("id", json!(-1)),
            ("what", json!("everything")),
            ("transport", json!("pigeon")),
            ("graph", json!("a\nb")),
            ("direction", json!(7)),
            ("flows", json!(0)),
            ("flows", json!(65_537)),
            ("unit_len", json!(15)),
            ("unit_len", json!(u64::MAX)),
            ("rate_bps", json!(1)),
            ("rate_bps", json!("fast")),
            ("duration_ms", json!(0)),
            ("duration_ms", json!(u64::MAX)),
            ("bytes", json!([])),
            ("wait", json!(null)),
        ];
        for (key, value) in wrong {
            let mut question = ask().to_json();
            question[key] = value.clone();
            assert!(Ask::from_json(&question).is_err(), "{key} {value}");
        }
    }

    #[test]
    fn the_flows_of_a_run_are_those_that_were_asked_for() {
        let text = ask().session_file("net-1").unwrap();
        let file = SessionFile::parse(&text, "test").unwrap();
        let names: Vec<&str> = file.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["up0", "up1", "down0", "down1"]);
        // 10,000 bytes are 5,000 each, in units of 1,400.
        assert_eq!(ask().units_max(), 4);
        SessionFile::parse(&control_file(), "test").unwrap();
    }

    #[test]
    fn a_graph_is_a_graph_and_nothing_more() {
        assert_eq!(graph(" segment, sequence "), Ok("[\"segment\", \"sequence\"]".to_owned()));
        assert_eq!(graph(""), Ok("[]".to_owned()));
        let table = "[{ module = \"sequence\", hold = \"60 ms\" }]";
        assert_eq!(graph(table), Ok(table.to_owned()));
        let stolen = "[]\n[[flow]]\nname = \"x\"\nsource = { file = \"/etc/passwd\" }";
        for wrong in [stolen, "[\"\"\"", "['''", "a b", "a,,b", "[] # x", "[\"\\u0041\"]"] {
            assert!(graph(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["[", "[] source = { file = \"x\" }", "[\"segment\"], x = [", "[\"a", "[1]"] {
            let asked = Ask { graph: wrong.to_owned(), ..ask() };
            assert!(asked.session_file("net-1").is_err(), "{wrong:?}");
        }
    }
}
