//! How demands and values are worded for people.
//!
//! The short texts that explanations and refusals are made of: `delay at most 20 ms`, `order`,
//! `units of up to 16 MiB`. Bounds are written exactly as they were asked; predicted
//! values with three digits, rounded to the side that promises less.

use super::demand::Demand;
use super::judge::{Judge, level_kept};
use super::outcome::Facts;
use super::request::{Request, Use};
use crate::attribute::{AttributeKey, Bound, Requirement, level};
use crate::units::{format_duration, format_frequency, format_rate, format_ratio, format_size};
use dacapo_lift::{ModuleSpec, ParamUnit, Params, Property, TransportSpec};

/// What is said of an attribute with levels of which nothing is kept.
pub(super) const NOT_KEPT: &str = "not kept";

/// What is said of a deadline to which nothing sees.
const LATE_TOO: &str = "late units too";

/// Which side of a value promises less.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Up,
    Down,
}

/// A value with three digits.
pub(super) fn rounded(value: u64, side: Side) -> u64 {
    let mut unit = 1_u64;
    while value.checked_div(unit).is_some_and(|digits| digits >= 1_000) {
        unit = unit.saturating_mul(10);
    }
    let digits = match side {
        Side::Up => value.div_ceil(unit),
        Side::Down => value.checked_div(unit).unwrap_or(0),
    };
    digits.saturating_mul(unit)
}

/// What is asked by one demand of a request.
pub(super) fn asked(request: &Request, demand: Demand) -> String {
    match demand {
        Demand::Attribute(key) => {
            requirement(key, &request.attributes.get(key).copied().unwrap_or_default())
        }
        Demand::UnitSize => {
            format!("units of up to {}", format_size(request.setting.units.len_max.into()))
        }
        Demand::Playout => {
            format!("a playout of {}", format_duration(request.playout_ns().unwrap_or(0)))
        }
    }
}

/// A requirement with its attribute: "delay at most 20 ms"; its weight only when it is all.
pub(super) fn requirement(key: AttributeKey, asked: &Requirement) -> String {
    let takes = sides(key);
    let (min, max) = (asked.min.filter(|_| takes.0), asked.max.filter(|_| takes.1));
    let weight = asked.weight.or(Some(0)).filter(|_| min.or(max).is_none());
    Requirement { min, max, weight }.format(key)
}

/// Whether an attribute takes a lower and an upper bound.
pub(super) fn sides(key: AttributeKey) -> (bool, bool) {
    (key.bounds().takes(Bound::Min), key.bounds().takes(Bound::Max))
}

/// What a candidate gives of a demand, where it is compared with its bounds.
pub(super) fn given(judge: &Judge<'_>, demand: Demand, facts: &Facts) -> String {
    let duration = |ns: u64| format_duration(rounded(ns, Side::Up));
    match demand {
        Demand::Attribute(key) => of_attribute(judge, key, facts),
        Demand::UnitSize => format!("at most {}", format_size(facts.unit_len_max.into())),
        Demand::Playout => format!("a delay of {}", duration(facts.figures.delay_ns)),
    }
}

fn of_attribute(judge: &Judge<'_>, key: AttributeKey, facts: &Facts) -> String {
    let duration = |ns: u64| format_duration(rounded(ns, Side::Up));
    let ratio = |ppb: u64| format_ratio(rounded(ppb, Side::Up));
    let asked = judge.asked_of(key).copied().unwrap_or_default();
    match key {
        AttributeKey::Throughput if asked.max.is_some_and(|max| judge.bound_bps() > max) => {
            let bound = judge.request.setting.bound_bps;
            if bound == 0 { "no bound".to_owned() } else { format_rate(bound) }
        }
        AttributeKey::Throughput => format_rate(rounded(facts.figures.rate_bps, Side::Down)),
        AttributeKey::Deadline if judge.lets_late_pass(facts) => LATE_TOO.to_owned(),
        AttributeKey::Delay | AttributeKey::Deadline => duration(facts.figures.delay_ns),
        AttributeKey::Jitter if judge.request.used != Use::Handed => "evened out".to_owned(),
        AttributeKey::Jitter => duration(facts.figures.jitter_ns),
        AttributeKey::Loss if asked.max == Some(0) => no_loss(facts),
        AttributeKey::Loss => ratio(facts.figures.loss_ppb),
        AttributeKey::FrameRate => format_frequency(judge.units_per_s_millionths()),
        AttributeKey::Cpu => ratio(facts.cpu_ppb.saturating_mul(judge.receivers)),
        AttributeKey::Priority | AttributeKey::Share => "passed on".to_owned(),
        AttributeKey::Receivers => judge.receivers.to_string(),
        AttributeKey::Order
        | AttributeKey::Duplicates
        | AttributeKey::Integrity
        | AttributeKey::Confidentiality
        | AttributeKey::Authenticity
        | AttributeKey::Newest => level_given(key, level_kept(key, facts)).to_owned(),
    }
}

