//! A running flow changes to another graph: nothing is repeated, and on a perfect link nothing is
//! lost.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{
    Joined, Lab, catalogue_without, code, config, graph, ms, offer, offer_back, pattern, plain,
};
use dacapo_base::Random;
use dacapo_core::{Code, Command, CoreEvent, SessionId};
use dacapo_netlab::NodeId;
use dacapo_wire::graph::{GraphForm, NodeForm};

const FULL: &[&str] = &["segment", "sequence", "checksum"];

/// Graphs that any of the flows here may have: all carry units of 400 bytes.
const GRAPHS: [&[&str]; 6] =
    [FULL, &["sequence", "checksum"], &["sequence"], &["checksum"], &["segment", "checksum"], &[]];

fn is_ordered(names: &[&str]) -> bool {
    names.contains(&"sequence")
}

fn change(lab: &mut Lab, (node, session): (NodeId, SessionId), flow: usize, names: &[&str]) {
    let now = lab.now();
    lab.world
        .core(node)
        .handle_command(now, Command::Change { session, flow, graph: graph(names) })
        .expect("the change is legal");
}

fn changes(lab: &Lab, node: NodeId) -> usize {
    lab.count(node, |event| matches!(event, CoreEvent::Changed { .. }))
}

fn failure(lab: &Lab, node: NodeId) -> Option<(Code, String)> {
    let failed = lab.find(node, |event| match event {
        CoreEvent::ChangeFailed { error, .. } => Some((error.code, error.text.clone())),
        _ => None,
    });
    failed.map(|(_, error)| error)
}

