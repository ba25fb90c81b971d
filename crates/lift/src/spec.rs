//! [`ModuleSpec`]: the static facts of a module, from which graphs are checked, explained and laid
//! out.

use crate::{
    POINTS_MAX, Params, Profile, Properties, SEGMENT_LEN_MIN, Service, Setting, TransportProfile,
};
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
    /// Fewer bytes per unit: it lays a unit out anew, in fewer segments of the same length.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Nobody but the participants can read.
    Confidentiality,
    /// Some participant has sent it.
    GroupAuthenticity,
    /// This very participant has sent it.
    SourceAuthenticity,
    /// It yields to others on a shared link.
    CongestionControl,
    /// What the modules of the receiver send comes to the sender's, and there is one receiver.
    WayBack,
    /// What the modules of each of several receivers send comes to the sender's, which are told
    /// whose it is. A module that goes by numbers of its own from one other end takes it away.
    Answers,
    /// What comes later than its deadline is not handed over.
    Timely,
    /// A unit arrives that no newer one replaces.
    Newest,
    /// Who sends waits for the room that each receiver has said.
    FlowControl,
}

impl Property {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Boundaries,
        Self::Order,
        Self::NoDuplicates,
        Self::Integrity,
        Self::NoLoss,
        Self::AnyUnitSize,
        Self::Confidentiality,
        Self::GroupAuthenticity,
        Self::SourceAuthenticity,
        Self::CongestionControl,
        Self::WayBack,
        Self::Answers,
        Self::Timely,
        Self::Newest,
        Self::FlowControl,
    ];
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
            Self::Confidentiality => "confidentiality",
            Self::GroupAuthenticity => "authenticity of the group",
            Self::SourceAuthenticity => "authenticity of the source",
            Self::CongestionControl => "congestion control",
            Self::WayBack => "a way back",
            Self::Answers => "a way back from each receiver",
            Self::Timely => "nothing late",
            Self::Newest => "the newest unit",
            Self::FlowControl => "flow control",
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
    /// The first byte of the out-of-band message that changes it while the flow runs, where one
    /// does; the value follows as a u64.
    pub control: Option<u8>,
}

/// The name of the parameter, 0 or 1, by which a session file says that nobody but those who may
/// read a flow has a say in what its units are: what else a module gives away of them by their
/// lengths it then does not ([`ModuleSpec::takes_away`]).
pub const TRUSTED: &str = "trusted";

/// The static facts of a module.
#[derive(Clone, Copy, Debug)]
pub struct ModuleSpec {
    /// The name in session files and reports.
    pub name: &'static str,
    /// The number on the wire; 0xF000 to 0xFFFF are for tests and never assigned.
    pub id: u16,
    /// The protocol function that it serves; a graph has at most one module of a function.
    pub function: &'static str,
    /// How it serves it, for people: what the field calls the mechanism.
    pub mechanism: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it stands.
    pub stratum: Stratum,
    /// Bytes that `down` adds before every segment, exactly.
    pub head: u16,
    /// Bytes that `down` adds after every segment, exactly.
    pub tail: u16,
    /// True when `down` takes trains; else the runner splits them, and rejoins what comes out: a
    /// train of 45 then costs this module, and those below, many times as much.
    pub trains_down: bool,
    /// True when `up` takes trains; else the runner splits them, and all above get them split.
    pub trains_up: bool,
    /// False when the module may change the order of packets in one direction.
    pub keeps_order: bool,
    /// True when it cuts units into packets and joins them again.
    pub segments: bool,
    /// It tells the path of every packet that it sends whether that came or was lost
    /// ([`crate::Cx::report_delivered`], [`crate::Cx::report_lost`]), so that the path's controller
    /// knows what is in flight.
    pub acknowledges: bool,
    /// The number of a parameter whose value is 0 or 1: with 1 it hands packets over in order,
    /// whatever order is below. Where nobody names it, it is tried both ways.
    pub orders: Option<u16>,
    /// What must come from below.
    pub requires: &'static [Property],
    /// What it gives to what stands above.
    pub provides: &'static [Property],
    /// What it takes away from what comes from below.
    pub takes: &'static [Property],
    /// Functions whose modules, where there are any, stand above this one.
    pub beneath: &'static [&'static str],
    /// Its parameters; the place in this list is the parameter's number on the wire.
    pub params: &'static [ParamSpec],
    /// The names of the figures that it shows of itself ([`crate::Cx::note`]), units last: that of
    /// code 1 first.
    pub notes: &'static [&'static str],
    /// How it changes what is predicted, and what it costs.
    pub profile: &'static dyn Profile,
}

