//! Cases 1 to 21: packets as bytes, right and wrong ones.

use crate::common::{bytes, vectors};
use dacapo_xtp::wire::{
    Address, Body, Code, Control, Fault, Format, Frame, HEADER_LEN, Header, Key, Limits, Options,
    Reason, Span, Spans, Writer,
};

const KEY: u64 = 0x1122_3344_5566_7788;
const OTHER_KEY: u64 = 0x00AB_CDEF;

fn sealed(header: &[u8], segments: &[u8]) -> Vec<u8> {
    let mut packet = [header, segments].concat();
    seal(&mut packet);
    packet
}

/// Sets `dlen` and `check` to what is right.
fn seal(packet: &mut [u8]) {
    let len = (packet.len() - HEADER_LEN) as u32;
    packet[12..16].copy_from_slice(&len.to_be_bytes());
    reseal(packet);
}

/// Sets `check` to what is right.
fn reseal(packet: &mut [u8]) {
    packet[16..18].fill(0);
    let covered = if packet[8] & 0x40 == 0 { packet.len() } else { HEADER_LEN };
    let check = dacapo_xtp::wire::checksum(dacapo_xtp::wire::sum(&[&packet[..covered]]));
    packet[16..18].copy_from_slice(&check.to_be_bytes());
}

/// A packet of a format, with any bytes as its segments.
fn raw(format: Format, options: Options, segments: &[u8]) -> Vec<u8> {
    let header = Header { options, ..Header::new(Key::own(KEY), format) };
    sealed(&header.emit(), segments)
}

fn read(packet: &[u8]) -> Result<Body<'_>, Fault> {
    Frame::open(packet)?.body()
}

fn fault(packet: &[u8]) -> Fault {
    read(packet).expect_err("it is no packet")
}

fn first() -> Vec<u8> {
    vectors::good("first+a+t")[HEADER_LEN..].to_vec()
}

#[test]
fn case_01_every_good_packet_comes_back_as_the_same_bytes() {
    for (name, hex) in vectors::GOOD {
        let packet = bytes(hex);
        let frame = Frame::open(&packet).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let body = frame.body().unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let mut again = Vec::new();
        Writer::packet(&frame.header, &body, &mut again).unwrap();
        assert_eq!(again, packet, "{name}");
    }
}

#[test]
fn case_01_a_first_packet_has_the_fields_that_were_put_in() {
    let packet = vectors::good("first+a+t+data");
    let frame = Frame::open(&packet).unwrap();
    let options = Options::SREQ | Options::EOM;
    let header = Header { options, sync: 1, ..Header::new(Key::own(KEY), Format::First) };
    assert_eq!(frame.header, header);
    let Ok(Body::First(address, traffic, payload)) = frame.body() else { panic!("{frame:?}") };
    let destination = "192.0.2.2:5000".parse().unwrap();
    let source = "192.0.2.1:4000".parse().unwrap();
    assert_eq!(address.address, Address::Internet { destination, source });
    let limits = Limits {
        data_len_max: 1_400,
        in_rate: 1_500_000,
        in_burst: 10_000,
        out_rate: 1_500_000,
        out_burst: 10_000,
    };
    assert_eq!((traffic.service, traffic.limits), (4, Some(limits)));
    assert_eq!((payload.tag, payload.data), (None, &b"hello world"[..]));
}

