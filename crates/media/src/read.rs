//! Positioned reading: how the readers get bytes, and the bounds they keep.
//!
//! Invariants: a buffer grows only after the bytes that fill it are known to exist; reads that
//! come back short are continued until they are whole or the input ends.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// Something that can be read at any position.
pub trait ReadAt {
    /// Reads at most `buf.len()` bytes from `offset` on and returns how many; 0 at the end.
    ///
    /// # Errors
    /// Those of the input.
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Length of the input in bytes.
    fn len(&self) -> u64;

    /// Whether the input has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A file, with the length that it had when it was taken.
#[derive(Debug)]
pub struct FileInput {
    file: File,
    len: u64,
}

impl FileInput {
    /// Takes an open file.
    ///
    /// # Errors
    /// When its length cannot be asked.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }
}

impl ReadAt for FileInput {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.file, buf, offset)
    }

    fn len(&self) -> u64 {
        self.len
    }
}

impl ReadAt for &[u8] {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let mut rest = rest.unwrap_or_default();
        io::Read::read(&mut rest, buf)
    }

    fn len(&self) -> u64 {
        u64::try_from(<[u8]>::len(self)).unwrap_or(u64::MAX)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buf)
    }

    fn len(&self) -> u64 {
        u64::try_from(self.as_slice().len()).unwrap_or(u64::MAX)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for Box<R> {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buf)
    }

    fn len(&self) -> u64 {
        (**self).len()
    }
}

/// Bounds that no file can move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest compressed picture, in bytes.
    pub video_frame_bytes_max: u32,
    /// The most chunks that are kept of one file, all streams together.
    pub index_entries_max: usize,
    /// The most streams of one file.
    pub streams_max: usize,
    /// The largest header list, in bytes.
    pub header_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            video_frame_bytes_max: 32 << 20,
            index_entries_max: 8_000_000,
            streams_max: 16,
            header_bytes_max: 1 << 20,
        }
    }
}

/// Bytes that could not be read.
#[derive(Debug)]
pub struct ReadError {
    /// Where they were wanted, in bytes from the start of the input.
    pub offset: u64,
    /// How many were wanted.
    pub needed: u64,
    /// What the input said; nothing when it simply ended.
    pub source: Option<io::Error>,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes expected at byte {}, ", self.needed, self.offset)?;
        match &self.source {
            Some(source) => write!(f, "but reading failed: {source}"),
            None => write!(f, "but the file ends before them"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// An input with the reads that the parsers need.
#[derive(Debug)]
pub(crate) struct Input<R> {
    inner: R,
    len: u64,
}

impl<R: ReadAt> Input<R> {
    pub(crate) fn new(inner: R) -> Self {
        let len = inner.len();
        Self { inner, len }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn into_inner(self) -> R {
        self.inner
    }

    /// Fills `buf` as far as the input goes and returns how far.
    pub(crate) fn fill(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ReadError> {
        let mut filled = 0_usize;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let needed = rest.len() as u64;
            let at = offset.saturating_add(filled as u64);
            match self.inner.read_at(at, rest) {
                Ok(0) => break,
                Ok(len) => filled = filled.saturating_add(len),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(ReadError { offset: at, needed, source: Some(error) });
                }
            }
        }
        Ok(filled.min(buf.len()))
    }

    /// Fills `buf` or fails.
    pub(crate) fn exact(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), ReadError> {
        let needed = buf.len() as u64;
        if self.fill(offset, buf)? == buf.len() {
            return Ok(());
        }
        Err(ReadError { offset, needed, source: None })
    }

    /// `N` bytes, or nothing when the input ends before them.
    pub(crate) fn array<const N: usize>(
        &mut self,
        offset: u64,
    ) -> Result<Option<[u8; N]>, ReadError> {
        let mut bytes = [0; N];
        Ok((self.fill(offset, &mut bytes)? == N).then_some(bytes))
    }

    /// Appends `len` bytes to `out`, after a look whether they can exist at all.
    pub(crate) fn append(
        &mut self,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(ReadError { offset, needed: len as u64, source: None });
        }
        let before = out.len();
        out.resize(before.saturating_add(len), 0);
        let tail = out.get_mut(before..).unwrap_or_default();
        let read = self.exact(offset, tail);
        if read.is_err() {
            out.truncate(before);
        }
        read
    }

    /// Calls `each` with every record of `N` bytes among `count` from `offset` on, as far as the
    /// input goes or `each` wants. Returns how many records were seen.
    pub(crate) fn records<const N: usize>(
        &mut self,
        offset: u64,
        count: u64,
        mut each: impl FnMut(&mut Self, [u8; N]) -> Result<ControlFlow<()>, ReadError>,
    ) -> Result<u64, ReadError> {
        const RECORDS_PER_BLOCK: u64 = 4_096;
        let mut block = Vec::new();
        let mut seen = 0_u64;
        while seen < count {
            let wanted = count.saturating_sub(seen).min(RECORDS_PER_BLOCK);
            let at = offset.saturating_add(seen.saturating_mul(N as u64));
            block.resize((wanted as usize).saturating_mul(N), 0);
            let filled = self.fill(at, &mut block)?;
            for record in block.get(..filled).unwrap_or_default().as_chunks::<N>().0 {
                seen = seen.saturating_add(1);
                if each(self, *record)?.is_break() {
                    return Ok(seen);
                }
            }
            if filled < block.len() {
                break;
            }
        }
        Ok(seen)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    /// Gives one byte at a time and interrupts every other call.
    struct Stutter(Vec<u8>, bool);

    impl ReadAt for Stutter {
        fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let end = buf.len().min(1);
            self.0.read_at(offset, &mut buf[..end])
        }

        fn len(&self) -> u64 {
            ReadAt::len(&self.0)
        }
    }

    #[test]
    fn short_and_interrupted_reads_are_continued() {
        let mut input = Input::new(Stutter((0..100).collect(), false));
        let mut out = vec![7];
        input.append(10, 5, &mut out).unwrap();
        assert_eq!(out, [7, 10, 11, 12, 13, 14]);
    }

    #[test]
    fn a_lying_length_is_refused_before_memory_is_taken() {
        let mut input = Input::new(vec![0_u8; 10]);
        let mut out = Vec::new();
        assert!(input.append(0, 11, &mut out).is_err());
        assert!(input.append(u64::MAX, 2, &mut out).is_err());
        assert!(input.append(0, usize::MAX, &mut out).is_err());
        assert_eq!(out.capacity(), 0);
    }

    #[test]
    fn records_end_where_the_input_does() {
        let mut input = Input::new((0..=255).collect::<Vec<u8>>());
        let mut firsts = Vec::new();
        let seen = input.records::<16>(200, u64::MAX, |_, record| {
            firsts.push(record[0]);
            Ok(ControlFlow::Continue(()))
        });
        assert_eq!((seen.unwrap(), firsts), (3, vec![200, 216, 232]));
    }

    #[test]
    fn a_slice_beyond_its_end_reads_nothing() {
        let mut slice: &[u8] = &[1, 2, 3];
        let mut buf = [0; 4];
        assert_eq!(slice.read_at(3, &mut buf).unwrap(), 0);
        assert_eq!(slice.read_at(u64::MAX, &mut buf).unwrap(), 0);
        assert_eq!(slice.read_at(1, &mut buf).unwrap(), 2);
    }
}
