//! The choice against an oracle that tries everything, over catalogues and requests made of seeds.
//!
//! A failure prints its seed; `DACAPO_SEED=n cargo test -p dacapo-qos --test configure one_seed`
//! repeats that catalogue with all its requests. `DACAPO_SEEDS` sets how many catalogues are tried.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod brute;
mod readable;
mod requests;
mod synthetic;

use brute::Candidate;
use dacapo_base::Random;
use dacapo_base::seeds::{each_seed, number};
use dacapo_lift::{Catalogue, Needs, Offer, check};
use dacapo_qos::configure::{
    Change, Demand, DemandSet, Forced, Nearest, Part, Reason, Refusal, Rejected, Why,
};
use dacapo_qos::{AttributeKey, Choice, Pins, Request, choose};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use synthetic::{Size, World};

const CATALOGUES: u64 = 200;
const REQUESTS: u64 = 50;

/// What has been seen, so that no property is kept by never being tried.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    requests: u64,
    candidates: u64,
    chosen: u64,
    refused: u64,
    modules: u64,
    weighted: u64,
    forced_by_one: u64,
    forced_by_several: u64,
    free: u64,
    conflicts_of_one: u64,
    conflicts_of_two: u64,
    conflicts_of_more: u64,
    nearest: u64,
    nearest_of_several: u64,
    pinned: u64,
    pinned_refused: u64,
    rejected: u64,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        let fields = |seen: &mut Self, other: &Self| {
            for (mine, theirs) in seen.list().into_iter().zip({ *other }.list()) {
                *mine += *theirs;
            }
        };
        fields(self, other);
    }

    fn list(&mut self) -> [&mut u64; 17] {
        [
            &mut self.requests,
            &mut self.candidates,
            &mut self.chosen,
            &mut self.refused,
            &mut self.modules,
            &mut self.weighted,
            &mut self.forced_by_one,
            &mut self.forced_by_several,
            &mut self.free,
            &mut self.conflicts_of_one,
            &mut self.conflicts_of_two,
            &mut self.conflicts_of_more,
            &mut self.nearest,
            &mut self.nearest_of_several,
            &mut self.pinned,
            &mut self.pinned_refused,
            &mut self.rejected,
        ]
    }
}

/// One catalogue with its candidates, and one request.
struct Case<'a> {
    catalogue: &'a Catalogue,
    candidates: &'a [Candidate],
    request: &'a Request,
}

