//! What `nak-group` is for: one sender, many receivers that lose each their own, and repairs that
//! help all of them.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{Loss, Losses, MS, Place, checked, end, lossy, ms, number, unit};
use dacapo_base::seeds::{each_seed, number as from_env};
use dacapo_base::{Random, Time};
use dacapo_lift::conformance::End;
use dacapo_lift::{Property, Runner};
use dacapo_modules::retransmission::group::{NOTE_COMPUTED, NOTE_PARITIES, SPEC};
use dacapo_wire::group_repair::{ASK_LEN, Ask, Said};
use dacapo_wire::parity::LEN;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const DEADLINE: u16 = 0;
const RECEIVERS: u16 = 3;

/// How long a packet takes each way.
const WAY: Duration = Duration::from_millis(20);

/// Where a datagram goes: to the receiver with this place, or from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    To(usize),
    From(usize),
}

/// One sender, and receivers each behind a wire of its own.
struct Star {
    sender: End,
    receivers: Vec<(End, Loss)>,
    /// Losses of what receivers send.
    loss_back: f64,
    random: Random,
    under_way: BTreeMap<(Time, u64), (Way, Vec<u8>)>,
    put: u64,
    /// The units that each got, with their times.
    came: Vec<Vec<(Time, u64)>>,
    /// How many bytes left the sender, and the receivers.
    sent_bytes: u64,
    asked_bytes: u64,
    /// How many packets left the sender, and the receivers.
    sent: u64,
    asked: u64,
}

impl Star {
    fn new(values: &[(u16, u64)], losses: Vec<Loss>, seed: u64) -> Self {
        let places: &[Place<'_>] = &[("nak-group", values)];
        let count = losses.len();
        // Each end draws its own back-off.
        let with_seed = |(at, loss): (usize, Loss)| {
            let mut receiver = end(places, 1_200);
            receiver.random = Random::from_number(seed ^ ((at as u64 + 1) << 32));
            (receiver, loss)
        };
        Self {
            sender: end(places, 1_200),
            receivers: losses.into_iter().enumerate().map(with_seed).collect(),
            loss_back: 0.0,
            random: Random::from_number(seed),
            under_way: BTreeMap::new(),
            put: 0,
            came: vec![Vec::new(); count],
            sent_bytes: 0,
            asked_bytes: 0,
            sent: 0,
            asked: 0,
        }
    }

    fn now(&self) -> Time {
        self.sender.now
    }

    /// Sends so many units, one `every` so often, then lets everything happen.
    fn run(&mut self, units: u64, every: Duration) {
        for at in 0..units {
            assert!(self.sender.feed(&unit(at, 1_000)), "room and credit");
            self.put();
            self.pass(self.now() + every);
        }
        self.pass(self.now() + Duration::from_secs(30));
    }

    fn put(&mut self) {
        let now = self.now();
        for datagram in self.sender.wire() {
            self.sent += 1;
            self.sent_bytes += datagram.len() as u64;
            for at in 0..self.receivers.len() {
                if !self.receivers[at].1.takes_one(now, &mut self.random) {
                    self.leave(now + WAY, Way::To(at), datagram.clone());
                }
            }
        }
        for at in 0..self.receivers.len() {
            for datagram in self.receivers[at].0.wire() {
                self.asked += 1;
                // IPv4 and UDP.
                self.asked_bytes += datagram.len() as u64 + 28;
                if !self.random.chance(self.loss_back) {
                    self.leave(now + WAY, Way::From(at), datagram);
                }
            }
        }
    }

    fn leave(&mut self, at: Time, way: Way, datagram: Vec<u8>) {
        self.put += 1;
        self.under_way.insert((at, self.put), (way, datagram));
    }

    fn pass(&mut self, until: Time) {
        loop {
            let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
            let ends = self.receivers.iter().map(|(end, _)| end);
            let timers = ends.chain([&self.sender]).map(|end| end.runner.next_deadline());
            let next = timers.chain([arrival]).flatten().min();
            let Some(now) = next.filter(|at| *at <= until) else { break };
            self.set(now);
            self.sender.fire();
            self.receivers.iter_mut().for_each(|(end, _)| end.fire());
            self.put();
            while let Some(first) = self.under_way.first_entry().filter(|it| it.key().0 <= now) {
                let (way, datagram) = first.remove();
                self.arrive(way, &datagram);
            }
            self.take();
            self.put();
        }
        self.set(until);
    }

    fn arrive(&mut self, way: Way, datagram: &[u8]) {
        let taken = match way {
            Way::To(at) => self.receivers[at].0.handle_bytes(datagram),
            Way::From(at) => {
                let number = at as u32 + 1;
                self.sender.with(|runner: &mut Runner, _| runner.handle_receiver(number));
                self.sender.handle_bytes(datagram)
            }
        };
        assert!(taken, "room");
    }

    fn set(&mut self, now: Time) {
        self.sender.now = self.sender.now.max(now);
        let now = self.sender.now;
        self.receivers.iter_mut().for_each(|(end, _)| end.now = now);
    }

    fn take(&mut self) {
        for ((end, _), came) in self.receivers.iter_mut().zip(&mut self.came) {
            let now = end.now;
            came.extend(end.units().iter().map(|unit| (now, number(unit))));
        }
    }

    /// The units that one got; none of them twice.
    fn once(&self, at: usize) -> BTreeSet<u64> {
        let numbers: BTreeSet<u64> = self.came[at].iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers.len(), self.came[at].len(), "a unit came twice to {at}");
        numbers
    }

