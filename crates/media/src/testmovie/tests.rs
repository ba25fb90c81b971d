//! Behaviour of the generator.

use super::*;
use crate::mjpeg;

fn small() -> TestMovie {
    TestMovie { width: 80, height: 48, duration: Duration::from_secs(2), ..TestMovie::default() }
}

#[test]
fn the_same_parameters_give_the_same_bytes_in_any_order() {
    let in_order: Vec<_> = small().generator().unwrap().collect();
    let mut generator = small().generator().unwrap();
    for index in [49, 0, 17, 17, 3] {
        assert_eq!(generator.media_frame(index).unwrap(), in_order[index as usize]);
    }
    assert_eq!(in_order.len(), 50);
}

/// FNV-1a: enough to notice a changed byte.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[test]
fn pixels_and_samples_are_those_of_every_other_machine() {
    let mut painter = Painter::new(80, 48);
    let pixels = fingerprint(painter.paint(33, 1_320_000_000));
    let mut samples = Vec::new();
    small().generator().unwrap().sound(25, &mut samples);
    assert_eq!((pixels, fingerprint(&samples)), (PIXELS, SAMPLES));
}

const PIXELS: u64 = 3_863_117_191_381_980_523;
const SAMPLES: u64 = 4_376_666_635_629_334_878;

#[test]
fn pictures_are_whole_and_have_the_size_asked_for() {
    for (width, height) in [(16, 16), (17, 31), (640, 360), (16, 400), (400, 16)] {
        let movie = TestMovie { width, height, ..small() };
        let media = movie.generator().unwrap().media_frame(123_456).unwrap();
        assert_eq!(mjpeg::picture_size(&media.picture), Ok((width as u16, height as u16)));
        assert!(mjpeg::is_complete(&media.picture));
    }
}

#[test]
fn every_picture_differs_from_the_one_before() {
    let pictures: Vec<_> = small().generator().unwrap().map(|media| media.picture).collect();
    assert!(pictures.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn the_default_movie_has_about_four_megabits_a_second() {
    let mut generator = TestMovie::default().generator().unwrap();
    let len: usize = (0..25).map(|i| generator.media_frame(i * 9).unwrap().picture.len()).sum();
    let rate = len as u64 * 8;
    assert!((3_600_000..4_400_000).contains(&rate), "{rate} bit/s");
}

#[test]
fn sound_joins_without_gaps_at_a_rate_that_does_not_divide() {
    let movie = TestMovie {
        rate: 30_000,
        scale: 1_001,
        sound: Some(TestSound { rate_hz: 44_100, channels: 1 }),
        duration: Duration::from_secs(10),
        ..small()
    };
    let generator = movie.generator().unwrap();
    let audio = generator.audio_format().unwrap().clone();
    let (mut piece, mut joined, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let count = generator.video_format().frame_count;
    assert_eq!(count, 299);
    for index in 0..count {
        generator.sound(index, &mut piece);
        joined.extend_from_slice(&piece);
    }
    sound::render(&audio, 0, 299 * 1_001 * 44_100 / 30_000, &mut whole);
    assert_eq!(joined, whole);
}

#[test]
fn the_click_is_loud_and_once_a_second() {
    let generator = small().generator().unwrap();
    let loudest = |index| {
        let mut sound = Vec::new();
        generator.sound(index, &mut sound);
        let samples = sound.as_chunks::<2>().0.iter();
        samples.map(|s| i16::from_le_bytes(*s).unsigned_abs()).max().unwrap()
    };
    assert!(loudest(0) > 15_000 && loudest(25) > 15_000);
    assert!((1..25).all(|index| loudest(index) < 6_000));
}

#[test]
fn the_sine_is_near_the_real_one() {
    for step in 0..1_000_u32 {
        let phase = step * 4_294_967;
        let exact = (f64::from(phase) / 4_294_967_296.0 * std::f64::consts::TAU).sin() * 32_767.0;
        assert!((f64::from(sine(phase)) - exact).abs() < 80.0, "phase {phase}");
    }
}

#[test]
fn parameters_out_of_bounds_are_refused_by_name() {
    let refused = |movie: TestMovie| movie.generator().unwrap_err().to_string();
    assert!(refused(TestMovie { width: 15, ..small() }).contains("15x48"));
    assert!(refused(TestMovie { height: 5_000, ..small() }).contains("80x5000"));
    assert!(refused(TestMovie { quality: 0, ..small() }).contains("quality of 0"));
    assert!(refused(TestMovie { rate: 0, ..small() }).contains("0/1"));
    let sound = Some(TestSound { rate_hz: 48_000, channels: 0 });
    assert!(refused(TestMovie { sound, ..small() }).contains("0 channels"));
}

#[test]
fn a_movie_without_sound_writes_no_wav() {
    let movie = TestMovie { sound: None, ..small() };
    let out = movie.write_wav(std::io::Cursor::new(Vec::new()));
    assert!(matches!(out, Err(TestMovieError::NoSound)));
}
