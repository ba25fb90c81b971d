//! Tells what a file is from its first bytes, and how to convert what cannot be played.
//!
//! Invariants: at most [`HEAD_LEN`] bytes are read. Source: the magic numbers of each format's
//! specification, as in `file(1)`.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::fmt;

use crate::read::{Input, ReadAt, ReadError};

/// Bytes that are looked at.
pub const HEAD_LEN: usize = 512;
/// Fewer bytes than this are no file of any kind.
const LEN_MIN: usize = 12;

/// A container that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// [`crate::avi::Reader`] reads it.
    Avi,
    /// [`crate::wav::Reader`] reads it.
    Wav,
    /// [`crate::au::Reader`] reads it.
    Au,
    /// [`crate::mjpeg::Reader`] reads it: one picture, or many one after the other.
    Jpeg,
}

/// Why a file cannot be played.
#[derive(Debug)]
#[non_exhaustive]
pub enum SniffError {
    /// It has no bytes.
    Empty,
    /// It has too few bytes to be anything.
    TooShort {
        /// Bytes found.
        len: usize,
    },
    /// A known kind that is not played here.
    Unsupported {
        /// Name of the kind.
        name: &'static str,
        /// The command that converts it.
        convert: &'static str,
    },
    /// Nothing that is known.
    Unknown {
        /// The first bytes.
        head: [u8; LEN_MIN],
    },
    /// It could not be read.
    Read(ReadError),
}

impl fmt::Display for SniffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the file is empty, expected {EXPECTED}"),
            Self::TooShort { len } => {
                write!(f, "the file has only {len} bytes, expected {EXPECTED} (12 at least)")
            }
            Self::Unsupported { name, convert } => {
                write!(f, "this is {name}, expected {EXPECTED}; convert it with: {convert}")
            }
            Self::Unknown { head } => {
                write!(f, "not a media file that is known here: expected RIFF, .snd or FF D8 FF ")?;
                write!(f, "at byte 0, found \"{}\"; ", head.escape_ascii())?;
                write!(f, "if ffmpeg can read it: {TO_AVI}")
            }
            Self::Read(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SniffError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            _ => None,
        }
    }
}

/// Tells what `input` is.
///
/// # Errors
/// Everything but AVI, WAV, AU and JPEG, with its name and the command that converts it where
/// known.
pub fn sniff<R: ReadAt>(input: R) -> Result<Kind, SniffError> {
    let mut head = [0; HEAD_LEN];
    let len = Input::new(input).fill(0, &mut head).map_err(SniffError::Read)?;
    sniff_head(head.get(..len).unwrap_or_default())
}

/// Tells what a file that begins with `head` is; [`HEAD_LEN`] bytes are enough.
///
/// # Errors
/// As [`sniff`].
pub fn sniff_head(head: &[u8]) -> Result<Kind, SniffError> {
    if head.is_empty() {
        return Err(SniffError::Empty);
    }
    let Some(start) = head.first_chunk::<LEN_MIN>() else {
        return Err(SniffError::TooShort { len: head.len() });
    };
    let (id, form) = (start.get(..4), start.get(8..));
    match (id.unwrap_or_default(), form.unwrap_or_default()) {
        (b"RIFF", b"AVI ") => return Ok(Kind::Avi),
        (b"RIFF" | b"RF64" | b"BW64", b"WAVE") => return Ok(Kind::Wav),
        (b".snd", _) => return Ok(Kind::Au),
        ([0xFF, 0xD8, 0xFF, _], _) => return Ok(Kind::Jpeg),
        _ => {}
    }
    // Transport streams repeat their one sync byte every 188 bytes.
    if head.first() == Some(&0x47) && head.get(188) == Some(&0x47) {
        let name = "an MPEG transport stream";
        return Err(SniffError::Unsupported { name, convert: TO_AVI });
    }
    let known = MAGICS.iter().find(|magic| magic.is_in(head));
    match known {
        Some(magic) => {
            Err(SniffError::Unsupported { name: magic.name, convert: magic.convert.line() })
        }
        None => Err(SniffError::Unknown { head: *start }),
    }
}

const EXPECTED: &str = "AVI, WAV, AU or JPEG";
const TO_AVI: &str = "ffmpeg -i INPUT -c:v mjpeg -q:v 3 -c:a pcm_s16le OUTPUT.avi";
const TO_WAV: &str = "ffmpeg -i INPUT -vn -c:a pcm_s16le OUTPUT.wav";
const TO_STILL: &str = "ffmpeg -i INPUT -frames:v 1 -c:v mjpeg -q:v 2 OUTPUT.jpg";

#[derive(Clone, Copy)]
enum Convert {
    Movie,
    Sound,
    Picture,
}

impl Convert {
    const fn line(self) -> &'static str {
        match self {
            Self::Movie => TO_AVI,
            Self::Sound => TO_WAV,
            Self::Picture => TO_STILL,
        }
    }
}

/// Bytes at a place that give a format away.
struct Magic {
    at: usize,
    bytes: &'static [u8],
    name: &'static str,
    convert: Convert,
}

impl Magic {
    fn is_in(&self, head: &[u8]) -> bool {
        head.get(self.at..).is_some_and(|tail| tail.starts_with(self.bytes))
    }
}

const fn magic(at: usize, bytes: &'static [u8], name: &'static str, convert: Convert) -> Magic {
    Magic { at, bytes, name, convert }
}

