//! The line through points by least squares, and what it leaves.

/// The line through points by least squares: value at 0, and rise per 1. Nothing for fewer than two
/// places.
pub fn line_through(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / count, y / count);
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if square <= 0.0 {
        return None;
    }
    let product: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let slope = product / square;
    Some((y - slope * x, slope))
}

/// How far each point is above a line, which is its value at 0 and its rise per 1.
pub fn residuals(points: &[(f64, f64)], (at_0, slope): (f64, f64)) -> Vec<f64> {
    points.iter().map(|(x, y)| y - (at_0 + slope * x)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_none_through_one_place() {
        let points = [(3.0, 13.0), (5.0, 17.0), (10.0, 27.0)];
        let (at_0, slope) = line_through(&points).unwrap();
        assert!((at_0 - 7.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
        assert!(residuals(&points, (at_0, slope)).iter().all(|rest| rest.abs() < 1e-9));
        assert_eq!(line_through(&[(3.0, 1.0), (3.0, 2.0)]), None);
        assert_eq!(line_through(&[]), None);
    }

    #[test]
    fn what_a_line_leaves_sums_up_to_nothing_and_has_no_slope() {
        let points = [(0.0, 5.5), (100.0, 5.4), (1_000.0, 6.9), (65_536.0, 90.0)];
        let rest = residuals(&points, line_through(&points).unwrap());
        assert!(rest.iter().any(|rest| rest.abs() > 0.01));
        assert!(rest.iter().sum::<f64>().abs() < 1e-9);
        let moment: f64 = points.iter().zip(&rest).map(|((x, _), rest)| x * rest).sum();
        assert!(moment.abs() < 1e-6, "{moment}");
    }
}
