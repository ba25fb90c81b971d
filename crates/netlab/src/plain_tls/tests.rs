//! Whole connections over the stand-in in virtual time: it carries, it repeats, it withstands.

mod world;

use std::sync::Arc;

use dacapo_base::Random;
use quinn_proto::crypto::Session;
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionError, Side, TransportError};

use super::config::Config;
use super::{client_config, peer_identity, server_config};
use world::{CLIENT, Link, SERVER, World};

const MEGABYTE: usize = 1 << 20;

#[test]
fn a_handshake_completes_and_shows_each_side_the_other() {
    let mut world = World::new(1, Link::CLEAN);
    world.run_until_connected();
    let [client, server] = &mut world.hosts;
    assert_eq!(peer_identity(client.session().peer_identity().unwrap()), Some([0xb; 32]));
    assert_eq!(peer_identity(server.session().peer_identity().unwrap()), Some([0xa; 32]));
    let secret = |session: &dyn Session, label: &[u8], context: &[u8]| {
        let mut secret = [0; 40];
        session.export_keying_material(&mut secret, label, context).unwrap();
        secret
    };
    let exported = secret(client.session(), b"label", b"context");
    assert_eq!(exported, secret(server.session(), b"label", b"context"));
    assert_ne!(exported, secret(server.session(), b"other", b"context"));
    assert_ne!(exported, secret(server.session(), b"label", b"other"));
    let data = server.session().handshake_data().unwrap();
    let data = data.downcast::<quinn_proto::crypto::rustls::HandshakeData>().unwrap();
    assert_eq!(data.protocol.as_deref(), Some(super::ALPN));
    assert_eq!(data.server_name.as_deref(), Some("peer"));
}

#[test]
fn the_handshake_takes_one_round_trip_and_the_datagrams_of_tls() {
    let mut world = World::new(2, Link::CLEAN);
    world.run_until_connected();
    let datagrams: Vec<_> = world.trace.iter().map(|sent| (sent.from, sent.bytes.len())).collect();
    // Hello, padded; reply and flight in one datagram, padded; identity and finished.
    assert_eq!(datagrams[..3], [(CLIENT, 1200), (SERVER, 1200), (CLIENT, 1200)]);
}

#[test]
fn a_megabyte_each_way_arrives_at_ten_percent_loss() {
    for seed in 0..10 {
        let mut world = World::new(seed, Link { loss: 0.1, ..Link::CLEAN });
        world.transfer(MEGABYTE);
        assert!(world.lost > 100, "seed {seed}: only {} lost", world.lost);
    }
}

#[test]
fn the_same_seed_gives_the_same_datagrams_and_another_seed_others() {
    let run = |seed, retry| {
        let flips = if retry { 0.0 } else { 0.02 };
        let mut world = World::new(seed, Link { loss: 0.1, flips });
        world.retry = retry;
        world.transfer(MEGABYTE);
        world.trace
    };
    for (seed, retry) in [(0, false), (1, false), (2, true), (3, true)] {
        // Not assert_eq: a difference would print megabytes.
        let (one, again) = (run(seed, retry), run(seed, retry));
        let at = one.iter().zip(&again).position(|(one, again)| one != again);
        assert_eq!((at, one.len()), (None, again.len()), "seed {seed}");
    }
    assert!(run(1, false) != run(2, false));
}

#[test]
fn flipped_bits_neither_end_a_connection_nor_reach_a_stream() {
    for seed in 0..10 {
        let mut world = World::new(seed, Link { flips: 0.1, ..Link::CLEAN });
        world.transfer(MEGABYTE);
        assert!(world.flipped > 100, "seed {seed}: only {} flipped", world.flipped);
    }
}

#[test]
fn keys_are_updated_under_loss_without_a_gap() {
    for seed in 0..5 {
        let mut world = World::new(seed, Link { loss: 0.05, ..Link::CLEAN });
        world.key_updates = true;
        world.transfer(MEGABYTE);
        for from in [CLIENT, SERVER] {
            let phases: Vec<bool> = world.key_phases(from).collect();
            let changes = phases.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes >= 4, "seed {seed}, host {from}: {changes} key updates");
        }
    }
}

#[test]
fn a_retry_is_believed_and_its_token_too() {
    for seed in 0..10 {
        let mut world = World::new(seed, Link { loss: 0.1, ..Link::CLEAN });
        world.retry = true;
        world.transfer(10_000);
        assert!(world.retries > 0, "seed {seed}");
    }
}

#[test]
fn another_application_protocol_is_refused() {
    let mut world = World::with(
        3,
        Link::CLEAN,
        Arc::new(Config::new([0xa; 32], b"h3")),
        server_config([0xb; 32]),
    );
    world.run_until(|world| world.hosts[CLIENT].lost.is_some());
    let Some(ConnectionError::ConnectionClosed(close)) = &world.hosts[CLIENT].lost else {
        panic!("{:?}", world.hosts[CLIENT].lost)
    };
    assert_eq!(u64::from(close.error_code), 0x100 + 120);
}

