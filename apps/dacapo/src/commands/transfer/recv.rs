//! `dacapo recv`: listens, and saves what somebody sends.
//!
//! ```text
//!   listen -> accept (somebody) -> progress … FlowEnded -> files, hashes -> next, or end
//! ```
//!
//! Invariants: whatever ends it, what came is kept and said; a file that cannot be saved closes its
//! session, so that nobody sends in vain.

use super::figures::{self, Pace};
use super::{FLOW, UNIT_LEN_MAX};
use crate::account::{self, Account};
use crate::app::{App, AppEvent};
use crate::cli::{RecvArgs, or_usage};
use crate::commands::listens;
use crate::contact;
use crate::exit::{Exit, Failure, exit_of};
use crate::folder;
use crate::output::{line, note};
use crate::progress::Progress;
use crate::words::bytes_words;
use dacapo::attributes::Attributes;
use dacapo::failpoint;
use dacapo::offer::Direction;
use dacapo::plan::{Assumptions, BytesFlow, Plan};
use dacapo::port::Port;
use dacapo::transfer::{FileSink, MPEGTS_UNIT_LEN_MAX, Place, TransferProgress};
use dacapo::{Address, Code, Command, Creator, Error, Event, PeerId, Session, SessionId};
use dacapo_sys::signal::Signal;
use serde_json::json;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sessions have so long to close in order.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// After a session has ended its peer has so long to say goodbye: the last message of a session is
/// sent again when it is lost, as long as this end is there.
const GOODBYE_MAX: Duration = Duration::from_secs(2);

/// The longest that nothing is looked at.
const SLICE: Duration = Duration::from_millis(500);

/// The progress of sinks that were opened, in the order of the sessions that they are for.
type Opened = Arc<Mutex<VecDeque<TransferProgress>>>;

/// Runs the command.
pub fn run(args: &RecvArgs) -> Result<Exit, Failure> {
    // Wrong usage is said before anything is made.
    let asked = or_usage(args.asked()).unwrap_or_default();
    if !args.stdout {
        folder::make(&args.out).map_err(|text| Failure::run_time("recv", text))?;
        for kept in dacapo::transfer::recover(&args.out) {
            let kept = kept.display();
            note(format_args!("dacapo: recv: what an earlier run was receiving is in {kept}"));
        }
    }
    let app = App::open()?;
    let opened = Opened::default();
    let creator = publish(&app, args, asked, &opened)?;
    let addrs = listens(&args.listen, args.port);
    app.endpoint.listen(&addrs).map_err(|error| Failure::core("listen", &error))?;
    let mut receiver = Receiver::new(app, args, creator, opened);
    receiver.tell_listening();
    receiver.run()
}

fn publish(
    app: &App,
    args: &RecvArgs,
    asked: Attributes,
    opened: &Opened,
) -> Result<Creator, Failure> {
    let flow = BytesFlow {
        session: args.session(),
        title: "files to this host",
        flow: FLOW,
        direction: Direction::ToCreator,
        unit_len_max: args.format.map_or(UNIT_LEN_MAX, |_| MPEGTS_UNIT_LEN_MAX as u32),
        attributes: asked,
        participants_max: 1,
    };
    let on_loopback = listens(&args.listen, args.port).iter().all(Address::is_loopback);
    let assumptions = Assumptions { path: args.path, on_loopback, ..Assumptions::default() };
    let plan = Plan::of_bytes(&flow, &assumptions)
        .map_err(|refusal| Failure { exit: Exit::Invalid, text: format!("recv: {refusal}") })?;
    let (place, opened) = (Target::of(args), Arc::clone(opened));
    let publisher = plan.publisher_of(
        1.0,
        Box::new(move |_, _| {
            let (sink, progress) = FileSink::new(place.place()?);
            opened.lock().unwrap_or_else(PoisonError::into_inner).push_back(progress);
            Ok(Port::Sink(Box::new(sink)))
        }),
    );
    let spec = plan.with_give_up(args.give_up).spec();
    let served = app.endpoint.serve_by(spec, publisher);
    served.map_err(|error| Failure::core("listen", &error))
}

/// Where files go, for one sink after the other.
enum Target {
    Folder { dir: std::path::PathBuf, force: bool },
    Output { is_live: bool },
}

impl Target {
    fn of(args: &RecvArgs) -> Self {
        match args.stdout {
            true => Self::Output { is_live: args.format.is_some() },
            false => Self::Folder { dir: args.out.clone(), force: args.force },
        }
    }

