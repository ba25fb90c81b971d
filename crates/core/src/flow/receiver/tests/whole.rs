//! The parts together: what one of them alone cannot show.

use super::end_of;
use crate::error::{Code, Error};
use crate::flow::PathTimes;
use crate::flow::epoch::RxEpoch;
use crate::flow::receiver::waiting::UNITS_MAX;
use crate::flow::receiver::{Keeping, Receiver};
use crate::flow::tests::{Basket, Bench, PARAMS, ToldUnread, asking_graph, empty_graph, ms, told};
use crate::flow::{FlowOut, Lost};
use crate::port::Ending;
use crate::queues::Queues;
use dacapo_base::Time;
use dacapo_wire::session::End;
use dacapo_wire::unit::Kind;

const PATH: PathTimes = PathTimes { rtt: ms(40), variation: ms(3), is_lost: false };

struct Rig {
    bench: Bench,
    basket: Basket,
    receiver: Receiver,
    out: FlowOut,
    ordered: bool,
}

impl Rig {
    fn new(ordered: bool, reliable: bool) -> Self {
        let keeping = if reliable { Keeping::Transport } else { Keeping::Nothing };
        Self::keeping(ordered, keeping)
    }

    fn keeping(ordered: bool, keeping: Keeping) -> Self {
        let (bench, basket) = (Bench::new(), Basket::new());
        let mut epoch = RxEpoch::new(0, empty_graph(), 10, ordered);
        epoch.waits_for_room = keeping == Keeping::Graph;
        let (sink, queues) = (basket.boxed(), Queues::default());
        let receiver = Receiver::new(PARAMS, sink, epoch, keeping, bench.now, queues);
        Self { bench, basket, receiver, out: FlowOut::default(), ordered }
    }

    fn come(&mut self, epoch: u64, place: u64) -> Vec<u64> {
        let packet = self.bench.unit(place, &[1; 10]);
        self.packet(epoch, packet)
    }

    fn packet(&mut self, epoch: u64, packet: dacapo_packet::Packet) -> Vec<u64> {
        let mut cx = self.bench.cx();
        self.receiver.handle_packet(&mut cx, epoch, packet, PATH, &mut self.out);
        self.basket.numbers()
    }

    fn prepare(&mut self, number: u64) {
        assert!(self.receiver.may_prepare(number));
        let epoch = RxEpoch::new(number, empty_graph(), 10 + number as u32, self.ordered);
        self.receiver.prepare(epoch);
    }

    fn end(&mut self, end: End) {
        self.receiver.handle_end(&mut self.bench.cx(), end, PATH, &mut self.out);
    }

    fn timeout(&mut self) -> Vec<u64> {
        let mut cx = self.bench.cx();
        self.receiver.handle_timeout(&mut cx, PATH, &mut self.out);
        self.basket.numbers()
    }

    fn told(&mut self) -> Vec<String> {
        told(&mut self.out)
    }
}