/// Transport parameters without any.
fn no_params() -> TransportParameters {
    TransportParameters::read(Side::Client, &mut &[][..]).unwrap()
}

fn sessions() -> [Box<dyn Session>; 2] {
    let client = client_config([0xa; 32]).start_session(1, "peer", &no_params()).unwrap();
    [client, server_config([0xb; 32]).start_session(1, &no_params())]
}

/// Lets both talk until both are silent; `alter` sees every flight.
fn talk(
    sessions: &mut [Box<dyn Session>; 2],
    mut alter: impl FnMut(&mut Vec<u8>),
) -> Result<(), TransportError> {
    for turn in 0..8 {
        let (from, to) = (turn % 2, (turn + 1) % 2);
        loop {
            let mut flight = Vec::new();
            let keys = sessions[from].write_handshake(&mut flight);
            if flight.is_empty() && keys.is_none() {
                break;
            }
            alter(&mut flight);
            sessions[to].read_handshake(&flight)?;
        }
    }
    Ok(())
}

#[test]
fn a_handshake_in_single_bytes_completes() {
    let mut sessions = sessions();
    for turn in 0..6 {
        let (from, to) = (turn % 2, (turn + 1) % 2);
        for _ in 0..3 {
            let mut flight = Vec::new();
            sessions[from].write_handshake(&mut flight);
            for byte in flight {
                sessions[to].read_handshake(&[byte]).unwrap();
            }
        }
    }
    assert!(sessions.iter().all(|session| !session.is_handshaking()));
}

#[test]
fn nothing_is_exported_or_updated_before_the_handshake_ends() {
    let mut sessions = sessions();
    let mut secret = [0; 32];
    for session in &mut sessions {
        assert!(session.export_keying_material(&mut secret, b"", b"").is_err());
        assert!(session.next_1rtt_keys().is_none());
        assert!(session.peer_identity().is_none());
        assert!(session.handshake_data().is_none());
    }
    talk(&mut sessions, |_| {}).unwrap();
    for session in &mut sessions {
        assert!(session.export_keying_material(&mut secret, b"", b"").is_ok());
        assert!(session.export_keying_material(&mut vec![0; 9_000], b"", b"").is_err());
        assert!(session.next_1rtt_keys().is_some());
    }
}

#[test]
fn a_message_after_the_handshake_is_an_error() {
    let mut sessions = sessions();
    talk(&mut sessions, |_| {}).unwrap();
    for session in &mut sessions {
        let again = super::message::Message::Identity([0xc; 32]).encode();
        let error = session.read_handshake(&again).unwrap_err();
        assert_eq!(u64::from(error.code), 0x100 + 10);
        assert_ne!(session.peer_identity().and_then(peer_identity), Some([0xc; 32]));
    }
}

#[test]
fn no_altered_handshake_completes_and_none_panics() {
    for seed in 0..5_000 {
        let mut random = Random::from_number(seed);
        let mut sessions = sessions();
        let (mut left, mut altered) = (random.below(4), false);
        let result = talk(&mut sessions, |flight| {
            if left == 0 && !flight.is_empty() {
                let at = random.below(flight.len() as u64) as usize;
                match random.below(3) {
                    0 => flight[at] ^= 1 << random.below(8),
                    1 => flight.truncate(at),
                    _ => flight.insert(at, !flight[at]),
                }
                altered = true;
            }
            left = left.wrapping_sub(1);
        });
        let done = sessions.iter().all(|session| !session.is_handshaking());
        assert!(!altered || result.is_err() || !done, "seed {seed}");
    }
}

#[test]
fn no_bytes_make_a_session_panic_or_keep_much() {
    for seed in 0..5_000 {
        let mut random = Random::from_number(seed);
        for mut session in sessions() {
            for _ in 0..20 {
                let mut bytes = vec![0; random.below(1_500) as usize];
                random.fill(&mut bytes);
                // A length that is believed now and then, so that waiting is tried too.
                if let Some(high) = bytes.get_mut(1) {
                    *high &= 0x07;
                }
                if session.read_handshake(&bytes).is_err() {
                    break;
                }
            }
            assert!(session.is_handshaking(), "seed {seed}");
        }
    }
}

#[test]
fn versions_and_names_that_tls_refuses_are_refused() {
    let start = |version, name: &str| {
        client_config([0xa; 32]).start_session(version, name, &no_params()).is_ok()
    };
    assert!(start(1, "peer"));
    assert!(!start(0x0a0a_0a0a, "peer"));
    assert!(!start(1, "") && !start(1, &"a".repeat(256)));
    let id = quinn_proto::ConnectionId::new(&[1; 8]);
    let config = server_config([0xb; 32]);
    assert!(config.initial_keys(1, &id).is_ok());
    assert!(config.initial_keys(0x0a0a_0a0a, &id).is_err());
}

#[test]
fn an_identity_of_another_kind_is_none_of_ours() {
    assert_eq!(peer_identity(Box::new([1_u8; 32])), Some([1; 32]));
    assert_eq!(peer_identity(Box::new(vec![1_u8; 32])), None);
}