    /// How many parities the sender has made.
    fn parities(&self) -> u64 {
        note(&self.sender, NOTE_PARITIES)
    }

    /// Everything is given back at the end.
    fn end(mut self) {
        self.sender.flush();
        self.receivers.iter_mut().for_each(|(end, _)| end.flush());
    }
}

fn note(end: &End, code: u16) -> u64 {
    let found = end.runner.notes().iter().find(|note| note.code == code);
    found.map_or(0, |note| note.value as u64)
}

fn single(count: usize, loss: f64) -> Vec<Loss> {
    (0..count).map(|_| Loss::Single(loss)).collect()
}

#[test]
fn what_each_of_many_loses_is_made_good_for_all_at_once() {
    let (units, receivers) = (4_000, 30);
    let mut star = Star::new(&[(RECEIVERS, 30)], single(receivers, 0.02), 1);
    star.run(units, ms(1));
    for at in 0..receivers {
        assert_eq!(star.once(at).len() as u64, units, "{at}");
    }
    // All of them together lose 2,400 packets; a block needs what one of them lacks most.
    let (parities, blocks) = (star.parities(), units / 20);
    assert!(parities < blocks * 4, "{parities} parities for {blocks} blocks");
    assert!(star.asked_bytes * 20 <= star.sent_bytes, "{} {}", star.asked_bytes, star.sent_bytes);
    assert!(star.asked < blocks * 5, "{} asked for {blocks} blocks", star.asked);
    let computed: u64 = star.receivers.iter().map(|(end, _)| note(end, NOTE_COMPUTED)).sum();
    assert!((2_000..2_800).contains(&computed), "{computed}");
    star.end();
}

#[test]
fn who_loses_nothing_says_nothing_and_nothing_is_repaired() {
    let mut star = Star::new(&[], single(3, 0.0), 2);
    star.run(1_000, ms(2));
    assert_eq!((star.asked, star.parities()), (0, 0));
    assert!((0..3).all(|at| star.once(at).len() == 1_000));
    star.end();
}

