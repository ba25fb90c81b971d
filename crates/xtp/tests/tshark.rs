//! Packets of every format that were written here are read by tshark: without a complaint, and
//! with the values that were put in.
//!
//! Where tshark is not installed the tests say so and prove nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::gate;
use common::group::GroupWorld;
use common::world::{Side, World, address};
use dacapo_base::{Random, Time};
use dacapo_link::{LinkConfig, Loss};
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Code, Control, Diagnostic, Format, Frame, Header, Key, Limits,
    Options, Payload, Reason, Service, Span, Spans, Traffic, TrafficControl, Writer,
};
use dacapo_xtp::{Config, End, GroupPolicy, Listen, Mode, Open, Retransmission};
use std::time::Duration;

/// A stream both ways over a bad link, with every option of a mode.
fn stream_over_a_bad_link(seed: u64, retransmission: Retransmission) -> World {
    let link = LinkConfig {
        delay: Duration::from_millis(10),
        loss: Loss::Random { p: 0.1 },
        duplicate: 0.05,
        reorder: 0.05,
        ..LinkConfig::default()
    };
    let mode = Mode { sort: Some(7), fast_report: true, retransmission, ..Mode::default() };
    let mut world = World::new(seed, Config::default(), &link);
    world.ends[1].listen(Listen { mode, ..Listen::on(7) }).unwrap();
    let ends = (([192, 0, 2, 2], 7).into(), ([192, 0, 2, 1], 9).into());
    let open = Open { mode, ..Open::stream(address(1), ends.0, ends.1) };
    let random = &mut Random::from_number(seed);
    let mut sides = [Side::new(random, 100_000, 5_000), Side::new(random, 50_000, 5_000)];
    sides[0].id = Some(world.ends[0].open(world.now, &open).unwrap());
    world.run(|world| {
        sides.iter_mut().enumerate().for_each(|(end, side)| side.work(world, end));
    });
    assert!(sides[1].has_all_of(&sides[0]) && sides[0].has_all_of(&sides[1]));
    world
}

#[test]
fn case_67_tshark_reads_every_packet_of_whole_associations() {
    if !gate::has_tshark() {
        return;
    }
    let modes = [Retransmission::Selective, Retransmission::GoBackN];
    let mut packets = Vec::new();
    for (seed, retransmission) in (0..).zip(modes) {
        packets.extend(stream_over_a_bad_link(seed, retransmission).sent);
    }
    // Nobody listens there.
    let mut world = World::new(9, Config::default(), &LinkConfig::default());
    let ends = (([192, 0, 2, 2], 7).into(), ([192, 0, 2, 1], 9).into());
    world.ends[0].open(world.now, &Open::stream(address(1), ends.0, ends.1)).unwrap();
    world.exchange();
    packets.extend(world.sent);
    let format = |packet: &[u8]| Frame::open(packet).unwrap().header.format;
    for wanted in
        [Format::First, Format::Data, Format::Cntl, Format::Ecntl, Format::Tcntl, Format::Diag]
    {
        assert!(packets.iter().any(|(_, packet)| format(packet) == wanted), "no {wanted:?}");
    }
    gate::judge("associations", packets.iter().map(|(_, packet)| packet.as_slice()));
}

/// Four members over a bad link: one joins late, one dies, one is refused.
fn group_over_a_bad_link(seed: u64) -> GroupWorld {
    let link = LinkConfig {
        delay: Duration::from_millis(10),
        loss: Loss::Random { p: 0.1 },
        duplicate: 0.05,
        ..LinkConfig::default()
    };
    let mut data = vec![0; 200_000];
    Random::from_number(seed).fill(&mut data);
    let mut world = GroupWorld::new(seed, Config::default(), &link, data);
    (0..3).for_each(|_| world.listen(Mode { sort: Some(7), ..Mode::default() }));
    let policy = GroupPolicy { members_first: 3, members_max: 4, ..GroupPolicy::default() };
    let limits = Limits { out_rate: 50_000, out_burst: 5_000, ..Limits::default() };
    world.open(Mode { sort: Some(7), limits, ..common::group::open().mode }, &policy);
    while world.joined().len() < 3 {
        assert!(world.turn(Time::NEVER));
    }
    world.hearers[0].is_cut = true;
    world.join(Mode::default());
    while world.joined().len() < 4 {
        assert!(world.turn(Time::NEVER));
    }
    world.join(Mode::default());
    world.run();
    assert_eq!(world.end(), Some(End::Complete));
    world
}

#[test]
fn case_67_tshark_reads_every_packet_of_a_reliable_group() {
    if !gate::has_tshark() {
        return;
    }
    let packets = group_over_a_bad_link(3).sent;
    let format = |packet: &[u8]| Frame::open(packet).unwrap().header.format;
    for wanted in
        [Format::First, Format::Jcntl, Format::Data, Format::Cntl, Format::Ecntl, Format::Diag]
    {
        assert!(packets.iter().any(|(_, packet)| format(packet) == wanted), "no {wanted:?}");
    }
    gate::judge("reliable-group", packets.iter().map(|(_, packet)| packet.as_slice()));
}

