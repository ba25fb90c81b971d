//! A module that panics ends its own flow, with its name and its words, and no other, at either
//! end.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, config, ms, offer, offer_back, pattern};
use dacapo_core::{Code, Command, CoreConfig, CoreEvent, Error};
use dacapo_lift::{
    Catalogue, ControlError, Cx, Entry, Module, ModuleSpec, Params, Setup, TimerId, Verdict,
};
use dacapo_modules::integrity::checksum;
use dacapo_netlab::{NodeId, catalogue};
use dacapo_packet::Packet;
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::FlowOffer;

/// Where it panics; at the tenth call where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Never,
    Built,
    Down,
    Up,
    Timeout,
    Control,
    Answered,
    Drain,
    Flush,
    Dropped,
}

const PLACES: [Place; 10] = [
    Place::Never,
    Place::Built,
    Place::Down,
    Place::Up,
    Place::Timeout,
    Place::Control,
    Place::Answered,
    Place::Drain,
    Place::Flush,
    Place::Dropped,
];

/// Forwards, keeps every third packet for 5 ms, and talks to its peer.
struct Fragile {
    place: Place,
    calls: u32,
    kept: Vec<(bool, Packet)>,
    is_gone: bool,
}

impl Fragile {
    fn new(place: Place) -> Self {
        assert_ne!(place, Place::Built, "it broke");
        Self { place, calls: 0, kept: Vec::new(), is_gone: false }
    }

    /// A call; it panics where it shall, and where it was called after that.
    fn call(&mut self, place: Place, count: u32) {
        assert!(!self.is_gone, "it was called again");
        if place == self.place {
            self.calls += 1;
            self.is_gone = self.calls >= count;
            assert!(!self.is_gone, "it broke");
        }
    }

    fn packet(&mut self, cx: &mut Cx<'_>, slot: &mut Packet, is_down: bool) -> Verdict {
        // What was taken out is lost where it panics now.
        let packet = slot.take();
        self.call(if is_down { Place::Down } else { Place::Up }, 10);
        if is_down {
            _ = cx.control_to_peer(b"hello");
        }
        if cx.random.below(3) > 0 {
            *slot = packet;
            return Verdict::Forward;
        }
        self.kept.push((is_down, packet));
        cx.arm(1, cx.now() + ms(5));
        Verdict::Held
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        for (is_down, packet) in self.kept.drain(..) {
            if is_down { cx.emit_down(packet) } else { cx.emit_up(packet) }.unwrap();
        }
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert_ne!(self.place, Place::Dropped, "it broke");
    }
}

static SPEC: ModuleSpec = ModuleSpec {
    name: "fragile",
    id: 0xF0AC,
    function: "breaking",
    tail: 0,
    trains_up: false,
    trains_down: false,
    keeps_order: false,
    provides: &[],
    ..checksum::SPEC
};

impl Module for Fragile {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn down(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.packet(cx, slot, true)
    }

    fn up(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> Verdict {
        self.packet(cx, slot, false)
    }

    fn timeout(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        self.call(Place::Timeout, 10);
        self.release(cx);
    }

    fn control(&mut self, _: &mut Cx<'_>, _: &[u8]) -> Result<Vec<u8>, ControlError> {
        self.call(Place::Control, 10);
        Ok(Vec::new())
    }

    fn answered(&mut self, _: &mut Cx<'_>, _: Result<&[u8], &str>) {
        self.call(Place::Answered, 10);
    }

    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.call(Place::Drain, 1);
        self.release(cx);
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.kept.drain(..).for_each(|(_, packet)| cx.pool.free(packet));
        if self.place == Place::Flush {
            panic!("it broke");
        }
    }
}

type Build = fn(&Params, &Setup) -> Box<dyn Module>;

/// A core whose module panics there.
fn fragile(place: Place) -> CoreConfig {
    fn build<const AT: usize>(_: &Params, _: &Setup) -> Box<dyn Module> {
        Box::new(Fragile::new(PLACES[AT]))
    }
    const BUILDS: [Build; PLACES.len()] = [
        build::<0>, build::<1>, build::<2>, build::<3>, build::<4>, build::<5>, build::<6>,
        build::<7>, build::<8>, build::<9>,
    ];
    let mut config = config();
    let mut entries = catalogue().entries().to_vec();
    entries.push(Entry { spec: &SPEC, build: BUILDS[place as usize] });
    let transports = catalogue().transports().to_vec();
    config.catalogue = Catalogue::new(entries).with_transports(transports);
    config
}

