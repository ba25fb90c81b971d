//! [`Pictures`] and [`Sound`]: media as the sources need them, by index and by byte.
//!
//! The two traits, and their time as a [`Grid`].
//!
//! ```text
//!   pictures   0     1     2     3          one unit each
//!   sound      |0000|1111|2222|33|          units of about 20 ms, whole samples of every channel
//! ```
//!
//! Invariant: a unit of sound is a whole number of blocks (one sample of every channel), the same
//! number for all but the last.

use super::cursor::Grid;
use dacapo_media::{AudioFormat, VideoFormat};

/// Units of sound per second.
const UNITS_PER_SECOND: u32 = 50;

/// The bytes of a unit of sound are at most so many, whatever the format.
const UNIT_LEN_MAX: u32 = 60 * 1024;

/// Pictures that can be read in any order.
pub trait Pictures: Send {
    /// What they are; the count is that of the pictures that can be read.
    fn format(&self) -> &VideoFormat;

    /// Puts picture `index` in `out`; no bytes mean the previous picture again.
    ///
    /// # Errors
    /// Why it cannot be read, for people.
    fn picture(&mut self, index: u64, out: &mut Vec<u8>) -> Result<(), String>;
}

/// Sound that can be read from any sample on.
pub trait Sound: Send {
    /// What it is.
    fn format(&self) -> &AudioFormat;

    /// How many bytes there are, whole samples of every channel.
    fn len(&self) -> u64;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts up to `len` bytes from `offset` on in `out`, both whole samples of every channel; fewer
    /// at the end.
    ///
    /// # Errors
    /// Why they cannot be read, for people.
    fn bytes(&mut self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<(), String>;
}

/// The times of pictures.
pub(crate) struct PictureGrid<'a>(pub &'a VideoFormat);

impl Grid for PictureGrid<'_> {
    fn count(&self) -> u64 {
        self.0.frame_count
    }

    fn time_ns(&self, index: u64) -> u64 {
        self.0.time_ns(index)
    }

    fn index_at(&self, time_ns: u64) -> u64 {
        self.0.index_at(time_ns)
    }

    fn first_from(&self, time_ns: u64) -> u64 {
        if self.0.is_still() {
            // It has no time: who begins later, or jumps, is shown it all the same.
            return 0;
        }
        let index = self.index_at(time_ns);
        if self.time_ns(index) < time_ns { index + 1 } else { index }
    }
}

/// The times of units of sound.
#[derive(Clone, Debug)]
pub(crate) struct SoundGrid {
    /// Bytes of a unit; the last one may be shorter.
    pub unit_len: u32,
    rate_hz: u32,
    block_len: u32,
    len: u64,
}

impl SoundGrid {
    /// Units of about 20 ms of `len` bytes of sound, each of at most `unit_len_max` bytes.
    pub fn new(format: &AudioFormat, len: u64, unit_len_max: u32) -> Self {
        let block_len = format.block_len().max(1);
        let blocks = (format.rate_hz / UNITS_PER_SECOND).max(1);
        let most = (unit_len_max.min(UNIT_LEN_MAX) / block_len).max(1);
        Self { unit_len: blocks.min(most) * block_len, rate_hz: format.rate_hz, block_len, len }
    }

    /// Blocks in one whole unit.
    pub fn unit_blocks(&self) -> u32 {
        self.unit_len / self.block_len
    }

    pub fn offset(&self, index: u64) -> u64 {
        index.saturating_mul(u64::from(self.unit_len))
    }
}

impl Grid for SoundGrid {
    fn count(&self) -> u64 {
        self.len.div_ceil(u64::from(self.unit_len))
    }

    fn time_ns(&self, index: u64) -> u64 {
        let blocks = u128::from(index) * u128::from(self.unit_blocks());
        let ns = blocks * 1_000_000_000 / u128::from(self.rate_hz.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    fn index_at(&self, time_ns: u64) -> u64 {
        // `time_ns` rounds down, so everything within that nanosecond counts as reached.
        let blocks = (u128::from(time_ns) + 1) * u128::from(self.rate_hz) - 1;
        let index = blocks / 1_000_000_000 / u128::from(self.unit_blocks());
        u64::try_from(index).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cursor::{Cursor, Due};
    use super::super::timeline::{Extent, Speed, Timeline};
    use super::*;
    use crate::command::MediaCommand;
    use dacapo_base::Time;
    use dacapo_media::SampleEncoding;

    #[test]
    fn units_of_sound_are_whole_samples_of_about_20_ms() {
        for (encoding, channels, rate_hz, unit_len) in [
            (SampleEncoding::S16, 2, 48_000, 3_840),
            (SampleEncoding::S16, 2, 44_100, 3_528),
            (SampleEncoding::S24, 6, 11_025, 220 * 18),
            (SampleEncoding::U8, 1, 8, 1),
            (SampleEncoding::F64, 8, 96_000, 60 * 1024),
        ] {
            let format = AudioFormat::new(encoding, channels, rate_hz);
            let grid = SoundGrid::new(&format, 1 << 20, u32::MAX);
            assert_eq!(grid.unit_len, unit_len);
            assert_eq!(grid.unit_len % format.block_len(), 0);
            assert_eq!(grid.count(), (1_u64 << 20).div_ceil(u64::from(unit_len)));
            for index in 0..200 {
                let time_ns = grid.time_ns(index);
                assert_eq!(time_ns, format.time_ns(grid.offset(index)));
                assert_eq!((grid.index_at(time_ns), grid.first_from(time_ns)), (index, index));
                assert_eq!(grid.first_from(time_ns + 1), index + 1, "{rate_hz}");
            }
        }
    }

    #[test]
    fn a_still_is_sent_once_and_again_after_a_jump_wherever_that_leads() {
        let (nominal, passes) = (Some((25, 1)), dacapo_qos::Passes::ONCE);
        let extent = Extent { duration_ns: 10_000_000_000, nominal, passes };
        let mut timeline = Timeline::new(extent, Speed::NORMAL);
        let still = VideoFormat::still(64, 48);
        let (grid, mut cursor) = (PictureGrid(&still), Cursor::default());
        let at = Time::from_millis;
        let sent = Due::Unit { index: 0, trick: false };
        timeline.start(at(0));
        assert_eq!(cursor.poll(at(0), &mut timeline, &grid, false), sent);
        cursor.advance(&timeline, &grid);
        assert_eq!(cursor.poll(at(1), &mut timeline, &grid, false), Due::Wait(at(10_000)));
        timeline.command(at(2_000), MediaCommand::Ff).unwrap();
        timeline.command(at(2_500), MediaCommand::Play).unwrap();
        assert_eq!(cursor.poll(at(2_500), &mut timeline, &grid, false), sent);
        cursor.advance(&timeline, &grid);
        assert_eq!(cursor.poll(at(6_500), &mut timeline, &grid, false), Due::End);
    }

    #[test]
    fn units_of_sound_fit_what_the_flow_allows() {
        let format = AudioFormat::new(SampleEncoding::S16, 2, 48_000);
        assert_eq!(SoundGrid::new(&format, 4_000, 1_403).unit_len, 1_400);
        assert_eq!(SoundGrid::new(&format, 4_000, 1).unit_len, 4);
    }
}
