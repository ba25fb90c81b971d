//! The tables of docs/protocol.md against what is written: numbers, names, order and lengths.

use std::collections::{BTreeMap, BTreeSet};

use dacapo_wire::message::{MessageKind, Stream};
use dacapo_wire::record::HEADER_LEN;
use dacapo_wire::tlv::Tag;

use crate::hostile::fields;
use crate::random::Random;
use crate::round_trip::encoded;
use crate::sample::{Sample, Taste};

const PAGE: &str = include_str!("../../../../docs/protocol.md");

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// Tag to name and value, from the two halves of the table of fields.
fn tags_of_page() -> BTreeMap<u16, (&'static str, &'static str)> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ")).map(cells);
    let halves =
        rows.filter(|row| row.len() == 7).flat_map(|row| [0, 4].map(|at| row[at..at + 3].to_vec()));
    halves.filter_map(|half| Some((half[0].parse().ok()?, (half[1], half[2])))).collect()
}

/// The numbers in a list of fields, without what stands in parentheses.
fn numbers(text: &str) -> Vec<u16> {
    let outside = text.split('(').map(|part| part.rsplit(')').next().unwrap_or(part));
    let words = outside.flat_map(|part| part.split(|c: char| !c.is_ascii_digit()));
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The fields that the page says an element has.
fn element(opening: &str) -> Vec<u16> {
    let page = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = page.split_once(opening).expect("the sentence is on the page");
    numbers(rest.split('.').next().expect("it ends"))
}

fn written(bytes: &[u8]) -> Vec<u16> {
    let mut tags: Vec<u16> = fields(bytes).into_iter().map(|(tag, _)| tag).collect();
    tags.dedup();
    tags
}

#[test]
fn the_tags_are_those_of_the_page() {
    let page: Vec<_> = tags_of_page().into_iter().map(|(code, (name, _))| (code, name)).collect();
    let code: Vec<_> = Tag::ALL.iter().map(|tag| (tag.code(), tag.name())).collect();
    assert_eq!(page, code);
}

#[test]
fn the_records_are_those_of_the_page_with_its_fields_in_its_order() {
    let mut random = Random::new(0);
    let rows: Vec<_> = PAGE.lines().filter(|line| line.starts_with("| 0x")).map(cells).collect();
    assert_eq!(rows.len(), MessageKind::ALL.len());
    for (row, &kind) in rows.iter().zip(MessageKind::ALL) {
        let stream = match kind.stream() {
            Stream::Hub => "hub",
            Stream::Session => "session",
            Stream::Both => "both",
        };
        assert_eq!(
            row[..3],
            [&format!("{:#06X}", kind.code()).replace('X', "x"), kind.name(), stream]
        );
        let bytes = encoded(&Sample { random: &mut random, taste: Taste::FULL }.of(kind));
        assert_eq!(written(&bytes[HEADER_LEN..]), numbers(row[4]), "{}", kind.name());
    }
}

#[test]
fn the_elements_have_the_fields_of_the_page_in_its_order() {
    let mut random = Random::new(1);
    for (kind, tag, expected) in [
        (MessageKind::Listing, 13, vec![11, 12, 39, 38]),
        (MessageKind::Offer, 14, element("A flow in an OFFER is a field 14 that contains")),
        (
            MessageKind::Answer,
            14,
            element("A flow in an ANSWER or ACCEPT is a field 14 that contains"),
        ),
        (
            MessageKind::Accept,
            14,
            element("A flow in an ANSWER or ACCEPT is a field 14 that contains"),
        ),
    ] {
        let bytes = encoded(&Sample { random: &mut random, taste: Taste::FULL }.of(kind));
        let elements = fields(&bytes[HEADER_LEN..]);
        let (_, element) = elements.iter().find(|(code, _)| *code == tag).expect("is full");
        assert_eq!(written(&element[4..]), expected, "{}", kind.name());
    }
    assert!(PAGE.contains("n× 13 (11 12 39 38)"));
}

#[test]
fn the_lengths_are_those_of_the_page() {
    let (mut random, page) = (Random::new(2), tags_of_page());
    let mut compared = BTreeSet::new();
    for &kind in MessageKind::ALL {
        let bytes = encoded(&Sample { random: &mut random, taste: Taste::FULL }.of(kind));
        let top = fields(&bytes[HEADER_LEN..]);
        let is_element = |tag| tag == 14 || (tag == 13 && kind == MessageKind::Listing);
        let elements = top.iter().filter(|(tag, _)| is_element(*tag));
        let inner: Vec<_> = elements.flat_map(|(_, bytes)| fields(&bytes[4..])).collect();
        for (tag, field) in top.iter().chain(&inner) {
            let Some(len) = len_of(page[tag].1) else { continue };
            assert_eq!(field.len(), 4 + len, "{} field {tag}", kind.name());
            compared.insert(*tag);
        }
    }
    let fixed = page.iter().filter(|(_, (_, value))| len_of(value).is_some());
    assert!(fixed.map(|(tag, _)| *tag).eq(compared));
}

/// The length that a description of a value begins with.
fn len_of(value: &str) -> Option<usize> {
    let first = value.split([' ', ',', ';', ':']).next()?;
    match first {
        "u8" => Some(1),
        "u16" => Some(2),
        "u32" => Some(4),
        "u64" => Some(8),
        "16" => Some(16),
        "32" => Some(32),
        _ => None,
    }
}
