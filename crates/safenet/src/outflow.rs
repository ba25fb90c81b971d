//! [`Outflow`]: the messages of one route, from `send_message` to their end.
//!
//! ```text
//!   waiting: [ head data | head data | … ]  --write-->  XTP  --> awaiting: [ claim claim … ]
//!              ^ offset: so much is with XTP                       |
//!              not written: certainly not delivered                v  reports count from the front
//!                                                               Delivered
//! ```
//!
//! Invariants: messages are written in order, one after the other; a claim is in one of the two
//! queues until its ticket ends; a report never counts what was not written whole.

use crate::config::{Reach, Route};
use crate::pace::Pace;
use crate::ticket::{Cause, Claim, Ledger, Outcome, Ticket};
use crate::wire::{HEAD_LEN, Kind, LetGo, Malformed, REPORT_LEN, Report};
use dacapo_base::Time;
use dacapo_xtp::{ContextId, Engine, Member, Message, Read, UserError};
use std::collections::VecDeque;
use std::ops::Range;

/// Tickets that have ended, and how.
pub type Ended = VecDeque<(Ticket, Outcome)>;

/// A message that XTP does not have whole.
#[derive(Debug)]
pub struct Waiting {
    pub claim: Claim,
    pub head: [u8; HEAD_LEN],
    pub data: Vec<u8>,
}

/// A message that XTP has whole. Of members of a reliable group it is known which bytes they have.
#[derive(Debug)]
struct Awaiting {
    claim: Claim,
    /// The numbers of its bytes in the stream.
    span: Range<u64>,
    /// Members that have left: with all of it, and without.
    left: (u32, u32),
}

impl Awaiting {
    /// A member has left.
    fn lose(&mut self, member: &Member) {
        if member.start <= self.span.start {
            let (with, without) = &mut self.left;
            let count = if member.rseq >= self.span.end { with } else { without };
            *count = count.saturating_add(1);
        }
    }

    /// How it has ended, when every member that is left has all of it.
    fn reached(&self, members: &[Member]) -> Option<Outcome> {
        let mut there = members.iter().filter(|member| member.start <= self.span.start);
        let count = there.clone().count() as u32;
        let (with, lost) = self.left;
        let is_reached = there.all(|member| member.rseq >= self.span.end);
        is_reached.then_some(Outcome::Reached { members: count.saturating_add(with), lost })
    }
}

/// What the reports say beside what was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing.
    Nothing,
    /// The receiver takes no more.
    LetGo(LetGo),
    /// No report can come any more.
    Over,
}

/// What becomes of messages when their association does not go on.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub cause: Cause,
    /// Whether what was written is certainly not with the peer's user.
    pub is_certain: bool,
    /// Whether messages of which nothing was written go by another association.
    pub keeps_waiting: bool,
}

/// The messages of one route.
#[derive(Debug)]
pub struct Outflow {
    pub route: Route,
    pub context: Option<ContextId>,
    /// Whether the peer has answered.
    pub is_opened: bool,
    /// Length of the shortest message that was refused for want of room, until its user is told.
    pub wants_capacity: Option<usize>,
    pub pace: Pace,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    offset: usize,
    awaiting: VecDeque<Awaiting>,
    /// The number of the first message that waits, and of its first byte.
    next: u64,
    next_byte: u64,
    /// Members that have left while it was being written.
    left: u32,
    report: [u8; REPORT_LEN],
    report_len: usize,
}

impl Outflow {
    /// Nothing to send.
    pub fn new(route: Route) -> Self {
        Self {
            route,
            context: None,
            is_opened: false,
            wants_capacity: None,
            pace: Pace::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            offset: 0,
            awaiting: VecDeque::new(),
            next: 0,
            next_byte: 0,
            left: 0,
            report: [0; REPORT_LEN],
            report_len: 0,
        }
    }

