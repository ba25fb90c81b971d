//! A small catalogue, much like the real one, and what people read about choices from it.

use dacapo_lift::{
    Catalogue, Cost, Entry, Figures, Graph, ModuleSpec, Node, ParamSpec, ParamUnit, Params, Path,
    Profile, Property, Service, Setting, Stratum, TransportProfile, TransportSpec, Units,
};
use dacapo_qos::attribute::level;
use dacapo_qos::configure::{Demand, Edit, Forced, Reason, Refusal, Standing, Why};
use dacapo_qos::{AttributeKey, Attributes, Choice, Pins, Request, Use, choose};

const MS: u64 = 1_000_000;

#[derive(Debug)]
struct Segment;

impl Profile for Segment {
    fn cost(&self, _params: &Params) -> Cost {
        Cost { train_ps: 100_000, packet_ps: 20_000, byte_ps: 0, wire_milli: 0 }
    }
}

#[derive(Debug)]
struct Sequence;

impl Profile for Sequence {
    fn points(&self, _setting: &Setting, below: &Service) -> Vec<Params> {
        let mut params = Params::new();
        params.set(0, below.figures.jitter_ns.div_ceil(MS).max(1) * MS);
        vec![params]
    }

    fn figures(&self, params: &Params, _setting: &Setting, below: &Service) -> Figures {
        let hold = params.values().first().map_or(0, |(_, value)| *value);
        Figures { delay_ns: below.figures.delay_ns + hold, ..below.figures }
    }

    fn cost(&self, _params: &Params) -> Cost {
        Cost { train_ps: 50_000, packet_ps: 30_000, byte_ps: 0, wire_milli: 0 }
    }
}

#[derive(Debug)]
struct Checksum;

impl Profile for Checksum {
    fn cost(&self, _params: &Params) -> Cost {
        Cost { train_ps: 50_000, packet_ps: 20_000, byte_ps: 100, wire_milli: 0 }
    }
}

#[derive(Debug)]
struct Udp;

impl TransportProfile for Udp {
    fn figures(&self, setting: &Setting) -> Figures {
        let path = &setting.path;
        Figures {
            loss_ppb: path.loss_ppb,
            loss_runs_ppb: path.loss_ppb * 1_000 / path.burst_milli,
            delay_ns: path.delay_ns + path.jitter_ns,
            jitter_ns: path.jitter_ns,
            rate_bps: path.rate_bps,
        }
    }

    fn cost(&self) -> Cost {
        Cost { train_ps: 4_200_000, packet_ps: 150_000, byte_ps: 170, wire_milli: 0 }
    }
}

#[derive(Debug)]
struct Tcp;

impl TransportProfile for Tcp {
    fn figures(&self, setting: &Setting) -> Figures {
        let path = &setting.path;
        let recovery = 2 * path.delay_ns + 200 * MS;
        Figures {
            loss_ppb: 0,
            loss_runs_ppb: 0,
            delay_ns: path.delay_ns + path.jitter_ns + recovery,
            jitter_ns: path.jitter_ns + recovery,
            rate_bps: path.rate_bps / 2,
        }
    }

    fn cost(&self) -> Cost {
        Cost { train_ps: 4_000_000, packet_ps: 300_000, byte_ps: 450, wire_milli: 0 }
    }
}

const fn spec(name: &'static str, id: u16, stratum: Stratum) -> ModuleSpec {
    ModuleSpec { stratum, head: 4, ..ModuleSpec::plain(name, id) }
}

static SEGMENT: ModuleSpec = ModuleSpec {
    segments: true,
    acknowledges: false,
    orders: None,
    function: "segmentation",
    provides: &[Property::AnyUnitSize],
    profile: &Segment,
    ..spec("segment", 1, Stratum::Segment)
};

static SEQUENCE: ModuleSpec = ModuleSpec {
    function: "ordering",
    provides: &[Property::Order, Property::NoDuplicates],
    params: &[ParamSpec {
        name: "hold",
        unit: ParamUnit::Nanoseconds,
        default: 20 * MS,
        min: MS,
        max: 1_000 * MS,
        summary: "",
        control: None,
    }],
    profile: &Sequence,
    ..spec("sequence", 2, Stratum::Repair)
};

