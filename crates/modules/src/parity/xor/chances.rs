//! How likely it is that a lost source is not given back: by its row, by its column, or by both.
//!
//! ```text
//!            c     c'
//!     r   .  x  x  x  .     a source is given back by its row when all others of the row, and its
//!         .  .  .  .  .     sum, have come or are given back by their columns; and the same the
//!     r'  .  x  .  x  .     other way. Where two rows and two columns meet in losses, none is.
//! ```
//!
//! Of a row or a column alone this is exact, but that a sum is taken to leave right behind a
//! source. Of both it is what each tells the other, over and over (density evolution: Luby,
//! Mitzenmacher, Shokrollahi, Spielman 1998), and with that what tells them nothing: rows that are
//! hit by two runs of losses, in columns that go on together; where runs pass over each other in
//! more rows than two at once is not looked at. So what stays lost is within ten per cent of what
//! happens where losses are single, and within a quarter elsewhere.

use crate::parity::turns::Turns;

/// How often rows and columns tell each other what they know: more changes nothing.
const ROUNDS: usize = 30;

/// The sources of a row or a column, and its sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub count: usize,
    /// From one source to the next.
    pub turns: Turns,
    /// From the last source to the sum.
    pub sum: Turns,
}

/// How likely it is that packets that follow a lost one do not keep it lost, and that the last of
/// them came, or was lost.
#[derive(Clone, Copy, Debug)]
struct Free {
    came: f64,
    lost: f64,
}

impl Group {
    /// For each number of packets, from none to all but one, how likely it is that none of so many
    /// that follow a lost one stays lost, where that is so of this share of those that are lost.
    fn free(&self, stays: f64) -> Vec<Free> {
        let Turns { begins, ends, .. } = self.turns;
        let next = |it: &Free| Free {
            came: it.came * (1.0 - begins) + it.lost * ends,
            lost: (it.came * begins + it.lost * (1.0 - ends)) * (1.0 - stays),
        };
        let first = Some(Free { came: 0.0, lost: 1.0 });
        std::iter::successors(first, |it| Some(next(it))).take(self.count).collect()
    }

    /// For each source, how likely it is that it is given back where it is lost, and this share of
    /// others that are lost stays so.
    pub fn gives_back(&self, stays: f64) -> Vec<f64> {
        let free = self.free(stays);
        let sum_comes = |it: &Free| it.came * (1.0 - self.sum.begins) + it.lost * self.sum.ends;
        // Before a source it is as behind it: the chain is the same in both directions.
        let before = free.iter().map(|it| it.came + it.lost);
        before.zip(free.iter().rev()).map(|(before, behind)| before * sum_comes(behind)).collect()
    }

    /// How likely it is that a lost source is not given back.
    pub fn keeps(&self, stays: f64) -> f64 {
        1.0 - self.gives_back(stays).iter().sum::<f64>() / self.count.max(1) as f64
    }
}

/// A grid of which rows and columns have sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Both {
    pub row: Group,
    pub column: Group,
}

impl Both {
    /// How likely it is that a lost source is not given back.
    pub fn keeps(&self) -> f64 {
        let (mut by_row, mut by_column) = (1.0, 1.0);
        for _ in 0..ROUNDS {
            by_row = self.row.keeps(by_column);
            by_column = self.column.keeps(by_row);
        }
        let loss = self.row.turns.loss;
        // That its column gives it back whatever its row lacks, and where that lacks another.
        let (mut free, mut free_alone) = (1.0, 1.0 - loss);
        for apart in 1..self.column.count {
            // A row before it and one behind it, where they lie on the same shelf.
            let shared = 1.0 - apart as f64 / self.column.count as f64;
            let lost = 1.0 - self.column.turns.every(apart as u64).ends;
            let meets = self.meets(apart, loss, lost);
            let alone = meets + (lost - meets) * by_row;
            free *= (1.0 - shared * meets) * (1.0 - shared * meets);
            free_alone *= (1.0 - shared * alone) * (1.0 - shared * alone);
        }
        by_row * (1.0 - free_alone) + (1.0 - by_row) * (1.0 - free)
    }

    /// How likely it is that another row lost the source in the column of a lost one, and both rows
    /// another one in one more column. That row lies so many rows apart; it `lost` that source as
    /// another run did, or as one that passes over from row to row.
    fn meets(&self, apart: usize, loss: f64, lost: f64) -> f64 {
        let [before, behind] = [-1, 1].map(|side| self.never_meets(apart, side));
        let free: f64 = before.iter().zip(behind.iter().rev()).map(|(a, b)| a * b).sum();
        let of_runs = 1.0 - free / self.row.count.max(1) as f64;
        // A run that passes over begins or ends right there, or is longer.
        let ends = self.row.turns.ends;
        let passing = (lost - loss).max(0.0);
        loss * of_runs + passing * (1.0 - ends * ends)
    }

    /// For each number of columns, how likely it is that two runs of losses that meet in one do not
    /// meet in so many that follow, where these have both rows on one shelf.
    fn never_meets(&self, apart: usize, side: i64) -> Vec<f64> {
        let Turns { begins, ends, .. } = self.row.turns;
        // Neither is lost, one of them is, both are.
        let (mut none, mut one, mut both) = (0.0, 0.0, 1.0);
        let mut never = vec![1.0];
        for columns in 1..self.row.count as i64 {
            let stays = none * (1.0 - begins) * (1.0 - begins);
            let next_none = stays + one * (1.0 - begins) * ends + both * ends * ends;
            let next_both = none * begins * begins
                + one * begins * (1.0 - ends)
                + both * (1.0 - ends) * (1.0 - ends);
            let all = none + one + both;
            one = all - next_none - next_both;
            none = next_none;
            both = next_both * (1.0 - self.share_shelf(apart, side * columns));
            never.push(none + one + both);
        }
        never
    }

    /// How likely it is that two rows that lie on one shelf of a column do so in another, too.
    fn share_shelf(&self, apart: usize, columns: i64) -> f64 {
        let (count, height) = (self.row.count as u64, self.column.count as u64);
        let lower = super::sending::lower(columns.rem_euclid(count as i64) as u64, count, height);
        let places = height - apart as u64;
        let share = (0..places).filter(|at| (at + lower) % height < places).count();
        share as f64 / places as f64
    }
}

#[cfg(test)]
mod tests;
