//! Flows that go to a group: sent once, accounted for at each participant, and none is another's
//! trouble.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::cast::{Cast, GROUP, LINK, UNITS, set_up, to_group};
use common::{Lab, code, ms, offer, pattern};
use dacapo_base::Random;
use dacapo_base::seeds::{each_seed, number};
use dacapo_core::{Code, Command, CoreEvent, Done, SessionSpec};
use dacapo_wire::session::{Direction, FlowOffer};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn all() -> Vec<u64> {
    (0..UNITS).collect()
}

#[test]
fn one_two_and_five_receivers_get_every_unit_of_one_sender() {
    let names = ["segment", "sequence", "checksum"];
    let mut asked = Vec::new();
    for count in [1, 2, 5] {
        let mut cast = set_up(count, &names);
        cast.activate_all();
        for at in 0..count {
            let ledger = cast.account(at);
            // Those who join before the first is active miss nothing.
            assert_eq!((ledger.sent, ledger.delivered), (UNITS, UNITS), "{at} of {count}");
            assert_eq!(cast.numbers(at), all(), "{at} of {count}");
        }
        let sent = cast.crossed.load(Ordering::Relaxed);
        assert_eq!(sent, UNITS * count as u64, "each unit crosses each link once");
        asked.push(cast.lab.world.core(cast.lab.creator).counters().flows_asked);
        let ended =
            |event: &CoreEvent| matches!(event, CoreEvent::FlowEnded { hash: Some(true), .. });
        assert_eq!(cast.lab.count(cast.lab.creator, ended), count, "the hashes are equal");
        cast.end();
    }
    // The graph runs once: five receivers cost the sender no more asking than one.
    assert!(asked[2] < asked[0] + asked[0] / 5, "{asked:?}");
}

#[test]
fn losses_on_the_way_to_one_are_its_own() {
    for names in [&["segment", "sequence", "checksum"][..], &["checksum"], &[]] {
        let mut cast = set_up(3, names);
        let (creator, lossy) = (cast.lab.creator, cast.joined[1].0);
        let link = "delay=20ms,jitter=2ms,loss=10%".parse().unwrap();
        cast.lab.world.relink(creator, lossy, link);
        cast.activate_all();
        for at in [0, 2] {
            assert_eq!(cast.account(at).delivered, UNITS, "{names:?}: {at} has no losses");
        }
        let ledger = cast.account(1);
        assert_eq!(ledger.sent, UNITS);
        assert!((200..=450).contains(&ledger.lost), "{names:?}: {ledger:?}");
        assert_eq!(ledger.delivered + ledger.lost, UNITS, "{names:?}");
        cast.end();
    }
}

#[test]
fn who_leaves_is_accounted_for_at_once_and_the_others_go_on() {
    let mut cast = set_up(3, &["sequence", "checksum"]);
    cast.activate_all();
    cast.lab.run(ms(500));
    let (node, left) = cast.joined[0].clone();
    cast.lab.close(node, left.here);
    assert_eq!(code(&cast.lab.end_of(node, left.here, ms(2_000))), None);
    assert_eq!(cast.lab.world.memberships(node).count(), 0);
    let ledger = cast.account(0);
    assert!((300..700).contains(&ledger.sent), "{ledger:?}");
    assert_eq!(ledger.delivered, ledger.sent, "END follows what was fed");
    cast.joined.remove(0);
    for at in 0..2 {
        assert_eq!(cast.account(at).delivered, UNITS);
        assert_eq!(cast.numbers(at), all());
    }
    cast.end();
}

