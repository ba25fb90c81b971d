//! `dacapo play`: joins a session, and saves, shows or counts what comes.
//!
//! ```text
//!   connect -> join -> Offered -> sinks -> answer -> set up -> activate -> Active
//!        keys, local socket -- commands --> peer           |
//!        SIGINT, q, all flows accounted for --> close --> SessionEnded -> ledger, files
//! ```
//!
//! Invariants: whatever ends it, files are closed and the ledger is printed; closing takes no
//! longer than [`Closing`] says.

mod again;
mod asked;
mod errors;
mod figures;
mod keys;
mod result;

use super::link::{LinkAccount, Via};
use crate::account::Account;
use crate::app::{App, AppEvent};
use crate::cli::{PlayArgs, or_usage};
use crate::closing::Closing;
use crate::contact;
use crate::describe;
use crate::exit::{Exit, Failure};
use crate::folder;
use crate::local::LocalControl;
use crate::output;
use crate::progress::Progress;
use asked::Asked;
use dacapo::access::{PlayerHandle, Sinks, Wanted};
use dacapo::failpoint;
use dacapo::offer::FlowOffer;
use dacapo::uri::Uri;
use dacapo::{
    Command, Direction, Error, Event, FlowInfo, Join, PeerId, Session, SessionId, Ticket,
};
use dacapo_sys::signal::Signal;
use figures::Figures;
use keys::Keys;
pub use result::Played;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

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
    pub how: Join,
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
    let how = Join::new().asks(&or_usage(args.asked()));
    let how = if args.live { how.live() } else { how };
    let mut app = App::open_with(Via::host(&args.over)?)?;
    let link = Via::open(&args.over, &args.uri.authority())?;
    if let Some(link) = link.as_ref().filter(|_| !is_silent) {
        output::line(link.describe());
    }
    let via = link.as_ref().map(Via::addr);
    let (give_up, wait) = (args.give_up, args.wait);
    let wish = Wish { uri: args.uri.clone(), via, wanted, is_silent, how, give_up, wait };
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
    let (name, how) = (uri.name.clone(), wish.how.clone().decide());
    let joining = app.command(Command::Join { peer, name, how });
    let joining = joining.map_err(|error| Failure::core(&format!("join {uri}"), &error))?;
    let mut player = Player::new(app, wish, progress, peer, joining);
    player.run(others)?;
    player.finish()
}

/// A session that is being played.
struct Player<'a> {
    app: &'a mut App,
    progress: &'a mut Progress,
    wish: Wish,
    peer: PeerId,
    joining: Ticket,
    /// Its number, from its offer on.
    id: Option<SessionId>,
    /// The session, once it is set up.
    session: Option<Session>,
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
    closing: Closing,
    is_over: bool,
}

impl<'a> Player<'a> {
    fn new(
        app: &'a mut App,
        wish: Wish,
        progress: &'a mut Progress,
        peer: PeerId,
        joining: Ticket,
    ) -> Self {
        let played = Played::new(wish.uri.clone());
        Self {
            app,
            progress,
            wish,
            peer,
            joining,
            id: None,
            session: None,
            flows: Vec::new(),
            sinks: None,
            open: Vec::new(),
            is_ready: false,
            keys: None,
            local: None,
            asked: Asked::default(),
            figures: Figures::new(),
            played,
            closing: Closing::default(),
            is_over: false,
        }
    }

    fn run(&mut self, mut others: impl FnMut(&mut App, &mut Progress, u32)) -> Result<(), Failure> {
        while !self.is_over {
            let wait = self.wait();
            match self.app.next(wait)? {
                Some(AppEvent::Event(session, event)) => self.handle_event(session, event),
                Some(AppEvent::Signal(signal)) => self.handle_signal(signal),
                Some(AppEvent::Ready(KEYS)) => self.handle_keys(),
                Some(AppEvent::Ready(token)) if token >= LOCAL => self.handle_local(token),
                Some(AppEvent::Ready(token)) => others(self.app, self.progress, token),
                Some(AppEvent::Waits) => {}
                None => self.keys.iter().for_each(Keys::renew),
            }
            if self.is_ready && (self.open.is_empty() || self.is_player_gone()) {
                self.close();
            }
            if self.closing.is_over() {
                self.break_off();
            }
            self.show_figures();
        }
        Ok(())
    }

    fn wait(&mut self) -> Duration {
        let wait = self.progress.due_in(SLICE);
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        self.closing.until().map_or(wait, |at| left(at).min(wait))
    }

