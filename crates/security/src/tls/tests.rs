//! Two quinn-proto endpoints in virtual time with real TLS: who is let in, and what both see.

#![allow(clippy::arithmetic_side_effects)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
};

use super::*;
use crate::endpoint_keys;
use crate::identity::{certify, new_key};

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1001);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1002);

/// One endpoint with at most one connection.
struct Host {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    connected: bool,
    lost: Option<ConnectionError>,
}

impl Host {
    fn new(server: Option<Arc<dyn ServerConfig>>) -> Self {
        let keys = endpoint_keys(&[7; 64]);
        let server =
            server.map(|crypto| Arc::new(quinn_proto::ServerConfig::new(crypto, keys.token)));
        let config = Arc::new(EndpointConfig::new(keys.reset));
        let endpoint = Endpoint::new(config, server, false, None);
        Self { endpoint, connection: None, connected: false, lost: None }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("no connection").1
    }

    fn session(&mut self) -> &dyn quinn_proto::crypto::Session {
        self.connection().crypto_session()
    }

    fn peer(&mut self) -> Option<Fingerprint> {
        peer_fingerprint(self.session().peer_identity()?)
    }

    /// Takes a datagram; a first one is accepted.
    fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Vec<Vec<u8>> {
        let mut answer = Vec::new();
        match self.endpoint.handle(now, from, None, None, datagram.into(), &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut answer, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => self.lost = Some(error.cause),
                }
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.connection().handle_event(event);
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
        if answer.is_empty() { Vec::new() } else { vec![answer] }
    }

    /// What the connection wants to send now, after its events were seen.
    fn poll(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let Some((handle, connection)) = &mut self.connection else { return Vec::new() };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                _ => {}
            }
        }
        let mut datagrams = Vec::new();
        let mut datagram = Vec::new();
        while connection.poll_transmit(now, 1, &mut datagram).is_some() {
            datagrams.push(std::mem::take(&mut datagram));
        }
        datagrams
    }
}

/// Runs a handshake for one virtual second, 10 ms each way.
fn shake(client: Arc<dyn ClientConfig>, server: Arc<dyn ServerConfig>) -> (Host, Host) {
    let (mut one, mut two) = (Host::new(None), Host::new(Some(server)));
    let mut now = Instant::now();
    let config = quinn_proto::ClientConfig::new(client);
    one.connection = Some(one.endpoint.connect(now, config, SERVER, "dacapo").unwrap());
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        now += Duration::from_millis(10);
        for host in [&mut one, &mut two] {
            if let Some((_, connection)) = &mut host.connection
                && connection.poll_timeout().is_some_and(|at| at <= now)
            {
                connection.handle_timeout(now);
            }
        }
        let arrived = std::mem::replace(&mut to_server, one.poll(now));
        for datagram in &arrived {
            to_client.extend(two.handle(now, CLIENT, datagram));
        }
        let arrived = std::mem::replace(&mut to_client, two.poll(now));
        for datagram in &arrived {
            to_server.extend(one.handle(now, SERVER, datagram));
        }
    }
    (one, two)
}

/// A client configuration before it is decided what it presents.
fn client_builder() -> rustls::ConfigBuilder<rustls::ClientConfig, rustls::client::WantsClientCert>
{
    rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Server { only: None }))
}

/// A client configuration that presents no certificate.
fn anonymous() -> Arc<dyn ClientConfig> {
    let mut config = client_builder().with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    Arc::new(QuicClientConfig::try_from(config).unwrap())
}

/// The certificate of one key with the signatures of another.
fn impostor(victim: &Identity) -> Arc<CertifiedKey> {
    let own = certify(&new_key().unwrap()).unwrap();
    let certificate = CertificateDer::from(victim.certificate_der().to_vec());
    Arc::new(CertifiedKey::new(vec![certificate], own.key.clone()))
}

fn alert(host: &Host) -> Option<u64> {
    match &host.lost {
        Some(ConnectionError::TransportError(error)) => Some(error.code.into()),
        Some(ConnectionError::ConnectionClosed(close)) => Some(close.error_code.into()),
        _ => None,
    }
}

