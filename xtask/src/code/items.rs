//! [`Items`]: what a file declares outside tests: types, functions, names, modules, uses.
//!
//! ```text
//!   impl Core { pub fn a(&mut self) }   ->  Function { name: a, owner: Core, … }
//! ```
//!
//! Bodies of functions are passed over; what a macro makes is not seen.

use super::header::{Seen, Signature, after_attributes, implementation, signature, visibility};
use super::uses::{self, Use};
use crate::tidy::lexer::Kind;
use crate::tidy::source::Source;

/// What a file declares.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// Structs, enums, unions and traits.
    pub types: Vec<Type>,
    /// Functions, with and without a receiver, of traits too.
    pub functions: Vec<Function>,
    /// The `impl`s of traits.
    pub impls: Vec<OfTrait>,
    /// Constants, statics, aliases.
    pub names: Vec<Name>,
    /// `mod name;` and `mod name { … }`.
    pub modules: Vec<Name>,
    /// The names of those modules that stand here whole.
    pub inline: Vec<String>,
    /// Names from elsewhere.
    pub uses: Vec<Use>,
}

/// A type or trait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    pub name: String,
    /// Its keyword.
    pub word: &'static str,
    pub seen: Seen,
    /// The inline modules that it is in.
    pub within: Vec<String>,
    pub line: usize,
    /// Of a struct or union: who may name each field.
    pub fields: Vec<Seen>,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The path to the type or trait that it is of; empty for a free one.
    pub owner: Vec<String>,
    /// It is one of a trait, which is seen where the trait is.
    pub is_of_trait: bool,
    pub seen: Seen,
    pub within: Vec<String>,
    pub line: usize,
    pub signature: Signature,
}

/// An `impl` of a trait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfTrait {
    /// The trait, without its path.
    pub of_trait: String,
    /// The path to the type.
    pub path: Vec<String>,
    pub line: usize,
}

/// Something with a name and no more that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub name: String,
    pub word: &'static str,
    pub seen: Seen,
    pub within: Vec<String>,
    pub line: usize,
}

impl Items {
    /// Whether an item or inline module outside inline modules is called `name`.
    #[must_use]
    pub fn declares(&self, name: &str) -> bool {
        let is_free = |it: &&Function| it.owner.is_empty() && it.within.is_empty();
        self.types.iter().any(|it| it.name == name && it.within.is_empty())
            || self.functions.iter().filter(is_free).any(|it| it.name == name)
            || self.names.iter().any(|it| it.name == name && it.within.is_empty())
            || self.inline.iter().any(|it| it == name)
    }
}

/// The items of `source`.
#[must_use]
pub fn read(source: &Source) -> Items {
    let mut reader = Reader { source, items: Items::default(), within: Vec::new() };
    if !source.is_test_file {
        reader.items(0, source.tokens.len(), &Owner::default());
    }
    reader.items
}

/// What a block of items is of.
#[derive(Clone, Debug, Default)]
struct Owner {
    path: Vec<String>,
    is_trait: bool,
}

struct Reader<'a> {
    source: &'a Source,
    items: Items,
    within: Vec<String>,
}

