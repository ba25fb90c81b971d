//! The numbers by which a core knows its peers, sessions, fan-outs and streams.

/// Another core, as long as there is a connection to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub(crate) u64);

/// A session at this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u64);

/// The stream of a flow, by a number that the core chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u64);

/// A flow that is sent once for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FanOutId(pub u64);

/// A flow of a session, by its place there.
pub(crate) type Place = (SessionId, usize);
