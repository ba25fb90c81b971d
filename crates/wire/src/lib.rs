//! Header formats and control messages: a legal form per file, with its bytes.
//!
//! Everything that two cores say to each other, as bytes. Fixed headers have a `LEN`, a `parse` and
//! an `emit`; messages have `decode` and `encode`.
//!
//! ```text
//!  UDP datagram of a flow
//!  +------+-------+----------- the modules' own, in the order of the graph ----------+
//!  | type | label | … sequence | segment | unit header, medium header, payload … CRC  |
//!  +------+-------+------------------------------------------------------------------+
//!    data.rs         sequence.rs segment.rs  unit.rs      media.rs
//!
//!  control: QUIC stream of records (record.rs) of fields (tlv.rs): hub.rs, session.rs, change.rs
//! ```
//!
//! Invariants: no input panics; decoding allocates at most in proportion to the bytes that are
//! there; unknown fields and messages of a later version are passed over, not refused.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

pub mod acknowledgement;
pub mod attribute;
pub mod bytes;
pub mod change;
pub mod compression;
pub mod data;
pub mod flow_control;
pub mod graph;
pub mod group_repair;
pub mod hub;
pub mod limits;
pub mod media;
pub mod medium;
pub mod message;
pub mod name;
mod nearest;
pub mod parity;
pub mod probe;
pub mod record;
pub mod retransmission;
pub mod segment;
pub mod sequence;
pub mod session;
pub mod sliding;
pub mod text;
pub mod tlv;
pub mod unit;
pub mod use_by;

mod error;
mod flow;

pub use error::Malformed;
