//! Paths with controllers share one bottleneck: it is filled, not flooded, and shared.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

mod bbr;
mod cubic;
mod reno;
mod scream;
mod world;

use dacapo_base::Time;
use dacapo_path::ControllerEntry;
use std::time::Duration;
use world::{World, jain};

const fn s(s: u64) -> Duration {
    Duration::from_secs(s)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 40 Mbit/s, 20 ms there and back; `queue` packets wait at most. 71 are under way when it is full.
fn link(queue: usize) -> String {
    format!("rate=40Mbit/s,delay=10ms,queue={queue}")
}

const LINK: f64 = 40e6;

/// One path over a link.
fn alone(link: &str, entry: &ControllerEntry) -> World {
    let mut world = World::new(link);
    world.add(entry, Time::ZERO, ms(10));
    world
}

/// What a path alone has of the link, and loses, in half a minute after so long.
fn share_alone(link: &str, entry: &ControllerEntry, after: Duration) -> (f64, f64) {
    let mut world = alone(link, entry);
    world.run(after);
    let (rates, lost) = world.measure(s(30));
    let share = rates[0] / LINK;
    println!("{link}: {share:.3} of the link, {:.3} % lost", lost * 100.0);
    (share, lost)
}

/// What paths get that began so many ms apart, and what is lost; the link is full.
fn together(entry: &ControllerEntry, count: u64, apart: u64) -> (Vec<f64>, f64) {
    let mut world = World::new(&link(100));
    for at in 0..count {
        world.add(entry, Time::from_millis(at * apart), ms(10));
    }
    world.run(s(30));
    let (rates, lost) = world.measure(s(60));
    let (even, sum) = (jain(&rates), rates.iter().sum::<f64>() / LINK);
    let name = entry.spec.name;
    println!("{count} {name}, {apart} ms apart: Jain {even:.3}, {:.2} % lost", lost * 100.0);
    assert!(sum > 0.95, "{rates:?}");
    (rates, lost)
}

/// What paths of 20 and 80 ms get. A link of which all times are the same to the nanosecond drops
/// what comes between the packets of who keeps its queue full, whose next one comes as one has left
/// (Floyd and Jacobson, "Traffic Phase Effects in Packet-Switched Gateways", 1991): a packet's time
/// of jitter, which every network has, is the end of that.
fn near_and_far(entry: &ControllerEntry, queue: usize) -> Vec<f64> {
    let mut world = World::new(&format!("{},jitter=300us", link(queue)));
    world.add(entry, Time::ZERO, ms(10));
    world.add(entry, Time::ZERO, ms(70));
    world.run(s(30));
    let (rates, _) = world.measure(s(120));
    println!("20 and 80 ms, queue {queue}: Jain {:.3}, {rates:.0?}", jain(&rates));
    rates
}

/// How many times what the other gets one gets beside it; neither starves.
fn beside(one: &ControllerEntry, other: &ControllerEntry, queue: usize) {
    let mut world = alone(&link(queue), one);
    world.add(other, Time::ZERO, ms(10));
    world.run(s(20));
    let (rates, lost) = world.measure(s(60));
    let ratio = rates[0] / rates[1];
    let names = (one.spec.name, other.spec.name);
    println!("{names:?}, queue {queue}: {ratio:.2} times, {:.3} % lost", lost * 100.0);
    assert!((0.5..=2.0).contains(&ratio), "{ratio:.2}");
}
