//! A body in which small packets lie one behind the other, so that they can leave as one train.
//!
//! ```text
//!   slab   |head|first|tail|head|second|tail|            rest            |
//!          what carve gave ................. ^ where the next one begins
//! ```
//!
//! Invariant: what was carved is nobody else's, and the rest of a slab is a view like any other: it
//! is given back through [`Pool::free`].

use super::Pool;
use crate::{Layout, Packet};

impl Pool {
    /// A packet of one segment of `len` bytes with the room of `layout` around it, from the front
    /// of `slab`, which [`Pool::alloc_arrival`] has made. `None` when it has not that much left.
    #[must_use]
    pub fn carve(&mut self, slab: &mut Packet, layout: &Layout, len: usize) -> Option<Packet> {
        let stride = layout.head + len + layout.tail;
        if slab.is_empty_slot() || slab.payload_len() < stride {
            return None;
        }
        let mut packet = slab.view();
        packet.offset += layout.head as u32;
        packet.len = len as u32;
        (packet.head, packet.tail) = (layout.head as u16, layout.tail as u16);
        slab.offset += stride as u32;
        slab.len -= stride as u32;
        self.count_view(slab);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { head: 3, tail: 2, segment: 100, segmented: false };

    #[test]
    fn what_is_carved_lies_as_a_train_once_every_header_is_there() {
        let mut pool = Pool::new(1 << 20);
        let mut slab = pool.alloc_arrival().unwrap();
        let mut train = Packet::EMPTY;
        for (number, len) in [100, 100, 100, 40].into_iter().enumerate() {
            let mut next = pool.carve(&mut slab, &LAYOUT, len).unwrap();
            assert_eq!((next.head_room(), next.tail_room(), next.payload_len()), (3, 2, len));
            pool.write_payload(&next, 0, &vec![number as u8; len]);
            pool.put_head(&mut next, |_| [9; 3]).unwrap();
            pool.push_tail(&mut next, 2).unwrap();
            next.set_unit_ends(true, true);
            if train.is_empty_slot() {
                train = next;
            } else {
                assert!(pool.join_any(&mut train, next).is_ok(), "{number}");
            }
        }
        let (bytes, segment) = pool.contiguous(&train).unwrap();
        assert_eq!((bytes.len(), segment, train.segment_count()), (3 * 105 + 45, 105, 4));
        assert_eq!((&bytes[..4], bytes[105 + 3]), (&[9, 9, 9, 0][..], 1));
        // Behind a shorter one there is no train any more.
        let next = pool.carve(&mut slab, &LAYOUT, 40).unwrap();
        let next = pool.join_any(&mut train, next).unwrap_err();
        [train, next, slab].into_iter().for_each(|packet| pool.free(packet));
        assert_eq!(pool.live_views(), 0);
    }

    #[test]
    fn units_are_joined_only_by_who_does_not_care_for_them() {
        let mut pool = Pool::new(1 << 20);
        let mut slab = pool.alloc_arrival().unwrap();
        let [mut one, mut two] = [(); 2].map(|()| pool.carve(&mut slab, &LAYOUT, 100).unwrap());
        one.set_unit_ends(true, true);
        two.set_unit_ends(true, true);
        let two = pool.join(&mut one, two).unwrap_err();
        assert!(pool.join_any(&mut one, two).is_ok());
        [one, slab].into_iter().for_each(|packet| pool.free(packet));
        assert_eq!(pool.live_views(), 0);
    }

    #[test]
    fn a_slab_ends() {
        let mut pool = Pool::new(1 << 20);
        let mut slab = pool.alloc_arrival().unwrap();
        let mut count = 0;
        while let Some(packet) = pool.carve(&mut slab, &LAYOUT, 100) {
            pool.free(packet);
            count += 1;
        }
        assert_eq!(count, 65_536 / 105);
        pool.free(slab);
        let mut none = Packet::EMPTY;
        assert!(pool.carve(&mut none, &LAYOUT, 1).is_none());
        assert_eq!((pool.live_views(), pool.stats().bodies_made), (0, 1));
    }
}
