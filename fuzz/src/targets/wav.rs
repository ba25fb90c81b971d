//! WAV files.

use crate::oracle;
use dacapo_media::sound::{Container, Reader, Writer};
use dacapo_media::{AudioFormat, SampleEncoding, wav};
use std::fmt::Display;
use std::io::Cursor;

/// A file.
pub fn wav(data: &[u8]) {
    sound("a WAV file", data, wav::Reader::open);
}

/// A file of sound: what can be opened can be read, and no more than there is.
pub(super) fn sound<'a, C: Container<Error: Display>>(
    what: &str,
    data: &'a [u8],
    open: impl FnOnce(&'a [u8]) -> Result<Reader<&'a [u8], C>, C::Error>,
) {
    let mut reader = match oracle::bounded(what, data.len(), || open(data)) {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let (format, len) = (reader.format().clone(), reader.audio_len());
    assert!(format.check().is_ok(), "a format that cannot be: {format:?}");
    assert!(len <= data.len() as u64 && len.is_multiple_of(format.block_len().into()));
    assert_eq!(reader.sample_count() * u64::from(format.block_len()), len);
    let _ = reader.duration_ns();
    let asked = [(0, 4_096), (1, 3), (len / 2, usize::MAX), (len, 1), (u64::MAX, usize::MAX)];
    for (from, most) in asked {
        let mut out = Vec::new();
        let read =
            oracle::bounded("sound", data.len(), || reader.audio_bytes(from, most, &mut out));
        assert!(read.is_ok(), "sound that is there cannot be read");
        assert!(out.len() as u64 <= len.saturating_sub(from) && out.len() <= most);
    }
    assert!(reader.warnings().iter().all(|warning| !warning.to_string().is_empty()));
}

/// The formats that are written as seeds.
pub(super) fn formats() -> Vec<AudioFormat> {
    use SampleEncoding::{ALaw, F32, MuLaw, S16, S24, U8};
    [(U8, 1, 8_000), (S16, 2, 44_100), (S24, 6, 48_000), (F32, 1, 48_000), (MuLaw, 1, 8_000)]
        .into_iter()
        .chain([(ALaw, 2, 8_000)])
        .map(|(encoding, channels, rate_hz)| AudioFormat::new(encoding, channels, rate_hz))
        .collect()
}

fn tone(format: &AudioFormat) -> Vec<u8> {
    vec![0x5A; format.block_len() as usize * 8]
}

/// A file of a short sound, where the container has the format.
pub(super) fn written<C: Container>(format: &AudioFormat) -> Option<Vec<u8>> {
    let mut writer = Writer::<_, C>::create(Cursor::new(Vec::new()), format).ok()?;
    writer.audio(&tone(format)).ok()?;
    writer.finish().ok().map(Cursor::into_inner)
}

/// A short sound of each encoding, and a stream that was never ended.
pub fn wav_seeds() -> Vec<Vec<u8>> {
    let streamed = |format: &AudioFormat| {
        let mut bytes = Vec::new();
        let mut writer = wav::Writer::streaming(&mut bytes, format).ok()?;
        let written = writer.audio(&tone(format)).ok();
        written.map(|()| bytes)
    };
    let unended = formats().first().and_then(streamed);
    formats().iter().filter_map(written::<wav::Wav>).chain(unended).collect()
}
