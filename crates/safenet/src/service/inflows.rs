//! [`Inflows`]: the associations that others have opened, who is let in, what is read, the mailbox,
//! and reports.
//!
//! ```text
//!   accept, join -> has_place -> Inflow -> go_on_reading -> mailbox: port, priority, order -> get
//!                     |  the oldest that rests, or of which nothing was taken, gives way    |
//!                     '--> let_go: why                          report <--- taken ----------'
//! ```
//!
//! Invariants: bounded by [`crate::Config`]; every group that was asked is told of as joined or not
//! joined, unless the service is closed before.

use super::cx::Cx;
use super::{Counters, Event, JoinError, mode_of_receivers};
use crate::config::{Mode, Reach};
use crate::inflow::{Ending, Inflow, Part, Step};
use crate::wire::{Kind, LetGo};
use dacapo_base::Time;
use dacapo_xtp::wire::Service;
use dacapo_xtp::{ContextId, Deadlines, End, Join};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// A group that was asked.
#[derive(Clone, Copy, Debug)]
struct Joined {
    group: SocketAddr,
    port: u16,
    /// Whether this end was let in.
    is_member: bool,
}

/// The associations that others have opened.
#[derive(Debug, Default)]
pub struct Inflows {
    flows: BTreeMap<ContextId, Inflow>,
    group_count: usize,
    /// Those of them that were asked for here.
    joined: BTreeMap<ContextId, Joined>,
    /// Parts that can be taken: port, priority, order.
    ready: BTreeMap<(u16, u16, u64), ContextId>,
    ready_count: u64,
    told: BTreeSet<u16>,
    counters: Counters,
    /// Associations of hosts here on which nothing is under way, and from when on they may go.
    rested: Deadlines<ContextId>,
    /// Messages to groups of which nothing can be or was taken, by their age.
    partial: Deadlines<ContextId>,
    /// Reports that are gathered.
    reports: Deadlines<ContextId>,
}

impl Inflows {
    /// What has become of what came.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many there are, groups included.
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Whether this is one.
    pub fn contains(&self, id: ContextId) -> bool {
        self.flows.contains_key(&id)
    }

    /// When [`Inflows::handle_due`] has something to do.
    pub fn deadline(&self) -> Time {
        self.reports.first()
    }

    /// Says what is due to be reported.
    pub fn handle_due(&mut self, cx: &mut Cx<'_>) {
        while let Some(id) = self.reports.pop_due(cx.now) {
            self.report(cx, id);
        }
    }

    /// Takes no more of anybody.
    pub fn close(&mut self, cx: &mut Cx<'_>) {
        for id in self.flows.keys().copied().collect::<Vec<ContextId>>() {
            self.let_go(cx, id, LetGo::Closing);
            self.remove(id);
        }
        self.ready.clear();
    }

    /// Takes the most urgent message that has come to a port, or the next part of a long one.
    pub fn get(&mut self, cx: &mut Cx<'_>, port: u16) -> Option<Part> {
        let place = self.ready.range((port, 0, 0)..=(port, u16::MAX, u64::MAX)).next();
        let Some((&place, &id)) = place else {
            self.told.remove(&port);
            return None;
        };
        self.ready.remove(&place);
        let inflow = self.flows.get_mut(&id)?;
        inflow.place = None;
        let part = inflow.take()?;
        let is_done = inflow.reach == Reach::Group && part.ending != Ending::More;
        match part.ending {
            Ending::Last => {
                self.counters.taken = self.counters.taken.saturating_add(1);
                self.report_soon(cx, id, part.mode == Mode::Synchronous);
            }
            Ending::More => {}
            Ending::Broken => {
                // Its association is gone, or closing.
                self.remove(id);
                return Some(part);
            }
        }
        if is_done {
            self.drop(cx, id);
        } else {
            self.go_on_reading(cx, id);
        }
        Some(part)
    }

