//! A line through what trains of several shapes cost: so much for each train, packet and byte.
//!
//! Each shape deviates by its share, so that none weighs more than another.

/// A train.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub packets: usize,
    /// Bytes of payload of each.
    pub len: usize,
}

const fn shape(packets: usize, len: usize) -> Shape {
    Shape { packets, len }
}

/// What is measured.
pub const SHAPES: [Shape; 6] = [
    shape(1, 100),
    shape(8, 100),
    shape(45, 100),
    shape(1, 1_400),
    shape(8, 1_400),
    shape(45, 1_400),
];

/// Per train, packet and byte, in ps.
pub type Costs = [f64; 3];

/// What one train of a shape has of trains, packets and bytes.
fn counts(shape: Shape) -> Costs {
    [1.0, shape.packets as f64, (shape.packets * shape.len) as f64]
}

/// What a train of this shape costs then.
pub fn predicted(costs: &Costs, shape: Shape) -> f64 {
    counts(shape).iter().zip(costs).map(|(count, cost)| count * cost).sum()
}

/// The costs that deviate least from what was measured; none below zero.
pub fn fit(measured: &[f64; SHAPES.len()]) -> Costs {
    // Each cost that would be negative is left out in turn: of all choices the best.
    let candidates = (1..8).map(|mask| solve(measured, mask));
    let candidates = candidates.filter(|it| it.iter().all(|cost| *cost >= 0.0 && cost.is_finite()));
    let best = candidates.min_by(|a, b| error(a, measured).total_cmp(&error(b, measured)));
    best.unwrap_or([0.0; 3])
}

fn error(costs: &Costs, measured: &[f64; SHAPES.len()]) -> f64 {
    let share = |(shape, is): (&Shape, &f64)| {
        ((predicted(costs, *shape) - is) / is.abs().max(1_000.0)).powi(2)
    };
    SHAPES.iter().zip(measured).map(share).sum()
}

/// Weighted least squares over the costs in `mask`, by Gaussian elimination; the others are 0.
fn solve(measured: &[f64; SHAPES.len()], mask: u8) -> Costs {
    let mut system = [[0.0; 4]; 3];
    for (shape, is) in SHAPES.iter().zip(measured) {
        let weight = is.abs().max(1_000.0).powi(-2);
        let row = counts(*shape);
        for i in 0..3 {
            for j in 0..3 {
                system[i][j] += weight * row[i] * row[j];
            }
            system[i][3] += weight * row[i] * is;
        }
    }
    for i in (0..3).filter(|i| mask & (1 << i) == 0) {
        system[i] = [0.0; 4];
        system.iter_mut().for_each(|row| row[i] = 0.0);
        system[i][i] = 1.0;
    }
    eliminate(system)
}

fn eliminate(mut system: [[f64; 4]; 3]) -> Costs {
    for pivot in 0..3 {
        let row = system[pivot].map(|value| value / system[pivot][pivot]);
        system[pivot] = row;
        for other in (0..3).filter(|other| *other != pivot) {
            let factor = system[other][pivot];
            for (value, by) in system[other].iter_mut().zip(row) {
                *value -= factor * by;
            }
        }
    }
    [system[0][3], system[1][3], system[2][3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_found_again_in_what_they_make() {
        let costs = [12_500.0, 15_000.0, 135.0];
        let found = fit(&SHAPES.map(|shape| predicted(&costs, shape)));
        for (found, cost) in found.iter().zip(costs) {
            assert!((found / cost - 1.0).abs() < 1e-6, "{found} {cost}");
        }
    }

    #[test]
    fn no_cost_is_below_zero() {
        let found = fit(&SHAPES.map(|shape| predicted(&[-500.0, 4_000.0, 0.0], shape).max(10.0)));
        assert_eq!(found[0], 0.0);
        assert!(found[1] > 3_000.0 && found[1] < 4_000.0, "{found:?}");
    }
}
