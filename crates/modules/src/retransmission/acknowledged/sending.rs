//! [`Sending`]: what is kept until it is acknowledged, and when it is sent again.
//!
//! ```text
//!   down     1 2 3 4            2'             5 |<-- probe after -->| 5'
//!   heard              1, 3..4                                           1..5
//! ```
//!
//! What packets that left later have overtaken for too long is lost; where nothing is heard, the
//! last and the first that are missing are sent again, less and less often (tail loss probe;
//! RFC 9002, section 6.2). What is to be sent again leaves when the network takes it, before
//! anything new.
//!
//! Invariants: nothing is let go before it is acknowledged; no more than [`WINDOW`] packets
//! and about [`BYTES_MAX`] bytes are outstanding; a packet that is lost is in `again` until it is
//! sent, or has come.

use super::super::kept::{BYTES_MAX, Kept};
use super::super::round_trip::RoundTrip;
use super::outstanding::{Found, Outstanding, Slot};
use super::overtaking::Overtaking;
use super::resending::Resending;
use super::saying::{ACK_AFTER, ACK_PACKETS};
use crate::copying::Copier;
use crate::emitting::send_again;
use crate::window::WINDOW;
use dacapo_base::{Time, earlier};
use dacapo_lift::{Cx, DropReason};
use dacapo_packet::Packet;
use dacapo_wire::acknowledgement::{Header, Kind, Range as Said, State, extend};
use std::ops::Range;
use std::time::Duration;

/// How often in a round trip an acknowledgement is asked for, where there are enough packets: so
/// often the path's controller hears how it goes.
pub const ASKED_PARTS: usize = 8;

/// How many packets are sent for each that asks, at least.
pub const ASKED_MIN: usize = 2;

/// What a round trip takes while nobody knows.
pub(super) const UNKNOWN: Duration = Duration::from_millis(250);

/// The longest time between probes: well below the ten seconds for which a receiver waits.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// What is sent again where a packet is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Again {
    /// It, and nothing else: the receiver keeps what came behind it.
    #[default]
    Lost,
    /// It, and all that left behind it: the receiver keeps none of that.
    AllBehind,
}

#[derive(Debug, Default)]
pub(super) struct Sending {
    goes: Again,
    outstanding: Outstanding,
    kept: Kept,
    /// The longest packet so far: how many more have room is reckoned by it.
    len_max: usize,
    round_trip: RoundTrip,
    overtaking: Overtaking,
    /// When the newest left of those that have come.
    newest: Option<Time>,
    /// When the newest left, and its number, of those that came behind one that is missing, and are
    /// gone.
    behind: Option<(Time, u64)>,
    /// When something left last, or came of what had.
    active: Time,
    /// How many probes were sent since something came.
    probes: u32,
    /// How many packets left since one asked to be acknowledged.
    unasked: usize,
    /// When a packet will be lost, if nothing comes.
    lost_at: Option<Time>,
    lost: Vec<Range<u64>>,
    again: Resending,
    /// How many packets were sent again.
    pub repaired: i64,
}

impl Sending {
    pub fn new(goes: Again) -> Self {
        Self { goes, again: Resending::new(goes), ..Self::default() }
    }

    /// How many packets there is room for: none while some are to be sent again.
    pub fn credit(&self) -> usize {
        if self.again.is_wanted() {
            return 0;
        }
        let bytes = BYTES_MAX.saturating_sub(self.kept.bytes()) / self.len_max.max(1);
        (WINDOW - self.outstanding.len().min(WINDOW)).min(bytes)
    }

    /// Numbers a packet or train, and keeps a view of it.
    ///
    /// # Errors
    /// There is no room for the header.
    pub fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Result<(), DropReason> {
        let (first, count, now) = (self.outstanding.next(), slot.segment_count(), cx.now());
        let view = cx.pool.share(slot);
        let asks = self.asks(count);
        let header = |at: usize| {
            let kind = Kind::Sent { attempt: 0, asks: asks && at + 1 == count };
            Header { number: (first + at as u64) as u32, kind }.emit()
        };
        if cx.pool.put_head(slot, header).is_err() {
            cx.pool.free(view);
            return Err(DropReason::TooLarge);
        }
        for at in 0..count {
            let len = slot.segment_len(at);
            self.outstanding.push(now, len);
            self.len_max = self.len_max.max(len);
        }
        self.kept.add(first, view, now);
        self.again.allow(count as u64);
        self.active = now;
        Ok(())
    }

