//! [`overload`]: whether the path carries what the flows of a session need together.
//!
//! ```text
//!   path 5 Mbit/s   |picture 4.3           |tone 1.7  X     each fits alone
//! ```
//!
//! What a flow needs is what is asked for at least, or its medium cannot do without, with the
//! headers of its packets, and what its protocol sends more: copies, parities.

use super::need::Need;
use crate::access::words;
use dacapo_core::{Code, Error};
use dacapo_lift::{Path, Setting};
use dacapo_packet::Layout;
use dacapo_qos::configure::Outcome;
use dacapo_wire::session::Direction;

/// The headers of IP version 4 and UDP, in bytes.
const BELOW_LEN: u64 = 28;

/// What a flow takes of the path at least, in bit/s, of which `least_bps` is payload.
pub(super) fn load_bps(
    least_bps: u64,
    setting: &Setting,
    layout: Layout,
    outcome: &Outcome,
) -> u64 {
    let len = u128::from(setting.units.len_mean.max(1));
    let head = (layout.head + layout.tail) as u64 + BELOW_LEN;
    let heads = u128::from(outcome.packets_per_unit) * u128::from(head);
    let milli = u128::from(outcome.wire_milli.max(1_000));
    let bps = u128::from(least_bps) * (len + heads) / len * milli / 1_000;
    u64::try_from(bps).unwrap_or(u64::MAX)
}

/// Why the path does not carry all of these flows, and with which they are too many.
pub(super) fn overload<'a>(
    flows: impl IntoIterator<Item = (&'a Need, u64)>,
    path: &Path,
) -> Option<(&'a Need, String)> {
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for (need, load) in flows.into_iter().filter(|(_, load)| *load > 0) {
        let (way, who) = match need.direction {
            Direction::ToParticipant => (&mut there, "creator"),
            Direction::ToCreator => (&mut back, "participant"),
        };
        way.push((need, load));
        let sum = way.iter().fold(0_u64, |sum, (_, load)| sum.saturating_add(*load));
        // One by itself was judged when its protocol was chosen.
        if sum > path.rate_bps && way.len() > 1 {
            return Some((need, text(way, who, sum, path.rate_bps)));
        }
    }
    None
}

/// Whether the path carries all of these flows.
///
/// # Errors
/// [`Code::Infeasible`], with what it does not.
pub(super) fn check<'a>(
    flows: impl IntoIterator<Item = (&'a Need, u64)>,
    path: &Path,
) -> Result<(), Error> {
    overload(flows, path).map_or(Ok(()), |(need, text)| {
        Err(Error::new(Code::Infeasible, format!("{}: {text}", need.name)))
    })
}

fn text(way: &[(&Need, u64)], who: &str, sum: u64, rate: u64) -> String {
    let each = way.iter().map(|(need, load)| format!("{} {}", need.name, words::rate(*load)));
    let each = each.collect::<Vec<_>>().join(", ");
    let (sum, rate) = (words::rate(sum), words::rate(rate));
    format!("what the {who} sends takes {sum} ({each}), and the path is assumed to carry {rate}")
}
