//! `docs/requests.md`, `docs/more-requests.md`: for each request, the graph that stands there is
//! the one that is chosen, and what it says forces a module does.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo::Plan;
use dacapo::plan::{Assumptions, FlowExplanation};
use dacapo_lift::{Entry, Module, ModuleSpec, Params, Property, Setting, Setup, Stratum, Units};
use dacapo_qos::configure::{Forced, Pins, Request as Asked, Use, choose};
use dacapo_qos::{AttributeKey, Attributes, PathAssumption, level};
use std::collections::BTreeSet;
use std::path::Path;

/// The pages, and how many requests each has.
const PAGES: [&str; 2] = ["requests.md", "more-requests.md"];
const COUNT: usize = 24;

/// Those that are not answered as they stand there, which the page says first.
const OTHERWISE: [&str; 1] = ["41. Uncompressed pictures to a wall"];

/// One request of the page.
struct Request {
    title: String,
    session: String,
    expected: Expected,
}

enum Expected {
    /// The graph, and for modules the demand that forces them.
    Graph(String, Vec<(String, String)>),
    /// Demands that cannot be had together.
    Refused(BTreeSet<String>),
}

fn requests() -> Vec<Request> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let of = |page| {
        let text = std::fs::read_to_string(docs.join(page)).unwrap();
        text.split("\n## ").skip(1).map(request).collect::<Vec<_>>()
    };
    PAGES.into_iter().flat_map(of).collect()
}

fn request(section: &str) -> Request {
    let title = section.lines().next().unwrap().to_owned();
    let (_, rest) = section.split_once("```toml\n").expect(&title);
    let (file, rest) = rest.split_once("```\n").expect(&title);
    let line = rest.lines().find_map(|line| line.strip_prefix("**Expected:** ")).expect(&title);
    let session = format!("[session]\nname = \"request\"\n\n{file}");
    Request { expected: expected(line, &title), title, session }
}

/// `` `a ! b` (a: why; b: why) `` or `refused (why, why)`.
fn expected(line: &str, title: &str) -> Expected {
    let (head, inside) = match line.split_once(" (") {
        Some((head, inside)) => (head, inside.strip_suffix(')').expect(title)),
        None => (line, ""),
    };
    if head == "refused" {
        return Expected::Refused(inside.split(", ").map(str::to_owned).collect());
    }
    let graph = head.trim_matches('`').to_owned();
    let forced = inside.split("; ").filter(|part| !part.is_empty());
    let forced = forced.map(|part| {
        let (module, why) = part.split_once(": ").expect(title);
        (module.to_owned(), why.replace(' ', "_"))
    });
    Expected::Graph(graph, forced.collect())
}

