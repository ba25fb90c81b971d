//! [`Request`] and [`Pins`]: what a choice is made for, and what of it is fixed by hand.
//!
//! What they are not: read from anywhere; whoever has a session file or a peer's wishes fills them.

use crate::attribute::Attributes;
use dacapo_lift::{Graph, Setting};

/// What a protocol is chosen for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked; each requirement passes [`Attributes::check`].
    pub attributes: Attributes,
    /// What is assumed of the path, and the units.
    pub setting: Setting,
    /// What the receiver does with units.
    pub used: Use,
    /// The bytes of the path's own header in front of every packet.
    pub path_head: u32,
    /// The bytes in front of every unit, inside the graph.
    pub unit_head: u32,
}

impl Request {
    /// The bytes of the path's own header: type and label.
    pub const PATH_HEAD: u32 = 5;
    /// The bytes in front of every unit: its number.
    pub const UNIT_HEAD: u32 = 4;

    /// The request of a flow whose headers have the usual lengths.
    #[must_use]
    pub const fn new(attributes: Attributes, setting: Setting, used: Use) -> Self {
        let (path_head, unit_head) = (Self::PATH_HEAD, Self::UNIT_HEAD);
        Self { attributes, setting, used, path_head, unit_head }
    }

    /// The delay at which units are shown, where it is given, in ns.
    pub(super) const fn playout_ns(&self) -> Option<u64> {
        match self.used {
            Use::Played { playout_ns } => playout_ns,
            Use::Handed => None,
        }
    }
}

/// What the receiver does with units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// They are media and are shown at a fixed delay; what comes later than that is not used.
    Played {
        /// That delay in ns; chosen together with the protocol when it is not given.
        playout_ns: Option<u64>,
    },
    /// The application gets them as they come.
    Handed,
}

/// What somebody has fixed by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// These modules with these parameters, and no others.
    pub graph: Option<Graph>,
    /// The transport with this number, and no other.
    pub transport: Option<u16>,
}

impl Pins {
    /// Nothing is fixed.
    pub const NONE: Self = Self { graph: None, transport: None };

    /// Whether nothing is fixed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.graph.is_none() && self.transport.is_none()
    }
}
