//! Changes of a flow, from here and from the peer, against what was agreed of it.
//!
//! ```text
//!   bytes -> attributes, graph ---> a session with a flow each way
//!         -> Change: refused, or PREPARE -> READY, CANNOT, silence
//!         -> PREPARE from the peer: READY, or CANNOT with a reason
//! ```
//!
//! What a graph keeps is told here by what its modules do to packets, and not by what the core's
//! own tables say: `sequence` holds back what came too early and drops what came twice, `checksum`
//! drops what is altered, `repeat` sends everything again. So what is admitted keeps what was asked
//! for and was kept before, whatever is proposed, and what is refused for that gives something up.

use super::core_quic::{KEPT_MAX, greet};
use crate::input::Input;
use crate::rig::peer::{Peer, answer, extend};
use crate::rig::{Rig, ports};
use dacapo_core::{Code, Command, CoreEvent, SessionId, SessionProvider, SessionSpec};
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::change::{Abort, Done, Prepare, Ready};
use dacapo_wire::graph::{GraphForm, NodeForm};
use dacapo_wire::message::Message;
use dacapo_wire::session::{Activate, Direction, FlowOffer, Join};
use quinn_proto::StreamId;
use std::collections::BTreeSet;
use std::time::Duration;

/// The most steps of a script.
const STEPS_MAX: usize = 64;

/// How often both talk while time passes.
const TALK_EVERY: Duration = Duration::from_millis(250);

/// What of a network that loses, repeats, reorders and alters a graph makes good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kept {
    order: bool,
    once: bool,
    whole: bool,
}

impl Kept {
    /// What holds above a graph, by what each of its modules does, from the network up.
    fn above(graph: &GraphForm) -> Self {
        graph.nodes.iter().rev().fold(Self::default(), |below, node| match node.module {
            2 => Self { order: true, once: true, ..below },
            3 => Self { whole: true, ..below },
            4 => Self { order: false, once: false, ..below },
            5 | 9 | 14 => Self { order: false, ..below },
            6 => Self { order: is_ordered(node), once: true, ..below },
            7 | 13 => Self { order: true, once: true, ..below },
            10 => Self { once: true, ..below },
            11 => Self { whole: true, ..below },
            _ => below,
        })
    }

    /// What was asked for: a bound that must hold, of a kind that a graph can keep.
    fn asked(attributes: &[AttributeForm]) -> Self {
        let must = |wanted: u16| {
            attributes.iter().any(|it| it.key == wanted && it.min.is_some_and(|min| min >= 1))
        };
        Self { order: must(key::ORDER), once: must(key::DUPLICATES), whole: must(key::INTEGRITY) }
    }

    fn and(self, other: Self) -> Self {
        Self {
            order: self.order && other.order,
            once: self.once && other.once,
            whole: self.whole && other.whole,
        }
    }
}

/// Whether `arq-nak` is to hand over in order.
fn is_ordered(node: &NodeForm) -> bool {
    node.params.iter().any(|(number, value)| *number == 1 && *value != 0)
}

/// A graph that the input says: mostly of modules that there are.
fn graph(input: &mut Input<'_>) -> GraphForm {
    let count = usize::from(input.u8() % 6);
    let nodes = (0..count).map(|_| match input.u8() {
        known @ 0..=0xDF => (1 + u16::from(known % 4), Vec::new()),
        more @ 0xE0..=0xEF => (1 + u16::from(more % 4), vec![(more.into(), input.number())]),
        _ => (input.u16(), Vec::new()),
    });
    let mut graph = GraphForm::line(nodes.collect::<Vec<_>>());
    if input.u8() == 0xFF {
        graph.nodes.push(NodeForm { parent: 0, module: 2, params: Vec::new() });
    }
    graph
}

fn attributes(input: &mut Input<'_>) -> Vec<AttributeForm> {
    let count = input.u8() % 5;
    let one = |input: &mut Input<'_>| {
        let how = input.u8();
        let bound = |bit: u8, value: u8| (how & bit != 0).then_some(i64::from(value % 4));
        let key = [key::LOSS, key::ORDER, key::DUPLICATES, key::INTEGRITY][usize::from(how & 3)];
        let (min, max) = (bound(4, input.u8()), bound(8, input.u8()));
        AttributeForm { key, min, max, weight: None }
    };
    let mut all: Vec<AttributeForm> = (0..count).map(|_| one(input)).collect();
    let mut seen = BTreeSet::new();
    all.retain(|it| seen.insert(it.key));
    all
}

struct Serves;

impl SessionProvider for Serves {
    fn open(
        &mut self,
        flow: &FlowOffer,
        _: &dacapo_core::JoinRequest,
    ) -> Result<dacapo_core::Port, String> {
        Ok(ports::port(flow, true))
    }
}

