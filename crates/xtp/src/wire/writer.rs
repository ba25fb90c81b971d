//! [`Writer`]: a packet into the buffer that will be sent.
//!
//! ```text
//!   Writer::begin(header, buffer) -> segments appended to writer.bytes() -> finish: dlen, check
//! ```
//!
//! Invariant: after `finish` the buffer holds what [`super::Frame::open`] takes, or, after an
//! error, what it held before.

use super::{Body, HEADER_LEN, Header, Options, checksum, sum};
use std::fmt;

/// The longest packet, bytes: what UDP over IPv4 carries, the least of the networks below.
pub const PACKET_LEN_MAX: usize = 65_507;

/// Where `dlen` and `check` stand.
const DATA_LEN_AT: std::ops::Range<usize> = 12..16;
const CHECK_AT: std::ops::Range<usize> = 16..18;

/// A packet that is being written at the end of a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
    is_whole: bool,
}

/// The packet would be longer than [`PACKET_LEN_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// How long it would be, bytes.
    pub len: usize,
}

impl<'a> Writer<'a> {
    /// Appends the header. `BTAG` and the tag itself are the caller's to set together.
    #[must_use]
    pub fn begin(header: &Header, buffer: &'a mut Vec<u8>) -> Self {
        let start = buffer.len();
        buffer.extend_from_slice(&header.emit());
        Self { buffer, start, is_whole: !header.options.has(Options::NOCHECK) }
    }

    /// A whole packet.
    ///
    /// # Errors
    /// [`TooLong`]; the buffer is then as it was.
    pub fn packet(
        header: &Header,
        body: &Body<'_>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<(), TooLong> {
        debug_assert_eq!(header.format, body.format());
        let mut writer = Self::begin(header, buffer);
        body.emit(writer.bytes());
        writer.finish()
    }

    /// Where the segments are appended.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        self.buffer
    }

    /// Sets `dlen` and `check`.
    ///
    /// # Errors
    /// [`TooLong`]; the buffer is then as it was.
    pub fn finish(self) -> Result<(), TooLong> {
        let packet = self.buffer.get_mut(self.start..).unwrap_or_default();
        let len = packet.len();
        if len > PACKET_LEN_MAX {
            self.buffer.truncate(self.start);
            return Err(TooLong { len });
        }
        let data_len = len.saturating_sub(HEADER_LEN) as u32;
        put(packet, DATA_LEN_AT, &data_len.to_be_bytes());
        let covered = if self.is_whole { len } else { HEADER_LEN };
        let check = checksum(sum(&[packet.get(..covered).unwrap_or_default()]));
        put(packet, CHECK_AT, &check.to_be_bytes());
        Ok(())
    }
}

fn put(packet: &mut [u8], at: std::ops::Range<usize>, field: &[u8]) {
    if let Some(place) = packet.get_mut(at) {
        place.iter_mut().zip(field).for_each(|(to, from)| *to = *from);
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a packet of {} bytes, at most {PACKET_LEN_MAX} can be sent", self.len)
    }
}

impl std::error::Error for TooLong {}
