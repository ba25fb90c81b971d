//! [`Replies`]: what the peer has asked for, and when it is answered.
//!
//! ```text
//!   SREQ 5, or EDGE changes   -> status is due, echo 5
//!   DREQ 6, up to a place     -> status is due once the user has read up to there, echo 6
//!   a packet to a whole group -> status is due within a slot
//!   a transaction is complete -> status waits for the response, which says the same
//! ```
//!
//! Invariants: `echo` never goes back; of requests for delivery at most [`DELIVERIES_MAX`] are
//! remembered, the latest; status that has begun to go out stays due until its last packet has; a
//! diagnostic is sent once in an association.

use crate::serial::is_newer;
use crate::wire::{Code, Header, Options, Reason};
use dacapo_base::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// The most requests for delivery that are remembered; of more the oldest is forgotten.
const DELIVERIES_MAX: usize = 16;

/// What is to be answered.
#[derive(Debug)]
pub struct Replies {
    /// When status goes out.
    status_at: Option<Time>,
    /// How many packets of it have gone out, where it takes several.
    packets: u8,
    /// Whether a TCNTL is to go out.
    is_traffic_due: bool,
    /// What was sent last with the request that is answered.
    echo: u32,
    edge: bool,
    /// The `sync` of the packet that showed it.
    edge_sync: Option<u32>,
    /// Places that are to be delivered, with the number of the request.
    deliveries: VecDeque<(u64, u32)>,
    remark: Option<(Code, Reason)>,
    has_remarked: bool,
    /// How long the answer to the packet that is taken waits.
    delay: Duration,
    /// How long that of a transaction waits for the response.
    response_wait: Duration,
}

impl Replies {
    /// Nothing is to be answered.
    pub fn new(response_wait: Duration) -> Self {
        Self {
            status_at: None,
            packets: 0,
            is_traffic_due: false,
            echo: 0,
            edge: false,
            edge_sync: None,
            deliveries: VecDeque::new(),
            remark: None,
            has_remarked: false,
            delay: Duration::ZERO,
            response_wait,
        }
    }

    /// When status goes out; else `NEVER`.
    pub fn status_at(&self) -> Time {
        self.status_at.unwrap_or(Time::NEVER)
    }

    /// Whether it does only later.
    pub fn is_early(&self, now: Time) -> bool {
        self.status_at.is_some_and(|at| at > now)
    }

    /// What the next status says it answers.
    pub const fn echo(&self) -> u32 {
        self.echo
    }

    pub const fn is_traffic_due(&self) -> bool {
        self.is_traffic_due
    }

    /// What is answered from now on waits so long.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// The stream begins with this packet: its EDGE is no change.
    pub fn handle_start(&mut self, header: &Header) {
        self.edge = header.options.has(Options::EDGE);
        self.edge_sync = Some(header.sync);
    }

    /// A FIRST has come: its request is answered by a TCNTL.
    pub fn handle_first(&mut self, options: Options) {
        self.is_traffic_due |= options.has_any(Options::SREQ | Options::DREQ);
    }

    /// Takes the requests of a packet that ends at `packet_end`. `waits` says whether status waits
    /// for a response; `is_delivered` whether the user has all up to a place.
    pub fn handle_requests(
        &mut self,
        now: Time,
        header: &Header,
        packet_end: u64,
        waits: bool,
        is_delivered: impl Fn(u64) -> bool,
    ) {
        let options = header.options;
        let is_changed = header.format.is_information() && self.takes_edge(header);
        if options.has(Options::SREQ) || is_changed {
            self.raise_echo(header.sync);
            self.reply_closing(now, waits);
        } else if options.has(Options::DREQ) {
            if self.deliveries.len() >= DELIVERIES_MAX {
                self.deliveries.pop_front();
            }
            self.deliveries.push_back((packet_end, header.sync));
            self.handle_delivered(now, is_delivered);
        }
    }

