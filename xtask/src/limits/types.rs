//! [`Types`]: fields and methods of the types of the machinery.
//!
//! A method is a function in an `impl` of the type, of a trait too, and every function of its crate
//! that takes a `&mut` of it: a free function, or one of another type. A function of another crate
//! can do no more with it than its own public functions let it. What is handed to everything (an
//! `argument` of the settings) has only what stands in its `impl`.

use std::collections::{BTreeMap, BTreeSet};

use super::settings::Settings;
use super::size::{Kind, Size};
use crate::code::Code;
use crate::code::header::Seen;
use crate::code::items::{Function, Type};
use crate::code::paths::{Paths, Target};

/// The crates whose types are counted.
const CRATES: [&str; 8] =
    ["core", "reactor", "path", "io", "transport", "xtp", "safenet", "dacapo"];

const FIELDS: Kind = Kind {
    word: "fields",
    unit: "fields",
    limit: 20,
    remedy: "find the parts that change together and make them types",
};
const METHODS: Kind = Kind {
    word: "methods",
    unit: "methods",
    limit: 40,
    remedy: "find the parts that change together and give each its own",
};
const FILES: Kind = Kind {
    word: "files",
    unit: "files with methods",
    limit: 3,
    remedy: "move methods that belong together to a type of their own",
};

/// Types whose fields are their purpose.
const PLAIN: [&str; 3] = ["Config", "Stats", "Spec"];

/// What is known of one type.
#[derive(Debug, Default)]
pub struct Known {
    /// The crate and the type; with its module where the crate has two of the name.
    pub name: String,
    /// Where it stands.
    pub path: String,
    /// The line there.
    pub line: usize,
    /// Its fields, by who sees them.
    pub fields: Vec<Seen>,
    /// How many functions are its methods.
    pub method_count: usize,
    /// The files they are in.
    pub files: BTreeSet<usize>,
    /// Its own functions that others see and that give out a `&mut`.
    pub lending: Vec<String>,
}

/// The types of the machinery, by where they are declared.
#[derive(Debug, Default)]
pub struct Types {
    known: BTreeMap<Target, Known>,
}

impl Types {
    /// Counts those of `code`.
    #[must_use]
    pub fn new(code: &Code<'_>, paths: &Paths<'_>, settings: &Settings) -> Self {
        let mut types = Self::default();
        for (index, file) in code.files.iter().enumerate() {
            if CRATES.contains(&file.place.package.as_str()) {
                types.add_file(code, index);
            }
        }
        types.name_apart(code);
        for (index, file) in code.files.iter().enumerate() {
            for function in &file.items.functions {
                types.add_function(code, paths, settings, index, function);
            }
        }
        types
    }

    /// The type that is called so.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Known> {
        self.known.values().find(|it| it.name == name)
    }

    fn add_file(&mut self, code: &Code<'_>, index: usize) {
        let (Some(file), Some(source)) = (code.files.get(index), code.tree.sources.get(index))
        else {
            return;
        };
        let is_own = |it: &&Type| it.word != "trait" && it.within.is_empty();
        for of in file.items.types.iter().filter(is_own) {
            let name = format!("{}::{}", file.place.package, of.name);
            let (path, line, fields) = (source.path.clone(), of.line, of.fields.clone());
            let known = Known { name, path, line, fields, ..Known::default() };
            self.known.insert(Target { file: index, item: Some(of.name.clone()) }, known);
        }
    }

    /// Gives types of one name in a crate their modules.
    fn name_apart(&mut self, code: &Code<'_>) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for known in self.known.values() {
            *counts.entry(known.name.clone()).or_default() += 1;
        }
        for (target, known) in &mut self.known {
            if counts.get(&known.name).is_some_and(|count| *count > 1)
                && let (Some(file), Some(item)) = (code.files.get(target.file), &target.item)
            {
                let place = &file.place;
                let module = place.module.join("::");
                known.name = format!("{}::{module}::{item}", place.package);
            }
        }
    }

    fn add_function(
        &mut self,
        code: &Code<'_>,
        paths: &Paths<'_>,
        settings: &Settings,
        file: usize,
        function: &Function,
    ) {
        let owner = paths.target(file, &function.owner);
        let package = |file: usize| code.files.get(file).map(|file| &file.place.package);
        let is_argument =
            |known: &Known| settings.arguments.iter().any(|(name, _)| *name == known.name);
        let mut of: BTreeSet<Target> = function
            .signature
            .changes
            .iter()
            .filter_map(|path| paths.target(file, path))
            .filter(|target| package(target.file) == package(file))
            .filter(|target| self.known.get(target).is_some_and(|known| !is_argument(known)))
            .collect();
        of.extend(owner.clone());
        for target in of {
            let Some(known) = self.known.get_mut(&target) else { continue };
            known.method_count += 1;
            known.files.insert(file);
            let is_own = owner.as_ref() == Some(&target);
            if is_own && function.seen != Seen::Here && function.signature.lends {
                known.lending.push(function.name.clone());
            }
        }
    }

    /// The sizes of all.
    #[must_use]
    pub fn sizes(&self) -> Vec<Size> {
        self.known.values().flat_map(Known::sizes).collect()
    }
}

