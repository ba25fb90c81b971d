//! [`Samples`]: everything in turns, round by round, until the time is over.
//!
//! ```text
//!   round   touch, pass  x  0 3 5 10 20 modules  x  batches of 1, 32  x  three ways
//!           whole lives: alone, in batches, in trains;  buffers of Table 2;  a first use
//! ```

use super::super::line::line_through;
use super::measure::{Bed, LEN, Load, Unmeasured, Way, meter_ns};
use super::modules::{Pass, Touch};
use super::stats::Spread;
use super::then;
use dacapo_lift::Module;
use std::time::{Duration, Instant};

/// How many modules.
pub const MODULES: [usize; 5] = [0, 3, 5, 10, 20];
/// Packets of a batch.
pub const BATCHES: [usize; 2] = [1, 32];
/// How many rounds there are at least.
const ROUNDS_MIN: usize = 5;
/// Packets of a sample: some 10 to 100 µs, so that most are not disturbed.
const SAMPLE_PACKETS: usize = 512;

/// The samples of one bed, or of one thing done with it.
pub struct Row {
    /// Modules in the chain.
    pub modules: usize,
    /// One sample per round: nanoseconds per packet.
    pub samples: Vec<f64>,
}

/// The rows of one kind of module, size of batch and way.
pub struct Group {
    /// The name of the module.
    pub module: &'static str,
    /// Packets of a batch.
    pub batch: usize,
    /// How they are called.
    pub way: Way,
    /// By the number of modules.
    pub rows: Vec<Row>,
}

impl Group {
    /// What one module more costs, round by round. A chain of none is left out: nothing is called.
    pub fn marginals(&self) -> Vec<f64> {
        self.lines().map(|(_, slope)| slope).collect()
    }

    fn lines(&self) -> impl Iterator<Item = (f64, f64)> {
        let rounds = self.rows.iter().map(|row| row.samples.len()).min().unwrap_or(0);
        lines(&self.rows, rounds).into_iter()
    }
}

fn lines(rows: &[Row], rounds: usize) -> Vec<(f64, f64)> {
    let points = |round: usize| -> Vec<(f64, f64)> {
        let rows = rows.iter().filter(|row| row.modules > 0);
        rows.filter_map(|row| Some((row.modules as f64, *row.samples.get(round)?))).collect()
    };
    (0..rounds).filter_map(|round| line_through(&points(round))).collect()
}

/// Whole lives of packets.
pub struct Lives {
    /// What was fed.
    pub load: Load,
    /// By the number of modules, [`Touch`].
    pub rows: Vec<Row>,
}

impl Lives {
    /// What does not depend on the number of modules, round by round.
    pub fn fixed(&self) -> Vec<f64> {
        let rounds = self.rows.iter().map(|row| row.samples.len()).min().unwrap_or(0);
        lines(&self.rows, rounds).into_iter().map(|(fixed, _)| fixed).collect()
    }
}

/// A buffer of Table 2: three modules, and whole lives of one packet.
pub struct Buffer {
    /// Its bytes.
    pub len: usize,
    /// In steady state.
    pub samples: Vec<f64>,
    /// In a fresh runner and memory.
    pub firsts: Vec<f64>,
}

/// Everything.
pub struct Samples {
    /// Modules by kind, batch and way.
    pub groups: Vec<Group>,
    /// Whole lives.
    pub lives: Vec<Lives>,
    /// Buffers.
    pub buffers: Vec<Buffer>,
    /// What a reading of the clock takes.
    pub meter: Vec<f64>,
    /// How many rounds there were.
    pub rounds: usize,
}

/// A bed whose kind of module is forgotten.
trait Sampled {
    fn sample(&mut self, batches: usize) -> Result<f64, Unmeasured>;
}

impl<M: Module + Default + 'static> Sampled for Bed<M> {
    fn sample(&mut self, batches: usize) -> Result<f64, Unmeasured> {
        Self::sample(self, batches)
    }
}

/// The beds of a group, in the order of its rows.
type Beds = Vec<Box<dyn Sampled>>;

