//! The link emulator: a sans-IO model of what a network does to datagrams.
//!
//! [`Link`], ONE direction of a path between two ends, generic over what it carries ([`Carry`]). It
//! loses, delays, jitters, reorders, duplicates, corrupts, shapes, queues, cuts and drops by size,
//! all from a seed: the same configuration, seed and inputs give the same deliveries on every
//! machine. Time and randomness are arguments. Two links make a path.
//!
//! It opens no socket and reads no clock; whoever drives it does. Impairments are independent of
//! the content and, apart from burst loss and the queue, of each other.
//!
//! ```text
//!  handle_send(now, item)                                             poll_deliver(now)
//!        |                                                                  ^
//!        v     no         no       no                                       | due <= now
//!   partitioned? --> too big? --> lost? --> duplicate --+--> corrupt? --> queue + transmitter
//!        | yes        | yes       | yes       (copy) ---+       |              | (rate)
//!        v            v           v                             | detected:    v
//!   dropped_      dropped_mtu  lost_random,                     | uses the    delay + jitter
//!   partition                  lost_burst                       | link, then  (+ hold-back)
//!                                                               v dropped      |
//!                                                    corrupted_detected        v
//!                                                  full: dropped_queue    in flight, by due time
//!                                                  aqm:  dropped_aqm,     (full: overflow)
//!                                                        marked
//! ```
//!
//! The transmitter sends at a rate ([`LinkConfig::rate_bits_per_s`]) or by a trace ([`Trace`]). Its
//! queue drops what finds it full; with an active queue management ([`Aqm`]) it drops or marks
//! earlier. Nobody's mark is seen where the link clears the congestion codepoint of what enters
//! ([`LinkConfig::ecn_clear`]).
//!
//! Invariants:
//! - Conservation at every moment ([`Link::closes`]): `sent + duplicated` = `delivered` + every
//!   kind of drop + `in_flight`.
//! - The fate of an item is decided when it is sent; a partition that begins later does not touch
//!   what is on the way. Only a change of rate moves the due times of what still waits. With an
//!   active queue management an item waits ([`Passage::Waits`]) until the transmitter takes it, and
//!   its fate is decided then.
//! - Each effect draws from a [`dacapo_base::Random`] of its own, the same number of times per
//!   item whatever the configuration says and whatever happens to the item. Turning one knob does
//!   not shift what the others do: with `dup=1%` the same items are lost as without.
//! - Deliveries come in the order of due time, then of entry. Memory is bounded by
//!   [`LinkConfig::in_flight_max`] and the queue's limit.
//!
//! The order of calls: any number of inputs ([`Link::handle_send`], [`Link::set_config`],
//! [`Link::set_partitioned`]), then [`Link::poll_deliver`] until `None`, then wait until
//! [`Link::next_deadline`]. With an active queue management nothing need be due then: the
//! transmitter takes an item.
//!
//! ```
//! use dacapo_base::{Random, Time};
//! use dacapo_link::{Link, LinkConfig};
//!
//! let config: LinkConfig = "loss=5%,burst=10,delay=20ms,rate=10Mbit/s".parse()?;
//! let mut link = Link::new(config, Random::from_number(1))?;
//! link.handle_send(Time::ZERO, vec![0_u8; 1_250]);
//! if let Some(due) = link.next_deadline() {
//!     assert_eq!(due, Time::from_millis(21)); // 1 ms on the wire, 20 ms on the way
//!     assert!(link.poll_deliver(due).is_some());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources: the division of labour follows the sans-IO emulators of the field; burst loss is
//! Gilbert (1960) and Elliott (1963); CoDel is RFC 8289, DualPI2 RFC 9332; traces are Mahimahi's;
//! [`verify()`] holds the emulator against the closed forms.

mod aqm;
mod carry;
mod cellular;
mod codel;
mod config;
mod delay;
mod dice;
mod display;
mod dualpi2;
mod engine;
mod fate;
mod fifo;
#[cfg(test)]
mod flows;
mod loss;
mod managed;
mod model;
mod parse;
mod queue;
mod report;
mod stats;
mod trace;
mod verify;

pub use aqm::Aqm;
pub use carry::{Carry, Corruption};
pub use config::{ConfigError, LinkConfig, Mtu, MtuPolicy, QueueLimit, Window};
pub use dacapo_base::Ecn;
pub use delay::JitterShape;
pub use engine::Link;
pub use fate::{Delivery, DropReason, Fate, Passage};
pub use loss::Loss;
pub use parse::ParseError;
pub use report::{Figure, Report};
pub use stats::{DelayRecord, LinkStats};
pub use trace::{Trace, TraceError, TraceSource};
pub use verify::{verify, verify_against};
