//! The session file: how the creator of a session describes it.
//!
//! A TOML text with one `[session]`, at most one `[path]` and up to [`MAX_FLOWS`] `[[flow]]`, read
//! into [`SessionFile`]. All mistakes are collected (a text that is no TOML at all has one, at its
//! line and column). `conf/` has commented examples, `docs/session.schema.json` the keys as JSON
//! Schema.
//!
//! ```text
//!   text ── toml_edit ──> tree with spans ── reader (Node, Section) ──┬─ path   ┌─ source
//!                                                                     ├─ flow ──┼─ graph
//!                                 Problems <── every step reports ────┘         ├─ attributes
//!                                                                               └─ consistency
//! ```
//!
//! No file is opened.
//!
//! Invariants: a [`SessionFile`] has 1 to [`MAX_FLOWS`] flows with different names, at most
//! [`MAX_MODULES`] modules per graph, [`MAX_PARAMS`] parameters per module and [`MAX_ATTRIBUTES`]
//! attributes altogether (limits R2.4); unknown keys are errors; a participant's flow never names
//! a file or an access module, so a session from elsewhere cannot make anybody open one.

mod attributes;
mod builder;
mod consistency;
mod flow;
mod graph;
mod path;
mod reader;
mod source;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::{Document, TomlError};

pub use builder::{FieldValue, Fields, FlowBuilder, SessionBuilder};
pub use flow::{FlowSpec, Role};
pub(crate) use graph::MAX_PARAM_TEXT_LEN;
pub use graph::{ModuleUse, Param};
pub use source::{AccessUse, Passes, Source, StreamKind, StreamSelector, TestMedia};

use crate::path::PathAssumption;
use crate::problem::{Errors, Problem, Problems, quoted};
use crate::spanned::Spanned;
use crate::units::parse_duration;
use reader::{Node, Section};

/// Bytes of a session file, at most. It is the host's own: its tree may take a thousand times as
/// much when it is all dotted keys.
pub const MAX_FILE_LEN: usize = 1 << 20;
/// Flows of a session, at most.
pub const MAX_FLOWS: usize = 64;
/// Modules of a graph, at most.
pub const MAX_MODULES: usize = 32;
/// Parameters of a module, at most.
pub const MAX_PARAMS: usize = 32;
/// Attributes of all flows of a session together, at most.
pub const MAX_ATTRIBUTES: usize = 256;
/// Characters of a name, at most.
pub const MAX_NAME_LEN: usize = 64;
/// Bytes of a unit that a session file may announce, at most.
pub const MAX_UNIT_LEN: u64 = 64 << 20;

/// The longest that contact may be lost before a session is given up, in ns: a day.
pub const MAX_GIVE_UP_NS: u64 = 86_400_000_000_000;

pub(crate) const MAX_TITLE_LEN: usize = 256;
const NAME_RULE: &str = "1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or a digit";

/// A session as its creator describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFile {
    /// The file, as the caller named it.
    pub origin: Arc<str>,
    /// How others ask for the session: `dacapo://HOST/name`.
    pub name: Spanned<String>,
    /// What people see of it.
    pub title: Option<Spanned<String>>,
    /// How long contact may be lost before the session is given up, in ns; none is the usual.
    pub give_up_ns: Option<Spanned<u64>>,
    /// What is assumed of the network; none leaves it to the reader.
    pub path: Option<Spanned<PathAssumption>>,
    /// Its flows, in the order of the file.
    pub flows: Vec<FlowSpec>,
}

/// A session file with mistakes, and what could be read beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Flawed {
    /// All mistakes.
    pub errors: Errors,
    /// The rest, for whoever looks for further mistakes; none where the text is no session file at
    /// all. No session is made of it: flows are missing, and its name may be empty.
    pub rest: Option<SessionFile>,
    /// Which flow of the file each flow of the rest is, from 0.
    pub flow_numbers: Vec<usize>,
}

