//! Calls that wait, each until a time: accept, wait_open, write, read, close, linger; and those
//! that begin or end something and do not: listen, open, finish, release.
//!
//! ```text
//!   call -> try at the engine -> done? return
//!              ^                  not? turn, at most until the time
//!              `--------------------'
//! ```
//!
//! While one call waits, all associations of the host go on, and what comes for them is kept within
//! their windows.
//!
//! Invariant: whatever a peer does or does not, a call ends by its time.

use super::{Host, HostError};
use crate::fault::{AddressError, Fault};
use dacapo_base::Time;
use dacapo_xtp::wire::Service;
use dacapo_xtp::{
    ContextId, End, Event, Listen, ListenError, Message, Open, OpenError, Read, Status, UserError,
};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The longest that is waited at once.
const SLICE: Duration = Duration::from_secs(1);

/// An association that a peer has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The port of XTP.
    pub port: u16,
    /// The context.
    pub id: ContextId,
    /// Who it is, below XTP.
    pub peer: SocketAddr,
    /// What kind of association it is.
    pub service: Service,
}

/// Why a call did not do what it was to do.
#[derive(Debug)]
pub enum CallError {
    /// Its time is over.
    TimedOut,
    /// The association has ended, and what the network said last of the way to the peer.
    Ended(End, Option<Fault>),
    /// The network says that the peer cannot be reached, before it has answered.
    Unreachable(Fault),
    /// The engine does not do it.
    User(UserError),
    /// There are too many contexts, or the service is not there.
    Open(OpenError),
    /// Nothing can be sent to this address.
    Address(AddressError),
    /// A descriptor that is watched is ready: its token.
    Interrupted(u16),
    /// The host cannot go on.
    Host(HostError),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("nothing came in time; is the peer there, and the way?"),
            Self::Ended(end, None) => write!(f, "{end}"),
            Self::Ended(end, Some(fault)) => write!(f, "{end}; of the way was said: {fault}"),
            Self::Unreachable(fault) => write!(f, "{fault}"),
            Self::User(error) => write!(f, "{error}"),
            Self::Open(error) => write!(f, "{error}"),
            Self::Address(error) => write!(f, "{error}"),
            Self::Interrupted(_) => f.write_str("interrupted"),
            Self::Host(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<UserError> for CallError {
    fn from(error: UserError) -> Self {
        Self::User(error)
    }
}

impl From<HostError> for CallError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl Host {
    /// The time after this long, for calls.
    #[must_use]
    pub fn after(&self, wait: Duration) -> Time {
        self.now() + wait
    }

    /// Lets others open associations with a port of XTP.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn listen(&mut self, listen: Listen) -> Result<(), ListenError> {
        self.engine.listen(listen)
    }

    /// The next association that a peer opens. Takes all events of the engine and keeps the others
    /// not: the other calls look at the engine itself.
    ///
    /// # Errors
    /// [`CallError::TimedOut`], [`CallError::Interrupted`], [`CallError::Host`].
    pub fn accept(&mut self, until: Time) -> Result<Incoming, CallError> {
        loop {
            while let Some(event) = self.engine.poll_event() {
                if let Event::Incoming { port, id } = event {
                    self.incoming.push_back((port, id));
                    break;
                }
            }
            while let Some((port, id)) = self.incoming.pop_front() {
                // One that was released meanwhile is nobody's.
                if let Ok(Status { peer, service, .. }) = self.engine.status(id) {
                    return Ok(Incoming { port, id, peer, service });
                }
            }
            self.pause(until)?;
        }
    }

    /// Opens an association, without waiting for the peer: what is written before the next turn
    /// goes with its first packet.
    ///
    /// # Errors
    /// [`CallError::Address`], [`CallError::Open`].
    pub fn open(&mut self, open: &Open) -> Result<ContextId, CallError> {
        let peer = self.network.address(open.peer).map_err(CallError::Address)?;
        self.forget_faults(peer);
        let now = self.now();
        self.engine.open(now, &Open { peer, ..*open }).map_err(CallError::Open)
    }

    /// Waits until the peer has answered.
    ///
    /// # Errors
    /// [`CallError`]; `Unreachable` as soon as the network says so.
    pub fn wait_open(&mut self, id: ContextId, until: Time) -> Result<(), CallError> {
        loop {
            let status = self.engine.status(id)?;
            match status.end {
                // A short association may be over with its answer.
                None if status.is_open => return Ok(()),
                Some(End::Complete) => return Ok(()),
                Some(end) => return Err(self.ended(end, status.peer)),
                None => self.check_way(&status)?,
            }
            self.pause(until)?;
        }
    }

    /// Writes all of a message.
    ///
    /// # Errors
    /// [`CallError`]; a part of it may have been taken.
    pub fn write(
        &mut self,
        id: ContextId,
        message: &Message<'_>,
        until: Time,
    ) -> Result<(), CallError> {
        self.write_rest(id, &mut message.clone(), until)
    }

    /// The same for a message of which a part may have been taken before. When its time is over,
    /// `rest` is what has not been taken yet: who knows that the peer lives tries again with it.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn write_rest(
        &mut self,
        id: ContextId,
        rest: &mut Message<'_>,
        until: Time,
    ) -> Result<(), CallError> {
        loop {
            let now = self.now();
            let taken = self.engine.write(now, id, rest);
            let status = self.engine.status(id)?;
            if let Some(end) = status.end {
                return Err(self.ended(end, status.peer));
            }
            let taken = taken?;
            rest.data = rest.data.get(taken..).unwrap_or_default();
            if rest.data.is_empty() {
                return Ok(());
            }
            if taken > 0 {
                // The tag is with the beginning.
                rest.tag = None;
            }
            self.check_way(&status)?;
            self.pause(until)?;
        }
    }

