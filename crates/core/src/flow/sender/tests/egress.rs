//! The egress part of a sender, in each of its states.

use crate::flow::epoch::TxEpoch;
use crate::flow::sender::egress::{Egress, Pace};
use crate::flow::tests::{Bench, empty_graph, ms};
use dacapo_packet::Packet;
use dacapo_wire::data;

/// An epoch with so many units of `len` bytes through its graph.
fn epoch(bench: &mut Bench, count: usize, len: usize) -> TxEpoch {
    let mut epoch = TxEpoch::new(0, empty_graph(), 1);
    epoch.label_tx = 0xABCD_0000;
    for _ in 0..count {
        // The head stays free for the label.
        let packet = bench.pool.alloc(data::LEN, len, 0).unwrap();
        epoch.runner.feed(&mut bench.cx(), packet);
    }
    epoch.runner.run(&mut bench.cx());
    epoch
}

fn pop_all(egress: &mut Egress, bench: &mut Bench) -> Vec<Packet> {
    std::iter::from_fn(|| egress.pop(&mut bench.cx(), usize::MAX)).collect()
}

fn free(bench: &mut Bench, packets: Vec<Packet>) {
    packets.into_iter().for_each(|packet| bench.pool.free(packet));
}

#[test]
fn what_leaves_has_the_label_of_its_epoch_and_goes_in_order() {
    let mut bench = Bench::new();
    let mut egress = Egress::new(bench.now, Pace::Transport, 1 << 20);
    assert!(
        egress.is_empty()
            && egress.lets_pass(bench.now, 1 << 30)
            && egress.due(bench.now).is_none()
    );
    let mut epoch = epoch(&mut bench, 2, 100);
    egress.take_down(&mut bench.pool, &mut epoch);
    assert_eq!((egress.bytes(), egress.is_empty()), (2 * 105, false));
    assert_eq!(egress.due(bench.now), Some(bench.now), "the transport keeps the pace");
    let packets = pop_all(&mut egress, &mut bench);
    let header = data::Header { label: 0xABCD_0000 }.emit();
    let heads = packets.iter().flat_map(|it| (0..it.segment_count()).map(move |at| (it, at)));
    let heads: Vec<_> = heads.map(|(it, at)| bench.pool.segment(it, at)[..5].to_vec()).collect();
    assert_eq!(heads, [header.to_vec(), header.to_vec()]);
    assert_eq!((egress.bytes(), egress.is_empty()), (0, true));
    free(&mut bench, packets);
    assert_eq!(bench.pool.live_views(), 0);
}

#[test]
fn how_much_may_wait_follows_from_the_pace_within_bounds() {
    let now = Bench::new().now;
    for (pace, bytes_max, expected) in [
        (Pace::Transport, usize::MAX, 65_536),
        (Pace::Transport, 1, 1),
        (Pace::Bound(8_000_000), usize::MAX, 20_000),
        (Pace::Bound(8_000_000), 10_000, 10_000),
        (Pace::Bound(1), usize::MAX, 2_048),
        (Pace::Bound(u64::MAX), usize::MAX, 65_536),
    ] {
        assert_eq!(Egress::new(now, pace, bytes_max).bytes_max(), expected, "{pace:?}");
    }
}

#[test]
fn the_pace_lets_out_what_it_covers_and_says_when_it_covers_more() {
    let mut bench = Bench::new();
    // 1 byte in a microsecond, 2,000 at once.
    let mut egress = Egress::new(bench.now, Pace::Bound(8_000_000), 1 << 20);
    assert!(egress.lets_pass(bench.now, 2_000) && !egress.lets_pass(bench.now, 2_001));
    let mut epoch = epoch(&mut bench, 10, 995);
    egress.take_down(&mut bench.pool, &mut epoch);
    let first = pop_all(&mut egress, &mut bench);
    let sent: usize = first.iter().map(Packet::payload_len).sum();
    assert!((2_000..4_000).contains(&sent), "{sent}");
    assert_eq!(egress.bytes(), 10_000 - sent);
    let due = egress.due(bench.now).unwrap();
    let waits_us = due.since(bench.now).as_micros() as usize;
    assert_eq!(waits_us, sent - 2_000 + 500, "the debt, and what goes out in half a millisecond");
    // It rounds up, by a nanosecond at most.
    bench.now = dacapo_base::Time::from_nanos(due.as_nanos() - 2);
    assert!(egress.pop(&mut bench.cx(), usize::MAX).is_none(), "not before its time");
    bench.now = due;
    let then = egress.pop(&mut bench.cx(), usize::MAX).expect("at its time");
    assert!(egress.pop(&mut bench.cx(), usize::MAX).is_none());
    bench.pool.free(then);
    free(&mut bench, first);
    egress.clear(&mut bench.pool);
    assert_eq!((bench.pool.live_views(), egress.bytes()), (0, 0));
}