/// `segment`, and the module that may panic.
fn graph() -> GraphForm {
    let segment = catalogue().by_name("segment").unwrap().spec.id;
    GraphForm::line([(segment, Vec::new()), (SPEC.id, Vec::new())])
}

fn lab(creator: Place, participant: Place) -> Lab {
    let mut lab = Lab::with(3, "delay=20ms", fragile(creator), fragile(participant));
    lab.pattern = pattern(1_000);
    lab
}

/// Flow 0 with the module, to the participant; flow 1 without, back.
fn flows(transport: u16) -> Vec<FlowOffer> {
    let mut flow = FlowOffer { transport, ..offer("there", &[]) };
    flow.graph = graph();
    vec![flow, offer_back("back", &["segment", "sequence", "checksum"])]
}

/// The failures of flow 0 that a node was told.
fn failures(lab: &Lab, node: NodeId) -> Vec<Error> {
    let of_node = lab.log.iter().filter(|(at, ..)| *at == node);
    let failed = of_node.filter_map(|(_, _, event)| match event {
        CoreEvent::FlowFailed { flow: 0, error, .. } => Some(error.clone()),
        _ => None,
    });
    failed.collect()
}

fn is_told(errors: &[Error]) -> bool {
    let is_it = |error: &Error| {
        let text = "module \"fragile\" panicked: it broke";
        error.code == Code::ModuleFailed && error.text.starts_with(text)
    };
    matches!(errors, [error] if is_it(error))
}

/// The books of flow 0 close, the other flow is whole, and nothing is left of either.
fn check_end(mut lab: Lab, joined: &Joined) -> Lab {
    let (here, there) = lab.ledgers(joined, 0, ms(20_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    assert_eq!((here.unknown, there.unknown), (0, 0), "{here:?} {there:?}");
    assert_eq!((here.sent, here.delivered, here.lost), (there.sent, there.delivered, there.lost));
    assert_eq!(here.sent, here.delivered + here.lost, "{here:?}");
    let (here, there) = lab.ledgers(joined, 1, ms(5_000));
    assert_eq!((here.delivered, there.delivered), (1_000, 1_000));
    lab.close(lab.participant, joined.here);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(5_000))), None);
    lab.check_empty();
    lab
}

/// A panic at the creator, which sends, or at the participant; what each was told.
fn run(creator: Place, participant: Place, transport: u16) -> [Vec<Error>; 2] {
    let mut lab = lab(creator, participant);
    let joined = lab.start(flows(transport));
    let lab = check_end(lab, &joined);
    [failures(&lab, lab.creator), failures(&lab, lab.participant)]
}

#[test]
fn a_module_of_the_sender_that_panics_ends_its_flow_at_both_ends() {
    for place in [Place::Down, Place::Timeout, Place::Answered, Place::Drain] {
        let [there, here] = run(place, Place::Never, 1);
        assert!(is_told(&there), "{place:?}: {there:?}");
        assert!(is_told(&here), "{place:?}, from the sender: {here:?}");
    }
}

#[test]
fn a_module_of_the_receiver_that_panics_ends_its_flow_there() {
    for place in [Place::Up, Place::Timeout, Place::Control, Place::Drain] {
        let [there, here] = run(Place::Never, place, 1);
        assert!(is_told(&here), "{place:?}: {here:?}");
        assert!(there.is_empty(), "{place:?}, as with a sink: {there:?}");
    }
}

#[test]
fn over_a_stream_nobody_waits_for_what_a_dead_graph_kept() {
    let [_, here] = run(Place::Never, Place::Up, 3);
    assert!(is_told(&here), "{here:?}");
    let [there, here] = run(Place::Down, Place::Never, 3);
    assert!(is_told(&there) && is_told(&here), "{there:?} {here:?}");
}

#[test]
fn a_module_that_panics_when_all_is_accounted_for_changes_nothing() {
    for place in [Place::Flush, Place::Dropped] {
        let [there, _] = run(place, Place::Never, 1);
        assert!(there.is_empty(), "{place:?}: {there:?}");
        run(Place::Never, place, 1);
    }
}

