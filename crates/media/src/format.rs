//! What a medium is: plain descriptions of video and audio, with the arithmetic of their time.
//!
//! The structs have public fields and no hidden state, so that others can put them on a wire.
//!
//! ```text
//!   video   picture i is shown at  i * scale / rate  seconds
//!   audio   block = one sample of every channel; byte b belongs to block b / block_len
//! ```
//!
//! Invariants: a format that a reader returned, or that [`AudioFormat::check`] and
//! [`VideoFormat::check`] accepted, never divides by zero; time arithmetic saturates.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::fmt;

/// The most channels an [`AudioFormat`] may have.
pub const CHANNELS_MAX: u16 = 256;
/// The highest sample rate an [`AudioFormat`] may have, in hertz.
pub const RATE_HZ_MAX: u32 = 4_000_000;
/// The largest width and height of a picture, in pixels (the limit of JPEG).
pub const PICTURE_SIDE_MAX: u32 = 65_535;

/// A four character code: the name of a chunk or of a codec.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FourCc(pub [u8; 4]);

impl FourCc {
    /// Motion JPEG, the code that every player knows.
    pub const MJPG: Self = Self(*b"MJPG");
    /// One JPEG picture that is shown for as long as there is nothing else: a still.
    pub const JPEG: Self = Self(*b"JPEG");

    /// Whether this code names a codec whose pictures are JPEG files.
    #[must_use]
    pub fn is_motion_jpeg(self) -> bool {
        const CODES: [&[u8; 4]; 5] = [b"MJPG", b"JPEG", b"AVRN", b"DMB1", b"IJPG"];
        CODES.iter().any(|code| self.0.eq_ignore_ascii_case(*code))
    }

    /// Whether all four characters are printable, as those of every real chunk are.
    #[must_use]
    pub fn is_printable(self) -> bool {
        self.0.iter().all(|byte| (0x20..0x7F).contains(byte))
    }
}

impl fmt::Display for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.escape_ascii())
    }
}

impl fmt::Debug for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How one sample of one channel is stored; whole numbers and floats are little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SampleEncoding {
    /// Unsigned 8 bit integer, silence is 128.
    U8,
    /// Signed 16 bit integer.
    S16,
    /// Signed 24 bit integer in 3 bytes.
    S24,
    /// Signed 32 bit integer.
    S32,
    /// 32 bit float, full scale is 1.
    F32,
    /// 64 bit float, full scale is 1.
    F64,
    /// 14 bits in 8, ITU-T G.711 mu-law.
    MuLaw,
    /// 13 bits in 8, ITU-T G.711 A-law.
    ALaw,
}

impl SampleEncoding {
    /// Every encoding.
    pub const ALL: [Self; 8] =
        [Self::U8, Self::S16, Self::S24, Self::S32, Self::F32, Self::F64, Self::MuLaw, Self::ALaw];

    /// Bytes of one sample.
    #[must_use]
    pub const fn byte_len(self) -> u16 {
        match self {
            Self::U8 | Self::MuLaw | Self::ALaw => 1,
            Self::S16 => 2,
            Self::S24 => 3,
            Self::S32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Bits of one sample.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.byte_len().saturating_mul(8)
    }

    /// Whether samples are floating point numbers.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether samples are companded: 8 bits on a curve, as telephones have them.
    #[must_use]
    pub const fn is_companded(self) -> bool {
        matches!(self, Self::MuLaw | Self::ALaw)
    }

    /// The byte that silence is made of.
    #[must_use]
    pub const fn silence(self) -> u8 {
        match self {
            Self::U8 => 0x80,
            Self::MuLaw => 0xFF,
            Self::ALaw => 0xD5,
            Self::S16 | Self::S24 | Self::S32 | Self::F32 | Self::F64 => 0,
        }
    }
}

impl fmt::Display for SampleEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U8 => "u8",
            Self::S16 => "s16",
            Self::S24 => "s24",
            Self::S32 => "s32",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::MuLaw => "mu-law",
            Self::ALaw => "A-law",
        })
    }
}

