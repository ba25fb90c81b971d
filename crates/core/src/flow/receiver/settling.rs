//! [`Settling`]: how long what is missing is waited for, of an old epoch and at the end of a flow.
//!
//! ```text
//!   sender     n1 n2 n3 n4 END BEGIN e1 e2        one queue, in the order in which they were fed
//!   receiver   n1 n2    n4 END BEGIN e1 e2     n3
//!                          |<---- wait ---->|  late: counted from END, or anything of e
//!   control    SWITCHED, at any time              says where e begins, not what has left
//! ```
//!
//! Who sees END, or a packet of a later epoch, knows that all of the old one has left the sender:
//! they leave one queue in order. Then what is missing is lost, or late by as much as delays
//! differ. To know where the new epoch begins is no such sign: SWITCHED goes by the control
//! connection, and overtakes what waits for the pace, for as long as that takes.
//!
//! How much delays will differ cannot be known from a calm that was; that they seldom differ by
//! more than a round trip can. Where nobody waits for the old epoch there is no reason to be
//! sparing. Over a reliable transport what is missing comes, while the way is there.
//!
//! Invariants: a unit that comes begins the wait anew, and there are no more of those than missing
//! ones; so every old epoch is over some time, unless contact is lost and the rest waits for that.
//! With as many units held as may be nothing is waited for.

use crate::error::Error;
use crate::flow::tail::Tail;
use crate::flow::{Lost, PathTimes};
use dacapo_base::Time;
use std::time::Duration;

/// The least time that a new epoch waits for the old one.
const HOLD_MIN: Duration = Duration::from_millis(5);

/// The least time that the end of a flow is waited for, or of an epoch for which nobody waits.
const END_WAIT_MIN: Duration = Duration::from_millis(200);

/// Without a sign that all of it has left, an epoch is given up when nothing has come for so long;
/// the sender gives it up on its own after 15 s.
const UNSIGNED_MAX: Duration = Duration::from_secs(5);

/// Over a reliable transport the rest is waited for until nothing has come for so long.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The same once the session closes: well below what CLOSE waits.
const CLOSE_MAX: Duration = Duration::from_secs(8);

/// How long END is waited for when the way is gone; a sender whose stream does not open says it
/// after 10 s.
const LOST_END_MAX: Duration = Duration::from_secs(15);

/// How long the end of a flow waits for its last packets; `modules` is what those wait themselves.
fn end_wait(path: PathTimes, modules: Duration) -> Duration {
    (path.rtt * 2).max(END_WAIT_MIN).max(modules)
}

/// Where an old epoch ends and the next begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary {
    /// The number of the first unit of the next.
    pub base: u64,
    /// Since when that is known.
    pub base_at: Time,
    pub tail: Tail,
    /// The graph of the next gives units in order: those that have come are held, and every moment
    /// delays them. Else nobody waits.
    pub is_next_ordered: bool,
    /// As many are held as may be.
    pub is_full: bool,
    /// What the modules of the old one wait themselves, and those of the next.
    pub waits: (Duration, Duration),
}

#[derive(Debug)]
pub(crate) struct Settling {
    /// What is sent arrives, while the way is there.
    is_reliable: bool,
    /// END has come, and the rest is waited for until then.
    end_at: Option<Time>,
    /// For so long the rest is waited for where nobody sees to it that it comes.
    end_wait: Duration,
    /// The session closes; what is missing is waited for until then at most.
    close_by: Option<Time>,
    /// The way is gone, and why; END is waited for until then.
    way_lost: Option<(Error, Time)>,
    /// A graph lets nothing pass any more, and why.
    graph_lost: Option<Error>,
}

impl Settling {
    pub fn new(is_reliable: bool) -> Self {
        Self {
            is_reliable,
            end_at: None,
            end_wait: END_WAIT_MIN,
            close_by: None,
            way_lost: None,
            graph_lost: None,
        }
    }

    /// Over a reliable transport what is missing is on its way, however late.
    #[inline]
    pub fn may_come(&self) -> bool {
        self.is_reliable && self.way_lost.is_none() && self.graph_lost.is_none()
    }

    /// Why the way is gone, when it is.
    #[inline]
    pub fn way_lost(&self) -> Option<&Error> {
        self.way_lost.as_ref().map(|(error, _)| error)
    }

