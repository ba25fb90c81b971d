//! quinn: QUIC with TLS 1.3, over one stream or in datagrams.
//!
//! ```text
//!   stream     one stream, messages of SIZE written without a copy, chunks read as they come
//!   datagram   unreliable datagrams of SIZE
//!   setup      a connection and a stream for each message there and back, by a whole handshake
//!   resume     the same, by a handshake that resumes the session before it
//! ```
//!
//! Settings, none of which ties its hands: AES-128-GCM by `ring`, full datagrams from the first on
//! (1472 bytes), windows of 32 MiB, large socket buffers, acknowledgements as rare as the peer may
//! ask for, a runtime on one thread. The certificate goes through a file in `$PEERS_DIR`.

// The rules of the repository refuse `async fn`; so functions return futures, as the library's do.
#![allow(clippy::manual_async_fn)]

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use peers::{
    Failure, LAST, Order, PATIENCE, Role, RoundTrips, SOCKET_BUFFER_BYTES, Window, say_ready,
    unnumbered,
};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream,
    ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use socket2::SockRef;

/// What a UDP datagram holds at an MTU of 1500 bytes.
const DATAGRAM_BYTES: u16 = 1472;
/// How much may be on its way.
const FLOW_WINDOW_BYTES: u32 = 32 << 20;
/// The name in the certificate.
const NAME: &str = "peer";

fn main() -> ExitCode {
    peers::run(|order| {
        if order.is_spinning {
            return Err(Failure("quinn cannot be told to spin".to_owned()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match (order.kind.as_str(), order.role) {
            ("stream" | "datagram", _) => runtime.block_on(carry_out(order)),
            ("setup" | "resume", Role::Echo) => runtime.block_on(setup_echo(order)),
            ("setup" | "resume", Role::Ping) => runtime.block_on(setup_ping(order)),
            _ => {
                let kinds = "stream, datagram, and of echo and ping setup and resume";
                Err(Failure(format!("the kinds are {kinds}")))
            }
        }
    })
}

fn carry_out(order: &Order) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let (endpoint, connection) = match order.role {
            Role::Sink | Role::Echo => listen(order).await?,
            Role::Source | Role::Ping => call(order).await?,
        };
        let is_stream = order.kind == "stream";
        let result = match (order.role, is_stream) {
            (Role::Sink, true) => stream_sink(order, &connection).await,
            (Role::Sink, false) => datagram_sink(order, &connection).await,
            (Role::Source, true) => stream_source(order, &connection).await,
            (Role::Source, false) => datagram_source(order, &connection).await,
            (Role::Echo, true) => stream_echo(order, &connection).await,
            (Role::Echo, false) => datagram_echo(&connection).await,
            (Role::Ping, true) => stream_ping(order, &connection).await,
            (Role::Ping, false) => datagram_ping(order, &connection).await,
        };
        connection.close(VarInt::from_u32(0), b"");
        // The other end may be gone already, and then nobody acknowledges the end.
        let _ = tokio::time::timeout(Duration::from_millis(50), endpoint.wait_idle()).await;
        result
    }
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure(error.to_string())
}

fn certificate_path(address: SocketAddr) -> Result<PathBuf, Failure> {
    let folder = std::env::var_os("PEERS_DIR")
        .ok_or_else(|| Failure("PEERS_DIR does not name a folder for the certificate".into()))?;
    Ok(PathBuf::from(folder).join(format!("quinn-{}.der", address.port())))
}

fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(provider)
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(FLOW_WINDOW_BYTES);
    let rare = AckFrequencyConfig::default();
    transport
        .initial_mtu(DATAGRAM_BYTES)
        .mtu_discovery_config(None)
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(FLOW_WINDOW_BYTES.into())
        .datagram_receive_buffer_size(usize::try_from(FLOW_WINDOW_BYTES).ok())
        .datagram_send_buffer_size(1 << 20)
        .ack_frequency_config(Some(rare));
    Arc::new(transport)
}

