//! [`SessionBuilder`] and [`FlowBuilder`]: a session file that a program writes.
//!
//! ```text
//!   SessionBuilder --text--> SessionFile::parse     one reader, whoever has written it
//! ```
//!
//! What is told is written as it would stand in a file, under the keys of the schema; whether it is
//! right the reader says, with the line of the text that the builder displays.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

use super::Role;
use crate::word::Word;

/// A session, told by calls instead of a text.
///
/// ```
/// use dacapo_qos::{Fields, FlowBuilder, Role, SessionBuilder, SessionFile};
/// let text = FlowBuilder::new("text", Role::Participant, Fields::new().with("raw", true))
///     .attribute("loss", 0.0)
///     .attribute("delay", Fields::new().with("max", "50 ms").with("weight", 1.0));
/// let session = SessionBuilder::new("notes").title("Notes").flow(text);
/// let read = SessionFile::parse(&session.to_string(), "notes").unwrap();
/// assert_eq!(read.flows[0].name.value, "text");
/// ```
#[derive(Clone, Debug)]
pub struct SessionBuilder {
    session: Table,
    path: Option<Table>,
    flows: Vec<FlowBuilder>,
}

impl SessionBuilder {
    /// A session of this name, without flows.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let session = with(Table::new(), "name", name);
        Self { session, path: None, flows: Vec::new() }
    }

    /// What people see of it.
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        Self { session: with(self.session, "title", title), ..self }
    }

    /// How long contact may be lost before it is given up.
    #[must_use]
    pub fn give_up(self, after: Duration) -> Self {
        Self { session: with(self.session, "give_up", after), ..self }
    }

    /// What is assumed of the network: the keys of `[path]`.
    #[must_use]
    pub fn path(self, path: Fields) -> Self {
        Self { path: Some(path.0.into_table()), ..self }
    }

    /// Another flow.
    #[must_use]
    pub fn flow(mut self, flow: FlowBuilder) -> Self {
        self.flows.push(flow);
        self
    }
}

impl fmt::Display for SessionBuilder {
    /// The text of the session file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut document = DocumentMut::new();
        document.insert("session", Item::Table(self.session.clone()));
        if let Some(path) = &self.path {
            document.insert("path", Item::Table(path.clone()));
        }
        let mut flows = ArrayOfTables::new();
        self.flows.iter().for_each(|flow| flows.push(flow.table.clone()));
        if !flows.is_empty() {
            document.insert("flow", Item::ArrayOfTables(flows));
        }
        document.fmt(f)
    }
}

/// A flow of a [`SessionBuilder`].
#[derive(Clone, Debug)]
pub struct FlowBuilder {
    table: Table,
}

impl FlowBuilder {
    /// A flow that this end sends, of this source: an access module's keys, as in
    /// `{ file = "movie.avi", stream = "video" }` or `{ raw = true }`.
    #[must_use]
    pub fn new(name: &str, from: Role, source: Fields) -> Self {
        let from = Role::ALL.iter().find(|(_, role)| *role == from).map_or("", |(word, _)| word);
        Self { table: Table::new() }.key("name", name).key("from", from).key("source", source)
    }

    /// What takes its units at the creator's end.
    #[must_use]
    pub fn sink(self, sink: Fields) -> Self {
        self.key("sink", sink)
    }

    /// What it must be: one attribute, and its value or its bounds (`min`, `max`, `weight`).
    #[must_use]
    pub fn attribute(mut self, key: &str, value: impl Into<FieldValue>) -> Self {
        let attributes = self.table.entry("attributes").or_insert_with(toml_edit::table);
        if let Some(attributes) = attributes.as_table_mut() {
            attributes.insert(key, Item::Value(value.into().0));
        }
        self
    }

    /// Its C-modules from the application to the network, instead of a choice: each by its name
    /// alone, or with parameters by the key `module` and theirs.
    #[must_use]
    pub fn graph<M: Into<FieldValue>>(self, modules: impl IntoIterator<Item = M>) -> Self {
        let modules: Array = modules.into_iter().map(|module| module.into().0).collect();
        self.key("graph", FieldValue(Value::Array(modules)))
    }

    /// Its transport by name, instead of a choice.
    #[must_use]
    pub fn transport(self, name: &str) -> Self {
        self.key("transport", name)
    }

    /// The group and the port that it is sent to, once for all.
    #[must_use]
    pub fn multicast(self, group: SocketAddr) -> Self {
        self.key("multicast", group.to_string())
    }

    /// The most that it sends, in bit/s.
    #[must_use]
    pub fn bound_bps(self, bound_bps: u64) -> Self {
        self.key("bound", format!("{bound_bps} bit/s"))
    }

    /// How long a receiver of media holds units.
    #[must_use]
    pub fn playout(self, playout: Duration) -> Self {
        self.key("playout", playout)
    }

    /// How much of that it keeps at least, where it is to keep no more than is used.
    #[must_use]
    pub fn playout_min(self, least: Duration) -> Self {
        self.key("playout_min", least)
    }

    /// The longest unit that the application hands over, in bytes.
    #[must_use]
    pub fn unit_len_max(self, unit_len_max: u64) -> Self {
        self.key("unit_max", format!("{unit_len_max} B"))
    }

    /// Whether both ends hash its units and compare.
    #[must_use]
    pub fn digest(self, digest: bool) -> Self {
        self.key("digest", digest)
    }

    fn key(self, key: &str, value: impl Into<FieldValue>) -> Self {
        Self { table: with(self.table, key, value) }
    }
}

fn with(mut table: Table, key: &str, value: impl Into<FieldValue>) -> Table {
    table.insert(key, Item::Value(value.into().0));
    table
}

/// Values by their keys, as in `{ max = "50 ms", weight = 1 }`.
#[derive(Clone, Debug, Default)]
pub struct Fields(InlineTable);

impl Fields {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<FieldValue>) -> Self {
        self.0.insert(key, value.into().0);
        self
    }
}

/// A value of a session file: a text, a number, a switch, a duration, or [`Fields`].
#[derive(Clone, Debug)]
pub struct FieldValue(Value);

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<bool> for FieldValue {
    fn from(switch: bool) -> Self {
        Self(switch.into())
    }
}

impl From<i64> for FieldValue {
    fn from(number: i64) -> Self {
        Self(number.into())
    }
}

impl From<f64> for FieldValue {
    fn from(number: f64) -> Self {
        Self(number.into())
    }
}

impl From<Duration> for FieldValue {
    fn from(duration: Duration) -> Self {
        Self(format!("{} ns", duration.as_nanos()).into())
    }
}

impl From<Fields> for FieldValue {
    fn from(fields: Fields) -> Self {
        Self(Value::InlineTable(fields.0))
    }
}
