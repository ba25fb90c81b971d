//! Cases of changes: epochs, labels and transcripts of the side that proposes, and of the side that
//! is asked.

use crate::Case;
use crate::Outcome::{GoesOn, Session};
use crate::arena::{Arena, As, At, extend};
use crate::common::{graph, offer};
use crate::{dialer, listener};
use dacapo_core::{Code, Command, CoreEvent};
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::change::{Abort, Cannot, Done, Mode, Prepare, Ready, Request, Switched};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::message::Message;
use dacapo_wire::session::{End, FlowOffer};

pub fn cases() -> Vec<Case> {
    let parts = [prepares(), refusals(), loosened(), bases(), storms(), answers(), crossing()];
    parts.into_iter().flatten().collect()
}

/// A proposal for flow 0, with a transcript that fits.
fn propose(arena: &mut Arena, epoch: u64, change: impl FnOnce(&mut Prepare)) -> Prepare {
    let flow = arena.flow(false) as u16;
    let graph = graph(&["sequence"]);
    let mut prepare = Prepare { flow, epoch, label: 48, graph, ..Prepare::default() };
    change(&mut prepare);
    prepare.transcript = [0; 32];
    arena.transcript = extend(arena.transcript, &prepare.clone().into());
    prepare.transcript = arena.transcript;
    arena.say(prepare.clone());
    prepare
}

/// What a proposal is answered with: the label, or the code of a refusal.
fn answered(arena: &mut Arena) -> Result<u32, u16> {
    arena.run(30);
    match arena.take() {
        Some(Message::Ready(ready)) => Ok(ready.label),
        Some(Message::Cannot(cannot)) => Err(cannot.code),
        other => panic!("neither READY nor CANNOT but {other:?}"),
    }
}

fn expect_cannot(arena: &mut Arena, code: Code) {
    assert_eq!(answered(arena), Err(code as u16));
}

fn prepares() -> Vec<Case> {
    let goes_on = |name, script| dialer(name, At::Active, GoesOn, script);
    vec![
        goes_on("PREPARE of the epoch that runs", |arena| {
            propose(arena, 0, |_| {});
            expect_cannot(arena, Code::TooMany);
        }),
        goes_on("PREPARE of one epoch twice", |arena| {
            propose(arena, 1, |_| {});
            assert!(answered(arena).is_ok());
            propose(arena, 1, |_| {});
            expect_cannot(arena, Code::TooMany);
        }),
        goes_on("PREPARE of epochs that go back", |arena| {
            propose(arena, 9, |_| {});
            assert!(answered(arena).is_ok());
            propose(arena, 8, |_| {});
            expect_cannot(arena, Code::TooMany);
        }),
        goes_on("PREPARE of the last epoch there can be", |arena| {
            propose(arena, u64::MAX, |_| {});
            assert!(answered(arena).is_ok());
            propose(arena, 0, |_| {});
            expect_cannot(arena, Code::TooMany);
        }),
        goes_on("PREPARE of four epochs at once", |arena| {
            (1..=4).for_each(|epoch| drop(propose(arena, epoch, |_| {})));
            arena.run(30);
            let answers = arena.take_all();
            let ready = answers.iter().filter(|it| matches!(it, Message::Ready(_))).count();
            assert_eq!((ready, answers.len()), (2, 4), "two beside the one that runs");
        }),
        goes_on("PREPARE of a flow that the core sends", |arena| {
            propose(arena, 1, |prepare| prepare.flow = 1);
            expect_cannot(arena, Code::Violation);
        }),
        goes_on("PREPARE of a flow that is none", |arena| {
            propose(arena, 1, |prepare| prepare.flow = 0xFFFF);
            expect_cannot(arena, Code::NoSuchThing);
        }),
        goes_on("PREPARE that forgets what was agreed", |arena| {
            arena.transcript = [3; 32];
            propose(arena, 1, |_| {});
            expect_cannot(arena, Code::Violation);
        }),
        goes_on("PREPARE after END", |arena| {
            arena.say(End::default());
            propose(arena, 1, |_| {});
            arena.run(30);
            let all = arena.take_all();
            assert!(all.iter().any(|it| matches!(it, Message::Cannot(_))), "{all:?}");
        }),
    ]
}

