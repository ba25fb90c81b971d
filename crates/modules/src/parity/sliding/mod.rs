//! What receivers of sources in a row with repairs among them have in common: the history of what
//! has come, where a packet belongs, and what becomes of repairs that wait for others.
//!
//! ```text
//!   packets -> Receiver --> Receiving: History     which sources have come, and views of them
//!                up           |        Code        what repairs say of those that have not
//!                             v
//!                           sources that are known now, upwards
//! ```
//!
//! How a repair is made of sources is a [`Code`] of its module; all else is here. Nothing is told
//! to a receiver but by headers (`dacapo_wire::sliding`).

mod came;
mod history;
mod members;
mod receiver;
mod receiving;

pub(super) use members::Members;
pub(super) use receiver::{Receiver, Uses};

use dacapo_base::Time;
use dacapo_lift::Cx;
use dacapo_packet::Packet;
use dacapo_wire::sliding::Header;
use std::fmt::Debug;
use std::time::Duration;

/// How much longer than a sender makes repairs of a source its receiver keeps it.
pub const HOLD: Duration = Duration::from_millis(500);

/// How many packets may be overtaken and are still of use to repairs.
pub(super) const OVERTAKEN: u64 = 256;

/// How repairs are made of sources, and what is known of sources that are missing.
pub(super) trait Code: Debug {
    /// Of more missing sources a repair says too little.
    const MISSING_MAX: usize;

    /// The sources that a repair is made of, the last of which has this number; none where nobody
    /// makes such a one.
    fn members(header: &Header, last: u64) -> Option<Members>;

    /// Adds sources to the bytes of a repair, which are of those then that were not added.
    fn add<'a>(
        sum: &mut Vec<u8>,
        header: &Header,
        last: u64,
        sources: impl Iterator<Item = (u64, &'a [u8])>,
    );

    /// Whether no repair waits for others.
    fn is_empty(&self) -> bool;

    /// The most bytes that there may be with another repair of this length.
    fn bytes_with(&self, len: usize) -> usize;

    /// A list to make a sum in.
    fn take_sum(&mut self) -> Vec<u8>;

    /// The source that must be given up, with all before it, before there is room for a repair of
    /// which these are missing; none where there is room.
    fn crowded_by(&self, missing: &[u64]) -> Option<u64>;

    /// Takes what a repair says of the sources that are missing of it. There is room.
    fn take(&mut self, repair: &Repair<'_>, sum: Vec<u8>, at: Time);

    /// Whether a repair that waits is of this source.
    fn has(&self, number: u64) -> bool;

    /// A source has come, or was computed: no repair waits for it any more.
    fn know(&mut self, number: u64, source: &[u8]);

    /// Gives up the sources below this one.
    fn give_up(&mut self, from: u64);

    /// Of the repair that waits longest: when it came, and a source that it waits for.
    fn first_came(&self) -> Option<(Time, u64)>;

    /// Takes a source that is known now, and writes its bytes to `into`; other repairs are told of
    /// it by [`Code::know`].
    fn solved(&mut self, into: &mut Vec<u8>) -> Option<u64>;
}

/// A repair that has come, of which something is missing.
#[derive(Debug)]
pub(super) struct Repair<'a> {
    pub header: &'a Header,
    /// The number of its last source.
    pub last: u64,
    pub members: Members,
    /// Those of them that have not come, the oldest first.
    pub missing: &'a [u64],
}

/// Numbers as many sources as a packet has segments, from this number on; `None`, and nothing done,
/// when there is no room for the header.
pub(super) fn number(cx: &mut Cx<'_>, packet: &mut Packet, first: u64) -> Option<()> {
    let segments = packet.segment_count();
    let (len, last) = (packet.segment_len(0), packet.segment_len(segments.saturating_sub(1)));
    let header = |at: usize| {
        let length = if at + 1 == segments { last } else { len };
        Header::source(first + at as u64, length as u16).emit()
    };
    cx.pool.put_head(packet, header).ok()
}
