//! The TCP transport over loopback: the conformance suite for both families, and what only TCP has.

#![allow(clippy::unwrap_used)]

mod common;
mod plain;

use common::{V4, at, hosts};
use dacapo_base::{Address, Time};
use dacapo_transport::conformance::{self, Bare, Ends, Side, StreamNet};
use dacapo_transport::stream::{MAGIC, Token};
use dacapo_transport::tcp::{Config, Tcp};
use dacapo_transport::{Outgoing, Sent, StreamEvent, StreamTransport, TrafficClass, Transport};
use plain::Plain;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

const TOKEN: Token = [7; 16];

/// Loopback TCP as the suite wants it.
struct Loopback {
    listen: IpAddr,
    reach: IpAddr,
    config: Config,
}

impl Loopback {
    fn new(host: IpAddr, config: Config) -> Self {
        Self { listen: host, reach: host, config }
    }
}

impl StreamNet for Loopback {
    fn serve(&self) -> (Box<dyn StreamTransport>, Address) {
        let server = Tcp::serve(&[at(self.listen)], &self.config).unwrap();
        let port = server.local_addrs()[0].port();
        (Box::new(server), SocketAddr::new(self.reach, port.unwrap()).into())
    }

    fn dial(&self, remote: Address, token: Token) -> Box<dyn StreamTransport> {
        Box::new(Tcp::dial(remote.ip().unwrap(), token, &self.config).unwrap())
    }

    fn connect(&self, remote: Address, _token: &Token) -> Box<dyn Bare> {
        let stream = TcpStream::connect(remote.ip().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let local = stream.local_addr().unwrap();
        Box::new(Plain(stream, local))
    }

    fn nobody(&self) -> Address {
        // A port that was free a moment ago; its taker would have to be quick.
        TcpListener::bind(at(self.reach)).unwrap().local_addr().unwrap().into()
    }

    fn streams_max(&self) -> usize {
        self.config.streams_max
    }
}

/// Tests run beside each other and share the process's descriptors.
fn few() -> Config {
    Config { streams_max: 32, ..Config::default() }
}

fn small() -> Config {
    Config {
        unsent_bytes_max: 4_096,
        recv_buffer_bytes: Some(4_096),
        send_buffer_bytes: Some(4_096),
        streams_max: 32,
    }
}

#[test]
fn tcp_conforms() {
    for host in hosts() {
        let net = Loopback::new(host, few());
        conformance::run_all(&|| conformance::open_pair(&net));
        conformance::run_streams(&net);
    }
}

#[test]
fn tcp_conforms_on_a_wildcard_address() {
    for host in hosts() {
        let listen = match host {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let net = Loopback { listen, reach: host, config: few() };
        conformance::run_all(&|| conformance::open_pair(&net));
        conformance::run_streams(&net);
    }
}

#[test]
fn tcp_with_small_buffers_conforms() {
    for host in hosts() {
        let net = Loopback::new(host, small());
        conformance::run_small_streams(&net);
    }
}

#[test]
fn all_streams_that_a_transport_may_have_can_be_open() {
    let net = Loopback::new(V4, Config::default());
    assert_eq!(net.streams_max(), dacapo_transport::DATA_LANES_MAX);
    conformance::streams_and_tokens_are_bounded(&net);
}

/// The port serves both families at the same number, as the UDP port does.
#[test]
fn a_server_at_several_addresses_takes_streams_at_each() {
    let addrs: Vec<_> = hosts().into_iter().map(at).collect();
    let mut server = Side::new(Box::new(Tcp::serve(&addrs, &few()).unwrap()));
    let bound = server.transport.local_addrs().to_vec();
    assert_eq!(bound.len(), addrs.len());
    for &address in &bound {
        server.transport.expect(TOKEN, Time::NEVER);
        let client = Side::new(Box::new(Tcp::dial(address.ip().unwrap(), TOKEN, &few()).unwrap()));
        let client_addr = client.transport.local_addrs()[0];
        let mut ends =
            Ends { client, server, server_addr: address, client_addr, client_data: client_addr };
        ends.await_until(|ends| {
            let counts = [&ends.client, &ends.server].map(|side| side.transport.stream_count());
            counts == [1, 1] && ends.client.transport.stats().streams.opened == 1
        });
        assert_eq!(ends.server.transport.open_data(client_addr).unwrap(), address);
        ends.server.send_all(&Outgoing::datagram(TrafficClass::Data, client_addr, b"hello"));
        assert_eq!(ends.await_client(1)[0].remote, address);
        ends.client.end();
        server = ends.server;
        server.await_until(|side| side.transport.stream_count() == 0);
    }
    server.end();
}

#[test]
fn a_used_port_is_an_error_that_says_what_to_do() {
    for host in hosts() {
        let server = Tcp::serve(&[at(host)], &few()).unwrap();
        let address = server.local_addrs()[0];
        let error = Tcp::serve(&[address.ip().unwrap()], &few()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let text = error.to_string();
        let advice = format!(
            "TCP: cannot listen at {address}: port {} is in use: choose another with --port",
            address.port().unwrap()
        );
        assert!(text.starts_with(&advice), "{text}");
    }
}

#[test]
fn bad_addresses_to_listen_at_are_named() {
    assert_eq!(Tcp::serve(&[], &few()).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(Tcp::serve(&[at(V4); 17], &few()).unwrap_err().kind(), ErrorKind::InvalidInput);
    // TEST-NET-3 of RFC 5737 belongs to nobody.
    let foreign = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7)), 4_000);
    let error = Tcp::serve(&[foreign], &few()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    assert!(error.to_string().contains("203.0.113.7"), "{error}");
}

#[test]
fn dialing_where_there_is_no_way_names_the_address() {
    // The broadcast address has no streams.
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::BROADCAST), 9);
    let error = Tcp::dial(nowhere, TOKEN, &few()).unwrap_err();
    assert!(error.to_string().contains("255.255.255.255:9"), "{error}");
}

