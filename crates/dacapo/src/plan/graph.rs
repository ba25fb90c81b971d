//! The graph of a flow: names of a session file become numbers of the catalogue, and it is checked.
//!
//! ```text
//!   ["segment", { module = "sequence", hold = "60 ms" }]  ->  [0x0001 {}, 0x0002 { 0: 60_000_000
//!   }]
//! ```
//!
//! What it is not: a choice of modules.
//!
//! Invariant: a graph that is returned can be built by this core.

use super::Place;
use dacapo_lift::{
    Catalogue, Graph, ModuleSpec, Needs, Node, Offer, ParamSpec, ParamUnit, Params, Property,
    check as check_legality,
};
use dacapo_packet::Layout;
use dacapo_qos::{ModuleUse, Param, Problem, Value, nearest};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::{data, unit};

/// What the transports give to a graph.
const PROPERTIES: &[Property] = &[Property::Boundaries];

/// The longest datagram that is planned with: an Ethernet packet over IPv6.
pub(super) const DATAGRAM_LEN: usize = dacapo_path::DATAGRAM_LEN_FULL;

/// A graph in numbers.
pub(super) struct Mapped {
    pub form: GraphForm,
    graph: Graph,
    /// What fits a packet, where units are not cut.
    pub unit_room: Option<u32>,
}

/// A graph that is legal, with what there is to say of it.
#[derive(Clone, Debug)]
pub(super) struct Described {
    /// Modules with what was set, in the words of a session file.
    pub modules: Vec<String>,
    pub layout: Layout,
}

/// Looks up modules and parameters.
pub(super) fn read(
    place: Place<'_>,
    catalogue: &Catalogue,
    problems: &mut Vec<Problem>,
) -> Option<Mapped> {
    let mut nodes = Vec::new();
    let before = problems.len();
    for (number, module) in place.spec.graph.iter().enumerate() {
        let key = place.key(&format!("graph[{number}]"));
        let Some(entry) = catalogue.by_name(&module.module) else {
            problems.push(unknown_module(place, module, &key, catalogue));
            continue;
        };
        let params = read_params(place, module, &key, entry.spec, problems);
        nodes.push(Node { module: entry.spec.id, params });
    }
    if problems.len() > before {
        return None;
    }
    let graph = Graph { nodes };
    let line = graph.nodes.iter().map(|node| (node.module, node.params.values().to_vec()));
    let form = GraphForm::line(line);
    let layout = catalogue.layout(&graph, data::LEN, DATAGRAM_LEN);
    let cut = layout.filter(|layout| !layout.segmented);
    let room = cut.map(|layout| layout.segment.saturating_sub(unit::LEN));
    Some(Mapped { form, graph, unit_room: room.and_then(|room| u32::try_from(room).ok()) })
}

fn unknown_module(
    place: Place<'_>,
    module: &ModuleUse,
    key: &str,
    catalogue: &Catalogue,
) -> Problem {
    let mut names: Vec<&str> = catalogue.entries().iter().map(|entry| entry.spec.name).collect();
    names.sort_unstable();
    let what = format!("\"{}\" is no module{}", *module.module, hint(&module.module, &names));
    let problem = place.session.problem(&module.module, key, what);
    problem.allowed(list(&names))
}

fn hint(word: &str, names: &[&str]) -> String {
    nearest(word, names.iter().copied())
        .map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"))
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { format!("\"{}\"", names.join("\", \"")) }
}

fn read_params(
    place: Place<'_>,
    module: &ModuleUse,
    key: &str,
    spec: &ModuleSpec,
    problems: &mut Vec<Problem>,
) -> Params {
    let mut params = Params::new();
    for param in &module.params {
        let key = format!("{key}.{}", param.key.value);
        let number = spec.params.iter().position(|known| known.name == param.key.value);
        let Some((number, known)) = number.and_then(|at| Some((at, spec.params.get(at)?))) else {
            problems.push(unknown_param(place, param, &key, spec));
            continue;
        };
        match quantity(known, &param.value) {
            Ok(value) => params.set(number as u16, value),
            Err(what) => {
                let problem = place.session.problem(&param.value, key, what);
                problems.push(problem.allowed(range(known)));
            }
        }
    }
    params
}

