//! One `[[flow]]` of a session file.
//!
//! What it is: [`FlowSpec`] and its reading, with the checks between its keys. What it is not: a
//! running flow. Invariant: a participant's flow has no file as its source.

use crate::attribute::{AttributeKey, Attributes};
use crate::problem::{Problems, quoted, suggestion};
use crate::spanned::Spanned;
use crate::units::{Dimension, format_rate};

use super::attributes::{self, AttributePlaces};
use super::graph::{self, ModuleUse};
use super::read_name;
use super::reader::{Node, Section};
use super::source::{self, Source};

/// Who of a session sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one who owns the session file.
    Creator,
    /// One who joined.
    Participant,
}

/// The T-module that carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// Datagrams of UDP.
    Udp,
    /// Within one process.
    Inproc,
}

/// One flow as the session file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name, different from those of the other flows.
    pub name: Spanned<String>,
    /// Who sends it.
    pub from: Spanned<Role>,
    /// What is sent.
    pub source: Spanned<Source>,
    /// The C-modules from the application down to the network; may be empty.
    pub graph: Spanned<Vec<Spanned<ModuleUse>>>,
    /// The T-module.
    pub transport: Spanned<TransportKind>,
    /// Hard bound of the sending rate, in bit/s, above 0.
    pub bound: Option<Spanned<u64>>,
    /// The receiver's jitter budget, in ns.
    pub playout: Option<Spanned<u64>>,
    /// What the application asks for.
    pub attributes: Attributes,
    pub(super) attribute_places: AttributePlaces,
}

impl FlowSpec {
    /// Where an attribute that was given stands.
    #[must_use]
    pub fn attribute_place(&self, key: AttributeKey) -> Option<Spanned<()>> {
        self.attribute_places.get(&key).copied()
    }
}

/// A word of the file that stands for one of a few values.
pub(super) trait Word: Copy + 'static {
    const ALL: &'static [(&'static str, Self)];
}

impl Word for Role {
    const ALL: &'static [(&'static str, Self)] =
        &[("creator", Self::Creator), ("participant", Self::Participant)];
}

impl Word for TransportKind {
    const ALL: &'static [(&'static str, Self)] = &[("udp", Self::Udp), ("inproc", Self::Inproc)];
}

impl Role {
    /// The word in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Creator => "creator",
            Self::Participant => "participant",
        }
    }
}

impl TransportKind {
    /// The word in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Inproc => "inproc",
        }
    }
}

const KEYS: &[&str] =
    &["name", "from", "source", "graph", "transport", "bound", "playout", "attributes"];

/// Reads one flow; `names` are those of the flows before it, with their lines, and
/// `attribute_count` that of their attributes.
pub(super) fn read(
    node: &Node<'_>,
    names: &mut Vec<Spanned<String>>,
    attribute_count: &mut usize,
    problems: &mut Problems<'_>,
) -> Option<FlowSpec> {
    let section = node.section("a table with the keys of a flow", problems)?;
    section.check_keys(KEYS, problems);
    let name = read_flow_name(&section, names, problems);
    let from = require_word(&section, "from", problems);
    let source = section
        .require("source", source::WANTED, problems)
        .and_then(|node| source::read(&node, problems));
    let graph = section
        .require("graph", graph::WANTED, problems)
        .and_then(|node| graph::read(&node, problems));
    let transport = require_word(&section, "transport", problems);
    let bound = read_quantity(&section, "bound", Dimension::Rate, problems);
    let playout = read_quantity(&section, "playout", Dimension::Duration, problems);
    let places = section.optional("attributes");
    let (attributes, attribute_places) =
        places.map(|node| attributes::read(&node, problems)).unwrap_or_default();
    *attribute_count = attribute_count.saturating_add(attributes.len());
    check_bound(&section, bound, &attributes, problems);
    check_file_owner(&section, from, source.as_ref(), problems);
    Some(FlowSpec {
        name: name?,
        from: from?,
        source: source?,
        graph: graph?,
        transport: transport?,
        bound,
        playout,
        attributes,
        attribute_places,
    })
}

fn read_flow_name(
    section: &Section<'_>,
    names: &mut Vec<Spanned<String>>,
    problems: &mut Problems<'_>,
) -> Option<Spanned<String>> {
    let node = section.require("name", super::NAME_RULE, problems)?;
    let name = read_name(&node, problems)?;
    if let Some(other) = names.iter().find(|other| other.value == name.value) {
        let what = format!("{} is the name of the flow at line {} too", quoted(&name), other.line);
        node.report(what, "a different name for every flow", problems);
    }
    names.push(name.clone());
    Some(name)
}

fn require_word<W: Word>(
    section: &Section<'_>,
    key: &str,
    problems: &mut Problems<'_>,
) -> Option<Spanned<W>> {
    let node = section.require(key, &words::<W>(), problems)?;
    read_word(&node, problems)
}

fn words<W: Word>() -> String {
    let words: Vec<_> = W::ALL.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    words.join(", ")
}

/// Reads one of a few words.
pub(super) fn read_word<W: Word>(
    node: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Spanned<W>> {
    let text = node.text(&words::<W>(), problems)?;
    if let Some((_, value)) = W::ALL.iter().find(|(word, _)| *word == text.value) {
        return Some(text.with(*value));
    }
    let names: Vec<_> = W::ALL.iter().map(|(word, _)| *word).collect();
    let what = format!("{} is not known{}", quoted(&text), suggestion(&text, &names));
    node.report(what, words::<W>(), problems);
    None
}

fn read_quantity(
    section: &Section<'_>,
    key: &str,
    dimension: Dimension,
    problems: &mut Problems<'_>,
) -> Option<Spanned<u64>> {
    read_dimension(&section.optional(key)?, dimension, problems)
}

/// Reads a value with a unit.
pub(super) fn read_dimension(
    node: &Node<'_>,
    dimension: Dimension,
    problems: &mut Problems<'_>,
) -> Option<Spanned<u64>> {
    let text = node.text(&dimension.allowed(), problems)?;
    match dimension.parse(&text) {
        Ok(quantity) => Some(text.with(quantity)),
        Err(error) => {
            node.report(error.what(), error.allowed(), problems);
            None
        }
    }
}

/// A bound that forbids what the attributes demand, or everything, is a mistake.
fn check_bound(
    section: &Section<'_>,
    bound: Option<Spanned<u64>>,
    attributes: &Attributes,
    problems: &mut Problems<'_>,
) {
    let (Some(bound), Some(node)) = (bound, section.optional("bound")) else { return };
    let least = attributes.get(AttributeKey::Throughput).and_then(|throughput| throughput.min);
    if bound.value == 0 {
        node.report("a flow with this bound sends nothing", "a rate above 0", problems);
    } else if let Some(least) = least.filter(|&least| least > bound.value) {
        let (bound, least) = (format_rate(bound.value), format_rate(least));
        let what = format!("{bound} is below attributes.throughput.min = {least}");
        node.report(what, "a bound that lets the least throughput pass", problems);
    }
}

/// The file belongs to the creator; nobody else should open one because it says so.
fn check_file_owner(
    section: &Section<'_>,
    from: Option<Spanned<Role>>,
    source: Option<&Spanned<Source>>,
    problems: &mut Problems<'_>,
) {
    let from_participant = from.is_some_and(|from| from.value == Role::Participant);
    let is_file = source.is_some_and(|source| matches!(source.value, Source::File { .. }));
    if let (true, true, Some(node)) = (from_participant, is_file, section.optional("source")) {
        let what = "a participant cannot be told to send a file";
        node.report(what, "{ raw = true } or { test = … } when from = \"participant\"", problems);
    }
}
