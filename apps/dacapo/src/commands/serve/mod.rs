//! `dacapo serve`: the sessions of some files, until interrupted.
//!
//! ```text
//!   files -> plans -> creators -> accept (joined) … FlowEnded … Ended (left)
//!                                              |
//!                                  SIGINT: close all, in order, within 2 s
//! ```

mod tell;

use super::listens;
use crate::account::{self, Account};
use crate::app::{App, AppEvent};
use crate::cli::ServeArgs;
use crate::exit::{Exit, Failure, exit_of};
use crate::output::note;

use dacapo::access::Speed;
use dacapo::failpoint;
use dacapo::offer::FlowOffer;
use dacapo::plan::{Assumptions, Plan};
use dacapo::{Address, Code, Command, Creator, Error, Event, PeerId, Session, SessionId};
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
    let app = App::open()?;
    app.endpoint
        .listen(&listens(&args.listen, args.port))
        .map_err(|error| Failure::core("listen", &error))?;
    let missing = app.endpoint.missing();
    for (spec, why) in &missing {
        note(format_args!("dacapo: serve: without {}: {why}", spec.name));
    }
    if !missing.is_empty() {
        assumptions.transports = Some(app.endpoint.transports());
        let Some(fewer) = load(args, &assumptions) else { return Ok(Exit::Invalid) };
        plans = fewer;
    }
    let plans: Vec<Plan> = plans.into_iter().map(|it| it.with_give_up(args.give_up)).collect();
    let names: Vec<Served> = plans.iter().map(Served::of).collect();
    let mut creators = Vec::new();
    for plan in plans {
        let publisher = plan.publisher(1.0);
        let spec = plan.spec();
        let what = format!("serve {}", spec.name);
        let served = app.endpoint.serve_by(spec, publisher);
        creators.push(served.map_err(|error| Failure::core(&what, &error))?);
        failpoint!("serve.published");
    }
    let teller = if args.json { Teller::Json } else { Teller::Words };
    let identity = app.endpoint.fingerprint().to_string();
    // Its transports know no other addresses.
    let listening: Vec<SocketAddr> =
        app.endpoint.listening().iter().filter_map(Address::ip).collect();
    teller.listening(&listening, &identity, &names, args.port == 0);
    failpoint!("serve.listening");
    Server::new(app, creators, args.once, teller, &names).run()
}

