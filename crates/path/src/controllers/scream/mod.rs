//! [`Scream`]: for media: as much as leaves with hardly a queue, and no more.
//!
//! ```text
//!   both ends count --- lost ------------------.
//!                   --- marked ---> alpha -----+--> reference window --> window: a tenth more
//!                   --- there, back -> delay --'                     --> rate: in a round trip
//!                                      target, higher beside those who yield to losses alone
//! ```
//!
//! A queue makes media late, so it yields before packets are lost: to the share of them that comes
//! with a mark, where routers mark (L4S; what it controls leaves as ECT(1)), and to what they wait
//! longer than 30 ms where none does. It goes by what both ends count, so it holds all flows of its
//! path, also those of whose packets no module says what became of them; with a peer that does not
//! count it goes by what modules report.
//!
//! Sources: RFC 8298; draft-ietf-ccwg-rfc8298bis-screamv2 (version 2); RFC 9331 (L4S). Left out:
//! what the draft says of coders, which are not asked for a rate here, and its optional parts that
//! yield to varying delay. Our own: it begins with ten packets (RFC 6928) instead of three; it
//! yields to losses once in a round trip, where the draft has every 25 ms; what leaves is paced at
//! the reference window in a round trip, so that hardly more than that is in flight; who is further
//! than 100 ms away grows faster; and which queue is that of others.
//!
//! Invariant: the reference window is never less than two packets.

mod alpha;
mod delay;
mod reference;
mod target;
#[cfg(test)]
mod tests;

use super::first::{MSS_MIN, PACKETS_FIRST, known_before};
use crate::controller::{
    Controller, ControllerCx, ControllerEntry, ControllerSpec, Counts, Delivered, Lost, Prior, Sent,
};
use alpha::Alpha;
use dacapo_base::{Ecn, Time};
use delay::Delay;
use reference::{ROUND, Reference, Sign};
use std::time::Duration;
use target::Target;

/// So many times the reference window may be in flight: hardly more, because what leaves is paced.
/// The draft has 1.5 and more, and lets coders have less than that.
const OVERHEAD: f64 = 1.1;

/// Questions that are asked because something leaves are hardly further apart.
const APART_MAX: Duration = Duration::from_millis(50);

/// While the base of the delay is measured anew, this share of it.
const PACE_ANEW: f64 = 0.5;

/// `RATE_PACE_MIN`, in bit/s.
const PACE_BPS_MIN: f64 = 50_000.0;

/// What is known of it.
pub static SPEC: ControllerSpec = ControllerSpec {
    name: "scream",
    summary: "for media: all flows yield to marks (L4S) and to what waits, before any is lost",
    source: "RFC 8298, draft-ietf-ccwg-rfc8298bis-screamv2",
    datagrams: true,
    usual: None,
};

/// As a catalogue has it.
#[must_use]
pub fn entry() -> ControllerEntry {
    ControllerEntry::new(&SPEC, |now, prior| Box::new(Scream::new(now, prior)))
}

/// See the module.
#[derive(Debug)]
pub struct Scream {
    reference: Reference,
    delay: Delay,
    alpha: Alpha,
    target: Target,
    /// The smoothed round trip, and the newest.
    rtt: Option<Duration>,
    trip: Duration,
    /// When it yielded to a loss last.
    yielded_lost: Option<Time>,
    is_anew: bool,
    /// How far questions were apart lately.
    apart: Duration,
}

/// What is heard of at once.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    left_after: Option<Time>,
    packets: u64,
    bytes: u64,
    lost: u64,
    marked: u64,
    trip: Option<(Duration, Option<i64>)>,
    /// Bytes that were in flight until this was heard of: those of counts left a round trip ago.
    reported: u64,
}

impl Scream {
    fn new(now: Time, prior: &Prior) -> Self {
        let first = PACKETS_FIRST * MSS_MIN;
        let first = known_before(prior, 2 * MSS_MIN).map_or(first, |known| known.min(first));
        Self {
            reference: Reference::new(now, MSS_MIN as f64, first as f64),
            delay: Delay::default(),
            alpha: Alpha::default(),
            target: Target::new(now),
            rtt: prior.rtt,
            trip: Duration::ZERO,
            yielded_lost: None,
            is_anew: false,
            apart: Duration::ZERO,
        }
    }

    fn round(&self) -> Duration {
        self.rtt.unwrap_or(ROUND)
    }

    /// A round trip, without what waits on the way back: the window is what is on the way there.
    fn way(&self) -> Duration {
        self.delay.way().unwrap_or(self.round())
    }

