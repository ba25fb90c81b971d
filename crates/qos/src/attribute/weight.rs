//! Weights as people write them: 0 to 1 in steps of 0.01.
//!
//! The reading into percent. Invariant: a weight that was read is at most 100 %.

use crate::units::{Dimension, PPB};

/// What a weight may be.
pub(crate) const WANTED: &str = "a number from 0 to 1 in steps of 0.01, for example 0.5";

const PERCENT: u64 = PPB / 100;

/// Reads a weight, in percent.
pub(crate) fn parse(text: &str) -> Option<u8> {
    let ppb = Dimension::Ratio.parse(text).ok()?;
    let percent = u8::try_from(ppb.checked_div(PERCENT)?).ok()?;
    (percent <= 100 && ppb.checked_rem(PERCENT)? == 0).then_some(percent)
}
