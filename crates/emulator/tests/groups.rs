//! Groups between two network namespaces: what the UDP transport sends to one in the first is
//! handed up to its members in the second. Without the right to make namespaces a test says so and
//! ends.

#![allow(clippy::unwrap_used)]

use dacapo_emulator::{Tunnel, TunnelConfig, TunnelError, TunnelHandle};
use dacapo_sys::interface::Address;
use dacapo_sys::netns::Namespace;
use dacapo_transport::conformance::Side;
use dacapo_transport::udp::{Config, Udp};
use dacapo_transport::{Membership, Outgoing, TrafficClass, Transport};
use std::net::{IpAddr, SocketAddr};

/// A tunnel between these addresses; nothing, and a word, where there can be none.
fn tunnel(number: usize, addresses: [&str; 2], prefix_len: u8) -> Option<TunnelHandle> {
    let name = |end| format!("dacapo-groups-{}-{number}-{end}", std::process::id());
    let mut config = TunnelConfig::new(&name(1), &name(2));
    let address = |ip: &str| Address { ip: ip.parse::<IpAddr>().unwrap(), prefix_len };
    config.addresses = addresses.map(address);
    match Tunnel::spawn(config) {
        Ok(tunnel) => Some(tunnel),
        Err(error @ (TunnelError::NotRoot | TunnelError::NoTun)) => {
            dacapo_base::skip(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A transport that listens in a namespace, at a free port.
fn listens(space: &Namespace, ip: IpAddr) -> (Side, SocketAddr) {
    let serve = || Udp::serve(&[SocketAddr::new(ip, 0)], &Config::default()).unwrap();
    let transport = space.run(serve).unwrap();
    let address = transport.local_addrs()[0];
    (Side::new(Box::new(transport)), address.ip().unwrap())
}

/// Sends to a group through a tunnel, to two members, one of whom leaves.
fn cross(tunnel: &TunnelHandle, group: &str, source_specific: bool) {
    let [near, far] = tunnel.namespaces();
    let [here, there] = tunnel.addresses().map(|address| address.ip);
    let (mut sender, source) = listens(near, here);
    let (mut stranger, _) = listens(near, here);
    let group = SocketAddr::new(group.parse().unwrap(), 7_700);
    let membership = Membership { group, source, source_specific };
    let mut members = [listens(far, there).0, listens(far, there).0];
    for member in &mut members {
        far.run(|| member.transport.join(&membership)).unwrap().unwrap();
    }
    for side in [&mut stranger, &mut sender] {
        near.run(|| side.transport.open_data(group.into())).unwrap().unwrap();
        let bytes = vec![7; 10 * 1_200];
        side.send_all(&Outgoing::train(TrafficClass::Data, group, &bytes, 1_200));
    }
    for member in &mut members {
        let arrivals = member.await_arrivals(10);
        assert!(
            arrivals.iter().all(|it| it.remote == source.into() && it.bytes.len() == 1_200),
            "{group}"
        );
    }
    let [left, stays] = &mut members;
    left.transport.leave(&membership);
    sender.send_all(&Outgoing::datagram(TrafficClass::Data, group, b"to who stays"));
    assert_eq!(stays.await_arrivals(1)[0].bytes, b"to who stays");
    left.drain();
    assert_eq!(left.arrival_count(), 0, "{group}: who has left gets nothing");
    members.into_iter().chain([sender, stranger]).for_each(Side::end);
}

#[test]
fn members_in_another_namespace_get_what_the_source_sends_and_nothing_else() {
    let Some(four) = tunnel(4, ["10.78.0.1", "10.78.0.2"], 24) else { return };
    cross(&four, "239.78.0.1", false);
    cross(&four, "232.78.0.1", false);
    assert!(four.stop().closes());
    let Some(six) = tunnel(6, ["fd78::1", "fd78::2"], 64) else { return };
    cross(&six, "ff15::78:1", false);
    cross(&six, "ff12::78:1", false);
    cross(&six, "ff35::78:1", true);
    assert!(six.stop().closes());
}
