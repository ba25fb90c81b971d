//! What a user may choose: of the engine, of a listener, of an association.

use crate::wire::{Limits, Service};
use std::net::SocketAddr;
use std::time::Duration;

/// How long things are waited for. No published description gives figures; all are decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// WTIMER before a round trip is known.
    pub first_wait: Duration,
    /// By how much WTIMER is longer than the mean round trip at least: 4 deviations count as this
    /// where they are less.
    pub wait_min: Duration,
    /// The longest WTIMER.
    pub wait_max: Duration,
    /// The requests of a handshake.
    pub retries_max: u32,
    /// CTIMER: after so long without a sign of life the peer is asked for one.
    pub silence: Duration,
    /// CTIMEOUT: how long a handshake lasts at most.
    pub give_up: Duration,
    /// How long a transaction's status waits for the response, so that the response is the answer.
    pub response_wait: Duration,
    /// The least inactive period.
    pub inactive_min: Duration,
    /// Slot: within it the members of a reliable group answer what went to all of them, each at a
    /// time of its own.
    pub slot: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_secs(1),
            wait_min: Duration::from_millis(10),
            wait_max: Duration::from_secs(64),
            retries_max: 10,
            silence: Duration::from_secs(60),
            give_up: Duration::from_secs(120),
            response_wait: Duration::from_millis(50),
            inactive_min: Duration::from_secs(1),
            slot: Duration::from_millis(1),
        }
    }
}

/// What an engine does for all its associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most contexts.
    pub contexts_max: usize,
    /// The most contexts that are over and answer late packets; of more the oldest goes.
    pub inactive_max: usize,
    /// The longest packet, bytes.
    pub packet_len_max: usize,
    /// The longest packet that every path is taken to carry, bytes: where longer ones get lost one
    /// and all, an association goes on with these (BASE_PLPMTU of RFC 8899).
    pub packet_len_base: usize,
    /// Bytes that a context keeps at first of what it sends, and of what has come and is not read.
    pub buffer_len: usize,
    /// Bytes of each that it keeps at most, once fewer hold a stream up whose way is long (decided
    /// here: no published description grows a window).
    pub buffer_len_max: usize,
    /// Bytes that all contexts together keep at most beyond what they keep at first.
    pub growth_max: usize,
    /// Bytes that may be sent before the peer has said how much it takes. What of them is beyond
    /// the room that it turns out to have is sent again when it has said that it has room.
    pub first_window: u64,
    /// How long things are waited for.
    pub timers: Timers,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            contexts_max: 10_000,
            inactive_max: 10_000,
            packet_len_max: 1_452,
            packet_len_base: 1_200,
            buffer_len: 64 << 10,
            buffer_len_max: 64 << 10,
            growth_max: 0,
            first_window: 64 << 10,
            timers: Timers::default(),
        }
    }
}

/// How what lacks is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Retransmission {
    /// The receiver keeps what comes behind a gap and says what has come.
    #[default]
    Selective,
    /// The receiver keeps nothing behind a gap.
    GoBackN,
}

/// The options of one end of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mode {
    /// NOCHECK: only headers are covered by the checksum.
    pub without_check: bool,
    /// NOERR: nothing is sent again; the peer's user is told of holes.
    pub without_repair: bool,
    /// NOFLOW: the peer's window is not heeded.
    pub without_window: bool,
    /// FASTNAK: the peer reports a gap at once.
    pub fast_report: bool,
    /// RES: the window is what [`crate::Engine::post`] has given.
    pub reserve: bool,
    /// Status is asked for by a change of EDGE, not by SREQ.
    pub edge: bool,
    /// SORT: the priority; smaller is more urgent (decided here).
    pub sort: Option<u16>,
    /// How this end takes what comes out of order.
    pub retransmission: Retransmission,
    /// What this end takes and means to send.
    pub limits: Limits,
}

/// Who may open associations here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The port of XTP; 0 for who opens without an address.
    pub port: u16,
    /// The service that is given; `None`: every one.
    pub service: Option<Service>,
    /// The most associations that wait for [`crate::Event::Incoming`] to be taken.
    pub backlog_max: usize,
    /// The options of this end.
    pub mode: Mode,
}

impl Listen {
    /// A port for every service, with a backlog of 128.
    #[must_use]
    pub fn on(port: u16) -> Self {
        Self { port, service: None, backlog_max: 128, mode: Mode::default() }
    }
}

/// An association that is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Where packets are sent: the address below XTP.
    pub peer: SocketAddr,
    /// The two ends as XTP names them: destination, source. `None`: a null address.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// What kind of association it is.
    pub service: Service,
    /// The options of this end.
    pub mode: Mode,
}

impl Open {
    /// A reliable stream to a port of a host, from a port here.
    #[must_use]
    pub fn stream(peer: SocketAddr, destination: SocketAddr, source: SocketAddr) -> Self {
        let mode = Mode { fast_report: true, ..Mode::default() };
        Self { peer, ends: Some((destination, source)), service: Service::Stream, mode }
    }

    /// A stream to a group, without repair, from a port here: `group` is where packets are sent,
    /// `port` the group's port of XTP.
    #[must_use]
    pub fn multicast(group: SocketAddr, port: u16, source: SocketAddr) -> Self {
        let destination = SocketAddr::new(group.ip(), port);
        let (ends, mode) = (Some((destination, source)), Mode::default());
        Self { peer: group, ends, service: Service::Multicast, mode }
    }

    /// A reliable stream to a group, from a port here, in the same terms.
    #[must_use]
    pub fn reliable_multicast(group: SocketAddr, port: u16, source: SocketAddr) -> Self {
        let mode = Mode { fast_report: true, ..Mode::default() };
        let service = Service::ReliableMulticast;
        Self { service, mode, ..Self::multicast(group, port, source) }
    }
}
