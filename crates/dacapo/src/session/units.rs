//! What calls do with the queue of a flow: put a unit or message in, take one out; [`UnitView`]: a
//! unit that was taken out.
//!
//! Invariant: what does not fit is given back, and nothing else has changed.

use super::ends::{Received, too_short};
use super::entry::Entry;
use super::flow::{End, Flow, UnitMemory};
use super::messages::{Got, SendOutcome};
use crate::access::raw::{RawSendError, RawUnit, SendMessageError};
use crate::misuse::misuse;
use dacapo_core::{Code, Error};
use std::cell::OnceCell;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;

/// A unit that was taken out of its queue, and is not given to the application yet.
pub(super) struct TakenUnit(RawUnit);

impl TakenUnit {
    /// Lent.
    pub fn view(self, memory: &UnitMemory) -> UnitView<'static> {
        UnitView::lent(self.0, memory.clone())
    }

    /// In one piece, to keep.
    pub fn into_bytes(self, memory: &UnitMemory) -> Vec<u8> {
        self.0.into_bytes(|| memory.spare())
    }

    /// Copied to the beginning of `into`, as much as there is room for; how long it is.
    pub fn copy_to(self, into: &mut [u8], memory: &UnitMemory) -> usize {
        self.0.copy_to(into);
        let len = self.0.len();
        if let RawUnit::Bytes(bytes) = self.0 {
            memory.give_back(bytes);
        }
        len
    }
}

/// A unit that was received, lent for as long as it is looked at. It is its bytes.
///
/// A long one lies where it came in, in pieces: [`UnitView::pieces`] copies nothing. As one slice
/// it is put together when it is first asked for, unless it is one piece.
#[derive(Debug)]
pub struct UnitView<'a> {
    unit: RawUnit,
    whole: OnceCell<Vec<u8>>,
    memory: UnitMemory,
    is_lent: PhantomData<&'a ()>,
}

impl UnitView<'_> {
    /// A unit whose memory goes back there.
    pub(super) fn lent(unit: RawUnit, memory: UnitMemory) -> Self {
        Self { unit, whole: OnceCell::new(), memory, is_lent: PhantomData }
    }

    /// Its bytes in order, piece by piece, where they lie.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.unit.pieces()
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.unit.len()
    }

    /// True when it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unit.is_empty()
    }
}

impl Deref for UnitView<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.unit
            .only_piece()
            .unwrap_or_else(|| self.whole.get_or_init(|| self.unit.copy(self.memory.spare())))
    }
}

impl Drop for UnitView<'_> {
    fn drop(&mut self) {
        let unit = match &mut self.unit {
            RawUnit::Bytes(bytes) => Some(mem::take(bytes)),
            RawUnit::Loan(_) => self.whole.take(),
        };
        let unit = unit.filter(|unit| unit.capacity() > 0);
        unit.into_iter().for_each(|unit| self.memory.give_back(unit));
    }
}

/// Whether a flow takes units of this length.
///
/// # Errors
/// [`Code::UnitTooLarge`] with what it takes.
pub(super) fn check_len(entry: &Entry, index: usize, len: usize) -> Result<(), Error> {
    let Some(info) = entry.flows.get(index).map(|flow| &flow.info) else { return Ok(()) };
    if len <= info.unit_len_max {
        return Ok(());
    }
    let (name, most) = (&info.name, info.unit_len_max);
    let text = format!("{len} bytes; the flow \"{name}\" takes at most {most} in a unit");
    Err(Error::new(Code::UnitTooLarge, text))
}

/// Memory for a unit of a flow; empty.
pub(super) fn spare(entry: &Entry, index: usize) -> Vec<u8> {
    match entry.flows.get(index).map(|flow| &flow.end) {
        Some(End::Sender(sender)) => sender.spare(),
        _ => Vec::new(),
    }
}

/// Puts a unit into the queue of a flow; gives it back when that is full.
///
/// # Errors
/// Why the flow takes no more.
pub(super) fn put(
    entry: &mut Entry,
    index: usize,
    unit: Vec<u8>,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(flow) = entry.flows.get(index) else { return Err(misuse("no such flow")) };
    let is_over = entry.is_over() || flow.failure.is_some();
    let sent = match &flow.end {
        End::Sender(_) if is_over => Err(RawSendError::Closed(unit)),
        End::Sender(sender) if sender.carries_messages() => return Err(carries_messages(flow)),
        End::Sender(sender) => sender.send(unit),
        _ => return Err(finished(flow)),
    };
    match sent {
        Err(RawSendError::Full(unit)) => return Ok(Some(unit)),
        Err(RawSendError::Closed(_)) => return Err(entry.why_not_sent(flow)),
        Ok(()) => {}
    }
    if let Some(flow) = entry.flows.get_mut(index) {
        flow.handed += 1;
    }
    Ok(None)
}

