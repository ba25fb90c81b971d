//! Behaviour of the playout clock in virtual time.

#![allow(clippy::arithmetic_side_effects, reason = "what overflows fails the test")]

use super::*;
use dacapo_base::Random;

const PICTURE_NS: u64 = 40_000_000;

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn playout() -> Playout {
    Playout::new(Config::default())
}

/// The arrival of picture `index` of a generation, at 25 pictures a second.
fn arrive(playout: &mut Playout, now: Time, generation: u32, index: u64) -> Verdict {
    playout.handle_arrival(now, generation, index.wrapping_mul(PICTURE_NS), index)
}

#[test]
fn jitter_within_the_budget_is_invisible() {
    for seed in 0..200 {
        let mut random = Random::from_number(seed);
        let mut playout = playout();
        let first = arrive(&mut playout, ms(1_000), 0, 0);
        assert_eq!(first, Verdict::Show { at: ms(1_100) });
        for index in 1..500 {
            let now = ms(1_000 + 40 * index + random.below(101));
            let expected = Verdict::Show { at: ms(1_100 + 40 * index) };
            assert_eq!(arrive(&mut playout, now, 0, index), expected, "seed {seed}");
        }
        let stats = playout.stats();
        assert_eq!((stats.shown, stats.late, stats.lateness.count), (500, 0, 500), "seed {seed}");
        assert!(stats.lateness.ns_max <= 0 && stats.lateness.ns_min >= -100_000_000);
    }
}

#[test]
fn what_is_shown_is_never_in_the_past_and_everything_is_counted_once() {
    for seed in 0..500 {
        let mut random = Random::from_number(seed);
        let mut playout = playout();
        let mut now = ms(random.below(10_000));
        for _ in 0..300 {
            now += Duration::from_nanos(random.below(3 * PICTURE_NS));
            let generation = random.below(4) as u32;
            let verdict = arrive(&mut playout, now, generation, random.below(200));
            if let Verdict::Show { at } = verdict {
                assert!(at >= now, "seed {seed}");
                assert_eq!(playout.generation(), Some(generation), "seed {seed}");
            }
        }
        let s = playout.stats();
        assert_eq!(s.shown + s.late + s.early + s.stale + s.duplicates, 300, "seed {seed}");
    }
}

#[test]
fn a_late_picture_is_skipped_and_the_previous_one_stays() {
    let mut playout = playout();
    arrive(&mut playout, ms(0), 0, 0);
    let verdict = arrive(&mut playout, ms(147), 0, 1);
    assert_eq!(verdict, Verdict::Late { by: Duration::from_millis(7) });
    let stats = playout.stats();
    assert_eq!((stats.shown, stats.late, stats.repeated), (1, 1, 1));
    assert_eq!(stats.lateness.ns_max, 7_000_000);
}

#[test]
fn a_gap_counts_as_lost_and_repeated() {
    let mut playout = playout();
    arrive(&mut playout, ms(0), 0, 0);
    playout.handle_gap(3);
    assert_eq!(arrive(&mut playout, ms(160), 0, 4), Verdict::Show { at: ms(260) });
    let stats = playout.stats();
    assert_eq!((stats.shown, stats.lost, stats.repeated), (2, 3, 3));
}

#[test]
fn a_picture_that_overtook_the_first_one_is_shown_in_its_place() {
    let mut playout = playout();
    assert_eq!(arrive(&mut playout, ms(0), 0, 1), Verdict::Show { at: ms(100) });
    assert_eq!(arrive(&mut playout, ms(1), 0, 0), Verdict::Show { at: ms(60) });
}

#[test]
fn after_a_jump_nothing_older_is_shown() {
    let mut playout = playout();
    arrive(&mut playout, ms(0), 7, 0);
    playout.jump(8);
    assert_eq!(arrive(&mut playout, ms(40), 7, 1), Verdict::Stale);
    assert_eq!(arrive(&mut playout, ms(50), 8, 5_000), Verdict::Show { at: ms(150) });
    assert_eq!(arrive(&mut playout, ms(51), 7, 2), Verdict::Stale);
    playout.jump(3);
    assert_eq!(playout.generation(), Some(8));
    assert_eq!(playout.stats().stale, 2);
}

