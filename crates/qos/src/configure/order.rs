//! [`Order`]: the one order in which modules are stacked.
//!
//! The modules of a catalogue in *slots*, one per stratum and function, from the network upwards. A
//! candidate takes at most one module of each slot. Inside a stratum a slot stands beneath those
//! that one of its modules names in `beneath`; where that leaves several, the function's name
//! decides. Rules that go round in a circle are cut at the first name; the graphs that break one of
//! them are left out, as `dacapo_lift::check` refuses them.
//!
//! ```text
//!   shape | compress | segment | repair: ordering > redundancy | protect | number      > is above
//!                                        <------- slots are filled from here to the left
//! ```
//!
//! Two modules of a stratum that no rule puts in an order are tried in this one only.
//!
//! Invariant: a set of modules with one per function is legal in this order, or in none, unless
//! `beneath` goes round in a circle.

use dacapo_lift::{Catalogue, ModuleSpec, Stratum};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A place in the order: the modules of one function in one stratum.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub stratum: Stratum,
    pub function: &'static str,
    /// By their numbers.
    pub modules: Vec<Candidate>,
    /// The bit of the function where a module further up is refused above it, else 0.
    pub mark: u64,
    /// The marks that modules further up still ask for.
    pub watched: u64,
}

/// A module that a slot can take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub spec: &'static ModuleSpec,
    /// The marks above which it may not stand.
    pub refused_above: u64,
}

/// The modules of a catalogue, from the network upwards.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub slots: Vec<Slot>,
}

impl Order {
    /// The order of a catalogue; `None` when more than 63 functions watch each other.
    pub fn of(catalogue: &Catalogue) -> Option<Self> {
        let mut groups: BTreeMap<(Reverse<Stratum>, &'static str), Vec<&'static ModuleSpec>> =
            BTreeMap::new();
        let mut known = BTreeSet::new();
        for spec in catalogue.entries().iter().map(|entry| entry.spec) {
            // Of two modules with the same number the first counts.
            if known.insert(spec.id) {
                groups.entry((Reverse(spec.stratum), spec.function)).or_default().push(spec);
            }
        }
        let mut slots: Vec<Slot> =
            groups.into_iter().map(|(key, specs)| slot(key, specs)).collect();
        let mut ordered = Vec::with_capacity(slots.len());
        while let Some(stratum) = slots.first().map(|slot| slot.stratum) {
            let end = slots.iter().take_while(|slot| slot.stratum == stratum).count();
            ordered.extend(stack(slots.drain(..end).collect()));
        }
        mark(&mut ordered)?;
        Some(Self { slots: ordered })
    }

    /// Where the slot of a module lies, from the network upwards.
    pub fn place(&self, spec: &ModuleSpec) -> usize {
        let same = |slot: &Slot| slot.stratum == spec.stratum && slot.function == spec.function;
        self.slots.iter().position(same).unwrap_or(self.slots.len())
    }

    /// The modules that serve a function.
    pub fn serving(&self, function: &str) -> impl Iterator<Item = &'static ModuleSpec> {
        let slots = self.slots.iter().filter(move |slot| slot.function == function);
        slots.flat_map(|slot| slot.modules.iter().map(|candidate| candidate.spec))
    }
}

