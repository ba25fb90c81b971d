//! [`Connection`]: one simulated TCP connection between two nodes.
//!
//! ```text
//!   Connecting --there and back--> Through --preface, answer--> open at both ends
//!        | refused, filtered          | close, break, silence
//!        v                            v
//!                     over
//! ```
//!
//! Invariants: a core hears of a stream's end once, and of nothing after it; what a core has
//! written before it closed arrives, unless the network ends the connection; a core that closes, or
//! hears of the end, has every view of its pool back.

use super::Network;
use super::pipe::{Drain, Mouth, Pipe};
use crate::NodeId;
use dacapo_base::{Random, Time};
use dacapo_core::{ChannelEvent, ListenerId, StreamId};
use dacapo_transport::stream::{PATIENCE, ReadOutcome, StreamEnd, Token};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// A connection that is not answered is asked for again after this time.
const RETRY: Duration = Duration::from_secs(1);

/// A core that had no memory is offered what came again after this time.
const MEMORY_RETRY: Duration = Duration::from_millis(1);

/// The dialer's end, and the listener's.
const DIALER: usize = 0;
const LISTENER: usize = 1;

#[derive(Debug)]
struct End {
    node: NodeId,
    address: SocketAddr,
    /// Its number at the core, while the core is to hear of it.
    stream: Option<StreamId>,
    engine: StreamEnd,
    /// Datagrams that were not taken.
    waiting: VecDeque<Vec<u8>>,
    blocked: bool,
    /// Nobody here wants it any more: nothing is written after what waits.
    closing: bool,
    finished: bool,
    /// The core had no memory; when it is asked again.
    offer_at: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connecting { at: Time },
    Through,
    Over,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    ends: [End; 2],
    /// From the dialer, and from the listener.
    pipes: [Pipe; 2],
    state: State,
    silent_since: Option<Time>,
    /// A connection on which nothing gets through for so long is over, as each end says.
    patience: [Duration; 2],
}

impl Connection {
    /// A connection that a core dials; at `at` the other end has answered.
    pub fn new(
        at: Time,
        dialer: (NodeId, SocketAddr, StreamId),
        listener: (NodeId, SocketAddr),
        token: &Token,
        capacity: usize,
    ) -> Self {
        let end = |node, address, stream, engine| End {
            node,
            address,
            stream,
            engine,
            waiting: VecDeque::new(),
            blocked: false,
            closing: false,
            finished: false,
            offer_at: None,
        };
        Self {
            ends: [
                end(dialer.0, dialer.1, Some(dialer.2), StreamEnd::dialer(token)),
                end(listener.0, listener.1, None, StreamEnd::listener()),
            ],
            pipes: [Pipe::new(capacity), Pipe::new(capacity)],
            state: State::Connecting { at },
            silent_since: None,
            patience: [PATIENCE; 2],
        }
    }

    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn nodes(&self) -> [NodeId; 2] {
        [self.ends[DIALER].node, self.ends[LISTENER].node]
    }

    pub fn joins(&self, a: NodeId, b: NodeId) -> bool {
        self.nodes() == [a, b] || self.nodes() == [b, a]
    }

    fn end_of(&mut self, node: NodeId, stream: StreamId) -> Option<&mut End> {
        self.ends.iter_mut().find(|end| end.node == node && end.stream == Some(stream))
    }

    /// Takes a datagram from a core; false when the stream is not this one's.
    pub fn send(&mut self, node: NodeId, stream: StreamId, datagram: &[u8]) -> bool {
        let Some(end) = self.end_of(node, stream) else { return false };
        end.waiting.push_back(datagram.to_vec());
        true
    }

    /// A core has closed its end.
    pub fn close(&mut self, node: NodeId, stream: StreamId, network: &mut dyn Network) {
        let Some(end) = self.end_of(node, stream) else { return };
        end.stream = None;
        end.leave(network);
        let unheard = self.ends.iter().all(|end| end.stream.is_none());
        if unheard || matches!(self.state, State::Connecting { .. }) {
            self.state = State::Over;
        }
    }

