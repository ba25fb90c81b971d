//! Every command has a watchdog: who waits is told.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, code, ms, plain};
use dacapo_core::{Code, Command, CoreEvent, DialParams, Done};
use dacapo_transport::TrafficClass;

#[test]
fn an_application_that_never_answers_the_offer_ends_the_session_at_both_ends_after_a_minute() {
    let mut lab = Lab::new("delay=20ms");
    lab.publish("test", plain());
    let peer = lab.dial();
    let here = lab.join(peer, "test");
    lab.offered(here);
    let since = lab.now();
    let ended = lab.end_of(lab.participant, here, ms(61_000));
    assert_eq!(code(&ended), Some(Code::NoAnswer), "{:?}", ended.1);
    assert!((ms(59_900)..=ms(60_000)).contains(&ended.0.since(since)), "{:?}", ended.0);
    let there = lab.expect(lab.creator, ms(500), |event| match event {
        CoreEvent::SessionEnded { error, .. } => Some(error.clone()),
        _ => None,
    });
    assert_eq!(code(&there), Some(Code::NoAnswer), "{:?}", there.1);
    lab.check_empty();
    // The peer is still there.
    let joined = lab.set_up(peer, "test");
    lab.activate(joined.here);
}

#[test]
fn a_stream_of_a_session_on_which_nothing_answers_ends_it_after_ten_seconds() {
    for (what, at) in [("JOIN", 0), ("ANSWER", 1), ("ACTIVATE", 2), ("DEACTIVATE", 3), ("CLOSE", 4)]
    {
        let mut lab = Lab::new("delay=20ms");
        lab.publish("test", plain());
        let peer = lab.dial();
        // The creator lives, as its probes show, but its control does not get out.
        let block = |lab: &mut Lab, now: i32| {
            lab.run(ms(100));
            if now == at {
                lab.world.block(lab.creator, Some(TrafficClass::Control));
            }
        };
        block(&mut lab, 0);
        let here = lab.join(peer, "test");
        if at >= 1 {
            let flows = lab.offered(here);
            block(&mut lab, 1);
            lab.answer(here, &flows);
        }
        if at >= 2 {
            block(&mut lab, 2);
            let now = lab.now();
            lab.world.core(lab.participant).handle_command(now, Command::Activate(here)).unwrap();
        }
        if at >= 3 {
            block(&mut lab, 3);
            let now = lab.now();
            lab.world.core(lab.participant).handle_command(now, Command::Deactivate(here)).unwrap();
        }
        if at >= 4 {
            block(&mut lab, 4);
            lab.close(lab.participant, here);
        }
        let since = lab.now();
        let ended = lab.end_of(lab.participant, here, ms(10_500));
        assert_eq!(code(&ended), Some(Code::NoAnswer), "{what}: {:?}", ended.1);
        assert_eq!(ended.1.unwrap().text, what);
        assert!(ended.0.since(since) >= ms(9_999), "{what}: {:?}", ended.0);
        lab.world.block(lab.creator, None);
        lab.run(ms(15_000));
        lab.check_empty();
    }
}

#[test]
fn a_list_that_is_not_answered_fails_after_ten_seconds() {
    let mut lab = Lab::new("delay=20ms");
    let peer = lab.dial();
    lab.run(ms(500));
    lab.world.block(lab.creator, Some(TrafficClass::Control));
    let now = lab.now();
    for _ in 0..16 {
        lab.world.core(lab.participant).handle_command(now, Command::List(peer)).unwrap();
    }
    let more =
        lab.world.core(lab.participant).handle_command(now, Command::List(peer)).unwrap_err();
    assert_eq!(more.code, Code::TooMany);
    lab.run(ms(10_100));
    let failed = lab.count(lab.participant, |event| match event {
        CoreEvent::Listing { sessions: Err(error), .. } => error.code == Code::NoAnswer,
        _ => false,
    });
    assert_eq!(failed, 16);
}

/// Both ends stand still for a minute, as on a machine that stops all its processes.
fn stop(lab: &mut Lab) {
    for frozen in [true, false] {
        for node in [lab.creator, lab.participant] {
            lab.world.freeze(node, frozen);
        }
        lab.run(ms(if frozen { 60_000 } else { 0 }));
    }
}

#[test]
fn time_in_which_nobody_ran_ends_no_command() {
    for at in 0..6 {
        for after in [1, 10, 30, 50] {
            let mut lab = Lab::new("delay=20ms");
            lab.pattern = common::pattern(5_000);
            lab.publish("test", plain());
            let stop_at = |lab: &mut Lab, now: i32| {
                if now == at {
                    lab.run(ms(after));
                    stop(lab);
                }
            };
            let (now, address) = (lab.now(), lab.world.address(lab.creator));
            let peer = lab
                .world
                .core(lab.participant)
                .handle_command(
                    now,
                    Command::Connect { remote: address.into(), params: DialParams::default() },
                )
                .and_then(Done::peer)
                .unwrap();
            stop_at(&mut lab, 0);
            lab.expect(lab.participant, ms(10_000), |event| {
                matches!(event, CoreEvent::PeerOpen { .. }).then_some(())
            });
            let here = lab.join(peer, "test");
            stop_at(&mut lab, 1);
            let flows = lab.offered(here);
            let seen = lab.answer(here, &flows);
            stop_at(&mut lab, 2);
            lab.expect(lab.participant, ms(10_000), |event| {
                matches!(event, CoreEvent::Ready { .. }).then_some(())
            });
            let now = lab.now();
            lab.world.core(lab.participant).handle_command(now, Command::Activate(here)).unwrap();
            stop_at(&mut lab, 3);
            lab.expect(lab.participant, ms(10_000), |event| {
                matches!(event, CoreEvent::Active { .. }).then_some(())
            });
            lab.run(ms(300));
            stop_at(&mut lab, 4);
            lab.run(ms(300));
            lab.close(lab.participant, here);
            stop_at(&mut lab, 5);
            let ended = lab.end_of(lab.participant, here, ms(10_000));
            assert_eq!(code(&ended), None, "{after} ms after {at}: {:?}", ended.1);
            let ledger = lab.ledger(lab.participant, here, 0).unwrap();
            assert!(ledger.closes() && ledger.unknown == 0, "{after} ms after {at}: {ledger:?}");
            assert!(ledger.delivered > 400 && seen[0].is_some(), "{ledger:?}");
            lab.check_empty();
        }
    }
}
