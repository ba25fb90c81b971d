//! A flow at one end: the access part, the epochs, and its share of the path part.
//!
//! ```text
//!   sender                                         receiver
//!   Source                                         Sink
//!     | poll_unit                                    ^ handle_unit
//!   splice ........ units wait here only           intake ..... numbers, ledger, order over epochs
//!     | feed(credit)                                 ^
//!   epoch n | epoch n+1     runners                epoch n | epoch n+1
//!     |                                              ^
//!   queue, bucket, label -> datagrams              label -> epoch
//! ```
//!
//! What it is not: the messages that set a flow up (see `session`).

pub(crate) mod chain;
pub(crate) mod epoch;
pub(crate) mod intake;
pub(crate) mod member;
pub(crate) mod receiver;
pub(crate) mod rest;
pub(crate) mod sender;
pub(crate) mod slab;
pub(crate) mod splice;

use crate::ledger::UnitHash;
use dacapo_base::{Random, Time};
use dacapo_lift::Surroundings;
use dacapo_packet::{Layout, Pool};

/// What was agreed of a flow for as long as it lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Its place in the session.
    pub id: u16,
    /// The longest unit, in bytes.
    pub unit_len_max: usize,
    /// Both ends hash every unit and compare.
    pub digest: bool,
}

impl Terms {
    /// The hash over units, where one was agreed.
    pub fn hash(&self) -> Option<UnitHash> {
        self.digest.then(UnitHash::default)
    }
}

/// The hash as it is sent: 0 where none was agreed.
pub(crate) fn hash_bytes(hash: Option<&UnitHash>) -> [u8; 32] {
    hash.map(|hash| hash.to_bytes()).unwrap_or_default()
}

/// What a call into a flow is given.
pub(crate) struct Around<'a> {
    pub now: Time,
    pub pool: &'a mut Pool,
    pub random: &'a mut Random,
}

impl Around<'_> {
    pub fn surroundings(&mut self) -> Surroundings<'_> {
        Surroundings { now: self.now, pool: self.pool, random: self.random }
    }
}

/// The layout for `len` bytes that lie in one segment: no larger than they need, because where
/// datagrams are long a body of the full size would be mostly empty.
pub(crate) fn fitted(layout: &Layout, len: usize) -> Layout {
    let segment = if len <= layout.segment { len.max(1) } else { layout.segment };
    Layout { segment, ..*layout }
}

/// The earlier of two deadlines.
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
