//! The parts together: what one of them alone cannot show.

use crate::error::{Code, Error};
use crate::flow::FlowParams;
use crate::flow::epoch::TxEpoch;
use crate::flow::sender::{Pace, Sender};
use crate::flow::tests::{Bench, PARAMS, Say, Scripted, empty_graph, ms, slow_graph, told};
use crate::flow::{FlowOut, Lost};
use crate::ids::StreamId;
use crate::port::SourcePoll;
use crate::queues::Queues;
use crate::transmit::{Offered, StreamWriter};
use dacapo_base::Time;
use dacapo_wire::session::Report;

struct Rig {
    bench: Bench,
    source: Scripted,
    sender: Sender,
    out: FlowOut,
}

impl Rig {
    fn new(source: Scripted, params: FlowParams, pace: Pace) -> Self {
        let bench = Bench::new();
        let epoch = TxEpoch::new(0, empty_graph(), 10);
        let queues = Queues::default();
        let sender = Sender::new(bench.now, params, source.boxed(), epoch, pace, queues);
        Self { bench, source, sender, out: FlowOut::default() }
    }

    fn unpaced(source: Scripted) -> Self {
        let mut rig = Self::new(source, PARAMS, Pace::Transport);
        rig.sender.start(rig.bench.now);
        rig
    }

    /// Datagrams that leave now.
    fn poll(&mut self) -> usize {
        let mut count = 0;
        while let Some(it) =
            self.sender.poll_packet(&mut self.bench.cx(), usize::MAX, &mut self.out)
        {
            count += it.segment_count();
            self.bench.pool.free(it);
        }
        count
    }

    /// Offers a unit of this length, for a stream where there is one.
    fn offer(&mut self, len: usize, writer: Option<&mut Writer>) -> Offered {
        let stream = writer.map(|writer| (StreamId(5), writer as &mut dyn StreamWriter));
        self.sender.offer(&mut self.bench.cx(), &vec![1; len], stream)
    }

    fn told(&mut self) -> Vec<String> {
        told(&mut self.out)
    }
}

#[test]
fn units_leave_in_turn_and_end_follows_the_last() {
    let mut rig = Rig::unpaced(Scripted::units(5));
    assert!(rig.sender.may_give(rig.bench.now) && rig.sender.may_rest());
    assert_eq!(rig.poll(), 5);
    assert!(rig.told().is_empty());
    assert_eq!((rig.sender.sent(), rig.sender.fed().bytes), (5, 50));
    assert!(
        !rig.sender.may_give(rig.bench.now)
            && rig.sender.next_deadline(rig.bench.now, true).is_none()
    );
    rig.source.say(Say::Poll(SourcePoll::End));
    rig.sender.wake(rig.bench.now);
    assert_eq!(rig.poll(), 0);
    assert_eq!(rig.told(), ["END 5 50 0"]);
    assert!(rig.sender.awaits_report() && !rig.sender.may_change() && rig.sender.is_live());
    rig.sender.start(rig.bench.now);
    let report = Report { flow: 3, delivered: 4, lost: 1, ..Report::default() };
    assert!(rig.sender.handle_report(&mut rig.bench.cx(), &report, &mut rig.out));
    assert_eq!(rig.told(), ["ended 4 of 5, hash None"]);
    assert!(rig.sender.is_reported() && !rig.sender.is_live() && rig.sender.may_rest());
}

#[test]
fn what_waits_has_waited_since_its_unit_was_handed_over() {
    let mut rig = Rig::new(Scripted::default(), PARAMS, Pace::Bound(80_000));
    assert_eq!(rig.sender.waits_since(rig.bench.now), None, "it does not run");
    rig.sender.start(rig.bench.now);
    let start = rig.bench.now;
    assert_eq!(rig.sender.waits_since(start), Some(start), "its source is to be asked");
    rig.poll();
    assert_eq!(rig.sender.waits_since(start), None, "that has nothing");
    (0..20).for_each(|_| rig.source.say(Say::Unit(vec![1; 190])));
    rig.sender.wake(rig.bench.now);
    rig.poll();
    rig.bench.pass(ms(7));
    assert_eq!(rig.sender.waits_since(rig.bench.now), Some(start), "the pace holds it up");
}

