//! The epochs part of a sender, in each of its states.

use crate::error::{Code, Error};
use crate::flow::FlowOut;
use crate::flow::epoch::TxEpoch;
use crate::flow::sender::egress::{Egress, Pace};
use crate::flow::sender::epochs::TxEpochs;
use crate::flow::splice::{Splice, Waiting};
use crate::flow::tests::{Bench, at, empty_graph, keeping_graph, ms, slow_graph, told};
use dacapo_base::Time;
use dacapo_lift::ControlError;
use dacapo_wire::data;

const RTT: std::time::Duration = ms(40);

struct Rig {
    bench: Bench,
    epochs: TxEpochs,
    egress: Egress,
    out: FlowOut,
}

impl Rig {
    fn new() -> Self {
        let bench = Bench::new();
        let mut epochs = TxEpochs::new(3, TxEpoch::new(0, empty_graph(), 10));
        epochs.set_label_tx(100);
        let egress = Egress::new(bench.now, Pace::Transport, 1 << 20);
        Self { bench, epochs, egress, out: FlowOut::default() }
    }

    fn feed(&mut self) {
        let layout = *self.epochs.layout();
        let packet = self.bench.pool.alloc_train(&layout, 14).unwrap();
        let mut splice = Splice::new(1);
        splice.push(self.bench.now, vec![packet], 10, layout);
        let mut unit: Waiting = splice.pop(&mut self.bench.pool, &layout).unwrap().unwrap();
        self.epochs.feed(&mut self.bench.cx(), &mut unit);
        self.epochs.run(&mut self.bench.cx(), &mut self.egress);
    }

    fn prepare(&mut self) {
        self.epochs.prepare(self.bench.now, empty_graph(), 11);
    }

    fn ready(&mut self, number: u64) -> bool {
        let mut cx = self.bench.cx();
        self.epochs.handle_ready(&mut cx, (number, 111), 7, RTT, &mut self.egress)
    }

    fn control(
        &mut self,
        number: u64,
        index: usize,
        message: &[u8],
    ) -> Option<Result<Vec<u8>, ControlError>> {
        let mut cx = self.bench.cx();
        self.epochs.with(&mut cx, number, &mut self.egress, |runner, cx| {
            runner.control(cx, index, message)
        })
    }

    fn timeout(&mut self, at: Time) {
        self.bench.now = at;
        self.epochs.handle_timeout(&mut self.bench.cx(), RTT, &mut self.egress, &mut self.out);
    }

    /// The labels of the datagrams that leave.
    fn labels(&mut self) -> Vec<u32> {
        let mut labels = Vec::new();
        while let Some(packet) = self.egress.pop(&mut self.bench.cx(), usize::MAX) {
            for index in 0..packet.segment_count() {
                let segment = self.bench.pool.segment(&packet, index);
                labels.push(data::Header::parse(segment).unwrap().label);
            }
            self.bench.pool.free(packet);
        }
        labels
    }

    fn told(&mut self) -> Vec<String> {
        told(&mut self.out)
    }
}

#[test]
fn a_unit_gets_the_next_number_and_the_label_of_the_running_epoch() {
    let mut rig = Rig::new();
    rig.feed();
    rig.feed();
    assert_eq!(rig.labels(), [100, 100]);
    assert_eq!((rig.epochs.current().fed, rig.epochs.current().number), (2, 0));
    rig.epochs.note_fed();
    assert_eq!(rig.epochs.current().fed, 3, "one has left past the graph");
    assert_eq!((rig.epochs.due(), rig.epochs.labels()), (None, vec![10]));
}