#[test]
fn what_is_skipped_in_order_is_lost_and_what_comes_after_all_is_told_apart() {
    let mut rig = Rig::new(true, false);
    assert_eq!((rig.come(0, 0), rig.come(0, 3)), (vec![0], vec![3]));
    assert_eq!(rig.basket.lost(), [(1, 2)]);
    assert_eq!((rig.come(0, 3), rig.come(0, 1)), (vec![], vec![]));
    let ledger = rig.receiver.ledger();
    assert_eq!((ledger.delivered, ledger.lost), (2, 2));
    assert_eq!((ledger.duplicates, ledger.after_lost, ledger.sent), (1, 1, 4));
    assert!(rig.receiver.may_rest() && rig.receiver.is_live());
    assert_eq!(rig.come(9, 4), [], "no such epoch");
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn without_order_nothing_is_lost_until_the_end() {
    let mut rig = Rig::new(false, false);
    assert_eq!((rig.come(0, 5), rig.come(0, 2)), (vec![5], vec![2]));
    assert!(rig.basket.lost().is_empty());
    rig.end(end_of(7));
    assert!(rig.told().is_empty() && !rig.receiver.may_rest());
    assert_eq!(rig.receiver.next_deadline(PATH), Some(rig.bench.now + ms(200)));
    rig.bench.now = rig.receiver.next_deadline(PATH).unwrap();
    assert_eq!(rig.come(0, 7), [], "the sender has said that there is none");
    rig.timeout();
    assert_eq!(rig.told(), ["REPORT 2 0 5 0", "ended 2 of 7, hash None"]);
    assert_eq!(rig.basket.lost(), [(0, 2), (3, 2), (6, 1)]);
    assert_eq!(rig.basket.ending(), Some(Ending::Complete));
    assert!(rig.receiver.is_finished() && rig.receiver.may_rest() && !rig.receiver.is_live());
    assert_eq!(rig.come(0, 6), [], "it is over");
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn a_flow_ends_at_once_when_all_has_come() {
    let mut rig = Rig::new(true, false);
    rig.come(0, 0);
    rig.end(end_of(1));
    assert_eq!(rig.told()[0], "REPORT 1 0 0 0");
    rig.end(end_of(1));
    assert!(rig.told().is_empty());
    assert!(!rig.receiver.may_prepare(1));
}

#[test]
fn units_of_the_next_epoch_wait_for_the_rest_of_the_old_one_and_go_up_in_order() {
    let mut rig = Rig::new(true, false);
    rig.come(0, 0);
    rig.prepare(1);
    assert!(!rig.receiver.may_rest());
    let mut cx = rig.bench.cx();
    rig.receiver.handle_switched(&mut cx, 1, 3, PATH, &mut rig.out);
    assert_eq!((rig.come(1, 0), rig.come(1, 1)), (vec![], vec![]));
    assert_eq!(rig.come(0, 2), [2, 3, 4], "they go up with the last of the old one");
    assert_eq!(rig.basket.lost(), [(1, 1)]);
    assert_eq!(rig.told(), ["DONE 0 2 1", "retire 10", "changed 1"]);
    assert_eq!(rig.come(1, 2), [5]);
}

#[test]
fn what_is_missing_of_an_old_epoch_is_lost_when_its_time_is_over() {
    let mut rig = Rig::new(true, false);
    rig.prepare(1);
    let mut cx = rig.bench.cx();
    rig.receiver.handle_switched(&mut cx, 1, 3, PATH, &mut rig.out);
    assert!(rig.come(1, 0).is_empty());
    rig.bench.pass(ms(39));
    assert!(rig.timeout().is_empty());
    rig.receiver.shift(ms(5));
    rig.bench.pass(ms(5));
    assert!(rig.timeout().is_empty(), "this end did not run for so long");
    rig.bench.pass(ms(1));
    assert_eq!(rig.receiver.next_deadline(PATH).map(|at| at <= rig.bench.now), Some(true));
    assert_eq!(rig.timeout(), [3]);
    assert_eq!(rig.basket.lost(), [(0, 3)]);
    assert_eq!(rig.told(), ["DONE 0 0 3", "retire 10", "changed 1"]);
}

#[test]
fn what_is_missing_of_an_old_epoch_is_due_once_the_way_is_lost() {
    let mut rig = Rig::new(true, true);
    rig.prepare(1);
    let mut cx = rig.bench.cx();
    rig.receiver.handle_switched(&mut cx, 1, 3, PATH, &mut rig.out);
    rig.timeout();
    assert_eq!(rig.receiver.next_deadline(PATH), None, "it comes");
    let error = Error::new(Code::ContactLost, "gone");
    rig.receiver.lose(&mut rig.bench.cx(), Lost::Way, &error, &mut rig.out);
    assert_eq!(rig.receiver.next_deadline(PATH).map(|at| at <= rig.bench.now), Some(true));
    rig.timeout();
    assert_eq!(rig.told(), ["DONE 0 0 3", "failed: gone", "retire 10", "changed 1"]);
}

#[test]
fn the_end_of_an_ordered_epoch_settles_it_at_once() {
    let mut rig = Rig::new(true, false);
    rig.prepare(1);
    assert!(rig.come(1, 0).is_empty());
    let end = rig.bench.mark(Kind::End, 0, 3);
    assert_eq!(rig.packet(0, end), [3], "nothing comes behind it");
    let mut cx = rig.bench.cx();
    rig.receiver.handle_abort(&mut cx, 1, &mut rig.out);
    assert_eq!(rig.told().len(), 3, "what runs is not taken back");
    rig.prepare(2);
    rig.receiver.handle_abort(&mut rig.bench.cx(), 2, &mut rig.out);
    assert_eq!(rig.told(), ["retire 12"]);
}

#[test]
fn over_a_reliable_transport_what_is_missing_is_waited_for_while_the_way_is_there() {
    let mut rig = Rig::new(false, true);
    rig.come(0, 1);
    rig.end(end_of(3));
    rig.bench.pass(ms(9_999));
    rig.timeout();
    assert!(rig.told().is_empty());
    assert_eq!(rig.come(0, 0), [0]);
    rig.bench.pass(ms(9_999));
    rig.timeout();
    assert!(rig.told().is_empty(), "something has come");
    let error = Error::new(Code::ContactLost, "gone");
    rig.receiver.lose(&mut rig.bench.cx(), Lost::Way, &error, &mut rig.out);
    let told = rig.told();
    assert_eq!(told, ["REPORT 2 0 1 0", "failed: gone", "ended 2 of 3, hash None"]);
    rig.receiver.lose(&mut rig.bench.cx(), Lost::Way, &error, &mut rig.out);
    assert!(rig.told().is_empty());
    assert_eq!(rig.basket.ending(), Some(Ending::Abnormal(error.to_string())));
}

#[test]
fn what_a_module_keeps_waits_for_room_and_too_much_of_it_is_passed_over() {
    let mut rig = Rig::keeping(true, Keeping::Graph);
    assert_eq!(rig.come(0, 0), [0]);
    rig.basket.with(|seen| seen.has_capacity = false);
    let most = UNITS_MAX as u64 + 9;
    assert!((1..most).all(|place| rig.come(0, place).is_empty()));
    assert_eq!(rig.receiver.ledger().delivered, 1);
    assert!(rig.timeout().is_empty(), "there is no room yet");
    rig.basket.with(|seen| seen.has_capacity = true);
    assert_eq!(rig.receiver.next_deadline(PATH), Some(Time::ZERO), "at once");
    assert_eq!(rig.timeout(), (1..=UNITS_MAX as u64).collect::<Vec<_>>());
    let again = UNITS_MAX as u64 + 1;
    assert_eq!(rig.come(0, again), [again], "what was passed over comes again");
    rig.basket.with(|seen| seen.has_capacity = false);
    assert!(rig.come(0, again + 1).is_empty());
    rig.end(end_of(again + 5));
    rig.receiver.lose(
        &mut rig.bench.cx(),
        Lost::Way,
        &Error::new(Code::ContactLost, "gone"),
        &mut rig.out,
    );
    assert_eq!(rig.basket.numbers(), [again + 1], "at the end what is here goes up");
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn what_may_be_lost_waits_for_room_where_who_sends_waits_for_it() {
    let mut rig = Rig::new(false, false);
    rig.basket.with(|seen| seen.has_capacity = false);
    assert_eq!(rig.come(0, 0), [0], "nobody waits for room: the sink counts what it has none for");
    let mut epoch = RxEpoch::new(1, empty_graph(), 11, false);
    epoch.waits_for_room = true;
    rig.receiver.prepare(epoch);
    rig.receiver.handle_switched(&mut rig.bench.cx(), 1, 1, PATH, &mut rig.out);
    assert!(rig.come(1, 0).is_empty() && rig.come(1, 2).is_empty());
    rig.end(end_of(4));
    rig.bench.pass(ms(60_000));
    assert!(rig.timeout().is_empty() && !rig.receiver.is_finished(), "the reader is waited for");
    assert_eq!(rig.receiver.next_deadline(PATH), None);
    rig.basket.with(|seen| seen.has_capacity = true);
    rig.receiver.go_on(rig.bench.now);
    assert_eq!(rig.timeout(), [1, 3]);
    rig.bench.pass(ms(1_000));
    rig.timeout();
    assert_eq!(rig.told().last().map(String::as_str), Some("ended 3 of 4, hash None"));
}

#[test]
fn a_session_that_closes_passes_on_what_waits_for_room() {
    let mut rig = Rig::new(false, false);
    let mut epoch = RxEpoch::new(0, empty_graph(), 10, false);
    epoch.waits_for_room = true;
    let (sink, queues) = (rig.basket.boxed(), Queues::default());
    rig.receiver = Receiver::new(PARAMS, sink, epoch, Keeping::Nothing, rig.bench.now, queues);
    rig.basket.with(|seen| seen.has_capacity = false);
    assert!(rig.come(0, 0).is_empty());
    rig.end(end_of(2));
    rig.receiver.close_soon(rig.bench.now);
    rig.bench.pass(ms(7_000));
    assert!(rig.timeout().is_empty());
    rig.bench.pass(ms(1_000));
    assert_eq!(rig.timeout(), [0], "whatever room there is");
    assert!(rig.receiver.is_finished());
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn modules_that_ask_are_told_what_waits_for_the_sink_and_in_their_own_epoch() {
    let told = ToldUnread::default();
    let mut rig = Rig::keeping(true, Keeping::Graph);
    let mut epoch = RxEpoch::new(0, asking_graph(&told), 10, true);
    epoch.waits_for_room = true;
    let (sink, queues) = (rig.basket.boxed(), Queues::default());
    rig.receiver = Receiver::new(PARAMS, sink, epoch, Keeping::Graph, rig.bench.now, queues);
    let taken = || std::mem::take(&mut *told.lock().unwrap());
    assert_eq!((rig.come(0, 0), taken()), (vec![0], vec![(0, 0)]));
    rig.basket.with(|seen| seen.has_capacity = false);
    assert!(rig.come(0, 1).is_empty() && rig.come(0, 2).is_empty());
    assert_eq!(taken(), [(1, 10), (2, 20)], "ten bytes each");
    let epoch = RxEpoch::new(1, asking_graph(&told), 11, true);
    rig.receiver.prepare(epoch);
    assert!(rig.come(1, 0).is_empty());
    assert_eq!(taken(), [(3, 30)], "one of them is held");
    rig.timeout();
    assert_eq!(taken(), [], "nobody asks");
    rig.basket.with(|seen| seen.has_capacity = true);
    assert_eq!((rig.timeout(), rig.come(0, 3), taken()), (vec![1, 2], vec![3], vec![(0, 0)]));
    rig.receiver.flush(&mut rig.bench.cx());
}

#[test]
fn what_is_sent_again_for_a_reader_who_paused_after_the_end_has_its_time() {
    let mut rig = Rig::keeping(true, Keeping::Graph);
    assert_eq!(rig.come(0, 0), [0]);
    rig.basket.with(|seen| seen.has_capacity = false);
    assert!(rig.come(0, 1).is_empty());
    rig.end(end_of(4));
    rig.bench.pass(ms(60_000));
    assert!(rig.timeout().is_empty() && rig.told().is_empty(), "it is this end that is waited for");
    rig.basket.with(|seen| seen.has_capacity = true);
    rig.receiver.go_on(rig.bench.now);
    assert_eq!(rig.timeout(), [1]);
    assert!(rig.told().is_empty(), "2 and 3 were passed over, and come again");
    rig.bench.pass(ms(9_999));
    assert_eq!((rig.come(0, 2), rig.come(0, 3)), (vec![2], vec![3]));
    assert_eq!(rig.told()[0], "REPORT 4 0 0 0");
}

#[test]
fn an_epoch_that_waits_for_the_one_before_takes_no_more_than_so_many_units() {
    let mut rig = Rig::keeping(true, Keeping::Graph);
    rig.come(0, 1);
    rig.prepare(1);
    let most = Queues::default().held_units_max as u64;
    for place in 0..most + 9 {
        assert!(rig.come(1, place).is_empty(), "nobody has said where it begins");
    }
    assert!(rig.bench.pool.live_views() as u64 <= most + 1);
    rig.receiver.flush(&mut rig.bench.cx());
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn a_flow_that_lost_a_graph_goes_to_its_end_and_takes_no_other() {
    let error = Error::new(Code::ModuleFailed, "it broke");
    let mut rig = Rig::new(false, true);
    rig.come(0, 0);
    for _ in 0..2 {
        rig.receiver.lose(&mut rig.bench.cx(), Lost::Graph, &error, &mut rig.out);
    }
    assert_eq!(rig.told(), ["failed: it broke"], "once");
    assert!(rig.receiver.is_live() && !rig.receiver.may_prepare(1));
    rig.end(end_of(3));
    rig.bench.pass(ms(200));
    rig.timeout();
    assert_eq!(rig.told(), ["REPORT 1 0 2 0", "ended 1 of 3, hash None"]);
    assert_eq!(rig.basket.ending(), Some(Ending::SourceFailed(error.to_string())));
}

#[test]
fn who_lost_the_way_waits_for_end_and_then_gives_up() {
    let error = Error::new(Code::ContactLost, "gone");
    let mut rig = Rig::new(true, true);
    rig.come(0, 0);
    rig.receiver.lose(&mut rig.bench.cx(), Lost::Way, &error, &mut rig.out);
    assert_eq!(rig.told(), ["failed: gone"]);
    assert!(!rig.receiver.is_live());
    rig.bench.pass(ms(15_000));
    rig.timeout();
    assert_eq!(rig.told(), ["ended 1 of 1, hash None"]);
    rig.end(end_of(4));
    assert_eq!(rig.told(), ["REPORT 1 0 0 3"]);

    let mut rig = Rig::new(true, true);
    rig.receiver.lose(&mut rig.bench.cx(), Lost::Way, &error, &mut rig.out);
    rig.told();
    rig.end(End { code: Code::ContactLost as u16, text: "gone".into(), ..end_of(2) });
    assert_eq!(rig.told(), ["REPORT 0 0 2 0", "ended 0 of 2, hash None"], "one cause, once");
}

#[test]
fn a_closing_session_and_a_full_sink_bound_the_wait() {
    let mut rig = Rig::new(true, true);
    rig.basket.with(|seen| seen.has_capacity = false);
    assert!(!rig.receiver.has_capacity());
    rig.end(end_of(3));
    rig.timeout();
    assert_eq!(rig.receiver.next_deadline(PATH), None, "the sink is waited for");
    rig.receiver.close_soon(rig.bench.now);
    rig.bench.pass(ms(8_000));
    rig.timeout();
    assert_eq!(rig.told()[0], "REPORT 0 0 3 0");
}

#[test]
fn who_gives_up_passes_on_what_is_here_and_books_the_rest_as_unknown() {
    let mut rig = Rig::new(true, false);
    rig.come(0, 0);
    rig.prepare(1);
    rig.receiver.handle_switched(&mut rig.bench.cx(), 1, 3, PATH, &mut rig.out);
    assert!(rig.come(1, 0).is_empty());
    let ending = Ending::Abnormal("contact".into());
    rig.receiver.give_up(&mut rig.bench.cx(), &ending, &mut rig.out);
    rig.receiver.give_up(&mut rig.bench.cx(), &ending, &mut rig.out);
    assert_eq!(rig.basket.numbers(), [3]);
    assert_eq!(rig.told(), ["ended 2 of 4, hash None"]);
    assert!(rig.receiver.ledger().closes() && rig.receiver.ledger().sent_at_least);
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn who_joined_late_counts_from_where_it_joined() {
    let mut rig = Rig::new(false, false);
    rig.receiver.join_at(100);
    assert_eq!((rig.come(0, 99), rig.come(0, 102)), (vec![], vec![2]));
    assert_eq!(rig.receiver.ledger().sent, 3);
}

#[test]
fn a_flow_that_has_ended_or_is_over_takes_no_other_graph_and_tells_its_labels() {
    let mut rig = Rig::new(true, true);
    assert_eq!(rig.receiver.labels(), [10]);
    rig.prepare(1);
    assert_eq!(rig.receiver.labels(), [10, 11]);
    assert!(rig.receiver.may_prepare(2));
    // Two units are missing, so it is not over yet.
    rig.end(end_of(2));
    assert!(rig.receiver.is_live() && !rig.receiver.may_prepare(2));
}