#[test]
fn nothing_leaves_without_contact_and_nothing_is_asked() {
    let mut rig = Rig::unpaced(Scripted::units(3));
    rig.sender.set_suspended(rig.bench.now, true);
    assert_eq!(rig.poll(), 0);
    assert_eq!(rig.sender.next_deadline(rig.bench.now, true), None);
    rig.sender.set_suspended(rig.bench.now, false);
    assert_eq!(rig.sender.next_deadline(rig.bench.now, false), None, "nobody knows where to");
    assert_eq!(rig.sender.next_deadline(rig.bench.now, true), Some(rig.bench.now));
    assert_eq!(rig.poll(), 3);
}

#[test]
fn what_waits_for_the_pace_when_the_flow_is_closed_goes_before_end() {
    let pace = Pace::Bound(80_000);
    let mut rig = Rig::new(Scripted::default(), PARAMS, pace);
    (0..20).for_each(|_| rig.source.say(Say::Unit(vec![1; 190])));
    rig.sender.start(rig.bench.now);
    let at_once = rig.poll();
    assert!((7..20).contains(&at_once) && rig.sender.has_backlog(), "{at_once}");
    rig.sender.close(&mut rig.bench.cx(), &mut rig.out);
    assert!(rig.told().is_empty(), "some of it waits");
    assert!(!rig.sender.may_rest());
    let fed = rig.sender.sent();
    let mut left = at_once as u64;
    while rig.out.messages.is_empty() {
        rig.bench.now = rig.sender.next_deadline(rig.bench.now, true).expect("it goes on");
        left += rig.poll() as u64;
    }
    assert_eq!((left, rig.sender.sent()), (fed, fed));
    assert_eq!(rig.sender.waiting(), 0, "what was not fed is not sent");
}

#[test]
fn who_closes_does_not_wait_for_a_way_for_ever() {
    let mut rig = Rig::new(Scripted::default(), PARAMS, Pace::Bound(800));
    (0..20).for_each(|_| rig.source.say(Say::Unit(vec![1; 190])));
    rig.sender.start(rig.bench.now);
    rig.poll();
    rig.sender.close(&mut rig.bench.cx(), &mut rig.out);
    rig.bench.pass(ms(4_999));
    rig.sender.handle_timeout(&mut rig.bench.cx(), ms(40), &mut rig.out);
    assert!(rig.told().is_empty());
    rig.sender.shift(ms(10));
    rig.bench.pass(ms(10));
    rig.sender.handle_timeout(&mut rig.bench.cx(), ms(40), &mut rig.out);
    assert!(rig.told().is_empty(), "this end did not run for so long");
    rig.bench.pass(ms(1));
    rig.sender.handle_timeout(&mut rig.bench.cx(), ms(40), &mut rig.out);
    assert_eq!(rig.told().len(), 1, "END");
}

#[test]
fn a_lost_way_drops_what_waits_and_is_told_once() {
    let mut rig = Rig::new(Scripted::default(), PARAMS, Pace::Bound(80_000));
    (0..70).for_each(|_| rig.source.say(Say::Unit(vec![1; 190])));
    rig.sender.start(rig.bench.now);
    rig.poll();
    let error = Error::new(Code::ContactLost, "gone");
    rig.sender.lose(&mut rig.bench.cx(), Lost::Way, &error, &mut rig.out);
    rig.sender.lose(&mut rig.bench.cx(), Lost::Way, &error, &mut rig.out);
    let (sent, bytes) = (rig.sender.sent(), rig.sender.fed().bytes);
    let end = format!("END {sent} {bytes} {}", Code::ContactLost as u16);
    assert_eq!(rig.told(), [end, "failed: gone".into()]);
    assert!(!rig.sender.is_live() && !rig.sender.has_backlog() && rig.poll() == 0);
    assert_eq!(rig.bench.pool.live_views(), 0);
    let report = Report { flow: 3, delivered: sent + 1, ..Report::default() };
    assert!(!rig.sender.handle_report(&mut rig.bench.cx(), &report, &mut rig.out));
    assert!(!rig.sender.is_reported());
    rig.sender.give_up(&mut rig.out);
    assert!(rig.sender.is_reported());
}