    fn handle_event(&mut self, session: Option<SessionId>, event: Event) {
        match event {
            Event::Offered { title, flows } => {
                self.id = session;
                self.handle_offer(title, flows);
            }
            Event::Done { ticket, outcome } if ticket == self.joining => match outcome {
                Ok(_) => self.handle_ready(),
                Err(error) => self.handle_end(Some(error)),
            },
            Event::Done { ticket, outcome } => {
                if let Some(text) = self.asked.handle_answer(ticket, outcome, &mut self.local) {
                    self.say(&text);
                }
            }
            // What is left of an earlier session, which was joined again.
            _ if session.is_none() || session != self.id => {}
            Event::Active => self.figures.begin(),
            Event::ContactLost => {
                self.played.contact_losses += 1;
                self.say(&contact::lost(&self.wish.uri.authority()));
            }
            Event::ContactRestored { after } => {
                self.played.without_contact += after;
                self.say(&contact::restored(&self.wish.uri.authority(), after));
            }
            Event::PathMtuChanged { from, to } => {
                self.played.path_mtus.push(to);
                self.say(&contact::mtu_changed(&self.wish.uri.authority(), from, to));
            }
            Event::PathHeld { loss_ppm, rate_bps } => {
                self.say(&contact::held(&self.wish.uri.authority(), loss_ppm, rate_bps));
            }
            Event::TransportReplaced { flow, transport, reason } => {
                self.say(&contact::stood_in(&flow, &transport, &reason));
            }
            Event::FlowEnded { account } => {
                let place = self.flows.iter().position(|flow| flow.name == account.flow);
                let place = place.unwrap_or(self.flows.len());
                self.open.retain(|open| *open != place);
                self.played.accounts.push(Account::of(place, *account));
            }
            Event::ChangeFailed { error, .. } => self.played.errors.push(error.to_string()),
            Event::Ended { error } => self.handle_end(error),
            _ => {}
        }
    }

    fn handle_offer(&mut self, title: String, flows: Vec<FlowOffer>) {
        let fingerprint = self.app.endpoint.peer_fingerprint(self.peer);
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
                let Some(id) = self.id else { return };
                let answered = self.app.endpoint.answer(id, ports);
                let limited = self
                    .wish
                    .give_up
                    .map_or(Ok(()), |after| self.app.command(Command::GiveUp(id, after)).map(drop));
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
        let Some(id) = self.id else { return };
        self.session = self.app.endpoint.session(id);
        let flows = self.session.as_ref().map(Session::flows).unwrap_or_default();
        let comes =
            |flow: &FlowInfo| flow.direction == Direction::Incoming && flow.refused.is_none();
        self.open = (0..flows.len()).filter(|place| flows.get(*place).is_some_and(comes)).collect();
        self.is_ready = true;
        failpoint!("play.ready");
        if self.open.is_empty() {
            self.played.errors.push("no flow of this session could be taken".to_owned());
            self.played.fail(Exit::Failure);
            return;
        }
        let activated = self.app.command(Command::Activate(id));
        self.give_up_unless(activated.map(drop));
        self.keys = Keys::open(self.app, KEYS);
        match LocalControl::open(self.app, LOCAL) {
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
            keys.forget(self.app);
            self.keys = None;
            return;
        };
        let nominal = self.flows.iter().find_map(asked::nominal_fps).unwrap_or(25_000);
        for key in pressed {
            match keys::meaning(key, self.asked.stands(), nominal) {
                Some(keys::Key::Quit) => self.close(),
                Some(keys::Key::Command(command)) => {
                    let Some(id) = self.id else { continue };
                    if let Err(error) = self.asked.ask_for_key(self.app, id, command) {
                        self.say(&error.to_string());
                    }
                }
                None => {}
            }
        }
    }

    fn handle_local(&mut self, token: u32) {
        let (Some(local), Some(id)) = (&mut self.local, self.id) else { return };
        if let Some((token, request)) = local.handle_ready(self.app, token) {
            let uri = self.wish.uri.to_string();
            self.asked.ask_for_local(self.app, id, local, token, &request, &uri);
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
        if !self.closing.begin(self.played.signal.is_some()) {
            return;
        }
        failpoint!("play.closing");
        // Before its offer there is nothing to close.
        let Some(id) = self.id else { return self.handle_end(None) };
        // A session that has just ended tells so by its event.
        let _ = self.app.command(Command::Close(id));
    }

    /// The peer does not answer: what is not accounted for is booked as unknown.
    fn break_off(&mut self) {
        self.app.leave(self.peer);
        while let Some((session, event)) = self.app.endpoint.poll_event() {
            self.handle_event(session, event);
        }
        self.played.end(&Closing::error());
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
            keys.forget(self.app);
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
