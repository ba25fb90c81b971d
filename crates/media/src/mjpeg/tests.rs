//! Files of pictures as encoders, cameras and phones make them, put together by hand.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use jpeg_encoder::{ColorType, Encoder};

use super::*;
use crate::read::{Limits, ReadAt};
use crate::warning::Warning;

/// How a picture is made.
#[derive(Clone, Copy, Default)]
struct Kind {
    restarts: u16,
    is_progressive: bool,
    has_thumbnail: bool,
    has_previews: bool,
}

fn picture(seed: usize, width: u16, height: u16, kind: Kind) -> Vec<u8> {
    let count = usize::from(width) * usize::from(height) * 3;
    let pixels: Vec<u8> = (0..count).map(|i| (i * i * (7 + seed) / 11) as u8).collect();
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, 85);
    encoder.set_progressive(kind.is_progressive);
    encoder.set_restart_interval(kind.restarts);
    if kind.has_thumbnail {
        let thumbnail = picture(seed, 16, 8, Kind::default());
        encoder.add_app_segment(1, [b"Exif\0\0".to_vec(), thumbnail].concat()).unwrap();
    }
    if kind.has_previews {
        encoder.add_app_segment(2, b"MPF\0II*\0".to_vec()).unwrap();
    }
    encoder.encode(&pixels, width, height, ColorType::Rgb).unwrap();
    out
}

fn plain(seed: usize) -> Vec<u8> {
    picture(seed, 32, 24, Kind::default())
}

fn every_kind() -> Vec<Vec<u8>> {
    let kinds = [
        Kind::default(),
        Kind { restarts: 1, ..Kind::default() },
        Kind { is_progressive: true, ..Kind::default() },
        Kind { has_thumbnail: true, ..Kind::default() },
        Kind { restarts: 2, is_progressive: true, has_thumbnail: true, ..Kind::default() },
    ];
    kinds.into_iter().enumerate().map(|(seed, kind)| picture(seed, 40, 24, kind)).collect()
}

/// A picture with something more after its first marker.
fn with_inserted(picture: &[u8], bytes: &[u8]) -> Vec<u8> {
    [&picture[..2], bytes, &picture[2..]].concat()
}

/// Checks what is found in a file; says no more than the number of a picture that is wrong.
fn check(file: &[u8], pictures: &[Vec<u8>], warnings: &[Warning]) {
    let found = read(file);
    assert_eq!(found.1, warnings);
    let is_same = |index: usize| found.0.get(index) == pictures.get(index);
    assert_eq!((0..pictures.len().max(found.0.len())).find(|index| !is_same(*index)), None);
}

/// All pictures of a file, and what was noticed.
fn read(file: &[u8]) -> (Vec<Vec<u8>>, Vec<Warning>) {
    let show = Show::Movie { rate: 25, scale: 1 };
    let mut reader = Reader::open(file, show).unwrap();
    let mut pictures = vec![Vec::new(); reader.video_count() as usize];
    for (index, out) in pictures.iter_mut().enumerate() {
        reader.video_frame(index as u64, out).unwrap();
        assert!(is_complete(out));
    }
    let lens: Vec<_> = pictures.iter().map(|picture| picture.len() as u32).collect();
    assert_eq!(reader.video_lens().collect::<Vec<_>>(), lens);
    (pictures, reader.warnings().to_vec())
}

#[test]
fn pictures_of_every_kind_are_found_with_all_their_bytes() {
    let pictures = every_kind();
    assert!(pictures[1].windows(2).any(|pair| pair == [0xFF, 0xD0]), "no restart marker");
    assert!(pictures.iter().any(|it| it.windows(2).any(|pair| pair == [0xFF, 0])), "no stuffing");
    check(&pictures.concat(), &pictures, &[]);
}

