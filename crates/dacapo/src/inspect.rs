//! [`Inspection`]: what is in a media file, with hashes that tell whether two have the same media.
//!
//! ```text
//!   video   SHA-256 over (length u64, bytes) of every picture in order; of a still the one picture
//!   audio   SHA-256 over all bytes of sound, however they are cut into chunks
//! ```

use crate::access::file::{at, open, show_of};
use crate::access::words::format_text;
use dacapo_media::{AudioFormat, FileInput, Format, Kind, Warning, au, avi, mjpeg, sniff, wav};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};

/// Bytes of sound that are read at once.
const PIECE_LEN: u64 = 1 << 18;

/// What is in a media file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// "AVI", "WAV", "AU" or "JPEG".
    pub container: String,
    /// Its streams with media, in the order of the file.
    pub streams: Vec<StreamInspection>,
    /// What was noticed.
    pub warnings: Vec<String>,
}

/// What is in a stream of a media file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamInspection {
    /// Its number in the file.
    pub stream: usize,
    /// "video" or "audio".
    pub kind: String,
    /// The format in a few words.
    pub format: String,
    /// Pictures, or samples of each channel.
    pub count: u64,
    /// Pictures that only repeat the one before.
    pub repeated: u64,
    /// Bytes of pictures or sound.
    pub bytes: u64,
    /// From the beginning to the end, in nanoseconds; 0 for a still.
    pub duration_ns: u64,
    /// The hash, in hexadecimal.
    pub sha256: String,
}

/// Why a file cannot be inspected: the file, what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectError(pub String);

impl fmt::Display for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InspectError {}

impl Inspection {
    /// Looks at all of a media file.
    ///
    /// # Errors
    /// When it is not AVI, WAV, AU or JPEG, or cannot be read, with the file.
    pub fn of(path: &Path) -> Result<Self, InspectError> {
        let wrong = |error: &dyn fmt::Display| InspectError(at(path, error));
        match sniff(open(path).map_err(InspectError)?) {
            Ok(Kind::Avi) => {
                let input = open(path).map_err(InspectError)?;
                let reader = avi::Reader::open(input).map_err(|error| wrong(&error))?;
                inspect_avi(path, reader).map_err(|error| wrong(&error))
            }
            Ok(Kind::Wav) => {
                let input = open(path).map_err(InspectError)?;
                let mut reader = wav::Reader::open(input).map_err(|error| wrong(&error))?;
                let sound = Sound::new(reader.format(), reader.audio_len(), reader.warnings());
                let read = |from, len, piece: &mut Vec<u8>| reader.audio_bytes(from, len, piece);
                sound.inspect(path, "WAV", read).map_err(|error| wrong(&error))
            }
            Ok(Kind::Au) => {
                let input = open(path).map_err(InspectError)?;
                let mut reader = au::Reader::open(input).map_err(|error| wrong(&error))?;
                let sound = Sound::new(reader.format(), reader.audio_len(), reader.warnings());
                let read = |from, len, piece: &mut Vec<u8>| reader.audio_bytes(from, len, piece);
                sound.inspect(path, "AU", read).map_err(|error| wrong(&error))
            }
            Ok(Kind::Jpeg) => {
                let input = open(path).map_err(InspectError)?;
                let reader = mjpeg::Reader::open(input, show_of(path, None));
                let reader = reader.map_err(|error| wrong(&error))?;
                inspect_jpegs(path, reader).map_err(|error| wrong(&error))
            }
            Err(error) => Err(wrong(&error)),
        }
    }
}

fn inspect_avi(
    path: &Path,
    mut reader: avi::Reader<FileInput>,
) -> Result<Inspection, avi::AviError> {
    let mut streams = Vec::new();
    let formats: Vec<_> = reader.streams().iter().map(|stream| stream.format.clone()).collect();
    for (stream, format) in formats.into_iter().enumerate() {
        let Some(format) = format else { continue };
        let mut found = start(stream, &format, reader.duration_ns(stream));
        let mut hash = Sha256::new();
        match &format {
            Format::Video(_) => {
                let count = reader.video_count(stream);
                hash_video(count, &mut found, &mut hash, |index, out| {
                    reader.video_frame(stream, index, out)
                })?;
            }
            Format::Audio(audio) => {
                let len = reader.audio_len(stream);
                hash_audio(len, &mut hash, |from, len, piece| {
                    reader.audio_bytes(stream, from, len, piece)
                })?;
                found.bytes = len;
                found.count = len / u64::from(audio.block_len().max(1));
            }
        }
        found.sha256 = hex(hash);
        streams.push(found);
    }
    Ok(inspection(path, "AVI", streams, reader.warnings()))
}

fn inspect_jpegs(
    path: &Path,
    mut reader: mjpeg::Reader<FileInput>,
) -> Result<Inspection, mjpeg::MjpegError> {
    let video = reader.video_format().clone();
    let format = Format::Video(video.clone());
    let mut found = start(0, &format, reader.duration_ns());
    if video.is_still() {
        found.format = format!("JPEG {}x{}", video.width, video.height);
        found.duration_ns = 0;
    }
    let mut hash = Sha256::new();
    let count = reader.video_count();
    hash_video(count, &mut found, &mut hash, |index, out| reader.video_frame(index, out))?;
    found.sha256 = hex(hash);
    Ok(inspection(path, "JPEG", vec![found], reader.warnings()))
}

/// The sound of a file that has nothing else.
struct Sound {
    format: AudioFormat,
    len: u64,
    warnings: Vec<Warning>,
}

