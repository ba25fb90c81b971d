//! What is written is read, and nothing is written that is not read.

use dacapo_wire::graph::GraphForm;
use dacapo_wire::hub::{Listing, Refuse, SessionEntry};
use dacapo_wire::limits::{
    ATTRIBUTES_MAX, DROPPED_MAX, FLOWS_MAX, JOIN_ATTRIBUTES_MAX, JOIN_MODULES_MAX,
    JOIN_TRANSPORTS_MAX, SESSIONS_MAX, TEXT_LEN_MAX,
};
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::record::{EncodeError, HEADER_LEN, LEN_MAX, RecordError};
use dacapo_wire::session::{Answer, FlowAnswer, FlowOffer, Join, Offer, Report};
use dacapo_wire::text::sanitise;

use crate::random::Random;
use crate::sample::{Sample, Taste};

/// The record's bytes.
pub fn encoded(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).expect("a legal record");
    bytes
}

/// Reads a whole record's body again.
pub fn decoded(bytes: &[u8]) -> Message {
    let code = u16::from_be_bytes([bytes[0], bytes[1]]);
    Message::decode(code, &bytes[HEADER_LEN..]).expect("a legal record")
}

#[test]
fn every_message_comes_back_as_it_was() {
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let taste = if seed % 8 == 0 { Taste::LARGE } else { Taste::SMALL };
        for &kind in MessageKind::ALL {
            let message = Sample { random, taste }.of(kind);
            let mut bytes = vec![0xEE];
            match message.encode(&mut bytes) {
                Ok(()) => assert_eq!(decoded(&bytes[1..]), message, "seed {seed}"),
                Err(EncodeError::TooLong { .. }) => assert!(seed % 8 == 0, "seed {seed}: {kind:?}"),
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    }
}

#[test]
fn nothing_is_written_that_would_be_refused() {
    let (mut written, mut refused) = (0, 0);
    for seed in 0..3_000 {
        let random = &mut Random::new(seed);
        let message = Sample { random, taste: Taste::WILD }.any();
        let mut bytes = vec![0xEE];
        let Ok(()) = message.encode(&mut bytes) else {
            assert_eq!(bytes, [0xEE], "seed {seed}: half a record was left behind");
            refused += 1;
            continue;
        };
        written += 1;
        assert!(bytes.len() <= 1 + LEN_MAX, "seed {seed}");
        let again = decoded(&bytes[1..]);
        assert_eq!(encoded(&again), bytes[1..], "seed {seed}");
    }
    assert!(written > 1_000 && refused > 100, "{written} written, {refused} refused");
}

#[test]
fn a_graph_has_one_encoding() {
    let mut accepted = 0;
    for seed in 0..20_000 {
        let random = &mut Random::new(seed);
        let graph = Sample { random, taste: Taste::SMALL }.graph();
        let mut bytes = Vec::new();
        graph.encode(&mut bytes).expect("a legal graph");
        assert_eq!(GraphForm::decode(&bytes).as_ref(), Ok(&graph), "seed {seed}");
        for _ in 0..random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = random.pick(&[0, 1, 2, 0xFF, bytes[at] ^ 1]);
        }
        if let Ok(changed) = GraphForm::decode(&bytes) {
            let mut again = Vec::new();
            changed.encode(&mut again).expect("what is read can be written");
            assert_eq!(again, bytes, "seed {seed}");
            accepted += 1;
        }
    }
    assert!(accepted > 2_000, "{accepted}");
}

#[test]
fn texts_are_cut_and_made_safe_on_both_ways() {
    let text = format!("\x1b]0;owned\x07\n{}", "é".repeat(600));
    let bytes = encoded(&Refuse { code: 1, text: text.clone(), port: None }.into());
    let safe = sanitise(&text, TEXT_LEN_MAX);
    assert!(safe.len() <= TEXT_LEN_MAX && safe.starts_with("\u{FFFD}]0;owned\u{FFFD}\u{FFFD}é"));
    assert_eq!(decoded(&bytes), Refuse { code: 1, text: safe, port: None }.into());
    // A peer that does not make its texts safe.
    let raw = [&[0, 8, 0, 2, 0, 1][..], &[0, 9, 0, 5], b"\x1b[2J\n"].concat();
    let message = Message::decode(MessageKind::Refuse.code(), &raw).expect("legal");
    assert_eq!(
        message,
        Refuse { code: 1, text: "\u{FFFD}[2J\u{FFFD}".to_owned(), port: None }.into()
    );
}

