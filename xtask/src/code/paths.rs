//! [`Paths`]: which file of the repository a path in the code leads to.
//!
//! ```text
//!   in core/src/flow/sender.rs:  super::Splice  -> flow/mod.rs: pub use splice::Splice
//!                                               -> core/src/flow/splice.rs, `Splice`
//! ```
//!
//! Imports are followed, those of other crates of ours too, to where the item is declared; so a
//! facade that only hands names on is never the end of a path. What a macro declares has no place.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Code;
use crate::tidy::lexer::Kind;
use crate::tidy::manifest::Manifest;
use crate::tidy::source::Source;
use crate::tidy::tree::Tree;

/// How many imports are followed; more go round in a circle.
const STEPS_MAX: usize = 8;

/// Where a file stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The package's name without `dacapo-`; empty for a file of none.
    pub package: String,
    /// The folder that its crate's root is in.
    pub folder: String,
    /// The module it is; nothing for the root of a crate.
    pub module: Vec<String>,
}

/// A folder with the root of a crate in it.
#[derive(Clone, Debug)]
pub struct Root {
    folder: String,
    package: String,
}

/// The folders that have a crate's root, the longest first.
#[must_use]
pub fn crate_roots(tree: &Tree) -> Vec<Root> {
    let packages: Vec<(String, String)> = Manifest::all(tree)
        .iter()
        .map(|it| (it.path.trim_end_matches("Cargo.toml").to_owned(), it.short_name().to_owned()))
        .collect();
    let mut folders = BTreeSet::new();
    for source in &tree.sources {
        let Some((folder, file)) = source.path.rsplit_once('/') else { continue };
        if matches!(file, "lib.rs" | "main.rs") || folder.ends_with("/src/bin") {
            folders.insert(folder);
        }
    }
    let owner = |folder: &str| {
        let holds = |it: &&(String, String)| format!("{folder}/").starts_with(&it.0);
        packages.iter().filter(holds).max_by_key(|it| it.0.len()).map(|it| it.1.clone())
    };
    let root = |folder: &str| Root {
        folder: folder.to_owned(),
        package: owner(folder).unwrap_or_default(),
    };
    let mut roots: Vec<Root> = folders.into_iter().map(root).collect();
    roots.sort_by_key(|root| std::cmp::Reverse(root.folder.len()));
    roots
}

impl Place {
    /// The place of the file `path`.
    #[must_use]
    pub fn new(roots: &[Root], path: &str) -> Self {
        let within =
            |root: &&Root| path.strip_prefix(&root.folder).is_some_and(|it| it.starts_with('/'));
        let Some(root) = roots.iter().find(within) else { return Self::default() };
        let rest = path.get(root.folder.len() + 1..).unwrap_or_default();
        let rest = rest.strip_suffix(".rs").unwrap_or(rest);
        let rest = rest.strip_suffix("/mod").unwrap_or(rest);
        let segments = rest.split('/').filter(|it| *it != "lib").map(str::to_owned);
        let (package, folder) = (root.package.clone(), root.folder.clone());
        Self { package, folder, module: segments.collect() }
    }
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The index of the file.
    pub file: usize,
    /// The item in it; nothing for the module itself.
    pub item: Option<String>,
}

/// Finds where paths lead.
#[derive(Debug)]
pub struct Paths<'a> {
    code: &'a Code<'a>,
    modules: HashMap<(&'a str, &'a [String]), usize>,
    /// The folders of libraries, by the name that code uses for them.
    libraries: BTreeMap<String, &'a str>,
}

impl<'a> Paths<'a> {
    /// The paths of `code`.
    #[must_use]
    pub fn new(code: &'a Code<'a>) -> Self {
        let mut modules = HashMap::new();
        let mut libraries = BTreeMap::new();
        for (index, file) in code.files.iter().enumerate() {
            let place = &file.place;
            if place.folder.is_empty() {
                continue;
            }
            // `main.rs` beside a library has no name in it; without one it is the root.
            let path = code.tree.sources.get(index).map_or("", |source| source.path.as_str());
            let is_root = path == format!("{}/lib.rs", place.folder);
            if is_root {
                let name = match place.package.as_str() {
                    "dacapo" => "dacapo".to_owned(),
                    package => format!("dacapo_{}", package.replace('-', "_")),
                };
                libraries.insert(name, place.folder.as_str());
            }
            modules.insert((place.folder.as_str(), place.module.as_slice()), index);
        }
        for (index, file) in code.files.iter().enumerate() {
            if file.place.module == ["main"] {
                modules.entry((file.place.folder.as_str(), &[])).or_insert(index);
            }
        }
        Self { code, modules, libraries }
    }

