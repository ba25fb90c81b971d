//! The in-process transport: the conformance suite in both modes, and what only it has.

#![allow(clippy::unwrap_used)]

use dacapo_transport::conformance::{self, Pair, Side};
use dacapo_transport::inproc::{self, Config, EndpointError, Full, Switchboard};
use dacapo_transport::{Outgoing, SendError, Sent, TrafficClass, Transport};

fn pair(config: &Config) -> Pair {
    let hub = Switchboard::new(config);
    let (client, server) = (hub.endpoint("client").unwrap(), hub.endpoint("server").unwrap());
    Pair {
        server_addr: server.local_addrs()[0],
        client_addr: client.local_addrs()[0],
        client: Box::new(client),
        server: Box::new(server),
    }
}

fn small(full: Full) -> Config {
    Config { full, queue_datagrams_max: 16, queue_bytes_max: 7_000, ..Config::default() }
}

#[test]
fn a_hub_that_drops_conforms() {
    conformance::run_all(&|| pair(&Config::default()));
}

#[test]
fn a_hub_that_blocks_conforms() {
    conformance::run_all(&|| pair(&Config { full: Full::Block, ..Config::default() }));
}

#[test]
fn a_full_queue_blocks_or_counts() {
    for full in [Full::Drop, Full::Block] {
        conformance::a_full_queue_blocks_or_counts(&|| pair(&small(full)));
    }
}

#[test]
fn a_burst_of_data_never_drops_control() {
    for full in [Full::Drop, Full::Block] {
        conformance::a_burst_of_data_never_drops_control(&|| pair(&small(full)));
    }
}

#[test]
fn names_are_unique_while_their_endpoints_live_and_addresses_are_never_reused() {
    let hub = inproc::hub();
    let first = hub.endpoint("a").unwrap();
    let address = first.local_addrs()[0];
    assert_eq!(hub.lookup("a"), Some(address));
    assert!(matches!(hub.endpoint("a"), Err(EndpointError::NameInUse { name }) if name == "a"));
    drop(first);
    assert_eq!(hub.lookup("a"), None);
    let again = hub.endpoint("a").unwrap();
    assert_ne!(again.local_addrs()[0], address);
    let mut other = hub.endpoint("b").unwrap();
    let late = other.send(&Outgoing::datagram(TrafficClass::Control, address, b"late"));
    assert!(matches!(late, Err(SendError::Refused)));
    assert_eq!(other.stats().refused, 1);
}

#[test]
fn a_train_that_half_fits_is_taken_by_half_and_finished_when_there_is_room() {
    let pair = pair(&small(Full::Block));
    let (mut client, mut server) = (Side::new(pair.client), Side::new(pair.server));
    let bytes: Vec<u8> = (0..24).collect();
    let train = Outgoing::train(TrafficClass::Data, pair.server_addr, &bytes, 1);
    assert_eq!(client.transport.send(&train).unwrap(), Sent::Blocked { bytes_taken: 16 });
    assert!(!client.turn().writable, "nothing was read yet");
    assert_eq!(server.await_arrivals(16).len(), 16);
    assert!(client.wait());
    assert!(client.turn().writable);
    client.send_all(&Outgoing { bytes: &bytes[16..], ..train });
    let rest: Vec<u8> = server.await_arrivals(8).into_iter().flat_map(|a| a.bytes).collect();
    assert_eq!(rest, bytes[16..]);
    client.end();
    server.end();
}

#[test]
fn a_train_that_half_fits_is_dropped_by_half_and_counted() {
    let pair = pair(&small(Full::Drop));
    let (mut client, mut server) = (Side::new(pair.client), Side::new(pair.server));
    client.send_all(&Outgoing::train(TrafficClass::Control, pair.server_addr, &[1; 24], 1));
    assert_eq!(server.await_arrivals(16).len(), 16);
    assert_eq!(server.transport.stats().drops.queue_full, 8);
    assert_eq!(client.transport.stats().sent.datagrams, 24);
    client.end();
    server.end();
}

#[test]
fn a_lane_closed_with_something_in_it_counts_what_was_lost() {
    let pair = pair(&Config::default());
    let (mut client, mut server) = (pair.client, pair.server);
    client.open_data(pair.server_addr).unwrap();
    server.open_data(pair.client_addr).unwrap();
    client.send(&Outgoing::datagram(TrafficClass::Data, pair.server_addr, b"unread")).unwrap();
    server.close_data(pair.client_addr);
    assert_eq!(server.stats().drops.closed, 1);
}

#[test]
fn endpoints_work_across_threads() {
    let hub = Switchboard::new(&Config {
        full: Full::Block,
        queue_datagrams_max: 8,
        ..Config::default()
    });
    let server = hub.endpoint("server").unwrap();
    let server_addr = server.local_addrs()[0];
    let count = 5_000_u32;
    let sender = std::thread::spawn(move || {
        let mut client = Side::new(Box::new(hub.endpoint("client").unwrap()));
        for number in 0..count {
            let bytes = number.to_be_bytes();
            client.send_all(&Outgoing::datagram(TrafficClass::Control, server_addr, &bytes));
        }
        client.end();
    });
    let mut server = Side::new(Box::new(server));
    let arrivals = server.await_arrivals(count as usize);
    sender.join().unwrap();
    let numbers: Vec<_> = arrivals.into_iter().map(|arrival| arrival.bytes).collect();
    let expected: Vec<_> = (0..count).map(|number| number.to_be_bytes().to_vec()).collect();
    assert_eq!(numbers, expected);
    server.end();
}
