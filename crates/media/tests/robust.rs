//! Files from outside: cut at every byte, changed at random, lying about lengths.
//!
//! Every result is allowed but a panic, memory beyond the bytes that exist, or no end.

#![allow(clippy::unwrap_used)]

use std::io::Cursor;
use std::time::Duration;

use dacapo_base::Random;
use dacapo_media::sound::{Container, Reader};
use dacapo_media::testmovie::TestSound;
use dacapo_media::{
    AudioFormat, Format, FormatError, Limits, ReadAt, SampleEncoding, TestMovie, au, avi, mjpeg,
    sniff, wav,
};

fn movie() -> TestMovie {
    TestMovie {
        width: 16,
        height: 16,
        quality: 20,
        duration: Duration::from_millis(160),
        sound: Some(TestSound { rate_hz: 1_000, channels: 1 }),
        ..TestMovie::default()
    }
}

/// The movie in as many shapes as the writer has: one segment, several, without an index.
fn avi_files() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for segment_bytes_max in [1 << 30, 1_200] {
        let config = avi::WriterConfig { segment_bytes_max, segments_max: 8 };
        let out = Cursor::new(Vec::new());
        let mut writer = avi::Writer::create_with(out, &formats(), config).unwrap();
        for media in movie().generator().unwrap() {
            writer.video_frame(0, &media.picture).unwrap();
            writer.audio(1, &media.sound).unwrap();
        }
        files.push(writer.finish().unwrap().into_inner());
    }
    let mut writer = avi::Writer::streaming(Vec::new(), &formats()).unwrap();
    for media in movie().generator().unwrap() {
        writer.video_frame(0, &media.picture).unwrap();
        writer.audio(1, &media.sound).unwrap();
    }
    files.push(writer.finish().unwrap());
    files.push(old_style(&files[0]));
    files
}

/// The same without the super index, so that `idx1` is used.
fn old_style(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    while let Some(at) = file.windows(4).position(|window| window == b"indx") {
        file[at..at + 4].copy_from_slice(b"JUNK");
    }
    file
}

fn formats() -> Vec<Format> {
    let audio = movie().audio_format().unwrap();
    vec![Format::Video(movie().video_format()), Format::Audio(audio)]
}

fn wav_files() -> Vec<Vec<u8>> {
    let format = movie().audio_format().unwrap();
    let rf64 = wav::WriterConfig { riff_bytes_max: 100 };
    let classic = movie().write_wav(Cursor::new(Vec::new())).unwrap().into_inner();
    let mut wide = wav::Writer::create_with(Cursor::new(Vec::new()), &format, rf64).unwrap();
    wide.audio(&classic[80..280]).unwrap();
    let mut pipe = wav::Writer::streaming(Vec::new(), &format).unwrap();
    pipe.audio(&classic[80..280]).unwrap();
    vec![classic, wide.finish().unwrap().into_inner(), pipe.finish().unwrap()]
}

/// A file of every kind of sample, with a length and without.
fn au_files() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for encoding in SampleEncoding::ALL {
        let format = AudioFormat::new(encoding, 2, 8_000);
        let sound = vec![7; format.block_len() as usize * 20];
        let mut whole = au::Writer::create(Cursor::new(Vec::new()), &format).unwrap();
        whole.audio(&sound).unwrap();
        files.push(whole.finish().unwrap().into_inner());
        let mut pipe = au::Writer::streaming(Vec::new(), &format).unwrap();
        pipe.audio(&sound).unwrap();
        files.push(pipe.finish().unwrap());
    }
    files
}

/// Four pictures one after the other, and the same with other things between them.
fn jpeg_files() -> Vec<Vec<u8>> {
    let pictures: Vec<_> = movie().generator().unwrap().map(|media| media.picture).collect();
    vec![pictures.concat(), pictures.join(&b"\r\n--cam\r\n"[..]), pictures[0].clone()]
}

