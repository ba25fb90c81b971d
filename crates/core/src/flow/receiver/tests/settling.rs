//! The settling part of a receiver, in each of its states.

use crate::error::{Code, Error};
use crate::flow::receiver::settling::{Boundary, Settling};
use crate::flow::tail::Tail;
use crate::flow::tests::{at, ms};
use crate::flow::{Lost, PathTimes};

const PATH: PathTimes = PathTimes { rtt: ms(40), variation: ms(3), is_lost: false };
const LOST: PathTimes = PathTimes { is_lost: true, ..PATH };

/// A boundary whose base is known since 100 ms, that ordered units wait at.
fn between(tail: Tail) -> Boundary {
    let (base, base_at, waits) = (7, at(100), (ms(0), ms(0)));
    Boundary { base, base_at, tail, is_next_ordered: true, is_full: false, waits }
}

fn left(ms: u64) -> Tail {
    let mut tail = Tail::default();
    tail.note_left(at(ms));
    tail
}

fn gone() -> Error {
    Error::new(Code::ContactLost, "gone")
}

#[test]
fn to_know_the_base_is_no_sign_that_all_has_left() {
    let (settling, mut tail) = (Settling::new(false), Tail::default());
    let over = |tail| settling.over_at(&between(tail), PATH);
    assert_eq!(over(tail), Some(at(5_100)));
    tail.note_came(at(300));
    assert_eq!(over(tail), Some(at(5_300)));
    tail.note_left(at(320));
    tail.note_left(at(400));
    assert_eq!(over(tail), Some(at(360)), "from the first sign on");
    tail.note_came(at(350));
    assert_eq!(over(tail), Some(at(390)), "what comes begins the wait anew");
    tail.shift(ms(1_000));
    assert_eq!(over(tail), Some(at(1_390)));
    assert!(!settling.is_over(at(1_389), &between(tail), PATH));
    assert!(settling.is_over(at(1_390), &between(tail), PATH));
}

#[test]
fn the_wait_is_the_longest_of_what_may_be_late() {
    let settling = Settling::new(false);
    let near = PathTimes { rtt: ms(1), variation: ms(2), is_lost: false };
    let over = |path, waits, is_next_ordered| {
        settling.over_at(&Boundary { waits, is_next_ordered, ..between(left(1_000)) }, path)
    };
    let none = (ms(0), ms(0));
    assert_eq!(over(near, none, true), Some(at(1_005)));
    assert_eq!(over(near, (ms(70), ms(0)), true), Some(at(1_070)));
    assert_eq!(over(near, (ms(0), ms(80)), true), Some(at(1_080)), "who bears it bears it here");
    let unsteady = PathTimes { variation: ms(90), ..near };
    assert_eq!(over(unsteady, none, true), Some(at(1_090)));
    assert_eq!(over(near, none, false), Some(at(1_200)), "nobody waits");
    assert_eq!(over(near, (ms(0), ms(500)), false), Some(at(1_200)));
    assert_eq!(over(near, (ms(300), ms(0)), false), Some(at(1_300)));
    let unsteady = PathTimes { variation: ms(290), ..near };
    assert_eq!(over(unsteady, none, false), Some(at(1_290)));
    let far = PathTimes { rtt: ms(300), ..near };
    assert_eq!((over(far, none, true), over(far, none, false)), (Some(at(1_300)), Some(at(1_600))));
}

#[test]
fn what_waits_for_contact_is_not_given_up() {
    let settling = Settling::new(false);
    assert_eq!(settling.over_at(&between(Tail::default()), LOST), None);
    assert_eq!(settling.over_at(&between(left(200)), LOST), Some(at(240)), "it has left before");
}

#[test]
fn with_as_many_held_as_may_be_nothing_is_waited_for() {
    let full = Boundary { is_full: true, ..between(Tail::default()) };
    assert!(Settling::new(false).is_over(at(100), &full, PATH));
    assert_eq!(Settling::new(false).over_at(&full, PATH), Some(at(100)), "it is due at once");
    assert!(!Settling::new(true).is_over(at(0), &full, PATH), "what is missing comes");
}

