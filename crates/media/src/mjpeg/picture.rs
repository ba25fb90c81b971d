//! The markers of a JPEG picture: its size, and whether all of it is there.
//!
//! Nothing is decompressed, and a picture with these markers in place can still be damaged.
//!
//! ```text
//!   SOI  [marker length body] ...  SOFn (height, width)  ...  SOS  coded bytes, RSTn  EOI
//!   FFD8  FFxx   2 bytes           FFC0..CF not C4 C8 CC      FFDA  FF00 = a data byte   FFD9
//! ```
//!
//! Invariants: every step moves at least two bytes forward; no allocation. Source: ITU-T T.81,
//! annex B.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::fmt;

use super::{EOI, SOI, SOS, is_alone, is_frame_header};

/// Why a picture has no size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PictureError {
    /// It does not begin with the marker that every JPEG picture begins with.
    NotJpeg,
    /// It ends before the header with the size.
    Truncated {
        /// Where it ends, in bytes.
        offset: usize,
    },
    /// Something else where a marker was expected.
    MarkerExpected {
        /// Where, in bytes.
        offset: usize,
    },
    /// The coded bytes begin, or the picture ends, before a size was given.
    NoSize {
        /// Where, in bytes.
        offset: usize,
    },
    /// A width or height of 0.
    ZeroSize,
}

impl fmt::Display for PictureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJpeg => write!(f, "not a JPEG picture: expected FF D8 at byte 0"),
            Self::Truncated { offset } => {
                write!(f, "the JPEG picture ends at byte {offset}, before its frame header")
            }
            Self::MarkerExpected { offset } => {
                write!(f, "expected a JPEG marker (FF xx) at byte {offset}")
            }
            Self::NoSize { offset } => {
                write!(f, "expected a JPEG frame header before byte {offset}, found none")
            }
            Self::ZeroSize => write!(f, "the JPEG picture has a width or height of 0"),
        }
    }
}

impl std::error::Error for PictureError {}

/// Width and height of a JPEG picture, in pixels.
///
/// # Errors
/// When `picture` is not JPEG, or ends before the size.
pub fn picture_size(picture: &[u8]) -> Result<(u16, u16), PictureError> {
    let mut markers = Markers::new(picture).ok_or(PictureError::NotJpeg)?;
    loop {
        let marker = markers.next_marker()?;
        match marker.code {
            SOS | EOI => return Err(PictureError::NoSize { offset: marker.offset }),
            code if is_frame_header(code) => return size_of(&marker),
            _ => {}
        }
    }
}

fn size_of(marker: &Marker<'_>) -> Result<(u16, u16), PictureError> {
    let [_, h1, h0, w1, w0] =
        *marker.body.first_chunk::<5>().ok_or(PictureError::Truncated { offset: marker.offset })?;
    let (width, height) = (u16::from_be_bytes([w1, w0]), u16::from_be_bytes([h1, h0]));
    if width == 0 || height == 0 { Err(PictureError::ZeroSize) } else { Ok((width, height)) }
}

/// Whether `picture` is whole: from the first marker to the last one of every JPEG picture in it
/// (interlaced video has two), with nothing but padding after them.
#[must_use]
pub fn is_complete(picture: &[u8]) -> bool {
    let mut rest = picture;
    let mut picture_count = 0_u32;
    while let Some(mut markers) = Markers::new(rest) {
        match markers.skip_to_end() {
            Some(after) => rest = after,
            None => return false,
        }
        picture_count = picture_count.saturating_add(1);
        let padding = rest.iter().take_while(|byte| **byte == 0).count();
        rest = rest.get(padding..).unwrap_or_default();
    }
    picture_count > 0 && rest.iter().all(|byte| *byte == 0xFF)
}

/// A marker and the body that its length field gives it.
struct Marker<'a> {
    code: u8,
    offset: usize,
    body: &'a [u8],
}

/// Goes from marker to marker, outside of coded bytes.
struct Markers<'a> {
    picture: &'a [u8],
    at: usize,
}

impl<'a> Markers<'a> {
    fn new(picture: &'a [u8]) -> Option<Self> {
        picture.starts_with(&[0xFF, SOI]).then_some(Self { picture, at: 2 })
    }

