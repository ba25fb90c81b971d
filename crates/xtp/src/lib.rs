//! XTP 4.0, the Xpress Transport Protocol.
//!
//! [`wire`], every packet of the protocol as bytes, and [`Engine`], which runs associations:
//! datagrams, acknowledged datagrams, transactions and reliable streams between two hosts, and
//! streams to groups, without repair or reliable, with members that join and leave; with window,
//! rate and burst control, go-back-n and selective repeat, priorities and diagnostics. Time,
//! randomness and packets are arguments.
//!
//! It decodes in Wireshark and follows the published descriptions; the text of the specification
//! was not at hand, so more is not said. What those leave open is marked "decided here".
//!
//! ```text
//!   user     open  listen  join  write  read  finish  abort  poll_event
//!              |                                                  ^
//!   Engine     v          contexts, found by key        table: what happens in which state
//!              |                                                  ^
//!   network  poll_packet                                    handle_packet
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod arrival;
mod black_hole;
mod config;
mod context;
mod deadlines;
mod engine;
mod event;
mod flush_timer;
mod group;
mod growth;
mod members;
mod pending;
mod rate;
mod receiver;
mod requests;
mod ring;
mod sender;
mod serial;
pub mod table;
pub mod wire;

pub use arrival::{Message, Read};
pub use config::{Config, Listen, Mode, Open, Retransmission, Timers};
pub use deadlines::Deadlines;
pub use engine::{Counters, Engine, ListenError, OpenError, Status, UserError};
pub use event::{ContextId, End, Event};
pub use group::{GroupPolicy, Join, Leaving, Member, MemberId};
