//! [`App`]: an endpoint together with the signals and descriptors that a command waits for.
//!
//! ```text
//!   endpoint events --+
//!   signals ----------+--> App::next --> one thing that happened
//!   descriptors ------+
//! ```
//!
//! Invariants: nothing waits longer than it is told, and what is there is found by who does not
//! wait at all; a signal never interrupts anything, it is read like every other input.

use crate::exit::{Exit, Failure, exit_of};
use crate::progress::Progress;
use dacapo::failpoint;
use dacapo::host::HostConfig;
use dacapo::{Code, Command, Deadline, Endpoint, Error, Event, Outcome, PeerId, SessionId, Ticket};
use dacapo_sys::poll::{self, Interest, Poller};
use dacapo_sys::signal::{Signal, Signals};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The tokens of the endpoint and of the signals; those of commands are `u32`.
const ENDPOINT: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

/// How often it is shown how long a connection is waited for.
const SLICE: Duration = Duration::from_millis(200);

/// How long a connection is tried when nothing is said.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// One thing that happened.
#[derive(Debug)]
pub enum AppEvent {
    /// Something at the endpoint, to this session if to any.
    Event(Option<SessionId>, Event),
    /// Something waits at the endpoint that is no event, such as somebody to accept.
    Waits,
    /// A signal came.
    Signal(Signal),
    /// A descriptor with this token is ready.
    Ready(u32),
}

/// What the environment says of this host.
pub fn config_from_env() -> Result<HostConfig, Failure> {
    // It is the words that are wrong, whatever has found that.
    HostConfig::from_env().map_err(|error| Failure::run_time("environment", error.text))
}

/// An endpoint, signals, and what else is watched.
pub struct App {
    /// The endpoint of this process.
    pub endpoint: Endpoint,
    signals: Signals,
    poller: Poller,
    found: Vec<poll::Event>,
    waiting: VecDeque<AppEvent>,
}

impl App {
    /// An endpoint with the identity of this user; signals are caught from now on.
    pub fn open() -> Result<Self, Failure> {
        Self::open_with(config_from_env()?)
    }

    /// The same, with a host that is told what else it is to be.
    pub fn open_with(config: HostConfig) -> Result<Self, Failure> {
        let endpoint = Endpoint::builder().config(config).build();
        let endpoint = endpoint.map_err(|error| Failure::core("start", &error))?;
        let failed = |error| Failure::run_time("start: signals", error);
        let signals = Signals::catch(&Signal::ALL).map_err(failed)?;
        let poller = Poller::new().map_err(failed)?;
        poller.add(signals.as_fd(), SIGNALS, Interest::Read).map_err(failed)?;
        poller.add(endpoint.as_fd(), ENDPOINT, Interest::Read).map_err(failed)?;
        Ok(Self { endpoint, signals, poller, found: Vec::new(), waiting: VecDeque::new() })
    }

    /// Watches a descriptor: [`AppEvent::Ready`] tells when there is something to read.
    pub fn watch(&self, fd: BorrowedFd<'_>, token: u32) -> io::Result<()> {
        self.poller.add(fd, u64::from(token), Interest::Read)
    }

    /// Watches it no longer.
    pub fn unwatch(&self, fd: BorrowedFd<'_>) {
        // One that is not watched needs nothing.
        let _ = self.poller.remove(fd);
    }

    /// The next thing that happens, or nothing within `most`.
    pub fn next(&mut self, most: Duration) -> Result<Option<AppEvent>, Failure> {
        let end = Instant::now() + most;
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(Some(event));
            }
            let event = self.endpoint.poll_event();
            let left = match &event {
                Some(_) => Duration::ZERO,
                None => end.saturating_duration_since(Instant::now()),
            };
            self.waiting.extend(event.map(|(session, event)| AppEvent::Event(session, event)));
            self.look(left).map_err(|error| Failure::run_time("wait", error))?;
            if self.waiting.is_empty() && left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Waits for descriptors, and takes what they show.
    fn look(&mut self, most: Duration) -> io::Result<()> {
        self.poller.wait(Some(most), &mut self.found)?;
        for event in std::mem::take(&mut self.found) {
            match event.token {
                ENDPOINT if self.endpoint.turn(Deadline::PAST)?.is_ready => {
                    let event = self.endpoint.poll_event();
                    let event = event.map(|(session, event)| AppEvent::Event(session, event));
                    self.waiting.push_back(event.unwrap_or(AppEvent::Waits));
                }
                ENDPOINT => {}
                SIGNALS => {
                    let signals = std::iter::from_fn(|| self.signals.poll());
                    self.waiting.extend(signals.map(AppEvent::Signal));
                }
                token => self.waiting.extend(u32::try_from(token).map(AppEvent::Ready)),
            }
        }
        Ok(())
    }

    /// Begins what a command says; [`Event::Done`] with the ticket says what came of it.
    ///
    /// # Errors
    /// As [`Endpoint::command`].
    pub fn command(&mut self, command: Command) -> Result<Ticket, Error> {
        self.endpoint.command(command)
    }

    /// Connects to the host at an address, and keeps trying for so long when `wait` says so. A
    /// signal meanwhile is a failure with its code.
    pub fn connect(
        &mut self,
        to: &str,
        wait: Option<Duration>,
        progress: &mut Progress,
    ) -> Result<PeerId, Failure> {
        let failed = |error: &Error| not_connected(to, wait, error);
        let remote = dacapo::host::resolve(to).map_err(|error| failed(&error))?;
        let connect = self.command(Command::Connect { to: remote.into(), wait });
        let connect = connect.map_err(|error| failed(&error))?;
        failpoint!("play.connecting");
        let (began, most) = (Instant::now(), wait.unwrap_or(CONNECT_MAX));
        loop {
            match self.next(SLICE)? {
                Some(AppEvent::Event(_, Event::Done { ticket, outcome })) if ticket == connect => {
                    progress.clear();
                    match outcome {
                        Ok(Outcome::Connected(peer)) => return Ok(peer),
                        Ok(_) => {}
                        Err(error) => return Err(failed(&error)),
                    }
                }
                Some(AppEvent::Signal(signal)) => {
                    progress.clear();
                    return Err(interrupted(signal));
                }
                _ => waiting_for(remote, began, most, progress),
            }
        }
    }

    /// Says goodbye to a peer.
    pub fn leave(&mut self, peer: PeerId) {
        // One that is gone needs no goodbye.
        let _ = self.command(Command::Disconnect(peer));
    }
}

/// Why there is no connection, and what to do.
pub fn not_connected(to: &str, wait: Option<Duration>, error: &Error) -> Failure {
    let what = format!("connect to {to}");
    match error.code {
        Code::NotListening if wait.is_none() => {
            let first = "start `dacapo serve` or `dacapo recv` there, or wait with --wait 10s";
            Failure::new(exit_of(error.code), &what, format!("{error}: {first}"))
        }
        _ => Failure::core(&what, error),
    }
}

/// A command that a signal ended before there was anything to close.
pub fn interrupted(signal: Signal) -> Failure {
    Failure { exit: Exit::Signal(signal), text: String::new() }
}

/// Shows, when it is due, how long a connection is waited for.
pub fn waiting_for(remote: SocketAddr, began: Instant, most: Duration, progress: &mut Progress) {
    let waited = began.elapsed();
    if waited > Duration::from_secs(1) && progress.is_due() {
        let (waited, most) = (waited.as_secs(), most.as_secs_f64());
        progress.show(&format!("connecting to {remote} … {waited} s of {most} s"));
    }
}
