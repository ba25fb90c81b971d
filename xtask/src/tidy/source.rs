//! [`Source`]: one Rust file as tokens, with its test code marked.
//!
//! What the rules ask of a file. Words by index (`word(i)` is empty outside the file, so that a
//! pattern never needs a bound), the item that an attribute belongs to, the functions.
//!
//! Items are found by brackets and keywords, which formatted code that compiles makes exact enough.
//!
//! Invariant: test code is what stands under `#[cfg(test)]` or `#[test]`, and whole files in
//! `tests`, `benches` and `examples` folders or declared by `#[cfg(test)] mod name;`.

use std::ops::Range;

use super::lexer::{Comment, Kind, Token, lex};

/// Keywords that open an item or a statement, in which a comma does not end what an attribute
/// belongs to (it does after a field, a variant or an argument).
const ITEM_WORDS: [&str; 18] = [
    "fn",
    "mod",
    "impl",
    "struct",
    "enum",
    "union",
    "trait",
    "use",
    "const",
    "static",
    "type",
    "unsafe",
    "extern",
    "async",
    "macro_rules",
    "let",
    "if",
    "match",
];

/// One Rust file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path from the root of the repository, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its tokens in order.
    pub tokens: Vec<Token>,
    /// Its comments in order.
    pub comments: Vec<Comment>,
    /// The whole file is test code.
    pub is_test_file: bool,
    test_regions: Vec<Range<usize>>,
}

/// One function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`, from 1.
    pub line: usize,
    /// Lines from the `fn` to the closing brace.
    pub line_count: usize,
}

impl Source {
    /// The file `path` with `text`.
    #[must_use]
    pub fn new(path: String, text: String) -> Self {
        let (tokens, comments) = lex(&text);
        let is_test_file = path
            .split('/')
            .rev()
            .skip(1)
            .any(|dir| matches!(dir, "tests" | "benches" | "examples"));
        let test_regions = Vec::new();
        let mut source = Self { path, text, tokens, comments, is_test_file, test_regions };
        source.is_test_file |= source.matches(0, &["#", "!", "[", "cfg", "(", "test", ")"]);
        source.test_regions = source.find_test_regions();
        source
    }

    /// The text of token `index`; empty outside the file.
    #[must_use]
    pub fn word(&self, index: usize) -> &str {
        let range = self.tokens.get(index).map(|token| token.range.clone());
        range.and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    /// The kind of token `index`.
    #[must_use]
    pub fn kind(&self, index: usize) -> Option<Kind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    /// The line of token `index`, from 1; 0 outside the file.
    #[must_use]
    pub fn line(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(0, |token| token.line)
    }

    /// Whether the tokens from `index` on read `words`.
    #[must_use]
    pub fn matches(&self, index: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(offset, word)| self.word(index + offset) == *word)
    }

    /// The text of `comment`, markers included.
    #[must_use]
    pub fn comment_text(&self, comment: &Comment) -> &str {
        self.text.get(comment.range.clone()).unwrap_or_default()
    }

    /// Whether token `index` is test code.
    #[must_use]
    pub fn is_test(&self, index: usize) -> bool {
        self.is_test_file || self.test_regions.iter().any(|region| region.contains(&index))
    }

    /// The indices of the tokens that are no test code.
    pub fn live(&self) -> impl Iterator<Item = usize> {
        (0..self.tokens.len()).filter(|&index| !self.is_test(index))
    }

    /// How many lines are no test code.
    #[must_use]
    pub fn live_line_count(&self) -> usize {
        if self.is_test_file {
            return 0;
        }
        let lines = |region: &Range<usize>| {
            let last = self.line(region.end.saturating_sub(1));
            last.saturating_sub(self.line(region.start)) + 1
        };
        let test: usize = self.test_regions.iter().map(lines).sum();
        self.text.lines().count().saturating_sub(test)
    }

