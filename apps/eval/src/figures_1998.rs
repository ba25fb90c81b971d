//! What the report of 1998 printed of its control commands.
//!
//! Tables 20, 22, 23, 24 and 45 of "Da CaPo++" (ETH Zürich, TIK Report 42, 1998), on a Sun
//! SPARCstation 20 under Solaris 2.5, real time.

use super::series::Columns;

/// A row of a table of 1998.
#[derive(Clone, Copy, Debug)]
pub struct Then {
    /// The number of the table.
    pub table: u32,
    /// The row as printed there, or "runs 7 to 12" put together by us.
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

/// Table 20, the run with the smallest average: all commands at the sender.
pub const ALL_COMMANDS: Then =
    then(20, "sender_OoBCommand, run 10", [24, 4, 302_648, 12_634], 3_815_876_406.0, 61_772.780_46);

/// Table 22, run 12: a picture is read and put into a packet, commands included.
pub const PICTURE: Then = then(
    22,
    "asIndiVideoFile, run 12",
    [909, 7, 1_948_116, 2_467],
    4_173_781_496.0,
    64_604.810_161,
);

/// Table 23, run 12: the same without the first picture.
pub const PICTURE_AFTER_FIRST: Then =
    then(23, "without the first, run 12", [893, 7, 1_019, 330], 84_492.0, 290.674_824);

/// Table 45, ATM and audio, run 4: from the command to its effect.
pub const RESPONSE: Then =
    then(45, "PLAY, ATM, audio, run 4", [12, 8_783, 54_721, 27_266], 259_689_382.0, 16_114.880_771);
