//! The stream: what is asked with each piece, when it waits, and what it is cut to.

use super::*;
use crate::wire::Service;

const NOW: Time = Time::from_millis(1_000);
const WAIT: Duration = Duration::from_millis(100);

fn outbound(mode: Mode) -> Outbound {
    let config = Config { buffer_len: 4_000, first_window: 2_000, ..Config::default() };
    Outbound::new(NOW, &config, &mode)
}

fn written(mode: Mode, len: usize) -> Outbound {
    let mut outbound = outbound(mode);
    outbound.write(NOW, &Message::part(&vec![7; len]));
    outbound
}

/// Sends the next piece, and says what was asked with it.
fn send(outbound: &mut Outbound, mode: &Mode) -> Question {
    let piece = outbound.sender().peek(400).or(outbound.empty_end()).expect("a piece");
    let closes = outbound.close_options(piece.end());
    let question = outbound.take_question(&piece, mode, closes.has(Options::WCLOSE));
    outbound.handle_sent(&piece, closes, 1);
    question
}

fn status(rseq: u64, alloc: u64) -> Report<'static> {
    let control = Control { rseq, alloc, echo: 1 };
    Report { control, spans: None, asked_up_to: Some(rseq), may_resend: true }
}

/// SREQ: after a quarter of the buffer, and with what nothing can follow.
#[test]
fn status_is_asked_for_after_enough_bytes_and_with_the_last() {
    let mode = Mode::default();
    let mut outbound = written(mode, 1_400);
    let asked: Vec<Question> = (0..4).map(|_| send(&mut outbound, &mode)).collect();
    let (none, status) = (Question::None, Question::Status);
    assert_eq!(asked, [none, none, status, status], "1,200 bytes; the last");
    let mut blocked = written(mode, 3_000);
    assert!((0..5).map(|_| send(&mut blocked, &mode)).eq([none, none, status, none, status]));
    assert_eq!(blocked.sender().peek(400), None, "the window is full");
}

/// EDGE in place of SREQ; DREQ goes with the byte that is to be delivered.
#[test]
fn edge_changes_with_each_question_but_delivery() {
    let mode = Mode { edge: true, ..Mode::default() };
    let mut outbound = outbound(mode);
    let asks_delivery = true;
    outbound.write(NOW, &Message { asks_delivery, ..Message::part(&[7; 100]) });
    assert_eq!((send(&mut outbound, &mode), outbound.edge()), (Question::Delivery, false));
    outbound.write(NOW, &Message::part(&[7; 100]));
    assert_eq!((send(&mut outbound, &mode), outbound.edge()), (Question::Status, true));
    outbound.write(NOW, &Message::part(&[7; 100]));
    assert_eq!((send(&mut outbound, &mode), outbound.edge()), (Question::Status, false));
}

#[test]
fn who_neither_repairs_nor_heeds_a_window_asks_at_the_end() {
    let mode = Mode { without_repair: true, without_window: true, ..Mode::default() };
    let mut outbound = written(mode, 4_000);
    assert!((0..10).all(|_| send(&mut outbound, &mode) == Question::None));
    outbound.finish();
    assert_eq!(send(&mut outbound, &mode), Question::Status, "WCLOSE");
}

/// WCLOSE: where the stream ends, by a packet without data if need be, once.
#[test]
fn the_end_is_on_the_packet_that_ends_there() {
    let mode = Mode::default();
    let mut outbound = written(mode, 500);
    outbound.finish();
    assert_eq!(outbound.close_options(400), Options::NONE);
    assert_eq!(outbound.close_options(500), Options::WCLOSE);
    send(&mut outbound, &mode);
    assert_eq!(outbound.empty_end(), None, "bytes wait");
    send(&mut outbound, &mode);
    assert_eq!(outbound.empty_end(), None, "it has been said");

    let mut late = written(mode, 400);
    send(&mut late, &mode);
    late.finish();
    assert_eq!(late.empty_end().map(|piece| (piece.seq, piece.len)), Some((400, 0)));
    send(&mut late, &mode);
    assert_eq!(late.empty_end(), None);
    assert!(!late.is_over() && late.handle_close() && late.is_over());
}

/// RCLOSE: what was not sent never is.
#[test]
fn a_peer_that_takes_no_more_ends_the_stream_once() {
    let mut outbound = written(Mode::default(), 500);
    assert!(outbound.handle_close() && !outbound.handle_close());
    assert_eq!((outbound.sender().peek(400), outbound.sender().capacity_left()), (None, 0));
    assert!(outbound.is_over(), "nothing is left");
    let mut unused = self::outbound(Mode::default());
    unused.disuse();
    assert_eq!(unused.empty_end(), None);
}

