//! [`SessionId`] and [`FlowId`]: sessions and flows of an endpoint by number, for data that names
//! them.

use dacapo_core as core;

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
