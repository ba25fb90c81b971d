//! What a core and who drives it say to each other besides datagrams: [`ChannelEvent`] and
//! [`NetworkEvent`] in, [`Request`] out.

use crate::channel::StreamAsk;
use crate::groups::GroupAsk;
use crate::peer::HostLookup;
use crate::transmit::ListenerId;
use dacapo_base::Address;
use dacapo_lift::{BelowSeen, Membership};

/// What happens to the stream of a flow; see [`crate::Core::handle_channel`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelEvent {
    /// It is open in both directions.
    Open,
    /// It is dialed, or was, by another transport than was agreed.
    Fallback {
        /// The number of the transport.
        transport: u16,
        /// Why the one that was agreed does not carry it.
        reason: String,
    },
    /// It takes no more (`false`), or has room again; its flow sends while it has.
    Ready(bool),
    /// What its transport has measured of its path so far.
    Estimates(BelowSeen),
    /// It ended, or did not open, for this reason.
    Closed(String),
}

impl ChannelEvent {
    /// It ended, or did not open, for this reason.
    #[must_use]
    pub fn closed(reason: &str) -> Self {
        Self::Closed(reason.to_owned())
    }
}

/// What the network says besides datagrams; see [`crate::Core::handle_network`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// Nothing listens at an address. Who is being dialed there is given up when that is to be
    /// believed.
    Refused(Address),
    /// Datagrams to an address are too long. Anybody can say so; it is tried out.
    TooLarge {
        /// The address.
        remote: Address,
        /// How long they may be, in bytes of UDP payload, where that is said.
        len: Option<usize>,
    },
    /// This end listens at an address, which who drives it calls so. Peers that come in elsewhere
    /// are told of it, for flows that go by several paths.
    Listening(ListenerId, Address),
    /// A peer is reached by a transport of one host.
    Found(HostLookup),
    /// A group was joined, or could not be, for this reason.
    Joined(Membership, Result<(), String>),
    /// A group cannot be sent to: the flows to it end, for those who have come in there.
    GroupClosed {
        /// From where; from anywhere when it is not said.
        local: Option<ListenerId>,
        /// The group.
        group: Address,
        /// Why.
        reason: String,
    },
}

/// What a core asks of who drives it; see [`crate::Core::poll_request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// About the stream of a flow.
    Stream(StreamAsk),
    /// About a group.
    Group(GroupAsk),
    /// To look for a peer on this host; [`NetworkEvent::Found`] says that it was found.
    Lookup(HostLookup),
    /// The data lane to an address is no longer needed.
    CloseData(Address),
}