/// Audio whose samples all have one size: PCM, linear or companded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AudioFormat {
    /// How a sample is stored.
    pub encoding: SampleEncoding,
    /// Number of channels, interleaved, 1 to [`CHANNELS_MAX`].
    pub channels: u16,
    /// Samples per second of each channel, in hertz, 1 to [`RATE_HZ_MAX`].
    pub rate_hz: u32,
    /// Speaker positions as in `WAVEFORMATEXTENSIBLE`; 0 when not said.
    pub channel_mask: u32,
    /// Bits of a sample that carry signal, at most those of the encoding.
    pub valid_bits: u16,
}

impl AudioFormat {
    /// A format with all bits valid and the usual speakers for that number of channels.
    #[must_use]
    pub fn new(encoding: SampleEncoding, channels: u16, rate_hz: u32) -> Self {
        let channel_mask = default_channel_mask(channels);
        Self { encoding, channels, rate_hz, channel_mask, valid_bits: encoding.bits() }
    }

    /// Bytes of one block, that is of one sample of every channel.
    #[must_use]
    pub fn block_len(&self) -> u32 {
        u32::from(self.channels).saturating_mul(u32::from(self.encoding.byte_len()))
    }

    /// Bytes of one second.
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        u64::from(self.block_len()).saturating_mul(u64::from(self.rate_hz))
    }

    /// Media time of the byte at `byte_offset`, in nanoseconds; 0 for a rate of 0.
    #[must_use]
    pub fn time_ns(&self, byte_offset: u64) -> u64 {
        mul_div(byte_offset, 1_000_000_000, self.bytes_per_second())
    }

    /// Offset of the first byte of the block that sounds at `time_ns`.
    #[must_use]
    pub fn byte_offset_at(&self, time_ns: u64) -> u64 {
        mul_div(time_ns, u64::from(self.rate_hz), 1_000_000_000)
            .saturating_mul(u64::from(self.block_len()))
    }

    /// Whether channels, rate and valid bits are in their bounds.
    ///
    /// # Errors
    /// The first field that is not, with its value.
    pub fn check(&self) -> Result<(), FormatError> {
        if self.channels == 0 || self.channels > CHANNELS_MAX {
            return Err(FormatError::Channels { found: self.channels });
        }
        if self.rate_hz == 0 || self.rate_hz > RATE_HZ_MAX {
            return Err(FormatError::SampleRate { found_hz: self.rate_hz });
        }
        if self.valid_bits == 0 || self.valid_bits > self.encoding.bits() {
            let container = self.encoding.bits();
            return Err(FormatError::ValidBits { found: self.valid_bits, container });
        }
        Ok(())
    }
}

/// The speakers that this number of channels usually means; 0 when there is no usual meaning.
#[must_use]
pub fn default_channel_mask(channels: u16) -> u32 {
    match channels {
        1 => 0x4,
        2 => 0x3,
        4 => 0x33,
        6 => 0x3F,
        8 => 0x63F,
        _ => 0,
    }
}

/// Motion JPEG video, or a still.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VideoFormat {
    /// The code of the codec.
    pub fourcc: FourCc,
    /// Width of a picture in pixels, 1 to [`PICTURE_SIDE_MAX`].
    pub width: u32,
    /// Height of a picture in pixels, 1 to [`PICTURE_SIDE_MAX`].
    pub height: u32,
    /// Numerator of the pictures per second, not 0: `rate / scale`.
    pub rate: u32,
    /// Denominator of the pictures per second, not 0.
    pub scale: u32,
    /// Number of pictures, repeated ones included; 0 when not known yet.
    pub frame_count: u64,
}

impl VideoFormat {
    /// Motion JPEG of that size at `rate / scale` pictures per second, length not known.
    #[must_use]
    pub fn new(width: u32, height: u32, rate: u32, scale: u32) -> Self {
        Self { fourcc: FourCc::MJPG, width, height, rate, scale, frame_count: 0 }
    }

