//! [`Arena`]: an honest pair of cores with a running flow, and a raw peer that attacks one of them.
//!
//! ```text
//!   As::Dialer      raw -- QUIC --> creator  <==== honest flow ====> participant
//!   As::Listener    raw <-- QUIC -- participant <== honest flow ==> creator
//! ```
//!
//! Invariant: what it says by itself is right; what is wrong is said by the cases.

use crate::common::raw::{RawPeer, hello, tagged};
use crate::common::{
    Joined, Lab, ms, offer, offer_back, pattern, pattern_ports, plain, session_of,
};
use dacapo_core::{
    Code, Command, CoreEvent, DialParams, Done, JoinParams, Ledger, PeerId, Port, SessionId,
};
use dacapo_netlab::NodeId;
use dacapo_netlab::traffic::{Pattern, Seen};
use dacapo_wire::hub::Welcome;
use dacapo_wire::message::Message;
use dacapo_wire::session::{
    Accept, Activate, Activated, Answer, Direction, FlowAnswer, FlowOffer, Join, Offer,
};
use quinn_proto::StreamId;
use sha2::{Digest, Sha256};

/// The token with which a listening raw peer answers probes.
const TOKEN: [u8; 16] = [0x5A; 16];

/// Which end of the connection the raw peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// It dials the creator, and is a participant.
    Dialer,
    /// The participant dials it, and it is a creator.
    Listener,
}

/// How far the raw peer has come before the script begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The handshake is over; as listener, HELLO has come.
    Connected,
    /// HELLO and WELCOME were said.
    Greeted,
    /// A stream of a session is there: as dialer opened and empty; as listener JOIN has come.
    Opened,
    /// OFFER was said.
    Offered,
    /// As listener: ANSWER has come. As dialer the same as [`At::Offered`].
    Answered,
    /// ACCEPT was said.
    Ready,
    /// ACTIVATE was said, not answered as listener; as dialer the same as [`At::Active`].
    Activating,
    /// ACTIVATED was said.
    Active,
}

/// A world with an honest session and a raw peer.
pub struct Arena {
    pub lab: Lab,
    pub raw: RawPeer,
    /// The core that is attacked.
    pub core: NodeId,
    pub role: As,
    pub hub: StreamId,
    pub stream: StreamId,
    pub welcome: Welcome,
    pub offer: Offer,
    pub answer: Answer,
    pub accept: Accept,
    pub transcript: [u8; 32],
    /// The session of the raw peer, at the core under attack.
    pub session: Option<SessionId>,
    /// What the sinks of the core under attack have seen, flow by flow.
    pub seen: Vec<Option<Seen>>,
    /// Answers that a case may get besides the usual bound.
    pub extra_answers: u64,
    /// The token of the path, whoever gave it.
    pub token: [u8; 16],
    pub peer: Option<PeerId>,
    pub honest: Joined,
    pub begun_ms: u64,
}

/// The units of the sessions with the raw peer and of the honest one.
pub fn usual_pattern() -> Pattern {
    Pattern { every: ms(2), ..pattern(1_000_000) }
}

/// The session that is used where no other is asked for: two flows from the participant with
/// different graphs, one to it.
pub fn usual_flows() -> Vec<FlowOffer> {
    let mut flows = vec![
        offer_back("up", &["sequence"]),
        offer("down", &["sequence"]),
        offer_back("bare", &[]),
    ];
    for (at, flow) in flows.iter_mut().enumerate() {
        (flow.flow, flow.datagram_len) = (at as u16, 1_452);
    }
    flows
}

impl Arena {
    /// A raw peer that has come as far as `at`.
    pub fn new(role: As, at: At, name: &str) -> Self {
        let mut arena = Self::empty(role);
        arena.advance_to(at, name);
        arena
    }

    /// A raw peer that has not begun.
    pub fn empty(role: As) -> Self {
        let mut lab = Lab::new("delay=5ms");
        lab.pattern = usual_pattern();
        let honest = lab.start(plain());
        lab.publish("down", vec![offer("down", &["sequence"])]);
        lab.publish("usual", usual_flows());
        let (raw, core) = match role {
            As::Dialer => {
                let address = lab.world.address(lab.creator);
                (RawPeer::new(&lab.world, address, 66, 1), lab.creator)
            }
            As::Listener => (RawPeer::listening(&lab.world, 66, 1), lab.participant),
        };
        let begun_ms = lab.now().as_nanos() / 1_000_000;
        let any = StreamId::new(quinn_proto::Side::Client, quinn_proto::Dir::Bi, 0);
        Self {
            lab,
            raw,
            core,
            role,
            hub: any,
            stream: any,
            welcome: Welcome::default(),
            offer: Offer::default(),
            answer: Answer::default(),
            accept: Accept::default(),
            transcript: [0; 32],
            session: None,
            seen: Vec::new(),
            extra_answers: 0,
            token: TOKEN,
            peer: None,
            honest,
            begun_ms,
        }
    }

    /// Goes on from nothing to `at` with the session of this name.
    pub fn advance_to(&mut self, at: At, name: &str) {
        self.connect();
        if at != At::Connected {
            self.greet();
        }
        if !matches!(at, At::Connected | At::Greeted) {
            self.begin(at, name, usual_flows());
        }
    }

