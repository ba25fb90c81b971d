//! A path and its controller, in any state.

use crate::controllers::reserved;
use crate::{
    Answer, Came, Controller, ControllerCx, ControllerEntry, ControllerSpec, Counts, Delivered,
    IDLE_AFTER, Lost, Marked, Path, PathSeen, Prior, SILENT_AFTER_MIN, Sent,
};
use dacapo_base::{Ecn, Time};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a controller was told.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Made(Prior),
    Sent(u64),
    Delivered(u64, u64),
    Lost(u64, bool),
    Marked(u64),
    Idle,
    Timeout,
}

/// Does as the test says, and keeps what it was told.
struct Scripted {
    window: u64,
    rate_bps: Option<u64>,
    due: Option<Time>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Scripted {
    fn tell(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl Controller for Scripted {
    fn on_sent(&mut self, cx: &ControllerCx, _: &Sent) {
        self.tell(Told::Sent(cx.in_flight_bytes));
    }

    fn on_delivered(&mut self, cx: &ControllerCx, delivered: &Delivered) {
        self.tell(Told::Delivered(delivered.bytes, cx.in_flight_bytes));
    }

    fn on_lost(&mut self, _: &ControllerCx, lost: &Lost) {
        self.tell(Told::Lost(lost.bytes, lost.is_silence));
    }

    fn on_marked(&mut self, _: &ControllerCx, marked: &Marked) {
        self.tell(Told::Marked(marked.packets));
    }

    fn on_idle(&mut self, _: &ControllerCx) {
        self.tell(Told::Idle);
    }

    fn on_timeout(&mut self, _: &ControllerCx) {
        self.due = None;
        self.tell(Told::Timeout);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn rate_bps(&self) -> Option<u64> {
        self.rate_bps
    }

    fn due(&self) -> Option<Time> {
        self.due
    }
}

static SPEC: ControllerSpec =
    ControllerSpec { name: "scripted", summary: "", source: "", datagrams: true, usual: None };

struct Bench {
    path: Path,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Bench {
    fn new(window: u64, rate_bps: Option<u64>, due: Option<Time>) -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let entry = ControllerEntry::new(&SPEC, move |_, prior| {
            let it = Scripted { window, rate_bps, due, told: Arc::clone(&kept) };
            it.tell(Told::Made(*prior));
            Box::new(it)
        });
        let bench = Self { path: Path::new(Time::ZERO, &entry), told };
        assert_eq!(bench.told(), [Told::Made(Prior::default())]);
        bench
    }

    fn told(&self) -> Vec<Told> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }

    fn send(&mut self, now: Time, packets: u64) {
        self.path.handle_sent(now, &sent(packets, true));
    }
}

fn sent(packets: u64, is_acknowledged: bool) -> Sent {
    Sent {
        datagram_len: 1_000,
        packets,
        bytes: packets * 1_000,
        is_acknowledged,
        ..Sent::default()
    }
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn delivered(packets: u64, sent_at: Time) -> PathSeen {
    PathSeen { delivered_packets: packets, sent_at: Some(sent_at), ..PathSeen::default() }
}

fn lost(packets: u64) -> PathSeen {
    PathSeen { lost_packets: packets, ..PathSeen::default() }
}

#[test]
fn a_window_lets_out_as_much_as_is_not_in_flight_and_says_when_there_is_room() {
    let mut bench = Bench::new(10_000, None, None);
    assert_eq!(bench.path.allowance(ms(0), true), 10_000);
    bench.send(ms(0), 9);
    assert_eq!(bench.path.allowance(ms(0), true), 1_000);
    bench.send(ms(1), 2);
    assert_eq!((bench.path.allowance(ms(1), true), bench.path.in_flight_bytes()), (0, 11_000));
    assert!(!bench.path.poll_room(ms(1)), "nobody waits");
    bench.path.await_room(true);
    assert!(!bench.path.poll_room(ms(1)));
    bench.path.handle_seen(ms(20), &delivered(4, ms(0)));
    assert!(bench.path.poll_room(ms(20)) && !bench.path.poll_room(ms(20)), "once");
    assert_eq!(bench.path.allowance(ms(20), true), 3_000);
    assert_eq!(
        bench.told(),
        [Told::Sent(9_000), Told::Sent(11_000), Told::Delivered(4_000, 7_000)]
    );
}

#[test]
fn what_is_lost_or_marked_is_told_and_loss_makes_room() {
    let mut bench = Bench::new(2_000, None, None);
    bench.send(ms(0), 2);
    bench.path.handle_seen(ms(5), &lost(1));
    let marked = PathSeen { marked_packets: 3, ..PathSeen::default() };
    bench.path.handle_seen(ms(5), &marked);
    assert_eq!(bench.path.allowance(ms(5), true), 1_000);
    assert_eq!(bench.told(), [Told::Sent(2_000), Told::Lost(1_000, false), Told::Marked(3)]);
}

#[test]
fn what_nobody_reports_is_paced_and_not_in_flight() {
    let mut bench = Bench::new(2_000, Some(8_000_000), None);
    bench.path.handle_sent(ms(0), &sent(2, false));
    assert_eq!(
        (bench.path.in_flight_bytes(), bench.path.allowance(ms(0), true)),
        (0, 0),
        "the pace"
    );
    assert_eq!(bench.path.allowance(ms(2), true), 2_000, "a burst of 2 ms, and the window");
    assert_eq!(bench.told(), []);
}

#[test]
fn the_pace_says_when_there_is_room_again() {
    let mut bench = Bench::new(u64::MAX, Some(8_000_000), None);
    bench.send(ms(0), 3);
    assert_eq!(
        (bench.path.allowance(ms(0), true), bench.path.due(ms(0))),
        (0, None),
        "nobody waits"
    );
    bench.path.await_room(true);
    let at = bench.path.due(ms(0)).unwrap();
    assert!(!bench.path.poll_room(ms(0)) && at > ms(0) && at < ms(3), "{at:?}");
    assert!(bench.path.poll_room(at));
}

#[test]
fn silence_is_the_loss_of_all_that_is_in_flight() {
    let mut bench = Bench::new(3_000, None, None);
    bench.send(ms(0), 3);
    bench.path.await_room(true);
    let at = ms(0) + SILENT_AFTER_MIN;
    assert_eq!(bench.path.due(ms(0)), Some(at));
    bench.path.handle_timeout(at - Duration::from_millis(1));
    assert!(!bench.path.poll_room(at));
    bench.path.shift(ms(600));
    assert_eq!(bench.path.due(ms(600)), Some(ms(600) + SILENT_AFTER_MIN), "this end had stopped");
    bench.path.handle_timeout(ms(600) + SILENT_AFTER_MIN);
    assert!(bench.path.poll_room(ms(1_600)));
    assert_eq!(bench.told(), [Told::Sent(3_000), Told::Lost(3_000, true)]);
    assert_eq!(bench.path.due(ms(1_600)), None);
}

#[test]
fn a_round_trip_before_what_has_come_nothing_is_in_flight() {
    let mut bench = Bench::new(100_000, None, None);
    (0..10).for_each(|at| bench.send(ms(at * 10), 2));
    // A module below made two packets of each: one of each pair is never reported.
    let rtt = Some(Duration::from_millis(20));
    let seen = PathSeen { rtt, ..delivered(10, ms(90)) };
    bench.path.handle_seen(ms(110), &seen);
    assert_eq!(bench.path.in_flight_bytes(), 6_000, "of 70 ms and later");
}

#[test]
fn a_controller_has_a_clock_of_its_own_and_hears_of_idle_times() {
    let mut bench = Bench::new(u64::MAX, None, Some(ms(7)));
    assert_eq!(bench.path.due(ms(0)), Some(ms(7)));
    bench.path.handle_timeout(ms(6));
    assert_eq!(bench.told(), []);
    bench.path.handle_timeout(ms(7));
    assert_eq!((bench.told(), bench.path.due(ms(7))), (vec![Told::Timeout], None));
    bench.send(ms(8), 1);
    bench.path.handle_seen(ms(9), &delivered(1, ms(8)));
    bench.send(ms(8) + IDLE_AFTER, 1);
    let told = bench.told();
    assert_eq!(told[2..], [Told::Idle, Told::Sent(1_000)]);
}

#[test]
fn who_moves_keeps_the_round_trip_as_a_prior_and_the_rate_as_a_cap() {
    let mut bench = Bench::new(50_000, None, None);
    for at in 0..40 {
        bench.send(ms(at * 10), 2);
        let rtt = Some(Duration::from_millis(10));
        bench.path.handle_seen(ms(at * 10 + 10), &PathSeen { rtt, ..delivered(2, ms(at * 10)) });
    }
    bench.send(ms(400), 5);
    bench.told();
    bench.path.move_to_another(ms(401));
    let prior = Prior { rtt: Some(Duration::from_millis(10)), rate_bps_max: Some(1_600_000) };
    assert_eq!((bench.told(), bench.path.in_flight_bytes()), (vec![Told::Made(prior)], 0));
}

#[test]
fn reserved_holds_nothing_back_but_after_a_move_until_something_came() {
    let mut path = Path::new(ms(0), &reserved::entry());
    assert_eq!((path.allowance(ms(0), true), path.due(ms(0))), (usize::MAX, None));
    for at in 0..40 {
        path.handle_sent(ms(at * 10), &sent(2, true));
        path.handle_seen(ms(at * 10 + 9), &delivered(2, ms(at * 10)));
    }
    assert_eq!((path.allowance(ms(400), true), path.due(ms(400))), (usize::MAX, None));
    path.move_to_another(ms(400));
    assert_eq!(path.allowance(ms(400), true), 1_500, "a burst at 1.6 Mbit/s");
    path.handle_sent(ms(400), &sent(2, true));
    assert_eq!(path.allowance(ms(400), true), 0);
    path.handle_seen(ms(420), &delivered(2, ms(400)));
    assert_eq!(path.allowance(ms(420), true), usize::MAX);
}

/// Panics at one of its calls.
struct Panics(&'static str);

impl Panics {
    fn at(&self, call: &str) {
        assert!(self.0 != call, "it makes a mistake");
    }
}

impl Controller for Panics {
    fn on_sent(&mut self, _: &ControllerCx, _: &Sent) {
        self.at("sent");
    }

    fn on_delivered(&mut self, _: &ControllerCx, _: &Delivered) {
        self.at("delivered");
    }

    fn on_lost(&mut self, _: &ControllerCx, lost: &Lost) {
        self.at(if lost.is_silence { "silence" } else { "lost" });
    }

    fn on_idle(&mut self, _: &ControllerCx) {
        self.at("idle");
    }

    fn on_timeout(&mut self, _: &ControllerCx) {
        self.at("timeout");
    }

    fn window(&self) -> u64 {
        self.at("window");
        2_000
    }

    fn due(&self) -> Option<Time> {
        Some(ms(9_000)).filter(|_| self.0 == "timeout")
    }
}

#[test]
fn a_controller_that_panics_is_asked_no_more_and_nothing_is_held_back() {
    for call in ["made", "window", "sent", "delivered", "lost", "idle", "silence", "timeout"] {
        let entry = ControllerEntry::new(&SPEC, move |_, _| {
            assert!(call != "made", "it makes a mistake");
            Box::new(Panics(call))
        });
        let mut path = Path::new(ms(0), &entry);
        path.handle_sent(ms(1), &sent(2, true));
        path.handle_seen(ms(5), &delivered(1, ms(1)));
        path.handle_seen(ms(6), &lost(1));
        path.handle_sent(ms(5_000), &sent(3, true));
        path.handle_timeout(ms(9_000));
        let none = ("none", usize::MAX);
        assert_eq!((path.controller(), path.allowance(ms(9_000), true)), none, "{call}");
        path.move_to_another(ms(9_001));
        assert_eq!((path.controller(), path.allowance(ms(9_001), true)), none, "{call}");
    }
}

/// Goes by counts, with a window of three packets; keeps what it was told of them.
struct Counts3(Arc<Mutex<Vec<Counts>>>);

impl Controller for Counts3 {
    fn on_delivered(&mut self, _: &ControllerCx, _: &Delivered) {
        unreachable!("counts say it");
    }

    fn on_marked(&mut self, _: &ControllerCx, _: &Marked) {
        unreachable!("counts say it");
    }

    fn on_counted(&mut self, _: &ControllerCx, counts: &Counts) {
        self.0.lock().unwrap().push(*counts);
    }

    fn window(&self) -> u64 {
        3_000
    }

    fn ecn(&self) -> Ecn {
        Ecn::Ect1
    }

    fn goes_by_counts(&self) -> bool {
        true
    }
}

/// Asks at `now`, and hears 20 ms later what has come.
fn ask_and_hear(path: &mut Path, now: Time, packets: u32, marked: u32) -> Ecn {
    let question = path.ask_at_most(now, false, 1_200);
    let received = now.as_nanos() + 9_000_000;
    let came = Some(Came { packets, marked });
    let answer = Answer { number: question.number, received, answered: received, came };
    assert!(path.handle_answer(now + Duration::from_millis(20), &answer).is_some());
    question.ecn
}

#[test]
fn who_goes_by_counts_holds_what_nobody_reports_about_from_the_first_answer_on() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let entry = ControllerEntry::new(&SPEC, move |_, _| Box::new(Counts3(Arc::clone(&kept))));
    let mut path = Path::new(ms(0), &entry);
    path.handle_sent(ms(0), &sent(9, false));
    assert_eq!((path.allowance(ms(0), false), path.in_flight_bytes()), (usize::MAX, 0));
    assert_eq!(path.ecn(false), Ecn::NotEct, "nobody knows whether the peer counts");
    ask_and_hear(&mut path, ms(1), 9, 0);
    assert_eq!((path.ecn(false), path.allowance(ms(30), false)), (Ecn::Ect1, 3_000));
    path.handle_sent(ms(30), &Sent { is_ecn_capable: true, ..sent(2, false) });
    path.handle_sent(ms(30), &Sent { is_ecn_capable: true, ..sent(1, true) });
    assert_eq!((path.allowance(ms(30), false), path.allowance(ms(30), true)), (0, 0));
    path.handle_seen(ms(40), &delivered(1, ms(30)));
    assert_eq!(path.in_flight_bytes(), 3_000, "reports say nothing more");
    path.await_room(false);
    ask_and_hear(&mut path, ms(40), 11, 1);
    assert!(path.poll_room(ms(60)) && path.in_flight_bytes() == 0);
    let counts = *told.lock().unwrap().last().unwrap();
    let rtt = Duration::from_millis(20);
    let (left_after, asked, one_way_ns) = (ms(1), ms(40), 9_000_000);
    let packets = Counts { packets: 2, bytes: 2_000, lost: 0, marked: 1, left_after, ..counts };
    assert_eq!(counts, Counts { rtt, asked, one_way_ns, ..packets });
    ask_and_hear(&mut path, ms(70), 11, 1);
    assert_eq!(told.lock().unwrap().last().map(|it| it.lost), Some(1), "it is missing still");
    path.move_to_another(ms(100));
    assert_eq!(path.ecn(false), Ecn::Ect1, "it is tested anew");
}

#[test]
fn a_path_that_drops_ect_1_is_found_out_and_questions_never_leave_so() {
    let entry = ControllerEntry::new(&SPEC, |_, _| Box::new(Counts3(Arc::default())));
    let mut path = Path::new(ms(0), &entry);
    ask_and_hear(&mut path, ms(1), 0, 0);
    for step in 1..=10 {
        let is_ecn_capable = path.ecn(false) == Ecn::Ect1;
        path.handle_sent(ms(step * 100), &Sent { is_ecn_capable, ..sent(2, false) });
        assert_eq!(ask_and_hear(&mut path, ms(step * 100 + 10), 0, 0), Ecn::NotEct, "{step}");
        assert_eq!(is_ecn_capable, step <= 5, "{step}: ten have left");
    }
}
