//! Associations of a listener: which are looked at, and that all that came is accounted for.

use super::*;
use crate::conformance::Side;
use crate::stream::StreamEvent;
use crate::xtp::Xtp;
use crate::xtp::config::listener_packet_len;
use crate::xtp::stream_of::lock;
use crate::{Outgoing, StreamTransport, TrafficClass, Transport};
use dacapo_xtp::wire::Body;
use std::io::{IoSlice, IoSliceMut};

/// A listener and so many dialers, between which packets go in memory.
struct Net {
    listener: Links,
    dialers: Vec<(SocketAddr, Links)>,
    now: Time,
}

fn address(number: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1_000 + number))
}

fn token(number: u16) -> Token {
    let mut token = [9; 16];
    token[2..4].copy_from_slice(&number.to_be_bytes());
    token
}

impl Net {
    /// All associations are open.
    fn new(mode: Mode, count: u16) -> Self {
        Self::with(mode, count, Config::default().buffer_len)
    }

    fn with(mode: Mode, count: u16, buffer_len: usize) -> Self {
        Self::of(mode, count, &StreamParams::default(), buffer_len)
    }

    fn of(mode: Mode, count: u16, terms: &StreamParams, buffer_len: usize) -> Self {
        let config = Config { buffer_len, ..Config::default() };
        let links =
            |seed| Links::new(&config, mode, listener_packet_len(), Random::from_number(seed));
        let mut listener = links(1);
        let to = address(0);
        let dialer = |number: u16| {
            let mut dialer = links(100 + u64::from(number));
            listener.labels.expect(&token(number), Time::NEVER, Time::ZERO).unwrap();
            dialer.dial(to, &token(number), terms);
            (address(number), dialer)
        };
        let dialers = (1..=count).map(dialer).collect();
        let mut net = Self { listener, dialers, now: Time::from_millis(1) };
        net.turn(|_| true);
        net.turn(|_| true);
        assert_eq!(net.listener.links.len(), usize::from(count));
        net
    }

    /// The time is told to all; those that `speak` exchange packets with the listener.
    fn turn(&mut self, speaks: impl Fn(usize) -> bool) {
        let to = address(0);
        self.listener.handle_time(self.now);
        for (number, (from, dialer)) in self.dialers.iter_mut().enumerate() {
            dialer.handle_time(self.now);
            if speaks(number) {
                carry(dialer, |label, packet| {
                    let datagram = [&label::head(label), packet].concat();
                    self.listener.handle_datagram(0, *from, &datagram);
                });
            }
        }
        while self.listener.poll_told().is_some() {}
        let dialers = &mut self.dialers;
        carry_to(&mut self.listener, |to_dialer, label, packet| {
            let datagram = [&label::head(label), packet].concat();
            let dialer = dialers.iter_mut().find(|(address, _)| *address == to_dialer);
            dialer.into_iter().for_each(|(_, it)| it.handle_datagram(0, to, &datagram));
        });
        for (_, dialer) in &mut self.dialers {
            while dialer.poll_told().is_some() {}
            dialer.look_up_deadline(Duration::ZERO);
        }
        self.listener.close_left();
        self.listener.look_up_deadline(Duration::ZERO);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn carry(links: &mut Links, mut each: impl FnMut(u32, &[u8])) {
    carry_to(links, |_, label, packet| each(label, packet));
}

fn carry_to(links: &mut Links, mut each: impl FnMut(SocketAddr, u32, &[u8])) {
    let mut packet = Vec::new();
    while let Some(to) = links.poll_packet(&mut packet) {
        let label = links.route_of(to).map_or(0, |route| route.label);
        each(to, label, &packet);
        packet.clear();
    }
}

/// How often a listener looks at an association in 300 turns, in each of which something comes by
/// the first of so many.
fn looks_beside(mode: Mode, idle: u8) -> u64 {
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let (config, terms) = (Config::default(), StreamParams::default());
    let mut listener = Xtp::serve(&[here], mode, Random::from_number(1), &config).unwrap();
    let remote = listener.local_addrs()[0];
    let mut dialers = Vec::new();
    for number in 0..=idle {
        listener.expect([number; 16], Time::NEVER);
        let random = Random::from_number(100 + u64::from(number));
        let dialer =
            Xtp::dial(remote.ip().unwrap(), [number; 16], mode, &terms, random, &config).unwrap();
        dialers.push(Side::new(Box::new(dialer)));
    }
    let mut listener = Side::new(Box::new(listener));
    for _ in 0..10_000 {
        for side in &mut dialers {
            side.turn();
        }
        listener.turn();
        if dialers.iter().all(|side| side.transport.stats().streams.opened == 1) {
            break;
        }
    }
    for _ in 0..10 {
        listener.turn();
    }
    let looks = |side: &Side<Xtp>| lock(&side.transport.links).looks;
    let before = looks(&listener);
    for _ in 0..300 {
        dialers[0].send_all(&Outgoing::datagram(TrafficClass::Data, remote, &[7; 100]));
        listener.turn();
    }
    assert_eq!(listener.take_arrivals().len(), 300);
    let count = looks(&listener) - before;
    dialers.into_iter().chain([listener]).for_each(Side::end);
    count
}

#[test]
fn idle_associations_are_not_looked_at_however_many_there_are() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        let [alone, beside] = [0, 60].map(|idle| looks_beside(mode, idle));
        assert!(alone <= 600 && beside <= 600, "{mode:?}: {alone} alone, {beside} beside 60");
    }
}

