//! Cases 33 to 49, and 66: status, repair, windows, rates, priorities.

use crate::common::uut::{KEY, PORT, Sent, Uut, bytes, first, peer, stream};
use dacapo_base::Random;
use dacapo_xtp::wire::{Control, Format, Limits, Options};
use dacapo_xtp::{Config, End, Event, Listen, Message, Mode, Open, Read, Retransmission};
use std::time::Duration;

fn listen() -> Listen {
    Listen::on(PORT)
}

fn stretches(sent: &[Sent]) -> Vec<(u64, u64)> {
    let data = sent.iter().filter(|sent| sent.format() == Format::Data);
    data.map(|sent| (sent.header().seq, sent.header().seq + sent.data().len() as u64)).collect()
}

#[test]
fn case_33_status_is_sent_when_it_is_asked_for() {
    let mut uut = Uut::opened(listen(), None);
    uut.data(Options::NONE, 0, b"hel");
    uut.silent();
    uut.data(Options::SREQ, 3, b"lo");
    let status = uut.take_one();
    assert_eq!(status.format(), Format::Cntl);
    assert_eq!((status.control().rseq, status.control().echo), (5, uut.sync));
}

#[test]
fn case_34_a_request_for_delivery_waits_for_the_user() {
    let mut uut = Uut::opened(listen(), None);
    uut.data(Options::DREQ, 0, b"hello");
    uut.silent();
    uut.pass(Duration::from_secs(5));
    uut.silent();
    assert_eq!(uut.read_bytes(), b"hello");
    let status = uut.take_one();
    assert_eq!((status.control().rseq, status.control().echo), (5, uut.sync));
}

#[test]
fn case_34_who_asks_for_delivery_is_told() {
    let mut uut = Uut::opening(&stream(), 1_000);
    let message = Message { asks_delivery: true, ..Message::whole(b"hello") };
    uut.engine.write(uut.now, uut.id(), &message).unwrap();
    let sent = uut.take_one();
    assert!(sent.has(Options::DREQ | Options::EOM) && !sent.has(Options::SREQ));
    let told = |uut: &Uut| uut.events.contains(&Event::Delivered(uut.id()));
    let echo = sent.header().sync;
    uut.control(Options::NONE, Control { rseq: 5, alloc: 1_000, echo: echo.wrapping_sub(1) });
    assert!(!told(&uut), "arrived is not delivered");
    uut.control(Options::NONE, Control { rseq: 5, alloc: 1_000, echo });
    assert!(told(&uut));
}

#[test]
fn case_35_a_change_of_edge_asks_for_status() {
    let mut uut = Uut::opened(listen(), None);
    let mut answers = Vec::new();
    for (place, edge) in [0, 0, 1, 1, 0].into_iter().enumerate() {
        uut.data(Options::EDGE.when(edge == 1), place as u64, b"x");
        answers.push(uut.take().len());
    }
    assert_eq!(answers, [0, 0, 1, 0, 1]);
}

#[test]
fn case_36_what_lacks_is_told_by_what_has_come() {
    let mut uut = Uut::opened(listen(), None);
    uut.data(Options::NONE, 0, &[1; 1_000]);
    uut.data(Options::SREQ, 2_000, &[2; 1_000]);
    let status = uut.take_one();
    assert_eq!((status.format(), status.control().rseq), (Format::Ecntl, 1_000));
    assert_eq!(status.spans(), [(2_000, 3_000)]);
    let left: Vec<u8> = status.bytes[56..64].to_vec();
    assert_eq!(left, 2_000_u64.to_be_bytes(), "big-endian");
}

#[test]
fn case_37_a_gap_is_reported_at_once_only_with_fastnak() {
    for is_fast in [true, false] {
        let mut uut = Uut::opened(listen(), None);
        let options = Options::FASTNAK.when(is_fast);
        uut.data(options, 0, &[1; 1_000]);
        uut.data(options, 2_000, &[2; 500]);
        let reports = uut.take();
        assert_eq!(reports.len(), usize::from(is_fast));
        assert!(reports.iter().all(|sent| sent.format() == Format::Ecntl));
        uut.data(options, 2_500, &[2; 500]);
        uut.silent();
        uut.data(options, 4_000, &[2; 500]);
        assert_eq!(uut.take().len(), usize::from(is_fast), "a further gap");
    }
}

