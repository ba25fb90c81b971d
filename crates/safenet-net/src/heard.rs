//! [`Heard`]: what the service has told and nobody has asked for yet.
//!
//! Invariants: a ticket is known until its end was given to somebody, once; so many ends wait as
//! tickets were open when [`ENDS_MAX`] of them waited, for then no message is accepted. Each group
//! that was asked is answered, by the address with which it was named; of these and of answers that
//! wait there are [`ANSWERS_MAX`]. Of what else is told, messages and room, one of a kind is kept.

use dacapo_safenet::{Event, Outcome, Route, Ticket};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// With so many ends that nobody has asked for, no further message is accepted.
pub const ENDS_MAX: usize = 1_024;

/// With so many groups that were asked, and whose answer nobody has heard, no other one is.
pub const ANSWERS_MAX: usize = 1_024;

/// Tickets, groups that were asked, and what was told.
#[derive(Debug, Default)]
pub struct Heard {
    open: BTreeMap<Ticket, Route>,
    ends: BTreeMap<Ticket, Outcome>,
    /// How a group was named, by the one form that the network has of its address, and the port.
    asked: BTreeMap<(SocketAddr, u16), SocketAddr>,
    tidings: VecDeque<Event>,
}

impl Heard {
    /// A message was accepted.
    pub fn open(&mut self, ticket: Ticket, route: Route) {
        self.open.insert(ticket, route);
    }

    /// A group was asked, which the network knows by another form of its address.
    pub fn ask(&mut self, known: SocketAddr, port: u16, named: SocketAddr) {
        self.asked.insert((known, port), named);
    }

    /// Groups whose answer has not come, or was not heard.
    pub fn answers_waiting(&self) -> usize {
        let is_answer =
            |event: &&Event| matches!(event, Event::Joined { .. } | Event::NotJoined { .. });
        self.asked.len() + self.tidings.iter().filter(is_answer).count()
    }

    /// The service says something.
    pub fn hear(&mut self, event: Event) {
        match event {
            Event::Ended(ticket, outcome) => {
                self.open.remove(&ticket);
                self.ends.insert(ticket, outcome);
            }
            Event::Joined { group, port } => {
                let group = self.named(group, port);
                self.tidings.push_back(Event::Joined { group, port });
            }
            Event::NotJoined { group, port, end } => {
                let group = self.named(group, port);
                self.tidings.push_back(Event::NotJoined { group, port, end });
            }
            again @ (Event::Message { .. } | Event::Capacity(_))
                if self.tidings.contains(&again) => {}
            new @ (Event::Message { .. } | Event::Capacity(_)) => self.tidings.push_back(new),
        }
    }

    /// How the group was named that answers.
    fn named(&mut self, known: SocketAddr, port: u16) -> SocketAddr {
        self.asked.remove(&(known, port)).unwrap_or(known)
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
    use dacapo_xtp::End;

    #[test]
    fn tidings_of_one_kind_are_kept_once() {
        let mut heard = Heard::default();
        for port in [7, 7, 9, 7] {
            heard.hear(Event::Message { port });
        }
        let all: Vec<Event> = std::iter::from_fn(|| heard.take_any()).collect();
        assert_eq!(all, [Event::Message { port: 7 }, Event::Message { port: 9 }]);
    }

    #[test]
    fn each_group_that_was_asked_is_answered_by_the_name_it_was_given() {
        let mut heard = Heard::default();
        let [named, known]: [SocketAddr; 2] =
            [([239, 0, 0, 1], 4_040).into(), ([239, 0, 0, 1], 0).into()];
        let refused = |group| Event::NotJoined { group, port: 7, end: End::TimedOut };
        for count in 0..2 {
            assert_eq!(heard.answers_waiting(), count);
            heard.ask(known, 7, named);
            heard.hear(refused(known));
        }
        heard.ask(known, 7, named);
        heard.hear(Event::Joined { group: known, port: 7 });
        assert_eq!(heard.answers_waiting(), 3);
        let all: Vec<Event> = std::iter::from_fn(|| heard.take_any()).collect();
        let joined = Event::Joined { group: named, port: 7 };
        assert_eq!(all, [refused(named), refused(named), joined]);
        assert_eq!(heard.answers_waiting(), 0);
    }
}
