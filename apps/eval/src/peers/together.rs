//! Several pairs over one bottleneck, all at once: how they share it.
//!
//! ```text
//!   2 × ours ---+
//!               +== the link ==    jain: 1 where each has as much; 1 / n where one has all
//!   2 × TCP ----+                  share: what one of ours has to what one of theirs has
//! ```

use super::{Order, Peer};
use crate::experiment::Sample;
use crate::rig::{Pair, Rig};
use serde_json::json;

/// A peer, so many times.
pub struct Several {
    /// Which.
    pub peer: &'static dyn Peer,
    /// How many pairs of it.
    pub count: usize,
}

/// So many of a peer.
pub const fn several(count: usize, peer: &'static dyn Peer) -> Several {
    Several { peer, count }
}

/// Runs all of them at once. The figures are of all together, and `share` is of the first to the
/// last.
///
/// # Errors
/// One is missing, crashed, hung or printed rubbish.
pub fn together(all: &[Several], order: &Order, rig: &mut Rig) -> Result<Sample, String> {
    let each = || all.iter().flat_map(|it| std::iter::repeat_n(it.peer, it.count));
    let mut pairs: Vec<Pair> = Vec::new();
    for peer in each() {
        peer.prepare(rig)?;
        let address = format!("{}:{}", rig.place.address(), rig.next_port());
        pairs.push(peer.pair(order, &address, rig));
    }
    let reports = rig.pairs(&pairs)?;
    let samples: Result<Vec<Sample>, String> =
        each().zip(&reports).map(|(peer, it)| peer.sample(order, it, rig)).collect();
    let samples = samples?;
    let rates: Option<Vec<f64>> =
        samples.iter().map(|it| it.figures.get("gbit_per_s").copied()).collect();
    let rates = rates.ok_or("one says no rate")?;
    let cpu = |(sample, rate): (&Sample, &f64)| {
        sample.figures.get("cpu_s_per_gb").map(|cpu_s| cpu_s * rate)
    };
    let cpu: Option<f64> = samples.iter().zip(&rates).map(cpu).sum();
    let sum: f64 = rates.iter().sum();
    let mut sample = Sample::default().with("gbit_per_s", sum).with("jain", jain(&rates));
    if let Some(share) = share(all, &rates) {
        sample = sample.with("share", share);
    }
    if let Some(cpu) = cpu.filter(|_| sum > 0.0) {
        sample = sample.with("cpu_s_per_gb", cpu / sum);
    }
    sample.commands = reports.iter().flat_map(|it| it.commands.clone()).collect();
    let mbit: Vec<f64> = rates.iter().map(|rate| rate * 1e3).collect();
    sample.reports = json!({ "mbit_per_s": mbit });
    Ok(sample)
}

/// The index of Jain, Chiu and Hawe (DEC TR-301, 1984).
fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    if squares > 0.0 { sum * sum / (squares * rates.len() as f64) } else { 0.0 }
}

/// What one of the first has on average to what one of the last has, where they differ.
fn share(all: &[Several], rates: &[f64]) -> Option<f64> {
    let ([first, .., last], count) = (all, rates.len()) else { return None };
    let mean = |of: Option<&[f64]>| {
        of.filter(|it| !it.is_empty()).map(|it| it.iter().sum::<f64>() / it.len() as f64)
    };
    let ours = mean(rates.get(..first.count))?;
    let theirs = mean(rates.get(count.checked_sub(last.count)?..))?;
    (theirs > 0.0).then(|| ours / theirs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::{Listed, Measure, Wait};

    static ANY: Listed = Listed { program: "peer-plain", kind: "tcp" };

    #[test]
    fn the_index_is_one_where_all_have_as_much_and_a_part_where_one_has_all() {
        assert!((jain(&[3.0; 4]) - 1.0).abs() < 1e-9);
        assert!((jain(&[8.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-9);
        assert!((jain(&[1.0, 3.0]) - 0.8).abs() < 1e-9);
        assert!(jain(&[0.0, 0.0]).abs() < 1e-9, "nobody has anything");
    }

    #[test]
    fn a_share_is_that_of_one_of_the_first_to_one_of_the_last() {
        let all = [several(2, &ANY), several(1, &ANY)];
        assert_eq!(share(&all, &[1.0, 3.0, 4.0]), Some(0.5));
        assert_eq!(share(&all[..1], &[1.0, 3.0]), None, "nobody else is there");
        assert_eq!(share(&all, &[1.0, 1.0, 0.0]), None);
    }

    #[test]
    fn one_that_is_missing_is_an_error_and_nothing_is_left() {
        let mut rig = crate::rig::tests::rig();
        let order = Order { measure: Measure::Bulk, size: 1, wait: Wait::Block, is_reliable: true };
        let error = together(&[several(2, &ANY)], &order, &mut rig).unwrap_err();
        assert!(error.contains("peer-plain"), "{error}");
    }
}
