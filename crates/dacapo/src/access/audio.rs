//! [`AudioSource`]: sends the sound of a medium in units of about 20 ms.
//!
//! ```text
//!   unit = medium header (24 bytes) | PCM, whole samples of every channel
//!          index: running number of the unit; media time: exactly that of its first sample
//! ```
//!
//! Invariants: silent in FF, in FR and at other frame rates, but never out of step with the
//! pictures; a unit that could not be begun for lack of memory is the next one again.

use super::cursor::{Cursor, Due, Grid};
use super::live::Begin;
use super::media::{Sound, SoundGrid};
use super::source::{Place, begin_failed, follow, header};
use super::timeline::{Extent, Speed, Timeline};
use dacapo_base::Time;
use dacapo_core::{CommandError, Source, SourcePoll, UnitWriter};
use dacapo_wire::media::LEN;

/// Sends the sound of a medium.
pub struct AudioSource<S> {
    sound: S,
    grid: SoundGrid,
    timeline: Timeline,
    cursor: Cursor,
    piece: Vec<u8>,
}

impl<S: Sound> AudioSource<S> {
    /// A source that plays `sound` as part of a session of this extent, in units of at most
    /// `unit_len_max` bytes, the medium header included.
    pub fn new(sound: S, extent: Extent, speed: Speed, unit_len_max: u32) -> Self {
        let room = unit_len_max.saturating_sub(LEN as u32);
        Self {
            grid: SoundGrid::new(sound.format(), sound.len(), room),
            sound,
            timeline: Timeline::new(extent, speed),
            cursor: Cursor::default(),
            piece: Vec::new(),
        }
    }

    /// The same, beginning there.
    #[must_use]
    pub fn beginning(mut self, begin: Begin) -> Self {
        self.timeline = self.timeline.beginning(begin);
        self
    }

    fn send(&mut self, now: Time, unit: &mut UnitWriter<'_>, index: u64) -> SourcePoll {
        let (offset, len) = (self.grid.offset(index), self.grid.unit_len as usize);
        if let Err(error) = self.sound.bytes(offset, len, &mut self.piece) {
            return SourcePoll::Failed(format!("sound at byte {offset}: {error}"));
        }
        if let Err(error) = unit.begin(LEN + self.piece.len()) {
            return begin_failed(error, &format!("sound at byte {offset}"), self.piece.len());
        }
        let (count, media_ns) = (self.grid.count(), self.grid.time_ns(index));
        let place = Place { index, count, media_ns };
        unit.write(&header(&self.timeline, now, 0, place).emit());
        unit.write(&self.piece);
        self.cursor.advance(&self.timeline, &self.grid);
        SourcePoll::Unit
    }
}

impl<S: Sound> Source for AudioSource<S> {
    fn start(&mut self, now: Time) {
        self.timeline.start(now);
    }

    fn stop(&mut self, now: Time) {
        self.timeline.stop(now);
    }

    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        match self.cursor.poll(now, &mut self.timeline, &self.grid, true) {
            Due::Unit { index, .. } => self.send(now, unit, index),
            Due::Wait(at) => SourcePoll::Wait(at),
            Due::Idle => SourcePoll::Idle,
            Due::End => SourcePoll::End,
        }
    }

    fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        follow(&mut self.timeline, now, payload)
    }
}