#[test]
fn those_that_are_let_go_are_looked_at_until_they_are_over() {
    let mut net = Net::new(Mode::Streams, 30);
    (0..20).for_each(|number| net.listener.let_go(number));
    net.turn(|_| true);
    assert_eq!((net.listener.links.len(), net.listener.left.len()), (10, 0));
    let before = net.listener.looks;
    net.pass(Duration::from_millis(1));
    net.turn(|_| true);
    assert_eq!(net.listener.looks, before);
}

/// Sends datagrams of these lengths in turn for 5 s, as fast as the bound allows; the bytes of
/// them that are behind at the end.
fn behind(mode: Mode, bound_bps: u64, lens: &[usize]) -> usize {
    let terms = StreamParams { bound_bps, ..StreamParams::default() };
    let mut net = Net::of(mode, 1, &terms, Config::default().buffer_len);
    let (mut sent, mut got, mut number) = (0, 0, 0);
    let mut buffer = vec![0; 1 << 20];
    let begun = net.now;
    while net.now < begun + Duration::from_secs(5) {
        net.pass(Duration::from_millis(1));
        let due = net.now.since(begun).as_nanos() * u128::from(bound_bps) / 8 / 1_000_000_000;
        while (sent as u128) < due {
            let len = lens[number % lens.len()];
            number += 1;
            let (bytes, dialer) = (vec![7; len], &mut net.dialers[0].1);
            let is_taken = match mode {
                Mode::Datagrams => dialer.put(0, Kind::Datagram, &bytes),
                Mode::Streams => {
                    dialer.expect_records(0, len);
                    let record = [&(len as u32).to_be_bytes()[..], &bytes].concat();
                    matches!(dialer.write(0, &[IoSlice::new(&record)]), Ok(all) if all == len + 4)
                }
            };
            assert!(is_taken, "{mode:?} {bound_bps} {lens:?}: after {sent} bytes");
            sent += len;
        }
        net.turn(|_| true);
        got += match mode {
            Mode::Streams => net.listener.read(0, &mut [IoSliceMut::new(&mut buffer)]).unwrap_or(0),
            Mode::Datagrams => {
                net.listener.take_messages(0);
                let messages = &mut net.listener.link(0).unwrap().messages;
                let len = messages.lens().sum::<usize>();
                messages.clear();
                len
            }
        };
    }
    let lengths = if mode == Mode::Streams { 4 * number } else { 0 };
    (sent + lengths) - got
}

/// Whoever paces a flow to its bound is not slowed down by RATE and BURST, whatever is sent.
#[test]
fn a_flow_at_its_bound_is_not_slowed_down() {
    for mode in [Mode::Streams, Mode::Datagrams] {
        for bound_bps in [64_000, 400_000, 2_400_000] {
            for lens in [&[16][..], &[1], &[40], &[800], &[1_150], &[1_000, 16, 400]] {
                let behind = behind(mode, bound_bps, lens);
                let most = 6_000 + bound_bps as usize / 8 / 50;
                assert!(behind <= most, "{mode:?} {bound_bps} {lens:?}: {behind} bytes");
            }
        }
    }
}

/// What an association had brought, in the engine or out of it, is counted when it ends.
#[test]
fn datagrams_that_nobody_read_are_counted_when_their_association_ends() {
    let mut net = Net::new(Mode::Datagrams, 1);
    // Behind the preface only as much is taken as has room.
    assert!(net.dialers[0].1.put(0, Kind::Stream, &[0; 24]));
    net.turn(|_| true);
    net.listener.take_messages(0);
    let mut sent = 0;
    for _ in 0..400 {
        sent += u64::from(net.dialers[0].1.put(0, Kind::Datagram, &[7; 1_000]));
        net.pass(Duration::from_micros(100));
        net.turn(|_| true);
    }
    assert_eq!(sent, 400);
    net.listener.take_messages(0);
    assert!(net.listener.link(0).unwrap().messages.lens().count() < 100);
    net.listener.end_all();
    assert_eq!(net.listener.take_drops(), Drops { closed: sent, ..Drops::default() });
}

