//! The ends of flows, one by one: what each is asked, what goes and comes, how a sink holds it up.

use super::*;
use crate::fanout::{FanOutMember, Fed};
use crate::flow::epoch::{RxEpoch, TxEpoch};
use crate::flow::receiver::{Keeping, Receiver};
use crate::flow::sender::{Pace, Sender};
use crate::flow::tests::{Bench, PARAMS, Say, empty_graph, slow_graph, told};
use crate::flow::{FlowOut, Lost, PathTimes};
use crate::ids::{FanOutId, StreamId as Stream};
use crate::peer::PathSet;
use crate::queues::Queues;
use crate::session::{Flow, FlowEnd};
use crate::transmit::{Offered, StreamWriter, Way};
use dacapo_base::Address;
use dacapo_path::{BelowSeen, Controller, ControllerEntry, ControllerSpec};

const PATH: PathTimes = PathTimes { rtt: ms(40), variation: ms(3), is_lost: false };

fn sender(bench: &Bench, source: &Scripted) -> FlowEnd {
    let epoch = TxEpoch::new(0, empty_graph(), 10);
    let (source, queues) = (source.boxed(), Queues::default());
    FlowEnd::Sender(Box::new(Sender::new(
        bench.now,
        PARAMS,
        source,
        epoch,
        Pace::Transport,
        queues,
    )))
}

fn receiver(bench: &Bench, sink: &Basket) -> FlowEnd {
    let (epoch, sink) = (RxEpoch::new(0, empty_graph(), 11, true), sink.boxed());
    let queues = Queues::default();
    FlowEnd::Receiver(Box::new(Receiver::new(
        PARAMS,
        sink,
        epoch,
        Keeping::Transport,
        bench.now,
        queues,
    )))
}

fn member() -> FlowEnd {
    FlowEnd::Member(FanOutMember::new(FanOutId(9), 0, Fed::default()))
}

/// Whether it is idle, live, at rest, settled.
fn is(end: &FlowEnd) -> [bool; 4] {
    [end.is_idle(), end.is_live(), end.may_rest(), end.is_settled()]
}

const SETTLED: [bool; 4] = [true, false, true, true];

#[test]
fn a_flow_that_is_not_set_up_is_settled_and_gives_nothing() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let mut end = FlowEnd::None;
    assert_eq!((is(&end), end.epoch(), end.modules().len()), (SETTLED, None, 0));
    assert!(!end.may_give(bench.now));
    let packet = bench.unit(0, &[1; 10]);
    end.handle_packet(&mut bench.cx(), 0, packet, PATH, &mut out);
    assert!(end.poll_packet(&mut bench.cx(), usize::MAX, &mut out).is_none());
    assert!(end.with_epoch(&mut bench.cx(), 0, &mut out, |_, _| ()).is_none());
    end.give_up(&mut bench.cx(), &Ending::Closed, &mut out);
    assert!(out.is_empty());
    assert_eq!(bench.pool.live_views(), 0, "what comes for it is given back");
}

#[test]
fn what_sends_is_unsettled_until_its_units_are_accounted_for() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let source = Scripted::units(1);
    let mut end = sender(&bench, &source);
    assert_eq!((is(&end), end.epoch()), ([true, true, true, false], Some(0)));
    assert!(!end.may_give(bench.now), "it pauses");
    end.set_running(bench.now, true);
    assert!(end.may_give(bench.now));
    end.set_suspended(bench.now, true);
    assert!(end.poll_packet(&mut bench.cx(), usize::MAX, &mut out).is_none());
    end.set_suspended(bench.now, false);
    let packet = end.poll_packet(&mut bench.cx(), usize::MAX, &mut out).unwrap();
    let sent = end.sent(&packet);
    assert_eq!((sent.packets, sent.bytes), (1, packet.payload_len() as u64));
    assert_eq!((sent.datagram_len, sent.is_acknowledged), (packet.payload_len(), false));
    bench.pool.free(packet);
    assert_eq!(is(&end), [false, true, true, false], "a unit is on its way");
    end.set_running(bench.now, false);
    assert_eq!(source.log(), ["start", "stop", "start", "stop"]);
    end.close(&mut bench.cx(), &mut out);
    assert_eq!(told(&mut out), ["END 1 10 0"]);
    end.give_up(&mut bench.cx(), &Ending::Closed, &mut out);
    assert_eq!(told(&mut out), ["ended 0 of 1, hash None", "retire 10"]);
    assert_eq!(is(&end), SETTLED);
}

