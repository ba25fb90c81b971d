//! [`Incoming`]: one file that is being received.
//!
//! ```text
//!   units -> write .NAME.N.part -> all bytes, the hash that was sent -> NAME
//!                               -> something is missing              -> NAME.incomplete
//! ```
//!
//! Invariants: NAME appears whole or not at all; what was received is never thrown away; stretches
//! of zeros are left as holes.

use super::form::Digest;
use super::part::Part;
use dacapo_base::failpoint;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The most gaps that are remembered; a transfer with more counts as not whole in any case.
const GAPS_MAX: usize = 65_536;

/// Which bytes have come: runs in order, never touching.
#[derive(Debug, Default)]
struct Runs(Vec<(u64, u64)>);

impl Runs {
    /// Whether some of these bytes are there.
    fn overlap(&self, from: u64, to: u64) -> bool {
        let at = self.0.partition_point(|run| run.1 <= from);
        self.0.get(at).is_some_and(|run| run.0 < to)
    }

    /// Adds a run; false when it overlaps what is there, or there would be too many.
    fn add(&mut self, from: u64, to: u64) -> bool {
        if from == to {
            return true;
        }
        let at = self.0.partition_point(|run| run.1 < from);
        let touches_next = self.0.get(at).is_some_and(|run| run.0 <= to);
        let is_full = self.0.len() >= GAPS_MAX;
        match self.0.get_mut(at) {
            Some(run) if touches_next && run.1 == from => run.1 = to,
            Some(run) if touches_next && run.0 == to => run.0 = from,
            Some(_) if touches_next => return false,
            _ if is_full => return false,
            _ => self.0.insert(at, (from, to)),
        }
        self.close_up(at)
    }

    /// The run at a place may now touch the next one.
    fn close_up(&mut self, at: usize) -> bool {
        let (Some(&this), Some(&next)) = (self.0.get(at), self.0.get(at + 1)) else { return true };
        if this.1 > next.0 {
            return false;
        }
        if this.1 == next.0 {
            self.0.remove(at + 1);
            if let Some(run) = self.0.get_mut(at) {
                run.1 = next.1;
            }
        }
        true
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|run| run.1 - run.0).sum()
    }
}

/// Where the bytes go.
enum Target {
    /// A file beside its final name.
    File(Part),
    /// Standard output, in order only.
    Output(File),
    /// The same, where what is missing is passed over.
    Live(File),
}

/// One file that is being received.
pub struct Incoming {
    /// What it is called.
    pub name: String,
    target: Target,
    runs: Runs,
    hash: Sha256,
    /// So many bytes from the start are hashed, or were passed over.
    hashed: u64,
    /// So many were passed over.
    missing: u64,
    /// What the sender said at its end.
    pub end: Option<(u64, Digest)>,
}

/// A file that is over.
pub struct Finished {
    /// Where it is; `None` on standard output.
    pub path: Option<PathBuf>,
    /// Bytes that came.
    pub bytes: u64,
    /// Bytes that were passed over.
    pub missing: u64,
    /// Their SHA-256.
    pub digest: Digest,
    /// Why it is not what was sent, when it is not.
    pub fault: Option<String>,
}

impl Incoming {
    /// A file in a folder. Without `force` nothing of this name may exist.
    ///
    /// # Errors
    /// With the file and what to do.
    pub fn create(dir: &Path, name: &str, force: bool) -> Result<Self, String> {
        Ok(Self::new(name, Target::File(Part::create(dir, name, force)?)))
    }

    /// Standard output.
    pub(super) fn output(name: &str, to: File, is_live: bool) -> Self {
        Self::new(name, if is_live { Target::Live(to) } else { Target::Output(to) })
    }

    fn new(name: &str, target: Target) -> Self {
        let (runs, hash) = (Runs::default(), Sha256::new());
        Self { name: name.to_owned(), target, runs, hash, hashed: 0, missing: 0, end: None }
    }

