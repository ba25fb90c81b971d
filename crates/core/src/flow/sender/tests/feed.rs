//! The feed part of a sender, in each of its states.

use crate::flow::sender::feed::Feed;
use crate::flow::tests::{Bench, Say, Scripted, at, layout, ms};
use crate::port::SourcePoll;

const UNITS_MAX: usize = 4;
const BYTES_MAX: usize = 25;

fn feed(source: &Scripted) -> Feed {
    Feed::new(source.boxed(), 1_000, UNITS_MAX, BYTES_MAX)
}

/// One that runs from now on.
fn running(source: &Scripted, bench: &Bench) -> Feed {
    let mut feed = feed(source);
    feed.set_running(bench.now, true);
    feed
}

fn take(feed: &mut Feed, bench: &mut Bench) -> Vec<u8> {
    let unit = feed.pop(&mut bench.pool, &layout(false)).unwrap().expect("a unit waits");
    let mut bytes = Vec::new();
    unit.chain.iter().for_each(|packet| bench.pool.read_payload(packet, &mut bytes));
    feed.give_back(&mut bench.pool, unit.chain);
    bytes.split_off(dacapo_wire::unit::LEN)
}

#[test]
fn a_source_is_asked_only_while_the_flow_runs_and_has_contact() {
    let (mut bench, source) = (Bench::new(), Scripted::units(9));
    let mut feed = feed(&source);
    let ask = |feed: &mut Feed, bench: &mut Bench| feed.ask(&mut bench.cx(), layout(false));
    assert!(!ask(&mut feed, &mut bench));
    assert!(!feed.is_open() && feed.due().is_none() && !feed.may_give(bench.now));
    feed.set_running(bench.now, true);
    assert_eq!((feed.due(), feed.may_give(bench.now)), (Some(bench.now), true));
    assert!(ask(&mut feed, &mut bench));
    feed.set_suspended(bench.now, true);
    assert!(!feed.is_open() && feed.is_suspended() && feed.due().is_none());
    assert!(!ask(&mut feed, &mut bench));
    feed.set_running(bench.now, true);
    assert_eq!(source.log(), ["start", "stop"], "it was running already");
    feed.set_suspended(bench.now, false);
    assert!(ask(&mut feed, &mut bench));
    feed.set_running(bench.now, false);
    feed.set_running(bench.now, false);
    assert_eq!(source.log(), ["start", "stop"]);
    feed.drop_waiting(&mut bench.pool);
    feed.end_row(&mut bench.pool);
    assert_eq!(bench.pool.live_views(), 0);
}

#[test]
fn what_a_source_answers_says_when_it_is_asked_again() {
    let (mut bench, source) = (Bench::new(), Scripted::default());
    let mut feed = running(&source, &bench);
    let ask = |feed: &mut Feed, bench: &mut Bench, answer| {
        source.say(Say::Poll(answer));
        feed.wake(bench.now);
        assert!(!feed.ask(&mut bench.cx(), layout(false)));
        feed.due()
    };
    assert_eq!(ask(&mut feed, &mut bench, SourcePoll::Wait(at(1_500))), Some(at(1_500)));
    let soonest = bench.now + std::time::Duration::from_micros(10);
    assert_eq!(ask(&mut feed, &mut bench, SourcePoll::Wait(at(1))), Some(soonest));
    assert_eq!(ask(&mut feed, &mut bench, SourcePoll::Blocked), Some(at(1_001)));
    assert_eq!(ask(&mut feed, &mut bench, SourcePoll::Idle), None);
    assert!(!feed.is_due(at(1_000_000)), "until it is woken");
    feed.wake(at(3_000));
    feed.wake(at(4_000));
    assert_eq!(feed.due(), Some(at(3_000)), "the earlier one counts");
    assert!(!feed.is_due(at(2_999)) && feed.is_due(at(3_000)));
    assert!(!feed.has_ended());
    assert_eq!(ask(&mut feed, &mut bench, SourcePoll::End), None);
    assert!(feed.has_ended());
}

#[test]
fn a_source_that_fails_or_gives_no_whole_unit_has_ended() {
    for (say, text) in [
        (Say::Poll(SourcePoll::Failed("broken".into())), "broken"),
        (Say::Poll(SourcePoll::Unit), "the source said a unit and wrote none"),
        (Say::Half(50), "the source said a unit and wrote none"),
    ] {
        let (mut bench, source) = (Bench::new(), Scripted::new([say]));
        let mut feed = running(&source, &bench);
        assert!(!feed.ask(&mut bench.cx(), layout(false)));
        assert_eq!(feed.take_failure().as_deref(), Some(text));
        assert_eq!(feed.take_failure(), None, "once");
        assert!(feed.has_ended() && feed.is_empty() && feed.due().is_none());
        source.say(Say::Unit(vec![1]));
        assert!(!feed.ask(&mut bench.cx(), layout(false)));
        assert_eq!(bench.pool.live_views(), 0, "{text}");
    }
}

