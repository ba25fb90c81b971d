//! The gate of the message service: messages of every kind over a cable between two namespaces,
//! whose packets tshark reads; the one of XTP's own flows is in `dacapo-xtp-net`.
//!
//! `cargo test --workspace --test gate` runs both.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

#[path = "../../xtp-net/tests/common/mod.rs"]
mod common;

use common::cable::{Cable, Over};
use common::{LONG, closes, random_bytes};
use dacapo_base::Time;
use dacapo_safenet::{Config, Event, Messages, Mode, Outcome, Route, Ticket, Traffic};
use dacapo_sys::interface;
use dacapo_xtp_net::{Group, Host};
use std::time::Duration;

const PORT: u16 = 7;
const TURN: Duration = Duration::from_micros(200);

struct Node {
    host: Host,
    messages: Messages,
    got: Vec<Vec<u8>>,
    ended: Vec<(Ticket, Outcome)>,
}

impl Node {
    fn new(cable: &Cable, end: usize, over: Over) -> Self {
        let mut host = Host::new(cable.network(end, over), dacapo_xtp::Config::default()).unwrap();
        let mut source = host.local();
        source.set_port(PORT);
        let mut messages = Messages::new(Config::new(source));
        messages.listen(host.engine(), PORT).unwrap();
        Self { host, messages, got: Vec::new(), ended: Vec::new() }
    }

    fn turn(&mut self) {
        let now = self.host.now();
        self.messages.handle_turn(now, self.host.engine());
        let due = self.messages.deadline();
        self.host.turn(if due == Time::NEVER { TURN } else { TURN.min(due.since(now)) }).unwrap();
        let now = self.host.now();
        self.messages.handle_turn(now, self.host.engine());
        while let Some(part) = self.messages.get_message(now, self.host.engine(), PORT) {
            self.got.push(part.data);
        }
        while let Some(event) = self.messages.poll_event() {
            if let Event::Ended(ticket, outcome) = event {
                self.ended.push((ticket, outcome));
            }
        }
    }
}

/// Sends to a route, one message after the other, and looks that the far end has them.
fn exchange(nodes: &mut [Node; 2], route: Route, mode: Mode, lens: &[usize]) -> Vec<Outcome> {
    nodes[1].got.clear();
    let send = |(seed, len): (usize, &usize)| {
        let (data, near) = (random_bytes(seed as u64, *len), &mut nodes[0]);
        let (now, engine) = (near.host.now(), near.host.engine());
        let ticket = near.messages.send_message(now, engine, route, mode, data.clone()).unwrap();
        let until = near.host.now() + LONG;
        loop {
            let outcome = nodes[0].ended.iter().find(|(of, _)| *of == ticket);
            if let (Some((_, outcome)), Some(got)) = (outcome, nodes[1].got.last())
                && *got == data
            {
                return *outcome;
            }
            assert!(nodes[0].host.now() < until, "{route:?}, {len} bytes: {outcome:?}");
            nodes.iter_mut().for_each(Node::turn);
        }
    };
    lens.iter().enumerate().map(send).collect()
}

#[test]
fn messages_of_every_kind_over_every_network_are_read_by_tshark() {
    let Some(cable) = Cable::new() else { return };
    for over in Over::ALL {
        let mut tap = cable.tap();
        let mut nodes = [0, 1].map(|end| Node::new(&cable, end, over));
        let group = over.group();
        let interface = cable.at(1, || interface::index("v").unwrap());
        cable.at(1, || nodes[1].host.join(Group { address: group, interface }).unwrap());
        let to_host = Route::host(nodes[0].host.address(nodes[1].host.local()).unwrap(), PORT);
        let group = nodes[0].host.address(group).unwrap();
        let (to_group, lens) = (Route::group(group, PORT), [0, 1, 1_400, 65_536]);
        for mode in [Mode::Synchronous, Mode::Asynchronous] {
            let outcomes = exchange(&mut nodes, to_host, mode, &lens);
            assert_eq!(outcomes, [Outcome::Delivered; 4], "{over:?}");
        }
        let urgent = to_host.with_priority(1);
        let (now, near) = (nodes[0].host.now(), &mut nodes[0]);
        let traffic = Traffic { rate: 10_000_000, burst: 20_000 };
        near.messages.set_traffic(now, near.host.engine(), urgent, traffic).unwrap();
        let outcomes = exchange(&mut nodes, urgent, Mode::Asynchronous, &[30_000]);
        assert_eq!(outcomes, [Outcome::Delivered], "{over:?}");
        let outcomes = exchange(&mut nodes, to_group, Mode::Asynchronous, &lens);
        assert_eq!(outcomes, [Outcome::Sent; 4], "{over:?}");
        let repaired = Route::reliable_group(group, PORT);
        let outcomes = exchange(&mut nodes, repaired, Mode::Asynchronous, &lens);
        assert_eq!(outcomes, [Outcome::Reached { members: 1, lost: 0 }; 4], "{over:?}");
        nodes.iter().for_each(|node| closes(&node.host));
        tap.judge(over, nodes.iter().map(|node| node.host.counters().packets_sent).sum());
    }
}