const CRYPTO_ERROR: u64 = 0x100;

#[test]
fn both_sides_see_the_fingerprint_of_the_other() {
    let (ours, theirs) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (mut client, mut server) = shake(client_crypto(&ours), server_crypto(&theirs));
    assert!(client.connected && server.connected, "{:?} {:?}", client.lost, server.lost);
    assert_eq!(client.peer(), Some(theirs.fingerprint()));
    assert_eq!(server.peer(), Some(ours.fingerprint()));
}

#[test]
fn the_exporter_gives_both_sides_the_same_secret_and_every_session_another() {
    let (ours, theirs) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let secret = |host: &mut Host, label: &[u8]| {
        let mut secret = [0; 32];
        host.session().export_keying_material(&mut secret, label, b"flow 1").unwrap();
        secret
    };
    let (mut client, mut server) = shake(client_crypto(&ours), server_crypto(&theirs));
    assert_eq!(secret(&mut client, b"dacapo a"), secret(&mut server, b"dacapo a"));
    assert_ne!(secret(&mut client, b"dacapo a"), secret(&mut client, b"dacapo b"));
    let (mut later, _) = shake(client_crypto(&ours), server_crypto(&theirs));
    assert_ne!(secret(&mut client, b"dacapo a"), secret(&mut later, b"dacapo a"));
}

#[test]
fn no_session_has_early_data_or_names_a_server() {
    let (ours, theirs) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    for _ in 0..2 {
        let (mut client, mut server) = shake(client_crypto(&ours), server_crypto(&theirs));
        assert!(client.session().early_crypto().is_none());
        assert_eq!(client.session().early_data_accepted(), Some(false));
        let data = server.session().handshake_data().unwrap();
        let data = data.downcast::<quinn_proto::crypto::rustls::HandshakeData>().unwrap();
        assert_eq!(data.protocol.as_deref(), Some(ALPN));
        assert_eq!(data.server_name, None);
    }
}

#[test]
fn a_flow_goes_to_the_peer_that_was_named_and_to_nobody_else() {
    let [ours, theirs, others] = [(); 3].map(|()| Identity::generate().unwrap());
    let dial = || flow_client_crypto(&ours, theirs.fingerprint()).unwrap();
    let (mut client, mut server) = shake(dial(), flow_server_crypto(&theirs).unwrap());
    assert!(client.connected && server.connected, "{:?} {:?}", client.lost, server.lost);
    assert_eq!(client.peer(), Some(theirs.fingerprint()));
    assert_eq!(server.peer(), Some(ours.fingerprint()));
    let (client, server) = shake(dial(), flow_server_crypto(&others).unwrap());
    assert!(!client.connected && !server.connected);
    let said = format!("{:?}", client.lost);
    assert!(said.contains("not that of the peer of the control connection"), "{said}");
}

#[test]
fn flows_and_control_are_not_taken_for_each_other() {
    let (ours, theirs) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let flow = flow_client_crypto(&ours, theirs.fingerprint()).unwrap();
    for (client, server) in [
        (flow, server_crypto(&theirs)),
        (client_crypto(&ours), flow_server_crypto(&theirs).unwrap()),
    ] {
        let (client, server) = shake(client, server);
        assert!(!client.connected && !server.connected);
        assert_eq!(alert(&client), Some(CRYPTO_ERROR + 120), "{:?}", client.lost);
    }
}

#[test]
fn another_application_protocol_is_refused() {
    let (ours, theirs) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let other = client_config(certify(&new_key().unwrap()).unwrap(), b"h3", None).unwrap();
    let (client, server) = shake(Arc::new(other), server_crypto(&theirs));
    assert!(!client.connected && !server.connected);
    // no_application_protocol
    assert_eq!(alert(&client), Some(CRYPTO_ERROR + 120), "{:?}", client.lost);
    let other = server_config(certify(&new_key().unwrap()).unwrap(), b"h3").unwrap();
    let (client, server) = shake(client_crypto(&ours), Arc::new(other));
    assert!(!client.connected && !server.connected);
    assert_eq!(alert(&client), Some(CRYPTO_ERROR + 120), "{:?}", client.lost);
}

