//! Cases 50 to 60: handshakes, timers, and the three closes.

use crate::common::uut::{KEY, PORT, Uut, bytes, first, stream};
use crate::common::world::{World, address};
use dacapo_base::Time;
use dacapo_link::LinkConfig;
use dacapo_xtp::wire::{Control, Format, Options, Service};
use dacapo_xtp::{Config, End, Event, Listen, Message, Open, Read, Timers, UserError};
use std::time::Duration;

fn listen() -> Listen {
    Listen::on(PORT)
}

#[test]
fn case_50_an_unanswered_request_stops_data_until_its_own_answer_comes() {
    let mut uut = Uut::opening(&stream(), 1 << 20);
    uut.write(b"one");
    let asked = uut.take_one();
    assert!(asked.has(Options::SREQ));
    uut.pass_to_deadline();
    let probe = uut.take_one();
    assert_eq!(probe.format(), Format::Cntl);
    assert!(probe.has(Options::SREQ));
    assert_eq!(probe.header().sync, asked.header().sync.wrapping_add(1));
    uut.write(b"two");
    uut.silent();
    let control = Control { rseq: 0, alloc: 1 << 20, echo: asked.header().sync };
    uut.control(Options::NONE, control);
    uut.silent();
    uut.control(Options::NONE, Control { echo: probe.header().sync, ..control });
    let sent = uut.take();
    let data: Vec<&[u8]> = sent.iter().map(|sent| sent.data()).collect();
    assert_eq!(data, [b"one", b"two"]);
}

#[test]
fn case_51_numbers_of_requests_wrap() {
    // The answer to a request of the peer's with the highest number, and to the next one.
    let mut uut = Uut::opened(listen(), None);
    for sync in [0x7FFF_FFFF, u32::MAX - 1, u32::MAX, 0, 1] {
        uut.sync = sync;
        uut.control(Options::SREQ, Control { rseq: 0, alloc: 1 << 20, echo: 0 });
        assert_eq!(uut.take_one().control().echo, sync);
    }
}

#[test]
fn case_52_silence_is_asked_about_and_ends_the_association() {
    let mut uut = Uut::opening(&stream(), 1_000);
    uut.silent();
    let began = uut.now;
    let (mut probes, mut ends) = (0, 0);
    for _ in 0..40 {
        uut.pass_to_deadline();
        for sent in uut.take() {
            if sent.has(Options::END) {
                ends += 1;
            } else {
                assert!(sent.has(Options::SREQ) && sent.format() == Format::Cntl);
                assert!(uut.now.since(began) >= Duration::from_secs(59));
                probes += 1;
            }
        }
    }
    assert!((5..=11).contains(&probes) && ends == 1, "{probes} {ends}");
    assert_eq!(uut.events.last(), Some(&Event::Ended(uut.id(), End::TimedOut)));
}

/// Both ends write, finish and read; the packets of a whole association.
struct Closing {
    world: World,
    ids: [Option<dacapo_xtp::ContextId>; 2],
    is_written: [bool; 2],
}

impl Closing {
    fn new(service: Service) -> Self {
        // Nobody forgets before the other has asked for the last time.
        let timers = Timers { inactive_min: Duration::from_secs(30), ..Timers::default() };
        let config = Config { timers, ..Config::default() };
        let link = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
        let mut world = World::new(53, config, &link);
        world.ends[1].listen(listen()).unwrap();
        let ends = (([192, 0, 2, 2], PORT).into(), ([192, 0, 2, 1], 9).into());
        let open = Open { service, ..Open::stream(address(1), ends.0, ends.1) };
        let id = world.ends[0].open(world.now, &open).unwrap();
        Self { world, ids: [Some(id), None], is_written: [false; 2] }
    }

    fn write(&mut self, end: usize) {
        let Some(id) = self.ids[end].filter(|_| !self.is_written[end]) else { return };
        let now = self.world.now;
        let data = bytes(700);
        self.world.ends[end].write(now, id, &Message::whole(&data)).unwrap();
        self.world.ends[end].finish(now, id).unwrap();
        self.is_written[end] = true;
    }