    fn place(&self) -> Result<Place, String> {
        Ok(match self {
            Self::Folder { dir, force } => Place::Folder { dir: dir.clone(), force: *force },
            Self::Output { is_live } => {
                let out = std::io::stdout().as_fd().try_clone_to_owned();
                let out = File::from(out.map_err(|error| error.to_string())?);
                if *is_live { Place::Live(out) } else { Place::Output(out) }
            }
        })
    }
}

/// Somebody who sends.
struct Sending {
    session: Session,
    progress: TransferProgress,
    pace: Pace,
    accounts: Vec<Account>,
}

struct Receiver<'a> {
    app: App,
    args: &'a RecvArgs,
    /// Who serves, until a signal comes.
    creator: Option<Creator>,
    opened: Opened,
    progress: Progress,
    now: Option<Sending>,
    ending: Option<(Signal, Instant)>,
    exit: Option<Exit>,
    /// Whose goodbye is waited for, and until when.
    goodbye: Option<(PeerId, Instant)>,
}

impl<'a> Receiver<'a> {
    fn new(app: App, args: &'a RecvArgs, creator: Creator, opened: Opened) -> Self {
        let progress = Progress::new(args.quiet || args.json);
        let (now, ending, exit, goodbye) = (None, None, None, None);
        let creator = Some(creator);
        Self { app, args, creator, opened, progress, now, ending, exit, goodbye }
    }

    fn tell_listening(&mut self) {
        let addrs = self.app.endpoint.listening();
        let only_here = addrs.iter().all(Address::is_loopback);
        if self.args.json {
            let addrs: Vec<String> = addrs.iter().map(ToString::to_string).collect();
            let identity = self.app.endpoint.fingerprint().to_string();
            self.json(&json!({ "event": "listening", "addresses": addrs, "identity": identity }));
        } else if !self.args.quiet {
            let addrs: Vec<String> = addrs.iter().map(ToString::to_string).collect();
            let whom =
                if only_here { "  (this host only; --listen 0.0.0.0 for others)" } else { "" };
            self.say(&format!("listening on {}{whom}", addrs.join(", ")));
        }
    }

    /// Words go to standard error where standard output carries a file.
    fn say(&mut self, text: &str) {
        self.progress.clear();
        match self.args.stdout {
            _ if self.args.quiet || self.args.json => {}
            true => note(text),
            false => line(text),
        }
    }

    fn json(&self, value: &serde_json::Value) {
        match self.args.stdout {
            true => note(value),
            false => line(value),
        }
    }

    fn run(&mut self) -> Result<Exit, Failure> {
        while !self.is_done() {
            match self.app.next(self.progress.due_in(SLICE))? {
                Some(AppEvent::Event(session, event)) => {
                    // Who has left already had come before.
                    self.accept()?;
                    self.handle_event(session, event);
                }
                Some(AppEvent::Waits) => self.accept()?,
                Some(AppEvent::Signal(signal)) => self.handle_signal(signal),
                Some(AppEvent::Ready(_)) | None => {}
            }
            self.look();
        }
        self.progress.clear();
        let exit = self.exit.unwrap_or(Exit::Success);
        Ok(self.ending.map_or(exit, |(signal, _)| Exit::Signal(signal)))
    }

    fn is_done(&self) -> bool {
        let now = Instant::now();
        let is_awaited = self.goodbye.is_some_and(|(_, at)| now < at);
        match self.ending {
            Some((_, at)) => (self.now.is_none() && !is_awaited) || now >= at,
            None => self.exit.is_some() && !self.args.keep && !is_awaited,
        }
    }

    /// Shows how far it is, and closes a session whose file cannot be saved.
    fn look(&mut self) {
        let Some(sending) = &mut self.now else { return };
        if let Some(error) = sending.progress.error() {
            let error = Error::new(Code::AccessFailed, error);
            // It may have ended just now.
            let _ = self.app.command(Command::Abort(sending.session.id(), error));
        } else if self.progress.is_due() {
            let text = sending.pace.line(&sending.progress);
            self.progress.show(&text);
        }
    }

