//! A window that is kept full, or is not, call by call.

use super::*;

const MSS: u64 = 1_400;
const RTT: Duration = Duration::from_millis(40);

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A window that is kept full: each round trip all of it leaves, and comes.
struct Rig {
    it: Cubic,
    now: Time,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self { it: Cubic::new(Time::ZERO, &Prior::default()), now: ms(1_000) };
        rig.sent(1);
        rig
    }

    fn cx(&self, in_flight_bytes: u64, is_limited: bool) -> ControllerCx {
        ControllerCx { now: self.now, in_flight_bytes, rtt: Some(RTT), is_limited }
    }

    fn sent(&mut self, packets: u64) {
        let datagram_len = MSS as usize;
        let sent = Sent {
            datagram_len,
            packets,
            bytes: packets * MSS,
            is_acknowledged: true,
            ..Sent::default()
        };
        self.it.on_sent(&self.cx(0, false), &sent);
    }

    /// A packet that left a round trip ago has come, of a window that is full or not.
    fn came(&mut self, is_limited: bool) {
        let sent_at = Some(Time::from_nanos(self.now.as_nanos() - RTT.as_nanos() as u64));
        let delivered = Delivered { packets: 1, bytes: MSS, sent_at, rtt: Some(RTT) };
        let in_flight = if is_limited { self.it.window - MSS } else { 0 };
        self.it.on_delivered(&self.cx(in_flight, is_limited), &delivered);
    }

    /// So many round trips.
    fn rounds(&mut self, count: usize, is_limited: bool) {
        for _ in 0..count {
            let packets = self.it.window / MSS;
            for _ in 0..packets {
                self.now += RTT / packets as u32;
                self.sent(1);
                self.came(is_limited);
            }
        }
    }

    /// Packets that left then are lost.
    fn lost(&mut self, packets: u64, sent_at: Time) {
        let lost =
            Lost { packets, bytes: packets * MSS, sent_at: Some(sent_at), is_silence: false };
        self.it.on_lost(&self.cx(self.it.window - packets * MSS, true), &lost);
    }

    fn silence(&mut self) {
        let lost = Lost { packets: 9, bytes: 9 * MSS, sent_at: None, is_silence: true };
        self.it.on_lost(&self.cx(0, true), &lost);
    }

    /// After doubling to some 80 packets, a loss.
    fn with_a_loss() -> (Self, u64) {
        let mut rig = Self::new();
        rig.rounds(3, true);
        let before = rig.it.window;
        rig.lost(1, rig.now);
        (rig, before)
    }
}

#[test]
fn it_begins_with_ten_packets_and_doubles() {
    let mut rig = Rig::new();
    assert_eq!(rig.it.window(), 10 * MSS);
    rig.rounds(3, true);
    assert_eq!(rig.it.window(), 80 * MSS);
    let per_round = 80.0 * MSS as f64 * 8.0 / RTT.as_secs_f64();
    let rate = rig.it.rate_bps().unwrap() as f64 / per_round;
    assert!((1.99..2.01).contains(&rate), "{rate} times the window in a round trip");
}

#[test]
fn one_loss_or_many_of_one_round_trip_make_it_seven_tenths_once() {
    let (mut rig, before) = Rig::with_a_loss();
    assert_eq!(rig.it.window, before / 10 * 7);
    let (then, until) = (rig.now, rig.it.window);
    rig.lost(7, then);
    assert_eq!(rig.it.window, until, "they left before");
    rig.rounds(3, true);
    let now = rig.now;
    rig.lost(1, now);
    assert!(rig.it.window < until, "they left after");
}

#[test]
fn after_a_loss_it_is_back_where_it_was_no_later_than_reno() {
    let (mut rig, before) = Rig::with_a_loss();
    // 24 packets, 0.53 in each round trip; the cubic would take 3.9 s, the root of 24 / 0.4.
    rig.rounds(46, true);
    let share = rig.it.window as f64 / before as f64;
    assert!((0.98..1.06).contains(&share), "{share}");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut rig = Rig::new();
    rig.rounds(20, false);
    assert_eq!(rig.it.window(), 10 * MSS);
    let (mut rig, _) = Rig::with_a_loss();
    rig.rounds(2, true);
    let before = rig.it.window;
    rig.rounds(500, false);
    assert_eq!(rig.it.window, before, "20 s");
    rig.rounds(1, true);
    let grown = rig.it.window - before;
    assert!(grown < 3 * MSS, "{grown}: as if no time had passed");
}

#[test]
fn after_a_pause_it_begins_with_ten_packets_and_doubles_to_where_it_was() {
    let (mut rig, _) = Rig::with_a_loss();
    rig.rounds(5, true);
    let before = rig.it.window;
    rig.now += Duration::from_secs(5);
    rig.it.on_idle(&rig.cx(0, false));
    assert_eq!(rig.it.window(), 10 * MSS);
    rig.rounds(3, true);
    assert!(rig.it.window >= before / 4 * 3, "{} of {before}", rig.it.window);
}

