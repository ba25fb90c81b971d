//! [`Deadlines`]: equals of which the one goes first whose unit must be there first.
//!
//! ```text
//!   heap: no later than when what it gives next must be there
//!     12 ms  a ---- asked since when that waits ----> 12 ms: its turn
//!     15 ms  b                                       later: back into the heap
//!     40 ms  c                                       it has nothing: aside, as what is handed
//!                                                    over from now on is due a deadline later
//! ```
//!
//! So a flow is looked at when it may be first, however many there are. Who gives nothing is not
//! asked again at the same time, unless nobody else gives anything.
//!
//! Invariant: each is once in the heap or aside, with a time no later than that at which what it
//! gives next must be there.

use super::asker::{Asked, Asker};
use dacapo_base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

#[derive(Debug)]
struct Flow {
    asked: Asked,
    deadline: Duration,
    /// What it gives next must not be there before this time.
    due_min: Time,
}

#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// In the order of [`Asked`].
    flows: Vec<Flow>,
    /// Those that others replace.
    replaced: Vec<Flow>,
    /// Their places, by `due_min`.
    heap: BinaryHeap<Reverse<(Time, usize)>>,
    /// Who gave nothing at `asked_at`.
    aside: Vec<usize>,
    asked_at: Time,
}

impl Deadlines {
    /// Others are to be pushed.
    pub fn begin(&mut self) {
        std::mem::swap(&mut self.flows, &mut self.replaced);
        self.flows.clear();
        self.heap.clear();
        self.aside.clear();
    }

    /// One that takes part, in order; what is known of it stays.
    pub fn push(&mut self, asked: Asked, deadline: Duration) {
        let known = self.replaced.binary_search_by_key(&asked, |flow| flow.asked).ok();
        let due_min = known.and_then(|at| self.replaced.get(at)).map(|flow| flow.due_min);
        self.flows.push(Flow { asked, deadline, due_min: due_min.unwrap_or_default() });
    }

    /// All are pushed.
    pub fn settle(&mut self) {
        self.replaced.clear();
        let all = self.flows.iter().enumerate();
        self.heap.extend(all.map(|(place, flow)| Reverse((flow.due_min, place))));
    }

    /// The next packet, of who must be there first of those that have any.
    pub fn poll<A: Asker>(&mut self, now: Time, asker: &mut A) -> Option<(A::Packet, usize)> {
        if let [only] = self.flows.as_slice() {
            return asker.poll(only.asked).given();
        }
        if self.asked_at != now {
            self.put_back(self.aside.len());
            self.asked_at = now;
        }
        let put_aside = self.aside.len();
        if let Some(given) = self.poll_first(now, asker) {
            return Some(given);
        }
        if put_aside == 0 {
            return None;
        }
        self.put_back(put_aside);
        self.poll_first(now, asker)
    }

    /// Those that were put aside first are asked again.
    fn put_back(&mut self, count: usize) {
        let flows = &self.flows;
        let known = |place: usize| Some(Reverse((flows.get(place)?.due_min, place)));
        self.heap.extend(self.aside.drain(..count).filter_map(known));
    }

    fn poll_first<A: Asker>(&mut self, now: Time, asker: &mut A) -> Option<(A::Packet, usize)> {
        while let Some(Reverse((_, place))) = self.heap.pop() {
            let Some(flow) = self.flows.get_mut(place) else { continue };
            let since = asker.waits_since(flow.asked);
            let known = flow.due_min;
            flow.due_min = known.max(since.unwrap_or(now) + flow.deadline);
            let due = flow.due_min;
            if due > known && self.heap.peek().is_some_and(|Reverse((next, _))| *next < due) {
                self.heap.push(Reverse((due, place)));
                continue;
            }
            if let Some(given) = since.and_then(|_| asker.poll(flow.asked).given()) {
                self.heap.push(Reverse((due, place)));
                return Some(given);
            }
            self.aside.push(place);
        }
        None
    }
}
