//! [`Transmitter`]: what the transmitter of a reliable group knows of its members.
//!
//! ```text
//!   FIRST  to all   until `members_first` have joined, again after WTIMER
//!   JCNTL  to one   an offer to who asks, an admission to who asks under the key offered to it
//!   DATA   to all   what is new, and what somebody lacks; the slowest member is the window
//!   CNTL   to one   a handshake asks one by one those who have not answered
//!   END    to all   when every member has said that it has everything, or is none any more
//! ```
//!
//! Invariant: whatever a member says or leaves unsaid ends its own membership at most; the
//! association ends when nobody is left, or fewer than the policy asks for.

use crate::group::{GroupPolicy, Leaving, Member};
use crate::members::{Admission, Candidate, Members, Parted, Waiting, Word};
use crate::rate::{Rate, smaller};
use crate::wire::{Control, Header, Key, Limits, Options, TrafficControl};
use dacapo_base::Time;
use std::net::SocketAddr;
use std::time::Duration;

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

/// What the transmitter of a reliable group keeps beyond what every context does.
#[derive(Debug)]
pub struct Transmitter {
    members: Members,
    echo: Option<u32>,
    delivered: Option<u32>,
    /// What the rate takes for a full buffer: the most that it was.
    extra: Duration,
    buffer_len: usize,
}

impl Transmitter {
    /// Nobody has joined; `extra` is what the rate takes for a full buffer of so many bytes.
    pub fn new(policy: GroupPolicy, buffer_len: usize, extra: Duration) -> Self {
        Self { members: Members::new(policy), echo: None, delivered: None, extra, buffer_len }
    }

