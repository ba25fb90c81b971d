//! Packets of XTP as bytes.
//!
//! What it is not: associations, and what a packet does to one.

use crate::input::Input;
use crate::oracle;
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Code, Control, Diagnostic, Fault, Frame, HEADER_LEN, Header,
    Key, Limits, Options, PACKET_LEN_MAX, Payload, Reason, Span, Spans, Traffic, TrafficControl,
    Writer, checksum, sum,
};

/// Reserved bits, which are ignored: bit 31 of the command word, and its octet.
const RESERVED: [(usize, u8); 2] = [(8, 0x80), (10, 0xFF)];

/// The first byte says whether length and checksum are mended; the rest is a packet.
pub fn packet(data: &[u8]) {
    let mut input = Input(data);
    let is_mended = input.u8() % 4 != 0;
    let mut bytes = input.rest().to_vec();
    if is_mended {
        mend(&mut bytes);
    }
    let read = oracle::bounded("a packet", bytes.len(), || {
        let frame = Frame::open(&bytes)?;
        let body = frame.body();
        if let Err(fault) = body {
            assert!(!fault.to_string().is_empty());
        }
        body.map(|body| (frame.header, body))
    });
    let is_first = |fault: Fault| matches!(fault, Fault::Short | Fault::Length | Fault::Checksum);
    match read {
        Ok((header, body)) => comes_back(&bytes, &header, &body),
        Err(fault) => assert!(!is_mended || bytes.len() < HEADER_LEN || !is_first(fault)),
    }
}

/// Sets `dlen` and `check` to what is right.
fn mend(packet: &mut [u8]) {
    let len = packet.len().saturating_sub(HEADER_LEN) as u32;
    let mut put = |at: usize, field: &[u8]| {
        if let Some(place) = packet.get_mut(at..at + field.len()) {
            place.copy_from_slice(field);
        }
    };
    put(12, &len.to_be_bytes());
    put(16, &[0, 0]);
    let is_whole = packet.get(8).is_some_and(|byte| byte & 0x40 == 0);
    let covered = if is_whole { packet.len() } else { HEADER_LEN };
    let check = checksum(sum(&[packet.get(..covered).unwrap_or_default()]));
    if let Some(place) = packet.get_mut(16..18) {
        place.copy_from_slice(&check.to_be_bytes());
    }
}

/// What was read is written as the same bytes, and reads as the same.
fn comes_back(bytes: &[u8], header: &Header, body: &Body<'_>) {
    let mut again = Vec::new();
    if Writer::packet(header, body, &mut again).is_err() {
        return assert!(bytes.len() > PACKET_LEN_MAX);
    }
    assert_eq!(again.len(), bytes.len());
    let frame = Frame::open(&again).expect("what was written is a packet");
    assert_eq!((frame.header, frame.body()), (*header, Ok(*body)));
    let mut known = bytes.to_vec();
    for (at, bits) in RESERVED {
        if let Some(byte) = known.get_mut(at) {
            *byte &= !bits;
        }
    }
    // Segments have reserved bytes of their own; the header and the stream's data have none else.
    if let Body::Data(_) | Body::Cntl(_) | Body::Ecntl(..) | Body::Diag(_) = body {
        mend(&mut known);
        assert_eq!(again, known);
    }
    if let Body::Diag(diagnostic) = body {
        assert!(diagnostic.to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }
}

/// A packet of every format.
pub fn packet_seeds() -> Vec<Vec<u8>> {
    let control = Control { rseq: 11, alloc: 65_547, echo: 6 };
    let traffic_control = TrafficControl { control, xkey: 0x00AB_CDEF };
    let limits = Limits { data_len_max: 1_400, in_rate: 1_500_000, ..Limits::default() };
    let traffic = Traffic { service: 4, limits: Some(limits) };
    let bare = Traffic { service: 1, limits: None };
    let ends = |destination: ([u8; 4], u16), source: ([u8; 4], u16)| {
        let address = Address::Internet { destination: destination.into(), source: source.into() };
        AddressSegment { domain: 0, address }
    };
    let v4 = ends(([192, 0, 2, 2], 5_000), ([192, 0, 2, 1], 4_000));
    let null = AddressSegment { domain: 0, address: Address::Null };
    let data = Payload { tag: None, data: b"hello" };
    let tagged = Payload { tag: Some(*b"a tag ok"), data: b"hello" };
    let spans = [Span { left: 20, right: 30 }, Span { left: 40, right: 45 }];
    let diagnostic =
        Diagnostic { code: Code::PACKET_SIZE, reason: Reason::UNSPECIFIED, message: b"1400" };
    [
        (Options::SREQ | Options::EOM, Body::Data(data)),
        (Options::BTAG, Body::Data(tagged)),
        (Options::NOCHECK | Options::NOERR, Body::Data(data)),
        (Options::NONE, Body::Cntl(control)),
        (Options::SREQ | Options::EOM, Body::First(v4, traffic, data)),
        (Options::NONE, Body::First(null, bare, Payload::default())),
        (Options::FASTNAK, Body::Ecntl(control, Spans::List(&spans))),
        (Options::NONE, Body::Tcntl(traffic_control, traffic)),
        (Options::MULTI, Body::Jcntl(traffic_control, v4, traffic)),
        (Options::MULTI, Body::Join(b"any bytes")),
        (Options::END, Body::Diag(diagnostic)),
    ]
    .iter()
    .map(|(options, body)| {
        let header = Header { options: *options, ..Header::new(Key::own(7), body.format()) };
        let mut bytes = vec![0];
        Writer::packet(&header, body, &mut bytes).expect("a seed is short");
        bytes
    })
    .collect()
}
