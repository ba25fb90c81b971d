//! The numbers of attributes that a core heeds are those of the session file.

use dacapo_qos::AttributeKey;
use dacapo_wire::attribute::key;

#[test]
fn the_numbers_that_a_core_heeds_are_those_of_the_vocabulary() {
    let numbers = [
        (AttributeKey::Loss, key::LOSS),
        (AttributeKey::Order, key::ORDER),
        (AttributeKey::Duplicates, key::DUPLICATES),
        (AttributeKey::Integrity, key::INTEGRITY),
        (AttributeKey::Priority, key::PRIORITY),
        (AttributeKey::Confidentiality, key::CONFIDENTIALITY),
        (AttributeKey::Authenticity, key::AUTHENTICITY),
    ];
    numbers.into_iter().for_each(|(key, number)| assert_eq!(key.number(), number, "{key:?}"));
}
