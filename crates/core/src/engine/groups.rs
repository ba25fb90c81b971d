//! Groups at the receiving end: what is asked of who drives the core, and whose packets are whose.
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

use super::{Core, SessionId};
use crate::error::{Code, Error};
use crate::labels::Target;
use crate::session::FlowEnd;
use dacapo_base::Time;
use dacapo_lift::Membership;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// What a core asks of who drives it, about groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupAsk {
    /// Hand up what the source sends to the group; [`Core::handle_joined`] says whether it can be.
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
    fn membership(&self) -> Option<Membership> {
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
    labels: BTreeMap<(SocketAddr, u32), Target>,
}

impl Core {
    /// What is asked of who drives the core, one by one, in order.
    pub fn poll_group(&mut self) -> Option<GroupAsk> {
        self.groups.asks.pop_front()
    }

    /// Whether something is asked about groups.
    pub(super) fn asks_of_groups(&self) -> bool {
        !self.groups.asks.is_empty()
    }

    /// What a label from this address names, if the peer there chose it for a group.
    pub(super) fn group_target(&self, source: SocketAddr, label: u32) -> Option<Target> {
        self.groups.labels.get(&(source, label)).copied()
    }

    /// Asks for the groups of the flows that are wanted.
    pub(super) fn ask_groups(&mut self, id: SessionId) {
        let source = self.sessions.get(&id).and_then(|it| self.peers.get(&it.peer));
        let Some(source) = source.map(|peer| peer.remote) else { return };
        let ports = self.ports.get(&id).map(Vec::as_slice).unwrap_or_default();
        let Some(session) = self.sessions.get_mut(&id) else { return };
        for (index, (flow, port)) in session.flows.iter_mut().zip(ports).enumerate() {
            let (Some(group), Some(_)) = (flow.offer.multicast, port) else { continue };
            let source_specific = dacapo_lift::is_source_specific(group.ip());
            let membership = Membership { group, source, source_specific };
            flow.joined = Joined::Asked(membership);
            let users = self.groups.users.entry(membership).or_default();
            users.insert((id, index));
            // Who has joined is told again: it costs nothing, and there is one way to learn of it.
            self.groups.asks.push_back(GroupAsk::Join(membership));
        }
    }

    /// A group was joined, or could not be, for this reason.
    pub fn handle_joined(&mut self, now: Time, joined: &Membership, result: Result<(), String>) {
        self.touch();
        let users = self.groups.users.get(joined).cloned().unwrap_or_default();
        for (id, index) in users {
            let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
            let Some(flow) = flow.filter(|flow| matches!(flow.joined, Joined::Asked(_))) else {
                continue;
            };
            flow.joined = Joined::Yes(*joined);
            if let Err(why) = &result {
                self.leave_group(id, index);
                let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
                let error = Error::new(Code::NoDataPath, why.as_str());
                flow.into_iter().for_each(|flow| flow.joined = Joined::Failed(error.clone()));
            }
            self.answer_if_open(now, id);
        }
        self.drain_control(now);
    }

    /// Whether a session waits for groups to be joined before it is answered.
    pub(super) fn waits_for_groups(&self, id: SessionId) -> bool {
        let flows = self.sessions.get(&id).map(|it| it.flows.as_slice()).unwrap_or_default();
        flows.iter().any(|flow| matches!(flow.joined, Joined::Asked(_)))
    }

    /// Why the group of a flow could not be joined.
    pub(super) fn group_failure(&self, id: SessionId, index: usize) -> Option<Error> {
        match &self.sessions.get(&id)?.flows.get(index)?.joined {
            Joined::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Whether a flow comes from a sender that serves others too.
    pub(super) fn is_in_group(&self, id: SessionId, index: usize) -> bool {
        let flow = self.sessions.get(&id).and_then(|session| session.flows.get(index));
        let receiving = flow.filter(|flow| matches!(flow.end, FlowEnd::Receiver(_)));
        receiving.is_some_and(|flow| self.is_shared(flow.offer.transport))
    }

    /// Participant: a flow to a group was accepted; its packets have this label, and its units
    /// begin at `base`.
    ///
    /// # Errors
    /// [`Code::Violation`] without a base; [`Code::Internal`] when the label is one of ours.
    pub(super) fn begin_in_group(
        &mut self,
        now: Time,
        id: SessionId,
        index: usize,
        label: u32,
        base: Option<u64>,
    ) -> Result<(), Error> {
        let text = "ACCEPT has no base for a flow to a group";
        let base = base.ok_or_else(|| Error::new(Code::Violation, text))?;
        if base > crate::flow::receiver::UNITS_MAX {
            return Err(Error::new(Code::Violation, format!("a base of {base} units")));
        }
        let flow = self.sessions.get_mut(&id).and_then(|it| it.flows.get_mut(index));
        let Some(flow) = flow else { return Ok(()) };
        if let FlowEnd::Receiver(receiver) = &mut flow.end {
            receiver.join_at(base);
        }
        let target = Target { session: id.0, flow: index, epoch: 0 };
        let peer = self.sessions.get(&id).and_then(|it| self.peers.get(&it.peer));
        let Some(source) = peer.map(|peer| peer.remote) else { return Ok(()) };
        let taken = self.labels.target(label).is_some();
        if taken || self.groups.labels.insert((source, label), target).is_some() {
            let text = "the label of the flow to the group is in use here: join again";
            self.drop_flow(now, id, index, &Error::new(Code::Internal, text));
        }
        Ok(())
    }

    /// A flow needs its group no longer.
    pub(super) fn leave_group(&mut self, id: SessionId, index: usize) {
        let Some(session) = self.sessions.get_resting_mut(&id) else { return };
        let Some(flow) = session.flows.get_mut(index) else { return };
        let groups = &mut self.groups;
        if !groups.labels.is_empty() {
            groups.labels.retain(|_, it| (it.session, it.flow) != (id.0, index));
        }
        let Some(membership) = std::mem::take(&mut flow.joined).membership() else { return };
        let Some(users) = groups.users.get_mut(&membership) else { return };
        users.remove(&(id, index));
        if users.is_empty() {
            groups.users.remove(&membership);
            // What nobody has been asked for yet is not asked for.
            groups.asks.retain(|ask| *ask != GroupAsk::Join(membership));
            groups.asks.push_back(GroupAsk::Leave(membership));
        }
    }

    /// The flows of a session need their groups no longer.
    pub(super) fn leave_groups(&mut self, id: SessionId) {
        let count = self.sessions.get(&id).map_or(0, |session| session.flows.len());
        (0..count).for_each(|index| self.leave_group(id, index));
    }
}
