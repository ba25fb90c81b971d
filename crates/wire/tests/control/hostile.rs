//! Bytes of a peer that does not keep to the protocol.

use dacapo_wire::graph::{GraphForm, NodeForm};
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::record::{HEADER_LEN, Reader, RecordError};
use dacapo_wire::session::{FlowAnswer, FlowOffer};

use crate::random::Random;
use crate::round_trip::encoded;
use crate::sample::{Sample, Taste};

/// The tag and the whole bytes of each field of a body.
pub fn fields(mut body: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut fields = Vec::new();
    while !body.is_empty() {
        let len = 4 + usize::from(u16::from_be_bytes([body[2], body[3]]));
        let (field, rest) = body.split_at(len);
        fields.push((u16::from_be_bytes([field[0], field[1]]), field.to_vec()));
        body = rest;
    }
    fields
}

fn joined(fields: &[(u16, Vec<u8>)]) -> Vec<u8> {
    fields.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect()
}

fn samples(seed: u64) -> impl Iterator<Item = (Message, Vec<u8>)> {
    let mut random = Random::new(seed);
    MessageKind::ALL.iter().map(move |&kind| {
        let message = Sample { random: &mut random, taste: Taste::FULL }.of(kind);
        let bytes = encoded(&message);
        (message, bytes)
    })
}

#[test]
fn every_prefix_of_a_record_waits_for_the_rest() {
    for (message, bytes) in samples(1) {
        for len in 0..bytes.len() {
            let mut reader = Reader::default();
            reader.push(&bytes[..len]).expect("room");
            assert_eq!(reader.next(), Ok(None), "{:?} cut to {len}", message.kind());
            reader.push(&bytes[len..]).expect("room");
            assert_eq!(reader.next(), Ok(Some(message.clone())), "{len}");
        }
    }
}

#[test]
fn no_prefix_of_a_body_is_taken_for_the_whole() {
    for seed in 0..4 {
        for (message, bytes) in samples(seed) {
            let body = &bytes[HEADER_LEN..];
            let boundaries: Vec<usize> = fields(body)
                .iter()
                .scan(0, |at, (_, field)| {
                    *at += field.len();
                    Some(*at)
                })
                .collect();
            for len in 0..body.len() {
                let outcome = Message::decode(message.kind().code(), &body[..len]);
                assert_ne!(outcome.as_ref(), Ok(&message), "seed {seed}");
                let is_whole = len == 0 || boundaries.contains(&len);
                assert!(is_whole || outcome.is_err(), "seed {seed}: {:?} {len}", message.kind());
            }
        }
    }
}

#[test]
fn an_unknown_field_is_passed_over_wherever_it_stands() {
    let mut random = Random::new(2);
    for (message, bytes) in samples(2) {
        let whole = fields(&bytes[HEADER_LEN..]);
        for at in 0..=whole.len() {
            let tag = random.pick(&[0, 44, 48, 0x7FFF, 0xFFFF_u16]);
            let value = random.bytes(at % 7);
            let unknown = [&tag.to_be_bytes()[..], &[0, value.len() as u8], &value].concat();
            let mut more = whole.clone();
            more.insert(at, (tag, unknown));
            let outcome = Message::decode(message.kind().code(), &joined(&more));
            assert_eq!(outcome.as_ref(), Ok(&message));
        }
    }
}

#[test]
fn an_unknown_field_in_an_element_is_passed_over() {
    for (message, bytes) in samples(3) {
        let mut whole = fields(&bytes[HEADER_LEN..]);
        for (tag, field) in &mut whole {
            let is_element = *tag == 14 || (*tag == 13 && message.kind() == MessageKind::Listing);
            if is_element {
                field.extend_from_slice(&[0xAB, 0xCD, 0, 1, 7]);
                let len = (field.len() - 4) as u16;
                field[2..4].copy_from_slice(&len.to_be_bytes());
            }
        }
        let outcome = Message::decode(message.kind().code(), &joined(&whole));
        assert_eq!(outcome, Ok(message));
    }
}

#[test]
fn fields_may_come_in_any_order() {
    for (message, bytes) in samples(4) {
        let mut whole = fields(&bytes[HEADER_LEN..]);
        whole.sort_by_key(|(tag, _)| std::cmp::Reverse(*tag));
        assert_eq!(Message::decode(message.kind().code(), &joined(&whole)), Ok(message));
    }
}

/// The lists; and the position of a READY.
fn may_be_missing(kind: MessageKind, tag: u16) -> bool {
    use MessageKind as K;
    is_list(kind, tag)
        || matches!((kind, tag), (K::Ready, 35) | (K::Prepare, 40) | (K::Offer, 50))
        || matches!((kind, tag), (K::Join, 49 | 54) | (K::Refuse, 55))
}

