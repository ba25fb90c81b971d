//! Datagrams over byte streams: the engine that kernel TCP and the simulated stream share.
//!
//! Sans-IO. A [`StreamEnd`] is one end of one stream: bytes in, datagrams out as packets of the
//! pool; datagrams in, bytes out. It reads and writes through [`std::io::Read`] and
//! [`std::io::Write`], and whoever calls it decides what is behind them. The table of all streams
//! of a transport (who may come, who is late, whose turn it is) is here too, so that a rule is
//! written once.
//!
//! ```text
//!   dialer                                              listener
//!     |  magic (8) | token (16)  ----------------------->  |  known? in time?
//!     |  <----------------------------------  magic (8)    |
//!     |  length (4, big-endian) | datagram | length | ...  |
//!     |  <======================= both ways =============> |
//! ```
//!
//! The magic is `dacapo`, 0x00, 0x01. The token is drawn by the listening core and said to the
//! dialing one over the control connection, so a stream needs no other name, and whoever does not
//! know a token gets no byte of an answer.
//!
//! Invariants
//! - An empty datagram is a record of length 0. A length above [`RECORD_LEN_MAX`] ends the stream:
//!   behind it no boundary can be trusted.
//! - No byte of a preface is stored outside the stream's own 24 bytes, and none of the pool is
//!   given to a stream before its token is known.
//! - What a half-arrived record holds of the pool between two reads is at most eight times what has
//!   arrived, and one small body.
//! - What a half-sent record leaves behind is at most that record.
//! - At most [`UNCLAIMED_MAX`] streams without a preface and [`crate::DATA_LANES_MAX`] with one.
//!
//! Source: docs/protocol.md, "Streams"; design D7.

mod connections;
mod end;
mod ending;
mod preface;
mod reader;
mod table;
#[cfg(test)]
mod tests;
mod token_table;
mod transport;
mod writer;

/// How long a stream lives on which nothing is acknowledged, unless
/// [`StreamTransport::set_patience`] says otherwise.
pub const PATIENCE: std::time::Duration = dacapo_sys::tcp::PATIENCE;

pub use connections::{Connections, Listener};
pub use dacapo_lift::StreamParams;
pub use end::{ReadOutcome, StreamEnd};
pub use ending::Ending;
pub use preface::MAGIC;
pub use table::Connection;
pub use transport::{StreamEvent, StreamTransport};
pub use writer::Taken;

pub(crate) use table::{Intake, Phase, Streams};

use std::time::Duration;

/// The length of a token in bytes.
pub const TOKEN_LEN: usize = 16;

/// What opens a stream; random, used once.
pub type Token = [u8; TOKEN_LEN];

/// The longest datagram in bytes that a record carries.
pub const RECORD_LEN_MAX: usize = 65_535;

/// The most streams of a listener that have not said a whole preface; beyond it the oldest is
/// closed.
pub const UNCLAIMED_MAX: usize = 64;

/// How long a listener waits for the preface of a stream.
pub const PREFACE_WAIT: Duration = Duration::from_secs(1);

/// How long a dialer waits for the listener's answer, the making of the connection included.
pub const DIAL_WAIT: Duration = Duration::from_secs(10);

/// How long a stream that was closed here waits for the other end to close, too. What the kernel
/// has taken by then it still sends.
pub const CLOSE_WAIT: Duration = Duration::from_secs(5);
