//! `dacapo send` and `dacapo recv`: files, or what a pipe gives, from one host to another.
//!
//! ```text
//!   recv   listens, saves            send   connects, reads
//!     serves one flow of bytes  <---   JOIN with what is asked of it
//!     chooses the protocol      --->   begin · data … · end per file
//! ```

pub mod figures;
pub mod recv;
pub mod send;

/// The session that `recv` serves and `send` joins when nothing else is said.
pub const SESSION: &str = "files";

/// The name of its flow.
const FLOW: &str = "data";

/// The units of a transfer are at most so long.
const UNIT_LEN_MAX: u32 = dacapo::transfer::UNIT_LEN_MAX as u32;
