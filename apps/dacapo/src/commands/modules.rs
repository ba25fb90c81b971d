//! `dacapo modules`: what flows are composed of: access modules, functions, mechanisms, modules,
//! transports, and what controls their paths.
//!
//! ```text
//!   function      mechanism                           module      gives
//!   ordering      sequence numbers and a window       sequence    order, no duplicates
//! ```

use crate::cli::ModulesArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Cell, Ink, Table, line};
use dacapo::access::{AccessParam, AccessSpec};
use dacapo::spec::{
    Catalogue, ControllerSpec, Cost, Leads, ModuleSpec, ParamSpec, ParamUnit, Params, Property,
    TransportSpec,
};
use dacapo::text::{format_duration, format_rate, format_size};
use serde_json::{Value, json};

/// Where it is not on a terminal the table of all modules has so many columns.
const COLUMNS: usize = 100;

/// Runs the command.
pub fn run(args: &ModulesArgs) -> Result<Exit, Failure> {
    let catalogue = dacapo::catalogue();
    let parts = dacapo::Catalogue::default();
    let access: Vec<&AccessSpec> = parts.access.iter().map(|entry| entry.spec).collect();
    let controllers: Vec<&ControllerSpec> = parts.controllers.iter().map(|it| it.spec).collect();
    if let Some(name) = &args.name {
        return one(&catalogue, &access, &controllers, name, args.json);
    }
    if args.json {
        let modules: Vec<Value> =
            catalogue.entries().iter().map(|entry| module_json(entry.spec)).collect();
        let transports: Vec<Value> =
            catalogue.transports().iter().map(|spec| transport_json(spec)).collect();
        let access: Vec<Value> = access.into_iter().map(access_json).collect();
        let controllers: Vec<Value> = controllers.into_iter().map(controller_json).collect();
        let all = json!({
            "access": access,
            "modules": modules,
            "controllers": controllers,
            "transports": transports,
        });
        output::json(&all);
    } else {
        table(&catalogue, &access, &controllers);
    }
    Ok(Exit::Success)
}

/// One access module, module, controller or transport.
fn one(
    catalogue: &Catalogue,
    access: &[&AccessSpec],
    controllers: &[&ControllerSpec],
    name: &str,
    as_json: bool,
) -> Result<Exit, Failure> {
    if let Some(spec) = access.iter().find(|spec| spec.name == name) {
        match as_json {
            true => output::json(&access_json(spec)),
            false => describe_access(spec),
        }
    } else if let Some(entry) = catalogue.by_name(name) {
        match as_json {
            true => output::json(&module_json(entry.spec)),
            false => describe_module(entry.spec),
        }
    } else if let Some(spec) = controllers.iter().find(|spec| spec.name == name) {
        match as_json {
            true => output::json(&controller_json(spec)),
            false => describe_controller(spec),
        }
    } else if let Some(spec) = catalogue.transport_by_name(name) {
        match as_json {
            true => output::json(&transport_json(spec)),
            false => describe_transport(spec),
        }
    } else {
        let names = access.iter().map(|spec| spec.name);
        let names = names.chain(catalogue.entries().iter().map(|entry| entry.spec.name));
        let names = names.chain(controllers.iter().map(|spec| spec.name));
        let names: Vec<&str> =
            names.chain(catalogue.transports().iter().map(|spec| spec.name)).collect();
        let near = dacapo::text::nearest(name, names.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"));
        let text = format!("no module is called {name:?}{hint}; there are: {}", names.join(", "));
        return Err(Failure { exit: Exit::Failure, text: format!("modules: {text}") });
    }
    Ok(Exit::Success)
}

fn table(catalogue: &Catalogue, access: &[&AccessSpec], controllers: &[&ControllerSpec]) {
    let mut table = Table::new(&["stratum", "function", "mechanism", "module", "gives"]);
    for spec in access {
        let mechanism = spec.summary.split([':', ';']).next().unwrap_or_default();
        row(&mut table, ["access", ends(spec), mechanism, spec.name], spec.carries);
    }
    for entry in catalogue.entries() {
        let spec = entry.spec;
        let stratum = spec.stratum.to_string();
        row(&mut table, [&stratum, spec.function, spec.mechanism, spec.name], spec.provides);
    }
    for spec in controllers {
        let gives: [&str; 0] = [];
        row(&mut table, ["path", "controller", spec.summary, spec.name], &gives);
    }
    for spec in catalogue.transports() {
        // What follows says how good it is; `modules NAME` has it.
        let mechanism = spec.summary.split([':', ';']).next().unwrap_or_default();
        row(&mut table, ["network", "transport", mechanism, spec.name], spec.properties);
    }
    table.print_within(COLUMNS);
    line("\ndacapo modules NAME says more of one; docs/modules.md says when to take it.");
}

fn row(
    table: &mut Table,
    [stratum, function, mechanism, name]: [&str; 4],
    gives: &[impl ToString],
) {
    let name = Cell::new(name, Ink::Bold);
    table.row(vec![stratum.into(), function.into(), mechanism.into(), name, words(gives).into()]);
}

fn words(properties: &[impl ToString]) -> String {
    let words: Vec<String> = properties.iter().map(ToString::to_string).collect();
    if words.is_empty() { "–".to_owned() } else { words.join(", ") }
}

/// Of what an access module can be.
fn ends(spec: &AccessSpec) -> &'static str {
    match (spec.sends, spec.takes) {
        (true, true) => "source, sink",
        (true, false) => "source",
        (false, _) => "sink",
    }
}