#[test]
fn case_38_going_back_keeps_nothing_behind_a_gap() {
    let mode = Mode { retransmission: Retransmission::GoBackN, ..Mode::default() };
    let mut uut = Uut::opened(Listen { mode, ..listen() }, None);
    uut.data(Options::NONE, 0, &[1; 1_000]);
    uut.data(Options::SREQ, 2_000, &[2; 1_000]);
    let status = uut.take_one();
    assert_eq!((status.control().rseq, status.spans()), (1_000, vec![]));
    uut.data(Options::SREQ, 1_000, &[3; 1_000]);
    assert_eq!(uut.take_one().control().rseq, 2_000, "the second piece was thrown away");
}

#[test]
fn case_39_without_repair_the_user_is_told_of_holes() {
    let mut uut = Uut::opened(listen(), None);
    uut.data(Options::NOERR, 0, &[1; 1_000]);
    uut.data(Options::NOERR | Options::SREQ, 2_000, &[2; 1_000]);
    let status = uut.take_one();
    assert_eq!((status.format(), status.control().rseq), (Format::Cntl, 3_000));
    assert_eq!(uut.read_bytes().len(), 1_000);
    assert_eq!(uut.read(), Read::Hole { len: 1_000 });
    assert_eq!(uut.read_bytes(), [2; 1_000]);
}

/// A unit that has sent 14,000 bytes in ten packets, and the number of its request.
fn sent_ten() -> (Uut, u32, Vec<u8>) {
    let mut uut = Uut::opening(&stream(), 1 << 20);
    let limits = Limits { data_len_max: 1_400, ..Limits::default() };
    uut.traffic(Control { rseq: 0, alloc: 1 << 20, echo: 0 }, limits);
    let data = bytes(14_000);
    uut.write(&data);
    let sent = uut.take();
    assert_eq!(sent.len(), 10);
    assert!(sent[9].has(Options::SREQ));
    let sync = sent[9].header().sync;
    uut.pass(Duration::from_millis(10));
    (uut, sync, data)
}

#[test]
fn case_40_exactly_what_lacks_is_sent_again_once() {
    let (mut uut, sync, data) = sent_ten();
    let control = Control { rseq: 1_400, alloc: 1 << 20, echo: sync };
    let spans = [(2_800, 7_000), (8_400, 14_000)];
    uut.error_control(control, &spans);
    let sent = uut.take();
    assert_eq!(stretches(&sent), [(1_400, 2_800), (7_000, 8_400)]);
    assert_eq!(sent[1].data(), &data[7_000..8_400]);
    assert!(sent[1].has(Options::SREQ) && !sent[0].has(Options::SREQ));
    uut.error_control(control, &spans);
    uut.silent();
    // It says the same in answer to the request that went with them: they were lost again.
    uut.error_control(Control { echo: sent[1].header().sync, ..control }, &spans);
    assert_eq!(stretches(&uut.take()), [(1_400, 2_800), (7_000, 8_400)]);
}

#[test]
fn case_41_spans_that_begin_at_rseq_name_what_lacks() {
    let (mut uut, sync, _) = sent_ten();
    let control = Control { rseq: 1_400, alloc: 1 << 20, echo: sync };
    uut.error_control(control, &[(1_400, 2_800), (7_000, 8_400)]);
    assert_eq!(stretches(&uut.take()), [(1_400, 2_800), (7_000, 8_400)]);
}