/// What a candidate gives of an attribute with levels, of which it keeps this one.
fn level_given(key: AttributeKey, kept: u64) -> &'static str {
    match (key, kept) {
        (_, 0) => NOT_KEPT,
        (AttributeKey::Authenticity, level::AUTHENTICITY_GROUP) => "kept, of the group",
        _ => "kept",
    }
}

fn no_loss(facts: &Facts) -> String {
    match (facts.properties.contains(dacapo_lift::Property::NoLoss), facts.figures.loss_ppb) {
        (true, _) => "0 %".to_owned(),
        (false, 0) => "losses are not repaired".to_owned(),
        (false, ppb) => format_ratio(rounded(ppb, Side::Up)),
    }
}

/// The parameters that are set: "hold = 30 ms".
pub(super) fn params(spec: &ModuleSpec, params: &Params) -> Vec<String> {
    let named = |&(number, value): &(u16, u64)| {
        let param = spec.params.get(usize::from(number))?;
        let value = match param.unit {
            ParamUnit::Count => value.to_string(),
            ParamUnit::Bytes => format_size(value),
            ParamUnit::Nanoseconds => format_duration(value),
            ParamUnit::BitsPerSecond => format_rate(value),
        };
        Some(format!("{} = {value}", param.name))
    };
    params.values().iter().filter_map(named).collect()
}

/// What is to be known of a transport where it is chosen: a stream that does not find out how much
/// room there is takes it from others.
pub(super) fn transport_params(spec: &TransportSpec) -> Vec<String> {
    let yields = spec.properties.contains(&Property::CongestionControl);
    if spec.streams && !yields {
        vec!["does not yield to others on the way".to_owned()]
    } else {
        Vec::new()
    }
}

/// "a", "a and b", "a, b and c".
pub(super) fn and(texts: &[String]) -> String {
    match texts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept_and_the_rest_goes_to_the_side_that_promises_less() {
        assert_eq!(rounded(280_123_456, Side::Up), 281_000_000);
        assert_eq!(rounded(280_123_456, Side::Down), 280_000_000);
        assert_eq!((rounded(999, Side::Up), rounded(1_001, Side::Up)), (999, 1_010));
        assert_eq!(rounded(0, Side::Up), 0);
        assert_eq!(rounded(u64::MAX, Side::Down), 18_400_000_000_000_000_000);
        assert_eq!(rounded(u64::MAX, Side::Up), u64::MAX);
    }

    #[test]
    fn requirements_are_worded_by_the_bounds_that_they_take() {
        let of = |min, max, weight| Requirement { min, max, weight };
        let cases = [
            (AttributeKey::Delay, of(Some(5), Some(20_000_000), None), "delay at most 20 ms"),
            (AttributeKey::Loss, of(None, Some(0), None), "no loss"),
            (AttributeKey::Loss, of(Some(0), Some(5_000_000), None), "loss at most 0.5 %"),
            (AttributeKey::Order, of(Some(1), None, Some(7)), "order"),
            (AttributeKey::Throughput, of(Some(8), Some(8), None), "throughput 8 bit/s"),
            (
                AttributeKey::Throughput,
                of(Some(8), Some(9), None),
                "throughput at least 8 bit/s and at most 9 bit/s",
            ),
            (AttributeKey::Delay, of(None, None, Some(30)), "delay (weight 30 %)"),
            (AttributeKey::Delay, of(Some(5), None, None), "delay (weight 0 %)"),
        ];
        for (key, asked, text) in cases {
            assert_eq!(requirement(key, &asked), text);
        }
    }

    #[test]
    fn lists_end_with_and() {
        let texts = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(and(&texts), "a, b and c");
        assert_eq!(and(&texts[..2]), "a and b");
        assert_eq!(and(&texts[..1]), "a");
    }
}
