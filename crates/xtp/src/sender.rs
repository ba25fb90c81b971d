//! [`Sender`]: the half of a context that sends the user's stream.
//!
//! ```text
//!         una                         next              end      alloc
//!   -------|==[lacks]====[lacks]========|-----------------|---------|--->  numbers of bytes
//!   acked  | sent, kept for sending     | waits           |
//!          | again; `resend`: asked for |                 |
//! ```
//!
//! Invariants: at most `capacity` bytes are kept, which grows while the peer takes more; a byte at
//! or beyond `alloc`, which is the first window until the peer has stated its own, leaves only with
//! NOFLOW, and again only as a probe, a packet for each time that the closed window is asked for; a
//! stretch that was sent again is not sent a third time before an answer has come to a request that
//! was sent after it.

use crate::pending::Pending;
use crate::ring::Ring;
use crate::wire::{Control, Span, Spans, TAG_LEN};
use dacapo_base::Ranges;
use std::collections::VecDeque;

/// The most stretches that are remembered as sent again.
const RESENT_MAX: usize = 4_096;

/// What of the stream goes into the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of its first byte.
    pub seq: u64,
    /// How many bytes.
    pub len: usize,
    /// Whether a message ends with it.
    pub is_end: bool,
    /// The tag of the message that begins with it.
    pub tag: Option<[u8; 8]>,
    /// Whether it was sent before.
    pub is_again: bool,
}

impl Piece {
    /// One past the number of its last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.seq.saturating_add(self.len as u64)
    }
}

/// What status says of what was sent, seen from the sender.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What has arrived and may be sent.
    pub control: Control,
    /// Of an ECNTL: what has arrived beyond, or what lacks.
    pub spans: Option<Spans<'a>>,
    /// One past the last byte that was sent before the request that is answered; `None` when it
    /// answers none.
    pub asked_up_to: Option<u64>,
    /// Whether what lacks may be sent again now.
    pub may_resend: bool,
}

impl Report<'_> {
    /// Whether the spans are what lacks, not what has arrived: then they begin at `rseq`.
    fn names_gaps(&self) -> bool {
        let first = self.spans.and_then(|spans| spans.iter().next());
        first.is_some_and(|span| span.left == self.control.rseq)
    }

    /// Whether all of a stretch has arrived.
    #[must_use]
    pub fn has(&self, stretch: Span) -> bool {
        let Span { left, right } = stretch;
        let mut spans = self.spans.unwrap_or(Spans::List(&[])).iter();
        right <= self.control.rseq
            || match self.names_gaps() {
                true => spans.all(|gap| gap.right <= left || right <= gap.left),
                false => spans.any(|span| span.left <= left && right <= span.right),
            }
    }
}

/// The half of a context that sends the user's stream.
#[derive(Debug)]
pub struct Sender {
    una: u64,
    next: u64,
    buffer: Ring,
    capacity: usize,
    ends: VecDeque<u64>,
    /// The last end of a message that was sent.
    sent_end: u64,
    tags: VecDeque<(u64, [u8; 8])>,
    is_in_message: bool,
    /// More is announced: what does not fill a packet waits for it.
    is_held: bool,
    /// What begins before this byte waits for nothing.
    let_go: u64,
    resend: Ranges,
    resent: Pending<RESENT_MAX>,
    /// What lies before this byte the peer takes, as it has stated; until then as is assumed.
    window: u64,
    is_window_stated: bool,
    is_lossy: bool,
    is_unbounded: bool,
    /// One packet may go again beyond the window: the peer may have room and say otherwise.
    may_probe: bool,
    is_finished: bool,
    /// Whether the peer has the association, so that the front need not be sent once more.
    is_confirmed: bool,
}

impl Sender {
    /// A stream whose first byte has the number 0; `first_window` bytes may be sent before the peer
    /// has said how much it takes.
    #[must_use]
    pub fn new(capacity: usize, first_window: u64, is_lossy: bool, is_unbounded: bool) -> Self {
        Self {
            una: 0,
            next: 0,
            buffer: Ring::default(),
            capacity,
            ends: VecDeque::new(),
            sent_end: 0,
            tags: VecDeque::new(),
            is_in_message: false,
            is_held: false,
            let_go: 0,
            resend: Ranges::default(),
            resent: Pending::default(),
            window: first_window,
            is_window_stated: false,
            is_lossy,
            is_unbounded,
            may_probe: false,
            is_finished: false,
            is_confirmed: false,
        }
    }