#[test]
fn case_42_status_that_cannot_be_is_ignored_and_said_so_once() {
    let impossible: [(u64, &[(u64, u64)]); 5] = [
        (0, &[(3_000, 2_000)]),
        (0, &[(1_000, 3_000), (2_000, 4_000)]),
        (0, &[(13_000, 15_000)]),
        (2_000, &[(1_000, 1_500)]),
        (20_000, &[]),
    ];
    let (mut uut, sync, _) = sent_ten();
    for (round, (rseq, spans)) in impossible.into_iter().enumerate() {
        uut.error_control(Control { rseq, alloc: 1 << 20, echo: sync }, spans);
        let sent = uut.take();
        assert_eq!(stretches(&sent), [], "{rseq} {spans:?}");
        assert_eq!(sent.len(), usize::from(round == 0));
        assert!(sent.iter().all(|sent| sent.diagnostic() == (6, 11)));
    }
    uut.control(Options::NONE, Control { rseq: 1_400, alloc: 0, echo: 0 });
    uut.silent();
    assert!(!uut.events.iter().any(|event| matches!(event, Event::Ended(..))));
}

#[test]
fn case_43_no_byte_beyond_the_window_leaves_and_the_window_never_shrinks() {
    let mut uut = Uut::opening(&stream(), 0);
    // Before the peer had said anything the first window of 64 KiB held; now it is what it says.
    let data = bytes(100_000);
    uut.write(&data);
    assert_eq!(stretches(&uut.take()), []);

    let config = Config { first_window: 0, ..Config::default() };
    let mut uut = Uut::opening_in(config, &stream(), 0);
    uut.write(&data[..1_000]);
    let (mut echo, mut left) = (0, 0);
    for (alloc, right) in [(100, 100), (300, 300), (50, 300)] {
        uut.control(Options::NONE, Control { rseq: left, alloc, echo });
        let sent = uut.take();
        let expected: Vec<(u64, u64)> = if right > left { vec![(left, right)] } else { vec![] };
        assert_eq!(stretches(&sent), expected, "alloc {alloc}");
        if let Some(last) = sent.last() {
            assert!(last.has(Options::SREQ), "nothing more can go");
            (echo, left) = (last.header().sync, right);
        }
    }
}

#[test]
fn case_44_without_a_window_everything_leaves() {
    let mode = Mode { without_window: true, ..Mode::default() };
    let mut uut = Uut::opening(&Open { mode, ..stream() }, 0);
    uut.write(&[1; 60_000]);
    let sent = uut.take();
    assert_eq!(stretches(&sent).last().map(|last| last.1), Some(60_000));
    assert!(sent.iter().all(|sent| sent.has(Options::NOFLOW)));
}

/// Sends `total` bytes with the limits of the peer; when which bytes left, in seconds.
fn paced(limits: Limits, total: usize, mut each: impl FnMut(&mut Uut, f64)) -> Vec<(f64, usize)> {
    let mode = Mode { without_repair: true, without_window: true, ..Mode::default() };
    let mut uut = Uut::opening(&Open { mode, ..stream() }, 1 << 30);
    uut.traffic(Control { rseq: 0, alloc: 1 << 30, echo: 0 }, limits);
    let (start, data) = (uut.now, bytes(total));
    let (mut written, mut left, mut times) = (0, total, Vec::new());
    for _ in 0..100_000 {
        written += uut.write(&data[written..]);
        let now = uut.now.since(start).as_secs_f64();
        for sent in uut.take().iter().filter(|sent| sent.format() == Format::Data) {
            times.push((now, sent.data().len()));
            left -= sent.data().len();
        }
        each(&mut uut, now);
        if left == 0 {
            break;
        }
        if written == total || uut.engine.deadline() > uut.now {
            uut.pass_to_deadline();
        }
    }
    assert_eq!(left, 0);
    times
}

#[test]
fn case_45_a_rate_is_kept_in_bursts() {
    let limits =
        Limits { data_len_max: 1_400, in_rate: 1_500_000, in_burst: 10_000, ..Limits::default() };
    let times = paced(limits, 1_000_000, |_, _| {});
    let last = times.last().unwrap().0;
    assert!((0.655..0.690).contains(&last), "{last}");
    let period = 10_000.0 / 1_500_000.0;
    for period_number in 0..110 {
        let begins = f64::from(period_number) * period - 1e-6;
        let within = times.iter().filter(|(at, _)| (begins..begins + period).contains(at));
        let bytes: usize = within.map(|(_, len)| len).sum();
        assert!(bytes <= 10_000, "{bytes} in period {period_number}");
    }
}

