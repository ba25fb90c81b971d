//! The media that a session file names: found, opened, measured.
//!
//! Readers that are opened here are closed again.
//!
//! Invariants: a file that several flows name is opened once and its problem told for each; how
//! large pictures are is known of every one, from the index.

use super::Place;
use super::missing::{AssumedMedium, Wanted};
use crate::access::file::{MediaPath, open, shell_word, show_of, try_open};
use dacapo_media::mjpeg::{self, Show};
use dacapo_media::sniff::SniffError;
use dacapo_media::{
    AudioFormat, FileInput, Format, FourCc, Kind, TestMovie, VideoFormat, Warning, au, avi, sniff,
    wav,
};
use dacapo_qos::{Problem, Source, Spanned, StreamKind, StreamSelector};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A session of nothing but stills lasts so long, in nanoseconds.
const STILL_NS: u64 = 10_000_000_000;

/// What a picture may have in any case, and at most, in bytes.
const PICTURE_LEN_MIN: u64 = 1 << 20;
const PICTURE_LEN_MAX: u64 = 16 << 20;

/// The medium header.
const HEAD_LEN: u32 = dacapo_wire::media::LEN as u32;

/// Where the units of a flow come from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// Of an AVI file; or JPEG pictures, one or many.
    Pictures {
        path: MediaPath,
        stream: usize,
    },
    /// Of an AVI file.
    AviSound {
        path: MediaPath,
        stream: usize,
    },
    /// A WAV or AU file.
    SoundFile {
        path: PathBuf,
    },
    TestVideo(TestMovie),
    TestAudio(TestMovie),
    /// A file that is not there: a plan may assume it, and nobody can open it.
    Missing(PathBuf),
    Raw,
}

impl Origin {
    /// Equal for flows that are played together; none for those that are alone.
    pub fn group_key(&self) -> Option<PathBuf> {
        match self {
            Self::Pictures { path, .. } if path.has_jpegs() => None,
            Self::Pictures { path, .. } | Self::AviSound { path, .. } => Some(path.to_path_buf()),
            // No file has this path: an empty one cannot be opened.
            Self::TestVideo(_) | Self::TestAudio(_) => Some(PathBuf::new()),
            Self::Missing(path) => Some(path.clone()),
            Self::SoundFile { .. } | Self::Raw => None,
        }
    }
}

/// What was found of the medium of a flow.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub origin: Origin,
    /// None for bytes.
    pub format: Option<Format>,
    pub duration_ns: u64,
    /// Pictures, or samples of each channel.
    pub count: u64,
    /// The mean rate in bit/s; 0 when not known.
    pub mean_bps: u64,
    /// What the largest picture may have, in bytes.
    picture_len_max: u64,
    /// What pictures have on average, in bytes.
    pub picture_len_mean: u64,
    pub warnings: Vec<String>,
    /// The file is missing, and this stands in for it.
    pub assumed: Option<AssumedMedium>,
}

impl Found {
    /// The longest unit of pictures, in bytes, the medium header included.
    pub fn picture_unit_len_max(&self) -> u32 {
        let len = self.picture_len_max.clamp(PICTURE_LEN_MIN, PICTURE_LEN_MAX);
        u32::try_from(len).unwrap_or(u32::MAX).saturating_add(HEAD_LEN)
    }

    /// Pictures in 1,000 s, at least 1; a still is one in all the time that it is shown.
    pub fn pictures_per_ks(&self, video: &VideoFormat) -> u64 {
        let per_ks = if video.is_still() {
            1_000_000_000_000 / STILL_NS
        } else {
            u64::from(video.rate) * 1_000 / u64::from(video.scale.max(1))
        };
        per_ks.max(1)
    }

    /// Bytes of the application.
    pub fn raw() -> Self {
        Self {
            origin: Origin::Raw,
            format: None,
            duration_ns: 0,
            count: 0,
            mean_bps: 0,
            picture_len_max: 0,
            picture_len_mean: 0,
            warnings: Vec::new(),
            assumed: None,
        }
    }

    fn video(origin: Origin, video: VideoFormat) -> Self {
        Self {
            origin,
            duration_ns: video.duration_ns(),
            count: video.frame_count,
            format: Some(Format::Video(video)),
            mean_bps: 0,
            picture_len_max: 0,
            picture_len_mean: 0,
            warnings: Vec::new(),
            assumed: None,
        }
    }

