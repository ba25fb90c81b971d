//! `use` declarations as a list of names, each with the path that it stands for.
//!
//! ```text
//!   pub use a::{self, b::C as D, e::*};  ->  a = a, D = a::b::C, * = a::e
//! ```

use crate::tidy::source::Source;

/// One name that a `use` brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The name here; `*` for all that the path has.
    pub name: String,
    /// The segments of the path.
    pub path: Vec<String>,
    /// Whoever sees this module may use the name as one of it.
    pub is_pub: bool,
    /// Where it stands, from 1.
    pub line: usize,
}

/// Reads the tree after a `use` at `at` to its semicolon into `uses`.
pub fn read(source: &Source, at: usize, is_pub: bool, uses: &mut Vec<Use>) {
    branch(source, at, &[], is_pub, uses);
}

/// One branch of the tree; the index of the token after it.
fn branch(source: &Source, at: usize, stem: &[String], is_pub: bool, uses: &mut Vec<Use>) -> usize {
    let mut path = stem.to_vec();
    let mut index = at;
    let line = source.line(at);
    let mut name = None;
    loop {
        match source.word(index) {
            ":" => index += 1,
            "{" => return branches(source, index, &path, is_pub, uses),
            "as" => {
                name = Some(source.word(index + 1).to_owned());
                index += 2;
            }
            "self" if !path.is_empty() => index += 1,
            "," | ";" | "}" | "" => break,
            word => {
                path.push(word.to_owned());
                index += 1;
            }
        }
    }
    let is_all = path.last().is_some_and(|last| last == "*");
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    if is_all {
        path.pop();
    }
    if !name.is_empty() {
        uses.push(Use { name, path, is_pub, line });
    }
    index
}

/// The branches in braces at `open`; the index of the token after them.
fn branches(
    source: &Source,
    open: usize,
    stem: &[String],
    is_pub: bool,
    uses: &mut Vec<Use>,
) -> usize {
    let close = source.closing(open);
    let mut index = open + 1;
    while index < close {
        index = branch(source, index, stem, is_pub, uses).max(index);
        // The comma, or what no use has.
        index += usize::from(index < close);
    }
    close + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let source = Source::new("a.rs".to_owned(), text.to_owned());
        let mut uses = Vec::new();
        read(&source, 1, false, &mut uses);
        uses.into_iter().map(|it| (it.name, it.path.join("::"))).collect()
    }

    fn pairs(text: &str) -> String {
        found(text).iter().map(|(name, path)| format!("{name}={path} ")).collect()
    }

    #[test]
    fn every_form_of_a_use_is_a_list_of_names() {
        assert_eq!(pairs("use a::b::C;"), "C=a::b::C ");
        assert_eq!(pairs("use ::a as b;"), "b=a ");
        assert_eq!(
            pairs("use a::{self, b::{C as D, E}, f::*};"),
            "a=a D=a::b::C E=a::b::E *=a::f "
        );
        assert_eq!(pairs("use super::{a,};"), "a=super::a ");
    }

    #[test]
    fn broken_text_ends() {
        for text in ["use", "use a::{", "use a::{b", "use {{{", "use a as"] {
            assert!(found(text).len() < 3, "{text}");
        }
    }
}
