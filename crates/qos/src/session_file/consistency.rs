//! Keys of one flow that contradict each other, whatever protocol carries it.
//!
//! The checks between the keys of a flow that need neither a catalogue nor a path. Each problem
//! stands at one of the two lines and names the other.
//!
//! ```text
//!   bound below throughput.min                      it may never be as fast as it must be
//!   throughput.min above frame_rate.max · unit_max  so many bits are never handed over
//!   playout above delay.max or deadline.max         shown later than it may be (media only)
//!   playout_min above playout, or without one       more is kept than there is
//!   bound, throughput.max, frame_rate.max of 0      nothing would be sent
//!   unit_max with a source whose units are known    only bytes of the application need it
//!   a file or access module from a participant      nobody opens one because a creator says so
//!   sink of what the creator sends, or of media     it takes bytes that come to the creator
//!   multicast from a participant, or over tcp       a group gets datagrams of one sender
//!   tcp-multicast from a participant                it has one receiver
//! ```
//!
//! Two upper bounds never contradict each other, and whether some module keeps a bound is not known
//! here.
//!
//! Invariant: a flow that passes could be carried over a perfect network.

use crate::attribute::{AttributeKey, Attributes};
use crate::problem::Problems;
use crate::spanned::Spanned;
use crate::units::{format_duration, format_rate};
use std::net::SocketAddr;

use super::attributes::AttributePlaces;
use super::flow::Role;
use super::reader::Section;
use super::source::Source;

/// The keys of a flow as far as they were read.
pub(super) struct Parts<'a> {
    pub(super) section: &'a Section<'a>,
    pub(super) from: Option<Spanned<Role>>,
    pub(super) source: Option<&'a Spanned<Source>>,
    pub(super) multicast: Option<Spanned<SocketAddr>>,
    pub(super) bound: Option<Spanned<u64>>,
    pub(super) playout: Option<Spanned<u64>>,
    pub(super) playout_min: Option<Spanned<u64>>,
    pub(super) unit_max: Option<Spanned<u64>>,
    pub(super) attributes: &'a Attributes,
    pub(super) places: &'a AttributePlaces,
}

/// Reports every contradiction.
pub(super) fn check(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    check_bound(parts, problems);
    check_nothing(parts, problems);
    check_most(parts, problems);
    check_playout(parts, problems);
    check_playout_min(parts, problems);
    check_unit_max(parts, problems);
    check_owner(parts, problems);
    check_sink(parts, problems);
    check_group(parts, problems);
}

impl Parts<'_> {
    fn min(&self, key: AttributeKey) -> Option<u64> {
        self.attributes.get(key).and_then(|requirement| requirement.min)
    }

    fn max(&self, key: AttributeKey) -> Option<u64> {
        self.attributes.get(key).and_then(|requirement| requirement.max)
    }

    /// ` at line 12`, where the attribute stands.
    fn line(&self, key: AttributeKey) -> String {
        self.places.get(&key).map_or_else(String::new, |place| format!(" at line {}", place.line))
    }

    /// Reports something wrong with the value of a key of the flow.
    fn report(&self, key: &str, what: impl Into<String>, allowed: &str, to: &mut Problems<'_>) {
        if let Some(node) = self.section.optional(key) {
            node.report(what, allowed, to);
        }
    }

    /// Reports something wrong with an attribute.
    fn report_attribute(
        &self,
        key: AttributeKey,
        what: impl Into<String>,
        allowed: &str,
        to: &mut Problems<'_>,
    ) {
        let attributes = self.section.optional("attributes").and_then(|node| node.as_section());
        if let Some(node) = attributes.and_then(|section| section.optional(key.name())) {
            node.report(what, allowed, to);
        }
    }
}

/// A group gets units from one sender.
fn check_group(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    let is_from_participant = parts.from.is_some_and(|from| from.value == Role::Participant);
    if parts.multicast.is_none() {
        return;
    }
    if is_from_participant {
        let what = "each participant would send to the group";
        parts.report("multicast", what, "only with from = \"creator\"", problems);
    }
}

/// A bound that forbids what the attributes demand, or everything, is a mistake.
fn check_bound(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    let Some(bound) = parts.bound else { return };
    if bound.value == 0 {
        let what = "a flow with this bound sends nothing";
        parts.report("bound", what, "a rate above 0", problems);
        return;
    }
    let Some(least) = parts.min(AttributeKey::Throughput) else { return };
    if least > bound.value {
        let what = format!(
            "{} is below attributes.throughput.min = {}{}",
            format_rate(bound.value),
            format_rate(least),
            parts.line(AttributeKey::Throughput)
        );
        parts.report("bound", what, "a bound that lets the least throughput pass", problems);
    }
}

