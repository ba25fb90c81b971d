//! `dacapo send`: connects to a host where `dacapo recv` listens, and sends files.
//!
//! ```text
//!   connect -> join (what is asked) -> Offered: the protocol -> set up -> activate
//!      standard input readable --> wake        progress …  FlowEnded -> close -> hashes
//! ```
//!
//! Invariants: what cannot be read is said before anything is sent; whatever ends it, the account
//! is printed.

use super::figures::{self, Pace};
use crate::account::{self, Account};
use crate::app::{App, AppEvent, interrupted};
use crate::cli::{Format, SendArgs, or_usage};
use crate::closing::Closing;
use crate::contact;
use crate::describe;
use crate::exit::{Exit, Failure, exit_of};
use crate::output::{self, line, note};
use crate::progress::Progress;
use crate::words::bytes_words;
use dacapo::attributes::{AttributeKey, Attributes};
use dacapo::failpoint;
use dacapo::offer::{Direction, FlowOffer};
use dacapo::port::Port;
use dacapo::transfer::{
    FileResult, FileSource, Input, Starved, TransferProgress, TransferSnapshot,
};
use dacapo::{Code, Command, Error, Event, FlowId, Join, PeerId, Session, SessionId, Ticket};
use dacapo_sys::signal::Signal;
use serde_json::json;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

const SLICE: Duration = Duration::from_millis(500);

/// How often a source that reads a pipe is looked at.
const PIPE_EVERY: Duration = Duration::from_millis(5);

/// The token of the pipe that is read.
const PIPE: u32 = 1;

/// The receiver ended the session by itself, in order, but too soon.
const CLOSED_EARLY: &str = "the receiver ended the session before everything had arrived";

/// What is said of a file of which units may be missing.
const NOT_CONFIRMED: &str = "sent; the receiver did not confirm all of it";

/// Runs the command.
pub fn run(args: &SendArgs) -> Result<Exit, Failure> {
    // Wrong usage is said before anything is opened.
    let attributes = or_usage(args.asked()).unwrap_or_else(Attributes::reliable);
    let mut pipe = None;
    let mut inputs = Vec::new();
    for path in &args.files {
        inputs.push(input(path, args, &mut pipe)?);
    }
    let mut progress = Progress::new(args.quiet || args.json);
    let mut app = App::open()?;
    let peer = app.connect(&args.host, args.wait, &mut progress)?;
    let how = Join::new().asks(&attributes).decide();
    let joining = app.command(Command::Join { peer, name: args.session().to_owned(), how });
    let what = format!("send to {}", args.host);
    let joining = joining.map_err(|error| Failure::core(&what, &error))?;
    let is_reliable = attributes.get(AttributeKey::Loss).and_then(|loss| loss.max) == Some(0);
    let (source, figures, starved) = FileSource::new(inputs, is_reliable);
    let source = Some(match args.format {
        Some(Format::Mpegts) => match args.deadline {
            Some(deadline) => source.of_mpegts().live(deadline),
            None => source.of_mpegts(),
        },
        None => source,
    });
    let pace = Pace::new();
    let sender = Sender {
        app,
        args,
        progress,
        peer,
        joining,
        session: None,
        id: None,
        is_reliable,
        source,
        figures,
        starved,
        pipe,
        is_watched: false,
        pace,
        accounts: Vec::new(),
        flow: None,
        failed: None,
        signal: None,
        closing: Closing::default(),
        is_over: false,
    };
    sender.run()
}

