//! [`FlowSender`] and [`FlowReceiver`]: an application's end of one flow.
//!
//! ```text
//!   send -> queue of the flow -> core … core -> queue of the flow -> recv, recv_with, recv_into
//!          256 units, 4 MiB                    4,096 units, 4 MiB
//! ```
//!
//! Invariants: a flow is looked up by its name once, for the handle; no closure of the application
//! runs, and none of its memory is read or written by a receiver, under the lock of the endpoint; a
//! unit that a call gives an error for stays.

use super::deadline::Deadline;
use super::driver::Guard;
use super::entry::Entry;
use super::flow::{Direction, Flow, UnitMemory};
use super::handle::Session;
use super::ids::FlowId;
use super::messages::{MessageReceiver, MessageSender};
use super::reconsider::Reconsider;
use super::units::{TakenUnit, UnitView, check_len, put, spare, take};
use super::waiting::Waiting;
use super::wanted::{OfFlow, Wanted};

use dacapo_core::{Code, Error, Offered};
use dacapo_sys::clock;

/// What a call that receives without waiting for ever has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received<T = Vec<u8>> {
    /// A unit, or what was made of one.
    Unit(T),
    /// Nothing yet.
    Nothing,
    /// The flow has ended, and everything was received.
    End,
}

impl<T> Received<T> {
    fn map<R>(self, make: impl FnOnce(T) -> R) -> Received<R> {
        match self {
            Self::Unit(unit) => Received::Unit(make(unit)),
            Self::Nothing => Received::Nothing,
            Self::End => Received::End,
        }
    }
}

/// Sends the units of a flow of its session, which it keeps from being dropped. Clones, and further
/// ones of the same flow, send by the same queue. A flow that is sent once for several participants
/// is the same in the session with each: a unit that is sent by one of them goes to all.
#[derive(Clone, Debug)]
pub struct FlowSender {
    session: Session,
    index: usize,
}

/// Receives the units of a flow of its session, which it keeps from being dropped. Clones, and
/// further ones of the same flow, take from the same queue: each unit goes to one of them.
#[derive(Clone, Debug)]
pub struct FlowReceiver {
    session: Session,
    index: usize,
    memory: UnitMemory,
}

impl Session {
    /// The end of a flow that this end sends. It waits as this handle of the session does.
    ///
    /// # Errors
    /// Misuse when the session is closed, there is no such flow, or it is received here.
    pub fn sender(&self, flow: &str) -> Result<FlowSender, Error> {
        let mut state = self.lock();
        let index = state.open_entry(self.core_id())?.flow_index(flow, Direction::Outgoing)?;
        Ok(FlowSender { session: self.clone(), index })
    }

    /// The end of a flow that this end receives. It waits as this handle of the session does.
    ///
    /// # Errors
    /// Misuse when the session is closed, there is no such flow, or it is sent here.
    pub fn receiver(&self, flow: &str) -> Result<FlowReceiver, Error> {
        let mut state = self.lock();
        let entry = state.open_entry(self.core_id())?;
        let index = entry.flow_index(flow, Direction::Incoming)?;
        let memory = entry.flows.get(index).map(Flow::unit_memory).unwrap_or_default();
        Ok(FlowReceiver { session: self.clone(), index, memory })
    }

    /// Makes this end of a flow one that sends messages; from then on it sends no units. The peer
    /// makes its end one that receives them.
    ///
    /// # Errors
    /// Misuse when the session is closed, there is no such flow, it is received here, it has sent
    /// units, or its units are too short.
    pub fn message_sender(&self, flow: &str) -> Result<MessageSender, Error> {
        let mut state = self.lock();
        let entry = state.open_entry(self.core_id())?;
        let index = entry.flow_index(flow, Direction::Outgoing)?;
        entry.flows.get(index).map_or(Ok(()), Flow::send_messages)?;
        drop(state);
        Ok(MessageSender::new(self, flow, index))
    }

    /// Makes this end of a flow one that receives messages; from then on it receives no units.
    /// Units that are none of a message are dropped and counted.
    ///
    /// # Errors
    /// Misuse when the session is closed, there is no such flow, or it is sent here.
    pub fn message_receiver(&self, flow: &str) -> Result<MessageReceiver, Error> {
        let mut state = self.lock();
        let entry = state.open_entry(self.core_id())?;
        let index = entry.flow_index(flow, Direction::Incoming)?;
        entry.flows.get_mut(index).into_iter().for_each(Flow::receive_messages);
        drop(state);
        Ok(MessageReceiver::new(self, index))
    }