#[test]
fn over_a_long_time_no_more_leaves_than_the_bound() {
    let mut bench = Bench::new();
    let mut egress = Egress::new(bench.now, Pace::Bound(8_000_000), 1 << 20);
    let (mut sent, began) = (0, bench.now);
    for _ in 0..200 {
        let mut epoch = epoch(&mut bench, 2, 995);
        egress.take_down(&mut bench.pool, &mut epoch);
        let packets = pop_all(&mut egress, &mut bench);
        sent += packets.iter().map(Packet::payload_len).sum::<usize>();
        free(&mut bench, packets);
        bench.pass(ms(1));
    }
    let micros = bench.now.since(began).as_micros() as usize;
    assert!(sent <= micros + 4_000 && sent + 4_000 >= micros, "{sent} bytes in {micros} us");
}

#[test]
fn after_the_way_is_cut_nothing_waits_and_nothing_is_taken() {
    let mut bench = Bench::new();
    let mut egress = Egress::new(bench.now, Pace::Transport, 1 << 20);
    let mut one = epoch(&mut bench, 3, 100);
    egress.take_down(&mut bench.pool, &mut one);
    assert!(!egress.is_cut());
    egress.cut(&mut bench.pool);
    assert!(egress.is_cut() && egress.is_empty() && egress.bytes() == 0);
    let mut one = epoch(&mut bench, 3, 100);
    egress.take_down(&mut bench.pool, &mut one);
    assert!(egress.is_empty() && egress.pop(&mut bench.cx(), usize::MAX).is_none());
    assert_eq!(bench.pool.live_views(), 0);
}

#[test]
fn small_datagrams_that_wait_leave_as_one_train_within_what_a_call_takes() {
    let mut bench = Bench::new();
    let mut egress = Egress::new(bench.now, Pace::Transport, 1 << 20);
    let mut rest = bench.pool.alloc_arrival().unwrap();
    let layout = crate::flow::tests::layout(false);
    let mut epoch = TxEpoch::new(0, empty_graph(), 1);
    for _ in 0..100 {
        let packet = bench.pool.carve(&mut rest, &layout, 100).unwrap();
        epoch.runner.feed(&mut bench.cx(), packet);
        epoch.runner.run(&mut bench.cx());
        egress.take_down(&mut bench.pool, &mut epoch);
    }
    bench.pool.free(rest);
    let packets = pop_all(&mut egress, &mut bench);
    let counts: Vec<usize> = packets.iter().map(Packet::segment_count).collect();
    assert_eq!(counts.iter().sum::<usize>(), 100);
    assert_eq!(counts.first(), Some(&dacapo_packet::TRAIN_SEGMENTS_MAX));
    assert!(packets.iter().all(|it| it.segment_len(0) == 105));
    free(&mut bench, packets);
    assert_eq!(bench.pool.live_views(), 0);
}

#[test]
fn what_the_path_holds_back_waits_until_it_says_so_and_a_train_is_cut_to_what_it_allows() {
    let mut bench = Bench::new();
    let mut egress = Egress::new(bench.now, Pace::Transport, 1 << 20);
    let mut rest = bench.pool.alloc_arrival().unwrap();
    let layout = crate::flow::tests::layout(false);
    let mut epoch = TxEpoch::new(0, empty_graph(), 1);
    for _ in 0..10 {
        let packet = bench.pool.carve(&mut rest, &layout, 100).unwrap();
        epoch.runner.feed(&mut bench.cx(), packet);
    }
    bench.pool.free(rest);
    epoch.runner.run(&mut bench.cx());
    egress.take_down(&mut bench.pool, &mut epoch);
    assert!(egress.pop(&mut bench.cx(), 0).is_none() && egress.is_held());
    assert_eq!(egress.due(bench.now), None, "it is the path's to say when");
    let first = egress.pop(&mut bench.cx(), 3 * 105 + 50).unwrap();
    assert_eq!((first.segment_count(), egress.is_held()), (3, false));
    let one = egress.pop(&mut bench.cx(), 1).unwrap();
    assert_eq!(one.segment_count(), 1, "who may send anything may send a packet");
    let others = egress.pop(&mut bench.cx(), usize::MAX).unwrap();
    assert_eq!((others.segment_count(), egress.bytes()), (6, 0));
    assert!(egress.pop(&mut bench.cx(), 0).is_none() && !egress.is_held(), "nothing waits");
    free(&mut bench, vec![first, one, others]);
    assert_eq!(bench.pool.live_views(), 0);
}
