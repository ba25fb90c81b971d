//! Decoder: module `lz4`, units as blocks of LZ4.
//!
//! The block format of LZ4 (`lz4_Block_format.md` of its reference), without frame, check or
//! length: what a unit may have bounds what is unpacked. Of bytes that compress little it goes over
//! more and more at a time, so they cost less.
//!
//! Invariant: the table of positions is kept and cleared for each unit.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::{Codec, Compression, TRUSTED_PARAM, common, grow};
use crate::price::Price;
use dacapo_lift::{Cost, DropReason, Entry, Module, ModuleSpec, Params, Setup};
use lz4_flex::block::{
    CompressTable, DecompressError, compress_into_with_table, decompress_into,
    get_maximum_output_size,
};

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "lz4",
    id: 0x000F,
    mechanism: "LZ4 blocks",
    summary: "units in fewer bytes, fast: LZ4, each unit by itself",
    params: &[TRUSTED_PARAM],
    ..common(&PRICE)
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Never proposed: what units say, and who has a say in it, is not known when a graph is chosen.
/// Default, measured by `dacapo bench cost` on a loaded machine, the medians of five runs over
/// readings of sensors. A unit of 45 packets took half as long again.
const PRICE: Price = Price {
    cost: Cost { train_ps: 155_000, packet_ps: 0, byte_ps: 790, wire_milli: 0 },
    is_proposed: false,
};

/// A byte of a block makes at most so many of a unit.
const RATIO_MAX: usize = 255;

fn build(_: &Params, setup: &Setup) -> Box<dyn Module> {
    Box::new(Compression::new(&SPEC, Lz4::default(), setup))
}

/// The table takes 8 KiB, and 16 once a unit had 64 KiB; none while nothing is packed.
#[derive(Default)]
struct Lz4 {
    table: Option<CompressTable>,
}

impl Codec for Lz4 {
    const PREFIX: &'static [u8] = &[];

    fn bound(len: usize) -> usize {
        get_maximum_output_size(len)
    }

    fn pack(&mut self, unit: &[u8], into: &mut [u8]) -> Option<usize> {
        let table = self.table.get_or_insert_with(CompressTable::small);
        compress_into_with_table(unit, into, table).ok()
    }

    fn unpack(
        &mut self,
        packed: &[u8],
        len_max: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, DropReason> {
        let most = packed.len().saturating_mul(RATIO_MAX).min(len_max);
        grow(into, most);
        decompress_into(packed, into.get_mut(..most).unwrap_or_default()).map_err(|error| {
            match error {
                DecompressError::OutputTooSmall { .. } => DropReason::TooLarge,
                _ => DropReason::Malformed,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five literals, a match of eight bytes one byte back, and five literals: written by hand from
    /// the description of the format.
    #[test]
    fn a_block_is_read_as_the_format_says_and_never_beyond_what_a_unit_may_have() {
        let block = [&[0x54][..], b"start", &[1, 0, 0x50], b"ahead"].concat();
        let (mut lz4, mut into) = (Lz4::default(), Vec::new());
        assert_eq!(lz4.unpack(&block, 18, &mut into), Ok(18));
        assert_eq!(into, b"startttttttttahead");
        assert_eq!(lz4.unpack(&block, 17, &mut Vec::new()), Err(DropReason::TooLarge));
        let far = [&[0x54][..], b"start", &[6, 0, 0x50], b"ahead"].concat();
        assert_eq!(lz4.unpack(&far, 18, &mut Vec::new()), Err(DropReason::Malformed));
    }

    #[test]
    fn no_more_room_is_taken_than_so_many_bytes_can_make() {
        let mut into = Vec::new();
        assert_eq!(Lz4::default().unpack(&[0x10, b'a'], 64 << 20, &mut into), Ok(1));
        assert_eq!(into.len(), 2 * RATIO_MAX);
    }
}
