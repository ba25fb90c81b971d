//! Points, lines of a grid, and what is in time.

use super::*;
use crate::arithmetic::MILLISECOND;
use crate::testing::{internet, service};

/// 4,000 packets a second with so much to spare, over a path that loses so much in runs of so many.
fn live(spare_ms: u64, loss_ppb: u64, burst_milli: u64) -> Setting {
    let mut setting = internet(1_000, 1_000);
    (setting.path.loss_ppb, setting.path.burst_milli) = (loss_ppb, burst_milli);
    (setting.units.per_ks, setting.path.rate_bps) = (4_000_000, 1_000_000_000);
    setting.useful_ns = (30 + 10 + 1 + spare_ms) * MILLISECOND;
    setting
}

fn params(arrangement: u64, columns: u64, rows: u64, span_ms: u64) -> Params {
    let mut params = Params::new();
    let values = [arrangement, columns, rows, span_ms * MILLISECOND];
    values.into_iter().zip(0..).for_each(|(value, at)| params.set(at, value));
    params
}

#[test]
fn points_leave_what_they_say_where_any_grid_does() {
    let setting = live(170, 2_000_000, 3_000);
    let mut below = service();
    below.figures.loss_ppb = setting.path.loss_ppb;
    let points = Grids.points(&setting, &below);
    assert_eq!(points.len(), 3);
    for (point, target) in points.iter().zip(TARGETS) {
        let loss = Grids.figures(point, &setting, &below).loss_ppb;
        assert!(loss <= target || target == TARGETS[2], "{point:?} leaves {loss}");
    }
    let packets = |it: &Params| Grids.packets_milli(it, &setting);
    assert!(points.is_sorted_by_key(packets), "{points:?}");
    below.figures.loss_ppb = 0;
    assert_eq!(Grids.points(&setting, &below).len(), 1);
}

#[test]
fn it_is_proposed_for_long_runs_of_fast_flows_with_little_time() {
    assert!(Grids.suits(&live(170, 10_000_000, 20_000)));
    assert!(!Grids.suits(&live(170, 1_000_000, 3_000)), "blocks leave little");
    assert!(!Grids.suits(&live(20, 10_000_000, 20_000)), "of too few rows");
    let endless = Setting { useful_ns: u64::MAX, ..live(170, 10_000_000, 20_000) };
    assert!(!Grids.suits(&endless));
}

#[test]
fn lines_are_as_long_as_the_flow_fills_them_within_their_span() {
    // 50 packets a second.
    let sound = internet(500, 500);
    let grid = Grid::of(&params(BOTH, 2, 5, 100), &sound);
    let (row, column) = (grid.row.unwrap(), grid.column.unwrap());
    assert_eq!((row.sources, row.open_ns), (2, 20 * MILLISECOND));
    // At 0, 40 and 80 ms.
    assert_eq!((column.sources, column.open_ns), (3, 100 * MILLISECOND));
    assert_eq!(column.wait_ns(2), 20 * MILLISECOND);
    assert_eq!(grid.packets_milli(), 1_000 + 500 + 334);
    // Each is alone, in its row and in its column: one copy.
    let alone = Grid::of(&params(BOTH, 2, 5, 10), &sound);
    assert_eq!(alone.packets_milli(), 2_000);
    let rows = Grid::of(&params(ROWS_ONLY, 10, 5, 1_000), &sound);
    assert_eq!(rows.packets_milli(), 1_100);
    assert_eq!(rows.reach_ns(), 180 * MILLISECOND);
}

#[test]
fn what_comes_too_late_is_given_back_by_rows_alone() {
    let setting = live(170, 20_000_000, 1_000);
    let left = |arrangement, spare_ms: u64| {
        let grid = Grid::of(&params(arrangement, 10, 10, 100), &setting);
        grid.left(20_000_000, 1_000, spare_ms * MILLISECOND)
    };
    // A grid takes 25 ms, a row 2.25, and others of a row are given back as much later.
    assert!(left(BOTH, 30) < left(ROWS_ONLY, 25) / 10);
    assert!(left(BOTH, 3) > left(ROWS_ONLY, 3) / 2, "hardly any columns are in time");
    assert!(left(COLUMNS_ONLY, 25) < left(COLUMNS_ONLY, 13));
    assert_eq!(left(BOTH, 0), left(ROWS_ONLY, 0));
    assert!(left(BOTH, 0) < 20_000_000, "the last of a row waits for nothing");
}