/// A closed window is asked for after WTIMER, then after twice the time, at most a minute.
#[test]
fn a_closed_window_is_asked_for_less_and_less_often() {
    let mode = Mode::default();
    let mut outbound = written(mode, 3_000);
    (0..5).for_each(|_| _ = send(&mut outbound, &mode));
    outbound.watch_window(NOW, true, WAIT);
    assert_eq!(outbound.window_at(), Time::NEVER, "the answer may open it");
    let mut now = NOW;
    for wait in [100, 200, 400, 800] {
        outbound.watch_window(now, false, WAIT);
        outbound.watch_window(now + WAIT / 2, false, WAIT);
        assert!(!outbound.take_probe(now));
        now += Duration::from_millis(wait);
        assert_eq!(outbound.window_at(), now);
        assert!(outbound.take_probe(now) && !outbound.take_probe(now));
    }
    for _ in 0..20 {
        outbound.watch_window(now, false, WAIT);
        now = outbound.window_at();
        assert!(outbound.take_probe(now));
    }
    outbound.watch_window(now, false, WAIT);
    assert_eq!(outbound.window_at(), now + WINDOW_WAIT_MAX);
    assert!(outbound.sender.handle_report(&status(2_000, 4_000)));
    outbound.watch_window(now, false, WAIT);
    assert_eq!(outbound.window_at(), Time::NEVER);
    outbound.write(now, &Message::part(&[7; 4_000]));
    (0..5).for_each(|_| _ = send(&mut outbound, &mode));
    outbound.watch_window(now, false, WAIT);
    assert_eq!(outbound.window_at(), now + WAIT, "from the beginning");
}

#[test]
fn what_is_announced_is_waited_for_and_room_is_told_once() {
    let mut outbound = outbound(Mode::default());
    outbound.write(NOW, &Message { has_more: true, ..Message::part(&[7; 100]) });
    assert_eq!(outbound.sender().peek(400), None);
    outbound.handle_time(outbound.flush_at());
    assert_eq!(outbound.sender().peek(400).map(|piece| piece.len), Some(100));
    assert_eq!(outbound.flush_at(), Time::NEVER);

    assert_eq!(outbound.write(NOW, &Message::part(&[7; 4_000])), 3_900);
    assert!(!outbound.take_capacity());
    (0..5).for_each(|_| _ = send(&mut outbound, &Mode::default()));
    assert!(outbound.sender.handle_report(&status(400, 2_000)));
    assert!(outbound.take_capacity() && !outbound.take_capacity());
}

/// A stream of so many bytes in these terms, whose latest request is 10.
fn sending(mode: Mode, len: usize) -> (Outbound, Terms, Requests) {
    let requests = Requests::new(NOW, Config::default().timers, 10);
    (written(mode, len), Terms::new(Service::Stream, mode), requests)
}

fn control(rseq: u64, echo: u32) -> Control {
    Control { rseq, alloc: rseq + 2_000, echo }
}

/// SREQ, DREQ, EDGE: what asks has a number of its own, and what goes before one its next.
#[test]
fn a_piece_is_asked_about_with_the_number_of_its_request() {
    let piece = |sending: &mut Outbound| {
        let piece = sending.take_piece(NOW, true, |_| true).expect("bytes wait");
        Piece { len: piece.len.min(100), ..piece }
    };
    let (mut sends, terms, mut requests) = sending(Mode::default(), 500);
    let first = piece(&mut sends);
    let asked = sends.ask_with(NOW, (&first, false), &terms, &mut requests);
    assert_eq!(asked, Asked { options: Options::NONE, sync: 11 });
    let asked = sends.ask_with(NOW, (&first, true), &terms, &mut requests);
    assert_eq!((asked, requests.sync()), (Asked { options: Options::SREQ, sync: 11 }, 11));
    let (mut sends, terms, mut requests) = sending(Mode { edge: true, ..Mode::default() }, 0);
    sends.write(NOW, &Message { asks_delivery: true, ..Message::part(&[7; 50]) });
    let first = piece(&mut sends);
    let asked = sends.ask_with(NOW, (&first, false), &terms, &mut requests);
    assert_eq!(asked, Asked { options: Options::DREQ, sync: 11 });
    let asked = sends.ask_with(NOW, (&first, true), &terms, &mut requests);
    assert_eq!(asked, Asked { options: Options::NONE, sync: 12 }, "EDGE asks");
    let quiet = Terms::new(Service::Datagram, Mode::default());
    let asked = sends.ask_with(NOW, (&first, true), &quiet, &mut requests);
    assert_eq!((asked.options, requests.sync()), (Options::NONE, 12), "nobody answers");
}

#[test]
fn what_the_peer_does_not_afford_waits_for_its_proof_and_nothing_for_nobody() {
    let (mut sends, ..) = sending(Mode::default(), 500);
    assert_eq!(sends.take_piece(NOW, true, |len| len < 500), Err(Wait::Proof));
    assert_eq!(sends.take_piece(NOW, true, |_| true).map(|it| it.len), Ok(500));
    let (mut sends, ..) = sending(Mode::default(), 0);
    assert_eq!(sends.take_piece(NOW, true, |_| false), Err(Wait::Nothing));
    sends.finish();
    assert_eq!(sends.take_piece(NOW, true, |_| false).map(|it| it.len), Ok(0), "the end");
}

