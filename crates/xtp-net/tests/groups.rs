//! Reliable groups over UDP multicast: two members on loopback, real sockets.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, PORT, host, random_bytes};
use dacapo_xtp::{ContextId, End, Event, GroupPolicy, Leaving, Listen, Message, Open, Read};
use dacapo_xtp_net::{Connectionless, Group, Host, InternetConfig, Udp};
use std::net::SocketAddr;
use std::time::Duration;

const LEN: usize = 500_000;
/// Loopback.
const INTERFACE: u32 = 1;

fn bind(local: SocketAddr) -> Udp {
    let config = InternetConfig::new(local);
    let delivery = dacapo_sys::udp::Delivery { interface: INTERFACE, ..config.delivery };
    Udp::bind(&InternetConfig { delivery, ..config }).unwrap()
}

/// Somebody who hears the group.
struct Hearer {
    host: Host,
    id: Option<ContextId>,
    got: Vec<u8>,
    end: Option<End>,
}

impl Hearer {
    fn new(network: Udp, group: SocketAddr) -> Self {
        let mut host = host(network);
        host.join(Group { address: group, interface: INTERFACE }).unwrap();
        host.listen(Listen::on(PORT)).unwrap();
        Self { host, id: None, got: Vec::new(), end: None }
    }

    fn work(&mut self) {
        self.host.turn(Duration::from_micros(200)).unwrap();
        while let Some(event) = self.host.engine().poll_event() {
            match event {
                Event::Incoming { id, .. } => self.id = Some(id),
                Event::Ended(_, end) => self.end = Some(end),
                _ => {}
            }
        }
        let (Some(id), mut buffer) = (self.id, [0; 8_192]) else { return };
        let now = self.host.now();
        while let Read::Data { len, .. } = self.host.engine().read(now, id, &mut buffer).unwrap() {
            self.got.extend_from_slice(&buffer[..len]);
        }
    }
}

#[test]
fn two_members_of_a_group_get_every_byte_and_the_transmitter_knows() {
    let first = bind("127.0.0.2:0".parse().unwrap());
    let port = first.local().port();
    let second = bind(SocketAddr::new("127.0.0.3".parse().unwrap(), port));
    let group = SocketAddr::new("239.77.4.2".parse().unwrap(), port);
    let mut hearers = [first, second].map(|network| Hearer::new(network, group));
    let mut near = host(bind("127.0.0.1:0".parse().unwrap()));
    let open = Open::reliable_multicast(group, PORT, near.local());
    let (bytes, now, until) = (random_bytes(6, LEN), near.now(), near.after(LONG));
    let id = near.engine().open_group(now, &open, &GroupPolicy::all_of(2)).unwrap();
    let (mut written, mut events, mut most) = (0, Vec::new(), 0);
    while !matches!(events.last(), Some(Event::Ended(..))) {
        let now = near.now();
        assert!(now < until, "{events:?}");
        written +=
            near.engine().write(now, id, &Message::part(&bytes[written..])).unwrap_or_default();
        if written == LEN {
            near.finish(id).unwrap();
        }
        near.turn(Duration::from_micros(200)).unwrap();
        hearers.iter_mut().for_each(Hearer::work);
        most = most.max(near.engine().members(id).unwrap().len());
        events.extend(std::iter::from_fn(|| near.engine().poll_event()));
    }
    let complete = events.iter().filter_map(|event| match event {
        Event::Left(_, member, Leaving::Complete) => Some(member.received()),
        _ => None,
    });
    assert_eq!((complete.collect::<Vec<_>>(), most), (vec![LEN as u64; 2], 2));
    assert_eq!(events.last(), Some(&Event::Ended(id, End::Complete)));
    for hearer in &mut hearers {
        hearer.work();
        assert!(hearer.got == bytes, "{} bytes", hearer.got.len());
        assert_eq!(hearer.end, Some(End::Complete));
    }
}
