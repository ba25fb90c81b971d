//! [`FileSource`]: files, or what a pipe gives, as the units of a flow.
//!
//! ```text
//!   a.bin, b.bin  ->  begin 0 · data 0 · data 0 · end 0 · begin 1 · end 1
//! ```
//!
//! A pipe is read only when it has something; an empty one makes the source idle until whoever
//! watches the pipe wakes the flow ([`Starved`]).
//!
//! Invariants: one file is open at a time; a unit that found no memory is written later, unchanged;
//! names of files without their folders.

use super::form::{DATA_LEN, HEAD_LEN, Header, Kind};
use super::mpegts::Cutter;
use super::progress::{FileResult, TransferProgress};
use dacapo_base::{Time, failpoint};
use dacapo_core::{BeginError, Source, SourcePoll, UnitWriter};
use dacapo_sys::poll::{Interest, Poller};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A flow runs that asks as often as that.
const START: Duration = Duration::from_millis(20);

/// How often a live source looks whether its pipe has something.
const LIVE_EVERY: Duration = Duration::from_millis(2);

/// So long the first packet of a live transport stream waits for others, and no longer than this
/// part of the deadline: each unit has headers, however few packets it has.
const GATHERED: Duration = Duration::from_millis(6);
const GATHERED_PART: u32 = 20;

/// No more than that waits in a pipe.
const WAITING_MAX: u64 = 16 << 20;

/// How often a begin and an end are sent where they may be lost.
const SENT_LOSSY: u32 = 3;

/// Something to send.
#[derive(Debug)]
pub enum Input {
    /// A file with its size when it was looked at.
    File {
        /// Where it is.
        path: PathBuf,
        /// Its bytes.
        size: u64,
    },
    /// An open pipe, terminal or device, read to its end.
    Stream {
        /// What the receiver calls it.
        name: String,
        /// Where the bytes come from.
        from: File,
    },
}

impl Input {
    /// A file, looked at.
    ///
    /// # Errors
    /// What is wrong with it and what to do.
    pub fn file(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let found = std::fs::metadata(path).map_err(failed)?;
        if found.is_dir() {
            let (shown, name) = (path.display(), name_of(path));
            return Err(format!(
                "{shown}: is a folder; send it as one file: tar -c {shown} | dacapo send HOST - \
                 --name {name}.tar"
            ));
        }
        // Opened here too, so that what cannot be read is said before anything is sent.
        let from = File::open(path).map_err(failed)?;
        if found.is_file() {
            return Ok(Self::File { path: path.to_owned(), size: found.len() });
        }
        Ok(Self::Stream { name: name_of(path), from })
    }

    fn size(&self) -> Option<u64> {
        match self {
            Self::File { size, .. } => Some(*size),
            Self::Stream { .. } => None,
        }
    }
}

/// The last part of a path.
fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy().into_owned())
}

/// Says that a source has found its pipe empty, and is to be woken when it no longer is; copies
/// share it.
#[derive(Clone, Debug, Default)]
pub struct Starved(Arc<AtomicBool>);

impl Starved {
    /// Whether it has; it is asked once.
    #[must_use]
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// How a live source keeps up.
struct Live {
    deadline: Duration,
    /// When it was asked last.
    asked: Option<Time>,
    /// When a packet was there that is not sent yet.
    since: Option<Time>,
    /// It is asked as often as it wants.
    runs: bool,
}

impl Live {
    /// Whether what waits has waited too long: until the flow runs, and after it stood still.
    fn is_behind(&mut self, now: Time) -> bool {
        let paused = self.asked.replace(now).map(|asked| now.since(asked));
        let is_behind =
            paused.is_none_or(|it| if self.runs { it > self.deadline } else { it > START });
        self.runs = !is_behind;
        is_behind
    }

    /// Whether packets that are there wait for others.
    fn is_gathering(&mut self, now: Time) -> bool {
        let since = *self.since.get_or_insert(now);
        now.since(since) < GATHERED.min(self.deadline / GATHERED_PART)
    }
}

/// The file that is being sent.
struct Current {
    name: String,
    from: File,
    size: Option<u64>,
    is_stream: bool,
    /// Watches a stream that may have nothing to read for a while.
    poller: Option<Poller>,
    sent: u64,
    /// So many bytes were passed over before.
    passed: u64,
    hash: Sha256,
}

impl Current {
    /// Whether a read would not wait.
    fn is_readable(&mut self) -> bool {
        let Some(poller) = &mut self.poller else { return true };
        let mut ready = Vec::new();
        // What cannot be asked is read.
        poller.wait(Some(Duration::ZERO), &mut ready).is_err() || !ready.is_empty()
    }
}

impl Current {
    /// Reads what waits, to the end of it.
    fn pass_over(&mut self, cutter: &mut Option<Cutter>) -> Result<(), String> {
        let (mut waiting, mut passed) = (Vec::new(), 0_u64);
        while self.poller.is_some()
            && passed < WAITING_MAX
            && self.read(&mut waiting, DATA_LEN)?
            && !waiting.is_empty()
        {
            passed = passed.saturating_add(waiting.len() as u64);
        }
        if let Some(cutter) = cutter {
            passed = cutter.pass_over(passed);
        }
        (self.sent, self.passed) = (self.sent + passed, self.passed + passed);
        Ok(())
    }

