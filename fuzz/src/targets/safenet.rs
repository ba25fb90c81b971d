//! The SAFENET message service beside a peer that speaks XTP and writes what it likes.

use crate::input::Input;
use crate::oracle;
use dacapo_base::{Random, Time};
use dacapo_safenet::{
    Cause, Config, Ending, Event, LetGo, MessageService, Mode, Outcome, Part, Reach, Route,
};
use dacapo_xtp::wire::{Limits, Service};
use dacapo_xtp::{ContextId, Engine, Listen, Message, Open};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// The most exchanges of packets that one step can justify.
const EXCHANGES_MAX: usize = 2_000;
/// The most turns until all is closed.
const TURNS_MAX: usize = 2_000;
const PORT: u16 = 7;
const PART_LEN_MAX: usize = 500;

/// The service is host 0, the peer host 1.
fn host(number: u8) -> SocketAddr {
    ([192, 0, 2, 1 + number], 4_040).into()
}

fn group() -> SocketAddr {
    ([239, 1, 2, 3], 4_040).into()
}

fn config() -> Config {
    Config {
        routes_max: 3,
        incoming_max: 3,
        group_incoming_max: 2,
        leaving_max: 3,
        messages_max: 6,
        waiting_bytes_max: 2_000,
        part_len_max: PART_LEN_MAX,
        ..Config::new(SocketAddr::new(host(0).ip(), PORT))
    }
}

fn engine(seed: u64, contexts_max: usize) -> Engine {
    let config = dacapo_xtp::Config {
        contexts_max,
        inactive_max: 4,
        buffer_len: 2_048,
        first_window: 1_000,
        ..dacapo_xtp::Config::default()
    };
    Engine::new(config, Random::from_number(seed))
}

struct Stage {
    now: Time,
    service: MessageService,
    peer: Engine,
    /// Contexts of the peer: those that it has opened, and those that it was opened.
    ids: Vec<ContextId>,
    seen: BTreeSet<&'static str>,
}

impl Stage {
    fn new() -> Self {
        let mut service = MessageService::new(config(), engine(1, 14));
        service.listen(PORT).expect("the port is free");
        let mut peer = engine(2, 10);
        peer.listen(Listen::on(PORT)).expect("the port is free");
        let (ids, seen) = (Vec::new(), BTreeSet::new());
        Self { now: Time::from_millis(1), service, peer, ids, seen }
    }

    /// Calls the service with so many bytes.
    fn call<R>(&mut self, len: usize, body: impl FnOnce(&mut MessageService, Time) -> R) -> R {
        let Self { service, now, .. } = self;
        oracle::bounded("a message service", len, || body(service, *now))
    }

