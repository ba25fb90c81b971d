//! What users and packets bring to the streams of a context, and what users get of them.

/// Bytes for the peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// Whether a message ends with the last of them.
    pub is_end: bool,
    /// Eight bytes that the peer's user gets with the message; counts at its beginning only.
    pub tag: Option<[u8; 8]>,
    /// Whether [`crate::Event::Delivered`] is wanted, when the peer's user has read all of it.
    pub asks_delivery: bool,
    /// Whether more of the message is written at once, as MSG_MORE of sockets says: what does not
    /// fill a packet waits for that, 5 ms at most from when it was written, however often more is
    /// announced. Counts where no message ends and no delivery is asked for.
    pub has_more: bool,
}

impl<'a> Message<'a> {
    /// A whole message.
    #[must_use]
    pub const fn whole(data: &'a [u8]) -> Self {
        Self { data, is_end: true, tag: None, asks_delivery: false, has_more: false }
    }

    /// A stretch of a stream.
    #[must_use]
    pub const fn part(data: &'a [u8]) -> Self {
        Self { data, is_end: false, tag: None, asks_delivery: false, has_more: false }
    }
}

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
