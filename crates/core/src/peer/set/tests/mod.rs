//! The peers of two cores, with what carries datagrams between them, and no core around.

mod alone;
mod greeting;
mod leaving;
mod many;
mod paths;

use super::{Identity, PeerCx, Peers, Routed};
use crate::control::tests::crypto;
use crate::control::{ConnId, Control, ControlEvent};
use crate::effect::{Effect, Out, PeerNews};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::flow::tests::{at, ms, shared};
use crate::ids::{PeerId, SessionId};
use crate::peer::{DialParams, Peer};
use crate::shared::Shared;
use crate::transmit::ListenerId;
use dacapo_base::{Address, Ecn, Random, Time};
use dacapo_wire::message::Message;
use dacapo_wire::probe::Probe;
use quinn_proto::StreamId;
use std::time::{Duration, Instant};

const DIALER: &str = "192.0.2.1:1000";
const LISTENER: &str = "192.0.2.2:19980";

/// Where the listener receives.
const HERE: ListenerId = ListenerId(4);

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

/// One core's peers and what they live in.
struct End {
    at: Address,
    control: Control,
    shared: Shared,
    identity: Identity,
    peers: Peers,
    out: Out,
    /// What has come for sessions, in words.
    routed: Vec<String>,
    /// What comes is not given to the peers, but kept here.
    kept: Option<Vec<ControlEvent>>,
}

impl End {
    fn new(at: &str, number: u8) -> Self {
        let mut random = Random::from_number(u64::from(number));
        let crypto = crypto(&mut random);
        let [instance, boot] = [[number; 16], [7; 16]];
        Self {
            at: address(at),
            control: Control::new(crypto, &mut random, Instant::now(), 8),
            shared: shared(Vec::new()),
            identity: Identity { instance, boot, time_namespace: 3, versions: (1, 1) },
            peers: Peers::default(),
            out: Out::default(),
            routed: Vec::new(),
            kept: None,
        }
    }

    fn with<R>(
        &mut self,
        now: Time,
        body: impl FnOnce(&mut Peers, &mut PeerCx<'_>, &mut Out) -> R,
    ) -> R {
        let (control, shared, identity) = (&mut self.control, &mut self.shared, self.identity);
        let mut cx = PeerCx { now, control, shared, identity };
        body(&mut self.peers, &mut cx, &mut self.out)
    }

    /// The only peer.
    fn id(&self) -> PeerId {
        let mut all = self.peers.all.iter().map(|(id, _)| id);
        let id = all.next().expect("there is one");
        assert!(all.next().is_none(), "there is one");
        id
    }

    fn peer(&self) -> &Peer {
        self.peers.get(self.id()).unwrap()
    }

    /// What was wanted since the last call, in words.
    fn said(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.out.pop()).filter_map(words).collect()
    }

    fn handle_event(&mut self, now: Time, event: ControlEvent) {
        if let Some(kept) = &mut self.kept {
            return kept.push(event);
        }
        let routed = self.with(now, |peers, cx, out| match event {
            ControlEvent::Connected { conn, remote, dialed } => {
                peers.handle_connected(cx, conn, remote, dialed, out);
                None
            }
            ControlEvent::Lost { conn, reason, said } => {
                peers.handle_lost(cx, conn, &reason, said, out);
                None
            }
            ControlEvent::Message { conn, stream, message } => {
                match peers.handle_message(cx, conn, stream, message, out) {
                    Routed::Nobody => None,
                    Routed::Session(session, message) => {
                        Some(format!("{} for {}", message.kind().name(), session.0))
                    }
                    Routed::NewSession(_, message) => {
                        peers.carry(conn, stream, SessionId(50));
                        Some(format!("{} begins", message.kind().name()))
                    }
                }
            }
            ControlEvent::Ended { conn, stream, error } => {
                let ended = peers.handle_stream_ended(cx, conn, stream, error, out);
                ended.map(|(session, _)| format!("{} ended", session.0))
            }
        });
        self.routed.extend(routed);
    }

    fn routed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.routed)
    }

    /// What has come since it is kept: the last that was said, and where.
    fn last_message(&mut self) -> (ConnId, StreamId, Message) {
        let kept = self.kept.as_mut().expect("it is kept");
        let last = kept.drain(..).rev().find_map(|event| match event {
            ControlEvent::Message { conn, stream, message } => Some((conn, stream, message)),
            _ => None,
        });
        last.expect("something was said")
    }
}