fn is_list(kind: MessageKind, tag: u16) -> bool {
    use MessageKind as K;
    matches!((kind, tag), (_, 14 | 27 | 56) | (K::Listing, 13) | (K::Join, 31 | 40 | 45))
}

#[test]
fn a_missing_repeated_or_resized_field_is_refused_by_its_tag() {
    for (message, bytes) in samples(5) {
        let (kind, whole) = (message.kind(), fields(&bytes[HEADER_LEN..]));
        let refused =
            |fields: &[(u16, Vec<u8>)]| match Message::decode(kind.code(), &joined(fields)) {
                Err(RecordError::Malformed { kind: code, field, .. }) if code == kind.code() => {
                    field
                }
                outcome => panic!("{kind:?}: {outcome:?}"),
            };
        for (at, (tag, field)) in whole.iter().enumerate() {
            let mut without = whole.clone();
            without.remove(at);
            if !may_be_missing(kind, *tag) {
                assert_eq!(refused(&without), *tag, "{kind:?} without {tag}");
            }
            if !is_list(kind, *tag) {
                let twice = [&whole[..], &[(*tag, field.clone())]].concat();
                assert_eq!(refused(&twice), *tag, "{kind:?} with {tag} twice");
            }
            // Texts, names and what is opaque have no length of their own.
            if !matches!(tag, 9 | 11 | 12 | 30 | 37) {
                let mut longer = whole.clone();
                longer[at].1.push(0);
                longer[at].1[3] = longer[at].1[3].wrapping_add(1);
                if longer[at].1[3] != 0 {
                    refused(&longer);
                }
            }
        }
    }
}

#[test]
fn values_outside_their_range_are_refused() {
    let mut tried = 0;
    for (message, bytes) in samples(6) {
        let whole = fields(&bytes[HEADER_LEN..]);
        for (at, (tag, field)) in whole.iter().enumerate() {
            let value: &[u8] = match tag {
                9 | 12 => &[0xC3], // not UTF-8
                11 => b"Name",     // a capital
                30 => &[0; 4_097],
                32 | 49 => &[2],
                36 => &[1, 0, 0, 1, 0], // the first node has a parent
                37 => &[0; 257],
                _ => continue,
            };
            assert_ne!(&field[4..], value);
            let len = (value.len() as u16).to_be_bytes();
            let mut wrong = whole.clone();
            wrong[at].1 = [&tag.to_be_bytes()[..], &len, value].concat();
            let outcome = Message::decode(message.kind().code(), &joined(&wrong));
            assert!(
                matches!(outcome, Err(RecordError::Malformed { field, .. }) if field == *tag),
                "{outcome:?}"
            );
            tried += 1;
        }
    }
    assert_eq!(tried, 15, "as often as the page has these fields outside elements");
}

#[test]
fn values_outside_their_range_are_refused_in_elements() {
    let mut tried = 0;
    for (message, bytes) in samples(7) {
        let whole = fields(&bytes[HEADER_LEN..]);
        for (at, (tag, element)) in whole.iter().enumerate().filter(|(_, (tag, _))| *tag == 14) {
            for (inner_at, (inner_tag, _)) in fields(&element[4..]).iter().enumerate() {
                let value: &[u8] = match inner_tag {
                    17 | 18 => &[2],
                    43 => &[3],
                    45 => &[0; 19],
                    46 => &[b'g'; 65],
                    _ => continue,
                };
                let len = (value.len() as u16).to_be_bytes();
                let mut inner = fields(&element[4..]);
                inner[inner_at].1 = [&inner_tag.to_be_bytes()[..], &len, value].concat();
                let inner = joined(&inner);
                let len = (inner.len() as u16).to_be_bytes();
                let mut wrong = whole.clone();
                wrong[at].1 = [&tag.to_be_bytes()[..], &len, &inner].concat();
                let outcome = Message::decode(message.kind().code(), &joined(&wrong));
                let Err(RecordError::Malformed { field, .. }) = outcome else {
                    panic!("{inner_tag}: {outcome:?}");
                };
                assert_eq!(field, *inner_tag);
                tried += 1;
            }
        }
    }
    assert!(tried >= 6, "{tried}");
}

