//! [`Sending`]: the newest unit, which is sent again until it is acknowledged.

use super::super::round_trip::RoundTrip;
use super::AGAIN_TIMER;
use crate::copying::Copier;
use crate::emitting::send_again;
use crate::outliers::NEAR;
use crate::runs::down_or_drop;
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::{self as packet, Packet, Pool};
use dacapo_wire::retransmission::{ATTEMPTS_MAX, Header, Kind, LEN, extend};
use std::time::Duration;

/// How long an answer takes while nobody knows it.
const UNKNOWN: Duration = Duration::from_millis(200);

/// The longest wait before a unit is sent again.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The newest unit, until it is acknowledged.
#[derive(Debug, Default)]
pub(super) struct Sending {
    /// The number of the next unit.
    next: u64,
    /// Views of the newest; none once it is acknowledged.
    kept: Vec<Packet>,
    /// When it was sent first, and last, and for which time that was: 0 for the first.
    sent_first: Time,
    sent_last: Time,
    attempt: u8,
    /// How often its wait was doubled.
    doubled: u32,
    round_trip: RoundTrip,
    /// What says that the epoch ends, while a unit is not acknowledged.
    mark: Option<Packet>,
}

impl Sending {
    /// Whether there is a unit that is not acknowledged, to its end.
    fn is_whole(&self) -> bool {
        self.kept.last().is_some_and(Packet::is_unit_last)
    }

    /// Sends some of a unit in its turn; what says that the epoch ends waits until the newest unit
    /// is acknowledged.
    pub fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        if slot.kind() == packet::Kind::Mark && self.is_whole() {
            self.wait(cx, slot.take());
            return Verdict::Held;
        }
        self.send_mark(cx);
        match self.keep(cx, slot) {
            Ok(()) => Verdict::Forward,
            Err(reason) => Verdict::Drop(reason),
        }
    }

    /// What says that the epoch ends waits, in the place of what said so before.
    fn wait(&mut self, cx: &mut Cx<'_>, mark: Packet) {
        if let Some(before) = self.mark.replace(mark) {
            cx.discard(before, DropReason::Duplicate);
        }
    }

    /// Sends what waits for the unit before it.
    fn send_mark(&mut self, cx: &mut Cx<'_>) {
        let Some(mut mark) = self.mark.take() else { return };
        match self.keep(cx, &mut mark) {
            Ok(()) => down_or_drop(cx, mark),
            Err(reason) => cx.discard(mark, reason),
        }
    }

    /// Numbers some of a unit, and keeps a view of it.
    ///
    /// # Errors
    /// There is no room for the header.
    fn keep(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Result<(), DropReason> {
        if slot.is_unit_first() {
            self.forget(cx.pool);
            self.next += 1;
        }
        let number = self.next.wrapping_sub(1) as u32;
        let view = cx.pool.share(slot);
        let header = Header { number, kind: Kind::First }.emit();
        if cx.pool.put_head(slot, |_| header).is_err() {
            cx.pool.free(view);
            return Err(DropReason::TooLarge);
        }
        self.kept.push(view);
        if slot.is_unit_last() {
            (self.sent_first, self.sent_last) = (cx.now(), cx.now());
            (self.attempt, self.doubled) = (0, 0);
            cx.arm(AGAIN_TIMER, self.due());
        }
        Ok(())
    }

    /// When it is to be sent again.
    fn due(&self) -> Time {
        let wait = self.round_trip.wait(UNKNOWN);
        self.sent_last + wait.saturating_mul(1 << self.doubled.min(10)).min(WAIT_MAX)
    }

    /// Sends the newest again, where it is whole and an answer overdue.
    pub fn send_again(&mut self, cx: &mut Cx<'_>, copier: &mut Copier) {
        if !self.is_whole() {
            return;
        }
        if self.due() <= cx.now() {
            // In turn, so that none is taken for a copy of the one before it.
            self.attempt = self.attempt % ATTEMPTS_MAX + 1;
            (self.sent_last, self.doubled) = (cx.now(), self.doubled + 1);
            let (number, kind) = (self.next.wrapping_sub(1) as u32, Kind::Again(self.attempt));
            let header = Header { number, kind }.emit();
            let _ = self.kept.iter().all(|view| send_again(cx, copier, view, |_| header));
        }
        cx.arm(AGAIN_TIMER, self.due());
    }

    /// The peer says which is the newest that came; `None` where nobody says such a thing.
    pub fn hear(&mut self, cx: &mut Cx<'_>, number: u32, said: &Packet) -> Option<()> {
        let [a, b, c, d, attempt] = *cx.pool.segment(said, 0).get(LEN..)?.as_array()?;
        let age = Duration::from_micros(u32::from_be_bytes([a, b, c, d]).into());
        let number = extend(number, self.next)?;
        if !self.is_whole() {
            return Some(());
        }
        // It believes a number that was altered: the newest is sent again behind that.
        if number >= self.next && number - self.next <= NEAR {
            self.next = number + 2;
        }
        if number.checked_add(1) != Some(self.next) {
            return Some(());
        }
        if let Some(sent) = self.sent_at(attempt) {
            self.round_trip.add(cx.now().since(sent).saturating_sub(age));
        }
        self.forget(cx.pool);
        cx.disarm(AGAIN_TIMER);
        self.send_mark(cx);
        Some(())
    }

    /// When it was sent for this time; known of the first and of the last.
    fn sent_at(&self, attempt: u8) -> Option<Time> {
        match attempt {
            _ if attempt == self.attempt => Some(self.sent_last),
            0 => Some(self.sent_first),
            _ => None,
        }
    }

    fn forget(&mut self, pool: &mut Pool) {
        self.kept.drain(..).for_each(|view| pool.free(view));
    }

    /// Forgets the newest, and what waits for it.
    pub fn flush(&mut self, pool: &mut Pool) {
        self.forget(pool);
        self.mark.take().into_iter().for_each(|mark| pool.free(mark));
    }
}
