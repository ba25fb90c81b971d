//! The arguments of `send`, `recv`, `explain` and `modules`, and how attributes and paths are read.

use super::{parse_give_up, parse_place};
use clap::{Args, ValueEnum, ValueHint};
use dacapo::Place;
use dacapo::attributes::{AttributeKey, Attributes, PathAssumption, level};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The host where `dacapo recv` listens; IPv6 addresses in brackets.
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,
    /// Files; `-` is standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// What the flow must be, such as "loss<=1%, delay<=50ms"; may be repeated.
    #[arg(long, value_name = "ATTRIBUTES", value_parser = parse_attributes)]
    ask: Vec<Attributes>,
    /// No loss, in order, nothing twice, changes noticed: what a file needs, and usual here.
    #[arg(long)]
    reliable: bool,
    /// What is sent is of this format, and `dacapo recv` has the same: units are whole packets of
    /// it, so that what follows a lost one can be read.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// What is older when it is received is of no more use, 1 ms to 24 h: the flow is made so that
    /// as little as possible is lost or late, and neither is waited for.
    #[arg(long, value_name = "DURATION", value_parser = super::parse_duration, requires = "format")]
    #[arg(conflicts_with = "reliable")]
    pub deadline: Option<Duration>,
    /// What the receiver calls standard input.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Give the session up after so long without contact, 0s to 24h; else what its creator says
    /// counts, usually 5min.
    #[arg(long, value_name = "DURATION", value_parser = parse_give_up)]
    pub give_up: Option<Duration>,
    /// Keep trying for so long when nothing listens there yet, 1 ms to 24 h; without it that ends
    /// the command at once on this host, and in a second or two elsewhere.
    #[arg(long, value_name = "DURATION", value_parser = super::parse_duration)]
    pub wait: Option<Duration>,
    /// The session to join there; usually "files", or the name of the format.
    #[arg(long, value_name = "SESSION")]
    to: Option<String>,
    /// Print the account as JSON at the end.
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors, and JSON when asked for.
    #[arg(long, short)]
    pub quiet: bool,
}

impl SendArgs {
    /// What is asked, if anything is.
    ///
    /// # Errors
    /// Two askings contradict each other.
    pub fn asked(&self) -> Result<Option<Attributes>, String> {
        let asked = all(&self.ask, self.reliable)?;
        let Some(deadline) = self.deadline else { return Ok(asked) };
        let live = live(deadline);
        let asked = asked.map_or(Ok(live.clone()), |asked| live.tightened(&asked));
        asked.map(Some).map_err(|error| error.to_string())
    }

    /// The session to join.
    pub fn session(&self) -> &str {
        self.to.as_deref().unwrap_or_else(|| session(self.format))
    }
}

/// What a format is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// An MPEG transport stream (ISO/IEC 13818-1): 7 packets of 188 bytes a unit.
    Mpegts,
}

/// The session where a format, or any file, is sent and received.
fn session(format: Option<Format>) -> &'static str {
    format.map_or(crate::commands::transfer::SESSION, |Format::Mpegts| "mpegts")
}

/// What is shown while it comes: in order and unaltered, old parts not at all, as much as can be.
/// One altered place in the stream would make the rest of it look old.
fn live(deadline: Duration) -> Attributes {
    let ns = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
    Attributes::new()
        .min(AttributeKey::Order, level::ORDERED)
        .min(AttributeKey::Integrity, level::INTEGRITY_CHECKED)
        .max(AttributeKey::Deadline, ns)
        .weight(AttributeKey::Loss, 100)
}

/// Arguments of `recv`.
#[derive(Debug, Args)]
pub struct RecvArgs {
    /// Save files in this folder, which is made when it is missing.
    #[arg(long, short, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Write what comes to standard output, one file after the other.
    #[arg(long, conflicts_with_all = ["out", "force"])]
    pub stdout: bool,
    /// What comes is of this format, as `dacapo send` has it: what is missing of it is passed over.
    #[arg(long, value_enum, requires = "stdout")]
    pub format: Option<Format>,
    /// Write over files that are there.
    #[arg(long)]
    pub force: bool,
    /// Go on listening after somebody has sent.
    #[arg(long)]
    pub keep: bool,
    /// Listen at this address (IP or IP:PORT) instead of loopback; may be repeated.
    #[arg(long, short, value_name = "ADDR", value_parser = parse_place)]
    pub listen: Vec<Place>,
    /// The port, UDP and TCP; 0 lets the system choose.
    #[arg(long, short, value_name = "N", default_value_t = dacapo::host::PORT)]
    pub port: u16,
    /// What the flow must be besides what the sender asks; may be repeated.
    #[arg(long, value_name = "ATTRIBUTES", value_parser = parse_attributes)]
    ask: Vec<Attributes>,
    /// No loss, in order, nothing twice, changes noticed, whatever the sender asks.
    #[arg(long)]
    reliable: bool,
    /// What is assumed of the network, such as lan or "wireless,loss=1%".
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub path: Option<PathAssumption>,
    /// Give a session up after so long without contact, 0s to 24h; usually 5min.
    #[arg(long, value_name = "DURATION", value_parser = parse_give_up)]
    pub give_up: Option<Duration>,
    /// The name of the session; usually "files", or the name of the format.
    #[arg(long, value_name = "SESSION")]
    name: Option<String>,
    /// Print JSON, one event per line.
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors, and JSON when asked for.
    #[arg(long, short)]
    pub quiet: bool,
}

impl RecvArgs {
    /// What is asked, if anything is.
    ///
    /// # Errors
    /// Two askings contradict each other.
    pub fn asked(&self) -> Result<Option<Attributes>, String> {
        all(&self.ask, self.reliable)
    }

    /// The session to serve.
    pub fn session(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| session(self.format))
    }
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The session file.
    #[arg(value_name = "SESSION.toml", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// What is assumed of the network, such as lan or "wireless,loss=1%", whatever the file says.
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub path: Option<PathAssumption>,
    /// As a participant would ask besides: "delay<=100ms, reliable"; may be repeated.
    #[arg(long, value_name = "ATTRIBUTES", value_parser = parse_attributes)]
    ask: Vec<Attributes>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl ExplainArgs {
    /// What is asked, if anything is.
    ///
    /// # Errors
    /// Two askings contradict each other.
    pub fn asked(&self) -> Result<Option<Attributes>, String> {
        all(&self.ask, false)
    }
}

/// Arguments of `modules`.
#[derive(Debug, Args)]
pub struct ModulesArgs {
    /// One module or transport, with everything that is known of it.
    pub name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// All askings together.
pub(super) fn all(ask: &[Attributes], reliable: bool) -> Result<Option<Attributes>, String> {
    let reliable = reliable.then(Attributes::reliable);
    let mut together: Option<Attributes> = None;
    for asked in reliable.iter().chain(ask) {
        together = Some(match together {
            None => asked.clone(),
            Some(before) => before.tightened(asked).map_err(|error| error.to_string())?,
        });
    }
    Ok(together)
}

pub(super) fn parse_attributes(text: &str) -> Result<Attributes, String> {
    Attributes::parse_text(text).map_err(|error| error.to_string())
}

pub(super) fn parse_path(text: &str) -> Result<PathAssumption, String> {
    PathAssumption::parse(text).map_err(|error| error.to_string())
}