    /// Whether the last of so many packets is to be acknowledged at once.
    fn asks(&mut self, count: usize) -> bool {
        self.unasked += count;
        let enough = (self.outstanding.len() / ASKED_PARTS).clamp(ASKED_MIN, ACK_PACKETS);
        let asks = self.unasked >= enough;
        self.unasked = if asks { 0 } else { self.unasked };
        asks
    }

    /// Takes what the peer says; false where no peer says such a thing.
    pub fn hear(
        &mut self,
        cx: &mut Cx<'_>,
        number: u32,
        (state, ranges): (State, impl Iterator<Item = Said>),
    ) -> bool {
        let (first, next, now) = (self.outstanding.first(), self.outstanding.next(), cx.now());
        let Some(number) = extend(number, first).filter(|number| *number <= next) else {
            return false;
        };
        self.measure(cx, &state);
        let kept = match self.goes {
            Again::Lost => usize::MAX,
            Again::AllBehind => {
                self.note_behind(number, &state);
                0
            }
        };
        let round = self.overtaking.round_min();
        let mut heard = self.outstanding.acknowledge_to(number, now, round);
        for range in ranges.take(kept) {
            let Some(from) = extend(range.first, first) else { continue };
            let more =
                self.outstanding.acknowledge(from..from + u64::from(range.count), now, round);
            heard.add(&more);
        }
        self.kept.let_go_before(self.outstanding.first(), |view| cx.pool.free(view));
        self.overtaking.learn(state.duplicates);
        self.again.allow(heard.packets);
        if heard.packets > 0 {
            (self.active, self.probes) = (now, 0);
            self.newest = self.newest.max(heard.newest);
            let sent_at = heard.newest.or(self.newest).unwrap_or(now);
            cx.report_delivered(heard.packets, heard.bytes, sent_at);
        }
        if heard.spurious > 0 {
            // It may have come before it was sent again: nothing comes twice that would show it.
            self.overtaking.wait_longer();
            cx.report_spurious(heard.spurious);
        }
        self.find_lost(cx);
        true
    }

    /// A round trip: from when the packet left that came last, for the time that the peer says.
    fn measure(&mut self, cx: &mut Cx<'_>, state: &State) {
        let Some(slot) = self.last_that_came(state) else { return };
        let held = Duration::from_micros(state.held_us.into());
        let whole = cx.now().since(slot.sent);
        // Nobody held it for longer than it was under way.
        let Some(sample) = whole.checked_sub(held) else { return };
        self.round_trip.add(sample);
        self.overtaking.measure(sample);
        cx.report_rtt(whole, held);
    }

    /// The packet that came last, as it left; `None` where it is not known which that was.
    fn last_that_came(&self, state: &State) -> Option<&Slot> {
        let number = extend(state.number, self.outstanding.first())?;
        self.outstanding.get(number).filter(|slot| slot.attempt == state.attempt)
    }

    /// What came behind the number that is expected is gone, and shows that this is missing.
    fn note_behind(&mut self, expected: u64, state: &State) {
        let number = extend(state.number, expected).filter(|number| *number > expected);
        let behind = number.zip(self.last_that_came(state).map(|slot| slot.sent));
        self.behind = self.behind.max(behind.map(|(number, sent)| (sent, number)));
    }

