//! [`Phase`]: what the controller is doing, and what that means for pace and window.

use super::losses::Count;
use dacapo_base::Time;

/// What it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    /// Half of what is under way, until then, once there is no more in flight.
    ProbeRtt(Option<Time>),
}

impl Phase {
    /// How fast to send, in hundredths of what the path delivers.
    pub fn pacing_gain(self) -> u64 {
        match self {
            Self::Startup => 277,
            Self::Drain | Self::ProbeRtt(_) => 50,
            Self::Down => 90,
            Self::Cruise | Self::Refill => 100,
            Self::Up => 125,
        }
    }

    /// How large the window may grow, in hundredths of what is under way at that speed.
    pub fn window_gain(self) -> u64 {
        if self == Self::Up { 225 } else { 200 }
    }

    /// Whether it keeps away from what was too much.
    pub fn is_careful(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::ProbeRtt(_))
    }
}

/// How long a phase goes on, in rounds, and what came and was lost in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stage {
    pub rounds: u64,
    pub count: Count,
}

/// It cruises 2 to this power as many rounds at most, where asking for more is for nothing.
const FUTILE_MAX: u32 = 2;

/// When it asks for more again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    /// Then at the latest.
    pub at: Time,
    /// How often in a row that lost too much: it is asked less often then.
    pub futile: u32,
}

impl Asking {
    /// More was asked for, and that was too much.
    pub fn was_futile(&mut self) {
        self.futile = (self.futile + 1).min(FUTILE_MAX);
    }
}
