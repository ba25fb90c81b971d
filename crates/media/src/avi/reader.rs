//! [`Reader`]: pictures by index and sound by byte, out of an AVI file.
//!
//! Invariants: after opening, no call reads more than what it was asked for, and a call's buffer
//! never grows beyond the bytes that exist and the limits.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::error::AviError;
use super::tracks::{Picture, Track, sound_at};
use super::{index, layout};
use crate::format::{AudioFormat, Format, FourCc, VideoFormat};
use crate::read::{Input, Limits, ReadAt};
use crate::warning::Warning;

/// One stream of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    /// What the file calls it: `vids`, `auds`, `txts` or something else.
    pub kind: FourCc,
    /// What is in it; nothing when it is neither video nor audio.
    pub format: Option<Format>,
}

/// An open AVI file.
///
/// ```
/// use dacapo_media::{TestMovie, avi};
/// let duration = std::time::Duration::from_millis(200);
/// let movie = TestMovie { width: 64, height: 48, duration, ..TestMovie::default() };
/// let file = movie.write_avi(std::io::Cursor::new(Vec::new())).unwrap().into_inner();
/// let mut reader = avi::Reader::open(file).unwrap();
/// let video = reader.first_video().unwrap();
/// let mut picture = Vec::new();
/// reader.video_frame(video, 0, &mut picture).unwrap();
/// assert_eq!(dacapo_media::mjpeg::picture_size(&picture), Ok((64, 48)));
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    limits: Limits,
    streams: Vec<Stream>,
    tracks: Vec<Track>,
    warnings: Vec<Warning>,
}

impl<R: ReadAt> Reader<R> {
    /// Opens a file: reads its headers and its index, or finds its chunks when it has none.
    ///
    /// # Errors
    /// When it is not AVI, its headers are cut, or a stream is neither Motion JPEG nor PCM.
    pub fn open(input: R) -> Result<Self, AviError> {
        Self::open_with(input, Limits::default())
    }

