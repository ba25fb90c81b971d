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
        "newest",
        "share",
    ];
    for (key, (number, name)) in AttributeKey::ALL.into_iter().zip((1..).zip(names)) {
        assert_eq!((key.number(), key.name()), (number, name));
        assert_eq!(AttributeKey::from_number(number), Some(key));
        assert_eq!(AttributeKey::from_name(name), Some(key));
    }
    assert_eq!(AttributeKey::ALL.len(), names.len());
    assert!([0, 17, u16::MAX].into_iter().all(|n| AttributeKey::from_number(n).is_none()));
}

#[test]
fn the_ends_of_every_range_read_back_and_what_lies_beyond_is_refused() {
    for key in AttributeKey::ALL {
        let (low, high) = key.range();
        for quantity in [low, high, u64::midpoint(low, high)] {
            assert_eq!(key.parse(&key.format(quantity)), Ok(quantity), "{key}");
        }
        let beyond = Requirement::alone(key, high + 1);
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
        (AttributeKey::Newest, "any", level::NEWEST_ANY),
        (AttributeKey::Newest, "arrives", level::NEWEST_ARRIVES),
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
    assert_eq!(reliable.to_string(), "no loss, order, no duplicates, integrity");
    assert_eq!(reliable.get(AttributeKey::Loss).and_then(|loss| loss.max), Some(0));
}

#[test]
fn levels_read_as_nouns_and_what_is_not_needed_says_so() {
    let says = |key: AttributeKey, word: &str| {
        let least = key.parse(word).unwrap();
        Attributes::new().min(key, least).to_string()
    };
    let cases = [
        (AttributeKey::Order, "any", "order not needed"),
        (AttributeKey::Order, "ordered", "order"),
        (AttributeKey::Duplicates, "allowed", "duplicates allowed"),
        (AttributeKey::Duplicates, "none", "no duplicates"),
        (AttributeKey::Integrity, "none", "integrity not needed"),
        (AttributeKey::Integrity, "checked", "integrity"),
        (AttributeKey::Confidentiality, "none", "confidentiality not needed"),
        (AttributeKey::Confidentiality, "preferred", "confidentiality if possible"),
        (AttributeKey::Confidentiality, "required", "confidentiality"),
        (AttributeKey::Authenticity, "none", "authenticity not needed"),
        (AttributeKey::Authenticity, "preferred", "authenticity if possible"),
        (AttributeKey::Authenticity, "group", "authenticity of the group"),
        (AttributeKey::Authenticity, "source", "authenticity of the source"),
        (AttributeKey::Newest, "any", "newest not needed"),
        (AttributeKey::Newest, "arrives", "the newest unit"),
    ];
    for (key, word, text) in cases {
        assert_eq!(says(key, word), text);
    }
    let both = Attributes::new().min(AttributeKey::Throughput, 5).max(AttributeKey::Throughput, 9);
    assert_eq!(both.to_string(), "throughput at least 5 bit/s and at most 9 bit/s");
}

#[test]
fn entries_come_in_the_order_of_the_numbers_whatever_the_order_of_setting() {
    let attributes = Attributes::new()
        .weight(AttributeKey::Authenticity, 10)
        .max(AttributeKey::Delay, 7)
        .min(AttributeKey::Throughput, 5)
        .max(AttributeKey::Throughput, 5);
    let keys: Vec<_> = attributes.entries().map(|(key, _)| key.number()).collect();
    assert_eq!(keys, [1, 2, 14]);
    assert_eq!(
        attributes.to_string(),
        "throughput 5 bit/s, delay at most 7 ns, authenticity (weight 10 %)"
    );
}

#[test]
fn a_requirement_that_cannot_be_met_is_refused_with_both_bounds() {
    let mut attributes = Attributes::new();
    let contradiction = Requirement { min: Some(2_000_000), max: Some(1_000_000), weight: None };
    let error = attributes.insert(AttributeKey::Throughput, contradiction).unwrap_err();
    assert_eq!(
        error.to_string(),
        "throughput: min = 2 Mbit/s exceeds max = 1 Mbit/s; lower min or raise max"
    );
    let empty = attributes.insert(AttributeKey::Delay, Requirement::default()).unwrap_err();
    assert_eq!(empty.to_string(), "delay: nothing is asked; give max or weight");
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

#[test]
fn each_attribute_takes_the_bounds_that_mean_something_for_it() {
    use AttributeKey::*;
    for key in AttributeKey::ALL {
        let bounds = match key {
            Throughput | FrameRate | Receivers => Bounds::Both,
            Delay | Jitter | Loss | Deadline | Cpu => Bounds::Max,
            Order | Duplicates | Integrity | Confidentiality | Authenticity | Priority | Newest
            | Share => Bounds::Min,
        };
        assert_eq!(key.bounds(), bounds, "{key}");
        for bound in [Bound::Min, Bound::Max] {
            let (low, mut asked) = (key.range().0, Requirement::default());
            match bound {
                Bound::Min => asked.min = Some(low),
                Bound::Max => asked.max = Some(low),
            }
            assert_eq!(asked.check(key).is_ok(), bounds.takes(bound), "{key} {bound:?}");
            assert_eq!(asked.bound(bound), Some(low));
            assert_eq!(key.requirement_keys().contains(&bound.name()), bounds.takes(bound));
        }
    }
    let foreign = Attributes::new().min(Delay, 7).check().unwrap_err();
    assert_eq!(foreign.to_string(), "delay takes max, not min");
    assert_eq!(Attributes::new().max(Order, 0).check().unwrap_err().to_string(), {
        "order takes min, not max"
    });
}

#[test]
fn a_text_asks_for_what_it_says() {
    let text = "throughput >= 4Mbit/s, throughput<=8 Mbit/s@0.3 ,delay<=150ms@0.5,loss=0.1%,\
                order=ordered,priority=6,frame_rate=25/s,cpu@1,receivers>=2";
    let asked = Attributes::parse_text(text).unwrap();
    let expected = Attributes::new()
        .min(AttributeKey::Throughput, 4_000_000)
        .max(AttributeKey::Throughput, 8_000_000)
        .weight(AttributeKey::Throughput, 30)
        .max(AttributeKey::Delay, 150_000_000)
        .weight(AttributeKey::Delay, 50)
        .max(AttributeKey::Loss, 1_000_000)
        .min(AttributeKey::Order, level::ORDERED)
        .min(AttributeKey::Priority, 6)
        .min(AttributeKey::FrameRate, 25_000_000)
        .max(AttributeKey::FrameRate, 25_000_000)
        .weight(AttributeKey::Cpu, 100)
        .min(AttributeKey::Receivers, 2);
    assert_eq!(asked, expected);
    assert_eq!("reliable".parse(), Ok(Attributes::reliable()));
    let stricter = Attributes::parse_text("loss<=1%@0.5,reliable,delay=1s").unwrap();
    let loss = Requirement { max: Some(0), weight: Some(50), ..Requirement::default() };
    assert_eq!(stricter.get(AttributeKey::Loss), Some(&loss));
    assert_eq!(stricter.len(), 5);
}

#[test]
fn a_wrong_text_is_answered_with_its_part_the_nearest_and_what_is_allowed() {
    let wrong = |text: &str| Attributes::parse_text(text).unwrap_err().to_string();
    assert_eq!(
        wrong("loss=0, dealy<=150ms"),
        "\"dealy<=150ms\": no attribute is called \"dealy\" (did you mean \"delay\"?); allowed: \
         throughput, delay, jitter, loss, order, duplicates, integrity, deadline, priority, \
         frame_rate, cpu, receivers, confidentiality, authenticity, newest, share, \
         reliable"
    );
    assert_eq!(
        wrong("delay>=5ms"),
        "\"delay>=5ms\": delay takes max (<=), not min (>=); allowed: delay<=50ms, delay=50ms, \
         delay@0.5"
    );
    for (text, said) in [
        ("", "\"\": no attribute is named; allowed: throughput,"),
        ("loss=0,", "\"\": no attribute is named"),
        ("<=5ms", "no attribute is named"),
        ("relaible", "did you mean \"reliable\"?"),
        ("reliable@1", "reliable stands alone"),
        ("delay", "delay has neither a value nor a weight; allowed: delay<=50ms"),
        ("order", "allowed: order=any, order=ordered, order@0.5"),
        ("priority", "allowed: priority>=7, priority=7, priority@0.5"),
        ("delay<150ms", "\"<\" is no comparison (did you mean \"<=\"?); allowed: <=, >=, ="),
        ("loss=>0", "did you mean \">=\"?"),
        ("delay≤1s", "\"≤\" is no comparison (did you mean \"<=\"?)"),
        ("loss==0", "\"==\" is no comparison (did you mean \"=\"?)"),
        ("delay<=", "\"\" is not a duration; allowed: a number with a unit of ns"),
        ("delay<=150mm", "\"150mm\" is not a duration"),
        ("throughput>=4mbit/s", "did you mean \"Mbit/s\"?"),
        ("order=orderd", "did you mean \"ordered\"?"),
        ("order<=any", "order takes min (>=), not max (<=)"),
        ("priority=8", "a whole number from 0 to 7"),
        ("share=101", "a whole number from 0 to 100"),
        ("delay@0.005", "\"0.005\" is not a weight; allowed: a number from 0 to 1"),
        ("delay@", "\"\" is not a weight"),
        ("delay@2", "\"2\" is not a weight"),
        ("loss=0,loss<=1%", "\"loss<=1%\": the max of loss is given twice"),
        ("delay@0.1,delay<=1s@0.2", "the weight of delay is given twice"),
        ("throughput>=2Mbit/s,throughput<=1Mbit/s", "at least 2 Mbit/s exceeds at most 1 Mbit/s"),
    ] {
        assert!(wrong(text).contains(said), "{text}: {}", wrong(text));
    }
    let long = wrong(&"delay@0.5,".repeat(500));
    assert!(long.contains("the text has 5000 bytes; allowed: at most 4096"), "{long}");
    assert!(long.len() < 200);
}

#[test]
fn tightening_keeps_the_stricter_of_both() {
    let of = |text: &str| Attributes::parse_text(text).unwrap();
    let first = of("throughput>=1Mbit/s@0.2,throughput<=8Mbit/s,delay<=150ms,order=ordered");
    let other = of("throughput>=2Mbit/s@0.1,delay<=200ms@0.5,loss=0,order=any");
    let both = of("throughput>=2Mbit/s@0.2,throughput<=8Mbit/s,delay<=150ms@0.5,order=ordered,\
                   loss=0");
    assert_eq!(first.tightened(&other), Ok(both.clone()));
    assert_eq!(other.tightened(&first), Ok(both.clone()));
    assert_eq!(both.tightened(&first), Ok(both.clone()));
    assert_eq!(Attributes::new().tightened(&both), Ok(both));
}

#[test]
fn a_contradiction_names_both_bounds_and_the_nearest_that_can_be_asked() {
    let of = |text: &str| Attributes::parse_text(text).unwrap();
    let first = of("throughput>=2Mbit/s,throughput<=4Mbit/s");
    let low = first.tightened(&of("throughput<=1Mbit/s")).unwrap_err();
    assert_eq!(
        low.to_string(),
        "throughput: at most 1 Mbit/s contradicts at least 2 Mbit/s; nearest: at most 2 Mbit/s"
    );
    assert_eq!((low.asked, low.nearest()), (Bound::Max, 2_000_000));
    let high = first.tightened(&of("throughput>=5Mbit/s,throughput<=6Mbit/s")).unwrap_err();
    assert_eq!(
        high.to_string(),
        "throughput: at least 5 Mbit/s contradicts at most 4 Mbit/s; nearest: at least 4 Mbit/s"
    );
    for contradiction in [low, high] {
        let mut nearest = Requirement::default();
        match contradiction.asked {
            Bound::Min => nearest.min = Some(contradiction.nearest()),
            Bound::Max => nearest.max = Some(contradiction.nearest()),
        }
        let mut asked = Attributes::new();
        asked.insert(contradiction.key, nearest).unwrap();
        assert!(first.tightened(&asked).is_ok(), "the nearest is allowed");
    }
}

#[test]
fn numbers_of_the_wire_come_back_and_unknown_ones_are_told() {
    let asked = Attributes::parse_text("throughput>=1Mbit/s@0.5,delay=1s,cpu@0,order=any").unwrap();
    let mut numbers: Vec<_> = asked.numbers().collect();
    let throughput = AttributeNumbers { key: 1, min: Some(1_000_000), max: None, weight: Some(50) };
    assert_eq!(numbers[0], throughput);
    let strange = AttributeNumbers { key: 0xABCD, min: Some(-1), ..AttributeNumbers::default() };
    numbers.push(strange);
    assert_eq!(Attributes::from_numbers(numbers), Ok((asked, vec![0xABCD])));
    let beyond = Attributes::new().max(AttributeKey::Delay, u64::MAX);
    assert_eq!(beyond.numbers().next().unwrap().max, Some(i64::MAX));
}

#[test]
fn numbers_that_no_value_can_meet_are_refused() {
    let refused = |key, min, max, weight| {
        let numbers = AttributeNumbers { key, min, max, weight };
        Attributes::from_numbers([numbers]).unwrap_err().to_string()
    };
    let negative = refused(2, None, Some(-5), None);
    assert_eq!(negative, "delay: the bound -5 is below zero; bounds are 0 or more");
    assert_eq!(refused(2, Some(5), None, None), "delay takes max, not min");
    assert_eq!(refused(9, Some(8), None, None), "priority: 8 is not between 0 and 7");
    assert!(refused(1, Some(2), Some(1), None).contains("min = 2 bit/s exceeds max = 1 bit/s"));
    assert!(refused(1, None, None, Some(101)).contains("a weight of 101 %"));
    assert!(refused(1, None, None, None).contains("nothing is asked"));
    assert!(refused(9, Some(i64::MIN), None, None).contains("below zero"));
    let twice = AttributeNumbers { key: 2, max: Some(1), ..AttributeNumbers::default() };
    let twice = Attributes::from_numbers([twice, twice]).unwrap_err();
    assert_eq!(twice.to_string(), "delay is given twice; give it once");
}

#[test]
fn texts_of_any_bytes_are_read_or_refused() {
    let tokens = [
        "delay",
        "loss",
        "order",
        "throughput",
        "reliable",
        "<=",
        ">=",
        "=",
        "@",
        ",",
        "0.5",
        "150",
        "ms",
        "Mbit/s",
        "%",
        "ordered",
        " ",
        "-",
        "µ",
        "\u{0}",
        "≤",
        "1e9",
        "9".repeat(30).as_str(),
    ]
    .map(str::to_owned);
    let mut accepted = 0;
    for seed in 0..20_000 {
        let mut random = dacapo_base::Random::from_number(seed);
        let len = random.below(12);
        let text: String =
            (0..len).map(|_| tokens[random.below(tokens.len() as u64) as usize].as_str()).collect();
        match Attributes::parse_text(&text) {
            Ok(attributes) => {
                accepted += 1;
                assert_eq!(attributes.check(), Ok(()), "seed {seed}: {text}");
                let (back, unknown) = Attributes::from_numbers(attributes.numbers()).unwrap();
                assert_eq!((back, unknown), (attributes, vec![]), "seed {seed}: {text}");
            }
            Err(error) => {
                let said = error.to_string();
                assert!(
                    !said.contains(char::is_control) && said.len() < 700,
                    "seed {seed}: {said}"
                );
            }
        }
    }
    assert!(accepted > 50, "only {accepted} texts were accepted");
}
