//! [`Entry`]: a session of this endpoint, and what a call may do with it now.
//!
//! ```text
//!   Joining -> Ready <-> Active        what is underway is a phase of its own: Activating, Pausing
//!      |         |         |
//!      +---------+---------+--> Over(why)
//! ```
//!
//! Invariant: `Over` is the last phase.

use super::account::{Account, Final, FlowAccount};
use super::asked::Asked;
use super::event::{Event, EventQueue, Outcome};
use super::flow::{Direction, End, Flow};
use super::join::Media;
use super::watch::Awaited;
use crate::command::Answer;
use crate::misuse::misuse;
use dacapo_base::Address;
use dacapo_core::table::Role;
use dacapo_core::{Code, Ending, Error, PeerId};
use std::num::NonZeroU16;

/// How far a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is being set up.
    Joining,
    /// It is set up, and its flows do not run.
    Ready,
    /// The peer has been asked to let them run.
    Activating,
    /// They run.
    Active,
    /// The peer has been asked to let them pause.
    Pausing,
    /// It has ended: in order, or why not.
    Over(Option<Error>),
}

/// Who has the handle of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handle {
    /// Nobody yet: it was joined by a command.
    Free,
    /// The application.
    Out,
    /// Nobody any more: it goes when it is over.
    Gone,
}

/// A session of this endpoint.
#[derive(Debug)]
pub(super) struct Entry {
    pub name: String,
    pub title: String,
    pub role: Role,
    pub peer: PeerId,
    pub remote: Address,
    pub phase: Phase,
    /// Its flows have run before.
    pub was_active: bool,
    /// The peer gives signs of life.
    pub has_contact: bool,
    pub handle: Handle,
    /// The application has closed it: calls are wrong from then on.
    pub is_closed: bool,
    /// The port of the peer's host at which it is served instead.
    pub redirect: Option<NonZeroU16>,
    pub flows: Vec<Flow>,
    /// What becomes of its media at this end; without it they are declined.
    pub media: Option<Box<Media>>,
    /// The program answers the offer.
    pub decides: bool,
    /// What calls wait for that ask the peer something.
    pub asked: Option<Box<Asked>>,
    /// What has happened, once somebody wants to know.
    pub events: Option<Box<EventQueue>>,
}

impl Entry {
    /// A session that is being set up.
    pub fn new(name: &str, role: Role, peer: PeerId, remote: Address) -> Self {
        Self {
            name: name.to_owned(),
            title: String::new(),
            role,
            peer,
            remote,
            phase: Phase::Joining,
            was_active: false,
            has_contact: true,
            handle: Handle::Out,
            is_closed: false,
            redirect: None,
            flows: Vec::new(),
            media: None,
            decides: false,
            asked: None,
            events: None,
        }
    }

    /// Keeps events from now on, if somebody wants to know.
    pub fn keep_events(&mut self, is_wanted: bool) {
        if is_wanted {
            self.events.get_or_insert_default();
        }
    }

    /// Keeps an event for who wants to know.
    pub fn tell(&mut self, event: impl FnOnce() -> Event) {
        if let Some(events) = &mut self.events {
            events.push(event());
        }
    }

    /// Keeps the account of a flow that has ended, likewise.
    pub fn tell_account(&mut self, index: usize) {
        let Self { flows, events: Some(events), .. } = self else { return };
        if let Some(flow) = flows.get(index) {
            events.push(Event::FlowEnded { account: Box::new(FlowAccount::of(flow, None)) });
        }
    }

    pub fn pop_event(&mut self) -> Option<Event> {
        self.events.as_mut()?.pop()
    }

