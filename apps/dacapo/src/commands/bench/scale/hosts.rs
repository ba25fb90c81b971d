//! [`Hosts`]: hosts of one process, turned by one thread when they have something to do.
//!
//! ```text
//!   host 0 --+
//!   host 1 --+-> Poller --> next: turns who is ready, due or was given a command
//!   signals -+
//! ```
//!
//! What it is not: `Edge`, which is one host and more.
//!
//! Invariant: a host that has nothing to do is not turned.

use crate::edge::interrupted;
use crate::exit::Failure;
use dacapo::Host;
use dacapo::core::{Core, CoreEvent};
use dacapo_base::Time;
use dacapo_sys::clock;
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::signal::{Signal, Signals};
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::AsFd;
use std::time::Duration;

/// The token of the signals; others are the numbers of hosts.
const SIGNALS: u64 = u64::MAX;

struct Seat {
    host: Host,
    /// When it is turned next: at once when it was given a command.
    due: Time,
}

/// Hosts and the signals of the process.
pub struct Hosts {
    seats: Vec<Seat>,
    poller: Poller,
    signals: Signals,
    events: VecDeque<(usize, CoreEvent)>,
}

impl Hosts {
    /// So many hosts with the identity of this user; signals are caught from now on.
    ///
    /// # Errors
    /// There is no identity or no descriptor to be had.
    pub fn open(count: usize) -> Result<Self, Failure> {
        let poller = Poller::new().map_err(system)?;
        let signals = Signals::catch(&Signal::ALL).map_err(system)?;
        poller.add(signals.as_fd(), SIGNALS, Interest::Read).map_err(system)?;
        let mut seats = Vec::with_capacity(count);
        for number in 0..count as u64 {
            let mut host = Host::new().map_err(|error| Failure::core("bench scale", &error))?;
            poller.add(host.reactor().as_fd(), number, Interest::Read).map_err(system)?;
            seats.push(Seat { host, due: Time::NEVER });
        }
        Ok(Self { seats, poller, signals, events: VecDeque::new() })
    }

    /// A host, to be given a command now.
    pub fn command(&mut self, number: usize) -> Option<(&mut Host, Time)> {
        let seat = self.seats.get_mut(number)?;
        let now = clock::now();
        seat.due = now;
        Some((&mut seat.host, now))
    }

    /// Their cores.
    pub fn cores(&mut self) -> impl Iterator<Item = &Core> {
        self.seats.iter_mut().map(|seat| &*seat.host.reactor().core())
    }

    /// The next thing that a core tells, and which, or nothing within `most`.
    ///
    /// # Errors
    /// A signal came, or nothing works any more.
    pub fn next(&mut self, most: Duration) -> Result<Option<(usize, CoreEvent)>, Failure> {
        let end = clock::now() + most;
        let mut ready = Vec::new();
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let now = clock::now();
            if now >= end {
                return Ok(None);
            }
            let due = self.seats.iter().map(|seat| seat.due).min().unwrap_or(end).min(end);
            self.poller.wait(Some(due.since(now)), &mut ready).map_err(system)?;
            let now = clock::now();
            for event in &ready {
                if event.token == SIGNALS
                    && let Some(signal) = self.signals.poll()
                {
                    return Err(interrupted(signal));
                }
                let number = usize::try_from(event.token).unwrap_or(usize::MAX);
                if let Some(seat) = self.seats.get_mut(number) {
                    seat.due = now;
                }
            }
            self.turn(now)?;
        }
    }

    /// Turns those that are due.
    fn turn(&mut self, now: Time) -> Result<(), Failure> {
        for (number, seat) in self.seats.iter_mut().enumerate() {
            if seat.due > now {
                continue;
            }
            let reactor = seat.host.reactor();
            reactor.turn(Duration::ZERO).map_err(system)?;
            let events = std::iter::from_fn(|| reactor.poll_event());
            self.events.extend(events.map(|event| (number, event)));
            seat.due = reactor.next_deadline().unwrap_or(Time::NEVER);
        }
        Ok(())
    }

    /// What their cores have left for the network goes out.
    pub fn flush(&mut self) {
        for seat in &mut self.seats {
            seat.host.reactor().flush(Duration::from_millis(50));
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // A descriptor is removed before it is closed.
        for seat in &mut self.seats {
            let _ = self.poller.remove(seat.host.reactor().as_fd());
        }
    }
}

fn system(error: impl fmt::Display) -> Failure {
    Failure::run_time("bench scale", error)
}
