//! [`Cast`]: a session with a flow to a group, and those who have joined it.

use super::{Joined, Lab, code, ms, offer, pattern};
use dacapo_core::{Ledger, Port};
use dacapo_netlab::NodeId;
use dacapo_transport::TrafficClass;
use dacapo_wire::session::FlowOffer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const LINK: &str = "delay=20ms,jitter=2ms";
pub const UNITS: u64 = 3_000;
pub const GROUP: &str = "239.1.2.3:5004";

pub fn to_group(names: &[&str]) -> FlowOffer {
    FlowOffer { transport: 6, multicast: Some(GROUP.parse().unwrap()), ..offer("cast", names) }
}

pub struct Cast {
    pub lab: Lab,
    pub joined: Vec<(NodeId, Joined)>,
    /// Datagrams of data on the links.
    pub crossed: Arc<AtomicU64>,
}

/// A session with a flow to a group, and `count` participants that have joined it.
pub fn set_up(count: usize, names: &[&str]) -> Cast {
    set_up_with(count, to_group(names))
}

/// The same with this flow.
pub fn set_up_with(count: usize, flow: FlowOffer) -> Cast {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(UNITS);
    lab.give_up_after = ms(0);
    lab.publish("test", vec![flow]);
    let crossed = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&crossed);
    lab.world.observe(move |crossing| {
        let is_data = crossing.lane == TrafficClass::Data && crossing.bytes.first() == Some(&0x80);
        counter.fetch_add(u64::from(is_data), Ordering::Relaxed);
    });
    let mut cast = Cast { lab, joined: Vec::new(), crossed };
    for at in 0..count {
        if at > 0 {
            cast.lab.participant = cast.lab.add_participant();
        }
        cast.join();
    }
    cast
}

impl Cast {
    /// The participant joins.
    pub fn join(&mut self) {
        self.join_as(|_| ());
    }

    /// The same with a port that `adapt` has changed.
    pub fn join_as(&mut self, adapt: impl FnOnce(&mut [Option<Port>])) {
        let peer = self.lab.dial();
        let session = self.lab.set_up_as(peer, "test", adapt);
        self.joined.push((self.lab.participant, session));
    }

    pub fn activate_all(&mut self) {
        for (node, session) in self.joined.clone() {
            self.lab.participant = node;
            self.lab.activate(session.here);
        }
    }

    /// What both ends say of a member's flow, once they do; both sums close.
    pub fn account(&mut self, at: usize) -> Ledger {
        let (node, session) = self.joined[at].clone();
        self.lab.participant = node;
        let (here, there) = self.lab.ledgers(&session, 0, ms(10_000));
        assert!(here.closes() && there.closes(), "{here:?} {there:?}");
        assert_eq!((here.sent, here.delivered), (there.sent, there.delivered), "{node:?}");
        here
    }

    pub fn numbers(&self, at: usize) -> Vec<u64> {
        self.joined[at].1.numbers(0)
    }

    /// Everybody closes, and nothing is left.
    pub fn end(mut self) {
        self.close_all();
        self.lab.check_empty();
    }

    pub fn close_all(&mut self) {
        for (node, session) in std::mem::take(&mut self.joined) {
            self.lab.close(node, session.here);
            assert_eq!(code(&self.lab.end_of(node, session.here, ms(5_000))), None);
            assert_eq!(self.lab.world.memberships(node).count(), 0, "{node:?} has left the group");
        }
    }
}
