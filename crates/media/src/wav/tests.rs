//! Files as they are found in the wild, made by hand, and what the writer makes.

use std::io::Cursor;

use super::*;
use crate::format::{AudioFormat, SampleEncoding};
use crate::riff::Emitter;
use crate::warning::Warning;
use crate::wave_format;

fn stereo() -> AudioFormat {
    AudioFormat::new(SampleEncoding::S16, 2, 44_100)
}

fn sound(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7) as u8).collect()
}

fn written(format: &AudioFormat, data: &[u8], config: WriterConfig) -> Vec<u8> {
    let mut writer = Writer::create_with(Cursor::new(Vec::new()), format, config).unwrap();
    for piece in data.chunks(format.block_len() as usize * 3) {
        writer.audio(piece).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn check(bytes: Vec<u8>, format: &AudioFormat, data: &[u8]) -> Vec<Warning> {
    let mut reader = Reader::open(bytes).unwrap();
    assert_eq!((reader.format(), reader.audio_len()), (format, data.len() as u64));
    let mut out = Vec::new();
    reader.audio_bytes(0, usize::MAX, &mut out).unwrap();
    assert_eq!(out, data);
    for behind in [data.len() as u64, data.len() as u64 + 9, u64::MAX] {
        reader.audio_bytes(behind, 1, &mut out).unwrap();
        assert_eq!(out, []);
    }
    reader.warnings().to_vec()
}

#[test]
fn every_format_is_read_back_as_it_was_written() {
    for encoding in SampleEncoding::ALL {
        for channels in [1, 2, 3, 6, 256] {
            for blocks in [0, 1, 7] {
                let format = AudioFormat::new(encoding, channels, 96_000);
                let data = sound(format.block_len() as usize * blocks);
                let bytes = written(&format, &data, WriterConfig::default());
                assert_eq!(bytes.len() % 2, 0);
                assert_eq!(check(bytes, &format, &data), []);
            }
        }
    }
}

#[test]
fn above_the_limit_a_file_becomes_rf64() {
    let data = sound(400);
    let riff = written(&stereo(), &data, WriterConfig { riff_bytes_max: 500 });
    let rf64 = written(&stereo(), &data, WriterConfig { riff_bytes_max: 300 });
    assert!(riff.starts_with(b"RIFF") && rf64.starts_with(b"RF64"));
    assert_eq!((&rf64[4..8], &rf64[12..16]), (&[0xFF; 4][..], &b"ds64"[..]));
    assert_eq!(check(riff, &stereo(), &data), []);
    assert_eq!(check(rf64, &stereo(), &data), []);
}

#[test]
fn a_file_written_to_a_pipe_lasts_until_its_end() {
    let data = sound(400);
    let mut writer = Writer::streaming(Vec::new(), &stereo()).unwrap();
    writer.audio(&data).unwrap();
    writer.sync().unwrap();
    let mut bytes = writer.finish().unwrap();
    assert_eq!(check(bytes.clone(), &stereo(), &data), []);
    // Others leave zeros instead of ones.
    bytes[4..8].fill(0);
    let at = bytes.len() - 404;
    bytes[at..at + 4].fill(0);
    assert_eq!(check(bytes, &stereo(), &data), []);
}

#[test]
fn no_sound_with_something_behind_it_is_no_sound() {
    let mut bytes = written(&stereo(), &[], WriterConfig::default());
    bytes.extend_from_slice(b"LIST\x04\0\0\0INFO");
    let riff_len = bytes.len() as u32 - 8;
    bytes[4..8].copy_from_slice(&riff_len.to_le_bytes());
    assert_eq!(check(bytes, &stereo(), &[]), []);
}

#[test]
fn a_crash_leaves_what_was_synced_and_before_the_first_sync_everything() {
    let data = sound(400);
    for syncs in [false, true] {
        let mut out = Cursor::new(Vec::new());
        let mut writer = Writer::create(&mut out, &stereo()).unwrap();
        writer.audio(&data[..200]).unwrap();
        if syncs {
            writer.sync().unwrap();
        }
        writer.audio(&data[200..]).unwrap();
        let kept = if syncs { 200 } else { 400 };
        check(out.into_inner(), &stereo(), &data[..kept]);
    }
}

#[test]
fn a_cut_file_says_how_much_is_missing() {
    let bytes = written(&stereo(), &sound(400), WriterConfig::default());
    let warnings = check(bytes[..bytes.len() - 101].to_vec(), &stereo(), &sound(296));
    let offset = bytes.len() as u64 - 101;
    let partial = Warning::PartialBlock { offset: offset - 3, len: 3 };
    assert_eq!(warnings, [Warning::Truncated { offset, missing: 101 }, partial]);
}

#[test]
fn odd_chunks_before_the_sound_are_passed_with_their_pad_byte() {
    let mut out = Emitter::default();
    out.bytes(b"RIFF").u32(0).bytes(b"WAVE");
    out.chunk(b"note", |note| {
        note.bytes(b"odd");
    });
    out.chunk(b"fmt ", |fmt| wave_format::emit(&stereo(), fmt));
    out.chunk(b"data", |data| {
        data.bytes(&sound(8));
    });
    let riff_len = out.0.len() as u32 - 8;
    out.0[4..8].copy_from_slice(&riff_len.to_le_bytes());
    assert_eq!(check(out.0, &stereo(), &sound(8)), []);
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let error = |bytes: Vec<u8>| Reader::open(bytes).unwrap_err().to_string();
    assert!(error(Vec::new()).contains("expected RIFF and WAVE at byte 0"));
    let whole = written(&stereo(), &sound(8), WriterConfig::default());
    assert!(error(whole[..12].to_vec()).contains("a fmt chunk at byte 12"));
    let data = whole.windows(4).position(|window| window == b"data").unwrap();
    let text = error(whole[..data].to_vec());
    assert!(text.contains(&format!("a data chunk at byte {data}")), "{text}");
    let mut mp3 = whole.clone();
    let fmt = whole.windows(4).position(|window| window == b"fmt ").unwrap();
    mp3[fmt + 8] = 0x55;
    let text = error(mp3);
    assert!(text.contains("MP3"), "{text}");
    assert!(text.contains("ffmpeg -i in.wav -c:a pcm_s16le out.wav"), "{text}");
    let mut no_fmt = whole.clone();
    no_fmt[fmt] = b'g';
    assert!(error(no_fmt).contains("a fmt chunk before data"));
    assert!(error(b"RF64\xFF\xFF\xFF\xFFWAVEfmt \x10\0\0\0".to_vec()).contains("ds64"));
}

#[test]
fn the_writer_refuses_what_makes_no_file() {
    let out = || Cursor::new(Vec::new());
    let none = AudioFormat::new(SampleEncoding::S16, 0, 8_000);
    assert!(matches!(Writer::create(out(), &none), Err(WriteError::Format(_))));
    let mut writer = Writer::create(out(), &stereo()).unwrap();
    let error = writer.audio(b"abc").unwrap_err();
    assert!(matches!(error, WriteError::PartialBlock { len: 3, block_len: 4 }));
}
