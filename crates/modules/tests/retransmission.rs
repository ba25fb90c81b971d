//! What `arq-nak` is for, over a wire that loses both ways: what is missing is asked for and comes,
//! nothing comes twice, what cannot come in time is told; and what is predicted of it, against what
//! happens.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::alone::{Alone, near_in_nine_of_ten};
use common::{
    Loss, Losses, MS, Place, World, checked, dropped, end, hoard, lossy, lost, ms, once, scenes,
    tell, unit,
};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Params, Properties, Property, Runner};
use dacapo_modules::retransmission::nak::{NOTE_NEEDLESS, SPEC};
use dacapo_wire::retransmission::{Header, Kind, LEN, RANGES_MAX, Range, ranges};
use std::time::Duration;

fn note(end: &End, code: u16) -> i64 {
    end.runner.notes().iter().find(|note| note.code == code).map_or(0, |note| note.value)
}

#[test]
fn of_ten_percent_losses_hardly_any_remain_and_order_is_kept_by_what_stands_above() {
    let places: &[Place<'_>] = &[
        ("segment", &[]),
        ("sequence", &[(0, 400 * MS)]),
        ("arq-nak", &[(0, 400 * MS)]),
        ("checksum", &[]),
    ];
    scenes::hardly_any_remain(places, 0.1, 1_000);
}