#[test]
fn case_01_control_packets_have_the_fields_that_were_put_in() {
    let packet = vectors::good("ecntl 2 spans");
    let frame = Frame::open(&packet).unwrap();
    assert_eq!(frame.header.key, Key::returned(KEY));
    assert_eq!(frame.header.options, Options::FASTNAK);
    let spans = [Span { left: 2_000, right: 3_000 }, Span { left: 4_000, right: 5_000 }];
    let control = Control { rseq: 1_000, alloc: 66_536, echo: 2 };
    assert_eq!(frame.body(), Ok(Body::Ecntl(control, Spans::List(&spans))));

    let packet = vectors::good("tcntl");
    let Ok(Body::Tcntl(control, _)) = read(&packet) else { panic!("no TCNTL") };
    assert_eq!(control.xkey, OTHER_KEY);
    assert_eq!(control.control, Control { rseq: 0, alloc: 65_536, echo: 1 });

    let packet = vectors::good("diag");
    let Ok(Body::Diag(diagnostic)) = read(&packet) else { panic!("no DIAG") };
    assert_eq!((diagnostic.code, diagnostic.reason), (Code::CONTEXT_REFUSED, Reason::NO_LISTENER));
    let text = diagnostic.to_string();
    assert_eq!(text, "context refused: no listener (\"no listener\")");
}

#[test]
fn case_01_a_tag_stands_before_the_data() {
    let packet = vectors::good("data btag");
    let Ok(Body::Data(payload)) = read(&packet) else { panic!("no DATA") };
    assert_eq!((payload.tag, payload.data), (Some(*b"TAGTAG01"), &b"body"[..]));
}

#[test]
fn case_02_what_is_shorter_than_a_header_is_no_packet() {
    let packet = vectors::good("data");
    for len in [0, 1, 31] {
        assert_eq!(fault(&packet[..len]), Fault::Short, "{len}");
    }
}

#[test]
fn case_03_another_version_is_no_packet() {
    for version in [0, 2, 7] {
        let mut packet = vectors::good("data");
        packet[11] = version << 5;
        reseal(&mut packet);
        assert_eq!(fault(&packet), Fault::Version(version));
        assert_eq!(fault(&packet).diagnostic(), None);
    }
}

#[test]
fn case_04_a_length_that_lies_is_not_believed() {
    for options in [Options::NONE, Options::NOCHECK] {
        for len in [3, 5, u32::MAX, 0] {
            let mut packet = raw(Format::Data, options, b"four");
            packet[12..16].copy_from_slice(&len.to_be_bytes());
            reseal(&mut packet);
            assert_eq!(fault(&packet), Fault::Length, "{len}");
        }
    }
}

#[test]
fn case_05_every_flipped_bit_is_seen() {
    for bit in 0..vectors::good("data").len() * 8 {
        let mut packet = vectors::good("data");
        packet[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            11 if bit % 8 >= 5 => matches!(fault(&packet), Fault::Version(_)),
            12..16 => fault(&packet) == Fault::Length,
            // NOCHECK, when it flips on, leaves the data out of the sum.
            _ => fault(&packet) == Fault::Checksum,
        };
        assert!(expected, "bit {bit}: {}", fault(&packet));
    }
}

#[test]
fn case_06_without_a_check_of_data_a_flipped_bit_in_it_passes() {
    let mut packet = vectors::good("data nocheck");
    packet[HEADER_LEN] ^= 1;
    let Ok(Body::Data(payload)) = read(&packet) else { panic!("no DATA") };
    assert_eq!(payload.data, b"tnchecked");
}

#[test]
fn case_07_without_a_check_of_data_the_header_is_checked_all_the_same() {
    for byte in [0, 19, 20, 31] {
        let mut packet = vectors::good("data nocheck");
        packet[byte] ^= 1;
        assert_eq!(fault(&packet), Fault::Checksum, "{byte}");
    }
}

#[test]
fn case_08_a_checksum_of_zero_is_a_wrong_one() {
    let mut packet = vectors::good("data");
    packet[16..18].fill(0);
    assert_eq!(fault(&packet), Fault::Checksum);
}

#[test]
fn case_09_data_of_odd_length_is_padded_with_a_zero_behind() {
    for len in [1, 3, 5] {
        let packet = raw(Format::Data, Options::NONE, &b"abcde"[..len]);
        let shown = u16::from_be_bytes([packet[16], packet[17]]);
        assert_eq!(shown, model_check(&packet), "{len}");
        let Ok(Body::Data(payload)) = read(&packet) else { panic!("no DATA") };
        assert_eq!(payload.data.len(), len);
    }
}

