//! Files as they are found in the wild, made by hand, and what the writer makes.

use super::*;
use crate::format::AudioFormat;
use crate::riff::Emitter;
use crate::sound::testing::{self, sound, stereo};
use crate::warning::Warning;
use crate::wave_format;

fn written(format: &AudioFormat, data: &[u8], config: WriterConfig) -> Vec<u8> {
    testing::written::<Wav>(format, data, config)
}

fn check(bytes: Vec<u8>, format: &AudioFormat, data: &[u8]) -> Vec<Warning> {
    testing::check(Reader::open(bytes).unwrap(), format, data)
}

#[test]
fn every_format_is_read_back_as_it_was_written() {
    testing::every_format_is_read_back(Reader::open, |len, _| assert_eq!(len % 2, 0));
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
    testing::a_crash_leaves_what_was_synced(Reader::open);
}

#[test]
fn a_cut_file_says_how_much_is_missing() {
    testing::a_cut_file_says_how_much_is_missing(Reader::open);
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
    testing::the_writer_refuses_what_makes_no_file::<Wav>();
}

#[test]
fn any_piece_of_the_sound_is_that_of_the_whole() {
    testing::any_piece_is_that_of_the_whole(Reader::open);
}

#[test]
fn a_destination_that_fails_once_gets_nothing_more() {
    testing::a_destination_that_fails_once_gets_nothing_more::<Wav>();
}