/// What a path stands for; the descriptor to watch is put aside where it is a pipe.
fn input(path: &Path, args: &SendArgs, pipe: &mut Option<OwnedFd>) -> Result<Input, Failure> {
    let invalid = |text: String| Failure { exit: Exit::Failure, text };
    let found = if path.as_os_str() == "-" {
        let from = io::stdin().as_fd().try_clone_to_owned();
        let from = from.map_err(|error| invalid(format!("send: standard input: {error}")))?;
        let name = args.name.clone().unwrap_or_else(|| "stdin".to_owned());
        Input::Stream { name, from: File::from(from) }
    } else {
        let is_host = names_host(&path.to_string_lossy());
        let hint = if is_host { " (the host comes before the files)" } else { "" };
        Input::file(path).map_err(|text| invalid(format!("send: {text}{hint}")))?
    };
    if let Input::Stream { from, .. } = &found {
        if pipe.is_some() {
            return Err(invalid("send: only one pipe at a time can be sent".to_owned()));
        }
        *pipe = from.as_fd().try_clone_to_owned().ok();
    }
    Ok(found)
}

/// Whether what was given for a file reads as a host with its port.
fn names_host(text: &str) -> bool {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    text.starts_with("dacapo://") || port.is_some_and(|port| port.is_ok())
}

struct Sender<'a> {
    app: App,
    args: &'a SendArgs,
    progress: Progress,
    peer: PeerId,
    joining: Ticket,
    /// The session, once it is set up.
    session: Option<Session>,
    /// Its number, from its offer on.
    id: Option<SessionId>,
    /// Every unit has to arrive.
    is_reliable: bool,
    source: Option<FileSource>,
    figures: TransferProgress,
    starved: Starved,
    /// A pipe that is being read.
    pipe: Option<OwnedFd>,
    is_watched: bool,
    pace: Pace,
    accounts: Vec<Account>,
    /// The place of the flow.
    flow: Option<usize>,
    failed: Option<Error>,
    signal: Option<Signal>,
    closing: Closing,
    is_over: bool,
}

