//! [`FileSink`]: the units of a transfer as files in a folder, or on standard output.
//!
//! Invariants: at most [`OPEN_MAX`] files are open; after the first error nothing more is taken;
//! every file that began has a result.

use super::form::{DATA_LEN, HEAD_LEN, Header, Kind, safe_name};
use super::incoming::Incoming;
use super::progress::{FileResult, TransferProgress};
use dacapo_base::Time;
use dacapo_core::{Ending, Ledger, Sink, Taken, UnitView};
use dacapo_lift::DropReason;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;

/// Files that may be under way at once: more than one only where units come out of order.
const OPEN_MAX: usize = 8;

/// Where files are saved.
#[derive(Debug)]
pub enum Place {
    /// In this folder, which exists.
    Folder {
        /// Which.
        dir: PathBuf,
        /// Files of the same name are overwritten.
        force: bool,
    },
    /// One after the other on this descriptor.
    Output(File),
    /// The same, of which parts may be missing: what follows them is written.
    Live(File),
}

/// The sink of a transfer.
pub struct FileSink {
    place: Place,
    open: BTreeMap<u16, Incoming>,
    over: BTreeSet<u16>,
    /// The sender has said that no file follows.
    is_last_seen: bool,
    progress: TransferProgress,
}

impl FileSink {
    /// A sink that saves files there.
    #[must_use]
    pub fn new(place: Place) -> (Self, TransferProgress) {
        let progress = TransferProgress::default();
        let (open, over) = (BTreeMap::new(), BTreeSet::new());
        (Self { place, open, over, is_last_seen: false, progress: progress.clone() }, progress)
    }

    fn take(&mut self, unit: &UnitView<'_>) -> Result<(), String> {
        let mut head = [0; HEAD_LEN];
        let mut filled = 0;
        for byte in unit.pieces().flatten().take(HEAD_LEN) {
            if let Some(slot) = head.get_mut(filled) {
                *slot = *byte;
            }
            filled += 1;
        }
        let header = Header::parse(head.get(..filled).unwrap_or_default());
        let header = header.map_err(|error| error.to_string())?;
        self.is_last_seen |= header.is_last;
        if self.over.contains(&header.file) {
            // A begin or an end that was sent again.
            return Ok(());
        }
        let len = unit.len().saturating_sub(HEAD_LEN);
        match header.kind {
            Kind::Begin { size } => self.begin(header.file, size, unit),
            Kind::Data { .. } if len > DATA_LEN => Err("a unit is too long".to_owned()),
            Kind::Data { offset } => {
                let file = self.file(header.file)?;
                file.write(offset, len as u64, rest(unit))?;
                self.progress.update(|now| now.bytes += len as u64);
                self.finish_if_whole(header.file)
            }
            Kind::End { size } => self.end(header.file, size, unit),
        }
    }

    fn begin(&mut self, number: u16, size: Option<u64>, unit: &UnitView<'_>) -> Result<(), String> {
        if self.open.contains_key(&number) {
            return Ok(());
        }
        let mut name = Vec::new();
        rest(unit).for_each(|piece| name.extend_from_slice(piece));
        let name = String::from_utf8_lossy(&name).into_owned();
        self.create(number, &safe_name(&name))?;
        self.progress.update(|now| {
            now.current = Some(safe_name(&name));
            let first = number == 0;
            let before = if first { Some(0) } else { now.bytes_total };
            now.bytes_total = before.zip(size).map(|(before, size)| before.saturating_add(size));
        });
        Ok(())
    }

    fn create(&mut self, number: u16, name: &str) -> Result<(), String> {
        if self.open.len() >= OPEN_MAX {
            return Err(format!("more than {OPEN_MAX} files are under way at once"));
        }
        let file = match &self.place {
            Place::Folder { dir, force } => Incoming::create(dir, name, *force)?,
            Place::Output(out) | Place::Live(out) => {
                let out = out.try_clone().map_err(|error| format!("standard output: {error}"))?;
                Incoming::output(name, out, matches!(self.place, Place::Live(_)))
            }
        };
        self.open.insert(number, file);
        Ok(())
    }

    /// The file with this number; where its beginning was lost it has a name of ours.
    fn file(&mut self, number: u16) -> Result<&mut Incoming, String> {
        if !self.open.contains_key(&number) {
            self.create(number, &format!("file-{number}"))?;
        }
        self.open.get_mut(&number).ok_or_else(|| "no such file".to_owned())
    }

    fn end(&mut self, number: u16, size: u64, unit: &UnitView<'_>) -> Result<(), String> {
        let mut digest = Vec::new();
        rest(unit).for_each(|piece| digest.extend_from_slice(piece));
        let digest = digest.try_into().map_err(|_| "an end without a SHA-256".to_owned())?;
        self.file(number)?.end = Some((size, digest));
        self.finish_if_whole(number)
    }

    fn finish_if_whole(&mut self, number: u16) -> Result<(), String> {
        if self.open.get(&number).is_some_and(Incoming::is_whole) {
            return self.finish_file(number);
        }
        Ok(())
    }

    fn finish_file(&mut self, number: u16) -> Result<(), String> {
        let Some(file) = self.open.remove(&number) else { return Ok(()) };
        self.over.insert(number);
        let name = file.name.clone();
        let done = file.finish()?;
        let mut result = FileResult::new(&name, done.path, done.bytes, &done.digest);
        (result.fault, result.bytes_missing) = (done.fault, done.missing);
        self.progress.done(result);
        Ok(())
    }

    fn finish_all(&mut self) {
        let numbers: Vec<u16> = self.open.keys().copied().collect();
        for number in numbers {
            if let Err(text) = self.finish_file(number) {
                self.progress.fail(&text);
            }
        }
    }
}

/// What follows the header.
fn rest<'a>(unit: &UnitView<'a>) -> impl Iterator<Item = &'a [u8]> {
    unit.pieces().scan(HEAD_LEN, |skip, piece| {
        let now = piece.len().min(*skip);
        *skip -= now;
        Some(piece.get(now..).unwrap_or_default())
    })
}

impl Sink for FileSink {
    fn handle_unit(&mut self, _now: Time, unit: &UnitView<'_>) -> Taken {
        if self.progress.error().is_some() {
            return Taken::Dropped(DropReason::Refused);
        }
        match self.take(unit) {
            Ok(()) => Taken::Delivered,
            Err(text) => {
                self.progress.fail(&text);
                Taken::Dropped(DropReason::Refused)
            }
        }
    }

    fn failure(&self) -> Option<String> {
        self.progress.error()
    }

    fn finish(&mut self, _now: Time, ending: &Ending, ledger: &Ledger) {
        self.finish_all();
        match ending {
            Ending::SourceFailed(text) | Ending::Abnormal(text) => self.progress.fail(text),
            Ending::Complete | Ending::Closed if matches!(self.place, Place::Live(_)) => {
                // Its end may be lost like any part of it.
                if self.progress.bytes().0 == 0 && ledger.delivered < ledger.sent {
                    self.progress.fail("nothing came in time: all of it was lost or late");
                }
            }
            Ending::Complete | Ending::Closed if !self.is_last_seen => {
                self.progress.fail("the sender ended before its last file was through");
            }
            Ending::Complete | Ending::Closed => {}
        }
        self.progress.update(|now| now.is_over = true);
    }
}