    /// It ends at both ends: what is on the way is gone.
    pub fn end(&mut self, reason: &str, network: &mut dyn Network) {
        self.state = State::Over;
        for end in &mut self.ends {
            end.leave(network);
            let local = network.local(end.node);
            if let (Some(stream), Some(core)) = (end.stream.take(), network.core(end.node)) {
                core.handle_channel(local, stream, ChannelEvent::closed(reason));
            }
        }
    }

    /// Does what is due now; true when something moved.
    pub fn step(&mut self, now: Time, network: &mut dyn Network, random: &mut Random) -> bool {
        let nodes = self.nodes();
        let cut = network.is_cut(nodes[0], nodes[1]) || network.is_cut(nodes[1], nodes[0]);
        if let State::Connecting { at } = self.state {
            return at <= now && self.connect(now, cut, network);
        }
        if self.is_silent(now, cut) {
            let text = format!("nothing got through for {} s", self.shortest_patience().as_secs());
            self.end(&text, network);
            return true;
        }
        let mut moved = false;
        for (from, to) in [(DIALER, LISTENER), (LISTENER, DIALER)] {
            if self.state == State::Through {
                moved |= self.write(now, from, random, network);
                if !network.is_cut(nodes[from], nodes[to]) {
                    moved |= self.read(now, [from, to], random, network);
                }
            }
        }
        moved
    }

    fn is_silent(&mut self, now: Time, cut: bool) -> bool {
        if !cut {
            self.silent_since = None;
            return false;
        }
        let since = *self.silent_since.get_or_insert(now);
        now.since(since) >= self.shortest_patience()
    }

    fn shortest_patience(&self) -> Duration {
        self.patience[DIALER].min(self.patience[LISTENER])
    }

    /// An end waits for so long while nothing gets through.
    pub fn set_patience(&mut self, node: NodeId, stream: StreamId, patience: Duration) {
        for (end, its) in self.ends.iter().zip(&mut self.patience) {
            if end.node == node && end.stream == Some(stream) {
                *its = patience;
            }
        }
    }

    fn connect(&mut self, now: Time, cut: bool, network: &mut dyn Network) -> bool {
        if cut {
            self.state = State::Connecting { at: now + RETRY };
            return false;
        }
        if network.listens(self.ends[LISTENER].node) {
            self.state = State::Through;
        } else {
            self.end("connection refused", network);
        }
        true
    }

    /// Moves what an end has into its pipe.
    fn write(
        &mut self,
        now: Time,
        from: usize,
        random: &mut Random,
        network: &mut dyn Network,
    ) -> bool {
        let to = self.ends[1 - from].address;
        let nodes = self.nodes();
        let (weather, mut taken) = (network.weather(nodes[from], nodes[1 - from]), Vec::new());
        let (end, pipe) = (&mut self.ends[from], &mut self.pipes[from]);
        let mut mouth = Mouth { pipe, now, weather: &weather, random, taken: &mut taken };
        let is_empty = end.write(&mut mouth);
        if end.closing && is_empty && !std::mem::replace(&mut end.finished, true) {
            pipe.finish(now, &weather);
        }
        if !taken.is_empty() {
            network.sent(end.address, to, &taken);
        }
        let blocked = !end.waiting.is_empty();
        if let Some(stream) = end.stream.filter(|_| end.blocked != blocked) {
            end.blocked = blocked;
            let local = network.local(end.node);
            if let Some(core) = network.core(end.node) {
                core.handle_channel(local, stream, ChannelEvent::Ready(!blocked));
            }
        }
        !taken.is_empty()
    }