#[test]
fn many_acknowledgements_at_once_are_no_burst() {
    let (mut rig, _) = Rig::with_a_loss();
    rig.rounds(3, true);
    let (before, sent_at) = (rig.it.window, Some(rig.now));
    rig.now += RTT;
    let delivered = Delivered { packets: 50, bytes: 50 * MSS, sent_at, rtt: Some(RTT) };
    rig.it.on_delivered(&rig.cx(MSS, true), &delivered);
    assert!(rig.it.window <= before + before / 2, "{} of {before}", rig.it.window);
    // What leaves for it is paced.
    let per_round = rig.it.window as f64 * 8.0 / RTT.as_secs_f64();
    let rate = rig.it.rate_bps().unwrap() as f64 / per_round;
    assert!((1.24..1.26).contains(&rate), "{rate}");
}

#[test]
fn a_loss_that_was_none_is_undone() {
    let (mut rig, before) = Rig::with_a_loss();
    let then = rig.now;
    rig.lost(2, then);
    rig.it.on_spurious(&rig.cx(0, true), 2);
    assert_eq!(rig.it.window, before / 10 * 7, "one of three was lost");
    rig.it.on_spurious(&rig.cx(0, true), 1);
    assert_eq!((rig.it.window(), rig.it.threshold), (before, u64::MAX));
    rig.it.on_spurious(&rig.cx(0, true), 9);
    assert_eq!(rig.it.window(), before, "once");
}

#[test]
fn silence_begins_again_and_doubles_to_where_it_was() {
    let (mut rig, _) = Rig::with_a_loss();
    rig.rounds(2, true);
    let before = rig.it.window;
    rig.silence();
    assert_eq!(rig.it.window(), 2 * MSS);
    rig.rounds(6, true);
    let share = rig.it.window as f64 / before as f64;
    assert!((0.65..0.9).contains(&share), "{share}");
    // However often, there are two packets.
    (0..10).for_each(|_| rig.silence());
    assert_eq!(rig.it.window(), 2 * MSS);
}

#[test]
fn losses_one_after_the_other_leave_two_packets() {
    let mut rig = Rig::new();
    for at in 0..100 {
        rig.now += Duration::from_secs(1);
        let now = rig.now;
        rig.lost(1, now);
        assert!(rig.it.window >= 2 * MSS, "{at}");
    }
    assert_eq!(rig.it.window, 2 * MSS);
    assert!(rig.it.window() >= MSS, "one may leave");
}

#[test]
fn marks_make_it_smaller_once_in_a_round_trip_and_by_less_than_losses() {
    let mut rig = Rig::new();
    rig.rounds(3, true);
    let before = rig.it.window;
    for _ in 0..5 {
        rig.it.on_marked(&rig.cx(before, true), &Marked { packets: 3, left_after: None });
    }
    assert_eq!(rig.it.window, before / 20 * 17);
    // Some of these may have left before.
    let left_after = Some(rig.now);
    rig.now += RTT;
    rig.it.on_marked(&rig.cx(before, true), &Marked { packets: 3, left_after });
    assert_eq!(rig.it.window, before / 20 * 17);
    let left_after = Some(rig.now);
    rig.it.on_marked(&rig.cx(before, true), &Marked { packets: 3, left_after });
    assert_eq!(rig.it.window, before / 20 * 17 / 20 * 17);
}

#[test]
fn what_was_measured_before_a_move_bounds_what_doubles() {
    let prior = Prior { rtt: Some(RTT), rate_bps_max: Some(16_000_000) };
    let it = Cubic::new(Time::ZERO, &prior);
    assert_eq!((it.window, it.threshold), (10 * MSS_MIN, 80_000));
    let slow = Prior { rtt: Some(RTT), rate_bps_max: Some(100) };
    assert_eq!(Cubic::new(Time::ZERO, &slow).window, 2 * MSS_MIN);
}

#[test]
fn hostile_numbers_do_not_panic() {
    let mut rig = Rig::new();
    for bytes in [0, 1, u64::MAX] {
        let delivered =
            Delivered { packets: bytes, bytes, sent_at: None, rtt: Some(Duration::MAX) };
        rig.it.on_delivered(&rig.cx(u64::MAX, true), &delivered);
        let lost = Lost { packets: bytes, bytes, sent_at: None, is_silence: false };
        rig.it.on_lost(&rig.cx(u64::MAX, true), &lost);
        rig.it.on_spurious(&rig.cx(bytes, true), bytes);
        assert!(rig.it.window() > 0 && rig.it.rate_bps().is_some());
    }
}
