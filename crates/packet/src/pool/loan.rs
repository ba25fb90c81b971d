//! [`Loan`]: a unit that leaves its pool where it lies, for who reads it elsewhere and as long as
//! they like.
//!
//! ```text
//!   bodies --lend--> Loan, in any thread --dropped--> Returns --the pool needs a body--> bodies
//! ```
//!
//! A body is lent as a whole: its memory leaves the pool, so nobody counts views across threads.
//!
//! Invariants: of a body that is lent there are no other views; it counts for the budget until it
//! is back, and at most a quarter of that is lent; of what is lent at least a quarter is the unit.

use super::{Body, CLASS_BYTES, Pool};
use crate::{Packet, skip_bytes};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// At most this part of the budget is lent.
const LENT_PART: usize = 4;

/// A body is lent when so much of it is the unit's, at least.
const USED_PART: usize = 4;

/// Where bodies wait that come back.
#[derive(Debug, Default)]
pub(super) struct Returns {
    bodies: Mutex<Vec<Box<[u8]>>>,
    /// Bytes of those that were freed instead, because the pool was just looking.
    freed_bytes: AtomicUsize,
}

impl Returns {
    /// Never waits: in a fork of the process whoever holds the lock may not be there.
    fn take_back(&self, body: Box<[u8]>) {
        match self.bodies.try_lock() {
            Ok(mut bodies) => bodies.push(body),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().push(body),
            Err(TryLockError::WouldBlock) => {
                self.freed_bytes.fetch_add(body.len(), Ordering::Relaxed);
            }
        }
    }
}

/// A body that is lent, and the view of it.
#[derive(Debug)]
struct Part {
    body: Box<[u8]>,
    view: Packet,
}

/// A unit that is lent, piece by piece as it came. Its memory goes back when it is dropped.
#[derive(Debug)]
pub struct Loan {
    first: Part,
    rest: Vec<Part>,
    skip: usize,
    returns: Arc<Returns>,
}

impl Loan {
    fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Its bytes in order, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let all = self.parts().flat_map(|Part { body, view }| {
            (0..view.segment_count()).map(move |index| {
                let start = view.segment_offset(index);
                body.get(start..start + view.segment_len(index)).unwrap_or_default()
            })
        });
        skip_bytes(all, self.skip)
    }

    /// Its bytes, where they lie in one piece.
    #[must_use]
    pub fn only_piece(&self) -> Option<&[u8]> {
        let is_one = self.rest.is_empty() && !self.first.view.is_train();
        is_one.then(|| self.pieces().next()).flatten()
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        let all: usize = self.parts().map(|part| part.view.payload_len()).sum();
        all.saturating_sub(self.skip)
    }

    /// True when it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.returns.take_back(mem::take(&mut self.first.body));
        self.rest.drain(..).for_each(|part| self.returns.take_back(part.body));
    }
}

impl Pool {
    /// Lends a unit, which lies in `first` and then `rest` behind its first `skip` bytes: those are
    /// empty then. `None`, and nothing has changed, when other views share its bodies, it is small
    /// for them, or a quarter of the budget is lent.
    pub fn lend(
        &mut self,
        first: &mut Packet,
        rest: &mut Vec<Packet>,
        skip: usize,
    ) -> Option<Loan> {
        self.collect();
        let (mut len, mut bytes) = (0, 0);
        for view in std::iter::once(&*first).chain(&*rest) {
            let body = self.bodies.get(view.body as usize).filter(|body| body.views == 1)?;
            len += view.payload_len();
            bytes += body.bytes.len();
        }
        let most = self.bytes_max / LENT_PART;
        if len * USED_PART < bytes || self.stats.lent_bytes + bytes > most {
            return None;
        }
        let first = self.take_out(first.take());
        let rest = rest.drain(..).map(|view| self.take_out(view)).collect();
        Some(Loan { first, rest, skip, returns: Arc::clone(&self.returns) })
    }

    fn take_out(&mut self, view: Packet) -> Part {
        let body = &mut self.bodies[view.body as usize];
        body.views = 0;
        let bytes = mem::take(&mut body.bytes);
        self.vacant.push(view.body);
        self.stats.views -= 1;
        self.stats.lent_bytes += bytes.len();
        Part { body: bytes, view }
    }

    /// Takes those in that have come back.
    pub(super) fn collect(&mut self) {
        if self.stats.lent_bytes == 0 {
            return;
        }
        let freed = self.returns.freed_bytes.swap(0, Ordering::Relaxed);
        self.stats.lent_bytes -= freed;
        self.stats.bytes -= freed;
        let returns = Arc::clone(&self.returns);
        let mut back = returns.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        for bytes in back.drain(..) {
            self.stats.lent_bytes -= bytes.len();
            self.take_in(bytes);
        }
    }