fn unknown_param(place: Place<'_>, param: &Param, key: &str, spec: &ModuleSpec) -> Problem {
    let names: Vec<&str> = spec.params.iter().map(|param| param.name).collect();
    let hint = hint(&param.key, &names);
    let what = format!("\"{}\" has no parameter \"{}\"{hint}", spec.name, *param.key);
    place.session.problem(&param.key, key, what).allowed(list(&names))
}

/// A value in the unit of its parameter, within its bounds.
fn quantity(param: &ParamSpec, value: &Value) -> Result<u64, String> {
    let quantity = match param.unit {
        ParamUnit::Count => value.as_count(),
        ParamUnit::Bytes => value.as_size(),
        ParamUnit::Nanoseconds => value.as_duration(),
        ParamUnit::BitsPerSecond => value.as_rate(),
    };
    let quantity = quantity.map_err(|error| error.what())?;
    if (param.min..=param.max).contains(&quantity) {
        Ok(quantity)
    } else {
        Err(format!("{} is out of range", write(param, quantity)))
    }
}

fn write(param: &ParamSpec, quantity: u64) -> String {
    match param.unit {
        ParamUnit::Count => quantity.to_string(),
        ParamUnit::Bytes => dacapo_qos::format_size(quantity),
        ParamUnit::Nanoseconds => dacapo_qos::format_duration(quantity),
        ParamUnit::BitsPerSecond => dacapo_qos::format_rate(quantity),
    }
}

fn range(param: &ParamSpec) -> String {
    let quote = |quantity| match param.unit {
        ParamUnit::Count => write(param, quantity),
        _ => format!("\"{}\"", write(param, quantity)),
    };
    let (min, max, usual) = (quote(param.min), quote(param.max), quote(param.default));
    format!("{min} to {max}, {usual} when left out")
}

/// Checks whether a graph is legal over the flow's transport for its units.
pub(super) fn check(
    place: Place<'_>,
    mapped: &Mapped,
    unit_len_max: u32,
    catalogue: &Catalogue,
    problems: &mut Vec<Problem>,
) -> Option<Described> {
    let offer = Offer {
        transport: place.spec.transport.name(),
        properties: PROPERTIES,
        datagram_len: DATAGRAM_LEN,
        path_head: data::LEN,
    };
    let needs = Needs { unit_len_max: unit_len_max as usize + unit::LEN };
    if let Err(illegal) = check_legality(catalogue, &mapped.graph, &offer, needs) {
        let graph = &place.spec.graph;
        let node = illegal.node().and_then(|node| Some((node, graph.get(node)?)));
        let (key, at) = match node {
            Some((node, module)) => (format!("graph[{node}]"), module.with(())),
            None => ("graph".to_owned(), graph.with(())),
        };
        problems.push(place.session.problem(&at, place.key(&key), illegal.to_string()));
        return None;
    }
    let layout = catalogue.layout(&mapped.graph, data::LEN, DATAGRAM_LEN)?;
    let modules = mapped.graph.nodes.iter().filter_map(|node| {
        let spec = catalogue.by_id(node.module)?.spec;
        Some(describe(spec, &node.params))
    });
    Some(Described { modules: modules.collect(), layout })
}

fn describe(spec: &ModuleSpec, params: &Params) -> String {
    let mut text = spec.name.to_owned();
    for (number, value) in params.values() {
        if let Some(param) = spec.params.get(usize::from(*number)) {
            text.push_str(&format!(" {}={}", param.name, write(param, *value).replace(' ', "")));
        }
    }
    text
}