#[test]
fn a_newer_generation_jumps_by_itself() {
    let mut playout = playout();
    arrive(&mut playout, ms(0), 0, 100);
    assert_eq!(arrive(&mut playout, ms(10), 1, 3), Verdict::Show { at: ms(110) });
    assert_eq!(arrive(&mut playout, ms(10), 0, 101), Verdict::Stale);
}

#[test]
fn generations_indexes_and_media_time_wrap_around() {
    let mut playout = playout();
    let first = playout.handle_arrival(ms(0), u32::MAX, u64::MAX - PICTURE_NS + 1, u64::MAX);
    assert_eq!(first, Verdict::Show { at: ms(100) });
    assert_eq!(playout.handle_arrival(ms(40), u32::MAX, 0, 0), Verdict::Show { at: ms(140) });
    assert_eq!(arrive(&mut playout, ms(80), 0, 9), Verdict::Show { at: ms(180) });
    assert_eq!(arrive(&mut playout, ms(81), u32::MAX, 1), Verdict::Stale);
}

#[test]
fn the_end_of_the_clock_saturates() {
    let mut playout = playout();
    let now = Time::NEVER - Duration::from_millis(10);
    assert_eq!(arrive(&mut playout, now, 0, 0), Verdict::Show { at: Time::NEVER });
    assert_eq!(arrive(&mut playout, now, 0, 1), Verdict::Show { at: Time::NEVER });
}

#[test]
fn the_same_picture_twice_is_shown_once() {
    let mut playout = playout();
    arrive(&mut playout, ms(0), 0, 0);
    arrive(&mut playout, ms(40), 0, 1);
    assert_eq!(arrive(&mut playout, ms(41), 0, 0), Verdict::Duplicate);
    assert_eq!(arrive(&mut playout, ms(42), 0, 1), Verdict::Duplicate);
    assert_eq!(playout.stats().duplicates, 2);
}

#[test]
fn a_burst_of_late_pictures_costs_no_more_than_the_limit() {
    let mut playout = playout();
    arrive(&mut playout, ms(0), 0, 0);
    // The sender paused for a minute: all further pictures are a minute late.
    let verdicts: Vec<_> =
        (1..100).map(|index| arrive(&mut playout, ms(60_000 + 40 * index), 0, index)).collect();
    let shown = verdicts.iter().filter(|v| matches!(v, Verdict::Show { .. })).count();
    assert_eq!(shown, 75);
    let stats = playout.stats();
    assert_eq!((stats.late, stats.resyncs), (24, 1));
    assert_eq!(verdicts[24], Verdict::Show { at: ms(61_100) });
}

#[test]
fn a_short_burst_of_late_pictures_does_not_move_the_clock() {
    let mut playout = playout();
    for index in 0..100 {
        let delay = if (40..60).contains(&index) { 150 } else { 0 };
        arrive(&mut playout, ms(40 * index + delay), 0, index);
    }
    let stats = playout.stats();
    assert_eq!((stats.shown, stats.late, stats.resyncs), (80, 20, 0));
    assert_eq!(playout.show_time(0), Some(ms(100)));
}

#[test]
fn one_wild_time_stamp_is_refused_and_harmless() {
    let mut playout = playout();
    arrive(&mut playout, ms(0), 0, 0);
    let wild = playout.handle_arrival(ms(40), 0, u64::MAX / 2, 1);
    assert!(matches!(wild, Verdict::Early { .. }));
    assert_eq!(arrive(&mut playout, ms(80), 0, 2), Verdict::Show { at: ms(180) });
    assert_eq!(playout.stats().early, 1);
}

#[test]
fn double_speed_shows_twice_as_fast_and_backward_runs_the_other_way() {
    let speed = |permille| Speed::from_permille(permille).unwrap();
    let mut fast = Playout::new(Config { speed: speed(2_000), ..Config::default() });
    arrive(&mut fast, ms(0), 0, 0);
    assert_eq!(arrive(&mut fast, ms(1), 0, 2), Verdict::Show { at: ms(140) });
    let mut back = Playout::new(Config { speed: speed(-1_000), ..Config::default() });
    arrive(&mut back, ms(0), 0, 50);
    assert_eq!(arrive(&mut back, ms(1), 0, 49), Verdict::Show { at: ms(140) });
    assert_eq!(Speed::from_permille(0), None);
    assert_eq!(Speed::from_permille(i32::MIN), None);
}

