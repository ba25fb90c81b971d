//! [`Bbr`]: sends as fast as the path delivers, and looks now and then whether it delivers more.
//!
//! ```text
//!   startup --no faster for rounds--> drain --> down --> cruise --2 to 3 s--> refill --> up --+
//!                                                ^                                           |
//!                                                '------- too much, or enough ---------------'
//! ```
//!
//! Source: draft-ietf-ccwg-bbr (version 3), without its ACK aggregation and its undoing. Two things
//! are ours, and both are about losses: above 2 % that draft takes each loss for its own doing and
//! stands still where a radio loses 5. Here what is lost while there is no queue and the path is
//! not asked for more is its own (`losses.rs`): only more than that is too much; and what leaves is
//! as much more as is lost, so that as much arrives as the path can carry.
//!
//! Flows of whose packets nobody says what became of them keep their own bounds.
//!
//! Invariants: integers only; the window is never less than four packets, but after a silence.

mod losses;
mod rounds;
mod sampler;
#[cfg(test)]
mod tests;

use crate::controller::{
    Controller, ControllerCx, ControllerEntry, ControllerSpec, Delivered, Lost, Prior, Sent,
};
use dacapo_base::Time;
use losses::{Count, Losses};
use rounds::{Round, Rounds};
use sampler::Sampler;
use std::time::Duration;

/// A packet has so many bytes until longer ones leave.
const MSS_MIN: u64 = 1_200;

/// The first window, and the smallest, in packets.
const PACKETS_FIRST: u64 = 10;
const PACKETS_MIN: u64 = 4;

/// How many rounds without a quarter more end the startup, and that without loss.
const FULL_ROUNDS: u32 = 3;

/// The shortest round trip is looked for when it was not seen for so long, by half a window for
/// so long.
const RTT_OLD_AFTER: Duration = Duration::from_secs(5);
const RTT_PROBE: Duration = Duration::from_millis(200);

/// It cruises so long, and up to a second more, and no more rounds than Reno takes to fill as much
/// again, or this.
const CRUISE: Duration = Duration::from_secs(2);
const CRUISE_ROUNDS_MAX: u64 = 63;

/// From so many packets and rounds of a cruise on it is known what the path loses by itself.
const LISTENED: u64 = 1_024;
const LISTENED_ROUNDS: u64 = 3;

/// It asks for more for so many rounds at most: a bound of one packet becomes one of 4,096 in them.
const UP_ROUNDS_MAX: u64 = 12;

/// Of a window that was too much is left free, in hundredths, and kept after a loss, in tenths.
const HEADROOM: u64 = 15;
const LEFT_TENTHS: u64 = 7;

/// What is known of it.
pub static SPEC: ControllerSpec = ControllerSpec {
    name: "bbr",
    summary: "sends as fast as the path delivers; what that loses by itself does not slow it down",
    source: "draft-ietf-ccwg-bbr, with losses of our own",
    datagrams: true,
    usual: None,
};

/// As a catalogue has it.
#[must_use]
pub fn entry() -> ControllerEntry {
    ControllerEntry::new(&SPEC, |now, prior| Box::new(Bbr::new(now, prior)))
}

/// What it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    /// Half a window, until then, once there is no more in flight.
    ProbeRtt(Option<Time>),
}

impl Phase {
    /// How fast to send, in hundredths of what the path delivers.
    fn pacing_gain(self) -> u64 {
        match self {
            Self::Startup => 277,
            Self::Drain => 50,
            Self::Down => 90,
            Self::Cruise | Self::Refill | Self::ProbeRtt(_) => 100,
            Self::Up => 125,
        }
    }

    /// How much may be in flight, in hundredths of what is under way at that speed.
    fn window_gain(self) -> u64 {
        match self {
            Self::Up => 225,
            Self::ProbeRtt(_) => 50,
            _ => 200,
        }
    }
}

