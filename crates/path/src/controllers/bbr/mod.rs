//! [`Bbr`]: sends as fast as the path delivers, and looks now and then whether it delivers more.
//!
//! ```text
//!   startup --no faster for rounds--> drain --> down --> cruise --2 to 3 s--> refill --> up --+
//!                                                ^  |                                        |
//!                                                |  '- too much lost, no queue: half for a while
//!                                                '------- too much, or enough ---------------'
//! ```
//!
//! Source: draft-ietf-ccwg-bbr (version 3), without its undoing. Two things
//! are ours, and both are about losses: above 2 % that draft takes each loss for its own doing and
//! stands still where a radio loses 5. Here it is asked for half where too much is lost without a
//! queue (`hearing.rs`): what is lost then, too, is the path's own. Only more than that is too
//! much (`losses.rs`), and as much more leaves as is lost, so that as much arrives as the path can
//! carry. Where asking for more is for nothing several times it is asked less often.
//!
//! Flows of whose packets nobody says what became of them keep their own bounds.
//!
//! Invariants: integers only; the window is never less than four packets, but after a silence.

mod aggregation;
mod hearing;
mod limits;
mod losses;
mod phase;
mod rounds;
mod sampler;
#[cfg(test)]
mod tests;

use super::first::{MSS_MIN, PACKETS_FIRST, known_before};
use crate::controller::{
    Controller, ControllerCx, ControllerEntry, ControllerSpec, Delivered, Leads, Lost, Marked,
    Prior, Sent,
};
use aggregation::Aggregation;
use dacapo_base::{Ecn, Time};
use hearing::Hearing;
use limits::{Bound, FULL_ROUNDS, Full, Held, left};
use losses::{Count, Losses};
use phase::{Asking, Phase, Stage};
use rounds::{Floor, Round, Rounds};
use sampler::Sampler;
use std::time::Duration;

/// The smallest window, in packets.
const PACKETS_MIN: u64 = 4;

/// When it was not seen for that long the shortest round trip is looked for, for this long, by half
/// a window.
const RTT_OLD_AFTER: Duration = Duration::from_secs(5);
const RTT_PROBE: Duration = Duration::from_millis(200);

/// It cruises so long, and up to a second more, and no more rounds than Reno takes to fill as much
/// again, or this.
const CRUISE: Duration = Duration::from_secs(2);
const CRUISE_ROUNDS_MAX: u64 = 63;

/// It asks for more for so many rounds at most: a bound of one packet becomes one of 4,096 in them.
const UP_ROUNDS_MAX: u64 = 12;

/// Losses are judged over so many packets at most.
const WATCHED_MAX: u64 = 512;

/// What is known of it.
pub static SPEC: ControllerSpec = ControllerSpec {
    name: "bbr",
    summary: "sends as fast as the path delivers; what that loses by itself does not slow it down",
    source: "draft-ietf-ccwg-bbr, with losses of our own",
    datagrams: true,
    usual: Some(Leads::Elsewhere),
};

/// As a catalogue has it.
#[must_use]
pub fn entry() -> ControllerEntry {
    ControllerEntry::new(&SPEC, |now, prior| Box::new(Bbr::new(now, prior)))
}

/// See the module.
#[derive(Debug)]
pub struct Bbr {
    mss: u64,
    sampler: Sampler,
    rounds: Rounds,
    losses: Losses,
    phase: Phase,
    stage: Stage,
    /// The fastest delivery of this cycle, and of the last, in bytes per second.
    fastest: [u64; 2],
    held: Held,
    bound: Bound,
    rtt: Option<Duration>,
    rtt_min: Option<Duration>,
    rtt_min_at: Time,
    full: Full,
    window: u64,
    /// The shortest round trip of the last half a minute or minute.
    floor: Floor,
    aggregation: Aggregation,
    hearing: Hearing,
    /// What came and was lost lately while nothing more was asked for: of a round of few packets
    /// nobody can tell losses from chance.
    watched: Count,
    asking: Asking,
    /// When something came last.
    heard: Time,
}

