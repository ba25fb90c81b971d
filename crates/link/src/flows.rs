//! Flows through one link in virtual time, for tests: what each gets, how long it waits, and when
//! the link drops.
//!
//! ```text
//!   flow 0 --+                                        +--> acknowledged after its way back
//!   flow 1 --+--> Link: rate or trace, queue, aqm ----+
//! ```
//!
//! Every packet is acknowledged with its mark; one that three later ones have overtaken is lost.
//! Nothing is sent again. A flow sends when it may, and everybody is polled exactly when due.
//!
//! A flow answers by a law of a few lines, Reno's or DCTCP's. The controllers of the library share
//! a link in `crates/path/tests/bottleneck/world.rs`, because `path` is above this crate.

use crate::carry::{Carry, Corruption};
use crate::config::LinkConfig;
use crate::engine::Link;
use dacapo_base::Ecn;
use dacapo_base::{Random, Time, earlier};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The length of a packet, bytes.
pub(crate) const LEN: usize = 1_500;
/// After so many others one is lost.
const OVERTAKEN: u64 = 3;
/// After so long without an acknowledgement everything is.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A packet that can be marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) flow: usize,
    pub(crate) number: u64,
    pub(crate) len: usize,
    pub(crate) ecn: Ecn,
}

impl Carry for Packet {
    fn len(&self) -> usize {
        self.len
    }

    fn corrupt(&mut self, _: &mut Random, _: Corruption) {}

    fn duplicate(&self) -> Self {
        *self
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}

/// How a flow answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Control {
    /// Not at all: a packet so often.
    None { apart: Duration },
    /// One packet more in a round trip; half of the window at a loss or mark, once in one.
    Reno,
    /// One packet more in a round trip; half a packet less for each mark, as DCTCP's mean.
    Scalable,
}

/// One that sends.
#[derive(Debug)]
pub(crate) struct Flow {
    control: Control,
    ecn: Ecn,
    back: Duration,
    window: f64,
    is_starting: bool,
    /// Losses and marks of packets before this one were answered.
    answered: u64,
    next: u64,
    next_at: Time,
    heard: Time,
    unheard: VecDeque<u64>,
    pub(crate) delivered: u64,
    pub(crate) marked: u64,
    /// How long each packet was on its way.
    pub(crate) delays: Vec<Duration>,
}

impl Flow {
    /// One whose acknowledgements take so long.
    pub(crate) fn new(control: Control, ecn: Ecn, back: Duration) -> Self {
        Self {
            control,
            ecn,
            back,
            window: 4.0,
            is_starting: true,
            answered: 0,
            next: 0,
            next_at: Time::ZERO,
            heard: Time::ZERO,
            unheard: VecDeque::new(),
            delivered: 0,
            marked: 0,
            delays: Vec::new(),
        }
    }

    /// The delay that the share of all packets does not exceed.
    pub(crate) fn delay(&self, share: f64) -> Duration {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        delays[((delays.len() - 1) as f64 * share) as usize]
    }

    fn may_send(&self, now: Time) -> bool {
        match self.control {
            Control::None { .. } => self.next_at <= now,
            _ => (self.unheard.len() as f64) < self.window.floor(),
        }
    }

    fn packet(&mut self, now: Time, flow: usize) -> Packet {
        if let Control::None { apart } = self.control {
            self.next_at += apart;
        } else {
            if self.unheard.is_empty() {
                self.heard = now;
            }
            self.unheard.push_back(self.next);
        }
        self.next += 1;
        Packet { flow, number: self.next - 1, len: LEN, ecn: self.ecn }
    }

