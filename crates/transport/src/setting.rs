//! [`internet`]: the setting that specifications are tested in.

use dacapo_lift::{Path, Setting, Units};

/// Half a percent of loss in runs of three, 30 to 40 ms, 50 Mbit/s; 50 units per second.
pub(crate) fn internet() -> Setting {
    let path = Path {
        datagram_len: 1_452,
        rate_bps: 50_000_000,
        delay_ns: 30_000_000,
        jitter_ns: 10_000_000,
        loss_ppb: 5_000_000,
        burst_milli: 3_000,
    };
    let units =
        Units { len_mean: 500, len_max: 500, per_ks: 50_000, divisible: false, is_paced: true };
    Setting::new(path, units)
}
