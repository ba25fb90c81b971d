//! [`Ends`]: both ends of a graph without a network, of which a part is timed.
//!
//! ```text
//!   sender    feed, run, timers     |<- down ->|
//!   between   some packets are lost
//!   receiver  run, answers                       |<- up ->|
//! ```

use dacapo_base::{Random, Time};
use dacapo_lift::{Context, Entry, Params, Runner, Setup};
use dacapo_packet::{Layout, Packet, Pool};
use std::time::{Duration, Instant};

/// The bytes of a packet.
pub const LEN: usize = 1_400;

/// The bytes of the path's own header.
const PATH_HEAD: usize = 5;

/// So many units are one round.
const UNITS_PER_ROUND: usize = 32;

/// How long apart rounds are: what is sent later than its unit leaves by then.
const BETWEEN: Duration = Duration::from_millis(200);

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The sender, until all has left.
    Down,
    /// The receiver, until all has gone up.
    Up,
    /// Both, and what they say back.
    Both,
}

/// What is lost on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nothing.
    Nothing,
    /// The first so many packets of each unit.
    First(usize),
    /// Each packet or train with this chance, in thousandths.
    Milli(u32),
}

/// Both ends, and what lies between them.
pub struct Ends {
    sender: Runner,
    receiver: Runner,
    pool: Pool,
    random: Random,
    now: Time,
    layout: Layout,
    /// Units of so many packets, which say this.
    packets: usize,
    says: Vec<u8>,
    /// What went up in the last round.
    pub came: u64,
}

/// A module and what its parameters are set to.
pub type Placed<'a> = (&'a Entry, &'a [(u16, u64)]);

impl Ends {
    /// Of these modules.
    pub fn new(modules: &[Placed<'_>], packets: usize, says: Vec<u8>) -> Self {
        let (head, tail) = (PATH_HEAD + 32, 8);
        let layout = Layout { head, tail, segment: LEN, segmented: true };
        let setup = Setup { layout, head_below: head, tail_below: tail, unit_len_max: 64 * LEN };
        let build = |(entry, set): &Placed<'_>| {
            let mut params = Params::new();
            set.iter().for_each(|(number, value)| params.set(*number, *value));
            (entry.build)(&params, &setup)
        };
        let runner = || Runner::new(modules.iter().map(build).collect());
        Self {
            sender: runner(),
            receiver: runner(),
            pool: Pool::new(256 << 20),
            random: Random::from_number(1),
            now: Time::from_millis(1),
            layout,
            packets,
            says,
            came: 0,
        }
    }

    /// Sends units, and what is to be sent besides; how long the part took for each, in ns.
    pub fn round(&mut self, part: Part, lost: Lost) -> f64 {
        self.came = 0;
        let mut taken = Duration::ZERO;
        let mut between = Vec::new();
        let units: Vec<Packet> = (0..UNITS_PER_ROUND).filter_map(|_| self.unit()).collect();
        for unit in units {
            let start = Instant::now();
            let sent = self.down(Some(unit));
            taken += start.elapsed() * u32::from(part != Part::Up);
            let sent = self.lose(sent, lost);
            match part {
                Part::Both => taken += self.there_and_back(sent),
                _ => between.extend(sent),
            }
        }
        self.now += BETWEEN;
        let start = Instant::now();
        let late = self.down(None);
        taken += start.elapsed() * u32::from(part != Part::Up);
        between.extend(late);
        let up = self.there_and_back(between);
        taken += up * u32::from(part != Part::Down);
        taken.as_nanos() as f64 / UNITS_PER_ROUND as f64
    }

    /// How many packets are sent in a round.
    pub fn sent_per_round(&self) -> u64 {
        (UNITS_PER_ROUND * self.packets) as u64
    }

    fn unit(&mut self) -> Option<Packet> {
        let len = self.packets * LEN;
        let mut unit = self.pool.alloc_train(&self.layout, len).ok()?;
        let says = self.says.get(..len).unwrap_or_default();
        self.pool.write_payload(&unit, 0, says);
        unit.set_unit_ends(true, true);
        Some(unit)
    }

    /// What leaves the sender when it gets this, or because it is time.
    fn down(&mut self, unit: Option<Packet>) -> Vec<Packet> {
        let mut around = Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
        match unit {
            Some(mut unit) => {
                unit.time = self.now;
                self.sender.feed(&mut around, unit);
                self.sender.run(&mut around);
            }
            None => {
                while self.sender.next_deadline().is_some_and(|at| at <= self.now) {
                    self.sender.handle_timeout(&mut around);
                }
            }
        }
        if self.sender.wants_room() {
            self.sender.handle_room(&mut around, usize::MAX);
        }
        self.sender.take_down().drain().collect()
    }

    fn lose(&mut self, sent: Vec<Packet>, lost: Lost) -> Vec<Packet> {
        let mut kept = Vec::with_capacity(sent.len());
        for mut packet in sent {
            match lost {
                Lost::First(count) if packet.segment_count() == self.packets => {
                    let first = self.pool.split_first(&mut packet, count);
                    first.into_iter().for_each(|first| self.pool.free(first));
                }
                Lost::Milli(milli) if self.random.below(1_000) < milli.into() => {
                    self.pool.free(packet);
                    continue;
                }
                _ => {}
            }
            kept.push(packet);
        }
        kept
    }

    /// Hands packets to the receiver, and what it says to the sender, until both are silent; how
    /// long that took.
    fn there_and_back(&mut self, sent: Vec<Packet>) -> Duration {
        let start = Instant::now();
        let mut there = sent;
        loop {
            let mut around =
                Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
            hand(there, &mut self.receiver, &mut around);
            for packet in self.receiver.take_up().drain() {
                self.came += packet.segment_count() as u64;
                around.pool.free(packet);
            }
            if self.receiver.next_deadline().is_some_and(|at| at <= self.now) {
                self.receiver.handle_timeout(&mut around);
            }
            let back: Vec<Packet> = self.receiver.take_down().drain().collect();
            hand(back, &mut self.sender, &mut around);
            there = self.down(None);
            if there.is_empty() {
                return start.elapsed();
            }
        }
    }
}

fn hand(packets: Vec<Packet>, to: &mut Runner, around: &mut Context<'_>) {
    for mut packet in packets {
        packet.time = around.now;
        to.handle_up(around, packet);
        to.run(around);
    }
}