impl SessionFile {
    /// Reads a session file; `origin` is its path, which errors name and to whose folder the
    /// paths inside are relative.
    ///
    /// # Errors
    /// All problems that were found, in the order of the lines.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Errors> {
        Self::parse_lenient(text, origin).map_err(|flawed| flawed.errors)
    }

    /// The same; of a file with mistakes there is the rest too, so that whoever knows more can tell
    /// all mistakes together.
    ///
    /// # Errors
    /// All problems that were found, in the order of the lines, and what was read beside them.
    pub fn parse_lenient(text: &str, origin: &str) -> Result<Self, Box<Flawed>> {
        let origin: Arc<str> = origin.into();
        if text.len() > MAX_FILE_LEN {
            return Err(Flawed::nothing(too_long(&origin, text.len())));
        }
        let mut problems = Problems::new(Arc::clone(&origin), text);
        let read = match Document::parse(text) {
            Ok(document) => read_document(&document, &origin, &mut problems),
            Err(error) => {
                report_syntax(&error, &mut problems);
                None
            }
        };
        match read {
            Some(read) if read.is_whole && problems.is_empty() => Ok(read.session),
            Some(read) => {
                let Read { session, flow_numbers, .. } = read;
                let errors = problems.into_errors();
                Err(Box::new(Flawed { errors, rest: Some(session), flow_numbers }))
            }
            None => Err(Flawed::nothing(problems.into_errors())),
        }
    }

    /// Reads a session file from bytes, which should be UTF-8.
    ///
    /// # Errors
    /// As [`SessionFile::parse`]; the first byte that is no UTF-8 is one.
    pub fn parse_bytes(bytes: &[u8], origin: &str) -> Result<Self, Errors> {
        Self::parse_bytes_lenient(bytes, origin).map_err(|flawed| flawed.errors)
    }

    /// The same, with the rest of a file with mistakes.
    ///
    /// # Errors
    /// As [`SessionFile::parse_lenient`].
    pub fn parse_bytes_lenient(bytes: &[u8], origin: &str) -> Result<Self, Box<Flawed>> {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => return Self::parse_lenient(text, origin),
            Err(error) => error,
        };
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let valid = String::from_utf8_lossy(valid);
        let mut problems = Problems::new(origin.into(), &valid);
        problems.report(valid.len(), "", "this is not UTF-8", "text in UTF-8");
        Err(Flawed::nothing(problems.into_errors()))
    }

    /// Where `path` of this file leads: relative ones start in the file's folder.
    #[must_use]
    pub fn resolve(&self, path: &str) -> PathBuf {
        Path::new(&*self.origin).parent().unwrap_or(Path::new("")).join(path)
    }

    /// A problem of this file that a later check found at `place`; `key` is its dotted path.
    #[must_use]
    pub fn problem<T>(
        &self,
        place: &Spanned<T>,
        key: impl Into<String>,
        what: impl Into<String>,
    ) -> Problem {
        Problem::at(&self.origin, place, key, what)
    }

    /// The flow of this name.
    #[must_use]
    pub fn flow(&self, name: &str) -> Option<&FlowSpec> {
        self.flows.iter().find(|flow| flow.name.value == name)
    }
}

impl Flawed {
    fn nothing(errors: Errors) -> Box<Self> {
        Box::new(Self { errors, rest: None, flow_numbers: Vec::new() })
    }
}

/// Whether `text` may name a session, a flow or a module: 1 to [`MAX_NAME_LEN`] of `a-z`, `0-9`,
/// `.`, `_`, `-`, the first a letter or a digit (so that no name is `..` or looks like an option).
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= MAX_NAME_LEN
        && text.starts_with(is_plain)
        && text.chars().all(|c| is_plain(c) || matches!(c, '.' | '_' | '-'))
}

fn too_long(origin: &Arc<str>, len: usize) -> Errors {
    let place = Spanned { value: (), line: 1, column: 1 };
    let what = format!("the file has {len} bytes");
    Problem::at(origin, &place, "", what).allowed(format!("at most {MAX_FILE_LEN}")).into()
}

fn report_syntax(error: &TomlError, problems: &mut Problems<'_>) {
    let offset = error.span().map_or(0, |span| span.start);
    let message: String = error.message().chars().take(200).collect();
    problems.report(offset, "", format!("not TOML: {}", message.escape_debug()), "");
}

/// What was read of a file.
struct Read {
    session: SessionFile,
    flow_numbers: Vec<usize>,
    /// Nothing is missing.
    is_whole: bool,
}

