//! [`Entry`]: what one member of a reliable group has said, and for how long it has held up the
//! others.
//!
//! ```text
//!   clock       runs while                                    is set anew when
//!   silence     a handshake waits for this member             it has answered
//!   in_flight   bytes were sent that it has not acknowledged  all that was sent then has arrived
//!   window      its window is closed, and bytes wait          it has opened by a step
//! ```
//!
//! Invariant: no clock of a member runs while a handshake waits for another one.

use super::Candidate;
use crate::group::{Member, MemberId};
use crate::serial::is_newer;
use crate::wire::{Control, Limits};
use dacapo_base::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// What one member has said.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: MemberId,
    pub address: SocketAddr,
    /// The member's own key.
    pub key: u64,
    pub start: u64,
    pub control: Control,
    /// The latest request for delivery that it has answered.
    pub delivered: u32,
    /// The `sync` of its latest request.
    pub asked: u32,
    pub limits: Limits,
    pub heard: Time,
    /// A handshake waits for its answer.
    silence: Clock,
    /// `rseq` is to reach what was sent when the clock was set.
    in_flight: Clock,
    /// `alloc` is to open by a step from what was sent then.
    window: Clock,
}

/// How long a member has held up the others, of the time that is its own fault.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    target: u64,
    held: Duration,
    since: Option<Time>,
}

/// What the stream waits for.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The next byte that is sent.
    pub next: u64,
    /// Whether a window is in the way.
    pub is_blocked: bool,
    /// By how much a window is to open in time.
    pub step: u64,
    /// The request of a handshake, during which nothing is sent.
    pub asked: Option<u32>,
}

impl Entry {
    /// Who was a candidate is a member from `start` on, whose numbers it has said before anything.
    pub fn new(
        now: Time,
        id: MemberId,
        candidate: &Candidate,
        start: &Control,
        limits: Limits,
    ) -> Self {
        Self {
            id,
            address: candidate.address,
            key: candidate.key,
            start: start.rseq,
            control: *start,
            delivered: start.echo,
            asked: candidate.asked,
            limits,
            heard: now,
            silence: Clock::default(),
            in_flight: Clock::default(),
            window: Clock::default(),
        }
    }

    /// The member has said this; `next` is the next byte that is sent, `sync` the latest request.
    pub fn handle_status(&mut self, now: Time, said: &Control, (next, sync): (u64, u32)) {
        self.heard = self.heard.max(now);
        // Who joined within a message begins where it ends, which may be ahead.
        if said.rseq > next.max(self.start) {
            return;
        }
        self.control.rseq = self.control.rseq.max(said.rseq);
        if said.alloc >= said.rseq {
            self.control.alloc = self.control.alloc.max(said.alloc);
        }
        // Of what was never asked nothing is an echo.
        if is_newer(said.echo, self.control.echo) && !is_newer(said.echo, sync) {
            self.control.echo = said.echo;
        }
    }

    pub fn member(&self) -> Member {
        let Control { rseq, alloc, .. } = self.control;
        Member { id: self.id, address: self.address, start: self.start, rseq, alloc }
    }

    /// When it has held up the others for too long.
    pub fn overdue_at(&self, patience: Duration) -> Time {
        let clocks = [self.silence, self.in_flight, self.window];
        clocks.iter().map(|clock| clock.ends_at(patience)).min().unwrap_or(Time::NEVER)
    }

    /// A handshake is to be answered, what was sent to be acknowledged, and a window that holds up
    /// the others to open. Nothing is held against who has answered while a handshake waits for
    /// somebody else.
    pub fn watch(&mut self, now: Time, waiting: &Waiting) {
        let Waiting { next, is_blocked, step, asked } = *waiting;
        let Control { rseq, alloc, echo } = self.control;
        let is_excused = asked.is_some_and(|sync| sync == echo);
        let is_silent = asked.is_some() && !is_excused;
        self.silence.watch(now, u64::from(!is_silent), 1, is_silent);
        self.in_flight.watch(now, rseq, next, rseq < next && !is_excused);
        let opened = next.saturating_add(step);
        self.window.watch(now, alloc, opened, is_blocked && alloc <= next && !is_excused);
    }
}

impl Clock {
    /// When it has run for so long.
    fn ends_at(&self, patience: Duration) -> Time {
        let left = patience.saturating_sub(self.held);
        self.since.map_or(Time::NEVER, |since| since + left)
    }

    /// Is set anew when its target is reached, and runs from now on or stands still.
    fn watch(&mut self, now: Time, reached: u64, target: u64, is_running: bool) {
        if let Some(since) = self.since.take() {
            self.held += now.since(since);
        }
        if reached >= self.target {
            (self.target, self.held) = (target, Duration::ZERO);
        }
        self.since = is_running.then_some(now);
    }
}