    /// A message was taken: it is reported at once when the sender waits, or much is gathered.
    fn report_soon(&mut self, cx: &mut Cx<'_>, id: ContextId, is_urgent: bool) {
        let Some(inflow) = self.flows.get_mut(&id).filter(|inflow| inflow.unreported() > 0) else {
            return;
        };
        if is_urgent || inflow.unreported() >= cx.config.report_count_max {
            self.report(cx, id);
        } else {
            self.reports.set_once(id, cx.now + cx.config.report_wait);
        }
    }

    /// Writes what there is to report; what XTP has no room for waits for it.
    fn report(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        self.reports.remove(id);
        let Some(inflow) = self.flows.get_mut(&id) else { return };
        inflow.report(cx.now, cx.engine);
        if inflow.is_at_rest() {
            self.rested.set(id, cx.now + cx.config.rest_min);
        }
    }

    /// Somebody has opened an association with a port of this service.
    pub fn accept(&mut self, cx: &mut Cx<'_>, id: ContextId, port: u16) {
        let Ok(status) = cx.engine.status(id) else { return };
        let reach = match status.service {
            Service::Stream => Some(Reach::Host),
            Service::Multicast => Some(Reach::Group),
            Service::ReliableMulticast => Some(Reach::ReliableGroup),
            _ => None,
        };
        let admitted = reach.filter(|reach| self.has_place(cx, *reach));
        if admitted.is_none() {
            self.counters.refused = self.counters.refused.saturating_add(1);
            if reach != Some(Reach::Host) {
                return cx.release(id);
            }
        }
        let reach = admitted.unwrap_or(Reach::Host);
        self.flows.insert(id, Inflow::new(id, port, status.peer, reach));
        if admitted.is_none() {
            return self.let_go(cx, id, LetGo::Full);
        }
        if reach == Reach::Group {
            self.group_count = self.group_count.saturating_add(1);
            self.partial.set(id, cx.now);
        }
        self.go_on_reading(cx, id);
    }

    /// Whether one more is let in. Of messages to groups without repair the oldest of which nothing
    /// can be or was taken gives way, of other associations that which has rested longest.
    fn has_place(&mut self, cx: &mut Cx<'_>, reach: Reach) -> bool {
        let others = self.flows.len().saturating_sub(self.group_count);
        if reach == Reach::Group && self.group_count >= cx.config.group_incoming_max {
            let Some(oldest) = self.partial.pop() else { return false };
            self.lose(cx, oldest);
            return self.group_count < cx.config.group_incoming_max;
        }
        if reach != Reach::Group && others >= cx.config.incoming_max {
            let Some(oldest) = self.rested.pop_due(cx.now) else { return false };
            self.counters.rested = self.counters.rested.saturating_add(1);
            self.let_go(cx, oldest, LetGo::Rested);
        }
        true
    }

    /// Something has happened to an association that was opened here.
    pub fn handle_event(&mut self, cx: &mut Cx<'_>, id: ContextId, event: dacapo_xtp::Event) {
        use dacapo_xtp::Event as E;
        match event {
            E::Readable(_) => self.go_on_reading(cx, id),
            E::Writable(_) => self.report(cx, id),
            E::Ended(_, end) => {
                self.handle_not_joined(cx, id, end);
                if let Some(inflow) = self.flows.get_mut(&id) {
                    inflow.is_ended = true;
                }
                self.go_on_reading(cx, id);
            }
            E::Opened(_) => self.handle_opened(cx, id),
            E::Incoming { .. } | E::Delivered(_) | E::Remark(..) | E::Joined(..) | E::Left(..) => {}
        }
    }

