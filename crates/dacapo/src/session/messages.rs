//! [`MessageSender`] and [`MessageReceiver`]: whole messages over a flow of bytes.
//!
//! ```text
//!   send_message -> by priority -> units of the flow -> … -> parts -> get_message
//!     1,024 messages, 1 MiB                            256 parts, 1 MiB
//!        '-- wait, outcome: how it ended
//! ```
//!
//! The SAFENET message service as an access module ([`crate::access::messages`] says how it works
//! and what is bounded). Both ends of a flow with `source = { raw = true }` are made into ends of
//! messages by its applications, whatever its protocol is; units go over the network as before.
//!
//! What a flow loses breaks the messages that it was of, one by one, and they are reported as
//! broken; ask for `loss = "0"` where none may be.
//!
//! Invariant: calls wait with the session as those for units do, and say the same when it ends.
//!
//! Two endpoints:
//!
//! ```
//! use dacapo::access::messages::{Outcome, ROUTINE};
//! use dacapo::{Endpoint, host::Host};
//! use dacapo_security::Identity;
//!
//! let endpoint = || Endpoint::with_host(Host::with_identity(Identity::generate().unwrap())?);
//! let creator = endpoint()?.create(
//!     r#"
//!     [session]
//!     name = "orders"
//!     [[flow]]
//!     name = "there"
//!     from = "participant"
//!     source = { raw = true }
//!     attributes = { loss = "0", order = "ordered" }
//!     "#,
//! )?;
//! creator.listen("127.0.0.1:0")?;
//! let here = endpoint()?.connect(&creator.uri().unwrap().to_string())?;
//! let there = creator.accept()?;
//! here.activate()?;
//!
//! let sender = here.message_sender("there")?;
//! let ticket = sender.send_message(ROUTINE, b"a hundred bricks".to_vec())?;
//! assert_eq!(sender.send_message_and_wait(0, b"stop the lorry".to_vec())?, Outcome::Sent);
//! assert_eq!(sender.wait(ticket)?, Outcome::Sent);
//! sender.finish()?;
//!
//! let receiver = there.message_receiver("there")?;
//! let mut messages = Vec::new();
//! while let Some(part) = receiver.get_message()? {
//!     assert!(part.is_whole());
//!     messages.push(part.data);
//! }
//! messages.sort();
//! assert_eq!(messages, [&b"a hundred bricks"[..], b"stop the lorry"]);
//! assert!(here.close()?.is_complete());
//! # Ok::<(), dacapo::Error>(())
//! ```

use super::driver::Guard;
use super::flow::Flow;
use super::handle::Session;
use super::state::State;
use super::units::{put_message, take_part};
use super::waiting::Waiting;
use super::wanted::{OfFlow, Wanted};
use crate::access::messages::{Counters, Inbox, Outcome, Part, ReceivedSums, Sums, Ticket};
use crate::misuse::misuse;
use dacapo_base::Time;
use dacapo_core::Error;
use dacapo_sys::clock;
use std::time::Duration;

/// What became of a message that is handed over without waiting for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// It will be sent; the ticket tells how it ends.
    Accepted(Ticket),
    /// Too much waits; the message, given back.
    Full(Vec<u8>),
}

/// What a call that gets a message without waiting for ever has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// A message, or a part of one that is long or broken.
    Part(Part),
    /// Nothing yet.
    Nothing,
    /// The flow has ended, and everything was taken.
    End,
}

/// Sends messages by a flow of its session, which it keeps from being dropped. Clones, and further
/// ones of the same flow, send by the same queue.
#[derive(Clone, Debug)]
pub struct MessageSender {
    session: Session,
    flow: String,
    index: usize,
}

/// Gets the messages of a flow of its session, which it keeps from being dropped. Clones, and
/// further ones of the same flow, take from the same messages.
#[derive(Clone, Debug)]
pub struct MessageReceiver {
    session: Session,
    index: usize,
}

impl MessageSender {
    pub(super) fn new(session: &Session, flow: &str, index: usize) -> Self {
        Self { session: session.clone(), flow: flow.to_owned(), index }
    }

