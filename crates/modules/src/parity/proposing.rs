//! What is proposed of parity: for how long, how little may stay lost, and where blocks are enough.

use super::chain::left;
use crate::arithmetic::{MILLISECOND, packets_in};
use dacapo_lift::Setting;

/// The longest span that is proposed, for who waits as long as a conversation bears.
const LONG: u64 = 160 * MILLISECOND;

/// The most packets of a block that is proposed.
pub(super) const BLOCK_MOST: u64 = 60;

/// What may stay lost, in ppb, with the points that are proposed.
pub(super) const TARGETS: [u64; 3] = [1_000_000, 100_000, 1_000];

/// As long as what comes is of use, also where it waits above for as long as the path's jitter.
pub(super) fn proposed_span(setting: &Setting) -> u64 {
    let spare = setting.spare_after_path_ns().saturating_sub(setting.path.jitter_ns);
    (spare.min(LONG) / MILLISECOND * MILLISECOND).max(MILLISECOND)
}

/// Whether blocks in half of the time leave one packet in 1,000 with a third more packets. They are
/// better then: what receivers report makes them send less where less is lost.
pub(super) fn are_blocks_enough(setting: &Setting) -> bool {
    let half = (setting.spare_after_path_ns() / 2).min(LONG / 2);
    let sources = packets_in(&setting.units, setting.path.datagram_len, half).min(BLOCK_MOST);
    let path = &setting.path;
    left(path.loss_ppb, path.burst_milli, sources, sources / 3) <= TARGETS[0]
}
