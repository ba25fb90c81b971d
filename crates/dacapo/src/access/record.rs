//! [`RecordSink`] and [`RawRecordSink`]: sinks that save what they get.
//!
//! ```text
//!   flow "video" --+                                 one group     one AVI file (OpenDML)
//!                  +-- Recording --> SESSION.avi     sound alone   WAV; AU when it is companded
//!   flow "audio" --+                                 a still       the picture as it came, JPEG
//!                                                    bytes         .bin, without boundaries
//! ```
//!
//! The weave of the flows' units, in a file that is readable at every moment up to about a second
//! ago.
//!
//! Invariants: an existing file is never written to unless it is empty and nobody's, or its
//! overwriting was asked for; two processes never write to one; a file that gets nothing is removed
//! again; an error of the disk is kept and shown, the flow goes on and
//! its units are booked as refused; nothing here panics.

use super::arrival::Arrivals;
use super::budget::Budget;
use super::interleave::{Interleaver, Output, Piece, Placed};
use super::progress::Progress;
use dacapo_base::{Time, failpoint};
use dacapo_core::{Ending, Ledger, Sink, Taken, UnitView};
use dacapo_lift::DropReason;
use dacapo_media::sink::Seekable;
use dacapo_media::{Format, FourCc, VideoFormat, au, avi, wav};
use dacapo_path::ClockOffset;
use dacapo_wire::media::LEN;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A file is brought up to date so often, in case nobody comes to end it.
const SYNC_EVERY: Duration = Duration::from_secs(1);

const BUFFER_LEN: usize = 256 * 1024;

/// A file that is written; removed again when nothing came.
struct Target {
    path: PathBuf,
    file: Option<File>,
    /// It did not exist before.
    is_new: bool,
}

impl Target {
    /// Opens a file for writing.
    fn create(path: PathBuf, force: bool) -> Result<Self, String> {
        let failed = |error: &std::io::Error| format!("{}: {error}", path.display());
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                // Where there are no locks, who comes second is refused by the name alone.
                let _ = file.try_lock();
                failpoint!("sink.begin");
                Ok(Self { path, file: Some(file), is_new: true })
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
                if !is_file {
                    return Err(format!("{}: it exists and is not a plain file", path.display()));
                }
                let opened = OpenOptions::new().write(true).open(&path);
                let file = opened.map_err(|error| failed(&error))?;
                // Empty and locked by nobody: a player that was killed has left it.
                let is_left = file.metadata().is_ok_and(|found| found.len() == 0);
                let locked = file.try_lock();
                if matches!(locked, Err(TryLockError::WouldBlock)) {
                    return Err(format!("{}: another process saves to it now", path.display()));
                }
                if !force && (!is_left || locked.is_err()) {
                    let text = "the file exists; move it away, or save with --force";
                    return Err(format!("{}: {text}", path.display()));
                }
                Ok(Self { path, file: Some(file), is_new: false })
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// The file, empty, when the first bytes for it are here.
    fn begin(&mut self) -> Result<BufWriter<File>, String> {
        let Some(file) = self.file.take() else {
            return Err(format!("{}: an earlier write failed", self.path.display()));
        };
        file.set_len(0).map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(BufWriter::with_capacity(BUFFER_LEN, file))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_new && self.file.is_some() {
            // Nothing came; that it cannot be removed is no reason to fail.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What a file of media is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Avi,
    Wav,
    Au,
    Jpeg,
}

impl FileKind {
    /// The kind that streams of these formats are saved in together.
    pub fn of(formats: &[Format]) -> Self {
        match formats {
            [Format::Audio(audio)] if audio.encoding.is_companded() => Self::Au,
            [Format::Audio(_)] => Self::Wav,
            [still] if is_still(still) => Self::Jpeg,
            _ => Self::Avi,
        }
    }

    /// The end of its name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Avi => "avi",
            Self::Wav => "wav",
            Self::Au => "au",
            Self::Jpeg => "jpg",
        }
    }
}

/// Whether a format is that of one picture.
pub(crate) fn is_still(format: &Format) -> bool {
    matches!(format, Format::Video(video) if video.is_still())
}

/// The formats of the streams of an AVI file: a still in it is a movie of one picture.
pub(crate) fn in_avi(formats: &[Format]) -> Vec<Format> {
    let moving = |format: &Format| match format {
        Format::Video(video) => {
            Format::Video(VideoFormat { fourcc: FourCc::MJPG, ..video.clone() })
        }
        Format::Audio(_) => format.clone(),
    };
    formats.iter().map(moving).collect()
}

type Out = Seekable<BufWriter<File>>;

enum Writer {
    Avi(Box<avi::Writer<Out>>),
    Wav(wav::Writer<Out>),
    Au(au::Writer<Out>),
    Jpeg(BufWriter<File>),
    /// The one picture is written; the same again, after a jump, is not.
    Done,
}

impl Writer {
    fn create(out: BufWriter<File>, formats: &[Format]) -> Result<Self, String> {
        match (FileKind::of(formats), formats) {
            (FileKind::Wav, [Format::Audio(audio)]) => {
                wav::Writer::create(out, audio).map(Self::Wav).map_err(|error| error.to_string())
            }
            (FileKind::Au, [Format::Audio(audio)]) => {
                au::Writer::create(out, audio).map(Self::Au).map_err(|error| error.to_string())
            }
            (FileKind::Jpeg, _) => Ok(Self::Jpeg(out)),
            _ => {
                let writer = avi::Writer::create(out, &in_avi(formats));
                writer.map(|it| Self::Avi(Box::new(it))).map_err(|error| error.to_string())
            }
        }
    }

