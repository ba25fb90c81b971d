//! [`CoreConfig`]: what a core is told at its start, and the bounds that it keeps.

use crate::queues::Queues;
use dacapo_base::Address;
use dacapo_lift::{Catalogue, Meter};
use dacapo_path::ControllerEntry;
use dacapo_path::controllers::reserved;
use std::time::Duration;

/// The version of the protocol that this core speaks.
pub const VERSION: u16 = 1;

/// The most sessions at a time.
pub const SESSIONS_MAX: usize = 16_384;

/// The most peers at a time.
pub const PEERS_MAX: usize = 1_024;

/// How long a command waits for its answer.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How long contact may be lost before a session is given up, when its Creator does not say.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

/// How long the peer's application may take to answer an offer.
pub(crate) const APPLICATION_MAX: Duration = Duration::from_secs(60);

/// What a core is told at its start.
pub struct CoreConfig {
    /// The modules that exist here.
    pub catalogue: Catalogue,
    /// The memory budget for packets, in bytes.
    pub pool_bytes_max: usize,
    /// The host's boot, to tell whether two cores read one clock.
    pub boot: [u8; 16],
    /// The time namespace, for the same.
    pub time_namespace: u64,
    /// The oldest and newest protocol version to offer; tests skew them.
    pub versions: (u16, u16),
    /// How long its queues may grow.
    pub queues: Queues,
    /// What the time of modules is taken with; `None`: it is not taken.
    pub meter: Option<Meter>,
    /// What controls each path of datagrams to a peer.
    pub controllers: Controllers,
}

/// What controls paths of datagrams, by where they lead.
#[derive(Clone, Debug)]
pub struct Controllers {
    /// To this very host.
    pub here: ControllerEntry,
    /// To others.
    pub elsewhere: ControllerEntry,
}

impl Controllers {
    /// Of the path to there.
    #[must_use]
    pub fn of(&self, remote: &Address) -> &ControllerEntry {
        if remote.is_loopback() { &self.here } else { &self.elsewhere }
    }
}

/// One for all paths.
impl From<ControllerEntry> for Controllers {
    fn from(entry: ControllerEntry) -> Self {
        Self { here: entry.clone(), elsewhere: entry }
    }
}

impl CoreConfig {
    /// The usual configuration with these modules.
    #[must_use]
    pub fn new(catalogue: Catalogue) -> Self {
        Self {
            catalogue,
            pool_bytes_max: 256 << 20,
            boot: [0; 16],
            time_namespace: 0,
            versions: (VERSION, VERSION),
            queues: Queues::default(),
            meter: None,
            controllers: reserved::entry().into(),
        }
    }
}