    fn audio(origin: Origin, audio: AudioFormat, len: u64) -> Self {
        Self {
            origin,
            duration_ns: audio.time_ns(len),
            count: len / u64::from(audio.block_len().max(1)),
            mean_bps: audio.bytes_per_second().saturating_mul(8),
            format: Some(Format::Audio(audio)),
            picture_len_max: 0,
            picture_len_mean: 0,
            warnings: Vec::new(),
            assumed: None,
        }
    }

    /// Learns from the lengths of pictures how large they are.
    fn measure(&mut self, lens: impl Iterator<Item = u32>) {
        let Some(Format::Video(video)) = &self.format else { return };
        let (mut count, mut total, mut longest) = (0_u64, 0_u64, 0);
        for len in lens {
            (count, total, longest) = (count + 1, total + u64::from(len), longest.max(len));
        }
        self.picture_len_max = u64::from(longest);
        self.picture_len_mean = total / count.max(1);
        let bits = u128::from(total) * 8;
        let mean = if video.is_still() {
            bits * 1_000_000_000 / u128::from(STILL_NS)
        } else {
            bits * u128::from(video.rate) / (u128::from(video.scale) * u128::from(count)).max(1)
        };
        self.mean_bps = u64::try_from(mean).unwrap_or(u64::MAX);
    }

    /// A session of nothing but stills has to end somewhere.
    fn last_as_still(&mut self, asked: Asked) {
        let is_still = matches!(&self.format, Some(Format::Video(video)) if video.is_still());
        if is_still && asked.is_all_stills {
            self.duration_ns = STILL_NS;
        }
    }

    /// Refuses pictures that are too large to be sent.
    fn check_pictures(self, path: &Path) -> Result<Self, Refused> {
        let (len, most) = (self.picture_len_max, PICTURE_LEN_MAX);
        if len <= most {
            return Ok(self);
        }
        let text =
            format!("{}: a picture has {len} bytes, at most {most} are sent", path.display());
        Err(Refused::File(text))
    }
}

enum Opened {
    Avi(Box<avi::Reader<FileInput>>),
    Wav(Box<wav::Reader<FileInput>>),
    Au(Box<au::Reader<FileInput>>),
    Jpeg(Arc<mjpeg::Index>),
}

/// Why a file is not opened.
enum Unopened {
    Missing,
    Wrong(String),
}

impl From<String> for Unopened {
    fn from(text: String) -> Self {
        Self::Wrong(text)
    }
}

impl Opened {
    fn open(path: &Path) -> Result<Self, Unopened> {
        let at = |error: &dyn std::fmt::Display| crate::access::file::at(path, error);
        let input = try_open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Unopened::Missing,
            _ => Unopened::Wrong(at(&error)),
        })?;
        match sniff(input) {
            Ok(Kind::Avi) => {
                let reader = avi::Reader::open(open(path)?).map_err(|error| at(&error))?;
                Ok(Self::Avi(Box::new(reader)))
            }
            Ok(Kind::Wav) => {
                let reader = wav::Reader::open(open(path)?).map_err(|error| at(&error))?;
                Ok(Self::Wav(Box::new(reader)))
            }
            Ok(Kind::Au) => {
                let reader = au::Reader::open(open(path)?).map_err(|error| at(&error))?;
                Ok(Self::Au(Box::new(reader)))
            }
            Ok(Kind::Jpeg) => {
                let index = mjpeg::Index::of(open(path)?).map_err(|error| at(&error))?;
                Ok(Self::Jpeg(Arc::new(index)))
            }
            Err(error) => Err(at(&named(&error, path)).into()),
        }
    }

    fn warnings(&self) -> &[Warning] {
        match self {
            Self::Avi(reader) => reader.warnings(),
            Self::Wav(reader) => reader.warnings(),
            Self::Au(reader) => reader.warnings(),
            Self::Jpeg(index) => index.warnings(),
        }
    }
}

/// The files that a session names, each opened once.
pub(super) struct Files {
    opened: BTreeMap<PathBuf, Result<Opened, Unopened>>,
    /// Something is assumed of those that are missing.
    assumes_missing: bool,
}

