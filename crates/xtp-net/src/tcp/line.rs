//! [`Line`], one connection: what is read of it, and what could not be written.
//!
//! Invariant: what could not be written is the rest of one record at most.

use super::records::{Records, preface_of, record_head};
use dacapo_base::Time;
use dacapo_sys::tcp::Stream;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;

/// What is read at a time.
const READ_LEN: usize = 64 << 10;
/// The most packets that are written in one call.
const RECORDS_MAX: usize = 128;

/// What a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Dialed; what is written first, the preface, has not left.
    Dialing,
    /// Accepted; the preface has not come.
    Greeting {
        /// It is waited for until then.
        until: Time,
    },
    /// Packets go both ways.
    Open,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Line {
    pub stream: Stream,
    pub state: State,
    pub remote: SocketAddr,
    /// What came.
    pub records: Records,
    /// Bytes that could not be written.
    unsent: Vec<u8>,
    pub is_ready: bool,
    /// Nothing more is there to read, until the poller says so.
    pub is_drained: bool,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Bytes.
    Some,
    /// Nothing now.
    Nothing,
    /// The end of the stream.
    End,
}

impl Line {
    /// A connection; one that is dialed says first at which port this end listens.
    pub fn new(stream: Stream, state: State, remote: SocketAddr, port: u16) -> Self {
        let is_dialed = state == State::Dialing;
        let unsent = if is_dialed { preface_of(port).to_vec() } else { Vec::new() };
        let (records, is_ready, is_drained) = (Records::default(), false, false);
        Self { stream, state, remote, records, unsent, is_ready, is_drained }
    }

    /// Whether something could not be written.
    pub fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Writes packets of `segment` bytes as records, in one call as many as that takes; gives the
    /// bytes of those that have begun to leave, 0 when there is no room.
    pub fn send(&mut self, train: &[u8], segment: u16) -> io::Result<usize> {
        let packets = || train.chunks(usize::from(segment)).take(RECORDS_MAX);
        let mut heads = [[0; 2]; RECORDS_MAX];
        for (head, packet) in heads.iter_mut().zip(packets()) {
            // No packet is longer than `segment`.
            *head = record_head(u16::try_from(packet.len()).unwrap_or(segment));
        }
        let mut parts = [IoSlice::new(&[]); 2 * RECORDS_MAX];
        let mut count = 0;
        for ((two, head), packet) in parts.chunks_exact_mut(2).zip(&heads).zip(packets()) {
            two.copy_from_slice(&[IoSlice::new(head), IoSlice::new(packet)]);
            count += 2;
        }
        let mut written = match self.stream.write_vectored(parts.get(..count).unwrap_or(&parts)) {
            Ok(written) => written,
            Err(error) if is_later(&error) || error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let mut taken = 0;
        for (head, packet) in heads.iter().zip(packets()) {
            if written == 0 {
                break;
            }
            self.unsent.extend(head.iter().chain(packet).skip(written));
            written = written.saturating_sub(head.len() + packet.len());
            taken += packet.len();
        }
        Ok(taken)
    }

    /// Whether all is written now.
    pub fn flush(&mut self) -> io::Result<bool> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Ok(false),
                Ok(len) => drop(self.unsent.drain(..len.min(self.unsent.len()))),
                Err(error) if is_later(&error) => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads once, where more may be there than was read before.
    pub fn read(&mut self) -> io::Result<Reading> {
        while !self.is_drained {
            let stream = &mut self.stream;
            match self.records.fill(READ_LEN, |tailroom| stream.read(tailroom)) {
                Ok(0) => return Ok(Reading::End),
                Ok(len) => {
                    self.is_drained = len < READ_LEN;
                    return Ok(Reading::Some);
                }
                Err(error) if is_later(&error) => self.is_drained = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Reading::Nothing)
    }
}

/// Whether it goes on later: no room, nothing there, or not connected yet.
fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}