impl Sound {
    fn new(format: &AudioFormat, len: u64, warnings: &[Warning]) -> Self {
        Self { format: format.clone(), len, warnings: warnings.to_vec() }
    }

    fn inspect<E>(
        self,
        path: &Path,
        container: &str,
        read: impl FnMut(u64, usize, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Inspection, E> {
        let Self { format, len, warnings } = self;
        let mut found = start(0, &Format::Audio(format.clone()), format.time_ns(len));
        let mut hash = Sha256::new();
        found.bytes = len;
        found.count = len / u64::from(format.block_len().max(1));
        hash_audio(len, &mut hash, read)?;
        found.sha256 = hex(hash);
        Ok(inspection(path, container, vec![found], &warnings))
    }
}

fn inspection(
    path: &Path,
    container: &str,
    streams: Vec<StreamInspection>,
    warnings: &[Warning],
) -> Inspection {
    let warnings = warnings.iter().map(ToString::to_string).collect();
    Inspection { path: path.to_owned(), container: container.to_owned(), streams, warnings }
}

fn start(stream: usize, format: &Format, duration_ns: u64) -> StreamInspection {
    let kind = if matches!(format, Format::Video(_)) { "video" } else { "audio" };
    StreamInspection {
        stream,
        kind: kind.to_owned(),
        format: format_text(format),
        count: 0,
        repeated: 0,
        bytes: 0,
        duration_ns,
        sha256: String::new(),
    }
}

fn hash_video<E>(
    count: u64,
    found: &mut StreamInspection,
    hash: &mut Sha256,
    mut read: impl FnMut(u64, &mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut picture = Vec::new();
    for index in 0..count {
        read(index, &mut picture)?;
        let len = picture.len() as u64;
        hash.update(len.to_be_bytes());
        hash.update(&picture);
        found.count += 1;
        found.repeated += u64::from(len == 0);
        found.bytes += len;
    }
    Ok(())
}

fn hash_audio<E>(
    len: u64,
    hash: &mut Sha256,
    mut read: impl FnMut(u64, usize, &mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = Vec::new();
    let mut from = 0;
    while from < len {
        read(from, (len - from).min(PIECE_LEN) as usize, &mut piece)?;
        if piece.is_empty() {
            break;
        }
        hash.update(&piece);
        from += piece.len() as u64;
    }
    Ok(())
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.container)?;
        for stream in &self.streams {
            let what = match (stream.kind.as_str(), stream.count) {
                ("video", 1) => "picture",
                ("video", _) => "pictures",
                _ => "samples",
            };
            let seconds = stream.duration_ns as f64 / 1e9;
            write!(f, "\n  stream {}: {}, {} {what}", stream.stream, stream.format, stream.count)?;
            if stream.repeated > 0 {
                write!(f, " ({} repeat the one before)", stream.repeated)?;
            }
            write!(f, ", {seconds:.3} s, {} bytes\n    sha256 {}", stream.bytes, stream.sha256)?;
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "\n  warning: {warning}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_media::TestMovie;
    use std::io::Cursor;
    use std::time::Duration;

    #[test]
    fn the_same_media_in_other_chunks_have_the_same_hashes_and_other_media_have_not() {
        let movie = TestMovie {
            width: 64,
            height: 48,
            duration: Duration::from_millis(1_000),
            ..TestMovie::default()
        };
        let dir = std::env::temp_dir();
        let path = |name: &str| dir.join(format!("dacapo-inspect-{}-{name}", std::process::id()));
        let (one, two, wav) = (path("1.avi"), path("2.avi"), path("3.wav"));
        let file = movie.write_avi(Cursor::new(Vec::new())).unwrap().into_inner();
        std::fs::write(&one, &file).unwrap();
        std::fs::write(&wav, movie.write_wav(Cursor::new(Vec::new())).unwrap().into_inner())
            .unwrap();
        // The same with all the sound first, and one picture replaced by a repetition.
        let mut reader = avi::Reader::open(file).unwrap();
        let formats: Vec<_> = reader.streams().iter().filter_map(|it| it.format.clone()).collect();
        let mut writer = avi::Writer::create(Cursor::new(Vec::new()), &formats).unwrap();
        let mut bytes = Vec::new();
        reader.audio_bytes(1, 0, 1 << 30, &mut bytes).unwrap();
        writer.audio(1, &bytes).unwrap();
        for index in 0..25 {
            reader.video_frame(0, index, &mut bytes).unwrap();
            writer.video_frame(0, if index == 7 { &[] } else { &bytes }).unwrap();
        }
        std::fs::write(&two, writer.finish().unwrap().into_inner()).unwrap();
        let [a, b, c] = [&one, &two, &wav].map(|path| Inspection::of(path).unwrap());
        assert_eq!(a.streams[1].sha256, b.streams[1].sha256);
        assert_eq!(a.streams[1].sha256, c.streams[0].sha256);
        assert_ne!(a.streams[0].sha256, b.streams[0].sha256);
        assert_eq!((a.streams[0].count, b.streams[0].repeated), (25, 1));
        let text = a.to_string();
        assert!(text.contains("Motion JPEG 64x48, 25 /s, 25 pictures, 1.000 s"), "{text}");
        for path in [one, two, wav] {
            std::fs::remove_file(path).unwrap();
        }
        assert!(Inspection::of(&path("none.avi")).unwrap_err().0.contains("No such file"));
    }
}
