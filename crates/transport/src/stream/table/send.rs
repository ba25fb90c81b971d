//! Sending: into the stream to the remote, as records; what it does not take stays with the core.

use super::{Connection, Phase, Slot, Streams};
use crate::stream::{Ending, RECORD_LEN_MAX, StreamEnd, Taken};
use crate::{Outgoing, SendError, Sent};
use dacapo_base::Address;
use std::io;

impl<C: Connection> Streams<C> {
    /// As [`crate::Transport::send`].
    pub(crate) fn send(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        if outgoing.datagram_len() > RECORD_LEN_MAX {
            self.stats.too_large += 1;
            return Err(SendError::TooLarge { mtu: Some(RECORD_LEN_MAX) });
        }
        let segment_len = outgoing.datagram_len();
        let taken =
            self.write_to(outgoing.remote, outgoing.datagram_count(), |end, connection| {
                end.write(outgoing.bytes, segment_len, connection)
            })?;
        Ok(match taken.datagrams == outgoing.datagram_count() {
            true => Sent::All,
            false => Sent::Blocked { bytes_taken: taken.bytes },
        })
    }

    /// As [`crate::StreamTransport::send_split`].
    pub(crate) fn send_split(
        &mut self,
        remote: Address,
        head: &[u8],
        body: &[u8],
    ) -> Result<Sent, SendError> {
        if head.len().saturating_add(body.len()) > RECORD_LEN_MAX {
            self.stats.too_large += 1;
            return Err(SendError::TooLarge { mtu: Some(RECORD_LEN_MAX) });
        }
        let taken =
            self.write_to(remote, 1, |end, connection| end.write_split(head, body, connection))?;
        Ok(if taken.datagrams == 1 { Sent::All } else { Sent::Blocked { bytes_taken: 0 } })
    }

    /// Writes `count` datagrams to the stream to `remote`.
    fn write_to(
        &mut self,
        remote: Address,
        count: usize,
        write: impl FnOnce(&mut StreamEnd, &mut C) -> io::Result<Taken>,
    ) -> Result<Taken, SendError> {
        let index = self.by_remote.get(&remote).copied();
        let slot = index.and_then(|index| self.slots.get_mut(index)?.as_mut());
        let (Some(index), Some(slot)) = (index, slot.filter(|slot| slot.failure.is_none())) else {
            self.stats.errors += 1;
            return Err(SendError::Closed);
        };
        let had_backlog = slot.end.has_backlog();
        match write(&mut slot.end, &mut slot.connection) {
            Ok(taken) => {
                let is_all = taken.datagrams == count;
                slot.is_blocked |= !is_all;
                if !is_all || had_backlog != slot.end.has_backlog() {
                    self.changed.push(index);
                }
                self.count_taken(&taken, is_all);
                Ok(taken)
            }
            Err(error) => {
                self.fail(index, Ending::of(error));
                self.stats.errors += 1;
                Err(SendError::Closed)
            }
        }
    }

    fn count_taken(&mut self, taken: &Taken, is_all: bool) {
        self.stats.would_blocks += u64::from(!is_all);
        if taken.datagrams > 0 {
            self.stats.count_sent(taken.datagrams, taken.bytes, taken.calls);
        }
    }

    /// Writes what waits in a stream that has room; true when somebody who was blocked may send.
    pub(crate) fn handle_writable(&mut self, index: usize) -> bool {
        let Some(slot) = self.slot(index) else {
            return false;
        };
        let flushed = slot.end.flush(&mut slot.connection);
        let is_free = flushed.is_ok() && slot.may_send_again();
        if is_free {
            slot.is_blocked = false;
        }
        self.changed.push(index);
        if let Err(error) = flushed {
            self.fail(index, Ending::of(error));
        }
        is_free
    }

    /// Notes that writing failed. What came before is still read, and then the stream ends.
    pub(super) fn fail(&mut self, index: usize, ending: Ending) {
        let Some(slot) = self.slot(index) else { return };
        slot.failure.get_or_insert(ending);
        self.changed.push(index);
        self.enqueue(index);
    }
}

impl<C: Connection> Slot<C> {
    /// After a flush: ends the writing of a stream that is being closed, and tells whether
    /// somebody who was blocked has room.
    fn may_send_again(&mut self) -> bool {
        if self.end.has_backlog() {
            return false;
        }
        if self.phase == Phase::Closing {
            self.connection.end_writing();
        }
        self.is_blocked && self.phase == Phase::Open
    }
}