#[test]
fn a_unit_that_is_too_long_is_refused_to_the_source() {
    let (mut bench, source) = (Bench::new(), Scripted::new([Say::Unit(vec![0; 1_001])]));
    let mut feed = running(&source, &bench);
    assert!(!feed.ask(&mut bench.cx(), layout(true)));
    assert_eq!(source.log(), ["start", "TooLarge"]);
    source.say(Say::Unit(vec![0; 1_000]));
    bench.pass(ms(1));
    assert!(feed.ask(&mut bench.cx(), layout(true)));
    assert_eq!(take(&mut feed, &mut bench).len(), 1_000);
}

#[test]
fn the_source_is_held_up_at_the_bound_and_one_that_chooses_late_before() {
    let (mut bench, source) = (Bench::new(), Scripted::units(9));
    let mut feed = running(&source, &bench);
    let mut asked = 0;
    while feed.ask(&mut bench.cx(), layout(false)) {
        asked += 1;
    }
    assert_eq!((asked, feed.len(), feed.is_wanted()), (UNITS_MAX, UNITS_MAX, false));
    assert_eq!(feed.due(), None, "it is asked when there is room again");
    assert_eq!(take(&mut feed, &mut bench), vec![0; 10]);
    assert_eq!((feed.due(), feed.is_wanted()), (Some(bench.now), false));
    source.with(|script| script.chooses_late = true);
    assert_eq!((feed.due(), feed.may_give(bench.now)), (None, true));
    assert!(!feed.ask(&mut bench.cx(), layout(false)));
    take(&mut feed, &mut bench);
    assert!(feed.is_wanted(), "20 bytes wait");
    assert!(feed.ask(&mut bench.cx(), layout(false)));
    assert_eq!(take(&mut feed, &mut bench), vec![2; 10], "in order");
}

#[test]
fn what_is_handed_over_waits_behind_the_others_and_is_refused_when_the_source_would_be() {
    let (mut bench, source) = (Bench::new(), Scripted::units(1));
    let mut feed = feed(&source);
    let push = |feed: &mut Feed, bench: &mut Bench, byte: u8| {
        feed.push(&mut bench.cx(), layout(false), &[byte; 10], byte == 7)
    };
    assert!(!push(&mut feed, &mut bench, 7), "it does not run");
    feed.set_running(bench.now, true);
    assert!(feed.ask(&mut bench.cx(), layout(false)));
    assert!(push(&mut feed, &mut bench, 7) && push(&mut feed, &mut bench, 8));
    assert!(!push(&mut feed, &mut bench, 9), "30 bytes wait");
    for byte in [0, 7, 8] {
        assert_eq!(take(&mut feed, &mut bench), vec![byte; 10]);
    }
    assert!(feed.pop(&mut bench.pool, &layout(false)).unwrap().is_none());
    assert!(!feed.push(&mut bench.cx(), layout(false), &[0; 300], true), "longer than a packet");
    feed.set_suspended(bench.now, true);
    assert!(!push(&mut feed, &mut bench, 7), "nobody hears it");
    feed.set_suspended(bench.now, false);
    feed.end();
    assert!(!push(&mut feed, &mut bench, 7), "it has ended");
    feed.end_row(&mut bench.pool);
    assert!(!feed.holds_memory());
    assert_eq!(bench.pool.live_views(), 0);
}

#[test]
fn units_in_a_row_share_a_body_until_the_row_ends() {
    let (mut bench, source) = (Bench::new(), Scripted::units(3));
    let mut feed = running(&source, &bench);
    assert!(feed.ask(&mut bench.cx(), layout(false)));
    assert!(!feed.holds_memory(), "the first lies by itself");
    assert!(feed.ask(&mut bench.cx(), layout(false)));
    assert!(feed.holds_memory());
    feed.set_running(bench.now, false);
    assert!(!feed.ask(&mut bench.cx(), layout(false)));
    assert!(!feed.holds_memory(), "who is not asked gives nothing in a row");
    feed.drop_waiting(&mut bench.pool);
    assert_eq!((feed.len(), feed.is_empty(), bench.pool.live_views()), (0, true, 0));
}

#[test]
fn a_command_reaches_the_source_and_wakes_it() {
    let (bench, source) = (Bench::new(), Scripted::default());
    let mut feed = feed(&source);
    assert_eq!(feed.command(bench.now, &[1, 2]), Ok(vec![1, 2]));
    assert!(feed.is_due(bench.now) && feed.due().is_none(), "it does not run");
    assert_eq!(feed.command(bench.now, &[]).unwrap_err().0, "an empty command");
    assert_eq!(source.log(), ["command [1, 2]", "command []"]);
    assert_eq!(feed.unit_len_max(), 1_000);
}

#[test]
fn units_in_a_row_share_memory_until_the_row_ends() {
    let (mut bench, source) = (Bench::new(), Scripted::units(3));
    let mut feed = running(&source, &bench);
    for holds_memory in [false, true] {
        assert!(feed.ask(&mut bench.cx(), layout(false)));
        assert_eq!(feed.holds_memory(), holds_memory);
    }
    feed.end_row(&mut bench.pool);
    assert!(!feed.holds_memory());
    feed.wake(bench.now);
    assert!(feed.ask(&mut bench.cx(), layout(false)) && !feed.holds_memory(), "a row begins anew");
    feed.drop_waiting(&mut bench.pool);
    assert_eq!(bench.pool.live_views(), 0);
}
