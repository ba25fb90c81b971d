//! [`Waiters`]: who waits at an endpoint, what for, and who of them leads.
//!
//! ```text
//!   call:  register ------ unlock, sleep, lock ------ leave
//!            leader, at the poll: whatever comes ends its sleep, and it turns
//!            waiter, at a doorbell:   somebody else leads, and rings it
//!   turn:  satisfy                rings all whose wait is met, whoever turned, the leader too
//!   end:   pass_lead              a waiter leads from now on, or the background
//! ```
//!
//! That the leader is in the list is what matters: a turn of another thread can take the unit for
//! which the leader sleeps, and the poll, which is level-triggered, then shows nothing any more.
//!
//! Invariants: everything here happens under the lock of the state, and nothing sleeps; who sleeps
//! has registered under the same lock under which it has seen that its wait is not met; who is
//! rung once is not rung again before it has left; one leads at most.

use std::mem;

/// Ends the sleep of one thread, now or when it begins.
pub(super) trait Doorbell: Clone {
    fn ring(&self);
}

/// Who leads: sleeps at the poll and turns when something comes.
#[derive(Debug)]
pub(super) enum Leader<P> {
    /// Nobody; the background looks after it within its time.
    Nobody(P),
    /// The background thread, at a poll of its own; a call takes the lead from it.
    Background(P),
    /// A call that waits, and has the poll.
    Call,
}

/// A call that waits.
pub(super) struct Waiter<W, B> {
    id: u64,
    wanted: W,
    doorbell: B,
    /// It is awake, or about to be.
    is_rung: bool,
}

impl<W, B: Doorbell> Waiter<W, B> {
    /// Rings it once, if what it wants is there.
    pub fn ring_if(&mut self, is_met: impl FnOnce(&W) -> bool) {
        if !self.is_rung && is_met(&self.wanted) {
            self.ring();
        }
    }

    fn ring(&mut self) {
        self.is_rung = true;
        self.doorbell.ring();
    }
}

/// Who waits, for a `W`, rung by a `B`; calls that lead sleep at the `P`.
pub(super) struct Waiters<W, B, P> {
    leader: Leader<P>,
    list: Vec<Waiter<W, B>>,
    next: u64,
    missed: u64,
}

impl<W, B: Doorbell, P> Waiters<W, B, P> {
    /// Nobody waits yet.
    pub fn new(poll: P) -> Self {
        Self { leader: Leader::Nobody(poll), list: Vec::new(), next: 0, missed: 0 }
    }

    /// Who leads.
    pub fn leader(&self) -> &Leader<P> {
        &self.leader
    }

    /// The lead, for a call that is to wait: what it sleeps at. Nothing while another call has it.
    pub fn take_lead(&mut self) -> Option<P> {
        match mem::replace(&mut self.leader, Leader::Call) {
            Leader::Nobody(poll) | Leader::Background(poll) => Some(poll),
            Leader::Call => None,
        }
    }

    /// The call that led is awake.
    pub fn give_lead_back(&mut self, poll: P) {
        self.leader = Leader::Nobody(poll);
    }

    /// The background leads from now on, or no longer; true unless a call does.
    pub fn lead_from_background(&mut self, leads: bool) -> bool {
        let Some(poll) = self.take_lead() else { return false };
        self.leader = if leads { Leader::Background(poll) } else { Leader::Nobody(poll) };
        true
    }

    /// A call waits from now on; it has the lock, and keeps it until it sleeps.
    pub fn register(&mut self, wanted: W, doorbell: B) -> u64 {
        let id = self.next;
        self.next += 1;
        self.list.push(Waiter { id, wanted, doorbell, is_rung: false });
        id
    }

    /// A call waits no longer; whether it was rung.
    pub fn leave(&mut self, id: u64) -> bool {
        let at = self.list.iter().position(|waiter| waiter.id == id);
        at.is_some_and(|at| self.list.remove(at).is_rung)
    }

    /// Those who wait, lent for a look at each; the state that is looked at has this in it.
    pub fn lend(&mut self) -> Vec<Waiter<W, B>> {
        mem::take(&mut self.list)
    }

    /// They are given back, before the lock is.
    pub fn take_back(&mut self, list: Vec<Waiter<W, B>>) {
        self.list = list;
    }

    /// A call has woken by itself, and what it waited for was there.
    pub fn note_missed(&mut self) {
        self.missed += 1;
    }

    /// How often that was.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// A call that led leaves: the next is rung. False when nobody leads and nobody waits.
    pub fn pass_lead(&mut self) -> bool {
        let is_led = matches!(self.leader, Leader::Call);
        if !is_led && let Some(next) = self.list.iter_mut().find(|waiter| !waiter.is_rung) {
            next.ring();
        }
        is_led || !self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Count(Rc<Cell<u32>>);

    impl Doorbell for Count {
        fn ring(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    type Those = Waiters<char, Count, &'static str>;

    fn satisfy(those: &mut Those, what: char) {
        let mut list = those.lend();
        list.iter_mut().for_each(|waiter| waiter.ring_if(|wanted| *wanted == what));
        those.take_back(list);
    }

    #[test]
    fn the_leader_is_rung_for_what_it_wants_like_all_others() {
        let (mut those, leader, follower) =
            (Those::new("poll"), Count::default(), Count::default());
        assert_eq!(those.take_lead(), Some("poll"));
        let leads = those.register('a', leader.clone());
        assert_eq!(those.take_lead(), None, "one leads");
        let follows = those.register('b', follower.clone());
        satisfy(&mut those, 'a');
        satisfy(&mut those, 'a');
        assert_eq!((leader.0.get(), follower.0.get()), (1, 0), "once");
        assert!(those.leave(leads) && !those.leave(follows));
        assert!(!those.leave(leads), "it has left");
    }

    #[test]
    fn the_lead_goes_to_one_who_still_sleeps() {
        let (mut those, woken, asleep) = (Those::new("poll"), Count::default(), Count::default());
        let poll = those.take_lead().unwrap();
        those.register('a', woken.clone());
        those.register('b', asleep.clone());
        assert!(those.pass_lead(), "a call leads");
        satisfy(&mut those, 'a');
        those.give_lead_back(poll);
        assert!(those.pass_lead());
        assert_eq!((woken.0.get(), asleep.0.get()), (1, 1));
        assert!(those.pass_lead(), "both are on the way");
        assert_eq!((woken.0.get(), asleep.0.get()), (1, 1));
    }

    #[test]
    fn a_call_takes_the_lead_from_the_background_and_not_the_other_way() {
        let mut those = Those::new("poll");
        assert!(those.lead_from_background(true));
        assert!(matches!(those.leader(), Leader::Background(_)));
        assert!(!those.pass_lead(), "no call waits");
        let poll = those.take_lead().unwrap();
        assert!(!those.lead_from_background(true) && matches!(those.leader(), Leader::Call));
        those.give_lead_back(poll);
        assert!(those.lead_from_background(false));
        assert!(matches!(those.leader(), Leader::Nobody(_)));
    }
}
