//! [`Writer`]: pictures and sound into an AVI file or a pipe.
//!
//! ```text
//!   create    header with room for the counts, LIST movi of unknown length
//!   chunks    … until the segment is full: ix##, idx1 (first one), lengths patched; next segment
//!   sync      header patched with the counts so far
//!   finish    last segment closed, header patched
//! ```
//!
//! Pictures are not checked: whatever bytes are given are one.
//!
//! Invariants: at every moment the file is readable up to its last whole chunk by readers that
//! search when there is no index; memory is bounded by the chunks of one segment, and in a pipe
//! nothing is kept. Source: as in [`crate::avi`].

use std::io::{Seek, Write};

use super::error::WriteError;
use super::segment::{self, CHUNK_INDEX_HEAD_LEN, Entry, HeaderState, SuperEntry, Track};
use crate::format::Format;
use crate::riff::LEN_UNKNOWN;
use crate::sink::{Guarded, Pipe, Seekable, Sink};
use dacapo_base::failpoint;

const STREAMS_MAX: usize = 16;
/// The largest picture or piece of sound.
const CHUNK_LEN_MAX: usize = 64 << 20;
/// Offsets within a segment must stay below 2 GiB for readers with signed offsets.
const SEGMENT_LEN_LIMIT: u32 = 1_900 << 20;
/// Chunks of a segment: what the index keeps in memory, about 12 MiB.
const SEGMENT_CHUNKS_MAX: usize = 1 << 20;

/// What a writer can be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriterConfig {
    /// Length in bytes at which a segment ends and the next one begins; at most 1900 MiB.
    pub segment_bytes_max: u32,
    /// Segments that the header has room for, 16 bytes per stream each.
    pub segments_max: u32,
}

impl Default for WriterConfig {
    /// 256 segments of 1 GiB.
    fn default() -> Self {
        Self { segment_bytes_max: 1 << 30, segments_max: 256 }
    }
}

/// An AVI file being written.
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    config: WriterConfig,
    tracks: Vec<Track>,
    /// Where the present `RIFF` is.
    riff_at: u64,
    /// Where the present media list is.
    movi_at: u64,
    entries: Vec<Entry>,
    segment_count: u32,
    first_segment_pictures: u64,
    has_failed: bool,
}

impl<W: Write + Seek> Writer<Seekable<W>> {
    /// Begins a file that can be corrected, with those streams.
    ///
    /// # Errors
    /// A format that cannot be written, too many streams, or the destination's error.
    pub fn create(out: W, streams: &[Format]) -> Result<Self, WriteError> {
        Self::create_with(out, streams, WriterConfig::default())
    }

    /// As [`Writer::create`], told more.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn create_with(
        out: W,
        streams: &[Format],
        config: WriterConfig,
    ) -> Result<Self, WriteError> {
        Self::begin(Seekable::new(out)?, streams, config)
    }
}

impl<W: Write> Writer<Pipe<W>> {
    /// Begins a stream into something that only goes forward, such as a pipe to a player. It has
    /// no index and no end until it ends.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn streaming(out: W, streams: &[Format]) -> Result<Self, WriteError> {
        Self::begin(Pipe::new(out), streams, WriterConfig::default())
    }
}

impl<S: Sink> Writer<S> {
    fn begin(sink: S, streams: &[Format], config: WriterConfig) -> Result<Self, WriteError> {
        if streams.is_empty() || streams.len() > STREAMS_MAX {
            return Err(WriteError::StreamCount { count: streams.len() });
        }
        for (stream, format) in streams.iter().enumerate() {
            format.check().map_err(|source| WriteError::Format { stream, source })?;
        }
        let mut writer = Self {
            sink,
            config,
            tracks: streams.iter().cloned().map(Track::new).collect(),
            riff_at: 0,
            movi_at: 0,
            entries: Vec::new(),
            segment_count: 1,
            first_segment_pictures: 0,
            has_failed: false,
        };
        let header = segment::header(&writer.tracks, writer.header_state(false), LEN_UNKNOWN);
        writer.sink.append(&header)?;
        writer.begin_media()?;
        failpoint!("recording.header");
        Ok(writer)
    }