    fn read(&mut self, end: usize) -> bool {
        self.ids[end] = self.ids[end].or_else(|| self.world.incoming(end));
        let Some(id) = self.ids[end] else { return false };
        let mut buffer = [0; 2_000];
        let read = self.world.ends[end].read(self.world.now, id, &mut buffer).unwrap();
        read == Read::Data { len: 700, is_end: true, tag: None }
    }

    /// Runs to the end; who answers only does when it has read the request. Both are done.
    fn run(&mut self, answers: bool) {
        self.write(0);
        for _ in 0..400 {
            self.world.exchange();
            let has_request = self.read(1);
            if has_request || !answers {
                self.write(1);
            }
            self.read(0);
            self.world.exchange();
            if !self.world.turn(Time::NEVER) {
                break;
            }
        }
        for end in 0..2 {
            let id = self.ids[end].unwrap();
            assert_eq!(self.world.ended(end, id), Some(End::Complete), "end {end}");
            self.world.ends[end].release(self.world.now, id).unwrap();
            let left =
                (self.world.ends[end].context_count(), self.world.ends[end].inactive_count());
            assert_eq!(left, (0, 0), "end {end}");
        }
    }
}

#[test]
fn case_53_both_ends_close_one_after_the_other_whichever_packet_is_lost() {
    for answers in [true, false] {
        let mut whole = Closing::new(Service::Stream);
        whole.run(answers);
        let count = whole.world.sent.len();
        assert!(count <= 9, "{count}");
        for lost in 0..count {
            let mut closing = Closing::new(Service::Stream);
            closing.world.lose = Some(lost);
            closing.run(answers);
        }
    }
}

#[test]
fn a_way_that_ends_for_good_at_any_packet_leaves_nothing_behind() {
    for service in [Service::Stream, Service::Transaction] {
        for cut in 0..8 {
            let mut closing = Closing::new(service);
            closing.world.cut = Some(cut);
            closing.write(0);
            for _ in 0..1_000 {
                closing.world.exchange();
                if closing.read(1) {
                    closing.write(1);
                }
                closing.read(0);
                if !closing.world.turn(Time::NEVER) {
                    break;
                }
            }
            for end in 0..2 {
                let world = &mut closing.world;
                let Some(id) = closing.ids[end] else { continue };
                let how = world.ended(end, id).unwrap_or_else(|| panic!("{service:?} {cut} {end}"));
                assert!(matches!(how, End::Complete | End::TimedOut), "{service:?} {cut}: {how}");
                world.ends[end].release(world.now, id).unwrap();
                let engine = &world.ends[end];
                assert_eq!((engine.context_count(), engine.inactive_count()), (0, 0));
                assert_eq!(engine.deadline(), Time::NEVER);
            }
        }
    }
}

#[test]
fn case_54_a_transaction_takes_three_packets() {
    let mut closing = Closing::new(Service::Transaction);
    closing.run(true);
    let packets: Vec<(usize, Format)> = closing
        .world
        .sent
        .iter()
        .map(|(end, bytes)| (*end, dacapo_xtp::wire::Frame::open(bytes).unwrap().header.format))
        .collect();
    assert_eq!(packets, [(0, Format::First), (1, Format::Data), (0, Format::Cntl)]);
    for lost in 0..3 {
        let mut closing = Closing::new(Service::Transaction);
        closing.world.lose = Some(lost);
        closing.run(true);
    }
}

#[test]
fn case_55_a_stream_is_not_over_while_bytes_lack() {
    let mut uut = Uut::opened(listen(), None);
    uut.data(Options::WCLOSE | Options::SREQ, 100, &[1; 50]);
    let status = uut.take_one();
    assert_eq!((status.format(), status.has(Options::RCLOSE)), (Format::Ecntl, false));
    uut.data(Options::NONE, 0, &[1; 100]);
    let status = uut.take_one();
    assert!(status.has(Options::RCLOSE));
    assert_eq!(status.control().rseq, 150);
}

