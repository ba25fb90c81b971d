//! [`Ticket`] and [`Outcome`]: what became of each message, and the [`Sums`] that close.
//!
//! ```text
//!   send_message -> Claim (cannot be copied) -> Ledger::close(claim, outcome) -> Event::Ended
//! ```
//!
//! Invariant: a ticket ends exactly once. Inside it is a claim, which is moved from queue to queue
//! and used up by its end.

use crate::wire::LetGo;
use dacapo_xtp::{End, OpenError};
use std::fmt;

/// A message that was accepted for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Why a message came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The association ended.
    Ended(End),
    /// The receiver takes no more of it.
    LetGo(LetGo),
    /// The receiver's reports are none.
    Malformed,
    /// No association could be opened.
    NotOpened(OpenError),
    /// This end was closed.
    Closed,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The peer's user has all of it.
    Delivered,
    /// It has left for a group, of which nobody says what arrived.
    Sent,
    /// It is with the hosts of so many members of a group that repairs; so many others were lost
    /// before they had all of it. Who joined after it began is not counted.
    Reached {
        /// Members that have it.
        members: u32,
        /// Members that were there when it began and have not got it.
        lost: u32,
    },
    /// The peer's user has not got all of it, and will not.
    Failed(Cause),
    /// It was under way when the association ended: the peer's user may have it.
    Unknown(Cause),
}

/// How many messages ended how: `accepted` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Messages that were accepted for sending.
    pub accepted: u64,
    /// [`Outcome::Delivered`].
    pub delivered: u64,
    /// [`Outcome::Sent`].
    pub sent: u64,
    /// [`Outcome::Reached`].
    pub reached: u64,
    /// [`Outcome::Failed`].
    pub failed: u64,
    /// [`Outcome::Unknown`].
    pub unknown: u64,
    /// Not ended yet.
    pub open: u64,
}

impl Sums {
    /// Whether every message is accounted for.
    #[must_use]
    pub const fn closes(&self) -> bool {
        let Self { accepted, delivered, sent, reached, failed, unknown, open } = *self;
        let ended = delivered as u128 + sent as u128 + reached as u128;
        accepted as u128 == ended + failed as u128 + unknown as u128 + open as u128
    }
}

/// The right to end a ticket.
#[derive(Debug)]
#[must_use = "a ticket ends exactly once"]
pub struct Claim(Ticket);

/// Hands out tickets and counts their ends.
#[derive(Debug, Default)]
pub struct Ledger {
    sums: Sums,
}

impl Ledger {
    /// What has become of all tickets.
    pub const fn sums(&self) -> &Sums {
        &self.sums
    }

    /// A new ticket, and the right to end it.
    pub fn open(&mut self) -> (Ticket, Claim) {
        let ticket = Ticket(self.sums.accepted);
        self.sums.accepted = self.sums.accepted.saturating_add(1);
        self.sums.open = self.sums.open.saturating_add(1);
        (ticket, Claim(ticket))
    }

    /// Ends a ticket.
    pub fn close(&mut self, claim: Claim, outcome: Outcome) -> Ticket {
        let count = match outcome {
            Outcome::Delivered => &mut self.sums.delivered,
            Outcome::Sent => &mut self.sums.sent,
            Outcome::Reached { .. } => &mut self.sums.reached,
            Outcome::Failed(_) => &mut self.sums.failed,
            Outcome::Unknown(_) => &mut self.sums.unknown,
        };
        *count = count.saturating_add(1);
        self.sums.open = self.sums.open.saturating_sub(1);
        claim.0
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(end) => write!(f, "the association ended: {end}"),
            Self::LetGo(LetGo::Full) => {
                f.write_str("the receiver has no room for another association; try later")
            }
            Self::LetGo(LetGo::Malformed) => {
                f.write_str("the receiver takes what came for no message; is it of this version?")
            }
            Self::LetGo(LetGo::Rested) => {
                f.write_str("the receiver gave the resting association's room away; send it again")
            }
            Self::LetGo(LetGo::Closing) => f.write_str("the receiver is closing"),
            Self::Malformed => {
                f.write_str("the receiver's reports are none; is it of this version?")
            }
            Self::NotOpened(error) => write!(f, "no association could be opened: {error}"),
            Self::Closed => f.write_str("this end was closed"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered => f.write_str("delivered"),
            Self::Sent => f.write_str("sent"),
            Self::Reached { members, lost: 0 } => write!(f, "with all {members} members"),
            Self::Reached { members, lost } => {
                write!(f, "with {members} members, {lost} were lost before they had it")
            }
            Self::Failed(cause) => write!(f, "failed: {cause}"),
            Self::Unknown(cause) => write!(f, "unknown: {cause}"),
        }
    }
}
