//! The epochs part of a receiver, in each of its states.

use crate::flow::epoch::RxEpoch;
use crate::flow::receiver::Keeping;
use crate::flow::receiver::epochs::RxEpochs;
use crate::flow::tests::{Bench, at, empty_graph, ms, slow_graph};
use crate::queues::Queues;
use dacapo_lift::Runner;
use dacapo_wire::data;
use dacapo_wire::unit::Kind;

struct Rig {
    bench: Bench,
    epochs: RxEpochs,
}

fn epoch(number: u64, ordered: bool) -> RxEpoch {
    RxEpoch::new(number, empty_graph(), 10 + number as u32, ordered)
}

impl Rig {
    fn new(ordered: bool) -> Self {
        let bench = Bench::new();
        let queues = Queues { held_units_max: 2, feedback_packets_max: 2, ..Queues::default() };
        let epochs = RxEpochs::new(epoch(0, ordered), bench.now, &queues, Keeping::Nothing);
        Self { bench, epochs }
    }

    /// The places of the units that may be passed on when one has come.
    fn come(&mut self, at: usize, place: u64) -> Vec<u64> {
        let packet = self.bench.unit(place, &[1; 10]);
        self.epochs.handle_packet(&mut self.bench.cx(), at, packet);
        self.poll(at, false)
    }

    fn poll(&mut self, at: usize, may_come: bool) -> Vec<u64> {
        let mut places = Vec::new();
        while let Some(mut it) = self.epochs.poll_unit(&mut self.bench.cx(), at, may_come) {
            places.push(it.place);
            it.chain.free(&mut self.bench.pool);
        }
        places
    }

    fn mark(&mut self, at: usize, kind: Kind, epoch: u64, number: u64) {
        let packet = self.bench.mark(kind, epoch, number);
        self.epochs.handle_packet(&mut self.bench.cx(), at, packet);
        assert!(self.poll(at, false).is_empty());
    }

    /// The number of the first unit of the epoch at this place, once it is known.
    fn base(&self, at: usize) -> Option<u64> {
        let number = self.epochs.number(at, 0).map(|(number, _)| number);
        number.filter(|_| self.epochs.has_base(at))
    }

    fn held(&mut self, at: usize) -> usize {
        let held = self.epochs.take_held(at);
        let count = held.len();
        held.into_iter().for_each(|mut it| it.chain.free(&mut self.bench.pool));
        count
    }
}

