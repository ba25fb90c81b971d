//! Formats and rates in a few words.

use dacapo_media::Format;
use dacapo_qos::format_rate;

/// A mean, which needs no more than three digits.
pub(crate) fn rate(bps: u64) -> String {
    let step = 10_u64.pow(bps.max(1).ilog10().saturating_sub(2));
    format_rate(bps / step * step)
}

/// A format in a few words.
pub(crate) fn format_text(format: &Format) -> String {
    match format {
        Format::Video(video) if video.is_still() => {
            format!("JPEG {}x{}", video.width, video.height)
        }
        Format::Video(video) => {
            let fps = f64::from(video.rate) / f64::from(video.scale.max(1));
            let fps = (fps * 1_000.0).round() / 1_000.0;
            format!("Motion JPEG {}x{}, {fps} /s", video.width, video.height)
        }
        Format::Audio(audio) => {
            let channels = match audio.channels {
                1 => "mono".to_owned(),
                2 => "stereo".to_owned(),
                count => format!("{count} channels"),
            };
            format!("PCM {} {} Hz, {channels}", audio.encoding, audio.rate_hz)
        }
    }
}
