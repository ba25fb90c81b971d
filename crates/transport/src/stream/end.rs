//! [`StreamEnd`]: one end of one stream, from the preface to the last record.
//!
//! ```text
//!   listener:  preface --Claim(token)--> claimed --accept()--> open
//!   dialer:    preface --Opened----------------------------> open
//!
//!   read(from, pool) .. poll_datagram(now, pool) -> packets      write(datagrams, to)
//!        ^ until it says Nothing           ^ until it says None   flush(to) when there is room
//! ```
//!
//! Decoder: whatever bytes come, they end as datagrams, a wait, or an [`Ending`].
//!
//! Invariants: nothing is sent or handed up before the stream is open; nothing of the pool is held
//! before, either. Before it is dropped, [`StreamEnd::release`] gives back what it holds.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::preface::{MAGIC, Preface, with_token};
use super::reader::{Found, Reader};
use super::writer::{Taken, Writer};
use super::{Ending, Token};
use dacapo_base::Time;
use dacapo_packet::{Packet, Pool};
use std::io::{self, Read, Write};

/// What one read found.
#[derive(Debug)]
pub enum ReadOutcome {
    /// Bytes came: poll for datagrams.
    Bytes {
        /// How many.
        len: usize,
        /// Fewer bytes came than there was room for.
        is_all: bool,
    },
    /// Datagrams wait to be polled; nothing was read.
    Unpolled,
    /// Nothing is there now.
    Nothing,
    /// The pool has no room; what came waits in the stream.
    PoolFull,
    /// A listener's end got a whole preface: [`StreamEnd::accept`] it when this token is known, end
    /// the stream otherwise.
    Claim(Token),
    /// A dialer's end is open.
    Opened,
    /// The stream is over, and everything before its end was read.
    Ended(Ending),
}

/// One end of one stream.
#[derive(Debug)]
pub struct StreamEnd {
    phase: Phase,
    reader: Reader,
    writer: Writer,
}

#[derive(Debug)]
enum Phase {
    /// A listener's end without a whole preface.
    AwaitsToken(Preface),
    /// A listener's end that nobody has accepted yet.
    Claimed,
    /// A dialer's end without an answer.
    AwaitsAnswer(Preface),
    Open,
}

impl StreamEnd {
    /// The end that waits for a preface.
    #[must_use]
    pub fn listener() -> Self {
        Self::new(Phase::AwaitsToken(Preface::with_token()), Writer::default())
    }

    /// The end that begins; [`StreamEnd::flush`] sends its preface.
    #[must_use]
    pub fn dialer(token: &Token) -> Self {
        let mut writer = Writer::default();
        writer.queue(&with_token(token));
        Self::new(Phase::AwaitsAnswer(Preface::answer()), writer)
    }

    fn new(phase: Phase, writer: Writer) -> Self {
        Self { phase, reader: Reader::default(), writer }
    }

    /// True from the exchange of prefaces on.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// True while there are bytes that the stream did not take; [`StreamEnd::flush`] them when it
    /// has room. At most one record, or a preface.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        self.writer.has_rest()
    }

    /// Accepts the stream that was claimed; [`StreamEnd::flush`] sends the answer.
    pub fn accept(&mut self) {
        if matches!(self.phase, Phase::Claimed) {
            self.phase = Phase::Open;
            self.writer.queue(&MAGIC);
        }
    }

    /// Reads once from the stream, by [`Read::read_vectored`]; 0 bytes are its end.
    pub fn read(&mut self, from: &mut impl Read, pool: &mut Pool) -> ReadOutcome {
        match &mut self.phase {
            Phase::AwaitsToken(preface) => match read_preface(preface, from) {
                Ok(false) => ReadOutcome::Nothing,
                Ok(true) => {
                    let token = preface.token();
                    self.phase = Phase::Claimed;
                    ReadOutcome::Claim(token)
                }
                Err(ending) => ReadOutcome::Ended(ending),
            },
            Phase::AwaitsAnswer(preface) => match read_preface(preface, from) {
                Ok(false) => ReadOutcome::Nothing,
                Ok(true) => {
                    self.phase = Phase::Open;
                    ReadOutcome::Opened
                }
                Err(ending) => ReadOutcome::Ended(ending),
            },
            Phase::Claimed => ReadOutcome::Nothing,
            Phase::Open if self.reader.is_unpolled() => ReadOutcome::Unpolled,
            Phase::Open => match self.reader.read(from, pool) {
                Found::Bytes { len, is_all } => ReadOutcome::Bytes { len, is_all },
                Found::Nothing => ReadOutcome::Nothing,
                Found::PoolFull => ReadOutcome::PoolFull,
                Found::Ended(ending) => ReadOutcome::Ended(ending),
            },
        }
    }

    /// The next datagram that was read, or the next train of equal ones of which the last may be
    /// shorter; `now` becomes its time. Whoever takes it frees it in the pool.
    ///
    /// # Errors
    /// [`Ending::RecordTooLong`]; the stream is over then, and no later call says anything else.
    pub fn poll_datagram(&mut self, now: Time, pool: &mut Pool) -> Result<Option<Packet>, Ending> {
        self.reader.poll(now, pool)
    }

    /// Sends `bytes` as datagrams of `segment_len` bytes each, at most
    /// [`super::RECORD_LEN_MAX`], of which the last may be shorter; empty bytes are one empty
    /// datagram. Takes nothing before the stream is open.
    ///
    /// A datagram of which the stream took a part was taken; the rest of it is kept and goes first.
    ///
    /// # Errors
    /// What the stream says, when nothing was taken: it is over then. `InvalidInput` for a datagram
    /// that is too long; it goes on then.
    pub fn write(
        &mut self,
        bytes: &[u8],
        segment_len: usize,
        to: &mut impl Write,
    ) -> io::Result<Taken> {
        if self.is_open() { self.writer.send(bytes, segment_len, to) } else { Ok(Taken::default()) }
    }

    /// The same for one datagram whose bytes lie in two places.
    ///
    /// # Errors
    /// As [`StreamEnd::write`].
    pub fn write_split(
        &mut self,
        head: &[u8],
        body: &[u8],
        to: &mut impl Write,
    ) -> io::Result<Taken> {
        if self.is_open() { self.writer.send_split(head, body, to) } else { Ok(Taken::default()) }
    }

    /// Writes what is kept, as much as the stream takes.
    ///
    /// # Errors
    /// What the stream says: it is over then.
    pub fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        self.writer.flush(to)
    }

    /// Gives back what a half-arrived record holds of the pool. Nothing can be read afterwards.
    pub fn release(&mut self, pool: &mut Pool) {
        self.reader.release(pool);
    }
}

/// Reads what the preface lacks; true when it is whole.
fn read_preface(preface: &mut Preface, from: &mut impl Read) -> Result<bool, Ending> {
    loop {
        match from.read(preface.room()) {
            Ok(0) => return Err(Ending::WithinPreface),
            Ok(count) => {
                if preface.handle_received(count)? {
                    return Ok(true);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Ending::of(error)),
        }
    }
}