/// RFC 1071 as it is written: two bytes at a time, carries at the end.
fn model_check(packet: &[u8]) -> u16 {
    let mut copy = packet.to_vec();
    copy[16..18].fill(0);
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| (*low).into());
    let mut total: u64 = copy.chunks(2).map(word).sum();
    while total >> 16 != 0 {
        total = (total & 0xFFFF) + (total >> 16);
    }
    !(total as u16)
}

#[test]
fn case_10_reserved_bits_are_ignored_and_never_sent() {
    let mut packet = vectors::good("data");
    packet[8] |= 0x80;
    packet[10] = 0xFF;
    reseal(&mut packet);
    let frame = Frame::open(&packet).unwrap();
    let mut again = Vec::new();
    Writer::packet(&frame.header, &frame.body().unwrap(), &mut again).unwrap();
    assert_eq!(again, vectors::good("data"));
}

#[test]
fn case_11_formats_that_are_not_assigned_are_no_packets() {
    for number in [4, 9, 31] {
        let mut packet = raw(Format::Data, Options::NONE, b"");
        packet[11] |= number;
        reseal(&mut packet);
        assert_eq!(fault(&packet), Fault::Format(number));
    }
    assert!(matches!(read(&vectors::good("join obsolete")), Ok(Body::Join(_))));
}

#[test]
fn case_12_a_control_segment_has_20_bytes() {
    for len in [0, 19, 21] {
        assert_eq!(fault(&raw(Format::Cntl, Options::NONE, &vec![0; len])), Fault::Control);
    }
}

#[test]
fn case_13_spans_are_as_many_as_they_say() {
    let spans = |count: u32, pairs: usize| {
        let mut segments = vec![0; 20];
        segments.extend_from_slice(&count.to_be_bytes());
        segments.extend_from_slice(&vec![1; 16 * pairs]);
        fault(&raw(Format::Ecntl, Options::NONE, &segments))
    };
    assert_eq!(fault(&raw(Format::Ecntl, Options::NONE, &[0; 23])), Fault::Control);
    for (count, pairs) in
        [(2, 1), (0, 1), (0x1000_0000, 0), (0x1000_0001, 1), (u32::MAX, 0), (4_097, 4_097)]
    {
        assert_eq!(spans(count, pairs), Fault::Spans, "{count} {pairs}");
    }
}

#[test]
fn case_14_a_traffic_control_packet_has_both_segments() {
    assert_eq!(fault(&raw(Format::Tcntl, Options::NONE, &[0; 31])), Fault::Control);
    assert_eq!(fault(&raw(Format::Tcntl, Options::NONE, &[0; 32])), Fault::Traffic);
    let mut long = vectors::good("tcntl")[HEADER_LEN..].to_vec();
    long.push(0);
    assert_eq!(fault(&raw(Format::Tcntl, Options::NONE, &long)), Fault::Traffic);
}

#[test]
fn case_15_a_first_packet_has_both_segments() {
    for (len, expected) in [(0, Fault::Address), (7, Fault::Address), (16, Fault::Traffic)] {
        assert_eq!(fault(&raw(Format::First, Options::NONE, &first()[..len])), expected, "{len}");
    }
    assert_eq!(
        Fault::Traffic.diagnostic(),
        Some((Code::CONTEXT_REFUSED, Reason::TRAFFIC_MALFORMED))
    );
}

#[test]
fn case_16_an_address_segment_is_as_long_as_its_format() {
    for len in [0_u16, 4, 15, 17, 4_000] {
        let mut segments = first();
        segments[..2].copy_from_slice(&len.to_be_bytes());
        assert_eq!(fault(&raw(Format::First, Options::NONE, &segments)), Fault::Address, "{len}");
    }
    let diagnostic = Fault::Address.diagnostic();
    assert_eq!(diagnostic, Some((Code::CONTEXT_REFUSED, Reason::ADDRESS_MALFORMED)));
}

