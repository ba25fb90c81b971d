//! The UDP transport over loopback: the conformance suite for both families with and without
//! offload, and what only UDP has.

#![allow(clippy::unwrap_used)]

mod common;

use common::{V4, V6, at, hosts};
use dacapo_base::{Ecn, Random};
use dacapo_sys::udp;
use dacapo_transport::conformance::{self, Ends, Owned, Pair, Side};
use dacapo_transport::udp::{BindError, Config, DialError, Udp};
use dacapo_transport::{DATA_LANES_MAX, Outgoing, SendError, Sent, TrafficClass, Transport};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

fn serve(ip: IpAddr) -> (Side, SocketAddr) {
    let server = Udp::serve(&[at(ip)], &Config::default()).unwrap();
    let address = server.local_addrs()[0];
    (Side::new(Box::new(server)), address.ip().unwrap())
}

fn pair(listen: IpAddr, config: &Config) -> Pair {
    let server = Udp::serve(&[at(listen)], config).unwrap();
    let port = server.local_addrs()[0].port();
    let host = match listen {
        IpAddr::V4(_) => V4,
        IpAddr::V6(_) => V6,
    };
    let server_addr = SocketAddr::new(host, port.unwrap());
    let client = Udp::dial(server_addr, config).unwrap();
    Pair {
        server_addr: server_addr.into(),
        client_addr: client.local_addrs()[0],
        client: Box::new(client),
        server: Box::new(server),
    }
}

/// Tests run beside each other and share the process's descriptors.
fn few_lanes() -> Config {
    Config { data_lanes_max: 32, ..Config::default() }
}

#[test]
fn udp_conforms_with_what_the_kernel_offloads() {
    for host in hosts() {
        conformance::run_all(&|| pair(host, &Config::default()));
    }
}

#[test]
fn udp_conforms_without_offload_in_either_direction() {
    for (gso, gro) in [(false, false), (true, false), (false, true)] {
        let config = Config { gso, gro, ..few_lanes() };
        for host in hosts() {
            conformance::run_all(&|| pair(host, &config));
        }
    }
}

#[test]
fn udp_conforms_when_its_owner_watches_its_sockets() {
    for host in hosts() {
        conformance::run_all(&|| {
            let pair = pair(host, &Config::default());
            let owned = |inner| Box::new(Owned::new(inner));
            Pair { client: owned(pair.client), server: owned(pair.server), ..pair }
        });
    }
}

/// Faults of system calls after which the call can be made again.
const LOSSLESS: [&str; 10] = [
    "sendmsg:ENOBUFS:1/3",
    "sendmsg:EAGAIN:1/2",
    "sendmsg:EINTR:1/2",
    "sendmsg:EMSGSIZE:1/2",
    "sendmsg:ECONNREFUSED:1/2",
    "sendmsg:PARTIAL:1/1",
    "recvmsg:EAGAIN:1/2",
    "recvmsg:EINTR:1/2",
    "recvmsg:EMSGSIZE:1/2",
    "sendmsg:PARTIAL:1/2,sendmsg:ENOBUFS:1/5,sendmsg:EMSGSIZE:1/7,recvmsg:EINTR:1/3",
];

#[test]
fn udp_conforms_when_system_calls_fail_with_every_offload_and_without() {
    for faults in LOSSLESS {
        let plan = dacapo_sys::faults::parse(faults).unwrap();
        for (gso, gro) in [(true, true), (true, false), (false, true), (false, false)] {
            let config = Config { gso, gro, ..few_lanes() };
            println!("{faults}, gso {gso}, gro {gro}");
            dacapo_sys::faults::plan(&plan);
            conformance::run_faulty(&|| pair(V4, &config));
            assert!(dacapo_sys::faults::hits() > 0, "{faults} struck nothing");
            dacapo_sys::faults::plan(&[]);
        }
    }
}

#[test]
fn what_icmp_says_of_the_length_is_told_and_nothing_is_lost_by_it() {
    for fault in ["sendmsg:EMSGSIZE:1/2", "recvmsg:EMSGSIZE:1/2"] {
        let mut ends = Ends::with_data(pair(V4, &Config::default()));
        assert_eq!(ends.client.transport.poll_too_large(), None);
        dacapo_sys::faults::plan(&dacapo_sys::faults::parse(fault).unwrap());
        for _ in 0..4 {
            let outgoing =
                Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"not too long");
            ends.client.send_all(&outgoing);
        }
        ends.server.await_arrivals(4);
        dacapo_sys::faults::plan(&[]);
        let sent = ends.client.transport.poll_too_large();
        let read = ends.server.transport.poll_too_large();
        let hint = sent.or(read).unwrap_or_else(|| panic!("{fault} was not told"));
        // The client's data lane has a port of its own.
        assert_eq!(hint.remote == ends.server_addr, sent.is_some(), "{fault}");
        assert!(hint.datagram_len.is_some_and(|len| len > 1_000), "{hint:?}");
        assert_eq!(ends.client.transport.stats().too_large, 0);
        ends.end();
    }
}

