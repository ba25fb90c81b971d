//! What the library `dacapo` shows: items by path, and the functions of its types by their names.
//!
//! ```text
//!   pub mod host { pub struct Host }  pub use host::Host   ->  item dacapo::Host
//!                                                               item dacapo::host::Host
//!   impl Host { pub fn next_event }                        ->  method Host::next_event
//! ```
//!
//! A crate that is handed on whole is one line: what is in it is not the library's face.

use std::collections::BTreeSet;

use super::lost::Lines;
use crate::code::Code;
use crate::code::header::Seen;
use crate::code::items::Items;
use crate::code::paths::{Paths, Target};
use crate::tidy::tree::Tree;

const PACKAGE: &str = "dacapo";

/// The lines of `tree`.
#[must_use]
pub fn lines(tree: &Tree) -> Lines {
    let code = Code::new(tree);
    let paths = Paths::new(&code);
    let mut face = Face { code: &code, paths: &paths, lines: Lines::new(), shown: BTreeSet::new() };
    let is_root =
        |it: &&crate::code::File| it.place.package == PACKAGE && it.place.module.is_empty();
    if let Some(root) = code.files.iter().position(|it| is_root(&it)) {
        face.module(root, PACKAGE, 0);
    }
    face.methods();
    face.lines
}

/// How deep modules lie in modules; two that hand on each other end here.
const DEPTH_MAX: usize = 6;

struct Face<'a> {
    code: &'a Code<'a>,
    paths: &'a Paths<'a>,
    lines: Lines,
    /// Types and traits that are shown.
    shown: BTreeSet<Target>,
}

impl Face<'_> {
    fn items(&self, file: usize) -> Option<&Items> {
        self.code.files.get(file).map(|file| &file.items)
    }

    fn module(&mut self, file: usize, path: &str, depth: usize) {
        let Some(items) = self.items(file).cloned().filter(|_| depth < DEPTH_MAX) else { return };
        let types = items.types.iter().filter(|it| it.seen == Seen::All && it.within.is_empty());
        for it in types {
            self.lines.insert(format!("item {path}::{}", it.name));
            self.shown.insert(Target { file, item: Some(it.name.clone()) });
        }
        let is_free = |seen, owner: &[String], within: &[String]| {
            seen == Seen::All && owner.is_empty() && within.is_empty()
        };
        let functions = items.functions.iter().filter(|it| is_free(it.seen, &it.owner, &it.within));
        self.lines.extend(functions.map(|it| format!("item {path}::{}", it.name)));
        let names = items.names.iter().filter(|it| is_free(it.seen, &[], &it.within));
        self.lines.extend(names.map(|it| format!("item {path}::{}", it.name)));
        for it in items.modules.iter().filter(|it| is_free(it.seen, &[], &it.within)) {
            let segments = ["self".to_owned(), it.name.clone()];
            let target = self.paths.target(file, &segments);
            self.lines.insert(format!("item {path}::{}", it.name));
            if let Some(target) = target.filter(|target| target.item.is_none()) {
                self.module(target.file, &format!("{path}::{}", it.name), depth + 1);
            }
        }
        for it in items.uses.iter().filter(|it| it.is_pub && it.name != "_") {
            self.handed_on(file, &it.path, &it.name, path, depth);
        }
    }

    /// `pub use` of `segments` as `name` in the module `path`.
    fn handed_on(
        &mut self,
        file: usize,
        segments: &[String],
        name: &str,
        path: &str,
        depth: usize,
    ) {
        let target = self.paths.target(file, segments);
        let is_own = |it: &Target| {
            self.code.files.get(it.file).is_some_and(|file| file.place.package == PACKAGE)
        };
        match target {
            Some(Target { file, item: None }) if name == "*" => self.module(file, path, depth + 1),
            Some(target) if target.item.is_none() && is_own(&target) => {
                self.lines.insert(format!("item {path}::{name}"));
                self.module(target.file, &format!("{path}::{name}"), depth + 1);
            }
            target => {
                self.lines.insert(format!("item {path}::{name}"));
                self.shown.extend(target.filter(|target| target.item.is_some()));
            }
        }
    }

    /// The functions of all that is shown.
    fn methods(&mut self) {
        for (index, file) in self.code.files.iter().enumerate() {
            for it in file.items.functions.iter().filter(|it| !it.owner.is_empty()) {
                if it.seen != Seen::All && !it.is_of_trait {
                    continue;
                }
                let target = self.paths.target(index, &it.owner);
                if let Some(target) = target.filter(|target| self.shown.contains(target)) {
                    let owner = target.item.unwrap_or_default();
                    self.lines.insert(format!("method {owner}::{}", it.name));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    #[test]
    fn items_are_found_at_every_path_and_methods_once() {
        let lib = "pub mod host; mod inner; pub use host::Host; pub use dacapo_core as core; \
            pub use dacapo_core::Fault as Broken; pub use inner::*; pub(crate) use inner::no; \
            pub fn catalogue() {}";
        let host = "pub struct Host; struct Own; impl Host { pub fn turn(&self) {} fn own() {} \
            pub(crate) fn part() {} } pub trait Give { fn give(&self); } pub const MAX: u8 = 1; \
            impl Give for Host { fn give(&self) {} }";
        let tree = tree(&[
            ("crates/dacapo/Cargo.toml", "[package]\nname = \"dacapo\"\n"),
            ("crates/dacapo/src/lib.rs", lib),
            ("crates/dacapo/src/host.rs", host),
            ("crates/dacapo/src/inner.rs", "pub enum Kind { A } pub fn no() {}"),
            ("crates/core/Cargo.toml", "[package]\nname = \"dacapo-core\"\n"),
            ("crates/core/src/lib.rs", "pub struct Fault; pub struct Other; mod part;"),
            ("crates/core/src/part.rs", "use crate::Fault; impl Fault { pub fn code(&self) {} }"),
        ]);
        let found: Vec<String> = lines(&tree).into_iter().collect();
        assert_eq!(
            found,
            [
                "item dacapo::Broken",
                "item dacapo::Host",
                "item dacapo::Kind",
                "item dacapo::catalogue",
                "item dacapo::core",
                "item dacapo::host",
                "item dacapo::host::Give",
                "item dacapo::host::Host",
                "item dacapo::host::MAX",
                "item dacapo::no",
                "method Fault::code",
                "method Give::give",
                "method Host::turn",
            ]
        );
    }
}
