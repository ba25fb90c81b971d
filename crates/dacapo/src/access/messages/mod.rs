//! Messages of the application: the SAFENET message service as an access module, over any flow of
//! bytes.
//!
//! ```text
//!   send_message         Outbox                                    Inbox          get_message
//!   priority, bytes -> by priority; head, bytes == units of ==> head; Assembly -> by priority
//!     Ticket           the urgent overtakes        the flow       parts of at most 256 KiB
//!        '--> Sent, Failed                                           Part: More, Last, Broken
//! ```
//!
//! [`Outbox`] and [`Inbox`], without I/O, and without time: what they do, they do when they are
//! asked. A unit is cut in the moment in which the flow takes one, so a message that is more urgent
//! waits for what the flow has taken, not for what was handed over before it. Whatever the protocol
//! of the flow is, and while it is changed, units are units.
//!
//! Names and meanings are the same (tickets, outcomes, parts, SORT's 65,536 priorities); the types
//! are not, because there causes are ends of associations and parts name hosts, and here is
//! neither. Nor is it repair, or a report of delivery: a flow goes one way, so a message ends as
//! [`Outcome::Sent`], and what its flow delivers is in the flow's account.
//!
//! Invariants: every message that was accepted ends exactly once (accepted = sent + failed +
//! open); every message that has begun to come is given or reported broken exactly once (begun =
//! given + broken + open); what the receiving end keeps is bounded, whatever a head says, and what
//! the sending end keeps by what is as urgent or more, and in messages; a message is given as it
//! was sent, or reported as broken, and no gap breaks two.

mod assembly;
mod head;
mod inbox;
mod outbox;
mod seen;
#[cfg(test)]
mod tests;
mod ticket;

pub use head::{HEAD_LEN, Head, Malformed};
pub use inbox::{
    Counters, EARLY_BYTES_MAX, EARLY_MAX, Ending, Inbox, OPEN_MAX, PART_LEN_MAX, PASSED_MAX, Part,
    READY_BYTES_MAX, READY_MAX, ReceivedSums,
};
pub use outbox::{ALL_MAX, BEGUN_MAX, BYTES_MAX, MESSAGES_MAX, Outbox, UNIT_LEN_MAX, Unit};
pub use seen::{DOUBTFUL_MAX, JUMP_MAX, SEEN_LEN};
pub use ticket::{Cause, Outcome, Sums, Ticket};

/// The priority of a message that is neither urgent nor can wait; smaller is more urgent.
pub const ROUTINE: u16 = 0x8000;
