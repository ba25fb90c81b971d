//! [`Kept`]: what was sent and may still be asked for.
//!
//! ```text
//!   oldest                                        newest
//!   [ 40 to 84, 3 ms ][ 85, 5 ms ][ 86 to 130, 9 ms ]        trains stay trains
//!                       ^ asked for: 85 to 87 -> [ 85 ] [ 86, 87 ]
//! ```
//!
//! Invariants: read-only views, in the order of their numbers, without a gap between them; at most
//! [`TRAINS_MAX`] of them and [`BYTES_MAX`] bytes: the oldest go first, or the caller adds no more.

use dacapo_base::Time;
use dacapo_packet::{Packet, Pool};
use std::collections::VecDeque;
use std::ops::Range;

/// How many trains may be kept.
pub(crate) const TRAINS_MAX: usize = 4_096;

/// How many payload bytes may be kept.
pub(crate) const BYTES_MAX: usize = 8 << 20;

#[derive(Debug)]
struct Train {
    first: u64,
    view: Packet,
    sent: Time,
}

impl Train {
    fn end(&self) -> u64 {
        self.first + self.view.segment_count() as u64
    }
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    trains: VecDeque<Train>,
    bytes: usize,
}

impl Kept {
    /// Keeps a train that was sent `now`, whose first packet has the number `first`. What has no
    /// place any more is given back to `drop`.
    pub fn push(&mut self, first: u64, view: Packet, now: Time, mut drop: impl FnMut(Packet)) {
        let len = view.payload_len();
        while self.trains.len() >= TRAINS_MAX || self.bytes + len > BYTES_MAX {
            let Some(old) = self.pop() else { break };
            drop(old);
        }
        self.add(first, view, now);
    }

    /// Keeps a train as [`Kept::push`] does, for a caller who keeps within the bounds itself.
    pub fn add(&mut self, first: u64, view: Packet, now: Time) {
        self.bytes += view.payload_len();
        self.trains.push_back(Train { first, view, sent: now });
    }

    /// How many payload bytes are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back to `drop` what ends before `number`.
    pub fn let_go_before(&mut self, number: u64, mut drop: impl FnMut(Packet)) {
        while self.trains.front().is_some_and(|train| train.end() <= number) {
            self.pop().into_iter().for_each(&mut drop);
        }
    }

    /// When the oldest was sent.
    pub fn oldest(&self) -> Option<Time> {
        self.trains.front().map(|train| train.sent)
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<Packet> {
        let train = self.trains.pop_front()?;
        self.bytes -= train.view.payload_len();
        Some(train.view)
    }

    /// The next packets of `asked` that are kept, as many as one train has of them: the number of
    /// the first, and a view.
    pub fn view(&mut self, pool: &mut Pool, asked: &Range<u64>) -> Option<(u64, Packet)> {
        self.view_sent_by(pool, asked, Time::NEVER)
    }

    /// The same of those that were sent by then.
    pub fn view_sent_by(
        &mut self,
        pool: &mut Pool,
        asked: &Range<u64>,
        by: Time,
    ) -> Option<(u64, Packet)> {
        if asked.is_empty() {
            return None;
        }
        let at = self.trains.partition_point(|train| train.end() <= asked.start);
        let is_meant = |train: &&mut Train| train.first < asked.end && train.sent <= by;
        let train = self.trains.get_mut(at).filter(is_meant)?;
        let first = train.first.max(asked.start);
        let count = asked.end.min(train.end()) - first;
        let skipped = first - train.first;
        let mut view = pool.share(&mut train.view);
        if let Some(before) = pool.split_first(&mut view, skipped as usize) {
            pool.free(before);
        }
        if let Some(wanted) = pool.split_first(&mut view, count as usize) {
            pool.free(std::mem::replace(&mut view, wanted));
        }
        Some((first, view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_packet::Layout;

    fn train(pool: &mut Pool, count: u8) -> Packet {
        let layout = Layout { head: 0, tail: 0, segment: 2, segmented: true };
        let packet = pool.alloc_train(&layout, usize::from(count) * 2 - 1).unwrap();
        let bytes: Vec<u8> = (0..count).flat_map(|at| [at, 7]).collect();
        pool.write_payload(&packet, 0, &bytes[..bytes.len() - 1]);
        packet
    }

    #[test]
    fn a_part_of_a_train_is_found_by_its_numbers() {
        let mut pool = Pool::new(1 << 20);
        let mut kept = Kept::default();
        for (first, count) in [(40, 5), (45, 1), (46, 4)] {
            let view = train(&mut pool, count);
            kept.push(first, view, Time::ZERO, |_| panic!("there is room"));
        }
        let mut found = |asked: Range<u64>| {
            let (first, view) = kept.view(&mut pool, &asked)?;
            let places = (0..view.segment_count()).map(|at| pool.segment(&view, at)[0]).collect();
            pool.free(view);
            Some((first, places))
        };
        assert_eq!(found(42..50), Some((42, vec![2, 3, 4])));
        assert_eq!(found(45..50), Some((45, vec![0])));
        assert_eq!(found(47..48), Some((47, vec![1])));
        assert_eq!(found(49..99), Some((49, vec![3])), "the last is shorter");
        assert_eq!(found(0..41), Some((40, vec![0])), "what is before is not kept");
        assert_eq!([found(0..40), found(50..60), found(48..48)], [None, None, None]);
        assert!(kept.view_sent_by(&mut pool, &(40..50), Time::ZERO).is_some_and(
            |(first, view)| {
                pool.free(view);
                first == 40
            }
        ));
        kept.push(50, train(&mut pool, 1), Time::from_millis(9), |_| panic!("there is room"));
        assert!(kept.view_sent_by(&mut pool, &(50..51), Time::from_millis(8)).is_none());
        while let Some(view) = kept.pop() {
            pool.free(view);
        }
        assert_eq!((pool.live_views(), kept.bytes), (0, 0));
    }

    #[test]
    fn the_oldest_goes_where_there_are_too_many() {
        let mut pool = Pool::new(64 << 20);
        let mut kept = Kept::default();
        let mut gone = Vec::new();
        for number in 0..TRAINS_MAX as u64 + 3 {
            let view = train(&mut pool, 1);
            kept.push(number, view, Time::from_millis(number), |it| gone.push(it));
        }
        assert_eq!((gone.len(), kept.oldest()), (3, Some(Time::from_millis(3))));
        assert!(kept.view(&mut pool, &(0..3)).is_none());
    }
}
