//! The receiving half: who is let in, what is read, `get_message`, and reports.

use super::{Event, Messages};
use crate::config::{Mode, Reach};
use crate::inflow::{Ending, Inflow, Part, Step};
use crate::wire::{Kind, LetGo};
use dacapo_base::Time;
use dacapo_xtp::wire::Service;
use dacapo_xtp::{ContextId, Engine};

impl Messages {
    /// GET_MESSAGE: takes the most urgent message that has come to a port, equals in the order in
    /// which they came, or the next part of a long one. `None` when there is nothing now;
    /// [`Event::Message`] says when there is.
    ///
    /// A message counts as delivered when its last part is taken.
    pub fn get_message(&mut self, now: Time, engine: &mut Engine, port: u16) -> Option<Part> {
        let place = self.ready.range((port, 0, 0)..=(port, u16::MAX, u64::MAX)).next();
        let Some((&place, &id)) = place else {
            self.told.remove(&port);
            return None;
        };
        self.ready.remove(&place);
        let inflow = self.incoming.get_mut(&id)?;
        inflow.place = None;
        let part = inflow.take()?;
        let is_done = inflow.reach == Reach::Group && part.ending != Ending::More;
        match part.ending {
            Ending::Last => {
                self.counters.taken = self.counters.taken.saturating_add(1);
                self.report_soon(now, engine, id, part.mode == Mode::Synchronous);
            }
            Ending::More => {}
            Ending::Broken => {
                // Its association is gone, or closing.
                self.remove_incoming(id);
                return Some(part);
            }
        }
        if is_done {
            self.drop_incoming(now, engine, id);
        } else {
            self.go_on_reading(now, engine, id);
        }
        Some(part)
    }

    /// A message was taken: it is reported at once when the sender waits, or much is gathered.
    fn report_soon(&mut self, now: Time, engine: &mut Engine, id: ContextId, is_urgent: bool) {
        let Some(inflow) = self.incoming.get_mut(&id).filter(|inflow| inflow.unreported() > 0)
        else {
            return;
        };
        if is_urgent || inflow.unreported() >= self.config.report_count_max {
            self.report(now, engine, id);
        } else {
            self.reports.set_once(id, now + self.config.report_wait);
        }
    }

    /// Writes what there is to report; what XTP has no room for waits for it.
    pub(super) fn report(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        self.reports.remove(id);
        let Some(inflow) = self.incoming.get_mut(&id) else { return };
        inflow.report(now, engine);
        if inflow.is_at_rest() {
            self.rested.set(id, now + self.config.rest_min);
        }
    }

    /// Somebody has opened an association with a port of this service.
    pub(super) fn accept(&mut self, now: Time, engine: &mut Engine, id: ContextId, port: u16) {
        let Ok(status) = engine.status(id) else { return };
        let reach = match status.service {
            Service::Stream => Some(Reach::Host),
            Service::Multicast => Some(Reach::Group),
            Service::ReliableMulticast => Some(Reach::ReliableGroup),
            _ => None,
        };
        let admitted = reach.filter(|reach| self.has_place(now, engine, *reach));
        if admitted.is_none() {
            self.counters.refused = self.counters.refused.saturating_add(1);
            if reach != Some(Reach::Host) {
                return self.release(now, engine, id);
            }
        }
        let reach = admitted.unwrap_or(Reach::Host);
        self.incoming.insert(id, Inflow::new(id, port, status.peer, reach));
        if admitted.is_none() {
            return self.let_go(now, engine, id, LetGo::Full);
        }
        if reach == Reach::Group {
            self.group_count = self.group_count.saturating_add(1);
            self.partial.set(id, now);
        }
        self.go_on_reading(now, engine, id);
    }

    /// Whether one more is let in. Of messages to groups without repair the oldest of which nothing
    /// can be or was taken gives way, of other associations that which has rested longest.
    pub(super) fn has_place(&mut self, now: Time, engine: &mut Engine, reach: Reach) -> bool {
        let others = self.incoming.len().saturating_sub(self.group_count);
        if reach == Reach::Group && self.group_count >= self.config.group_incoming_max {
            let Some(oldest) = self.partial.pop() else { return false };
            self.lose_incoming(now, engine, oldest);
            return self.group_count < self.config.group_incoming_max;
        }
        if reach != Reach::Group && others >= self.config.incoming_max {
            let Some(oldest) = self.rested.pop_due(now) else { return false };
            self.counters.rested = self.counters.rested.saturating_add(1);
            self.let_go(now, engine, oldest, LetGo::Rested);
        }
        true
    }

