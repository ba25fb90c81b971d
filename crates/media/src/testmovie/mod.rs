//! Test movies: pictures and sound that are made, not filmed, and the same on every machine.
//!
//! Moving colour bars, a clock whose hand goes round once a second, a bouncing ball, the picture's
//! number in block digits, noise against too good a compression; a tone per channel with a click
//! each second, when the hand is up and a white square flashes. So loss, freezes, order and lip
//! synchrony are visible and audible.
//!
//! ```text
//!   +-----------------------------+
//!   | bars <- .---.            [] |   [] flashes with the click
//!   | bars <- | / | bars    o     |   hand: one turn a second, o: ball
//!   | bars <- '---' bars          |
//!   |=====grey ramp <- ===========|
//!   | 000042   noise noise noise  |
//!   +-----------------------------+
//! ```
//!
//! Invariants: whole numbers only, so the same parameters give the same bytes everywhere; picture
//! and sound of any index can be made alone, in any order.

mod font;
mod picture;
mod sound;

use std::fmt;
use std::io::{Seek, Write};
use std::time::Duration;

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use crate::avi;
use crate::format::{AudioFormat, Format, FormatError, SampleEncoding, VideoFormat, mul_div};
use crate::wav;
use picture::Painter;

/// The shortest side of a picture, in pixels.
pub const SIDE_MIN: u32 = 16;
/// The longest side of a picture, in pixels.
pub const SIDE_MAX: u32 = 4_096;

/// What a test movie is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestMovie {
    /// Width in pixels, [`SIDE_MIN`] to [`SIDE_MAX`].
    pub width: u32,
    /// Height in pixels, [`SIDE_MIN`] to [`SIDE_MAX`].
    pub height: u32,
    /// Numerator of the pictures per second.
    pub rate: u32,
    /// Denominator of the pictures per second.
    pub scale: u32,
    /// Length; what is left after the last whole picture is left out.
    pub duration: Duration,
    /// JPEG quality, 1 to 100.
    pub quality: u8,
    /// The sound, 16 bit; none when not given.
    pub sound: Option<TestSound>,
}

/// What the sound of a test movie is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TestSound {
    /// Samples per second of each channel, in hertz.
    pub rate_hz: u32,
    /// Number of channels.
    pub channels: u16,
}

impl Default for TestMovie {
    /// Ten seconds of 640x360 at 25 pictures a second, about 4 Mbit/s, with stereo at 48 kHz.
    fn default() -> Self {
        Self {
            width: 640,
            height: 360,
            rate: 25,
            scale: 1,
            duration: Duration::from_secs(10),
            quality: 80,
            sound: Some(TestSound { rate_hz: 48_000, channels: 2 }),
        }
    }
}

/// One picture and the sound that goes with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaFrame {
    /// Number of the picture, from 0.
    pub index: u64,
    /// Media time of the picture, in nanoseconds.
    pub media_time_ns: u64,
    /// The picture, JPEG.
    pub picture: Vec<u8>,
    /// The sound until the next picture, interleaved 16 bit samples; empty without sound.
    pub sound: Vec<u8>,
}

/// Why a test movie cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum TestMovieError {
    /// A width or height out of bounds.
    Size {
        /// Width asked for, in pixels.
        width: u32,
        /// Height asked for, in pixels.
        height: u32,
    },
    /// A quality out of bounds.
    Quality {
        /// Quality asked for.
        quality: u8,
    },
    /// A rate or a number of channels out of bounds.
    Format(FormatError),
    /// The JPEG encoder refused.
    Encode(jpeg_encoder::EncodingError),
    /// The AVI file could not be written.
    Avi(avi::WriteError),
    /// The WAV file could not be written.
    Wav(wav::WriteError),
    /// Sound was asked of a movie without sound.
    NoSound,
}

