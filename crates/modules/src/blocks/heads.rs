//! [`put_heads`]: the headers of sources.

use dacapo_packet::{Packet, Pool};
use dacapo_wire::parity::Header;

/// Puts a header before every segment of a packet of sources of a block, of which there are so many
/// at most and this packet's first is `first`. False, and nothing done, when there is no room.
pub(crate) fn put_heads(
    pool: &mut Pool,
    packet: &mut Packet,
    (block, first, sources): (u64, u8, u8),
) -> bool {
    let segments = packet.segment_count();
    let (len, last) = (packet.segment_len(0), packet.segment_len(segments.saturating_sub(1)));
    let header = |at: usize| {
        let length = if at + 1 == segments { last } else { len };
        let index = first.saturating_add(at as u8);
        Header { block: block as u32, index, sources, length: length as u16 }.emit()
    };
    pool.put_head(packet, header).is_ok()
}