fn refusals() -> Vec<Case> {
    let goes_on = |name, script| dialer(name, At::Active, GoesOn, script);
    vec![
        goes_on("PREPARE of 32 modules that nobody has", |arena| {
            let bomb = GraphForm::line((0..32).map(|at| (0xF000 + at, vec![(1, u64::MAX)])));
            propose(arena, 1, |prepare| prepare.graph = bomb);
            expect_cannot(arena, Code::UnknownModule);
        }),
        goes_on("PREPARE of a graph that is not legal", |arena| {
            propose(arena, 1, |prepare| prepare.graph = graph(&["checksum", "segment"]));
            expect_cannot(arena, Code::IllegalGraph);
        }),
        goes_on("PREPARE of a graph with branches", |arena| {
            propose(arena, 1, |prepare| {
                prepare.graph = graph(&["segment", "sequence", "checksum"]);
                prepare.graph.nodes[2].parent = 0;
            });
            expect_cannot(arena, Code::Unsupported);
        }),
        goes_on("PREPARE by break", |arena| {
            propose(arena, 1, |prepare| prepare.mode = Mode::Break);
            expect_cannot(arena, Code::Unsupported);
        }),
        goes_on("PREPARE of another transport", |arena| {
            propose(arena, 1, |prepare| prepare.transport = Some(3));
            expect_cannot(arena, Code::Unsupported);
        }),
        goes_on("PREPARE with a parameter out of its range", |arena| {
            propose(arena, 1, |prepare| prepare.graph.nodes[0].params = vec![(0, u64::MAX)]);
            expect_cannot(arena, Code::IllegalGraph);
        }),
        dialer("PREPARE with 257 bytes of hints", At::Active, Session(Code::Malformed), |arena| {
            let bytes = crate::wire::bytes_of(Prepare { graph: graph(&[]), ..Prepare::default() });
            let hints = crate::wire::field(37, &[]);
            let at = bytes.windows(4).position(|it| it == hints).unwrap();
            let body = [&bytes[6..at], &crate::wire::field(37, &[0; 257])].concat();
            arena.push(&crate::wire::record(0x20, &body));
        }),
        dialer("PREPARE in a mode that is none", At::Active, Session(Code::Malformed), |arena| {
            let mut bytes = crate::wire::bytes_of(Prepare::default());
            let at = bytes.windows(5).position(|it| it == [0, 32, 0, 1, 0]).unwrap();
            bytes[at + 4] = 2;
            arena.push(&bytes);
        }),
    ]
}

/// A flow of which this is asked, by a graph that keeps it, and a proposal of another graph.
fn loosen(arena: &mut Arena, key: u16, before: &[&str], after: &[&str]) {
    let asked = AttributeForm { key, min: Some(1), ..AttributeForm::default() };
    let mut flow = FlowOffer { attributes: vec![asked], ..offer("kept", before) };
    flow.datagram_len = 1_452;
    arena.begin(At::Active, "raw", vec![flow]);
    propose(arena, 1, |prepare| prepare.graph = graph(after));
}

fn loosened() -> Vec<Case> {
    let goes_on = |name, script| listener(name, At::Greeted, GoesOn, script);
    vec![
        goes_on("PREPARE that gives up the order that was agreed", |arena| {
            loosen(arena, key::ORDER, &["sequence", "checksum"], &["checksum"]);
            expect_refused(arena);
        }),
        goes_on("PREPARE that lets units come twice", |arena| {
            loosen(arena, key::DUPLICATES, &["sequence"], &[]);
            expect_refused(arena);
        }),
        goes_on("PREPARE that notices no changes any more", |arena| {
            loosen(arena, key::INTEGRITY, &["sequence", "checksum"], &["sequence"]);
            expect_refused(arena);
        }),
        goes_on("PREPARE that gives up what nobody has asked for", |arena| {
            loosen(arena, key::ORDER, &["sequence", "checksum"], &["sequence"]);
            assert!(answered(arena).is_ok());
        }),
        goes_on("PREPARE that gives up what the first graph did not keep", |arena| {
            loosen(arena, key::INTEGRITY, &["sequence"], &[]);
            assert!(answered(arena).is_ok());
        }),
    ]
}

