//! What the flows and epochs of one path share: bound, token bucket, round-trip estimate, probes.
//!
//! Sans-IO engines and figures that survive a change of protocol. [`TokenBucket`] paces a flow to
//! its bound; [`Prober`] asks and answers path probes, which open a data path, find how long its
//! datagrams may be, measure it, and show whether the peer lives; [`RttEstimate`] and
//! [`ClockOffset`] keep what the probes measured.
//!
//! ```text
//!  flow, epoch n   ---+
//!                     +--> bucket -> data header -> transport
//!  flow, epoch n+1 ---+         ^
//!                         probes: rtt, offset, datagram length (path MTU), life
//! ```

mod bucket;
mod estimate;
mod mtu;
mod prober;

pub use bucket::TokenBucket;
pub use estimate::{ClockOffset, RttEstimate};
pub use prober::{DATAGRAM_LEN_FULL, DATAGRAM_LEN_MIN, EARLY_MAX, Life, Prober, Question};
