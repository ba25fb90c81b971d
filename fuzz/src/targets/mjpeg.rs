//! Motion JPEG files, stills, and what a file is by its first bytes.

use super::avi::movie;
use crate::oracle;
use dacapo_media::mjpeg::{self, Show, is_complete, picture_size};
use dacapo_media::sniff;

/// A file, or a picture.
pub fn mjpeg(data: &[u8]) {
    match oracle::bounded("the head of a file", data.len(), || sniff(data)) {
        Ok(kind) => assert!(!format!("{kind:?}").is_empty()),
        Err(error) => {
            assert!(!error.to_string().chars().any(char::is_control), "{error}");
        }
    }
    oracle::bounded("a picture", data.len(), || {
        let is_sized = picture_size(data).is_ok_and(|(width, height)| width > 0 && height > 0);
        assert!(is_sized || picture_size(data).is_err());
        is_complete(data)
    });
    for show in [Show::ByContent, Show::Still, Show::Movie { rate: 30_000, scale: 1_001 }] {
        file(data, show);
    }
}

fn file(data: &[u8], show: Show) {
    let opened = oracle::bounded("an MJPEG file", data.len(), || mjpeg::Reader::open(data, show));
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(reader.video_format().check().is_ok());
    let count = reader.video_count();
    assert!(count > 0, "a file without pictures was opened");
    let lens: Vec<u32> = reader.video_lens().take(64).collect();
    for index in (0..count.min(64)).chain([count, u64::MAX]) {
        let mut out = Vec::new();
        let read = oracle::bounded("a picture", data.len(), || reader.video_frame(index, &mut out));
        assert!(read.is_err() || index < count);
        if read.is_ok() {
            let said = usize::try_from(index).ok().and_then(|at| lens.get(at).copied());
            assert!(said.is_none_or(|said| said as usize == out.len()));
            assert!(picture_size(&out).is_ok(), "a picture of the index has no size");
        }
    }
    let _ = reader.duration_ns();
    assert!(reader.warnings().iter().all(|warning| !warning.to_string().is_empty()));
}

/// A picture, two, one that is cut off, one in front of junk, and heads of other kinds.
pub fn mjpeg_seeds() -> Vec<Vec<u8>> {
    let mut picture = Vec::new();
    let made = movie(40).generator().and_then(|mut movie| movie.picture(0, &mut picture));
    if made.is_err() {
        return Vec::new();
    }
    let half = picture.get(..picture.len() / 2).unwrap_or_default().to_vec();
    let heads = [&b"RIFF\x10\x00\x00\x00WEBPVP8 "[..], b"\x89PNG\r\n\x1a\n", b"OggS\x00", b".snd"];
    let mut seeds = vec![
        picture.clone(),
        [picture.clone(), picture.clone()].concat(),
        [picture.clone(), half.clone()].concat(),
        [picture, b"junk between".to_vec()].concat(),
        half,
    ];
    seeds.extend(heads.map(<[u8]>::to_vec));
    seeds
}
