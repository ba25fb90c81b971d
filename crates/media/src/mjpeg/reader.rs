//! [`Reader`]: pictures by index, out of a file of JPEG pictures.
//!
//! Invariants: a call reads one picture; its buffer never grows beyond the bytes that exist and
//! the limits. What is given begins and ends as a picture, even if the file has changed meanwhile.
//!
//! Decoder: of files of JPEG pictures.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::sync::Arc;

use super::error::MjpegError;
use super::index::{Index, Show};
use super::{EOI, SOI};
use crate::format::VideoFormat;
use crate::read::{Input, Limits, ReadAt};
use crate::warning::Warning;

/// An open file of JPEG pictures.
///
/// ```
/// use dacapo_media::{TestMovie, mjpeg};
/// let movie = TestMovie { width: 64, height: 48, ..TestMovie::default() };
/// let pictures = movie.generator().unwrap().take(3).map(|media| media.picture);
/// let file: Vec<u8> = pictures.flatten().collect();
/// let mut reader = mjpeg::Reader::open(file, mjpeg::Show::ByContent).unwrap();
/// assert_eq!((reader.video_count(), reader.duration_ns()), (3, 120_000_000));
/// let mut picture = Vec::new();
/// reader.video_frame(2, &mut picture).unwrap();
/// assert_eq!(mjpeg::picture_size(&picture), Ok((64, 48)));
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    limits: Limits,
    index: Arc<Index>,
    video: VideoFormat,
}

impl<R: ReadAt> Reader<R> {
    /// Opens a file and searches all of it.
    ///
    /// # Errors
    /// When it does not begin with a JPEG picture, has no whole one, or the rate has a 0 in it.
    pub fn open(input: R, show: Show) -> Result<Self, MjpegError> {
        Self::open_with(input, show, Limits::default())
    }

    /// As [`Reader::open`], within other limits.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_with(input: R, show: Show, limits: Limits) -> Result<Self, MjpegError> {
        let mut input = Input::new(input);
        let index = Arc::new(Index::search(&mut input, &limits)?);
        Self::make(input, show, limits, index)
    }

    /// Opens a file that was searched before; it is not searched again.
    ///
    /// # Errors
    /// When the rate has a 0 in it. That the file has changed is seen when a picture is read.
    pub fn with_index(input: R, show: Show, index: Arc<Index>) -> Result<Self, MjpegError> {
        Self::make(Input::new(input), show, Limits::default(), index)
    }

    fn make(
        input: Input<R>,
        show: Show,
        limits: Limits,
        index: Arc<Index>,
    ) -> Result<Self, MjpegError> {
        let video = index.video_format(show);
        video.check().map_err(MjpegError::Format)?;
        Ok(Self { input, limits, index, video })
    }

    /// Where the pictures are, for other readers of the same file.
    #[must_use]
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// What the pictures are.
    #[must_use]
    pub fn video_format(&self) -> &VideoFormat {
        &self.video
    }

    /// Number of pictures; 1 for a still.
    #[must_use]
    pub fn video_count(&self) -> u64 {
        self.video.frame_count
    }

    /// How long each picture is, in bytes.
    pub fn video_lens(&self) -> impl Iterator<Item = u32> + '_ {
        let count = usize::try_from(self.video.frame_count).unwrap_or(usize::MAX);
        self.index.picture_lens().take(count)
    }

    /// Time from the beginning to the end, in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.video.duration_ns()
    }

    /// What was noticed while searching.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.index.warnings()
    }

    /// Puts picture `index` in `out`.
    ///
    /// # Errors
    /// No such picture, or it is larger than the limit, cannot be read or is no longer there.
    pub fn video_frame(&mut self, index: u64, out: &mut Vec<u8>) -> Result<(), MjpegError> {
        out.clear();
        let count = self.video.frame_count;
        let picture = self.index.picture(index).filter(|_| index < count);
        let picture = picture.ok_or(MjpegError::NoSuchPicture { index, count })?;
        let (offset, len, len_max) =
            (picture.offset, picture.len, self.limits.video_frame_bytes_max);
        if len > len_max {
            return Err(MjpegError::PictureTooLarge { offset, len, len_max });
        }
        self.input.append(offset, len as usize, out)?;
        if out.starts_with(&[0xFF, SOI, 0xFF]) && out.ends_with(&[0xFF, EOI]) {
            return Ok(());
        }
        out.clear();
        Err(MjpegError::Changed { offset })
    }

    /// Gives back the input.
    pub fn into_inner(self) -> R {
        self.input.into_inner()
    }
}
