//! What a writer puts before the sound of AU files.
//!
//! ```text
//!   create    a length that is not known, an empty annotation
//!   sync      the length so far, as long as 32 bits hold it
//! ```
//!
//! The speakers and valid bits of a format have no place in a header and are left out.
//!
//! Invariants: at every moment the file is readable, up to where it was synced last, or all of it
//! before the first sync and above 4 GiB. Source: as in [`crate::au`].

use super::{Au, AuError, CODES, HEADER_LEN, LEN_UNKNOWN, MAGIC};
use crate::format::AudioFormat;
use crate::sound::Container;

/// Bytes of the annotation, at least four by the book: none of them a character.
const ANNOTATION: [u8; 4] = [0; 4];

impl Container for Au {
    type Error = AuError;
    type Config = ();
    const IS_BIG_ENDIAN: bool = true;
    const IS_PADDED: bool = false;

    fn header(
        (): &Self::Config,
        format: &AudioFormat,
        _can_patch: bool,
        data_len: Option<u64>,
    ) -> Vec<u8> {
        let code = CODES.iter().find(|(_, encoding)| *encoding == format.encoding);
        let code = code.map_or(0, |(code, _)| *code);
        let data_at = HEADER_LEN + ANNOTATION.len() as u32;
        // No sound yet is not known to be none; beyond 32 bits the file's end says it.
        let len = data_len.and_then(|len| u32::try_from(len).ok()).filter(|len| *len > 0);
        let len = len.unwrap_or(LEN_UNKNOWN);
        let mut out = MAGIC.to_vec();
        for field in [data_at, len, code, format.rate_hz, u32::from(format.channels)] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        out.extend_from_slice(&ANNOTATION);
        out
    }
}