    /// Whether every ticket has ended.
    pub fn is_at_rest(&self) -> bool {
        self.waiting.is_empty() && self.awaiting.is_empty()
    }

    /// Whether a message of `len` bytes has room.
    pub fn has_capacity(&self, len: usize, messages_max: usize, bytes_max: usize) -> bool {
        let count = self.waiting.len().saturating_add(self.awaiting.len());
        let bytes = self.waiting_bytes.saturating_add(len);
        count < messages_max && (self.waiting.is_empty() || bytes <= bytes_max)
    }

    /// One message more.
    pub fn push(&mut self, waiting: Waiting) {
        self.waiting_bytes = self.waiting_bytes.saturating_add(waiting.data.len());
        self.waiting.push_back(waiting);
    }

    /// Length of the message that is next, in bytes with its head; `None` without one.
    pub fn next_len(&self) -> Option<u64> {
        let len = |waiting: &Waiting| HEAD_LEN.saturating_add(waiting.data.len()) as u64;
        self.waiting.front().map(len)
    }

    /// Whether XTP has a part of a message.
    pub const fn is_in_message(&self) -> bool {
        self.offset > 0
    }

    /// Gives XTP what it takes. An association with a group that does not repair carries one
    /// message.
    ///
    /// # Errors
    /// What XTP says when it takes nothing any more.
    pub fn write(&mut self, now: Time, engine: &mut Engine) -> Result<(), UserError> {
        let Some(id) = self.context else { return Ok(()) };
        let is_one = self.route.reach == Reach::Group;
        while !is_one || self.awaiting.is_empty() {
            let Some(waiting) = self.waiting.front() else { break };
            let (number, offset) = (self.next, self.offset);
            self.offset = write_some(now, engine, id, waiting, offset, number)?;
            if self.offset < HEAD_LEN.saturating_add(waiting.data.len()) {
                break;
            }
            self.all_written();
            if is_one {
                engine.finish(now, id)?;
            }
        }
        Ok(())
    }

