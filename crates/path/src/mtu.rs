//! [`PathMtu`]: how long the datagrams of a path may be while flows run.
//!
//! Packetization-layer path MTU discovery (RFC 8899): a length in use that is confirmed while long
//! datagrams are sent, found to vanish (a black hole), searched anew and raised again.
//!
//! ```text
//!             a question of the length in use is not answered, or a hint
//!   steady  ------------------------------------------------------------> suspect
//!     ^  ^                one of that length is answered                    |  pairs: one of that
//!     |  '------------------------------------------------------------------'  length, one of the
//!     |                                                                     |  least; every 40 ms
//!     |   narrowed to 16 bytes                              none of n long  |
//!   search <----------------------------------------------------------------' has been answered
//!     ^  '-- a length that is answered is carried; one that is not, three times, is too long
//!     '--- every 60 s, while there may be more and it would be used
//! ```
//!
//! **No alarm for loss alone.** Were the long and the short questions of a suspicion lost alike,
//! each choice of which were lost would be as probable as any other. So that just all `n` long ones
//! are among the `n + f` lost of `n + m` has the probability `C(m, f) / C(n + m, n + f)` (Fisher's
//! exact test), whatever the loss is. The length is given up when that is at most 10^-9: after 17
//! pairs (0.7 s) where nothing else is lost, with some more where loss takes short ones too. One
//! long answer ends the suspicion.
//!
//! **Raised after 60 s,** not after the 600 s that RFC 8899 proposes: the attempt costs three
//! datagrams, of which nobody takes the loss for congestion, and a flow that lives for minutes has
//! its use of it.
//!
//! Invariants: never below [`DATAGRAM_LEN_MIN`], whatever anybody says; never above
//! [`DATAGRAM_LEN_FULL`]; a hint costs one pair of questions per second at most when it is false;
//! who sends nothing long is asked nothing long.

use crate::prober::{DATAGRAM_LEN_FULL, DATAGRAM_LEN_MIN};
use dacapo_base::{Time, earlier};
use std::time::Duration;

/// So many bytes in long datagrams are worth a question of their length, 2 % of them.
const CONFIRM_BYTES: u64 = 64 * 1024;
/// And fewer, after this time.
const CONFIRM_AFTER: Duration = Duration::from_secs(2);

/// The pairs of a suspicion.
const PAIR_EVERY: Duration = Duration::from_millis(40);
const PAIRS_MAX: usize = 64;
/// A length is given up when loss alone would look so with this probability at most.
const CHANCE_MAX: f64 = 1e-9;

/// A hint is followed no earlier than this after the one before.
const HINT_EVERY: Duration = Duration::from_secs(1);

/// A length that is not answered so often is too long.
const TRIES_MAX: u8 = 3;
/// The search is over when it is known so closely, in bytes.
const CLOSE_ENOUGH: usize = 16;
/// A longer length is tried again after this time.
const RAISE_AFTER: Duration = Duration::from_secs(60);

/// A question in a suspicion.
#[derive(Clone, Copy, Debug)]
struct Trial {
    number: u64,
    at: Time,
    is_long: bool,
    is_answered: bool,
}

#[derive(Debug)]
struct Search {
    /// The longest that is carried.
    low: usize,
    /// The shortest that is not, or one more than there can be.
    high: usize,
    candidate: usize,
    tries: u8,
    asked: Option<Time>,
    /// Answers to questions before this one say nothing of the path as it is now.
    since: u64,
}

#[derive(Debug)]
enum Phase {
    /// The length in use is believed; a question of its length may be under way.
    Steady { asked: Option<(u64, Time)> },
    /// It is tried out beside the least.
    Suspect { trials: Vec<Trial>, next_at: Time },
    /// A longer one is looked for.
    Search(Search),
}

/// The length of datagrams over one path.
#[derive(Debug)]
pub(crate) struct PathMtu {
    len: usize,
    phase: Phase,
    /// Bytes that were sent in datagrams longer than the least, or as long as may be, since the
    /// last question about them.
    long_bytes: u64,
    /// There were any when the last question was due: what is sent makes nothing due by itself.
    sends_long: bool,
    confirmed_at: Time,
    /// When a longer one is tried next.
    raise_at: Time,
    hint_at: Time,
    /// What somebody says is carried.
    hint: Option<usize>,
    /// How long an answer may take.
    wait: Duration,
    /// The number of the next question.
    next_number: u64,
}

impl PathMtu {
    /// A path that carries `len` at least, as its opening has shown.
    pub fn new(now: Time, len: usize) -> Self {
        Self {
            len,
            phase: Phase::Steady { asked: None },
            // What the opening did not show may have been lost: it is looked for once in any case.
            long_bytes: u64::from(len < DATAGRAM_LEN_FULL),
            sends_long: len < DATAGRAM_LEN_FULL,
            confirmed_at: now,
            raise_at: now,
            hint_at: now,
            hint: None,
            wait: Duration::ZERO,
            next_number: 0,
        }
    }

