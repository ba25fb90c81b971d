//! Rule `face`: the library shows its own face, and no crate beneath it but those that are whole of
//! their own: `xtp_net`, `safenet_net`, `emulator`. The programs that people use stand on its face,
//! an `Endpoint`, and not on the engine beneath, which is for programs that measure it.

use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "face";
const LIBRARY: &str = "crates/dacapo/src/lib.rs";
const WHOLE: [&str; 3] = ["dacapo_xtp_net", "dacapo_safenet_net", "dacapo_emulator"];
/// Where the programs are that people use.
const PROGRAMS: [&str; 2] = ["apps/dacapo/src/", "crates/term/src/"];
/// What is beneath the face, and the module of the library that it is in.
const BENEATH: [(&str, &str); 4] =
    [("dacapo", "engine"), ("dacapo", "Reactor"), ("dacapo", "Host"), ("host", "Host")];

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let library = tree.sources.iter().filter(|source| source.path == LIBRARY);
    let is_program = |source: &&Source| PROGRAMS.iter().any(|at| source.path.starts_with(at));
    let programs = tree.sources.iter().filter(is_program);
    library.flat_map(crates_shown).chain(programs.flat_map(engine_used)).collect()
}

fn engine_used(source: &Source) -> Vec<Problem> {
    let used = (0..source.tokens.len()).filter_map(|at| Some((at, beneath(source, at)?)));
    let problem = |(at, what): (usize, &str)| {
        let what = format!("a program uses `{what}`, which is beneath the library's face");
        let remedy = "use `dacapo::Endpoint`, and give it what it lacks for any program";
        Problem::new(RULE, &source.path, source.line(at), what, remedy)
    };
    used.map(problem).collect()
}

/// What a path that begins here, or one of a group, names beneath the face.
fn beneath(source: &Source, at: usize) -> Option<&'static str> {
    let of_module = BENEATH.iter().filter(|(module, _)| source.word(at) == *module);
    let names: Vec<&'static str> = of_module.map(|(_, name)| *name).collect();
    let first = match source.word(at + 1) {
        "::" => at + 2,
        ":" if source.word(at + 2) == ":" => at + 3,
        _ => return None,
    };
    let end = match source.word(first) {
        "{" => source.closing(first),
        _ => first + 1,
    };
    // A name deeper in a group is of another module.
    let mut depth = 0_usize;
    (first..end).find_map(|place| {
        match source.word(place) {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            word if depth <= 1 => return names.iter().copied().find(|name| *name == word),
            _ => {}
        }
        None
    })
}

fn crates_shown(source: &Source) -> Vec<Problem> {
    let shown = (0..source.tokens.len()).filter(|&at| shows_crate(source, at));
    let problem = |at| {
        let what = format!("`{}` is shown as a whole", source.word(at + 2));
        let remedy = "show what of it applications need, in a module of the library";
        Problem::new(RULE, &source.path, source.line(at), what, remedy)
    };
    shown.map(problem).collect()
}

/// `pub use dacapo_…` up to `;`, `as` or `::*`, of a crate that is not whole.
fn shows_crate(source: &Source, at: usize) -> bool {
    let name = source.word(at + 2);
    let is_ours = name.starts_with("dacapo_") && !WHOLE.contains(&name);
    let is_all = matches!(source.word(at + 3), ";" | "as")
        || source.matches(at + 3, &["::", "*"])
        || source.matches(at + 3, &[":", ":", "*"]);
    source.matches(at, &["pub", "use"]) && is_ours && is_all
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn problems(text: &str) -> usize {
        check(&tree(&[(LIBRARY, text)])).len()
    }

    #[test]
    fn a_crate_beneath_is_not_shown_as_a_whole() {
        assert_eq!(problems("pub use dacapo_core as core;"), 1);
        assert_eq!(problems("pub use dacapo_core;\npub use dacapo_qos::*;"), 2);
        assert_eq!(problems("pub use dacapo_core::{Code, Error};\nuse dacapo_core as core;"), 0);
        assert_eq!(problems("pub use dacapo_xtp_net as xtp_net;"), 0);
    }

    #[test]
    fn a_program_stands_on_the_face_and_a_measuring_one_may_go_beneath() {
        let at = |path: &str, text: &str| check(&tree(&[(path, text)])).len();
        let program = |text: &str| at("apps/dacapo/src/commands/ls.rs", text);
        assert_eq!(program("use dacapo::engine::CoreEvent;"), 1);
        assert_eq!(program("use dacapo::{Code, Reactor};\nlet it = dacapo::Host::new();"), 2);
        assert_eq!(program("use dacapo::host::{Host, HostConfig};"), 1);
        assert_eq!(program("use dacapo::{Endpoint, xtp_net::{Host, Link}};"), 0);
        assert_eq!(program("use dacapo::host::HostConfig;\nuse dacapo::xtp_net::Host;"), 0);
        assert_eq!(at("crates/term/src/app.rs", "use dacapo::Host;"), 1);
        assert_eq!(at("apps/eval/src/core_app.rs", "use dacapo::engine::Core;"), 0);
    }
}
