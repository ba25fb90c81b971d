//! Hosts with a message service each, and a link from each to each, in virtual time.

use super::way::OnItsWay;
use dacapo_base::{Random, Time};
use dacapo_link::{Link, LinkConfig};
use dacapo_safenet::{
    Config, Ending, Event, MessageService, Mode, Outcome, Part, Route, SendError, Ticket,
};
use dacapo_xtp::{Engine, Timers};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The most turns of a test, so that one that does not end fails.
const TURNS_MAX: u64 = 400_000;

/// Where every host takes messages.
pub const PORT: u16 = 7;

/// The address of a host, below XTP.
pub fn host(end: usize) -> SocketAddr {
    ([192, 0, 2, 1 + end as u8], 4_040).into()
}

/// The group that all hosts but the sender are in.
pub fn group() -> SocketAddr {
    ([239, 1, 2, 3], 4_040).into()
}

/// The way to a host.
pub fn to(end: usize) -> Route {
    Route::host(host(end), PORT)
}

/// `len` bytes that tell their place.
pub fn bytes(len: usize, salt: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_number(salt).fill(&mut bytes);
    bytes
}

/// A host.
pub struct Node {
    pub service: MessageService,
    /// Whether what has come is taken at once.
    pub takes: bool,
    pub parts: Vec<Part>,
    pub outcomes: BTreeMap<Ticket, Outcome>,
    pub events: Vec<Event>,
    /// Whether the host is gone: it sends, hears and does nothing.
    pub is_gone: bool,
    pub packets: u64,
}

impl Node {
    /// The messages that have come whole, in the order in which they did.
    pub fn messages(&self) -> Vec<Vec<u8>> {
        let (mut messages, mut open) = (Vec::new(), BTreeMap::<_, Vec<u8>>::new());
        for part in &self.parts {
            let key = (part.sender.peer, part.priority, part.number);
            let so_far = open.entry(key).or_default();
            assert_eq!(so_far.len() as u64, part.offset, "parts follow each other");
            so_far.extend_from_slice(&part.data);
            let message = (part.ending != Ending::More).then(|| open.remove(&key)).flatten();
            if part.ending == Ending::Last {
                assert_eq!(message.as_ref().map(|message| message.len() as u64), Some(part.len));
                messages.extend(message);
            }
        }
        messages
    }
}

/// Hosts and what lies between them.
pub struct World {
    pub now: Time,
    pub nodes: Vec<Node>,
    links: Vec<Vec<Link<OnItsWay>>>,
    random: Random,
    pub engine_config: dacapo_xtp::Config,
    turns: u64,
    hint: String,
}

/// Timers with which a peer that is gone is given up within seconds.
pub fn short_timers() -> Timers {
    Timers {
        retries_max: 5,
        silence: Duration::from_secs(3),
        give_up: Duration::from_secs(5),
        ..Timers::default()
    }
}

impl World {
    /// `count` hosts with links of this kind, each of which listens on [`PORT`].
    pub fn new(
        seed: u64,
        count: usize,
        link: &LinkConfig,
        engine_config: dacapo_xtp::Config,
        config: impl Fn(Config) -> Config,
    ) -> Self {
        let mut random = Random::from_number(seed);
        let mut service = |end: usize| {
            let own = Config::new(SocketAddr::new(host(end).ip(), PORT));
            let engine = Engine::new(engine_config, random.fork());
            let mut service = MessageService::new(config(own), engine);
            service.listen(PORT).unwrap();
            service
        };
        let nodes = (0..count).map(|end| node(service(end))).collect();
        let mut way = || Link::new(link.clone(), random.fork()).unwrap();
        let links = (0..count).map(|_| (0..count).map(|_| way()).collect()).collect();
        let hint = format!("seed {seed}");
        Self { now: Time::from_millis(1), nodes, links, random, engine_config, turns: 0, hint }
    }

    /// Hosts over links that only take a millisecond.
    pub fn plain(count: usize, config: impl Fn(Config) -> Config) -> Self {
        let link = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
        let timers = short_timers();
        let engine = dacapo_xtp::Config { timers, ..dacapo_xtp::Config::default() };
        Self::new(1, count, &link, engine, config)
    }

    /// A host starts anew and knows nothing.
    pub fn restart(&mut self, end: usize) {
        let own = Config::new(SocketAddr::new(host(end).ip(), PORT));
        let engine = Engine::new(self.engine_config, self.random.fork());
        self.nodes[end].service = MessageService::new(own, engine);
        self.nodes[end].service.listen(PORT).unwrap();
    }