    /// How long datagrams may be.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Datagrams of this length were sent, so many bytes of them.
    pub fn handle_sent(&mut self, len: usize, bytes: usize) {
        if len > DATAGRAM_LEN_MIN || len + CLOSE_ENOUGH > self.len {
            self.long_bytes = self.long_bytes.saturating_add(bytes as u64);
        }
    }

    /// Somebody says that datagrams of the length in use are too long, and perhaps how long they
    /// may be.
    pub fn handle_hint(&mut self, now: Time, len: Option<usize>) {
        if self.len <= DATAGRAM_LEN_MIN || now < self.hint_at {
            return;
        }
        self.hint_at = now + HINT_EVERY;
        self.hint = len;
        if let Phase::Steady { .. } = self.phase {
            self.suspect(now);
        }
    }

    /// The path may be another one than before.
    pub fn handle_path_change(&mut self, now: Time) {
        self.raise_at = self.raise_at.min(now);
        if let Phase::Steady { .. } = self.phase
            && self.len > DATAGRAM_LEN_MIN
        {
            self.suspect(now);
        }
    }

    fn suspect(&mut self, now: Time) {
        self.phase = Phase::Suspect { trials: Vec::new(), next_at: now };
    }

    /// The length of a question that is due anyway: what is in use, when that is to be confirmed.
    pub fn confirm_len(&mut self, now: Time) -> usize {
        self.sends_long = self.long_bytes > 0;
        let Phase::Steady { asked: None } = self.phase else { return 0 };
        let is_old = now.since(self.confirmed_at) >= CONFIRM_AFTER && self.long_bytes > 0;
        let is_due = self.long_bytes >= CONFIRM_BYTES || is_old;
        if !is_due || self.len <= DATAGRAM_LEN_MIN {
            return 0;
        }
        (self.long_bytes, self.confirmed_at) = (0, now);
        self.len
    }

    /// A question was asked.
    pub fn handle_asked(&mut self, now: Time, number: u64, len: usize) {
        self.next_number = number.saturating_add(1);
        match &mut self.phase {
            Phase::Steady { asked } if len == self.len => *asked = Some((number, now)),
            Phase::Suspect { trials, .. } if len == self.len || len == DATAGRAM_LEN_MIN => {
                let is_long = len == self.len;
                trials.push(Trial { number, at: now, is_long, is_answered: false });
            }
            Phase::Search(search) if len == search.candidate => search.asked = Some(now),
            _ => {}
        }
    }

    /// A question was answered.
    pub fn handle_answer(&mut self, number: u64, len: usize) {
        match &mut self.phase {
            Phase::Steady { asked } => {
                if asked.is_some_and(|(asked, _)| number >= asked) && len >= self.len {
                    *asked = None;
                }
            }
            Phase::Suspect { trials, .. } => {
                if let Some(trial) = trials.iter_mut().find(|trial| trial.number == number) {
                    trial.is_answered = true;
                }
                if len >= self.len {
                    self.phase = Phase::Steady { asked: None };
                    self.hint = None;
                }
            }
            Phase::Search(search) => {
                if number >= search.since && len > search.low {
                    search.low = len;
                    // What was given up and is answered late after all is carried.
                    search.high = search.high.max(len + 1);
                    search.next(&mut self.hint);
                }
            }
        }
    }

    /// The length of a question that is due by itself; `wait` is how long an answer may take.
    pub fn poll(&mut self, now: Time, wait: Duration) -> Option<usize> {
        self.wait = wait;
        match &mut self.phase {
            Phase::Steady { asked } => {
                if asked.is_some_and(|(_, at)| now >= at + wait) {
                    self.suspect(now);
                    return self.poll_suspect(now);
                }
                if self.wants_more() && now >= self.raise_at {
                    self.search(DATAGRAM_LEN_FULL + 1, self.next_number);
                    return self.poll_search(now);
                }
                None
            }
            Phase::Suspect { .. } => self.poll_suspect(now),
            Phase::Search(_) => self.poll_search(now),
        }
    }

    /// Whether a longer length is possible and would be used.
    fn wants_more(&self) -> bool {
        self.len < DATAGRAM_LEN_FULL && self.sends_long
    }

    fn poll_suspect(&mut self, now: Time) -> Option<usize> {
        let Phase::Suspect { trials, next_at } = &mut self.phase else { return None };
        let wait = self.wait;
        let (pairs, is_half) = (trials.len() / 2, trials.len() % 2 == 1);
        let is_over = trials.last().is_none_or(|last| now >= last.at + wait);
        let is_due = if pairs < PAIRS_MAX { now >= *next_at } else { is_over };
        if !is_half && !is_due {
            return None;
        }
        if chance(trials.iter().filter(|trial| now >= trial.at + wait)) <= CHANCE_MAX {
            let (high, since) = (self.len, trials.first().map_or(0, |first| first.number));
            self.len = DATAGRAM_LEN_MIN;
            self.search(high, since);
            return self.poll_search(now);
        }
        if is_half || pairs < PAIRS_MAX {
            if is_half {
                *next_at = now + PAIR_EVERY;
            }
            // Who comes first takes turns, so that a burst of losses is no harder on one of them.
            let is_long = (pairs % 2 == 0) != is_half;
            return Some(if is_long { self.len } else { DATAGRAM_LEN_MIN });
        }
        self.phase = Phase::Steady { asked: None };
        None
    }

