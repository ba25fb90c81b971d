//! [`Receiving`]: what has come, and what is asked for.
//!
//! ```text
//!   come   1 2 . . 5    next = 6; 3 and 4 are gaps: they should have come between 2 and 5
//! ```
//!
//! Where packets are to be in order, those behind a gap wait until it is closed.
//!
//! Invariants: a number goes up once; every number below `next` has come, is a gap, or was told as
//! lost.

use super::gaps::{Gaps, MISSING_MAX, Was};
use super::in_order::InOrder;
use super::silence::{Silence, Takes};
use crate::beginning::{Beginning, JOIN_NEAR};
use crate::copying::Copier;
use crate::emitting::tell;
use crate::outliers::{NEAR, Outliers};
use crate::window::WINDOW;
use dacapo_base::Time;
use dacapo_lift::{Cx, DropReason, Verdict};
use dacapo_packet::Packet;
use dacapo_wire::retransmission::{Header, Kind, RANGES_MAX, Range, extend};
use std::time::Duration;

/// Which question a packet answers, if one.
fn answered(kind: Kind) -> Option<u8> {
    if let Kind::Again(attempt) = kind { Some(attempt) } else { None }
}

#[derive(Debug)]
pub(super) struct Receiving {
    /// The number of the next packet.
    next: u64,
    gaps: Gaps,
    /// When the packet before the next one came.
    came: Option<Time>,
    silence: Silence,
    /// Numbers far ahead that another packet may confirm.
    outliers: Outliers,
    /// One far ahead that the sender has said once.
    said: Option<u64>,
    beginning: Beginning,
    /// What waits, where packets are to be in order.
    in_order: Option<InOrder>,
    /// What is asked for now, and its bytes.
    asked: Vec<Range>,
    bytes: Vec<u8>,
    /// How many packets came because they were asked for, and how many of those came twice.
    pub repaired: i64,
    pub needless: i64,
}

impl Receiving {
    /// Packets go up in order, or as they come; so many thousandths of what comes leave room for
    /// what is asked for twice.
    pub fn new(is_ordered: bool, spare_milli: u64) -> Self {
        Self {
            next: 0,
            gaps: Gaps::new(spare_milli),
            came: None,
            silence: Silence::default(),
            outliers: Outliers::default(),
            said: None,
            beginning: Beginning::default(),
            in_order: is_ordered.then(InOrder::default),
            asked: Vec::new(),
            bytes: Vec::new(),
            repaired: 0,
            needless: 0,
        }
    }

    pub fn join(&mut self) {
        self.beginning = Beginning::Nothing;
        self.begin_at(JOIN_NEAR);
    }

    fn begin_at(&mut self, number: u64) {
        self.next = number;
        if let Some(in_order) = &mut self.in_order {
            in_order.begin_at(number);
        }
    }

    /// Takes `count` packets that begin with this header; the number of the first where they are
    /// for [`Receiving::pass`], `None` where they are to be taken one by one. A packet is of use
    /// for `within`.
    ///
    /// # Errors
    /// Why they do not go up.
    pub fn take(
        &mut self,
        cx: &mut Cx<'_>,
        header: &Header,
        count: usize,
        within: Duration,
    ) -> Result<Option<u64>, DropReason> {
        let number = extend(header.number, self.next).ok_or(DropReason::Malformed)?;
        if let Some(first) = self.beginning.find(number, self.next, MISSING_MAX) {
            self.begin_at(first);
        }
        if number < self.next {
            return if count > 1 {
                Ok(None)
            } else {
                self.take_late(cx, number, header.kind, within)
            };
        }
        let end = number + count as u64;
        // Packets of a train confirm each other.
        if number - self.next > NEAR && count == 1 && !self.outliers.confirm(number) {
            return Err(DropReason::Overflow);
        }
        self.outliers.clear();
        let answers = answered(header.kind);
        let until = match answers {
            None => cx.now(),
            Some(_) => self.should_have_come(cx.now(), end),
        };
        self.miss(cx, number, until, within);
        self.make_room(cx, number, end);
        match answers {
            None => self.handle_first(until, number, end, within),
            Some(attempt) => {
                self.repaired += count as i64;
                self.silence.handle_answer(number, attempt, false, within);
                self.silence.advance(end - self.next);
            }
        }
        self.gaps.advance(end - self.next);
        (self.next, self.came) = (end, Some(until));
        Ok(Some(number))
    }

    /// Those from `number` on, before `end`, have come, and were not asked for.
    fn handle_first(&mut self, now: Time, number: u64, end: u64, within: Duration) {
        if let Some(came) = self.came {
            let (passed, missing) = (now.since(came), number - self.next);
            self.silence.handle_arrival(passed, missing, end - number, within);
        }
    }

    /// When the packet before `end` should have come, which is an answer to a question into a
    /// silence that goes on.
    fn should_have_come(&self, now: Time, end: u64) -> Time {
        let count = u32::try_from(end - self.next).unwrap_or(u32::MAX);
        self.came
            .map_or(now, |came| (came + self.silence.apart().unwrap_or_default() * count).min(now))
    }

    /// What was taken goes up, now or once what is before it has come or is given up.
    pub fn pass(&mut self, cx: &mut Cx<'_>, number: u64, slot: &mut Packet) -> Verdict {
        let Some(in_order) = &mut self.in_order else { return Verdict::Forward };
        let verdict = in_order.take(cx, number, slot);
        if in_order.held() == 0 {
            return verdict;
        }
        // What follows may have been given up before this one came.
        self.pass_over(cx, self.next);
        verdict
    }

