//! Round trips of packets of any content, and hostile bytes, from numbered seeds.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::vectors;
use dacapo_base::Random;
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Code, Control, Diagnostic, Fault, Frame, Header, Key, Limits,
    Options, PACKET_LEN_MAX, Payload, Reason, SPANS_MAX, Span, Spans, TooLong, Traffic,
    TrafficControl, Writer,
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

fn host(random: &mut Random, is_v6: bool) -> SocketAddr {
    let mut octets = [0; 16];
    random.fill(&mut octets);
    let ip = Ipv4Addr::from_bits(random.next_u32());
    let ip = if is_v6 { Ipv6Addr::from(octets).into() } else { ip.into() };
    SocketAddr::new(ip, random.next_u32() as u16)
}

fn address(random: &mut Random) -> AddressSegment {
    let is_v6 = random.chance(0.4);
    let internet =
        Address::Internet { destination: host(random, is_v6), source: host(random, is_v6) };
    let address = if random.chance(0.2) { Address::Null } else { internet };
    AddressSegment { domain: random.next_u32() as u8, address }
}

fn traffic(random: &mut Random) -> Traffic {
    let limits = Limits {
        data_len_max: random.next_u32(),
        in_rate: random.next_u32(),
        in_burst: random.next_u32(),
        out_rate: random.next_u32(),
        out_burst: random.next_u32(),
    };
    Traffic { service: random.next_u32() as u8, limits: random.chance(0.7).then_some(limits) }
}

fn control(random: &mut Random) -> Control {
    Control { rseq: random.next_u64(), alloc: random.next_u64(), echo: random.next_u32() }
}

fn body<'a>(random: &mut Random, bytes: &'a [u8], spans: &'a [Span]) -> Body<'a> {
    let tag = random.chance(0.3).then_some(*b"8 bytes.");
    let payload = Payload { tag, data: bytes };
    let xkey = random.next_u64();
    match random.below(8) {
        0 => Body::Data(payload),
        1 => Body::Cntl(control(random)),
        2 => Body::First(address(random), traffic(random), payload),
        3 => Body::Ecntl(control(random), Spans::List(spans)),
        4 => Body::Tcntl(TrafficControl { control: control(random), xkey }, traffic(random)),
        5 => Body::Join(bytes),
        6 => {
            let control = TrafficControl { control: control(random), xkey };
            Body::Jcntl(control, address(random), traffic(random))
        }
        _ => Body::Diag(Diagnostic {
            code: Code(random.next_u32()),
            reason: Reason(random.below(14) as u32),
            message: bytes,
        }),
    }
}

fn header(random: &mut Random, body: &Body<'_>) -> Header {
    let mut options = Options::from_command(random.next_u32()).without(Options::BTAG);
    if let Body::Data(Payload { tag: Some(_), .. })
    | Body::First(_, _, Payload { tag: Some(_), .. }) = body
    {
        options |= Options::BTAG;
    }
    Header {
        key: Key::from_bits(random.next_u64()),
        options,
        format: body.format(),
        sort: random.next_u32() as u16,
        sync: random.next_u32(),
        seq: random.next_u64() >> 1,
    }
}

#[test]
fn what_is_written_reads_back_for_every_packet() {
    for seed in 0..5_000 {
        let random = &mut Random::from_number(seed);
        let mut bytes = vec![0; random.below(2_000) as usize];
        random.fill(&mut bytes);
        let span = |_| Span { left: random.next_u64(), right: random.next_u64() };
        let spans: Vec<Span> = (0..seed % 70).map(span).collect();
        let body = body(random, &bytes, &spans);
        let header = header(random, &body);
        let mut packet = b"before".to_vec();
        Writer::packet(&header, &body, &mut packet).unwrap();
        let frame = Frame::open(&packet[6..]).unwrap_or_else(|fault| panic!("{seed}: {fault}"));
        assert_eq!(frame.header, header, "seed {seed}");
        assert_eq!(frame.body(), Ok(body), "seed {seed}");
    }
}

#[test]
fn no_truncation_of_a_good_packet_is_a_packet() {
    for (name, hex) in vectors::GOOD {
        let packet = common::bytes(hex);
        for len in 0..packet.len() {
            let fault = Frame::open(&packet[..len]).expect_err(name);
            let expected = if len < 32 { Fault::Short } else { Fault::Length };
            assert_eq!(fault, expected, "{name} of {len} bytes");
        }
    }
}

