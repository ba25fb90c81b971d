//! What each module costs: per train, per packet, per byte, both ends together.
//!
//! The figures that the profiles of this crate call default, taken by difference: the same units
//! through the same graph with the module and without it, in turns. Units go down and up one by
//! one, as a flow moves them. A line is fitted to trains of 1, 8 and 45 packets of 100 and 1,400
//! bytes, so that each deviates by its share and none weighs more than another.
//!
//! Of each graph the fast rounds count (the tenth part from below): what other programs take away
//! is no cost.
//!
//! Repeat it, and take the medians.
//!
//! ```text
//!   with       unit -> segment > sequence > X -> train -> X > sequence > segment -> unit
//!   without    unit -> segment > sequence     -> train ->     sequence > segment -> unit
//! ```
//!
//! `cargo run --release -p dacapo-modules --example cost`

use dacapo_base::{Random, Time};
use dacapo_lift::{Context, Entry, Params, Runner, Setup};
use dacapo_modules::{integrity::checksum, ordering::sequence, redundancy::repeat, segmentation};
use dacapo_packet::{Layout, Packet, Pool};
use std::time::{Duration, Instant};

/// The bytes of the path's own header.
const PATH_HEAD: usize = 5;
/// Packets per train, bytes per packet.
const SHAPES: [(usize, usize); 6] =
    [(1, 100), (8, 100), (45, 100), (1, 1_400), (8, 1_400), (45, 1_400)];
const ROUNDS: usize = 2_001;
const TRAINS_PER_ROUND: usize = 32;

/// What is measured: a module, and the graph that it is taken out of.
struct Trial {
    name: &'static str,
    with: Vec<Entry>,
    without: Vec<Entry>,
}

fn trials() -> [Trial; 4] {
    let (segment, sequence) = (segmentation::segment::ENTRY, sequence::ENTRY);
    let (repeat, checksum) = (repeat::ENTRY, checksum::ENTRY);
    let whole = vec![segment, sequence, checksum];
    [
        Trial { name: "segment", with: whole.clone(), without: vec![sequence, checksum] },
        Trial { name: "sequence", with: whole.clone(), without: vec![segment, checksum] },
        Trial { name: "checksum", with: whole, without: vec![segment, sequence] },
        // What stands below is paid for by `Profile::copies`; what drops the copies stands above.
        Trial {
            name: "repeat",
            with: vec![segment, sequence, repeat],
            without: vec![segment, sequence],
        },
    ]
}

/// Both ends of a graph.
struct Flow {
    sender: Runner,
    receiver: Runner,
    pool: Pool,
    random: Random,
    now: Time,
    layout: Layout,
}

impl Flow {
    fn new(entries: &[Entry], packet_len: usize) -> Self {
        // Room for every module of any graph, so that memory is the same with and without.
        let (head, tail) = (PATH_HEAD + 16, 8);
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
        }
    }

    /// Sends `TRAINS_PER_ROUND` units of so many packets, then what is to be sent again; how long
    /// each took, in ps.
    fn round(&mut self, packets: usize) -> f64 {
        let start = Instant::now();
        (0..TRAINS_PER_ROUND).for_each(|_| self.send(packets));
        self.now += Duration::from_millis(20);
        self.fire();
        start.elapsed().as_nanos() as f64 * 1e3 / TRAINS_PER_ROUND as f64
    }

    fn send(&mut self, packets: usize) {
        let len = packets * self.layout.segment;
        let Ok(mut packet) = self.pool.alloc_train(&self.layout, len) else { return };
        packet.set_unit_ends(true, true);
        packet.time = self.now;
        let mut around = Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
        self.sender.feed(&mut around, packet);
        self.sender.run(&mut around);
        self.carry();
    }

    fn fire(&mut self) {
        while self.sender.next_deadline().is_some_and(|at| at <= self.now) {
            let mut around =
                Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
            self.sender.handle_timeout(&mut around);
            self.carry();
        }
    }

    /// Hands what the sender made to the receiver, as it lies.
    fn carry(&mut self) {
        let packets: Vec<Packet> = self.sender.take_down().drain().collect();
        for mut packet in packets {
            packet.time = self.now;
            let mut around =
                Context { now: self.now, pool: &mut self.pool, random: &mut self.random };
            self.receiver.handle_up(&mut around, packet);
            self.receiver.run(&mut around);
        }
        let came: Vec<Packet> = self.receiver.take_up().drain().collect();
        came.into_iter().for_each(|packet| self.pool.free(packet));
    }
}