    /// Takes bytes of the file at an offset.
    ///
    /// # Errors
    /// They came before, lead beyond a file, or cannot be written.
    pub fn write<'a>(
        &mut self,
        offset: u64,
        len: u64,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), String> {
        let end =
            offset.checked_add(len).ok_or("the peer sends bytes beyond what a file can be")?;
        if matches!(self.target, Target::Live(_)) {
            self.pass_over(offset);
        }
        if !matches!(self.target, Target::File(_)) && offset != self.hashed {
            return Err("bytes are missing or out of order, and standard output takes them in \
                        order only: ask for loss = 0 and order"
                .to_owned());
        }
        let twice = || "the peer sends the same bytes twice, or too many gaps".to_owned();
        if self.runs.overlap(offset, end) {
            return Err(twice());
        }
        let mut at = offset;
        for piece in pieces {
            self.put(at, piece).map_err(|error| self.cannot_write(&error))?;
            at = at.saturating_add(piece.len() as u64);
        }
        failpoint!("file.data");
        // What could not be written has not come.
        if self.runs.add(offset, end) { Ok(()) } else { Err(twice()) }
    }

    /// What lies before these bytes and has not come will not.
    fn pass_over(&mut self, offset: u64) {
        let gap = offset.saturating_sub(self.hashed);
        if gap > 0 && self.runs.add(self.hashed, offset) {
            self.hashed = offset;
            self.missing = self.missing.saturating_add(gap);
        }
    }

    fn put(&mut self, at: u64, piece: &[u8]) -> io::Result<()> {
        match &mut self.target {
            // A hole reads as zeros and takes no room.
            Target::File(_) if piece.iter().all(|byte| *byte == 0) => {}
            Target::File(part) => part.file.write_all_at(piece, at)?,
            Target::Output(out) | Target::Live(out) => io::Write::write_all(out, piece)?,
        }
        if at == self.hashed {
            self.hash.update(piece);
            self.hashed += piece.len() as u64;
        }
        Ok(())
    }

    fn cannot_write(&self, error: &io::Error) -> String {
        match &self.target {
            Target::File(part) => format!("{}: {error}", part.path().display()),
            Target::Output(_) | Target::Live(_) => format!("standard output: {error}"),
        }
    }

    /// True when every byte up to the end that the sender named is here.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.end.is_some_and(|(size, _)| self.runs.bytes() == size)
    }

    /// Puts the file where it belongs.
    ///
    /// # Errors
    /// With the file and where it is now.
    pub fn finish(mut self) -> Result<Finished, String> {
        if let (Target::Live(_), Some((size, _))) = (&self.target, self.end) {
            self.pass_over(size);
        }
        let came = self.runs.bytes().saturating_sub(self.missing);
        let (digest, unread) = match self.digest() {
            Ok(digest) => (digest, None),
            Err(error) => (self.hash.finalize_reset().into(), Some(self.cannot_write(&error))),
        };
        let fault = match self.end {
            _ if unread.is_some() => unread,
            Some(_) if self.missing > 0 => None,
            None if matches!(self.target, Target::Live(_)) => None,
            None => Some(format!("not whole: {came} bytes came, and not its end")),
            Some((size, _)) if came != size => {
                Some(format!("not whole: {came} of {size} bytes came"))
            }
            Some((_, sent)) if sent != digest => {
                Some("its SHA-256 is not the one that was sent".to_owned())
            }
            Some(_) => None,
        };
        let path = self.place(fault.is_none())?;
        Ok(Finished { path, bytes: came, missing: self.missing, digest, fault })
    }

    /// The hash of the file, read again where it came out of order.
    fn digest(&mut self) -> io::Result<Digest> {
        let Target::File(Part { file, .. }) = &mut self.target else {
            return Ok(self.hash.finalize_reset().into());
        };
        let last = self.runs.0.last().map_or(0, |run| run.1);
        failpoint!("file.hash");
        // What ends in a hole has not been written to its end.
        file.set_len(last)?;
        if self.hashed < last {
            file.seek(SeekFrom::Start(self.hashed))?;
            let mut buffer = vec![0; 1 << 20];
            loop {
                let read = file.read(&mut buffer)?;
                if read == 0 {
                    break;
                }
                self.hash.update(buffer.get(..read).unwrap_or_default());
            }
        }
        Ok(self.hash.finalize_reset().into())
    }

    fn place(&mut self, is_whole: bool) -> Result<Option<PathBuf>, String> {
        match &mut self.target {
            Target::File(part) if is_whole => part.place().map(Some),
            Target::File(part) => part.keep().map(Some),
            Target::Output(_) | Target::Live(_) => Ok(None),
        }
    }
}

impl Drop for Incoming {
    /// A file that was never finished leaves nothing behind but what came.
    fn drop(&mut self) {
        if let Target::File(part) = &self.target
            && self.runs.bytes() == 0
        {
            part.discard();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    #[test]
    fn runs_join_in_any_order_and_refuse_what_is_there() {
        for seed in 0..300 {
            let mut random = Random::from_number(seed);
            let mut runs = Runs::default();
            let mut places: Vec<u64> = (0..40).collect();
            for at in (1..places.len()).rev() {
                places.swap(at, random.below(at as u64 + 1) as usize);
            }
            for (count, place) in places.iter().enumerate() {
                assert!(runs.add(place * 10, place * 10 + 10), "seed {seed}");
                assert_eq!(runs.bytes(), (count as u64 + 1) * 10, "seed {seed}");
                assert!(!runs.add(place * 10 + 3, place * 10 + 5), "seed {seed}");
            }
            assert_eq!(runs.0, [(0, 400)], "seed {seed}");
        }
    }
}
