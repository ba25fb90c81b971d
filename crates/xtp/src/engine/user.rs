//! What users do: listen, open, write, read, close.

use super::{Engine, Listener};
use crate::arrival::{Message, Read};
use crate::config::{Listen, Open};
use crate::context::Context;
use crate::event::{ContextId, End};
use crate::group::GroupPolicy;
use crate::table::Input;
use crate::wire::{HEADER_LEN, Limits, Service};
use dacapo_base::Time;
use std::fmt;
use std::time::Duration;

/// What goes before the data of a FIRST at most: header, tag, address and traffic.
const FIRST_HEAD_LEN: usize = HEADER_LEN + 8 + 40 + 24;

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
        self.with(now, id, |context| context.write(now, message))
    }

    /// Takes what has come, at most up to the end of a message.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn read(&mut self, now: Time, id: ContextId, into: &mut [u8]) -> Result<Read, UserError> {
        self.with(now, id, |context| context.read(now, into))
    }

    /// There is room for `len` bytes more: the window of an association with `reserve`.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn post(&mut self, now: Time, id: ContextId, len: usize) -> Result<(), UserError> {
        self.with(now, id, |context| context.post(now, len))
    }

    /// Nothing more is sent after what has been written (WCLOSE).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn finish(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.with(now, id, |context| context.finish())
    }

    /// Nothing more is read: the peer is told to stop (RCLOSE).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn stop_reading(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.with(now, id, |context| context.stop_reading(now))
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
        self.with(now, id, |context| context.set_limits(now, limits))
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
        self.with(now, id, |context| context.set_give_up(give_up))
    }

    /// Gives the association up (END): what was not sent is not sent any more.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn abort(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.with(now, id, |context| context.give_up(Input::UserAborts, End::Abandoned))
    }

    /// Forgets a context that has ended. One that has not is given up: its END is still sent, or,
    /// when too many answers wait already, in answer to what the peer says next.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn release(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        let peer = self.context(id)?.addressing().peer();
        let mut last = Vec::new();
        let has_one = self.context_at(id.slot).is_some_and(|context| {
            context.give_up(Input::UserAborts, End::Abandoned);
            context.poll_last(&mut last)
        });
        if has_one {
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

    /// From now on no packet of this association is longer than `len` bytes, where they were; what
    /// goes again is cut anew, and the peer is asked for packets as short (TCNTL).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn shorten_packets(
        &mut self,
        now: Time,
        id: ContextId,
        len: usize,
    ) -> Result<(), UserError> {
        self.with(now, id, |context| context.shorten(len))
    }

    /// The longest packet of this association, bytes.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn packet_len_max(&self, id: ContextId) -> Result<usize, UserError> {
        Ok(self.context(id)?.packet_len_max())
    }

    pub(super) fn context(&self, id: ContextId) -> Result<&Context, UserError> {
        let place = self.slots.get(id.slot as usize).ok_or(UserError::Released)?;
        let context = place.context.as_deref().filter(|_| place.generation == id.generation);
        context.ok_or(UserError::Released)
    }

    /// Does something to a context, and looks what it has to send and to tell then.
    fn with<R>(
        &mut self,
        now: Time,
        id: ContextId,
        act: impl FnOnce(&mut Context) -> R,
    ) -> Result<R, UserError> {
        self.context(id)?;
        let result = self.context_at(id.slot).map(act).ok_or(UserError::Released)?;
        self.touch(now, id.slot);
        Ok(result)
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
