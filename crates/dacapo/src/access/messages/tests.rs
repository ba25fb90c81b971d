//! From outbox to inbox over a way that loses, repeats and reorders units: what is given is what
//! was sent, and both sums close.

use super::*;
use dacapo_base::Random;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a way does to units, as shares of 1,000.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    lost: u64,
    repeated: u64,
    late: u64,
    altered: u64,
}

/// Two ends and the way between them.
struct Run {
    random: Random,
    way: Way,
    outbox: Outbox,
    inbox: Inbox,
    line: VecDeque<Vec<u8>>,
    /// Units that are late, and how many others overtake them.
    late: Vec<(u64, Vec<u8>)>,
    sent: BTreeMap<u64, (u16, Vec<u8>)>,
    /// Priorities and bytes as they were accepted, in this order.
    accepted: Vec<(Ticket, u16, Vec<u8>)>,
    partial: BTreeMap<u64, Vec<u8>>,
    /// Numbers of messages of which a unit was lost or altered, and those that stand there instead.
    touched: BTreeSet<u64>,
    /// Those that were given.
    whole: BTreeSet<u64>,
    given: u64,
    broken: u64,
}

impl Run {
    fn new(seed: u64, way: Way) -> Self {
        let mut random = Random::from_number(seed);
        let unit_len = HEAD_LEN + 200 + random.below(3_000) as usize;
        Self {
            random,
            way,
            outbox: Outbox::new(unit_len).unwrap(),
            inbox: Inbox::default(),
            line: VecDeque::new(),
            late: Vec::new(),
            sent: BTreeMap::new(),
            accepted: Vec::new(),
            partial: BTreeMap::new(),
            touched: BTreeSet::new(),
            whole: BTreeSet::new(),
            given: 0,
            broken: 0,
        }
    }

    fn accept(&mut self) {
        let priority = self.random.below(4) as u16 * 100;
        let len_max = [1, 100, 10_000, 400_000][self.random.below(4) as usize];
        let data: Vec<u8> = (0..self.random.below(len_max))
            .map(|at| (at * 31 + self.accepted.len() as u64) as u8)
            .collect();
        if let Ok(ticket) = self.outbox.accept(priority, data.clone()) {
            self.accepted.push((ticket, priority, data));
        }
    }

    fn chance(&mut self, of_1_000: u64) -> bool {
        self.random.below(1_000) < of_1_000
    }

    /// The flow takes a unit.
    fn send(&mut self) {
        let Some(unit) = self.outbox.next_unit() else { return };
        let bytes = [&unit.head.unwrap()[..], unit.bytes].concat();
        self.check_urgent(&bytes);
        self.outbox.advance();
        let (head, _) = Head::parse(&bytes).unwrap();
        if self.chance(self.way.lost) {
            self.touched.insert(head.number);
            return;
        }
        let copies = 1 + usize::from(self.chance(self.way.repeated));
        for _ in 0..copies {
            let mut copy = bytes.clone();
            if self.chance(self.way.altered) {
                let at = self.random.below(HEAD_LEN as u64) as usize;
                copy[at] ^= 1 << self.random.below(8);
                let altered = Head::parse(&copy).ok().map(|(head, _)| head.number);
                self.touched.extend(altered.into_iter().chain([head.number]));
            }
            if self.chance(self.way.late) {
                let by = 1 + self.random.below(20);
                self.late.push((by, copy));
            } else {
                self.line.push_back(copy);
            }
        }
        self.late.iter_mut().for_each(|(by, _)| *by -= 1);
        let due = self.late.extract_if(.., |(by, _)| *by == 0).map(|(_, unit)| unit);
        self.line.extend(due);
    }

    /// The unit is of a message than which none that waits is more urgent.
    fn check_urgent(&mut self, unit: &[u8]) {
        let (head, _) = Head::parse(unit).unwrap();
        let waits = self.accepted.iter().filter(|(it, ..)| self.outbox.outcome(*it).is_none());
        let (_, priority, data) = waits.min_by_key(|(ticket, ..)| *ticket).unwrap();
        assert_eq!((head.priority, head.len), (*priority, data.len() as u64));
        self.sent.entry(head.number).or_insert_with(|| (*priority, data.clone()));
    }

    fn receive(&mut self) {
        while self.inbox.has_capacity() {
            let Some(unit) = self.line.pop_front() else { return };
            self.inbox.handle_unit(&unit);
        }
    }

