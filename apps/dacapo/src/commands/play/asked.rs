//! [`Asked`]: commands that the peer has not answered yet, and who gave them.
//!
//! ```text
//!   key ----------+                                      +-> a line for the user
//!   local socket -+-> control (out of band) -> answer ---+-> JSON for the program
//! ```

use crate::app::App;
use crate::local::{LocalControl, Request, refusal};
use dacapo::command::{Answer, MediaCommand};
use dacapo::offer::{FlowOffer, Medium};
use dacapo::text::sanitise;
use dacapo::{Command, Error, Outcome, SessionId, Ticket};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The longest text of a peer's refusal that is shown, in bytes.
const TEXT_LEN_MAX: usize = 512;

/// Commands that wait for their answers.
#[derive(Default)]
pub struct Asked {
    waiting: BTreeMap<Ticket, Waiting>,
    stands: Answer,
}

struct Waiting {
    command: MediaCommand,
    at: Instant,
    /// The local program that asked; else it was a key.
    local: Option<u32>,
}

impl Asked {
    /// How the medium stood at the last answer.
    pub fn stands(&self) -> &Answer {
        &self.stands
    }

    /// Sends a command that a key stands for.
    pub fn ask_for_key(
        &mut self,
        app: &mut App,
        session: SessionId,
        command: MediaCommand,
    ) -> Result<(), Error> {
        self.ask(app, session, command, None)
    }

    /// Does what a local program asks.
    pub fn ask_for_local(
        &mut self,
        app: &mut App,
        session: SessionId,
        local: &mut LocalControl,
        token: u32,
        request: &Request,
        uri: &str,
    ) {
        let text = match request {
            Request::About => {
                let about = json!({ "ok": true, "pid": std::process::id(), "uri": uri });
                return local.answer(token, &about);
            }
            Request::Command(text) => text,
        };
        let asked = match text.parse() {
            Ok(command) => {
                self.ask(app, session, command, Some(token)).map_err(|error| error.to_string())
            }
            Err(fault) => Err(fault.to_string()),
        };
        if let Err(text) = asked {
            local.answer(token, &refusal(text));
        }
    }

    fn ask(
        &mut self,
        app: &mut App,
        session: SessionId,
        command: MediaCommand,
        local: Option<u32>,
    ) -> Result<(), Error> {
        let ticket = app.command(Command::Media(session, command))?;
        self.waiting.insert(ticket, Waiting { command, at: Instant::now(), local });
        Ok(())
    }

    /// The peer has answered, if this was asked of it. Returns a line for the user when a key had
    /// asked.
    pub fn handle_answer(
        &mut self,
        ticket: Ticket,
        outcome: Result<Outcome, Error>,
        local: &mut Option<LocalControl>,
    ) -> Option<String> {
        let waiting = self.waiting.remove(&ticket)?;
        let round_trip = waiting.at.elapsed();
        let answer = match outcome {
            Ok(Outcome::Answer(answer)) => Ok(answer),
            Ok(_) => Err("the peer's answer is none".to_owned()),
            Err(error) => Err(sanitise(&error.to_string(), TEXT_LEN_MAX)),
        };
        if let Ok(stands) = answer {
            self.stands = stands;
        }
        let Some(token) = waiting.local else {
            let text = answer.map_or_else(|text| text, |answer| answer.to_string());
            return Some(format!("{}: {text}", waiting.command));
        };
        let json = match answer {
            Ok(answer) => to_json(&answer, round_trip),
            Err(text) => refusal(text),
        };
        if let Some(local) = local {
            local.answer(token, &json);
        }
        None
    }

    /// No answer will come any more.
    pub fn refuse_all(&mut self, local: &mut Option<LocalControl>, text: &str) {
        let Some(local) = local else { return };
        for token in std::mem::take(&mut self.waiting).into_values().filter_map(|it| it.local) {
            local.answer(token, &refusal(text));
        }
    }
}

fn to_json(answer: &Answer, round_trip: Duration) -> serde_json::Value {
    json!({
        "ok": true,
        "answer": answer.to_string(),
        "state": answer.state.to_string(),
        "position_ns": answer.position_ns,
        "generation": answer.generation,
        "speed_permille": answer.speed_permille,
        "fps_millihertz": answer.fps,
        "round_trip_us": u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX),
    })
}

/// Pictures per second of a flow, in thousandths; nothing for one without pictures.
pub fn nominal_fps(flow: &FlowOffer) -> Option<u32> {
    let Medium::Video { rate, scale, .. } = flow.medium else { return None };
    let millihertz = u64::from(rate).checked_mul(1_000)?.checked_div(u64::from(scale))?;
    u32::try_from(millihertz).ok()
}
