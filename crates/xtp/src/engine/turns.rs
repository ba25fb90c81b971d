//! [`Turns`]: when which context has its turn, by slot.
//!
//! ```text
//!   wake --> ready --next--> it has packets: again, behind its equals
//!              ^       '---- the network takes none for its peer: held until it does
//!              |       '---- it has none: rest, until a time --> timers --pop_due--> wake
//!   tell --> told --pop_told--> its events
//! ```
//!
//! Invariant: one time per context; one whose time is far costs nothing, however often the time is
//! told.

use super::held::Held;
use super::ranked::Ranked;
use dacapo_base::Time;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// When which context has its turn.
#[derive(Debug, Default)]
pub struct Turns {
    timers: BTreeSet<(Time, u32)>,
    /// The time of each slot; `NEVER` where it has none.
    due: Vec<Time>,
    ready: Ranked,
    held: Held,
    told: Ranked,
}

impl Turns {
    /// When the first has something to do; else `NEVER`.
    pub fn deadline(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Takes a context whose time has come.
    pub fn pop_due(&mut self, now: Time) -> Option<u32> {
        let (_, slot) = *self.timers.first().filter(|(at, _)| *at <= now)?;
        self.set_timer(slot, Time::NEVER);
        Some(slot)
    }

    /// A context may have packets.
    pub fn wake(&mut self, slot: u32, sort: Option<u16>) {
        self.ready.insert(slot, sort);
    }

    /// A context has no packets until then.
    pub fn rest(&mut self, slot: u32, until: Time) {
        self.ready.remove(slot);
        self.set_timer(slot, until);
    }

    fn set_timer(&mut self, slot: u32, at: Time) {
        let place = slot as usize;
        if self.due.len() <= place {
            self.due.resize(place.saturating_add(1), Time::NEVER);
        }
        let Some(due) = self.due.get_mut(place).filter(|due| **due != at) else { return };
        let before = std::mem::replace(due, at);
        if before != Time::NEVER {
            self.timers.remove(&(before, slot));
        }
        if at != Time::NEVER {
            self.timers.insert((at, slot));
        }
    }

    /// The context whose turn it is; `peer_of` says where its packets go. Those whose peer the
    /// network takes none for are passed over.
    pub fn next(&mut self, peer_of: impl Fn(u32) -> Option<SocketAddr>) -> Option<u32> {
        loop {
            let slot = self.ready.turn()?;
            if self.held.is_empty()
                || !peer_of(slot).is_some_and(|peer| self.held.makes_wait(peer, slot))
            {
                return Some(slot);
            }
            self.ready.remove(slot);
        }
    }

    /// The network takes no packets to this peer.
    pub fn hold(&mut self, peer: SocketAddr) {
        self.held.hold(peer);
    }

    /// The network takes packets to this peer again; gives who has waited for that.
    pub fn release(&mut self, peer: SocketAddr) -> BTreeSet<u32> {
        self.held.release(peer)
    }

    /// A context has events.
    pub fn tell(&mut self, slot: u32, sort: Option<u16>) {
        self.told.insert(slot, sort);
    }

    /// Takes the context whose turn it is to be told of.
    pub fn pop_told(&mut self) -> Option<u32> {
        self.told.pop()
    }

    /// There is nothing more to be told of a context.
    pub fn forget(&mut self, slot: u32) {
        self.told.remove(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: fn(u32) -> Option<SocketAddr> = |_| None;

    #[test]
    fn who_rests_is_due_once_at_the_time_that_was_said_last() {
        let at = Time::from_millis;
        let mut turns = Turns::default();
        for (slot, time) in [(1, 30), (2, 10), (3, 20), (4, 40), (2, 25)] {
            turns.rest(slot, at(time));
        }
        turns.rest(4, Time::NEVER);
        assert_eq!(turns.deadline(), at(20));
        let due: Vec<u32> = std::iter::from_fn(|| turns.pop_due(at(29))).collect();
        assert_eq!((due, turns.deadline()), (vec![3, 2], at(30)));
        assert_eq!((turns.pop_due(at(30)), turns.deadline()), (Some(1), Time::NEVER));
    }

    #[test]
    fn who_rests_has_no_turn_until_it_is_woken() {
        let mut turns = Turns::default();
        assert_eq!(turns.next(NONE), None);
        turns.wake(1, None);
        turns.wake(2, Some(5));
        assert_eq!(turns.next(NONE), Some(2));
        turns.rest(2, Time::NEVER);
        assert_eq!(turns.next(NONE), Some(1));
        turns.tell(1, None);
        turns.tell(2, Some(5));
        turns.tell(3, None);
        turns.forget(3);
        assert_eq!([(); 3].map(|()| turns.pop_told()), [Some(2), Some(1), None]);
    }

    #[test]
    fn who_waits_for_the_network_is_passed_over_and_given_back() {
        let peer = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let peer_of = |slot: u32| Some(peer(slot as u16));
        let mut turns = Turns::default();
        (1..4).for_each(|slot| turns.wake(slot, None));
        turns.hold(peer(1));
        turns.hold(peer(2));
        assert_eq!([(); 2].map(|()| turns.next(peer_of)), [Some(3); 2]);
        turns.rest(3, Time::NEVER);
        assert_eq!(turns.next(peer_of), None);
        assert!(turns.release(peer(1)).into_iter().eq([1]));
        turns.wake(1, None);
        assert_eq!(turns.next(peer_of), Some(1));
    }
}
