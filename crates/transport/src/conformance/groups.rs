//! Rules about groups: who gets what is sent to one, and who does not.

use super::side::{Side, assert_arrive, random_bytes};
use super::{Ends, Make};
use crate::{JoinError, Membership, Outgoing, SendError, TrafficClass, Transport};
use dacapo_base::Address;
use std::net::SocketAddr;

/// An address that is no group's, where the ends have none of IP.
const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

/// A sender and members of its group, none of whom has joined yet.
pub struct Group {
    /// Who sends.
    pub sender: Box<dyn Transport>,
    /// Who may join, two at least.
    pub members: Vec<Box<dyn Transport>>,
    /// Somebody else who can send to the group.
    pub stranger: Box<dyn Transport>,
    /// What members join.
    pub membership: Membership,
}

/// A maker of groups.
pub type MakeGroup<'a> = &'a dyn Fn() -> Group;

struct Members {
    sender: Side,
    stranger: Side,
    members: Vec<Side>,
    membership: Membership,
}

impl Members {
    /// Everybody has joined.
    fn joined(group: Group) -> Self {
        let Group { sender, members, stranger, membership } = group;
        let mut sides: Vec<Side> = members.into_iter().map(Side::new).collect();
        for side in &mut sides {
            side.transport.join(&membership).expect("the group can be joined");
        }
        let (mut sender, mut stranger) = (Side::new(sender), Side::new(stranger));
        for side in [&mut sender, &mut stranger] {
            side.transport.open_data(membership.group.into()).expect("the group can be sent to");
        }
        Self { sender, stranger, members: sides, membership }
    }

    fn send(&mut self, bytes: &[u8], segment_len: usize) {
        let (lane, remote) = (TrafficClass::Data, self.membership.group);
        self.sender.send_all(&Outgoing::train(lane, remote, bytes, segment_len));
    }

    /// Checks that a member gets exactly these, as data of the source.
    fn expect(&mut self, member: usize, expected: &[Vec<u8>], what: &str) {
        let source = Address::from(self.membership.source);
        let arrivals = self.members[member].await_arrivals(expected.len());
        for (arrival, bytes) in arrivals.iter().zip(expected) {
            assert_eq!((&arrival.bytes, arrival.remote), (bytes, source), "{what}");
            assert!(arrival.by_data, "{what}");
        }
    }

    /// Checks that nothing more has come to anybody, and ends.
    fn end(mut self) {
        for side in &mut self.members {
            side.drain();
            assert_eq!(side.arrival_count(), 0, "nothing more");
        }
        self.members.into_iter().chain([self.sender, self.stranger]).for_each(Side::end);
    }
}

/// Every rule of groups.
pub fn run_groups(make: MakeGroup<'_>) {
    every_member_gets_the_same(make);
    who_has_left_gets_nothing(make);
    only_the_source_is_heard(make);
    a_member_that_does_not_read_holds_nobody_up(make);
    a_group_without_a_lane_is_not_sent_to(make);
    joining_again_is_joining_once_and_memberships_are_bounded(make);
}

/// Single datagrams and trains come to every member, whole and in the order of sending.
pub fn every_member_gets_the_same(make: MakeGroup<'_>) {
    let mut group = Members::joined(make());
    for (len, segment_len) in [(0, 0), (1, 1), (1_200, 1_200), (12_001, 1_200), (40_000, 1_300)] {
        let bytes = random_bytes(len as u64, len);
        group.send(&bytes, segment_len);
        let mut expected: Vec<_> = bytes.chunks(segment_len.max(1)).map(<[u8]>::to_vec).collect();
        if expected.is_empty() {
            expected.push(Vec::new());
        }
        for member in 0..group.members.len() {
            group.expect(member, &expected, &format!("{len} in {segment_len} to {member}"));
        }
    }
    group.end();
}

/// Who has left gets nothing, and the others go on; who joins again gets what is sent from then on.
pub fn who_has_left_gets_nothing(make: MakeGroup<'_>) {
    let mut group = Members::joined(make());
    let membership = group.membership;
    group.members[0].transport.leave(&membership);
    group.send(b"without the first", 17);
    group.expect(1, &[b"without the first".to_vec()], "one left");
    group.members[0].drain();
    assert_eq!(group.members[0].arrival_count(), 0, "it has left");
    group.members[0].transport.join(&membership).expect("it may join again");
    group.send(b"with both", 9);
    for member in [0, 1] {
        group.expect(member, &[b"with both".to_vec()], "again");
    }
    group.end();
}