impl ModuleSpec {
    /// A module that asks, promises and changes nothing, of a function of its own: what to begin
    /// with where only some facts matter.
    #[must_use]
    pub const fn plain(name: &'static str, id: u16) -> Self {
        Self {
            name,
            id,
            function: name,
            mechanism: "",
            summary: "",
            stratum: Stratum::Repair,
            head: 0,
            tail: 0,
            trains_down: true,
            trains_up: true,
            keeps_order: true,
            segments: false,
            acknowledges: false,
            orders: None,
            requires: &[],
            provides: &[],
            takes: &[],
            beneath: &[],
            params: &[],
            notes: &[],
            profile: &crate::profile::Neutral,
        }
    }

    /// The name of a figure that it shows; its code where it has none.
    #[must_use]
    pub fn note_name(&self, code: u16) -> String {
        let place = usize::from(code).checked_sub(1);
        let name = place.and_then(|place| self.notes.get(place));
        name.map_or_else(|| code.to_string(), |name| (*name).to_owned())
    }

    /// The value of parameter `number` among those that are set, or its default; 0 for one that is
    /// not there.
    #[must_use]
    pub fn value_of(&self, values: &[(u16, u64)], number: u16) -> u64 {
        let Some(param) = self.params.get(usize::from(number)) else { return 0 };
        let set = values.iter().find(|(known, _)| *known == number);
        set.map_or(param.default, |(_, value)| *value)
    }

    /// What it gives with these values of its parameters.
    #[must_use]
    pub fn gives(&self, values: &[(u16, u64)]) -> Properties {
        let given = Properties::of(self.provides);
        let is_ordered = self.orders.is_some_and(|it| self.value_of(values, it) != 0);
        if is_ordered { given.with(Properties::of(&[Property::Order])) } else { given }
    }

    /// What it takes away with these values of its parameters: where [`TRUSTED`] is set, not
    /// confidentiality.
    #[must_use]
    pub fn takes_away(&self, values: &[(u16, u64)]) -> Properties {
        let taken = Properties::of(self.takes);
        let trusted = self.params.iter().position(|param| param.name == TRUSTED);
        let is_trusted = trusted.is_some_and(|it| self.value_of(values, it as u16) != 0);
        let spared = Properties::of(if is_trusted { &[Property::Confidentiality] } else { &[] });
        taken.without(spared)
    }

    /// What holds above the module with these values of its parameters, from what holds below.
    /// Units that are joined while packets come in any order may be more than can be in work.
    #[must_use]
    pub fn above(&self, values: &[(u16, u64)], below: Properties) -> Properties {
        let too_many = self.segments && !below.contains(Property::Order);
        let lost = Properties::of(if too_many { &[Property::NoLoss] } else { &[] });
        below.without(self.takes_away(values)).without(lost).with(self.gives(values))
    }

    /// The values of the parameters that are tried above this service: those that its profile
    /// proposes, the first [`POINTS_MAX`], and the same in order where it can give that.
    #[must_use]
    pub fn points(&self, setting: &Setting, below: &Service) -> Vec<Params> {
        let mut points = self.profile.points(setting, below);
        points.truncate(POINTS_MAX);
        let Some(orders) = self.orders else { return points };
        let ordered = |point: &Params| {
            let mut point = point.clone();
            point.set(orders, 1);
            point
        };
        let ordered: Vec<Params> = points.iter().map(ordered).collect();
        points.extend(ordered);
        points
    }

    /// The service above the module with these parameters; `None` when something that it requires
    /// is missing below, or too little room is left.
    #[must_use]
    pub fn serve(&self, params: &Params, setting: &Setting, below: &Service) -> Option<Service> {
        if below.properties.lacks(self.requires).is_some() {
            return None;
        }
        let room =
            below.payload_len_max.checked_sub(u32::from(self.head) + u32::from(self.tail))?;
        if (room as usize) < SEGMENT_LEN_MIN {
            return None;
        }
        let mut figures = self.profile.figures(params, setting, below);
        figures.rate_bps = share(figures.rate_bps, room, below.payload_len_max);
        let properties = self.above(params.values(), below.properties);
        Some(Service { properties, payload_len_max: room, figures })
    }
}