    /// Begins another session over the connection that is there, and goes on to `at`.
    pub fn begin(&mut self, at: At, name: &str, flows: Vec<FlowOffer>) {
        match self.role {
            As::Dialer => self.begin_as_dialer(at, name),
            As::Listener => self.begin_as_listener(at, flows),
        }
    }

    pub fn run(&mut self, time: u64) {
        let (world, core) = (&mut self.lab.world, self.core);
        RawPeer::run(&mut [&mut self.raw], world, core, ms(time));
        self.lab.run(ms(0));
    }

    fn connect(&mut self) {
        if self.role == As::Listener {
            let (now, address) = (self.lab.now(), self.raw.control);
            let peer = self
                .lab
                .world
                .core(self.core)
                .handle_command(
                    now,
                    Command::Connect { remote: address.into(), params: DialParams::default() },
                )
                .and_then(Done::peer);
            self.peer = Some(peer.expect("room for a peer"));
        }
        self.run(40);
        assert!(self.raw.connected, "{:?}", self.raw.lost);
        if self.role == As::Listener {
            self.hub = self.raw.accepted[0];
            assert!(matches!(self.raw.next(self.hub), Some(Message::Hello(_))));
        }
    }

    fn greet(&mut self) {
        match self.role {
            As::Dialer => {
                self.hub = self.raw.open().expect("the first stream");
                self.raw.say(self.hub, hello());
                self.run(20);
                let Some(Message::Welcome(welcome)) = self.raw.next(self.hub) else {
                    panic!("no WELCOME")
                };
                (self.welcome, self.token) = (welcome, welcome.path_token);
            }
            As::Listener => {
                self.welcome = welcome();
                self.raw.answers_probes = Some(TOKEN);
                self.raw.say(self.hub, self.welcome);
                self.run(20);
            }
        }
    }

    fn begin_as_dialer(&mut self, at: At, name: &str) {
        self.stream = self.raw.open().expect("a stream");
        if at == At::Opened {
            return;
        }
        self.raw.say(self.stream, join(name));
        self.run(20);
        let Some(Message::Offer(offer)) = self.take() else { panic!("no OFFER") };
        self.offer = offer;
        self.session = self.newest_session();
        if matches!(at, At::Offered | At::Answered) {
            return;
        }
        self.answer = answer(self.offer.flows.len());
        self.say(self.answer.clone());
        self.run(20);
        let Some(Message::Accept(accept)) = self.take() else { panic!("no ACCEPT") };
        self.transcript = accept.transcript;
        assert_eq!(self.transcript, self.expected_transcript());
        self.accept = accept;
        if at != At::Ready {
            self.say(Activate { request: 1 });
            self.run(20);
            assert!(matches!(self.take(), Some(Message::Activated(_))), "no ACTIVATED");
        }
    }

    fn begin_as_listener(&mut self, at: At, flows: Vec<FlowOffer>) {
        self.core_joins("raw");
        if at == At::Opened {
            return;
        }
        self.offer = Offer { flows, session: 1, ..Offer::default() };
        self.say(self.offer.clone());
        self.run(20);
        if at == At::Offered {
            return;
        }
        self.core_answers();
        let Some(Message::Answer(answer)) = self.take() else { panic!("no ANSWER") };
        self.answer = answer;
        self.transcript = self.expected_transcript();
        if at == At::Answered {
            return;
        }
        let flows = self::answer(self.offer.flows.len()).flows;
        self.accept = Accept { transcript: self.transcript, flows };
        self.say(self.accept.clone());
        self.run(20);
        if at == At::Ready {
            return;
        }
        self.core_activates();
        if at == At::Activating {
            return;
        }
        self.say(Activated { request: 1 });
        self.run(20);
        let active = self.count(|event| matches!(event, CoreEvent::Active { .. }));
        assert_eq!(active, 1, "the core is active");
    }

    /// The core asks the raw peer for a session.
    pub fn core_joins(&mut self, name: &str) {
        let (now, peer) = (self.lab.now(), self.peer.expect("a peer"));
        let core = self.lab.world.core(self.core);
        self.session = Some(
            core.handle_command(
                now,
                Command::Join { peer, name: name.into(), params: JoinParams::default() },
            )
            .and_then(Done::session)
            .expect("it is open"),
        );
        self.run(20);
        self.stream = *self.raw.accepted.last().expect("a stream");
        assert!(matches!(self.take(), Some(Message::Join(_))), "no JOIN");
    }

    /// The application of the core answers the offer, with patterns for every flow.
    pub fn core_answers(&mut self) {
        let (ports, seen) = self.ports();
        self.seen = seen;
        let (now, session) = (self.lab.now(), self.session.expect("a session"));
        self.lab.world.core(self.core).answer(now, session, ports).expect("an offer waits");
        self.run(250);
    }

    /// Ports for what the raw peer has offered.
    pub fn ports(&self) -> (Vec<Option<Port>>, Vec<Option<Seen>>) {
        pattern_ports(self.lab.pattern, &self.offer.flows)
    }