    /// No packet of those from `number` on, below `end`, waits for one that is too far before it.
    fn make_room(&mut self, cx: &mut Cx<'_>, number: u64, end: u64) {
        if self.in_order.is_none() {
            return;
        }
        let lost = self.gaps.give_up_before(end.saturating_sub(WINDOW as u64));
        if lost > 0 {
            cx.report_lost(lost);
        }
        self.pass_over(cx, number);
    }

    /// What is before `number` and waits, waits for what is missing, and not for what is given up.
    fn pass_over(&mut self, cx: &mut Cx<'_>, number: u64) {
        if let Some(in_order) = &mut self.in_order {
            in_order.pass_over(cx, self.gaps.first().unwrap_or(number));
        }
    }

    /// One that others overtook, or that was asked for.
    fn take_late(
        &mut self,
        cx: &Cx<'_>,
        number: u64,
        kind: Kind,
        within: Duration,
    ) -> Result<Option<u64>, DropReason> {
        let answers = answered(kind);
        let was = self.gaps.find(cx.now(), number, answers);
        if let Some(attempt) = answers {
            self.silence.handle_answer(number, attempt, was == Was::Come, within);
        }
        match was {
            Was::Missing => {
                self.repaired += i64::from(answers.is_some());
                Ok(Some(number))
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
        if number == self.next {
            self.silence.end(true);
        }
        if self.beginning != Beginning::Known || ahead == 0 || ahead > MISSING_MAX {
            return;
        }
        if ahead > NEAR && self.said.replace(number) != Some(number) {
            return;
        }
        let sent = cx.now() - age;
        self.miss(cx, number, sent, within);
        (self.next, self.came) = (number, Some(sent));
        self.silence.end(true);
        self.make_room(cx, number, number);
    }

    /// What is before `number`, which should have come by `until`, has not; what is too much to be
    /// known is lost.
    ///
    /// When each of them should have come is between the two that came around them, as far apart as
    /// packets are on average: where a flow comes in bursts, of which they are the beginning, not
    /// in the pause before. Where that is not known yet, or further than the sender is silent
    /// without saying how far it is, all of them should have come since then.
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
        let silent = within / 4;
        let usual = self.silence.apart().filter(|apart| *apart <= silent);
        let long = usual.map_or(silent, |apart| apart * (count + 1));
        let since = self.came.unwrap_or(until).max(until - long);
        let apart = until.since(since) / (count + 1);
        if from > self.next {
            // Those that were asked for are lost.
            self.silence.end(false);
        }
        let (mut first, mut by) = (from, since + apart + within);
        for (part, asked) in self.silence.parts(count.into()) {
            // What should only have come later had not left when it was asked for.
            let asked = asked.filter(|at| *at + within >= by);
            self.gaps.add(cx.now(), first, part, (by, apart), asked);
            first += part;
            by += apart * part as u32;
        }
    }

    pub fn due(&self) -> Option<Time> {
        self.gaps.due()
    }

    /// When [`Receiving::look_into_silence`] has something to do.
    ///
    pub fn silence_due(&self, within: Duration) -> Option<Time> {
        if self.beginning != Beginning::Known {
            return None;
        }
        let takes = Takes {
            answer: self.gaps.answer()?,
            overtaken: self.gaps.overtaken(),
            round: self.in_order.as_ref().map(|_| self.gaps.round()),
        };
        self.silence.due(self.came?, takes, within)
    }

    /// Asks for what should have come, though nothing shows that it is missing.
    pub fn look_into_silence(&mut self, cx: &mut Cx<'_>, copier: &Copier, within: Duration) {
        let due = self.silence_due(within).filter(|due| *due <= cx.now());
        let (Some(_), Some(came), Some(answer)) = (due, self.came, self.gaps.answer()) else {
            return;
        };
        let Some(range) = self.silence.ask(cx.now(), came, self.next) else { return };
        let ago_us = u32::try_from(answer.as_micros()).unwrap_or(u32::MAX);
        let header = Header { number: ago_us, kind: Kind::Asked };
        tell(cx, copier, header.emit(), &range.emit());
    }

    /// Asks for what is missing, and gives up what is too late.
    pub fn look(&mut self, cx: &mut Cx<'_>, copier: &Copier, within: Duration) {
        self.asked.clear();
        let given_up = self.gaps.look(cx.now(), within / 4, &mut self.asked);
        if given_up > 0 {
            cx.report_lost(given_up);
            self.pass_over(cx, self.next);
        }
        debug_assert!(self.asked.len() <= RANGES_MAX);
        if !self.asked.is_empty() {
            self.bytes.clear();
            self.asked.iter().for_each(|range| self.bytes.extend(range.emit()));
            let header = Header { number: 0, kind: Kind::Asked };
            tell(cx, copier, header.emit(), &self.bytes);
        }
    }

    /// Gives up what others wait for, and tells it.
    pub fn drain(&mut self, cx: &mut Cx<'_>) {
        if self.in_order.as_ref().is_some_and(|it| it.held() > 0) {
            self.give_up(cx);
            self.pass_over(cx, self.next);
        }
    }

    /// Gives up what is missing, and tells it; what waits is not handed over.
    pub fn flush(&mut self, cx: &mut Cx<'_>) {
        if let Some(in_order) = &mut self.in_order {
            in_order.flush(cx);
        }
        self.give_up(cx);
    }

    fn give_up(&mut self, cx: &mut Cx<'_>) {
        let missing = self.gaps.clear();
        if missing > 0 {
            cx.report_lost(missing);
        }
    }
}
