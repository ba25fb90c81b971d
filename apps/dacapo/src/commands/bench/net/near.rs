//! [`Near`]: the end that asks.
//!
//! ```text
//!   connect -> control session --ask--> answer: a session's name -> join, run, close
//!                                 <---- result of the far end
//! ```
//!
//! What it is not: the run (`run`), or the figures (`figures`).
//!
//! Invariants: no wait is without a bound, and a signal ends each; an answer to another question
//! is passed over.

use super::ask::{Ask, CONTROL};
use super::far::control_uri;
use super::figures::Report;
use super::flow::Pulse;
use super::run::{End, Side};
use crate::exit::{Exit, Failure, exit_of};
use dacapo::core::{Code, Error};
use dacapo::host::HostConfig;
use dacapo::{Endpoint, Host, Received, Session};
use serde_json::Value;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);

/// The far end answers within this time, beyond what the run takes.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// The end that asks.
pub struct Near {
    endpoint: Endpoint,
    host: String,
    control: Session,
}

impl Near {
    /// Connects to the far end.
    ///
    /// # Errors
    /// Nothing answers there, or no far end.
    pub fn connect(host: &str, config: HostConfig) -> Result<Self, Failure> {
        let failed = |error: Error| {
            let hint = match error.code {
                Code::NotServed => ": start `dacapo bench net --listen` there",
                Code::Unreachable => ": does `dacapo bench net --listen` run there?",
                _ => "",
            };
            Failure::new(
                exit_of(error.code),
                &format!("bench net {host}"),
                format!("{error}{hint}"),
            )
        };
        let endpoint = Host::configured(config).and_then(Endpoint::with_host).map_err(failed)?;
        let control = endpoint.connect(&control_uri(host)).map_err(failed)?;
        control.activate().map_err(failed)?;
        Ok(Self { endpoint, host: host.to_owned(), control })
    }

    /// The address of the far end.
    pub fn remote(&self) -> String {
        self.control.remote().to_string()
    }

    /// Runs what is asked: what it was here, and what the far end says of itself.
    ///
    /// # Errors
    /// It is refused, or ends before its end; what `watch` says.
    pub fn run(
        &self,
        ask: &Ask,
        mut watch: impl FnMut(&Pulse) -> Result<(), Failure>,
    ) -> Result<(End, Report, Vec<dacapo::FlowInfo>), Failure> {
        let failed = |error: Error| lost(&self.host, error);
        let question = ask.to_json().to_string();
        self.control.send("ask", question.as_bytes()).map_err(failed)?;
        let answer = self.answer(ask, &mut watch)?;
        let name = answer.get("session").and_then(Value::as_str);
        let name = name.filter(|name| *name != CONTROL).ok_or_else(|| self.nonsense(&answer))?;
        let uri = format!("dacapo://{}/{name}", self.host);
        let session = self.endpoint.connect(&uri).map_err(failed)?;
        let flows = session.flows();
        let end = End::run(Side::Near, &session, ask, &mut watch)?;
        let answer = self.answer(ask, &mut watch)?;
        let report = answer.get("result").and_then(Report::from_json);
        Ok((end, report.ok_or_else(|| self.nonsense(&answer))?, flows))
    }

    fn answer(
        &self,
        ask: &Ask,
        watch: &mut dyn FnMut(&Pulse) -> Result<(), Failure>,
    ) -> Result<Value, Failure> {
        let (began, idle) = (Instant::now(), Pulse::default());
        while began.elapsed() < ANSWER_MAX + ask.duration {
            let bytes = match self.control.recv_timeout("answer", TICK) {
                Ok(Received::Unit(bytes)) => bytes,
                Ok(Received::Nothing) => {
                    watch(&idle)?;
                    continue;
                }
                Ok(Received::End) => return Err(self.gone("it has ended the conversation")),
                Err(error) => return Err(lost(&self.host, error)),
            };
            let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if answer.get("id").and_then(Value::as_u64) != Some(ask.id) {
                continue;
            }
            if answer.get("ok").and_then(Value::as_bool) == Some(true) {
                return Ok(answer);
            }
            let text = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
            let is_invalid = answer.get("code") == Some(&Value::from(Exit::Invalid.code()));
            let exit = if is_invalid { Exit::Invalid } else { Exit::Failure };
            return Err(Failure::new(exit, "bench net: the far end refused", text));
        }
        Err(self.gone("it has not answered in time"))
    }

    fn gone(&self, text: &str) -> Failure {
        Failure::run_time(&format!("bench net: the far end at {}", self.host), text)
    }

    fn nonsense(&self, answer: &Value) -> Failure {
        self.gone(&format!("it answered {answer}; use the same version at both ends"))
    }

    /// Takes leave.
    pub fn leave(self) {
        // What was measured is known; the far end sees it either way.
        let _ = self.control.close();
    }
}

/// The far end is gone.
fn lost(host: &str, error: Error) -> Failure {
    let hint = match error.code {
        Code::ContactLost | Code::GivenUp | Code::PeerRestarted | Code::Closed => {
            "; is the far end still running?"
        }
        _ => "",
    };
    let what = format!("bench net: the far end at {host}");
    Failure::new(exit_of(error.code), &what, format!("{error}{hint}"))
}