#[test]
fn what_has_left_a_graph_that_is_lost_still_goes_out() {
    let mut rig = Rig::new(Scripted::default(), PARAMS, Pace::Bound(80_000));
    (0..70).for_each(|_| rig.source.say(Say::Unit(vec![1; 190])));
    rig.sender.start(rig.bench.now);
    let mut gone = rig.poll();
    let error = Error::new(Code::ModuleFailed, "it broke");
    rig.sender.lose(&mut rig.bench.cx(), Lost::Graph, &error, &mut rig.out);
    assert_eq!(rig.told(), ["failed: it broke"], "END follows what is on its way");
    let (sent, bytes) = (rig.sender.sent(), rig.sender.fed().bytes);
    assert!((gone as u64) < sent, "some wait for the pace");
    while rig.sender.has_backlog() {
        rig.bench.pass(ms(10));
        gone += rig.poll();
    }
    assert_eq!(gone as u64, sent);
    let end = format!("END {sent} {bytes} {}", Code::ModuleFailed as u16);
    assert_eq!(rig.told(), [end]);
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn a_source_that_fails_ends_the_flow_with_its_reason() {
    let mut rig = Rig::unpaced(Scripted::units(2));
    rig.source.say(Say::Poll(SourcePoll::Failed("no disk".into())));
    assert_eq!(rig.poll(), 2);
    let code = Code::AccessFailed as u16;
    assert_eq!(rig.told(), [format!("END 2 20 {code}"), "failed: no disk".into()]);
}

#[test]
fn a_unit_that_is_handed_over_goes_through_the_graph_at_once() {
    let mut rig = Rig::unpaced(Scripted::default());
    rig.poll();
    assert_eq!(rig.offer(10, None), Offered::Taken);
    assert_eq!((rig.sender.waiting(), rig.sender.has_backlog()), (0, true));
    assert_eq!(rig.offer(10, None), Offered::Taken);
    assert_eq!(rig.sender.waiting(), 1, "it goes behind what is there");
    assert_eq!(rig.poll(), 2);
    rig.sender.stop(rig.bench.now);
    assert_eq!(rig.offer(10, None), Offered::NotNow);
}

/// Takes units for streams, or not.
#[derive(Default)]
struct Writer {
    is_full: bool,
    /// The heads of what was taken, and the lengths of the units.
    taken: Vec<(Vec<u8>, usize)>,
}

impl StreamWriter for Writer {
    fn write_split(&mut self, _: Time, stream: StreamId, head: &[u8], body: &[u8]) -> bool {
        assert_eq!(stream, StreamId(5));
        if !self.is_full {
            self.taken.push((head.to_vec(), body.len()));
        }
        !self.is_full
    }
}

#[test]
fn a_unit_leaves_from_where_it_lies_only_when_nothing_must_see_it_and_nothing_waits() {
    let plain = FlowParams { digest: false, ..PARAMS };
    let (mut rig, mut writer) =
        (Rig::new(Scripted::default(), plain, Pace::Transport), Writer::default());
    rig.sender.set_label_tx(7);
    assert_eq!(rig.offer(10, Some(&mut writer)), Offered::NotNow, "it does not run");
    rig.sender.start(rig.bench.now);
    rig.poll();
    assert_eq!(rig.offer(10, Some(&mut writer)), Offered::Sent, "nothing is in the way");
    assert_eq!((rig.sender.sent(), rig.sender.fed().bytes), (1, 10));
    assert_eq!(rig.offer(196, Some(&mut writer)), Offered::Sent);
    let head = |number| vec![0x80, 0, 0, 0, 7, 0, 0, 0, number];
    assert_eq!(writer.taken, [(head(0), 10), (head(1), 196)]);
    assert_eq!(rig.offer(197, Some(&mut writer)), Offered::NotNow, "longer than a datagram");
    writer.is_full = true;
    assert_eq!(rig.offer(10, Some(&mut writer)), Offered::Taken, "the stream is full");
    writer.is_full = false;
    assert_eq!(rig.offer(10, Some(&mut writer)), Offered::Taken, "it would overtake");
    assert_eq!(rig.poll(), 2);
    rig.sender.prepare(rig.bench.now, empty_graph(), 11);
    assert_eq!(rig.offer(10, Some(&mut writer)), Offered::Taken, "a change goes on");
    let mut hashed = Rig::unpaced(Scripted::default());
    assert_eq!(hashed.offer(10, Some(&mut writer)), Offered::Taken, "the hash must see it");
    let mut paced = Rig::new(Scripted::default(), plain, Pace::Bound(1_000_000));
    paced.sender.start(paced.bench.now);
    assert_eq!(writer.taken.len(), 2);
    while paced.offer(100, Some(&mut writer)) == Offered::Sent {
        assert!(writer.taken.len() < 100, "the pace must see it");
    }
    let passed: usize = writer.taken[2..].iter().map(|(head, len)| head.len() + len).sum();
    assert_eq!(paced.poll(), 1, "a debt of one at most");
    assert_eq!((paced.offer(1, Some(&mut writer)), paced.poll()), (Offered::Taken, 0));
    paced.bench.pass(ms(100));
    assert_eq!(paced.poll(), 1);
    assert!((1_000..2_000).contains(&passed), "a full bucket has let {passed} bytes out");
}

#[test]
fn a_change_enters_at_the_next_unit_and_the_end_of_the_flow_takes_a_proposal_back() {
    let mut rig = Rig::unpaced(Scripted::units(2));
    rig.poll();
    assert!(rig.sender.may_change());
    assert_eq!(rig.sender.next_epoch(), 1);
    rig.sender.prepare(rig.bench.now, slow_graph(ms(5), 1), 11);
    assert!(!rig.sender.may_change() && !rig.sender.may_rest());
    let mut cx = rig.bench.cx();
    assert_eq!(rig.sender.handle_ready(&mut cx, 1, 111, ms(40)), Some(2));
    assert_eq!(rig.sender.handle_ready(&mut cx, 1, 111, ms(40)), None);
    assert_eq!(rig.sender.current().number, 1);
    rig.sender.handle_done(&mut rig.bench.cx(), 0, &mut rig.out);
    assert_eq!(rig.told(), ["retire 10", "changed 1"]);
    rig.sender.prepare(rig.bench.now, empty_graph(), 12);
    rig.sender.close(&mut rig.bench.cx(), &mut rig.out);
    rig.poll();
    let told = rig.told();
    assert_eq!(told[..2], ["ABORT 2".to_owned(), "END 2 20 0".into()], "{told:?}");
    rig.sender.flush(&mut rig.bench.cx());
    assert_eq!(rig.bench.pool.live_views(), 0);
}

#[test]
fn credit_holds_units_back_before_the_graph() {
    let mut rig = Rig::unpaced(Scripted::units(9));
    rig.poll();
    rig.sender.prepare(rig.bench.now, slow_graph(ms(5), 2), 11);
    assert!(rig.sender.handle_ready(&mut rig.bench.cx(), 1, 111, ms(40)).is_some());
    rig.poll();
    rig.bench.pass(ms(5));
    rig.sender.handle_timeout(&mut rig.bench.cx(), ms(40), &mut rig.out);
    (0..9).for_each(|_| rig.source.say(Say::Unit(vec![1; 10])));
    rig.sender.wake(rig.bench.now);
    rig.poll();
    assert_eq!((rig.sender.sent(), rig.sender.waiting()), (11, 7));
}
