//! A flow that is changed while it runs: what each message of the exchange does.

use super::*;
use crate::labels::Target;
use crate::session::setup::extend;
use dacapo_wire::change::{Abort, Cannot, Done, Ready, Switched};
use dacapo_wire::graph::GraphForm;

impl Rig {
    /// Asks for another graph, equal to the one before.
    fn change(&mut self, index: usize) -> Result<(), Code> {
        self.with(|it, cx, out| {
            it.on_flows(|flows| flows.change(cx, index, GraphForm::default(), out))
        })
        .map_err(|error| error.code)
    }

    /// The proposal of an epoch of the flow that this end receives, as a creator makes it.
    fn proposal(&self, epoch: u64) -> Prepare {
        let mut prepare = Prepare {
            flow: 0,
            epoch,
            label: 99,
            mode: Mode::Make,
            graph: GraphForm::default(),
            transcript: [0; 32],
            hints: Vec::new(),
            transport: None,
        };
        let before = self.session.flows()[0].transcript;
        prepare.transcript = extend(before, &Message::Prepare(prepare.clone()));
        prepare
    }

    /// The label with which a proposal was answered.
    fn ready(&mut self, prepare: Prepare) -> u32 {
        self.with(|it, cx, out| it.handle_message(cx, Message::Prepare(prepare), out));
        match self.effects().pop() {
            Some(Effect::Send(_, Message::Ready(ready))) => ready.label,
            Some(other) => panic!("{}", words(other)),
            None => panic!("nothing was said"),
        }
    }
}

#[test]
fn who_sends_proposes_switches_and_is_told_when_the_old_graph_is_gone() {
    let mut rig = Rig::active();
    let before = rig.session.flows()[1].transcript;
    assert_eq!(rig.change(1), Ok(()));
    let Some(Effect::Send(_, Message::Prepare(prepare))) = rig.out.pop() else { panic!() };
    assert_eq!((prepare.flow, prepare.epoch, prepare.mode), (1, 1, Mode::Make));
    let bare = Prepare { transcript: [0; 32], ..prepare.clone() };
    assert_eq!(prepare.transcript, extend(before, &Message::Prepare(bare)));
    assert_eq!(rig.session.flows()[1].transcript, prepare.transcript);
    let target = Target { session: 5, flow: 1, epoch: 1 };
    assert_eq!(rig.shared.labels.target(prepare.label), Some(target));
    assert_eq!(rig.change(1), Err(Code::NoSuchThing), "one is going on");
    let ready = |flow, epoch| Message::Ready(Ready { flow, epoch, label: 88, position: None });
    assert!(rig.take(ready(1, 7)).is_empty(), "of another epoch");
    assert!(rig.take(ready(0, 1)).is_empty() && rig.take(ready(9, 1)).is_empty());
    assert_eq!(rig.take(ready(1, 1)), ["SWITCHED"]);
    assert_eq!(rig.session.flows()[1].end.epoch(), Some(1));
    let done = Done { flow: 1, epoch: 0, delivered: 0, lost: 0 };
    let said = rig.take(Message::Done(done));
    assert!(said.iter().any(|it| it.contains("Changed") && it.contains("epoch: 1")), "{said:?}");
    assert_eq!(rig.change(1), Ok(()));
}

#[test]
fn a_change_that_the_receiver_cannot_make_leaves_the_flow_as_it_is() {
    let mut rig = Rig::active();
    rig.change(1).unwrap();
    rig.said();
    let code = Code::IllegalGraph as u16;
    let cannot = Cannot { flow: 1, epoch: 1, code, text: "no".into() };
    let said = rig.take(Message::Cannot(cannot));
    assert!(said.iter().any(|it| it.contains("ChangeFailed")), "{said:?}");
    assert_eq!(rig.session.flows()[1].end.epoch(), Some(0));
    assert_eq!(rig.change(1), Ok(()), "another may be tried");
}

#[test]
fn only_what_this_end_sends_alone_is_changed_from_here() {
    let mut rig = Rig::active();
    assert_eq!(rig.change(0), Err(Code::NoSuchThing), "it receives that");
    assert_eq!(rig.change(9), Err(Code::NoSuchThing), "there is no such");
    rig.session.on_flow(1, |flow| {
        let fed = crate::fanout::Fed::default();
        let member = crate::fanout::FanOutMember::new(crate::ids::FanOutId(3), 1, fed);
        flow.end = crate::session::FlowEnd::Member(member);
    });
    assert_eq!(rig.change(1), Err(Code::Unsupported));
    assert!(rig.said().is_empty());
}

#[test]
fn who_receives_builds_what_is_proposed_beside_what_runs() {
    let mut rig = Rig::active();
    let prepare = rig.proposal(1);
    let transcript = prepare.transcript;
    let label = rig.ready(prepare);
    assert_eq!(rig.shared.labels.target(label), Some(Target { session: 5, flow: 0, epoch: 1 }));
    assert_eq!(rig.session.flows()[0].transcript, transcript);
    assert_eq!((rig.session.flows()[0].end.epoch(), rig.shared.changes_refused), (Some(1), 0));
    let switched = Switched { flow: 0, epoch: 1, base: 0 };
    rig.take(Message::Switched(switched));
    let old = rig.session.flows()[0].label_rx;
    let said = rig.take(Message::End(End { flow: 0, epoch: 1, ..End::default() }));
    assert!(said.contains(&"REPORT".to_owned()), "{said:?}");
    assert!(old != label);
}

#[test]
fn an_epoch_that_is_aborted_gives_its_label_back() {
    let mut rig = Rig::active();
    let prepare = rig.proposal(1);
    let label = rig.ready(prepare);
    assert!(rig.take(Message::Abort(Abort { flow: 0, epoch: 1 })).is_empty());
    assert_eq!(rig.shared.labels.target(label), None);
    assert_eq!(rig.session.flows()[0].end.epoch(), Some(0));
}

type Spoil = fn(&mut Prepare);

#[test]
fn what_cannot_be_made_is_refused_with_the_reason_and_counted() {
    let cases: [(Spoil, Code); 4] = [
        (|it| it.mode = Mode::Break, Code::Unsupported),
        (|it| it.transport = Some(DATAGRAMS.id), Code::Unsupported),
        (|it| it.epoch = 0, Code::TooMany),
        (|it| it.flow = 7, Code::NoSuchThing),
    ];
    let mut rig = Rig::active();
    for (count, (spoil, code)) in (1..).zip(cases) {
        let mut prepare = rig.proposal(1);
        spoil(&mut prepare);
        prepare.transcript = [0; 32];
        let before = rig.session.flows()[0].transcript;
        prepare.transcript = extend(before, &Message::Prepare(prepare.clone()));
        let said = rig.take(Message::Prepare(prepare));
        assert_eq!(said, [format!("CANNOT {}", code as u16)]);
        assert_eq!(rig.shared.changes_refused, count);
    }
    let prepare = Prepare { transport: Some(STREAM), ..rig.proposal(1) };
    let bare = Prepare { transcript: [0; 32], ..prepare.clone() };
    let before = rig.session.flows()[0].transcript;
    let transcript = extend(before, &Message::Prepare(bare));
    rig.ready(Prepare { transcript, ..prepare });
}
