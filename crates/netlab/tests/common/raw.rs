//! A peer that speaks QUIC and nothing else, in a world: what it sends on its streams and data port
//! is said byte by byte. It dials a core ([`RawPeer::new`]) or waits for one
//! ([`RawPeer::listening`]).

pub use dacapo_netlab::raw::{question, tagged};

use dacapo_base::Time;
use dacapo_core::Code;
use dacapo_netlab::raw::{self, Peer};
use dacapo_netlab::{NodeId, World};
use dacapo_wire::hub::{Hello, Welcome};
use dacapo_wire::message::Message;
use dacapo_wire::probe::Probe;
use quinn_proto::{Connection, ConnectionError, StreamId, VarInt};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// The raw peer, and what it is to a world.
pub struct RawPeer {
    peer: Peer,
    origin: Instant,
    /// Answers the core's questions with this token; `None`: they are not answered.
    pub answers_probes: Option<[u8; 16]>,
    answers: Vec<Vec<u8>>,
    /// Datagrams and bytes that it has sent to the core, by whatever way.
    pub sent: (u64, u64),
    /// Datagrams and bytes that came to its control port.
    pub heard: (u64, u64),
}

impl Deref for RawPeer {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl DerefMut for RawPeer {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}

fn instant(world: &World) -> Instant {
    world.origin() + Duration::from_nanos(world.now().as_nanos())
}

/// The first datagram of a client, as anybody can make it.
pub fn initial(world: &World, to: SocketAddr, seed: u64) -> Vec<u8> {
    let mut peer = RawPeer::new(world, to, 200, seed);
    peer.poll_transmit(instant(world)).expect("a client begins")
}

/// The first datagrams of as many clients, no two alike.
pub fn initials(world: &World, to: SocketAddr, seed: u64, count: usize) -> Vec<Vec<u8>> {
    raw::initials(instant(world), to, seed, count)
}

impl RawPeer {
    /// A client at `10.9.0.host`, which begins to connect to a core.
    pub fn new(world: &World, to: SocketAddr, host: u8, seed: u64) -> Self {
        Self::over(world, Peer::dialing(instant(world), to, host, seed, |crypto| crypto))
    }

    /// A server at `10.9.0.host`, which waits for a core and takes the first that comes.
    pub fn listening(world: &World, host: u8, seed: u64) -> Self {
        Self::over(world, Peer::listening(host, seed, |crypto| crypto))
    }

    fn over(world: &World, peer: Peer) -> Self {
        let (origin, answers) = (world.origin(), Vec::new());
        Self { peer, origin, answers_probes: None, answers, sent: (0, 0), heard: (0, 0) }
    }

    fn instant(&self, now: Time) -> Instant {
        self.origin + Duration::from_nanos(now.as_nanos())
    }

    /// Lets the peer and the core `node` talk for a while.
    pub fn run(peers: &mut [&mut Self], world: &mut World, node: NodeId, time: Duration) {
        world.keep_strays();
        let end = world.now() + time;
        while world.now() < end {
            for peer in peers.iter_mut() {
                peer.send(world, node);
            }
            world.run_for(Duration::from_millis(1));
            for stray in world.take_strays() {
                for peer in peers.iter_mut() {
                    peer.handle(world.now(), stray.from, stray.to, &stray.bytes);
                }
            }
        }
    }

    /// Gives a core what is due now.
    pub fn send(&mut self, world: &mut World, node: NodeId) {
        for answer in std::mem::take(&mut self.answers) {
            self.inject(world, node, self.data, &answer);
        }
        let now = instant(world);
        while let Some(bytes) = self.poll_transmit(now) {
            self.inject(world, node, self.control, &bytes);
        }
    }

    /// Gives a core a datagram from one of its ports, or from elsewhere, and counts it.
    pub fn inject(&mut self, world: &mut World, node: NodeId, from: SocketAddr, bytes: &[u8]) {
        self.sent = (self.sent.0 + 1, self.sent.1 + bytes.len() as u64);
        world.inject(node, from, bytes);
    }

    /// Takes a datagram that was sent to somebody.
    pub fn handle(&mut self, now: Time, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if self.is_for_data(to, bytes) {
            self.answer(now, bytes);
        } else if to == self.control {
            self.heard = (self.heard.0 + 1, self.heard.1 + bytes.len() as u64);
        }
        let now = self.instant(now);
        self.peer.handle(now, from, to, bytes);
    }

    fn answer(&mut self, now: Time, bytes: &[u8]) {
        let token = self.answers_probes;
        if let (Some(token), Ok(question)) = (token, Probe::parse(bytes))
            && !question.answer
        {
            let now = now.as_nanos();
            let answer = Probe { answer: true, received_ns: now, answered_ns: now, ..question };
            self.answers.push(tagged(token, answer, bytes.len()));
        }
    }

    /// The connection, for what has no name here.
    pub fn quic(&mut self) -> &mut Connection {
        self.connection().expect("a connection")
    }

    pub fn say(&mut self, stream: StreamId, message: impl Into<Message>) {
        let mut bytes = Vec::new();
        message.into().encode(&mut bytes).expect("the test's message is legal");
        self.push(stream, &bytes);
    }

    /// Ends the way to the core of a stream by force.
    pub fn reset(&mut self, stream: StreamId) {
        self.quic().send_stream(stream).reset(VarInt::from_u32(9)).expect("the stream is open");
    }

    /// Ends the way to the core of a stream in order, after what was said.
    pub fn finish(&mut self, stream: StreamId) {
        self.write();
        self.quic().send_stream(stream).finish().expect("the stream is open");
    }

    /// Tells the core to send no more on a stream.
    pub fn stop(&mut self, stream: StreamId) {
        self.quic().recv_stream(stream).stop(VarInt::from_u32(9)).expect("the stream is open");
    }

    /// Closes the connection at once.
    pub fn close(&mut self, now: Time) {
        let now = self.instant(now);
        self.peer.close(now);
    }

    /// The code with which the core closed the connection.
    pub fn closed_with(&self) -> Option<Code> {
        match &self.lost {
            Some(ConnectionError::ApplicationClosed(close)) => {
                Code::from_number(u64::from(close.error_code) as u16)
            }
            _ => None,
        }
    }

    /// Greets as it should be and returns the hub's stream and the welcome.
    pub fn greet(&mut self, world: &mut World, node: NodeId) -> (StreamId, Welcome) {
        Self::run(&mut [&mut *self], world, node, Duration::from_millis(200));
        assert!(self.connected, "the core takes the connection");
        let hub = self.open().expect("the first stream");
        self.say(hub, hello());
        Self::run(&mut [&mut *self], world, node, Duration::from_millis(100));
        match self.next(hub) {
            Some(Message::Welcome(welcome)) => (hub, welcome),
            other => panic!("no WELCOME but {other:?}"),
        }
    }

    /// Asks a question on the data path, as a core does with the token it was welcomed with.
    pub fn probe(&self, world: &mut World, node: NodeId, token: [u8; 16], number: u64) {
        let probe = question(world.now(), number);
        world.inject(node, self.data, &tagged(token, probe, 1_452));
    }
}

/// The usual greeting.
pub fn hello() -> Hello {
    Hello { version_min: 1, version_max: 1, instance: [9; 16], boot: [9; 16], time_namespace: 0 }
}
