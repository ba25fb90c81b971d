//! One valid message of every kind, and valid graphs: where seeds begin.

use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::change::{Abort, Cannot, Done, Mode, Prepare, Ready, Request, Switched};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::hub::{Goodbye, Hello, List, Listing, Refuse, SessionEntry, Welcome};
use dacapo_wire::medium::{Medium, SampleEncoding};
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{
    Accept, Activate, Activated, Answer, Close, Closed, Control, ControlAnswer, Deactivate,
    Deactivated, Direction, End, FlowAnswer, FlowOffer, Join, Offer, Report,
};

/// The graph of `segment`, `sequence` and `checksum`, one of them with a parameter.
#[must_use]
pub fn graph() -> GraphForm {
    GraphForm::line([(1, vec![]), (2, vec![(0, 60_000_000)]), (3, vec![])])
}

/// Pictures and sound.
#[must_use]
pub fn media() -> [Medium; 3] {
    let audio = Medium::Audio {
        encoding: SampleEncoding::S16,
        channels: 2,
        rate_hz: 48_000,
        channel_mask: 3,
        valid_bits: 16,
    };
    let video =
        Medium::Video { fourcc: *b"MJPG", width: 640, height: 480, rate: 30_000, scale: 1_001 };
    [Medium::Raw, video, audio]
}

/// Something that is asked of an attribute.
#[must_use]
pub fn attribute() -> AttributeForm {
    AttributeForm { key: 2, min: None, max: Some(50_000_000), weight: Some(100) }
}

/// A flow of pictures.
#[must_use]
pub fn flow_offer() -> FlowOffer {
    let [_, medium, _] = media();
    FlowOffer {
        name: "cam".into(),
        direction: Direction::ToParticipant,
        medium,
        group: "av".into(),
        graph: graph(),
        transport: 1,
        bound_bps: 10_000_000,
        unit_len_max: 65_536,
        datagram_len: 1_452,
        playout_ns: 100_000_000,
        digest: true,
        attributes: vec![attribute()],
        ..FlowOffer::default()
    }
}

/// The answer to a flow that is wanted.
#[must_use]
pub fn flow_answer() -> FlowAnswer {
    FlowAnswer {
        flow: 0,
        accepted: Ok(()),
        label: 0x1234_5678,
        datagram_len: 1_452,
        stream_token: Some([7; 16]),
        base: None,
        stream_port: None,
    }
}

fn hub(kind: MessageKind) -> Option<Message> {
    let text = "a reason".to_owned();
    Some(match kind {
        MessageKind::Hello => Hello { version_min: 1, version_max: 1, ..Hello::default() }.into(),
        MessageKind::Welcome => Welcome { version: 1, ..Welcome::default() }.into(),
        MessageKind::Refuse => {
            Refuse { code: 603, text, port: std::num::NonZeroU16::new(19_981) }.into()
        }
        MessageKind::List => List { request: 7 }.into(),
        MessageKind::Listing => {
            let entry = SessionEntry {
                name: "movie".into(),
                title: "A movie".into(),
                flow_count: 2,
                participants: 1,
            };
            Listing { request: 7, sessions: vec![entry] }.into()
        }
        MessageKind::Goodbye => Goodbye { code: 701, text }.into(),
        _ => return None,
    })
}

fn change(kind: MessageKind) -> Option<Message> {
    let text = "a reason".to_owned();
    Some(match kind {
        MessageKind::Prepare => Prepare {
            epoch: 1,
            label: 48,
            mode: Mode::Make,
            graph: graph(),
            hints: vec![1, 2, 3],
            transport: Some(1),
            ..Prepare::default()
        }
        .into(),
        MessageKind::Ready => Ready { epoch: 1, position: Some(5), ..Ready::default() }.into(),
        MessageKind::Cannot => Cannot { flow: 0, epoch: 1, code: 403, text }.into(),
        MessageKind::Abort => Abort { flow: 0, epoch: 1 }.into(),
        MessageKind::Switched => Switched { flow: 0, epoch: 1, base: 100 }.into(),
        MessageKind::Done => Done { flow: 0, epoch: 1, delivered: 90, lost: 10 }.into(),
        MessageKind::Request => Request { flow: 0, graph: graph(), text }.into(),
        _ => return None,
    })
}

/// A valid message of a kind.
#[must_use]
pub fn message(kind: MessageKind) -> Message {
    if let Some(message) = hub(kind).or_else(|| change(kind)) {
        return message;
    }
    match kind {
        MessageKind::Join => Join {
            name: "movie".into(),
            modules: vec![1, 2, 3, 0xF123],
            transports: vec![1, 3],
            attributes: vec![attribute()],
            live: true,
            follows: true,
        }
        .into(),
        MessageKind::Offer => {
            let (title, flows) = ("A movie".into(), vec![flow_offer()]);
            Offer { title, flows, ..Offer::default() }.into()
        }
        MessageKind::Answer => Answer { flows: vec![flow_answer()] }.into(),
        MessageKind::Accept => {
            let refused = FlowAnswer { accepted: Err((404, "no".into())), ..flow_answer() };
            Accept { transcript: [9; 32], flows: vec![flow_answer(), refused] }.into()
        }
        MessageKind::Activate => Activate { request: 1 }.into(),
        MessageKind::Activated => Activated { request: 1 }.into(),
        MessageKind::Deactivate => Deactivate { request: 2 }.into(),
        MessageKind::Deactivated => Deactivated { request: 2 }.into(),
        MessageKind::End => End { units: 100, bytes: 10_000, ..End::default() }.into(),
        MessageKind::Report => {
            Report { delivered: 90, lost: 8, dropped: vec![(1, 2)], ..Report::default() }.into()
        }
        MessageKind::Close => Close { code: 701, text: "the end".into() }.into(),
        MessageKind::Control => {
            Control { request: 3, flow: 0, epoch: 0, module: 0xFFFF, payload: vec![4, 0, 0, 0, 0] }
                .into()
        }
        MessageKind::ControlAnswer => {
            ControlAnswer { request: 3, code: 0, payload: vec![1, 2] }.into()
        }
        _ => Closed.into(),
    }
}

/// A message as it is on a stream, its header included; none where it has no bytes.
#[must_use]
pub fn record(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What cannot be encoded appends nothing, which is as good a sample.
    let _ = message.encode(&mut bytes);
    bytes
}

/// A record for every kind.
#[must_use]
pub fn records() -> Vec<Vec<u8>> {
    MessageKind::ALL.iter().map(|&kind| record(&message(kind))).collect()
}