    /// Where `path`, as it stands in the file `from`, leads.
    #[must_use]
    pub fn target(&self, from: usize, path: &[String]) -> Option<Target> {
        self.follow(from, path, STEPS_MAX)
    }

    fn follow(&self, from: usize, path: &[String], steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let place = &self.code.files.get(from)?.place;
        let (first, rest) = path.split_first()?;
        let module = match place.module.as_slice() {
            [main] if main == "main" => &[],
            module => module,
        };
        match first.as_str() {
            "crate" => self.walk(&place.folder, &[], rest, steps),
            "self" => self.walk(&place.folder, module, rest, steps),
            "super" => {
                let ups = path.iter().take_while(|it| *it == "super").count();
                let parent = module.get(..module.len().checked_sub(ups)?)?;
                self.walk(&place.folder, parent, path.get(ups..)?, steps)
            }
            name => {
                let here = || self.walk(&place.folder, module, path, steps);
                let there = || self.walk(self.libraries.get(name)?, &[], rest, steps);
                here().or_else(there)
            }
        }
    }

    fn walk(
        &self,
        folder: &str,
        module: &[String],
        path: &[String],
        steps: usize,
    ) -> Option<Target> {
        let file = *self.modules.get(&(folder, module))?;
        let Some((name, rest)) = path.split_first() else {
            return Some(Target { file, item: None });
        };
        let mut below = module.to_vec();
        below.push(name.clone());
        if let Some(target) = self.walk(folder, &below, rest, steps) {
            return Some(target);
        }
        let items = &self.code.files.get(file)?.items;
        if items.declares(name) {
            return Some(Target { file, item: Some(name.clone()) });
        }
        let named = items.uses.iter().filter(|it| it.name == *name).map(|it| (it, rest));
        let all = items.uses.iter().filter(|it| it.name == "*").map(|it| (it, path));
        // An import of a name from a path that begins with it is of a crate, not of itself.
        let goes_on = |path: &[String]| path.first() != Some(name) || path.len() > 1;
        named.chain(all).find_map(|(it, rest)| {
            let next: Vec<String> = it.path.iter().chain(rest).cloned().collect();
            goes_on(&next).then(|| self.follow(file, &next, steps)).flatten()
        })
    }

    /// Where the live code of the file `from` leads outside it: each place once, with a line.
    #[must_use]
    pub fn leads(&self, from: usize) -> BTreeMap<Target, usize> {
        let mut leads = BTreeMap::new();
        let Some(source) = self.code.tree.sources.get(from) else { return leads };
        for (path, line) in mentions(source) {
            if let Some(target) = self.target(from, &path).filter(|target| target.file != from) {
                leads.entry(target).or_insert(line);
            }
        }
        leads
    }
}

/// The paths that the live code of `source` has, with their lines. A name that is only handed on
/// (`pub use`) is none.
fn mentions(source: &Source) -> Vec<(Vec<String>, usize)> {
    let mut mentions = Vec::new();
    let mut index = 0;
    while index < source.tokens.len() {
        if source.is_test(index) {
            index += 1;
        } else if source.word(index) == "use" && source.word(index + 1) != "<" {
            let is_pub = matches!(source.word(index.wrapping_sub(1)), "pub" | ")");
            let mut uses = Vec::new();
            super::uses::read(source, index + 1, is_pub, &mut uses);
            uses.retain(|it| !it.is_pub || is_named_again(source, &it.name, index));
            mentions.extend(uses.into_iter().map(|it| (it.path, it.line)));
            while !matches!(source.word(index), ";" | "") {
                index += 1;
            }
        } else if let Some((path, end)) = path_from(source, index) {
            mentions.push((path, source.line(index)));
            index = end;
        } else {
            index += 1;
        }
    }
    mentions
}

/// Whether `name` stands outside of the `use` at `at`, other than as the module that it names.
fn is_named_again(source: &Source, name: &str, at: usize) -> bool {
    let end = (at..source.tokens.len()).find(|&it| source.word(it) == ";").unwrap_or(at);
    let is_named =
        |&it: &usize| source.word(it) == name && source.word(it.wrapping_sub(1)) != "mod";
    source.live().filter(is_named).any(|it| !(at..end).contains(&it))
}

