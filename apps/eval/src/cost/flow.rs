//! Both ends of a graph in one process, without a network.

use dacapo_base::{Random, Time};
use dacapo_lift::{Context, Entry, Params, Runner, Setup, Unread};
use dacapo_packet::{Layout, Packet, Pool};
use std::time::{Duration, Instant};

/// The bytes of the path's own header.
const PATH_HEAD: usize = 5;

const TRAINS_PER_ROUND: usize = 32;

/// Both ends, and what lies between them.
pub struct Flow {
    sender: Runner,
    receiver: Runner,
    pool: Pool,
    random: Random,
    now: Time,
    layout: Layout,
    /// What units say one after the other, where that matters; else whatever lies there.
    says: Vec<u8>,
    said: usize,
}

impl Flow {
    /// Of these modules, for packets of so many bytes of payload.
    pub fn new(entries: &[Entry], packet_len: usize, says: Vec<u8>) -> Self {
        // Room for every module of any graph, so that memory is the same with and without.
        let (head, tail) = (PATH_HEAD + 32, 8);
        let layout = Layout { head, tail, segment: packet_len, segmented: true };
        let setup =
            Setup { layout, head_below: head, tail_below: tail, unit_len_max: 64 * packet_len };
        let build = || {
            let modules = entries.iter().map(|entry| (entry.build)(&Params::new(), &setup));
            Runner::new(modules.collect())
        };
        Self {
            sender: build(),
            receiver: build(),
            pool: Pool::new(256 << 20),
            random: Random::from_number(1),
            now: Time::from_millis(1),
            layout,
            says,
            said: 0,
        }
    }

    /// Sends units of so many packets, then what is to be sent again; how long each took, in ps.
    pub fn round(&mut self, packets: usize) -> f64 {
        let start = Instant::now();
        (0..TRAINS_PER_ROUND).for_each(|_| self.send(packets));
        self.now += Duration::from_millis(20);
        self.fire();
        start.elapsed().as_nanos() as f64 * 1e3 / TRAINS_PER_ROUND as f64
    }

    fn send(&mut self, packets: usize) {
        let len = packets * self.layout.segment;
        let Ok(mut packet) = self.pool.alloc_train(&self.layout, len) else { return };
        self.say(&packet, len);
        packet.set_unit_ends(true, true);
        packet.time = self.now;
        let mut around = Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
        self.sender.feed(&mut around, packet);
        self.sender.run(&mut around);
        self.carry();
    }

    /// Writes what a unit of so many bytes says.
    fn say(&mut self, packet: &Packet, len: usize) {
        let end = self.said + len;
        let (from, to) = if end <= self.says.len() { (self.said, end) } else { (0, len) };
        self.said = to;
        self.pool.write_payload(packet, 0, self.says.get(from..to).unwrap_or_default());
    }

    fn fire(&mut self) {
        let is_due = |end: &Runner, now| end.next_deadline().is_some_and(|at| at <= now);
        while is_due(&self.sender, self.now) || is_due(&self.receiver, self.now) {
            let mut around =
                Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
            self.sender.handle_timeout(&mut around);
            self.receiver.handle_timeout(&mut around);
            self.carry();
        }
    }

    /// Hands what the sender made to the receiver, as it lies, and what that says back.
    fn carry(&mut self) {
        let mut around = Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
        for end in [&mut self.sender, &mut self.receiver] {
            if end.wants_room() {
                end.handle_room(&mut around, usize::MAX);
            }
            if end.wants_unread() {
                end.handle_unread(&mut around, Unread::default());
            }
        }
        let sent: Vec<Packet> = self.sender.take_down().drain().collect();
        let (now, pool, random) = (self.now, &mut self.pool, &mut self.random);
        let mut around = Context { now, pool, random };
        hand(sent, &mut self.receiver, &mut around);
        let came: Vec<Packet> = self.receiver.take_up().drain().collect();
        came.into_iter().for_each(|packet| around.pool.free(packet));
        let said: Vec<Packet> = self.receiver.take_down().drain().collect();
        hand(said, &mut self.sender, &mut around);
    }
}

fn hand(packets: Vec<Packet>, to: &mut Runner, around: &mut Context<'_>) {
    for mut packet in packets {
        packet.time = around.now;
        to.handle_up(around, packet);
        to.run(around);
    }
}
