//! The packets of XTP 4.0 as bytes: parsed into views of what came in, written into buffers.
//!
//! ```text
//!  +------------------ header, 32 bytes ------------------+------- dlen bytes ----------------+
//!  | key | options, version, format | dlen | check | sort | DATA   [tag] data                 |
//!  | sync | seq                                           | CNTL   control                    |
//!  +------------------------------------------------------+ FIRST  address traffic [tag] data |
//!     header.rs  key.rs  options.rs  check.rs             | ECNTL  control spans              |
//!                                                         | TCNTL  control xkey traffic       |
//!     Frame::open: what can be said without the body      | JCNTL  control xkey address traf. |
//!     Frame::body: the segments, by format                | DIAG   code value message         |
//!                                                         +-----------------------------------+
//! ```
//!
//! Nothing here allocates but the buffer that a caller lets grow.
//!
//! Sources: the layout is public through Wireshark's dissector, and `tests/tshark.rs` has it read
//! what is written here. Where no published description says how a field is meant, the place that
//! decides it says "decided here".
//!
//! Invariants: no input panics, and none allocates; integers are big-endian; a length is compared
//! with the bytes that are there before it is used; what parses is written back as the same bytes,
//! but for reserved bits, which are ignored and sent as zero.
#![deny(clippy::arithmetic_side_effects)]

mod address;
mod check;
mod control;
mod diagnostic;
mod fault;
mod header;
mod key;
mod options;
mod packet;
mod spans;
mod traffic;
mod writer;

pub use address::{Address, AddressSegment};
pub use check::{checksum, sum};
pub use control::{Control, TrafficControl};
pub use diagnostic::{Code, Diagnostic, Reason};
pub use fault::Fault;
pub use header::{HEADER_LEN, Header, VERSION, stated_len};
pub use key::Key;
pub use options::{Format, Options};
pub use packet::{Body, Frame, Payload, TAG_LEN};
pub(crate) use spans::SPAN_LEN;
pub use spans::{SPANS_MAX, Span, Spans};
pub use traffic::{Limits, Service, Traffic};
pub use writer::{PACKET_LEN_MAX, TooLong, Writer};