    /// Why nothing comes up any more, when a graph or the way is gone.
    #[inline]
    pub fn reason(&self) -> Option<&Error> {
        self.graph_lost.as_ref().or(self.way_lost())
    }

    /// Whether a graph lets nothing pass any more.
    #[inline]
    pub fn is_graph_lost(&self) -> bool {
        self.graph_lost.is_some()
    }

    /// Something has come.
    #[inline]
    pub fn handle_packet(&mut self, now: Time) {
        if self.may_come() && self.end_at.is_some() {
            self.end_at = Some(now + SILENCE_MAX);
        }
    }

    /// The sender has said END; modules wait so long for what is missing themselves.
    pub fn handle_end(&mut self, now: Time, path: PathTimes, modules: Duration) {
        self.end_wait = end_wait(path, modules);
        let wait = if self.may_come() { SILENCE_MAX } else { self.end_wait };
        self.end_at = Some(now + wait);
    }

    /// The session closes: the rest is not waited for without end.
    pub fn close_soon(&mut self, now: Time) {
        self.close_by.get_or_insert(now + CLOSE_MAX);
    }

    /// The sink has room again, or contact is back: what is on its way has its time anew.
    pub fn go_on(&mut self, now: Time) {
        let wait = if self.is_reliable { SILENCE_MAX } else { self.end_wait };
        self.end_at = self.end_at.map(|at| at.max(now + wait));
    }

    /// The way from the sender is gone, or a graph; false when that is known. For what a graph has
    /// kept nobody waits long.
    pub fn lose(&mut self, now: Time, what: Lost, error: &Error) -> bool {
        if what == Lost::Way {
            let is_news = self.way_lost.is_none();
            self.way_lost.get_or_insert_with(|| (error.clone(), now + LOST_END_MAX));
            return is_news;
        }
        let is_news = self.graph_lost.is_none();
        self.graph_lost.get_or_insert_with(|| error.clone());
        self.end_at = self.end_at.map(|at| at.min(now + END_WAIT_MIN));
        is_news
    }

    /// This end did not run for so long: that does not count.
    pub fn shift(&mut self, by: Duration) {
        let way_lost = self.way_lost.as_mut().map(|(_, at)| at);
        let times = self.end_at.iter_mut().chain(way_lost).chain(&mut self.close_by);
        times.for_each(|at| *at += by);
    }

    /// When what is still missing of an old epoch is lost, if only time passes: a time that is past
    /// when nothing is waited for.
    pub fn over_at(&self, between: &Boundary, path: PathTimes) -> Option<Time> {
        if self.may_come() {
            return None;
        }
        // Those that are held have come, and what they wait for may not: better that is lost than
        // they are.
        if between.is_full || self.way_lost.is_some() {
            return Some(between.base_at);
        }
        let (left, came) = (between.tail.left(), between.tail.came());
        let Some(left) = left else {
            // What waits at the sender until contact is back has not left.
            return (!path.is_lost).then(|| between.base_at.max(came) + UNSIGNED_MAX);
        };
        let (old, next) = between.waits;
        let wait = if between.is_next_ordered {
            // Who bears that its own modules wait so long bears it here.
            path.rtt.max(HOLD_MIN).max(old).max(next)
        } else {
            end_wait(path, old)
        };
        Some(left.max(came) + wait.max(path.variation))
    }

    /// Whether what is missing of an old epoch is waited for no longer.
    pub fn is_over(&self, now: Time, between: &Boundary, path: PathTimes) -> bool {
        self.over_at(between, path).is_some_and(|at| at <= now)
    }

    /// When the flow is over whatever is missing, once the sender has said END; units wait for room
    /// in the sink, or do not.
    #[inline]
    pub fn end_by(
        &self,
        path: PathTimes,
        waits: bool,
        has_capacity: impl FnOnce() -> bool,
    ) -> Option<Time> {
        let end_at = self.end_at?;
        let close_by = self.close_by.filter(|_| self.is_reliable || waits);
        let is_held = self.is_reliable && path.is_lost;
        if is_held || ((self.is_reliable || waits) && !has_capacity()) {
            // It is this end that is waited for, or the way.
            return close_by;
        }
        Some(close_by.map_or(end_at, |at| at.min(end_at)))
    }

    /// When END is waited for no longer, once the way is gone.
    pub fn give_up_at(&self) -> Option<Time> {
        self.way_lost.as_ref().map(|(_, at)| *at).filter(|_| self.end_at.is_none())
    }
}
