//! [`Addressing`]: where the peer of an association is, by which keys both know it, and whether the
//! peer has shown that it hears what is sent there.
//!
//! ```text
//!   opening    own(key)              until the peer's xkey is known: returned(xkey)
//!   accepting  returned(its key)
//!   joining    own(0) to the group   FIRST: returned(its key)   an offer: returned(offered)
//! ```
//!
//! Invariant: a peer that has not shown its address gets at most [`UNPROVEN_FACTOR`] times the
//! bytes that came from there.

use crate::wire::{Address, AddressSegment, Key};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// How many times the bytes of a peer are sent back before it has shown its address.
const UNPROVEN_FACTOR: u64 = 3;

/// The two ends of one association, as packets name them.
#[derive(Debug)]
pub struct Addressing {
    peer: SocketAddr,
    own_key: u64,
    peer_key: Key,
    known_as: Option<u64>,
    is_initiator: bool,
    segment: AddressSegment,
    is_proven: bool,
    received: u64,
    sent: u64,
}

impl Addressing {
    /// Of the end that opens: destination and source as XTP names them, if it does.
    pub fn opening(peer: SocketAddr, own_key: u64, ends: Option<(SocketAddr, SocketAddr)>) -> Self {
        let address = ends.map_or(Address::Null, |(destination, source)| Address::Internet {
            destination,
            source,
        });
        Self {
            peer,
            own_key,
            peer_key: Key::own(own_key),
            known_as: None,
            is_initiator: true,
            segment: AddressSegment { domain: 0, address },
            is_proven: true,
            received: 0,
            sent: 0,
        }
    }

    /// Of the end that accepts what came under this key.
    pub fn accepting(peer: SocketAddr, own_key: u64, key: Key) -> Self {
        let (is_initiator, is_proven) = (false, false);
        let mut it = Self { is_initiator, is_proven, ..Self::opening(peer, own_key, None) };
        it.follow(peer, key);
        it
    }

    /// Of the end that asks to join a group, whose key it does not know.
    pub fn joining(peer: SocketAddr, own_key: u64, ends: (SocketAddr, SocketAddr)) -> Self {
        let (is_initiator, peer_key) = (false, Key::own(0));
        Self { is_initiator, peer_key, ..Self::opening(peer, own_key, Some(ends)) }
    }

    /// Where packets are sent: the address below XTP.
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub const fn own_key(&self) -> u64 {
        self.own_key
    }

    /// What stands in the header of what is sent.
    pub const fn peer_key(&self) -> Key {
        self.peer_key
    }

    /// The peer's own key, under which it may send: known from its FIRST, or from an `xkey`.
    pub const fn known_as(&self) -> Option<u64> {
        self.known_as
    }

    /// Whether this end has opened the association.
    pub const fn is_initiator(&self) -> bool {
        self.is_initiator
    }

    pub const fn segment(&self) -> &AddressSegment {
        &self.segment
    }

    /// Whom the association was opened with, as XTP names it.
    pub const fn destination(&self) -> Option<SocketAddr> {
        match self.segment.address {
            Address::Internet { destination, .. } => Some(destination),
            Address::Null => None,
        }
    }

    /// A packet of so many bytes has come from the peer under this key: one of ours shows that it
    /// hears us.
    pub fn handle_received(&mut self, len: usize, key: Key) {
        self.received = self.received.saturating_add(len as u64);
        self.is_proven |= key.is_returned();
    }

    /// So many bytes go to the peer.
    pub fn handle_sent(&mut self, len: usize) {
        self.sent = self.sent.saturating_add(len as u64);
    }

    /// The peer has shown, when `is_shown`, that it hears what is sent to its address.
    pub fn handle_proof(&mut self, is_shown: bool) {
        self.is_proven |= is_shown;
    }

    /// Whether so many bytes may go to the peer.
    pub const fn affords(&self, len: usize) -> bool {
        let most = self.received.saturating_mul(UNPROVEN_FACTOR);
        self.is_proven || self.sent.saturating_add(len as u64) <= most
    }

    /// The same, of what takes a while to measure.
    pub fn affords_by(&self, len: impl Fn() -> usize) -> bool {
        self.is_proven || self.affords(len())
    }

    /// The peer has said the key under which it knows the association; the first holds.
    pub fn handle_xkey(&mut self, xkey: u64) {
        let key = Key::returned(xkey);
        if self.is_initiator && self.known_as.is_none() && key.value() != 0 {
            self.peer_key = key;
            self.known_as = Some(key.value());
        }
    }

    /// The peer is there, and has said its own key in a FIRST.
    pub fn follow(&mut self, from: SocketAddr, key: Key) {
        self.peer = from;
        self.known_as = Some(key.value());
        self.peer_key = Key::returned(key.value());
    }

