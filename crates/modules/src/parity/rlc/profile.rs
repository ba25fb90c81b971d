//! What `fec-rlc` does to what is predicted: fewer losses, some of them later, for some packets
//! more.
//!
//! ```text
//!   source        s                                          lost, and of use until here |
//!   repairs            r        r        r        r        r        r        r           |
//! ```
//!
//! A source is computed as soon as as many repairs have come as sources are missing, which is what
//! `walk.rs` computes.

use super::tail::pause;
use super::walk::{Losses, Shares, wait};
use super::{PERCENT, SPAN, SPEC, WINDOW};
use crate::arithmetic::{
    ONE_IN_HUNDRED, packets_in, packets_per_unit, part, ratio, room_for, unit_apart_ns,
};
use crate::parity::chain::left;
use crate::parity::proposing::{TARGETS, are_blocks_enough, proposed_span};
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};
use dacapo_wire::sliding::SOURCES_MAX;
use std::time::Duration;

/// What each train, packet and byte costs where nothing is lost, repairs not counted: default,
/// measured by `dacapo bench cost` on AMD EPYC (AVX-512, GFNI), the median of three; what of it is
/// a repair's is a guess, by what parities cost.
const COST: Cost = Cost { train_ps: 399_000, packet_ps: 77_000, byte_ps: 22, wire_milli: 0 };

/// What a repair adds for every byte of each of its sources, and making, sending and taking it.
const SOURCE_BYTE_FS: u64 = 10_000;
const REPAIR_PS: u64 = 260_000;

/// With fewer sources in a window a copy of each is as good.
const SOURCES_FEWEST: u64 = 8;

#[derive(Debug)]
pub(super) struct Windows;

impl Profile for Windows {
    /// Where somebody waits for no longer than some time, in which a window fills, and blocks are
    /// not enough.
    fn suits(&self, setting: &Setting) -> bool {
        let span = proposed_span(setting);
        let is_fast =
            unit_apart_ns(&setting.units) <= pause(Duration::from_nanos(span)).as_nanos() as u64;
        let sources = packets_in(&setting.units, setting.path.datagram_len, span);
        let is_short = setting.useful_ns < u64::MAX && !are_blocks_enough(setting);
        is_short && is_fast && sources >= SOURCES_FEWEST
    }

    /// A span as long as what comes is of use, and as few repairs as leave one packet in 1,000 lost
    /// on this path, one in 10,000 or one in a million; no more than what the flow may send leaves
    /// room for. Where nothing is lost below, the fewest that there can be.
    fn points(&self, setting: &Setting, below: &Service) -> Vec<Params> {
        let span = proposed_span(setting);
        let sources = packets_in(&setting.units, setting.path.datagram_len, span);
        let mut fewest = 1;
        let mut point = |target: &u64| {
            let mut params = Params::new();
            params.set(WINDOW, sources.saturating_add(1).min(SOURCES_MAX));
            params.set(SPAN, span);
            fewest = fewest_percent(&mut params, setting, *target, fewest);
            params.set(PERCENT, fewest);
            params
        };
        let targets = if below.figures.loss_ppb > 0 { &TARGETS[..] } else { &[PPB] };
        let mut points: Vec<Params> = targets.iter().map(&mut point).collect();
        points.dedup();
        points
    }

    /// - A source stays lost when it waits for repairs for longer than it is in them, or of use.
    /// - What stays lost comes in runs as long as those of the path, at the most.
    /// - 99 of 100 come with the packet itself while fewer than 1 % are lost; else the delay grows
    ///   by what those wait for that are computed ([`Window::delay_ns`]). The jitter grows by the
    ///   time for which a source is in repairs wherever anything is lost.
    /// - Repairs take their part of the rate.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let window = Window::of(params, setting);
        let (figures, burst) = (below.figures, setting.path.burst_milli);
        let [loss, path_loss] = [figures.loss_ppb, setting.path.loss_ppb].map(|it| it.min(PPB));
        let waits = window.waits(loss, burst);
        let left = window.left(&waits, loss, setting.spare_ns(&figures));
        let delay = match loss {
            0..ONE_IN_HUNDRED => 0,
            // Nearly always nothing below loses or repairs, and it is the same.
            _ if loss == path_loss => window.delay_ns(&waits, loss),
            _ => window.delay_ns(&window.waits(path_loss, burst), path_loss),
        };
        let jitter = if loss > 0 { window.reach_ns() } else { 0 };
        Figures {
            loss_ppb: left,
            loss_runs_ppb: ratio(left, 1_000, burst.max(1_000)),
            delay_ns: figures.delay_ns.saturating_add(delay),
            jitter_ns: figures.jitter_ns.saturating_add(jitter),
            rate_bps: part(figures.rate_bps, 1_000, window.packets_milli()),
        }
    }

    fn cost(&self, params: &Params) -> Cost {
        let [percent, window] = ["percent", "window"].map(|name| params.value(&SPEC, name));
        let packet_ps = ratio(percent, REPAIR_PS, 100);
        let byte_ps = ratio(percent.saturating_mul(window), SOURCE_BYTE_FS, 100_000);
        COST.plus(&Cost { packet_ps, byte_ps, ..Cost::ZERO })
    }

    /// Itself, a repair with it, and one more where nothing follows it.
    fn copies(&self, _: &Params) -> u64 {
        3
    }

    fn packets_milli(&self, params: &Params, setting: &Setting) -> u64 {
        Window::of(params, setting).packets_milli()
    }
}

