//! Decoder: [`Unpacking`], units on their way up, as they were before they were packed.
//!
//! ```text
//!   plain    |0|seg 0|0|seg 1|    goes up as it comes
//!   packed   |2|packed|2|packed|  waits until its end is there, and is laid out as it was
//! ```
//!
//! Invariants: of one unit at most waits anything; no buffer is longer than a unit of the flow; a
//! unit whose packets do not all say the same does not come up whole.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::Codec;
use crate::runs::{in_runs, up_or_drop};
use dacapo_lift::{Cx, DropReason, Setup, Verdict};
use dacapo_packet::{Layout, Packet, Pool, PoolFull};
use dacapo_wire::compression::{Form, LEN, SEGMENT_LEN, segment_len};

/// The units that come up.
#[derive(Debug)]
pub(super) struct Unpacking {
    /// Units have several segments; else each packet is a unit.
    is_segmented: bool,
    /// The most bytes of a segment, and of a unit.
    segment_max: usize,
    unit_len_max: usize,
    /// What the packets of the unit say that is coming.
    form: Option<Form>,
    /// Its views, while it waits for its end.
    unit: Vec<Packet>,
    /// What is packed, in one row, and what is made of it.
    row: Vec<u8>,
    plain: Vec<u8>,
    made: Vec<Packet>,
}