static CHECKSUM: ModuleSpec = ModuleSpec {
    function: "integrity",
    provides: &[Property::Integrity],
    profile: &Checksum,
    ..spec("checksum", 3, Stratum::Protect)
};

/// Another order, which trusts that nothing was altered.
static SORT: ModuleSpec = ModuleSpec {
    function: "ordering",
    requires: &[Property::Integrity],
    provides: &[Property::Order],
    ..spec("sort", 4, Stratum::Repair)
};

static UDP: TransportSpec = TransportSpec {
    name: "udp",
    id: 1,
    summary: "datagrams",
    scheme: dacapo_base::IP,
    properties: &[Property::Boundaries],
    datagram_len: 65_507,
    any_path: false,
    lanes: true,
    streams: false,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: None,
    profile: &Udp,
};

static TCP: TransportSpec = TransportSpec {
    name: "tcp",
    id: 3,
    summary: "a byte stream with records",
    scheme: dacapo_base::IP,
    properties: &[
        Property::Boundaries,
        Property::Order,
        Property::NoDuplicates,
        Property::NoLoss,
        Property::CongestionControl,
    ],
    datagram_len: 65_535,
    any_path: true,
    lanes: false,
    streams: true,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: None,
    profile: &Tcp,
};

/// As [`TCP`], at the flow's rate whatever others need.
static STUBBORN: TransportSpec = TransportSpec {
    name: "stubborn",
    id: 11,
    summary: "a byte stream with records that does not yield",
    scheme: dacapo_base::IP,
    properties: &[Property::Boundaries, Property::Order, Property::NoDuplicates, Property::NoLoss],
    datagram_len: 65_535,
    any_path: true,
    lanes: false,
    streams: true,
    same_host: false,
    groups: false,
    spread: None,
    over: None,
    port: None,
    profile: &Tcp,
};

fn entry(spec: &'static ModuleSpec) -> Entry {
    Entry { spec, build: |_, _| unreachable!("nothing runs here") }
}

fn catalogue() -> Catalogue {
    let entries = [&SEGMENT, &SEQUENCE, &CHECKSUM].map(entry);
    Catalogue::new(entries.into()).with_transports(vec![&UDP, &TCP])
}

fn setting(len_mean: u32, len_max: u32) -> Setting {
    let path = Path {
        datagram_len: 1_452,
        rate_bps: 50_000_000,
        delay_ns: 30 * MS,
        jitter_ns: 10 * MS,
        loss_ppb: 5_000_000,
        burst_milli: 1_500,
    };
    let units = Units { len_mean, len_max, per_ks: 100_000, divisible: false, is_paced: true };
    Setting::new(path, units)
}

fn handed(attributes: Attributes) -> Request {
    Request::new(attributes, setting(1_000, 1_200), Use::Handed)
}

fn chosen(request: &Request) -> Choice {
    choose(&catalogue(), request, &Pins::NONE).unwrap()
}

fn refused(request: &Request) -> Box<Refusal> {
    choose(&catalogue(), request, &Pins::NONE).unwrap_err()
}

fn graph(specs: &[&ModuleSpec]) -> Graph {
    let node = |spec: &&ModuleSpec| Node { module: spec.id, params: Params::new() };
    Graph { nodes: specs.iter().map(node).collect() }
}

#[test]
fn a_stream_that_does_not_yield_says_so() {
    for (transport, says) in [(&STUBBORN, true), (&TCP, false), (&UDP, false)] {
        let catalogue = Catalogue::new(Vec::new()).with_transports(vec![transport]);
        let choice = choose(&catalogue, &handed(Attributes::new()), &Pins::NONE).unwrap();
        let text = choice.explanation.to_string();
        assert_eq!(text.contains("; does not yield to others on the way"), says, "{text}");
    }
}

