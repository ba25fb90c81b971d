//! Parameters that change while a flow runs: the message that the spec names does it.
//!
//! ```text
//!   built with value v          : units -> a -> lossy wire -> b -> units   \
//!                                                                            the same, to the byte
//!   built without, then told v  : units -> a -> lossy wire -> b -> units   /  and the nanosecond
//! ```

use super::end::{End, Life, Trace, Wire};
use super::{Subject, check_promises, unit};
use crate::{ControlError, ParamSpec};
use dacapo_base::Random;
use std::time::Duration;

const UNITS: u64 = 40;

/// Every parameter with a message is changed by it, as if the module had been built so; a value
/// outside its bounds is refused and changes nothing.
pub(super) fn a_message_sets_a_parameter(subject: &Subject, seed: u64) {
    let spec = subject.entry.spec;
    for (number, param) in spec.params.iter().enumerate() {
        let name = format!("{}: parameter {}", spec.name, param.name);
        let is_sound = (param.min..=param.max).contains(&param.default);
        assert!(is_sound, "{name}: the default is outside its bounds");
        if let Some(code) = param.control {
            check_message(subject, &name, number as u16, param, code, seed);
            check_while_running(subject, param, code, seed);
        }
    }
}

fn check_message(
    subject: &Subject,
    name: &str,
    number: u16,
    param: &ParamSpec,
    code: u8,
    seed: u64,
) {
    let mut random = Random::from_number(seed);
    let between = random.below((param.max - param.min).saturating_add(1));
    let mut lives = Vec::new();
    for value in [param.min, param.max, param.default, param.min.saturating_add(between)] {
        let mut built = subject.clone();
        built.params.set(number, value);
        let expected = live(&built, seed, |_| {});
        let told = live(subject, seed, |end| {
            let answer = tell(end, &message(code, value));
            assert!(answer.is_ok(), "{name}: {value} is refused: {answer:?}, seed {seed}");
        });
        assert!(expected == told, "{name}: a message to set {value} does not, seed {seed}");
        lives.push(expected);
    }
    let differ = lives.iter().any(|life| *life != lives[0]);
    assert!(differ, "{name}: no value changes anything that can be seen, seed {seed}");

    let refused = live(subject, seed, |end| check_refused(end, name, param, code, seed));
    assert!(refused == live(subject, seed, |_| {}), "{name}: what is refused changes something");
}

/// Messages that are too short, too long, or have a value outside the bounds.
fn check_refused(end: &mut End, name: &str, param: &ParamSpec, code: u8, seed: u64) {
    let below = param.min.checked_sub(1);
    let above = param.max.checked_add(1);
    let far = above.map(|_| u64::MAX);
    for value in [below, above, far].into_iter().flatten() {
        let answer = tell(end, &message(code, value));
        let is_refused = matches!(answer, Err(ControlError::OutOfRange(_)));
        assert!(is_refused, "{name}: {value} is outside and not refused: {answer:?}, seed {seed}");
    }
    let whole = [&message(code, param.max)[..], &[0]].concat();
    for len in (1..=8).chain([10]) {
        let answer = tell(end, whole.get(..len).unwrap_or_default());
        assert!(answer.is_err(), "{name}: a message of {len} bytes is not refused, seed {seed}");
    }
}

/// Changed again and again while units are under way, the module keeps what it promises.
fn check_while_running(subject: &Subject, param: &ParamSpec, code: u8, seed: u64) {
    let mut random = Random::from_number(seed);
    let mut life = Life::new(subject, Wire::Lossy, seed);
    let mut sent = Vec::new();
    for number in 0..4 * UNITS {
        let unit = unit(number, subject, &mut random);
        life.send(&unit);
        sent.push(unit);
        if number % 10 == 0 {
            // Small values matter as much as large ones.
            let span = (param.max - param.min) >> random.below(40);
            let value = param.min.saturating_add(random.below(span.saturating_add(1)));
            for end in [&mut life.a, &mut life.b] {
                let answer = tell(end, &message(code, value));
                assert!(answer.is_ok(), "{}: {value} is refused, seed {seed}", param.name);
            }
        }
    }
    life.run(&[]);
    check_promises(subject, seed, &sent, &life.units());
    life.finish(seed);
}

fn message(code: u8, value: u64) -> Vec<u8> {
    [&[code][..], &value.to_be_bytes()].concat()
}

fn tell(end: &mut End, message: &[u8]) -> Result<Vec<u8>, ControlError> {
    end.with(|runner, around| runner.control(around, 0, message))
}

/// What comes out of two ends that are prepared by `before`, and how long they are waited for.
fn live(subject: &Subject, seed: u64, before: impl Fn(&mut End)) -> (Trace, [Duration; 2]) {
    let mut random = Random::from_number(seed);
    let sent: Vec<_> = (0..UNITS).map(|number| unit(number, subject, &mut random)).collect();
    let mut life = Life::new(subject, Wire::Lossy, seed);
    before(&mut life.a);
    before(&mut life.b);
    life.run(&sent);
    let patience = [life.a.runner.patience(), life.b.runner.patience()];
    let trace = std::mem::take(&mut life.trace);
    life.finish(seed);
    (trace, patience)
}
