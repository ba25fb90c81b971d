//! [`Interleaver`]: units of several flows become the streams of one file or pipe that keep their
//! time.
//!
//! A container has no times of its own, picture n *is* at n / rate. So what did not come must be
//! stood in for: the previous picture again, silence.
//!
//! ```text
//!   pictures   0 1 . 3 4 |jump| 90 91       . repeat
//!   sound      00112..344|jump|.180181      . silence; after a jump all streams begin together
//! ```
//!
//! Invariants: a unit is written where its place in the medium says, or not at all; after a jump
//! the streams are apart by less than one picture; what is filled in is at most [`FILL_FACTOR`]
//! times what came, plus [`FILL_BYTES`], whatever numbers a peer writes into headers.
//!
//! Decoder: of media headers from a peer.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use dacapo_media::{AudioFormat, Format};
use dacapo_wire::media::{FLAG_REPEAT, FLAG_TRICK, Header, is_newer};

/// What may be filled in for each byte that came.
const FILL_FACTOR: u64 = 4;
/// What may be filled in besides, in bytes.
const FILL_BYTES: u64 = 4 << 20;
/// What a repeated picture costs in a file, its index included.
const REPEAT_COST: u64 = 32;
/// A player's sound is kept up when it is so far behind its pictures: it would stop to wait.
const BEHIND_NS_MAX: u64 = 400_000_000;

/// Where the streams go.
pub(crate) trait Output: Send {
    /// Writes the next picture of a stream; no bytes: the previous one again.
    fn picture(&mut self, stream: usize, picture: &[u8]) -> Result<(), String>;

    /// Writes the next piece of a stream's sound.
    fn sound(&mut self, stream: usize, sound: &[u8]) -> Result<(), String>;
}

/// What became of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It is written, after what stands in for so many units.
    Written {
        /// How many.
        filled: u64,
    },
    /// It is of FF or FR and not part of a recording.
    Passed,
    /// Its place is taken already.
    Behind,
    /// It is no unit of its stream's format.
    Malformed,
}

/// One unit as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// Its number in the flow.
    pub number: u64,
    pub header: &'a Header,
    /// What follows the header.
    pub body: &'a [u8],
}

struct Track {
    format: Format,
    /// Pictures, or blocks of sound, that are written.
    ticks: u64,
    /// Generation and place in the medium, in ticks, of what should come next.
    expected: Option<(u32, u64)>,
    /// Ticks of the last unit.
    unit_ticks: u64,
    newest: Option<u64>,
    /// Units after the newest one that will not come.
    lost: u64,
    stepping: bool,
}

/// Where all streams begin together.
#[derive(Clone, Copy)]
struct Stretch {
    generation: u32,
    at_ns: u64,
    media_ns: u64,
}

impl Stretch {
    /// Where in the file a place in the medium is; a stream may begin before the first one did.
    fn time_of(&self, media_ns: u64) -> u64 {
        self.at_ns.saturating_add(media_ns).saturating_sub(self.media_ns)
    }
}

/// Weaves units into streams.
pub(crate) struct Interleaver<O> {
    pub output: O,
    tracks: Vec<Track>,
    stretch: Option<Stretch>,
    /// Also write FF and FR, and keep the sound up: for a player.
    live: bool,
    came: u64,
    filled: u64,
}

impl<O: Output> Interleaver<O> {
    /// Streams of these formats, in this order.
    pub fn new(output: O, formats: &[Format], live: bool) -> Self {
        let track = |format: &Format| Track {
            format: format.clone(),
            ticks: 0,
            expected: None,
            unit_ticks: 1,
            newest: None,
            lost: 0,
            stepping: false,
        };
        let tracks = formats.iter().map(track).collect();
        Self { output, tracks, stretch: None, live, came: 0, filled: 0 }
    }