/// The catalogue of [`catalogue`] with these modules instead.
fn with(modules: &[&'static ModuleSpec]) -> Catalogue {
    let entries = modules.iter().map(|spec| entry(spec)).collect();
    Catalogue::new(entries).with_transports(vec![&UDP, &TCP])
}

fn text(choice: &Choice) -> String {
    choice.explanation.graph.clone()
}

#[test]
fn a_choice_says_why_in_a_few_lines() {
    let attributes = Attributes::new()
        .min(AttributeKey::Order, level::ORDERED)
        .min(AttributeKey::Integrity, level::INTEGRITY_CHECKED)
        .max(AttributeKey::Delay, 150 * MS)
        .max(AttributeKey::Cpu, 5_000_000);
    let played = Use::Played { playout_ns: None };
    let choice = chosen(&Request::new(attributes, setting(8_000, 1 << 24), played));
    assert_eq!(
        choice.explanation.to_string(),
        "segment ! sequence ! checksum ! udp: 0.0788 % of a core (default costs)\n\
         why\n  \
           segment   units of up to 16 MiB\n  \
           sequence  order; hold = 10 ms\n  \
           checksum  integrity\n  \
           udp       nothing asks for more; it is the cheapest\n\
         expected: 49.4 Mbit/s, delay 50 ms, shown at 100 ms, jitter 10 ms, loss 0.5 %\n\
         asked\n  \
           delay at most 150 ms: 100 ms, 50 ms to spare (enforced)\n  \
           order: kept (enforced)\n  \
           integrity: kept (enforced)\n  \
           cpu at most 0.5 %: 0.0788 %, 0.421 % to spare (predicted)\n\
         rejected\n  \
           without checksum (segment ! sequence ! udp): integrity is not kept\n  \
           without sequence (segment ! checksum ! udp): order is not kept\n  \
           without segment (sequence ! checksum ! udp): units of up to 16 MiB is not met (at \
           most 1.435 kB)\n  \
           over tcp (segment ! checksum ! tcp): delay at most 150 ms is not met (300 ms)\n\
         assumed of the path: 50 Mbit/s, datagrams of 1.452 kB, delay 30 ms, jitter 10 ms, \
         loss 0.5 % in runs of 1.5"
    );
    assert_eq!((choice.outcome.playout_ns, choice.outcome.packets_per_unit), (Some(100 * MS), 6));
}

#[test]
fn the_explanation_is_data_too() {
    let choice = chosen(&handed(Attributes::reliable()));
    let json = serde_json::to_value(&choice.explanation).unwrap();
    assert_eq!(json["graph"], "checksum ! tcp");
    assert_eq!(json["parts"][1]["forced_by"]["each"][0]["demand"], "loss");
    assert_eq!(json["attributes"][0]["standing"], "enforced");
    assert_eq!(json["cost"]["source"], "default");
    assert_eq!(json["rejected"][0]["edit"]["without"]["module"], "checksum");
    let shares = choice.explanation.parts.iter().map(|part| part.cpu_ppb).sum::<u64>();
    assert_eq!(shares, choice.outcome.cpu_ppb, "the parts are the whole");
}

#[test]
fn nothing_asked_is_the_cheapest_transport_alone() {
    let choice = chosen(&handed(Attributes::new()));
    assert_eq!(text(&choice), "udp");
    assert_eq!(choice.explanation.parts[0].forced_by, Forced::Nothing);
    let [over] = &choice.explanation.rejected[..] else { panic!("{}", choice.explanation) };
    assert_eq!((&over.edit, &over.why), (&Edit::Over { transport: "tcp" }, &Why::Dearer));
    assert_eq!(over.to_string(), "over tcp (tcp): costs 6 % more");
}

#[test]
fn what_two_demands_need_is_forced_by_both_together() {
    let catalogue = with(&[&SORT, &CHECKSUM]);
    let attributes = Attributes::new()
        .min(AttributeKey::Order, level::ORDERED)
        .min(AttributeKey::Integrity, level::INTEGRITY_CHECKED)
        .max(AttributeKey::Delay, 100 * MS);
    let choice = choose(&catalogue, &handed(attributes), &Pins::NONE).unwrap();
    assert_eq!(text(&choice), "sort ! checksum ! udp");
    let checksum = &choice.explanation.parts[1];
    assert_eq!(checksum.to_string(), "order and integrity (each is enough)");
    let rejected = &choice.explanation.rejected;
    let illegal = rejected.iter().find(|r| r.edit == Edit::Without { module: "checksum" });
    assert_eq!(
        illegal.unwrap().to_string(),
        "without checksum (sort ! udp): \"sort\" needs integrity from below, which neither a \
         module nor the transport gives"
    );
}

#[test]
fn a_contradiction_names_both_sides_and_what_is_nearest_to_each() {
    let attributes =
        Attributes::new().max(AttributeKey::Loss, 0).max(AttributeKey::Delay, 100 * MS);
    let request = handed(attributes);
    let refusal = refused(&request);
    assert_eq!(
        refusal.to_string(),
        "no protocol here meets no loss together with delay at most 100 ms over this path; \
         nearest: delay at most 300 ms (tcp), or loss at most 0.5 % (udp)"
    );
    for nearest in &refusal.nearest {
        let choice = chosen(&nearest.request(&request));
        assert_eq!(choice.graph, nearest.graph);
    }
}

#[test]
fn what_no_module_gives_is_refused_by_itself() {
    let required = Attributes::new()
        .min(AttributeKey::Confidentiality, level::CONFIDENTIALITY_REQUIRED)
        .max(AttributeKey::Delay, 10 * MS);
    assert_eq!(
        refused(&handed(required.clone())).to_string(),
        "delay at most 10 ms: no protocol here reaches it over this path; nearest: delay at most \
         40 ms and confidentiality if possible (udp)",
        "two that cannot be had are changed together"
    );
    let mut alone = required;
    alone.remove(AttributeKey::Delay);
    assert_eq!(
        refused(&handed(alone)).to_string(),
        "confidentiality: no module here gives it; nearest: confidentiality if possible (udp)"
    );
}

#[test]
fn a_preferred_property_that_nobody_has_is_told_and_not_promised() {
    let preferred =
        Attributes::new().min(AttributeKey::Authenticity, level::AUTHENTICITY_PREFERRED);
    let choice = chosen(&handed(preferred));
    let [met] = &choice.explanation.attributes[..] else { panic!("one attribute") };
    assert_eq!(met.to_string(), "authenticity if possible: not kept (not promised)");
    assert_eq!(met.standing, Standing::Monitored);
}

#[test]
fn units_that_nothing_joins_are_cut_where_that_is_allowed_and_else_refused() {
    let catalogue = with(&[&CHECKSUM]);
    let fast = Attributes::new().max(AttributeKey::Delay, 100 * MS);
    let mut request = Request::new(fast, setting(4_000, 20_000), Use::Handed);
    let refusal = choose(&catalogue, &request, &Pins::NONE).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "no protocol here meets units of up to 20 kB together with delay at most 100 ms over this \
         path; nearest: delay at most 300 ms (tcp), or units of up to 1.443 kB (udp)"
    );
    assert!(refusal.demands().any(|demand| demand == Demand::UnitSize));
    request.setting.units.divisible = true;
    let choice = choose(&catalogue, &request, &Pins::NONE).unwrap();
    let outcome = choice.outcome;
    assert_eq!((text(&choice).as_str(), outcome.unit_len_max), ("udp", 1_443));
    assert_eq!((outcome.packets_per_unit, outcome.trains_per_unit), (3, 3));
}