#[test]
fn a_refusal_beside_a_peer_that_lives_is_told_and_costs_no_datagram() {
    for fault in ["sendmsg:ECONNREFUSED:1/2", "recvmsg:ECONNREFUSED:1/2"] {
        let mut ends = Ends::with_data(pair(V4, &Config::default()));
        dacapo_sys::faults::plan(&dacapo_sys::faults::parse(fault).unwrap());
        for _ in 0..4 {
            ends.client.send_all(&Outgoing::datagram(
                TrafficClass::Data,
                ends.server_addr,
                b"refused?",
            ));
        }
        ends.server.await_arrivals(4);
        dacapo_sys::faults::plan(&[]);
        let sent = ends.client.transport.poll_refused();
        let told = sent.or(ends.server.transport.poll_refused());
        let told = told.unwrap_or_else(|| panic!("{fault} was not told"));
        assert_eq!(told == ends.server_addr, sent.is_some(), "{fault}");
        ends.end();
    }
}

#[test]
fn udp_conforms_on_a_wildcard_address() {
    for host in hosts() {
        let any = match host {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        conformance::run_all(&|| pair(any, &few_lanes()));
    }
}

fn small() -> Config {
    Config { recv_buffer_bytes: 4_096, ..Config::default() }
}

#[test]
fn a_full_queue_blocks_or_counts() {
    for host in hosts() {
        conformance::a_full_queue_blocks_or_counts(&|| pair(host, &small()));
    }
}

#[test]
fn a_burst_of_data_never_drops_control() {
    for host in hosts() {
        conformance::a_burst_of_data_never_drops_control(&|| pair(host, &small()));
    }
}

#[test]
fn a_used_port_is_an_error_that_says_what_to_do_also_while_data_lanes_share_it() {
    let mut server = Udp::serve(&[at(V4)], &Config::default()).unwrap();
    let address = server.local_addrs()[0];
    for remote_port in [0_u16, 5_001, 5_002] {
        if remote_port > 0 {
            let remote = SocketAddr::new(V4, remote_port);
            assert_eq!(server.open_data(remote.into()).unwrap(), address);
        }
        let sharing = udp::Config { reuse: true, ..udp::Config::default() };
        let error = udp::Socket::bind(address.ip().unwrap(), &sharing).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "nobody slips into the port");
        let error = Udp::serve(&[address.ip().unwrap()], &Config::default()).unwrap_err();
        assert!(
            matches!(error, BindError::InUse { address: named } if named == address.ip().unwrap())
        );
        let text = error.to_string();
        let port = address.port().unwrap();
        let advice = format!(
            "port {port} is in use: choose another with --port, or stop the program that has it"
        );
        assert!(text.contains(&advice) && text.contains(&address.to_string()), "{text}");
    }
}

#[test]
fn bad_addresses_to_listen_at_are_named() {
    let config = Config::default();
    assert!(matches!(Udp::serve(&[], &config), Err(BindError::NoAddress)));
    let many = [at(V4); 17];
    let error = Udp::serve(&many, &config).unwrap_err();
    assert!(matches!(error, BindError::TooManyAddresses { count: 17 }), "{error}");
    // TEST-NET-3 of RFC 5737 belongs to nobody.
    let foreign = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7)), 4_000);
    let error = Udp::serve(&[foreign], &config).unwrap_err();
    assert!(matches!(error, BindError::NotLocal { address } if address == foreign), "{error}");
    assert!(error.to_string().contains("203.0.113.7"));
}

#[test]
fn the_dialled_end_hears_that_nobody_listens() {
    for host in hosts() {
        // A port that was free a moment ago; its taker would have to be quick.
        let gone = UdpSocket::bind(at(host)).unwrap().local_addr().unwrap();
        let mut client = Side::new(Box::new(Udp::dial(gone, &Config::default()).unwrap()));
        client.transport.send(&Outgoing::datagram(TrafficClass::Control, gone, b"hello?")).unwrap();
        client.await_until(|side| side.transport.stats().refused == 1);
        assert_eq!(client.transport.poll_refused(), Some(gone.into()));
        assert_eq!(client.transport.poll_refused(), None, "it is told once");
        let again =
            client.transport.send(&Outgoing::datagram(TrafficClass::Control, gone, b"hello?"));
        assert!(matches!(again, Ok(Sent::All)), "{again:?}");
        client.await_until(|side| side.transport.stats().refused == 2);
        assert_eq!(client.transport.stats().refused, 2, "each answer is counted once");
        client.end();
    }
}

