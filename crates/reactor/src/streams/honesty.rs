//! [`Honesty`]: what a transport that was dialed for a stream may say. One that says what cannot be
//! ends its own stream, with the reason, and is listened to no more.
//!
//! ```text
//!   events  --> of another stream than its own, a second opening, after the end --+
//!   looks   --> [`LOOKS_MAX`] in a row without anything, each soon after the last +--> a lie
//!   sending --> took more than it was given --------------------------------------+
//! ```

use dacapo_base::Time;
use dacapo_transport::StreamEvent;
use dacapo_transport::stream::Token;
use std::time::Duration;

/// Looks in a row at a transport that says it has something and has nothing. What a network may
/// have to acknowledge at once is less.
const LOOKS_MAX: u32 = 10_000;

/// What comes after a longer rest is no such row.
const ROW_MAX: Duration = Duration::from_millis(100);

/// What is known of the word of a transport.
#[derive(Debug, Default)]
pub(super) struct Honesty {
    has_lied: bool,
    /// Looks in a row that have found nothing, and the last of them.
    looks: u32,
    looked_at: Time,
}

impl Honesty {
    /// It is not listened to any more.
    pub fn has_lied(&self) -> bool {
        self.has_lied
    }

    /// It has said what cannot be.
    pub fn note_lie(&mut self) {
        self.has_lied = true;
    }

    /// Something was taken or given.
    pub fn note_progress(&mut self) {
        self.looks = 0;
    }

    /// It was looked at in vain; why it is not believed, when that is too often.
    pub fn note_vain(&mut self, now: Time) -> Option<&'static str> {
        let goes_on = now.since(self.looked_at) <= ROW_MAX;
        self.looks = if goes_on { self.looks.saturating_add(1) } else { 1 };
        self.looked_at = now;
        let is_too_often = self.looks >= LOOKS_MAX;
        is_too_often.then_some("it says that it has something, and has nothing")
    }
}

/// What cannot be in an event of a transport that was dialed; `own` is its stream while there is
/// one, and whether that is open.
pub(super) fn lie_in(event: &StreamEvent, own: Option<(&Token, bool)>) -> Option<&'static str> {
    let (StreamEvent::Open { token, .. } | StreamEvent::Closed { token, .. }) = event;
    match own {
        None => Some("it told of a stream that has ended"),
        Some((own, _)) if own != token => Some("it told of a stream that is not its own"),
        Some((_, true)) if matches!(event, StreamEvent::Open { .. }) => Some("it opened twice"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_vain_looks_is_a_lie_unless_something_moves_or_time_passes() {
        let mut honesty = Honesty::default();
        let ms = |ms| Time::ZERO + Duration::from_millis(ms);
        let vain = |honesty: &mut Honesty, count, at| {
            (0..count).filter(|_| honesty.note_vain(at).is_some()).count()
        };
        assert_eq!(vain(&mut honesty, LOOKS_MAX - 1, ms(0)), 0);
        honesty.note_progress();
        assert_eq!(vain(&mut honesty, LOOKS_MAX - 1, ms(1)), 0);
        assert_eq!(vain(&mut honesty, LOOKS_MAX - 1, ms(200)), 0, "another row");
        assert_eq!(vain(&mut honesty, 1, ms(300)), 1);
    }
}