fn endpoint(address: SocketAddr, server: Option<ServerConfig>) -> Result<Endpoint, Failure> {
    let socket = UdpSocket::bind(address)?;
    let options = SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    options.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    let runtime = Arc::new(TokioRuntime);
    Ok(Endpoint::new(EndpointConfig::default(), server, socket, runtime)?)
}

/// An endpoint that others can connect to, once it has said so.
fn listener(order: &Order) -> Result<Endpoint, Failure> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(failure)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let certificate = CertificateDer::from(made.cert);
    std::fs::write(certificate_path(order.address)?, &certificate)?;
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failure)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .map_err(failure)?;
    let quic = QuicServerConfig::try_from(tls).map_err(failure)?;
    let mut server = ServerConfig::with_crypto(Arc::new(quic));
    server.transport_config(transport());
    let endpoint = endpoint(order.address, Some(server))?;
    say_ready()?;
    Ok(endpoint)
}

fn accept(endpoint: &Endpoint) -> impl Future<Output = Result<Connection, Failure>> {
    async move {
        let incoming = tokio::time::timeout(PATIENCE, endpoint.accept()).await.map_err(failure)?;
        let incoming = incoming.ok_or_else(|| Failure("the endpoint is closed".into()))?;
        incoming.await.map_err(failure)
    }
}

fn listen(order: &Order) -> impl Future<Output = Result<(Endpoint, Connection), Failure>> {
    async move {
        let endpoint = listener(order)?;
        let connection = accept(&endpoint).await?;
        Ok((endpoint, connection))
    }
}

/// An endpoint that connects to others; `resumes` says whether by what it knows of them.
fn caller(order: &Order, resumes: bool) -> Result<Endpoint, Failure> {
    let certificate = CertificateDer::from(std::fs::read(certificate_path(order.address)?)?);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).map_err(failure)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failure)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if !resumes {
        tls.resumption = rustls::client::Resumption::disabled();
    }
    let quic = QuicClientConfig::try_from(tls).map_err(failure)?;
    let mut client = ClientConfig::new(Arc::new(quic));
    client.transport_config(transport());
    let any = if order.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut endpoint = endpoint(any.parse().map_err(failure)?, None)?;
    endpoint.set_default_client_config(client);
    Ok(endpoint)
}

fn connect(
    endpoint: &Endpoint,
    order: &Order,
) -> impl Future<Output = Result<Connection, Failure>> {
    async move {
        let connecting = endpoint.connect(order.address, NAME).map_err(failure)?;
        let connected = tokio::time::timeout(PATIENCE, connecting).await.map_err(failure)?;
        connected.map_err(failure)
    }
}

fn call(order: &Order) -> impl Future<Output = Result<(Endpoint, Connection), Failure>> {
    async move {
        let endpoint = caller(order, true)?;
        let connection = connect(&endpoint, order).await?;
        Ok((endpoint, connection))
    }
}

/// Answers a message on each connection; the last leaves time for its answer to arrive.
fn setup_echo(order: &Order) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let endpoint = listener(order)?;
        let mut message = vec![0; order.size];
        while message[0] != LAST {
            let connection = accept(&endpoint).await?;
            let (mut there, mut back) = connection.accept_bi().await.map_err(failure)?;
            if read_whole(&mut back, &mut message).await? {
                there.write_all(&message).await.map_err(failure)?;
            }
            // The other end closes once it has the answer.
            let _ = tokio::time::timeout(PATIENCE, connection.closed()).await;
        }
        Ok(json!({ "role": "echo" }))
    }
}

fn setup_ping(order: &Order) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let endpoint = caller(order, order.kind == "resume")?;
        let mut message = vec![7; order.size];
        let mut round_trips = RoundTrips::new(order.window);
        loop {
            let sent = Instant::now();
            let connection = connect(&endpoint, order).await?;
            let (mut there, mut back) = connection.open_bi().await.map_err(failure)?;
            there.write_all(&message).await.map_err(failure)?;
            if !read_whole(&mut back, &mut message).await? {
                return Err(Failure("the other end left".to_owned()));
            }
            let is_more = round_trips.book(sent);
            connection.close(VarInt::from_u32(0), b"");
            if message[0] == LAST {
                // That it is over goes out before this process does.
                let _ = tokio::time::timeout(Duration::from_millis(50), endpoint.wait_idle()).await;
                return Ok(round_trips.report(false));
            }
            if !is_more {
                message[0] = LAST;
            }
        }
    }
}

