//! [`Pair`]: two hosts at the ends of a cable, turned by one thread, and what they were told.

use crate::common::cable::{Cable, Over};
use crate::common::{LONG, PORT};
use crate::watched::{Seen, Watched};
use dacapo_sys::interface;
use dacapo_xtp::{Config, ContextId, Event, Listen, Message, Mode, Read, Retransmission, Timers};
use dacapo_xtp_net::{Group, Host};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Ports of XTP whose listeners answer in a mode of their own.
pub const RESERVING: u16 = PORT + 1;
pub const GOING_BACK: u16 = PORT + 2;

fn listeners() -> [(u16, Mode); 3] {
    let plain = Mode::default();
    [
        (PORT, plain),
        (RESERVING, Mode { reserve: true, ..plain }),
        (GOING_BACK, Mode { retransmission: Retransmission::GoBackN, ..plain }),
    ]
}

/// What has come by an association.
#[derive(Default)]
pub struct Heard {
    pub bytes: Vec<u8>,
    /// Bytes that were lost and not sent again.
    pub lost: u64,
    pub tags: Vec<[u8; 8]>,
    pub messages: usize,
    pub is_finished: bool,
}

pub struct Pair {
    pub hosts: [Host; 2],
    pub seen: Seen,
    pub group: SocketAddr,
    /// What was told at each end and nobody has taken.
    pub events: [Vec<Event>; 2],
    /// What has come, by end and association.
    pub heard: BTreeMap<(usize, ContextId), Heard>,
}

impl Pair {
    pub fn new(cable: &Cable, over: Over) -> Self {
        let seen = Seen::default();
        // A FIRST may be lost, and a second is long here.
        let timers = Timers { first_wait: Duration::from_millis(100), ..Timers::default() };
        let hosts = [0, 1].map(|end| {
            let inner = cable.network(end, over);
            let watched = Watched { inner, seen: seen.clone() };
            Host::new(Box::new(watched), Config { timers, ..Config::default() }).unwrap()
        });
        let mut pair = Self {
            group: over.group(),
            hosts,
            seen,
            events: Default::default(),
            heard: BTreeMap::new(),
        };
        let interface = cable.at(1, || interface::index("v").unwrap());
        let group = Group { address: pair.group, interface };
        cable.at(1, || pair.hosts[1].join(group).unwrap());
        for (port, mode) in listeners() {
            pair.hosts[1].listen(Listen { mode, ..Listen::on(port) }).unwrap();
        }
        pair
    }

    /// Turns both until `done` gives something.
    pub fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = self.hosts[0].now() + LONG;
        loop {
            if let Some(value) = done(self) {
                return value;
            }
            assert!(self.hosts[0].now() < end, "{what}: {:?}", self.events);
            for (host, events) in self.hosts.iter_mut().zip(&mut self.events) {
                host.turn(Duration::from_micros(200)).unwrap();
                events.extend(std::iter::from_fn(|| host.engine().poll_event()));
            }
        }
    }

    /// Writes all of a message at an end.
    pub fn write(&mut self, end: usize, id: ContextId, message: &Message<'_>) {
        let mut rest = *message;
        self.until("write", |pair| {
            let now = pair.hosts[end].now();
            let taken = pair.hosts[end].engine().write(now, id, &rest).unwrap();
            rest.data = &rest.data[taken..];
            rest.tag = rest.tag.filter(|_| taken == 0);
            pair.read(1 - end);
            rest.data.is_empty().then_some(())
        });
    }

    /// Reads what has come at an end, of everything that it was told of.
    pub fn read(&mut self, end: usize) {
        let known = self.heard.keys().filter(|(of, _)| *of == end).map(|(_, id)| *id);
        let fresh = self.events[end].iter().filter_map(|event| match event {
            Event::Incoming { id, .. } => Some(*id),
            _ => None,
        });
        let ids: Vec<ContextId> = known.chain(fresh).collect();
        let (host, mut buffer) = (&mut self.hosts[end], [0; 8_192]);
        let now = host.now();
        for id in ids {
            let heard = self.heard.entry((end, id)).or_default();
            loop {
                match host.engine().read(now, id, &mut buffer) {
                    Ok(Read::Data { len, is_end, tag }) => {
                        heard.bytes.extend_from_slice(&buffer[..len]);
                        heard.messages += usize::from(is_end);
                        heard.tags.extend(tag);
                    }
                    Ok(Read::Hole { len }) => heard.lost += len,
                    Ok(Read::Finished) => {
                        heard.is_finished = true;
                        break;
                    }
                    Ok(Read::Nothing) | Err(_) => break,
                }
            }
        }
    }
}
