//! What users do: listen, open, write, read, close.

use super::{Engine, ListenError, OpenError, Status, UserError};
use crate::arrival::{Message, Read};
use crate::config::{Listen, Open};
use crate::context::{Command, Context};
use crate::event::ContextId;
use crate::group::{GroupPolicy, Join, Member};
use crate::wire::{HEADER_LEN, Limits, Service};
use dacapo_base::Time;
use std::time::Duration;

/// What goes before the data of a FIRST at most: header, tag, address and traffic.
const FIRST_HEAD_LEN: usize = HEADER_LEN + 8 + 40 + 24;

impl Engine {
    /// Lets others open associations with a port of XTP.
    ///
    /// # Errors
    /// [`ListenError::Taken`].
    pub fn listen(&mut self, listen: Listen) -> Result<(), ListenError> {
        self.listeners.insert(listen)
    }

    /// Lets nobody open associations with a port any more; those that are open go on.
    pub fn unlisten(&mut self, port: u16) {
        self.listeners.remove(port);
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
        let mut open = *open;
        if matches!(open.service, Service::Datagram | Service::Multicast) {
            (open.mode.without_repair, open.mode.without_window) = (true, true);
        }
        let numbers = self.draw_numbers();
        self.begin(now, Context::opening(now, self.associations.config(), &open, None, numbers))
    }

    /// Opens a reliable association with a group, whatever service `open` names. Data is sent when
    /// enough members have joined; every one of them gets every byte from then on, or
    /// [`crate::Event::Left`] says that it did not. Nothing is read.
    ///
    /// # Errors
    /// [`OpenError::Full`], [`OpenError::Policy`].
    pub fn open_group(
        &mut self,
        now: Time,
        open: &Open,
        policy: &GroupPolicy,
    ) -> Result<ContextId, OpenError> {
        if !policy.is_sound() {
            return Err(OpenError::Policy(*policy));
        }
        let mut open = Open { service: Service::ReliableMulticast, ..*open };
        open.mode.without_repair = false;
        let numbers = self.draw_numbers();
        let config = self.associations.config();
        self.begin(now, Context::opening(now, config, &open, Some(*policy), numbers))
    }

    /// Asks to join a reliable group whose association may have begun: its stream is heard from
    /// where the transmitter says, and nothing before. [`crate::Event::Opened`] says that it is so,
    /// [`crate::Event::Ended`] that it is not.
    ///
    /// # Errors
    /// [`OpenError::Full`].
    pub fn join(&mut self, now: Time, join: &Join) -> Result<ContextId, OpenError> {
        let numbers = (self.random.next_u32(), self.random.next_u32());
        let key = self.associations.draw_key(&mut self.random);
        self.begin(now, Context::joining(now, self.associations.config(), join, key, numbers))
    }

    /// A key, and the number of the first request.
    pub(super) fn draw_numbers(&mut self) -> (u64, u32) {
        (self.associations.draw_key(&mut self.random), self.random.next_u32())
    }

    /// Takes in a context that the user has asked for.
    fn begin(&mut self, now: Time, context: Context) -> Result<ContextId, OpenError> {
        let full = OpenError::Full { count: self.associations.config().contexts_max };
        self.associations.add(now, context, None).ok_or(full)
    }

    /// The members of a reliable group to which this context transmits, in no order; of any other
    /// context none.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn members(&self, id: ContextId) -> Result<Vec<Member>, UserError> {
        Ok(self.associations.contexts().of(id)?.role().members())
    }

    /// How an association stands.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn status(&self, id: ContextId) -> Result<Status, UserError> {
        self.associations.contexts().of(id).map(Status::of)
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
        let len_max = self.associations.config().packet_len_max.saturating_sub(FIRST_HEAD_LEN);
        let context = self.associations.contexts().of(id)?;
        if context.lifecycle().end().is_some() || context.outbound().sender().is_finished() {
            return Err(UserError::Closed);
        }
        if message.data.is_empty() && message.is_end {
            return Err(UserError::Empty);
        }
        if context.terms().service() == Service::Datagram && message.data.len() > len_max {
            return Err(UserError::TooLong { len_max });
        }
        self.associations.with(now, id, |context| context.write(now, message))
    }

    /// Takes what has come, at most up to the end of a message.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn read(&mut self, now: Time, id: ContextId, into: &mut [u8]) -> Result<Read, UserError> {
        self.associations.with(now, id, |context| context.read(now, into))
    }

    /// There is room for `len` bytes more: the window of an association with `reserve`.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn post(&mut self, now: Time, id: ContextId, len: usize) -> Result<(), UserError> {
        self.associations.command(now, id, Command::Post(len))
    }

    /// Nothing more is sent after what has been written (WCLOSE).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn finish(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.associations.command(now, id, Command::Finish)
    }

    /// Nothing more is read: the peer is told to stop (RCLOSE).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn stop_reading(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.associations.command(now, id, Command::StopReading)
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
        self.associations.command(now, id, Command::SetLimits(limits))
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
        self.associations.command(now, id, Command::SetGiveUp(give_up))
    }

    /// Gives the association up (END): what was not sent is not sent any more.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn abort(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        self.associations.command(now, id, Command::Abort)
    }

    /// Forgets a context that has ended. One that has not is given up: its END is still sent, or,
    /// when too many answers wait already, in answer to what the peer says next.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn release(&mut self, now: Time, id: ContextId) -> Result<(), UserError> {
        if let Some(port) = self.associations.release(now, id)? {
            // It was never taken: its place in the backlog is free.
            self.listeners.handle_taken(port);
        }
        Ok(())
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
        self.associations.command(now, id, Command::Shorten(len))
    }

    /// The longest packet of this association, bytes.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn packet_len_max(&self, id: ContextId) -> Result<usize, UserError> {
        Ok(self.associations.contexts().of(id)?.outbound().length().packet_max())
    }
}
