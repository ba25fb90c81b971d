//! [`Watching`]: where a transport watches its descriptors.
//!
//! ```text
//!   alone:      socket -> own Poller -> fd()            recv looks itself
//!   taken in:   socket -> Registry in the owner's set   the owner looks, and tells by handle_ready
//! ```
//!
//! Invariant: readiness is a level. What is told twice, or too late, makes a socket be read for
//! nothing; what is forgotten is told again.

use dacapo_sys::poll::{EVENTS_MAX, Event, Interest, Poller, Registry};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Descriptors that are watched alone, or in the set of an owner.
#[derive(Debug)]
pub struct Watching {
    registry: Registry,
    /// Until somebody takes the transport in.
    own: Option<Poller>,
    ready: Vec<Event>,
}

impl Watching {
    /// Alone, in a set of its own.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> io::Result<Self> {
        let own = Poller::new()?;
        Ok(Self { registry: own.registry(0), own: Some(own), ready: Vec::new() })
    }

    /// Watches a socket at a place of its own.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn add(&self, fd: BorrowedFd<'_>, place: u16, interest: Interest) -> io::Result<()> {
        self.registry.add(fd, place, interest)
    }

    /// Watches a socket for something else.
    ///
    /// # Errors
    /// As [`Poller::modify`].
    pub fn modify(&self, fd: BorrowedFd<'_>, place: u16, interest: Interest) -> io::Result<()> {
        self.registry.modify(fd, place, interest)
    }

    /// Watches a socket no longer.
    ///
    /// # Errors
    /// As [`Poller::remove`].
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.registry.remove(fd)
    }

    /// From now on the owner looks. The sockets are to be added again.
    pub fn move_to(&mut self, registry: Registry) {
        (self.registry, self.own) = (registry, None);
        self.ready.clear();
    }

    /// The descriptor to wait for, while nobody else looks.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.own.as_ref().map(AsFd::as_fd)
    }

    /// The owner has found this.
    pub fn handle_ready(&mut self, event: Event) {
        if self.ready.len() < EVENTS_MAX {
            self.ready.push(event);
        }
    }

    /// Swaps what is ready into `events`, with the places as tokens.
    ///
    /// # Errors
    /// As [`Poller::wait`].
    pub fn take_ready(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        match &mut self.own {
            Some(poller) => poller.wait(Some(Duration::ZERO), events),
            None => {
                events.clear();
                std::mem::swap(&mut self.ready, events);
                for event in events {
                    event.token = u64::from(Registry::split(event.token).1);
                }
                Ok(())
            }
        }
    }
}
