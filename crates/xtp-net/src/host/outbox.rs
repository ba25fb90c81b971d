//! [`Outbox`]: packets between the engine and the network, as trains.
//!
//! ```text
//!   engine -> | a 1452 | a 1452 | a 300 || b 60 || a 1452 …     a train: one peer, equal lengths,
//!             '------- one send --------'                       the last may be shorter
//! ```
//!
//! Invariants: at most [`PACKETS_MAX`] packets and [`BYTES_MAX`] bytes and a packet wait; the order
//! of packets stays.

use super::Counters;
use crate::fault::Fault;
use crate::network::{Connectionless, SendError};
use dacapo_base::Time;
use dacapo_sys::udp::TRAIN_BYTES_MAX;
use dacapo_xtp::Engine;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// The most packets that are taken out of the engine at a time.
const PACKETS_MAX: usize = 256;
/// The most bytes, but for the last packet: what one call takes of a train, so that the first cache
/// but one still has it when the call copies it.
const BYTES_MAX: usize = TRAIN_BYTES_MAX;
/// How long a device without room is let rest.
const REST: Duration = Duration::from_millis(1);

/// Packets for one peer that go out together.
#[derive(Debug)]
struct Train {
    to: SocketAddr,
    start: usize,
    end: usize,
    segment: usize,
}

impl Train {
    /// Whether a packet may follow: the last is not a short one.
    fn takes(&self, to: SocketAddr, len: usize) -> bool {
        self.to == to && len <= self.segment && (self.end - self.start).is_multiple_of(self.segment)
    }

    fn packet_count(&self) -> u64 {
        (self.end - self.start).div_ceil(self.segment) as u64
    }
}

/// Packets that are on their way to the network.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    trains: VecDeque<Train>,
    is_blocked: bool,
    rests_until: Option<Time>,
}

impl Outbox {
    /// Whether the network said that there is no room.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// When a network is to be tried that does not tell when it has room.
    pub fn retry_at(&self) -> Time {
        self.rests_until.unwrap_or(Time::NEVER)
    }

    /// Packets that wait.
    pub fn packet_count(&self) -> u64 {
        self.trains.iter().map(Train::packet_count).sum()
    }

    /// Takes what the engine has, when nothing waits.
    pub fn fill(&mut self, now: Time, engine: &mut Engine, counters: &mut Counters) {
        if !self.trains.is_empty() {
            return;
        }
        self.bytes.clear();
        for _ in 0..PACKETS_MAX {
            let start = self.bytes.len();
            // The next is as long as the last, or it begins another train.
            let next = self.trains.back().map_or(0, |train| train.segment);
            if start + next > BYTES_MAX {
                return;
            }
            let Some(to) = engine.poll_packet(now, &mut self.bytes) else { return };
            let end = self.bytes.len();
            if end == start {
                continue;
            }
            counters.packets_given += 1;
            match self.trains.back_mut() {
                Some(train) if train.takes(to, end - start) => train.end = end,
                _ => self.trains.push_back(Train { to, start, end, segment: end - start }),
            }
        }
    }

    /// Gives the network what waits. When a packet cannot be sent it is dropped, and to whom and
    /// why is returned; more may wait then. `None`: nothing waits, or there is no room.
    pub fn flush(
        &mut self,
        now: Time,
        network: &mut dyn Connectionless,
        counters: &mut Counters,
    ) -> Option<(SocketAddr, Fault)> {
        if self.rests_until.is_some_and(|until| now < until) {
            return None;
        }
        (self.is_blocked, self.rests_until) = (false, None);
        while let Some(train) = self.trains.front_mut() {
            let bytes = self.bytes.get(train.start..train.end).unwrap_or_default();
            match network.send(now, train.to, bytes, train.segment) {
                Ok(taken) => {
                    counters.sends += 1;
                    counters.bytes_sent += taken as u64;
                    counters.packets_sent += taken.div_ceil(train.segment) as u64;
                    train.start += taken;
                }
                Err(SendError::Fault(fault)) => {
                    if let Some(count) = counters.packets_dropped.get_mut(fault.index()) {
                        *count += 1;
                    }
                    let to = train.to;
                    train.start = (train.start + train.segment).min(train.end);
                    self.drop_if_done();
                    return Some((to, fault));
                }
                Err(wait) => {
                    counters.blocked += 1;
                    self.is_blocked = wait == SendError::WouldBlock;
                    self.rests_until = (wait == SendError::Busy).then_some(now + REST);
                    return None;
                }
            }
            self.drop_if_done();
        }
        None
    }

    fn drop_if_done(&mut self) {
        if self.trains.front().is_some_and(|train| train.start >= train.end) {
            self.trains.pop_front();
        }
    }
}
