//! Whole associations over UDP and loopback, with everything that comes to a port uninvited.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::cable::{SCRIPT, capture_path};
use common::gate;
use common::{Echo, LONG, PORT, closes, host, open, random_bytes, send_and_read_back, transact};
use dacapo_base::{Random, patience};
use dacapo_xtp::wire::{Code, Reason, Service};
use dacapo_xtp::{Config, End, Event, Listen, Message, Open, Read, Timers};
use dacapo_xtp_net::{
    CallError, Connectionless, Fault, Group, Host, InternetConfig, Recorded, Udp,
};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

fn udp(local: &str) -> Udp {
    Udp::bind(&InternetConfig::new(local.parse().unwrap())).unwrap()
}

fn has_ipv6() -> bool {
    let has = UdpSocket::bind("[::1]:0").is_ok();
    if !has {
        dacapo_base::skip("IPv6: this host has no ::1");
    }
    has
}

#[test]
fn a_stream_and_transactions_arrive_whole_over_both_families() {
    for local in ["127.0.0.1:0", "[::1]:0"] {
        if local.starts_with('[') && !has_ipv6() {
            continue;
        }
        let echo = Echo::new(host(udp(local)));
        let mut near = host(udp(local));
        let bytes = random_bytes(1, 1_000_000);
        assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes);
        for at in 0..20 {
            let request = random_bytes(at, 900);
            assert_eq!(transact(&mut near, echo.address, &request).unwrap(), request);
        }
        closes(&near);
        closes(&echo.stop());
    }
}

#[test]
fn equal_packets_leave_in_trains() {
    let echo = Echo::new(host(udp("127.0.0.1:0")));
    let mut near = host(udp("127.0.0.1:0"));
    let bytes = random_bytes(2, 400_000);
    assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes);
    let counters = *near.counters();
    assert!(counters.sends * 2 < counters.packets_sent, "{counters:?}");
    echo.stop();
}

#[test]
fn tshark_reads_what_leaves_from_a_port_of_another_protocol() {
    if !gate::has_tshark() {
        return;
    }
    let path = capture_path("ports");
    let file = std::fs::File::create(&path).unwrap();
    let echo = Echo::new(host(udp("127.0.0.9:7343")));
    // The port of mDNS, which takes whatever comes.
    let recorded = Recorded::new(Box::new(udp("127.0.0.9:5353")), file).unwrap();
    let mut near = host(recorded);
    assert_eq!(transact(&mut near, echo.address, b"a request").unwrap(), b"a request");
    echo.stop();
    drop(near);
    assert!(gate::judge_file(&path, &SCRIPT) >= 2);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn where_nobody_listens_the_host_says_so_at_once() {
    let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut near = host(udp("127.0.0.1:0"));
    let asked = open(&near, gone, Service::Stream);
    let id = near.open(&asked).unwrap();
    let error = near.wait_open(id, near.after(LONG)).unwrap_err();
    assert!(matches!(error, CallError::Unreachable(Fault::Refused)), "{error}");
    assert!(error.to_string().contains("nobody takes XTP there"), "{error}");
    near.release(id).unwrap();
    closes(&near);
}

#[test]
fn a_port_of_xtp_without_a_listener_is_refused_with_its_reason() {
    let echo = Echo::new(host(udp("127.0.0.1:0")));
    let mut near = host(udp("127.0.0.1:0"));
    let asked = open(&near, echo.address, Service::Stream);
    let other = asked.ends.map(|(to, from)| (SocketAddr::new(to.ip(), PORT + 1), from));
    let id = near.open(&Open { ends: other, ..asked }).unwrap();
    let refused = End::Refused(Code::CONTEXT_REFUSED, Reason::NO_LISTENER);
    match near.wait_open(id, near.after(LONG)) {
        Err(CallError::Ended(end, None)) => assert_eq!(end, refused),
        other => panic!("{other:?}"),
    }
    echo.stop();
}

#[test]
fn a_call_ends_by_its_time_and_by_what_is_watched() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut near = host(udp("127.0.0.1:0"));
    let asked = open(&near, silent.local_addr().unwrap(), Service::Stream);
    let id = near.open(&asked).unwrap();
    let soon = near.after(Duration::from_millis(20));
    assert!(matches!(near.wait_open(id, soon), Err(CallError::TimedOut)));
    let (watched, there) = std::os::unix::net::UnixDatagram::pair().unwrap();
    near.watch(std::os::fd::AsFd::as_fd(&watched), 7).unwrap();
    there.send(b"a bell").unwrap();
    assert!(matches!(near.wait_open(id, near.after(LONG)), Err(CallError::Interrupted(7))));
}