#[test]
fn over_a_reliable_transport_what_is_missing_comes_until_the_way_is_lost() {
    let mut settling = Settling::new(true);
    assert!(settling.may_come() && settling.way_lost().is_none());
    assert_eq!(settling.over_at(&between(left(200)), PATH), None);
    assert!(!settling.is_over(at(1 << 40), &between(left(200)), PATH));
    assert!(settling.lose(at(1_000), Lost::Way, &gone()));
    assert!(!settling.lose(at(2_000), Lost::Way, &Error::new(Code::Closed, "")), "it is known");
    assert!(!settling.may_come());
    assert_eq!(settling.way_lost(), Some(&gone()));
    assert!(settling.is_over(at(100), &between(Tail::default()), PATH));
    assert_eq!(settling.over_at(&between(left(200)), PATH), Some(at(100)), "it is due at once");
    assert_eq!(settling.give_up_at(), Some(at(16_000)));
    settling.shift(ms(10));
    assert_eq!(settling.give_up_at(), Some(at(16_010)));
    settling.handle_end(at(2_000), PATH, ms(0));
    assert_eq!(settling.give_up_at(), None, "END has come");
}

#[test]
fn for_what_a_lost_graph_has_kept_nobody_waits_long() {
    let error = Error::new(Code::ModuleFailed, "it broke");
    let mut settling = Settling::new(true);
    settling.handle_end(at(1_000), PATH, ms(0));
    assert_eq!(settling.end_by(PATH, false, || true), Some(at(11_000)));
    assert!(settling.lose(at(2_000), Lost::Graph, &error), "it is news");
    assert!(!settling.lose(at(2_000), Lost::Graph, &gone()), "it is known");
    assert_eq!((settling.reason(), settling.way_lost()), (Some(&error), None));
    assert_eq!(settling.end_by(PATH, false, || true), Some(at(2_200)));
    settling.handle_packet(at(2_100));
    assert_eq!(settling.end_by(PATH, false, || true), Some(at(2_200)), "nothing comes up");
    assert!(!settling.may_come() && settling.is_graph_lost());
}

#[test]
fn the_end_waits_for_the_path_and_for_modules() {
    for (path, modules, expected) in [
        (PATH, ms(0), 1_200),
        (PATH, ms(700), 1_700),
        (PathTimes { rtt: ms(300), ..PATH }, ms(0), 1_600),
    ] {
        let mut settling = Settling::new(false);
        assert_eq!(settling.end_by(path, false, || true), None, "END has not come");
        settling.handle_packet(at(900));
        settling.handle_end(at(1_000), path, modules);
        assert_eq!(settling.end_by(path, false, || true), Some(at(expected)));
        assert_eq!(
            settling.end_by(path, false, || false),
            Some(at(expected)),
            "datagrams are dropped"
        );
        assert_eq!(settling.end_by(path, true, || false), None, "the sink is waited for");
        assert_eq!(settling.end_by(LOST, true, || true), Some(at(expected)));
        settling.handle_packet(at(1_100));
        settling.close_soon(at(1_000));
        assert_eq!(settling.end_by(LOST, false, || true), Some(at(expected)));
        settling.go_on(at(5_000));
        assert_eq!(
            settling.end_by(PATH, false, || true),
            Some(at(4_000 + expected)),
            "there is room again"
        );
        assert_eq!(settling.end_by(PATH, true, || false), Some(at(9_000)), "the session closes");
    }
}

#[test]
fn a_reliable_end_waits_while_something_comes_and_for_who_holds_it_up() {
    let mut settling = Settling::new(true);
    settling.handle_packet(at(500));
    assert_eq!(settling.end_by(PATH, false, || true), None);
    settling.handle_end(at(1_000), PATH, ms(0));
    assert_eq!(settling.end_by(PATH, false, || true), Some(at(11_000)));
    settling.handle_packet(at(2_000));
    assert_eq!(settling.end_by(PATH, false, || true), Some(at(12_000)));
    settling.go_on(at(1_500));
    assert_eq!(settling.end_by(PATH, false, || true), Some(at(12_000)), "never earlier");
    settling.go_on(at(3_000));
    assert_eq!(settling.end_by(PATH, false, || true), Some(at(13_000)));
    assert_eq!(settling.end_by(PATH, false, || false), None, "the sink is waited for");
    assert_eq!(settling.end_by(LOST, false, || true), None, "contact is waited for");
    settling.close_soon(at(3_000));
    settling.close_soon(at(4_000));
    for (path, has_capacity) in [(PATH, true), (PATH, false), (LOST, true)] {
        assert_eq!(
            settling.end_by(path, false, || has_capacity),
            Some(at(11_000)),
            "the session closes"
        );
    }
    settling.shift(ms(5_000));
    assert_eq!(settling.end_by(PATH, false, || false), Some(at(16_000)));
    assert_eq!(settling.end_by(PATH, false, || true), Some(at(16_000)));
}