    fn take_in(&mut self, bytes: Box<[u8]>) {
        let Some(class) = CLASS_BYTES.iter().position(|&size| size == bytes.len()) else { return };
        let body = Body { bytes, views: 0, class: class as u8 };
        let id = self.put_body(body);
        self.free[class].push(id);
    }
}

const _: () = {
    const fn goes_to_other_threads<T: Send + Sync>() {}
    goes_to_other_threads::<Loan>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    const TRAIN: Layout = Layout { head: 4, tail: 0, segment: 1_000, segmented: true };

    fn unit(pool: &mut Pool, len: usize) -> Packet {
        let packet = pool.alloc_train(&TRAIN, len).unwrap();
        let bytes: Vec<u8> = (0..len).map(|at| (at / 7) as u8).collect();
        assert_eq!(pool.write_payload(&packet, 0, &bytes), len);
        packet
    }

    fn lend(pool: &mut Pool, packet: &mut Packet) -> Option<Loan> {
        pool.lend(packet, &mut Vec::new(), 10)
    }

    #[test]
    fn a_unit_is_read_where_it_lies_and_its_memory_is_used_again() {
        let mut pool = Pool::new(1 << 20);
        for round in 0..100 {
            let (mut first, mut rest) =
                (unit(&mut pool, 50_500), vec![unit(&mut pool, 20_000), unit(&mut pool, 40_000)]);
            let loan = pool.lend(&mut first, &mut rest, 10).unwrap();
            assert!(first.is_empty_slot() && rest.is_empty() && loan.only_piece().is_none());
            assert_eq!((loan.len(), pool.live_views()), (110_490, 0));
            let read: Vec<u8> = loan.pieces().flatten().copied().collect();
            let all = [50_500, 20_000, 40_000].into_iter().flat_map(|len| 0..len);
            assert!(read.into_iter().eq(all.skip(10).map(|at| (at / 7) as u8)), "{round}");
            drop(loan);
        }
        assert_eq!((pool.stats().bodies_made, pool.stats().bytes_copied), (3, 0));
    }

    #[test]
    fn what_others_see_or_is_small_for_its_body_is_not_lent() {
        let mut pool = Pool::new(1 << 20);
        let mut packet = unit(&mut pool, 50_000);
        let other = pool.share(&mut packet);
        assert!(lend(&mut pool, &mut packet).is_none() && !packet.is_empty_slot());
        pool.free(other);
        let mut small = pool.alloc_arrival().unwrap();
        small.len = 16_000;
        assert!(lend(&mut pool, &mut small).is_none());
        let mut nothing = Packet::EMPTY;
        assert!(lend(&mut pool, &mut nothing).is_none());
        assert!(lend(&mut pool, &mut packet).is_some());
        pool.free(small);
        assert_eq!(pool.live_views(), 0);
    }

    #[test]
    fn what_is_lent_counts_for_the_budget_and_is_a_quarter_of_it_at_most() {
        let mut pool = Pool::new(16 * 65_536);
        let mut loans = Vec::new();
        let mut left = unit(&mut pool, 60_000);
        while let Some(loan) = lend(&mut pool, &mut left) {
            loans.push(loan);
            left = unit(&mut pool, 60_000);
        }
        assert_eq!((loans.len(), pool.stats().lent_bytes), (4, 4 * 65_536));
        pool.free(left);
        let held: Vec<Packet> = std::iter::from_fn(|| pool.alloc_arrival().ok()).collect();
        assert_eq!(held.len(), 12, "the rest of the budget");
        assert!(pool.is_scarce(1));
        loans.pop();
        let one = pool.alloc_arrival().unwrap();
        assert!(pool.alloc_arrival().is_err());
        held.into_iter().chain([one]).for_each(|packet| pool.free(packet));
        drop(loans);
        pool.collect();
        assert_eq!((pool.stats().lent_bytes, pool.bytes_in_use()), (0, 0));
    }

    #[test]
    fn what_comes_back_while_the_pool_looks_is_freed_and_counted() {
        let mut pool = Pool::new(1 << 20);
        let mut packet = unit(&mut pool, 60_000);
        let loan = lend(&mut pool, &mut packet).unwrap();
        let returns = Arc::clone(&pool.returns);
        let looking = returns.bodies.lock().unwrap();
        drop(loan);
        drop(looking);
        pool.collect();
        assert_eq!((pool.stats().lent_bytes, pool.stats().bytes), (0, 0));
        let again = pool.alloc_arrival().unwrap();
        assert_eq!(pool.stats().bodies_made, 2);
        pool.free(again);
    }
}
