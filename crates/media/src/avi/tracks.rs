//! Where every chunk of every stream is.
//!
//! The result of reading an index or of searching a file, whichever it was.
//!
//! ```text
//!   video   [offset, len] per picture          picture i is entry i
//!   audio   [offset, start] per chunk          byte b is in the last chunk with start <= b
//! ```
//!
//! Invariants: no entry reaches beyond the end of the input; audio chunks are not empty and their
//! starts rise; all streams together have at most `entries_max` entries, and never more than the
//! input can have chunk headers, so memory grows with bytes that exist only.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::header::StreamHeader;
use crate::format::{Format, FourCc};
use crate::riff::HEADER_LEN;

/// Where a picture is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Picture {
    pub offset: u64,
    pub len: u32,
}

/// Where a piece of sound is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sound {
    /// Where it is in the file, in bytes.
    pub offset: u64,
    /// Where it is in the stream's sound, in bytes.
    pub start: u64,
}

/// The chunks of one stream.
#[derive(Debug)]
pub(super) enum Track {
    Video(Vec<Picture>),
    Audio { sounds: Vec<Sound>, len: u64 },
    Other,
}

/// The chunks of all streams.
#[derive(Debug)]
pub(super) struct Tracks {
    pub tracks: Vec<Track>,
    /// Pictures that were left out because they lie beyond the end of the input.
    pub outside_count: u64,
    /// Whether something was left out because there were too many.
    pub is_full: bool,
    entry_count: usize,
    entries_max: usize,
    input_len: u64,
}

impl Tracks {
    /// No chunks yet, for an input of that length.
    pub(super) fn new(streams: &[StreamHeader], input_len: u64, entries_max: usize) -> Self {
        let tracks = streams.iter().map(|stream| match stream.format {
            Some(Format::Video(_)) => Track::Video(Vec::new()),
            Some(Format::Audio(_)) => Track::Audio { sounds: Vec::new(), len: 0 },
            None => Track::Other,
        });
        let chunks_max = usize::try_from(input_len / HEADER_LEN).unwrap_or(usize::MAX);
        Self {
            tracks: tracks.collect(),
            outside_count: 0,
            is_full: false,
            entry_count: 0,
            entries_max: entries_max.min(chunks_max),
            input_len,
        }
    }

    /// The stream that a chunk of that name belongs to, when it holds the stream's media.
    pub(super) fn stream_of(&self, id: FourCc) -> Option<usize> {
        let [tens, ones, kind @ ..] = id.0;
        if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
            return None;
        }
        let digit = |byte: u8| usize::from(byte.saturating_sub(b'0'));
        let stream = digit(tens).saturating_mul(10).saturating_add(digit(ones));
        match (self.tracks.get(stream)?, &kind) {
            (Track::Video(_), b"dc" | b"db") | (Track::Audio { .. }, b"wb") => Some(stream),
            _ => None,
        }
    }

    /// Adds the next chunk of a stream, whose body is at `offset`.
    pub(super) fn push(&mut self, stream: usize, offset: u64, len: u32) {
        if self.entry_count >= self.entries_max {
            self.is_full = true;
            return;
        }
        // What is left out below counts too, or an index full of it would be read for ever.
        self.entry_count = self.entry_count.saturating_add(1);
        let room = self.input_len.saturating_sub(offset);
        match self.tracks.get_mut(stream) {
            Some(Track::Video(_)) if offset > self.input_len || u64::from(len) > room => {
                self.outside_count = self.outside_count.saturating_add(1);
            }
            Some(Track::Video(pictures)) => pictures.push(Picture { offset, len }),
            // Half a picture is useless, half a piece of sound is not.
            Some(Track::Audio { sounds, len: total }) if len > 0 && room > 0 => {
                sounds.push(Sound { offset, start: *total });
                *total = total.saturating_add(u64::from(len).min(room));
            }
            _ => {}
        }
    }

    /// Whether there is no chunk at all.
    pub(super) fn is_empty(&self) -> bool {
        self.entry_count == 0
    }
}

/// The part of a stream's sound that holds byte `at`: file offset and bytes up to its end.
pub(super) fn sound_at(sounds: &[Sound], len: u64, at: u64) -> Option<(u64, u64)> {
    let after = sounds.partition_point(|sound| sound.start <= at);
    let sound = sounds.get(after.checked_sub(1)?)?;
    let end = sounds.get(after).map_or(len, |next| next.start);
    let within = at.saturating_sub(sound.start);
    let rest = end.checked_sub(at).filter(|rest| *rest > 0)?;
    Some((sound.offset.saturating_add(within), rest))
}
