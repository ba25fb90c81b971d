//! What a user may choose: of the service, and of an association ([`Traffic`], [`Route`]).

use dacapo_xtp::GroupPolicy;
use std::net::SocketAddr;
use std::time::Duration;

/// BURST and RATE of an association. Where either is 0 there is no limit, as in XTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// RATE: bytes per second.
    pub rate: u32,
    /// BURST: bytes at once.
    pub burst: u32,
}

impl Traffic {
    /// How long `len` bytes take at the rate; nothing without a limit.
    pub(crate) fn duration(&self, len: u64) -> Duration {
        if self.rate == 0 || self.burst == 0 {
            return Duration::ZERO;
        }
        let nanos = u128::from(len) * 1_000_000_000 / u128::from(self.rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Whom a route leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// A host; every message is reported.
    Host,
    /// A group, without repair: a member gets a message whole or not at all, and says nothing.
    Group,
    /// A group, each member of which gets every message that begins after it has joined, or is
    /// counted as lost. Members that listen when the association is made join it.
    ReliableGroup,
}

/// Where a message goes and how urgent it is. Each route is an association of its own: on one,
/// messages arrive in the order in which they were sent; between two no order is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// The host or group, as the network below XTP knows it.
    pub peer: SocketAddr,
    /// The port of XTP that is listened on there.
    pub port: u16,
    /// Whom it leads to.
    pub reach: Reach,
    /// Smaller is more urgent: such is sent first, and taken first (XTP's SORT). Of sixteen turns
    /// to send one is the least urgent's.
    pub priority: u16,
}

/// The priority of a [`Route`] that says none.
pub const ROUTINE: u16 = 0x8000;

impl Route {
    /// To a port of a host.
    #[must_use]
    pub const fn host(peer: SocketAddr, port: u16) -> Self {
        Self { peer, port, reach: Reach::Host, priority: ROUTINE }
    }

    /// To a port of a group, without repair.
    #[must_use]
    pub const fn group(group: SocketAddr, port: u16) -> Self {
        Self { peer: group, port, reach: Reach::Group, priority: ROUTINE }
    }

    /// To a port of a group, with repair.
    #[must_use]
    pub const fn reliable_group(group: SocketAddr, port: u16) -> Self {
        Self { peer: group, port, reach: Reach::ReliableGroup, priority: ROUTINE }
    }

    /// The same with another priority.
    #[must_use]
    pub const fn with_priority(self, priority: u16) -> Self {
        Self { priority, ..self }
    }
}

/// When the end of a message is told. The call that waits for it is the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// The sender goes on: reports are gathered for [`Config::report_wait`], so that many messages
    /// share one.
    #[default]
    Asynchronous,
    /// The sender waits: the report leaves as soon as the peer's user has the message.
    Synchronous,
}

/// What a service does for all its associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// This end as peers see it: host, and the port of XTP at which it takes answers.
    pub source: SocketAddr,
    /// The most routes that are known at a time; for one more, that which has rested longest goes.
    pub routes_max: usize,
    /// The most associations that hosts have opened here.
    pub incoming_max: usize,
    /// The most messages of groups that are under way here, or wait to be taken.
    pub group_incoming_max: usize,
    /// The most associations that are closing; of more the next is cut off.
    pub leaving_max: usize,
    /// The most messages of a route that have not ended.
    pub messages_max: usize,
    /// Bytes of a route that wait to be sent; a message that nothing waits before may be longer.
    pub waiting_bytes_max: usize,
    /// Bytes that are kept of what has come on an association, besides XTP's own window; a longer
    /// message comes in parts of so many.
    pub part_len_max: usize,
    /// How long an association rests before it is closed.
    pub idle_max: Duration,
    /// How long one that was opened here by a host rests before others may have its room.
    pub rest_min: Duration,
    /// How long reports are gathered.
    pub report_wait: Duration,
    /// The most messages of an association that are gathered for one report.
    pub report_count_max: u64,
    /// How long a closing association has.
    pub leave_max: Duration,
    /// How many members of a group that repairs there must be, and how long one may hold up the
    /// others.
    pub group_policy: GroupPolicy,
    /// XTP's checksum covers only headers (NOCHECK), for networks that check the bytes themselves:
    /// of what is sent from here, the reports included.
    pub without_check: bool,
}

impl Config {
    /// Decided here: room for 1,000 routes and as many associations from hosts, 256 KiB of a
    /// message at a time, reports after 10 ms, idle for a minute.
    #[must_use]
    pub const fn new(source: SocketAddr) -> Self {
        Self {
            source,
            routes_max: 1_000,
            incoming_max: 1_000,
            group_incoming_max: 64,
            leaving_max: 256,
            messages_max: 1_024,
            waiting_bytes_max: 1 << 20,
            part_len_max: 256 << 10,
            idle_max: Duration::from_secs(60),
            rest_min: Duration::from_secs(1),
            report_wait: Duration::from_millis(10),
            report_count_max: 64,
            leave_max: Duration::from_secs(10),
            group_policy: GroupPolicy {
                members_first: 1,
                members_min: 1,
                members_max: 64,
                patience: Duration::from_secs(10),
            },
            without_check: false,
        }
    }
}
