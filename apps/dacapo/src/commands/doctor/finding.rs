//! [`Finding`]: what one check found, how good that is, and what to do about it.
//!
//! Invariant: a warning and a failure say what to do.

use crate::output::Ink;
use serde_json::{Value, json};

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Ok,
    /// Good to know, and neither good nor bad.
    Info,
    /// It works, but worse than it could.
    Warn,
    /// It does not work.
    Fail,
}

impl State {
    /// The word for it, in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    /// How the word is set off.
    pub fn ink(self) -> Ink {
        match self {
            Self::Ok => Ink::Good,
            Self::Info => Ink::Plain,
            Self::Warn => Ink::Fair,
            Self::Fail => Ink::Bad,
        }
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check; it stays the same, scripts look for it.
    pub check: String,
    /// How good it is.
    pub state: State,
    /// What is so.
    pub found: String,
    /// What to do, where there is something to do.
    pub advice: Option<String>,
}

impl Finding {
    /// It is as it should be.
    pub fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { check: check.into(), state: State::Ok, found: found.into(), advice: None }
    }

    /// It is good to know.
    pub fn info(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { state: State::Info, ..Self::ok(check, found) }
    }

    /// It could be better.
    pub fn warn(
        check: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { state: State::Warn, ..Self::ok(check, found) }.advise(advice)
    }

    /// It does not work.
    pub fn fail(
        check: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { state: State::Fail, ..Self::ok(check, found) }.advise(advice)
    }

    /// The same with advice.
    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// The finding for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "check": self.check,
            "state": self.state.name(),
            "found": self.found,
            "advice": self.advice,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_an_object_of_four_keys() {
        assert_eq!(
            Finding::fail("identity", "none", "make one").to_json(),
            json!({ "check": "identity", "state": "fail", "found": "none", "advice": "make one" })
        );
        assert_eq!(
            Finding::info("cpus", "2").to_json(),
            json!({ "check": "cpus", "state": "info", "found": "2", "advice": null })
        );
    }
}