fn written(options: Options, body: &Body<'_>) -> Vec<u8> {
    let key = Key::returned(0x0123_4567_89AB_CDEF);
    let header = Header { options, sync: 7, seq: 1_000, ..Header::new(key, body.format()) };
    let mut packet = Vec::new();
    Writer::packet(&header, body, &mut packet).unwrap();
    packet
}

fn segment() -> AddressSegment {
    let destination = "192.0.2.2:5000".parse().unwrap();
    let source = "192.0.2.1:4000".parse().unwrap();
    AddressSegment { domain: 0, address: Address::Internet { destination, source } }
}

fn traffic() -> Traffic {
    let limits = Limits {
        data_len_max: 1_400,
        in_rate: 1_500_000,
        in_burst: 10_000,
        out_rate: 1_250_000,
        out_burst: 9_000,
    };
    Traffic { service: Service::Stream as u8, limits: Some(limits) }
}

fn one_of_each() -> Vec<Vec<u8>> {
    let control = Control { rseq: 11, alloc: 65_547, echo: 6 };
    let traffic_control = TrafficControl { control, xkey: 0x00AB_CDEF };
    let data = Payload { tag: None, data: b"hello" };
    let tagged = Payload { tag: Some(*b"a tag ok"), data: b"hello" };
    let spans = [Span { left: 20, right: 30 }, Span { left: 40, right: 45 }];
    let diagnostic =
        Diagnostic { code: Code::PACKET_SIZE, reason: Reason::UNSPECIFIED, message: b"1400" };
    let of = |body: Body<'_>| written(Options::NONE, &body);
    vec![
        of(Body::Data(data)),
        of(Body::Data(Payload::default())),
        written(Options::BTAG | Options::EOM, &Body::Data(tagged)),
        written(Options::NOCHECK | Options::NOERR, &Body::Data(data)),
        of(Body::Cntl(control)),
        of(Body::First(segment(), traffic(), Payload::default())),
        of(Body::First(segment(), Traffic { service: 1, limits: None }, data)),
        of(Body::Ecntl(control, Spans::List(&spans))),
        of(Body::Ecntl(control, Spans::List(&[]))),
        of(Body::Tcntl(traffic_control, traffic())),
        of(Body::Jcntl(traffic_control, segment(), traffic())),
        of(Body::Diag(diagnostic)),
    ]
}

#[test]
fn tshark_reads_packets_of_every_format() {
    if gate::has_tshark() {
        gate::judge("formats", one_of_each().iter().map(Vec::as_slice));
    }
}

#[test]
fn tshark_reads_every_option() {
    if !gate::has_tshark() {
        return;
    }
    let data = Payload { tag: Some(*b"12345678"), data: b"x" };
    let packet = |(option, _): &(Options, &str)| {
        let payload = if option.has(Options::BTAG) { data } else { Payload::default() };
        written(*option, &Body::Data(payload))
    };
    let packets: Vec<Vec<u8>> = Options::ALL.iter().map(packet).collect();
    gate::judge("options", packets.iter().map(Vec::as_slice));
    let packets = packets.iter().map(Vec::as_slice);
    let shown = gate::shown("options-shown", packets, &["xtp.cmd.options"]);
    let expected: Vec<u32> = Options::ALL.iter().map(|(option, _)| option.bits() >> 8).collect();
    let read = |text: &String| u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    assert_eq!(shown.iter().map(read).collect::<Vec<u32>>(), expected);
}

#[test]
fn tshark_shows_the_values_that_were_put_in() {
    if !gate::has_tshark() {
        return;
    }
    let packets = one_of_each();
    let names = ["xtp.key", "xtp.sync", "xtp.seq", "xtp.dlen"];
    let shown = gate::shown("header", packets.iter().map(Vec::as_slice), &names);
    for (line, packet) in shown.iter().zip(&packets) {
        let expected = format!("0x8123456789abcdef\t7\t1000\t{}", packet.len() - 32);
        assert_eq!(*line, expected);
    }
    let control = [packets[4].as_slice()];
    let names = ["xtp.cntl.rseq", "xtp.cntl.alloc", "xtp.cntl.echo"];
    assert_eq!(gate::shown("control", control, &names), ["11\t65547\t6"]);
    let names = ["xtp.tspec.maxdata", "xtp.tspec.inrate", "xtp.tspec.outburst", "xtp.aseg.dsthost"];
    let first = [packets[5].as_slice()];
    assert_eq!(gate::shown("first", first, &names), ["1400\t1500000\t9000\t192.0.2.2"]);
}