impl Bbr {
    fn new(now: Time, prior: &Prior) -> Self {
        let first = PACKETS_FIRST * MSS_MIN;
        Self {
            mss: MSS_MIN,
            sampler: Sampler::new(now),
            rounds: Rounds::default(),
            losses: Losses::default(),
            phase: Phase::Startup,
            stage: Stage::default(),
            fastest: [0; 2],
            held: Held::NOTHING,
            bound: Bound::NOTHING,
            rtt: prior.rtt,
            rtt_min: None,
            rtt_min_at: now,
            full: Full::default(),
            window: known_before(prior, PACKETS_MIN * MSS_MIN).unwrap_or(u64::MAX).min(first),
            floor: Floor::default(),
            aggregation: Aggregation::default(),
            hearing: Hearing::default(),
            watched: Count::default(),
            asking: Asking { at: now, futile: 0 },
            heard: now,
        }
    }

    /// The fastest delivery lately.
    fn fastest(&self) -> u64 {
        self.fastest[0].max(self.fastest[1])
    }

    /// How fast the path is taken to deliver, in bytes per second; 0 while nothing is known.
    fn rate(&self) -> u64 {
        self.fastest().min(self.held.rate)
    }

    /// What is under way at that speed, in hundredths of it.
    fn under_way(&self, hundredths: u64) -> u64 {
        let ns = self.rtt_min.unwrap_or_default().as_nanos();
        let bytes = u128::from(self.rate()) * ns / 1_000_000_000 * u128::from(hundredths) / 100;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn enter(&mut self, now: Time, phase: Phase) {
        if phase == Phase::Refill {
            self.losses.note_before(self.stage.count);
            self.held = Held::NOTHING;
            self.bound.begin();
        }
        if self.phase == Phase::Up && self.fastest[0] > 0 {
            self.fastest = [0, self.fastest[0]];
        }
        if phase == Phase::Down {
            // Paths that begin together are not to look for more together.
            let own = self.sampler.delivered.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
            self.asking.at = now + CRUISE + Duration::from_millis(own);
        }
        (self.phase, self.stage) = (phase, Stage::default());
    }

    fn note_rtt(&mut self, now: Time, rtt: Duration) {
        self.rounds.running.note_rtt(rtt);
        if self.rtt_min.is_none_or(|known| rtt <= known) {
            (self.rtt_min, self.rtt_min_at) = (Some(rtt), now);
        }
        self.floor.note(now, rtt);
    }

    fn end_round(&mut self, cx: &ControllerCx, round: &Round) {
        let rtt_min = self.rtt_min.unwrap_or_default();
        let has_queue = round.has_queue(rtt_min);
        let is_too_much = self.losses.are_too_many(cx.now, round.count);
        match self.phase {
            Phase::Startup => self.full.look(round, has_queue && is_too_much),
            Phase::Up if !is_too_much && cx.is_limited => self.bound.allow_more(self.mss),
            _ => {}
        }
        self.stage.rounds += 1;
        self.aggregation.end_round();
        match self.phase {
            // What left before half was asked for is heard of in the first round.
            Phase::ProbeRtt(Some(_)) if self.stage.rounds > 1 => {
                let floor = self.floor.least().unwrap_or(rtt_min);
                self.hearing.listen(round.count, round.longer(floor), floor);
            }
            Phase::Down | Phase::Cruise => self.watch(cx.now, round, has_queue),
            _ => {}
        }
    }

    /// A round is over in which nothing more was asked for.
    fn watch(&mut self, now: Time, round: &Round, has_queue: bool) {
        self.watched.add(round.count);
        let is_too_much = self.losses.are_too_many(now, self.watched);
        if is_too_much || self.watched.all() >= WATCHED_MAX {
            self.watched = Count::default();
        }
        let is_doubtful = is_too_much && !has_queue || self.losses.is_to_be_confirmed(now);
        match (is_too_much, is_doubtful) {
            (_, true) if self.hearing.doubt(now) => self.enter(now, Phase::ProbeRtt(None)),
            (false, _) => {}
            (true, _) => self.hold(round),
        }
    }

    /// Others are there: it keeps to what it got, and not less than seven tenths of before.
    fn hold(&mut self, round: &Round) {
        self.held.rate = round.rate.max(left(self.rate()));
        self.held.flight = left(self.window.min(self.held.flight)).max(self.window_min());
    }

    fn window_min(&self) -> u64 {
        PACKETS_MIN * self.mss
    }

    /// So much in flight was too much.
    fn yield_to_others(&mut self, now: Time, flight: u64) {
        self.bound.max = flight.max(left(self.under_way(100).max(self.window_min())));
        self.enter(now, Phase::Down);
    }

    fn step(&mut self, cx: &ControllerCx) {
        let (now, flight) = (cx.now, cx.in_flight_bytes);
        match self.phase {
            Phase::Startup if self.full.is_full() => self.enter(now, Phase::Drain),
            Phase::Drain if flight <= self.under_way(100) => self.enter(now, Phase::Down),
            Phase::Down if flight <= self.under_way(100).min(self.bound.with_headroom()) => {
                self.enter(now, Phase::Cruise);
            }
            Phase::Down | Phase::Cruise if self.is_time_to_probe(now) => {
                self.enter(now, Phase::Refill);
            }
            Phase::Refill if self.stage.rounds > 0 => self.enter(now, Phase::Up),
            Phase::Up => self.step_up(cx),
            Phase::ProbeRtt(until) => self.step_probe_rtt(cx, until),
            _ => {}
        }
        let is_old = now.since(self.rtt_min_at) > RTT_OLD_AFTER;
        if is_old && !matches!(self.phase, Phase::Startup | Phase::ProbeRtt(_)) {
            self.enter(now, Phase::ProbeRtt(None));
        }
    }

    fn step_up(&mut self, cx: &ControllerCx) {
        let enough = self.and_lost(self.under_way(125));
        let is_enough = self.stage.rounds > 0 && cx.in_flight_bytes >= enough
            || self.stage.rounds > u64::from(FULL_ROUNDS) && self.bound.max >= enough
            || self.stage.rounds > UP_ROUNDS_MAX;
        // Losses are heard of first: of a part of what is under way nothing follows.
        let is_heard = self.stage.count.all() >= self.under_way(100) / self.mss / 8;
        if is_heard && self.losses.are_more_than_before(cx.now, self.stage.count) {
            self.asking.was_futile();
            self.yield_to_others(cx.now, cx.in_flight_bytes);
        } else if is_enough {
            self.asking.futile = 0;
            self.enter(cx.now, Phase::Down);
        }
    }

    fn step_probe_rtt(&mut self, cx: &ControllerCx, until: Option<Time>) {
        match until {
            None if cx.in_flight_bytes <= self.window_now() => {
                self.rounds.running.rtt = None;
                if cx.now.since(self.rtt_min_at) > RTT_OLD_AFTER {
                    self.rtt_min = self.rtt.or(self.rtt_min);
                }
                self.stage = Stage::default();
                self.phase = Phase::ProbeRtt(Some(cx.now + RTT_PROBE));
            }
            Some(until) if cx.now >= until && self.hearing.is_enough(cx.now.since(until)) => {
                self.rtt_min_at = cx.now;
                if let Some(own) = self.hearing.take() {
                    self.losses.note_own(cx.now, own);
                }
                self.enter(cx.now, Phase::Down);
            }
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let packets = self.under_way(100) / self.mss;
        let rounds = packets.clamp(8, CRUISE_ROUNDS_MAX) << self.asking.futile;
        now >= self.asking.at || self.stage.rounds >= rounds
    }

    /// While it cruises, and knows what the path loses by itself, as much more is sent.
    fn makes_up(&self) -> bool {
        self.phase == Phase::Cruise && self.losses.own_ppm(self.heard) > 0
    }

    /// What is sent more, in millionths of what is to arrive, where the path loses as it does.
    fn lost_on_the_way(&self) -> u64 {
        let own = if self.makes_up() { self.losses.own_ppm(self.heard) } else { 0 };
        own * 1_000_000 / (1_000_000 - own)
    }

    /// What may be in flight, from what is under way and the bounds of the phase.
    fn window_now(&self) -> u64 {
        let most = if self.phase.is_careful() {
            self.bound.with_headroom().min(self.held.flight)
        } else {
            self.bound.max
        };
        let is_probe = matches!(self.phase, Phase::ProbeRtt(_));
        let most = if is_probe { most.min(self.under_way(50)) } else { most };
        self.window.min(most).max(self.window_min())
    }

    /// So many bytes, and those that are lost on the way.
    fn and_lost(&self, bytes: u64) -> u64 {
        let more = u128::from(bytes) * u128::from(self.lost_on_the_way()) / 1_000_000;
        bytes.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// So many bytes have come: the window grows up to what the phase has; in the startup by all of
    /// it, where it is used.
    fn grow(&mut self, cx: &ControllerCx, delivered: u64) {
        let grown = self.window.saturating_add(delivered);
        let target = self.and_lost(self.under_way(self.phase.window_gain()));
        let target = target.saturating_add(self.aggregation.extra());
        let was_in_flight = cx.in_flight_bytes.saturating_add(delivered);
        self.window = match self.phase {
            Phase::Startup if cx.is_limited || was_in_flight >= self.window / 2 => grown,
            Phase::Startup => self.window,
            _ => grown.min(target.saturating_add(self.mss)),
        };
        self.window = self.window.max(self.window_min());
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, cx: &ControllerCx, sent: &Sent) {
        let len = sent.datagram_len as u64;
        if len > self.mss {
            self.mss = len;
            self.window = self.window.max(PACKETS_MIN * len);
        }
        let before = cx.in_flight_bytes.saturating_sub(sent.bytes);
        self.sampler.handle_sent(cx.now, before, sent);
    }

    fn on_delivered(&mut self, cx: &ControllerCx, delivered: &Delivered) {
        (self.rtt, self.heard) = (cx.rtt.or(self.rtt), cx.now);
        let count = [&mut self.rounds.running.count, &mut self.stage.count];
        count.into_iter().for_each(|it| it.came = it.came.saturating_add(delivered.packets));
        if let Some(rtt) = delivered.rtt {
            self.note_rtt(cx.now, rtt);
        }
        let shortest = self.rtt_min.unwrap_or_default();
        if let Some(sample) = self.sampler.handle_delivered(cx.now, delivered, shortest) {
            if let Some(rate) = sample.rate
                && (!sample.is_app_limited || rate > self.fastest())
                && !(self.makes_up() || self.phase == Phase::Refill)
            {
                self.fastest[0] = self.fastest[0].max(rate);
            }
            if let Some(round) = self.rounds.handle(&sample, self.sampler.delivered) {
                self.end_round(cx, &round);
            }
        }
        self.aggregation.handle(cx.now, delivered.bytes, self.rate(), self.window);
        if !cx.is_limited {
            self.sampler.limit_by_application(cx.in_flight_bytes);
        }
        self.step(cx);
        self.grow(cx, delivered.bytes);
    }

    fn on_lost(&mut self, cx: &ControllerCx, lost: &Lost) {
        if lost.is_silence {
            // What was learned of the path holds until something comes.
            self.window = self.window_min();
            return;
        }
        let count = [&mut self.rounds.running.count, &mut self.stage.count];
        count.into_iter().for_each(|it| it.lost = it.lost.saturating_add(lost.packets));
        if self.phase == Phase::Up {
            self.step_up(cx);
        }
    }

    fn on_marked(&mut self, cx: &ControllerCx, marked: &Marked) {
        if marked.packets > 0 && self.phase == Phase::Up {
            self.yield_to_others(cx.now, cx.in_flight_bytes);
        }
    }

    fn ecn(&self) -> Ecn {
        Ecn::Ect0
    }

    fn on_idle(&mut self, cx: &ControllerCx) {
        // Nothing was in flight: that is no queue, and what was learned is kept.
        self.rtt_min_at = self.rtt_min_at.max(cx.now);
        self.sampler.limit_by_application(0);
    }

    fn window(&self) -> u64 {
        self.window_now()
    }

    /// What the path delivers, faster or slower as the phase has it, and a hundredth less.
    fn rate_bps(&self) -> Option<u64> {
        let gain = u128::from(self.phase.pacing_gain());
        let rate = self.rate();
        let bytes_per_s = if rate > 0 {
            let made_up = 1_000_000 + u128::from(self.lost_on_the_way());
            u128::from(rate) * gain / 100 * 99 / 100 * made_up / 1_000_000
        } else {
            let ns = self.rtt?.as_nanos().max(1);
            u128::from(self.window) * 1_000_000_000 / ns * gain / 100
        };
        Some(u64::try_from(bytes_per_s * 8).unwrap_or(u64::MAX).max(8 * self.mss))
    }

    fn holds_unreported(&self) -> bool {
        false
    }
}
