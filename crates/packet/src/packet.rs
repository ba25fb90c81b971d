//! [`Packet`]: a view of a counted body, 32 bytes, that stays in its slot.

use dacapo_base::{Ecn, Time};

/// What a packet carries; whoever stores, joins or regenerates packets carries it along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Units of the application.
    Data,
    /// A control unit of the exchange that changes a flow: begin, end, probe.
    Mark,
    /// Redundancy that a module made; it ends at the peer's module.
    Parity,
}

const KIND_MASK: u8 = 0b0000_0011;
const UNIT_FIRST: u8 = 0b0000_0100;
const UNIT_LAST: u8 = 0b0000_1000;
const SHARED: u8 = 0b0001_0000;
const USE_BY: u8 = 0b0010_0000;
const ECN_MASK: u8 = 0b1100_0000;
const ECN_SHIFT: u32 = 6;
const NO_BODY: u32 = u32::MAX;

/// A view of a body, or an empty slot.
///
/// One segment, or `count` equal segments at a stride of which the last may be shorter.
#[derive(Debug, PartialEq, Eq)]
pub struct Packet {
    pub(crate) body: u32,
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) short: u16,
    pub(crate) stride: u16,
    pub(crate) count: u16,
    pub(crate) head: u16,
    pub(crate) tail: u16,
    flags: u8,
    /// The receiver class that this packet is for; 0 where there is one class.
    pub class: u8,
    /// When the unit was handed over (down) or the datagram arrived (up), unless it says
    /// [until when it is of use](Packet::use_by).
    pub time: Time,
}

const _: () = assert!(size_of::<Packet>() == 32);

impl Packet {
    /// A slot without a packet.
    pub const EMPTY: Self = Self {
        body: NO_BODY,
        offset: 0,
        len: 0,
        short: 0,
        stride: 0,
        count: 0,
        head: 0,
        tail: 0,
        flags: 0,
        class: 0,
        time: Time::ZERO,
    };

    /// Takes the packet out of its slot and leaves the slot empty.
    #[must_use]
    #[inline]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::EMPTY)
    }

    /// True when the slot holds no packet.
    #[must_use]
    #[inline]
    pub fn is_empty_slot(&self) -> bool {
        self.body == NO_BODY
    }

    /// The number of segments: 1 for a plain packet, 0 for an empty slot.
    #[must_use]
    #[inline]
    pub fn segment_count(&self) -> usize {
        usize::from(self.count)
    }

    /// True for a packet of several segments.
    #[must_use]
    #[inline]
    pub fn is_train(&self) -> bool {
        self.count > 1
    }

    /// The length of segment `index` in bytes; 0 when there is no such segment.
    #[must_use]
    #[inline]
    pub fn segment_len(&self, index: usize) -> usize {
        if index + 1 < self.segment_count() {
            self.len as usize
        } else if index + 1 == self.segment_count() {
            self.len as usize - usize::from(self.short)
        } else {
            0
        }
    }

    /// The bytes of all segments together, gaps left out.
    #[must_use]
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.segment_count() * self.len as usize - usize::from(self.short)
    }

    /// The room before every segment that this view may write, in bytes.
    #[must_use]
    #[inline]
    pub fn head_room(&self) -> usize {
        usize::from(self.head)
    }

    /// The room after every segment that this view may write, in bytes.
    #[must_use]
    #[inline]
    pub fn tail_room(&self) -> usize {
        usize::from(self.tail)
    }

    /// What the packet carries.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> Kind {
        match self.flags & KIND_MASK {
            0 => Kind::Data,
            1 => Kind::Mark,
            _ => Kind::Parity,
        }
    }

    /// Sets what the packet carries.
    #[inline]
    pub fn set_kind(&mut self, kind: Kind) {
        let bits = match kind {
            Kind::Data => 0,
            Kind::Mark => 1,
            Kind::Parity => 2,
        };
        self.flags = (self.flags & !KIND_MASK) | bits;
    }

    /// True for the first view of a unit (above segmentation a unit is a chain of views).
    #[must_use]
    #[inline]
    pub fn is_unit_first(&self) -> bool {
        self.flags & UNIT_FIRST != 0
    }

    /// True for the last view of a unit.
    #[must_use]
    #[inline]
    pub fn is_unit_last(&self) -> bool {
        self.flags & UNIT_LAST != 0
    }

    /// Says where in its unit's chain this view stands.
    #[inline]
    pub fn set_unit_ends(&mut self, first: bool, last: bool) {
        self.flags &= !(UNIT_FIRST | UNIT_LAST);
        self.flags |= if first { UNIT_FIRST } else { 0 } | if last { UNIT_LAST } else { 0 };
    }

    /// Until when it is of use, where somebody on the way up has said so.
    #[must_use]
    #[inline]
    pub fn use_by(&self) -> Option<Time> {
        (self.flags & USE_BY != 0).then_some(self.time)
    }

    /// Says until when it is of use; when it arrived is not known from then on.
    #[inline]
    pub fn set_use_by(&mut self, at: Time) {
        (self.flags, self.time) = (self.flags | USE_BY, at);
    }

    /// The congestion codepoint with which it is to leave, or with which each segment of it came
    /// (RFC 3168, 9331).
    #[must_use]
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.flags >> ECN_SHIFT)
    }

    /// Says with which congestion codepoint it is to leave, or came.
    #[inline]
    pub fn set_ecn(&mut self, ecn: Ecn) {
        self.flags = (self.flags & !ECN_MASK) | (ecn.bits() << ECN_SHIFT);
    }

    /// Carries kind, class, time and place in the unit over from another packet.
    #[inline]
    pub fn copy_marks(&mut self, from: &Self) {
        let marks = KIND_MASK | UNIT_FIRST | UNIT_LAST;
        self.flags = (self.flags & !marks) | (from.flags & marks);
        self.class = from.class;
        self.time = from.time;
    }

    /// The length of the shortest segment: of the last one.
    #[inline]
    pub(crate) fn shortest_len(&self) -> usize {
        self.len as usize - usize::from(self.short)
    }

    /// The first `n` bytes of every segment are no longer of it; all segments have as many.
    #[inline]
    pub(crate) fn pulled_head(&mut self, n: usize) {
        self.offset += n as u32;
        self.len -= n as u32;
        if !self.is_shared() {
            self.head = self.head.saturating_add(n as u16);
        }
    }

    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.flags & SHARED != 0
    }

    #[inline]
    pub(crate) fn set_shared(&mut self, shared: bool) {
        self.flags = if shared { self.flags | SHARED } else { self.flags & !SHARED };
    }

    /// Another view with the same place and marks and no room of its own.
    #[inline]
    pub(crate) fn view(&self) -> Self {
        Self { head: 0, tail: 0, ..*self }
    }

    /// Where segment `index` begins in the body.
    #[inline]
    pub(crate) fn segment_offset(&self, index: usize) -> usize {
        self.offset as usize + index * usize::from(self.stride)
    }
}