/// A session that runs, and what was agreed of each of its flows.
struct Scene {
    rig: Rig,
    peer: Peer,
    stream: StreamId,
    session: SessionId,
    agreed: Kept,
    /// Of the flow that the peer sends.
    transcript: [u8; 32],
    epoch: u64,
    /// What shows life on the data path.
    token: [u8; 16],
    question: u64,
    /// What has come of proposals, by its kind: how far a script has come.
    seen: BTreeSet<&'static str>,
}

impl Scene {
    /// A session of these flows; `None` where the core does not serve or offer them.
    fn set_up(flows: &[FlowOffer]) -> Option<Self> {
        let mut rig = Rig::new(7);
        let (spec, mut peer) = (spec(flows), Peer::client(&rig, 66, 7));
        rig.core().publish(spec, Box::new(Serves)).ok()?;
        let hub = greet(&mut rig, &mut peer)?;
        let Some(Message::Welcome(welcome)) = peer.next(hub) else { return None };
        let question = Peer::question(&rig, welcome.path_token, 0);
        rig.handle(peer.data, &question);
        let stream = peer.open()?;
        peer.say(stream, Join { name: "any".into(), ..Join::default() });
        peer.talk(&mut rig);
        let Some(Message::Offer(offer)) = peer.next(stream) else { return None };
        assert_eq!(offer.flows.len(), flows.len(), "what is served is offered");
        let answer: Message = answer(flows.len()).into();
        let transcript = extend(extend([0; 32], &offer.into()), &answer);
        peer.say(stream, answer);
        peer.talk(&mut rig);
        peer.say(stream, Activate { request: 1 });
        peer.talk(&mut rig);
        let session = rig.take_events().iter().find_map(|event| match event {
            CoreEvent::Ready { session } => Some(*session),
            _ => None,
        })?;
        while peer.next(stream).is_some() {}
        let flow = flows.first()?;
        let agreed = Kept::asked(&flow.attributes).and(Kept::above(&flow.graph));
        let (token, question) = (welcome.path_token, 1);
        let (epoch, seen) = (0, BTreeSet::new());
        Some(Self { rig, peer, stream, session, agreed, transcript, epoch, token, question, seen })
    }

    /// What the core says to the session now.
    fn hear(&mut self) -> Vec<Message> {
        self.peer.talk(&mut self.rig);
        let changed = |event: &CoreEvent| matches!(event, CoreEvent::Changed { .. });
        self.seen.extend(self.rig.events.iter().any(changed).then_some("changed"));
        self.rig.drop_events();
        std::iter::from_fn(|| self.peer.next(self.stream)).collect()
    }

    /// Lets time pass, in which both talk.
    fn pass(&mut self, time: Duration) {
        let end = self.rig.now() + time;
        while self.rig.now() < end {
            self.rig.pass(TALK_EVERY.min(end.since(self.rig.now())));
            let question = Peer::question(&self.rig, self.token, self.question);
            self.question += 1;
            self.rig.handle(self.peer.data, &question);
            self.hear();
        }
    }

    /// What was admitted keeps what was agreed; what was refused for that does not.
    fn check(&mut self, graph: &GraphForm, answer: Result<(), (u16, &str)>) {
        let keeps = Kept::above(graph).and(self.agreed) == self.agreed;
        match answer {
            Ok(()) => assert!(keeps, "{graph:?} gives up what was agreed: {:?}", self.agreed),
            Err((code, text)) => {
                let code = Code::from_number(code).expect("a code that there is");
                assert!(!text.is_empty() && code != Code::Internal, "{code:?} {text:?}");
                let is_for_that = code == Code::Refused;
                self.seen.extend(is_for_that.then_some("given up"));
                assert!(!is_for_that || !keeps, "{graph:?} keeps {:?}: {text}", self.agreed);
            }
        }
    }

    /// The application changes the flow that the core sends.
    fn change(&mut self, input: &mut Input<'_>) {
        let (graph, how, now) = (graph(input), input.u8() % 4, self.rig.now());
        let (session, wanted) = (self.session, graph.clone());
        let change = Command::Change { session, flow: 0, graph: wanted };
        let answer = self.rig.core().handle_command(now, change).map(drop);
        let answer = answer.as_ref().copied();
        self.check(&graph, answer.map_err(|error| (error.code as u16, error.text.as_str())));
        let prepared = self.hear().into_iter().find_map(|message| match message {
            Message::Prepare(prepare) => Some(prepare),
            _ => None,
        });
        assert_eq!(prepared.is_some(), answer.is_ok(), "what is admitted is proposed");
        self.seen.insert(if answer.is_ok() { "change" } else { "refused" });
        let Some(Prepare { flow, epoch, graph: proposed, .. }) = prepared else { return };
        assert_eq!(proposed, graph, "what was asked for is proposed");
        match how {
            0 => self.pass(Duration::from_secs(6)),
            1 => self.peer.say(
                self.stream,
                dacapo_wire::change::Cannot { flow, epoch, code: 404, text: "no".into() },
            ),
            _ => {
                self.peer.say(self.stream, Ready { flow, epoch, label: 0x5555, position: None });
                self.hear();
                let old = epoch.saturating_sub(1);
                self.peer.say(self.stream, Done { flow, epoch: old, delivered: 0, lost: 0 });
            }
        }
        self.hear();
    }