impl Reader<'_> {
    fn items(&mut self, mut at: usize, end: usize, owner: &Owner) {
        while at < end {
            let begin = after_attributes(self.source, at);
            if self.source.is_test(at) || self.source.is_test(begin) {
                at = begin.max(at + 1);
                continue;
            }
            let (seen, word) = visibility(self.source, begin);
            at = self.item(word, seen, owner).max(begin + 1);
        }
    }

    /// One item whose keyword is at `at`; the index after it.
    fn item(&mut self, at: usize, seen: Seen, owner: &Owner) -> usize {
        let source = self.source;
        match source.word(at) {
            "mod" if source.kind(at + 1) == Some(Kind::Ident) => self.module(at, seen),
            "use" => {
                let is_pub = seen != Seen::Here;
                uses::read(source, at + 1, is_pub, &mut self.items.uses);
                self.end_of_value(at)
            }
            "struct" => self.fielded(at, "struct", seen),
            "union" if source.kind(at + 1) == Some(Kind::Ident) => self.fielded(at, "union", seen),
            "enum" => {
                self.add_type(at, "enum", seen, Vec::new());
                self.end(at)
            }
            "trait" => {
                self.add_type(at, "trait", seen, Vec::new());
                let path = vec![source.word(at + 1).to_owned()];
                self.block(at, &Owner { path, is_trait: true })
            }
            "impl" => {
                let it = implementation(source, at);
                let line = source.line(at);
                if let Some(of_trait) = it.of_trait.last().cloned() {
                    self.items.impls.push(OfTrait { of_trait, path: it.path.clone(), line });
                }
                self.block(it.open, &Owner { path: it.path, is_trait: false })
            }
            "fn" => self.function(at, seen, owner),
            "const" if source.word(at + 1) != "fn" && source.kind(at + 1) == Some(Kind::Ident) => {
                match source.word(at + 1) {
                    "unsafe" | "async" | "extern" => at + 1,
                    _ => self.name(at, "const", seen, owner),
                }
            }
            "static" => {
                self.name(at + usize::from(source.word(at + 1) == "mut"), "static", seen, owner)
            }
            "type" => self.name(at, "type", seen, owner),
            "const" | "unsafe" | "async" | "extern" | "default" => self.modifier(at, seen, owner),
            _ => self.end(at),
        }
    }

    /// A word before `fn`, `impl` or `trait`: what follows has the visibility before it.
    fn modifier(&mut self, at: usize, seen: Seen, owner: &Owner) -> usize {
        let next = at + 1 + usize::from(self.source.kind(at + 1) == Some(Kind::Str));
        match self.source.word(next) {
            "fn" | "impl" | "trait" | "unsafe" | "async" | "extern" => self.item(next, seen, owner),
            _ => self.end(at),
        }
    }

    fn module(&mut self, at: usize, seen: Seen) -> usize {
        let name = self.source.word(at + 1).to_owned();
        let (within, line) = (self.within.clone(), self.source.line(at));
        self.items.modules.push(Name { name: name.clone(), word: "mod", seen, within, line });
        if self.source.word(at + 2) != "{" {
            return at + 3;
        }
        let close = self.source.closing(at + 2);
        self.items.inline.push(name.clone());
        self.within.push(name);
        self.items(at + 3, close, &Owner::default());
        self.within.pop();
        close + 1
    }

    fn block(&mut self, at: usize, owner: &Owner) -> usize {
        let mut open = at;
        while !matches!(self.source.word(open), "{" | ";" | "") {
            open += 1;
        }
        let close = self.source.closing(open);
        if self.source.word(open) == "{" {
            self.items(open + 1, close, owner);
        }
        close + 1
    }

    fn function(&mut self, at: usize, seen: Seen, owner: &Owner) -> usize {
        if self.source.kind(at + 1) != Some(Kind::Ident) {
            return at + 1;
        }
        self.items.functions.push(Function {
            name: self.source.word(at + 1).to_owned(),
            owner: owner.path.clone(),
            is_of_trait: owner.is_trait,
            seen,
            within: self.within.clone(),
            line: self.source.line(at),
            signature: signature(self.source, at + 1),
        });
        self.end(at)
    }

    fn name(&mut self, at: usize, word: &'static str, seen: Seen, owner: &Owner) -> usize {
        if owner.path.is_empty() {
            let (name, line) = (self.source.word(at + 1).to_owned(), self.source.line(at));
            let within = self.within.clone();
            self.items.names.push(Name { name, word, seen, within, line });
        }
        self.end_of_value(at)
    }

    fn add_type(&mut self, at: usize, word: &'static str, seen: Seen, fields: Vec<Seen>) {
        let (name, line) = (self.source.word(at + 1).to_owned(), self.source.line(at));
        let within = self.within.clone();
        self.items.types.push(Type { name, word, seen, within, line, fields });
    }

    fn fielded(&mut self, at: usize, word: &'static str, seen: Seen) -> usize {
        let mut open = super::header::after_generics(self.source, at + 2);
        while !matches!(self.source.word(open), "{" | "(" | ";" | "") {
            open += 1;
        }
        let close = self.source.closing(open);
        let fields = match self.source.word(open) {
            "{" | "(" => self.fields(open + 1, close),
            _ => Vec::new(),
        };
        self.add_type(at, word, seen, fields);
        match self.source.word(open) {
            "(" => self.end(close),
            _ => close + 1,
        }
    }

    fn fields(&self, mut at: usize, close: usize) -> Vec<Seen> {
        let source = self.source;
        let mut fields = Vec::new();
        while at < close {
            let begin = after_attributes(source, at);
            let mut index = begin;
            while index < close && source.word(index) != "," {
                index = match source.word(index) {
                    "<" => super::header::after_generics(source, index),
                    "(" | "[" | "{" => source.closing(index) + 1,
                    _ => index + 1,
                };
            }
            if begin < close && !source.is_test(at) {
                fields.push(visibility(source, begin).0);
            }
            at = index + 1;
        }
        fields
    }

    /// The index after the item at `at`, which ends with its braces or without any.
    fn end(&self, mut at: usize) -> usize {
        loop {
            match self.source.word(at) {
                "(" | "[" => at = self.source.closing(at),
                "{" => return self.source.closing(at) + 1,
                ";" => return at + 1,
                "}" | "" => return at,
                _ => {}
            }
            at += 1;
        }
    }

    /// The index after the item at `at`, which ends with a semicolon whatever its value has.
    fn end_of_value(&self, mut at: usize) -> usize {
        loop {
            match self.source.word(at) {
                "(" | "[" | "{" => at = self.source.closing(at),
                ";" => return at + 1,
                "}" | "" => return at,
                _ => {}
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Items {
        read(&Source::new("crates/x/src/a.rs".to_owned(), text.to_owned()))
    }

    #[test]
    fn types_have_their_fields_and_who_sees_them() {
        let text = "#[derive(A)] pub struct B<T: C<D>> where T: E { f: G<H, I>, pub(crate) j: K, \
            #[cfg(test)] l: u8, pub m: [u8; 2] }\nstruct N(pub u8, (u8, u8));\nstruct O;\n\
            pub enum P { Q(u8), R { s: u8 } }";
        let types = items(text).types;
        let names: Vec<&str> = types.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["B", "N", "O", "P"]);
        assert_eq!(types[0].fields, [Seen::Here, Seen::Within, Seen::All]);
        assert_eq!(types[1].fields, [Seen::All, Seen::Here]);
        assert!(types[2].fields.is_empty() && types[3].fields.is_empty());
    }

    #[test]
    fn functions_know_their_type_and_those_of_tests_are_left_out() {
        let text = "impl A { pub const fn b() -> u8 { c({ d }) } unsafe fn e(&self) {} }\n\
            trait F { fn g(&mut self) -> impl I<J = K>; const H: u8 = { 1 }; fn i() {} }\n\
            async fn j() -> impl I<J = K> {}\n\
            impl F for A { fn g(&mut self) {} }\n#[cfg(test)] mod t { fn k() {} }\n\
            const L: fn() = { m }; extern \"C\" fn n() {}";
        let found: Vec<String> = items(text)
            .functions
            .iter()
            .map(|it| format!("{}.{}", it.owner.join("::"), it.name))
            .collect();
        assert_eq!(found, ["A.b", "A.e", "F.g", "F.i", ".j", "A.g", ".n"]);
    }

    #[test]
    fn modules_names_and_uses_are_found_where_they_are() {
        let text = "mod a; pub mod b { pub static C: u8 = 1; } pub type D = E; \
            const F: G = G { h: 1 }; pub use i::j; macro_rules! k { () => {} } l! { m } use n::o;";
        let items = items(text);
        let names: Vec<&str> = items.names.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["C", "D", "F"]);
        assert_eq!(items.names[0].within, ["b"]);
        assert_eq!(items.modules.len(), 2);
        let uses: Vec<&str> = items.uses.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(uses, ["j", "o"]);
    }

    #[test]
    fn broken_text_ends() {
        for text in ["struct", "struct A<", "impl A {", "fn", "mod", "trait A { fn b(", "pub", "}"]
        {
            let _ = items(text);
        }
    }
}
