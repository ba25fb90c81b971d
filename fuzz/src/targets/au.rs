//! AU files.
//!
//! What it is not: playing.

use super::wav::formats;
use crate::oracle;
use dacapo_media::{AudioFormat, au};
use std::io::Cursor;

/// A file.
pub fn au(data: &[u8]) {
    let opened = oracle::bounded("an AU file", data.len(), || au::Reader::open(data));
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let (format, len) = (reader.format().clone(), reader.audio_len());
    assert!(format.check().is_ok(), "a format that cannot be: {format:?}");
    assert!(len.is_multiple_of(format.block_len().into()));
    let _ = reader.duration_ns();
    for (from, most) in [(0, 4_096), (1, 3), (len / 2, usize::MAX), (u64::MAX, usize::MAX)] {
        let mut out = Vec::new();
        let read =
            oracle::bounded("sound", data.len(), || reader.audio_bytes(from, most, &mut out));
        assert!(read.is_err() || out.len() as u64 <= len.saturating_sub(from));
        assert!(out.len() <= most);
    }
    assert!(reader.warnings().iter().all(|warning| !warning.to_string().is_empty()));
}

/// A short sound of each encoding that AU has.
pub fn au_seeds() -> Vec<Vec<u8>> {
    let whole = |format: AudioFormat| {
        let mut writer = au::Writer::create(Cursor::new(Vec::new()), &format).ok()?;
        writer.audio(&vec![0x5A; format.block_len() as usize * 8]).ok()?;
        writer.finish().ok().map(Cursor::into_inner)
    };
    formats().into_iter().filter_map(whole).collect()
}
