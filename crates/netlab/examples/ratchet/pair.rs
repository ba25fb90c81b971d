//! [`Pair`]: a creator and a participant, back to back.

use crate::ports::Opens;
use crate::streams::Streams;
use dacapo_base::{Random, Time};
use dacapo_core::{
    Command, Core, CoreConfig, CoreEvent, DialParams, Done, JoinParams, ListenerId, PeerId, Port,
    Request, SessionId, SessionSpec, Transmit, Way,
};
use dacapo_netlab::plain_tls::clock::WorldClock;
use dacapo_netlab::scenario::raw_offer;
use dacapo_netlab::{catalogue, plain_tls};
use dacapo_packet::Layout;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::FlowOffer;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The two ends.
pub const CREATOR: usize = 0;
pub const PARTICIPANT: usize = 1;

/// The name of what is served.
const NAME: &str = "work";

/// Transmits of one end before the other has its turn.
const SEND_MAX: usize = 256;

/// Nothing here takes so long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A creator and a participant, and the time they live by.
pub struct Pair {
    now: Time,
    cores: [Core; 2],
    streams: Streams,
    /// What both have told, from the last look on.
    pub events: Vec<(usize, CoreEvent)>,
}

impl Pair {
    /// Two cores that know nothing of each other; the creator serves a session of this flow.
    pub fn new(flow: FlowOffer, unit_len: usize) -> Self {
        let mut cores = [core(1), core(2)];
        let spec = SessionSpec {
            name: NAME.into(),
            title: String::new(),
            flows: vec![flow],
            participants_max: 1_000,
            give_up_after: dacapo_core::GIVE_UP_AFTER,
        };
        cores[CREATOR].publish(spec, Box::new(Opens(unit_len))).unwrap();
        let (now, streams) = (Time::from_millis(1), Streams::default());
        Self { now, cores, streams, events: Vec::new() }
    }

    /// Connects them.
    pub fn connect(&mut self) -> PeerId {
        let peer = self.cores[PARTICIPANT]
            .handle_command(
                self.now,
                Command::Connect {
                    remote: address(CREATOR, Way::Control).into(),
                    params: DialParams::default(),
                },
            )
            .and_then(Done::peer);
        let peer = peer.unwrap();
        self.wait(|(end, event)| {
            *end == PARTICIPANT && matches!(event, CoreEvent::PeerOpen { .. })
        });
        peer
    }

    /// Asks for a session.
    pub fn join(&mut self, peer: PeerId) -> SessionId {
        self.cores[PARTICIPANT]
            .handle_command(
                self.now,
                Command::Join { peer, name: NAME.into(), params: JoinParams::default() },
            )
            .and_then(Done::session)
            .unwrap()
    }

    /// Answers the offer of a session.
    pub fn answer(&mut self, session: SessionId, port: Port) {
        self.cores[PARTICIPANT].answer(self.now, session, vec![Some(port)]).unwrap();
    }

    /// Lets a session run.
    pub fn activate(&mut self, session: SessionId) {
        self.cores[PARTICIPANT].handle_command(self.now, Command::Activate(session)).unwrap();
    }

    /// Changes the flow of a session to another graph; the session by its number at the creator.
    pub fn change(&mut self, session: SessionId, graph: GraphForm) {
        self.cores[CREATOR]
            .handle_command(self.now, Command::Change { session, flow: 0, graph })
            .unwrap();
    }

    /// Closes a session.
    pub fn close(&mut self, session: SessionId) {
        self.cores[PARTICIPANT].handle_command(self.now, Command::Close(session)).unwrap();
    }

    /// Runs until one has told something like this; it and what was told before is forgotten.
    pub fn wait(&mut self, is_it: impl Fn(&(usize, CoreEvent)) -> bool) {
        let mut found = false;
        self.run(|pair| {
            while !found && !pair.events.is_empty() {
                found = is_it(&pair.events.remove(0));
            }
            found
        });
    }

    /// Runs until `done`.
    pub fn run(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let until = self.now + WAIT_MAX;
        while !done(self) {
            assert!(self.now < until, "not done in {WAIT_MAX:?}: {:?}", self.events);
            self.step();
        }
    }

