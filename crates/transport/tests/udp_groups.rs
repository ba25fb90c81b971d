//! Groups over the UDP of this host: the conformance suite, the errors, and what needs a network
//! namespace of its own. Without the right to make one a test says so and ends.

#![allow(clippy::unwrap_used)]

use dacapo_sys::interface::{self, Address};
use dacapo_sys::netns::Namespace;
use dacapo_sys::tun::Tun;
use dacapo_transport::conformance::{self, Group};
use dacapo_transport::udp::{Config, Groups, Udp};
use dacapo_transport::{JoinError, Membership, Outgoing, SendError, TrafficClass, Transport};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A port that was free a moment ago: every group of a test has its own.
fn free_port(ip: IpAddr) -> u16 {
    UdpSocket::bind((ip, 0)).unwrap().local_addr().unwrap().port()
}

fn membership(group: &str, source: SocketAddr, source_specific: bool) -> Membership {
    let group = SocketAddr::new(group.parse().unwrap(), free_port(source.ip()));
    Membership { group, source, source_specific }
}

/// A sender at `ip`, two who may join, and a stranger at the same address with another port.
fn group(ip: IpAddr, group: &str, source_specific: bool, config: &Config) -> Group {
    let few = Config { data_lanes_max: 8, ..*config };
    let serve = || Udp::serve(&[SocketAddr::new(ip, 0)], &few).unwrap();
    let sender = serve();
    let source = sender.local_addrs()[0];
    let member =
        || -> Box<dyn Transport> { Box::new(Udp::dial(source.ip().unwrap(), &few).unwrap()) };
    Group {
        members: vec![member(), member()],
        stranger: Box::new(serve()),
        membership: membership(group, source.ip().unwrap(), source_specific),
        sender: Box::new(sender),
    }
}

#[test]
fn udp_conforms_with_groups_from_any_source_and_from_one() {
    for (address, source_specific) in
        [("239.255.77.1", false), ("239.255.77.2", true), ("232.77.0.1", false)]
    {
        conformance::run_groups(&|| group(LOOPBACK, address, source_specific, &Config::default()));
    }
}

#[test]
fn udp_conforms_with_groups_without_offload_in_either_direction() {
    for (gso, gro) in [(false, false), (true, false), (false, true)] {
        let config = Config { gso, gro, ..Config::default() };
        conformance::run_groups(&|| group(LOOPBACK, "239.255.77.3", false, &config));
    }
}

#[test]
fn a_train_to_a_group_is_one_call() {
    let Group { mut sender, membership, .. } =
        group(LOOPBACK, "239.255.77.4", false, &Config::default());
    if !has_offload() {
        dacapo_base::skip("this kernel has no UDP offload");
        return;
    }
    sender.open_data(membership.group.into()).unwrap();
    let bytes = vec![3; 20 * 1_300];
    let (lane, remote) = (TrafficClass::Data, membership.group);
    sender.send(&Outgoing::train(lane, remote, &bytes, 1_300)).unwrap();
    let stats = sender.stats();
    assert_eq!((stats.send_calls, stats.sent.trains, stats.sent.datagrams), (1, 1, 20));
}

/// Why a member cannot join while this call fails so.
fn refused(fault: &str) -> JoinError {
    let Group { mut members, membership, .. } =
        group(LOOPBACK, "239.255.77.6", false, &Config::default());
    dacapo_sys::faults::plan(&dacapo_sys::faults::parse(fault).unwrap());
    let error = members[0].join(&membership).unwrap_err();
    assert_eq!(dacapo_sys::faults::hits(), 1, "{fault}");
    dacapo_sys::faults::plan(&[]);
    members[0].join(&membership).expect("it can be joined once nothing fails");
    error
}

