//! [`Malformed`]: bytes that are not of the form they should have.

use std::fmt;

/// The bytes are too short, or say something that is not legal. Without detail, because it is made
/// on the path of every packet: who drops the packet counts the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed bytes")
    }
}

impl std::error::Error for Malformed {}