    fn picture(&mut self, stream: usize, picture: &[u8]) -> Result<(), String> {
        match self {
            Self::Avi(avi) => avi.video_frame(stream, picture).map_err(|error| error.to_string()),
            Self::Jpeg(out) if !picture.is_empty() => {
                let written = out.write_all(picture).and_then(|()| out.flush());
                *self = Self::Done;
                written.map_err(|error| error.to_string())
            }
            Self::Jpeg(_) | Self::Done => Ok(()),
            Self::Wav(_) | Self::Au(_) => Err("a picture in a file of sound".to_owned()),
        }
    }

    fn sound(&mut self, stream: usize, sound: &[u8]) -> Result<(), String> {
        match self {
            Self::Avi(avi) => avi.audio(stream, sound).map_err(|error| error.to_string()),
            Self::Wav(wav) => wav.audio(sound).map_err(|error| error.to_string()),
            Self::Au(au) => au.audio(sound).map_err(|error| error.to_string()),
            Self::Jpeg(_) | Self::Done => Err("sound in a file of a picture".to_owned()),
        }
    }

    fn sync(&mut self) -> Result<(), String> {
        match self {
            Self::Avi(avi) => avi.sync().map_err(|error| error.to_string()),
            Self::Wav(wav) => wav.sync().map_err(|error| error.to_string()),
            Self::Au(au) => au.sync().map_err(|error| error.to_string()),
            Self::Jpeg(_) | Self::Done => Ok(()),
        }
    }

    fn finish(self) -> Result<(), String> {
        match self {
            Self::Avi(avi) => avi.finish().map(drop).map_err(|error| error.to_string()),
            Self::Wav(wav) => wav.finish().map(drop).map_err(|error| error.to_string()),
            Self::Au(au) => au.finish().map(drop).map_err(|error| error.to_string()),
            Self::Jpeg(_) | Self::Done => Ok(()),
        }
    }
}

/// A file of media: AVI, WAV, AU or JPEG.
struct MediaFile {
    target: Target,
    formats: Vec<Format>,
    writer: Option<Writer>,
    failure: Option<String>,
}

impl MediaFile {
    fn begin(&mut self) -> Result<&mut Writer, String> {
        if self.writer.is_none() {
            let out = self.target.begin()?;
            failpoint!("recording.begin");
            let at =
                |error: &dyn std::fmt::Display| format!("{}: {error}", self.target.path.display());
            self.writer = Some(Writer::create(out, &self.formats).map_err(|error| at(&error))?);
        }
        self.writer.as_mut().ok_or_else(String::new)
    }

    /// Does something with the writer; an error is kept, and nothing is written after it.
    fn with(&mut self, act: impl FnOnce(&mut Writer) -> Result<(), String>) -> Result<(), String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let done = self.begin().and_then(act);
        done.map_err(|error| {
            let path = self.target.path.display().to_string();
            let text = if error.contains(&path) { error } else { format!("{path}: {error}") };
            self.failure.insert(text).clone()
        })
    }

    fn sync(&mut self) -> Result<(), String> {
        if self.writer.is_none() {
            return Ok(());
        }
        self.with(Writer::sync)
    }

    fn finish(&mut self) -> Result<(), String> {
        let finished = self.writer.take().map_or(Ok(()), Writer::finish);
        finished.map_err(|error| format!("{}: {error}", self.target.path.display()))
    }
}

impl Output for MediaFile {
    fn picture(&mut self, stream: usize, picture: &[u8]) -> Result<(), String> {
        self.with(|writer| writer.picture(stream, picture))
    }

    fn sound(&mut self, stream: usize, sound: &[u8]) -> Result<(), String> {
        self.with(|writer| writer.sound(stream, sound))
    }
}

/// A file and the flows that are woven into it.
struct Recording {
    interleaver: Interleaver<MediaFile>,
    open_count: usize,
    synced_at: Option<Time>,
}

