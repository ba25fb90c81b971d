//! What a session file assumes of the network: `[path]`.
//!
//! The reading of [`PathAssumption`].

use toml_edit::Value;

use crate::path::{PathAssumption, PathKey, PathPreset};
use crate::problem::Problems;
use crate::spanned::Spanned;

use super::attributes::scalar_text;
use super::flow::read_word;
use super::reader::{Node, Section};

/// The key of the preset.
const ASSUME: &str = "assume";

/// Reads the table; what is wrong in it is reported and left out.
pub(super) fn read(
    node: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Spanned<PathAssumption>> {
    let section = node.section("a table of assume, rate, delay, jitter, loss, burst", problems)?;
    let names = PathKey::ALL.map(PathKey::name);
    let keys: Vec<_> = std::iter::once(ASSUME).chain(names).collect();
    section.check_keys(&keys, problems);
    let mut path = PathAssumption::default();
    if let Some(node) = section.optional(ASSUME) {
        path.preset = read_word::<PathPreset>(&node, problems).map(|preset| preset.value);
    }
    for key in PathKey::ALL {
        *path.figure_mut(key) = read_figure(&section, key, problems);
    }
    Some(node.spanned(path, problems))
}

fn read_figure(section: &Section<'_>, key: PathKey, problems: &mut Problems<'_>) -> Option<u64> {
    let node = section.optional(key.name())?;
    let is_text = node.scalar().is_some_and(Value::is_str);
    // A run has no unit, and nothing else is a bare number but a share.
    let fits = match key {
        PathKey::Burst => !is_text,
        PathKey::Loss => true,
        PathKey::Rate | PathKey::Delay | PathKey::Jitter => is_text,
    };
    let Some(text) = scalar_text(&node).filter(|_| fits) else {
        node.report_type(&key.allowed(), problems);
        return None;
    };
    match key.parse(&text) {
        Ok(quantity) => Some(quantity),
        Err((what, allowed)) => {
            node.report(what, allowed, problems);
            None
        }
    }
}
