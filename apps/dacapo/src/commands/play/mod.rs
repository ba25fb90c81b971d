//! `dacapo play`: joins a session, and saves, shows or counts what comes.
//!
//! ```text
//!   connect -> join -> Offered -> sinks -> answer -> Ready -> activate -> Active
//!        keys, local socket -- commands --> peer           |
//!        SIGINT, q, all flows accounted for --> close --> SessionEnded -> ledger, files
//! ```
//!
//! Invariants: whatever ends it, files are closed and the ledger is printed; closing takes at most
//! 2 s.

mod again;
mod asked;
mod errors;
mod figures;
mod keys;
mod result;

use super::link::{LinkAccount, Via};
use crate::account::Account;
use crate::cli::{PlayArgs, or_usage};
use crate::contact;
use crate::core_app::{App, AppEvent};
use crate::describe;
use crate::exit::{Exit, Failure};
use crate::folder;
use crate::local::LocalControl;
use crate::output;
use crate::progress::Progress;
use asked::Asked;
use dacapo::access::{PlayerHandle, Sinks, Wanted};
use dacapo::engine::{Command, CoreEvent, Done, JoinParams, PeerId, SessionId};
use dacapo::failpoint;
use dacapo::offer::FlowOffer;
use dacapo::uri::Uri;
use dacapo::{Code, Error, ModuleFigures};
use dacapo_sys::signal::Signal;
use figures::Figures;
use keys::Keys;
pub use result::Played;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The session has so long to close in order.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// The longest wait for anything, so that what has ended is noticed.
const SLICE: Duration = Duration::from_secs(1);

/// Players have so long to show what they were handed.
const PLAYERS_MAX: Duration = Duration::from_secs(5);

/// How often players are looked at then.
const PLAYERS_EVERY: Duration = Duration::from_millis(50);

/// Tokens of what is watched; those from `LOCAL` on are the local socket's.
const KEYS: u32 = 1;
/// The first of what the caller of [`play`] watches.
pub const OTHERS: u32 = 2;
const LOCAL: u32 = 16;

/// What is to be played, and how.
#[derive(Clone)]
pub struct Wish {
    /// The session.
    pub uri: Uri,
    /// Where its server is found, when not at the address of the session.
    pub via: Option<SocketAddr>,
    /// What becomes of the flows.
    pub wanted: Wanted,
    /// Nothing is printed while it plays.
    pub is_silent: bool,
    /// What is asked of the flows, and where they begin.
    pub wishes: JoinParams,
    /// How long contact may be lost; nothing is what the creator says.
    pub give_up: Option<Duration>,
    /// How long the server is waited for, though nothing listens there.
    pub wait: Option<Duration>,
}

/// Runs the command.
pub fn run(args: &PlayArgs) -> Result<Exit, Failure> {
    let wanted = match &args.save {
        Some(dir) => Wanted::Save { dir: dir.clone(), force: args.force },
        None => Wanted::Player,
    };
    let is_silent = args.quiet || args.json;
    let wishes = JoinParams {
        attributes: dacapo::plan::attribute_forms(&or_usage(args.asked())),
        live: args.live,
        follows: false,
    };
    let mut app = App::open_with(Via::host(&args.over)?)?;
    let link = Via::open(&args.over, &args.uri.authority())?;
    if let Some(link) = link.as_ref().filter(|_| !is_silent) {
        output::line(link.describe());
    }
    let via = link.as_ref().map(Via::addr);
    let (give_up, wait) = (args.give_up, args.wait);
    let wish = Wish { uri: args.uri.clone(), via, wanted, is_silent, wishes, give_up, wait };
    let mut progress = Progress::new(args.quiet);
    let played = again::play(&mut app, wish, &mut progress, args.reconnect)?;
    let link = link.map(Via::close);
    if args.json {
        let mut json = played.to_json();
        if let Some(link) = &link {
            json["link"] = link.to_json();
        }
        output::json(&json);
    } else if !args.quiet {
        played.print();
        link.iter().for_each(LinkAccount::print);
    }
    played.note_errors();
    let is_right = link.is_none_or(|link| link.is_right());
    Ok(if is_right { played.exit() } else { Exit::Mismatch })
}

