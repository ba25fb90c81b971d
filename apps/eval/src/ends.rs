//! [`Ends`]: both ends of a graph in one process without a network, of which a part is timed.
//!
//! ```text
//!   sender    feed, run, timers     |<- down ->|
//!   between   some packets are lost
//!   receiver  run, answers                       |<- up ->|
//! ```
//!
//! Units go down and up one by one, as a flow moves them, so that each lies where the last one did.

use dacapo_base::{Random, Time};
use dacapo_lift::{Context, Entry, Params, Runner, Setup, Unread};
use dacapo_packet::{Layout, Packet, Pool};
use std::time::{Duration, Instant};

/// The bytes of the path's own header.
const PATH_HEAD: usize = 5;

/// So many units are one round.
const UNITS_PER_ROUND: usize = 32;

/// How long apart rounds are: what is to be said or sent again leaves by then.
const BETWEEN: Duration = Duration::from_millis(20);

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The sender, until all has left; there is no receiver, so memory is used again at once.
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

/// What is sent.
#[derive(Clone, Debug)]
pub struct Units {
    /// So many packets each.
    pub packets: usize,
    /// Of so many bytes of payload.
    pub len: usize,
    /// What they say one after the other, where that matters; else whatever lies there.
    pub says: Vec<u8>,
    /// How much later what is sent besides them leaves, before they are handed over.
    pub late: Duration,
}

/// A module and what its parameters are set to.
pub type Placed<'a> = (&'a Entry, &'a [(u16, u64)]);

/// Both ends, and what lies between them.
pub struct Ends {
    sender: Runner,
    receiver: Runner,
    pool: Pool,
    random: Random,
    now: Time,
    layout: Layout,
    units: Units,
    said: usize,
    /// Lists that are used again: what goes there, and what comes back.
    there: Vec<Packet>,
    back: Vec<Packet>,
    /// How many packets went up in the last round.
    pub came: usize,
}

impl Ends {
    /// Of these modules, for these units.
    pub fn new(modules: &[Placed<'_>], units: Units) -> Self {
        // Room for every module of any graph, so that memory is the same with and without.
        let (head, tail) = (PATH_HEAD + 32, 8);
        let layout = Layout { head, tail, segment: units.len, segmented: true };
        let setup =
            Setup { layout, head_below: head, tail_below: tail, unit_len_max: 64 * units.len };
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
            units,
            said: 0,
            there: Vec::new(),
            back: Vec::new(),
            came: 0,
        }
    }

    /// How many packets are sent in a round.
    pub fn sent_per_round(&self) -> usize {
        UNITS_PER_ROUND * self.units.packets
    }

    /// Sends units, and what is to be sent besides; how long the part took for each, in ns.
    pub fn round(&mut self, part: Part, lost: Lost) -> f64 {
        self.came = 0;
        let mut taken = Duration::ZERO;
        for _ in 0..UNITS_PER_ROUND {
            let unit = self.unit();
            taken += self.carry(part, lost, unit);
        }
        self.now += BETWEEN;
        taken += self.carry(part, lost, None);
        taken.as_nanos() as f64 / UNITS_PER_ROUND as f64
    }

    fn unit(&mut self) -> Option<Packet> {
        let len = self.units.packets * self.units.len;
        let mut unit = self.pool.alloc_train(&self.layout, len).ok()?;
        let end = self.said + len;
        let (from, to) = if end <= self.units.says.len() { (self.said, end) } else { (0, len) };
        self.said = to;
        self.pool.write_payload(&unit, 0, self.units.says.get(from..to).unwrap_or_default());
        unit.set_unit_ends(true, true);
        Some(unit)
    }

    /// Takes a unit to the receiver, or what is due; how long the part took.
    fn carry(&mut self, part: Part, lost: Lost, unit: Option<Packet>) -> Duration {
        let start = Instant::now();
        self.down(unit);
        if !self.units.late.is_zero() {
            self.now += self.units.late;
            self.down(None);
        }
        let down = start.elapsed();
        if part == Part::Down {
            self.there.drain(..).for_each(|packet| self.pool.free(packet));
            return down;
        }
        self.lose(lost);
        let start = Instant::now();
        self.there_and_back();
        match part {
            Part::Both => down + start.elapsed(),
            Part::Down | Part::Up => start.elapsed(),
        }
    }

    /// The sender gets this, or does what is due.
    fn down(&mut self, unit: Option<Packet>) {
        let mut around = Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
        if let Some(mut unit) = unit {
            unit.time = self.now;
            self.sender.feed(&mut around, unit);
            self.sender.run(&mut around);
        }
        turn(&mut self.sender, &mut around, &mut self.there);
    }

    fn lose(&mut self, lost: Lost) {
        let (pool, random, sent) = (&mut self.pool, &mut self.random, &mut self.there);
        match lost {
            Lost::Nothing => {}
            Lost::First(count) => {
                let units = sent.iter_mut().filter(|it| it.segment_count() == self.units.packets);
                let first: Vec<Packet> =
                    units.filter_map(|unit| pool.split_first(unit, count)).collect();
                first.into_iter().for_each(|packet| pool.free(packet));
            }
            Lost::Milli(milli) => {
                let is_lost = |_: &mut Packet| random.below(1_000) < milli.into();
                sent.extract_if(.., is_lost).for_each(|packet| pool.free(packet));
            }
        }
    }

    /// Hands packets to the receiver, as they lie, and what it says to the sender, until both are
    /// silent.
    fn there_and_back(&mut self) {
        let mut around = Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
        loop {
            hand(&mut self.there, &mut self.receiver, &mut around);
            turn(&mut self.receiver, &mut around, &mut self.back);
            for packet in self.receiver.take_up().drain() {
                self.came += packet.segment_count();
                around.pool.free(packet);
            }
            hand(&mut self.back, &mut self.sender, &mut around);
            turn(&mut self.sender, &mut around, &mut self.there);
            if self.there.is_empty() {
                return;
            }
        }
    }
}

/// Does what is due at an end, and lists what leaves it.
fn turn(end: &mut Runner, around: &mut Context<'_>, leaves: &mut Vec<Packet>) {
    while end.next_deadline().is_some_and(|at| at <= around.now) {
        end.handle_timeout(around);
    }
    if end.wants_room() {
        end.handle_room(around, usize::MAX);
    }
    if end.wants_unread() {
        end.handle_unread(around, Unread::default());
    }
    leaves.extend(end.take_down().drain());
}

fn hand(packets: &mut Vec<Packet>, to: &mut Runner, around: &mut Context<'_>) {
    for mut packet in packets.drain(..) {
        packet.time = around.now;
        to.handle_up(around, packet);
        to.run(around);
    }
}