/// `make(count)` must be written at the limit and refused above it, by the encoder in this way and
/// by the decoder when the last element is there once more.
fn check_limit(limit: usize, field: u16, make: impl Fn(usize) -> Message) {
    let full = make(limit);
    let bytes = encoded(&full);
    assert_eq!(decoded(&bytes), full);
    let over = make(limit + 1);
    let Err(EncodeError::Field { kind, field: refused, .. }) = over.encode(&mut Vec::new()) else {
        panic!("{} of {} were written", limit + 1, field);
    };
    assert_eq!((kind, refused), (full.kind(), field));
    let one = encoded(&make(1));
    let none = encoded(&make(0));
    let element = one.iter().skip(none.len()).copied();
    let body: Vec<u8> = bytes.iter().skip(HEADER_LEN).copied().chain(element).collect();
    assert!(Message::decode(kind.code(), &body).is_err(), "{kind:?}");
}

#[test]
fn lists_end_at_their_limits() {
    let entry = SessionEntry { name: "n".to_owned(), ..SessionEntry::default() };
    check_limit(SESSIONS_MAX, 13, |count| {
        Listing { request: 1, sessions: vec![entry.clone(); count] }.into()
    });
    let flow = FlowOffer { name: "n".to_owned(), ..FlowOffer::default() };
    check_limit(FLOWS_MAX, 14, |count| {
        Offer {
            session: 1,
            title: String::new(),
            flows: vec![flow.clone(); count],
            ..Offer::default()
        }
        .into()
    });
    let answer = FlowAnswer {
        flow: 1,
        accepted: Ok(()),
        label: 2,
        datagram_len: 3,
        stream_token: None,
        base: None,
        stream_port: None,
    };
    check_limit(FLOWS_MAX, 14, |count| Answer { flows: vec![answer.clone(); count] }.into());
    let join = || Join { name: "n".to_owned(), ..Join::default() };
    check_limit(JOIN_MODULES_MAX, 31, |count| Join { modules: vec![7; count], ..join() }.into());
    check_limit(JOIN_TRANSPORTS_MAX, 40, |count| {
        Join { transports: vec![7; count], ..join() }.into()
    });
    check_limit(JOIN_ATTRIBUTES_MAX, 45, |count| {
        Join { attributes: vec![Default::default(); count], ..join() }.into()
    });
}

#[test]
fn the_attributes_of_all_flows_together_end_at_their_limit() {
    let offer = |counts: [usize; 2]| {
        let flow = |count| FlowOffer {
            name: "n".to_owned(),
            attributes: vec![Default::default(); count],
            ..FlowOffer::default()
        };
        Message::from(Offer { flows: counts.map(flow).to_vec(), ..Offer::default() })
    };
    let most = offer([100, ATTRIBUTES_MAX - 100]);
    let bytes = encoded(&most);
    assert_eq!(decoded(&bytes), most);
    let over = offer([100, ATTRIBUTES_MAX - 99]).encode(&mut Vec::new());
    assert!(matches!(over, Err(EncodeError::Field { field: 45, .. })), "{over:?}");
    // Every flow is within the limit, only their sum is not.
    let flows_at = encoded(&Offer::default().into()).len();
    let body = [&bytes[HEADER_LEN..], &encoded(&offer([1, 0]))[flows_at..]].concat();
    let over = Message::decode(MessageKind::Offer.code(), &body);
    assert!(matches!(over, Err(RecordError::Malformed { field: 45, .. })), "{over:?}");
}

#[test]
fn the_reasons_of_a_report_end_at_their_limit() {
    let report = |count: usize| {
        let dropped = (0..count).map(|reason| (reason as u8, 1)).collect();
        Message::from(Report { dropped, ..Report::default() })
    };
    let most = report(DROPPED_MAX);
    let mut bytes = encoded(&most);
    assert_eq!(decoded(&bytes), most);
    let over = report(DROPPED_MAX + 1).encode(&mut Vec::new());
    assert!(matches!(over, Err(EncodeError::Field { field: 27, .. })), "{over:?}");
    bytes.extend_from_slice(&[0, 27, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert!(Message::decode(MessageKind::Report.code(), &bytes[HEADER_LEN..]).is_err());
}

#[test]
fn what_an_older_peer_does_not_say_is_read_as_not_said() {
    let bare = Join { name: "n".to_owned(), ..Join::default() };
    let bytes = encoded(&bare.clone().into());
    assert_eq!(bytes[HEADER_LEN..], [0, 11, 0, 1, b'n'], "the record of before");
    assert_eq!(decoded(&bytes), bare.into());
    let live = |value: u8| {
        let body = [&bytes[HEADER_LEN..], &[0, 49, 0, 1, value]].concat();
        Message::decode(MessageKind::Join.code(), &body)
    };
    let is_live = |join: &Message| matches!(join, Message::Join(join) if join.live);
    assert!(live(0).is_ok_and(|join| !is_live(&join)));
    assert!(live(1).is_ok_and(|join| is_live(&join)));
    assert!(matches!(live(2), Err(RecordError::Malformed { field: 49, .. })));
}
