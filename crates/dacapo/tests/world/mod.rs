//! Two cores back to back in virtual time: what one transmits, the other gets in the same instant.
//!
//! It can lose datagrams of flows on purpose.

use dacapo::{Answer, MediaCommand};
use dacapo_base::{Random, Time};
use dacapo_core::{
    self as core, ControlCrypto, Core, CoreConfig, CoreEvent, DialParams, Done, EndpointKeys,
    JoinParams, Ledger, ListenerId, PeerId, SessionId, SessionProvider, SessionSpec, Way,
};
use dacapo_packet::Layout;
use dacapo_security::Identity;
use dacapo_wire::session::{FLOW_ALL, FlowOffer, MODULE_ACCESS};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A Creator, a Participant, and their common clock.
pub struct World {
    pub creator: Core,
    pub participant: Core,
    pub now: Time,
    /// Says of each datagram of a flow to the participant, by its count, whether it is lost.
    pub lose: Box<dyn FnMut(u64) -> bool>,
    pub session: Option<SessionId>,
    pub ledgers: BTreeMap<usize, Ledger>,
    pub hashes: BTreeMap<usize, Option<bool>>,
    pub failures: Vec<String>,
    pub answers: BTreeMap<u32, Result<Answer, String>>,
    pub is_over: bool,
    peer: Option<PeerId>,
    is_ready: bool,
    is_active: bool,
    data_count: u64,
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn core(seed: u64) -> Core {
    let identity = Identity::generate().unwrap();
    let mut random = Random::from_number(seed);
    let mut secret = [0; 64];
    random.fill(&mut secret);
    let keys = dacapo_security::endpoint_keys(&secret);
    let crypto = ControlCrypto {
        client: dacapo_security::client_crypto(&identity),
        server: dacapo_security::server_crypto(&identity),
        keys: EndpointKeys { reset: keys.reset, token: keys.token },
        calendar: None,
        random: random.fork(),
    };
    Core::new(CoreConfig::new(dacapo::catalogue()), crypto, random, Instant::now())
}

impl World {
    /// Both cores; the creator serves a session.
    pub fn new(spec: SessionSpec, publisher: Box<dyn SessionProvider>) -> Self {
        let mut creator = core(1);
        creator.publish(spec, publisher).unwrap();
        Self {
            creator,
            participant: core(2),
            now: Time::from_millis(5_000),
            lose: Box::new(|_| false),
            session: None,
            ledgers: BTreeMap::new(),
            hashes: BTreeMap::new(),
            failures: Vec::new(),
            answers: BTreeMap::new(),
            is_over: false,
            peer: None,
            is_ready: false,
            is_active: false,
            data_count: 0,
        }
    }

    fn ask(&mut self, command: core::Command) -> Done {
        self.participant.handle_command(self.now, command).unwrap()
    }

    /// Connects and joins; returns the offer.
    pub fn join(&mut self, name: &str) -> Vec<FlowOffer> {
        let remote = address("10.0.0.1:19980");
        let dial = core::Command::Connect { remote: remote.into(), params: DialParams::default() };
        self.peer = Some(self.ask(dial).peer().unwrap());
        let mut offer = None;
        let end = self.now + Duration::from_secs(5);
        while offer.is_none() {
            assert!(self.now < end, "no offer came");
            self.step(end);
            while let Some(event) = self.participant.poll_event() {
                match event {
                    CoreEvent::PeerOpen { peer } => {
                        let (name, params) = (name.to_owned(), JoinParams::default());
                        let join = core::Command::Join { peer, name, params };
                        self.session = Some(self.ask(join).session().unwrap());
                    }
                    CoreEvent::Offered { flows, .. } => offer = Some(flows),
                    CoreEvent::SessionEnded { error, .. } => panic!("{error:?}"),
                    CoreEvent::PeerLost { error, .. } => panic!("{error}"),
                    _ => {}
                }
            }
        }
        offer.unwrap()
    }

    /// Answers the offer with these ports and lets the flows run.
    pub fn begin(&mut self, ports: Vec<Option<dacapo_core::Port>>) {
        let session = self.session.unwrap();
        self.participant.answer(self.now, session, ports).unwrap();
        let end = self.now + Duration::from_secs(5);
        while !self.is_ready {
            assert!(self.now < end, "the session did not get ready");
            self.step(end);
            self.read_events();
        }
        self.ask(core::Command::Activate(session));
    }

    /// Runs so long, or until the session is over.
    pub fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while self.now < end && !self.is_over {
            self.step(end);
            self.read_events();
        }
    }

    /// Runs until all flows of the session are accounted for, then closes it; at most so long.
    pub fn run_to_end(&mut self, flows: usize, ms_max: u64) {
        let end = self.now + Duration::from_millis(ms_max);
        while self.ledgers.len() < flows {
            assert!(self.now < end, "the flows did not end: {:?}", self.ledgers);
            self.step(end);
            self.read_events();
        }
        self.close();
    }