    /// Takes a unit of a stream.
    pub fn unit(&mut self, stream: usize, piece: Piece<'_>) -> Result<Placed, String> {
        let Piece { number, header, body } = piece;
        let Some(track) = self.tracks.get_mut(stream) else { return Ok(Placed::Malformed) };
        let body = if header.flags & FLAG_REPEAT == 0 { body } else { &[] };
        let Some(unit_ticks) = track.ticks_of(body) else { return Ok(Placed::Malformed) };
        let stepping = header.flags & FLAG_TRICK != 0;
        track.newest = track.newest.max(Some(number));
        if stepping && !self.live {
            (track.stepping, track.expected, track.lost) = (true, None, 0);
            return Ok(Placed::Passed);
        }
        let tick = track.place(header);
        let gap = match track.expected {
            Some((generation, _)) if generation != header.generation => None,
            Some(_) if stepping => Some(0),
            Some((_, expected)) if tick < expected => return Ok(Placed::Behind),
            Some((_, expected)) => Some(tick.saturating_sub(expected)),
            None => None,
        };
        let gap = gap.or_else(|| self.enter(stream, header, unit_ticks)).unwrap_or(0);
        self.came = self.came.saturating_add(body.len() as u64);
        let filled = self.fill(stream, gap)?;
        self.write(stream, body)?;
        if let Some(track) = self.tracks.get_mut(stream) {
            track.ticks = track.ticks.saturating_add(unit_ticks);
            track.expected = Some((header.generation, tick.saturating_add(unit_ticks)));
            (track.unit_ticks, track.lost, track.stepping) = (unit_ticks, 0, stepping);
        }
        self.keep_up(stream)?;
        Ok(Placed::Written { filled: filled.div_ceil(unit_ticks.max(1)) })
    }

    /// A stream gets its first unit of a generation: the ticks by which it must be filled.
    fn enter(&mut self, stream: usize, header: &Header, unit_ticks: u64) -> Option<u64> {
        let stepping = header.flags & FLAG_TRICK != 0;
        let track = self.tracks.get(stream)?;
        // What was lost on the way belongs to the stretch before or to this one: it had its time.
        let lost = if stepping || track.stepping { 0 } else { track.lost };
        let lost = lost.saturating_mul(unit_ticks);
        let here = track.ticks.saturating_add(lost);
        let planned = |stretch: &Stretch| track.nearest(stretch.time_of(header.media_ns));
        let joined = self.stretch.filter(|stretch| {
            let is_newer = is_newer(header.generation, stretch.generation);
            // After STOP and PLAY the medium goes on where it was: that is no jump.
            !is_newer || planned(stretch) == here
        });
        let begin = match joined {
            Some(stretch) => planned(&stretch).max(here),
            None => {
                let ends = self.tracks.iter().map(|track| track.time_ns(track.ticks));
                track.nearest(ends.fold(track.time_ns(here), u64::max)).max(here)
            }
        };
        let (generation, media_ns) = (header.generation, header.media_ns);
        let fresh = Stretch { generation, at_ns: track.time_ns(begin), media_ns };
        self.stretch = match joined {
            Some(stretch) if is_newer(stretch.generation, generation) => Some(stretch),
            Some(stretch) => Some(Stretch { generation, ..stretch }),
            None => Some(fresh),
        };
        Some(lost.saturating_add(begin.saturating_sub(here)))
    }

