//! Rule `banned`: words and calls that have no place here.
//!
//! - In the crates without I/O (`src` only): the clock, randomness of the system, sockets, threads.
//!   Time and randomness are arguments, which is what makes a run repeatable.
//! - Everywhere: `async fn`, marks of unfinished work, paths of somebody's machine, and in comments
//!   headings that say what a thing is, or is not: a sentence of its own does.

use super::lexer::Kind;
use super::problem::Problem;
use super::source::Source;
use super::tree::{Text, Tree};

const RULE: &str = "banned";

const NO_IO: [&str; 10] =
    ["base", "core", "lift", "link", "media", "modules", "netlab", "packet", "path", "qos"];
const NO_IO_TOO: [&str; 3] = ["safenet", "wire", "xtp"];

/// Words in a row, their name in a message, and what to do instead.
type Ban = (&'static [&'static str], &'static str, &'static str);

const IN_NO_IO: [Ban; 7] = [
    (&["Instant", ":", ":", "now"], "`Instant::now`", "take the time as an argument"),
    (&["SystemTime", ":", ":", "now"], "`SystemTime::now`", "take the time as an argument"),
    (&["thread_rng"], "`thread_rng`", "take a `dacapo_base::Random`"),
    (&["rand", ":", ":", "rng"], "`rand::rng`", "take a `dacapo_base::Random`"),
    (&["UdpSocket"], "`UdpSocket`", "leave I/O to crates/transport and crates/sys"),
    (&["std", ":", ":", "thread"], "`std::thread`", "leave threads to who drives the core"),
    (&["thread", ":", ":", "spawn"], "`std::thread`", "leave threads to who drives the core"),
];

const ASYNC: &[&str] = &["async", "fn"];

const EVERYWHERE: [Ban; 3] = [
    (ASYNC, "`async fn`", "write `handle_*` and `poll_*`, the caller drives"),
    (&["dbg", "!", "("], "`dbg!`", "remove it"),
    (&["todo", "!", "("], "`todo!`", "finish it, or return an error that says so"),
];

const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Headings, written so that this file does not hold them.
const HEADINGS: [&str; 2] = [concat!("What it is", " not"), concat!("What it is", ":")];

/// Folders of somebody's machine, written so that this file does not hold them.
const MACHINE_PATHS: [&str; 3] =
    [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems: Vec<Problem> = tree.sources.iter().flat_map(check_source).collect();
    problems.extend(tree.texts.iter().flat_map(check_text));
    problems
}

/// Where a virtual world asks for one instant, from which `quinn-proto` counts; only differences
/// matter, so nothing depends on it.
const WORLDS: [&str; 3] = [
    "crates/core/src/peer/set/tests/mod.rs",
    "crates/netlab/src/world.rs",
    "crates/netlab/src/plain_tls/tests/world.rs",
];

/// What only tests call: it shares seeds out to threads, and asks a thread for its test's name.
const FOR_TESTS: [&str; 2] = ["crates/base/src/seeds.rs", "crates/base/src/skip.rs"];

/// Programs on tokio, and the endpoint that they have: nothing below knows of futures.
const FUTURES: [&str; 3] = [
    "crates/dacapo/src/session/futures.rs",
    "crates/dacapo/tests/session/futures.rs",
    "examples/futures.rs",
];

fn is_without_io(path: &str) -> bool {
    let Some((name, rest)) = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    let is_listed = NO_IO.contains(&name) || NO_IO_TOO.contains(&name);
    let is_free = WORLDS.contains(&path) || FOR_TESTS.contains(&path);
    is_listed && rest.starts_with("src/") && !is_free
}

fn check_source(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut report = |line: usize, what: String, remedy: &str| {
        problems.push(Problem::new(RULE, &source.path, line, what, remedy));
    };
    let mut bans = EVERYWHERE.to_vec();
    bans.retain(|(words, ..)| *words != ASYNC || !FUTURES.contains(&source.path.as_str()));
    if is_without_io(&source.path) {
        bans.extend(IN_NO_IO);
    }
    for index in 0..source.tokens.len() {
        for (words, name, remedy) in &bans {
            if source.matches(index, words) {
                report(source.line(index), (*name).to_owned(), remedy);
            }
        }
        if source.kind(index) == Some(Kind::Str) {
            for (line, what, remedy) in machine_paths(source.word(index), source.line(index)) {
                report(line, what, remedy);
            }
        }
    }
    for comment in &source.comments {
        let text = source.comment_text(comment);
        for (line, what, remedy) in
            machine_paths(text, comment.line).chain(marks(text, comment.line))
        {
            report(line, what, remedy);
        }
        for heading in HEADINGS.into_iter().filter(|heading| text.contains(heading)) {
            report(comment.line, format!("the heading `{heading}`"), "say it in a sentence");
        }
    }
    problems
}

fn check_text(file: &Text) -> Vec<Problem> {
    let mut found: Vec<(usize, String, &str)> = machine_paths(&file.text, 1).collect();
    if !file.path.ends_with(".md") {
        found.extend(marks(&file.text, 1));
    }
    let problem = |(line, what, remedy)| Problem::new(RULE, &file.path, line, what, remedy);
    found.into_iter().map(problem).collect()
}

