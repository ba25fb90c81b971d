//! Decoder: [`Control`], what every control packet says of what has arrived.
//!
//! ```text
//!   0                8                16       20       24               32
//!  +----------------+----------------+--------+--------+----------------+
//!  | rseq           | alloc          | echo   |   0    | xkey           |
//!  +----------------+----------------+--------+--------+----------------+
//!   CNTL, and the front of ECNTL               TCNTL, JCNTL
//! ```

use super::Fault;
use dacapo_wire::Malformed;
use dacapo_wire::bytes::Reader;

/// The common control segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Control {
    /// The number of the first byte that has not arrived in order.
    pub rseq: u64,
    /// One past the number of the last byte that will be taken.
    pub alloc: u64,
    /// The `sync` of the latest request that is answered.
    pub echo: u32,
}

/// The traffic control segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TrafficControl {
    /// Its first fields.
    pub control: Control,
    /// The sender's own key, for return use; 0 offers none (decided here).
    pub xkey: u64,
}

impl Control {
    /// Length in bytes.
    pub const LEN: usize = 20;

    /// Reads the segment at the front of `bytes`; gives what follows it too.
    ///
    /// # Errors
    /// [`Fault::Control`] when bytes lack.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Fault> {
        let mut reader = Reader(bytes);
        let control = parse(&mut reader).or(Err(Fault::Control))?;
        Ok((control, reader.0))
    }

    /// Appends the bytes.
    pub fn emit(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.rseq.to_be_bytes());
        into.extend_from_slice(&self.alloc.to_be_bytes());
        into.extend_from_slice(&self.echo.to_be_bytes());
    }
}

impl TrafficControl {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// Reads the segment at the front of `bytes`; gives what follows it too.
    ///
    /// # Errors
    /// [`Fault::Control`] when bytes lack.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Fault> {
        let (control, rest) = Control::parse(bytes)?;
        let mut reader = Reader(rest);
        let xkey = reader.u32().and_then(|_reserved| reader.u64());
        Ok((Self { control, xkey: xkey.or(Err(Fault::Control))? }, reader.0))
    }

    /// Appends the bytes.
    pub fn emit(&self, into: &mut Vec<u8>) {
        self.control.emit(into);
        into.extend_from_slice(&[0; 4]);
        into.extend_from_slice(&self.xkey.to_be_bytes());
    }
}

fn parse(reader: &mut Reader<'_>) -> Result<Control, Malformed> {
    Ok(Control { rseq: reader.u64()?, alloc: reader.u64()?, echo: reader.u32()? })
}
