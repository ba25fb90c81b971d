//! Two engines with a link each way, in virtual time.

use super::way::OnItsWay;
use dacapo_base::{Random, Time};
use dacapo_link::{Link, LinkConfig};
use dacapo_xtp::{Config, ContextId, End, Engine, Event, Message, Read};
use std::net::SocketAddr;

/// The most turns of a test, so that one that does not end fails.
const TURNS_MAX: u64 = 1_000_000;

/// The addresses of the ends, below XTP.
pub fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + end as u8], 4_040))
}

/// Two engines and what lies between them.
pub struct World {
    pub now: Time,
    pub ends: [Engine; 2],
    links: [Link<OnItsWay>; 2],
    /// Every packet that was sent, by its sender, for the judge.
    pub sent: Vec<(usize, Vec<u8>)>,
    pub events: [Vec<Event>; 2],
    /// The packet that is lost, counted from 0, whatever the link does.
    pub lose: Option<usize>,
    /// From this packet on everything is lost.
    pub cut: Option<usize>,
    turns: u64,
    seed: u64,
    buffer: Vec<u8>,
}

impl World {
    pub fn new(seed: u64, config: Config, link: &LinkConfig) -> Self {
        Self::of(seed, [config; 2], link)
    }

    /// The same, with a configuration for each end.
    pub fn of(seed: u64, configs: [Config; 2], link: &LinkConfig) -> Self {
        let mut random = Random::from_number(seed);
        let ends = configs.map(|config| Engine::new(config, random.fork()));
        let mut link = || Link::new(link.clone(), random.fork()).unwrap();
        Self {
            now: Time::from_millis(1),
            ends,
            links: [link(), link()],
            sent: Vec::new(),
            events: [Vec::new(), Vec::new()],
            lose: None,
            cut: None,
            turns: 0,
            seed,
            buffer: Vec::new(),
        }
    }

    /// Sends what the ends have to send, and delivers what is due, until nothing is left to do now.
    pub fn exchange(&mut self) {
        while self.pass() {}
    }

    /// One way and back; false when nothing came.
    fn pass(&mut self) -> bool {
        let mut has_come = false;
        for end in 0..2 {
            self.buffer.clear();
            while self.ends[end].poll_packet(self.now, &mut self.buffer).is_some() {
                self.turns += 1;
                self.check_end();
                let packet = std::mem::take(&mut self.buffer);
                self.sent.push((end, packet.clone()));
                let number = self.sent.len() - 1;
                if self.lose == Some(number) || self.cut.is_some_and(|first| number >= first) {
                    continue;
                }
                let _fate = self.links[end].handle_send(self.now, OnItsWay(packet));
            }
        }
        for end in 0..2 {
            while let Some(delivery) = self.links[end].poll_deliver(self.now) {
                has_come = true;
                self.ends[1 - end].handle_packet(self.now, address(end), &delivery.item.0);
            }
            while let Some(event) = self.ends[end].poll_event() {
                self.events[end].push(event);
            }
        }
        has_come
    }

    /// When something happens next; `None` when nothing does.
    pub fn next(&self) -> Option<Time> {
        let links = self.links.iter().filter_map(Link::next_deadline);
        let ends = self.ends.iter().map(Engine::deadline);
        links.chain(ends).min().filter(|at| *at != Time::NEVER)
    }

    /// Goes on to when something happens next, no later than `until`; false when nothing does.
    pub fn turn(&mut self, until: Time) -> bool {
        self.turns += 1;
        self.check_end();
        self.exchange();
        let Some(next) = self.next().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(next);
        for end in &mut self.ends {
            end.handle_time(self.now);
        }
        self.exchange();
        true
    }

    fn check_end(&self) {
        assert!(self.turns < TURNS_MAX, "seed {}: the ends do not come to an end", self.seed);
    }