#[test]
fn what_looks_like_a_picture_inside_a_segment_is_none() {
    let inner = plain(1);
    let comment_len = (inner.len() as u16 + 2).to_be_bytes();
    let comment = [&[0xFF, 0xFE][..], &comment_len, &inner].concat();
    let pictures = [
        with_inserted(&plain(2), &comment),
        with_inserted(&plain(3), &[0xFF, 0xFE, 0, 6, 0xFF, 0xD9, 0xFF, 0xD8]),
        // Fill bytes before a marker.
        with_inserted(&plain(4), &[0xFF; 5]),
        plain(5),
    ];
    check(&pictures.concat(), &pictures, &[]);
}

#[test]
fn padding_is_passed_in_silence_and_other_things_between_pictures_are_told() {
    let part = b"\r\n--cam\r\nContent-Type: image/jpeg\r\n\r\n";
    let pictures = [plain(1), plain(2), plain(3)];
    let padded = [&pictures[0], &[0; 7][..], &pictures[1], &[0xFF; 3], &pictures[2], &[0]].concat();
    check(&padded, &pictures, &[]);
    let parts = [&pictures[0], &part[..], &pictures[1], part, &pictures[2], part].concat();
    let passed =
        Warning::PassedOver { offset: pictures[0].len() as u64, len: 3 * part.len() as u64 };
    check(&parts, &pictures, &[passed]);
}

#[test]
fn a_picture_that_is_cut_anywhere_costs_itself_and_at_most_the_next() {
    let cut = picture(2, 32, 24, Kind { restarts: 1, ..Kind::default() });
    let others = [plain(1), plain(3), plain(4)];
    let mut spoilt = 0;
    for len in 3..cut.len() {
        let file = [&others[0], &cut[..len], &others[1], &others[2]].concat();
        let (found, warnings) = read(&file);
        let ends = found.first() == Some(&others[0]) && found.last() == Some(&others[2]);
        assert!(ends && found.len() <= 3, "cut at {len}: {}", found.len());
        let is_other = found.iter().all(|picture| others.contains(picture));
        // Where the cut is as long before the end of its segment as a segment of the next one is
        // from its start, nobody can tell.
        let is_joined = found.len() == 3 && found[1] == file[others[0].len()..][..found[1].len()];
        assert!(is_other || is_joined, "cut at {len}");
        let damaged = Warning::PicturesDamaged { offset: others[0].len() as u64, count: 1 };
        assert!(is_joined || warnings.contains(&damaged), "cut at {len}: {warnings:?}");
        spoilt += u32::from(found.len() < 3 || is_joined);
    }
    assert!(spoilt < 40, "{spoilt} of {}", cut.len());
}

#[test]
fn a_thumbnail_in_a_picture_that_is_cut_is_none_of_the_pictures() {
    let cut = picture(2, 32, 24, Kind { has_thumbnail: true, ..Kind::default() });
    let thumbnail_end = cut.windows(2).position(|pair| pair == [0xFF, 0xD9]).unwrap() + 2;
    let mut file = [plain(1), cut[..thumbnail_end].to_vec()].concat();
    let len_at = plain(1).len() + 20 + 2;
    assert_eq!(file[len_at - 2..len_at], [0xFF, 0xE1]);
    // The segment should be longer.
    file[len_at] += 1;
    file.extend_from_slice(&plain(3));
    let (found, warnings) = read(&file);
    assert!(found == [plain(1), plain(3)], "{}", found.len());
    let damaged = Warning::PicturesDamaged { offset: plain(1).len() as u64, count: 1 };
    assert!(warnings.contains(&damaged), "{warnings:?}");
}

#[test]
fn the_end_of_a_file_within_a_picture_costs_only_that_one() {
    let (first, last) = (plain(1), plain(2));
    for len in 3..last.len() {
        let damaged = Warning::PicturesDamaged { offset: first.len() as u64, count: 1 };
        let (found, warnings) = read(&[&first, &last[..len]].concat());
        assert!(found == [first.clone()] && warnings.contains(&damaged), "{len}: {warnings:?}");
    }
}