    /// Gives an end what has arrived; true when something was there.
    fn read(
        &mut self,
        now: Time,
        [from, to]: [usize; 2],
        random: &mut Random,
        network: &mut dyn Network,
    ) -> bool {
        let address = self.ends[from].address;
        let mut moved = false;
        loop {
            let (end, pipe) = (&mut self.ends[to], &mut self.pipes[from]);
            end.offer_at = None;
            if end.closing {
                // What comes now is nobody's; the other end may be over with it, too.
                let ended = pipe.discard(now);
                self.state = if ended && end.finished { State::Over } else { self.state };
                return moved || ended;
            }
            let local = network.local(end.node);
            let Some(core) = network.core(end.node) else { return moved };
            match end.engine.read(&mut Drain { pipe, now, random }, core.pool()) {
                ReadOutcome::Nothing => return moved,
                ReadOutcome::PoolFull => {
                    end.offer_at = Some(now + MEMORY_RETRY);
                    return moved;
                }
                ReadOutcome::Bytes { .. } | ReadOutcome::Unpolled => {
                    end.hand_up(address, network);
                }
                ReadOutcome::Opened => {
                    let opened = end.stream;
                    opened
                        .into_iter()
                        .for_each(|stream| core.handle_channel(local, stream, ChannelEvent::Open));
                }
                ReadOutcome::Claim(token) => self.claim(to, &token, network),
                ReadOutcome::Ended(ending) => {
                    self.end(&ending.to_string(), network);
                    return true;
                }
            }
            moved = true;
        }
    }

    /// A dialer has shown its token.
    fn claim(&mut self, to: usize, token: &Token, network: &mut dyn Network) {
        let end = &mut self.ends[to];
        end.stream = network.claim(end.node, token);
        match end.stream {
            None => end.leave(network),
            Some(stream) => {
                end.engine.accept();
                let local = network.local(end.node);
                if let Some(core) = network.core(end.node) {
                    core.handle_channel(local, stream, ChannelEvent::Open);
                }
            }
        }
    }

    /// When [`Connection::step`] has something to do.
    pub fn next_due(&self, is_cut: &dyn Fn(NodeId, NodeId) -> bool) -> Option<Time> {
        if let State::Connecting { at } = self.state {
            return Some(at);
        }
        let nodes = self.nodes();
        let arrivals = [(DIALER, LISTENER), (LISTENER, DIALER)].into_iter().filter_map(|(a, b)| {
            let is_waiting = is_cut(nodes[a], nodes[b]) || self.ends[b].offer_at.is_some();
            if is_waiting { self.ends[b].offer_at } else { self.pipes[a].next_due() }
        });
        arrivals.chain(self.silent_since.map(|since| since + self.shortest_patience())).min()
    }
}

impl End {
    /// Writes what waits, as much as the pipe takes; true when nothing is left.
    fn write(&mut self, mouth: &mut Mouth<'_>) -> bool {
        // A pipe of a world gives no errors: the world itself ends connections.
        let _ = self.engine.flush(mouth);
        while let Some(datagram) = self.waiting.front() {
            let taken = self.engine.write(datagram, datagram.len(), mouth).unwrap_or_default();
            if taken.datagrams == 0 {
                break;
            }
            self.waiting.pop_front();
        }
        self.waiting.is_empty() && !self.engine.has_backlog()
    }

    /// Gives the core the datagrams that are whole.
    fn hand_up(&mut self, from: SocketAddr, network: &mut dyn Network) {
        let local = network.local(self.node);
        let Some(core) = network.core(self.node) else { return };
        while let Ok(Some(packet)) = self.engine.poll_datagram(local, core.pool()) {
            core.handle_datagram(local, ListenerId::default(), from.into(), packet);
        }
    }

    /// Nothing is read any more, and what is held of the core's pool goes back.
    fn leave(&mut self, network: &mut dyn Network) {
        self.closing = true;
        if let Some(core) = network.core(self.node) {
            self.engine.release(core.pool());
        }
    }
}
