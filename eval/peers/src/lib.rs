//! What every peer program here has in common: its command line, its windows and its one result.
//!
//! ```text
//!   PROGRAM KIND sink   ADDR:PORT SIZE SECONDS block|spin   listens, counts what arrives
//!   PROGRAM KIND source ADDR:PORT SIZE SECONDS block|spin   sends as fast as it goes
//!   PROGRAM KIND echo   ADDR:PORT SIZE SECONDS block|spin   listens, sends back
//!   PROGRAM KIND ping   ADDR:PORT SIZE SECONDS block|spin   sends, waits for it, again
//!
//!   |- warm up -|------ window: SECONDS ------|- grace -|
//!   first message                             both report what was in the window
//! ```
//!
//! A ping that connects for each message sends one, and no last one, where SECONDS is 0: what ends
//! the other end is a ping of longer.
//!
//! Who listens prints `ready`, and every role ends with one line of JSON on standard output. What
//! it is not: a protocol of ours; nothing passes between the two ends but the messages themselves.
//!
//! Invariant: bytes and CPU time are counted over the same window, at each end by its own clock.

mod latency;
pub mod sockets;
mod stats;
mod usage;
mod window;

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

pub use latency::RoundTrips;
pub use stats::{histogram, percentile};
pub use usage::cpu_s;
pub use window::{GRACE, Sequence, WARM_UP, Window};

/// Socket buffers that every program asks for where the choice is its own, in bytes.
pub const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// What the last message begins with where each has a connection of its own: the echo leaves then.
pub const LAST: u8 = 1;

/// How long an end waits for the other one before it says that nobody is there.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Which end a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Listens and counts.
    Sink,
    /// Sends as fast as it goes.
    Source,
    /// Listens and sends back what comes.
    Echo,
    /// Sends one message, waits until it is back, and again.
    Ping,
}

/// A command line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What of the program: a protocol or a mode.
    pub kind: String,
    /// Which end.
    pub role: Role,
    /// Where to listen, or whom to call.
    pub address: SocketAddr,
    /// Bytes of a message.
    pub size: usize,
    /// How long the window is.
    pub window: Duration,
    /// Ask again and again instead of sleeping until something comes.
    pub is_spinning: bool,
}

/// What went wrong, for a person.
#[derive(Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<nix::Error> for Failure {
    fn from(error: nix::Error) -> Self {
        Self(error.to_string())
    }
}

impl Order {
    /// Reads the arguments after the name of the program.
    ///
    /// # Errors
    /// What is missing or cannot be read.
    pub fn read(words: &[String]) -> Result<Self, Failure> {
        let [kind, role, address, size, seconds, wait] = words else {
            let usage = "KIND sink|source|echo|ping ADDR:PORT SIZE SECONDS block|spin";
            return Err(Failure(format!("the command line is: {usage}")));
        };
        let bad = |what: &str, word: &str| Failure(format!("`{word}` is no {what}"));
        let role = match role.as_str() {
            "sink" => Role::Sink,
            "source" => Role::Source,
            "echo" => Role::Echo,
            "ping" => Role::Ping,
            _ => return Err(bad("role (sink, source, echo or ping)", role)),
        };
        let is_spinning = match wait.as_str() {
            "spin" => true,
            "block" => false,
            _ => return Err(bad("way to wait (block or spin)", wait)),
        };
        let seconds = seconds.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
        Ok(Self {
            kind: kind.clone(),
            role,
            address: address.parse().map_err(|_| bad("address with a port", address))?,
            size: size.parse().ok().filter(|&n| n >= 1).ok_or(bad("size of 1 up", size))?,
            window: seconds.ok_or(bad("number of seconds", words[4].as_str()))?,
            is_spinning,
        })
    }
}

/// Says that this end listens now.
///
/// # Errors
/// Nobody reads standard output.
pub fn say_ready() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(b"ready\n")?;
    Ok(out.flush()?)
}

/// The report of a sink whose messages have no numbers, because they share one body: what was lost
/// shows in the bytes of both ends only.
#[must_use]
pub fn unnumbered(mut report: serde_json::Value) -> serde_json::Value {
    report["lost"] = serde_json::Value::Null;
    report
}

/// Runs a program: reads the command line, carries out the order, prints the result.
pub fn run(
    carry_out: impl FnOnce(&Order) -> Result<serde_json::Value, Failure>,
) -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Order::read(&words).and_then(|order| carry_out(&order)) {
        Ok(result) => {
            println!("{result}");
            std::process::ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{}: {failure}", words.join(" "));
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_line_is_read() {
        let order = Order::read(&words("tcp sink 127.0.0.1:9 64 0.5 spin")).unwrap();
        assert_eq!(order.kind, "tcp");
        assert_eq!(order.role, Role::Sink);
        assert_eq!(order.size, 64);
        assert_eq!(order.window, Duration::from_millis(500));
        assert!(order.is_spinning);
    }

    #[test]
    fn what_is_wrong_with_a_command_line_is_said() {
        for (text, part) in [
            ("tcp sink", "the command line is"),
            ("tcp both 127.0.0.1:9 64 1 spin", "`both`"),
            ("tcp sink here 64 1 spin", "`here`"),
            ("tcp sink 127.0.0.1:9 7 1 spin", "`7`"),
            ("tcp sink 127.0.0.1:9 64 -1 spin", "`-1`"),
            ("tcp sink 127.0.0.1:9 64 1 sleep", "`sleep`"),
        ] {
            let text = Order::read(&words(text)).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }
}