type Shared = Arc<Mutex<Recording>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Recording> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Saves one flow of media, alone or into a file with others.
pub struct RecordSink {
    arrivals: Arrivals,
    recording: Shared,
    stream: usize,
    unit: Vec<u8>,
    is_open: bool,
}

/// A flow that is to be saved.
pub(crate) struct Part {
    pub format: Format,
    pub progress: Progress,
    pub budget: Budget,
}

impl Part {
    /// What a sink of it does first with a unit.
    pub fn arrivals(&self) -> Arrivals {
        let arrivals = Arrivals::new(self.progress.clone(), self.budget.clone());
        if matches!(self.format, Format::Audio(_)) { arrivals.of_sound() } else { arrivals }
    }
}

/// Sinks that save flows together into one file, of the kind that [`FileKind::of`] says.
///
/// # Errors
/// With the file and what to do, when it cannot be made.
pub(crate) fn record(
    path: &Path,
    force: bool,
    parts: Vec<Part>,
) -> Result<Vec<RecordSink>, String> {
    let formats: Vec<Format> = parts.iter().map(|part| part.format.clone()).collect();
    let target = Target::create(path.to_owned(), force)?;
    let file = MediaFile { target, formats: formats.clone(), writer: None, failure: None };
    let interleaver = Interleaver::new(file, &formats, false);
    let recording = Recording { interleaver, open_count: parts.len(), synced_at: None };
    let recording = Arc::new(Mutex::new(recording));
    let sink = |(stream, part): (usize, Part)| {
        part.progress.update(|now| now.saved = Some(path.to_owned()));
        RecordSink {
            arrivals: part.arrivals(),
            recording: Arc::clone(&recording),
            stream,
            unit: Vec::new(),
            is_open: true,
        }
    };
    Ok(parts.into_iter().enumerate().map(sink).collect())
}

impl RecordSink {
    fn show(&self, result: Result<u64, String>) {
        match result {
            Ok(filled) => {
                self.arrivals.progress.update(|now| {
                    now.repeated = now.repeated.saturating_add(filled);
                });
            }
            Err(text) => self.arrivals.progress.error(&text),
        }
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        let mut recording = lock(&self.recording);
        let filled = recording.interleaver.close(self.stream);
        recording.open_count -= 1;
        let last = recording.open_count == 0;
        let finished = if last { recording.interleaver.output.finish() } else { Ok(()) };
        drop(recording);
        self.show(filled);
        self.show(finished.map(|()| 0));
    }
}

impl Sink for RecordSink {
    fn handle_clock(&mut self, offset: ClockOffset) {
        self.arrivals.handle_clock(offset);
    }

    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let arrived = match self.arrivals.handle_unit(now, unit) {
            Ok(arrived) => arrived,
            Err(taken) => return taken,
        };
        self.unit.clear();
        unit.copy_to(&mut self.unit);
        let body = self.unit.get(LEN..).unwrap_or_default();
        let piece = Piece { number: unit.number, header: &arrived.header, body };
        let placed = lock(&self.recording).interleaver.unit(self.stream, piece);
        let len = body.len();
        match placed {
            Ok(Placed::Written { filled }) => {
                failpoint!("recording.unit");
                self.show(Ok(filled));
                self.arrivals.taken(len)
            }
            Ok(Placed::Passed) => self.arrivals.taken(len),
            Ok(Placed::Behind) => self.arrivals.late(),
            Ok(Placed::Malformed) => self.arrivals.refuse(DropReason::Malformed),
            Err(text) => {
                self.arrivals.progress.error(&text);
                self.arrivals.refuse(DropReason::Refused)
            }
        }
    }

    fn handle_lost(&mut self, _now: Time, first: u64, count: u64) {
        self.arrivals.lost(count);
        lock(&self.recording).interleaver.lost(self.stream, first, count);
    }

    fn handle_timeout(&mut self, now: Time) -> Option<Time> {
        let mut recording = lock(&self.recording);
        let next = *recording.synced_at.get_or_insert(now) + SYNC_EVERY;
        if now < next {
            return Some(next);
        }
        recording.synced_at = Some(now);
        failpoint!("recording.sync");
        let synced = recording.interleaver.output.sync();
        drop(recording);
        self.show(synced.map(|()| 0));
        Some(now + SYNC_EVERY)
    }

    fn finish(&mut self, _now: Time, ending: &Ending, _ledger: &Ledger) {
        self.close();
        self.arrivals.progress.ended(ending);
    }
}

impl Drop for RecordSink {
    fn drop(&mut self) {
        self.close();
    }
}

/// Saves the units of a flow of bytes, one after the other.
pub struct RawRecordSink {
    progress: Progress,
    target: Target,
    out: Option<BufWriter<File>>,
    synced_at: Option<Time>,
    failed: bool,
}

