//! [`Prober`]: asks path probes, and says from the answers what the path is and whether the peer
//! lives.
//!
//! The schedule of questions, the match of answers to questions, and two verdicts: how long
//! datagrams may be, and [`Life`].
//!
//! ```text
//!   opening    questions of full and of least length in turn, every 100 ms
//!   open       one question every 500 ms, or up to 250 ms earlier together with what others ask
//!              (`ask_early`), or when marks are to be heard of (`ask_within`), and those about the
//!              length ([`crate::mtu`])
//!   silent     after 750 ms without an answer: four every RTT, but 120 to 200 ms apart, because
//!              losses come in bursts of packets
//!   lost       after 2,800 ms without an answer: two every 250 ms, until one is answered
//! ```
//!
//! Only what shows that the peer hears us counts as life: what it sends by itself may come through
//! a path that carries one way only.
//!
//! With loss p each way a question is answered with (1 − p)². At 30 % each way and 300 ms there are
//! at least 36 questions in the silence early enough to be answered, which all fail with
//! probability 0.51^36 < 10^-10; `dacapo-lab run false-alarms` counts alarms over virtual windows.
//!
//! Time in which nobody asked the prober for questions (its process was stopped, the host slept) is
//! not silence of the peer.
//!
//! Invariant: at most [`OPEN_QUESTIONS_MAX`] questions are remembered; older ones count as lost.