    /// What is lost by now is to be sent again.
    fn find_lost(&mut self, cx: &mut Cx<'_>) {
        let mut lost = std::mem::take(&mut self.lost);
        lost.clear();
        let found = match (self.goes, self.newest, self.behind) {
            (Again::Lost, Some(newest), _) => {
                let overdue = self.overtaking.overdue();
                self.outstanding.find_lost(cx.now(), newest, overdue, &mut lost)
            }
            (Again::AllBehind, _, Some(behind)) => {
                self.outstanding.find_first_lost(behind, &mut lost)
            }
            _ => Found::default(),
        };
        self.lost_at = found.due;
        if !lost.is_empty() {
            self.overtaking.note_lost(cx.now(), found.left);
            let count = match self.goes {
                Again::Lost => lost.iter().map(|range| range.end - range.start).sum(),
                // Of the others nobody knows.
                Again::AllBehind => 1,
            };
            cx.report_lost_sent_at(count, found.left);
            if self.goes == Again::Lost {
                lost.iter().for_each(|range| cx.report_run(range.end - range.start));
            }
            lost.iter().for_each(|range| self.again.insert(range.clone()));
        }
        self.lost = lost;
        self.want_room(cx);
    }

    fn want_room(&self, cx: &mut Cx<'_>) {
        if self.again.is_wanted() {
            cx.want_room();
        }
    }

    /// The network takes so many bytes: sends again what is to be.
    pub fn handle_room(&mut self, cx: &mut Cx<'_>, copier: &mut Copier, bytes: usize) {
        let packets = (bytes / self.len_max.max(1)).max(1) as u64;
        let mut room = self.again.room(packets);
        while room > 0
            && let Some(range) = self.again.next(&self.outstanding, room)
        {
            let sent = self.send_again(cx, copier, range.clone());
            self.again.note_sent(range.start..range.start + sent);
            room -= sent;
            if range.start + sent < range.end {
                self.again.wait(cx.now());
                break;
            }
        }
        self.want_room(cx);
    }

    /// Sends these again; returns how many could be.
    fn send_again(&mut self, cx: &mut Cx<'_>, copier: &mut Copier, mut range: Range<u64>) -> u64 {
        let from = range.start;
        while let Some((number, view)) = self.kept.view(cx.pool, &range) {
            let end = number + view.segment_count() as u64;
            let is_sent = self.send_view(cx, copier, number, &view);
            cx.pool.free(view);
            if !is_sent {
                break;
            }
            range.start = end;
        }
        range.start - from
    }

    fn send_view(
        &mut self,
        cx: &mut Cx<'_>,
        copier: &mut Copier,
        number: u64,
        view: &Packet,
    ) -> bool {
        let count = view.segment_count() as u64;
        let outstanding = &mut self.outstanding;
        let header = |at: usize| {
            let number = number + at as u64;
            let attempt = outstanding.get(number).map_or(0, |slot| slot.attempt);
            let kind = Kind::Sent { attempt: attempt.saturating_add(1), asks: false };
            Header { number: number as u32, kind }.emit()
        };
        let is_sent = send_again(cx, copier, view, header);
        if is_sent {
            outstanding.sent_again(&(number..number + count), cx.now());
            self.repaired += count as i64;
        }
        is_sent
    }

    /// When it is to be looked what is lost, or to be probed.
    pub fn due(&self) -> Option<Time> {
        earlier(earlier(self.lost_at, self.again.due()), self.probe_at())
    }

    fn probe_at(&self) -> Option<Time> {
        self.outstanding.last()?;
        let wait = self.round_trip.wait(UNKNOWN) + ACK_AFTER;
        Some(self.active + (wait * (1 << self.probes.min(8))).min(PROBE_MAX))
    }

    /// The time has come that [`Sending::due`] said, or not yet.
    pub fn look(&mut self, cx: &mut Cx<'_>) {
        self.again.look(cx.now());
        if self.lost_at.is_some_and(|at| at <= cx.now()) {
            self.find_lost(cx);
        }
        if self.probe_at().is_some_and(|at| at <= cx.now()) {
            self.probe(cx.now());
        }
        self.want_room(cx);
    }

    /// The first and the last that have not come are to be sent again: who gets one says what is
    /// missing.
    fn probe(&mut self, now: Time) {
        if let Some(last) = self.outstanding.last() {
            self.again.probe(self.outstanding.first(), last);
            (self.active, self.probes) = (now, self.probes.saturating_add(1));
        }
    }

    /// Lets go of everything.
    pub fn flush(&mut self, cx: &mut Cx<'_>) {
        while let Some(view) = self.kept.pop() {
            cx.pool.free(view);
        }
        self.outstanding.clear();
        self.again.clear();
        self.lost_at = None;
    }
}
