//! [`Receiving`]: what has come, and what is asked for.
//!
//! ```text
//!   come   1 2 . . 5    next = 6; 3 and 4 are gaps: they should have come between 2 and 5
//! ```
//!
//! Invariants: a number goes up once; every number below `next` has come, is a gap, or was told as
//! lost.

use super::emitting::tell;
use super::gaps::{Gaps, MISSING_MAX, Was};
use crate::beginning::{Beginning, JOIN_NEAR};
use crate::copying::Copier;
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason};
use dacapo_wire::retransmission::{Header, Kind, RANGES_MAX, Range, extend};
use std::time::Duration;

/// So far ahead one packet is believed by itself: it may have been altered.
const BELIEVED: u64 = 256;

#[derive(Debug, Default)]
pub(super) struct Receiving {
    /// The number of the next packet.
    next: u64,
    gaps: Gaps,
    /// When the packet before the next one came.
    came: Option<Time>,
    /// How far apart packets came lately.
    apart: Duration,
    /// A number far ahead that the next packet confirms when it is near it.
    outlier: Option<u64>,
    /// One far ahead that the sender has said once.
    said: Option<u64>,
    beginning: Beginning,
    /// What is asked for now, and its bytes.
    asked: Vec<Range>,
    bytes: Vec<u8>,
    /// How many packets came because they were asked for, and how many of those came twice.
    pub repaired: i64,
    pub needless: i64,
}

impl Receiving {
    pub fn join(&mut self) {
        self.beginning = Beginning::Nothing;
        self.next = JOIN_NEAR;
    }

    /// Takes `count` packets that begin with this header; `Ok(false)` where they are to be taken
    /// one by one. A packet is of use for `within`.
    ///
    /// # Errors
    /// Why they do not go up.
    pub fn take(
        &mut self,
        cx: &mut Cx<'_>,
        header: &Header,
        count: usize,
        within: Duration,
    ) -> Result<bool, DropReason> {
        let number = extend(header.number, self.next).ok_or(DropReason::Malformed)?;
        if let Some(first) = self.beginning.find(number, self.next, MISSING_MAX) {
            self.next = first;
        }
        if number < self.next {
            return if count > 1 { Ok(false) } else { self.take_late(cx, number, header.kind) };
        }
        let end = number + count as u64;
        let is_far = number - self.next > BELIEVED;
        // Packets of a train confirm each other, and those that overtake each other, too.
        let is_near = |it: u64| it.abs_diff(number) <= BELIEVED;
        if is_far && count == 1 && !self.outlier.is_some_and(is_near) {
            self.outlier = Some(number);
            return Err(DropReason::Overflow);
        }
        self.outlier = None;
        self.miss(cx, number, cx.now(), within);
        if let Some(came) = self.came {
            let passed = u32::try_from(end - self.next).unwrap_or(u32::MAX);
            self.apart = self.apart / 8 * 7 + cx.now().since(came) / passed / 8;
        }
        (self.next, self.came) = (end, Some(cx.now()));
        Ok(true)
    }

    /// One that others overtook, or that was asked for.
    fn take_late(&mut self, cx: &Cx<'_>, number: u64, kind: Kind) -> Result<bool, DropReason> {
        let answers = if let Kind::Again(attempt) = kind { Some(attempt) } else { None };
        match self.gaps.find(cx.now(), number, answers) {
            Was::Missing => {
                self.repaired += i64::from(answers.is_some());
                Ok(true)
            }
            Was::Come => {
                self.needless += i64::from(answers.is_some());
                Err(DropReason::Duplicate)
            }
            Was::GivenUp => Err(DropReason::Stale),
        }
    }

    /// The sender says that its next packet has this number, and how long ago it sent the last.
    pub fn hear(&mut self, cx: &mut Cx<'_>, number: u32, age: Duration, within: Duration) {
        let Some(number) = extend(number, self.next) else { return };
        let ahead = number.saturating_sub(self.next);
        if self.beginning != Beginning::Known || ahead == 0 || ahead > MISSING_MAX {
            return;
        }
        if ahead > BELIEVED && self.said.replace(number) != Some(number) {
            return;
        }
        let sent = cx.now() - age;
        self.miss(cx, number, sent, within);
        (self.next, self.came) = (number, Some(sent));
    }

    /// What is before `number`, which should have come by `until`, has not; what is too much to be
    /// known is lost.
    ///
    /// When each of them should have come is between the two that came around them; no longer ago
    /// than the sender is silent without saying how far it is; and where a flow comes in bursts, of
    /// which they are the beginning, not in the pause before.
    fn miss(&mut self, cx: &mut Cx<'_>, number: u64, until: Time, within: Duration) {
        if number == self.next {
            return;
        }
        let from = self.next.max(number.saturating_sub(MISSING_MAX));
        let lost = from - self.next + self.gaps.make_room(number - from);
        if lost > 0 {
            cx.report_lost(lost);
        }
        // There are no more than MISSING_MAX.
        let count = (number - from) as u32;
        let silent = until - within / 4;
        let burst = until - self.apart * (count + 1);
        let since = self.came.unwrap_or(until).max(silent).max(burst);
        let apart = until.since(since) / (count + 1);
        self.gaps.add(cx.now(), from, count.into(), since + apart + within, apart);
    }

    pub fn due(&self) -> Option<Time> {
        self.gaps.due()
    }

    /// Asks for what is missing, and gives up what is too late.
    pub fn look(&mut self, cx: &mut Cx<'_>, copier: &Copier, within: Duration) {
        self.asked.clear();
        let given_up = self.gaps.look(cx.now(), within / 4, &mut self.asked);
        if given_up > 0 {
            cx.report_lost(given_up);
        }
        debug_assert!(self.asked.len() <= RANGES_MAX);
        if !self.asked.is_empty() {
            self.bytes.clear();
            self.asked.iter().for_each(|range| self.bytes.extend(range.emit()));
            let header = Header { number: 0, kind: Kind::Asked };
            tell(cx, copier, header.emit(), &self.bytes);
        }
    }

    /// Gives up what is missing, and tells it.
    pub fn flush(&mut self, cx: &mut Cx<'_>) {
        let missing = self.gaps.clear();
        if missing > 0 {
            cx.report_lost(missing);
        }
    }
}