fn words(effect: Effect) -> Option<String> {
    Some(match effect {
        Effect::Event(CoreEvent::PeerOpen { .. }) => "open".into(),
        Effect::Event(CoreEvent::Listing { sessions, .. }) => {
            format!("listing {:?}", sessions.map(|all| all.len()).map_err(|error| error.code))
        }
        Effect::List(..) => "list".into(),
        Effect::CloseData(address) => format!("close {address}"),
        Effect::Peer(_, news) => match news {
            PeerNews::Lost { error, lists } => format!("lost {:?} {lists}", error.code),
            PeerNews::ContactLost(error) => format!("contact lost {:?}", error.code),
            PeerNews::ContactRestored(after) => format!("contact back {after:?}"),
            PeerNews::Calm => "calm".into(),
            PeerNews::DataMoved => "data moved".into(),
            PeerNews::PathLen { from, .. } => format!("length {}", from.is_some()),
            PeerNews::Waits(after) => format!("waits {after:?}"),
            // Told with each look, or each answer.
            PeerNews::DataOpen | PeerNews::Clock(_) | PeerNews::Room => return None,
            PeerNews::Seen(_) => "seen".into(),
            PeerNews::Held(held) => format!("held {:?}", held.rate_bps),
        },
        _ => "something else".into(),
    })
}

/// What is lost between the ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lossy {
    Nothing,
    Probes,
    All,
}

struct World {
    now: Time,
    dialer: End,
    listener: End,
    lossy: Lossy,
}

impl World {
    fn new() -> Self {
        let (dialer, listener) = (End::new(DIALER, 1), End::new(LISTENER, 2));
        Self { now: at(1_000), dialer, listener, lossy: Lossy::Nothing }
    }

    fn connect(&mut self) -> Result<PeerId, Error> {
        let remote = self.listener.at;
        self.dialer
            .with(self.now, |peers, cx, out| peers.connect(cx, remote, DialParams::default(), out))
    }

    /// The greeting is over.
    fn open() -> Self {
        let mut world = Self::new();
        world.greet();
        world
    }

    fn greet(&mut self) {
        self.connect().unwrap();
        self.exchange();
        assert_eq!(
            (self.dialer.said(), self.listener.said()),
            (words_of("open"), words_of("open"))
        );
    }

    /// The data path is open at both ends, and its length known.
    fn probed() -> Self {
        let mut world = Self::open();
        world.pass(ms(12_000));
        world.dialer.said();
        world.listener.said();
        world
    }

    /// Carries what waits at both ends until nothing does.
    fn exchange(&mut self) {
        loop {
            let (now, lossy) = (self.now, self.lossy);
            let there = carry(now, lossy, &mut self.dialer, &mut self.listener, HERE);
            let back = carry(now, lossy, &mut self.listener, &mut self.dialer, ListenerId(1));
            if !there && !back {
                return;
            }
        }
    }

    /// Time passes, in small steps.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = (self.now + ms(20)).min(until);
            for end in [&mut self.dialer, &mut self.listener] {
                end.control.handle_timeout(self.now);
                end.with(self.now, |peers, cx, out| peers.handle_timeout(cx, out));
            }
            self.exchange();
        }
    }
}

fn words_of(word: &str) -> Vec<String> {
    vec![word.to_owned()]
}

/// Carries what one end has to the other; whether there was anything.
fn carry(now: Time, lossy: Lossy, from: &mut End, to: &mut End, local: ListenerId) -> bool {
    let mut is_any = false;
    while let Some(datagram) = from.control.poll_transmit(now) {
        is_any = true;
        if lossy != Lossy::All && datagram.remote == to.at {
            let conn = to.control.handle_datagram(now, local, from.at, &datagram.bytes);
            conn.into_iter().for_each(|conn| to.peers.handle_heard(conn));
        }
    }
    while let Some((_, _, remote, bytes, _)) = from.peers.poll_probe() {
        is_any = true;
        if lossy == Lossy::Nothing && remote == to.at {
            let (probe, len, at) = (Probe::parse(&bytes).unwrap(), bytes.len(), from.at);
            to.with(now, |peers, cx, out| {
                peers.handle_probe(cx, (ListenerId(0), at), probe, len, out)
            });
        }
    }
    for end in [from, to] {
        while let Some(event) = end.control.poll_event() {
            is_any = true;
            end.handle_event(now, event);
        }
    }
    is_any
}
