//! Streams over shared memory that come and go leave neither descriptors nor mappings. In a process
//! of its own, because it counts those of the whole process.

#![allow(clippy::unwrap_used)]

use dacapo_base::Time;
use dacapo_transport::conformance::Side;
use dacapo_transport::shm::{Config, Shm};
use dacapo_transport::{Outgoing, StreamTransport, TrafficClass, Transport};
use std::fs;
use std::net::SocketAddr;

/// Open descriptors, and mappings of shared memory.
fn held() -> [usize; 2] {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    [fs::read_dir("/proc/self/fd").unwrap().count(), maps.matches("memfd:dacapo").count()]
}

#[test]
fn two_thousand_streams_leave_nothing() {
    let port = 1 + (std::process::id() % 60_000) as u16;
    let address = SocketAddr::from(([127, 0, 0, 9], port));
    let mut server = Side::new(Box::new(Shm::serve(&[address], &Config::default()).unwrap()));
    let before = held();
    let mut held_while = [0; 2];
    for number in 0..2_000_u32 {
        let mut token = [0; 16];
        token[..4].copy_from_slice(&number.to_be_bytes());
        server.transport.expect(token, Time::NEVER);
        let client = Shm::dial(address, token, &Config::default()).unwrap();
        let mut client = Side::new(Box::new(client));
        // The preface goes out in a turn.
        client.turn();
        server.await_until(|side| side.transport.stats().streams.opened > u64::from(number));
        client.drain();
        held_while = held_while.max(held());
        if number % 3 > 0 {
            client.send_all(&Outgoing::datagram(TrafficClass::Data, address, &[1; 5_000]));
        }
        // One in order, one within a record, one by the drop.
        if number % 3 == 1 {
            client.transport.close_stream(address.into());
        }
        client.turn();
        client.transport.release(&mut client.pool);
        client.end();
        server.await_until(|side| side.transport.stream_count() == 0);
        while server.transport.poll_stream().is_some() {}
        let expected = usize::from(number % 3 > 0);
        assert_eq!(server.take_arrivals().len(), expected, "stream {number}");
    }
    assert_eq!(held(), before, "descriptors and mappings");
    assert!(held_while[1] >= 2, "mappings are counted by another name: {held_while:?}");
    server.end();
}
