//! [`Silence`]: what is asked for before anything shows that it is missing.
//!
//! ```text
//!   come      1  2  3                                9
//!   lost               4    5    6    7    8
//!                      |-- quiet --> 4 ?   -> 5, 6 ?       7 and 8 are asked for when 9 comes
//! ```
//!
//! A run of losses shows when it is over, and near a deadline that is late. Where packets come
//! evenly, one that does not come is asked for without that. The question says how long ago a
//! packet must have left to be meant, so that nothing is sent twice where only the sender paused;
//! where what was asked for had only not been sent, or comes all the same, it waits longer from
//! then on.
//!
//! Invariants: at most [`QUESTIONS_MAX`] questions in one silence; a packet is asked for once so;
//! none where an answer would come too late.

use dacapo_base::Time;
use dacapo_wire::retransmission as wire;
use std::ops::Range;
use std::time::Duration;

/// How often it is asked while nothing comes.
const QUESTIONS_MAX: usize = 64;

/// How many packets one question asks for at most.
const PACKETS_MAX: u64 = 128;

/// Of so many silences it is known what was asked for.
const ASKED_MAX: usize = 8;

/// How exact timers are; and how far questions are apart at least.
const GRAIN: Duration = Duration::from_millis(1);

/// What was waited longer for needless questions becomes less by one of so many parts with each
/// that was not.
const USEFUL: u32 = 16;

/// How long it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    /// From a question to its answer.
    pub answer: Duration,
    /// How much later than others a packet came lately.
    pub overtaken: Duration,
    /// From a question to the next, where those behind wait for what is missing.
    pub round: Option<Duration>,
}

impl Takes {
    /// What is spare of what is left for more rounds, and for timers.
    ///
    /// Where those behind wait, each answer that is lost makes them wait for a round more. A run
    /// that is over is one question and one train of answers, and one that goes on is many: it is
    /// asked for as late as leaves as many rounds.
    fn spare(&self, left: Duration) -> Duration {
        let round = self.round.map_or(1, |round| round.as_nanos().max(1));
        let spare = u64::try_from(left.as_nanos() % round).unwrap_or(u64::MAX);
        Duration::from_nanos(spare).saturating_sub(GRAIN * 2)
    }
}

#[derive(Debug, Default)]
pub(super) struct Silence {
    /// How far apart packets came lately, and how much that differs.
    apart: Duration,
    deviation: Duration,
    is_known: bool,
    /// How much longer it waits because questions were needless.
    extra: Duration,
    /// When it was asked in this silence, and for how many packets in all then.
    questions: Vec<(Time, u64)>,
    /// The numbers that were asked for lately, silence by silence, the newest first.
    asked: [Range<u64>; ASKED_MAX],
    /// The sender has said that nothing is missing.
    is_over: bool,
}

impl Silence {
    /// How far apart packets came lately; `None` before there are two.
    pub fn apart(&self) -> Option<Duration> {
        self.is_known.then_some(self.apart)
    }

    /// `count` packets have come together, so long after the one before, and `missing` before them
    /// have not. A packet is of use for `within`.
    pub fn handle_arrival(&mut self, passed: Duration, missing: u64, count: u64, within: Duration) {
        let part = |parts: u64| passed / u32::try_from(parts).unwrap_or(u32::MAX).max(1);
        // What comes in trains does not come evenly, however long those are.
        let (each, evenly) = (part(missing + count), part(missing + 1));
        if self.is_known {
            self.deviation = self.deviation / 4 * 3 + self.apart.abs_diff(evenly) / 4;
            self.apart = self.apart / 8 * 7 + each / 8;
        } else {
            (self.apart, self.deviation, self.is_known) = (each, evenly / 2, true);
        }
        if missing == 0 && self.questions.last().is_some_and(|(_, all)| *all > 0) {
            // It was asked for, and only late.
            self.be_patient(passed, within);
        }
        self.end(false);
    }

    /// It waits longer from now on: that long, where that is more than twice as long as before.
    fn be_patient(&mut self, needed: Duration, within: Duration) {
        self.extra = needed.max(self.extra * 2).clamp(GRAIN, (within / 8).max(GRAIN));
    }

    /// It is over; nothing is asked any more before the next packet where the sender has said so.
    pub fn end(&mut self, is_said: bool) {
        self.questions.clear();
        self.is_over = is_said;
    }