    fn next_marker(&mut self) -> Result<Marker<'a>, PictureError> {
        let truncated = PictureError::Truncated { offset: self.picture.len() };
        let rest = self.picture.get(self.at..).ok_or(truncated)?;
        let fill = rest.iter().take_while(|byte| **byte == 0xFF).count();
        let code = *rest.get(fill).ok_or(truncated)?;
        if fill == 0 || code == 0 {
            return Err(PictureError::MarkerExpected { offset: self.at });
        }
        let offset = self.at;
        let start = self.at.saturating_add(fill).saturating_add(1);
        self.at = start;
        if is_alone(code) {
            return Ok(Marker { code, offset, body: &[] });
        }
        let len = self.picture.get(start..).and_then(<[u8]>::first_chunk).ok_or(truncated)?;
        let len = usize::from(u16::from_be_bytes(*len));
        let end = start.saturating_add(len.max(2));
        let body = self.picture.get(start.saturating_add(2)..end).ok_or(truncated)?;
        self.at = end;
        Ok(Marker { code, offset, body })
    }

    /// Goes to the end marker and returns what is after it; nothing when there is none.
    fn skip_to_end(&mut self) -> Option<&'a [u8]> {
        loop {
            match self.next_marker().ok()?.code {
                EOI => return self.picture.get(self.at..),
                SOS => self.skip_coded()?,
                _ => {}
            }
        }
    }

    /// Goes over coded bytes to the next marker that is not part of them.
    fn skip_coded(&mut self) -> Option<()> {
        loop {
            let rest = self.picture.get(self.at..)?;
            let found = rest.iter().position(|byte| *byte == 0xFF)?;
            let code = *rest.get(found.saturating_add(1))?;
            if !matches!(code, 0x00 | 0xD0..=0xD7 | 0xFF) {
                self.at = self.at.saturating_add(found);
                return Some(());
            }
            // A fill byte may be followed by the marker itself, so it is passed alone.
            let step: usize = if code == 0xFF { 1 } else { 2 };
            self.at = self.at.saturating_add(found).saturating_add(step);
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use jpeg_encoder::{ColorType, Encoder};

    fn picture(width: u16, height: u16) -> Vec<u8> {
        let pixels: Vec<u8> =
            (0..usize::from(width) * usize::from(height)).map(|i| (i * 37) as u8).collect();
        let mut out = Vec::new();
        Encoder::new(&mut out, 70).encode(&pixels, width, height, ColorType::Luma).unwrap();
        out
    }

    #[test]
    fn the_size_of_a_real_picture_is_found() {
        for (width, height) in [(1, 1), (17, 3), (320, 200), (1, 2_000)] {
            let bytes = picture(width, height);
            assert_eq!(picture_size(&bytes), Ok((width, height)));
            assert!(is_complete(&bytes));
        }
    }

    #[test]
    fn every_prefix_is_incomplete_and_has_the_size_or_an_error() {
        let bytes = picture(33, 21);
        for len in 0..bytes.len() {
            assert!(!is_complete(&bytes[..len]), "{len} bytes");
            if let Ok(size) = picture_size(&bytes[..len]) {
                assert_eq!(size, (33, 21));
            }
        }
    }

    #[test]
    fn two_fields_and_padding_are_complete_and_a_cut_second_field_is_not() {
        let mut bytes = picture(16, 8);
        let second = bytes.clone();
        bytes.extend_from_slice(&[0; 5]);
        assert!(is_complete(&bytes));
        bytes.extend_from_slice(&second);
        assert!(is_complete(&bytes));
        bytes.truncate(bytes.len() - 1);
        assert!(!is_complete(&bytes));
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(picture_size(b""), Err(PictureError::NotJpeg));
        assert_eq!(picture_size(b"\xFF\xD8"), Err(PictureError::Truncated { offset: 2 }));
        assert_eq!(picture_size(b"\xFF\xD8ab"), Err(PictureError::MarkerExpected { offset: 2 }));
        assert_eq!(picture_size(b"\xFF\xD8\xFF\xD9"), Err(PictureError::NoSize { offset: 2 }));
        let zero = b"\xFF\xD8\xFF\xC0\x00\x08\x08\x00\x00\x00\x01\x01";
        assert_eq!(picture_size(zero), Err(PictureError::ZeroSize));
    }

    #[test]
    fn changed_bytes_never_panic() {
        let bytes = picture(64, 48);
        for seed in 0..5_000 {
            let mut random = Random::from_number(seed);
            let mut changed = bytes.clone();
            for _ in 0..=random.below(8) {
                let at = random.below(changed.len() as u64) as usize;
                changed[at] = random.next_u32() as u8;
            }
            if let Ok((width, height)) = picture_size(&changed) {
                assert!(width > 0 && height > 0, "seed {seed}");
            }
            let complete = is_complete(&changed);
            assert!(!complete || changed.starts_with(&[0xFF, SOI]), "seed {seed}");
        }
    }
}