    /// SEND_MESSAGE, asynchronous: hands a message over, and waits while too much waits or the flow
    /// pauses. Smaller priorities are more urgent and overtake others between two units; equals go
    /// in order ([`ROUTINE`](crate::access::messages::ROUTINE) is the middle).
    ///
    /// # Errors
    /// Misuse when the session is closed or has never been active, or the flow is finished; why
    /// the flow or the session ended.
    pub fn send_message(&self, priority: u16, message: Vec<u8>) -> Result<Ticket, Error> {
        let mut message = message;
        loop {
            match self.send_until(priority, message, Time::NEVER)? {
                SendOutcome::Accepted(ticket) => return Ok(ticket),
                SendOutcome::Full(back) => message = back,
            }
        }
    }

    /// The same, for at most so long.
    ///
    /// # Errors
    /// As [`MessageSender::send_message`].
    pub fn send_message_timeout(
        &self,
        priority: u16,
        message: Vec<u8>,
        most: Duration,
    ) -> Result<SendOutcome, Error> {
        self.send_until(priority, message, clock::now() + most)
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// As [`MessageSender::send_message`].
    pub fn try_send_message(&self, priority: u16, message: Vec<u8>) -> Result<SendOutcome, Error> {
        self.send_until(priority, message, Time::ZERO)
    }

    /// SEND_MESSAGE, synchronous: the same, and waits until the message has ended: all of it was
    /// handed over to the flow.
    ///
    /// # Errors
    /// As [`MessageSender::send_message`] and [`MessageSender::wait`].
    pub fn send_message_and_wait(&self, priority: u16, message: Vec<u8>) -> Result<Outcome, Error> {
        self.wait(self.send_message(priority, message)?)
    }

    /// Waits until a message has ended.
    ///
    /// # Errors
    /// Misuse when the session is closed meanwhile, or the ticket is of another flow; why the
    /// session ended, when others still send by the flow and the message with it.
    pub fn wait(&self, ticket: Ticket) -> Result<Outcome, Error> {
        loop {
            if let Some(outcome) = self.wait_until(ticket, Time::NEVER)? {
                return Ok(outcome);
            }
        }
    }

    /// The same, for at most so long; `None` when it has not ended then.
    ///
    /// # Errors
    /// As [`MessageSender::wait`].
    pub fn wait_timeout(&self, ticket: Ticket, most: Duration) -> Result<Option<Outcome>, Error> {
        self.wait_until(ticket, clock::now() + most)
    }

    /// How a message ended; `None` while it has not. Also after the end of the session.
    #[must_use]
    pub fn outcome(&self, ticket: Ticket) -> Option<Outcome> {
        outcome(&self.session.lock(), &self.session, self.index, ticket)
    }

    /// What has become of all messages of the flow, those of other senders included. Also after the
    /// end of the session.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let state = self.session.lock();
        let flow =
            state.sessions.get(&self.session.core_id()).and_then(|it| it.flows.get(self.index));
        flow.and_then(Flow::sender).map(|sender| sender.message_sums()).unwrap_or_default()
    }

    /// Ends the flow after all messages that were handed over, as
    /// [`FlowSender::finish`](super::FlowSender::finish) does.
    ///
    /// # Errors
    /// As [`FlowSender::finish`](super::FlowSender::finish).
    pub fn finish(&self) -> Result<(), Error> {
        self.session.finish_at(self.index)
    }

    fn send_until(
        &self,
        priority: u16,
        message: Vec<u8>,
        until: Time,
    ) -> Result<SendOutcome, Error> {
        let (session, id, index) = (&self.session, self.session.core_id(), self.index);
        let (len, mut message) = (message.len(), message);
        let mut state = session.lock();
        state.open_entry(id)?.check_begun()?;
        loop {
            match put_message(state.open_entry(id)?, index, priority, message)? {
                SendOutcome::Full(back) => message = back,
                accepted => {
                    state.wake(id, index);
                    session.shared().act(&mut state);
                    return Ok(accepted);
                }
            }
            let room = Wanted::Flow(id, index, OfFlow::MessageRoom { priority, len });
            let (locked, outcome) = session.wait(state, until, &room);
            state = locked;
            if !outcome? {
                return Ok(SendOutcome::Full(message));
            }
        }
    }

