//! [`Gaps`]: what has not come, until when it would be of use, and when it is to be asked for.
//!
//! ```text
//!   came       1 2 . . 5 6 . 8 |            .: missing
//!   gaps           3 4     7   next = 9     a number below next that is in no gap has come
//! ```
//!
//! A gap is first asked for after as long as packets overtook each other lately, for what took
//! another way comes by itself, but in time for one answer; again when an answer is overdue; and no
//! more once an answer would come too late. Each packet of it is given up at its time, which is
//! told, and what comes then is not passed on.
//!
//! Invariants: at most [`MISSING_MAX`] packets are missing, in gaps in the order of their numbers;
//! one that comes adds a gap, however many are missing, and one for each question that was asked
//! before; each is answered for once: it is found, or given up.

use super::budget::Budget;
use super::gap::{Asking, Gap, IN_TIME};
use super::given_up::GivenUp;
use super::round_trip::RoundTrip;
use dacapo_base::{Time, earlier};
use dacapo_wire::retransmission::Range;
use std::collections::VecDeque;
use std::time::Duration;

/// How many packets may be missing at a time.
pub(crate) const MISSING_MAX: u64 = 4_096;

/// What is asked for leaves at most so often: one asking says many gaps.
const ASK_EVERY: Duration = Duration::from_millis(1);

/// What was waited for in vain is waited for by this part less the next time.
const IN_VAIN: u32 = 8;

/// What a number below the next one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Was {
    /// It was missing, and has come now.
    Missing,
    /// It has come before.
    Come,
    /// It was given up.
    GivenUp,
}

#[derive(Debug)]
pub(crate) struct Gaps {
    gaps: VecDeque<Gap>,
    missing: u64,
    budget: Budget,
    given_up: GivenUp,
    round_trip: RoundTrip,
    /// Of which asking the last answer was that counted: of one asking one does.
    answered: Option<Time>,
    /// How far packets overtook each other lately.
    overtaken: Duration,
    /// When something was asked for last.
    asking: Option<Time>,
    /// When the first is to be looked at.
    due: Option<Time>,
}

impl Gaps {
    /// None; so many thousandths of what comes leave room for what is asked for twice.
    pub fn new(share_milli: u64) -> Self {
        Self {
            gaps: VecDeque::new(),
            missing: 0,
            budget: Budget::new(share_milli),
            given_up: GivenUp::default(),
            round_trip: RoundTrip::default(),
            answered: None,
            overtaken: Duration::ZERO,
            asking: None,
            due: None,
        }
    }

    /// So many have come that were not missing.
    pub fn advance(&mut self, count: u64) {
        self.budget.earn(count);
    }

    /// How many may be added.
    pub fn capacity(&self) -> u64 {
        MISSING_MAX.saturating_sub(self.missing)
    }

    /// How long an answer takes as a rule; `None` before the first.
    pub fn answer(&self) -> Option<Duration> {
        Some(self.round_trip.mean()).filter(|mean| !mean.is_zero())
    }

    /// From a question to the next, once it is known.
    pub fn round(&self) -> Duration {
        self.round_trip.wait(Duration::ZERO)
    }

    /// How far packets overtook each other lately.
    pub fn overtaken(&self) -> Duration {
        self.overtaken
    }

    /// `count` packets have not come, and one behind them has; the first is of use until `by`, each
    /// other for `apart` longer; `asked`: they were asked for then. There is capacity for them, and
    /// they are behind all that are known.
    pub fn add(
        &mut self,
        now: Time,
        first: u64,
        count: u64,
        (by, apart): (Time, Duration),
        asked: Option<Time>,
    ) {
        // What was overtaken comes by itself; but one question is asked in time.
        let latest = by - self.round_trip.mean() - IN_TIME;
        let ask = Some((now + self.overtaken).min(latest).max(now));
        let mut gap = Gap {
            first,
            count,
            seen: now,
            by,
            apart,
            ask,
            asked_last: now,
            asked_first: now,
            attempts: 0,
            is_cut: false,
            overdue: now,
            repeated: 0,
        };
        if let Some(at) = asked {
            gap.note_asked(at, self.round_trip.mean(), self.round_trip.wait(Duration::ZERO));
        }
        self.gaps.push_back(gap);
        self.missing += count;
        let next = self.soonest(gap.ask);
        self.due = earlier(self.due, earlier(next, Some(by)));
    }

