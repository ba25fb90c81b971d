//! The way between two hosts: a packet on it, and what becomes of packets there. Tests of those who
//! use XTP take it from here, too.

use dacapo_base::Random;
use dacapo_link::{Carry, Corruption, LinkConfig, Loss};
use std::time::Duration;

/// A packet on its way. What corrupts it is a burst of up to 15 bits, which the checksum of XTP
/// always sees; of three bits anywhere, which the emulator flips, it misses one in some hundred.
#[derive(Clone, Debug)]
pub struct OnItsWay(pub Vec<u8>);

impl Carry for OnItsWay {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn corrupt(&mut self, random: &mut Random, _kind: Corruption) {
        let first = random.below(self.0.len() as u64 * 8 - 15);
        let pattern = 1 | random.next_u64() & 0x7FFF;
        for place in (0..15).filter(|place| pattern >> place & 1 == 1) {
            let bit = first + place;
            self.0[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
        }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// Each seed another link: up to 30 % loss each way, copies, late ones, flipped bits.
pub fn link(random: &mut Random) -> LinkConfig {
    let delay = Duration::from_micros(100 + random.below(40_000));
    LinkConfig {
        delay,
        jitter: delay.min(Duration::from_micros(random.below(5_000))),
        keep_order: random.chance(0.5),
        loss: Loss::Random { p: random.unit() * 0.3 },
        duplicate: random.unit() * 0.1,
        reorder: random.unit() * 0.1,
        reorder_by: Duration::from_millis(1 + random.below(15)),
        corrupt_undetected: random.unit() * 0.02,
        ..LinkConfig::default()
    }
}
