//! The tree of a TOML text with the path and place of every node.
//!
//! [`Node`], anything that has a value, and [`Section`], a table. Each way to take a value out
//! reports what is wrong with it and gives none.
//!
//! Invariant: every offset is one of the text; where TOML gives a value no place of its own (a
//! table that only dotted keys imply) it is that of the key, then that of the parent.

use std::ops::RangeInclusive;

use toml_edit::{Array, ArrayOfTables, Item, Table, TableLike, Value};

use crate::problem::{Problems, path_of, suggestion};
use crate::spanned::Spanned;

#[derive(Clone, Copy)]
enum Content<'a> {
    Scalar(&'a Value),
    Array(&'a Array),
    Table(&'a dyn TableLike),
    Tables(&'a ArrayOfTables),
}

/// A value of the file with its dotted path and its offset.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) path: String,
    pub(super) offset: usize,
    content: Content<'a>,
}

/// A table of the file.
pub(super) struct Section<'a> {
    pub(super) path: String,
    pub(super) offset: usize,
    table: &'a dyn TableLike,
}

fn content_of(value: &Value) -> Content<'_> {
    match value {
        Value::Array(array) => Content::Array(array),
        Value::InlineTable(table) => Content::Table(table),
        _ => Content::Scalar(value),
    }
}

impl<'a> Node<'a> {
    fn from_item(item: &'a Item, path: String, fallback: usize) -> Option<Self> {
        let content = match item {
            Item::None => return None,
            Item::Value(value) => content_of(value),
            Item::Table(table) => Content::Table(table),
            Item::ArrayOfTables(tables) => Content::Tables(tables),
        };
        let offset = item.span().map_or(fallback, |span| span.start);
        Some(Self { path, offset, content })
    }

    /// Reports something wrong with this value.
    pub(super) fn report(
        &self,
        what: impl Into<String>,
        allowed: impl Into<String>,
        problems: &mut Problems<'_>,
    ) {
        problems.report(self.offset, &self.path, what, allowed);
    }

