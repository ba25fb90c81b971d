//! A transmitter and the members of a reliable group, each with links of its own, in virtual time.

use super::way::OnItsWay;
use super::world::address;
use dacapo_base::{Random, Time};
use dacapo_link::{Link, LinkConfig};
use dacapo_xtp::wire::Frame;
use dacapo_xtp::{
    Config, ContextId, End, Engine, Event, GroupPolicy, Join, Leaving, Listen, Member, Message,
    Mode, Open, Read,
};
use std::net::SocketAddr;
use std::time::Duration;

/// The port of XTP.
pub const PORT: u16 = 5_000;
/// The most turns of a test, so that one that does not end fails.
const TURNS_MAX: u64 = 400_000;

pub fn group() -> SocketAddr {
    ([239, 1, 2, 3], 4_040).into()
}

pub fn open() -> Open {
    Open::reliable_multicast(group(), PORT, ([192, 0, 2, 1], 4_000).into())
}

/// One member: its engine, and what its user has.
pub struct Hearer {
    pub engine: Engine,
    pub id: Option<ContextId>,
    pub got: Vec<u8>,
    pub events: Vec<Event>,
    pub end: Option<End>,
    /// Nothing comes to it, and nothing from it.
    pub is_cut: bool,
    /// Its user does not read.
    pub is_idle: bool,
    down: Link<OnItsWay>,
    up: Link<OnItsWay>,
}

/// A transmitter, and everybody who may become a member.
pub struct GroupWorld {
    pub now: Time,
    pub engine: Engine,
    pub id: Option<ContextId>,
    pub hearers: Vec<Hearer>,
    pub data: Vec<u8>,
    pub written: usize,
    /// How long messages are; `None`: there are none.
    pub message_len: Option<usize>,
    pub is_finished: bool,
    pub events: Vec<Event>,
    pub ended_at: Option<Time>,
    /// Every packet, with its sender: 0 is the transmitter.
    pub sent: Vec<(usize, Vec<u8>)>,
    config: Config,
    link: LinkConfig,
    random: Random,
    turns: u64,
    seed: u64,
}

impl GroupWorld {
    pub fn new(seed: u64, config: Config, link: &LinkConfig, data: Vec<u8>) -> Self {
        let mut random = Random::from_number(seed);
        Self {
            now: Time::from_millis(1),
            engine: Engine::new(config, random.fork()),
            id: None,
            hearers: Vec::new(),
            data,
            written: 0,
            message_len: None,
            is_finished: false,
            events: Vec::new(),
            ended_at: None,
            sent: Vec::new(),
            config,
            link: link.clone(),
            random,
            turns: 0,
            seed,
        }
    }

    /// A host that listens for reliable groups.
    pub fn listen(&mut self, mode: Mode) {
        let number = self.add();
        self.hearers[number].engine.listen(Listen { mode, ..Listen::on(PORT) }).unwrap();
    }

    /// A host that asks to join, now.
    pub fn join(&mut self, mode: Mode) {
        let number = self.add();
        let source = SocketAddr::new(address(number + 1).ip(), PORT);
        let join = Join { mode, ..Join::group(group(), PORT, source) };
        let hearer = &mut self.hearers[number];
        hearer.id = Some(hearer.engine.join(self.now, &join).unwrap());
    }

    fn add(&mut self) -> usize {
        let mut link = || Link::new(self.link.clone(), self.random.fork()).unwrap();
        let (down, up) = (link(), link());
        self.hearers.push(Hearer {
            engine: Engine::new(self.config, self.random.fork()),
            id: None,
            got: Vec::new(),
            events: Vec::new(),
            end: None,
            is_cut: false,
            is_idle: false,
            down,
            up,
        });
        self.hearers.len() - 1
    }

    pub fn open(&mut self, mode: Mode, policy: &GroupPolicy) {
        let open = Open { mode, ..open() };
        self.id = Some(self.engine.open_group(self.now, &open, policy).unwrap());
    }

    pub fn id(&self) -> ContextId {
        self.id.unwrap()
    }

    /// The transmitter's user writes what there is room for, and finishes.
    fn write(&mut self) {
        let Some(id) = self.id.filter(|_| !self.is_finished) else { return };
        loop {
            let whole = self.message_len.map(|len| (self.written / len + 1) * len);
            let end = whole.unwrap_or(usize::MAX).min(self.data.len());
            let data = &self.data[self.written..end];
            let message = Message { is_end: whole.is_some(), ..Message::part(data) };
            match self.engine.write(self.now, id, &message) {
                Ok(0) | Err(_) => break,
                Ok(taken) => self.written += taken,
            }
        }
        if self.written == self.data.len() {
            self.is_finished = self.engine.finish(self.now, id).is_ok();
        }
    }

    fn send(&mut self) -> bool {
        let (mut bytes, mut has_sent) = (Vec::new(), false);
        while let Some(to) = self.engine.poll_packet(self.now, &mut bytes) {
            self.count();
            let packet = std::mem::take(&mut bytes);
            has_sent = true;
            for (number, hearer) in self.hearers.iter_mut().enumerate() {
                let is_meant = to == group() || to == address(number + 1);
                if is_meant && !hearer.is_cut {
                    let _fate = hearer.down.handle_send(self.now, OnItsWay(packet.clone()));
                }
            }
            self.sent.push((0, packet));
        }
        for number in 0..self.hearers.len() {
            loop {
                let hearer = &mut self.hearers[number];
                let Some(to) = hearer.engine.poll_packet(self.now, &mut bytes) else { break };
                assert!(to == group() || to == address(0), "{to}");
                let packet = std::mem::take(&mut bytes);
                has_sent = true;
                if !hearer.is_cut {
                    let _fate = hearer.up.handle_send(self.now, OnItsWay(packet.clone()));
                }
                self.sent.push((number + 1, packet));
                self.count();
            }
        }
        has_sent
    }