    /// The transmitter offers a key that is this member's own; false where it is known.
    pub fn handle_offer(&mut self, key: Key) -> bool {
        let is_new = key != self.peer_key;
        self.peer_key = key;
        is_new
    }

    /// An offer is forgotten, where a key is known besides: true then.
    pub fn forget_offer(&mut self) -> bool {
        self.peer_key = self.known_as.map_or(self.peer_key, Key::returned);
        self.known_as.is_some()
    }

    /// Takes the ends of an invitation as a member names them: the group, and itself, whose host it
    /// leaves to the network below.
    pub fn handle_invitation(&mut self, segment: &AddressSegment) {
        let address = match segment.address {
            Address::Internet { destination, .. } => {
                let host: IpAddr = if destination.is_ipv4() {
                    Ipv4Addr::UNSPECIFIED.into()
                } else {
                    Ipv6Addr::UNSPECIFIED.into()
                };
                Address::Internet { destination, source: SocketAddr::new(host, destination.port()) }
            }
            Address::Null => Address::Null,
        };
        self.segment = AddressSegment { domain: 0, address };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(end: u8) -> SocketAddr {
        ([192, 0, 2, end], 4_040).into()
    }

    /// Section "Decided here": three times what came, until the peer has shown its address.
    #[test]
    fn an_unproven_peer_gets_three_times_what_came_from_it() {
        let mut it = Addressing::accepting(at(1), 7, Key::own(9));
        assert!(it.affords(0) && !it.affords(1));
        it.handle_received(100, Key::own(9));
        it.handle_sent(200);
        assert!(it.affords(100) && !it.affords(101));
        it.handle_proof(false);
        assert!(!it.affords(101));
        it.handle_received(1, Key::returned(7));
        assert!(it.affords(usize::MAX), "it knows a key that was sent to it");

        let mut answered = Addressing::accepting(at(1), 7, Key::own(9));
        answered.handle_proof(true);
        assert!(answered.affords(usize::MAX));
        assert!(Addressing::opening(at(1), 7, None).affords(usize::MAX));
        assert!(Addressing::joining(at(1), 7, (at(1), at(2))).affords(usize::MAX));
    }

    /// Key exchange: FIRST carries the sender's own key, TCNTL the xkey; RTN marks a returned one.
    #[test]
    fn each_end_writes_the_key_that_the_other_knows() {
        let mut opening = Addressing::opening(at(1), 7, None);
        assert_eq!((opening.peer_key(), opening.known_as()), (Key::own(7), None));
        opening.handle_xkey(0);
        assert_eq!(opening.peer_key(), Key::own(7), "0 is no key");
        opening.handle_xkey(9);
        opening.handle_xkey(11);
        assert_eq!((opening.peer_key(), opening.known_as()), (Key::returned(9), Some(9)));

        let mut accepting = Addressing::accepting(at(1), 7, Key::own(9));
        accepting.handle_xkey(11);
        assert_eq!((accepting.peer_key(), accepting.known_as()), (Key::returned(9), Some(9)));
        assert!(!accepting.is_initiator() && opening.is_initiator());
    }

    /// JCNTL: a key of its own is offered to who asks to join.
    #[test]
    fn a_member_follows_its_transmitter_and_takes_the_key_that_is_offered() {
        let mut member = Addressing::joining(at(9), 7, (at(9), at(2)));
        assert_eq!((member.peer_key(), member.destination()), (Key::own(0), Some(at(9))));
        assert!(!member.forget_offer(), "nobody is known");
        member.follow(at(1), Key::own(5));
        assert_eq!((member.peer(), member.peer_key()), (at(1), Key::returned(5)));
        assert!(member.handle_offer(Key::returned(6)) && !member.handle_offer(Key::returned(6)));
        assert!(member.forget_offer());
        assert_eq!((member.peer_key(), member.known_as()), (Key::returned(5), Some(5)));
    }

    #[test]
    fn a_member_names_the_group_and_leaves_its_own_host_open() {
        let group: SocketAddr = ([239, 1, 1, 1], 4_040).into();
        let invitation = |address| AddressSegment { domain: 0, address };
        for (destination, host) in [
            (group, IpAddr::from([0, 0, 0, 0])),
            (
                SocketAddr::new([0xFF02, 0, 0, 0, 0, 0, 0, 1].into(), 9),
                Ipv6Addr::UNSPECIFIED.into(),
            ),
        ] {
            let mut member = Addressing::accepting(at(1), 7, Key::own(9));
            member.handle_invitation(&invitation(Address::Internet { destination, source: at(1) }));
            let source = SocketAddr::new(host, destination.port());
            assert_eq!(member.segment().address, Address::Internet { destination, source });
        }
        let mut member = Addressing::accepting(at(1), 7, Key::own(9));
        member.handle_invitation(&invitation(Address::Null));
        assert_eq!(member.destination(), None);
    }
}
