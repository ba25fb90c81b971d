//! [`Path`]: one way to a peer, over one transport, that all flows and epochs share.
//!
//! ```text
//!   flow: may I? --------> allowance: window less in flight, pace -------> bytes, or none
//!         it left -------> pacer, in flight, controller, prober
//!         its modules saw > in flight, estimates, controller --> room for those that wait
//!   time, answers -------> prober: round trip, clock, datagram length, life
//! ```
//!
//! What no controller holds is held by [`crate::breaker`] where the path does not carry it.
//!
//! Invariants: with a window something leaves only while less than it is in flight, and at most one
//! packet above; with a rate see [`crate::pacer`]; who was told "none" is told when there is room,
//! and [`Path::due`] says when that may be without anything being reported; a controller that
//! panics is no longer asked.

use crate::breaker::{Breaker, Held};
use crate::controller::{
    Controller, ControllerCx, ControllerEntry, Delivered, Free, Lost, Marked, Prior, Sent,
};
use crate::counting::{Came, Counting};
use crate::ecn::Marking;
use crate::estimates::{BelowSeen, Estimates};
use crate::in_flight::InFlight;
use crate::pacer::Pacer;
use crate::{ClockOffset, Life, PathSeen, Prober, Question};
use dacapo_base::{Ecn, Time, earlier};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// A path on which nothing has left for so long is used anew.
pub const IDLE_AFTER: Duration = Duration::from_secs(1);

/// What is in flight counts as lost when nothing was heard of any of it for so long at least, and
/// for three round trips: as Linux has it, where RFC 6298, section 2.4, waits for a second.
pub const SILENT_AFTER_MIN: Duration = Duration::from_millis(200);

/// What an answer to a probe has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The path was silent, and carries again.
    pub is_back: bool,
    /// It takes datagrams of another length.
    pub has_len: bool,
    /// The peer's clock is known better.
    pub clock: Option<ClockOffset>,
    /// What no controller holds is held from now on, or no longer.
    pub held: Option<Held>,
}

/// An answer to a question, as the peer has written it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the question.
    pub number: u64,
    /// When it came, in nanoseconds of the peer's clock.
    pub received: u64,
    /// When it was answered, likewise.
    pub answered: u64,
    /// What had come before it, where the peer counts.
    pub came: Option<Came>,
}

/// One way to a peer.
pub struct Path {
    entry: ControllerEntry,
    controller: Box<dyn Controller>,
    /// Its controller has, and is gone.
    has_panicked: bool,
    /// The controller holds nothing back.
    is_free: bool,
    /// Nor does the breaker.
    is_open: bool,
    /// Its rate holds what no module reports about, too.
    holds_unreported: bool,
    /// It goes by what both ends count, where the peer does.
    goes_by_counts: bool,
    marking: Marking,
    /// What it says: the most bytes in flight, and when it wants to be called.
    window: u64,
    call_at: Option<Time>,
    pacer: Pacer,
    in_flight: InFlight,
    prober: Option<Prober>,
    estimates: Estimates,
    counting: Counting,
    breaker: Breaker,
    /// When something left last.
    sent: Option<Time>,
    /// Somebody was told that nothing may leave: of what modules report about, or of what they do
    /// not.
    is_awaited: bool,
    is_unreported_awaited: bool,
    /// It may be due earlier than [`Path::due`] said last.
    is_due_earlier: bool,
}

impl std::fmt::Debug for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Path")
            .field("controller", &self.entry)
            .field("in_flight", &self.in_flight.bytes())
            .field("estimates", &self.estimates)
            .finish_non_exhaustive()
    }
}

impl Path {
    /// One of which nothing is known, with such a controller.
    #[must_use]
    pub fn new(now: Time, entry: &ControllerEntry) -> Self {
        let mut path = Self {
            entry: entry.clone(),
            controller: Box::new(Free),
            has_panicked: false,
            is_free: true,
            is_open: true,
            holds_unreported: true,
            goes_by_counts: false,
            marking: Marking::default(),
            window: u64::MAX,
            call_at: None,
            pacer: Pacer::default(),
            in_flight: InFlight::default(),
            prober: None,
            estimates: Estimates::default(),
            counting: Counting::default(),
            breaker: Breaker::default(),
            sent: None,
            is_awaited: false,
            is_unreported_awaited: false,
            is_due_earlier: false,
        };
        path.begin(now, &Prior::default());
        path
    }

