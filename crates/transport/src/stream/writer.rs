//! [`Writer`]: datagrams as records, in as few calls as the stream takes.
//!
//! ```text
//!   one call:  | length | datagram 0 | length | datagram 1 | ... up to 64 |
//!                                      ^ the stream takes so much
//!   the rest of datagram 1 is kept and goes first; datagrams 0 and 1 were taken, 2 was not
//! ```
//!
//! Invariants: records are never mixed or cut; at most the rest of one record is kept; an error
//! after the first record of a train is kept and told by the next call, so that the caller knows
//! exactly what was taken.

use super::RECORD_LEN_MAX;
use crate::transport::datagrams_in;
use std::io::{self, IoSlice, Write};

/// The most records that one call hands over.
const RECORDS_MAX: usize = 64;

/// A kept rest that is gone keeps no more memory than this.
const KEPT_BYTES_MAX: usize = 4_096;

const LENGTH_LEN: usize = 4;

/// What a stream took of a train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Datagrams from the front. Fewer than were given: the stream is full.
    pub datagrams: usize,
    /// Their bytes, lengths not counted.
    pub bytes: usize,
    /// Calls that took them.
    pub calls: u32,
}

/// The way out of one end.
#[derive(Debug, Default)]
pub(super) struct Writer {
    rest: Vec<u8>,
    gone: usize,
    error: Option<io::Error>,
}

impl Writer {
    /// True while bytes are kept that the stream did not take.
    pub(super) fn has_rest(&self) -> bool {
        self.gone < self.rest.len()
    }

    /// Keeps bytes that go before everything else that is sent from now on.
    pub(super) fn queue(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// Writes what is kept, as much as the stream takes.
    pub(super) fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        while self.has_rest() {
            match write_some(to, &[IoSlice::new(&self.rest[self.gone..])])? {
                Some(count) => self.gone += count,
                None => return Ok(()),
            }
        }
        self.gone = 0;
        self.rest.clear();
        self.rest.shrink_to(KEPT_BYTES_MAX);
        Ok(())
    }

    /// Sends `bytes` as datagrams of `segment_len`, of which the last may be shorter; empty bytes
    /// are one empty datagram.
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        segment_len: usize,
        to: &mut impl Write,
    ) -> io::Result<Taken> {
        let segment_len = if segment_len == 0 { bytes.len() } else { segment_len };
        if segment_len.min(bytes.len()) > RECORD_LEN_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut taken = Taken::default();
        self.flush(to)?;
        let count = datagrams_in(bytes.len(), segment_len);
        while !self.has_rest() && taken.datagrams < count {
            let left = (count - taken.datagrams).min(RECORDS_MAX);
            let run = Run { head: &[], bytes: &bytes[taken.bytes..], segment_len, count: left };
            match run.write(to) {
                Ok(Some(written)) => {
                    taken.calls += 1;
                    let is_all = self.account(&run, written, &mut taken);
                    if !is_all {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) if taken.datagrams == 0 => return Err(error),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        Ok(taken)
    }

    /// Sends one datagram whose bytes lie in two places.
    pub(super) fn send_split(
        &mut self,
        head: &[u8],
        body: &[u8],
        to: &mut impl Write,
    ) -> io::Result<Taken> {
        if head.len() + body.len() > RECORD_LEN_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut taken = Taken::default();
        self.flush(to)?;
        if self.has_rest() {
            return Ok(taken);
        }
        let run = Run { head, bytes: body, segment_len: body.len(), count: 1 };
        if let Some(written) = run.write(to)? {
            taken.calls = 1;
            self.account(&run, written, &mut taken);
        }
        Ok(taken)
    }

    /// Counts what `written` bytes of a run are, and keeps the rest of a record that was cut; true
    /// when they are all of it.
    fn account(&mut self, run: &Run<'_>, mut written: usize, taken: &mut Taken) -> bool {
        for index in 0..run.count {
            if written == 0 {
                return false;
            }
            let (length, datagram) = (run.length(index), run.datagram(index));
            let len = run.head.len() + datagram.len();
            if written < LENGTH_LEN + len {
                self.rest = [length.as_slice(), run.head, datagram].concat();
                self.gone = written;
            }
            written = written.saturating_sub(LENGTH_LEN + len);
            taken.datagrams += 1;
            taken.bytes += len;
        }
        !self.has_rest()
    }
}

/// Datagrams that go in one call.
struct Run<'a> {
    /// The front of each, which lies elsewhere.
    head: &'a [u8],
    bytes: &'a [u8],
    segment_len: usize,
    count: usize,
}

impl<'a> Run<'a> {
    fn datagram(&self, index: usize) -> &'a [u8] {
        let start = (index * self.segment_len).min(self.bytes.len());
        &self.bytes[start..self.bytes.len().min(start + self.segment_len)]
    }

    fn length(&self, index: usize) -> [u8; LENGTH_LEN] {
        let len = self.head.len() + self.datagram(index).len();
        u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
    }

    fn write(&self, to: &mut impl Write) -> io::Result<Option<usize>> {
        if self.count == 1 {
            let length = self.length(0);
            let parts = [&length, self.head, self.datagram(0)].map(IoSlice::new);
            return write_some(to, &parts);
        }
        let mut lengths = [[0; LENGTH_LEN]; RECORDS_MAX];
        for (index, length) in lengths.iter_mut().enumerate().take(self.count) {
            *length = self.length(index);
        }
        let mut parts = [IoSlice::new(&[]); 2 * RECORDS_MAX];
        for (index, pair) in parts.chunks_exact_mut(2).enumerate().take(self.count) {
            pair[0] = IoSlice::new(&lengths[index]);
            pair[1] = IoSlice::new(self.datagram(index));
        }
        write_some(to, &parts[..2 * self.count])
    }
}

/// One write; `None` when the stream takes nothing now.
fn write_some(to: &mut impl Write, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
    loop {
        match to.write_vectored(parts) {
            // What takes nothing of something will not take it later either.
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
