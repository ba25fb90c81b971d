//! XTP 4.0, the Xpress Transport Protocol.
//!
//! What it is, so far: [`wire`], every packet of the protocol as bytes.
//!
//! What it is not: an engine that runs associations, or I/O. It decodes in Wireshark and follows
//! the published descriptions; the text of the specification was not at hand, so more is not said.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

pub mod wire;