    /// One step of the script.
    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() {
            0x00..=0x1F => self.open(input),
            0x20..=0x7F => self.write(input),
            0x80..=0x8F => self.report(input),
            kind @ 0x90..=0x9F => self.end(kind, input),
            kind @ 0xA0..=0xCF => self.send(kind, input),
            0xD0..=0xDF => {
                let part = self.call(0, |service, now| service.get_message(now, PORT));
                part.into_iter().for_each(|part| self.check(&part));
            }
            0xE0..=0xFC => self.pass(Duration::from_millis(input.number().min(200_000))),
            0xFD => self.join(),
            0xFE => {
                let route = route(input.u8());
                self.call(0, |service, now| service.abandon(now, route));
            }
            0xFF => self.call(0, MessageService::close),
        }
        self.exchange();
    }

    fn open(&mut self, input: &mut Input<'_>) {
        let service = match input.u8() % 5 {
            0 | 1 => Service::Stream,
            2 => Service::Multicast,
            3 => Service::Transaction,
            _ => Service::ReliableMulticast,
        };
        let is_group = matches!(service, Service::Multicast | Service::ReliableMulticast);
        let peer = if is_group { group() } else { host(0) };
        let ends = Some(((host(0).ip(), PORT).into(), (host(1).ip(), PORT).into()));
        let open = Open { peer, ends, service, mode: dacapo_xtp::Mode::default() };
        self.ids.extend(self.peer.open(self.now, &open));
    }

    fn join(&mut self) {
        if let Err(error) = self.call(0, |service, now| service.join_group(now, group(), PORT)) {
            assert!(!error.to_string().is_empty());
            self.seen.insert("not asked");
        }
    }

    fn id(&self, choice: u8) -> Option<ContextId> {
        let from_last = usize::from(choice) % self.ids.len().max(1);
        self.ids.iter().rev().nth(from_last).copied()
    }

    /// A message of XTP that begins with a head, or not, and is as long as that says, or not.
    fn write(&mut self, input: &mut Input<'_>) {
        let (choice, how, number) = (input.u8(), input.u8(), input.number());
        let piece = input.piece();
        let Some(id) = self.id(choice) else { return };
        let len = match how % 8 {
            7 => u64::from(how) << 32 | 1,
            6 => piece.len() as u64 + 700,
            _ => piece.len() as u64,
        };
        let head = [&[1, how >> 4 & 1, 0, how, 0, PORT as u8][..], &len.to_be_bytes()].concat();
        let bytes = if how & 8 == 0 { [&head[..], piece].concat() } else { piece.to_vec() };
        let tag = (how != 0xFF).then_some(number.to_be_bytes());
        let message = Message { is_end: how % 8 != 6, tag, ..Message::part(&bytes) };
        // An association that is over takes nothing.
        let _ = self.peer.write(self.now, id, &message);
    }

    fn report(&mut self, input: &mut Input<'_>) {
        let (choice, version, kind, count) = (input.u8(), input.u8(), input.u8(), input.number());
        let Some(id) = self.id(choice) else { return };
        let report = [&[version, kind][..], &count.to_be_bytes()].concat();
        let _ = self.peer.write(self.now, id, &Message::whole(&report));
    }

    fn end(&mut self, kind: u8, input: &mut Input<'_>) {
        let Some(id) = self.id(input.u8()) else { return };
        let (peer, now) = (&mut self.peer, self.now);
        // What is over cannot end again.
        let _ = match kind % 5 {
            0 => peer.finish(now, id),
            1 => peer.stop_reading(now, id),
            2 => peer.abort(now, id),
            3 => peer.release(now, id),
            _ => peer.set_limits(now, id, Limits { in_rate: 5_000, ..Limits::default() }),
        };
    }

    fn send(&mut self, kind: u8, input: &mut Input<'_>) {
        let (choice, len) = (input.u8(), input.number() % 3_000);
        let mode = if kind.is_multiple_of(2) { Mode::Synchronous } else { Mode::Asynchronous };
        let data = vec![7; len as usize];
        let sent = self
            .call(data.len(), |service, now| service.send_message(now, route(choice), mode, data));
        if let Err(error) = sent {
            assert!(!error.to_string().is_empty());
            self.seen.insert("not accepted");
        }
    }

    /// Packets go to and fro, what is told is heard, the bounds are held.
    fn exchange(&mut self) {
        let mut packet = Vec::new();
        for count in 0.. {
            assert!(count < EXCHANGES_MAX, "they send without end");
            let mut has_some = false;
            while self.call(0, |service, now| service.poll_packet(now, &mut packet)).is_some() {
                has_some = true;
                self.peer.handle_packet(self.now, host(0), &packet);
                packet.clear();
            }
            while self.peer.poll_packet(self.now, &mut packet).is_some() {
                has_some = true;
                self.call(packet.len(), |service, now| {
                    service.handle_packet(now, host(1), &packet);
                });
                packet.clear();
            }
            self.hear();
            if !has_some {
                break;
            }
        }
        let messages = self.service.messages();
        assert!(messages.sums().closes(), "{:?}", messages.sums());
        assert!(messages.route_count() <= 3 && messages.incoming_count() <= 8);
        assert!(self.service.deadline() > self.now, "a deadline that is over");
    }

    fn hear(&mut self) {
        while let Some(event) = self.peer.poll_event() {
            if let dacapo_xtp::Event::Incoming { id, .. } = event {
                self.ids.push(id);
            }
        }
        self.ids.drain(..self.ids.len().saturating_sub(16));
        for count in 0.. {
            assert!(count < 100, "a service that tells without end");
            match self.call(0, |service, _| service.poll_event()) {
                Some(Event::Ended(_, outcome)) => {
                    assert!(!outcome.to_string().is_empty());
                    self.seen.insert(name(outcome));
                }
                Some(Event::Capacity(_)) => {
                    self.seen.insert("room");
                }
                Some(Event::Joined { .. }) => {
                    self.seen.insert("joined");
                }
                Some(Event::NotJoined { end, .. }) => {
                    assert!(!end.to_string().is_empty());
                    self.seen.insert("not joined");
                }
                Some(Event::Message { .. }) => {}
                None => break,
            }
        }
    }

    fn check(&mut self, part: &Part) {
        assert!(part.data.len() <= PART_LEN_MAX);
        let end = part.offset + part.data.len() as u64;
        assert_eq!(part.ending == Ending::Last, end == part.len && part.ending != Ending::Broken);
        assert!(end <= part.len);
        self.seen.insert(match part.ending {
            Ending::More => "part",
            Ending::Broken => "broken",
            Ending::Last if part.reach != Reach::Host => "to a group",
            Ending::Last => "to a host",
        });
    }

    fn pass(&mut self, span: Duration) {
        self.now += span;
        self.call(0, MessageService::handle_time);
        self.peer.handle_time(self.now);
    }

    /// Closes: every message has ended, nothing is left.
    fn close(&mut self) {
        self.call(0, MessageService::close);
        self.exchange();
        for turn in 0.. {
            if self.service.messages().is_quiet() {
                break;
            }
            assert!(turn < TURNS_MAX, "it does not close");
            self.pass(Duration::from_millis(500));
            self.exchange();
        }
        let (messages, counters) = (self.service.messages(), self.service.messages().counters());
        assert_eq!(messages.sums().open, 0);
        assert_eq!(self.service.engine().context_count(), 0);
        let counted = [
            ("malformed", counters.malformed),
            ("refused", counters.refused),
            ("rested", counters.rested),
        ];
        self.seen.extend(counted.iter().filter(|(_, count)| *count > 0).map(|(name, _)| *name));
    }
}

