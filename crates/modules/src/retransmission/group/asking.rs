//! [`Asking`]: when a receiver asks for what its blocks miss, and for which.
//!
//! ```text
//!   missing   |-- waits, at random --| asks      |-- an answer takes --| asks again
//!   others             asks                       nobody else has asked for more: not needed
//!   heard                    p p  enough: nothing is asked
//! ```
//!
//! Of many receivers that miss something a few wait shortly and most wait long, as RFC 5740 section
//! 5.3 draws it for a group of a size; what the first of them make the sender send is enough for
//! most others, who ask for nothing then.
//!
//! Invariants: what is asked takes no more bytes than the part of what has come that is this
//! receiver's ([`PART`]); nothing is asked for that cannot come by the deadline.

use crate::blocks::receiving::Missing;
use crate::retransmission::round_trip::RoundTrip;
use dacapo_base::{Random, Time, earlier};
use dacapo_wire::group_repair::{ASK_LEN, ASKS_MAX, Ask};
use dacapo_wire::parity::LEN;
use std::time::Duration;

/// What all receivers ask may take one byte of so many that come.
const PART: u64 = 20;

/// The bytes of headers below, at least.
const BELOW_LEN: u64 = 33;

/// The bytes of an asking, less what it is of.
const HEAD: u64 = LEN as u64 + BELOW_LEN;

/// How many bytes may be saved for asking, in parts of one.
const SAVED_MAX: u64 = FINE * (ASKS_MAX * ASK_LEN + 64) as u64;

/// How much longer than a round trip one waits at random before asking, at most: of an answer that
/// others get nothing is known sooner.
const BACK_OFF: u32 = 2;

/// Which part of the deadline an answer is taken to need while nobody knows.
const UNKNOWN: u32 = 16;

/// For how long a round trip is believed; and at least so long for each receiver, so that echoes
/// are few however many there are.
const MEASURED_FOR: Duration = Duration::from_secs(1);
const APART: Duration = Duration::from_millis(100);

/// Thousandths of a byte are not fine enough for a part of a part.
const FINE: u64 = 1_000_000;

/// Something that is missing of a block.
#[derive(Clone, Copy, Debug)]
struct Open {
    missing: Missing,
    /// When it was noticed.
    since: Time,
    /// When it was asked for last.
    asked: Option<Time>,
    /// When a parity of it came last.
    heard: Option<Time>,
}

#[derive(Debug)]
pub(super) struct Asking {
    open: Vec<Open>,
    /// When to ask next.
    next: Option<Time>,
    round_trip: RoundTrip,
    /// What the echo of an asking will say, and when that was.
    echo: (u8, Option<(Time, u32)>),
    /// When a round trip was measured last.
    measured: Option<Time>,
    receivers: u64,
    /// How much may be asked, in parts of a byte.
    saved: u64,
}

impl Asking {
    /// Of one of so many receivers at most.
    pub fn new(receivers: u64) -> Self {
        Self {
            open: Vec::new(),
            next: None,
            round_trip: RoundTrip::default(),
            echo: (0, None),
            measured: None,
            receivers: receivers.max(1),
            saved: SAVED_MAX / 2,
        }
    }

    /// So many bytes have come.
    pub fn earn(&mut self, bytes: usize) {
        let earned = (bytes as u64).saturating_mul(FINE / PART) / self.receivers;
        self.saved = self.saved.saturating_add(earned).min(SAVED_MAX);
    }

    /// This is missing now, in order; what was and is not has come.
    pub fn note(
        &mut self,
        now: Time,
        random: &mut Random,
        missing: impl Iterator<Item = Missing>,
        deadline: Duration,
    ) {
        let old = std::mem::take(&mut self.open);
        let mut left = old.iter().peekable();
        for missing in missing {
            while left.next_if(|it| it.missing.number < missing.number).is_some() {}
            let known = left.next_if(|it| it.missing.number == missing.number);
            let new = Open { missing, since: now, asked: None, heard: None };
            let mut open = known.copied().unwrap_or(new);
            if missing.rows > open.missing.rows {
                open.heard = Some(now);
            }
            open.missing = missing;
            self.open.push(open);
        }
        if self.open.is_empty() {
            self.next = None;
        } else if self.next.is_none() {
            self.next = Some(now + self.back_off(random, deadline));
        }
    }