#[test]
fn each_packet_comes_or_is_told_as_lost() {
    for seed in 0..6 {
        let places: &[Place<'_>] = &[("arq-nak", &[(0, 150 * MS)])];
        let mut world = World::new(places, Loss::Single(0.3), ms(20), seed);
        let mut random = Random::from_number(seed);
        let count = 4_000;
        world.run((0..count).map(|n| unit(n, random.below(1_400) as usize)), ms(2));
        // `number` looks at every byte.
        let came = once(&world).len() as u64;
        // Of the last packets nobody may have heard.
        let told = came + lost(&world.b);
        assert!((count - 10..=count).contains(&told), "seed {seed}: {came}, {told} in all");
        assert!(came > count * 3 / 4 && came < count, "seed {seed}: {came} of {count}");
        for end in [&mut world.a, &mut world.b] {
            assert_eq!(end.pool.live_views(), 0, "seed {seed}: something waits for nothing");
            assert_eq!(end.runner.next_deadline(), None, "seed {seed}");
        }
    }
}

#[test]
fn the_last_packets_of_a_burst_are_missed_in_time() {
    for seed in 0..20 {
        let mut world =
            World::new(&[("arq-nak", &[(0, 200 * MS)])], Loss::Single(0.2), ms(1), seed);
        // Bursts of six, a minute apart: each is over before the next begins.
        for burst in 0..100 {
            world.run((burst * 6..burst * 6 + 6).map(|n| unit(n, 700)), Duration::ZERO);
        }
        let missing = 600 - once(&world).len();
        // Nothing says so where both announcements are lost too: 8 of 1,000 tails.
        assert!(missing <= 10, "seed {seed}: {missing} of 600 are missing");
    }
}

#[test]
fn what_is_only_overtaken_is_hardly_asked_for() {
    let mut world = World::new(&[("arq-nak", &[])], Loss::Single(0.0), ms(12), 5);
    let count = 20_000;
    world.run((0..count).map(|number| unit(number, 20)), ms(2));
    assert_eq!(once(&world).len() as u64, count);
    // Each overtakes several others here; at first nobody knows.
    let needless = note(&world.b, NOTE_NEEDLESS);
    assert!(needless < 20, "{needless} of {count} were asked for needlessly");
    assert!(world.sent[1] < 20, "{} askings", world.sent[1]);
    let duplicates = dropped(&world.b, DropReason::Duplicate);
    assert_eq!(duplicates, needless as u64);
    [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
}

#[test]
fn it_stands_below_sequence_and_needs_a_way_back() {
    let both = &[Property::Boundaries, Property::WayBack];
    let graph: &[Place<'_>] = &[("segment", &[]), ("sequence", &[]), ("arq-nak", &[])];
    assert_eq!(checked(graph, both), Ok(()));
    let illegal = checked(graph, &[Property::Boundaries]).unwrap_err().to_string();
    let text = "\"arq-nak\" needs a way back from below, which neither a module nor the transport \
                gives";
    assert_eq!(illegal, text);
    let illegal = checked(&[("segment", &[]), ("arq-nak", &[]), ("sequence", &[])], both);
    let text = "\"arq-nak\" must stand below \"sequence\", which does ordering";
    assert_eq!(illegal.unwrap_err().to_string(), text);
    let below = Properties::of(&[Property::Boundaries, Property::Order]);
    let above = SPEC.above(&[], below);
    assert_eq!(above, Properties::of(&[Property::Boundaries, Property::NoDuplicates]));
}

fn within(ms: u64) -> Params {
    let mut params = Params::new();
    params.set(0, ms * MS);
    params
}

#[test]
fn as_much_is_lost_as_is_predicted() {
    for (loss_ppb, burst_milli) in
        [(50_000_000, 1_000), (20_000_000, 5_000), (100_000_000, 3_000), (5_000_000, 10_000)]
    {
        let every = ms(2);
        let (setting, below) = lossy(loss_ppb, burst_milli, every);
        let mut tried = SPEC.profile.points(&setting, &below);
        tried.extend([within(60), within(150), within(20)]);
        for params in tried {
            let alone = Alone { spec: &SPEC, params, loss_ppb, burst_milli, every, seed: 7 };
            alone.loses_as_much_as_is_predicted();
        }
    }
}

/// Paths, flows and deadlines off the points that are proposed: no deadline is shorter than what
/// one answer takes, as none is that is proposed.
#[test]
fn what_is_predicted_is_near_in_nine_of_ten() {
    near_in_nine_of_ten(|seed| {
        let mut random = Random::from_number(seed ^ 0xA49);
        let every = Duration::from_micros(500 + random.below(20_000));
        let loss_ppb = random.below(150) * 1_000_000;
        let burst_milli = 1_000 + random.below(4_000);
        let deadline_ms = 65 + random.below(400);
        let params = within(deadline_ms);
        // What is lost is known to be so by its deadline.
        let given_up_ns = lossy(loss_ppb, burst_milli, every).1.figures.delay_ns + deadline_ms * MS;
        Alone { spec: &SPEC, params, loss_ppb, burst_milli, every, seed }.near(Some(given_up_ns))
    });
}

/// The first module's datagrams: number and kind.
fn seen(datagrams: &[Vec<u8>]) -> Vec<(u32, Kind)> {
    let header = |bytes: &Vec<u8>| Header::parse(bytes).map(|it| (it.number, it.kind)).unwrap();
    datagrams.iter().map(header).collect()
}

fn asked(datagram: &[u8]) -> Vec<Range> {
    ranges(&datagram[LEN..]).unwrap().collect()
}

#[test]
fn a_run_is_asked_for_at_once_and_comes_again_as_the_train_it_was() {
    let mut a = end(&[("segment", &[]), ("arq-nak", &[])], 20_000);
    let mut b = end(&[("segment", &[]), ("arq-nak", &[])], 20_000);
    assert!(a.feed(&unit(7, 14_000)));
    let sent = a.wire();
    // 2 to 5 are lost.
    for datagram in sent[..2].iter().chain(&sent[6..]) {
        assert!(b.handle_bytes(datagram));
    }
    b.fire();
    let asking = b.wire();
    assert_eq!(asking.len(), 1);
    assert_eq!(asked(&asking[0]), [Range { first: 2, count: 4, attempt: 1 }]);
    assert!(a.handle_bytes(&asking[0]));
    let trains: Vec<usize> =
        a.runner.take_down().drain().map(|it| (it.segment_count(), a.pool.free(it)).0).collect();
    assert_eq!(trains, [4]);
    assert!(a.handle_bytes(&asking[0]));
    let again = a.wire();
    let expected: Vec<_> = (2..6).map(|number| (number, Kind::Again(1))).collect();
    assert_eq!(seen(&again), expected);
    again.iter().for_each(|datagram| assert!(b.handle_bytes(datagram)));
    assert_eq!(b.units(), [unit(7, 14_000)]);
    let notes = b.runner.notes().iter().map(|note| (SPEC.note_name(note.code), note.value));
    assert_eq!(notes.collect::<Vec<_>>(), [("packets_repaired".to_owned(), 4)]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn nothing_is_asked_for_that_would_come_too_late() {
    let mut a = end(&[("arq-nak", &[(0, 100 * MS)])], 1_000);
    let mut b = end(&[("arq-nak", &[(0, 100 * MS)])], 1_000);
    let mut feed = |at: u64| {
        assert!(a.feed(&unit(at, 20)));
        a.wire().remove(0)
    };
    let datagrams: Vec<_> = (0..8).map(&mut feed).collect();
    // It is learned that an answer takes 60 ms.
    assert!(b.handle_bytes(&datagrams[0]) && b.handle_bytes(&datagrams[2]));
    b.fire();
    let asking = b.wire().remove(0);
    b.now += ms(60);
    assert!(a.handle_bytes(&asking));
    assert!(b.handle_bytes(&a.wire()[0]));
    // 3 is missing, and nobody answers: as those before came at once, it should have come now.
    assert!(b.handle_bytes(&datagrams[4]));
    b.fire();
    assert_eq!(b.wire().len(), 1);
    let by = b.now + ms(100);
    // There is no time for another asking after this one, which is repeated, and so far apart: an
    // answer to the last would come 12.5 ms before it is too late.
    for later in [Duration::from_millis(15), Duration::from_micros(12_500)] {
        b.now += later;
        assert_eq!(b.runner.next_deadline(), Some(b.now));
        b.fire();
        assert_eq!(b.wire().len(), 1);
    }
    // What may have been sent since is asked for, and it no more.
    while let Some(due) = b.runner.next_deadline().filter(|due| *due < by) {
        b.now = due;
        b.fire();
        let asked = b.wire().iter().flat_map(|datagram| asked(datagram)).collect::<Vec<_>>();
        assert!(asked.iter().all(|range| range.first >= 5), "{asked:?}");
    }
    b.now = by;
    b.fire();
    assert_eq!(lost(&b), 1);
    assert!(b.handle_bytes(&datagrams[3]));
    assert_eq!(dropped(&b, DropReason::Stale), 1);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn the_deadline_changes_while_it_runs() {
    let mut b = end(&[("arq-nak", &[])], 1_000);
    let packet = |number| [&Header { number, kind: Kind::First }.emit()[..], b"abc"].concat();
    tell(&mut b, 1, 30 * MS);
    assert!(b.handle_bytes(&packet(0)) && b.handle_bytes(&packet(2)));
    assert_eq!(b.runner.patience(), ms(30));
    // What is missed before the next change has its own time; what is missed after it has that.
    tell(&mut b, 1, 500 * MS);
    b.now += ms(29);
    assert!(b.handle_bytes(&packet(4)));
    b.now += ms(1);
    b.fire();
    assert_eq!(lost(&b), 1);
    b.now += ms(470);
    b.fire();
    assert_eq!(lost(&b), 1);
    b.now += ms(30);
    b.fire();
    assert_eq!(lost(&b), 2);
    b.flush();
}

#[test]
fn who_keeps_for_longer_than_is_asked_and_the_other_way_round() {
    for (keeps, asks) in [(500, 100), (50, 300)] {
        let mut world = World::new(&[("arq-nak", &[])], Loss::Single(0.2), ms(3), keeps);
        tell(&mut world.a, 1, keeps * MS);
        tell(&mut world.b, 1, asks * MS);
        let count = 4_000;
        world.run((0..count).map(|number| unit(number, 50)), ms(2));
        let came = once(&world).len() as u64;
        // An answer takes 40 ms and some: 50 are enough for the first question, if it comes.
        assert!(came > count * 85 / 100, "{keeps}, {asks}: {came}");
        assert!((count - 4..=count).contains(&(came + lost(&world.b))), "{keeps}, {asks}");
        // Three for each that is lost, and no more.
        assert!(world.sent[0] < count * 8 / 5, "{keeps}, {asks}: {} sent", world.sent[0]);
    }
}

/// A question or its answer is lost in 9.75 %: 488 of 100,000 packets stay lost where each is asked
/// for once, and 47 where it is asked twice.
#[test]
fn where_one_answer_can_come_in_time_it_is_asked_for_three_times() {
    let (count, mut all_lost) = (20_000, 0);
    for seed in 0..5 {
        let mut world =
            World::new(&[("arq-nak", &[(0, 75 * MS)])], Loss::Single(0.05), ms(1), seed);
        world.run((0..count).map(|number| unit(number, 50)), ms(1));
        all_lost += lost(&world.b);
        let most = count * 120 / 100;
        assert!(world.sent[0] < most, "seed {seed}: {} sent", world.sent[0]);
    }
    assert!((1..15).contains(&all_lost), "{all_lost} lost of 100,000");
}

/// Runs of 20 ms on average, and 20 ms to spare: of what is lost 38 % shows too late for an answer.
#[test]
fn a_run_is_asked_for_before_it_is_over() {
    let (count, every) = (20_000, ms(2));
    let (mut all_lost, mut again) = (0, 0);
    for seed in 0..5 {
        let losses = Loss::Runs(Box::new(Losses::new(0.05, 10.0, every, seed)));
        let mut world = World::new(&[("arq-nak", &[(0, 62 * MS)])], losses, Duration::ZERO, seed);
        world.run((0..count).map(|number| unit(number, 50)), every);
        let came = once(&world).len() as u64;
        // Of the last packets nobody may have heard.
        assert!((count - 40..=count).contains(&(came + lost(&world.b))), "seed {seed}: {came}");
        all_lost += lost(&world.b);
        again += world.sent[0] - count;
    }
    let (all_lost, again) = (all_lost as f64 / 5_000.0, again as f64 / 100_000.0);
    println!(
        "{:.1} % of what was lost stays so, {:.1} % sent again",
        all_lost * 100.0,
        again * 100.0
    );
    // Each is asked for three times at most.
    assert!(all_lost < 0.2 && again < 0.16, "{all_lost:.3}, {again:.3}");
}

/// Two ends after packets every 2 ms up to 39, of which it was learned that an answer takes 20 ms;
/// and what is asked for in 15 ms in which nothing comes.
fn paused() -> (End, End, Vec<Vec<u8>>) {
    let mut a = end(&[("arq-nak", &[])], 1_000);
    let mut b = end(&[("arq-nak", &[])], 1_000);
    for number in 0..40 {
        (a.now, b.now) = (a.now + ms(2), b.now + ms(2));
        assert!(a.feed(&unit(number, 20)));
        let sent = a.wire();
        if number != 4 {
            sent.iter().for_each(|datagram| assert!(b.handle_bytes(datagram)));
        }
        if number == 5 {
            b.fire();
        }
        if number == 15 {
            let asking = b.wire();
            assert!(a.handle_bytes(&asking[0]));
            a.wire().iter().for_each(|datagram| assert!(b.handle_bytes(datagram)));
        }
    }
    assert_eq!(b.units().len(), 40);
    let mut asked_for = Vec::new();
    for _ in 0..15 {
        b.now += ms(1);
        b.fire();
        asked_for.extend(b.wire());
    }
    assert!(!asked_for.is_empty(), "nothing shows that it pauses");
    a.now = b.now;
    (a, b, asked_for)
}

#[test]
fn a_sender_that_pauses_is_asked_and_sends_nothing_twice() {
    let (mut a, mut b, asked_for) = paused();
    assert!(a.feed(&unit(40, 20)));
    let sent = a.wire();
    asked_for.iter().for_each(|asking| assert!(a.handle_bytes(asking)));
    assert!(a.wire().is_empty(), "it had not left");
    a.now += ms(21);
    asked_for.iter().for_each(|asking| assert!(a.handle_bytes(asking)));
    assert!(seen(&a.wire()).contains(&(40, Kind::Again(1))), "it could have come by now");
    sent.iter().for_each(|datagram| assert!(b.handle_bytes(datagram)));
    assert_eq!(b.units().len(), 1);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn what_had_not_left_when_it_was_asked_for_is_asked_for_at_once_when_it_is_missing() {
    let (mut a, mut b, _) = paused();
    let [_, second] = [40, 41].map(|number| {
        (a.now, b.now) = (a.now + ms(2), b.now + ms(2));
        assert!(a.feed(&unit(number, 20)));
        a.wire().remove(0)
    });
    assert!(b.handle_bytes(&second));
    b.fire();
    let asked: Vec<Range> = b.wire().iter().flat_map(|datagram| asked(datagram)).collect();
    assert_eq!(asked, [Range { first: 40, count: 1, attempt: 1 }]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn numbers_go_on_where_32_bits_end() {
    let mut b = end(&[("arq-nak", &[])], 1_000);
    b.with(|runner, _| runner.join());
    let packet = |number| [&Header { number, kind: Kind::First }.emit()[..], b"abc"].concat();
    // Three are missing around the end.
    for number in [u32::MAX - 4, u32::MAX - 3, u32::MAX - 2, 1, 2] {
        assert!(b.handle_bytes(&packet(number)));
    }
    b.fire();
    let first = u32::MAX - 1;
    assert_eq!(asked(&b.wire()[0]), [Range { first, count: 3, attempt: 1 }]);
    [u32::MAX, 0, 0].into_iter().for_each(|number| assert!(b.handle_bytes(&packet(number))));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Duplicate)), (7, 1));
    b.flush();
    assert_eq!(lost(&b), 1, "what is missing at the end is told");
}

#[test]
fn what_one_packet_or_announcement_says_far_ahead_is_not_believed_at_once() {
    let mut b = end(&[("arq-nak", &[])], 1_000);
    let first = |number| [&Header { number, kind: Kind::First }.emit()[..], b"abc"].concat();
    let said = |number| [&Header { number, kind: Kind::Newest }.emit()[..], &[0; 4]].concat();
    assert!(
        b.handle_bytes(&first(0)) && b.handle_bytes(&first(2_000)) && b.handle_bytes(&said(900))
    );
    b.fire();
    assert_eq!((b.wire().len(), b.runner.next_deadline()), (0, None));
    assert!(b.handle_bytes(&first(1)) && b.handle_bytes(&said(900)) && b.handle_bytes(&said(900)));
    b.fire();
    assert_eq!(asked(&b.wire()[0]), [Range { first: 2, count: 898, attempt: 1 }]);
    assert_eq!(b.units().len(), 2);
    b.flush();
}

#[test]
fn askings_that_no_peer_makes_cost_no_more_than_was_sent() {
    let mut a = end(&[("arq-nak", &[])], 1_000);
    for number in 0..200 {
        assert!(a.feed(&unit(number, 20)));
    }
    assert_eq!(a.wire().len(), 200);
    let storm = |first: u32, attempt| {
        let range = Range { first, count: u16::MAX, attempt };
        let head = Header { number: 0, kind: Kind::Asked }.emit();
        [&head[..], &range.emit().repeat(RANGES_MAX)].concat()
    };
    assert!(a.handle_bytes(&storm(0, 1)));
    let mut again = a.wire().len();
    assert!((100..=128).contains(&again), "{again} at once");
    for attempt in 1..=15 {
        for first in [0, 100, 1_000_000, u32::MAX - 5] {
            assert!(a.handle_bytes(&storm(first, attempt)));
            again += a.wire().len();
        }
    }
    assert!(again <= 200, "{again} were sent again of 200");
    // Kinds, lengths and ages that nobody sends.
    let malformed: [&[u8]; 4] =
        [&[0; 4], &[0, 0, 0, 0, 77], &[0, 0, 0, 0, 254, 1], &[0, 0, 0, 0, 255]];
    malformed.iter().for_each(|bytes| assert!(a.handle_bytes(bytes)));
    assert_eq!(dropped(&a, DropReason::Malformed), 4);
    a.now += ms(10_000);
    a.fire();
    a.wire();
    assert_eq!(a.pool.live_views(), 0, "nothing is kept longer than it is of use");
    a.flush();
}

#[test]
fn a_number_far_ahead_is_believed_when_the_next_confirms_it() {
    let mut b = end(&[("arq-nak", &[])], 1_000);
    let packet = |number| [&Header { number, kind: Kind::First }.emit()[..], b"abc"].concat();
    assert!(b.handle_bytes(&packet(0)) && b.handle_bytes(&packet(9_000_000)));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Overflow)), (1, 1));
    assert!(b.handle_bytes(&packet(9_000_001)));
    assert_eq!((b.units().len(), lost(&b)), (1, 9_000_000 - 4_096));
    b.now += ms(1_000);
    b.fire();
    assert_eq!(lost(&b), 9_000_000, "the one that confirmed nothing is among them");
    // An announcement far ahead is not believed at all.
    let far = [&Header { number: 90_000_000, kind: Kind::Newest }.emit()[..], &[0; 4]].concat();
    assert!(b.handle_bytes(&far));
    b.now += ms(1_000);
    b.fire();
    assert_eq!((lost(&b), b.runner.next_deadline()), (9_000_000, None));
    b.flush();
}

#[test]
fn drain_says_how_far_the_sender_is() {
    let mut a = end(&[("arq-nak", &[])], 1_000);
    let mut b = end(&[("arq-nak", &[])], 1_000);
    (0..3).for_each(|number| assert!(a.feed(&unit(number, 20))));
    let sent = a.wire();
    a.with(Runner::drain);
    let told = a.wire();
    assert_eq!(seen(&told), [(3, Kind::Newest)]);
    assert!(b.handle_bytes(&sent[0]) && b.handle_bytes(&told[0]));
    b.fire();
    assert_eq!(asked(&b.wire()[0]), [Range { first: 1, count: 2, attempt: 1 }]);
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

#[test]
fn without_memory_nothing_is_sent_again_and_that_is_counted() {
    let mut a = end(&[("arq-nak", &[])], 1_000);
    (0..3).for_each(|number| assert!(a.feed(&unit(number, 20))));
    a.wire();
    let asking = [
        &Header { number: 0, kind: Kind::Asked }.emit()[..],
        &Range { first: 0, count: 3, attempt: 1 }.emit(),
    ]
    .concat();
    let packet = a.pool.packet_from(0, &asking, 0).unwrap();
    let hoard = hoard(&mut a);
    a.handle(packet);
    assert_eq!(a.wire().len(), 0);
    assert_eq!(dropped(&a, DropReason::NoMemory), 1);
    hoard.into_iter().for_each(|packet| a.pool.free(packet));
    a.flush();
}