    /// Whether EDGE has changed. A packet that comes late shows a value that was given up since
    /// (decided here), else packets that overtake each other would ask for status one by one.
    fn takes_edge(&mut self, header: &Header) -> bool {
        if self.edge_sync.is_some_and(|latest| is_newer(latest, header.sync)) {
            return false;
        }
        let edge = self.edge;
        self.handle_start(header);
        self.edge != edge
    }

    fn raise_echo(&mut self, sync: u32) {
        if self.echo == 0 || is_newer(sync, self.echo) {
            self.echo = sync;
        }
    }

    /// The user has read: what has been asked for and is delivered now is answered.
    pub fn handle_delivered(&mut self, now: Time, is_delivered: impl Fn(u64) -> bool) {
        let last = self.deliveries.iter().rposition(|(place, _)| is_delivered(*place));
        let Some(last) = last else { return };
        for _ in 0..=last {
            if let Some((_, sync)) = self.deliveries.pop_front() {
                self.raise_echo(sync);
            }
        }
        self.reply(now);
    }

    /// Status is due now.
    pub fn reply(&mut self, now: Time) {
        let due = now + self.delay;
        self.status_at = Some(self.status_at().min(due));
    }

    /// Status is due; where it `waits` for the response, later.
    pub fn reply_closing(&mut self, now: Time, waits: bool) {
        if waits {
            self.status_at.get_or_insert(now + self.response_wait);
        } else {
            self.reply(now);
        }
    }

    /// How many packets of the status have gone out that is due.
    pub const fn packets(&self) -> u8 {
        self.packets
    }

    /// A packet of status goes out; whether another one goes on.
    pub fn handle_sent(&mut self, has_more: bool) {
        match has_more {
            true => self.packets = self.packets.saturating_add(1),
            false => self.clear_status(),
        }
    }

    /// Status goes out, or what says the same.
    pub fn clear_status(&mut self) {
        (self.status_at, self.packets) = (None, 0);
    }

    /// Takes whether a TCNTL is due.
    pub fn take_traffic(&mut self) -> bool {
        std::mem::take(&mut self.is_traffic_due)
    }

    /// A diagnostic is due, once in an association.
    pub fn remark(&mut self, code: Code, reason: Reason) {
        if !std::mem::replace(&mut self.has_remarked, true) {
            self.remark = Some((code, reason));
        }
    }

    /// Takes the diagnostic.
    pub fn take_remark(&mut self) -> Option<(Code, Reason)> {
        self.remark.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Format, Key};

    const WAIT: Duration = Duration::from_millis(50);
    const NOW: Time = Time::from_millis(1_000);

    fn packet(format: Format, options: Options, sync: u32) -> Header {
        Header { options, sync, ..Header::new(Key::returned(7), format) }
    }

    /// Takes DATA up to byte 100, of which the user has read `read` bytes.
    fn take(replies: &mut Replies, options: Options, sync: u32, read: u64) {
        let header = packet(Format::Data, options, sync);
        replies.handle_requests(NOW, &header, 100, false, |place| place <= read);
    }

    /// SREQ: answered at once, with the number of the latest.
    #[test]
    fn a_request_makes_status_due_and_echo_never_goes_back() {
        let mut replies = Replies::new(WAIT);
        assert_eq!((replies.status_at(), replies.echo()), (Time::NEVER, 0));
        for (sync, echo) in [(u32::MAX, u32::MAX), (u32::MAX - 5, u32::MAX), (1, 1), (0, 1)] {
            take(&mut replies, Options::SREQ, sync, 0);
            assert_eq!((replies.status_at(), replies.echo()), (NOW, echo), "{sync}");
            replies.clear_status();
        }
        take(&mut replies, Options::NONE, 9, 100);
        assert_eq!((replies.status_at(), replies.echo()), (Time::NEVER, 1), "nothing asked");
    }

    /// Status in several packets: it stays due until the last.
    #[test]
    fn status_stays_due_until_its_last_packet() {
        let mut replies = Replies::new(WAIT);
        replies.reply(NOW);
        for packets in 1..3 {
            replies.handle_sent(true);
            assert_eq!((replies.status_at(), replies.packets()), (NOW, packets));
        }
        replies.handle_sent(false);
        assert_eq!((replies.status_at(), replies.packets()), (Time::NEVER, 0));
    }

