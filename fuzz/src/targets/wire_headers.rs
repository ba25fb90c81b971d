//! The fixed headers of datagrams and units, and small forms.

use super::samples;
use crate::input::Input;
use crate::oracle;
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::data::{self, Belongs, classify};
use dacapo_wire::medium::Medium;
use dacapo_wire::probe::{self, Count, Probe};
use dacapo_wire::{
    acknowledgement, compression, flow_control, media, name, parity, retransmission, segment,
    sequence, sliding, text, unit, use_by,
};

/// A datagram as it comes to the port of a core.
pub fn datagram(bytes: &[u8]) {
    oracle::bounded("a datagram's headers", bytes.len(), || {
        let belongs = classify(bytes);
        let header = data::Header::parse(bytes);
        assert!(header.is_err() || belongs == Belongs::Ours(data::TYPE_DATA));
        if let Ok(header) = header {
            assert_eq!(bytes.get(..data::LEN), Some(&header.emit()[..]));
        }
        let probe = Probe::parse(bytes);
        assert!(probe.is_err() || belongs == Belongs::Ours(probe::TYPE_PROBE));
    });
    if let Ok(probe) = Probe::parse(bytes) {
        let mut again = Vec::new();
        probe.emit(bytes.len(), &mut again);
        assert_eq!(again.len(), bytes.len());
        assert_eq!(Probe::parse(&again), Ok(probe));
        // Flags that nobody has defined, and padding, are not looked at.
        assert_eq!(again.get(2..probe::LEN), bytes.get(2..probe::LEN));
    }
}

/// The number expected (8 bytes), then a unit.
pub fn unit(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (expected, bytes) = (input.u64(), input.rest());
    oracle::bounded("a unit header", bytes.len(), || {
        let Ok(header) = unit::Header::parse(bytes) else { return };
        assert_eq!(bytes.get(..unit::LEN), Some(&header.emit()[..]));
        check_nearest(header.place_near(expected), expected, header.place.into(), 28);
        let body = bytes.get(unit::LEN..).unwrap_or_default();
        if let Ok(mark) = unit::Mark::parse(body) {
            assert_eq!(bytes.get(..unit::MARK_LEN), Some(&mark.emit(header)[..]));
        }
    });
}

/// The model: of all numbers with these low bits, `found` is the nearest to `expected`.
fn check_nearest(found: Option<u64>, expected: u64, low: u64, bits: u32) {
    let turn = 1_u64 << bits;
    let half = turn / 2;
    match found {
        Some(found) => {
            assert_eq!(found % turn, low, "{found} has not the low bits {low:#x}");
            assert!(found.abs_diff(expected) <= half, "{found} is far from {expected}");
        }
        None => {
            let base = expected - expected % turn;
            let is_before_0 = base == 0 && low > expected && low - expected >= half;
            let is_beyond = base.checked_add(turn).is_none();
            assert!(is_before_0 || is_beyond, "{expected} has a neighbour with {low:#x}");
        }
    }
}

/// One byte chooses, then the number expected, then a packet.
pub fn headers(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (kind, expected, bytes) = (input.u8(), input.u64(), input.rest());
    oracle::bounded("a module's header", bytes.len(), || match kind % 10 {
        0 => {
            let Ok(header) = sequence::Header::parse(bytes) else { return };
            assert_eq!(bytes.get(..sequence::LEN), Some(&header.emit()[..]));
            let found = sequence::extend(header.number, expected);
            check_nearest(found, expected, header.number.into(), 32);
        }
        4 => asking(expected, bytes),
        5 => acknowledging(expected, bytes),
        6 => stamped(expected, bytes),
        7 => sliding(expected, bytes),
        8 => packed(bytes),
        9 => controlling(expected, bytes),
        3 => {
            let Ok(header) = parity::Header::parse(bytes) else { return };
            assert_eq!(bytes.get(..parity::LEN), Some(&header.emit()[..]));
            let found = parity::extend(header.block, expected);
            check_nearest(found, expected, header.block.into(), 24);
        }
        1 => {
            let Ok(header) = segment::Header::parse(bytes) else { return };
            assert_eq!(bytes.get(..segment::LEN), Some(&header.emit()[..]));
            assert!(header.index <= segment::Header::OF_MODULES.index);
        }
        _ => {
            let Ok(header) = media::Header::parse(bytes) else { return };
            assert_eq!(bytes.get(..media::LEN), Some(&header.emit()[..]));
            let (here, there) = (header.generation, expected as u32 & 0xFF_FFFF);
            let both = media::is_newer(here, there) && media::is_newer(there, here);
            assert!(!both, "two generations are each newer than the other");
        }
    });
}