/// The marks in `text`, which begins on `line`.
fn marks(text: &str, line: usize) -> impl Iterator<Item = (usize, String, &'static str)> {
    let is_separator = |c: char| c != '_' && !c.is_alphanumeric();
    let found_in = move |line: &str| {
        let words: Vec<&str> = line.split(is_separator).collect();
        MARKS.into_iter().filter(move |mark| words.contains(mark)).collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(move |(index, text)| {
        let found = found_in(text).into_iter();
        found.map(move |mark| (line + index, format!("`{mark}`"), "do it, or open an issue"))
    })
}

/// The paths of somebody's machine in `text`, which begins on `line`.
fn machine_paths(text: &str, line: usize) -> impl Iterator<Item = (usize, String, &'static str)> {
    text.lines().enumerate().flat_map(move |(index, text)| {
        let found = MACHINE_PATHS.into_iter().filter(|path| has_path(text, path));
        let remedy = "start from the root of the repository or an environment variable";
        found.map(move |path| (line + index, format!("the path `{path}`"), remedy))
    })
}

/// Whether `path` begins somewhere in `text`, and not in the middle of a longer path or address.
fn has_path(text: &str, path: &str) -> bool {
    let begins = |at: usize| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~/)}*".contains(c))
    };
    text.match_indices(path).any(|(at, _)| begins(at))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let problems = check(&tree(&[(path, text)]));
        problems.into_iter().map(|p| format!("{}: {}", p.line, p.what)).collect()
    }

    #[test]
    fn clocks_sockets_threads_and_randomness_are_refused_without_io() {
        let text = "use std::net::UdpSocket;\nInstant::now();\nstd::time::SystemTime::now();\n\
            std::thread::sleep(a);\nthread::spawn(b);\nrand::rng();\nthread_rng();";
        assert_eq!(
            found("crates/core/src/turn.rs", text),
            [
                "1: `UdpSocket`",
                "2: `Instant::now`",
                "3: `SystemTime::now`",
                "4: `std::thread`",
                "5: `std::thread`",
                "6: `rand::rng`",
                "7: `thread_rng`",
            ]
        );
    }

    #[test]
    fn the_edges_may_do_all_of_it() {
        for path in [
            "crates/reactor/src/lib.rs",
            "crates/reactor/src/sending.rs",
            "crates/core/tests/real.rs",
            "crates/sys/src/clock.rs",
            "apps/dacapo/src/main.rs",
        ] {
            assert_eq!(found(path, "Instant::now(); std::thread::sleep(a)"), [""; 0], "{path}");
        }
    }

    #[test]
    fn words_in_texts_and_comments_are_no_calls() {
        let text = "// not Instant::now\n\"std::thread\"; Instant::from(now)";
        assert_eq!(found("crates/lift/src/a.rs", text), [""; 0]);
    }

    #[test]
    fn async_functions_and_debug_output_are_refused_everywhere() {
        assert_eq!(found("a.rs", "pub async fn a() {}\ndbg!(b);"), ["1: `async fn`", "2: `dbg!`"]);
        assert!(found("examples/futures.rs", "async fn main() {}").is_empty());
        assert_eq!(found("a.rs", "let async_fn = 1; let dbg = 2;"), [""; 0]);
    }

    #[test]
    fn headings_that_say_what_a_thing_is_are_refused_in_comments() {
        let text = format!("//! A list.\n//!\n//! {} a tree.\nlet a = 1;", HEADINGS[1]);
        assert_eq!(found("a.rs", &text), ["3: the heading `".to_owned() + HEADINGS[1] + "`"]);
        assert_eq!(found("a.rs", "/// What it is called now.\nstruct A;"), [""; 0]);
    }

    #[test]
    fn marks_are_refused_in_comments_and_scripts() {
        assert_eq!(found("a.rs", "/* a\nFIXME: b */ // TODO"), ["2: `FIXME`", "2: `TODO`"]);
        assert_eq!(found("a.rs", "\"TODO\"; // TODOS, mktemp a.XXXXXX"), [""; 0]);
        assert_eq!(found("a.sh", "# XXX\n"), ["1: `XXX`"]);
        assert_eq!(found("a.md", "leave no TODO\n"), [""; 0]);
    }

    #[test]
    fn paths_of_a_machine_are_refused_in_strings_comments_and_documents() {
        let path = MACHINE_PATHS[0];
        assert_eq!(found("a.rs", &format!("\n\"{path}x\"")).len(), 1);
        assert_eq!(found("a.rs", &format!("// in {path}x")), [format!("1: the path `{path}`")]);
        assert_eq!(found("a.md", &format!("a\n(see {path}x)")), [format!("2: the path `{path}`")]);
        assert_eq!(
            found("a.md", &format!("https://a.example{path} $DIR{path} ../..{path}")),
            [""; 0]
        );
    }
}
