//! Media that are made while they are sent: the test movie, in any order.
//!
//! [`Pictures`] and [`Sound`] over `dacapo_media::testmovie`, so that two hosts can be tried
//! without a file, and what arrives can be compared with what anybody can make.

use super::audio::AudioSource;
use super::entry::{AccessEntry, AccessParam, AccessSpec, Carries, Wrong};
use super::found::{Access, Found, Opening};
use super::media::{Pictures, Sound};
use super::video::VideoSource;
use dacapo_core::Source;
use dacapo_media::testmovie::{Generator, TestMovieError};
use dacapo_media::{AudioFormat, TestMovie, VideoFormat};
use dacapo_qos::{StreamKind, StreamSelector};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the catalogue is told.
pub static SPEC: AccessSpec = AccessSpec {
    name: "test",
    id: 0x0002,
    summary: "media that are made while they are sent: the test movie",
    sends: true,
    takes: false,
    carries: &[Carries::Pictures, Carries::Sound],
    params: &[
        AccessParam::Text { name: "stream", summary: "which of its streams: video or audio" },
        AccessParam::Text { name: "duration", summary: "how long it lasts" },
    ],
};

/// The catalogue's entry.
#[must_use]
pub fn entries() -> Vec<AccessEntry> {
    vec![AccessEntry::new(&SPEC, |setup| match setup.asked {
        Some((_, dacapo_qos::Source::Test { stream, duration, .. })) => {
            let ns = duration.map(|duration| duration.value);
            find(stream.value, ns).map_err(|text| Wrong::at("stream", text))
        }
        _ => Err(Wrong::new("the test movie is asked for by a session file only")),
    })]
}

/// The pictures of a movie, for whoever joins.
#[derive(Debug)]
struct PicturesOf(TestMovie);

impl Access for PicturesOf {
    fn describe(&self) -> String {
        "the test movie".to_owned()
    }

    fn source(&self, to: &Opening<'_>) -> Result<Box<dyn Source>, String> {
        let pictures = TestPictures::new(&self.0).map_err(|error| error.to_string())?;
        let source = VideoSource::new(pictures, to.extent, to.speed);
        Ok(Box::new(source.beginning(to.begin.clone())))
    }

    fn group(&self) -> Option<PathBuf> {
        // No file has this path: an empty one cannot be opened.
        Some(PathBuf::new())
    }
}

/// The sound of a movie, for whoever joins.
#[derive(Debug)]
struct SoundOf(TestMovie);

impl Access for SoundOf {
    fn describe(&self) -> String {
        "the test movie".to_owned()
    }

    fn source(&self, to: &Opening<'_>) -> Result<Box<dyn Source>, String> {
        let sound = TestSound::new(&self.0).map_err(|error| error.to_string())?;
        let len = to.flow.unit_len_max;
        let source = AudioSource::new(sound, to.extent, to.speed, len);
        Ok(Box::new(source.beginning(to.begin.clone())))
    }

    fn group(&self) -> Option<PathBuf> {
        Some(PathBuf::new())
    }
}

fn find(stream: StreamSelector, duration_ns: Option<u64>) -> Result<Found, String> {
    if stream.index > 0 {
        return Err(format!("the test movie has no {stream}, only video and audio"));
    }
    let mut movie = TestMovie::default();
    if let Some(ns) = duration_ns {
        movie.duration = Duration::from_nanos(ns);
    }
    if stream.kind == StreamKind::Audio {
        return sound_found(&movie, Arc::new(SoundOf(movie.clone())));
    }
    let video = movie.video_format();
    if video.frame_count == 0 {
        return Err("the duration is shorter than one picture (40 ms)".to_owned());
    }
    pictures_found(&movie, video, Arc::new(PicturesOf(movie.clone())))
}

/// The sound of a test movie, as a medium.
pub(super) fn sound_found(movie: &TestMovie, access: Arc<dyn Access>) -> Result<Found, String> {
    let generator = movie.generator().map_err(|error| error.to_string())?;
    let audio = movie.audio_format().ok_or("the test movie has no sound")?;
    let len = audio.byte_offset_at(generator.video_format().duration_ns());
    Ok(Found::audio(access, audio, len))
}

/// The pictures of a test movie, as a medium of this format, which has at least one.
pub(super) fn pictures_found(
    movie: &TestMovie,
    video: VideoFormat,
    access: Arc<dyn Access>,
) -> Result<Found, String> {
    let mut generator = movie.generator().map_err(|error| error.to_string())?;
    let mut lens = Vec::new();
    let mut picture = Vec::new();
    for index in (0..video.frame_count).take(4) {
        generator.picture(index, &mut picture).map_err(|error| error.to_string())?;
        lens.push(u32::try_from(picture.len()).unwrap_or(u32::MAX));
    }
    let mut found = Found::video(access, video);
    found.measure(lens.into_iter());
    // The others are not known until they are made.
    found.picture_len_max = found.picture_len_max.saturating_mul(4);
    Ok(found)
}

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
