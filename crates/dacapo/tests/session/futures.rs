//! Programs on tokio: turns are awaited, and who stops waiting has lost nothing.

use crate::world::{TWO_WAY, active_pair, unit, watched};
use dacapo::{AsyncEndpoint, Command, Event, FlowReceiver, Session};
use dacapo_base::Random;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const UNITS: usize = 5_000;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Takes units until so many have come; `most_us`: how long it waits at most before it drops the
/// future and begins anew.
async fn take(endpoint: &mut AsyncEndpoint, flow: &FlowReceiver, most_us: impl Fn(usize) -> u64) {
    let mut came = 0;
    while came < UNITS {
        let most = Duration::from_micros(most_us(came));
        // Dropped before it is ready, or not.
        if let Ok(ready) = tokio::time::timeout(most, endpoint.ready()).await {
            ready.unwrap();
        }
        while let Some(got) = endpoint.poll_unit(flow.id()) {
            assert_eq!(&*got, unit(came), "each once, in order");
            came += 1;
        }
        while endpoint.poll_event().is_some() {}
    }
}

/// Units go to a task that waits at most so long each time.
fn units_go(most_us: impl Fn(usize) -> u64) -> (Session, Session) {
    let (creator, participant) = active_pair(TWO_WAY);
    let mut there = creator.sender("there").unwrap();
    let sends = std::thread::spawn(move || {
        (0..UNITS).for_each(|number| there.send(&unit(number)).unwrap());
        there
    });
    let flow = participant.receiver("there").unwrap();
    runtime().block_on(async {
        let endpoint = participant.endpoint().clone();
        let mut endpoint = AsyncEndpoint::new(endpoint).unwrap();
        take(&mut endpoint, &flow, most_us).await;
    });
    drop(sends.join().unwrap());
    (creator, participant)
}

#[test]
fn a_task_gets_every_unit_and_sleeps_between_them() {
    watched(|| {
        let (creator, participant) = units_go(|_| 60_000_000);
        runtime().block_on(async {
            let mut endpoint = AsyncEndpoint::new(participant.endpoint().clone()).unwrap();
            while endpoint.poll_event().is_some() {}
            let nothing = tokio::time::timeout(Duration::from_millis(100), endpoint.ready()).await;
            assert!(nothing.is_err(), "nothing is there");
            creator.sender("there").unwrap().finish().unwrap();
            let ended = loop {
                endpoint.ready().await.unwrap();
                if let Some((_, Event::FlowEnded { account })) = endpoint.poll_event() {
                    break account;
                }
            };
            assert_eq!(ended.ledger.delivered, UNITS as u64);
            endpoint.command(Command::Close(participant.id())).unwrap();
            let outcome = loop {
                endpoint.ready().await.unwrap();
                if let Some((_, Event::Done { outcome, .. })) = endpoint.poll_event() {
                    break outcome;
                }
            };
            assert!(outcome.is_ok(), "{outcome:?}");
            assert_eq!(endpoint.into_inner().open_tickets(), 0);
        });
    });
}

#[test]
fn a_future_that_is_dropped_loses_no_unit() {
    watched(|| {
        dacapo_base::seeds::each_seed(0..2, |seed| {
            let random = std::cell::RefCell::new(Random::from_number(seed));
            drop(units_go(|_| random.borrow_mut().below(300)));
        });
    });
}