/// Plays a session to its end. `others` is called with tokens from [`OTHERS`] on that are ready.
///
/// # Errors
/// Nothing was joined: the peer cannot be reached, or refused.
pub fn play(
    app: &mut App,
    wish: Wish,
    progress: &mut Progress,
    others: impl FnMut(&mut App, &mut Progress, u32),
) -> Result<Played, Failure> {
    let uri = wish.uri.clone();
    let to = wish.via.map_or_else(|| uri.authority(), |via| via.to_string());
    let peer = app.connect(&to, wish.wait, progress);
    let peer = peer.map_err(|failure| match wish.via {
        Some(_) => Via::explain(failure, &uri.authority()),
        None => failure,
    })?;
    let now = app.reactor().now();
    let joined = app
        .core()
        .handle_command(
            now,
            Command::Join { peer, name: uri.name.clone(), params: wish.wishes.clone() },
        )
        .and_then(Done::session);
    let session = joined.map_err(|error| Failure::core(&format!("join {uri}"), &error))?;
    let mut player = Player::new(app, wish, progress, peer, session);
    player.run(others)?;
    player.finish()
}

/// A session that is being played.
struct Player<'a> {
    app: &'a mut App,
    progress: &'a mut Progress,
    wish: Wish,
    peer: PeerId,
    session: SessionId,
    flows: Vec<FlowOffer>,
    sinks: Option<Sinks>,
    /// Places of the flows that run and are not yet accounted for.
    open: Vec<usize>,
    is_ready: bool,
    keys: Option<Keys>,
    local: Option<LocalControl>,
    asked: Asked,
    figures: Figures,
    played: Played,
    /// When waiting for the end ends.
    closing: Option<Instant>,
    is_over: bool,
}

impl<'a> Player<'a> {
    fn new(
        app: &'a mut App,
        wish: Wish,
        progress: &'a mut Progress,
        peer: PeerId,
        session: SessionId,
    ) -> Self {
        let played = Played::new(wish.uri.clone());
        Self {
            app,
            progress,
            wish,
            peer,
            session,
            flows: Vec::new(),
            sinks: None,
            open: Vec::new(),
            is_ready: false,
            keys: None,
            local: None,
            asked: Asked::default(),
            figures: Figures::new(),
            played,
            closing: None,
            is_over: false,
        }
    }

    fn run(&mut self, mut others: impl FnMut(&mut App, &mut Progress, u32)) -> Result<(), Failure> {
        while !self.is_over {
            let wait = self.wait();
            match self.app.next(wait)? {
                Some(AppEvent::Core(event)) => self.handle_event(event),
                Some(AppEvent::Signal(signal)) => self.handle_signal(signal),
                Some(AppEvent::Ready(KEYS)) => self.handle_keys(),
                Some(AppEvent::Ready(token)) if token >= LOCAL => self.handle_local(token),
                Some(AppEvent::Ready(token)) => others(self.app, self.progress, token),
                None => self.keys.iter().for_each(Keys::renew),
            }
            if self.is_ready && (self.open.is_empty() || self.is_player_gone()) {
                self.close();
            }
            if self.closing.is_some_and(|at| Instant::now() >= at) {
                self.break_off();
            }
            self.show_figures();
        }
        Ok(())
    }

    fn wait(&mut self) -> Duration {
        let wait = self.progress.due_in(SLICE);
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        self.closing.map_or(wait, |at| left(at).min(wait))
    }

