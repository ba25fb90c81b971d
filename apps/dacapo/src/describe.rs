//! Flows in words: what they carry, and their graph.
//!
//! ```text
//!   video  640x360 MJPG 25/s  segment → sequence(hold 60 ms) → checksum → udp  bound 20 Mbit/s
//! ```

use dacapo::offer::NodeForm;
use dacapo::offer::{Direction, FlowOffer};
use dacapo::offer::{Medium, SampleEncoding};
use dacapo::spec::{Catalogue, ModuleSpec, ParamUnit, PathKnown};
use dacapo::text::{format_duration, format_rate, format_size};
use std::time::Duration;

/// What a flow is, in one line.
pub fn flow(flow: &FlowOffer) -> String {
    let arrow = match flow.direction {
        Direction::ToParticipant => "",
        Direction::ToCreator => "  (from the participant)",
    };
    let bound = match flow.bound_bps {
        0 => String::new(),
        bound => format!("  bound {}", format_rate(bound)),
    };
    let playout = match flow.medium {
        Medium::Raw => String::new(),
        _ => format!("  playout {}", dacapo::plan::playout(flow)),
    };
    let (name, medium, graph) = (&flow.name, medium(&flow.medium), graph(flow));
    format!("{name}  {medium}  {graph}{bound}{playout}{arrow}")
}

/// What is known of a path, in one line; nothing of one of which nothing is known.
pub fn path(known: &PathKnown) -> Option<String> {
    let share = |ppm: u32| f64::from(ppm) / 10_000.0;
    let run = |milli: u64| milli as f64 / 1_000.0;
    let says = [
        known.rtt_min.map(|rtt| format!("{} there and back", brief(rtt))),
        known.rtt_variation.map(|more| format!("up to {} more", brief(more))),
        known.loss_ppm.map(|ppm| format!("{:.2} % lost", share(ppm))),
        known.burst_milli.map(|milli| format!("in runs of {:.1}", run(milli))),
        known.delivery_rate_bps.map(|bps| format!("{} delivered", format_rate(bps))),
        known.held_bps.map(|bps| format!("held to {}", format_rate(bps))),
    ];
    let says: Vec<String> = says.into_iter().flatten().collect();
    (!says.is_empty()).then(|| says.join(", "))
}

/// A time of which three digits are enough.
fn brief(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us < 1e4 { format!("{us:.0} us") } else { format!("{:.0} ms", us / 1e3) }
}

/// A flow's graph, from the application to the network.
pub fn graph(flow: &FlowOffer) -> String {
    let catalogue = dacapo::catalogue();
    let modules = flow.graph.nodes.iter().map(|node| module(&catalogue, node));
    let transport = match catalogue.transport(flow.transport) {
        Some(spec) => spec.name.to_owned(),
        None => format!("transport {}", flow.transport),
    };
    modules.chain([transport]).collect::<Vec<_>>().join(" → ")
}

fn module(catalogue: &Catalogue, node: &NodeForm) -> String {
    let Some(entry) = catalogue.by_id(node.module) else {
        return format!("module {:#06x}", node.module);
    };
    let params: Vec<String> = node
        .params
        .iter()
        .filter_map(|(number, value)| param(entry.spec, *number, *value))
        .collect();
    if params.is_empty() {
        entry.spec.name.to_owned()
    } else {
        format!("{}({})", entry.spec.name, params.join(", "))
    }
}

/// A parameter, unless it has its default.
fn param(spec: &ModuleSpec, number: u16, value: u64) -> Option<String> {
    let Some(param) = spec.params.get(usize::from(number)) else {
        return Some(format!("parameter {number} = {value}"));
    };
    let text = match param.unit {
        ParamUnit::Count => value.to_string(),
        ParamUnit::Bytes => format_size(value),
        ParamUnit::Nanoseconds => format_duration(value),
        ParamUnit::BitsPerSecond => format_rate(value),
    };
    (value != param.default).then(|| format!("{} {text}", param.name))
}

/// What a flow carries.
pub fn medium(medium: &Medium) -> String {
    match medium {
        Medium::Raw => "bytes".to_owned(),
        Medium::Video { fourcc, width, height, rate, scale } => {
            let codec: String = fourcc.iter().map(|&byte| printable(byte)).collect();
            format!("{width}x{height} {codec} {}/s", ratio(*rate, *scale))
        }
        Medium::Audio { encoding, channels, rate_hz, .. } => {
            format!("{} {rate_hz} Hz {channels} ch", encoding_name(*encoding))
        }
    }
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() { char::from(byte) } else { '?' }
}

/// A rate as a number of at most three decimals.
fn ratio(rate: u32, scale: u32) -> String {
    let text = format!("{:.3}", f64::from(rate) / f64::from(scale.max(1)));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn encoding_name(encoding: SampleEncoding) -> &'static str {
    match encoding {
        SampleEncoding::U8 => "u8",
        SampleEncoding::S16 => "s16",
        SampleEncoding::S24 => "s24",
        SampleEncoding::S32 => "s32",
        SampleEncoding::F32 => "f32",
        SampleEncoding::F64 => "f64",
        SampleEncoding::MuLaw => "mu-law",
        SampleEncoding::ALaw => "A-law",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo::offer::GraphForm;

    #[test]
    fn of_a_path_is_said_what_is_known() {
        assert_eq!(path(&PathKnown::default()), None);
        let handshake =
            PathKnown { rtt_min: Some(Duration::from_micros(812)), ..Default::default() };
        assert_eq!(path(&handshake).as_deref(), Some("812 us there and back"));
        let known = PathKnown {
            rtt_min: Some(Duration::from_micros(30_412)),
            is_probed: true,
            rtt_variation: Some(Duration::from_millis(12)),
            loss_ppm: Some(13_400),
            burst_milli: Some(2_480),
            delivery_rate_bps: Some(20_000_000),
            held_bps: None,
        };
        let said = "30 ms there and back, up to 12 ms more, 1.34 % lost, in runs of 2.5, \
                    20 Mbit/s delivered";
        assert_eq!(path(&known).as_deref(), Some(said));
    }

    #[test]
    fn a_flow_is_described_with_its_graph() {
        let catalogue = dacapo::catalogue();
        let id = |name: &str| catalogue.by_name(name).unwrap().spec.id;
        let hold = catalogue.by_name("sequence").unwrap().spec.params;
        let hold = hold.iter().position(|param| param.name == "hold").unwrap() as u16;
        let nodes =
            [(id("segment"), vec![]), (id("sequence"), vec![(hold, 61_000_000)]), (0xF123, vec![])];
        let offer = FlowOffer {
            name: "video".to_owned(),
            medium: Medium::Video {
                fourcc: *b"MJPG",
                width: 640,
                height: 360,
                rate: 30_000,
                scale: 1_001,
            },
            graph: GraphForm::line(nodes),
            transport: 1,
            bound_bps: 20_000_000,
            playout_ns: 100_000_000,
            ..FlowOffer::default()
        };
        assert_eq!(
            flow(&offer),
            "video  640x360 MJPG 29.97/s  segment → sequence(hold 61 ms) → module 0xf123 → udp  \
             bound 20 Mbit/s  playout 100 ms"
        );
    }
}