#[test]
fn why_a_group_cannot_be_joined_is_said_with_what_to_do() {
    let error = refused("join:ENODEV:1/1");
    assert!(matches!(error, JoinError::Other { interface: 1, .. }), "{error:?}");
    assert!(error.to_string().contains("239.255.77.6") && error.to_string().contains("is it up"));
    let error = refused("join:ENOBUFS:1/1");
    assert!(matches!(error, JoinError::TooMany { .. }), "{error:?}");
    assert!(error.to_string().contains("igmp_max_memberships"), "{error}");
    let error = refused("connect:ENETUNREACH:1/1");
    assert!(matches!(error, JoinError::NoWay { .. }), "{error:?}");
    let Group { mut members, membership, .. } =
        group(LOOPBACK, "239.255.77.7", false, &Config::default());
    let taken = UdpSocket::bind(membership.group).unwrap();
    let error = members[0].join(&membership).unwrap_err();
    assert!(matches!(error, JoinError::InUse { .. }), "{error:?}");
    drop(taken);
    let six = Membership { group: "[ff15::77]:9".parse().unwrap(), ..membership };
    let error = members[0].join(&six).unwrap_err();
    assert!(matches!(error, JoinError::NoWay { .. }), "{error:?}");
}

#[test]
fn an_interface_that_there_is_not_is_named() {
    let groups = Groups { interface: Some(4_242), ..Groups::default() };
    let config = Config { groups, ..Config::default() };
    let Group { mut sender, mut members, membership, .. } =
        group(LOOPBACK, "239.255.77.8", false, &config);
    let error = members[0].join(&membership).unwrap_err();
    assert!(error.to_string().contains("interface 4242"), "{error}");
    assert!(sender.open_data(membership.group.into()).is_err());
    let outgoing = Outgoing::datagram(TrafficClass::Data, membership.group, b"nowhere");
    assert!(matches!(sender.send(&outgoing), Err(SendError::Unreachable)));
}

/// Runs `body` in a namespace with an interface that has an address of each family.
fn in_namespace(body: impl FnOnce() + Send) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("dacapo-groups-{}-{number}", std::process::id());
    let Ok(space) = Namespace::create(&name) else {
        dacapo_base::skip("this needs the right to make network namespaces");
        return;
    };
    let made = space.run(|| {
        let tun = Tun::create("groups%d").ok()?;
        for (ip, prefix_len) in [("10.99.0.1", 24), ("fd99::1", 64)] {
            let address = Address { ip: ip.parse().unwrap(), prefix_len };
            interface::set_address(tun.name(), address).unwrap();
        }
        interface::up(tun.name()).unwrap();
        // The kernel finishes a new address of IPv6 in a thread of its own.
        let is_there = (0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            UdpSocket::bind("[fd99::1]:0").is_ok()
        });
        assert!(is_there, "the address is never there");
        body();
        Some(())
    });
    if made.unwrap().is_none() {
        dacapo_base::skip("this kernel has no TUN");
    }
}

#[test]
fn udp_conforms_with_groups_of_both_families_on_an_interface() {
    in_namespace(|| {
        for (ip, address, source_specific) in [
            ("10.99.0.1", "239.99.0.1", false),
            ("10.99.0.1", "232.99.0.1", false),
            ("fd99::1", "ff15::99:1", false),
            ("fd99::1", "ff12::99:1", false),
            ("fd99::1", "ff35::99:1", true),
        ] {
            println!("{address}");
            let ip = ip.parse().unwrap();
            conformance::run_groups(&|| group(ip, address, source_specific, &Config::default()));
        }
    });
}

/// How many datagrams to a group a member on the same host gets.
fn arrived_here(loops: bool) -> usize {
    let groups = Groups { loops, ..Groups::default() };
    let config = Config { groups, ..Config::default() };
    let Group { mut sender, mut members, membership, .. } =
        group("10.99.0.1".parse().unwrap(), "239.99.0.2", false, &config);
    members[0].join(&membership).unwrap();
    sender.open_data(membership.group.into()).unwrap();
    sender.send(&Outgoing::datagram(TrafficClass::Data, membership.group, b"outwards")).unwrap();
    // The kernel copies it as it sends, so what is not there now will not come.
    let (mut pool, mut incoming) = (dacapo_packet::Pool::new(1 << 20), Vec::new());
    members[0].recv(dacapo_base::Time::ZERO, &mut pool, &mut incoming).packet_count
}

#[test]
fn receivers_on_this_host_get_it_unless_the_configuration_says_no() {
    in_namespace(|| assert_eq!([true, false].map(arrived_here), [1, 0]));
}

/// Whether trains go out in one call here.
fn has_offload() -> bool {
    let socket = dacapo_sys::udp::Socket::bind(([127, 0, 0, 1], 0).into(), &Default::default());
    socket.unwrap().offloads().gso
}
