//! An access module that panics ends its own flow, with the reason, and no other.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, code, ms, offer, offer_back, pattern};
use dacapo_base::Time;
use dacapo_core::{
    Code, CoreEvent, Ending, Ledger, Port, Sink, Source, SourcePoll, Taken, UnitView, UnitWriter,
};
use dacapo_netlab::traffic::{PatternSink, PatternSource};
use dacapo_wire::session::FlowOffer;

/// Panics at its tenth unit; where it is called again, it says so.
struct Tenth {
    count: u32,
    is_gone: bool,
}

impl Tenth {
    fn new() -> Box<Self> {
        Box::new(Self { count: 0, is_gone: false })
    }

    fn note(&mut self) {
        assert!(!self.is_gone, "it was called again");
        self.count += 1;
        self.is_gone = self.count == 10;
        assert!(!self.is_gone, "the tenth unit");
    }
}

impl Source for Tenth {
    fn stop(&mut self, _: Time) {
        assert!(!self.is_gone, "it was called again");
    }

    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        if unit.begin(50).is_err() {
            return SourcePoll::Wait(now + ms(1));
        }
        // Half of it is written.
        unit.write(&[7; 25]);
        self.note();
        unit.write(&[7; 25]);
        SourcePoll::Unit
    }
}

impl Sink for Tenth {
    fn handle_unit(&mut self, _: Time, _: &UnitView<'_>) -> Taken {
        self.note();
        Taken::Delivered
    }

    fn finish(&mut self, _: Time, _: &Ending, _: &Ledger) {
        assert!(!self.is_gone, "it was called again");
    }
}

/// Flow 0 from a source, flow 1 back into a sink; with `panics` the first or the second is one.
fn run(panics: usize) -> (Lab, Joined) {
    let mut lab = Lab::new("delay=20ms");
    lab.pattern = pattern(1_000);
    let pattern = lab.pattern;
    let open = move |flow: &FlowOffer| {
        Ok(match flow.flow {
            0 if panics == 0 => Port::Source(Tenth::new()),
            0 => Port::Source(Box::new(PatternSource::new(pattern))),
            _ if panics == 1 => Port::Sink(Tenth::new()),
            _ => Port::Sink(Box::new(PatternSink::new(pattern).0)),
        })
    };
    let names = ["segment", "sequence", "checksum"];
    let flows = vec![offer("there", &names), offer_back("back", &names)];
    lab.publish_with("movie", flows, open);
    let peer = lab.dial();
    let joined = lab.set_up(peer, "movie");
    lab.activate(joined.here);
    (lab, joined)
}

#[test]
fn a_source_that_panics_has_failed_and_the_other_flow_goes_on() {
    let (mut lab, joined) = run(0);
    let (here, there) = lab.ledgers(&joined, 0, ms(5_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    assert_eq!(there.delivered, 9, "what it gave before");
    the_reason_is_told(&lab, 0);
    the_other_is_whole(lab, &joined, 1);
}

#[test]
fn a_sink_that_panics_takes_nothing_more_and_the_other_flow_goes_on() {
    let (mut lab, joined) = run(1);
    let (here, there) = lab.ledgers(&joined, 1, ms(5_000));
    assert!(here.closes() && there.closes(), "{here:?} {there:?}");
    assert_eq!((there.delivered, there.dropped_count()), (9, 991));
    the_reason_is_told(&lab, 1);
    the_other_is_whole(lab, &joined, 0);
}

fn the_reason_is_told(lab: &Lab, place: usize) {
    let failed = lab.find(lab.creator, |event| match event {
        CoreEvent::FlowFailed { flow, error, .. } if *flow == place => Some(error.clone()),
        _ => None,
    });
    let (_, failed) = failed.unwrap();
    assert!(
        failed.code == Code::AccessFailed && failed.text.contains("the tenth unit"),
        "{failed}"
    );
}

fn the_other_is_whole(mut lab: Lab, joined: &Joined, flow: usize) {
    let (here, there) = lab.ledgers(joined, flow, ms(5_000));
    assert_eq!((here.delivered, there.delivered), (1_000, 1_000));
    lab.close(lab.participant, joined.here);
    assert_eq!(code(&lab.end_of(lab.participant, joined.here, ms(5_000))), None);
    lab.check_empty();
}
