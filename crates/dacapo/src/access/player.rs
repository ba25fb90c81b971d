//! [`PlayerSink`]: a sink that shows what it gets through a player in another process.
//!
//! ```text
//!   unit -> playout clock -> held until due -> weave -> queue --thread--> pipe -> ffplay
//!             late: not shown       bounded           bounded     may block
//!
//!   sound, pictures, both   AVI until the flows end; the player ends when it has shown that
//!   a still                 the picture and its end; the player stays until the flow ends
//! ```
//!
//! The playout clock decides when a unit goes to the player; the player's own clock takes over from
//! there.
//!
//! Invariants: a player that stalls never holds up the core: beyond `QUEUE_BYTES` the oldest
//! pictures that wait are replaced by "the previous one again", so that sound and pictures stay
//! together; nothing of an older generation is shown after a newer one has come. A still is shown
//! whenever it comes, and neither waits nor is dropped.

use super::arrival::Arrivals;
use super::interleave::{Interleaver, Output, Piece, Placed};
use super::progress::Progress;
use super::record::{Part, in_avi, is_still};
use dacapo_base::Time;
use dacapo_core::{Ending, Ledger, Sink, Taken, UnitView};
use dacapo_lift::DropReason;
use dacapo_media::playout::Verdict;
use dacapo_media::{Format, avi};
use dacapo_path::ClockOffset;
use dacapo_wire::media::{Header, LEN};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that wait for the player before pictures are dropped.
const QUEUE_BYTES: usize = 8 << 20;

/// Pieces that wait for the player before whole pieces are dropped.
const QUEUE_COUNT: usize = 4_096;

/// Bytes and units that are held until they are due.
const HELD_BYTES: usize = 64 << 20;
const HELD_COUNT: usize = 4_096;

/// How soon it is seen that the player of a still was closed.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The program that plays, when it is on the path.
const PROGRAM: &str = "ffplay";

struct Item {
    stream: usize,
    is_picture: bool,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    dropped: u64,
    /// Nothing more will be put in.
    is_finished: bool,
    /// The player is gone.
    is_gone: bool,
    error: Option<String>,
}

impl Queue {
    fn push(&mut self, item: Item) {
        self.bytes += item.bytes.len();
        self.items.push_back(item);
        while self.bytes > QUEUE_BYTES && self.items.len() > 1 && self.drop_picture() {}
        while (self.bytes > QUEUE_BYTES && self.items.len() > 1) || self.items.len() > QUEUE_COUNT {
            let Some(item) = self.items.pop_front() else { return };
            self.bytes -= item.bytes.len();
            self.dropped += 1;
        }
    }

    /// Makes the oldest picture that waits a repetition; false when there is none.
    fn drop_picture(&mut self) -> bool {
        let oldest = self.items.iter_mut().find(|item| item.is_picture && !item.bytes.is_empty());
        let Some(oldest) = oldest else { return false };
        self.bytes -= std::mem::take(&mut oldest.bytes).len();
        self.dropped += 1;
        true
    }
}

#[derive(Default)]
struct Pipe {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, item: Item) -> Result<(), String> {
        let mut queue = self.lock();
        if queue.is_gone {
            let error = queue.error.clone();
            return Err(error.unwrap_or_else(|| "the player was closed".to_owned()));
        }
        queue.push(item);
        drop(queue);
        self.changed.notify_one();
        Ok(())
    }

    /// The next piece, when there is one; nothing after the last.
    fn next(&self) -> Option<Item> {
        let mut queue = self.lock();
        loop {
            if let Some(item) = queue.items.pop_front() {
                queue.bytes -= item.bytes.len();
                return Some(item);
            }
            if queue.is_finished {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Forgets everything that comes; whether nothing more will, at the latest after a short while.
    fn wait_for_end(&self) -> bool {
        let mut queue = self.lock();
        if !queue.is_finished {
            let waited = self.changed.wait_timeout(queue, LOOK_EVERY);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.items.clear();
        queue.bytes = 0;
        queue.is_finished
    }

    fn finish(&self) {
        self.lock().is_finished = true;
        self.changed.notify_one();
    }

    fn leave(&self, error: Option<String>) {
        let mut queue = self.lock();
        (queue.is_gone, queue.error) = (true, error);
        queue.items.clear();
        queue.bytes = 0;
    }
}

struct ToPlayer(Arc<Pipe>);

impl Output for ToPlayer {
    fn picture(&mut self, stream: usize, picture: &[u8]) -> Result<(), String> {
        self.0.push(Item { stream, is_picture: true, bytes: picture.to_vec() })
    }

    fn sound(&mut self, stream: usize, sound: &[u8]) -> Result<(), String> {
        self.0.push(Item { stream, is_picture: false, bytes: sound.to_vec() })
    }
}

/// A player that was started: whether it still runs.
#[derive(Clone)]
pub struct PlayerHandle(Arc<Pipe>);

impl PlayerHandle {
    /// Whether the player has ended or was closed by its user.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.lock().is_gone
    }

    /// Whether everything was handed to the player and it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let queue = self.0.lock();
        queue.is_gone && queue.is_finished
    }
}

/// The program that plays; nothing when it is not on `path`, the value of `PATH`.
#[must_use]
pub fn find_player(path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    let folders = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(PROGRAM)).find(|program| program.is_file())
}