/// The fewest repairs for every 100 packets, from `percent` on, with which no more of what the path
/// loses stays lost than this; the most that there is room for where none do.
fn fewest_percent(params: &mut Params, setting: &Setting, target: u64, percent: u64) -> u64 {
    let path = &setting.path;
    let mut leaves = |percent: u64| {
        params.set(PERCENT, percent);
        let (window, loss) = (Window::of(params, setting), path.loss_ppb.min(PPB));
        window.left(&window.waits(loss, path.burst_milli), loss, u64::MAX)
    };
    let (mut low, mut high) = (percent, room_for(100, setting).clamp(percent, 100));
    while low < high {
        let middle = low.midpoint(high);
        if leaves(middle) <= target { high = middle } else { low = middle + 1 }
    }
    low
}

/// A window as it will be on a path.
struct Window {
    percent: u64,
    /// How many sources it has.
    sources: u64,
    between_ns: u64,
    /// For a flow that pauses after each unit: how many packets a unit has, and when the last
    /// repairs of it come.
    alone: Option<(u64, u64)>,
}

impl Window {
    /// Computed from the path alone and for datagrams that are full, the fewest that there can be:
    /// from the room below, more room would make smaller windows, and a better service below a
    /// worse one above.
    fn of(params: &Params, setting: &Setting) -> Self {
        let [percent, most, span] =
            ["percent", "window", "span"].map(|name| params.value(&SPEC, name));
        let packets = packets_per_unit(&setting.units, setting.path.datagram_len);
        let per_ks = setting.units.per_ks.saturating_mul(packets);
        // 1,000 s are 10^12 ns.
        let between_ns = ratio(1, 1_000_000_000_000, per_ks).max(1);
        let within = span.saturating_sub(1) / between_ns + 1;
        let pauses =
            unit_apart_ns(&setting.units) > pause(Duration::from_nanos(span)).as_nanos() as u64;
        let alone = pauses.then_some((packets, span / 4 * 3));
        Self { percent, sources: most.min(within), between_ns, alone }
    }

    /// How long after a source the last repair leaves that it is in.
    fn reach_ns(&self) -> u64 {
        let by_sources = self.between_ns.saturating_mul(self.sources - 1);
        self.alone.map_or(by_sources, |(_, last)| last)
    }

    fn packets_milli(&self) -> u64 {
        let tail = self.alone.map_or(0, |(packets, _)| {
            ratio(part(packets, self.percent, 100).max(1), 1_000, packets).min(1_000)
        });
        1_000 + 10 * self.percent + tail
    }

    /// How likely it is that a source is missing when so many were sent after it; nothing is looked
    /// at where none is lost, or all, or each unit is alone.
    fn waits(&self, loss_ppb: u64, burst_milli: u64) -> Waits {
        if let Some((packets, _)) = self.alone {
            let sources = packets.min(self.sources);
            let due = part(sources, self.percent, 100);
            let left_with = |repairs| left(loss_ppb, burst_milli, sources, repairs);
            return Waits::Alone(left_with(due), left_with(due + due.max(1)));
        }
        if loss_ppb == 0 || loss_ppb == PPB {
            return Waits::Alone(loss_ppb, loss_ppb);
        }
        let (percent, window) = (self.percent, self.sources);
        Waits::Flowing(Box::new(wait(&Losses { loss_ppb, burst_milli, percent, window })))
    }

