//! Ten digits of three by five blocks.
//!
//! ```text
//!   ###
//!   # #     a row is three bits, the left block the highest one
//!   # #
//!   # #
//!   ###
//! ```

/// Blocks of a digit, across.
pub(super) const WIDTH: usize = 3;
/// Blocks of a digit, down.
pub(super) const HEIGHT: usize = 5;

const DIGITS: [[u8; HEIGHT]; 10] = [
    [0b111, 0b101, 0b101, 0b101, 0b111],
    [0b010, 0b110, 0b010, 0b010, 0b111],
    [0b111, 0b001, 0b111, 0b100, 0b111],
    [0b111, 0b001, 0b111, 0b001, 0b111],
    [0b101, 0b101, 0b111, 0b001, 0b001],
    [0b111, 0b100, 0b111, 0b001, 0b111],
    [0b111, 0b100, 0b111, 0b101, 0b111],
    [0b111, 0b001, 0b010, 0b010, 0b010],
    [0b111, 0b101, 0b111, 0b101, 0b111],
    [0b111, 0b101, 0b111, 0b001, 0b111],
];

/// Whether block (`x`, `y`) of a digit is lit.
pub(super) fn is_lit(digit: usize, x: usize, y: usize) -> bool {
    let row = DIGITS.get(digit).and_then(|rows| rows.get(y)).copied().unwrap_or(0);
    x < WIDTH && row >> (WIDTH - 1 - x) & 1 == 1
}
