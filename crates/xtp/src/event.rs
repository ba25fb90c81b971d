//! [`Event`]: what users are told, and how an association ends.

use crate::group::{Leaving, Member};
use crate::wire::{Code, Reason};
use std::fmt;

/// A context, for as long as it is not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Something that a user may want to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody has opened an association with this listener's port.
    Incoming {
        /// The port of XTP.
        port: u16,
        /// The new context.
        id: ContextId,
    },
    /// The peer has answered: the association is open. Of a reliable group: enough members have
    /// joined; or, at a member, the transmitter has admitted it.
    Opened(ContextId),
    /// There is something to read, or the peer's stream is over.
    Readable(ContextId),
    /// There is room again for what could not be written: the peer has it, or, where nothing is
    /// sent again, packets have left.
    Writable(ContextId),
    /// Everything up to the last request for delivery is with the peer's user.
    Delivered(ContextId),
    /// The peer has said what it does not like; the association goes on.
    Remark(ContextId, Code, Reason),
    /// A member has joined the reliable group to which this context transmits.
    Joined(ContextId, Member),
    /// A member of the reliable group is none any more: what it has, and why.
    Left(ContextId, Member, Leaving),
    /// The association is over. What has come can be read until [`crate::Engine::release`].
    Ended(ContextId, End),
}

/// How an association ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both streams have come to their end, and arrived.
    Complete,
    /// The user here gave it up.
    Abandoned,
    /// The peer let go before both streams were over.
    Aborted,
    /// The peer did not answer any more.
    TimedOut,
    /// The peer refused or abandoned it, and said why.
    Refused(Code, Reason),
    /// The peer knows nothing of it (any more).
    Disowned,
    /// A reliable group has fewer members than its policy asks for.
    TooFewMembers,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Abandoned => f.write_str("given up here"),
            Self::Aborted => f.write_str("the peer let go before both streams were over"),
            Self::TimedOut => f.write_str("the peer does not answer; is it there, and the way?"),
            Self::Refused(code, reason) => write!(f, "the peer says: {code}: {reason}"),
            Self::Disowned => f.write_str("the peer knows nothing of it; was it started anew?"),
            Self::TooFewMembers => f.write_str(
                "the group has fewer members than its policy asks for; do they listen, or join?",
            ),
        }
    }
}

/// What is to be told of one context: each kind once, however often it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(u8);

impl Events {
    pub const INCOMING: u8 = 1;
    pub const MEMBER: u8 = 2;
    pub const OPENED: u8 = 4;
    pub const READABLE: u8 = 8;
    pub const WRITABLE: u8 = 16;
    pub const DELIVERED: u8 = 32;
    pub const REMARK: u8 = 64;
    pub const ENDED: u8 = 128;

    /// Notes one.
    pub fn insert(&mut self, event: u8) {
        self.0 |= event;
    }

    /// Takes the first, in the order of the constants.
    pub fn take(&mut self) -> Option<u8> {
        let first = self.0 & self.0.wrapping_neg();
        self.0 &= !first;
        (first != 0).then_some(first)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
