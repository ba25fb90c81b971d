//! The out-of-band message that sets a parameter while a flow runs: a byte that names it, and the
//! value as a u64.
//!
//! ```text
//!   | code (ParamSpec::control) | value, big endian, in the parameter's unit |
//! ```
//!
//! Invariant: a value comes out only when it is within the bounds that the spec says.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use dacapo_lift::{ControlError, ModuleSpec, ParamSpec, ParamUnit};

/// The code of the parameter that `message` sets, and the value.
///
/// # Errors
/// What is wrong with the message; a value outside its bounds is named with them.
pub(crate) fn parameter(spec: &ModuleSpec, message: &[u8]) -> Result<(u8, u64), ControlError> {
    let (&code, value) = message.split_first().ok_or(ControlError::Malformed)?;
    let param = spec.params.iter().find(|param| param.control == Some(code));
    let param = param.ok_or(ControlError::Unknown)?;
    let value = value.try_into().map(u64::from_be_bytes).map_err(|_| ControlError::Malformed)?;
    if !(param.min..=param.max).contains(&value) {
        return Err(ControlError::OutOfRange(outside(param, value)));
    }
    Ok((code, value))
}

fn outside(param: &ParamSpec, value: u64) -> String {
    let unit = match param.unit {
        ParamUnit::Count => "",
        ParamUnit::Bytes => " B",
        ParamUnit::Nanoseconds => " ns",
        ParamUnit::BitsPerSecond => " bit/s",
    };
    format!("{}: {value}{unit} is outside {} to {}", param.name, param.min, param.max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redundancy::repeat::{CONTROL_SET_COPIES, CONTROL_SET_GAP, SPEC};

    fn message(code: u8, value: u64) -> Vec<u8> {
        [&[code][..], &value.to_be_bytes()].concat()
    }

    #[test]
    fn a_value_within_its_bounds_is_taken() {
        let set = |code, value| parameter(&SPEC, &message(code, value));
        assert_eq!(set(CONTROL_SET_COPIES, 3), Ok((CONTROL_SET_COPIES, 3)));
        assert_eq!(set(CONTROL_SET_GAP, 1_000_000), Ok((CONTROL_SET_GAP, 1_000_000)));
    }

    #[test]
    fn what_is_outside_is_named_with_its_bounds() {
        let text = |code, value| parameter(&SPEC, &message(code, value)).unwrap_err().to_string();
        assert_eq!(text(CONTROL_SET_COPIES, 4), "copies: 4 is outside 1 to 3");
        let gap = "gap: 0 ns is outside 1000000 to 1000000000";
        assert_eq!(text(CONTROL_SET_GAP, 0), gap);
    }

    #[test]
    fn what_is_no_such_message_is_refused() {
        assert_eq!(parameter(&SPEC, &[]), Err(ControlError::Malformed));
        assert_eq!(parameter(&SPEC, &message(99, 1)), Err(ControlError::Unknown));
        let whole = message(CONTROL_SET_COPIES, 1);
        for len in 1..whole.len() {
            assert_eq!(parameter(&SPEC, &whole[..len]), Err(ControlError::Malformed));
        }
        let long = [&whole[..], &[0]].concat();
        assert_eq!(parameter(&SPEC, &long), Err(ControlError::Malformed));
    }
}
