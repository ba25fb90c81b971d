//! [`PeerId`], [`SessionId`] and [`FlowId`]: what an endpoint has, by number, for data that names
//! it.

use dacapo_core as core;

/// A peer of an endpoint, by number: what [`Command::Connect`](super::Command::Connect) gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId {
    /// Its worker's place among those of the endpoint.
    pub(super) worker: usize,
    pub(super) id: core::PeerId,
}

/// A session of an endpoint, by number: [`Session::id`](super::Session::id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// Its worker's place among those of the endpoint.
    pub(super) worker: usize,
    pub(super) id: core::SessionId,
}

/// A flow of a session, by number: [`FlowSender::id`](super::FlowSender::id),
/// [`FlowReceiver::id`](super::FlowReceiver::id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    /// Its session.
    pub session: SessionId,
    /// Its place in [`Session::flows`](super::Session::flows).
    pub flow: usize,
}

/// The number of a command that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(super) u64);
