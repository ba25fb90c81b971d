//! A setting and a service for the tests of profiles.

use dacapo_lift::{Figures, Path, Properties, Property, Service, Setting, Units};

/// Half a percent of loss in runs of three, 30 to 40 ms, 50 Mbit/s; 50 units per second.
pub(crate) fn internet(len_mean: u32, len_max: u32) -> Setting {
    let path = Path {
        datagram_len: 1_452,
        rate_bps: 50_000_000,
        delay_ns: 30_000_000,
        jitter_ns: 10_000_000,
        loss_ppb: 5_000_000,
        burst_milli: 3_000,
    };
    let units = Units { len_mean, len_max, per_ks: 50_000, divisible: false, is_paced: true };
    Setting::new(path, units)
}

/// That path as datagrams, with room for 1,433 bytes.
pub(crate) fn service() -> Service {
    let figures = Figures {
        loss_ppb: 5_000_000,
        loss_runs_ppb: 1_666_667,
        delay_ns: 40_000_000,
        jitter_ns: 10_000_000,
        rate_bps: 50_000_000,
    };
    Service { properties: Properties::of(&[Property::Boundaries]), payload_len_max: 1_433, figures }
}
