//! Module `checksum`: a CRC-32C at the end of every packet.
//!
//! The Castagnoli polynomial (RFC 3720, appendix B.4; RFC 4960, appendix B) over all bytes that the
//! modules above made, headers included, in the packet's tail room. It finds every burst of up to
//! 32 altered bits, and one in 2^32 of other alterations passes.
//!
//! ```text
//!   down  | headers and payload |  ->  | headers and payload | CRC-32C |
//!   up    the same, back; a packet whose check fails is dropped: `checksum`
//! ```
//!
//! Invariant: no state, so nothing is held and nothing is lost at a change.

use super::tail::Tail;
use crate::price::Price;
use dacapo_lift::{Cost, Entry, Module, ModuleSpec, Params, Property, Setup, Stratum};

const CRC_LEN: usize = 4;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "checksum",
    id: 0x0003,
    function: "integrity",
    mechanism: "CRC-32C",
    summary: "CRC-32C over every packet; altered packets are dropped",
    stratum: Stratum::Protect,
    head: 0,
    tail: CRC_LEN as u16,
    trains_down: true,
    trains_up: true,
    keeps_order: true,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries],
    provides: &[Property::Integrity],
    takes: &[],
    beneath: &[],
    notes: &[],
    profile: &Price { cost: COST, is_proposed: true },
    params: &[],
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// No figure changes: altered packets are so few beside those that are lost that they do not show.
/// Default, measured by `dacapo bench cost` on Intel Xeon with AVX-512.
const COST: Cost = Cost { train_ps: 63_300, packet_ps: 28_900, byte_ps: 29, wire_milli: 0 };

fn build(_: &Params, _: &Setup) -> Box<dyn Module> {
    Box::new(Tail { spec: &SPEC, check })
}

fn check(bytes: &[u8]) -> [u8; CRC_LEN] {
    crc32c(bytes).to_be_bytes()
}

/// CRC-32C, which the RFCs above also call that of iSCSI.
fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    /// Bit by bit, as the polynomial says.
    fn slow(bytes: &[u8]) -> u32 {
        let bit = |rest: u32, _| (rest >> 1) ^ (0x82F6_3B78 & (rest & 1).wrapping_neg());
        let step = |rest: u32, byte: &u8| (0..8).fold(rest ^ u32::from(*byte), bit);
        !bytes.iter().fold(!0, step)
    }

    /// The processor's instructions take another way at each length and alignment.
    #[test]
    fn every_length_and_alignment_gives_what_the_polynomial_says() {
        let bytes: Vec<u8> = (0..2_100_u32).map(|at| ((at * at) >> 3) as u8).collect();
        for from in 0..3 {
            for to in from..bytes.len() {
                let part = &bytes[from * 5..to.max(from * 5)];
                assert_eq!(crc32c(part), slow(part), "{from}, {to}");
            }
        }
        let long = bytes.repeat(32);
        for len in (60_000..long.len()).step_by(97) {
            assert_eq!(crc32c(&long[1..len]), slow(&long[1..len]), "{len}");
        }
    }

    /// RFC 3720, appendix B.4: the check of 32 zero bytes and of 32 bytes of ones.
    #[test]
    fn the_polynomial_is_castagnolis() {
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
    }
}
