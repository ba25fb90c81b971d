//! [`World`]: cores, links between them, and a virtual clock.
//!
//! Each node has an address `10.0.0.n`: a control port and, where it dials, a data port of its own;
//! a node that serves uses its server port for both, as on a host. In further networks `k` it has
//! `10.0.k.n`, and what goes to an address of one comes from that of the sender there.

mod clock;
mod faults;
mod groups;
mod streams;
mod visits;

use crate::plain_tls;
use crate::seeds;
use crate::stream::Streams;
use crate::trace::Trace;
use clock::NodeClock;
use dacapo_base::{Random, Time};
use dacapo_core::{
    Core, CoreConfig, CoreEvent, ListenerId, NetworkEvent, Request, StreamId, Transmit, Way,
};
use dacapo_link::{Carry, Corruption, Ecn, Fate, Link, LinkConfig, LinkStats};
use dacapo_transport::TrafficClass;
use dacapo_transport::stream::Token;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The port that nodes serve on.
const SERVER_PORT: u16 = 19_980;

/// Rounds at one instant after which a world is taken to be stuck.
const ROUNDS_MAX: usize = 10_000;

/// A node of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// A datagram on a link.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Who sent it.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// What.
    pub bytes: Vec<u8>,
    /// Its congestion codepoint.
    pub ecn: Ecn,
}

impl Carry for Datagram {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn corrupt(&mut self, random: &mut Random, kind: Corruption) {
        self.bytes.corrupt(random, kind);
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}

/// What an observer sees of a datagram that a core sends: the datagram and what the link decided.
pub struct Crossing<'a> {
    /// When.
    pub now: Time,
    /// Which node sent it.
    pub node: NodeId,
    /// By which lane.
    pub lane: TrafficClass,
    /// The datagram, before the link alters it.
    pub bytes: &'a [u8],
    /// What becomes of it.
    pub fate: Fate,
}

struct Node {
    core: Core,
    control: SocketAddr,
    data: SocketAddr,
    killed: bool,
    /// It accepts connections.
    listens: bool,
    /// What it sends by this lane vanishes.
    blocked: Option<TrafficClass>,
    clock: NodeClock,
}

impl Node {
    fn handle_datagram(&mut self, now: Time, net: u8, from: SocketAddr, bytes: &[u8], ecn: Ecn) {
        let local = self.clock.local(now);
        // Without memory it is lost, as it would be in a full socket.
        if let Ok(mut packet) = self.core.pool().packet_from(0, bytes, 0) {
            packet.set_ecn(ecn);
            self.core.handle_datagram(local, ListenerId(net.into()), from.into(), packet);
        }
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        let local = self.clock.local(now);
        self.core.next_deadline(local).map(|at| self.clock.world(at))
    }
}