    /// The index of the bracket that closes the one at `open`; the end of the file without one.
    #[must_use]
    pub fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for index in open..self.tokens.len() {
            match self.word(index) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return index;
            }
        }
        self.tokens.len()
    }

    /// The functions with bodies that are no test code.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        let named =
            |&index: &usize| self.word(index) == "fn" && self.kind(index + 1) == Some(Kind::Ident);
        self.live().filter(named).filter_map(|index| self.function(index)).collect()
    }

    fn function(&self, index: usize) -> Option<Function> {
        let end = self.body_end(index)?;
        let line = self.line(index);
        let line_count = self.line(end).saturating_sub(line) + 1;
        Some(Function { name: self.word(index + 1).to_owned(), line, line_count })
    }

    /// The closing brace of the function at `index`; nothing for a declaration.
    fn body_end(&self, mut index: usize) -> Option<usize> {
        loop {
            match self.word(index) {
                "(" | "[" => index = self.closing(index),
                "{" => return Some(self.closing(index)),
                ";" | "" => return None,
                _ => {}
            }
            index += 1;
        }
    }

    /// Files and folders (ending in `/`) that `#[cfg(test)] mod name;` declares here.
    #[must_use]
    pub fn test_module_paths(&self) -> Vec<String> {
        let folder = module_folder(&self.path);
        let mut paths = Vec::new();
        for region in &self.test_regions {
            let is_declared = |&i: &usize| self.word(i) == "mod" && self.word(i + 2) == ";";
            let Some(index) = region.clone().find(is_declared) else { continue };
            let name = self.word(index + 1);
            let file = self.named_path(region.start, index);
            paths.push(file.unwrap_or_else(|| format!("{folder}/{name}.rs")));
            paths.push(format!("{folder}/{name}/"));
        }
        paths
    }

    /// The file that `#[path = "…"]` names between two tokens, beside this one.
    fn named_path(&self, start: usize, end: usize) -> Option<String> {
        let index = (start..end).find(|&i| self.matches(i, &["[", "path", "="]))?;
        let (folder, _) = self.path.rsplit_once('/').unwrap_or((".", ""));
        Some(format!("{folder}/{}", self.word(index + 3).trim_matches('"')))
    }

    /// The first token after the attributes that begin at `index`.
    fn after_attributes(&self, mut index: usize) -> usize {
        while self.matches(index, &["#", "["]) {
            index = self.closing(index + 1) + 1;
        }
        index
    }

    /// One past the last token of what the attribute at `start` belongs to.
    fn item_end(&self, start: usize) -> usize {
        let mut index = self.after_attributes(start);
        let mut first = index;
        if self.word(first) == "pub" {
            first += 1;
            first = if self.word(first) == "(" { self.closing(first) + 1 } else { first };
        }
        let is_item = ITEM_WORDS.contains(&self.word(first));
        loop {
            match self.word(index) {
                "(" | "[" => index = self.closing(index),
                "{" => return self.closing(index) + 1,
                ";" => return index + 1,
                "," if !is_item => return index + 1,
                ")" | "]" | "}" | "" => return index,
                _ => {}
            }
            index += 1;
        }
    }

    fn find_test_regions(&self) -> Vec<Range<usize>> {
        let mut regions = Vec::new();
        let mut index = 0;
        while index < self.tokens.len() {
            if self.matches(index, &["#", "["]) && self.is_test_attribute(index + 2) {
                let end = self.item_end(index).max(index + 1);
                regions.push(index..end);
                index = end;
            } else {
                index += 1;
            }
        }
        regions
    }

    fn is_test_attribute(&self, index: usize) -> bool {
        self.matches(index, &["test", "]"])
            || self.matches(index, &["cfg", "(", "test", ")"])
            || self.matches(index, &["cfg", "(", "all", "(", "test", ","])
    }
}

/// The folder in which the submodules of the file `path` lie.
fn module_folder(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or((".", path));
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", file.trim_end_matches(".rs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("crates/x/src/a.rs".to_owned(), text.to_owned())
    }

    fn live_words(text: &str) -> Vec<String> {
        let source = source(text);
        source.live().map(|i| source.word(i).to_owned()).collect()
    }

    #[test]
    fn test_modules_and_test_functions_are_not_live() {
        let text = "a; #[cfg(test)] #[allow(x)] mod t { b; { c } } d; #[test] fn e() { f } g;";
        assert_eq!(live_words(text), ["a", ";", "d", ";", "g", ";"]);
    }

    #[test]
    fn a_test_only_field_ends_at_its_comma_and_a_generic_function_at_its_brace() {
        let text = "struct A { #[cfg(test)] pub(crate) b: u8, c: u8 }";
        assert_eq!(live_words(text), ["struct", "A", "{", "c", ":", "u8", "}"]);
        assert_eq!(live_words("#[cfg(test)] pub fn a<B, C>() { d } e"), ["e"]);
        assert_eq!(live_words("#[cfg(test)] use a::b; c"), ["c"]);
    }

    #[test]
    fn a_condition_that_is_not_only_for_tests_stays_live() {
        assert!(live_words("#[cfg(not(test))] fn a() {}").contains(&"fn".to_owned()));
        assert!(live_words("#[cfg(any(test, x))] fn a() {}").contains(&"fn".to_owned()));
        assert!(live_words("#[cfg(all(test, x))] fn a() {}").is_empty());
    }

    #[test]
    fn functions_have_their_length_and_declarations_do_not_count() {
        let text = "trait T { fn a(); }\nfn b(x: [u8; 2]) -> u8\nwhere X: Y,\n{\n  { }\n}\n";
        let expected = Function { name: "b".to_owned(), line: 2, line_count: 5 };
        assert_eq!(source(text).functions(), [expected]);
    }

    #[test]
    fn function_types_are_no_functions() {
        assert_eq!(source("type A = fn(u8) -> u8; struct B { c: fn() }").functions(), []);
    }

    #[test]
    fn declared_test_modules_lie_beside_or_below() {
        let text = "#[cfg(test)]\nmod tests;\nmod live;";
        assert_eq!(
            source(text).test_module_paths(),
            ["crates/x/src/a/tests.rs", "crates/x/src/a/tests/"]
        );
        let lib = Source::new("crates/x/src/lib.rs".to_owned(), text.to_owned());
        assert_eq!(lib.test_module_paths(), ["crates/x/src/tests.rs", "crates/x/src/tests/"]);
    }

    #[test]
    fn a_declared_test_module_may_name_its_file() {
        let text = "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;";
        assert_eq!(source(text).test_module_paths()[0], "crates/x/src/a_tests.rs");
    }

    #[test]
    fn lines_of_test_code_do_not_count() {
        assert_eq!(source("a\nb\n#[cfg(test)]\nmod t {\n}\n").live_line_count(), 2);
    }
}
