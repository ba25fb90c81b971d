//! What goes through an association: bytes of a stream, or messages of the unreliable mode.
//!
//! ```text
//!   reliable    write --> engine --> read                       bytes of records
//!   unreliable  put, say --> engine --> take_messages --> Messages: datagrams, bytes of the stream
//! ```
//!
//! Invariant: of what has come, every message is handed up, or dropped and counted.

use super::{Links, SAY_AGAIN};
use crate::mode::Mode;
use crate::xtp::link::{Link, Lost};
use crate::xtp::messages::{Came, Kind};
use crate::xtp::options;
use dacapo_base::Time;
use dacapo_xtp::wire::Limits;
use dacapo_xtp::{Engine, Message, Read, UserError};
use std::io::{self, IoSlice, IoSliceMut};

impl Links {
    /// Takes the messages that have come out of the engine, as far as there is room for them.
    pub(in crate::xtp) fn take_messages(&mut self, number: usize) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let Some(context) = link.context else { return };
        let mut says_again = false;
        while link.messages.has_capacity() {
            match self.engine.read(self.clock.now(), context, &mut self.scratch) {
                Ok(Read::Data { len, is_end, tag }) => {
                    let bytes = self.scratch.get(..len).unwrap_or_default();
                    says_again |= link.messages.handle(tag, bytes, is_end) == Came::PrefaceAgain;
                }
                Ok(Read::Hole { .. }) => link.messages.handle_hole(),
                Ok(Read::Finished) => {
                    link.is_finished = true;
                    break;
                }
                Ok(Read::Nothing) | Err(_) => break,
            }
        }
        link.messages.take_drops(&mut self.drops);
        if !link.messages.is_empty() {
            self.arrivals.insert(number);
        }
        let said = link.said.clone();
        if says_again && !said.is_empty() {
            self.put(number, Kind::Stream, &said);
        }
    }

    pub(in crate::xtp) fn read(
        &mut self,
        number: usize,
        parts: &mut [IoSliceMut<'_>],
    ) -> io::Result<usize> {
        if self.mode == Mode::Datagrams {
            self.take_messages(number);
        }
        let Some(link) = self.links.get_mut(&number) else { return Ok(0) };
        let mut count = 0;
        for part in parts.iter_mut().filter(|part| !part.is_empty()) {
            let len = match self.mode {
                Mode::Datagrams => link.messages.read_stream(part),
                Mode::Streams => fill(&mut self.engine, self.clock.now(), link, part),
            };
            count += len;
            if len < part.len() {
                break;
            }
        }
        if count > 0 { Ok(count) } else { link.end() }
    }

    pub(in crate::xtp) fn write(
        &mut self,
        number: usize,
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let Some(link) = self.links.get_mut(&number) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        if let Some(lost) = &link.lost {
            lost.end()?;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let Some(context) = link.context else { return Err(io::ErrorKind::WouldBlock.into()) };
        if self.mode == Mode::Datagrams {
            let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            return self.say(number, &parts.concat());
        }
        let mut count = 0;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let taken = match self.engine.write(self.clock.now(), context, &Message::part(part)) {
                Ok(taken) => taken,
                Err(_) if count > 0 => break,
                Err(_) => return Err(io::ErrorKind::BrokenPipe.into()),
            };
            count += taken;
            if taken < part.len() {
                break;
            }
        }
        if count > 0 { Ok(count) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// Datagrams of so many bytes will be written as records: where they are shorter than any
    /// before, the lengths of records weigh more, and the limits of XTP become as much wider.
    pub(in crate::xtp) fn expect_records(&mut self, number: usize, len: usize) {
        // An empty one is a length alone, for which there is no more room than beside a byte.
        let len = len.max(1);
        let Some(link) = self.links.get_mut(&number).filter(|link| len < link.shortest) else {
            return;
        };
        // By halves, so that it is seldom.
        link.shortest = 1 << len.ilog2();
        let limits = options::limits(link.bound_bps, self.mode, self.packet_len, link.shortest);
        if let Some(context) = link.context.filter(|_| link.bound_bps > 0) {
            // A limit that follows another waits for the end of its period; one that follows none
            // holds at once. The association may be over already.
            let free = Limits::default();
            let _ = self.engine.set_limits(self.clock.now(), context, free);
            let _ = self.engine.set_limits(self.clock.now(), context, limits);
        }
    }

    /// Writes bytes of the stream in the unreliable mode.
    fn say(&mut self, number: usize, bytes: &[u8]) -> io::Result<usize> {
        if !self.put(number, Kind::Stream, bytes) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let now = self.clock.now();
        if let Some(link) = self.links.get_mut(&number)
            && link.said.is_empty()
        {
            link.said = bytes.to_vec();
            link.say_again_at = link.is_dialer.then(|| now + SAY_AGAIN);
        }
        self.set_timer(number);
        Ok(bytes.len())
    }

    /// Gives the engine a message; false when it takes nothing now.
    pub(in crate::xtp) fn put(&mut self, number: usize, kind: Kind, bytes: &[u8]) -> bool {
        self.flush_rest(number);
        let Some(link) = self.links.get_mut(&number).filter(|link| link.rest.is_empty()) else {
            return false;
        };
        let Some(context) = link.context else { return false };
        let data = if bytes.is_empty() { &[0] } else { bytes };
        let message = Message { tag: Some(kind.tag()), ..Message::whole(data) };
        let taken = self.engine.write(self.clock.now(), context, &message).unwrap_or(0);
        if taken > 0 {
            link.rest = data.get(taken..).unwrap_or_default().to_vec();
        }
        taken > 0
    }

    /// Gives the engine the rest of a message; true when none is left.
    pub(in crate::xtp) fn flush_rest(&mut self, number: usize) -> bool {
        let Some(link) = self.links.get_mut(&number) else { return true };
        let Some(context) = link.context else { return link.rest.is_empty() };
        if !link.rest.is_empty() {
            let taken = self.engine.write(self.clock.now(), context, &Message::whole(&link.rest));
            match taken {
                Ok(taken) => drop(link.rest.drain(..taken)),
                // Nobody gets it any more.
                Err(UserError::Closed | UserError::Released | UserError::TooLong { .. })
                | Err(UserError::Empty) => link.rest.clear(),
            }
        }
        if link.rest.is_empty() && std::mem::take(&mut link.is_ending) {
            // It may be over already.
            let _ = self.engine.finish(self.clock.now(), context);
        }
        link.rest.is_empty()
    }

    pub(in crate::xtp) fn end_writing(&mut self, number: usize) {
        if let Some(link) = self.links.get_mut(&number) {
            link.is_ending = true;
        }
        self.flush_rest(number);
    }

    /// Takes what has come and nobody will read.
    pub(super) fn drop_unread(&mut self, link: &mut Link) {
        self.drops.closed += link.messages.clear();
        let Some(context) = link.context.filter(|_| self.mode == Mode::Datagrams) else {
            return;
        };
        loop {
            match self.engine.read(self.clock.now(), context, &mut self.scratch) {
                Ok(Read::Data { len, is_end, tag }) => {
                    let bytes = self.scratch.get(..len).unwrap_or_default();
                    link.messages.handle(tag, bytes, is_end);
                    self.drops.closed += link.messages.clear();
                }
                Ok(Read::Hole { .. }) => link.messages.handle_hole(),
                Ok(Read::Nothing | Read::Finished) | Err(_) => break,
            }
        }
        // The end of what has begun to come does not come any more.
        link.messages.handle_hole();
        link.messages.take_drops(&mut self.drops);
    }
}

/// Reads the stream of an association.
fn fill(engine: &mut Engine, now: Time, link: &mut Link, part: &mut [u8]) -> usize {
    let Some(context) = link.context else { return 0 };
    let mut count = 0;
    while let Some(rest) = part.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match engine.read(now, context, rest) {
            Ok(Read::Data { len, .. }) => count += len,
            Ok(Read::Finished) => {
                link.is_finished = true;
                break;
            }
            Ok(Read::Hole { .. }) => {
                let text = "the remote sends nothing again that is lost, as was not agreed";
                link.lost.get_or_insert(Lost::Protocol(text.to_owned()));
                break;
            }
            Ok(Read::Nothing) | Err(_) => break,
        }
    }
    count
}
