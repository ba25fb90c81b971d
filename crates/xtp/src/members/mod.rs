//! [`Members`]: who is in a reliable group, and what each has said.
//!
//! ```text
//!   JCNTL under the group's key  -> candidate, offered a key of its own; of many the oldest goes
//!   JCNTL under that key         -> member, its address is shown; at most `members_max`
//!   status                       -> rseq, alloc, echo of each -> the least of all: `floor`
//!   END, silence, slowness       -> parted: an event, and what is still said to it
//! ```
//!
//! Invariants: a candidate holds up nobody; every member that has joined is told to the user once,
//! and once more when it parts; nobody joins while the user leaves too much of that unread, so all
//! lists are bounded by `members_max` or [`CANDIDATES_MIN`].

mod entry;

use entry::Entry;
pub use entry::Waiting;

use crate::group::{GroupPolicy, Leaving, Member, MemberId};
use crate::serial::is_newer;
use crate::wire::{Control, Limits};
use dacapo_base::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// So many may be candidates, however few members there may be.
const CANDIDATES_MIN: usize = 64;

/// Who has asked, and has not shown that it hears the answer.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub address: SocketAddr,
    /// Its own key.
    pub key: u64,
    /// The `sync` of its request.
    pub asked: u32,
}

/// What goes to one member, in the order in which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// JCNTL to a candidate.
    Offer,
    /// JCNTL to a member.
    Admission,
    /// CNTL in answer to its request.
    Status,
    /// CNTL with a request.
    Question,
}

/// A member or candidate that is none any more, for whoever finds contexts by keys.
#[derive(Clone, Copy, Debug)]
pub struct Parted {
    /// The key that was offered to it.
    pub offered: u64,
    pub address: SocketAddr,
    /// Its own key.
    pub key: u64,
    pub rseq: u64,
    /// Why; `None` of a candidate.
    pub how: Option<Leaving>,
    /// Whether it has said END itself.
    pub has_said_end: bool,
}

/// What goes to one member or candidate.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub due: Due,
    pub to: SocketAddr,
    /// Its own key, and the one that was offered to it.
    pub key: u64,
    pub offered: u64,
    /// The `sync` of its latest request.
    pub asked: u32,
    /// Where the stream begins for it; 0 for a candidate.
    pub start: u64,
}

/// Who is in a reliable group.
#[derive(Debug)]
pub struct Members {
    policy: GroupPolicy,
    /// By the key that was offered to each.
    table: BTreeMap<u64, Entry>,
    candidates: VecDeque<(u64, Candidate)>,
    joined: u32,
    complete: usize,
    due: BTreeSet<(Due, u64)>,
    parted: VecDeque<Parted>,
    events: VecDeque<(Member, Option<Leaving>)>,
}

/// What a request to join leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The key that was drawn for it is its own now.
    Offered,
    /// It knows what it has to know, or is told again.
    Known,
    /// It has become a member.
    Joined,
    /// There is no room for it.
    Refused,
}