    /// Ends what this end sends by a flow.
    pub(super) fn finish_at(&self, index: usize) -> Result<(), Error> {
        let mut state = self.lock();
        let entry = state.open_entry(self.core_id())?;
        if let Some(flow) = entry.flows.get_mut(index) {
            flow.finish();
        }
        state.wake(self.core_id(), index);
        self.shared().act(&mut state);
        Ok(())
    }
}

impl FlowSender {
    /// Its number at its endpoint.
    #[must_use]
    pub fn id(&self) -> FlowId {
        FlowId { session: self.session.id(), flow: self.index }
    }

    /// From now on asks `how`, once a second while the flow runs, whether it is to be changed, as
    /// [`Session::change`](super::Session::change) would. What came of it is an event:
    /// [`Event::Changed`](super::Event::Changed) or `ChangeFailed`. It is asked for as long as the
    /// session lives, or until another is given; one that panics is asked no more, which is a
    /// `ChangeFailed` too.
    ///
    /// # Errors
    /// Misuse when the session is closed.
    pub fn reconsider(&self, how: impl Reconsider + 'static) -> Result<(), Error> {
        let at = (self.session.core_id(), self.index);
        let mut state = self.session.lock();
        state.open_entry(at.0)?;
        state.reconsidered.insert(clock::now(), at, Box::new(how));
        // Who sleeps is to wake up for it.
        self.session.shared().act(&mut state);
        Ok(())
    }

    /// Sends a unit: hands it over, and waits while the queue of the flow is full, or paused.
    ///
    /// # Errors
    /// Misuse when the session is closed or has never been active, or the flow is finished;
    /// [`Code::UnitTooLarge`]; why the flow or the session ended.
    pub fn send(&mut self, unit: &[u8]) -> Result<(), Error> {
        while !self.send_by(unit, Deadline::NEVER)? {}
        Ok(())
    }

    /// The same without waiting; `false` when the queue is full, and the unit was not taken.
    ///
    /// # Errors
    /// As [`FlowSender::send`].
    pub fn try_send(&mut self, unit: &[u8]) -> Result<bool, Error> {
        self.send_by(unit, Deadline::PAST)
    }

    /// The same; `false` when the queue was full until then, and the unit was not taken.
    ///
    /// # Errors
    /// As [`FlowSender::send`].
    pub fn send_by(&mut self, unit: &[u8], until: Deadline) -> Result<bool, Error> {
        let (id, shared) = (self.session.core_id(), self.session.shared());
        let mut state = self.session.lock();
        let entry = state.open_entry(id)?;
        entry.check_begun()?;
        let len = unit.len();
        check_len(entry, self.index, len)?;
        let now = clock::now();
        entry.flows.get_mut(self.index).into_iter().for_each(|flow| flow.awaits_room = None);
        let offered = state.offer(now, id, self.index, unit);
        if offered != Offered::NotNow {
            shared.after_offer(&mut state, now, offered);
            return Ok(true);
        }
        let mut bytes = spare(state.open_entry(id)?, self.index);
        bytes.extend_from_slice(unit);
        loop {
            match put(state.open_entry(id)?, self.index, bytes)? {
                None => {
                    state.wake(id, self.index);
                    shared.act(&mut state);
                    return Ok(true);
                }
                Some(back) => bytes = back,
            }
            let room = Wanted::Flow(id, self.index, OfFlow::Room(len));
            let (locked, outcome) = self.session.wait(state, until.time(), &room);
            state = locked;
            if !outcome? {
                let entry = state.sessions.get_mut(&id);
                if let Some(flow) = entry.and_then(|entry| entry.flows.get_mut(self.index)) {
                    flow.awaits_room = Some(len);
                }
                return Ok(false);
            }
        }
    }

    /// Ends the flow: everything that was handed over is sent, and then the peer's calls say that
    /// it has ended. It does not wait; [`Session::close`] does. Ending twice is once.
    /// A flow that is sent once for several participants ends when all sessions with it that were
    /// accepted have ended it, or are over; it ends for those, too, who still wait to be accepted.
    /// [`Session::close`] ends it for one participant.
    ///
    /// # Errors
    /// Misuse when the session is closed.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.session.finish_at(self.index)
    }
}

impl FlowReceiver {
    /// Its number at its endpoint.
    #[must_use]
    pub fn id(&self) -> FlowId {
        FlowId { session: self.session.id(), flow: self.index }
    }

