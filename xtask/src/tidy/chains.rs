//! Rule `chains`: the functions that the map names exist.
//!
//! ```text
//!   ARCHITECTURE.md, fenced:  core::Session::push -> Sender::push
//!                               \ crate, if said     \ a type and a function of it
//! ```
//!
//! Looked at is every `Type::function` in a fenced block of ARCHITECTURE.md and docs/decisions.md.
//! The function must be declared for that type (or trait) outside tests, in the crate that stands
//! before it where one does.

use std::collections::HashSet;

use super::problem::Problem;
use super::tree::Tree;
use crate::code::Code;

const RULE: &str = "chains";
const MAPS: [&str; 2] = ["ARCHITECTURE.md", "docs/decisions.md"];

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let known = known(tree);
    let mut problems = Vec::new();
    for path in MAPS {
        let lines = fenced(tree.text(path).unwrap_or_default());
        if path == MAPS[0] && lines.iter().all(|(_, text)| names(text).next().is_none()) {
            let remedy = "show the ways down and up and that of a command, in a fenced block";
            problems.push(Problem::new(RULE, path, 1, "no function is named", remedy));
        }
        for (line, text) in lines {
            for name in names(text).filter(|name| !known.contains(*name)) {
                let what = format!("there is no `{name}` in the code");
                let remedy = "call the function as it is called now, or show the new way";
                problems.push(Problem::new(RULE, path, line, what, remedy));
            }
        }
    }
    problems
}

/// Every function of a type outside tests, as `Type::function` and as `crate::Type::function`.
fn known(tree: &Tree) -> HashSet<String> {
    let mut known = HashSet::new();
    for file in Code::new(tree).files {
        let package = file.place.package.replace('-', "_");
        for function in &file.items.functions {
            if let Some(owner) = function.owner.last() {
                let name = format!("{owner}::{}", function.name);
                known.insert(format!("{package}::{name}"));
                known.insert(name);
            }
        }
    }
    known
}

/// The lines of `text` within ``` fences, with their numbers.
fn fenced(text: &str) -> Vec<(usize, &str)> {
    let mut is_within = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_within = !is_within;
        } else if is_within {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// Each `Type::function` in `line`, with the crate before it.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c == '_' || c == ':' || c.is_ascii_alphanumeric();
    line.split(move |c| !is_word(c)).map(|word| word.trim_matches(':')).filter(|word| {
        let mut parts = word.rsplit("::");
        let begins = |part: Option<&str>, is: fn(&char) -> bool| {
            part.and_then(|it| it.chars().next()).is_some_and(|c| is(&c))
        };
        begins(parts.next(), char::is_ascii_lowercase)
            && begins(parts.next(), char::is_ascii_uppercase)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    const CORE: (&str, &str) = (
        "crates/core/src/lib.rs",
        "pub struct Core; impl Core { pub fn turn(&self) {} }\n\
         #[cfg(test)] mod tests { impl Core { fn only_here(&self) {} } }",
    );
    const PORT: (&str, &str) = ("crates/core/src/port.rs", "pub trait Sink { fn give(&self); }");
    const TOML: (&str, &str) = ("crates/core/Cargo.toml", "[package]\nname = \"dacapo-core\"\n");

    fn found(map: &str) -> Vec<String> {
        let files = [CORE, PORT, TOML, ("ARCHITECTURE.md", map)];
        check(&tree(&files)).into_iter().map(|p| format!("{}: {}", p.line, p.what)).collect()
    }

    #[test]
    fn functions_of_types_and_traits_that_exist_pass() {
        let map = "# A\n```\ndown  Core::turn -> core::Core::turn (copy) -> Sink::give\n```\n";
        assert_eq!(found(map), [""; 0]);
    }

    #[test]
    fn a_function_that_is_gone_or_elsewhere_is_named_with_its_line() {
        let map =
            "```\nCore::turn -> Core::spin\n  -> Sink::turn\n```\n\n```\nwire::Core::turn\n```";
        let expected = [
            "2: there is no `Core::spin` in the code",
            "3: there is no `Sink::turn` in the code",
            "7: there is no `wire::Core::turn` in the code",
        ];
        assert_eq!(found(map), expected);
        assert_eq!(
            found("```\nCore::only_here\n```"),
            ["2: there is no `Core::only_here` in the code"]
        );
    }

    #[test]
    fn prose_variants_and_paths_of_modules_are_not_looked_at() {
        let map = "`Core::spin` in prose\n```\nFrom::To and a::b: Core::turn\n```";
        assert_eq!(found(map), [""; 0]);
    }

    #[test]
    fn a_map_that_names_no_function_is_one_without_ways() {
        assert_eq!(found("`Core::turn`\n```\ncargo test\n```"), ["1: no function is named"]);
    }
}
