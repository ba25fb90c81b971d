//! Headers of functions and of `impl` blocks: whose they are, and what they take by `&mut`.

use crate::tidy::lexer::Kind;
use crate::tidy::source::Source;

/// Who may name an item or field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// This module and those below it.
    Here,
    /// `pub(…)`.
    Within,
    /// `pub`.
    All,
}

/// The visibility that may stand at `at`, and the index after it.
#[must_use]
pub fn visibility(source: &Source, at: usize) -> (Seen, usize) {
    match (source.word(at), source.word(at + 1)) {
        ("pub", "(") if matches!(source.word(at + 2), "crate" | "super" | "self" | "in") => {
            (Seen::Within, source.closing(at + 1) + 1)
        }
        ("pub", _) => (Seen::All, at + 1),
        _ => (Seen::Here, at),
    }
}

/// The index after the attributes that begin at `at`.
#[must_use]
pub fn after_attributes(source: &Source, mut at: usize) -> usize {
    while source.matches(at, &["#", "["]) {
        at = source.closing(at + 1) + 1;
    }
    at
}

/// The index after the `<…>` that may stand at `at`.
#[must_use]
pub fn after_generics(source: &Source, at: usize) -> usize {
    if source.word(at) != "<" {
        return at;
    }
    let mut depth = 0_usize;
    let mut index = at;
    loop {
        match source.word(index) {
            "<" => depth += 1,
            // The arrow of a function's type closes nothing.
            ">" if source.word(index - 1) != "-" => depth -= 1,
            "(" | "[" | "{" => index = source.closing(index),
            "" => return index,
            _ => {}
        }
        index += 1;
        if depth == 0 {
            return index;
        }
    }
}

/// What stands between `impl` and its brace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impl {
    /// The path to the trait; empty where it is of none.
    pub of_trait: Vec<String>,
    /// The path to the type.
    pub path: Vec<String>,
    /// The index of the opening brace.
    pub open: usize,
}

/// The `impl` whose keyword is at `at`.
#[must_use]
pub fn implementation(source: &Source, at: usize) -> Impl {
    let mut index = after_generics(source, at + 1);
    let mut begin = index;
    let mut of_trait = Vec::new();
    loop {
        match source.word(index) {
            "<" => index = after_generics(source, index).max(index + 1),
            "(" | "[" => index = source.closing(index) + 1,
            "for" if source.word(index + 1) != "<" => {
                of_trait = path_at(source, begin, index);
                begin = index + 1;
                index += 1;
            }
            "{" | "where" | ";" | "" => break,
            _ => index += 1,
        }
    }
    let path = path_at(source, begin, index);
    while !matches!(source.word(index), "{" | ";" | "") {
        index = match source.word(index) {
            "(" | "[" => source.closing(index) + 1,
            _ => index + 1,
        };
    }
    Impl { of_trait, path, open: index }
}

/// The path that begins at `at`, past references and `dyn`; empty where there is none.
fn path_at(source: &Source, at: usize, end: usize) -> Vec<String> {
    let mut index = at;
    while index < end
        && (matches!(source.word(index), "&" | "mut" | "dyn" | "impl" | "(" | "[")
            || source.kind(index) == Some(Kind::Lifetime))
    {
        index += 1;
    }
    let mut path = Vec::new();
    while index < end && source.kind(index) == Some(Kind::Ident) {
        path.push(source.word(index).to_owned());
        if !source.matches(index + 1, &[":", ":"]) {
            break;
        }
        index += 3;
    }
    path
}

/// What the parameters and the result of a function say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// It has a receiver.
    pub has_self: bool,
    /// The paths to the types that its parameters are a `&mut` of.
    pub changes: Vec<Vec<String>>,
    /// Its result has a `&mut`.
    pub lends: bool,
}