/// What is assumed of those who will join.
fn assumptions(args: &ServeArgs) -> Assumptions {
    let on_loopback = listens(&args.listen, args.port).iter().all(Address::is_loopback);
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

/// A session with a participant.
struct Joined {
    guest: Guest,
    session: Session,
    accounts: Vec<Account>,
}

struct Server {
    app: App,
    /// Who serve, until a signal comes.
    creators: Vec<Creator>,
    once: bool,
    teller: Teller,
    /// The flows of each session, as they are served.
    served: BTreeMap<String, Vec<FlowOffer>>,
    joined: BTreeMap<SessionId, Joined>,
    /// Sessions that are still to be told to close.
    to_close: Vec<SessionId>,
    /// Peers whose session has ended and who have not said goodbye: the last message of a session
    /// that is lost is sent again as long as this end is there.
    leaving: BTreeSet<PeerId>,
    /// The signal that ends it, and when waiting ends.
    ending: Option<(Signal, Instant)>,
    /// With `once`: how the first session ended, and whose goodbye is waited for until when.
    first: Option<(Exit, Option<PeerId>, Instant)>,
    is_over: bool,
}

impl Server {
    fn new(
        app: App,
        creators: Vec<Creator>,
        once: bool,
        teller: Teller,
        served: &[Served],
    ) -> Self {
        Self {
            app,
            creators,
            once,
            teller,
            served: served.iter().map(|it| (it.name.clone(), it.flows.clone())).collect(),
            joined: BTreeMap::new(),
            to_close: Vec::new(),
            leaving: BTreeSet::new(),
            ending: None,
            first: None,
            is_over: false,
        }
    }

    fn run(mut self) -> Result<Exit, Failure> {
        while !self.is_done() {
            match self.app.next(self.wait())? {
                Some(AppEvent::Event(session, event)) => {
                    // Who has left already had come before.
                    self.accept()?;
                    self.handle_event(session, event);
                }
                Some(AppEvent::Waits) => self.accept()?,
                Some(AppEvent::Signal(signal)) => self.handle_signal(signal)?,
                Some(AppEvent::Ready(_)) | None => {}
            }
            self.close_some();
        }
        let peers = self.joined.keys().filter_map(|id| self.app.endpoint.peer_of(*id));
        let peers: BTreeSet<PeerId> = peers.collect();
        peers.into_iter().for_each(|peer| self.app.leave(peer));
        while let Some((session, event)) = self.app.endpoint.poll_event() {
            self.handle_event(session, event);
        }
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
    fn handle_signal(&mut self, signal: Signal) -> Result<(), Failure> {
        if self.ending.is_some() {
            return Ok(());
        }
        failpoint!("serve.signal");
        self.ending = Some((signal, Instant::now() + CLOSE_MAX));
        self.accept()?;
        self.creators.clear();
        self.to_close = self.joined.keys().copied().collect();
        Ok(())
    }

    /// Tells sessions to close, as many as can be under way at once.
    fn close_some(&mut self) {
        while let Some(id) = self.to_close.pop() {
            // One that has just ended needs no close.
            let told = self.app.command(Command::Close(id));
            if told.is_err_and(|error| error.code == Code::TooMany) {
                return self.to_close.push(id);
            }
        }
    }

    /// Takes in all who have joined.
    fn accept(&mut self) -> Result<(), Failure> {
        let mut all = Vec::new();
        for creator in &self.creators {
            let next = || creator.accept_timeout(Duration::ZERO).transpose();
            for session in std::iter::from_fn(next) {
                all.push(session.map_err(|error| Failure::core("accept", &error))?);
            }
        }
        all.into_iter().for_each(|session| self.handle_joined(session));
        Ok(())
    }

    fn handle_event(&mut self, session: Option<SessionId>, event: Event) {
        match event {
            Event::Refused { error } if error.code != Code::Closed => self.teller.refused(&error),
            Event::PeerLost { peer, .. } => {
                self.is_over |= self.first.is_some_and(|(_, first, _)| first == Some(peer));
                self.leaving.remove(&peer);
            }
            event => {
                if let Some(id) = session {
                    self.handle_event_of(id, event);
                }
            }
        }
    }

    /// Something has happened to a session.
    fn handle_event_of(&mut self, id: SessionId, event: Event) {
        let Some(joined) = self.joined.get_mut(&id) else { return };
        match event {
            Event::ContactLost => self.teller.contact_lost(&joined.guest),
            Event::ContactRestored { after } => self.teller.contact_restored(&joined.guest, after),
            Event::PathMtuChanged { from, to } => self.teller.mtu_changed(&joined.guest, from, to),
            Event::PathHeld { loss_ppm, rate_bps } => {
                self.teller.path_held(&joined.guest, loss_ppm, rate_bps);
            }
            Event::TransportReplaced { flow, transport, reason } => {
                self.teller.stood_in(&joined.guest, &flow, &transport, &reason);
            }
            Event::FlowEnded { account } => {
                let flows = self.served.get(&joined.guest.session);
                let place =
                    flows.and_then(|flows| flows.iter().position(|it| it.name == account.flow));
                joined.accounts.push(Account::of(place.unwrap_or_default(), *account));
            }
            Event::ChangeFailed { error, .. } => {
                note(format_args!("dacapo: {}: {error}", joined.guest.session));
            }
            Event::Ended { error } => self.handle_left(id, error),
            _ => {}
        }
    }

    fn handle_joined(&mut self, session: Session) {
        let identity = session.peer_fingerprint().map(|it| it.to_string());
        let address = Some(session.remote());
        let guest = Guest { session: session.name().to_owned(), address, identity };
        let served = self.served.get(&guest.session).map(Vec::as_slice).unwrap_or_default();
        let flows = self.app.endpoint.offers(session.id());
        let path = session.path_known().unwrap_or_default();
        self.teller.joined(&guest, &path, &flows, served);
        failpoint!("serve.joined");
        self.joined.insert(session.id(), Joined { guest, session, accounts: Vec::new() });
    }

    fn handle_left(&mut self, id: SessionId, error: Option<Error>) {
        let error = error.filter(|error| error.code != Code::Closed);
        let Some(joined) = self.joined.remove(&id) else { return };
        failpoint!("serve.left");
        let peer = self.app.endpoint.peer_of(joined.session.id());
        self.leaving.extend(peer);
        self.teller.left(&joined.guest, error.as_ref(), &joined.accounts);
        if self.once && self.first.is_none() {
            let exit = error.map_or(account::verdict(&joined.accounts), |it| exit_of(it.code));
            self.first = Some((exit, peer, Instant::now() + GOODBYE_MAX));
            self.is_over = peer.is_none();
        }
    }
}