impl Unpacking {
    pub fn new(setup: &Setup) -> Self {
        Self {
            is_segmented: setup.layout.segmented,
            segment_max: setup.layout.segment.saturating_add(setup.added_above()),
            unit_len_max: setup.unit_len_max_here(),
            form: None,
            unit: Vec::new(),
            row: Vec::new(),
            plain: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Takes some of a unit, or units.
    pub fn up(&mut self, cx: &mut Cx<'_>, codec: &mut impl Codec, slot: &mut Packet) -> Verdict {
        if self.is_segmented {
            return self.up_some(cx, codec, slot);
        }
        in_runs(cx, slot, plain_in_a_row, |cx, run| self.up_alone(cx, codec, run))
    }

    /// Units of one packet each: one, or several that are plain.
    fn up_alone(&mut self, cx: &mut Cx<'_>, codec: &mut impl Codec, run: &mut Packet) -> Verdict {
        let form = Form::parse(cx.pool.segment(run, 0));
        match form {
            Ok(Form::Plain) => without_head(cx.pool, run),
            Ok(Form::Packed) => {
                if cx.pool.pull_head(run, LEN).is_err() {
                    return Verdict::Drop(DropReason::Malformed);
                }
                match self.unpack(cx.pool, codec, std::slice::from_ref(run), Form::Packed) {
                    Ok(()) => {
                        cx.pool.free(run.take());
                        self.hand_over(cx)
                    }
                    Err(reason) => Verdict::Drop(reason),
                }
            }
            Ok(Form::PackedSegments) | Err(_) => Verdict::Drop(DropReason::Malformed),
        }
    }

    /// Some of a unit that may have several packets.
    fn up_some(&mut self, cx: &mut Cx<'_>, codec: &mut impl Codec, slot: &mut Packet) -> Verdict {
        if slot.is_unit_first() {
            self.give_up(cx);
            self.form = Form::parse(cx.pool.segment(slot, 0)).ok();
        }
        let says = |form: &Form| says_all(cx.pool, slot, *form);
        let Some(form) = self.form.filter(says) else {
            self.give_up(cx);
            return Verdict::Drop(DropReason::Malformed);
        };
        let is_last = slot.is_unit_last();
        if is_last {
            self.form = None;
        }
        let verdict = without_head(cx.pool, slot);
        if form == Form::Plain || verdict != Verdict::Forward {
            return verdict;
        }
        self.unit.push(slot.take());
        if is_last { self.up_whole(cx, codec, slot, form) } else { Verdict::Held }
    }

    /// All of a packed unit is there.
    fn up_whole(
        &mut self,
        cx: &mut Cx<'_>,
        codec: &mut impl Codec,
        slot: &mut Packet,
        form: Form,
    ) -> Verdict {
        let mut unit = std::mem::take(&mut self.unit);
        let unpacked = self.unpack(cx.pool, codec, &unit, form);
        if unpacked.is_err() {
            unit.pop().into_iter().for_each(|last| *slot = last);
        }
        for view in unit.drain(..) {
            match unpacked {
                Ok(()) => cx.pool.free(view),
                Err(reason) => cx.discard(view, reason),
            }
        }
        self.unit = unit;
        match unpacked {
            Ok(()) => self.hand_over(cx),
            Err(reason) => Verdict::Drop(reason),
        }
    }

    fn hand_over(&mut self, cx: &mut Cx<'_>) -> Verdict {
        self.made.drain(..).for_each(|packet| up_or_drop(cx, packet));
        Verdict::Held
    }

    /// What has come of a unit is of no use.
    fn give_up(&mut self, cx: &mut Cx<'_>) {
        self.form = None;
        self.unit.drain(..).for_each(|view| cx.discard(view, DropReason::Malformed));
    }

    /// Gives every view back.
    pub fn flush(&mut self, pool: &mut Pool) {
        self.form = None;
        self.unit.drain(..).for_each(|view| pool.free(view));
    }

    /// Makes the packets of a unit of what these views say.
    ///
    /// # Errors
    /// Why it is dropped; none is made.
    fn unpack<C: Codec>(
        &mut self,
        pool: &mut Pool,
        codec: &mut C,
        views: &[Packet],
        form: Form,
    ) -> Result<(), DropReason> {
        let first = views.first().ok_or(DropReason::Malformed)?;
        let (segment, len_max, skip) = match form {
            Form::PackedSegments => {
                let said = segment_len(pool.segment(first, 0));
                let said = said.map_err(|_| DropReason::Malformed)?;
                (Some(usize::from(said)), self.unit_len_max, SEGMENT_LEN)
            }
            _ => (None, self.segment_max, 0),
        };
        if segment.is_some_and(|segment| segment > self.segment_max) {
            return Err(DropReason::Malformed);
        }
        let packed = match views {
            [one] if !one.is_train() && C::PREFIX.is_empty() => {
                pool.segment(one, 0).get(skip..).unwrap_or_default()
            }
            _ => {
                gather(pool, views, C::PREFIX, skip, &mut self.row);
                &self.row
            }
        };
        let len = codec.unpack(packed, len_max, &mut self.plain)?;
        if len <= segment.unwrap_or(0) {
            return Err(DropReason::Malformed);
        }
        self.lay_out(pool, views, segment.unwrap_or(len), len).map_err(|PoolFull| {
            self.flush_made(pool);
            DropReason::NoMemory
        })
    }

    /// Makes packets of what was unpacked.
    fn lay_out(
        &mut self,
        pool: &mut Pool,
        views: &[Packet],
        segment: usize,
        len: usize,
    ) -> Result<(), PoolFull> {
        let layout = Layout { head: 0, tail: 0, segment, segmented: true };
        let came = views.iter().max_by_key(|view| view.time);
        let mut rest = self.plain.get(..len).unwrap_or_default();
        while !rest.is_empty() {
            let (now, then) = rest.split_at(layout.payload_per_train().min(rest.len()));
            let mut packet = pool.alloc_train(&layout, now.len())?;
            pool.write_payload(&packet, 0, now);
            came.into_iter().for_each(|view| packet.copy_marks(view));
            packet.set_unit_ends(self.made.is_empty(), then.is_empty());
            self.made.push(packet);
            rest = then;
        }
        Ok(())
    }

    fn flush_made(&mut self, pool: &mut Pool) {
        self.made.drain(..).for_each(|packet| pool.free(packet));
    }
}

/// How many segments, from the first on, are plain; one where the first is not.
fn plain_in_a_row(cx: &Cx<'_>, packet: &Packet) -> usize {
    let is_plain = |at: &usize| Form::parse(cx.pool.segment(packet, *at)) == Ok(Form::Plain);
    (0..packet.segment_count()).take_while(is_plain).count().max(1)
}

/// Whether every segment of a packet says this.
fn says_all(pool: &Pool, packet: &Packet, form: Form) -> bool {
    (0..packet.segment_count()).all(|at| Form::parse(pool.segment(packet, at)) == Ok(form))
}

fn without_head(pool: &mut Pool, packet: &mut Packet) -> Verdict {
    match pool.pull_head(packet, LEN) {
        Ok(()) => Verdict::Forward,
        Err(_) => Verdict::Drop(DropReason::Malformed),
    }
}

/// What is packed, in one row behind the prefix, but for the first `skip` bytes.
fn gather(pool: &Pool, views: &[Packet], prefix: &[u8], skip: usize, row: &mut Vec<u8>) {
    row.clear();
    row.extend_from_slice(prefix);
    let mut skip = skip;
    for view in views {
        for at in 0..view.segment_count() {
            let bytes = pool.segment(view, at);
            row.extend_from_slice(bytes.get(std::mem::take(&mut skip)..).unwrap_or_default());
        }
    }
}
