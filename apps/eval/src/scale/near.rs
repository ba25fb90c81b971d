//! [`Near`]: the end that joins: a host with several connections that opens sessions and closes
//! them.
//!
//! ```text
//!   join -> Offered -> answer -> Ready -> activate -> Active [-> close -> SessionEnded]
//! ```
//!
//! Invariants: at most [`WINDOW`] sessions are on their way at a time; every wait ends with what is
//! waited for, a signal, or a failure after [`SILENCE_MAX`] without progress.

use super::super::child::Child;
use super::flow::{Arrivals, NAME};
use super::look::Look;
use super::show::Both;
use crate::app::interrupted;
use crate::core_app::{App, AppEvent};
use crate::exit::Failure;
use crate::progress::Progress;
use dacapo::engine::{Command, CoreEvent, Done, JoinParams, PeerId, SessionId};
use dacapo::port::Port;
use dacapo::{Address, Code, Error};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Sessions on their way at a time.
const WINDOW: u64 = 64;

const SILENCE_MAX: Duration = Duration::from_secs(30);
const SLICE: Duration = Duration::from_millis(200);

/// What becomes of sessions that are set up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Keep,
    Close,
}

/// The end that joins.
pub struct Near<'a> {
    app: App,
    child: &'a mut Child,
    progress: &'a mut Progress,
    /// The far end, by each of its ports to which there is a connection.
    peers: Vec<PeerId>,
    next: usize,
    /// Sessions that run.
    active: BTreeSet<SessionId>,
    /// Sessions that were set up, and that are over, since the last count began.
    opened: u64,
    ended: u64,
    then: Then,
    /// What came of their flows.
    pub arrivals: Arrivals,
}

impl<'a> Near<'a> {
    /// A host without connections.
    ///
    /// # Errors
    /// As [`App::open`].
    pub fn open(child: &'a mut Child, progress: &'a mut Progress) -> Result<Self, Failure> {
        let app = App::open()?;
        let (peers, active, then) = (Vec::new(), BTreeSet::new(), Then::Keep);
        let arrivals = Arrivals::default();
        Ok(Self {
            app,
            child,
            progress,
            peers,
            next: 0,
            active,
            opened: 0,
            ended: 0,
            then,
            arrivals,
        })
    }

    /// Connects to so many of the ports, in all.
    ///
    /// # Errors
    /// The far end does not answer, or there is no descriptor left.
    pub fn connect(&mut self, count: usize) -> Result<(), Failure> {
        self.dial(count)?;
        // A path is known a little after it is open: only then both ends have what they keep of it.
        self.rest(Duration::from_secs(2))
    }

    /// Connects to so many of the ports, in all, without waiting for what comes after.
    ///
    /// # Errors
    /// As [`Near::connect`].
    pub fn dial(&mut self, count: usize) -> Result<(), Failure> {
        while self.peers.len() < count {
            let address = self.child.addresses.get(self.peers.len());
            let remote = address.and_then(|it| it.parse::<Address>().ok());
            let remote = remote.ok_or_else(|| failed("the far end has no further port"))?;
            let peer = self.app.host.connect(remote).map_err(core)?;
            self.opened = 0;
            self.drive("connections", 1, |near| Ok(near.opened))?;
            self.peers.push(peer);
        }
        Ok(())
    }

    /// Opens sessions until so many run; how long it took.
    ///
    /// # Errors
    /// One of them fails, or a signal comes.
    pub fn hold(&mut self, count: u64) -> Result<Duration, Failure> {
        self.then = Then::Keep;
        self.join_all("sessions opened", count, |near| near.opened)
    }

    /// Opens and closes so many sessions, each as soon as it runs; how long it took.
    ///
    /// # Errors
    /// One of them fails, or a signal comes.
    pub fn churn(&mut self, count: u64) -> Result<Duration, Failure> {
        self.then = Then::Close;
        self.join_all("sessions opened and closed", count, |near| near.ended)
    }

    /// Closes what runs; how long it took.
    ///
    /// # Errors
    /// One of them fails, or a signal comes.
    pub fn close_all(&mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        let all: Vec<SessionId> = self.active.iter().copied().collect();
        (self.opened, self.ended) = (0, 0);
        let (count, mut begun) = (all.len() as u64, 0);
        self.drive("sessions closed", count, |near| {
            while begun < count && begun - near.ended < WINDOW {
                let next = usize::try_from(begun).ok().and_then(|at| all.get(at));
                next.map_or(Ok(()), |session| near.close(*session))?;
                begun += 1;
            }
            Ok(near.ended)
        })?;
        Ok(began.elapsed())
    }

