//! [`Requests`]: which requests for status are not answered yet, and the synchronising handshake.
//!
//! ```text
//!   SREQ 5 --->                          WTIMER is over, nothing has come:
//!   SREQ 6 --->                          data stops; SREQ 7, then 8, 9 … each after twice
//!          <--- echo 6: answers 5 too    the time; only the echo of the latest ends it
//! ```
//!
//! Every request has a number of its own, so an answer tells which one it is for, and a round trip
//! is measured without doubt even in a handshake. Smoothed as in RFC 6298, section 2.

use crate::config::Timers;
use crate::serial::{is_at_least, is_newer};
use dacapo_base::Time;
use dacapo_path::RttEstimate;
use std::collections::VecDeque;
use std::time::Duration;

/// The most requests that are remembered one by one; of more the second oldest is forgotten.
const REQUESTS_MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Request {
    sync: u32,
    at: Time,
    /// One past the last byte that was sent before it.
    up_to: u64,
    /// DREQ: the answer comes when the peer's user has read.
    is_delivery: bool,
}

#[derive(Clone, Copy, Debug)]
struct Handshake {
    began: Time,
    asked: Time,
    timeout: Duration,
    retries: u32,
    /// Whether the request of this turn is still to be sent.
    is_due: bool,
}

/// What an echo says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// One past the last byte that was sent before the request; `None` when it answers none.
    pub up_to: Option<u64>,
    /// Whether no handshake runs (any more).
    pub is_free: bool,
    /// Whether a request for delivery is answered.
    pub is_delivered: bool,
    /// Whether delivery is to be asked for again: the peer lives, and its user has not read, or
    /// the request was lost.
    pub is_delivery_asked_anew: bool,
}

/// What the time says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing.
    None,
    /// A request is to be sent.
    Ask,
    /// The peer does not answer.
    GiveUp,
}

/// Requests for status that are under way.
#[derive(Debug)]
pub struct Requests {
    timers: Timers,
    sync: u32,
    open: VecDeque<Request>,
    handshake: Option<Handshake>,
    rtt: RttEstimate,
    heard: Time,
    is_first_due: bool,
    is_delivery_due: bool,
    is_traffic_due: bool,
    /// The request with which a new traffic specification went out, while it is not answered.
    traffic: Option<u32>,
}

impl Requests {
    /// Nothing under way; the first request has the number after `sync`.
    #[must_use]
    pub fn new(now: Time, timers: Timers, sync: u32) -> Self {
        let (open, rtt) = (VecDeque::new(), RttEstimate::default());
        Self {
            timers,
            sync,
            open,
            handshake: None,
            rtt,
            heard: now,
            is_first_due: false,
            is_delivery_due: false,
            is_traffic_due: false,
            traffic: None,
        }
    }

    /// From now on a handshake lasts at most so long.
    pub fn set_give_up(&mut self, give_up: Duration) {
        self.timers.give_up = give_up;
    }

    /// FIRST is to be sent.
    pub fn want_first(&mut self) {
        self.is_first_due = true;
    }

    /// Takes whether FIRST is to be sent: for the first time, or as the request of a handshake.
    pub fn take_first(&mut self) -> bool {
        std::mem::take(&mut self.is_first_due) || self.is_due()
    }

    /// The peer is to be told new limits (TCNTL), where that `is_one`.
    pub fn want_traffic(&mut self, is_one: bool) {
        self.is_traffic_due |= is_one;
    }

    /// New limits are not told: there is nobody whom they concern.
    pub fn skip_traffic(&mut self) {
        self.is_traffic_due = false;
    }

    /// Whether a request goes out by itself: of a handshake, or with new limits.
    #[must_use]
    pub fn is_control_due(&self) -> bool {
        self.is_due() || self.is_traffic_due
    }

    /// Takes whether delivery is to be asked for anew.
    pub fn take_delivery(&mut self) -> bool {
        std::mem::take(&mut self.is_delivery_due)
    }

    /// A request is sent by itself; true where it goes with new limits, until they are answered.
    pub fn ask_control(&mut self, now: Time, up_to: u64, is_delivery: bool) -> bool {
        let is_new = std::mem::take(&mut self.is_traffic_due);
        let sync = self.ask(now, up_to, is_delivery);
        let is_traffic = is_new || self.traffic.is_some();
        self.traffic = is_traffic.then_some(sync);
        is_traffic
    }