/// What somebody else sends to the group is not handed up.
pub fn only_the_source_is_heard(make: MakeGroup<'_>) {
    let mut group = Members::joined(make());
    let remote = Address::from(group.membership.group);
    for bytes in [&b"from nobody"[..], &[7; 1_200]] {
        group.stranger.send_all(&Outgoing::datagram(TrafficClass::Data, remote, bytes));
    }
    group.send(b"from the source", 15);
    for member in 0..group.members.len() {
        group.expect(member, &[b"from the source".to_vec()], "the first that comes");
        let foreign = group.members[member].stats().drops.foreign;
        assert!(foreign <= 2, "{foreign} were dropped, and a network may drop them before");
    }
    group.end();
}

/// One member never reads, and another gets everything at once.
pub fn a_member_that_does_not_read_holds_nobody_up(make: MakeGroup<'_>) {
    let mut group = Members::joined(make());
    for round in 0..400_u64 {
        let bytes = random_bytes(round, 24_000);
        group.send(&bytes, 1_200);
        let expected: Vec<_> = bytes.chunks(1_200).map(<[u8]>::to_vec).collect();
        group.expect(1, &expected, "who reads");
    }
    // What the first has room for is there, and the rest is counted where that can be known.
    let membership = group.membership;
    group.members[0].transport.leave(&membership);
    group.members.truncate(2);
    group.end();
}

/// Without a data lane to it nothing is sent to a group, and that is said.
pub fn a_group_without_a_lane_is_not_sent_to(make: MakeGroup<'_>) {
    let mut group = Members::joined(make());
    let remote = Address::from(group.membership.group);
    group.sender.transport.close_data(remote);
    let result =
        group.sender.transport.send(&Outgoing::datagram(TrafficClass::Data, remote, b"where to?"));
    assert!(matches!(result, Err(SendError::Unreachable)), "{result:?}");
    assert_eq!(group.sender.stats().unreachable, 1);
    group.end();
}

/// Joining what was joined changes nothing; beyond the bound it is refused and says so.
pub fn joining_again_is_joining_once_and_memberships_are_bounded(make: MakeGroup<'_>) {
    let mut group = Members::joined(make());
    let membership = group.membership;
    group.members[0].transport.join(&membership).expect("it has joined");
    group.send(b"once", 4);
    group.expect(0, &[b"once".to_vec()], "once");
    group.expect(1, &[b"once".to_vec()], "once");
    let mut refused = None;
    for port in 1..=crate::DATA_LANES_MAX as u16 {
        let group_addr = SocketAddr::new(membership.group.ip(), 20_000 + port);
        let other = Membership { group: group_addr, ..membership };
        if let Err(error) = group.members[0].transport.join(&other) {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.expect("memberships have a bound");
    assert!(matches!(refused, JoinError::TooMany { .. }), "{refused}");
    group.end();
}

/// What is no group, or cannot be one here, is refused, and the transport goes on.
pub fn joining_what_is_no_group_is_refused(make: Make<'_>) {
    let mut ends = Ends::with_data(make());
    let source = ends.server_addr.ip().unwrap_or(NOBODY);
    let wanted = Membership { group: source, source, source_specific: false };
    let real = Membership { group: SocketAddr::from(([239, 255, 77, 9], 20_009)), ..wanted };
    let joined = ends.client.transport.join(&real);
    let knows_groups = !matches!(joined, Err(JoinError::Unsupported { .. }));
    ends.client.transport.leave(&real);
    match ends.client.transport.join(&wanted) {
        Err(JoinError::NotGroup { group }) if knows_groups => assert_eq!(group, source),
        Err(error @ JoinError::Unsupported { .. }) if !knows_groups => {
            let name = ends.client.transport.spec().name;
            assert!(error.to_string().starts_with(name), "{error}");
        }
        other => panic!("{other:?}"),
    }
    ends.client.transport.leave(&wanted);
    ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"and on"));
    assert_arrive(&mut ends, vec![b"and on".to_vec()], "after a refusal");
    ends.end();
}
