//! False alarms: how often the probes of a path take a living peer for lost.
//!
//! ```text
//!   Prober --question--> loss p, RTT/2 --> answers --> loss p, RTT/2 --> Prober
//!   clock: jumps to the next question or answer
//! ```
//!
//! `dacapo_path::Prober` by itself, with the worst that counts as life: answers to its own
//! questions and nothing else, neither data nor the peer's questions nor QUIC.

use crate::sweep::Sum;
use dacapo_base::{Random, Time};
use dacapo_path::{Life, Prober};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// What a look at the prober may count as one window.
pub const WINDOW: Duration = Duration::from_secs(3);

/// Windows of one path; each path has a round trip of its own.
pub const WINDOWS_PER_PATH: u64 = 1_000;

/// Longer and longer silences, for a picture of how near an alarm was.
const SILENCE_MS: [u64; 5] = [750, 1_500, 2_000, 2_500, 2_750];

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Alarms {
    /// Windows of 3 s.
    pub windows: u64,
    /// Times that contact was said to be lost.
    pub alarms: u64,
    /// Questions.
    pub questions: u64,
    /// Answers that came.
    pub answers: u64,
    /// The longest time between two answers.
    pub silence_max: Duration,
    /// How many silences were longer than 750, 1,500, 2,000, 2,500 and 2,750 ms.
    pub silences: [u64; 5],
}

impl Sum for Alarms {
    fn merge(&mut self, other: Self) {
        self.windows += other.windows;
        self.alarms += other.alarms;
        self.questions += other.questions;
        self.answers += other.answers;
        self.silence_max = self.silence_max.max(other.silence_max);
        self.silences.iter_mut().zip(other.silences).for_each(|(ours, theirs)| *ours += theirs);
    }
}

/// Runs one path: loss `loss` each way, a round trip of 1 to 300 ms.
pub fn run_path(seed: u64, loss: f64, windows: u64, sum: &mut Alarms) {
    let mut random = Random::from_number(seed ^ 0xA1A4);
    let rtt = Duration::from_micros(1_000 + random.below(299_001));
    let mut prober = Prober::new(Time::ZERO, true);
    let mut answers: BinaryHeap<Reverse<(Time, u64)>> = BinaryHeap::new();
    let (mut now, mut heard, mut lost) = (Time::ZERO, Time::ZERO, false);
    let end = Time::ZERO + WINDOW * u32::try_from(windows).unwrap_or(u32::MAX);
    while now < end {
        while let Some(Reverse((at, number))) =
            answers.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            answers.pop();
            let there = (at - rtt / 2).as_nanos();
            if prober.handle_answer(now, number, there, there) {
                sum.answers += 1;
                note_silence(sum, now.since(heard));
                heard = now;
            }
        }
        while let Some(question) = prober.poll_question(now) {
            sum.questions += 1;
            // There and back, one after the other: the peer answers what it gets.
            if !random.chance(loss) && !random.chance(loss) {
                answers.push(Reverse((now + rtt, question.number)));
            }
        }
        let is_lost = prober.life(now) == Life::Lost;
        sum.alarms += u64::from(is_lost && !lost);
        lost = is_lost;
        let answer = answers.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
        now = prober.next_deadline(now).min(answer).max(now + Duration::from_nanos(1));
        if lost {
            // A deadline that is past says nothing new.
            now = now.max(answer.min(now + Duration::from_millis(10)));
        }
    }
    sum.windows += windows;
}

fn note_silence(sum: &mut Alarms, silence: Duration) {
    sum.silence_max = sum.silence_max.max(silence);
    for (count, ms) in sum.silences.iter_mut().zip(SILENCE_MS) {
        *count += u64::from(silence >= Duration::from_millis(ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_path_is_an_alarm_and_a_perfect_one_is_none() {
        let mut dead = Alarms::default();
        run_path(1, 1.0, 100, &mut dead);
        assert_eq!((dead.alarms, dead.answers), (1, 0), "{dead:?}");
        let mut perfect = Alarms::default();
        run_path(1, 0.0, 100, &mut perfect);
        assert_eq!(perfect.alarms, 0, "{perfect:?}");
        assert!(perfect.answers >= 590, "{perfect:?}");
    }
}