    /// Deactivates the flows, runs so long, and activates them again.
    pub fn pause(&mut self, ms: u64) {
        let session = self.session.unwrap();
        self.run_until(|world| world.is_active);
        self.ask(core::Command::Deactivate(session));
        self.run_until(|world| !world.is_active);
        self.run(ms);
        self.ask(core::Command::Activate(session));
        self.run_until(|world| world.is_active);
    }

    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let end = self.now + Duration::from_secs(2);
        while !done(self) {
            assert!(self.now < end, "it did not come to that");
            self.step(end);
            self.read_events();
        }
    }

    /// Closes the session and runs until it is over.
    pub fn close(&mut self) {
        let session = self.session.unwrap();
        self.ask(core::Command::Close(session));
        let end = self.now + Duration::from_secs(10);
        while !self.is_over {
            assert!(self.now < end, "the session did not end");
            self.step(end);
            self.read_events();
        }
    }

    /// Sends a command to all access modules and waits for the answer.
    pub fn command(&mut self, command: MediaCommand) -> Answer {
        self.try_command(command).unwrap()
    }

    /// The same, with the refusal.
    pub fn try_command(&mut self, command: MediaCommand) -> Result<Answer, String> {
        let session = self.session.unwrap();
        let payload = command.encode().to_vec();
        let (flow, module) = (FLOW_ALL, MODULE_ACCESS);
        let control = core::Command::Control { session, flow, module, payload };
        let request = self.ask(control).request().unwrap();
        let end = self.now + Duration::from_secs(2);
        while !self.answers.contains_key(&request) {
            assert!(self.now < end, "no answer to {command}");
            self.step(end);
            self.read_events();
        }
        self.answers.remove(&request).unwrap()
    }

    fn read_events(&mut self) {
        while let Some(event) = self.creator.poll_event() {
            if let CoreEvent::FlowFailed { error, .. } = event {
                self.failures.push(error.text);
            }
        }
        while let Some(event) = self.participant.poll_event() {
            match event {
                CoreEvent::Ready { .. } => self.is_ready = true,
                CoreEvent::Active { .. } => self.is_active = true,
                CoreEvent::Inactive { .. } => self.is_active = false,
                CoreEvent::FlowEnded { flow, ledger, hash, .. } => {
                    self.ledgers.insert(flow, *ledger);
                    self.hashes.insert(flow, hash);
                }
                CoreEvent::ControlAnswered { request, answer, .. } => {
                    let answer = answer.map_err(|error| error.text);
                    let answer = answer.map(|bytes| Answer::decode(&bytes).unwrap());
                    self.answers.insert(request, answer);
                }
                CoreEvent::SessionEnded { error, .. } => {
                    assert_eq!(error, None);
                    self.is_over = true;
                }
                CoreEvent::PeerLost { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }

    /// Does everything that is due now; then time goes on to the next deadline, at most to `end`.
    fn step(&mut self, end: Time) {
        self.creator.handle_timeout(self.now);
        self.participant.handle_timeout(self.now);
        while self.carry() {}
        if self.participant.has_events() {
            return;
        }
        let next = [&mut self.creator, &mut self.participant]
            .into_iter()
            .filter_map(|core| core.next_deadline(self.now))
            .min();
        let soonest = self.now + Duration::from_micros(1);
        self.now = next.unwrap_or(end).max(soonest).min(end.max(soonest));
    }

    /// Carries one transmit each way; false when there is none.
    fn carry(&mut self) -> bool {
        let mut moved = false;
        if let Some(transmit) = self.creator.poll_transmit(self.now) {
            let (bytes, segment) = self.creator.bytes(&transmit);
            let is_data = bytes.first() == Some(&0x80);
            let datagrams: Vec<Vec<u8>> =
                bytes.chunks(segment.max(1)).map(<[u8]>::to_vec).collect();
            self.creator.transmitted(transmit);
            for datagram in datagrams {
                self.data_count += u64::from(is_data);
                if !is_data || !(self.lose)(self.data_count) {
                    give(&mut self.participant, self.now, address("10.0.0.1:19980"), &datagram);
                }
            }
            moved = true;
        }
        if let Some(transmit) = self.participant.poll_transmit(self.now) {
            let port = if transmit.way == Way::Control { 1 } else { 2 };
            let from = SocketAddr::from(([10, 0, 0, 2], port));
            let (bytes, segment) = self.participant.bytes(&transmit);
            let datagrams: Vec<Vec<u8>> =
                bytes.chunks(segment.max(1)).map(<[u8]>::to_vec).collect();
            self.participant.transmitted(transmit);
            datagrams.iter().for_each(|it| give(&mut self.creator, self.now, from, it));
            moved = true;
        }
        moved
    }
}

fn give(core: &mut Core, now: Time, from: SocketAddr, datagram: &[u8]) {
    let layout = Layout { head: 0, tail: 0, segment: datagram.len(), segmented: true };
    let packet = core.pool().alloc_train(&layout, datagram.len()).unwrap();
    core.pool().write_payload(&packet, 0, datagram);
    core.handle_datagram(now, ListenerId::default(), from.into(), packet);
}