#[test]
fn a_module_that_panics_while_it_is_made_is_refused_with_its_words() {
    let declined = |creator, participant| {
        let mut lab = lab(creator, participant);
        lab.publish("test", flows(1));
        let peer = lab.dial();
        let joined = lab.set_up(peer, "test");
        let refused = [(lab.creator, joined.there), (lab.participant, joined.here)]
            .map(|(node, session)| lab.world.core(node).status(session)[0].refused.clone());
        lab.activate(joined.here);
        let (here, there) = lab.ledgers(&joined, 1, ms(5_000));
        assert_eq!((here.delivered, there.delivered), (1_000, 1_000));
        lab.close(lab.participant, joined.here);
        lab.end_of(lab.participant, joined.here, ms(5_000));
        lab.check_empty();
        refused.map(|error| error.map(|error| (error.code, error.text)))
    };
    let text = "module \"fragile\" panicked: assertion `left != right` failed: it broke";
    for (creator, participant) in [(Place::Never, Place::Built), (Place::Built, Place::Never)] {
        let refused = declined(creator, participant);
        for (code, said) in refused.iter().flatten() {
            assert!(*code == Code::ModuleFailed && said.starts_with(text), "{refused:?}");
        }
        assert!(refused.iter().any(Option::is_some), "{refused:?}");
    }
}

/// Flow 0 begins without the module, and changes to it.
fn change(creator: Place, participant: Place) -> (Lab, Joined) {
    let mut lab = lab(creator, participant);
    let mut flows = flows(1);
    flows[0].graph = common::graph(&["segment"]);
    let joined = lab.start(flows);
    lab.run(ms(200));
    let change = Command::Change { session: joined.there, flow: 0, graph: graph() };
    let now = lab.now();
    let changed = lab.world.core(lab.creator).handle_command(now, change);
    assert_eq!(changed.is_err(), creator == Place::Built, "{changed:?}");
    (lab, joined)
}

#[test]
fn a_module_that_cannot_be_made_for_a_change_leaves_the_flow_in_its_epoch() {
    for (creator, participant) in [(Place::Built, Place::Never), (Place::Never, Place::Built)] {
        let (mut lab, joined) = change(creator, participant);
        let (here, there) = lab.ledgers(&joined, 0, ms(10_000));
        assert_eq!((here.delivered, there.delivered), (1_000, 1_000));
        let failed = lab.find(lab.creator, |event| match event {
            CoreEvent::ChangeFailed { error, .. } => Some(error.code),
            _ => None,
        });
        let is_there = participant == Place::Built;
        assert_eq!(failed.map(|(_, code)| code), is_there.then_some(Code::ModuleFailed));
        check_end(lab, &joined);
    }
}

#[test]
fn a_module_that_panics_in_the_epoch_that_was_changed_to_ends_the_flow() {
    for (creator, participant) in [
        (Place::Down, Place::Never),
        (Place::Timeout, Place::Never),
        (Place::Never, Place::Up),
        (Place::Never, Place::Timeout),
    ] {
        let (lab, joined) = change(creator, participant);
        let lab = check_end(lab, &joined);
        let node = if creator == Place::Never { lab.participant } else { lab.creator };
        assert!(is_told(&failures(&lab, node)), "{:?}", failures(&lab, node));
        let changed = lab.count(lab.creator, |event| matches!(event, CoreEvent::Changed { .. }));
        assert_eq!(changed, 1, "the old epoch was accounted for");
    }
}

#[test]
fn a_module_that_panics_while_its_epoch_is_changed_away_from_ends_the_flow() {
    for (creator, participant) in [
        (Place::Drain, Place::Never),
        (Place::Flush, Place::Never),
        (Place::Never, Place::Drain),
        (Place::Never, Place::Flush),
    ] {
        let mut lab = lab(creator, participant);
        let joined = lab.start(flows(1));
        lab.run(ms(200));
        let graph = common::graph(&["segment"]);
        lab.command(lab.creator, Command::Change { session: joined.there, flow: 0, graph })
            .unwrap();
        let lab = check_end(lab, &joined);
        let node = if creator == Place::Never { lab.participant } else { lab.creator };
        assert!(is_told(&failures(&lab, node)), "{:?}", failures(&lab, node));
    }
}

#[test]
fn a_module_of_a_flow_to_several_that_panics_ends_it_for_all() {
    let mut lab = lab(Place::Down, Place::Never);
    let mut flow = offer("cast", &[]);
    flow.graph = graph();
    (flow.transport, flow.multicast) = (6, Some("239.1.2.3:5004".parse().unwrap()));
    lab.publish("test", vec![flow]);
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    lab.activate(joined.here);
    let (here, there) = lab.ledgers(&joined, 0, ms(10_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    assert!(is_told(&failures(&lab, lab.creator)), "{:?}", failures(&lab, lab.creator));
    assert!(is_told(&failures(&lab, lab.participant)));
    lab.close(lab.participant, joined.here);
    lab.end_of(lab.participant, joined.here, ms(5_000));
    lab.check_empty();
}
