//! What modules are tried by that compute lost packets of sums of others.

use super::alone::Alone;
use super::{Place, checked, dropped, end, lossy, ms, number, tell, unit};
use dacapo_base::Random;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, ModuleSpec, PPB, Params, Properties, Property, Runner};
use dacapo_wire::sliding::Header;
use std::collections::BTreeSet;
use std::time::Duration;

/// It stands below `sequence` and takes order away and nothing else, and no second one stands
/// beside it.
pub fn it_takes_order_away(spec: &'static ModuleSpec) {
    let own = (spec.name, &[][..]);
    let other = if spec.name == "fec-rs" { "fec-rlc" } else { "fec-rs" };
    let properties = &[Property::Boundaries, Property::Order, Property::NoDuplicates];
    let checked = |places: &[Place<'_>]| checked(places, properties);
    assert_eq!(checked(&[("segment", &[]), ("sequence", &[]), own]), Ok(()));
    let illegal = checked(&[("segment", &[]), own, ("sequence", &[])]).unwrap_err();
    let text = format!("\"{}\" must stand below \"sequence\", which does ordering", spec.name);
    assert_eq!(illegal.to_string(), text);
    assert!(checked(&[own, (other, &[])]).is_err(), "two of one function");
    let above = spec.above(&[], Properties::of(properties));
    assert_eq!(above, Properties::of(&[Property::Boundaries, Property::NoDuplicates]));
}

/// As much is lost of what is of use for so long as is predicted, by the points that are proposed
/// and these, over paths that lose one by one and in runs.
pub fn as_much_is_lost_as_is_predicted(
    spec: &'static ModuleSpec,
    useful_ns: u64,
    further: &[Params],
) {
    for (loss_ppb, burst_milli) in
        [(50_000_000, 1_000), (20_000_000, 5_000), (100_000_000, 3_000), (5_000_000, 10_000)]
    {
        let every = ms(2);
        let (mut setting, below) = lossy(loss_ppb, burst_milli, every);
        setting.useful_ns = useful_ns;
        let mut tried = spec.profile.points(&setting, &below);
        tried.extend(further.iter().cloned());
        for params in tried {
            let alone = Alone { spec, params, loss_ppb, burst_milli, every, seed: 7 };
            alone.loses_as_much_of_use(useful_ns);
        }
    }
}

/// A path and a flow that a seed draws, and parameters by the same chances.
pub fn drawn(
    spec: &'static ModuleSpec,
    seed: u64,
    params: impl FnOnce(&mut Random) -> Params,
) -> Alone {
    let mut random = Random::from_number(seed);
    let every = Duration::from_micros(1_000 + random.below(9_000));
    let loss_ppb = 1_000_000 + random.below(PPB / 10);
    let burst_milli = 1_000 + random.below(2) * random.below(7_000);
    let params = params(&mut random);
    Alone { spec, params, loss_ppb, burst_milli, every, seed }
}

/// Two ends after six units, of which the first and the last were lost, and what the graph had for
/// them when it was drained: so many sums, and nothing later. The units that came, in order.
pub fn drained(place: Place<'_>, sums: usize) -> (End, End, Vec<u64>) {
    let (mut a, mut b) = (end(&[place], 1_000), end(&[(place.0, &[])], 1_000));
    for number in 0..6 {
        assert!(a.feed(&unit(number, 20 + number as usize)));
        a.now += ms(3);
    }
    let sources = a.wire();
    a.with(Runner::drain);
    let last = a.wire();
    assert_eq!((sources.len(), last.len(), a.runner.next_deadline()), (6, sums, None));
    sources[1..5].iter().chain(&last).for_each(|it| assert!(b.handle_bytes(it)));
    let came: Vec<u64> = b.units().iter().map(|unit| number(unit)).collect();
    assert_eq!(came.iter().copied().collect::<BTreeSet<_>>(), (0..6).collect());
    (a, b, came)
}

/// Whether a module of the end shows this figure.
pub fn shows(end: &End, code: u16, value: i64) -> bool {
    end.runner.notes().iter().any(|note| (note.code, note.value) == (code, value))
}

/// All of 400 units come though some are lost, and parameters are set after some of them: `is_lost`
/// is asked of each datagram, by its place among those that leave together; `settings` are the
/// messages after a unit.
pub fn parameters_change_while_it_runs(
    place: Place<'_>,
    is_lost: impl Fn(usize, &[u8]) -> bool,
    settings: impl Fn(u64) -> Vec<(u8, u64)>,
) {
    let (mut a, mut b) = (end(&[place], 1_000), end(&[(place.0, &[])], 1_000));
    let mut came = BTreeSet::new();
    for sent in 0..400 {
        assert!(a.feed(&unit(sent, 20)));
        a.fire();
        let carried = a.wire().into_iter().enumerate().filter(|(at, it)| !is_lost(*at, it));
        carried.for_each(|(_, datagram)| assert!(b.handle_bytes(&datagram)));
        came.extend(b.units().iter().map(|unit| number(unit)));
        settings(sent).into_iter().for_each(|(code, value)| tell(&mut a, code, value));
    }
    a.with(Runner::drain);
    a.wire().iter().for_each(|it| assert!(b.handle_bytes(it)));
    came.extend(b.units().iter().map(|unit| number(unit)));
    assert_eq!(came, (0..400).collect());
    [&mut a, &mut b].into_iter().for_each(End::flush);
}

/// Of a unit of ten packets: the headers of the sums behind it, which leave as one train.
pub fn train_behind_ten(place: Place<'_>) -> Vec<Header> {
    let mut end = end(&[("segment", &[]), place], 20_000);
    assert!(end.feed(&unit(7, 14_000)));
    let sources: Vec<_> = end.wire().iter().map(|it| Header::parse(it).unwrap().number).collect();
    assert_eq!(sources, (0..10).collect::<Vec<_>>());
    end.fire();
    let trains: Vec<_> = end.runner.take_down().drain().collect();
    assert_eq!(trains.len(), 1);
    let of = |at| Header::parse(end.pool.segment(&trains[0], at)).unwrap();
    let sums = (0..trains[0].segment_count()).map(of).collect();
    trains.into_iter().for_each(|it| end.pool.free(it));
    end.flush();
    sums
}

/// A source of three bytes, as it is on the network.
pub fn source(number: u64) -> Vec<u8> {
    [&Header::source(number, 3).emit()[..], b"abc"].concat()
}

/// A sum that no peer makes, of so many sources up to `last`.
pub fn sum(last: u32, sources: u8, key: u8, len: usize) -> Vec<u8> {
    let header = Header { number: last, sources, key, length: 0xFFFF };
    [&header.emit()[..], &vec![0xFF; len]].concat()
}

/// A source far ahead is not believed alone, and one far behind is late; then nothing is kept. So
/// many were not believed before.
pub fn what_is_far_is_not_believed(mut b: End, before: u64) {
    assert!(b.handle_bytes(&source(1_000_000)));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Overflow)), (0, before + 1));
    assert!(b.handle_bytes(&source(1_000_001)));
    assert_eq!(b.units().len(), 1);
    assert!(b.handle_bytes(&source(3)));
    assert_eq!((b.units().len(), dropped(&b, DropReason::Stale)), (0, 1));
    for _ in 0..2 {
        b.now += ms(3_000);
        b.fire();
    }
    assert_eq!((b.pool.live_views(), b.runner.next_deadline()), (0, None));
    b.flush();
}

/// Whatever comes in whatever order, no more views than this are kept; `any` makes a datagram about
/// a number.
pub fn what_is_kept_is_bounded(
    place: Place<'_>,
    views_max: usize,
    any: impl Fn(&mut Random, u64) -> Vec<u8>,
) {
    for seed in 0..20 {
        let mut random = Random::from_number(seed);
        let mut b = end(&[place], 1_000);
        let mut at = 0;
        for _ in 0..3_000 {
            at += random.below(4);
            let number = (at + random.below(300)).saturating_sub(random.below(300));
            let bytes = any(&mut random, number);
            assert!(b.handle_bytes(&bytes));
            b.units();
            assert!(b.pool.live_views() <= views_max, "{} views", b.pool.live_views());
            b.now += Duration::from_micros(random.below(300));
            b.fire();
        }
        b.flush();
    }
}
