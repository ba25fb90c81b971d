//! [`GivenUp`]: runs of packets that were given up lately: to tell one that comes late from a copy,
//! and because its answer shows how long answers take.
//!
//! Invariant: at most [`RUNS_MAX`] runs, of which the oldest goes first.

use super::gap::Gap;
use std::collections::VecDeque;

const RUNS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct GivenUp(VecDeque<Gap>);

impl GivenUp {
    /// The first `count` of a gap are given up.
    pub fn note(&mut self, gap: &Gap, count: u64) {
        let run = Gap { count, ..*gap };
        let asked = |it: &Gap| (it.attempts, it.asked_first, it.asked_last);
        let joins = |it: &&mut Gap| it.end() == run.first && asked(it) == asked(&run);
        if let Some(before) = self.0.iter_mut().rev().find(joins) {
            before.count += run.count;
            return;
        }
        if self.0.len() == RUNS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(run);
    }

    /// The run that a number was given up with.
    pub fn find(&self, number: u64) -> Option<Gap> {
        let is_in = |run: &&Gap| (run.first..run.end()).contains(&number);
        self.0.iter().rev().find(is_in).copied()
    }
}
