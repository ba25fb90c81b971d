//! The unreliable mode: what has come is handed up, equal datagrams together.
//!
//! ```text
//!   engine --message--> Messages --equal ones together--> train of the pool
//! ```
//!
//! What it is not: a repair. What is lost is not sent again; what is late is not handed up.

use super::link::{Link, lock};
use super::{Mode, Xtp};
use crate::stream::{Intake, Phase};
use crate::trains::even_train;
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool, PoolFull};
use std::net::SocketAddr;

impl Xtp {
    /// Hands up the datagrams that have come, association by association.
    pub(super) fn hand_up_datagrams(&mut self, intake: &mut Intake<'_>) {
        if self.mode != Mode::Datagrams {
            return;
        }
        let numbers = lock(&self.links).numbers();
        for number in numbers {
            let Some(place) = lock(&self.links).link(number).map(|link| link.place) else {
                continue;
            };
            match self.streams.stage(place) {
                Some((Phase::Open, remote)) => self.hand_up_of(number, remote, intake),
                // Nobody has a use for them.
                Some((Phase::Closing, _)) => self.drop_of(number),
                _ => continue,
            }
            // Its end may have waited for this.
            self.streams.enqueue(place);
        }
    }

    fn hand_up_of(&mut self, number: usize, remote: SocketAddr, intake: &mut Intake<'_>) {
        let mut links = lock(&self.links);
        while intake.has_share() {
            let Some(link) = links.link(number).filter(|link| !link.is_paused) else { return };
            if link.messages.is_empty() {
                links.take_messages(number);
            }
            let Some(link) = links.link(number).filter(|link| !link.messages.is_empty()) else {
                return;
            };
            let Ok(packet) = next_train(link, intake.now, intake.pool) else {
                intake.outcome.blocked = true;
                self.streams.stats.pool_full += 1;
                return;
            };
            let (count, len) = (packet.segment_count(), packet.payload_len());
            self.streams.stats.received.count(count, len);
            intake.hand_up(remote, packet);
        }
    }

    fn drop_of(&mut self, number: usize) {
        let mut links = lock(&self.links);
        links.take_messages(number);
        let Some(link) = links.link(number) else { return };
        self.streams.stats.drops.closed += link.messages.clear();
    }

    /// True when datagrams wait that another call would hand up.
    pub(super) fn has_arrivals_for_now(&self) -> bool {
        if self.mode != Mode::Datagrams {
            return false;
        }
        let mut links = lock(&self.links);
        links.numbers().into_iter().any(|number| {
            let Some(link) = links.link(number) else { return false };
            let is_open = matches!(self.streams.stage(link.place), Some((Phase::Open, _)));
            is_open && !link.is_paused && !link.messages.is_empty()
        })
    }
}

/// The oldest datagram, with those of the same length behind it, and one that is shorter.
fn next_train(link: &mut Link, now: Time, pool: &mut Pool) -> Result<Packet, PoolFull> {
    let (mut packet, count, total) = even_train(link.messages.lens(), pool)?;
    pool.write_payload(&packet, 0, link.messages.front(total));
    link.messages.pop(count);
    packet.set_unit_ends(true, true);
    packet.time = now;
    Ok(packet)
}
