//! `Path`: the two links of an emulated network, and what became of what they carried.
//!
//! Invariant: [`PathStats`] is one moment: both links, taken together.

use dacapo_base::{Random, Time};
use dacapo_link::{Carry, ConfigError, DelayRecord, Delivery, Link, LinkConfig, LinkStats};

/// A direction of an emulated path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the clients to the server, or from the first namespace to the second.
    Forward,
    /// The other one.
    Back,
}

impl Way {
    /// Both, forward first.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Back];

    /// The name, for people and programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Back => "back",
        }
    }
}

/// The chances of both directions that belong to a seed: forward, back. A link in virtual time with
/// the same ones decides the same.
#[must_use]
pub fn directions(seed: u64) -> (Random, Random) {
    let mut random = Random::from_number(seed);
    (random.fork(), random.fork())
}

/// What an emulator has done so far. Datagrams unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathStats {
    /// The link to the server, or to the second namespace.
    pub forward: LinkStats,
    /// The link back.
    pub back: LinkStats,
    /// On the way forward now.
    pub in_flight_forward: usize,
    /// On the way back now.
    pub in_flight_back: usize,
    /// How long after its due time each one left.
    pub lateness: DelayRecord,
    /// Handed out by a link, but not taken by the far end: its buffer was full, nobody was there,
    /// or it was longer than the network below takes.
    pub unsent: u64,
    /// Clients that have a socket to the server now; 0 in a tunnel.
    pub clients: usize,
    /// Of clients beyond the limit: they never came to a link.
    pub refused: u64,
    /// Arrivals that the kernel dropped because the emulator did not read them in time: they never
    /// came to a link. A train that came as one counts once.
    pub kernel_drops: u64,
    /// Why the emulator has stopped by itself, if it has.
    pub fault: Option<String>,
}

impl PathStats {
    /// The link of a direction.
    #[must_use]
    pub const fn way(&self, way: Way) -> &LinkStats {
        match way {
            Way::Forward => &self.forward,
            Way::Back => &self.back,
        }
    }

    /// On the way now in a direction.
    #[must_use]
    pub const fn in_flight(&self, way: Way) -> usize {
        match way {
            Way::Forward => self.in_flight_forward,
            Way::Back => self.in_flight_back,
        }
    }

    /// Whether both links account for everything that was handed to them.
    #[must_use]
    pub fn closes(&self) -> bool {
        Way::ALL.into_iter().all(|way| self.way(way).closes(self.in_flight(way)))
    }
}

/// Both links.
pub(crate) struct Path<T> {
    forward: Link<T>,
    back: Link<T>,
    /// What is counted besides the links.
    pub counts: PathStats,
}

impl<T: Carry> Path<T> {
    pub fn new(forward: LinkConfig, back: LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        let (chance_forward, chance_back) = directions(seed);
        Ok(Self {
            forward: Link::new(forward, chance_forward)?,
            back: Link::new(back, chance_back)?,
            counts: PathStats::default(),
        })
    }

    pub fn handle_send(&mut self, now: Time, way: Way, item: T) {
        // The fate is the emulator's own business; the statistics have it.
        let _ = self.link(way).handle_send(now, item);
    }

    /// What is due in a direction, with its lateness recorded.
    pub fn poll_deliver(&mut self, now: Time, way: Way) -> Option<Delivery<T>> {
        let delivery = self.link(way).poll_deliver(now)?;
        self.counts.lateness.record(now.since(delivery.delivered));
        Some(delivery)
    }

    /// When the next item is due in either direction.
    pub fn next_deadline(&self) -> Option<Time> {
        [self.forward.next_deadline(), self.back.next_deadline()].into_iter().flatten().min()
    }

    pub fn link(&mut self, way: Way) -> &mut Link<T> {
        match way {
            Way::Forward => &mut self.forward,
            Way::Back => &mut self.back,
        }
    }

    pub fn stats(&self) -> PathStats {
        PathStats {
            forward: self.forward.stats().clone(),
            back: self.back.stats().clone(),
            in_flight_forward: self.forward.in_flight(),
            in_flight_back: self.back.in_flight(),
            ..self.counts.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directions_of_a_seed_differ_and_are_always_the_same() {
        let (mut forward, mut back) = directions(7);
        let (one, two) = (forward.next_u64(), back.next_u64());
        assert_ne!(one, two);
        let (mut forward, mut back) = directions(7);
        assert_eq!((forward.next_u64(), back.next_u64()), (one, two));
    }

    #[test]
    fn a_path_closes_with_what_is_on_its_way() {
        let config: LinkConfig = "loss=50%,delay=1s,dup=20%".parse().unwrap();
        let mut path: Path<Vec<u8>> = Path::new(config.clone(), config, 3).unwrap();
        for _ in 0..100 {
            path.handle_send(Time::ZERO, Way::Forward, vec![1]);
            path.handle_send(Time::ZERO, Way::Back, vec![1]);
        }
        let late = Time::from_millis(1_002);
        while path.poll_deliver(late, Way::Forward).is_some() {}
        let stats = path.stats();
        assert!(stats.closes() && stats.in_flight_back > 0 && stats.in_flight_forward == 0);
        assert_eq!(stats.lateness.count(), stats.forward.delivered);
        assert_eq!(stats.lateness.min(), Some(std::time::Duration::from_millis(2)));
        let wrong = PathStats { in_flight_back: 0, ..stats };
        assert!(!wrong.closes());
    }
}