    fn deliver(&mut self) -> bool {
        let mut has_come = false;
        for (number, hearer) in self.hearers.iter_mut().enumerate() {
            while let Some(delivery) = hearer.down.poll_deliver(self.now) {
                has_come = true;
                hearer.engine.handle_packet(self.now, address(0), &delivery.item.0);
            }
            while let Some(delivery) = hearer.up.poll_deliver(self.now) {
                has_come = true;
                self.engine.handle_packet(self.now, address(number + 1), &delivery.item.0);
            }
            hearer.work(self.now);
        }
        while let Some(event) = self.engine.poll_event() {
            if let Event::Ended(..) = event {
                self.ended_at = Some(self.now);
            }
            self.events.push(event);
        }
        has_come
    }

    fn count(&mut self) {
        self.turns += 1;
        assert!(self.turns < TURNS_MAX, "seed {}: the group does not come to an end", self.seed);
    }

    /// Everything that happens now.
    pub fn exchange(&mut self) {
        loop {
            self.write();
            let has_sent = self.send();
            if !self.deliver() && !has_sent {
                break;
            }
        }
    }

    fn next(&self) -> Option<Time> {
        let links = self.hearers.iter().flat_map(|hearer| {
            [hearer.down.next_deadline(), hearer.up.next_deadline()].into_iter().flatten()
        });
        let engines = self.hearers.iter().map(|hearer| hearer.engine.deadline());
        let times = links.chain(engines).chain([self.engine.deadline()]);
        times.min().filter(|at| *at != Time::NEVER)
    }

    /// Goes on to when something happens next, no later than `until`; false when nothing does.
    pub fn turn(&mut self, until: Time) -> bool {
        self.count();
        self.exchange();
        let Some(next) = self.next().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(next);
        self.engine.handle_time(self.now);
        for hearer in &mut self.hearers {
            hearer.engine.handle_time(self.now);
        }
        self.exchange();
        true
    }

    /// Lets so much time pass.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.turn(until) {}
        self.now = until;
    }

    /// Lets everything happen until nothing does any more.
    pub fn run(&mut self) {
        while self.turn(Time::NEVER) {}
    }

    /// How the association has ended.
    pub fn end(&self) -> Option<End> {
        self.events.iter().find_map(|event| match event {
            Event::Ended(_, end) => Some(*end),
            _ => None,
        })
    }

    /// Who has joined, in that order.
    pub fn joined(&self) -> Vec<Member> {
        let joined = self.events.iter().filter_map(|event| match event {
            Event::Joined(_, member) => Some(*member),
            _ => None,
        });
        joined.collect()
    }

    /// Who is no member any more, and why.
    pub fn left(&self) -> Vec<(Member, Leaving)> {
        let left = self.events.iter().filter_map(|event| match event {
            Event::Left(_, member, how) => Some((*member, *how)),
            _ => None,
        });
        left.collect()
    }

    /// Why this hearer is no member any more.
    pub fn left_as(&self, number: usize) -> Option<Leaving> {
        self.parting(number).map(|(_, how)| how)
    }

    /// What the transmitter has said of this hearer at last.
    pub fn parting(&self, number: usize) -> Option<(Member, Leaving)> {
        let is_it = |member: &Member| member.address == address(number + 1);
        self.left().into_iter().find(|(member, _)| is_it(member))
    }

    /// Whoever has joined has left, once, and has what the transmitter believes it has.
    pub fn check_sums(&self, hint: &str) {
        let (mut joined, mut left) = (self.joined(), self.left());
        joined.sort_by_key(|member| member.id);
        left.sort_by_key(|(member, _)| member.id);
        let ids = |list: &[Member]| list.iter().map(|member| member.id).collect::<Vec<_>>();
        let gone: Vec<Member> = left.iter().map(|(member, _)| *member).collect();
        assert_eq!(ids(&joined), ids(&gone), "{hint}");
        for (member, how) in left {
            if how == Leaving::Complete {
                assert_eq!(member.rseq, self.data.len() as u64, "{hint}");
            }
        }
    }

    /// Every byte that is there is the right one; returns how many are.
    pub fn check_bytes(&self, number: usize, start: usize, hint: &str) -> usize {
        let got = &self.hearers[number].got;
        assert!(start + got.len() <= self.data.len(), "{hint}: member {number}: too much");
        assert!(
            *got == self.data[start..start + got.len()],
            "{hint}: member {number}: other bytes"
        );
        got.len()
    }

    /// The packets of the transmitter.
    pub fn headers(&self) -> Vec<dacapo_xtp::wire::Header> {
        let own = self.sent.iter().filter(|(from, _)| *from == 0);
        own.map(|(_, bytes)| Frame::open(bytes).unwrap().header).collect()
    }
}

impl Hearer {
    fn work(&mut self, now: Time) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Incoming { id, .. } => self.id = Some(id),
                Event::Ended(_, end) => self.end = Some(end),
                _ => {}
            }
            self.events.push(event);
        }
        let Some(id) = self.id.filter(|_| !self.is_idle) else { return };
        let mut piece = [0; 4_096];
        while let Ok(read) = self.engine.read(now, id, &mut piece) {
            match read {
                Read::Data { len, .. } => self.got.extend_from_slice(&piece[..len]),
                Read::Hole { len } => panic!("a hole of {len} bytes"),
                Read::Nothing | Read::Finished => break,
            }
        }
    }
}
