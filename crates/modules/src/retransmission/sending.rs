//! [`Sending`]: numbers, what is kept of what was sent, and what says that nothing follows.
//!
//! ```text
//!   down      1 2 3     4 5 6 |
//!   idle                      |<-- tail -->| newest: 7     so that a lost 6 is missed in time
//! ```
//!
//! Where packets follow each other, the next one shows that one is missing. Where none follows for
//! twice as long as lately, or a quarter of the time in which a packet is of use, the sender says
//! how far it is, [`ANNOUNCED_MAX`] times.
//!
//! Invariants: a packet is sent again only where it was asked for, no more often in all than
//! packets were sent, and [`ALLOWANCE`] at once; nothing is kept longer than it is of use.

use super::kept::Kept;
use crate::copying::Copier;
use crate::emitting::{send_again, tell};
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason};
use dacapo_packet::Packet;
use dacapo_wire::retransmission::{Header, Kind, Range, extend};
use std::time::Duration;

/// How many packets may be sent again at once: they are queued before what is sent first, which
/// must not wait long for them.
pub(crate) const ALLOWANCE: u32 = 128;

/// How often the sender says how far it is after one packet.
pub(crate) const ANNOUNCED_MAX: u32 = 2;

/// The shortest time after which it does.
const TAIL_MIN: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(super) struct Sending {
    /// The number of the next packet.
    next: u64,
    kept: Kept,
    /// How many packets may be sent again.
    allowance: u32,
    /// When the last packet was sent.
    last: Option<Time>,
    /// How far apart packets left lately.
    apart: Duration,
    /// How often it was said how far this end is, since the last packet.
    announced: u32,
}

impl Sending {
    /// Numbers a packet or train, and keeps a view of it.
    ///
    /// # Errors
    /// There is no room for the header.
    pub fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Result<(), DropReason> {
        let (first, count) = (self.next, slot.segment_count() as u64);
        let view = cx.pool.share(slot);
        let header =
            |at: usize| Header { number: (first + at as u64) as u32, kind: Kind::First }.emit();
        if cx.pool.put_head(slot, header).is_err() {
            cx.pool.free(view);
            return Err(DropReason::TooLarge);
        }
        self.next += count;
        let now = cx.now();
        self.kept.push(first, view, now, |old| cx.discard(old, DropReason::Overflow));
        self.allowance = self.allowance.saturating_add(count as u32).min(ALLOWANCE);
        if let Some(last) = self.last.filter(|last| *last < now) {
            self.apart = self.apart / 8 * 7 + now.since(last) / 8;
        }
        (self.last, self.announced) = (Some(now), 0);
        Ok(())
    }

    /// Sends what is asked for again, as far as it is kept and left so long ago.
    pub fn answer(
        &mut self,
        cx: &mut Cx<'_>,
        copier: &mut Copier,
        ranges: impl Iterator<Item = Range>,
        ago: Duration,
    ) {
        let by = cx.now() - ago;
        for range in ranges {
            let Some(first) = extend(range.first, self.next) else { continue };
            let mut asked = first..first.saturating_add(range.count.into()).min(self.next);
            // Who asks into a silence does not know yet how much of it is a run.
            if range.attempt == 1 && ago.is_zero() && !asked.is_empty() {
                cx.report_run(asked.end - asked.start);
            }
            while let Some((number, view)) = self.kept.view_sent_by(cx.pool, &asked, by) {
                asked.start = number + view.segment_count() as u64;
                let is_sent = self.send_again(cx, copier, number, &view, range.attempt);
                cx.pool.free(view);
                if !is_sent {
                    return;
                }
            }
        }
    }

    /// False where no more may be sent.
    fn send_again(
        &mut self,
        cx: &mut Cx<'_>,
        copier: &mut Copier,
        number: u64,
        view: &Packet,
        attempt: u8,
    ) -> bool {
        let count = view.segment_count() as u32;
        let Some(left) = self.allowance.checked_sub(count) else {
            cx.not_made(count.into(), DropReason::Overflow);
            return false;
        };
        let kind = Kind::Again(attempt);
        let header = |at: usize| Header { number: (number + at as u64) as u32, kind }.emit();
        let is_sent = send_again(cx, copier, view, header);
        if is_sent {
            self.allowance = left;
        }
        is_sent
    }

    /// When it is to be said how far this end is, where packets are of use for `within`; none where
    /// it was said often enough.
    pub fn tail(&self, within: Duration) -> Option<Time> {
        let last = self.last.filter(|_| self.announced < ANNOUNCED_MAX)?;
        let idle = (self.apart * 2).min(within / 4).max(TAIL_MIN);
        Some(last + idle * (self.announced + 1))
    }

    /// Says how far this end is, where anything was sent.
    pub fn announce(&mut self, cx: &mut Cx<'_>, copier: &Copier) {
        let Some(last) = self.last else { return };
        self.announced += 1;
        let age = u32::try_from(cx.now().since(last).as_micros()).unwrap_or(u32::MAX);
        let header = Header { number: self.next as u32, kind: Kind::Newest };
        tell(cx, copier, header.emit(), &age.to_be_bytes());
    }

    /// When the first of what is kept is of no use any more.
    pub fn due(&self, within: Duration) -> Option<Time> {
        self.kept.oldest().map(|sent| sent + within)
    }

    /// Lets go of what is of no use any more.
    pub fn let_go(&mut self, cx: &mut Cx<'_>, within: Duration) {
        while self.due(within).is_some_and(|due| due <= cx.now()) {
            self.kept.pop().into_iter().for_each(|view| cx.pool.free(view));
        }
    }

    /// Lets go of everything, and says nothing more.
    pub fn flush(&mut self, cx: &mut Cx<'_>) {
        while let Some(view) = self.kept.pop() {
            cx.pool.free(view);
        }
        self.last = None;
    }
}
