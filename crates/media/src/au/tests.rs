//! Files as they are found in the wild, made by hand, and what the writer makes.

use super::*;
use crate::format::AudioFormat;
use crate::sound::testing::{self, sound, stereo};
use crate::warning::Warning;

fn written(format: &AudioFormat, data: &[u8]) -> Vec<u8> {
    let bytes = testing::written::<Au>(format, data, ());
    assert_eq!(bytes.len(), 28 + data.len());
    bytes
}

fn check(bytes: Vec<u8>, format: &AudioFormat, data: &[u8]) -> Vec<Warning> {
    testing::check(Reader::open(bytes).unwrap(), format, data)
}

/// A header by hand.
fn head(data_at: u32, len: u32, encoding: u32, rate_hz: u32, channels: u32) -> Vec<u8> {
    let fields = [data_at, len, encoding, rate_hz, channels];
    [b".snd".to_vec(), fields.iter().flat_map(|field| field.to_be_bytes()).collect()].concat()
}

#[test]
fn every_format_is_read_back_as_it_was_written() {
    testing::every_format_is_read_back(Reader::open, |len, data_len| {
        assert_eq!(len, 28 + data_len)
    });
}

#[test]
fn any_piece_of_the_sound_is_that_of_the_whole() {
    testing::any_piece_is_that_of_the_whole(Reader::open);
}

#[test]
fn samples_are_big_endian_in_the_file_and_little_endian_here() {
    let mut bytes = head(24, 8, 3, 8_000, 1);
    bytes.extend_from_slice(&[0x12, 0x34, 0xFF, 0xFE, 0x00, 0x01, 0x80, 0x00]);
    let format = AudioFormat::new(SampleEncoding::S16, 1, 8_000);
    check(bytes.clone(), &format, &[0x34, 0x12, 0xFE, 0xFF, 0x01, 0x00, 0x00, 0x80]);
    bytes[15] = 2;
    let format = AudioFormat::new(SampleEncoding::U8, 1, 8_000);
    check(bytes, &format, &[0x92, 0xB4, 0x7F, 0x7E, 0x80, 0x81, 0x00, 0x80]);
}

#[test]
fn an_annotation_of_any_length_is_passed() {
    let format = AudioFormat::new(SampleEncoding::MuLaw, 1, 8_000);
    for len in [0, 1, 4, 17, 70_000] {
        let mut bytes = head(24 + len, 5, 1, 8_000, 1);
        bytes.resize(bytes.len() + len as usize, b'!');
        bytes.extend_from_slice(b"\xFF\x00hey and more");
        assert_eq!(check(bytes, &format, b"\xFF\x00hey"), []);
    }
}

#[test]
fn a_length_that_is_not_known_lasts_until_the_end() {
    for len in [0, u32::MAX] {
        let bytes = [head(24, len, 27, 8_000, 1), sound(300)].concat();
        assert_eq!(
            check(bytes, &AudioFormat::new(SampleEncoding::ALaw, 1, 8_000), &sound(300)),
            []
        );
    }
    let mut writer = Writer::streaming(Vec::new(), &stereo()).unwrap();
    writer.audio(&sound(400)).unwrap();
    writer.sync().unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes[8..12], [0xFF; 4]);
    assert_eq!(check(bytes, &stereo(), &sound(400)), []);
}

#[test]
fn a_cut_file_says_how_much_is_missing() {
    testing::a_cut_file_says_how_much_is_missing(Reader::open);
}

#[test]
fn a_crash_leaves_what_was_synced_and_before_the_first_sync_everything() {
    testing::a_crash_leaves_what_was_synced(Reader::open);
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let error = |bytes: Vec<u8>| Reader::open(bytes).unwrap_err().to_string();
    assert!(error(Vec::new()).contains("expected .snd at byte 0, found \"\""));
    assert!(error(b"RIFFxxxx".to_vec()).contains("expected .snd at byte 0, found \"RIFF\""));
    let whole = written(&stereo(), &sound(8));
    assert!(error(whole[..23].to_vec()).contains("a header of 24 bytes at byte 23"));
    assert!(error(whole[..27].to_vec()).contains("the rest of the annotation at byte 27"));
    for (header, said) in [
        (head(23, 0, 3, 8_000, 1), "begin at byte 23 (at byte 4), expected at least 24"),
        (head(24, 0, 23, 8_000, 1), "byte 12: the codec is G.721 ADPCM (encoding 23)"),
        (head(24, 0, 0, 8_000, 1), "an unknown codec (encoding 0)"),
        (head(24, 0, 3, 0, 1), "byte 16: a sample rate of 0 Hz"),
        (head(24, 0, 3, 8_000, 0), "byte 20: 0 channels"),
        (head(24, 0, 3, 8_000, 0x1_0001), "byte 20: 65535 channels"),
    ] {
        let text = error(header);
        assert!(text.contains(said), "{text}");
        assert!(text.contains("begin at") || text.contains("ffmpeg -i in.au"), "{text}");
    }
}

#[test]
fn the_writer_refuses_what_makes_no_file() {
    testing::the_writer_refuses_what_makes_no_file::<Au>();
}

#[test]
fn a_destination_that_fails_once_gets_nothing_more() {
    testing::a_destination_that_fails_once_gets_nothing_more::<Au>();
}