#[test]
fn who_dies_is_given_up_and_the_others_get_everything() {
    let mut cast = set_up(3, &["sequence", "checksum"]);
    cast.activate_all();
    cast.lab.run(ms(500));
    let (node, dead) = cast.joined.remove(0);
    cast.lab.world.kill(node);
    let creator = cast.lab.creator;
    assert_eq!(code(&cast.lab.end_of(creator, dead.there, ms(6_000))), Some(Code::ContactLost));
    let ledger = cast.lab.ledger(creator, dead.there, 0).expect("it is given up");
    assert!(ledger.closes() && ledger.unknown == ledger.sent && ledger.sent > 500, "{ledger:?}");
    for at in 0..2 {
        assert_eq!(cast.account(at).delivered, UNITS);
        assert_eq!(cast.numbers(at), all());
    }
    cast.close_all();
}

#[test]
fn who_is_silent_for_a_while_loses_that_and_no_other_waits() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(8_000);
    lab.publish("test", vec![to_group(&["sequence", "checksum"])]);
    let mut cast = Cast { lab, joined: Vec::new(), crossed: Arc::default() };
    cast.join();
    cast.lab.participant = cast.lab.add_participant();
    cast.join();
    cast.activate_all();
    cast.lab.run(ms(500));
    let (creator, silent) = (cast.lab.creator, cast.joined[1].0);
    for cut in [true, false] {
        cast.lab.world.cut(creator, silent, cut);
        cast.lab.world.cut(silent, creator, cut);
        cast.lab.run(ms(5_000));
    }
    assert_eq!(cast.account(0).delivered, 8_000);
    let ledger = cast.account(1);
    assert_eq!((ledger.sent, ledger.delivered + ledger.lost), (8_000, 8_000));
    assert!((4_900..5_200).contains(&ledger.lost), "{ledger:?}");
    cast.end();
}

#[test]
fn who_comes_late_gets_the_rest_and_its_units_count_from_there() {
    for names in [&["segment", "sequence", "checksum"][..], &["sequence"], &[]] {
        let mut cast = set_up(2, names);
        cast.activate_all();
        cast.lab.run(ms(1_000));
        cast.lab.participant = cast.lab.add_participant();
        cast.join();
        let late = cast.joined[2].1.here;
        cast.lab.activate(late);
        for at in 0..2 {
            assert_eq!((cast.account(at).delivered, cast.numbers(at)), (UNITS, all()));
        }
        let ledger = cast.account(2);
        assert!((1_500..2_000).contains(&ledger.sent), "{names:?}: {ledger:?}");
        // What was sent while the ACCEPT was on its way.
        assert!(ledger.lost < 80 && ledger.delivered + ledger.lost == ledger.sent, "{ledger:?}");
        let seen = cast.joined[2].1.seen[0].clone().unwrap();
        let record = seen.record().clone();
        let first = *record.numbers.first().unwrap();
        assert_eq!(record.numbers, (first..ledger.sent).collect::<Vec<_>>(), "{names:?}");
        // The bytes are those of the sender's own numbers.
        assert_eq!((record.altered, record.misnumbered), (0, ledger.delivered), "{names:?}");
        cast.end();
    }
}

#[test]
fn a_group_that_cannot_be_joined_refuses_the_flow_of_that_participant_with_the_reason() {
    let mut cast = set_up(2, &["sequence"]);
    cast.lab.participant = cast.lab.add_participant();
    let node = cast.lab.participant;
    cast.lab.world.refuse_groups(node, true);
    cast.join();
    let (_, refused) = cast.joined.pop().unwrap();
    let creator = cast.lab.creator;
    for (at, session) in [(node, refused.here), (creator, refused.there)] {
        let status = cast.lab.world.core(at).status(session).remove(0);
        let error = status.refused.expect("the flow is refused at both ends");
        assert_eq!(error.code, Code::NoDataPath);
        assert!(error.text.contains(GROUP) && error.text.contains("no such device"), "{error}");
    }
    cast.activate_all();
    for at in 0..2 {
        assert_eq!(cast.account(at).delivered, UNITS);
    }
    cast.lab.close(node, refused.here);
    cast.lab.end_of(node, refused.here, ms(2_000));
    cast.end();
}