/// The proposal is refused and counted.
fn expect_refused(arena: &mut Arena) {
    expect_cannot(arena, Code::Refused);
    let core = arena.core;
    assert_eq!(arena.lab.world.core(core).counters().changes_refused, 1);
}

/// SWITCHED for the raw peer's flow.
fn switched(arena: &mut Arena, epoch: u64, base: u64) {
    let flow = arena.flow(false) as u16;
    arena.say(Switched { flow, epoch, base });
    arena.run(30);
}

/// The flow ends after so many units and its account closes.
fn expect_end_of_flow(arena: &mut Arena, units: u64) {
    let flow = arena.flow(false);
    arena.say(End { flow: flow as u16, units, ..End::default() });
    arena.run(500);
    let ledger = arena.ledger(flow).expect("the flow is accounted for");
    assert!(ledger.closes() && ledger.sent == units, "{ledger:?}");
}

fn bases() -> Vec<Case> {
    let goes_on = |name, script| dialer(name, At::Active, GoesOn, script);
    vec![
        goes_on("SWITCHED without PREPARE", |arena| {
            switched(arena, 1, 5);
            switched(arena, 0, 5);
            expect_end_of_flow(arena, 0);
        }),
        goes_on("SWITCHED twice with different bases", |arena| {
            propose(arena, 1, |_| {});
            assert!(answered(arena).is_ok());
            switched(arena, 1, 5);
            switched(arena, 1, 500);
            expect_end_of_flow(arena, 5);
        }),
        goes_on("SWITCHED far ahead of everything", |arena| {
            propose(arena, 1, |_| {});
            assert!(answered(arena).is_ok());
            switched(arena, 1, 1 << 55);
            arena.run(500);
            expect_end_of_flow(arena, 1 << 55);
        }),
        goes_on("SWITCHED beyond all numbers", |arena| {
            propose(arena, 1, |_| {});
            assert!(answered(arena).is_ok());
            switched(arena, 1, u64::MAX);
            switched(arena, 1, (1 << 56) + 1);
            expect_end_of_flow(arena, 3);
        }),
        goes_on("SWITCHED of two epochs in the wrong order", |arena| {
            propose(arena, 1, |_| {});
            propose(arena, 2, |_| {});
            arena.run(30);
            switched(arena, 2, 10);
            switched(arena, 1, 20);
            arena.run(500);
            expect_end_of_flow(arena, 10);
        }),
        goes_on("SWITCHED after ABORT", |arena| {
            propose(arena, 1, |_| {});
            assert!(answered(arena).is_ok());
            arena.say(Abort { flow: 0, epoch: 1 });
            switched(arena, 1, 7);
            expect_end_of_flow(arena, 0);
        }),
        goes_on("ABORT after SWITCHED", |arena| {
            propose(arena, 1, |_| {});
            assert!(answered(arena).is_ok());
            switched(arena, 1, 0);
            arena.say(Abort { flow: 0, epoch: 1 });
            expect_end_of_flow(arena, 0);
        }),
    ]
}

