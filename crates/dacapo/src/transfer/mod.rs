//! Transfers: files, or what a pipe gives, through a flow of bytes.
//!
//! ```text
//!   FileSource  begin · data … · end  ->  flow  ->  FileSink  NAME, or NAME.incomplete
//!                                                   recover   what a killed process has left
//! ```
//!
//! The two access modules behind `dacapo send` and `dacapo recv`, and the parts of them that other
//! ways of transfer use.
//!
//! Invariants: what is saved under its name is whole and has the SHA-256 that the sender named; a
//! peer chooses a name, never a folder.

mod form;
mod incoming;
mod mpegts;
mod part;
mod progress;
mod sink;
mod source;

pub use form::{
    DATA_LEN, Digest, HEAD_LEN, Header, Kind, NotATransfer, UNIT_LEN_MAX, hex, safe_name,
};
pub use incoming::{Finished, Incoming};
pub use mpegts::MPEGTS_UNIT_LEN_MAX;
pub use part::recover;
pub use progress::{FileResult, TransferProgress, TransferSnapshot};
pub use sink::{FileSink, Place};
pub use source::{FileSource, Input, Starved};
