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

use entry::{Entry, Waiting};

use crate::group::{GroupPolicy, Leaving, Member, MemberId};
use crate::rate::{Rate, smaller};
use crate::serial::is_newer;
use crate::wire::{Control, Header, Key, Limits, Options, TrafficControl};
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

/// A request to join.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub from: SocketAddr,
    pub header: &'a Header,
    pub asks: &'a TrafficControl,
    pub limits: Option<Limits>,
    /// A key for who asks.
    pub drawn: u64,
    /// Whether it is asked under the key that everybody in the group knows.
    pub is_first: bool,
}

/// Where the stream is.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// The next byte that is sent.
    pub next: u64,
    /// Where it ends, when the user writes no more.
    pub end: Option<u64>,
    /// The latest request.
    pub sync: u32,
    /// Whether a request for delivery is answered.
    pub is_delivery: bool,
}

/// What all members together have said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Of what has arrived and of windows at least.
    pub floor: Control,
    /// When each has been heard at least.
    pub heard: Option<Time>,
    /// The latest request that all have answered, when that is news.
    pub echo: Option<u32>,
    /// The latest request for delivery that all have answered, when that is news.
    pub delivered: Option<u32>,
}

/// Who is in a reliable group, at its transmitter.
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
    /// The latest request that all have answered, and the latest for delivery.
    echo: Option<u32>,
    delivered: Option<u32>,
    /// What the rate takes for a full buffer: the most that it was.
    extra: Duration,
    buffer_len: usize,
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
    /// Nobody has joined; `extra` is what the rate takes for a full buffer of so many bytes.
    pub fn new(policy: GroupPolicy, buffer_len: usize, extra: Duration) -> Self {
        Self {
            policy,
            table: BTreeMap::new(),
            candidates: VecDeque::new(),
            joined: 0,
            complete: 0,
            due: BTreeSet::new(),
            parted: VecDeque::new(),
            events: VecDeque::new(),
            echo: None,
            delivered: None,
            extra,
            buffer_len,
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

    /// The narrowest limits of all.
    pub fn narrowest(&self) -> Limits {
        let most = Limits { data_len_max: u32::MAX, ..Limits::default() };
        self.table.values().map(|entry| entry.limits).fold(most, |least, limits| Limits {
            data_len_max: smaller(least.data_len_max, limits.data_len_max),
            in_rate: smaller(least.in_rate, limits.in_rate),
            in_burst: smaller(least.in_burst, limits.in_burst),
            ..least
        })
    }

    /// What all together have said now; `None` when there is nobody.
    pub fn settle(&mut self) -> Option<Settled> {
        let floor = self.table.values().map(|entry| entry.control).reduce(|least, control| {
            let (rseq, alloc) = (least.rseq.min(control.rseq), least.alloc.min(control.alloc));
            Control { rseq, alloc, echo: older(least.echo, control.echo) }
        })?;
        let heard = self.table.values().map(|entry| entry.heard).min();
        let delivered = self.table.values().map(|entry| entry.delivered).reduce(older);
        let is_echo_new = self.echo.replace(floor.echo) != Some(floor.echo);
        let is_delivery_new = std::mem::replace(&mut self.delivered, delivered) != delivered;
        let echo = is_echo_new.then_some(floor.echo);
        Some(Settled { floor, heard, echo, delivered: delivered.filter(|_| is_delivery_new) })
    }

    /// Somebody asks to join, or says that it has the offer; it would begin at byte `start`, and
    /// `sync` is the latest request. Nobody new is admitted when the stream `is_over`.
    pub fn handle_join(
        &mut self,
        now: Time,
        asked: &Asked<'_>,
        (start, sync): (u64, u32),
        is_over: bool,
    ) -> Admission {
        let (offered, key) = (asked.header.key.value(), Key::own(asked.asks.xkey).value());
        if asked.is_first {
            let candidate = Candidate { address: asked.from, key, asked: asked.header.sync };
            return self.handle_request(asked.drawn, candidate, key != 0 && !is_over);
        }
        if is_over && !self.has(offered) {
            return Admission::Refused;
        }
        let Control { rseq, alloc, .. } = asked.asks.control;
        let alloc = start.saturating_add(alloc.saturating_sub(rseq));
        let start = Control { rseq: start, alloc, echo: sync };
        let limits = asked.limits.unwrap_or_default();
        self.handle_confirmation(now, offered, asked.header.sync, &start, limits)
    }

    /// Somebody asks under the group's key; `offered` is a key for it. Whether anybody is still
    /// admitted `is_open` says.
    fn handle_request(&mut self, offered: u64, candidate: Candidate, is_open: bool) -> Admission {
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
        if !is_open || !self.has_capacity() {
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
    fn has_capacity(&self) -> bool {
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
    fn handle_confirmation(
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
        if !self.has_capacity() {
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

    /// A member has said this of the stream; true when it is none any more.
    pub fn handle_status(
        &mut self,
        now: Time,
        header: &Header,
        said: &Control,
        heard: &Heard,
    ) -> bool {
        let (offered, options) = (header.key.value(), header.options);
        let Some(entry) = self.table.get_mut(&offered) else { return false };
        entry.handle_status(now, said, (heard.next, heard.sync));
        if entry.control.echo == heard.sync {
            self.due.remove(&(Due::Question, offered));
        }
        if heard.is_delivery {
            entry.delivered = said.echo;
        }
        let has_left = options.has_any(Options::END | Options::RCLOSE);
        if has_left {
            let is_whole = heard.end == Some(said.rseq);
            let how = if is_whole { Leaving::Complete } else { Leaving::Left };
            self.part(offered, how, options.has(Options::END));
        } else if options.has(Options::SREQ) {
            entry.asked = header.sync;
            self.due.insert((Due::Status, offered));
        }
        has_left
    }

    /// A member has other limits from now on.
    pub fn handle_limits(&mut self, offered: u64, limits: Limits) {
        if let Some(entry) = self.table.get_mut(&offered) {
            entry.limits = limits;
        }
    }

    /// The rate is another one from now on.
    pub fn handle_rate(&mut self, rate: &Rate) {
        self.extra = self.extra.max(rate.time_of(self.buffer_len));
    }

    /// All who have not answered the request `sync` are asked one by one.
    pub fn ask_those_behind(&mut self, sync: u32) {
        let behind = self.table.iter().filter(|(_, entry)| entry.control.echo != sync);
        self.due.extend(behind.map(|(key, _)| (Due::Question, *key)));
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

    /// Looks who holds up the others: the next byte that is sent, whether a window is in the way,
    /// and the request of a handshake.
    pub fn watch(&mut self, now: Time, next: u64, is_blocked: bool, asked: Option<u32>) {
        let waiting = Waiting { next, is_blocked, step: (self.buffer_len / 4) as u64, asked };
        self.table.values_mut().for_each(|entry| entry.watch(now, &waiting));
    }

    fn patience(&self) -> Duration {
        self.policy.patience.saturating_add(self.extra)
    }

    /// When somebody has held up the others for too long.
    pub fn deadline(&self) -> Time {
        let times = self.table.values().map(|entry| entry.overdue_at(self.patience()));
        times.min().unwrap_or(Time::NEVER)
    }

    /// Who has held up the others for too long is no member any more; whether there was anybody.
    pub fn drop_the_late(&mut self, now: Time) -> bool {
        let patience = self.patience();
        self.drop_those(|entry| {
            let is_silent = entry.heard + patience <= now;
            let how = if is_silent { Leaving::Silent } else { Leaving::Slow };
            (entry.overdue_at(patience) <= now).then_some(how)
        })
    }

    /// Who has not answered the request `sync` does not hold up the rest; whether there was any.
    pub fn drop_the_silent(&mut self, sync: u32) -> bool {
        self.drop_those(|entry| (entry.control.echo != sync).then_some(Leaving::Silent))
    }

    fn drop_those(&mut self, how: impl Fn(&Entry) -> Option<Leaving>) -> bool {
        let those = self.table.iter().filter_map(|(key, entry)| Some((*key, how(entry)?)));
        let those: Vec<(u64, Leaving)> = those.collect();
        those.iter().for_each(|(key, how)| self.part(*key, *how, false));
        !those.is_empty()
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

    /// The association is over: nobody is a member any more. True when the user is to be told.
    pub fn dismiss(&mut self) -> bool {
        self.drop_those(|_| Some(Leaving::Dismissed));
        while !self.candidates.is_empty() {
            self.forget_candidate();
        }
        !self.events.is_empty()
    }

    pub fn pop_parted(&mut self) -> Option<Parted> {
        self.parted.pop_front()
    }

    /// What the user is told next, and whether there is more.
    pub fn pop_event(&mut self) -> Option<((Member, Option<Leaving>), bool)> {
        let event = self.events.pop_front()?;
        Some((event, !self.events.is_empty()))
    }
}

/// The older of two numbers of requests.
fn older(one: u32, other: u32) -> u32 {
    if is_newer(one, other) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Format;

    const NOW: Time = Time::from_millis(1_000);
    const START: u64 = 500;

    fn at(end: u8) -> SocketAddr {
        ([192, 0, 2, end], 4_040).into()
    }

    fn group(policy: GroupPolicy) -> Members {
        Members::new(policy, 4_000, Duration::ZERO)
    }

    /// Asks under a key: the group's, 7, or one that was offered.
    fn join(group: &mut Members, end: u8, key: u64, drawn: u64, is_over: bool) -> Admission {
        let header = Header { sync: 3, ..Header::new(Key::returned(key), Format::Jcntl) };
        let control = Control { rseq: 100, alloc: 1_100, echo: 0 };
        let asks = TrafficControl { control, xkey: u64::from(end) };
        let limits = Some(Limits { in_rate: 1_000 * u32::from(end), ..Limits::default() });
        let (from, is_first) = (at(end), key == 7);
        let asked = Asked { from, header: &header, asks: &asks, limits, drawn, is_first };
        group.handle_join(NOW, &asked, (START, 9), is_over)
    }

    fn joined(count: u8, policy: GroupPolicy) -> Members {
        let mut group = group(policy);
        for end in 1..=count {
            let key = 100 + u64::from(end);
            assert_eq!(join(&mut group, end, 7, key, false), Admission::Offered);
            assert_eq!(join(&mut group, end, key, 0, false), Admission::Joined);
        }
        group
    }

    /// A member says this of the stream, which is at byte 2,000 and ends there.
    fn say(group: &mut Members, key: u64, options: Options, rseq: u64, echo: u32) -> bool {
        let header = Header { options, sync: 4, ..Header::new(Key::returned(key), Format::Cntl) };
        let control = Control { rseq, alloc: rseq + 500, echo };
        let heard = Heard { next: 2_000, end: Some(2_000), sync: 12, is_delivery: echo == 11 };
        group.handle_status(NOW, &header, &control, &heard)
    }

    fn words(group: &mut Members) -> Vec<(Due, u64)> {
        std::iter::from_fn(|| group.pop_word()).map(|word| (word.due, word.offered)).collect()
    }

    /// JCNTL: who asks is offered a key, and joins when it asks under that.
    #[test]
    fn who_asks_is_offered_a_key_and_admitted_under_it() {
        let mut group = group(GroupPolicy::default());
        assert_eq!(join(&mut group, 1, 7, 101, false), Admission::Offered);
        assert_eq!(join(&mut group, 1, 7, 102, false), Admission::Known, "once more");
        assert_eq!(words(&mut group), [(Due::Offer, 101)]);
        assert_eq!(join(&mut group, 1, 102, 0, false), Admission::Refused, "never offered");
        assert_eq!(join(&mut group, 1, 101, 0, false), Admission::Joined);
        assert_eq!(words(&mut group), [(Due::Admission, 101)]);
        let floor = group.settle().map(|it| it.floor);
        let start = Control { rseq: START, alloc: START + 1_000, echo: 9 };
        assert_eq!(floor, Some(start), "its window counts from where it begins");
    }

    #[test]
    fn nobody_joins_what_is_over_and_who_has_no_key_never() {
        let mut group = joined(1, GroupPolicy::default());
        assert_eq!(join(&mut group, 2, 7, 102, true), Admission::Refused);
        assert_eq!(join(&mut group, 2, 102, 0, true), Admission::Refused);
        assert_eq!(join(&mut group, 0, 7, 103, false), Admission::Refused, "xkey 0");
        assert_eq!(join(&mut group, 1, 101, 0, true), Admission::Known, "it is told again");
    }

    /// The slowest member is the window, and the narrowest limits hold.
    #[test]
    fn all_together_have_said_the_least_of_each() {
        let mut group = joined(2, GroupPolicy::default());
        assert_eq!(group.settle().and_then(|it| it.echo), Some(9));
        assert_eq!(group.narrowest().in_rate, 1_000);
        assert!(!say(&mut group, 101, Options::NONE, 1_500, 12));
        let settled = group.settle().expect("two members");
        assert_eq!((settled.floor.rseq, settled.floor.echo, settled.echo), (START, 9, None));
        assert!(!say(&mut group, 102, Options::NONE, 700, 11));
        let settled = group.settle().expect("two members");
        assert_eq!((settled.floor.rseq, settled.echo, settled.delivered), (700, Some(11), None));
        assert!(!say(&mut group, 101, Options::NONE, 1_500, 11));
        assert_eq!(group.settle().and_then(|it| it.delivered), Some(11), "both have");
        assert_eq!(group.settle().and_then(|it| it.delivered), None, "once");
        group.handle_limits(101, Limits { in_rate: 5_000, ..Limits::default() });
        assert_eq!(group.narrowest().in_rate, 2_000);
    }

    /// END, RCLOSE: a member leaves, with everything or without; SREQ: it is answered.
    #[test]
    fn a_member_that_closes_leaves_and_one_that_asks_is_answered() {
        let mut group = joined(3, GroupPolicy::default());
        words(&mut group);
        while group.pop_event().is_some() {}
        assert!(!say(&mut group, 101, Options::SREQ, 600, 9));
        assert_eq!(words(&mut group), [(Due::Status, 101)]);
        assert!(say(&mut group, 101, Options::RCLOSE, 2_000, 12));
        assert!(say(&mut group, 102, Options::END, 1_999, 12));
        let how = |event: Option<((Member, Option<Leaving>), bool)>| {
            event.map(|((_, how), has_more)| (how, has_more))
        };
        assert_eq!(how(group.pop_event()), Some((Some(Leaving::Complete), true)));
        assert_eq!(how(group.pop_event()), Some((Some(Leaving::Left), false)));
        assert_eq!(group.len(), 1);
        assert!(group.dismiss());
        assert_eq!(how(group.pop_event()), Some((Some(Leaving::Dismissed), false)));
        assert_eq!(group.settle(), None, "nobody is left");
    }

    /// CNTL to one: a handshake asks who has not answered, and drops who never does.
    #[test]
    fn who_is_behind_is_asked_and_dropped_alone() {
        let mut group = joined(2, GroupPolicy::default());
        words(&mut group);
        say(&mut group, 101, Options::NONE, 600, 12);
        group.ask_those_behind(12);
        assert_eq!(words(&mut group), [(Due::Question, 102)]);
        assert!(group.drop_the_silent(12) && !group.drop_the_silent(12));
        assert_eq!((group.len(), group.has(101)), (1, true));
    }

    /// Patience counts beyond what the rate takes for a full buffer, the most that it was.
    #[test]
    fn patience_begins_with_what_is_in_flight_and_grows_with_a_slow_rate() {
        let policy = GroupPolicy { patience: Duration::from_secs(1), ..GroupPolicy::default() };
        let mut group = joined(1, policy);
        assert_eq!(group.deadline(), Time::NEVER);
        group.watch(NOW, 2_000, false, None);
        assert_eq!(group.deadline(), NOW + Duration::from_secs(1));
        group.handle_rate(&Rate::new(NOW, 1_000, 1_000));
        group.handle_rate(&Rate::new(NOW, 0, 0));
        let late = NOW + Duration::from_secs(5);
        assert_eq!(group.deadline(), late);
        assert!(!group.drop_the_late(Time::from_millis(5_999)) && group.drop_the_late(late));
        assert_eq!(group.len(), 0);
    }
}