    /// Stands in for so many ticks of a stream, if that is not too much; returns how many it was.
    fn fill(&mut self, stream: usize, ticks: u64) -> Result<u64, String> {
        let Some(track) = self.tracks.get_mut(stream).filter(|_| ticks > 0) else { return Ok(0) };
        let cost = ticks.saturating_mul(track.tick_cost());
        let most = self.came.saturating_mul(FILL_FACTOR).saturating_add(FILL_BYTES);
        let filled = self.filled.saturating_add(cost);
        if filled > most {
            return Ok(0);
        }
        self.filled = filled;
        track.ticks = track.ticks.saturating_add(ticks);
        let Format::Audio(audio) = &track.format else {
            (0..ticks).try_for_each(|_| self.output.picture(stream, &[]))?;
            return Ok(ticks);
        };
        let block_len = usize::try_from(audio.block_len()).unwrap_or(1).max(1);
        let per_piece = (16_384_usize.checked_div(block_len).unwrap_or(1)).max(1) as u64;
        let silence = silence(audio, per_piece.min(ticks));
        let mut left = ticks;
        while left > 0 {
            let now = left.min(per_piece);
            let len = usize::try_from(now).unwrap_or(0).saturating_mul(block_len);
            self.output.sound(stream, silence.get(..len).unwrap_or_default())?;
            left = left.saturating_sub(now);
        }
        Ok(ticks)
    }

    fn write(&mut self, stream: usize, body: &[u8]) -> Result<(), String> {
        match self.tracks.get(stream).map(|track| &track.format) {
            Some(Format::Audio(_)) => self.output.sound(stream, body),
            _ => self.output.picture(stream, body),
        }
    }

    /// A player must not wait for sound that is not sent: it gets silence.
    fn keep_up(&mut self, stream: usize) -> Result<(), String> {
        let picture =
            self.tracks.get(stream).filter(|track| matches!(track.format, Format::Video(_)));
        let Some(now_ns) = picture.filter(|_| self.live).map(|track| track.time_ns(track.ticks))
        else {
            return Ok(());
        };
        for other in 0..self.tracks.len() {
            let Some(track) = self.tracks.get(other) else { continue };
            let is_sound = matches!(track.format, Format::Audio(_));
            let here_ns = track.time_ns(track.ticks);
            if is_sound && here_ns.saturating_add(BEHIND_NS_MAX) < now_ns {
                let ticks = track.nearest(now_ns).saturating_sub(track.ticks);
                self.fill(other, ticks)?;
            }
        }
        Ok(())
    }

    /// Units of a stream that will not come.
    pub fn lost(&mut self, stream: usize, first: u64, count: u64) {
        let Some(track) = self.tracks.get_mut(stream) else { return };
        // Gaps before the newest unit were seen when it came.
        let after = track.newest.map_or(0, |newest| newest.saturating_add(1));
        let behind = after.saturating_sub(first).min(count);
        track.lost = track.lost.saturating_add(count.saturating_sub(behind));
    }

    /// A stream is over: what was lost at its end had its time too. Returns for how many units
    /// something stands in.
    pub fn close(&mut self, stream: usize) -> Result<u64, String> {
        let Some(track) = self.tracks.get_mut(stream) else { return Ok(0) };
        let lost = if track.stepping || track.newest.is_none() { 0 } else { track.lost };
        track.lost = 0;
        let (ticks, unit_ticks) = (lost.saturating_mul(track.unit_ticks), track.unit_ticks.max(1));
        Ok(self.fill(stream, ticks)?.checked_div(unit_ticks).unwrap_or(0))
    }
}

impl Track {
    /// How many ticks a unit of these bytes is; nothing when it is none of this format.
    fn ticks_of(&self, body: &[u8]) -> Option<u64> {
        let Format::Audio(audio) = &self.format else { return Some(1) };
        let (len, block_len) = (body.len() as u64, u64::from(audio.block_len()));
        let blocks = len.checked_div(block_len)?;
        (blocks > 0 && len.checked_rem(block_len) == Some(0)).then_some(blocks)
    }

    /// The place of a unit in its medium, in ticks.
    fn place(&self, header: &Header) -> u64 {
        match &self.format {
            Format::Video(_) => u64::from(header.index),
            Format::Audio(audio) => blocks_at(audio, header.media_ns),
        }
    }

    fn time_ns(&self, ticks: u64) -> u64 {
        match &self.format {
            Format::Video(video) => video.time_ns(ticks),
            Format::Audio(audio) => {
                audio.time_ns(ticks.saturating_mul(u64::from(audio.block_len())))
            }
        }
    }

