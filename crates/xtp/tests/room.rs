//! Room: a sender to whom nothing comes back is told of it when packets have left, and a peer to
//! whom the network has none holds up its own associations only.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::uut::{Uut, bytes, stream};
use dacapo_base::{Random, Time};
use dacapo_xtp::wire::{Body, Limits, Service};
use dacapo_xtp::{Config, Engine, Event, Message, Mode, Open, UserError};
use std::net::SocketAddr;

const LEN: usize = 300_000;

fn to_group() -> Open {
    let group: SocketAddr = ([239, 1, 2, 3], 4_040).into();
    Open::multicast(group, 5_000, ([192, 0, 2, 2], 4_000).into())
}

/// Writes [`LEN`] bytes when the unit says that there is room, and only then; what has left.
fn write_when_told(open: &Open) -> Vec<u8> {
    let mut uut = Uut::new(Config::default());
    let id = uut.engine.open(uut.now, open).unwrap();
    uut.id = Some(id);
    let data = bytes(LEN);
    let (mut written, mut left) = (uut.write(&data), Vec::new());
    assert!(written < LEN, "the buffer has less room");
    for _ in 0..10_000 {
        for sent in uut.take() {
            match sent.body() {
                Body::First(_, _, payload) | Body::Data(payload) => {
                    assert_eq!(sent.header().seq, left.len() as u64);
                    left.extend_from_slice(payload.data);
                }
                other => panic!("{other:?}"),
            }
        }
        let is_told = uut.events.drain(..).filter(|it| *it == Event::Writable(id)).count() > 0;
        if is_told {
            written += uut.write(&data[written..]);
        } else {
            // Only the rate may hold it up.
            assert!(written == LEN || open.mode.limits.out_rate > 0, "{written} of {LEN}");
            uut.pass_to_deadline();
        }
        if left.len() == LEN {
            break;
        }
    }
    assert_eq!(uut.write(b"more"), 4, "there is room");
    assert!(uut.take().len() == 1 && uut.events.is_empty(), "who lacks no room is told nothing");
    left
}

#[test]
fn who_sends_to_a_group_without_repair_is_told_of_room() {
    assert!(write_when_told(&to_group()) == bytes(LEN));
}

#[test]
fn who_sends_to_a_group_with_a_rate_is_told_of_room() {
    let limits = Limits { out_rate: 1_000_000, out_burst: 10_000, ..Limits::default() };
    let mode = Mode { limits, ..Mode::default() };
    assert!(write_when_told(&Open { mode, ..to_group() }) == bytes(LEN));
}

#[test]
fn who_sends_datagrams_is_told_of_room() {
    let config = Config { buffer_len: 2_000, ..Config::default() };
    let mut uut = Uut::new(config);
    let open = Open { service: Service::Datagram, ..stream() };
    let id = uut.engine.open(uut.now, &open).unwrap();
    uut.id = Some(id);
    let write = |uut: &mut Uut| -> Result<usize, UserError> {
        uut.engine.write(uut.now, id, &Message::whole(&bytes(1_200)))
    };
    assert_eq!((write(&mut uut), write(&mut uut)), (Ok(1_200), Ok(800)));
    assert!(!uut.take().is_empty());
    assert_eq!(uut.events, [Event::Writable(id)]);
    assert_eq!(write(&mut uut), Ok(1_200));
}

#[test]
fn a_peer_without_room_holds_up_its_own_associations_only() {
    let mut engine = Engine::new(Config::default(), Random::from_number(1));
    let peers: [SocketAddr; 2] = [1, 2].map(|host| ([192, 0, 2, host], 4_040).into());
    let ids = peers.map(|peer| {
        let open = Open { peer, service: Service::Datagram, ..stream() };
        engine.open(Time::ZERO, &open).unwrap()
    });
    let to = |engine: &mut Engine| -> Vec<SocketAddr> {
        std::iter::from_fn(|| engine.poll_packet(Time::ZERO, &mut Vec::new())).collect()
    };
    let write = |engine: &mut Engine| {
        ids.map(|id| engine.write(Time::ZERO, id, &Message::whole(b"datagram")).unwrap())
    };
    write(&mut engine);
    engine.set_capacity(Time::ZERO, peers[0], false);
    assert_eq!(to(&mut engine), [peers[1]]);
    write(&mut engine);
    assert_eq!(to(&mut engine), [peers[1]], "the other goes on");
    engine.set_capacity(Time::ZERO, peers[0], true);
    assert_eq!(to(&mut engine), [peers[0]; 2]);
}
