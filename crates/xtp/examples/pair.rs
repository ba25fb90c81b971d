//! One stream from an engine to another in memory: what an engine costs by itself, counted by
//! instruction (`valgrind --tool=callgrind`) and timed roughly.
//!
//! ```text
//!   write -> Engine -> packets -> Engine -> read        window and packets as over UDP
//! ```
//!
//! `cargo run --release -p dacapo-xtp --example pair -- [MEGABYTES] [check|nocheck]`

#![allow(clippy::unwrap_used, reason = "what fails here ends the example")]

use dacapo_base::{Random, Time};
use dacapo_xtp::{Config, ContextId, Engine, Event, Listen, Message, Mode, Open, Read};
use std::net::SocketAddr;
use std::time::Instant;

/// What is written, and read, at a time; packets go over in trains of as much.
const PIECE: usize = 64 << 10;

fn address(end: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, end], 4_040))
}

struct Pair {
    ends: [Engine; 2],
    packets: u64,
    train: Vec<u8>,
    lens: Vec<usize>,
}

impl Pair {
    /// A train from one end to the other; false when there was nothing.
    fn carry(&mut self, from: usize) -> bool {
        self.train.clear();
        self.lens.clear();
        while self.train.len() < PIECE {
            let start = self.train.len();
            if self.ends[from].poll_packet(Time::ZERO, &mut self.train).is_none() {
                break;
            }
            self.lens.push(self.train.len() - start);
        }
        let mut rest = &self.train[..];
        for len in &self.lens {
            let (packet, behind) = rest.split_at(*len);
            self.ends[1 - from].handle_packet(Time::ZERO, address(from as u8), packet);
            rest = behind;
        }
        self.packets += self.lens.len() as u64;
        !self.lens.is_empty()
    }

    fn incoming(&mut self) -> Option<ContextId> {
        std::iter::from_fn(|| self.ends[1].poll_event()).find_map(|event| match event {
            Event::Incoming { id, .. } => Some(id),
            _ => None,
        })
    }
}

fn main() {
    let word = |at| std::env::args().nth(at);
    let total = word(1).map_or(100, |text| text.parse::<usize>().unwrap()) << 20;
    let without_check = word(2).is_some_and(|word| word == "nocheck");
    let config = Config { buffer_len: 1 << 20, ..Config::default() };
    let ends = [1, 2].map(|seed| Engine::new(config, Random::from_number(seed)));
    let mut pair = Pair { ends, packets: 0, train: Vec::new(), lens: Vec::new() };
    pair.ends[1].listen(Listen::on(7)).unwrap();
    let ends = (([192, 0, 2, 1], 7).into(), address(0));
    let mode = Mode { without_check, ..Mode::default() };
    let open = Open { mode, ..Open::stream(address(1), ends.0, ends.1) };
    let near = pair.ends[0].open(Time::ZERO, &open).unwrap();
    while pair.carry(0) || pair.carry(1) {}
    let far = pair.incoming().unwrap();
    let (piece, mut into) = (vec![7; PIECE], vec![0; PIECE]);
    let (start, mut got) = (Instant::now(), 0);
    while got < total {
        pair.ends[0].write(Time::ZERO, near, &Message::part(&piece)).unwrap();
        pair.carry(0);
        while let Read::Data { len, .. } = pair.ends[1].read(Time::ZERO, far, &mut into).unwrap() {
            got += len;
        }
        pair.carry(1);
    }
    let nanos = start.elapsed().as_secs_f64() * 1e9 / pair.packets as f64;
    println!("{} packets, {nanos:.0} ns each at both ends together", pair.packets);
}
