//! Media in files: the pictures and the sound of an AVI file, JPEG pictures, the sound of a WAV or
//! AU file.
//!
//! [`Pictures`] and [`Sound`] over the readers of `dacapo-media`.
//!
//! ```text
//!   AVI      AviPictures, AviSound       one stream each
//!   JPEG     AviPictures                 searched once, by the plan: MediaPath has what was found
//!   WAV, AU  WavSound
//! ```
//!
//! Invariants: a file is opened anew for every participant and every flow, so that they do not
//! share a position; none is read as a whole to open it.

mod find;
mod missing;

use super::audio::AudioSource;
use super::entry::{AccessEntry, AccessParam, AccessSpec, Carries};
use super::found::{Access, Opening};
use super::media::{Pictures, Sound};
use super::video::VideoSource;
use dacapo_core::Source;
use dacapo_media::mjpeg::{Index, Show};
use dacapo_media::{AudioFormat, FileInput, Kind, VideoFormat, au, avi, mjpeg, sniff, wav};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the catalogue is told.
pub static SPEC: AccessSpec = AccessSpec {
    name: "file",
    id: 0x0001,
    summary: "a stream of a media file: AVI, WAV, AU, JPEG pictures",
    sends: true,
    takes: false,
    carries: &[Carries::Pictures, Carries::Sound],
    params: &[
        AccessParam::Text { name: "stream", summary: "which of its streams, where it has several" },
        AccessParam::Text { name: "rate", summary: "pictures per second, of JPEG pictures" },
        AccessParam::Text { name: "loop", summary: "whether, or how often, it is played again" },
    ],
};

/// The catalogue's entry.
#[must_use]
pub fn entries() -> Vec<AccessEntry> {
    vec![AccessEntry::new(&SPEC, find::find)]
}

/// Pictures of a stream of an AVI file, or JPEG pictures, one or many.
#[derive(Debug)]
struct PicturesOf {
    path: MediaPath,
    stream: usize,
}

impl Access for PicturesOf {
    fn describe(&self) -> String {
        format!("stream {} of {}", self.stream, self.path.display())
    }

    fn source(&self, to: &Opening<'_>) -> Result<Box<dyn Source>, String> {
        let pictures = AviPictures::open(&self.path, self.stream)?;
        let source = VideoSource::new(pictures, to.extent, to.speed);
        Ok(Box::new(source.beginning(to.begin.clone())))
    }

    fn group(&self) -> Option<PathBuf> {
        (!self.path.has_jpegs()).then(|| self.path.to_path_buf())
    }
}

/// Sound of a stream of an AVI file.
#[derive(Debug)]
struct AviSoundOf {
    path: MediaPath,
    stream: usize,
}

impl Access for AviSoundOf {
    fn describe(&self) -> String {
        format!("stream {} of {}", self.stream, self.path.display())
    }

    fn source(&self, to: &Opening<'_>) -> Result<Box<dyn Source>, String> {
        let sound = AviSound::open(&self.path, self.stream)?;
        let source = AudioSource::new(sound, to.extent, to.speed, to.flow.unit_len_max);
        Ok(Box::new(source.beginning(to.begin.clone())))
    }

    fn group(&self) -> Option<PathBuf> {
        Some(self.path.to_path_buf())
    }
}

/// A WAV or AU file.
#[derive(Debug)]
struct SoundFileOf(PathBuf);

impl Access for SoundFileOf {
    fn describe(&self) -> String {
        self.0.display().to_string()
    }

    fn source(&self, to: &Opening<'_>) -> Result<Box<dyn Source>, String> {
        let sound = WavSound::open(&self.0)?;
        let source = AudioSource::new(sound, to.extent, to.speed, to.flow.unit_len_max);
        Ok(Box::new(source.beginning(to.begin.clone())))
    }
}

/// A file that is not there: a plan may assume it, and nobody can open it.
#[derive(Debug)]
struct Missing(PathBuf);

impl Access for Missing {
    fn describe(&self) -> String {
        self.0.display().to_string()
    }

    fn source(&self, _: &Opening<'_>) -> Result<Box<dyn Source>, String> {
        Err(at(&self.0, &"it was missing"))
    }