    /// Whether half of the room and more is under way.
    #[must_use]
    pub const fn is_mostly_under_way(&self) -> bool {
        self.next.saturating_sub(self.una) >= (self.capacity / 2) as u64
    }

    /// Grows, to `capacity_max` at most, where the peer takes more, and takes that from `left`;
    /// whether it does.
    pub fn grow(&mut self, capacity_max: usize, left: &mut usize) -> bool {
        let more = self.capacity.min(capacity_max.saturating_sub(self.capacity));
        let window = self.stated().saturating_sub(self.una);
        let grows = window > self.capacity as u64 && 0 < more && more <= *left;
        if grows {
            self.capacity = self.capacity.saturating_add(more);
            *left = left.saturating_sub(more);
        }
        grows
    }

    /// How many bytes are kept at most.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The peer has the association, or will never say so.
    pub fn confirm(&mut self) {
        self.is_confirmed = true;
        if self.is_lossy {
            self.acknowledge(self.next);
        }
    }

    /// The next byte that has not been sent.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Where somebody may begin who gets the stream from now on: at the next byte, or after the
    /// message to which it belongs, where the end of that is known.
    #[must_use]
    pub fn boundary(&self) -> u64 {
        if self.next == self.sent_end {
            return self.next;
        }
        let place = self.ends.partition_point(|end| *end <= self.next);
        self.ends.get(place).copied().unwrap_or(self.next)
    }

