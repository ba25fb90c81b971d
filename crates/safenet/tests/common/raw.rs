//! A message service, and a peer that speaks XTP and writes into its streams what it likes.

use super::world::{PORT, host};
use dacapo_base::{Random, Time};
use dacapo_safenet::{Config, Event, MessageService, Part};
use dacapo_xtp::wire::Service;
use dacapo_xtp::{ContextId, End, Engine, Listen, Message, Mode, Open};
use std::time::Duration;

/// The most exchanges at one time.
const EXCHANGES_MAX: u32 = 10_000;

/// What the peer's engine has told.
pub type Told = Vec<dacapo_xtp::Event>;

/// The service is host 0, the peer host 1; packets take no time.
pub struct Pair {
    pub now: Time,
    pub service: MessageService,
    pub peer: Engine,
    pub told: Told,
    pub events: Vec<Event>,
    pub parts: Vec<Part>,
}

impl Pair {
    pub fn new(config: impl Fn(Config) -> Config) -> Self {
        let engine = |seed| Engine::new(dacapo_xtp::Config::default(), Random::from_number(seed));
        let mut service = MessageService::new(config(Config::new(host(0))), engine(1));
        service.listen(PORT).unwrap();
        let mut peer = engine(2);
        peer.listen(Listen::on(PORT)).unwrap();
        let (told, events, parts) = (Vec::new(), Vec::new(), Vec::new());
        Self { now: Time::from_millis(1), service, peer, told, events, parts }
    }

    /// The peer opens an association of any kind.
    pub fn open(&mut self, service: Service, mode: Mode) -> ContextId {
        let ends = Some(((host(0).ip(), PORT).into(), (host(1).ip(), PORT).into()));
        let open = Open { peer: host(0), ends, service, mode };
        self.peer.open(self.now, &open).unwrap()
    }

    /// The peer writes a message of XTP, whole or not.
    pub fn write(&mut self, id: ContextId, tag: Option<u64>, data: &[u8], is_end: bool) {
        let tag = tag.map(u64::to_be_bytes);
        let message = Message { is_end, tag, ..Message::part(data) };
        // An association that is over takes nothing.
        let _ = self.peer.write(self.now, id, &message);
    }

    /// Packets go to and fro until there are none; the user takes what comes.
    pub fn exchange(&mut self) {
        let mut packet = Vec::new();
        for count in 0.. {
            assert!(count < EXCHANGES_MAX, "it does not come to an end");
            let mut has_some = false;
            while self.service.poll_packet(self.now, &mut packet).is_some() {
                has_some = true;
                self.peer.handle_packet(self.now, host(0), &std::mem::take(&mut packet));
            }
            while self.peer.poll_packet(self.now, &mut packet).is_some() {
                has_some = true;
                self.service.handle_packet(self.now, host(1), &std::mem::take(&mut packet));
            }
            self.told.extend(std::iter::from_fn(|| self.peer.poll_event()));
            self.events.extend(std::iter::from_fn(|| self.service.poll_event()));
            while let Some(part) = self.service.get_message(self.now, PORT) {
                has_some = true;
                self.parts.push(part);
            }
            if !has_some {
                break;
            }
        }
    }

    /// Lets so much time pass.
    pub fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            self.exchange();
            let next = self.service.deadline().min(self.peer.deadline());
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.service.handle_time(self.now);
            self.peer.handle_time(self.now);
        }
        self.now = until;
    }

    /// The context that the service has opened at the peer.
    pub fn incoming(&self) -> Option<ContextId> {
        self.told.iter().rev().find_map(|event| match event {
            dacapo_xtp::Event::Incoming { id, .. } => Some(*id),
            _ => None,
        })
    }

    /// How a context of the peer has ended.
    pub fn ended(&self, id: ContextId) -> Option<End> {
        self.told.iter().find_map(|event| match event {
            dacapo_xtp::Event::Ended(of, end) if *of == id => Some(*end),
            _ => None,
        })
    }
}