impl Case<'_> {
    fn best(&self, active: DemandSet) -> Option<&Candidate> {
        brute::best(self.candidates, self.request, active, &Pins::NONE)
    }

    fn asked(&self) -> DemandSet {
        brute::demands(self.request)
    }

    fn run(&self, seen: &mut Seen) {
        let chosen = choose(self.catalogue, self.request, &Pins::NONE);
        let oracle = self.best(self.asked());
        seen.requests += 1;
        match (chosen, oracle) {
            (Ok(choice), Some(best)) => self.check_choice(&choice, best, seen),
            (Err(refusal), None) => self.check_refusal(&refusal, seen),
            (Ok(choice), None) => panic!("chosen, but nothing is feasible: {}", choice.explanation),
            (Err(refusal), Some(best)) => panic!("refused: {refusal}\nfeasible: {best:?}"),
        }
    }

    fn check_choice(&self, choice: &Choice, best: &Candidate, seen: &mut Seen) {
        seen.chosen += 1;
        seen.modules += choice.graph.nodes.len() as u64;
        let weighs = self.request.attributes.entries().any(|(_, asked)| asked.weight.is_some());
        seen.weighted += u64::from(weighs);
        assert_eq!(choice.graph, best.graph, "the graph of trying everything");
        assert_eq!(choice.transport.id, best.transport.id);
        assert_eq!(choice.outcome.delay_ns, best.service.figures.delay_ns);
        assert_eq!(choice.outcome.properties, best.service.properties);
        let receivers = self.request.attributes.get(AttributeKey::Receivers);
        let receivers = receivers.and_then(|asked| asked.min).unwrap_or(1);
        assert_eq!(choice.outcome.cpu_ppb, best.cpu_ppb * receivers);
        self.check_legal(choice);
        self.check_bounds(choice);
        for part in &choice.explanation.parts {
            self.check_forced(choice, part, seen);
        }
        for rejected in &choice.explanation.rejected {
            seen.rejected += 1;
            check_rejected(rejected);
        }
        let again = choose(self.catalogue, self.request, &Pins::NONE).unwrap();
        assert_eq!(*choice, again, "the same answer every time");
    }

    fn check_legal(&self, choice: &Choice) {
        let path_len = self.request.setting.path.datagram_len;
        let offer = Offer {
            transport: choice.transport.name,
            properties: choice.transport.properties,
            datagram_len: choice.transport.datagram_len_over(path_len) as usize,
            path_head: self.request.path_head as usize,
        };
        let unit_len_max = (choice.outcome.unit_len_max + self.request.unit_head) as usize;
        let legal = check(self.catalogue, &choice.graph, &offer, Needs { unit_len_max });
        assert_eq!(legal, Ok(()), "{:?}", choice.outcome);
    }

    /// Every bound is told, and the playout delay lies between what comes and what is asked.
    fn check_bounds(&self, choice: &Choice) {
        let told: DemandSet = choice.explanation.attributes.iter().map(|met| met.demand).collect();
        let keys = self.request.attributes.entries().map(|(key, _)| Demand::Attribute(key));
        assert_eq!(told, keys.collect::<DemandSet>());
        let Some(playout) = choice.outcome.playout_ns else { return };
        assert!(choice.outcome.delay_ns <= playout, "{:?}", choice.outcome);
        for key in [AttributeKey::Delay, AttributeKey::Deadline] {
            let bound = self.request.attributes.get(key).and_then(|asked| asked.max);
            assert!(bound.is_none_or(|bound| playout <= bound), "{:?}", choice.outcome);
        }
    }

    /// Without what forces a part it is not chosen; with some of it, it is.
    fn check_forced(&self, choice: &Choice, part: &Part, seen: &mut Seen) {
        let has = |candidate: &Candidate| match part.function {
            "transport" => candidate.transport.name == part.name,
            _ => candidate.has(part.name, self.catalogue),
        };
        let relaxed = |set: DemandSet| has(self.best(self.asked().without(set)).unwrap());
        let asked = self.asked();
        let single = |demand: Demand| DemandSet::one(demand);
        match &part.forced_by {
            Forced::Each(each) => {
                seen.forced_by_one += 1;
                let named: DemandSet = each.iter().map(|asked| asked.demand).collect();
                for demand in asked.iter() {
                    let needed = named.contains(demand);
                    assert_eq!(!relaxed(single(demand)), needed, "{} and {demand}", part.name);
                    if needed {
                        self.check_without(choice, part, single(demand));
                    }
                }
            }
            Forced::Together(together) => {
                seen.forced_by_several += 1;
                let named: DemandSet = together.iter().map(|asked| asked.demand).collect();
                assert!(named.len() > 1 && !relaxed(named), "{} and {named:?}", part.name);
                self.check_without(choice, part, named);
                for set in subsets(named).into_iter().filter(|set| set.len() < named.len()) {
                    assert!(relaxed(set), "{}: {set:?} of {named:?} is enough", part.name);
                }
                // No smaller set of any demands does it.
                for set in subsets(asked).into_iter().filter(|set| set.len() < named.len()) {
                    assert!(relaxed(set), "{}: {set:?} is smaller than {named:?}", part.name);
                }
            }
            Forced::Nothing => {
                seen.free += 1;
                for set in subsets(asked).into_iter().take(64).chain([asked]) {
                    assert!(relaxed(set), "{}: {set:?} forces it", part.name);
                }
            }
            Forced::Pinned | Forced::Untold => panic!("{}: {:?}", part.name, part.forced_by),
        }
    }

    /// The request is asked again without attributes; what they force is not chosen.
    fn check_without(&self, choice: &Choice, part: &Part, set: DemandSet) {
        let mut request = self.request.clone();
        for demand in set.iter() {
            let Demand::Attribute(key) = demand else { return };
            request.attributes.remove(key);
        }
        let other = choose(self.catalogue, &request, &Pins::NONE).unwrap();
        let has = other
            .explanation
            .parts
            .iter()
            .any(|other| (other.name, other.function) == (part.name, part.function));
        assert!(!has, "{} without {set:?}: {}", part.name, choice.explanation);
    }

    fn check_refusal(&self, refusal: &Refusal, seen: &mut Seen) {
        seen.refused += 1;
        let Reason::Conflict { .. } = &refusal.reason else { panic!("{refusal}") };
        let conflict: DemandSet = refusal.demands().collect();
        match conflict.len() {
            1 => seen.conflicts_of_one += 1,
            2 => seen.conflicts_of_two += 1,
            _ => seen.conflicts_of_more += 1,
        }
        assert!(self.best(conflict).is_none(), "{refusal}: can be met");
        for demand in conflict.iter() {
            let rest = conflict.without(DemandSet::one(demand));
            assert!(self.best(rest).is_some(), "{refusal}: {demand} is not needed");
            let others = self.asked().without(DemandSet::one(demand));
            self.check_nearest(refusal, demand, self.best(others).is_some());
        }
        for nearest in &refusal.nearest {
            seen.nearest += 1;
            seen.nearest_of_several += u64::from(nearest.changes.len() > 1);
            self.check_granted(refusal, nearest);
        }
    }

    /// There is a nearest value exactly when all others can be met, and it is the best one.
    fn check_nearest(&self, refusal: &Refusal, demand: Demand, others_met: bool) {
        let single = refusal.nearest.iter().filter(|nearest| nearest.changes.len() == 1);
        let mut changes = single.map(|nearest| nearest.changes[0]);
        let found = changes.find(|change| demand_of(change) == demand);
        if demand == Demand::UnitSize {
            return; // Units of another size are another setting.
        }
        assert_eq!(found.is_some(), others_met, "{refusal}: {demand}");
        let Some(Change::Requirement(key, asked)) = found else { return };
        let others = self.asked().without(DemandSet::one(demand));
        let others = brute::Active::of(self.request, others);
        let meeting = || self.candidates.iter().filter(|c| others.is_met_by(c));
        let least = |value: fn(&Candidate) -> u64| meeting().map(value).min().unwrap();
        let receivers = self.request.attributes.get(AttributeKey::Receivers);
        let receivers = receivers.and_then(|asked| asked.min).unwrap_or(1);
        let best = match key {
            AttributeKey::Loss => least(|c| c.service.figures.loss_ppb).max(1_000),
            AttributeKey::Jitter => least(|c| c.service.figures.jitter_ns),
            AttributeKey::Cpu => least(|c| c.cpu_ppb) * receivers,
            AttributeKey::Throughput if self.request.attributes.get(key).unwrap().max.is_none() => {
                let most = meeting().map(|c| c.service.figures.rate_bps).max().unwrap();
                let min = asked.min.unwrap();
                assert!(min <= most && min >= most - most / 100, "{refusal}: {most} is there");
                return;
            }
            _ => return,
        };
        let max = asked.max.unwrap();
        assert!(max >= best && max <= best + best / 100 + 1, "{refusal}: {best} is there");
    }

    fn check_granted(&self, refusal: &Refusal, nearest: &Nearest) {
        let request = nearest.request(self.request);
        assert_eq!(request.attributes.check(), Ok(()), "{refusal}");
        match choose(self.catalogue, &request, &Pins::NONE) {
            Ok(choice) => assert_eq!(
                (choice.graph, choice.transport.id, choice.outcome),
                (nearest.graph.clone(), nearest.transport.id, nearest.outcome),
                "{refusal}"
            ),
            Err(again) => panic!("{refusal}\nnearest {nearest} is refused: {again}"),
        }
    }

    /// What is pinned is taken as it is, or refused for what it breaks.
    fn check_pinned(&self, pins: &Pins, seen: &mut Seen) {
        seen.pinned += 1;
        let oracle = brute::best(self.candidates, self.request, self.asked(), pins);
        match (choose(self.catalogue, self.request, pins), oracle) {
            (Ok(choice), Some(best)) => {
                assert_eq!((&choice.graph, choice.transport.id), (&best.graph, best.transport.id));
                let all = choice.explanation.parts.iter();
                let pinned = all.filter(|part| part.forced_by == Forced::Pinned).count();
                let modules = pins.graph.as_ref().map_or(0, |graph| graph.nodes.len());
                assert_eq!(pinned, modules + usize::from(pins.transport.is_some()));
            }
            (Err(refusal), None) => {
                seen.pinned_refused += 1;
                let free = self.best(self.asked());
                assert_eq!(refusal.unpinned.is_some(), free.is_some(), "{refusal}");
                assert!(refusal.demands().count() > 0, "{refusal}");
            }
            (chosen, oracle) => panic!("{pins:?}\n{chosen:?}\n{oracle:?}"),
        }
    }
}

