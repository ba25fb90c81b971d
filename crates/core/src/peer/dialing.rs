//! [`Dialing`]: how long a core that does not answer is dialed, and what a refusal is worth.
//!
//! ```text
//!   refused, on loopback ----------------------------------> over: nothing listens there
//!   refused three times, the last 1 s after the first -----> over: elsewhere one can be forged
//!   something of the peer has come ------------------------> refusals say nothing any more
//!   who dials waits for the peer to be started ------------> nor here, but why in the end
//! ```
//!
//! Invariant: who answers within a second cannot be kept from being reached by forged refusals.

use dacapo_base::{Address, Time};
use std::time::Duration;

/// Dialing goes on for so long, when nothing else is said.
const DIAL_MAX: Duration = Duration::from_secs(10);

/// So many refusals are believed, when the last comes this long after the first.
const REFUSALS_MIN: u32 = 3;
const REFUSALS_OVER: Duration = Duration::from_secs(1);

/// How a core is dialed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DialParams {
    /// Keep trying for so long, also while nothing listens there: it may be about to start. `None`
    /// tries for 10 s, and gives up when it is known that nothing listens.
    pub wait: Option<Duration>,
}

impl DialParams {
    /// How long it goes on at most.
    #[must_use]
    pub fn most(&self) -> Duration {
        self.wait.unwrap_or(DIAL_MAX)
    }
}

/// What is known of a peer that is being dialed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dialing {
    params: DialParams,
    is_heard: bool,
    /// How often it was refused, and when first.
    refused: Option<(u32, Time)>,
}

impl Dialing {
    pub fn new(params: DialParams) -> Self {
        Self { params, ..Self::default() }
    }

    /// Somebody else dials the same peer: who waits longer counts.
    pub fn join(&mut self, other: DialParams) {
        if self.params.wait.or(other.wait).is_some() {
            self.params.wait = Some(self.most().max(other.most()));
        }
    }

    /// Something has come that only the peer, or who sees what goes to it, can have sent.
    pub fn handle_heard(&mut self) {
        self.is_heard = true;
    }

    /// The network says that nothing listens at `remote`; true when that is to be believed, and
    /// dialing ends.
    pub fn handle_refused(&mut self, now: Time, remote: Address) -> bool {
        let (count, since) = self.refused.map_or((1, now), |(count, at)| (count + 1, at));
        self.refused = Some((count, since));
        let is_sure = count >= REFUSALS_MIN && now.since(since) >= REFUSALS_OVER;
        let is_here = remote.is_loopback();
        self.is_refused() && self.params.wait.is_none() && (is_here || is_sure)
    }

    /// Whether the best that is known is that nothing listens there.
    pub fn is_refused(&self) -> bool {
        self.refused.is_some() && !self.is_heard
    }

    /// How long it goes on at most.
    pub fn most(&self) -> Duration {
        self.params.most()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [&str; 3] = ["127.0.0.1:19980", "[::1]:19980", "[::ffff:127.0.0.1]:19980"];
    const THERE: &str = "192.0.2.7:19980";

    fn at(address: &str) -> Address {
        address.parse().unwrap()
    }

    fn waiting(secs: u64) -> DialParams {
        DialParams { wait: Some(Duration::from_secs(secs)) }
    }

    /// Refuses at these times; when it ended, in milliseconds.
    fn refuse(dialing: &mut Dialing, remote: &str, at_ms: &[u64]) -> Option<u64> {
        let is_over = |ms: &u64| dialing.handle_refused(Time::from_millis(*ms), at(remote));
        at_ms.iter().copied().find(is_over)
    }

    #[test]
    fn on_loopback_the_first_refusal_ends_it() {
        for here in HERE {
            assert_eq!(refuse(&mut Dialing::default(), here, &[7]), Some(7), "{here}");
        }
    }

    #[test]
    fn elsewhere_it_takes_three_over_a_second() {
        let of = |at_ms: &[u64]| refuse(&mut Dialing::default(), THERE, at_ms);
        assert_eq!(of(&[0, 500, 999]), None, "they may all be one forger's");
        assert_eq!(of(&[0, 500, 1_000]), Some(1_000));
        assert_eq!(of(&[0, 9_000]), None, "two are not enough");
        assert_eq!(of(&[5, 6, 7, 8, 1_004, 1_005]), Some(1_005), "however many come at once");
    }

    #[test]
    fn once_something_was_heard_refusals_say_nothing() {
        for remote in [HERE[0], THERE] {
            let mut dialing = Dialing::default();
            dialing.handle_heard();
            assert_eq!(refuse(&mut dialing, remote, &[0, 500, 1_000, 9_000]), None, "{remote}");
            assert!(!dialing.is_refused());
        }
        let mut dialing = Dialing::default();
        assert_eq!(refuse(&mut dialing, THERE, &[0, 500]), None);
        assert!(dialing.is_refused());
        dialing.handle_heard();
        assert_eq!(refuse(&mut dialing, THERE, &[1_000, 2_000]), None, "those before neither");
        assert!(!dialing.is_refused());
    }

    #[test]
    fn who_waits_goes_on_and_knows_why_in_the_end() {
        for remote in [HERE[0], THERE] {
            let mut dialing = Dialing::new(waiting(60));
            assert_eq!(refuse(&mut dialing, remote, &[0, 500, 1_000, 59_000]), None, "{remote}");
            assert!(dialing.is_refused());
        }
        assert!(!Dialing::new(waiting(60)).is_refused(), "nobody has said so");
    }

    #[test]
    fn of_two_who_dial_the_one_who_waits_longer_counts() {
        let mut dialing = Dialing::default();
        assert_eq!(dialing.most(), DIAL_MAX);
        for (other, most) in [(waiting(3), 10), (waiting(30), 30), (DialParams::default(), 30)] {
            dialing.join(other);
            assert_eq!(dialing.most(), Duration::from_secs(most));
        }
        assert_eq!(refuse(&mut dialing, HERE[0], &[0]), None);
    }
}