fn storms() -> Vec<Case> {
    let goes_on = |name, script| dialer(name, At::Active, GoesOn, script);
    vec![
        goes_on("5,000 times ABORT of nothing", |arena| {
            (0..5_000).for_each(|epoch| arena.say(Abort { flow: 0, epoch }));
            arena.run(800);
            assert_eq!(arena.take_all(), [], "nothing is answered");
        }),
        goes_on("1,000 times PREPARE and ABORT", |arena| {
            for epoch in 1..=1_000 {
                propose(arena, epoch, |_| {});
                arena.say(Abort { flow: 0, epoch });
            }
            arena.run(1_500);
            let answers = arena.take_all();
            assert_eq!(answers.len(), 1_000, "each PREPARE is answered once");
            assert!(answers.iter().all(|it| matches!(it, Message::Ready(_))));
            expect_end_of_flow(arena, 0);
        }),
        goes_on("2,000 times REQUEST", |arena| {
            let request = Request { flow: 1, graph: graph(&[]), text: "please".into() };
            (0..2_000).for_each(|_| arena.say(request.clone()));
            arena.run(800);
            let changed = |event: &CoreEvent| matches!(event, CoreEvent::Changed { .. });
            assert_eq!((arena.take_all().len(), arena.count(changed)), (0, 0));
        }),
        goes_on("SWITCHED, DONE, READY and CANNOT of flows that are none", |arena| {
            for flow in [3, 64, 0xFFFF] {
                arena.say(Switched { flow, epoch: 1, base: 1 });
                arena.say(Done { flow, epoch: 0, delivered: 1, lost: 1 });
                arena.say(Ready { flow, epoch: 1, label: 1, position: Some(1) });
                arena.say(Cannot { flow, epoch: 1, code: 1, text: String::new() });
                arena.say(Abort { flow, epoch: 1 });
            }
            arena.run(30);
            assert_eq!(arena.take_all(), []);
        }),
        goes_on("READY, DONE and CANNOT without PREPARE", |arena| {
            for epoch in [0, 1, u64::MAX] {
                arena.say(Ready { flow: 1, epoch, label: 16, position: None });
                arena.say(Done { flow: 1, epoch, delivered: u64::MAX, lost: u64::MAX });
                arena.say(Cannot { flow: 1, epoch, code: 301, text: "no".into() });
            }
            arena.run(30);
            let told = |event: &CoreEvent| {
                matches!(event, CoreEvent::Changed { .. } | CoreEvent::ChangeFailed { .. })
            };
            assert_eq!((arena.take_all().len(), arena.count(told)), (0, 0));
        }),
    ]
}

/// The core changes the flow that it sends; its proposal.
fn let_core_change(arena: &mut Arena) -> Prepare {
    if arena.role == As::Dialer {
        arena.open_path();
    }
    let (now, session, flow) = (arena.lab.now(), arena.session.unwrap(), arena.flow(true));
    let core = arena.lab.world.core(arena.core);
    core.handle_command(now, Command::Change { session, flow, graph: graph(&["sequence"]) })
        .expect("nothing changes yet");
    arena.run(20);
    match arena.take() {
        Some(Message::Prepare(prepare)) => prepare,
        other => panic!("no PREPARE but {other:?}"),
    }
}

fn ready(prepare: &Prepare, epoch: u64, label: u32) -> Ready {
    Ready { flow: prepare.flow, epoch, label, position: None }
}

/// The epoch in which the core's flow runs.
fn epoch_of(arena: &mut Arena) -> u64 {
    let (session, flow) = (arena.session.unwrap(), arena.flow(true));
    arena.lab.world.core(arena.core).status(session)[flow].epoch
}

