//! A plan as text for people.
//!
//! ```text
//!   movie (The test movie), 10 s, at most 64 participants
//!     video   creator sends: Motion JPEG 640x360, 25 /s, 250 pictures, 10 s; from movie.avi
//!             segment ! sequence hold=60ms ! checksum ! udp
//!             1435 of 1452 bytes of a datagram carry units of up to …
//!             at most 20 Mbit/s, shown 100 ms after sending
//!             asks for: delay at most 150 ms
//! ```
//!
//! What it is not: a format that is read back.

use super::media::Origin;
use super::{Flow, Plan, graph};
use dacapo_media::Format;
use dacapo_qos::{format_duration, format_rate, format_size};
use dacapo_wire::session::Direction;
use std::fmt::Write;

/// The session as text.
pub(super) fn describe(plan: &Plan) -> String {
    let mut text = format!("{} ({})", plan.name, plan.title);
    if plan.extent.duration_ns > 0 {
        let _ = write!(text, ", {}", seconds(plan.extent.duration_ns));
    }
    let _ = writeln!(text, ", at most {} participants", plan.participants_max);
    let _ = writeln!(text, "  from {}", plan.path.display());
    for flow in &plan.flows {
        describe_flow(flow, &mut text);
    }
    text
}

fn describe_flow(flow: &Flow, text: &mut String) {
    let offer = &flow.offer;
    let who = match offer.direction {
        Direction::ToParticipant => "creator sends",
        Direction::ToCreator => "participant sends",
    };
    let _ = writeln!(text, "  {}: {who} {}", offer.name, medium(flow));
    let transport = if offer.transport == 1 { "udp" } else { "inproc" };
    let modules = flow.graph.modules.iter().map(String::as_str).chain([transport]);
    let _ = writeln!(text, "    {}", modules.collect::<Vec<_>>().join(" ! "));
    let layout = &flow.graph.layout;
    let _ = writeln!(
        text,
        "    room: {} of a datagram's {} bytes, {} before and {} after; units up to {}{}",
        layout.segment,
        graph::DATAGRAM_LEN,
        layout.head,
        layout.tail,
        format_size(u64::from(offer.unit_len_max)),
        if layout.segmented { ", cut to fit" } else { "" },
    );
    let bound = match offer.bound_bps {
        0 => "at most what the core allows".to_owned(),
        bound => format!("at most {}", format_rate(bound)),
    };
    let playout = format_duration(offer.playout_ns);
    let _ = writeln!(text, "    {bound}, shown {playout} after it was sent");
    if !flow.asks.is_empty() {
        let _ = writeln!(text, "    asks for: {}", flow.asks);
    }
}

fn medium(flow: &Flow) -> String {
    let found = &flow.found;
    let from = match &found.origin {
        Origin::AviVideo { path, stream } | Origin::AviAudio { path, stream } => {
            format!("stream {stream} of {}", path.display())
        }
        Origin::Wav { path } => path.display().to_string(),
        Origin::TestVideo(_) | Origin::TestAudio(_) => "the test movie".to_owned(),
        Origin::Raw => return "bytes of the application".to_owned(),
    };
    let (count, time) = (found.count, seconds(found.duration_ns));
    let what = match &found.format {
        Some(Format::Video(_)) => "pictures",
        _ => "samples",
    };
    let format = found.format.as_ref().map(format_text).unwrap_or_default();
    format!("{format}, {count} {what}, {time}, {} on average, from {from}", rate(found.mean_bps))
}

/// A mean, which needs no more than three digits.
fn rate(bps: u64) -> String {
    let step = 10_u64.pow(bps.max(1).ilog10().saturating_sub(2));
    format_rate(bps / step * step)
}

fn seconds(ns: u64) -> String {
    format_duration(ns / 1_000_000 * 1_000_000)
}

/// A format in a few words.
pub(crate) fn format_text(format: &Format) -> String {
    match format {
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
