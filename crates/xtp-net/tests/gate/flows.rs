//! [`FLOWS`]: one of every kind, each to its end.

use crate::common::{PORT, random_bytes};
use crate::pair::{GOING_BACK, Pair, RESERVING};
use dacapo_xtp::wire::{Limits, Service};
use dacapo_xtp::{ContextId, End, Event, GroupPolicy, Leaving, Message, Mode, Open};
use std::net::SocketAddr;

pub struct Flow {
    name: &'static str,
    run: fn(&mut Pair, &'static str),
}

impl Flow {
    pub fn run(&self, pair: &mut Pair) {
        (self.run)(pair, self.name);
        pair.seen.lose_one_of(0);
        pair.events.iter_mut().for_each(Vec::clear);
        pair.heard.clear();
    }
}

pub const FLOWS: &[Flow] = &[
    Flow { name: "a datagram", run: datagram },
    Flow { name: "an acknowledged datagram", run: acknowledged },
    Flow { name: "a transaction", run: transaction },
    Flow { name: "selective repeat", run: selective },
    Flow { name: "go back n", run: go_back },
    Flow { name: "reservation", run: reserved },
    Flow { name: "without repair", run: unrepaired },
    Flow { name: "a rate", run: rated },
    Flow { name: "tags and deliveries", run: tagged },
    Flow { name: "an abort", run: aborted },
    Flow { name: "a port that nobody has", run: refused },
    Flow { name: "a group without repair", run: group },
    Flow { name: "a reliable group", run: reliable_group },
];

fn open(pair: &mut Pair, port: u16, service: Service, mode: Mode) -> ContextId {
    let [near, far] = &mut pair.hosts;
    let peer = near.address(far.local()).unwrap();
    let at = |address: SocketAddr, port| SocketAddr::new(address.ip(), port);
    let ends = Some((at(peer, port), at(near.local(), 4_000)));
    near.open(&Open { peer, ends, service, mode }).unwrap()
}

fn incoming(pair: &mut Pair, name: &str) -> ContextId {
    pair.until(name, |pair| {
        pair.read(1);
        pair.events[1].iter().find_map(|event| match event {
            Event::Incoming { id, .. } => Some(*id),
            _ => None,
        })
    })
}

fn end(pair: &mut Pair, name: &str, end: usize, id: ContextId) -> End {
    let is_it = |event: &Event| match event {
        Event::Ended(of, how) if *of == id => Some(*how),
        _ => None,
    };
    pair.until(name, |pair| {
        pair.read(1);
        pair.events[end].iter().find_map(is_it)
    })
}

/// The near end sends a stream, the far end nothing; both come to their end, and nothing is left.
fn stream(pair: &mut Pair, name: &str, port: u16, mode: Mode, len: usize) {
    let id = open(pair, port, Service::Stream, mode);
    let bytes = random_bytes(len as u64, len);
    pair.write(0, id, &Message::whole(&bytes));
    pair.hosts[0].finish(id).unwrap();
    let far = incoming(pair, name);
    pair.hosts[1].finish(far).unwrap();
    assert_eq!(end(pair, name, 0, id), End::Complete, "{name}");
    assert_eq!(end(pair, name, 1, far), End::Complete, "{name}");
    let heard = &pair.heard[&(1, far)];
    assert!(heard.bytes == bytes && heard.messages == 1, "{name}: {} bytes", heard.bytes.len());
}

fn datagram(pair: &mut Pair, name: &'static str) {
    let mode = Mode { without_check: true, ..Mode::default() };
    let id = open(pair, PORT, Service::Datagram, mode);
    let bytes = random_bytes(1, 700);
    pair.write(0, id, &Message::whole(&bytes));
    let far = incoming(pair, name);
    pair.until(name, |pair| {
        pair.read(1);
        (pair.heard[&(1, far)].bytes == bytes).then_some(())
    });
}

fn acknowledged(pair: &mut Pair, name: &'static str) {
    let id = open(pair, PORT, Service::AcknowledgedDatagram, Mode::default());
    let bytes = random_bytes(2, 900);
    pair.write(0, id, &Message::whole(&bytes));
    pair.hosts[0].finish(id).unwrap();
    let far = incoming(pair, name);
    pair.hosts[1].finish(far).unwrap();
    assert_eq!(end(pair, name, 0, id), End::Complete);
    assert!(pair.heard[&(1, far)].bytes == bytes);
}

fn transaction(pair: &mut Pair, name: &'static str) {
    let mode = Mode { sort: Some(3), ..Mode::default() };
    let id = open(pair, PORT, Service::Transaction, mode);
    pair.heard.entry((0, id)).or_default();
    let (request, response) = (random_bytes(3, 1_000), random_bytes(4, 5_000));
    pair.write(0, id, &Message::whole(&request));
    pair.hosts[0].finish(id).unwrap();
    let far = incoming(pair, name);
    pair.write(1, far, &Message::whole(&response));
    pair.hosts[1].finish(far).unwrap();
    pair.until(name, |pair| {
        pair.read(0);
        pair.read(1);
        pair.heard[&(0, id)].is_finished.then_some(())
    });
    assert!(pair.heard[&(1, far)].bytes == request && pair.heard[&(0, id)].bytes == response);
}

fn selective(pair: &mut Pair, name: &'static str) {
    pair.seen.lose_one_of(10);
    stream(pair, name, PORT, Mode { fast_report: true, ..Mode::default() }, 200_000);
}

fn go_back(pair: &mut Pair, name: &'static str) {
    pair.seen.lose_one_of(20);
    stream(pair, name, GOING_BACK, Mode { edge: true, ..Mode::default() }, 100_000);
}

/// What may come is what the far end's user has posted, a little at a time.
fn reserved(pair: &mut Pair, name: &'static str) {
    let id = open(pair, RESERVING, Service::Stream, Mode::default());
    let bytes = random_bytes(11, 20_000);
    pair.write(0, id, &Message::whole(&bytes));
    pair.hosts[0].finish(id).unwrap();
    let far = incoming(pair, name);
    pair.hosts[1].finish(far).unwrap();
    for so_far in (4_000..=bytes.len()).step_by(4_000) {
        let now = pair.hosts[1].now();
        pair.hosts[1].engine().post(now, far, 4_000).unwrap();
        pair.until(name, |pair| {
            pair.read(1);
            let len = pair.heard[&(1, far)].bytes.len();
            assert!(len <= so_far, "{len} bytes, and {so_far} were posted");
            (len == so_far).then_some(())
        });
    }
    assert_eq!(end(pair, name, 0, id), End::Complete);
    assert!(pair.heard[&(1, far)].bytes == bytes);
}

fn unrepaired(pair: &mut Pair, name: &'static str) {
    pair.seen.lose_one_of(7);
    let mode = Mode { without_repair: true, without_window: true, ..Mode::default() };
    let id = open(pair, PORT, Service::Stream, mode);
    let bytes = random_bytes(5, 50_000);
    pair.write(0, id, &Message::whole(&bytes));
    pair.hosts[0].finish(id).unwrap();
    let far = incoming(pair, name);
    pair.hosts[1].finish(far).unwrap();
    assert_eq!(end(pair, name, 1, far), End::Complete);
    let heard = &pair.heard[&(1, far)];
    let sum = heard.bytes.len() as u64 + heard.lost;
    assert!(
        heard.lost > 0 && sum == bytes.len() as u64,
        "{} and {}",
        heard.bytes.len(),
        heard.lost
    );
}

fn rated(pair: &mut Pair, name: &'static str) {
    let limits = Limits { out_rate: 2_000_000, out_burst: 20_000, ..Limits::default() };
    let id = open(pair, PORT, Service::Stream, Mode { limits, ..Mode::default() });
    let bytes = random_bytes(6, 100_000);
    pair.write(0, id, &Message::part(&bytes[..50_000]));
    let now = pair.hosts[0].now();
    let other = Limits { out_rate: 4_000_000, ..limits };
    pair.hosts[0].engine().set_limits(now, id, other).unwrap();
    pair.write(0, id, &Message::whole(&bytes[50_000..]));
    pair.hosts[0].finish(id).unwrap();
    let far = incoming(pair, name);
    pair.hosts[1].finish(far).unwrap();
    assert_eq!(end(pair, name, 0, id), End::Complete);
    assert_eq!(end(pair, name, 1, far), End::Complete);
    assert!(pair.heard[&(1, far)].bytes == bytes);
}

fn tagged(pair: &mut Pair, name: &'static str) {
    let id = open(pair, PORT, Service::Stream, Mode::default());
    let bytes = random_bytes(7, 3_000);
    for tag in [*b"message1", *b"message2"] {
        let (is_end, asks_delivery) = (true, true);
        pair.write(
            0,
            id,
            &Message { data: &bytes, is_end, tag: Some(tag), asks_delivery, has_more: false },
        );
        pair.until(name, |pair| {
            pair.read(1);
            let place = pair.events[0].iter().position(|it| *it == Event::Delivered(id))?;
            pair.events[0].remove(place);
            Some(())
        });
    }
    let far = incoming(pair, name);
    assert_eq!(pair.heard[&(1, far)].tags, [*b"message1", *b"message2"]);
    pair.hosts[0].finish(id).unwrap();
    pair.hosts[1].finish(far).unwrap();
    assert_eq!(end(pair, name, 0, id), End::Complete);
}

fn aborted(pair: &mut Pair, name: &'static str) {
    let id = open(pair, PORT, Service::Stream, Mode::default());
    pair.write(0, id, &Message::part(&random_bytes(8, 10_000)));
    let far = incoming(pair, name);
    let now = pair.hosts[0].now();
    pair.hosts[0].engine().abort(now, id).unwrap();
    assert_eq!(end(pair, name, 0, id), End::Abandoned);
    assert_eq!(end(pair, name, 1, far), End::Aborted);
}

fn refused(pair: &mut Pair, name: &'static str) {
    let id = open(pair, PORT + 100, Service::Stream, Mode::default());
    pair.write(0, id, &Message::whole(b"hello"));
    assert!(matches!(end(pair, name, 0, id), End::Refused(..)));
}

fn group(pair: &mut Pair, name: &'static str) {
    let near = &mut pair.hosts[0];
    let asked = Open::multicast(near.address(pair.group).unwrap(), PORT, near.local());
    let id = near.open(&asked).unwrap();
    let bytes = random_bytes(9, 5_000);
    pair.write(0, id, &Message::whole(&bytes));
    pair.hosts[0].finish(id).unwrap();
    let far = incoming(pair, name);
    assert_eq!(end(pair, name, 1, far), End::Complete);
    assert!(pair.heard[&(1, far)].bytes == bytes);
}

fn reliable_group(pair: &mut Pair, name: &'static str) {
    pair.seen.lose_one_of(10);
    let near = &mut pair.hosts[0];
    let (now, group) = (near.now(), near.address(pair.group).unwrap());
    let open = Open::reliable_multicast(group, PORT, near.local());
    let id = near.engine().open_group(now, &open, &GroupPolicy::all_of(1)).unwrap();
    let bytes = random_bytes(10, 100_000);
    pair.write(0, id, &Message::part(&bytes[..50_000]));
    let member = incoming(pair, name);
    pair.write(0, id, &Message::whole(&bytes[50_000..]));
    pair.hosts[0].finish(id).unwrap();
    assert_eq!(end(pair, name, 0, id), End::Complete);
    let is_complete = |event: &Event| matches!(event, Event::Left(_, _, Leaving::Complete));
    assert!(pair.events[0].iter().any(is_complete));
    assert_eq!(end(pair, name, 1, member), End::Complete);
    assert!(pair.heard[&(1, member)].bytes == bytes);
}