type Observer = Box<dyn FnMut(&Crossing<'_>)>;

/// Cores over links, in virtual time.
pub struct World {
    now: Time,
    nodes: Vec<Node>,
    /// By who sends, who gets, and the network between them.
    links: BTreeMap<(NodeId, NodeId, u8), Link<Datagram>>,
    default_link: LinkConfig,
    random: Random,
    trace: Trace,
    observer: Option<Observer>,
    clock: Arc<plain_tls::clock::WorldClock>,
    origin: Instant,
    steps: u64,
    strays: Option<Vec<Datagram>>,
    streams: Streams,
    groups: groups::Groups,
    /// Tokens for which nodes wait.
    expected: BTreeMap<(NodeId, Token), StreamId>,
    /// No byte of a stream gets through.
    held: bool,
    /// How far the calendar is ahead, nanoseconds.
    calendar_ahead_ns: u64,
    /// The most bytes sent per byte received to an address that was not proved.
    amplification: f64,
    /// At each how many steps everything is looked at besides what is ready.
    steps_per_visit: u64,
}

impl World {
    /// A world in which every pair of nodes is joined by this link, one each way.
    #[must_use]
    pub fn new(seed: u64, link: LinkConfig) -> Self {
        Self {
            now: Time::from_millis(1),
            nodes: Vec::new(),
            links: BTreeMap::new(),
            default_link: link,
            random: Random::from_number(seed),
            trace: Trace::default(),
            observer: None,
            clock: Arc::new(plain_tls::clock::WorldClock::new()),
            origin: Instant::now(),
            steps: 0,
            strays: None,
            // Of its own, so that worlds without streams are what they were.
            streams: Streams::new(Random::from_number(seed ^ 0x5713_EA45)),
            groups: groups::Groups::default(),
            expected: BTreeMap::new(),
            held: false,
            calendar_ahead_ns: 0,
            amplification: 0.0,
            steps_per_visit: seeds::steps_per_visit(),
        }
    }

    /// Adds a node that runs a core of this configuration.
    pub fn add(&mut self, config: CoreConfig) -> NodeId {
        let id = NodeId(self.nodes.len());
        let core = self.make_core(config);
        let ip = Ipv4Addr::new(10, 0, 0, id.0 as u8 + 1);
        self.nodes.push(Node {
            core,
            control: SocketAddr::from((ip, SERVER_PORT)),
            data: SocketAddr::from((ip, SERVER_PORT)),
            killed: false,
            listens: true,
            blocked: None,
            clock: NodeClock::default(),
        });
        id
    }

    fn make_core(&mut self, config: CoreConfig) -> Core {
        let mut random = self.random.fork();
        let crypto = plain_tls::control_crypto(&mut random, Some(self.clock.clone()));
        Core::new(config, crypto, random, self.origin)
    }

    /// Gives a node that dials a data port of its own.
    pub fn dials(&mut self, node: NodeId) {
        let ip = self.nodes[node.0].control.ip();
        self.nodes[node.0].control = SocketAddr::from((ip, 40_001));
        self.nodes[node.0].data = SocketAddr::from((ip, 40_002));
        self.nodes[node.0].listens = false;
    }

    /// Where a node serves.
    #[must_use]
    pub fn address(&self, node: NodeId) -> SocketAddr {
        self.nodes[node.0].control
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The core of a node.
    pub fn core(&mut self, node: NodeId) -> &mut Core {
        &mut self.nodes[node.0].core
    }

    /// The next event of a node.
    pub fn poll_event(&mut self, node: NodeId) -> Option<CoreEvent> {
        self.nodes[node.0].core.poll_event()
    }

    /// The digest of all that was sent.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.trace
    }

    /// Shows every datagram that is sent to `observer`, with what the link decided.
    pub fn observe(&mut self, observer: impl FnMut(&Crossing<'_>) + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// The link from one node to another.
    pub fn link(&mut self, from: NodeId, to: NodeId) -> &mut Link<Datagram> {
        self.link_in(0, from, to)
    }

    /// The same in a further network.
    pub fn link_in(&mut self, net: u8, from: NodeId, to: NodeId) -> &mut Link<Datagram> {
        let (config, random) = (&self.default_link, &mut self.random);
        self.links.entry((from, to, net)).or_insert_with(|| {
            Link::new(config.clone(), random.fork()).unwrap_or_else(|error| {
                // A world is made by a test; a link that cannot be is a mistake in it.
                panic!("the link of the world is not valid: {error}")
            })
        })
    }

    /// A node that serves is reached in the networks up to this one.
    pub fn serves_in(&mut self, node: NodeId, last: u8) {
        let (now, node) = (self.now, &mut self.nodes[node.0]);
        for net in 0..=last {
            let (place, at) = (ListenerId(net.into()), in_net(node.control, net));
            node.core.handle_network(now, NetworkEvent::Listening(place, at.into()));
        }
    }

    /// The record of the link from one node to another.
    pub fn link_stats(&mut self, from: NodeId, to: NodeId) -> LinkStats {
        self.link(from, to).stats().clone()
    }

    /// Gives a node a datagram at this instant, from whatever address: somebody outside sent it.
    pub fn inject(&mut self, to: NodeId, from: SocketAddr, bytes: &[u8]) {
        let (now, node) = (self.now, &mut self.nodes[to.0]);
        node.handle_datagram(now, 0, from, bytes, Ecn::NotEct);
    }

    /// From now on, keeps what is sent to addresses that no node has, for [`World::take_strays`].
    pub fn keep_strays(&mut self) {
        self.strays.get_or_insert_default();
    }

    /// What was sent to addresses that no node has, since the last call.
    pub fn take_strays(&mut self) -> Vec<Datagram> {
        self.strays.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Where `Time::ZERO` of this world lies on the clock that `quinn-proto` counts with.
    #[must_use]
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// Runs until `done` says so, or until `until`; true when `done` did.
    pub fn run(&mut self, until: Time, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            self.settle();
            if done(self) {
                return true;
            }
            // What `done` commanded is done at this instant.
            self.settle();
            self.visit_all();
            match self.next_time() {
                Some(at) if at <= until => self.advance(at),
                _ => {
                    self.advance(until);
                    return done(self);
                }
            }
        }
    }

    /// Runs for a time.
    pub fn run_for(&mut self, time: Duration) {
        self.run(self.now + time, |_| false);
    }

    fn advance(&mut self, at: Time) {
        self.now = self.now.max(at);
        self.clock.set(self.now + Duration::from_nanos(self.calendar_ahead_ns));
        self.steps += 1;
        self.deliver();
        for node in self.nodes.iter_mut().filter(|node| !node.killed) {
            let local = node.clock.local(self.now);
            node.core.handle_timeout(local);
        }
    }

    /// Sends everything that may be sent at this instant, and has those look at themselves to which
    /// something has happened, as who turns a core does.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < ROUNDS_MAX, "the world does not come to rest at {:?}", self.now);
            let mut sent = false;
            for index in 0..self.nodes.len() {
                sent |= self.drain(index);
            }
            self.deliver();
            sent |= self.step_streams();
            sent |= self.look_at_touched();
            if !sent {
                break;
            }
        }
    }

    /// True when there was any.
    fn look_at_touched(&mut self) -> bool {
        let mut is_any = false;
        let is_touched = |node: &&mut Node| !node.killed && node.core.is_touched();
        for node in self.nodes.iter_mut().filter(is_touched) {
            node.core.handle_timeout(node.clock.local(self.now));
            is_any = true;
        }
        is_any
    }

    fn drain(&mut self, index: usize) -> bool {
        let mut sent = false;
        while !self.nodes[index].killed {
            let local = self.nodes[index].clock.local(self.now);
            let core = &mut self.nodes[index].core;
            if let Some(request) = core.poll_request() {
                match request {
                    Request::Stream(ask) => self.ask(NodeId(index), ask),
                    Request::Group(ask) => self.ask_group(NodeId(index), ask),
                    // Nobody is on one host with another, and lanes need not be closed.
                    Request::Lookup(_) | Request::CloseData(_) => continue,
                }
                sent = true;
                continue;
            }
            let Some(transmit) = core.poll_transmit(local) else {
                // Who turns a core sleeps now.
                let more = core.poll_transmit(local).map(|it| it.way);
                assert!(more.is_none(), "node {index} had nothing to send, and then {more:?}");
                break;
            };
            self.carry(NodeId(index), transmit);
            sent = true;
        }
        sent
    }

    /// Brings what a core sends on its way.
    fn carry(&mut self, id: NodeId, transmit: Transmit) {
        let node = &mut self.nodes[id.0];
        let (bytes, segment) = node.core.bytes(&transmit);
        let datagrams: Vec<Vec<u8>> = bytes.chunks(segment.max(1)).map(<[u8]>::to_vec).collect();
        let (way, remote) = (transmit.way, transmit.remote.ip());
        let ecn = transmit.ecn;
        node.core.transmitted(transmit);
        let from = if way == Way::Control { node.control } else { node.data };
        for bytes in datagrams {
            match way {
                Way::Stream(stream) => self.streams.send(id, stream, &bytes),
                // In these worlds there are no other addresses.
                Way::Control | Way::Data => {
                    let Some(remote) = remote else { continue };
                    let from = in_net(from, net_of(remote));
                    self.send(id, lane_of(way), Datagram { from, to: remote, bytes, ecn });
                }
            }
        }
        if matches!(way, Way::Stream(_)) {
            // The core learns at once that the stream takes no more.
            self.step_streams();
        }
    }

    fn send(&mut self, node: NodeId, lane: TrafficClass, datagram: Datagram) {
        let (now, from, to) = (self.now, datagram.from, datagram.to);
        self.trace.record(now, from, to, &datagram.bytes);
        if self.nodes[node.0].blocked == Some(lane) {
            return;
        }
        if to.ip().is_multicast() {
            return self.send_to_group(node, lane, from, to, &datagram.bytes);
        }
        let there = in_net(to, 0).ip();
        let Some(peer) = self.nodes.iter().position(|it| it.control.ip() == there) else {
            if let Some(strays) = &mut self.strays {
                strays.push(datagram);
            }
            return;
        };
        self.cross(node, NodeId(peer), lane, datagram);
        self.note_amplification(node, NodeId(peer));
    }

    /// Brings a datagram onto the link to a node.
    fn cross(&mut self, node: NodeId, peer: NodeId, lane: TrafficClass, datagram: Datagram) {
        let (now, net) = (self.now, net_of(datagram.to));
        let shown = self.observer.is_some().then(|| datagram.bytes.clone());
        let fate = self.link_in(net, node, peer).handle_send(now, datagram);
        if let (Some(observer), Some(bytes)) = (&mut self.observer, shown) {
            observer(&Crossing { now, node, lane, bytes: &bytes, fate });
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        for ((_, to, net), link) in &mut self.links {
            while let Some(delivery) = link.poll_deliver(now) {
                let node = &mut self.nodes[to.0];
                if node.killed {
                    continue;
                }
                let Datagram { from, bytes, ecn, .. } = &delivery.item;
                node.handle_datagram(now, *net, *from, bytes, *ecn);
            }
        }
    }

    fn next_time(&mut self) -> Option<Time> {
        let now = self.now;
        let cores = self.nodes.iter_mut().filter(|node| !node.killed);
        let core = cores.filter_map(|node| node.next_deadline(now)).min();
        let link = self.links.values().filter_map(Link::next_deadline).min();
        let stream = self.next_stream();
        let next = [core, link, stream].into_iter().flatten().min();
        // A deadline that is past must not stop the clock.
        next.map(|at| at.max(now + Duration::from_nanos(1)))
    }

    /// How often the clock has jumped.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// The network of an address: those of groups, and of strangers, are in the first.
fn net_of(address: SocketAddr) -> u8 {
    match address.ip() {
        IpAddr::V4(ip) if ip.octets()[..2] == [10, 0] => ip.octets()[2],
        _ => 0,
    }
}

/// The address of the same node in another network.
fn in_net(mut address: SocketAddr, net: u8) -> SocketAddr {
    if let IpAddr::V4(ip) = address.ip()
        && let [10, 0, _, node] = ip.octets()
    {
        address.set_ip(IpAddr::from([10, 0, net, node]));
    }
    address
}

/// The lane that a core means.
fn lane_of(way: Way) -> TrafficClass {
    match way {
        Way::Control => TrafficClass::Control,
        Way::Data | Way::Stream(_) => TrafficClass::Data,
    }
}