impl Files {
    /// Files that are opened when they are asked for; what is missing is refused, or assumed.
    pub fn new(assumes_missing: bool) -> Self {
        Self { opened: BTreeMap::new(), assumes_missing }
    }

    fn open(&mut self, path: &Path) -> &Result<Opened, Unopened> {
        self.opened.entry(path.to_owned()).or_insert_with(|| Opened::open(path))
    }
}

/// What a flow asks of a file.
#[derive(Clone, Copy)]
struct Asked {
    stream: Option<StreamSelector>,
    /// Pictures per second, in millionths.
    rate: Option<u64>,
    /// Nothing in the session takes time.
    is_all_stills: bool,
}

/// Finds the medium of a flow.
pub(super) fn find(
    place: Place<'_>,
    files: &mut Files,
    problems: &mut Vec<Problem>,
) -> Option<Found> {
    let (found, at, key) = match &place.spec.source.value {
        Source::Raw => (Ok(Found::raw()), place.spec.source.with(()), "source"),
        Source::Test { stream, duration, .. } => {
            let ns = duration.map(|duration| duration.value);
            (test(stream.value, ns), stream.with(()), "source.stream")
        }
        Source::File { path, stream, rate, .. } => {
            let target = place.session.resolve(path);
            let asked = Asked {
                stream: stream.map(|stream| stream.value),
                rate: rate.map(|rate| rate.value),
                is_all_stills: is_all_stills(place, files),
            };
            match find_file(place, files, &target, asked) {
                Ok(found) => (Ok(found), path.with(()), "source.file"),
                Err(Refused::File(text)) => (Err(text), path.with(()), "source.file"),
                Err(Refused::Stream(text)) => {
                    let at = stream.as_ref().map_or_else(|| path.with(()), |it| it.with(()));
                    (Err(text), at, "source.stream")
                }
                Err(Refused::Rate(text)) => {
                    let at = rate.as_ref().map_or_else(|| path.with(()), |it| it.with(()));
                    (Err(text), at, "source.rate")
                }
            }
        }
    };
    found.map_err(|text| report(place, &at, key, text, problems)).ok()
}

fn report(
    place: Place<'_>,
    at: &Spanned<()>,
    key: &str,
    text: String,
    problems: &mut Vec<Problem>,
) {
    problems.push(place.session.problem(at, place.key(key), text));
}

fn test(stream: StreamSelector, duration_ns: Option<u64>) -> Result<Found, String> {
    if stream.index > 0 {
        return Err(format!("the test movie has no {stream}, only video and audio"));
    }
    let mut movie = TestMovie::default();
    if let Some(ns) = duration_ns {
        movie.duration = Duration::from_nanos(ns);
    }
    if stream.kind == StreamKind::Audio {
        return test_sound(&movie, Origin::TestAudio(movie.clone()));
    }
    let video = movie.video_format();
    if video.frame_count == 0 {
        return Err("the duration is shorter than one picture (40 ms)".to_owned());
    }
    test_pictures(&movie, video, Origin::TestVideo(movie.clone()))
}

/// The sound of a test movie, as a medium.
pub(super) fn test_sound(movie: &TestMovie, origin: Origin) -> Result<Found, String> {
    let generator = movie.generator().map_err(|error| error.to_string())?;
    let audio = movie.audio_format().ok_or("the test movie has no sound")?;
    let len = audio.byte_offset_at(generator.video_format().duration_ns());
    Ok(Found::audio(origin, audio, len))
}

/// The pictures of a test movie, as a medium of this format, which has at least one.
pub(super) fn test_pictures(
    movie: &TestMovie,
    video: VideoFormat,
    origin: Origin,
) -> Result<Found, String> {
    let mut generator = movie.generator().map_err(|error| error.to_string())?;
    let mut lens = Vec::new();
    let mut picture = Vec::new();
    for index in (0..video.frame_count).take(4) {
        generator.picture(index, &mut picture).map_err(|error| error.to_string())?;
        lens.push(u32::try_from(picture.len()).unwrap_or(u32::MAX));
    }
    let mut found = Found::video(origin, video);
    found.measure(lens.into_iter());
    // The others are not known until they are made.
    found.picture_len_max = found.picture_len_max.saturating_mul(4);
    Ok(found)
}