    /// What stays lost, in ppb, of what may wait for so long.
    fn left(&self, waits: &Waits, loss_ppb: u64, spare_ns: u64) -> u64 {
        let shares = match waits {
            Waits::Alone(_, left) if self.reach_ns() <= spare_ns => return *left,
            Waits::Alone(left, _) => return *left,
            Waits::Flowing(shares) => shares,
        };
        let after = (spare_ns / self.between_ns).min(self.sources - 1);
        let left = shares.get(after as usize).copied().unwrap_or_default();
        // What is so near a whole number is a difference that was rounded; and only nothing gives
        // nothing.
        ((left * PPB as f64 - 0.001).ceil() as u64).clamp(1, loss_ppb)
    }

    /// How long those wait that are among the slowest of 100 of all that come, by what this path
    /// loses: where more is lost below, less may be computed.
    fn delay_ns(&self, waits: &Waits, loss_ppb: u64) -> u64 {
        let shares = match waits {
            Waits::Alone(..) if loss_ppb < ONE_IN_HUNDRED => return 0,
            Waits::Alone(..) => return self.reach_ns(),
            Waits::Flowing(shares) => shares.get(..self.sources as usize).unwrap_or_default(),
        };
        let left = shares.last().copied().unwrap_or_default();
        let slowest = left + ONE_IN_HUNDRED as f64 / PPB as f64;
        let waits = shares.iter().take_while(|share| **share > slowest).count() as u64;
        self.between_ns.saturating_mul(waits)
    }
}

/// For how long what is lost is missing.
enum Waits {
    /// What stays lost, in ppb, before the last repairs of a unit come, and with these.
    Alone(u64, u64),
    /// By how many sources were sent after it.
    Flowing(Box<Shares>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::MILLISECOND;
    use crate::testing::{internet, service};

    /// 400 packets a second with so much to spare, over a path that loses so much in runs of three.
    fn live(spare_ms: u64, loss_ppb: u64) -> Setting {
        let mut setting = internet(1_000, 1_000);
        (setting.path.loss_ppb, setting.units.per_ks) = (loss_ppb, 400_000);
        setting.useful_ns = (30 + 10 + 1 + spare_ms) * MILLISECOND;
        setting
    }

    #[test]
    fn points_leave_what_they_say_with_no_repair_too_many() {
        let setting = live(150, 20_000_000);
        let mut below = service();
        below.figures.loss_ppb = setting.path.loss_ppb;
        let points = Windows.points(&setting, &below);
        assert_eq!(points.len(), 3);
        for (point, target) in points.iter().zip(TARGETS) {
            let loss = |it: &Params| Windows.figures(it, &setting, &below).loss_ppb;
            let percent = point.value(&SPEC, "percent");
            let mut fewer = point.clone();
            fewer.set(PERCENT, percent - 1);
            assert!(loss(point) <= target || percent == 100, "{point:?} leaves {}", loss(point));
            assert!(loss(&fewer) > target, "{percent} are too many for {target}");
        }
        // 139 ms are left by the path's jitter, in whole milliseconds.
        assert_eq!(
            (points[0].value(&SPEC, "span"), points[0].value(&SPEC, "window")),
            (139 * MILLISECOND, 56)
        );
        below.figures.loss_ppb = 0;
        assert_eq!(Windows.points(&setting, &below).len(), 1);
    }

    #[test]
    fn it_is_proposed_where_there_is_little_time_and_blocks_leave_much() {
        assert!(Windows.suits(&live(150, 50_000_000)));
        assert!(!Windows.suits(&live(150, 2_000_000)), "blocks leave little");
        assert!(!Windows.suits(&live(15, 50_000_000)), "of two packets");
        let endless = Setting { useful_ns: u64::MAX, ..live(150, 50_000_000) };
        assert!(!Windows.suits(&endless));
        let mut slow = live(150, 50_000_000);
        slow.units.per_ks = 10_000;
        assert!(!Windows.suits(&slow), "each unit is alone");
    }

    #[test]
    fn what_is_alone_is_sent_twice_and_what_flows_by_its_share() {
        let mut params = Params::new();
        params.set(SPAN, 100 * MILLISECOND);
        let mut setting = live(150, 50_000_000);
        assert_eq!(Windows.packets_milli(&params, &setting), 1_250);
        setting.units.per_ks = 10_000;
        assert_eq!(Windows.packets_milli(&params, &setting), 2_250);
        let figures = Windows.figures(&params, &setting, &service());
        assert_eq!(figures.jitter_ns, service().figures.jitter_ns + 75 * MILLISECOND);
    }
}
