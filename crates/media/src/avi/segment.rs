//! What the writer keeps of the segment it is in, and the headers and indexes made of it.
//!
//! ```text
//!   header    RIFF AVI [LIST hdrl avih, strl (strh strf indx) …, odml]   fixed length, rewritten
//!   segment   LIST movi [chunks … ix00 ix01]  (first one only:) idx1
//! ```
//!
//! Everything here turns state into bytes.
//!
//! Invariants: the header has the same length whatever the counts are.

use super::{FLAG_KEY, INDEX_OF_CHUNKS, INDEX_OF_INDEXES, SIZE_DELTA};
use crate::format::{Format, VideoFormat};
use crate::riff::Emitter;
use crate::wave_format;

/// `AVIF_HASINDEX`, `AVIF_ISINTERLEAVED` (sound beside pictures), `AVIF_TRUSTCKTYPE`.
const FLAG_HAS_INDEX: u32 = 0x10;
const FLAGS: u32 = 0x100 | 0x800;
/// The count of a stream whose end is not known yet: long, yet no overflow in seconds or bytes.
pub(super) const COUNT_UNKNOWN: u32 = 0x4000_0000;
/// Bytes of an `ix##` chunk without its entries, header included.
pub(super) const CHUNK_INDEX_HEAD_LEN: u64 = 32;

/// A chunk index that is in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct SuperEntry {
    pub offset: u64,
    pub len: u32,
    pub ticks: u32,
}

/// What the writer keeps of a stream.
#[derive(Debug)]
pub(super) struct Track {
    pub format: Format,
    /// Pictures, or samples of every channel, so far.
    pub ticks: u64,
    /// Those at the start of the present segment.
    pub ticks_before_segment: u64,
    pub chunk_len_max: u32,
    pub indexes: Vec<SuperEntry>,
}

impl Track {
    pub(super) fn new(format: Format) -> Self {
        let indexes = Vec::new();
        Self { format, ticks: 0, ticks_before_segment: 0, chunk_len_max: 0, indexes }
    }

    pub(super) fn video(&self) -> Option<&VideoFormat> {
        match &self.format {
            Format::Video(video) => Some(video),
            Format::Audio(_) => None,
        }
    }

    /// The name of this stream's chunks.
    pub(super) fn chunk_id(&self, stream: usize) -> [u8; 4] {
        let [tens, ones] = digits(stream);
        match self.format {
            Format::Video(_) => [tens, ones, b'd', b'c'],
            Format::Audio(_) => [tens, ones, b'w', b'b'],
        }
    }
}

fn digits(stream: usize) -> [u8; 2] {
    [b'0' + (stream / 10 % 10) as u8, b'0' + (stream % 10) as u8]
}

/// A chunk of the present segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub stream: u8,
    /// Where its header is, counted from the word `movi`.
    pub offset: u32,
    pub len: u32,
}

impl Entry {
    /// A repeated picture is no picture of its own, so nobody should begin with it.
    fn is_key(self) -> bool {
        self.len > 0
    }
}

/// What the header depends on, beside the streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderState {
    /// Room for chunk indexes per stream; no index at all when there is none.
    pub segments_max: Option<u32>,
    /// Whether the counts are known, or the file may still grow without anybody knowing.
    pub is_counted: bool,
    /// Pictures in the first segment.
    pub first_segment_pictures: u64,
}

/// The bytes from the start of the file to the first media list.
pub(super) fn header(tracks: &[Track], state: HeaderState, riff_len: u32) -> Vec<u8> {
    let mut out = Emitter::default();
    out.bytes(b"RIFF").u32(riff_len).bytes(b"AVI ");
    out.list(b"hdrl", |hdrl| {
        hdrl.chunk(b"avih", |avih| main_header(avih, tracks, state));
        for (stream, track) in tracks.iter().enumerate() {
            hdrl.list(b"strl", |strl| stream_list(strl, stream, track, state));
        }
        if state.segments_max.is_some() {
            let pictures = tracks.iter().filter(|track| track.video().is_some());
            let total = pictures.map(|track| track.ticks).max().unwrap_or(0);
            hdrl.list(b"odml", |odml| {
                odml.chunk(b"dmlh", |dmlh| {
                    dmlh.u32(counted(total, state)).zeros(244);
                });
            });
        }
    });
    out.0
}

fn counted(ticks: u64, state: HeaderState) -> u32 {
    if state.is_counted { u32::try_from(ticks).unwrap_or(u32::MAX) } else { COUNT_UNKNOWN }
}

