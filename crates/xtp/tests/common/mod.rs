//! What the tests share.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod flow;
pub mod gate;
pub mod group;
pub mod hand;
pub mod seeds;
pub mod uut;
pub mod vectors;
pub mod way;
pub mod world;

/// Bytes of hexadecimal digits; blanks are passed over.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}
