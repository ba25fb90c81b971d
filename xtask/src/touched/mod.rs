//! `cargo xtask touched`: the source files outside its folder that name a transport, a C-module,
//! an access module or a controller, and that a new one of its kind would touch too.
//!
//! ```text
//!   subject (its folder, names) -> other files: path into the folder, id, text -> at most two
//! ```
//!
//! A path is one that leads into the folder, by whatever imports, and the declaration of the
//! module. An id is a variant of an enum that lists three transports and more; in the library and
//! in the session file also a name that begins or ends with its name (`xtp_flows`). A text is
//! a string that is the name or a list with it. Tests, their worlds and faults, examples, fuzz
//! targets and peers do not count.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

mod mention;
mod subject;

use crate::allowances::{Allowances, Excess};
use crate::code::Code;
use crate::code::paths::Paths;
use crate::tidy::Problem;
use crate::tidy::tree::Tree;
use mention::Mentions;
use subject::Subject;

const RULE: &str = "touched";
const LIST: &str = "xtask/touched.txt";

/// How many files outside its folder may name something.
const FILES_MAX: usize = 2;

const HELP: &str = "\
The source files outside its folder that name a transport, a C-module, an access module or a
controller, by path, id or text; the goal is two.

  cargo xtask touched           lists them for each that exists
  cargo xtask touched NAME      for one, with the lines
  cargo xtask touched --check   only what is above the goal and xtask/touched.txt; exit code 1 then
";

