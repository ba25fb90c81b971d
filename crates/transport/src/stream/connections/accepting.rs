//! The descriptors of a transport of streams: who listens, who came, and what they are watched for.
//!
//! Invariants: at most [`ACCEPTS_MAX`] connections per call and listener; a token of the poller
//! names one socket at a time; a listener that cannot accept is not watched until its pause is
//! over.

use super::{Connections, Listener};
use crate::stream::Token;
use crate::stream::table::Watch;
use dacapo_base::{Address, Time};
use dacapo_io::Pause;
use dacapo_sys::poll::Interest;
use std::io;
use std::os::fd::AsFd;

/// The most connections that one call takes from one listener.
const ACCEPTS_MAX: usize = 64;

/// Streams have tokens from here up, listeners below.
const STREAM_TOKENS: usize = 1_000;

/// A listener.
#[derive(Debug)]
pub(super) struct Accepting<L> {
    listener: L,
    local: Address,
    pause: Pause,
}

impl<L> Accepting<L> {
    /// When it accepts again, if it pauses.
    pub(super) fn paused_until(&self) -> Option<Time> {
        self.pause.until()
    }
}

/// Which socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Listener(usize),
    Stream(usize),
}

impl Place {
    pub(super) fn of_token(token: u64) -> Self {
        let token = usize::try_from(token).unwrap_or(0);
        match token.checked_sub(STREAM_TOKENS) {
            Some(index) => Self::Stream(index),
            None => Self::Listener(token),
        }
    }

    fn token(self) -> u64 {
        match self {
            Self::Listener(index) => index as u64,
            Self::Stream(index) => (STREAM_TOKENS + index) as u64,
        }
    }
}

impl<L: Listener> Connections<L> {
    /// Accepts from `listener`, which listens at `local` and gives no end that blocks.
    ///
    /// # Errors
    /// When its descriptor cannot be watched.
    pub fn add_listener(&mut self, listener: L, local: Address) -> io::Result<()> {
        let token = Place::Listener(self.listeners.len()).token();
        self.poller.add(listener.as_fd(), token, Interest::Read)?;
        self.local_addrs.push(local);
        self.listeners.push(Accepting { listener, local, pause: Pause::default() });
        Ok(())
    }

    /// Takes a connection that was dialed, whose addresses are `local` and `remote`.
    ///
    /// # Errors
    /// When its descriptor cannot be watched.
    pub fn add_dialed(
        &mut self,
        connection: L::Connection,
        [local, remote]: [Address; 2],
        token: Token,
    ) -> io::Result<()> {
        self.local_addrs.push(local);
        let index = self.streams.dialed(connection, [local, remote], token);
        self.watch_new(index)?;
        // On one host it is open already, and the preface need not wait for a look.
        self.streams.handle_writable(index);
        self.settle_watches();
        Ok(())
    }

    fn watch_new(&mut self, index: usize) -> io::Result<()> {
        match self.streams.connection(index) {
            Some(connection) => {
                self.poller.add(connection.as_fd(), Place::Stream(index).token(), Interest::Read)
            }
            None => Ok(()),
        }
    }

    /// Takes who has come to a listener.
    pub(super) fn accept(&mut self, index: usize, now: Time) {
        for taken in 0..ACCEPTS_MAX {
            let Some(it) = self.listeners.get(index) else { return };
            let local = it.local;
            match it.listener.accept() {
                Ok(None) => return,
                Ok(Some((connection, remote))) => {
                    self.add_accepted(connection, [local, remote], now);
                }
                Err(_) => {
                    self.streams.stats.errors += 1;
                    // The system lacks a descriptor also when nobody waits, so whoever was taken in
                    // just now is not given up for nobody; who waits makes the listener readable
                    // again. Else a descriptor that says nothing is the one to give up.
                    if taken == 0 && !self.streams.displace_oldest() {
                        self.pause(index, now);
                    }
                    return;
                }
            }
        }
    }

