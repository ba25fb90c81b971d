//! [`Source`] and [`Sink`]: the access part's ends, which A-modules implement.
//!
//! Where units enter and leave a flow: an application, a file, a device. Both survive a change of
//! the flow's protocol.
//!
//! ```text
//!   Source --poll_unit--> splice -> graph … graph -> intake --handle_unit--> Sink
//! ```
//!
//! Invariants: neither blocks for long (a disk read is allowed, a network is not); neither reads a
//! clock.

use crate::flow::chain::Chain;
use crate::flow::unit_buffer::UnitBuffer;
use crate::ledger::Ledger;
use dacapo_base::Time;
use dacapo_lift::DropReason;
use dacapo_packet::{Layout, Loan, Packet, Pool, skip_bytes};
use dacapo_path::ClockOffset;
use dacapo_wire::unit;

/// What a source answers when it is asked for a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePoll {
    /// It has written a unit.
    Unit,
    /// It has none before this time.
    Wait(Time),
    /// It has none, and cannot say when: it is asked again after a command, or when
    /// [`crate::Core::wake`] says that the application has handed one over.
    Idle,
    /// It has begun a unit and there was no room; ask again.
    Blocked,
    /// It will never have another one.
    End,
    /// It failed; the flow ends with this reason.
    Failed(String),
}

/// A request to an access module that cannot be met: the reason, for the peer and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError(pub String);

/// Where the units of a flow come from.
pub trait Source: Send {
    /// The flow begins to run: START_TRANSMISSION of 1998.
    fn start(&mut self, _now: Time) {}

    /// The flow pauses; it may start again.
    fn stop(&mut self, _now: Time) {}

    /// Whether it chooses what goes next, and so chooses as late as it can: then it is not asked
    /// while more waits of what it gave than the pace lets out in a moment. Others are asked while
    /// there is room, so that many small units leave together.
    fn chooses_late(&self) -> bool {
        false
    }

    /// Writes the next unit if it is due.
    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll;

    /// A command out of band from the peer's application.
    ///
    /// # Errors
    /// Why it is not followed.
    fn command(&mut self, _now: Time, _payload: &[u8]) -> Result<Vec<u8>, CommandError> {
        Err(CommandError("this source takes no commands".into()))
    }
}

/// What a sink did with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It took it in time.
    Delivered,
    /// It came too late to be of use.
    Late,
    /// It is not wanted, for this reason.
    Dropped(DropReason),
}

/// How a flow ended, for its sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The sender said how many units there were, and all are accounted for.
    Complete,
    /// The session was closed before.
    Closed,
    /// The sender accounted for everything, but its source failed before its end: the reason.
    SourceFailed(String),
    /// Contact was lost or something failed: the reason.
    Abnormal(String),
}

/// Where the units of a flow go.
pub trait Sink: Send {
    /// How the peer's clock relates to ours, whenever that changes.
    fn handle_clock(&mut self, _offset: ClockOffset) {}

    /// A unit has come.
    fn handle_unit(&mut self, now: Time, unit: &UnitView<'_>) -> Taken;

    /// Whether it would rather have long units where they lie, for as long as it likes, than copy
    /// them. One that cannot be lent is still given by [`Sink::handle_unit`].
    fn takes_loans(&self) -> bool {
        false
    }

    /// A unit has come that it keeps where it lies.
    fn handle_loan(&mut self, _now: Time, _unit: Loan) -> Taken {
        Taken::Dropped(DropReason::Refused)
    }

    /// Whether there is room for more. A sink without room holds a flow on a stream up until
    /// `Core::wake` is called for the flow; what is on its way already still comes. So it
    /// is with flows over datagrams that a module keeps whole, of which a little waits in the core;
    /// others are not held up: what their sink does not take is dropped.
    fn has_capacity(&self) -> bool {
        true
    }

    /// These units will not come.
    fn handle_lost(&mut self, _now: Time, _first: u64, _count: u64) {}

    /// Time has passed; returns when to be called again.
    fn handle_timeout(&mut self, _now: Time) -> Option<Time> {
        None
    }

    /// Why it does not keep what came, once it does not: it is asked when the flow has ended, and
    /// the application ends the session with that reason.
    fn failure(&self) -> Option<String> {
        None
    }

    /// The flow ended; nothing follows.
    fn finish(&mut self, _now: Time, _ending: &Ending, _ledger: &Ledger) {}
}

/// An access module of either kind.
pub enum Port {
    /// It sends.
    Source(Box<dyn Source>),
    /// It receives.
    Sink(Box<dyn Sink>),
}

/// A unit cannot be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginError {
    /// No memory now: answer [`SourcePoll::Blocked`].
    NoMemory,
    /// It is larger than the flow allows.
    TooLarge,
}