    fn all_written(&mut self) {
        self.offset = 0;
        if let Some(waiting) = self.waiting.pop_front() {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.data.len());
            let len = HEAD_LEN.saturating_add(waiting.data.len()) as u64;
            let span = self.next_byte..self.next_byte.saturating_add(len);
            self.next_byte = span.end;
            let left = (0, std::mem::take(&mut self.left));
            self.awaiting.push_back(Awaiting { claim: waiting.claim, span, left });
            self.next = self.next.saturating_add(1);
        }
    }

    /// Takes the reports that have come.
    ///
    /// # Errors
    /// [`Malformed`]: they are none, or count what cannot be.
    pub fn read_reports(
        &mut self,
        now: Time,
        engine: &mut Engine,
        ledger: &mut Ledger,
        ended: &mut Ended,
    ) -> Result<Heard, Malformed> {
        let Some(id) = self.context else { return Ok(Heard::Nothing) };
        loop {
            let rest = self.report.get_mut(self.report_len..).unwrap_or_default();
            let (len, is_end) = match engine.read(now, id, rest) {
                Ok(Read::Data { len, is_end, .. }) if len > 0 => (len, is_end),
                Ok(Read::Data { .. } | Read::Hole { .. }) => return Err(Malformed),
                Ok(Read::Nothing) => return Ok(Heard::Nothing),
                Ok(Read::Finished) | Err(_) => return Ok(Heard::Over),
            };
            self.report_len = self.report_len.saturating_add(len);
            if is_end != (self.report_len == REPORT_LEN) {
                return Err(Malformed);
            }
            if is_end {
                self.report_len = 0;
                let report = Report::parse(self.report)?;
                self.take(report.count, ledger, ended)?;
                if let Kind::LetGo(let_go) = report.kind {
                    return Ok(Heard::LetGo(let_go));
                }
            }
        }
    }

    /// So many messages of the association are with the peer's user.
    fn take(
        &mut self,
        count: u64,
        ledger: &mut Ledger,
        ended: &mut Ended,
    ) -> Result<(), Malformed> {
        let told = self.next.saturating_sub(self.awaiting.len() as u64);
        if count < told || count > self.next {
            return Err(Malformed);
        }
        let new = usize::try_from(count.saturating_sub(told)).unwrap_or(usize::MAX);
        for awaiting in self.awaiting.drain(..new.min(self.awaiting.len())) {
            ended.push_back((ledger.close(awaiting.claim, Outcome::Delivered), Outcome::Delivered));
        }
        Ok(())
    }

    /// Whether messages wait for members of a reliable group.
    pub fn awaits_members(&self) -> bool {
        self.route.reach == Reach::ReliableGroup && self.is_opened && !self.awaiting.is_empty()
    }

    /// A member of a reliable group is none any more.
    pub fn lose_member(&mut self, member: &Member) {
        self.awaiting.iter_mut().for_each(|awaiting| awaiting.lose(member));
        if self.is_in_message() && member.start <= self.next_byte {
            self.left = self.left.saturating_add(1);
        }
    }

    /// Ends the messages that all members have that are left.
    pub fn settle_reached(&mut self, members: &[Member], ledger: &mut Ledger, ended: &mut Ended) {
        while let Some(outcome) = self.awaiting.front().and_then(|first| first.reached(members)) {
            let Some(awaiting) = self.awaiting.pop_front() else { break };
            ended.push_back((ledger.close(awaiting.claim, outcome), outcome));
        }
    }

    /// What was written has left for a group.
    pub fn settle_sent(&mut self, ledger: &mut Ledger, ended: &mut Ended) {
        for awaiting in self.awaiting.drain(..) {
            ended.push_back((ledger.close(awaiting.claim, Outcome::Sent), Outcome::Sent));
        }
        self.detach();
    }

    /// The association does not go on.
    pub fn settle_lost(&mut self, loss: Loss, ledger: &mut Ledger, ended: &mut Ended) {
        let Loss { cause, is_certain, keeps_waiting } = loss;
        let failed = Outcome::Failed(cause);
        let written = if is_certain { failed } else { Outcome::Unknown(cause) };
        for awaiting in self.awaiting.drain(..) {
            ended.push_back((ledger.close(awaiting.claim, written), written));
        }
        // What was written in part cannot be with anybody whole.
        let begun = usize::from(self.offset > 0);
        let lost = if keeps_waiting { begun } else { self.waiting.len() };
        for waiting in self.waiting.drain(..lost.min(self.waiting.len())) {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(waiting.data.len());
            ended.push_back((ledger.close(waiting.claim, failed), failed));
        }
        self.detach();
    }

    /// Forgets the association. Messages to groups go on being counted, so that members see what
    /// they have missed.
    fn detach(&mut self) {
        (self.context, self.is_opened) = (None, false);
        (self.offset, self.report_len) = (0, 0);
        (self.next_byte, self.left) = (0, 0);
        if self.route.reach == Reach::Host {
            self.next = 0;
        }
    }
}

/// Writes from `offset` on, head and data; gives the new offset.
fn write_some(
    now: Time,
    engine: &mut Engine,
    id: ContextId,
    waiting: &Waiting,
    mut offset: usize,
    number: u64,
) -> Result<usize, UserError> {
    let tag = Some(number.to_be_bytes());
    if let Some(data) = waiting.head.get(offset..).filter(|rest| !rest.is_empty()) {
        let is_end = waiting.data.is_empty();
        let message = Message { is_end, tag, ..Message::part(data) };
        offset = offset.saturating_add(engine.write(now, id, &message)?);
    }
    let rest = offset.checked_sub(HEAD_LEN).and_then(|at| waiting.data.get(at..));
    if let Some(data) = rest.filter(|rest| !rest.is_empty()) {
        offset = offset.saturating_add(engine.write(now, id, &Message::whole(data))?);
    }
    Ok(offset)
}