/// Runs the command with the words after `touched`; true when nothing is to be done.
///
/// # Errors
/// A word that is none; the repository cannot be read.
pub fn run(root: &Path, words: &[&str]) -> io::Result<bool> {
    let tree = Tree::read(root)?;
    let found = found(&tree);
    match words {
        [] => print!("{}", table(&tree, &found)),
        ["--check"] => {
            let problems = judge(&tree, &found);
            problems.iter().for_each(|problem| println!("{problem}"));
            println!(
                "touched: {} problems; {} things that have a folder",
                problems.len(),
                found.len()
            );
            return Ok(problems.is_empty());
        }
        ["--help" | "-h" | "help"] => print!("{HELP}"),
        [name] if found.iter().any(|(subject, _)| subject.name == *name) => {
            let named = found.iter().filter(|(subject, _)| subject.name == *name);
            named.for_each(|one| print!("{}", lines(&tree, one)));
        }
        _ => {
            let text =
                format!("unknown words `{}`; see `cargo xtask touched --help`", words.join(" "));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    Ok(true)
}

/// Where a subject is named: by file, the first line of each way of naming it.
type Places = BTreeMap<usize, Vec<(usize, &'static str)>>;

fn found(tree: &Tree) -> Vec<(Subject, Places)> {
    let code = Code::new(tree);
    let paths = Paths::new(&code);
    let subjects = subject::all(&code, &paths);
    let mentions = Mentions::new(&code, &paths, &subjects);
    subjects
        .into_iter()
        .map(|subject| {
            let places = mentions.of(&subject);
            (subject, places)
        })
        .collect()
}

fn judge(tree: &Tree, found: &[(Subject, Places)]) -> Vec<Problem> {
    let excesses: Vec<Excess> =
        found.iter().filter_map(|(subject, places)| excess(subject, places)).collect();
    match Allowances::parse(RULE, LIST, tree.text(LIST).unwrap_or_default()) {
        Ok(list) => list.judge(&excesses),
        Err(problem) => vec![problem],
    }
}

fn excess(subject: &Subject, places: &Places) -> Option<Excess> {
    let (key, figure) = (subject.key(), places.len());
    let excess = || Excess {
        what: format!("{key} is named in {figure} files outside its folder, limit {FILES_MAX}"),
        key: key.clone(),
        figure,
        path: subject.path.clone(),
        line: subject.line,
        remedy: "let its entry in the catalogue say it; `cargo xtask touched` lists them",
    };
    (figure > FILES_MAX).then(excess)
}

fn path(tree: &Tree, file: usize) -> &str {
    tree.sources.get(file).map_or("", |source| source.path.as_str())
}

fn table(tree: &Tree, found: &[(Subject, Places)]) -> String {
    let mut text = String::new();
    for (subject, places) in found {
        let mark = if places.len() > FILES_MAX { '!' } else { ' ' };
        text.push_str(&format!(
            "{mark} {:<28} {:>3}  {}\n",
            subject.key(),
            places.len(),
            subject.folders.join(" ")
        ));
        for (file, ways) in places {
            let ways: Vec<&str> = ways.iter().map(|(_, way)| *way).collect();
            text.push_str(&format!("        {:<60} {}\n", path(tree, *file), ways.join(", ")));
        }
    }
    text
}

fn lines(tree: &Tree, (subject, places): &(Subject, Places)) -> String {
    let mut text = format!("{} {}\n", subject.key(), places.len());
    for (file, ways) in places {
        for (line, way) in ways {
            text.push_str(&format!("  {}:{line}: {way}\n", path(tree, *file)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    const SPECS: &str = "pub static SPEC: TransportSpec = TransportSpec { name: \"mail\", id: 1 }; \
        pub static MANY: TransportSpec = TransportSpec { name: \"mail-many\", id: 2 };";
    const KINDS: &str = "pub enum Kind { Mail, MailMany, Drum, Fire } enum Two { Mail, Drum } \
        fn name() -> &'static str { \"mail\" } fn other() { Mail; Two::Mail; \"by mail\" }";
    const PLAN: &str = "use dacapo_qos::Kind; fn f() { Kind::Mail; Kind::Drum; }";

    /// Subjects and the files that name them.
    fn places() -> Vec<String> {
        let tree = tree(&[
            ("crates/transport/Cargo.toml", "[package]\nname = \"dacapo-transport\"\n"),
            ("crates/transport/src/lib.rs", "pub mod mail; pub mod drum; pub mod fire;"),
            (
                "crates/transport/src/fire/mod.rs",
                "static SPEC: TransportSpec = TransportSpec { name: \"fire\" };",
            ),
            ("crates/transport/src/mail/mod.rs", "mod spec; pub use spec::*; pub struct Mail;"),
            ("crates/transport/src/mail/spec.rs", SPECS),
            (
                "crates/transport/src/drum/mod.rs",
                "static SPEC: TransportSpec = TransportSpec { name: \"drum\" };",
            ),
            ("crates/qos/Cargo.toml", "[package]\nname = \"dacapo-qos\"\n"),
            ("crates/qos/src/lib.rs", KINDS),
            ("crates/dacapo/Cargo.toml", "[package]\nname = \"dacapo\"\n"),
            ("crates/dacapo/src/lib.rs", "mod host; mod plan; mod ports; mod list;"),
            ("crates/dacapo/src/host.rs", "use dacapo_transport::mail::Mail;"),
            ("crates/dacapo/src/plan.rs", PLAN),
            ("crates/dacapo/src/ports.rs", "fn mail_ports() {} struct Mailing;"),
            ("crates/dacapo/src/list.rs", "const ALL: &str = \"mail-many, drum\";"),
            ("crates/dacapo/tests/t.rs", "use dacapo_transport::mail::Mail;"),
        ]);
        let found = found(&tree);
        let one = |(subject, places): &(Subject, Places)| {
            let files: Vec<String> = places
                .iter()
                .map(|(file, ways)| {
                    let name = path(&tree, *file).rsplit('/').next().unwrap_or_default();
                    let ways: Vec<&str> = ways.iter().map(|it| it.1).collect();
                    format!("{name}({})", ways.join(" "))
                })
                .collect();
            format!("{}: {}", subject.key(), files.join(" "))
        };
        found.iter().map(one).collect()
    }

    #[test]
    fn paths_ids_and_texts_outside_its_folder_are_found() {
        assert_eq!(
            places(),
            [
                "transport drum: list.rs(text) plan.rs(id) lib.rs(id) lib.rs(path)",
                "transport fire: lib.rs(id) lib.rs(path)",
                "transport mail: host.rs(path id) list.rs(text) plan.rs(id) ports.rs(id) \
                 lib.rs(id text) lib.rs(path)",
            ]
        );
    }

    #[test]
    fn above_two_is_a_problem_that_the_list_may_allow() {
        let mut places = Places::new();
        let (kind, name) = ("transport", "mail".to_owned());
        let (folders, names) = (Vec::new(), Vec::new());
        let subject = Subject { kind, name, names, folders, path: "a.rs".to_owned(), line: 1 };
        for file in 0..2 {
            places.insert(file, vec![(1, "path")]);
        }
        assert_eq!(excess(&subject, &places), None);
        places.insert(2, vec![(1, "path")]);
        let found = [(subject, places)];
        assert_eq!(judge(&tree(&[]), &found).len(), 1);
        let listed = |figure: usize| {
            let list = format!("transport mail {figure}: its ports are in the host\n");
            judge(&tree(&[(LIST, &list)]), &found).len()
        };
        assert_eq!((listed(2), listed(3), listed(4)), (1, 0, 1));
    }
}