    /// So many of those that were asked for have come, with none behind them: it goes on.
    pub fn advance(&mut self, count: u64) {
        self.questions.iter_mut().for_each(|(_, all)| *all = all.saturating_sub(count));
    }

    /// From when on it is one.
    fn quiet(&self) -> Duration {
        self.apart + (self.deviation * 4).max(self.apart) + GRAIN + self.extra
    }

    /// When it is to be asked, where the last packet came, or should have, at `came`, and a packet
    /// is of use for `within`.
    pub fn due(&self, came: Time, takes: Takes, within: Duration) -> Option<Time> {
        let quiet = self.quiet() + takes.overtaken;
        let left = (self.apart + within).checked_sub(quiet + takes.answer)?;
        let is_asked = !self.is_over && self.questions.len() < QUESTIONS_MAX;
        let may_ask = is_asked && !self.apart.is_zero();
        let next = |(at, _): &(Time, u64)| *at + self.apart.max(GRAIN);
        let first = came + quiet + takes.spare(left);
        may_ask.then(|| self.questions.last().map_or(first, next))
    }

    /// What is to be asked for now, of those from `next` on; `None` where it was all asked for.
    pub fn ask(&mut self, now: Time, came: Time, next: u64) -> Option<wire::Range> {
        let margin = self.quiet() - self.apart;
        let overdue = now.since(came).saturating_sub(margin).as_nanos();
        let before = self.questions.last().map_or(0, |(_, all)| *all);
        let all = overdue.checked_div(self.apart.as_nanos())?;
        let all = u64::try_from(all).unwrap_or(u64::MAX).clamp(before, before + PACKETS_MAX);
        self.questions.push((now, all));
        self.note_asked(next + before..next + all);
        let (first, count) = ((next + before) as u32, (all - before) as u16);
        (count > 0).then_some(wire::Range { first, count, attempt: 1 })
    }

    /// Questions of one silence ask for numbers that follow each other.
    fn note_asked(&mut self, numbers: Range<u64>) {
        let newest = &mut self.asked[0];
        if newest.end == numbers.start && !newest.is_empty() {
            newest.end = numbers.end;
        } else if !numbers.is_empty() {
            self.asked.rotate_right(1);
            self.asked[0] = numbers;
        }
    }

    /// A gap of so many packets in parts: how many packets, and when they were asked for.
    pub fn parts(&self, count: u64) -> impl Iterator<Item = (u64, Option<Time>)> {
        let asked = self.questions.iter().map(|(at, all)| (*all, Some(*at)));
        let parts = asked.chain([(count, None)]).scan(0, move |from, (to, at)| {
            let part = to.min(count).saturating_sub(*from);
            *from += part;
            Some((part, at))
        });
        parts.filter(|(part, _)| *part > 0)
    }

