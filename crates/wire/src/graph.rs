//! A graph of modules as bytes, canonical: one graph has one encoding.
//!
//! ```text
//!  +-------+----------------------------------------------------------+---
//!  | count | parent u8 | module u16 | count u8 | number u16 value u64 … | next node …
//!  +-------+----------------------------------------------------------+---
//!
//!   place 0   parent 0xFF       segment          nearest the application
//!   place 1   parent 0           arq
//!   place 2   parent 1            checksum       nearest the network
//! ```
//!
//! A module may be one that nobody knows.
//!
//! Invariants: what [`GraphForm::decode`] accepts, [`GraphForm::encode`] makes of the result, byte
//! for byte; so a hash over the bytes is a hash over the graph. Parents stand before their
//! children, so a walk in order needs no recursion and there is no cycle.
//!
//! Source: docs/protocol.md, "Fields".

use std::error::Error;
use std::fmt;

use crate::Malformed;
use crate::bytes::Reader;
use crate::limits::{GRAPH_LEN_MAX, MODULES_MAX, PARAMS_MAX};

/// The parent of the first node.
pub const NO_PARENT: u8 = 0xFF;

/// One module of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeForm {
    /// The place of the node above; [`NO_PARENT`] for the first.
    pub parent: u8,
    /// The module's number.
    pub module: u16,
    /// Parameters by number, ascending; what is not there has its default.
    pub params: Vec<(u16, u64)>,
}

/// The modules of one epoch, from the application to the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GraphForm {
    /// The modules; the index is the place. None: the access module stands on the transport.
    pub nodes: Vec<NodeForm>,
}

impl GraphForm {
    /// A graph without branches, of modules from the application to the network with their
    /// parameters, which must be in the order of their numbers.
    #[must_use]
    pub fn line(modules: impl IntoIterator<Item = (u16, Vec<(u16, u64)>)>) -> Self {
        let first = std::iter::once(NO_PARENT);
        // Beyond 255 places there is no parent; `check` refuses such a graph by its length.
        let parents = first.chain(0..NO_PARENT).chain(std::iter::repeat(NO_PARENT));
        let node = |((module, params), parent)| NodeForm { parent, module, params };
        Self { nodes: modules.into_iter().zip(parents).map(node).collect() }
    }

    /// The modules by their numbers, from the application to the network, each with the values of
    /// its parameters.
    pub fn modules(&self) -> impl DoubleEndedIterator<Item = (u16, &[(u16, u64)])> {
        self.nodes.iter().map(|node| (node.module, &node.params[..]))
    }

    /// Whether every module stands under the one before it: no branches.
    #[must_use]
    pub fn is_line(&self) -> bool {
        let parents = self.nodes.iter().skip(1).map(|node| usize::from(node.parent));
        parents.eq(0..self.nodes.len().saturating_sub(1))
    }

    /// Reads a graph that fills `bytes`.
    ///
    /// # Errors
    /// [`GraphError`] when it is cut off, goes on after its end, is beyond a bound, or is not
    /// canonical.
    pub fn decode(bytes: &[u8]) -> Result<Self, GraphError> {
        if bytes.len() > GRAPH_LEN_MAX {
            return Err(GraphError::TooLong { len: bytes.len() });
        }
        let mut reader = Reader(bytes);
        let count = reader.u8().map_err(|_| GraphError::Cut { place: 0 })?;
        if usize::from(count) > MODULES_MAX {
            return Err(GraphError::TooManyModules { count: usize::from(count) });
        }
        let mut graph = Self::default();
        for place in 0..count {
            let cut = |_| GraphError::Cut { place: usize::from(place) };
            graph.nodes.push(NodeForm::read(&mut reader).map_err(cut)?);
        }
        reader.end().map_err(|_| GraphError::Trailing { len: reader.0.len() })?;
        graph.check()?;
        Ok(graph)
    }

    /// Appends the bytes.
    ///
    /// # Errors
    /// [`GraphError`], and nothing is appended, when [`Self::decode`] would refuse the bytes.
    pub fn encode(&self, into: &mut Vec<u8>) -> Result<(), GraphError> {
        self.check()?;
        let count = u8::try_from(self.nodes.len());
        let count = count.map_err(|_| GraphError::TooManyModules { count: self.nodes.len() })?;
        into.push(count);
        self.nodes.iter().for_each(|node| node.write(into));
        Ok(())
    }