#[test]
fn what_receives_is_unsettled_until_its_sink_is_finished() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let sink = Basket::new();
    let mut end = receiver(&bench, &sink);
    assert_eq!((is(&end), end.epoch()), ([true, true, true, false], Some(0)));
    let packet = bench.unit(0, &[1; 10]);
    end.handle_packet(&mut bench.cx(), 0, packet, PATH, &mut out);
    assert_eq!(sink.numbers(), [0]);
    assert!(!end.is_idle() && !end.is_settled());
    assert!(!end.may_give(bench.now));
    let asked = sink.with(|seen| std::mem::take(&mut seen.asked));
    end.handle_timeout(&mut bench.cx(), PATH, &mut out);
    assert!(asked > 0 || sink.with(|seen| seen.asked) > 0, "its sink has its time");
    let error = Error::new(Code::ContactLost, "gone");
    let seen = end.with_epoch(&mut bench.cx(), 0, &mut out, |runner, _| runner.modules().count());
    assert_eq!(seen, Some(0));
    told(&mut out);
    end.give_up(&mut bench.cx(), &Ending::Abnormal(error.to_string()), &mut out);
    assert!(told(&mut out).contains(&"retire 11".to_owned()));
    assert_eq!(sink.ending(), Some(Ending::Abnormal(error.to_string())));
    assert_eq!((is(&end), bench.pool.live_views()), (SETTLED, 0));
}

#[test]
fn a_member_of_a_fan_out_is_accounted_for_by_its_report() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let mut end = member();
    assert_eq!((is(&end), end.epoch()), ([false, true, true, false], Some(0)));
    let packet = bench.raw(&[7; 20]);
    let FlowEnd::Member(it) = &mut end else { panic!() };
    it.push(packet).unwrap();
    assert!(end.may_give(bench.now) && !end.may_rest());
    let packet = end.poll_packet(&mut bench.cx(), 0, &mut out).expect("whatever the path allows");
    end.handle_packet(&mut bench.cx(), 0, packet, PATH, &mut out);
    assert_eq!(bench.pool.live_views(), 0, "nothing comes back to it");
    let FlowEnd::Member(it) = &mut end else { panic!() };
    it.give_up(&Fed::default(), &mut out);
    assert_eq!(is(&end), SETTLED);
}

#[test]
fn what_has_lost_its_way_ends_at_either_end() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let (source, sink) = (Scripted::default(), Basket::new());
    let error = Error::new(Code::NoDataPath, "no way");
    let mut end = sender(&bench, &source);
    end.lose(&mut bench.cx(), Lost::Way, &error, &mut out);
    assert!(!end.is_live());
    assert_eq!(told(&mut out)[1], "failed: no way");
    let mut end = receiver(&bench, &sink);
    end.lose(&mut bench.cx(), Lost::Way, &error, &mut out);
    assert!(!end.is_live());
}

#[test]
fn labels_of_the_other_end_are_put_before_what_leaves() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let mut end = sender(&bench, &Scripted::units(1));
    end.set_label_tx(0x0102_0304);
    end.set_running(bench.now, true);
    let packet = end.poll_packet(&mut bench.cx(), usize::MAX, &mut out).unwrap();
    let head = bench.pool.segment(&packet, 0);
    let label = dacapo_wire::data::Header { label: 0x0102_0304 }.emit();
    assert_eq!(head.get(..label.len()), Some(&label[..]));
    bench.pool.free(packet);
}

#[test]
fn time_that_did_not_count_moves_what_a_flow_waits_for() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let source = Scripted::units(1);
    let epoch = TxEpoch::new(0, slow_graph(ms(60_000), 4), 10);
    let queues = Queues::default();
    let mut it = Sender::new(bench.now, PARAMS, source.boxed(), epoch, Pace::Bound(8), queues);
    it.start(bench.now);
    it.poll_packet(&mut bench.cx(), usize::MAX, &mut out);
    let mut end = FlowEnd::Sender(Box::new(it));
    end.handle_timeout(&mut bench.cx(), PATH, &mut out);
    let built = empty_graph();
    let FlowEnd::Sender(it) = &mut end else { panic!() };
    it.prepare(bench.now, built, 77);
    let due = |end: &FlowEnd| match end {
        FlowEnd::Sender(it) => it.next_deadline(at(1_000), false),
        _ => None,
    };
    let before = due(&end).unwrap();
    end.shift(ms(500));
    assert_eq!(due(&end), Some(before + ms(500)));
    end.give_up(&mut bench.cx(), &Ending::Closed, &mut out);
    assert_eq!(bench.pool.live_views(), 0);
}