fn demand_of(change: &Change) -> Demand {
    match change {
        Change::Requirement(key, _) | Change::Dropped(key) => Demand::Attribute(*key),
        Change::UnitLen(_) => Demand::UnitSize,
        Change::Playout(_) => Demand::Playout,
    }
}

fn check_rejected(rejected: &Rejected) {
    match &rejected.why {
        Why::Breaks(violations) => assert!(!violations.is_empty(), "{rejected}"),
        Why::Illegal(reason) => assert!(!reason.is_empty() && rejected.cost_ppm.is_none()),
        Why::Dearer => assert!(rejected.cost_ppm >= Some(0), "{rejected}"),
        Why::Weighs => assert!(rejected.cost_ppm <= Some(0), "{rejected}"),
        Why::Equal => assert_eq!(rejected.cost_ppm, Some(0), "{rejected}"),
        Why::Nothing => panic!("nothing is pinned: {rejected}"),
    }
}

/// All sets of these demands, smaller ones first.
fn subsets(set: DemandSet) -> Vec<DemandSet> {
    let demands: Vec<Demand> = set.iter().collect();
    let one = |bits: u32| -> DemandSet {
        let among = demands.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1);
        among.map(|(_, demand)| *demand).collect()
    };
    let mut sets: Vec<DemandSet> = (0..1_u32 << demands.len()).map(one).collect();
    sets.sort_by_key(|set| set.len());
    sets
}