    /// The application of the core activates its session.
    pub fn core_activates(&mut self) {
        let (now, session) = (self.lab.now(), self.session.expect("a session"));
        self.lab
            .world
            .core(self.core)
            .handle_command(now, Command::Activate(session))
            .expect("it is ready");
        self.run(20);
        assert!(matches!(self.take(), Some(Message::Activate(_))), "no ACTIVATE");
    }

    fn newest_session(&mut self) -> Option<SessionId> {
        self.lab.world.core(self.core).sessions().map(|(id, ..)| id).max()
    }

    pub fn expected_transcript(&self) -> [u8; 32] {
        let first = extend([0; 32], &self.offer.clone().into());
        extend(first, &self.answer.clone().into())
    }

    /// Says something on the session's stream.
    pub fn say(&mut self, message: impl Into<Message>) {
        self.raw.say(self.stream, message);
    }

    /// Bytes on the session's stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.raw.push(self.stream, bytes);
    }

    /// The next record on the session's stream.
    pub fn take(&mut self) -> Option<Message> {
        self.raw.next(self.stream)
    }

    /// Every record that has come on the session's stream and was not taken.
    pub fn take_all(&mut self) -> Vec<Message> {
        let read = self.raw.streams.get_mut(&self.stream);
        read.map(|read| read.records.drain(..).collect()).unwrap_or_default()
    }

    /// A datagram to the data port of the core, from that of the raw peer.
    pub fn send(&mut self, bytes: &[u8]) {
        let from = self.raw.data;
        self.raw.inject(&mut self.lab.world, self.core, from, bytes);
    }

    /// A valid question of the raw peer, which opens the data path of a dialer.
    pub fn open_path(&mut self) {
        let probe = crate::common::raw::question(self.lab.now(), 0);
        self.send(&tagged(self.token, probe, 1_452));
        self.raw.answers_probes = Some(self.token);
        self.run(250);
    }

    /// A unit of one datagram in a graph of `sequence` alone, or of nothing.
    pub fn unit(&mut self, flow: usize, number: u32, place: u32) {
        let bytes = self.unit_bytes(flow, number, place);
        self.send(&bytes);
    }

    pub fn unit_bytes(&self, flow: usize, number: u32, place: u32) -> Vec<u8> {
        let label = self.label(flow).to_be_bytes();
        let sequence = number.to_be_bytes();
        let has_sequence = !self.offer.flows[flow].graph.nodes.is_empty();
        let sequence = if has_sequence { &sequence[..] } else { &[] };
        [&[0x80], &label[..], sequence, &place.to_be_bytes(), b"a unit"].concat()
    }

    /// The label that the core gave for a flow.
    pub fn label(&self, flow: usize) -> u32 {
        match self.role {
            As::Dialer => self.accept.flows[flow].label,
            As::Listener => self.answer.flows[flow].label,
        }
    }

    /// The first flow of which this core, or the raw peer, is the sender.
    pub fn flow(&self, core_sends: bool) -> usize {
        let to_participant = core_sends == (self.role == As::Dialer);
        let wanted = if to_participant { Direction::ToParticipant } else { Direction::ToCreator };
        let found = self.offer.flows.iter().position(|flow| flow.direction == wanted);
        found.expect("a flow of each direction")
    }

    /// How the session of the raw peer ended at the core; `None` when it has not.
    pub fn ended(&self) -> Option<Option<Code>> {
        let others = [self.honest.here, self.honest.there];
        self.lab.log.iter().rev().find_map(|(node, _, event)| match event {
            CoreEvent::SessionEnded { session, error } if *node == self.core => {
                (!others.contains(session)).then(|| error.as_ref().map(|error| error.code))
            }
            _ => None,
        })
    }

    /// The account of a flow of the raw peer's session at the core.
    pub fn ledger(&self, flow: usize) -> Option<Ledger> {
        self.lab.ledger(self.core, self.session?, flow)
    }

    /// How often the core has reported something about the raw peer's session.
    pub fn count(&self, mut pick: impl FnMut(&CoreEvent) -> bool) -> usize {
        let session = self.session;
        self.lab.count(self.core, |event| session_of(event) == session && pick(event))
    }
}

/// What a listening raw peer says.
pub fn welcome() -> Welcome {
    Welcome { version: 1, instance: [8; 16], boot: [9; 16], time_namespace: 0, path_token: TOKEN }
}

/// Takes every flow of an offer.
pub fn answer(count: usize) -> Answer {
    Answer { flows: (0..count).map(taken).collect() }
}

pub fn taken(at: usize) -> FlowAnswer {
    FlowAnswer {
        flow: at as u16,
        accepted: Ok(()),
        label: 0x1230 + 16 * at as u32,
        datagram_len: 1_452,
        stream_token: None,
        base: None,
        stream_port: None,
    }
}

pub fn join(name: &str) -> Join {
    Join { name: name.into(), ..Join::default() }
}

/// The transcript with another message.
pub fn extend(transcript: [u8; 32], message: &Message) -> [u8; 32] {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    Sha256::new().chain_update(transcript).chain_update(&bytes).finalize().into()
}