/// The first that fits wins, so longer ones come before shorter ones.
const MAGICS: &[Magic] = &[
    magic(4, b"ftypM4A", "MP4 audio", Convert::Sound),
    magic(4, b"ftypavif", "an AVIF picture", Convert::Picture),
    magic(4, b"ftypheic", "a HEIC picture", Convert::Picture),
    magic(4, b"ftypqt", "QuickTime (MOV)", Convert::Movie),
    magic(4, b"ftyp", "MP4", Convert::Movie),
    magic(4, b"moov", "QuickTime (MOV)", Convert::Movie),
    magic(4, b"mdat", "QuickTime (MOV)", Convert::Movie),
    magic(0, &[0x1A, 0x45, 0xDF, 0xA3], "Matroska or WebM", Convert::Movie),
    magic(28, b"OpusHead", "Ogg with Opus", Convert::Sound),
    magic(28, b"\x01vorbis", "Ogg with Vorbis", Convert::Sound),
    magic(0, b"OggS", "Ogg", Convert::Movie),
    magic(0, b"fLaC", "FLAC", Convert::Sound),
    magic(0, b"ID3", "MP3", Convert::Sound),
    magic(0, &[0xFF, 0xFB], "MP3", Convert::Sound),
    magic(0, &[0xFF, 0xFA], "MP3", Convert::Sound),
    magic(0, &[0xFF, 0xF3], "MP3", Convert::Sound),
    magic(0, &[0xFF, 0xF1], "AAC (ADTS)", Convert::Sound),
    magic(0, &[0xFF, 0xF9], "AAC (ADTS)", Convert::Sound),
    magic(0, b"\x89PNG\r\n\x1A\n", "a PNG picture", Convert::Picture),
    magic(0, b"GIF8", "GIF", Convert::Movie),
    magic(0, b"dns.", "little-endian AU", Convert::Sound),
    magic(8, b"AIFC", "AIFF-C", Convert::Sound),
    magic(8, b"AIFF", "AIFF", Convert::Sound),
    magic(0, b"caff", "Core Audio (CAF)", Convert::Sound),
    magic(0, b"wvpk", "WavPack", Convert::Sound),
    magic(0, b"riff\x2E\x91\xCF\x11", "Wave64", Convert::Sound),
    magic(0, b"RIFX", "big-endian WAV", Convert::Sound),
    magic(8, b"WEBP", "a WebP picture", Convert::Picture),
    magic(8, b"CDXA", "a video CD stream", Convert::Movie),
    magic(0, b"RIFF", "a RIFF file of another kind", Convert::Movie),
    magic(0, b"#!AMR", "AMR", Convert::Sound),
    magic(0, &[0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11], "ASF (WMV, WMA)", Convert::Movie),
    magic(0, b"FLV\x01", "Flash video", Convert::Movie),
    magic(0, b".RMF", "RealMedia", Convert::Movie),
    magic(0, &[0, 0, 1, 0xBA], "an MPEG program stream", Convert::Movie),
    magic(0, &[0, 0, 1, 0xB3], "an MPEG video stream", Convert::Movie),
    magic(0, &[0, 0, 0, 1, 0x67], "an H.264 stream", Convert::Movie),
    magic(0, b"DKIF", "IVF", Convert::Movie),
    magic(0, b"YUV4MPEG2", "raw YUV (Y4M)", Convert::Movie),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(head: &[u8]) -> Vec<u8> {
        let mut bytes = head.to_vec();
        bytes.resize(64, 0);
        bytes
    }

    #[test]
    fn the_kinds_that_are_played_are_told_apart() {
        assert_eq!(sniff(padded(b"RIFF\x00\x01\x00\x00AVI LIST")).unwrap(), Kind::Avi);
        assert_eq!(sniff(padded(b"RIFF\x00\x01\x00\x00WAVEfmt ")).unwrap(), Kind::Wav);
        assert_eq!(sniff(padded(b"RF64\xFF\xFF\xFF\xFFWAVEds64")).unwrap(), Kind::Wav);
        assert_eq!(sniff(padded(b".snd\x00\x00\x00\x18")).unwrap(), Kind::Au);
        assert_eq!(sniff(padded(b"\xFF\xD8\xFF\xE0")).unwrap(), Kind::Jpeg);
    }

    #[test]
    fn other_kinds_are_named_with_the_line_that_converts_them() {
        let cases: [(&[u8], &str, &str); 9] = [
            (b"\0\0\0\x20ftypisom", "MP4", TO_AVI),
            (b"\0\0\0\x20ftypM4A ", "MP4 audio", TO_WAV),
            (b"\0\0\0\x14ftypqt  ", "QuickTime", TO_AVI),
            (b"\x1A\x45\xDF\xA3", "Matroska", TO_AVI),
            (b"OggS\0", "Ogg", TO_AVI),
            (b"fLaC", "FLAC", TO_WAV),
            (b"ID3\x04", "MP3", TO_WAV),
            (b"\x89PNG\r\n\x1A\n", "PNG", TO_STILL),
            (b"dns.", "little-endian AU", TO_WAV),
        ];
        for (head, name, line) in cases {
            let text = sniff(padded(head)).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(line), "{text}");
        }
    }

    #[test]
    fn empty_short_and_unknown_files_say_so() {
        assert!(matches!(sniff(&b""[..]), Err(SniffError::Empty)));
        assert!(matches!(sniff(&b"RIFF"[..]), Err(SniffError::TooShort { len: 4 })));
        let text = sniff(&b"hello world, this is text"[..]).unwrap_err().to_string();
        assert!(text.contains("found \"hello world,\""), "{text}");
    }
}