#[test]
fn the_source_runs_while_one_member_does_and_pauses_with_the_last() {
    let mut cast = set_up(2, &["sequence"]);
    cast.activate_all();
    let sessions: Vec<_> = cast.joined.iter().map(|(node, it)| (*node, it.here)).collect();
    let deactivate = |cast: &mut Cast, at: usize| {
        let now = cast.lab.now();
        cast.lab
            .world
            .core(sessions[at].0)
            .handle_command(now, Command::Deactivate(sessions[at].1))
            .unwrap();
        cast.lab.run(ms(500));
        cast.numbers(0).len()
    };
    let before = deactivate(&mut cast, 0);
    cast.lab.run(ms(300));
    assert!(cast.numbers(0).len() > before + 250, "the other one runs");
    let before = deactivate(&mut cast, 1);
    cast.lab.run(ms(300));
    assert_eq!(cast.numbers(0).len(), before, "nobody runs");
    cast.activate_all();
    for at in 0..2 {
        assert_eq!((cast.account(at).delivered, cast.numbers(at)), (UNITS, all()));
    }
    cast.end();
}

#[test]
fn what_would_change_it_for_all_is_refused_while_there_are_others() {
    let mut cast = set_up(2, &["sequence"]);
    cast.activate_all();
    let (node, session) = cast.joined[1].clone();
    let (creator, now) = (cast.lab.creator, cast.lab.now());
    let graph = common::graph(&["checksum"]);
    let error = cast
        .lab
        .world
        .core(creator)
        .handle_command(now, Command::Change { session: session.there, flow: 0, graph })
        .unwrap_err();
    assert_eq!(error.code, Code::Unsupported, "{error}");
    let command = |cast: &mut Cast| {
        let now = cast.lab.now();
        let core = cast.lab.world.core(node);
        let request = core
            .handle_command(
                now,
                Command::Control {
                    session: session.here,
                    flow: 0,
                    module: 0xFFFF,
                    payload: b"abc".to_vec(),
                },
            )
            .and_then(Done::request)
            .unwrap();
        let answered = |event: &CoreEvent| match event {
            CoreEvent::ControlAnswered { request: it, answer, .. } if *it == request => {
                Some(answer.clone())
            }
            _ => None,
        };
        cast.lab.expect(node, ms(2_000), answered).1
    };
    let error = command(&mut cast).unwrap_err();
    assert_eq!(error.code, Code::Refused);
    assert!(error.text.contains("2 participants"), "{error}");
    let (other, left) = cast.joined.remove(0);
    cast.lab.close(other, left.here);
    cast.lab.end_of(other, left.here, ms(2_000));
    assert_eq!(command(&mut cast).unwrap(), b"cba", "alone it may");
    cast.end();
}

#[test]
fn when_all_have_left_who_joins_next_begins_anew() {
    let mut cast = set_up(2, &["sequence", "checksum"]);
    cast.activate_all();
    cast.lab.run(ms(500));
    for (node, session) in std::mem::take(&mut cast.joined) {
        cast.lab.close(node, session.here);
        cast.lab.end_of(node, session.here, ms(2_000));
    }
    cast.join();
    cast.activate_all();
    assert_eq!((cast.account(0).delivered, cast.numbers(0)), (UNITS, all()));
    cast.end();
}

#[test]
fn who_joins_a_flow_that_has_ended_gets_one_of_its_own() {
    let mut cast = set_up(2, &["sequence", "checksum"]);
    cast.activate_all();
    for at in 0..2 {
        assert_eq!(cast.account(at).delivered, UNITS);
    }
    cast.lab.participant = cast.lab.add_participant();
    cast.join();
    let late = cast.joined[2].1.here;
    cast.lab.activate(late);
    assert_eq!((cast.account(2).delivered, cast.numbers(2)), (UNITS, all()));
    cast.end();
}