#[test]
fn case_56_data_beyond_the_end_is_dropped_and_said_so_once() {
    let mut uut = Uut::opened(listen(), None);
    uut.data(Options::WCLOSE, 0, &[1; 100]);
    uut.take();
    uut.data(Options::NONE, 100, &[2; 10]);
    assert_eq!(uut.take_one().diagnostic().0, 6);
    uut.data(Options::WCLOSE, 0, &[1; 50]);
    uut.data(Options::NONE, 100, &[2; 10]);
    uut.silent();
    assert_eq!(uut.read_bytes(), [1; 100]);
    assert_eq!(uut.read(), Read::Finished);
}

#[test]
fn case_57_a_reader_that_stops_stops_the_writer() {
    let mut uut = Uut::opening(&stream(), 1_000);
    uut.write(&[1; 5_000]);
    uut.take();
    uut.control(Options::RCLOSE, Control { rseq: 0, alloc: 1_000, echo: 0 });
    let sent = uut.take_one();
    assert!(sent.has(Options::WCLOSE) && sent.data().is_empty());
    let refused = uut.engine.write(uut.now, uut.id(), &Message::part(b"x"));
    assert_eq!(refused, Err(UserError::Closed));
}

#[test]
fn case_58_end_in_the_middle_is_an_abort_without_an_answer() {
    let mut uut = Uut::opened(listen(), None);
    uut.data(Options::NONE, 0, &[1; 100]);
    uut.control(Options::END, Control::default());
    uut.silent();
    assert_eq!(uut.events.last(), Some(&Event::Ended(uut.id(), End::Aborted)));
    assert_eq!(uut.read_bytes(), [1; 100], "what has come can be read");
    uut.engine.release(uut.now, uut.id()).unwrap();
    assert_eq!(uut.engine.context_count(), 0);
}

#[test]
fn an_abort_is_no_orderly_end_for_the_other_end() {
    let mut closing = Closing::new(Service::Stream);
    let id = closing.ids[0].unwrap();
    closing.world.run_until(Time::from_millis(50));
    assert!(!closing.read(1));
    let now = closing.world.now;
    let other = closing.ids[1].unwrap();
    closing.world.ends[1].finish(now, other).unwrap();
    closing.world.ends[0].write(now, id, &Message::part(&bytes(30_000))).unwrap();
    closing.world.ends[0].abort(now, id).unwrap();
    while closing.world.turn(Time::NEVER) {}
    assert_eq!(closing.world.ended(0, id), Some(End::Abandoned));
    assert_eq!(closing.world.ended(1, other), Some(End::Aborted));
}

#[test]
fn case_59_a_late_request_is_answered_with_end() {
    let mut uut = Uut::opened(listen(), None);
    uut.control(Options::END, Control::default());
    uut.engine.release(uut.now, uut.id()).unwrap();
    uut.silent();
    uut.data(Options::SREQ, 0, b"late");
    let answer = uut.take_one();
    assert!(answer.has(Options::END) && !answer.has(Options::WCLOSE), "it was an abort");
    assert_eq!(answer.control().echo, uut.sync);
    // A copy of what opened the association is late too: it opens nothing.
    uut.give(first(4, None, b"again", Options::SREQ));
    assert!(uut.take_one().has(Options::END));
    assert_eq!(uut.engine.context_count(), 0);
    uut.pass(Duration::from_secs(10));
    assert_eq!(uut.engine.inactive_count(), 0);
}

#[test]
fn a_key_is_free_again_when_its_association_is_forgotten() {
    let mut uut = Uut::opened(listen(), None);
    uut.control(Options::END, Control::default());
    uut.engine.release(uut.now, uut.id()).unwrap();
    uut.pass_to_deadline();
    uut.events.clear();
    uut.give(first(4, None, b"anew", Options::SREQ));
    assert_eq!(uut.take_one().format(), Format::Tcntl);
    let [Event::Incoming { id, .. }, Event::Readable(_)] = uut.events[..] else {
        panic!("{:?}", uut.events)
    };
    assert_ne!(Some(id), uut.id, "the handle of the one before is no handle of this one");
    let stale = uut.engine.finish(uut.now, uut.id());
    assert_eq!(stale, Err(UserError::Released));
    uut.id = Some(id);
    assert_eq!(uut.read_bytes(), b"anew");
}

