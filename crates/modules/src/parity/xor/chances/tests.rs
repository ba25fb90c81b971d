//! What is predicted, beside what is drawn.

use super::*;
use dacapo_base::Random;
use dacapo_lift::PPB;

/// Which of so many sources are lost, and whether the sum right behind one comes.
struct Drawn {
    lost: Vec<bool>,
    sum_comes: Vec<bool>,
}

/// Losses in runs by time, as a path has them, or single ones.
fn draw(loss: f64, burst: f64, count: usize, seed: u64) -> Drawn {
    let mut random = Random::from_number(seed);
    let ends = (1.0 / burst).min(1.0 - loss);
    let begins = loss * ends / (1.0 - loss);
    let mut is_lost = random.chance(loss);
    let (mut lost, mut sum_comes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        is_lost ^= random.chance(if is_lost { ends } else { begins });
        lost.push(is_lost);
        sum_comes.push(if burst > 1.0 { !is_lost } else { !random.chance(loss) });
    }
    Drawn { lost, sum_comes }
}

/// Rows and columns of sources whose sum came.
fn groups(drawn: &Drawn, columns: usize, rows: usize, arrangement: u64) -> Vec<Vec<usize>> {
    let (count, mut all) = (drawn.lost.len(), Vec::new());
    if arrangement & 1 != 0 {
        let ends = (columns..=count).step_by(columns).filter(|end| drawn.sum_comes[end - 1]);
        all.extend(ends.map(|end| (end - columns..end).collect()));
    }
    for column in (0..columns).filter(|_| arrangement & 2 != 0) {
        let lower = super::super::sending::lower(column as u64, columns as u64, rows as u64);
        let shelf = |number: usize| (number / columns + lower as usize) / rows;
        let mut group: Vec<usize> = Vec::new();
        for number in (column..count).step_by(columns) {
            if group.last().is_some_and(|last| shelf(*last) != shelf(number)) {
                let group = std::mem::take(&mut group);
                all.extend(drawn.sum_comes[number].then_some(group));
            }
            group.push(number);
        }
    }
    all
}

/// How many are lost, and how many stay so when all is given back that can be.
fn stays(mut drawn: Drawn, columns: usize, rows: usize, arrangement: u64) -> [usize; 2] {
    let edge = 2 * columns * rows;
    let inner = edge..drawn.lost.len() - edge;
    let count = |lost: &[bool]| lost[inner.clone()].iter().filter(|it| **it).count();
    let before = count(&drawn.lost);
    let groups = groups(&drawn, columns, rows, arrangement);
    let mut of = vec![Vec::new(); drawn.lost.len()];
    for (at, group) in groups.iter().enumerate() {
        group.iter().for_each(|number| of[*number].push(at));
    }
    let mut open: Vec<usize> = (0..groups.len()).collect();
    while let Some(at) = open.pop() {
        let mut missing = groups[at].iter().filter(|number| drawn.lost[**number]);
        if let (Some(number), None) = (missing.next(), missing.next()) {
            drawn.lost[*number] = false;
            open.extend(&of[*number]);
        }
    }
    [before, count(&drawn.lost)]
}

fn says(loss: f64, burst: f64, columns: usize, rows: usize, arrangement: u64) -> f64 {
    let turns = Turns::of((loss * PPB as f64) as u64, (burst * 1e3) as u64);
    // As this path has them: a row's sum shares the fate of its last source, or depends on nothing.
    let sum = turns.but_for(if burst > 1.0 { 0.0 } else { 1.0 });
    let row = Group { count: columns, turns, sum };
    let turns = turns.every(columns as u64);
    let column = Group { count: rows, turns, sum: turns };
    let [by_row, by_column] = [row, column].map(|group| group.keeps(1.0));
    loss * match arrangement {
        1 => by_row,
        2 => by_column,
        _ => by_row.min(by_column).min(Both { row, column }.keeps()),
    }
}

/// What stays lost of 200 draws together, of what was lost, through what is predicted of that.
fn of_200_seeds(loss: f64, burst: f64, (columns, rows): (usize, usize), arrangement: u64) -> f64 {
    let one = |seed| stays(draw(loss, burst, 20_000, seed), columns, rows, arrangement);
    let all = (0..200).map(one).fold([0, 0], |sum, it| [sum[0] + it[0], sum[1] + it[1]]);
    let drawn = loss * all[1] as f64 / all[0] as f64;
    let says = says(loss, burst, columns, rows, arrangement);
    let is = drawn / says;
    println!(
        "{loss} x {burst}, {columns} x {rows}, {arrangement}: {drawn:.3e}, {is:.3} of {says:.3e}"
    );
    is
}

const SIZES: [(usize, usize); 3] = [(5, 5), (10, 6), (20, 10)];

#[test]
fn what_rows_or_columns_leave_is_predicted_within_five_per_cent() {
    for (loss, burst) in [(0.02, 1.0), (0.1, 1.0), (0.02, 3.0), (0.05, 8.0)] {
        for size in [SIZES[0], SIZES[2]] {
            for arrangement in [1, 2] {
                let is = of_200_seeds(loss, burst, size, arrangement);
                assert!((0.95..=1.05).contains(&is), "{is} of what is predicted");
            }
        }
    }
}

#[test]
fn what_both_leave_of_single_losses_is_predicted_within_ten_per_cent() {
    for loss in [0.03, 0.08] {
        for size in SIZES {
            let is = of_200_seeds(loss, 1.0, size, 3);
            assert!((0.9..=1.1).contains(&is), "{is} of what is predicted");
        }
    }
}

#[test]
fn what_both_leave_of_runs_is_predicted_within_a_quarter() {
    for (loss, burst) in [(0.01, 3.0), (0.05, 3.0), (0.02, 8.0)] {
        for size in SIZES {
            let is = of_200_seeds(loss, burst, size, 3);
            assert!((0.75..=1.25).contains(&is), "{is} of what is predicted");
        }
    }
}

#[test]
fn a_column_gives_back_a_run_that_a_row_does_not() {
    let by = |arrangement| says(0.001, 4.0, 16, 8, arrangement);
    assert!(by(2) < by(1) / 20.0 && by(3) < by(2));
}