    /// Reads on, unless a part waits to be taken.
    fn go_on_reading(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        let Some(inflow) = self.flows.get_mut(&id).filter(|inflow| inflow.place.is_none()) else {
            return;
        };
        self.rested.remove(id);
        match inflow.read(cx.now, cx.engine, cx.config.part_len_max) {
            Step::Ready => self.put_in_mailbox(cx, id),
            Step::Nothing if inflow.reach == Reach::Group || !inflow.is_at_rest() => {}
            Step::Nothing => self.rested.set(id, cx.now + cx.config.rest_min),
            Step::Over => self.finish(cx, id),
            Step::Lost => self.lose(cx, id),
            Step::Malformed => {
                self.counters.malformed = self.counters.malformed.saturating_add(1);
                self.let_go(cx, id, LetGo::Malformed);
            }
        }
    }

    fn put_in_mailbox(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        let Some(inflow) = self.flows.get_mut(&id) else { return };
        self.ready_count = self.ready_count.wrapping_add(1);
        let port = inflow.port;
        let place = (port, inflow.priority(), self.ready_count);
        inflow.place = Some(place);
        self.partial.remove(id);
        self.ready.insert(place, id);
        if self.told.insert(port) {
            cx.tidings.push_back(Event::Message { port });
        }
    }

    /// The peer sends no more: what was taken is reported, and this end closes too.
    fn finish(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        let Some(inflow) = self.flows.get(&id) else { return };
        let is_over = inflow.is_ended || inflow.reach == Reach::Group;
        if !is_over {
            self.report(cx, id);
        }
        self.break_off(cx, id);
        if is_over {
            cx.release(id);
        } else {
            cx.close_streams(id);
        }
    }

    /// A message to a group will not be whole.
    fn lose(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        self.break_off(cx, id);
        cx.release(id);
    }

    /// Takes no more of an association, and says why and how much was taken.
    fn let_go(&mut self, cx: &mut Cx<'_>, id: ContextId, why: LetGo) {
        let Some(inflow) = self.flows.get_mut(&id) else { return };
        if let Some(place) = inflow.place.take() {
            self.ready.remove(&place);
        }
        let is_said = !inflow.is_ended
            && inflow.reach == Reach::Host
            && inflow.say(cx.now, cx.engine, Kind::LetGo(why));
        self.break_off(cx, id);
        if is_said {
            cx.close_streams(id);
        } else {
            cx.release(id);
        }
    }

    /// The association is not read any more: the inflow goes, but for word of a message of which
    /// the user has a part.
    fn break_off(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        let Some(inflow) = self.flows.get_mut(&id) else { return };
        let counters = &mut self.counters;
        if inflow.has_whole() {
            counters.untaken = counters.untaken.saturating_add(1);
        } else if inflow.is_in_message() {
            counters.broken = counters.broken.saturating_add(1);
        }
        self.reports.remove(id);
        if inflow.break_off() {
            return self.put_in_mailbox(cx, id);
        }
        self.remove(id);
    }

    fn drop(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        self.remove(id);
        cx.release(id);
    }

    fn remove(&mut self, id: ContextId) {
        if let Some(inflow) = self.flows.remove(&id) {
            self.group_count =
                self.group_count.saturating_sub(usize::from(inflow.reach == Reach::Group));
        }
        self.joined.remove(&id);
        self.partial.remove(id);
        self.rested.remove(id);
        self.reports.remove(id);
    }

