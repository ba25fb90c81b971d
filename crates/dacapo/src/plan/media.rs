//! The media that a session file names: found, opened, measured.
//!
//! What it is not: sending. Readers that are opened here are closed again.
//!
//! Invariants: a file that several flows name is opened once and its problem told for each; at most
//! [`SAMPLE_COUNT`] pictures are read to learn how large they are.

use super::Place;
use crate::access::file::open;
use dacapo_media::sniff::SniffError;
use dacapo_media::{AudioFormat, FileInput, Format, Kind, TestMovie, VideoFormat, avi, sniff, wav};
use dacapo_qos::{Problem, Source, Spanned, StreamKind, StreamSelector};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pictures that are looked at to estimate the largest and the mean.
const SAMPLE_COUNT: u64 = 256;

/// What a picture may have in any case, and at most, in bytes.
const PICTURE_LEN_MIN: u64 = 1 << 20;
const PICTURE_LEN_MAX: u64 = 16 << 20;

/// What a unit of sound and of bytes may have where units are cut.
const SOUND_LEN: u32 = 64 << 10;
const RAW_LEN: u32 = 1 << 20;

/// The medium header.
const HEAD_LEN: u32 = dacapo_wire::media::LEN as u32;

/// Where the units of a flow come from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    AviVideo { path: PathBuf, stream: usize },
    AviAudio { path: PathBuf, stream: usize },
    Wav { path: PathBuf },
    TestVideo(TestMovie),
    TestAudio(TestMovie),
    Raw,
}