    fn group(&self) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}

/// Opens a file for reading.
///
/// # Errors
/// With the file, for people.
pub(crate) fn open(path: &Path) -> Result<FileInput, String> {
    try_open(path).map_err(|error| at(path, &error))
}

/// The same, with the error of the system.
///
/// # Errors
/// That of the system; a folder is one too.
pub(crate) fn try_open(path: &Path) -> io::Result<FileInput> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::other("this is a folder"));
    }
    FileInput::new(file)
}

/// A path as a shell takes it for one word.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A text with the file that it is about.
pub(crate) fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

/// What a file of JPEG pictures is taken for: `rate` pictures per second, in millionths, or, when
/// none is given, what its name and its content say. Phones put several pictures into what is
/// called a photo.
#[must_use]
pub fn show_of(path: &Path, rate: Option<u64>) -> Show {
    if let Some((rate, scale)) = rate.and_then(fraction) {
        return Show::Movie { rate, scale };
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_photo = ["jpg", "jpeg", "jpe", "jfif"].iter().any(|it| ending.eq_ignore_ascii_case(it));
    if is_photo { Show::Still } else { Show::ByContent }
}

/// Pictures per second, in millionths, as the shortest fraction; none for 0.
pub(crate) fn fraction(rate: u64) -> Option<(u32, u32)> {
    const MILLION: u64 = 1_000_000;
    // What television means when it says so.
    let ntsc = |rate: u32| Some((rate, 1_001));
    match rate {
        0 => None,
        23_976_000 => ntsc(24_000),
        29_970_000 => ntsc(30_000),
        59_940_000 => ntsc(60_000),
        rate => {
            let (mut divisor, mut rest) = (MILLION, rate);
            while rest > 0 {
                (divisor, rest) = (rest, divisor % rest);
            }
            let number = |value: u64| u32::try_from(value).ok();
            Some((number(rate / divisor)?, number(MILLION / divisor)?))
        }
    }
}

/// A file of media as a plan found it, to be opened for each participant.
#[derive(Clone, Debug)]
pub struct MediaPath {
    path: PathBuf,
    /// Where the pictures are, when they are JPEG one after the other.
    jpegs: Option<(Arc<Index>, Show)>,
}

impl MediaPath {
    /// A file of JPEG pictures that was searched.
    #[must_use]
    pub fn of_jpegs(path: PathBuf, index: Arc<Index>, show: Show) -> Self {
        Self { path, jpegs: Some((index, show)) }
    }

    /// Whether it is a file of JPEG pictures.
    #[must_use]
    pub fn has_jpegs(&self) -> bool {
        self.jpegs.is_some()
    }
}

impl From<PathBuf> for MediaPath {
    /// A container, which says by itself where its media are.
    fn from(path: PathBuf) -> Self {
        Self { path, jpegs: None }
    }
}

impl Deref for MediaPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

enum PictureReader {
    Avi { reader: Box<avi::Reader<FileInput>>, stream: usize },
    Jpegs(mjpeg::Reader<FileInput>),
}

/// The pictures of a stream of an AVI file, or of a file of JPEG pictures.
pub struct AviPictures {
    reader: PictureReader,
    format: VideoFormat,
}

impl AviPictures {
    /// Opens stream `stream` of a file; one of JPEG pictures has only one.
    ///
    /// # Errors
    /// With the file, for people.
    pub fn open(path: &MediaPath, stream: usize) -> Result<Self, String> {
        if let Some((index, show)) = &path.jpegs {
            let reader = mjpeg::Reader::with_index(open(path)?, *show, Arc::clone(index));
            let reader = reader.map_err(|error| at(path, &error))?;
            let format = reader.video_format().clone();
            return Ok(Self { reader: PictureReader::Jpegs(reader), format });
        }
        let reader = avi::Reader::open(open(path)?).map_err(|error| at(path, &error))?;
        let format = reader.video_format(stream).cloned();
        let format = format.ok_or_else(|| at(path, &format!("stream {stream} is no video")))?;
        let reader = Box::new(reader);
        Ok(Self { reader: PictureReader::Avi { reader, stream }, format })
    }
}

impl Pictures for AviPictures {
    fn format(&self) -> &VideoFormat {
        &self.format
    }

    fn picture(&mut self, index: u64, out: &mut Vec<u8>) -> Result<(), String> {
        match &mut self.reader {
            PictureReader::Avi { reader, stream } => {
                reader.video_frame(*stream, index, out).map_err(|error| error.to_string())
            }
            PictureReader::Jpegs(reader) => {
                reader.video_frame(index, out).map_err(|error| error.to_string())
            }
        }
    }
}

/// The sound of a stream of an AVI file.
pub struct AviSound {
    reader: avi::Reader<FileInput>,
    stream: usize,
    format: AudioFormat,
}

impl AviSound {
    /// Opens stream `stream` of a file.
    ///
    /// # Errors
    /// With the file, for people.
    pub fn open(path: &Path, stream: usize) -> Result<Self, String> {
        let reader = avi::Reader::open(open(path)?).map_err(|error| at(path, &error))?;
        let format = reader.audio_format(stream).cloned();
        let format = format.ok_or_else(|| at(path, &format!("stream {stream} is no audio")))?;
        Ok(Self { reader, stream, format })
    }
}

impl Sound for AviSound {
    fn format(&self) -> &AudioFormat {
        &self.format
    }

    fn len(&self) -> u64 {
        self.reader.audio_len(self.stream)
    }

    fn bytes(&mut self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let read = self.reader.audio_bytes(self.stream, offset, len, out);
        read.map_err(|error| error.to_string())
    }
}

/// The sound of a file that has nothing else: WAV or AU.
pub enum WavSound {
    /// RIFF, RF64.
    Wav(wav::Reader<FileInput>),
    /// Sun, NeXT.
    Au(au::Reader<FileInput>),
}

impl WavSound {
    /// Opens a file.
    ///
    /// # Errors
    /// With the file, for people.
    pub fn open(path: &Path) -> Result<Self, String> {
        match sniff(open(path)?) {
            Ok(Kind::Au) => {
                let reader = au::Reader::open(open(path)?).map_err(|error| at(path, &error))?;
                Ok(Self::Au(reader))
            }
            Ok(_) => {
                let reader = wav::Reader::open(open(path)?).map_err(|error| at(path, &error))?;
                Ok(Self::Wav(reader))
            }
            Err(error) => Err(at(path, &error)),
        }
    }
}

impl Sound for WavSound {
    fn format(&self) -> &AudioFormat {
        match self {
            Self::Wav(reader) => reader.format(),
            Self::Au(reader) => reader.format(),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Wav(reader) => reader.audio_len(),
            Self::Au(reader) => reader.audio_len(),
        }
    }

    fn bytes(&mut self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Wav(reader) => reader.audio_bytes(offset, len, out).map_err(|e| e.to_string()),
            Self::Au(reader) => reader.audio_bytes(offset, len, out).map_err(|e| e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_shortest_fraction_and_television_means_what_it_means() {
        for (rate, expected) in [
            (25_000_000, (25, 1)),
            (12_500_000, (25, 2)),
            (14_985_000, (2_997, 200)),
            (23_976_000, (24_000, 1_001)),
            (29_970_000, (30_000, 1_001)),
            (59_940_000, (60_000, 1_001)),
            (1, (1, 1_000_000)),
            (1_000_000_000, (1_000, 1)),
        ] {
            assert_eq!(fraction(rate), Some(expected));
        }
        assert_eq!((fraction(0), fraction(u64::MAX)), (None, None));
    }

    #[test]
    fn a_file_that_is_called_a_photo_is_one_unless_it_is_given_a_rate() {
        let show = |name: &str, rate| show_of(Path::new(name), rate);
        for name in ["a.jpg", "A.JPG", "b/c.jpeg", "x.jfif"] {
            assert_eq!(show(name, None), Show::Still);
        }
        for name in ["a.mjpg", "a.mjpeg", "jpg", "a.jpg.bin"] {
            assert_eq!(show(name, None), Show::ByContent);
        }
        assert_eq!(show("a.jpg", Some(5_000_000)), Show::Movie { rate: 5, scale: 1 });
    }
}
