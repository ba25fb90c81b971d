//! [`Role`]: whether a context is one of two ends, transmits to a reliable group, or hears one.

mod member;
mod transmitter;

pub use member::Membership;
pub use transmitter::{Said, Settlement};

use crate::config::Config;
use crate::group::Member;
use crate::members::Members;
use crate::table::Input;
use crate::wire::{Header, Key};
use std::net::SocketAddr;
use std::time::Duration;

use super::addressing::Addressing;
use super::inbound::Inbound;
use super::outbound::Outbound;
use dacapo_base::Time;

/// What a context keeps beyond what every one does.
#[derive(Debug)]
pub enum Role {
    /// One of two ends, or an end of a group that is not reliable.
    Unicast,
    /// It transmits to a reliable group.
    Transmitter(Box<Members>),
    /// It hears one.
    Member(Box<Membership>),
}

impl Role {
    /// A member; `salt` is any number, another for each, and the transmitter whom it has to follow.
    pub fn member(config: &Config, salt: u32, transmitter: Option<SocketAddr>) -> Self {
        Self::Member(Box::new(Membership::new(config.timers.slot, salt, transmitter)))
    }

    pub const fn is_transmitter(&self) -> bool {
        matches!(self, Self::Transmitter(_))
    }

    pub const fn is_member(&self) -> bool {
        matches!(self, Self::Member(_))
    }

    /// Whether it is one end of a reliable association with a group.
    pub const fn is_in_group(&self) -> bool {
        !matches!(self, Self::Unicast)
    }

    /// Whether an invitation from there is one that was asked for.
    pub fn admits(&self, from: SocketAddr) -> bool {
        matches!(self, Self::Member(it) if it.admits(from))
    }

    /// Whether a packet with this key may come from there.
    pub fn expects(&self, addressing: &Addressing, key: Key, from: SocketAddr) -> bool {
        match self {
            // Anybody may ask to join.
            Self::Transmitter(_) if key.value() == addressing.own_key() || key == Key::own(0) => {
                true
            }
            Self::Transmitter(group) => group.address_of(key.value()) == Some(from),
            Self::Unicast | Self::Member(_) => addressing.peer() == from,
        }
    }

    /// Whether such a packet means anything: members only know JCNTL, and only a request to join
    /// comes under the key that everybody in a group knows.
    pub fn understands(&self, addressing: &Addressing, input: Input, key: Key) -> bool {
        match (input, self) {
            (Input::Join, _) => self.is_in_group(),
            (_, Self::Transmitter(_)) => key.value() != addressing.own_key(),
            _ => true,
        }
    }

    /// The members of the group to which it transmits, in no order; else none.
    pub fn members(&self) -> Vec<Member> {
        if let Self::Transmitter(group) = self { group.list() } else { Vec::new() }
    }

    /// Whether both streams have come to their end, and both ends know it; of a group whether every
    /// member has everything, or is none any more.
    pub fn is_over(&self, outbound: &Outbound, inbound: &Inbound) -> bool {
        match self {
            Self::Transmitter(group) => group.len() == 0 && outbound.sender().is_all_sent(),
            Self::Unicast | Self::Member(_) => {
                outbound.is_over() && inbound.receiver().is_complete()
            }
        }
    }

    /// When somebody in the group has held up the others for too long.
    pub fn deadline(&self) -> Time {
        if let Self::Transmitter(group) = self { group.deadline() } else { Time::NEVER }
    }

    /// How long the answer to a packet waits.
    pub fn delay(&self, header: &Header) -> Duration {
        if let Self::Member(it) = self { it.delay(header) } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupPolicy;

    /// Invariant of the engine: what is not from the association's peer changes nothing.
    #[test]
    fn packets_are_expected_from_the_peer_and_requests_to_join_from_anywhere() {
        let at = |end: u8| SocketAddr::from(([192, 0, 2, end], 1));
        let ends = Addressing::opening(at(1), 7, None);
        let group = Members::new(GroupPolicy::default(), 1_000, Duration::ZERO);
        let group = Role::Transmitter(Box::new(group));
        let member = Role::Member(Box::new(Membership::new(Duration::ZERO, 1, None)));
        for role in [Role::Unicast, member] {
            assert!(role.expects(&ends, Key::returned(7), at(1)));
            assert!(!role.expects(&ends, Key::returned(7), at(2)));
            assert!(role.understands(&ends, Input::Data, Key::returned(7)));
            assert_eq!(role.understands(&ends, Input::Join, Key::returned(7)), role.is_member());
        }
        for key in [Key::returned(7), Key::own(0)] {
            assert!(group.expects(&ends, key, at(2)), "it asks to join");
            assert!(group.understands(&ends, Input::Join, key));
        }
        assert!(!group.expects(&ends, Key::returned(8), at(1)), "no key of a member");
        assert!(!group.understands(&ends, Input::Status, Key::returned(7)));
        assert!(group.understands(&ends, Input::Status, Key::returned(8)));
    }
}
