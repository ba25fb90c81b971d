//! [`Line`], one connection: what is read of it, and what could not be written.
//!
//! What it is not: a table of connections, a decision what one that lies is done to, or what its
//! bytes mean ([`Records`]).

use super::records::{Records, preface_of, record_head};
use dacapo_base::Time;
use dacapo_sys::tcp::Stream;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;

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
        Self { stream, state, remote, records: Records::default(), unsent, is_ready: false }
    }

    /// Whether something could not be written.
    pub fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Writes a packet as a record; false when there is no room for any of it.
    pub fn send(&mut self, len: u16, packet: &[u8]) -> io::Result<bool> {
        let len = record_head(len);
        let parts = [IoSlice::new(&len), IoSlice::new(packet)];
        let written = match self.stream.write_vectored(&parts) {
            Ok(written) => written,
            Err(error) if is_later(&error) || error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        if written > 0 {
            self.unsent.extend(len.iter().chain(packet).skip(written));
        }
        Ok(written > 0)
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

    /// Reads once.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Reading> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Ok(Reading::End),
                Ok(len) => {
                    self.records.push(buffer.get(..len).unwrap_or_default());
                    return Ok(Reading::Some);
                }
                Err(error) if is_later(&error) => return Ok(Reading::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether it goes on later: no room, nothing there, or not connected yet.
fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}
