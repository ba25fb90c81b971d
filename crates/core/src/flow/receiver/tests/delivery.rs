//! The delivery part of a receiver, in each of its states.

use crate::flow::chain::Chain;
use crate::flow::receiver::delivery::Delivery;
use crate::flow::tests::{Basket, at};
use crate::ledger::Ledger;
use crate::port::{Ending, Sink, Taken, UnitView};
use dacapo_packet::Pool;
use std::time::Duration;

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

    let (pool, chain) = (Pool::new(1 << 16), Chain::default());
    let unit = UnitView { pool: &pool, chain: &chain, number: 4, arrived: at(70) };
    basket.with(|seen| seen.takes = Taken::Late);
    assert_eq!(delivery.handle_unit(at(70), &unit), Taken::Late);
    assert_eq!((delivery.due(), basket.numbers()), (Some(at(70)), vec![4]));
    delivery.handle_timeout(at(70));
    delivery.handle_lost(at(80), 5, 2);
    assert_eq!((delivery.due(), basket.lost()), (Some(at(80)), vec![(5, 2)]));
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
    let (pool, chain) = (Pool::new(1 << 16), Chain::default());
    let unit = UnitView { pool: &pool, chain: &chain, number: 0, arrived: at(10) };
    delivery.handle_unit(at(10), &unit);
    assert_eq!(delivery.panicked(), Some("it panicked: its word"));
}