    /// As [`Reader::open`], within other limits.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_with(input: R, limits: Limits) -> Result<Self, AviError> {
        let mut input = Input::new(input);
        let layout = layout::read(&mut input, &limits)?;
        let mut warnings = Vec::new();
        let tracks = index::load(&mut input, &layout, &limits, &mut warnings)?.tracks;
        let headers = layout.streams.into_iter().zip(&tracks);
        let streams = headers.map(|(header, track)| Stream {
            kind: header.kind,
            format: header.format.map(|format| counted(format, track)),
        });
        Ok(Self { limits, streams: streams.collect(), input, tracks, warnings })
    }

    /// The streams, in the order of their numbers.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// What was noticed while opening.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Number of the first stream with pictures.
    #[must_use]
    pub fn first_video(&self) -> Option<usize> {
        self.streams.iter().position(|stream| matches!(stream.format, Some(Format::Video(_))))
    }

    /// Number of the first stream with sound.
    #[must_use]
    pub fn first_audio(&self) -> Option<usize> {
        self.streams.iter().position(|stream| matches!(stream.format, Some(Format::Audio(_))))
    }

    /// What the pictures of a stream are.
    #[must_use]
    pub fn video_format(&self, stream: usize) -> Option<&VideoFormat> {
        match self.streams.get(stream)?.format.as_ref()? {
            Format::Video(video) => Some(video),
            Format::Audio(_) => None,
        }
    }

    /// What the sound of a stream is.
    #[must_use]
    pub fn audio_format(&self, stream: usize) -> Option<&AudioFormat> {
        match self.streams.get(stream)?.format.as_ref()? {
            Format::Audio(audio) => Some(audio),
            Format::Video(_) => None,
        }
    }

    /// Number of pictures of a stream, repeated ones included; 0 when it has none.
    #[must_use]
    pub fn video_count(&self, stream: usize) -> u64 {
        self.video_format(stream).map_or(0, |video| video.frame_count)
    }

    /// Bytes of sound of a stream, whole samples only; 0 when it has none.
    #[must_use]
    pub fn audio_len(&self, stream: usize) -> u64 {
        let (Some(audio), Some(Track::Audio { len, .. })) =
            (self.audio_format(stream), self.tracks.get(stream))
        else {
            return 0;
        };
        let partial = len.checked_rem(u64::from(audio.block_len())).unwrap_or(0);
        len.saturating_sub(partial)
    }

    /// Time from the beginning to the end of a stream, in nanoseconds; 0 when it has no media.
    #[must_use]
    pub fn duration_ns(&self, stream: usize) -> u64 {
        match self.streams.get(stream).and_then(|stream| stream.format.as_ref()) {
            Some(Format::Video(video)) => video.duration_ns(),
            Some(Format::Audio(audio)) => audio.time_ns(self.audio_len(stream)),
            None => 0,
        }
    }

    /// Puts picture `index` of a stream in `out`; no bytes mean the previous picture again.
    ///
    /// # Errors
    /// No such picture, or it is larger than the limit or cannot be read.
    pub fn video_frame(
        &mut self,
        stream: usize,
        index: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), AviError> {
        out.clear();
        let Picture { offset, len } = self.picture(stream, index)?;
        let len_max = self.limits.video_frame_bytes_max;
        if len > len_max {
            return Err(AviError::PictureTooLarge { offset, len, len_max });
        }
        Ok(self.input.append(offset, len as usize, out)?)
    }

    /// How long each picture of a stream is, in bytes, as the index says; 0 for a repeated one.
    /// None for a stream without pictures.
    pub fn video_lens(&self, stream: usize) -> impl Iterator<Item = u32> + '_ {
        let pictures = match self.tracks.get(stream) {
            Some(Track::Video(pictures)) => pictures.as_slice(),
            _ => &[],
        };
        pictures.iter().map(|picture| picture.len)
    }

    fn picture(&self, stream: usize, index: u64) -> Result<Picture, AviError> {
        let Track::Video(pictures) = track(&self.tracks, stream)? else {
            return Err(AviError::WrongKind { stream, expected: "video" });
        };
        let picture = usize::try_from(index).ok().and_then(|index| pictures.get(index));
        let count = pictures.len() as u64;
        picture.copied().ok_or(AviError::NoSuchPicture { index, count })
    }

    /// Puts up to `len` bytes of a stream's sound from `byte_offset` on in `out`: fewer where the
    /// sound ends, none behind its end.
    ///
    /// # Errors
    /// No such sound, or it cannot be read.
    pub fn audio_bytes(
        &mut self,
        stream: usize,
        byte_offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), AviError> {
        out.clear();
        let end = byte_offset.saturating_add(len as u64).min(self.audio_len(stream));
        // Field by field, because the input is borrowed for writing while the track is read.
        let Self { input, tracks, .. } = self;
        let Track::Audio { sounds, len: len_raw } = track(tracks, stream)? else {
            return Err(AviError::WrongKind { stream, expected: "audio" });
        };
        let mut at = byte_offset;
        while at < end {
            let Some((offset, rest)) = sound_at(sounds, *len_raw, at) else { break };
            let step = rest.min(end.saturating_sub(at));
            input.append(offset, usize::try_from(step).unwrap_or(usize::MAX), out)?;
            at = at.saturating_add(step);
        }
        Ok(())
    }

    /// Gives back the input.
    pub fn into_inner(self) -> R {
        self.input.into_inner()
    }
}

fn track(tracks: &[Track], stream: usize) -> Result<&Track, AviError> {
    tracks.get(stream).ok_or(AviError::NoSuchStream { stream, count: tracks.len() })
}

/// The count in the headers is replaced by that of the index, which is what can be read.
fn counted(format: Format, track: &Track) -> Format {
    match (format, track) {
        (Format::Video(video), Track::Video(pictures)) => {
            Format::Video(VideoFormat { frame_count: pictures.len() as u64, ..video })
        }
        (format, _) => format,
    }
}
