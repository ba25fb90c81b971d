//! Records whose bytes were written by hand from docs/protocol.md, so that the format cannot drift
//! unnoticed: an encoder and a decoder that change together still differ from these.

use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::graph::{GraphForm, NodeForm};
use dacapo_wire::hub::Hello;
use dacapo_wire::medium::Medium;
use dacapo_wire::message::Message;
use dacapo_wire::record::Reader;
use dacapo_wire::session::{Accept, Direction, FlowAnswer, FlowOffer, Join, Offer, Report};

const HELLO: &str = "
    0001 00000040
    0001 0002 0001
    0002 0002 0001
    0004 0010 000102030405060708090A0B0C0D0E0F
    0005 0010 101112131415161718191A1B1C1D1E1F
    0006 0008 00000000EFFFFFFA";

const JOIN: &str = "
    0010 0000003D
    000B 0004 64656D6F
    001F 0002 0001
    001F 0002 F123
    0028 0002 0003
    0028 0002 9ABC
    002D 0014 0002 02 00 0000000000000000 0000000002FAF080
    0031 0001 01";

const ACCEPT: &str = "
    0013 0000005F
    0021 0020 BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB
    000E 0037
        000F 0002 0000
        0011 0001 01
        0008 0002 0000
        0009 0000
        0010 0004 12345670
        0013 0002 FFFF
        0030 0010 000102030405060708090A0B0C0D0E0F";

const OFFER: &str = "
    0011 000000A4
    000D 0008 0102030405060708
    000C 0004 44656D6F
    000E 008C
        000F 0002 0001
        000B 0003 63616D
        0012 0001 00
        002B 0015 01 4D4A5047 00000280 000001E0 0000001E 00000001
        002E 0002 6176
        0024 0013 02  FF 0201 01 0001 0000000000000005  00 0102 00
        0028 0002 0001
        0029 0008 0000000000989680
        002A 0004 00010000
        0013 0002 05AC
        002F 0008 0000000002FAF080
        002D 0014 0002 02 00 0000000000000000 0000000002FAF080";

const REPORT: &str = "
    001A 0000008C
    000F 0002 0002
    0018 0008 00000000000003E8
    0019 0008 0000000000000003
    001A 0008 0000000000000004
    001B 0009 01 0000000000000005
    001B 0009 20 0000000000000006
    001C 0008 0000000000000007
    001D 0008 0000000000000000
    0016 0008 0000000000155CC0
    0017 0020 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn check(hex: &str, message: impl Into<Message>) {
    let (bytes, message) = (bytes(hex), message.into());
    let mut encoded = Vec::new();
    message.encode(&mut encoded).expect("a legal record");
    assert_eq!(encoded, bytes, "the encoder has drifted from the page");
    let mut reader = Reader::default();
    reader.push(&bytes).expect("room");
    assert_eq!(reader.next(), Ok(Some(message)), "the decoder has drifted from the page");
    assert!(reader.is_between_records());
}

#[test]
fn hello_has_the_bytes_of_the_page() {
    let counting = |from: u8| std::array::from_fn(|at| from + at as u8);
    check(
        HELLO,
        Hello {
            version_min: 1,
            version_max: 1,
            instance: counting(0),
            boot: counting(16),
            time_namespace: 4_026_531_834,
        },
    );
}

#[test]
fn join_has_the_bytes_of_the_page() {
    check(
        JOIN,
        Join {
            name: "demo".to_owned(),
            modules: vec![0x0001, 0xF123],
            transports: vec![3, 0x9ABC],
            attributes: vec![AttributeForm {
                key: 2,
                min: None,
                max: Some(50_000_000),
                weight: None,
            }],
            live: true,
            follows: false,
        },
    );
}

#[test]
fn accept_has_the_bytes_of_the_page() {
    let flow = FlowAnswer {
        flow: 0,
        accepted: Ok(()),
        label: 0x1234_5670,
        datagram_len: 65_535,
        stream_token: Some(std::array::from_fn(|at| at as u8)),
        base: None,
        stream_port: None,
    };
    check(ACCEPT, Accept { transcript: [0xBB; 32], flows: vec![flow] });
}

#[test]
fn offer_has_the_bytes_of_the_page() {
    let graph = GraphForm {
        nodes: vec![
            NodeForm { parent: 0xFF, module: 0x0201, params: vec![(1, 5)] },
            NodeForm { parent: 0, module: 0x0102, params: vec![] },
        ],
    };
    let flow = FlowOffer {
        flow: 1,
        name: "cam".to_owned(),
        direction: Direction::ToParticipant,
        medium: Medium::Video { fourcc: *b"MJPG", width: 640, height: 480, rate: 30, scale: 1 },
        group: "av".to_owned(),
        graph,
        transport: 1,
        multicast: None,
        bound_bps: 10_000_000,
        unit_len_max: 65_536,
        datagram_len: 1_452,
        playout_ns: 50_000_000,
        playout_min_ns: None,
        digest: false,
        attributes: vec![AttributeForm { key: 2, min: None, max: Some(50_000_000), weight: None }],
    };
    let session = 0x0102_0304_0506_0708;
    check(
        OFFER,
        Offer { session, title: "Demo".to_owned(), flows: vec![flow], ..Offer::default() },
    );
}

#[test]
fn report_has_the_bytes_of_the_page() {
    check(
        REPORT,
        Report {
            flow: 2,
            delivered: 1_000,
            late: 3,
            lost: 4,
            dropped: vec![(1, 5), (0x20, 6)],
            duplicates: 7,
            unknown: 0,
            bytes: 1_400_000,
            hash: [0xAA; 32],
        },
    );
}