impl Members {
    pub fn new(policy: GroupPolicy) -> Self {
        Self {
            policy,
            table: BTreeMap::new(),
            candidates: VecDeque::new(),
            joined: 0,
            complete: 0,
            due: BTreeSet::new(),
            parted: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are as many as must be before the stream begins.
    pub fn is_gathered(&self) -> bool {
        self.table.len() >= self.policy.members_first
    }

    /// Whether more are gone than may be.
    pub fn is_too_few(&self) -> bool {
        self.table.len().saturating_add(self.complete) < self.policy.members_min
    }

    /// Where a member or a candidate is, by the key that was offered to it.
    pub fn address_of(&self, offered: u64) -> Option<SocketAddr> {
        let member = self.table.get(&offered).map(|entry| entry.address);
        member.or_else(|| self.candidate(offered).map(|candidate| candidate.address))
    }

    fn candidate(&self, offered: u64) -> Option<Candidate> {
        let mut candidates = self.candidates.iter();
        candidates.find(|(key, _)| *key == offered).map(|(_, candidate)| *candidate)
    }

    /// Whether this key was offered to a member.
    pub fn has(&self, offered: u64) -> bool {
        self.table.contains_key(&offered)
    }

    pub fn list(&self) -> Vec<Member> {
        self.table.values().map(Entry::member).collect()
    }

    /// What all have said at least; `None` when there is nobody.
    pub fn floor(&self) -> Option<Control> {
        self.table.values().map(|entry| entry.control).reduce(|least, control| Control {
            rseq: least.rseq.min(control.rseq),
            alloc: least.alloc.min(control.alloc),
            echo: older(least.echo, control.echo),
        })
    }

    /// The latest request for delivery that all have answered; `None` when there is nobody.
    pub fn delivered(&self) -> Option<u32> {
        self.table.values().map(|entry| entry.delivered).reduce(older)
    }

    /// The limits of each.
    pub fn limits(&self) -> impl Iterator<Item = Limits> {
        self.table.values().map(|entry| entry.limits)
    }

    /// When each has been heard at least; `None` when there is nobody.
    pub fn heard(&self) -> Option<Time> {
        self.table.values().map(|entry| entry.heard).min()
    }

    /// Somebody asks under the group's key; `offered` is a key for it. Whether anybody is still
    /// admitted `is_open` says.
    pub fn handle_request(
        &mut self,
        offered: u64,
        candidate: Candidate,
        is_open: bool,
    ) -> Admission {
        let is_same =
            |address: SocketAddr, key: u64| address == candidate.address && key == candidate.key;
        // Its first request came late, or its second was lost.
        if let Some((key, known)) =
            self.candidates.iter_mut().find(|(_, known)| is_same(known.address, known.key))
        {
            known.asked = candidate.asked;
            self.due.insert((Due::Offer, *key));
            return Admission::Known;
        }
        let mut entries = self.table.iter_mut();
        if let Some((key, entry)) = entries.find(|(_, it)| is_same(it.address, it.key)) {
            entry.asked = candidate.asked;
            self.due.insert((Due::Admission, *key));
            return Admission::Known;
        }
        if !is_open || !self.has_room() {
            return Admission::Refused;
        }
        if self.candidates.len() >= self.policy.members_max.max(CANDIDATES_MIN) {
            self.forget_candidate();
        }
        self.candidates.push_back((offered, candidate));
        self.due.insert((Due::Offer, offered));
        Admission::Offered
    }

    /// Who leaves much unread gets no more to read.
    fn has_room(&self) -> bool {
        let is_read = self.events.len() <= self.policy.members_max;
        self.table.len() < self.policy.members_max && is_read
    }

    fn forget_candidate(&mut self) {
        let Some((offered, Candidate { address, key, .. })) = self.candidates.pop_front() else {
            return;
        };
        self.due.remove(&(Due::Offer, offered));
        let (rseq, how, has_said_end) = (0, None, false);
        self.parted.push_back(Parted { offered, address, key, rseq, how, has_said_end });
    }

    /// Who asks under the key that was offered to it has shown its address. What it says of its
    /// window counts from `start` on.
    pub fn handle_confirmation(
        &mut self,
        now: Time,
        offered: u64,
        asked: u32,
        start: &Control,
        limits: Limits,
    ) -> Admission {
        if let Some(entry) = self.table.get_mut(&offered) {
            entry.asked = asked;
            self.due.insert((Due::Admission, offered));
            return Admission::Known;
        }
        let Some(at) = self.candidates.iter().position(|(key, _)| *key == offered) else {
            return Admission::Refused;
        };
        if !self.has_room() {
            return Admission::Refused;
        }
        let Some((_, candidate)) = self.candidates.remove(at) else {
            return Admission::Refused;
        };
        self.due.remove(&(Due::Offer, offered));
        let candidate = Candidate { asked, ..candidate };
        let id = MemberId(self.joined);
        self.joined = self.joined.wrapping_add(1);
        let entry = Entry::new(now, id, &candidate, start, limits);
        self.events.push_back((entry.member(), None));
        self.table.insert(offered, entry);
        self.due.insert((Due::Admission, offered));
        Admission::Joined
    }

    /// A member has said this; `next` is the next byte that is sent, `sync` the latest request.
    pub fn handle_status(
        &mut self,
        now: Time,
        offered: u64,
        said: &Control,
        (next, sync): (u64, u32),
    ) {
        let Some(entry) = self.table.get_mut(&offered) else { return };
        entry.heard = entry.heard.max(now);
        // Who joined within a message begins where it ends, which may be ahead.
        if said.rseq > next.max(entry.start) {
            return;
        }
        entry.control.rseq = entry.control.rseq.max(said.rseq);
        if said.alloc >= said.rseq {
            entry.control.alloc = entry.control.alloc.max(said.alloc);
        }
        // Of what was never asked nothing is an echo.
        if is_newer(said.echo, entry.control.echo) && !is_newer(said.echo, sync) {
            entry.control.echo = said.echo;
        }
        if entry.control.echo == sync {
            self.due.remove(&(Due::Question, offered));
        }
    }

    /// A member has other limits from now on.
    pub fn handle_limits(&mut self, offered: u64, limits: Limits) {
        if let Some(entry) = self.table.get_mut(&offered) {
            entry.limits = limits;
        }
    }

    /// A member has answered the request `echo` for delivery.
    pub fn handle_delivered(&mut self, offered: u64, echo: u32) {
        if let Some(entry) = self.table.get_mut(&offered) {
            entry.delivered = echo;
        }
    }

    /// A member asks for status, by the request `asked`.
    pub fn handle_question(&mut self, offered: u64, asked: u32) {
        if let Some(entry) = self.table.get_mut(&offered) {
            entry.asked = asked;
        }
        self.due.insert((Due::Status, offered));
    }

    /// All who have not answered the request `sync` are asked one by one.
    pub fn ask_those_behind(&mut self, sync: u32) {
        let behind = self.table.iter().filter(|(_, entry)| entry.control.echo != sync);
        self.due.extend(behind.map(|(key, _)| (Due::Question, *key)));
    }

    /// Those who have not answered the request `sync`.
    pub fn behind(&self, sync: u32) -> Vec<u64> {
        let behind = self.table.iter().filter(|(_, entry)| entry.control.echo != sync);
        behind.map(|(key, _)| *key).collect()
    }

    /// What goes to one of them next.
    pub fn pop_word(&mut self) -> Option<Word> {
        loop {
            let (due, offered) = self.due.pop_first()?;
            if due == Due::Offer {
                let Some(Candidate { address: to, key, asked }) = self.candidate(offered) else {
                    continue;
                };
                return Some(Word { due, to, key, offered, asked, start: 0 });
            }
            if let Some(&Entry { address: to, key, asked, start, .. }) = self.table.get(&offered) {
                return Some(Word { due, to, key, offered, asked, start });
            }
        }
    }

    /// Looks who holds up the others.
    pub fn watch(&mut self, now: Time, waiting: &Waiting) {
        self.table.values_mut().for_each(|entry| entry.watch(now, waiting));
    }

    /// When somebody has held up the others for too long; `extra` is what the rate takes.
    pub fn deadline(&self, extra: Duration) -> Time {
        let patience = self.policy.patience.saturating_add(extra);
        let times = self.table.values().map(|entry| entry.overdue_at(patience));
        times.min().unwrap_or(Time::NEVER)
    }

    /// Those who have, and how.
    pub fn overdue(&self, now: Time, extra: Duration) -> Vec<(u64, Leaving)> {
        let patience = self.policy.patience.saturating_add(extra);
        let late = self.table.iter().filter(|(_, entry)| entry.overdue_at(patience) <= now);
        let how = |entry: &Entry| {
            let is_silent = entry.heard + patience <= now;
            if is_silent { Leaving::Silent } else { Leaving::Slow }
        };
        late.map(|(key, entry)| (*key, how(entry))).collect()
    }

    /// A member is none any more.
    pub fn part(&mut self, offered: u64, how: Leaving, has_said_end: bool) {
        let Some(entry) = self.table.remove(&offered) else { return };
        self.complete = self.complete.saturating_add(usize::from(how == Leaving::Complete));
        self.events.push_back((entry.member(), Some(how)));
        for due in [Due::Admission, Due::Status, Due::Question] {
            self.due.remove(&(due, offered));
        }
        let Entry { address, key, control: Control { rseq, .. }, .. } = entry;
        let how = Some(how);
        self.parted.push_back(Parted { offered, address, key, rseq, how, has_said_end });
    }

    /// The association is over.
    pub fn part_all(&mut self) {
        let all: Vec<u64> = self.table.keys().copied().collect();
        all.into_iter().for_each(|key| self.part(key, Leaving::Dismissed, false));
        while !self.candidates.is_empty() {
            self.forget_candidate();
        }
    }

    pub fn pop_parted(&mut self) -> Option<Parted> {
        self.parted.pop_front()
    }

    /// What the user is told next.
    pub fn pop_event(&mut self) -> Option<(Member, Option<Leaving>)> {
        self.events.pop_front()
    }

    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }
}

/// The older of two numbers of requests.
fn older(one: u32, other: u32) -> u32 {
    if is_newer(one, other) { other } else { one }
}