#[test]
fn case_46_a_burst_below_a_packet_does_not_stall() {
    let limits =
        Limits { data_len_max: 1_400, in_rate: 100_000, in_burst: 500, ..Limits::default() };
    let times = paced(limits, 140_000, |_, _| {});
    let last = times.last().unwrap().0;
    assert!((1.3..1.45).contains(&last), "{last}");
}

#[test]
fn case_47_a_rate_is_halved_under_way() {
    let limits =
        Limits { data_len_max: 1_000, in_rate: 1_000_000, in_burst: 10_000, ..Limits::default() };
    let mut is_halved = false;
    let times = paced(limits, 200_000, |uut, now| {
        if now >= 0.1 && !is_halved {
            is_halved = true;
            let limits = Limits { in_rate: 500_000, ..limits };
            uut.traffic(Control { rseq: 0, alloc: 1 << 30, echo: 0 }, limits);
        }
    });
    let last = times.last().unwrap().0;
    assert!(is_halved && (0.27..0.31).contains(&last), "{last}");
}

#[test]
fn limits_of_the_peer_outlast_a_change_of_ones_own() {
    let limits = Limits { in_rate: 1_000, in_burst: 100, ..Limits::default() };
    let mut uut = Uut::opening(&stream(), 1 << 20);
    uut.traffic(Control { rseq: 0, alloc: 1 << 20, echo: 0 }, limits);
    uut.engine.set_limits(uut.now, uut.id(), Limits::default()).unwrap();
    uut.write(&bytes(10_000));
    uut.pass(Duration::from_secs(1));
    let sent: usize =
        uut.take().iter().filter(|it| it.format() == Format::Data).map(|it| it.data().len()).sum();
    assert!(sent < 2_000, "{sent} bytes at once");
}

#[test]
fn case_48_however_the_stream_is_cut_again_it_is_the_same() {
    for seed in 0..30 {
        let random = &mut Random::from_number(seed);
        let mut uut = Uut::opened(listen(), None);
        let data = bytes(40_000);
        let ends: Vec<u64> = (1..=40).map(|place| place * 1_000).collect();
        let mut pieces = Vec::new();
        for _ in 0..4 {
            let mut at = 0;
            while at < data.len() {
                let end = (at / 1_000 + 1) * 1_000;
                let len = 1 + random.below(900) as usize;
                let to = (at + len).min(end);
                if !random.chance(0.1) {
                    pieces.push((at, to));
                }
                at = to;
            }
        }
        for at in (0..data.len()).step_by(1_000) {
            pieces.push((at, at + 1_000));
        }
        while !pieces.is_empty() {
            let (from, to) = pieces.swap_remove(random.below(pieces.len() as u64) as usize);
            let options = Options::EOM.when(ends.contains(&(to as u64)));
            uut.data(options, from as u64, &data[from..to]);
        }
        let (mut got, mut got_ends, mut buffer) = (Vec::new(), Vec::new(), vec![0; 9_000]);
        while let Read::Data { len, is_end, .. } =
            uut.engine.read(uut.now, uut.id(), &mut buffer).unwrap()
        {
            got.extend_from_slice(&buffer[..len]);
            if is_end {
                got_ends.push(got.len() as u64);
            }
        }
        assert!(got == data && got_ends == ends, "seed {seed}");
    }
}

#[test]
fn case_49_data_far_ahead_or_beyond_all_numbers_is_dropped() {
    let mut uut = Uut::opened(listen(), None);
    uut.data(Options::NONE, u64::MAX - 9, &[1; 20]);
    uut.data(Options::NONE, 1 << 40, &[1; 20]);
    uut.data(Options::SREQ, 65_530, &[1; 20]);
    let status = uut.take_one();
    assert_eq!((status.format(), status.control().rseq), (Format::Cntl, 0), "nothing is kept");
    assert_eq!(status.control().alloc, 65_536);
}