    fn handle_event(&mut self, event: CoreEvent) {
        match event {
            CoreEvent::Offered { title, flows, .. } => self.handle_offer(title, flows),
            CoreEvent::Ready { .. } => self.handle_ready(),
            CoreEvent::Active { .. } => self.figures.begin(),
            CoreEvent::ContactLost { .. } => {
                self.played.contact_losses += 1;
                self.say(&contact::lost(&self.wish.uri.authority()));
            }
            CoreEvent::ContactRestored { after, .. } => {
                self.played.without_contact += after;
                self.say(&contact::restored(&self.wish.uri.authority(), after));
            }
            CoreEvent::PathMtuChanged { from, to, .. } => {
                self.played.path_mtus.push(to);
                self.say(&contact::mtu_changed(&self.wish.uri.authority(), from, to));
            }
            CoreEvent::Fallback { flow, transport, reason, .. } => {
                let name = self.flows.get(flow).map_or("a flow", |flow| flow.name.as_str());
                self.say(&contact::stood_in(name, &contact::name_of(transport), &reason));
            }
            CoreEvent::FlowEnded { flow, ledger, hash, modules, .. } => {
                self.open.retain(|open| *open != flow);
                let name = self.flows.get(flow).map(|flow| flow.name.clone()).unwrap_or_default();
                let modules = ModuleFigures::all_of(&modules);
                let account = Account { place: flow, flow: name, ledger: *ledger, hash, modules };
                self.played.accounts.push(account);
            }
            CoreEvent::ControlAnswered { request, answer, .. } => {
                if let Some(text) = self.asked.handle_answer(request, answer, &mut self.local) {
                    self.say(&text);
                }
            }
            CoreEvent::ChangeFailed { error, .. } => self.played.errors.push(error.to_string()),
            CoreEvent::SessionEnded { error, .. } => self.handle_end(error),
            CoreEvent::PeerLost { peer, error } if peer == self.peer => {
                self.handle_end(Some(error));
            }
            _ => {}
        }
    }

    fn handle_offer(&mut self, title: String, flows: Vec<FlowOffer>) {
        let fingerprint = self.app.host.peer_fingerprint(self.peer);
        let fingerprint = fingerprint.map_or_else(|| "none".to_owned(), |it| it.to_string());
        self.say(&format!("{}  {title}", self.wish.uri));
        self.say(&format!("peer {fingerprint} (unverified)"));
        for flow in &flows {
            self.say(&format!("  {}", describe::flow(flow)));
        }
        failpoint!("play.offered");
        self.played.title = title;
        self.played.peer = fingerprint;
        self.flows.clone_from(&flows);
        match self.sinks_for(&flows) {
            Ok(mut sinks) => {
                let ports = std::mem::take(&mut sinks.ports);
                // This program has nothing to send: flows to the creator end at once.
                sinks.senders.clear();
                sinks.notes.iter().for_each(|note| self.say(note));
                self.sinks = Some(sinks);
                let now = self.app.reactor().now();
                let answered = self.app.core().answer(now, self.session, ports);
                let limited = self.wish.give_up.map_or(Ok(()), |after| {
                    let command = Command::GiveUpAfter(self.session, after);
                    self.app.core().handle_command(now, command).map(drop)
                });
                self.give_up_unless(answered.and(limited));
            }
            Err(error) => {
                self.played.errors.push(error);
                self.played.fail(Exit::Failure);
                self.close();
            }
        }
    }

    fn sinks_for(&self, flows: &[FlowOffer]) -> Result<Sinks, String> {
        if let Wanted::Save { dir, .. } = &self.wish.wanted {
            folder::make(dir)?;
        }
        Sinks::for_offer(&self.wish.uri.name, flows, &self.wish.wanted)
    }

    fn handle_ready(&mut self) {
        let status = self.app.core().status(self.session);
        let receives = status.iter().enumerate().filter(|(_, flow)| flow.ledger.is_some());
        self.open = receives.map(|(place, _)| place).collect();
        self.is_ready = true;
        failpoint!("play.ready");
        if self.open.is_empty() {
            self.played.errors.push("no flow of this session could be taken".to_owned());
            self.played.fail(Exit::Failure);
            return;
        }
        let now = self.app.reactor().now();
        let activated = self.app.core().handle_command(now, Command::Activate(self.session));
        self.give_up_unless(activated.map(drop));
        self.keys = Keys::open(self.app.reactor(), KEYS);
        match LocalControl::open(self.app.reactor(), LOCAL) {
            Ok(local) => self.local = Some(local),
            Err(error) => self.say(&format!("`dacapo control` will not find this player: {error}")),
        }
    }

    fn give_up_unless(&mut self, done: Result<(), Error>) {
        if let Err(error) = done {
            self.played.end(&error);
            self.close();
        }
    }

