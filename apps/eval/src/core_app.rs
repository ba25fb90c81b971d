//! [`App`]: a core, beneath the library's face, together with the signals and descriptors that a
//! measuring command waits for.
//!
//! ```text
//!   core events --+
//!   signals ------+--> App::next --> one thing that happened
//!   descriptors --+
//! ```
//!
//! Invariants: nothing waits longer than it is told; a signal never interrupts anything, it is read
//! like every other input.

use crate::app::{config_from_env, interrupted, not_connected, waiting_for};
use crate::exit::Failure;
use crate::progress::Progress;
use dacapo::Error;
use dacapo::Reactor;
use dacapo::engine::{Command, Core, CoreEvent, DialParams, PeerId};
use dacapo::host::{Host, HostConfig};
use dacapo_sys::signal::{Signal, Signals};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The token of the signals; others belong to commands.
const SIGNALS: u32 = 0;

/// What goes before a connection is torn down has so long to leave.
const FLUSH_MAX: Duration = Duration::from_millis(200);

/// The longest that the core is waited for at once.
const SLICE: Duration = Duration::from_millis(200);

/// One thing that happened.
#[derive(Debug)]
pub enum AppEvent {
    /// The core tells.
    Core(CoreEvent),
    /// A signal came.
    Signal(Signal),
    /// A descriptor that is watched is ready.
    Ready,
}

/// A core, signals, and what else is watched.
pub struct App {
    /// The core of this process.
    pub host: Host,
    signals: Signals,
    tokens: Vec<u32>,
    waiting: VecDeque<AppEvent>,
}

impl App {
    /// A core with the identity of this user; signals are caught from now on.
    pub fn open() -> Result<Self, Failure> {
        Self::open_with(config_from_env()?)
    }

    /// The same, with a host that is told what else it is to be.
    pub fn open_with(config: HostConfig) -> Result<Self, Failure> {
        let host = Host::configured(config);
        let mut host = host.map_err(|error| Failure::core("start", &error))?;
        let signals = Signals::catch(&Signal::ALL)
            .map_err(|error| Failure::run_time("start: signals", error))?;
        let watched = host.reactor().watch(signals.as_fd(), SIGNALS);
        watched.map_err(|error| Failure::run_time("start: signals", error))?;
        Ok(Self { host, signals, tokens: Vec::new(), waiting: VecDeque::new() })
    }

    /// The turn loop.
    pub fn reactor(&mut self) -> &mut Reactor {
        self.host.reactor()
    }

    /// The engine.
    pub fn core(&mut self) -> &mut Core {
        self.host.reactor().core()
    }

    /// The next thing that happens, or nothing within `most`.
    pub fn next(&mut self, most: Duration) -> Result<Option<AppEvent>, Failure> {
        if let Some(event) = self.waiting.pop_front() {
            return Ok(Some(event));
        }
        let event = self.host.next_event(most, &mut self.tokens);
        let event = event.map_err(|error| Failure::core("wait", &error))?;
        for token in self.tokens.drain(..) {
            if token == SIGNALS {
                let signals = std::iter::from_fn(|| self.signals.poll());
                self.waiting.extend(signals.map(AppEvent::Signal));
            } else {
                self.waiting.push_back(AppEvent::Ready);
            }
        }
        self.waiting.extend(event.map(AppEvent::Core));
        Ok(self.waiting.pop_front())
    }

    /// Connects to the core at an address, and keeps trying for so long when `wait` says so. A
    /// signal meanwhile is a failure with its code.
    pub fn connect(
        &mut self,
        to: &str,
        wait: Option<Duration>,
        progress: &mut Progress,
    ) -> Result<PeerId, Failure> {
        let params = DialParams { wait };
        let failed = |error: &Error| not_connected(to, wait, error);
        let remote = dacapo::host::resolve(to).map_err(|error| failed(&error))?;
        let peer = self.host.connect_with(remote.into(), params).map_err(|error| failed(&error))?;
        let began = Instant::now();
        loop {
            match self.next(SLICE)? {
                Some(AppEvent::Core(CoreEvent::PeerOpen { peer: open })) if open == peer => {
                    progress.clear();
                    return Ok(peer);
                }
                Some(AppEvent::Core(CoreEvent::PeerLost { peer: lost, error })) if lost == peer => {
                    progress.clear();
                    return Err(failed(&error));
                }
                Some(AppEvent::Signal(signal)) => {
                    progress.clear();
                    self.leave(peer);
                    return Err(interrupted(signal));
                }
                _ => waiting_for(remote, began, params.most(), progress),
            }
        }
    }

    /// Says goodbye to a peer and lets it go out.
    pub fn leave(&mut self, peer: PeerId) {
        let now = self.reactor().now();
        let _ = self.core().handle_command(now, Command::Disconnect(peer));
        self.reactor().flush(FLUSH_MAX);
    }
}
