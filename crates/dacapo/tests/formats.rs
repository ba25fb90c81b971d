//! Media that ffmpeg made, of every kind that is sent: through a session in virtual time into a
//! file, and ffmpeg finds in that file what it put into the first one.
//!
//! These tests need ffmpeg and ffprobe and fail without them.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod media;
#[path = "world/mod.rs"]
#[allow(dead_code)]
mod world;

use dacapo::access::{Sinks, Wanted};
use dacapo::{Inspection, Plan};
use dacapo_media::{Format, VideoFormat, au, avi, codec, mjpeg};
use dacapo_wire::medium::Medium;
use media::{Folder, GRAPH, flow};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;
use world::World;

/// Runs a tool of ffmpeg, which must succeed and say nothing; returns what it wrote.
fn tool(name: &str, args: &[&str]) -> Vec<u8> {
    let output = Command::new(name).args(["-v", "error"]).args(args).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{name} does not run ({error}); these tests need it: install ffmpeg")
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{name} {args:?}: {said}");
    output.stdout
}

fn ffmpeg(args: &[&str]) -> Vec<u8> {
    tool("ffmpeg", &[&["-nostdin", "-y"], args].concat())
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

const PICTURES: &str = "testsrc2=size=160x120:rate=25:duration=1";
const SOUND: &str = "sine=frequency=440:sample_rate=8000:duration=1";

/// Has ffmpeg make a file of its generators' output.
fn made(folder: &Folder, file: &str, sources: &[&str], args: &[&str]) -> PathBuf {
    let path = folder.path(file);
    let sources: Vec<_> = sources.iter().flat_map(|it| ["-f", "lavfi", "-i", *it]).collect();
    ffmpeg(&[&sources[..], args, &[name(&path)]].concat());
    path
}

/// Size and hash of every picture as it lies in the file.
fn pictures(path: &Path) -> Vec<String> {
    let args = ["-i", name(path), "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"];
    let text = String::from_utf8(ffmpeg(&args)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit(',').take(2).collect::<Vec<_>>().join(",")).collect()
}

/// All samples as 64 bit floats, which hold those of every format exactly.
fn samples(path: &Path) -> Vec<u8> {
    ffmpeg(&["-i", name(path), "-map", "0:a", "-c:a", "pcm_f64le", "-f", "f64le", "-"])
}

fn facts(path: &Path, entries: &str) -> String {
    let entries = format!("stream={entries}");
    let args = ["-show_entries", &entries, "-of", "csv=p=0", name(path)];
    String::from_utf8(tool("ffprobe", &args)).unwrap().trim().to_owned()
}

/// A session of flows with these sources.
fn session(folder: &Folder, sources: &[&str]) -> Result<Plan, String> {
    let mut text = "[session]\nname = \"clip\"\n".to_owned();
    for (number, source) in sources.iter().enumerate() {
        text += &flow(&format!("flow{number}"), source, GRAPH);
    }
    let path = folder.write("clip.toml", text.as_bytes());
    Plan::load(&path).map_err(|errors| errors.to_string())
}

/// Sends a session and saves it; returns the files that it became.
fn carry(folder: &Folder, sources: &[&str], lose: fn(u64) -> bool) -> Vec<PathBuf> {
    let plan = session(folder, sources).unwrap_or_else(|errors| panic!("{errors}"));
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let offer = world.join("clip");
    let dir = folder.path("saved");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let wanted = Wanted::Save { dir: dir.clone(), force: false };
    let mut sinks = Sinks::for_offer("clip", &offer, &wanted).unwrap();
    assert_eq!(sinks.notes, [""; 0]);
    world.lose = Box::new(lose);
    world.begin(std::mem::take(&mut sinks.ports));
    world.run_to_end(sources.len(), 60_000);
    assert!(world.ledgers.values().all(dacapo_core::Ledger::closes), "{:?}", world.ledgers);
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    files
}

fn none(_: u64) -> bool {
    false
}

/// Sends one file alone; what is saved has this ending.
fn carry_one(folder: &Folder, source: &str, ending: &str) -> PathBuf {
    let files = carry(folder, &[source], none);
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!(file.extension().unwrap(), ending);
    file.clone()
}

/// Checks that two files have the same sound, to us and to ffmpeg.
fn check_sound(source: &Path, saved: &Path) {
    let (before, after) = (Inspection::of(source).unwrap(), Inspection::of(saved).unwrap());
    assert_eq!(before.streams, after.streams);
    assert_eq!(after.warnings, [""; 0]);
    let entries = "sample_rate,channels,duration_ts";
    assert_eq!(facts(saved, entries), facts(source, entries));
    assert!(samples(saved) == samples(source), "{saved:?}");
}

#[test]
fn au_of_every_encoding_arrives_sample_by_sample() {
    let folder = Folder::new("formats-au");
    for (codec, channels, rate, ending) in [
        ("pcm_s8", "1", "8000", "wav"),
        ("pcm_s16be", "2", "44100", "wav"),
        ("pcm_s24be", "1", "48000", "wav"),
        ("pcm_s32be", "2", "96000", "wav"),
        ("pcm_f32be", "1", "11025", "wav"),
        ("pcm_f64be", "2", "22050", "wav"),
        ("pcm_mulaw", "1", "8000", "au"),
        ("pcm_alaw", "2", "16000", "au"),
    ] {
        let form = ["-c:a", codec, "-ac", channels, "-ar", rate, "-metadata", "title=A song"];
        let source = made(&folder, "clip.au", &[SOUND], &form);
        let saved = carry_one(&folder, "{ file = \"clip.au\" }", ending);
        check_sound(&source, &saved);
    }
}

#[test]
fn companded_sound_arrives_from_wav_and_through_a_pipe_too() {
    let folder = Folder::new("formats-companded");
    for (codec, channels) in [("pcm_mulaw", "1"), ("pcm_alaw", "2")] {
        let source = made(&folder, "clip.wav", &[SOUND], &["-c:a", codec, "-ac", channels]);
        check_sound(&source, &carry_one(&folder, "{ file = \"clip.wav\" }", "au"));
        let piped = ffmpeg(&["-i", name(&source), "-c", "copy", "-f", "au", "pipe:1"]);
        assert_eq!(piped[8..12], [0xFF; 4]);
        folder.write("clip.au", &piped);
        check_sound(&source, &carry_one(&folder, "{ file = \"clip.au\" }", "au"));
    }
}

#[test]
fn companded_sound_arrives_with_its_pictures() {
    let folder = Folder::new("formats-avi");
    for codec in ["pcm_mulaw", "pcm_alaw"] {
        let form = ["-c:v", "mjpeg", "-q:v", "5", "-c:a", codec];
        let source = made(&folder, "clip.avi", &[PICTURES, SOUND], &form);
        let flows =
            ["video", "audio"].map(|it| format!("{{ file = \"clip.avi\", stream = \"{it}\" }}"));
        let files = carry(&folder, &[&flows[0], &flows[1]], none);
        assert_eq!(files, [folder.path("saved/clip.avi")]);
        assert_eq!(facts(&files[0], "codec_name"), format!("mjpeg\n{codec}"));
        assert_eq!(pictures(&files[0]), pictures(&source));
        assert!(samples(&files[0]) == samples(&source));
    }
}

#[test]
fn pictures_one_after_the_other_arrive_at_the_rate_that_they_are_given() {
    let folder = Folder::new("formats-mjpeg");
    for (pixels, rate, expected) in [
        ("yuvj420p", "", "25/1"),
        ("yuvj422p", ", rate = \"10 /s\"", "10/1"),
        ("yuvj444p", ", rate = \"29.97 /s\", stream = \"video\"", "30000/1001"),
    ] {
        let form = ["-pix_fmt", pixels, "-c:v", "mjpeg", "-q:v", "3", "-f", "mjpeg"];
        let source = made(&folder, "cam.mjpeg", &[PICTURES], &form);
        let saved = carry_one(&folder, &format!("{{ file = \"cam.mjpeg\"{rate} }}"), "avi");
        let before = pictures(&source);
        assert_eq!((before.len(), pictures(&saved)), (25, before));
        assert_eq!(facts(&saved, "r_frame_rate,nb_frames"), format!("{expected},25"));
        let hash = |path: &Path| Inspection::of(path).unwrap().streams[0].sha256.clone();
        assert_eq!(hash(&saved), hash(&source));
    }
}

#[test]
fn a_still_arrives_byte_by_byte_and_ends_with_what_is_beside_it() {
    let folder = Folder::new("formats-still");
    let form = ["-frames:v", "1", "-q:v", "2"];
    let photo = made(&folder, "photo.jpg", &["testsrc2=size=1280x960"], &form);
    made(&folder, "talk.au", &[SOUND], &["-c:a", "pcm_mulaw"]);
    let sources = ["{ file = \"photo.jpg\" }", "{ file = \"talk.au\" }"];
    let files = carry(&folder, &sources, none);
    assert_eq!(files, ["saved/clip-flow1.au", "saved/clip.jpg"].map(|it| folder.path(it)));
    assert!(std::fs::read(&files[1]).unwrap() == std::fs::read(&photo).unwrap());
    check_sound(&folder.path("talk.au"), &files[0]);
    let plan = session(&folder, &sources).unwrap();
    assert_eq!(plan.extent().duration_ns, 1_000_000_000);
    let offer = plan.offers().next().unwrap();
    assert!(matches!(offer.medium, Medium::Video { fourcc: [b'J', b'P', b'E', b'G'], .. }));
    // Alone it is there for a while.
    let plan = session(&folder, &sources[..1]).unwrap();
    assert_eq!(plan.extent().duration_ns, 10_000_000_000);
    let saved = carry_one(&folder, sources[0], "jpg");
    assert!(std::fs::read(saved).unwrap() == std::fs::read(&photo).unwrap());
    let inspected = Inspection::of(&photo).unwrap();
    assert_eq!((inspected.container.as_str(), inspected.streams[0].count), ("JPEG", 1));
    assert!(inspected.to_string().contains("JPEG 1280x960, 1 picture, 0.000 s"), "{inspected}");
}

#[test]
fn a_still_is_sent_once_and_counted_whenever_it_comes() {
    let folder = Folder::new("formats-still-once");
    // Far more than arrives in its jitter budget.
    let noise = "nullsrc=size=1280x960,geq=random(1)*255:128:128";
    made(&folder, "photo.jpg", &[noise], &["-frames:v", "1", "-q:v", "1"]);
    assert!(std::fs::metadata(folder.path("photo.jpg")).unwrap().len() > 500_000);
    let plan = session(&folder, &["{ file = \"photo.jpg\" }"]).unwrap();
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let offer = world.join("clip");
    let mut sinks = Sinks::for_offer("clip", &offer, &Wanted::Count).unwrap();
    world.begin(std::mem::take(&mut sinks.ports));
    world.run_to_end(1, 60_000);
    let seen = sinks.progress[0].snapshot();
    assert_eq!((seen.media_frames, seen.late, seen.lost), (1, 0, 0));
    assert_eq!(world.ledgers.values().map(|ledger| ledger.sent).sum::<u64>(), 1);
}

#[test]
fn lost_companded_sound_is_replaced_by_the_silence_of_its_law() {
    let folder = Folder::new("formats-silence");
    for (codec, silence, table) in
        [("pcm_mulaw", 0xFF, &codec::MULAW), ("pcm_alaw", 0xD5, &codec::ALAW)]
    {
        let source = made(&folder, "clip.au", &[SOUND], &["-c:a", codec]);
        let files = carry(&folder, &["{ file = \"clip.au\" }"], |number| number == 20);
        let read = |path: &Path| {
            let mut reader = au::Reader::open(std::fs::read(path).unwrap()).unwrap();
            let mut out = Vec::new();
            reader.audio_bytes(0, usize::MAX, &mut out).unwrap();
            out
        };
        let (before, after) = (read(&source), read(&files[0]));
        assert_eq!((before.len(), after.len()), (8_000, 8_000));
        // One unit of 20 ms.
        let other: Vec<_> = (0..8_000).filter(|at| before[*at] != after[*at]).collect();
        assert!((100..=160).contains(&other.len()), "{}", other.len());
        assert!(other.iter().all(|at| after[*at] == silence));
        assert!(other[other.len() - 1] - other[0] < 160);
        assert!(table[usize::from(silence)].abs() <= 8);
    }
}

#[test]
fn how_large_pictures_are_is_known_of_every_one() {
    let folder = Folder::new("formats-large");
    let video = Format::Video(VideoFormat::new(64, 48, 25, 1));
    let mut writer = avi::Writer::create(Cursor::new(Vec::new()), &[video]).unwrap();
    let mut total = 0;
    for index in 0..600 {
        // One that is not among those that a sample of them would show.
        let len = if index == 301 { 12 << 20 } else { 10 };
        total += len as u64;
        writer.video_frame(0, &vec![7; len]).unwrap();
    }
    folder.write("clip.avi", &writer.finish().unwrap().into_inner());
    let plan = session(&folder, &["{ file = \"clip.avi\" }"]).unwrap();
    let offer = plan.offers().next().unwrap();
    assert_eq!(offer.unit_len_max, (12 << 20) + 24);
    assert_eq!(offer.bound_bps, total * 8 * 25 / 600 * 4);
}

#[test]
fn files_that_are_not_sent_are_refused_with_what_they_are_and_what_to_do() {
    let folder = Folder::new("formats-refused");
    made(&folder, "photo.png", &[PICTURES], &["-frames:v", "1"]);
    made(&folder, "cam.mjpg", &[PICTURES], &["-frames:v", "3", "-c:v", "mjpeg", "-f", "mjpeg"]);
    made(&folder, "clip.avi", &[PICTURES], &["-frames:v", "3", "-c:v", "mjpeg"]);
    made(&folder, "adpcm.au", &[SOUND], &["-ar", "16000", "-c:a", "adpcm_g722"]);
    made(&folder, "talk.au", &[SOUND], &["-c:a", "pcm_mulaw"]);
    made(&folder, "talk.wav", &[SOUND], &[]);
    let cut = std::fs::read(folder.path("cam.mjpg")).unwrap();
    folder.write("cut.jpg", &cut[..600]);
    for (source, said) in [
        ("file = \"photo.png\"", "this is a PNG picture, expected AVI, WAV, AU or JPEG"),
        ("file = \"photo.png\"", "/photo.png -frames:v 1 -c:v mjpeg -q:v 2 "),
        ("file = \"adpcm.au\"", "the codec is G.722 ADPCM (encoding 24)"),
        ("file = \"adpcm.au\"", "ffmpeg -i in.au -c:a pcm_s16be out.au"),
        ("file = \"cut.jpg\"", "expected a whole JPEG picture before byte 600"),
        ("file = \"clip.avi\", rate = \"5 /s\"", "source.rate: "),
        ("file = \"clip.avi\", rate = \"5 /s\"", "an AVI file says itself how fast it is"),
        ("file = \"talk.au\", rate = \"5 /s\"", "an AU file says itself how fast it is"),
        ("file = \"talk.wav\", rate = \"5 /s\"", "a WAV file says itself how fast it is"),
        ("file = \"talk.au\", stream = \"video\"", "an AU file has no video, only audio"),
        ("file = \"cam.mjpg\", stream = \"audio\"", "JPEG pictures has no audio, only video"),
        ("file = \"cam.mjpg\", stream = \"video:1\"", "JPEG pictures has no video:1, only video"),
    ] {
        let errors = session(&folder, &[&format!("{{ {source} }}")]).unwrap_err();
        assert!(errors.contains(said), "{source}: {errors}");
    }
}

#[test]
fn a_photo_with_more_pictures_behind_it_is_a_still_unless_it_is_given_a_rate() {
    let folder = Folder::new("formats-photo");
    made(&folder, "cam.jpg", &[PICTURES], &["-frames:v", "3", "-c:v", "mjpeg", "-f", "mjpeg"]);
    let plan = session(&folder, &["{ file = \"cam.jpg\" }"]).unwrap();
    let warnings = plan.warnings();
    assert!(warnings[0].contains("2 more pictures follow the first one"), "{warnings:?}");
    let saved = carry_one(&folder, "{ file = \"cam.jpg\" }", "jpg");
    let saved = std::fs::read(saved).unwrap();
    assert!(mjpeg::is_complete(&saved));
    assert!(std::fs::read(folder.path("cam.jpg")).unwrap().starts_with(&saved));
    let movie = "{ file = \"cam.jpg\", rate = \"1 /s\" }";
    let plan = session(&folder, &[movie]).unwrap();
    assert_eq!((plan.warnings().len(), plan.extent().duration_ns), (0, 3_000_000_000));
    assert_eq!(pictures(&carry_one(&folder, movie, "avi")).len(), 3);
}

#[test]
fn a_file_of_pictures_that_changed_since_it_was_searched_ends_its_flow_with_the_reason() {
    let folder = Folder::new("formats-changed");
    let path = made(&folder, "cam.mjpeg", &[PICTURES], &["-c:v", "mjpeg", "-f", "mjpeg"]);
    let plan = session(&folder, &["{ file = \"cam.mjpeg\" }"]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&bytes[..2], &[0], &bytes[2..]].concat()).unwrap();
    let mut world = World::new(plan.spec(), plan.publisher(1.0));
    let offer = world.join("clip");
    let mut sinks = Sinks::for_offer("clip", &offer, &Wanted::Count).unwrap();
    world.begin(std::mem::take(&mut sinks.ports));
    world.run_to_end(1, 10_000);
    assert!(world.failures[0].contains("the file has changed"), "{:?}", world.failures);
}