    /// One past the last byte that the user has given.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.una.saturating_add(self.buffer.len() as u64)
    }

    /// How many bytes the user may give now.
    #[must_use]
    pub fn capacity_left(&self) -> usize {
        if self.is_finished { 0 } else { self.capacity.saturating_sub(self.buffer.len()) }
    }

    /// Whether the user gives no more.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Whether everything was sent at least once, and the user gives no more.
    #[must_use]
    pub fn is_all_sent(&self) -> bool {
        self.is_finished && self.next == self.end()
    }

    /// Whether bytes wait that the peer has no room for, new ones or such as it lacks.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        let limit = self.limit_again();
        let lacks_more = self.resend.first().is_some_and(|range| range.start >= limit);
        lacks_more || self.next < self.end() && self.next >= self.limit()
    }

    /// Whether something was sent that is not acknowledged.
    #[must_use]
    pub const fn has_unacknowledged(&self) -> bool {
        self.una < self.next && !self.is_lossy
    }

    /// Takes bytes of the user, as many as there is room for.
    pub fn write(&mut self, data: &[u8], is_end: bool, tag: Option<[u8; 8]>) -> usize {
        let taken = data.get(..self.capacity_left()).unwrap_or(data);
        if taken.is_empty() {
            return 0;
        }
        if let Some(tag) = tag.filter(|_| !self.is_in_message) {
            self.tags.push_back((self.end(), tag));
        }
        self.buffer.push(taken);
        let is_whole = taken.len() == data.len();
        self.is_in_message = !(is_end && is_whole);
        if is_end && is_whole {
            self.ends.push_back(self.end());
        }
        taken.len()
    }

    /// What does not fill a packet, and ends no message, waits for more from now on.
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// What there is waits for nothing, also when more is announced before it leaves.
    pub fn let_go(&mut self) {
        self.is_held = false;
        self.let_go = self.end();
    }

    /// The user gives no more.
    pub fn finish(&mut self) {
        self.is_finished = true;
        self.is_held = false;
    }

    /// What was not sent is not sent any more, and nothing again.
    pub fn stop(&mut self) {
        self.is_finished = true;
        self.is_held = false;
        self.una = self.next;
        self.buffer = Ring::default();
        self.ends.clear();
        self.tags.clear();
        self.resend.clear();
        self.resent.clear();
    }

    /// The window as the peer has stated it.
    const fn stated(&self) -> u64 {
        if self.is_window_stated { self.window } else { 0 }
    }

    fn limit(&self) -> u64 {
        if self.is_unbounded { u64::MAX } else { self.window }
    }

    /// Whether the peer has said that it takes what lies before `right`, or is assumed to. With
    /// NOFLOW more is sent, and a reader who is slow refuses that.
    #[must_use]
    pub fn is_within_window(&self, right: u64) -> bool {
        right <= self.window
    }

    /// What goes again heeds the window in any case: what has no room there is lost each time.
    fn limit_again(&self) -> u64 {
        if self.is_unbounded && !self.is_window_stated { u64::MAX } else { self.window }
    }

    /// The window has been closed for a while to what lacks: with NOFLOW a packet of it may go all
    /// the same, because a peer that heeds no window need not say one that is true.
    pub fn allow_probe(&mut self) {
        self.may_probe = self.is_unbounded;
    }

    /// What may go next, at most `len_max` bytes with its tag; what lacks before what is new.
    #[must_use]
    pub fn peek(&self, len_max: usize) -> Option<Piece> {
        let limit = if self.may_probe { u64::MAX } else { self.limit_again() };
        if let Some(range) = self.resend.first().filter(|range| range.start < limit) {
            let span = Span { left: range.start, right: range.end.min(limit) };
            return Some(self.cut(span, (len_max, TAG_LEN), true));
        }
        let right = self.end().min(self.limit());
        let is_new = self.next < right;
        let piece =
            is_new.then(|| self.cut(Span { left: self.next, right }, (len_max, TAG_LEN), false))?;
        (!self.waits_for_more(&piece, len_max)).then_some(piece)
    }

    /// A packet that would be full with what is announced. One that is cut short by the window is
    /// not: what it waits for is not more.
    fn waits_for_more(&self, piece: &Piece, len_max: usize) -> bool {
        let is_rest = piece.end() == self.end();
        let len_max = len_max.saturating_sub(piece.tag.map_or(0, |_| TAG_LEN));
        let is_held = self.is_held && piece.seq >= self.let_go;
        is_held && is_rest && !piece.is_end && piece.len < len_max
    }

    /// The front of the stream again, as it was in the packet that opened the association.
    #[must_use]
    pub fn peek_first(&self, len: usize) -> Piece {
        let right = self.una.saturating_add(len as u64).min(self.end());
        self.cut(Span { left: self.una, right }, (len, 0), self.next > self.una)
    }

    /// The front of a stretch, at most `len_max` bytes, of which a tag takes so many.
    fn cut(&self, span: Span, (len_max, tag_len): (usize, usize), is_again: bool) -> Piece {
        let place = self.tags.partition_point(|(at, _)| *at < span.left);
        let tag = self.tags.get(place).filter(|(at, _)| *at == span.left).map(|(_, tag)| *tag);
        let len_max = len_max.saturating_sub(tag.map_or(0, |_| tag_len)) as u64;
        let mut right = span.right.min(span.left.saturating_add(len_max));
        let first = self.ends.partition_point(|end| *end <= span.left);
        let message_end = self.ends.get(first).copied();
        right = message_end.map_or(right, |end| right.min(end));
        Piece {
            seq: span.left,
            len: right.saturating_sub(span.left) as usize,
            is_end: message_end == Some(right),
            tag,
            is_again,
        }
    }

    /// Appends the bytes of a piece.
    pub fn copy(&self, piece: &Piece, into: &mut Vec<u8>) {
        let from = piece.seq.saturating_sub(self.una) as usize;
        self.buffer.copy(from..from.saturating_add(piece.len), into);
    }

    /// A piece has been sent; `sync` is the number of the next request after it, or with it.
    pub fn sent(&mut self, piece: &Piece, sync: u32) {
        let span = Span { left: piece.seq, right: piece.end() };
        if piece.is_again {
            self.may_probe = false;
            self.resend.remove(span.range(), |_| ());
            self.resent.push(span, sync);
        }
        self.next = self.next.max(span.right);
        if piece.is_end {
            self.sent_end = self.sent_end.max(span.right);
        }
        if self.is_lossy && self.is_confirmed {
            self.acknowledge(self.next);
        }
    }

    /// Whether nothing more can go after this piece.
    #[must_use]
    pub fn is_last(&self, piece: &Piece) -> bool {
        let (right, limit) = (piece.end(), self.limit_again());
        // A piece that goes again is of the first stretch, so a second one is beyond it.
        let mut lacking = self.resend.iter().take(2).filter(|range| range.start < limit);
        let is_last_again = lacking.all(|range| piece.is_again && range.end.min(limit) <= right);
        let next = self.next.max(right);
        is_last_again && (next == self.end() || next >= self.limit())
    }

    /// Takes status. False when it says what cannot be: such is ignored.
    pub fn handle_report(&mut self, report: &Report<'_>) -> bool {
        let Control { rseq, alloc, echo } = report.control;
        if rseq > self.next {
            return false;
        }
        if alloc >= rseq {
            // What it stated before stays; what was assumed does not.
            (self.window, self.is_window_stated) = (self.stated().max(alloc), true);
        }
        self.acknowledge(rseq);
        self.forget_resent(echo);
        let is_sound = self.is_sound(report);
        if is_sound && report.may_resend && !self.is_lossy {
            self.note_gaps(report, rseq.max(self.una), echo);
            self.forget_arrived(report);
        }
        is_sound
    }

    /// Takes status of one of several who all get the stream: what it lacks goes to all. False when
    /// it says what cannot be.
    pub fn handle_member_report(&mut self, report: &Report<'_>) -> bool {
        let Control { rseq, echo, .. } = report.control;
        let is_sound = rseq <= self.next && self.is_sound(report);
        if is_sound && report.may_resend {
            self.note_gaps(report, rseq.max(self.una), echo);
        }
        is_sound
    }

    /// What all who get the stream have said at least. The window may become narrower: a further
    /// one may have less room.
    pub fn settle(&mut self, floor: &Control) {
        (self.window, self.is_window_stated) = (floor.alloc, true);
        self.acknowledge(floor.rseq.min(self.next));
        self.forget_resent(floor.echo);
    }

    fn forget_resent(&mut self, echo: u32) {
        while self.resent.pop_answered(echo).is_some() {}
    }

    fn is_sound(&self, report: &Report<'_>) -> bool {
        let rseq = report.control.rseq;
        report.spans.is_none_or(|spans| {
            let is_within = spans.iter().all(|span| rseq <= span.left && span.right <= self.next);
            spans.is_ordered() && is_within
        })
    }

    /// Puts what lacks into `resend`.
    fn note_gaps(&mut self, report: &Report<'_>, rseq: u64, echo: u32) {
        let mut gaps = Ranges::default();
        let spans = report.spans.unwrap_or(Spans::List(&[]));
        let last = spans.iter().last().map(|span| span.right);
        if report.names_gaps() {
            spans.iter().for_each(|span| gaps.insert(span.range()));
        } else {
            // An ECNTL without spans says that something lacks, not how much: all from there on.
            let says_gap = report.spans.is_some() && last.is_none();
            let right = match report.asked_up_to {
                None if says_gap => Some(self.next),
                asked => asked.max(last),
            };
            let Some(right) = right else { return };
            gaps.insert(rseq..right);
            spans.iter().for_each(|span| gaps.remove(span.range(), |_| ()));
        }
        // Of what went again after that request it says nothing.
        self.resent.after(echo).for_each(|again| gaps.remove(again.range(), |_| ()));
        gaps.remove(0..rseq, |_| ());
        gaps.iter().for_each(|gap| self.resend.insert(gap.clone()));
    }

    /// What has arrived need not go again, where nobody else lacks it.
    fn forget_arrived(&mut self, report: &Report<'_>) {
        if !report.names_gaps() {
            let spans = report.spans.unwrap_or(Spans::List(&[]));
            spans.iter().for_each(|span| self.resend.remove(span.range(), |_| ()));
        }
    }

    fn acknowledge(&mut self, rseq: u64) {
        if rseq <= self.una {
            return;
        }
        let len = rseq.saturating_sub(self.una) as usize;
        self.buffer.drop_front(len);
        self.una = rseq;
        while self.ends.front().is_some_and(|end| *end <= rseq) {
            self.ends.pop_front();
        }
        while self.tags.front().is_some_and(|(at, _)| *at < rseq) {
            self.tags.pop_front();
        }
        self.resend.remove(0..rseq, |_| ());
    }
}
