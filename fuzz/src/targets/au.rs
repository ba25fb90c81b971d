//! AU files.

use super::wav::{formats, sound, written};
use dacapo_media::au;

/// A file.
pub fn au(data: &[u8]) {
    sound("an AU file", data, au::Reader::open);
}

/// A short sound of each encoding that AU has.
pub fn au_seeds() -> Vec<Vec<u8>> {
    formats().iter().filter_map(written::<au::Au>).collect()
}