    fn handle_signal(&mut self, signal: Signal) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some((signal, Instant::now() + CLOSE_MAX));
        self.creator = None;
        if let Some(sending) = &self.now {
            // It may have ended just now.
            let _ = self.app.command(Command::Close(sending.session.id()));
        }
    }

    fn is_now(&self, session: Option<SessionId>) -> bool {
        self.now.as_ref().is_some_and(|it| Some(it.session.id()) == session)
    }

    fn handle_event(&mut self, session: Option<SessionId>, event: Event) {
        match event {
            Event::Refused { error } => self.tell_refused(&error),
            Event::PeerLost { peer, .. } => {
                self.goodbye.take_if(|(awaited, _)| *awaited == peer);
            }
            _ if !self.is_now(session) => {}
            Event::FlowEnded { account } => {
                if let Some(sending) = &mut self.now {
                    sending.accounts.push(Account::of(0, *account));
                }
            }
            Event::ContactLost => self.tell_contact(None),
            Event::ContactRestored { after } => self.tell_contact(Some(after)),
            Event::Ended { error } => self.handle_ended(error),
            _ => {}
        }
    }

    /// Takes in who has joined.
    fn accept(&mut self) -> Result<(), Failure> {
        let Some(creator) = &self.creator else { return Ok(()) };
        let accepted = creator.accept_timeout(Duration::ZERO);
        let accepted = accepted.map_err(|error| Failure::core("listen", &error))?;
        accepted.into_iter().for_each(|session| self.handle_ready(session));
        Ok(())
    }

    fn handle_ready(&mut self, session: Session) {
        let progress = self.opened.lock().unwrap_or_else(PoisonError::into_inner).pop_back();
        let Some(progress) = progress else { return };
        let who = session.remote();
        let graph = self.app.endpoint.offers(session.id()).first().map(crate::describe::graph);
        let graph = graph.unwrap_or_default();
        if self.args.json {
            self.json(&json!({ "event": "joined", "peer": who.to_string(), "graph": graph }));
        } else {
            self.say(&format!("{who} sends  {graph}"));
        }
        failpoint!("recv.ready");
        self.now = Some(Sending { session, progress, pace: Pace::new(), accounts: Vec::new() });
    }

    /// Contact with who sends is lost, or back after so long.
    fn tell_contact(&mut self, after: Option<Duration>) {
        match (self.args.json, after) {
            (true, None) => self.json(&json!({ "event": "contact_lost" })),
            (true, Some(after)) => {
                let after_s = after.as_secs_f64();
                self.json(&json!({ "event": "contact_restored", "after_s": after_s }));
            }
            (false, None) => self.say(&contact::lost("the sender")),
            (false, Some(after)) => self.say(&contact::restored("the sender", after)),
        }
    }

    /// Somebody wished to send and may not.
    fn tell_refused(&mut self, error: &Error) {
        if error.code == Code::Closed {
            return;
        }
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if self.args.json {
            self.json(&json!({ "event": "refused", "error": error.to_string() }));
        } else {
            self.say(&format!("refused: {error}"));
        }
    }

    fn handle_ended(&mut self, error: Option<Error>) {
        let error = error.filter(|error| error.code != Code::Closed);
        let Some(sending) = self.now.take() else { return };
        failpoint!("recv.received");
        // Who is not there any more says none.
        let peer = self.app.endpoint.peer_of(sending.session.id());
        self.goodbye = peer.map(|peer| (peer, Instant::now() + GOODBYE_MAX));
        self.progress.clear();
        let found = sending.progress.snapshot();
        let failed = found.error.clone().or_else(|| error.as_ref().map(ToString::to_string));
        let exit = verdict(&found.files, &sending.accounts, found.error.is_some(), error.as_ref());
        if self.args.json {
            self.json(&json!({
                "event": "received",
                "files": found.files,
                "error": failed,
                "transfer": sending.pace.to_json(found.bytes),
                "accounts": sending.accounts.iter().map(Account::to_json).collect::<Vec<_>>(),
            }));
        } else if !self.args.quiet {
            if !self.args.stdout {
                figures::print(&found.files);
            }
            if failed.is_none() || found.bytes > 0 {
                self.say(&sending.pace.sentence(found.bytes));
            }
            let missing: u64 = found.files.iter().map(|file| file.bytes_missing).sum();
            if missing > 0 {
                self.say(&format!("{} are missing: lost, or too late", bytes_words(missing)));
            }
        }
        if let Some(failed) = failed {
            note(format_args!("dacapo: recv: {failed}"));
        }
        self.exit = Some(match (self.exit, exit) {
            (Some(before), Exit::Success) => before,
            _ => exit,
        });
    }
}

/// How a transfer ended at the end that receives.
fn verdict(
    files: &[dacapo::transfer::FileResult],
    accounts: &[Account],
    is_failed: bool,
    error: Option<&Error>,
) -> Exit {
    if is_failed {
        return Exit::Failure;
    }
    if let Some(error) = error {
        return exit_of(error.code);
    }
    match files.iter().any(|file| file.fault.is_some()) {
        true => Exit::Mismatch,
        false => account::verdict(accounts),
    }
}
