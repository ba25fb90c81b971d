//! Every reason for which a graph is refused, with its text.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_lift::{
    Catalogue, Cx, Entry, Graph, Module, ModuleSpec, Needs, Node, Offer, ParamSpec, ParamUnit,
    Params, Property, Setup, Stratum, Verdict, check,
};
use dacapo_packet::Packet;

const BASE: ModuleSpec = ModuleSpec {
    name: "base",
    id: 0xF000,
    function: "base",
    summary: "",
    stratum: Stratum::Segment,
    head: 4,
    tail: 0,
    trains_down: true,
    trains_up: true,
    keeps_order: true,
    segments: true,
    requires: &[Property::Boundaries],
    provides: &[Property::AnyUnitSize],
    params: &[],
};

static CUT: ModuleSpec = ModuleSpec { name: "cut", id: 0xF001, function: "cutting", ..BASE };
static CUT_TOO: ModuleSpec = ModuleSpec { name: "cut2", id: 0xF002, function: "cutting", ..BASE };
static NUMBER: ModuleSpec = ModuleSpec {
    name: "number",
    id: 0xF003,
    function: "ordering",
    stratum: Stratum::Repair,
    segments: false,
    provides: &[Property::Order],
    params: &[ParamSpec {
        name: "window",
        unit: ParamUnit::Count,
        default: 64,
        min: 1,
        max: 128,
        summary: "",
    }],
    ..BASE
};
static PICKY: ModuleSpec = ModuleSpec {
    name: "picky",
    id: 0xF004,
    function: "shaping",
    stratum: Stratum::Shape,
    segments: false,
    requires: &[Property::NoLoss],
    ..BASE
};
static HUGE: ModuleSpec = ModuleSpec {
    name: "huge",
    id: 0xF005,
    function: "room",
    stratum: Stratum::Protect,
    segments: false,
    head: 1_400,
    ..BASE
};

struct Nothing(&'static ModuleSpec);

impl Module for Nothing {
    fn spec(&self) -> &'static ModuleSpec {
        self.0
    }

    fn down(&mut self, _: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        Verdict::Forward
    }
}

fn catalogue() -> Catalogue {
    let entry = |spec: &'static ModuleSpec, build: fn(&Params, &Setup) -> Box<dyn Module>| Entry {
        spec,
        build,
    };
    Catalogue::new(vec![
        entry(&CUT, |_, _| Box::new(Nothing(&CUT))),
        entry(&CUT_TOO, |_, _| Box::new(Nothing(&CUT_TOO))),
        entry(&NUMBER, |_, _| Box::new(Nothing(&NUMBER))),
        entry(&PICKY, |_, _| Box::new(Nothing(&PICKY))),
        entry(&HUGE, |_, _| Box::new(Nothing(&HUGE))),
    ])
}

fn node(module: u16) -> Node {
    Node { module, params: Params::new() }
}

/// What is said of a graph; empty when it is legal. Units have 5,000 bytes.
fn said(nodes: Vec<Node>) -> (String, Option<usize>) {
    let offer = Offer {
        transport: "udp",
        properties: &[Property::Boundaries],
        datagram_len: 1_452,
        path_head: 5,
    };
    match check(&catalogue(), &Graph { nodes }, &offer, Needs { unit_len_max: 5_000 }) {
        Ok(()) => (String::new(), None),
        Err(illegal) => (illegal.to_string(), illegal.node()),
    }
}

#[test]
fn a_legal_graph_passes_and_can_be_built() {
    assert_eq!(said(vec![node(0xF001), node(0xF003)]).0, "");
    let graph = Graph { nodes: vec![node(0xF001), node(0xF003)] };
    let built = catalogue().build(&graph, 5, 1_452, 5_000).unwrap();
    assert_eq!((built.layout.head, built.layout.segment), (13, 1_439));
    assert_eq!(built.modules.len(), 2);
}

#[test]
fn each_refusal_names_the_module_and_the_reason() {
    let mut outside = node(0xF003);
    outside.params.set(0, 129);
    let mut unknown_param = node(0xF001);
    unknown_param.params.set(7, 1);
    let cases: [(Vec<Node>, &str, Option<usize>); 9] = [
        (vec![node(0xFFFF)], "no module has the number 0xffff", Some(0)),
        (vec![node(0xF001); 33], "33 modules; at most 32 are allowed", None),
        (
            vec![node(0xF003), node(0xF001)],
            "\"cut\" (segment) cannot stand below \"number\" (repair): the order from the \
             application is shape, compress, segment, repair, protect, number",
            Some(1),
        ),
        (
            vec![node(0xF001), node(0xF002)],
            "\"cut\" and \"cut2\" both do cutting; keep one",
            Some(1),
        ),
        (
            vec![node(0xF004), node(0xF001)],
            "\"picky\" needs no loss from below, which neither a module nor the transport gives",
            Some(0),
        ),
        (
            vec![node(0xF001), outside],
            "\"number\": window = 129 is outside 1 to 128 (Count)",
            Some(1),
        ),
        (vec![unknown_param], "\"cut\" has no parameter number 7", Some(0)),
        (
            vec![node(0xF001), node(0xF005)],
            "headers take 1409 of a datagram's 1452 bytes; at least 64 must be left for the payload",
            None,
        ),
        (
            vec![node(0xF003)],
            "units may have 5000 bytes and a packet carries 1443; add \"segment\"",
            None,
        ),
    ];
    for (nodes, text, at) in cases {
        assert_eq!(said(nodes), (text.to_owned(), at));
    }
}
