//! Bodies that what arrives is read into, so that it need not be copied.
//!
//! ```text
//!   alloc_arrival  |                      whole body                       |
//!   a read of 4,000 bytes in segments of 1,448
//!   cut            |segment 0 |segment 1 |short|           free            |
//! ```

use super::{Pool, PoolFull, TRAIN_BODY_BYTES};
use crate::{Layout, Packet};

/// The longest arrival in bytes: every datagram and every train that a kernel joins fits.
pub const ARRIVAL_BYTES_MAX: usize = TRAIN_BODY_BYTES;

impl Pool {
    /// A packet of one segment, as long as the longest arrival, to read into and then to
    /// [`Pool::cut`].
    ///
    /// # Errors
    /// [`PoolFull`] when the budget is used up.
    pub fn alloc_arrival(&mut self) -> Result<Packet, PoolFull> {
        let mut packet = Packet::EMPTY;
        packet.body = self.take_body(ARRIVAL_BYTES_MAX)?;
        (packet.len, packet.count) = (ARRIVAL_BYTES_MAX as u32, 1);
        Ok(packet)
    }

    /// What was read into an arrival: `len` bytes in segments of `segment` bytes, of which the last
    /// may be shorter. Large ones stay where they lie, and `arrival` is taken; of small ones a copy
    /// is made, so that they do not pin what is not needed, and `arrival` can be read into again.
    /// Without memory for the copy they stay, too.
    ///
    /// More than fits, or a `segment` of 0, is taken for one segment as long as there is.
    pub fn cut(&mut self, arrival: &mut Packet, len: usize, segment: usize) -> Packet {
        let len = len.min(arrival.payload_len()).min(usize::from(u16::MAX));
        let segment = if segment == 0 { len } else { segment.min(len) }.max(1);
        if len * 4 < arrival.payload_len() {
            let layout = Layout { head: 0, tail: 0, segment, segmented: true };
            if let Ok(copy) = self.alloc_train(&layout, len) {
                self.copy_between(arrival.body, 0, copy.body, 0, len);
                return copy;
            }
        }
        let mut packet = arrival.take();
        let count = len.div_ceil(segment).max(1);
        packet.count = count as u16;
        packet.len = if count > 1 { segment } else { len } as u32;
        packet.short = (count * packet.len as usize - len) as u16;
        packet.stride = if count > 1 { segment as u16 } else { 0 };
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pool: &mut Pool, len: usize) -> Packet {
        let mut arrival = pool.alloc_arrival().unwrap();
        let bytes = pool.segment_mut(&mut arrival, 0).unwrap();
        assert_eq!(bytes.len(), ARRIVAL_BYTES_MAX);
        bytes[..len].iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
        arrival
    }

    #[test]
    fn an_arrival_is_cut_as_it_was_read_whether_it_stays_or_is_copied() {
        let mut pool = Pool::new(1 << 20);
        for (len, segment, stays) in [
            (65_507, 1_448, true),
            (65_535, 65_535, true),
            (20_000, 0, true),
            (20_000, 19_999, true),
            (4_000, 1_448, false),
            (1_000, 1_000, false),
            (1, 9, false),
            (0, 0, false),
        ] {
            let mut arrival = read(&mut pool, len);
            let packet = pool.cut(&mut arrival, len, segment);
            assert_eq!(arrival.is_empty_slot(), stays, "{len} in {segment}");
            let most = if segment == 0 { len } else { segment };
            assert_eq!(packet.segment_count(), len.div_ceil(most.max(1)).max(1));
            let mut bytes = Vec::new();
            pool.read_payload(&packet, &mut bytes);
            assert!(bytes.len() == len && packet.segment_len(0) <= most);
            assert!(bytes.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 251));
            pool.free(packet);
            pool.free(arrival);
        }
        assert_eq!((pool.live_views(), pool.stats().bytes_copied), (0, 0));
    }

    #[test]
    fn without_memory_for_a_copy_a_small_arrival_stays() {
        let mut pool = Pool::new(ARRIVAL_BYTES_MAX);
        let mut arrival = read(&mut pool, 100);
        let packet = pool.cut(&mut arrival, 100, 100);
        assert!(arrival.is_empty_slot() && pool.segment(&packet, 0).len() == 100);
        pool.free(packet);
        assert_eq!(pool.live_views(), 0);
    }
}