/// Writes a unit straight into the layout in which it is sent: the one copy on the way out.
pub struct UnitWriter<'a> {
    pool: &'a mut Pool,
    slab: &'a mut UnitBuffer,
    layout: Layout,
    unit_len_max: usize,
    chain: Vec<Packet>,
    written: usize,
    len: Option<usize>,
}

impl<'a> UnitWriter<'a> {
    pub(crate) fn new(
        pool: &'a mut Pool,
        slab: &'a mut UnitBuffer,
        layout: Layout,
        unit_len_max: usize,
        chain: Vec<Packet>,
    ) -> Self {
        Self { pool, slab, layout, unit_len_max, chain, written: 0, len: None }
    }

    /// Makes room for a unit of `len` bytes; call it once, then write exactly that much.
    ///
    /// # Errors
    /// [`BeginError`]; nothing was begun.
    pub fn begin(&mut self, len: usize) -> Result<(), BeginError> {
        let total = len.checked_add(unit::LEN).ok_or(BeginError::TooLarge)?;
        if len > self.unit_len_max || (!self.layout.segmented && total > self.layout.segment) {
            return Err(BeginError::TooLarge);
        }
        if self.pool.is_scarce(total) {
            return Err(BeginError::NoMemory);
        }
        let mut left = total;
        while left > 0 {
            let now = left.min(self.layout.payload_per_train());
            let Ok(packet) = self.slab.alloc(self.pool, &self.layout, now) else {
                self.abandon();
                return Err(BeginError::NoMemory);
            };
            self.chain.push(packet);
            left -= now;
        }
        self.len = Some(len);
        self.written = unit::LEN;
        Ok(())
    }

    /// Writes the next bytes of the unit; what exceeds its length is left out.
    pub fn write(&mut self, mut bytes: &[u8]) {
        let per_train = self.layout.payload_per_train();
        while !bytes.is_empty() {
            let (index, at) = (self.written / per_train, self.written % per_train);
            let Some(packet) = self.chain.get(index) else { return };
            let taken = self.pool.write_payload(packet, at, bytes);
            if taken == 0 {
                return;
            }
            self.written += taken;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    fn abandon(&mut self) {
        self.chain.drain(..).for_each(|packet| self.pool.free(packet));
        self.len = None;
    }

    /// The unit as it lies, or an empty chain when none was begun or it was not written to its end.
    pub(crate) fn finish(mut self) -> (Vec<Packet>, Option<usize>) {
        let whole = self.len.is_some_and(|len| self.written == len + unit::LEN);
        if !whole {
            self.abandon();
        }
        (self.chain, self.len)
    }
}

/// A unit that has come: a chain of views.
pub struct UnitView<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) chain: &'a Chain,
    /// Its number in the flow, from 0.
    pub number: u64,
    /// When its last packet arrived.
    pub arrived: Time,
}

impl<'a> UnitView<'a> {
    /// The bytes in order, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let pool = self.pool;
        let all = self.chain.iter().flat_map(move |packet| {
            (0..packet.segment_count()).map(move |index| pool.segment(packet, index))
        });
        skip_bytes(all, unit::LEN)
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chain.unit_len()
    }

    /// True for a unit without bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes where they lie in one piece, as those of a short unit do.
    fn only_piece(&self) -> Option<&'a [u8]> {
        let packet = self.chain.only().filter(|packet| !packet.is_train())?;
        self.pool.segment(packet, 0).get(unit::LEN..)
    }

    /// Appends the bytes to `into`.
    pub fn copy_to(&self, into: &mut Vec<u8>) {
        if let Some(bytes) = self.only_piece() {
            return into.extend_from_slice(bytes);
        }
        into.reserve(self.len());
        self.pieces().for_each(|piece| into.extend_from_slice(piece));
    }
}
