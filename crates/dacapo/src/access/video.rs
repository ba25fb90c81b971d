//! [`VideoSource`]: sends the pictures of a medium.
//!
//! ```text
//!   unit = medium header (24 bytes) | the picture as it is stored; none: the previous one again
//! ```
//!
//! Invariant: a picture that could not be begun for lack of memory is the next one again.

use super::cursor::{Cursor, Due};
use super::live::Begin;
use super::media::{PictureGrid, Pictures};
use super::source::{Place, begin_failed, follow, header};
use super::timeline::{Extent, Speed, Timeline};
use dacapo_base::{Time, failpoint};
use dacapo_core::{CommandError, Source, SourcePoll, UnitWriter};
use dacapo_wire::media::{FLAG_REPEAT, FLAG_TRICK, LEN};

/// Sends the pictures of a medium.
pub struct VideoSource<P> {
    pictures: P,
    timeline: Timeline,
    cursor: Cursor,
    picture: Vec<u8>,
    /// Which picture is in memory.
    loaded: Option<u64>,
}

impl<P: Pictures> VideoSource<P> {
    /// A source that plays `pictures` as part of a session of this extent.
    pub fn new(pictures: P, extent: Extent, speed: Speed) -> Self {
        Self {
            pictures,
            timeline: Timeline::new(extent, speed),
            cursor: Cursor::default(),
            picture: Vec::new(),
            loaded: None,
        }
    }

    /// The same, beginning there.
    #[must_use]
    pub fn beginning(mut self, begin: Begin) -> Self {
        self.timeline = self.timeline.beginning(begin);
        self
    }

    fn send(
        &mut self,
        now: Time,
        unit: &mut UnitWriter<'_>,
        index: u64,
        trick: bool,
    ) -> SourcePoll {
        if self.loaded != Some(index) {
            self.loaded = None;
            if let Err(error) = self.pictures.picture(index, &mut self.picture) {
                return SourcePoll::Failed(format!("picture {index}: {error}"));
            }
            self.loaded = Some(index);
            failpoint!("source.unit");
        }
        if let Err(error) = unit.begin(LEN + self.picture.len()) {
            return begin_failed(error, &format!("picture {index}"), self.picture.len());
        }
        let repeat = if self.picture.is_empty() { FLAG_REPEAT } else { 0 };
        let flags = repeat | if trick { FLAG_TRICK } else { 0 };
        let format = self.pictures.format();
        let place = Place { index, count: format.frame_count, media_ns: format.time_ns(index) };
        unit.write(&header(&self.timeline, now, flags, place).emit());
        unit.write(&self.picture);
        self.cursor.advance(&self.timeline, &PictureGrid(self.pictures.format()));
        SourcePoll::Unit
    }
}

impl<P: Pictures> Source for VideoSource<P> {
    fn start(&mut self, now: Time) {
        self.timeline.start(now);
    }

    fn stop(&mut self, now: Time) {
        self.timeline.stop(now);
    }

    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        let grid = PictureGrid(self.pictures.format());
        match self.cursor.poll(now, &mut self.timeline, &grid, false) {
            Due::Unit { index, trick } => self.send(now, unit, index, trick),
            Due::Wait(at) => SourcePoll::Wait(at),
            Due::Idle => SourcePoll::Idle,
            Due::End => SourcePoll::End,
        }
    }

    fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        follow(&mut self.timeline, now, payload)
    }
}
