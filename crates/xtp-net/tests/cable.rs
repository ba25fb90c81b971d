//! Whole associations over a cable between two namespaces, as IP protocol 36, over Ethernet and
//! over UDP, seen by a tap and judged by tshark. Without the right to make them a test says so and
//! ends.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::cable::{Cable, Over, SCRIPT, capture_path};
use common::veth::ip;
use common::{Echo, LONG, closes, gate, host, open, random_bytes, send_and_read_back, transact};
use common::{PORT, Shared};
use dacapo_base::patience;
use dacapo_sys::packet::{self, Inlet};
use dacapo_xtp::wire::Service;
use dacapo_xtp::{Listen, Message, Open, Read};
use dacapo_xtp_net::eui64::MacAddr;
use dacapo_xtp_net::{BindError, CallError, ETHERTYPE, Ethernet, Fault, Group, Host};
use dacapo_xtp_net::{InternetConfig, Ip, Recorded, Udp};
use std::time::{Duration, Instant};

fn hosts(cable: &Cable, over: Over) -> [Host; 2] {
    [0, 1].map(|end| Host::new(cable.network(end, over), Default::default()).unwrap())
}

#[test]
fn streams_and_transactions_cross_every_network_and_tshark_reads_what_the_cable_carried() {
    let Some(cable) = Cable::new() else { return };
    for over in Over::ALL {
        let [mut near, far] = hosts(&cable, over);
        let mut tap = cable.tap();
        let echo = Echo::new(far);
        let bytes = random_bytes(1, 60_000);
        assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes, "{over:?}");
        let request = random_bytes(2, 1_000);
        assert_eq!(transact(&mut near, echo.address, &request).unwrap(), request, "{over:?}");
        closes(&near);
        let far = echo.stop();
        closes(&far);
        tap.judge(over, near.counters().packets_sent + far.counters().packets_sent);
    }
}