    /// Lets everything happen up to `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.turn(until) {}
        self.now = self.now.max(until);
    }

    /// Lets everything happen until nothing does any more; users work whenever something came.
    pub fn run(&mut self, mut work: impl FnMut(&mut Self)) {
        loop {
            self.exchange();
            let sent = self.sent.len();
            work(self);
            self.exchange();
            if self.sent.len() == sent && !self.turn(Time::NEVER) {
                break;
            }
        }
    }

    /// Everything that one end has to read: bytes, and where messages end.
    pub fn read_all(&mut self, end: usize, id: ContextId, into: &mut Vec<u8>) -> Vec<usize> {
        self.read_tagged(end, id, into).0
    }

    /// The same, and which tag came with the byte at which place.
    pub fn read_tagged(
        &mut self,
        end: usize,
        id: ContextId,
        into: &mut Vec<u8>,
    ) -> (Vec<usize>, Vec<(usize, [u8; 8])>) {
        let (mut ends, mut tags, mut piece) = (Vec::new(), Vec::new(), [0; 4_096]);
        loop {
            match self.ends[end].read(self.now, id, &mut piece).unwrap() {
                Read::Data { len, is_end, tag } => {
                    tags.extend(tag.map(|tag| (into.len(), tag)));
                    into.extend_from_slice(&piece[..len]);
                    if is_end {
                        ends.push(into.len());
                    }
                }
                Read::Hole { len } => panic!("a hole of {len} bytes"),
                Read::Nothing | Read::Finished => return (ends, tags),
            }
        }
    }

    /// The context that the other end has opened here.
    pub fn incoming(&self, end: usize) -> Option<ContextId> {
        self.events[end].iter().find_map(|event| match event {
            Event::Incoming { id, .. } => Some(*id),
            _ => None,
        })
    }

    /// How a context has ended.
    pub fn ended(&self, end: usize, id: ContextId) -> Option<End> {
        self.events[end].iter().find_map(|event| match event {
            Event::Ended(of, how) if *of == id => Some(*how),
            _ => None,
        })
    }
}

/// What one end sends and has received.
pub struct Side {
    pub id: Option<ContextId>,
    data: Vec<u8>,
    ends: Vec<usize>,
    written: usize,
    is_finished: bool,
    got: Vec<u8>,
    got_ends: Vec<usize>,
    got_tags: Vec<(usize, [u8; 8])>,
}

/// Every third message has a tag, which says where it begins.
fn tag_of(number: usize, begins: usize) -> Option<[u8; 8]> {
    number.is_multiple_of(3).then(|| (begins as u64).to_be_bytes())
}

impl Side {
    /// Will send `len` random bytes, in messages of up to `message_max` bytes.
    pub fn new(random: &mut Random, len: usize, message_max: u64) -> Self {
        let mut data = vec![0; len];
        random.fill(&mut data);
        let (mut ends, mut at) = (Vec::new(), 0);
        while at < len {
            at = len.min(at + 1 + random.below(message_max) as usize);
            ends.push(at);
        }
        let (got, got_ends, got_tags) = (Vec::new(), Vec::new(), Vec::new());
        Self { id: None, data, ends, written: 0, is_finished: false, got, got_ends, got_tags }
    }

    /// Writes what there is room for, and reads what is there.
    pub fn work(&mut self, world: &mut World, end: usize) {
        let Some(id) = self.id.or_else(|| world.incoming(end)) else { return };
        self.id = Some(id);
        while self.written < self.data.len() {
            let number = self.ends.partition_point(|end| *end <= self.written);
            let next = self.ends[number];
            let tag = tag_of(number, self.written);
            let message = Message { tag, ..Message::whole(&self.data[self.written..next]) };
            match world.ends[end].write(world.now, id, &message) {
                Ok(0) | Err(_) => break,
                Ok(taken) => self.written += taken,
            }
        }
        if self.written == self.data.len() && !self.is_finished {
            world.ends[end].finish(world.now, id).unwrap();
            self.is_finished = true;
        }
        let (ends, tags) = world.read_tagged(end, id, &mut self.got);
        self.got_ends.extend(ends);
        self.got_tags.extend(tags);
    }

    /// What was sent by `from` is here, byte by byte, with the same messages and tags.
    pub fn has_all_of(&self, from: &Self) -> bool {
        let begins = |number: usize| number.checked_sub(1).map_or(0, |before| from.ends[before]);
        let tagged = |number| tag_of(number, begins(number)).map(|tag| (begins(number), tag));
        let tags: Vec<(usize, [u8; 8])> = (0..from.ends.len()).filter_map(tagged).collect();
        self.got == from.data && self.got_ends == from.ends && self.got_tags == tags
    }

    /// How much is here, of how much.
    pub fn progress(&self, from: &Self) -> String {
        format!("{} of {} bytes, {} messages", self.got.len(), from.data.len(), self.got_ends.len())
    }
}