/// Puts a message into the queue of a flow; gives it back when that is full.
///
/// # Errors
/// Why the flow takes no more.
pub(super) fn put_message(
    entry: &mut Entry,
    index: usize,
    priority: u16,
    message: Vec<u8>,
) -> Result<SendOutcome, Error> {
    let Some(flow) = entry.flows.get(index) else { return Err(misuse("no such flow")) };
    let is_over = entry.is_over() || flow.failure.is_some();
    let sent = match &flow.end {
        End::Sender(_) if is_over => return Err(entry.why_not_sent(flow)),
        End::Sender(sender) => sender.send_message(priority, message),
        _ => return Err(finished(flow)),
    };
    let (ticket, units) = match sent {
        Ok(accepted) => accepted,
        Err(SendMessageError::Full(message)) => return Ok(SendOutcome::Full(message)),
        Err(SendMessageError::Closed(_)) => return Err(entry.why_not_sent(flow)),
    };
    if let Some(flow) = entry.flows.get_mut(index) {
        flow.handed += units;
    }
    Ok(SendOutcome::Accepted(ticket))
}

fn finished(flow: &Flow) -> Error {
    misuse(format!("the flow \"{}\" is finished; nothing follows", flow.info.name))
}

fn carries_messages(flow: &Flow) -> Error {
    let text = "carries messages; use its MessageSender or MessageReceiver";
    misuse(format!("the flow \"{}\" {text}", flow.info.name))
}

/// Takes a unit of at most so many bytes out of the queue of a flow, or says that it has ended.
///
/// # Errors
/// Why it ended, when not as usual; [`Code::BufferTooShort`], and the unit stays.
pub(super) fn take(
    entry: &Entry,
    index: usize,
    len_max: usize,
) -> Result<Received<TakenUnit>, Error> {
    let Some(flow) = entry.flows.get(index) else { return Err(misuse("no such flow")) };
    let End::Receiver(receiver) = &flow.end else { return Err(misuse("no such flow")) };
    if flow.inbox.is_some() {
        return Err(carries_messages(flow));
    }
    match receiver.try_take_up_to(len_max) {
        Ok(Some(unit)) => return Ok(Received::Unit(TakenUnit(unit))),
        Ok(None) => {}
        Err(len) => return Err(too_short(len, len_max)),
    }
    match end(entry, flow)? {
        true => Ok(Received::End),
        false => Ok(Received::Nothing),
    }
}

/// Whether a flow that this end receives has ended, when nothing of it waits.
///
/// # Errors
/// Why it ended, when not as usual.
fn end(entry: &Entry, flow: &Flow) -> Result<bool, Error> {
    let End::Receiver(receiver) = &flow.end else { return Err(misuse("no such flow")) };
    if !receiver.is_finished() && !entry.is_over() {
        return Ok(false);
    }
    entry.end_of(flow, receiver.ending().as_ref()).map_or(Ok(true), Err)
}

/// Takes a part of a message out of a flow, or says that it has ended; and whether units were taken
/// out of its queue.
///
/// # Errors
/// Why it ended, when not as usual.
pub(super) fn take_part(entry: &mut Entry, index: usize) -> Result<(Got, bool), Error> {
    let is_over = entry.is_over();
    let Some(flow) = entry.flows.get_mut(index) else { return Err(misuse("no such flow")) };
    let Flow { end: End::Receiver(receiver), inbox: Some(inbox), .. } = flow else {
        return Err(misuse("no such flow"));
    };
    let mut has_taken_units = false;
    while inbox.has_capacity() {
        let Some(unit) = receiver.try_recv() else { break };
        inbox.handle_unit(&unit);
        receiver.give_back(unit);
        has_taken_units = true;
    }
    if !inbox.has_part() && (receiver.is_finished() || is_over) {
        inbox.finish();
    }
    if let Some(part) = inbox.get_message() {
        return Ok((Got::Part(part), has_taken_units));
    }
    let Some(flow) = entry.flows.get(index) else { return Err(misuse("no such flow")) };
    let got = if end(entry, flow)? { Got::End } else { Got::Nothing };
    Ok((got, has_taken_units))
}
