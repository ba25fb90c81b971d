//! What a flow carries, as bytes: nothing known, video or audio.
//!
//! ```text
//!  raw    | 0 |
//!  video  | 1 | fourcc 4 | width u32 | height u32 | rate u32 | scale u32 |
//!  audio  | 2 | encoding u8 | channels u16 | rate u32 | channel mask u32 | valid bits u16 |
//! ```
//!
//! Who makes a format of it checks the numbers.
//!
//! Source: docs/protocol.md, "Fields".

use crate::Malformed;
use crate::bytes::Reader;

/// How one sample of one channel is stored; whole numbers and floats are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleEncoding {
    /// Unsigned 8 bit integer.
    U8,
    /// Signed 16 bit integer.
    S16,
    /// Signed 24 bit integer in 3 bytes.
    S24,
    /// Signed 32 bit integer.
    S32,
    /// 32 bit float.
    F32,
    /// 64 bit float.
    F64,
    /// 8 bits, G.711 mu-law.
    MuLaw,
    /// 8 bits, G.711 A-law.
    ALaw,
}

impl SampleEncoding {
    /// Every encoding; the index is the number on the wire.
    pub const ALL: [Self; 8] =
        [Self::U8, Self::S16, Self::S24, Self::S32, Self::F32, Self::F64, Self::MuLaw, Self::ALaw];
}

/// What a flow carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Medium {
    /// Bytes of which nothing is known.
    #[default]
    Raw,
    /// Pictures.
    Video {
        /// The four character code of the codec; "JPEG" for a still, one picture that stays.
        fourcc: [u8; 4],
        /// Width of a picture, in pixels.
        width: u32,
        /// Height of a picture, in pixels.
        height: u32,
        /// Numerator of the pictures per second.
        rate: u32,
        /// Denominator of the pictures per second.
        scale: u32,
    },
    /// Sound whose samples all have one size.
    Audio {
        /// How a sample is stored.
        encoding: SampleEncoding,
        /// Number of channels, interleaved.
        channels: u16,
        /// Samples per second of each channel, in hertz.
        rate_hz: u32,
        /// Speaker positions as in `WAVEFORMATEXTENSIBLE`; 0 when not said.
        channel_mask: u32,
        /// Bits of a sample that carry signal.
        valid_bits: u16,
    },
}

impl Medium {
    /// Reads a medium that fills `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the length is wrong, or the kind or encoding is not known.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let medium = match reader.u8()? {
            0 => Self::Raw,
            1 => Self::Video {
                fourcc: reader.array()?,
                width: reader.u32()?,
                height: reader.u32()?,
                rate: reader.u32()?,
                scale: reader.u32()?,
            },
            2 => Self::Audio {
                encoding: read_encoding(&mut reader)?,
                channels: reader.u16()?,
                rate_hz: reader.u32()?,
                channel_mask: reader.u32()?,
                valid_bits: reader.u16()?,
            },
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(medium)
    }

    /// Appends the bytes.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match *self {
            Self::Raw => into.push(0),
            Self::Video { fourcc, width, height, rate, scale } => {
                into.push(1);
                into.extend_from_slice(&fourcc);
                for number in [width, height, rate, scale] {
                    into.extend_from_slice(&number.to_be_bytes());
                }
            }
            Self::Audio { encoding, channels, rate_hz, channel_mask, valid_bits } => {
                into.extend_from_slice(&[2, encoding as u8]);
                into.extend_from_slice(&channels.to_be_bytes());
                into.extend_from_slice(&rate_hz.to_be_bytes());
                into.extend_from_slice(&channel_mask.to_be_bytes());
                into.extend_from_slice(&valid_bits.to_be_bytes());
            }
        }
    }
}

fn read_encoding(reader: &mut Reader<'_>) -> Result<SampleEncoding, Malformed> {
    let number = usize::from(reader.u8()?);
    SampleEncoding::ALL.get(number).copied().ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(medium: Medium) -> Vec<u8> {
        let mut bytes = Vec::new();
        medium.encode(&mut bytes);
        bytes
    }

    #[test]
    fn the_media_have_the_bytes_of_the_page() {
        let video =
            Medium::Video { fourcc: *b"MJPG", width: 640, height: 480, rate: 30_000, scale: 1_001 };
        let mut expected = vec![1];
        expected.extend_from_slice(
            b"MJPG\x00\x00\x02\x80\x00\x00\x01\xE0\x00\x00\x75\x30\x00\x00\x03\xE9",
        );
        assert_eq!(bytes(video), expected);
        let audio = Medium::Audio {
            encoding: SampleEncoding::S24,
            channels: 2,
            rate_hz: 48_000,
            channel_mask: 3,
            valid_bits: 20,
        };
        assert_eq!(bytes(audio), [2, 2, 0, 2, 0, 0, 0xBB, 0x80, 0, 0, 0, 3, 0, 20]);
        assert_eq!(bytes(Medium::Raw), [0]);
        for medium in [Medium::Raw, video, audio] {
            assert_eq!(Medium::decode(&bytes(medium)), Ok(medium));
        }
    }

    #[test]
    fn an_encoding_has_its_index_as_number() {
        for (number, encoding) in SampleEncoding::ALL.into_iter().enumerate() {
            assert_eq!(encoding as usize, number);
        }
    }

    #[test]
    fn other_lengths_kinds_and_encodings_are_refused() {
        let audio = [2, 7, 0, 2, 0, 0, 0xBB, 0x80, 0, 0, 0, 3, 0, 20];
        assert!(Medium::decode(&audio).is_ok());
        for len in 0..audio.len() {
            assert_eq!(Medium::decode(&audio[..len]), Err(Malformed), "{len}");
        }
        assert_eq!(Medium::decode(&[audio.as_slice(), &[0]].concat()), Err(Malformed));
        assert_eq!(Medium::decode(&[[2, 8].as_slice(), &audio[2..]].concat()), Err(Malformed));
        assert_eq!(Medium::decode(&[3]), Err(Malformed));
        assert_eq!(Medium::decode(&[0, 0]), Err(Malformed));
    }
}