/// A path of two segments and more that begins at `at`, and the index after it.
fn path_from(source: &Source, at: usize) -> Option<(Vec<String>, usize)> {
    let is_inside =
        source.word(at.wrapping_sub(1)) == ":" && source.word(at.wrapping_sub(2)) == ":";
    if source.kind(at) != Some(Kind::Ident) || is_inside {
        return None;
    }
    let mut path = vec![source.word(at).to_owned()];
    let mut index = at + 1;
    while source.matches(index, &[":", ":"]) && source.kind(index + 2) == Some(Kind::Ident) {
        path.push(source.word(index + 2).to_owned());
        index += 3;
    }
    (path.len() > 1).then_some((path, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    const FILES: [(&str, &str); 9] = [
        ("crates/a/Cargo.toml", "[package]\nname = \"dacapo-a\"\n"),
        ("crates/b/Cargo.toml", "[package]\nname = \"dacapo-b\"\n"),
        ("crates/a/src/lib.rs", "mod x; pub mod y; pub use x::{Deep, x}; pub use y::*;"),
        ("crates/a/src/x.rs", "mod deep; pub use deep::{Deep, Other as Renamed};"),
        ("crates/a/src/x/deep.rs", "pub struct Deep; pub struct Other; use super::super::y::Y;"),
        ("crates/a/src/y/mod.rs", "pub struct Y; fn f() { crate::x::Renamed::g(1); }"),
        ("crates/b/src/main.rs", "mod z; use dacapo_a::{Deep, Y}; use dacapo_a::x::Renamed as R;"),
        ("crates/b/src/z.rs", "fn f() { dacapo_a::Deep; super::R; std::mem::take(); Deep::new() }"),
        ("crates/b/tests/t.rs", "use dacapo_a::Deep;"),
    ];

    /// Where the code of `path` leads: file and item.
    fn leads(path: &str) -> Vec<String> {
        let tree = tree(&FILES);
        let code = Code::new(&tree);
        let paths = Paths::new(&code);
        let from = tree.sources.iter().position(|it| it.path == path).unwrap();
        let name = |target: &Target| {
            format!("{} {}", tree.sources[target.file].path, target.item.as_deref().unwrap_or("-"))
        };
        paths.leads(from).keys().map(name).collect()
    }

    #[test]
    fn imports_are_followed_to_where_the_item_is() {
        let deep = ["crates/a/src/x/deep.rs Deep", "crates/a/src/x/deep.rs Other"];
        assert_eq!(leads("crates/b/src/main.rs"), [deep[0], deep[1], "crates/a/src/y/mod.rs Y"]);
        assert_eq!(leads("crates/b/src/z.rs"), deep);
    }

    #[test]
    fn a_name_that_is_only_handed_on_leads_nowhere() {
        assert_eq!(leads("crates/a/src/lib.rs"), [""; 0]);
        assert_eq!(leads("crates/a/src/x/deep.rs"), ["crates/a/src/y/mod.rs Y"]);
        assert_eq!(leads("crates/a/src/y/mod.rs"), ["crates/a/src/x/deep.rs Other"]);
    }

    #[test]
    fn places_are_packages_and_modules() {
        let tree = tree(&FILES);
        let code = Code::new(&tree);
        let places: Vec<String> = code
            .files
            .iter()
            .map(|file| format!("{}:{}", file.place.package, file.place.module.join("::")))
            .collect();
        assert_eq!(places, ["a:", "a:x", "a:x::deep", "a:y", "b:main", "b:z", ":"]);
    }

    #[test]
    fn a_circle_of_imports_ends() {
        let files = [
            ("crates/a/Cargo.toml", "[package]\nname = \"dacapo-a\"\n"),
            ("crates/a/src/lib.rs", "mod x; mod y; use x::Z;"),
            ("crates/a/src/x.rs", "pub use crate::y::Z; pub use super::y::*;"),
            ("crates/a/src/y.rs", "pub use crate::x::Z; pub use crate::x::*;"),
        ];
        let tree = tree(&files);
        let code = Code::new(&tree);
        assert_eq!(Paths::new(&code).target(0, &["x".to_owned(), "Z".to_owned()]), None);
    }
}
