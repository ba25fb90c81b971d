//! Tidy: the rules of the house that the compiler and clippy do not know.
//!
//! A list of rules, each a function from the texts of the repository to problems, in a file of its
//! own with tests of its own.
//!
//! ```text
//!   files -> tree (lexed once) -> edges, layout, lengths, … -> path:line: rule: what; what to do
//! ```
//!
//! Invariant: a rule reads the tree and nothing else, so one run sees one state.

use std::io;
use std::path::Path;

mod banned;
mod chains;
mod decoders;
mod documents;
mod edges;
mod face;
pub mod ignored;
mod layout;
pub mod lexer;
pub mod manifest;
mod problem;
pub mod source;
pub mod tree;
mod unsafety;
mod unwrap;

use crate::limits;
pub use problem::Problem;
use tree::Tree;

type Rule = fn(&Tree) -> Vec<Problem>;

const RULES: [Rule; 11] = [
    edges::check,
    face::check,
    layout::check,
    limits::check,
    unwrap::check,
    decoders::check,
    unsafety::check,
    banned::check,
    ignored::check,
    documents::check,
    chains::check,
];

/// What a run saw.
#[derive(Debug)]
pub struct Report {
    /// The problems, by place.
    pub problems: Vec<Problem>,
    /// How many Rust files there are.
    pub source_count: usize,
    /// How many of their lines are no test code.
    pub line_count: usize,
    /// How many functions with bodies are no test code.
    pub function_count: usize,
    /// How many other texts there are.
    pub text_count: usize,
}

/// Checks the repository at `root` against every rule.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn check(root: &Path) -> io::Result<Report> {
    let tree = Tree::read(root)?;
    let mut problems: Vec<Problem> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    problems.sort();
    problems.dedup();
    let sources = &tree.sources;
    Ok(Report {
        problems,
        source_count: sources.len(),
        line_count: sources.iter().map(source::Source::live_line_count).sum(),
        function_count: sources.iter().map(|source| source.functions().len()).sum(),
        text_count: tree.texts.len(),
    })
}

/// Checks the repository at `root` and prints the outcome; true when there is nothing to do.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn run(root: &Path) -> io::Result<bool> {
    let report = check(root)?;
    for problem in &report.problems {
        println!("{problem}");
    }
    let Report { problems, source_count, line_count, function_count, text_count } = &report;
    println!(
        "tidy: {} problems; {source_count} Rust files with {function_count} functions and \
         {line_count} lines outside tests, {text_count} other texts, {} rules",
        problems.len(),
        RULES.len()
    );
    Ok(problems.is_empty())
}