    pub const fn members(&self) -> &Members {
        &self.members
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
            return self.members.handle_request(asked.drawn, candidate, key != 0 && !is_over);
        }
        if is_over && !self.members.has(offered) {
            return Admission::Refused;
        }
        let Control { rseq, alloc, .. } = asked.asks.control;
        let alloc = start.saturating_add(alloc.saturating_sub(rseq));
        let start = Control { rseq: start, alloc, echo: sync };
        let limits = asked.limits.unwrap_or_default();
        self.members.handle_confirmation(now, offered, asked.header.sync, &start, limits)
    }

    /// A member has said other limits.
    pub fn handle_limits(&mut self, offered: u64, limits: Limits) {
        self.members.handle_limits(offered, limits);
    }

    /// The narrowest limits of all members.
    pub fn narrowest(&self) -> Limits {
        let most = Limits { data_len_max: u32::MAX, ..Limits::default() };
        self.members.limits().fold(most, |least, limits| Limits {
            data_len_max: smaller(least.data_len_max, limits.data_len_max),
            in_rate: smaller(least.in_rate, limits.in_rate),
            in_burst: smaller(least.in_burst, limits.in_burst),
            ..least
        })
    }

    /// The rate is another one from now on.
    pub fn handle_rate(&mut self, rate: &Rate) {
        self.extra = self.extra.max(rate.time_of(self.buffer_len));
    }

    /// A member has said this of the stream; true when it is none any more.
    pub fn handle_status(
        &mut self,
        now: Time,
        header: &Header,
        control: &Control,
        heard: &Heard,
    ) -> bool {
        let (offered, options) = (header.key.value(), header.options);
        self.members.handle_status(now, offered, control, (heard.next, heard.sync));
        if heard.is_delivery {
            self.members.handle_delivered(offered, control.echo);
        }
        let has_left = options.has_any(Options::END | Options::RCLOSE);
        if has_left {
            let is_whole = heard.end == Some(control.rseq);
            let how = if is_whole { Leaving::Complete } else { Leaving::Left };
            self.members.part(offered, how, options.has(Options::END));
        } else if options.has(Options::SREQ) {
            self.members.handle_question(offered, header.sync);
        }
        has_left
    }

    /// Members are none any more, in this way.
    pub fn part(&mut self, offered: u64, how: Leaving, has_said_end: bool) {
        self.members.part(offered, how, has_said_end);
    }

    /// The association is over: nobody is a member any more. True when the user is to be told.
    pub fn dismiss(&mut self) -> bool {
        self.members.part_all();
        self.members.has_events()
    }

    /// What all members together have said now; `None` when there is nobody.
    pub fn settle(&mut self) -> Option<Settled> {
        let floor = self.members.floor()?;
        let (heard, delivered) = (self.members.heard(), self.members.delivered());
        let is_echo_new = self.echo.replace(floor.echo) != Some(floor.echo);
        let is_delivery_new = std::mem::replace(&mut self.delivered, delivered) != delivered;
        let echo = is_echo_new.then_some(floor.echo);
        Some(Settled { floor, heard, echo, delivered: delivered.filter(|_| is_delivery_new) })
    }

    /// Looks who holds up the others: the next byte that is sent, whether a window is in the way,
    /// and the request of a handshake.
    pub fn watch(&mut self, now: Time, next: u64, is_blocked: bool, asked: Option<u32>) {
        let step = (self.buffer_len / 4) as u64;
        self.members.watch(now, &Waiting { next, is_blocked, step, asked });
    }

    /// When somebody has held up the others for too long.
    pub fn deadline(&self) -> Time {
        self.members.deadline(self.extra)
    }

    /// Members that have held up the others for too long are none any more; whether there were any.
    pub fn drop_the_late(&mut self, now: Time) -> bool {
        let late = self.members.overdue(now, self.extra);
        let is_one = !late.is_empty();
        late.into_iter().for_each(|(key, how)| self.members.part(key, how, false));
        is_one
    }

    /// Who has not answered the request `sync` does not hold up the rest; whether there were any.
    pub fn drop_the_silent(&mut self, sync: u32) -> bool {
        let silent = self.members.behind(sync);
        let is_one = !silent.is_empty();
        silent.into_iter().for_each(|key| self.members.part(key, Leaving::Silent, false));
        is_one
    }

    /// The handshake asks one by one those who have not answered the request `sync`.
    pub fn ask_those_behind(&mut self, sync: u32) {
        self.members.ask_those_behind(sync);
    }

    /// What goes to one member or candidate next.
    pub fn pop_word(&mut self) -> Option<Word> {
        self.members.pop_word()
    }

    /// What the user is told next of a member, and whether there is more.
    pub fn pop_event(&mut self) -> Option<((Member, Option<Leaving>), bool)> {
        let event = self.members.pop_event()?;
        Some((event, self.members.has_events()))
    }

    /// Who is no member or candidate any more, for who finds contexts by keys.
    pub fn pop_parted(&mut self) -> Option<Parted> {
        self.members.pop_parted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::Due;
    use crate::wire::Format;

    const NOW: Time = Time::from_millis(1_000);
    const START: u64 = 500;

    fn at(end: u8) -> SocketAddr {
        ([192, 0, 2, end], 4_040).into()
    }

    fn group(policy: GroupPolicy) -> Transmitter {
        Transmitter::new(policy, 4_000, Duration::ZERO)
    }

    /// Asks under a key: the group's, 7, or one that was offered.
    fn join(group: &mut Transmitter, end: u8, key: u64, drawn: u64, is_over: bool) -> Admission {
        let header = Header { sync: 3, ..Header::new(Key::returned(key), Format::Jcntl) };
        let control = Control { rseq: 100, alloc: 1_100, echo: 0 };
        let asks = TrafficControl { control, xkey: u64::from(end) };
        let limits = Some(Limits { in_rate: 1_000 * u32::from(end), ..Limits::default() });
        let (from, is_first) = (at(end), key == 7);
        let asked = Asked { from, header: &header, asks: &asks, limits, drawn, is_first };
        group.handle_join(NOW, &asked, (START, 9), is_over)
    }

    fn joined(count: u8, policy: GroupPolicy) -> Transmitter {
        let mut group = group(policy);
        for end in 1..=count {
            let key = 100 + u64::from(end);
            assert_eq!(join(&mut group, end, 7, key, false), Admission::Offered);
            assert_eq!(join(&mut group, end, key, 0, false), Admission::Joined);
        }
        group
    }

    /// A member says this of the stream, which is at byte 2,000 and ends there.
    fn say(group: &mut Transmitter, key: u64, options: Options, rseq: u64, echo: u32) -> bool {
        let header = Header { options, sync: 4, ..Header::new(Key::returned(key), Format::Cntl) };
        let control = Control { rseq, alloc: rseq + 500, echo };
        let heard = Heard { next: 2_000, end: Some(2_000), sync: 12, is_delivery: echo == 11 };
        group.handle_status(NOW, &header, &control, &heard)
    }

    fn words(group: &mut Transmitter) -> Vec<(Due, u64)> {
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
        assert_eq!(group.members().len(), 1);
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
        assert_eq!((group.members().len(), group.members().has(101)), (1, true));
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
        assert_eq!(group.members().len(), 0);
    }
}
