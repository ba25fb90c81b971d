//! What a sender does for messages to a group, to be counted under callgrind: only `sender_works`.
//!
//! ```text
//!   cargo build --release -p dacapo-safenet --example group_sender
//!   valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*sender_works*' \
//!       target/release/examples/group_sender RECEIVERS [reliable]
//! ```
//!
//! Packets are handed over by a call, which is not counted, nor is what receivers do. It prints
//! what was sent and how it ended.

#![allow(clippy::unwrap_used, reason = "a program to measure with: what fails ends it")]

use dacapo_base::{Random, Time};
use dacapo_safenet::{Config, MessageService, Mode, Route};
use dacapo_xtp::{Engine, GroupPolicy};
use std::net::SocketAddr;
use std::time::Duration;

const PORT: u16 = 7;
const MESSAGES: usize = 2_000;
const LEN: usize = 1_000;

fn host(end: usize) -> SocketAddr {
    ([192, 0, 2, 1 + end as u8], 4_040).into()
}

fn service(end: usize, members: usize) -> MessageService {
    let group_policy = GroupPolicy::all_of(members);
    let config = Config { group_policy, ..Config::new(SocketAddr::new(host(end).ip(), PORT)) };
    let engine = Engine::new(dacapo_xtp::Config::default(), Random::from_number(end as u64));
    let mut service = MessageService::new(config, engine);
    service.listen(PORT).unwrap();
    service
}

/// All that the sender does: takes what has come for it, sends, gives its packets.
#[inline(never)]
fn sender_works(
    sender: &mut MessageService,
    now: Time,
    route: Option<Route>,
    came: &[(SocketAddr, Vec<u8>)],
    packets: &mut Vec<(SocketAddr, Vec<u8>)>,
) {
    for (from, packet) in came {
        sender.handle_packet(now, *from, packet);
    }
    if sender.deadline() <= now {
        sender.handle_time(now);
    }
    if let Some(route) = route {
        sender.send_message(now, route, Mode::Asynchronous, vec![7; LEN]).unwrap();
    }
    let mut packet = Vec::new();
    while let Some(to) = sender.poll_packet(now, &mut packet) {
        packets.push((to, std::mem::take(&mut packet)));
    }
    while sender.poll_event().is_some() {}
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let receivers: usize = words.get(1).map_or(1, |word| word.parse().unwrap());
    let group: SocketAddr = ([239, 1, 2, 3], 4_040).into();
    let is_reliable = words.get(2).is_some_and(|word| word == "reliable");
    let route =
        if is_reliable { Route::reliable_group(group, PORT) } else { Route::group(group, PORT) };
    let mut sender = service(0, receivers);
    let mut others: Vec<MessageService> = (1..=receivers).map(|end| service(end, 1)).collect();
    let mut now = Time::from_millis(1);
    let (mut came, mut taken) = (Vec::new(), 0);
    for turn in 0..MESSAGES * 4 {
        now += Duration::from_millis(1);
        let route = (turn < MESSAGES).then_some(route);
        let mut packets = Vec::new();
        sender_works(&mut sender, now, route, &came, &mut packets);
        came.clear();
        for (end, other) in (1..).zip(&mut others) {
            for (to, packet) in &packets {
                if *to == group || *to == host(end) {
                    other.handle_packet(now, host(0), packet);
                }
            }
            if other.deadline() <= now {
                other.handle_time(now);
            }
            while other.get_message(now, PORT).is_some() {
                taken += 1;
            }
            let mut packet = Vec::new();
            while other.poll_packet(now, &mut packet).is_some() {
                came.push((host(end), std::mem::take(&mut packet)));
            }
            while other.poll_event().is_some() {}
        }
    }
    println!("{receivers} receivers took {taken} messages; {:?}", sender.messages().sums());
}
