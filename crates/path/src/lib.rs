//! What the flows and epochs of one path share: controller, pace, round trip, probes.
//!
//! Sans-IO engines and figures that survive a change of protocol. [`Path`] holds them for one way
//! to a peer: its [`Controller`] says how much may be in flight and how fast it leaves; [`Prober`]
//! asks and answers path probes, which open a data path, find how long its datagrams may be,
//! measure it, and show whether the peer lives; [`Estimates`], [`RttEstimate`] and [`ClockOffset`]
//! keep what was measured. [`Bound`] holds a flow to its rate, by [`TokenBucket`]s.
//!
//! ```text
//!  flow: bound ----+
//!                  +--> Path: allowance --> data header -> transport
//!  flow: bound ----+     ^ window, rate         ^
//!        modules' sums --+ controller     probes: rtt, offset, datagram length (path MTU), life
//! ```

mod bound;
mod breaker;
mod bucket;
mod controller;
pub mod controllers;
mod counting;
mod ecn;
mod estimate;
mod estimates;
mod in_flight;
mod mtu;
mod pacer;
mod path;
mod prober;
mod seen;
#[cfg(test)]
mod tests;

pub use bound::Bound;
pub use breaker::Held;
pub use bucket::TokenBucket;
pub use controller::{
    Controller, ControllerCx, ControllerEntry, ControllerSpec, Counts, Delivered, Leads, Lost,
    Marked, OpenController, Prior, Sent,
};
pub use counting::Came;
pub use estimate::{ClockOffset, RttEstimate};
pub use estimates::{BelowSeen, Estimates};
pub use path::{Answer, Heard, IDLE_AFTER, Path, SILENT_AFTER_MIN};
pub use prober::{DATAGRAM_LEN_FULL, DATAGRAM_LEN_MIN, EARLY_MAX, Life, Prober, Question};
pub use seen::PathSeen;
