//! Parameters as people write them: values in the unit of each, within its bounds.

use dacapo_lift::{ParamSpec, ParamUnit};
use dacapo_qos::{Value, nearest};

/// The name that was meant, if one is near.
pub(crate) fn hint(word: &str, names: &[&str]) -> String {
    nearest(word, names.iter().copied())
        .map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"))
}

/// Names, as a session file writes them.
pub(crate) fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { format!("\"{}\"", names.join("\", \"")) }
}

/// A value in the unit of its parameter, within its bounds; else what is wrong and allowed.
pub(crate) fn quantity_of(param: &ParamSpec, value: &Value) -> Result<u64, String> {
    quantity(param, value).map_err(|what| format!("{what}; allowed: {}", range(param)))
}

/// A value in the unit of its parameter, within its bounds.
pub(crate) fn quantity(param: &ParamSpec, value: &Value) -> Result<u64, String> {
    let quantity = match param.unit {
        ParamUnit::Count => value.as_count(),
        ParamUnit::Bytes => value.as_size(),
        ParamUnit::Nanoseconds => value.as_duration(),
        ParamUnit::BitsPerSecond => value.as_rate(),
    };
    let quantity = quantity.map_err(|error| error.what())?;
    if (param.min..=param.max).contains(&quantity) {
        Ok(quantity)
    } else {
        Err(format!("{} is out of range", write(param, quantity)))
    }
}

/// A quantity as people write it.
pub(crate) fn write(param: &ParamSpec, quantity: u64) -> String {
    match param.unit {
        ParamUnit::Count => quantity.to_string(),
        ParamUnit::Bytes => dacapo_qos::format_size(quantity),
        ParamUnit::Nanoseconds => dacapo_qos::format_duration(quantity),
        ParamUnit::BitsPerSecond => dacapo_qos::format_rate(quantity),
    }
}

/// What is allowed, and what is usual.
pub(crate) fn range(param: &ParamSpec) -> String {
    let quote = |quantity| match param.unit {
        ParamUnit::Count => write(param, quantity),
        _ => format!("\"{}\"", write(param, quantity)),
    };
    let (min, max, usual) = (quote(param.min), quote(param.max), quote(param.default));
    format!("{min} to {max}, {usual} when left out")
}
