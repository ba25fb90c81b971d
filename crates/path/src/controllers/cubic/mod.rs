//! [`Cubic`]: yields to others as most of the internet does.
//!
//! ```text
//!   slow start: doubles --queue, loss--> along a curve that is flat where the last loss was
//!                                          ^     |
//!                                          '-----' a loss, once a round trip: 0.7 of the window
//! ```
//!
//! Sources: RFC 9438 (CUBIC), RFC 9406 (HyStart++), RFC 9937 (proportional rate reduction), RFC
//! 6928 (initial window), RFC 5681 section 4.1 (after a pause). What leaves is paced over the round
//! trip, as RFC 9002 section 7.7 says. What is lost is what modules report; a window that is not
//! used does not grow.
//!
//! Flows of whose packets nobody says what became of them keep their own bounds.
//!
//! Invariants: the window is never less than two packets; losses of what left before it was made
//! smaller make it no smaller again; integers only.

mod curve;
mod recovery;
mod slow_start;
#[cfg(test)]
mod tests;

use super::first::{MSS_MIN, PACKETS_FIRST, known_before};
use crate::controller::{
    Controller, ControllerCx, ControllerEntry, ControllerSpec, Delivered, Lost, Marked, Prior, Sent,
};
use curve::Curve;
use dacapo_base::{Ecn, Time};
use recovery::Recovery;
use slow_start::SlowStart;
use std::time::Duration;

/// The smallest window, in packets (RFC 9002, section 7.2).
const PACKETS_MIN: u64 = 2;

/// What is left of a window after a loss, in twentieths (RFC 9438, section 4.6).
const LEFT_LOST: u64 = 14;

/// And after a mark: who marks keeps a short queue, which more would leave empty (RFC 8511,
/// section 3).
const LEFT_MARKED: u64 = 17;

/// What is known of it.
pub static SPEC: ControllerSpec = ControllerSpec {
    name: "cubic",
    summary: "flows that are told what came yield to others; what is lost makes the window smaller",
    source: "RFC 9438, 9406, 9937",
    datagrams: true,
    usual: None,
};

/// As a catalogue has it.
#[must_use]
pub fn entry() -> ControllerEntry {
    ControllerEntry::new(&SPEC, |now, prior| Box::new(Cubic::new(now, prior)))
}

/// See the module.
#[derive(Debug)]
pub struct Cubic {
    /// The longest packet.
    mss: u64,
    window: u64,
    /// Up to here the window grows by all that comes.
    threshold: u64,
    /// W_max: where the last loss was.
    plateau: u64,
    slow_start: SlowStart,
    curve: Option<Curve>,
    recovery: Option<Recovery>,
    /// When the window was made smaller last.
    yielded: Option<Time>,
    before: Option<Before>,
    rtt: Option<Duration>,
    /// When something came last.
    came: Time,
}

/// What there was before a loss, which may turn out to have been none.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: u64,
    threshold: u64,
    plateau: u64,
    curve: Option<Curve>,
    /// How many packets were lost since, and how many of them had come.
    lost: u64,
    spurious: u64,
}

impl Cubic {
    fn new(now: Time, prior: &Prior) -> Self {
        let mut it = Self {
            mss: MSS_MIN,
            window: PACKETS_FIRST * MSS_MIN,
            threshold: u64::MAX,
            plateau: 0,
            slow_start: SlowStart::default(),
            curve: None,
            recovery: None,
            yielded: None,
            before: None,
            rtt: prior.rtt,
            came: now,
        };
        if let Some(known) = known_before(prior, it.window_min()) {
            (it.window, it.threshold) = (it.window.min(known), known);
        }
        it
    }

    fn window_min(&self) -> u64 {
        PACKETS_MIN * self.mss
    }

    fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Longer packets leave than before: a window of few is so many of these.
    fn note_len(&mut self, len: u64) {
        if len > self.mss {
            self.mss = len;
            self.window = self.window.max(self.window_min());
            if self.yielded.is_none() && self.threshold == u64::MAX {
                self.window = self.window.max(PACKETS_FIRST * len);
            }
        }
    }

    /// The window grows, for all of it was used.
    fn grow(&mut self, cx: &ControllerCx, delivered: &Delivered) {
        if self.is_slow_start() {
            return self.grow_fast(cx, delivered);
        }
        let (window, plateau) = (self.window, self.plateau.max(self.window));
        let mss = self.mss;
        let curve =
            self.curve.get_or_insert_with(|| Curve::new(cx.now, (window, plateau, window), mss));
        let rtt = self.rtt.unwrap_or_default();
        self.window = curve.grow(cx.now, self.window, delivered.bytes, rtt);
    }

    /// As HyStart++ says before the first loss, and else up to the threshold.
    fn grow_fast(&mut self, cx: &ControllerCx, delivered: &Delivered) {
        if self.threshold < u64::MAX {
            let most = self.threshold;
            self.window = self.window.saturating_add(delivered.bytes).min(most);
            return;
        }
        let Delivered { bytes, sent_at, rtt, .. } = *delivered;
        match self.slow_start.grow(cx.now, bytes, sent_at, rtt) {
            Some(more) => self.window = self.window.saturating_add(more),
            None => self.threshold = self.window,
        }
    }