    /// Reads up to so many bytes, none at its end; false when it has nothing now.
    fn read(&mut self, into: &mut Vec<u8>, len_max: usize) -> Result<bool, String> {
        if !self.is_readable() {
            return Ok(false);
        }
        into.resize(len_max, 0);
        let read = fill(&mut self.from, into, self.is_stream).map_err(|error| error.to_string())?;
        into.truncate(read);
        Ok(true)
    }

    /// Reads whole packets of a transport stream, none at its end; false when there are none now,
    /// or those that are there wait for others.
    fn read_packets(
        &mut self,
        into: &mut Vec<u8>,
        cutter: &mut Cutter,
        is_gathering: impl FnOnce() -> bool,
    ) -> Result<bool, String> {
        while cutter.room() > 0 {
            if !self.read(into, cutter.room())? {
                break;
            }
            if into.is_empty() {
                cutter.cut(into, true)?;
                return Ok(true);
            }
            cutter.push(into);
        }
        if !cutter.has_packet() || (cutter.room() > 0 && is_gathering()) {
            return Ok(false);
        }
        cutter.cut(into, false)?;
        Ok(true)
    }
}

/// What is written next.
enum Next {
    /// Nothing is open.
    Open,
    /// The header of the file, so many times more.
    Begin(u32),
    /// Its bytes.
    Data,
    /// Its end, so many times more.
    End(u32, [u8; 32]),
}

/// Files as the units of a flow.
pub struct FileSource {
    inputs: VecDeque<Input>,
    number: u16,
    current: Option<Current>,
    next: Next,
    /// How often a begin and an end are sent.
    times: u32,
    /// Read from the file and not yet written.
    waiting: Vec<u8>,
    has_waiting: bool,
    /// Cuts a transport stream.
    cutter: Option<Cutter>,
    /// What waits in a pipe too long is not sent.
    live: Option<Live>,
    starved: Starved,
    progress: TransferProgress,
}

impl FileSource {
    /// A source of these inputs. `is_reliable`: the flow loses nothing, so that once is enough.
    /// At most 65,536 are sent; a longer list is the caller's mistake and is cut.
    #[must_use]
    pub fn new(inputs: Vec<Input>, is_reliable: bool) -> (Self, TransferProgress, Starved) {
        let progress = TransferProgress::default();
        let total = inputs.iter().map(Input::size).sum::<Option<u64>>();
        progress.update(|now| now.bytes_total = total);
        let starved = Starved::default();
        let source = Self {
            inputs: inputs.into(),
            number: 0,
            current: None,
            next: Next::Open,
            times: if is_reliable { 1 } else { SENT_LOSSY },
            waiting: vec![0; DATA_LEN],
            has_waiting: false,
            cutter: None,
            live: None,
            starved: starved.clone(),
            progress: progress.clone(),
        };
        (source, progress, starved)
    }

    /// The same; the inputs are MPEG transport streams, and units are whole packets of them.
    #[must_use]
    pub fn of_mpegts(self) -> Self {
        Self { cutter: Some(Cutter::default()), ..self }
    }

    /// The same; what waits in a pipe until the flow runs, or while it stands still for longer than
    /// that, is passed over: everything behind it would be late too.
    #[must_use]
    pub fn live(self, deadline: Duration) -> Self {
        Self { live: Some(Live { deadline, asked: None, since: None, runs: false }), ..self }
    }

    /// Opens the next input; false when there is none.
    fn open(&mut self) -> io::Result<bool> {
        let Some(input) = self.inputs.pop_front() else { return Ok(false) };
        let size = input.size();
        let (name, from, is_stream) = match input {
            Input::File { path, .. } => {
                let text = |error: io::Error| {
                    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                };
                (name_of(&path), File::open(&path).map_err(text)?, false)
            }
            Input::Stream { name, from } => {
                // What can be sought is read like a file: nobody says when it is readable.
                let is_file = from.metadata().is_ok_and(|found| found.is_file());
                (name, from, !is_file)
            }
        };
        self.progress.update(|now| now.current = Some(name.clone()));
        // What cannot be watched, such as /dev/zero, can always be read.
        let poller = if is_stream { watch(&from).ok() } else { None };
        let hash = Sha256::new();
        self.current =
            Some(Current { name, from, size, is_stream, poller, sent: 0, passed: 0, hash });
        self.cutter = self.cutter.take().map(|_| Cutter::default());
        self.next = Next::Begin(self.times);
        Ok(true)
    }

