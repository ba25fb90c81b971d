//! Cases 22 to 32: how associations begin, and who may not begin one.

use crate::common::uut::{KEY, PORT, Uut, first, packet, peer, stream};
use crate::common::vectors;
use dacapo_base::Random;
use dacapo_xtp::wire::{
    Body, Control, Format, Header, Key, Limits, Options, Payload, checksum, sum,
};
use dacapo_xtp::{Config, End, Event, Listen, Read, Timers};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

fn reseal(packet: &mut [u8]) {
    if packet.len() < 32 {
        return;
    }
    let len = packet.len() as u32 - 32;
    packet[12..16].copy_from_slice(&len.to_be_bytes());
    packet[16..18].fill(0);
    let covered = if packet[8] & 0x40 == 0 { packet.len() } else { 32 };
    let check = checksum(sum(&[&packet[..covered]]));
    packet[16..18].copy_from_slice(&check.to_be_bytes());
}

#[test]
fn case_22_whatever_comes_is_survived_and_never_answered_with_more_than_three_times_as_much() {
    let random = &mut Random::from_number(22);
    let config = Config { contexts_max: 50, inactive_max: 50, ..Config::default() };
    let mut uut = Uut::new(config);
    uut.engine.listen(Listen { backlog_max: 1_000, ..Listen::on(PORT) }).unwrap();
    let mut balance: HashMap<SocketAddr, (u64, u64)> = HashMap::new();
    for _ in 0..100_000 {
        let (_, hex) = vectors::GOOD[random.below(20) as usize];
        let mut bytes = crate::common::bytes(hex);
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u32() as u8;
        }
        if random.chance(0.9) {
            reseal(&mut bytes);
        }
        let from: SocketAddr = ([198, 51, 100, random.below(200) as u8], 4_040).into();
        balance.entry(from).or_default().0 += bytes.len() as u64;
        uut.give_from(from, &bytes);
        uut.pass(Duration::from_micros(random.below(3_000)));
        for sent in uut.take() {
            balance.entry(sent.to).or_default().1 += sent.bytes.len() as u64;
        }
        assert!(uut.engine.context_count() <= 50 && uut.engine.inactive_count() <= 50);
    }
    let counters = uut.engine.counters();
    assert!(counters.taken > 100 && counters.diagnostics > 1_000, "{counters:?}");
    for (from, (received, sent)) in balance {
        assert!(sent <= 3 * received, "{from}: {sent} bytes for {received}");
    }
}

#[test]
fn case_23_who_opens_is_answered_with_limits_window_and_key() {
    let mut uut = Uut::listening(Listen::on(PORT));
    uut.give(vectors::good("first+a+t"));
    let answer = uut.take_one();
    assert_eq!(answer.to, peer());
    assert_eq!(answer.header().key, Key::returned(KEY));
    let Body::Tcntl(control, traffic) = answer.body() else { panic!("{answer:?}") };
    assert!(control.xkey != 0 && control.xkey >> 63 == 0);
    assert_eq!((control.control.rseq, control.control.echo), (0, 1));
    assert!(control.control.alloc > 0);
    assert_eq!(traffic.service, 4);
}

#[test]
fn case_24_the_data_of_the_first_packet_is_there_at_once() {
    let mut uut = Uut::listening(Listen::on(PORT));
    uut.give(vectors::good("first+a+t+data"));
    let [Event::Incoming { id, port: PORT }, Event::Readable(_)] = uut.events[..] else {
        panic!("{:?}", uut.events)
    };
    uut.id = Some(id);
    assert_eq!(uut.read(), Read::Data { len: 11, is_end: true, tag: None });
    assert_eq!(uut.take_one().control().rseq, 11);
}