    /// Everything that can be done now; then the clock jumps.
    fn step(&mut self) {
        while self.turn(CREATOR) | self.turn(PARTICIPANT) {}
        let now = self.now;
        let next = self.cores.iter_mut().filter_map(|core| core.next_deadline(now)).min();
        self.now = next.unwrap_or(now).max(now + Duration::from_nanos(1));
        for core in &mut self.cores {
            core.handle_timeout(self.now);
        }
    }

    /// What one end has to say; false when that is nothing.
    fn turn(&mut self, end: usize) -> bool {
        let mut has_sent = self.streams.step(self.now, &mut self.cores);
        for _ in 0..SEND_MAX {
            let Some(transmit) = self.cores[end].poll_transmit(self.now) else { break };
            has_sent = true;
            match transmit.way {
                Way::Stream(id) => self.streams.send(self.now, &mut self.cores, end, id, transmit),
                Way::Control | Way::Data => self.hand_over(end, transmit),
            }
        }
        while let Some(request) = self.cores[end].poll_request() {
            if let Request::Stream(ask) = request {
                self.streams.handle_ask(end, ask);
                has_sent = true;
            }
        }
        while let Some(event) = self.cores[end].poll_event() {
            self.events.push((end, event));
        }
        has_sent
    }

    /// Datagrams go as they lie to the other end, which gets them as the train that they were.
    fn hand_over(&mut self, end: usize, transmit: Transmit) {
        let [creator, participant] = &mut self.cores;
        let (from, to) =
            if end == CREATOR { (creator, participant) } else { (participant, creator) };
        let (bytes, segment) = from.bytes(&transmit);
        let layout = Layout { head: 0, tail: 0, segment: segment.max(1), segmented: true };
        for run in bytes.chunks(layout.payload_per_train()) {
            let mut packet = to.pool().alloc_train(&layout, run.len()).unwrap();
            to.pool().write_payload(&packet, 0, run);
            packet.set_unit_ends(true, true);
            packet.time = self.now;
            to.handle_datagram(
                self.now,
                ListenerId::default(),
                address(end, transmit.way).into(),
                packet,
            );
        }
        from.transmitted(transmit);
    }
}

/// Where an end sends from, and is reached.
pub fn address(end: usize, way: Way) -> SocketAddr {
    let port = match (end, way) {
        (CREATOR, _) => 19_980,
        (_, Way::Data) => 40_002,
        _ => 40_001,
    };
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, end as u8 + 1), port))
}

/// The offer of a flow of bytes.
pub fn offer(transport: u16, modules: &[&str], unit_len: usize) -> FlowOffer {
    let bound_bps = 100_000_000_000;
    let offer = raw_offer("bytes", graph(modules), bound_bps, unit_len as u32);
    FlowOffer { transport, digest: false, ..offer }
}

/// A graph of modules by their names.
pub fn graph(modules: &[&str]) -> GraphForm {
    let catalogue = catalogue();
    let id = |name: &&str| (catalogue.by_name(name).unwrap().spec.id, Vec::new());
    GraphForm::line(modules.iter().map(id))
}

fn core(number: u64) -> Core {
    let mut random = Random::from_number(number);
    let calendar = Arc::new(WorldClock::new());
    let crypto = plain_tls::control_crypto(&mut random, Some(calendar));
    let mut config = CoreConfig::new(catalogue());
    (config.boot, config.pool_bytes_max) = ([1; 16], 64 << 20);
    Core::new(config, crypto, random, whole_second())
}

/// A point of the system's clock at the begin of a second. Whether a sum of times carries into the
/// seconds costs instructions, and only how a point is shown says how far into its second it is.
fn whole_second() -> Instant {
    let now = Instant::now();
    let shown = format!("{now:?}");
    let nanos: String = match shown.split_once("tv_nsec: ") {
        Some((_, rest)) => rest.chars().take_while(char::is_ascii_digit).collect(),
        None => panic!("a point in time is shown in another way: {shown}"),
    };
    now - Duration::from_nanos(nanos.parse().unwrap())
}