    fn acknowledged(&mut self, now: Time, packet: Packet) {
        self.heard = now;
        let mut is_lost = false;
        while let Some(&first) = self.unheard.front()
            && (first == packet.number || first + OVERTAKEN <= packet.number)
        {
            self.unheard.pop_front();
            is_lost |= first != packet.number;
        }
        if let Ok(at) = self.unheard.binary_search(&packet.number) {
            self.unheard.remove(at);
        }
        let is_marked = packet.ecn == Ecn::Ce;
        self.window += if self.is_starting { 1.0 } else { 1.0 / self.window };
        let is_new = packet.number >= self.answered;
        match self.control {
            Control::Scalable if is_marked && !is_lost => {
                self.is_starting = false;
                self.window = (self.window - 0.5).max(2.0);
            }
            _ if (is_lost || is_marked) && is_new => {
                self.is_starting = false;
                self.window = (self.window / 2.0).max(2.0);
                self.answered = self.next;
            }
            _ => {}
        }
    }

    fn due(&self) -> Option<Time> {
        match self.control {
            Control::None { .. } => Some(self.next_at),
            _ => (!self.unheard.is_empty()).then(|| self.heard + TIMEOUT),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        let is_late = self.due().is_some_and(|due| due <= now);
        if is_late && !matches!(self.control, Control::None { .. }) {
            self.unheard.clear();
            (self.window, self.answered) = ((self.window / 2.0).max(2.0), self.next);
        }
    }
}

/// A link with flows.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) link: Link<Packet>,
    pub(crate) flows: Vec<Flow>,
    acknowledgements: BTreeMap<(Time, u64), Packet>,
    serial: u64,
    /// When the queue management dropped one.
    pub(crate) drops: Vec<Time>,
}

impl World {
    pub(crate) fn new(link: &str, flows: Vec<Flow>) -> Self {
        let config: LinkConfig = link.parse().unwrap_or_else(|error| panic!("{link}: {error}"));
        let link = Link::new(config, Random::from_number(1)).unwrap();
        let (acknowledgements, drops) = (BTreeMap::new(), Vec::new());
        Self { now: Time::ZERO, link, flows, acknowledgements, serial: 0, drops }
    }

    /// Goes on for so long.
    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.send();
            self.note_drops();
            match self.next().filter(|at| *at <= until) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.deliver();
            self.note_drops();
            let now = self.now;
            self.flows.iter_mut().for_each(|flow| flow.handle_timeout(now));
        }
        self.now = until;
    }

    /// Goes on for so long, and forgets what was measured until then.
    pub(crate) fn warm_up(&mut self, time: Duration) {
        self.run(time);
        for flow in &mut self.flows {
            (flow.delivered, flow.marked) = (0, 0);
            flow.delays.clear();
        }
    }

    fn send(&mut self) {
        let now = self.now;
        for (at, flow) in self.flows.iter_mut().enumerate() {
            while flow.may_send(now) {
                let packet = flow.packet(now, at);
                let _ = self.link.handle_send(now, packet);
            }
        }
    }

    fn next(&self) -> Option<Time> {
        let acknowledged = self.acknowledgements.first_key_value().map(|((at, _), _)| *at);
        let wire = earlier(self.link.next_deadline(), acknowledged);
        self.flows.iter().fold(wire, |next, flow| earlier(next, flow.due()))
    }

    fn deliver(&mut self) {
        while let Some(came) = self.link.poll_deliver(self.now) {
            let flow = &mut self.flows[came.item.flow];
            flow.delivered += 1;
            flow.marked += u64::from(came.item.ecn == Ecn::Ce);
            flow.delays.push(came.delivered.since(came.sent));
            self.serial += 1;
            let at = self.now + flow.back;
            self.acknowledgements.insert((at, self.serial), came.item);
        }
        while let Some(first) = self.acknowledgements.first_entry()
            && first.key().0 <= self.now
        {
            let packet = first.remove();
            self.flows[packet.flow].acknowledged(self.now, packet);
        }
        assert!(self.link.closes(), "{:?}", self.link.stats());
    }

    fn note_drops(&mut self) {
        let count = self.link.stats().dropped_aqm as usize;
        self.drops.resize(count, self.now);
    }
}
