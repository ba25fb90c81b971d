//! What `fec-xor` does to what is predicted: fewer losses, up to a grid later, for some packets
//! more.
//!
//! ```text
//!   source     s                                   lost, and of use until here |
//!   row        s s s s s r                         gives it back soon
//!   column     s         s         s         c     gives it back late
//! ```
//!
//! How many stay lost is what `chances.rs` computes.

use super::chances::{Both, Group};
use super::{
    ARRANGEMENT, BOTH, COLUMNS, COLUMNS_MAX, COLUMNS_ONLY, ROWS, ROWS_MAX, ROWS_ONLY, SPAN, SPEC,
};
use crate::arithmetic::{
    ONE_IN_HUNDRED, apart_ns, packets_in, packets_per_unit, part, ratio, room_for, unit_apart_ns,
};
use crate::parity::proposing::{TARGETS, are_blocks_enough, proposed_span};
use crate::parity::turns::Turns;
use dacapo_lift::{Cost, Figures, PPB, Params, Profile, Service, Setting};

/// What each train, packet and byte costs where nothing is lost, sums not counted. Measured for
/// rows of 10 and columns of 5; how much of it the sums are is by those of `fec-rlc` and `fec-rs`.
const COST: Cost = Cost { train_ps: 266_000, packet_ps: 38_000, byte_ps: 9, wire_milli: 0 };

/// What a source adds for every byte, to one sum or to two, and making, sending and taking a sum:
/// likewise.
const SOURCE_BYTE_PS: u64 = 14;
const SUM_PS: u64 = 110_000;

/// With fewer rows a sum costs more than one for eight.
const ROWS_FEWEST: u64 = 8;

/// The columns that are proposed.
const COLUMNS_TRIED: [u64; 6] = [8, 12, 20, 32, 48, COLUMNS_MAX];

/// How often rows and columns tell each other what they know in time: more changes little.
const ROUNDS: usize = 4;

#[derive(Debug)]
pub(super) struct Grids;

impl Profile for Grids {
    /// Where somebody waits for no longer than some time, in which a grid is sent with more columns
    /// than a run of losses has packets, and of many rows; and blocks are not enough.
    fn suits(&self, setting: &Setting) -> bool {
        let span = proposed_span(setting);
        let sources = packets_in(&setting.units, setting.path.datagram_len, span);
        let columns = setting.path.burst_milli.div_ceil(500).min(COLUMNS_MAX);
        let is_short = setting.useful_ns < u64::MAX && !are_blocks_enough(setting);
        is_short && unit_apart_ns(&setting.units) < span && sources >= columns * ROWS_FEWEST
    }

    /// A grid that is sent while what comes is of use, with as few sums as leave one packet in
    /// 1,000 lost on this path, or a quarter of what it loses where that is more, one in 10,000 or
    /// one in a million; no more than what the flow may send leaves room for. Where nothing is lost
    /// below, the fewest that there can be.
    fn points(&self, setting: &Setting, below: &Service) -> Vec<Params> {
        let mut tried = proposed(setting);
        tried.sort_unstable_by_key(|it| (it.packets_milli, it.left));
        let best = tried.iter().min_by_key(|it| (it.left, it.packets_milli));
        let some = TARGETS[0].max(setting.path.loss_ppb / 4);
        let all = [some, TARGETS[1], TARGETS[2]];
        let targets = if below.figures.loss_ppb > 0 { &all[..] } else { &[PPB] };
        let point = |target: &u64| tried.iter().find(|it| it.left <= *target).or(best);
        let mut points: Vec<Params> =
            targets.iter().filter_map(point).map(|it| it.params.clone()).collect();
        points.dedup();
        points
    }

