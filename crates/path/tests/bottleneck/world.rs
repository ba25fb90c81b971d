//! Paths to one receiver through one bottleneck, in virtual time: what each gets, and what is lost.
//!
//! ```text
//!   path 0 --+                                    +--> acknowledged after its way back
//!   path 1 --+--> Link: queue, rate, delay -------+
//!   path 2 --+                                    +--> ...
//! ```
//!
//! Each sends whenever its path lets it. Every packet is acknowledged; one that three others have
//! overtaken is lost. Nothing is sent again: what matters here is how much leaves, and when.

use dacapo_base::{Random, Time, earlier};
use dacapo_link::{Carry, Corruption, Link, LinkConfig};
use dacapo_path::{ControllerEntry, Path, PathSeen, Sent};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub const PACKET_LEN: usize = 1_400;

/// After so many others one is lost.
const OVERTAKEN: u64 = 3;

#[derive(Clone, Copy, Debug)]
struct Datagram {
    flow: usize,
    number: u64,
}

impl Carry for Datagram {
    fn len(&self) -> usize {
        PACKET_LEN
    }

    fn corrupt(&mut self, _: &mut Random, _: Corruption) {}

    fn duplicate(&self) -> Self {
        *self
    }
}

pub struct Flow {
    pub path: Path,
    /// From the receiver back.
    back: Duration,
    begins: Time,
    /// How far packets are apart at least, where the application has no more.
    apart: Duration,
    next_at: Time,
    next: u64,
    unheard: VecDeque<(u64, Time)>,
    pub delivered: u64,
    pub lost: u64,
    /// The longest round trip lately.
    pub rtt_max: Duration,
}

impl Flow {
    /// A packet leaves, if one may.
    fn send(&mut self, now: Time, at: usize, link: &mut Link<Datagram>) -> bool {
        if now < self.begins || now < self.next_at {
            return false;
        }
        if self.path.allowance(now, true) == 0 {
            self.path.await_room(true);
            return false;
        }
        let bytes = PACKET_LEN as u64;
        let sent = Sent {
            datagram_len: PACKET_LEN,
            packets: 1,
            bytes,
            is_acknowledged: true,
            ..Sent::default()
        };
        self.path.handle_sent(now, &sent);
        self.unheard.push_back((self.next, now));
        let _ = link.handle_send(now, Datagram { flow: at, number: self.next });
        self.next += 1;
        self.next_at = now + self.apart;
        true
    }

    fn acknowledged(&mut self, now: Time, number: u64) {
        let Ok(at) = self.unheard.binary_search_by_key(&number, |(known, _)| *known) else {
            return;
        };
        let Some((_, sent)) = self.unheard.remove(at) else { return };
        let rtt = now.since(sent);
        let mut seen = PathSeen {
            delivered_packets: 1,
            delivered_bytes: PACKET_LEN as u64,
            sent_at: Some(sent),
            rtt: Some(rtt),
            ..PathSeen::default()
        };
        self.rtt_max = self.rtt_max.max(rtt);
        self.delivered += 1;
        while let Some((_, left)) =
            self.unheard.pop_front_if(|(known, _)| *known + OVERTAKEN <= number)
        {
            (seen.lost_packets, seen.lost_sent_at) = (seen.lost_packets + 1, Some(left));
        }
        self.lost += seen.lost_packets;
        self.path.handle_seen(now, &seen);
    }

    fn due(&self, now: Time) -> Option<Time> {
        let application = [self.begins, self.next_at].into_iter().filter(|at| *at > now).max();
        earlier(application, self.path.due(now))
    }
}

pub struct World {
    pub now: Time,
    link: Link<Datagram>,
    pub flows: Vec<Flow>,
    acknowledgements: BTreeMap<(Time, u64), Datagram>,
    serial: u64,
}

impl World {
    pub fn new(link: &str) -> Self {
        let config: LinkConfig = link.parse().expect("the test's link is valid");
        let link = Link::new(config, Random::from_number(1)).expect("the same");
        let (flows, acknowledgements) = (Vec::new(), BTreeMap::new());
        Self { now: Time::ZERO, link, flows, acknowledgements, serial: 0 }
    }

    /// A path that begins then, to which this long is the way back.
    pub fn add(&mut self, entry: &ControllerEntry, begins: Time, back: Duration) {
        self.flows.push(Flow {
            path: Path::new(begins, entry),
            back,
            begins,
            apart: Duration::ZERO,
            next_at: Time::ZERO,
            next: 0,
            unheard: VecDeque::new(),
            delivered: 0,
            lost: 0,
            rtt_max: Duration::ZERO,
        });
    }

    /// The application of a path has a packet so often, and no more.
    pub fn slow_down(&mut self, flow: usize, apart: Duration) {
        self.flows[flow].apart = apart;
    }

    /// The link is like this from now on.
    pub fn set_link(&mut self, link: &str) {
        let config: LinkConfig = link.parse().expect("the test's link is valid");
        self.link.set_config(self.now, config).expect("the same");
    }

    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            while self.send_in_turn() {}
            match self.next().filter(|at| *at <= until) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.deliver();
            let now = self.now;
            for flow in &mut self.flows {
                flow.path.handle_timeout(now);
                let _ = flow.path.poll_room(now);
            }
        }
        self.now = until;
    }

    fn send_in_turn(&mut self) -> bool {
        let (now, link) = (self.now, &mut self.link);
        let flows = self.flows.iter_mut().enumerate();
        flows.fold(false, |sent, (at, flow)| flow.send(now, at, link) || sent)
    }

    fn next(&self) -> Option<Time> {
        let acknowledged = self.acknowledgements.first_key_value().map(|((at, _), _)| *at);
        let wire = earlier(self.link.next_deadline(), acknowledged);
        self.flows.iter().fold(wire, |next, flow| earlier(next, flow.due(self.now)))
    }

    fn deliver(&mut self) {
        while let Some(came) = self.link.poll_deliver(self.now) {
            self.serial += 1;
            let at = self.now + self.flows[came.item.flow].back;
            self.acknowledgements.insert((at, self.serial), came.item);
        }
        while let Some(first) =
            self.acknowledgements.first_entry().filter(|first| first.key().0 <= self.now)
        {
            let Datagram { flow, number } = first.remove();
            self.flows[flow].acknowledged(self.now, number);
        }
    }

    /// How many bit/s each gets in so much time, and the share of all packets that was lost in it.
    pub fn measure(&mut self, time: Duration) -> (Vec<f64>, f64) {
        let before: Vec<(u64, u64)> =
            self.flows.iter().map(|flow| (flow.delivered, flow.lost)).collect();
        self.run(time);
        let rate = |packets: u64| (packets * PACKET_LEN as u64 * 8) as f64 / time.as_secs_f64();
        let each = self.flows.iter().zip(&before);
        let rates = each.clone().map(|(flow, (came, _))| rate(flow.delivered - came)).collect();
        let lost: u64 = each.clone().map(|(flow, (_, lost))| flow.lost - lost).sum();
        let came: u64 = each.map(|(flow, (came, _))| flow.delivered - came).sum();
        (rates, lost as f64 / (lost + came).max(1) as f64)
    }
}

/// How even shares are: 1 where all have as much (Jain, Chiu and Hawe 1984).
pub fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(a, b), it| (a + it, b + it * it));
    sum * sum / (rates.len() as f64 * squares)
}