impl RawRecordSink {
    /// A sink that writes to this file.
    ///
    /// # Errors
    /// With the file and what to do, when it cannot be made.
    pub(crate) fn create(path: &Path, force: bool, progress: Progress) -> Result<Self, String> {
        let target = Target::create(path.to_owned(), force)?;
        progress.update(|now| now.saved = Some(path.to_owned()));
        Ok(Self { progress, target, out: None, synced_at: None, failed: false })
    }

    fn write(&mut self, unit: &UnitView<'_>) -> Result<(), String> {
        if self.out.is_none() {
            self.out = Some(self.target.begin()?);
        }
        let path = self.target.path.display();
        let Some(out) = &mut self.out else { return Ok(()) };
        let written = unit.pieces().try_for_each(|piece| out.write_all(piece));
        written.map_err(|error| format!("{path}: {error}"))
    }

    fn flush(&mut self) {
        let flushed = self.out.as_mut().map_or(Ok(()), Write::flush);
        if let Err(error) = flushed {
            self.failed = true;
            self.progress.error(&format!("{}: {error}", self.target.path.display()));
        }
    }
}

impl Sink for RawRecordSink {
    fn handle_unit(&mut self, _now: Time, unit: &UnitView<'_>) -> Taken {
        if !self.failed
            && let Err(text) = self.write(unit)
        {
            self.failed = true;
            self.progress.error(&text);
        }
        if self.failed {
            self.progress.update(|now| now.refused += 1);
            return Taken::Dropped(DropReason::Refused);
        }
        self.progress.update(|now| {
            now.media_frames += 1;
            now.bytes += unit.len() as u64;
        });
        Taken::Delivered
    }

    fn handle_lost(&mut self, _now: Time, _first: u64, count: u64) {
        self.progress.update(|now| now.lost = now.lost.saturating_add(count));
    }

    fn handle_timeout(&mut self, now: Time) -> Option<Time> {
        let next = *self.synced_at.get_or_insert(now) + SYNC_EVERY;
        if now < next {
            return Some(next);
        }
        self.synced_at = Some(now);
        self.flush();
        Some(now + SYNC_EVERY)
    }

    fn finish(&mut self, _now: Time, ending: &Ending, _ledger: &Ledger) {
        self.flush();
        self.progress.ended(ending);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_media::VideoFormat;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("dacapo-record-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn part() -> Part {
        let format = Format::Video(VideoFormat::new(64, 48, 25, 1));
        Part { format, progress: Progress::new("video"), budget: Budget::default() }
    }

    #[test]
    fn an_existing_file_is_left_alone_unless_forced_and_a_folder_always() {
        let folder = folder("exists");
        let path = folder.join("a.avi");
        std::fs::write(&path, b"mine").unwrap();
        let error = record(&path, false, vec![part()]).err().unwrap();
        assert!(error.contains("the file exists") && error.contains("--force"), "{error}");
        let sinks = record(&path, true, vec![part()]).unwrap();
        drop(sinks);
        assert_eq!(std::fs::read(&path).unwrap(), b"mine", "nothing came, so nothing changed");
        let error = record(&folder, true, vec![part()]).err().unwrap();
        assert!(error.contains("not a plain file"), "{error}");
        let link = folder.join("link.avi");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(record(&link, true, vec![part()]).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error_that_is_kept_and_no_panic() {
        let path = PathBuf::from("/dev/full");
        let Ok(full) = OpenOptions::new().write(true).open(&path) else {
            dacapo_base::skip("this host has no /dev/full");
            return;
        };
        let formats = vec![part().format];
        let writer = avi::Writer::create(BufWriter::new(full), &formats).unwrap();
        let writer = Some(Writer::Avi(Box::new(writer)));
        let target = Target { path, file: None, is_new: false };
        let mut file = MediaFile { target, formats, writer, failure: None };
        let picture = vec![7; 100_000];
        let errors: Vec<_> = (0..20).filter_map(|_| file.picture(0, &picture).err()).collect();
        assert!(errors.len() > 10 && errors.iter().all(|text| *text == errors[0]), "{errors:?}");
        assert!(errors[0].starts_with("/dev/full: ") && errors[0].contains("space"), "{errors:?}");
        assert!(file.sync().is_err() && file.finish().is_err());
    }

    #[test]
    fn a_file_that_gets_nothing_is_removed_again() {
        let folder = folder("nothing");
        let path = folder.join("a.avi");
        let sinks = record(&path, false, vec![part()]).unwrap();
        assert!(path.exists());
        drop(sinks);
        assert!(!path.exists());
        let error = record(&folder.join("no").join("a.avi"), false, vec![part()]).err().unwrap();
        assert!(error.contains("No such file"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
