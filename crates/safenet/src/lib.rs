//! The SAFENET message service over XTP: whole messages to hosts and groups, each with an end.
//!
//! [`Messages`], on an XTP [`Engine`] that somebody drives, or [`MessageService`], which owns one
//! and is driven as it is. Both give users `send_message` and `get_message`, synchronous and
//! asynchronous, to hosts and groups, with BURST and RATE, priorities, messages of any length from
//! 0 bytes on, and an [`Outcome`] for every message that was accepted. Associations are made on
//! first use, kept, closed when they rest, and made again when they are lost.
//!
//! Time, packets and the engine are arguments. Calls that wait are in `dacapo-safenet-net`. The
//! format is not the original's, of which nothing is published; `docs/safenet.md` says what is
//! known.
//!
//! ```text
//!   user     send_message -> Ticket     poll_event: Ended(ticket, outcome)    get_message
//!                |                            ^                                   ^ Part
//!   out          v  route -> Outflow  <-------+------ reports         Inflow -> mailbox
//!                |  head, data                |                         ^   | reports
//!   XTP      open write finish              read            Incoming read   write
//!   network  poll_packet                                            handle_packet
//! ```
//!
//! Two services, and packets carried from one to the other by hand:
//!
//! ```
//! use dacapo_base::{Random, Time};
//! use dacapo_safenet::{Config, Event, MessageService, Mode, Outcome, Route};
//! use dacapo_xtp::Engine;
//! use std::net::SocketAddr;
//!
//! let hosts: [SocketAddr; 2] = [([192, 0, 2, 1], 4040).into(), ([192, 0, 2, 2], 4040).into()];
//! let port = 7;
//! let mut ends = hosts.map(|host| {
//!     let config = Config::new(SocketAddr::new(host.ip(), port));
//!     // A real host draws its keys from a system seed.
//!     let random = Random::from_number(host.port().into());
//!     MessageService::new(config, Engine::new(dacapo_xtp::Config::default(), random))
//! });
//! ends[1].listen(port)?;
//!
//! let now = Time::from_millis(1);
//! let route = Route::host(hosts[1], port);
//! let ticket = ends[0].send_message(now, route, Mode::Synchronous, b"track 17".to_vec())?;
//! let mut outcome = None;
//! for _ in 0..4 {
//!     for from in 0..2 {
//!         let mut packet = Vec::new();
//!         while ends[from].poll_packet(now, &mut packet).is_some() {
//!             ends[1 - from].handle_packet(now, hosts[from], &std::mem::take(&mut packet));
//!         }
//!     }
//!     if let Some(message) = ends[1].get_message(now, port) {
//!         assert_eq!(message.data, b"track 17");
//!     }
//!     while let Some(event) = ends[0].poll_event() {
//!         if let Event::Ended(of, how) = event {
//!             assert_eq!(of, ticket);
//!             outcome = Some(how);
//!         }
//!     }
//! }
//! assert_eq!(outcome, Some(Outcome::Delivered));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Engine`]: dacapo_xtp::Engine
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod config;
mod inflow;
pub mod measure;
mod outflow;
mod owned;
mod pace;
mod service;
mod ticket;
mod wire;

pub use config::{Config, Mode, ROUTINE, Reach, Route, Traffic};
pub use inflow::{Ending, Part, Sender};
pub use owned::MessageService;
pub use service::{Counters, Event, JoinError, Messages, SendError};
pub use ticket::{Cause, Outcome, Sums, Ticket};
pub use wire::LetGo;