    fn wait_until(&self, ticket: Ticket, until: Time) -> Result<Option<Outcome>, Error> {
        let (session, index) = (&self.session, self.index);
        let state = session.lock();
        let flow = state.sessions.get(&session.core_id()).and_then(|entry| entry.flows.get(index));
        if flow.and_then(Flow::sender).is_some_and(|sender| !sender.has_given(ticket)) {
            return Err(misuse(format!("the ticket is not of the flow \"{}\"", self.flow)));
        }
        let end = Wanted::Flow(session.core_id(), index, OfFlow::Outcome(ticket));
        let (mut state, waited) = session.wait(state, until, &end);
        if let Some(outcome) = outcome(&state, session, index, ticket) {
            return Ok(Some(outcome));
        }
        if !waited? {
            return Ok(None);
        }
        let entry = state.open_entry(session.core_id())?;
        match entry.flows.get(index) {
            Some(flow) => Err(entry.why_not_sent(flow)),
            None => Err(misuse("no such flow")),
        }
    }
}

/// How a message of a flow ended.
fn outcome(state: &Guard<'_>, session: &Session, index: usize, ticket: Ticket) -> Option<Outcome> {
    let flow = state.sessions.get(&session.core_id())?.flows.get(index)?;
    flow.sender()?.outcome(ticket)
}

impl MessageReceiver {
    pub(super) fn new(session: &Session, index: usize) -> Self {
        Self { session: session.clone(), index }
    }

    /// GET_MESSAGE: the most urgent message that has come, of equals in the order in which they
    /// became whole; waits for one. A message that is longer than 256 KiB comes in parts of so
    /// many, between which more urgent ones may come; one whose rest will not come ends with an
    /// empty part that says so. `None` when the flow has ended and all that came was taken.
    ///
    /// # Errors
    /// Misuse when the session is closed or has never been active; why the flow or the session
    /// ended, if that was not its usual end, once all that came was taken.
    pub fn get_message(&self) -> Result<Option<Part>, Error> {
        loop {
            match self.get_until(Time::NEVER)? {
                Got::Part(part) => return Ok(Some(part)),
                Got::End => return Ok(None),
                Got::Nothing => {}
            }
        }
    }

    /// The same, for at most so long.
    ///
    /// # Errors
    /// As [`MessageReceiver::get_message`].
    pub fn get_message_timeout(&self, most: Duration) -> Result<Got, Error> {
        self.get_until(clock::now() + most)
    }

    /// The same without waiting: what has come by now.
    ///
    /// # Errors
    /// As [`MessageReceiver::get_message`].
    pub fn try_get_message(&self) -> Result<Got, Error> {
        let mut state = self.session.lock();
        state.open_entry(self.session.core_id())?.check_begun()?;
        match self.take(&mut state)? {
            Got::Nothing => {}
            got => return Ok(got),
        }
        if !self.session.shared().look(&mut state) {
            return Ok(Got::Nothing);
        }
        self.take(&mut state)
    }

    /// What has become of the messages that have begun to come. Also after the end of the session.
    #[must_use]
    pub fn sums(&self) -> ReceivedSums {
        self.look(|inbox| *inbox.sums())
    }

    /// What came besides. Also after the end of the session.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.look(Inbox::counters)
    }

    fn look<T: Default>(&self, look: impl FnOnce(&Inbox) -> T) -> T {
        let state = self.session.lock();
        let flow =
            state.sessions.get(&self.session.core_id()).and_then(|it| it.flows.get(self.index));
        flow.and_then(|flow| flow.inbox.as_deref()).map(look).unwrap_or_default()
    }

    fn get_until(&self, until: Time) -> Result<Got, Error> {
        let (session, index) = (&self.session, self.index);
        let mut state = session.lock();
        state.open_entry(session.core_id())?.check_begun()?;
        loop {
            match self.take(&mut state)? {
                Got::Nothing => {}
                got => return Ok(got),
            }
            let part = Wanted::Flow(session.core_id(), index, OfFlow::Unit);
            let (locked, outcome) = session.wait(state, until, &part);
            state = locked;
            if !outcome? {
                return Ok(Got::Nothing);
            }
        }
    }

    /// Takes a part, and units out of the queue of the flow, which may go on if it was held up.
    fn take(&self, state: &mut State) -> Result<Got, Error> {
        let (id, index) = (self.session.core_id(), self.index);
        let entry = state.open_entry(id)?;
        let (got, has_taken_units) = take_part(entry, index)?;
        if has_taken_units && entry.flows.get(index).is_some_and(Flow::is_held_up) {
            state.go_on(id, index);
        }
        Ok(got)
    }
}
