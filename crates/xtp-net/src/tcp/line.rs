//! Decoder: [`Line`], one connection: its preface and its records.
//!
//! What it is not: a table of connections, or a decision what one that lies is done to.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use dacapo_base::Time;
use dacapo_sys::tcp::Stream;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;

const MAGIC: [u8; 4] = *b"dXTP";
const VERSION: u16 = 1;
const PREFACE_LEN: usize = 8;
const RECORD_HEAD_LEN: usize = 2;

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
    /// Bytes that came, from `at` on.
    came: Vec<u8>,
    at: usize,
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
        let unsent = if is_dialed { preface_bytes(port) } else { Vec::new() };
        Self { stream, state, remote, came: Vec::new(), at: 0, unsent, is_ready: false }
    }

    /// Whether something could not be written.
    pub fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Writes a packet as a record; false when there is no room for any of it.
    pub fn send(&mut self, len: u16, packet: &[u8]) -> io::Result<bool> {
        let len = len.to_be_bytes();
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
                    // What was taken goes, so that no more than a record is kept.
                    self.came.drain(..self.at.min(self.came.len()));
                    self.at = 0;
                    self.came.extend_from_slice(buffer.get(..len).unwrap_or_default());
                    return Ok(Reading::Some);
                }
                Err(error) if is_later(&error) => return Ok(Reading::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The port of the preface; `None` while it is not there, an error when it is none.
    pub fn preface(&mut self) -> Option<Result<u16, ()>> {
        let preface = self.came.first_chunk::<PREFACE_LEN>()?;
        let [a, b, c, d, v0, v1, p0, p1] = *preface;
        let port = u16::from_be_bytes([p0, p1]);
        self.at = PREFACE_LEN;
        let is_one = [a, b, c, d] == MAGIC && u16::from_be_bytes([v0, v1]) == VERSION && port != 0;
        Some(if is_one { Ok(port) } else { Err(()) })
    }

    /// The next record, copied into `into`; `None` while it is not whole, an error when it is none.
    pub fn record(&mut self, into: &mut [u8]) -> Option<Result<usize, ()>> {
        let rest = self.came.get(self.at..)?;
        let (len, rest) = rest.split_first_chunk::<RECORD_HEAD_LEN>()?;
        let len = usize::from(u16::from_be_bytes(*len));
        if len == 0 || len > into.len() {
            return Some(Err(()));
        }
        let packet = rest.get(..len)?;
        into.iter_mut().zip(packet).for_each(|(to, from)| *to = *from);
        self.at = self.at.saturating_add(RECORD_HEAD_LEN).saturating_add(len);
        Some(Ok(len))
    }
}

fn preface_bytes(port: u16) -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_be_bytes(), &port.to_be_bytes()].concat()
}

/// Whether it goes on later: no room, nothing there, or not connected yet.
fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use dacapo_base::Random;
    use dacapo_sys::tcp::{Config, Listener};

    /// A connection to which bytes have come.
    fn with(bytes: &[u8]) -> Line {
        let here = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(here, &Config::default()).unwrap();
        let at = listener.local_addr().unwrap();
        let stream = Stream::connect(at, &Config::default()).unwrap();
        let mut line = Line::new(stream, State::Open, at, 1);
        line.came.extend_from_slice(bytes);
        line
    }

    #[test]
    fn records_come_one_by_one_and_only_when_they_are_whole() {
        let bytes = [&[0, 3][..], b"one", &[0, 1], b"2", &[0, 9], b"half"].concat();
        let mut line = with(&bytes);
        let mut into = [0; 16];
        assert_eq!(line.record(&mut into), Some(Ok(3)));
        assert_eq!(&into[..3], b"one");
        assert_eq!(line.record(&mut into), Some(Ok(1)));
        assert_eq!(line.record(&mut into), None);
        line.came.extend_from_slice(b" more");
        assert_eq!(line.record(&mut into), Some(Ok(9)));
        assert_eq!(&into[..9], b"half more");
        assert_eq!(with(&[0, 0]).record(&mut into), Some(Err(())), "a packet has a byte");
        assert_eq!(with(&[0, 17]).record(&mut into), Some(Err(())), "longer than the room");
    }

    #[test]
    fn a_preface_is_one_or_is_none() {
        assert_eq!(with(&preface_bytes(4_040)).preface(), Some(Ok(4_040)));
        assert_eq!(with(&preface_bytes(4_040)[..7]).preface(), None);
        assert_eq!(with(&preface_bytes(0)).preface(), Some(Err(())));
        let mut random = Random::from_number(1);
        for at in 0..6 {
            let mut bytes = preface_bytes(7);
            bytes[at] ^= 1 + random.below(255) as u8;
            assert_eq!(with(&bytes).preface(), Some(Err(())), "byte {at}");
        }
    }
}