#[test]
fn case_25_a_first_packet_that_comes_again_opens_nothing_new() {
    let mut uut = Uut::listening(Listen::on(PORT));
    for _ in 0..3 {
        uut.give(vectors::good("first+a+t+data"));
        assert_eq!(uut.take_one().format(), Format::Tcntl);
    }
    assert_eq!(uut.engine.context_count(), 1);
    let Event::Incoming { id, .. } = uut.events[0] else { panic!("{:?}", uut.events) };
    uut.id = Some(id);
    assert_eq!(uut.read_bytes(), b"hello world");
    assert_eq!(uut.read(), Read::Nothing);
}

#[test]
fn case_26_the_same_key_from_elsewhere_is_another_association() {
    let mut uut = Uut::listening(Listen::on(PORT));
    uut.give(vectors::good("first+a+t"));
    uut.give_from(([203, 0, 113, 9], 4_040).into(), &vectors::good("first+a+t"));
    assert_eq!(uut.take().len(), 2);
    assert_eq!(uut.engine.context_count(), 2);
}

#[test]
fn case_27_a_first_packet_with_a_returned_key_opens_nothing() {
    let mut uut = Uut::listening(Listen::on(PORT));
    let mut bytes = vectors::good("first+a+t");
    bytes[0] |= 0x80;
    reseal(&mut bytes);
    uut.give(bytes);
    uut.silent();
    assert_eq!(uut.engine.context_count(), 0);
}

#[test]
fn case_28_without_a_listener_it_is_said_so() {
    let mut uut = Uut::new(Config::default());
    uut.give(vectors::good("first+a+t"));
    let answer = uut.take_one();
    assert_eq!(answer.diagnostic(), (1, 1));
    assert_eq!(answer.header().key, Key::returned(KEY));
    assert_eq!(uut.engine.context_count(), 0);
}

#[test]
fn case_29_data_for_nobody_is_answered_once_and_a_diagnostic_never() {
    let mut uut = Uut::new(Config::default());
    uut.give(vectors::good("data"));
    let answer = uut.take_one();
    assert_eq!(answer.diagnostic(), (3, 0));
    assert_eq!(answer.header().key, Key::own(0x00AB_CDEF));
    uut.give(vectors::good("diag"));
    uut.silent();
}

#[test]
fn case_30_who_is_not_answered_asks_less_and_less_often_and_gives_up() {
    let timers = Timers { retries_max: 5, ..Timers::default() };
    let mut uut = Uut::new(Config { timers, ..Config::default() });
    let id = uut.engine.open(uut.now, &stream()).unwrap();
    let (mut times, mut syncs, mut ends) = (Vec::new(), Vec::new(), 0);
    for _ in 0..20 {
        for sent in uut.take() {
            if sent.has(Options::END) {
                ends += 1;
                continue;
            }
            assert_eq!((sent.format(), sent.header().seq), (Format::First, 0));
            times.push(uut.now);
            syncs.push(sent.header().sync);
        }
        uut.pass_to_deadline();
    }
    assert_eq!(times.len(), 6, "the first one and five more");
    assert!(times.windows(3).all(|three| three[2].since(three[1]) >= three[1].since(three[0])));
    assert!(syncs.windows(2).all(|two| two[1] == two[0].wrapping_add(1)));
    assert_eq!(ends, 1);
    assert_eq!(uut.events, [Event::Ended(id, End::TimedOut)]);
    uut.engine.release(uut.now, id).unwrap();
    assert_eq!((uut.engine.context_count(), uut.engine.inactive_count()), (0, 0));
}

#[test]
fn case_31_the_key_that_is_offered_is_used_from_then_on() {
    let mut uut = Uut::opening(&stream(), 1_000);
    uut.write(b"hello");
    let sent = uut.take_one();
    assert_eq!(sent.header().key, Key::returned(KEY));
    assert_eq!(sent.data(), b"hello");
}