#[test]
fn random_bytes_with_a_right_checksum_are_read_or_refused() {
    let (mut read, mut refused) = (0, [0; Fault::COUNT]);
    for seed in 0..20_000 {
        let random = &mut Random::from_number(seed);
        let pick = random.below(20) as usize;
        let mut packet = common::bytes(vectors::GOOD[pick].1);
        for _ in 0..random.below(4) {
            let at = random.below(packet.len() as u64) as usize;
            packet[at] = random.next_u32() as u8;
        }
        if random.chance(0.3) {
            packet.truncate(32 + random.below(packet.len() as u64 - 31) as usize);
        }
        let len = packet.len() as u32 - 32;
        packet[12..16].copy_from_slice(&len.to_be_bytes());
        packet[16..18].fill(0);
        let is_whole = packet[8] & 0x40 == 0;
        let covered = if is_whole { packet.len() } else { 32 };
        let check = dacapo_xtp::wire::checksum(dacapo_xtp::wire::sum(&[&packet[..covered]]));
        packet[16..18].copy_from_slice(&check.to_be_bytes());
        match Frame::open(&packet).and_then(|frame| frame.body()) {
            Ok(_) => read += 1,
            Err(fault) => refused[fault.index()] += 1,
        }
    }
    // What was mended cannot be wrong; all else is wrong at times.
    let mended = [Fault::Short, Fault::Length, Fault::Checksum].map(Fault::index);
    for (index, count) in refused.into_iter().enumerate() {
        let is_mended = mended.contains(&index) || index == Fault::Sequence.index();
        assert!(is_mended || count > 0, "no packet had fault {index}");
        assert!(!mended.contains(&index) || count == 0, "{count} had fault {index}");
    }
    assert!(read > 5_000, "{read}");
}

#[test]
fn the_sum_is_that_of_rfc_1071_however_it_is_cut() {
    for seed in 0..500 {
        let random = &mut Random::from_number(seed);
        let mut bytes = vec![0; random.below(300) as usize];
        random.fill(&mut bytes);
        let word =
            |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low));
        let mut total: u64 = bytes.chunks(2).map(word).sum();
        while total >> 16 != 0 {
            total = (total & 0xFFFF) + (total >> 16);
        }
        let cut = random.below(bytes.len() as u64 + 1) as usize & !1;
        let (left, right) = bytes.split_at(cut);
        assert_eq!(u64::from(dacapo_xtp::wire::sum(&[left, right])), total, "seed {seed}");
    }
}

#[test]
fn what_is_too_long_leaves_the_buffer_as_it_was() {
    let data = vec![7; PACKET_LEN_MAX];
    let body = Body::Data(Payload { tag: None, data: &data[..PACKET_LEN_MAX - 32] });
    let header = Header::new(Key::own(1), body.format());
    let mut packet = Vec::new();
    assert_eq!(Writer::packet(&header, &body, &mut packet), Ok(()));
    assert_eq!(packet.len(), PACKET_LEN_MAX);
    let body = Body::Data(Payload { tag: None, data: &data[..PACKET_LEN_MAX - 31] });
    let mut packet = b"before".to_vec();
    let refused = Writer::packet(&header, &body, &mut packet);
    assert_eq!(refused, Err(TooLong { len: PACKET_LEN_MAX + 1 }));
    assert_eq!(packet, b"before");
}

#[test]
fn spans_are_ordered_when_each_lies_beyond_the_one_before() {
    let ordered = |spans: &[(u64, u64)]| {
        let spans: Vec<Span> = spans.iter().map(|&(left, right)| Span { left, right }).collect();
        Spans::List(&spans).is_ordered()
    };
    assert!(ordered(&[]) && ordered(&[(0, 1)]) && ordered(&[(5, 7), (7, 8), (9, u64::MAX)]));
    assert!(!ordered(&[(1, 1)]) && !ordered(&[(2, 1)]));
    assert!(!ordered(&[(0, 5), (4, 6)]) && !ordered(&[(5, 6), (1, 2)]));
}

#[test]
fn more_spans_than_a_packet_may_have_are_not_written() {
    let spans: Vec<Span> =
        (0..5_000).map(|place| Span { left: 2 * place, right: 2 * place + 1 }).collect();
    let mut bytes = Vec::new();
    Spans::List(&spans).emit(&mut bytes);
    let read = Spans::parse(&bytes).unwrap();
    assert_eq!(read.len(), SPANS_MAX as usize);
    assert!(read.iter().eq(spans.into_iter().take(SPANS_MAX as usize)));
}

#[test]
fn a_source_of_another_family_is_written_as_unspecified() {
    let destination: SocketAddr = "[2001:db8::2]:5".parse().unwrap();
    let source: SocketAddr = "192.0.2.1:6".parse().unwrap();
    let segment = AddressSegment { domain: 0, address: Address::Internet { destination, source } };
    let mut bytes = Vec::new();
    segment.emit(&mut bytes);
    assert_eq!(bytes.len(), segment.len());
    let (read, rest) = AddressSegment::parse(&bytes).unwrap();
    let source = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 6);
    assert_eq!(read.address, Address::Internet { destination, source });
    assert!(rest.is_empty());
}

#[test]
fn every_fault_has_its_own_index_and_a_text() {
    let all = [
        Fault::Short,
        Fault::Version(0),
        Fault::Length,
        Fault::Checksum,
        Fault::Format(4),
        Fault::Sequence,
        Fault::Tag,
        Fault::Control,
        Fault::Spans,
        Fault::AddressFormat(9),
        Fault::Address,
        Fault::TrafficFormat(9),
        Fault::Traffic,
        Fault::Diagnostic,
    ];
    assert!(all.iter().enumerate().all(|(index, fault)| fault.index() == index));
    assert_eq!(all.len(), Fault::COUNT);
    assert!(all.iter().all(|fault| !fault.to_string().is_empty()));
}
