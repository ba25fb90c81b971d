//! Files made by ffmpeg go through `serve` and `play --save`, and ffmpeg reads what was saved: the
//! same pictures, the same samples, no complaint.
//!
//! Where ffmpeg is not installed the tests say so and prove nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, Place, files, flow, movie_session, session};
use std::path::{Path, PathBuf};
use std::process::Command;

fn has_ffmpeg() -> bool {
    let runs =
        |name| Command::new(name).arg("-version").output().is_ok_and(|it| it.status.success());
    let found = runs("ffmpeg") && runs("ffprobe");
    if !found {
        dacapo_base::skip("ffmpeg and ffprobe are not installed");
    }
    found
}

/// Runs a tool of ffmpeg; it must succeed and complain about nothing.
fn tool(name: &str, args: &[&str]) -> String {
    let output = Command::new(name).args(["-v", "error", "-nostdin"]).args(args).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{name} {args:?}: {complaints}");
    String::from_utf8(output.stdout).unwrap()
}

fn probe(args: &[&str]) -> String {
    let output = Command::new("ffprobe").args(["-v", "error"]).args(args).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "ffprobe {args:?}: {complaints}");
    String::from_utf8(output.stdout).unwrap()
}

/// Size and hash of every picture as it lies in the file.
fn pictures(path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    let text = tool("ffmpeg", &["-i", path, "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"]);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit(',').take(2).collect::<Vec<_>>().join(",")).collect()
}

/// The hash of all samples, as 64 bit floats, which hold every format exactly.
fn samples(path: &Path) -> String {
    let path = path.to_str().unwrap();
    tool("ffmpeg", &["-i", path, "-map", "0:a", "-c:a", "pcm_f64le", "-f", "md5", "-"])
}

fn facts(path: &Path, stream: &str, entries: &str) -> String {
    let entries = format!("stream={entries}");
    let path = path.to_str().unwrap();
    probe(&["-select_streams", stream, "-show_entries", &entries, "-of", "csv=p=0", path])
}

/// Serves a session and saves it; returns the one file with this extension.
fn carry(place: &Place, toml: &str, extension: &str) -> PathBuf {
    place.write("a.toml", toml);
    let (server, authority) = place.serve(&["a.toml", "--once", "--speed", "8"]);
    let uri = format!("dacapo://{authority}/clip");
    place.run(&["play", &uri, "--save", "out"]).expect(0);
    server.wait(LONG).expect(0);
    let found = files(&place.path("out"), extension);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

fn check_avi(pictures_args: &[&str], sound_args: &[&str]) {
    if !has_ffmpeg() {
        return;
    }
    let place = Place::new();
    let clip = place.path("clip.avi");
    let mut args = vec!["-f", "lavfi", "-i", pictures_args[0]];
    args.extend(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", "2"]);
    args.extend(["-c:v", "mjpeg", "-q:v", "5"]);
    args.extend_from_slice(&pictures_args[1..]);
    args.extend_from_slice(sound_args);
    args.push(clip.to_str().unwrap());
    tool("ffmpeg", &args);

    let saved = carry(&place, &movie_session("clip", "clip.avi"), "avi");
    tool("ffmpeg", &["-i", saved.to_str().unwrap(), "-f", "null", "-"]);
    let video = "codec_name,width,height,r_frame_rate,nb_frames";
    assert_eq!(facts(&saved, "v", video), facts(&clip, "v", video));
    let audio = "codec_name,sample_rate,channels";
    assert_eq!(facts(&saved, "a", audio), facts(&clip, "a", audio));
    let (before, after) = (pictures(&clip), pictures(&saved));
    assert!(before.len() > 10);
    assert_eq!(after, before);
    assert_eq!(samples(&saved), samples(&clip));
}

fn check_wav(codec: &str, rate_hz: &str, channels: &str) {
    if !has_ffmpeg() {
        return;
    }
    let place = Place::new();
    let clip = place.path("clip.wav");
    let source = format!("sine=frequency=440:sample_rate={rate_hz}:duration=2");
    let args = ["-f", "lavfi", "-i", &source, "-c:a", codec, "-ac", channels];
    tool("ffmpeg", &[&args[..], &[clip.to_str().unwrap()]].concat());

    let toml = session("clip", &[flow("sound", "{ file = \"clip.wav\" }")]);
    let saved = carry(&place, &toml, "wav");
    tool("ffmpeg", &["-i", saved.to_str().unwrap(), "-f", "null", "-"]);
    let audio = "codec_name,sample_rate,channels,channel_layout,duration_ts";
    assert_eq!(facts(&saved, "a", audio), facts(&clip, "a", audio));
    assert_eq!(samples(&saved), samples(&clip));
}

#[test]
fn avi_with_4_2_0_pictures_and_16_bit_stereo() {
    check_avi(
        &["testsrc2=size=320x240:rate=25", "-pix_fmt", "yuvj420p"],
        &["-c:a", "pcm_s16le", "-ac", "2", "-ar", "44100"],
    );
}

#[test]
fn avi_with_ntsc_rate_4_2_2_pictures_and_8_bit_mono() {
    check_avi(
        &["testsrc2=size=352x240:rate=30000/1001", "-pix_fmt", "yuvj422p"],
        &["-c:a", "pcm_u8", "-ac", "1", "-ar", "22050"],
    );
}

#[test]
fn avi_with_4_4_4_pictures_of_odd_size_and_24_bit_sound() {
    check_avi(
        &["testsrc2=size=161x121:rate=10", "-pix_fmt", "yuvj444p"],
        &["-c:a", "pcm_s24le", "-ac", "2", "-ar", "48000"],
    );
}

#[test]
fn avi_with_50_pictures_per_second_and_surround_sound() {
    check_avi(
        &["testsrc2=size=640x360:rate=50", "-pix_fmt", "yuvj420p"],
        &["-c:a", "pcm_s32le", "-ac", "6", "-ar", "96000"],
    );
}

#[test]
fn avi_with_film_rate_and_floating_point_sound() {
    check_avi(
        &["mandelbrot=size=320x180:rate=24", "-pix_fmt", "yuvj420p"],
        &["-c:a", "pcm_f32le", "-ac", "2", "-ar", "48000"],
    );
}

#[test]
fn wav_with_8_bit_telephone_sound() {
    check_wav("pcm_u8", "8000", "1");
}

#[test]
fn wav_with_16_bit_stereo() {
    check_wav("pcm_s16le", "44100", "2");
}

#[test]
fn wav_with_24_bit_surround_sound() {
    check_wav("pcm_s24le", "48000", "6");
}

#[test]
fn wav_with_32_bit_sound() {
    check_wav("pcm_s32le", "96000", "2");
}

#[test]
fn wav_with_floating_point_sound() {
    check_wav("pcm_f32le", "11025", "2");
}
