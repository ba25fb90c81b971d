//! Messages instead of units: what a [`RawSender`] does for [`crate::access::messages`].
//!
//! Invariant: a flow carries units or messages, never both.

use super::queue::lock;
use super::{Part, RawSender};
use crate::access::messages::{HEAD_LEN, Outbox, Outcome, Sums, Ticket};
use std::fmt;

/// A flow cannot carry messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// It carries units already.
    CarriesUnits,
    /// Its units are at most so long, which is too short for a head and a byte.
    TooShort(usize),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CarriesUnits => {
                f.write_str("units were sent by it already; messages need a flow of their own")
            }
            Self::TooShort(most) => {
                let least = HEAD_LEN + 1;
                write!(f, "its units have at most {most} bytes, and messages need {least}")?;
                f.write_str("; give it a larger unit_max")
            }
        }
    }
}

impl std::error::Error for MessageError {}

/// A message that was not accepted, given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendMessageError {
    /// Too much waits: try again later.
    Full(Vec<u8>),
    /// The flow has ended, or carries no messages.
    Closed(Vec<u8>),
}

impl RawSender {
    /// From now on the flow carries messages; beginning twice is once.
    ///
    /// # Errors
    /// It cannot.
    pub fn begin_messages(&self, unit_len_max: usize) -> Result<(), MessageError> {
        let mut queue = lock(&self.queue);
        if queue.outbox.is_some() {
            return Ok(());
        }
        if queue.has_carried_units {
            return Err(MessageError::CarriesUnits);
        }
        let outbox = Outbox::new(unit_len_max).ok_or(MessageError::TooShort(unit_len_max))?;
        queue.outbox = Some(Box::new(outbox));
        Ok(())
    }

    /// A unit has gone by the flow past its queue: it carries no messages any more.
    pub fn carries_units(&self) {
        lock(&self.queue).has_carried_units = true;
    }

    /// Whether the flow carries messages.
    #[must_use]
    pub fn carries_messages(&self) -> bool {
        lock(&self.queue).outbox.is_some()
    }

    /// Hands over a message: its ticket, and how many units it is.
    ///
    /// # Errors
    /// The message, when too much waits, the flow has ended or carries no messages, or this sender
    /// has finished or waits.
    pub fn send_message(
        &self,
        priority: u16,
        data: Vec<u8>,
    ) -> Result<(Ticket, u64), SendMessageError> {
        let mut queue = lock(&self.queue);
        let is_open = !queue.is_closed && self.part == Part::Sends;
        let Some(outbox) = queue.outbox.as_mut().filter(|_| is_open) else {
            return Err(SendMessageError::Closed(data));
        };
        let units = outbox.units_of(data.len());
        let ticket = outbox.accept(priority, data).map_err(SendMessageError::Full)?;
        Ok((ticket, units))
    }

    /// Whether a message of `len` bytes is accepted now.
    #[must_use]
    pub fn has_message_room(&self, priority: u16, len: usize) -> bool {
        let queue = lock(&self.queue);
        queue.outbox.as_ref().is_some_and(|outbox| outbox.has_capacity(priority, len))
    }

    /// Whether a ticket is of a message of this flow.
    #[must_use]
    pub fn has_given(&self, ticket: Ticket) -> bool {
        lock(&self.queue).outbox.as_ref().is_some_and(|outbox| outbox.has_given(ticket))
    }

    /// How a message ended; `None` while it has not.
    #[must_use]
    pub fn outcome(&self, ticket: Ticket) -> Option<Outcome> {
        lock(&self.queue).outbox.as_ref()?.outcome(ticket)
    }

    /// What has become of all messages.
    #[must_use]
    pub fn message_sums(&self) -> Sums {
        lock(&self.queue).outbox.as_ref().map_or_else(Sums::default, |outbox| *outbox.sums())
    }

    /// Nobody will take what waits: messages come to nothing.
    pub fn fail_messages(&self) {
        lock(&self.queue).fail_messages();
    }
}

#[cfg(test)]
mod tests {
    use super::super::RawSendError;
    use super::*;

    #[test]
    fn a_flow_carries_units_or_messages() {
        let (sender, source) = RawSender::pair();
        let sent = sender.send_message(0, vec![1]);
        assert_eq!(sent, Err(SendMessageError::Closed(vec![1])), "it has not begun");
        assert_eq!(sender.begin_messages(HEAD_LEN), Err(MessageError::TooShort(HEAD_LEN)));
        sender.begin_messages(HEAD_LEN + 10).unwrap();
        sender.begin_messages(HEAD_LEN + 10).unwrap();
        let (ticket, units) = sender.send_message(0, vec![1; 25]).unwrap();
        assert_eq!((units, sender.waiting(), sender.outcome(ticket)), (3, 3, None));
        assert_eq!(sender.send(vec![2]), Err(RawSendError::Closed(vec![2])));
        assert!(sender.carries_messages() && sender.has_message_room(0, 10) && !sender.is_idle());
        drop(source);
        assert!(matches!(sender.outcome(ticket), Some(Outcome::Failed(_))));
        assert_eq!(sender.send_message(0, vec![1]), Err(SendMessageError::Closed(vec![1])));
        assert!(sender.message_sums().closes());
        let (sender, _source) = RawSender::pair();
        sender.send(vec![1]).unwrap();
        let refused = sender.begin_messages(1_000).unwrap_err();
        assert_eq!(refused, MessageError::CarriesUnits);
        for error in [refused, MessageError::TooShort(9)] {
            assert!(!error.to_string().is_empty());
        }
    }
}
