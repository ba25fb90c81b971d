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

use super::choice::Chosen;
use super::{Flow, Plan, graph};
use crate::access::words::{format_text, rate};
use dacapo_lift::{Catalogue, TransportSpec};
use dacapo_media::Format;
use dacapo_qos::{Passes, format_duration, format_rate, format_size};
use dacapo_wire::session::{Direction, FlowOffer};
use std::fmt::Write;

/// The session as text.
pub(super) fn describe(plan: &Plan) -> String {
    let mut text = format!("{} ({})", plan.name, plan.title);
    if plan.extent.duration_ns > 0 {
        let _ = write!(text, ", {}", seconds(plan.extent.duration_ns));
        let _ = match plan.extent.passes {
            Passes::ONCE => Ok(()),
            Passes::Times(count) => write!(text, " {count} times"),
            Passes::Forever => write!(text, " over and over"),
        };
    }
    let _ = writeln!(text, ", at most {} participants", plan.participants_max);
    let _ = writeln!(text, "  from {}", plan.path.display());
    let catalogue = plan.assumptions.catalogue();
    for flow in &plan.flows {
        describe_flow(flow, &catalogue, &mut text);
    }
    text
}

fn describe_flow(flow: &Flow, catalogue: &Catalogue, text: &mut String) {
    let (offer, chosen) = (&flow.chosen.offer, &flow.chosen);
    let who = match offer.direction {
        Direction::ToParticipant => "creator sends",
        Direction::ToCreator => "participant sends",
    };
    let _ = writeln!(text, "  {}: {who} {}", offer.name, medium(flow));
    let _ = writeln!(text, "    {}", chain(chosen, catalogue));
    let layout = &chosen.layout;
    let _ = writeln!(
        text,
        "    room: {} of a datagram's {} bytes, {} before and {} after; units up to {}{}",
        layout.segment,
        layout.head + layout.segment + layout.tail,
        layout.head,
        layout.tail,
        format_size(u64::from(offer.unit_len_max)),
        if layout.segmented { ", cut to fit" } else { "" },
    );
    // A stream to one takes what its other end reads; anything else is sent at a pace.
    let is_paced = |it: &TransportSpec| !it.streams || it.groups;
    let bound = match offer.bound_bps {
        0 if catalogue.transport(offer.transport).is_some_and(is_paced) => {
            "at most what the core allows".to_owned()
        }
        0 => "as fast as the network allows".to_owned(),
        bound => format!("at most {}", format_rate(bound)),
    };
    let shown = match &flow.need.found.format {
        Some(_) => format!(", shown {} after it was sent", playout(offer)),
        None => String::new(),
    };
    let _ = writeln!(text, "    {bound}{shown}");
    if let Some(group) = offer.multicast {
        let _ = writeln!(text, "    sent once for all participants, to group {group}");
    }
    if !chosen.attributes.is_empty() {
        let _ = writeln!(text, "    asks for: {}", chosen.attributes);
    }
}

/// How long after it was sent a unit is shown: always, or at least and at most.
#[must_use]
pub fn playout(offer: &FlowOffer) -> String {
    let most = format_duration(offer.playout_ns);
    match offer.playout_min_ns.filter(|least| *least < offer.playout_ns) {
        Some(least) => format!("{} to {most}", format_duration(least)),
        None => most,
    }
}

/// The modules with what is set, and the transport.
fn chain(chosen: &Chosen, catalogue: &Catalogue) -> String {
    let modules = chosen.choice.graph.nodes.iter().filter_map(|node| {
        let spec = catalogue.by_id(node.module)?.spec;
        Some(graph::describe(spec, &node.params))
    });
    let transport = std::iter::once(chosen.choice.transport.name.to_owned());
    modules.chain(transport).collect::<Vec<_>>().join(" ! ")
}

fn medium(flow: &Flow) -> String {
    let found = &flow.need.found;
    let from = match (&found.access, &found.format) {
        (None, _) => return "bytes of the application".to_owned(),
        (Some(access), None) => return format!("bytes from {}", access.describe()),
        (Some(access), Some(_)) => access.describe(),
    };
    let (count, time) = (found.count, seconds(found.duration_ns));
    let what = match &found.format {
        Some(Format::Video(_)) => "pictures",
        _ => "samples",
    };
    let format = found.format.as_ref().map(format_text).unwrap_or_default();
    format!("{format}, {count} {what}, {time}, {} on average, from {from}", rate(found.mean_bps))
}

fn seconds(ns: u64) -> String {
    format_duration(ns / 1_000_000 * 1_000_000)
}
