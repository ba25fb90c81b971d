//! JPEG: single pictures, and files of many one after the other (`.mjpg`, `.mjpeg`).
//!
//! The markers of one picture ([`picture_size`], [`is_complete`]), and a [`Reader`] that finds
//! every picture of a file.
//!
//! ```text
//!   FFD8 … FFD9  FFD8 … FFD9  FFD8 … FFD9           one after the other; the rate is told
//!   FFD8 … [APPn FFD8 … FFD9] … FFD9                a thumbnail inside is no picture of the file
//!   FFD8 … [APP2 "MPF"] … FFD9  FFD8 … FFD9         a photo and its previews: a still
//! ```
//!
//! Sources: ITU-T T.81, annex B; CIPA DC-007 (Multi-Picture Format).

mod error;
mod index;
mod picture;
mod reader;
mod scan;

#[cfg(test)]
mod tests;

pub use error::MjpegError;
pub use index::{Index, Show};
pub use picture::{PictureError, is_complete, picture_size};
pub use reader::Reader;

const SOI: u8 = 0xD8;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const APP2: u8 = 0xE2;

/// Whether a marker begins a frame header, which holds the size.
const fn is_frame_header(code: u8) -> bool {
    matches!(code, 0xC0..=0xCF) && !matches!(code, 0xC4 | 0xC8 | 0xCC)
}

/// Whether a marker stands alone, without a length and a body.
const fn is_alone(code: u8) -> bool {
    matches!(code, 0x01 | 0xD0..=0xD9)
}