/// How `ffplay` is started for a stream of AVI on its input, or for a picture.
fn ffplay(program: &Path, title: &str, shows_still: bool) -> Command {
    let mut command = Command::new(program);
    command.args(["-hide_banner", "-loglevel", "error", "-nostats", "-window_title", title]);
    if shows_still {
        command.args(["-f", "jpeg_pipe"]);
    } else {
        // What is read to find out about the streams is not shown: all of a still would be gone.
        command.args(["-probesize", "100000", "-analyzeduration", "0", "-fflags", "nobuffer"]);
        command.args(["-autoexit", "-f", "avi"]);
    }
    command.args(["-i", "pipe:0"]);
    command
}

struct Held {
    stream: usize,
    header: Header,
    body: Vec<u8>,
}

/// The flows that go to one player.
struct Playing {
    interleaver: Interleaver<ToPlayer>,
    open_count: usize,
    pipe: Arc<Pipe>,
}

type Shared = Arc<Mutex<Playing>>;

/// Shows one flow of media, alone or together with others.
pub struct PlayerSink {
    arrivals: Arrivals,
    playing: Shared,
    stream: usize,
    /// What waits to be shown, by when and by number.
    held: BTreeMap<(Time, u64), Held>,
    held_bytes: usize,
    is_open: bool,
}

/// Sinks that show flows together in `ffplay`.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn play(
    program: &Path,
    title: &str,
    parts: Vec<Part>,
) -> Result<(Vec<PlayerSink>, PlayerHandle), String> {
    // A title that begins with a dash would be an option.
    let title = format!("dacapo {title}");
    play_with(ffplay(program, &title, is_only_still(&parts)), parts)
}

fn is_only_still(parts: &[Part]) -> bool {
    matches!(parts, [part] if is_still(&part.format))
}

fn play_with(
    mut command: Command,
    parts: Vec<Part>,
) -> Result<(Vec<PlayerSink>, PlayerHandle), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: &dyn std::fmt::Display| format!("{program}: {error}");
    // What a player says on its own would tear the progress line.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let input = child.stdin.take().ok_or_else(|| failed(&"it has no input"))?;
    let shows_still = is_only_still(&parts);
    let formats: Vec<Format> = parts.iter().map(|part| part.format.clone()).collect();
    let pipe = Arc::<Pipe>::default();
    let (theirs, streams) = (Arc::clone(&pipe), in_avi(&formats));
    let run = move || match shows_still {
        true => run_still(&theirs, child, input),
        false => run(&theirs, child, input, &streams),
    };
    thread::Builder::new().name("player".to_owned()).spawn(run).map_err(|error| failed(&error))?;
    let interleaver = Interleaver::new(ToPlayer(Arc::clone(&pipe)), &formats, true);
    let playing = Playing { interleaver, open_count: parts.len(), pipe: Arc::clone(&pipe) };
    let playing = Arc::new(Mutex::new(playing));
    let sink = |(stream, part): (usize, Part)| {
        let arrivals = part.arrivals();
        PlayerSink {
            arrivals: if is_still(&part.format) { arrivals.never_late() } else { arrivals },
            playing: Arc::clone(&playing),
            stream,
            held: BTreeMap::new(),
            held_bytes: 0,
            is_open: true,
        }
    };
    let sinks = parts.into_iter().enumerate().map(sink).collect();
    Ok((sinks, PlayerHandle(pipe)))
}

/// The thread that writes to the player, which may block.
fn run(pipe: &Pipe, mut child: Child, input: ChildStdin, formats: &[Format]) {
    let written = write(pipe, input, formats);
    // The input is closed now: the player ends when it has shown what it has.
    let ended = child.wait();
    let error = match (written, ended) {
        (_, Ok(status)) if status.success() => None,
        (_, Ok(status)) => Some(format!("the player ended: {status}")),
        (written, Err(error)) => Some(written.err().unwrap_or_else(|| error.to_string())),
    };
    pipe.leave(error);
}