    fn take(&mut self) {
        let Some(part) = self.inbox.get_message() else { return };
        let so_far = self.partial.entry(part.number).or_default();
        assert_eq!(so_far.len() as u64, part.offset, "parts come one after the other");
        so_far.extend_from_slice(&part.data);
        match part.ending {
            Ending::More => assert_eq!(part.data.len(), PART_LEN_MAX),
            Ending::Broken => {
                assert!(part.data.is_empty());
                self.partial.remove(&part.number);
                self.broken += 1;
            }
            Ending::Last => {
                self.given += 1;
                let came = self.partial.remove(&part.number).unwrap();
                if self.way.altered == 0 || !self.touched.contains(&part.number) {
                    assert_eq!(self.sent.get(&part.number), Some(&(part.priority, came)));
                }
                self.whole.insert(part.number);
            }
        }
    }

    fn play(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.random.below(10) {
                0 => self.accept(),
                1..=5 => self.send(),
                6..=7 => self.receive(),
                _ => self.take(),
            }
            assert!(self.outbox.sums().closes() && self.inbox.sums().closes());
        }
    }

    /// All goes out, all that came is taken.
    fn finish(&mut self) {
        while self.outbox.next_unit().is_some() {
            self.send();
        }
        let late = std::mem::take(&mut self.late).into_iter().map(|(_, unit)| unit);
        self.line.extend(late);
        while !self.line.is_empty() || self.inbox.has_part() {
            self.receive();
            self.take();
        }
        self.inbox.finish();
        while self.inbox.has_part() {
            self.take();
        }
        let (sent, came) = (*self.outbox.sums(), *self.inbox.sums());
        assert!(sent.closes() && sent.open == 0 && sent.sent == self.accepted.len() as u64);
        assert!(came.closes() && came.open == 0, "{came:?}");
        assert_eq!((came.given, came.broken), (self.given, self.broken));
        for (ticket, ..) in &self.accepted {
            assert_eq!(self.outbox.outcome(*ticket), Some(Outcome::Sent));
        }
    }
}

fn run(seed: u64, way: Way) -> Run {
    let mut run = Run::new(seed, way);
    run.play(3_000);
    run.finish();
    run
}

#[test]
fn over_a_way_that_repeats_and_reorders_every_message_is_given_once() {
    let way = Way { repeated: 100, late: 100, ..Way::default() };
    for seed in 0..100 {
        let run = run(seed, way);
        let count = run.accepted.len() as u64;
        assert_eq!((run.given, run.broken), (count, 0), "seed {seed}: {:?}", run.inbox.counters());
        assert_eq!(run.inbox.counters().malformed, 0, "seed {seed}");
    }
}

#[test]
fn over_a_way_that_loses_each_message_is_given_as_it_was_or_reported() {
    let (mut given, mut broken) = (0, 0);
    for seed in 0..200 {
        let way = Way { lost: 1 + seed % 100, repeated: 50, late: 50, altered: 0 };
        let run = run(seed, way);
        let counters = run.inbox.counters();
        let known = run.given + run.broken + counters.missed;
        let count = run.accepted.len() as u64;
        // Of those before the first and after the last that came nobody knows.
        assert!(known <= count && known + 20 >= count, "seed {seed}: {known} of {count}");
        assert_eq!(counters.malformed, 0, "seed {seed}");
        (given, broken) = (given + run.given, broken + run.broken);
    }
    assert!(given > 1_000 && broken > 1_000, "{given} given, {broken} broken");
}

/// What stands in a head by mistake costs the messages that it is of, and those that it names; and
/// now and then one whose place an invented message takes.
#[test]
fn heads_that_the_way_alters_break_messages_and_hardly_anything_else() {
    for seed in 0..100 {
        let run = run(seed, Way { lost: 5, repeated: 50, late: 50, altered: 50 });
        let counters = run.inbox.counters();
        assert!(counters.malformed > 0, "seed {seed}");
        let accepted = run.accepted.len() as u64;
        assert!(counters.missed <= accepted + SEEN_LEN, "seed {seed}: {counters:?}");
        let untouched: Vec<_> =
            run.sent.keys().filter(|number| !run.touched.contains(number)).collect();
        let given = untouched.iter().filter(|number| run.whole.contains(number)).count();
        let all = untouched.len();
        assert!(all > 20 && given * 10 >= all * 9, "seed {seed}: {given} of {all}, {counters:?}");
    }
}
