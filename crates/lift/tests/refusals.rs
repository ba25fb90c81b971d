//! Every reason for which a graph is refused, with what it says to who wrote the graph.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Scripted, spec};
use dacapo_lift::{
    Catalogue, Entry, Graph, Illegal, Module, ModuleSpec, Needs, Node, Offer, ParamSpec, ParamUnit,
    Params, Property, Setup, Stratum, check,
};
use std::collections::BTreeSet;

static SHAPE: ModuleSpec = ModuleSpec { stratum: Stratum::Shape, ..spec("shaper", 0xF010, true) };

static CUT: ModuleSpec = ModuleSpec {
    stratum: Stratum::Segment,
    head: 4,
    segments: true,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries],
    provides: &[Property::AnyUnitSize],
    takes: &[],
    beneath: &[],
    profile: &dacapo_lift::Neutral,
    ..spec("cut", 0xF011, true)
};

static ORDER: ModuleSpec = ModuleSpec {
    head: 4,
    provides: &[Property::Order, Property::NoDuplicates],
    takes: &[],
    beneath: &[],
    profile: &dacapo_lift::Neutral,
    params: &[
        ParamSpec {
            name: "hold",
            unit: ParamUnit::Nanoseconds,
            default: 5,
            min: 2,
            max: 9,
            summary: "",
            control: None,
        },
        ParamSpec {
            name: "window",
            unit: ParamUnit::Count,
            default: 0,
            min: 0,
            max: u64::MAX,
            summary: "",
            control: None,
        },
    ],
    ..spec("order", 0xF012, true)
};

static OTHER_ORDER: ModuleSpec =
    ModuleSpec { function: "order", ..spec("other-order", 0xF013, true) };

static NEEDS_ORDER: ModuleSpec =
    ModuleSpec { requires: &[Property::Order], ..spec("needs-order", 0xF014, true) };

static SEAL: ModuleSpec =
    ModuleSpec { stratum: Stratum::Protect, head: 1_300, tail: 70, ..spec("seal", 0xF015, true) };

static AGAIN: ModuleSpec = ModuleSpec {
    takes: &[Property::Order],
    beneath: &["order", "nothing there"],
    ..spec("again", 0xF016, true)
};

fn catalogue() -> Catalogue {
    fn build(_: &Params, _: &Setup) -> Box<dyn Module> {
        Scripted::new(&common::TRAINS).boxed()
    }
    let specs = [&SHAPE, &CUT, &ORDER, &OTHER_ORDER, &NEEDS_ORDER, &SEAL, &AGAIN];
    Catalogue::new(specs.map(|spec| Entry { spec, build }).to_vec())
}

const UDP: Offer<'_> = Offer {
    transport: "udp",
    properties: &[Property::Boundaries],
    datagram_len: 1_452,
    path_head: 5,
};

fn graph(ids: &[u16]) -> Graph {
    let node = |module: &u16| Node { module: *module, params: Params::new() };
    Graph { nodes: ids.iter().map(node).collect() }
}

fn checked(graph: &Graph, unit_len_max: usize) -> Result<(), Illegal> {
    check(&catalogue(), graph, &UDP, Needs { unit_len_max })
}

/// Why a graph is refused, the place that it is about, and the text.
fn refused(graph: &Graph, unit_len_max: usize) -> (Illegal, Option<usize>, String) {
    let illegal = checked(graph, unit_len_max).unwrap_err();
    let (node, text) = (illegal.node(), illegal.to_string());
    (illegal, node, text)
}

#[test]
fn graphs_that_may_be_are_passed() {
    for ids in [&[][..], &[0xF010], &[0xF010, 0xF011, 0xF012], &[0xF011, 0xF014, 0xF012]] {
        assert_eq!(checked(&graph(ids), 500), Ok(()), "{ids:x?}");
    }
}

#[test]
fn a_module_that_nobody_knows() {
    let (illegal, node, text) = refused(&graph(&[0xF011, 0xBEEF]), 500);
    assert_eq!(illegal, Illegal::UnknownModule { node: 1, id: 0xBEEF });
    assert_eq!((node, text.as_str()), (Some(1), "no module has the number 0xbeef"));
}

