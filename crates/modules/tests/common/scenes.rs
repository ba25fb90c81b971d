//! What several modules are tried by: the same flow over the same wire.

use super::{Loss, PATH_HEAD, Place, World, checked, dropped, end, hoard, ms, number, once, unit};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Illegal, ModuleSpec, Property};

/// Units of up to 3,000 bytes over a wire that loses packets one by one and reorders them come in
/// order, each once, and fewer than this part of them stay lost.
pub fn hardly_any_remain(places: &[Place<'_>], loss: f64, part: u64) {
    for seed in 0..3 {
        let mut world = World::new(places, Loss::Single(loss), ms(5), seed);
        let mut random = Random::from_number(seed);
        let count = 20_000;
        let units = (0..count).map(|number| unit(number, random.below(3_000) as usize));
        world.run(units, ms(3));
        let order: Vec<u64> = world.came.iter().map(|(_, unit)| number(unit)).collect();
        assert!(order.is_sorted_by(|a, b| a < b), "seed {seed}: twice, or out of order");
        let lost = count - order.len() as u64;
        assert!(lost < count / part, "seed {seed}: {lost} of {count} lost");
        [&mut world.a, &mut world.b].into_iter().for_each(End::flush);
    }
}

/// More than so many of 1,000 units of any length come over a wire that loses three of ten, as they
/// were sent, and nothing waits for nothing afterwards.
pub fn most_come_as_they_were(places: &[Place<'_>], of_thousand: u64) {
    for seed in 0..6 {
        let mut world = World::new(places, Loss::Single(0.3), ms(40), seed);
        let mut random = Random::from_number(seed);
        let count = 4_000;
        world.run((0..count).map(|n| unit(n, random.below(1_400) as usize)), ms(2));
        // `number` looks at every byte.
        let came = once(&world).len() as u64;
        assert!(came > count * of_thousand / 1_000, "seed {seed}: {came} of {count}");
        for end in [&world.a, &world.b] {
            assert_eq!(end.pool.live_views(), 0, "seed {seed}: something is kept for nothing");
            assert_eq!(end.runner.next_deadline(), None, "seed {seed}");
        }
    }
}

/// Where a packet of its own follows each and none may leave, 1,024 of these wait, and the packets
/// themselves go.
pub fn at_most_1024_wait(places: &[Place<'_>]) {
    let mut end = end(places, 1_000);
    for number in 0..1_500 {
        assert!(end.feed(&unit(number, 20)));
    }
    assert_eq!(end.wire().len(), 1_500);
    assert_eq!(dropped(&end, DropReason::Overflow), 1_500 - 1_024);
    end.fire();
    assert_eq!(end.wire().len(), 1_024);
    end.flush();
}

/// Where a packet of its own follows each and there is no memory, it is counted, and the packet
/// itself goes. `head` is what the module puts before it.
pub fn without_memory_none_follows(places: &[Place<'_>], head: usize) {
    let mut end = end(places, 1_000);
    let first = end.pool.packet_from(head + PATH_HEAD, &unit(0, 20), 0).unwrap();
    let hoard = hoard(&mut end);
    end.with(|runner, around| {
        runner.feed(around, first);
        runner.run(around);
    });
    assert_eq!(end.wire().len(), 1);
    end.fire();
    assert_eq!((end.wire().len(), dropped(&end, DropReason::NoMemory)), (0, 1));
    hoard.into_iter().for_each(|packet| end.pool.free(packet));
    end.flush();
}

/// A check of packets finds nothing wrong with units of several of them over a wire that loses and
/// reorders.
pub fn whole_units_come_through(check: &'static str) {
    for seed in 0..3 {
        let places: &[Place<'_>] = &[("segment", &[]), ("sequence", &[]), (check, &[])];
        let mut world = World::new(places, Loss::Single(0.02), ms(10), seed);
        let mut random = Random::from_number(seed);
        let units = (0..2_000).map(|number| unit(number, random.below(9_000) as usize));
        world.run(units, ms(2));
        let came = once(&world);
        assert!(came.len() > 1_700, "seed {seed}: {}", came.len());
        assert!(came.last().is_some_and(|number| *number < 2_000));
        let at = DropReason::Checksum.index();
        let altered = world.b.runner.modules().map(|(_, counters)| counters.up.dropped[at]);
        assert_eq!(altered.sum::<u64>(), 0, "seed {seed}");
    }
}

/// A second check of packets, which is taken only where it is named.
pub fn is_a_check_by_name_only(spec: &'static ModuleSpec) {
    let (setting, _) = super::lossy(0, 1_000, ms(5));
    assert!(!spec.profile.suits(&setting));
    let both = &[("segment", &[][..]), (spec.name, &[]), ("checksum", &[])];
    let said = checked(both, &[Property::Boundaries]);
    assert!(matches!(said, Err(Illegal::SameFunction { node: 2, .. })), "{said:?}");
}