    /// When what is to be asked for then can be: askings leave [`ASK_EVERY`] so often.
    fn soonest(&self, ask: Option<Time>) -> Option<Time> {
        let next = self.asking.map_or(Time::ZERO, |asking| asking + ASK_EVERY);
        ask.map(|ask| ask.max(next))
    }

    /// A packet below the next one has come; `answers` says which asking, if one.
    pub fn find(&mut self, now: Time, number: u64, answers: Option<u8>) -> Was {
        let at = self.gaps.partition_point(|gap| gap.end() <= number);
        let Some(gap) = self.gaps.get(at).copied().filter(|gap| gap.first <= number) else {
            return self.find_given_up(now, number, answers);
        };
        self.remove(at, number);
        if answers.is_none() {
            let late = now.since(gap.seen);
            self.overtaken = self.overtaken.max(late + late / 8);
        }
        if self.measure(now, &gap, answers) {
            self.overtaken -= self.overtaken / 64;
        }
        Was::Missing
    }

    fn find_given_up(&mut self, now: Time, number: u64, answers: Option<u8>) -> Was {
        let Some(run) = self.given_up.find(number) else { return Was::Come };
        self.measure(now, &run, answers);
        Was::GivenUp
    }

    /// An answer shows how long answers take, once for each asking; whether it did.
    fn measure(&mut self, now: Time, gap: &Gap, answers: Option<u8>) -> bool {
        let asked = answers.and_then(|attempt| gap.asked_at(attempt));
        let news = asked.filter(|asked| self.answered.is_none_or(|before| before < *asked));
        if let Some(asked) = news {
            self.answered = Some(asked);
            self.round_trip.add(now.since(asked));
        }
        news.is_some()
    }

    /// Takes a number out of the gap at this place.
    fn remove(&mut self, at: usize, number: u64) {
        self.missing -= 1;
        let Some(gap) = self.gaps.get_mut(at) else { return };
        let mut behind = *gap;
        behind.skip(number + 1 - gap.first);
        gap.count = number - gap.first;
        match (gap.count, behind.count) {
            (0, 0) => drop(self.gaps.remove(at)),
            (0, _) => *gap = behind,
            (_, 0) => {}
            _ => self.gaps.insert(at + 1, behind),
        }
        if self.gaps.is_empty() {
            self.due = None;
        }
    }

    /// When [`Gaps::look`] has something to do.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Gives up what is too late, and adds to `ranges` what is to be asked for now, as many as one
    /// asking has; how many were given up. `unknown`: how long an answer may take while nobody
    /// knows it.
    pub fn look(&mut self, now: Time, unknown: Duration, ranges: &mut Vec<Range>) -> u64 {
        let given_up = self.give_up(now);
        let (comes, wait) = (now + self.round_trip.mean(), self.round_trip.wait(unknown));
        if self.soonest(Some(now)) == Some(now) {
            let budget = &mut self.budget;
            let mut asking = Asking { now, comes, wait, budget, ranges };
            for gap in self.gaps.iter_mut().filter(|gap| gap.ask.is_some_and(|at| at <= now)) {
                gap.ask(&mut asking);
            }
        }
        if !ranges.is_empty() {
            self.asking = Some(now);
        }
        let due = |due, gap: &Gap| earlier(due, earlier(self.soonest(gap.ask), Some(gap.by)));
        self.due = self.gaps.iter().fold(None, due);
        given_up
    }

    fn give_up(&mut self, now: Time) -> u64 {
        let (mut count, mut in_vain) = (0, false);
        for gap in &mut self.gaps {
            let too_late = gap.too_late(now);
            if too_late > 0 {
                // Of a gap it counts once, and only where there was time to ask.
                in_vain |= gap.attempts == 0 && !gap.is_cut && gap.by > gap.seen;
                gap.is_cut = true;
                self.given_up.note(gap, too_late);
                gap.skip(too_late);
                count += too_late;
            }
        }
        self.gaps.retain(|gap| gap.count > 0);
        self.missing -= count;
        if in_vain {
            // It was not overtaken, or an answer was thought to come too late for asking.
            self.overtaken -= self.overtaken / IN_VAIN;
            self.round_trip.shorten(IN_VAIN);
        }
        count
    }

