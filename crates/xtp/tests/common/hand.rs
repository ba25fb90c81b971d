//! A transmitter under test, and members that are played by hand.

use super::group::{PORT, group, open};
use super::uut::{Sent, Uut, packet};
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Control, Format, Header, Key, Options, Span, Spans, Traffic,
    TrafficControl,
};
use dacapo_xtp::{Config, GroupPolicy};
use std::net::SocketAddr;

/// The window of a member, bytes.
pub const WINDOW: u64 = 100_000;

/// A transmitter, and what those who play its members know.
pub struct Hand {
    pub uut: Uut,
    /// The key that everybody in the group knows.
    pub key: u64,
    /// The keys that were offered, by member.
    pub offered: Vec<u64>,
}

pub fn host(number: usize) -> SocketAddr {
    ([198, 51, 100, number as u8], 4_040 + (number >> 8) as u16).into()
}

pub fn segment(source: SocketAddr) -> AddressSegment {
    let destination = SocketAddr::new(group().ip(), PORT);
    AddressSegment { domain: 0, address: Address::Internet { destination, source } }
}

/// JCNTL of a member: `key` is under which it asks, `xkey` its own.
pub fn asks(key: Key, xkey: u64, sync: u32, from: SocketAddr) -> Vec<u8> {
    let options = Options::MULTI | Options::SREQ;
    let header = Header { options, sync, ..Header::new(key, Format::Jcntl) };
    let control = Control { rseq: 0, alloc: WINDOW, echo: 0 };
    let traffic = Traffic { service: 6, limits: None };
    packet(&header, &Body::Jcntl(TrafficControl { control, xkey }, segment(from), traffic))
}

impl Hand {
    /// A transmitter that has said FIRST.
    pub fn opened(config: Config, policy: &GroupPolicy) -> Self {
        let mut uut = Uut::new(config);
        uut.id = Some(uut.engine.open_group(uut.now, &open(), policy).unwrap());
        let first = uut.take_one();
        assert_eq!((first.to, first.format()), (group(), Format::First));
        assert!(first.has(Options::MULTI | Options::SREQ) && !first.header().key.is_returned());
        Self { uut, key: first.header().key.value(), offered: Vec::new() }
    }

    /// The same, with so many members.
    pub fn with(count: usize, config: Config) -> Self {
        let policy = GroupPolicy { members_first: count, ..GroupPolicy::default() };
        let mut hand = Self::opened(config, &policy);
        (0..count).for_each(|number| {
            hand.join(number);
        });
        hand.uut.take();
        hand
    }

    /// The own key of a member.
    pub fn own(number: usize) -> u64 {
        1_000 + number as u64
    }

    /// Joins as the next member; returns the admission.
    pub fn join(&mut self, number: usize) -> Sent {
        let key = self.ask(number);
        self.offered.push(key);
        self.confirm(number, key)
    }

    /// Asks under the group's key; returns the key that is offered.
    pub fn ask(&mut self, number: usize) -> u64 {
        let from = host(number);
        self.uut.give_from(from, &asks(Key::returned(self.key), Self::own(number), 1, from));
        let offer = self.uut.take_one();
        assert_eq!((offer.to, offer.format()), (from, Format::Jcntl));
        assert_eq!(offer.header().key, Key::returned(Self::own(number)));
        xkey(&offer)
    }

    /// Asks under the key that was offered.
    pub fn confirm(&mut self, number: usize, key: u64) -> Sent {
        let from = host(number);
        self.uut.give_from(from, &asks(Key::returned(key), Self::own(number), 2, from));
        let sent = self.uut.take();
        let admission = sent.iter().find(|sent| sent.to == from).expect("an admission").clone();
        assert_eq!(admission.format(), Format::Jcntl);
        admission
    }

    /// Status of a member.
    pub fn says(&mut self, number: usize, options: Options, control: Control) {
        let key = Key::returned(self.offered[number]);
        let options = options | Options::MULTI;
        let header = Header { options, sync: 7, ..Header::new(key, Format::Cntl) };
        self.uut.give_from(host(number), &packet(&header, &Body::Cntl(control)));
    }

    /// Status of a member that lacks something: `spans` have arrived.
    pub fn lacks(&mut self, number: usize, control: Control, spans: &[(u64, u64)]) {
        let spans: Vec<Span> = spans.iter().map(|&(left, right)| Span { left, right }).collect();
        let key = Key::returned(self.offered[number]);
        let header = Header { options: Options::MULTI, ..Header::new(key, Format::Ecntl) };
        let body = Body::Ecntl(control, Spans::List(&spans));
        self.uut.give_from(host(number), &packet(&header, &body));
    }
}

/// The key that a JCNTL carries.
pub fn xkey(sent: &Sent) -> u64 {
    match sent.body() {
        Body::Jcntl(control, ..) => control.xkey,
        other => panic!("no JCNTL: {other:?}"),
    }
}
