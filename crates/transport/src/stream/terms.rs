//! [`Terms`]: what a transport is told of the flow for which a stream is.
//!
//! What it is not: what the flow was promised, or anything that both ends have agreed for this
//! stream: each end says it to its own transport, and one that has no use for it passes it over.

/// What is known of the flow that a stream is for. Whatever is not known is left as it is in the
/// default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The most bits per second that the flow sends; 0 when it has no bound.
    pub bound_bps: u64,
    /// Modules above find whatever is altered on the way.
    pub is_checked: bool,
    /// The longest datagram of UDP in bytes that is known to get to the other end.
    pub path_len: Option<u16>,
    /// Which flows go first: 0 to 7, 7 before all others; 0 when nothing was asked.
    pub priority: u8,
}
