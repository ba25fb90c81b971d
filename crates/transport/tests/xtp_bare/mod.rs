//! [`Plain`]: an XTP client that is no transport: its stream's bytes, as the suite wants them.

use dacapo_base::{Address, Random, Time};
use dacapo_transport::conformance::Bare;
use dacapo_transport::stream::Token;
use dacapo_transport::xtp::{HEAD_LEN, Mode, head, label_of};
use dacapo_xtp::wire::Service;
use dacapo_xtp::{Config, ContextId, Engine, Message, Open, Read as Found};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Reads in vain after which a client that nobody answers gives up.
const PATIENCE: u32 = 8;

/// The tag of bytes of the stream in the unreliable mode.
const STREAM: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];

/// A client of one association.
pub struct Plain {
    socket: UdpSocket,
    head: [u8; HEAD_LEN],
    mode: Mode,
    pub engine: Engine,
    pub id: ContextId,
    begun: Instant,
    heard: VecDeque<u8>,
    vain: u32,
}

impl Plain {
    /// Begins to open an association, and says nothing in it.
    pub fn connect(remote: SocketAddr, token: &Token, mode: Mode) -> Self {
        let any = if remote.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
        Self::connect_from(any.parse().unwrap(), remote, token, mode)
    }

    /// The same from this address.
    pub fn connect_from(local: SocketAddr, remote: SocketAddr, token: &Token, mode: Mode) -> Self {
        static SEED: AtomicU64 = AtomicU64::new(1);
        let socket = UdpSocket::bind(local).unwrap();
        socket.connect(remote).unwrap();
        socket.set_nonblocking(true).unwrap();
        let random = Random::from_number(SEED.fetch_add(1, Ordering::Relaxed));
        let mut engine = Engine::new(Config::default(), random);
        let options = dacapo_xtp::Mode {
            without_repair: mode == Mode::Datagrams,
            ..dacapo_xtp::Mode::default()
        };
        let open = Open { peer: remote, ends: None, service: Service::Stream, mode: options };
        let id = engine.open(Time::ZERO, &open).unwrap();
        let (begun, heard, vain) = (Instant::now(), VecDeque::new(), 0);
        let head = head(label_of(token));
        let mut plain = Self { socket, head, mode, engine, id, begun, heard, vain };
        plain.drive();
        plain
    }

    fn now(&self) -> Time {
        Time::ZERO + self.begun.elapsed()
    }

    /// Takes what has come and sends what there is.
    pub fn drive(&mut self) {
        let (now, remote) = (self.now(), self.socket.peer_addr().unwrap());
        let mut buffer = [0; 20_000];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            assert_eq!(buffer[..HEAD_LEN], self.head, "the same label comes back");
            self.engine.handle_packet(now, remote, &buffer[HEAD_LEN..len]);
        }
        self.engine.handle_time(now);
        let mut packet = self.head.to_vec();
        while self.engine.poll_packet(now, &mut packet).is_some() {
            // What does not go is lost.
            let _ = self.socket.send(&packet);
            packet.truncate(HEAD_LEN);
        }
        while self.engine.poll_event().is_some() {}
    }

    /// One read; `None` at the end.
    fn take(&mut self) -> Option<usize> {
        let mut buffer = [0; 2_000];
        match self.engine.read(self.now(), self.id, &mut buffer) {
            Ok(Found::Data { len, tag, .. }) => {
                if self.mode == Mode::Streams || tag == Some(STREAM) {
                    self.heard.extend(&buffer[..len]);
                }
                Some(len)
            }
            Ok(Found::Hole { len }) => Some(len as usize),
            Ok(Found::Nothing) => Some(0),
            Ok(Found::Finished) | Err(_) => None,
        }
    }
}

impl Read for Plain {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.drive();
        let mut is_over = false;
        while self.heard.len() < into.len() {
            match self.take() {
                Some(0) => break,
                Some(_) => {}
                None => {
                    is_over = true;
                    break;
                }
            }
        }
        self.drive();
        let count = into.len().min(self.heard.len());
        for (to, byte) in into.iter_mut().zip(self.heard.drain(..count)) {
            *to = byte;
        }
        let status = self.engine.status(self.id).unwrap();
        is_over |= status.end.is_some();
        self.vain += u32::from(!status.is_open);
        match count {
            0 if is_over || self.vain > PATIENCE => Ok(0),
            0 => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.drive();
        let message = match self.mode {
            Mode::Streams => Message::part(bytes),
            Mode::Datagrams => Message { tag: Some(STREAM), ..Message::whole(bytes) },
        };
        let written = self.engine.write(self.now(), self.id, &message);
        self.drive();
        match written {
            Ok(0) => Err(ErrorKind::WouldBlock.into()),
            Ok(count) => Ok(count),
            Err(_) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Bare for Plain {
    fn local_addr(&self) -> Address {
        self.socket.local_addr().unwrap().into()
    }
}

impl Drop for Plain {
    /// As a program that ends in order.
    fn drop(&mut self) {
        let now = self.now();
        // It may be over already.
        let _ = self.engine.finish(now, self.id);
        self.drive();
    }
}