/// Opens and reads everything; returns how many pictures and bytes of sound there were.
fn read_avi(bytes: &[u8]) -> Result<(u64, u64), avi::AviError> {
    let mut reader = avi::Reader::open(bytes)?;
    let (mut pictures, mut sound_len, mut out) = (0, 0, Vec::new());
    for stream in 0..reader.streams().len() {
        let count = reader.video_count(stream);
        assert!(count <= bytes.len() as u64 / 8);
        for index in 0..count {
            // A changed index may name a picture that is larger than the limit, not a wrong place.
            match reader.video_frame(stream, index, &mut out) {
                Ok(()) | Err(avi::AviError::PictureTooLarge { .. }) => {}
                Err(error) => panic!("picture {index}: {error}"),
            }
        }
        pictures += count;
        if reader.audio_format(stream).is_some() {
            reader.audio_bytes(stream, 0, 100_000, &mut out).unwrap();
            assert_eq!(out.len() as u64, reader.audio_len(stream).min(100_000));
            sound_len += reader.audio_len(stream);
        }
        assert!(reader.duration_ns(stream) < u64::MAX);
    }
    assert!(out.capacity() <= 2 * bytes.len().max(100_000));
    assert!(reader.warnings().len() <= 32);
    Ok((pictures, sound_len))
}

fn read_wav(bytes: &[u8]) -> Result<u64, wav::WavError> {
    read_sound(bytes, wav::Reader::open(bytes)?, 4)
}

fn read_au(bytes: &[u8]) -> Result<u64, au::AuError> {
    read_sound(bytes, au::Reader::open(bytes)?, 2)
}

/// Reads everything, and a piece; returns how many bytes of sound there were.
fn read_sound<C: Container>(
    bytes: &[u8],
    mut reader: Reader<&[u8], C>,
    warnings_max: usize,
) -> Result<u64, C::Error> {
    let mut out = Vec::new();
    reader.audio_bytes(0, usize::MAX, &mut out)?;
    assert_eq!(out.len() as u64, reader.audio_len());
    assert!(out.capacity() <= bytes.len() && reader.audio_len() <= bytes.len() as u64);
    reader.audio_bytes(3, 5, &mut out)?;
    assert!(reader.warnings().len() <= warnings_max);
    Ok(reader.audio_len())
}

/// Returns how many pictures there are.
fn read_jpeg(bytes: &[u8]) -> Result<u64, mjpeg::MjpegError> {
    let show = mjpeg::Show::Movie { rate: 25, scale: 1 };
    let mut reader = mjpeg::Reader::open(bytes, show)?;
    let (mut total, mut out) = (0, Vec::new());
    for index in 0..reader.video_count() {
        reader.video_frame(index, &mut out)?;
        assert!(mjpeg::is_complete(&out) && mjpeg::picture_size(&out).is_ok(), "{index}");
        total += out.len();
    }
    // Pictures do not overlap, so there are never more entries than bytes.
    assert!(total <= bytes.len() && out.capacity() <= 2 * bytes.len());
    assert!(reader.warnings().len() <= 5);
    Ok(reader.video_count())
}

#[test]
fn every_prefix_of_an_avi_file_gives_an_error_or_what_is_there() {
    for file in avi_files() {
        let whole = read_avi(&file).unwrap();
        assert_eq!(whole, (4, 320));
        let mut readable_before = (0, 0);
        let mut has_media = false;
        for len in 0..=file.len() {
            let Ok(readable) = read_avi(&file[..len]) else {
                assert!(!has_media, "a longer prefix is worse at {len}");
                continue;
            };
            has_media = true;
            assert!(readable.0 >= readable_before.0 && readable.1 >= readable_before.1, "{len}");
            readable_before = readable;
        }
        assert_eq!(readable_before, whole);
    }
}

#[test]
fn every_prefix_of_a_wav_file_gives_an_error_or_what_is_there() {
    for file in wav_files() {
        let whole = read_wav(&file).unwrap();
        assert!(whole >= 200);
        let mut readable_before = 0;
        for len in 0..=file.len() {
            if let Ok(readable) = read_wav(&file[..len]) {
                assert!(readable >= readable_before && readable <= whole, "{len}");
                readable_before = readable;
            }
        }
        assert_eq!(readable_before, whole);
    }
}