#[test]
fn pictures_across_the_blocks_in_which_a_file_is_read_are_found() {
    const BLOCK_LEN: usize = 256 << 10;
    let small = |seed| picture(seed, 16, 8, Kind { restarts: 1, ..Kind::default() });
    let second = small(2);
    for before in 0..second.len() + 4 {
        // Comments make the first picture end so many bytes before the block does.
        let mut first = small(1);
        while first.len() + 70_000 < BLOCK_LEN {
            first = with_inserted(&first, &[&[0xFF, 0xFE, 0xFF, 0xFF][..], &[7; 65_533]].concat());
        }
        let rest = BLOCK_LEN - before - first.len() - 4;
        let halves = [rest / 2, rest - rest / 2 - 4];
        for len in halves {
            let field = (len as u16 + 2).to_be_bytes();
            let comment = [&[0xFF, 0xFE][..], &field, &vec![7; len]].concat();
            first = with_inserted(&first, &comment);
        }
        assert_eq!(first.len(), BLOCK_LEN - before);
        let pictures = [first, second.clone(), small(3)];
        check(&pictures.concat(), &pictures, &[]);
    }
}

#[test]
fn one_picture_and_a_photo_with_previews_are_stills_unless_a_rate_says_otherwise() {
    let one = plain(1);
    let photo = picture(2, 64, 48, Kind { has_previews: true, ..Kind::default() });
    let photo = [photo, vec![1, 2, 3], plain(3)].concat();
    for (file, size, count) in [(one.clone(), (32, 24), 1), (photo, (64, 48), 2)] {
        let reader = Reader::open(&file[..], Show::ByContent).unwrap();
        let video = reader.video_format();
        assert!(video.is_still() && reader.index().is_still());
        assert_eq!((video.width, video.height, reader.video_count()), (size.0, size.1, 1));
        assert_eq!((reader.video_lens().count(), reader.warnings()), (1, &[][..]));
        let reader = Reader::open(&file[..], Show::Movie { rate: 5, scale: 2 }).unwrap();
        assert_eq!((reader.video_format().rate, reader.video_count()), (5, count));
        assert!(!reader.video_format().is_still());
        assert_eq!(reader.duration_ns(), 400_000_000 * count);
    }
    let two = [one.clone(), one].concat();
    let mut reader = Reader::open(&two[..], Show::Still).unwrap();
    assert!(reader.video_format().is_still() && !reader.index().is_still());
    let error = reader.video_frame(1, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, MjpegError::NoSuchPicture { index: 1, count: 1 }));
    let movie = Reader::open(&two[..], Show::ByContent).unwrap();
    assert_eq!((movie.video_format().rate, movie.video_count()), (25, 2));
}

#[test]
fn pictures_of_another_size_are_told_once() {
    let small = picture(3, 16, 8, Kind::default());
    let file = [plain(1), plain(2), small.clone(), plain(4), small].concat();
    assert_eq!(read(&file).1, [Warning::SizesDiffer { index: 2 }]);
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let error = |file: &[u8]| Reader::open(file, Show::ByContent).unwrap_err().to_string();
    assert!(error(b"").contains("expected FF D8 FF at byte 0, found \"\""));
    assert!(error(b"RIFFxx").contains("found \"RIFF\""));
    let one = plain(1);
    let text = error(&one[..one.len() - 1]);
    let end = one.len() - 1;
    assert!(text.contains(&format!("a whole JPEG picture before byte {end}")), "{text}");
    assert!(text.contains("ffmpeg -i in.mjpg -c:v mjpeg"), "{text}");
    // Whole, but of no size.
    assert!(error(b"\xFF\xD8\xFF\xD9").contains("a whole JPEG picture"));
    let zero = Reader::open(&one[..], Show::Movie { rate: 25, scale: 0 }).unwrap_err();
    assert!(zero.to_string().contains("a picture rate of 25/0"), "{zero}");
}

