//! [`Wanted`]: a media file that is not there: what it is taken for, and how one is made.
//!
//! ```text
//!   all flows that name the file -> streams, pictures per second -> dacapo testmovie FILE …
//!                                                                -> the same as formats and rates
//! ```
//!
//! Invariant: what is assumed is what the command makes.

use super::{Missing, fraction, shell_word, show_of};
use crate::access::found::{AssumedMedium, Found};
use crate::access::test::{pictures_found, sound_found};
use crate::access::words::format_text;
use dacapo_media::mjpeg::Show;
use dacapo_media::{TestMovie, VideoFormat};
use dacapo_qos::{AttributeKey, SessionFile, Source, StreamKind, StreamSelector};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// As long is what the command makes.
const DURATION: Duration = Duration::from_secs(30);

/// Pictures per second where nothing is said, in millionths.
const RATE: u64 = 25_000_000;

/// What kind of file is missing, by what is asked of it and by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Avi,
    Wav,
    Au,
    Still,
    Jpegs,
}

/// A file that is missing, with what all flows of its session ask of it.
pub(super) struct Wanted<'a> {
    path: &'a Path,
    container: Container,
    /// Pictures per second, in millionths.
    rate: u64,
    has_sound: bool,
    /// A stream that no command here makes.
    beyond: Option<StreamSelector>,
}

impl<'a> Wanted<'a> {
    /// What the flows of a session ask of a file.
    pub fn of(session: &SessionFile, path: &'a Path) -> Self {
        let mut wanted = Self {
            path,
            container: Container::by_name(path),
            rate: RATE,
            has_sound: false,
            beyond: None,
        };
        for flow in &session.flows {
            let Source::File { path: other, stream, rate, .. } = &flow.source.value else {
                continue;
            };
            if session.resolve(other) != path {
                continue;
            }
            let stream = stream.map(|stream| stream.value);
            wanted.has_sound |= stream.is_some_and(|it| it.kind == StreamKind::Audio);
            wanted.beyond = wanted.beyond.or(stream.filter(|it| !wanted.container.has(*it)));
            if rate.is_some() && wanted.container == Container::Still {
                wanted.container = Container::Jpegs;
            }
            match (rate, flow.attributes.get(AttributeKey::FrameRate)) {
                (Some(rate), _) => wanted.rate = rate.value,
                (None, Some(asked)) if stream.is_none_or(|it| it.kind == StreamKind::Video) => {
                    wanted.rate = wanted.rate.max(asked.min.unwrap_or(0));
                    wanted.rate = wanted.rate.min(asked.max.unwrap_or(u64::MAX));
                }
                _ => {}
            }
        }
        wanted
    }

    /// What is said of it where it is needed.
    pub fn refusal(&self) -> String {
        let path = self.path.display();
        match self.beyond {
            Some(stream) => {
                format!("{path}: No such file; no command here makes one with a stream {stream}")
            }
            None => format!("{path}: No such file; make one with: {}", self.command()),
        }
    }

    /// The command that makes it.
    fn command(&self) -> String {
        let file = shell_word(self.path);
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists());
        let before = folder.map(|it| format!("mkdir -p {} && ", shell_word(it)));
        let TestMovie { width, height, rate, scale, .. } = self.movie();
        let fps = if scale == 1 { rate.to_string() } else { format!("{rate}/{scale}") };
        let test = format!("ffmpeg -f lavfi -i testsrc=size={width}x{height}:rate={fps}");
        let seconds = DURATION.as_secs();
        let command = match self.container {
            Container::Avi => {
                let fps = if self.rate == RATE { String::new() } else { format!(" --fps {fps}") };
                let sound = if self.has_sound { "" } else { " --no-sound" };
                format!("dacapo testmovie {file}{fps}{sound}")
            }
            Container::Wav => format!("dacapo testmovie {file} --wav"),
            Container::Au => {
                format!("ffmpeg -f lavfi -i sine=sample_rate=48000 -ac 2 -t {seconds} {file}")
            }
            Container::Still => format!("{test} -frames:v 1 {file}"),
            Container::Jpegs => format!("{test} -t {seconds} -c:v mjpeg -f mjpeg {file}"),
        };
        before.unwrap_or_default() + &command
    }

    fn movie(&self) -> TestMovie {
        let (rate, scale) = fraction(self.rate).unwrap_or((25, 1));
        TestMovie { rate, scale, duration: DURATION, ..TestMovie::default() }
    }

    /// What a flow that asks for this stream is taken to send.
    ///
    /// # Errors
    /// Nothing can be assumed of such a stream: as [`Wanted::refusal`].
    pub fn assumed(&self, stream: Option<StreamSelector>) -> Result<Found, String> {
        if self.beyond.is_some() {
            return Err(self.refusal());
        }
        let (movie, access) = (self.movie(), Arc::new(Missing(self.path.to_owned())));
        let is_sound = match self.container {
            Container::Avi => stream.is_some_and(|it| it.kind == StreamKind::Audio),
            Container::Wav | Container::Au => true,
            Container::Still | Container::Jpegs => false,
        };
        let mut found = match self.container {
            _ if is_sound => sound_found(&movie, access)?,
            Container::Still => {
                let VideoFormat { width, height, .. } = movie.video_format();
                let still = VideoFormat::still(width, height);
                pictures_found(&movie, still, access)?
            }
            _ => pictures_found(&movie, movie.video_format(), access)?,
        };
        found.assumed = Some(AssumedMedium {
            file: self.path.display().to_string(),
            format: found.format.as_ref().map(format_text).unwrap_or_default(),
            mean_bps: found.mean_bps,
            duration_ns: found.duration_ns,
            command: self.command(),
        });
        Ok(found)
    }

    /// Whether it is taken for one picture.
    pub fn is_still(&self) -> bool {
        self.container == Container::Still
    }
}

impl Container {
    fn by_name(path: &Path) -> Self {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "wav" => Self::Wav,
            "au" | "snd" => Self::Au,
            "mjpg" | "mjpeg" => Self::Jpegs,
            _ if show_of(path, None) == Show::Still => Self::Still,
            _ => Self::Avi,
        }
    }

    /// Whether what the command makes has this stream.
    fn has(self, stream: StreamSelector) -> bool {
        let fits = match self {
            Self::Avi => true,
            Self::Wav | Self::Au => stream.kind == StreamKind::Audio,
            Self::Still | Self::Jpegs => stream.kind == StreamKind::Video,
        };
        fits && stream.index == 0
    }
}