    pub fn has_event(&self) -> bool {
        self.events.as_ref().is_some_and(|events| !events.is_empty())
    }

    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over(_))
    }

    /// Whether calls that wait have something to say for a reason that is not their flow's.
    pub fn is_done(&self) -> bool {
        self.is_closed || self.is_over()
    }

    /// Why it ended, if it has, and not in order.
    pub fn failure(&self) -> Option<&Error> {
        match &self.phase {
            Phase::Over(error) => error.as_ref(),
            _ => None,
        }
    }

    /// # Errors
    /// Misuse when the application has closed the session.
    pub fn check_open(&self) -> Result<(), Error> {
        if self.is_closed {
            let text = format!("the session \"{}\" is closed; connect or accept anew", self.name);
            return Err(misuse(text));
        }
        Ok(())
    }

    /// # Errors
    /// Misuse when the flows have never run: who waits for them then waits for ever.
    pub fn check_begun(&self) -> Result<(), Error> {
        let never = !self.was_active && self.phase != Phase::Activating && !self.is_over();
        if never && self.role == Role::Participant {
            let text =
                format!("the session \"{}\" is not active; call activate() first", self.name);
            return Err(misuse(text));
        }
        Ok(())
    }

    /// The place of a flow that goes this way.
    ///
    /// # Errors
    /// Misuse when there is no such flow, or it is not for calls, or goes the other way.
    pub fn flow_index(&self, name: &str, direction: Direction) -> Result<usize, Error> {
        let at = self.flows.iter().position(|flow| flow.info.name == name);
        let Some(index) = at else {
            let known: Vec<&str> = self.flows.iter().map(|flow| flow.info.name.as_str()).collect();
            let text = format!("the session \"{}\" has no flow \"{name}\"", self.name);
            return Err(misuse(format!("{text}; it has {}", known.join(", "))));
        };
        self.check_flow(index, direction).map(|()| index)
    }

    /// # Errors
    /// Misuse when there is no flow at this place, or it is not for calls, or goes the other way.
    pub fn check_flow(&self, index: usize, direction: Direction) -> Result<(), Error> {
        let info = self.flows.get(index).map(|flow| &flow.info);
        let name = info.map_or("", |info| info.name.as_str());
        let text = match info.map(|info| (info.is_usable, info.direction)) {
            Some((false, _)) => "is not for calls; it carries pictures or sound, or was refused",
            Some((_, Direction::Outgoing)) if direction == Direction::Incoming => {
                "is sent by this end; call send, or receive from another"
            }
            Some((_, Direction::Incoming)) if direction == Direction::Outgoing => {
                "is received by this end; call recv, or send on another"
            }
            None => return Err(misuse(format!("the session has no flow of number {index}"))),
            _ => return Ok(()),
        };
        Err(misuse(format!("the flow \"{name}\" {text}")))
    }

    /// Why a flow that this end receives has ended, when nothing of it waits: `None` is its usual
    /// end.
    pub fn end_of(&self, flow: &Flow, ending: Option<&Ending>) -> Option<Error> {
        let cause = || flow.failure.as_ref().or(self.failure()).cloned();
        match ending {
            Some(Ending::Complete) => None,
            Some(Ending::SourceFailed(text)) => {
                Some(cause().unwrap_or_else(|| Error::new(Code::AccessFailed, text)))
            }
            Some(Ending::Abnormal(text)) => {
                Some(cause().unwrap_or_else(|| Error::new(Code::ContactLost, text)))
            }
            Some(Ending::Closed) | None => Some(cause().unwrap_or_else(|| {
                let text = format!("\"{}\" before the end of \"{}\"", self.name, flow.info.name);
                Error::new(Code::Closed, text)
            })),
        }
    }

    /// Why a flow that this end sends takes no more.
    pub fn why_not_sent(&self, flow: &Flow) -> Error {
        let cause = flow.failure.as_ref().or(self.failure()).cloned();
        let text = format!("the peer has closed the session \"{}\"", self.name);
        cause.unwrap_or_else(|| Error::new(Code::Closed, text))
    }

    /// Whether what this end has sent is accounted for.
    pub fn is_accounted(&self) -> bool {
        !self.flows.iter().any(Flow::awaits_account)
    }

    /// Whether the flows at these places are over and accounted for.
    pub fn are_accounted(&self, places: &[usize]) -> bool {
        let is_known =
            |place: &usize| self.flows.get(*place).is_some_and(|it| it.account.is_some());
        places.iter().all(is_known)
    }

    /// Why it did not end in order. Whose peer left after everything was accounted for, and before
    /// it had said so, has nothing to complain of.
    pub fn disorder(&self) -> Option<&Error> {
        let present = self.flows.iter().filter(|flow| !matches!(flow.end, End::None));
        let mut accounts = present.map(|flow| flow.account.as_deref());
        let is_known = |it: &Final| it.ledger.unknown == 0 && !it.ledger.sent_at_least;
        let all = accounts.all(|account| account.is_some_and(is_known));
        self.failure().filter(|error| error.code != Code::Closed || !all)
    }

    /// Whether its flows may be let run (`true`), or pause, by this end now.
    pub fn may_switch(&self, runs: bool) -> bool {
        let from = if runs { Phase::Ready } else { Phase::Active };
        self.role == Role::Participant && self.phase == from
    }

    /// What came of what a command waits for, when that is known.
    pub fn outcome(&mut self, awaited: &Awaited) -> Option<Result<Outcome, Error>> {
        let asked = self.asked.as_mut();
        let known = match awaited {
            Awaited::Done(outcome) => Some(outcome.clone()),
            Awaited::Joined => {
                (self.phase != Phase::Joining && !self.is_over()).then_some(Ok(Outcome::Done))
            }
            Awaited::Runs(runs) => {
                let wanted = if *runs { Phase::Active } else { Phase::Ready };
                (self.phase == wanted).then_some(Ok(Outcome::Done))
            }
            Awaited::Answer(request) => {
                asked.and_then(|it| it.take_answer(*request)).map(|answer| {
                    let answer = Answer::decode(&answer?);
                    let garbled = |fault| format!("the peer's answer: {fault}");
                    answer
                        .map(Outcome::Answer)
                        .map_err(|it| Error::new(Code::Violation, garbled(it)))
                })
            }
            Awaited::Change(flow) => {
                let settled = asked.and_then(|it| it.take_change(*flow));
                settled.map(|epoch| epoch.map(Outcome::Changed))
            }
            Awaited::Drained(_) => None,
            Awaited::End => self.is_over().then(|| match self.disorder() {
                Some(error) => Err(error.clone()),
                None => Ok(Outcome::Closed(Box::new(Account::of(&self.name, &self.flows, &[])))),
            }),
        };
        // Nothing else comes after the end.
        known.or_else(|| match (&self.phase, awaited) {
            (_, Awaited::Drained(_) | Awaited::End) => None,
            (Phase::Over(None), Awaited::Joined) => {
                Some(Err(Error::new(Code::Closed, "the session ended while it was set up")))
            }
            (Phase::Over(error), _) => {
                let ended = || misuse("the session ended before that");
                Some(Err(error.clone().unwrap_or_else(ended)))
            }
            _ => None,
        })
    }
}