/// The header of retransmission, and what may follow it.
fn asking(expected: u64, bytes: &[u8]) {
    let Ok(header) = retransmission::Header::parse(bytes) else { return };
    assert_eq!(bytes.get(..retransmission::LEN), Some(&header.emit()[..]));
    let found = retransmission::extend(header.number, expected);
    check_nearest(found, expected, header.number.into(), 32);
    let said = bytes.get(retransmission::LEN..).unwrap_or_default();
    if let Ok(age) = retransmission::newest_age_us(said) {
        assert_eq!(said, age.to_be_bytes());
    }
    let Ok(ranges) = retransmission::ranges(said) else { return };
    let mut place = 0;
    for range in ranges {
        assert!(range.count > 0 && range.attempt > 0);
        let end = place + retransmission::RANGE_LEN;
        assert_eq!(said.get(place..end), Some(&range.emit()[..]));
        place = end;
    }
    assert!(place == said.len() && place <= retransmission::RANGES_MAX * retransmission::RANGE_LEN);
}

/// The header of a use-by age: the time that is found is near what the clock shows.
fn stamped(expected: u64, bytes: &[u8]) {
    let Ok(header) = use_by::Header::parse(bytes) else { return };
    assert_eq!(bytes.get(..use_by::LEN), Some(&header.emit()[..]));
    if let Some(sent_ns) = header.sent_ns(expected) {
        assert_eq!(use_by::Header::at(sent_ns), header);
        assert!(sent_ns.abs_diff(expected) / 1_000 <= 1 << 31, "{sent_ns} of {expected}");
    }
}

/// The header of a sliding window.
fn sliding(expected: u64, bytes: &[u8]) {
    let Ok(header) = sliding::Header::parse(bytes) else { return };
    assert_eq!(bytes.get(..sliding::LEN), Some(&header.emit()[..]));
    let found = sliding::extend(header.number, expected);
    check_nearest(found, expected, header.number.into(), 24);
    assert!(found.is_none_or(|it| sliding::low(it) == header.number));
}

/// The header of compression, and what may follow it.
fn packed(bytes: &[u8]) {
    let Ok(form) = compression::Form::parse(bytes) else { return };
    assert_eq!(bytes.get(..compression::LEN), Some(&form.emit()[..]));
    let rest = bytes.get(compression::LEN..).unwrap_or_default();
    if let Ok(len) = compression::segment_len(rest) {
        assert!(len >= compression::SEGMENT_MIN);
        assert_eq!(rest.get(..compression::SEGMENT_LEN), Some(&len.to_be_bytes()[..]));
    }
}

/// The header of acknowledgement, and what may follow it.
fn acknowledging(expected: u64, bytes: &[u8]) {
    let Ok(header) = acknowledgement::Header::parse(bytes) else { return };
    assert_eq!(bytes.get(..acknowledgement::LEN), Some(&header.emit()[..]));
    let found = acknowledgement::extend(header.number, expected);
    check_nearest(found, expected, header.number.into(), 32);
    let rest = bytes.get(acknowledgement::LEN..).unwrap_or_default();
    let Ok((state, ranges)) = acknowledgement::said(rest) else { return };
    let mut again = state.emit().to_vec();
    for range in ranges {
        assert!(range.count > 0);
        again.extend(range.emit());
    }
    let most = acknowledgement::RANGES_MAX * acknowledgement::RANGE_LEN;
    assert!(again == rest && again.len() <= acknowledgement::STATE_LEN + most);
}

/// The header of flow control.
fn controlling(expected: u64, bytes: &[u8]) {
    let Ok(header) = flow_control::Header::parse(bytes) else { return };
    assert_eq!(bytes.get(..flow_control::LEN), Some(&header.emit()[..]));
    let found = flow_control::extend(header.place, expected);
    check_nearest(found, expected, header.place.into(), 32);
    let carries = matches!(header.kind, flow_control::Kind::Counted | flow_control::Kind::Beside);
    assert!(carries || bytes.len() == flow_control::LEN);
}

/// One byte chooses an attribute or a medium.
pub fn forms(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (kind, bytes) = (input.u8(), input.rest());
    if kind % 2 == 0 {
        let decoded = oracle::bounded("an attribute", bytes.len(), || AttributeForm::decode(bytes));
        if let Ok(attribute) = decoded {
            let mut again = Vec::new();
            attribute.encode(&mut again);
            assert_eq!(again.len(), bytes.len());
            assert_eq!(AttributeForm::decode(&again), Ok(attribute));
        }
    } else if let Ok(medium) = oracle::bounded("a medium", bytes.len(), || Medium::decode(bytes)) {
        let mut again = Vec::new();
        medium.encode(&mut again);
        assert_eq!(again, bytes, "a medium has two encodings");
    }
}

/// One byte is the length that is allowed, the rest is text.
pub fn text(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (len_max, bytes) = (usize::from(input.u8()), input.rest());
    let given = String::from_utf8_lossy(bytes);
    let safe = oracle::bounded("a text", given.len(), || text::sanitise(&given, len_max));
    assert!(safe.len() <= len_max);
    assert!(!safe.chars().any(char::is_control), "{safe:?} has a control character");
    assert_eq!(text::sanitise(&safe, len_max), safe, "what is safe is changed");
    let is_name = name::check(&given).is_ok();
    assert_eq!(is_name, dacapo_qos::is_name(&given), "{given:?}: is it a name?");
    if let Err(error) = name::check(&given) {
        assert!(!error.to_string().chars().any(char::is_control), "{error}");
    }
}

