//! `cargo xtask docs`: the output that README.md and docs/ show, written by the commands that print
//! it.
//!
//! ~~~text
//!   <!-- shown: NAME -->          shown.txt: NAME -> command, what is left out, what is masked
//!   ```text                                      |
//!   what it printed        <- written, or compared with what it prints now
//!   ```
//! ~~~
//!
//! Only what differs beyond its masks is written anew, so that a port of today changes no page. A
//! block without a part in `shown.txt`, and a part without a block, fails.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

mod mask;
mod page;
mod recipe;
mod run;

use page::{Block, blocks, with_block};
use recipe::{Recipe, When};

const RECIPES: &str = "xtask/shown.txt";

const HELP: &str = "\
Writes the output that README.md and docs/ show (see xtask/shown.txt).

  cargo xtask docs [NAME]...       writes what differs; all of it, or the parts of these names
  cargo xtask docs --check         compares, and writes nothing; exit code 1 where something differs
    --night                        what takes minutes, too
    --measured                     figures of one day, too (not with --check)
    --built                        by the program that the tests have built, without another build
";

/// What is to be done.
#[derive(Debug, Default)]
struct Options {
    is_check: bool,
    is_night: bool,
    is_measured: bool,
    is_built: bool,
    names: Vec<String>,
}

impl Options {
    fn read(words: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        for word in words {
            match *word {
                "--check" => options.is_check = true,
                "--night" => options.is_night = true,
                "--measured" => options.is_measured = true,
                "--built" => options.is_built = true,
                name if !name.starts_with('-') => options.names.push(name.to_owned()),
                _ => return None,
            }
        }
        (!(options.is_check && options.is_measured)).then_some(options)
    }

    fn wants(&self, recipe: &Recipe) -> bool {
        let is_time = match recipe.when {
            When::Always => true,
            When::Night(_) => self.is_night || self.names.contains(&recipe.name),
            When::Measured(_) => self.is_measured,
        };
        is_time && (self.names.is_empty() || self.names.contains(&recipe.name))
    }
}

/// Does what the words say; false when something differs or does not fit together.
///
/// # Errors
/// A file cannot be read or written, or a command not be started.
pub fn run(root: &Path, words: &[&str]) -> io::Result<bool> {
    let Some(options) = Options::read(words) else {
        print!("{HELP}");
        return Ok(words == ["--help"]);
    };
    let recipes = recipe::read(&fs::read_to_string(root.join(RECIPES))?).map_err(invalid)?;
    let pages = pages(root)?;
    let mut problems = unmatched(&recipes, &pages);
    let wanted: Vec<&Recipe> = recipes.iter().filter(|it| options.wants(it)).collect();
    if !options.is_built {
        build(root, &wanted)?;
    }
    for (recipe, output) in wanted.iter().zip(run::all(root, &wanted)?) {
        match output {
            Ok(output) => problems.extend(settle(root, &pages, recipe, &output, &options)?),
            Err(problem) => problems.push(problem),
        }
    }
    problems.iter().for_each(|problem| println!("{problem}"));
    println!("docs: {} of {} outputs looked at", wanted.len(), recipes.len());
    for recipe in recipes.iter().filter(|it| !options.wants(it)) {
        match &recipe.when {
            When::Measured(why) => println!("  not compared: {} (measured {why})", recipe.name),
            When::Night(why) => println!("  at night: {} ({why})", recipe.name),
            When::Always => {}
        }
    }
    Ok(problems.is_empty())
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{RECIPES}: {text}"))
}

/// The program that is shown.
fn build(root: &Path, wanted: &[&Recipe]) -> io::Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "-q", "--locked", "-p", "dacapo-cli"];
    let built = Command::new(cargo).args(build).current_dir(root).status()?;
    if built.success() { Ok(()) } else { Err(io::Error::other("the command does not build")) }
}

/// The documents, by path from the root.
fn pages(root: &Path) -> io::Result<BTreeMap<PathBuf, String>> {
    let mut pages = BTreeMap::new();
    pages.insert(PathBuf::from("README.md"), fs::read_to_string(root.join("README.md"))?);
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let path = folder.join(entry?.file_name());
            if root.join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                let text = fs::read_to_string(root.join(&path))?;
                pages.insert(path, text);
            }
        }
    }
    Ok(pages)
}

/// Blocks without a part, and parts without a block.
fn unmatched(recipes: &[Recipe], pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut shown = Vec::new();
    for (path, text) in pages {
        for Block { name, line, .. } in blocks(text) {
            if !recipes.iter().any(|recipe| recipe.name == name) {
                let path = path.display();
                problems
                    .push(format!("{path}:{line}: {name}: {RECIPES} does not say what prints it"));
            }
            shown.push(name);
        }
    }
    let stray = recipes.iter().filter(|recipe| !shown.contains(&recipe.name));
    problems.extend(stray.map(|it| format!("{RECIPES}: {}: no document shows it", it.name)));
    problems
}

/// Compares or writes what a command printed; what differs when it is only compared.
fn settle(
    root: &Path,
    pages: &BTreeMap<PathBuf, String>,
    recipe: &Recipe,
    output: &str,
    options: &Options,
) -> io::Result<Option<String>> {
    for (path, text) in pages {
        let Some(block) = blocks(text).into_iter().find(|block| block.name == recipe.name) else {
            continue;
        };
        let (is, should) = (recipe.masked(&block.text), recipe.masked(output));
        if is == should && !recipe.is_measured() {
            continue;
        }
        if !options.is_check {
            // Another block of the page may have been written meanwhile.
            let now = fs::read_to_string(root.join(path))?;
            fs::write(root.join(path), with_block(&now, &recipe.name, output))?;
            println!("{}: {} is written anew", path.display(), recipe.name);
            continue;
        }
        let place = format!("{}:{}", path.display(), block.line);
        let difference = difference(&is, &should);
        return Ok(Some(format!(
            "{place}: {}: not what `{}` prints; `cargo xtask docs {}` writes it\n{difference}",
            recipe.name, recipe.run, recipe.name
        )));
    }
    Ok(None)
}

/// The first lines that differ.
fn difference(is: &str, should: &str) -> String {
    let (mut old, mut new) = (is.lines(), should.lines());
    loop {
        match (old.next(), new.next()) {
            (None, None) => return String::new(),
            (one, other) if one == other => {}
            (one, other) => {
                return format!("  shown:   {}\n  printed: {}", one.unwrap_or("(no more)"), {
                    other.unwrap_or("(no more)")
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_and_blocks_of_this_repository_belong_together() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let recipes = recipe::read(&fs::read_to_string(root.join(RECIPES)).unwrap()).unwrap();
        let problems = unmatched(&recipes, &pages(root).unwrap());
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        assert!(recipes.iter().any(|recipe| matches!(recipe.when, When::Always)));
    }

    #[test]
    fn words_that_do_not_go_together_are_refused() {
        assert!(
            Options::read(&["--check", "--night"]).is_some_and(|it| it.is_check && it.is_night)
        );
        assert!(Options::read(&["demo"]).is_some_and(|it| it.names == ["demo"]));
        assert!(Options::read(&["--check", "--measured"]).is_none());
        assert!(Options::read(&["--chekc"]).is_none());
    }

    #[test]
    fn the_first_difference_is_said() {
        assert_eq!(difference("a\nb", "a\nc"), "  shown:   b\n  printed: c");
        assert_eq!(difference("a", "a\nc"), "  shown:   (no more)\n  printed: c");
    }
}
