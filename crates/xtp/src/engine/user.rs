//! What users do: listen, open, write, read, close.

use super::{ContextId, Engine, Listener};
use crate::arrival::Read;
use crate::config::{Listen, Open};
use crate::context::Context;
use crate::event::End;
use crate::group::GroupPolicy;
use crate::table::Input;
use crate::wire::{HEADER_LEN, Limits, Service};
use dacapo_base::Time;
use std::fmt;
use std::time::Duration;

/// What goes before the data of a FIRST at most: header, tag, address and traffic.
const FIRST_HEAD_LEN: usize = HEADER_LEN + 8 + 40 + 24;

/// Bytes for the peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// Whether a message ends with the last of them.
    pub is_end: bool,
    /// Eight bytes that the peer's user gets with the message; counts at its beginning only.
    pub tag: Option<[u8; 8]>,
    /// Whether [`crate::Event::Delivered`] is wanted, when the peer's user has read all of it.
    pub asks_delivery: bool,
    /// Whether more of the message is written at once, as MSG_MORE of sockets says: what does not
    /// fill a packet waits for that, 5 ms at most from when it was written, however often more is
    /// announced. Counts where no message ends and no delivery is asked for.
    pub has_more: bool,
}

impl<'a> Message<'a> {
    /// A whole message.
    #[must_use]
    pub const fn whole(data: &'a [u8]) -> Self {
        Self { data, is_end: true, tag: None, asks_delivery: false, has_more: false }
    }

    /// A stretch of a stream.
    #[must_use]
    pub const fn part(data: &'a [u8]) -> Self {
        Self { data, is_end: false, tag: None, asks_delivery: false, has_more: false }
    }
}

/// Why a port cannot be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenError {
    /// Somebody does.
    Taken {
        /// The port of XTP.
        port: u16,
    },
}

/// Why an association cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// There are as many contexts as there may be.
    Full {
        /// How many.
        count: usize,
    },
    /// The numbers of a group's policy contradict each other.
    Policy(GroupPolicy),
}

/// Why a user cannot do something with a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserError {
    /// It was released.
    Released,
    /// This end, or the peer, takes nothing more to send.
    Closed,
    /// A message of a stream has at least one byte: an empty one could get lost without a trace.
    Empty,
    /// A datagram goes in one packet.
    TooLong {
        /// The most bytes.
        len_max: usize,
    },
}

impl Engine {
    /// Lets others open associations with a port of XTP.
    ///
    /// # Errors
    /// [`ListenError::Taken`].
    pub fn listen(&mut self, listen: Listen) -> Result<(), ListenError> {
        let port = listen.port;
        if self.listeners.contains_key(&port) {
            return Err(ListenError::Taken { port });
        }
        self.listeners.insert(port, Listener { listen, waiting: 0 });
        Ok(())
    }

    /// Lets nobody open associations with a port any more; those that are open go on.
    pub fn unlisten(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Opens an association. Its first packet carries what is written before the next
    /// [`Engine::poll_packet`]. Datagrams and streams to groups are sent without repair and
    /// without window, whatever `open` says, and nothing is read. A reliable group is opened with
    /// the usual policy ([`Engine::open_group`]).
    ///
    /// # Errors
    /// [`OpenError::Full`].
    pub fn open(&mut self, now: Time, open: &Open) -> Result<ContextId, OpenError> {
        if open.service == Service::ReliableMulticast {
            return self.open_group(now, open, &GroupPolicy::default());
        }
        let (key, sync) = (self.draw_key(), self.random.next_u32());
        let mut open = *open;
        if matches!(open.service, Service::Datagram | Service::Multicast) {
            (open.mode.without_repair, open.mode.without_window) = (true, true);
        }
        let context = Context::opening(now, &self.config, &open, key, sync);
        self.begin(now, context)
    }

    /// Finds a place for a context that the user has asked for.
    pub(super) fn begin(&mut self, now: Time, context: Context) -> Result<ContextId, OpenError> {
        let full = OpenError::Full { count: self.config.contexts_max };
        let slot = self.place(context, None).ok_or(full)?;
        self.touch(now, slot);
        let generation = self.slots.get(slot as usize).map_or(0, |place| place.generation);
        Ok(ContextId { slot, generation })
    }

    /// Gives bytes to send; returns how many were taken. When it was not all,
    /// [`crate::Event::Writable`] says when there is room.
    ///
    /// # Errors
    /// [`UserError`]: released, closed, an empty message, a datagram that is too long.
    pub fn write(
        &mut self,
        now: Time,
        id: ContextId,
        message: &Message<'_>,
    ) -> Result<usize, UserError> {
        let len_max = self.config.packet_len_max.saturating_sub(FIRST_HEAD_LEN);
        let context = self.context(id)?;
        if !context.takes_data() {
            return Err(UserError::Closed);
        }
        if message.data.is_empty() && message.is_end {
            return Err(UserError::Empty);
        }
        if context.terms().service() == Service::Datagram && message.data.len() > len_max {
            return Err(UserError::TooLong { len_max });
        }
        let taken = context.write(now, message);
        self.touch(now, id.slot);
        Ok(taken)
    }

    /// Takes what has come, at most up to the end of a message.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn read(&mut self, now: Time, id: ContextId, into: &mut [u8]) -> Result<Read, UserError> {
        let read = self.context(id)?.read(now, into);
        self.touch(now, id.slot);
        Ok(read)
    }