#[test]
fn ready_switches_to_the_new_epoch_and_ends_the_old_one_three_times() {
    let mut rig = Rig::new();
    assert_eq!(rig.epochs.next_number(), 1);
    rig.prepare();
    assert!(!rig.epochs.is_alone());
    assert_eq!((rig.epochs.next_number(), rig.epochs.labels()), (2, vec![10, 11]));
    assert!(!rig.ready(0) && !rig.ready(2), "nobody prepared these");
    assert_eq!(rig.epochs.due(), Some(at(6_000)), "and the proposal stands");
    assert!(rig.ready(1));
    assert_eq!(rig.labels(), [100, 100, 100, 111], "END three times, BEGIN once");
    assert_eq!((rig.epochs.current().number, rig.epochs.current().base), (1, 7));
    assert!(!rig.ready(1), "once");
    rig.feed();
    assert_eq!(rig.labels(), [111]);
    rig.epochs.handle_done(&mut rig.bench.cx(), 1, &mut rig.out);
    assert!(rig.told().is_empty(), "the one that runs is not done");
    rig.epochs.handle_done(&mut rig.bench.cx(), 0, &mut rig.out);
    assert_eq!(rig.told(), ["retire 10", "changed 1"]);
    assert!(rig.epochs.is_alone());
    rig.epochs.handle_done(&mut rig.bench.cx(), 0, &mut rig.out);
    assert!(rig.told().is_empty(), "once");
}

#[test]
fn a_proposal_ends_by_cannot_by_the_end_of_the_flow_or_after_five_seconds() {
    let mut rig = Rig::new();
    rig.prepare();
    let error = || Error::new(Code::Refused, "no");
    rig.epochs.handle_cannot(9, error(), &mut rig.out);
    assert!(rig.told().is_empty() && !rig.epochs.is_alone(), "another is meant");
    rig.epochs.handle_cannot(1, error(), &mut rig.out);
    assert_eq!(rig.told(), ["retire 11", "change failed 304"]);
    rig.prepare();
    rig.epochs.abort(error(), &mut rig.out);
    assert_eq!(rig.told(), ["ABORT 2", "retire 11", "change failed 304"]);
    rig.epochs.abort(error(), &mut rig.out);
    assert!(rig.told().is_empty(), "nothing is proposed");
    rig.prepare();
    rig.timeout(at(5_999));
    assert!(rig.told().is_empty());
    rig.epochs.shift(ms(1));
    rig.timeout(at(6_000));
    assert!(rig.told().is_empty(), "this end did not run for a millisecond");
    rig.timeout(at(6_001));
    assert_eq!(rig.told(), ["ABORT 3", "retire 11", "change failed 303"]);
    assert_eq!(rig.epochs.next_number(), 4, "no number comes again");
    assert_eq!(rig.epochs.current().number, 0, "the flow stays where it was");
}

#[test]
fn the_end_of_an_old_epoch_is_said_again_every_quarter_round_trip_twelve_times_at_most() {
    let mut rig = Rig::new();
    rig.prepare();
    assert!(rig.ready(1));
    rig.labels();
    let mut ends = Vec::new();
    while rig.epochs.due().is_some_and(|at| at < Time::from_millis(10_000)) {
        let due = rig.epochs.due().unwrap();
        rig.timeout(due);
        ends.extend(rig.labels().iter().map(|label| (due, *label)));
    }
    let expected: Vec<_> = (1..=9).map(|count| (at(1_000 + count * 10), 100)).collect();
    assert_eq!(ends, expected);
    assert_eq!(rig.epochs.due(), Some(at(16_000)));
    rig.epochs.shift(ms(100));
    rig.timeout(at(16_099));
    assert!(rig.told().is_empty());
    rig.timeout(at(16_100));
    assert_eq!(rig.told(), ["retire 10", "changed 1"], "given up on its own");
}

