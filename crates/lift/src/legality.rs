//! The check of a graph: what makes it illegal over a transport, each with its reason.

use crate::{Catalogue, Graph, ModuleSpec, Node, Properties, Property};
use std::fmt;

/// The most modules of a graph.
pub const GRAPH_NODES_MAX: usize = 32;

/// The fewest payload bytes per packet that a graph must leave.
pub const SEGMENT_LEN_MIN: usize = 64;

/// What a transport gives to a graph.
#[derive(Clone, Debug)]
pub struct Offer<'a> {
    /// The transport's name, for the reasons.
    pub transport: &'a str,
    /// What it gives.
    pub properties: &'a [Property],
    /// The longest datagram in bytes.
    pub datagram_len: usize,
    /// The bytes of the path's own header in each datagram.
    pub path_head: usize,
}

/// What a flow needs whatever its attributes say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// The largest unit in bytes, framing included.
    pub unit_len_max: usize,
}

/// Why a graph is refused. `node` is the place in the graph, counted from 0 at the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Illegal {
    /// No module has this number.
    UnknownModule {
        /// The place.
        node: usize,
        /// The number.
        id: u16,
    },
    /// More than [`GRAPH_NODES_MAX`] modules.
    TooManyModules {
        /// How many there are.
        count: usize,
    },
    /// A module stands above one whose stratum comes first.
    WrongOrder {
        /// The place of the lower module.
        node: usize,
        /// The upper module.
        upper: &'static ModuleSpec,
        /// The lower module.
        lower: &'static ModuleSpec,
    },
    /// A module must stand beneath those of a function that stand beneath it.
    NotBeneath {
        /// The place of the lower module.
        node: usize,
        /// The module that stands too high.
        upper: &'static ModuleSpec,
        /// The lower module.
        lower: &'static ModuleSpec,
    },
    /// Two modules serve the same function.
    SameFunction {
        /// The place of the second.
        node: usize,
        /// The first.
        first: &'static ModuleSpec,
        /// The second.
        second: &'static ModuleSpec,
    },
    /// A module needs something from below that nothing gives.
    Missing {
        /// The place.
        node: usize,
        /// The module.
        module: &'static ModuleSpec,
        /// What is missing.
        property: Property,
    },
    /// A module needs something from below that another below it takes away.
    Taken {
        /// The place.
        node: usize,
        /// The module.
        module: &'static ModuleSpec,
        /// What is missing.
        property: Property,
        /// Who takes it away.
        by: &'static ModuleSpec,
    },
    /// A parameter is unknown or outside its bounds.
    Param {
        /// The place.
        node: usize,
        /// The module.
        module: &'static ModuleSpec,
        /// The parameter's number.
        param: u16,
        /// The value given.
        value: u64,
    },
    /// The headers leave too little of a datagram.
    NoRoom {
        /// Bytes of all headers and trailers.
        overhead: usize,
        /// The longest datagram.
        datagram_len: usize,
    },
    /// Units may be larger than a packet and nothing cuts them.
    UnitsTooLarge {
        /// The largest unit.
        unit_len_max: usize,
        /// What fits a packet.
        packet: usize,
    },
}

impl Illegal {
    /// The place in the graph that the reason is about, when it is about one.
    #[must_use]
    pub fn node(&self) -> Option<usize> {
        match self {
            Self::UnknownModule { node, .. }
            | Self::WrongOrder { node, .. }
            | Self::NotBeneath { node, .. }
            | Self::SameFunction { node, .. }
            | Self::Missing { node, .. }
            | Self::Taken { node, .. }
            | Self::Param { node, .. } => Some(*node),
            Self::TooManyModules { .. } | Self::NoRoom { .. } | Self::UnitsTooLarge { .. } => None,
        }
    }
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownModule { id, .. } => write!(f, "no module has the number {id:#06x}"),
            Self::TooManyModules { count } => {
                write!(f, "{count} modules; at most {GRAPH_NODES_MAX} are allowed")
            }
            Self::WrongOrder { upper, lower, .. } => write!(
                f,
                "\"{}\" ({}) cannot stand below \"{}\" ({}): the order from the application is \
                 shape, compress, segment, repair, protect, number",
                lower.name, lower.stratum, upper.name, upper.stratum
            ),
            Self::NotBeneath { upper, lower, .. } => write!(
                f,
                "\"{}\" must stand below \"{}\", which does {}",
                upper.name, lower.name, lower.function
            ),
            Self::SameFunction { first, second, .. } => write!(
                f,
                "\"{}\" and \"{}\" both do {}; keep one",
                first.name, second.name, first.function
            ),
            Self::Missing { module, property, .. } => write!(
                f,
                "\"{}\" needs {property} from below, which neither a module nor the transport \
                 gives",
                module.name
            ),
            Self::Taken { module, property, by, .. } => write!(
                f,
                "\"{}\" needs {property} from below, which \"{}\" below it takes away",
                module.name, by.name
            ),
            Self::Param { module, param, value, .. } => write_param(f, module, *param, *value),
            Self::NoRoom { overhead, datagram_len } => write!(
                f,
                "headers take {overhead} of a datagram's {datagram_len} bytes; at least \
                 {SEGMENT_LEN_MIN} must be left for the payload"
            ),
            Self::UnitsTooLarge { unit_len_max, packet } => write!(
                f,
                "units may have {unit_len_max} bytes and a packet carries {packet}; \
                 add \"segment\""
            ),
        }
    }
}