    /// The number of the latest request.
    #[must_use]
    pub const fn sync(&self) -> u32 {
        self.sync
    }

    /// Whether data has to wait.
    #[must_use]
    pub const fn is_in_handshake(&self) -> bool {
        self.handshake.is_some()
    }

    /// Whether a request has not been answered.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the handshake's request is to be sent.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.handshake.is_some_and(|handshake| handshake.is_due)
    }

    /// How many turns the handshake has taken; 0 without one.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.handshake.map_or(0, |handshake| handshake.retries)
    }

    /// The smoothed round trip, once something was answered.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// WTIMER: how long an answer is waited for: the mean round trip and 4 deviations, which count
    /// as `wait_min` at least. Over a calm way nothing deviates, and a wait of the mean alone would
    /// begin a handshake for each answer that is lost, which the next one makes good.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        let Timers { first_wait, wait_min, wait_max, .. } = self.timers;
        let measured =
            self.rtt.smoothed().map(|mean| mean + (self.rtt.deviation() * 4).max(wait_min));
        measured.map_or(first_wait, |wait| wait.min(wait_max))
    }

    /// A user who reads may take its time; so delivery is asked for again less often.
    fn wait(&self, request: &Request) -> Duration {
        let timeout = self.timeout();
        if request.is_delivery { timeout.max(self.timers.first_wait) } else { timeout }
    }

    /// A request is sent; returns its number.
    pub fn ask(&mut self, now: Time, up_to: u64, is_delivery: bool) -> u32 {
        self.sync = self.sync.wrapping_add(1);
        if let Some(handshake) = &mut self.handshake {
            handshake.is_due = false;
            handshake.asked = now;
        }
        if self.open.len() >= REQUESTS_MAX {
            self.open.remove(1);
        }
        self.open.push_back(Request { sync: self.sync, at: now, up_to, is_delivery });
        self.sync
    }

    /// The request of a handshake goes to several who are asked one by one: in all its turns it has
    /// one number (decided here), so that who has answered it once is not asked again.
    pub fn ask_each(&mut self, now: Time, up_to: u64) -> u32 {
        match &mut self.handshake {
            Some(handshake) if handshake.retries > 1 => {
                handshake.is_due = false;
                handshake.asked = now;
                self.sync
            }
            _ => self.ask(now, up_to, false),
        }
    }

    /// One past the last byte that was sent before this request; `None` when it is not waited for.
    #[must_use]
    pub fn up_to(&self, sync: u32) -> Option<u64> {
        self.open.iter().find(|request| request.sync == sync).map(|request| request.up_to)
    }

    /// Whether this is a request for delivery that is waited for.
    #[must_use]
    pub fn is_delivery(&self, sync: u32) -> bool {
        self.open.iter().any(|request| request.sync == sync && request.is_delivery)
    }

    /// Something came from the peer.
    pub fn handle_sign_of_life(&mut self, now: Time) {
        self.heard = self.heard.max(now);
    }

    /// Status came: like [`Requests::handle_echo`], and what was not answered is asked anew.
    pub fn handle_status(&mut self, now: Time, echo: u32) -> Answer {
        let answer = self.handle_echo(now, echo);
        self.is_delivery_due |= answer.is_delivery_asked_anew;
        self.traffic = self.traffic.filter(|sync| is_newer(*sync, echo));
        answer
    }

    /// An echo came.
    pub fn handle_echo(&mut self, now: Time, echo: u32) -> Answer {
        let found = self.open.iter().find(|request| request.sync == echo).copied();
        if let Some(request) = found {
            if !request.is_delivery {
                self.rtt.handle_sample(now.since(request.at));
            }
            // Delivery has been told only when it is its own request that is answered.
            let is_open = |request: &Request| {
                !is_at_least(echo, request.sync) || request.is_delivery && request.sync != echo
            };
            self.open.retain(is_open);
        }
        let ends = echo == self.sync && self.handshake.take().is_some();
        let waits_for_delivery = ends && self.open.iter().any(|request| request.is_delivery);
        if ends {
            self.open.clear();
        }
        Answer {
            up_to: found.map(|request| request.up_to),
            is_free: self.handshake.is_none(),
            is_delivered: found.is_some_and(|request| request.is_delivery),
            is_delivery_asked_anew: waits_for_delivery,
        }
    }

    /// Nothing is waited for any more: what was asked is known otherwise.
    pub fn clear(&mut self) {
        self.open.clear();
        self.handshake = None;
        self.is_first_due = false;
    }

    /// A handshake begins, unless one runs.
    pub fn begin_handshake(&mut self, now: Time) {
        let timeout = self.timeout();
        self.handshake.get_or_insert(Handshake {
            began: now,
            asked: now,
            timeout,
            retries: 1,
            is_due: true,
        });
    }

    /// When [`Requests::handle_time`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Time {
        let Timers { silence, give_up, .. } = self.timers;
        if let Some(handshake) = self.handshake {
            let next = if handshake.is_due { Time::NEVER } else { handshake.asked };
            return (next + handshake.timeout).min(handshake.began + give_up);
        }
        let waits = self.open.front().map_or(Time::NEVER, |oldest| oldest.at + self.wait(oldest));
        waits.min(self.heard + silence)
    }

    /// When it is over where nothing is asked: whoever only hears ends after a silence, whoever is
    /// never answered waits for nothing.
    #[must_use]
    pub fn quiet_until(&self, is_initiator: bool) -> Time {
        if is_initiator { Time::NEVER } else { self.heard + self.timers.silence }
    }

    /// What the time says.
    pub fn handle_time(&mut self, now: Time) -> Expiry {
        if now < self.deadline() {
            return Expiry::None;
        }
        let Timers { give_up, retries_max, wait_max, .. } = self.timers;
        let Some(handshake) = &mut self.handshake else {
            self.begin_handshake(now);
            return Expiry::Ask;
        };
        if now >= handshake.began + give_up || handshake.retries >= retries_max {
            return Expiry::GiveUp;
        }
        handshake.retries = handshake.retries.saturating_add(1);
        handshake.timeout = (handshake.timeout * 2).min(wait_max);
        handshake.is_due = true;
        Expiry::Ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_000);

    fn requests() -> Requests {
        Requests::new(NOW, Timers::default(), 10)
    }

    /// FIRST: at once, and again with each turn of the handshake.
    #[test]
    fn first_is_due_once_and_with_each_turn_of_a_handshake() {
        let mut requests = requests();
        assert!(!requests.take_first());
        requests.want_first();
        assert!(requests.take_first() && !requests.take_first());
        requests.begin_handshake(NOW);
        assert!(requests.take_first());
        requests.ask(NOW, 0, false);
        assert!(!requests.take_first());
        requests.want_first();
        requests.clear();
        assert!(!requests.take_first(), "what was asked is known otherwise");
    }

    /// TCNTL: new limits go with every request until one of them is answered.
    #[test]
    fn new_limits_are_told_until_they_are_answered() {
        let mut requests = requests();
        requests.want_traffic(false);
        assert!(!requests.is_control_due() && !requests.ask_control(NOW, 0, false));
        requests.want_traffic(true);
        assert!(requests.is_control_due() && requests.ask_control(NOW, 0, false));
        assert!(!requests.is_control_due() && requests.ask_control(NOW, 0, false));
        requests.handle_status(NOW, 12);
        assert!(requests.ask_control(NOW, 0, false), "12 was the first of the two, 13 the last");
        requests.handle_status(NOW, 14);
        assert!(!requests.ask_control(NOW, 0, false));
        requests.want_traffic(true);
        requests.skip_traffic();
        assert!(!requests.is_control_due());
    }

    /// DREQ: asked anew when a handshake is answered and the user has not read.
    #[test]
    fn delivery_is_asked_anew_after_a_handshake_that_is_answered() {
        let mut requests = requests();
        let delivery = requests.ask(NOW, 100, true);
        requests.begin_handshake(NOW);
        let sync = requests.ask(NOW, 100, false);
        assert!(!requests.handle_status(NOW, sync).is_delivered);
        assert!(requests.take_delivery() && !requests.take_delivery());
        assert!(!requests.handle_status(NOW, delivery).is_delivered, "it was closed by that");
        let again = requests.ask(NOW, 100, true);
        assert!(requests.handle_status(NOW, again).is_delivered && !requests.take_delivery());
    }
}