    /// - A source stays lost when neither its row nor its column gives it back (`chances.rs`), or
    ///   not while it is of use.
    /// - What stays lost comes in runs as long as those of the path, at the most.
    /// - 99 of 100 come with the packet itself while fewer than 1 % are lost; else the delay grows
    ///   by what those wait for that are computed ([`Grid::delay_ns`]). The jitter grows by the
    ///   time from a column's first source to its sum wherever anything is lost.
    /// - Sums take their part of the rate.
    fn figures(&self, params: &Params, setting: &Setting, below: &Service) -> Figures {
        let grid = Grid::of(params, setting);
        let (figures, burst) = (below.figures, setting.path.burst_milli);
        let [loss, path_loss] = [figures.loss_ppb, setting.path.loss_ppb].map(|it| it.min(PPB));
        let left = grid.left(loss, burst, setting.spare_ns(&figures));
        let delay = if loss < ONE_IN_HUNDRED { 0 } else { grid.delay_ns(path_loss, burst) };
        let jitter = if loss > 0 { grid.reach_ns() } else { 0 };
        Figures {
            loss_ppb: left,
            loss_runs_ppb: ratio(left, 1_000, burst.max(1_000)),
            delay_ns: figures.delay_ns.saturating_add(delay),
            jitter_ns: figures.jitter_ns.saturating_add(jitter),
            rate_bps: part(figures.rate_bps, 1_000, grid.packets_milli()),
        }
    }

    fn cost(&self, params: &Params) -> Cost {
        let [arrangement, columns, rows] =
            ["arrangement", "columns", "rows"].map(|name| params.value(&SPEC, name));
        let of = |bit: u64, count: u64| if arrangement & bit == 0 { 0 } else { SUM_PS / count };
        let packet_ps = of(ROWS_ONLY, columns) + of(COLUMNS_ONLY, rows);
        let byte_ps = SOURCE_BYTE_PS * u64::from(arrangement.count_ones());
        COST.plus(&Cost { packet_ps, byte_ps, ..Cost::ZERO })
    }

    /// Itself, and a sum of its row and of its column where nothing follows it.
    fn copies(&self, _: &Params) -> u64 {
        3
    }

    fn packets_milli(&self, params: &Params, setting: &Setting) -> u64 {
        Grid::of(params, setting).packets_milli()
    }
}

/// A grid that is tried, and what it does on the path.
struct Tried {
    params: Params,
    packets_milli: u64,
    left: u64,
}

/// Grids that are sent within the time in which a packet is of use, and for which there is room;
/// at least the one with the fewest sums.
fn proposed(setting: &Setting) -> Vec<Tried> {
    let span = proposed_span(setting);
    let sources = packets_in(&setting.units, setting.path.datagram_len, span);
    let most = room_for(1_000, setting).saturating_add(1_000);
    let rows_of = |columns: u64| (sources / columns).clamp(1, ROWS_MAX);
    let sizes = COLUMNS_TRIED.into_iter().flat_map(|columns| {
        let rows = rows_of(columns);
        [(columns, rows), (columns, rows.div_ceil(2))]
    });
    let all = sizes.flat_map(|size| [COLUMNS_ONLY, BOTH].map(|arrangement| (arrangement, size)));
    let mut tried: Vec<Tried> =
        all.map(|(arrangement, size)| try_one(setting, span, arrangement, size)).collect();
    let fewest = tried.iter().map(|it| it.packets_milli).min().unwrap_or_default();
    tried.retain(|it| it.packets_milli <= most.max(fewest));
    tried
}

fn try_one(setting: &Setting, span: u64, arrangement: u64, (columns, rows): (u64, u64)) -> Tried {
    let mut params = Params::new();
    params.set(ARRANGEMENT, arrangement);
    params.set(COLUMNS, columns);
    params.set(ROWS, rows);
    params.set(SPAN, span);
    let (grid, path) = (Grid::of(&params, setting), &setting.path);
    let left = grid.left(path.loss_ppb.min(PPB), path.burst_milli, u64::MAX);
    Tried { packets_milli: grid.packets_milli(), left, params }
}

