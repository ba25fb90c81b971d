//! [`Pending`]: stretches that were sent and of which no answer says anything yet.
//!
//! ```text
//!   stretch, sync 5 | stretch, sync 5 | stretch, sync 7        the oldest first
//!   echo 5 answers:   both, and not the third
//! ```
//!
//! Invariant: at most `MAX` stretches; further ones are not taken.

use crate::serial::is_newer;
use crate::wire::Span;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Sent {
    span: Span,
    /// The first request that was sent after it, or with it.
    sync: u32,
}

/// Stretches in the order in which they were sent.
#[derive(Debug, Default)]
pub struct Pending<const MAX: usize>(VecDeque<Sent>);

impl<const MAX: usize> Pending<MAX> {
    /// A stretch has been sent; `sync` is the number of the next request after it, or with it.
    pub fn push(&mut self, span: Span, sync: u32) {
        if self.0.len() < MAX {
            self.0.push_back(Sent { span, sync });
        }
    }

    /// Takes out the oldest stretch, when it was sent before the request `echo`, or with it.
    pub fn pop_answered(&mut self, echo: u32) -> Option<Span> {
        let front = self.0.front().filter(|sent| !is_newer(sent.sync, echo))?.span;
        self.0.pop_front();
        Some(front)
    }

    /// The stretches that were sent after the request `echo`.
    pub fn after(&self, echo: u32) -> impl Iterator<Item = Span> {
        self.0.iter().filter(move |sent| is_newer(sent.sync, echo)).map(|sent| sent.span)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_answers_what_was_sent_before_it_and_there_is_a_bound() {
        let span = |left: u64| Span { left, right: left + 1 };
        let mut pending = Pending::<3>::default();
        let first = u32::MAX;
        for (place, sync) in [first, first, 1, 1].into_iter().enumerate() {
            pending.push(span(place as u64), sync);
        }
        assert_eq!(pending.after(first).collect::<Vec<_>>(), [span(2)], "the fourth is not taken");
        assert_eq!(pending.pop_answered(first - 1), None);
        assert_eq!(
            [0, 0, 0].map(|echo| pending.pop_answered(echo)),
            [Some(span(0)), Some(span(1)), None]
        );
        assert_eq!(pending.pop_answered(1), Some(span(2)));
    }
}