    /// Sends; the message must be accepted.
    pub fn send(&mut self, end: usize, route: Route, mode: Mode, data: Vec<u8>) -> Ticket {
        self.try_send(end, route, mode, data).unwrap()
    }

    pub fn try_send(
        &mut self,
        end: usize,
        route: Route,
        mode: Mode,
        data: Vec<u8>,
    ) -> Result<Ticket, SendError> {
        self.nodes[end].service.send_message(self.now, route, mode, data)
    }

    /// How a message of a host has ended.
    pub fn outcome(&self, end: usize, ticket: Ticket) -> Option<Outcome> {
        self.nodes[end].outcomes.get(&ticket).copied()
    }

    /// Takes all that has come to a host.
    pub fn take(&mut self, end: usize) {
        let node = &mut self.nodes[end];
        while let Some(part) = node.service.get_message(self.now, PORT) {
            node.parts.push(part);
        }
    }

    fn receivers(&self, from: usize, address: SocketAddr) -> Vec<usize> {
        let is_meant = |end: &usize| *end != from && (address == group() || address == host(*end));
        (0..self.nodes.len()).filter(is_meant).collect()
    }

    /// Sends what there is to send, delivers what is due, has users work. False when nothing came.
    fn pass(&mut self) -> bool {
        let mut has_some = false;
        for from in 0..self.nodes.len() {
            if self.nodes[from].is_gone {
                continue;
            }
            let mut packet = Vec::new();
            while let Some(address) = self.nodes[from].service.poll_packet(self.now, &mut packet) {
                self.turns += 1;
                has_some = true;
                self.nodes[from].packets += 1;
                let packet = std::mem::take(&mut packet);
                for end in self.receivers(from, address) {
                    let copy = OnItsWay(packet.clone());
                    let _fate = self.links[from][end].handle_send(self.now, copy);
                }
            }
            self.users(from);
        }
        has_some | self.deliver()
    }

    fn deliver(&mut self) -> bool {
        let mut has_some = false;
        for from in 0..self.nodes.len() {
            for end in 0..self.nodes.len() {
                while let Some(delivery) = self.links[from][end].poll_deliver(self.now) {
                    has_some = true;
                    let node = &mut self.nodes[end];
                    if !node.is_gone {
                        node.service.handle_packet(self.now, host(from), &delivery.item.0);
                    }
                }
            }
        }
        has_some
    }

    /// Hears events, and takes what has come.
    fn users(&mut self, end: usize) {
        let node = &mut self.nodes[end];
        while let Some(event) = node.service.poll_event() {
            if let Event::Ended(ticket, outcome) = event {
                let before = node.outcomes.insert(ticket, outcome);
                assert_eq!(before, None, "{}: {ticket:?} ends twice", self.hint);
            } else {
                node.events.push(event);
            }
        }
        assert!(
            node.service.messages().sums().closes(),
            "{}: {:?}",
            self.hint,
            node.service.messages().sums()
        );
        if node.takes {
            self.take(end);
        }
    }

    /// When something happens next.
    pub fn next(&self) -> Time {
        let links = self.links.iter().flatten().filter_map(Link::next_deadline);
        let here = self.nodes.iter().filter(|node| !node.is_gone);
        let services = here.map(|node| node.service.deadline());
        links.chain(services).min().unwrap_or(Time::NEVER)
    }

    /// Lets everything happen up to `until`.
    pub fn run_until(&mut self, until: Time) {
        loop {
            while self.pass() {}
            self.turns += 1;
            assert!(self.turns < TURNS_MAX, "{}: it does not come to an end", self.hint);
            let next = self.next();
            if next > until || next == Time::NEVER {
                break;
            }
            self.now = self.now.max(next);
            for node in self.nodes.iter_mut().filter(|node| !node.is_gone) {
                node.service.handle_time(self.now);
            }
        }
        self.now = if until == Time::NEVER { self.now } else { self.now.max(until) };
    }

    /// Lets so much time pass.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Lets everything happen until nothing does any more.
    pub fn run(&mut self) {
        self.run_until(Time::NEVER);
    }
}

fn node(service: MessageService) -> Node {
    Node {
        service,
        takes: true,
        parts: Vec::new(),
        outcomes: BTreeMap::new(),
        events: Vec::new(),
        is_gone: false,
        packets: 0,
    }
}