    /// Writes the next picture of a stream; no bytes mean the previous picture again.
    ///
    /// # Errors
    /// Not a video stream, a picture above 64 MiB, a full file, or the destination's error.
    pub fn video_frame(&mut self, stream: usize, picture: &[u8]) -> Result<(), WriteError> {
        match self.tracks.get(stream).map(|track| &track.format) {
            Some(Format::Video(_)) => self.chunk(stream, picture, 1),
            _ => Err(WriteError::WrongStream { stream, expected: "video" }),
        }
    }

    /// Writes the next piece of a stream's sound, whole samples of every channel.
    ///
    /// # Errors
    /// Not an audio stream, part of a sample, more than 64 MiB, a full file, or the destination's
    /// error.
    pub fn audio(&mut self, stream: usize, sound: &[u8]) -> Result<(), WriteError> {
        let Some(Format::Audio(audio)) = self.tracks.get(stream).map(|track| &track.format) else {
            return Err(WriteError::WrongStream { stream, expected: "audio" });
        };
        let block_len = audio.block_len();
        if !sound.len().is_multiple_of(block_len as usize) {
            return Err(WriteError::PartialBlock { len: sound.len(), block_len });
        }
        if sound.is_empty() {
            return Ok(());
        }
        self.chunk(stream, sound, sound.len() as u64 / u64::from(block_len))
    }