/// The signature of the function whose name is at `at`.
#[must_use]
pub fn signature(source: &Source, at: usize) -> Signature {
    let open = after_generics(source, at + 1);
    let close = source.closing(open);
    let mut signature = Signature::default();
    let mut index = open + 1;
    while index < close {
        let end = parameter_end(source, index, close);
        let begin = after_attributes(source, index);
        let colon = (begin..end).find(|&it| source.word(it) == ":");
        let head = colon.unwrap_or(end);
        signature.has_self |= (begin..head).any(|it| source.word(it) == "self");
        if let Some(colon) = colon {
            signature.changes.extend(changed(source, colon + 1, end));
        }
        index = end + 1;
    }
    signature.lends = result_lends(source, close + 1);
    signature
}

/// The comma that ends the parameter at `at`, or `close`.
fn parameter_end(source: &Source, at: usize, close: usize) -> usize {
    let mut index = at;
    while index < close {
        match source.word(index) {
            "," => return index,
            "<" => index = after_generics(source, index),
            "(" | "[" | "{" => index = source.closing(index) + 1,
            _ => index += 1,
        }
    }
    close
}

/// The path to `T` of a parameter of type `&mut T`.
fn changed(source: &Source, at: usize, end: usize) -> Option<Vec<String>> {
    let has_life = source.kind(at + 1) == Some(Kind::Lifetime);
    let exclusive = at + 1 + usize::from(has_life);
    let is_change = source.word(at) == "&" && source.word(exclusive) == "mut";
    is_change.then(|| path_at(source, exclusive + 1, end))
}

fn result_lends(source: &Source, at: usize) -> bool {
    if !source.matches(at, &["-", ">"]) {
        return false;
    }
    let words = (at..).map(|index| source.word(index));
    let mut words = words.take_while(|word| !matches!(*word, "{" | ";" | "where" | ""));
    words.any(|word| word == "mut")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("a.rs".to_owned(), text.to_owned())
    }

    #[test]
    fn an_impl_is_of_the_type_after_for() {
        let of = |text: &str| implementation(&source(text), 0).path.join("::");
        assert_eq!(of("impl A { }"), "A");
        assert_eq!(of("impl<'a, T: Fn() -> u8> b::A<'a, T> where T: C { }"), "b::A");
        assert_eq!(of("impl<T> From<B<T>> for A { }"), "A");
        assert_eq!(of("impl B for &mut c::A { }"), "c::A");
        assert_eq!(of("impl B for Box<dyn for<'a> C<'a>> { }"), "Box");
        assert_eq!(of("impl B for"), "");
        assert_eq!(implementation(&source("impl<T> b::C<T> for D {}"), 0).of_trait, ["b", "C"]);
    }

    #[test]
    fn a_signature_says_what_it_changes_and_lends() {
        let of = |text: &str| signature(&source(text), 1);
        assert!(of("fn a(&mut self, b: u8) {}").has_self);
        assert!(of("fn a(self: Box<Self>) {}").has_self);
        let both = of("fn a<T: Fn(&mut X) -> u8>(b: &mut c::D<E, F>, g: &'a mut H, i: &J) {}");
        assert_eq!(both.changes, [vec!["c", "D"], vec!["H"]]);
        assert!(!both.has_self && !both.lends);
        assert!(of("fn a(&mut self) -> Option<&mut T>;").lends);
        assert!(!of("fn a(&mut self) -> T { &mut b }").lends);
        assert!(of("fn a(f: impl FnMut(&mut X)) {}").changes.is_empty());
    }

    #[test]
    fn visibilities_are_three() {
        let of = |text: &str| visibility(&source(text), 0);
        assert_eq!(of("pub fn"), (Seen::All, 1));
        assert_eq!(of("pub(in crate::a) fn"), (Seen::Within, 8));
        assert_eq!(of("pub (u8, u8)"), (Seen::All, 1));
        assert_eq!(of("fn"), (Seen::Here, 0));
    }

    #[test]
    fn broken_text_ends() {
        for text in ["impl", "impl<", "impl A<B", "impl A for (", "impl A where"] {
            let _ = implementation(&source(text), 0);
        }
        for text in ["fn a", "fn a(", "fn a(b: &mut", "fn a() -> &", "fn a<(", "fn a(b: <"] {
            let _ = signature(&source(text), 1);
        }
    }
}