#[test]
fn a_playout_delay_that_is_given_binds_and_one_that_is_not_is_chosen() {
    let played = |playout_ns| {
        let bound = Attributes::new().max(AttributeKey::Deadline, 120 * MS);
        Request::new(bound, setting(1_000, 1_200), Use::Played { playout_ns })
    };
    assert_eq!(chosen(&played(None)).outcome.playout_ns, Some(100 * MS));
    assert_eq!(chosen(&played(Some(45 * MS))).outcome.playout_ns, Some(45 * MS));
    assert_eq!(
        refused(&played(Some(35 * MS))).to_string(),
        "a playout of 35 ms: no protocol here is as fast over this path; nearest: a playout of \
         40 ms (udp)"
    );
    assert_eq!(
        refused(&played(Some(200 * MS))).to_string(),
        "no protocol here meets a playout of 200 ms together with deadline at most 120 ms over \
         this path; nearest: deadline at most 200 ms (udp), or a playout of 120 ms (udp)"
    );
}

#[test]
fn receivers_count_for_the_processor_and_are_half_of_the_contradiction() {
    let attributes =
        Attributes::new().min(AttributeKey::Receivers, 10).max(AttributeKey::Cpu, 1_000_000);
    assert_eq!(
        refused(&handed(attributes)).to_string(),
        "no protocol here meets receivers at least 10 together with cpu at most 0.1 % over this \
         path; nearest: cpu at most 0.452 % (udp), or receivers at least 2 (udp)"
    );
}