#[test]
fn case_32_the_right_key_from_elsewhere_changes_nothing() {
    let mut uut = Uut::opened(Listen::on(PORT), None);
    let header = Header {
        options: Options::SREQ | Options::END,
        ..Header::new(Key::returned(uut.xkey), Format::Data)
    };
    let forged = packet(&header, &Body::Data(Payload { tag: None, data: b"forged" }));
    uut.give_from(([203, 0, 113, 9], 4_040).into(), &forged);
    uut.silent();
    assert_eq!(uut.engine.counters().misdirected, 1);
    uut.data(Options::NONE, 0, b"true");
    assert_eq!(uut.read_bytes(), b"true");
}

#[test]
fn a_flood_of_openers_is_bounded_by_the_backlog_and_told_a_few_times() {
    let mut uut = Uut::listening(Listen { backlog_max: 8, ..Listen::on(PORT) });
    // The events are not taken, so none of them leaves the backlog.
    for key in 1..=1_000 {
        let mut bytes = first(4, None, b"x", Options::SREQ);
        bytes[..8].copy_from_slice(&u64::to_be_bytes(key));
        reseal(&mut bytes);
        uut.engine.handle_packet(uut.now, peer(), &bytes);
    }
    assert_eq!(uut.engine.context_count(), 8);
    assert_eq!(uut.engine.counters().refused, 992);
    let refusals = uut.take().into_iter().filter(|sent| sent.format() == Format::Diag);
    let refusals: Vec<(u32, u32)> = refusals.map(|sent| sent.diagnostic()).collect();
    assert_eq!(refusals, vec![(1, 9); 10], "ten in a second, context refused: no resource");
}

#[test]
fn a_storm_of_requests_is_answered_once_per_turn() {
    let mut uut = Uut::opened(Listen::on(PORT), None);
    for _ in 0..1_000 {
        uut.control(Options::SREQ, Control { rseq: 0, alloc: 1 << 20, echo: 0 });
    }
    assert_eq!(uut.take_one().format(), Format::Cntl);
}

#[test]
fn a_context_is_found_among_ten_thousand() {
    let mut uut = Uut::listening(Listen { backlog_max: 20_000, ..Listen::on(PORT) });
    for key in 1..=10_001 {
        let mut bytes = first(4, None, b"", Options::SREQ);
        bytes[..8].copy_from_slice(&u64::to_be_bytes(key));
        reseal(&mut bytes);
        uut.give(bytes);
    }
    assert_eq!(uut.engine.context_count(), 10_000);
    assert_eq!(uut.engine.counters().refused, 1);
    assert_eq!(uut.take().len(), 10_001);
    let header = Header { options: Options::SREQ, ..Header::new(Key::own(7_777), Format::Data) };
    uut.give(packet(&header, &Body::Data(Payload { tag: None, data: b"you" })));
    let answer = uut.take_one();
    assert_eq!((answer.header().key, answer.control().rseq), (Key::returned(7_777), 3));
}

#[test]
fn an_unproven_peer_gets_no_more_than_three_times_what_it_sent() {
    let mut uut = Uut::listening(Listen::on(PORT));
    let request = first(3, None, b"give me much", Options::SREQ | Options::WCLOSE | Options::EOM);
    let received = request.len();
    uut.give(request);
    let Event::Incoming { id, .. } = uut.events[0] else { panic!("{:?}", uut.events) };
    uut.id = Some(id);
    uut.write(&[7; 30_000]);
    let mut sent: usize = uut.take().iter().map(|sent| sent.bytes.len()).sum();
    for _ in 0..50 {
        uut.pass_to_deadline();
        sent += uut.take().iter().map(|sent| sent.bytes.len()).sum::<usize>();
    }
    assert!(sent <= 3 * received, "{sent} bytes for {received}");
}

#[test]
fn limits_that_are_smaller_hold() {
    let limits = Limits { data_len_max: 500, ..Limits::default() };
    let mut uut = Uut::opened(Listen::on(PORT), Some(limits));
    uut.write(&[1; 2_000]);
    assert!(uut.take().iter().all(|sent| sent.data().len() <= 500));
}