#[test]
fn case_66_the_urgent_leave_first_and_none_is_starved() {
    let mut uut = Uut::listening(Listen::on(PORT));
    let sorts = [None, Some(9), Some(1)];
    let open = |sort| Open { mode: Mode { sort, ..Mode::default() }, ..stream() };
    for sort in sorts {
        uut.engine.open(uut.now, &open(sort)).unwrap();
    }
    let order: Vec<u16> = uut.take().iter().map(|sent| sent.header().sort).collect();
    assert_eq!(order, [1, 9, 0]);
}

#[test]
fn a_closed_window_is_asked_for_and_its_opening_is_told() {
    let mut uut = Uut::opened(listen(), None);
    for at in (0..65_536).step_by(1_024) {
        uut.data(Options::NONE, at, &[1; 1_024]);
    }
    uut.silent();
    let mut got = 0;
    while let Read::Data { len, .. } = uut.read() {
        got += len;
    }
    assert_eq!(got, 65_536);
    assert_eq!(uut.take_one().control().alloc, 2 * 65_536);
}

#[test]
fn a_window_that_closed_before_there_was_anything_to_send_is_asked_for() {
    let config = Config { first_window: 0, ..Config::default() };
    let mut uut = Uut::opening_in(config, &stream(), 500);
    uut.write(&bytes(500));
    let asked = uut.take().last().unwrap().header().sync;
    uut.control(Options::NONE, Control { rseq: 500, alloc: 500, echo: asked });
    uut.write(b"more");
    uut.silent();
    uut.pass(Duration::from_secs(2));
    let probe = uut.take_one();
    assert_eq!((probe.format(), probe.has(Options::SREQ)), (Format::Cntl, true));
}

#[test]
fn a_reserved_window_is_what_the_user_has_posted() {
    let mode = Mode { reserve: true, ..Mode::default() };
    let mut uut = Uut::listening(Listen { mode, ..listen() });
    uut.give(first(4, None, b"", Options::SREQ));
    let answer = uut.take_one();
    assert_eq!((answer.control().alloc, answer.has(Options::RES)), (0, true));
    let Event::Incoming { id, .. } = uut.events[0] else { panic!("{:?}", uut.events) };
    uut.engine.post(uut.now, id, 5_000).unwrap();
    assert_eq!(uut.take_one().control().alloc, 5_000);
}

#[test]
fn new_limits_are_told_until_they_are_answered() {
    let mut uut = Uut::opening(&stream(), 1_000);
    let limits = Limits { in_rate: 5_000, in_burst: 500, ..Limits::default() };
    uut.engine.set_limits(uut.now, uut.id(), limits).unwrap();
    let told = |sent: &Sent| match sent.body() {
        dacapo_xtp::wire::Body::Tcntl(_, traffic) => traffic.limits.map(|l| l.in_rate),
        _ => None,
    };
    let sent = uut.take_one();
    assert_eq!((told(&sent), sent.has(Options::SREQ)), (Some(5_000), true));
    uut.pass_to_deadline();
    let again = uut.take_one();
    assert_eq!(told(&again), Some(5_000));
    let control = Control { rseq: 0, alloc: 1_000, echo: again.header().sync };
    uut.control(Options::NONE, control);
    uut.silent();
    assert_eq!(again.header().key.value(), KEY);
}

#[test]
fn a_peer_that_refuses_ends_the_association() {
    let mut uut = Uut::new(Config::default());
    let id = uut.engine.open(uut.now, &stream()).unwrap();
    let opened = uut.take_one();
    let mut peer_side = Uut::new(Config::default());
    peer_side.give_from(peer(), &opened.bytes);
    let refusal = peer_side.take_one();
    uut.give(refusal.bytes);
    let (code, reason) = (dacapo_xtp::wire::Code(1), dacapo_xtp::wire::Reason(1));
    assert_eq!(uut.events, [Event::Ended(id, End::Refused(code, reason))]);
    uut.silent();
}
