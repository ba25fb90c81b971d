//! What `ffmpeg` writes is read here, and what is written here `ffmpeg` reads without a word.
//!
//! Skipped, with a line that says so, where `ffmpeg` is not installed.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{BufWriter, Cursor};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use dacapo_media::testmovie::{MediaFrame, TestSound};
use dacapo_media::{
    AudioFormat, FileInput, Format, Kind, SampleEncoding, TestMovie, VideoFormat, au, avi, codec,
    mjpeg, sniff, wav,
};

/// A directory for the files of one test, or nothing when there is no `ffmpeg` to try them with.
fn folder(test: &str) -> Option<PathBuf> {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        dacapo_base::skip(format!("{test}: ffmpeg is not installed"));
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

fn ffmpeg(args: &[&str]) -> Output {
    let base = ["-hide_banner", "-nostdin", "-v", "error", "-y"];
    Command::new("ffmpeg").args(base).args(args).output().unwrap()
}

/// Runs `ffmpeg`, which must succeed and say nothing; returns what it wrote.
fn quiet(args: &[&str]) -> Vec<u8> {
    let output = ffmpeg(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "ffmpeg {args:?}: {said}");
    output.stdout
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What `ffmpeg` finds in a stream without decoding it: size and checksum of every packet.
fn packets(path: &Path, stream: &str) -> Vec<(usize, u32)> {
    let text = quiet(&["-i", name(path), "-map", stream, "-c", "copy", "-f", "framecrc", "-"]);
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let field = |line: &str, at| line.split(',').nth(at).unwrap().trim().to_owned();
    lines
        .map(|line| {
            let sum = field(line, 5);
            let sum = u32::from_str_radix(sum.trim_start_matches("0x"), 16).unwrap();
            (field(line, 4).parse().unwrap(), sum)
        })
        .collect()
}

/// Adler-32 as `framecrc` computes it, from 0 on.
fn checksum(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((0_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

fn packet(bytes: &[u8]) -> (usize, u32) {
    (bytes.len(), checksum(bytes))
}

/// The bytes of a stream's packets, joined.
fn joined(path: &Path, stream: &str) -> Vec<u8> {
    quiet(&["-i", name(path), "-map", stream, "-c", "copy", "-f", "data", "-"])
}

/// A file, which must be known as one of this kind.
fn sniffed(path: &Path, kind: Kind) -> FileInput {
    let file = || FileInput::new(File::open(path).unwrap()).unwrap();
    assert_eq!(sniff(file()).unwrap(), kind);
    file()
}

fn open_avi(path: &Path) -> avi::Reader<FileInput> {
    avi::Reader::open(sniffed(path, Kind::Avi)).unwrap()
}

fn open_wav(path: &Path) -> wav::Reader<FileInput> {
    wav::Reader::open(sniffed(path, Kind::Wav)).unwrap()
}

fn open_au(path: &Path) -> au::Reader<FileInput> {
    au::Reader::open(sniffed(path, Kind::Au)).unwrap()
}

fn open_jpeg(path: &Path) -> mjpeg::Reader<FileInput> {
    mjpeg::Reader::open(sniffed(path, Kind::Jpeg), mjpeg::Show::ByContent).unwrap()
}

fn pictures<R: dacapo_media::ReadAt>(reader: &mut avi::Reader<R>, stream: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); reader.video_count(stream) as usize];
    for (index, out) in all.iter_mut().enumerate() {
        reader.video_frame(stream, index as u64, out).unwrap();
    }
    all
}

fn sound<R: dacapo_media::ReadAt>(reader: &mut avi::Reader<R>, stream: usize) -> Vec<u8> {
    let mut out = Vec::new();
    reader.audio_bytes(stream, 0, usize::MAX, &mut out).unwrap();
    out
}

/// Checks that both see the same packets and the same sound in a file with both.
fn check_same(path: &Path) -> avi::Reader<FileInput> {
    let mut reader = open_avi(path);
    if let Some(video) = reader.first_video() {
        let own: Vec<_> = pictures(&mut reader, video).iter().map(|p| packet(p)).collect();
        let shown: Vec<_> = own.into_iter().filter(|(len, _)| *len > 0).collect();
        assert!(shown.len() >= 15 && shown == packets(path, "0:v:0"), "{path:?}");
    }
    if let Some(audio) = reader.first_audio() {
        assert!(sound(&mut reader, audio) == joined(path, "0:a:0"), "{path:?}");
    }
    reader
}

const SOURCE: [&str; 8] = [
    "-f",
    "lavfi",
    "-i",
    "testsrc=size=96x64:rate=RATE:duration=2",
    "-f",
    "lavfi",
    "-i",
    "sine=frequency=440:sample_rate=44100:duration=2",
];

/// Has `ffmpeg` make a movie of two seconds at that rate, with more arguments.
fn made_by_ffmpeg(path: &Path, rate: &str, args: &[&str]) {
    let source: Vec<_> = SOURCE.iter().map(|arg| arg.replace("RATE", rate)).collect();
    let mut all: Vec<&str> = source.iter().map(String::as_str).collect();
    all.extend(["-c:v", "mjpeg", "-q:v", "5", "-bitexact"]);
    all.extend(args);
    all.push(name(path));
    quiet(&all);
}

#[test]
fn movies_of_every_subsampling_rate_and_sample_format_are_read() {
    let Some(folder) = folder("avi-kinds") else { return };
    use SampleEncoding::{ALaw, F32, MuLaw, S16, S24, U8};
    let cases = [
        ("yuvj420p", "25", "pcm_s16le", "2", S16, (25, 1)),
        ("yuvj422p", "30000/1001", "pcm_u8", "1", U8, (30_000, 1_001)),
        ("yuvj444p", "24000/1001", "pcm_s24le", "2", S24, (24_000, 1_001)),
        ("yuvj420p", "15/2", "pcm_f32le", "6", F32, (15, 2)),
        ("yuvj420p", "25", "pcm_mulaw", "1", MuLaw, (25, 1)),
        ("yuvj420p", "25", "pcm_alaw", "2", ALaw, (25, 1)),
    ];
    for (pixels, rate, codec, channels, encoding, fps) in cases {
        let path = folder.join(format!("{pixels}-{codec}.avi"));
        made_by_ffmpeg(&path, rate, &["-pix_fmt", pixels, "-c:a", codec, "-ac", channels]);
        let mut reader = check_same(&path);
        assert_eq!(reader.warnings(), []);
        let video = reader.video_format(0).unwrap().clone();
        assert_eq!((video.width, video.height), (96, 64));
        assert_eq!(video.rate * fps.1, video.scale * fps.0, "{rate}");
        let audio = reader.audio_format(1).unwrap();
        assert_eq!((audio.encoding, audio.rate_hz), (encoding, 44_100));
        assert_eq!(audio.channels.to_string(), channels);
        for picture in pictures(&mut reader, 0) {
            assert_eq!(mjpeg::picture_size(&picture), Ok((96, 64)));
            assert!(mjpeg::is_complete(&picture));
        }
    }
}

#[test]
fn movies_without_an_index_and_through_a_pipe_are_read() {
    let Some(folder) = folder("avi-no-index") else { return };
    let whole = folder.join("whole.avi");
    made_by_ffmpeg(&whole, "25", &["-c:a", "pcm_s16le"]);
    let expected = pictures(&mut open_avi(&whole), 0);
    let piped = folder.join("piped.avi");
    let bytes = quiet(&["-i", name(&whole), "-map", "0", "-c", "copy", "-f", "avi", "pipe:1"]);
    fs::write(&piped, bytes).unwrap();
    assert_eq!(pictures(&mut check_same(&piped), 0), expected);
    let mut bytes = fs::read(&whole).unwrap();
    let idx1 = bytes.windows(4).rposition(|window| window == b"idx1").unwrap();
    bytes.truncate(idx1);
    let mut reader = avi::Reader::open(bytes).unwrap();
    assert_eq!(pictures(&mut reader, 0), expected);
    assert_eq!(reader.warnings().len(), 1);
}

#[test]
fn movies_with_reserved_index_space_and_several_streams_are_read() {
    let Some(folder) = folder("avi-streams") else { return };
    let path = folder.join("reserved.avi");
    made_by_ffmpeg(&path, "25", &["-c:a", "pcm_s16le", "-reserve_index_space", "4096"]);
    assert_eq!(check_same(&path).warnings(), []);
    let path = folder.join("streams.avi");
    let maps = ["-map", "0:v", "-map", "1:a", "-map", "0:v", "-map", "1:a", "-c:a", "pcm_s16le"];
    made_by_ffmpeg(&path, "25", &maps);
    let mut reader = check_same(&path);
    assert_eq!(reader.streams().len(), 4);
    assert_eq!(pictures(&mut reader, 0), pictures(&mut reader, 2));
    assert_eq!(sound(&mut reader, 1), sound(&mut reader, 3));
}

#[test]
#[ignore = "has ffmpeg write 1.1 GB to reach its OpenDML index: make large"]
fn movies_above_a_gigabyte_are_read_by_their_open_dml_index() {
    let Some(folder) = folder("avi-large") else { return };
    let path = folder.join("large.avi");
    let source = ["-f", "lavfi", "-i", "testsrc=size=64x64:rate=25:duration=180"];
    let audio = ["-f", "lavfi", "-i", "anullsrc=r=192000:cl=7.1", "-t", "180", "-c:v", "mjpeg"];
    let args = [&source[..], &audio, &["-c:a", "pcm_s32le", name(&path)]].concat();
    quiet(&args);
    let mut reader = open_avi(&path);
    assert_eq!(reader.warnings(), []);
    assert_eq!((reader.video_count(0), reader.audio_len(1)), (4_500, 180 * 192_000 * 32));
    let own: Vec<_> = pictures(&mut reader, 0).iter().map(|p| packet(p)).collect();
    assert_eq!(own, packets(&path, "0:v:0"));
    fs::remove_file(path).unwrap();
}

#[test]
#[ignore = "writes 2.4 GB to fill segments of the default length: make large"]
fn movies_above_two_gigabytes_are_written_and_read_by_ffmpeg() {
    let Some(folder) = folder("avi-larger") else { return };
    let path = folder.join("larger.avi");
    let sound = Some(TestSound { rate_hz: 4_000_000, channels: 8 });
    let movie = TestMovie { sound, ..movie(64, 48) };
    let media = movie.generator().unwrap().next().unwrap();
    let out = BufWriter::new(File::create(&path).unwrap());
    let mut writer = avi::Writer::create(out, &formats(&movie)).unwrap();
    (0..950).for_each(|_| write_all(&mut writer, std::slice::from_ref(&media)));
    writer.finish().unwrap();
    assert_eq!(packets(&path, "0:v:0"), vec![packet(&media.picture); 950]);
    assert_eq!(probe(&path, "format=duration"), "38.000000");
    let mut reader = open_avi(&path);
    assert_eq!(reader.warnings(), []);
    assert_eq!((reader.video_count(0), reader.audio_len(1)), (950, 38 * 4_000_000 * 16));
    let mut out = Vec::new();
    reader.video_frame(0, 949, &mut out).unwrap();
    assert_eq!(out, media.picture);
    fs::remove_file(path).unwrap();
}

#[test]
fn sound_of_every_sample_format_is_read() {
    let Some(folder) = folder("wav-kinds") else { return };
    use SampleEncoding::{ALaw, F32, F64, MuLaw, S16, S24, S32, U8};
    let cases = [
        ("pcm_u8", "1", "8000", U8),
        ("pcm_s16le", "2", "44100", S16),
        ("pcm_s24le", "1", "48000", S24),
        ("pcm_s32le", "2", "192000", S32),
        ("pcm_f32le", "2", "44100", F32),
        ("pcm_f64le", "1", "44100", F64),
        ("pcm_s24le", "6", "96000", S24),
        ("pcm_s16le", "6", "96000", S16),
        ("pcm_mulaw", "1", "8000", MuLaw),
        ("pcm_alaw", "2", "44100", ALaw),
    ];
    for (codec, channels, rate, encoding) in cases {
        for rf64 in ["never", "always"] {
            let path = folder.join(format!("{codec}-{channels}-{rf64}.wav"));
            // An even number of samples: ffmpeg counts the pad byte as sound in RF64.
            let sine = format!("sine=frequency=1000:sample_rate={rate}:duration=0.776");
            let source = ["-f", "lavfi", "-i", &sine];
            let form = ["-c:a", codec, "-ac", channels, "-ar", rate, "-rf64", rf64, name(&path)];
            quiet(&[&source[..], &form].concat());
            let mut reader = open_wav(&path);
            let format = reader.format().clone();
            assert_eq!((format.encoding, format.channels.to_string()), (encoding, channels.into()));
            assert_eq!(format.rate_hz.to_string(), rate);
            assert_eq!(
                (format.channel_mask == 0x3F, channels == "6"),
                (channels == "6", format.channels == 6)
            );
            let mut out = Vec::new();
            reader.audio_bytes(0, usize::MAX, &mut out).unwrap();
            assert!(out == joined(&path, "0:a:0") && reader.warnings().is_empty(), "{path:?}");
        }
    }
    let source = ["-f", "lavfi", "-i", "sine=frequency=1000:duration=0.776"];
    let piped = quiet(&[&source[..], &["-f", "wav", "pipe:1"]].concat());
    let reader = wav::Reader::open(piped).unwrap();
    assert_eq!((reader.sample_count(), reader.warnings()), (34_222, &[][..]));
}

/// What `ffmpeg` calls an encoding, in the order of bytes of a file.
fn codec_name(encoding: SampleEncoding, order: &str) -> String {
    match encoding {
        SampleEncoding::MuLaw => "pcm_mulaw".to_owned(),
        SampleEncoding::ALaw => "pcm_alaw".to_owned(),
        SampleEncoding::U8 if order == "be" => "pcm_s8".to_owned(),
        SampleEncoding::U8 => "pcm_u8".to_owned(),
        other => format!("pcm_{other}{order}"),
    }
}

/// All samples of a file as 16 bit numbers, as `ffmpeg` makes them.
fn linear(path: &Path) -> Vec<i16> {
    let bytes = quiet(&["-i", name(path), "-f", "s16le", "-c:a", "pcm_s16le", "-"]);
    bytes.as_chunks().0.iter().map(|raw| i16::from_le_bytes(*raw)).collect()
}

#[test]
fn au_of_every_sample_format_has_the_samples_of_wav() {
    let Some(folder) = folder("au-kinds") else { return };
    for encoding in SampleEncoding::ALL {
        for (channels, rate) in [("1", "8000"), ("2", "44100"), ("6", "96000")] {
            let path = |ending: &str| folder.join(format!("{encoding}-{channels}.{ending}"));
            let (au, wav) = (path("au"), path("wav"));
            let sine = format!("sine=frequency=1000:sample_rate={rate}:duration=0.777");
            let source = ["-f", "lavfi", "-i", &sine, "-ac", channels];
            let form = ["-metadata", "title=An annotation", "-c:a", &codec_name(encoding, "be")];
            quiet(&[&source[..], &form, &[name(&au)]].concat());
            quiet(&["-i", name(&au), "-c:a", &codec_name(encoding, "le"), name(&wav)]);
            let (mut reader, mut other) = (open_au(&au), open_wav(&wav));
            assert_eq!(reader.format(), other.format());
            assert_eq!(reader.warnings(), []);
            let (mut own, mut expected) = (Vec::new(), Vec::new());
            reader.audio_bytes(0, usize::MAX, &mut own).unwrap();
            other.audio_bytes(0, usize::MAX, &mut expected).unwrap();
            assert!(own.len() > 6_000 && own == expected, "{au:?}");
        }
    }
    let source = ["-f", "lavfi", "-i", "sine=frequency=1000:duration=0.777"];
    let piped = quiet(&[&source[..], &["-f", "au", "pipe:1"]].concat());
    let reader = au::Reader::open(piped).unwrap();
    assert_eq!((reader.sample_count(), reader.warnings()), (34_266, &[][..]));
}

#[test]
fn every_code_of_the_two_laws_has_the_sample_that_ffmpeg_gives_it() {
    let Some(folder) = folder("laws") else { return };
    for (encoding, table) in
        [(SampleEncoding::MuLaw, &codec::MULAW), (SampleEncoding::ALaw, &codec::ALAW)]
    {
        let path = folder.join(format!("{encoding}.au"));
        let format = AudioFormat::new(encoding, 1, 8_000);
        let mut writer = au::Writer::create(File::create(&path).unwrap(), &format).unwrap();
        writer.audio(&(0..=255).collect::<Vec<u8>>()).unwrap();
        writer.finish().unwrap();
        assert_eq!(linear(&path), table);
    }
}

#[test]
fn written_au_is_read_by_ffmpeg() {
    let Some(folder) = folder("au-written") else { return };
    for encoding in SampleEncoding::ALL {
        for (channels, rate_hz) in [(1, 8_000), (2, 44_100)] {
            let format = AudioFormat::new(encoding, channels, rate_hz);
            // A value that every kind of sample can have.
            let data: Vec<u8> =
                (0..format.block_len() * 1_001).map(|i| 0x30 + (i % 15) as u8).collect();
            for is_piped in [false, true] {
                let path = folder.join(format!("{encoding}-{channels}-{is_piped}.au"));
                let out = File::create(&path).unwrap();
                if is_piped {
                    let mut writer = au::Writer::streaming(out, &format).unwrap();
                    writer.audio(&data).unwrap();
                    writer.finish().unwrap();
                } else {
                    let mut writer = au::Writer::create(out, &format).unwrap();
                    writer.audio(&data).unwrap();
                    writer.finish().unwrap();
                }
                let form = codec_name(encoding, "le");
                let container = form.trim_start_matches("pcm_");
                let args = ["-i", name(&path), "-c:a", &form, "-f", container, "-"];
                assert!(quiet(&args) == data, "{path:?}");
                let expected = format!("{},{rate_hz},{channels}", codec_name(encoding, "be"));
                assert_eq!(probe(&path, "stream=codec_name,sample_rate,channels"), expected);
            }
        }
    }
}

#[test]
fn pictures_one_after_the_other_are_those_that_ffmpeg_finds() {
    let Some(folder) = folder("jpegs") else { return };
    for (pixels, size) in [("yuvj420p", "96x64"), ("yuvj422p", "640x480"), ("yuvj444p", "161x121")]
    {
        let path = folder.join(format!("{pixels}.mjpeg"));
        let source = format!("testsrc=size={size}:rate=25:duration=2");
        let form = ["-pix_fmt", pixels, "-c:v", "mjpeg", "-q:v", "3", "-f", "mjpeg", name(&path)];
        quiet(&[&["-f", "lavfi", "-i", &source][..], &form].concat());
        let mut reader = open_jpeg(&path);
        assert_eq!((reader.video_count(), reader.warnings()), (50, &[][..]));
        let video = reader.video_format();
        assert_eq!(format!("{}x{}", video.width, video.height), size);
        let mut picture = Vec::new();
        let own: Vec<_> = (0..50)
            .map(|index| {
                reader.video_frame(index, &mut picture).unwrap();
                packet(&picture)
            })
            .collect();
        assert_eq!(own, packets(&path, "0:v:0"));
    }
    let path = folder.join("one.jpg");
    quiet(&["-f", "lavfi", "-i", "testsrc2=size=96x64", "-frames:v", "1", name(&path)]);
    let mut reader = open_jpeg(&path);
    let mut picture = Vec::new();
    reader.video_frame(0, &mut picture).unwrap();
    assert!(reader.video_format().is_still() && picture == fs::read(&path).unwrap());
}

#[test]
fn parts_of_a_camera_are_read_without_what_stands_between_them() {
    let Some(folder) = folder("parts") else { return };
    let (plain, parts) = (folder.join("plain.mjpeg"), folder.join("parts.mjpeg"));
    let source = ["-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=1", "-c:v", "mjpeg"];
    quiet(&[&source[..], &["-bitexact", "-f", "mjpeg", name(&plain)]].concat());
    quiet(&[&source[..], &["-bitexact", "-f", "mpjpeg", name(&parts)]].concat());
    let bytes = fs::read(&parts).unwrap();
    let start = bytes.windows(3).position(|head| head == [0xFF, 0xD8, 0xFF]).unwrap();
    let show = mjpeg::Show::ByContent;
    let mut reader = mjpeg::Reader::open(&bytes[start..], show).unwrap();
    let mut other = mjpeg::Reader::open(fs::read(&plain).unwrap(), show).unwrap();
    assert_eq!((reader.video_count(), reader.warnings().len()), (25, 1));
    let (mut own, mut expected) = (Vec::new(), Vec::new());
    for index in 0..25 {
        reader.video_frame(index, &mut own).unwrap();
        other.video_frame(index, &mut expected).unwrap();
        assert!(own == expected, "{index}");
    }
}

fn movie(width: u32, height: u32) -> TestMovie {
    let duration = Duration::from_millis(1_300);
    TestMovie { width, height, duration, ..TestMovie::default() }
}

fn formats(movie: &TestMovie) -> Vec<Format> {
    let video = Format::Video(movie.video_format());
    [Some(video), movie.audio_format().map(Format::Audio)].into_iter().flatten().collect()
}

/// Puts all of it, or what comes before a crash, into a writer.
fn write_all<S: dacapo_media::Sink>(writer: &mut avi::Writer<S>, media: &[MediaFrame]) {
    for piece in media {
        writer.video_frame(0, &piece.picture).unwrap();
        if !piece.sound.is_empty() {
            writer.audio(1, &piece.sound).unwrap();
        }
    }
}

/// Checks that `ffmpeg` decodes a file in silence and finds just these pictures and this sound.
fn check_written(path: &Path, media: &[MediaFrame]) {
    quiet(&["-i", name(path), "-f", "null", "-"]);
    let expected: Vec<_> = media.iter().map(|piece| packet(&piece.picture)).collect();
    assert_eq!(packets(path, "0:v:0"), expected, "{path:?}");
    let expected: Vec<u8> = media.iter().flat_map(|piece| piece.sound.clone()).collect();
    if !expected.is_empty() {
        assert!(joined(path, "0:a:0") == expected, "{path:?}");
    }
    let mut reader = open_avi(path);
    let own: Vec<_> = media.iter().map(|piece| piece.picture.clone()).collect();
    assert!(pictures(&mut reader, 0) == own, "{path:?}");
}

/// What `ffprobe` says of a stream.
fn probe(path: &Path, entries: &str) -> String {
    let args = ["-v", "error", "-of", "csv=p=0", "-show_entries", entries, name(path)];
    let output = Command::new("ffprobe").args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.is_empty(), "ffprobe {path:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn written_movies_of_any_size_rate_and_number_of_segments_are_read_by_ffmpeg() {
    let Some(folder) = folder("avi-written") else { return };
    let odd = TestMovie {
        rate: 30_000,
        scale: 1_001,
        sound: Some(TestSound { rate_hz: 44_100, channels: 1 }),
        ..movie(33, 17)
    };
    let silent = TestMovie { sound: None, ..movie(64, 48) };
    let single = TestMovie { duration: Duration::from_millis(40), ..movie(64, 48) };
    for (which, movie) in [movie(64, 48), odd, silent, single].into_iter().enumerate() {
        let media: Vec<_> = movie.generator().unwrap().collect();
        for segment_bytes_max in [1 << 30, 20_000, 6_000] {
            let path = folder.join(format!("{which}-{segment_bytes_max}.avi"));
            let config = avi::WriterConfig { segment_bytes_max, segments_max: 64 };
            let out = BufWriter::new(File::create(&path).unwrap());
            let mut writer = avi::Writer::create_with(out, &formats(&movie), config).unwrap();
            write_all(&mut writer, &media);
            writer.finish().unwrap();
            check_written(&path, &media);
            assert_eq!(open_avi(&path).warnings(), []);
            let rate = probe(&path, "stream=r_frame_rate");
            let expected = format!("{}/{}", movie.rate, movie.scale);
            assert!(rate.starts_with(&expected), "{rate}");
        }
    }
}

#[test]
fn the_duration_that_ffprobe_reads_is_that_of_all_segments() {
    let Some(folder) = folder("avi-duration") else { return };
    let movie = TestMovie { duration: Duration::from_secs(4), ..movie(64, 48) };
    for segment_bytes_max in [1 << 30, 30_000] {
        let path = folder.join(format!("{segment_bytes_max}.avi"));
        let config = avi::WriterConfig { segment_bytes_max, segments_max: 64 };
        let out = File::create(&path).unwrap();
        let mut writer = avi::Writer::create_with(out, &formats(&movie), config).unwrap();
        write_all(&mut writer, &movie.generator().unwrap().collect::<Vec<_>>());
        writer.finish().unwrap();
        assert_eq!(probe(&path, "format=duration"), "4.000000");
        assert_eq!(probe(&path, "stream=nb_frames").lines().next(), Some("100"));
    }
}

#[test]
fn a_movie_that_was_never_finished_is_read_by_ffmpeg() {
    let Some(folder) = folder("avi-crashed") else { return };
    let movie = movie(64, 48);
    let media: Vec<_> = movie.generator().unwrap().collect();
    for segment_bytes_max in [1 << 30, 20_000] {
        for sync_at in [None, Some(10)] {
            let path = folder.join(format!("{segment_bytes_max}-{}.avi", sync_at.is_some()));
            let config = avi::WriterConfig { segment_bytes_max, segments_max: 64 };
            let out = File::create(&path).unwrap();
            let mut writer = avi::Writer::create_with(out, &formats(&movie), config).unwrap();
            let (before, after) = media.split_at(sync_at.unwrap_or(0));
            write_all(&mut writer, before);
            if sync_at.is_some() {
                writer.sync().unwrap();
            }
            write_all(&mut writer, after);
            drop(writer);
            check_written(&path, &media);
        }
    }
}

#[test]
fn a_stream_into_a_pipe_is_read_by_ffmpeg_as_file_and_as_pipe() {
    let Some(folder) = folder("avi-streamed") else { return };
    let movie = movie(64, 48);
    let media: Vec<_> = movie.generator().unwrap().collect();
    let path = folder.join("streamed.avi");
    let out = File::create(&path).unwrap();
    let mut writer = avi::Writer::streaming(out, &formats(&movie)).unwrap();
    write_all(&mut writer, &media);
    writer.finish().unwrap();
    check_written(&path, &media);
    let base = ["-nostdin", "-hide_banner", "-v", "error", "-f", "avi", "-i", "pipe:0"];
    let args = ["-map", "0:v:0", "-c", "copy", "-f", "framecrc", "-"];
    let stdin = File::open(&path).unwrap();
    let output = Command::new("ffmpeg").args(base).args(args).stdin(stdin).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), media.len());
}

#[test]
fn repeated_pictures_keep_the_time_of_those_after_them() {
    let Some(folder) = folder("avi-repeated") else { return };
    let movie = TestMovie { sound: None, ..movie(64, 48) };
    let media: Vec<_> = movie.generator().unwrap().take(6).collect();
    let path = folder.join("repeated.avi");
    let out = File::create(&path).unwrap();
    let mut writer = avi::Writer::create(out, &formats(&movie)).unwrap();
    for piece in &media {
        writer.video_frame(0, &piece.picture).unwrap();
        writer.video_frame(0, &[]).unwrap();
    }
    writer.finish().unwrap();
    quiet(&["-i", name(&path), "-f", "null", "-"]);
    let times = probe(&path, "packet=pts");
    let times: Vec<u32> = times.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(times, [0, 2, 4, 6, 8, 10]);
    assert_eq!(open_avi(&path).video_count(0), 12);
}

#[test]
fn movies_without_pictures_are_read_by_ffmpeg() {
    let Some(folder) = folder("avi-bare") else { return };
    let audio = Format::Audio(AudioFormat::new(SampleEncoding::S24, 6, 48_000));
    let path = folder.join("audio-only.avi");
    let mut writer = avi::Writer::create(File::create(&path).unwrap(), &[audio]).unwrap();
    let data: Vec<u8> = (0..18 * 4_800).map(|i: u32| (i * 7) as u8).collect();
    data.chunks(18 * 960).for_each(|piece| writer.audio(0, piece).unwrap());
    writer.finish().unwrap();
    quiet(&["-i", name(&path), "-f", "null", "-"]);
    assert!(joined(&path, "0:a:0") == data);
    assert_eq!(probe(&path, "stream=codec_name,channels"), "pcm_s24le,6");

    let path = folder.join("nothing.avi");
    let video = Format::Video(VideoFormat::new(64, 48, 25, 1));
    let writer = avi::Writer::create(File::create(&path).unwrap(), &[video]).unwrap();
    writer.finish().unwrap();
    // Copied, not decoded: without a picture nothing can be, nor in a file of its own.
    assert_eq!(packets(&path, "0:v:0"), []);
    assert_eq!(probe(&path, "stream=codec_name,width,height"), "mjpeg,64,48");
    assert_eq!((open_avi(&path).video_count(0), open_avi(&path).warnings()), (0, &[][..]));
}

#[test]
fn written_sound_is_read_by_ffmpeg() {
    let Some(folder) = folder("wav-written") else { return };
    for encoding in SampleEncoding::ALL {
        for (channels, rate_hz) in [(1, 8_000), (2, 44_100), (6, 96_000)] {
            let format = AudioFormat::new(encoding, channels, rate_hz);
            let data = vec![0x11; format.block_len() as usize * 1_001];
            // One shape per layout of the header, beside the plain one.
            for riff_bytes_max in if channels == 6 { vec![u32::MAX, 1_000] } else { vec![u32::MAX] }
            {
                let path = folder.join(format!("{encoding}-{channels}-{riff_bytes_max}.wav"));
                let config = wav::WriterConfig { riff_bytes_max };
                let out = File::create(&path).unwrap();
                let mut writer = wav::Writer::create_with(out, &format, config).unwrap();
                writer.audio(&data).unwrap();
                writer.finish().unwrap();
                check_sound(&path, &format, &data);
            }
        }
    }
}

#[test]
fn sound_streamed_into_a_pipe_is_read_by_ffmpeg() {
    let Some(folder) = folder("wav-streamed") else { return };
    for encoding in SampleEncoding::ALL {
        let format = AudioFormat::new(encoding, 1, 44_100);
        let data = vec![0x11; format.block_len() as usize * 1_001];
        let path = folder.join(format!("{encoding}.wav"));
        let mut writer = wav::Writer::streaming(File::create(&path).unwrap(), &format).unwrap();
        writer.audio(&data).unwrap();
        writer.finish().unwrap();
        check_sound(&path, &format, &data);
    }
}

fn check_sound(path: &Path, format: &AudioFormat, data: &[u8]) {
    // Decodes to nowhere and copies out, in one go.
    let both = ["-f", "null", "-", "-map", "0:a:0", "-c", "copy", "-f", "data", "pipe:1"];
    assert!(quiet(&[&["-i", name(path)][..], &both].concat()) == data, "{path:?}");
    let form = codec_name(format.encoding, "le");
    let expected = format!("{form},{},{}", format.rate_hz, format.channels);
    assert_eq!(probe(path, "stream=codec_name,sample_rate,channels"), expected);
}

#[test]
fn other_files_are_refused_with_a_line_that_converts_them() {
    let Some(folder) = folder("convert") else { return };
    let kinds: [(&str, &[&str]); 7] = [
        ("mp4", &["-c:v", "mpeg4", "-c:a", "aac"]),
        ("mkv", &["-c:v", "mpeg4", "-c:a", "pcm_s16le"]),
        ("mov", &["-c:v", "mjpeg", "-c:a", "pcm_s16le"]),
        ("ts", &["-c:v", "mpeg2video", "-c:a", "mp2"]),
        ("flac", &["-map", "1:a"]),
        ("aiff", &["-map", "1:a"]),
        ("png", &["-map", "0:v", "-frames:v", "1", "-c:v", "png"]),
    ];
    for (kind, args) in kinds {
        let path = folder.join(format!("in.{kind}"));
        made_by_ffmpeg(&path, "25", args);
        let refusal = sniff(fs::read(&path).unwrap()).unwrap_err().to_string();
        check_conversion(&folder, &path, &refusal, "INPUT", "OUTPUT");
    }
    let path = folder.join("in.avi");
    made_by_ffmpeg(&path, "25", &["-c:v", "mpeg4", "-c:a", "adpcm_ms"]);
    let refusal = avi::Reader::open(fs::read(&path).unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("MPEG-4"), "{refusal}");
    check_conversion(&folder, &path, &refusal, "in.avi", "out");
    let path = folder.join("in.wav");
    made_by_ffmpeg(&path, "25", &["-map", "1:a", "-c:a", "adpcm_ms"]);
    let refusal = wav::Reader::open(fs::read(&path).unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("ADPCM"), "{refusal}");
    check_conversion(&folder, &path, &refusal, "in.wav", "out");
    let path = folder.join("in.au");
    made_by_ffmpeg(&path, "25", &["-map", "1:a", "-c:a", "adpcm_g722"]);
    let refusal = au::Reader::open(fs::read(&path).unwrap()).unwrap_err().to_string();
    assert!(refusal.contains("G.722 ADPCM"), "{refusal}");
    check_conversion(&folder, &path, &refusal, "in.au", "out");
    let path = folder.join("in.mjpg");
    made_by_ffmpeg(&path, "25", &["-map", "0:v", "-frames:v", "1", "-f", "mjpeg"]);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 2]).unwrap();
    let show = mjpeg::Show::ByContent;
    let refusal = mjpeg::Reader::open(fs::read(&path).unwrap(), show).unwrap_err().to_string();
    check_conversion(&folder, &path, &refusal, "in.mjpg", "out");
}

