//! [`Fault`]: a row of the table; [`Scale`]: how much of it is run; [`Seen`]: what came out.

use crate::progress::Progress;
use serde_json::Value;
use std::ops::Range;

/// A row of the table of faults.
#[derive(Clone, Copy)]
pub struct Fault {
    /// Its name on the command line: words of `a-z0-9` joined by `-`.
    pub id: &'static str,
    /// What goes wrong.
    pub fault: &'static str,
    /// What makes it go wrong.
    pub injector: &'static str,
    /// What must happen.
    pub expected: &'static str,
    /// The test that checks it with every change.
    pub test: &'static str,
    /// The command that gives its figure.
    pub bench: Option<&'static str>,
    /// Runs it; an error says what broke and how it is repeated.
    pub run: fn(&Scale) -> Result<Seen, String>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// In words, one line.
    pub figure: String,
    /// The same for programs.
    pub json: Value,
}

impl Seen {
    /// A figure in words and for programs.
    #[must_use]
    pub fn new(figure: String, json: Value) -> Self {
        Self { figure, json }
    }
}

/// How much is run.
#[derive(Clone, Debug)]
pub struct Scale {
    full: bool,
    first: u64,
    seeds: Option<u64>,
    progress: Progress,
}

impl Scale {
    /// What a test with every change runs: seconds for the whole table.
    #[must_use]
    pub fn short() -> Self {
        Self { full: false, first: 0, seeds: None, progress: Progress::silent() }
    }

    /// What the table is made of: minutes.
    #[must_use]
    pub fn full() -> Self {
        Self { full: true, first: 0, seeds: None, progress: Progress::on_terminal() }
    }

    /// This many seeds, whatever a row would run.
    #[must_use]
    pub fn with_seeds(self, seeds: Option<u64>) -> Self {
        Self { seeds, ..self }
    }

    /// Seeds from this one on.
    #[must_use]
    pub fn from_seed(self, first: u64) -> Self {
        Self { first, ..self }
    }

    /// The seeds (or set-ups, or paths) of a row, by its own short and full figures.
    #[must_use]
    pub fn seeds(&self, short: u64, full: u64) -> Range<u64> {
        let count = self.seeds.unwrap_or(if self.full { full } else { short }).max(1);
        self.first..self.first.saturating_add(count)
    }

    /// True for the table.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Where it is told how far it is.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}
