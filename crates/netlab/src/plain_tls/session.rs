//! [`PlainSession`]: the handshake of one connection, from the first message to key updates.
//!
//! ```text
//!   client: ServerHello -> Parameters -> ServerIdentity -> ServerFinished ----------> Done
//!   server: ClientHello ----------> ClientIdentity -> ClientFinished ---------------> Done
//!                       \_ handshake keys, 1-RTT keys       (names: what is awaited)
//! ```
//!
//! Both sides hash the same messages in the same order (the transcript). The handshake secret
//! follows from it after ServerHello, the application and exporter secrets after the server's
//! Finished, as in TLS; each Finished is a check of everything before it. Connections have secrets
//! of their own because the transport parameters hold their connection ids.
//!
//! Invariants: a message other than the awaited one is an error; less than one message is kept
//! between calls; identities are shown once their message has arrived, not earlier.
//!
//! Source: RFC 8446 (section 4.4 and appendix A), RFC 9001 (section 4).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::crypto::{
    ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};

use super::config::Config;
use super::keys;
use super::message::{self, Message};
use super::mix::Mixer;

/// Most bytes that one export gives, as with HKDF-SHA256.
const EXPORT_LEN_MAX: usize = 255 * 32;

/// The alerts of TLS that are used (RFC 8446, section 6).
mod alert {
    pub(super) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(super) const DECODE_ERROR: u8 = 50;
    pub(super) const DECRYPT_ERROR: u8 = 51;
    pub(super) const NO_APPLICATION_PROTOCOL: u8 = 120;
}

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    ClientHello,
    ServerHello,
    Parameters,
    ServerIdentity,
    ServerFinished,
    ClientIdentity,
    ClientFinished,
    Done,
}

/// What `write_handshake` gives in one call: bytes of the present level, then keys of the next.
struct Flight {
    bytes: Vec<u8>,
    secret: Option<[u8; 32]>,
}

/// What the peer said.
#[derive(Default)]
struct Peer {
    alpn: Option<Vec<u8>>,
    server_name: Option<String>,
    params: Option<TransportParameters>,
    identity: Option<[u8; 32]>,
}

/// What the application level is made from.
struct Application {
    secret: [u8; 32],
    exporter: Mixer,
    /// How many times the keys were made anew.
    generation: u64,
}

/// A [`Session`] without secrecy.
pub(super) struct PlainSession {
    config: Arc<Config>,
    side: Side,
    version: u32,
    /// Our transport parameters, encoded.
    params: Vec<u8>,
    transcript: Mixer,
    inbox: Vec<u8>,
    outbox: VecDeque<Flight>,
    state: State,
    peer: Peer,
    application: Option<Application>,
}