#[test]
fn the_last_packets_are_made_good_though_nothing_follows() {
    for at in 0..40 {
        let mut star = Star::new(&[], single(2, 0.0), at);
        star.run(100, ms(1));
        // The last five are lost to one of them, and what says how the block has ended, too.
        let until = star.now();
        for at in 100..105 {
            star.sender.feed(&unit(at, 1_000));
        }
        for datagram in star.sender.wire() {
            star.leave(until + WAY, Way::To(0), datagram);
        }
        star.pass(until + ms(20 + at));
        star.pass(until + Duration::from_secs(10));
        assert_eq!((star.once(0).len(), star.once(1).len()), (105, 105), "seed {at}");
        star.end();
    }
}

#[test]
fn what_cannot_come_in_time_is_given_up_and_told() {
    // Nothing that receivers say comes.
    let mut star = Star::new(&[(DEADLINE, 200 * MS)], single(2, 0.05), 3);
    star.loss_back = 1.0;
    star.run(2_000, ms(1));
    for (at, (end, _)) in star.receivers.iter().enumerate() {
        let missing = 2_000 - star.once(at).len() as u64;
        assert!((60..150).contains(&missing), "{missing}");
        let lost = common::lost(end);
        assert!(lost.abs_diff(missing) <= 5, "{lost} told, {missing} missing");
        assert_eq!(end.runner.next_deadline(), None, "nothing is waited for");
    }
    assert_eq!(star.parities(), 0);
    star.end();
}

#[test]
fn a_receiver_behind_a_wire_that_loses_most_costs_the_others_no_more_than_a_quarter() {
    let losses = [0.01, 0.01, 0.8].map(Loss::Single);
    let mut star = Star::new(&[(RECEIVERS, 3)], losses.into(), 4);
    star.run(8_000, ms(1));
    let parities = star.parities();
    assert!(parities <= 8_000 / 2 + 128, "{parities}");
    for at in 0..2 {
        assert!(star.once(at).len() >= 7_990, "{at}: {}", star.once(at).len());
    }
    assert!(star.once(2).len() < 4_000);
    star.end();
}

/// What holds whatever is lost on the way there and back.
fn try_seed(seed: u64) {
    let mut random = Random::from_number(seed);
    let count = 1 + random.below(12) as usize;
    let lossy = |random: &mut Random| match random.below(3) {
        0 => Loss::Single(random.below(80) as f64 / 1_000.0),
        1 => Loss::Single(0.0),
        _ => {
            let (loss, burst) = (0.02, 1.0 + random.below(8) as f64);
            Loss::Runs(Box::new(Losses::new(loss, burst, ms(1), random.next_u64())))
        }
    };
    let losses = (0..count).map(|_| lossy(&mut random)).collect();
    let values = [(DEADLINE, 1_500 * MS), (RECEIVERS, count as u64)];
    let mut star = Star::new(&values, losses, seed);
    star.loss_back = random.below(60) as f64 / 1_000.0;
    let (units, every) = (600 + random.below(600), ms(1 + random.below(4)));
    star.run(units, every);
    let mut told = 0;
    for (at, (end, _)) in star.receivers.iter().enumerate() {
        let missing = units - star.once(at).len() as u64;
        told += common::lost(end);
        // Of 10,000 seeds nobody misses any.
        assert!(missing <= units / 1_000, "seed {seed}: {at} misses {missing} of {units}");
    }
    let missing: u64 = (0..count).map(|at| units - star.once(at).len() as u64).sum();
    assert!(told <= missing, "seed {seed}: {told} told of {missing}");
    let part = star.asked_bytes as f64 / star.sent_bytes as f64;
    assert!(part <= 0.05 + 0.002 * count as f64, "seed {seed}: {part} is asked");
    assert!(star.parities() <= units / 2 + 128, "seed {seed}: {} parities", star.parities());
    star.end();
}

#[test]
fn every_seed_is_made_good_within_its_bounds() {
    each_seed(0..from_env("DACAPO_SEEDS", 200), try_seed);
}

#[test]
#[ignore = "10,000 worlds, a minute: make nightly"]
fn ten_thousand_seeds_are_too() {
    each_seed(0..10_000, try_seed);
}

