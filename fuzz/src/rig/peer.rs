//! [`Peer`]: somebody who speaks QUIC with a core and says on it whatever a fuzzer says.
//!
//! ```text
//!   open, push, say ---> streams        frames ---> sealed packets, past the QUIC library
//!   probe, data -------> the data port
//! ```
//!
//! Its QUIC is that of [`raw::Peer`].
//!
//! Invariant: what a core sends it are records; anything else is a bug of the core.

use super::packet;
use super::tap::Tap;
use super::{Rig, Sent};
use dacapo_netlab::raw;
use dacapo_wire::message::Message;
use dacapo_wire::session::{Answer, FlowAnswer};
use quinn_proto::{StreamId, VarInt};
use sha2::{Digest, Sha256};
use std::ops::{Deref, DerefMut};
use std::time::Instant;

/// Rounds in which a peer and a core answer each other at one instant.
const ROUNDS_MAX: usize = 64;

/// Somebody who speaks QUIC with a core.
pub struct Peer {
    peer: raw::Peer,
    tap: Tap,
    /// The id by which the core is addressed.
    core_id: Vec<u8>,
    /// The highest number of a packet.
    number: u32,
}

impl Deref for Peer {
    type Target = raw::Peer;

    fn deref(&self) -> &raw::Peer {
        &self.peer
    }
}

impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut raw::Peer {
        &mut self.peer
    }
}

impl Peer {
    fn over(peer: raw::Peer, tap: Tap) -> Self {
        Self { peer, tap, core_id: Vec::new(), number: 0 }
    }

    /// One who dials the core.
    ///
    /// # Panics
    /// The address of the core cannot be dialed.
    #[must_use]
    pub fn client(rig: &Rig, host: u8, seed: u64) -> Self {
        let (tap, now, to) = (Tap::default(), rig.instant(), Rig::address());
        Self::over(raw::Peer::dialing(now, to, host, seed, |crypto| tap.client(crypto)), tap)
    }

    /// One whom the core dials.
    #[must_use]
    pub fn server(host: u8, seed: u64) -> Self {
        let tap = Tap::default();
        Self::over(raw::Peer::listening(host, seed, |crypto| tap.server(crypto)), tap)
    }

    /// The first datagram of one who dials.
    pub fn begin(&mut self, rig: &Rig) -> Vec<u8> {
        self.poll_transmit(rig.instant()).unwrap_or_default()
    }

    /// Lets both say what they have to say at this instant.
    pub fn talk(&mut self, rig: &mut Rig) {
        for _ in 0..ROUNDS_MAX {
            let mut is_quiet = true;
            for bytes in self.poll_transmits(rig.instant()) {
                is_quiet = false;
                rig.handle(self.control, &bytes);
            }
            rig.settle();
            for sent in rig.take_sent() {
                is_quiet = false;
                self.handle(rig.instant(), &sent);
            }
            if is_quiet {
                break;
            }
        }
    }

    fn poll_transmits(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(bytes) = self.poll_transmit(now) {
            let number = packet::number_of_short(&bytes, self.core_id.len());
            self.number = self.number.max(number.unwrap_or(0));
            all.push(bytes);
        }
        all
    }

    fn handle(&mut self, now: Instant, sent: &Sent) {
        let Some(remote) = sent.remote.ip() else { return };
        let is_control = remote == self.control && !self.is_for_data(remote, &sent.bytes);
        if is_control && let Some(id) = packet::source_of_long(&sent.bytes) {
            self.core_id = id.to_vec();
        }
        self.peer.handle(now, Rig::address(), remote, &sent.bytes);
    }

    /// Sends a message on a stream; one that has no bytes is not sent.
    pub fn say(&mut self, stream: StreamId, message: impl Into<Message>) {
        let mut bytes = Vec::new();
        if message.into().encode(&mut bytes).is_ok() {
            self.push(stream, &bytes);
        }
    }

    /// Ends the way to the core of a stream, by force or in order.
    pub fn end(&mut self, stream: StreamId, by_force: bool) {
        let Some(inner) = self.connection() else { return };
        // A stream that is over already stays so.
        let _ = if by_force {
            inner.send_stream(stream).reset(VarInt::from_u32(9)).is_ok()
        } else {
            inner.send_stream(stream).finish().is_ok()
        };
    }

    /// Closes the connection.
    pub fn close(&mut self, rig: &Rig) {
        self.peer.close(rig.instant());
    }

    /// A sealed packet with these frames, as no library makes it; none before the handshake ends.
    pub fn sealed(&mut self, frames: &[u8]) -> Option<Vec<u8>> {
        let key = self.tap.application()?;
        self.number += 1;
        Some(packet::short(key.as_ref(), &self.core_id, self.number, frames))
    }

    /// The question `number` on the data path, as one asks it who was welcomed with this token.
    #[must_use]
    pub fn question(rig: &Rig, token: [u8; 16], number: u64) -> Vec<u8> {
        raw::tagged(token, raw::question(rig.now(), number), 1_452)
    }
}

/// The answer to `count` flows that are all wanted.
#[must_use]
pub fn answer(count: usize) -> Answer {
    let flow = |at: usize| FlowAnswer {
        flow: at as u16,
        accepted: Ok(()),
        label: 0x1230 + at as u32,
        datagram_len: 1_200,
        stream_token: None,
        base: None,
        stream_port: None,
    };
    Answer { flows: (0..count).map(flow).collect() }
}

/// The transcript with another message, as both ends remember it.
#[must_use]
pub fn extend(transcript: [u8; 32], message: &Message) -> [u8; 32] {
    let mut bytes = Vec::new();
    // What cannot be encoded was never sent.
    let _ = message.encode(&mut bytes);
    Sha256::new().chain_update(transcript).chain_update(&bytes).finalize().into()
}
