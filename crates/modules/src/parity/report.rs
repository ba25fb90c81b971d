//! Decoder: [`Reports`], what a receiver tells its sender of the losses that its blocks show.
//!
//! ```text
//!   | 128 | receiver u32 | sources u32 | of these lost u32 | runs of losses u32 |
//! ```
//!
//! A report leaves every second, and four times as often while losses come in several runs. What
//! the sender did not take is told again with the next.
//!
//! Invariant: each source is in one report that was taken, or in none that was answered.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::blocks::seen::Seen;
use dacapo_base::Time;
use dacapo_lift::Cx;
use dacapo_wire::Malformed;
use dacapo_wire::bytes::Reader;
use std::collections::VecDeque;
use std::time::Duration;

/// Out-of-band message of a receiver: who it is, and of the sources of the blocks that were over
/// since its last one how many there were, how many did not come, and in how many runs; a u32 each.
pub const CONTROL_REPORT: u8 = 128;

/// How often a receiver reports.
const EVERY: Duration = Duration::from_secs(1);

/// How often while it has to say more than chance does, and how many runs that are.
const SOON: Duration = Duration::from_millis(250);
const RUNS_SOON: u64 = 3;

/// The reports of a receiver.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Who it is, and when it reported last.
    last: Option<(u32, Time)>,
    /// What is on its way, in the order of the answers.
    unanswered: VecDeque<Seen>,
}

impl Reports {
    /// Reports what was seen, when it is time, and takes it away.
    pub fn send(&mut self, cx: &mut Cx<'_>, seen: &mut Seen) {
        let now = cx.now();
        let every = if seen.runs < RUNS_SOON { EVERY } else { SOON };
        let id = match self.last {
            Some((_, at)) if now.since(at) < every => return,
            Some((id, _)) => id,
            None => cx.random.below(u64::from(u32::MAX)) as u32,
        };
        self.last = Some((id, now));
        if cx.control_to_peer(&emit(id, seen)) {
            self.unanswered.push_back(std::mem::take(seen));
        }
    }

    /// The sender has taken the first that is on its way, or has not.
    pub fn answered(&mut self, is_taken: bool, seen: &mut Seen) {
        if let Some(reported) = self.unanswered.pop_front().filter(|_| !is_taken) {
            seen.add(&reported);
        }
    }
}

fn emit(id: u32, seen: &Seen) -> Vec<u8> {
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let parts = [id, count(seen.sources), count(seen.lost), count(seen.runs)];
    std::iter::once(CONTROL_REPORT).chain(parts.iter().flat_map(|it| it.to_be_bytes())).collect()
}

/// Who reports, and what, of what follows the first byte.
///
/// # Errors
/// It is shorter or longer than a report.
pub(super) fn parse(bytes: &[u8]) -> Result<(u32, Seen), Malformed> {
    let mut reader = Reader(bytes);
    let id = reader.u32()?;
    let mut count = || reader.u32().map(u64::from);
    let seen = Seen { sources: count()?, lost: count()?, runs: count()? };
    reader.end()?;
    Ok((id, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emit_and_parse_are_inverse_and_what_is_too_much_is_the_most() {
        let seen = Seen { sources: 7_000, lost: 20, runs: 3 };
        let message = emit(9, &seen);
        assert_eq!((message[0], parse(&message[1..])), (CONTROL_REPORT, Ok((9, seen))));
        assert_eq!(parse(&message[2..]), Err(Malformed));
        assert_eq!(parse(&[&message[1..], &[0]].concat()), Err(Malformed));
        let most = emit(9, &Seen { sources: u64::MAX, ..seen });
        let sources = parse(&most[1..]).map(|(_, seen)| seen.sources);
        assert_eq!(sources, Ok(u64::from(u32::MAX)));
    }

    #[test]
    fn what_was_not_taken_is_told_again() {
        let seen = |lost| Seen { sources: 100, lost, runs: 0 };
        let mut reports = Reports::default();
        reports.unanswered.extend([seen(1), seen(2)]);
        let mut next = Seen::default();
        reports.answered(true, &mut next);
        assert_eq!(next, Seen::default());
        reports.answered(false, &mut next);
        assert_eq!(next, seen(2));
        reports.answered(false, &mut next);
        assert_eq!(next, seen(2), "nothing more is on its way");
    }
}
