//! What the chores know of the code besides its tokens: items, and which file a path leads to.
//!
//! ```text
//!   tidy::source (tokens) -> items (types, functions, uses) -> paths (crate, module, file)
//! ```
//!
//! It knows no types: a name stands for what the path, the imports and the crate say it is, which
//! formatted code that compiles makes exact enough to look at sizes.

pub mod header;
pub mod items;
pub mod paths;
pub mod uses;

use crate::tidy::tree::Tree;
use items::Items;
use paths::Place;

/// The Rust files of a tree with their items and places.
#[derive(Debug)]
pub struct Code<'a> {
    /// The tree they are of.
    pub tree: &'a Tree,
    /// As many as the tree has sources, in their order.
    pub files: Vec<File>,
}

/// What is known of one file.
#[derive(Debug)]
pub struct File {
    /// Its crate and module.
    pub place: Place,
    /// What it declares outside tests.
    pub items: Items,
}

impl<'a> Code<'a> {
    /// Reads the items of every file of `tree`.
    #[must_use]
    pub fn new(tree: &'a Tree) -> Self {
        let roots = paths::crate_roots(tree);
        let files = tree.sources.iter().map(|source| File {
            place: Place::new(&roots, &source.path),
            items: items::read(source),
        });
        Self { tree, files: files.collect() }
    }
}