/// RATE, BURST: what is repaired is cut to the credit that is left, else it waits whole.
#[test]
fn credit_for_less_than_a_packet_is_used_by_what_is_repaired() {
    let limits = Limits { out_rate: 1_000, out_burst: 700, ..Limits::default() };
    for (is_repaired, second) in [(true, Ok(200)), (false, Err(Wait::Nothing))] {
        let (mut sends, ..) = sending(Mode { limits, ..Mode::default() }, 500);
        let first = sends.take_piece(NOW, is_repaired, |_| true).expect("a burst of credit");
        sends.handle_sent(&first, Options::NONE, 11);
        sends.write(NOW, &Message::part(&[7; 500]));
        let taken = sends.take_piece(NOW, is_repaired, |_| true).map(|it| it.len);
        assert_eq!(taken, second, "{is_repaired}");
        assert_eq!(sends.data_at() < Time::NEVER, second.is_err());
    }
}

/// FIRST: sent until it is answered, with the same data; who answers nothing is not asked.
#[test]
fn the_front_goes_again_as_it_was_and_asks_each_time() {
    let (mut sends, terms, mut requests) = sending(Mode::default(), 100);
    let front = sends.take_front(NOW, &terms, 40, &mut requests);
    assert_eq!((front.len, requests.sync()), (100, 11));
    sends.handle_front_sent(NOW, &front, Options::SREQ, 11);
    sends.write(NOW, &Message::part(&[7; 300]));
    requests.begin_handshake(NOW);
    assert_eq!(sends.take_front(NOW, &terms, 40, &mut requests).len, 100, "no more than before");
    assert_eq!(requests.sync(), 12);
    let quiet = Terms::new(Service::Datagram, Mode::default());
    sends.take_front(NOW, &quiet, 40, &mut requests);
    assert_eq!(requests.sync(), 12);
}

/// CNTL: acknowledges, opens the window, and what cannot be is no status.
#[test]
fn status_tells_whether_it_answers_and_whether_it_can_be() {
    let (mut sends, terms, mut requests) = sending(Mode::default(), 500);
    let piece = sends.take_piece(NOW, true, |_| true).expect("bytes wait");
    let asked = sends.ask_with(NOW, (&piece, true), &terms, &mut requests);
    sends.handle_sent(&piece, Options::NONE, asked.sync);
    let told = sends.handle_status(NOW, &control(0, 3), None, &mut requests);
    assert_eq!(told, Told { is_answer: false, is_sound: true, is_delivered: false });
    let told = sends.handle_status(NOW, &control(501, 11), None, &mut requests);
    assert!(told.is_answer == asked.options.has(Options::SREQ) && !told.is_sound);
    sends.handle_status(NOW, &control(500, 11), None, &mut requests);
    assert!(!sends.sender().has_unacknowledged() && !requests.is_waiting());
}

/// TCNTL: the narrower limit of both ends; a packet becomes shorter once.
#[test]
fn limits_of_the_peer_hold_where_they_are_narrower() {
    let (mut sends, mut terms, _) = sending(Mode::default(), 500);
    let limits = Limits { data_len_max: 400, ..Limits::default() };
    sends.adopt(NOW, &mut terms, None);
    sends.adopt(NOW, &mut terms, Some(limits));
    assert_eq!((sends.length().data_max(), terms.theirs().data_len_max), (400, 400));
    assert!(sends.shorten(300) && !sends.shorten(300));
    assert_eq!(sends.length().packet_max(), 300);
    assert_eq!(sends.handle_complaint(b"100"), 100);
}

/// Of several the least counts; delivery is told when all have it.
#[test]
fn what_all_have_said_settles_the_stream_and_its_requests() {
    let (mut sends, terms, mut requests) = sending(Mode::default(), 0);
    sends.write(NOW, &Message { asks_delivery: true, ..Message::part(&[7; 50]) });
    let piece = sends.take_piece(NOW, true, |_| true).expect("bytes wait");
    let asked = sends.ask_with(NOW, (&piece, false), &terms, &mut requests);
    sends.handle_sent(&piece, Options::NONE, asked.sync);
    let heard = sends.handle_member_status(&control(50, 11), None, &requests);
    assert_eq!((heard.next, heard.end, heard.sync, heard.is_delivery), (50, None, 11, true));
    let (floor, heard) = (control(50, 11), Some(NOW));
    let settled = Settled { floor, heard, echo: Some(11), delivered: None };
    assert!(!sends.settle(NOW, &settled, &mut requests) && requests.is_waiting());
    let settled = Settled { echo: None, delivered: Some(11), ..settled };
    assert!(sends.settle(NOW, &settled, &mut requests) && !requests.is_waiting());
    assert!(!sends.sender().has_unacknowledged());
}
