//! [`Inflow`]: the messages of one association that was opened here; of one with a group without
//! repair it is one message.
//!
//! ```text
//!   XTP --read--> head --> part: up to part_len_max bytes --> mailbox --take--> user
//!    |                       ^ full or last: nothing is read until it is taken        |
//!    | window closes                                                             taken + 1
//!   peer waits                        reports <-- told < taken <------------------------+
//! ```
//!
//! Invariants: at most `part_len_max` bytes are kept besides XTP's window, whatever a head says,
//! and memory grows with what has come; a message counts as taken when its last part is; nothing
//! follows a part that is broken.

use crate::config::{Mode, Reach};
use crate::wire::{HEAD_LEN, Head, Kind, REPORT_LEN, Report};
use dacapo_base::Time;
use dacapo_xtp::{ContextId, Engine, Message, Read};
use std::net::SocketAddr;

/// How much is read at a time.
const PIECE_LEN: usize = 16 << 10;

/// Who sends messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sender {
    /// Where packets come from, as the network below XTP knows it.
    pub peer: SocketAddr,
    /// The port of XTP at which the sender takes answers, by its own word; 0: none.
    pub port: u16,
}

/// What follows a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Another part.
    More,
    /// Nothing: the message is whole.
    Last,
    /// Nothing: the rest will not come. Such a part is empty.
    Broken,
}

/// A message, or a part of one that is longer than [`crate::Config::part_len_max`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Who has sent it.
    pub sender: Sender,
    /// To whom it was sent.
    pub reach: Reach,
    /// The sender's priority; smaller is more urgent.
    pub priority: u16,
    /// Whether the sender waits for it to be taken.
    pub mode: Mode,
    /// The number of the message on its route, from 0; on one to a host it begins anew with each
    /// association.
    pub number: u64,
    /// Length of the whole message in bytes.
    pub len: u64,
    /// The place of the first byte in the message.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
    /// What follows.
    pub ending: Ending,
}

impl Part {
    /// Whether it is a whole message.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.offset == 0 && self.ending == Ending::Last
    }

    /// Where an answer goes, when the sender takes any.
    #[must_use]
    pub fn answer(&self) -> Option<crate::Route> {
        let Sender { peer, port } = self.sender;
        (port != 0).then(|| crate::Route::host(peer, port).with_priority(self.priority))
    }
}

/// What reading led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A part can be taken.
    Ready,
    /// More is to come.
    Nothing,
    /// The peer sends no more.
    Over,
    /// It is not what this service writes.
    Malformed,
    /// A message to a group has lost bytes.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Body {
    head: Head,
    number: u64,
    arrived: u64,
    given: u64,
}

/// The messages of one association.
#[derive(Debug)]
pub struct Inflow {
    pub port: u16,
    pub reach: Reach,
    /// Whether the association is over; what has come can still be read.
    pub is_ended: bool,
    /// Where the part stands in the mailbox, when it is ready.
    pub place: Option<(u16, u16, u64)>,
    /// Who sends.
    pub peer: SocketAddr,
    id: ContextId,
    head: [u8; HEAD_LEN],
    head_len: usize,
    number: u64,
    /// The number of the next message; `None` when it can be any: of a group's, and where a member
    /// joined in the middle.
    expected: Option<u64>,
    body: Option<Body>,
    part: Vec<u8>,
    is_broken: bool,
    taken: u64,
    told: u64,
    report: [u8; REPORT_LEN],
    /// How much of `report` has been written; all when none is under way.
    report_at: usize,
}

impl Inflow {
    /// Nothing has come.
    pub fn new(id: ContextId, port: u16, peer: SocketAddr, reach: Reach) -> Self {
        Self {
            port,
            reach,
            is_ended: false,
            place: None,
            peer,
            id,
            head: [0; HEAD_LEN],
            head_len: 0,
            number: 0,
            expected: (reach == Reach::Host).then_some(0),
            body: None,
            part: Vec::new(),
            is_broken: false,
            taken: 0,
            told: 0,
            report: [0; REPORT_LEN],
            report_at: REPORT_LEN,
        }
    }

    /// The priority of the message that is under way.
    pub fn priority(&self) -> u16 {
        self.body.map_or(u16::MAX, |body| body.head.priority)
    }

    /// Whether nothing is under way.
    pub fn is_at_rest(&self) -> bool {
        !self.is_in_message() && self.unreported() == 0
    }

    /// Whether a message has begun to come of which the user has not taken all.
    pub const fn is_in_message(&self) -> bool {
        self.body.is_some() || self.head_len > 0
    }

    /// Whether all of a message has come of which the user has not taken all.
    pub fn has_whole(&self) -> bool {
        self.body.is_some_and(|body| !self.is_broken && body.arrived == body.head.len)
    }

    /// How many messages were taken and not reported; to a group nothing is.
    pub fn unreported(&self) -> u64 {
        if self.reach == Reach::Host { self.taken.saturating_sub(self.told) } else { 0 }
    }

