//! Ancillary data of `sendmsg` and `recvmsg`: written and parsed without a pointer.
//!
//! ```text
//!   |  len: usize  | level: i32 | type: i32 | data … | pad to usize |  next header …
//!   |<-------------- HEADER --------------->|
//!   |<---------------- len ------------------------->|
//! ```
//!
//! Invariants: every read is checked against the buffer, and the walk ends at a header that does
//! not move it forward.
//!
//! Source: cmsg(3); `struct cmsghdr` of the Linux UAPI.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

const WORD: usize = size_of::<usize>();
const HEADER: usize = WORD + 8;

/// Room for the messages of one datagram, aligned as the kernel's structures are.
#[repr(align(8))]
pub(crate) struct Buffer {
    bytes: [u8; 128],
    len: usize,
}

/// A message: where it belongs and its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) level: i32,
    pub(crate) kind: i32,
    pub(crate) data: &'a [u8],
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 128], len: 0 }
    }

    /// Adds a message; left out when it does not fit, which a constant number of them does.
    pub(crate) fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let len = HEADER.saturating_add(data.len());
        let fields: [&[u8]; 4] =
            [&len.to_ne_bytes(), &level.to_ne_bytes(), &kind.to_ne_bytes(), data];
        let end = self.len.saturating_add(padded(len));
        let Some(room) = self.bytes.get_mut(self.len..end) else {
            return;
        };
        room.fill(0);
        let bytes = fields.into_iter().flatten();
        room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.len = end;
    }

    /// The messages that were pushed.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The whole room, for the kernel to write into.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The messages in the first `len` bytes.
    pub(crate) fn messages(&self, len: usize) -> Messages<'_> {
        messages(self.bytes.get(..len).unwrap_or(&self.bytes))
    }
}

/// The messages that these bytes are.
pub(crate) fn messages(bytes: &[u8]) -> Messages<'_> {
    Messages { rest: bytes }
}

/// The messages of a buffer, in order.
pub(crate) struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let (len, after) = self.rest.split_first_chunk::<WORD>()?;
        let (level, after) = after.split_first_chunk::<4>()?;
        let (kind, _) = after.split_first_chunk::<4>()?;
        let len = usize::from_ne_bytes(*len);
        // A length below the header's gives no data, and the walk ends: no loop without progress.
        let data = self.rest.get(HEADER..len)?;
        self.rest = self.rest.get(padded(len)..).unwrap_or_default();
        Some(Message { level: i32::from_ne_bytes(*level), kind: i32::from_ne_bytes(*kind), data })
    }
}

fn padded(len: usize) -> usize {
    len.checked_next_multiple_of(WORD).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn what_is_pushed_is_read_back_in_order() {
        let mut buffer = Buffer::new();
        buffer.push(17, 103, &1_200_u16.to_ne_bytes());
        buffer.push(0, 1, &2_i32.to_ne_bytes());
        let messages: Vec<_> = buffer.messages(buffer.len).collect();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0], Message { level: 17, kind: 103, data: &1_200_u16.to_ne_bytes() });
        assert_eq!(messages[1], Message { level: 0, kind: 1, data: &2_i32.to_ne_bytes() });
    }

    #[test]
    fn the_layout_is_the_one_of_the_c_library() {
        let data = 1_200_u16.to_ne_bytes();
        let mut buffer = Buffer::new();
        buffer.push(17, 103, &data);
        // SAFETY: both are arithmetic on their argument.
        let (len, space) = unsafe { (libc::CMSG_LEN(2), libc::CMSG_SPACE(2)) };
        assert_eq!(usize::from_ne_bytes(buffer.bytes[..WORD].try_into().unwrap()), len as usize);
        assert_eq!(buffer.len, space as usize);
        assert_eq!(size_of::<libc::cmsghdr>(), HEADER);
    }

    #[test]
    fn a_message_that_does_not_fit_is_left_out() {
        let mut buffer = Buffer::new();
        buffer.push(1, 1, &[7; 128]);
        assert_eq!(buffer.as_bytes(), []);
    }

    #[test]
    fn any_bytes_are_walked_to_an_end() {
        for seed in 0..2_000 {
            let mut random = Random::from_number(seed);
            let mut buffer = Buffer::new();
            random.fill(buffer.room());
            if random.chance(0.8) {
                // A small length gets the walk past the first message.
                let len = random.below(64) as usize;
                buffer.bytes[..WORD].copy_from_slice(&len.to_ne_bytes());
            }
            let len = random.below(129) as usize;
            let count = buffer.messages(len).count();
            assert!(count <= 128 / HEADER, "seed {seed}: {count} messages");
        }
    }
}