    /// An echo has come, of this end's last asking or of another's.
    pub fn handle_heard(&mut self, now: Time, answer_ms: u32, echo: u8) {
        let (own, asked) = self.echo;
        if let Some((at, _)) = asked.filter(|(_, said_ms)| (own, *said_ms) == (echo, answer_ms)) {
            self.round_trip.add(now.since(at));
            (self.echo.1, self.measured) = (None, Some(now));
        }
    }

    /// What an asking says of itself: how long an answer takes, and what its echo is to say; 0
    /// where that is known well enough.
    pub fn head(&mut self, now: Time, random: &mut Random, deadline: Duration) -> (u32, u8) {
        let answer_ms = self.answer(deadline).as_millis().min(0xFF_FFFF) as u32;
        let receivers = u32::try_from(self.receivers).unwrap_or(u32::MAX);
        let believed = MEASURED_FOR.max(APART * receivers);
        if self.measured.is_some_and(|at| now.since(at) < believed) {
            return (answer_ms, 0);
        }
        let echo = 1 + random.below(255) as u8;
        self.echo = (echo, Some((now, answer_ms)));
        (answer_ms, echo)
    }

    /// How long an answer takes, as far as is known.
    pub fn answer(&self, deadline: Duration) -> Duration {
        let mean = self.round_trip.mean();
        if mean.is_zero() { deadline / UNKNOWN } else { mean }
    }

    /// How long to wait, at random: seldom short, with as many others waiting; as long as an answer
    /// takes a few times, and no longer than leaves time for two.
    fn back_off(&self, random: &mut Random, deadline: Duration) -> Duration {
        let answer = self.answer(deadline);
        let longest = (answer * BACK_OFF).min(deadline.saturating_sub(answer * 2) / 2);
        let spread = (self.receivers as f64).ln() + 1.0;
        let even = random.below(1 << 20) as f64 / f64::from(1 << 20);
        let part = (1.0 + even * (spread.exp() - 1.0)).ln() / spread;
        longest.mul_f64(part.clamp(0.0, 1.0))
    }

    /// When to ask, or to give up.
    pub fn due(&self, deadline: Duration) -> Option<Time> {
        let until = self.open.iter().map(|open| open.since + deadline).min();
        earlier(self.next, until)
    }

