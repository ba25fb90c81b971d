//! Files as they are found in the wild, made by hand, and what the writer makes.

use std::io::Cursor;

use super::*;
use crate::format::{AudioFormat, Format, SampleEncoding, VideoFormat};
use crate::read::Limits;
use crate::riff::Emitter;
use crate::warning::Warning;

/// What a picture or a piece of sound is in these tests: any bytes, odd lengths among them.
fn media(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed) | 0x80).collect()
}

fn formats() -> Vec<Format> {
    vec![
        Format::Video(VideoFormat::new(320, 240, 30_000, 1_001)),
        Format::Audio(AudioFormat::new(SampleEncoding::S16, 2, 8_000)),
    ]
}

/// Pictures (an empty one repeats) and sounds of the test file.
fn content() -> Vec<(Vec<u8>, Vec<u8>)> {
    let lens = [(101, 20), (0, 20), (64, 16), (33, 0), (7, 40), (1, 4)];
    lens.iter().enumerate().map(|(i, (p, s))| (media(i as u8, *p), media(99, *s))).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Base {
    Movi,
    File,
    AfterMovi,
    Nonsense,
}

/// A way to lay out a file.
#[derive(Clone, Copy)]
struct Variant {
    idx1: Option<Base>,
    has_rec_lists: bool,
    has_pad: bool,
}

const PLAIN: Variant = Variant { idx1: Some(Base::Movi), has_rec_lists: false, has_pad: true };

/// Header bytes up to and with the word `movi`, lengths unknown.
fn head(streams: &[Format]) -> Vec<u8> {
    Writer::streaming(Vec::new(), streams).unwrap().finish().unwrap()
}

fn put_len(bytes: &mut [u8], at: usize, len: usize) {
    bytes[at..at + 4].copy_from_slice(&(len as u32).to_le_bytes());
}

/// A file by hand.
fn file(variant: Variant) -> Vec<u8> {
    let mut out = Emitter(head(&formats()));
    let movi = out.0.len() - 4;
    let mut entries = Vec::new();
    let chunk = |out: &mut Emitter, id: &[u8; 4], body: &[u8]| {
        let at = out.0.len();
        out.bytes(id).u32(body.len() as u32).bytes(body);
        if variant.has_pad {
            out.zeros(body.len() % 2);
        }
        (*id, at, body.len())
    };
    for (picture, sound) in content() {
        let list = out.0.len();
        if variant.has_rec_lists {
            out.bytes(b"LIST\0\0\0\0rec ");
        }
        entries.push(chunk(&mut out, b"00dc", &picture));
        entries.push(chunk(&mut out, b"01wb", &sound));
        if variant.has_rec_lists {
            let len = out.0.len() - list - 8;
            put_len(&mut out.0, list + 4, len);
        }
    }
    let movi_len = out.0.len() - movi;
    put_len(&mut out.0, movi - 4, movi_len);
    if let Some(base) = variant.idx1 {
        let base = match base {
            Base::Movi => movi,
            Base::File => 0,
            Base::AfterMovi => movi + 4,
            Base::Nonsense => 3,
        };
        out.chunk(b"idx1", |idx1| {
            for (id, at, len) in &entries {
                idx1.bytes(id).u32(FLAG_KEY).u32((at - base) as u32).u32(*len as u32);
            }
        });
    }
    let riff_len = out.0.len() - 8;
    put_len(&mut out.0, 4, riff_len);
    out.0
}

/// Checks that every picture and all sound of `content` is read from `bytes`.
fn check_content(bytes: Vec<u8>) -> Vec<Warning> {
    let mut reader = Reader::open(bytes).unwrap();
    let (mut out, mut sound) = (Vec::new(), Vec::new());
    assert_eq!(reader.video_count(0), content().len() as u64);
    let lens = content().into_iter().map(|(picture, _)| picture.len() as u32);
    assert!(reader.video_lens(0).eq(lens) && reader.video_lens(1).next().is_none());
    for (index, (picture, piece)) in content().iter().enumerate() {
        reader.video_frame(0, index as u64, &mut out).unwrap();
        assert_eq!(&out, picture, "picture {index}");
        sound.extend_from_slice(piece);
    }
    reader.audio_bytes(1, 0, usize::MAX, &mut out).unwrap();
    assert_eq!(out, sound);
    // Any piece of the sound, across chunks.
    for (from, len) in [(0, 1), (19, 2), (21, 60), (99, 1), (100, 1), (5_000, 5)] {
        reader.audio_bytes(1, from, len, &mut out).unwrap();
        let from = (from as usize).min(sound.len());
        assert_eq!(out, sound[from..(from + len).min(sound.len())]);
    }
    reader.warnings().to_vec()
}

#[test]
fn an_index_is_read_whatever_its_offsets_count_from() {
    for base in [Base::Movi, Base::File, Base::AfterMovi] {
        for has_rec_lists in [false, true] {
            let variant = Variant { idx1: Some(base), has_rec_lists, ..PLAIN };
            assert_eq!(check_content(file(variant)), []);
        }
    }
}

#[test]
fn a_file_without_index_is_searched() {
    for has_rec_lists in [false, true] {
        let warnings = check_content(file(Variant { idx1: None, has_rec_lists, ..PLAIN }));
        assert!(matches!(warnings[..], [Warning::IndexMissing { .. }]), "{warnings:?}");
    }
}

#[test]
fn a_file_without_pad_bytes_is_searched() {
    check_content(file(Variant { idx1: None, has_pad: false, has_rec_lists: false }));
    check_content(file(Variant { has_pad: false, ..PLAIN }));
}

#[test]
fn an_index_that_points_nowhere_is_replaced_by_a_search() {
    let warnings = check_content(file(Variant { idx1: Some(Base::Nonsense), ..PLAIN }));
    assert!(matches!(warnings[..], [Warning::IndexUnusable { .. }]), "{warnings:?}");
}

#[test]
fn a_file_written_to_a_pipe_is_searched_to_its_end() {
    let mut writer = Writer::streaming(Vec::new(), &formats()).unwrap();
    for (picture, sound) in content() {
        writer.video_frame(0, &picture).unwrap();
        writer.audio(1, &sound).unwrap();
    }
    check_content(writer.finish().unwrap());
}

#[test]
fn a_sequence_of_streams_is_described_as_it_was_given() {
    let mut streams = formats();
    streams.push(Format::Audio(AudioFormat::new(SampleEncoding::F64, 256, 4_000_000)));
    let reader = Reader::open(head(&streams)).unwrap();
    let found: Vec<_> = reader.streams().iter().map(|s| s.format.clone().unwrap()).collect();
    assert_eq!(found, streams);
    assert_eq!((reader.first_video(), reader.first_audio()), (Some(0), Some(1)));
    assert_eq!((reader.duration_ns(0), reader.audio_len(1)), (0, 0));
}

/// Writes `content` with segments of at most that many bytes.
fn written(segment_bytes_max: u32, segments_max: u32) -> Vec<u8> {
    let config = WriterConfig { segment_bytes_max, segments_max };
    let out = Cursor::new(Vec::new());
    let mut writer = Writer::create_with(out, &formats(), config).unwrap();
    for (picture, sound) in content() {
        writer.video_frame(0, &picture).unwrap();
        writer.audio(1, &sound).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn one_segment_and_many_are_read_back_by_index() {
    for segment_bytes_max in [1, 100, 300, 500, 1_000, 1 << 30] {
        let bytes = written(segment_bytes_max, 32);
        let segments = bytes.windows(4).filter(|window| window == b"AVIX").count() + 1;
        assert_eq!(segments > 1, segment_bytes_max < 1 << 30, "{segment_bytes_max}");
        assert_eq!(check_content(bytes), []);
    }
}

#[test]
fn a_damaged_super_index_is_replaced_by_a_search() {
    let mut bytes = written(300, 32);
    let indx = bytes.windows(4).position(|window| window == b"indx").unwrap();
    bytes[indx + 8 + 24] ^= 0x55;
    let warnings = check_content(bytes);
    assert!(matches!(warnings[..], [Warning::IndexUnusable { .. }]), "{warnings:?}");
}

#[test]
fn an_index_of_interlaced_pictures_is_read() {
    // Three words per entry: turn one of two words into one, in a file of one picture.
    let mut writer = Writer::create(Cursor::new(Vec::new()), &formats()[..1]).unwrap();
    writer.video_frame(0, b"two fields").unwrap();
    let mut bytes = writer.finish().unwrap().into_inner();
    let ix = bytes.windows(4).position(|window| window == b"ix00").unwrap();
    let movi = bytes.windows(4).position(|window| window == b"movi").unwrap();
    let len = 24 + 12;
    put_len(&mut bytes, ix + 4, len);
    bytes[ix + 8] = 3;
    bytes[ix + 10] = 1;
    bytes.truncate(ix + 40);
    bytes.extend_from_slice(&4_u32.to_le_bytes());
    let movi_len = bytes.len() - movi;
    put_len(&mut bytes, movi - 4, movi_len);
    let mut reader = Reader::open(bytes).unwrap();
    assert_eq!(reader.warnings(), []);
    let mut out = Vec::new();
    reader.video_frame(0, 0, &mut out).unwrap();
    assert_eq!(out, b"two fields");
}

#[test]
fn without_finish_everything_written_is_readable() {
    for segment_bytes_max in [300, 1 << 30] {
        for has_sync in [false, true] {
            let mut out = Cursor::new(Vec::new());
            let config = WriterConfig { segment_bytes_max, segments_max: 32 };
            let mut writer = Writer::create_with(&mut out, &formats(), config).unwrap();
            for (picture, sound) in content() {
                writer.video_frame(0, &picture).unwrap();
                writer.audio(1, &sound).unwrap();
                if has_sync {
                    writer.sync().unwrap();
                }
            }
            let warnings = check_content(out.into_inner());
            assert!(matches!(warnings[..], [Warning::IndexMissing { .. }]), "{warnings:?}");
        }
    }
}

#[test]
fn a_full_header_refuses_the_next_segment_and_the_file_can_be_finished() {
    let config = WriterConfig { segment_bytes_max: 100, segments_max: 2 };
    let out = Cursor::new(Vec::new());
    let mut writer = Writer::create_with(out, &formats()[..1], config).unwrap();
    let mut written = 0;
    let error = loop {
        match writer.video_frame(0, &[1; 50]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WriteError::Full { segment_count: 2 }));
    let reader = Reader::open(writer.finish().unwrap().into_inner()).unwrap();
    assert_eq!((reader.video_count(0), reader.warnings()), (written, &[][..]));
}

#[test]
fn the_writer_refuses_what_makes_no_file() {
    let out = || Cursor::new(Vec::new());
    assert!(matches!(Writer::create(out(), &[]), Err(WriteError::StreamCount { count: 0 })));
    let h264 = VideoFormat { fourcc: crate::FourCc(*b"H264"), ..VideoFormat::new(1, 1, 1, 1) };
    let error = Writer::create(out(), &[Format::Video(h264)]).unwrap_err();
    assert!(error.to_string().contains("H.264"), "{error}");
    let mut writer = Writer::create(out(), &formats()).unwrap();
    assert!(matches!(writer.video_frame(1, b""), Err(WriteError::WrongStream { .. })));
    assert!(matches!(writer.audio(0, b""), Err(WriteError::WrongStream { .. })));
    assert!(matches!(writer.audio(2, b""), Err(WriteError::WrongStream { .. })));
    let error = writer.audio(1, b"abc").unwrap_err();
    assert!(matches!(error, WriteError::PartialBlock { len: 3, block_len: 4 }));
    assert!(writer.finish().is_ok());
}

#[test]
fn a_failed_write_is_final() {
    /// Takes so many bytes and no more.
    struct Small(usize);
    impl std::io::Write for Small {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let len = bytes.len().min(self.0);
            self.0 -= len;
            if len == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(len) }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = Writer::streaming(Small(1_000), &formats()).unwrap();
    assert!(matches!(writer.video_frame(0, &[0; 2_000]), Err(WriteError::Io(_))));
    assert!(matches!(writer.video_frame(0, &[0; 1]), Err(WriteError::Failed)));
    assert!(matches!(writer.finish(), Err(WriteError::Failed)));
}

fn open_error(bytes: Vec<u8>) -> String {
    Reader::open(bytes).unwrap_err().to_string()
}

#[test]
fn other_codecs_are_refused_by_name_with_the_line_that_converts_them() {
    let mut bytes = file(PLAIN);
    let strf = bytes.windows(4).position(|window| window == b"strf").unwrap();
    bytes[strf + 24..strf + 28].copy_from_slice(b"H264");
    let text = open_error(bytes);
    assert!(text.contains("stream 0") && text.contains("H.264 ('H264')"), "{text}");
    let line = "ffmpeg -i in.avi -c:v mjpeg -q:v 3 -c:a pcm_s16le out.avi";
    assert!(text.contains(line), "{text}");

    let mut bytes = file(PLAIN);
    let strf = bytes.windows(4).rposition(|window| window == b"strf").unwrap();
    bytes[strf + 8] = 0x55;
    let text = open_error(bytes);
    assert!(text.contains("stream 1") && text.contains("MP3") && text.contains(line), "{text}");
}

#[test]
fn errors_say_where_and_what_was_expected() {
    assert!(open_error(Vec::new()).contains("expected RIFF and AVI at byte 0"));
    assert!(open_error(b"RIFF\0\0\0\0WAVEfmt ".to_vec()).contains("found \"RIFF"));
    let whole = file(PLAIN);
    assert!(open_error(whole[..12].to_vec()).contains("LIST hdrl) at byte 12"));
    let movi = whole.windows(4).position(|window| window == b"movi").unwrap();
    let text = open_error(whole[..movi - 8].to_vec());
    assert!(text.contains(&format!("LIST movi) at byte {}", movi - 8)), "{text}");
    let text = open_error(whole[..40].to_vec());
    assert!(text.contains("expected a media list (LIST movi) at byte 40"), "{text}");
    let mut reader = Reader::open(whole).unwrap();
    let mut out = Vec::new();
    let text = reader.video_frame(0, 6, &mut out).unwrap_err().to_string();
    assert_eq!(text, "no picture 6; the stream has 6, counted from 0");
    assert!(matches!(reader.video_frame(1, 0, &mut out), Err(AviError::WrongKind { .. })));
    assert!(matches!(reader.audio_bytes(0, 0, 1, &mut out), Err(AviError::WrongKind { .. })));
    assert!(matches!(reader.video_frame(9, 0, &mut out), Err(AviError::NoSuchStream { .. })));
}

#[test]
fn a_cut_file_says_how_much_is_missing_and_keeps_what_is_there() {
    let whole = file(PLAIN);
    let idx1 = whole.windows(4).position(|window| window == b"idx1").unwrap();
    let mut reader = Reader::open(whole[..idx1 - 60].to_vec()).unwrap();
    assert!(matches!(reader.warnings(), [Warning::Truncated { missing: 60, .. }, ..]));
    assert_eq!(reader.video_count(0), 5);
    let mut out = Vec::new();
    reader.video_frame(0, 4, &mut out).unwrap();
    assert_eq!(out, content()[4].0);
}

#[test]
fn limits_bound_headers_streams_pictures_and_entries() {
    let bytes = file(PLAIN);
    let open = |limits| Reader::open_with(bytes.clone(), limits);
    let limits = Limits { header_bytes_max: 64, ..Limits::default() };
    assert!(matches!(open(limits), Err(AviError::HeaderTooLarge { .. })));
    let limits = Limits { streams_max: 1, ..Limits::default() };
    assert!(matches!(open(limits), Err(AviError::TooManyStreams { count_max: 1, .. })));
    let limits = Limits { index_entries_max: 3, ..Limits::default() };
    let reader = open(limits).unwrap();
    assert_eq!(reader.video_count(0), 2);
    assert!(matches!(reader.warnings(), [Warning::IndexFull { count_max: 3 }]));
    let limits = Limits { video_frame_bytes_max: 100, ..Limits::default() };
    let mut reader = open(limits).unwrap();
    let mut out = Vec::new();
    let error = reader.video_frame(0, 0, &mut out).unwrap_err();
    assert!(matches!(error, AviError::PictureTooLarge { len: 101, len_max: 100, .. }));
    assert_eq!(out.capacity(), 0);
}

#[test]
fn an_index_that_repeats_itself_is_not_read_for_ever() {
    // Every entry of a large super index points to the same chunk index.
    let bytes = {
        let mut bytes = written(1 << 30, 2_000);
        let indx = bytes.windows(4).position(|window| window == b"indx").unwrap();
        let first = bytes[indx + 32..indx + 48].to_vec();
        put_len(&mut bytes, indx + 12, 2_000);
        for entry in 1..2_000 {
            let at = indx + 32 + entry * 16;
            bytes[at..at + 16].copy_from_slice(&first);
        }
        bytes
    };
    let entries_max = bytes.len() as u64 / 8;
    let reader = Reader::open(bytes).unwrap();
    assert!(matches!(reader.warnings(), [Warning::IndexFull { .. }]));
    assert!(reader.video_count(0) <= entries_max);
}