#[test]
fn what_is_a_matter_of_the_flow_is_not_blamed_on_protocols() {
    let often = Attributes::new().min(AttributeKey::FrameRate, 200_000_000);
    assert_eq!(
        refused(&handed(often)).to_string(),
        "frame_rate at least 200 /s: its units come at another rate; nearest: frame_rate at least \
         100 /s (udp)"
    );
    let held = Attributes::new().max(AttributeKey::Throughput, 4_000_000);
    let mut request = handed(held);
    assert_eq!(
        refused(&request).to_string(),
        "throughput at most 4 Mbit/s: nothing holds the flow to that rate; nearest: nothing asked \
         of throughput (udp)"
    );
    request.setting.bound_bps = 4_000_000;
    let met = &chosen(&request).explanation.attributes[0];
    assert_eq!(met.to_string(), "throughput at most 4 Mbit/s: 4 Mbit/s (enforced)");
}

#[test]
fn what_is_pinned_is_taken_as_it_is() {
    let pins = Pins { graph: Some(graph(&[&SEQUENCE])), transport: None };
    let choice = choose(&catalogue(), &handed(Attributes::new()), &pins).unwrap();
    assert_eq!(text(&choice), "sequence ! udp");
    let forced: Vec<_> = choice.explanation.parts.iter().map(|part| &part.forced_by).collect();
    assert_eq!(forced, [&Forced::Pinned, &Forced::Nothing]);
    let first = choice.explanation.rejected.first().map(ToString::to_string);
    assert_eq!(first.as_deref(), Some("without pins (udp): costs 2 % less"));
}

#[test]
fn what_is_pinned_and_breaks_a_demand_is_refused_with_what_would_do() {
    let lossless = handed(Attributes::new().max(AttributeKey::Loss, 0));
    let refused = |pins: &Pins| choose(&catalogue(), &lossless, pins).unwrap_err().to_string();
    let sequence = Some(graph(&[&SEQUENCE]));
    assert_eq!(
        refused(&Pins { graph: sequence.clone(), transport: Some(1) }),
        "the pinned graph \"sequence ! udp\" does not meet no loss (it gives 0.5 %); without \
         the pin: tcp"
    );
    assert_eq!(
        refused(&Pins { graph: None, transport: Some(1) }),
        "no loss: no protocol here reaches it over udp; nearest: loss at most 0.5 % (udp); \
         without the pin: tcp"
    );
    assert!(choose(&catalogue(), &lossless, &Pins { graph: sequence, transport: None }).is_ok());
}

#[test]
fn what_cannot_run_says_so() {
    let refused = |pins: &Pins| choose(&catalogue(), &handed(Attributes::new()), pins).unwrap_err();
    let upside_down = Some(graph(&[&SEQUENCE, &SEGMENT]));
    let refusal = refused(&Pins { graph: upside_down, transport: Some(1) });
    assert!(matches!(refusal.reason, Reason::Illegal(_)), "{refusal}");
    assert!(refusal.to_string().starts_with("the pinned graph cannot run: \"segment\""));
    let unknown = refused(&Pins { graph: None, transport: Some(9) });
    assert_eq!(unknown.to_string(), "no transport has the number 9");
    let none = choose(&Catalogue::default(), &handed(Attributes::new()), &Pins::NONE);
    assert_eq!(none.unwrap_err().reason, Reason::NoTransport);
}

#[test]
fn a_weight_buys_what_is_better_as_far_as_it_is_worth_it() {
    let weighing = |percent| Attributes::new().weight(AttributeKey::Loss, percent);
    assert_eq!(text(&chosen(&handed(Attributes::new()))), "udp");
    assert_eq!(text(&chosen(&handed(weighing(0)))), "udp");
    let choice = chosen(&handed(weighing(1)));
    assert_eq!(text(&choice), "tcp", "6 % more is little for a loss 5,000 quanta better");
    let tcp = &choice.explanation.parts[0];
    assert_eq!(tcp.to_string(), "loss (weight 1 %)");
    let over = &choice.explanation.rejected[0];
    assert_eq!(over.why, Why::Weighs);
    assert_eq!(
        over.to_string(),
        "over udp (udp): costs 5 % less, and is worse in what has a weight"
    );
}
