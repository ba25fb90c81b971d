//! Compression: units in fewer bytes, each by itself.
//!
//! ```text
//!   down   |unit: seg 0|seg 1|seg 2|seg 3|   ->   |2|packed|2|packed|     shorter, or
//!                                                 |0|seg 0|0|seg 1|…     as it is
//!   up     the same, back
//! ```
//!
//! What is the same for all of them: which bytes are a unit, and how it lies in packets, on its way
//! down (`packing`) and up (`unpacking`). A codec only makes bytes of bytes.
//!
//! Invariants: no unit knows of another, so the loss of one harms no other; none gets longer than
//! it is and one byte for each of its packets; no more is unpacked than a unit of the flow has.

pub mod lz4;
pub mod zstd;

mod packing;
mod unpacking;

use dacapo_lift::{
    Cx, DropReason, Module, ModuleSpec, ParamSpec, ParamUnit, Profile, Property, Setup, Stratum,
    TRUSTED, Verdict,
};
use dacapo_packet::Packet;
use dacapo_wire::compression::LEN;
use packing::Packing;
use unpacking::Unpacking;

/// The parameter by which a session file takes it on itself that lengths give nothing away.
const TRUSTED_PARAM: ParamSpec = ParamSpec {
    name: TRUSTED,
    unit: ParamUnit::Count,
    default: 0,
    min: 0,
    max: 1,
    summary: "1: nobody else has a say in what units are, so lengths give nothing away",
    control: None,
};

/// What all of them have in common; name and number are each one's own.
const fn common(profile: &'static dyn Profile) -> ModuleSpec {
    ModuleSpec {
        function: "compression",
        stratum: Stratum::Compress,
        head: LEN as u16,
        requires: &[Property::Boundaries],
        takes: &[Property::Confidentiality],
        profile,
        ..ModuleSpec::plain("", 0)
    }
}

/// Makes fewer bytes of bytes, and those again. What it needs for that it keeps.
trait Codec: Send {
    /// With what everything begins that it packs: that is not sent.
    const PREFIX: &'static [u8];

    /// The most bytes that it makes of so many.
    fn bound(len: usize) -> usize;

    /// Packs a unit into as many bytes as it may need; how many it made.
    fn pack(&mut self, unit: &[u8], into: &mut [u8]) -> Option<usize>;

    /// Unpacks what [`Codec::pack`] is said to have made of at most `len_max` bytes, to the front
    /// of a buffer that grows as far as that; how many these are.
    ///
    /// # Errors
    /// Why it is dropped.
    fn unpack(
        &mut self,
        packed: &[u8],
        len_max: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, DropReason>;
}

/// A module with this codec.
struct Compression<C> {
    spec: &'static ModuleSpec,
    codec: C,
    packing: Packing,
    unpacking: Unpacking,
}

impl<C: Codec> Compression<C> {
    fn new(spec: &'static ModuleSpec, codec: C, setup: &Setup) -> Self {
        Self { spec, codec, packing: Packing::new(setup), unpacking: Unpacking::new(setup) }
    }
}

impl<C: Codec> Module for Compression<C> {
    fn spec(&self) -> &'static ModuleSpec {
        self.spec
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.packing.down(cx, &mut self.codec, slot)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.unpacking.up(cx, &mut self.codec, slot)
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.packing.release(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.packing.flush(cx.pool);
        self.unpacking.flush(cx.pool);
    }
}

/// At least so many bytes, which are kept.
fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}
