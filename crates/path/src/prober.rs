//! [`Prober`]: asks path probes, and says from the answers what the path is and whether the peer
//! lives.
//!
//! What it is: the schedule of questions, the match of answers to questions, and two verdicts: how
//! long datagrams may be, and [`Life`]. What it is not: the bytes (`dacapo-wire::probe`) or a
//! socket.
//!
//! ```text
//!   opening    questions of full and of least length in turn, every 100 ms
//!   open       one question every 500 ms
//!   silent     after 750 ms without a sign of life: four every max(RTT, 120 ms), because losses
//!              come in bursts of packets
//!   lost       after 2,600 ms without a sign of life
//! ```
//!
//! With loss p each way a question is answered with (1 − p)²: at 20 % each way the about 60
//! questions of the silence all fail with probability 0.36^60; when a burst that ends with
//! probability 0.08 per packet begins with the silence, it lasts through all of them with
//! probability 0.92^60 < 0.01.
//!
//! Invariant: at most [`OPEN_QUESTIONS_MAX`] questions are remembered; older ones count as lost.

use crate::{ClockOffset, RttEstimate};
use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// The length of a UDP payload that fits an Ethernet packet over IPv6: 1500 − 40 − 8.
pub const DATAGRAM_LEN_FULL: usize = 1_452;

/// The length that every path of the Internet carries (RFC 9000, section 14).
pub const DATAGRAM_LEN_MIN: usize = 1_200;

const OPEN_QUESTIONS_MAX: usize = 64;
const OPENING_EVERY: Duration = Duration::from_millis(100);
const OPEN_EVERY: Duration = Duration::from_millis(500);
const SILENT_AFTER: Duration = Duration::from_millis(750);
const SILENT_EVERY: Duration = Duration::from_millis(120);
const SILENT_VOLLEY: u8 = 4;
const LOST_AFTER: Duration = Duration::from_millis(2_600);
/// How long full-size questions are waited for when least-size ones are answered.
const FULL_WAIT: Duration = Duration::from_secs(1);

/// A question to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its number.
    pub number: u64,
    /// The length of the datagram in bytes, padding included.
    pub len: usize,
}

/// Whether the peer gives signs of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does, or it is too early to say.
    Alive,
    /// It has not for too long: contact is lost.
    Lost,
}

/// The probes of one path.
#[derive(Debug)]
pub struct Prober {
    asked: VecDeque<(u64, Time, usize)>,
    next_number: u64,
    next_at: Time,
    /// How many questions of the present volley have been asked.
    volley: u8,
    opened: Option<Time>,
    heard: Time,
    full: bool,
    rtt: RttEstimate,
    offset: ClockOffset,
}

impl Prober {
    /// A prober that begins to ask at once. `one_clock` says that both ends read the same clock.
    #[must_use]
    pub fn new(now: Time, one_clock: bool) -> Self {
        Self {
            asked: VecDeque::new(),
            next_number: 0,
            next_at: now,
            volley: 0,
            opened: None,
            heard: now,
            full: false,
            rtt: RttEstimate::default(),
            offset: if one_clock { ClockOffset::exact() } else { ClockOffset::default() },
        }
    }

    /// The next question that is due; ask until there is none.
    pub fn poll_question(&mut self, now: Time) -> Option<Question> {
        if now < self.next_at {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        let opening = self.opened.is_none() || !self.is_settled(now);
        let len = if opening && number % 2 == 1 { DATAGRAM_LEN_MIN } else { self.usual_len() };
        if self.asked.len() >= OPEN_QUESTIONS_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((number, now, len));
        self.next_at = now + self.interval(now, opening);
        Some(Question { number, len })
    }

    /// Full length while opening; afterwards short, for probes are no load test.
    fn usual_len(&self) -> usize {
        if self.full { 0 } else { DATAGRAM_LEN_FULL }
    }

    fn interval(&mut self, now: Time, opening: bool) -> Duration {
        if opening {
            OPENING_EVERY
        } else if self.is_silent(now) {
            self.volley = (self.volley + 1) % SILENT_VOLLEY;
            if self.volley != 0 {
                return Duration::ZERO;
            }
            SILENT_EVERY.max(self.rtt.smoothed().unwrap_or_default())
        } else {
            OPEN_EVERY
        }
    }

    /// Takes an answer; false when nothing was asked with this number.
    /// `received` and `answered` are on the peer's clock, in nanoseconds.
    pub fn handle_answer(&mut self, now: Time, number: u64, received: u64, answered: u64) -> bool {
        let Some(at) = self.asked.iter().position(|(asked, ..)| *asked == number) else {
            return false;
        };
        let Some((_, asked, len)) = self.asked.remove(at) else { return false };
        let there = Duration::from_nanos(answered.saturating_sub(received));
        self.rtt.handle_sample(now.since(asked).saturating_sub(there));
        self.offset.handle_exchange(asked.as_nanos(), received, answered, now.as_nanos());
        self.opened.get_or_insert(now);
        self.full |= len == DATAGRAM_LEN_FULL;
        self.handle_life(now);
        true
    }

    /// True when the peer has given no sign of life for longer than the usual interval.
    #[must_use]
    pub fn is_silent(&self, now: Time) -> bool {
        now.since(self.heard) >= SILENT_AFTER
    }

    /// Takes any other authenticated sign that the peer lives.
    pub fn handle_life(&mut self, now: Time) {
        if self.is_silent(now) {
            self.next_at = self.next_at.min(now + OPEN_EVERY);
        }
        self.heard = self.heard.max(now);
    }

    /// When [`Prober::poll_question`] or [`Prober::life`] has something new to say.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        self.next_at.min(self.heard + LOST_AFTER)
    }