    /// One JPEG picture of that size. Its time is of no matter: it stays until something ends it.
    #[must_use]
    pub fn still(width: u32, height: u32) -> Self {
        Self { fourcc: FourCc::JPEG, frame_count: 1, ..Self::new(width, height, 25, 1) }
    }

    /// Whether this is a still, as far as its code says.
    #[must_use]
    pub fn is_still(&self) -> bool {
        self.fourcc == FourCc::JPEG
    }

    /// Media time of picture `index`, in nanoseconds (saturating); 0 for a rate of 0.
    #[must_use]
    pub fn time_ns(&self, index: u64) -> u64 {
        let tick_ns = u64::from(self.scale).saturating_mul(1_000_000_000);
        mul_div(index, tick_ns, u64::from(self.rate))
    }

    /// Index of the picture that is shown at `time_ns`, possibly beyond the last one.
    #[must_use]
    pub fn index_at(&self, time_ns: u64) -> u64 {
        let tick_ns = u64::from(self.scale).saturating_mul(1_000_000_000);
        // `time_ns` rounds down, so everything within that nanosecond counts as reached.
        let product = u128::from(time_ns).saturating_add(1).saturating_mul(u128::from(self.rate));
        let index = product.saturating_sub(1).checked_div(u128::from(tick_ns)).unwrap_or(0);
        u64::try_from(index).unwrap_or(u64::MAX)
    }

    /// Time from the first picture to the end of the last one, in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.time_ns(self.frame_count)
    }

    /// Whether codec, size and rate are in their bounds.
    ///
    /// # Errors
    /// The first field that is not, with its value.
    pub fn check(&self) -> Result<(), FormatError> {
        if !self.fourcc.is_motion_jpeg() {
            return Err(FormatError::Codec { name: crate::codec::video_name(self.fourcc) });
        }
        let sides = 1..=PICTURE_SIDE_MAX;
        if !sides.contains(&self.width) || !sides.contains(&self.height) {
            return Err(FormatError::PictureSize { width: self.width, height: self.height });
        }
        if self.rate == 0 || self.scale == 0 {
            return Err(FormatError::PictureRate { rate: self.rate, scale: self.scale });
        }
        Ok(())
    }
}

/// One medium.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// Pictures.
    Video(VideoFormat),
    /// Sound.
    Audio(AudioFormat),
}

impl Format {
    /// Whether every field is in its bounds.
    ///
    /// # Errors
    /// The first field that is not, with its value.
    pub fn check(&self) -> Result<(), FormatError> {
        match self {
            Self::Video(video) => video.check(),
            Self::Audio(audio) => audio.check(),
        }
    }
}