fn main_header(avih: &mut Emitter, tracks: &[Track], state: HeaderState) {
    let video = tracks.iter().find_map(Track::video);
    let us_per_picture = video.map_or(0, |video| (video.time_ns(1) + 500) / 1_000);
    let (width, height) = video.map_or((0, 0), |video| (video.width, video.height));
    let has_index = if state.segments_max.is_some() { FLAG_HAS_INDEX } else { 0 };
    let pictures = video.map_or(0, |_| counted(state.first_segment_pictures, state));
    let chunk_len_max = tracks.iter().map(|track| track.chunk_len_max).max().unwrap_or(0);
    avih.u32(u32::try_from(us_per_picture).unwrap_or(u32::MAX)).u32(0).u32(0);
    avih.u32(FLAGS | has_index).u32(pictures).u32(0).u32(tracks.len() as u32);
    avih.u32(chunk_len_max).u32(width).u32(height).zeros(16);
}

fn stream_list(strl: &mut Emitter, stream: usize, track: &Track, state: HeaderState) {
    strl.chunk(b"strh", |strh| stream_header(strh, track, state));
    strl.chunk(b"strf", |strf| match &track.format {
        Format::Audio(audio) => wave_format::emit(audio, strf),
        Format::Video(video) => bitmap_header(strf, video),
    });
    if let Some(segments_max) = state.segments_max {
        strl.chunk(b"indx", |indx| super_index(indx, stream, track, segments_max));
    }
}

fn stream_header(strh: &mut Emitter, track: &Track, state: HeaderState) {
    let (scale, rate, sample_len) = match &track.format {
        Format::Video(video) => {
            strh.bytes(b"vids").bytes(&video.fourcc.0);
            (video.scale, video.rate, 0)
        }
        Format::Audio(audio) => {
            strh.bytes(b"auds").u32(0);
            (1, audio.rate_hz, audio.block_len())
        }
    };
    // Flags, priority and language, initial pictures; then the rate, start and length.
    strh.u32(0).u32(0).u32(0).u32(scale).u32(rate).u32(0).u32(counted(track.ticks, state));
    strh.u32(track.chunk_len_max).u32(u32::MAX).u32(sample_len);
    let side = |side: Option<u32>| side.map_or(0, |side| side.min(0x7FFF) as u16);
    let video = track.video();
    strh.u32(0).u16(side(video.map(|v| v.width))).u16(side(video.map(|v| v.height)));
}

fn bitmap_header(strf: &mut Emitter, video: &VideoFormat) {
    let image_len = u64::from(video.width) * u64::from(video.height) * 3;
    strf.u32(40).u32(video.width).u32(video.height).u16(1).u16(24).bytes(&video.fourcc.0);
    strf.u32(u32::try_from(image_len).unwrap_or(0)).zeros(16);
}

fn super_index(indx: &mut Emitter, stream: usize, track: &Track, segments_max: u32) {
    indx.u16(4).bytes(&[0, INDEX_OF_INDEXES]).u32(track.indexes.len() as u32);
    indx.bytes(&track.chunk_id(stream)).zeros(12);
    for entry in &track.indexes {
        indx.u64(entry.offset).u32(entry.len).u32(entry.ticks);
    }
    indx.zeros((segments_max as usize).saturating_sub(track.indexes.len()) * 16);
}

/// The `ix##` chunk of one stream; nothing when the segment has no chunk of it.
pub(super) fn chunk_index(
    stream: usize,
    track: &Track,
    entries: &[Entry],
    base: u64,
) -> Option<Vec<u8>> {
    let own = || entries.iter().filter(|entry| usize::from(entry.stream) == stream);
    let count = own().count();
    if count == 0 {
        return None;
    }
    let [tens, ones] = digits(stream);
    let mut out = Emitter::default();
    out.chunk(&[b'i', b'x', tens, ones], |ix| {
        ix.u16(2).bytes(&[0, INDEX_OF_CHUNKS]).u32(count as u32);
        ix.bytes(&track.chunk_id(stream)).u64(base).u32(0);
        for entry in own() {
            // These offsets are those of the body, not of its header.
            let delta = if entry.is_key() { 0 } else { SIZE_DELTA };
            ix.u32(entry.offset + 8).u32(entry.len | delta);
        }
    });
    Some(out.0)
}

/// The `idx1` chunk of the first segment.
pub(super) fn old_index(tracks: &[Track], entries: &[Entry]) -> Vec<u8> {
    let mut out = Emitter::default();
    out.chunk(b"idx1", |idx1| {
        for entry in entries {
            let stream = usize::from(entry.stream);
            let Some(track) = tracks.get(stream) else { continue };
            let flags = if entry.is_key() { FLAG_KEY } else { 0 };
            idx1.bytes(&track.chunk_id(stream)).u32(flags).u32(entry.offset).u32(entry.len);
        }
    });
    out.0
}