    /// Does nothing for so long.
    ///
    /// # Errors
    /// A signal comes, or a session ends.
    pub fn rest(&mut self, how_long: Duration) -> Result<(), Failure> {
        let end = Instant::now() + how_long;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.turn(left)?;
        }
    }

    /// Looks at both ends.
    ///
    /// # Errors
    /// The far end is gone, or the system does not tell.
    pub fn look(&mut self) -> Result<Both, Failure> {
        let near = Look::at(self.app.core())?;
        let far = Look::from_json(&self.child.ask("look")?);
        let far = far.ok_or_else(|| failed("the far end speaks nonsense"))?;
        Ok(Both { near, far })
    }

    /// Takes leave of the far end.
    pub fn leave(mut self) {
        let now = self.app.reactor().now();
        for peer in std::mem::take(&mut self.peers) {
            let _ = self.app.core().handle_command(now, Command::Disconnect(peer));
        }
        self.app.reactor().flush(Duration::from_millis(50));
    }

    /// Joins so many sessions, [`WINDOW`] at a time, until `done` says that all are; how long it
    /// took.
    fn join_all(
        &mut self,
        what: &str,
        count: u64,
        done: impl Fn(&Self) -> u64,
    ) -> Result<Duration, Failure> {
        let began = Instant::now();
        (self.opened, self.ended) = (0, 0);
        let mut begun = 0;
        self.drive(what, count, |near| {
            while begun < count && begun - done(near) < WINDOW {
                near.join()?;
                begun += 1;
            }
            Ok(done(near))
        })?;
        Ok(began.elapsed())
    }

    fn drive(
        &mut self,
        what: &str,
        count: u64,
        mut more: impl FnMut(&mut Self) -> Result<u64, Failure>,
    ) -> Result<(), Failure> {
        let (mut before, mut since) = (0, Instant::now());
        loop {
            let done = more(self)?;
            if done >= count {
                self.progress.clear();
                return Ok(());
            }
            if done != before {
                (before, since) = (done, Instant::now());
            }
            if since.elapsed() > SILENCE_MAX {
                return Err(failed(&format!("nothing more after {done} of {count} {what}")));
            }
            if self.progress.is_due() {
                self.progress.show(&format!("{done} of {count} {what}"));
            }
            self.turn(SLICE)?;
        }
    }

    /// Does what comes within `most`.
    fn turn(&mut self, most: Duration) -> Result<(), Failure> {
        match self.app.next(most)? {
            Some(AppEvent::Signal(signal)) => Err(interrupted(signal)),
            Some(AppEvent::Core(event)) => self.handle(event),
            Some(AppEvent::Ready) | None => Ok(()),
        }
    }

    fn join(&mut self) -> Result<(), Failure> {
        self.next = (self.next + 1) % self.peers.len().max(1);
        let Some(peer) = self.peers.get(self.next).copied() else { return Ok(()) };
        let now = self.app.reactor().now();
        let joined = self
            .app
            .core()
            .handle_command(
                now,
                Command::Join { peer, name: NAME.into(), params: JoinParams::default() },
            )
            .and_then(Done::session);
        joined.map(|_| ()).map_err(core)
    }

    fn close(&mut self, session: SessionId) -> Result<(), Failure> {
        let now = self.app.reactor().now();
        self.app.core().handle_command(now, Command::Close(session)).map(drop).map_err(core)
    }

    fn handle(&mut self, event: CoreEvent) -> Result<(), Failure> {
        let now = self.app.reactor().now();
        let engine = self.app.core();
        match event {
            CoreEvent::PeerOpen { .. } => {
                self.opened += 1;
                Ok(())
            }
            CoreEvent::Offered { session, flows, .. } => {
                let sink = || Some(Port::Sink(Box::new(self.arrivals.clone())));
                let ports = flows.iter().map(|_| sink()).collect();
                unless_over(engine.answer(now, session, ports))
            }
            CoreEvent::Ready { session } => {
                unless_over(engine.handle_command(now, Command::Activate(session)).map(drop))
            }
            CoreEvent::Active { session } => {
                self.opened += 1;
                self.active.insert(session);
                if self.then == Then::Close { self.close(session) } else { Ok(()) }
            }
            CoreEvent::SessionEnded { error: Some(error), .. }
            | CoreEvent::PeerLost { error, .. } => Err(core(error)),
            CoreEvent::SessionEnded { session, .. } => {
                self.ended += 1;
                self.active.remove(&session);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A session may have ended since it said this: an event says why, which comes behind it.
fn unless_over(done: Result<(), Error>) -> Result<(), Failure> {
    match done {
        Err(error) if error.code == Code::NoSuchThing => Ok(()),
        done => done.map_err(core),
    }
}

fn failed(text: &str) -> Failure {
    Failure::run_time("bench scale", text)
}

fn core(error: Error) -> Failure {
    Failure::core("bench scale", &error)
}