#[test]
fn every_prefix_of_an_au_file_gives_an_error_or_what_is_there() {
    for file in au_files() {
        check_prefixes(&file, |bytes| read_au(bytes).ok());
    }
}

#[test]
fn every_prefix_of_a_file_of_pictures_gives_an_error_or_what_is_there() {
    for file in jpeg_files() {
        check_prefixes(&file, |bytes| read_jpeg(bytes).ok());
    }
}

/// Checks that a longer prefix never has less.
fn check_prefixes(file: &[u8], read: impl Fn(&[u8]) -> Option<u64>) {
    let whole = read(file).unwrap();
    let mut readable_before = 0;
    for len in 0..=file.len() {
        let readable = read(&file[..len]).unwrap_or(0);
        assert!(readable >= readable_before && readable <= whole, "{len}");
        readable_before = readable;
    }
    assert_eq!((readable_before, whole > 0), (whole, true));
}

/// Changes a few bytes, or a field of four, or moves a piece.
fn mutate(file: &[u8], random: &mut Random) -> Vec<u8> {
    const FIELDS: [u32; 8] = [0, 1, 7, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFF0, u32::MAX, 1 << 24];
    let mut bytes = file.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(4) {
            0 => bytes[at] = random.next_u32() as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => {
                let field = FIELDS[random.below(FIELDS.len() as u64) as usize];
                let at = at.min(bytes.len() - 4) & !3;
                bytes[at..at + 4].copy_from_slice(&field.to_le_bytes());
            }
            _ => {
                let from = random.below(bytes.len() as u64) as usize;
                let len = (random.below(64) as usize).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + len, at);
            }
        }
    }
    bytes
}

/// Changes 16,000 times one of the files within its first bytes, as many as `head_len` says; how
/// many could be read.
fn changed(
    files: &[Vec<u8>],
    head_len: impl Fn(&mut Random) -> usize,
    read: fn(&[u8]) -> bool,
) -> u32 {
    let mut readable = 0;
    for seed in 0..16_000 {
        let mut random = Random::from_number(seed);
        let file = &files[random.below(files.len() as u64) as usize];
        let head_len = head_len(&mut random).min(file.len());
        let mut bytes = mutate(&file[..head_len], &mut random);
        bytes.extend_from_slice(&file[head_len..]);
        let read = std::panic::catch_unwind(|| read(&bytes));
        readable += u32::from(read.unwrap_or_else(|_| panic!("seed {seed}")));
    }
    readable
}

#[test]
fn changed_avi_files_never_panic_nor_take_memory_that_is_not_there() {
    // Headers are the interesting part, so half of the changes go there.
    let head_len = |random: &mut Random| if random.chance(0.5) { 1_000 } else { usize::MAX };
    let readable = changed(&avi_files(), head_len, |bytes| read_avi(bytes).is_ok());
    assert!(readable > 5_000, "{readable}");
}

#[test]
fn changed_wav_files_never_panic_nor_take_memory_that_is_not_there() {
    let readable = changed(&wav_files(), |_| 80, |bytes| read_wav(bytes).is_ok());
    assert!(readable > 1_000, "{readable}");
}

#[test]
fn changed_au_files_never_panic_nor_take_memory_that_is_not_there() {
    let readable = changed(&au_files(), |_| 28, |bytes| read_au(bytes).is_ok());
    assert!(readable > 1_000, "{readable}");
}