#[test]
fn a_client_that_names_no_application_protocol_is_refused() {
    let theirs = Identity::generate().unwrap();
    let key = certify(&new_key().unwrap()).unwrap();
    let silent = client_builder().with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    let silent = QuicClientConfig::try_from(silent).unwrap();
    let (client, server) = shake(Arc::new(silent), server_crypto(&theirs));
    assert!(!client.connected && !server.connected);
    assert_eq!(alert(&client), Some(CRYPTO_ERROR + 120), "{:?}", client.lost);
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let theirs = Identity::generate().unwrap();
    let (client, mut server) = shake(anonymous(), server_crypto(&theirs));
    assert!(!server.connected);
    assert_eq!(server.peer(), None);
    // certificate_required
    assert_eq!(alert(&server), Some(CRYPTO_ERROR + 116), "{:?}", server.lost);
    assert!(client.lost.is_some());
}

#[test]
fn a_client_with_the_certificate_of_another_is_refused() {
    let (victim, theirs) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let forged = client_config(impostor(&victim), ALPN, None).unwrap();
    let (_, server) = shake(Arc::new(forged), server_crypto(&theirs));
    assert!(!server.connected);
    // decrypt_error: the signature over the transcript does not verify
    assert_eq!(alert(&server), Some(CRYPTO_ERROR + 51), "{:?}", server.lost);
}

#[test]
fn a_server_with_the_certificate_of_another_is_refused() {
    let (victim, ours) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let forged = server_config(impostor(&victim), ALPN).unwrap();
    let (client, server) = shake(client_crypto(&ours), Arc::new(forged));
    assert!(!client.connected && !server.connected);
    assert_eq!(alert(&client), Some(CRYPTO_ERROR + 51), "{:?}", client.lost);
}

#[test]
fn only_a_single_well_formed_ed25519_certificate_is_looked_at() {
    let identity = Identity::generate().unwrap();
    let good = CertificateDer::from(identity.certificate_der().to_vec());
    assert!(AnyPeer::check(&good, &[]).is_ok());
    assert!(AnyPeer::check(&good, std::slice::from_ref(&good)).is_err());

    let ecdsa = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let ecdsa = rcgen::CertificateParams::default().self_signed(&ecdsa).unwrap();
    assert!(AnyPeer::check(ecdsa.der(), &[]).is_err());

    let mut long = identity.certificate_der().to_vec();
    long.resize(CERTIFICATE_LEN_MAX + 1, 0);
    assert!(AnyPeer::check(&long.into(), &[]).is_err());
}

#[test]
fn no_damage_to_a_certificate_panics() {
    let identity = Identity::generate().unwrap();
    for seed in 0..2_000 {
        let mut random = dacapo_base::Random::from_number(seed);
        let mut der = identity.certificate_der().to_vec();
        der.truncate(1 + random.below(der.len() as u64) as usize);
        for _ in 0..=random.below(4) {
            let at = random.below(der.len() as u64) as usize;
            der[at] = random.next_u32() as u8;
        }
        let result = fingerprint_of(&CertificateDer::from(der.clone()));
        // The key or what surrounds it may still be whole; what is cut is never accepted.
        let whole = der.len() == identity.certificate_der().len();
        assert!(whole || result.is_err(), "seed {seed}");
    }
}

#[test]
fn a_peer_identity_of_another_kind_has_no_fingerprint() {
    assert_eq!(peer_fingerprint(Box::new([0_u8; 32])), None);
    assert_eq!(peer_fingerprint(Box::new(Vec::<CertificateDer<'static>>::new())), None);
    let broken = vec![CertificateDer::from(vec![0x30, 0x00])];
    assert_eq!(peer_fingerprint(Box::new(broken)), None);
}
