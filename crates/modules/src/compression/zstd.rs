//! Decoder: module `zstd`, units as frames of Zstandard.
//!
//! RFC 8878, one frame for each unit, with its length and without check, dictionary or magic
//! number. A frame that does not say how long its unit is, or says more than one may have, is not
//! looked at further.
//!
//! Invariants: both contexts are made when they are needed first, and kept; matches are looked for
//! in 128 KiB at most, which bounds the memory of the one that packs.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::{Codec, Compression, TRUSTED_PARAM, common, grow};
use dacapo_lift::{
    Cost, DropReason, Entry, Module, ModuleSpec, ParamSpec, ParamUnit, Params, Profile, Setting,
    Setup,
};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, compress_bound, get_frame_content_size};

/// The static facts.
pub static SPEC: ModuleSpec = ModuleSpec {
    name: "zstd",
    id: 0x0010,
    mechanism: "Zstandard frames (RFC 8878)",
    summary: "units in fewer bytes: Zstandard, each unit by itself",
    params: &[
        ParamSpec {
            name: "level",
            unit: ParamUnit::Count,
            default: 1,
            min: 1,
            max: 9,
            summary: "how long it looks for shorter forms",
            control: None,
        },
        TRUSTED_PARAM,
    ],
    ..common(&Levels)
};

/// The catalogue's entry.
pub const ENTRY: Entry = Entry { spec: &SPEC, build };

/// Matches are looked for in 128 KiB.
const WINDOW_LOG: u32 = 17;

/// Level 1, measured as that of `lz4`.
const COST: Cost = Cost { train_ps: 2_580_000, packet_ps: 13_400, byte_ps: 1_320, wire_milli: 0 };

/// How much longer each level takes than the first, both ways, for units of 1,400 bytes, in
/// thousandths: the library's own calls on that machine. Longer units take the higher levels longer
/// still.
const LEVELS_MILLI: [u64; 9] = [1_000, 1_000, 1_080, 1_390, 2_040, 2_660, 2_770, 2_770, 3_920];

/// No figure changes.
#[derive(Debug)]
struct Levels;

impl Profile for Levels {
    /// Never: what units say, and who has a say in it, is not known when a graph is chosen.
    fn suits(&self, _: &Setting) -> bool {
        false
    }

    fn cost(&self, params: &Params) -> Cost {
        let level = params.value(&SPEC, "level").saturating_sub(1) as usize;
        let milli = LEVELS_MILLI.get(level).copied().unwrap_or(1_000);
        let times = |ps: u64| ps.saturating_mul(milli) / 1_000;
        let Cost { train_ps, packet_ps, byte_ps, wire_milli } = COST;
        Cost {
            train_ps: times(train_ps),
            packet_ps: times(packet_ps),
            byte_ps: times(byte_ps),
            wire_milli,
        }
    }
}

fn build(params: &Params, setup: &Setup) -> Box<dyn Module> {
    let level = params.value(&SPEC, "level") as i32;
    Box::new(Compression::new(&SPEC, Zstd { level, packs: None, unpacks: None }, setup))
}

struct Zstd {
    level: i32,
    packs: Option<Compressor<'static>>,
    unpacks: Option<Decompressor<'static>>,
}

impl Zstd {
    fn compressor(&mut self) -> Option<&mut Compressor<'static>> {
        if self.packs.is_none() {
            let mut made = Compressor::new(self.level).ok()?;
            made.set_parameter(CParameter::WindowLog(WINDOW_LOG)).ok()?;
            self.packs = Some(made);
        }
        self.packs.as_mut()
    }
}

impl Codec for Zstd {
    const PREFIX: &'static [u8] = &[0x28, 0xB5, 0x2F, 0xFD];

    fn bound(len: usize) -> usize {
        compress_bound(len)
    }

    fn pack(&mut self, unit: &[u8], into: &mut [u8]) -> Option<usize> {
        self.compressor()?.compress_to_buffer(unit, into).ok()
    }

    fn unpack(
        &mut self,
        packed: &[u8],
        len_max: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, DropReason> {
        let Ok(Some(len)) = get_frame_content_size(packed) else {
            return Err(DropReason::Malformed);
        };
        let len = usize::try_from(len).ok().filter(|len| *len <= len_max);
        let len = len.ok_or(DropReason::TooLarge)?;
        if self.unpacks.is_none() {
            self.unpacks = Decompressor::new().ok();
        }
        let unpacks = self.unpacks.as_mut().ok_or(DropReason::NoMemory)?;
        grow(into, len);
        let unit = into.get_mut(..len).unwrap_or_default();
        let made = unpacks.decompress_to_buffer(packed, unit);
        made.ok().filter(|made| *made == len).ok_or(DropReason::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame by hand (RFC 8878, section 3.1.1): one segment of four bytes, and a last block of
    /// one byte four times.
    #[test]
    fn a_frame_is_read_as_the_rfc_says_and_never_beyond_what_a_unit_may_have() {
        let frame = [Zstd::PREFIX, &[0x20, 4, 0x23, 0, 0, b'a']].concat();
        let (mut zstd, mut into) = (of_level(1), Vec::new());
        assert_eq!(zstd.unpack(&frame, 4, &mut into), Ok(4));
        assert_eq!(into, b"aaaa");
        assert_eq!(zstd.unpack(&frame, 3, &mut Vec::new()), Err(DropReason::TooLarge));
        let twice = [&frame[..], &frame].concat();
        assert_eq!(zstd.unpack(&twice, 100, &mut into), Err(DropReason::Malformed));
        // Into a buffer of the unit's length it keeps nothing beside itself.
        let bytes = ::zstd::zstd_safe::DCtx::create().sizeof();
        assert!(bytes < 100_000, "{bytes}");
    }

    #[test]
    fn whatever_is_packed_begins_with_the_prefix_and_takes_a_bounded_memory() {
        let unit: Vec<u8> = (0..8_u32 << 20).map(|at| (at.wrapping_mul(at) >> 9) as u8).collect();
        let mut into = vec![0; Zstd::bound(unit.len())];
        for level in 1..=9 {
            let mut zstd = of_level(level);
            for len in [17, 1_400, 65_000, unit.len()] {
                let made = zstd.pack(&unit[..len], &mut into).unwrap();
                assert!(into[..made].starts_with(Zstd::PREFIX), "level {level}, {len} bytes");
            }
            let bytes = zstd.packs.as_mut().unwrap().context_mut().sizeof();
            assert!(bytes < if level == 1 { 600_000 } else { 2_100_000 }, "level {level}: {bytes}");
        }
    }

    fn of_level(level: i32) -> Zstd {
        Zstd { level, packs: None, unpacks: None }
    }
}