impl Sender<'_> {
    fn run(mut self) -> Result<Exit, Failure> {
        while !self.is_over {
            self.watch_pipe();
            let wait = self.wait();
            match self.app.next(wait)? {
                Some(AppEvent::Event(session, event)) => self.handle_event(session, event),
                Some(AppEvent::Signal(signal)) => {
                    self.signal.get_or_insert(signal);
                    self.close();
                }
                Some(AppEvent::Ready(PIPE)) => self.handle_pipe(),
                Some(AppEvent::Ready(_) | AppEvent::Waits) | None => {}
            }
            if self.progress.is_due() && self.flow.is_some() {
                let text = self.pace.line(&self.figures);
                self.progress.show(&text);
            }
            if self.closing.is_over() {
                self.failed.get_or_insert_with(Closing::error);
                self.is_over = true;
            }
        }
        self.finish()
    }

    fn handle_event(&mut self, session: Option<SessionId>, event: Event) {
        match event {
            Event::Offered { flows, .. } => {
                self.id = session;
                self.handle_offer(&flows);
            }
            Event::Done { ticket, outcome } if ticket == self.joining => match outcome {
                Ok(_) => self.handle_ready(),
                Err(error) => self.handle_end(Some(error)),
            },
            Event::FlowEnded { account } => {
                self.accounts.push(Account::of(0, *account));
                self.close();
            }
            Event::ContactLost => self.say(&contact::lost(&self.args.host)),
            Event::ContactRestored { after } => {
                self.say(&contact::restored(&self.args.host, after));
            }
            Event::PathMtuChanged { from, to } => {
                self.say(&contact::mtu_changed(&self.args.host, from, to));
            }
            Event::PathHeld { loss_ppm, rate_bps } => {
                self.say(&contact::held(&self.args.host, loss_ppm, rate_bps));
            }
            Event::TransportReplaced { transport, reason, .. } => {
                self.say(&contact::stood_in("the transfer", &transport, &reason));
            }
            Event::FlowFailed { error, .. } => {
                self.failed.get_or_insert(error);
            }
            Event::Ended { error } => self.handle_end(error),
            _ => {}
        }
    }

    fn handle_offer(&mut self, flows: &[FlowOffer]) {
        let place = flows.iter().position(|flow| flow.direction == Direction::ToCreator);
        let Some((place, source)) = place.zip(self.source.take()) else {
            let to = self.args.session();
            let text = format!("{to} takes nothing; is it `dacapo recv`?");
            self.failed = Some(Error::new(Code::NoSuchThing, text));
            return self.close();
        };
        self.flow = Some(place);
        failpoint!("send.offered");
        if let Some(flow) = flows.get(place) {
            let fingerprint = self.app.endpoint.peer_fingerprint(self.peer);
            let fingerprint = fingerprint.map_or_else(|| "none".to_owned(), |it| it.to_string());
            self.say(&format!("peer {fingerprint} (unverified)"));
            self.say(&format!("protocol {}", describe::graph(flow)));
        }
        let mut ports: Vec<Option<Port>> = flows.iter().map(|_| None).collect();
        if let Some(port) = ports.get_mut(place) {
            *port = Some(Port::Source(Box::new(source)));
        }
        let Some(id) = self.id else { return };
        let answered = self.app.endpoint.answer(id, ports);
        let limited = self
            .args
            .give_up
            .map_or(Ok(()), |after| self.app.command(Command::GiveUp(id, after)).map(drop));
        self.give_up_unless(answered.and(limited));
    }

    fn handle_ready(&mut self) {
        let Some(id) = self.id else { return };
        self.session = self.app.endpoint.session(id);
        let flows = self.session.as_ref().map(Session::flows).unwrap_or_default();
        let refused = self.flow.and_then(|place| flows.get(place)?.refused.clone());
        if let Some(error) = refused {
            return self.give_up_unless(Err(error));
        }
        let activated = self.app.command(Command::Activate(id));
        self.give_up_unless(activated.map(drop));
        self.pace = Pace::new();
    }

    /// The pipe has something: the flow is woken, and reads until there is nothing more.
    fn handle_pipe(&mut self) {
        if let Some(pipe) = &self.pipe {
            self.app.unwatch(pipe.as_fd());
        }
        self.is_watched = false;
        self.wake();
    }

    /// Watches the pipe once the source has found it empty.
    fn watch_pipe(&mut self) {
        let Some(pipe) = self.pipe.as_ref().filter(|_| !self.is_watched) else { return };
        if self.starved.take() {
            // The source has watched it, so it can be.
            self.is_watched = self.app.watch(pipe.as_fd(), PIPE).is_ok();
        }
    }

    /// While a pipe is read it is looked at often whether it has run dry.
    fn wait(&mut self) -> Duration {
        let is_reading = self.pipe.is_some() && !self.is_watched && self.flow.is_some();
        self.progress.due_in(if is_reading { PIPE_EVERY } else { SLICE })
    }

    fn wake(&mut self) {
        if let Some((session, flow)) = self.id.zip(self.flow) {
            // One that has just ended reads no more.
            let _ = self.app.endpoint.wake(FlowId { session, flow });
        }
    }

    fn give_up_unless(&mut self, done: Result<(), Error>) {
        if let Err(error) = done {
            self.failed.get_or_insert(error);
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.closing.begin(self.signal.is_some()) {
            return;
        }
        failpoint!("send.closing");
        // Before its offer there is nothing to close.
        let Some(id) = self.id else { return self.handle_end(None) };
        // A session that has just ended tells so by its event.
        let _ = self.app.command(Command::Close(id));
    }

    fn handle_end(&mut self, error: Option<Error>) {
        self.is_over = true;
        if let Some(error) = error {
            self.failed.get_or_insert(error);
        }
    }

    fn say(&mut self, text: &str) {
        if !self.args.quiet && !self.args.json {
            self.progress.clear();
            line(text);
        }
    }

    /// Why not everything arrived that had to.
    fn fault(&mut self, found: &TransferSnapshot) -> Option<Error> {
        let failed = found.error.clone().map(|text| Error::new(Code::AccessFailed, text));
        let failed = failed.or(self.failed.take()).filter(|error| error.code != Code::Closed);
        if failed.is_some() || self.signal.is_some() {
            return failed;
        }
        // What is lost of a flow that may lose something is in its account.
        let is_missing = self.is_reliable && !self.is_all_delivered();
        let is_cut_off = !found.is_over || self.accounts.is_empty() || is_missing;
        is_cut_off.then(|| Error::new(Code::Closed, CLOSED_EARLY))
    }

    fn is_all_delivered(&self) -> bool {
        let is_whole = |account: &Account| {
            let ledger = &account.ledger;
            ledger.delivered == ledger.sent && !ledger.sent_at_least
        };
        !self.accounts.is_empty() && self.accounts.iter().all(is_whole)
    }

    /// Says of each file that may not be whole at the other end why not.
    fn tell_faults(&self, found: &mut TransferSnapshot) {
        if !self.is_all_delivered() {
            for file in &mut found.files {
                file.fault.get_or_insert_with(|| NOT_CONFIRMED.to_owned());
            }
        }
        if let Some(name) = found.current.take() {
            let before: u64 = found.files.iter().map(|file| file.bytes).sum();
            let bytes = found.bytes.saturating_sub(before);
            let fault = Some("not sent to its end".to_owned());
            let (path, sha256) = (None, String::new());
            found.files.push(FileResult { name, path, bytes, bytes_missing: 0, sha256, fault });
        }
    }

    /// Nothing was sent, for this reason, and what to do.
    fn not_sent(&self, error: &Error) -> Failure {
        let what = format!("send to {}", self.args.host);
        if error.code != Code::NotServed {
            return Failure::core(&what, error);
        }
        let (to, host) = (self.args.session(), &self.args.host);
        let recv =
            self.args.format.map_or("dacapo recv", |_| "dacapo recv --stdout --format mpegts");
        let text = format!(
            "nothing there receives as \"{to}\": start `{recv}` at {host}; one with another --name \
             is meant by --to"
        );
        Failure::new(exit_of(error.code), &what, text)
    }

    fn finish(mut self) -> Result<Exit, Failure> {
        self.progress.clear();
        if let Some(pipe) = &self.pipe {
            self.app.unwatch(pipe.as_fd());
        }
        self.app.leave(self.peer);
        let mut found = self.figures.snapshot();
        let failed = self.fault(&found);
        if self.flow.is_none() {
            return Err(match (self.signal, failed) {
                (Some(signal), _) => interrupted(signal),
                (None, failed) => {
                    let failed = failed.unwrap_or_else(|| Error::new(Code::Closed, CLOSED_EARLY));
                    self.not_sent(&failed)
                }
            });
        }
        self.tell_faults(&mut found);
        if self.args.json {
            output::json(&json!({
                "files": found.files,
                "error": failed.as_ref().map(ToString::to_string),
                "transfer": self.pace.to_json(found.bytes),
                "accounts": self.accounts.iter().map(Account::to_json).collect::<Vec<_>>(),
            }));
        } else if !self.args.quiet {
            figures::print(&found.files);
            // A rate is of what was received.
            line(match &failed {
                None => self.pace.sentence(found.bytes),
                Some(_) => format!("{} had left by then", bytes_words(found.bytes)),
            });
            let passed: u64 = found.files.iter().map(|file| file.bytes_missing).sum();
            if passed > 0 {
                line(format!("{} had waited before and were not sent", bytes_words(passed)));
            }
            if found.files.iter().any(|file| file.fault.is_some())
                || account::verdict(&self.accounts) != Exit::Success
            {
                account::print(&self.accounts);
            }
        }
        if let Some(error) = &failed {
            note(format_args!("dacapo: send: {error}"));
        }
        Ok(match (self.signal, failed) {
            (Some(signal), _) => Exit::Signal(signal),
            (None, Some(error)) => exit_of(error.code),
            (None, None) => account::verdict(&self.accounts),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_where_a_file_should_be_is_told_from_a_file() {
        for host in ["127.0.0.1:19980", "[::1]:19980", "host:7", "dacapo://host/files"] {
            assert!(names_host(host), "{host}");
        }
        for file in ["holiday.avi", "a:b", "12:70000", "C:", "notes"] {
            assert!(!names_host(file), "{file}");
        }
    }
}