    fn hear(&mut self, cx: &ControllerCx, heard: &Heard) {
        self.rtt = cx.rtt.or(self.rtt);
        let (now, rtt) = (cx.now, self.round());
        if let Some((trip, one_way_ns)) = heard.trip {
            self.trip = trip;
            self.delay.handle(now, trip, one_way_ns, rtt.min(ROUND));
            self.target.handle(now, self.delay.queue_s, self.reference.bytes, rtt);
        }
        self.alpha.handle(now, heard.packets, heard.marked, rtt);
        self.reference.note_flight(now, cx.in_flight_bytes.saturating_add(heard.reported), rtt);
        self.yield_or_not(now, heard, rtt);
        // Bytes are of all packets that came; those with a mark let nothing grow.
        let unmarked = heard.packets.saturating_sub(heard.marked);
        let bytes = u128::from(heard.bytes) * u128::from(unmarked);
        let bytes = u64::try_from(bytes / u128::from(heard.packets.max(1))).unwrap_or(u64::MAX);
        self.reference.grow(now, bytes, rtt, self.delay.base_rtt());
        let way = self.way();
        if self.target.poll_untrue(now, self.reference.bytes) {
            self.delay.begin_anew(now, way);
        } else if self.delay.is_hidden(now) && !self.target.is_raised() {
            self.delay.look(now, way);
        }
        self.is_anew = self.delay.is_anew(now);
    }

    fn yield_or_not(&mut self, now: Time, heard: &Heard, rtt: Duration) {
        let is_news = match (heard.left_after, self.yielded_lost) {
            (Some(left), Some(yielded)) => left >= yielded,
            (None, Some(yielded)) => now >= yielded + rtt,
            (_, None) => true,
        };
        if heard.lost > 0 {
            self.target.handle_lost();
        }
        if heard.lost > 0 || heard.marked > 0 {
            self.reference.note_congested(now);
        }
        let (half_s, least_s) = (self.target.target_s / 2.0, self.target.least_s());
        let sign = if heard.lost > 0 && is_news {
            self.yielded_lost = Some(now);
            Sign::Lost
        } else if !self.reference.may_yield(now, rtt) {
            return;
        } else if heard.marked > 0 {
            let is_steady = self.delay.queue_s < least_s / 2.0;
            Sign::Marked { share: self.alpha.share, is_steady }
        } else if self.delay.average_s > least_s {
            Sign::Waits(((self.delay.average_s - least_s) / half_s).min(1.0))
        } else {
            return;
        };
        self.reference.yield_to(now, sign, rtt);
    }
}

impl Controller for Scream {
    fn on_sent(&mut self, _: &ControllerCx, sent: &Sent) {
        self.reference.note_len(sent.datagram_len as f64, PACKETS_FIRST as f64);
    }

    fn on_counted(&mut self, cx: &ControllerCx, counts: &Counts) {
        let Counts { packets, bytes, lost, marked, .. } = *counts;
        let trip = Some((counts.rtt, Some(counts.one_way_ns)));
        let left_after = Some(counts.left_after);
        if packets > 0 {
            let apart = counts.asked.since(counts.left_after).min(APART_MAX);
            self.apart = apart.max(self.apart / 8 * 7);
        }
        self.hear(cx, &Heard { left_after, packets, bytes, lost, marked, trip, reported: 0 });
    }

    fn on_delivered(&mut self, cx: &ControllerCx, delivered: &Delivered) {
        let Delivered { packets, bytes, rtt, .. } = *delivered;
        let trip = rtt.map(|rtt| (rtt, None));
        self.hear(cx, &Heard { packets, bytes, trip, reported: bytes, ..Heard::default() });
    }

    fn on_lost(&mut self, cx: &ControllerCx, lost: &Lost) {
        if lost.is_silence {
            self.reference.note_congested(cx.now);
            return self.reference.begin_again(0.0);
        }
        let (left_after, lost) = (lost.sent_at, lost.packets);
        self.hear(cx, &Heard { left_after, lost, ..Heard::default() });
    }

    fn on_idle(&mut self, _: &ControllerCx) {
        self.reference.begin_again(self.reference.mss * PACKETS_FIRST as f64);
        self.delay.handle_idle();
    }

    fn on_timeout(&mut self, cx: &ControllerCx) {
        self.is_anew = self.delay.is_anew(cx.now);
    }

    fn window(&self) -> u64 {
        let share = if self.is_anew { PACE_ANEW } else { OVERHEAD };
        let bytes = self.reference.bytes * share;
        let (rtt, way) = (self.round(), self.way());
        // What has come since the newest question is in flight as far as is known, and so is what
        // came while its answer waits on the way back.
        let unheard = self.apart + rtt.max(self.trip).saturating_sub(way);
        let unheard = self.reference.bytes * unheard.as_secs_f64() / way.as_secs_f64().max(1e-6);
        (bytes + unheard).max(self.reference.mss) as u64
    }

    fn rate_bps(&self) -> Option<u64> {
        self.rtt?;
        let few = (self.reference.mss / self.reference.bytes - 0.1).clamp(0.0, 0.2);
        let pace = if self.is_anew { PACE_ANEW } else { 1.0 - few };
        let bps = self.reference.bytes * 8.0 * pace / self.way().as_secs_f64().max(1e-6);
        Some(bps.max(PACE_BPS_MIN) as u64)
    }

    fn ecn(&self) -> Ecn {
        Ecn::Ect1
    }

    fn goes_by_counts(&self) -> bool {
        true
    }

    fn due(&self) -> Option<Time> {
        self.delay.anew_until().filter(|_| self.is_anew)
    }
}
