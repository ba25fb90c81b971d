//! Waits of several threads at one endpoint: whoever turns wakes all whose wait it has met.

use crate::world::{active_pair, watched};
use dacapo::{Deadline, Received, Session, Wait};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Flows with something to do, one each way by each of these names.
const BUSY: [&str; 2] = ["a", "b"];
/// Those by which nothing comes.
const IDLE: &str = "c";

fn session_file() -> String {
    let mut text = "[session]\nname = \"waits\"\n".to_owned();
    for name in BUSY.into_iter().chain([IDLE]) {
        for (way, from) in [("there", "participant"), ("back", "creator")] {
            let its = format!("name = \"{name}-{way}\"\nfrom = \"{from}\"\ntransport = \"udp\"");
            let what = "source = { raw = true }\ngraph = [\"segment\", \"sequence\"]";
            writeln!(text, "[[flow]]\n{its}\n{what}\nbound = \"200 Mbit/s\"").unwrap();
        }
    }
    text
}

fn ask(session: &Session, flow: &str, count: usize) {
    let (there, back) = (format!("{flow}-there"), format!("{flow}-back"));
    let (mut there, mut back) = (session.sender(&there).unwrap(), session.receiver(&back).unwrap());
    for number in 0..count {
        let unit = number.to_be_bytes();
        there.send(&unit).unwrap();
        assert_eq!(back.recv().unwrap().unwrap(), unit);
    }
    there.finish().unwrap();
    assert_eq!(back.recv().unwrap(), None);
}

fn answer(session: &Session, flow: &str) {
    let (there, back) = (format!("{flow}-there"), format!("{flow}-back"));
    let (mut there, mut back) = (session.receiver(&there).unwrap(), session.sender(&back).unwrap());
    while let Some(unit) = there.recv().unwrap() {
        back.send(&unit).unwrap();
    }
    back.finish().unwrap();
}

/// Looks now and then, as who asks for something else does, and turns by that.
fn look(session: &Session, way: &str, running: &AtomicUsize) {
    let mut idle = session.receiver(&format!("{IDLE}-{way}")).unwrap();
    while running.load(Ordering::Relaxed) > 0 {
        assert_eq!(idle.try_recv().unwrap(), Received::Nothing);
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// So many messages between two endpoints, at each of which two threads wait, so, and a third one
/// looks.
fn exchange(messages: usize, how: [Wait; 2]) {
    let (creator, participant) = active_pair(&session_file());
    let ends = [creator.endpoint().clone(), participant.endpoint().clone()];
    let running = &AtomicUsize::new(BUSY.len());
    std::thread::scope(|scope| {
        for (flow, how) in BUSY.into_iter().zip(how) {
            let (here, there) = (creator.waiting(how), participant.waiting(how));
            scope.spawn(move || answer(&here, flow));
            scope.spawn(move || {
                ask(&there, flow, messages / BUSY.len() / 2);
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        scope.spawn(|| look(&creator, "there", running));
        scope.spawn(|| look(&participant, "back", running));
    });
    assert_eq!(ends.map(|end| end.counters().missed_waits), [0, 0], "{how:?}");
    assert!(participant.close().unwrap().is_complete());
}

#[test]
fn two_threads_that_wait_in_different_flows_of_an_endpoint_miss_nothing() {
    watched(|| exchange(10_000, [Wait::Block; 2]));
}

#[test]
fn each_handle_waits_as_it_was_told() {
    watched(|| exchange(2_000, [Wait::Adaptive, Wait::Block]));
    watched(|| exchange(2_000, [Wait::Spin, Wait::Adaptive]));
}

#[test]
fn a_wait_whose_time_is_past_looks_all_the_same() {
    watched(|| {
        let (creator, participant) = active_pair(&session_file());
        creator.sender("a-back").unwrap().send(b"unit").unwrap();
        // The call that sends has handed it to the kernel. On a loaded machine that may bring it
        // after the first look, but no later look is skipped.
        let mut receiver = participant.receiver("a-back").unwrap();
        let look = || receiver.recv_by(Deadline::after(Duration::ZERO)).unwrap();
        let got = std::iter::repeat_with(look).find(|got| *got != Received::Nothing);
        assert_eq!(got, Some(Received::Unit(b"unit".to_vec())));
    });
}

#[test]
#[ignore = "10^6 messages, minutes: make nightly"]
fn a_million_messages_are_waited_for_and_none_is_missed() {
    for how in [[Wait::Block; 2], [Wait::Adaptive; 2]] {
        (0..5).for_each(|_| watched(move || exchange(100_000, how)));
    }
}