    /// There is room for `len` bytes more: the window of an association with `reserve`.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn post(&mut self, now: Time, id: ContextId, len: usize) -> Result<(), UserError> {
        self.context(id)?.post(now, len);
        self.touch(now, id.slot);
        Ok(())
    }

    /// Nothing more is sent after what has been written (WCLOSE).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn finish(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.context(id)?.finish();
        self.touch(now, id.slot);
        Ok(())
    }

    /// Nothing more is read: the peer is told to stop (RCLOSE).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn stop_reading(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.context(id)?.stop_reading(now);
        self.touch(now, id.slot);
        Ok(())
    }

    /// Other limits from now on, which the peer is told (TCNTL).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn set_limits(
        &mut self,
        now: Time,
        id: ContextId,
        limits: Limits,
    ) -> Result<(), UserError> {
        self.context(id)?.set_limits(now, limits);
        self.touch(now, id.slot);
        Ok(())
    }

    /// From now on a peer of this association that does not answer is given up after so long
    /// (CTIMEOUT), and not after what the engine was told for all.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn set_give_up(
        &mut self,
        now: Time,
        id: ContextId,
        give_up: Duration,
    ) -> Result<(), UserError> {
        self.context(id)?.set_give_up(give_up);
        self.touch(now, id.slot);
        Ok(())
    }

    /// Gives the association up (END): what was not sent is not sent any more.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn abort(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.context(id)?.give_up(Input::UserAborts, End::Abandoned);
        self.touch(now, id.slot);
        Ok(())
    }

    /// Forgets a context that has ended. One that has not is given up: its END is still sent, or,
    /// when too many answers wait already, in answer to what the peer says next.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn release(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        let context = self.context(id)?;
        let (peer, mut last) = (context.addressing().peer(), Vec::new());
        context.give_up(Input::UserAborts, End::Abandoned);
        if context.poll_last(&mut last) {
            self.push_answer(peer, last);
        }
        self.bury(now, id.slot);
        self.told.remove(id.slot);
        self.forget(id.slot);
        Ok(())
    }

    fn forget(&mut self, slot: u32) {
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        let port = place.listener.take();
        place.context = None;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot);
        // It was never taken: its place in the backlog is free.
        if let Some(listener) = port.and_then(|port| self.listeners.get_mut(&port)) {
            listener.waiting = listener.waiting.saturating_sub(1);
        }
    }

    pub(super) fn context(&mut self, id: ContextId) -> Result<&mut Context, UserError> {
        let place = self.slots.get_mut(id.slot as usize).ok_or(UserError::Released)?;
        if place.generation != id.generation {
            return Err(UserError::Released);
        }
        place.context.as_deref_mut().ok_or(UserError::Released)
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { port } => write!(f, "XTP port {port} is listened on already"),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { count } => {
                write!(f, "there are {count} contexts, the most there may be; release some")
            }
            Self::Policy(GroupPolicy { members_first, members_min, members_max, .. }) => write!(
                f,
                "a group needs 1 <= members_min <= members_first <= members_max, \
                 not {members_min}, {members_first}, {members_max}"
            ),
        }
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("the context was released"),
            Self::Closed => f.write_str("this end of the association sends no more"),
            Self::Empty => f.write_str("an empty message in a stream; write at least one byte"),
            Self::TooLong { len_max } => {
                write!(f, "too long for a datagram, which has at most {len_max} bytes of data")
            }
        }
    }
}

impl std::error::Error for ListenError {}
impl std::error::Error for OpenError {}
impl std::error::Error for UserError {}
