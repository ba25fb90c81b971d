//! What calls do with the queue of a flow: put a unit in, take one out.
//!
//! What it is not: waiting, when the queue is full or empty (`handle`), or the queue itself
//! (`crate::access::raw`).
//!
//! Invariant: a unit that does not fit is given back, and nothing else has changed.

use super::entry::Entry;
use super::flow::End;
use super::handle::Received;
use super::misuse;
use crate::access::raw::RawSendError;
use dacapo_core::{Code, Error};

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
    let sent = match &flow.end {
        End::Sender(_) if entry.is_over() => Err(RawSendError::Closed(unit)),
        End::Sender(sender) => sender.send(unit),
        _ => {
            let text = format!("the flow \"{}\" is finished; nothing follows", flow.info.name);
            return Err(misuse(text));
        }
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

/// Takes a unit out of the queue of a flow, or says that it has ended.
///
/// # Errors
/// Why it ended, when not as usual.
pub(super) fn take(entry: &Entry, index: usize) -> Result<Received, Error> {
    let Some(flow) = entry.flows.get(index) else { return Err(misuse("no such flow")) };
    let End::Receiver(receiver) = &flow.end else { return Err(misuse("no such flow")) };
    if let Some(unit) = receiver.try_recv() {
        return Ok(Received::Unit(unit));
    }
    if !receiver.is_finished() && !entry.is_over() {
        return Ok(Received::Nothing);
    }
    match entry.end_of(flow, receiver.ending().as_ref()) {
        Some(error) => Err(error),
        None => Ok(Received::End),
    }
}
