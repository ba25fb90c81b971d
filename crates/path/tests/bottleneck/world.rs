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
//!
//! A path that is probed asks through the same link, and the receiver, whose clock is another one,
//! answers with what has come of it, and with which marks. One of media is only probed: no module
//! says what became of its packets.

use dacapo_base::{Ecn, Random, Time, earlier};
use dacapo_link::{Carry, Corruption, Link, LinkConfig};
use dacapo_path::{Answer, Came, ControllerEntry, Path, PathSeen, Sent};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub const PACKET_LEN: usize = 1_400;

/// After so many others one is lost.
const OVERTAKEN: u64 = 3;

/// A question, with the headers below it.
const QUESTION_LEN: usize = 96;

/// How far the receiver's clock is ahead in the beginning.
const AHEAD_NS: u64 = 7_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Datagram {
    flow: usize,
    number: u64,
    sent: Time,
    ecn: Ecn,
    is_question: bool,
}

impl Carry for Datagram {
    fn len(&self) -> usize {
        if self.is_question { QUESTION_LEN } else { PACKET_LEN }
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn corrupt(&mut self, _: &mut Random, _: Corruption) {}

    fn duplicate(&self) -> Self {
        *self
    }
}

/// What comes back.
#[derive(Clone, Copy, Debug)]
enum Back {
    Acknowledged { number: u64 },
    Answered(Answer),
}

/// How it is heard what became of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Reports,
    Both,
    Counts,
}

pub struct Flow {
    pub path: Path,
    by: By,
    /// At the receiver: what has come, and by how much its clock is too fast.
    came: Came,
    pub drift_ppm: i64,
    /// How long packets were on their way there, in the span that is measured.
    pub trips: Vec<Duration>,
    /// From the receiver back.
    pub back: Duration,
    begins: Time,
    /// How far frames are apart at least, where the application has no more, and how many packets
    /// one has.
    apart: Duration,
    frame: u64,
    next_at: Time,
    /// The packets of the newest frame that have not left, and since when it is there.
    left: u64,
    ready_at: Time,
    next: u64,
    unheard: VecDeque<(u64, Time)>,
    pub sent: u64,
    pub delivered: u64,
    /// The longest round trip lately.
    pub rtt_max: Duration,
}

impl Flow {
    /// A packet leaves, if one may.
    fn send(&mut self, now: Time, at: usize, link: &mut Link<Datagram>) -> bool {
        // Nothing leaves for a path that is not open.
        let is_open = self.path.prober().is_none_or(|it| it.rtt().smoothed().is_some());
        if !is_open || now < self.begins {
            return false;
        }
        if self.left == 0 && now < self.next_at {
            return false;
        } else if self.left == 0 {
            (self.left, self.ready_at, self.next_at) = (self.frame, now, now + self.apart);
        }
        let is_acknowledged = self.by != By::Counts;
        if self.path.allowance(now, is_acknowledged) == 0 {
            self.path.await_room(is_acknowledged);
            return false;
        }
        let (bytes, ecn) = (PACKET_LEN as u64, self.path.ecn(is_acknowledged));
        let is_ecn_capable = ecn != Ecn::NotEct;
        let datagram_len = PACKET_LEN;
        let sent = Sent { datagram_len, packets: 1, bytes, is_acknowledged, is_ecn_capable };
        self.path.handle_sent(now, &sent);
        if is_acknowledged {
            self.unheard.push_back((self.next, now));
        }
        let number = self.next;
        // A frame's packets are waited for since it is there.
        let since = if self.frame > 1 { self.ready_at } else { now };
        let datagram = Datagram { flow: at, number, sent: since, ecn, is_question: false };
        let _ = link.handle_send(now, datagram);
        self.left -= 1;
        self.sent += 1;
        self.next += 1;
        true
    }

    fn ask(&mut self, now: Time, at: usize, link: &mut Link<Datagram>) {
        while self.by != By::Reports
            && now >= self.begins
            && let Some(question) = self.path.poll_question(now)
        {
            let (number, ecn) = (question.number, question.ecn);
            let datagram = Datagram { flow: at, number, sent: now, ecn, is_question: true };
            let _ = link.handle_send(now, datagram);
        }
    }

    /// Something has come at the receiver: what it says to that.
    fn came(&mut self, now: Time, item: &Datagram) -> Option<Back> {
        let number = item.number;
        if item.is_question {
            let drift = now.as_nanos() as i128 * i128::from(self.drift_ppm) / 1_000_000;
            let at = (i128::from(now.as_nanos() + AHEAD_NS) + drift) as u64;
            let came = Some(self.came);
            return Some(Back::Answered(Answer { number, received: at, answered: at, came }));
        }
        self.came.packets = self.came.packets.wrapping_add(1);
        self.came.marked += u32::from(item.ecn == Ecn::Ce);
        self.trips.push(now.since(item.sent));
        self.delivered += 1;
        (self.by != By::Counts).then_some(Back::Acknowledged { number })
    }

    fn heard(&mut self, now: Time, back: &Back) {
        match back {
            Back::Acknowledged { number } => self.acknowledged(now, *number),
            Back::Answered(answer) => drop(self.path.handle_answer(now, answer)),
        }
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
        while let Some((_, left)) =
            self.unheard.pop_front_if(|(known, _)| *known + OVERTAKEN <= number)
        {
            (seen.lost_packets, seen.lost_sent_at) = (seen.lost_packets + 1, Some(left));
        }
        self.path.handle_seen(now, &seen);
    }