use crate::mtu::PathMtu;
use crate::{ClockOffset, RttEstimate};
use dacapo_base::{Ecn, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// The length of a UDP payload that fits an Ethernet packet over IPv6: 1500 − 40 − 8.
pub const DATAGRAM_LEN_FULL: usize = 1_452;

/// The length that every path of the Internet carries (RFC 9000, section 14).
pub const DATAGRAM_LEN_MIN: usize = 1_200;

const OPEN_QUESTIONS_MAX: usize = 128;
const OPENING_EVERY: Duration = Duration::from_millis(100);
const OPEN_EVERY: Duration = Duration::from_millis(500);
/// While nothing is wrong a question may be asked so long before its time: half the interval, so
/// that the questions of two ends, and those to several peers, fall together within two of them and
/// each process is woken once for all.
pub const EARLY_MAX: Duration = Duration::from_millis(250);
const SILENT_AFTER: Duration = Duration::from_millis(750);
const SILENT_EVERY_MIN: Duration = Duration::from_millis(120);
const SILENT_EVERY_MAX: Duration = Duration::from_millis(200);
const SILENT_VOLLEY: u8 = 4;
/// Contact is lost three seconds after the path was cut at the latest: the last answer may come a
/// part of a round trip after that.
const LOST_AFTER: Duration = Duration::from_millis(2_800);
const LOST_EVERY: Duration = Duration::from_millis(250);
const LOST_VOLLEY: u8 = 2;
/// Who is not asked for questions for longer than this did not run.
const STOPPED_AFTER: Duration = Duration::from_secs(1);
/// How long full-size questions are waited for when least-size ones are answered.
const FULL_WAIT: Duration = Duration::from_secs(1);
/// An answer is waited for at least so long before a length is doubted.
const ANSWER_WAIT_MIN: Duration = Duration::from_millis(100);

/// A question to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its number.
    pub number: u64,
    /// The length of the datagram in bytes, padding included.
    pub len: usize,
    /// The congestion codepoint with which it is to leave: that of what it asks about, so that it
    /// waits in the same queues, once it is known that the path carries that.
    pub ecn: Ecn,
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
    /// When it was asked for questions last.
    looked: Time,
    full: bool,
    /// From when the opening is over.
    mtu: Option<PathMtu>,
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
            looked: now,
            full: false,
            mtu: None,
            rtt: RttEstimate::default(),
            offset: if one_clock { ClockOffset::exact() } else { ClockOffset::default() },
        }
    }

    /// The next question that is due; ask until there is none.
    pub fn poll_question(&mut self, now: Time) -> Option<Question> {
        self.note_stop(now);
        let opening = self.opened.is_none() || !self.is_settled(now);
        if !opening {
            let len = if self.full { DATAGRAM_LEN_FULL } else { DATAGRAM_LEN_MIN };
            self.mtu.get_or_insert_with(|| PathMtu::new(now, len));
        }
        // In a silence there is nothing to compare.
        if !self.is_silent(now)
            && let Some(len) = self.poll_mtu(now)
        {
            return Some(self.ask(now, len));
        }
        if now < self.next_at {
            return None;
        }
        // Short once it is known what the path takes, for probes are no load test.
        let len = match (opening, self.next_number % 2) {
            (false, _) if self.is_silent(now) => 0,
            (false, _) => self.mtu.as_mut().map_or(0, |mtu| mtu.confirm_len(now)),
            (true, 1) => DATAGRAM_LEN_MIN,
            (true, _) => DATAGRAM_LEN_FULL,
        };
        self.next_at = now + self.interval(now, opening);
        Some(self.ask(now, len))
    }

    /// This process is awake, and so perhaps the peer: a question that would be due within
    /// [`EARLY_MAX`] is due now, while nothing is wrong.
    pub fn ask_early(&mut self, now: Time) {
        let is_open = self.mtu.is_some() && !self.is_silent(now);
        if is_open && self.next_at <= now + EARLY_MAX {
            self.next_at = self.next_at.min(now);
        }
    }

    /// What is to be counted has left: a question is asked within this time, while nothing is
    /// wrong.
    pub fn ask_within(&mut self, now: Time, wait: Duration) {
        if self.mtu.is_some() && !self.is_silent(now) {
            self.next_at = self.next_at.min(now + wait);
        }
    }

    fn poll_mtu(&mut self, now: Time) -> Option<usize> {
        let wait = self.answer_wait();
        self.mtu.as_mut()?.poll(now, wait)
    }

    /// How long an answer is waited for before a length is doubted.
    fn answer_wait(&self) -> Duration {
        let wait = self.rtt.smoothed().unwrap_or_default() + self.rtt.deviation() * 4;
        wait.max(ANSWER_WAIT_MIN)
    }

    /// Datagrams of this length were sent to the path, so many bytes of them.
    pub fn handle_sent(&mut self, len: usize, bytes: usize) {
        if let Some(mtu) = &mut self.mtu {
            mtu.handle_sent(len, bytes);
        }
    }

    /// The system or the network says that datagrams are too long, and perhaps how long they may
    /// be. Anybody can say so, so it is tried out: what a path carries is known by answers alone.
    pub fn handle_too_large(&mut self, now: Time, len: Option<usize>) {
        if let Some(mtu) = &mut self.mtu {
            mtu.handle_hint(now, len);
        }
    }

    /// The path may be another one than before: what it carries is found out anew.
    pub fn handle_path_change(&mut self, now: Time) {
        if let Some(mtu) = &mut self.mtu {
            mtu.handle_path_change(now);
        }
    }

    /// A question out of turn, as long as is of use and no longer than `len`.
    pub fn ask_at_most(&mut self, now: Time, len: usize) -> Question {
        let lens = [DATAGRAM_LEN_FULL, DATAGRAM_LEN_MIN];
        self.ask(now, lens.into_iter().find(|it| *it <= len).unwrap_or(0))
    }

    fn ask(&mut self, now: Time, len: usize) -> Question {
        let number = self.next_number;
        self.next_number += 1;
        if self.asked.len() >= OPEN_QUESTIONS_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((number, now, len));
        if let Some(mtu) = &mut self.mtu {
            mtu.handle_asked(now, number, len);
        }
        Question { number, len, ecn: Ecn::NotEct }
    }

    /// Notes that time has passed, before [`Prober::life`] is asked: what this end has slept
    /// through is not counted as silence.
    pub fn note_stop(&mut self, now: Time) {
        let since = now.since(self.looked);
        if since > STOPPED_AFTER {
            self.heard = (self.heard + since).min(now);
        }
        self.looked = self.looked.max(now);
    }

    fn interval(&mut self, now: Time, opening: bool) -> Duration {
        if opening {
            return OPENING_EVERY;
        }
        let (volley, every) = match self.life(now) {
            Life::Lost => (LOST_VOLLEY, LOST_EVERY),
            Life::Alive if self.is_silent(now) => {
                let rtt = self.rtt.smoothed().unwrap_or_default();
                (SILENT_VOLLEY, rtt.clamp(SILENT_EVERY_MIN, SILENT_EVERY_MAX))
            }
            Life::Alive => (1, OPEN_EVERY),
        };
        self.volley = (self.volley + 1) % volley;
        if self.volley == 0 { every } else { Duration::ZERO }
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
        match &mut self.mtu {
            Some(mtu) => mtu.handle_answer(number, len),
            None => self.full |= len == DATAGRAM_LEN_FULL,
        }
        self.handle_life(now);
        true
    }

    /// True when no sign of life has come for longer than the usual interval.
    #[must_use]
    pub fn is_silent(&self, now: Time) -> bool {
        now.since(self.heard) >= SILENT_AFTER
    }

    /// Takes any other authenticated sign that the peer lives and hears us.
    pub fn handle_life(&mut self, now: Time) {
        if self.is_silent(now) {
            self.next_at = self.next_at.min(now + OPEN_EVERY);
        }
        self.heard = self.heard.max(now);
    }

    /// When [`Prober::poll_question`] or [`Prober::life`] has something new to say, as far as can
    /// be told at `now`.
    #[must_use]
    pub fn next_deadline(&self, now: Time) -> Time {
        let mtu_at = match &self.mtu {
            Some(mtu) => mtu.next_deadline(self.answer_wait()).filter(|_| !self.is_silent(now)),
            None => self.settled_at(),
        };
        let next_at = self.next_at.min(mtu_at.unwrap_or(Time::NEVER));
        let lost_at = self.heard + LOST_AFTER;
        if lost_at > now { next_at.min(lost_at) } else { next_at }
    }

    /// Whether the peer lives, as far as can be told.
    #[must_use]
    pub fn life(&self, now: Time) -> Life {
        if now.since(self.heard) >= LOST_AFTER { Life::Lost } else { Life::Alive }
    }

    fn is_settled(&self, now: Time) -> bool {
        self.full || self.opened.is_some_and(|opened| now.since(opened) >= FULL_WAIT)
    }

    /// When the opening is over: then the length of datagrams is looked for.
    fn settled_at(&self) -> Option<Time> {
        let opened = self.opened?;
        Some(if self.full { opened } else { opened + FULL_WAIT })
    }

    /// How long datagrams may be; `None` until the path is open and this is known.
    #[must_use]
    pub fn datagram_len(&self, now: Time) -> Option<usize> {
        match &self.mtu {
            Some(mtu) => Some(mtu.len()),
            None if self.full => Some(DATAGRAM_LEN_FULL),
            None => self.is_settled(now).then_some(DATAGRAM_LEN_MIN),
        }
    }

    /// The same once the opening is over, from when on it may change.
    #[must_use]
    pub fn settled_len(&self) -> Option<usize> {
        self.mtu.as_ref().map(PathMtu::len)
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
    fn a_black_hole_for_long_datagrams_leaves_the_least_length_and_then_what_is_found() {
        let mut prober = Prober::new(Time::ZERO, false);
        run(&mut prober, Time::ZERO, 1, |len| len <= 1_280);
        assert_eq!(prober.datagram_len(Time::from_millis(1_200)), Some(DATAGRAM_LEN_MIN));
        run(&mut prober, Time::from_millis(1_000), 2, |len| len <= 1_280);
        let len = prober.datagram_len(Time::from_millis(3_000));
        assert!(len.is_some_and(|len| (1_264..=1_280).contains(&len)), "{len:?}");
        assert_eq!(prober.life(Time::from_millis(3_000)), Life::Alive);
        run(&mut prober, Time::from_millis(3_000), 60, |len| len <= 1_280);
        assert_eq!(prober.life(Time::from_millis(63_000)), Life::Alive, "nor is it lost later");
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