    /// Whether the graph has bytes: bounds, parents and the order of parameters.
    ///
    /// # Errors
    /// [`GraphError`], the first thing that is wrong.
    pub fn check(&self) -> Result<(), GraphError> {
        if self.nodes.len() > MODULES_MAX {
            return Err(GraphError::TooManyModules { count: self.nodes.len() });
        }
        for (place, node) in self.nodes.iter().enumerate() {
            node.check(place)?;
        }
        let len = self.nodes.iter().map(NodeForm::len).fold(1, usize::saturating_add);
        if len > GRAPH_LEN_MAX { Err(GraphError::TooLong { len }) } else { Ok(()) }
    }
}

impl NodeForm {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (parent, module, count) = (reader.u8()?, reader.u16()?, reader.u8()?);
        let mut params = Vec::new();
        for _ in 0..count {
            params.push((reader.u16()?, reader.u64()?));
        }
        Ok(Self { parent, module, params })
    }

    /// After [`Self::check`], which bounds the number of parameters.
    fn write(&self, into: &mut Vec<u8>) {
        into.push(self.parent);
        into.extend_from_slice(&self.module.to_be_bytes());
        into.push(self.params.len() as u8);
        for (number, value) in &self.params {
            into.extend_from_slice(&number.to_be_bytes());
            into.extend_from_slice(&value.to_be_bytes());
        }
    }

    fn check(&self, place: usize) -> Result<(), GraphError> {
        let is_first = place == 0 && self.parent == NO_PARENT;
        if !is_first && usize::from(self.parent) >= place {
            return Err(GraphError::Parent { place });
        }
        if self.params.len() > PARAMS_MAX {
            return Err(GraphError::TooManyParams { place });
        }
        let ascends = self.params.is_sorted_by(|(a, _), (b, _)| a < b);
        if ascends { Ok(()) } else { Err(GraphError::ParamOrder { place }) }
    }

    /// Length in bytes.
    fn len(&self) -> usize {
        self.params.len().saturating_mul(10).saturating_add(4)
    }
}

/// Why a graph has no bytes, or bytes are no graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphError {
    /// The bytes end before the graph does.
    Cut {
        /// The place of the node that is not whole.
        place: usize,
    },
    /// There are bytes after the graph.
    Trailing {
        /// How many.
        len: usize,
    },
    /// More bytes than [`GRAPH_LEN_MAX`].
    TooLong {
        /// How many.
        len: usize,
    },
    /// More modules than [`MODULES_MAX`].
    TooManyModules {
        /// How many.
        count: usize,
    },
    /// More parameters than [`PARAMS_MAX`].
    TooManyParams {
        /// The place of the node.
        place: usize,
    },
    /// Parameters that are not strictly ascending.
    ParamOrder {
        /// The place of the node.
        place: usize,
    },
    /// A parent that does not stand before its child.
    Parent {
        /// The place of the child.
        place: usize,
    },
}

impl GraphError {
    /// What is wrong, without the place.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Cut { .. } => "the graph is cut off",
            Self::Trailing { .. } => "there are bytes after the graph",
            Self::TooLong { .. } => "the graph has more than 4,096 bytes",
            Self::TooManyModules { .. } => "the graph has more than 32 modules",
            Self::TooManyParams { .. } => "a module has more than 32 parameters",
            Self::ParamOrder { .. } => "the parameters of a module are not in order, each once",
            Self::Parent { .. } => "the parent of a module does not stand before it",
        }
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what())?;
        match self {
            Self::Trailing { len } => write!(f, ": {len}"),
            Self::TooLong { len } => write!(f, ": {len}; use fewer modules or parameters"),
            Self::TooManyModules { count } => write!(f, ": {count}; use fewer"),
            Self::Cut { place }
            | Self::TooManyParams { place }
            | Self::ParamOrder { place }
            | Self::Parent { place } => write!(f, " (place {place})"),
        }
    }
}