/// What one train of this shape costs, in ps.
fn measure(trial: &Trial, (packets, len): (usize, usize)) -> f64 {
    let mut flows = [Flow::new(&trial.with, len), Flow::new(&trial.without, len)];
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (flow, rounds) in flows.iter_mut().zip(&mut rounds) {
            rounds.push(flow.round(packets));
        }
    }
    let [with, without] = rounds.map(undisturbed);
    with - without
}

/// The tenth part from below.
fn undisturbed(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 10).copied().unwrap_or(0.0)
}

/// The rows of the system: what one train of each shape has of trains, packets and bytes.
fn counts((packets, len): (usize, usize)) -> [f64; 3] {
    [1.0, packets as f64, (packets * len) as f64]
}

/// The costs that deviate least from what was measured, as shares of it; none below zero.
fn fit(measured: &[f64; 6]) -> [f64; 3] {
    // Each cost that would be negative is left out in turn: of all choices the best.
    let candidates = (1..8).map(|mask| solve(measured, mask)).filter(|it| it.iter().all(is_cost));
    let best = candidates.min_by(|a, b| error(a, measured).total_cmp(&error(b, measured)));
    best.unwrap_or([0.0; 3])
}

fn is_cost(value: &f64) -> bool {
    *value >= 0.0 && value.is_finite()
}

fn predicted(costs: &[f64; 3], shape: (usize, usize)) -> f64 {
    counts(shape).iter().zip(costs).map(|(count, cost)| count * cost).sum()
}

fn error(costs: &[f64; 3], measured: &[f64; 6]) -> f64 {
    let share = |(shape, is): (&(usize, usize), &f64)| {
        ((predicted(costs, *shape) - is) / is.abs().max(1_000.0)).powi(2)
    };
    SHAPES.iter().zip(measured).map(share).sum()
}

/// Weighted least squares over the costs in `mask`, by Gaussian elimination; the others are 0.
fn solve(measured: &[f64; 6], mask: u8) -> [f64; 3] {
    let mut system = [[0.0; 4]; 3];
    for (shape, is) in SHAPES.iter().zip(measured) {
        let weight = is.abs().max(1_000.0).powi(-2);
        let row = counts(*shape);
        for i in 0..3 {
            for j in 0..3 {
                system[i][j] += weight * row[i] * row[j];
            }
            system[i][3] += weight * row[i] * is;
        }
    }
    for i in (0..3).filter(|i| mask & (1 << i) == 0) {
        system[i] = [0.0; 4];
        system.iter_mut().for_each(|row| row[i] = 0.0);
        system[i][i] = 1.0;
    }
    eliminate(system)
}

fn eliminate(mut system: [[f64; 4]; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        let row = system[pivot].map(|value| value / system[pivot][pivot]);
        system[pivot] = row;
        for other in (0..3).filter(|other| *other != pivot) {
            let factor = system[other][pivot];
            for (value, by) in system[other].iter_mut().zip(row) {
                *value -= factor * by;
            }
        }
    }
    [system[0][3], system[1][3], system[2][3]]
}

fn main() {
    println!("per train, both ends, in ns: measured (fitted)\n");
    print!("{:10}", "");
    SHAPES.iter().for_each(|(packets, len)| print!("{:>18}", format!("{packets} x {len} B")));
    println!();
    let mut costs = Vec::new();
    for trial in trials() {
        let measured = SHAPES.map(|shape| measure(&trial, shape));
        let fitted = fit(&measured);
        print!("{:10}", trial.name);
        for (shape, is) in SHAPES.iter().zip(measured) {
            let line = predicted(&fitted, *shape) / 1e3;
            print!("{:>18}", format!("{:.0} ({line:.0})", is / 1e3));
        }
        println!();
        costs.push((trial.name, fitted));
    }
    println!("\n{:10}{:>14}{:>14}{:>14}", "in ps", "per train", "per packet", "per byte");
    for (name, [train, packet, byte]) in costs {
        let [train_ps, packet_ps, byte_ps] = [train, packet, byte].map(|cost| cost.round() as u64);

        println!("{name:10}{train_ps:>14}{packet_ps:>14}{byte_ps:>14}");
    }
}
