//! Flows that are sent once for several participants: each has a session, and each session a sender
//! of the one queue.
//!
//! ```text
//!   session with A: sender --+
//!   session with B: sender --+--> queue --> source of all --> A, B, C
//!   session with C: sender --+
//! ```
//!
//! Invariants: the flow ends when all of them that were accepted have finished it or are over, and
//! one at least has finished it or nobody waits to be accepted; who closes first has what waited
//! then sent to its participant, and waits for nothing that others hand over later.

use super::driver::{Guard, Shared};
use super::entry::Entry;
use super::flow::{End, Flow};
use super::handle::STALL_MAX;
use super::state::State;
use super::waiting::{Wait, Waiting};
use super::wanted::Wanted;
use dacapo_base::Time;
use dacapo_core::SessionId;
use dacapo_sys::clock;

impl Shared {
    /// Waits until what waits now in flows that others go on sending by has been sent, as long as
    /// units go, or the session is over.
    pub fn send_waiting<'a>(
        &'a self,
        mut state: Guard<'a>,
        id: SessionId,
        until: Time,
        how: Wait,
    ) -> Guard<'a> {
        let marks = state.marks(id);
        let (mut sent, mut stalled) = (state.sent(id), clock::now() + STALL_MAX);
        while !state.has_sent(id, &marks) {
            let change = Wanted::Change(id, state.changes);
            let (locked, outcome) = self.wait(state, until.min(stalled), how, &change);
            state = locked;
            let (now, now_sent) = (clock::now(), state.sent(id));
            if now_sent > sent {
                (sent, stalled) = (now_sent, now + STALL_MAX);
            }
            let is_over = state.sessions.get(&id).is_none_or(Entry::is_over);
            // Each turn is a change: who is late waits for no other.
            if outcome != Ok(true) || is_over || now >= until.min(stalled) {
                break;
            }
        }
        state
    }
}

impl State {
    /// A session with others in its flows is over, or gone: where nobody is left who would send,
    /// the sources of those who have finished are asked again, and say so.
    pub fn wake_finished(&mut self, name: &str) {
        let named = self.sessions.iter().filter(|(_, it)| it.name == name && !it.is_over());
        let flows = named.flat_map(|(id, it)| it.flows.iter().enumerate().map(move |at| (*id, at)));
        let finished = flows.filter(|(_, (_, flow))| matches!(flow.end, End::Finished(_)));
        let finished: Vec<_> = finished.map(|(id, (index, _))| (id, index)).collect();
        finished.into_iter().for_each(|(id, index)| self.wake(id, index));
    }

    /// A flow has failed for a session, or the session is over: messages that wait come to nothing,
    /// unless the flow goes on for others, who get them.
    pub fn fail_messages(&self, id: SessionId, index: usize) {
        let flow = self.sessions.get(&id).and_then(|entry| entry.flows.get(index));
        let Some(sender) = flow.and_then(Flow::sender) else { return };
        let running = self.sessions.values().filter(|entry| !entry.is_over());
        let flows = running.flat_map(|entry| &entry.flows).filter(|flow| flow.failure.is_none());
        if !flows.filter_map(Flow::sender).any(|other| other.feeds_with(sender)) {
            sender.fail_messages();
        }
    }

    /// A session is accepted: from now on its flows end with it, too.
    pub fn take_in(&mut self, id: SessionId) {
        let flows = self.sessions.get_mut(&id).into_iter().flat_map(|entry| &mut entry.flows);
        flows.for_each(Flow::take_in);
    }

    /// How many units will have been sent of each flow that others go on sending by, once all that
    /// waits now has been.
    fn marks(&mut self, id: SessionId) -> Vec<(usize, u64)> {
        let status = self.core().status(id);
        let flows = self.sessions.get(&id).map(|it| it.flows.as_slice()).unwrap_or_default();
        let marks = flows.iter().zip(status).enumerate().filter_map(|(index, (flow, its))| {
            Some((index, its.sent + its.waiting + flow.waiting_among_others()?))
        });
        marks.collect()
    }

    /// Whether so many units of each of these flows have been sent.
    fn has_sent(&mut self, id: SessionId, marks: &[(usize, u64)]) -> bool {
        let status = self.core().status(id);
        let sent = |index: usize| status.get(index).map_or(u64::MAX, |flow| flow.sent);
        marks.iter().all(|(index, mark)| sent(*index) >= *mark)
    }
}
