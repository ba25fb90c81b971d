//! [`ModuleSpec`]: the static facts of a module, from which graphs are checked, explained and laid
//! out.
//!
//! What it is not: a running module ([`crate::Module`]), or a choice.

use dacapo_packet::Layout;
use std::fmt;

/// Where in a graph a module stands; from the application (first) to the network (last).
///
/// Rules of order name strata and functions, never other modules, so that a module added later
/// fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stratum {
    /// Traffic shaping and priorities of whole units.
    Shape,
    /// Fewer bytes per unit.
    Compress,
    /// Units become packets of the path's size, and packets units.
    Segment,
    /// Order, duplicates and loss of packets.
    Repair,
    /// Integrity and secrecy of packets.
    Protect,
    /// Numbers of transmissions, for what measures the path.
    Number,
}

impl fmt::Display for Stratum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shape => "shape",
            Self::Compress => "compress",
            Self::Segment => "segment",
            Self::Repair => "repair",
            Self::Protect => "protect",
            Self::Number => "number",
        })
    }
}

/// What a transport or a module gives to what stands above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Packets keep their boundaries.
    Boundaries,
    /// Packets arrive in the order sent, or are reported lost.
    Order,
    /// No packet arrives twice.
    NoDuplicates,
    /// Altered packets are not delivered (beyond what the checksum of the network finds).
    Integrity,
    /// Every packet arrives.
    NoLoss,
    /// Units may be larger than a packet.
    AnyUnitSize,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boundaries => "boundaries",
            Self::Order => "order",
            Self::NoDuplicates => "no duplicates",
            Self::Integrity => "integrity",
            Self::NoLoss => "no loss",
            Self::AnyUnitSize => "units of any size",
        })
    }
}

/// The unit in which a parameter is written, stored and sent: a whole number of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamUnit {
    /// A plain number.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Bits per second.
    BitsPerSecond,
}

/// One parameter of a module.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Its name in a session file.
    pub name: &'static str,
    /// Its unit.
    pub unit: ParamUnit,
    /// What is used when nothing is said.
    pub default: u64,
    /// The smallest allowed value.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
    /// What it does, in one line.
    pub summary: &'static str,
}

/// The static facts of a module.
#[derive(Clone, Copy, Debug)]
pub struct ModuleSpec {
    /// The name in session files and reports.
    pub name: &'static str,
    /// The number on the wire; 0xF000 to 0xFFFF are for tests and never assigned.
    pub id: u16,
    /// The protocol function that it serves; a graph has at most one module of a function.
    pub function: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it stands.
    pub stratum: Stratum,
    /// Bytes that `down` adds before every segment, exactly.
    pub head: u16,
    /// Bytes that `down` adds after every segment, exactly.
    pub tail: u16,
    /// True when `down` takes trains; else the runner splits them, and rejoins what comes out.
    pub trains_down: bool,
    /// True when `up` takes trains; else the runner splits them.
    pub trains_up: bool,
    /// False when the module may change the order of packets in one direction.
    pub keeps_order: bool,
    /// True when it cuts units into packets and joins them again.
    pub segments: bool,
    /// What must come from below.
    pub requires: &'static [Property],
    /// What it gives to what stands above.
    pub provides: &'static [Property],
    /// Its parameters; the place in this list is the parameter's number on the wire.
    pub params: &'static [ParamSpec],
}

/// Two specs are the same when they have the same number.
impl PartialEq for ModuleSpec {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for ModuleSpec {}

/// What a module is told when it is built for an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Where units and segments lie, heads and tails of the whole graph included.
    pub layout: Layout,
    /// The room that this module's `down` finds before every segment that it lays out itself: its
    /// own bytes and those of everything below.
    pub head_below: usize,
    /// The same, after every segment.
    pub tail_below: usize,
    /// The largest unit of the flow in bytes, framing included.
    pub unit_len_max: usize,
}
