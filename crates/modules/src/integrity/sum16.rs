//! Module `sum16`: the sum of the Internet protocols at the end of every packet.
//!
//! The ones' complement of the ones' complement sum of all 16-bit words (RFC 1071) that the modules
//! above made, headers included; behind an odd number of bytes a zero is thought. It finds each
//! single altered bit, and each burst of up to 15, up to 8 where it crosses from an odd number of
//! bytes into the sum. It does not find words that changed places, nor zeros where ones were, and
//! of other alterations one in 65,536 passes.
//!
//! ```text
//!   down  | headers and payload |  ->  | headers and payload | sum |
//!   up    the same, back; a packet whose sum is another is dropped: `checksum`
//! ```
//!
//! UDP has the same sum, so it gives no property: who asks for integrity asks for more than that.
//!
//! Invariant: no state, so nothing is held and nothing is lost at a change.

use super::tail::Tail;
use crate::price::Price;
use dacapo_lift::{Cost, Entry, Module, ModuleSpec, Params, Property, Setup, Stratum};

const SUM_LEN: usize = 2;

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "sum16",
    id: 0x000C,
    function: "integrity",
    mechanism: "sum of 16-bit words (RFC 1071)",
    summary: "the sum of UDP and TCP over every packet; most altered packets are dropped",
    stratum: Stratum::Protect,
    head: 0,
    tail: SUM_LEN as u16,
    trains_down: true,
    trains_up: true,
    keeps_order: true,
    segments: false,
    acknowledges: false,
    orders: None,
    requires: &[Property::Boundaries],
    provides: &[],
    takes: &[],
    beneath: &[],
    notes: &[],
    profile: &Price { cost: COST, is_proposed: false },
    params: &[],
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Default, measured by `dacapo bench cost` on a loaded AMD EPYC: the medians of five runs.
///
/// Never proposed: nobody can ask for what it gives.
const COST: Cost = Cost { train_ps: 33_100, packet_ps: 12_300, byte_ps: 48, wire_milli: 0 };

fn build(_: &Params, _: &Setup) -> Box<dyn Module> {
    Box::new(Tail { spec: &SPEC, check: sum })
}

/// Two words at a time, in the processor's order: that of the bytes does not matter, as long as the
/// sum is written in the same (RFC 1071, section 2 B and C).
fn sum(bytes: &[u8]) -> [u8; SUM_LEN] {
    let (pairs, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let values = pairs.iter().chain([&last]).map(|pair| u64::from(u32::from_ne_bytes(*pair)));
    let mut sum: u64 = values.sum();
    while sum > u64::from(u16::MAX) {
        sum = (sum & u64::from(u16::MAX)) + (sum >> 16);
    }
    (!(sum as u16)).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::sum;

    /// Word by word, as the RFC says.
    fn slow(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|word| {
            u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or_default())
        });
        let add = |sum: u32, word: u32| ((sum + word) & 0xFFFF) + ((sum + word) >> 16);
        !(words.fold(0, add) as u16)
    }

    /// RFC 1071, section 3.
    #[test]
    fn it_is_the_sum_of_the_rfc() {
        assert_eq!(sum(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]), [0x22, 0x0D]);
        assert_eq!([sum(&[]), sum(&[0xFF; 6])], [[0xFF; 2], [0; 2]]);
    }

    #[test]
    fn every_length_gives_what_the_words_say_one_by_one() {
        let bytes: Vec<u8> = (0..2_100_u32).map(|at| ((at * at) >> 3) as u8).collect();
        for from in 0..3 {
            for to in from..bytes.len() {
                let part = &bytes[from..to];
                assert_eq!(sum(part), slow(part).to_be_bytes(), "{from}, {to}");
            }
        }
        let ones = vec![0xFF; 65_535];
        assert_eq!(sum(&ones), slow(&ones).to_be_bytes());
    }
}
