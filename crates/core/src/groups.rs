//! [`Groups`]: at the receiving end, what is asked of who drives the core, and whose packets are
//! whose.
//!
//! ```text
//!   OFFER: a flow to a group --answer--> Join(group, source) asked
//!   handle_joined: Ok, or why not ------> ANSWER: taken, or refused with the reason
//!   ACCEPT: label, base ----------------> (source, label) -> flow, units from base on
//!   the flow ended ---------------------> Leave, when no other flow needs it
//! ```
//!
//! Invariants: a membership is asked for once, however many flows need it; a label counts only from
//! the address of the peer who chose it; asks are bounded by the flows there are.

use crate::error::Error;
use crate::ids::SessionId;
use crate::labels::Target;
use dacapo_base::Address;
use dacapo_lift::Membership;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a core asks of who drives it, about groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupAsk {
    /// Hand up what the source sends to the group; [`crate::NetworkEvent::Joined`] says whether it
    /// can be.
    Join(Membership),
    /// Hand it up no longer.
    Leave(Membership),
}

/// How far a flow is with its group.
#[derive(Clone, Debug, Default)]
pub(crate) enum Joined {
    /// It has none, or needs it no longer.
    #[default]
    No,
    /// It was asked for.
    Asked(Membership),
    Yes(Membership),
    Failed(Error),
}

impl Joined {
    /// What was asked for, or is there.
    pub fn membership(&self) -> Option<Membership> {
        match self {
            Self::Asked(membership) | Self::Yes(membership) => Some(*membership),
            Self::No | Self::Failed(_) => None,
        }
    }
}

/// The groups of a core.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    asks: VecDeque<GroupAsk>,
    /// The flows that need each membership.
    users: BTreeMap<Membership, BTreeSet<(SessionId, usize)>>,
    /// The labels that peers have chosen.
    labels: BTreeMap<(Address, u32), Target>,
}

impl Groups {
    /// What is asked, one by one, in order.
    pub fn poll(&mut self) -> Option<GroupAsk> {
        self.asks.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// What a label from this address names, if the peer there chose it for a group.
    pub fn target(&self, source: Address, label: u32) -> Option<Target> {
        self.labels.get(&(source, label)).copied()
    }

    /// A flow needs a group. Who has joined is told again: it costs nothing, and there is one way
    /// to learn of it.
    pub fn ask(&mut self, user: (SessionId, usize), membership: Membership) {
        self.users.entry(membership).or_default().insert(user);
        self.asks.push_back(GroupAsk::Join(membership));
    }

    /// The flows that need a membership.
    pub fn users(&self, membership: &Membership) -> Vec<(SessionId, usize)> {
        self.users.get(membership).into_iter().flatten().copied().collect()
    }

    /// The label of a flow, as its sender chose it; false when that is in use.
    pub fn add_label(&mut self, source: Address, label: u32, target: Target) -> bool {
        self.labels.insert((source, label), target).is_none()
    }

    /// A flow needs its group no longer.
    pub fn leave(&mut self, user: (SessionId, usize), membership: Option<Membership>) {
        if !self.labels.is_empty() {
            self.labels.retain(|_, it| (it.session, it.flow) != (user.0.0, user.1));
        }
        let Some(membership) = membership else { return };
        let Some(users) = self.users.get_mut(&membership) else { return };
        users.remove(&user);
        if users.is_empty() {
            self.users.remove(&membership);
            // What nobody has been asked for yet is not asked for.
            self.asks.retain(|ask| *ask != GroupAsk::Join(membership));
            self.asks.push_back(GroupAsk::Leave(membership));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership() -> Membership {
        let group = "239.1.2.3:5000".parse().unwrap();
        Membership { group, source: "192.0.2.1:9".parse().unwrap(), source_specific: false }
    }

    fn all(groups: &mut Groups) -> Vec<GroupAsk> {
        std::iter::from_fn(|| groups.poll()).collect()
    }

    #[test]
    fn a_group_is_left_with_the_last_flow_that_needs_it() {
        let (mut groups, it) = (Groups::default(), membership());
        let users = [(SessionId(1), 0), (SessionId(2), 3)];
        users.into_iter().for_each(|user| groups.ask(user, it));
        assert_eq!(groups.users(&it), users);
        assert_eq!(all(&mut groups), [GroupAsk::Join(it), GroupAsk::Join(it)]);
        groups.leave(users[0], Some(it));
        assert_eq!(all(&mut groups), []);
        groups.leave(users[1], Some(it));
        assert_eq!(all(&mut groups), [GroupAsk::Leave(it)]);
        groups.leave(users[1], Some(it));
        assert!(groups.is_empty() && groups.users(&it).is_empty());
    }

    #[test]
    fn what_nobody_was_asked_for_is_not_asked_for() {
        let (mut groups, it) = (Groups::default(), membership());
        groups.ask((SessionId(1), 0), it);
        groups.leave((SessionId(1), 0), Some(it));
        assert_eq!(all(&mut groups), [GroupAsk::Leave(it)]);
    }

    #[test]
    fn a_label_counts_from_its_source_alone_and_goes_with_its_flow() {
        let (mut groups, it) = (Groups::default(), membership());
        let [source, group] = [it.source, it.group].map(Address::from);
        let target = Target { session: 1, flow: 0, epoch: 0 };
        assert!(groups.add_label(source, 77, target));
        assert!(!groups.add_label(source, 77, target), "it is in use");
        assert_eq!(groups.target(source, 77), Some(target));
        assert_eq!(groups.target(group, 77), None);
        groups.leave((SessionId(1), 1), None);
        assert_eq!(groups.target(source, 77), Some(target), "another flow left");
        groups.leave((SessionId(1), 0), None);
        assert_eq!(groups.target(source, 77), None);
    }
}
