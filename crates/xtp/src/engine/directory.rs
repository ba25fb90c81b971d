//! [`Directory`]: whom a packet is for, by the key in it.
//!
//! ```text
//!   key, returned        -> who drew it; of a group one per member        O(1)
//!   key of the sender    -> by its address and that key                   O(1)
//!   key 0                -> transmitter, by the group's address: FIRST in answer
//!   FIRST, unknown key   -> who waits to join that group
//! ```

use super::keys::ByKey;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

/// Who is found by what.
#[derive(Debug, Default)]
pub struct Directory {
    by_key: ByKey<u32>,
    by_peer: HashMap<(SocketAddr, u64), u32>,
    /// Groups to which contexts here transmit reliably.
    groups: BTreeSet<(SocketAddr, u32)>,
    /// Groups that contexts here wait to join.
    joins: BTreeSet<(SocketAddr, u32)>,
}

impl Directory {
    /// A key that was drawn here leads to this slot.
    pub fn insert(&mut self, key: u64, slot: u32) {
        self.by_key.insert(key, slot);
    }

    /// A key leads nowhere any more.
    pub fn remove(&mut self, key: u64) {
        self.by_key.remove(&key);
    }

    /// Whether a key leads anywhere.
    pub fn has_key(&self, key: u64) -> bool {
        self.by_key.contains_key(&key)
    }

    /// Whom a key leads to that was drawn here.
    pub fn by_key(&self, key: u64) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// Whom a peer means that names its own key.
    pub fn by_peer(&self, from: SocketAddr, key: u64) -> Option<u32> {
        self.by_peer.get(&(from, key)).copied()
    }

    /// A peer whose own key has become known may send under it, as diagnostics do; the first who
    /// knows it holds it.
    pub fn learn(&mut self, peer: SocketAddr, known_as: Option<u64>, slot: u32) {
        if let Some(key) = known_as {
            self.by_peer.entry((peer, key)).or_insert(slot);
        }
    }

    /// A context is over: its own key and that of its peer lead nowhere. False where that was so.
    pub fn forget(&mut self, own_key: u64, alias: Option<(SocketAddr, u64)>, slot: u32) -> bool {
        let is_known = self.by_key.get(&own_key) == Some(&slot);
        if is_known {
            self.by_key.remove(&own_key);
            if let Some(alias) = alias.filter(|alias| self.by_peer.get(alias) == Some(&slot)) {
                self.by_peer.remove(&alias);
            }
        }
        is_known
    }

    /// This context transmits to a group.
    pub fn gather(&mut self, group: SocketAddr, slot: u32) {
        self.groups.insert((group, slot));
    }

    /// This context waits to join a group.
    pub fn await_group(&mut self, group: SocketAddr, slot: u32) {
        self.joins.insert((group, slot));
    }

    /// Nobody asks for a context's group any more.
    pub fn leave_group(&mut self, group: SocketAddr, slot: u32) {
        self.groups.remove(&(group, slot));
        self.joins.remove(&(group, slot));
    }

    /// Who transmits to a group.
    pub fn transmitter(&self, group: SocketAddr) -> Option<u32> {
        let mut those = self.groups.range((group, 0)..=(group, u32::MAX));
        those.next().map(|(_, slot)| *slot)
    }

    /// Takes who waits to join a group, the first whom the invitation is meant for.
    pub fn take_waiting(
        &mut self,
        group: SocketAddr,
        is_meant: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut those = self.joins.range((group, 0)..=(group, u32::MAX));
        let found = *those.find(|(_, slot)| is_meant(*slot))?;
        self.joins.remove(&found);
        Some(found.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(end: u8) -> SocketAddr {
        ([192, 0, 2, end], 4_040).into()
    }

    /// Key exchange: a returned key is ours, the other one the peer's, from its address.
    #[test]
    fn a_key_leads_to_who_drew_it_and_a_peers_own_from_its_address_only() {
        let mut directory = Directory::default();
        directory.insert(7, 1);
        directory.learn(at(1), Some(9), 1);
        directory.learn(at(1), Some(9), 2);
        directory.learn(at(2), None, 2);
        assert!(directory.has_key(7) && !directory.has_key(9));
        assert_eq!((directory.by_key(7), directory.by_key(9)), (Some(1), None));
        assert_eq!((directory.by_peer(at(1), 9), directory.by_peer(at(2), 9)), (Some(1), None));
        assert!(!directory.forget(7, Some((at(1), 9)), 2), "it is not that one's");
        assert!(directory.forget(7, Some((at(1), 9)), 1));
        assert!(!directory.forget(7, Some((at(1), 9)), 1));
        assert_eq!((directory.by_key(7), directory.by_peer(at(1), 9)), (None, None));
    }

    #[test]
    fn an_alias_that_another_context_has_taken_stays() {
        let mut directory = Directory::default();
        (1..3).for_each(|slot| directory.insert(slot.into(), slot));
        directory.learn(at(1), Some(9), 2);
        assert!(directory.forget(1, Some((at(1), 9)), 1));
        assert_eq!(directory.by_peer(at(1), 9), Some(2));
        directory.remove(2);
        assert_eq!(directory.by_key(2), None);
    }

    /// JCNTL with key 0: found by the group; FIRST: who waits for that group, and admits it, once.
    #[test]
    fn a_group_is_found_by_its_address_and_who_waits_is_taken_once() {
        let mut directory = Directory::default();
        directory.gather(at(1), 5);
        directory.gather(at(1), 6);
        assert_eq!((directory.transmitter(at(1)), directory.transmitter(at(2))), (Some(5), None));
        (7..9).for_each(|slot| directory.await_group(at(1), slot));
        assert_eq!(directory.take_waiting(at(2), |_| true), None);
        assert_eq!(directory.take_waiting(at(1), |slot| slot == 8), Some(8));
        assert_eq!(directory.take_waiting(at(1), |slot| slot == 8), None);
        directory.leave_group(at(1), 5);
        directory.leave_group(at(1), 7);
        assert_eq!(directory.take_waiting(at(1), |_| true), None);
        assert_eq!(directory.transmitter(at(1)), Some(6));
    }
}