#[test]
fn changed_files_of_pictures_never_panic_nor_take_memory_that_is_not_there() {
    let files = jpeg_files();
    let (mut readable, mut pictures) = (0, 0);
    for seed in 0..16_000 {
        let mut random = Random::from_number(seed);
        let file = &files[random.below(files.len() as u64) as usize];
        let mut bytes = mutate(file, &mut random);
        // Markers are the interesting part, so half of the changes go there.
        if random.chance(0.5) {
            let ffs: Vec<_> = (3..file.len()).filter(|at| file[*at - 1] == 0xFF).collect();
            for _ in 0..=random.below(3) {
                bytes[ffs[random.below(ffs.len() as u64) as usize]] = random.next_u32() as u8;
            }
        }
        let read = std::panic::catch_unwind(|| read_jpeg(&bytes).ok());
        let read = read.unwrap_or_else(|_| panic!("seed {seed}"));
        readable += u32::from(read.is_some());
        pictures += read.unwrap_or(0);
    }
    assert!(readable > 10_000 && pictures > 20_000, "{readable} {pictures}");
}

#[test]
fn random_bytes_are_no_file_of_any_kind() {
    for seed in 0..20_000 {
        let mut random = Random::from_number(seed);
        let mut bytes = vec![0; random.below(600) as usize];
        random.fill(&mut bytes);
        assert!(sniff(&bytes[..]).is_err(), "seed {seed}");
        // With a right beginning the parsers go further.
        if bytes.len() >= 12 {
            bytes[..4].copy_from_slice(b"RIFF");
            bytes[8..12].copy_from_slice(b"AVI ");
            assert!(read_avi(&bytes).is_err(), "seed {seed}");
            bytes[8..12].copy_from_slice(b"WAVE");
            assert!(read_wav(&bytes).is_err(), "seed {seed}");
            bytes[..4].copy_from_slice(b".snd");
            assert!(read_au(&bytes).is_err(), "seed {seed}");
            bytes[..3].copy_from_slice(b"\xFF\xD8\xFF");
            assert!(read_jpeg(&bytes).is_err(), "seed {seed}");
        }
    }
}

/// Says that it is 1 EiB long and holds a header, then zeros, as sparse files do.
#[derive(Debug)]
struct Sparse(Vec<u8>);

impl ReadAt for Sparse {
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let head = self.0.as_slice().read_at(offset, buf)?;
        buf[head..].fill(0);
        Ok(buf.len())
    }

    fn len(&self) -> u64 {
        1 << 60
    }
}

#[test]
fn a_file_that_lies_about_its_length_takes_no_more_than_the_limits() {
    let mut file = avi_files().swap_remove(3);
    let idx1 = file.windows(4).position(|window| window == b"idx1").unwrap();
    // The first picture has 2 GiB, the index 4 GiB.
    file[idx1 + 8 + 12..idx1 + 8 + 16].copy_from_slice(&0x7FFF_FFFF_u32.to_le_bytes());
    file[idx1 + 4..idx1 + 8].copy_from_slice(&0xFFFF_FFF0_u32.to_le_bytes());
    let mut reader = avi::Reader::open(Sparse(file)).unwrap();
    let mut out = Vec::new();
    let error = reader.video_frame(0, 0, &mut out).unwrap_err();
    assert!(matches!(error, avi::AviError::PictureTooLarge { .. }), "{error}");
    assert_eq!(out.capacity(), 0);
    reader.video_frame(0, 1, &mut out).unwrap();
    assert!(out.capacity() < 4_096);
    reader.audio_bytes(1, 0, 1_000, &mut out).unwrap();
    assert!(out.capacity() < 4_096);
}

#[test]
fn a_header_of_a_gigabyte_is_refused() {
    let mut file = avi_files().swap_remove(0);
    file[16..20].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    let error = avi::Reader::open(Sparse(file)).unwrap_err();
    let len_max = Limits::default().header_bytes_max;
    let expected = format!("expected at most {len_max}");
    assert!(error.to_string().contains(&expected), "{error}");
}

#[test]
fn absurd_formats_are_refused_before_anything_is_made_of_them() {
    let file = wav_files().swap_remove(0);
    let fmt = file.windows(4).position(|window| window == b"fmt ").unwrap();
    let mut many = file.clone();
    many[fmt + 10..fmt + 12].copy_from_slice(&u16::MAX.to_le_bytes());
    let error = wav::Reader::open(many).unwrap_err();
    let source = FormatError::Channels { found: u16::MAX };
    assert!(error.to_string().contains(&source.to_string()), "{error}");
}
