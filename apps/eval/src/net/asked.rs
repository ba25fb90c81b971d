//! [`Asked`]: a far end that is asked, over a control session with it.
//!
//! ```text
//!   connect -> ask --> answer, answer …        look: has it answered before its time?
//! ```
//!
//! Invariants: no wait is without a bound, and a signal ends each; an answer to another question
//! is passed over.

use super::ask::Ask;
use super::far::control_uri;
use super::flow::Pulse;
use crate::exit::{Exit, Failure, exit_of};
use dacapo::{Code, Error};
use dacapo::{Deadline, Endpoint, Join, Received, Session};
use dacapo_base::Address;
use serde_json::Value;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);

/// The far end answers within this time, beyond what the run takes.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// A far end that is asked.
pub struct Asked {
    host: String,
    control: Session,
    /// An answer that came before anybody waited for one.
    early: Option<Value>,
}

impl Asked {
    /// Connects to a far end.
    ///
    /// # Errors
    /// Nothing answers there, or no far end.
    pub fn connect(
        endpoint: &Endpoint,
        host: &str,
        wait: Option<Duration>,
    ) -> Result<Self, Failure> {
        let failed = |error: Error| {
            let hint = match error.code {
                Code::NotServed => ": start `dacapo bench net --listen` there",
                Code::Unreachable | Code::NotListening => {
                    ": does `dacapo bench net --listen` run there?"
                }
                _ => "",
            };
            let what = format!("bench net {host}");
            Failure::new(exit_of(error.code), &what, format!("{error}{hint}"))
        };
        let how = wait.map_or_else(Join::new, |wait| Join::new().wait(wait));
        let control = endpoint.join(&control_uri(host), &how).map_err(failed)?;
        control.activate().map_err(failed)?;
        Ok(Self { host: host.to_owned(), control, early: None })
    }

    /// As it was named.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its address.
    pub fn remote(&self) -> Address {
        self.control.remote()
    }

    /// What errors of a run with it begin with.
    pub fn what(&self) -> String {
        what(&self.host)
    }

    /// Asks.
    ///
    /// # Errors
    /// It is gone.
    pub fn ask(&mut self, ask: &Ask) -> Result<(), Failure> {
        self.early = None;
        let question = ask.to_json().to_string();
        let sent = self.control.sender("ask").and_then(|mut it| it.send(question.as_bytes()));
        sent.map_err(|error| lost(&self.host, &error))
    }

    /// Waits for an answer.
    ///
    /// # Errors
    /// It refuses, or is gone; what `watch` says.
    pub fn answer(
        &mut self,
        ask: &Ask,
        watch: &mut dyn FnMut(&Pulse) -> Result<(), Failure>,
    ) -> Result<Value, Failure> {
        let (began, idle) = (Instant::now(), Pulse::default());
        while began.elapsed() < ANSWER_MAX + ask.duration {
            if let Some(answer) = self.early.take() {
                return Ok(answer);
            }
            match self.came(Deadline::after(TICK)) {
                Ok(Received::Nothing) => watch(&idle)?,
                came => self.early = self.read(ask, came)?,
            }
        }
        Err(self.gone("it has not answered in time"))
    }

    /// Looks whether it has refused, or is gone, without waiting; another answer is kept.
    ///
    /// # Errors
    /// It has, or is.
    pub fn look(&mut self, ask: &Ask) -> Result<(), Failure> {
        if self.early.is_none() {
            self.early = match self.came(Deadline::PAST) {
                Ok(Received::Nothing) => None,
                came => self.read(ask, came)?,
            };
        }
        Ok(())
    }

    fn came(&self, until: Deadline) -> Result<Received, Error> {
        self.control.receiver("answer")?.recv_by(until)
    }

    /// An answer out of what came; none when it is to another question.
    fn read(&self, ask: &Ask, came: Result<Received, Error>) -> Result<Option<Value>, Failure> {
        let bytes = match came {
            Ok(Received::Unit(bytes)) => bytes,
            Ok(Received::Nothing) => return Ok(None),
            Ok(Received::End) => return Err(self.gone("it has ended the conversation")),
            Err(error) => return Err(lost(&self.host, &error)),
        };
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if answer.get("id").and_then(Value::as_u64) != Some(ask.id) {
            return Ok(None);
        }
        if answer.get("ok").and_then(Value::as_bool) == Some(true) {
            return Ok(Some(answer));
        }
        let text = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
        let is_invalid = answer.get("code") == Some(&Value::from(Exit::Invalid.code()));
        let exit = if is_invalid { Exit::Invalid } else { Exit::Failure };
        Err(Failure::new(exit, &format!("{} refused", self.what()), text))
    }

    /// It is not there any more, or not as it should be.
    pub fn gone(&self, text: &str) -> Failure {
        Failure::run_time(&self.what(), text)
    }

    /// It has answered what is no answer.
    pub fn nonsense(&self, answer: &Value) -> Failure {
        self.gone(&format!("it answered {answer}; use the same version at both ends"))
    }

    /// Takes leave.
    pub fn leave(self) {
        // What was measured is known; the far end sees it either way.
        let _ = self.control.close();
    }
}

fn what(host: &str) -> String {
    format!("bench net: the far end at {host}")
}

/// The far end is gone, or was cut off.
pub fn lost(host: &str, error: &Error) -> Failure {
    let hint = match error.code {
        Code::ContactLost | Code::GivenUp | Code::PeerRestarted | Code::Closed => {
            "; is the far end still running, and fast enough for the --rate?"
        }
        _ => "",
    };
    Failure::new(exit_of(error.code), &what(host), format!("{error}{hint}"))
}
