//! [`Asked`]: commands that the peer has not answered yet, and who gave them.
//!
//! ```text
//!   key ----------+                                      +-> a line for the user
//!   local socket -+-> control (out of band) -> answer ---+-> JSON for the program
//! ```

use crate::core_app::App;
use crate::local::{LocalControl, Request, refusal};
use dacapo::Error;
use dacapo::command::{Answer, MediaCommand};
use dacapo::engine::{Command, Done, SessionId};
use dacapo::offer::Medium;
use dacapo::offer::{FLOW_ALL, FlowOffer, MODULE_ACCESS};
use dacapo::text::sanitise;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The longest text of a peer's refusal that is shown, in bytes.
const TEXT_LEN_MAX: usize = 512;

/// Commands that wait for their answers.
#[derive(Default)]
pub struct Asked {
    waiting: BTreeMap<u32, Waiting>,
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
        let now = app.reactor().now();
        let request = app
            .core()
            .handle_command(
                now,
                Command::Control {
                    session,
                    flow: FLOW_ALL,
                    module: MODULE_ACCESS,
                    payload: command.encode().to_vec(),
                },
            )
            .and_then(Done::request)?;
        self.waiting.insert(request, Waiting { command, at: Instant::now(), local });
        Ok(())
    }

    /// The peer has answered. Returns a line for the user when a key had asked.
    pub fn handle_answer(
        &mut self,
        request: u32,
        answer: Result<Vec<u8>, Error>,
        local: &mut Option<LocalControl>,
    ) -> Option<String> {
        let waiting = self.waiting.remove(&request)?;
        let round_trip = waiting.at.elapsed();
        let answer = read(answer);
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

fn read(answer: Result<Vec<u8>, Error>) -> Result<Answer, String> {
    let bytes = answer.map_err(|error| sanitise(&error.to_string(), TEXT_LEN_MAX))?;
    Answer::decode(&bytes).map_err(|fault| format!("the peer's answer is none: {fault}"))
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
