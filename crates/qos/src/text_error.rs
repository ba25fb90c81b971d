//! [`TextError`]: what is wrong with a line of text that an application or a person gives.
//!
//! The part that is wrong, why, and what would be right; a command line has no lines to point at.
//!
//! ```text
//!   "dealy<=150ms": no attribute is called "dealy" (did you mean "delay"?); allowed: throughput, …
//!    part           what                                                    allowed
//! ```
//!
//! Invariant: text from outside is quoted, escaped and cut.

use std::error::Error;
use std::fmt;

use crate::problem::quoted;

/// Bytes of a text of attributes or of a path, at most.
pub const MAX_TEXT_LEN: usize = 4_096;

/// A text that does not say what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The part of the text that is wrong, in quotes and cut.
    pub part: String,
    /// What is wrong with it.
    pub what: String,
    /// What may be written instead.
    pub allowed: String,
}

impl TextError {
    pub(crate) fn new(part: &str, what: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { part: quoted(part), what: what.into(), allowed: allowed.into() }
    }

    /// Refuses a text that is longer than any that makes sense.
    pub(crate) fn check_len(text: &str) -> Result<(), Self> {
        if text.len() <= MAX_TEXT_LEN {
            return Ok(());
        }
        let what = format!("the text has {} bytes", text.len());
        Err(Self::new(text, what, format!("at most {MAX_TEXT_LEN}")))
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; allowed: {}", self.part, self.what, self.allowed)
    }
}

impl Error for TextError {}