#[test]
fn a_flood_of_datagrams_is_remembered_up_to_a_bound() {
    let config = Config { inactive_max: 10, ..Config::default() };
    let mut uut = Uut::new(config);
    uut.engine.listen(listen()).unwrap();
    let closes = Options::WCLOSE | Options::RCLOSE | Options::END | Options::EOM;
    for number in 0..1_000_u16 {
        // Another address each time, so another association.
        let from = ([198, 51, (number >> 8) as u8, number as u8], 4_040).into();
        uut.give_from(from, &first(1, None, b"datagram", closes | Options::NOERR));
        uut.silent();
        let Some(Event::Incoming { id, .. }) = uut.events.first().copied() else {
            panic!("{number}: {:?}", uut.events)
        };
        uut.events.clear();
        uut.id = Some(id);
        assert_eq!(uut.read_bytes(), b"datagram");
        uut.engine.release(uut.now, id).unwrap();
        uut.silent();
    }
    assert_eq!((uut.engine.context_count(), uut.engine.inactive_count()), (0, 10));
}

#[test]
fn case_60_closes_that_cross_end_without_a_loop() {
    let mut closing = Closing::new(Service::Stream);
    closing.world.exchange();
    closing.world.run_until(Time::from_millis(100));
    let before = closing.world.sent.len();
    closing.read(1);
    for end in 0..2 {
        let id = closing.ids[end].unwrap();
        closing.world.ends[end].finish(closing.world.now, id).unwrap();
    }
    while closing.world.turn(Time::NEVER) {}
    let count = closing.world.sent.len() - before;
    assert!(count <= 6, "{count} packets");
    for end in 0..2 {
        assert_eq!(closing.world.ended(end, closing.ids[end].unwrap()), Some(End::Complete));
    }
}

#[test]
fn a_datagram_is_one_packet_and_an_acknowledged_one_two() {
    for (service, count) in [(Service::Datagram, 1), (Service::AcknowledgedDatagram, 2)] {
        let mut closing = Closing::new(service);
        let id = closing.ids[0].unwrap();
        let now = closing.world.now;
        closing.world.ends[0].stop_reading(now, id).unwrap();
        closing.write(0);
        closing.world.exchange();
        closing.world.run_until(Time::from_millis(500));
        assert!(closing.read(1), "{service:?}: 700 bytes");
        assert_eq!(closing.world.sent.len(), count, "{service:?}");
        for end in 0..2 {
            let id = closing.ids[end].unwrap();
            assert_eq!(closing.world.ended(end, id), Some(End::Complete), "{service:?}");
        }
    }
}

#[test]
fn a_peer_that_has_forgotten_everything_is_told_from_one_that_was_overtaken() {
    let mut uut = Uut::opening(&stream(), 1_000);
    uut.write(b"hello");
    uut.take();
    let disown = |uut: &Uut, sync: u32| {
        use dacapo_xtp::wire::{Body, Code, Diagnostic, Header, Key, Reason};
        let (code, reason) = (Code::INVALID_CONTEXT, Reason::UNSPECIFIED);
        let key = Key::returned(uut.xkey);
        let header = Header { sync, ..Header::new(key, Format::Diag) };
        crate::common::uut::packet(&header, &Body::Diag(Diagnostic { code, reason, message: b"" }))
    };
    uut.give(disown(&uut, 7));
    let probe = uut.take_one();
    assert!(probe.has(Options::SREQ) && probe.header().key.value() == KEY);
    uut.give(disown(&uut, 7));
    assert!(uut.events.iter().all(|event| !matches!(event, Event::Ended(..))));
    uut.give(disown(&uut, probe.header().sync));
    assert_eq!(uut.events.last(), Some(&Event::Ended(uut.id(), End::Disowned)));
}