/// Why a format is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// A codec that is neither Motion JPEG nor PCM, linear or companded.
    Codec {
        /// Its name and its code.
        name: String,
    },
    /// Too few or too many channels.
    Channels {
        /// Channels found.
        found: u16,
    },
    /// A sample rate out of bounds.
    SampleRate {
        /// Rate found, in hertz.
        found_hz: u32,
    },
    /// A sample size that no encoding has.
    SampleBits {
        /// Bits found.
        found: u16,
    },
    /// A block that is not one sample of every channel.
    BlockLen {
        /// Bytes found.
        found: u16,
        /// Bytes that channels and sample size make.
        expected: u32,
    },
    /// More valid bits than the sample has, or none.
    ValidBits {
        /// Valid bits found.
        found: u16,
        /// Bits of the sample.
        container: u16,
    },
    /// A picture of no or of too many pixels.
    PictureSize {
        /// Width found, in pixels.
        width: u32,
        /// Height found, in pixels.
        height: u32,
    },
    /// A picture rate with a zero in it.
    PictureRate {
        /// Numerator found.
        rate: u32,
        /// Denominator found.
        scale: u32,
    },
    /// A format description that is shorter than its kind needs.
    Short {
        /// Bytes found.
        found: usize,
        /// Bytes needed.
        expected: usize,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codec { name } => {
                write!(f, "the codec is {name}, expected Motion JPEG, PCM, mu-law or A-law")
            }
            Self::Channels { found } => {
                write!(f, "{found} channels, expected 1 to {CHANNELS_MAX}")
            }
            Self::SampleRate { found_hz } => {
                write!(f, "a sample rate of {found_hz} Hz, expected 1 to {RATE_HZ_MAX}")
            }
            Self::SampleBits { found } => {
                write!(f, "samples of {found} bits, expected 8, 16, 24, 32 or float 32, 64")
            }
            Self::BlockLen { found, expected } => {
                write!(f, "a block align of {found} bytes, expected {expected}")
            }
            Self::ValidBits { found, container } => {
                write!(f, "{found} valid bits in a sample of {container}")
            }
            Self::PictureSize { width, height } => {
                write!(f, "pictures of {width}x{height}, expected sides of 1 to {PICTURE_SIDE_MAX}")
            }
            Self::PictureRate { rate, scale } => {
                write!(f, "a picture rate of {rate}/{scale}, expected neither to be 0")
            }
            Self::Short { found, expected } => {
                write!(f, "a format description of {found} bytes, expected at least {expected}")
            }
        }
    }
}

impl std::error::Error for FormatError {}

/// `a * b / c` without overflow on the way, saturating; 0 when `c` is 0.
pub(crate) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    let product = u128::from(a).saturating_mul(u128::from(b));
    u64::try_from(product.checked_div(u128::from(c)).unwrap_or(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_picture_finds_that_picture_again() {
        for (rate, scale) in
            [(25, 1), (30_000, 1_001), (24_000, 1_001), (1, 7), (1_000_000, 33_333)]
        {
            let video = VideoFormat::new(640, 360, rate, scale);
            for index in [0, 1, 2, 29, 30, 1_000, 107_892, 7_999_999] {
                assert_eq!(video.index_at(video.time_ns(index)), index, "{rate}/{scale}");
            }
        }
    }

    #[test]
    fn the_time_just_before_a_picture_finds_the_one_before() {
        let video = VideoFormat::new(640, 360, 25, 1);
        assert_eq!(video.index_at(39_999_998), 0);
        assert_eq!(video.index_at(40_000_000), 1);
        assert_eq!(video.index_at(u64::MAX), 461_168_601_842);
    }

    #[test]
    fn audio_time_counts_whole_blocks() {
        let audio = AudioFormat::new(SampleEncoding::S24, 6, 96_000);
        assert_eq!(audio.block_len(), 18);
        assert_eq!(audio.time_ns(18 * 96_000), 1_000_000_000);
        assert_eq!(audio.byte_offset_at(1_000_000_000), 18 * 96_000);
        assert_eq!(audio.byte_offset_at(10_417), 18);
    }

    #[test]
    fn zeros_from_outside_do_not_divide() {
        let audio = AudioFormat::new(SampleEncoding::S16, 0, 0);
        assert_eq!((audio.time_ns(9), audio.byte_offset_at(9)), (0, 0));
        let video = VideoFormat::new(1, 1, 0, 0);
        assert_eq!((video.time_ns(9), video.index_at(9)), (0, 0));
        assert!(video.check().is_err() && audio.check().is_err());
    }

    #[test]
    fn codes_with_strange_bytes_are_printed_escaped() {
        assert_eq!(FourCc(*b"MJPG").to_string(), "'MJPG'");
        assert_eq!(FourCc([0, b'a', 0xFF, b'\n']).to_string(), "'\\x00a\\xff\\n'");
        assert!(FourCc(*b"mjpg").is_motion_jpeg() && FourCc(*b"AVRn").is_motion_jpeg());
        assert!(!FourCc(*b"H264").is_motion_jpeg());
    }
}