fn group<M: Module + Default + 'static>(
    module: &'static str,
    batch: usize,
    way: Way,
) -> Result<(Group, Beds), Unmeasured> {
    let rows = MODULES.map(|modules| Row { modules, samples: Vec::new() });
    let beds = MODULES.into_iter().map(|modules| -> Result<Box<dyn Sampled>, Unmeasured> {
        Ok(Box::new(Bed::<M>::new(way, modules, batch)?))
    });
    let beds: Beds = beds.collect::<Result<_, _>>()?;
    Ok((Group { module, batch, way, rows: rows.into() }, beds))
}

/// The buffers of Table 2 that one packet holds here.
fn buffers() -> Vec<Buffer> {
    let most = dacapo_packet::TRAIN_BYTES_MAX;
    let lens = then::BUFFERS.iter().map(|row| row.what as usize).filter(|len| *len <= most);
    lens.map(|len| Buffer { len, samples: Vec::new(), firsts: Vec::new() }).collect()
}

impl Samples {
    /// Measures for this long, and at least some rounds.
    pub fn take(span: Duration, mut tell: impl FnMut(usize)) -> Result<Self, Unmeasured> {
        let (mut groups, mut beds) = (Vec::new(), Vec::new());
        for batch in BATCHES {
            for way in Way::ALL {
                for (group, its) in
                    [group::<Touch>("touch", batch, way)?, group::<Pass>("pass", batch, way)?]
                {
                    groups.push(group);
                    beds.push(its);
                }
            }
        }
        let lives = Load::ALL.map(|load| {
            let rows = MODULES.map(|modules| Row { modules, samples: Vec::new() });
            Lives { load, rows: rows.into() }
        });
        let mut all =
            Self { groups, lives: lives.into(), buffers: buffers(), meter: Vec::new(), rounds: 0 };
        let start = Instant::now();
        while all.rounds < ROUNDS_MIN || start.elapsed() < span {
            all.round(&mut beds)?;
            all.rounds += 1;
            tell(all.rounds);
        }
        Ok(all)
    }

    fn round(&mut self, beds: &mut [Beds]) -> Result<(), Unmeasured> {
        for (group, beds) in self.groups.iter_mut().zip(beds) {
            let batches = SAMPLE_PACKETS / group.batch;
            for (row, bed) in group.rows.iter_mut().zip(beds) {
                row.samples.push(bed.sample(batches)?);
            }
        }
        for lives in &mut self.lives {
            for row in &mut lives.rows {
                let runs = if lives.load == Load::Alone { 256 } else { 16 };
                let mut bed = Bed::<Touch>::new(Way::Counted, row.modules, 0)?;
                bed.sample_lives(lives.load, LEN, 1)?;
                row.samples.push(bed.sample_lives(lives.load, LEN, runs)?);
            }
        }
        for buffer in &mut self.buffers {
            let mut bed = Bed::<Touch>::new(Way::Counted, 3, 0)?;
            buffer.firsts.push(bed.sample_lives(Load::Alone, buffer.len, 1)?);
            buffer.samples.push(bed.sample_lives(Load::Alone, buffer.len, 256)?);
        }
        self.meter.push(meter_ns(256));
        Ok(())
    }

    /// The group of this kind, batch and way.
    pub fn group(&self, module: &str, batch: usize, way: Way) -> Option<&Group> {
        let is_it = |it: &&Group| it.module == module && it.batch == batch && it.way == way;
        self.groups.iter().find(is_it)
    }

    /// What one module more costs, and beside the same without a runner, in the same rounds.
    pub fn marginal(&self, module: &str, batch: usize, way: Way) -> (Spread, f64) {
        let of = |way| self.group(module, batch, way).map(Group::marginals).unwrap_or_default();
        let (its, plain) = (of(way), of(Way::Chain));
        let spread = Spread::of(&its);
        let base = Spread::of(&plain).median_ns;
        // The compiler makes nothing of modules that do nothing: there is nothing to compare with.
        let is_there = base >= 0.01;
        (spread, if is_there { spread.median_ns / base } else { f64::NAN })
    }
}