    /// Reads what is next: bytes, a hole, or the end of the peer's stream, never nothing.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn read(&mut self, id: ContextId, into: &mut [u8], until: Time) -> Result<Read, CallError> {
        loop {
            let now = self.now();
            let read = self.engine.read(now, id, into)?;
            if read != Read::Nothing {
                return Ok(read);
            }
            let status = self.engine.status(id)?;
            if let Some(end) = status.end {
                return Err(self.ended(end, status.peer));
            }
            self.check_way(&status)?;
            self.pause(until)?;
        }
    }

    /// Sends no more after what was written.
    ///
    /// # Errors
    /// [`CallError::User`].
    pub fn finish(&mut self, id: ContextId) -> Result<(), CallError> {
        let now = self.now();
        Ok(self.engine.finish(now, id)?)
    }

    /// Sends no more, reads and forgets what still comes, waits for the end of the association, and
    /// releases its context, whatever happens.
    ///
    /// # Errors
    /// [`CallError`], such as an end that is not [`End::Complete`].
    pub fn close(&mut self, id: ContextId, until: Time) -> Result<(), CallError> {
        let closed = self.finish(id).and_then(|()| self.drain(id, until));
        let released = self.release(id);
        closed.and(released)
    }

    fn drain(&mut self, id: ContextId, until: Time) -> Result<(), CallError> {
        let mut rest = [0; 4_096];
        loop {
            let now = self.now();
            // Each call takes something, or there is nothing now.
            while matches!(
                self.engine.read(now, id, &mut rest)?,
                Read::Data { .. } | Read::Hole { .. }
            ) {}
            let status = self.engine.status(id)?;
            match status.end {
                Some(End::Complete) => return Ok(()),
                Some(end) => return Err(self.ended(end, status.peer)),
                None => self.check_way(&status)?,
            }
            self.pause(until)?;
        }
    }

    /// Forgets an association; one that is not over is given up, and the peer is told.
    ///
    /// # Errors
    /// [`CallError::User`].
    pub fn release(&mut self, id: ContextId) -> Result<(), CallError> {
        let now = self.now();
        self.engine.release(now, id)?;
        self.work(now);
        Ok(())
    }

    /// Answers late packets of associations that are over, until their inactive periods are: a peer
    /// whose copy of END was lost gets another. For who wants to go and has the time.
    ///
    /// # Errors
    /// [`CallError::TimedOut`] when there still are some, [`CallError::Interrupted`],
    /// [`CallError::Host`].
    pub fn linger(&mut self, until: Time) -> Result<(), CallError> {
        while self.engine.inactive_count() > 0 || self.packets_waiting() > 0 {
            self.pause(until)?;
        }
        Ok(())
    }

    fn ended(&self, end: End, peer: SocketAddr) -> CallError {
        let fault = (end != End::Complete).then(|| self.fault_of(peer)).flatten();
        CallError::Ended(end, fault)
    }

    /// Before the peer has answered, what the network says of the way is believed: nothing is lost
    /// if it was forged but an attempt (RFC 5461, section 4).
    fn check_way(&self, status: &Status) -> Result<(), CallError> {
        if status.is_open {
            return Ok(());
        }
        self.fault_of(status.peer).map_or(Ok(()), |fault| Err(CallError::Unreachable(fault)))
    }

    /// One turn, which ends by this time.
    fn pause(&mut self, until: Time) -> Result<(), CallError> {
        let now = self.now();
        if now >= until {
            return Err(CallError::TimedOut);
        }
        self.turn(until.since(now).min(SLICE))?;
        self.take_alarm().map_or(Ok(()), |token| Err(CallError::Interrupted(token)))
    }
}
