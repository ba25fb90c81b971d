//! Sessions that are opened and closed by the thousand, and set-ups that fail by the thousand: what
//! a core keeps returns to what it was.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Joined, Lab, ms, offer, offer_back, pattern, plain};
use dacapo_core::{Code, Command, CoreEvent, PeerId, Port, SessionSpec};
use dacapo_netlab::NodeId;
use dacapo_netlab::traffic::{Pattern, PatternSource};

/// What can be counted of a core from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    sessions: usize,
    connections: usize,
    views: usize,
    streams: usize,
    is_waiting: bool,
}

/// Two cores with a connection and nothing else.
struct Churn {
    lab: Lab,
    peer: PeerId,
    before: [Counts; 2],
}

impl Churn {
    fn new() -> Self {
        let mut lab = Lab::new("delay=2ms");
        lab.pattern = Pattern { every: ms(1), ..pattern(1_000_000) };
        lab.publish("two", vec![offer("down", &["sequence"]), offer_back("up", &["segment"])]);
        lab.publish("plain", plain());
        let peer = lab.dial();
        lab.run(ms(2_000));
        let before = [counts(&mut lab, NodeId(0)), counts(&mut lab, NodeId(1))];
        Self { lab, peer, before }
    }

    /// Everything is as it was at the beginning, at both ends.
    fn check(&mut self) {
        self.lab.run(ms(1_000));
        let after = [counts(&mut self.lab, NodeId(0)), counts(&mut self.lab, NodeId(1))];
        assert_eq!(after, self.before);
        self.lab.check_empty();
        for node in [NodeId(0), NodeId(1)] {
            let counters = self.lab.world.core(node).counters();
            assert_eq!((counters.events_dropped, counters.malformed), (0, 0), "{counters:?}");
        }
    }

    /// How the newest session of the participant ended.
    fn end_of(&mut self, session: dacapo_core::SessionId) -> Option<Code> {
        let (_, error) = self.lab.end_of(self.lab.participant, session, ms(5_000));
        self.lab.log.clear();
        error.map(|error| error.code)
    }
}

fn counts(lab: &mut Lab, node: NodeId) -> Counts {
    let streams = lab.world.stream_count();
    let core = lab.world.core(node);
    Counts {
        sessions: core.sessions().count(),
        connections: core.connection_count(),
        views: core.pool().live_views(),
        streams,
        is_waiting: core.has_requests(),
    }
}

/// Runs a session for a little while; its account closes.
fn run_once(churn: &mut Churn, name: &str, flows: usize) {
    let (lab, peer) = (&mut churn.lab, churn.peer);
    let joined: Joined = lab.set_up(peer, name);
    lab.activate(joined.here);
    lab.run(ms(8));
    lab.close(lab.participant, joined.here);
    for flow in 0..flows {
        let (here, there) = lab.ledgers(&joined, flow, ms(5_000));
        assert!(here.closes() && there.closes(), "{here:?} {there:?}");
        assert_eq!((here.unknown, there.unknown), (0, 0));
    }
    let (_, error) = lab.end_of(lab.participant, joined.here, ms(5_000));
    assert_eq!(error, None);
    lab.end_of(lab.creator, joined.there, ms(5_000));
    lab.log.clear();
}

#[test]
fn two_thousand_sessions_leave_nothing() {
    let mut churn = Churn::new();
    for round in 0..1_000 {
        run_once(&mut churn, "two", 2);
        run_once(&mut churn, "plain", 1);
        if round % 250 == 0 {
            churn.check();
        }
    }
    churn.check();
}

#[test]
fn two_thousand_set_ups_that_fail_leave_nothing() {
    let mut churn = Churn::new();
    let spec = |name: &str, most| SessionSpec {
        name: name.into(),
        title: String::new(),
        flows: vec![offer("down", &[]), offer("second", &[])],
        participants_max: most,
        give_up_after: dacapo_core::GIVE_UP_AFTER,
    };
    let core = churn.lab.world.core(NodeId(0));
    core.publish(spec("full", 0), Box::new(common::Opens(|_: &_| Err("full".to_owned())))).unwrap();
    // The first access module opens, the second fails: the first must be given back.
    let pattern = churn.lab.pattern;
    let open = move |flow: &dacapo_wire::session::FlowOffer| match flow.flow {
        0 => Ok(Port::Source(Box::new(PatternSource::new(pattern)))),
        _ => Err("no such file".to_owned()),
    };
    let core = churn.lab.world.core(NodeId(0));
    core.publish(spec("broken", 10), Box::new(common::Opens(open))).unwrap();
    for _ in 0..500 {
        for (name, code) in
            [("nothing", Code::NotServed), ("full", Code::TooMany), ("broken", Code::AccessFailed)]
        {
            let session = churn.lab.join(churn.peer, name);
            assert_eq!(churn.end_of(session), Some(code), "{name}");
        }
        give_up_in_between(&mut churn);
    }
    churn.check();
}

/// The participant joins and closes before it has answered.
fn give_up_in_between(churn: &mut Churn) {
    let session = churn.lab.join(churn.peer, "two");
    churn.lab.offered(session);
    churn.lab.close(churn.lab.participant, session);
    assert_eq!(churn.end_of(session), None);
}

/// The whole connection goes and comes again, each time at another point of a set-up.
#[test]
fn peers_that_vanish_at_every_point_of_a_set_up_leave_nothing() {
    let mut churn = Churn::new();
    for round in 0..400 {
        let session = churn.lab.join(churn.peer, "two");
        if round % 4 >= 1 {
            let flows = churn.lab.offered(session);
            if round % 4 >= 2 {
                let (ports, _) = churn.lab.ports(&flows);
                let now = churn.lab.now();
                churn.lab.world.core(NodeId(1)).answer(now, session, ports).unwrap();
                churn.lab.run(ms(round % 17));
            }
        }
        let peer = churn.peer;
        churn.lab.command(NodeId(1), Command::Disconnect(peer)).unwrap();
        churn.lab.run(ms(300));
        let lost = |event: &CoreEvent| matches!(event, CoreEvent::PeerLost { .. });
        assert_eq!(churn.lab.count(NodeId(0), lost), 1, "round {round}");
        assert_eq!(churn.lab.world.core(NodeId(0)).sessions().count(), 0, "round {round}");
        churn.lab.log.clear();
        churn.peer = churn.lab.dial();
    }
    churn.lab.run(ms(2_000));
    churn.check();
}
