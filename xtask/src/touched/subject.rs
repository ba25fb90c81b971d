//! [`Subject`]: a transport, C-module, access module or controller that exists.
//!
//! One is there where a static or constant is its specification (`ModuleSpec`, `TransportSpec`,
//! `AccessSpec`, `ControllerSpec`). Access modules without specifications are the types that are a
//! `Source` or `Sink` of flows in the library, outside the folders of those that have one.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::code::paths::{Paths, Target};
use crate::tidy::lexer::Kind;
use crate::tidy::source::Source;

/// Something that the catalogue has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What it is.
    pub kind: &'static str,
    /// Its name, or that of its folder.
    pub name: String,
    /// The names that its specifications give.
    pub names: Vec<String>,
    /// Prefixes of the paths of what is its own.
    pub folders: Vec<String>,
    /// Where it is specified.
    pub path: String,
    /// The line there, from 1.
    pub line: usize,
}

impl Subject {
    /// The line that the list may have for it begins so.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// Whether `path` is in its folder.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.folders.iter().any(|folder| path.starts_with(folder.as_str()))
    }
}

/// The kinds, by the type of their specifications.
const KINDS: [(&str, &str); 4] = [
    ("ModuleSpec", "module"),
    ("TransportSpec", "transport"),
    ("AccessSpec", "access"),
    ("ControllerSpec", "controller"),
];

/// Everything that exists in `code`, by kind and name.
#[must_use]
pub fn all(code: &Code<'_>, paths: &Paths<'_>) -> Vec<Subject> {
    let mut subjects: BTreeMap<(&'static str, String), Subject> = BTreeMap::new();
    for source in code.tree.sources.iter().filter(|source| is_of_the_product(&source.path)) {
        for (kind, name, line) in specified(source) {
            let folder = folder(kind, &source.path);
            let short = match kind {
                // Those of one folder share all that is outside it.
                "transport" => last(&folder).to_owned(),
                _ => name.clone(),
            };
            let new = || Subject {
                kind,
                name: short.clone(),
                names: Vec::new(),
                folders: vec![folder.clone()],
                path: source.path.clone(),
                line,
            };
            subjects.entry((kind, short.clone())).or_insert_with(new).names.push(name);
        }
    }
    let access: Vec<Subject> =
        subjects.values().filter(|it| it.kind == "access").cloned().collect();
    for subject in unspecified(code, paths) {
        if !access.iter().any(|it| it.has(&subject.path)) {
            subjects.insert((subject.kind, subject.name.clone()), subject);
        }
    }
    subjects.into_values().collect()
}

/// What tests and faults are made in, and experiments, which say on command lines what they
/// measure as a user would; a new transport need not be named there.
const LABS: [&str; 4] =
    ["crates/netlab/", "apps/lab/", "apps/eval/src/experiments/", "apps/eval/src/peers/"];

/// Whether `path` is of no test, chore or other program that is measured.
#[must_use]
pub fn is_of_the_product(path: &str) -> bool {
    let is_ours = path.starts_with("crates/") || path.starts_with("apps/");
    is_ours && !LABS.iter().any(|folder| path.starts_with(folder))
}

/// The specifications in `source`: kind, name and line.
fn specified(source: &Source) -> Vec<(&'static str, String, usize)> {
    let mut specs = Vec::new();
    for at in source.live().filter(|&at| matches!(source.word(at), "static" | "const")) {
        let equals = (at..at + 10).find(|&it| source.word(it) == "=");
        let Some(equals) = equals.filter(|_| source.word(at + 2) == ":") else { continue };
        let of = KINDS.iter().find(|(word, _)| source.word(equals - 1) == *word);
        let name = (equals..equals + 40).find(|&it| source.matches(it, &["name", ":"]));
        let literal = name.map(|it| it + 2).filter(|&it| source.kind(it) == Some(Kind::Str));
        if let (Some((_, kind)), Some(literal)) = (of, literal) {
            specs.push((*kind, source.word(literal).trim_matches('"').to_owned(), source.line(at)));
        }
    }
    specs
}

/// What is its own: the folder of a transport, the folder of a module's function, a file and the
/// folder of its name otherwise.
fn folder(kind: &str, path: &str) -> String {
    let Some((below, rest)) = path.split_once("/src/") else { return path.to_owned() };
    match rest.split_once('/') {
        Some((first, _)) if matches!(kind, "transport" | "module") => {
            format!("{below}/src/{first}/")
        }
        _ => path.trim_end_matches(".rs").trim_end_matches("mod").to_owned(),
    }
}

fn last(folder: &str) -> &str {
    folder.trim_end_matches('/').rsplit('/').next().unwrap_or(folder)
}

/// The sources and sinks of the library, each with its file and the folder of that.
fn unspecified(code: &Code<'_>, paths: &Paths<'_>) -> Vec<Subject> {
    let mut subjects: BTreeMap<Target, Subject> = BTreeMap::new();
    for (index, file) in code.files.iter().enumerate() {
        if file.place.package != "dacapo" {
            continue;
        }
        for it in
            file.items.impls.iter().filter(|it| matches!(it.of_trait.as_str(), "Source" | "Sink"))
        {
            let Some(target) = paths.target(index, &it.path) else { continue };
            let Some(source) = code.tree.sources.get(target.file) else { continue };
            let stem = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
            let subject = Subject {
                kind: "access",
                name: target.item.clone().unwrap_or_default(),
                names: Vec::new(),
                folders: vec![source.path.clone(), format!("{stem}/")],
                path: source.path.clone(),
                line: it.line,
            };
            subjects.insert(target, subject);
        }
    }
    subjects.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    #[test]
    fn specifications_and_without_them_sources_and_sinks_are_found() {
        let spec = "pub static SPEC: dacapo_lift::ModuleSpec = dacapo_lift::ModuleSpec { \
            id: 1, name: \"window\" }; static NOT: u8 = 1; \
            #[cfg(test)] static T: ModuleSpec = ModuleSpec { name: \"t\" };";
        let own = "static SPEC: AccessSpec = AccessSpec { name: \"drum\", id: 1 }; \
            struct Beat; impl Source for Beat {}";
        let sink = "mod part; pub struct Keep; impl<T> dacapo_core::Sink for Keep<T> {} \
            impl Drop for Keep {}";
        let tree = tree(&[
            ("crates/modules/Cargo.toml", "[package]\nname = \"dacapo-modules\"\n"),
            ("crates/modules/src/ordering/window.rs", spec),
            ("crates/dacapo/Cargo.toml", "[package]\nname = \"dacapo\"\n"),
            ("crates/dacapo/src/lib.rs", "mod drum; mod keep;"),
            ("crates/dacapo/src/drum.rs", own),
            ("crates/dacapo/src/keep.rs", sink),
        ]);
        let code = Code::new(&tree);
        let found: Vec<String> = all(&code, &Paths::new(&code))
            .iter()
            .map(|it| format!("{} {}", it.key(), it.folders.join(" ")))
            .collect();
        assert_eq!(
            found,
            [
                "access Keep crates/dacapo/src/keep.rs crates/dacapo/src/keep/",
                "access drum crates/dacapo/src/drum",
                "module window crates/modules/src/ordering/"
            ]
        );
    }
}
