//! `dacapo testmovie`: writes a test movie, or its sound alone.

use crate::cli::TestmovieArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use dacapo_media::testmovie::{TestMovie, TestSound};
use dacapo_media::{Format, avi};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs the command.
pub fn run(args: &TestmovieArgs) -> Result<Exit, Failure> {
    let mut movie = TestMovie {
        width: args.size.0,
        height: args.size.1,
        rate: args.fps.0,
        scale: args.fps.1,
        duration: args.duration,
        ..TestMovie::default()
    };
    if args.no_sound {
        movie.sound = None;
    }
    write(&args.file, &movie, args.wav, args.force, &mut Progress::new(false))?;
    Ok(Exit::Success)
}

/// Writes a movie (or its sound alone) to a file and says so.
pub fn write(
    path: &Path,
    movie: &TestMovie,
    sound_only: bool,
    force: bool,
    progress: &mut Progress,
) -> Result<(), Failure> {
    make(path, movie, sound_only, force, progress)?;
    output::line(summary(path, movie, sound_only));
    Ok(())
}

/// Writes a movie (or its sound alone) to a file.
pub fn make(
    path: &Path,
    movie: &TestMovie,
    sound_only: bool,
    force: bool,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let what = format!("write {}", path.display());
    if !force && fs::symlink_metadata(path).is_ok() {
        return Err(Failure::run_time(&what, "it is there already; --force writes over it"));
    }
    // Parameters are checked before a file is there.
    movie.generator().map_err(|error| Failure::run_time(&what, error))?;
    let file = File::create(path).map_err(|error| Failure::run_time(&what, error))?;
    let out = BufWriter::new(file);
    let written = if sound_only {
        movie.write_wav(out).map_err(|error| error.to_string())
    } else {
        write_avi(out, movie, progress)
    };
    // What the buffer still holds must not fail unseen.
    let written = written.and_then(|mut out| out.flush().map_err(|error| error.to_string()));
    progress.clear();
    if let Err(error) = written {
        // Half a movie is of no use.
        let _ = fs::remove_file(path);
        return Err(Failure::run_time(&what, error));
    }
    Ok(())
}

fn write_avi(
    out: BufWriter<File>,
    movie: &TestMovie,
    progress: &mut Progress,
) -> Result<BufWriter<File>, String> {
    let generator = movie.generator().map_err(|error| error.to_string())?;
    let mut streams = vec![Format::Video(generator.video_format().clone())];
    streams.extend(generator.audio_format().cloned().map(Format::Audio));
    let has_sound = streams.len() > 1;
    let count = generator.video_format().frame_count;
    let mut writer = avi::Writer::create(out, &streams).map_err(|error| error.to_string())?;
    for media in generator {
        writer.video_frame(0, &media.picture).map_err(|error| error.to_string())?;
        if has_sound {
            writer.audio(1, &media.sound).map_err(|error| error.to_string())?;
        }
        if progress.is_due() {
            progress.show(&format!("picture {} of {count}", media.index + 1));
        }
    }
    writer.finish().map_err(|error| error.to_string())
}

fn summary(path: &Path, movie: &TestMovie, sound_only: bool) -> String {
    let sound = movie
        .sound
        .map(|TestSound { rate_hz, channels }| format!("s16 {rate_hz} Hz {channels} ch"));
    let pictures = movie.video_format().frame_count;
    let what = match (sound_only, sound) {
        (true, sound) => sound.unwrap_or_default(),
        (false, Some(sound)) => {
            format!("{pictures} pictures {}x{}, {sound}", movie.width, movie.height)
        }
        (false, None) => format!("{pictures} pictures {}x{}, no sound", movie.width, movie.height),
    };
    let len = fs::metadata(path).map_or(0, |about| about.len());
    format!("{}: {what}, {len} bytes", path.display())
}
