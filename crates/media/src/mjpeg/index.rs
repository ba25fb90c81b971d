//! [`Index`]: where the pictures of a file are, found once and good for any number of readers.
//!
//! ```text
//!   file ──Scanner──> [offset, length] per picture, size of the first, is it a still?
//! ```
//!
//! Invariants: there is at least one picture; every one is within the input as it was searched;
//! they do not overlap and their offsets rise, so memory grows with bytes that exist only.
//!
//! Decoder: of files of JPEG pictures.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::SOI;
use super::error::MjpegError;
use super::scan::{Found, Scanner};
use crate::format::VideoFormat;
use crate::read::{Input, Limits, ReadAt};
use crate::warning::Warning;

/// The rate at which pictures are shown when nobody says: 25 per second.
const RATE: (u32, u32) = (25, 1);

/// What the pictures of a file are taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Show {
    /// What they seem to be: one picture, or a photo with its previews, is a still; more are a
    /// movie at 25 pictures per second.
    #[default]
    ByContent,
    /// A still: the first picture.
    Still,
    /// A movie at `rate / scale` pictures per second, neither of them 0.
    Movie {
        /// Numerator of the pictures per second.
        rate: u32,
        /// Denominator of the pictures per second.
        scale: u32,
    },
}

/// Where a picture is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Picture {
    pub offset: u64,
    pub len: u32,
}

/// Where the pictures of a file are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Index {
    pictures: Vec<Picture>,
    size: (u16, u16),
    is_still: bool,
    warnings: Vec<Warning>,
}

impl Index {
    /// Searches all of a file. Its time is that of reading the file once.
    ///
    /// # Errors
    /// When it does not begin with a JPEG picture, has no whole one, or cannot be read.
    pub fn of<R: ReadAt>(input: R) -> Result<Self, MjpegError> {
        Self::search(&mut Input::new(input), &Limits::default())
    }

    pub(super) fn search<R: ReadAt>(
        input: &mut Input<R>,
        limits: &Limits,
    ) -> Result<Self, MjpegError> {
        let mut head = [0; 4];
        let len = input.fill(0, &mut head)?;
        let head = head.get(..len).unwrap_or_default();
        if !head.starts_with(&[0xFF, SOI, 0xFF]) {
            return Err(MjpegError::NotJpeg { head: head.to_vec() });
        }
        let mut scanner = Scanner::new(input);
        let Some(first) = scanner.next_picture()? else {
            return Err(MjpegError::NoPicture { offset: scanner.position() });
        };
        let mut pictures = vec![place(&first)];
        let mut warnings = Vec::new();
        while let Some(found) = scanner.next_picture()? {
            if pictures.len() >= limits.index_entries_max {
                warnings.push(Warning::IndexFull { count_max: limits.index_entries_max });
                break;
            }
            let has_differed = warnings.iter().any(|it| matches!(it, Warning::SizesDiffer { .. }));
            if found.size != first.size && !has_differed {
                warnings.push(Warning::SizesDiffer { index: pictures.len() as u64 });
            }
            pictures.push(place(&found));
        }
        warnings.extend(noticed(&scanner).into_iter().flatten());
        let is_still = pictures.len() == 1 || first.has_previews;
        if first.has_previews {
            // Its previews are smaller and stand between other things; that is as it should be.
            warnings.clear();
        }
        Ok(Self { pictures, size: first.size, is_still, warnings })
    }

    /// Whether this is one picture, or a photo with its previews, and not a movie.
    #[must_use]
    pub fn is_still(&self) -> bool {
        self.is_still
    }

    /// How many pictures there are, previews included, at least one.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.pictures.len() as u64
    }

    /// Whether there is no picture, which is never so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pictures.is_empty()
    }

    /// How long each picture is, in bytes.
    pub fn picture_lens(&self) -> impl Iterator<Item = u32> + '_ {
        self.pictures.iter().map(|picture| picture.len)
    }

    /// What was noticed while searching.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What the pictures are, when they are taken for `show`.
    #[must_use]
    pub fn video_format(&self, show: Show) -> VideoFormat {
        let (width, height) = (u32::from(self.size.0), u32::from(self.size.1));
        let (rate, scale) = match show {
            Show::Movie { rate, scale } => (rate, scale),
            Show::ByContent if !self.is_still => RATE,
            Show::ByContent | Show::Still => return VideoFormat::still(width, height),
        };
        VideoFormat { frame_count: self.len(), ..VideoFormat::new(width, height, rate, scale) }
    }

    pub(super) fn picture(&self, index: u64) -> Option<Picture> {
        usize::try_from(index).ok().and_then(|index| self.pictures.get(index)).copied()
    }
}

fn place(found: &Found) -> Picture {
    // Above 4 GiB it is above every limit too.
    Picture { offset: found.offset, len: u32::try_from(found.len).unwrap_or(u32::MAX) }
}

fn noticed<R>(scanner: &Scanner<'_, R>) -> [Option<Warning>; 3] {
    let Scanner { passed, damaged, stopped, .. } = scanner;
    [
        passed.offset.map(|offset| Warning::PassedOver { offset, len: passed.count }),
        damaged.offset.map(|offset| Warning::PicturesDamaged { offset, count: damaged.count }),
        stopped.map(|offset| Warning::ScanStopped { offset, expected: "a JPEG picture" }),
    ]
}