#[test]
fn a_flow_that_names_no_group_or_cannot_go_to_one_is_refused() {
    let mut lab = Lab::new(LINK);
    let group = GROUP.parse().unwrap();
    for (flow, text) in [
        (FlowOffer { multicast: None, ..to_group(&[]) }, "the flow names none"),
        (FlowOffer { multicast: Some(group), ..offer("flow", &[]) }, "does not send to groups"),
        (
            FlowOffer { multicast: "10.0.0.9:5".parse().ok(), ..to_group(&[]) },
            "is not the address and the port of a group",
        ),
        (
            FlowOffer { direction: Direction::ToCreator, ..to_group(&[]) },
            "only the creator sends to a group",
        ),
    ] {
        let spec = SessionSpec {
            name: "test".into(),
            title: String::new(),
            flows: vec![flow],
            participants_max: 2,
            give_up_after: ms(0),
        };
        let never = common::Opens(|_: &FlowOffer| Err("never opened".to_owned()));
        let error = lab.world.core(lab.creator).publish(spec, Box::new(never)).unwrap_err();
        assert_eq!(error.code, Code::Unsupported);
        assert!(error.text.contains(text), "{error}");
    }
}

/// Members come, pause, leave and die at random over links that lose, repeat and reorder; every
/// account closes, and who was there from the beginning to the end lost only what its link took.
fn whatever_members_do(seed: u64) {
    let mut random = Random::from_number(seed);
    let names: &[&str] = [&["segment", "sequence", "checksum"][..], &["checksum"], &["sequence"]]
        [random.below(3) as usize];
    let mut cast = set_up(1, names);
    let creator = cast.lab.creator;
    cast.activate_all();
    let mut waiting = Vec::new();
    // The first stays, over a link that takes nothing.
    for step in 0..12 {
        let count = cast.joined.len() as u64;
        let other = 1 + random.below(count.max(2) - 1) as usize;
        match random.below(6) {
            0..=2 if count < 6 => {
                cast.lab.participant = cast.lab.add_participant();
                let loss = random.below(10);
                let link = format!("delay=20ms,jitter=5ms,loss={loss}%,dup=3%");
                cast.lab.world.relink(creator, cast.lab.participant, link.parse().unwrap());
                cast.join();
                let here = cast.joined[cast.joined.len() - 1].1.here;
                match random.chance(0.8) {
                    true => cast.lab.activate(here),
                    false => waiting.push((cast.lab.participant, here)),
                }
            }
            3 if count > 1 => {
                let (node, session) = cast.joined.remove(other);
                cast.lab.close(node, session.here);
                cast.lab.end_of(node, session.here, ms(5_000));
                let ledger = cast.lab.ledger(creator, session.there, 0).expect("accounted for");
                assert!(ledger.closes() && ledger.unknown == 0, "seed {seed}, {step}: {ledger:?}");
            }
            4 if count > 1 => {
                let (node, session) = cast.joined.remove(other);
                cast.lab.world.kill(node);
                cast.lab.end_of(creator, session.there, ms(6_000));
                let ledger = cast.lab.ledger(creator, session.there, 0).expect("given up");
                assert!(ledger.closes(), "seed {seed}, {step}: {ledger:?}");
            }
            _ => cast.lab.run(ms(random.below(200))),
        }
    }
    for (node, session) in cast.joined.clone() {
        if waiting.contains(&(node, session.here)) {
            cast.lab.participant = node;
            cast.lab.activate(session.here);
        }
    }
    for at in 0..cast.joined.len() {
        let ledger = cast.account(at);
        assert_eq!(ledger.unknown, 0, "seed {seed}: {at}");
        if at == 0 {
            assert_eq!((ledger.delivered, cast.numbers(0)), (UNITS, all()), "seed {seed}");
        }
    }
    cast.close_all();
}

#[test]
fn whatever_members_do_every_account_closes_and_who_stays_gets_everything() {
    each_seed(0..number("DACAPO_SEEDS", 60), whatever_members_do);
}

/// One seed, to look at it: `DACAPO_SEED=7 cargo test -p dacapo-netlab --test multicast one_seed`.
#[test]
fn one_seed() {
    whatever_members_do(number("DACAPO_SEED", 0));
}