impl PlainSession {
    /// A session that begins with a ClientHello.
    pub(super) fn client(
        config: Arc<Config>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Self {
        let mut session = Self::new(config, Side::Client, version, params);
        let hello = Message::ClientHello {
            share: session.share(),
            server_name: server_name.as_bytes().to_vec(),
            alpn: session.config.alpn.clone(),
            params: session.params.clone(),
        };
        let bytes = session.say(&hello);
        session.outbox.push_back(Flight { bytes, secret: None });
        session
    }

    /// A session that awaits a ClientHello.
    pub(super) fn server(config: Arc<Config>, version: u32, params: &TransportParameters) -> Self {
        Self::new(config, Side::Server, version, params)
    }

    fn new(config: Arc<Config>, side: Side, version: u32, params: &TransportParameters) -> Self {
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        Self {
            config,
            side,
            version,
            params: encoded,
            transcript: Mixer::new("transcript").with_number(version.into()),
            inbox: Vec::new(),
            outbox: VecDeque::new(),
            state: if side.is_client() { State::ServerHello } else { State::ClientHello },
            peer: Peer::default(),
            application: None,
        }
    }

    /// Our key share: a key share only in that it differs between identities and connections.
    fn share(&self) -> [u8; 32] {
        Mixer::new("share").with(&self.config.identity).with(&self.params).secret()
    }

    /// Puts a message of ours into the transcript and gives its bytes.
    fn say(&mut self, message: &Message) -> Vec<u8> {
        let bytes = message.encode();
        self.transcript.add(&bytes);
        bytes
    }

    fn say_identity_and_finished(&mut self) -> Vec<u8> {
        let mut bytes = self.say(&Message::Identity(self.config.identity));
        let check = self.check(self.side);
        bytes.extend(self.say(&Message::Finished(check)));
        bytes
    }

    /// What `sender`'s Finished holds at this point.
    fn check(&self, sender: Side) -> [u8; 32] {
        self.transcript.clone().with(b"finished").with_number(sender as u64).secret()
    }

    fn handshake_secret(&self) -> [u8; 32] {
        self.transcript.clone().with(b"handshake").secret()
    }

    /// Makes the application level, at the server's Finished; gives its secret.
    fn enter_application(&mut self) -> [u8; 32] {
        let secret = self.transcript.clone().with(b"application").secret();
        let exporter = self.transcript.clone().with(b"exporter");
        self.application = Some(Application { secret, exporter, generation: 0 });
        secret
    }

    /// Takes one whole message; true when the handshake data became known with it.
    fn handle_message(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let message = Message::decode(bytes).map_err(|_| malformed())?;
        match (self.state, message) {
            (State::ClientHello, Message::ClientHello { server_name, alpn, params, .. }) => {
                self.negotiate(alpn, &params)?;
                self.peer.server_name = String::from_utf8(server_name).ok();
                self.transcript.add(bytes);
                self.answer();
                return Ok(true);
            }
            (State::ServerHello, Message::ServerHello { .. }) => {
                self.transcript.add(bytes);
                let secret = Some(self.handshake_secret());
                self.outbox.push_back(Flight { bytes: Vec::new(), secret });
                self.state = State::Parameters;
            }
            (State::Parameters, Message::Parameters { alpn, params }) => {
                self.negotiate(alpn, &params)?;
                self.transcript.add(bytes);
                self.state = State::ServerIdentity;
                return Ok(true);
            }
            (State::ServerIdentity, Message::Identity(identity)) => {
                self.learn_identity(identity, bytes, State::ServerFinished);
            }
            (State::ClientIdentity, Message::Identity(identity)) => {
                self.learn_identity(identity, bytes, State::ClientFinished);
            }
            (State::ServerFinished, Message::Finished(check)) => {
                self.finish(check, bytes)?;
                let secret = Some(self.enter_application());
                let bytes = self.say_identity_and_finished();
                self.outbox.push_back(Flight { bytes, secret });
            }
            (State::ClientFinished, Message::Finished(check)) => self.finish(check, bytes)?,
            (state, _) => {
                let reason = format!("a handshake message came while {state:?} was awaited");
                return Err(failure(alert::UNEXPECTED_MESSAGE, reason));
            }
        }
        Ok(false)
    }

    /// The server's flight: ServerHello at the first level, the rest at the second.
    fn answer(&mut self) {
        let bytes = self.say(&Message::ServerHello { share: self.share() });
        let secret = Some(self.handshake_secret());
        self.outbox.push_back(Flight { bytes, secret });

        let (alpn, params) = (self.config.alpn.clone(), self.params.clone());
        let mut bytes = self.say(&Message::Parameters { alpn, params });
        bytes.extend(self.say_identity_and_finished());
        let secret = Some(self.enter_application());
        self.outbox.push_back(Flight { bytes, secret });
        self.state = State::ClientIdentity;
    }

    fn negotiate(&mut self, alpn: Vec<u8>, params: &[u8]) -> Result<(), TransportError> {
        if alpn != self.config.alpn {
            let reason = "the peer speaks another application protocol".to_owned();
            return Err(failure(alert::NO_APPLICATION_PROTOCOL, reason));
        }
        self.peer.alpn = Some(alpn);
        self.peer.params = Some(TransportParameters::read(self.side, &mut &*params)?);
        Ok(())
    }

    fn learn_identity(&mut self, identity: [u8; 32], bytes: &[u8], next: State) {
        self.peer.identity = Some(identity);
        self.transcript.add(bytes);
        self.state = next;
    }

    /// Takes the peer's Finished.
    fn finish(&mut self, check: [u8; 32], bytes: &[u8]) -> Result<(), TransportError> {
        if check != self.check(!self.side) {
            let reason = "the two sides saw different handshakes".to_owned();
            return Err(failure(alert::DECRYPT_ERROR, reason));
        }
        self.transcript.add(bytes);
        self.state = State::Done;
        Ok(())
    }
}

fn failure(alert: u8, reason: String) -> TransportError {
    TransportError { code: TransportErrorCode::crypto(alert), frame: None, reason }
}

fn malformed() -> TransportError {
    failure(alert::DECODE_ERROR, "malformed handshake message".to_owned())
}

impl Session for PlainSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        keys::keys(&keys::initial_secret(self.version, dst_cid), side)
    }

    /// The type of the real one, so that callers need not know which they have.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let protocol = Some(self.peer.alpn.clone()?);
        Some(Box::new(HandshakeData { protocol, server_name: self.peer.server_name.clone() }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.peer.identity.map(|identity| -> Box<dyn Any> { Box::new(identity) })
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.side.is_client().then_some(false)
    }

    fn is_handshaking(&self) -> bool {
        self.state != State::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        // quinn bounds what it buffers, so `buf` is a few datagrams at most.
        self.inbox.extend_from_slice(buf);
        let mut ready = false;
        while let Some(bytes) = message::split(&mut self.inbox).map_err(|_| malformed())? {
            ready |= self.handle_message(&bytes)?;
        }
        Ok(ready)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer.params)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let flight = self.outbox.pop_front()?;
        buf.extend_from_slice(&flight.bytes);
        flight.secret.map(|secret| keys::keys(&secret, self.side))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let application = self.application.as_mut()?;
        application.generation = application.generation.saturating_add(1);
        let next = Mixer::new("key update").with(&application.secret);
        let secret = next.with_number(application.generation).secret();
        Some(keys::packet_keys(&secret, self.side))
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        payload.split_last_chunk::<16>().is_some_and(|(token, tag)| {
            keys::retry_tag(self.version, orig_dst_cid, &[header, token]) == *tag
        })
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let application = self.application.as_ref().ok_or(ExportKeyingMaterialError)?;
        if self.is_handshaking() || output.len() > EXPORT_LEN_MAX {
            return Err(ExportKeyingMaterialError);
        }
        // TLS derives with the length too: a shorter export is not the beginning of a longer one.
        let exporter = application.exporter.clone().with_number(output.len() as u64);
        exporter.with(label).with(context).fill(output);
        Ok(())
    }
}
