//! [`Plain`]: a QUIC client that is no transport: its stream's bytes, as the suite wants them.

use bytes::{Bytes, BytesMut};
use dacapo_base::Address;
use dacapo_security::endpoint_keys;
use dacapo_transport::conformance::Bare;
use quinn_proto::crypto::ClientConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ReadError,
    StreamId, TransportConfig, VarInt, WriteError,
};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

/// A client of one connection with one stream.
pub struct Plain {
    socket: UdpSocket,
    remote: SocketAddr,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub connection: Connection,
    stream: Option<StreamId>,
    /// The connection is over.
    pub is_lost: bool,
}

impl Plain {
    /// Begins to connect.
    pub fn connect(remote: SocketAddr, crypto: Arc<dyn ClientConfig>) -> Self {
        let any = if remote.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(remote).unwrap();
        socket.set_nonblocking(true).unwrap();
        let config = Arc::new(EndpointConfig::new(endpoint_keys(&[1; 64]).reset));
        let mut endpoint = Endpoint::new(config, None, false, None);
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(None);
        let mut client = quinn_proto::ClientConfig::new(crypto);
        client.transport_config(Arc::new(transport));
        let (handle, connection) =
            endpoint.connect(Instant::now(), client, remote, "dacapo").unwrap();
        let (stream, is_lost) = (None, false);
        let mut plain = Self { socket, remote, endpoint, handle, connection, stream, is_lost };
        plain.drive();
        plain
    }

    /// Takes what has come and sends what there is.
    pub fn drive(&mut self) {
        let mut buffer = [0; 2_000];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            let (bytes, mut answer) = (BytesMut::from(&buffer[..len]), Vec::new());
            let now = Instant::now();
            let event = self.endpoint.handle(now, self.remote, None, None, bytes, &mut answer);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
            }
        }
        let now = Instant::now();
        self.connection.handle_timeout(now);
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.stream = self.connection.streams().open(Dir::Bi),
                Event::ConnectionLost { .. } => self.is_lost = true,
                _ => {}
            }
        }
        self.transmit(now);
    }

    fn transmit(&mut self, now: Instant) {
        let mut bytes = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(now, 1, &mut bytes) {
            // What does not go is lost.
            let _ = self.socket.send(&bytes[..transmit.size]);
            bytes.clear();
        }
    }

    fn read_stream(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let end = || if self.is_lost { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
        let Some(stream) = self.stream else { return end() };
        let mut receiver = self.connection.recv_stream(stream);
        let Ok(mut chunks) = receiver.read(true) else { return Ok(0) };
        let found = chunks.next(into.len());
        let _ = chunks.finalize();
        match found {
            Ok(Some(chunk)) => {
                into[..chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                Ok(chunk.bytes.len())
            }
            Ok(None) | Err(ReadError::Reset(_)) => Ok(0),
            Err(ReadError::Blocked) => end(),
        }
    }
}

impl Read for Plain {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.drive();
        let count = self.read_stream(into);
        self.drive();
        count
    }
}

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.drive();
        if self.is_lost {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let Some(stream) = self.stream else { return Err(ErrorKind::WouldBlock.into()) };
        let written = match self.connection.send_stream(stream).write(bytes) {
            Ok(count) => Ok(count),
            Err(WriteError::Blocked) => Err(ErrorKind::WouldBlock.into()),
            Err(_) => Err(ErrorKind::BrokenPipe.into()),
        };
        self.drive();
        written
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
        let now = Instant::now();
        self.connection.close(now, VarInt::from_u32(0), Bytes::new());
        self.transmit(now);
    }
}