#[test]
fn a_flood_of_packets_does_not_keep_an_alarm_away() {
    let mut near = host(udp("127.0.0.1:0"));
    let hostile = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (watched, there) = std::os::unix::net::UnixDatagram::pair().unwrap();
    near.watch(std::os::fd::AsFd::as_fd(&watched), 7).unwrap();
    // More packets wait than a turn takes, at each of these turns.
    let flooded_turn = |near: &mut Host| {
        for _ in 0..100 {
            hostile.send_to(b"junk", near.local()).unwrap();
        }
        near.turn(Duration::ZERO).unwrap();
        near.take_alarm()
    };
    assert_eq!(flooded_turn(&mut near), None);
    there.send(b"a bell").unwrap();
    for turn in 0..10 {
        assert_eq!(flooded_turn(&mut near), Some(7), "turn {turn}");
    }
    assert!(near.counters().packets_received > 0);
}

#[test]
fn a_peer_that_vanishes_ends_the_association_with_what_is_known_of_it() {
    let timers = Timers {
        first_wait: Duration::from_millis(20),
        wait_max: Duration::from_millis(40),
        give_up: Duration::from_millis(200),
        ..Timers::default()
    };
    let config = Config { timers, ..Config::default() };
    let mut near = Host::new(Box::new(udp("127.0.0.1:0")), config).unwrap();
    let mut far = host(udp("127.0.0.1:0"));
    far.listen(Listen::on(PORT)).unwrap();
    let asked = open(&near, far.local(), Service::Stream);
    let id = near.open(&asked).unwrap();
    let opened = patience::until(Instant::now, LONG, || {
        near.turn(Duration::from_millis(1)).unwrap();
        far.turn(Duration::from_millis(1)).unwrap();
        near.engine().status(id).unwrap().is_open.then_some(())
    });
    opened.expect("it was not opened");
    drop(far);
    let until = near.after(LONG);
    near.write(id, &Message::part(b"is anybody there?"), until).unwrap();
    match near.read(id, &mut [0; 9], until) {
        // Loopback tells that the port is closed.
        Err(CallError::Ended(End::TimedOut, Some(Fault::Refused))) => {}
        other => panic!("{other:?}"),
    }
    near.release(id).unwrap();
    closes(&near);
}

#[test]
fn whoever_looks_is_told_of_what_came_left_or_was_due_and_of_nothing_else() {
    let wait = Duration::from_millis(5);
    let timers = Timers { first_wait: wait, wait_max: wait, give_up: wait, ..Timers::default() };
    let config = Config { timers, ..Config::default() };
    let mut near = Host::new(Box::new(udp("127.0.0.1:0")), config).unwrap();
    assert!(!near.look().unwrap(), "nothing was there");
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    other.send_to(b"junk", near.local()).unwrap();
    assert!(patience::until(Instant::now, LONG, || near.look().unwrap().then_some(())).is_some());
    assert_eq!(near.counters().packets_received, 1);
    // Nobody answers: it is sent, sent again, and given up. Each of these is told when it is.
    let asked = open(&near, other.local_addr().unwrap(), Service::Stream);
    let id = near.open(&asked).unwrap();
    let ended = patience::until(Instant::now, LONG, || {
        let (before, due) = (near.counters().packets_sent, near.engine().deadline());
        let has_worked = near.look().unwrap();
        let has_sent = near.counters().packets_sent > before;
        let events: Vec<Event> = std::iter::from_fn(|| near.engine().poll_event()).collect();
        let was_due = due <= near.now();
        assert!(has_worked || !has_sent && events.is_empty(), "{events:?} were not told");
        assert!(!has_worked || has_sent || was_due, "told for nothing");
        events.contains(&Event::Ended(id, End::TimedOut)).then_some(())
    });
    assert!(ended.is_some() && near.counters().packets_sent > 0);
    near.release(id).unwrap();
    closes(&near);
}