impl Origin {
    /// Equal for flows that are played together; none for those that are alone.
    pub fn group_key(&self) -> Option<PathBuf> {
        match self {
            Self::AviVideo { path, .. } | Self::AviAudio { path, .. } => Some(path.clone()),
            // No file has this path: an empty one cannot be opened.
            Self::TestVideo(_) | Self::TestAudio(_) => Some(PathBuf::new()),
            Self::Wav { .. } | Self::Raw => None,
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
    /// The largest picture that was seen, in bytes.
    picture_len_max: u64,
    pub warnings: Vec<String>,
}

impl Found {
    /// The longest unit of the flow, in bytes, the medium header included; `room` is what
    /// fits a packet where units are not cut.
    pub fn unit_len_max(&self, room: Option<u32>) -> u32 {
        match (&self.format, room) {
            (Some(Format::Video(_)), _) => {
                let len = self.picture_len_max.saturating_mul(4);
                let len = len.clamp(PICTURE_LEN_MIN, PICTURE_LEN_MAX);
                u32::try_from(len).unwrap_or(u32::MAX).saturating_add(HEAD_LEN)
            }
            (Some(Format::Audio(_)), None) => SOUND_LEN,
            (None, None) => RAW_LEN,
            (_, Some(room)) => room,
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
            warnings: Vec::new(),
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
            warnings: Vec::new(),
        }
    }

    /// Learns from pictures that were looked at how large they are.
    fn measure(&mut self, lens: &[u64]) {
        let Some(Format::Video(video)) = &self.format else { return };
        self.picture_len_max = lens.iter().copied().max().unwrap_or(0);
        let mean = lens.iter().sum::<u64>() / (lens.len() as u64).max(1);
        let bits = u128::from(mean) * 8 * u128::from(video.rate) / u128::from(video.scale.max(1));
        self.mean_bps = u64::try_from(bits).unwrap_or(u64::MAX);
    }
}

enum Opened {
    Avi(Box<avi::Reader<FileInput>>),
    Wav(Box<wav::Reader<FileInput>>),
}

/// The files that a session names, each opened once.
#[derive(Default)]
pub(super) struct Files(BTreeMap<PathBuf, Result<Opened, String>>);

/// Finds the medium of a flow.
pub(super) fn find(
    place: Place<'_>,
    files: &mut Files,
    problems: &mut Vec<Problem>,
) -> Option<Found> {
    let (found, at, key) = match &place.spec.source.value {
        Source::Raw => (Ok(raw()), place.spec.source.with(()), "source"),
        Source::Test { stream, duration, .. } => {
            let ns = duration.map(|duration| duration.value);
            (test(stream.value, ns), stream.with(()), "source.stream")
        }
        Source::File { path, stream } => {
            let target = place.session.resolve(path);
            match find_file(files, &target, *stream) {
                Ok(found) => (Ok(found), path.with(()), "source.file"),
                Err(Refused::File(text)) => (Err(text), path.with(()), "source.file"),
                Err(Refused::Stream(text)) => {
                    let at = stream.as_ref().map_or_else(|| path.with(()), |it| it.with(()));
                    (Err(text), at, "source.stream")
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

fn raw() -> Found {
    Found {
        origin: Origin::Raw,
        format: None,
        duration_ns: 0,
        count: 0,
        mean_bps: 0,
        picture_len_max: 0,
        warnings: Vec::new(),
    }
}

fn test(stream: StreamSelector, duration_ns: Option<u64>) -> Result<Found, String> {
    if stream.index > 0 {
        return Err(format!("the test movie has no {stream}, only video and audio"));
    }
    let mut movie = TestMovie::default();
    if let Some(ns) = duration_ns {
        movie.duration = Duration::from_nanos(ns);
    }
    let mut generator = movie.generator().map_err(|error| error.to_string())?;
    if stream.kind == StreamKind::Audio {
        let audio = movie.audio_format().ok_or("the test movie has no sound")?;
        let len = audio.byte_offset_at(generator.video_format().duration_ns());
        return Ok(Found::audio(Origin::TestAudio(movie), audio, len));
    }
    let video = generator.video_format().clone();
    if video.frame_count == 0 {
        return Err("the duration is shorter than one picture (40 ms)".to_owned());
    }
    let mut lens = Vec::new();
    let mut picture = Vec::new();
    for index in (0..video.frame_count).take(4) {
        generator.picture(index, &mut picture).map_err(|error| error.to_string())?;
        lens.push(picture.len() as u64);
    }
    let mut found = Found::video(Origin::TestVideo(movie), video);
    found.measure(&lens);
    Ok(found)
}

/// What is wrong with a file: itself, or the stream that was asked for.
enum Refused {
    File(String),
    Stream(String),
}

fn find_file(
    files: &mut Files,
    path: &Path,
    stream: Option<Spanned<StreamSelector>>,
) -> Result<Found, Refused> {
    let opened = files.0.entry(path.to_owned()).or_insert_with(|| open_media(path));
    let selector = stream.map(|stream| stream.value);
    let mut found = match opened {
        Err(text) => return Err(Refused::File(text.clone())),
        Ok(Opened::Wav(reader)) => find_wav(reader, path, selector)?,
        Ok(Opened::Avi(reader)) => find_avi(reader, path, selector)?,
    };
    if found.count == 0 {
        return Err(Refused::File(format!("{}: the stream is empty", path.display())));
    }
    let warnings = match opened {
        Ok(Opened::Avi(reader)) => reader.warnings(),
        Ok(Opened::Wav(reader)) => reader.warnings(),
        Err(_) => &[],
    };
    found.warnings =
        warnings.iter().map(|warning| format!("{}: {warning}", path.display())).collect();
    Ok(found)
}

fn open_media(path: &Path) -> Result<Opened, String> {
    let at = |error: &dyn std::fmt::Display| crate::access::file::at(path, error);
    match sniff(open(path)?) {
        Ok(Kind::Avi) => {
            let reader = avi::Reader::open(open(path)?).map_err(|error| at(&error))?;
            Ok(Opened::Avi(Box::new(reader)))
        }
        Ok(Kind::Wav) => {
            let reader = wav::Reader::open(open(path)?).map_err(|error| at(&error))?;
            Ok(Opened::Wav(Box::new(reader)))
        }
        Err(error) => Err(at(&named(&error, path))),
    }
}

/// What a file is instead, with the line that converts this very file.
fn named(error: &SniffError, path: &Path) -> String {
    let quote = |path: &Path| {
        let text = path.display().to_string();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let text = error.to_string();
    let Some((before, line)) = text.split_once(" INPUT ") else { return text };
    let ending = if line.ends_with(".wav") { "wav" } else { "avi" };
    let mut output = path.with_extension(ending);
    if output == path {
        output = path.with_extension(format!("converted.{ending}"));
    }
    let line = line.replace(&format!("OUTPUT.{ending}"), &quote(&output));
    format!("{before} {} {line}", quote(path))
}

fn find_wav(
    reader: &wav::Reader<FileInput>,
    path: &Path,
    selector: Option<StreamSelector>,
) -> Result<Found, Refused> {
    if let Some(wrong) = selector.filter(|it| it.kind != StreamKind::Audio || it.index > 0) {
        let text = format!("{}: a WAV file has no {wrong}, only audio", path.display());
        return Err(Refused::Stream(text));
    }
    let origin = Origin::Wav { path: path.to_owned() };
    Ok(Found::audio(origin, reader.format().clone(), reader.audio_len()))
}

fn find_avi(
    reader: &mut avi::Reader<FileInput>,
    path: &Path,
    selector: Option<StreamSelector>,
) -> Result<Found, Refused> {
    let (stream, kind) = select(reader, selector)
        .map_err(|text| Refused::Stream(format!("{}: {text}", path.display())))?;
    let path = path.to_owned();
    if kind == StreamKind::Audio {
        let audio = reader.audio_format(stream).cloned();
        let audio = audio.ok_or_else(|| Refused::Stream("no audio".to_owned()))?;
        let len = reader.audio_len(stream);
        return Ok(Found::audio(Origin::AviAudio { path, stream }, audio, len));
    }
    let video = reader.video_format(stream).cloned();
    let video = video.ok_or_else(|| Refused::Stream("no video".to_owned()))?;
    let lens = sample(reader, stream, video.frame_count)
        .map_err(|error| Refused::File(format!("{}: {error}", path.display())))?;
    let mut found = Found::video(Origin::AviVideo { path: path.clone(), stream }, video);
    found.measure(&lens);
    if found.picture_len_max > PICTURE_LEN_MAX {
        let (len, most) = (found.picture_len_max, PICTURE_LEN_MAX);
        let text =
            format!("{}: a picture has {len} bytes, at most {most} are sent", path.display());
        return Err(Refused::File(text));
    }
    Ok(found)
}

/// The lengths of pictures that are spread evenly over a stream.
fn sample(
    reader: &mut avi::Reader<FileInput>,
    stream: usize,
    count: u64,
) -> Result<Vec<u64>, avi::AviError> {
    let step = (count / SAMPLE_COUNT).max(1);
    let mut picture = Vec::new();
    let mut lens = Vec::new();
    for index in (0..count).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        reader.video_frame(stream, index, &mut picture)?;
        lens.push(picture.len() as u64);
    }
    Ok(lens)
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
    }
}
