//! `Dice`: all randomness of a link, one generator per effect.
//!
//! ```text
//!   Random --fork--> loss       2 numbers per item     (step of the chain, loss)
//!          --fork--> duplicate  1
//!          --fork--> jitter     2                      (the item, its copy)
//!          --fork--> hold       4                      (whether, how long; twice)
//!          --fork--> corrupt    2
//!          --fork--> damage     one fork per item that is altered
//! ```
//!
//! Invariants: every item draws the same number from each of the first five generators, before
//! anything is decided, whatever the configuration says. The order of the forks is part of what a
//! seed means: a new effect is added at the end.

use crate::carry::Corruption;
use crate::config::LinkConfig;
use dacapo_base::Random;
use std::time::Duration;

/// The generators of one link.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    loss: Random,
    duplicate: Random,
    jitter: Random,
    hold: Random,
    corrupt: Random,
    damage: Random,
}

/// What chance says about one item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throw {
    pub(crate) loss: LossThrow,
    pub(crate) duplicate: bool,
    pub(crate) item: PassageThrow,
    pub(crate) copy: PassageThrow,
}

/// Two numbers in `[0, 1)` for the loss model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossThrow {
    pub(crate) step: f64,
    pub(crate) loss: f64,
}

/// What chance says about one passage: of the item or of its copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassageThrow {
    /// Propagation delay with jitter, without hold-back.
    pub(crate) delay: Duration,
    pub(crate) hold: Option<Duration>,
    pub(crate) corruption: Option<Corruption>,
}

impl Dice {
    pub(crate) fn new(mut random: Random) -> Self {
        Self {
            loss: random.fork(),
            duplicate: random.fork(),
            jitter: random.fork(),
            hold: random.fork(),
            corrupt: random.fork(),
            damage: random.fork(),
        }
    }

    /// Draws for one item.
    pub(crate) fn throw(&mut self, config: &LinkConfig) -> Throw {
        Throw {
            loss: LossThrow { step: self.loss.unit(), loss: self.loss.unit() },
            duplicate: self.duplicate.chance(config.duplicate),
            item: self.throw_passage(config),
            copy: self.throw_passage(config),
        }
    }

    /// A generator for altering one item: however much is drawn from it, the next one is the same.
    pub(crate) fn damage(&mut self) -> Random {
        self.damage.fork()
    }

    fn throw_passage(&mut self, config: &LinkConfig) -> PassageThrow {
        let delay = config.jitter_shape.delay(config.delay, config.jitter, self.jitter.unit());
        let held = self.hold.chance(config.reorder);
        let reorder_by_ns = u64::try_from(config.reorder_by.as_nanos()).unwrap_or(u64::MAX);
        // Above zero, so that a held item is one that can be seen to be held.
        let hold = Duration::from_nanos(self.hold.below(reorder_by_ns).saturating_add(1));
        let corruption = corruption(config, self.corrupt.unit());
        PassageThrow { delay, hold: held.then_some(hold), corruption }
    }
}

/// One number decides among both kinds, so that each has exactly its configured probability.
fn corruption(config: &LinkConfig, unit: f64) -> Option<Corruption> {
    if unit < config.corrupt {
        Some(Corruption::Detected)
    } else if unit < config.corrupt + config.corrupt_undetected {
        Some(Corruption::Undetected)
    } else {
        None
    }
}
