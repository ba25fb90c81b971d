//! The unreliable mode: what has come is handed up, equal datagrams together.
//!
//! ```text
//!   engine --message--> Messages --equal ones together--> train of the pool
//! ```
//!
//! What is lost is not sent again; what is late is not handed up.

use super::Xtp;
use super::link::Link;
use super::stream_of::lock;
use crate::stream::{Intake, Phase};
use crate::trains::even_train;
use dacapo_base::{Address, Time};
use dacapo_packet::{Packet, Pool, PoolFull};

impl Xtp {
    /// Hands up the datagrams that have come, association by association.
    pub(super) fn hand_up_datagrams(&mut self, intake: &mut Intake<'_>) {
        let numbers: Vec<usize> = lock(&self.links).arrivals.iter().copied().collect();
        for number in numbers {
            if self.hand_up_or_drop(number, intake) {
                lock(&self.links).arrivals.remove(&number);
            }
        }
    }

    /// True when nothing more of an association is to be handed up, until something comes.
    fn hand_up_or_drop(&mut self, number: usize, intake: &mut Intake<'_>) -> bool {
        lock(&self.links).looks += 1;
        // What the table of streams has let go is dropped when it ends.
        let Some(place) = self.place_of(number) else { return true };
        let is_all = match self.streams.stage(place) {
            Some((Phase::Open, remote)) => self.hand_up_of(number, remote, intake),
            // Nobody has a use for them.
            Some((Phase::Closing, _)) => self.drop_of(number),
            Some((Phase::Unclaimed | Phase::Dialing, _)) => return false,
            None => return true,
        };
        // Its end may have waited for this.
        self.streams.enqueue(place);
        is_all
    }

    /// True when all that may be handed up now is.
    fn hand_up_of(&mut self, number: usize, remote: Address, intake: &mut Intake<'_>) -> bool {
        let mut links = lock(&self.links);
        while intake.has_share() {
            let Some(link) = links.link(number).filter(|link| !link.is_paused) else {
                return true;
            };
            if link.messages.is_empty() {
                links.take_messages(number);
            }
            let Some(link) = links.link(number).filter(|link| !link.messages.is_empty()) else {
                return true;
            };
            let Ok(packet) = next_train(link, intake.now, intake.pool) else {
                intake.outcome.blocked = true;
                self.streams.stats.pool_full += 1;
                return false;
            };
            let (count, len) = (packet.segment_count(), packet.payload_len());
            self.streams.stats.received.count(count, len);
            intake.hand_up(remote, packet);
        }
        false
    }

    /// Drops what has come of one that is being closed; true when that was all.
    fn drop_of(&mut self, number: usize) -> bool {
        let mut links = lock(&self.links);
        links.take_messages(number);
        let Some(link) = links.link(number) else { return true };
        let count = link.messages.clear();
        self.streams.stats.drops.closed += count;
        count == 0
    }

    /// True when datagrams wait that another call would hand up.
    pub(super) fn has_arrivals_for_now(&self) -> bool {
        let mut links = lock(&self.links);
        let numbers: Vec<usize> = links.arrivals.iter().copied().collect();
        numbers.into_iter().any(|number| {
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
