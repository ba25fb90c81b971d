//! What the tests of advisories share: a core that serves, somebody who breaks the rules, and an
//! honest participant who must not notice.
#![allow(dead_code, reason = "each test file uses its part")]

use dacapo_fuzz::oracle::limit;
pub use dacapo_fuzz::rig::peer::answer;
use dacapo_fuzz::rig::peer::{Peer, extend};
use dacapo_fuzz::rig::{Rig, ports};
use dacapo_fuzz::targets::core_quic::greet;
use dacapo_wire::hub::Welcome;
use dacapo_wire::message::Message;
use dacapo_wire::session::{Activate, Join};
use quinn_proto::StreamId;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A core that serves the sessions of a rig.
pub fn serving() -> Rig {
    let mut rig = Rig::new(1);
    ports::publish(&mut rig);
    rig
}

/// An address that nobody has proved.
pub fn somebody(number: u16) -> SocketAddr {
    let [a, b] = number.to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(198, 51, a, b), 4_000))
}

/// Somebody who was let in: hub and welcome.
pub fn let_in(rig: &mut Rig, host: u8) -> (Peer, StreamId, Welcome) {
    let mut peer = Peer::client(rig, host, host.into());
    let hub = greet(rig, &mut peer).expect("the first stream");
    match peer.next(hub) {
        Some(Message::Welcome(welcome)) => (peer, hub, welcome),
        other => panic!("no WELCOME but {other:?}"),
    }
}

/// A session that is agreed: its stream, transcript, and the labels of the core.
pub fn ready(rig: &mut Rig, peer: &mut Peer, name: &str) -> (StreamId, [u8; 32], Vec<u32>) {
    let stream = peer.open().expect("a stream");
    peer.say(stream, Join { name: name.into(), ..Join::default() });
    peer.talk(rig);
    let offer = match peer.next(stream) {
        Some(Message::Offer(offer)) => offer,
        other => panic!("no OFFER but {other:?}"),
    };
    let answer = answer(offer.flows.len());
    let transcript = extend(extend([0; 32], &offer.into()), &answer.clone().into());
    peer.say(stream, answer);
    peer.talk(rig);
    match peer.next(stream) {
        Some(Message::Accept(accept)) => {
            (stream, transcript, accept.flows.iter().map(|flow| flow.label).collect())
        }
        other => panic!("no ACCEPT but {other:?}"),
    }
}

/// The same, with its flows running.
pub fn active(rig: &mut Rig, peer: &mut Peer, name: &str) -> (StreamId, [u8; 32], Vec<u32>) {
    let ready = ready(rig, peer, name);
    peer.say(ready.0, Activate { request: 1 });
    peer.talk(rig);
    let next = peer.next(ready.0);
    assert!(matches!(next, Some(Message::Activated(_))), "no ACTIVATED but {next:?}");
    ready
}

/// An honest participant is let in and gets its session, whatever was done to the core.
pub fn check_serves(rig: &mut Rig, host: u8) {
    let (mut peer, ..) = let_in(rig, host);
    active(rig, &mut peer, "up");
    peer.close(rig);
    peer.talk(rig);
}

/// The code with which a stream or its session was ended by the core.
pub fn told(peer: &mut Peer, stream: StreamId) -> Option<u64> {
    let read = peer.streams.get(&stream)?;
    let said = read.records.iter().find_map(|record| match record {
        Message::Close(close) => Some(u64::from(close.code)),
        Message::Refuse(refuse) => Some(u64::from(refuse.code)),
        _ => None,
    });
    said.or(read.ended.flatten())
}

/// After everybody has gone and the longest time has passed nothing is left.
pub fn check_empty(rig: &mut Rig) {
    rig.pass(Duration::from_secs(30));
    rig.pass(Duration::from_secs(420));
    rig.check_empty(256 << 10);
}

/// What was kept since `before` is justified by the bytes that came since.
pub fn check_held(rig: &Rig, before: dacapo_fuzz::rig::Meter, free: i64) {
    let received = rig.meter.received - before.received;
    let held = rig.meter.live - before.live;
    let most = limit(received) as i64 + free;
    assert!(held <= most, "{held} bytes are held for {received}, at most {most}: {:?}", rig.meter);
}
