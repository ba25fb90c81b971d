//! One `[[flow]]` of a session file.
//!
//! [`FlowSpec`] and its reading. Invariants: a participant's flow has no file as its source; the
//! longest unit is only said of bytes.

use schemars::JsonSchema;
use std::net::SocketAddr;

use crate::attribute::{AttributeKey, Attributes};
use crate::problem::{Problems, quoted, suggestion};
use crate::spanned::Spanned;
use crate::units::{Dimension, format_size};

use super::attributes::{self, AttributePlaces};
use super::graph::{self, ModuleUse};
use super::reader::{Node, Section};
use super::source::{self, AccessUse, Source};
use super::{MAX_UNIT_LEN, consistency, read_name};

/// Who of a session sends or receives.
// The schema of session files takes its descriptions from the comments of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Role {
    /// The one who owns the session file.
    Creator,
    /// One who joined.
    Participant,
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
    /// What takes it at the creator's end, instead of the application; only of bytes that come
    /// from a participant.
    pub sink: Option<Spanned<AccessUse>>,
    /// The C-modules from the application down to the network, which may be no modules; none
    /// leaves the choice to the attributes.
    pub graph: Option<Spanned<Vec<Spanned<ModuleUse>>>>,
    /// The name of the T-module; none leaves the choice to the attributes. Which there are, and
    /// which carry this flow, only the catalogue knows.
    pub transport: Option<Spanned<String>>,
    /// The multicast group and port that it is sent to, once for all who join; only of the
    /// creator's flows.
    pub multicast: Option<Spanned<SocketAddr>>,
    /// Hard bound of the sending rate, in bit/s, above 0.
    pub bound: Option<Spanned<u64>>,
    /// The receiver's jitter budget, in ns.
    pub playout: Option<Spanned<u64>>,
    /// How much of that is kept at least, in ns, where no more is to be kept than is used.
    pub playout_min: Option<Spanned<u64>>,
    /// The largest unit that the application hands over, in bytes, 1 to
    /// [`MAX_UNIT_LEN`](super::MAX_UNIT_LEN); only of [bytes](Source::is_bytes).
    pub unit_max: Option<Spanned<u64>>,
    /// Whether both ends hash every unit and compare at the end; left out, media are hashed and
    /// bytes of the application are not.
    pub digest: Option<Spanned<bool>>,
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

pub(super) use crate::word::Word;

impl Word for Role {
    const ALL: &'static [(&'static str, Self)] =
        &[("creator", Self::Creator), ("participant", Self::Participant)];
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

const KEYS: &[&str] = &[
    "name",
    "from",
    "source",
    "sink",
    "graph",
    "transport",
    "multicast",
    "bound",
    "playout",
    "playout_min",
    "unit_max",
    "digest",
    "attributes",
];

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
    let sink = optional(&section, "sink", |node| source::read_sink(node, problems));
    let graph = optional(&section, "graph", |node| graph::read(node, problems));
    let transport = optional(&section, "transport", |node| read_name(node, problems));
    let multicast = section.optional("multicast").and_then(|node| read_group(&node, problems));
    let bound = read_quantity(&section, "bound", Dimension::Rate, problems);
    let playout = read_quantity(&section, "playout", Dimension::Duration, problems);
    let playout_min = read_quantity(&section, "playout_min", Dimension::Duration, problems);
    let unit_max = section.optional("unit_max").and_then(|node| read_unit_max(&node, problems));
    let digest = optional(&section, "digest", |node| node.switch(problems));
    let places = section.optional("attributes");
    let (attributes, attribute_places) =
        places.map(|node| attributes::read(&node, problems)).unwrap_or_default();
    *attribute_count = attribute_count.saturating_add(attributes.len());
    let parts = consistency::Parts {
        section: &section,
        from,
        source: source.as_ref(),
        multicast,
        bound,
        playout,
        playout_min,
        unit_max,
        attributes: &attributes,
        places: &attribute_places,
    };
    consistency::check(&parts, problems);
    Some(FlowSpec {
        name: name?,
        from: from?,
        source: source?,
        sink: sink?,
        graph: graph?,
        transport: transport?,
        multicast,
        bound,
        playout,
        playout_min,
        unit_max,
        digest: digest?,
        attributes,
        attribute_places,
    })
}

/// The value of a key that may be left out; none when it is there and wrong.
fn optional<T>(
    section: &Section<'_>,
    key: &str,
    read: impl FnOnce(&Node<'_>) -> Option<T>,
) -> Option<Option<T>> {
    match section.optional(key) {
        Some(node) => read(&node).map(Some),
        None => Some(None),
    }
}

/// What a group is written as.
const GROUP: &str = "an address of 224.0.0.0/4 or ff00::/8, without an interface and with a port \
                     above 0, such as \"239.1.2.3:5004\" or \"[ff15::1:2]:5004\"";

fn read_group(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<SocketAddr>> {
    let text = node.text(GROUP, problems)?;
    let group = text.value.parse::<SocketAddr>().ok();
    let group = group.filter(|group| group.ip().is_multicast() && group.port() > 0);
    // A record carries none: who joins takes the interface by which it reaches the creator.
    let group = group.filter(|group| !matches!(group, SocketAddr::V6(at) if at.scope_id() != 0));
    if group.is_none() {
        node.report(format!("{} is not a group", quoted(&text)), GROUP, problems);
    }
    group.map(|group| text.with(group))
}

fn read_unit_max(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<u64>> {
    let len = read_dimension(node, Dimension::Size, problems)?;
    if (1..=MAX_UNIT_LEN).contains(&len.value) {
        return Some(len);
    }
    let what = format!("a unit of {}", format_size(len.value));
    node.report(what, format!("1 B to {}", format_size(MAX_UNIT_LEN)), problems);
    None
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
    format!("\"{}\"", W::words().join("\", \""))
}

/// Reads one of a few words.
pub(super) fn read_word<W: Word>(
    node: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Spanned<W>> {
    let text = node.text(&words::<W>(), problems)?;
    if let Some(value) = W::of(&text.value) {
        return Some(text.with(value));
    }
    let what = format!("{} is not known{}", quoted(&text), suggestion(&text, &W::words()));
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
