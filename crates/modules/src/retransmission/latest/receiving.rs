//! [`Receiving`]: which unit is the newest that came, and saying so.

use super::{NOTE_REPAIRED, SAY_TIMER};
use crate::beginning::JOIN_NEAR;
use crate::copying::Copier;
use crate::emitting::tell;
use crate::outliers::NEAR;
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason};
use dacapo_wire::retransmission::{Header, Kind, extend};
use std::time::Duration;

/// What came is acknowledged no more often than this.
const SAY_EVERY: Duration = Duration::from_millis(2);

/// What has come.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    /// The number behind the newest that came.
    next: u64,
    /// Some of that unit has come, and not its end.
    is_open: bool,
    /// For which time it was sent when it came: 0 for the first.
    attempt: u8,
    /// How many came because they were sent again.
    repaired: i64,
    /// This end takes part from somewhere in the middle, and nothing has come.
    is_joining: bool,
    /// What was too far ahead to be believed at once.
    far: Option<(u64, Kind)>,
    /// When the newest came, and when that was last said.
    came: Time,
    said: Option<Time>,
    /// It is to be said.
    is_due: bool,
}

impl Receiving {
    /// Takes some of a unit.
    ///
    /// # Errors
    /// Why it does not go up.
    pub fn take(
        &mut self,
        cx: &mut Cx<'_>,
        number: u32,
        kind: Kind,
        is_first: bool,
    ) -> Result<(), DropReason> {
        let number = extend(number, self.next).ok_or(DropReason::Malformed)?;
        if number + 1 == self.next && self.is_open && !is_first {
            return Ok(());
        }
        if number < self.next && !self.is_joining {
            let is_newest = number + 1 == self.next;
            return Err(if is_newest { DropReason::Duplicate } else { DropReason::Stale });
        }
        if !self.is_joining && number - self.next > NEAR && !self.confirm(number, kind) {
            return Err(DropReason::Overflow);
        }
        if !is_first {
            return Err(DropReason::Malformed);
        }
        let lost = if self.is_joining { 0 } else { number - self.next };
        if lost > 0 {
            cx.report_lost(lost);
        }
        (self.next, self.is_open, self.is_joining, self.far) = (number + 1, true, false, None);
        self.attempt = if let Kind::Again(attempt) = kind { attempt } else { 0 };
        Ok(())
    }

    /// A number far ahead may have been altered: another near it, or the same sent yet again, says
    /// that it was not.
    fn confirm(&mut self, number: u64, kind: Kind) -> bool {
        let before = self.far.replace((number, kind));
        before.is_some_and(|it| it != (number, kind) && it.0.abs_diff(number) <= NEAR)
    }

    /// The newest has come, to its end, now or before.
    pub fn end(&mut self, cx: &mut Cx<'_>) {
        if self.is_open {
            (self.is_open, self.came) = (false, cx.now());
            if self.attempt > 0 {
                self.repaired += 1;
                cx.note(NOTE_REPAIRED, self.repaired);
            }
        }
    }

    /// Says what has come, now or when that was said long enough ago.
    pub fn say_soon(&mut self, cx: &mut Cx<'_>, copier: &Copier) {
        self.is_due = true;
        match self.said.map(|said| said + SAY_EVERY).filter(|at| *at > cx.now()) {
            Some(at) => cx.arm(SAY_TIMER, at),
            None => self.say(cx, copier),
        }
    }

    /// Says which is the newest that came, how long ago, and for which time it had been sent.
    pub fn say(&mut self, cx: &mut Cx<'_>, copier: &Copier) {
        if !self.is_due {
            return;
        }
        (self.is_due, self.said) = (false, Some(cx.now()));
        let age = u32::try_from(cx.now().since(self.came).as_micros()).unwrap_or(u32::MAX);
        let header = Header { number: self.next.wrapping_sub(1) as u32, kind: Kind::Newest };
        let [a, b, c, d] = age.to_be_bytes();
        tell(cx, copier, header.emit(), &[a, b, c, d, self.attempt]);
    }

    /// Takes the first number that comes for the next one.
    pub fn join(&mut self) {
        (self.is_joining, self.next) = (true, JOIN_NEAR);
    }

    /// Says nothing more of what came.
    pub fn flush(&mut self) {
        (self.is_open, self.is_due) = (false, false);
    }
}
