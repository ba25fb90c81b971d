//! [`Sampler`]: how fast a path delivers, by what had come when a packet left and when it comes
//! (draft-ietf-ccwg-bbr, section 4.1.2).
//!
//! ```text
//!   sent       |-- send elapsed --| P          P carries what had come by then
//!   delivered                         |-- delivered elapsed --| P comes
//!   rate = what came between / the longer of both
//! ```
//!
//! Invariants: at most [`RECORDS_MAX`] records; what an application did not have to send makes no
//! rate smaller.

use crate::controller::{Delivered, Sent};
use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// What leaves within this time is one record.
const RECORD_TIME: Duration = Duration::from_micros(250);

/// The most records; beyond, the newest stands for what leaves.
const RECORDS_MAX: usize = 8_192;

/// What was known when something left.
#[derive(Clone, Copy, Debug)]
struct Record {
    sent: Time,
    /// What had come, when the last of it did, and when the first left that was under way then.
    delivered: u64,
    delivered_at: Time,
    began: Time,
    is_app_limited: bool,
}

/// What a delivery says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// How fast it was, in bytes per second, where enough time passed to say so.
    pub rate: Option<u64>,
    /// What had come when it left: beyond the end of the last round a new one begins.
    pub delivered_before: u64,
    /// It left while the application had no more.
    pub is_app_limited: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sampler {
    records: VecDeque<Record>,
    pub delivered: u64,
    delivered_at: Time,
    began: Time,
    /// Until so much has come the rate is the application's.
    app_limited_until: Option<u64>,
}

impl Sampler {
    pub fn new(now: Time) -> Self {
        Self {
            records: VecDeque::new(),
            delivered: 0,
            delivered_at: now,
            began: now,
            app_limited_until: None,
        }
    }

    /// Something leaves, with so much in flight before.
    pub fn handle_sent(&mut self, now: Time, in_flight_before: u64, _: &Sent) {
        if in_flight_before == 0 {
            (self.began, self.delivered_at) = (now, now);
        }
        let is_full = self.records.len() >= RECORDS_MAX;
        let last = self.records.back();
        if last.is_some_and(|last| is_full || now.since(last.sent) < RECORD_TIME) {
            return;
        }
        self.records.push_back(Record {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            began: self.began,
            is_app_limited: self.app_limited_until.is_some(),
        });
    }

    /// The application has no more to send, with so much in flight.
    pub fn limit_by_application(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight).max(1));
    }

    /// Something has come; over less than `shortest` nothing is told of a rate.
    pub fn handle_delivered(
        &mut self,
        now: Time,
        delivered: &Delivered,
        shortest: Duration,
    ) -> Option<Sample> {
        self.delivered = self.delivered.saturating_add(delivered.bytes);
        self.delivered_at = now;
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let record = self.take(delivered.sent_at?)?;
        self.began = record.sent;
        let send_elapsed = record.sent.since(record.began);
        let elapsed = now.since(record.delivered_at).max(send_elapsed);
        let bytes = u128::from(self.delivered.saturating_sub(record.delivered));
        let rate = bytes * 1_000_000_000 / elapsed.as_nanos().max(1);
        let is_long = elapsed >= shortest && !elapsed.is_zero();
        Some(Sample {
            rate: is_long.then(|| u64::try_from(rate).unwrap_or(u64::MAX)),
            delivered_before: record.delivered,
            is_app_limited: record.is_app_limited,
        })
    }

    /// The record of what left then; older ones go.
    fn take(&mut self, sent: Time) -> Option<Record> {
        let behind = self.records.partition_point(|record| record.sent <= sent);
        let at = behind.checked_sub(1)?;
        // It stays, for others may have left with it.
        self.records.drain(..at);
        self.records.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn sent(packets: u64) -> Sent {
        Sent {
            datagram_len: 1_000,
            packets,
            bytes: packets * 1_000,
            is_acknowledged: true,
            ..Sent::default()
        }
    }

    fn came(packets: u64, sent_at: u64) -> Delivered {
        Delivered { packets, bytes: packets * 1_000, sent_at: Some(ms(sent_at)), rtt: None }
    }

    /// A packet a millisecond; each comes 20 ms later.
    fn steady(it: &mut Sampler, from: u64, count: u64) -> Vec<Option<u64>> {
        let mut rates = Vec::new();
        for at in from..from + count {
            if at >= 20 + from.min(1) * 20 {
                let sample = it.handle_delivered(ms(at), &came(1, at - 20), Duration::ZERO);
                rates.push(sample.and_then(|sample| sample.rate));
            }
            it.handle_sent(ms(at), at.min(20) * 1_000, &sent(1));
        }
        rates
    }

    #[test]
    fn what_leaves_steadily_comes_as_fast() {
        let mut it = Sampler::new(ms(0));
        let rates = steady(&mut it, 0, 200);
        let late = &rates[60..];
        assert!(late.iter().all(|rate| rate.unwrap().abs_diff(1_000_000) < 60_000), "{late:?}");
    }

    #[test]
    fn acknowledgements_that_come_together_are_no_faster_path() {
        let mut it = Sampler::new(ms(0));
        let mut most = 0;
        for at in 0..400 {
            it.handle_sent(ms(at), 1_000, &sent(1));
            if at > 40 && at % 10 == 0 {
                let sample = it.handle_delivered(ms(at), &came(10, at - 20), Duration::ZERO);
                most = most.max(sample.unwrap().rate.unwrap());
            }
        }
        assert!(most < 1_600_000, "{most}: ten in no time");
    }

    #[test]
    fn what_the_application_did_not_send_is_marked() {
        let mut it = Sampler::new(ms(0));
        it.limit_by_application(0);
        it.handle_sent(ms(1), 0, &sent(2));
        let sample = it.handle_delivered(ms(21), &came(2, 1), Duration::ZERO).unwrap();
        assert!(sample.is_app_limited);
        it.handle_sent(ms(22), 0, &sent(1));
        let sample = it.handle_delivered(ms(42), &came(1, 22), Duration::ZERO).unwrap();
        assert!(!sample.is_app_limited, "all of it has come");
    }

    #[test]
    fn records_are_bounded_and_nothing_is_told_of_what_never_left() {
        let mut it = Sampler::new(ms(0));
        (0..20_000).for_each(|at| it.handle_sent(ms(at + 5), 9, &sent(1)));
        assert_eq!(it.records.len(), RECORDS_MAX);
        assert_eq!(it.handle_delivered(ms(30_000), &came(1, 0), Duration::ZERO), None);
        let none = Delivered { sent_at: None, ..came(1, 0) };
        assert_eq!(it.handle_delivered(ms(30_000), &none, Duration::ZERO), None);
    }
}
