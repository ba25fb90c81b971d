//! Exit codes, and the failure that a command ends with.
//!
//! The one list of codes; `docs/exit-codes.md` and `dacapo --help` print the same.
//!
//! Invariant: a number keeps its meaning for ever; scripts depend on it.

use dacapo::{Code, Error};
use dacapo_sys::signal::Signal;
use std::fmt;
use std::process::ExitCode;

/// The code of wrong usage, which the parser of arguments ends with, and its meaning.
pub const USAGE: (u8, &str) = (2, "wrong usage");

/// What every help says of them.
pub const HELP: &str = "\
Exit codes:
  0  done                               5  a session or media file is invalid
  1  a failure while it ran             6  a ledger did not close, or a hash differs
  2  wrong usage                        130, 143  ended by SIGINT, SIGTERM,
  3  the peer cannot be reached                   after closing in order

Colours appear on terminals only, and not with NO_COLOR. See docs/exit-codes.md.";

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked.
    Success,
    /// Something failed while it ran.
    Failure,
    /// Nothing answers at the address.
    Unreachable,
    /// A session file or a media file is invalid.
    Invalid,
    /// A ledger did not close, or a hash differs.
    Mismatch,
    /// A signal ended it, after everything was closed in order.
    Signal(Signal),
}

impl Exit {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Success,
        Self::Failure,
        Self::Unreachable,
        Self::Invalid,
        Self::Mismatch,
        Self::Signal(Signal::HangUp),
        Self::Signal(Signal::Interrupt),
        Self::Signal(Signal::Terminate),
    ];

    /// What it means, as `docs/exit-codes.md` says it.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => "done",
            Self::Failure => "a failure while it ran",
            Self::Unreachable => "the peer cannot be reached",
            Self::Invalid => "a file is invalid",
            Self::Mismatch => "the account is wrong",
            Self::Signal(Signal::HangUp) => "the terminal went away (SIGHUP)",
            Self::Signal(Signal::Interrupt) => "interrupted (SIGINT, Ctrl-C)",
            Self::Signal(Signal::Terminate) => "terminated (SIGTERM)",
        }
    }

    /// The number that the shell sees; that of wrong usage is [`USAGE`].
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Unreachable => 3,
            Self::Invalid => 5,
            Self::Mismatch => 6,
            Self::Signal(Signal::HangUp) => 129,
            Self::Signal(Signal::Interrupt) => 130,
            Self::Signal(Signal::Terminate) => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command could not do what it was asked: printed as `dacapo: text`.
#[derive(Debug)]
pub struct Failure {
    /// The code to end with.
    pub exit: Exit,
    /// What, where, and what to do.
    pub text: String,
}

impl Failure {
    /// A failure of what was being done, with its particulars.
    pub fn new(exit: Exit, what: &str, text: impl fmt::Display) -> Self {
        Self { exit, text: format!("{what}: {text}") }
    }

    /// Something of this host failed while `what` was being done.
    pub fn run_time(what: &str, text: impl fmt::Display) -> Self {
        Self::new(Exit::Failure, what, text)
    }

    /// An error of the core while `what` was being done.
    pub fn core(what: &str, error: &Error) -> Self {
        Self::new(exit_of(error.code), what, error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dacapo: {}", self.text)
    }
}

/// The exit code of an error of the core.
pub fn exit_of(code: Code) -> Exit {
    match code {
        Code::Unreachable | Code::NotListening => Exit::Unreachable,
        Code::IllegalGraph => Exit::Invalid,
        _ => Exit::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_every_code_with_its_meaning_and_no_other() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/exit-codes.md");
        let text = std::fs::read_to_string(document).unwrap();
        let rows = text.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?.parse::<u8>().ok()?, cells.next()?))
        });
        let named: Vec<(u8, &str)> = rows.collect();
        let mut all = Exit::ALL.map(|exit| (exit.code(), exit.meaning())).to_vec();
        all.push(USAGE);
        all.sort_unstable();
        assert_eq!(named, all);
    }
}