/// Everything of flow 0 came, once, in order, and the books close.
fn check_whole(lab: &mut Lab, joined: &Joined, count: u64) {
    let (here, there) = lab.ledgers(joined, 0, ms(10_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    assert_eq!((here.sent, here.delivered, here.duplicates), (count, count, 0), "{here:?}");
    assert_eq!((there.sent, there.delivered, there.unknown), (count, count, 0));
    let record = joined.seen[0].as_ref().unwrap().record().clone();
    assert_eq!(record.numbers, (0..count).collect::<Vec<_>>());
    assert_eq!((record.altered, record.misnumbered), (0, 0));
    let now = lab.now();
    let _ = lab.world.core(lab.participant).handle_command(now, Command::Close(joined.here));
    lab.end_of(lab.participant, joined.here, ms(2_000));
    lab.check_empty();
}

#[test]
fn every_graph_follows_every_other_without_a_gap() {
    for from in GRAPHS {
        for to in GRAPHS {
            let mut lab = Lab::new("delay=20ms");
            lab.pattern = pattern(600);
            let joined = lab.start(vec![offer("flow", from)]);
            let creator = (lab.creator, joined.there);
            lab.run(ms(200));
            change(&mut lab, creator, 0, to);
            lab.run(ms(200));
            assert_eq!(changes(&lab, lab.creator), 1, "{from:?} to {to:?}");
            assert_eq!(changes(&lab, lab.participant), 1, "{from:?} to {to:?}");
            let status = &lab.world.core(lab.participant).status(joined.here)[0];
            let names: Vec<&str> = status.modules.iter().map(|it| it.spec.name).collect();
            assert_eq!((status.epoch, names.as_slice()), (1, to));
            change(&mut lab, creator, 0, from);
            check_whole(&mut lab, &joined, 600);
        }
    }
}

#[test]
fn what_waits_to_be_interleaved_leaves_before_a_change_and_at_the_end() {
    let graphs: [&[&str]; 3] =
        [&["interleave"], &["segment", "interleave", "checksum"], &["checksum"]];
    for seed in 0..30 {
        let mut random = Random::from_number(seed);
        let mut lab = Lab::new("delay=20ms");
        lab.pattern = pattern(1_200);
        let joined = lab.start(vec![offer("flow", graphs[seed as usize % 2])]);
        let creator = (lab.creator, joined.there);
        for to in [1, 0, 2, 1] {
            lab.run(ms(180 + random.below(100)));
            change(&mut lab, creator, 0, graphs[to]);
        }
        let (here, there) = lab.ledgers(&joined, 0, ms(10_000));
        assert!(here.closes() && there.closes(), "seed {seed}: {here:?} {there:?}");
        let whole = (1_200, 1_200, 0);
        assert_eq!((here.sent, here.delivered, here.duplicates), whole, "seed {seed}: {here:?}");
        assert_eq!((there.sent, there.delivered, there.unknown), whole, "seed {seed}");
        let mut numbers = joined.seen[0].as_ref().unwrap().record().numbers.clone();
        assert!(!numbers.is_sorted(), "seed {seed}: nothing was interleaved");
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1_200).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_flow_that_loses_nothing_changes_among_such_graphs_and_to_no_other() {
    let kept: [&[&str]; 2] = [&["segment", "arq-sr", "checksum"], &["arq-sr"]];
    let mut lab = Lab::new("delay=20ms,loss=10%");
    lab.pattern = pattern(600);
    let joined = lab.start(vec![offer("flow", kept[0])]);
    let creator = (lab.creator, joined.there);
    lab.run(ms(200));
    let command = |names| Command::Change { session: joined.there, flow: 0, graph: graph(names) };
    let now = lab.now();
    let refused = lab.world.core(lab.creator).handle_command(now, command(FULL)).unwrap_err();
    assert_eq!(refused.code, Code::Unsupported);
    change(&mut lab, creator, 0, kept[1]);
    lab.run(ms(300));
    assert_eq!(changes(&lab, lab.participant), 1);
    check_whole(&mut lab, &joined, 600);
    // And the other way round.
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(600);
    let joined = lab.start(vec![offer("flow", FULL)]);
    let now = lab.now();
    let command = Command::Change { session: joined.there, flow: 0, graph: graph(kept[0]) };
    let refused = lab.world.core(lab.creator).handle_command(now, command).unwrap_err();
    assert_eq!(refused.code, Code::Unsupported);
    check_whole(&mut lab, &joined, 600);
}

#[test]
fn units_that_wait_in_the_splice_are_laid_out_for_the_new_graph() {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(2_000);
    lab.pattern.every = ms(0);
    (lab.pattern.len_min, lab.pattern.len_max) = (16, 9_000);
    let mut flow = offer("slow", FULL);
    (flow.bound_bps, flow.unit_len_max) = (20_000_000, 9_016);
    let joined = lab.start(vec![flow]);
    let creator = (lab.creator, joined.there);
    for names in [&["segment", "checksum"][..], &["segment"], FULL, &["segment", "sequence"], FULL]
    {
        lab.run(ms(300));
        change(&mut lab, creator, 0, names);
    }
    let (here, _) = lab.ledgers(&joined, 0, ms(10_000));
    assert_eq!((here.sent, here.delivered, here.lost, here.duplicates), (2_000, 2_000, 0, 0));
    let record = joined.seen[0].as_ref().unwrap().record().clone();
    assert_eq!((record.altered, record.misnumbered), (0, 0));
    assert_eq!(changes(&lab, lab.participant), 5);
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(1_000));
    lab.check_empty();
}

#[test]
fn a_receiver_without_the_module_refuses_and_the_flow_goes_on() {
    let mut poor = config();
    poor.catalogue = catalogue_without("checksum");
    let mut lab = Lab::with(1, "delay=20ms", config(), poor);
    let joined = lab.start(vec![offer("flow", &["sequence"])]);
    let creator = (lab.creator, joined.there);
    lab.run(ms(100));
    change(&mut lab, creator, 0, FULL);
    lab.run(ms(200));
    let (error, text) = failure(&lab, lab.creator).expect("it failed");
    assert_eq!(error, Code::UnknownModule);
    assert!(text.contains("0x0003"), "{text}");
    // Another one may follow, under a number of its own.
    change(&mut lab, creator, 0, &["segment", "sequence"]);
    lab.run(ms(200));
    assert_eq!(lab.world.core(lab.creator).status(joined.there)[0].epoch, 2);
    assert_eq!(changes(&lab, lab.participant), 1);
    check_whole(&mut lab, &joined, 1_000);
}

#[test]
fn what_cannot_be_changed_to_is_refused_at_once() {
    let mut lab = Lab::new("delay=20ms");
    let mut flows = plain();
    flows[0].unit_len_max = 5_000;
    flows.push(offer_back("back", &[]));
    let joined = lab.start(flows);
    let now = lab.now();
    let core = lab.world.core(lab.creator);
    let mut refused = |flow, names: &[&str]| {
        core.handle_command(
            now,
            Command::Change { session: joined.there, flow, graph: graph(names) },
        )
        .map(drop)
        .map_err(|error| error.code)
    };
    assert_eq!(refused(0, &["checksum", "sequence"]), Err(Code::IllegalGraph), "wrong order");
    assert_eq!(refused(0, &["sequence"]), Err(Code::IllegalGraph), "units are too large");
    assert_eq!(refused(1, &["sequence"]), Err(Code::NoSuchThing), "this end receives it");
    assert_eq!(refused(2, FULL), Err(Code::NoSuchThing), "no such flow");
    assert_eq!(refused(0, FULL), Ok(()));
    assert_eq!(refused(0, FULL), Err(Code::NoSuchThing), "one is going on");
    let mut unknown = graph(FULL);
    unknown.nodes[0].module = 0xF00D;
    lab.run(ms(300));
    let now = lab.now();
    let unknown = lab
        .world
        .core(lab.creator)
        .handle_command(now, Command::Change { session: joined.there, flow: 0, graph: unknown });
    assert_eq!(unknown.unwrap_err().code, Code::UnknownModule);
    check_whole(&mut lab, &joined, 1_000);
}

#[test]
fn a_change_may_begin_at_any_moment_around_the_end_of_the_flow() {
    for before in (0..=60).step_by(3) {
        let mut lab = Lab::new("delay=10ms");
        lab.pattern = pattern(300);
        let joined = lab.start(plain());
        lab.wait(ms(1_000), |lab| {
            lab.world.core(lab.creator).status(joined.there)[0].sent >= 300 - before
        });
        let now = lab.now();
        let begun = lab.world.core(lab.creator).handle_command(
            now,
            Command::Change { session: joined.there, flow: 0, graph: graph(&["sequence"]) },
        );
        if let Err(error) = &begun {
            assert_eq!(error.code, Code::NoSuchThing, "the flow has ended: {error}");
        }
        let (here, there) = lab.ledgers(&joined, 0, ms(2_000));
        assert_eq!((here.delivered, there.delivered), (300, 300), "{before} before the end");
        lab.run(ms(6_000));
        let made = changes(&lab, lab.creator);
        let failed = lab.count(lab.creator, |it| matches!(it, CoreEvent::ChangeFailed { .. }));
        assert_eq!(
            made + failed,
            usize::from(begun.is_ok()),
            "{before}: told once what became of it"
        );
        let after = lab.now();
        let late = lab.world.core(lab.creator).handle_command(
            after,
            Command::Change { session: joined.there, flow: 0, graph: graph(FULL) },
        );
        assert_eq!(late.unwrap_err().code, Code::NoSuchThing, "the flow has ended");
        check_whole(&mut lab, &joined, 300);
    }
}

#[test]
fn a_change_at_the_same_moment_in_both_directions_is_made_in_both_again_and_again() {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(2_000);
    let joined = lab.start(vec![offer("there", FULL), offer_back("back", FULL)]);
    let ends = [(lab.creator, joined.there, 0), (lab.participant, joined.here, 1)];
    for graph in GRAPHS.iter().skip(1).take(4) {
        lab.run(ms(200));
        for (node, session, flow) in ends {
            change(&mut lab, (node, session), flow, graph);
        }
    }
    lab.run(ms(300));
    for node in [lab.creator, lab.participant] {
        assert_eq!(failure(&lab, node), None, "{node:?}");
        assert_eq!(changes(&lab, node), 8, "{node:?}: four of each flow");
    }
    let back = lab.sinks.lock().unwrap()[0].clone();
    check_whole(&mut lab, &joined, 2_000);
    assert_eq!(back.record().numbers, (0..2_000).collect::<Vec<_>>());
}

#[test]
fn a_peer_that_is_killed_during_a_change_leaves_nothing() {
    for killed in [0, 1] {
        for after in [0, 5, 15, 25, 45, 65] {
            let mut lab = Lab::new("delay=20ms");
            lab.pattern = pattern(10_000);
            lab.give_up_after = ms(0);
            let joined = lab.start(plain());
            let creator = (lab.creator, joined.there);
            lab.run(ms(200));
            change(&mut lab, creator, 0, &["checksum"]);
            lab.run(ms(after));
            let ends = [creator, (lab.participant, joined.here)];
            lab.world.kill(ends[killed].0);
            let (node, session) = ends[1 - killed];
            let ended = lab.end_of(node, session, ms(3_000));
            assert_eq!(code(&ended), Some(Code::ContactLost));
            let ledger = lab.ledger(node, session, 0).expect("it is accounted for");
            assert!(ledger.closes(), "{ledger:?}");
            lab.run(ms(1_000));
            assert_eq!(lab.world.core(node).pool().live_views(), 0, "{after} ms after");
        }
    }
}

#[test]
fn a_session_closed_during_a_change_accounts_for_everything() {
    for after in (0..100).step_by(4) {
        for closer in [0, 1] {
            let mut lab = Lab::new("delay=20ms");
            lab.pattern = pattern(10_000);
            let joined = lab.start(plain());
            let creator = (lab.creator, joined.there);
            lab.run(ms(100));
            change(&mut lab, creator, 0, &["checksum"]);
            lab.run(ms(after));
            let ends = [creator, (lab.participant, joined.here)];
            lab.close(ends[closer].0, ends[closer].1);
            let (here, there) = lab.ledgers(&joined, 0, ms(2_000));
            assert!(here.closes() && there.closes(), "{after} ms after: {here:?} {there:?}");
            assert_eq!((here.unknown, here.lost, here.duplicates), (0, 0, 0), "{after} ms after");
            assert_eq!(here.delivered, there.sent);
            assert_eq!(code(&lab.end_of(lab.creator, joined.there, ms(2_000))), None);
            lab.check_empty();
        }
    }
}

#[test]
fn a_change_whose_answer_does_not_come_is_taken_back_after_five_seconds() {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(10_000);
    let joined = lab.start(plain());
    let creator = (lab.creator, joined.there);
    lab.run(ms(100));
    lab.world.block(lab.participant, Some(dacapo_transport::TrafficClass::Control));
    let since = lab.now();
    change(&mut lab, creator, 0, &["checksum"]);
    let (when, error) = lab.expect(lab.creator, ms(6_000), |event| match event {
        CoreEvent::ChangeFailed { error, .. } => Some(error.clone()),
        _ => None,
    });
    assert_eq!(error.code, Code::NoAnswer);
    assert!((ms(4_999)..ms(5_010)).contains(&when.since(since)), "{when:?}");
    lab.world.block(lab.participant, None);
    lab.run(ms(1_000));
    assert_eq!(lab.world.core(lab.creator).status(joined.there)[0].epoch, 0);
    change(&mut lab, creator, 0, &["checksum"]);
    lab.run(ms(500));
    let status = &lab.world.core(lab.creator).status(joined.there)[0];
    assert_eq!(status.epoch, 2, "a number is not used again");
    check_whole(&mut lab, &joined, 10_000);
}

fn bad_link(random: &mut Random) -> String {
    format!(
        "loss={}%,delay={}ms,jitter={}ms,dup={}%,reorder={}%",
        random.below(12),
        6 + random.below(40),
        random.below(6),
        random.below(8),
        random.below(8),
    )
}

#[test]
fn a_hundred_seeds_of_different_graphs_over_bad_links_repeat_nothing_and_close() {
    let mut made = 0;
    for seed in 0..100 {
        let mut random = Random::from_number(seed ^ 0xD1FF);
        let mut lab = Lab::with(seed, &bad_link(&mut random), config(), config());
        lab.pattern = pattern(900);
        let mut all_ordered = true;
        let mut pick = |random: &mut Random| {
            // Every third seed stays among the graphs that keep order.
            let most = if seed % 3 == 0 { 3 } else { GRAPHS.len() as u64 };
            let names = GRAPHS[random.below(most) as usize];
            all_ordered &= is_ordered(names);
            names
        };
        let joined = lab.start(vec![offer("flow", pick(&mut random))]);
        for _ in 0..4 {
            lab.run(ms(50 + random.below(250)));
            let now = lab.now();
            let names = graph(pick(&mut random));
            // While one goes on the next is refused.
            let _ = lab.world.core(lab.creator).handle_command(
                now,
                Command::Change { session: joined.there, flow: 0, graph: names },
            );
        }
        let (here, there) = lab.ledgers(&joined, 0, ms(20_000));
        assert!(here.closes() && there.closes(), "seed {seed}: {here:?} {there:?}");
        assert_eq!((here.sent, here.unknown, there.unknown), (900, 0, 0), "seed {seed}");
        assert_eq!(here.delivered, there.delivered, "seed {seed}");
        let record = joined.seen[0].as_ref().unwrap().record().clone();
        assert_eq!((record.altered, record.misnumbered), (0, 0), "seed {seed}");
        let mut once = record.numbers.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), record.numbers.len(), "seed {seed}: a unit came twice");
        if all_ordered {
            assert!(record.numbers.is_sorted(), "seed {seed}: out of order");
        }
        let lost = record.lost.iter().filter(|number| once.binary_search(number).is_ok()).count();
        assert_eq!(lost, 0, "seed {seed}: lost and delivered");
        made += changes(&lab, lab.participant);
        lab.close(lab.participant, joined.here);
        lab.end_of(lab.participant, joined.here, ms(10_000));
        lab.run(ms(1_000));
        assert_eq!(lab.views(), 0, "seed {seed}");
    }
    assert!(made > 200, "{made} changes");
}

#[test]
fn a_graph_that_cannot_be_written_is_refused_and_the_session_goes_on() {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(600);
    let joined = lab.start(plain());
    let below_itself = NodeForm { parent: 0, module: 2, params: Vec::new() };
    let unordered = GraphForm::line([(2, vec![(1, 7), (0, 7)])]);
    for graph in [GraphForm { nodes: vec![below_itself] }, unordered] {
        let change = Command::Change { session: joined.there, flow: 0, graph };
        let refused = lab.command(lab.creator, change).unwrap_err();
        assert!(refused.code == Code::IllegalGraph && !refused.text.is_empty(), "{refused}");
    }
    check_whole(&mut lab, &joined, 600);
}