/// Asks a flow for its next packet: how it goes and to where, when it may send.
pub(super) fn poll(rig: &mut Rig, index: usize) -> Option<(Way, Address, bool)> {
    let (now, mut told) = (rig.now, FlowOut::default());
    let (shared, peer) = (&mut rig.shared, &mut rig.peer);
    let polled = rig.session.on_flow(index, |it| it.poll_packet(now, shared, peer, &mut told));
    let (way, by, packet) = polled.unwrap()?;
    let by_path = || rig.peer.way_by(by.iter().next().unwrap()).unwrap().1;
    let to = if way == Way::Data { by_path() } else { rig.peer.remote() };
    let is_some = packet.is_some();
    packet.into_iter().for_each(|packet| rig.shared.pool.free(packet));
    Some((way, to, is_some))
}

fn stream_of(rig: &Rig, index: usize) -> Stream {
    rig.session.flows()[index].channel.unwrap().id()
}

#[test]
fn a_flow_on_a_stream_sends_while_that_takes_something() {
    let mut rig = Rig::active();
    let (stream, to) = (stream_of(&rig, 1), "192.0.2.1:9".parse().unwrap());
    rig.source.say(Say::Unit(vec![1; 10]));
    let event = |rig: &mut Rig, event| {
        rig.with(|it, cx, out| it.handle_channel(cx, (1, stream), event, out));
    };
    event(&mut rig, ChannelEvent::Ready(false));
    assert_eq!(poll(&mut rig, 1), None);
    event(&mut rig, ChannelEvent::Ready(true));
    assert_eq!(poll(&mut rig, 1), Some((Way::Stream(stream), to, true)));
    assert_eq!(poll(&mut rig, 1), Some((Way::Stream(stream), to, false)));
    assert_eq!(rig.session.flows()[1].way(true), Some(Way::Stream(stream)));
    assert_eq!(rig.session.flows()[1].status().sent, 1);
}

static PACED: ControllerSpec =
    ControllerSpec { name: "paced", summary: "", source: "", datagrams: true, usual: None };

/// A controller that lets out 80 kbit/s.
struct Paced;

impl Controller for Paced {
    fn rate_bps(&self) -> Option<u64> {
        Some(80_000)
    }
}

#[test]
fn a_flow_by_datagrams_sends_what_the_path_lets_out_and_waits_for_room() {
    let mut rig = Rig::active();
    rig.peer = Peer::on_path("192.0.2.1:9", &ControllerEntry::new(&PACED, |_, _| Box::new(Paced)));
    rig.session.on_flow(1, |flow| flow.channel = None);
    assert_eq!(rig.session.flows()[1].way(false), None);
    assert_eq!(rig.session.flows()[1].way(true), Some(Way::Data));
    let to = "192.0.2.1:9".parse().unwrap();
    let now = rig.now;
    let allowed = rig.peer.allowance(now, PathSet::FIRST, false);
    let mut count = 0;
    while rig.peer.allowance(now, PathSet::FIRST, false) > 0 {
        rig.source.say(Say::Unit(vec![1; 100]));
        let flow = |flow: &mut Flow| {
            if let FlowEnd::Sender(it) = &mut flow.end {
                it.wake(now)
            }
        };
        rig.session.on_flow(1, flow);
        assert_eq!(poll(&mut rig, 1), Some((Way::Data, to, true)));
        count += 1;
        assert!(
            count < 1_000 && rig.peer.allowance(now, PathSet::FIRST, false) < allowed,
            "it is paid for"
        );
    }
    assert_eq!(rig.peer.data().due(now), None, "nothing waits");
    rig.source.say(Say::Unit(vec![1; 100]));
    rig.session.on_flow(1, |flow| {
        if let FlowEnd::Sender(it) = &mut flow.end {
            it.wake(now)
        }
    });
    assert_eq!(poll(&mut rig, 1), Some((Way::Data, to, false)));
    assert!(rig.peer.data().due(now).is_some(), "the path says when there is room");
    assert!(rig.session.flows()[1].has_backlog() && !rig.session.flows()[0].has_backlog());
}