    /// Waits for a unit, and lends it to `look`, which may take its time: other flows go on, and
    /// other calls on this one too. `None` when the flow has ended and all that came was received.
    ///
    /// # Errors
    /// Misuse when the session is closed or has never been active; why the flow or the session
    /// ended, if that was not its usual end, once all that came was received.
    pub fn recv_with<R>(
        &mut self,
        look: impl FnOnce(UnitView<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        match self.recv_with_by(Deadline::NEVER, look)? {
            Received::Unit(result) => Ok(Some(result)),
            Received::End | Received::Nothing => Ok(None),
        }
    }

    /// The same, until then at most.
    ///
    /// # Errors
    /// As [`FlowReceiver::recv_with`].
    pub fn recv_with_by<R>(
        &mut self,
        until: Deadline,
        look: impl FnOnce(UnitView<'_>) -> R,
    ) -> Result<Received<R>, Error> {
        Ok(self.recv_until(until, usize::MAX)?.map(|unit| look(unit.view(&self.memory))))
    }

    /// Waits for a unit and copies it to the beginning of `into`: how long it is.
    ///
    /// # Errors
    /// As [`FlowReceiver::recv_with`]; [`Code::BufferTooShort`] when the unit is longer: it stays,
    /// and the text says how long it is, as [`FlowReceiver::next_len`] does.
    pub fn recv_into(&mut self, into: &mut [u8]) -> Result<Option<usize>, Error> {
        match self.recv_until(Deadline::NEVER, into.len())? {
            Received::Unit(unit) => Ok(Some(unit.copy_to(into, &self.memory))),
            Received::End | Received::Nothing => Ok(None),
        }
    }

    /// Waits for a unit. `None` when the flow has ended and all that came was received.
    ///
    /// # Errors
    /// As [`FlowReceiver::recv_with`].
    pub fn recv(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match self.recv_by(Deadline::NEVER)? {
            Received::Unit(unit) => Ok(Some(unit)),
            Received::End | Received::Nothing => Ok(None),
        }
    }

    /// The same, until then at most.
    ///
    /// # Errors
    /// As [`FlowReceiver::recv_with`].
    pub fn recv_by(&mut self, until: Deadline) -> Result<Received, Error> {
        Ok(self.recv_until(until, usize::MAX)?.map(|unit| unit.into_bytes(&self.memory)))
    }

    /// The same without waiting: what has come by now.
    ///
    /// # Errors
    /// As [`FlowReceiver::recv_with`].
    pub fn try_recv(&mut self) -> Result<Received, Error> {
        let mut state = self.session.lock();
        state.open_entry(self.session.core_id())?.check_begun()?;
        let received = match self.take(&mut state, usize::MAX)? {
            Received::Nothing if self.session.shared().look(&mut state) => {
                self.take(&mut state, usize::MAX)?
            }
            received => received,
        };
        drop(state);
        Ok(received.map(|unit| unit.into_bytes(&self.memory)))
    }

    /// How long the unit is that comes next, in bytes, when one is there.
    #[must_use]
    pub fn next_len(&self) -> Option<usize> {
        self.memory.next_len()
    }

    /// Gives the memory of a unit back that was received, for those that come: who receives a lot
    /// then needs no memory for each unit. Of a flow that is gone it is freed.
    pub fn give_back(&mut self, unit: Vec<u8>) {
        self.memory.give_back(unit);
    }

    fn recv_until(
        &mut self,
        until: Deadline,
        len_max: usize,
    ) -> Result<Received<TakenUnit>, Error> {
        let id = self.session.core_id();
        let mut state = self.session.lock();
        state.open_entry(id)?.check_begun()?;
        loop {
            match self.take(&mut state, len_max)? {
                Received::Nothing => {}
                received => return Ok(received),
            }
            let unit = Wanted::Flow(id, self.index, OfFlow::Unit);
            let (locked, outcome) = self.session.wait(state, until.time(), &unit);
            state = locked;
            if !outcome? && until != Deadline::NEVER {
                return Ok(Received::Nothing);
            }
        }
    }

    /// Takes a unit out of the queue of the flow, which may go on if it was held up.
    fn take(&self, state: &mut Guard<'_>, len_max: usize) -> Result<Received<TakenUnit>, Error> {
        let entry = state.open_entry(self.session.core_id())?;
        let received = take(entry, self.index, len_max)?;
        let is_held_up = |entry: &Entry| entry.flows.get(self.index).is_some_and(Flow::is_held_up);
        if matches!(received, Received::Unit(_)) && is_held_up(entry) {
            state.go_on(self.session.core_id(), self.index);
        }
        Ok(received)
    }
}

/// A unit is longer than the memory that a call has for it.
pub(super) fn too_short(len: usize, len_max: usize) -> Error {
    let text = format!("the next unit is {len} bytes long, and there is room for {len_max}");
    Error::new(Code::BufferTooShort, text)
}
