//! [`Packing`]: units on their way down, laid out anew where that makes them shorter.
//!
//! ```text
//!   views of a unit -> one row of bytes -> packed -> trains of segments as long as before
//! ```
//!
//! Invariants: a unit leaves whole, packed or as it is; what is no unit leaves as it is.

use super::{Codec, grow};
use crate::emitting::behind;
use crate::runs::down_or_drop;
use dacapo_lift::{Cx, Setup, Verdict};
use dacapo_packet::{Kind, Layout, Packet, Pool, PoolFull};
use dacapo_wire::compression::{Form, SEGMENT_LEN, SEGMENT_MIN};

/// What is shorter is not tried.
const WORTH_LEN: usize = 16;

/// The units that go down.
#[derive(Debug)]
pub(super) struct Packing {
    head: usize,
    tail: usize,
    /// Units have several segments; else each packet is a unit.
    is_segmented: bool,
    /// Views of a unit whose end is to come.
    unit: Vec<Packet>,
    /// A unit of several segments in one row, and what is made of it.
    row: Vec<u8>,
    packed: Vec<u8>,
    made: Vec<Packet>,
}

impl Packing {
    pub fn new(setup: &Setup) -> Self {
        Self {
            head: setup.head_below,
            tail: setup.tail_below,
            is_segmented: setup.layout.segmented,
            unit: Vec::new(),
            row: Vec::new(),
            packed: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Takes some of a unit.
    pub fn down(&mut self, cx: &mut Cx<'_>, codec: &mut impl Codec, slot: &mut Packet) -> Verdict {
        if slot.is_unit_first() {
            self.release(cx);
        }
        if slot.kind() != Kind::Data || (slot.is_train() && !self.is_segmented) {
            return behind(cx, slot, |_| Form::Plain.emit());
        }
        if self.unit.is_empty() && (slot.is_unit_last() || !self.is_segmented) {
            return self.down_whole(cx, codec, slot);
        }
        let is_last = slot.is_unit_last();
        self.unit.push(slot.take());
        if is_last {
            self.down_chain(cx, codec);
        }
        Verdict::Held
    }

    /// A unit of one view.
    fn down_whole<C: Codec>(
        &mut self,
        cx: &mut Cx<'_>,
        codec: &mut C,
        slot: &mut Packet,
    ) -> Verdict {
        if !slot.is_train() {
            let form =
                if self.pack_alone(cx.pool, codec, slot) { Form::Packed } else { Form::Plain };
            return behind(cx, slot, |_| form.emit());
        }
        if !self.pack(cx.pool, codec, std::slice::from_ref(slot)) {
            return behind(cx, slot, |_| Form::Plain.emit());
        }
        cx.pool.free(slot.take());
        self.made.drain(..).for_each(|packet| down_or_drop(cx, packet));
        Verdict::Held
    }

    /// Packs a unit of one packet where it lies; false, and nothing done, where it would be no
    /// shorter, or there is no memory for it.
    fn pack_alone<C: Codec>(&mut self, pool: &mut Pool, codec: &mut C, slot: &mut Packet) -> bool {
        let len = slot.payload_len();
        if len < WORTH_LEN {
            return false;
        }
        grow(&mut self.packed, C::bound(len));
        let Some(made) = codec.pack(pool.segment(slot, 0), &mut self.packed) else { return false };
        let packed = self.packed.get(C::PREFIX.len()..made).unwrap_or_default();
        if packed.is_empty() || packed.len() >= len {
            return false;
        }
        let Ok(bytes) = pool.segment_mut(slot, 0) else { return false };
        bytes[..packed.len()].copy_from_slice(packed);
        pool.pull_tail(slot, len - packed.len()).is_ok()
    }

    /// A unit of several views, all of which are there.
    fn down_chain(&mut self, cx: &mut Cx<'_>, codec: &mut impl Codec) {
        let unit = std::mem::take(&mut self.unit);
        let is_packed = self.pack(cx.pool, codec, &unit);
        self.unit = unit;
        if !is_packed {
            return self.release(cx);
        }
        self.unit.drain(..).for_each(|view| cx.pool.free(view));
        self.made.drain(..).for_each(|packet| down_or_drop(cx, packet));
    }

    /// Sends what there is of a unit as it is.
    pub fn release(&mut self, cx: &mut Cx<'_>) {
        for mut view in self.unit.drain(..) {
            match behind(cx, &mut view, |_| Form::Plain.emit()) {
                Verdict::Drop(reason) => cx.discard(view, reason),
                _ => down_or_drop(cx, view),
            }
        }
    }

    /// Gives every view back.
    pub fn flush(&mut self, pool: &mut Pool) {
        self.unit.drain(..).for_each(|view| pool.free(view));
    }

    /// Makes the packets of a packed unit of several segments; false where they would be no
    /// shorter, or there is no memory for them.
    fn pack<C: Codec>(&mut self, pool: &mut Pool, codec: &mut C, views: &[Packet]) -> bool {
        let Some(segment) = segment_of(views) else { return false };
        self.row.clear();
        views.iter().for_each(|view| pool.read_payload(view, &mut self.row));
        let len = self.row.len();
        // Room for the length of segments, where there is no prefix in whose place it comes.
        grow(&mut self.packed, SEGMENT_LEN + C::bound(len));
        let made = codec.pack(&self.row, &mut self.packed[SEGMENT_LEN..]);
        let Some(made) = made else { return false };
        let from = C::PREFIX.len();
        let packed = &mut self.packed[from..SEGMENT_LEN + made];
        if packed.len() >= len {
            return false;
        }
        packed[..SEGMENT_LEN].copy_from_slice(&segment.to_be_bytes());
        self.lay_out(pool, views, from..SEGMENT_LEN + made)
    }

    /// Makes packets of what is packed; false, and none made, without memory.
    fn lay_out(
        &mut self,
        pool: &mut Pool,
        views: &[Packet],
        packed: std::ops::Range<usize>,
    ) -> bool {
        let Some(first) = views.first() else { return false };
        let segment = first.segment_len(0);
        let layout = Layout { head: self.head, tail: self.tail, segment, segmented: true };
        let mut rest = &self.packed[packed];
        while !rest.is_empty() {
            let (now, then) = rest.split_at(layout.payload_per_train().min(rest.len()));
            let ends = (self.made.is_empty(), then.is_empty());
            match packet(pool, &layout, first, now, ends) {
                Ok(packet) => self.made.push(packet),
                Err(PoolFull) => {
                    self.made.drain(..).for_each(|packet| pool.free(packet));
                    return false;
                }
            }
            rest = then;
        }
        true
    }
}

/// A packet or train with these bytes of a unit, of which `first` was the first view.
fn packet(
    pool: &mut Pool,
    layout: &Layout,
    first: &Packet,
    bytes: &[u8],
    (is_first, is_last): (bool, bool),
) -> Result<Packet, PoolFull> {
    let mut packet = pool.alloc_train(layout, bytes.len())?;
    pool.write_payload(&packet, 0, bytes);
    packet.copy_marks(first);
    packet.set_unit_ends(is_first, is_last);
    let put = pool.put_head(&mut packet, |_| Form::PackedSegments.emit());
    debug_assert!(put.is_ok(), "the layout has room for the header");
    Ok(packet)
}

/// How long the segments of a unit are; none where these are not of one length, or too short.
fn segment_of(views: &[Packet]) -> Option<u16> {
    let segment = u16::try_from(views.first()?.segment_len(0)).ok()?;
    let len = usize::from(segment);
    let (last, others) = views.split_last()?;
    let is_full = |view: &Packet| view.payload_len() == view.segment_count() * len;
    let is_even = others.iter().all(|view| view.segment_len(0) == len && is_full(view));
    let fits = if last.is_train() { last.segment_len(0) == len } else { last.payload_len() <= len };
    (is_even && fits && segment >= SEGMENT_MIN).then_some(segment)
}