    /// Something has happened to an association that was opened here.
    pub(super) fn handle_incoming(
        &mut self,
        now: Time,
        engine: &mut Engine,
        id: ContextId,
        event: dacapo_xtp::Event,
    ) {
        use dacapo_xtp::Event as E;
        match event {
            E::Readable(_) => self.go_on_reading(now, engine, id),
            E::Writable(_) => self.report(now, engine, id),
            E::Ended(_, end) => {
                self.handle_not_joined(id, end);
                if let Some(inflow) = self.incoming.get_mut(&id) {
                    inflow.is_ended = true;
                }
                self.go_on_reading(now, engine, id);
            }
            E::Opened(_) => self.handle_opened(engine, id),
            E::Incoming { .. } | E::Delivered(_) | E::Remark(..) | E::Joined(..) | E::Left(..) => {}
        }
    }

    /// Reads on, unless a part waits to be taken.
    fn go_on_reading(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        let part_len_max = self.config.part_len_max;
        let Some(inflow) = self.incoming.get_mut(&id).filter(|inflow| inflow.place.is_none())
        else {
            return;
        };
        self.rested.remove(id);
        match inflow.read(now, engine, part_len_max) {
            Step::Ready => self.put_in_mailbox(id),
            Step::Nothing if inflow.reach == Reach::Group || !inflow.is_at_rest() => {}
            Step::Nothing => self.rested.set(id, now + self.config.rest_min),
            Step::Over => self.finish_incoming(now, engine, id),
            Step::Lost => self.lose_incoming(now, engine, id),
            Step::Malformed => {
                self.counters.malformed = self.counters.malformed.saturating_add(1);
                self.let_go(now, engine, id, LetGo::Malformed);
            }
        }
    }

    fn put_in_mailbox(&mut self, id: ContextId) {
        let Some(inflow) = self.incoming.get_mut(&id) else { return };
        self.ready_count = self.ready_count.wrapping_add(1);
        let port = inflow.port;
        let place = (port, inflow.priority(), self.ready_count);
        inflow.place = Some(place);
        self.partial.remove(id);
        self.ready.insert(place, id);
        if self.told.insert(port) {
            self.tidings.push_back(Event::Message { port });
        }
    }

    /// The peer sends no more: what was taken is reported, and this end closes too.
    fn finish_incoming(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        let Some(inflow) = self.incoming.get(&id) else { return };
        let is_over = inflow.is_ended || inflow.reach == Reach::Group;
        if !is_over {
            self.report(now, engine, id);
        }
        self.break_off(id);
        if is_over {
            self.release(now, engine, id);
        } else {
            self.close_streams(now, engine, id);
        }
    }

    /// A message to a group will not be whole.
    fn lose_incoming(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        self.break_off(id);
        self.release(now, engine, id);
    }

    /// Takes no more of an association, and says why and how much was taken.
    pub(super) fn let_go(&mut self, now: Time, engine: &mut Engine, id: ContextId, why: LetGo) {
        let Some(inflow) = self.incoming.get_mut(&id) else { return };
        if let Some(place) = inflow.place.take() {
            self.ready.remove(&place);
        }
        let is_said = !inflow.is_ended
            && inflow.reach == Reach::Host
            && inflow.say(now, engine, Kind::LetGo(why));
        self.break_off(id);
        if is_said {
            self.close_streams(now, engine, id);
        } else {
            self.release(now, engine, id);
        }
    }

    /// The association is not read any more: the inflow goes, but for word of a message of which
    /// the user has a part.
    fn break_off(&mut self, id: ContextId) {
        let Some(inflow) = self.incoming.get_mut(&id) else { return };
        let counters = &mut self.counters;
        if inflow.has_whole() {
            counters.untaken = counters.untaken.saturating_add(1);
        } else if inflow.is_in_message() {
            counters.broken = counters.broken.saturating_add(1);
        }
        self.reports.remove(id);
        if inflow.break_off() {
            return self.put_in_mailbox(id);
        }
        self.remove_incoming(id);
    }

    fn drop_incoming(&mut self, now: Time, engine: &mut Engine, id: ContextId) {
        self.remove_incoming(id);
        self.release(now, engine, id);
    }

    pub(super) fn remove_incoming(&mut self, id: ContextId) {
        if let Some(inflow) = self.incoming.remove(&id) {
            self.group_count =
                self.group_count.saturating_sub(usize::from(inflow.reach == Reach::Group));
        }
        self.joined.remove(&id);
        self.partial.remove(id);
        self.rested.remove(id);
        self.reports.remove(id);
    }
}