fn read_document(
    document: &Document<&str>,
    origin: &Arc<str>,
    problems: &mut Problems<'_>,
) -> Option<Read> {
    let root = Section::root(document.as_table());
    root.check_keys(&["session", "path", "flow"], problems);
    let head = read_head(&root, problems);
    let path = root.optional("path").and_then(|node| path::read(&node, problems));
    let flows = read_flows(&root, problems)?;
    let is_whole = head.is_some() && flows.iter().all(Option::is_some);
    let nameless = || (Spanned { value: String::new(), line: 1, column: 1 }, None, None);
    let (name, title, give_up_ns) = head.unwrap_or_else(nameless);
    let numbered = flows.into_iter().enumerate();
    let (flow_numbers, flows) = numbered.filter_map(|(at, flow)| Some((at, flow?))).unzip();
    let origin = Arc::clone(origin);
    let session = SessionFile { origin, name, title, give_up_ns, path, flows };
    Some(Read { session, flow_numbers, is_whole })
}

type Head = (Spanned<String>, Option<Spanned<String>>, Option<Spanned<u64>>);

fn read_head(root: &Section<'_>, problems: &mut Problems<'_>) -> Option<Head> {
    let wanted = "one [session] with the keys name, title, give_up";
    let section = root.require("session", wanted, problems)?.section(wanted, problems)?;
    section.check_keys(&["name", "title", "give_up"], problems);
    let title = section.optional("title").and_then(|node| read_title(&node, problems));
    let give_up = section.optional("give_up").and_then(|node| read_give_up(&node, problems));
    let name = section.require("name", NAME_RULE, problems)?;
    Some((read_name(&name, problems)?, title, give_up))
}

/// How long contact may be lost: `0 s` ends the session as soon as it is.
fn read_give_up(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<u64>> {
    let allowed = "a duration from 0 s to 24 h, such as \"5 min\"";
    let text = node.text(allowed, problems)?;
    match parse_duration(&text) {
        Ok(ns) if ns <= MAX_GIVE_UP_NS => Some(Spanned { value: ns, ..node.spanned(0, problems) }),
        _ => {
            let what = format!("{} is not for how long contact may be lost", quoted(&text));
            node.report(what, allowed, problems);
            None
        }
    }
}

fn read_title(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<String>> {
    let title = node.text("a text", problems)?;
    if title.chars().count() <= MAX_TITLE_LEN && !title.chars().any(char::is_control) {
        return Some(title);
    }
    let allowed = format!("at most {MAX_TITLE_LEN} characters, none of them a control character");
    node.report(format!("{} is not a title", quoted(&title)), allowed, problems);
    None
}

/// A text that must follow the rule of names.
fn read_name(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<String>> {
    let name = node.text(NAME_RULE, problems)?;
    if is_name(&name) {
        return Some(name);
    }
    node.report(format!("{} is not a name", quoted(&name)), NAME_RULE, problems);
    None
}

/// The flows; none in the place of one that could not be read.
fn read_flows(root: &Section<'_>, problems: &mut Problems<'_>) -> Option<Vec<Option<FlowSpec>>> {
    let wanted = "one [[flow]] or more";
    let node = root.require("flow", wanted, problems)?;
    let nodes = node.elements(wanted, 1..=MAX_FLOWS, problems)?;
    let mut names = Vec::new();
    let mut attribute_count = 0;
    let mut flows = Vec::new();
    for node in &nodes {
        flows.push(flow::read(node, &mut names, &mut attribute_count, problems));
    }
    if attribute_count > MAX_ATTRIBUTES {
        let what = format!("the flows have {attribute_count} attributes");
        node.report(what, format!("at most {MAX_ATTRIBUTES} of all flows together"), problems);
    }
    check_passes(&nodes, &flows, problems);
    Some(flows)
}

/// Media of a creator begin, end and are repeated together.
fn check_passes(nodes: &[Node<'_>], flows: &[Option<FlowSpec>], problems: &mut Problems<'_>) {
    let media = |flow: &FlowSpec| flow.from.value == Role::Creator && !flow.source.is_bytes();
    let flows = nodes.iter().zip(flows).filter_map(|(node, flow)| Some((node, flow.as_ref()?)));
    let mut flows = flows.filter(|(_, flow)| media(flow));
    let Some((_, first)) = flows.next() else { return };
    let others = flows.filter(|(_, flow)| flow.source.passes() != first.source.passes());
    for node in others.map(|(node, _)| node) {
        let source = node.as_section().and_then(|section| section.optional("source"));
        let what = format!("is repeated otherwise than that of line {}", first.source.line);
        let allowed = "the same `loop` in all sources of media, for they are played together";
        source.as_ref().unwrap_or(node).report(what, allowed, problems);
    }
}
