//! [`LastReady`]: the socket that spoke last, for who turns again and again without waiting.
//!
//! ```text
//!   turn without waiting:  read the socket that spoke last     (one call of the system)
//!   every 40 to 50 us:     ask which sockets are ready      (a call for the look, one to read)
//! ```
//!
//! Who polls for an answer knows from where it will come. Asking first costs the way of each
//! datagram as much as reading it. Who has just sent something has no answer yet, so that is when
//! all are asked; who sends nothing asks later.
//!
//! Invariants: all others are asked at least every [`LOOK_EVERY`]; a socket that has brought
//! nothing for [`COLD_AFTER`] is one of them again.

use dacapo_base::Time;
use dacapo_sys::poll::Event;
use std::time::Duration;

/// All are asked so often; who sleeps is woken no more exactly.
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// They are asked so often by who has just sent something. Asking costs little then, but what it
/// reads and writes has to come back into the caches, so it is not done more often than that.
const LOOK_AGAIN: Duration = Duration::from_micros(40);

/// Who polls for something that takes longer to come gains nothing.
const COLD_AFTER: Duration = Duration::from_micros(100);

/// What spoke last, and when all were asked.
#[derive(Debug, Default)]
pub struct LastReady {
    event: Option<Event>,
    brought_at: Time,
    looked_at: Time,
    /// Something was sent since then.
    has_sent: bool,
}

impl LastReady {
    /// What may be ready and is to be read without asking; `None` when all are to be asked.
    pub fn guess(&self, now: Time) -> Option<Event> {
        let is_hot = now.since(self.brought_at) < COLD_AFTER;
        let is_fresh = now.since(self.looked_at) < LOOK_EVERY;
        self.event.filter(|_| is_hot && is_fresh && !self.has_time(now))
    }

    /// Whether nothing can have come yet, and all have not been asked for a while.
    pub fn has_time(&self, now: Time) -> bool {
        self.has_sent && now.since(self.looked_at) >= LOOK_AGAIN
    }

    /// All were asked.
    pub fn looked(&mut self, now: Time) {
        self.looked_at = now;
        self.has_sent = false;
    }

    /// Something was sent.
    pub fn sent(&mut self) {
        self.has_sent = true;
    }

    /// Something has come where this event was; `None` where no event tells.
    pub fn brought(&mut self, now: Time, event: Option<Event>) {
        let readable = |event| Event { readable: true, writable: false, closed: false, ..event };
        self.event = event.map(readable);
        self.brought_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: Event = Event { token: 7, readable: true, writable: true, closed: true };

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_secs(1) + Duration::from_micros(us)
    }

    #[test]
    fn the_socket_that_spoke_last_is_read_until_it_is_time_to_ask_all() {
        let mut last_ready = LastReady::default();
        assert_eq!(last_ready.guess(us(0)), None, "nobody has spoken");
        last_ready.looked(us(0));
        last_ready.brought(us(0), Some(EVENT));
        let guess = last_ready.guess(us(49)).unwrap();
        assert_eq!((guess.token, guess.readable, guess.writable), (7, true, false));
        assert_eq!(last_ready.guess(us(50)), None, "all are to be asked");
        last_ready.looked(us(50));
        assert!(last_ready.guess(us(99)).is_some());
    }

    #[test]
    fn who_has_sent_asks_all_while_no_answer_can_be_there() {
        let mut last_ready = LastReady::default();
        last_ready.looked(us(0));
        last_ready.brought(us(0), Some(EVENT));
        last_ready.sent();
        assert!(
            last_ready.guess(us(39)).is_some() && !last_ready.has_time(us(39)),
            "they were asked just now"
        );
        assert!(last_ready.guess(us(40)).is_none() && last_ready.has_time(us(40)));
        last_ready.looked(us(40));
        assert!(last_ready.guess(us(89)).is_some(), "nothing was sent since then");
    }

    #[test]
    fn who_is_silent_is_asked_like_all_others() {
        let mut last_ready = LastReady::default();
        last_ready.brought(us(0), Some(EVENT));
        last_ready.looked(us(99));
        assert!(last_ready.guess(us(99)).is_some());
        assert_eq!(last_ready.guess(us(100)), None);
        last_ready.brought(us(200), None);
        last_ready.looked(us(200));
        assert_eq!(last_ready.guess(us(201)), None, "no event tells of it");
    }
}
