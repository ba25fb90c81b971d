//! Streams to a group, without repair: one transmitter, receivers that lose what they lose.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::gate;
use common::uut::{Uut, packet, peer};
use dacapo_base::{Random, Time};
use dacapo_xtp::wire::{
    Address, AddressSegment, Body, Format, Frame, Header, Key, Options, Payload, Service, Traffic,
};
use dacapo_xtp::{Config, ContextId, End, Engine, Event, Listen, Message, Open, Read, UserError};
use std::net::SocketAddr;
use std::time::Duration;

const PORT: u16 = 5_000;

fn group() -> SocketAddr {
    ([239, 1, 2, 3], 4_040).into()
}

fn open() -> Open {
    Open::multicast(group(), PORT, ([192, 0, 2, 1], 4_000).into())
}

/// Who hears a group.
struct Member {
    engine: Engine,
    id: Option<ContextId>,
    read: usize,
    lost: usize,
    end: Option<End>,
}

impl Member {
    fn new(seed: u64) -> Self {
        let mut engine = Engine::new(Config::default(), Random::from_number(seed));
        engine.listen(Listen::on(PORT)).unwrap();
        Self { engine, id: None, read: 0, lost: 0, end: None }
    }

    /// Takes a packet, and reads what there is; what is read must be what was sent.
    fn hear(&mut self, now: Time, bytes: &[u8], data: &[u8]) {
        self.engine.handle_packet(now, peer(), bytes);
        self.work(now, data);
    }

    fn work(&mut self, now: Time, data: &[u8]) {
        assert_eq!(self.engine.poll_packet(now, &mut Vec::new()), None, "a member says nothing");
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Incoming { id, .. } => self.id = Some(id),
                Event::Ended(_, end) => self.end = Some(end),
                _ => {}
            }
        }
        let (Some(id), mut piece) = (self.id, [0; 2_000]) else { return };
        loop {
            let at = self.read + self.lost;
            match self.engine.read(now, id, &mut piece).unwrap() {
                Read::Data { len, .. } => {
                    assert_eq!(piece[..len], data[at..at + len]);
                    self.read += len;
                }
                Read::Hole { len } => self.lost += len as usize,
                Read::Nothing | Read::Finished => break,
            }
        }
    }
}

/// Sends `data` to the group; `lost` says which packet which member loses.
fn transmit(
    data: &[u8],
    members: &mut [Member],
    mut lost: impl FnMut(usize, &Header) -> bool,
) -> Vec<Vec<u8>> {
    let mut engine = Engine::new(Config::default(), Random::from_number(5));
    let (mut now, mut packets, mut written) = (Time::from_millis(1), Vec::new(), 0);
    let id = engine.open(now, &open()).unwrap();
    let mut is_over = false;
    while !is_over {
        written += engine.write(now, id, &Message::part(&data[written..])).unwrap_or(0);
        if written == data.len() {
            engine.finish(now, id).unwrap();
        }
        let mut bytes = Vec::new();
        while let Some(to) = engine.poll_packet(now, &mut bytes) {
            assert_eq!(to, group());
            let bytes = std::mem::take(&mut bytes);
            let header = Frame::open(&bytes).unwrap().header;
            for (number, member) in members.iter_mut().enumerate() {
                if !lost(number, &header) {
                    member.hear(now, &bytes, data);
                }
            }
            packets.push(bytes);
        }
        while let Some(event) = engine.poll_event() {
            is_over |= event == Event::Ended(id, End::Complete);
        }
        now += Duration::from_millis(1);
        assert!(now < Time::from_millis(10_000), "it does not end");
    }
    packets
}