    /// The tick that is nearest to a time.
    fn nearest(&self, time_ns: u64) -> u64 {
        match &self.format {
            Format::Video(video) => {
                let half = video.time_ns(1) / 2;
                video.index_at(time_ns.saturating_add(half.saturating_sub(1)))
            }
            Format::Audio(audio) => blocks_at(audio, time_ns),
        }
    }

    fn tick_cost(&self) -> u64 {
        match &self.format {
            Format::Video(_) => REPEAT_COST,
            Format::Audio(audio) => u64::from(audio.block_len()),
        }
    }
}

/// The block that begins nearest to a time.
fn blocks_at(audio: &AudioFormat, time_ns: u64) -> u64 {
    let product = u128::from(time_ns).saturating_mul(u128::from(audio.rate_hz));
    let blocks = product.saturating_add(500_000_000).checked_div(1_000_000_000);
    u64::try_from(blocks.unwrap_or(0)).unwrap_or(u64::MAX)
}

/// So many blocks of silence.
fn silence(audio: &AudioFormat, blocks: u64) -> Vec<u8> {
    let len = blocks.saturating_mul(u64::from(audio.block_len()));
    vec![audio.encoding.silence(); usize::try_from(len).unwrap_or(0)]
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use dacapo_media::{SampleEncoding, VideoFormat};

    /// One letter per picture or per 20 ms of sound; `-` repeats, `.` is silence.
    #[derive(Default)]
    struct Strip(Vec<String>, u64);

    impl Output for Strip {
        fn picture(&mut self, stream: usize, picture: &[u8]) -> Result<(), String> {
            self.1 += 1;
            self.0[stream].push(picture.first().map_or('-', |byte| char::from(*byte)));
            Ok(())
        }

        fn sound(&mut self, stream: usize, sound: &[u8]) -> Result<(), String> {
            self.1 += sound.len() as u64;
            for piece in sound.chunks(20) {
                self.0[stream].push(if piece[0] == 0x80 { '.' } else { char::from(piece[0]) });
            }
            Ok(())
        }
    }

    /// Pictures at 25 per second and 1,000 bytes of sound per second.
    fn interleaver(live: bool) -> Interleaver<Strip> {
        let formats = [
            Format::Video(VideoFormat::new(64, 48, 25, 1)),
            Format::Audio(AudioFormat::new(SampleEncoding::U8, 1, 1_000)),
        ];
        Interleaver::new(Strip(vec![String::new(); 2], 0), &formats, live)
    }

    struct Feed(Interleaver<Strip>, [u64; 2]);

    impl Feed {
        fn new(live: bool) -> Self {
            Self(interleaver(live), [0; 2])
        }

        fn give(&mut self, stream: usize, generation: u32, index: u32, flags: u8) -> Placed {
            let media_ns = u64::from(index) * if stream == 0 { 40_000_000 } else { 20_000_000 };
            let header = Header { flags, generation, index, media_ns, sent_ns: 0 };
            let letter = b'a' + (index % 26) as u8;
            let body = if stream == 0 { vec![letter] } else { vec![letter; 20] };
            let number = self.1[stream];
            self.1[stream] += 1;
            self.0.unit(stream, Piece { number, header: &header, body: &body }).unwrap()
        }

        fn lose(&mut self, stream: usize, count: u64) {
            self.0.lost(stream, self.1[stream], count);
            self.1[stream] += count;
        }

        fn strips(&self) -> (&str, &str) {
            (&self.0.output.0[0], &self.0.output.0[1])
        }
    }

    #[test]
    fn what_is_lost_is_stood_in_for() {
        let mut feed = Feed::new(false);
        feed.lose(0, 1);
        for index in [1, 2, 5] {
            if index == 5 {
                feed.lose(0, 2);
            }
            feed.give(0, 0, index, 0);
        }
        for index in [0, 1, 4] {
            feed.give(1, 0, index, 0);
        }
        feed.lose(0, 3);
        feed.lose(1, 1);
        assert_eq!((feed.0.close(0), feed.0.close(1)), (Ok(3), Ok(1)));
        assert_eq!(feed.strips(), ("-bc--f---", "ab..e."));
        assert_eq!(feed.give(0, 0, 3, 0), Placed::Behind);
    }

    #[test]
    fn losses_that_are_reported_late_are_not_filled_twice() {
        let mut feed = Feed::new(false);
        feed.give(0, 0, 0, 0);
        feed.1[0] = 3;
        assert_eq!(feed.give(0, 0, 3, 0), Placed::Written { filled: 2 });
        feed.0.lost(0, 1, 2);
        assert_eq!(feed.0.close(0), Ok(0));
        assert_eq!(feed.strips().0, "a--d");
    }

    #[test]
    fn after_a_jump_all_streams_begin_together() {
        let mut feed = Feed::new(false);
        for index in 0..4 {
            feed.give(0, 0, index, 0);
        }
        for index in 0..5 {
            feed.give(1, 0, index, 0);
        }
        feed.give(0, 1, 10, 0);
        feed.give(1, 1, 21, 0);
        feed.give(0, 1, 11, 0);
        assert_eq!(feed.strips(), ("abcdkl", "abcde....v"));
        feed.give(1, 2, 0, 0);
        feed.give(0, 2, 0, 0);
        assert_eq!(feed.strips(), ("abcdkla", "abcde....v..a"));
    }

    #[test]
    fn stepping_is_not_recorded_and_is_shown_live_with_silence() {
        let mut feed = Feed::new(false);
        feed.give(0, 0, 0, 0);
        assert_eq!(feed.give(0, 1, 8, FLAG_TRICK), Placed::Passed);
        feed.lose(0, 1);
        feed.give(0, 2, 20, 0);
        assert_eq!(feed.strips().0, "au");
        let mut feed = Feed::new(true);
        feed.give(1, 0, 0, 0);
        for step in 0..12 {
            feed.give(0, 1, step * 8, FLAG_TRICK);
        }
        let (pictures, sound) = feed.strips();
        assert_eq!((pictures.len(), sound.len()), (12, 22));
    }

    #[test]
    fn a_repeat_is_written_as_one_and_odd_sound_is_refused() {
        let mut feed = Feed::new(false);
        feed.give(0, 0, 0, 0);
        feed.give(0, 0, 1, FLAG_REPEAT);
        assert_eq!(feed.strips().0, "a-");
        let header = Header::default();
        let piece = Piece { number: 0, header: &header, body: &[] };
        assert_eq!(feed.0.unit(1, piece), Ok(Placed::Malformed));
    }

    #[test]
    fn no_header_makes_more_than_a_bounded_multiple_of_what_came() {
        for seed in 0..200 {
            let mut random = Random::from_number(seed);
            let mut interleaver = interleaver(random.chance(0.5));
            let mut came = 0;
            for number in 0..60 {
                let mut header = Header {
                    flags: random.below(4) as u8,
                    generation: random.below(3) as u32,
                    index: random.next_u32() >> random.below(32),
                    media_ns: random.next_u64() >> random.below(64),
                    sent_ns: random.next_u64(),
                };
                if random.chance(0.2) {
                    header.generation = random.next_u32() & 0xFF_FFFF;
                }
                let body = vec![1; random.below(200) as usize];
                came += body.len() as u64;
                let stream = random.below(3) as usize;
                interleaver.lost(stream, random.below(100), random.next_u64() >> random.below(64));
                interleaver.unit(stream, Piece { number, header: &header, body: &body }).unwrap();
            }
            (0..3).for_each(|stream| drop(interleaver.close(stream)));
            let most = came * (FILL_FACTOR + 1) + FILL_BYTES;
            assert!(interleaver.output.1 <= most, "seed {seed}: {} > {most}", interleaver.output.1);
        }
    }
}
