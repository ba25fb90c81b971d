//! The networks below XTP, and a host that turns an engine over one of them.
//!
//! The data delivery services of XTP. [`Connectionless`] is a network that takes packets for any
//! address at any time: [`Udp`], [`Ip`] (protocol 36) and [`Ethernet`]. [`ConnectionOriented`] is
//! one that needs connections, [`Connected`] keeps them in a table, so that it is connectionless
//! too: [`Tcp`], until there is ATM. A [`Host`] owns an engine of `dacapo-xtp` and one such
//! network, and has calls that wait.
//!
//! ```text
//!   user      open; accept wait_open write read close       calls.rs: all but open wait
//!                     |
//!   Host    receive -> Engine -> outbox: trains of equal packets for one peer     host/
//!               ^                   |
//!   Connectionless::recv       Connectionless::send                               network.rs
//!        Udp: GRO, GSO    Ip: protocol 36    Ethernet: type 817D      Connected<Tcp>: records
//!        `-- internet.rs, lane.rs --'        ethernet.rs, eui64.rs   connected.rs, tcp/
//! ```
//!
//! Invariants: a turn does a bounded amount of work; every packet that an engine gives is sent,
//! waits, or is counted with the reason why not; a fault of the way is a hint and ends nothing that
//! is open.

mod capture;
mod connected;
mod ethernet;
pub mod eui64;
mod fault;
mod host;
mod internet;
mod lane;
mod network;
mod numbers;
mod pass_on;
mod recorded;
mod sniff;
pub mod tcp;

pub use capture::{CaptureWriter, Carriage, LinkType, clothe};
pub use connected::{
    CacheConfig, CacheCounters, Connected, ConnectionEvent, ConnectionId, ConnectionOriented,
    Received,
};
pub use ethernet::Ethernet;
pub use fault::{AddressError, BindError, Fault, JoinError};
pub use host::{CallError, Counters, Host, HostError, Incoming};
pub use internet::{Internet, InternetConfig, Ip, UDP_PORT, Udp};
pub use network::{Arrival, Connectionless, Group, RecvError, SendError};
pub use numbers::{ETHERTYPE, PROTOCOL};
pub use recorded::{CaptureError, Recorded};
pub use sniff::{Sniffer, packets};
pub use tcp::Tcp;

/// What a [`Host`] is asked and answers.
pub use dacapo_xtp::wire::{Limits, Service};
pub use dacapo_xtp::{
    Config, ContextId, End, Engine, Event, GroupPolicy, Leaving, Listen, Member, Message, Mode,
    Open, Read,
};
