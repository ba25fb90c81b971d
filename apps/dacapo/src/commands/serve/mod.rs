//! `dacapo serve`: the sessions of some files, until interrupted.
//!
//! ```text
//!   files -> plans -> published sessions -> Ready (joined) … FlowEnded … SessionEnded (left)
//!                                              |
//!                                  SIGINT: close all, in order, within 2 s
//! ```

mod tell;

use crate::account::{self, Account};
use crate::cli::ServeArgs;
use crate::core_app::{App, AppEvent};
use crate::exit::{Exit, Failure, exit_of};
use crate::output::note;
use dacapo::access::Speed;
use dacapo::engine::{Command, CoreEvent, PeerId, SessionId};
use dacapo::failpoint;
use dacapo::plan::{Assumptions, Plan};
use dacapo::{Code, Error, ModuleFigures};
use dacapo_sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tell::{Guest, Served, Teller};

/// Sessions have so long to close in order.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// After a session has ended its peer has so long to say goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(2);

/// Runs the command.
pub fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let mut assumptions = assumptions(args);
    let Some(mut plans) = load(args, &assumptions) else { return Ok(Exit::Invalid) };
    let mut app = App::open()?;
    app.host.listen(&addresses(args)).map_err(|error| Failure::core("listen", &error))?;
    for (spec, why) in app.host.missing() {
        note(format_args!("dacapo: serve: without {}: {why}", spec.name));
    }
    if !app.host.missing().is_empty() {
        assumptions.transports = Some(app.host.transports());
        let Some(fewer) = load(args, &assumptions) else { return Ok(Exit::Invalid) };
        plans = fewer;
    }
    let plans: Vec<Plan> = plans.into_iter().map(|it| it.with_give_up(args.give_up)).collect();
    let names: Vec<Served> = plans.iter().map(Served::of).collect();
    for plan in plans {
        let publisher = plan.publisher(1.0);
        let spec = plan.spec();
        let what = format!("serve {}", spec.name);
        let published = app.core().publish(spec, publisher);
        published.map_err(|error| Failure::core(&what, &error))?;
        failpoint!("serve.published");
    }
    let teller = if args.json { Teller::Json } else { Teller::Words };
    let identity = app.host.fingerprint().to_string();
    teller.listening(app.host.listening(), &identity, &names, args.port == 0);
    failpoint!("serve.listening");
    Server::new(app, args.once, teller, &names).run()
}

/// What is assumed of those who will join.
fn assumptions(args: &ServeArgs) -> Assumptions {
    let on_loopback = addresses(args).iter().all(|addr| addr.ip().is_loopback());
    let speed = Speed::from_factor(args.speed);
    Assumptions { path: args.path, on_loopback, speed, ..Assumptions::default() }
}

/// The plans of all files; nothing, and every problem is printed, when there is one.
fn load(args: &ServeArgs, assumptions: &Assumptions) -> Option<Vec<Plan>> {
    let mut plans: Vec<Plan> = Vec::new();
    let mut names = BTreeSet::new();
    let mut is_valid = true;
    for file in &args.files {
        match Plan::load_for(file, assumptions) {
            Ok(plan) if names.insert(plan.name().to_owned()) => {
                let warnings = plan.warnings();
                warnings.iter().for_each(|it| note(format_args!("dacapo: serve: {it}")));
                plans.push(plan);
            }
            Ok(plan) => {
                let (file, name) = (file.display(), plan.name());
                note(format_args!("dacapo: serve: {file}: another session has the name {name}"));
                is_valid = false;
            }
            Err(errors) => {
                note(format_args!("dacapo: serve: {} cannot be served:\n{errors}", file.display()));
                is_valid = false;
            }
        }
    }
    is_valid.then_some(plans)
}

fn addresses(args: &ServeArgs) -> Vec<SocketAddr> {
    if args.listen.is_empty() {
        return dacapo::host::loopback(args.port);
    }
    args.listen.iter().map(|listen| listen.addr(args.port)).collect()
}

/// A session with a participant.
struct Joined {
    guest: Guest,
    peer: PeerId,
    accounts: Vec<Account>,
}

struct Server {
    app: App,
    once: bool,
    teller: Teller,
    flow_names: BTreeMap<String, Vec<String>>,
    joined: BTreeMap<SessionId, Joined>,
    /// Peers whose session has ended and who have not said goodbye: the last message of a session
    /// that is lost is sent again as long as this end is there.
    leaving: BTreeSet<PeerId>,
    /// The signal that ends it, and when waiting ends.
    ending: Option<(Signal, Instant)>,
    /// With `once`: how the first session ended, and whose goodbye is waited for until when.
    first: Option<(Exit, PeerId, Instant)>,
    is_over: bool,
}

impl Server {
    fn new(app: App, once: bool, teller: Teller, served: &[Served]) -> Self {
        let flows = |it: &Served| it.flows.iter().map(|flow| flow.name.clone()).collect();
        Self {
            app,
            once,
            teller,
            flow_names: served.iter().map(|it| (it.name.clone(), flows(it))).collect(),
            joined: BTreeMap::new(),
            leaving: BTreeSet::new(),
            ending: None,
            first: None,
            is_over: false,
        }
    }