/// Hosts with priorities, and groups.
fn route(choice: u8) -> Route {
    match choice % 5 {
        3 => Route::group(group(), PORT),
        4 => Route::reliable_group(group(), PORT),
        priority => Route::host(host(1), PORT).with_priority(priority.into()),
    }
}

const fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Sent => "sent",
        Outcome::Reached { .. } => "reached",
        Outcome::Unknown(Cause::Malformed) => "unknown: malformed",
        Outcome::Unknown(_) => "unknown",
        Outcome::Failed(Cause::LetGo(LetGo::Rested)) => "failed: rested",
        Outcome::Failed(Cause::LetGo(_)) => "failed: let go",
        Outcome::Failed(_) => "failed",
    }
}

/// A script: a peer, users, time.
pub fn service(data: &[u8]) {
    run(data);
}

/// Plays a script; what became of messages.
pub fn play(data: &[u8]) -> BTreeSet<&'static str> {
    run(data).seen
}

fn run(data: &[u8]) -> Stage {
    let (mut stage, mut input) = (Stage::new(), Input(data));
    while !input.is_empty() {
        stage.step(&mut input);
    }
    stage.close();
    stage
}

/// A message of the peer's with this number: `how` as in [`Stage::write`].
fn says(how: u8, number: u8, piece: &[u8]) -> Vec<u8> {
    [&[0x20, 0, how, number, piece.len() as u8][..], piece].concat()
}

/// Scripts that lead through messages there and back, and their ends.
pub fn service_seeds() -> Vec<Vec<u8>> {
    const GET: [u8; 3] = [0xD0; 3];
    const SECOND: [u8; 4] = [0xE0, 0xC0, 0x03, 0xE8];
    const LONG: [u8; 5] = [0xA0, 0, 0xC0, 0x0B, 0x54];
    const FINISH: [u8; 2] = [0x91, 0];
    const ABORT: [u8; 2] = [0x93, 0];
    let stream = vec![0x00, 0];
    let to_group = vec![0x00, 2];
    let send = |choice: u8, len: u8| vec![0xA0, choice, len];
    let reports = |kind: u8, count: u8| vec![0x80, 0, 1, kind, count];
    let taken = [stream.clone(), says(0, 0, b"one"), says(0x10, 1, b""), GET.to_vec()].concat();
    let parts = [stream.clone(), says(6, 0, &[7; 200]), vec![0x20, 0, 14, 0, 255]].concat();
    let parts = [parts, vec![7; 255], vec![0x20, 0, 14, 0, 200], vec![7; 200]].concat();
    let broken = [parts, GET.to_vec(), ABORT.to_vec(), GET.to_vec()].concat();
    let junk = [stream.clone(), says(8, 0, b"no head at all"), stream.clone(), says(7, 0, b"x")];
    let group = [to_group, says(0, 5, b"all of you"), FINISH.to_vec(), GET.to_vec()].concat();
    let there = [send(0, 100), reports(0, 1), send(0, 50), reports(3, 1), send(3, 90)].concat();
    let bad = [send(0, 9), reports(0, 9), send(1, 9), reports(1, 0), send(2, 9), vec![0xFE, 2]];
    let full = [send(0, 150).repeat(8), reports(0, 2), send(0, 9)].concat();
    let many = [stream.repeat(4), SECOND.to_vec(), stream, says(0, 0, b"x"), GET.to_vec()].concat();
    let gone = [send(0, 9), ABORT.to_vec(), send(1, 9), FINISH.to_vec(), LONG.repeat(2)].concat();
    let gone = [gone, vec![0xFE, 0, 0xFF]].concat();
    let member = [vec![0x00, 4], says(0, 0, b"each of you"), GET.to_vec(), FINISH.to_vec()];
    let members = [send(4, 90), SECOND.to_vec(), FINISH.to_vec(), send(4, 80)].concat();
    let ways = vec![taken, broken, junk.concat(), group, there, bad.concat(), full, many, gone];
    [ways, vec![member.concat(), members]].concat()
}