#[test]
fn case_17_address_formats_that_are_not_known_have_a_fault_of_their_own() {
    for format in [2, 3, 4, 5, 7, 127, 200] {
        let mut segments = first();
        segments[3] = format;
        let fault = fault(&raw(Format::First, Options::NONE, &segments));
        assert_eq!(fault, Fault::AddressFormat(format));
        let expected = Some((Code::CONTEXT_REFUSED, Reason::ADDRESS_FORMAT));
        assert_eq!(fault.diagnostic(), expected);
    }
    // Format 6 is known, and an IPv4 address is none of it.
    let mut segments = first();
    segments[3] = 6;
    assert_eq!(fault(&raw(Format::First, Options::NONE, &segments)), Fault::Address);
}

#[test]
fn case_18_a_traffic_specifier_is_as_long_as_its_format() {
    for len in [4_u16, 8, 23, 25, u16::MAX] {
        let mut segments = first();
        segments[16..18].copy_from_slice(&len.to_be_bytes());
        assert_eq!(fault(&raw(Format::First, Options::NONE, &segments)), Fault::Traffic, "{len}");
    }
    let mut segments = first();
    segments[19] = 9;
    let fault = fault(&raw(Format::First, Options::NONE, &segments));
    assert_eq!(fault, Fault::TrafficFormat(9));
    assert_eq!(fault.diagnostic(), Some((Code::CONTEXT_REFUSED, Reason::TRAFFIC_FORMAT)));
}

#[test]
fn case_19_a_tag_has_8_bytes() {
    for len in [0, 7] {
        assert_eq!(fault(&raw(Format::Data, Options::BTAG, &b"1234567"[..len])), Fault::Tag);
    }
    let mut segments = first();
    segments.extend_from_slice(b"1234567");
    assert_eq!(fault(&raw(Format::First, Options::BTAG, &segments)), Fault::Tag);
}

#[test]
fn case_20_diagnostics_of_any_content_are_shown_safely() {
    assert_eq!(fault(&raw(Format::Diag, Options::NONE, &[0; 7])), Fault::Diagnostic);
    let message = [b"\x1b[2J\xff\n".as_slice(), &vec![b'a'; 60_000]].concat();
    let segments = [&99_u32.to_be_bytes()[..], &98_u32.to_be_bytes(), &message].concat();
    let packet = raw(Format::Diag, Options::NONE, &segments);
    let Ok(Body::Diag(diagnostic)) = read(&packet) else { panic!("no DIAG") };
    assert_eq!((diagnostic.code, diagnostic.reason), (Code(99), Reason(98)));
    let text = diagnostic.to_string();
    assert!(text.starts_with("number 99: number 98 (\"\\x1b[2J\\xff\\naaa"), "{text}");
    assert!(text.len() < 300 && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
}

#[test]
fn case_21_after_a_null_address_the_traffic_follows_at_once() {
    let packet = vectors::good("first null addr");
    let Ok(Body::First(address, traffic, payload)) = read(&packet) else { panic!("no FIRST") };
    assert_eq!(address.address, Address::Null);
    assert_eq!((traffic.service, traffic.limits, payload.data.len()), (1, None, 0));
}

#[test]
fn data_whose_last_byte_has_no_number_is_no_packet() {
    let mut packet = raw(Format::Data, Options::NONE, b"12");
    packet[24..32].copy_from_slice(&(u64::MAX - 1).to_be_bytes());
    reseal(&mut packet);
    assert_eq!(fault(&packet), Fault::Sequence);
    packet[24..32].copy_from_slice(&(u64::MAX - 2).to_be_bytes());
    reseal(&mut packet);
    assert!(read(&packet).is_ok());
}
