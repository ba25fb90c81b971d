//! Receiving: what waits in the queues becomes packets of the pool, control first.
//!
//! Invariant: what the pool has no room for stays first in its queue.

use super::InProc;
use super::switchboard::{Endpoint, Message, Queue, layout};
use crate::{Incoming, RECV_BYTES_MAX, RECV_PACKETS_MAX, RecvOutcome, Traffic, TrafficClass};
use dacapo_base::{Address, Time};
use dacapo_packet::{Pool, PoolFull};
use std::collections::{BTreeSet, VecDeque};

/// Where the packets of one call go.
struct Sink<'a> {
    now: Time,
    pool: &'a mut Pool,
    into: &'a mut Vec<Incoming>,
    received: &'a mut Traffic,
}

/// Why the reading of a queue ended.
#[derive(PartialEq, Eq)]
enum End {
    Empty,
    Limit,
    PoolFull,
}

impl InProc {
    pub(super) fn recv_from_hub(
        &mut self,
        now: Time,
        pool: &mut Pool,
        into: &mut Vec<Incoming>,
    ) -> RecvOutcome {
        let before = into.len();
        let local = self.local();
        let bytes_before = self.stats.received.bytes;
        let mut sink = Sink { now, pool, into, received: &mut self.stats.received };
        let mut state = self.hub.state();
        let Some(endpoint) = state.endpoint(local) else {
            return RecvOutcome::default();
        };
        let control = endpoint.read_control(&mut sink);
        let data = endpoint.read_data(&mut self.ready, &mut sink);
        let writable = std::mem::take(&mut endpoint.writable);
        let woken = endpoint.take_blocked(before < sink.into.len());
        endpoint.settle_waker();
        state.wake_blocked(woken);
        drop(state);
        let blocked = control == End::PoolFull || data == End::PoolFull;
        self.stats.pool_full += u64::from(blocked);
        RecvOutcome {
            packet_count: into.len() - before,
            bytes: (self.stats.received.bytes - bytes_before) as usize,
            more: control == End::Limit || data == End::Limit,
            blocked,
            writable,
        }
    }
}

impl Endpoint {
    fn read_control(&mut self, sink: &mut Sink<'_>) -> End {
        let mut bytes = 0;
        for _ in 0..RECV_PACKETS_MAX {
            match sink.take_first(&mut self.control, TrafficClass::Control) {
                Ok(None) => return End::Empty,
                Ok(Some(len)) => bytes += len,
                Err(PoolFull) => return End::PoolFull,
            }
            if bytes >= RECV_BYTES_MAX {
                break;
            }
        }
        if self.control.is_empty() { End::Empty } else { End::Limit }
    }

    /// Reads the data lanes in turn, one arrival each.
    fn read_data(&mut self, ready: &mut VecDeque<Address>, sink: &mut Sink<'_>) -> End {
        let waiting = self.data.iter().filter(|(_, queue)| !queue.is_empty());
        let new: Vec<_> =
            waiting.map(|(&remote, _)| remote).filter(|remote| !ready.contains(remote)).collect();
        ready.extend(new);
        let (mut count, mut bytes) = (0, 0);
        while let Some(remote) = ready.pop_front() {
            let Some(queue) = self.data.get_mut(&remote) else {
                continue;
            };
            if count == RECV_PACKETS_MAX || bytes >= RECV_BYTES_MAX {
                ready.push_front(remote);
                return End::Limit;
            }
            match sink.take_first(queue, TrafficClass::Data) {
                Ok(None) => {}
                Ok(Some(len)) => {
                    (count, bytes) = (count + 1, bytes + len);
                    if !queue.is_empty() {
                        ready.push_back(remote);
                    }
                }
                Err(PoolFull) => {
                    ready.push_front(remote);
                    return End::PoolFull;
                }
            }
        }
        End::Empty
    }

    fn take_blocked(&mut self, has_capacity: bool) -> BTreeSet<Address> {
        if has_capacity { std::mem::take(&mut self.blocked) } else { BTreeSet::new() }
    }

    /// The descriptor is readable exactly while something waits.
    fn settle_waker(&self) {
        if self.is_ready() {
            self.waker.wake();
        } else {
            self.waker.clear();
        }
    }
}

impl Sink<'_> {
    /// Moves the first message of a queue into the pool; returns its length.
    fn take_first(
        &mut self,
        queue: &mut Queue,
        lane: TrafficClass,
    ) -> Result<Option<usize>, PoolFull> {
        let Some(message) = queue.first() else {
            return Ok(None);
        };
        self.hand_up(message, lane)?;
        let len = message.bytes.len();
        queue.remove_first();
        Ok(Some(len))
    }

    fn hand_up(&mut self, message: &Message, lane: TrafficClass) -> Result<(), PoolFull> {
        let bytes = message.bytes.as_slice();
        let mut packet = self.pool.alloc_train(&layout(message.segment), bytes.len())?;
        self.pool.write_payload(&packet, 0, bytes);
        packet.set_unit_ends(true, true);
        packet.time = self.now;
        self.received.count(message.datagrams, bytes.len());
        self.into.push(Incoming { lane, remote: message.from, packet });
        Ok(())
    }
}
