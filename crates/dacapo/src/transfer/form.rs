//! The units of a transfer: what a file is called, its bytes, its end.
//!
//! ```text
//!   0        1        2        4                12
//!   | kind   | last   | file   | at             | rest
//!   begin                        size, or all ones    the name, UTF-8
//!   data                         offset               bytes of the file
//!   end      1: no more files     size                 SHA-256
//! ```
//!
//! Invariants: integers are big-endian; a unit that does not parse is an error, never a guess.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::fmt;

/// Bytes of the header of a unit.
pub const HEAD_LEN: usize = 12;

/// The most bytes of a file in a unit: whole pages, and with all headers below 64 KiB.
pub const DATA_LEN: usize = 60 << 10;

/// The largest unit of a transfer, in bytes.
pub const UNIT_LEN_MAX: usize = HEAD_LEN + DATA_LEN;

/// The longest name, in bytes.
pub(super) const NAME_LEN_MAX: usize = 255;

/// A SHA-256.
pub type Digest = [u8; 32];

const BEGIN: u8 = 1;
const DATA: u8 = 2;
const END: u8 = 3;

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file begins; the rest of the unit is its name.
    Begin {
        /// Bytes, where that is known.
        size: Option<u64>,
    },
    /// The rest of the unit is bytes of it.
    Data {
        /// Where the first of them belongs.
        offset: u64,
    },
    /// It is over; the rest of the unit is its SHA-256.
    End {
        /// Bytes.
        size: u64,
    },
}

/// The header of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the unit is.
    pub kind: Kind,
    /// No file follows this one; said at its end.
    pub is_last: bool,
    /// Which file of the transfer, from 0.
    pub file: u16,
}

/// A unit that is none of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotATransfer;

impl fmt::Display for NotATransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer does not send files: use `dacapo send` there")
    }
}

impl Header {
    /// The bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; HEAD_LEN] {
        let (kind, at) = match self.kind {
            Kind::Begin { size } => (BEGIN, size.unwrap_or(u64::MAX)),
            Kind::Data { offset } => (DATA, offset),
            Kind::End { size } => (END, size),
        };
        let [f0, f1] = self.file.to_be_bytes();
        let [a, b, c, d, e, f, g, h] = at.to_be_bytes();
        [kind, u8::from(self.is_last), f0, f1, a, b, c, d, e, f, g, h]
    }

    /// Reads a header from the first bytes of a unit.
    ///
    /// # Errors
    /// [`NotATransfer`] when they are none.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotATransfer> {
        let Some(&[kind, last, f0, f1, a, b, c, d, e, f, g, h]) = bytes.first_chunk::<HEAD_LEN>()
        else {
            return Err(NotATransfer);
        };
        let at = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let kind = match kind {
            BEGIN => Kind::Begin { size: (at != u64::MAX).then_some(at) },
            // A file that ends beyond what a file can be is none.
            DATA if at < i64::MAX as u64 => Kind::Data { offset: at },
            END if at < i64::MAX as u64 => Kind::End { size: at },
            _ => return Err(NotATransfer),
        };
        let is_last = last == 1;
        if last > 1 || (is_last && !matches!(kind, Kind::End { .. })) {
            return Err(NotATransfer);
        }
        Ok(Self { kind, is_last, file: u16::from_be_bytes([f0, f1]) })
    }
}

/// The name of a file from what a peer calls it: never a path, never hidden, never empty.
#[must_use]
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = last.chars().map(|c| if c.is_control() { '_' } else { c });
    let mut safe = String::new();
    for c in plain {
        if safe.len().saturating_add(c.len_utf8()) > NAME_LEN_MAX.saturating_sub(SUFFIX_ROOM) {
            break;
        }
        safe.push(c);
    }
    match safe.chars().next() {
        None => "_".to_owned(),
        Some('.' | '-') => safe.replacen(['.', '-'], "_", 1),
        Some(_) => safe,
    }
}

/// Kept free at the end of a name for what is appended to it.
const SUFFIX_ROOM: usize = 32;

/// A digest in hexadecimal.
#[must_use]
pub fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn what_is_written_is_read_back() {
        let kinds = [
            Kind::Begin { size: None },
            Kind::Begin { size: Some(5_000_000_000) },
            Kind::Data { offset: 7 },
            Kind::End { size: 0 },
        ];
        for kind in kinds {
            let header = Header { kind, is_last: false, file: 513 };
            assert_eq!(Header::parse(&header.emit()), Ok(header));
            let last = Header { is_last: true, ..header };
            let may_be = matches!(kind, Kind::End { .. });
            assert_eq!(Header::parse(&last.emit()).is_ok(), may_be);
        }
    }

    #[test]
    fn other_bytes_are_no_transfer_and_never_panic() {
        let mut random = Random::from_number(1);
        for _ in 0..20_000 {
            let mut bytes = vec![0; random.below(20) as usize];
            random.fill(&mut bytes);
            if let Ok(header) = Header::parse(&bytes) {
                assert_eq!(header.emit()[..], bytes[..HEAD_LEN]);
            }
        }
        assert_eq!(Header::parse(b"GET / HTTP/1.1\r\n"), Err(NotATransfer));
    }

    #[test]
    fn a_name_never_leads_elsewhere() {
        for (given, safe) in [
            ("../../etc/passwd", "passwd"),
            ("/", "_"),
            ("..", "_."),
            (".bashrc", "_bashrc"),
            ("-rf", "_rf"),
            ("C:\\autoexec.bat", "autoexec.bat"),
            ("a\n\u{1b}[2Jb", "a__[2Jb"),
            ("Ferien 2026 (ä).avi", "Ferien 2026 (ä).avi"),
        ] {
            assert_eq!(safe_name(given), safe);
        }
        assert!(safe_name(&"ä".repeat(500)).len() <= NAME_LEN_MAX - SUFFIX_ROOM);
    }
}
