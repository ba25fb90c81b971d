//! The unreliable mode: each datagram in a frame of its own (RFC 9221).
//!
//! ```text
//!   train --copied once--> |frame|frame|frame| --congestion control--> packets
//!   packets --> frames --> queue, bounded --equal ones together--> train of the pool
//! ```
//!
//! A frame whose packet is lost is not sent again.
//!
//! Invariants: a queue that is full takes nothing at the sender, and at the receiver drops and
//! counts; what came before the end of the stream is handed up before it.

use super::link::{Link, Lost};
use super::{DATAGRAM_LEN_MAX, Mode, Quic};
use crate::stream::{Intake, Phase};
use crate::trains::even_train;
use crate::{Outgoing, SendError, Sent};
use bytes::Bytes;
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool, PoolFull};
use quinn_proto::SendDatagramError;

impl Quic {
    pub(super) fn send_datagrams(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        if outgoing.datagram_len() > DATAGRAM_LEN_MAX {
            self.streams.stats.too_large += 1;
            return Err(SendError::TooLarge { mtu: Some(DATAGRAM_LEN_MAX) });
        }
        let is_open = match self.streams.place_of(outgoing.remote) {
            Some((_, Phase::Open)) => true,
            Some((_, Phase::Dialing)) => false,
            _ => return self.closed(),
        };
        let taken = match is_open {
            true => self.with_link(outgoing.remote, |link| queue_train(link, outgoing)),
            // Whoever waits is told when it is open.
            false => Some(Ok(0)),
        };
        let Some(Ok(count)) = taken else { return self.closed() };
        self.transmit_to(outgoing.remote);
        Ok(self.streams.stats.count_front(outgoing, count))
    }

    fn closed(&mut self) -> Result<Sent, SendError> {
        self.streams.stats.errors += 1;
        Err(SendError::Closed)
    }

    /// Hands up the datagrams that have come, connection by connection.
    pub(super) fn hand_up_datagrams(&mut self, intake: &mut Intake<'_>) {
        if self.mode != Mode::Datagrams {
            return;
        }
        for handle in self.links.handles() {
            let Some(entry) = self.links.entry(handle) else { continue };
            let stage = self.streams.stage(entry.place);
            let mut link = entry.stream.link();
            if link.arrivals.is_empty() || link.is_paused {
                continue;
            }
            let remote = match stage {
                Some((Phase::Open, remote)) => remote,
                // Nobody has a use for them.
                Some((Phase::Closing, _)) | None => {
                    let count = std::iter::from_fn(|| link.arrivals.pop()).count();
                    self.streams.stats.drops.closed += count as u64;
                    drop(link);
                    self.streams.enqueue(entry.place);
                    continue;
                }
                Some((Phase::Unclaimed | Phase::Dialing, _)) => continue,
            };
            while intake.has_share() && !link.arrivals.is_empty() {
                let Ok(packet) = next_train(&mut link, intake.now, intake.pool) else {
                    intake.outcome.blocked = true;
                    self.streams.stats.pool_full += 1;
                    break;
                };
                let (count, len) = (packet.segment_count(), packet.payload_len());
                self.streams.stats.received.count(count, len);
                intake.hand_up(remote, packet);
            }
            // Its end may have waited for this.
            let is_empty = link.arrivals.is_empty();
            drop(link);
            if is_empty {
                self.streams.enqueue(entry.place);
            }
        }
    }

    /// True when datagrams wait that another call would hand up.
    pub(super) fn has_arrivals_for_now(&self) -> bool {
        let is_open = |place| matches!(self.streams.stage(place), Some((Phase::Open, _)));
        let waits = |handle: usize| {
            let Some(entry) = self.links.entry(handle) else { return false };
            let link = entry.stream.link();
            !link.arrivals.is_empty() && !link.is_paused && is_open(entry.place)
        };
        self.mode == Mode::Datagrams && self.links.handles().into_iter().any(waits)
    }
}

/// Queues the datagrams of a train; returns how many there was room for.
fn queue_train(link: &mut Link, outgoing: &Outgoing<'_>) -> Result<usize, SendDatagramError> {
    if link.lost.is_some() {
        return Err(SendDatagramError::Disabled);
    }
    let bytes = Bytes::copy_from_slice(outgoing.bytes);
    let (len, count) = (outgoing.datagram_len(), outgoing.datagram_count());
    link.is_stirred = true;
    for index in 0..count {
        let datagram = bytes.slice(index * len..bytes.len().min((index + 1) * len));
        match link.inner.datagrams().send(datagram, false) {
            Ok(()) => {}
            Err(SendDatagramError::Blocked(_)) => {
                link.is_awaited = true;
                return Ok(index);
            }
            Err(error) => {
                // Neither the peer nor the path that QUIC is made for refuses them.
                let text = format!("the remote takes no datagrams: {error}");
                link.lost.get_or_insert(Lost::Protocol(text));
                return if index == 0 { Err(error) } else { Ok(index) };
            }
        }
    }
    Ok(count)
}

/// The next datagram, with those of the same length behind it, and one that is shorter.
fn next_train(link: &mut Link, now: Time, pool: &mut Pool) -> Result<Packet, PoolFull> {
    let (mut packet, count, _) = even_train(link.arrivals.lens(), pool)?;
    let mut at = 0;
    for _ in 0..count {
        let Some(datagram) = link.arrivals.pop() else { break };
        at += pool.write_payload(&packet, at, &datagram);
    }
    packet.set_unit_ends(true, true);
    packet.time = now;
    Ok(packet)
}