#[test]
fn a_sink_without_room_holds_its_stream_up_and_lets_it_go_on() {
    let mut rig = Rig::active();
    let stream = stream_of(&rig, 0);
    let come = |rig: &mut Rig, place| {
        let mut bench = Bench::new();
        let header = dacapo_wire::unit::Header::new(dacapo_wire::unit::Kind::Data, place).emit();
        let bytes = [&header[..], &[1; 10]].concat();
        let packet = rig.shared.pool.packet_from(0, &bytes, 0).unwrap();
        bench.now = rig.now;
        let (now, shared, mut told) = (rig.now, &mut rig.shared, FlowOut::default());
        rig.session
            .on_flow(0, |it| it.handle_data(now, shared, 0, packet, PATH, &mut told))
            .unwrap()
    };
    assert!(!come(&mut rig, 0), "there is nothing to send");
    assert_eq!((rig.sink.numbers(), rig.shared.channels.poll()), (vec![0], None));
    rig.sink.with(|seen| seen.has_capacity = false);
    come(&mut rig, 1);
    let read = |is_reading| Some(StreamAsk::Read { stream, is_reading });
    assert_eq!(rig.shared.channels.poll(), read(false));
    let wake = |rig: &mut Rig| {
        let (now, channels) = (rig.now, &mut rig.shared.channels);
        rig.session.on_flow(0, |flow| flow.wake(now, channels));
    };
    wake(&mut rig);
    assert_eq!(rig.shared.channels.poll(), None, "there is no room yet");
    rig.sink.with(|seen| seen.has_capacity = true);
    wake(&mut rig);
    assert_eq!(rig.shared.channels.poll(), read(true));
}

#[test]
fn a_source_that_was_idle_is_asked_again_when_it_is_woken() {
    let mut rig = Rig::active();
    assert!(matches!(poll(&mut rig, 1), Some((_, _, false))));
    rig.source.say(Say::Unit(vec![1; 10]));
    assert!(matches!(poll(&mut rig, 1), Some((_, _, false))));
    let (now, channels) = (rig.now, &mut rig.shared.channels);
    rig.session.on_flow(1, |flow| flow.wake(now, channels));
    assert!(matches!(poll(&mut rig, 1), Some((_, _, true))));
}

#[derive(Default)]
struct Written(Vec<Stream>);

impl StreamWriter for Written {
    fn write_split(&mut self, _: Time, stream: Stream, _: &[u8], _: &[u8]) -> bool {
        self.0.push(stream);
        true
    }
}

#[test]
fn a_unit_that_is_offered_leaves_directly_where_it_may_and_is_copied_elsewhere() {
    let mut rig = Rig::active();
    let (mut writer, now) = (Written::default(), rig.now);
    let mut offer = |rig: &mut Rig, index| {
        let mut cx = rig.shared.flow(now);
        rig.session.on_flow(index, |it| it.offer(&mut cx, &[1; 10], &mut writer)).unwrap()
    };
    assert_eq!(offer(&mut rig, 0), Offered::NotNow, "it receives");
    assert_eq!(offer(&mut rig, 1), Offered::Sent, "its pace lets it out");
    let mut bench = Bench::new();
    bench.now = now;
    let epoch = TxEpoch::new(0, empty_graph(), 10);
    let (source, queues) = (rig.source.boxed(), Queues::default());
    let hashed = crate::flow::FlowParams { digest: true, ..PARAMS };
    let mut hashed = Sender::new(now, hashed, source, epoch, Pace::Transport, queues);
    hashed.start(now);
    rig.session.on_flow(1, |flow| {
        flow.end.give_up(&mut rig.shared.flow(now), &Ending::Closed, &mut FlowOut::default())
    });
    rig.session.on_flow(1, |flow| flow.end = FlowEnd::Sender(Box::new(hashed)));
    assert_eq!(offer(&mut rig, 1), Offered::Taken, "the hash must see it");
    let stream = stream_of(&rig, 1);
    assert_eq!(writer.0, [stream]);
}

#[test]
fn a_flow_shows_what_it_is_and_what_is_known_of_its_stream() {
    let mut rig = Rig::active();
    let status = rig.session.flows()[1].status();
    assert_eq!((status.offer.flow, status.stream), (1, Some(stream_of(&rig, 1))));
    assert!(status.path.is_none() && status.ledger.is_none() && status.refused.is_none());
    assert!(rig.session.flows()[0].status().ledger.is_some(), "who receives has an account");
    let now = rig.now;
    rig.session.on_flow(1, |flow| flow.handle_below(now, &BelowSeen::default()));
    assert!(rig.session.flows()[1].status().path.is_some());
    let name = rig.session.flows()[1].channel_name(&rig.shared.graphs);
    assert_eq!(name, "the bytes stream of the flow");
    let graphs = &rig.shared.graphs;
    assert_eq!(rig.session.flows()[1].datagram_len(graphs, 500), 1_000, "no path bounds a stream");
    assert!(!rig.session.flows()[0].is_in_group(graphs));
}