#[test]
fn every_member_accounts_for_every_byte() {
    let mut data = vec![0; 300_000];
    Random::from_number(1).fill(&mut data);
    let mut members = [0, 1, 2].map(Member::new);
    let random = &mut Random::from_number(2);
    let chances = [0.0, 0.05, 0.3];
    let is_kept =
        |header: &Header| header.format == Format::First || header.options.has(Options::END);
    let packets = transmit(&data, &mut members, |number, header| {
        !is_kept(header) && random.chance(chances[number])
    });
    for member in &members {
        assert_eq!(member.read + member.lost, data.len());
        assert_eq!(member.end, Some(End::Complete));
    }
    assert_eq!(members[0].lost, 0);
    assert!(members[1].lost > 0 && members[2].lost > members[1].lost);
    for bytes in &packets {
        let header = Frame::open(bytes).unwrap().header;
        assert!(header.options.has(Options::MULTI | Options::NOERR | Options::NOFLOW));
        assert!(!header.key.is_returned() && !header.options.has_any(Options::SREQ));
    }
    if gate::has_tshark() {
        gate::judge("group", packets.iter().map(Vec::as_slice));
    }
}

#[test]
fn a_member_that_hears_no_end_is_over_after_a_silence() {
    let data = vec![7; 20_000];
    let mut members = [Member::new(1)];
    transmit(&data, &mut members, |_, header| header.options.has(Options::END));
    let [member] = &mut members;
    assert_eq!(member.end, None);
    let deadline = member.engine.deadline();
    member.engine.handle_time(deadline);
    member.work(deadline, &data);
    assert_eq!(member.end, Some(End::TimedOut));
    assert!(member.read > 0);
}

#[test]
fn who_missed_the_beginning_says_nothing_and_hears_nothing() {
    let mut members = [Member::new(1)];
    transmit(&[7; 20_000], &mut members, |_, header| header.format == Format::First);
    assert_eq!((members[0].read, members[0].id), (0, None));
}

#[test]
fn what_comes_late_from_a_group_is_not_answered() {
    let data = vec![7; 5_000];
    let mut members = [Member::new(1)];
    let packets = transmit(&data, &mut members, |_, _| false);
    let [member] = &mut members;
    for bytes in packets {
        member.hear(Time::from_millis(50), &bytes, &data);
    }
    assert_eq!(member.read, data.len(), "nothing twice");
}

#[test]
fn a_member_cannot_write_and_an_abort_is_heard() {
    let mut engine = Engine::new(Config::default(), Random::from_number(5));
    let (now, mut member) = (Time::from_millis(1), Member::new(1));
    let id = engine.open(now, &open()).unwrap();
    engine.write(now, id, &Message::part(&[7; 100])).unwrap();
    let hear = |engine: &mut Engine, member: &mut Member| {
        let mut bytes = Vec::new();
        while engine.poll_packet(now, &mut bytes).is_some() {
            member.hear(now, &std::mem::take(&mut bytes), &[7; 100]);
        }
    };
    hear(&mut engine, &mut member);
    let written = member.engine.write(now, member.id.unwrap(), &Message::part(b"x"));
    assert_eq!(written, Err(UserError::Closed));
    engine.abort(now, id).unwrap();
    hear(&mut engine, &mut member);
    assert_eq!((member.read, member.end), (100, Some(End::Aborted)));
}

#[test]
fn a_group_is_never_told_that_it_is_refused() {
    let mut uut = Uut::listening(Listen { service: Some(Service::Stream), ..Listen::on(PORT) });
    let options = Options::MULTI;
    for service in [6, 5, 4] {
        let address = Address::Internet {
            destination: SocketAddr::new(group().ip(), PORT),
            source: ([192, 0, 2, 1], 4_000).into(),
        };
        let segment = AddressSegment { domain: 0, address };
        let header = Header { options, ..Header::new(Key::own(9), Format::First) };
        let traffic = Traffic { service, limits: None };
        uut.give(packet(&header, &Body::First(segment, traffic, Payload::default())));
        uut.silent();
    }
    assert_eq!((uut.engine.context_count(), uut.engine.counters().refused), (0, 3));
}