    /// What is of no use any more.
    pub fn expired(&self, now: Time, deadline: Duration) -> impl Iterator<Item = u64> + '_ {
        let is_over = move |open: &&Open| open.since + deadline <= now;
        self.open.iter().filter(is_over).map(|open| open.missing.number)
    }

    /// What is to be asked now, if it is time.
    pub fn poll(&mut self, now: Time, random: &mut Random, deadline: Duration) -> Vec<Ask> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let answer = self.answer(deadline);
        let wait = self.round_trip.wait(answer * 2);
        let quiet = answer / 4;
        let mut asks = Vec::new();
        let mut next: Option<Time> = None;
        for open in &mut self.open {
            if now + answer > open.since + deadline {
                continue;
            }
            // An answer to others may go on coming; one to this end is on its way.
            let heard = open.heard.map(|at| at + quiet);
            let asked = open.asked.map(|at| at + wait);
            let ready = heard.max(asked).unwrap_or(now);
            if ready > now {
                next = earlier(next, Some(ready));
                continue;
            }
            let cost = FINE * (ASK_LEN as u64 + if asks.is_empty() { HEAD } else { 0 });
            let Some(saved) = self.saved.checked_sub(cost).filter(|_| asks.len() < ASKS_MAX) else {
                next = earlier(next, Some(now + answer));
                continue;
            };
            self.saved = saved;
            open.asked = Some(now);
            let Missing { number, have, rows } = open.missing;
            asks.push(Ask { block: number as u32, have, rows });
        }
        let again = (!asks.is_empty()).then(|| now + wait + self.back_off(random, deadline) / 2);
        self.next = earlier(next, again);
        asks
    }

    pub fn forget(&mut self) {
        self.open.clear();
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(400);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn missing(number: u64, have: u8, rows: u8) -> Missing {
        Missing { number, have, rows }
    }

    fn of_group(receivers: u64) -> (Asking, Random) {
        (Asking::new(receivers), Random::from_number(receivers))
    }

    #[test]
    fn it_asks_once_and_again_when_the_answer_is_overdue() {
        let (mut asking, mut random) = of_group(1);
        asking.note(at(0), &mut random, [missing(3, 30, 0)].into_iter(), DEADLINE);
        let first = asking.due(DEADLINE).unwrap();
        assert!(first <= at(50), "a round trip of 25 ms is assumed");
        let asks = asking.poll(first, &mut random, DEADLINE);
        assert_eq!(asks, [Ask { block: 3, have: 30, rows: 0 }]);
        assert_eq!(asking.poll(first, &mut random, DEADLINE), []);
        let second = asking.due(DEADLINE).unwrap();
        assert!(second >= first + Duration::from_millis(50), "{first:?} {second:?}");
        assert_eq!(asking.poll(second, &mut random, DEADLINE).len(), 1);
        asking.note(second, &mut random, [].into_iter(), DEADLINE);
        assert_eq!(asking.due(DEADLINE), None);
    }

    #[test]
    fn an_echo_of_its_own_asking_says_how_long_answers_take() {
        let (mut asking, mut random) = of_group(3);
        let (answer_ms, echo) = asking.head(at(0), &mut random, DEADLINE);
        assert!(answer_ms == 25 && echo != 0);
        asking.handle_heard(at(9), answer_ms, echo ^ 1);
        asking.handle_heard(at(9), answer_ms + 1, echo);
        assert_eq!(asking.answer(DEADLINE), DEADLINE / UNKNOWN, "those are of others");
        asking.handle_heard(at(40), answer_ms, echo);
        asking.handle_heard(at(90), answer_ms, echo);
        assert_eq!(asking.answer(DEADLINE), Duration::from_millis(40), "once");
        assert_eq!(asking.head(at(500), &mut random, DEADLINE), (40, 0));
        assert_ne!(asking.head(at(1_040), &mut random, DEADLINE).1, 0, "it may have changed");
    }

    #[test]
    fn who_hears_what_others_have_asked_for_waits() {
        let (mut asking, mut random) = of_group(100);
        asking.note(at(0), &mut random, [missing(3, 30, 0)].into_iter(), DEADLINE);
        let first = asking.due(DEADLINE).unwrap();
        asking.note(first, &mut random, [missing(3, 31, 1)].into_iter(), DEADLINE);
        assert_eq!(asking.poll(first, &mut random, DEADLINE), []);
        let later = asking.due(DEADLINE).unwrap();
        assert!(later > first);
        asking.note(later, &mut random, [].into_iter(), DEADLINE);
        assert_eq!(asking.poll(later, &mut random, DEADLINE), []);
        assert_eq!(asking.due(DEADLINE), None);
    }

    #[test]
    fn nothing_is_asked_that_cannot_come_in_time_and_it_is_given_up() {
        let (mut asking, mut random) = of_group(1);
        asking.note(at(0), &mut random, [missing(3, 30, 0)].into_iter(), DEADLINE);
        assert_eq!(asking.expired(at(399), DEADLINE).count(), 0);
        assert_eq!(asking.expired(at(400), DEADLINE).collect::<Vec<_>>(), [3]);
        assert_eq!(asking.poll(at(380), &mut random, DEADLINE), [], "an answer takes 25 ms");
        assert_eq!(asking.due(DEADLINE), Some(at(400)));
    }

    #[test]
    fn the_larger_the_group_the_fewer_wait_shortly() {
        let waits = |receivers: u64| {
            let (asking, mut random) = of_group(receivers);
            let longest = asking.answer(DEADLINE) * BACK_OFF;
            let is_short = |wait: &Duration| *wait < longest / 2;
            let drawn = (0..10_000).map(|_| asking.back_off(&mut random, DEADLINE));
            drawn.filter(is_short).count()
        };
        let short = [1, 10, 1_000].map(waits);
        assert!(short.is_sorted_by(|a, b| a > b), "{short:?}");
        // With n others, about n times e to the half of that spread.
        assert!((3_000..4_500).contains(&short[0]) && short[2] < 300, "{short:?}");
    }

    #[test]
    fn no_more_is_asked_than_its_part_of_what_comes() {
        let (mut asking, mut random) = of_group(10);
        let mut asked = 0;
        for ms in 0..20_000 {
            // 500 bytes each ms, and a block that always misses something.
            asking.earn(500);
            let block = missing(ms / 10, 30, 0);
            asking.note(at(ms), &mut random, [block].into_iter(), DEADLINE);
            let asks = asking.poll(at(ms), &mut random, DEADLINE);
            asked += if asks.is_empty() { 0 } else { HEAD + (asks.len() * ASK_LEN) as u64 };
        }
        let most = 500 * 20_000 / PART / 10 + SAVED_MAX / FINE;
        assert!((most / 4..=most).contains(&asked), "{asked} of {most}");
    }
}
