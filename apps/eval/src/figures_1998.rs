//! What the report of 1998 printed of its control commands.
//!
//! Tables 20, 22, 23 and 24 of "Da CaPo++" (ETH Zürich, TIK Report 42, 1998), real time under
//! Solaris 2.5.1. It does not say on which of its machines; it had SPARCstations SS10 and SS20 and
//! UltraSPARCs 170E. Table 45, from PLAY to the first marked packet at the receiver, is measured by
//! nothing here.

use super::series::Columns;

/// A row of a table of 1998.
#[derive(Clone, Copy, Debug)]
pub struct Then {
    /// The number of the table.
    pub table: u32,
    /// The row as printed there.
    pub row: &'static str,
    /// Its columns.
    pub columns: Columns,
}

const fn then(
    table: u32,
    row: &'static str,
    [count, min, max, average]: [u64; 4],
    variance: f64,
    deviation: f64,
) -> Then {
    let columns = Columns {
        count,
        min_us: min as f64,
        average_us: average as f64,
        max_us: max as f64,
        variance_us2: variance,
        deviation_us: deviation,
    };
    Then { table, row, columns }
}

/// Table 24: each command in the access module of the sender.
pub const COMMANDS: [(&str, Then); 10] = [
    ("init", then(24, "INIT", [9, 29, 53, 35], 58.0, 7.623_064)),
    ("fps", then(24, "FPS", [9, 16, 20, 18], 3.0, 1.615_893)),
    (
        "open",
        then(24, "OPEN", [9, 302_648, 1_520_826, 847_384], 239_298_548_176.0, 489_181.508_416),
    ),
    ("start", then(24, "START-TRANSMISSION", [9, 318, 375, 344], 394.0, 19.841_735)),
    ("play", then(24, "PLAY", [49, 3, 6, 4], 0.0, 0.630_166)),
    ("ff", then(24, "FF", [13, 10, 15, 12], 3.0, 1.625_123)),
    ("rwd", then(24, "RWD", [9, 16, 25, 21], 9.0, 3.004_626)),
    ("stop", then(24, "STOP", [14, 6, 8, 7], 0.0, 0.662_994)),
    ("fr", then(24, "FR", [12, 12, 14, 13], 1.0, 0.717_741)),
    ("fwd", then(24, "FWD", [12, 16, 19, 17], 1.0, 1.164_500)),
];

/// Runs of one table, of which it prints each: how often, shortest, longest and average, in µs.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// The number of the table.
    pub table: u32,
    /// The row as printed there.
    pub row: &'static str,
    /// Each run.
    pub runs: &'static [[u64; 4]],
}

impl Runs {
    /// What all runs together come to. Their deviation is not that of one run, and is left out.
    pub fn all(&self) -> Columns {
        let count: u64 = self.runs.iter().map(|run| run[0]).sum();
        let sum: u64 = self.runs.iter().map(|run| run[0] * run[3]).sum();
        Columns {
            count,
            min_us: self.runs.iter().map(|run| run[1]).min().unwrap_or(0) as f64,
            average_us: sum as f64 / count.max(1) as f64,
            max_us: self.runs.iter().map(|run| run[2]).max().unwrap_or(0) as f64,
            ..Columns::default()
        }
    }

    /// The smallest and the largest average of a run.
    pub fn averages(&self) -> (u64, u64) {
        let averages = || self.runs.iter().map(|run| run[3]);
        (averages().min().unwrap_or(0), averages().max().unwrap_or(0))
    }
}

/// Table 20, runs 7 to 12: all commands at the sender.
pub const ALL_COMMANDS: Runs = Runs { table: 20, row: "sender_OoBCommand", runs: &T20 };

const T20: [[u64; 4]; 6] = [
    [19, 3, 1_342_451, 70_685],
    [20, 3, 529_539, 26_506],
    [19, 4, 1_356_285, 71_412],
    [24, 4, 302_648, 12_634],
    [24, 4, 1_520_826, 63_392],
    [24, 4, 608_735, 25_389],
];

/// Table 22, runs 7 to 12: a picture is read and put into a packet, commands included.
pub const PICTURE: Runs = Runs { table: 22, row: "asIndiVideoFile", runs: &T22 };

const T22: [[u64; 4]; 6] = [
    [732, 7, 3_160_331, 4_633],
    [721, 7, 3_094_354, 4_646],
    [786, 7, 3_571_647, 4_886],
    [779, 8, 2_477_596, 3_556],
    [760, 6, 3_358_243, 4_753],
    [909, 7, 1_948_116, 2_467],
];

/// Table 23, runs 1 to 12: the same without the first picture.
pub const PICTURE_AFTER_FIRST: Runs =
    Runs { table: 23, row: "asIndiVideoFile, without the first", runs: &T23 };

const T23: [[u64; 4]; 12] = [
    [999, 64, 786, 451],
    [998, 56, 814, 454],
    [998, 59, 911, 473],
    [998, 65, 945, 459],
    [998, 68, 1_151, 457],
    [998, 67, 8_046, 463],
    [689, 7, 923, 335],
    [685, 7, 917, 372],
    [776, 7, 910, 346],
    [769, 8, 949, 380],
    [739, 6, 843, 343],
    [893, 7, 1_019, 330],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_runs_of_a_table_are_put_together_and_none_is_chosen() {
        let all = ALL_COMMANDS.all();
        assert_eq!((all.count, all.min_us, all.max_us), (130, 3.0, 1_520_826.0));
        // (19 × 70,685 + 20 × 26,506 + 19 × 71,412 + 24 × (12,634 + 63,392 + 25,389)) / 130
        assert!((all.average_us - 43_568.5).abs() < 1.0, "{}", all.average_us);
        assert_eq!(ALL_COMMANDS.averages(), (12_634, 71_412));
        assert_eq!((PICTURE.runs.len(), PICTURE_AFTER_FIRST.runs.len()), (6, 12));
    }

    #[test]
    fn the_tables_agree_with_each_other() {
        // Table 24 puts the commands of runs 4 to 6, five each, to those of Table 20.
        let count: u64 = COMMANDS.iter().map(|(_, then)| then.columns.count).sum();
        assert_eq!(count, ALL_COMMANDS.all().count + 3 * 5);
        // What took longest in each run of Table 20 is OPEN.
        let (_, open) = COMMANDS.iter().find(|(what, _)| *what == "open").unwrap();
        let longest =
            |pick: fn(u64, u64) -> u64| T20.iter().map(|run| run[2]).reduce(pick).unwrap();
        assert_eq!(longest(u64::max) as f64, open.columns.max_us);
        assert_eq!(longest(u64::min) as f64, open.columns.min_us);
        for (what, then) in COMMANDS {
            let it = then.columns;
            assert!(it.min_us <= it.average_us && it.average_us <= it.max_us, "{what}");
            let off = it.deviation_us.powi(2) - it.variance_us2;
            assert!(off.abs() <= 0.5 + it.variance_us2 * 1e-6, "{what}: {off}");
        }
        for run in [&T20[..], &T22, &T23].concat() {
            assert!(run[1] <= run[3] && run[3] <= run[2], "{run:?}");
        }
    }
}
