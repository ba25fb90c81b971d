//! [`Found`]: what a plan knows of what a flow sends, and [`Access`], which opens its ends.

use super::budget::Budgets;
use super::count::{CountSink, RawCountSink};
use super::live::Begin;
use super::progress::Progress;
use super::timeline::{Extent, Speed};
use super::words::rate;
use dacapo_core::{Sink, Source};
use dacapo_media::{AudioFormat, Format, VideoFormat};
use dacapo_wire::medium::Medium;
use dacapo_wire::session::FlowOffer;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A session of nothing but stills lasts so long, in nanoseconds.
pub(crate) const STILL_NS: u64 = 10_000_000_000;

/// What a picture may have in any case, and at most, in bytes.
const PICTURE_LEN_MIN: u64 = 1 << 20;
pub(crate) const PICTURE_LEN_MAX: u64 = 16 << 20;

/// The medium header.
const HEAD_LEN: u32 = dacapo_wire::media::LEN as u32;

/// A media file that is missing, as `explain` takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssumedMedium {
    /// The file that is not there.
    pub file: String,
    /// What the flow is taken to send, in a few words.
    pub format: String,
    /// Its mean rate, in bit/s.
    pub mean_bps: u64,
    /// How long it lasts, in nanoseconds; 0 for a still.
    pub duration_ns: u64,
    /// The command that makes such a file.
    pub command: String,
}

impl fmt::Display for AssumedMedium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, format, mean_bps, command, .. } = self;
        let rate = rate(*mean_bps);
        write!(f, "{file} is missing; taken for {format}, {rate} on average, as made by: {command}")
    }
}

/// What a source or a sink is opened for.
#[derive(Clone, Debug)]
pub struct Opening<'a> {
    /// The flow as it is agreed.
    pub flow: &'a FlowOffer,
    /// How long its medium is.
    pub(crate) extent: Extent,
    /// How fast it is sent.
    pub(crate) speed: Speed,
    /// Where it begins.
    pub(crate) begin: Begin,
}

impl<'a> Opening<'a> {
    /// For a flow of bytes.
    pub(crate) fn of(flow: &'a FlowOffer) -> Self {
        let extent = Extent { duration_ns: 0, nominal: None, passes: dacapo_qos::Passes::ONCE };
        let begin = Begin::Start(super::live::LiveClock::default());
        Self { flow, extent, speed: Speed::NORMAL, begin }
    }
}

/// An access module, told what it is to give or take: it opens the ends of flows, anew for each
/// participant.
pub trait Access: fmt::Debug + Send + Sync {
    /// What it is, for people, such as "stream 1 of movie.avi".
    fn describe(&self) -> String;

    /// A source for a flow.
    ///
    /// # Errors
    /// Why there is none, for people.
    fn source(&self, to: &Opening<'_>) -> Result<Box<dyn Source>, String> {
        Err(format!("{}: {} gives nothing", to.flow.name, self.describe()))
    }

    /// A sink for a flow: one that counts, unless it has one of its own.
    ///
    /// # Errors
    /// Why there is none, for people.
    fn sink(&self, to: &Opening<'_>) -> Result<Box<dyn Sink>, String> {
        let progress = Progress::new(&to.flow.name);
        if to.flow.medium == Medium::Raw {
            return Ok(Box::new(RawCountSink::new(progress)));
        }
        Ok(Box::new(CountSink::of(progress, Budgets::default().of(to.flow))))
    }

    /// Equal for flows that are played together; none for those that are alone.
    fn group(&self) -> Option<PathBuf> {
        None
    }
}

/// What was found of the medium of a flow.
#[derive(Clone, Debug)]
pub struct Found {
    /// What opens its source for each participant, or its sink; none is the application itself.
    pub(crate) access: Option<Arc<dyn Access>>,
    /// None for bytes.
    pub(crate) format: Option<Format>,
    pub(crate) duration_ns: u64,
    /// Pictures, or samples of each channel.
    pub(crate) count: u64,
    /// The mean rate in bit/s; 0 when not known.
    pub(crate) mean_bps: u64,
    /// What the largest picture may have, in bytes.
    pub(crate) picture_len_max: u64,
    /// What pictures have on average, in bytes.
    pub(crate) picture_len_mean: u64,
    pub(crate) warnings: Vec<String>,
    /// The file is missing, and this stands in for it.
    pub(crate) assumed: Option<AssumedMedium>,
}

impl Found {
    /// Equal for flows that are played together; none for those that are alone.
    pub(crate) fn group(&self) -> Option<PathBuf> {
        self.access.as_ref().and_then(|access| access.group())
    }

    /// The longest unit of pictures, in bytes, the medium header included.
    pub(crate) fn picture_unit_len_max(&self) -> u32 {
        let len = self.picture_len_max.clamp(PICTURE_LEN_MIN, PICTURE_LEN_MAX);
        u32::try_from(len).unwrap_or(u32::MAX).saturating_add(HEAD_LEN)
    }

    /// Pictures in 1,000 s, at least 1; a still is one in all the time that it is shown.
    pub(crate) fn pictures_per_ks(&self, video: &VideoFormat) -> u64 {
        let per_ks = if video.is_still() {
            1_000_000_000_000 / STILL_NS
        } else {
            u64::from(video.rate) * 1_000 / u64::from(video.scale.max(1))
        };
        per_ks.max(1)
    }

    /// Bytes of the application.
    pub(crate) fn raw() -> Self {
        Self {
            access: None,
            format: None,
            duration_ns: 0,
            count: 0,
            mean_bps: 0,
            picture_len_max: 0,
            picture_len_mean: 0,
            warnings: Vec::new(),
            assumed: None,
        }
    }

    /// Units of bytes, which this gives or takes; how long they are at most, `unit_max` of the flow
    /// says.
    pub fn bytes(access: impl Access + 'static) -> Self {
        Self { access: Some(Arc::new(access)), ..Self::raw() }
    }

    /// Pictures; how large they are is to be [measured](Self::measure).
    pub(crate) fn video(access: Arc<dyn Access>, video: VideoFormat) -> Self {
        Self {
            access: Some(access),
            duration_ns: video.duration_ns(),
            count: video.frame_count,
            format: Some(Format::Video(video)),
            ..Self::raw()
        }
    }

    /// Sound of so many bytes.
    pub(crate) fn audio(access: Arc<dyn Access>, audio: AudioFormat, len: u64) -> Self {
        Self {
            access: Some(access),
            duration_ns: audio.time_ns(len),
            count: len / u64::from(audio.block_len().max(1)),
            mean_bps: audio.bytes_per_second().saturating_mul(8),
            format: Some(Format::Audio(audio)),
            ..Self::raw()
        }
    }

    /// Learns from the lengths of pictures how large they are.
    pub(crate) fn measure(&mut self, lens: impl Iterator<Item = u32>) {
        let Some(Format::Video(video)) = &self.format else { return };
        let (mut count, mut total, mut longest) = (0_u64, 0_u64, 0);
        for len in lens {
            (count, total, longest) = (count + 1, total + u64::from(len), longest.max(len));
        }
        self.picture_len_max = u64::from(longest);
        self.picture_len_mean = total / count.max(1);
        let bits = u128::from(total) * 8;
        let mean = if video.is_still() {
            bits * 1_000_000_000 / u128::from(STILL_NS)
        } else {
            bits * u128::from(video.rate) / (u128::from(video.scale) * u128::from(count)).max(1)
        };
        self.mean_bps = u64::try_from(mean).unwrap_or(u64::MAX);
    }
}