    /// Gives up the first that are missing, to make room for so many; how many were.
    pub fn make_room(&mut self, count: u64) -> u64 {
        let too_many = count.saturating_sub(self.capacity()).min(self.missing);
        let mut left = too_many;
        while left > 0
            && let Some(some) = self.give_up_first(|gap| left.min(gap.count))
        {
            left -= some;
        }
        too_many
    }

    /// Gives up what lies before `number`; how many.
    pub fn give_up_before(&mut self, number: u64) -> u64 {
        let mut given_up = 0;
        while self.first().is_some_and(|first| first < number)
            && let Some(some) = self.give_up_first(|gap| gap.count.min(number - gap.first))
        {
            given_up += some;
        }
        given_up
    }

    /// The first that is missing.
    pub fn first(&self) -> Option<u64> {
        self.gaps.front().map(|gap| gap.first)
    }

    /// Gives up so many of the first gap; returns how many.
    fn give_up_first(&mut self, count: impl Fn(&Gap) -> u64) -> Option<u64> {
        let gap = self.gaps.front_mut()?;
        let some = count(gap);
        self.given_up.note(gap, some);
        gap.skip(some);
        self.missing -= some;
        self.gaps.pop_front_if(|gap| gap.count == 0);
        Some(some)
    }

    /// Forgets all; how many were missing.
    pub fn clear(&mut self) -> u64 {
        self.gaps.clear();
        self.due = None;
        std::mem::take(&mut self.missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_wire::retransmission::{ATTEMPTS_MAX, RANGES_MAX};

    const UNKNOWN: Duration = Duration::from_millis(25);
    const AT_ONCE: Duration = Duration::ZERO;

    const fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// None, and room for what is asked for twice.
    fn none() -> Gaps {
        let mut gaps = Gaps::new(1_000);
        gaps.advance(100);
        gaps
    }

    /// What is asked for at this time, and how many are given up.
    fn look(gaps: &mut Gaps, now: Time) -> (Vec<(u32, u16, u8)>, u64) {
        let mut asked = Vec::new();
        let given_up = gaps.look(now, UNKNOWN, &mut asked);
        (asked.iter().map(|it| (it.first, it.count, it.attempt)).collect(), given_up)
    }

    #[test]
    fn what_was_asked_for_before_is_asked_for_again_when_an_answer_is_overdue() {
        let mut gaps = none();
        gaps.add(ms(0), 0, 1, (ms(200), AT_ONCE), None);
        look(&mut gaps, ms(0));
        assert_eq!(gaps.answer(), None);
        assert_eq!(gaps.find(ms(40), 0, Some(1)), Was::Missing);
        // An answer takes 40 ms, and is overdue after 120.
        gaps.add(ms(60), 5, 1, (ms(200), AT_ONCE), Some(ms(50)));
        assert_eq!(gaps.due(), Some(ms(65)), "there is hardly time for another, so it is repeated");
        assert_eq!(look(&mut gaps, ms(65)).0, [(5, 1, 2)]);
        gaps.add(ms(66), 8, 1, (ms(66), AT_ONCE), Some(ms(20)));
        assert_eq!(look(&mut gaps, ms(66)), (vec![], 1), "an answer would come too late");
        gaps.add(ms(67), 10, 1, (ms(900), AT_ONCE), Some(ms(60)));
        assert_eq!(gaps.find(ms(100), 10, Some(1)), Was::Missing);
        assert_eq!(gaps.answer(), Some(ms(40).since(Time::ZERO)), "it took 40 ms again");
    }

    #[test]
    fn gaps_are_asked_for_until_an_answer_would_come_too_late() {
        let mut gaps = none();
        gaps.add(ms(0), 3, 2, (ms(100), AT_ONCE), None);
        gaps.add(ms(0), 7, 1, (ms(100), AT_ONCE), None);
        assert_eq!(look(&mut gaps, ms(0)), (vec![(3, 2, 1), (7, 1, 1)], 0));
        assert_eq!(gaps.due(), Some(ms(25)), "nobody knows the round trip");
        assert_eq!(gaps.find(ms(20), 3, Some(1)), Was::Missing);
        assert_eq!(look(&mut gaps, ms(25)), (vec![(4, 1, 2), (7, 1, 2)], 0));
        assert_eq!(gaps.find(ms(45), 4, Some(2)), Was::Missing);
        assert_eq!(gaps.find(ms(45), 4, Some(2)), Was::Come);
        // When it was asked an answer took 20 ms as a rule, and 4 times 10 ms more at most.
        // An answer to a third asking at 85 ms would come at 105: the second is asked twice.
        assert_eq!(gaps.due(), Some(ms(40)));
        assert_eq!(look(&mut gaps, ms(40)), (vec![(7, 1, 3)], 0));
        assert_eq!(look(&mut gaps, ms(99)), (vec![], 0));
        assert_eq!(gaps.due(), Some(ms(100)));
        assert_eq!(look(&mut gaps, ms(100)), (vec![], 1));
        assert_eq!(gaps.find(ms(110), 7, Some(2)), Was::GivenUp);
        assert_eq!((gaps.due(), gaps.capacity()), (None, MISSING_MAX));
    }

    #[test]
    fn without_room_nothing_is_asked_for_twice_before_the_last_moment() {
        let mut gaps = Gaps::new(0);
        gaps.add(ms(0), 0, 1, (ms(200), AT_ONCE), None);
        look(&mut gaps, ms(0));
        assert_eq!(gaps.find(ms(40), 0, Some(1)), Was::Missing);
        // An answer takes 40 ms; it is overdue after 120, and then it is too late for another.
        gaps.add(ms(60), 5, 1, (ms(160), AT_ONCE), None);
        assert_eq!(look(&mut gaps, ms(60)).0, [(5, 1, 1)]);
        let repeated = gaps.due().unwrap();
        assert_eq!(look(&mut gaps, repeated).0, [], "at {repeated:?}");
        assert_eq!(gaps.due(), Some(ms(118)), "the last moment for a question");
        assert_eq!(look(&mut gaps, ms(118)).0, [(5, 1, 2)]);
    }

    #[test]
    fn of_a_run_each_is_given_up_at_its_time_and_what_comes_splits_it() {
        let mut gaps = none();
        gaps.add(ms(0), 10, 5, (ms(100), Duration::from_millis(10)), None);
        assert_eq!(gaps.find(ms(1), 12, None), Was::Missing);
        assert_eq!(gaps.capacity(), MISSING_MAX - 4);
        assert_eq!(look(&mut gaps, ms(5)), (vec![(10, 2, 1), (13, 2, 1)], 0));
        assert_eq!(look(&mut gaps, ms(109)).1, 1);
        assert_eq!(
            [10, 11, 12, 13].map(|n| gaps.find(ms(109), n, None)),
            [Was::GivenUp, Was::Missing, Was::Come, Was::Missing]
        );
        assert_eq!((look(&mut gaps, ms(139)).1, look(&mut gaps, ms(140)).1), (0, 1));
        assert_eq!((gaps.due(), gaps.capacity()), (None, MISSING_MAX));
    }

    #[test]
    fn what_is_overtaken_is_waited_for_as_long_as_lately() {
        let mut gaps = none();
        gaps.add(ms(0), 0, 1, (ms(100), AT_ONCE), None);
        assert_eq!(gaps.find(ms(8), 0, None), Was::Missing);
        gaps.add(ms(10), 5, 1, (ms(110), AT_ONCE), None);
        assert_eq!(gaps.due(), Some(ms(19)), "8 ms and an eighth");
        // Each question that was answered makes it shorter.
        for number in 100..600 {
            gaps.add(ms(number), number, 1, (ms(number + 100), AT_ONCE), None);
            look(&mut gaps, ms(number + 9));
            assert_eq!(gaps.find(ms(number + 30), number, Some(1)), Was::Missing);
        }
        gaps.clear();
        gaps.add(ms(900), 900, 1, (ms(999), AT_ONCE), None);
        assert!(gaps.due() < Some(ms(901)), "{:?}", gaps.due());
    }

    #[test]
    fn one_asking_has_so_many_ranges_and_the_others_are_next() {
        let mut gaps = none();
        (0..50).for_each(|at| gaps.add(ms(0), at * 2, 1, (ms(100), AT_ONCE), None));
        let (asked, _) = look(&mut gaps, ms(0));
        assert_eq!((asked.len(), gaps.due()), (RANGES_MAX, Some(ms(1))), "not at once again");
        assert_eq!(look(&mut gaps, ms(0)).0, []);
        let (asked, _) = look(&mut gaps, ms(1));
        assert_eq!((asked.len(), asked[0]), (50 - RANGES_MAX, (64, 1, 1)));
        assert_eq!(gaps.due(), Some(ms(25)));
        gaps.add(ms(1), 200, 1, (ms(100), AT_ONCE), None);
        assert_eq!(gaps.due(), Some(ms(2)));
        assert_eq!(gaps.clear(), 51);
    }

    #[test]
    fn one_that_came_very_late_does_not_keep_others_from_being_asked_for() {
        let mut gaps = none();
        gaps.add(ms(0), 0, 1, (ms(200), AT_ONCE), None);
        look(&mut gaps, ms(0));
        assert_eq!(gaps.find(ms(80), 0, Some(1)), Was::Missing, "a round trip of 80 ms");
        gaps.add(ms(100), 5, 1, (ms(300), AT_ONCE), None);
        assert_eq!(gaps.find(ms(250), 5, None), Was::Missing, "a path that changed");
        gaps.add(ms(300), 9, 1, (ms(500), AT_ONCE), None);
        assert_eq!(gaps.due(), Some(ms(418)), "the last moment for a question");
        assert_eq!(look(&mut gaps, ms(419)).0, [(9, 1, 1)]);
    }

    #[test]
    fn of_one_asking_one_answer_is_measured_and_of_what_was_given_up_too() {
        let mut gaps = none();
        gaps.add(ms(0), 0, 9, (ms(100), AT_ONCE), None);
        look(&mut gaps, ms(0));
        (0..5).for_each(|number| assert_eq!(gaps.find(ms(20), number, Some(1)), Was::Missing));
        assert_eq!(gaps.round_trip.wait(UNKNOWN), Duration::from_millis(60), "a single sample");
        assert_eq!(look(&mut gaps, ms(100)).1, 4);
        gaps.add(ms(200), 20, 1, (ms(250), AT_ONCE), None);
        look(&mut gaps, ms(200));
        assert_eq!(look(&mut gaps, ms(250)).1, 1);
        assert_eq!(gaps.find(ms(380), 20, Some(1)), Was::GivenUp);
        assert!(gaps.round_trip.mean() > Duration::from_millis(30), "180 ms count, too");
    }

    #[test]
    fn a_run_for_which_there_is_no_time_makes_round_trips_shorter_once() {
        let mut gaps = none();
        gaps.add(ms(0), 0, 1, (ms(400), AT_ONCE), None);
        look(&mut gaps, ms(0));
        assert_eq!(gaps.find(ms(205), 0, Some(1)), Was::Missing);
        gaps.add(ms(300), 10, 20, (ms(440), Duration::from_millis(2)), None);
        let mut given_up = 0;
        while let Some(due) = gaps.due() {
            given_up += look(&mut gaps, due).1;
        }
        assert_eq!(given_up, 20);
        assert!(gaps.round_trip.mean() > Duration::from_millis(170));
    }

    #[test]
    fn the_first_are_given_up_where_too_many_are_missing() {
        let mut gaps = none();
        gaps.add(ms(0), 0, MISSING_MAX - 1, (ms(900), AT_ONCE), None);
        assert_eq!((gaps.make_room(1), gaps.make_room(5)), (0, 4));
        gaps.add(ms(1), 9_000, 5, (ms(900), AT_ONCE), None);
        assert_eq!((gaps.capacity(), gaps.find(ms(2), 3, None)), (0, Was::GivenUp));
        assert_eq!([4, 9_000].map(|number| gaps.find(ms(2), number, None)), [Was::Missing; 2]);
        assert_eq!(gaps.clear(), MISSING_MAX - 2);
    }

    #[test]
    fn a_number_is_asked_for_so_often_and_no_more() {
        let mut gaps = none();
        gaps.add(ms(0), 0, 1, (ms(100_000), AT_ONCE), None);
        let mut times = 0;
        while let Some(due) = gaps.due().filter(|due| *due < ms(100_000)) {
            times += look(&mut gaps, due).0.len();
        }
        assert_eq!(times, usize::from(ATTEMPTS_MAX));
    }
}
