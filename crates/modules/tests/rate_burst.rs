//! What `rate-burst` is for, in virtual time: bytes leave in bursts and at a rate, whatever is
//! handed over and whenever; nothing is lost of it, not at the end either and not when rate and
//! burst change; and little waits.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, checked, dropped, end, feed_chain, graph, lossy, ms, number, tell, unit};
use dacapo_base::{Random, Time};
use dacapo_heap::Counting;
use dacapo_lift::conformance::End;
use dacapo_lift::{DropReason, Illegal, Params, Property, Runner};
use dacapo_modules::rate::burst::{CONTROL_SET_BURST, CONTROL_SET_RATE, NOTE_WAITED, SPEC};
use std::time::Duration;

#[global_allocator]
static HEAP: Counting = Counting;

/// The header of `segment`, which stands below and is not counted.
const SEGMENT_HEAD: usize = 4;

const SEEDS: u64 = 200;

/// Two ends, of which one sends at once what the other gives.
struct Paced {
    a: End,
    b: End,
    /// What left, and when: bytes as they were handed down.
    left: Vec<(Time, usize)>,
    /// The units that came, and when.
    came: Vec<(Time, u64)>,
    head: usize,
}

impl Paced {
    fn new(places: &[Place<'_>]) -> Self {
        let head = SEGMENT_HEAD * places.iter().filter(|(name, _)| *name == "segment").count();
        let (a, b) = (end(places, 200_000), end(places, 200_000));
        Self { a, b, left: Vec::new(), came: Vec::new(), head }
    }

    /// With units of any size.
    fn of(rate: u64, burst: u64) -> Self {
        let patience = [(0, 60_000_000_000)];
        Self::new(&[("rate-burst", &[(0, rate), (1, burst)]), ("segment", &patience)])
    }

    /// Takes what has left, and what comes of it.
    fn collect(&mut self) {
        self.b.now = self.a.now;
        for datagram in self.a.wire() {
            self.left.push((self.a.now, datagram.len() - self.head));
            assert!(self.b.handle_bytes(&datagram));
        }
        let now = self.b.now;
        self.came.extend(self.b.units().iter().map(|unit| (now, number(unit))));
    }

    /// Hands a unit over as soon as the graph takes one.
    fn offer(&mut self, unit: &[u8]) {
        while self.a.runner.credit() == 0 {
            let due = self.a.runner.next_deadline().expect("who takes no more says until when");
            self.pass_until(due);
        }
        feed_chain(&mut self.a, unit);
        self.collect();
    }

    /// Lets time pass; timers fire when they are due.
    fn pass_until(&mut self, until: Time) {
        while let Some(due) = self.a.runner.next_deadline().filter(|due| *due <= until) {
            assert!(due >= self.a.now, "a timer for what is past");
            self.a.now = due;
            self.a.fire();
            self.collect();
        }
        self.a.now = self.a.now.max(until);
    }

    /// Lets everything leave that waits.
    fn settle(&mut self) {
        while let Some(due) = self.a.runner.next_deadline() {
            self.pass_until(due);
        }
    }

    /// The most bytes that left in any time of this length.
    fn most_in(&self, window: Duration) -> usize {
        let (mut first, mut bytes, mut most) = (0, 0, 0);
        for (at, len) in &self.left {
            bytes += len;
            while self.left[first].0 + window <= *at {
                bytes -= self.left[first].1;
                first += 1;
            }
            most = most.max(bytes);
        }
        most
    }

    fn bytes(&self) -> usize {
        self.left.iter().map(|(_, len)| len).sum()
    }

    /// How many units came, each once and in order, and nothing is left behind.
    fn finish(mut self) -> u64 {
        let count = self.came.len() as u64;
        assert!(self.came.iter().map(|(_, number)| *number).eq(0..count), "in order, each once");
        let counters = self.a.runner.modules().next().unwrap().1;
        assert_eq!(counters.down.dropped_count(), 0);
        assert_eq!((self.a.pool.live_views(), self.b.pool.live_views()), (0, 0));
        [&mut self.a, &mut self.b].into_iter().for_each(End::flush);
        count
    }
}

fn interval(rate: u64, burst: u64) -> Duration {
    Duration::from_nanos((u128::from(burst) * 1_000_000_000 / u128::from(rate)) as u64)
}

/// A number between, whose order of magnitude is as random as its digits.
fn between(random: &mut Random, least: u64, most: u64) -> u64 {
    let scale = random.unit() * (most as f64 / least as f64).ln();
    ((least as f64 * scale.exp()) as u64).clamp(least, most)
}

#[test]
fn two_hundred_loads_leave_in_bursts_and_all_of_them_come() {
    for seed in 0..SEEDS {
        let mut random = Random::from_number(seed);
        let rate = between(&mut random, 10_000, 100_000_000);
        let burst = between(&mut random, 1_500, 60_000);
        let mut paced = Paced::of(rate, burst);
        let len_max = between(&mut random, 8, 30_000);
        let count = 200;
        for number in 0..count {
            paced.offer(&unit(number, random.below(len_max) as usize));
            if random.chance(0.2) {
                let pause = interval(rate, burst).mul_f64(random.unit() * 4.0);
                let until = paced.a.now + pause;
                paced.pass_until(until);
            }
        }
        paced.settle();
        let (most, start) = (paced.most_in(interval(rate, burst)), paced.left[0].0);
        assert!(most as u64 <= 2 * burst, "seed {seed}: {most} of {rate}, {burst}");
        let (last, bytes) = (paced.left.last().unwrap().0, paced.bytes() as f64);
        let mean = last.since(start).as_secs_f64() * rate as f64 + burst as f64;
        assert!(bytes <= mean + 1.0, "seed {seed}: {bytes} of {mean}");
        assert_eq!(paced.finish(), count, "seed {seed}");
    }
}

#[test]
fn who_always_has_something_gets_the_rate_but_for_what_no_packet_fills() {
    for (rate, burst) in [(1_500_000, 10_000), (125_000, 3_000), (10_000_000, 1_000_000)] {
        let mut paced = Paced::of(rate, burst);
        let start = paced.a.now;
        let mut count = 0;
        while paced.a.now.since(start) < Duration::from_secs(2) {
            paced.offer(&unit(count, 10_000));
            count += 1;
        }
        let last = paced.left.last().unwrap().0;
        let whole = paced.left.iter().filter(|(at, _)| *at < last);
        let bytes: usize = whole.map(|(_, len)| len).sum();
        let share = bytes as f64 / (last.since(start).as_secs_f64() * rate as f64);
        let filled = 1.0 - 1_440.0 / burst as f64;
        println!("rate {rate}, burst {burst}: {share:.4} of it");
        assert!((filled..=1.0).contains(&share), "{rate}, {burst}: {share} of {filled}");
        paced.settle();
        assert_eq!(paced.finish(), count);
    }
}

/// "Blast mode": a megabyte, and a pause of 100 ms.
#[test]
fn a_blast_leaves_at_once_and_then_nothing_until_the_next() {
    let mut paced = Paced::of(10_000_000, 1_000_000);
    (0..251).for_each(|number| paced.offer(&unit(number, 20_000)));
    paced.settle();
    let mut blasts: Vec<(Time, usize)> = Vec::new();
    for (at, len) in &paced.left {
        match blasts.last_mut().filter(|last| last.0 == *at) {
            Some(last) => last.1 += len,
            None => blasts.push((*at, *len)),
        }
    }
    let pauses = blasts.windows(2).map(|pair| pair[1].0.since(pair[0].0));
    assert!(pauses.into_iter().all(|it| it == ms(100)), "{blasts:?}");
    let (last, whole) = blasts.split_last().unwrap();
    assert!(whole.iter().all(|(_, len)| (998_557..=1_000_000).contains(len)), "{blasts:?}");
    assert_eq!((whole.len(), last.1 < 30_000), (5, true), "{blasts:?}");
    assert_eq!(paced.finish(), 251);
}

#[test]
fn an_idle_second_gives_no_larger_burst() {
    let mut paced = Paced::of(100_000, 10_000);
    paced.offer(&unit(0, 1_000));
    let later = paced.a.now + Duration::from_secs(1);
    paced.pass_until(later);
    (1..40).for_each(|number| paced.offer(&unit(number, 1_000)));
    paced.settle();
    let at_once = paced.left.iter().filter(|(at, _)| *at == later).count();
    assert_eq!(at_once, 10, "a burst of ten packets after ten intervals without any");
    assert!(paced.most_in(ms(100)) <= 20_000);
    assert_eq!(paced.finish(), 40);
}

#[test]
fn a_packet_longer_than_the_burst_leaves_alone_and_the_rate_is_kept() {
    // No graph over this network has one; a burst may be set below what a wider one takes.
    let mut paced = Paced::new(&[("rate-burst", &[(0, 15_000), (1, 1_500)])]);
    let mut long = end(&[("rate-burst", &[(0, 15_000), (1, 1_500)])], 10_000);
    let start = long.now;
    let mut left = Vec::new();
    for _ in 0..4 {
        let packet = long.pool.packet_from(5, &unit(7, 4_000), 0).unwrap();
        long.with(|runner, around| {
            runner.feed(around, packet);
            runner.run(around);
        });
    }
    left.extend(long.wire().iter().map(|_| Duration::ZERO));
    while let Some(due) = long.runner.next_deadline() {
        long.now = due;
        long.fire();
        left.extend(long.wire().iter().map(|_| due.since(start)));
    }
    assert_eq!(left, [ms(0), ms(300), ms(600), ms(900)], "one in three intervals of 100 ms");
    long.flush();
    paced.offer(&unit(0, 1_440));
    assert_eq!(paced.finish(), 1);
}

#[test]
fn little_waits_and_who_feeds_waits_himself() {
    for (rate, burst, most) in
        [(1_000_000, 65_000, 20_000), (10_000, 65_000, 2_048), (50_000_000, 5_000, 5_000)]
    {
        let mut paced = Paced::new(&[("rate-burst", &[(0, rate), (1, burst)])]);
        let mut count = 0;
        while paced.a.runner.credit() > 0 {
            paced.offer(&unit(count, 1_000));
            count += 1;
        }
        let held = paced.a.pool.live_views() as u64 * 1_000;
        assert!((most - 1_000..=most + 1_000).contains(&held), "{rate}, {burst}: {held} of {most}");
        let waited = paced.a.runner.notes().iter().find(|note| note.code == NOTE_WAITED);
        assert_eq!(waited.unwrap().value as u64, held / 1_000);
        paced.settle();
        assert!(paced.a.runner.credit() > 0 && paced.a.runner.next_deadline().is_none());
        assert_eq!(paced.finish(), count);
    }
    assert_eq!(SPEC.note_name(NOTE_WAITED), "packets_waited");
}

#[test]
fn small_packets_are_bounded_by_their_number() {
    let mut paced = Paced::new(&[("rate-burst", &[(0, 4_000_000), (1, 65_000)])]);
    // The interval is used up, and then units of eight bytes wait.
    (0..65).for_each(|number| paced.offer(&unit(number, 1_000)));
    let mut count = 65;
    while paced.a.runner.credit() > 0 {
        paced.offer(&unit(count, 8));
        count += 1;
    }
    assert_eq!(count - 65, 1_024);
    paced.settle();
    assert_eq!(paced.finish(), count);
}

#[test]
fn when_no_unit_follows_all_leaves_at_once_also_what_is_still_before_it() {
    let mut paced = Paced::of(10_000, 5_000);
    // Of the second some waits in the module, which takes no more, and the rest before it.
    (0..2).for_each(|number| paced.offer(&unit(number, 150_000 * number as usize)));
    assert!(paced.a.runner.credit() == 0 && paced.bytes() <= 5_000);
    let patience = paced.b.runner.patience();
    assert!(patience >= Duration::from_secs(10), "a receiver waits for it: {patience:?}");
    paced.a.with(Runner::drain);
    paced.collect();
    assert_eq!((paced.a.runner.credit(), paced.a.runner.next_deadline()), (usize::MAX, None));
    assert_eq!(paced.finish(), 2);
}

#[test]
fn flush_forgets_what_waits_and_begins_anew() {
    let mut paced = Paced::new(&[("rate-burst", &[(0, 100_000), (1, 3_000)])]);
    (0..5).for_each(|number| paced.offer(&unit(number, 1_000)));
    paced.a.flush();
    assert_eq!(dropped(&paced.a, DropReason::Shutdown), 2);
    assert_eq!(paced.a.runner.next_deadline(), None);
    let before = paced.left.len();
    (0..3).for_each(|number| paced.offer(&unit(number, 1_000)));
    assert_eq!(paced.left.len() - before, 3, "a whole burst");
}

#[test]
fn rate_and_burst_change_while_the_flow_runs_and_nothing_is_lost() {
    for seed in 0..SEEDS {
        let mut random = Random::from_number(seed);
        let mut paced = Paced::of(1_000_000, 10_000);
        let (count, mut burst_max, mut rate_max) = (300, 10_000, 1_000_000);
        for number in 0..count {
            paced.offer(&unit(number, random.below(5_000) as usize));
            if random.chance(0.1) {
                let rate = between(&mut random, 50_000, u64::from(u32::MAX));
                rate_max = rate_max.max(rate);
                tell(&mut paced.a, CONTROL_SET_RATE, rate);
            }
            if random.chance(0.1) {
                let burst = between(&mut random, 1_500, 100_000);
                burst_max = burst_max.max(burst);
                tell(&mut paced.a, CONTROL_SET_BURST, burst);
            }
            paced.collect();
        }
        paced.settle();
        let seconds = paced.left.last().unwrap().0.since(paced.left[0].0).as_secs_f64();
        let most = seconds * rate_max as f64 + 2.0 * burst_max as f64;
        assert!(rate_max >= u64::from(u32::MAX) || paced.bytes() as f64 <= most, "seed {seed}");
        assert_eq!(paced.finish(), count, "seed {seed}");
    }
}

#[test]
fn a_new_rate_holds_from_the_running_interval_on() {
    let mut paced = Paced::new(&[("rate-burst", &[(0, 1_000), (1, 2_000)])]);
    let start = paced.a.now;
    (0..4).for_each(|number| paced.offer(&unit(number, 1_000)));
    assert_eq!(paced.left.len(), 2, "and the others wait for two seconds");
    paced.pass_until(start + ms(300));
    tell(&mut paced.a, CONTROL_SET_RATE, 5_000);
    assert_eq!(paced.a.runner.next_deadline(), Some(start + ms(400)));
    paced.settle();
    paced.pass_until(start + ms(500));
    (4..6).for_each(|number| paced.offer(&unit(number, 1_000)));
    assert_eq!(paced.left.len(), 4);
    // No limit any more.
    tell(&mut paced.a, CONTROL_SET_RATE, u64::from(u32::MAX));
    paced.collect();
    assert_eq!((paced.left.len(), paced.a.runner.next_deadline()), (6, None));
    assert_eq!(paced.finish(), 6);
}

#[test]
fn as_named_it_holds_nothing_up() {
    let mut paced = Paced::new(&[("rate-burst", &[]), ("segment", &[])]);
    (0..100).for_each(|number| paced.offer(&unit(number, 190_000)));
    assert!(paced.left.iter().all(|(at, _)| *at == paced.a.now));
    assert_eq!(paced.finish(), 100);
}

#[test]
fn it_stands_above_what_cuts_and_repairs() {
    let properties = &[Property::Boundaries, Property::WayBack];
    let checked = |places: &[Place<'_>]| checked(places, properties);
    let own = ("rate-burst", &[][..]);
    let below: &[Place<'_>] = &[("segment", &[]), ("arq-sr", &[]), ("checksum", &[])];
    assert_eq!(checked(&[&[own], below].concat()), Ok(()));
    assert_eq!(checked(&[&[("use-by", &[][..]), own], below].concat()), Ok(()));
    let said = checked(&[below, &[own]].concat());
    assert!(matches!(said, Err(Illegal::WrongOrder { node: 3, .. })), "{said:?}");
    assert_eq!(graph(&[own]).nodes[0].module, 0x0012);
}

/// Units that come evenly and fill up to nine tenths of what leaves in a second.
#[test]
fn units_of_two_hundred_flows_wait_no_longer_than_is_predicted() {
    let mut within = 0;
    for seed in 0..SEEDS {
        let mut random = Random::from_number(seed);
        let (rate, burst) =
            (between(&mut random, 100_000, 10_000_000), between(&mut random, 3_000, 60_000));
        let len = between(&mut random, 100, 30_000);
        let (mut setting, below) = lossy(0, 1_000, ms(20));
        (setting.units.len_mean, setting.units.len_max) = (len as u32, len as u32);
        let mut params = Params::new();
        [rate, burst].into_iter().zip(0..).for_each(|(value, at)| params.set(at, value));
        let figures = |setting| SPEC.profile.figures(&params, &setting, &below);
        let most = figures(setting).rate_bps as f64 / 8.0;
        let every = Duration::from_secs_f64((len + 4) as f64 / (most * random.unit() * 0.9));
        setting.units.per_ks = (1e12 / every.as_nanos() as f64).ceil() as u64;
        let says = figures(setting).delay_ns - below.figures.delay_ns;
        let mut paced = Paced::of(rate, burst);
        let given = |number: u32| Time::from_millis(1) + every * number;
        for number in 0..200 {
            paced.pass_until(given(number));
            paced.offer(&unit(number.into(), len as usize));
        }
        paced.settle();
        let late = |(at, number): &(Time, u64)| at.since(given(*number as u32)).as_nanos() as u64;
        let mut waits: Vec<u64> = paced.came.iter().map(late).collect();
        waits.sort_unstable();
        within += u64::from(waits[197] <= says);
        assert_eq!(paced.finish(), 200, "seed {seed}");
    }
    println!("{within} of {SEEDS} flows wait no longer");
    assert!(within >= SEEDS * 9 / 10, "{within} of {SEEDS}");
}

#[test]
fn nothing_is_allocated_while_packets_wait_for_their_bursts() {
    assert!(dacapo_heap::is_counting());
    let mut a = end(&[("rate-burst", &[(0, 1_000_000), (1, 10_000)]), ("segment", &[])], 20_000);
    let bytes = unit(0, 9_000);
    let mut run = || {
        for _ in 0..300 {
            while a.runner.credit() == 0 {
                a.now = a.runner.next_deadline().unwrap();
                a.with(Runner::handle_timeout);
            }
            feed_chain(&mut a, &bytes);
            a.runner.take_down().drain().for_each(|packet| a.pool.free(packet));
        }
    };
    (0..2).for_each(|_| run());
    let ((), used) = dacapo_heap::measure(run);
    assert_eq!(used.allocated_bytes, 0);
    a.flush();
}
