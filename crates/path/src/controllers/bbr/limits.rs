//! What is not gone beyond: [`Full`] ends the startup, [`Held`] keeps to what was left by others,
//! [`Bound`] is what was too much in flight.

use super::rounds::Round;

/// How many rounds without a quarter more end the startup, where nothing else does.
pub(super) const FULL_ROUNDS: u32 = 3;

/// Of what was too much is left free, in hundredths.
const HEADROOM: u64 = 15;

/// What is left after a loss, in tenths (RFC 9438, section 4.6, has it so, too).
const LEFT_TENTHS: u64 = 7;

/// So much after a loss.
pub(super) fn left(before: u64) -> u64 {
    before / 10 * LEFT_TENTHS
}

/// Whether the path delivers no more, however much is sent: the fastest of a round, and for how
/// many rounds none was faster.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Full {
    rate: u64,
    rounds: u32,
}

impl Full {
    /// A round is over; in it too much was lost for the path, or not. Where the application had no
    /// more, the path may deliver more; but not where it queues and loses what little that was.
    pub fn look(&mut self, round: &Round, is_too_much: bool) {
        if round.is_app_limited {
            self.rounds = if is_too_much { FULL_ROUNDS } else { self.rounds };
            return;
        }
        if round.rate >= self.rate / 4 * 5 {
            (self.rate, self.rounds) = (round.rate, 0);
        } else {
            self.rounds = if is_too_much { FULL_ROUNDS } else { self.rounds + 1 };
        }
    }

    pub fn is_full(&self) -> bool {
        self.rounds >= FULL_ROUNDS
    }
}

/// What is kept to since too much was lost without asking for more, until that is asked again: a
/// rate in bytes per second, and bytes in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub rate: u64,
    pub flight: u64,
}

impl Held {
    pub const NOTHING: Self = Self { rate: u64::MAX, flight: u64::MAX };
}

/// More bytes in flight than this were too much; and by how many packets that grows in the next
/// round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub max: u64,
    step: u64,
}

impl Bound {
    pub const NOTHING: Self = Self { max: u64::MAX, step: 1 };

    /// It is looked for more: by one packet first.
    pub fn begin(&mut self) {
        self.step = 1;
    }

    /// More than before was not too much.
    pub fn allow_more(&mut self, mss: u64) {
        if self.max < u64::MAX {
            self.max = self.max.saturating_add(self.step * mss);
            self.step = (self.step * 2).min(1 << 20);
        }
    }

    /// With room for others.
    pub fn with_headroom(&self) -> u64 {
        self.max.saturating_sub(self.max / 100 * HEADROOM)
    }
}
