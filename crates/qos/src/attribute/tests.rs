//! Attributes: every key at its bounds, and the text forms.

#![allow(clippy::arithmetic_side_effects)]

use super::*;
use crate::units::Dimension;

#[test]
fn numbers_and_names_are_stable() {
    let names = [
        "throughput",
        "delay",
        "jitter",
        "loss",
        "order",
        "duplicates",
        "integrity",
        "deadline",
        "priority",
        "frame_rate",
        "cpu",
        "receivers",
        "confidentiality",
        "authenticity",
    ];
    for (key, (number, name)) in AttributeKey::ALL.into_iter().zip((1..).zip(names)) {
        assert_eq!((key.number(), key.name()), (number, name));
        assert_eq!(AttributeKey::from_number(number), Some(key));
        assert_eq!(AttributeKey::from_name(name), Some(key));
    }
    assert_eq!(AttributeKey::ALL.len(), names.len());
    assert!([0, 15, u16::MAX].into_iter().all(|n| AttributeKey::from_number(n).is_none()));
}

#[test]
fn the_ends_of_every_range_read_back_and_what_lies_beyond_is_refused() {
    for key in AttributeKey::ALL {
        let (low, high) = key.range();
        for quantity in [low, high, u64::midpoint(low, high)] {
            assert_eq!(key.parse(&key.format(quantity)), Ok(quantity), "{key}");
        }
        let beyond = Requirement { max: Some(high + 1), ..Requirement::default() };
        assert!(matches!(beyond.check(key), Err(RequirementError::OutOfRange { .. })), "{key}");
        assert!(key.parse(&key.format(high + 1)).is_err(), "{key}");
    }
}

#[test]
fn levels_are_numbered_as_their_names_say() {
    let levels = [
        (AttributeKey::Order, "ordered", level::ORDERED),
        (AttributeKey::Order, "any", level::ORDER_ANY),
        (AttributeKey::Duplicates, "none", level::DUPLICATES_NONE),
        (AttributeKey::Duplicates, "allowed", level::DUPLICATES_ALLOWED),
        (AttributeKey::Integrity, "checked", level::INTEGRITY_CHECKED),
        (AttributeKey::Integrity, "none", level::INTEGRITY_NONE),
        (AttributeKey::Confidentiality, "none", level::CONFIDENTIALITY_NONE),
        (AttributeKey::Confidentiality, "preferred", level::CONFIDENTIALITY_PREFERRED),
        (AttributeKey::Confidentiality, "required", level::CONFIDENTIALITY_REQUIRED),
        (AttributeKey::Authenticity, "none", level::AUTHENTICITY_NONE),
        (AttributeKey::Authenticity, "preferred", level::AUTHENTICITY_PREFERRED),
        (AttributeKey::Authenticity, "group", level::AUTHENTICITY_GROUP),
        (AttributeKey::Authenticity, "source", level::AUTHENTICITY_SOURCE),
    ];
    for (key, word, quantity) in levels {
        assert_eq!(key.parse(word), Ok(quantity), "{key} {word}");
    }
}

#[test]
fn a_wrong_value_names_the_nearest_and_all_that_are_allowed() {
    assert_eq!(
        AttributeKey::Order.parse("orderd").unwrap_err().to_string(),
        "\"orderd\" is not a value of order (did you mean \"ordered\"?); \
         allowed: \"any\", \"ordered\""
    );
    assert_eq!(
        AttributeKey::Priority.parse("9").unwrap_err().to_string(),
        "\"9\" is not a value of priority; allowed: a whole number from 0 to 7"
    );
    let loss = AttributeKey::Loss.parse("101 %").unwrap_err().to_string();
    assert!(loss.ends_with("at most 100 %"), "{loss}");
    assert_eq!(AttributeKey::Delay.kind(), Kind::Unit(Dimension::Duration));
}

#[test]
fn reliable_asks_for_no_loss_order_no_duplicates_and_integrity() {
    let reliable = Attributes::reliable();
    assert_eq!(reliable.check(), Ok(()));
    assert_eq!(
        reliable.to_string(),
        "loss at most 0 %, order at least ordered, duplicates at least none, \
         integrity at least checked"
    );
    assert_eq!(reliable.get(AttributeKey::Loss).and_then(|loss| loss.max), Some(0));
}

#[test]
fn entries_come_in_the_order_of_the_numbers_whatever_the_order_of_setting() {
    let attributes = Attributes::new()
        .weight(AttributeKey::Authenticity, 10)
        .max(AttributeKey::Delay, 7)
        .min(AttributeKey::Throughput, 5)
        .min(AttributeKey::Delay, 7);
    let keys: Vec<_> = attributes.entries().map(|(key, _)| key.number()).collect();
    assert_eq!(keys, [1, 2, 14]);
    assert_eq!(
        attributes.to_string(),
        "throughput at least 5 bit/s, delay 7 ns, authenticity (weight 10 %)"
    );
}

#[test]
fn a_requirement_that_cannot_be_met_is_refused_with_both_bounds() {
    let mut attributes = Attributes::new();
    let contradiction = Requirement { min: Some(2_000_000), max: Some(1_000_000), weight: None };
    let error = attributes.insert(AttributeKey::Delay, contradiction).unwrap_err();
    assert_eq!(error.to_string(), "delay: min = 2 ms exceeds max = 1 ms; lower min or raise max");
    let empty = attributes.insert(AttributeKey::Delay, Requirement::default());
    assert_eq!(empty, Err(RequirementError::Empty(AttributeKey::Delay)));
    let heavy = Attributes::new().weight(AttributeKey::Cpu, 101).check();
    assert_eq!(heavy, Err(RequirementError::Weight { key: AttributeKey::Cpu, percent: 101 }));
    assert!(attributes.is_empty(), "a refused requirement is not kept");
}

#[test]
fn inserting_again_replaces_and_returns_what_was() {
    let mut attributes = Attributes::new();
    let first = Requirement { weight: Some(1), ..Requirement::default() };
    let second = Requirement { weight: Some(2), ..Requirement::default() };
    assert_eq!(attributes.insert(AttributeKey::Cpu, first), Ok(None));
    assert_eq!(attributes.insert(AttributeKey::Cpu, second), Ok(Some(first)));
    assert_eq!((attributes.len(), attributes.remove(AttributeKey::Cpu)), (1, Some(second)));
}
