//! What a host says of a port where nothing listens, over a cable between two network namespaces:
//! true, and forged. Without the right to make them a test says so and ends.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::veth::{Cable, ip};
use common::{LONG, Place, Running, movie_session, wait_until};
use dacapo_sys::raw;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

const NEAR: &str = "10.78.0.1";
const FAR: &str = "10.78.0.2";
const PORT: u16 = 19_980;

/// Far less than the ten seconds that silence takes.
const SOON: Duration = Duration::from_secs(5);

/// A forger that stops after this time leaves the rest of a second: three refusals within less are
/// not to be believed.
const FORGES: Duration = Duration::from_millis(700);

fn ls(cable: &Cable, place: &Place) -> Running {
    cable.at(0, || place.start(&["ls", FAR]))
}

#[test]
fn a_host_that_goes_on_refusing_is_believed() {
    let Some(cable) = Cable::of_net(78) else { return };
    let place = Place::new();
    let run = ls(&cable, &place).wait(LONG).expect(3);
    run.says(&["nothing listens at the address", FAR, "--wait 10s"]);
    assert!(run.took < SOON, "{:?}", run.took);
}

#[test]
fn a_host_that_drops_in_silence_is_given_ten_seconds() {
    let Some(cable) = Cable::of_net(78) else { return };
    let place = Place::new();
    ip(&format!("-n {} rule add pref 1 iif lo blackhole", cable.ends[1].name()));
    let run = ls(&cable, &place).wait(LONG).expect(3);
    run.says(&["nothing answers at the address", FAR, "no answer in 10 s"]);
}

#[test]
fn forged_refusals_beside_a_server_that_answers_keep_nobody_away() {
    let Some(cable) = Cable::of_net(78) else { return };
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let serve = ["serve", "a.toml", "--listen", FAR, "--json"];
    let server = cable.at(1, || place.start(&serve));
    server.wait_for_out("listening", LONG);
    // It answers only when some have been forged.
    server.signal("STOP");
    let ls = ls(&cable, &place);
    let forged = forge(&cable, || server.signal("CONT"));
    let run = ls.wait(LONG).expect(0);
    assert!(run.out.contains("movie"), "{}", run.all());
    assert!(forged >= 3, "{forged} refusals were forged");
    server.signal("TERM");
    server.wait(LONG).expect(143);
}

/// Says to each socket at the near end that is connected to the server that nothing listens there,
/// again and again; how often. `answer` is called after the third time.
fn forge(cable: &Cable, mut answer: impl FnMut() + Send) -> u32 {
    cable.at(0, || {
        let here = |host: &str| SocketAddr::from((host.parse::<Ipv4Addr>().unwrap(), 0));
        let socket = raw::Socket::bind(here(NEAR), 1).unwrap();
        let mut ports = Vec::new();
        let found = wait_until(LONG, || {
            ports = connected_ports();
            !ports.is_empty()
        });
        assert!(found, "nobody dials");
        let (began, mut count) = (Instant::now(), 0);
        while began.elapsed() < FORGES {
            for port in &ports {
                socket.send(here(NEAR), &unreachable(*port)).unwrap();
            }
            count += 1;
            if count == 3 {
                answer();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        count
    })
}

/// The ports of the sockets of UDP in this namespace that are connected to the server.
fn connected_ports() -> Vec<u16> {
    let text = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap();
    let far = u32::from_ne_bytes(FAR.parse::<Ipv4Addr>().unwrap().octets());
    let remote = format!("{far:08X}:{PORT:04X}");
    let mut ports = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(2) == Some(&remote.as_str()) {
            let (_, port) = words[1].split_once(':').unwrap();
            ports.push(u16::from_str_radix(port, 16).unwrap());
        }
    }
    ports
}

/// A message of ICMP: port unreachable, about a datagram from this port to the server.
fn unreachable(from: u16) -> Vec<u8> {
    let [near, far] = [NEAR, FAR].map(|host| host.parse::<Ipv4Addr>().unwrap().octets());
    let mut message = vec![3, 3, 0, 0, 0, 0, 0, 0];
    // An IPv4 header of 20 bytes and a datagram of 100, and of that its header.
    message.extend([0x45, 0, 0, 128, 0, 1, 0x40, 0, 64, 17, 0, 0]);
    message.extend(near);
    message.extend(far);
    for word in [from, PORT, 108, 0] {
        message.extend(word.to_be_bytes());
    }
    let sum: u32 = message.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum();
    let sum = !(((sum & 0xFFFF) + (sum >> 16)) as u16);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}
