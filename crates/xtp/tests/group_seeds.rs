//! Reliable groups over links with every fault: one to four members, each with links of its own and
//! some of them late. Who stays to the end has every byte; who is cut off is reported, and holds up
//! the others for no longer than the policy says.
//!
//! A seed that fails prints the command that repeats it. `XTP_SEEDS` says how many there are.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::group::GroupWorld;
use common::seeds::{config, each, mode};
use common::way::link;
use dacapo_base::{Random, Time};
use dacapo_link::Loss;
use dacapo_xtp::wire::Limits;
use dacapo_xtp::{End, GroupPolicy, Leaving, Mode, Retransmission};
use std::time::Duration;

fn data(random: &mut Random, len_max: u64) -> Vec<u8> {
    let mut data = vec![0; 1 + random.below(len_max) as usize];
    random.fill(&mut data);
    data
}

/// A world with `count` listeners, each with a mode of its own.
fn world(seed: u64, random: &mut Random, count: usize, loss: f64) -> GroupWorld {
    let (config, mut link) = (config(random), link(random));
    link.loss = Loss::Random { p: random.unit() * loss };
    let modes: Vec<Mode> = (0..count).map(|_| mode(random)).collect();
    // Who keeps nothing behind a gap gets two packets of a shuffled window, and asks for the rest.
    link.keep_order |= modes.iter().any(|mode| mode.retransmission == Retransmission::GoBackN);
    let mut world = GroupWorld::new(seed, config, &link, data(random, 60_000));
    modes.into_iter().for_each(|mode| world.listen(mode));
    world
}

/// Nobody is given up: what is tested is that everybody gets everything.
fn patient(count: usize) -> GroupPolicy {
    GroupPolicy { patience: Duration::from_secs(100_000), ..GroupPolicy::all_of(count) }
}

fn run_whole(seed: u64) -> u64 {
    let hint = format!("seed {seed}: XTP_SEED={seed} cargo test -p dacapo-xtp --test group_seeds");
    let random = &mut Random::from_number(seed);
    let count = 1 + random.below(4) as usize;
    let mut world = world(seed, random, count, 0.3);
    let mode = Mode { fast_report: random.chance(0.7), ..mode(random) };
    world.open(mode, &patient(count));
    world.run();
    assert_eq!(world.end(), Some(End::Complete), "{hint}: {:?}", world.events);
    for number in 0..count {
        let got = world.check_bytes(number, 0, &hint);
        assert_eq!(got, world.data.len(), "{hint}: member {number} of {count}");
        assert_eq!(world.hearers[number].end, Some(End::Complete), "{hint}: member {number}");
        assert_eq!(world.left_as(number), Some(Leaving::Complete), "{hint}: member {number}");
    }
    world.check_sums(&hint);
    clean_up(&mut world, &hint);
    world.sent.len() as u64
}

/// When all is released nothing is left, at either end.
fn clean_up(world: &mut GroupWorld, hint: &str) {
    let id = world.id();
    world.engine.release(world.now, id).unwrap();
    for hearer in &mut world.hearers {
        if let Some(id) = hearer.id {
            hearer.engine.release(world.now, id).unwrap();
        }
    }
    world.run();
    let engines = world.hearers.iter().map(|hearer| &hearer.engine).chain([&world.engine]);
    for engine in engines {
        let left = (engine.context_count(), engine.inactive_count());
        assert_eq!(left, (0, 0), "{hint}");
    }
}

#[test]
fn every_member_of_a_group_over_bad_links_gets_every_byte() {
    each("groups", run_whole);
}

const PATIENCE: Duration = Duration::from_secs(30);

/// What happens to a hearer in the middle.
fn disturb(world: &mut GroupWorld, random: &mut Random, number: usize) {
    let now = world.now;
    let hearer = &mut world.hearers[number];
    match (random.below(4), hearer.id) {
        (0, _) => hearer.is_cut = true,
        (1, _) => hearer.is_idle = true,
        (2, Some(id)) => hearer.engine.abort(now, id).unwrap(),
        (3, Some(id)) => {
            hearer.is_idle = true;
            hearer.engine.stop_reading(now, id).unwrap();
        }
        _ => {}
    }
}

/// Members die, sleep, leave and join late; the first one is left in peace.
fn run_churn(seed: u64) -> u64 {
    let hint = format!("seed {seed}: XTP_SEED={seed} cargo test -p dacapo-xtp --test group_seeds");
    let random = &mut Random::from_number(seed);
    let count = 2 + random.below(3) as usize;
    let mut world = world(seed, random, count, 0.1);
    let policy = GroupPolicy { members_first: count, patience: PATIENCE, ..GroupPolicy::default() };
    world.message_len = random.chance(0.7).then(|| 200 + random.below(3_000) as usize);
    let limits = Limits { out_rate: 100_000, out_burst: 3_000, ..Limits::default() };
    world.open(Mode { limits, ..mode(random) }, &policy);
    while world.joined().len() < count {
        assert!(world.turn(Time::NEVER), "{hint}: {:?}", world.events);
    }
    for number in 1..count {
        world.pass(Duration::from_millis(random.below(300)));
        if random.chance(0.5) {
            world.join(mode(random));
        }
        if random.chance(0.7) {
            disturb(&mut world, random, number);
        }
    }
    world.run();
    assert_eq!(world.end(), Some(End::Complete), "{hint}: {:?}", world.events);
    for number in 0..world.hearers.len() {
        check_one(&world, number, &hint);
    }
    assert_eq!(world.left_as(0), Some(Leaving::Complete), "{hint}");
    // Each of those who hold up the others does so for its time at most, and the rest is as quick
    // as the link lets it be.
    let limit = PATIENCE * (count as u32) + Duration::from_secs(60);
    let took = world.ended_at.unwrap().since(Time::ZERO);
    assert!(took < limit, "{hint}: {took:?}, {:?}", world.events);
    world.check_sums(&hint);
    clean_up(&mut world, &hint);
    world.sent.len() as u64
}

/// What one has is a piece of the stream, from where it was admitted; who is said to have
/// everything has it, and nobody has less than the transmitter believes.
fn check_one(world: &GroupWorld, number: usize, hint: &str) {
    let hint = &format!("{hint}: member {number}: {:?}", world.parting(number));
    let Some((member, how)) = world.parting(number) else {
        return assert!(world.hearers[number].got.is_empty(), "{hint}");
    };
    let got = world.check_bytes(number, member.start as usize, hint) as u64;
    let hearer = &world.hearers[number];
    if how == Leaving::Complete && !hearer.is_idle {
        assert_eq!(member.start + got, world.data.len() as u64, "{hint}");
    }
    assert!(hearer.is_idle || got >= member.received(), "{hint}: {got}");
}

#[test]
fn members_that_come_and_go_do_not_disturb_the_others() {
    each("members that come and go", run_churn);
}
