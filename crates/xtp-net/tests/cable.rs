//! Whole associations over a cable between two namespaces, as IP protocol 36, over Ethernet and
//! over UDP, seen by a tap and judged by tshark. Without the right to make them a test says so and
//! ends.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::cable::{Cable, ip};
use common::{Echo, LONG, closes, gate, host, open, random_bytes, send_and_read_back, transact};
use common::{PORT, Shared};
use dacapo_sys::packet;
use dacapo_xtp::wire::Service;
use dacapo_xtp::{Listen, Message, Open, Read};
use dacapo_xtp_net::eui64::MacAddr;
use dacapo_xtp_net::{
    BindError, CallError, CaptureWriter, Connectionless, ETHERTYPE, Ethernet, Fault, Group, Host,
    InternetConfig, Ip, LinkType, Recorded, Sniffer, Udp,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LUA: &str = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/tests/common/xtp.lua");

#[derive(Clone, Copy, Debug, PartialEq)]
enum Over {
    Udp4,
    Udp6,
    Ip4,
    Ip6,
    Ethernet,
}

const ALL: [Over; 5] = [Over::Udp4, Over::Udp6, Over::Ip4, Over::Ip6, Over::Ethernet];

/// The network of an end of a cable.
fn network(cable: &Cable, end: usize, over: Over) -> Box<dyn Connectionless> {
    let four = ["10.82.0.1:4040", "10.82.0.2:4040"][end];
    let six = ["[fd82::1]:4040", "[fd82::2]:4040"][end];
    let config = |at: &str| InternetConfig::new(at.parse().unwrap());
    cable.at(end, || -> Box<dyn Connectionless> {
        match over {
            Over::Udp4 => Box::new(Udp::bind(&config(four)).unwrap()),
            Over::Udp6 => Box::new(Udp::bind(&config(six)).unwrap()),
            Over::Ip4 => Box::new(Ip::bind(&config(four)).unwrap()),
            Over::Ip6 => Box::new(Ip::bind(&config(six)).unwrap()),
            Over::Ethernet => Box::new(Ethernet::open("v", None).unwrap()),
        }
    })
}

fn hosts(cable: &Cable, over: Over) -> [Host; 2] {
    [0, 1].map(|end| Host::new(network(cable, end, over), Default::default()).unwrap())
}

fn capture_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("dacapo-xtp-net-{}-{name}.pcapng", std::process::id()))
}

/// Everything that the tap has seen, in a file.
fn write_seen(sniffer: &mut Sniffer, path: &Path) -> usize {
    let mut writer =
        CaptureWriter::new(std::fs::File::create(path).unwrap(), LinkType::Ethernet).unwrap();
    let (mut count, mut at_ns) = (0, 0);
    while let Some(seen) = sniffer
        .next(|packet| {
            at_ns += 1_000;
            writer.packet(at_ns, packet)
        })
        .unwrap()
    {
        count += seen;
    }
    count
}

#[test]
fn streams_and_transactions_cross_every_network_and_tshark_reads_what_the_cable_carried() {
    let Some(cable) = Cable::new() else { return };
    for over in ALL {
        let [mut near, far] = hosts(&cable, over);
        let mut sniffer = cable.at(0, || Sniffer::open("v", 4_040).unwrap());
        let echo = Echo::new(far);
        let bytes = random_bytes(1, 60_000);
        assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes, "{over:?}");
        let request = random_bytes(2, 1_000);
        assert_eq!(transact(&mut near, echo.address, &request).unwrap(), request, "{over:?}");
        closes(&near);
        let far = echo.stop();
        closes(&far);
        let path = capture_path(&format!("{over:?}"));
        let count = write_seen(&mut sniffer, &path);
        let sent = near.counters().packets_sent + far.counters().packets_sent;
        assert_eq!(sniffer.take_drops().unwrap(), 0);
        assert_eq!(count as u64, sent, "{over:?}: not all that was sent was seen");
        if gate::has_tshark() {
            let script = ["-X", LUA, "-X", "lua_script1:4040"];
            assert_eq!(gate::judge_file(&path, &script), count, "{over:?}");
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_goes_over_loopback_is_seen_once() {
    let Some(cable) = Cable::new() else { return };
    let config = InternetConfig::new("127.0.0.1:0".parse().unwrap());
    let [mut near, far] = [0, 1].map(|_| cable.at(0, || host(Udp::bind(&config).unwrap())));
    let port = far.local().port();
    let mut sniffer = cable.at(0, || Sniffer::open("lo", port).unwrap());
    let echo = Echo::new(far);
    let bytes = random_bytes(1, 30_000);
    assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes);
    let far = echo.stop();
    let path = capture_path("loopback");
    let sent = near.counters().packets_sent + far.counters().packets_sent;
    assert_eq!(write_seen(&mut sniffer, &path) as u64, sent);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_a_process_records_itself_is_read_by_tshark_too() {
    let Some(cable) = Cable::new() else { return };
    for over in ALL {
        let file = Shared::default();
        let recorded = Recorded::new(network(&cable, 0, over), file.clone()).unwrap();
        let (failed, mut near) = (recorded.failed(), host(recorded));
        let echo = Echo::new(Host::new(network(&cable, 1, over), Default::default()).unwrap());
        let bytes = random_bytes(3, 20_000);
        assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes, "{over:?}");
        echo.stop();
        assert!(failed.lock().unwrap().is_none());
        let count = near.counters().packets_sent + near.counters().packets_received;
        drop(near);
        let path = capture_path(&format!("own-{over:?}"));
        std::fs::write(&path, file.take()).unwrap();
        if gate::has_tshark() {
            let script = ["-X", LUA, "-X", "lua_script1:4040"];
            assert_eq!(gate::judge_file(&path, &script) as u64, count, "{over:?}");
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
fn a_host_without_xtp_says_so_over_ip_and_a_cable_that_is_cut_is_said_of() {
    let Some(cable) = Cable::new() else { return };
    for (over, peer) in [(Over::Ip4, "10.82.0.2:0"), (Over::Ip6, "[fd82::2]:0")] {
        let mut near = Host::new(network(&cable, 0, over), Default::default()).unwrap();
        let asked = open(&near, peer.parse().unwrap(), Service::Stream);
        let id = near.open(&asked).unwrap();
        let error = near.wait_open(id, near.after(LONG)).unwrap_err();
        assert!(matches!(error, CallError::Unreachable(Fault::Refused)), "{over:?}: {error}");
        closes(&near);
    }
    let mut near = Host::new(network(&cable, 0, Over::Ip4), Default::default()).unwrap();
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
        let mut near = Host::new(network(&cable, 0, over), Default::default()).unwrap();
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
    for (over, group) in [
        (Over::Udp6, "[ff15::82]:4040"),
        (Over::Ip4, "239.82.0.1:0"),
        (Over::Ip6, "[ff15::82]:0"),
        (Over::Ethernet, "[ff02::82]:0"),
    ] {
        let [mut near, mut far] = hosts(&cable, over);
        let group: SocketAddr = group.parse().unwrap();
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
