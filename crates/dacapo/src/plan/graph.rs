//! What a session file fixes by hand: names of modules become numbers of the catalogue.
//!
//! ```text
//!   ["segment", { module = "sequence", hold = "60 ms" }]
//!       ->  [0x0001 {}, 0x0002 { 0: 60_000_000 }]
//! ```

use super::Place;
use crate::param::{hint, list, quantity, range, write};
use dacapo_lift::{Catalogue, Graph, Illegal, ModuleSpec, Node, Params, TransportSpec};
use dacapo_qos::configure::Pins;
use dacapo_qos::{ModuleUse, Param, Problem, Role, Spanned};

/// Looks up modules, parameters and the transport; none when one of them is wrong.
pub(super) fn read(
    place: Place<'_>,
    catalogue: &Catalogue,
    problems: &mut Vec<Problem>,
) -> Option<Pins> {
    let before = problems.len();
    let graph = place.spec.graph.as_ref().map(|modules| {
        let nodes = modules.iter().enumerate();
        let nodes =
            nodes.filter_map(|(at, module)| read_module(place, at, module, catalogue, problems));
        Graph { nodes: nodes.collect() }
    });
    let transport = read_transport(place, catalogue, problems);
    (problems.len() == before).then_some(Pins { graph, transport })
}

/// The transport that is named, or the one by which that, or any, sends to a group.
fn read_transport(
    place: Place<'_>,
    catalogue: &Catalogue,
    problems: &mut Vec<Problem>,
) -> Option<u16> {
    let named = match &place.spec.transport {
        Some(name) => Some(named_transport(place, name, catalogue, problems)?),
        None => None,
    };
    let Some(group) = &place.spec.multicast else { return named.map(|spec| spec.id) };
    let is_way = |spec: &TransportSpec| match named {
        Some(named) => spec.over == Some(named),
        None => true,
    };
    let mut ways = catalogue.transports().iter().filter(|spec| spec.groups && !spec.streams);
    let found = ways.find(|spec| is_way(spec)).map(|spec| spec.id);
    if found.is_none() {
        let line = place.spec.transport.as_ref().map_or(group.line, |name| name.line);
        let what = format!("a group gets no byte stream, which line {line} asks for");
        let over = catalogue.transports().iter().filter(|spec| spec.groups && !spec.streams);
        let names: Vec<&str> = over.filter_map(|spec| Some(spec.over?.name)).collect();
        let problem = place.session.problem(group, place.key("multicast"), what);
        problems.push(problem.allowed(format!("only without transport, or with {}", list(&names))));
    }
    found
}

fn named_transport(
    place: Place<'_>,
    name: &Spanned<String>,
    catalogue: &Catalogue,
    problems: &mut Vec<Problem>,
) -> Option<&'static TransportSpec> {
    // What sends datagrams to a group is named by the group.
    let is_named = |spec: &&&'static TransportSpec| !spec.groups || spec.streams;
    let all = catalogue.transports().iter().filter(is_named);
    let names: Vec<&str> = all.map(|spec| spec.name).collect();
    let found = catalogue.transport_by_name(name).filter(|spec| is_named(&spec));
    let Some(spec) = found else {
        let what =
            format!("\"{}\": this host opens no such transport{}", **name, hint(name, &names));
        let problem = place.session.problem(name, place.key("transport"), what);
        problems.push(problem.allowed(list(&names)));
        return None;
    };
    if spec.groups && place.spec.from.value == Role::Participant {
        let what = "a participant has nobody to send to but the creator";
        let problem = place.session.problem(name, place.key("transport"), what);
        let one = spec.over.map_or("another", |over| over.name);
        problems.push(problem.allowed(format!("\"{one}\", or from = \"creator\"")));
    }
    Some(spec)
}

fn read_module(
    place: Place<'_>,
    at: usize,
    module: &Spanned<ModuleUse>,
    catalogue: &Catalogue,
    problems: &mut Vec<Problem>,
) -> Option<Node> {
    let key = place.key(&format!("graph[{at}]"));
    let Some(entry) = catalogue.by_name(&module.module) else {
        problems.push(unknown_module(place, module, &key, catalogue));
        return None;
    };
    let params = read_params(place, module, &key, entry.spec, problems);
    Some(Node { module: entry.spec.id, params })
}

/// Where in the file an illegal graph is wrong, and under which key.
pub(super) fn place_of(place: Place<'_>, illegal: &Illegal) -> (Spanned<()>, String) {
    let graph = place.spec.graph.as_ref();
    let node = illegal.node().and_then(|node| Some((node, graph?.get(node)?)));
    match (node, graph) {
        (Some((node, module)), _) => (module.with(()), place.key(&format!("graph[{node}]"))),
        (None, Some(graph)) => (graph.with(()), place.key("graph")),
        (None, None) => (place.spec.source.with(()), place.key("source")),
    }
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

/// A module with what was set, in the words of a session file.
pub(super) fn describe(spec: &ModuleSpec, params: &Params) -> String {
    let mut text = spec.name.to_owned();
    for (number, value) in params.values() {
        if let Some(param) = spec.params.get(usize::from(*number)) {
            text.push_str(&format!(" {}={}", param.name, write(param, *value).replace(' ', "")));
        }
    }
    text
}
