//! [`Course`]: how many bytes the far end had read, every 100 ms.
//!
//! ```text
//!   first read     100 ms       200 ms       300 ms        the end: not on the course
//!   0 |--------------|------------|------------|----…--|
//!                   [0]          [1]          [2]
//! ```
//!
//! Who compares a rate with that of others takes the same stretch of each.
//!
//! Invariant: at most [`STEPS_MAX`] figures, none below the one before.

use serde_json::{Value, json};
use std::time::Duration;

/// How far figures are apart, and how many there are at most: a little more than ten minutes.
const STEP: Duration = Duration::from_millis(100);
const STEPS_MAX: usize = 6_100;

/// Bytes that were read by the end of each step, from the first read on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course(Vec<u64>);

impl Course {
    /// A read `since` the first one, before which `bytes` had been read.
    pub fn pass(&mut self, since: Duration, bytes: u64) {
        let steps = usize::try_from(since.as_nanos() / STEP.as_nanos()).unwrap_or(usize::MAX);
        let steps = steps.min(STEPS_MAX);
        if steps > self.0.len() {
            self.0.resize(steps, bytes);
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!(self.0)
    }

    /// Of JSON that somebody else has written; `None` when it is no course.
    pub fn from_json(told: &Value) -> Option<Self> {
        let steps = told.as_array().filter(|steps| steps.len() <= STEPS_MAX)?;
        let steps: Option<Vec<u64>> = steps.iter().map(Value::as_u64).collect();
        steps.filter(|steps| steps.is_sorted()).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_what_was_read_before_it_ended() {
        let mut course = Course::default();
        for (ms, bytes) in [(0, 0), (99, 10), (100, 20), (150, 30), (430, 40), (431, 50)] {
            course.pass(Duration::from_millis(ms), bytes);
        }
        assert_eq!(course.to_json(), json!([20, 40, 40, 40]));
        assert_eq!(Course::from_json(&course.to_json()), Some(course));
    }

    #[test]
    fn it_has_an_end_and_what_is_none_is_not_taken() {
        let mut course = Course::default();
        course.pass(Duration::from_secs(1 << 40), 7);
        assert_eq!(course.0.len(), STEPS_MAX);
        for wrong in [json!([2, 1]), json!([-1]), json!("no"), json!(vec![0; STEPS_MAX + 1])] {
            assert_eq!(Course::from_json(&wrong), None, "{wrong}");
        }
    }
}
