//! Carries packets through modules that touch a header, so often and no more: what is counted by
//! instruction (`valgrind --tool=callgrind`), and timed roughly.
//!
//! ```text
//!   alloc -> feed -> [touch] x M -> take_down -> free        batches of B
//! ```
//!
//! `cargo run --release -p dacapo-lift --example touch -- [PACKETS] [MODULES] [BATCH]`

use dacapo_base::{Random, Time};
use dacapo_lift::{Context, Module, Runner, TOUCHED, Touch};
use dacapo_packet::Pool;
use std::time::Instant;

fn main() {
    let number = |at: usize, default: usize| {
        std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (packets, modules, batch) = (number(1, 100_000), number(2, 10), number(3, 32).max(1));
    let stages = (0..modules).map(|_| Box::new(Touch::default()) as Box<dyn Module>);
    let mut runner = Runner::new(stages.collect());
    let (mut pool, mut random) = (Pool::new(64 << 20), Random::from_number(1));
    let start = Instant::now();
    let mut left = packets;
    while left > 0 {
        let count = batch.min(left);
        left -= count;
        for _ in 0..count {
            let Ok(packet) = pool.alloc(TOUCHED * modules, 64, 0) else { return };
            let mut around = Context { now: Time::ZERO, pool: &mut pool, random: &mut random };
            runner.feed(&mut around, packet);
        }
        let mut around = Context { now: Time::ZERO, pool: &mut pool, random: &mut random };
        runner.run(&mut around);
        for packet in runner.take_down().drain() {
            pool.free(packet);
        }
    }
    let ns = start.elapsed().as_nanos() as f64 / packets as f64;
    println!("{packets} packets, {modules} modules, batches of {batch}: {ns:.2} ns per packet");
}
