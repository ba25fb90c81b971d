//! A stream with a wide window over connections of TCP: what a connection has no room for waits in
//! the engine, and nothing is thrown away to be repaired.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, PORT, closes, open};
use dacapo_xtp::wire::Service;
use dacapo_xtp::{Config, Listen, Message, Read};
use dacapo_xtp_net::{CacheConfig, Connected, Counters, Host, Tcp};
use std::net::SocketAddr;

/// A window that is wider than what connection and kernel hold together.
const WINDOW: usize = 8 << 20;
const PACKET: usize = 2_048;
/// What one packet carries.
const DATA: usize = PACKET - 32;
const TOTAL: usize = 32 << 20;

fn host() -> Host {
    let tcp = Tcp::bind("127.0.0.1:0".parse().unwrap(), Some(PACKET)).unwrap();
    let config = Config { buffer_len: WINDOW, ..Config::default() };
    Host::new(Box::new(Connected::new(tcp, CacheConfig::default())), config).unwrap()
}

/// Reads a stream of [`TOTAL`] bytes.
fn sink(mut host: Host) -> Counters {
    let until = host.after(LONG);
    let id = host.accept(until).unwrap().id;
    let (mut buffer, mut got) = (vec![0; 256 << 10], 0);
    while let Read::Data { len, .. } = host.read(id, &mut buffer, until).unwrap() {
        got += len;
    }
    assert_eq!(got, TOTAL);
    host.close(id, until).unwrap();
    *host.counters()
}

fn send(host: &mut Host, peer: SocketAddr) {
    let until = host.after(LONG);
    let open = open(host, peer, Service::Stream);
    let id = host.open(&open).unwrap();
    host.wait_open(id, until).unwrap();
    let piece = vec![7; 64 << 10];
    for _ in 0..TOTAL / piece.len() {
        host.write(id, &Message { has_more: true, ..Message::part(&piece) }, until).unwrap();
    }
    host.close(id, until).unwrap();
}

#[test]
fn a_stream_waits_for_its_connection_and_loses_nothing() {
    let mut far = host();
    let address = far.local();
    far.listen(Listen::on(PORT)).unwrap();
    let far = std::thread::spawn(move || sink(far));
    let mut near = host();
    send(&mut near, address);
    closes(&near);
    let (near, far) = (*near.counters(), far.join().unwrap());
    let least = (TOTAL / DATA) as u64;
    assert_eq!(near.packets_dropped.iter().sum::<u64>(), 0, "{near:?}");
    assert!(near.packets_given < least + least / 50, "{least} carry all: {near:?}");
    // Packets go and come by the train: some of those that come are cut by the end of a read.
    assert!(near.packets_sent > 8 * near.sends, "{near:?}");
    assert!(far.packets_received > 8 * far.receives, "{far:?}");
}