/// The same for a still: the player stays with what it was given until the flow ends.
fn run_still(pipe: &Pipe, mut child: Child, mut input: ChildStdin) {
    let picture = std::iter::from_fn(|| pipe.next()).find(|item| !item.bytes.is_empty());
    let written = picture.map_or(Ok(()), |item| input.write_all(&item.bytes));
    // A picture is whole, and shown, when its end has come.
    drop(input);
    let closed = || Some("the player was closed".to_owned());
    let mut error = written.err().and_then(|_| closed());
    while error.is_none() && !pipe.wait_for_end() {
        if !matches!(child.try_wait(), Ok(None)) {
            error = closed();
        }
    }
    // It may be gone already.
    let _ = child.kill();
    let _ = child.wait();
    pipe.leave(error);
}

fn write(pipe: &Pipe, input: ChildStdin, formats: &[Format]) -> Result<(), String> {
    let closed = |error: avi::WriteError| {
        // The core must not go on to fill a queue that nobody empties.
        pipe.leave(Some("the player was closed".to_owned()));
        error.to_string()
    };
    let mut writer = avi::Writer::streaming(input, formats).map_err(closed)?;
    while let Some(item) = pipe.next() {
        let written = if item.is_picture {
            writer.video_frame(item.stream, &item.bytes)
        } else {
            writer.audio(item.stream, &item.bytes)
        };
        written.map_err(closed)?;
    }
    writer.finish().map(drop).map_err(|error| error.to_string())
}

impl PlayerSink {
    fn hold(&mut self, at: Time, number: u64, header: Header, unit: &UnitView<'_>) -> Taken {
        let mut body = Vec::new();
        unit.copy_to(&mut body);
        body.drain(..LEN.min(body.len()));
        if self.held.len() >= HELD_COUNT || self.held_bytes + body.len() > HELD_BYTES {
            return self.arrivals.refuse(DropReason::Overflow);
        }
        let len = body.len();
        self.held_bytes += len;
        self.held.insert((at, number), Held { stream: self.stream, header, body });
        self.arrivals.taken(len)
    }

    /// Forgets what was to be shown before a jump.
    fn forget(&mut self) {
        let count = self.held.len() as u64;
        self.held.clear();
        self.held_bytes = 0;
        self.arrivals.progress.update(|now| now.old_generation += count);
    }

    fn release(&mut self, until: Time) {
        while let Some(entry) = self.held.first_entry().filter(|entry| entry.key().0 <= until) {
            let ((_, number), held) = entry.remove_entry();
            self.held_bytes -= held.body.len();
            self.show(number, &held);
        }
    }

    fn show(&mut self, number: u64, held: &Held) {
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        let piece = Piece { number, header: &held.header, body: &held.body };
        let placed = playing.interleaver.unit(held.stream, piece);
        let dropped = playing.pipe.lock().dropped;
        drop(playing);
        let progress: &Progress = &self.arrivals.progress;
        match placed {
            Ok(Placed::Written { filled }) => progress.update(|now| now.repeated += filled),
            Ok(Placed::Behind) => progress.update(|now| now.late += 1),
            Ok(Placed::Passed | Placed::Malformed) => progress.update(|now| now.refused += 1),
            Err(text) => progress.error(&text),
        }
        progress.update(|now| now.player_dropped = dropped);
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        playing.open_count -= 1;
        if playing.open_count == 0 {
            playing.pipe.finish();
        }
    }
}

impl Sink for PlayerSink {
    fn handle_clock(&mut self, offset: ClockOffset) {
        self.arrivals.handle_clock(offset);
    }

    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken {
        let arrived = match self.arrivals.handle_unit(now, unit) {
            Ok(arrived) => arrived,
            Err(taken) => return taken,
        };
        if arrived.is_first {
            self.forget();
        }
        match arrived.verdict {
            Verdict::Show { at } => self.hold(at, unit.number, arrived.header, unit),
            Verdict::Late { .. } => self.arrivals.late(),
            Verdict::Early { .. } => self.arrivals.refuse(DropReason::Overflow),
            Verdict::Stale => self.arrivals.refuse(DropReason::OldGeneration),
            Verdict::Duplicate => self.arrivals.refuse(DropReason::Duplicate),
        }
    }

    fn handle_lost(&mut self, _now: Time, _first: u64, count: u64) {
        self.arrivals.lost(count);
    }

    fn handle_timeout(&mut self, now: Time) -> Option<Time> {
        self.release(now);
        self.held.first_key_value().map(|((at, _), _)| *at)
    }

    fn finish(&mut self, _now: Time, ending: &Ending, _ledger: &Ledger) {
        self.release(Time::NEVER);
        self.close();
        self.arrivals.progress.ended(ending);
    }
}

impl Drop for PlayerSink {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::budget::Budget;
    use dacapo_media::{AudioFormat, FileInput, SampleEncoding, VideoFormat};

    fn formats() -> Vec<Format> {
        let audio = AudioFormat::new(SampleEncoding::S16, 1, 8_000);
        vec![Format::Video(VideoFormat::new(64, 48, 25, 1)), Format::Audio(audio)]
    }

