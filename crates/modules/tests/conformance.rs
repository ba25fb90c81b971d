//! Every module of the crate keeps the contract of a module.

use dacapo_lift::Params;
use dacapo_lift::conformance::{Subject, suite};

#[test]
fn every_module_keeps_the_contract() {
    let entries = dacapo_modules::entries();
    assert!(entries.len() >= 6);
    for entry in entries {
        suite(&Subject { entry, params: Params::new() });
    }
}

#[test]
fn sequence_keeps_it_also_without_hold() {
    let mut params = Params::new();
    params.set(0, 0);
    suite(&Subject { entry: dacapo_modules::ordering::sequence::ENTRY, params });
}

#[test]
fn repeat_keeps_it_also_with_several_copies_close_together_and_far_apart() {
    for (copies, gap) in [(3, 1_000_000), (2, 7_000_000), (3, 1_000_000_000)] {
        let mut params = Params::new();
        params.set(0, copies);
        params.set(1, gap);
        suite(&Subject { entry: dacapo_modules::redundancy::repeat::ENTRY, params });
    }
}

#[test]
fn fec_rs_keeps_it_also_with_blocks_of_any_size() {
    for (sources, parities, span) in
        [(1, 1, 50_000_000), (127, 128, 1_000_000_000), (4, 0, 10_000_000), (3, 2, 1_000_000)]
    {
        let mut params = Params::new();
        [sources, parities, span]
            .into_iter()
            .zip(0..)
            .for_each(|(value, at)| params.set(at, value));
        suite(&Subject { entry: dacapo_modules::parity::rs::ENTRY, params });
    }
}

#[test]
fn fec_rlc_keeps_it_also_with_windows_of_any_size() {
    for (percent, window, span) in
        [(100, 1, 10_000_000), (1, 255, 1_000_000_000), (100, 255, 50_000_000), (40, 9, 20_000_000)]
    {
        let mut params = Params::new();
        [percent, window, span].into_iter().zip(0..).for_each(|(value, at)| params.set(at, value));
        suite(&Subject { entry: dacapo_modules::parity::rlc::ENTRY, params });
    }
}

/// Where only rows have sums, how many rows a column has changes nothing, which the suite refuses.
#[test]
fn fec_xor_keeps_it_also_with_grids_of_any_shape() {
    for (arrangement, columns, rows, span) in [
        (2, 1, 1, 20_000_000),
        (2, 7, 3, 1_000_000_000),
        (3, 3, 32, 50_000_000),
        (3, 1, 2, 20_000_000),
    ] {
        let mut params = Params::new();
        [arrangement, columns, rows, span]
            .into_iter()
            .zip(0..)
            .for_each(|(value, at)| params.set(at, value));
        suite(&Subject { entry: dacapo_modules::parity::xor::ENTRY, params });
    }
}

/// Where a block ends before a second packet comes, how many it may have changes nothing, which the
/// suite refuses.
#[test]
fn interleave_keeps_it_also_with_blocks_of_any_size() {
    for (depth, hold) in [(2, 500_000_000), (64, 10_000_000), (64, 500_000_000), (7, 20_000_000)] {
        let mut params = Params::new();
        [depth, hold].into_iter().zip(0..).for_each(|(value, at)| params.set(at, value));
        suite(&Subject { entry: dacapo_modules::interleaving::interleave::ENTRY, params });
    }
}

#[test]
fn arq_nak_keeps_it_in_order_and_not_with_short_and_long_deadlines() {
    for deadline in [1_000_000, 9_000_000, 50_000_000, 10_000_000_000] {
        for ordered in [0, 1] {
            let mut params = Params::new();
            params.set(0, deadline);
            params.set(1, ordered);
            suite(&Subject { entry: dacapo_modules::retransmission::nak::ENTRY, params });
        }
    }
}

#[test]
fn arq_sr_keeps_it_also_where_packets_go_up_as_they_come() {
    let mut params = Params::new();
    params.set(0, 0);
    suite(&Subject { entry: dacapo_modules::retransmission::selective::ENTRY, params });
}

#[test]
fn zstd_keeps_it_at_its_highest_level_and_with_trusted_units() {
    let mut params = Params::new();
    params.set(0, 9);
    params.set(1, 1);
    suite(&Subject { entry: dacapo_modules::compression::zstd::ENTRY, params });
}

/// What the suite sends without any time passing has room: some of it waits.
#[test]
fn rate_burst_keeps_it_also_with_a_limit() {
    for (rate, burst) in [(20_000_000, 40_000), (4_000_000_000, 16_000_000)] {
        let mut params = Params::new();
        params.set(0, rate);
        params.set(1, burst);
        suite(&Subject { entry: dacapo_modules::rate::burst::ENTRY, params });
    }
}
