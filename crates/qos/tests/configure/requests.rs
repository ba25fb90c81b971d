//! Requests made of a seed, with bounds near what candidates give, so that many are just met and
//! many just missed.

use crate::brute::Candidate;
use dacapo_base::Random;
use dacapo_lift::Setting;
use dacapo_qos::{AttributeKey, Attributes, Pins, Request, Requirement, Use};

/// A request for the setting.
pub fn request(random: &mut Random, setting: Setting, candidates: &[Candidate]) -> Request {
    let used = match random.below(3) {
        0 => Use::Handed,
        1 => Use::Played { playout_ns: None },
        _ => Use::Played { playout_ns: Some(near(random, some(random, candidates, delay))) },
    };
    let mut attributes = Attributes::new();
    // Most ask for little; a few for nearly everything.
    let most = if random.chance(0.3) { 10 } else { 6 };
    for _ in 0..random.below(most) {
        let key = AttributeKey::ALL[random.below(14) as usize];
        let asked = requirement(random, key, &setting, candidates);
        if asked.check(key).is_ok() {
            attributes.insert(key, asked).expect("checked");
        }
    }
    Request::new(attributes, setting, used)
}

/// A transport, and now and then a graph over it. (A graph alone is also tried over transports
/// for which its parameters were not proposed; the oracle does not know those candidates.)
pub fn pins(random: &mut Random, candidates: &[Candidate]) -> Pins {
    let candidate = &candidates[random.below(candidates.len() as u64) as usize];
    let graph = random.chance(0.5).then(|| candidate.graph.clone());
    Pins { graph, transport: Some(candidate.transport.id) }
}

fn delay(candidate: &Candidate) -> u64 {
    candidate.service.figures.delay_ns
}

/// What one of the candidates gives.
fn some(random: &Random, candidates: &[Candidate], value: impl Fn(&Candidate) -> u64) -> u64 {
    let at = random.clone().below(candidates.len() as u64) as usize;
    value(&candidates[at])
}

/// That, or a little more or less.
fn near(random: &mut Random, value: u64) -> u64 {
    match random.below(4) {
        0 => value,
        1 => value / 10 * 9,
        2 => value / 10 * 11 + 1,
        _ => value.saturating_mul(2),
    }
}

fn requirement(
    random: &mut Random,
    key: AttributeKey,
    setting: &Setting,
    candidates: &[Candidate],
) -> Requirement {
    // A twin draws the same candidate without moving the stream.
    let twin = random.clone();
    let of = |value: fn(&Candidate) -> u64| some(&twin, candidates, value);
    let units = setting.units.per_ks * 1_000;
    random.next_u32();
    let (mut min, mut max) = match key {
        AttributeKey::Throughput => (Some(near(random, of(|c| c.service.figures.rate_bps))), None),
        AttributeKey::Delay | AttributeKey::Deadline => (None, Some(near(random, of(delay)))),
        AttributeKey::Jitter => (None, Some(near(random, of(|c| c.service.figures.jitter_ns)))),
        AttributeKey::Loss if random.chance(0.3) => (None, Some(0)),
        AttributeKey::Loss => (None, Some(near(random, of(|c| c.service.figures.loss_ppb)))),
        AttributeKey::Cpu => (None, Some(near(random, of(|c| c.cpu_ppb)))),
        AttributeKey::Receivers => (Some(1 + random.below(4)), None),
        AttributeKey::FrameRate => (Some(near(random, units)), None),
        AttributeKey::Priority => (Some(random.below(8)), None),
        AttributeKey::Share => (Some(random.below(101)), None),
        AttributeKey::Order
        | AttributeKey::Duplicates
        | AttributeKey::Integrity
        | AttributeKey::Confidentiality
        | AttributeKey::Authenticity
        | AttributeKey::Newest => (Some(random.below(key.range().1 + 1)), None),
    };
    if key == AttributeKey::Throughput && random.chance(0.2) {
        max = Some(4_000_000 + random.below(4_000_000));
    }
    let weight = random.chance(0.25).then(|| random.below(101) as u8);
    if weight.is_some() && random.chance(0.5) {
        (min, max) = (None, None);
    }
    Requirement { min, max, weight }
}

/// A request that asks for nothing.
pub fn bare(setting: Setting) -> Request {
    Request::new(Attributes::new(), setting, Use::Handed)
}
