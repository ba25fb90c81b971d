//! Decoder: [`Header`], the 32 bytes that every packet begins with.
//!
//! ```text
//!   0                8         12       16       18      20       24               32
//!  +----------------+---------+--------+--------+-------+--------+----------------+
//!  | key            | command | dlen   | check  | sort  | sync   | seq            |
//!  +----------------+---------+--------+--------+-------+--------+----------------+
//! ```

use super::{Fault, Format, Key, Options};
use dacapo_wire::Malformed;
use dacapo_wire::bytes::Reader;

/// Length in bytes.
pub const HEADER_LEN: usize = 32;

/// The number that stands for XTP 4.0.
pub const VERSION: u8 = 1;

/// Where `dlen` is.
const DATA_LEN_AT: usize = 12;

/// How long the packet at the front of `bytes` says that it is, with its header; `None` where there
/// is no `dlen`. It may be more than there is.
#[must_use]
pub fn stated_len(bytes: &[u8]) -> Option<usize> {
    let data_len = bytes.get(DATA_LEN_AT..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*data_len)).ok()?.checked_add(HEADER_LEN)
}

/// The header without `dlen` and `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which context it is for.
    pub key: Key,
    /// Its options.
    pub options: Options,
    /// What it is.
    pub format: Format,
    /// Priority; counts when `SORT` is set.
    pub sort: u16,
    /// Number of the latest request for status.
    pub sync: u32,
    /// Of data: the number of its first byte. Else: of the next byte that would be sent.
    pub seq: u64,
}

/// A header with what is checked before the format is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    pub key: Key,
    pub command: u32,
    pub data_len: u32,
    pub sort: u16,
    pub sync: u32,
    pub seq: u64,
}

impl Raw {
    /// The fields at the front of `bytes`, unless those are fewer than 32.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let key = Key::from_bits(reader.u64()?);
        let (command, data_len) = (reader.u32()?, reader.u32()?);
        let (_check, sort) = (reader.u16()?, reader.u16()?);
        Ok(Self { key, command, data_len, sort, sync: reader.u32()?, seq: reader.u64()? })
    }

    pub const fn version(&self) -> u8 {
        (self.command as u8) >> 5
    }

    pub const fn options(&self) -> Options {
        Options::from_command(self.command)
    }

    /// # Errors
    /// A format that is not assigned.
    pub fn header(&self) -> Result<Header, Fault> {
        let format = Format::from_number(self.command as u8 & 0x1F)?;
        let Self { key, sort, sync, seq, .. } = *self;
        Ok(Header { key, options: self.options(), format, sort, sync, seq })
    }
}

impl Header {
    /// A header without options, priority and numbers.
    #[must_use]
    pub const fn new(key: Key, format: Format) -> Self {
        Self { key, options: Options::NONE, format, sort: 0, sync: 0, seq: 0 }
    }

    /// The bytes, with zero for `dlen` and `check`.
    #[must_use]
    pub fn emit(&self) -> [u8; HEADER_LEN] {
        let command = self.options.bits() | u32::from(VERSION << 5 | self.format as u8);
        let fields = [
            self.key.bits(),
            u64::from(command) << 32,
            u64::from(self.sort) << 32 | u64::from(self.sync),
            self.seq,
        ];
        let mut bytes = [0; HEADER_LEN];
        for (to, field) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(fields) {
            *to = field.to_be_bytes();
        }
        bytes
    }
}