fn stream_sink(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let mut stream = connection.accept_uni().await.map_err(failure)?;
        let mut window = Window::new(order.window);
        let mut chunks: [Bytes; 64] = std::array::from_fn(|_| Bytes::new());
        loop {
            let Some(count) = stream.read_chunks(&mut chunks).await.map_err(failure)? else {
                return Err(Failure("the source left before the window was over".to_owned()));
            };
            let len = chunks[..count].iter().map(Bytes::len).sum();
            if !window.count(len, 1, 0) {
                return window.report("sink");
            }
        }
    }
}

fn stream_source(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let mut stream = connection.open_uni().await.map_err(failure)?;
        let message = Bytes::from(vec![7; order.size]);
        let mut window = Window::new(order.window);
        while !window.is_past_grace() {
            // The sink leaves when its window is over.
            if stream.write_chunk(message.clone()).await.is_err() {
                break;
            }
            window.count(order.size, 1, 0);
        }
        window.end();
        window.report("source")
    }
}

fn datagram_sink(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let mut window = Window::new(order.window);
        loop {
            let datagram = connection.read_datagram().await.map_err(failure)?;
            if !window.count(datagram.len(), 1, 0) {
                return window.report("sink").map(unnumbered);
            }
        }
    }
}

fn datagram_source(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let message = Bytes::from(vec![7; order.size]);
        let mut window = Window::new(order.window);
        while !window.is_past_grace() {
            match connection.send_datagram_wait(message.clone()).await {
                Ok(()) => window.count(order.size, 1, 0),
                Err(quinn::SendDatagramError::ConnectionLost(_)) => break,
                Err(error) => return Err(failure(error)),
            };
        }
        window.end();
        window.report("source")
    }
}

/// Receives a whole message; false when the stream is over.
fn read_whole(
    stream: &mut RecvStream,
    message: &mut [u8],
) -> impl Future<Output = Result<bool, Failure>> {
    async move {
        match stream.read_exact(message).await {
            Ok(()) => Ok(true),
            Err(quinn::ReadExactError::FinishedEarly(_)) => Ok(false),
            Err(error) => Err(failure(error)),
        }
    }
}

fn stream_echo(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let (mut there, mut back) = connection.accept_bi().await.map_err(failure)?;
        let mut message = vec![0; order.size];
        while read_whole(&mut back, &mut message).await.unwrap_or(false) {
            there.write_all(&message).await.map_err(failure)?;
        }
        Ok(json!({ "role": "echo" }))
    }
}

fn stream_ping(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let (mut there, mut back): (SendStream, RecvStream) =
            connection.open_bi().await.map_err(failure)?;
        let mut message = vec![7; order.size];
        let mut round_trips = RoundTrips::new(order.window);
        loop {
            let sent = Instant::now();
            there.write_all(&message).await.map_err(failure)?;
            if !read_whole(&mut back, &mut message).await? {
                return Err(Failure("the other end left".to_owned()));
            }
            if !round_trips.book(sent) {
                return Ok(round_trips.report(false));
            }
        }
    }
}

fn datagram_echo(connection: &Connection) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        while let Ok(message) = connection.read_datagram().await {
            connection.send_datagram(message).map_err(failure)?;
        }
        Ok(json!({ "role": "echo" }))
    }
}

fn datagram_ping(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let message = Bytes::from(vec![7; order.size]);
        let mut round_trips = RoundTrips::new(order.window);
        loop {
            let sent = Instant::now();
            connection.send_datagram(message.clone()).map_err(failure)?;
            let back = tokio::time::timeout(PATIENCE, connection.read_datagram()).await;
            back.map_err(failure)?.map_err(failure)?;
            if !round_trips.book(sent) {
                return Ok(round_trips.report(false));
            }
        }
    }
}
