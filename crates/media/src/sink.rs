//! Where the writers put their bytes: a file that can be corrected, or a pipe that cannot.
//!
//! Anything that is `Write` (and `Seek`) will do; a `BufWriter` is worth its while, because chunks
//! are written in small pieces.
//!
//! ```text
//!   Seekable   header … chunk chunk chunk | index        Pipe   header … chunk chunk chunk
//!              ^ patched with the true counts                   ^ stays as it was sent
//! ```
//!
//! Invariants: positions count from where the writer began; a patch never changes the position
//! at which the next bytes go.

use std::io::{self, Seek, SeekFrom, Write};

/// A destination of bytes that may or may not let earlier bytes be corrected.
pub trait Sink {
    /// What the sink was made of.
    type Inner;
    /// Whether [`Sink::patch`] has an effect.
    const CAN_PATCH: bool;

    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// Those of the destination; then an unknown part of the bytes is written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Replaces bytes that were appended before, at `offset` from the first one.
    ///
    /// # Errors
    /// Those of the destination.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Hands everything on to the destination.
    ///
    /// # Errors
    /// Those of the destination.
    fn flush(&mut self) -> io::Result<()>;

    /// Number of bytes appended so far.
    fn position(&self) -> u64;

    /// Gives back what the sink was made of.
    fn into_inner(self) -> Self::Inner;
}

/// A writer whose file is in an unknown state after something that failed half-way.
pub(crate) trait Guarded: Sized {
    /// What its calls fail with.
    type Error;
    /// What is said from then on.
    const FAILED: Self::Error;

    /// Whether something failed half-way.
    fn has_failed(&mut self) -> &mut bool;

    /// Whether this error came half-way.
    fn is_half_way(error: &Self::Error) -> bool;

    /// Does something, unless an earlier thing failed half-way.
    fn guard(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error> {
        if *self.has_failed() {
            return Err(Self::FAILED);
        }
        let done = act(self);
        *self.has_failed() = done.as_ref().err().is_some_and(Self::is_half_way);
        done
    }
}

/// A destination that can go back.
#[derive(Debug)]
pub struct Seekable<W> {
    out: W,
    base: u64,
    position: u64,
}

impl<W: Write + Seek> Seekable<W> {
    /// Begins at the present position of `out`.
    ///
    /// # Errors
    /// When that position cannot be asked.
    pub fn new(mut out: W) -> io::Result<Self> {
        let base = out.stream_position()?;
        Ok(Self { out, base, position: 0 })
    }
}

impl<W: Write + Seek> Sink for Seekable<W> {
    type Inner = W;
    const CAN_PATCH: bool = true;

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(self.base + offset))?;
        let written = self.out.write_all(bytes);
        self.out.seek(SeekFrom::Start(self.base + self.position))?;
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn into_inner(self) -> W {
        self.out
    }
}

/// A destination that only goes forward.
#[derive(Debug)]
pub struct Pipe<W> {
    out: W,
    position: u64,
}

impl<W: Write> Pipe<W> {
    /// Begins with the next byte of `out`.
    pub fn new(out: W) -> Self {
        Self { out, position: 0 }
    }
}

impl<W: Write> Sink for Pipe<W> {
    type Inner = W;
    const CAN_PATCH: bool = false;

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn into_inner(self) -> W {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_patch_keeps_the_place_of_the_next_bytes_and_what_was_there_before() {
        let mut cursor = Cursor::new(b"xx".to_vec());
        cursor.set_position(2);
        let mut sink = Seekable::new(cursor).unwrap();
        sink.append(b"abcd").unwrap();
        sink.patch(1, b"BC").unwrap();
        sink.append(b"ef").unwrap();
        assert_eq!(sink.position(), 6);
        assert_eq!(sink.into_inner().into_inner(), b"xxaBCdef");
    }

    #[test]
    fn a_pipe_ignores_patches() {
        let mut sink = Pipe::new(Vec::new());
        sink.append(b"abcd").unwrap();
        sink.patch(1, b"BC").unwrap();
        assert_eq!((sink.position(), sink.into_inner()), (4, b"abcd".to_vec()));
    }
}
