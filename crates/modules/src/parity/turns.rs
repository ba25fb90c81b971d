//! [`Turns`]: the chances that a run of losses begins, and that it ends.
//!
//! ```text
//!              begins
//!        good ------> bad        a packet in state bad is lost; a chain of two states whose
//!             <------            runs have no memory (Gilbert 1960)
//!               ends
//! ```
//!
//! Chances are binary fractions, added and multiplied in an order that is fixed, which gives the
//! same bits on every machine.

use dacapo_lift::PPB;

#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// The share of packets that is lost.
    pub loss: f64,
    /// The chances that a run of losses begins with the next packet, and that it ends.
    pub begins: f64,
    pub ends: f64,
}

impl Turns {
    /// Those of packets that follow each other. Losses that do not depend on each other make runs,
    /// too: none is shorter on average.
    pub fn of(loss_ppb: u64, burst_milli: u64) -> Self {
        let loss = loss_ppb.min(PPB) as f64 / PPB as f64;
        let ends = (1_000.0 / burst_milli.max(1_000) as f64).min(1.0 - loss);
        let begins = if loss_ppb < PPB { loss * ends / (1.0 - loss) } else { 1.0 };
        Self { loss, begins, ends }
    }

    /// Those of packets of which each is so many behind the one before it.
    pub fn every(self, packets: u64) -> Self {
        let forgot = 1.0 - power((1.0 - self.begins - self.ends).max(0.0), packets);
        Self { begins: self.loss * forgot, ends: (1.0 - self.loss) * forgot, ..self }
    }

    /// Those of a packet that shares the fate of the one before it but for so many cases.
    pub fn but_for(self, alone: f64) -> Self {
        Self { begins: self.begins * alone, ends: self.ends * alone, ..self }
    }
}

fn power(base: f64, mut count: u64) -> f64 {
    let (mut power, mut square) = (1.0, base);
    while count > 0 {
        if count % 2 == 1 {
            power *= square;
        }
        square *= square;
        count /= 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_are_far_apart_do_not_depend_on_each_other() {
        let turns = Turns::of(PPB / 100, 4_000);
        assert_eq!(turns.ends, 0.25);
        let far = turns.every(1_000);
        assert!((far.begins - 0.01).abs() < 1e-9 && (far.ends - 0.99).abs() < 1e-9);
        let next = turns.every(1);
        assert!((next.begins - turns.begins).abs() < 1e-12);
        assert!((next.ends - turns.ends).abs() < 1e-12);
        let twice = turns.every(2);
        let again = turns.ends * (1.0 - turns.begins) + (1.0 - turns.ends) * turns.ends;
        assert!((twice.ends - again).abs() < 1e-12);
        assert_eq!(Turns::of(PPB, 1_000).loss, 1.0);
    }
}