#[test]
fn a_change_of_speed_keeps_what_is_shown_now() {
    let mut playout = playout();
    arrive(&mut playout, ms(0), 0, 0);
    // At 300 ms, 200 ms of media have been shown: picture 5 is due now.
    playout.set_speed(ms(300), Speed::from_permille(4_000).unwrap());
    assert_eq!(playout.show_time(5 * PICTURE_NS), Some(ms(300)));
    assert_eq!(playout.show_time(9 * PICTURE_NS), Some(ms(340)));
}

#[test]
fn a_change_of_speed_keeps_what_is_shown_now_after_the_clocks_have_drifted() {
    let mut playout = playout();
    for index in 0..25 * 120 {
        let longer = if index < 500 { 0 } else { 30 };
        arrive(&mut playout, ms(40 * index + longer), 0, index);
    }
    assert!(playout.stats().moved_ns > 29_000_000);
    let media_ns = 3_000 * PICTURE_NS;
    let now = playout.show_time(media_ns).unwrap();
    for permille in [2_000, -1_000, 500] {
        playout.set_speed(now, Speed::from_permille(permille).unwrap());
        assert_eq!(playout.show_time(media_ns), Some(now), "{permille}");
    }
}

/// What becomes of an hour of 25 pictures a second whose sender's clock is so much faster.
struct Drifted {
    stats: PlayoutStats,
    /// How long after the least arrival the last picture is shown.
    hold: Duration,
    /// The most by which the time between two pictures differs from 40 ms.
    step: Duration,
}

#[allow(clippy::arithmetic_side_effects)]
fn drifted(ppm: i64, jitter_ms: u64, seed: u64) -> Drifted {
    let mut random = Random::from_number(seed);
    let mut playout = playout();
    let (mut last, mut step, mut hold) = (None, Duration::ZERO, Duration::ZERO);
    for index in 0..25 * 3_600 {
        // A clock that is 500 ppm faster says 40 ms when 39.98 have passed.
        let sent = index as i64 * (40_000_000 - 40 * ppm);
        let least = ms(5_000) + Duration::from_nanos(sent as u64);
        let most = if index == 0 { 0 } else { jitter_ms * 1_000_000 };
        let jitter = Duration::from_nanos(random.below(most + 1));
        let Verdict::Show { at } = arrive(&mut playout, least + jitter, 7, index) else { continue };
        if let Some(last) = last.replace(at) {
            let between = Duration::from_nanos(at.as_nanos() - Time::as_nanos(last));
            step = step.max(between.abs_diff(Duration::from_millis(40)));
        }
        hold = at.since(least);
    }
    Drifted { stats: playout.stats(), hold, step }
}

#[test]
fn a_clock_that_is_wrong_by_500_ppm_is_followed_for_an_hour_without_a_jump() {
    for (seed, ppm) in (0..).zip([500, -500, 100, -100, 0]) {
        let it = drifted(ppm, 60, seed);
        let stats = &it.stats;
        assert_eq!((stats.shown, stats.late, stats.resyncs), (90_000, 0, 0), "{ppm} ppm");
        assert!(it.step <= Duration::from_micros(100), "{ppm} ppm: {:?}", it.step);
        let off = it.hold.abs_diff(Duration::from_millis(100));
        assert!(off <= Duration::from_millis(12), "{ppm} ppm: {:?}", it.hold);
        let drifted = Duration::from_nanos(3_600 * 1_000 * ppm.unsigned_abs());
        let moved = Duration::from_nanos(stats.moved_ns.unsigned_abs());
        assert!(moved.abs_diff(drifted) <= Duration::from_millis(12), "{ppm} ppm: {moved:?}");
        assert!(ppm == 0 || (stats.moved_ns < 0) == (ppm > 0), "{ppm} ppm");
    }
}