/// The demands without which a module would not be there.
fn forced_by(explained: &FlowExplanation, module: &str) -> BTreeSet<String> {
    let part = explained.explanation.parts.iter().find(|part| part.name == module);
    match part.map(|part| &part.forced_by) {
        Some(Forced::Each(demands) | Forced::Together(demands)) => {
            demands.iter().map(|asked| asked.demand.name().to_owned()).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// What differs from the page; nothing when all is as it says.
fn differs(request: &Request) -> Option<String> {
    let plan = Plan::parse(&request.session, "request", &Assumptions::default());
    match (&request.expected, plan) {
        (Expected::Graph(graph, forced), Ok(plan)) => {
            let explained = plan.explain().remove(0);
            let chosen = &explained.explanation.graph;
            if chosen != graph {
                return Some(format!("{graph} expected, {chosen} chosen:\n{explained}"));
            }
            let wrong =
                forced.iter().find(|(part, why)| !forced_by(&explained, part).contains(why));
            wrong.map(|(part, why)| format!("{part} is not forced by {why}:\n{explained}"))
        }
        (Expected::Refused(demands), Err(errors)) => {
            let text = errors.to_string();
            let missing = demands.iter().find(|demand| !text.contains(demand.as_str()));
            let near = text.contains("; nearest: ");
            (missing.is_some() || !near).then(|| format!("refused otherwise: {text}"))
        }
        (Expected::Graph(graph, _), Err(errors)) => Some(format!("{graph} expected:\n{errors}")),
        (Expected::Refused(_), Ok(plan)) => {
            Some(format!("a refusal expected:\n{}", plan.explain().remove(0)))
        }
    }
}

#[test]
fn every_request_gets_what_the_page_says() {
    let requests = requests();
    assert_eq!(requests.len(), COUNT * PAGES.len());
    let (otherwise, as_said): (Vec<&Request>, Vec<&Request>) =
        requests.iter().partition(|request| OTHERWISE.contains(&request.title.as_str()));
    let differing: Vec<String> = as_said
        .iter()
        .filter_map(|request| Some(format!("## {}\n{}", request.title, differs(request)?)))
        .collect();
    assert!(differing.is_empty(), "{} differ:\n\n{}", differing.len(), differing.join("\n\n"));
    assert_eq!(otherwise.len(), OTHERWISE.len());
    for request in otherwise {
        assert!(differs(request).is_some(), "{} is as it says now: say so there", request.title);
    }
}

/// A module of a program's own that keeps secrets and bears no packet twice, whatever their order.
static OWN: ModuleSpec = ModuleSpec {
    stratum: Stratum::Shape,
    requires: &[Property::Boundaries, Property::NoDuplicates],
    provides: &[Property::Confidentiality],
    ..ModuleSpec::plain("own", 0xF0D0)
};

fn never(_: &Params, _: &Setup) -> Box<dyn Module> {
    unreachable!("it is chosen and not built")
}

/// What is chosen for a flow that must be secret, of units of 200 bytes.
fn chosen_of_secrets(attributes: Attributes) -> String {
    let catalogue = dacapo::catalogue().with_module(Entry { spec: &OWN, build: never });
    let path = PathAssumption::default().path();
    let units =
        Units { len_mean: 200, len_max: 200, per_ks: 100_000, divisible: false, is_paced: true };
    let setting = Setting::new(path, units);
    let attributes = attributes.min(AttributeKey::Confidentiality, level::CONFIDENTIALITY_REQUIRED);
    let request = Asked::new(attributes, setting, Use::Handed);
    // Not over what is for processes of one host.
    let udp = catalogue.transport_by_name("udp").map(|spec| spec.id);
    let pins = Pins { transport: udp, ..Pins::NONE };
    choose(&catalogue, &request, &pins).unwrap().explanation.graph
}

#[test]
fn what_asks_for_no_packet_twice_gets_dedup_and_with_order_sequence() {
    let free = Attributes::new();
    assert_eq!(chosen_of_secrets(free.clone()), "own ! dedup ! udp");
    let ordered = free.min(AttributeKey::Order, level::ORDERED);
    assert_eq!(chosen_of_secrets(ordered), "own ! sequence ! udp");
}

/// The graph of a flow whose session file names this module, or why there is none.
fn planned(module: &str, attributes: &str) -> Result<String, String> {
    planned_graph(&format!("\"{module}\""), attributes)
}

/// The same of a graph as a session file writes it.
fn planned_graph(graph: &str, attributes: &str) -> Result<String, String> {
    let text = format!(
        "[session]\nname = \"s\"\n[[flow]]\nname = \"data\"\nfrom = \"creator\"\n\
         source = {{ raw = true }}\nunit_max = \"200 B\"\ngraph = [{graph}]\n\
         transport = \"udp\"\n[flow.attributes]\nframe_rate = \"50 /s\"\n{attributes}\n"
    );
    let plan = Plan::parse(&text, "s", &Assumptions::default());
    plan.map(|plan| plan.explain().remove(0).explanation.graph).map_err(|it| it.to_string())
}

#[test]
fn the_newest_unit_by_name_keeps_order_and_does_not_count_as_no_loss() {
    assert_eq!(planned("latest", "order = \"ordered\""), Ok("latest ! udp".to_owned()));
    let refused = planned("latest", "loss = \"0\"").unwrap_err();
    assert!(refused.contains("loss"), "{refused}");
}

#[test]
fn the_sum_that_udp_has_does_not_count_as_integrity_where_it_is_named() {
    let checked = "integrity = \"checked\"";
    assert_eq!(planned("sum16", ""), Ok("sum16 ! udp".to_owned()));
    assert_eq!(planned("xxh3", checked), Ok("xxh3 ! udp".to_owned()));
    let refused = planned("sum16", checked).unwrap_err();
    assert!(refused.contains("integrity"), "{refused}");
}

#[test]
fn bursts_by_name_count_with_their_rate() {
    let asked = "throughput = { min = \"70 kbit/s\" }";
    let limited = |rate: &str| {
        let burst = format!("{{ module = \"rate-burst\", rate = \"{rate}\", burst = \"3 kB\" }}");
        planned_graph(&burst, asked)
    };
    assert_eq!(planned("rate-burst", asked), Ok("rate-burst ! udp".to_owned()));
    assert_eq!(limited("11 kB"), Ok("rate-burst ! udp".to_owned()));
    let refused = limited("8 kB").unwrap_err();
    assert!(refused.contains("throughput"), "{refused}");
    let refused = limited("8 kbit/s").unwrap_err();
    assert!(refused.contains("rate"), "{refused}");
}

#[test]
fn flow_control_by_name_counts_with_its_room() {
    let asked = "loss = \"0\"\nthroughput = { min = \"70 kbit/s\" }";
    for (module, room) in [("window", "bytes"), ("credit", "units")] {
        let planned = |value: &str| {
            let above = format!("{{ module = \"{module}\", {room} = {value} }}, \"arq-sr\"");
            planned_graph(&above, asked)
        };
        let plenty = if room == "bytes" { "\"100 kB\"" } else { "100" };
        assert_eq!(planned(plenty), Ok(format!("{module} ! arq-sr ! udp")));
        // Units may be lost below it.
        let alone = planned_graph(&format!("\"{module}\""), "");
        assert_eq!(alone, Ok(format!("{module} ! udp")));
    }
    let one = planned_graph("{ module = \"credit\", units = 1 }, \"arq-sr\"", asked).unwrap_err();
    assert!(one.contains("throughput"), "{one}");
}

#[test]
fn packets_are_interleaved_only_by_name_and_not_where_order_is_asked_for() {
    assert_eq!(planned("interleave", ""), Ok("interleave ! udp".to_owned()));
    let refused = planned("interleave", "order = \"ordered\"").unwrap_err();
    assert!(refused.contains("order"), "{refused}");
    let refused = planned("interleave", "delay = \"100 ms\"").unwrap_err();
    assert!(refused.contains("delay"), "{refused}");
}

/// What becomes of a flow over `quic` with this graph that asks for so much confidentiality.
fn planned_of_secrets(graph: &str, asked: &str) -> Result<String, String> {
    let text = format!(
        "[session]\nname = \"s\"\n[[flow]]\nname = \"data\"\nfrom = \"creator\"\n\
         source = {{ raw = true }}\nunit_max = \"200 B\"\ngraph = [{graph}]\n\
         transport = \"quic\"\n[flow.attributes]\nframe_rate = \"50 /s\"\n\
         confidentiality = \"{asked}\"\n"
    );
    let plan = Plan::parse(&text, "s", &Assumptions::default());
    plan.map(|plan| plan.explain().remove(0).explanation.graph).map_err(|it| it.to_string())
}

#[test]
fn what_must_be_secret_is_compressed_only_where_its_units_are_said_to_be_trusted() {
    for module in ["lz4", "zstd"] {
        assert_eq!(planned(module, ""), Ok(format!("{module} ! udp")));
        let named = format!("\"{module}\"");
        let refused = planned_of_secrets(&named, "required").unwrap_err();
        assert!(refused.contains("confidentiality"), "{refused}");
        let untrusted = format!("{{ module = \"{module}\", trusted = 0 }}");
        assert!(planned_of_secrets(&untrusted, "required").is_err());
        let trusted = format!("{{ module = \"{module}\", trusted = 1 }}");
        let both = [(named, "preferred"), (trusted, "required")];
        for (graph, asked) in both {
            assert_eq!(planned_of_secrets(&graph, asked), Ok(format!("{module} ! quic")));
        }
    }
}