    /// Another controller, with what is known before anything is measured.
    fn begin(&mut self, now: Time, prior: &Prior) {
        if !self.has_panicked {
            let open = Arc::clone(&self.entry.open);
            match catch_unwind(AssertUnwindSafe(|| open(now, prior))) {
                Ok(controller) => self.controller = controller,
                Err(_) => self.go_without(),
            }
        }
        let ask = |it: &mut dyn Controller| (it.holds_unreported(), it.goes_by_counts(), it.ecn());
        let (holds_unreported, goes_by_counts, ecn) = self.with_controller(ask).unwrap_or_default();
        (self.holds_unreported, self.goes_by_counts) = (holds_unreported, goes_by_counts);
        self.marking = Marking::new(ecn);
        self.obey(now);
    }

    /// Asks or tells the controller something; `None` when it panics. Nothing holds the path back
    /// from then on but the bounds of its flows.
    fn with_controller<R>(&mut self, body: impl FnOnce(&mut dyn Controller) -> R) -> Option<R> {
        let controller = &mut *self.controller;
        let result = catch_unwind(AssertUnwindSafe(|| body(controller)));
        if result.is_err() {
            self.go_without();
        }
        result.ok()
    }

    #[cold]
    fn go_without(&mut self) {
        (self.controller, self.has_panicked) = (Box::new(Free), true);
        (self.marking, self.goes_by_counts) = (Marking::default(), false);
    }