/// What a dialer says of a remote that does `act` with its connection.
fn dialed_at(act: impl FnOnce(TcpStream)) -> String {
    let listener = TcpListener::bind(at(V4)).unwrap();
    let remote = listener.local_addr().unwrap();
    let mut client = Side::new(Box::new(Tcp::dial(remote, TOKEN, &few()).unwrap()));
    act(listener.accept().unwrap().0);
    for _ in 0..200 {
        client.turn();
        match client.transport.poll_stream() {
            Some(StreamEvent::Closed { reason, .. }) => {
                client.end();
                return reason;
            }
            Some(event) => panic!("{event:?}"),
            None => client.wait(),
        };
    }
    panic!("the stream does not end");
}

#[test]
fn a_port_of_another_protocol_is_told_apart() {
    let reason = dialed_at(|mut stream| stream.write_all(b"SSH-2.0-something\r\n").unwrap());
    assert!(reason.contains("speaks another protocol"), "{reason}");
    let reason = dialed_at(drop);
    assert!(reason.contains("before it was open") || reason.contains("broke"), "{reason}");
}

/// A server with one stream from a plain socket.
fn server_with_plain() -> (Side<Tcp>, TcpStream) {
    let mut server = Side::new(Box::new(Tcp::serve(&[at(V4)], &few()).unwrap()));
    server.transport.expect(TOKEN, Time::NEVER);
    let mut plain = TcpStream::connect(server.transport.local_addrs()[0].ip().unwrap()).unwrap();
    plain.write_all(&[MAGIC.as_slice(), &TOKEN].concat()).unwrap();
    server.await_until(|side| side.transport.stats().streams.opened == 1);
    let mut answer = [0; 8];
    plain.read_exact(&mut answer).unwrap();
    assert_eq!(answer, MAGIC);
    assert!(matches!(server.transport.poll_stream(), Some(StreamEvent::Open { .. })));
    (server, plain)
}

fn reason_at(server: &mut Side<Tcp>) -> String {
    server.await_until(|side| side.transport.stream_count() == 0);
    match server.transport.poll_stream() {
        Some(StreamEvent::Closed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_half_close_ends_the_stream_after_what_was_said() {
    let (mut server, mut plain) = server_with_plain();
    plain.write_all(&[0, 0, 0, 2, 8, 9]).unwrap();
    plain.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(reason_at(&mut server), "the remote closed the stream");
    assert_eq!(server.take_arrivals()[0].bytes, [8, 9]);
    let mut rest = Vec::new();
    plain.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"", "the server closed its way, too");
    server.end();
}

#[test]
fn a_reset_ends_the_stream_with_the_reason() {
    let (mut server, plain) = server_with_plain();
    // Closing with something unread resets.
    let remote = plain.local_addr().unwrap();
    server.send_all(&Outgoing::datagram(TrafficClass::Data, remote, b"never read"));
    plain.set_nonblocking(true).unwrap();
    while plain.peek(&mut [0; 14]).unwrap_or(0) < 14 {
        std::hint::spin_loop();
    }
    drop(plain);
    let reason = reason_at(&mut server);
    assert!(reason.contains("broke the stream off"), "{reason}");
    server.end();
}

#[test]
fn a_train_goes_out_in_one_call_and_comes_as_one_packet() {
    let (mut server, plain) = server_with_plain();
    let remote = plain.local_addr().unwrap();
    let bytes = vec![3; 20 * 1_300];
    let train = Outgoing::train(TrafficClass::Data, remote, &bytes, 1_300);
    server.send_all(&train);
    let stats = server.transport.stats();
    assert_eq!((stats.send_calls, stats.sent.trains, stats.sent.datagrams), (1, 1, 20));
    let record = [[0, 0, 5, 20].as_slice(), &[3; 1_300]].concat();
    let mut got = vec![0; 20 * 1_304];
    let mut plain = plain;
    plain.read_exact(&mut got).unwrap();
    assert!(got == record.repeat(20));
    plain.write_all(&got[..5 * 1_304]).unwrap();
    assert_eq!(server.await_arrivals(5)[4].bytes, [3; 1_300]);
    server.end();
}

#[test]
fn what_the_kernel_does_not_take_shows_at_once_and_goes_out_later() {
    let (mut server, mut plain) = server_with_plain();
    let remote = plain.local_addr().unwrap();
    let block = vec![5; 60_000];
    let outgoing = Outgoing::datagram(TrafficClass::Data, remote, &block);
    let mut taken = 0_usize;
    while server.transport.send(&outgoing).unwrap() == Sent::All {
        taken += 1;
        assert!(taken < 10_000, "the kernel takes everything");
    }
    assert!(!server.turn().writable, "nothing was read yet");
    plain.set_nonblocking(true).unwrap();
    let (mut got, mut buffer) = (0, vec![0; 1 << 16]);
    while got < taken * 60_004 {
        match plain.read(&mut buffer) {
            Ok(0) => panic!("it is closed"),
            Ok(count) => got += count,
            Err(_) => {
                server.wait();
                server.turn();
            }
        }
    }
    assert_eq!(got, taken * 60_004, "what was taken, whole");
    server.send_all(&outgoing);
    server.transport.release(&mut server.pool);
    server.end();
}