#[test]
fn one_seed() {
    try_seed(from_env("DACAPO_SEED", 1998));
}

/// What a receiver says that asks for these.
fn asked(answer_ms: u32, asks: &[Ask]) -> Vec<u8> {
    let head = Said::Asked { answer_ms, echo: 1, count: asks.len() as u8 }.emit();
    let body = asks.iter().flat_map(Ask::emit);
    head.into_iter().chain(body).collect()
}

#[test]
fn who_asks_without_end_gets_no_more_than_its_part() {
    let mut star = Star::new(&[], single(1, 0.0), 5);
    for at in 0..3_200 {
        star.sender.feed(&unit(at, 1_000));
        star.put();
        // Whatever it says, of every block that there may be.
        let block =
            |back: u32| Ask { block: (at as u32 / 32).wrapping_sub(back), have: 0, rows: 255 };
        let asks: Vec<Ask> = (0..60).map(block).collect();
        star.arrive(Way::From(0), &asked(0, &asks));
        star.pass(star.now() + ms(1));
    }
    // Parities, echoes, and how the last block has ended.
    let more = star.sent - 3_200;
    assert!((800..=3_200 / 4 + 128 + 5).contains(&more), "{more}");
    // An asking that is none is counted.
    let before = common::dropped(&star.sender, dacapo_lift::DropReason::Malformed);
    let mut strange = asked(0, &[Ask { block: 1, have: 0, rows: 0 }]);
    strange.truncate(LEN + ASK_LEN - 1);
    star.arrive(Way::From(0), &strange);
    let after = common::dropped(&star.sender, dacapo_lift::DropReason::Malformed);
    assert_eq!(after, before + 1);
    star.end();
}

#[test]
fn it_is_legal_where_somebody_answers_and_nowhere_else() {
    let places: &[Place<'_>] = &[("segment", &[]), ("nak-group", &[]), ("checksum", &[])];
    assert!(checked(places, &[Property::Boundaries, Property::Answers]).is_ok());
    assert!(checked(places, &[Property::Boundaries, Property::WayBack]).is_ok());
    assert!(checked(places, &[Property::Boundaries]).is_err());
    let (setting, _) = lossy(10_000_000, 1_000, ms(1));
    assert!(!SPEC.profile.suits(&setting), "only by name");
}

/// What many receivers take, for the page of the modules: `-- --ignored --nocapture figures`.
#[test]
#[ignore = "prints figures for docs/modules.md: make nightly"]
fn figures() {
    for count in [1, 4, 16, 64, 256] {
        for loss in [0.01, 0.05] {
            let mut star = Star::new(&[(RECEIVERS, count as u64)], single(count, loss), 7);
            star.loss_back = loss;
            star.run(8_000, ms(1));
            let came: usize = (0..count).map(|at| star.once(at).len()).sum();
            let lost = 8_000 * count - came;
            let mut late: Vec<u128> = Vec::new();
            for came in &star.came {
                let due = |n: u64| Time::ZERO + ms(n) + WAY;
                late.extend(came.iter().map(|(at, n)| at.since(due(*n)).as_millis()));
            }
            late.sort_unstable();
            // Where askings of many that lose much have used up their part.
            assert!(lost == 0 || (count == 256 && lost < 100), "{count} {loss}: {lost} lost");
            assert!(star.asked_bytes * 20 <= star.sent_bytes, "{count} {loss}");
            println!(
                "{count} receivers, {loss}: {lost} lost, {} parities and {} others per 1,000, \
                 asked {:.2} % of bytes, \
                 {:.2} askings a block, p999 {} ms, at most {} ms",
                star.parities() / 8,
                (star.sent - 8_000 - star.parities()) / 8,
                star.asked_bytes as f64 * 100.0 / star.sent_bytes as f64,
                star.asked as f64 / 250.0,
                late[late.len() * 999 / 1_000],
                late[late.len() - 1],
            );
        }
    }
}