impl fmt::Display for TestMovieError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { width, height } => {
                write!(f, "pictures of {width}x{height}, expected {SIDE_MIN} to {SIDE_MAX} a side")
            }
            Self::Quality { quality } => write!(f, "a quality of {quality}, expected 1 to 100"),
            Self::Format(error) => write!(f, "{error}"),
            Self::Encode(error) => write!(f, "the JPEG encoder failed: {error}"),
            Self::Avi(error) => write!(f, "{error}"),
            Self::Wav(error) => write!(f, "{error}"),
            Self::NoSound => write!(f, "the test movie has no sound; give it a rate and channels"),
        }
    }
}

impl std::error::Error for TestMovieError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Format(error) => Some(error),
            Self::Encode(error) => Some(error),
            Self::Avi(error) => Some(error),
            Self::Wav(error) => Some(error),
            Self::Size { .. } | Self::Quality { .. } | Self::NoSound => None,
        }
    }
}

impl From<avi::WriteError> for TestMovieError {
    fn from(error: avi::WriteError) -> Self {
        Self::Avi(error)
    }
}

impl From<wav::WriteError> for TestMovieError {
    fn from(error: wav::WriteError) -> Self {
        Self::Wav(error)
    }
}

impl TestMovie {
    /// What its pictures are.
    #[must_use]
    pub fn video_format(&self) -> VideoFormat {
        let mut video = VideoFormat::new(self.width, self.height, self.rate, self.scale);
        video.frame_count =
            video.index_at(u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX));
        video
    }

    /// What its sound is; nothing when it has none.
    #[must_use]
    pub fn audio_format(&self) -> Option<AudioFormat> {
        let sound = self.sound?;
        Some(AudioFormat::new(SampleEncoding::S16, sound.channels, sound.rate_hz))
    }

    /// The machine that makes it.
    ///
    /// # Errors
    /// A parameter out of bounds.
    pub fn generator(&self) -> Result<Generator, TestMovieError> {
        let sides = SIDE_MIN..=SIDE_MAX;
        if !sides.contains(&self.width) || !sides.contains(&self.height) {
            return Err(TestMovieError::Size { width: self.width, height: self.height });
        }
        if !(1..=100).contains(&self.quality) {
            return Err(TestMovieError::Quality { quality: self.quality });
        }
        let (video, audio) = (self.video_format(), self.audio_format());
        video.check().map_err(TestMovieError::Format)?;
        audio.as_ref().map_or(Ok(()), AudioFormat::check).map_err(TestMovieError::Format)?;
        let painter = Painter::new(self.width as usize, self.height as usize);
        Ok(Generator { quality: self.quality, video, audio, painter, next_index: 0 })
    }

    /// Writes the whole movie as an AVI file: stream 0 the pictures, stream 1 the sound if any.
    ///
    /// # Errors
    /// A parameter out of bounds, or the destination's error.
    pub fn write_avi<W: Write + Seek>(&self, out: W) -> Result<W, TestMovieError> {
        self.write_avi_telling(out, |_| {})
    }

    /// The same; `written` is told the index of each picture that was.
    ///
    /// # Errors
    /// As [`TestMovie::write_avi`].
    pub fn write_avi_telling<W: Write + Seek>(
        &self,
        out: W,
        mut written: impl FnMut(u64),
    ) -> Result<W, TestMovieError> {
        let generator = self.generator()?;
        let mut streams = vec![Format::Video(generator.video.clone())];
        streams.extend(generator.audio.clone().map(Format::Audio));
        let has_sound = streams.len() > 1;
        let mut writer = avi::Writer::create(out, &streams)?;
        for media in generator {
            writer.video_frame(0, &media.picture)?;
            if has_sound {
                writer.audio(1, &media.sound)?;
            }
            written(media.index);
        }
        Ok(writer.finish()?)
    }

    /// Writes the sound of the movie as a WAV file.
    ///
    /// # Errors
    /// No sound, a parameter out of bounds, or the destination's error.
    pub fn write_wav<W: Write + Seek>(&self, out: W) -> Result<W, TestMovieError> {
        let generator = self.generator()?;
        let format = generator.audio.clone().ok_or(TestMovieError::NoSound)?;
        let mut writer = wav::Writer::create(out, &format)?;
        let mut sound = Vec::new();
        for index in 0..generator.video.frame_count {
            generator.sound(index, &mut sound);
            writer.audio(&sound)?;
        }
        Ok(writer.finish()?)
    }
}

