//! `dacapo testmovie`: writes a test movie, or its sound alone.
//!
//! Invariant: a file of the name that was asked for is a whole movie, whenever the process ends.

use crate::cli::TestmovieArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use dacapo::failpoint;
use dacapo::media::{TestMovie, TestSound};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

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
    let to = Place::of(path);
    let file = File::create(to.at()).map_err(|error| Failure::run_time(&what, error))?;
    let out = BufWriter::new(file);
    let written = if sound_only {
        movie.write_wav(out).map_err(|error| error.to_string())
    } else {
        write_avi(out, movie, progress)
    };
    // What the buffer still holds must not fail unseen.
    let written = written.and_then(|mut out| out.flush().map_err(|error| error.to_string()));
    progress.clear();
    let placed = written.and_then(|()| to.finish(force).map_err(|error| error.to_string()));
    placed.map_err(|error| {
        to.discard();
        Failure::run_time(&what, error)
    })
}

/// Where a movie is written: beside its name until it is whole, because half a movie is of no use;
/// a pipe or a device has nothing beside it.
struct Place {
    path: PathBuf,
    /// The file beside it.
    hidden: Option<PathBuf>,
}

impl Place {
    fn of(path: &Path) -> Self {
        // A link stays one: what it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_plain = fs::metadata(&path).map_or(true, |found| found.is_file());
        let name = path.file_name().filter(|_| is_plain);
        let hidden = name.map(|name| format!(".{}.part", name.to_string_lossy()));
        Self { hidden: hidden.map(|name| path.with_file_name(name)), path }
    }

    fn at(&self) -> &Path {
        self.hidden.as_ref().unwrap_or(&self.path)
    }

    /// It is whole: gives it its name. Without `force` what has appeared there meanwhile stays.
    fn finish(&self, force: bool) -> io::Result<()> {
        failpoint!("testmovie.place");
        let Some(hidden) = &self.hidden else { return Ok(()) };
        if !force && fs::symlink_metadata(&self.path).is_ok() {
            return Err(io::Error::other("it has appeared meanwhile; --force writes over it"));
        }
        fs::rename(hidden, &self.path)
    }

    fn discard(&self) {
        if let Some(hidden) = &self.hidden {
            // It may never have been made.
            let _ = fs::remove_file(hidden);
        }
    }
}

fn write_avi(
    out: BufWriter<File>,
    movie: &TestMovie,
    progress: &mut Progress,
) -> Result<BufWriter<File>, String> {
    let count = movie.video_format().frame_count;
    let written = movie.write_avi_telling(out, |index| {
        failpoint!("testmovie.picture");
        if progress.is_due() {
            progress.show(&format!("picture {} of {count}", index + 1));
        }
    });
    written.map_err(|error| error.to_string())
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
