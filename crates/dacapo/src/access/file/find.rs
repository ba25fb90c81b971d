//! The media files that a session file names: found, opened, measured.
//!
//! Readers that are opened here are closed again.
//!
//! Invariants: a file that several flows name is opened once and its problem told for each; how
//! large pictures are is known of every one, from the index.

use super::missing::Wanted;
use super::{AviSoundOf, MediaPath, PicturesOf, SoundFileOf, open, shell_word, show_of, try_open};
use crate::access::entry::{Setup, Wrong};
use crate::access::found::{Found, PICTURE_LEN_MAX, STILL_NS};
use dacapo_media::mjpeg::{self, Show};
use dacapo_media::sniff::SniffError;
use dacapo_media::{FileInput, Format, FourCc, Kind, Warning, au, avi, sniff, wav};
use dacapo_qos::{SessionFile, Source, StreamKind, StreamSelector};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        let at = |error: &dyn std::fmt::Display| super::at(path, error);
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

/// The files that a session names, each opened once, when it is asked for.
#[derive(Default)]
pub(super) struct Files(BTreeMap<PathBuf, Result<Opened, Unopened>>);

impl Files {
    fn open(&mut self, path: &Path) -> &Result<Opened, Unopened> {
        self.0.entry(path.to_owned()).or_insert_with(|| Opened::open(path))
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
    /// Something is assumed of a file that is missing.
    assumes_missing: bool,
}

/// Finds the medium of a flow: opens the entry of the catalogue.
pub(super) fn find(setup: &mut Setup<'_>) -> Result<Found, Wrong> {
    let Some((session, Source::File { path, stream, rate, .. })) = setup.asked else {
        return Err(Wrong::new("a media file is named by a session file only"));
    };
    let lost = || Wrong::new("the files of the plan are lost");
    let files = setup.shared.of::<Files>().ok_or_else(lost)?;
    let target = session.resolve(path);
    let asked = Asked {
        stream: stream.map(|stream| stream.value),
        rate: rate.map(|rate| rate.value),
        is_all_stills: is_all_stills(session, files),
        assumes_missing: setup.assumes_missing,
    };
    find_file(session, files, &target, asked).map_err(|refused| match refused {
        Refused::File(text) => Wrong::at("file", text),
        Refused::Stream(text) => Wrong::at("stream", text),
        Refused::Rate(text) => Wrong::at("rate", text),
    })
}

/// Whether all that a session sends are stills and bytes: then nothing says when it is over.
fn is_all_stills(session: &SessionFile, files: &mut Files) -> bool {
    session.flows.iter().all(|flow| match &flow.source.value {
        Source::Raw | Source::Access(_) => true,
        Source::Test { .. } => false,
        Source::File { path, rate, .. } => {
            let path = session.resolve(path);
            let show = show_of(&path, rate.map(|rate| rate.value));
            match files.open(&path) {
                Ok(Opened::Jpeg(index)) => index.video_format(show).is_still(),
                Err(Unopened::Missing) => Wanted::of(session, &path).is_still(),
                _ => false,
            }
        }
    })
}

/// A session of nothing but stills has to end somewhere.
fn last_as_still(found: &mut Found, asked: Asked) {
    let is_still = matches!(&found.format, Some(Format::Video(video)) if video.is_still());
    if is_still && asked.is_all_stills {
        found.duration_ns = STILL_NS;
    }
}

/// Refuses pictures that are too large to be sent.
fn check_pictures(found: Found, path: &Path) -> Result<Found, Refused> {
    let (len, most) = (found.picture_len_max, PICTURE_LEN_MAX);
    if len <= most {
        return Ok(found);
    }
    let text = format!("{}: a picture has {len} bytes, at most {most} are sent", path.display());
    Err(Refused::File(text))
}

/// What is wrong with a file: itself, or the stream or the rate that was asked for.
enum Refused {
    File(String),
    Stream(String),
    Rate(String),
}

fn find_file(
    session: &SessionFile,
    files: &mut Files,
    path: &Path,
    asked: Asked,
) -> Result<Found, Refused> {
    let opened = match files.open(path) {
        Ok(opened) => opened,
        Err(Unopened::Wrong(text)) => return Err(Refused::File(text.clone())),
        Err(Unopened::Missing) => {
            let wanted = Wanted::of(session, path);
            if !asked.assumes_missing {
                return Err(Refused::File(wanted.refusal()));
            }
            let mut found = wanted.assumed(asked.stream).map_err(Refused::File)?;
            last_as_still(&mut found, asked);
            return Ok(found);
        }
    };
    let mut found = match opened {
        Opened::Avi(reader) => find_avi(reader, path, asked)?,
        Opened::Wav(reader) => {
            refuse_others(path, asked, "a WAV file", StreamKind::Audio)?;
            let access = Arc::new(SoundFileOf(path.to_owned()));
            Found::audio(access, reader.format().clone(), reader.audio_len())
        }
        Opened::Au(reader) => {
            refuse_others(path, asked, "an AU file", StreamKind::Audio)?;
            let access = Arc::new(SoundFileOf(path.to_owned()));
            Found::audio(access, reader.format().clone(), reader.audio_len())
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
    let mut found = Found::video(Arc::new(PicturesOf { path: path.clone(), stream: 0 }), video);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    found.measure(index.picture_lens().take(count));
    last_as_still(&mut found, asked);
    if show == Show::Still && !index.is_still() {
        let (path, others) = (path.display(), index.len() - 1);
        let text =
            format!("{path}: {others} more pictures follow the first one and are left out; ");
        found.warnings.push(text + "a rate makes them a movie");
    }
    check_pictures(found, &path)
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
        return Ok(Found::audio(Arc::new(AviSoundOf { path, stream }), audio, len));
    }
    let video = reader.video_format(stream).cloned();
    let mut video = video.ok_or_else(|| Refused::Stream("no video".to_owned()))?;
    if video.is_still() {
        // Some writers call their pictures so; to peers it means that there is only one.
        video.fourcc = FourCc::MJPG;
    }
    let mut found = Found::video(Arc::new(PicturesOf { path: path.clone(), stream }), video);
    found.measure(reader.video_lens(stream));
    check_pictures(found, &path)
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