#[test]
fn an_old_epoch_that_loses_nothing_goes_on_until_the_receiver_has_all_of_it() {
    let mut rig = Rig::new();
    rig.epochs = TxEpochs::new(3, TxEpoch::new(0, keeping_graph(), 10));
    rig.epochs.prepare(rig.bench.now, keeping_graph(), 11);
    assert!(rig.ready(1));
    for seconds in [17, 34, 120] {
        rig.timeout(Time::from_millis(seconds * 1_000));
        assert!(rig.told().is_empty() && !rig.epochs.is_alone(), "after {seconds} s");
    }
    rig.epochs.handle_done(&mut rig.bench.cx(), 0, &mut rig.out);
    assert_eq!(rig.told(), ["retire 10", "changed 1"]);
    rig.labels();
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn the_report_of_the_whole_flow_ends_the_old_epoch_and_leaves_a_proposal_alone() {
    let mut rig = Rig::new();
    rig.prepare();
    rig.epochs.destroy_old(&mut rig.bench.cx(), &mut rig.out);
    assert!(rig.told().is_empty() && !rig.epochs.is_alone());
    assert!(rig.ready(1));
    rig.epochs.destroy_old(&mut rig.bench.cx(), &mut rig.out);
    assert_eq!(rig.told(), ["retire 10", "changed 1"]);
    rig.labels();
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn feedback_goes_to_the_epoch_that_it_names_and_nowhere_else() {
    let mut rig = Rig::new();
    rig.prepare();
    assert!(rig.ready(1));
    rig.labels();
    for number in [0, 1, 2] {
        let packet = rig.bench.raw(&[1, 2, 3]);
        let mut cx = rig.bench.cx();
        rig.epochs.handle_packet(&mut cx, number, packet, &mut rig.egress);
    }
    assert_eq!(rig.bench.pool.live_views(), 0, "what comes up is nobody's");
    assert!(rig.egress.is_empty());
}

#[test]
fn the_path_cuts_the_running_epoch_and_the_one_that_is_proposed() {
    let mut rig = Rig::new();
    assert_eq!(rig.epochs.datagram_len(), usize::MAX);
    let mut graph = empty_graph();
    graph.layout.segmented = true;
    let mut epochs = TxEpochs::new(3, TxEpoch::new(0, graph, 10));
    let mut graph = empty_graph();
    graph.layout.segmented = true;
    epochs.prepare(rig.bench.now, graph, 11);
    epochs.set_datagram_len(105);
    assert_eq!((epochs.datagram_len(), epochs.layout().segment), (105, 100));
    let mut cx = rig.bench.cx();
    assert!(epochs.handle_ready(&mut cx, (1, 111), 0, RTT, &mut rig.egress));
    assert_eq!(epochs.layout().segment, 100);
    rig.labels();
    epochs.flush(&mut rig.bench.cx());
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn a_graph_that_keeps_packets_has_a_time_a_credit_and_a_drain() {
    let mut rig = Rig::new();
    rig.epochs = TxEpochs::new(3, TxEpoch::new(0, slow_graph(ms(30), 2), 10));
    rig.feed();
    assert_eq!((rig.epochs.credit(), rig.epochs.due()), (1, Some(at(1_030))));
    assert!(rig.labels().is_empty());
    rig.timeout(at(1_030));
    assert_eq!(rig.labels().len(), 1);
    rig.feed();
    rig.epochs.drain(&mut rig.bench.cx(), &mut rig.egress);
    assert_eq!(rig.labels().len(), 1, "what it kept goes out");
    rig.feed();
    rig.epochs.flush(&mut rig.bench.cx());
    assert_eq!(rig.bench.pool.live_views(), 0, "what it kept is forgotten");
    assert_eq!(rig.control(0, 0, &[5]), Some(Ok(vec![5])));
    assert!(rig.control(0, 0, &[]).is_some_and(|it| it.is_err()));
    assert!(rig.control(0, 1, &[5]).is_some_and(|it| it.is_err()), "there is no such module");
    assert_eq!(rig.control(1, 0, &[5]), None, "there is no such epoch");
}

#[test]
fn the_old_graph_goes_on_while_it_drains() {
    let mut rig = Rig::new();
    rig.epochs = TxEpochs::new(3, TxEpoch::new(0, slow_graph(ms(5), 9), 10));
    rig.epochs.set_label_tx(100);
    rig.prepare();
    rig.feed();
    assert!(rig.ready(1));
    assert_eq!(rig.labels(), [100, 111], "the unit, BEGIN; the marks are kept by the module");
    assert_eq!(rig.epochs.due(), Some(at(1_005)));
    rig.timeout(at(1_005));
    assert_eq!(rig.labels(), [100, 100, 100]);
    assert_eq!(rig.control(0, 0, &[5]), Some(Ok(vec![5])), "its modules are spoken to");
    assert_eq!(rig.control(2, 0, &[5]), None);
    rig.epochs.flush(&mut rig.bench.cx());
    assert!(rig.epochs.is_alone());
}