    fn add_accepted(&mut self, connection: L::Connection, ends: [Address; 2], now: Time) {
        let index = self.streams.accepted(connection, ends, now);
        if self.watch_new(index).is_err() {
            // Without being watched it would never be read; the deadline of its preface ends it.
            self.streams.stats.errors += 1;
        }
    }

    fn pause(&mut self, index: usize, now: Time) {
        let Some(it) = self.listeners.get_mut(index) else { return };
        it.pause.begin(now, || self.poller.remove(it.listener.as_fd()));
    }

    /// Watches the listeners again whose pause is over.
    pub(super) fn end_pauses(&mut self, now: Time) {
        for (index, it) in self.listeners.iter_mut().enumerate() {
            let token = Place::Listener(index).token();
            let watch = || self.poller.add(it.listener.as_fd(), token, Interest::Read);
            it.pause.end(now, watch);
        }
    }

    /// Watches those streams otherwise whose wish has changed.
    pub(super) fn settle_watches(&mut self) {
        while let Some((index, connection, [before, now])) = self.streams.poll_watch() {
            let interest = match now {
                Watch::ReadWrite if L::ROOM_IS_POLLED => Interest::ReadWrite,
                _ => Interest::Read,
            };
            match now {
                Watch::ReadWrite if !L::ROOM_IS_POLLED => self.full.insert(index),
                _ => self.full.remove(&index),
            };
            let (fd, token) = (connection.as_fd(), Place::Stream(index).token());
            // The end of a stream that is not read would be told over and over.
            let settled = match (before, now) {
                (_, Watch::Nothing) => self.poller.remove(fd),
                (Watch::Nothing, _) => self.poller.add(fd, token, interest),
                _ if !L::ROOM_IS_POLLED => Ok(()),
                _ => self.poller.modify(fd, token, interest),
            };
            self.streams.stats.errors += u64::from(settled.is_err());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Config, Tcp};
    use crate::{StreamTransport, Transport};
    use dacapo_packet::Pool;
    use dacapo_sys::poll::Poller;
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::Duration;

    fn server() -> Tcp {
        Tcp::serve(&[(Ipv4Addr::LOCALHOST, 0).into()], &Config::default()).unwrap()
    }

    fn turn(tcp: &mut Tcp, now: Time) {
        tcp.recv(now, &mut Pool::new(0), &mut Vec::new());
    }

    /// True when the transport's descriptor is readable now.
    fn is_readable(tcp: &Tcp) -> bool {
        let mut poller = Poller::new().unwrap();
        poller.add(tcp.fd().unwrap(), 0, Interest::Read).unwrap();
        let mut events = Vec::new();
        poller.wait(Some(Duration::ZERO), &mut events).unwrap();
        !events.is_empty()
    }

    #[test]
    fn every_place_has_a_token_of_its_own() {
        for place in [Place::Listener(0), Place::Listener(15), Place::Stream(0), Place::Stream(999)]
        {
            assert_eq!(Place::of_token(place.token()), place);
        }
    }

    // Running out of descriptors would disturb the tests beside this one, so what it leads to is
    // asked for here.
    #[test]
    fn a_listener_that_pauses_does_not_spin_and_accepts_again_in_time() {
        let mut tcp = server();
        let at = Time::from_millis;
        let _waiting = TcpStream::connect(tcp.local_addrs()[0].ip().unwrap()).unwrap();
        assert!(is_readable(&tcp));
        tcp.pause(0, at(10));
        assert!(!is_readable(&tcp));
        assert_eq!(tcp.next_deadline(), Some(at(110)));
        turn(&mut tcp, at(109));
        assert_eq!(tcp.stats().streams.accepted, 0);
        turn(&mut tcp, at(110));
        assert_eq!(tcp.stats().streams.accepted, 1);
        assert_eq!(tcp.next_deadline(), Some(at(1_110)), "the preface is due");
    }
}
