//! Finds where each picture of a file begins and ends, in one go from the start.
//!
//! ```text
//!   ── start ──> markers ──SOS──> coded bytes ──┐        a length is believed: what is inside a
//!        ^          ^  `─ length: skipped       │        segment is not looked at
//!        |          `──── any other marker ─────┘
//!        `── EOI: a picture;  FFD8 or no marker: a damaged one
//! ```
//!
//! After a damaged one the search goes on at its last length, which may have been the wrong one:
//! the next picture can begin before the end that it gave.
//!
//! Coded bytes are looked at for markers only: a byte FF is one of them when 00 follows, a restart
//! marker is part of them, and anything else ends them.
//!
//! Invariants: it goes back over one segment at most, and only once over each byte, so its time is
//! that of reading the file a few times; memory is one block. It gives up after [`GAP_MAX`] bytes
//! without a picture.
//!
//! Decoder: of files of JPEG pictures.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::{APP2, EOI, SOI, SOS, is_alone, is_frame_header};
use crate::read::{Input, ReadAt, ReadError};

/// Bytes that are read at once.
const BLOCK_LEN: u64 = 256 << 10;
/// Bytes without the start of a picture after which there will be none.
pub(super) const GAP_MAX: u64 = 64 << 20;

/// A whole picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    pub offset: u64,
    pub len: u64,
    /// Width and height in pixels.
    pub size: (u16, u16),
    has_frame: bool,
    /// It says that other pictures of the same thing follow it.
    pub has_previews: bool,
}

/// Bytes of a file that belong to no picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Passed {
    /// Where the first of them are.
    pub offset: Option<u64>,
    /// Bytes, or damaged pictures.
    pub count: u64,
}

impl Passed {
    fn add(&mut self, offset: u64, count: u64) {
        self.offset.get_or_insert(offset);
        self.count = self.count.saturating_add(count);
    }
}

/// A search through a file.
pub(super) struct Scanner<'a, R> {
    window: Window<'a, R>,
    at: u64,
    /// What lay between pictures, padding left out.
    pub passed: Passed,
    /// Pictures that were begun and are not whole.
    pub damaged: Passed,
    /// Where it gave up.
    pub stopped: Option<u64>,
    /// The size of the first picture.
    usual_size: Option<(u16, u16)>,
    /// Up to here a picture may be a thumbnail in a damaged one.
    doubtful_until: u64,
}

/// What stands where a marker should.
enum Next {
    Marker(u8),
    /// No marker, or the end.
    Nothing,
}

impl<'a, R: ReadAt> Scanner<'a, R> {
    pub(super) fn new(input: &'a mut Input<R>) -> Self {
        let window = Window { input, block: Vec::new(), start: 0 };
        Self {
            window,
            at: 0,
            passed: Passed::default(),
            damaged: Passed::default(),
            stopped: None,
            usual_size: None,
            doubtful_until: 0,
        }
    }

    /// How far it has come, in bytes.
    pub(super) fn position(&self) -> u64 {
        self.at
    }

    /// The next whole picture; none when there is none any more.
    pub(super) fn next_picture(&mut self) -> Result<Option<Found>, ReadError> {
        while let Some(start) = self.find_start()? {
            self.at = start.saturating_add(2);
            let mut found = Found { offset: start, ..Found::default() };
            let is_doubtful = start < self.doubtful_until;
            if self.walk(&mut found)? && found.size.0 > 0 && found.size.1 > 0 {
                if is_doubtful && self.usual_size != Some(found.size) {
                    continue;
                }
                self.usual_size.get_or_insert(found.size);
                found.len = self.at.saturating_sub(start);
                return Ok(Some(found));
            }
            if !is_doubtful {
                self.damaged.add(start, 1);
            }
        }
        Ok(None)
    }

    /// Where the next three bytes are that a picture begins with.
    fn find_start(&mut self) -> Result<Option<u64>, ReadError> {
        let from = self.at;
        let is_padding = matches!(self.window.byte(from)?, None | Some(0 | 0xFF));
        let mut at = from;
        let found = loop {
            let Some(ff) = self.window.find_ff(at, from.saturating_add(GAP_MAX))? else {
                break None;
            };
            let after =
                [self.window.byte(ff.saturating_add(1))?, self.window.byte(ff.saturating_add(2))?];
            if after == [Some(SOI), Some(0xFF)] {
                break Some(ff);
            }
            at = ff.saturating_add(1);
        };
        let input_len = self.window.input.len();
        let end = found.unwrap_or(input_len.min(from.saturating_add(GAP_MAX)));
        if found.is_none() && end < input_len {
            self.stopped = Some(end);
        }
        if end > from && !is_padding {
            self.passed.add(from, end.saturating_sub(from));
        }
        self.at = end;
        Ok(found)
    }

