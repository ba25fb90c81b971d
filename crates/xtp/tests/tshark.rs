//! Packets of every format that were written here are read by tshark: without a complaint, and
//! with the values that were put in.
//!
//! Where tshark is not installed the tests say so and prove nothing.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::gate;
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Code, Control, Diagnostic, Header, Key, Limits, Options,
    Payload, Reason, Service, Span, Spans, Traffic, TrafficControl, Writer,
};

fn written(options: Options, body: &Body<'_>) -> Vec<u8> {
    let key = Key::returned(0x0123_4567_89AB_CDEF);
    let header = Header { options, sync: 7, seq: 1_000, ..Header::new(key, body.format()) };
    let mut packet = Vec::new();
    Writer::packet(&header, body, &mut packet).unwrap();
    packet
}

fn address() -> AddressSegment {
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
        of(Body::First(address(), traffic(), Payload::default())),
        of(Body::First(address(), Traffic { service: 1, limits: None }, data)),
        of(Body::Ecntl(control, Spans::List(&spans))),
        of(Body::Ecntl(control, Spans::List(&[]))),
        of(Body::Tcntl(traffic_control, traffic())),
        of(Body::Jcntl(traffic_control, address(), traffic())),
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