fn try_catalogue(seed: u64, requests: u64) -> Seen {
    let mut random = Random::from_number(seed);
    let functions = 12 + random.below(2) as usize;
    let size = Size { functions, transports: 1 + random.below(3), candidates: 10_000 };
    let World { catalogue, setting } = synthetic::world(&mut random, size);
    let request = requests::bare(setting);
    let candidates = brute::candidates(&catalogue, &request);
    let mut seen = Seen { candidates: candidates.len() as u64, ..Seen::default() };
    for _ in 0..requests {
        let request = requests::request(&mut random, setting, &candidates);
        let case = Case { catalogue: &catalogue, candidates: &candidates, request: &request };
        case.run(&mut seen);
        if random.chance(0.2) {
            case.check_pinned(&requests::pins(&mut random, &candidates), &mut seen);
        }
    }
    seen
}

fn run(seed: u64) -> Seen {
    catch_unwind(AssertUnwindSafe(|| try_catalogue(seed, REQUESTS))).unwrap_or_else(|panic| {
        println!(
            "seed {seed}; repeat: DACAPO_SEED={seed} cargo test -p dacapo-qos --test configure \
             one_seed -- --nocapture"
        );
        resume_unwind(panic)
    })
}

#[test]
fn the_choice_and_the_refusal_are_those_of_trying_everything() {
    let seeds = number("DACAPO_SEEDS", CATALOGUES);
    let seen = Mutex::new(Seen::default());
    each_seed(0..seeds, |seed| {
        let one = run(seed);
        seen.lock().unwrap().add(&one);
    });
    let mut seen = seen.into_inner().unwrap();
    println!("{seeds} catalogues: {seen:?}");
    if seeds >= CATALOGUES {
        assert!(seen.list().into_iter().all(|count| *count >= 20), "hardly tried: {seen:?}");
    }
}

#[test]
fn one_seed() {
    println!("{:?}", run(number("DACAPO_SEED", 1998)));
}

#[test]
fn more_candidates_than_can_be_compared_are_an_error_and_never_a_worse_choice() {
    for functions in [4, 6, 12] {
        let World { catalogue, setting } = synthetic::adversarial(functions);
        let request = requests::bare(setting);
        match choose(&catalogue, &request, &Pins::NONE) {
            Ok(choice) => {
                assert!(functions <= 6, "{functions} functions: every candidate is kept");
                assert_eq!(choice.graph.nodes.len(), 0, "nothing is asked");
            }
            Err(refusal) => {
                assert!(functions > 6, "{functions} functions: {refusal}");
                assert_eq!(refusal.reason, Reason::TooMany);
            }
        }
    }
}
