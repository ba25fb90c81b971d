//! The modules of a flow: `graph = [ … ]`.
//!
//! [`ModuleUse`], a module's name and parameters as they were written.
//!
//! ```text
//!   graph = ["segment", { module = "sequence", hold = "60 ms" }, "checksum"]
//!            application ───────────────────────────────────────> network
//! ```

use crate::problem::{Problems, path_of, quoted};
use crate::spanned::Spanned;
use crate::value::Value;

use super::reader::{Node, Section};
use super::{MAX_MODULES, MAX_PARAMS, NAME_RULE, is_name, read_name};

/// One module of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleUse {
    /// Its name, which follows the rule of names; the catalogue may not know it.
    pub module: Spanned<String>,
    /// Its parameters, in the order of the file.
    pub params: Vec<Param>,
}

/// One parameter of a module, or of an access module.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name, which follows the rule of names.
    pub key: Spanned<String>,
    /// Its value.
    pub value: Spanned<Value>,
}

impl ModuleUse {
    /// The value of a parameter.
    #[must_use]
    pub fn param(&self, key: &str) -> Option<&Spanned<Value>> {
        self.params.iter().find(|param| param.key.value == key).map(|param| &param.value)
    }
}

pub(crate) const MAX_PARAM_TEXT_LEN: usize = 1_024;
const MAX_WHOLE: u64 = 1 << 53; // a Number keeps whole numbers up to here
const VALUE_WANTED: &str = "a text, a number, true or false";

/// What a graph may be.
pub(super) const WANTED: &str = "a list of modules from the application down to the network, \
    such as [\"segment\", { module = \"sequence\", hold = \"60 ms\" }]";
const MODULE_WANTED: &str = "the name of a module, or { module = \"name\", … } with parameters";

/// Reads a graph.
pub(super) fn read(
    node: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Spanned<Vec<Spanned<ModuleUse>>>> {
    let nodes = node.elements(WANTED, 0..=MAX_MODULES, problems)?;
    let read: Vec<_> = nodes.iter().map(|node| read_module(node, problems)).collect();
    let modules: Option<Vec<_>> = read.into_iter().collect();
    modules.map(|modules| node.spanned(modules, problems))
}

fn read_module(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<ModuleUse>> {
    let module = match node.as_section() {
        Some(section) => read_table(&section, problems)?,
        None if node.scalar().is_some_and(|value| value.is_str()) => {
            ModuleUse { module: read_name(node, problems)?, params: Vec::new() }
        }
        None => {
            node.report_type(MODULE_WANTED, problems);
            return None;
        }
    };
    Some(node.spanned(module, problems))
}

fn read_table(section: &Section<'_>, problems: &mut Problems<'_>) -> Option<ModuleUse> {
    let (module, params) = read_use(section, "module", "the name of a module", problems)?;
    Some(ModuleUse { module, params })
}

/// Reads a table of a name, under `key`, and of parameters.
pub(super) fn read_use(
    section: &Section<'_>,
    key: &str,
    wanted: &str,
    problems: &mut Problems<'_>,
) -> Option<(Spanned<String>, Vec<Param>)> {
    let name = section.require(key, wanted, problems).and_then(|node| read_name(&node, problems));
    if section.len() > MAX_PARAMS.saturating_add(1) {
        section.report("has too many parameters", &format!("at most {MAX_PARAMS}"), problems);
        return None;
    }
    let entries = section.entries().filter(|(other, _)| *other != key);
    let read: Vec<_> =
        entries.map(|(key, node)| read_param(section, key, &node, problems)).collect();
    let params: Option<Vec<_>> = read.into_iter().collect();
    Some((name?, params?))
}

fn read_param(
    section: &Section<'_>,
    key: &str,
    node: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Param> {
    let offset = section.key_offset(key);
    if !is_name(key) {
        problems.report(offset, &path_of(&section.path, key), "not a parameter's name", NAME_RULE);
        return None;
    }
    let value = read_value(node, problems)?;
    let value = node.spanned(value, problems);
    Some(Param { key: problems.spanned(offset, key.to_owned()), value })
}

fn read_value(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Value> {
    use toml_edit::Value as Toml;
    match node.scalar() {
        Some(Toml::String(text)) if text.value().len() <= MAX_PARAM_TEXT_LEN => {
            Some(Value::from_text(text.value()))
        }
        Some(Toml::String(text)) => {
            let what = format!("{} has {} bytes", quoted(text.value()), text.value().len());
            node.report(what, format!("at most {MAX_PARAM_TEXT_LEN}"), problems);
            None
        }
        Some(Toml::Integer(whole)) if whole.value().unsigned_abs() <= MAX_WHOLE => {
            Some(Value::Number(*whole.value() as f64))
        }
        Some(Toml::Float(number)) if number.value().is_finite() => {
            Some(Value::Number(*number.value()))
        }
        Some(Toml::Integer(_) | Toml::Float(_)) => {
            node.report("is too large", "a whole number within 2^53, or a finite one", problems);
            None
        }
        Some(Toml::Boolean(yes)) => Some(Value::Bool(*yes.value())),
        _ => {
            node.report_type(VALUE_WANTED, problems);
            None
        }
    }
}