    /// Asks to join a group at a port.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(&mut self, cx: &mut Cx<'_>, group: SocketAddr, port: u16) -> Result<(), JoinError> {
        if self.joined.values().any(|joined| (joined.group, joined.port) == (group, port)) {
            return Err(JoinError::There { group, port });
        }
        if !self.has_place(cx, Reach::ReliableGroup) {
            return Err(JoinError::Full { count: self.flows.len() });
        }
        let mode = mode_of_receivers(cx.config);
        let join = Join { mode, ..Join::group(group, port, cx.config.source) };
        let id = cx.engine.join(cx.now, &join).map_err(JoinError::NotOpened)?;
        self.flows.insert(id, Inflow::new(id, port, group, Reach::ReliableGroup));
        self.joined.insert(id, Joined { group, port, is_member: false });
        Ok(())
    }

    /// The transmitter has let this member in.
    fn handle_opened(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        let Some(joined) = self.joined.get_mut(&id) else { return };
        joined.is_member = true;
        let Joined { group, port, .. } = *joined;
        // Only now is it known who sends.
        if let (Some(inflow), Ok(status)) = (self.flows.get_mut(&id), cx.engine.status(id)) {
            inflow.peer = status.peer;
        }
        cx.tidings.push_back(Event::Joined { group, port });
    }

    /// The association is over; one that has never begun was not joined.
    fn handle_not_joined(&mut self, cx: &mut Cx<'_>, id: ContextId, end: End) {
        let waiting = self.joined.get(&id).filter(|joined| !joined.is_member);
        if let Some(Joined { group, port, .. }) = waiting.copied() {
            cx.tidings.push_back(Event::NotJoined { group, port, end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cx::tests::{Bench, NOW};
    use super::*;
    use dacapo_xtp::Event as E;

    fn group() -> SocketAddr {
        ([239, 1, 2, 3], 4_040).into()
    }

    /// A group is asked, whose association this is.
    fn joining(flows: &mut Inflows, bench: &mut Bench) -> ContextId {
        assert_eq!(flows.join(&mut bench.cx(NOW), group(), 7), Ok(()));
        flows.joined.keys().next().copied().expect("one group is asked")
    }

    #[test]
    fn a_group_is_asked_once_and_what_comes_of_it_is_told_once() {
        let (mut flows, mut bench) = (Inflows::default(), Bench::new());
        let id = joining(&mut flows, &mut bench);
        let again = flows.join(&mut bench.cx(NOW), group(), 7);
        assert_eq!(again, Err(JoinError::There { group: group(), port: 7 }));
        assert!(flows.contains(id) && flows.count() == 1);
        flows.handle_event(&mut bench.cx(NOW), id, E::Opened(id));
        assert_eq!(bench.tidings.pop_front(), Some(Event::Joined { group: group(), port: 7 }));
        flows.handle_event(&mut bench.cx(NOW), id, E::Ended(id, End::Aborted));
        assert_eq!((bench.tidings.pop_front(), flows.count()), (None, 0), "it was joined");

        let id = joining(&mut flows, &mut bench);
        flows.handle_event(&mut bench.cx(NOW), id, E::Ended(id, End::TimedOut));
        let (group, port, end) = (group(), 7, End::TimedOut);
        assert_eq!(bench.tidings, [Event::NotJoined { group, port, end }]);
        assert_eq!((flows.count(), bench.engine.context_count()), (0, 0));
    }

    #[test]
    fn where_there_is_no_place_nobody_is_asked_and_what_rests_gives_way() {
        let (mut flows, mut bench) = (Inflows::default(), Bench::new());
        bench.config.incoming_max = 1;
        let id = joining(&mut flows, &mut bench);
        let other = SocketAddr::from(([239, 1, 2, 4], 4_040));
        let full = flows.join(&mut bench.cx(NOW), other, 7);
        assert_eq!(full, Err(JoinError::Full { count: 1 }));
        // Nothing has come by it.
        flows.report(&mut bench.cx(NOW), id);
        let later = NOW + bench.config.rest_min;
        assert_eq!(flows.join(&mut bench.cx(later), other, 7), Ok(()));
        assert!(!flows.contains(id) && flows.count() == 1);
        assert_eq!((flows.counters().rested, flows.deadline()), (1, Time::NEVER));
    }

    #[test]
    fn nothing_is_in_a_mailbox_that_was_closed_or_never_had_any() {
        let (mut flows, mut bench) = (Inflows::default(), Bench::new());
        assert!(flows.get(&mut bench.cx(NOW), 7).is_none());
        let id = joining(&mut flows, &mut bench);
        flows.close(&mut bench.cx(NOW));
        assert!(!flows.contains(id) && flows.get(&mut bench.cx(NOW), 7).is_none());
        assert!(bench.engine.status(id).is_err() && bench.leaving.is_empty());
    }
}