/// Runs the line at the end of a refusal and opens what comes out.
fn check_conversion(folder: &Path, path: &Path, refusal: &str, input: &str, output: &str) {
    let line = refusal.rsplit("ffmpeg ").next().unwrap();
    let mut words: Vec<String> =
        line.split_whitespace().map(|word| word.replace(input, name(path))).collect();
    let last = words.pop().unwrap();
    let target = folder.join(last.replace(output, "converted"));
    words.push(name(&target).to_owned());
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = ffmpeg(&args);
    assert!(result.status.success(), "{line}: {}", String::from_utf8_lossy(&result.stderr));
    match target.extension().unwrap().to_str().unwrap() {
        "avi" => assert!(open_avi(&target).video_count(0) > 0, "{line}"),
        "jpg" => assert!(open_jpeg(&target).video_format().is_still(), "{line}"),
        "au" => assert!(open_au(&target).sample_count() > 30_000, "{line}"),
        _ => assert!(open_wav(&target).sample_count() > 80_000, "{line}"),
    }
}

#[test]
fn the_test_movie_decodes_without_a_word_and_twice_the_same() {
    let Some(folder) = folder("testmovie") else { return };
    let movie = movie(640, 360);
    let path = folder.join("movie.avi");
    let out = BufWriter::new(File::create(&path).unwrap());
    movie.write_avi(out).unwrap();
    quiet(&["-i", name(&path), "-f", "null", "-"]);
    assert!(probe(&path, "stream=pix_fmt").starts_with("yuvj420p"));
    let again = movie.write_avi(Cursor::new(Vec::new())).unwrap().into_inner();
    assert!(fs::read(&path).unwrap() == again);
}
