//! `cargo xtask limits`: how large types, functions, files and circles of imports are.
//!
//! ```text
//!   tidy::tree -> code (items, paths) -> sizes of each kind -> the worst, as a table
//!                                             | above the limit
//!                                             v
//!                       xtask/limits.txt: figure and reason -> problems
//! ```
//!
//! A measure to look at: a type that is cut in two to pass is worse than one with a field more, and
//! then stands in the list with a sentence that a reader accepts. Tests are not counted.

use std::fs;
use std::io;
use std::path::Path;

mod circles;
mod lengths;
mod names;
mod owners;
mod settings;
mod size;
mod table;
mod types;

use crate::allowances::{Allowances, Excess};
use crate::code::Code;
use crate::code::paths::Paths;
use crate::tidy::Problem;
use crate::tidy::tree::Tree;
use settings::{RULE, Settings};
use size::Size;

/// Where what is above a limit stands.
const LIST: &str = "xtask/limits.txt";

const HELP: &str = "\
How large types, functions, files and circles of imports are, the worst first; what is above a limit
stands in xtask/limits.txt with its figure and a reason.

  cargo xtask limits            the table; exit code 1 where something is above the list, or the
                                list above what is there
  cargo xtask limits --shrink   lowers the figures of the list to what is there, and removes lines
                                that nothing needs; it raises and adds nothing
";

/// Everything that was counted, and what was wrong with what says how.
fn sizes(tree: &Tree) -> (Vec<Size>, Vec<Problem>) {
    let (settings, mut problems) = Settings::read(tree);
    let code = Code::new(tree);
    let paths = Paths::new(&code);
    let types = types::Types::new(&code, &paths, &settings);
    let mut sizes = types.sizes();
    let (owned, unknown) = owners::sizes(&types, &settings);
    problems.extend(unknown);
    sizes.extend(owned);
    sizes.extend(lengths::sizes(tree));
    sizes.extend(circles::sizes(&code, &paths));
    sizes.extend(names::sizes(tree, &settings));
    sizes.sort_by(|a, b| b.figure.cmp(&a.figure).then_with(|| a.name.cmp(&b.name)));
    (sizes, problems)
}

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let (sizes, problems) = sizes(tree);
    judge(tree, &sizes, problems)
}

fn judge(tree: &Tree, sizes: &[Size], mut problems: Vec<Problem>) -> Vec<Problem> {
    let excesses: Vec<Excess> = sizes.iter().filter_map(Size::excess).collect();
    match Allowances::parse(RULE, LIST, tree.text(LIST).unwrap_or_default()) {
        Ok(list) => problems.extend(list.judge(&excesses)),
        Err(problem) => problems.push(problem),
    }
    problems
}

/// Runs the command with the words after `limits`; true when nothing is to be done.
///
/// # Errors
/// A word that is none; the repository cannot be read, or the list not be written.
pub fn run(root: &Path, words: &[&str]) -> io::Result<bool> {
    match words {
        [] => {}
        ["--shrink"] => return shrink(root),
        ["--help" | "-h" | "help"] => {
            print!("{HELP}");
            return Ok(true);
        }
        _ => {
            let text =
                format!("unknown words `{}`; see `cargo xtask limits --help`", words.join(" "));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    let tree = Tree::read(root)?;
    let (sizes, problems) = sizes(&tree);
    print!("{}", table::text(&sizes));
    let problems = judge(&tree, &sizes, problems);
    for problem in &problems {
        println!("{problem}");
    }
    Ok(problems.is_empty())
}

fn shrink(root: &Path) -> io::Result<bool> {
    let tree = Tree::read(root)?;
    let excesses: Vec<Excess> = sizes(&tree).0.iter().filter_map(Size::excess).collect();
    let text = tree.text(LIST).unwrap_or_default();
    let shrunk = Allowances::shrunk(text, &excesses);
    let lines = |text: &str| text.lines().count();
    println!("{LIST}: {} lines, {} before", lines(&shrunk), lines(text));
    fs::write(root.join(LIST), shrunk)?;
    Ok(true)
}