#[test]
fn control_of_a_dialled_transport_reaches_its_remote_only() {
    let (server, address) = serve(V4);
    let mut client = Udp::dial(address, &Config::default()).unwrap();
    let other = SocketAddr::new(V4, 9);
    let result = client.send(&Outgoing::datagram(TrafficClass::Control, other, b"stray"));
    assert!(matches!(result, Err(SendError::Unreachable)));
    assert_eq!(client.stats().unreachable, 1);
    server.end();
}

#[test]
fn a_server_without_the_family_of_the_remote_cannot_reach_it() {
    let mut server = Udp::serve(&[at(V4)], &Config::default()).unwrap();
    let remote = SocketAddr::new(V6, 9);
    let result = server.send(&Outgoing::datagram(TrafficClass::Control, remote, b"stray"));
    assert!(matches!(result, Err(SendError::Unreachable)));
    assert!(server.open_data(remote.into()).is_err());
}

#[test]
fn dialling_where_there_is_no_way_names_the_address() {
    // The broadcast address asks for a permission that no socket here has.
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(255, 255, 255, 255)), 9);
    let error = Udp::dial(nowhere, &Config::default()).unwrap_err();
    assert!(matches!(error, DialError::Other { .. } | DialError::Unreachable { .. }));
    assert!(error.to_string().contains("255.255.255.255:9"), "{error}");
}

#[test]
fn junk_from_strangers_is_handed_up_unchanged_with_its_source() {
    for host in hosts() {
        let (mut server, address) = serve(host);
        let stranger = UdpSocket::bind(at(host)).unwrap();
        for seed in 0..100 {
            let mut random = Random::from_number(seed);
            let mut junk = vec![0; random.below(3_000) as usize];
            random.fill(&mut junk);
            stranger.send_to(&junk, address).unwrap();
            let arrivals = server.await_arrivals(1);
            assert_eq!(arrivals[0].bytes, junk, "seed {seed}");
            assert_eq!(arrivals[0].remote, stranger.local_addr().unwrap().into(), "seed {seed}");
            assert!(!arrivals[0].by_data, "seed {seed}");
        }
        server.end();
    }
}

#[test]
fn a_stranger_cannot_reach_a_data_lane() {
    let mut ends = Ends::with_data(pair(V4, &Config::default()));
    let stranger = UdpSocket::bind(at(V4)).unwrap();
    stranger.send_to(b"to the client", ends.client_data.ip().unwrap()).unwrap();
    stranger.send_to(b"to the server", ends.server_addr.ip().unwrap()).unwrap();
    ends.client.send_all(&Outgoing::datagram(TrafficClass::Data, ends.server_addr, b"data"));
    for arrival in ends.server.await_arrivals(2) {
        assert_eq!(arrival.by_data, arrival.bytes == b"data");
    }
    ends.client.drain();
    assert_eq!(ends.client.arrival_count(), 0);
    ends.end();
}

#[test]
fn two_peers_on_one_port_each_get_their_own() {
    for host in hosts() {
        let (mut server, address) = serve(host);
        let mut clients: Vec<_> = (0..2)
            .map(|_| Side::new(Box::new(Udp::dial(address, &Config::default()).unwrap())))
            .collect();
        let mut lanes = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            let data = client.transport.open_data(address.into()).unwrap();
            assert_eq!(server.transport.open_data(data).unwrap(), address.into());
            client.send_all(&Outgoing::datagram(TrafficClass::Data, address, &[number as u8; 9]));
            lanes.push(data);
        }
        let mut arrivals = server.await_arrivals(2);
        arrivals.sort();
        for (number, arrival) in arrivals.iter().enumerate() {
            assert_eq!(arrival.bytes, [number as u8; 9]);
            assert_eq!((arrival.remote, arrival.by_data), (lanes[number], true));
            server.send_all(&Outgoing::datagram(TrafficClass::Data, lanes[number], &arrival.bytes));
        }
        for (number, mut client) in clients.into_iter().enumerate() {
            assert_eq!(client.await_arrivals(1)[0].bytes, [number as u8; 9]);
            client.end();
        }
        server.end();
    }
}

/// Fills one data lane, then sends three datagrams by another; returns after how many datagrams
/// the three are there.
fn wait_of_the_quiet_lane() -> usize {
    let (mut server, address) = serve(V4);
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = Udp::dial(address, &Config::default()).unwrap();
        let data = client.open_data(address.into()).unwrap();
        server.transport.open_data(data).unwrap();
        clients.push((Side::new(Box::new(client)), data));
    }
    for (number, count) in [(0, 300), (1, 3)] {
        for _ in 0..count {
            let outgoing = Outgoing::datagram(TrafficClass::Data, address, b"one of many");
            clients[number].0.send_all(&outgoing);
        }
    }
    let quiet = clients[1].1;
    let arrivals = server.await_arrivals(303);
    clients.into_iter().for_each(|(client, _)| client.end());
    server.end();
    1 + arrivals.iter().rposition(|arrival| arrival.remote == quiet).unwrap()
}