fn write_param(
    f: &mut fmt::Formatter<'_>,
    module: &ModuleSpec,
    number: u16,
    value: u64,
) -> fmt::Result {
    match module.params.get(usize::from(number)) {
        Some(param) => write!(
            f,
            "\"{}\": {} = {value} is outside {} to {} ({:?})",
            module.name, param.name, param.min, param.max, param.unit
        ),
        None => write!(f, "\"{}\" has no parameter number {number}", module.name),
    }
}

impl std::error::Error for Illegal {}

/// Checks a graph over what a transport offers.
///
/// # Errors
/// The first reason, from the application downwards.
pub fn check(
    catalogue: &Catalogue,
    graph: &Graph,
    offer: &Offer<'_>,
    needs: Needs,
) -> Result<(), Illegal> {
    if graph.nodes.len() > GRAPH_NODES_MAX {
        return Err(Illegal::TooManyModules { count: graph.nodes.len() });
    }
    let specs = specs(catalogue, graph)?;
    check_order(&specs)?;
    check_functions(&specs)?;
    check_requirements(&specs, graph, offer)?;
    for (node, (spec, at)) in specs.iter().zip(&graph.nodes).enumerate() {
        check_params(node, spec, at)?;
    }
    check_room(catalogue, graph, offer, needs)
}

fn specs(catalogue: &Catalogue, graph: &Graph) -> Result<Vec<&'static ModuleSpec>, Illegal> {
    let lookup = |(node, at): (usize, &Node)| {
        let entry = catalogue.by_id(at.module);
        entry.map(|entry| entry.spec).ok_or(Illegal::UnknownModule { node, id: at.module })
    };
    graph.nodes.iter().enumerate().map(lookup).collect()
}

fn check_order(specs: &[&'static ModuleSpec]) -> Result<(), Illegal> {
    for (index, pair) in specs.windows(2).enumerate() {
        let (upper, lower) = (pair[0], pair[1]);
        if lower.stratum < upper.stratum {
            return Err(Illegal::WrongOrder { node: index + 1, upper, lower });
        }
    }
    for (node, lower) in specs.iter().enumerate() {
        let upper = specs[..node].iter().find(|upper| upper.beneath.contains(&lower.function));
        if let Some(upper) = upper {
            return Err(Illegal::NotBeneath { node, upper, lower });
        }
    }
    Ok(())
}

fn check_functions(specs: &[&'static ModuleSpec]) -> Result<(), Illegal> {
    for (node, second) in specs.iter().enumerate() {
        let first = specs[..node].iter().find(|first| first.function == second.function);
        if let Some(first) = first {
            return Err(Illegal::SameFunction { node, first, second });
        }
    }
    Ok(())
}

fn check_requirements(
    specs: &[&'static ModuleSpec],
    graph: &Graph,
    offer: &Offer<'_>,
) -> Result<(), Illegal> {
    let mut given = Properties::of(offer.properties);
    let mut topmost = Ok(());
    for (node, module) in specs.iter().enumerate().rev() {
        if let Some(property) = given.lacks(module.requires) {
            let mut below = specs.iter().skip(node + 1);
            topmost = Err(match below.find(|by| by.takes.contains(&property)) {
                Some(by) if offer.properties.contains(&property) => {
                    Illegal::Taken { node, module, property, by }
                }
                _ => Illegal::Missing { node, module, property },
            });
        }
        given = module.above(graph.nodes[node].params.values(), given);
    }
    topmost
}

fn check_params(node: usize, module: &'static ModuleSpec, at: &Node) -> Result<(), Illegal> {
    for &(param, value) in at.params.values() {
        let spec = module.params.get(usize::from(param));
        if !spec.is_some_and(|spec| (spec.min..=spec.max).contains(&value)) {
            return Err(Illegal::Param { node, module, param, value });
        }
    }
    Ok(())
}

fn check_room(
    catalogue: &Catalogue,
    graph: &Graph,
    offer: &Offer<'_>,
    needs: Needs,
) -> Result<(), Illegal> {
    let wide = catalogue.layout(graph, offer.path_head, usize::MAX / 2);
    let overhead = wide.map_or(0, |layout| layout.head + layout.tail);
    let segment = offer.datagram_len.saturating_sub(overhead);
    if segment < SEGMENT_LEN_MIN {
        return Err(Illegal::NoRoom { overhead, datagram_len: offer.datagram_len });
    }
    let segmented = wide.is_some_and(|layout| layout.segmented);
    if !segmented && needs.unit_len_max > segment {
        return Err(Illegal::UnitsTooLarge { unit_len_max: needs.unit_len_max, packet: segment });
    }
    Ok(())
}