    /// The peer proposes another graph for the flow that it sends.
    fn propose(&mut self, input: &mut Input<'_>) {
        self.epoch += 1;
        let (graph, how) = (graph(input), input.u8());
        let mut prepare = Prepare {
            flow: 1,
            epoch: self.epoch,
            label: input.u32(),
            graph: graph.clone(),
            ..Prepare::default()
        };
        let said: Message = prepare.clone().into();
        if said.encode(&mut Vec::new()).is_err() {
            return;
        }
        self.transcript = extend(self.transcript, &said);
        prepare.transcript = self.transcript;
        self.peer.say(self.stream, prepare);
        let answer = self.hear().into_iter().find_map(|message| match message {
            Message::Ready(ready) => Some((ready.epoch, Ok(()))),
            Message::Cannot(cannot) => Some((cannot.epoch, Err((cannot.code, cannot.text)))),
            _ => None,
        });
        // A graph that nobody could have written ends the session.
        let Some((epoch, answer)) = answer else { return };
        assert_eq!(epoch, self.epoch);
        let is_ready = answer.is_ok();
        self.seen.insert(if is_ready { "ready" } else { "cannot" });
        self.check(&graph, answer.as_ref().copied().map_err(|(code, text)| (*code, text.as_str())));
        if is_ready && !how.is_multiple_of(4) {
            self.peer.say(self.stream, Abort { flow: 1, epoch });
            self.hear();
        }
    }

    fn finish(mut self) -> BTreeSet<&'static str> {
        self.peer.close(&self.rig);
        self.peer.talk(&mut self.rig);
        self.rig.pass(Duration::from_secs(450));
        self.rig.check_empty(KEPT_MAX);
        self.seen
    }
}

fn spec(flows: &[FlowOffer]) -> SessionSpec {
    SessionSpec {
        name: "any".into(),
        title: "A session".into(),
        flows: flows.to_vec(),
        participants_max: 1,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    }
}

/// A session as the bytes say, and proposals.
pub fn agreement(bytes: &[u8]) {
    play(bytes);
}

/// The same; what has come of proposals, by its kind; nothing when there was no session.
///
/// # Panics
/// Something does not hold.
pub fn play(bytes: &[u8]) -> BTreeSet<&'static str> {
    let mut input = Input(bytes);
    let (attributes, graph) = (attributes(&mut input), graph(&mut input));
    let flow = |name: &str, direction| FlowOffer {
        attributes: attributes.clone(),
        graph: graph.clone(),
        ..ports::flow(name, direction, &[], 1)
    };
    let flows = [flow("down", Direction::ToParticipant), flow("up", Direction::ToCreator)];
    let Some(mut scene) = Scene::set_up(&flows) else { return BTreeSet::new() };
    let mut steps = 0;
    while !input.is_empty() && steps < STEPS_MAX {
        match input.u8() % 8 {
            0..=2 => scene.change(&mut input),
            3..=6 => scene.propose(&mut input),
            _ => scene.pass(Duration::from_millis(1 << (input.u8() % 10))),
        }
        steps += 1;
    }
    scene.finish()
}

/// Nothing asked, each thing asked, all of it; and proposals that keep it, and that do not.
pub fn agreement_seeds() -> Vec<Vec<u8>> {
    // How an attribute is asked for: bit 2 a least value, and which of four.
    let asks: [&[u8]; 5] = [
        &[0],
        &[1, 4 | 1, 1, 0],
        &[2, 4 | 2, 1, 0, 4 | 3, 1, 0],
        &[3, 4 | 1, 1, 0, 4 | 2, 1, 0, 4 | 3, 1, 0],
        &[2, 8, 0, 0, 1, 1, 1],
    ];
    // The number of modules, each less one, and a line.
    let full: &[u8] = &[3, 0, 1, 2, 0];
    let graphs: [&[u8]; 6] =
        [full, &[0, 0], &[1, 1, 0], &[2, 1, 2, 0], &[2, 3, 1, 0], &[4, 0, 3, 1, 2, 0]];
    let mut seeds = Vec::new();
    for ask in asks {
        let mut seed = [ask, full].concat();
        for graph in graphs {
            seed.extend([&[0], graph, &[3], &[3], graph, &[1, 0, 0, 0, 9]].concat());
        }
        seeds.push(seed);
    }
    for graph in &graphs[1..] {
        let more = [&[3][..], full, &[0, 0, 0, 0, 1], &[0], full, &[0]].concat();
        seeds.push([asks[3], *graph, &more].concat());
    }
    seeds
}