    /// Looks for the longest that is carried, below `high`; answers to questions from `since` on
    /// count.
    fn search(&mut self, high: usize, since: u64) {
        let candidate = high - 1;
        let mut search = Search { low: self.len, high, candidate, tries: 0, asked: None, since };
        // What failed a moment ago is not tried again at once.
        if high <= DATAGRAM_LEN_FULL {
            search.next(&mut self.hint);
        }
        self.phase = Phase::Search(search);
    }

    fn poll_search(&mut self, now: Time) -> Option<usize> {
        let Phase::Search(search) = &mut self.phase else { return None };
        if search.asked.is_some_and(|at| now < at + self.wait) {
            return None;
        }
        if search.asked.take().is_some() {
            search.tries += 1;
            if search.tries >= TRIES_MAX {
                search.high = search.candidate;
                search.next(&mut self.hint);
            }
        }
        if search.is_over() {
            self.len = search.low;
            self.phase = Phase::Steady { asked: None };
            (self.long_bytes, self.sends_long, self.confirmed_at) = (0, false, now);
            (self.raise_at, self.hint) = (now + RAISE_AFTER, None);
            return None;
        }
        Some(search.candidate)
    }

    /// When [`PathMtu::poll`] has something new to say, when an answer may take so long.
    pub fn next_deadline(&self, wait: Duration) -> Option<Time> {
        match &self.phase {
            Phase::Steady { asked } => {
                let raise = self.wants_more().then_some(self.raise_at);
                earlier(raise, asked.map(|(_, at)| at + wait))
            }
            Phase::Suspect { trials, next_at } if trials.len() / 2 < PAIRS_MAX => Some(*next_at),
            Phase::Suspect { trials, .. } => trials.last().map(|last| last.at + wait),
            Phase::Search(search) => Some(search.asked.map_or(Time::ZERO, |at| at + wait)),
        }
    }
}

impl Search {
    fn is_over(&self) -> bool {
        self.high - self.low <= CLOSE_ENOUGH || self.low >= DATAGRAM_LEN_FULL
    }

    /// What is tried next: what somebody says is carried, else the middle.
    fn next(&mut self, hint: &mut Option<usize>) {
        let hint = hint.take().filter(|it| (self.low + 1..self.high).contains(it));
        self.candidate = hint.unwrap_or_else(|| self.low.midpoint(self.high));
        (self.tries, self.asked) = (0, None);
    }
}

/// With what probability all long ones among these were lost by chance: 1 when one was answered.
fn chance<'a>(trials: impl Iterator<Item = &'a Trial>) -> f64 {
    let (mut long, mut short, mut short_lost) = (0_u32, 0_u32, 0_u32);
    for trial in trials {
        match (trial.is_long, trial.is_answered) {
            (true, true) => return 1.0,
            (true, false) => long += 1,
            (false, is_answered) => {
                short += 1;
                short_lost += u32::from(!is_answered);
            }
        }
    }
    // C(m, f) / C(n + m, n + f), factor by factor.
    (1..=long).map(|at| f64::from(short_lost + at) / f64::from(short + at)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(long: usize, short: usize, short_lost: usize) -> Vec<Trial> {
        let trial =
            |is_long, is_answered| Trial { number: 0, at: Time::ZERO, is_long, is_answered };
        let mut all = vec![trial(true, false); long];
        all.extend((0..short).map(|at| trial(false, at >= short_lost)));
        all
    }

    #[test]
    fn the_chance_is_that_of_fishers_exact_test() {
        let of = |long, short, lost| chance(trials(long, short, lost).iter());
        // 1 / C(34, 17) and C(16, 8) / C(32, 24).
        assert!((of(17, 17, 0) * 2_333_606_220.0 - 1.0).abs() < 1e-9);
        assert!((of(16, 16, 8) - 12_870.0 / 10_518_300.0).abs() < 1e-12);
        assert!(of(17, 17, 0) <= CHANCE_MAX && of(16, 16, 0) > CHANCE_MAX);
        assert_eq!((of(40, 40, 40), of(0, 9, 0)), (1.0, 1.0));
    }

    #[test]
    fn nobody_brings_it_below_the_least_or_makes_it_ask_more_than_a_pair_a_second() {
        let mut mtu = PathMtu::new(Time::ZERO, DATAGRAM_LEN_FULL);
        let (mut now, mut asked) = (Time::ZERO, 0);
        for _ in 0..10_000 {
            now += Duration::from_millis(1);
            mtu.handle_hint(now, Some(68));
            while let Some(len) = mtu.poll(now, Duration::from_millis(100)) {
                mtu.handle_asked(now, asked, len);
                asked += 1;
            }
            // Everything is carried, and answered at once.
            (0..asked).for_each(|number| mtu.handle_answer(number, DATAGRAM_LEN_FULL));
            assert_eq!(mtu.len(), DATAGRAM_LEN_FULL);
        }
        assert!(asked <= 22, "{asked} questions in 10 s");
    }
}
