//! QUIC frames that no library makes, in packets that are opened: before somebody is let in, and
//! after.

use crate::input::Input;
use crate::rig::peer::Peer;
use crate::rig::{Rig, packet, ports};
use dacapo_wire::hub::Hello;
use std::time::Duration;

/// What a core may hold beside its pool for one connection, whatever came by it, in bytes: the
/// windows of its streams, and as much again for bookkeeping.
pub const CONNECTION_MAX: i64 = 1 << 20;

/// What a core keeps when nobody is there: room in maps and queues that were larger once.
pub const KEPT_MAX: i64 = 256 << 10;

/// Longer than anything is waited for.
const LONG: Duration = Duration::from_secs(420);

/// One byte chooses before or after; then packets of frames, and time.
pub fn quic(data: &[u8]) {
    let mut input = Input(data);
    let is_let_in = input.u8() % 2 == 1;
    let mut rig = Rig::new(1);
    ports::publish(&mut rig);
    let mut peer = Peer::client(&rig, 66, 1);
    if is_let_in {
        greet(&mut rig, &mut peer);
    }
    let mut number = 0;
    while !input.is_empty() {
        match input.u8() {
            time @ 0xF0..=0xFF => rig.pass(Duration::from_millis(1 << (time - 0xF0))),
            _ => {
                let frames = input.piece();
                let bytes = if is_let_in {
                    peer.sealed(frames)
                } else {
                    number += 1;
                    Some(packet::initial(&[9; 8], &[7; 8], &[], number, frames))
                };
                bytes.iter().for_each(|bytes| rig.handle_frames(peer.control, bytes, frames));
                rig.settle();
            }
        }
        rig.take_sent();
        let most = 2 * rig.meter.received as i64 + CONNECTION_MAX;
        assert!(rig.meter.live <= most, "{} bytes are held: {:?}", rig.meter.live, rig.meter);
    }
    rig.pass(LONG);
    rig.check_empty(KEPT_MAX);
}

/// Connects and says HELLO; the hub's stream.
pub fn greet(rig: &mut Rig, peer: &mut Peer) -> Option<quinn_proto::StreamId> {
    peer.talk(rig);
    assert!(peer.connected, "the core takes a connection: {:?}", peer.lost);
    let hub = peer.open()?;
    peer.say(hub, Hello { version_min: 1, version_max: 1, ..Hello::default() });
    peer.talk(rig);
    Some(hub)
}

/// Every type of frame once, in a plausible form, and some of no type.
fn frames() -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = (0..=0x1E)
        .map(|kind: u8| {
            [&[kind], &[0, 4, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12][..]].concat()
        })
        .collect();
    frames.push(packet::crypto(5, b"out of order"));
    frames.push(packet::stream(0, 9, &[0, 4, 0, 0]));
    frames.push([packet::var(0x4021), vec![1, 2, 3]].concat());
    frames.push([packet::var(0x1234_5678), vec![0; 8]].concat());
    // An acknowledgement of packets that were never sent.
    frames.push([vec![0x02], packet::var(900), vec![0, 0, 9]].concat());
    frames
}

/// The frames, before and after.
pub fn quic_seeds() -> Vec<Vec<u8>> {
    let script = |is_let_in: u8, frames: &[Vec<u8>]| {
        let mut script = vec![is_let_in];
        for frame in frames {
            script.extend_from_slice(&[0, frame.len() as u8]);
            script.extend_from_slice(frame);
        }
        script.extend_from_slice(&[0xF8]);
        script
    };
    let frames = frames();
    let mut seeds: Vec<Vec<u8>> = frames.chunks(4).map(|some| script(1, some)).collect();
    seeds.extend(frames.chunks(9).map(|some| script(0, some)));
    seeds
}
