//! Media in files: the pictures and the sound of an AVI file, the sound of a WAV file.
//!
//! What it is: [`Pictures`] and [`Sound`] over the readers of `dacapo-media`. What it is not: a
//! reader of anything else; the plan of a session refuses other files with the line that converts
//! them.
//!
//! Invariant: a file is opened anew for every participant and every flow, so that they do not share
//! a position.

use super::media::{Pictures, Sound};
use dacapo_media::{AudioFormat, FileInput, VideoFormat, avi, wav};
use std::fs::File;
use std::path::Path;

/// Opens a file for reading.
///
/// # Errors
/// With the file, for people.
pub(crate) fn open(path: &Path) -> Result<FileInput, String> {
    File::open(path)
        .and_then(|file| {
            if file.metadata()?.is_dir() {
                return Err(std::io::Error::other("this is a folder"));
            }
            FileInput::new(file)
        })
        .map_err(|error| at(path, &error))
}

/// A text with the file that it is about.
pub(crate) fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

/// The pictures of a stream of an AVI file.
pub struct AviPictures {
    reader: avi::Reader<FileInput>,
    stream: usize,
    format: VideoFormat,
}

impl AviPictures {
    /// Opens stream `stream` of a file.
    ///
    /// # Errors
    /// With the file, for people.
    pub fn open(path: &Path, stream: usize) -> Result<Self, String> {
        let reader = avi::Reader::open(open(path)?).map_err(|error| at(path, &error))?;
        let format = reader.video_format(stream).cloned();
        let format = format.ok_or_else(|| at(path, &format!("stream {stream} is no video")))?;
        Ok(Self { reader, stream, format })
    }
}

impl Pictures for AviPictures {
    fn format(&self) -> &VideoFormat {
        &self.format
    }

    fn picture(&mut self, index: u64, out: &mut Vec<u8>) -> Result<(), String> {
        self.reader.video_frame(self.stream, index, out).map_err(|error| error.to_string())
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

/// The sound of a WAV file.
pub struct WavSound {
    reader: wav::Reader<FileInput>,
}

impl WavSound {
    /// Opens a file.
    ///
    /// # Errors
    /// With the file, for people.
    pub fn open(path: &Path) -> Result<Self, String> {
        let reader = wav::Reader::open(open(path)?).map_err(|error| at(path, &error))?;
        Ok(Self { reader })
    }
}

impl Sound for WavSound {
    fn format(&self) -> &AudioFormat {
        self.reader.format()
    }

    fn len(&self) -> u64 {
        self.reader.audio_len()
    }

    fn bytes(&mut self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<(), String> {
        self.reader.audio_bytes(offset, len, out).map_err(|error| error.to_string())
    }
}