    /// Writes a unit of the current file; false when there is no memory now.
    fn write(&self, unit: &mut UnitWriter<'_>, kind: Kind, rest: &[u8]) -> Result<bool, String> {
        match unit.begin(HEAD_LEN + rest.len()) {
            Ok(()) => {
                let is_end = matches!(kind, Kind::End { .. });
                let is_last = is_end && self.inputs.is_empty();
                unit.write(&Header { kind, is_last, file: self.number }.emit());
                unit.write(rest);
                Ok(true)
            }
            Err(BeginError::NoMemory) => Ok(false),
            Err(BeginError::TooLarge) => {
                Err(format!("the flow takes no units of {} bytes", HEAD_LEN + rest.len()))
            }
        }
    }

    fn begin(&mut self, unit: &mut UnitWriter<'_>, left: u32) -> Result<SourcePoll, String> {
        let Some(current) = &self.current else { return Ok(SourcePoll::End) };
        let name: Vec<u8> = current.name.bytes().take(super::form::NAME_LEN_MAX).collect();
        if !self.write(unit, Kind::Begin { size: current.size }, &name)? {
            return Ok(SourcePoll::Blocked);
        }
        failpoint!("transfer.begin");
        self.next = if left > 1 { Next::Begin(left - 1) } else { Next::Data };
        Ok(SourcePoll::Unit)
    }

    fn data(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> Result<SourcePoll, String> {
        let Some(current) = &mut self.current else { return Ok(SourcePoll::End) };
        if !self.has_waiting {
            if self.live.as_mut().is_some_and(|live| live.is_behind(now)) {
                current.pass_over(&mut self.cutter)?;
                self.live.iter_mut().for_each(|live| live.since = None);
            }
            let is_read = match &mut self.cutter {
                None => current.read(&mut self.waiting, DATA_LEN),
                Some(cutter) => {
                    let live = &mut self.live;
                    let is_gathering = || live.as_mut().is_some_and(|it| it.is_gathering(now));
                    current.read_packets(&mut self.waiting, cutter, is_gathering)
                }
            };
            if !is_read.map_err(|error| format!("{}: {error}", current.name))? {
                self.starved.set();
                // Who does not look by itself cannot tell a pause of the pipe from one of the flow.
                let soon = self.live.as_ref().map(|_| SourcePoll::Wait(now + LIVE_EVERY));
                return Ok(soon.unwrap_or(SourcePoll::Idle));
            }
            if let Some(live) = &mut self.live {
                live.since = None;
            }
            current.hash.update(&self.waiting);
            self.has_waiting = true;
        }
        if self.waiting.is_empty() {
            self.has_waiting = false;
            let digest = current.hash.finalize_reset().into();
            failpoint!("transfer.hash");
            self.next = Next::End(self.times, digest);
            return self.end(unit, self.times, digest);
        }
        let offset = current.sent;
        if !self.write(unit, Kind::Data { offset }, &self.waiting)? {
            return Ok(SourcePoll::Blocked);
        }
        self.has_waiting = false;
        failpoint!("transfer.data");
        let read = self.waiting.len() as u64;
        if let Some(current) = &mut self.current {
            current.sent += read;
        }
        self.progress.update(|now| now.bytes += read);
        Ok(SourcePoll::Unit)
    }

    fn end(
        &mut self,
        unit: &mut UnitWriter<'_>,
        left: u32,
        digest: [u8; 32],
    ) -> Result<SourcePoll, String> {
        let Some(current) = &self.current else { return Ok(SourcePoll::End) };
        if !self.write(unit, Kind::End { size: current.sent }, &digest)? {
            return Ok(SourcePoll::Blocked);
        }
        failpoint!("transfer.end");
        if left > 1 {
            self.next = Next::End(left - 1, digest);
            return Ok(SourcePoll::Unit);
        }
        let sent = current.sent - current.passed;
        let mut result = FileResult::new(&current.name, None, sent, &digest);
        result.bytes_missing = current.passed;
        self.progress.done(result);
        self.current = None;
        self.next = Next::Open;
        self.number = self.number.wrapping_add(1);
        Ok(SourcePoll::Unit)
    }

    fn poll(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> Result<SourcePoll, String> {
        if matches!(self.next, Next::Open) && !self.open().map_err(|error| error.to_string())? {
            self.progress.update(|now| now.is_over = true);
            return Ok(SourcePoll::End);
        }
        match self.next {
            Next::Begin(left) => self.begin(unit, left),
            Next::End(left, digest) => self.end(unit, left, digest),
            Next::Data | Next::Open => self.data(now, unit),
        }
    }
}

fn watch(file: &File) -> io::Result<Poller> {
    let poller = Poller::new()?;
    poller.add(file.as_fd(), 0, Interest::Read)?;
    Ok(poller)
}

/// Fills a buffer from a file; from a stream takes what there is, once.
fn fill(from: &mut File, into: &mut [u8], is_stream: bool) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if is_stream {
            break;
        }
    }
    Ok(filled)
}

impl Source for FileSource {
    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        self.poll(now, unit).unwrap_or_else(|text| {
            self.progress.fail(&text);
            SourcePoll::Failed(text)
        })
    }
}