    fn due(&self, now: Time) -> Option<Time> {
        let application = [self.begins, self.next_at].into_iter().filter(|at| *at > now).max();
        let prober = self.path.prober().filter(|_| now >= self.begins);
        let asks = prober.map(|it| it.next_deadline(now));
        earlier(earlier(application, asks), self.path.due(now))
    }
}

pub struct World {
    pub now: Time,
    link: Link<Datagram>,
    pub flows: Vec<Flow>,
    backs: BTreeMap<(Time, u64), (usize, Back)>,
    serial: u64,
}

impl World {
    pub fn new(link: &str) -> Self {
        let config: LinkConfig = link.parse().expect("the test's link is valid");
        let link = Link::new(config, Random::from_number(1)).expect("the same");
        let (flows, backs) = (Vec::new(), BTreeMap::new());
        Self { now: Time::ZERO, link, flows, backs, serial: 0 }
    }

    /// A path that begins then, to which this long is the way back.
    pub fn add(&mut self, entry: &ControllerEntry, begins: Time, back: Duration) {
        self.add_heard(entry, begins, back, By::Reports);
    }

    /// The same, and it is probed.
    pub fn add_probed(&mut self, entry: &ControllerEntry, begins: Time, back: Duration) {
        self.add_heard(entry, begins, back, By::Both);
    }

    /// One of media, of whose packets no module says what became of them: it is only probed.
    pub fn add_media(&mut self, entry: &ControllerEntry, begins: Time, back: Duration) {
        self.add_heard(entry, begins, back, By::Counts);
    }

    fn add_heard(&mut self, entry: &ControllerEntry, begins: Time, back: Duration, by: By) {
        let mut path = Path::new(begins, entry);
        if by != By::Reports {
            path.probe(begins, false);
        }
        self.flows.push(Flow {
            path,
            by,
            came: Came { packets: 0, marked: 0 },
            drift_ppm: 0,
            trips: Vec::new(),
            back,
            begins,
            apart: Duration::ZERO,
            frame: 1,
            left: 0,
            ready_at: Time::ZERO,
            next_at: Time::ZERO,
            next: 0,
            unheard: VecDeque::new(),
            sent: 0,
            delivered: 0,
            rtt_max: Duration::ZERO,
        });
    }

    /// The application of a path has a packet so often, and no more.
    pub fn slow_down(&mut self, flow: usize, apart: Duration) {
        self.flows[flow].apart = apart;
    }

    /// The application of a path has a frame of so many packets so often, and no more.
    pub fn play(&mut self, flow: usize, frame: u64, apart: Duration) {
        (self.flows[flow].frame, self.flows[flow].apart) = (frame, apart);
    }

    /// The application of a path has nothing for so long.
    pub fn pause(&mut self, flow: usize, time: Duration) {
        self.flows[flow].next_at = self.now + time;
    }

    /// How long it takes until the application of a path has something again, when all that it had
    /// has left.
    pub fn rests(&self, flow: usize) -> Option<Duration> {
        let flow = &self.flows[flow];
        (flow.left == 0).then(|| flow.next_at.since(self.now))
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
            for (at, flow) in self.flows.iter_mut().enumerate() {
                flow.path.handle_timeout(now);
                let _ = flow.path.poll_room(now);
                flow.ask(now, at, &mut self.link);
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
        let back = self.backs.first_key_value().map(|((at, _), _)| *at);
        let wire = earlier(self.link.next_deadline(), back);
        self.flows.iter().fold(wire, |next, flow| earlier(next, flow.due(self.now)))
    }

    fn deliver(&mut self) {
        while let Some(came) = self.link.poll_deliver(self.now) {
            self.serial += 1;
            let flow = &mut self.flows[came.item.flow];
            if let Some(back) = flow.came(self.now, &came.item) {
                let at = (self.now + flow.back, self.serial);
                self.backs.insert(at, (came.item.flow, back));
            }
        }
        while let Some(first) = self.backs.first_entry().filter(|it| it.key().0 <= self.now) {
            let (flow, back) = first.remove();
            self.flows[flow].heard(self.now, &back);
        }
    }

    /// How many bit/s each gets in so much time, and the share of all packets that was lost in it.
    pub fn measure(&mut self, time: Duration) -> (Vec<f64>, f64) {
        let before: Vec<(u64, u64)> =
            self.flows.iter().map(|flow| (flow.delivered, flow.sent)).collect();
        let dropped = self.link.stats().dropped();
        self.flows.iter_mut().for_each(|flow| flow.trips.clear());
        self.run(time);
        let rate = |packets: u64| (packets * PACKET_LEN as u64 * 8) as f64 / time.as_secs_f64();
        let each = self.flows.iter().zip(&before);
        let rates = each.clone().map(|(flow, (came, _))| rate(flow.delivered - came)).collect();
        let lost = self.link.stats().dropped() - dropped;
        let sent: u64 = each.map(|(flow, (_, sent))| flow.sent - sent).sum();
        (rates, lost as f64 / sent.max(1) as f64)
    }

    /// How long packets of a flow waited in what was measured last: of so large a share not longer,
    /// where a trip through an empty link takes `trip`.
    pub fn waited(&self, flow: usize, share: f64, trip: Duration) -> Duration {
        let mut trips = self.flows[flow].trips.clone();
        trips.sort_unstable();
        let at = (trips.len().saturating_sub(1) as f64 * share) as usize;
        trips.get(at).map_or(Duration::MAX, |it| it.saturating_sub(trip))
    }
}

/// How even shares are: 1 where all have as much (Jain, Chiu and Hawe 1984).
pub fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(a, b), it| (a + it, b + it * it));
    sum * sum / (rates.len() as f64 * squares)
}