    /// What this is, as words for an error.
    fn describe(&self) -> &'static str {
        match self.content {
            Content::Scalar(Value::String(_)) => "a text",
            Content::Scalar(Value::Integer(_)) => "a whole number",
            Content::Scalar(Value::Float(_)) => "a number",
            Content::Scalar(Value::Boolean(_)) => "true or false",
            Content::Scalar(_) => "a date or a time",
            Content::Array(_) => "a list",
            Content::Table(_) => "a table",
            Content::Tables(_) => "a list of tables",
        }
    }

    /// Reports that this is of another type than `wanted`.
    pub(super) fn report_type(&self, wanted: &str, problems: &mut Problems<'_>) {
        self.report(format!("is {}", self.describe()), wanted, problems);
    }

    /// The scalar, when this is one.
    pub(super) fn scalar(&self) -> Option<&'a Value> {
        match self.content {
            Content::Scalar(value) => Some(value),
            _ => None,
        }
    }

    /// The table, when this is one.
    pub(super) fn as_section(&self) -> Option<Section<'a>> {
        match self.content {
            Content::Table(table) => {
                Some(Section { path: self.path.clone(), offset: self.offset, table })
            }
            _ => None,
        }
    }

    /// The table; anything else is reported.
    pub(super) fn section(&self, wanted: &str, problems: &mut Problems<'_>) -> Option<Section<'a>> {
        let section = self.as_section();
        if section.is_none() {
            self.report_type(wanted, problems);
        }
        section
    }

    /// The text; anything else is reported.
    pub(super) fn text(
        &self,
        wanted: &str,
        problems: &mut Problems<'_>,
    ) -> Option<Spanned<String>> {
        let text = self.scalar().and_then(Value::as_str);
        if text.is_none() {
            self.report_type(wanted, problems);
        }
        text.map(|text| self.spanned(text.to_owned(), problems))
    }

    /// True or false.
    pub(super) fn switch(&self, problems: &mut Problems<'_>) -> Option<Spanned<bool>> {
        let switch = self.scalar().and_then(Value::as_bool);
        if switch.is_none() {
            self.report_type("true, false", problems);
        }
        switch.map(|switch| self.spanned(switch, problems))
    }

    /// `value` with the place of this node.
    pub(super) fn spanned<T>(&self, value: T, problems: &Problems<'_>) -> Spanned<T> {
        problems.spanned(self.offset, value)
    }

    /// The elements of a list whose length is in `count`; anything else is reported.
    pub(super) fn elements(
        &self,
        wanted: &str,
        count: RangeInclusive<usize>,
        problems: &mut Problems<'_>,
    ) -> Option<Vec<Self>> {
        let len = match self.content {
            Content::Array(array) => array.len(),
            Content::Tables(tables) => tables.len(),
            _ => {
                self.report_type(wanted, problems);
                return None;
            }
        };
        if !count.contains(&len) {
            let (least, most) = (count.start(), count.end());
            self.report(format!("has {len} elements"), format!("{least} to {most}"), problems);
            return None;
        }
        Some(self.children())
    }

    fn children(&self) -> Vec<Self> {
        let path = |index| format!("{}[{index}]", self.path);
        let place = |span: Option<std::ops::Range<usize>>| span.map_or(self.offset, |s| s.start);
        let of_value = |(index, value): (usize, &'a Value)| Self {
            path: path(index),
            offset: place(value.span()),
            content: content_of(value),
        };
        let of_table = |(index, table): (usize, &'a Table)| Self {
            path: path(index),
            offset: place(table.span()),
            content: Content::Table(table),
        };
        match self.content {
            Content::Array(array) => array.iter().enumerate().map(of_value).collect(),
            Content::Tables(tables) => tables.iter().enumerate().map(of_table).collect(),
            Content::Scalar(_) | Content::Table(_) => Vec::new(),
        }
    }
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn root(table: &'a Table) -> Self {
        Self { path: String::new(), offset: 0, table }
    }

    /// Reports every key that is not among `allowed`.
    pub(super) fn check_keys(&self, allowed: &[&str], problems: &mut Problems<'_>) {
        self.check_keys_but(allowed, None, problems);
    }

    /// The same, without `but`, which the caller reports.
    pub(super) fn check_keys_but(
        &self,
        allowed: &[&str],
        but: Option<&str>,
        problems: &mut Problems<'_>,
    ) {
        let is_unknown = |key: &str| !allowed.contains(&key) && but != Some(key);
        for (key, _) in self.table.iter().filter(|(key, _)| is_unknown(key)) {
            if problems.is_full() {
                problems.omit();
                continue;
            }
            let what = format!("unknown key{}", suggestion(key, allowed));
            let path = path_of(&self.path, key);
            problems.report(self.key_offset(key), &path, what, allowed.join(", "));
        }
    }

    /// Reports something wrong with this table.
    pub(super) fn report(&self, what: &str, allowed: &str, problems: &mut Problems<'_>) {
        problems.report(self.offset, &self.path, what, allowed);
    }

    /// Where a key stands.
    pub(super) fn key_offset(&self, key: &str) -> usize {
        self.table.key(key).and_then(toml_edit::Key::span).map_or(self.offset, |span| span.start)
    }

    /// The value of a key, when it is there.
    pub(super) fn optional(&self, key: &str) -> Option<Node<'a>> {
        let item = self.table.get(key)?;
        Node::from_item(item, path_of(&self.path, key), self.key_offset(key))
    }

    /// The value of a key; its absence is reported.
    pub(super) fn require(
        &self,
        key: &str,
        wanted: &str,
        problems: &mut Problems<'_>,
    ) -> Option<Node<'a>> {
        let node = self.optional(key);
        if node.is_none() {
            problems.report(self.offset, &path_of(&self.path, key), "is missing", wanted);
        }
        node
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// All keys with their values, in the order of the file.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> + '_ {
        self.table.iter().filter_map(|(key, item)| {
            let node = Node::from_item(item, path_of(&self.path, key), self.key_offset(key))?;
            Some((key, node))
        })
    }
}
