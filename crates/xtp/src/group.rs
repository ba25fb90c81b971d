//! Reliable groups, as users see them: what a transmitter demands, who its members are, and how
//! somebody joins.

use crate::config::Mode;
use crate::wire::{Code, Reason};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// How the transmitter keeps a reliable group together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPolicy {
    /// How many members there must be before the stream begins.
    pub members_first: usize,
    /// With fewer, those included that have everything, the association fails: the k of
    /// k-reliable.
    pub members_min: usize,
    /// The most members at a time; who asks then is refused (DIAG 5/13).
    pub members_max: usize,
    /// How long one member may hold up the others, beyond what the rate takes for a full buffer:
    /// what was sent is acknowledged by then, and a window that has closed has opened.
    pub patience: Duration,
}

impl Default for GroupPolicy {
    /// Begins with one member, lives while one is left, takes 64, and waits 10 s for each.
    fn default() -> Self {
        Self {
            members_first: 1,
            members_min: 1,
            members_max: 64,
            patience: Duration::from_secs(10),
        }
    }
}

impl GroupPolicy {
    /// Begins with exactly so many members, and fails when one of them is lost.
    #[must_use]
    pub fn all_of(count: usize) -> Self {
        let (members_first, members_min, members_max) = (count, count, count);
        Self { members_first, members_min, members_max, ..Self::default() }
    }

    /// Whether the numbers can be kept to.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        let Self { members_first, members_min, members_max, .. } = *self;
        1 <= members_min && members_min <= members_first && members_first <= members_max
    }
}

/// A member of one association: numbered from 0 as they join, and never anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub u32);

/// A member, as its transmitter knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which one.
    pub id: MemberId,
    /// Where its packets come from: the address below XTP.
    pub address: SocketAddr,
    /// The number of the first byte that it gets.
    pub start: u64,
    /// The number of the first byte that it has not acknowledged.
    pub rseq: u64,
    /// One past the last byte that it takes.
    pub alloc: u64,
}

impl Member {
    /// How many bytes it has acknowledged.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.rseq.saturating_sub(self.start)
    }
}

/// Why a member is none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It has everything.
    Complete,
    /// It let go by itself.
    Left,
    /// It did not answer any more.
    Silent,
    /// It answered, and held up the others for longer than the policy allows.
    Slow,
    /// It said that something is wrong.
    Refused(Code, Reason),
    /// The association was over before it had everything.
    Dismissed,
}

impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("has everything"),
            Self::Left => f.write_str("left"),
            Self::Silent => f.write_str("does not answer"),
            Self::Slow => f.write_str("held up the others for too long"),
            Self::Refused(code, reason) => write!(f, "says: {code}: {reason}"),
            Self::Dismissed => f.write_str("was dismissed before it had everything"),
        }
    }
}

/// A group that is to be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Where the request is sent: the group, or the transmitter where it is known.
    pub peer: SocketAddr,
    /// The group with its port of XTP, and this end.
    pub ends: (SocketAddr, SocketAddr),
    /// The options of this end.
    pub mode: Mode,
}

impl Join {
    /// The group at a port of XTP, whoever sends to it. `group` is where packets are sent.
    #[must_use]
    pub fn group(group: SocketAddr, port: u16, source: SocketAddr) -> Self {
        let ends = (SocketAddr::new(group.ip(), port), source);
        Self { peer: group, ends, mode: Mode::default() }
    }
}