/// The sources of a row or a column, and when they and the sum are sent.
#[derive(Clone, Copy, Debug)]
struct Line {
    sources: u64,
    /// How many packets of the flow lie from one to the next.
    packets: u64,
    apart_ns: u64,
    /// The time from its first source to its sum.
    open_ns: u64,
}

impl Line {
    /// How long a source waits for the sum when it is lost.
    fn wait_ns(&self, place: usize) -> u64 {
        self.open_ns.saturating_sub(self.apart_ns.saturating_mul(place as u64))
    }

    /// How likely it is that a lost source is not given back in time, where this share of others
    /// that are lost stays so.
    fn keeps_within(&self, group: &Group, spare_ns: u64, stays: f64) -> f64 {
        let all = group.gives_back(stays);
        let in_time = all.iter().enumerate().filter(|(at, _)| self.wait_ns(*at) <= spare_ns);
        1.0 - in_time.map(|(_, it)| it).sum::<f64>() / self.sources.max(1) as f64
    }
}

/// A grid as it will be on a path.
struct Grid {
    /// The time from one packet to the next.
    between_ns: u64,
    row: Option<Line>,
    column: Option<Line>,
    /// How many packets a unit has, for a flow that sends nothing for a span after each.
    alone: Option<u64>,
}

impl Grid {
    /// Computed from the path alone and for datagrams that are full, the fewest that there can be:
    /// from the room below, more room would make shorter rows, and a better service below a worse
    /// one above.
    fn of(params: &Params, setting: &Setting) -> Self {
        let [arrangement, columns, rows, span] =
            ["arrangement", "columns", "rows", "span"].map(|name| params.value(&SPEC, name));
        let between = apart_ns(setting);
        let packets = packets_per_unit(&setting.units, setting.path.datagram_len);
        let alone = (unit_apart_ns(&setting.units) > span).then_some(packets);
        let line = |most: u64, packets: u64, behind: u64| {
            let apart_ns = between.saturating_mul(packets);
            let within = alone.map_or(span / apart_ns + 1, |unit| unit.div_ceil(packets));
            let sources = most.min(within);
            let is_full = sources == most && alone.is_none();
            let full_ns = apart_ns.saturating_mul(sources - 1 + behind);
            let open_ns = if is_full { full_ns.min(span) } else { span };
            Line { sources, packets, apart_ns, open_ns }
        };
        let has = |bit: u64| arrangement & bit != 0;
        // The sum of a row leaves with its last source, that of a column with the next one's first.
        let row = has(ROWS_ONLY).then(|| line(columns, 1, 0));
        let column = has(COLUMNS_ONLY).then(|| line(rows, columns, 1));
        // A row of one source is left to its column.
        let row = row.filter(|row| column.is_none() || row.sources > 1);
        Self { between_ns: between, row, column, alone }
    }

    fn packets_milli(&self) -> u64 {
        let sums = |line: &Line| match self.alone {
            None => ratio(1_000, 1, line.sources),
            // Each of as many lines as there can be has some.
            Some(unit) => {
                let lines = unit.min(line.packets);
                let each = unit.div_ceil(line.packets).div_ceil(line.sources);
                ratio(lines.saturating_mul(each), 1_000, unit)
            }
        };
        let all = self.row.iter().chain(&self.column).map(sums);
        1_000 + all.map(|it| it.min(1_000)).sum::<u64>()
    }

    /// The time from the first source of what is longest to its sum.
    fn reach_ns(&self) -> u64 {
        self.row.iter().chain(&self.column).map(|line| line.open_ns).max().unwrap_or_default()
    }

    /// What this path loses, as rows and columns meet it.
    fn meets(&self, loss_ppb: u64, burst_milli: u64) -> Losses {
        let turns = Turns::of(loss_ppb, burst_milli);
        // Where a run goes on more often than not, a sum shares the fate of the source right behind
        // which it leaves; single losses do not depend on each other.
        let beside = turns.but_for(1_000.0 / burst_milli.max(1_000) as f64);
        let group = |line: Line| {
            let last_ns = line.apart_ns.saturating_mul(line.sources - 1);
            let behind_ns = line.open_ns.saturating_sub(last_ns);
            let behind = behind_ns.saturating_mul(line.packets) / line.apart_ns;
            let sum = if behind == 0 { beside } else { turns.every(behind) };
            let turns = turns.every(line.packets);
            (line, Group { count: line.sources as usize, turns, sum })
        };
        Losses { row: self.row.map(group), column: self.column.map(group) }
    }

