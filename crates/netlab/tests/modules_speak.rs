//! Modules of the two ends of a flow speak to each other, both ways, whatever the link loses.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, config, ms, offer, pattern};
use dacapo_core::{Command, CoreConfig, CoreEvent};
use dacapo_lift::{
    Catalogue, ControlError, Cx, Entry, MESSAGES_PER_SECOND, Module, ModuleSpec, Verdict,
};
use dacapo_modules::integrity::checksum;
use dacapo_netlab::{NodeId, catalogue};
use dacapo_packet::Packet;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::FlowOffer;
use std::time::Duration;

/// What it shows of itself.
const SENT: u16 = 1;
const ANSWERED: u16 = 2;
const HEARD: u16 = 3;
const FAILED: u16 = 4;

/// Says its count to the peer's module with each `every`th packet, which answers with the double.
struct Talks {
    every: u64,
    /// How long what it says is; the count stands in front.
    len: usize,
    packets: u64,
    sent: i64,
    answered: i64,
    heard: i64,
    failed: i64,
    /// The last that was heard, and that was answered.
    newest: Option<i64>,
    doubled: Option<i64>,
}

impl Talks {
    fn new(every: u64, len: usize) -> Self {
        let (packets, sent, answered, heard, failed) = (0, 0, 0, 0, 0);
        let (newest, doubled) = (None, None);
        Self { every, len, packets, sent, answered, heard, failed, newest, doubled }
    }

    fn packet(&mut self, cx: &mut Cx<'_>) -> Verdict {
        self.packets += 1;
        let mut message = self.sent.to_be_bytes().to_vec();
        message.resize(self.len, 0);
        if self.packets.is_multiple_of(self.every) && cx.control_to_peer(&message) {
            self.sent += 1;
            cx.note(SENT, self.sent);
        }
        cx.report_rtt(ms(50), ms(10));
        cx.report_delivered(1, 100, cx.now());
        Verdict::Forward
    }
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(*bytes.first_chunk().unwrap())
}

static SPEC: ModuleSpec = ModuleSpec {
    name: "talks",
    id: 0xF0AB,
    function: "talking",
    tail: 0,
    trains_up: false,
    trains_down: false,
    provides: &[],
    ..checksum::SPEC
};

impl Module for Talks {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        self.packet(cx)
    }

    fn up(&mut self, cx: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        self.packet(cx)
    }

    fn control(&mut self, cx: &mut Cx<'_>, message: &[u8]) -> Result<Vec<u8>, ControlError> {
        assert!(self.newest.replace(number(message)) < Some(number(message)), "in order, once");
        self.heard += 1;
        cx.note(HEARD, self.heard);
        Ok((2 * number(message)).to_be_bytes().to_vec())
    }

    fn answered(&mut self, cx: &mut Cx<'_>, answer: Result<&[u8], &str>) {
        match answer {
            Ok(bytes) => {
                assert!(
                    self.doubled.replace(number(bytes)) < Some(number(bytes)),
                    "in order, once"
                );
                self.answered += 1;
                cx.note(ANSWERED, self.answered);
            }
            Err(_) => {
                self.failed += 1;
                cx.note(FAILED, self.failed);
            }
        }
    }
}

fn talking<const EVERY: u64, const LEN: usize>() -> CoreConfig {
    let mut config = config();
    let mut entries = catalogue().entries().to_vec();
    entries.push(Entry { spec: &SPEC, build: |_, _| Box::new(Talks::new(EVERY, LEN)) });
    let transports = catalogue().transports().to_vec();
    config.catalogue = Catalogue::new(entries).with_transports(transports);
    config
}

fn graph() -> GraphForm {
    GraphForm::line([(SPEC.id, Vec::new())])
}

fn start<const EVERY: u64>(seed: u64, link: &str, units: u64) -> (Lab, Joined) {
    let mut lab = Lab::with(seed, link, talking::<EVERY, 8>(), talking::<EVERY, 8>());
    lab.pattern = pattern(units);
    let mut flow = offer("flow", &[]);
    flow.graph = graph();
    let joined = lab.start(vec![flow]);
    (lab, joined)
}

/// The note of this code at the end of the flow on a node; 0 when there is none.
fn note(lab: &mut Lab, node: NodeId, joined: &Joined, code: u16) -> i64 {
    let id = if node == lab.creator { joined.there } else { joined.here };
    let status = &lab.world.core(node).status(id)[0];
    let notes = &status.modules[0].notes;
    notes.iter().find(|(it, _)| *it == code).map_or(0, |(_, value)| *value)
}

/// What both ends have sent, and what was answered and heard of it.
fn balance(lab: &mut Lab, joined: &Joined) -> [[i64; 3]; 2] {
    let (creator, participant) = (lab.creator, lab.participant);
    [(creator, participant), (participant, creator)].map(|(from, to)| {
        let here = |lab: &mut Lab, code| note(lab, from, joined, code);
        [here(lab, SENT), here(lab, ANSWERED), note(lab, to, joined, HEARD)]
    })
}