    /// Puts the counts so far in the header and flushes, so that a crash loses little. Once in a
    /// few seconds is often enough.
    ///
    /// # Errors
    /// The destination's error.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        self.guard(|writer| {
            writer.patch_header(None)?;
            Ok(writer.sink.flush()?)
        })
    }

    /// Writes the index and the true counts, flushes, and gives back the destination.
    ///
    /// # Errors
    /// The destination's error.
    pub fn finish(mut self) -> Result<S::Inner, WriteError> {
        self.guard(|writer| {
            if S::CAN_PATCH {
                writer.close_segment()?;
            }
            failpoint!("recording.trailer");
            Ok(writer.sink.flush()?)
        })?;
        Ok(self.sink.into_inner())
    }

    /// Bytes written so far, header included.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.sink.position()
    }

    fn chunk(&mut self, stream: usize, body: &[u8], ticks: u64) -> Result<(), WriteError> {
        if body.len() > CHUNK_LEN_MAX {
            return Err(WriteError::TooLarge { len: body.len(), len_max: CHUNK_LEN_MAX });
        }
        self.guard(|writer| {
            if S::CAN_PATCH && !writer.has_capacity(body.len()) {
                writer.next_segment()?;
            }
            writer.append_chunk(stream, body, ticks)
        })
    }

    fn append_chunk(&mut self, stream: usize, body: &[u8], ticks: u64) -> Result<(), WriteError> {
        let Some(track) = self.tracks.get_mut(stream) else { return Ok(()) };
        // Below the limit of a chunk and of a segment, so both fit.
        let len = body.len() as u32;
        let offset = self.sink.position() - self.movi_at - 8;
        let mut header = [0; 8];
        header[..4].copy_from_slice(&track.chunk_id(stream));
        header[4..].copy_from_slice(&len.to_le_bytes());
        self.sink.append(&header)?;
        self.sink.append(body)?;
        self.sink.append(&[0][..body.len() % 2])?;
        track.ticks += ticks;
        track.chunk_len_max = track.chunk_len_max.max(len);
        if S::CAN_PATCH {
            self.entries.push(Entry { stream: stream as u8, offset: offset as u32, len });
        }
        Ok(())
    }

    /// Whether a chunk and everything that closes the segment still fit into it.
    fn has_capacity(&self, body_len: usize) -> bool {
        let entries = self.entries.len() as u64 + 1;
        let indexes = entries * (16 + 8) + self.tracks.len() as u64 * CHUNK_INDEX_HEAD_LEN + 8;
        let len = self.sink.position() - self.riff_at + body_len as u64 + 9 + indexes;
        let len_max = u64::from(self.config.segment_bytes_max.min(SEGMENT_LEN_LIMIT));
        // A chunk that no segment has room for gets one of its own.
        self.entries.is_empty() || (len <= len_max && self.entries.len() < SEGMENT_CHUNKS_MAX)
    }

    fn next_segment(&mut self) -> Result<(), WriteError> {
        if self.segment_count >= self.config.segments_max {
            return Err(WriteError::Full { segment_count: self.segment_count });
        }
        self.close_segment()?;
        self.segment_count += 1;
        self.riff_at = self.sink.position();
        self.sink.append(b"RIFF\xFF\xFF\xFF\xFFAVIX")?;
        self.begin_media()
    }

    fn begin_media(&mut self) -> Result<(), WriteError> {
        self.movi_at = self.sink.position();
        Ok(self.sink.append(b"LIST\xFF\xFF\xFF\xFFmovi")?)
    }

    /// Writes the indexes of the present segment and its true lengths.
    fn close_segment(&mut self) -> Result<(), WriteError> {
        for (stream, track) in self.tracks.iter_mut().enumerate() {
            let base = self.movi_at + 8;
            let Some(index) = segment::chunk_index(stream, track, &self.entries, base) else {
                continue;
            };
            let ticks = u32::try_from(track.ticks - track.ticks_before_segment);
            track.indexes.push(SuperEntry {
                offset: self.sink.position(),
                len: index.len() as u32,
                ticks: ticks.unwrap_or(u32::MAX),
            });
            track.ticks_before_segment = track.ticks;
            self.sink.append(&index)?;
        }
        let movi_end = self.sink.position();
        if self.riff_at == 0 {
            self.first_segment_pictures = self.pictures();
            self.sink.append(&segment::old_index(&self.tracks, &self.entries))?;
        }
        failpoint!("recording.index");
        let riff_len = (self.sink.position() - self.riff_at - 8) as u32;
        let movi_len = (movi_end - self.movi_at - 8) as u32;
        self.sink.patch(self.movi_at + 4, &movi_len.to_le_bytes())?;
        self.sink.patch(self.riff_at + 4, &riff_len.to_le_bytes())?;
        self.entries.clear();
        self.patch_header((self.riff_at == 0).then_some(riff_len))
    }

    /// Rewrites the header, all but the length of its RIFF unless that is known now.
    fn patch_header(&mut self, riff_len: Option<u32>) -> Result<(), WriteError> {
        let header = segment::header(&self.tracks, self.header_state(true), LEN_UNKNOWN);
        if let Some(riff_len) = riff_len {
            self.sink.patch(4, &riff_len.to_le_bytes())?;
        }
        Ok(self.sink.patch(8, &header[8..])?)
    }

    fn header_state(&self, is_counted: bool) -> HeaderState {
        let is_first = self.segment_count == 1;
        HeaderState {
            segments_max: S::CAN_PATCH.then_some(self.config.segments_max),
            is_counted,
            first_segment_pictures: if is_first {
                self.pictures()
            } else {
                self.first_segment_pictures
            },
        }
    }

    /// Pictures so far of the first video stream.
    fn pictures(&self) -> u64 {
        self.tracks.iter().find(|track| track.video().is_some()).map_or(0, |track| track.ticks)
    }
}

impl<S: Sink> Guarded for Writer<S> {
    type Error = WriteError;
    const FAILED: WriteError = WriteError::Failed;

    fn has_failed(&mut self) -> &mut bool {
        &mut self.has_failed
    }

    fn is_half_way(error: &WriteError) -> bool {
        matches!(error, WriteError::Io(_))
    }
}