impl Known {
    /// A size of this type.
    #[must_use]
    pub fn size(&self, kind: Kind, figure: usize) -> Size {
        let (name, path) = (self.name.clone(), self.path.clone());
        Size { kind, name, figure, path, line: self.line }
    }

    fn sizes(&self) -> Vec<Size> {
        let is_plain = PLAIN.iter().any(|end| self.name.ends_with(end));
        let fields = if is_plain { 0 } else { self.fields.len() };
        vec![
            self.size(FIELDS, fields),
            self.size(METHODS, self.method_count),
            self.size(FILES, self.files.len()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings;
    use super::*;
    use crate::tidy::tree::tree;

    const A: &str = "pub mod b; pub struct A { x: u8, pub y: u8 } pub struct AConfig { z: u8 } \
        impl A { pub fn new() -> Self {} pub fn part_mut(&mut self) -> &mut u8 {} \
        fn own_mut(&mut self) -> &mut u8 {} }\nimpl Clone for A { fn clone(&self) -> A {} } \
        #[cfg(test)] impl A { fn t() {} }";
    const B: &str = "use crate::A; use super::c::Cx; pub struct Helper; \
        impl A { fn more(&self) {} } \
        fn free(a: &mut A, cx: &mut Cx) {} impl Helper { fn on(&self, a: &mut crate::A) {} } \
        fn not(a: &A, b: Vec<&mut A>) {}";

    /// Each size as `word name figure`.
    fn found(settings: &str) -> Vec<String> {
        let tree = tree(&[
            ("crates/core/Cargo.toml", "[package]\nname = \"dacapo-core\"\n"),
            ("crates/core/src/lib.rs", A),
            ("crates/core/src/b.rs", B),
            ("crates/core/src/c.rs", "pub struct Cx; pub struct Helper;"),
            ("crates/wire/Cargo.toml", "[package]\nname = \"dacapo-wire\"\n"),
            ("crates/wire/src/lib.rs", "pub struct Wide { a: u8 } fn f(a: &mut dacapo_core::A) {}"),
            (settings::PATH, settings),
        ]);
        let code = Code::new(&tree);
        let (settings, _) = Settings::read(&tree);
        let types = Types::new(&code, &Paths::new(&code), &settings);
        let line = |size: &Size| format!("{} {} {}", size.kind.word, size.name, size.figure);
        types.sizes().iter().filter(|size| size.figure > 0).map(line).collect()
    }

    #[test]
    fn methods_are_those_of_impls_and_whatever_of_its_crate_changes_the_type() {
        let sizes = found("");
        for expected in ["fields core::A 2", "methods core::A 7", "files core::A 2"] {
            assert!(sizes.contains(&expected.to_owned()), "{expected}: {sizes:?}");
        }
        assert!(sizes.contains(&"methods core::b::Helper 1".to_owned()), "{sizes:?}");
        assert!(sizes.contains(&"methods core::Cx 1".to_owned()), "{sizes:?}");
    }

    #[test]
    fn an_argument_has_only_its_own_and_plain_types_have_no_count_of_fields() {
        let sizes = found("argument core::Cx\n");
        assert!(!sizes.iter().any(|it| it.contains("core::Cx")), "{sizes:?}");
        assert!(!sizes.iter().any(|it| it.contains("AConfig")), "{sizes:?}");
        assert!(!sizes.iter().any(|it| it.contains("wire")), "{sizes:?}");
    }
}