#[test]
fn a_busy_data_lane_does_not_starve_another() {
    // The kernel may deliver the three late; a transport that starves a lane always does.
    assert!((0..50).any(|_| wait_of_the_quiet_lane() <= 10));
}

#[test]
fn with_offload_a_train_is_one_call_and_one_packet() {
    let mut ends = Ends::with_data(pair(V4, &Config::default()));
    if !has_offload() {
        dacapo_base::skip("this kernel has no UDP offload");
        return;
    }
    let (remote, bytes) = (ends.server_addr, vec![3; 20 * 1_300]);
    let train = Outgoing::train(TrafficClass::Data, remote, &bytes, 1_300);
    ends.client.send_all(&train);
    let stats = ends.client.transport.stats();
    assert_eq!((stats.send_calls, stats.sent.trains, stats.sent.datagrams), (1, 1, 20));
    assert_eq!(stats.segments_per_call.0, [0, 0, 0, 0, 1, 0, 0]);
    // A data lane takes trains as such once it has seen some.
    ends.server.await_arrivals(20);
    for _ in 0..2 {
        ends.client.send_all(&train);
        ends.server.await_arrivals(20);
    }
    let before = ends.server.transport.stats().received.trains;
    ends.client.send_all(&train);
    ends.server.await_arrivals(20);
    assert_eq!(ends.server.transport.stats().received.trains, before + 1);
    ends.end();
}

#[test]
fn what_hears_marks_leaves_as_ecn_capable_and_a_mark_is_seen() {
    for host in hosts() {
        let (mut server, remote) = serve(host);
        let mut raw = udp::Socket::bind(at(host), &udp::Config::default()).unwrap();
        let from = raw.local_addr().unwrap();
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
            let datagram = Outgoing::datagram(TrafficClass::Control, from, b"to be marked");
            server.send_all(&Outgoing { ecn, ..datagram });
            let mut bytes = [0; 100];
            let recv = loop {
                match raw.recv(&mut bytes) {
                    Err(udp::RecvError::WouldBlock) => std::thread::yield_now(),
                    recv => break recv.unwrap(),
                }
            };
            assert_eq!(recv.ecn, ecn, "{host}");
        }
        server.transport.open_data(from.into()).unwrap();
        let mut come = |ecn: Ecn, count| {
            for _ in 0..count {
                raw.send(Some(remote), b"marked", None, ecn).unwrap();
                server.await_arrivals(1);
            }
            server.marked_count()
        };
        assert_eq!(come(Ecn::NotEct, 40), 0);
        assert_eq!(come(Ecn::Ect0, 16), 0, "it is seen that they can be marked");
        assert_eq!(come(Ecn::Ce, 5), 5, "{host}");
    }
}

#[test]
fn the_bound_on_data_lanes_can_be_lowered_and_not_raised() {
    let limit = |data_lanes_max: usize| {
        let config = Config { data_lanes_max, ..Config::default() };
        let mut server = Udp::serve(&[at(V4)], &config).unwrap();
        let mut remotes = (0..400).map(|index| SocketAddr::new(V4, 20_000 + index));
        remotes.position(|remote| server.open_data(remote.into()).is_err())
    };
    assert_eq!(limit(2), Some(2));
    assert_eq!(limit(usize::MAX), Some(DATA_LANES_MAX));
}

#[test]
fn a_server_at_several_addresses_answers_from_the_one_that_suits() {
    let mut addrs: Vec<_> = hosts().into_iter().map(at).collect();
    addrs.push(at(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
    let server = Udp::serve(&addrs, &Config::default()).unwrap();
    let bound = server.local_addrs().to_vec();
    let mut server = Side::new(Box::new(server));
    for &address in bound.iter().filter(|address| !address.ip().unwrap().ip().is_unspecified()) {
        let mut client =
            Side::new(Box::new(Udp::dial(address.ip().unwrap(), &Config::default()).unwrap()));
        client.send_all(&Outgoing::datagram(TrafficClass::Control, address, b"ping"));
        let ping = server.await_arrivals(1).remove(0);
        server.send_all(&Outgoing::datagram(TrafficClass::Control, ping.remote, b"pong"));
        // The client's socket is connected, so only an answer from that address arrives.
        assert_eq!(client.await_arrivals(1)[0].remote, address);
        client.end();
    }
    server.end();
}

/// Whether trains go out in one call here.
fn has_offload() -> bool {
    let socket = dacapo_sys::udp::Socket::bind(([127, 0, 0, 1], 0).into(), &Default::default());
    socket.unwrap().offloads().gso
}