fn describe_access(spec: &AccessSpec) {
    line(format_args!("{}: {}", spec.name, spec.summary));
    line(format_args!("  is          {}", ends(spec)));
    line(format_args!("  number      {:#06x}", spec.id));
    line(format_args!("  carries     {}", words(spec.carries)));
    for param in spec.params {
        let summary = match param {
            AccessParam::Text { summary, .. } => summary,
            AccessParam::Quantity(param) => param.summary,
        };
        line(format_args!("  {}: {summary}", param.name()));
    }
}

fn access_json(spec: &AccessSpec) -> Value {
    let carries: Vec<String> = spec.carries.iter().map(ToString::to_string).collect();
    let params: Vec<&str> = spec.params.iter().map(AccessParam::name).collect();
    json!({
        "name": spec.name,
        "id": spec.id,
        "summary": spec.summary,
        "source": spec.sends,
        "sink": spec.takes,
        "provides": carries,
        "params": params,
    })
}

fn describe_module(spec: &ModuleSpec) {
    line(format_args!("{}: {}", spec.name, spec.summary));
    line(format_args!("  function    {} (stratum {})", spec.function, spec.stratum));
    line(format_args!("  mechanism   {}", spec.mechanism));
    line(format_args!("  number      {:#06x}", spec.id));
    let (head, tail) = (spec.head, spec.tail);
    line(format_args!("  room        {head} bytes before and {tail} after each packet"));
    line(format_args!("  requires    {}", words(spec.requires)));
    line(format_args!("  provides    {}", words(spec.provides)));
    if !spec.takes.is_empty() {
        line(format_args!("  takes away  {}", words(spec.takes)));
    }
    if !spec.beneath.is_empty() {
        line(format_args!("  stands below modules that do {}", spec.beneath.join(", ")));
    }
    line(format_args!("  cost        {}", cost(&spec.profile.cost(&Params::new()))));
    for param in spec.params {
        let range = format!("{} to {}", value(param, param.min), value(param, param.max));
        let control = param.control.map_or("", |_| "; changes while it runs");
        let usual = value(param, param.default);
        let (name, summary) = (param.name, param.summary);
        line(format_args!("  {name}: {summary} ({range}, usually {usual}{control})"));
    }
}