/// Whether all that a session sends are stills and bytes: then nothing says when it is over.
fn is_all_stills(place: Place<'_>, files: &mut Files) -> bool {
    place.session.flows.iter().all(|flow| match &flow.source.value {
        Source::Raw => true,
        Source::Test { .. } => false,
        Source::File { path, rate, .. } => {
            let path = place.session.resolve(path);
            let show = show_of(&path, rate.map(|rate| rate.value));
            match files.open(&path) {
                Ok(Opened::Jpeg(index)) => index.video_format(show).is_still(),
                Err(Unopened::Missing) => Wanted::of(place.session, &path).is_still(),
                _ => false,
            }
        }
    })
}

/// What is wrong with a file: itself, or the stream or the rate that was asked for.
enum Refused {
    File(String),
    Stream(String),
    Rate(String),
}

fn find_file(
    place: Place<'_>,
    files: &mut Files,
    path: &Path,
    asked: Asked,
) -> Result<Found, Refused> {
    let assumes_missing = files.assumes_missing;
    let opened = match files.open(path) {
        Ok(opened) => opened,
        Err(Unopened::Wrong(text)) => return Err(Refused::File(text.clone())),
        Err(Unopened::Missing) => {
            let wanted = Wanted::of(place.session, path);
            if !assumes_missing {
                return Err(Refused::File(wanted.refusal()));
            }
            let mut found = wanted.assumed(asked.stream).map_err(Refused::File)?;
            found.last_as_still(asked);
            return Ok(found);
        }
    };
    let mut found = match opened {
        Opened::Avi(reader) => find_avi(reader, path, asked)?,
        Opened::Wav(reader) => {
            refuse_others(path, asked, "a WAV file", StreamKind::Audio)?;
            let origin = Origin::SoundFile { path: path.to_owned() };
            Found::audio(origin, reader.format().clone(), reader.audio_len())
        }
        Opened::Au(reader) => {
            refuse_others(path, asked, "an AU file", StreamKind::Audio)?;
            let origin = Origin::SoundFile { path: path.to_owned() };
            Found::audio(origin, reader.format().clone(), reader.audio_len())
        }
        Opened::Jpeg(index) => find_jpegs(index, path, asked)?,
    };
    if found.count == 0 {
        return Err(Refused::File(format!("{}: the stream is empty", path.display())));
    }
    let warnings = opened.warnings().iter().map(|warning| format!("{}: {warning}", path.display()));
    found.warnings.extend(warnings);
    Ok(found)
}

/// Refuses what a file of one stream, whose time is known, has not.
fn refuse_others(path: &Path, asked: Asked, what: &str, has: StreamKind) -> Result<(), Refused> {
    if has == StreamKind::Audio {
        refuse_rate(path, asked, what)?;
    }
    let Some(wrong) = asked.stream.filter(|it| it.kind != has || it.index > 0) else {
        return Ok(());
    };
    let only = StreamSelector { kind: has, index: 0 };
    Err(Refused::Stream(format!("{}: {what} has no {wrong}, only {only}", path.display())))
}

fn refuse_rate(path: &Path, asked: Asked, what: &str) -> Result<(), Refused> {
    let text = "says itself how fast it is; only JPEG pictures are given a rate";
    match asked.rate {
        None => Ok(()),
        Some(_) => Err(Refused::Rate(format!("{}: {what} {text}", path.display()))),
    }
}

fn find_jpegs(index: &Arc<mjpeg::Index>, path: &Path, asked: Asked) -> Result<Found, Refused> {
    refuse_others(path, asked, "a file of JPEG pictures", StreamKind::Video)?;
    let show = show_of(path, asked.rate);
    let video = index.video_format(show);
    video.check().map_err(|error| Refused::File(format!("{}: {error}", path.display())))?;
    let count = video.frame_count;
    let path = MediaPath::of_jpegs(path.to_owned(), Arc::clone(index), show);
    let mut found = Found::video(Origin::Pictures { path: path.clone(), stream: 0 }, video);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    found.measure(index.picture_lens().take(count));
    found.last_as_still(asked);
    if show == Show::Still && !index.is_still() {
        let (path, others) = (path.display(), index.len() - 1);
        let text =
            format!("{path}: {others} more pictures follow the first one and are left out; ");
        found.warnings.push(text + "a rate makes them a movie");
    }
    found.check_pictures(&path)
}