#[test]
fn too_many_modules() {
    let (illegal, node, text) = refused(&graph(&[0xBEEF; 33]), 500);
    assert_eq!(illegal, Illegal::TooManyModules { count: 33 });
    assert_eq!((node, text.as_str()), (None, "33 modules; at most 32 are allowed"));
    assert!(matches!(refused(&graph(&[0xBEEF; 32]), 500).0, Illegal::UnknownModule { .. }));
}

#[test]
fn a_module_below_one_whose_stratum_comes_later() {
    let (illegal, node, text) = refused(&graph(&[0xF012, 0xF011]), 500);
    assert_eq!(illegal, Illegal::WrongOrder { node: 1, upper: &ORDER, lower: &CUT });
    assert_eq!(node, Some(1));
    assert_eq!(
        text,
        "\"cut\" (segment) cannot stand below \"order\" (repair): the order from the application \
         is shape, compress, segment, repair, protect, number"
    );
}

#[test]
fn a_module_above_one_that_must_stand_above_it() {
    let (illegal, node, text) = refused(&graph(&[0xF016, 0xF014, 0xF012]), 500);
    assert_eq!(illegal, Illegal::NotBeneath { node: 2, upper: &AGAIN, lower: &ORDER });
    assert_eq!(node, Some(2));
    assert_eq!(text, "\"again\" must stand below \"order\", which does order");
    assert_eq!(checked(&graph(&[0xF012, 0xF016]), 500), Ok(()));
    assert_eq!(checked(&graph(&[0xF016]), 500), Ok(()), "alone it may stand");
}

#[test]
fn what_one_module_gives_another_above_it_takes_away() {
    // Order that the transport gives is gone above "again", and back above "order".
    let ordered = Offer { properties: &[Property::Boundaries, Property::Order], ..UDP };
    let over = |ids| check(&catalogue(), &graph(ids), &ordered, Needs { unit_len_max: 500 });
    let property = Property::Order;
    let taken = Illegal::Taken { node: 0, module: &NEEDS_ORDER, property, by: &AGAIN };
    let text = "\"needs-order\" needs order from below, which \"again\" below it takes away";
    assert_eq!(taken.to_string(), text);
    assert_eq!(over(&[0xF014]), Ok(()));
    assert_eq!(over(&[0xF014, 0xF016]), Err(taken));
    assert_eq!(over(&[0xF014, 0xF012, 0xF016]), Ok(()));
}

#[test]
fn two_modules_of_one_function_even_if_they_are_not_neighbours() {
    let (illegal, node, text) = refused(&graph(&[0xF012, 0xF014, 0xF013]), 500);
    assert_eq!(illegal, Illegal::SameFunction { node: 2, first: &ORDER, second: &OTHER_ORDER });
    assert_eq!(node, Some(2));
    assert_eq!(text, "\"order\" and \"other-order\" both do order; keep one");
    assert!(matches!(refused(&graph(&[0xF011, 0xF011]), 500).0, Illegal::SameFunction { .. }));
}

#[test]
fn a_property_that_nothing_below_gives() {
    let (illegal, node, text) = refused(&graph(&[0xF011, 0xF014]), 500);
    let property = Property::Order;
    assert_eq!(illegal, Illegal::Missing { node: 1, module: &NEEDS_ORDER, property });
    assert_eq!(node, Some(1));
    assert_eq!(
        text,
        "\"needs-order\" needs order from below, which neither a module nor the transport gives"
    );
    // From above does not count.
    assert!(matches!(refused(&graph(&[0xF012, 0xF014]), 500).0, Illegal::Missing { .. }));
    let stream = Offer { transport: "stream", properties: &[Property::Order], ..UDP };
    let over_stream = check(&catalogue(), &graph(&[0xF014]), &stream, Needs::default());
    assert_eq!(over_stream, Ok(()), "a transport may give it");
    let over_stream = check(&catalogue(), &graph(&[0xF011]), &stream, Needs::default());
    assert!(matches!(over_stream, Err(Illegal::Missing { property: Property::Boundaries, .. })));
}

