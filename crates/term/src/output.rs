//! What commands print: lines, tables, colours.
//!
//! The only writer of standard output. A reader that went away (`dacapo ls | head -1`) is no error;
//! what else is lost is remembered for the end ([`lost`]).
//!
//! Invariants: colours only on a terminal and without `NO_COLOR`; a table without them has no bytes
//! beyond what it says. On a terminal nothing that is meant for people is broken inside a word;
//! elsewhere lines are whole.

mod table;

use crate::wrap;
use dacapo_sys::term;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
pub use table::Table;

/// The width of a terminal that does not know its own.
const COLUMNS: usize = 80;

/// Tells a process whose output is shown in another one's how much room there is for it.
pub const COLUMNS_ENV: &str = "DACAPO_COLUMNS";

/// The first error of standard output.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Why not all that was printed is where it should be, such as that a disk is full.
#[must_use]
pub fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Remembers an error of standard output, but that nobody reads any more.
fn remember(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error);
    }
}

/// Prints a line on standard output; on a terminal broken at words where it is too long.
pub fn line(text: impl fmt::Display) {
    remember(writeln!(io::stdout().lock(), "{}", fitted(&text, columns())));
}

/// How many characters fit a line of standard output; nothing when it is for a file or a program.
pub fn columns() -> Option<usize> {
    let told = std::env::var(COLUMNS_ENV).ok().and_then(|text| text.parse().ok());
    told.or_else(|| columns_of(io::stdout().as_fd()))
}

fn columns_of(fd: BorrowedFd<'_>) -> Option<usize> {
    let known = || term::size(fd).map_or(COLUMNS, |size| usize::from(size.columns));
    term::is_terminal(fd).then(known)
}

fn fitted(text: &impl fmt::Display, columns: Option<usize>) -> String {
    let text = text.to_string();
    columns.map_or(text.clone(), |columns| wrap::wrapped(&text, columns))
}

/// Prints a value as JSON on standard output, readable.
pub fn json(value: &serde_json::Value) {
    remember(writeln!(io::stdout().lock(), "{value:#}"));
}

/// Prints a text that is meant for a file, such as a script: half of it must not pass for all.
///
/// # Errors
/// It could not be written, and not because nobody reads any more.
pub fn document(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints a line on standard error; on a terminal broken at words where it is too long.
pub fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{}", fitted(&text, columns_of(io::stderr().as_fd())));
}

/// How a word is set off on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// As usual.
    Plain,
    /// A heading.
    Bold,
    /// As it should be.
    Good,
    /// Not as one would wish.
    Fair,
    /// Not as it should be.
    Bad,
}

impl Ink {
    fn escape(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Good => "\x1b[32m",
            Self::Fair => "\x1b[33m",
            Self::Bad => "\x1b[1;31m",
        }
    }
}

/// True when standard output is a terminal that may be coloured.
pub fn has_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && io::stdout().is_terminal()
}

/// A word with its ink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    ink: Ink,
}

impl Cell {
    /// A word that is set off.
    pub fn new(text: impl Into<String>, ink: Ink) -> Self {
        Self { text: text.into(), ink }
    }
}

impl<T: fmt::Display> From<T> for Cell {
    fn from(value: T) -> Self {
        Self::new(value.to_string(), Ink::Plain)
    }
}