fn all_is_heard_and_answered(seed: u64, link: &str) {
    let (mut lab, joined) = start::<50>(seed, link, 5_000);
    lab.run(ms(4_500));
    // Of what was said last the answers are under way.
    let deadline = ms(3_000);
    let is_even = |lab: &mut Lab| {
        balance(lab, &joined)
            .iter()
            .all(|[sent, answered, heard]| sent == answered && sent == heard)
    };
    let creator = lab.creator;
    lab.command(lab.participant, Command::Deactivate(joined.here)).unwrap();
    assert!(lab.wait(deadline, is_even), "seed {seed}: {:?}", balance(&mut lab, &joined));
    for [sent, ..] in balance(&mut lab, &joined) {
        assert!((60..=100).contains(&sent), "seed {seed}: {sent} of about 85");
    }
    assert_eq!(note(&mut lab, creator, &joined, FAILED), 0);
    let (peer, core) = (peer_of(&mut lab, creator), lab.world.core(creator));
    let seen = core.path(peer).unwrap().estimates.seen;
    assert!(seen.delivered_packets > 3_000 && seen.rtt == Some(ms(40)), "{seen:?}");
    assert_eq!(seen.delivered_bytes, 100 * seen.delivered_packets);
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(10_000));
    lab.check_empty();
}

fn cut(lab: &mut Lab, is_cut: bool) {
    let (one, other) = (lab.creator, lab.participant);
    [(one, other), (other, one)].iter().for_each(|&(from, to)| lab.world.cut(from, to, is_cut));
}

fn peer_of(lab: &mut Lab, node: NodeId) -> dacapo_core::PeerId {
    lab.world.core(node).sessions().next().unwrap().2
}

#[test]
fn without_loss_all_is_heard_and_answered_both_ways() {
    all_is_heard_and_answered(1, "delay=20ms");
}

#[test]
fn with_ten_percent_loss_all_is_heard_and_answered_both_ways() {
    (1..=20).for_each(|seed| all_is_heard_and_answered(seed, "delay=20ms,loss=10%"));
}

#[test]
fn a_module_that_floods_the_peer_is_bounded_and_counted() {
    let (mut lab, joined) = start::<1>(1, "delay=1ms", 5_000);
    lab.run(ms(4_000));
    let [[sent, ..], _] = balance(&mut lab, &joined);
    // Four seconds lie in five windows of one second at most.
    assert!((100..=5 * i64::from(MESSAGES_PER_SECOND)).contains(&sent), "{sent} in 4 s");
    let status = &lab.world.core(lab.creator).status(joined.there)[0];
    let seen = status.modules[0].counters;
    assert_eq!(seen.down.packets, seen.refused + sent as u64, "the others were refused");
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(10_000));
    lab.check_empty();
}

#[test]
fn what_is_said_while_the_graph_changes_is_answered_in_its_epoch_or_fails() {
    for seed in 1..=10 {
        let (mut lab, joined) = start::<20>(seed, "delay=20ms,loss=5%", 3_000);
        let changed = |event: &CoreEvent| matches!(event, CoreEvent::Changed { .. });
        for turn in 1..=5 {
            lab.run(ms(300));
            let change = Command::Change { session: joined.there, flow: 0, graph: graph() };
            lab.command(lab.creator, change).unwrap();
            // Each new module begins at 0, and asserts that what it hears does.
            let is_done = |lab: &mut Lab| lab.count(lab.creator, changed) == turn;
            assert!(lab.wait(ms(2_000), is_done), "seed {seed}");
        }
        let (here, there) = lab.ledgers(&joined, 0, ms(5_000));
        assert!(here.closes() && there.closes(), "seed {seed}: {here:?} {there:?}");
        lab.close(lab.participant, joined.here);
        lab.end_of(lab.participant, joined.here, ms(10_000));
        lab.check_empty();
    }
}

#[test]
fn what_is_said_while_contact_is_lost_arrives_when_it_is_back() {
    let (mut lab, joined) = start::<50>(1, "delay=20ms", 20_000);
    let creator = lab.creator;
    lab.run(ms(1_000));
    cut(&mut lab, true);
    lab.run(Duration::from_secs(6));
    cut(&mut lab, false);
    lab.run(Duration::from_secs(4));
    let [[sent, answered, heard], _] = balance(&mut lab, &joined);
    assert!(
        sent - answered <= 8 && heard >= answered && answered > 40,
        "{sent} {answered} {heard}"
    );
    assert_eq!(note(&mut lab, creator, &joined, FAILED), 0);
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(10_000));
    lab.check_empty();
}

#[test]
fn what_many_modules_say_while_contact_is_lost_does_not_end_the_session() {
    let link = "delay=20ms";
    let mut lab = Lab::with(1, link, talking::<1, 4_096>(), talking::<1, 4_096>());
    lab.pattern = pattern(20_000);
    let flow = |number| FlowOffer { graph: graph(), ..offer(&format!("flow{number}"), &[]) };
    let joined = lab.start((0..16).map(flow).collect());
    lab.run(ms(500));
    cut(&mut lab, true);
    lab.run(Duration::from_secs(6));
    cut(&mut lab, false);
    lab.run(Duration::from_secs(4));
    assert_eq!(lab.ends(lab.creator, joined.there) + lab.ends(lab.participant, joined.here), 0);
    let creator = lab.creator;
    let status = lab.world.core(creator).status(joined.there);
    for flow in status {
        let notes = &flow.modules[0].notes;
        let note = |code| notes.iter().find(|(it, _)| *it == code).map_or(0, |(_, value)| *value);
        assert!(note(ANSWERED) > 4, "{}: {notes:?}", flow.offer.name);
    }
    lab.close(lab.participant, joined.here);
    assert_eq!(common::code(&lab.end_of(lab.participant, joined.here, ms(10_000))), None);
    lab.check_empty();
}