#[test]
fn units_of_the_first_epoch_go_up_as_they_come() {
    let mut rig = Rig::new(true);
    assert_eq!((rig.come(0, 0), rig.come(0, 2), rig.come(0, 1)), (vec![0], vec![2], vec![1]));
    assert!(rig.epochs.is_released(0) && rig.epochs.is_quiet());
    assert_eq!((rig.epochs.number(0, 7), rig.epochs.number(1, 7)), (Some((7, true)), None));
    assert!(rig.epochs.has_base(0) && !rig.epochs.has_base(1));
    assert_eq!((rig.epochs.position(0), rig.epochs.position(1)), (Some(0), None));
    assert!(rig.epochs.boundary().is_none());
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn an_ordered_epoch_waits_for_the_one_before_and_an_unordered_one_for_its_base_only() {
    for (ordered, before, after) in [(true, vec![], vec![]), (false, vec![], vec![1])] {
        let mut rig = Rig::new(ordered);
        rig.epochs.prepare(epoch(1, ordered));
        assert_eq!(rig.come(1, 0), before, "its base is not known");
        rig.epochs.learn_base(at(1_000), 1, 5);
        assert_eq!(rig.come(1, 1), after, "ordered: {ordered}");
        assert_eq!(rig.epochs.is_released(1), !ordered);
        assert_eq!(rig.held(1), if ordered { 2 } else { 1 });
        assert_eq!(rig.bench.pool.live_views(), 0);
    }
}

#[test]
fn so_many_are_held_and_more_only_where_the_wait_is_over_with_them() {
    let mut rig = Rig::new(true);
    rig.epochs.prepare(epoch(1, true));
    (0..4).for_each(|place| assert!(rig.come(1, place).is_empty()));
    assert_eq!(rig.held(1), 2, "its base is not known");
    rig.epochs.learn_base(at(1_000), 1, 5);
    (4..6).for_each(|place| assert!(rig.come(1, place).is_empty()));
    assert!(rig.epochs.boundary().unwrap().is_full);
    assert!(rig.come(1, 6).is_empty());
    assert_eq!(rig.held(1), 3, "the epoch before is settled at once");
    for place in 7..12 {
        let packet = rig.bench.unit(place, &[1; 10]);
        rig.epochs.handle_packet(&mut rig.bench.cx(), 1, packet);
        assert!(rig.poll(1, true).is_empty());
    }
    assert_eq!(rig.held(1), 2, "what is missing still comes, and is waited for");
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn bases_rise_with_the_numbers_and_are_learnt_once() {
    let mut rig = Rig::new(true);
    rig.epochs.prepare(epoch(1, true));
    rig.epochs.prepare(epoch(2, true));
    rig.epochs.learn_base(at(1_000), 2, 50);
    rig.epochs.learn_base(at(1_000), 1, 51);
    assert_eq!(rig.base(1), None, "beyond the one after it");
    rig.epochs.learn_base(at(1_000), 1, 50);
    rig.epochs.learn_base(at(2_000), 1, 40);
    assert_eq!((rig.base(1), rig.base(2)), (Some(50), Some(50)));
    assert_eq!(rig.epochs.boundary().unwrap().base_at, at(1_000));
    let mut rig = Rig::new(true);
    rig.epochs.prepare(epoch(1, true));
    rig.epochs.learn_base(at(1_000), 1, (1 << 56) + 1);
    rig.epochs.learn_base(at(1_000), 9, 3);
    assert_eq!(rig.base(1), None, "no flow has so many units");
}

#[test]
fn marks_say_where_an_epoch_begins_and_that_one_has_ended() {
    let mut rig = Rig::new(true);
    rig.epochs.prepare(epoch(1, true));
    rig.mark(1, Kind::Begin, 1, 7);
    assert_eq!(rig.base(1), Some(7));
    assert!(!rig.epochs.has_first_ended());
    let mut rig = Rig::new(true);
    rig.epochs.prepare(epoch(1, true));
    rig.mark(0, Kind::End, 9, 7);
    assert!(!rig.epochs.has_first_ended(), "a mark of another epoch");
    rig.mark(0, Kind::End, 0, 7);
    assert_eq!(rig.base(1), Some(7), "what the first had fed");
    assert!(rig.epochs.has_first_ended());
    let mut rig = Rig::new(false);
    rig.mark(0, Kind::End, 0, 7);
    assert!(!rig.epochs.has_first_ended(), "the rest may come behind its END");
}

#[test]
fn what_comes_of_a_later_epoch_shows_that_the_earlier_has_left() {
    let mut rig = Rig::new(true);
    // While it is alone nobody asks what has come of it.
    rig.epochs.note_passed(at(900), 0, false);
    rig.epochs.prepare(epoch(1, true));
    rig.epochs.learn_base(at(1_000), 1, 5);
    let before = rig.epochs.boundary().unwrap().tail;
    assert_eq!(before, epoch(0, true).tail);
    rig.come(0, 0);
    assert_eq!(rig.epochs.boundary().unwrap().tail, before);
    rig.come(1, 0);
    let mut left = before;
    left.note_left(at(1_000));
    assert_eq!(rig.epochs.boundary().unwrap().tail, left);
    rig.epochs.note_passed(at(1_100), 0, true);
    rig.epochs.note_passed(at(1_100), 0, false);
    left.note_came(at(1_100));
    assert_eq!(rig.epochs.boundary().unwrap().tail, left);
    rig.epochs.go_on(at(1_200));
    rig.epochs.shift(ms(10));
    left.note_came(at(1_200));
    left.shift(ms(10));
    assert_eq!(rig.epochs.boundary().unwrap().tail, left);
    rig.held(1);
    assert_eq!(rig.epochs.first_number(), Some(0));
    let old = rig.epochs.remove_first(&mut rig.bench.cx()).unwrap();
    assert_eq!((old.number, old.delivered), (0, 1));
    assert_eq!((rig.epochs.first_number(), rig.epochs.len()), (Some(1), 1));
    rig.epochs.note_passed(at(1_300), 0, true);
}

#[test]
fn epochs_are_prepared_in_order_and_at_most_three_live() {
    let mut rig = Rig::new(true);
    assert!(!rig.epochs.may_prepare(0) && rig.epochs.may_prepare(1) && rig.epochs.may_prepare(5));
    rig.epochs.prepare(epoch(5, true));
    assert!(!rig.epochs.may_prepare(5) && rig.epochs.may_prepare(6));
    rig.epochs.prepare(epoch(6, true));
    assert!(!rig.epochs.may_prepare(7), "three live");
    assert_eq!(rig.epochs.labels(), [10, 15, 16]);
    rig.epochs.learn_base(at(1_000), 5, 3);
    for (number, label) in [(0, None), (5, None), (9, None), (6, Some(16)), (6, None)] {
        let mut cx = rig.bench.cx();
        assert_eq!(rig.epochs.abort(&mut cx, number), label, "{number}");
    }
    assert_eq!(rig.epochs.labels(), [10, 15]);
}

#[test]
fn who_joins_late_takes_part_from_a_unit_on() {
    let mut rig = Rig::new(false);
    rig.epochs.join_at(1_000_000);
    assert_eq!(rig.epochs.first(), 1_000_000);
    assert_eq!(rig.epochs.number(0, 1_000_003), Some((3, false)));
    assert_eq!(rig.epochs.number(0, 999_999), None);
    assert_eq!(rig.come(0, 1_000_003), [1_000_003], "near to where it began");
}

#[test]
fn a_place_far_ahead_must_be_confirmed_by_the_next_unit() {
    const FAR: u64 = 8_192;
    let mut rig = Rig::new(false);
    assert_eq!(rig.come(0, FAR), [FAR]);
    assert!(rig.come(0, 10 * FAR).is_empty(), "it may be an altered bit");
    assert!(rig.come(0, 10 * FAR - 1).is_empty(), "what is before it does not confirm it");
    assert_eq!(rig.come(0, 10 * FAR), [10 * FAR]);
    assert!(rig.come(0, 30 * FAR).is_empty());
    assert!(rig.come(0, 31 * FAR + 1).is_empty(), "nor does what is far from it");
    assert_eq!(rig.come(0, 32 * FAR), [32 * FAR]);
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn what_a_graph_has_passed_up_is_not_quiet_until_somebody_looks() {
    let mut rig = Rig::new(true);
    let packet = rig.bench.unit(0, &[1; 10]);
    rig.epochs.handle_packet(&mut rig.bench.cx(), 0, packet);
    assert!(!rig.epochs.is_quiet());
    assert_eq!(rig.poll(0, false), [0]);
    assert!(rig.epochs.is_quiet());
}

#[test]
fn so_much_waits_to_be_sent_back_and_has_the_label_of_the_sender() {
    let mut rig = Rig::new(true);
    let queues = Queues { feedback_packets_max: 2, ..Queues::default() };
    let graph = RxEpoch::new(0, slow_graph(ms(5), 9), 10, true);
    rig.epochs = RxEpochs::new(graph, at(1_000), &queues, Keeping::Nothing);
    rig.epochs.set_label_tx(77);
    assert_eq!(rig.epochs.patience(), ms(5));
    let mut control = |index| {
        rig.epochs.with(&mut rig.bench.cx(), 0, |runner, cx| runner.control(cx, index, &[1]))
    };
    assert!(control(0).is_ok() && control(1).is_err());
    assert!(!rig.epochs.has_feedback() && rig.epochs.poll_feedback().is_none());
    assert_eq!(rig.epochs.newest().map(|it| it.label_tx), Some(77));
    assert_eq!(rig.epochs.due(), None);
    rig.epochs.with(&mut rig.bench.cx(), 0, Runner::handle_timeout);
    for len in [30, 20, 10] {
        let packet = rig.bench.pool.alloc(data::LEN, len, 0).unwrap();
        rig.epochs.with(&mut rig.bench.cx(), 0, |runner, cx| {
            runner.feed(cx, packet);
            runner.run(cx);
        });
    }
    assert!(rig.epochs.is_quiet(), "the module keeps them");
    rig.epochs.with(&mut rig.bench.cx(), 0, Runner::drain);
    assert!(rig.epochs.has_feedback() && !rig.epochs.is_quiet());
    let header = data::Header { label: 77 }.emit();
    for len in [30, 20] {
        let packet = rig.epochs.poll_feedback().unwrap();
        let bytes = rig.bench.pool.segment(&packet, 0);
        assert_eq!((&bytes[..data::LEN], bytes.len()), (&header[..], data::LEN + len));
        rig.bench.pool.free(packet);
    }
    assert!(rig.epochs.poll_feedback().is_none(), "two wait at most");
    rig.epochs.flush(&mut rig.bench.cx());
    assert_eq!(rig.bench.pool.live_views(), 0);
}
