//! [`Peer`]: another core, its control connection and the data path to it.
//!
//! The state that lives as long as the connection of a pair of hosts; [`Peers`] holds all.
//!
//! ```text
//!   dialed   Dialing --connected--> Greeting --WELCOME--> Open
//!   came in                         Greeting --HELLO----> Open
//!   Open: the dialer probes the data path with the listener's token; the listener learns from the
//!   first probe where the dialer's data port is, and probes back.
//! ```

mod dialing;
mod set;

pub use dialing::DialParams;
pub(crate) use dialing::Dialing;
pub(crate) use set::Peers;

use crate::control::ConnId;
use crate::engine::Local;
use crate::flow::PathTimes;
use crate::ready_set::Idle;
use crate::session::table::{HubRole, HubState};
use dacapo_base::Time;
use dacapo_packet::Packet;
use dacapo_path::Prober;
use dacapo_wire::probe::Probe;
use quinn_proto::StreamId;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::time::Duration;

/// After something was said on the control connection it is asked for so many acknowledgements,
/// this often: enough for what was lost three times in a row.
const HURRY_ACKS: u8 = 8;
pub(crate) const HURRY_EVERY: Duration = Duration::from_millis(150);

/// Another core, as long as there is a connection to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub(crate) u64);

/// The token of a connection: it names path probes and tags them, and is never sent with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProbeKey {
    token: [u8; 16],
}

impl ProbeKey {
    pub fn new(token: [u8; 16]) -> Self {
        Self { token }
    }

    pub fn token(self) -> [u8; 16] {
        self.token
    }

    /// What names the connection in clear.
    pub fn connection(self) -> u64 {
        self.hash(b"connection", &[])
    }

    /// The tag of a probe.
    pub fn tag(self, probe: &Probe) -> u64 {
        self.hash(b"probe", &probe.covered())
    }

    fn hash(self, what: &[u8], bytes: &[u8]) -> u64 {
        let digest = Sha256::new()
            .chain_update(self.token)
            .chain_update(what)
            .chain_update(bytes)
            .finalize();
        digest.iter().take(8).fold(0, |word, &byte| (word << 8) | u64::from(byte))
    }
}

pub(crate) struct Peer {
    pub remote: SocketAddr,
    /// Where it has come in; `None` for one that was dialed.
    pub local: Option<Local>,
    pub role: HubRole,
    pub hub_state: HubState,
    /// The connection in use; `None` while dialing.
    pub conn: Option<ConnId>,
    pub hub: Option<StreamId>,
    /// Connections that are being tried.
    pub attempts: Vec<ConnId>,
    /// When the next attempt begins.
    pub next_attempt: Time,
    /// When the greeting must be over.
    pub deadline: Option<Time>,
    /// What probes of this connection are named and tagged with.
    pub key: ProbeKey,
    /// Where the peer's data port is, once known.
    pub data_remote: Option<SocketAddr>,
    /// Where the dialer's newest question came from, and the first of our own that was asked there:
    /// its data port when one of those is answered from there.
    pub candidate: Option<(SocketAddr, u64)>,
    pub prober: Option<Prober>,
    /// The longest datagrams of which the flows were told.
    pub told_len: Option<usize>,
    /// The peer reads the same monotonic clock.
    pub one_clock: bool,
    /// The transports of one host by which the peer was found, by number.
    pub near: Vec<u16>,
    /// What [`crate::control::Control::heard`] said last.
    pub heard: u64,
    /// When that changed last.
    pub heard_at: Time,
    /// When QUIC is asked for a sign of life next, while our probes are not answered or none is
    /// asked.
    pub ping_at: Time,
    /// The highest number of a question that the peer has asked.
    pub asked_max: Option<u64>,
    /// Listings that are waited for.
    pub lists: Vec<(Time, u32)>,
    /// What refusals are worth while it is dialed.
    pub dialing: Dialing,
    /// Why the last attempt failed, for the report.
    pub last_failure: String,
    /// Which start of its program the peer said it is.
    pub instance: [u8; 16],
    /// Since when contact is lost and flows wait for it.
    pub suspended: Option<Time>,
    /// Contact came back, and streams need no more patience than usual from then on.
    pub calm_at: Option<Time>,
    /// The application has asked for the connection while contact was lost.
    pub is_asked_for: bool,
    /// How many acknowledgements by QUIC are still asked for.
    pub hurry: u8,
    /// What [`crate::control::Control::acked`] said last.
    pub acked: u64,
    /// Whether it is among those that are looked at (see [`Peers`]).
    pub idle: Idle,
}

impl Peer {
    pub fn new(remote: SocketAddr, role: HubRole, now: Time) -> Self {
        Self {
            remote,
            local: None,
            role,
            hub_state: HubState::Greeting,
            conn: None,
            hub: None,
            attempts: Vec::new(),
            next_attempt: now,
            deadline: None,
            key: ProbeKey::default(),
            data_remote: None,
            candidate: None,
            prober: None,
            told_len: None,
            one_clock: false,
            near: Vec::new(),
            heard: 0,
            heard_at: now,
            ping_at: now,
            asked_max: None,
            lists: Vec::new(),
            dialing: Dialing::default(),
            last_failure: String::new(),
            instance: [0; 16],
            suspended: None,
            calm_at: None,
            is_asked_for: false,
            hurry: 0,
            acked: 0,
            idle: Idle::default(),
        }
    }

    pub fn is_open(&self) -> bool {
        self.hub_state == HubState::Open && self.conn.is_some()
    }

    /// True while probes are asked and none was answered: then only QUIC can say whether the peer
    /// lives.
    pub fn waits_for_path(&self, now: Time) -> bool {
        self.is_open() && self.prober.as_ref().is_some_and(|it| it.datagram_len(now).is_none())
    }

    /// What was said just now, or before contact was lost, is to arrive soon: QUIC notices what was
    /// lost by what is acknowledged after it, long before its own timers, which back off.
    pub fn hurry(&mut self, now: Time) {
        if self.hurry == 0 {
            self.ping_at = now + HURRY_EVERY;
        }
        self.hurry = HURRY_ACKS;
    }

    /// Notes a question of the peer; false for one that came before or was overtaken. Such a one
    /// may be a copy that somebody else sends, so it neither shows life nor moves the data path.
    pub fn note_question(&mut self, number: u64) -> bool {
        let is_new = self.asked_max.is_none_or(|known| known < number);
        if is_new {
            self.asked_max = Some(number);
        }
        is_new
    }

    pub fn times(&self) -> PathTimes {
        let Some(prober) = &self.prober else { return PathTimes::default() };
        PathTimes {
            is_lost: self.suspended.is_some(),
            rtt: prober.rtt().smoothed().unwrap_or_default(),
            variation: prober.rtt().variation(),
        }
    }

    /// A packet of a flow goes out to it as datagrams.
    pub fn note_sent(&mut self, packet: &Packet) {
        if let Some(prober) = &mut self.prober {
            prober.handle_sent(packet.segment_len(0), packet.payload_len());
        }
    }

    pub fn datagram_len(&self, now: Time) -> Option<usize> {
        self.prober.as_ref()?.datagram_len(now)
    }

    /// True when the peer is a process of this host, as far as its clock and its address say.
    pub fn is_here(&self) -> bool {
        self.one_clock && self.remote.ip().is_loopback()
    }
}
