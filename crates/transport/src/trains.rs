//! [`even_train`]: room for datagrams that wait, so that they go up as one train.

use dacapo_packet::{Layout, Packet, Pool, PoolFull};

/// A packet for the first datagram, and for those of the same length behind it and one that is
/// shorter, of which these are the lengths in bytes; with how many it has room for and their bytes
/// together. Without any it is one empty datagram.
///
/// # Errors
/// [`PoolFull`].
pub(crate) fn even_train(
    mut lens: impl Iterator<Item = usize>,
    pool: &mut Pool,
) -> Result<(Packet, usize, usize), PoolFull> {
    let segment = lens.next().unwrap_or(0);
    let layout = Layout { head: 0, tail: 0, segment, segmented: true };
    let (mut count, mut total, mut is_even) = (1, segment, segment > 0);
    for len in lens {
        let fits = segment > 0 && total + len <= layout.payload_per_train();
        if !is_even || !fits || len > segment || len == 0 {
            break;
        }
        (count, total, is_even) = (count + 1, total + len, len == segment);
    }
    let packet = match count {
        1 => pool.alloc(0, segment, 0)?,
        _ => pool.alloc_train(&layout, total)?,
    };
    Ok((packet, count, total))
}
