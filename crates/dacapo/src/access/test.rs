//! Media that are made while they are sent: the test movie, in any order.
//!
//! [`Pictures`] and [`Sound`] over `dacapo_media::testmovie`, so that two hosts can be tried
//! without a file, and what arrives can be compared with what anybody can make.

use super::media::{Pictures, Sound};
use dacapo_media::testmovie::{Generator, TestMovieError};
use dacapo_media::{AudioFormat, TestMovie, VideoFormat};

/// The pictures of a test movie.
pub struct TestPictures(Generator);

impl TestPictures {
    /// Those of this movie.
    ///
    /// # Errors
    /// A parameter out of bounds.
    pub fn new(movie: &TestMovie) -> Result<Self, TestMovieError> {
        Ok(Self(movie.generator()?))
    }
}

impl Pictures for TestPictures {
    fn format(&self) -> &VideoFormat {
        self.0.video_format()
    }

    fn picture(&mut self, index: u64, out: &mut Vec<u8>) -> Result<(), String> {
        self.0.picture(index, out).map_err(|error| error.to_string())
    }
}

/// The sound of a test movie.
pub struct TestSound {
    generator: Generator,
    format: AudioFormat,
    len: u64,
    /// The bytes that belong to one "picture" of the generator.
    piece_len: u64,
    piece: Vec<u8>,
}

/// Samples in one piece that the generator makes.
const PIECE_SAMPLES: u32 = 1_024;

impl TestSound {
    /// That of this movie.
    ///
    /// # Errors
    /// No sound, or a parameter out of bounds.
    pub fn new(movie: &TestMovie) -> Result<Self, TestMovieError> {
        let format = movie.audio_format().ok_or(TestMovieError::NoSound)?;
        let duration_ns = movie.video_format().duration_ns();
        // The samples depend on their number only, so "pictures" at another rate cut them into
        // equal pieces.
        let (rate, scale) = (format.rate_hz, PIECE_SAMPLES);
        let pieces = TestMovie { width: 16, height: 16, rate, scale, ..movie.clone() };
        Ok(Self {
            generator: pieces.generator()?,
            len: format.byte_offset_at(duration_ns),
            piece_len: u64::from(PIECE_SAMPLES) * u64::from(format.block_len()),
            format,
            piece: Vec::new(),
        })
    }
}

impl Sound for TestSound {
    fn format(&self) -> &AudioFormat {
        &self.format
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn bytes(&mut self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<(), String> {
        out.clear();
        let end = offset.saturating_add(len as u64).min(self.len);
        let mut at = offset;
        while at < end {
            self.generator.sound(at / self.piece_len, &mut self.piece);
            let within = (at % self.piece_len) as usize;
            let rest = self.piece.get(within..).unwrap_or_default();
            let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(rest.len());
            if wanted == 0 {
                return Err("the generator made no sound".to_owned());
            }
            out.extend_from_slice(rest.get(..wanted).unwrap_or_default());
            at += wanted as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use dacapo_media::testmovie::TestSound as Parameters;
    use std::time::Duration;

    #[test]
    fn any_part_of_the_sound_is_that_of_the_whole_movie() {
        for (rate_hz, channels) in [(48_000, 2), (44_100, 1), (11_025, 3)] {
            let movie = TestMovie {
                width: 32,
                height: 16,
                duration: Duration::from_millis(2_120),
                sound: Some(Parameters { rate_hz, channels }),
                ..TestMovie::default()
            };
            let generator = movie.generator().unwrap();
            let whole: Vec<u8> = generator.flat_map(|media| media.sound).collect();
            let mut sound = TestSound::new(&movie).unwrap();
            assert_eq!(sound.len(), whole.len() as u64);
            let block = u64::from(sound.format().block_len());
            let mut random = Random::from_number(u64::from(rate_hz));
            let mut out = Vec::new();
            for _ in 0..50 {
                let from = random.below(sound.len() / block) * block;
                let len = random.below(4_000) * block;
                sound.bytes(from, len as usize, &mut out).unwrap();
                let end = whole.len().min((from + len) as usize);
                assert_eq!(out, whole[from as usize..end]);
            }
        }
    }
}
