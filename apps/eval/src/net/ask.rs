//! [`Ask`]: what the near end asks of the far end.
//!
//! ```text
//!   near --{"dacapo_net":1,"id":7,"what":"bulk",…}--> far: bounded, checked, published
//!        <--{"id":7,"ok":true,"session":"net-…"}--
//!        <--{"id":7,"ok":true,"result":{…}}--          when the run is over
//! ```
//!
//! Of what is sent once for several far ends the near end owns the session, and each is told where
//! to join it:
//!
//! ```text
//!   near --{…,"join":{"port":40001,"session":"net-…"}}--> far: joins it at who has asked
//!        <--{"id":7,"ok":true,"result":{…}}--
//! ```
//!
//! Invariant: what is asked has bounds, whoever asks.

use super::session::graph;
use crate::cli::{NetDirection, NetTransport, NetWait, net_word};
use clap::ValueEnum;
use dacapo::spec::Property;
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

/// What a flow over UDP, or over XTP, sends at most when nothing is said.
const UDP_BPS: u64 = 100_000_000_000;

/// The same over a stream to each of several: nothing waits for the slowest, who is cut off when it
/// stands still for 42 ms.
const TCP_MULTICAST_BPS: u64 = 200_000_000;

/// What is asked at most.
const FLOWS_MAX: u64 = 16;
const UNIT_LENS: std::ops::RangeInclusive<u64> = 16..=1 << 20;
const RATES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;
const DURATION_MAX: Duration = Duration::from_secs(3_600);

/// What is measured in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// How much goes through.
    Bulk,
    /// How long a small unit takes there and back.
    Echo,
}

/// The session that a far end is to join: at the address of who asks, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The port where it is served.
    pub port: u16,
    /// Its name.
    pub session: String,
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
    /// What a far end joins that is one of several; none where it owns the session of the run.
    pub join: Option<Join>,
}

impl Ask {
    /// The bound of each flow, in bit/s; none where the transport keeps the pace.
    pub fn bound_bps(&self) -> Option<u64> {
        if self.transport.gives(Property::CongestionControl) {
            let is_stream_to_several = self.transport.is_shared();
            return self.rate_bps.or(is_stream_to_several.then_some(TCP_MULTICAST_BPS));
        }
        Some(self.rate_bps.unwrap_or(UDP_BPS))
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
            "join": self.join.as_ref().map(Join::to_json),
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
        let ask = Self {
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
            join: value.get("join").filter(|it| !it.is_null()).map(Join::from_json).transpose()?,
        };
        ask.check_audience().map(|()| ask)
    }

    /// Whether what is sent once for several is joined, and goes one way; nothing else is joined.
    fn check_audience(&self) -> Result<(), String> {
        let is_one_way = self.run == Run::Bulk && self.direction == NetDirection::Up;
        match (self.transport.is_shared(), &self.join) {
            (false, None) => Ok(()),
            (true, Some(_)) if is_one_way => Ok(()),
            (true, Some(_)) => Err("what is sent once for several goes up only".to_owned()),
            _ => Err(format!("{} and join do not go together", net_word(self.transport))),
        }
    }
}

impl Join {
    fn to_json(&self) -> Value {
        json!({ "port": self.port, "session": self.session })
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let port = u16::try_from(number(value, "port")?).ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| "port: 1 to 65535 are allowed".to_owned())?;
        // Whether it can be the name of a session is found when it is joined.
        Ok(Self { port, session: text(value, "session")?.to_owned() })
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
pub mod tests {
    use super::*;

    pub fn named(name: &str) -> NetTransport {
        NetTransport::from_str(name, false).unwrap()
    }

    pub fn ask() -> Ask {
        Ask {
            id: 7,
            run: Run::Bulk,
            transport: named("udp"),
            graph: graph("segment,sequence").unwrap(),
            direction: NetDirection::Both,
            flows: 2,
            unit_len: 1_400,
            rate_bps: None,
            duration: Duration::from_secs(5),
            bytes: Some(10_000),
            wait: NetWait::Block,
            join: None,
        }
    }

    fn to_several() -> Ask {
        let join = Some(Join { port: 40_001, session: "net-1".to_owned() });
        let (transport, direction) = (named("udp-multicast"), NetDirection::Up);
        Ask { transport, direction, join, ..ask() }
    }

    #[test]
    fn a_question_is_read_as_it_was_written() {
        for asked in [ask(), to_several()] {
            assert_eq!(Ask::from_json(&asked.to_json()), Ok(asked));
        }
    }

    #[test]
    fn what_is_sent_once_for_several_is_joined_and_goes_one_way() {
        let wrong = [
            ("transport", json!("udp")),
            ("direction", json!("both")),
            ("what", json!("echo")),
            ("join", json!(null)),
            ("join", json!({ "port": 0, "session": "a" })),
            ("join", json!({ "port": 65_536, "session": "a" })),
            ("join", json!({ "port": 1 })),
            ("join", json!("192.0.2.1")),
        ];
        for (key, value) in wrong {
            let mut question = to_several().to_json();
            question[key] = value.clone();
            assert!(Ask::from_json(&question).is_err(), "{key} {value}");
        }
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
}