#[test]
fn a_picture_above_the_limit_is_refused_when_it_is_read() {
    let limits = Limits { video_frame_bytes_max: 100, ..Limits::default() };
    let mut reader = Reader::open_with(plain(1), Show::ByContent, limits).unwrap();
    let mut out = Vec::new();
    let error = reader.video_frame(0, &mut out).unwrap_err();
    assert!(matches!(error, MjpegError::PictureTooLarge { offset: 0, len_max: 100, .. }));
    assert_eq!(out.capacity(), 0);
}

#[test]
fn more_pictures_than_the_limit_are_left_out() {
    let limits = Limits { index_entries_max: 2, ..Limits::default() };
    let file = [plain(1), plain(2), plain(3)].concat();
    let reader = Reader::open_with(file, Show::ByContent, limits).unwrap();
    assert_eq!((reader.video_count(), reader.warnings().len()), (2, 1));
}

#[test]
fn a_file_that_changed_since_it_was_searched_gives_an_error_and_no_other_bytes() {
    let file = [plain(1), plain(2)].concat();
    let index = Arc::new(Index::of(&file[..]).unwrap());
    let mut out = Vec::new();
    let mut same = Reader::with_index(&file[..], Show::ByContent, Arc::clone(&index)).unwrap();
    same.video_frame(1, &mut out).unwrap();
    assert_eq!(out, plain(2));
    let moved = [&[0][..], &file].concat();
    let mut moved = Reader::with_index(moved, Show::ByContent, Arc::clone(&index)).unwrap();
    assert!(matches!(moved.video_frame(1, &mut out), Err(MjpegError::Changed { .. })));
    assert_eq!(out, []);
    let cut = file[..file.len() - 1].to_vec();
    let mut cut = Reader::with_index(cut, Show::ByContent, index).unwrap();
    assert!(matches!(cut.video_frame(1, &mut out), Err(MjpegError::Read(_))));
}

/// Counts the bytes that are read; zeros behind the file, as sparse files have them.
struct Counting<'a> {
    head: &'a [u8],
    len: u64,
    read_len: &'a Cell<u64>,
}

impl ReadAt for Counting<'_> {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.len - offset).unwrap_or(usize::MAX);
        let len = buf.len().min(rest);
        buf[..len].fill(0);
        self.head.read_at(offset, &mut buf[..len])?;
        self.read_len.set(self.read_len.get() + len as u64);
        Ok(len)
    }

    fn len(&self) -> u64 {
        self.len
    }
}

fn read_len(head: &[u8], len: u64) -> (Result<Index, MjpegError>, u64) {
    let read_len = Cell::new(0);
    let index = Index::of(Counting { head, len, read_len: &read_len });
    (index, read_len.get())
}

#[test]
fn the_search_reads_a_file_a_few_times_at_most_whatever_is_in_it() {
    let patterns: [&[u8]; 6] = [
        b"\xFF\xD8\xFF\xE0\x00\x10",
        b"\xFF\xD8\xFF\xDA\x00\x02\x01",
        b"\xFF\xD8\xFF\xE0\xFF\xFF",
        b"\xFF\xD8\xFF\xC0\x00\x0B\x08\x00\x01\x00\x01\xFF\xDA\x00\x02",
        b"\xFF",
        b"\xFF\xD8\xFF\xFE\x00\x00\xFF\xD8",
    ];
    for pattern in patterns {
        let file = [b"\xFF\xD8\xFF", &pattern.repeat(2_000_000 / pattern.len())[..]].concat();
        let (_, read_len) = read_len(&file, file.len() as u64);
        let most = 4 * file.len() as u64 + (1 << 20);
        assert!(read_len <= most, "{}: {read_len}", pattern.escape_ascii());
    }
}

#[test]
fn a_file_that_goes_on_with_nothing_is_given_up() {
    let one = plain(1);
    let (index, read_len) = read_len(&[&one[..], b"xy\xFF"].concat(), 1 << 60);
    assert_eq!(index.unwrap().len(), 1);
    assert!(read_len < 2 * scan::GAP_MAX, "{read_len}");
}