impl Error for GraphError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(graph: &GraphForm) -> Vec<u8> {
        let mut bytes = Vec::new();
        graph.encode(&mut bytes).expect("a legal graph");
        bytes
    }

    #[test]
    fn a_line_has_the_bytes_of_the_page() {
        let graph = GraphForm::line([(0x0101, vec![]), (0xF00D, vec![(1, 2), (3, 0x0405)])]);
        let expected = [
            &[2_u8][..],
            &[0xFF, 0x01, 0x01, 0],
            &[0x00, 0xF0, 0x0D, 2],
            &[0, 1, 0, 0, 0, 0, 0, 0, 0, 2],
            &[0, 3, 0, 0, 0, 0, 0, 0, 4, 5],
        ]
        .concat();
        assert_eq!(bytes(&graph), expected);
        assert_eq!(GraphForm::decode(&expected), Ok(graph));
        assert_eq!(GraphForm::decode(&[0]), Ok(GraphForm::default()));
    }

    #[test]
    fn only_a_line_is_one() {
        let mut graph = GraphForm::line((1..=4).map(|module| (module, vec![])));
        assert!(graph.is_line() && GraphForm::default().is_line());
        assert_eq!(graph.nodes.iter().map(|node| node.parent).collect::<Vec<_>>(), [255, 0, 1, 2]);
        graph.nodes[3].parent = 1;
        assert!(!graph.is_line());
        assert_eq!(GraphForm::decode(&bytes(&graph)), Ok(graph));
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        for (bytes, error) in [
            (&[][..], GraphError::Cut { place: 0 }),
            (&[1, 0xFF, 0, 1], GraphError::Cut { place: 0 }),
            (&[2, 0xFF, 0, 1, 0], GraphError::Cut { place: 1 }),
            (&[1, 0xFF, 0, 1, 1, 0, 1], GraphError::Cut { place: 0 }),
            (&[0, 0], GraphError::Trailing { len: 1 }),
            (&[33], GraphError::TooManyModules { count: 33 }),
            (&[1, 0, 0, 1, 0], GraphError::Parent { place: 0 }),
            (&[2, 0xFF, 0, 1, 0, 1, 0, 1, 0], GraphError::Parent { place: 1 }),
            (&[2, 0xFF, 0, 1, 0, 0xFF, 0, 1, 0], GraphError::Parent { place: 1 }),
        ] {
            assert_eq!(GraphForm::decode(bytes), Err(error), "{bytes:?}");
        }
        for params in [vec![(2, 0), (1, 0)], vec![(1, 0), (1, 0)]] {
            let graph = GraphForm::line([(1, params)]);
            let error = GraphError::ParamOrder { place: 0 };
            assert_eq!(graph.encode(&mut Vec::new()), Err(error));
            let mut bytes = vec![1];
            graph.nodes[0].write(&mut bytes);
            assert_eq!(GraphForm::decode(&bytes), Err(error));
        }
    }

    #[test]
    fn what_is_beyond_a_bound_is_refused() {
        let line = |count: u16, params: u16| {
            let params: Vec<_> = (0..params).map(|number| (number, 7)).collect();
            GraphForm::line((0..count).map(|module| (module, params.clone())))
        };
        for (graph, error) in [
            (line(33, 0), GraphError::TooManyModules { count: 33 }),
            (line(300, 0), GraphError::TooManyModules { count: 300 }),
            (line(1, 33), GraphError::TooManyParams { place: 0 }),
            (line(32, 13), GraphError::TooLong { len: 1 + 32 * 134 }),
        ] {
            let mut bytes = vec![9];
            assert_eq!(graph.encode(&mut bytes), Err(error));
            assert_eq!(bytes, [9]);
        }
        for graph in [line(32, 12), line(12, 32)] {
            assert_eq!(GraphForm::decode(&bytes(&graph)), Ok(graph));
        }
        assert_eq!(GraphForm::decode(&[0; 4_097]), Err(GraphError::TooLong { len: 4_097 }));
    }

    #[test]
    fn an_error_says_where() {
        let error = GraphError::Parent { place: 3 };
        assert_eq!(error.to_string(), "the parent of a module does not stand before it (place 3)");
        assert!(GraphError::TooManyModules { count: 0 }.what().contains(&MODULES_MAX.to_string()));
        assert!(GraphError::TooManyParams { place: 0 }.what().contains(&PARAMS_MAX.to_string()));
    }
}