/// Changes a bit, a byte, the length, or what looks like the header of a field.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len().max(1));
    match random.below(7) {
        _ if bytes.is_empty() => bytes.push(random.u8()),
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.pick(&[0, 1, 0x7F, 0x80, 0xFF]),
        2 => bytes.truncate(at),
        3 => bytes.insert(at, random.u8()),
        4 => drop(bytes.remove(at)),
        5 => {
            let end = (at + random.below(64)).min(bytes.len());
            let copy = bytes[at..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        _ => {
            // A plausible header of a field: a known tag and a length that may be right.
            let header = [0, random.below(49) as u8, 0, random.below(40) as u8];
            let end = (at + header.len()).min(bytes.len());
            bytes.splice(at..end, header);
        }
    }
}

#[test]
fn no_mutation_panics_or_takes_memory_beyond_its_bytes() {
    let pool: Vec<Vec<u8>> = (10..18)
        .flat_map(samples)
        .map(|(_, bytes)| bytes)
        .filter(|bytes| bytes.len() < 2_000)
        .collect();
    assert!(pool.len() > 100);
    let (mut read, mut refused) = (0, 0);
    for seed in 0..200_000 {
        let random = &mut Random::new(seed);
        let mut bytes = pool[random.below(pool.len())].clone();
        let code = u16::from_be_bytes([bytes[0], bytes[1]]);
        for _ in 0..=random.below(3) {
            mutate(&mut bytes, random);
        }
        pour(&bytes);
        let body = bytes.get(HEADER_LEN..).unwrap_or_default();
        match Message::decode(code, body) {
            Ok(message) => {
                check_memory(&message, body.len(), seed);
                let again = encoded(&message);
                let twice = Message::decode(code, &again[HEADER_LEN..]);
                assert_eq!(twice.as_ref(), Ok(&message), "seed {seed}");
                read += 1;
            }
            Err(error) => {
                assert!(!error.to_string().contains(char::is_control), "seed {seed}");
                refused += 1;
            }
        }
    }
    assert!(read > 10_000 && refused > 10_000, "{read} read, {refused} refused");
}

/// Whatever the bytes say, reading ends.
fn pour(bytes: &[u8]) {
    let mut reader = Reader::default();
    reader.push(bytes).expect("room");
    let mut count = 0;
    while let Ok(Some(_)) = reader.next() {
        count += 1;
    }
    assert!(count <= bytes.len() / HEADER_LEN);
}

#[test]
fn random_bytes_are_read_or_refused() {
    for seed in 0..20_000 {
        let random = &mut Random::new(seed);
        let len = random.below(200);
        let bytes = random.bytes(len);
        let kind = random.pick(MessageKind::ALL);
        if let Ok(message) = Message::decode(kind.code(), &bytes) {
            check_memory(&message, bytes.len(), seed);
        }
        pour(&bytes);
    }
}

/// A collection's elements were all there, and its memory is at most 16 bytes per byte that came
/// (vectors double, and begin with four elements).
fn check_memory(message: &Message, body_len: usize, seed: u64) {
    let (elements, memory) = held(message);
    assert!(elements * 4 <= body_len, "seed {seed}: {elements} elements of {body_len} bytes");
    assert!(memory <= 16 * body_len + 1_024, "seed {seed}: {memory} of {body_len} bytes");
}

/// The elements of all lists, and the bytes of heap.
fn held(message: &Message) -> (usize, usize) {
    fn sum(parts: impl IntoIterator<Item = (usize, usize)>) -> (usize, usize) {
        parts.into_iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }
    fn list<T>(list: &Vec<T>, inner: impl Fn(&T) -> (usize, usize)) -> (usize, usize) {
        let own = (list.len(), list.capacity() * size_of::<T>());
        sum(list.iter().map(inner).chain([own]))
    }
    fn text(text: &String) -> (usize, usize) {
        (0, text.capacity())
    }
    fn graph(graph: &GraphForm) -> (usize, usize) {
        list(&graph.nodes, |node: &NodeForm| list(&node.params, |_| (0, 0)))
    }
    fn flow(flow: &FlowOffer) -> (usize, usize) {
        let attributes = list(&flow.attributes, |_| (0, 0));
        sum([text(&flow.name), text(&flow.group), graph(&flow.graph), attributes])
    }
    fn answer(answer: &FlowAnswer) -> (usize, usize) {
        answer.accepted.as_ref().err().map_or((0, 0), |(_, reason)| text(reason))
    }
    match message {
        Message::Refuse(it) => text(&it.text),
        Message::Goodbye(it) => text(&it.text),
        Message::Close(it) => text(&it.text),
        Message::Join(it) => {
            let numbers = [&it.modules, &it.transports].map(|them| list(them, |_| (0, 0)));
            sum([text(&it.name), list(&it.attributes, |_| (0, 0))].into_iter().chain(numbers))
        }
        Message::Cannot(it) => text(&it.text),
        Message::Listing(it) => list(&it.sessions, |it| sum([text(&it.name), text(&it.title)])),
        Message::Offer(it) => sum([text(&it.title), list(&it.flows, flow)]),
        Message::Answer(it) => list(&it.flows, answer),
        Message::Accept(it) => list(&it.flows, answer),
        Message::Report(it) => list(&it.dropped, |_| (0, 0)),
        Message::Control(it) => (0, it.payload.capacity()),
        Message::ControlAnswer(it) => (0, it.payload.capacity()),
        Message::Prepare(it) => sum([graph(&it.graph), (0, it.hints.capacity())]),
        Message::Request(it) => sum([graph(&it.graph), text(&it.text)]),
        _ => (0, 0),
    }
}