#[test]
fn a_way_that_becomes_longer_takes_from_the_budget_and_gives_it_back() {
    let mut playout = playout();
    for index in 0..25 * 120 {
        let longer = if index < 500 { 0 } else { 30 };
        let now = ms(40 * index + longer + index % 7);
        assert!(matches!(arrive(&mut playout, now, 0, index), Verdict::Show { .. }), "{index}");
    }
    let moved = playout.stats().moved_ns;
    assert!((29_000_000..=31_000_000).contains(&moved), "{moved}");
    // A pause is no time in which it could move.
    let pause = ms(40 * 25 * 120 + 600_000);
    playout.handle_arrival(pause, 0, 25 * 120 * PICTURE_NS + 600_000_000_000 - 500_000_000, 3_000);
    assert!((moved - playout.stats().moved_ns).abs() <= 1_000_000);
}

#[test]
fn few_media_frames_are_jitter_and_no_drift() {
    let mut playout = playout();
    for index in 0..600 {
        let at = ms(1_000 * index + if index == 0 { 0 } else { 50 });
        let verdict = playout.handle_arrival(at, 0, index * 1_000_000_000, index);
        assert_eq!(verdict, Verdict::Show { at: ms(1_000 * index + 100) });
    }
}

/// The times at which pictures are shown whose way takes up to `jitter_ms` more for so many of
/// them, one behind the other.
fn shown(playout: &mut Playout, parts: &[(u64, u64)], seed: u64) -> Vec<(u64, Time)> {
    let mut random = Random::from_number(seed);
    let (mut shown, mut index) = (Vec::new(), 0);
    for &(pictures, jitter_ms) in parts {
        for _ in 0..pictures {
            let now = ms(1_000 + 40 * index + random.below(jitter_ms + 1));
            if let Verdict::Show { at } = arrive(playout, now, 0, index) {
                shown.push((index, at));
            }
            index += 1;
        }
    }
    shown
}

/// How long after it was sent a picture is shown, the way less its jitter taken to need nothing.
fn held(&(index, at): &(u64, Time)) -> u64 {
    at.since(ms(1_000 + 40 * index)).as_millis() as u64
}

#[test]
fn no_more_of_the_budget_is_kept_than_jitter_uses_and_nothing_jumps() {
    for seed in 0..50 {
        let budget_min = Some(Duration::from_millis(20));
        let budget = Duration::from_millis(200);
        let mut playout = Playout::new(Config { budget, budget_min, ..Config::default() });
        // Two minutes of 30 ms, 20 s of 120 ms, and two minutes of 30 ms.
        let shown = shown(&mut playout, &[(3_000, 30), (500, 120), (3_000, 30)], seed);
        assert!(held(&shown[0]) >= 200, "seed {seed}");
        let at = |index: u64| held(shown.iter().find(|it| it.0 >= index).unwrap());
        assert!((30..=50).contains(&at(2_999)), "seed {seed}: {} of 30 ms", at(2_999));
        assert!((115..=150).contains(&at(3_450)), "seed {seed}: {} of 120 ms", at(3_450));
        assert!((30..=50).contains(&at(6_499)), "seed {seed}: {} of 30 ms", at(6_499));
        for pair in shown.windows(2) {
            let (media, local) = (pair[1].0 - pair[0].0, pair[1].1.since(pair[0].1));
            let off = local.abs_diff(Duration::from_millis(40 * media));
            // A tenth of the time between their arrivals, and what clocks may drift.
            assert!(off <= Duration::from_millis(4 * media + 12 + 1), "seed {seed}: {pair:?}");
        }
        // Late is what comes while the jitter has grown and what is kept has not.
        let late = playout.stats().late;
        assert!(late <= 40, "seed {seed}: {late} late");
    }
}

#[test]
fn all_of_the_budget_is_kept_without_a_least() {
    let mut playout = playout();
    let shown = shown(&mut playout, &[(3_000, 30)], 1);
    assert!(shown.iter().all(|it| held(it) >= 100));
    assert_eq!(playout.stats().kept, Duration::from_millis(100));
}