    /// The first signal closes the session. Further ones change nothing: it is over in two seconds,
    /// and programs such as timeout(1) send every signal twice.
    fn handle_signal(&mut self, signal: Signal) {
        self.played.signal.get_or_insert(signal);
        self.close();
    }

    fn handle_keys(&mut self) {
        let Some(keys) = &mut self.keys else { return };
        let Some(pressed) = keys.read() else {
            keys.forget(self.app.reactor());
            self.keys = None;
            return;
        };
        let nominal = self.flows.iter().find_map(asked::nominal_fps).unwrap_or(25_000);
        for key in pressed {
            match keys::meaning(key, self.asked.stands(), nominal) {
                Some(keys::Key::Quit) => self.close(),
                Some(keys::Key::Command(command)) => {
                    let asked = self.asked.ask_for_key(self.app, self.session, command);
                    if let Err(error) = asked {
                        self.say(&error.to_string());
                    }
                }
                None => {}
            }
        }
    }

    fn handle_local(&mut self, token: u32) {
        let Some(local) = &mut self.local else { return };
        if let Some((token, request)) = local.handle_ready(self.app.reactor(), token) {
            let uri = self.wish.uri.to_string();
            self.asked.ask_for_local(self.app, self.session, local, token, &request, &uri);
        }
    }

    /// True when there were players and their user has closed them all.
    fn is_player_gone(&self) -> bool {
        let players = self.sinks.as_ref().map_or(&[][..], |sinks| &sinks.players);
        !players.is_empty() && players.iter().all(PlayerHandle::is_gone)
    }

    /// What was handed to a player may still be on its way to the screen.
    fn wait_for_players(&mut self) -> Result<(), Failure> {
        let Some(sinks) = &self.sinks else { return Ok(()) };
        let end = Instant::now() + PLAYERS_MAX;
        let is_busy = || !sinks.players.iter().all(|it| it.is_finished() || it.is_gone());
        while self.played.signal.is_none() && is_busy() && Instant::now() < end {
            if let Some(AppEvent::Signal(signal)) = self.app.next(PLAYERS_EVERY)? {
                self.played.signal = Some(signal);
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        if self.closing.is_some() {
            return;
        }
        self.closing = Some(Instant::now() + CLOSE_MAX);
        failpoint!("play.closing");
        let now = self.app.reactor().now();
        // A session that has just ended tells so by its event.
        let _ = self.app.core().handle_command(now, Command::Close(self.session));
    }

    /// The peer does not answer: what is not accounted for is booked as unknown.
    fn break_off(&mut self) {
        let error = Error::new(Code::NoAnswer, "the peer did not close the session within 2 s");
        self.app.leave(self.peer);
        while let Some(event) = self.app.core().poll_event() {
            self.handle_event(event);
        }
        self.played.end(&error);
        self.is_over = true;
    }

    fn handle_end(&mut self, error: Option<Error>) {
        self.is_over = true;
        if let Some(error) = error {
            self.played.end(&error);
        }
    }

    /// Says goodbye and takes stock.
    fn finish(mut self) -> Result<Played, Failure> {
        failpoint!("play.over");
        self.progress.clear();
        self.app.leave(self.peer);
        if let Some(keys) = self.keys.take() {
            keys.forget(self.app.reactor());
        }
        self.asked.refuse_all(&mut self.local, "the session has ended");
        self.local = None;
        self.wait_for_players()?;
        if let Some(sinks) = &self.sinks {
            self.played.flows = sinks.progress.iter().map(|it| it.snapshot()).collect();
            self.played.flows.iter_mut().for_each(errors::keep_causes);
        } else if let Some(signal) = self.played.signal {
            return Err(crate::app::interrupted(signal));
        } else {
            return Err(self.played.failure());
        }
        Ok(self.played)
    }

    fn show_figures(&mut self) {
        if let Some(sinks) = self.sinks.as_ref().filter(|_| self.progress.is_due()) {
            let flows: Vec<_> = sinks.progress.iter().map(|it| it.interval()).collect();
            let line = self.figures.line(&flows, self.progress.width());
            self.progress.show(&line);
        }
    }

    fn say(&mut self, text: &str) {
        if !self.wish.is_silent {
            self.progress.clear();
            output::line(text);
        }
    }
}