fn describe_controller(spec: &ControllerSpec) {
    line(format_args!("{}: {}", spec.name, spec.summary));
    let source = if spec.source == "own" { "dacapo's own" } else { spec.source };
    line(format_args!("  follows     {source}"));
    let of = if spec.datagrams { "datagrams" } else { "streams" };
    line(format_args!("  controls    paths of {of}"));
    if let Some(leads) = spec.usual {
        line(format_args!("  usual       for paths to {}", where_to(leads)));
    }
}

fn controller_json(spec: &ControllerSpec) -> Value {
    json!({
        "name": spec.name,
        "function": "controller",
        "summary": spec.summary,
        "source": spec.source,
        "datagrams": spec.datagrams,
        "usual": spec.usual.map(where_to),
    })
}

fn where_to(leads: Leads) -> &'static str {
    match leads {
        Leads::Here => "this host",
        Leads::Elsewhere => "other hosts",
    }
}

fn describe_transport(spec: &TransportSpec) {
    line(format_args!("{}: {}", spec.name, spec.summary));
    line(format_args!("  number      {}", spec.id));
    line(format_args!("  gives       {}", words(spec.properties)));
    let path = if spec.any_path { "" } else { ", or what the path takes" };
    line(format_args!("  datagrams   of at most {} bytes{path}", spec.datagram_len));
    line(format_args!("  cost        {}", cost(&spec.profile.cost())));
}

/// Costs of both ends in nanoseconds.
fn cost(cost: &Cost) -> String {
    let ns = |ps: u64| ps as f64 / 1_000.0;
    format!(
        "{:.0} ns per train, {:.0} ns per packet, {:.3} ns per byte, both ends together (default)",
        ns(cost.train_ps),
        ns(cost.packet_ps),
        ns(cost.byte_ps)
    )
}

fn value(param: &ParamSpec, value: u64) -> String {
    match param.unit {
        ParamUnit::Count => value.to_string(),
        ParamUnit::Bytes => format_size(value),
        ParamUnit::Nanoseconds => format_duration(value),
        ParamUnit::BitsPerSecond => format_rate(value),
    }
}

fn cost_json(cost: &Cost) -> Value {
    json!({
        "train_ps": cost.train_ps,
        "packet_ps": cost.packet_ps,
        "byte_ps": cost.byte_ps,
        "source": "default",
    })
}

fn names(properties: &[Property]) -> Vec<String> {
    properties.iter().map(ToString::to_string).collect()
}

fn module_json(spec: &ModuleSpec) -> Value {
    let param = |param: &ParamSpec| {
        json!({
            "name": param.name,
            "unit": unit(param.unit),
            "default": param.default,
            "min": param.min,
            "max": param.max,
            "summary": param.summary,
            "control": param.control,
        })
    };
    json!({
        "name": spec.name,
        "id": spec.id,
        "function": spec.function,
        "mechanism": spec.mechanism,
        "summary": spec.summary,
        "stratum": spec.stratum.to_string(),
        "head_bytes": spec.head,
        "tail_bytes": spec.tail,
        "requires": names(spec.requires),
        "provides": names(spec.provides),
        "takes": names(spec.takes),
        "beneath": spec.beneath,
        "params": spec.params.iter().map(param).collect::<Vec<_>>(),
        "cost": cost_json(&spec.profile.cost(&Params::new())),
    })
}

fn unit(unit: ParamUnit) -> &'static str {
    match unit {
        ParamUnit::Count => "count",
        ParamUnit::Bytes => "bytes",
        ParamUnit::Nanoseconds => "ns",
        ParamUnit::BitsPerSecond => "bit/s",
    }
}

fn transport_json(spec: &TransportSpec) -> Value {
    json!({
        "name": spec.name,
        "id": spec.id,
        "function": "transport",
        "summary": spec.summary,
        "provides": names(spec.properties),
        "datagram_bytes_max": spec.datagram_len,
        "any_path": spec.any_path,
        "streams": spec.streams,
        "cost": cost_json(&spec.profile.cost()),
    })
}