    /// Makes the window smaller, to so many of 20 parts: it was too large for the path, with
    /// `flight` bytes in flight.
    fn yield_to_others(&mut self, cx: &ControllerCx, flight: u64, packets: u64, left: u64) {
        self.before = Some(Before {
            window: self.window,
            threshold: self.threshold,
            plateau: self.plateau,
            curve: self.curve,
            lost: packets,
            spurious: 0,
        });
        let prior = self.window;
        self.remember_plateau();
        self.window = (prior / 20 * left).max(self.window_min());
        self.threshold = self.window;
        self.curve = Some(Curve::new(cx.now, (self.window, self.plateau, prior), self.mss));
        self.recovery = Some(Recovery::new(cx.now, flight, cx.in_flight_bytes, self.mss));
        self.yielded = Some(cx.now);
    }

    /// W_max; less where a loss came earlier than the last, because others are there now (RFC 9438,
    /// section 4.7).
    fn remember_plateau(&mut self) {
        let is_less = self.window < self.plateau;
        self.plateau = if is_less { self.window / 40 * (20 + LEFT_LOST) } else { self.window };
    }

    /// Nothing was heard for long: it begins again, and doubles up to where it was.
    fn begin_again(&mut self, now: Time) {
        self.threshold = (self.window / 20 * LEFT_LOST).max(self.window_min());
        (self.window, self.plateau) = (self.window_min(), 0);
        (self.curve, self.recovery, self.before) = (None, None, None);
        self.yielded = Some(now);
    }

    /// When what was lost left, if nobody has said.
    fn about(&self, now: Time) -> Time {
        let rtt = self.rtt.unwrap_or_default();
        Time::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos() as u64))
    }

    /// Whether what left then left after the window was made smaller.
    fn is_news(&self, left: Time) -> bool {
        self.yielded.is_none_or(|at| left > at)
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, _: &ControllerCx, sent: &Sent) {
        self.note_len(sent.datagram_len as u64);
        if let Some(recovery) = &mut self.recovery {
            recovery.handle_sent(sent.bytes);
        }
    }

    fn on_delivered(&mut self, cx: &ControllerCx, delivered: &Delivered) {
        self.rtt = cx.rtt.or(self.rtt);
        let quiet = cx.now.since(std::mem::replace(&mut self.came, cx.now));
        if let Some(recovery) = &mut self.recovery {
            if delivered.sent_at.is_none_or(|at| at <= recovery.since) {
                let target = self.window;
                let bytes = delivered.bytes;
                return recovery.handle_delivered(bytes, cx.in_flight_bytes, target, self.mss);
            }
            let took = cx.now.since(recovery.since);
            self.recovery = None;
            self.curve.iter_mut().for_each(|curve| curve.pause(took));
        }
        let was_in_flight = cx.in_flight_bytes.saturating_add(delivered.bytes);
        // While it doubles, half of it in flight will be all of it (as Linux has it).
        let is_used = cx.is_limited || self.is_slow_start() && was_in_flight >= self.window / 2;
        if is_used {
            self.grow(cx, delivered);
        } else if let Some(curve) = &mut self.curve {
            curve.pause(quiet);
        }
    }

    fn on_lost(&mut self, cx: &ControllerCx, lost: &Lost) {
        if lost.is_silence {
            return self.begin_again(cx.now);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.handle_lost();
        }
        if self.is_news(lost.sent_at.unwrap_or(self.about(cx.now))) {
            let flight = cx.in_flight_bytes.saturating_add(lost.bytes);
            self.yield_to_others(cx, flight, lost.packets, LEFT_LOST);
        } else if let Some(before) = &mut self.before {
            before.lost = before.lost.saturating_add(lost.packets);
        }
    }

    fn on_marked(&mut self, cx: &ControllerCx, marked: &Marked) {
        let left = marked.left_after.unwrap_or(self.about(cx.now));
        if marked.packets > 0 && self.is_news(left) {
            self.yield_to_others(cx, cx.in_flight_bytes, u64::MAX, LEFT_MARKED);
        }
    }

    /// All that was lost since the window was made smaller had only been late: it is as before (RFC
    /// 9438, section 4.9).
    fn on_spurious(&mut self, cx: &ControllerCx, packets: u64) {
        let Some(before) = &mut self.before else { return };
        before.spurious = before.spurious.saturating_add(packets);
        if before.spurious < before.lost {
            return;
        }
        let (before, took) = (*before, cx.now.since(self.yielded.unwrap_or(cx.now)));
        self.window = self.window.max(before.window);
        (self.threshold, self.plateau, self.curve) =
            (before.threshold, before.plateau, before.curve);
        self.curve.iter_mut().for_each(|curve| curve.pause(took));
        (self.recovery, self.before) = (None, None);
    }

    fn ecn(&self) -> Ecn {
        Ecn::Ect0
    }

    fn on_idle(&mut self, _: &ControllerCx) {
        if self.threshold < u64::MAX {
            self.threshold = self.threshold.max(self.window / 4 * 3);
        }
        self.window = self.window.min(PACKETS_FIRST * self.mss);
        (self.curve, self.recovery, self.before) = (None, None, None);
    }

    fn window(&self) -> u64 {
        self.recovery.map_or(self.window, |recovery| recovery.window)
    }

    /// The window in a round trip, and as much more as it may grow meanwhile.
    fn rate_bps(&self) -> Option<u64> {
        let us = self.rtt?.as_micros().max(1);
        let quarters = if self.is_slow_start() { 8 } else { 5 };
        let bits = u128::from(self.window) * 8 * 1_000_000 * quarters / 4 / us;
        Some(u64::try_from(bits).unwrap_or(u64::MAX).max(1))
    }

    fn holds_unreported(&self) -> bool {
        false
    }
}