    /// The name of its controller; `none` when that has panicked.
    #[must_use]
    pub fn controller(&self) -> &'static str {
        if self.has_panicked { "none" } else { self.entry.spec.name }
    }

    /// What is known of it besides its probes.
    #[must_use]
    pub fn estimates(&self) -> &Estimates {
        &self.estimates
    }

    /// Its probes, once it is probed.
    #[must_use]
    pub fn prober(&self) -> Option<&Prober> {
        self.prober.as_ref()
    }

    /// The smoothed round trip: that of its probes, else what modules or the transport have seen.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        let probed = self.prober.as_ref().and_then(|it| it.rtt().smoothed());
        probed.or(self.estimates.seen.rtt)
    }

    /// Bytes that have left and of which nothing is known yet.
    #[must_use]
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight.bytes()
    }

    /// What what no controller holds is held to all the same, in bit/s.
    #[must_use]
    pub fn held_bps(&self) -> Option<u64> {
        self.breaker.rate_bps()
    }

    /// How many bytes may leave now, of all flows together; a packet that is begun may be longer.
    /// `is_acknowledged`: of those of whose packets modules say what became of them.
    #[must_use]
    #[inline]
    pub fn allowance(&mut self, now: Time, is_acknowledged: bool) -> usize {
        if self.is_open { usize::MAX } else { self.held_allowance(now, is_acknowledged) }
    }

    /// Whether the window holds these: of them it is heard what came, by reports or by counts.
    #[inline]
    fn is_heard_of(&self, is_acknowledged: bool) -> bool {
        is_acknowledged || self.goes_by_counts && self.counting.is_answered()
    }

    /// The congestion codepoint with which what leaves now does (RFC 3168, 9331): Not-ECT unless
    /// its controller yields to marks, the peer counts them, and the path carries such packets.
    #[must_use]
    #[inline]
    pub fn ecn(&self, is_acknowledged: bool) -> Ecn {
        let may_be_set = self.is_heard_of(is_acknowledged) && self.counting.is_answered();
        if may_be_set { self.marking.codepoint() } else { Ecn::NotEct }
    }

    fn held_allowance(&mut self, now: Time, is_acknowledged: bool) -> usize {
        let is_windowed = self.is_heard_of(is_acknowledged);
        let is_held = self.breaker.is_holding() && (self.is_free || !is_windowed);
        let held = if is_held { self.breaker.allowance(now) } else { usize::MAX };
        let window = if is_windowed { self.in_flight.room_in(self.window) } else { usize::MAX };
        let is_paced = is_acknowledged || self.holds_unreported;
        let paced = if is_paced { self.pacer.allowance(now) } else { usize::MAX };
        held.min(window).min(paced)
    }

    /// Something waits that may not leave: [`Path::poll_room`] says when it may.
    pub fn await_room(&mut self, is_acknowledged: bool) {
        let awaited =
            if is_acknowledged { &mut self.is_awaited } else { &mut self.is_unreported_awaited };
        self.is_due_earlier |= !std::mem::replace(awaited, true);
    }

    /// Whether [`Path::due`] may say something earlier than before; once.
    #[must_use]
    #[inline]
    pub fn poll_earlier(&mut self) -> bool {
        std::mem::take(&mut self.is_due_earlier)
    }

    /// Whether something waits that might not leave.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.is_awaited || self.is_unreported_awaited
    }

    /// Whether what waits may leave now; once.
    #[must_use]
    pub fn poll_room(&mut self, now: Time) -> bool {
        let has_room = self.is_awaited && self.allowance(now, true) > 0;
        let has_unreported_room = self.is_unreported_awaited && self.allowance(now, false) > 0;
        self.is_awaited &= !has_room;
        self.is_unreported_awaited &= !has_unreported_room;
        has_room || has_unreported_room
    }

    /// Something has left.
    pub fn handle_sent(&mut self, now: Time, sent: &Sent) {
        if let Some(prober) = &mut self.prober {
            prober.handle_sent(sent.datagram_len, sent.bytes as usize);
        }
        if sent.is_acknowledged || self.holds_unreported {
            self.pacer.take(now, sent.bytes);
        }
        let is_heard_of = self.is_heard_of(sent.is_acknowledged);
        let is_uncontrolled = self.is_free || !is_heard_of;
        self.counting.handle_sent(sent.packets, sent.bytes, is_uncontrolled);
        if is_uncontrolled {
            self.breaker.take(now, sent.bytes);
        }
        if !is_heard_of {
            return;
        }
        let is_idle = self.sent.is_some_and(|last| now.since(last) >= IDLE_AFTER);
        if is_idle && self.in_flight.bytes() == 0 {
            self.estimates.handle_idle();
            let cx = self.cx(now);
            self.with_controller(|it| it.on_idle(&cx));
        }
        self.sent = Some(now);
        if sent.is_ecn_capable {
            self.counting.handle_capable(sent.packets);
        }
        if sent.is_ecn_capable || self.goes_by_counts {
            let (packets, rtt) = (sent.packets, self.rtt().unwrap_or_default());
            if let Some(wait) = self.counting.handle_left(now, packets, rtt, self.goes_by_counts) {
                self.prober.iter_mut().for_each(|prober| prober.ask_within(now, wait));
                self.is_due_earlier = true;
            }
        }
        self.in_flight.handle_sent(now, sent.packets, sent.bytes);
        let cx = self.cx(now);
        self.with_controller(|it| it.on_sent(&cx, sent));
        self.obey(now);
    }

    /// Modules of its flows have seen something of it.
    pub fn handle_seen(&mut self, now: Time, seen: &PathSeen) {
        let rtt = seen.rtt.or(self.rtt()).unwrap_or_default();
        if self.is_heard_of(false) {
            // Counts say the same of all packets.
            return self.estimates.handle_seen(now, seen, seen.delivered_bytes, rtt);
        }
        let came = self.in_flight.take(now, seen.delivered_packets);
        let lost = self.in_flight.take(now, seen.lost_packets);
        if let Some(sent_at) = seen.sent_at {
            let before = sent_at.as_nanos().saturating_sub(rtt.as_nanos() as u64);
            self.in_flight.forget_before(Time::from_nanos(before));
        }
        self.estimates.handle_seen(now, seen, came, rtt);
        let cx = self.cx(now);
        self.with_controller(|it| {
            if seen.delivered_packets > 0 {
                let (packets, sent_at, rtt) = (seen.delivered_packets, seen.sent_at, seen.rtt);
                it.on_delivered(&cx, &Delivered { packets, bytes: came, sent_at, rtt });
            }
            if seen.lost_packets > 0 {
                let (packets, sent_at) = (seen.lost_packets, seen.lost_sent_at);
                it.on_lost(&cx, &Lost { packets, bytes: lost, sent_at, is_silence: false });
            }
            if seen.spurious_packets > 0 {
                it.on_spurious(&cx, seen.spurious_packets);
            }
            if seen.marked_packets > 0 {
                it.on_marked(&cx, &Marked { packets: seen.marked_packets, left_after: None });
            }
        });
        self.obey(now);
    }

    /// Modules have seen something of what comes by it: of what leaves they know nothing.
    pub fn handle_came(&mut self, seen: &PathSeen) {
        self.estimates.came.add(seen);
    }

    /// The transport below says what it has measured so far.
    pub fn handle_below(&mut self, seen: &BelowSeen) {
        self.estimates.handle_below(seen);
    }

    fn cx(&self, now: Time) -> ControllerCx {
        let is_limited = self.is_awaited || self.is_unreported_awaited && self.is_heard_of(false);
        let in_flight_bytes = self.in_flight.bytes();
        ControllerCx { now, in_flight_bytes, rtt: self.rtt(), is_limited }
    }

    /// Takes over what the controller says now.
    fn obey(&mut self, now: Time) {
        let said = self.with_controller(|it| (it.window(), it.rate_bps(), it.due()));
        let (window, rate_bps, call_at) = said.unwrap_or((u64::MAX, None, None));
        self.is_due_earlier |= call_at.is_some() && call_at != self.call_at;
        (self.window, self.call_at) = (window, call_at);
        self.pacer.set_rate(now, rate_bps);
        self.is_free = self.window == u64::MAX && rate_bps.is_none();
        self.is_open = self.is_free && !self.breaker.is_holding();
    }

    /// Since when nothing was heard of what is in flight, and how long that may be.
    fn silent_at(&self) -> Option<Time> {
        if self.window == u64::MAX || self.in_flight.packets() == 0 {
            return None;
        }
        let wait = SILENT_AFTER_MIN.max(self.rtt().unwrap_or_default() * 3);
        Some(self.in_flight.active() + wait)
    }

    /// When [`Path::handle_timeout`] has something to do, or there is room for what waits.
    #[must_use]
    pub fn due(&self, now: Time) -> Option<Time> {
        let controller = earlier(self.silent_at(), self.call_at);
        let is_paced = self.is_awaited || self.is_unreported_awaited && self.holds_unreported;
        let paced = is_paced.then(|| self.pacer.ready_at(now)).flatten();
        let is_held = self.is_unreported_awaited || self.is_awaited && self.is_free;
        let held = is_held.then(|| self.breaker.ready_at(now)).flatten();
        [paced, held].into_iter().fold(controller, earlier)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.silent_at().is_some_and(|at| at <= now) {
            let (packets, bytes) = self.in_flight.take_all();
            self.estimates.handle_idle();
            let lost = Lost { packets, bytes, sent_at: None, is_silence: true };
            let cx = self.cx(now);
            self.with_controller(|it| it.on_lost(&cx, &lost));
            self.obey(now);
        }
        if self.call_at.is_some_and(|at| at <= now) {
            let cx = self.cx(now);
            self.with_controller(|it| it.on_timeout(&cx));
            self.obey(now);
        }
    }

    /// This end did not run for so long: that is no silence of the other.
    pub fn shift(&mut self, now: Time) {
        self.in_flight.stay_active(now);
    }

    /// It goes another way from now on: what was measured is a prior for what is not measured yet.
    pub fn move_to_another(&mut self, now: Time) {
        let prior = Prior { rtt: self.rtt(), rate_bps_max: self.estimates.delivery_rate_bps };
        self.in_flight.take_all();
        self.estimates.handle_idle();
        self.breaker.begin_anew();
        self.begin(now, &prior);
        self.handle_path_change(now);
    }

    /// It is probed from now on. `one_clock` says that both ends read the same clock.
    pub fn probe(&mut self, now: Time, one_clock: bool) {
        self.prober = Some(Prober::new(now, one_clock));
    }

    /// Whether the peer lives: `is_heard` when something else than an answer has come of it.
    pub fn watch(&mut self, now: Time, is_heard: bool) -> Option<Life> {
        let prober = self.prober.as_mut()?;
        prober.note_stop(now);
        if is_heard {
            prober.handle_life(now);
        }
        Some(prober.life(now))
    }

    /// The next question that is due.
    pub fn poll_question(&mut self, now: Time) -> Option<Question> {
        let question = self.prober.as_mut()?.poll_question(now)?;
        self.counting.note_asked(now, question.number);
        Some(Question { ecn: self.marking.proven(), ..question })
    }

    /// How many packets have left so far: what a question says.
    #[must_use]
    pub fn sent_packets(&self) -> u64 {
        self.counting.sent()
    }

    /// A question out of turn, no longer than `len`; it is probed from now on, if it was not.
    pub fn ask_at_most(&mut self, now: Time, one_clock: bool, len: usize) -> Question {
        let prober = self.prober.get_or_insert_with(|| Prober::new(now, one_clock));
        let question = prober.ask_at_most(now, len);
        self.counting.note_asked(now, question.number);
        question
    }

    /// The next question is asked early, with others.
    pub fn ask_early(&mut self, now: Time) {
        if let Some(prober) = &mut self.prober {
            prober.ask_early(now);
        }
    }

    /// An answer has come; `None` for one to nothing.
    pub fn handle_answer(&mut self, now: Time, answer: &Answer) -> Option<Heard> {
        let Answer { number, received, answered, came } = *answer;
        let Some(prober) = &mut self.prober else { return Some(Heard::default()) };
        let is_back = prober.is_silent(now);
        let before = (*prober.offset(), prober.datagram_len(now));
        if !prober.handle_answer(now, number, received, answered) {
            return None;
        }
        let after = (*prober.offset(), prober.datagram_len(now));
        let clock = (before.0 != after.0).then_some(after.0);
        let there = Duration::from_nanos(answered.saturating_sub(received));
        let held = came.and_then(|_| self.handle_count(now, answer, there));
        Some(Heard { is_back, has_len: before.1 != after.1, clock, held })
    }

    /// What had come before a question, whose answer was held for so long.
    fn handle_count(&mut self, now: Time, answer: &Answer, there: Duration) -> Option<Held> {
        let (before, was_answered) = (self.counting.last(), self.counting.is_answered());
        let counted = self.counting.handle_answer(answer.number, answer.came?)?;
        let rtt = now.since(counted.at).saturating_sub(there);
        let one_way_ns = answer.received.wrapping_sub(counted.at.as_nanos()).cast_signed();
        let counts = counted.since(&before, rtt, one_way_ns);
        let sent = counted.sent - before.sent;
        self.estimates.handle_counted(sent, counts.packets);
        if sent > 0 && counted.capable - before.capable == sent {
            self.marking.handle_counted(sent, counts.packets, counts.marked);
        }
        self.estimates.handle_marked(counts.marked);
        let is_gone_by = self.goes_by_counts && was_answered;
        if is_gone_by {
            self.in_flight.forget_before(counted.at);
            self.in_flight.stay_active(now);
        }
        let (cx, left_after) = (self.cx(now), Some(before.at));
        self.with_controller(|it| match is_gone_by {
            true => it.on_counted(&cx, &counts),
            // What is in flight is heard of no more by that.
            false if counts.marked > 0 => {
                it.on_marked(&cx, &Marked { packets: counts.marked, left_after });
            }
            false => {}
        });
        self.obey(now);
        let held = self.breaker.handle_counted(now, counted, rtt)?;
        self.obey(now);
        self.is_due_earlier = true;
        Some(held)
    }

    /// Datagrams are too long, somebody says, and perhaps how long they may be; it is tried out.
    pub fn handle_too_large(&mut self, now: Time, len: Option<usize>) {
        if let Some(prober) = &mut self.prober {
            prober.handle_too_large(now, len);
        }
    }

    /// Another way than before may be taken.
    pub fn handle_path_change(&mut self, now: Time) {
        if let Some(prober) = &mut self.prober {
            prober.handle_path_change(now);
        }
    }
}
