//! [`Agreement`]: what was agreed of a flow, against which each change is checked at both ends.
//!
//! ```text
//!   OFFER, ANSWER: attributes, graph, transport ---> Agreement
//!   a change, from here or by PREPARE ---------------> admits? yes, or why not
//! ```
//!
//! Invariant: what was asked of a flow, and kept by the graph that was agreed, is kept by every
//! later one.

use crate::error::{Code, Error};
use crate::graphs::Graphs;
use dacapo_lift::{Properties, Property};
use dacapo_wire::attribute::{AttributeForm, key};
use dacapo_wire::graph::GraphForm;
use dacapo_wire::session::FlowOffer;

/// What was agreed of a flow.
pub(crate) struct Agreement {
    transport: u16,
    /// What was asked for, and is kept by what was agreed.
    kept: Properties,
}

impl Agreement {
    /// What a flow begins with.
    pub fn new(graphs: &Graphs, offer: &FlowOffer) -> Self {
        let given = graphs.above(offer.transport, &offer.graph);
        let asked = asked(&offer.attributes).filter(|property| gives(given, *property));
        let asked: Vec<Property> = asked.collect();
        let (transport, kept) = (offer.transport, Properties::of(&asked));
        Self { transport, kept }
    }

    /// Whether the flow may go on by this graph.
    ///
    /// # Errors
    /// [`Code::Refused`] with what it would give up.
    pub fn admits(&self, graphs: &Graphs, graph: &GraphForm) -> Result<(), Error> {
        let given = graphs.above(self.transport, graph);
        if let Some(lost) = self.kept.iter().find(|property| !gives(given, *property)) {
            let text = format!("the change gives up \"{lost}\", which was agreed");
            return Err(Error::new(Code::Refused, text));
        }
        Ok(())
    }
}

/// Whether what is given keeps a property: where nothing is lost the newest unit arrives, too.
fn gives(given: Properties, property: Property) -> bool {
    let is_more = property == Property::Newest && given.contains(Property::NoLoss);
    is_more || given.contains(property)
}

/// Whether the other end, which proposes a graph, has said that it has its modules: it has all when
/// it has said nothing.
///
/// # Errors
/// [`Code::UnknownModule`] with the one that it has not named.
pub(crate) fn check_named(modules: &[u16], graph: &GraphForm) -> Result<(), Error> {
    let has = |module: &u16| modules.is_empty() || modules.contains(module);
    match graph.nodes.iter().map(|node| node.module).find(|module| !has(module)) {
        None => Ok(()),
        Some(module) => {
            let text = format!("module {module:#06x}, which was not named when it was joined");
            Err(Error::new(Code::UnknownModule, text))
        }
    }
}

/// The properties that the hard bounds of attributes ask for.
fn asked(attributes: &[AttributeForm]) -> impl Iterator<Item = Property> {
    attributes.iter().filter_map(|attribute| {
        let level = attribute.min.unwrap_or(0);
        match attribute.key {
            key::LOSS if attribute.max == Some(0) => Some(Property::NoLoss),
            key::ORDER if level >= 1 => Some(Property::Order),
            key::DUPLICATES if level >= 1 => Some(Property::NoDuplicates),
            key::INTEGRITY if level >= 1 => Some(Property::Integrity),
            key::CONFIDENTIALITY if level >= 2 => Some(Property::Confidentiality),
            key::AUTHENTICITY if level >= 3 => Some(Property::SourceAuthenticity),
            key::AUTHENTICITY if level == 2 => Some(Property::GroupAuthenticity),
            key::NEWEST if level >= 1 => Some(Property::Newest),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(key: u16, min: Option<i64>, max: Option<i64>) -> AttributeForm {
        AttributeForm { key, min, max, weight: None }
    }

    #[test]
    fn a_hard_bound_asks_for_a_property_and_a_preference_for_none() {
        let of = |key, min, max| asked(&[attribute(key, min, max)]).next();
        assert_eq!(of(key::ORDER, Some(1), None), Some(Property::Order));
        assert_eq!(of(key::ORDER, Some(0), None), None);
        assert_eq!(of(key::DUPLICATES, Some(1), None), Some(Property::NoDuplicates));
        assert_eq!(of(key::INTEGRITY, Some(1), None), Some(Property::Integrity));
        assert_eq!(of(key::LOSS, None, Some(0)), Some(Property::NoLoss));
        assert_eq!(of(key::LOSS, None, Some(1)), None);
        assert_eq!(of(key::CONFIDENTIALITY, Some(1), None), None, "it is preferred");
        assert_eq!(of(key::CONFIDENTIALITY, Some(2), None), Some(Property::Confidentiality));
        assert_eq!(of(key::AUTHENTICITY, Some(2), None), Some(Property::GroupAuthenticity));
        assert_eq!(of(key::AUTHENTICITY, Some(3), None), Some(Property::SourceAuthenticity));
        assert_eq!(of(key::NEWEST, Some(1), None), Some(Property::Newest));
        assert_eq!(of(999, Some(9), Some(0)), None, "a key of a later version");
    }

    #[test]
    fn a_module_that_the_other_end_has_not_named_is_refused() {
        let graph = GraphForm::line([(7, Vec::new())]);
        let code = |modules: &[u16]| check_named(modules, &graph).err().map(|error| error.code);
        assert_eq!(code(&[]), None, "it has not said");
        assert_eq!(code(&[1, 7]), None);
        assert_eq!(code(&[1]), Some(Code::UnknownModule));
    }
}