    /// EDGE: a change asks, what comes late does not.
    #[test]
    fn a_change_of_edge_asks_and_a_late_packet_does_not() {
        let mut replies = Replies::new(WAIT);
        let mut is_asked = |options, sync| {
            take(&mut replies, options, sync, 0);
            let is_asked = replies.status_at() == NOW;
            replies.clear_status();
            is_asked
        };
        assert!(!is_asked(Options::NONE, 3) && is_asked(Options::EDGE, 4));
        assert!(!is_asked(Options::EDGE, 4) && !is_asked(Options::NONE, 3));
        assert!(is_asked(Options::NONE, 5));
        replies.handle_start(&packet(Format::Data, Options::EDGE, 6));
        take(&mut replies, Options::EDGE, 6, 0);
        assert_eq!(replies.status_at(), Time::NEVER, "it began so");
        let control = packet(Format::Cntl, Options::NONE, 7);
        replies.handle_requests(NOW, &control, 0, false, |_| true);
        assert_eq!(replies.status_at(), Time::NEVER, "EDGE counts on data");
    }

    /// DREQ: answered when the user has read, all that are with the latest.
    #[test]
    fn a_request_for_delivery_waits_for_the_user_and_sixteen_are_kept() {
        let mut replies = Replies::new(WAIT);
        take(&mut replies, Options::DREQ, 5, 99);
        assert_eq!((replies.status_at(), replies.echo()), (Time::NEVER, 0));
        replies.handle_delivered(NOW, |place| place <= 99);
        assert_eq!(replies.status_at(), Time::NEVER);
        take(&mut replies, Options::DREQ, 6, 0);
        replies.handle_delivered(NOW, |place| place <= 100);
        assert_eq!((replies.status_at(), replies.echo()), (NOW, 6));
        replies.clear_status();
        replies.handle_delivered(NOW, |_| true);
        assert_eq!(replies.status_at(), Time::NEVER, "each is answered once");
        (7..40).for_each(|sync| take(&mut replies, Options::DREQ, sync, 0));
        assert_eq!(replies.deliveries.len(), DELIVERIES_MAX);
        assert_eq!(replies.deliveries.back(), Some(&(100, 39)));
    }

    /// Section "Decided here": status of a transaction waits for the response.
    #[test]
    fn what_waits_for_a_response_or_a_slot_is_due_later_and_never_postponed() {
        let mut replies = Replies::new(WAIT);
        replies.reply_closing(NOW, true);
        replies.reply_closing(NOW + WAIT / 2, true);
        assert_eq!(replies.status_at(), NOW + WAIT);
        assert!(replies.is_early(NOW) && !replies.is_early(NOW + WAIT));
        replies.set_delay(WAIT / 5);
        replies.reply_closing(NOW, false);
        assert_eq!(replies.status_at(), NOW + WAIT / 5);
        replies.reply(NOW + WAIT);
        assert_eq!(replies.status_at(), NOW + WAIT / 5);
    }

    /// FIRST: answered by TCNTL. DIAG: once in an association.
    #[test]
    fn traffic_and_a_remark_are_due_once() {
        let mut replies = Replies::new(WAIT);
        replies.handle_first(Options::NONE);
        assert!(!replies.is_traffic_due());
        replies.handle_first(Options::DREQ);
        replies.handle_first(Options::NONE);
        assert!(replies.is_traffic_due() && replies.take_traffic() && !replies.take_traffic());
        assert_eq!(replies.take_remark(), None);
        replies.remark(Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
        replies.remark(Code::PROTOCOL_ERROR, Reason::RETRANSMISSION);
        assert_eq!(replies.take_remark(), Some((Code::PROTOCOL_ERROR, Reason::UNSPECIFIED)));
        replies.remark(Code::PROTOCOL_ERROR, Reason::RETRANSMISSION);
        assert_eq!(replies.take_remark(), None);
    }
}
