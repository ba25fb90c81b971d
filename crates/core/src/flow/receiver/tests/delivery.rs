//! The delivery part of a receiver, in each of its states.

use crate::flow::chain::Chain;
use crate::flow::epoch::Arrived;
use crate::flow::receiver::delivery::Delivery;
use crate::flow::tests::{Basket, Bench, at};
use crate::ledger::Ledger;
use crate::port::{Ending, Sink, Taken, UnitView};
use dacapo_base::Time;
use std::time::Duration;

/// Passes a unit; what became of it, and whether it was shown.
fn pass(delivery: &mut Delivery, now: Time, place: u64, use_by: Option<Time>) -> (Taken, bool) {
    let mut bench = Bench::new();
    bench.now = now;
    let chain = Chain::default();
    let mut unit = Arrived { epoch: 0, chain, place, time: now, use_by, waits_for_room: false };
    let mut is_shown = false;
    let taken = delivery.pass(&mut bench.cx(), place, &mut unit, true, |_, _| is_shown = true);
    (taken, is_shown)
}

#[test]
fn a_sink_is_asked_when_it_is_due_and_after_each_unit_and_loss() {
    let basket = Basket::new();
    let mut delivery = Delivery::new(basket.boxed(), at(10));
    assert_eq!(delivery.due(), Some(at(10)));
    delivery.handle_timeout(at(9));
    assert_eq!(basket.with(|seen| seen.asked), 0, "not before its time");
    basket.with(|seen| seen.ask_at = Some(at(50)));
    delivery.handle_timeout(at(10));
    assert_eq!((basket.with(|seen| seen.asked), delivery.due()), (1, Some(at(50))));
    basket.with(|seen| seen.ask_at = Some(at(1)));
    delivery.handle_timeout(at(50));
    let soonest = at(50) + Duration::from_micros(10);
    assert_eq!(delivery.due(), Some(soonest), "a time that is past does not hold the core");
    basket.with(|seen| seen.ask_at = None);
    delivery.handle_timeout(at(60));
    assert_eq!(delivery.due(), None);
    delivery.handle_timeout(at(1_000));
    assert_eq!(basket.with(|seen| seen.asked), 3);

    basket.with(|seen| seen.takes = Taken::Late);
    assert_eq!(pass(&mut delivery, at(70), 4, None), (Taken::Late, true));
    assert_eq!((delivery.due(), basket.numbers()), (Some(at(70)), vec![4]));
    delivery.handle_timeout(at(70));
    delivery.handle_lost(at(80), 5, 2);
    assert_eq!((delivery.due(), basket.lost()), (Some(at(80)), vec![(5, 2)]));
}

#[test]
fn what_is_no_longer_of_use_is_lost_to_the_sink_and_late_in_the_account() {
    let basket = Basket::new();
    let mut delivery = Delivery::new(basket.boxed(), at(10));
    assert_eq!(pass(&mut delivery, at(70), 4, Some(at(70))), (Taken::Delivered, true));
    assert_eq!(pass(&mut delivery, at(71), 5, Some(at(70))), (Taken::Late, false));
    assert_eq!((basket.numbers(), basket.lost()), (vec![4], vec![(5, 1)]));
    assert_eq!(delivery.due(), Some(at(71)));
}

#[test]
fn a_sink_is_finished_once_and_asked_no_more() {
    let basket = Basket::new();
    let mut delivery = Delivery::new(basket.boxed(), at(10));
    assert!(delivery.has_capacity());
    basket.with(|seen| seen.has_capacity = false);
    assert!(!delivery.has_capacity());
    delivery.finish(at(20), &Ending::Complete, &Ledger::default());
    delivery.finish(at(30), &Ending::Closed, &Ledger::default());
    assert_eq!(basket.ending(), Some(Ending::Complete));
    delivery.handle_timeout(at(40));
    assert_eq!((delivery.due(), basket.with(|seen| seen.asked)), (None, 0));
}

struct Panics;

impl Sink for Panics {
    fn handle_unit(&mut self, _: dacapo_base::Time, _: &UnitView<'_>) -> Taken {
        panic!("its word")
    }

    fn failure(&self) -> Option<String> {
        Some("the disk is full".into())
    }
}

#[test]
fn what_a_sink_says_when_it_fails_or_panics_is_passed_on() {
    let mut delivery = Delivery::new(Box::new(Panics), at(10));
    assert_eq!(delivery.panicked(), None);
    assert_eq!(delivery.failure().as_deref(), Some("the disk is full"));
    pass(&mut delivery, at(10), 0, None);
    assert_eq!(delivery.panicked(), Some("it panicked: its word"));
}