/// Data, a question, an answer, QUIC, nothing.
pub fn datagram_seeds() -> Vec<Vec<u8>> {
    let probe = Probe {
        answer: false,
        size: 1_452,
        connection: 7,
        number: 1,
        asked_ns: 2,
        received_ns: 0,
        answered_ns: 0,
        tag: 5,
        count: None,
    };
    let counted = Probe { count: Some(Count { packets: 40, marked: 3, tag: 6 }), ..probe };
    let mut seeds = vec![Vec::new(), vec![0xC0, 0, 0, 0, 1, 8], vec![0x3F; 20], vec![0x82, 1]];
    let answer = Probe { answer: true, ..probe };
    for (probe, len) in [(probe, 0), (probe, 100), (answer, 64), (counted, 80)] {
        let mut bytes = Vec::new();
        probe.emit(len, &mut bytes);
        seeds.push(bytes);
    }
    seeds.push([&data::Header { label: 0xDEAD_BEEF }.emit()[..], b"payload"].concat());
    seeds
}

/// A unit of each kind near the turn of the places.
pub fn unit_seeds() -> Vec<Vec<u8>> {
    use unit::{Header, Kind, Mark};
    let kinds = [Kind::Data, Kind::Begin, Kind::End, Kind::Probe, Kind::Answer];
    let seed = |(at, kind): (u64, Kind)| {
        let place = (1 << 28) - 2 + at;
        let mark = Mark { epoch: 3, number: 1_000 };
        [&place.to_be_bytes()[..], &mark.emit(Header::new(kind, place))].concat()
    };
    (0..).zip(kinds).map(seed).collect()
}

/// A header of each module that has one.
pub fn headers_seeds() -> Vec<Vec<u8>> {
    let number = sequence::Header { number: u32::MAX }.emit();
    let segment = segment::Header { unit: 9, index: 3, last: true }.emit();
    let medium = media::Header { flags: 1, generation: 0xFF_FFFF, ..media::Header::default() };
    let seed = |kind: u8, bytes: &[u8]| [&[kind], &(1_u64 << 32).to_be_bytes()[..], bytes].concat();
    let source = parity::Header { block: 0xFF_FFFF, index: 2, sources: 9, length: 0 };
    let parity = parity::Header { index: 255, length: 0xFFFF, ..source };
    let again = retransmission::Header { number: 77, kind: retransmission::Kind::Again(2) };
    let newest = retransmission::Header { kind: retransmission::Kind::Newest, ..again };
    let asked = retransmission::Header { number: 0, kind: retransmission::Kind::Asked };
    let resent = acknowledgement::Header {
        number: 77,
        kind: acknowledgement::Kind::Sent { attempt: 2, asks: true },
    };
    let said = acknowledgement::Header { number: 9, kind: acknowledgement::Kind::Acknowledged };
    let state = acknowledgement::State { number: 8, attempt: 1, held_us: 700, duplicates: 3 };
    let came = acknowledgement::Range { first: u32::MAX, count: 9 };
    let range = retransmission::Range { first: u32::MAX, count: 9, attempt: 15 };
    let counted = flow_control::Header { place: u32::MAX, kind: flow_control::Kind::Counted };
    let granted = flow_control::Header { place: 7, kind: flow_control::Kind::Granted };
    vec![
        seed(0, &number),
        seed(1, &segment),
        seed(2, &medium.emit()),
        seed(3, &source.emit()),
        seed(3, &parity.emit()),
        seed(4, &again.emit()),
        seed(4, &[&newest.emit()[..], &[0, 1, 2, 3]].concat()),
        seed(4, &[&asked.emit()[..], &range.emit(), &range.emit()].concat()),
        seed(5, &resent.emit()),
        seed(5, &[&said.emit()[..], &state.emit(), &came.emit(), &came.emit()].concat()),
        seed(6, &use_by::Header::at(77_000).emit()),
        seed(7, &sliding::Header::source(u64::MAX, 0).emit()),
        seed(7, &sliding::Header { sources: 40, key: 9, ..sliding::Header::source(77, 0) }.emit()),
        seed(8, &[&compression::Form::PackedSegments.emit()[..], &[5, 0x9D, 1]].concat()),
        seed(9, &[&counted.emit()[..], &[1, 2, 3]].concat()),
        seed(9, &granted.emit()),
    ]
}

/// An attribute, and each medium.
pub fn forms_seeds() -> Vec<Vec<u8>> {
    let mut attribute = vec![0];
    samples::attribute().encode(&mut attribute);
    let media = samples::media().map(|medium| {
        let mut bytes = vec![1];
        medium.encode(&mut bytes);
        bytes
    });
    std::iter::once(attribute).chain(media).collect()
}

/// Names, and texts that would do something to a terminal.
pub fn text_seeds() -> Vec<Vec<u8>> {
    let texts = ["movie-1", "a.b_c", "Zürich 🎥", "a\u{1b}[2J\r\n\u{202E}exe", "..", ""];
    texts.iter().map(|text| [&[64], text.as_bytes()].concat()).collect()
}
