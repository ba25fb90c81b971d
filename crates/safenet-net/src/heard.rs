//! [`Heard`]: what the service has told and nobody has asked for yet.
//!
//! What it is not: the service's own ledger, which has counted every end already.
//!
//! Invariants: a ticket is known until its end was given to somebody, once; so many ends wait as
//! tickets were open when [`ENDS_MAX`] of them waited, for then no message is accepted; of what is
//! no end, one of a kind is kept.

use dacapo_safenet::{Event, Outcome, Route, Ticket};
use std::collections::{BTreeMap, VecDeque};

/// With so many ends that nobody has asked for, no further message is accepted.
pub const ENDS_MAX: usize = 1_024;

/// Tickets, and what was told.
#[derive(Debug, Default)]
pub struct Heard {
    open: BTreeMap<Ticket, Route>,
    ends: BTreeMap<Ticket, Outcome>,
    tidings: VecDeque<Event>,
}

impl Heard {
    /// A message was accepted.
    pub fn open(&mut self, ticket: Ticket, route: Route) {
        self.open.insert(ticket, route);
    }

    /// The service says something.
    pub fn hear(&mut self, event: Event) {
        match event {
            Event::Ended(ticket, outcome) => {
                self.open.remove(&ticket);
                self.ends.insert(ticket, outcome);
            }
            other if self.tidings.contains(&other) => {}
            other => self.tidings.push_back(other),
        }
    }

    /// Where a message goes that has not ended.
    pub fn route_of(&self, ticket: Ticket) -> Option<Route> {
        self.open.get(&ticket).copied()
    }

    /// How a message has ended; told once.
    pub fn take_end(&mut self, ticket: Ticket) -> Option<Outcome> {
        self.ends.remove(&ticket)
    }

    /// What was told next, ends first.
    pub fn take_any(&mut self) -> Option<Event> {
        let end = self.ends.pop_first().map(|(ticket, outcome)| Event::Ended(ticket, outcome));
        end.or_else(|| self.tidings.pop_front())
    }

    /// Ends that wait to be asked for.
    pub fn ends_waiting(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidings_of_one_kind_are_kept_once() {
        let mut heard = Heard::default();
        for port in [7, 7, 9, 7] {
            heard.hear(Event::Message { port });
        }
        let all: Vec<Event> = std::iter::from_fn(|| heard.take_any()).collect();
        assert_eq!(all, [Event::Message { port: 7 }, Event::Message { port: 9 }]);
    }
}
