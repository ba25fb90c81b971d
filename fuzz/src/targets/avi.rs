//! AVI files.

use crate::oracle;
use dacapo_media::{Format, TestMovie, avi};
use std::io::Cursor;
use std::time::Duration;

/// A file.
pub fn avi(data: &[u8]) {
    let opened = oracle::bounded("an AVI file", data.len(), || avi::Reader::open(data));
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let formats: Vec<_> = reader.streams().iter().map(|stream| stream.format.clone()).collect();
    for (number, format) in formats.iter().enumerate() {
        match format {
            Some(Format::Video(_)) => pictures(&mut reader, number, data.len()),
            Some(Format::Audio(_)) => sound(&mut reader, number, data.len()),
            None => {}
        }
        let _ = reader.duration_ns(number);
    }
    // A stream that is not there is an error, not a panic.
    let mut out = Vec::new();
    assert!(reader.video_frame(formats.len(), 0, &mut out).is_err());
    assert!(reader.warnings().iter().all(|warning| !warning.to_string().is_empty()));
}

fn pictures(reader: &mut avi::Reader<&[u8]>, stream: usize, len: usize) {
    let count = reader.video_count(stream);
    let lens: Vec<u32> = reader.video_lens(stream).take(64).collect();
    let mut out = Vec::new();
    for index in (0..count.min(64)).chain([count, u64::MAX]) {
        let read = oracle::bounded("a picture", len, || {
            out = Vec::new();
            reader.video_frame(stream, index, &mut out)
        });
        match read {
            Ok(()) => {
                assert!(index < count, "picture {index} of {count}");
                let said = usize::try_from(index).ok().and_then(|at| lens.get(at).copied());
                assert!(said.is_none_or(|said| said as usize == out.len()), "{said:?}");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn sound(reader: &mut avi::Reader<&[u8]>, stream: usize, len: usize) {
    let all = reader.audio_len(stream);
    for (from, most) in [(0, 4_096), (all / 2, usize::MAX), (all, 1), (u64::MAX, usize::MAX)] {
        let mut out = Vec::new();
        let read =
            oracle::bounded("sound", len, || reader.audio_bytes(stream, from, most, &mut out));
        if read.is_ok() {
            assert!(out.len() <= most && out.len() as u64 <= all.saturating_sub(from));
        }
    }
}

/// The smallest test movie there is.
pub(super) fn movie(milliseconds: u64) -> TestMovie {
    let sound = Some(dacapo_media::testmovie::TestSound { rate_hz: 8_000, channels: 1 });
    let duration = Duration::from_millis(milliseconds);
    TestMovie { width: 32, height: 32, duration, quality: 10, sound, ..TestMovie::default() }
}

/// A movie with sound, one without, and one whose index is cut off.
pub fn avi_seeds() -> Vec<Vec<u8>> {
    let write = |movie: TestMovie| {
        let file = movie.write_avi(Cursor::new(Vec::new()));
        file.map(Cursor::into_inner).unwrap_or_default()
    };
    let both = write(movie(40));
    let silent = write(TestMovie { sound: None, ..movie(80) });
    let cut = silent.get(..silent.len() * 3 / 4).unwrap_or_default().to_vec();
    vec![both, silent, cut]
}