/// What a file is instead, with the line that converts this very file.
fn named(error: &SniffError, path: &Path) -> String {
    let text = error.to_string();
    let Some((before, line)) = text.split_once(" INPUT ") else { return text };
    let ending = line.rsplit('.').next().unwrap_or_default().to_owned();
    let mut output = path.with_extension(&ending);
    if output == path {
        output = path.with_extension(format!("converted.{ending}"));
    }
    let line = line.replace(&format!("OUTPUT.{ending}"), &shell_word(&output));
    format!("{before} {} {line}", shell_word(path))
}

fn find_avi(reader: &avi::Reader<FileInput>, path: &Path, asked: Asked) -> Result<Found, Refused> {
    refuse_rate(path, asked, "an AVI file")?;
    let (stream, kind) = select(reader, asked.stream)
        .map_err(|text| Refused::Stream(format!("{}: {text}", path.display())))?;
    let path = MediaPath::from(path.to_owned());
    if kind == StreamKind::Audio {
        let audio = reader.audio_format(stream).cloned();
        let audio = audio.ok_or_else(|| Refused::Stream("no audio".to_owned()))?;
        let len = reader.audio_len(stream);
        return Ok(Found::audio(Origin::AviSound { path, stream }, audio, len));
    }
    let video = reader.video_format(stream).cloned();
    let mut video = video.ok_or_else(|| Refused::Stream("no video".to_owned()))?;
    if video.is_still() {
        // Some writers call their pictures so; to peers it means that there is only one.
        video.fourcc = FourCc::MJPG;
    }
    let mut found = Found::video(Origin::Pictures { path: path.clone(), stream }, video);
    found.measure(reader.video_lens(stream));
    found.check_pictures(&path)
}

/// The stream that is meant, with its kind.
fn select(
    reader: &avi::Reader<FileInput>,
    selector: Option<StreamSelector>,
) -> Result<(usize, StreamKind), String> {
    let mut counts = [0_u8; 2];
    let mut streams = Vec::new();
    for (number, stream) in reader.streams().iter().enumerate() {
        let kind = match stream.format {
            Some(Format::Video(_)) => StreamKind::Video,
            Some(Format::Audio(_)) => StreamKind::Audio,
            None => continue,
        };
        let Some(count) = counts.get_mut(usize::from(kind == StreamKind::Audio)) else { continue };
        streams.push((number, StreamSelector { kind, index: *count }));
        *count = count.saturating_add(1);
    }
    let names: Vec<String> = streams.iter().map(|(_, it)| format!("\"{it}\"")).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    match (selector, streams.as_slice()) {
        (Some(wanted), _) => {
            let found = streams.iter().find(|(_, it)| *it == wanted);
            found
                .map(|(number, it)| (*number, it.kind))
                .ok_or_else(|| format!("there is no stream {wanted}; there are: {names}"))
        }
        (None, [(number, it)]) => Ok((*number, it.kind)),
        (None, _) => Err(format!("say which stream is meant, as stream = …; there are: {names}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_named_with_the_line_that_converts_it() {
        let head = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2".as_slice();
        let error = sniff(head).unwrap_err();
        let text = named(&error, Path::new("/m/my film.mp4"));
        assert!(
            text.contains("ffmpeg -i '/m/my film.mp4' -c:v mjpeg")
                && text.ends_with("'/m/my film.avi'"),
            "{text}"
        );
        let text =
            named(&sniff(b"fLaC\0\0\0\0\0\0\0\0".as_slice()).unwrap_err(), Path::new("a.flac"));
        assert!(text.contains("ffmpeg -i a.flac") && text.ends_with("a.wav"), "{text}");
        let text = named(&error, Path::new("x.avi"));
        assert!(text.ends_with("x.converted.avi"), "{text}");
        let png = sniff(b"\x89PNG\r\n\x1A\n\0\0\0\x0D".as_slice()).unwrap_err();
        let text = named(&png, Path::new("pic.png"));
        assert!(text.contains("-i pic.png -frames:v 1") && text.ends_with("pic.jpg"), "{text}");
    }
}
