//! Tables that are computed when the program is built: logarithms, and each factor as what vector
//! instructions multiply by.
//!
//! ```text
//!   c·x = LOW[c][low half of x] ^ HIGH[c][high half of x]        multiplying is linear
//!   c·x = MATRIX[c] times the bits of x                          so it is a matrix, too
//! ```

/// x⁸ + x⁴ + x³ + x² + 1 without its highest term.
const REDUCED: u8 = 0x1D;

/// The powers of x, twice over, so that a sum of two logarithms needs no division.
pub(crate) static EXP: [u8; 510] = EXP_OF;

/// The logarithms to the base x; that of 0, which has none, is 0.
pub(crate) static LOG: [u8; 256] = logarithms();

/// Products with each number below 16, by factor.
pub(crate) static LOW: [[u8; 16]; 256] = halves(0);

/// Products with each multiple of 16, by factor.
pub(crate) static HIGH: [[u8; 16]; 256] = halves(4);

/// Each factor as a matrix of bits, as GF2P8AFFINEQB reads it: byte 7 − i makes bit i.
pub(crate) static MATRIX: [u64; 256] = matrices();

const EXP_OF: [u8; 510] = powers();

const fn times_x(a: u8) -> u8 {
    (a << 1) ^ if a & 0x80 != 0 { REDUCED } else { 0 }
}

const fn powers() -> [u8; 510] {
    let (mut table, mut at, mut power) = ([0; 510], 0, 1);
    while at < 510 {
        table[at] = power;
        power = times_x(power);
        at += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let (mut table, mut at) = ([0; 256], 0);
    while at < 255 {
        table[EXP_OF[at] as usize] = at as u8;
        at += 1;
    }
    table
}

const fn product(mut a: u8, b: u8) -> u8 {
    let (mut sum, mut bit) = (0, 0);
    while bit < 8 {
        if b >> bit & 1 == 1 {
            sum ^= a;
        }
        a = times_x(a);
        bit += 1;
    }
    sum
}

const fn halves(shift: u32) -> [[u8; 16]; 256] {
    let (mut table, mut factor) = ([[0; 16]; 256], 0);
    while factor < 256 {
        let mut half = 0;
        while half < 16 {
            table[factor][half] = product(factor as u8, (half as u8) << shift);
            half += 1;
        }
        factor += 1;
    }
    table
}

const fn matrices() -> [u64; 256] {
    let (mut table, mut factor) = ([0; 256], 0);
    while factor < 256 {
        let mut column = 0;
        while column < 8 {
            let product = product(factor as u8, 1 << column);
            let mut bit = 0;
            while bit < 8 {
                let is_set = (product >> bit & 1) as u64;
                table[factor] |= is_set << (8 * (7 - bit) + column);
                bit += 1;
            }
            column += 1;
        }
        factor += 1;
    }
    table
}
