//! Rule `face`: the library shows its own face, and no crate beneath it but those that are whole of
//! their own: `xtp_net`, `safenet_net`, `emulator`.

use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "face";
const LIBRARY: &str = "crates/dacapo/src/lib.rs";
const WHOLE: [&str; 3] = ["dacapo_xtp_net", "dacapo_safenet_net", "dacapo_emulator"];

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let library = tree.sources.iter().filter(|source| source.path == LIBRARY);
    library.flat_map(crates_shown).collect()
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
}