#[test]
fn whatever_comes_to_the_port_is_counted_and_harms_nobody() {
    let echo = Echo::new(host(udp("127.0.0.1:0")));
    let mut near = host(udp("127.0.0.1:0"));
    let hostile = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut random = Random::from_number(3);
    let mut sent = 0_u64;
    for round in 0..20 {
        for _ in 0..50 {
            let mut junk = vec![0; random.below(2_000) as usize];
            random.fill(&mut junk);
            if random.chance(0.5) && junk.len() >= 32 {
                // A right version and format, and a length that lies.
                junk[11] = 0x20 | random.below(9) as u8;
            }
            sent += u64::from(hostile.send_to(&junk, echo.address).is_ok());
        }
        let request = random_bytes(round, 100);
        assert_eq!(transact(&mut near, echo.address, &request).unwrap(), request);
    }
    let mut far = echo.stop();
    far.turn(Duration::ZERO).unwrap();
    let faulty: u64 = far.engine().counters().faulty.iter().sum();
    let other = far.engine().counters().dropped;
    assert!(faulty + other >= sent, "{faulty} faulty and {other} dropped of {sent}");
    closes(&far);
}

#[test]
fn a_packet_too_long_for_the_way_is_dropped_and_said_of() {
    let config = InternetConfig {
        packet_len_max: Some(65_507),
        ..InternetConfig::new("127.0.0.1:0".parse().unwrap())
    };
    let mut network = Udp::bind(&config).unwrap();
    assert_eq!(network.packet_len_max(), 65_507);
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = sink.local_addr().unwrap();
    let now = dacapo_base::Time::ZERO;
    let sent = network.send(now, to, &[0; 65_508], 65_508);
    assert_eq!(
        sent,
        Err(dacapo_xtp_net::SendError::Fault(Fault::TooLong { mtu: None })),
        "longer than UDP can be"
    );
    assert_eq!(network.send(now, to, &[0; 65_507], 65_507), Ok(65_507));
}

#[test]
fn long_packets_over_loopback_carry_a_stream() {
    let config = InternetConfig {
        packet_len_max: Some(32_000),
        ..InternetConfig::new("127.0.0.1:0".parse().unwrap())
    };
    let echo = Echo::new(host(Udp::bind(&config).unwrap()));
    let mut near = host(Udp::bind(&config).unwrap());
    let bytes = random_bytes(4, 500_000);
    assert!(send_and_read_back(&mut near, echo.address, &bytes) == bytes);
    assert!(near.counters().packets_sent < 200, "{:?}", near.counters());
    echo.stop();
}

#[test]
fn a_group_gets_a_stream_without_repair() {
    let mut far = host(udp("127.0.0.1:0"));
    let port = far.local().port();
    let group = SocketAddr::new("239.77.4.1".parse().unwrap(), port);
    far.join(Group { address: group, interface: 1 }).unwrap();
    far.listen(Listen { service: Some(Service::Multicast), ..Listen::on(PORT) }).unwrap();
    let config = InternetConfig::new("127.0.0.1:0".parse().unwrap());
    let delivery = dacapo_sys::udp::Delivery { interface: 1, ..config.delivery };
    let mut near = host(Udp::bind(&InternetConfig { delivery, ..config }).unwrap());
    let source = near.local();
    let id = near.open(&Open::multicast(group, PORT, source)).unwrap();
    let until = near.after(LONG);
    let bytes = random_bytes(5, 20_000);
    near.write(id, &Message::whole(&bytes), until).unwrap();
    near.finish(id).unwrap();
    let mut come = Vec::new();
    let mut member = None;
    let mut buffer = vec![0; 4_096];
    while come.len() < bytes.len() {
        near.turn(Duration::from_millis(1)).unwrap();
        far.turn(Duration::from_millis(1)).unwrap();
        if member.is_none() {
            member = far.accept(far.after(Duration::from_millis(1))).ok().map(|it| it.id);
        }
        let Some(id) = member else { continue };
        let now = far.now();
        while let Read::Data { len, .. } = far.engine().read(now, id, &mut buffer).unwrap() {
            come.extend_from_slice(&buffer[..len]);
        }
        assert!(far.now() < until, "only {} bytes came", come.len());
    }
    assert!(come == bytes);
    closes(&near);
}