fn slot(
    (Reverse(stratum), function): (Reverse<Stratum>, &'static str),
    mut specs: Vec<&'static ModuleSpec>,
) -> Slot {
    specs.sort_by_key(|spec| spec.id);
    let modules = specs.into_iter().map(|spec| Candidate { spec, refused_above: 0 }).collect();
    Slot { stratum, function, modules, mark: 0, watched: 0 }
}

/// Whether a module of `slot` must stand beneath those of `function`.
fn is_beneath(slot: &Slot, function: &str) -> bool {
    slot.function != function
        && slot.modules.iter().any(|candidate| candidate.spec.beneath.contains(&function))
}

/// The slots of one stratum, given by name, from the network upwards (Kahn 1962).
fn stack(mut slots: Vec<Slot>) -> Vec<Slot> {
    let mut stacked = Vec::with_capacity(slots.len());
    while !slots.is_empty() {
        let free = |slot: &Slot| !slots.iter().any(|other| is_beneath(other, slot.function));
        let next = slots.iter().position(free).unwrap_or(0);
        stacked.push(slots.remove(next));
    }
    stacked
}

/// Gives a mark to each function above which a module further up is refused.
fn mark(slots: &mut [Slot]) -> Option<()> {
    let mut marks: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut next = 1_u64;
    for at in 0..slots.len() {
        let (below, above) = slots.split_at_mut_checked(at.saturating_add(1))?;
        let slot = below.last_mut()?;
        let function = slot.function;
        let asks =
            |spec: &ModuleSpec| spec.function == function || spec.beneath.contains(&function);
        let asked = |slot: &Slot| slot.modules.iter().any(|candidate| asks(candidate.spec));
        if !above.iter().any(asked) {
            continue;
        }
        slot.mark = *marks.entry(function).or_insert(next);
        if slot.mark == next {
            next = next.checked_mul(2)?;
        }
        for candidate in above.iter_mut().flat_map(|slot| &mut slot.modules) {
            candidate.refused_above |= if asks(candidate.spec) { slot.mark } else { 0 };
        }
    }
    let mut watched = 0;
    for slot in slots.iter_mut().rev() {
        slot.watched = watched;
        watched |= slot.modules.iter().fold(0, |marks, candidate| marks | candidate.refused_above);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_lift::Entry;

    const fn spec(
        id: u16,
        function: &'static str,
        stratum: Stratum,
        beneath: &'static [&'static str],
    ) -> ModuleSpec {
        ModuleSpec { stratum, beneath, ..ModuleSpec::plain(function, id) }
    }

    fn order(specs: &[ModuleSpec]) -> Order {
        let entry = |spec: &ModuleSpec| Entry {
            spec: Box::leak(Box::new(*spec)),
            build: |_, _| unreachable!("nothing runs here"),
        };
        Order::of(&Catalogue::new(specs.iter().map(entry).collect())).unwrap()
    }

    fn functions(order: &Order) -> Vec<&'static str> {
        order.slots.iter().map(|slot| slot.function).collect()
    }

    #[test]
    fn strata_come_first_then_what_must_be_beneath_then_the_name() {
        let order = order(&[
            spec(1, "b", Stratum::Repair, &[]),
            spec(2, "c", Stratum::Repair, &["a"]),
            spec(3, "a", Stratum::Repair, &["b"]),
            spec(4, "z", Stratum::Protect, &[]),
            spec(5, "y", Stratum::Shape, &[]),
        ]);
        assert_eq!(functions(&order), ["z", "c", "a", "b", "y"]);
        assert!(order.slots.iter().all(|slot| slot.mark == 0), "nothing can be refused");
    }

    #[test]
    fn a_circle_is_cut_and_what_would_break_a_rule_is_refused() {
        let order = order(&[
            spec(1, "a", Stratum::Repair, &["b"]),
            spec(2, "b", Stratum::Repair, &["a"]),
            spec(3, "b", Stratum::Shape, &[]),
        ]);
        assert_eq!(functions(&order), ["a", "b", "b"]);
        let [a, b, shape] = &order.slots[..] else { panic!("three slots") };
        assert_eq!(b.modules[0].refused_above, a.mark, "b may not stand above a");
        assert_eq!(shape.modules[0].refused_above, b.mark, "b is there once");
        assert_eq!((a.watched, b.watched, shape.watched), (a.mark | b.mark, b.mark, 0));
    }

    #[test]
    fn the_first_of_two_modules_with_a_number_counts() {
        let order = order(&[
            spec(1, "a", Stratum::Repair, &[]),
            spec(1, "b", Stratum::Repair, &[]),
            spec(2, "a", Stratum::Repair, &[]),
        ]);
        assert_eq!(functions(&order), ["a"]);
        let ids: Vec<u16> = order.serving("a").map(|spec| spec.id).collect();
        assert_eq!(ids, [1, 2]);
        assert_eq!(order.place(order.slots[0].modules[0].spec), 0);
    }
}