/// Makes the pictures and the sound of a test movie: any one alone, or all in order.
#[derive(Debug)]
pub struct Generator {
    quality: u8,
    video: VideoFormat,
    audio: Option<AudioFormat>,
    painter: Painter,
    next_index: u64,
}

impl Generator {
    /// What the pictures are.
    #[must_use]
    pub fn video_format(&self) -> &VideoFormat {
        &self.video
    }

    /// What the sound is; nothing when there is none.
    #[must_use]
    pub fn audio_format(&self) -> Option<&AudioFormat> {
        self.audio.as_ref()
    }

    /// Puts picture `index` in `out`, as baseline JPEG with 4:2:0 and the standard Huffman tables.
    /// Indexes beyond the end are made too.
    ///
    /// # Errors
    /// None that the parameters checked before do not exclude; else the encoder's.
    pub fn picture(&mut self, index: u64, out: &mut Vec<u8>) -> Result<(), TestMovieError> {
        out.clear();
        let time_ns = self.video.time_ns(index);
        let (width, height) = (self.video.width as u16, self.video.height as u16);
        let pixels = self.painter.paint(index, time_ns);
        let mut encoder = Encoder::new(out, self.quality);
        encoder.set_sampling_factor(SamplingFactor::F_2_2);
        encoder.encode(pixels, width, height, ColorType::Rgb).map_err(TestMovieError::Encode)
    }

    /// Puts the sound from picture `index` to the next one in `out`; none without sound.
    pub fn sound(&self, index: u64, out: &mut Vec<u8>) {
        out.clear();
        if let Some(audio) = &self.audio {
            let from = self.sample_at(audio, index);
            sound::render(audio, from, self.sample_at(audio, index + 1), out);
        }
    }

    /// Picture `index` and its sound.
    ///
    /// # Errors
    /// As [`Generator::picture`].
    pub fn media_frame(&mut self, index: u64) -> Result<MediaFrame, TestMovieError> {
        let (mut picture, mut sound) = (Vec::new(), Vec::new());
        self.picture(index, &mut picture)?;
        self.sound(index, &mut sound);
        Ok(MediaFrame { index, media_time_ns: self.video.time_ns(index), picture, sound })
    }

    /// The first sample that belongs to picture `index`.
    fn sample_at(&self, audio: &AudioFormat, index: u64) -> u64 {
        let samples = u64::from(self.video.scale) * u64::from(audio.rate_hz);
        mul_div(index, samples, u64::from(self.video.rate))
    }
}

impl Iterator for Generator {
    type Item = MediaFrame;

    /// The next picture with its sound, until the end of the movie.
    fn next(&mut self) -> Option<MediaFrame> {
        if self.next_index >= self.video.frame_count {
            return None;
        }
        let media = self.media_frame(self.next_index).ok()?;
        self.next_index += 1;
        Some(media)
    }
}

/// Sine of a phase of which 2^32 are a full turn, in units of 1/32767.
///
/// Bhaskara's approximation, off by at most 0.2 %: whole numbers are the same on every machine.
fn sine(phase: u32) -> i32 {
    const HALF: i64 = 1 << 15;
    let x = i64::from(phase >> 16);
    let (within, sign) = if x < HALF { (x, 1) } else { (x - HALF, -1) };
    let product = within * (HALF - within);
    (sign * (4 * product * 32_767) / (HALF * HALF * 5 / 4 - product)) as i32
}

#[cfg(test)]
mod tests;