    /// Goes from marker to marker to the end of the picture; whether it came there.
    fn walk(&mut self, found: &mut Found) -> Result<bool, ReadError> {
        let mut segment = None;
        loop {
            let Next::Marker(code) = self.next_marker()? else {
                self.doubt(segment);
                return Ok(false);
            };
            match code {
                EOI => return Ok(true),
                SOI => {
                    // The next picture begins before this one ends: it is looked at again.
                    self.at = self.at.saturating_sub(2);
                    return Ok(false);
                }
                code if is_alone(code) => {}
                code => {
                    segment = Some(self.at);
                    if !self.pass_segment(code, found)? {
                        self.doubt(segment);
                        return Ok(false);
                    }
                    if code == SOS {
                        if !found.has_frame {
                            return Ok(false);
                        }
                        segment = None;
                        self.pass_coded()?;
                    }
                }
            }
        }
    }

    /// Goes back to the length of the last segment.
    fn doubt(&mut self, segment: Option<u64>) {
        if let Some(segment) = segment {
            self.doubtful_until = self.doubtful_until.max(self.at);
            self.at = segment;
        }
    }

    fn next_marker(&mut self) -> Result<Next, ReadError> {
        if self.window.byte(self.at)? != Some(0xFF) {
            return Ok(Next::Nothing);
        }
        // Any number of fill bytes may stand before the code.
        let mut code = None;
        while let Some(byte) = self.window.byte(self.at)? {
            self.at = self.at.saturating_add(1);
            if byte != 0xFF {
                code = Some(byte);
                break;
            }
        }
        Ok(code.filter(|code| *code != 0).map_or(Next::Nothing, Next::Marker))
    }

    /// Goes over a segment by its length; false when that is no length, or the file ends first.
    fn pass_segment(&mut self, code: u8, found: &mut Found) -> Result<bool, ReadError> {
        let Some([l1, l0]) = self.window.array(self.at)? else { return Ok(false) };
        let len = u16::from_be_bytes([l1, l0]);
        if len < 2 {
            return Ok(false);
        }
        let body = self.at.saturating_add(2);
        if is_frame_header(code) {
            let frame = self.window.array(body)?.filter(|_| len >= 7 && !found.has_frame);
            // A second one belongs to the next picture: this one was cut.
            let Some([_, h1, h0, w1, w0]) = frame else { return Ok(false) };
            found.size = (u16::from_be_bytes([w1, w0]), u16::from_be_bytes([h1, h0]));
            found.has_frame = true;
        }
        if code == APP2 && len >= 6 && self.window.array(body)? == Some(*b"MPF\0") {
            found.has_previews = true;
        }
        let end = self.at.saturating_add(u64::from(len));
        self.at = end.min(self.window.input.len());
        Ok(self.at == end)
    }

    /// Goes over coded bytes to the marker that ends them, or to the end of the file.
    fn pass_coded(&mut self) -> Result<(), ReadError> {
        loop {
            let end = self.at.saturating_add(GAP_MAX);
            let Some(ff) = self.window.find_ff(self.at, end)? else {
                self.at = end.min(self.window.input.len());
                return Ok(());
            };
            self.at = match self.window.byte(ff.saturating_add(1))? {
                Some(0x00 | 0xD0..=0xD7) => ff.saturating_add(2),
                // A fill byte may be followed by the marker itself, so it is passed alone.
                Some(0xFF) => ff.saturating_add(1),
                _ => {
                    self.at = ff;
                    return Ok(());
                }
            };
        }
    }
}

/// The block of the file that is in memory.
struct Window<'a, R> {
    input: &'a mut Input<R>,
    block: Vec<u8>,
    start: u64,
}

impl<R: ReadAt> Window<'_, R> {
    /// Where in the block `at` is, which is read first if need be; behind it where the file ends.
    fn within(&mut self, at: u64) -> Result<usize, ReadError> {
        let within = |at: u64, start: u64| usize::try_from(at.checked_sub(start)?).ok();
        if let Some(within) = within(at, self.start).filter(|within| *within < self.block.len()) {
            return Ok(within);
        }
        let len = self.input.len().saturating_sub(at).min(BLOCK_LEN);
        self.block.resize(usize::try_from(len).unwrap_or(0), 0);
        let filled = self.input.fill(at, &mut self.block)?;
        self.block.truncate(filled);
        self.start = at;
        Ok(0)
    }

    fn byte(&mut self, at: u64) -> Result<Option<u8>, ReadError> {
        let within = self.within(at)?;
        Ok(self.block.get(within).copied())
    }

    fn array<const N: usize>(&mut self, at: u64) -> Result<Option<[u8; N]>, ReadError> {
        let mut bytes = [0; N];
        for (place, at) in bytes.iter_mut().zip(at..) {
            let Some(byte) = self.byte(at)? else { return Ok(None) };
            *place = byte;
        }
        Ok(Some(bytes))
    }

    /// Where the first byte FF from `at` on is; none before `end` or the end of the file.
    fn find_ff(&mut self, mut at: u64, end: u64) -> Result<Option<u64>, ReadError> {
        loop {
            let within = self.within(at)?;
            let rest = self.block.get(within..).unwrap_or_default();
            if let Some(found) = rest.iter().position(|byte| *byte == 0xFF) {
                let ff = at.saturating_add(found as u64);
                return Ok((ff < end).then_some(ff));
            }
            if rest.is_empty() || at >= end {
                return Ok(None);
            }
            at = at.saturating_add(rest.len() as u64);
        }
    }
}