    /// Whether the peer lives, as far as can be told.
    #[must_use]
    pub fn life(&self, now: Time) -> Life {
        if now.since(self.heard) >= LOST_AFTER { Life::Lost } else { Life::Alive }
    }

    fn is_settled(&self, now: Time) -> bool {
        self.full || self.opened.is_some_and(|opened| now.since(opened) >= FULL_WAIT)
    }

    /// How long datagrams may be; `None` until the path is open and this is known.
    #[must_use]
    pub fn datagram_len(&self, now: Time) -> Option<usize> {
        if self.full {
            return Some(DATAGRAM_LEN_FULL);
        }
        self.is_settled(now).then_some(DATAGRAM_LEN_MIN)
    }

    /// The round trip.
    #[must_use]
    pub fn rtt(&self) -> &RttEstimate {
        &self.rtt
    }

    /// The offset of the peer's clock.
    #[must_use]
    pub fn offset(&self) -> &ClockOffset {
        &self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    /// Runs a prober over a path for `secs` seconds; `carries` decides per length.
    fn run(prober: &mut Prober, from: Time, secs: u64, mut carries: impl FnMut(usize) -> bool) {
        let mut now = from;
        let mut answers: VecDeque<(Time, u64)> = VecDeque::new();
        while now < from + Duration::from_secs(secs) {
            if let Some(question) = prober.poll_question(now)
                && carries(question.len)
            {
                answers.push_back((now + Duration::from_millis(30), question.number));
            }
            while answers.front().is_some_and(|(at, _)| *at <= now) {
                let (at, number) = answers.pop_front().unwrap();
                let there = (at - Duration::from_millis(15)).as_nanos();
                assert!(prober.handle_answer(at, number, there, there));
            }
            now += Duration::from_millis(1);
        }
    }

    #[test]
    fn a_good_path_opens_at_full_length_in_one_round_trip() {
        let mut prober = Prober::new(Time::ZERO, false);
        run(&mut prober, Time::ZERO, 1, |_| true);
        let now = Time::from_millis(1_000);
        assert_eq!(prober.datagram_len(now), Some(DATAGRAM_LEN_FULL));
        assert_eq!(prober.rtt().min(), Some(Duration::from_millis(30)));
        assert_eq!(prober.offset().ahead_ns, 0);
    }

    #[test]
    fn a_black_hole_for_long_datagrams_leaves_the_least_length() {
        let mut prober = Prober::new(Time::ZERO, false);
        run(&mut prober, Time::ZERO, 3, |len| len <= 1_280);
        assert_eq!(prober.datagram_len(Time::from_millis(3_000)), Some(DATAGRAM_LEN_MIN));
        assert_eq!(prober.life(Time::from_millis(3_000)), Life::Alive);
    }

    #[test]
    fn silence_is_asked_about_and_then_is_loss_of_contact() {
        let mut prober = Prober::new(Time::ZERO, false);
        run(&mut prober, Time::ZERO, 2, |_| true);
        let mut asked = 0;
        run(&mut prober, Time::from_millis(2_000), 2, |_| {
            asked += 1;
            false
        });
        assert!(asked >= 10, "{asked} questions in the silence");
        assert_eq!(prober.life(Time::from_millis(3_999)), Life::Alive);
        assert_eq!(prober.life(Time::from_millis(4_700)), Life::Lost);
    }

    #[test]
    fn twenty_per_cent_loss_each_way_is_no_loss_of_contact() {
        for seed in 0..200 {
            let mut random = Random::from_number(seed);
            let mut prober = Prober::new(Time::ZERO, false);
            run(&mut prober, Time::ZERO, 60, |_| !random.chance(0.36));
            assert_eq!(prober.life(Time::from_millis(60_000)), Life::Alive, "seed {seed}");
        }
    }

    #[test]
    fn an_answer_to_nothing_is_not_believed() {
        let mut prober = Prober::new(Time::ZERO, false);
        assert!(!prober.handle_answer(Time::from_millis(1), 7, 0, 0));
        assert_eq!(prober.datagram_len(Time::from_millis(5_000)), None);
    }
}