#[test]
fn a_parameter_outside_its_bounds_or_without_a_meaning() {
    let with = |number, value| {
        let mut graph = graph(&[0xF011, 0xF012]);
        graph.nodes[1].params.set(number, value);
        graph
    };
    for value in [2, 5, 9] {
        assert_eq!(checked(&with(0, value), 500), Ok(()), "{value}");
    }
    assert_eq!(checked(&with(1, u64::MAX), 500), Ok(()));
    for value in [0, 1, 10, u64::MAX] {
        let (illegal, node, text) = refused(&with(0, value), 500);
        assert_eq!(illegal, Illegal::Param { node: 1, module: &ORDER, param: 0, value });
        assert_eq!(node, Some(1));
        assert_eq!(text, format!("\"order\": hold = {value} is outside 2 to 9 (Nanoseconds)"));
    }
    for number in [2, 99, u16::MAX] {
        let (_, _, text) = refused(&with(number, 5), 500);
        assert_eq!(text, format!("\"order\" has no parameter number {number}"));
    }
}

#[test]
fn headers_that_leave_too_little() {
    // 5 of the path, 4 and 4 of the upper two, 1,370 of `seal`: 69 bytes are left, then 63.
    assert_eq!(checked(&graph(&[0xF011, 0xF012, 0xF015]), 500), Ok(()));
    let narrow = Offer { datagram_len: 1_446, ..UDP };
    let needs = Needs { unit_len_max: 500 };
    let illegal =
        check(&catalogue(), &graph(&[0xF011, 0xF012, 0xF015]), &narrow, needs).unwrap_err();
    assert_eq!(illegal, Illegal::NoRoom { overhead: 1_383, datagram_len: 1_446 });
    assert_eq!(illegal.node(), None);
    assert_eq!(
        illegal.to_string(),
        "headers take 1383 of a datagram's 1446 bytes; at least 64 must be left for the payload"
    );
    for len in [0, 1, 5, 64, 68] {
        let tiny = Offer { datagram_len: len, ..UDP };
        let empty = check(&catalogue(), &graph(&[]), &tiny, Needs::default());
        assert!(matches!(empty, Err(Illegal::NoRoom { overhead: 5, .. })), "{len}: {empty:?}");
    }
}

#[test]
fn units_that_are_larger_than_a_packet_without_a_module_that_cuts() {
    // 1,452 bytes less 5 of the path and 4 of `order`.
    assert_eq!(checked(&graph(&[0xF012]), 1_443), Ok(()));
    let (illegal, node, text) = refused(&graph(&[0xF012]), 1_444);
    assert_eq!(illegal, Illegal::UnitsTooLarge { unit_len_max: 1_444, packet: 1_443 });
    assert_eq!(
        (node, text.as_str()),
        (None, "units may have 1444 bytes and a packet carries 1443; add \"segment\"")
    );
    assert_eq!(checked(&graph(&[0xF011, 0xF012]), 1_000_000), Ok(()));
}

#[test]
fn every_reason_says_something_of_its_own() {
    let mut texts = BTreeSet::new();
    let mut bad_param = graph(&[0xF012]);
    bad_param.nodes[0].params.set(0, 1);
    for (graph, len) in [
        (graph(&[1]), 0),
        (graph(&[1; 40]), 0),
        (graph(&[0xF012, 0xF011]), 0),
        (graph(&[0xF011, 0xF011]), 0),
        (graph(&[0xF014]), 0),
        (bad_param, 0),
        (graph(&[0xF015]), 5_000),
        (graph(&[]), 5_000),
    ] {
        assert!(texts.insert(refused(&graph, len).2));
    }
    assert_eq!(texts.len(), 8);
}

#[test]
fn a_graph_that_was_passed_can_be_built_and_says_where_bytes_lie() {
    let graph = graph(&[0xF011, 0xF012]);
    assert_eq!(checked(&graph, 9_000), Ok(()));
    let built = catalogue().build(&graph, 5, 1_452, 9_000).unwrap();
    assert_eq!(built.modules.len(), 2);
    assert_eq!((built.layout.head, built.layout.tail, built.layout.segment), (13, 0, 1_439));
    assert!(built.layout.segmented);
    assert!(catalogue().build(&common_unknown(), 5, 1_452, 9_000).is_none());
}

fn common_unknown() -> Graph {
    graph(&[0xBEEF])
}