/// A protocol of IP that has ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProtocol {
    /// RFC 768.
    Udp,
    /// RFC 9293.
    Tcp,
}

/// The port of a host where flows over a transport are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPort {
    /// Whose port it is.
    pub protocol: PortProtocol,
    /// How far above that of control it lies, while it is free; 0: the same number, always. Far
    /// enough that a second host on the next port is not in the way, and below those that systems
    /// give away by themselves.
    pub above: u16,
}

impl FlowPort {
    /// The port beside this one of control; `None` when there is none so far above.
    #[must_use]
    pub fn beside(self, control: u16) -> Option<u16> {
        control.checked_add(self.above)
    }
}

/// How packets go by several paths to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Each by every path: the graph drops the copies, as SMPTE ST 2022-7 has it.
    Copies,
    /// By the first that is not silent; the others are only asked whether they are there.
    Backup,
}

/// The static facts of a transport.
#[derive(Clone, Copy, Debug)]
pub struct TransportSpec {
    /// The name in session files and reports.
    pub name: &'static str,
    /// The number on the wire.
    pub id: u16,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The scheme of the addresses that it reads. It carries the flows of peers that are reached at
    /// one of this scheme.
    pub scheme: &'static str,
    /// What it gives to a graph.
    pub properties: &'static [Property],
    /// The longest datagram that it takes, in bytes.
    pub datagram_len: u32,
    /// True when it carries datagrams of this length over any path, so that the path's own limit
    /// does not count.
    pub any_path: bool,
    /// Control and data have a way each, and no burst of data holds control up or drops it. False
    /// where both go the one way, and everything arrives as data.
    pub lanes: bool,
    /// True when each flow has a byte stream of its own, which is opened by a token.
    pub streams: bool,
    /// True when it is offered only where both ends are on one host and have found each other.
    pub same_host: bool,
    /// True when one sender serves several receivers, by a group or by a stream to each; never
    /// chosen for a flow that does not ask for it.
    pub groups: bool,
    /// How it spreads what it carries over several paths to one peer; `None`: it takes one. Never
    /// chosen for a flow that does not ask for it.
    pub spread: Option<Spread>,
    /// The transport that opens it, where it is another use of one: what it sends goes by the
    /// sockets of that.
    pub over: Option<&'static TransportSpec>,
    /// The port where flows over it are waited for; `None`: at none, or at that of what opens it.
    pub port: Option<FlowPort>,
    /// What it makes of a path, and what it costs.
    pub profile: &'static dyn TransportProfile,
}

/// Two specs are the same when they have the same number.
impl PartialEq for TransportSpec {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for TransportSpec {}

impl TransportSpec {
    /// The longest datagram over a path that takes `path_len` bytes.
    #[must_use]
    pub fn datagram_len_over(&self, path_len: u32) -> u32 {
        if self.any_path { self.datagram_len } else { self.datagram_len.min(path_len) }
    }

    /// The service above the transport, `path_head` bytes of the path's own header in each
    /// datagram; `None` when too little room is left.
    #[must_use]
    pub fn serve(&self, setting: &Setting, path_head: u32) -> Option<Service> {
        let datagram_len = self.datagram_len_over(setting.path.datagram_len);
        let room = datagram_len.checked_sub(path_head)?;
        if (room as usize) < SEGMENT_LEN_MIN {
            return None;
        }
        let mut figures = self.profile.figures(setting);
        figures.rate_bps = share(figures.rate_bps, room, datagram_len);
        Some(Service {
            properties: Properties::of(self.properties),
            payload_len_max: room,
            figures,
        })
    }
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

impl Setup {
    /// The bytes that the modules above add to every segment.
    #[must_use]
    pub fn added_above(&self) -> usize {
        let Layout { head, tail, .. } = self.layout;
        head.saturating_sub(self.head_below) + tail.saturating_sub(self.tail_below)
    }

    /// The most bytes of a unit here: with what the modules above add to every segment, however
    /// short the path makes these.
    #[must_use]
    pub fn unit_len_max_here(&self) -> usize {
        let segments = self.unit_len_max.div_ceil(SEGMENT_LEN_MIN).max(1);
        self.unit_len_max.saturating_add(segments.saturating_mul(self.added_above()))
    }
}

/// `rate` less the part of each packet that headers take.
fn share(rate: u64, room: u32, of: u32) -> u64 {
    let rate = u128::from(rate) * u128::from(room) / u128::from(of.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}
