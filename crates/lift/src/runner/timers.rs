//! [`Timers`]: which module wants to be called when.
//!
//! Invariant: at most one entry per module and timer.

use crate::TimerId;
use dacapo_base::Time;

/// When, the place of the module, and its number for the timer.
pub(super) type Due = (Time, usize, TimerId);

#[derive(Debug, Default)]
pub(super) struct Timers {
    armed: Vec<Due>,
    /// Memory for what is due, kept from use to use.
    due: Vec<Due>,
}

impl Timers {
    pub fn set(&mut self, module: usize, timer: TimerId, at: Option<Time>) {
        let place = self.armed.iter().position(|&(_, at, id)| (at, id) == (module, timer));
        match (place, at) {
            (Some(place), Some(at)) => self.armed[place].0 = at,
            (Some(place), None) => {
                self.armed.swap_remove(place);
            }
            (None, Some(at)) => self.armed.push((at, module, timer)),
            (None, None) => {}
        }
    }

    pub fn next(&self) -> Option<Time> {
        self.armed.iter().map(|(at, ..)| *at).min()
    }

    /// Takes what is due out, in the order of time, place and number. Give the memory back.
    pub fn take_due(&mut self, now: Time) -> Vec<Due> {
        let mut due = std::mem::take(&mut self.due);
        due.extend(self.armed.iter().filter(|(at, ..)| *at <= now));
        self.armed.retain(|(at, ..)| *at > now);
        due.sort_unstable();
        due
    }

    pub fn give_back(&mut self, mut due: Vec<Due>) {
        due.clear();
        self.due = due;
    }

    pub fn clear(&mut self) {
        self.armed.clear();
    }
}