    fn run(mut self) -> Result<Exit, Failure> {
        while !self.is_done() {
            match self.app.next(self.wait())? {
                Some(AppEvent::Core(event)) => self.handle_event(event),
                Some(AppEvent::Signal(signal)) => self.handle_signal(signal),
                Some(AppEvent::Ready(_)) | None => {}
            }
        }
        let peers: BTreeSet<PeerId> = self.joined.values().map(|joined| joined.peer).collect();
        peers.into_iter().for_each(|peer| self.app.leave(peer));
        while let Some(event) = self.app.core().poll_event() {
            self.handle_event(event);
        }
        self.app.reactor().flush(Duration::from_millis(200));
        let first = self.first.map_or(Exit::Success, |(exit, _, _)| exit);
        Ok(self.ending.map_or(first, |(signal, _)| Exit::Signal(signal)))
    }

    fn is_done(&self) -> bool {
        let is_past = |at: Instant| Instant::now() >= at;
        if let Some((_, at)) = self.ending {
            return (self.joined.is_empty() && self.leaving.is_empty()) || is_past(at);
        }
        self.is_over || self.first.is_some_and(|(_, _, at)| is_past(at))
    }

    fn wait(&self) -> Duration {
        let until = self.ending.map(|(_, at)| at).or(self.first.map(|(_, _, at)| at));
        let longest = Duration::from_secs(60);
        until.map_or(longest, |at| at.saturating_duration_since(Instant::now()))
    }

    /// The first signal closes every session. Further ones change nothing: it is over in two
    /// seconds, and programs such as timeout(1) send every signal twice.
    fn handle_signal(&mut self, signal: Signal) {
        if self.ending.is_some() {
            return;
        }
        failpoint!("serve.signal");
        self.ending = Some((signal, Instant::now() + CLOSE_MAX));
        let names: Vec<String> = self.flow_names.keys().cloned().collect();
        let now = self.app.reactor().now();
        for name in names {
            let _ = self.app.core().handle_command(now, Command::Unpublish(name));
        }
        let sessions: Vec<SessionId> = self.app.core().sessions().map(|(id, ..)| id).collect();
        for id in sessions {
            // One that has just ended needs no close.
            let _ = self.app.core().handle_command(now, Command::Close(id));
        }
    }

    fn handle_event(&mut self, event: CoreEvent) {
        match event {
            CoreEvent::Ready { session } => self.handle_joined(session),
            CoreEvent::ContactLost { session } => {
                if let Some(joined) = self.joined.get(&session) {
                    self.teller.contact_lost(&joined.guest);
                }
            }
            CoreEvent::ContactRestored { session, after } => {
                if let Some(joined) = self.joined.get(&session) {
                    self.teller.contact_restored(&joined.guest, after);
                }
            }
            CoreEvent::PathMtuChanged { session, from, to } => {
                if let Some(joined) = self.joined.get(&session) {
                    self.teller.mtu_changed(&joined.guest, from, to);
                }
            }
            CoreEvent::Fallback { session, flow, transport, reason } => {
                let Some(joined) = self.joined.get(&session) else { return };
                let names = self.flow_names.get(&joined.guest.session);
                let name = names.and_then(|names| names.get(flow)).map_or("a flow", |name| name);
                self.teller.stood_in(&joined.guest, name, transport, &reason);
            }
            CoreEvent::FlowEnded { session, flow, ledger, hash, modules } => {
                let Some(joined) = self.joined.get_mut(&session) else { return };
                let names = self.flow_names.get(&joined.guest.session);
                let name = names.and_then(|names| names.get(flow)).cloned();
                let name = name.unwrap_or_else(|| flow.to_string());
                let modules = ModuleFigures::all_of(&modules);
                joined.accounts.push(Account {
                    place: flow,
                    flow: name,
                    ledger: *ledger,
                    hash,
                    modules,
                });
            }
            CoreEvent::SessionEnded { session, error } => self.handle_left(session, error),
            CoreEvent::PeerLost { peer, .. } => {
                self.is_over |= self.first.is_some_and(|(_, first, _)| first == peer);
                self.leaving.remove(&peer);
            }
            CoreEvent::ChangeFailed { session, error, .. } => {
                let name = self.joined.get(&session).map_or("?", |joined| &joined.guest.session);
                note(format_args!("dacapo: {name}: {error}"));
            }
            _ => {}
        }
    }

    fn handle_joined(&mut self, session: SessionId) {
        let found = self.app.core().sessions().find(|(id, ..)| *id == session);
        let Some((_, name, peer)) = found else { return };
        let session_name = name.to_owned();
        let address = self.app.core().peer_address(peer);
        let fingerprint = self.app.host.peer_fingerprint(peer);
        let identity = fingerprint.map(|it| it.to_string());
        let guest = Guest { session: session_name, address, identity };
        self.teller.joined(&guest);
        failpoint!("serve.joined");
        self.joined.insert(session, Joined { guest, peer, accounts: Vec::new() });
    }

    fn handle_left(&mut self, session: SessionId, error: Option<Error>) {
        let error = error.filter(|error| error.code != Code::Closed);
        let Some(joined) = self.joined.remove(&session) else {
            if let Some(error) = error {
                self.teller.refused(&error);
            }
            return;
        };
        failpoint!("serve.left");
        if self.app.core().peer_address(joined.peer).is_some() {
            self.leaving.insert(joined.peer);
        }
        self.teller.left(&joined.guest, error.as_ref(), &joined.accounts);
        if self.once && self.first.is_none() {
            let exit = error.map_or(account::verdict(&joined.accounts), |it| exit_of(it.code));
            self.first = Some((exit, joined.peer, Instant::now() + GOODBYE_MAX));
        }
    }
}
