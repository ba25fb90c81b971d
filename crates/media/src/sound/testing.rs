//! What every container of sound must do, as outcomes that its tests ask for.

use std::fmt::Debug;
use std::io::Cursor;

use super::{Container, Reader, WriteError, Writer};
use crate::format::{AudioFormat, SampleEncoding};
use crate::sink::Seekable;
use crate::warning::Warning;

/// How a container opens a file.
type Open<C> = fn(Vec<u8>) -> Result<Reader<Vec<u8>, C>, <C as Container>::Error>;

pub(crate) fn stereo() -> AudioFormat {
    AudioFormat::new(SampleEncoding::S16, 2, 44_100)
}

pub(crate) fn sound(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7) as u8).collect()
}

/// A file, written in pieces.
pub(crate) fn written<C: Container>(
    format: &AudioFormat,
    data: &[u8],
    config: C::Config,
) -> Vec<u8> {
    let out = Cursor::new(Vec::new());
    let mut writer = Writer::<_, C>::create_with(out, format, config).unwrap();
    let header_len = writer.bytes_written();
    for piece in data.chunks(format.block_len() as usize * 3) {
        writer.audio(piece).unwrap();
    }
    assert_eq!(writer.bytes_written(), header_len + data.len() as u64);
    let bytes = writer.finish().unwrap().into_inner();
    let is_padded = C::IS_PADDED && data.len() % 2 == 1;
    assert_eq!(bytes.len() as u64, header_len + data.len() as u64 + u64::from(is_padded));
    bytes
}

/// What was noticed of a file that holds this sound and nothing else.
pub(crate) fn check<C: Container<Error: Debug>>(
    mut reader: Reader<Vec<u8>, C>,
    format: &AudioFormat,
    data: &[u8],
) -> Vec<Warning> {
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

/// `check_len` is told how long a file is, and its sound.
pub(crate) fn every_format_is_read_back<C: Container<Error: Debug>>(
    open: Open<C>,
    check_len: fn(usize, usize),
) {
    for encoding in SampleEncoding::ALL {
        for channels in [1, 2, 3, 6, 256] {
            for blocks in [0, 1, 7] {
                let format = AudioFormat::new(encoding, channels, 96_000);
                let data = sound(format.block_len() as usize * blocks);
                let bytes = written::<C>(&format, &data, C::Config::default());
                check_len(bytes.len(), data.len());
                assert_eq!(check(open(bytes).unwrap(), &format, &data), []);
            }
        }
    }
}

pub(crate) fn any_piece_is_that_of_the_whole<C: Container<Error: Debug>>(open: Open<C>) {
    for encoding in SampleEncoding::ALL {
        let format = AudioFormat::new(encoding, 3, 8_000);
        let data = sound(format.block_len() as usize * 4);
        let mut reader = open(written::<C>(&format, &data, C::Config::default())).unwrap();
        let mut out = Vec::new();
        for from in 0..data.len() {
            for len in [0, 1, 2, 5, 16, data.len()] {
                reader.audio_bytes(from as u64, len, &mut out).unwrap();
                assert_eq!(out, data[from..data.len().min(from + len)], "{encoding} {from} {len}");
            }
        }
    }
}

pub(crate) fn a_cut_file_says_how_much_is_missing<C: Container<Error: Debug>>(open: Open<C>) {
    let bytes = written::<C>(&stereo(), &sound(400), C::Config::default());
    let cut = open(bytes[..bytes.len() - 101].to_vec()).unwrap();
    let warnings = check(cut, &stereo(), &sound(296));
    let offset = bytes.len() as u64 - 101;
    let partial = Warning::PartialBlock { offset: offset - 3, len: 3 };
    assert_eq!(warnings, [Warning::Truncated { offset, missing: 101 }, partial]);
}

pub(crate) fn a_crash_leaves_what_was_synced<C: Container<Error: Debug>>(open: Open<C>) {
    let data = sound(400);
    for syncs in [false, true] {
        let mut out = Cursor::new(Vec::new());
        let mut writer = Writer::<_, C>::create(&mut out, &stereo()).unwrap();
        writer.audio(&data[..200]).unwrap();
        if syncs {
            writer.sync().unwrap();
        }
        writer.audio(&data[200..]).unwrap();
        let kept = if syncs { 200 } else { 400 };
        check(open(out.into_inner()).unwrap(), &stereo(), &data[..kept]);
    }
}

pub(crate) fn the_writer_refuses_what_makes_no_file<C: Container>() {
    type Made<C> = Writer<Seekable<Cursor<Vec<u8>>>, C>;
    let out = || Cursor::new(Vec::new());
    let none = AudioFormat::new(SampleEncoding::S16, 0, 8_000);
    assert!(matches!(Made::<C>::create(out(), &none), Err(WriteError::Format(_))));
    let mut writer = Made::<C>::create(out(), &stereo()).unwrap();
    let error = writer.audio(b"abc").unwrap_err();
    assert!(matches!(error, WriteError::PartialBlock { len: 3, block_len: 4 }));
}

pub(crate) fn a_destination_that_fails_once_gets_nothing_more<C: Container>() {
    let header_len = C::header(&C::Config::default(), &stereo(), true, None).len();
    let mut room = vec![0; header_len + 12];
    let mut writer = Writer::<_, C>::create(Cursor::new(&mut room[..]), &stereo()).unwrap();
    assert!(matches!(writer.audio(&sound(20)), Err(WriteError::Io(_))));
    assert!(matches!(writer.audio(&sound(4)), Err(WriteError::Failed)));
    assert!(matches!(writer.finish(), Err(WriteError::Failed)));
}
