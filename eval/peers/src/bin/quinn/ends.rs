//! The two ends of a connection: one that listens, and leaves its certificate in a file, and one
//! that calls it.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use peers::{Failure, Order, PATIENCE, SOCKET_BUFFER_BYTES, say_ready};
use quinn::congestion::BbrConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    AckFrequencyConfig, ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream,
    ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use socket2::SockRef;

/// What a UDP datagram holds at an MTU of 1500 bytes.
const DATAGRAM_BYTES: u16 = 1472;
/// How much may be on its way.
const FLOW_WINDOW_BYTES: u32 = 32 << 20;
/// The name in the certificate.
const NAME: &str = "peer";

/// What went wrong, in the words of who noticed it.
pub fn failure(error: impl std::fmt::Display) -> Failure {
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

fn transport(order: &Order) -> Arc<TransportConfig> {
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
    if order.kind == "stream-bbr" {
        transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
    }
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
pub fn listener(order: &Order) -> Result<Endpoint, Failure> {
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
    server.transport_config(transport(order));
    let endpoint = endpoint(order.address, Some(server))?;
    say_ready()?;
    Ok(endpoint)
}

/// The next connection that comes.
pub fn accept(endpoint: &Endpoint) -> impl Future<Output = Result<Connection, Failure>> {
    async move {
        let incoming = tokio::time::timeout(PATIENCE, endpoint.accept()).await.map_err(failure)?;
        let incoming = incoming.ok_or_else(|| Failure("the endpoint is closed".into()))?;
        incoming.await.map_err(failure)
    }
}

/// One that listens, and the connection that came to it.
pub fn listen(order: &Order) -> impl Future<Output = Result<(Endpoint, Connection), Failure>> {
    async move {
        let endpoint = listener(order)?;
        let connection = accept(&endpoint).await?;
        Ok((endpoint, connection))
    }
}

/// An endpoint that connects to others; `resumes` says whether by what it knows of them.
pub fn caller(order: &Order, resumes: bool) -> Result<Endpoint, Failure> {
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
    client.transport_config(transport(order));
    let any = if order.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut endpoint = endpoint(any.parse().map_err(failure)?, None)?;
    endpoint.set_default_client_config(client);
    Ok(endpoint)
}

/// A connection to who listens.
pub fn connect(
    endpoint: &Endpoint,
    order: &Order,
) -> impl Future<Output = Result<Connection, Failure>> {
    async move {
        let connecting = endpoint.connect(order.address, NAME).map_err(failure)?;
        let connected = tokio::time::timeout(PATIENCE, connecting).await.map_err(failure)?;
        connected.map_err(failure)
    }
}

/// One that calls, and its connection.
pub fn call(order: &Order) -> impl Future<Output = Result<(Endpoint, Connection), Failure>> {
    async move {
        let endpoint = caller(order, true)?;
        let connection = connect(&endpoint, order).await?;
        Ok((endpoint, connection))
    }
}

/// Receives a whole message; false when the stream is over.
pub fn read_whole(
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