#[test]
fn what_goes_over_loopback_is_seen_once() {
    let Some(cable) = Cable::new() else { return };
    let config = InternetConfig::new("127.0.0.1:0".parse().unwrap());
    let [mut near, far] = [0, 1].map(|_| cable.at(0, || host(Udp::bind(&config).unwrap())));
    let port = far.local().port();
    let mut tap = cable.tap_on("lo", port);
    let echo = Echo::new(far);
    let bytes = random_bytes(1, 30_000);
    assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes);
    let far = echo.stop();
    let path = capture_path("loopback");
    let sent = near.counters().packets_sent + far.counters().packets_sent;
    assert_eq!(tap.write(&path), sent);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_a_process_records_itself_is_read_by_tshark_too() {
    let Some(cable) = Cable::new() else { return };
    for over in Over::ALL {
        let file = Shared::default();
        let recorded = Recorded::new(cable.network(0, over), file.clone()).unwrap();
        let (failed, mut near) = (recorded.failed(), host(recorded));
        let echo = Echo::new(Host::new(cable.network(1, over), Default::default()).unwrap());
        let bytes = random_bytes(3, 20_000);
        assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes, "{over:?}");
        echo.stop();
        assert!(failed.lock().unwrap().is_none());
        let count = near.counters().packets_sent + near.counters().packets_received;
        drop(near);
        let path = capture_path(&format!("own-{over:?}"));
        std::fs::write(&path, file.take()).unwrap();
        if gate::has_tshark() {
            assert_eq!(gate::judge_file(&path, &SCRIPT) as u64, count, "{over:?}");
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn short_frames_come_with_padding_and_are_read_all_the_same() {
    let Some(cable) = Cable::new() else { return };
    let [mut near, far] = hosts(&cable, Over::Ethernet);
    let echo = Echo::new(far);
    // A frame of a header only, as a card would pad it, and one that lies about its length.
    let to = MacAddr::of(&echo.address).unwrap().0;
    let hostile = cable.at(0, || {
        packet::Socket::open(dacapo_sys::interface::index("v").unwrap(), ETHERTYPE).unwrap()
    });
    for len in [1, 14, 46, 1_500] {
        hostile.send(to, &vec![0xFF; len]).unwrap();
    }
    let mut padded = vec![0; 46];
    padded[11] = 0x20;
    let check = dacapo_xtp::wire::checksum(dacapo_xtp::wire::sum(&[&padded[..32]]));
    padded[16..18].copy_from_slice(&check.to_be_bytes());
    hostile.send(to, &padded).unwrap();
    assert_eq!(transact(&mut near, echo.address, b"and still").unwrap(), b"and still");
    let mut far = echo.stop();
    let counters = *far.engine().counters();
    assert_eq!(counters.faulty.iter().sum::<u64>(), 4, "{counters:?}");
    // The padded one is whole: DATA of no association.
    assert_eq!(counters.dropped, 1, "{counters:?}");
}

#[test]
fn frames_that_come_by_calls_carry_the_same() {
    let Some(cable) = Cable::new() else { return };
    let by_calls = |end| cable.at(end, || Ethernet::open_by_calls("v", None).unwrap());
    assert_eq!(by_calls(0).inlet().name(), "calls");
    let [mut near, far] = [0, 1].map(|end| host(by_calls(end)));
    let echo = Echo::new(far);
    let bytes = random_bytes(4, 3_000_000);
    assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes);
    closes(&near);
    let far = echo.stop();
    closes(&far);
    // What a socket had no room for is known to the last 1,024 frames.
    let arrived = far.counters().packets_received + far.counters().packets_missed;
    assert!((0..=1_024).contains(&(near.counters().packets_sent - arrived)), "{arrived}");
}

#[test]
fn frames_for_which_a_ring_has_no_slot_are_counted() {
    let Some(cable) = Cable::new() else { return };
    let network = cable.at(1, || Ethernet::open("v", None).unwrap());
    if !matches!(network.inlet(), Inlet::Ring) {
        dacapo_base::skip(network.inlet());
        return;
    }
    let mut far = host(network);
    let to = MacAddr::of(&far.local()).unwrap().0;
    let flood = cable.at(0, || {
        packet::Socket::open(dacapo_sys::interface::index("v").unwrap(), ETHERTYPE).unwrap()
    });
    // More than the slots of the ring while nobody looks, and one more when all were taken.
    const COUNT: u64 = 3_000;
    for _ in 0..COUNT {
        flood.send(to, &[0xFF; 100]).unwrap();
    }
    while far.look().unwrap() {}
    // What was dropped is said with what comes later.
    flood.send(to, &[0xFF; 100]).unwrap();
    let counted = patience::until(Instant::now, LONG, || {
        far.turn(Duration::from_millis(10)).unwrap();
        let counters = *far.counters();
        (counters.packets_received + counters.packets_missed == COUNT + 1).then_some(counters)
    });
    let received = counted.unwrap_or_else(|| panic!("{:?}", far.counters())).packets_received;
    assert!((1..=COUNT).contains(&received), "{received}");
    assert_eq!(far.engine().counters().faulty.iter().sum::<u64>(), received);
}

#[test]
fn a_host_without_xtp_says_so_over_ip_and_a_cable_that_is_cut_is_said_of() {
    let Some(cable) = Cable::new() else { return };
    for (over, peer) in [(Over::Ip4, "10.82.0.2:0"), (Over::Ip6, "[fd82::2]:0")] {
        let mut near = Host::new(cable.network(0, over), Default::default()).unwrap();
        let asked = open(&near, peer.parse().unwrap(), Service::Stream);
        let id = near.open(&asked).unwrap();
        let error = near.wait_open(id, near.after(LONG)).unwrap_err();
        assert!(matches!(error, CallError::Unreachable(Fault::Refused)), "{over:?}: {error}");
        closes(&near);
    }
    let mut near = Host::new(cable.network(0, Over::Ip4), Default::default()).unwrap();
    ip(&format!("-n {} link set v down", cable.ends[0].name()));
    let asked = open(&near, "10.82.0.2:0".parse().unwrap(), Service::Stream);
    let id = near.open(&asked).unwrap();
    let error = near.wait_open(id, near.after(LONG)).unwrap_err();
    assert!(matches!(error, CallError::Unreachable(Fault::Unreachable)), "{error}");
    closes(&near);
}

#[test]
fn what_this_host_forbids_is_said() {
    let Some(cable) = Cable::new() else { return };
    ip(&format!("-n {} route add prohibit 198.51.100.0/24", cable.ends[0].name()));
    for over in [Over::Udp4, Over::Ip4] {
        let mut near = Host::new(cable.network(0, over), Default::default()).unwrap();
        let error =
            transact(&mut near, "198.51.100.1:4040".parse().unwrap(), b"hello").unwrap_err();
        assert!(matches!(error, CallError::Unreachable(Fault::Denied)), "{over:?}: {error}");
        closes(&near);
    }
}

#[test]
fn an_interface_that_goes_away_is_said_of_and_leaves_nobody_waiting() {
    let Some(cable) = Cable::new() else { return };
    let [mut near, far] = hosts(&cable, Over::Ethernet);
    let peer = far.local();
    ip(&format!("-n {} link del v", cable.ends[0].name()));
    let error = transact(&mut near, peer, b"hello").unwrap_err();
    assert!(matches!(error, CallError::Unreachable(_)), "{error}");
    closes(&near);
}

#[test]
fn groups_of_every_network_get_streams_without_repair() {
    let Some(cable) = Cable::new() else { return };
    for over in Over::ALL {
        let [mut near, mut far] = hosts(&cable, over);
        let group = over.group();
        let interface = cable.at(1, || dacapo_sys::interface::index("v").unwrap());
        // A socket may be made for it, which is to be where the others are.
        cable.at(1, || far.join(Group { address: group, interface }).unwrap());
        far.listen(Listen { service: Some(Service::Multicast), ..Listen::on(PORT) }).unwrap();
        let asked = Open::multicast(near.address(group).unwrap(), PORT, near.local());
        let id = near.open(&asked).unwrap();
        let until = near.after(LONG);
        near.write(id, &Message::whole(b"to all who have joined"), until).unwrap();
        near.finish(id).unwrap();
        near.turn(Duration::ZERO).unwrap();
        let member = far.accept(until).unwrap_or_else(|error| panic!("{over:?}: {error}"));
        let mut buffer = [0; 100];
        let read = far.read(member.id, &mut buffer, until).unwrap();
        assert!(matches!(read, Read::Data { len: 22, is_end: true, .. }), "{over:?}: {read:?}");
    }
}

#[test]
fn without_the_right_it_is_said_what_to_do() {
    let config = InternetConfig::new("127.0.0.1:0".parse().unwrap());
    if dacapo_sys::process::uid() == 0 {
        // Root has the right; what would be said is the same.
        let text = BindError::NoRight { what: "IP protocol 36" }.to_string();
        assert!(text.contains("CAP_NET_RAW") && text.contains("setcap"), "{text}");
        return;
    }
    let error = Ip::bind(&config).unwrap_err();
    assert!(matches!(error, BindError::NoRight { .. }), "{error}");
}
