//! What goes into the half of a context that takes the peer's stream, and what comes out of it.

/// What a user gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Bytes.
    Data {
        /// How many.
        len: usize,
        /// Whether a message ends with the last of them.
        is_end: bool,
        /// The tag of the message that begins with the first of them.
        tag: Option<[u8; 8]>,
    },
    /// Bytes that were lost and are not sent again (`NOERR`).
    Hole {
        /// How many.
        len: u64,
    },
    /// Nothing now.
    Nothing,
    /// Nothing any more: the peer's stream is over.
    Finished,
}

/// Data of a packet, as it came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The number of the first byte.
    pub seq: u64,
    /// The bytes.
    pub data: &'a [u8],
    /// The tag before them.
    pub tag: Option<[u8; 8]>,
    /// EOM.
    pub is_end: bool,
    /// NOERR.
    pub is_lossy: bool,
    /// NOFLOW.
    pub is_unbounded: bool,
}

/// What an arrival did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// A gap is there that was not there before.
    pub is_gap_new: bool,
    /// It contradicts the end that the peer has said.
    pub is_violation: bool,
    /// There is more to read.
    pub is_readable: bool,
    /// It was not taken, for want of room.
    pub is_refused: bool,
}