    /// Reads until a part is ready or nothing is there.
    pub fn read(&mut self, now: Time, engine: &mut Engine, part_len_max: usize) -> Step {
        loop {
            let step = match self.body {
                None => self.read_head(now, engine),
                Some(body) => self.read_body(now, engine, body, part_len_max),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// What a read that gave no bytes means.
    fn without_data(&self, read: Read) -> Step {
        match read {
            Read::Hole { .. } if self.reach == Reach::Group => Step::Lost,
            Read::Hole { .. } | Read::Data { .. } => Step::Malformed,
            Read::Nothing if self.is_ended => Step::Over,
            Read::Nothing => Step::Nothing,
            Read::Finished => Step::Over,
        }
    }

    fn read_head(&mut self, now: Time, engine: &mut Engine) -> Option<Step> {
        let rest = self.head.get_mut(self.head_len..).unwrap_or_default();
        let (len, is_end, tag) = match engine.read(now, self.id, rest) {
            Ok(Read::Data { len, is_end, tag }) if len > 0 => (len, is_end, tag),
            Ok(read) => return Some(self.without_data(read)),
            Err(_) => return Some(Step::Over),
        };
        if self.head_len == 0 && tag.is_none() && self.is_in_the_middle() {
            return None;
        }
        if self.head_len == 0 && !self.begins(tag) {
            return Some(Step::Malformed);
        }
        self.head_len = self.head_len.saturating_add(len);
        if self.head_len < HEAD_LEN {
            return is_end.then_some(Step::Malformed);
        }
        self.head_len = 0;
        let Ok(head) = Head::parse(self.head) else { return Some(Step::Malformed) };
        self.body = Some(Body { head, number: self.number, arrived: 0, given: 0 });
        match (is_end, head.len) {
            (true, 0) => Some(Step::Ready),
            (false, 1..) => None,
            _ => Some(Step::Malformed),
        }
    }

    /// Whether a message with this tag is the next one.
    fn begins(&mut self, tag: Option<[u8; 8]>) -> bool {
        let Some(number) = tag.map(u64::from_be_bytes) else { return false };
        self.number = number;
        let is_next = self.expected.is_none_or(|expected| expected == number);
        if self.reach != Reach::Group {
            self.expected = Some(number.wrapping_add(1));
        }
        is_next
    }

    /// Whether what comes is the rest of a message that began before this member had joined.
    fn is_in_the_middle(&self) -> bool {
        self.reach == Reach::ReliableGroup && self.expected.is_none()
    }

    fn read_body(
        &mut self,
        now: Time,
        engine: &mut Engine,
        body: Body,
        part_len_max: usize,
    ) -> Option<Step> {
        let left = usize::try_from(body.head.len.saturating_sub(body.arrived));
        let headroom = part_len_max.max(1).saturating_sub(self.part.len());
        let want = left.unwrap_or(usize::MAX).min(headroom).min(PIECE_LEN);
        let at = self.part.len();
        self.part.resize(at.saturating_add(want), 0);
        let read = engine.read(now, self.id, self.part.get_mut(at..).unwrap_or_default());
        let (len, is_end) = match read {
            Ok(Read::Data { len, is_end, .. }) => (len, is_end),
            _ => (0, false),
        };
        self.part.truncate(at.saturating_add(len));
        if len == 0 {
            return Some(read.map_or(Step::Over, |read| self.without_data(read)));
        }
        let arrived = body.arrived.saturating_add(len as u64);
        self.body = Some(Body { arrived, ..body });
        if is_end != (arrived == body.head.len) {
            return Some(Step::Malformed);
        }
        (is_end || self.part.len() >= part_len_max.max(1)).then_some(Step::Ready)
    }

    /// The rest of the message will not come. Whether the user is to be told, because it has a part
    /// of it.
    pub fn break_off(&mut self) -> bool {
        self.part = Vec::new();
        self.is_broken = self.body.is_some_and(|body| body.given > 0);
        self.is_broken
    }

    /// Gives the part that is ready.
    pub fn take(&mut self) -> Option<Part> {
        let body = self.body?;
        let data = std::mem::take(&mut self.part);
        let is_last = !self.is_broken && body.arrived == body.head.len;
        let ending = match (self.is_broken, is_last) {
            (true, _) => Ending::Broken,
            (false, true) => Ending::Last,
            (false, false) => Ending::More,
        };
        let given = body.given.saturating_add(data.len() as u64);
        self.body = (ending == Ending::More).then_some(Body { given, ..body });
        if is_last {
            self.taken = self.taken.saturating_add(1);
        }
        let Head { priority, port, len, is_urgent } = body.head;
        Some(Part {
            sender: Sender { peer: self.peer, port },
            reach: self.reach,
            priority,
            mode: if is_urgent { Mode::Synchronous } else { Mode::Asynchronous },
            number: body.number,
            len,
            offset: body.given,
            data,
            ending,
        })
    }

    /// Writes what there is to report. False when XTP has no room for all of it now.
    pub fn report(&mut self, now: Time, engine: &mut Engine) -> bool {
        self.flush(now, engine) && (self.unreported() == 0 || self.say(now, engine, Kind::Taken))
    }

    /// Writes a report of this kind after those under way. False when there was no room for it.
    pub fn say(&mut self, now: Time, engine: &mut Engine, kind: Kind) -> bool {
        if !self.flush(now, engine) {
            return false;
        }
        self.report = Report { kind, count: self.taken }.emit();
        (self.report_at, self.told) = (0, self.taken);
        self.flush(now, engine)
    }

    fn flush(&mut self, now: Time, engine: &mut Engine) -> bool {
        let rest = self.report.get(self.report_at..).unwrap_or_default();
        if rest.is_empty() {
            return true;
        }
        // A peer that wants no reports gets none.
        let taken = engine.write(now, self.id, &Message::whole(rest)).unwrap_or(rest.len());
        self.report_at = self.report_at.saturating_add(taken);
        self.report_at >= REPORT_LEN
    }
}
