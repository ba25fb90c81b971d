//! [`Played`]: how a session went: accounts, files, errors, and the exit code that follows.

use super::errors::causes;
use super::figures;
use crate::account::{self, Account};
use crate::contact;
use crate::exit::{Exit, Failure, exit_of};
use crate::output;
use dacapo::access::Snapshot;
use dacapo::access::progress::Passes;
use dacapo::uri::Uri;
use dacapo::{Code, Error};
use dacapo_sys::signal::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a session went.
pub struct Played {
    uri: Uri,
    /// For people.
    pub title: String,
    /// The peer's fingerprint.
    pub peer: String,
    /// The ledgers of flows that have ended.
    pub accounts: Vec<Account>,
    /// What the sinks saw.
    pub flows: Vec<Snapshot>,
    /// What went wrong, for people.
    pub errors: Vec<String>,
    /// The signal that ended it.
    pub signal: Option<Signal>,
    /// How often contact was lost.
    pub contact_losses: u32,
    /// For how long in all, where it came back.
    pub without_contact: Duration,
    /// What the path took after each change, in bytes of UDP payload.
    pub path_mtus: Vec<usize>,
    /// Joining again may help.
    pub may_join_again: bool,
    failed: Option<Exit>,
}

impl Played {
    /// Nothing has been played yet.
    pub fn new(uri: Uri) -> Self {
        Self {
            uri,
            title: String::new(),
            peer: String::new(),
            accounts: Vec::new(),
            flows: Vec::new(),
            errors: Vec::new(),
            signal: None,
            contact_losses: 0,
            without_contact: Duration::ZERO,
            path_mtus: Vec::new(),
            may_join_again: false,
            failed: None,
        }
    }

    /// The session has ended with this error; the first one counts, and that a peer closed is none.
    pub fn end(&mut self, error: &Error) {
        if error.code != Code::Closed && self.failed.is_none() {
            let host = self.uri.authority();
            self.errors.push(match error.code {
                Code::NotServed => format!("{error}; `dacapo ls {host}` lists what is"),
                _ => error.to_string(),
            });
            self.failed = Some(exit_of(error.code));
            self.may_join_again = contact::may_join_again(error);
        }
    }

    /// It has failed with this code; the first one counts.
    pub fn fail(&mut self, exit: Exit) {
        self.failed.get_or_insert(exit);
    }

    /// It never began.
    pub fn failure(&self) -> Failure {
        let text = self.errors.first().map_or("the peer closed the session", String::as_str);
        Failure::new(self.failed.unwrap_or(Exit::Failure), &format!("play {}", self.uri), text)
    }

    /// The code to end with.
    pub fn exit(&self) -> Exit {
        if let Some(signal) = self.signal {
            return Exit::Signal(signal);
        }
        let has_errors = self.flows.iter().any(|flow| !flow.errors.is_empty());
        let failed = self.failed.or(has_errors.then_some(Exit::Failure));
        failed.unwrap_or_else(|| account::verdict(&self.accounts))
    }

    /// The files that were written; those that nothing came for are gone.
    pub fn saved(&self) -> Vec<&Path> {
        let named = self.flows.iter().filter_map(|flow| flow.saved.as_deref());
        let paths: BTreeSet<&Path> = named.filter(|path| path.exists()).collect();
        paths.into_iter().collect()
    }

    /// Prints accounts and files.
    pub fn print(&self) {
        account::print(&self.accounts);
        for flow in &self.flows {
            for Passes { count, sha256 } in &flow.passes {
                let times = if *count == 1 { "pass" } else { "passes" };
                output::line(format_args!("{}: {count} {times}, SHA-256 {sha256}", flow.flow));
            }
        }
        for path in self.saved() {
            let len = std::fs::metadata(path).map_or(0, |about| about.len());
            output::line(format_args!("saved {}  {len} bytes", path.display()));
        }
    }

    /// Prints what went wrong, each cause once.
    pub fn note_errors(&self) {
        for error in &self.errors {
            output::note(format_args!("dacapo: play {}: {error}", self.uri));
        }
        for cause in causes(&self.flows) {
            output::note(format_args!("dacapo: play {}: {cause}", self.uri));
        }
    }

    /// All of it for programs.
    pub fn to_json(&self) -> Value {
        let account = |flow: &Snapshot| self.accounts.iter().find(|it| it.flow == flow.flow);
        let first = self.flows.iter().find(|flow| flow.lateness.count > 0);
        let flows = self.flows.iter().map(|flow| figures::to_json(flow, first, account(flow)));
        let saved = self.saved().into_iter().map(Path::display).map(|path| path.to_string());
        json!({
            "uri": self.uri.to_string(),
            "title": self.title,
            "peer": self.peer,
            "peer_is_verified": false,
            "flows": flows.collect::<Vec<_>>(),
            "saved": saved.collect::<Vec<_>>(),
            "contact_losses": self.contact_losses,
            "without_contact_s": self.without_contact.as_secs_f64(),
            "path_mtu_changes": self.path_mtus,
            "errors": self.errors,
            "exit_code": self.exit().code(),
        })
    }

    /// The first file that was written.
    pub fn first_saved(&self) -> Option<PathBuf> {
        self.saved().first().map(|path| path.to_path_buf())
    }
}
