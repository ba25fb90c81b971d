//! [`Owned`]: a transport that is watched in its owner's poller, shown as one that is not.
//!
//! What a turn loop does with [`Transport::watch_in`], so that every rule can be asked of a
//! transport either way.

use crate::{Incoming, RecvOutcome, Transport, pass_on};
use dacapo_base::Time;
use dacapo_packet::Pool;
use dacapo_sys::poll::{Event, Poller, Registry};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The key of the transport among those of its owner: not 0, which it would take itself.
const KEY: u64 = 77;

/// A transport and the poller of its owner.
pub struct Owned {
    inner: Box<dyn Transport>,
    poller: Poller,
    events: Vec<Event>,
}

impl Owned {
    /// Takes a transport in.
    ///
    /// # Panics
    /// When it does not do that, or no descriptor is left.
    #[must_use]
    pub fn new(mut inner: Box<dyn Transport>) -> Self {
        let poller = Poller::new().expect("a descriptor is left");
        let is_watched = inner.watch_in(poller.registry(KEY));
        assert!(is_watched.is_ok_and(|it| it), "watched in its owner's poller");
        assert!(inner.fd().is_none(), "who is watched there has no descriptor of its own");
        Self { inner, poller, events: Vec::new() }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Transport for Owned {
    pass_on!(
        inner: spec, datagram_len_max, local_addrs, open_data, close_data, join, leave, send,
        poll_too_large, poll_refused, stats
    );

    fn recv(&mut self, now: Time, pool: &mut Pool, into: &mut Vec<Incoming>) -> RecvOutcome {
        let looked = self.poller.wait(Some(Duration::ZERO), &mut self.events);
        assert!(looked.is_ok(), "{looked:?}");
        for event in &self.events {
            assert_eq!(Registry::split(event.token).0, KEY);
            self.inner.handle_ready(*event);
        }
        self.inner.recv(now, pool, into)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }

    fn watch_in(&mut self, _: Registry) -> io::Result<bool> {
        Ok(false)
    }

    fn handle_ready(&mut self, _: Event) {}
}