/// Of small datagrams the engine keeps fewer than the window lets through; behind a hole half.
#[test]
fn datagrams_for_which_the_engine_has_no_room_are_counted() {
    for loses in [false, true] {
        let mut net = Net::with(Mode::Datagrams, 1, 4_096);
        assert!(net.dialers[0].1.put(0, Kind::Stream, &[0; 24]));
        net.turn(|_| true);
        net.listener.take_messages(0);
        let mut sent = 0;
        for number in 0..3_000 {
            sent += u64::from(net.dialers[0].1.put(0, Kind::Empty, &[]));
            net.turn(|_| !loses || number != 100);
            if loses && number == 100 {
                carry(&mut net.dialers[0].1, |_, _| sent -= 1);
            }
        }
        let drops = net.listener.take_drops();
        assert!(drops.queue_full > 1_000, "{drops:?}");
        net.listener.end_all();
        let counted = drops.total() + net.listener.take_drops().total();
        assert_eq!(counted, sent, "loses one: {loses}");
    }
}

/// The front of a datagram has come and its end has not, when the association ends.
#[test]
fn a_datagram_that_is_not_whole_at_the_end_is_counted() {
    let mut net = Net::with(Mode::Datagrams, 1, 4_096);
    assert!(net.dialers[0].1.put(0, Kind::Stream, &[0; 24]));
    net.turn(|_| true);
    net.listener.take_messages(0);
    // Nobody reads: the window ends within the fifth.
    for _ in 0..5 {
        assert!(net.dialers[0].1.put(0, Kind::Datagram, &[7; 1_000]));
        net.turn(|_| true);
    }
    net.listener.end_all();
    let drops = net.listener.take_drops();
    assert_eq!((drops.closed, drops.incomplete), (4, 1));
}

/// The limits of XTP follow the shortest record once, and from the first packet on.
#[test]
fn limits_become_wider_once_for_records_without_bytes() {
    let terms = StreamParams { bound_bps: 64_000, ..StreamParams::default() };
    let mut net = Net::of(Mode::Streams, 1, &terms, 4_096);
    let dialer = &mut net.dialers[0].1;
    for times in 0..3 {
        dialer.expect_records(0, 0);
        let mut count = 0;
        carry(dialer, |_, _| count += 1);
        assert_eq!(count > 0, times == 0, "said once: {times}");
    }
    let mut early = Links::new(&Config::default(), Mode::Streams, 1_195, Random::from_number(7));
    let number = early.dial(address(0), &token(1), &terms);
    early.expect_records(number, 1);
    early.handle_time(Time::from_millis(1));
    let mut rates = Vec::new();
    carry(&mut early, |_, packet| {
        if let Ok(Body::First(_, traffic, _)) = Frame::open(packet).unwrap().body() {
            rates.push(traffic.limits.unwrap().out_rate);
        }
    });
    assert_eq!(rates, [options::limits(64_000, Mode::Streams, 1_195, 1).out_rate]);
    assert_ne!(rates, [options::limits(64_000, Mode::Streams, 1_195, 32).out_rate]);
}

/// A token that is refused leaves no label behind, with which somebody could come.
#[test]
fn the_label_of_a_token_that_is_refused_is_forgotten() {
    let local = [SocketAddr::from(([127, 0, 0, 1], 0))];
    let config = Config::default();
    let mut xtp =
        Xtp::serve(&local, Mode::Streams, Random::from_number(1), &config).expect("a listener");
    let labelled = |number: u16| {
        let mut token = [7; 16];
        token[..2].copy_from_slice(&number.to_be_bytes());
        token
    };
    let most = crate::DATA_LANES_MAX as u16;
    (0..=most).for_each(|number| xtp.expect(labelled(number), Time::NEVER));
    let told = std::iter::from_fn(|| xtp.poll_stream()).collect::<Vec<_>>();
    assert!(
        matches!(&told[..], [StreamEvent::Closed { token, .. }] if *token == labelled(most)),
        "{told:?}"
    );
    let is_known = |number| {
        let label = label::label_of(&labelled(number));
        lock(&xtp.links).labels.terms(label, Time::ZERO).is_some()
    };
    assert_eq!([0, most - 1, most].map(is_known), [true, true, false]);
}