/// How long a phase goes on, in rounds, and what came and was lost in it.
#[derive(Clone, Copy, Debug, Default)]
struct Stage {
    rounds: u64,
    count: Count,
}

/// Whether the startup is over: the fastest of a round, and for how many rounds none was faster.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    rate: u64,
    rounds: u32,
}

/// What is kept to since too much was sent without asking for more, until that is asked again: a
/// rate, and bytes in flight.
#[derive(Clone, Copy, Debug)]
struct Held {
    rate: u64,
    flight: u64,
}

impl Held {
    const NOTHING: Self = Self { rate: u64::MAX, flight: u64::MAX };
}

/// More in flight than this was too much; and by how many packets that grows in the next round.
#[derive(Clone, Copy, Debug)]
struct Bound {
    max: u64,
    step: u64,
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
    /// Asking for more made a queue lately: where round trips are short again, there is none.
    has_felt_queue: bool,
    /// What came and was lost since, while no more was asked for.
    listened: Count,
    /// So much was in flight when asking for more lost too much, and for so many rounds more it is
    /// looked whether a queue can be felt: if not, others keep it full.
    suspect: Option<(u64, u64)>,
    /// When it goes on looking for more.
    probe_at: Time,
    /// When something came last.
    heard: Time,
}

impl Bbr {
    fn new(now: Time, prior: &Prior) -> Self {
        Self {
            mss: MSS_MIN,
            sampler: Sampler::new(now),
            rounds: Rounds::default(),
            losses: Losses::default(),
            phase: Phase::Startup,
            stage: Stage::default(),
            fastest: [0; 2],
            held: Held::NOTHING,
            bound: Bound { max: u64::MAX, step: 1 },
            rtt: prior.rtt,
            rtt_min: None,
            rtt_min_at: now,
            full: Full::default(),
            window: PACKETS_FIRST * MSS_MIN,
            has_felt_queue: false,
            listened: Count::default(),
            suspect: None,
            probe_at: now,
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

    /// It is on its way to what it delivers, and not past it.
    fn is_full(&self) -> bool {
        self.phase != Phase::Startup
    }

    fn enter(&mut self, now: Time, phase: Phase) {
        if phase == Phase::Refill {
            self.losses.note_before(self.stage.count);
            self.note_own(now);
        }
        (self.phase, self.stage) = (phase, Stage::default());
        match phase {
            Phase::Down => {
                if self.fastest[0] > 0 {
                    self.fastest = [0, self.fastest[0]];
                }
                // Paths that begin together are not to look for more together.
                let own = self.sampler.delivered.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
                self.probe_at = now + CRUISE + Duration::from_millis(own);
            }
            Phase::Refill => {
                self.held = Held::NOTHING;
                (self.bound.step, self.has_felt_queue) = (1, false);
            }
            _ => {}
        }
    }

    /// What was lost is the path's own where asking for more made a queue and not asking left none:
    /// where others keep it full neither is so.
    fn note_own(&mut self, now: Time) {
        let listened = std::mem::take(&mut self.listened);
        if self.has_felt_queue {
            self.losses.note_own(now, listened);
        }
    }

    fn note_rtt(&mut self, now: Time, rtt: Duration) {
        self.rounds.now.rtt = Some(self.rounds.now.rtt.map_or(rtt, |known| known.min(rtt)));
        if self.rtt_min.is_none_or(|known| rtt <= known) {
            (self.rtt_min, self.rtt_min_at) = (Some(rtt), now);
        }
    }

    fn end_round(&mut self, cx: &ControllerCx, round: &Round) {
        let has_queue = round.has_queue(self.rtt_min.unwrap_or_default());
        let is_too_much = self.losses.are_too_many(cx.now, round.count);
        match self.phase {
            Phase::Startup => self.look_whether_full(round, has_queue && is_too_much),
            Phase::Cruise if self.is_listening() && self.stage.rounds > 0 => {
                self.listened.add(round.count);
                self.has_felt_queue &= !has_queue;
            }
            Phase::Up if !is_too_much && cx.is_limited => self.allow_more(),
            _ => {}
        }
        if matches!(self.phase, Phase::Down | Phase::Cruise) && has_queue && is_too_much {
            self.hold(round);
        }
        self.has_felt_queue |= has_queue && self.phase != Phase::Cruise;
        self.judge(cx.now);
        self.stage.rounds += 1;
    }

    /// Where asking for more lost too much and no queue was felt, it was too much.
    fn judge(&mut self, now: Time) {
        match self.suspect {
            Some(_) if self.has_felt_queue => self.suspect = None,
            Some((flight, 0)) => {
                self.suspect = None;
                self.yield_to_others(now, flight);
            }
            Some((flight, rounds)) => self.suspect = Some((flight, rounds - 1)),
            None => {}
        }
    }

    /// While it does not know yet what the path loses by itself it does not make up for that.
    fn is_listening(&self) -> bool {
        self.stage.rounds < LISTENED_ROUNDS || self.stage.count.all() < LISTENED
    }

    fn look_whether_full(&mut self, round: &Round, is_too_much: bool) {
        if round.is_app_limited {
            return;
        }
        if round.rate >= self.full.rate / 4 * 5 {
            (self.full.rate, self.full.rounds) = (round.rate, 0);
        } else {
            self.full.rounds = if is_too_much { FULL_ROUNDS } else { self.full.rounds + 1 };
        }
    }

    /// Others are there: it keeps to what it got, and not less than seven tenths of before.
    fn hold(&mut self, round: &Round) {
        let left = |before: u64| before / 10 * LEFT_TENTHS;
        self.held.rate = round.rate.max(left(self.rate()));
        self.held.flight = left(self.window.min(self.held.flight)).max(self.window_min());
    }

    /// More in flight than before was not too much.
    fn allow_more(&mut self) {
        if self.bound.max < u64::MAX {
            self.bound.max = self.bound.max.saturating_add(self.bound.step * self.mss);
            self.bound.step = (self.bound.step * 2).min(1 << 20);
        }
    }

    fn window_min(&self) -> u64 {
        PACKETS_MIN * self.mss
    }

    /// So much in flight was too much.
    fn yield_to_others(&mut self, now: Time, flight: u64) {
        let least = self.under_way(100).max(self.window_min()) / 10 * LEFT_TENTHS;
        self.bound.max = flight.max(least);
        self.enter(now, Phase::Down);
    }

    fn step(&mut self, cx: &ControllerCx) {
        let (now, flight) = (cx.now, cx.in_flight_bytes);
        match self.phase {
            Phase::Startup if self.full.rounds >= FULL_ROUNDS => self.enter(now, Phase::Drain),
            Phase::Drain if flight <= self.under_way(100) => self.enter(now, Phase::Down),
            Phase::Down if flight <= self.under_way(100).min(self.flight_with_headroom()) => {
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
        if is_old && self.is_full() && !matches!(self.phase, Phase::ProbeRtt(_)) {
            self.enter(now, Phase::ProbeRtt(None));
        }
    }

    fn step_up(&mut self, cx: &ControllerCx) {
        let enough = self.and_lost(self.under_way(125));
        let is_enough = self.stage.rounds > 0 && cx.in_flight_bytes >= enough
            || self.stage.rounds > u64::from(FULL_ROUNDS) && self.bound.max >= enough
            || self.stage.rounds > UP_ROUNDS_MAX;
        if self.losses.are_more_than_before(cx.now, self.stage.count) {
            self.yield_to_others(cx.now, cx.in_flight_bytes);
        } else if is_enough {
            if self.losses.are_too_many(cx.now, self.stage.count) && !self.has_felt_queue {
                self.suspect = Some((cx.in_flight_bytes, 1));
            }
            self.enter(cx.now, Phase::Down);
        }
    }

    fn step_probe_rtt(&mut self, cx: &ControllerCx, until: Option<Time>) {
        match until {
            None if cx.in_flight_bytes <= self.window_now() => {
                self.rounds.now.rtt = None;
                self.rtt_min = self.rtt.or(self.rtt_min);
                self.phase = Phase::ProbeRtt(Some(cx.now + RTT_PROBE));
            }
            Some(until) if cx.now >= until => {
                self.rtt_min_at = cx.now;
                self.enter(cx.now, Phase::Down);
            }
            _ => {}
        }
    }

    fn flight_with_headroom(&self) -> u64 {
        self.bound.max.saturating_sub(self.bound.max / 100 * HEADROOM)
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let packets = self.under_way(100) / self.mss;
        now >= self.probe_at || self.stage.rounds >= packets.clamp(8, CRUISE_ROUNDS_MAX)
    }

    /// What is sent more, in millionths of what is to arrive, because it is lost on the way.
    fn lost_on_the_way(&self) -> u64 {
        let makes_up = match self.phase {
            Phase::Cruise => !self.is_listening(),
            Phase::Up | Phase::Refill => true,
            _ => false,
        };
        let own = if makes_up { self.losses.own_ppm(self.heard) } else { 0 };
        own * 1_000_000 / (1_000_000 - own)
    }

    /// What may be in flight, from what is under way and the bounds of the phase.
    fn window_now(&self) -> u64 {
        let most = match self.phase {
            Phase::Up | Phase::Refill | Phase::Startup | Phase::Drain => self.bound.max,
            _ => self.flight_with_headroom().min(self.held.flight),
        };
        let most = match self.phase {
            Phase::ProbeRtt(_) => most.min(self.under_way(50)),
            _ => most,
        };
        self.window.min(most).max(self.window_min())
    }

    /// So many bytes, and those that are lost on the way.
    fn and_lost(&self, bytes: u64) -> u64 {
        let more = u128::from(bytes) * u128::from(self.lost_on_the_way()) / 1_000_000;
        bytes.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }

    fn grow(&mut self, delivered: u64) {
        let target = self.under_way(self.phase.window_gain().max(200));
        let target = self.and_lost(target).saturating_add(self.mss);
        let grown = self.window.saturating_add(delivered);
        self.window = if self.is_full() { grown.min(target) } else { grown.max(self.window) };
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
        let count = [&mut self.rounds.now.count, &mut self.stage.count];
        count.into_iter().for_each(|it| it.came = it.came.saturating_add(delivered.packets));
        if let Some(rtt) = delivered.rtt {
            self.note_rtt(cx.now, rtt);
        }
        let shortest = self.rtt_min.unwrap_or_default();
        if let Some(sample) = self.sampler.handle_delivered(cx.now, delivered, shortest) {
            if let Some(rate) = sample.rate
                && (!sample.is_app_limited || rate > self.fastest())
            {
                self.fastest[0] = self.fastest[0].max(rate);
            }
            if let Some(round) = self.rounds.handle(&sample, self.sampler.delivered) {
                self.end_round(cx, &round);
            }
        }
        if !cx.is_limited {
            self.sampler.limit_by_application(cx.in_flight_bytes);
        }
        self.step(cx);
        self.grow(delivered.bytes);
    }

    fn on_lost(&mut self, cx: &ControllerCx, lost: &Lost) {
        if lost.is_silence {
            // What was learned of the path holds until something comes.
            self.window = self.window_min();
            return;
        }
        let count = [&mut self.rounds.now.count, &mut self.stage.count];
        count.into_iter().for_each(|it| it.lost = it.lost.saturating_add(lost.packets));
        if self.phase == Phase::Up {
            self.step_up(cx);
        }
    }

    fn on_marked(&mut self, cx: &ControllerCx, packets: u64) {
        if packets > 0 && self.phase == Phase::Up {
            self.yield_to_others(cx.now, cx.in_flight_bytes);
        }
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
