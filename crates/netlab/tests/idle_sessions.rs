//! A core looks at the sessions in which something happens, however many others there are.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, ms, offer};
use dacapo_base::Time;
use dacapo_core::{CoreCounters, Port, Source, SourcePoll, UnitWriter};
use dacapo_netlab::traffic::{Pattern, PatternSource};

/// Has nothing to send.
struct Idle;

impl Source for Idle {
    fn poll_unit(&mut self, _: Time, _: &mut UnitWriter<'_>) -> SourcePoll {
        SourcePoll::Idle
    }
}

/// What the two cores have looked at.
fn looked_at(lab: &mut Lab) -> [CoreCounters; 2] {
    let (creator, participant) = (lab.creator, lab.participant);
    [lab.world.core(creator).counters(), lab.world.core(participant).counters()]
}

/// Sessions and flows that were looked at while `lab` ran for so long, at both ends.
fn looked_at_in(lab: &mut Lab, time_ms: u64) -> Vec<(u64, u64)> {
    let before = looked_at(lab);
    lab.run(ms(time_ms));
    let pairs = before.into_iter().zip(looked_at(lab));
    let grown = |(one, two): (CoreCounters, CoreCounters)| {
        (two.sessions_watched - one.sessions_watched, two.flows_asked - one.flows_asked)
    };
    pairs.map(grown).collect()
}

/// A world in which so many idle sessions run, and perhaps one that sends.
fn lab(idle: usize, pattern: Option<Pattern>) -> Lab {
    let mut lab = Lab::new("delay=20ms,jitter=2ms");
    lab.participants_max = idle.max(1);
    let graph = || vec![offer("flow", &["sequence"])];
    lab.publish_with("idle", graph(), |_| Ok(Port::Source(Box::new(Idle))));
    let peer = lab.dial();
    for _ in 0..idle {
        let session = lab.set_up(peer, "idle");
        lab.activate(session.here);
    }
    if let Some(pattern) = pattern {
        lab.publish_with("busy", graph(), move |_| {
            Ok(Port::Source(Box::new(PatternSource::new(pattern))))
        });
        let session = lab.set_up(peer, "busy");
        lab.activate(session.here);
    }
    lab.run(ms(100));
    lab
}

#[test]
fn idle_sessions_are_not_looked_at_whatever_else_the_cores_do() {
    for idle in [1, 300] {
        let mut lab = lab(idle, None);
        let looked_at = looked_at_in(&mut lab, 20_000);
        assert_eq!(looked_at, [(0, 0), (0, 0)], "{idle} sessions, sessions and flows");
    }
}

#[test]
fn sessions_of_who_polls_go_to_rest_when_nothing_happens_between_two_looks() {
    let mut lab = lab(300, None);
    let (creator, now) = (lab.creator, lab.world.now());
    let core = lab.world.core(creator);
    let sessions: Vec<_> = core.sessions().map(|(id, _, _)| id).collect();
    sessions.iter().for_each(|id| core.wake(now, *id, 0));
    let mut watched = Vec::new();
    for _ in 0..3 {
        let before = core.counters().sessions_watched;
        core.handle_timeout(now);
        watched.push(core.counters().sessions_watched - before);
        assert!(core.poll_flows(now).is_none(), "they have nothing to send");
        core.next_deadline_awake(now);
    }
    assert_eq!(watched, [300, 300, 0]);
}

/// Of both ends while so many sessions are idle for 20 s: turns of the world, and looks at peers
/// and at control connections, in a second.
fn awake_in_a_second(idle: usize) -> (u64, u64, u64) {
    const SECONDS: u64 = 20;
    let mut lab = lab(idle, None);
    // What was said last is asked after for a while, and the two ends find one time for probes.
    lab.run(ms(5_000));
    let (before, steps) = (looked_at(&mut lab), lab.world.steps());
    lab.run(ms(SECONDS * 1_000));
    let after = looked_at(&mut lab);
    let grown = |count: fn(&CoreCounters) -> u64| -> u64 {
        after.iter().zip(&before).map(|(after, before)| count(after) - count(before)).sum()
    };
    let looks = (grown(|it| it.peers_watched), grown(|it| it.connections_watched));
    ((lab.world.steps() - steps) / SECONDS, looks.0 / SECONDS, looks.1 / SECONDS)
}

#[test]
fn idle_cores_turn_for_their_probes_and_look_at_nothing_else() {
    for idle in [1, 300] {
        let (turns, peers, connections) = awake_in_a_second(idle);
        // Twice a second: one end asks, the other answers and asks, the first answers.
        assert!(turns <= 12, "{turns} turns, {idle} sessions");
        assert!(peers <= 12, "{peers} looks at peers, {idle} sessions");
        assert_eq!(connections, 0, "looks at control connections, {idle} sessions");
    }
}

#[test]
fn one_session_that_sends_costs_as_many_looks_beside_300_as_beside_none() {
    let looks = |idle| {
        let mut lab = lab(idle, Some(Pattern { count: 100_000, ..common::pattern(0) }));
        looked_at_in(&mut lab, 2_000)
    };
    let (alone, beside) = (looks(0), looks(300));
    // Who receives is asked only when it has something to say.
    let asked: u64 = alone.iter().map(|(_, flows)| flows).sum();
    assert!(asked > 100, "{asked} flows asked");
    for ((sessions, flows), (more_sessions, more_flows)) in alone.into_iter().zip(beside) {
        assert!(sessions > 100, "{sessions} looks at sessions");
        // Probes and units do not meet in the same turns in both.
        assert!(more_sessions <= sessions * 2, "{more_sessions} looks, alone {sessions}");
        assert!(more_flows <= flows * 2, "{more_flows} flows asked, alone {flows}");
    }
}