    /// One that was asked for has come: `is_needless` when it had come before.
    pub fn handle_answer(&mut self, number: u64, attempt: u8, is_needless: bool, within: Duration) {
        if attempt != 1 || !self.asked.iter().any(|asked| asked.contains(&number)) {
            return;
        }
        match is_needless {
            true => self.be_patient(Duration::ZERO, within),
            false => self.extra -= self.extra / USEFUL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn takes(answer: u64, overtaken: u64) -> Takes {
        Takes { answer: ms(answer), overtaken: ms(overtaken), round: None }
    }

    /// After packets that came every 2 ms.
    fn even() -> Silence {
        let mut it = Silence::default();
        (0..100).for_each(|_| it.handle_arrival(ms(2), 0, 1, ms(100)));
        it.apart = ms(2);
        it.deviation = Duration::ZERO;
        it
    }

    /// How often it is asked in 50 pauses of 40 ms, after bursts that come so.
    fn questions(burst: impl Fn(&mut Silence)) -> usize {
        let (mut it, mut count) = (Silence::default(), 0);
        for _ in 0..50 {
            burst(&mut it);
            let due = |it: &Silence| it.due(at(0), takes(1, 0), ms(500));
            while let Some(due) = due(&it).filter(|due| *due < at(40)) {
                count += usize::from(it.ask(due, at(0), 7).is_some());
            }
            it.handle_arrival(ms(40), 0, 1, ms(500));
        }
        count
    }

    fn due(it: &Silence) -> Option<Time> {
        it.due(at(100), takes(50, 0), ms(100))
    }

    fn ask(it: &mut Silence, now: u64) -> Option<(u32, u16)> {
        it.ask(at(now), at(100), 40).map(|range| (range.first, range.count))
    }

    #[test]
    fn each_is_asked_for_once_when_it_is_overdue() {
        let mut it = even();
        assert_eq!(due(&it), Some(at(105)), "2 ms, 2 ms more, and 1 ms for timers");
        assert_eq!(ask(&mut it, 105), Some((40, 1)));
        assert_eq!(due(&it), Some(at(107)));
        assert_eq!(ask(&mut it, 109), Some((41, 2)), "it was late");
        assert_eq!(ask(&mut it, 110), None, "no more should have come");
        // Of ten that are missing in the end three were asked for.
        assert_eq!(due(&it), Some(at(112)));
        let parts: Vec<_> = it.parts(10).collect();
        assert_eq!(parts, [(1, Some(at(105))), (2, Some(at(109))), (7, None)]);
        assert_eq!(it.parts(2).collect::<Vec<_>>(), [(1, Some(at(105))), (1, Some(at(109)))]);
        it.advance(2);
        assert_eq!(it.parts(4).collect::<Vec<_>>(), [(1, Some(at(109))), (3, None)]);
        it.handle_arrival(ms(20), 9, 1, ms(100));
        assert_eq!(it.parts(3).collect::<Vec<_>>(), [(3, None)], "another silence");
    }

    #[test]
    fn where_others_wait_it_asks_as_late_as_leaves_as_many_rounds() {
        let it = even();
        let due = |within, round| {
            it.due(at(100), Takes { round: Some(ms(round)), ..takes(40, 0) }, ms(within))
        };
        // It is quiet after 5 ms, 3 of them after the packet should have come.
        assert_eq!(due(43, 41), Some(at(105)), "one answer, and nothing is spare");
        assert_eq!(due(63, 41), Some(at(123)), "20 ms are spare, 2 of them for timers");
        assert_eq!(due(84, 41), Some(at(105)), "two rounds");
        assert_eq!(due(42, 41), None);
    }

    #[test]
    fn it_ends_with_what_the_sender_says_and_after_so_many_questions() {
        let mut it = even();
        let mut count = 0;
        while let Some(due) = due(&it) {
            assert!(it.ask(due, at(100), 40).is_some());
            count += 1;
        }
        assert_eq!(count, QUESTIONS_MAX);
        it.handle_arrival(ms(2), 9, 1, ms(100));
        assert!(due(&it).is_some());
        it.end(true);
        assert_eq!(due(&it), None);
    }

    #[test]
    fn none_where_an_answer_would_come_too_late_or_packets_come_unevenly() {
        let it = even();
        assert!(it.due(at(0), takes(97, 0), ms(100)).is_some());
        assert!(it.due(at(0), takes(98, 0), ms(100)).is_none());
        assert!(it.due(at(0), takes(95, 3), ms(100)).is_none());
        assert_eq!(questions(|it| it.handle_arrival(ms(40), 0, 45, ms(500))), 0, "trains");
        let singly = |it: &mut Silence| {
            (0..44).for_each(|_| it.handle_arrival(Duration::from_micros(50), 0, 1, ms(500)));
        };
        // What is learned of a pause outlasts a burst: it asks in the first only.
        assert!((1..40).contains(&questions(singly)), "{}", questions(singly));
        assert!(Silence::default().due(at(0), takes(1, 0), ms(100)).is_none());
    }

    #[test]
    fn needless_questions_make_it_wait_longer_and_others_less_again() {
        let mut it = even();
        ask(&mut it, 105);
        it.handle_answer(39, 1, true, ms(100));
        it.handle_answer(40, 2, true, ms(100));
        assert_eq!(it.extra, Duration::ZERO, "that was another question");
        for _ in 0..20 {
            it.handle_answer(40, 1, true, ms(100));
        }
        assert_eq!(it.extra, Duration::from_micros(12_500));
        (0..200).for_each(|_| it.handle_answer(40, 1, false, ms(100)));
        assert!(it.extra < Duration::from_micros(10), "{:?}", it.extra);
    }
}
