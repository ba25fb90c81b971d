//! Decimal numbers, exactly.
//!
//! `0.1` as the integers 1 and -1 (1 × 10⁻¹), so that "0.1 %" is 1,000,000 parts per billion and
//! nothing near it, and a value that is written reads back the same.
//!
//! ```text
//!   "1.5e-3 ms"  ── split ──>  "1.5e-3"  "ms"
//!                                  │
//!                     mantissa 15, exponent -4  ── scaled(1_000_000) ──>  1_500
//! ```

/// `mantissa` × 10^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    mantissa: u128,
    exponent: i32,
}

/// Why a number cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecimalFault {
    /// It is not written as a number.
    NotANumber,
    /// It is below zero.
    Negative,
    /// In the base unit it would not be whole.
    TooFine,
    /// It does not fit.
    TooLarge,
}

/// Splits `text` into the number at its front and what follows, both without spaces around.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = skip_exponent(rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    (text.strip_suffix(rest).unwrap_or(text).trim_end(), rest.trim_start())
}

/// `text` behind an exponent (`e-6`), or all of it when it opens with none.
fn skip_exponent(text: &str) -> &str {
    let Some(exponent) = text.strip_prefix(['e', 'E']) else { return text };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == digits.len() { text } else { rest }
}

impl Decimal {
    /// Reads `12`, `1.5`, `+1.5`, `1e-6`; digits are needed on both sides of a point.
    pub(crate) fn parse(text: &str) -> Result<Self, DecimalFault> {
        let (unsigned, negative) = match text.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (text.strip_prefix('+').unwrap_or(text), false),
        };
        let (number, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if !is_digits(whole) || !is_digits(fraction) {
            return Err(DecimalFault::NotANumber);
        }
        let decimal = Self::from_digits(whole, fraction.trim_end_matches('0'), exponent)?;
        if negative && decimal.mantissa != 0 {
            return Err(DecimalFault::Negative);
        }
        Ok(decimal)
    }

    fn from_digits(whole: &str, fraction: &str, exponent: &str) -> Result<Self, DecimalFault> {
        let exponent: i32 = exponent.parse().map_err(|_| DecimalFault::NotANumber)?;
        let mantissa = whole.bytes().chain(fraction.bytes()).try_fold(0_u128, push_digit);
        let shift = i32::try_from(fraction.len()).map_err(|_| DecimalFault::TooFine)?;
        let exponent = exponent.checked_sub(shift).ok_or(DecimalFault::TooFine)?;
        Ok(Self { mantissa: mantissa.ok_or(DecimalFault::TooLarge)?, exponent })
    }

    /// The number times `factor`, when that is whole and fits.
    pub(crate) fn scaled(self, factor: u64) -> Result<u64, DecimalFault> {
        if self.mantissa == 0 {
            return Ok(0);
        }
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let product =
            self.mantissa.checked_mul(u128::from(factor)).ok_or(DecimalFault::TooLarge)?;
        let scaled = if self.exponent >= 0 {
            power.and_then(|p| product.checked_mul(p)).ok_or(DecimalFault::TooLarge)?
        } else {
            divide_exactly(product, power).ok_or(DecimalFault::TooFine)?
        };
        u64::try_from(scaled).map_err(|_| DecimalFault::TooLarge)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn push_digit(mantissa: u128, digit: u8) -> Option<u128> {
    mantissa.checked_mul(10)?.checked_add(u128::from(digit.saturating_sub(b'0')))
}

fn divide_exactly(product: u128, power: Option<u128>) -> Option<u128> {
    let power = power?;
    (product.checked_rem(power)? == 0).then(|| product.checked_div(power)).flatten()
}

/// `value` / `unit` with at most `decimals` decimals, when that is exact.
pub(crate) fn format_scaled(value: u64, unit: u64, decimals: u32) -> Option<String> {
    let mut text = value.checked_div(unit)?.to_string();
    let mut rest = u128::from(value.checked_rem(unit)?);
    if rest != 0 && decimals != 0 {
        text.push('.');
    }
    for _ in 0..decimals {
        if rest == 0 {
            break;
        }
        rest = rest.saturating_mul(10);
        text.push_str(&rest.checked_div(u128::from(unit))?.to_string());
        rest = rest.checked_rem(u128::from(unit))?;
    }
    (rest == 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(text: &str, factor: u64) -> Result<u64, DecimalFault> {
        Decimal::parse(text).and_then(|decimal| decimal.scaled(factor))
    }

    #[test]
    fn a_number_is_split_from_its_unit_with_and_without_a_space() {
        assert_eq!(split("4 Mbit/s"), ("4", "Mbit/s"));
        assert_eq!(split(" 4.25Mbit/s "), ("4.25", "Mbit/s"));
        assert_eq!(split("1e-6"), ("1e-6", ""));
        assert_eq!(split("1e"), ("1", "e"));
        assert_eq!(split("2e3ms"), ("2e3", "ms"));
        assert_eq!(split("-5 %"), ("-5", "%"));
        assert_eq!(split("ms"), ("", "ms"));
        assert_eq!(split(""), ("", ""));
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(scaled("0.1", 10_000_000), Ok(1_000_000));
        assert_eq!(scaled("29.97", 1_000_000), Ok(29_970_000));
        assert_eq!(scaled("1e-6", 1_000_000_000), Ok(1_000));
        assert_eq!(scaled("2.5e3", 2), Ok(5_000));
        assert_eq!(scaled("0.10000000000000000000000000000000000000000", 10), Ok(1));
        assert_eq!(scaled("18446744073709551615", 1), Ok(u64::MAX));
        assert_eq!(scaled("-0", 7), Ok(0));
    }

    #[test]
    fn what_is_no_number_or_does_not_fit_is_refused() {
        for text in
            ["", ".", "1.", ".5", "1.2.3", "e5", "+", "--1", "1e1e1", "0x10", "1e99999999999"]
        {
            assert_eq!(scaled(text, 1), Err(DecimalFault::NotANumber), "{text}");
        }
        assert_eq!(scaled("-1", 1), Err(DecimalFault::Negative));
        assert_eq!(scaled("0.5", 1), Err(DecimalFault::TooFine));
        assert_eq!(scaled("1e-2147483648", 1), Err(DecimalFault::TooFine));
        assert_eq!(scaled("1.5e-2147483648", 1), Err(DecimalFault::TooFine));
        assert_eq!(scaled("18446744073709551616", 1), Err(DecimalFault::TooLarge));
        assert_eq!(scaled("1e2147483647", 1), Err(DecimalFault::TooLarge));
        assert_eq!(scaled(&"9".repeat(60), 1), Err(DecimalFault::TooLarge));
    }

    #[test]
    fn formatting_gives_up_what_would_not_be_exact() {
        assert_eq!(format_scaled(1_500, 1_000, 3).as_deref(), Some("1.5"));
        assert_eq!(format_scaled(1_005, 1_000, 3).as_deref(), Some("1.005"));
        assert_eq!(format_scaled(2_000, 1_000, 0).as_deref(), Some("2"));
        assert_eq!(format_scaled(1_500, 1_000, 0), None);
        assert_eq!(format_scaled(1_000_001, 1_000_000, 3), None);
    }
}