/// An upper bound of zero units or bits forbids everything.
fn check_nothing(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    for key in [AttributeKey::Throughput, AttributeKey::FrameRate] {
        if parts.max(key) == Some(0) {
            let what = "a flow with this max sends nothing";
            parts.report_attribute(key, what, "a max above 0", problems);
        }
    }
}

/// What is handed over at most must reach the least throughput.
fn check_most(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    let (throughput, frame_rate) = (AttributeKey::Throughput, AttributeKey::FrameRate);
    let (Some(least), Some(rate), Some(len)) =
        (parts.min(throughput), parts.max(frame_rate), parts.unit_max)
    else {
        return;
    };
    // Millionths of units per second; both factors are far below 2⁶⁴.
    let bits = u128::from(rate).saturating_mul(u128::from(len.value)).saturating_mul(8);
    let most = u64::try_from(bits.div_ceil(1_000_000)).unwrap_or(u64::MAX);
    if most != 0 && least > most {
        let what = format!(
            "min = {} is above the {} of frame_rate.max{} with unit_max at line {}",
            format_rate(least),
            format_rate(most),
            parts.line(frame_rate),
            len.line
        );
        let allowed = "a min that units so small and so rare can reach";
        parts.report_attribute(throughput, what, allowed, problems);
    }
}

/// Media are shown when they have waited for the playout time: no bound may be below it.
fn check_playout(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    let Some(playout) = parts.playout else { return };
    if parts.source.is_none_or(|source| source.is_bytes()) {
        return;
    }
    for key in [AttributeKey::Delay, AttributeKey::Deadline] {
        let Some(most) = parts.max(key).filter(|&most| most < playout.value) else { continue };
        let what = format!(
            "{} is above attributes.{key}.max = {}{}",
            format_duration(playout.value),
            format_duration(most),
            parts.line(key)
        );
        parts.report("playout", what, "a playout within the bounds of the delay", problems);
    }
}

/// What is kept at least is a part of a playout that is named.
fn check_playout_min(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    let Some(least) = parts.playout_min else { return };
    let allowed = "a duration of at most playout, which is named too";
    match parts.playout {
        // One that is wrong is told already.
        None if parts.section.optional("playout").is_some() => {}
        None => {
            let what = "there is no playout of which it could be a part".to_owned();
            parts.report("playout_min", what, allowed, problems);
        }
        Some(playout) if least.value > playout.value => {
            let (least, most) = (format_duration(least.value), format_duration(playout.value));
            let what = format!("{least} is above playout = {most} at line {}", playout.line);
            parts.report("playout_min", what, allowed, problems);
        }
        Some(_) => {}
    }
}

fn check_unit_max(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    let (Some(_), Some(source)) = (parts.unit_max, parts.source) else { return };
    if !source.is_bytes() {
        let what = format!("the units of the source at line {} are known", source.line);
        let allowed = "only with source = { raw = true } or { access = … }";
        parts.report("unit_max", what, allowed, problems);
    }
}

/// What the creator takes is what participants send, and bytes.
fn check_sink(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    let (Some(from), Some(source)) = (parts.from, parts.source) else { return };
    if from.value == Role::Creator {
        let what = "the creator sends this flow, and takes nothing by it";
        parts.report("sink", what, "only with from = \"participant\"", problems);
    } else if source.value != Source::Raw {
        let what = format!("the source at line {} is none of bytes", source.line);
        parts.report("sink", what, "only with source = { raw = true }", problems);
    }
}

/// What the creator names is opened by nobody else: not a file, and no access module.
fn check_owner(parts: &Parts<'_>, problems: &mut Problems<'_>) {
    let (Some(from), Some(source)) = (parts.from, parts.source) else { return };
    if from.value == Role::Creator {
        return;
    }
    let what = match source.value {
        Source::File { .. } => "a participant cannot be told to send a file",
        Source::Access(_) => "a participant chooses itself what gives its bytes",
        Source::Raw | Source::Test { .. } => return,
    };
    let allowed = "{ raw = true } or { test = … } when from = \"participant\"";
    parts.report("source", what, allowed, problems);
}