    fn parts() -> Vec<Part> {
        let part =
            |format| Part { format, progress: Progress::new("x"), budget: Budget::default() };
        formats().into_iter().map(part).collect()
    }

    fn give(sink: &mut PlayerSink, index: u32, body: Vec<u8>) {
        let media_ns = u64::from(index) * 40_000_000;
        let header = Header { index, media_ns, ..Header::default() };
        sink.show(u64::from(index), &Held { stream: sink.stream, header, body });
    }

    #[test]
    fn the_player_gets_avi_on_its_input_until_the_flows_end() {
        let path = std::env::temp_dir().join(format!("dacapo-player-{}.avi", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "cat > \"$0\""]).arg(&path);
        let (mut sinks, handle) = play_with(command, parts()).unwrap();
        for index in 0..50 {
            give(&mut sinks[0], index, vec![index as u8; 100]);
            give(&mut sinks[1], index, vec![index as u8; 640]);
        }
        assert!(!handle.is_finished());
        drop(sinks);
        while !handle.is_finished() {
            thread::yield_now();
        }
        let file = FileInput::new(std::fs::File::open(&path).unwrap()).unwrap();
        let mut reader = avi::Reader::open(file).unwrap();
        assert_eq!((reader.video_count(0), reader.audio_len(1)), (50, 50 * 640));
        let mut picture = Vec::new();
        reader.video_frame(0, 49, &mut picture).unwrap();
        assert_eq!(picture, [49; 100]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_player_of_a_still_gets_the_picture_and_its_end_and_stays_until_the_flow_ends() {
        let name = |what: &str| format!("dacapo-player-{}-{what}", std::process::id());
        let (path, whole) =
            (std::env::temp_dir().join(name("a.jpg")), std::env::temp_dir().join(name("whole")));
        let still = || Part {
            format: Format::Video(VideoFormat::still(64, 48)),
            progress: Progress::new("x"),
            budget: Budget::default(),
        };
        let mut command = Command::new("sh");
        command.args(["-c", "cat > \"$0\"; : > \"$1\"; exec sleep 1000"]).args([&path, &whole]);
        let (mut sinks, handle) = play_with(command, vec![still()]).unwrap();
        // More than is kept for a player that stalls.
        let picture = vec![7; QUEUE_BYTES + 1];
        give(&mut sinks[0], 0, picture.clone());
        while !whole.exists() {
            thread::yield_now();
        }
        assert!(std::fs::read(&path).unwrap() == picture && !handle.is_gone());
        drop(sinks);
        while !handle.is_finished() {
            thread::yield_now();
        }
        assert_eq!(handle.0.lock().error, None);
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&whole).unwrap();
        // One that was closed is gone while the flow runs.
        let (sinks, handle) = play_with(Command::new("true"), vec![still()]).unwrap();
        handle.0.push(Item { stream: 0, is_picture: true, bytes: vec![7] }).unwrap();
        while !handle.is_gone() {
            thread::yield_now();
        }
        assert!(!handle.is_finished() && handle.0.lock().error.is_some());
        drop(sinks);
    }

    #[test]
    fn a_player_that_stalls_loses_old_pictures_and_never_blocks() {
        let mut command = Command::new("sleep");
        command.arg("1000");
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let pipe = Arc::<Pipe>::default();
        let (theirs, input) = (Arc::clone(&pipe), child.stdin.take().unwrap());
        let mut output = ToPlayer(Arc::clone(&pipe));
        for _ in 0..200 {
            output.picture(0, &[7; 100_000]).unwrap();
            output.sound(1, &[7; 640]).unwrap();
        }
        let queue = pipe.lock();
        assert!(queue.bytes <= QUEUE_BYTES && queue.dropped >= 100, "{}", queue.dropped);
        assert_eq!(queue.items.iter().filter(|item| !item.is_picture).count(), 200);
        drop(queue);
        // Before, it would have taken what lay in front of the first picture, or not.
        let writer = thread::spawn(move || drop(write(&theirs, input, &formats())));
        child.kill().unwrap();
        child.wait().unwrap();
        writer.join().unwrap();
        assert!(output.picture(0, &[7]).unwrap_err().contains("closed"));
    }

    #[test]
    fn a_player_that_is_missing_or_fails_is_an_error_and_no_panic() {
        assert!(play_with(Command::new("/nonexistent/player"), parts()).is_err());
        assert_eq!(find_player(Some("relative:/nonexistent".as_ref())), None);
        let (sinks, handle) = play_with(Command::new("false"), parts()).unwrap();
        while !handle.is_gone() {
            drop(sinks[0].playing.lock().unwrap().interleaver.output.sound(1, &[0; 640]));
        }
        let error = ToPlayer(Arc::clone(&handle.0)).sound(1, &[0; 640]).unwrap_err();
        assert!(error.contains("player"), "{error}");
    }
}