fn answers() -> Vec<Case> {
    vec![
        dialer("READY for another epoch", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            for epoch in [0, prepare.epoch + 1, u64::MAX] {
                arena.say(ready(&prepare, epoch, 16));
            }
            arena.run(30);
            assert_eq!((arena.take_all().len(), epoch_of(arena)), (0, 0));
            arena.say(ready(&prepare, prepare.epoch, 16));
            arena.run(30);
            assert!(matches!(arena.take(), Some(Message::Switched(_))));
        }),
        dialer("READY twice", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            (0..50).for_each(|label| arena.say(ready(&prepare, prepare.epoch, 16 * label)));
            arena.run(30);
            let told = arena.take_all();
            assert_eq!(told.len(), 1, "{told:?}");
        }),
        dialer("READY with a position", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            let position = Some(u64::MAX);
            arena.say(Ready { position, ..ready(&prepare, prepare.epoch, 16) });
            arena.run(30);
            assert!(matches!(arena.take(), Some(Message::Switched(it)) if it.base < 1_000));
        }),
        dialer("CANNOT after READY", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            arena.say(ready(&prepare, prepare.epoch, 16));
            let (flow, epoch) = (prepare.flow, prepare.epoch);
            arena.say(Cannot { flow, epoch, code: 301, text: String::new() });
            arena.run(30);
            let failed = |event: &CoreEvent| matches!(event, CoreEvent::ChangeFailed { .. });
            assert_eq!((arena.count(failed), epoch_of(arena)), (0, 1));
        }),
        dialer("DONE of the epoch that runs", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            arena.say(ready(&prepare, prepare.epoch, 16));
            for epoch in [prepare.epoch, prepare.epoch + 1, u64::MAX] {
                arena.say(Done { flow: prepare.flow, epoch, delivered: 0, lost: 0 });
            }
            arena.run(30);
            let changed = |event: &CoreEvent| matches!(event, CoreEvent::Changed { .. });
            assert_eq!(arena.count(changed), 0);
            arena.say(Done { flow: prepare.flow, epoch: 0, delivered: u64::MAX, lost: u64::MAX });
            arena.say(Done { flow: prepare.flow, epoch: 0, delivered: 1, lost: 1 });
            arena.run(30);
            assert_eq!(arena.count(changed), 1, "once");
        }),
        dialer("DONE before READY", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            arena.say(Done { flow: prepare.flow, epoch: 0, delivered: 0, lost: 0 });
            arena.say(Done { flow: prepare.flow, epoch: 1, delivered: 0, lost: 0 });
            arena.run(30);
            assert_eq!(epoch_of(arena), 0);
        }),
        dialer("a PREPARE of the core that nobody answers", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            arena.run(5_100);
            let aborts = arena.take_all();
            assert!(matches!(aborts[..], [Message::Abort(_)]), "{aborts:?}");
            arena.say(ready(&prepare, prepare.epoch, 16));
            arena.run(30);
            assert_eq!((arena.take(), epoch_of(arena)), (None, 0));
        }),
        dialer("DONE never comes", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            arena.say(ready(&prepare, prepare.epoch, 16));
            arena.run(15_200);
            let changed = |event: &CoreEvent| matches!(event, CoreEvent::Changed { .. });
            assert_eq!(arena.count(changed), 1, "the old epoch is given up");
        }),
        listener("READY of a listener for another epoch", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            arena.say(ready(&prepare, 77, 16));
            arena.run(30);
            assert_eq!((arena.take(), epoch_of(arena)), (None, 0));
        }),
    ]
}

fn crossing() -> Vec<Case> {
    let both = |arena: &mut Arena| {
        let prepare = let_core_change(arena);
        propose(arena, 1, |_| {});
        assert!(answered(arena).is_ok());
        arena.say(ready(&prepare, prepare.epoch, 16));
        switched(arena, 1, 0);
        let told = arena.take_all();
        let has = |pick: fn(&Message) -> bool| told.iter().filter(|it| pick(it)).count();
        assert_eq!(has(|it| matches!(it, Message::Switched(_))), 1, "{told:?}");
        assert_eq!(has(|it| matches!(it, Message::Done(_))), 1, "{told:?}");
        assert_eq!(epoch_of(arena), 1);
    };
    vec![
        dialer("changes of both directions that cross", At::Active, GoesOn, both),
        listener("changes of both directions that cross, at a listener", At::Active, GoesOn, both),
        dialer("PREPARE of the core answered with PREPARE", At::Active, GoesOn, |arena| {
            let prepare = let_core_change(arena);
            arena.say(prepare.clone());
            arena.run(30);
            assert!(matches!(arena.take(), Some(Message::Cannot(_))));
            assert_eq!(epoch_of(arena), 0);
        }),
    ]
}