    /// What stays lost, in ppb, of what may wait for so long.
    fn left(&self, loss_ppb: u64, burst_milli: u64, spare_ns: u64) -> u64 {
        if loss_ppb == 0 || loss_ppb == PPB {
            return loss_ppb;
        }
        let keeps = self.meets(loss_ppb, burst_milli).keep(spare_ns);
        // What is so near a whole number is a difference that was rounded; and only nothing gives
        // nothing.
        ((keeps * loss_ppb as f64 - 0.001).ceil() as u64).clamp(1, loss_ppb)
    }

    /// How long those wait that are among the slowest of 100 of all that come, by what this path
    /// loses: where more is lost below, less may be computed.
    fn delay_ns(&self, loss_ppb: u64, burst_milli: u64) -> u64 {
        let losses = self.meets(loss_ppb, burst_milli);
        let missing = |wait_ns| losses.keep_within(wait_ns) * loss_ppb as f64;
        let slowest = missing(u64::MAX) + ONE_IN_HUNDRED as f64;
        let (mut low, mut high) = (0, self.reach_ns().div_ceil(self.between_ns));
        while low < high {
            let middle = low.midpoint(high);
            let is_enough = missing(self.between_ns.saturating_mul(middle)) <= slowest;
            (low, high) = if is_enough { (low, middle) } else { (middle + 1, high) };
        }
        self.between_ns.saturating_mul(low).min(self.reach_ns())
    }
}

/// Rows and columns, and how a path loses what is in them.
struct Losses {
    row: Option<(Line, Group)>,
    column: Option<(Line, Group)>,
}

impl Losses {
    /// The share of what is lost that its row, and its column, does not give back in time alone; 1
    /// where there is none.
    fn keep_alone(&self, spare_ns: u64) -> [f64; 2] {
        [&self.row, &self.column].map(|of| {
            of.as_ref().map_or(1.0, |(line, group)| line.keeps_within(group, spare_ns, 1.0))
        })
    }

    /// The share of what is lost that is not given back in time, where what rows and columns tell
    /// each other is always new. The others in a row are sent earlier or later, by a third of the
    /// row on average, and so are the sums of their columns.
    fn keep_within(&self, spare_ns: u64) -> f64 {
        let [by_row, by_column] = self.keep_alone(spare_ns);
        let (Some((row, in_row)), Some((column, in_column))) = (&self.row, &self.column) else {
            return by_row.min(by_column);
        };
        if spare_ns < row.open_ns {
            return by_row.min(by_column);
        }
        let off_ns = row.apart_ns.saturating_mul(row.sources) / 3;
        let spares = [spare_ns.saturating_add(off_ns), spare_ns.saturating_sub(off_ns)];
        let (mut rows, mut columns) = (1.0, 1.0);
        for _ in 0..ROUNDS {
            columns = column.keeps_within(in_column, spare_ns, rows);
            let [a, b] = spares.map(|it| column.keeps_within(in_column, it, rows));
            rows = in_row.keeps(a.midpoint(b));
        }
        by_row.min(by_column).min(rows * columns)
    }

    /// The same where what they tell each other may be nothing new.
    fn keep(&self, spare_ns: u64) -> f64 {
        let within = self.keep_within(spare_ns);
        let (Some((_, row)), Some((_, column))) = (self.row, self.column) else { return within };
        let [by_row, by_column] = self.keep_alone(spare_ns);
        within.max(Both { row, column }.keeps()).min(by_row).min(by_column)
    }
}

#[cfg(test)]
mod tests;
