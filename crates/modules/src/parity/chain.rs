//! [`Chain`]: how many packets of a block are lost, where losses come in runs: the chain of
//! `turns.rs`, gone through packet by packet.
//!
//! ```text
//!   lost      0 ---> 0 ---> 0 ---> 0       after each packet, how likely it is that so many are
//!               \--> 1 ---> 1 ---> 1       lost, and the last one is, or is not
//!                      \--> 2 ---> 2
//! ```

use super::turns::Turns;
use dacapo_lift::PPB;
use dacapo_wire::parity::PACKETS_MAX;

/// The share of packets, in ppb and rounded up, that stays lost of blocks of so many sources and
/// parities: those of blocks that lose more packets than they have parities.
pub(super) fn left(loss_ppb: u64, burst_milli: u64, sources: u64, parities: u64) -> u64 {
    let mut chain = Chain::new(loss_ppb, burst_milli, parities);
    chain.pass(sources.saturating_add(parities));
    chain.left_ppb(parities)
}

/// The bound of the parameter.
const PARITIES_MAX: usize = 128;

/// How many of the packets so far are lost.
pub(super) struct Chain {
    loss_ppb: u64,
    loss: f64,
    /// The chances that a run of losses begins with the next packet, and that it ends.
    begins: f64,
    ends: f64,
    packets: u64,
    /// Of more than so many losses it is not known how likely they are.
    most: usize,
    /// The chances that so many are lost, and the last one is not, or is.
    good: [f64; PARITIES_MAX + 1],
    bad: [f64; PARITIES_MAX + 1],
}

impl Chain {
    /// Before the first packet.
    pub fn new(loss_ppb: u64, burst_milli: u64, most: u64) -> Self {
        let loss_ppb = loss_ppb.min(PPB);
        let Turns { loss, begins, ends } = Turns::of(loss_ppb, burst_milli);
        let most = usize::try_from(most).unwrap_or(PARITIES_MAX).clamp(1, PARITIES_MAX);
        let none = [0.0; PARITIES_MAX + 1];
        Self { loss_ppb, loss, begins, ends, packets: 0, most, good: none, bad: none }
    }

    /// Goes on until there are so many packets.
    pub fn pass(&mut self, packets: u64) {
        if self.packets == 0 && packets > 0 {
            (self.good[0], self.bad[1], self.packets) = (1.0 - self.loss, self.loss, 1);
        }
        while self.packets < packets.min(PACKETS_MAX as u64) {
            self.step();
        }
    }

    fn step(&mut self) {
        let (begins, ends) = (self.begins, self.ends);
        // No more are lost than there are packets.
        let end = (self.packets as usize + 1).min(self.most);
        for lost in (1..=end).rev() {
            let (good, bad) = (self.good[lost], self.bad[lost]);
            self.bad[lost] = self.good[lost - 1] * begins + self.bad[lost - 1] * (1.0 - ends);
            self.good[lost] = good * (1.0 - begins) + bad * ends;
        }
        // Of none that are lost the last is not.
        self.good[0] *= 1.0 - begins;
        self.packets += 1;
    }

    /// What stays lost of these packets, in ppb and rounded up, when a block of which no more than
    /// that are lost is made good.
    pub fn left_ppb(&self, parities: u64) -> u64 {
        if self.loss_ppb == 0 || self.loss_ppb == PPB || parities == 0 {
            return self.loss_ppb;
        }
        let count = usize::try_from(parities).unwrap_or(PARITIES_MAX).min(self.most) + 1;
        let chances = self.good.iter().zip(&self.bad).take(count).map(|(good, bad)| good + bad);
        let made_good: f64 = chances.enumerate().map(|(lost, chance)| lost as f64 * chance).sum();
        let left = (self.loss - made_good / self.packets.max(1) as f64) * PPB as f64;
        // What is so near a whole number is a difference that was rounded; and only nothing gives
        // nothing.
        ((left - 0.001).ceil() as u64).clamp(1, self.loss_ppb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_losses_are_those_of_a_binomial() {
        // 4 sources and 1 parity at 10 %: a packet stays lost when another of 4 is lost, too.
        let others = 1.0 - 0.9_f64.powi(4);
        let expected = (0.1 * others * 1e9).ceil() as u64;
        assert!(left(PPB / 10, 1_000, 4, 1).abs_diff(expected) <= 1);
        assert_eq!(left(PPB / 10, 1_000, 4, 0), PPB / 10);
        assert_eq!((left(0, 3_000, 4, 1), left(PPB, 3_000, 4, 1)), (0, PPB));
    }

    #[test]
    fn runs_take_more_than_single_losses_do() {
        let of_runs = |burst| left(5_000_000, burst, 20, 3);
        assert!(of_runs(1_000) < of_runs(2_000) && of_runs(2_000) < of_runs(5_000));
        let of_parities = |parities| left(5_000_000, 3_000, 20, parities);
        assert!((1..20).all(|parities| of_parities(parities) > of_parities(parities + 1)));
    }

    #[test]
    fn as_much_stays_lost_as_when_a_chain_is_drawn() {
        let mut random = dacapo_base::Random::from_number(5);
        let (sources, parities, blocks) = (12, 3, 200_000);
        let (loss, burst) = (0.03, 2.5);
        let (ends, mut is_lost, mut stay) = (1.0 / burst, false, 0_u64);
        let begins = loss * ends / (1.0 - loss);
        for _ in 0..blocks {
            let mut lost = 0;
            for _ in 0..sources + parities {
                is_lost ^= random.chance(if is_lost { ends } else { begins });
                lost += u64::from(is_lost);
            }
            stay += if lost > parities { lost } else { 0 };
        }
        let drawn = stay as f64 / (blocks * (sources + parities)) as f64;
        let predicted = left(30_000_000, 2_500, sources, parities) as f64 / 1e9;
        assert!((drawn / predicted - 1.0).abs() < 0.05, "{drawn} drawn, {predicted} predicted");
    }
}
