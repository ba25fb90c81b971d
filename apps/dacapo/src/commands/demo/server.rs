//! [`Server`]: the second process of a demo, and what it prints.
//!
//! Invariant: it does not outlive this value.

use crate::app::App;
use crate::exit::Failure;
use crate::output::{self, line};
use serde_json::Value;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A server, as a child of this process.
pub struct Server {
    child: Child,
    output: ChildStdout,
    has_ended: bool,
    /// What it has printed and nobody has seen.
    text: String,
    authority: Option<String>,
    speaks_json: bool,
    accounts: Vec<Value>,
}

/// What stands before its lines.
const MARK: &str = "serve | ";

/// What is served, and how.
pub struct Serving<'a> {
    /// The session file.
    pub session: &'a Path,
    /// So many times faster than the media play.
    pub speed: f64,
    /// What is assumed of the network; its accounts are then kept, too.
    pub path: Option<&'a str>,
}

impl Server {
    /// Starts to serve a session file; what it prints is watched with this token.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(app: &App, serving: &Serving<'_>, token: u32) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::run_time("demo: start the server", error);
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .arg("serve")
            .arg(serving.session)
            .args(["--port", "0", "--once", "--speed", &serving.speed.to_string()])
            .args(serving.path.iter().flat_map(|path| ["--json", "--path", path]))
            .envs(room().map(|columns| (output::COLUMNS_ENV, columns)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let Some(output) = child.stdout.take() else {
            return Err(Failure::run_time("demo: start the server", "it has no output"));
        };
        app.watch(output.as_fd(), token).map_err(failed)?;
        Ok(Self {
            child,
            output,
            has_ended: false,
            text: String::new(),
            authority: None,
            speaks_json: serving.path.is_some(),
            accounts: Vec::new(),
        })
    }

    /// Reads what is there; true when there are whole lines to relay.
    pub fn handle_ready(&mut self, app: &App) -> bool {
        let mut buffer = [0; 4_096];
        match self.output.read(&mut buffer) {
            Ok(len) if len > 0 => {
                let bytes = buffer.get(..len).unwrap_or_default();
                self.text.push_str(&String::from_utf8_lossy(bytes));
            }
            _ => {
                self.has_ended = true;
                app.unwatch(self.output.as_fd());
            }
        }
        self.text.contains('\n')
    }

    /// Host and port, once it is ready.
    pub fn authority(&mut self) -> Option<String> {
        if self.authority.is_none()
            && let Some((first, _)) = self.text.split_once('\n')
        {
            let ready = match self.speaks_json {
                true => json(first)["ready"].as_str().map(str::to_owned),
                false => first.strip_prefix("ready ").map(str::to_owned),
            };
            let rest = ready.as_deref().and_then(|ready| ready.strip_prefix("dacapo://"));
            self.authority = rest.map(|rest| rest.trim_end_matches('/').to_owned());
        }
        self.authority.clone()
    }

    /// True when it prints nothing any more.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Prints the lines that it has printed, marked as its.
    pub fn relay(&mut self) {
        while let Some(end) = self.text.find('\n') {
            let rest = self.text.split_off(end + 1);
            let text = std::mem::replace(&mut self.text, rest);
            if !self.speaks_json {
                line(format_args!("{MARK}{}", text.trim_end()));
                continue;
            }
            let event = json(&text);
            words(&event).iter().for_each(|text| line(format_args!("{MARK}{text}")));
            if let Some(accounts) = event["accounts"].as_array() {
                self.accounts.extend(accounts.iter().cloned());
            }
        }
    }

    /// The accounts that it has printed, as in its JSON.
    pub fn accounts(&self) -> &[Value] {
        &self.accounts
    }

    /// Its exit code, when it ends before `end`; nothing when a signal ended it or it did not end.
    pub fn wait_until(&mut self, end: Instant) -> Option<i32> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
                _ => return None,
            }
        }
    }
}

/// The room that is left beside the mark, where lines have to fit.
fn room() -> Option<String> {
    output::columns().map(|columns| columns.saturating_sub(MARK.len()).max(1).to_string())
}

/// An event; what is none is nothing.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// What an event says to people; its accounts are shown apart.
fn words(event: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&event["event"]);
    if kind != "listening" {
        let (name, peer) = (text(&event["session"]), text(&event["peer"]));
        let error = text(&event["error"]);
        let words = [kind, name, peer, error].into_iter().filter(|word| !word.is_empty());
        return vec![words.collect::<Vec<String>>().join("  ")];
    }
    let mut lines = vec![format!("ready {}", text(&event["ready"]))];
    for session in event["sessions"].as_array().into_iter().flatten() {
        lines.push(format!("serving {}  {}", text(&session["uri"]), text(&session["title"])));
        for flow in session["flows"].as_array().into_iter().flatten() {
            let [name, medium, graph] = ["name", "medium", "graph"].map(|key| text(&flow[key]));
            lines.push(format!("  {name}: {medium}, {graph}"));
        }
    }
    lines
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
