//! A module above a stream drops packets: what it drops is known at once, because the stream keeps
//! the order, and nobody waits for it.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, code, config, graph, ms, offer_tcp, pattern};
use dacapo_core::{Command, CoreConfig, CoreEvent};
use dacapo_lift::{Catalogue, Cx, DropReason, Entry, Module, ModuleSpec, Verdict};
use dacapo_modules::integrity::checksum;
use dacapo_netlab::catalogue;
use dacapo_packet::Packet;
use dacapo_wire::graph::GraphForm;

/// Drops every 50th packet that comes up.
struct Drops(u64);

static SPEC: ModuleSpec = ModuleSpec {
    name: "drops",
    id: 0xF0AA,
    function: "dropping",
    tail: 0,
    trains_up: false,
    provides: &[],
    ..checksum::SPEC
};

impl Module for Drops {
    fn spec(&self) -> &'static ModuleSpec {
        &SPEC
    }

    fn up(&mut self, _: &mut Cx<'_>, _: &mut Packet) -> Verdict {
        self.0 += 1;
        if self.0.is_multiple_of(50) {
            return Verdict::Drop(DropReason::Refused);
        }
        Verdict::Forward
    }
}

fn with_drops() -> CoreConfig {
    let mut config = config();
    let mut entries = catalogue().entries().to_vec();
    entries.push(Entry { spec: &SPEC, build: |_, _| Box::new(Drops(0)) });
    let transports = catalogue().transports().to_vec();
    config.catalogue = Catalogue::new(entries).with_transports(transports);
    config
}

#[test]
fn what_is_dropped_above_a_stream_delays_neither_a_change_nor_the_end() {
    let mut lab = Lab::with(1, "delay=20ms", with_drops(), with_drops());
    lab.pattern = pattern(1_000);
    let mut flow = offer_tcp("flow", &[]);
    flow.graph = GraphForm::line([(SPEC.id, Vec::new())]);
    let joined = lab.start(vec![flow]);
    lab.run(ms(400));
    let now = lab.now();
    lab.world
        .core(lab.creator)
        .handle_command(
            now,
            Command::Change { session: joined.there, flow: 0, graph: graph(&["checksum"]) },
        )
        .unwrap();
    lab.run(ms(200));
    let changed = |event: &CoreEvent| matches!(event, CoreEvent::Changed { .. });
    assert_eq!(lab.count(lab.participant, changed), 1, "the mark of the old epoch is enough");
    assert_eq!(lab.count(lab.creator, changed), 1);
    let now = lab.now();
    let back = GraphForm::line([(SPEC.id, Vec::new())]);
    lab.world
        .core(lab.creator)
        .handle_command(now, Command::Change { session: joined.there, flow: 0, graph: back })
        .unwrap();
    let (here, there) = lab.ledgers(&joined, 0, ms(2_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    assert_eq!((here.sent, here.unknown, there.lost), (1_000, 0, here.lost));
    assert!((10..20).contains(&here.lost), "{here:?}");
    lab.close(lab.participant, joined.here);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(1_000))), None);
    lab.check_empty();
}
