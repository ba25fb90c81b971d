//! The preface: what both ends say before records.
//!
//! ```text
//!   dialer:    | d a c a p o 00 01 | token, 16 bytes |
//!   listener:  | d a c a p o 00 01 |
//! ```
//!
//! What a stream carries is protected, or not, by the modules above.
//!
//! Decoder: any bytes end as a preface, a wait for more, or [`Ending::WrongPreface`], at the first
//! byte that differs.
//!
//! Source: docs/protocol.md, "Streams"; design D7.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use super::{Ending, TOKEN_LEN, Token};

/// The first bytes of every stream, both ways.
pub const MAGIC: [u8; 8] = *b"dacapo\x00\x01";

const LEN: usize = MAGIC.len().saturating_add(TOKEN_LEN);

/// What a dialer says.
pub(super) fn with_token(token: &Token) -> Vec<u8> {
    [MAGIC.as_slice(), token.as_slice()].concat()
}

/// The part of a preface that has come.
#[derive(Debug)]
pub(super) struct Preface {
    bytes: [u8; LEN],
    received: usize,
    wanted: usize,
}

impl Preface {
    /// What a listener waits for.
    pub(super) fn with_token() -> Self {
        Self { bytes: [0; LEN], received: 0, wanted: LEN }
    }

    /// What a dialer waits for.
    pub(super) fn answer() -> Self {
        Self { bytes: [0; LEN], received: 0, wanted: MAGIC.len() }
    }

    /// Where the rest belongs: not one byte more than that, so that what follows stays unread.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.received..self.wanted).unwrap_or_default()
    }

    /// `count` bytes came into the room; true when it is whole.
    ///
    /// # Errors
    /// [`Ending::WrongPreface`] at the first byte that is not ours.
    pub(super) fn handle_received(&mut self, count: usize) -> Result<bool, Ending> {
        self.received = self.received.saturating_add(count).min(self.wanted);
        let magic = self.bytes.iter().zip(&MAGIC).take(self.received);
        if magic.into_iter().any(|(have, want)| have != want) {
            return Err(Ending::WrongPreface);
        }
        Ok(self.received == self.wanted)
    }

    /// The token of a whole preface.
    pub(super) fn token(&self) -> Token {
        self.bytes.last_chunk().copied().unwrap_or_default()
    }
}
